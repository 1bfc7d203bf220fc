//===- KernelList.h - The kernels run on hardware ---------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The list of kernels.ptx, for the program that runs them and the test that
// replays them.

#ifndef HUMMING_SCRIPTS_HARDWARETRUTH_KERNELLIST_H
#define HUMMING_SCRIPTS_HARDWARETRUTH_KERNELLIST_H

#include "Truth.h"

namespace truth {

struct KernelCase {
  std::string name;
  unsigned grid = 1, block = 1, words = 0;
};

constexpr uint32_t kernelInputWords = 16 * 1024;

inline uint32_t kernelInput(const KernelCase &c, uint32_t index) {
  return uint32_t(mix(nameHash(c.name.c_str()) ^ mix(index)));
}

/// The lines `// case NAME grid=G block=B words=W` of the PTX text.
inline std::vector<KernelCase> parseKernelCases(const char *text, size_t size) {
  std::vector<KernelCase> cases;
  std::string all(text, size);
  for (size_t at = 0; (at = all.find("// case ", at)) != std::string::npos;) {
    size_t end = all.find('\n', at);
    std::string line = all.substr(at, end - at);
    char name[64];
    KernelCase c;
    if (sscanf(line.c_str(), "// case %63s grid=%u block=%u words=%u", name,
               &c.grid, &c.block, &c.words) == 4) {
      c.name = name;
      cases.push_back(c);
    }
    at += 8;
  }
  return cases;
}

} // namespace truth

#endif // HUMMING_SCRIPTS_HARDWARETRUTH_KERNELLIST_H
