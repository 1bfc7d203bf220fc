//===- SpecializeWarps.cpp - Producer and consumer warps --------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tile program copies, waits, computes, waits, by all threads. This pass
// gives the copies to a warpgroup of their own, which runs up to S stages ahead
// of the others, and the waiting to a ring of barriers (mbarriers):
//
//   ring_init; barrier
//   if thread >= consumers:                    the producers
//     for i:   ring_acquire [i mod S]          the consumers have left the
//     stage
//              copies of trip i
//              ring_commit [i mod S]           counts them when they land
//   else:                                      the consumers
//     for i:   ring_wait [i mod S]
//              compute trip i
//              ring_release [i mod S]
//     epilogue
//
// With producers=0 no warp only copies: the first consumer warp fills the stage
// of trip i + S - 2 in trip i (refill), and stages 0 to S - 3 before the loop.
//
// With multicast two blocks of a cluster fill a tile's stage together. A stage
// is acquired when it is empty in both, so consumers release it to both.
//
// With copy=tensor the producers are one warp, whose first thread copies
// swizzled tiles by tensor maps; with copy=bulk a warpgroup, which copies them
// by cp.async.
//
// With wgmma the consumers load and dequantize the first step of the next trip
// while the last MMA runs (rotate). They, not the producers, make cp.async
// copies visible to the async proxy: the fence waits for all copies of its
// thread.
//
// Where both operands of wgmma lie in shared memory there is nothing to load or
// dequantize, and no register of A that ptxas could take too early: the MMAs of
// a trip stay in flight into the next one (overlapTrips).
//
//     for i:   ring_wait [i mod S]
//              MMAs of trip i
//              wait for those of trip i - 1; ring_release [(i - 1) mod S]
//     wait for all
//
// Two consumer warpgroups that scale partial sums of such MMAs take turns with
// the tensor cores (start_turns in HQuantTileOps.td).
//
// In a persistent kernel both have a loop over tiles around theirs, and stage
// and phase run on from tile to tile: the producers fill stages for the next
// tile while the consumers store the one before.
//
// No consumer waits for another one, and none issues a copy. Both phases of a
// ring flip when it wraps; the producers' first round finds every stage free.
//
// Kernels that start early (grid_wait) copy what no other kernel writes into
// all S stages first, then wait, then copy the rest of these stages:
//
//     for i < S:    independent copies of trip i
//     grid_wait
//     for i < S:    the other copies of trip i; ring_commit
//     for i >= S:   as above
//
//===----------------------------------------------------------------------===//

#include "CopyLoop.h"
#include "Humming/Target/TargetInfo.h"
#include "Humming/Transforms/Passes.h"
#include "Humming/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#define DEBUG_TYPE "hquant-specialize-warps"

namespace humming {
#define GEN_PASS_DEF_SPECIALIZEWARPSPASS
#include "Humming/Transforms/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

/// Bytes of a stage's two barriers.
constexpr int64_t kRingStageBytes = 16;
/// Rows up to this many bytes are short (measured on an H200: nvfp4 scales of
/// 64 features, rows of 64 bytes: a stage of 32 rows by one warp's bulk copies
/// takes 0.6 us).
constexpr int64_t kShortRow = 256;
constexpr int64_t kFewRows = 8;

static bool multipliesAsync(scf::ForOp loop) {
  return llvm::any_of(*loop.getBody(), [](Operation &op) {
    return isa<WarpgroupMmaOp, WarpgroupMmaTilesOp>(op);
  });
}

class WarpSpecializer {
public:
  WarpSpecializer(CopyLoop parts, const KernelConfig &config)
      : parts(parts), config(config), b(parts.loop), loc(parts.loop.getLoc()),
        kernel(parts.loop->getParentOfType<gpu::GPUFuncOp>()) {}

  void run();

private:
  Value constant(int64_t v) {
    return arith::ConstantIntOp::create(b, loc, v, 32);
  }
  /// Blocks that copy together.
  int64_t blocks() const { return config.blocksOfMulticast(); }
  /// The stage and the phase after `stage` and `phase`.
  std::pair<Value, Value> next(Value stage, Value phase);

