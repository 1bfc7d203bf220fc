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

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Transforms/Passes.h"
#include "Humming/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

#define DEBUG_TYPE "hquant-pipeline-copies"

namespace humming {
#define GEN_PASS_DEF_PIPELINECOPIESPASS
#include "Humming/Transforms/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

/// One K loop and its parts.
struct CopyLoop {
  scf::ForOp loop;
  SmallVector<CopyTileOp> copies;
  gpu::BarrierOp afterCopies, afterCompute;
  FenceAsyncOp fence; ///< null without an asynchronous MMA
  GridWaitOp wait;    ///< in the loop's block, before it; or null

  /// Checks that `copy` can be made for another trip of `loop`: it depends on
  /// the trip through pure operations only, and its tile is a buffer of the
  /// kernel that is its own.
  static LogicalResult checkCopy(CopyTileOp copy, scf::ForOp loop) {
    SmallVector<Value> work(copy->getOperands());
    SmallPtrSet<Operation *, 8> seen;
    while (!work.empty()) {
      Value value = work.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op) {
        if (value.getParentBlock() == loop.getBody() &&
            value != loop.getInductionVar())
          return copy.emitOpError("expected operands that depend on the trip "
                                  "alone, got a value carried by the K loop");
        continue;
      }
      if (op->getBlock() != loop.getBody() || !seen.insert(op).second)
        continue;
      if (!isMemoryEffectFree(op) || op->getNumRegions() != 0) {
        auto diag = copy.emitOpError("expected operands that depend on the "
                                     "trip through pure operations");
        diag.attachNote(op->getLoc()) << "this is none";
        return diag;
      }
      work.append(op->operand_begin(), op->operand_end());
    }
    auto kernel = loop->getParentOfType<gpu::GPUFuncOp>();
    if (!kernel ||
        !llvm::is_contained(kernel.getWorkgroupAttributions(), copy.getDest()))
      return copy.emitOpError("expected a tile that is a workgroup buffer of "
                              "the kernel");
    for (Operation *user : copy.getDest().getUsers()) {
      // The stage is chosen per trip, so a loop's tile is its own.
      if (!loop->isProperAncestor(user))
        return user->emitOpError("expected the copied tile to be used inside "
                                 "the K loop only");
      if (user != copy &&
          !isa<LoadWeightsOp, LoadPlainWeightsOp, LoadActivationsOp,
               LoadScalesOp, LoadTokenScalesOp, WarpgroupMmaOp,
               WarpgroupMmaTilesOp>(user))
        return user->emitOpError("expected the copied tile to be read by "
                                 "fragment loads only, and filled by one copy");
    }
    return success();
  }

  /// Recognises `copies, barrier, compute, barrier, yield`.
  static FailureOr<CopyLoop> match(scf::ForOp loop) {
    if (!loop.getInductionVar().getType().isInteger(32) ||
        !matchPattern(loop.getStep(), m_One()))
      return loop.emitOpError("expected a K loop over i32 in steps of one");
    CopyLoop result;
    result.loop = loop;
    for (Operation *op = loop->getPrevNode(); op && !result.wait;
         op = op->getPrevNode())
      result.wait = dyn_cast<GridWaitOp>(op);
    for (Operation &op : *loop.getBody()) {
      if (auto copy = dyn_cast<CopyTileOp>(op)) {
        if (result.afterCopies)
          return copy.emitOpError(
              "expected all copies before the loop's first barrier");
        if (copy.getStage() || copy.getAsync())
          return copy.emitOpError("expected a copy without stage and async; is "
                                  "the loop pipelined already?");
        result.copies.push_back(copy);
      } else if (auto fence = dyn_cast<FenceAsyncOp>(op)) {
        result.fence = fence;
      } else if (auto barrier = dyn_cast<gpu::BarrierOp>(op)) {
        if (!result.afterCopies)
          result.afterCopies = barrier;
        else
          result.afterCompute = barrier;
      }
    }
    for (CopyTileOp copy : result.copies)
      if (failed(checkCopy(copy, loop)))
        return failure();
    if (!result.afterCompute ||
        result.afterCompute->getNextNode() != loop.getBody()->getTerminator())
      return loop.emitOpError("expected copies, a barrier, the computation and "
                              "a barrier before the end of the K loop");
    return result;
  }
};

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

  /// Clones copy `copy` (and the arithmetic it needs) for trip `trip`.
  CopyTileOp cloneFor(CopyTileOp copy, Value trip, IRMapping &mapping);
  void issueAsync(Value trip, Value stage,
                  function_ref<bool(CopyTileOp)> wanted);
  void createPrologue(Value first, int64_t distance);
  SmallVector<FetchTileOp> fetch(Value trip);
  void put(MutableArrayRef<FetchTileOp> fetched, Value stage);
  void stageBuffers();
  scf::ForOp rebuildLoop(ArrayRef<Value> counters);
  Value next(Value stage);

  CopyLoop parts;
  int64_t stages;
  bool async;
  OpBuilder b;
};

