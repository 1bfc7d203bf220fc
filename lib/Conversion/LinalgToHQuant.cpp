//===- LinalgToHQuant.cpp - Matmuls of dequantized weights ------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The import of what upstream can say: linalg.matmul computes C[m, n] = sum
// over k of A[m, k] * B[.., ..]. It is an hquant.matmul if B is a dequantized
// [n, k] matrix read with its last index along k:
//
//   linalg.matmul(x, dequantize(w)) with B's map (m, n, k) -> (n, k)
//   linalg.matmul(x, transpose(dequantize(w))) with the default map
//
// The accumulator starts at zero, or at a bias that was broadcast over the
// rows.
//
//===----------------------------------------------------------------------===//

#include "Humming/Conversion/Passes.h"
#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"

#define DEBUG_TYPE "convert-linalg-to-hquant"

namespace humming {
#define GEN_PASS_DEF_CONVERTLINALGTOHQUANTPASS
#include "Humming/Conversion/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

/// Whether `value` is zero everywhere.
static bool isZero(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    value = fill.getInputs().front();
  return matchPattern(value, m_AnyZeroFloat());
}

/// The bias [n] of type `elementType` that `accumulator` repeats for every row,
/// as it is or before an arith.extf; null if it is something else.
static Value findBias(Value accumulator, Type elementType) {
  auto broadcast = accumulator.getDefiningOp<linalg::BroadcastOp>();
  if (!broadcast || broadcast.getDimensions() != ArrayRef<int64_t>{0})
    return {};
  Value bias = broadcast.getInput();
  auto extend = bias.getDefiningOp<arith::ExtFOp>();
  if (extend && getElementTypeOrSelf(bias.getType()) != elementType)
    bias = extend.getIn();
  auto type = dyn_cast<RankedTensorType>(bias.getType());
  bool fits = type && type.getRank() == 1 && !type.getEncoding() &&
              type.getElementType() == elementType;
  return fits ? bias : Value();
}

/// The dequantized [n, k] matrix that `op` reads as B, or null.
static DequantizeOp findWeights(linalg::MatmulOp op) {
  MLIRContext *context = op.getContext();
  AffineExpr m, n, k;
  bindDims(context, m, n, k);
  auto map = [&](AffineExpr a, AffineExpr b) {
    return AffineMap::get(3, 0, {a, b}, context);
  };
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (maps.size() != 3 || maps[0] != map(m, k) || maps[2] != map(m, n))
    return {};
  Value b = op.getInputs()[1];
  if (maps[1] == map(n, k))
    return b.getDefiningOp<DequantizeOp>();
  auto transpose = b.getDefiningOp<linalg::TransposeOp>();
  if (maps[1] != map(k, n) || !transpose ||
      transpose.getPermutation() != ArrayRef<int64_t>{1, 0})
    return {};
  return transpose.getInput().getDefiningOp<DequantizeOp>();
}

static bool isSixteenBitFloat(Type type) {
  return type.isF16() || type.isBF16();
}

/// Converts `op` with the rounding that follows it, or says why not.
static LogicalResult convertMatmul(linalg::MatmulOp op,
                                   RewriterBase &rewriter) {
  auto miss = [&](StringRef why) {
    remark::missed(
        op.getLoc(),
        remark::RemarkOpts::name("LinalgMatmul").category("HummingMissed"))
        << remark::reason("{0}", why.str());
    return rewriter.notifyMatchFailure(op, why);
  };
  if (!op.hasPureTensorSemantics())
    return miss("expected a matmul on tensors, got one on memrefs");
  DequantizeOp weights = findWeights(op);
  if (!weights)
    return miss("expected the second operand to be an hquant.dequantize, "
                "used transposed");
  Value x = op.getInputs()[0];
  if (!isSixteenBitFloat(getElementTypeOrSelf(x.getType())))
    return miss("expected activations of f16 or bf16");
  Operation *root = op;
  Type resultType = op.getResult(0).getType();
  if (op->hasOneUse())
    if (auto round = dyn_cast<arith::TruncFOp>(*op->user_begin())) {
      root = round;
      resultType = round.getType();
    }
  Type elementType = getElementTypeOrSelf(resultType);
  if (!isSixteenBitFloat(elementType) && !elementType.isF32())
    return miss("expected a result of f16, bf16 or f32");
  Value accumulator = op.getOutputs()[0];
  Value bias = findBias(accumulator, elementType);
  if (!bias && !isZero(accumulator))
    return miss("expected an accumulator that starts at zero or at a broadcast "
                "bias of the result's type");
  rewriter.setInsertionPoint(root);
  rewriter.replaceOpWithNewOp<MatmulOp>(
      root, resultType, x, weights.getWeights(), weights.getScales(),
      weights.getZeroPoints(), bias, weights.getQuantType(),
      /*lowering_config=*/LoweringConfigAttr());
  if (root != op)
    rewriter.eraseOp(op);
  return success();
}

namespace {
struct MatmulOfDequantize : OpRewritePattern<linalg::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::MatmulOp op,
                                PatternRewriter &rewriter) const override {
    return convertMatmul(op, rewriter);
  }
};

struct ConvertLinalgToHQuantPass
    : humming::impl::ConvertLinalgToHQuantPassBase<ConvertLinalgToHQuantPass> {
  using ConvertLinalgToHQuantPassBase::ConvertLinalgToHQuantPassBase;

  void runOnOperation() override {
    SmallVector<linalg::MatmulOp> work;
    getOperation()->walk([&](linalg::MatmulOp op) { work.push_back(op); });
    // One look at each, so that each miss is reported once.
    IRRewriter rewriter(&getContext());
    for (linalg::MatmulOp op : work)
      ++(succeeded(convertMatmul(op, rewriter)) ? numConverted : numMissed);
  }
};
} // namespace

void humming::populateLinalgToHQuantPatterns(RewritePatternSet &patterns) {
  patterns.add<MatmulOfDequantize>(patterns.getContext());
}
