//===- PipelineCopies.cpp - Overlap copies with the K loop ------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tile program copies, waits, computes, waits. This pass gives every tile
// `stages` buffers and issues the copy of trip i + stages - 1 in trip i.
//
// With cp.async (S stages), the buffer of trip i is i mod S:
//
//   copies of trips 0 .. S-2, one group each
//   for i:   wait until S-2 groups are pending     trip i has landed (this
//   thread)
//            barrier                               ... for all threads; and all
//            have
//                                                  left trip i-1, whose buffer
//                                                  is free
//            copies of trip i+S-1; close the group
//            compute trip i
//   wait for all                                   the buffers' memory is
//   reused
//
// With an asynchronous MMA (wgmma) each thread makes its copies visible to the
// async proxy between the wait and the barrier. All MMAs of a trip have been
// waited for at its end, so the buffer of trip i-1 is free behind the barrier
// of trip i.
//
// A group is closed in every trip, even when nothing is left to copy (all cells
// of such a tile are out of bounds, so nothing is read), so that the count of
// pending groups is the same in every trip.
//
// Without (S = 2), the loads of trip i+1 go to registers before trip i is
// computed and to the other buffer after it:
//
//   fetch and put trip 0; barrier
//   for i:   fetch trip i+1; compute trip i; put into the other buffer; barrier
//
//===----------------------------------------------------------------------===//

#include "CopyLoop.h"
#include "Humming/Transforms/Passes.h"
#include "Humming/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#define DEBUG_TYPE "hquant-pipeline-copies"

namespace humming {
#define GEN_PASS_DEF_PIPELINECOPIESPASS
#include "Humming/Transforms/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

class Pipeliner {
public:
  Pipeliner(CopyLoop parts, int64_t stages, bool async)
      : parts(parts), stages(stages), async(async), b(parts.loop) {}

  void run();

private:
  Value constant(int64_t v) {
    return arith::ConstantIntOp::create(b, loc(), v, 32);
  }
  Location loc() { return parts.loop.getLoc(); }

  void issueAsync(Value trip, Value stage,
                  function_ref<bool(CopyTileOp)> wanted);
  void createPrologue(Value first, int64_t distance);
  SmallVector<FetchTileOp> fetch(Value trip);
  void put(MutableArrayRef<FetchTileOp> fetched, Value stage);
  Value next(Value stage);

  CopyLoop parts;
  int64_t stages;
  bool async;
  OpBuilder b;
};

void Pipeliner::issueAsync(Value trip, Value stage,
                           function_ref<bool(CopyTileOp)> wanted) {
  IRMapping mapping;
  for (CopyTileOp copy : parts.copies) {
    if (!wanted(copy))
      continue;
    CopyTileOp clone = parts.cloneFor(b, copy, trip, mapping);
    clone.getStageMutable().assign(stage);
    clone.setAsync(true);
  }
}

SmallVector<FetchTileOp> Pipeliner::fetch(Value trip) {
  IRMapping mapping;
  SmallVector<FetchTileOp> result;
  for (CopyTileOp copy : parts.copies) {
    CopyTileOp clone = parts.cloneFor(b, copy, trip, mapping);
    auto type =
        VectorType::get({clone.getChunksPerThread(), 4}, b.getI32Type());
    result.push_back(FetchTileOp::create(
        b, clone.getLoc(), type, clone.getSource(), clone.getRow(),
        clone.getColumn(), clone.getRowBound(), clone.getColumnBound(),
        clone.getStride(), clone.getCellBytes(), clone.getTileRows(),
        clone.getTileColumns(), clone.getGranule(), clone.getThreads()));
    clone.erase();
  }
  return result;
}

void Pipeliner::put(MutableArrayRef<FetchTileOp> fetched, Value stage) {
  for (auto [copy, chunks] : llvm::zip(parts.copies, fetched))
    PutTileOp::create(b, copy.getLoc(), chunks.getChunks(), copy.getDest(),
                      stage, copy.getCellBytes(), copy.getTileRows(),
                      copy.getTileColumns(), copy.getThreads(),
                      copy.getSwizzle());
}

Value Pipeliner::next(Value stage) {
  Value one = arith::AddIOp::create(b, loc(), stage, constant(1));
  if (stages == 2)
    return arith::XOrIOp::create(b, loc(), stage, constant(1));
  Value wrap = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::eq, one,
                                     constant(stages));
  return arith::SelectOp::create(b, loc(), wrap, constant(0), one);
}