CopyTileOp Pipeliner::cloneFor(CopyTileOp copy, Value trip,
                               IRMapping &mapping) {
  mapping.map(parts.loop.getInductionVar(), trip);
  // Operands computed inside the loop depend on the trip through pure ops only.
  std::function<void(Value)> prepare = [&](Value v) {
    Operation *op = v.getDefiningOp();
    if (!op || mapping.contains(v) || op->getBlock() != parts.loop.getBody())
      return;
    for (Value operand : op->getOperands())
      prepare(operand);
    b.clone(*op, mapping);
  };
  for (Value operand : copy->getOperands())
    prepare(operand);
  return cast<CopyTileOp>(b.clone(*copy, mapping));
}

void Pipeliner::issueAsync(Value trip, Value stage,
                           function_ref<bool(CopyTileOp)> wanted) {
  IRMapping mapping;
  for (CopyTileOp copy : parts.copies) {
    if (!wanted(copy))
      continue;
    CopyTileOp clone = cloneFor(copy, trip, mapping);
    clone.getStageMutable().assign(stage);
    clone.setAsync(true);
  }
}

SmallVector<FetchTileOp> Pipeliner::fetch(Value trip) {
  IRMapping mapping;
  SmallVector<FetchTileOp> result;
  for (CopyTileOp copy : parts.copies) {
    CopyTileOp clone = cloneFor(copy, trip, mapping);
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

/// Multiplies the buffers that are copied into.
void Pipeliner::stageBuffers() {
  for (CopyTileOp copy : parts.copies) {
    auto type = cast<MemRefType>(copy.getDest().getType());
    copy.getDest().setType(MemRefType::get({stages, type.getDimSize(0)},
                                           type.getElementType(), AffineMap(),
                                           type.getMemorySpace()));
  }
}

/// The loop with `counters` as further iteration arguments, body moved over;
/// the copies and both barriers are still in it.
scf::ForOp Pipeliner::rebuildLoop(ArrayRef<Value> counters) {
  scf::ForOp old = parts.loop;
  SmallVector<Value> init(old.getInitArgs());
  init.append(counters.begin(), counters.end());
  auto loop = scf::ForOp::create(b, loc(), old.getLowerBound(),
                                 old.getUpperBound(), old.getStep(), init);
  loop->setDiscardableAttrs(old->getDiscardableAttrDictionary());
  Block *body = loop.getBody();
  SmallVector<Value> arguments(body->getArguments().drop_back(counters.size()));
  for (auto [from, to] : llvm::zip(old.getBody()->getArguments(), arguments))
    from.replaceAllUsesWith(to);
  body->getOperations().splice(body->end(), old.getBody()->getOperations());
  old->replaceAllUsesWith(loop.getResults().take_front(old.getNumResults()));
  old->erase();
  parts.loop = loop;
  return loop;
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
  stageBuffers();
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

  scf::ForOp loop = rebuildLoop(counters);
  Value read = loop.getBody()->getArgument(loop.getBody()->getNumArguments() -
                                           counters.size());
  // Everything that reads a staged buffer reads the current stage.
  SmallPtrSet<Value, 4> buffers;
  for (CopyTileOp copy : parts.copies)
    buffers.insert(copy.getDest());
  loop.walk([&](Operation *op) {
    TypeSwitch<Operation *>(op)
        .Case<LoadWeightsOp, LoadPlainWeightsOp, LoadActivationsOp,
              LoadScalesOp, LoadTokenScalesOp, WarpgroupMmaOp,
              WarpgroupMmaTilesOp>([&](auto load) {
          if (buffers.contains(load.getTile()))
            load.getStageMutable().assign(read);
        });
  });

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
    SmallVector<scf::ForOp> loops;
    kernel.walk([&](scf::ForOp loop) {
      if (!loop.getBody()->getOps<CopyTileOp>().empty())
        loops.push_back(loop);
    });
    if (loops.empty())
      return;
    auto config =
        kernel->getAttrOfType<LoweringConfigAttr>("hquant.lowering_config");
    if (!config) {
      kernel.emitOpError("expected the attribute hquant.lowering_config, which "
                         "gives the number of stages");
      return signalPassFailure();
    }
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
