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
// made so that a lane's words are contiguous and a warp's accesses
// conflict-free.
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
    Value base =
        lb.offset(tileBase(lb, op, adaptor),
                  lb.add(lb.mul(tile, 4 * unitBytes), lb.mul(unit, unitBytes)));
    Value lane = lb.laneId();
    SmallVector<Value> words;
    // Units of one strip are neighbours, the same unit of further strips is a
    // strip of the tile away.
    int64_t stride =
        op.getUnitStride() == 1 ? unitBytes : op.getSlabs() * 4 * unitBytes;
    for (int64_t u = 0; u < units; ++u) {
      int64_t planeStart = u * stride;
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

/// Matrix i of an ldmatrix.x4 is register i of a step: rows 8 (i & 1) of the
/// unit, bytes 16 (i >> 1) of the step's 32.
struct LowerLoadPlainWeights : OpConversionPattern<LoadPlainWeightsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadPlainWeightsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    auto type = cast<VectorType>(op.getFragment().getType());
    int64_t units = type.getDimSize(0), steps = type.getDimSize(1);
    Value lane = lb.laneId();
    Value rowInTile = lb.and_(lane, 7);
    Value matrix = lb.lshr(lane, 3);
    Value row = lb.add(lb.add(lb.shl(adaptor.getUnit(), 4), rowInTile),
                       lb.shl(lb.and_(matrix, 1), 3));
    // A slab of 64 bytes is half a panel.
    int64_t slabsOfPanel = 4 / steps;
    Value panel =
        lb.mul(lb.div(adaptor.getSlab(), slabsOfPanel), op.getTileRows() * 128);
    Value base =
        lb.offset(tileBase(lb, op, adaptor), lb.add(panel, lb.shl(row, 7)));
    Value chunk =
        lb.add(lb.mul(lb.rem(adaptor.getSlab(), slabsOfPanel), 2 * steps),
               lb.lshr(matrix, 1));
    Type quad = LLVM::LLVMStructType::getLiteral(
        rewriter.getContext(), SmallVector<Type>(4, lb.i32()));
    SmallVector<Value> columns;
    for (int64_t s = 0; s < steps; ++s)
      columns.push_back(lb.shl(lb.xor_(lb.add(chunk, 2 * s), rowInTile), 4));
    SmallVector<Value> words;
    for (int64_t u = 0; u < units; ++u)
      for (int64_t s = 0; s < steps; ++s) {
        Value loaded = NVVM::LdMatrixOp::create(
            rewriter, op.getLoc(), quad,
            lb.offset(lb.offset(base, columns[s]), u * 16 * 128), 4,
            NVVM::MMALayout::row,
            NVVM::LdStMatrixShapeAttr::get(rewriter.getContext(), 8, 8),
            NVVM::LdStMatrixEltType::B16);
        for (int64_t i = 0; i < 4; ++i)
          words.push_back(lb.extractField(loaded, i));
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
    // A slab takes 32 bytes of a row a step: one panel of 128-byte rows with
    // four steps, half or a quarter of one with two or one. ldmatrix takes the
    // addresses of 8 rows of each of 4 (2) matrices from lanes 8 i .. 8 i + 7;
    // matrix i is bytes 16 i .. 16 i + 15, so one access gives both registers
    // of two steps.
    int64_t steps = type.getDimSize(1);
    int64_t slabsOfPanel = 4 / steps;
    Value lane = lb.laneId();
    Value rowInTile = lb.and_(lane, 7);
    Value row = lb.add(adaptor.getToken(), rowInTile);
    Value panel =
        lb.mul(lb.div(adaptor.getSlab(), slabsOfPanel), op.getTileRows() * 128);
    Value firstChunk =
        slabsOfPanel == 1
            ? lb.c(0)
            : lb.mul(lb.rem(adaptor.getSlab(), slabsOfPanel), 2 * steps);
    Value base =
        lb.offset(tileBase(lb, op, adaptor), lb.add(panel, lb.shl(row, 7)));
    Value matrix = lb.lshr(lane, 3);
    if (steps == 1) // lanes 16 to 31 repeat the addresses of 0 to 15
      matrix = lb.and_(matrix, 1);
    if (slabsOfPanel != 1)
      matrix = lb.add(matrix, firstChunk);
    Type word = lb.i32();
    int64_t matrices = std::min<int64_t>(4, 2 * steps);
    Type quad = LLVM::LLVMStructType::getLiteral(
        rewriter.getContext(), SmallVector<Type>(matrices, word));
    SmallVector<Value> words;
    SmallVector<Value> columns;
    int64_t halves = std::max<int64_t>(1, steps / 2);
    for (int64_t half = 0; half < halves; ++half)
      columns.push_back(
          lb.shl(lb.xor_(lb.add(matrix, 4 * half), rowInTile), 4));
    for (int64_t t = 0; t < tiles; ++t)
      for (int64_t half = 0; half < halves; ++half) {
        Value pointer = lb.offset(lb.offset(base, columns[half]), t * 8 * 128);
        Value loaded = NVVM::LdMatrixOp::create(
            rewriter, op.getLoc(), quad, pointer, matrices,
            NVVM::MMALayout::row,
            NVVM::LdStMatrixShapeAttr::get(rewriter.getContext(), 8, 8),
            NVVM::LdStMatrixEltType::B16);
        for (int64_t i = 0; i < matrices; ++i)
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
    int64_t units = type.getDimSize(0);
    int64_t bytes = op.getElementBits() / 8;
    int64_t wordsOfGroup = bytes == 4 ? 2 : 1;
    int64_t groups = type.getDimSize(1) / wordsOfGroup;
    int64_t groupBytes = op.getStrips() * 64 * bytes;
    if (op.getUniform()) {
      Value base = lb.offset(tileBase(lb, op, adaptor),
                             lb.mul(adaptor.getGroup(), groupBytes));
      SmallVector<Value> words;
      for (int64_t i = 0; i < groups; ++i)
        words.append(wordsOfGroup,
                     loadTwice(lb, lb.offset(base, i * groupBytes), bytes));
      SmallVector<Value> result;
      for (int64_t u = 0; u < units; ++u)
        result.append(words);
      rewriter.replaceOpWithMultiple(op, {result});
      return success();
    }
    // Element of row 16 u + 8 h + g within a strip: 8 g + 2 u + h.
    Value g = lb.lshr(lb.laneId(), 2);
    Value strip = lb.div(adaptor.getUnit(), 4);
    Value unit = lb.and_(adaptor.getUnit(), 3);
    Value element =
        lb.add(lb.shl(strip, 6), lb.add(lb.shl(g, 3), lb.shl(unit, 1)));
    Value base = lb.offset(
        tileBase(lb, op, adaptor),
        lb.add(lb.mul(adaptor.getGroup(), groupBytes), lb.mul(element, bytes)));
    auto load = [&](Value pointer, int64_t count) {
      if (bytes == 1)
        return loadBytePairs(lb, pointer, count);
      SmallVector<Value> loaded;
      for (int64_t left = count * wordsOfGroup, at = 0; left > 0;
           left -= 4, at += 16)
        loaded.append(lb.loadWords(lb.offset(pointer, at),
                                   std::min<int64_t>(left, 4), lb.i32()));
      return loaded;
    };
    SmallVector<SmallVector<Value>> byGroup;
    for (int64_t i = 0; i < groups; ++i) {
      Value pointer = lb.offset(base, i * groupBytes);
      if (op.getUnitStride() == 1) {
        byGroup.push_back(load(pointer, units));
        continue;
      }
      SmallVector<Value> &words = byGroup.emplace_back();
      for (int64_t u = 0; u < units; ++u)
        words.append(load(lb.offset(pointer, u * 64 * bytes), 1));
    }
    SmallVector<Value> words;
    for (int64_t u = 0; u < units; ++u)
      for (int64_t i = 0; i < groups; ++i)
        for (int64_t w = 0; w < wordsOfGroup; ++w)
          words.push_back(byGroup[i][u * wordsOfGroup + w]);
    rewriter.replaceOpWithMultiple(op, {words});
    return success();
  }

  /// One scale, for rows g and g + 8: a word that holds it, or holds it twice.
  static Value loadTwice(LoweringBuilder &lb, Value pointer, int64_t bytes) {
    if (bytes == 4)
      return lb.load(lb.i32(), pointer, 4);
    Type type = lb.b.getIntegerType(8 * bytes);
    return lb.mul(lb.zext(lb.load(type, pointer, bytes)),
                  int64_t(1) << (8 * bytes) | 1);
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
      NumberFormat format = op.getScale().getFormat();
      int64_t wordsOfGroup = wordsOfScales(format);
      SmallVector<Value> scaleWords(adaptor.getScales().slice(
          u * scaleType.getDimSize(1) + op.getGroup() * wordsOfGroup,
          wordsOfGroup));
      auto [low, high] = unpackScales(lb, scaleWords, format, op.getExponent());
      for (int64_t i = 0; i < perUnit; ++i) {
        int64_t at = u * perUnit + i;
        Value partial = adaptor.getPartial()[at];
        if (partial.getType().isInteger())
          partial =
              LLVM::SIToFPOp::create(rewriter, op.getLoc(), lb.f32(), partial);
        result.push_back(LLVM::FMAOp::create(rewriter, op.getLoc(),
                                             i % 4 < 2 ? low : high, partial,
                                             adaptor.getAccumulators()[at]));
      }
    }
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }
};

