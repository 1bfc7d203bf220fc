//===- FragmentLowering.cpp - Fragment loads and scaling --------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fragment vector becomes one value a register, in row-major order of its
// dimensions. Loads are as wide as the layout allows: the packed layouts were
// made so that a lane's words are contiguous and a warp's accesses conflict-free.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "LoweringBuilder.h"
#include "LoweringPatterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

/// Start of a tile, stage included.
template <typename Op>
Value tileBase(LoweringBuilder &lb, Op op, typename Op::Adaptor adaptor) {
  if (!adaptor.getStage())
    return adaptor.getTile();
  int64_t bytes = cast<MemRefType>(op.getTile().getType()).getDimSize(1);
  return lb.offset(adaptor.getTile(), lb.mul(adaptor.getStage(), bytes));
}

/// The power-of-two planes of a weight width, widest first (docs/HQuant.md).
SmallVector<int64_t> planesOf(int64_t bits) {
  SmallVector<int64_t> planes;
  for (int64_t p : {8, 4, 2, 1})
    if (bits & p)
      planes.push_back(p);
  return planes;
}

struct LowerLoadWeights : OpConversionPattern<LoadWeightsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadWeightsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    auto type = cast<VectorType>(op.getWords().getType());
    int64_t units = type.getDimSize(0), bits = type.getDimSize(1);
    int64_t unitBytes = 128 * bits;
    // [strip][slab][unit of the strip][planes]
    Value strip = lb.div(adaptor.getUnit(), 4);
    Value unit = lb.and_(adaptor.getUnit(), 3);
    Value tile = lb.add(lb.mul(strip, op.getSlabs()), adaptor.getSlab());
    Value base = lb.offset(tileBase(lb, op, adaptor),
                           lb.add(lb.mul(tile, 4 * unitBytes),
                                  lb.mul(unit, unitBytes)));
    Value lane = lb.laneId();
    SmallVector<Value> words;
    for (int64_t u = 0; u < units; ++u) {
      int64_t planeStart = u * unitBytes;
      for (int64_t p : planesOf(bits)) {
        int64_t run = std::min<int64_t>(p, 4); // words of one access
        Value pointer = lb.offset(base, lb.mul(lane, 4 * run));
        for (int64_t chunk = 0; chunk < p / run; ++chunk)
          words.append(lb.loadWords(
              lb.offset(pointer, planeStart + chunk * 32 * 4 * run), run,
              lb.i32()));
        planeStart += 128 * p;
      }
    }
    rewriter.replaceOpWithMultiple(op, {words});
    return success();
  }
};

struct LowerLoadActivations : OpConversionPattern<LoadActivationsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadActivationsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    auto type = cast<VectorType>(op.getFragment().getType());
    int64_t tiles = type.getDimSize(0);
    // A slab is one panel of 128-byte rows. ldmatrix.x4 takes the addresses of 8
    // rows of each of 4 matrices from lanes 8 i .. 8 i + 7; matrix i is k 8 i ..
    // 8 i + 7, so one access gives both registers of two steps.
    Value lane = lb.laneId();
    Value rowInTile = lb.and_(lane, 7);
    Value row = lb.add(adaptor.getToken(), rowInTile);
    Value panel = lb.mul(adaptor.getSlab(), op.getTileRows() * 128);
    Value base = lb.offset(tileBase(lb, op, adaptor),
                           lb.add(panel, lb.shl(row, 7)));
    Value matrix = lb.lshr(lane, 3);
    Type word = lb.i32();
    Type quad = LLVM::LLVMStructType::getLiteral(rewriter.getContext(),
                                                 {word, word, word, word});
    SmallVector<Value> words;
    SmallVector<Value> columns;
    for (int64_t half = 0; half < 2; ++half)
      columns.push_back(
          lb.shl(lb.xor_(lb.add(matrix, 4 * half), rowInTile), 4));
    for (int64_t t = 0; t < tiles; ++t)
      for (int64_t half = 0; half < 2; ++half) {
        Value pointer =
            lb.offset(lb.offset(base, columns[half]), t * 8 * 128);
        Value loaded = NVVM::LdMatrixOp::create(
            rewriter, op.getLoc(), quad, pointer, 4, NVVM::MMALayout::row,
            NVVM::LdStMatrixShapeAttr::get(rewriter.getContext(), 8, 8),
            NVVM::LdStMatrixEltType::B16);
        for (int64_t i = 0; i < 4; ++i)
          words.push_back(lb.extractField(loaded, i));
      }
    rewriter.replaceOpWithMultiple(op, {words});
    return success();
  }
};

