//===- CopyLoop.h - The K loop of a tile program ----------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the two ways of overlapping copies with the K loop share: recognising
// its parts, and making a copy for another trip.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_TRANSFORMS_COPYLOOP_H
#define HUMMING_LIB_TRANSFORMS_COPYLOOP_H

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace humming {

/// One K loop and its parts: `copies, [fence,] barrier, compute, barrier`.
struct CopyLoop {
  mlir::scf::ForOp loop;
  llvm::SmallVector<hquant::CopyTileOp> copies;
  mlir::gpu::BarrierOp afterCopies, afterCompute;
  hquant::FenceAsyncOp fence; ///< null without an asynchronous MMA
  hquant::GridWaitOp wait;    ///< in the loop's block, before it; or null
  mlir::scf::ForOp tiles; ///< of a persistent kernel, around `loop`; or null

  /// Recognises the parts of `loop`. Fails with an error where something is
  /// missing or a copy cannot be made for another trip.
  static mlir::FailureOr<CopyLoop> match(mlir::scf::ForOp loop);

  /// Clones `copy` (and the arithmetic it needs) at `builder` for trip `trip`.
  /// Copies of one trip share `mapping`.
  hquant::CopyTileOp cloneFor(mlir::OpBuilder &builder, hquant::CopyTileOp copy,
                              mlir::Value trip, mlir::IRMapping &mapping);

  /// Gives every copied buffer `stages` stages.
  void stageBuffers(int64_t stages);
  /// Makes everything in the loop that reads a staged buffer read `stage`.
  void readStage(mlir::Value stage);
};

/// Replaces `loop` by one with `init` as further iteration arguments; the body
/// moves over, its terminator does not yield them yet.
void addIterArgs(mlir::OpBuilder &builder, mlir::scf::ForOp &loop,
                 llvm::ArrayRef<mlir::Value> init);

/// Loops of `kernel` that copy tiles.
llvm::SmallVector<mlir::scf::ForOp> findCopyLoops(mlir::gpu::GPUFuncOp kernel);

} // namespace humming

#endif // HUMMING_LIB_TRANSFORMS_COPYLOOP_H
