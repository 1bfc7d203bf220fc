//===- SegmentLowering.cpp - Quantization of activations --------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The f32 operations and their order are those of quantizeScale and
// quantizeValue (lib/Quant/QuantizeActivations.cpp), so that results have the
// same bits. Thread l of a segment's `lanes` holds chunks l, l + lanes, ... of
// 8 values: neighbouring threads read neighbouring 16 bytes.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "LoweringBuilder.h"
#include "LoweringPatterns.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

constexpr int64_t kChunk = 8; // values of a chunk

/// Floats and a few instructions that LLVM has no op for.
struct FloatBuilder : LoweringBuilder {
  FloatBuilder(OpBuilder &b, Location loc) : LoweringBuilder{b, loc} {}

  Value f(double v) {
    return LLVM::ConstantOp::create(b, loc, f32(), b.getF32FloatAttr(float(v)));
  }
  Value fadd(Value x, Value y) { return LLVM::FAddOp::create(b, loc, x, y); }
  Value fsub(Value x, Value y) { return LLVM::FSubOp::create(b, loc, x, y); }
  Value fmul(Value x, Value y) { return LLVM::FMulOp::create(b, loc, x, y); }
  Value fma(Value x, Value y, Value z) {
    return LLVM::FMAOp::create(b, loc, x, y, z);
  }
  /// To nearest, as IEEE 754 has it.
  Value fdiv(Value x, Value y) { return LLVM::FDivOp::create(b, loc, x, y); }
  Value umax(Value x, Value y) { return LLVM::UMaxOp::create(b, loc, x, y); }
  Value smax(Value x, Value y) { return LLVM::SMaxOp::create(b, loc, x, y); }
  Value smin(Value x, Value y) { return LLVM::SMinOp::create(b, loc, x, y); }
  Value compare(LLVM::ICmpPredicate predicate, Value x, Value y) {
    return LLVM::ICmpOp::create(b, loc, predicate, x, y);
  }

  /// An instruction without side effects.
  Value instruction(Type type, ValueRange operands, StringRef text,
                    StringRef constraints) {
    return LLVM::InlineAsmOp::create(
               b, loc, type, operands, text, constraints,
               /*has_side_effects=*/false, /*is_align_stack=*/false,
               LLVM::TailCallKind::None,
               LLVM::AsmDialectAttr::get(b.getContext(),
                                         LLVM::AsmDialect::AD_ATT),
               ArrayAttr())
        .getResult(0);
  }
  Value exp2(Value x) {
    return instruction(f32(), x, "ex2.approx.f32 $0, $1;", "=f,f");
  }
  /// x / y to 2 ulp.
  Value quotient(Value x, Value y) {
    return instruction(f32(), {x, y}, "div.full.f32 $0, $1, $2;", "=f,f,f");
  }
  /// To the nearest integer, ties to even; NaN becomes 0.
  Value toInteger(Value x) {
    return instruction(i32(), x, "cvt.rni.s32.f32 $0, $1;", "=r,f");
  }
  Value absolute(Value x) {
    return bitcast(and_(bitcast(x, i32()), 0x7FFFFFFF), f32());
  }
  /// Ordered as the floats are, as signed integers; its own inverse.
  Value orderedBits(Value bits) {
    Value sign = LLVM::AShrOp::create(b, loc, bits, c(31));
    return xor_(bits, and_(sign, 0x7FFFFFFF));
  }
  /// e^-x.
  Value expNegative(Value x) { return exp2(fmul(x, f(-M_LOG2E))); }