/// The copies of the first trips. Independent ones go before a grid_wait that
/// stands before the loop; they belong to the first group.
void Pipeliner::createPrologue(Value first, int64_t distance) {
  auto issue = [&](int64_t s, function_ref<bool(CopyTileOp)> wanted) {
    Value trip = arith::AddIOp::create(b, loc(), first, constant(s));
    issueAsync(trip, constant(s), wanted);
  };
  GridWaitOp wait = parts.wait;
  if (wait) {
    for (int64_t s = 0; s < distance; ++s)
      issue(s, [](CopyTileOp copy) { return copy.getIndependent(); });
    wait->moveBefore(parts.loop);
  }
  for (int64_t s = 0; s < distance; ++s) {
    issue(s, [&](CopyTileOp copy) { return !wait || !copy.getIndependent(); });
    CommitCopiesOp::create(b, loc());
  }
}

void Pipeliner::run() {
  parts.stageBuffers(stages);
  Value first = parts.loop.getLowerBound();
  int64_t distance = stages - 1;
  SmallVector<Value> counters;
  if (async) {
    createPrologue(first, distance);
    counters = {constant(0), constant(distance)}; // read, write
  } else {
    SmallVector<FetchTileOp> fetched = fetch(first);
    put(fetched, constant(0));
    gpu::BarrierOp::create(b, loc());
    counters = {constant(0)};
  }

  addIterArgs(b, parts.loop, counters);
  scf::ForOp loop = parts.loop;
  Value read = loop.getBody()->getArgument(loop.getBody()->getNumArguments() -
                                           counters.size());
  parts.readStage(read);

  Operation *yield = loop.getBody()->getTerminator();
  if (async) {
    Value write = loop.getBody()->getArguments().back();
    b.setInsertionPoint(parts.fence ? parts.fence.getOperation()
                                    : parts.afterCopies.getOperation());
    WaitCopiesOp::create(b, loc(), distance - 1);
    b.setInsertionPointAfter(parts.afterCopies);
    issueAsync(arith::AddIOp::create(b, loc(), loop.getInductionVar(),
                                     constant(distance)),
               write, [](CopyTileOp) { return true; });
    CommitCopiesOp::create(b, loc());
    parts.afterCompute.erase();
    b.setInsertionPoint(yield);
    yield->insertOperands(yield->getNumOperands(), {next(read), next(write)});
    b.setInsertionPointAfter(loop);
    WaitCopiesOp::create(b, loc(), 0);
  } else {
    b.setInsertionPoint(parts.afterCopies);
    SmallVector<FetchTileOp> fetched = fetch(
        arith::AddIOp::create(b, loc(), loop.getInductionVar(), constant(1)));
    parts.afterCopies.erase();
    b.setInsertionPoint(parts.afterCompute);
    Value other = next(read);
    put(fetched, other);
    if (parts.fence)
      parts.fence->moveBefore(parts.afterCompute);
    yield->insertOperands(yield->getNumOperands(), other);
  }
  for (CopyTileOp copy : parts.copies)
    copy.erase();
}

struct PipelineCopiesPass
    : humming::impl::PipelineCopiesPassBase<PipelineCopiesPass> {
  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    SmallVector<scf::ForOp> loops = findCopyLoops(kernel);
    if (loops.empty())
      return;
    auto config =
        kernel->getAttrOfType<LoweringConfigAttr>("hquant.lowering_config");
    if (!config) {
      kernel.emitOpError("expected the attribute hquant.lowering_config, which "
                         "gives the number of stages");
      return signalPassFailure();
    }
    // These have producers of their own (hquant-specialize-warps).
    if (config.getConfig().usesRing())
      return;
    for (scf::ForOp loop : loops)
      if (failed(pipelineCopies(loop, config.getConfig().stages,
                                config.getConfig().copy != CopyKind::Sync)))
        return signalPassFailure();
  }
};

} // namespace

LogicalResult humming::pipelineCopies(scf::ForOp loop, int64_t stages,
                                      bool async) {
  FailureOr<CopyLoop> parts = CopyLoop::match(loop);
  if (failed(parts))
    return failure();
  if (stages < 2 || stages > (async ? 8 : 2))
    return loop.emitOpError("expected ")
           << (async ? "2 to 8 stages"
                     : "2 stages for copies through "
                       "registers")
           << ", got " << stages;
  Pipeliner(*parts, stages, async).run();
  return success();
}
