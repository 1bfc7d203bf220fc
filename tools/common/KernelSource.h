//===- KernelSource.h - The kernels that a tool is to run -------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// humming-run and humming-bench take kernels from one of two places: compiled
// on the spot from the problem flags (builds with the compiler), or files that
// were compiled earlier:
//
//   --ptx FILE and/or --cubin FILE, with --launch FILE   one kernel
//   --artifacts FOLDER                                   all NAME.json there
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TOOLS_COMMON_KERNELSOURCE_H
#define HUMMING_TOOLS_COMMON_KERNELSOURCE_H

#include "Artifacts.h"
#include "ProblemFlags.h"
#include <memory>
#include <vector>

namespace humming {

class KernelCompiler;

class KernelSource {
public:
  explicit KernelSource(ProblemFlags &problemFlags);
  ~KernelSource();

  /// Checks the flags and reads the files, if any. Error: names flag or file.
  llvm::Error open();
  /// Whether the kernels come from files.
  bool isPrecompiled() const { return !files.empty(); }

  /// The kernels to run for one size: all files whose declared divisibility
  /// admits the shape, or one compiled kernel for each config asked for.
  /// `weight`, if not null, replaces the weight type of the problem flags.
  /// Error: none fits, or compiling failed.
  llvm::Expected<std::vector<KernelArtifacts>>
  kernelsFor(Shape shape, int64_t m, const QuantType *weight = nullptr);

  /// Configs to compile in place of the chooser's answer.
  std::vector<std::string> configs;
  /// Try every legal config (up to this many, evenly spaced); 0: do not.
  int64_t sweep = 0;

  llvm::cl::OptionCategory category;
  llvm::cl::opt<std::string> ptxFlag, cubinFlag, launchFlag, artifactsFlag,
      saveFlag;
#ifdef HUMMING_HAVE_COMPILER
  llvm::cl::opt<bool> noCacheFlag;
#endif

private:
  llvm::Expected<std::vector<KernelArtifacts>>
  compileFor(Shape shape, int64_t m, const QuantType *weight);

  ProblemFlags &flags;
  std::vector<KernelArtifacts> files;
  std::unique_ptr<KernelCompiler> compiler;
};

} // namespace humming

#endif // HUMMING_TOOLS_COMMON_KERNELSOURCE_H