  Value gate(GateKind kind, Value x) {
    switch (kind) {
    case GateKind::None:
      return x;
    case GateKind::Silu:
      return quotient(x, fadd(expNegative(x), f(1)));
    case GateKind::GeluTanh: {
      Value inner = fma(fmul(x, x), f(0.044715), f(1));
      Value argument = fmul(fmul(x, inner), f(2 * std::sqrt(2 / M_PI)));
      return quotient(x, fadd(expNegative(argument), f(1)));
    }
    case GateKind::Gelu:
      break;
    }
    // erfc(z), z >= 0, is e^(-z^2) times a polynomial in t = 1 / (1 + p z)
    // (Abramowitz and Stegun 7.1.26).
    Value z = fmul(absolute(x), f(M_SQRT1_2));
    Value t = quotient(f(1), fma(z, f(0.3275911), f(1)));
    Value polynomial = f(1.061405429);
    for (double a : {-1.453152027, 1.421413741, -0.284496736, 0.254829592})
      polynomial = fma(polynomial, t, f(a));
    Value erfc = fmul(fmul(polynomial, t), expNegative(fmul(z, z)));
    Value isNegative =
        compare(LLVM::ICmpPredicate::slt, bitcast(x, i32()), c(0));
    Value factor = select(isNegative, erfc, fsub(f(2), erfc));
    return fmul(fmul(x, f(0.5)), factor);
  }
};

/// Where a thread's chunks lie in a matrix.
struct ChunkPlace {
  Value line;   ///< i64: elements before the row
  Value column; ///< of the first chunk
  Value inRow;
  Value bound;
  int64_t step; ///< columns from a chunk to the next

  ChunkPlace(FloatBuilder &lb, Value row, Value column, Value rowBound,
             Value columnBound, Value stride, int64_t lanes)
      : bound(columnBound), step(kChunk * lanes) {
    line = lb.mul(lb.zext64(row), lb.zext64(stride));
    this->column = lb.add(column, lb.mul(lb.rem(lb.threadId(), lanes), kChunk));
    inRow = lb.ult(row, rowBound);
  }
  Value element(FloatBuilder &lb, int64_t chunk) const {
    return lb.add(lb.zext64(lb.add(column, chunk * step)), line);
  }
  Value inside(FloatBuilder &lb, int64_t chunk, int64_t element) const {
    return lb.and_(inRow,
                   lb.ult(lb.add(column, chunk * step + element), bound));
  }
};

struct LowerLoadSegment : OpConversionPattern<LoadSegmentOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadSegmentOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FloatBuilder lb(rewriter, op.getLoc());
    ChunkPlace place(lb, adaptor.getRow(), adaptor.getColumn(),
                     adaptor.getRowBound(), adaptor.getColumnBound(),
                     adaptor.getStride(), op.getLanes());
    GateKind kind =
        llvm::cantFail(parseGateKind(op.getGate().value_or("none")));
    int64_t chunks = cast<VectorType>(op.getValues().getType()).getDimSize(0);
    SmallVector<Value> values;
    for (int64_t c = 0; c < chunks; ++c) {
      Value pointer =
          lb.offset(adaptor.getSource(), lb.shl(place.element(lb, c), 1));
      if (kind == GateKind::None) {
        values.append(load(lb, op, place, pointer, c));
        continue;
      }
      Value other =
          lb.offset(pointer, lb.shl(lb.zext64(adaptor.getGateStride()), 1));
      SmallVector<Value> gates = load(lb, op, place, pointer, c);
      SmallVector<Value> factors = load(lb, op, place, other, c);
      for (auto [gate, factor] : llvm::zip(gates, factors))
        values.push_back(lb.fmul(lb.gate(kind, gate), factor));
    }
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }

  /// A chunk in f32, in pieces of the granule.
  static SmallVector<Value> load(FloatBuilder &lb, LoadSegmentOp op,
                                 const ChunkPlace &place, Value pointer,
                                 int64_t chunk) {
    int64_t granule = op.getGranule();
    NumberFormat format = op.getFormat().getFormat();
    Value zero = lb.c(0);
    SmallVector<Value> values;
    for (int64_t byte = 0; byte < 2 * kChunk; byte += granule) {
      Value inside = place.inside(lb, chunk, byte / 2);
      int64_t count = std::max<int64_t>(1, granule / 4);
      SmallVector<Value> words =
          lb.choose(inside, SmallVector<Value>(count, zero), [&] {
            Value from = lb.offset(pointer, byte);
            if (granule >= 4)
              return lb.loadWords(from, count, lb.i32());
            return SmallVector<Value>{lb.zext(lb.load(lb.i16(), from, 2))};
          });
      for (Value word : words) {
        auto [low, high] = unpackScales(lb, word, format);
        values.push_back(low);
        if (granule >= 4)
          values.push_back(high);
      }
    }
    return values;
  }
};