struct LowerLoadTokenScales : OpConversionPattern<LoadTokenScalesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadTokenScalesOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    auto type = cast<VectorType>(op.getScales().getType());
    int64_t bytes = type.getDimSize(1) == 2 ? 4 : 1;
    if (op.getTokenRows()) {
      // Rows g and g + 8 of each unit.
      Value row = lb.add(adaptor.getToken(), lb.lshr(lb.laneId(), 2));
      Value element =
          lb.add(lb.mul(adaptor.getGroup(), op.getTileTokens()), row);
      Value base = lb.offset(tileBase(lb, op, adaptor), lb.mul(element, bytes));
      SmallVector<Value> words;
      for (int64_t u = 0; u < type.getDimSize(0); ++u) {
        Value low = lb.offset(base, 64 * u * bytes);
        Value high = lb.offset(base, (64 * u + 8) * bytes);
        if (bytes == 4) {
          words.push_back(lb.load(lb.i32(), low, 4));
          words.push_back(lb.load(lb.i32(), high, 4));
          continue;
        }
        Type byte = lb.b.getIntegerType(8);
        words.push_back(lb.or_(lb.zext(lb.load(byte, low, 1)),
                               lb.shl(lb.zext(lb.load(byte, high, 1)), 8)));
      }
      rewriter.replaceOpWithMultiple(op, {words});
      return success();
    }
    // Columns 2 t and 2 t + 1 of each tile, which lie side by side.
    Value column = lb.shl(lb.and_(lb.laneId(), 3), 1);
    Value element = lb.add(lb.mul(adaptor.getGroup(), op.getTileTokens()),
                           lb.add(adaptor.getToken(), column));
    Value base = lb.offset(tileBase(lb, op, adaptor), lb.mul(element, bytes));
    SmallVector<Value> words;
    for (int64_t t = 0; t < type.getDimSize(0); ++t) {
      Value pointer = lb.offset(base, 8 * t * bytes);
      if (bytes == 4)
        words.append(lb.loadWords(pointer, 2, lb.i32()));
      else
        words.push_back(lb.zext(lb.load(lb.i16(), pointer, 2)));
    }
    rewriter.replaceOpWithMultiple(op, {words});
    return success();
  }
};

