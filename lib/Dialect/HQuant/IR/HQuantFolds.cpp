//===- HQuantFolds.cpp - Folds and canonical forms --------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Quant/Packing.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

//===----------------------------------------------------------------------===//
// Constants as bytes
//===----------------------------------------------------------------------===//

// The packing library works on whole bytes, one a code. So does MLIR's storage
// of dense constants, except for i1, which is a bit stream, and splats.

static int64_t getElementBytes(ShapedType type) {
  return (type.getElementTypeBitWidth() + 7) / 8;
}

static ArrayRef<uint8_t> asBytes(ArrayRef<char> data) {
  return {reinterpret_cast<const uint8_t *>(data.data()), data.size()};
}

/// Bytes of a static type, or nothing if a fold should not make that many: a
/// splat in the source may stand for more than any memory holds.
static std::optional<int64_t> getFoldableBytes(ShapedType type) {
  constexpr int64_t limit = int64_t(1) << 33;
  int64_t bytes = getElementBytes(type);
  for (int64_t extent : type.getShape())
    if (llvm::MulOverflow(bytes, extent, bytes))
      return std::nullopt;
  return bytes <= limit ? std::optional(bytes) : std::nullopt;
}

/// The row-major elements of a constant, whole bytes each; `storage` backs them
/// where the constant does not. Nothing if `value` is not a dense constant.
static std::optional<ArrayRef<uint8_t>>
getElementData(Attribute value, SmallVectorImpl<uint8_t> &storage) {
  ShapedType type;
  ArrayRef<uint8_t> raw;
  if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return std::nullopt;
    type = resource.getType();
    raw = asBytes(blob->getData());
  } else if (auto dense = dyn_cast_or_null<DenseElementsAttr>(value)) {
    type = dense.getType();
    raw = asBytes(dense.getRawData());
    if (dense.isSplat() && type.getElementType().isInteger(1)) {
      storage.assign(type.getNumElements(), dense.getSplatValue<bool>());
      return ArrayRef<uint8_t>(storage);
    }
    if (dense.isSplat() && type.getNumElements() != 1) {
      for (int64_t i = 0, e = type.getNumElements(); i < e; ++i)
        storage.append(raw.begin(), raw.end());
      return ArrayRef<uint8_t>(storage);
    }
  } else {
    return std::nullopt;
  }
  int64_t elements = type.getNumElements();
  if (type.getElementType().isInteger(1)) {
    if (int64_t(raw.size()) < (elements + 7) / 8)
      return std::nullopt;
    storage.resize(elements);
    unpackBitStream(raw, 0, 1, storage);
    return ArrayRef<uint8_t>(storage);
  }
  if (int64_t(raw.size()) != elements * getElementBytes(type))
    return std::nullopt;
  return raw;
}

/// A constant of `type` with the given bytes, of the same kind (inline or
/// resource) as `like`.
static Attribute buildConstant(RankedTensorType type, ArrayRef<uint8_t> data,
                               Attribute like) {
  SmallVector<uint8_t> bits;
  if (type.getElementType().isInteger(1)) {
    bits.resize((data.size() + 7) / 8);
    packBitStream(data, 1, bits);
    data = bits;
  }
  ArrayRef<char> raw(reinterpret_cast<const char *>(data.data()), data.size());
  if (isa<DenseResourceElementsAttr>(like))
    return DenseResourceElementsAttr::get(
        type, "hquant_packed",
        HeapAsmResourceBlob::allocateAndCopyWithAlign(raw, /*align=*/16));
  return DenseElementsAttr::getFromRawBuffer(type, raw);
}

/// A fold may give up but not fail: the error of a packing function only says
/// that it has no such layout.
static bool succeed(llvm::Error error) {
  bool ok = !error;
  llvm::consumeError(std::move(error));
  return ok;
}

/// Packs or unpacks a constant between the logical and the packed type.
static Attribute foldPacking(Attribute value, RankedTensorType logical,
                             RankedTensorType packed, bool pack) {
  if (!logical.hasStaticShape() || !packed.hasStaticShape())
    return {};
  PackedLayoutAttr layout = PackedLayoutAttr::of(packed);
  SmallVector<uint8_t> storage, result;
  RankedTensorType to = pack ? packed : logical;
  std::optional<int64_t> bytes = getFoldableBytes(to);
  if (!layout || !value || !bytes || !getFoldableBytes(pack ? logical : packed))
    return {};
  std::optional<ArrayRef<uint8_t>> data = getElementData(value, storage);
  if (!data)
    return {};
  if (layout.isPlain())
    return buildConstant(to, *data, value);
  result.resize(*bytes);
  int64_t rows = logical.getDimSize(0), columns = logical.getDimSize(1);
  unsigned a = layout.getActivationBits(), b = layout.getWeightBits();
  if (layout.isWeights()) {
    if (!succeed(pack ? packWeights(*data, rows, columns, columns, a, b, result)
                      : unpackWeights(*data, rows, columns, a, b, result)))
      return {};
    return buildConstant(to, result, value);
  }
  unsigned element = getElementBytes(logical);
  if (!succeed(pack ? packScales(*data, rows, columns, element, result)
                    : unpackScales(*data, rows, columns, element, result)))
    return {};
  // A code in a byte has no bits above its width, in either direction.
  if (logical.getElementType().isInteger(b))
    for (uint8_t &byte : result)
      byte &= uint8_t((1u << b) - 1);
  return buildConstant(to, result, value);
}

//===----------------------------------------------------------------------===//
// PackOp, UnpackOp
//===----------------------------------------------------------------------===//

OpFoldResult PackOp::fold(FoldAdaptor adaptor) {
  auto logical = cast<RankedTensorType>(getSource().getType());
  if (Attribute folded =
          foldPacking(adaptor.getSource(), logical,
                      cast<RankedTensorType>(getResult().getType()), true))
    return folded;
  // pack(unpack(p)) -> p where there is no padding to write.
  auto unpack = getSource().getDefiningOp<UnpackOp>();
  if (!unpack || unpack.getSource().getType() != getResult().getType())
    return {};
  if (getLayout().isPlain())
    return OpFoldResult(unpack.getSource());
  bool noPadding = logical.getDimSize(0) % PackedLayoutAttr::kStrip == 0 &&
                   (!getLayout().isWeights() ||
                    logical.getDimSize(1) % PackedLayoutAttr::kSlab == 0);
  return noPadding ? OpFoldResult(unpack.getSource()) : OpFoldResult();
}

OpFoldResult UnpackOp::fold(FoldAdaptor adaptor) {
  if (Attribute folded = foldPacking(
          adaptor.getSource(), cast<RankedTensorType>(getResult().getType()),
          cast<RankedTensorType>(getSource().getType()), false))
    return folded;
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

/// A matmul of unpacked operands reads the packed ones:
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
