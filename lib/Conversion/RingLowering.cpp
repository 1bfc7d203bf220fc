//===- RingLowering.cpp - Rings and turns to barriers -----------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stage s of a ring has two mbarriers of 8 bytes at 16 s: full, then empty.
//
// Full counts one arrival of each producer thread, made by the hardware once
// the thread's cp.async copies have landed, one of the first producer thread
// for what was written by ordinary stores, and the bytes of the bulk copies.
// Empty counts one arrival of each consumer warp.
//
// Turns of two consumer warpgroups are named barriers, one for each.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "LoweringBuilder.h"
#include "LoweringPatterns.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

constexpr int64_t kFull = 0, kEmpty = 8;

Value barrierOf(LoweringBuilder &lb, Value ring, Value stage, int64_t which) {
  return lb.offset(lb.offset(ring, lb.shl(stage, 4)), which);
}

void waitFor(LoweringBuilder &lb, Value barrier, Value phase) {
  // try_wait sleeps for a while and may return without success. The labels are
  // local to the braces.
  LLVM::InlineAsmOp::create(
      lb.b, lb.loc, LLVM::LLVMVoidType::get(lb.b.getContext()),
      ValueRange{barrier, phase},
      "{ .reg .pred done; again: "
      "mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; "
      "@!done bra again; }",
      "r,r,~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(lb.b.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
}

struct LowerRingInit : OpConversionPattern<RingInitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RingInitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    int64_t stages = cast<MemRefType>(op.getRing().getType()).getDimSize(0);
    lb.when(lb.eq(lb.threadId(), lb.c(0)), [&] {
      for (int64_t s = 0; s < stages; ++s) {
        Value full = lb.offset(adaptor.getRing(), 16 * s + kFull);
        Value empty = lb.offset(adaptor.getRing(), 16 * s + kEmpty);
        NVVM::MBarrierInitOp::create(rewriter, op.getLoc(), full,
                                     lb.c(op.getProducers() + 1), Value());
        NVVM::MBarrierInitOp::create(rewriter, op.getLoc(), empty,
                                     lb.c(op.getConsumers() * op.getBlocks()),
                                     Value());
      }
      // Bulk copies complete on them through the async proxy.
      NVVM::FenceProxyOp::create(
          rewriter, op.getLoc(),
          NVVM::ProxyKindAttr::get(getContext(), NVVM::ProxyKind::async_shared),
          NVVM::SharedSpaceAttr::get(getContext(),
                                     NVVM::SharedSpace::shared_cta));
      if (op.getBlocks() > 1)
        NVVM::FenceMbarrierInitOp::create(rewriter, op.getLoc());
    });
    if (op.getBlocks() > 1) { // the fence has released what there is
      NVVM::ClusterArriveRelaxedOp::create(rewriter, op.getLoc(), UnitAttr());
      NVVM::ClusterWaitOp::create(rewriter, op.getLoc(), UnitAttr());
    } else {
      NVVM::Barrier0Op::create(rewriter, op.getLoc());
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerRingAcquire : OpConversionPattern<RingAcquireOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RingAcquireOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    waitFor(lb, barrierOf(lb, adaptor.getRing(), adaptor.getStage(), kEmpty),
            adaptor.getPhase());
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerRingWait : OpConversionPattern<RingWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RingWaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    waitFor(lb, barrierOf(lb, adaptor.getRing(), adaptor.getStage(), kFull),
            adaptor.getPhase());
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerRingCommit : OpConversionPattern<RingCommitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RingCommitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    Value full = barrierOf(lb, adaptor.getRing(), adaptor.getStage(), kFull);
    // The first thread starts tensor and bulk copies alone: its warp is whole
    // again before each thread counts its own copies.
    if (!op.getBulk()) {
      NVVM::SyncWarpOp::create(rewriter, op.getLoc(), lb.c(-1));
      NVVM::CpAsyncMBarrierArriveOp::create(rewriter, op.getLoc(), full,
                                            /*noinc=*/true);
    }
    lb.when(lb.eq(lb.threadId(), lb.c(op.getFirstThread())),
            [&] { arrive(lb, full); });
    rewriter.eraseOp(op);
    return success();
  }

  static void arrive(LoweringBuilder &lb, Value barrier) {
    NVVM::MBarrierArriveOp::create(lb.b, lb.loc, lb.i64(), barrier, Value());
  }
};

