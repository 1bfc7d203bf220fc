//===- DynamicLibrary.h - dlopen for the runtime ----------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to lib/Runtime. Not llvm::sys::DynamicLibrary, which makes every
// opened library's symbols visible to the whole process.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_RUNTIME_DYNAMICLIBRARY_H
#define HUMMING_LIB_RUNTIME_DYNAMICLIBRARY_H

#include "llvm/ADT/ArrayRef.h"
#include <dlfcn.h>
#include <link.h>
#include <string>

namespace humming {

/// Opens the first of `names` that the system's loader finds; symbols stay
/// private to the handle. Null: none; `error` then holds the first name's
/// reason.
inline void *openLibrary(llvm::ArrayRef<const char *> names,
                         std::string &error) {
  for (const char *name : names) {
    if (void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL))
      return handle;
    const char *reason = dlerror();
    if (error.empty() && reason)
      error = reason;
  }
  return nullptr;
}

/// The file behind a handle; empty if the loader does not say.
inline std::string libraryPath(void *handle) {
  link_map *map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name)
    return "";
  return map->l_name;
}

} // namespace humming

#endif // HUMMING_LIB_RUNTIME_DYNAMICLIBRARY_H
