//===- TestKernels.h - Right kernels that tests run and break -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_UNITTESTS_EMULATOR_TESTKERNELS_H
#define HUMMING_UNITTESTS_EMULATOR_TESTKERNELS_H

#include "Humming/Emulator/Emulator.h"
#include <functional>
#include <string>
#include <vector>

namespace humming {
namespace test {

/// A kernel with the launch and the data that show that it is right.
struct TestKernel {
  std::string name;
  std::string ptx;
  LaunchConfig config;
  /// Adds buffers and arguments; returns the address of the result.
  std::function<uint64_t(Memory &, ArgumentPacker &)> setup;
  std::vector<uint32_t> expected; ///< words of the result
};

/// reduce, pipeline, splitk, bulk, cluster, wgmma, mma, named, remote.
const std::vector<TestKernel> &testKernels();
const TestKernel &testKernel(llvm::StringRef name);
TestKernel makeRemote();

struct Outcome {
  bool faulted = false;
  EmulatorFault fault = EmulatorFault::Syntax;
  std::string message;
  bool right = false; ///< the result is as expected
  Report report;
};
/// Parses \p ptx and launches it with the kernel's data.
Outcome runKernel(const TestKernel &kernel, llvm::StringRef ptx, uint64_t seed,
                  unsigned threads = 1);

} // namespace test
} // namespace humming

#endif // HUMMING_UNITTESTS_EMULATOR_TESTKERNELS_H
