//===- CompileKernel.h - Compile through the cache --------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Needs the compiler; tools that are built without it have no such flags.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TOOLS_COMMON_COMPILEKERNEL_H
#define HUMMING_TOOLS_COMMON_COMPILEKERNEL_H

#include "Artifacts.h"
#include "Humming/Compiler/Compiler.h"
#include "Humming/Runtime/DiskCache.h"
#include "Humming/Target/KernelConfig.h"
#include <memory>

namespace humming {

/// Compiles kernels, each once: looks into the memory of earlier calls, then
/// into the cache on disk, then compiles and assembles. Not thread-safe.
class KernelCompiler {
public:
  /// Uses the default cache folder, or none. Warnings go to stderr.
  explicit KernelCompiler(bool useDiskCache = true);
  ~KernelCompiler();

  /// The kernel of `problem` for `target` with `config` (nothing: the chooser's
  /// first). Without an assembler the cubin stays empty, with one warning.
  /// Error: the problem or the config is not legal, or compiling failed.
  llvm::Expected<KernelArtifacts>
  compile(const MatmulProblem &problem, const TargetInfo &target,
          const std::optional<KernelConfig> &config);

  /// The same for a quantize; `config` has keys of QuantizeConfig, or is empty.
  llvm::Expected<KernelArtifacts> compile(const QuantizeProblem &problem,
                                          const TargetInfo &target,
                                          llvm::StringRef config);

  /// The same for kernels that move data.
  llvm::Expected<KernelArtifacts> compile(const PackProblem &problem,
                                          const TargetInfo &target);
  llvm::Expected<KernelArtifacts> compile(const GatherProblem &problem,
                                          const TargetInfo &target);

  /// Take the next activation format where the chip lacks one.
  bool fallback = false;

  CacheCounters counters() const { return cache->counters(); }

  /// One step of the last compile and its wall time in milliseconds.
  struct Step {
    std::string name;
    double milliseconds;
  };
  /// The steps of the last compile: `cache` alone for a hit, else those of the
  /// compiler and `assemble`.
  const std::vector<Step> &steps() const { return lastSteps; }
  /// What the assembler said of the kernel last assembled (registers, spills).
  const std::string &assemblerLog() const { return lastLog; }

private:
  template <typename Problem>
  llvm::Expected<KernelArtifacts> compileLayout(const Problem &problem,
                                                int32_t divisor,
                                                const TargetInfo &target);
  llvm::Error findAssemblerOnce();
  /// Looks `key` up, or makes it from what `run` compiles.
  llvm::Expected<KernelArtifacts>
  lookUp(CacheKey key, const TargetInfo &target,
         llvm::function_ref<llvm::Expected<CompileResult>()> run);

  struct State;
  std::unique_ptr<State> state;
  std::unique_ptr<DiskCache> cache;
  std::vector<Step> lastSteps;
  std::string lastLog;
};

} // namespace humming

#endif // HUMMING_TOOLS_COMMON_COMPILEKERNEL_H