  void createRing();
  void createProducer();
  /// The producers' loop over trips, from `stage` and `phase` on.
  std::pair<Value, Value> createProducerTrips(Value stage, Value phase);
  /// Copies of trip `trip` that are `wanted`, into `stage`.
  void copyTrip(Value trip, Value stage, function_ref<bool(CopyTileOp)> wanted);
  /// Whether the copy is counted by the ring: by tensor map or bulk.
  bool isBulk(CopyTileOp copy) const;
  bool isBulk() const {
    return llvm::all_of(parts.copies,
                        [&](CopyTileOp copy) { return isBulk(copy); });
  }
  void commit(Value stage) {
    RingCommitOp::create(b, loc, ring, stage, config.firstCopyThread(),
                         isBulk());
  }
  /// A loop over trips [from, to) that hands `body` the trip, the stage and the
  /// phase; returns the stage and the phase after it.
  std::pair<Value, Value>
  createTrips(Value from, Value to, Value stage, Value phase,
              function_ref<void(Value, Value, Value)> body);
  void createConsumer();
  /// Of a warp that multiplies too: the copies before the loop, those of a
  /// trip.
  void createFirstCopies();
  void refill(Value stage, Value phase);
  void rotate(Value stage, Value phase, Value firstStage, Value firstPhase);
  /// The K loop's wait for MMAs, if these may stay in flight over a trip.
  WarpgroupWaitOp findOverlap();
  void overlapTrips(WarpgroupWaitOp wait, Value previous);
  void takeTurns();
  void outlivePeer();

  CopyLoop parts;
  KernelConfig config;
  OpBuilder b;
  Location loc;
  gpu::GPUFuncOp kernel;
  Value ring;
  Value isCopier;   ///< with producers=0: this warp copies too
  IRMapping ofTile; ///< the producers' values of what depends on the tile
};

std::pair<Value, Value> WarpSpecializer::next(Value stage, Value phase) {
  Value one = arith::AddIOp::create(b, loc, stage, constant(1));
  Value wraps = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, one,
                                      constant(config.stages));
  Value flipped = arith::XOrIOp::create(b, loc, phase, constant(1));
  return {arith::SelectOp::create(b, loc, wraps, constant(0), one),
          arith::SelectOp::create(b, loc, wraps, flipped, phase)};
}

/// The ring becomes the last buffer but one: the last one, scratch, shares the
/// memory of the others.
void WarpSpecializer::createRing() {
  BlockArgument scratch = kernel.getWorkgroupAttributions().back();
  auto scratchType = cast<MemRefType>(scratch.getType());
  BlockArgument last = kernel.addWorkgroupAttribution(scratchType, loc);
  scratch.replaceAllUsesWith(last);
  scratch.setType(MemRefType::get({config.stages, kRingStageBytes},
                                  b.getI8Type(), AffineMap(),
                                  scratchType.getMemorySpace()));
  ring = scratch;
}

bool WarpSpecializer::isBulk(CopyTileOp copy) const {
  if (copy.getMap())
    return true;
  // Rows that lie as they are copied are one bulk copy each, but many short
  // ones cost more to start than to copy in pieces of 16 bytes.
  bool isShort = copy.getTileColumns() * copy.getCellBytes() <= kShortRow &&
                 copy.getTileRows() > kFewRows;
  return !copy.getSwizzle() && !isShort;
}

void WarpSpecializer::copyTrip(Value trip, Value stage,
                               function_ref<bool(CopyTileOp)> wanted) {
  IRMapping mapping = ofTile;
  for (CopyTileOp copy : parts.copies) {
    if (!wanted(copy))
      continue;
    CopyTileOp clone = parts.cloneFor(b, copy, trip, mapping);
    clone.getStageMutable().assign(stage);
    clone.setThreads(config.copyThreads());
    clone.setFirstThread(config.firstCopyThread());
    clone.setAsync(true);
    if (isBulk(copy))
      clone.getRingMutable().assign(ring);
  }
}