struct LowerSegmentRange : OpConversionPattern<SegmentRangeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SegmentRangeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FloatBuilder lb(rewriter, op.getLoc());
    Value high = adaptor.getHigh().front();
    if (!op.getLow()) {
      for (Value value : adaptor.getValues())
        high = lb.umax(high, lb.and_(lb.bitcast(value, lb.i32()), 0x7FFFFFFF));
      rewriter.replaceOp(op, high);
      return success();
    }
    Value low = adaptor.getLow().front();
    for (Value value : adaptor.getValues()) {
      Value bits = lb.orderedBits(lb.bitcast(value, lb.i32()));
      high = lb.smax(high, bits);
      low = lb.smin(low, bits);
    }
    rewriter.replaceOp(op, {high, low});
    return success();
  }
};

struct LowerSegmentScale : OpConversionPattern<SegmentScaleOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SegmentScaleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FloatBuilder lb(rewriter, op.getLoc());
    SmallVector<Value> range = {adaptor.getHigh()};
    if (adaptor.getLow())
      range.push_back(adaptor.getLow());
    combineLanes(lb, range, adaptor.getScratch(), op.getLanes());
    if (range.size() == 2) {
      rewriter.replaceOp(op, asymmetricScale(lb, range[0], range[1]));
      return success();
    }
    rewriter.replaceOp(op,
                       symmetricScale(lb, range[0], op.getCodes().getFormat(),
                                      op.getFormat().getFormat()));
    return success();
  }

  /// Element 0 by the largest, 1 by the smallest.
  static void combine(FloatBuilder &lb, SmallVectorImpl<Value> &range,
                      ArrayRef<Value> other) {
    if (range.size() == 1) {
      range[0] = lb.umax(range[0], other[0]);
      return;
    }
    range[0] = lb.smax(range[0], other[0]);
    range[1] = lb.smin(range[1], other[1]);
  }

  static void combineLanes(FloatBuilder &lb, SmallVectorImpl<Value> &range,
                           Value scratch, int64_t lanes) {
    for (int64_t distance = 1; distance < std::min<int64_t>(lanes, 32);
         distance *= 2) {
      SmallVector<Value> other;
      for (Value value : range)
        other.push_back(NVVM::ShflOp::create(lb.b, lb.loc, lb.i32(), lb.c(-1),
                                             value, lb.c(distance), lb.c(31),
                                             NVVM::ShflKind::bfly, UnitAttr()));
      combine(lb, range, other);
    }
    if (lanes <= 32)
      return;
    // Two words a warp.
    Value thread = lb.threadId();
    lb.when(lb.eq(lb.laneId(), lb.c(0)), [&] {
      Value mine = lb.offset(scratch, lb.shl(lb.lshr(thread, 5), 3));
      for (auto [i, value] : llvm::enumerate(range))
        lb.store(value, lb.offset(mine, 4 * int64_t(i)), 4);
    });
    lb.barrier();
    Value first =
        lb.offset(scratch, lb.mul(lb.div(thread, lanes), lanes / 32 * 8));
    for (int64_t w = 0; w < lanes / 32; ++w) {
      SmallVector<Value> other;
      for (size_t i = 0; i < range.size(); ++i)
        other.push_back(
            lb.load(lb.i32(), lb.offset(first, 8 * w + 4 * int64_t(i)), 4));
      combine(lb, range, other);
    }
  }

  /// Scales of ranges that are special, where `bits` and `inverse` are not.
  static std::pair<Value, Value> select(FloatBuilder &lb, Value isSpecial,
                                        Value isZero, Value bits, Value inverse,
                                        int64_t nan, int64_t one) {
    bits = lb.select(isSpecial, lb.c(nan), lb.select(isZero, lb.c(one), bits));
    inverse =
        lb.select(isSpecial, lb.f(0), lb.select(isZero, lb.f(1), inverse));
    return {bits, inverse};
  }

  static SmallVector<Value> symmetricScale(FloatBuilder &lb, Value high,
                                           const NumberFormat &codes,
                                           const NumberFormat &format) {
    Value isSpecial =
        lb.compare(LLVM::ICmpPredicate::uge, high, lb.c(0x7F800000));
    Value isZero = lb.eq(high, lb.c(0));
    Value quotient =
        lb.fdiv(lb.bitcast(high, lb.f32()), lb.f(largestCode(codes)));
    // Positive floats are ordered as their bits are.
    Value bits = lb.umax(lb.bitcast(quotient, lb.i32()), lb.c(0x00800000));
    if (format.isE8M0()) {
      Value up =
          lb.select(lb.eq(lb.and_(bits, 0x7FFFFF), lb.c(0)), lb.c(0), lb.c(1));
      Value byte = lb.add(lb.lshr(bits, 23), up);
      Value inverse = lb.bitcast(lb.shl(lb.sub(lb.c(254), byte), 23), lb.f32());
      auto [scale, factor] =
          select(lb, isSpecial, isZero, byte, inverse, 0xFF, 127);
      return {scale, factor};
    }
    Value inverse = lb.fdiv(lb.f(1), lb.bitcast(bits, lb.f32()));
    auto [scale, factor] =
        select(lb, isSpecial, isZero, bits, inverse, 0x7FFFFFFF, 0x3F800000);
    return {scale, factor};
  }

  static SmallVector<Value> asymmetricScale(FloatBuilder &lb, Value high,
                                            Value low) {
    using Predicate = LLVM::ICmpPredicate;
    // Infinities and NaN are outside of the order of the numbers.
    Value isSpecial = LLVM::OrOp::create(
        lb.b, lb.loc, lb.compare(Predicate::sge, high, lb.c(0x7F800000)),
        lb.compare(Predicate::sle, low, lb.c(int32_t(0x807FFFFF))));
    Value isZero = lb.eq(lb.or_(high, low), lb.c(0));
    Value largest = lb.bitcast(lb.orderedBits(high), lb.f32());
    Value smallest = lb.bitcast(lb.orderedBits(low), lb.f32());
    Value width =
        lb.fsub(lb.fdiv(largest, lb.f(255)), lb.fdiv(smallest, lb.f(255)));
    Value bits = lb.umax(lb.bitcast(width, lb.i32()), lb.c(0x00800000));
    Value inverse = lb.fdiv(lb.f(1), lb.bitcast(bits, lb.f32()));
    Value zero = lb.sub(lb.c(-128), lb.toInteger(lb.fmul(smallest, inverse)));
    zero = lb.smin(lb.smax(zero, lb.c(-128)), lb.c(127));
    Value isOther = LLVM::OrOp::create(lb.b, lb.loc, isSpecial, isZero);
    zero = lb.select(isOther, lb.c(0), zero);
    auto [scale, factor] =
        select(lb, isSpecial, isZero, bits, inverse, 0x7FFFFFFF, 0x3F800000);
    return {scale, factor, zero};
  }
};

