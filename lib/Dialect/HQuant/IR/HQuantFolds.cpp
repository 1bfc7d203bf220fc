//===- HQuantFolds.cpp - Folds and canonical forms --------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

//===----------------------------------------------------------------------===//
// PackOp, UnpackOp
//===----------------------------------------------------------------------===//

OpFoldResult PackOp::fold(FoldAdaptor) {
  // pack(unpack(p)) -> p where there is no padding to write.
  auto unpack = getSource().getDefiningOp<UnpackOp>();
  if (!unpack || unpack.getSource().getType() != getResult().getType())
    return {};
  auto shape = cast<RankedTensorType>(getSource().getType()).getShape();
  bool noPadding =
      shape[0] % PackedLayoutAttr::kStrip == 0 &&
      (!getLayout().isWeights() || shape[1] % PackedLayoutAttr::kSlab == 0);
  return noPadding ? OpFoldResult(unpack.getSource()) : OpFoldResult();
}

OpFoldResult UnpackOp::fold(FoldAdaptor) {
  // unpack(pack(x)) -> x
  auto pack = getSource().getDefiningOp<PackOp>();
  if (pack && pack.getSource().getType() == getResult().getType())
    return pack.getSource();
  return {};
}

//===----------------------------------------------------------------------===//
// MatmulOp, DequantizeOp
//===----------------------------------------------------------------------===//

/// Whether every zero point is the constant 2^(bits-1), which is what the
/// symmetric form of the same codes subtracts.
static bool isSymmetricZeroPoint(Value zeroPoints, QuantTypeAttr type) {
  double middle = double(uint64_t(1) << (type.getWeightFormat().bits - 1));
  DenseElementsAttr value;
  if (!zeroPoints || !matchPattern(zeroPoints, m_Constant(&value)) ||
      !value.isSplat())
    return false;
  if (isa<FloatType>(value.getElementType())) {
    APFloat splat = value.getSplatValue<APFloat>();
    bool losesInfo = false;
    splat.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
    return splat.convertToDouble() == middle;
  }
  return type.getZeroPointKind() == ZeroPointKind::Integer &&
         double(value.getSplatValue<APInt>().getZExtValue()) == middle;
}

namespace {
/// Drops zero points that are all 2^(bits-1): the symmetric type says the same
/// and its kernel reads and subtracts nothing.
template <typename OpT>
struct DropSymmetricZeroPoints : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    if (!isSymmetricZeroPoint(op.getZeroPoints(), op.getQuantType()))
      return rewriter.notifyMatchFailure(
          op, "zero points are not all the constant 2^(bits-1)");
    QuantType type = op.getQuantType().getQuantType();
    type.zeroPoint = ZeroPointKind::None;
    rewriter.modifyOpInPlace(op, [&] {
      op.getZeroPointsMutable().clear();
      op.setQuantTypeAttr(QuantTypeAttr::get(op.getContext(), type));
    });
    return success();
  }
};

/// Drops a bias of zeros.
struct DropZeroBias : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getBias() || !matchPattern(op.getBias(), m_AnyZeroFloat()))
      return rewriter.notifyMatchFailure(op, "bias is not a constant zero");
    rewriter.modifyOpInPlace(op, [&] { op.getBiasMutable().clear(); });
    return success();
  }
};

/// dequantize(unpack(w), unpack(s), ...) stays as it is; matmul on unpacked
/// operands reads the packed ones:
/// matmul(x, unpack(w), unpack(s)) -> matmul(x, w, s).
struct MatmulOfUnpack : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    auto weights = op.getWeights().getDefiningOp<UnpackOp>();
    auto scales = op.getScales().getDefiningOp<UnpackOp>();
    if (!weights || !scales)
      return rewriter.notifyMatchFailure(op, "operands are not unpacked");
    PackedLayoutAttr layout = weights.getLayout();
    unsigned width = op.getProblem().activation.bits;
    if (layout.getActivationBits() != width ||
        op.getQuantType().getGranularity().rows != 1)
      return rewriter.notifyMatchFailure(
          op, "the packed layout is for other activations or granularities");
    SmallVector<Value> packed = {weights.getSource(), scales.getSource()};
    if (op.getZeroPoints()) {
      auto zeroPoints = op.getZeroPoints().getDefiningOp<UnpackOp>();
      if (!zeroPoints)
        return rewriter.notifyMatchFailure(op, "zero points are not unpacked");
      packed.push_back(zeroPoints.getSource());
    }
    for (auto [index, value] : llvm::enumerate(packed))
      if (PackedLayoutAttr::of(value.getType()) !=
          layout.withRole(PackedRole(index)))
        return rewriter.notifyMatchFailure(op, "packed layouts differ");
    rewriter.modifyOpInPlace(op, [&] {
      op.getWeightsMutable().assign(packed[0]);
      op.getScalesMutable().assign(packed[1]);
      if (packed.size() > 2)
        op.getZeroPointsMutable().assign(packed[2]);
    });
    return success();
  }
};
} // namespace

void MatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<DropSymmetricZeroPoints<MatmulOp>, DropZeroBias, MatmulOfUnpack>(
      context);
}

void DequantizeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                               MLIRContext *context) {
  patterns.add<DropSymmetricZeroPoints<DequantizeOp>>(context);
}