std::pair<Value, Value>
WarpSpecializer::createTrips(Value from, Value to, Value stage, Value phase,
                             function_ref<void(Value, Value, Value)> body) {
  auto loop = scf::ForOp::create(b, loc, from, to, constant(1),
                                 ValueRange{stage, phase});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value s = loop.getRegionIterArg(0), p = loop.getRegionIterArg(1);
  body(loop.getInductionVar(), s, p);
  auto [nextStage, nextPhase] = next(s, p);
  scf::YieldOp::create(b, loc, ValueRange{nextStage, nextPhase});
  return {loop.getResult(0), loop.getResult(1)};
}

void WarpSpecializer::createProducer() {
  Value zero = constant(0), one = constant(1);
  scf::ForOp tiles = parts.tiles;
  if (!tiles) {
    createProducerTrips(zero, one);
  } else {
    auto loop =
        scf::ForOp::create(b, loc, tiles.getLowerBound(), tiles.getUpperBound(),
                           tiles.getStep(), ValueRange{zero, one});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    ofTile.map(tiles.getInductionVar(), loop.getInductionVar());
    // What the copies need of the tile's coordinates.
    for (Operation &op : *tiles.getBody()) {
      if (&op == parts.loop)
        break;
      if (isMemoryEffectFree(&op) && op.getNumRegions() == 0)
        b.clone(op, ofTile);
    }
    auto [stage, phase] =
        createProducerTrips(loop.getRegionIterArg(0), loop.getRegionIterArg(1));
    scf::YieldOp::create(b, loc, ValueRange{stage, phase});
  }
  // No thread ends with a copy of its own in flight.
  WaitCopiesOp::create(b, loc, 0);
}

std::pair<Value, Value> WarpSpecializer::createProducerTrips(Value stage,
                                                             Value phase) {
  Value first = parts.loop.getLowerBound(), last = parts.loop.getUpperBound();
  auto all = [](CopyTileOp) { return true; };
  auto fill = [&](Value trip, Value stage, Value phase) {
    RingAcquireOp::create(b, loc, ring, stage, phase, blocks());
    copyTrip(trip, stage, all);
    commit(stage);
  };
  if (!parts.wait)
    return createTrips(first, last, stage, phase, fill);
  // The first round, which waits for no consumer.
  Value round = arith::MinUIOp::create(
      b, loc, last,
      arith::AddIOp::create(b, loc, first, constant(config.stages)));
  createTrips(first, round, stage, phase, [&](Value trip, Value s, Value) {
    copyTrip(trip, s, [](CopyTileOp c) { return c.getIndependent(); });
  });
  GridWaitOp::create(b, loc);
  auto [nextStage, nextPhase] =
      createTrips(first, round, stage, phase, [&](Value trip, Value s, Value) {
        copyTrip(trip, s, [](CopyTileOp c) { return !c.getIndependent(); });
        commit(s);
      });
  return createTrips(round, last, nextStage, nextPhase, fill);
}

