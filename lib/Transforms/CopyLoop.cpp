//===- CopyLoop.cpp - The K loop of a tile program --------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyLoop.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

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
        !isa<LoadWeightsOp, LoadPlainWeightsOp, LoadActivationsOp, LoadScalesOp,
             LoadTokenScalesOp, WarpgroupMmaOp, WarpgroupMmaTilesOp>(user))
      return user->emitOpError("expected the copied tile to be read by "
                               "fragment loads only, and filled by one copy");
  }
  return success();
}

FailureOr<CopyLoop> CopyLoop::match(scf::ForOp loop) {
  if (!loop.getInductionVar().getType().isInteger(32) ||
      !matchPattern(loop.getStep(), m_One()))
    return loop.emitOpError("expected a K loop over i32 in steps of one");
  CopyLoop result;
  result.loop = loop;
  result.tiles = dyn_cast<scf::ForOp>(loop->getParentOp());
  Operation *outermost = result.tiles ? result.tiles : loop;
  for (Operation *op = outermost->getPrevNode(); op && !result.wait;
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

CopyTileOp CopyLoop::cloneFor(OpBuilder &builder, CopyTileOp copy, Value trip,
                              IRMapping &mapping) {
  mapping.map(loop.getInductionVar(), trip);
  // Operands computed inside the loop depend on the trip through pure ops only.
  std::function<void(Value)> prepare = [&](Value v) {
    Operation *op = v.getDefiningOp();
    if (!op || mapping.contains(v) || op->getBlock() != loop.getBody())
      return;
    for (Value operand : op->getOperands())
      prepare(operand);
    builder.clone(*op, mapping);
  };
  for (Value operand : copy->getOperands())
    prepare(operand);
  return cast<CopyTileOp>(builder.clone(*copy, mapping));
}

void CopyLoop::stageBuffers(int64_t stages) {
  for (CopyTileOp copy : copies) {
    auto type = cast<MemRefType>(copy.getDest().getType());
    copy.getDest().setType(MemRefType::get({stages, type.getDimSize(0)},
                                           type.getElementType(), AffineMap(),
                                           type.getMemorySpace()));
  }
}

void CopyLoop::readStage(Value stage) {
  SmallPtrSet<Value, 4> buffers;
  for (CopyTileOp copy : copies)
    buffers.insert(copy.getDest());
  loop.walk([&](Operation *op) {
    TypeSwitch<Operation *>(op)
        .Case<LoadWeightsOp, LoadPlainWeightsOp, LoadActivationsOp,
              LoadScalesOp, LoadTokenScalesOp, WarpgroupMmaOp>([&](auto load) {
          if (buffers.contains(load.getTile()))
            load.getStageMutable().assign(stage);
        })
        .Case([&](WarpgroupMmaTilesOp mma) {
          if (buffers.contains(mma.getA()))
            mma.getStageMutable().assign(stage);
        });
  });
}

void humming::addIterArgs(OpBuilder &builder, scf::ForOp &loop,
                          ArrayRef<Value> counters) {
  scf::ForOp old = loop;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(old);
  SmallVector<Value> init(old.getInitArgs());
  init.append(counters.begin(), counters.end());
  loop = scf::ForOp::create(builder, old.getLoc(), old.getLowerBound(),
                            old.getUpperBound(), old.getStep(), init);
  loop->setDiscardableAttrs(old->getDiscardableAttrDictionary());
  Block *body = loop.getBody();
  SmallVector<Value> arguments(body->getArguments().drop_back(counters.size()));
  for (auto [from, to] : llvm::zip(old.getBody()->getArguments(), arguments))
    from.replaceAllUsesWith(to);
  body->getOperations().splice(body->end(), old.getBody()->getOperations());
  old->replaceAllUsesWith(loop.getResults().take_front(old.getNumResults()));
  old->erase();
}

SmallVector<scf::ForOp> humming::findCopyLoops(gpu::GPUFuncOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) {
    if (!loop.getBody()->getOps<CopyTileOp>().empty())
      loops.push_back(loop);
  });
  return loops;
}
