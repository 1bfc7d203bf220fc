//===- LayoutKernelsTest.cpp - Pack and gather kernels, executed ----------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every pair of widths is packed by its kernel on the emulator and compared
// with the CPU's packer bit for bit; gathers likewise with a loop. Buffers are
// poisoned and guarded (CheckLayout.cpp).
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "Humming/Compiler/Compiler.h"
#include "gtest/gtest.h"

using namespace humming;

namespace {

/// Compiles for the oldest chip: these kernels need nothing newer.
template <typename Problem>
KernelArtifacts compile(const Problem &problem) {
  static Compiler compiler;
  CompileOptions options;
  options.chip = "sm_75";
  CompileResult result = llvm::cantFail(compiler.compile(problem, options));
  KernelArtifacts kernel;
  kernel.name = result.launch.kernelName;
  kernel.launch = result.launch;
  kernel.ptx = result.ptx;
  return kernel;
}

TEST(LayoutKernels, PackEveryPairOfWidths) {
  std::unique_ptr<Executor> executor = createEmulatorExecutor();
  for (unsigned a : {16u, 8u, 4u})
    for (unsigned b = 1; b <= std::min(a, 8u); ++b)
      // Whole tiles, tails of both, rows that allow one code at a time.
      for (auto [n, k] : {std::pair(64, 128), {70, 72}, {1, 1}, {129, 63}}) {
        PackProblem problem;
        problem.activationBits = a;
        problem.weightBits = b;
        problem.n = n;
        problem.k = k;
        KernelArtifacts kernel = compile(problem);
        llvm::cantFail(executor->load(kernel));
        CheckReport report = llvm::cantFail(
            runAndCheckPack(*executor, kernel, n, k, CheckOptions()));
        EXPECT_TRUE(report.ok)
            << kernel.name << " " << n << "x" << k << ": " << report.detail;
      }
}

TEST(LayoutKernels, Gather) {
  std::unique_ptr<Executor> executor = createEmulatorExecutor();
  for (unsigned bits : {16u, 8u})
    for (int64_t k : {1, 3, 20, 256, 2100}) {
      GatherProblem problem;
      problem.elementBits = bits;
      problem.columns = k;
      KernelArtifacts kernel = compile(problem);
      llvm::cantFail(executor->load(kernel));
      CheckReport report = llvm::cantFail(
          runAndCheckGather(*executor, kernel, 3, k, CheckOptions()));
      EXPECT_TRUE(report.ok)
          << kernel.name << " " << k << ": " << report.detail;
    }
}

TEST(LayoutKernels, RefusesWhatHasNoKernel) {
  Compiler compiler;
  PackProblem pack;
  pack.activationBits = 4;
  pack.weightBits = 5;
  EXPECT_EQ(
      llvm::toString(compiler.compile(pack, CompileOptions()).takeError()),
      "expected weights of 1 to 4 bits for 4-bit activations, got 5");
  GatherProblem gather;
  gather.elementBits = 4;
  EXPECT_EQ(
      llvm::toString(compiler.compile(gather, CompileOptions()).takeError()),
      "expected elements of 8 or 16 bits, got 4");
  CompileOptions options;
  options.config = "stages=3";
  EXPECT_EQ(
      llvm::toString(compiler.compile(PackProblem(), options).takeError()),
      "expected no config for a kernel that moves data, got 'stages=3'");
}

} // namespace