/// The trips whose stages no trip before has used, but for two (see refill).
void WarpSpecializer::createFirstCopies() {
  Value first = parts.loop.getLowerBound(), last = parts.loop.getUpperBound();
  auto branch = scf::IfOp::create(b, loc, isCopier, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value round = arith::MinUIOp::create(
      b, loc, last,
      arith::AddIOp::create(b, loc, first, constant(config.stages - 2)));
  Value zero = constant(0), one = constant(1);
  auto copy = [&](bool independent, bool commits) {
    createTrips(first, round, zero, one, [&](Value trip, Value s, Value) {
      copyTrip(trip, s, [&](CopyTileOp c) {
        return !parts.wait || c.getIndependent() == independent;
      });
      if (commits)
        commit(s);
    });
  };
  if (parts.wait) {
    copy(/*independent=*/true, /*commits=*/false);
    GridWaitOp::create(b, loc);
  }
  copy(/*independent=*/false, /*commits=*/true);
}

/// In trip i, copies those of trip i + S - 2 into the stage of trip i - 2,
/// which the other warps have left unless they are more than a trip behind.
/// While the trip's last MMAs run, if they are waited for: then there is time.
void WarpSpecializer::refill(Value stage, Value phase) {
  Block *body = parts.loop.getBody();
  b.setInsertionPointToStart(body);
  for (WarpgroupWaitOp wait : body->getOps<WarpgroupWaitOp>())
    if (wait.getPending() == 0)
      b.setInsertionPoint(wait);
  Value two = constant(2), distance = constant(config.stages - 2);
  Value trip =
      arith::AddIOp::create(b, loc, parts.loop.getInductionVar(), distance);
  Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, trip,
                                       parts.loop.getUpperBound());
  Value isSameRound =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, stage, two);
  Value target = arith::SelectOp::create(
      b, loc, isSameRound, arith::AddIOp::create(b, loc, stage, distance),
      arith::SubIOp::create(b, loc, stage, two));
  Value before = arith::SelectOp::create(
      b, loc, isSameRound, arith::XOrIOp::create(b, loc, phase, constant(1)),
      phase);
  auto branch =
      scf::IfOp::create(b, loc, arith::AndIOp::create(b, loc, isCopier, exists),
                        /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  RingAcquireOp::create(b, loc, ring, target, before, blocks());
  copyTrip(trip, target, [](CopyTileOp) { return true; });
  commit(target);
}

/// Moves the beginning of the computation, up to the first asynchronous MMA,
/// into the trip before, where the last MMA runs: between the two, the tensor
/// cores wait for nothing but the issue of the next.
///
///   ring_wait; head                       head = loads and dequantization
///   for i:   mma ...; last mma
///            ring_wait; head of trip i + 1
///            wait for the last mma; ring_release
void WarpSpecializer::rotate(Value stage, Value phase, Value firstStage,
                             Value firstPhase) {
  Block *body = parts.loop.getBody();
  const bool fences = bool(parts.fence);
  if (fences)
    parts.fence.erase();
  // The head: all before the first MMA, and what the rest uses of it.
  SmallVector<Operation *> head;
  bool multiplied = false;
  WarpgroupWaitOp lastWait;
  for (Operation &op : *body) {
    if (isa<WarpgroupMmaOp, WarpgroupMmaTilesOp>(op))
      multiplied = true;
    else if (auto wait = dyn_cast<WarpgroupWaitOp>(op))
      lastWait = wait;
    else if (!multiplied &&
             isa<LoadWeightsOp, LoadScalesOp, LoadTokenScalesOp, DequantOp>(op))
      head.push_back(&op);
  }
  SmallPtrSet<Operation *, 8> inHead(head.begin(), head.end());
  SmallVector<Value> carried;
  for (Operation *op : head)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !inHead.contains(user); }))
        carried.push_back(result);
  // Cloned to where the stage is another; everything else it needs is the same
  // in every trip.
  auto cloneHead = [&](Value trip, Value atStage, Value atPhase) {
    RingWaitOp::create(b, loc, ring, atStage, atPhase);
    if (fences)
      FenceAsyncOp::create(b, loc);
    IRMapping mapping;
    mapping.map(stage, atStage);
    mapping.map(parts.loop.getInductionVar(), trip);
    std::function<void(Value)> prepare = [&](Value v) {
      Operation *op = v.getDefiningOp();
      if (!op || op->getBlock() != body || mapping.contains(v))
        return;
      for (Value operand : op->getOperands())
        prepare(operand);
      b.clone(*op, mapping);
    };
    SmallVector<Value> results;
    for (Value v : carried) {
      prepare(v);
      results.push_back(mapping.lookup(v));
    }
    return results;
  };

  // The next trip's head before the last wait. The last trip takes its own once
  // more: its stage is full, and a branch would keep ptxas from overlapping.
  b.setInsertionPoint(lastWait);
  Value nextTrip =
      arith::AddIOp::create(b, loc, parts.loop.getInductionVar(), constant(1));
  Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                     nextTrip, parts.loop.getUpperBound());
  auto [nextStage, nextPhase] = next(stage, phase);
  SmallVector<Value> nextHead =
      cloneHead(arith::SelectOp::create(b, loc, more, nextTrip,
                                        parts.loop.getInductionVar()),
                arith::SelectOp::create(b, loc, more, nextStage, stage),
                arith::SelectOp::create(b, loc, more, nextPhase, phase));

  // The first trip's head before the loop, if there is a first trip.
  b.setInsertionPoint(parts.loop);
  Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                    parts.loop.getLowerBound(),
                                    parts.loop.getUpperBound());
  auto begin = scf::IfOp::create(
      b, loc, any,
      [&](OpBuilder &builder, Location) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(builder.getInsertionBlock(),
                            builder.getInsertionPoint());
        SmallVector<Value> values =
            cloneHead(parts.loop.getLowerBound(), firstStage, firstPhase);
        scf::YieldOp::create(b, loc, values);
      },
      [&](OpBuilder &builder, Location) {
        SmallVector<Value> zeros;
        for (Value v : carried)
          zeros.push_back(arith::ConstantOp::create(
              builder, loc, cast<TypedAttr>(builder.getZeroAttr(v.getType()))));
        scf::YieldOp::create(builder, loc, zeros);
      });

  // Carry them.
  addIterArgs(b, parts.loop, SmallVector<Value>(begin.getResults()));
  body = parts.loop.getBody();
  auto arguments = body->getArguments().take_back(carried.size());
  for (auto [value, argument] : llvm::zip(carried, arguments))
    value.replaceUsesWithIf(argument, [&](OpOperand &use) {
      return !inHead.contains(use.getOwner());
    });
  Operation *yield = body->getTerminator();
  yield->insertOperands(yield->getNumOperands(), nextHead);
  for (Operation *op : llvm::reverse(head))
    op->erase();
}