struct LowerRingRelease : OpConversionPattern<RingReleaseOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RingReleaseOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    Value empty = barrierOf(lb, adaptor.getRing(), adaptor.getStage(), kEmpty);
    // The reads of all lanes come before the arrival of one.
    NVVM::SyncWarpOp::create(rewriter, op.getLoc(), lb.c(-1));
    if (op.getBlocks() == 1)
      lb.when(lb.eq(lb.laneId(), lb.c(0)),
              [&] { LowerRingCommit::arrive(lb, empty); });
    else
      // A lane for each block. Release at the scope of the block orders this
      // block's own copies. What the other one copies here is read by wgmma
      // alone, which is done with it (warpgroup_wait) before this; a release at
      // the cluster's scope would order nothing more, and becomes
      // MEMBAR.ALL.GPU, an acquire CCTL.IVALL.
      lb.when(lb.ult(lb.laneId(), lb.c(op.getBlocks())), [&] {
        NVVM::MBarrierArriveOp::create(
            rewriter, op.getLoc(), TypeRange(),
            lb.ofBlock(empty, lb.add(lb.firstBlockOfMulticast(), lb.laneId())),
            Value(), NVVM::MemScopeKind::CTA, /*relaxed=*/false);
      });
    rewriter.eraseOp(op);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

/// Warpgroup w waits at named barrier BarrierOfTurns + w, where the other one
/// arrives: each barrier counts both.
struct Turn {
  static void meet(LoweringBuilder &lb, StringRef instruction,
                   Value warpgroup) {
    constexpr int64_t threads = 256;
    LLVM::InlineAsmOp::create(
        lb.b, lb.loc, LLVM::LLVMVoidType::get(lb.b.getContext()),
        ValueRange{lb.add(warpgroup, BarrierOfTurns), lb.c(threads)},
        (instruction + " $0, $1;").str(), "r,n,~{memory}",
        /*has_side_effects=*/true, /*is_align_stack=*/false,
        LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(lb.b.getContext(), LLVM::AsmDialect::AD_ATT),
        ArrayAttr());
  }
  static Value own(LoweringBuilder &lb) { return lb.lshr(lb.threadId(), 7); }
};

template <typename Op>
struct LowerTurn : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    Value own = Turn::own(lb);
    if constexpr (std::is_same_v<Op, TakeTurnOp>)
      Turn::meet(lb, "bar.sync", own);
    else if constexpr (std::is_same_v<Op, PassTurnOp>)
      Turn::meet(lb, "bar.arrive", lb.xor_(own, lb.c(1)));
    else if constexpr (std::is_same_v<Op, StartTurnsOp>)
      lb.when(lb.eq(own, lb.c(1)),
              [&] { Turn::meet(lb, "bar.arrive", lb.c(0)); });
    else
      lb.when(lb.eq(own, lb.c(0)),
              [&] { Turn::meet(lb, "bar.sync", lb.c(0)); });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void humming::populateRingLoweringPatterns(const TypeConverter &converter,
                                           RewritePatternSet &patterns) {
  patterns.add<LowerRingInit, LowerRingAcquire, LowerRingCommit, LowerRingWait,
               LowerRingRelease, LowerTurn<StartTurnsOp>, LowerTurn<TakeTurnOp>,
               LowerTurn<PassTurnOp>, LowerTurn<EndTurnsOp>>(
      converter, patterns.getContext());
}
