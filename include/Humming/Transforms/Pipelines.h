//===- Pipelines.h - Passes in the order of the stages ----------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   humming-import         0 -> 1   upstream forms to hquant ops
//   humming-configure      1 -> 2   packed weights, a config for the chip
//   humming-lower-to-nvvm  2 -> 4   one block's program, then llvm and nvvm
//   humming-compile        1 -> 4   both; humming::Compiler goes on to PTX
//
// An embedder may enter at stage 1 or 2 and leave where it likes; each builder
// only adds passes to the manager that it is given, anchored on a module.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TRANSFORMS_PIPELINES_H
#define HUMMING_TRANSFORMS_PIPELINES_H

#include "mlir/Pass/PassOptions.h"
#include <string>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace humming {

/// What the pipelines can be asked for. One struct for all of them: a pipeline
/// ignores what belongs to the stages that it does not reach.
struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  PassOptions::Option<std::string> chip{
      *this, "chip",
      llvm::cl::desc("Chip to compile for, as sm_80; empty: the module's "
                     "hquant.target"),
      llvm::cl::init("")};
  PassOptions::Option<std::string> config{
      *this, "config",
      llvm::cl::desc("Keys of the lowering config that replace those of the "
                     "choice, as stages=3,split_k=2"),
      llvm::cl::init("")};
  PassOptions::Option<int64_t> m{
      *this, "m",
      llvm::cl::desc("Tokens to choose for where the type does not say; 0: a "
                     "small batch"),
      llvm::cl::init(0)};
  PassOptions::Option<bool> explain{
      *this, "explain",
      llvm::cl::desc("Explain the chosen configs in diagnostic remarks"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> verifyStages{
      *this, "verify-stages",
      llvm::cl::desc("Check the contract of every stage that is reached"),
      llvm::cl::init(true)};
};

/// Stage 0 to 1.
void buildImportPipeline(mlir::OpPassManager &manager,
                         const PipelineOptions &options);
/// Stage 1 to 2.
void buildConfigurePipeline(mlir::OpPassManager &manager,
                            const PipelineOptions &options);
/// Stage 2 to 3: one block's program, its copies overlapped, checked against
/// the target.
void buildTilePipeline(mlir::OpPassManager &manager,
                       const PipelineOptions &options);
/// Stage 3 to 4.
void buildTileToNVVMPipeline(mlir::OpPassManager &manager,
                             const PipelineOptions &options);
/// Stage 2 to 4.
void buildLowerToNVVMPipeline(mlir::OpPassManager &manager,
                              const PipelineOptions &options);
/// Stage 1 to 4, what the compiler library runs before it translates to PTX.
void buildCompilePipeline(mlir::OpPassManager &manager,
                          const PipelineOptions &options);

/// Registers the pipelines by name, for the whole process.
void registerPipelines();

} // namespace humming

#endif // HUMMING_TRANSFORMS_PIPELINES_H