/// MMAs from shared memory whose sums nothing but the next trip takes.
WarpgroupWaitOp WarpSpecializer::findOverlap() {
  WarpgroupWaitOp result;
  for (Operation &op : *parts.loop.getBody()) {
    if (isa<WarpgroupMmaOp, MmaOp, AccumulateOp, ScaleAccumulateOp>(op))
      return {};
    if (auto wait = dyn_cast<WarpgroupWaitOp>(op)) {
      if (result)
        return {};
      result = wait;
    }
  }
  if (!result || !llvm::all_of(result->getUsers(), [&](Operation *user) {
        return user == parts.loop.getBody()->getTerminator();
      }))
    return {};
  return result;
}

/// Makes `wait` one for the trip before, whose stage is `previous`, and waits
/// for the last trip after the loop.
void WarpSpecializer::overlapTrips(WarpgroupWaitOp wait, Value previous) {
  Block *body = parts.loop.getBody();
  wait.setPending(llvm::range_size(body->getOps<WarpgroupMmaTilesOp>()));
  b.setInsertionPoint(body->getTerminator());
  Value isLater = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                        parts.loop.getInductionVar(),
                                        parts.loop.getLowerBound());
  scf::IfOp::create(b, loc, isLater, [&](OpBuilder &builder, Location) {
    RingReleaseOp::create(builder, loc, ring, previous, blocks());
    scf::YieldOp::create(builder, loc);
  });
  auto yield = cast<scf::YieldOp>(body->getTerminator());
  for (auto [value, result] :
       llvm::zip(yield.getOperands(), parts.loop.getResults())) {
    if (value != wait.getResult())
      continue;
    b.setInsertionPointAfter(parts.loop);
    auto last = WarpgroupWaitOp::create(b, loc, result.getType(), result,
                                        /*pending=*/0);
    result.replaceAllUsesExcept(last.getResult(), last);
    b.setInsertionPointAfter(last);
  }
  if (!parts.tiles)
    return;
  // The next tile's trips count on this stage too.
  Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                    parts.loop.getLowerBound(),
                                    parts.loop.getUpperBound());
  Value lastStage = parts.loop.getResults().back();
  scf::IfOp::create(b, loc, any, [&](OpBuilder &builder, Location) {
    RingReleaseOp::create(builder, loc, ring, lastStage, blocks());
    scf::YieldOp::create(builder, loc);
  });
}