struct LowerMultiplyScales : OpConversionPattern<MultiplyScalesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MultiplyScalesOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    auto type = cast<VectorType>(op.getScales().getType());
    NumberFormat format = op.getScale().getFormat();
    NumberFormat tokenFormat = op.getTokenScale().getFormat();
    int64_t count = wordsOfScales(format);
    int64_t tokenCount = wordsOfScales(tokenFormat);
    SmallVector<Value> result;
    for (int64_t u = 0; u < type.getDimSize(0); ++u) {
      SmallVector<Value> words(adaptor.getScales().slice(
          u * type.getDimSize(1) + op.getGroup() * count, count));
      SmallVector<Value> tokenWords(
          adaptor.getTokenScales().slice(u * tokenCount, tokenCount));
      auto [low, high] = unpackScales(lb, words, format, op.getExponent());
      auto [tokenLow, tokenHigh] = unpackScales(lb, tokenWords, tokenFormat);
      for (auto [scale, tokenScale] :
           {std::pair(low, tokenLow), std::pair(high, tokenHigh)}) {
        Value product =
            LLVM::FMulOp::create(rewriter, op.getLoc(), tokenScale, scale);
        result.push_back(lb.bitcast(product, lb.i32()));
      }
    }
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }
};

struct LowerAccumulate : OpConversionPattern<AccumulateOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AccumulateOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    auto type = cast<VectorType>(op.getResult().getType());
    int64_t tiles = type.getDimSize(1);
    SmallVector<Value> partial = toFloat(
        lb, cast<VectorType>(op.getPartial().getType()), adaptor.getPartial());
    SmallVector<std::pair<Value, Value>> scales; // of a tile's two columns
    if (op.getScales()) {
      ValueRange words = adaptor.getScales();
      bool isWide = words.size() == size_t(2 * tiles);
      for (int64_t t = 0; t < tiles; ++t)
        scales.push_back(
            isWide ? std::pair(lb.bitcast(words[2 * t], lb.f32()),
                               lb.bitcast(words[2 * t + 1], lb.f32()))
                   : unpackScales(lb, words[t], NumberFormat::e8m0()));
    }
    SmallVector<Value> result;
    for (auto [i, value] : llvm::enumerate(partial)) {
      Value sum = op.getAccumulators() ? adaptor.getAccumulators()[i] : Value();
      if (scales.empty()) {
        result.push_back(
            sum ? LLVM::FAddOp::create(rewriter, op.getLoc(), sum, value)
                : value);
        continue;
      }
      auto [even, odd] = scales[i / 4 % tiles];
      Value scale = i % 2 == 0 ? even : odd;
      result.push_back(
          sum ? LLVM::FMAOp::create(rewriter, op.getLoc(), scale, value, sum)
                    .getResult()
              : LLVM::FMulOp::create(rewriter, op.getLoc(), scale, value)
                    .getResult());
    }
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }

  /// Four f32 a unit and tile, of f32, integers or pairs of f16.
  static SmallVector<Value> toFloat(LoweringBuilder &lb, VectorType type,
                                    ValueRange values) {
    SmallVector<Value> result;
    if (type.getElementType().isF32())
      return SmallVector<Value>(values);
    Type half = lb.b.getF16Type();
    for (Value value : values) {
      if (type.getDimSize(2) == 4) {
        result.push_back(LLVM::SIToFPOp::create(lb.b, lb.loc, lb.f32(), value));
        continue;
      }
      Value pair = lb.bitcast(value, lb.vector(2, half));
      for (int64_t i = 0; i < 2; ++i)
        result.push_back(LLVM::FPExtOp::create(lb.b, lb.loc, lb.f32(),
                                               lb.extractElement(pair, i)));
    }
    return result;
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

/// Integer sums to f32: register by register.
struct LowerToFloat : OpConversionPattern<arith::SIToFPOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::SIToFPOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> values;
    for (Value v : adaptor.getIn())
      values.push_back(LLVM::SIToFPOp::create(rewriter, op.getLoc(),
                                              rewriter.getF32Type(), v));
    rewriter.replaceOpWithMultiple(op, {values});
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
      values.push_back(LLVM::ConstantOp::create(rewriter, op.getLoc(),
                                                dense.getElementType(), value));
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

} // namespace