struct LowerLoadScales : OpConversionPattern<LoadScalesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadScalesOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    auto type = cast<VectorType>(op.getScales().getType());
    int64_t units = type.getDimSize(0), groups = type.getDimSize(1);
    int64_t bytes = op.getElementBits() / 8;
    int64_t groupBytes = op.getStrips() * 64 * bytes;
    // Element of row 16 u + 8 h + g within a strip: 8 g + 2 u + h.
    Value g = lb.lshr(lb.laneId(), 2);
    Value strip = lb.div(adaptor.getUnit(), 4);
    Value unit = lb.and_(adaptor.getUnit(), 3);
    Value element = lb.add(lb.shl(strip, 6),
                           lb.add(lb.shl(g, 3), lb.shl(unit, 1)));
    Value base = lb.offset(tileBase(lb, op, adaptor),
                           lb.add(lb.mul(adaptor.getGroup(), groupBytes),
                                  lb.mul(element, bytes)));
    SmallVector<SmallVector<Value>> byGroup;
    for (int64_t i = 0; i < groups; ++i) {
      Value pointer = lb.offset(base, i * groupBytes);
      byGroup.push_back(bytes == 2 ? lb.loadWords(pointer, units, lb.i32())
                                   : loadBytePairs(lb, pointer, units));
    }
    SmallVector<Value> words;
    for (int64_t u = 0; u < units; ++u)
      for (int64_t i = 0; i < groups; ++i)
        words.push_back(byGroup[i][u]);
    rewriter.replaceOpWithMultiple(op, {words});
    return success();
  }

  /// `units` pairs of bytes, each in the low half of a word.
  static SmallVector<Value> loadBytePairs(LoweringBuilder &lb, Value pointer,
                                          int64_t units) {
    if (units == 1)
      return {lb.zext(lb.load(lb.i16(), pointer, 2))};
    SmallVector<Value> pairs;
    for (Value word : lb.loadWords(pointer, units / 2, lb.i32())) {
      pairs.push_back(lb.and_(word, 0xffff));
      pairs.push_back(lb.lshr(word, 16));
    }
    return pairs;
  }
};

struct LowerScaleAccumulate : OpConversionPattern<ScaleAccumulateOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ScaleAccumulateOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    auto type = cast<VectorType>(op.getAccumulators().getType());
    auto scaleType = cast<VectorType>(op.getScales().getType());
    int64_t perUnit = type.getDimSize(1) * type.getDimSize(2);
    SmallVector<Value> result;
    for (int64_t u = 0; u < type.getDimSize(0); ++u) {
      Value word = adaptor.getScales()[u * scaleType.getDimSize(1) +
                                       op.getGroup()];
      auto [low, high] = unpackScales(lb, word, op.getScale().getFormat());
      for (int64_t i = 0; i < perUnit; ++i) {
        int64_t at = u * perUnit + i;
        result.push_back(LLVM::FMAOp::create(
            rewriter, op.getLoc(), i % 4 < 2 ? low : high,
            adaptor.getPartial()[at], adaptor.getAccumulators()[at]));
      }
    }
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }
};

/// Whether the values of `type` become one register an element.
bool isRegisters(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && isFragment(vector) &&
         (vector.getElementType().isInteger(32) ||
          vector.getElementType().isF32());
}

/// vector.extract of one register: picks it.
struct LowerExtract : OpConversionPattern<vector::ExtractOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(vector::ExtractOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<VectorType>(op.getSource().getType());
    if (!isRegisters(type))
      return rewriter.notifyMatchFailure(op, "expected a fragment");
    // A negative position is poison.
    if (op.hasDynamicPosition() ||
        int64_t(op.getStaticPosition().size()) != type.getRank() ||
        llvm::any_of(op.getStaticPosition(), [](int64_t p) { return p < 0; }))
      return rewriter.notifyMatchFailure(
          op, "expected the static position of one register");
    int64_t index = 0;
    for (auto [position, size] :
         llvm::zip(op.getStaticPosition(), type.getShape()))
      index = index * size + position;
    rewriter.replaceOp(op, adaptor.getSource()[index]);
    return success();
  }
};

/// vector.from_elements: the registers are the operands.
struct LowerFromElements : OpConversionPattern<vector::FromElementsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(vector::FromElementsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isRegisters(op.getType()))
      return rewriter.notifyMatchFailure(op, "expected a fragment");
    rewriter.replaceOpWithMultiple(op, {adaptor.getElements()});
    return success();
  }
};

/// A constant fragment: one constant a register.
struct LowerConstant : OpConversionPattern<arith::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!dense || !isRegisters(op.getType()))
      return rewriter.notifyMatchFailure(op, "expected a dense fragment");
    SmallVector<Value> values;
    for (Attribute value : dense.getValues<Attribute>())
      values.push_back(LLVM::ConstantOp::create(
          rewriter, op.getLoc(), dense.getElementType(), value));
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

} // namespace

std::pair<Value, Value> humming::unpackScales(LoweringBuilder &lb, Value word,
                                              const NumberFormat &format) {
  if (format.isBF16()) // the high half of an f32
    return {lb.bitcast(lb.shl(word, 16), lb.f32()),
            lb.bitcast(lb.and_(word, 0xffff0000), lb.f32())};
  Type half = lb.b.getF16Type();
  auto extend = [&](Value bits) -> Value {
    return LLVM::FPExtOp::create(lb.b, lb.loc, lb.f32(),
                                 lb.bitcast(lb.trunc(bits, lb.i16()), half));
  };
  return {extend(word), extend(lb.lshr(word, 16))};
}

void humming::populateFragmentLoweringPatterns(const TypeConverter &converter,
                                               RewritePatternSet &patterns) {
  patterns.add<LowerLoadWeights, LowerLoadActivations, LowerLoadScales,
               LowerScaleAccumulate, LowerExtract, LowerFromElements,
               LowerConstant>(converter, patterns.getContext());
}