/// Two warpgroups whose sums are scaled while nothing multiplies take turns
/// with the tensor cores. Weights that are dequantized between MMAs need them
/// too often for that.
void WarpSpecializer::takeTurns() {
  Block *body = parts.loop.getBody();
  if (config.numWarps() != 8 || body->getOps<WarpgroupMmaTilesOp>().empty() ||
      body->getOps<ScaleAccumulateOp>().empty())
    return;
  bool isOurs = false;
  for (Operation &op : llvm::make_early_inc_range(*body)) {
    b.setInsertionPoint(&op);
    if (isa<WarpgroupMmaTilesOp>(op) && !isOurs) {
      TakeTurnOp::create(b, loc);
      isOurs = true;
    } else if (isa<WarpgroupWaitOp>(op) && isOurs) {
      PassTurnOp::create(b, loc);
      isOurs = false;
    }
  }
  Operation *whole = parts.tiles ? parts.tiles : parts.loop;
  b.setInsertionPoint(whole);
  StartTurnsOp::create(b, loc);
  b.setInsertionPointAfter(whole);
  EndTurnsOp::create(b, loc);
}

/// The other block of a multicast releases stages to this one's barriers: its
/// memory must not end before that. A sum over the cluster's blocks waits for
/// the same.
void WarpSpecializer::outlivePeer() {
  if (blocks() == 1 || config.cluster)
    return;
  b.setInsertionPointAfter(parts.loop);
  NVVM::ClusterArriveOp::create(b, loc, UnitAttr());
  b.setInsertionPoint(parts.loop->getBlock()->getTerminator());
  NVVM::ClusterWaitOp::create(b, loc, UnitAttr());
}

void WarpSpecializer::createConsumer() {
  b.setInsertionPoint(parts.tiles ? parts.tiles : parts.loop);
  if (parts.wait)
    GridWaitOp::create(b, loc);
  Value firstStage = constant(0), firstPhase = constant(0);
  if (parts.tiles) {
    b.setInsertionPoint(parts.tiles);
    addIterArgs(b, parts.tiles, {constant(0), constant(0)});
    auto ofTiles = parts.tiles.getRegionIterArgs().take_back(2);
    firstStage = ofTiles[0];
    firstPhase = ofTiles[1];
  }
  unsigned numResults = parts.loop.getNumResults();
  WarpgroupWaitOp overlap = findOverlap();
  SmallVector<Value> counters = {firstStage, firstPhase};
  if (overlap)
    counters.push_back(firstStage); // of the trip before
  addIterArgs(b, parts.loop, counters);
  Block *body = parts.loop.getBody();
  auto counted = body->getArguments().take_back(counters.size());
  Value stage = counted[0], phase = counted[1];
  parts.readStage(stage);

  Operation *yield = body->getTerminator();
  b.setInsertionPoint(yield);
  if (!overlap)
    RingReleaseOp::create(b, loc, ring, stage, blocks());
  auto [nextStage, nextPhase] = next(stage, phase);
  yield->insertOperands(yield->getNumOperands(), {nextStage, nextPhase});
  if (overlap)
    yield->insertOperands(yield->getNumOperands(), stage);
  // Without dequantization there is nothing to do for the next trip, and its
  // data would be waited for before the sums of this one are scaled.
  bool rotates = !parts.loop.getBody()->getOps<WarpgroupMmaOp>().empty();
  b.setInsertionPoint(parts.fence ? parts.fence.getOperation()
                                  : parts.afterCopies);
  if (!rotates)
    RingWaitOp::create(b, loc, ring, stage, phase);
  if (isCopier) { // no thread ends with a copy of its own in flight
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfter(parts.loop);
    WaitCopiesOp::create(b, loc, 0);
  }
  if (overlap)
    overlapTrips(overlap, counted[2]);
  else
    takeTurns();
  if (isCopier)
    refill(stage, phase);
  parts.afterCopies.erase();
  parts.afterCompute.erase();
  for (CopyTileOp copy : parts.copies)
    copy.erase();
  outlivePeer();
  if (rotates)
    rotate(stage, phase, firstStage, firstPhase);
  if (parts.tiles) {
    Operation *end = parts.tiles.getBody()->getTerminator();
    end->insertOperands(end->getNumOperands(),
                        parts.loop.getResults().slice(numResults, 2));
  }
}

