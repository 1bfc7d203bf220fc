//===- GgufTypes.h - ggml's tensor types -------------------------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_QUANT_GGUFTYPES_H
#define HUMMING_LIB_QUANT_GGUFTYPES_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace humming {

/// A ggml type: `block` weights take `bytes` bytes (ggml-common.h).
struct GgufType {
  uint32_t number;
  llvm::StringRef name;
  unsigned block;
  unsigned bytes;
};
/// Null if the number is not known.
const GgufType *findGgufType(uint32_t number);

} // namespace humming

#endif // HUMMING_LIB_QUANT_GGUFTYPES_H