struct LowerStaticScale : OpConversionPattern<StaticScaleOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StaticScaleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FloatBuilder lb(rewriter, op.getLoc());
    SmallVector<Value> results = {
        lb.fdiv(lb.f(1), lb.load(lb.f32(), adaptor.getScales(), 4))};
    if (adaptor.getZeroPoints())
      results.push_back(lb.load(lb.i32(), adaptor.getZeroPoints(), 4));
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct LowerStoreSegment : OpConversionPattern<StoreSegmentOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreSegmentOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FloatBuilder lb(rewriter, op.getLoc());
    ChunkPlace place(lb, adaptor.getRow().front(), adaptor.getColumn().front(),
                     adaptor.getRowBound().front(),
                     adaptor.getColumnBound().front(),
                     adaptor.getStride().front(), op.getLanes());
    NumberFormat format = op.getFormat().getFormat();
    Value inverse = adaptor.getInverse().front();
    Value zero = op.getZeroPoint() ? adaptor.getZeroPoint().front() : Value();
    int64_t chunks = cast<VectorType>(op.getValues().getType()).getDimSize(0);
    int64_t granule =
        std::min<int64_t>(op.getGranule(), kChunk * format.bits / 8);
    int64_t perPiece = granule * 8 / format.bits;
    for (int64_t c = 0; c < chunks; ++c) {
      ValueRange values =
          ValueRange(adaptor.getValues()).slice(c * kChunk, kChunk);
      SmallVector<Value> words = convert(lb, values, inverse, zero, format);
      Value at = place.element(lb, c);
      at = format.bits == 4 ? lb.lshr(at, 1) : at;
      Value pointer = lb.offset(adaptor.getDest().front(), at);
      for (int64_t i = 0; i < kChunk / perPiece; ++i)
        lb.when(place.inside(lb, c, i * perPiece), [&] {
          lb.store(piece(lb, words, i * granule, granule),
                   lb.offset(pointer, i * granule), unsigned(granule));
        });
    }
    rewriter.eraseOp(op);
    return success();
  }

  /// `size` bytes from byte `at` of the words.
  static Value piece(FloatBuilder &lb, ArrayRef<Value> words, int64_t at,
                     int64_t size) {
    if (size >= 4)
      return size == 4 ? words[at / 4] : lb.pack(words.slice(at / 4, size / 4));
    return lb.trunc(lb.lshr(words[at / 4], at % 4 * 8),
                    lb.b.getIntegerType(unsigned(8 * size)));
  }

  /// The codes of a chunk: two words, one of 4-bit codes.
  static SmallVector<Value> convert(FloatBuilder &lb, ValueRange values,
                                    Value inverse, Value zero,
                                    const NumberFormat &format) {
    SmallVector<Value> scaled;
    for (Value value : values)
      scaled.push_back(lb.fmul(value, inverse));
    SmallVector<Value> words;
    if (!format.isInteger()) {
      std::string text =
          "cvt.rn.satfinite." + format.str() + "x2.f32 $0, $1, $2;";
      for (int64_t i = 0; i < kChunk; i += 4) {
        // The first source is the upper half.
        auto pair = [&](int64_t j) {
          return lb.zext(lb.instruction(lb.i16(), {scaled[j + 1], scaled[j]},
                                        text, "=h,f,f"));
        };
        words.push_back(lb.or_(pair(i), lb.shl(pair(i + 2), 16)));
      }
      return words;
    }
    int64_t most = int64_t(largestCode(format));
    int64_t least = zero ? -128 : -most;
    Value low = lb.c(least), high = lb.c(most);
    if (zero) {
      low = lb.sub(low, zero);
      high = lb.sub(high, zero);
    }
    int64_t perWord = 32 / format.bits;
    for (int64_t i = 0; i < kChunk; i += perWord) {
      Value word;
      for (int64_t j = 0; j < perWord; ++j) {
        Value code = lb.smin(lb.smax(lb.toInteger(scaled[i + j]), low), high);
        if (zero)
          code = lb.add(code, zero);
        code = lb.shl(lb.and_(code, (int64_t(1) << format.bits) - 1),
                      j * format.bits);
        word = word ? lb.or_(word, code) : code;
      }
      words.push_back(word);
    }
    return words;
  }
};

struct LowerStoreScale : OpConversionPattern<StoreScaleOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreScaleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FloatBuilder lb(rewriter, op.getLoc());
    int64_t bytes = op.getElementBits() / 8;
    Value isFirst = lb.eq(lb.rem(lb.threadId(), op.getLanes()), lb.c(0));
    lb.when(lb.and_(isFirst, adaptor.getInside()), [&] {
      Value value = adaptor.getScale();
      if (bytes == 1)
        value = lb.trunc(value, lb.b.getI8Type());
      lb.store(value,
               lb.offset(adaptor.getDest(), lb.mul(adaptor.getIndex(), bytes)),
               unsigned(bytes));
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void humming::populateSegmentLoweringPatterns(const TypeConverter &converter,
                                              RewritePatternSet &patterns) {
  patterns.add<LowerLoadSegment, LowerSegmentRange, LowerSegmentScale,
               LowerStaticScale, LowerStoreSegment, LowerStoreScale>(
      converter, patterns.getContext());
}