void WarpSpecializer::run() {
  createRing();
  parts.stageBuffers(config.stages);
  int64_t consumers = config.numThreads();
  kernel.setKnownBlockSizeAttr(
      b.getDenseI32ArrayAttr({config.blockThreads(), 1, 1}));
  // From here on a barrier of the epilogue is one of the consumers alone.
  kernel->setAttr("hquant.consumers", b.getI64IntegerAttr(consumers));

  Operation *begin = parts.wait    ? parts.wait.getOperation()
                     : parts.tiles ? parts.tiles.getOperation()
                                   : parts.loop;
  b.setInsertionPoint(begin);
  RingInitOp::create(b, loc, ring, isBulk() ? 0 : config.copyThreads(),
                     consumers / 32, blocks());
  Value thread = arith::IndexCastOp::create(
      b, loc, b.getI32Type(),
      gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x));
  if (config.producers == 0) {
    isCopier = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, thread,
                                     constant(config.copyThreads()));
    createFirstCopies();
    createConsumer();
    if (parts.wait)
      parts.wait.erase();
    return;
  }
  Value isProducer = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                           thread, constant(consumers));
  auto roles = scf::IfOp::create(b, loc, isProducer, /*withElse=*/true);
  // The consumers take everything up to the end of the kernel.
  Block *block = roles->getBlock();
  Block *otherwise = roles.elseBlock();
  otherwise->getOperations().splice(otherwise->begin(), block->getOperations(),
                                    std::next(Block::iterator(roles)),
                                    Block::iterator(block->getTerminator()));

  b.setInsertionPointToStart(roles.thenBlock());
  createProducer();
  createConsumer();
  if (parts.wait)
    parts.wait.erase();
}

struct SpecializeWarpsPass
    : humming::impl::SpecializeWarpsPassBase<SpecializeWarpsPass> {
  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    SmallVector<scf::ForOp> loops = findCopyLoops(kernel);
    if (loops.empty())
      return;
    auto attr =
        kernel->getAttrOfType<LoweringConfigAttr>("hquant.lowering_config");
    if (!attr) {
      kernel.emitOpError("expected the attribute hquant.lowering_config, which "
                         "says how copies are made");
      return signalPassFailure();
    }
    const KernelConfig &config = attr.getConfig();
    if (!config.usesRing())
      return;
    if (loops.size() != 1) {
      kernel.emitOpError("expected one loop of copies, got ") << loops.size();
      return signalPassFailure();
    }
    if (failed(specializeWarps(loops.front(), config)))
      return signalPassFailure();
  }
};

} // namespace

LogicalResult humming::specializeWarps(scf::ForOp loop,
                                       const KernelConfig &config) {
  FailureOr<CopyLoop> parts = CopyLoop::match(loop);
  if (failed(parts))
    return failure();
  auto kernel = loop->getParentOfType<gpu::GPUFuncOp>();
  Operation *outermost = parts->tiles ? parts->tiles : loop;
  if (outermost->getParentOp() != kernel || !kernel.getBody().hasOneBlock())
    return loop.emitOpError("expected the K loop, or one loop over tiles "
                            "around it, in the only block of the kernel");
  if (parts->tiles && parts->wait)
    return parts->wait.emitOpError("expected no wait for earlier kernels in a "
                                   "persistent one");
  // What rotate() moves around.
  if (multipliesAsync(loop) &&
      loop.getBody()->getOps<WarpgroupWaitOp>().empty())
    return loop.emitOpError("expected a warpgroup_wait in a K loop with "
                            "MMAs of a warpgroup");
  if (config.stages < 2 || config.stages > 8)
    return loop.emitOpError("expected 2 to 8 stages, got ") << config.stages;
  WarpSpecializer(*parts, config).run();
  return success();
}