/// An 8-bit scale, in the low byte of an i32, in f32.
static Value scaleFromByte(LoweringBuilder &lb, Value byte,
                           const NumberFormat &format) {
  if (format.isE8M0()) {
    // The byte is f32's exponent; 0 is the subnormal 2^-127, 255 is NaN: both
    // have the first bit of the mantissa set.
    Value isEnd = lb.ult(lb.and_(lb.add(byte, 1), 255), 2);
    Value bits =
        lb.or_(lb.shl(byte, 23), lb.select(isEnd, lb.c(0x00400000), lb.c(0)));
    return lb.bitcast(bits, lb.f32());
  }
  // Sign, exponent and mantissa under f32's, times the quotient of the biases,
  // which is exact and right for subnormals.
  int64_t bias = (int64_t(1) << (format.exponentBits - 1)) - 1;
  Value magnitude = lb.and_(byte, 0x7f);
  Value bits = lb.or_(lb.shl(magnitude, 23 - format.mantissaBits),
                      lb.shl(lb.and_(byte, 0x80), 24));
  Value value = LLVM::FMulOp::create(lb.b, lb.loc, lb.bitcast(bits, lb.f32()),
                                     lb.powerOfTwo(127 - bias));
  // e4m3 has one NaN, e5m2 infinities and NaN from 0x7c on.
  int64_t first = format.specials == NumberFormat::Specials::FN ? 0x7f : 0x7c;
  Value special = lb.or_(bits, lb.c(0x7f800000));
  return lb.select(lb.ult(magnitude, first), value,
                   lb.bitcast(special, lb.f32()));
}

