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
#include <functional>
#include <memory>
#include <utility>
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

  /// The same for `--op quantize`. Compiled kernels alone; files are those
  /// whose operation is quantize.
  llvm::Expected<std::vector<KernelArtifacts>> quantizeKernelsFor(int64_t m,
                                                                  int64_t k);
  /// The quantize kernel of the flags before a matmul: with the chooser's
  /// config, since the flag's is the matmul's.
  llvm::Expected<KernelArtifacts> quantizeKernelFor(int64_t m, int64_t k);

  /// The kernels for `--op pack` and `--op gather`, and the gather before the
  /// matmul of a layer whose columns are permuted.
  llvm::Expected<KernelArtifacts> packKernelFor(const PackProblem &problem);
  llvm::Expected<KernelArtifacts> gatherKernelFor(const GatherProblem &problem);

  /// Configs to compile in place of the chooser's answer.
  std::vector<std::string> configs;
  /// Try this many legal configs: the chooser's pick, those of the least
  /// predicted times, and for the other half some evenly spaced over the rest.
  /// 0: do not; INT64_MAX: all.
  int64_t sweep = 0;
  /// The sweep's configs that could not be compiled, with the reason.
  std::vector<std::pair<std::string, std::string>> failures;
  /// The sweep's configs for one size, without compiling. Error: none is legal.
  llvm::Expected<std::vector<KernelConfig>>
  sweepConfigs(const MatmulProblem &problem, const TargetInfo &target) const;

  /// Called after each compiled kernel with how many are done, of how many.
  std::function<void(size_t done, size_t all)> progress;

  llvm::cl::OptionCategory category;
  llvm::cl::opt<std::string> ptxFlag, cubinFlag, launchFlag, artifactsFlag,
      saveFlag;
#ifdef HUMMING_HAVE_COMPILER
  llvm::cl::opt<bool> noCacheFlag;
#endif

private:
  llvm::Error save(llvm::ArrayRef<KernelArtifacts> kernels,
                   llvm::StringRef suffix) const;
  llvm::Expected<std::vector<KernelArtifacts>>
  compileFor(Shape shape, int64_t m, const QuantType *weight);

  ProblemFlags &flags;
  std::vector<KernelArtifacts> files;
  std::unique_ptr<KernelCompiler> compiler;
};

} // namespace humming

#endif // HUMMING_TOOLS_COMMON_KERNELSOURCE_H
