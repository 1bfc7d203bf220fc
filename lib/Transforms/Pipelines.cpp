//===- Pipelines.cpp - Passes in the order of the stages --------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Transforms/Pipelines.h"
#include "Humming/Conversion/Passes.h"
#include "Humming/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace humming;

static void verifyAt(OpPassManager &manager, const PipelineOptions &options,
                     StringRef stage) {
  if (options.verifyStages)
    manager.addPass(createVerifyStagePass({stage.str()}));
}

//===----------------------------------------------------------------------===//
// Stage 0 to 1: import
//===----------------------------------------------------------------------===//

void humming::buildImportPipeline(OpPassManager &manager,
                                  const PipelineOptions &options) {
  // Step 1. Upstream matmuls of dequantized weights become hquant.matmul.
  manager.addPass(createConvertLinalgToHQuantPass());
  // Step 2. Drop what they no longer need: dequantized weights, transposes,
  // zero fills, zero biases.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  verifyAt(manager, options, "operator");
}

//===----------------------------------------------------------------------===//
// Stage 1 to 2: configure
//===----------------------------------------------------------------------===//

void humming::buildConfigurePipeline(OpPassManager &manager,
                                     const PipelineOptions &options) {
  // Step 1. Canonical forms first: without symmetric zero points and zero
  // biases the problem is a cheaper one.
  manager.addPass(createCanonicalizerPass());
  // Step 2. The epilogue is part of the problem that the config is chosen for.
  manager.addPass(createFuseEpiloguePass());
  // Step 3. The layout is independent of the config, so the order of steps 3
  // and 4 does not matter; the first to fail should be the choice.
  SelectLoweringConfigPassOptions select;
  select.chip = options.chip;
  select.config = options.config;
  select.m = options.m;
  select.explain = options.explain;
  manager.addPass(createSelectLoweringConfigPass(select));
  // Step 4. Pack, and share the packs of weights that several matmuls use.
  manager.addPass(createPackWeightsPass());
  manager.addPass(createCSEPass());
  verifyAt(manager, options, "configured");
}

//===----------------------------------------------------------------------===//
// Stage 2 to 3: tile
//===----------------------------------------------------------------------===//

void humming::buildTilePipeline(OpPassManager &manager,
                                const PipelineOptions &options) {
  // Step 1. One block's program, single-buffered.
  manager.addPass(createConvertHQuantToTilesPass());
  manager.addPass(createConvertHQuantLayoutToTilesPass());
  // Step 2. Overlap its copies, by warps of their own or by all.
  OpPassManager &module = manager.nest<gpu::GPUModuleOp>();
  module.addNestedPass<gpu::GPUFuncOp>(createSpecializeWarpsPass());
  module.addNestedPass<gpu::GPUFuncOp>(createPipelineCopiesPass());
  // Step 3. Only now is the number of buffers known.
  module.addPass(createCheckResourcesPass({options.explain}));
  verifyAt(manager, options, "tile");
}

//===----------------------------------------------------------------------===//
// Stage 3 to 4: registers and instructions
//===----------------------------------------------------------------------===//

void humming::buildTileToNVVMPipeline(OpPassManager &manager,
                                      const PipelineOptions &options) {
  OpPassManager &module = manager.nest<gpu::GPUModuleOp>();
  // Step 1. Fragments to the operations on their registers.
  module.addPass(createLowerDequantPass());
  module.addPass(createMapMmaPass());
  // Step 2. Everything else; fragments become registers.
  module.addPass(createConvertHQuantToNVVMPass());
  verifyAt(manager, options, "thread");
}

void humming::buildLowerToNVVMPipeline(OpPassManager &manager,
                                       const PipelineOptions &options) {
  buildTilePipeline(manager, options);
  buildTileToNVVMPipeline(manager, options);
}

void humming::buildCompilePipeline(OpPassManager &manager,
                                   const PipelineOptions &options) {
  buildConfigurePipeline(manager, options);
  buildLowerToNVVMPipeline(manager, options);
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void humming::registerPipelines() {
  PassPipelineRegistration<PipelineOptions>(
      "humming-import",
      "Turn upstream matmuls of dequantized weights into hquant ops (stage 0 "
      "to 1)",
      buildImportPipeline);
  PassPipelineRegistration<PipelineOptions>(
      "humming-configure",
      "Pack weights and choose how each matmul is lowered (stage 1 to 2)",
      buildConfigurePipeline);
  PassPipelineRegistration<PipelineOptions>(
      "humming-lower-to-nvvm",
      "Lower configured matmuls to llvm and nvvm (stage 2 to 4)",
      buildLowerToNVVMPipeline);
  PassPipelineRegistration<PipelineOptions>(
      "humming-compile",
      "Configure and lower matmuls to llvm and nvvm (stage 1 to 4)",
      buildCompilePipeline);
}