std::pair<Value, Value> humming::unpackScales(LoweringBuilder &lb,
                                              ArrayRef<Value> words,
                                              const NumberFormat &format,
                                              int64_t exponent) {
  std::pair<Value, Value> scales;
  Value word = words.front();
  if (format.bits == 32) {
    scales = {lb.bitcast(words[0], lb.f32()), lb.bitcast(words[1], lb.f32())};
  } else if (format.bits == 8) {
    scales = {scaleFromByte(lb, lb.and_(word, 0xff), format),
              scaleFromByte(lb, lb.and_(lb.lshr(word, 8), 0xff), format)};
  } else if (format.isBF16()) { // the high half of an f32
    scales = {lb.bitcast(lb.shl(word, 16), lb.f32()),
              lb.bitcast(lb.and_(word, 0xffff0000), lb.f32())};
  } else {
    Type half = lb.b.getF16Type();
    auto extend = [&](Value bits) -> Value {
      return LLVM::FPExtOp::create(lb.b, lb.loc, lb.f32(),
                                   lb.bitcast(lb.trunc(bits, lb.i16()), half));
    };
    scales = {extend(word), extend(lb.lshr(word, 16))};
  }
  if (exponent == 0)
    return scales;
  Value factor = lb.powerOfTwo(exponent);
  return {LLVM::FMulOp::create(lb.b, lb.loc, scales.first, factor),
          LLVM::FMulOp::create(lb.b, lb.loc, scales.second, factor)};
}

void humming::populateFragmentLoweringPatterns(const TypeConverter &converter,
                                               RewritePatternSet &patterns) {
  patterns.add<LowerLoadWeights, LowerLoadPlainWeights, LowerLoadActivations,
               LowerLoadScales, LowerLoadTokenScales, LowerScaleAccumulate,
               LowerMultiplyScales, LowerAccumulate, LowerExtract,
               LowerFromElements, LowerConstant, LowerToFloat>(
      converter, patterns.getContext());
}
