//===- PackWeights.cpp - Bring operands into the packed layout --*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Transforms/Passes.h"
#include "Humming/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

#define DEBUG_TYPE "hquant-pack-weights"

namespace humming {
#define GEN_PASS_DEF_PACKWEIGHTSPASS
#include "Humming/Transforms/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

/// Packs the operands of a matmul:
///   matmul(x, w, s, z) -> matmul(x, pack(w), pack(s), pack(z))
static LogicalResult packOperands(MatmulOp op, RewriterBase &rewriter) {
  if (op.isPacked())
    return rewriter.notifyMatchFailure(op, "operands are packed");
  if (op.getQuantType().getGranularity().rows != 1)
    return rewriter.notifyMatchFailure(op, "several rows share one scale");
  MatmulProblem problem = op.getProblem();
  if (problem.weight.weight.bits > problem.activation.bits)
    return rewriter.notifyMatchFailure(
        op, "no layout of weights wider than the activations");

  auto layout =
      PackedLayoutAttr::get(op.getContext(), problem.activation.bits,
                            problem.weight.weight.bits, PackedRole::Weights);
  PackedRole weights = problem.weightLayout == WeightLayout::Plain
                           ? PackedRole::PlainWeights
                           : PackedRole::Weights;
  auto pack = [&](OpOperand &operand, PackedRole role) {
    auto type = cast<RankedTensorType>(operand.get().getType());
    // Folds if the operand is a constant, which may then be unused.
    Value packed = rewriter.createOrFold<PackOp>(
        op.getLoc(), layout.withRole(role).getPackedType(type), operand.get());
    Operation *source = operand.get().getDefiningOp();
    rewriter.modifyOpInPlace(op, [&] { operand.set(packed); });
    if (source && source->hasTrait<OpTrait::ConstantLike>() &&
        source->use_empty())
      rewriter.eraseOp(source);
  };
  rewriter.setInsertionPoint(op);
  pack(op.getWeightsMutable(), weights);
  pack(op.getScalesMutable(), PackedRole::Scales);
  if (op.getZeroPoints())
    pack(*op.getZeroPointsMutable().begin(), PackedRole::ZeroPoints);
  return success();
}

namespace {
struct PackMatmul : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    return packOperands(op, rewriter);
  }
};

struct PackWeightsPass : humming::impl::PackWeightsPassBase<PackWeightsPass> {
  using PackWeightsPassBase::PackWeightsPassBase;

  void runOnOperation() override {
    SmallVector<MatmulOp> work;
    bool failed = false;
    getOperation()->walk([&](MatmulOp op) {
      if (op.isPacked())
        return;
      work.push_back(op);
      // The layout's own verifier says which widths it is for.
      MatmulProblem problem = op.getProblem();
      failed |= ::mlir::failed(PackedLayoutAttr::verify(
          [&] { return op.emitOpError(); }, problem.activation.bits,
          problem.weight.weight.bits, PackedRole::Weights));
      if (op.getQuantType().getGranularity().rows == 1)
        return;
      failed = true;
      op.emitOpError("expected one scale per row (group or channel) to pack, "
                     "got ")
          << GranularityAttr::get(op.getContext(),
                                  op.getQuantType().getGranularity())
          << "; repeat the scales for every row";
    });
    if (failed)
      return signalPassFailure();

    IRRewriter rewriter(&getContext());
    for (MatmulOp op : work)
      (void)packOperands(op, rewriter);

    numPacked += work.size();
    for (MatmulOp op : work)
      for (Value operand :
           {op.getWeights(), op.getScales(), op.getZeroPoints()})
        if (operand && !operand.getDefiningOp<PackOp>())
          ++numFolded;
  }
};
} // namespace

void humming::populatePackWeightsPatterns(RewritePatternSet &patterns) {
  patterns.add<PackMatmul>(patterns.getContext());
}
