//===- Compiler.h - Problem and target to PTX -------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The whole road from a problem to PTX in one call, with what a tool wants to
// show of it: the IR of each stage, remarks, the wall time of each step.
// Assembling, caching and launching belong to the runtime, which knows nothing
// of MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_COMPILER_COMPILER_H
#define HUMMING_COMPILER_COMPILER_H

#include "Humming/Runtime/LaunchDescription.h"
#include "Humming/Target/KernelConfig.h"
#include "Humming/Target/Layout.h"
#include "Humming/Target/Quantize.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace humming {

/// What to compile for and what to keep of the way.
struct CompileOptions {
  std::string chip = "sm_80";
  /// Keys that replace those of the chosen config: `stages=3,split_k=2`.
  std::string config;
  /// Name of the kernel; empty: made from the problem (`kernelName`).
  std::string name;
  /// Where the chip lacks the activation's format, take the next one of
  /// Humming/Target/Fallback.h in place of an error; a remark and a note in the
  /// launch description say so.
  bool fallback = false;
  /// Fill CompileResult::remarks with why the config was chosen.
  bool explain = false;
  /// The last stage wanted: 1 to 4, or 5 for PTX. Earlier stops save time.
  int lastStage = 5;
  /// Keep the text of the last stage (1 to 4) in CompileResult::ir.
  bool keepIR = false;
};

/// Wall time of one step, in milliseconds.
struct StepTime {
  std::string step;
  double milliseconds = 0;
};

struct CompileResult {
  std::string ptx;               ///< stage 5
  LaunchDescription launch;      ///< how to launch it
  KernelConfig config;           ///< what was chosen, of a matmul
  QuantizeConfig quantizeConfig; ///< what was chosen, of a quantize
  std::string ir;                ///< text of options.lastStage, if asked for
  std::vector<std::string> remarks;
  std::vector<StepTime> times;
};

/// `humming_u4_g128_int_bf16_bf16_bias`: formats, granularity, zero point,
/// scale, activation; a valid PTX identifier.
std::string kernelName(const MatmulProblem &problem);
/// `humming_quantize_bf16_e4m3_token_g128_e8m0_silu`.
std::string kernelName(const QuantizeProblem &problem);

/// `humming_pack_w4a16`, `humming_gather_16`.
std::string kernelName(const PackProblem &problem);
std::string kernelName(const GatherProblem &problem);

/// Version of Humming and of the LLVM it was built with; part of cache keys.
std::string compilerVersion();

/// The least PTX version (63 = 6.3) that the kernel of this config needs.
int32_t requiredPtxVersion(const MatmulProblem &problem,
                           const KernelConfig &config,
                           const TargetInfo &target);
int32_t requiredPtxVersion(const QuantizeProblem &problem,
                           const TargetInfo &target);

/// Compiles kernels one after another; keeps what they share (the MLIR
/// context). Not thread-safe: use one a thread.
class Compiler {
public:
  Compiler();
  ~Compiler();

  /// Error: the first diagnostic of the pass that failed; a crash inside LLVM's
  /// code generator is caught and reported as an error too.
  llvm::Expected<CompileResult> compile(const MatmulProblem &problem,
                                        const CompileOptions &options);
  /// The same for a quantize; options.config has the keys of QuantizeConfig,
  /// and there is no fallback.
  llvm::Expected<CompileResult> compile(const QuantizeProblem &problem,
                                        const CompileOptions &options);

  /// The same for kernels that move data; options.config must be empty.
  llvm::Expected<CompileResult> compile(const PackProblem &problem,
                                        const CompileOptions &options);
  llvm::Expected<CompileResult> compile(const GatherProblem &problem,
                                        const CompileOptions &options);

private:
  template <typename Problem>
  llvm::Expected<CompileResult> compileLayout(const Problem &problem,
                                              const CompileOptions &options);
  /// The launch description of a result, its kernel's name, PTX version and
  /// bytes of shared memory; the PTX version of a result.
  using Describe = llvm::function_ref<LaunchDescription(
      const CompileResult &, llvm::StringRef, int32_t, int64_t)>;
  using Version = llvm::function_ref<int32_t(const CompileResult &)>;
  template <typename Problem>
  llvm::Error run(const Problem &problem, int64_t m,
                  const CompileOptions &options, Describe describe,
                  Version version, CompileResult &result);

  struct State;
  std::unique_ptr<State> state;
};

} // namespace humming

#endif // HUMMING_COMPILER_COMPILER_H
