//===- SixteenBitSequences.cpp - Codes to f16 and bf16 ----------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The packed layout puts the two codes of a register at the same bit of both
// halves of a word.
//
// *Integers* go into the mantissa of a magic number whose last mantissa bit is
// worth 1 (1024 in f16, 128 in bf16): OR-ing the exponent in makes magic + q,
// and subtracting magic + z is exact. A code at bit p of the mantissa is q *
// 2^p there; an fma by 2^-p takes that back, so several columns of a word need
// no shift.
//
//   u4 to f16, word 0xHGFE_DCBA (nibbles, A lowest):
//   column 0   (w      & 0x000f000f) | 0x6400_6400 = 1024 + q,     - (1024 + z)
//   column 1   (w      & 0x00f000f0) | 0x6400_6400 = 1024 + 16 q,  * 1/16 - (64
//   + z) column 2   (w >> 8 & 0x000f000f) | ...         as column 0
//
// Seven bits are three planes; their bytes are joined four codes at a time, and
// go under the exponent by prmt as those of eight bits do.
//
// Signed codes have their sign bit flipped by the same lop3 and z = 2^(b-1):
// two's complement is the unsigned code of q + 2^(b-1). Eight bits do not fit
// bf16's mantissa; there the code alone is a number, q * 2^-133: a bf16 whose
// exponent is 0 or 1 has its mantissa and last exponent bit in one linear
// scale. An fma by 2^127 subtracts z * 2^-6, a multiplication by 64 finishes.
//
// *Floats* have exponent and mantissa shifted under the sign to where the
// operand has them. Subnormals come out right, since the operand's subnormals
// are linear in the same way; the value is 2^(bias of the operand - bias of the
// code) too small, which one exact multiplication mends. The NaN of e4m3 would
// become 480: an overflow of value * c, for a c that takes 480 but not 448 past
// the largest number, times zero, is added. Where the chip has it, cvt does all
// of it. e5m2 is the upper byte of an f16; its way to bf16 is through f32.
//
// *Tables* are looked up with prmt, which takes four bytes out of eight by four
// selectors: bytes of the table's values by halves of the table.
//
//===----------------------------------------------------------------------===//

#include "DequantSequences.h"
#include "Humming/Target/Dequant.h"
#include <cmath>

using namespace mlir;
using namespace humming;

namespace {

/// Packed arithmetic on two 16-bit floats.
class SixteenBitSequence : public DequantSequence {
public:
  void beginGroup(Value scales, Value zeroPoints) override {
    if (spec.hasScales) {
      Value both = spec.scale == spec.operand ? scales
                   : spec.scale.isE8M0()      ? convertE8M0(scales)
                                              : convertE4M3Scales(scales);
      for (int64_t row = 0; row < 2; ++row)
        scale[row] = toPair(broadcastHalf(both, row));
    }
    beginZeroPoints(zeroPoints);
  }

  Value buildRegister(int64_t index) override {
    Value value = buildValue(index);
    if (spec.zeroPoint == ZeroPointKind::Float)
      value = subtractFloatZero(value, rowOf(index));
    if (spec.hasScales)
      value = multiply(value, scale[rowOf(index)]);
    return toWord(value);
  }

protected:
  SixteenBitSequence(OpBuilder &b, Location loc, const DequantSpec &spec)
      : DequantSequence(b, loc, spec), isF16(spec.operand.isF16()),
        pair(VectorType::get(2, isF16 ? Type(b.getF16Type())
                                      : Type(b.getBF16Type()))) {}

  /// code - z (z = 0 for float zero points), exactly.
  virtual Value buildValue(int64_t index) = 0;
  virtual void beginZeroPoints(Value zeroPoints) {}

  Value splat(double v) {
    return LLVM::ConstantOp::create(
        b, loc, pair,
        DenseElementsAttr::get(pair, b.getFloatAttr(pair.getElementType(), v)));
  }
  Value toPair(Value v) { return LLVM::BitcastOp::create(b, loc, pair, v); }
  Value toWord(Value v) {
    return LLVM::BitcastOp::create(b, loc, b.getI32Type(), v);
  }
  Value fma(Value x, Value y, Value z) {
    return LLVM::FMAOp::create(b, loc, x, y, z);
  }
  Value negate(Value v) { return LLVM::FNegOp::create(b, loc, v); }
  /// x + y and x * y, rounded once. bf16 has no packed add and multiply before
  /// sm_90, an fma everywhere.
  Value add(Value x, Value y) {
    return isF16 ? LLVM::FAddOp::create(b, loc, x, y).getResult()
                 : fma(x, splat(1.0), y);
  }
  Value multiply(Value x, Value y) {
    return isF16 ? LLVM::FMulOp::create(b, loc, x, y).getResult()
                 : fma(x, y, splat(-0.0));
  }
  /// Half `i` in f32, and two f32 values rounded to a pair.
  Value extend(Value v, int64_t i) {
    return LLVM::FPExtOp::create(
        b, loc, b.getF32Type(),
        LLVM::ExtractElementOp::create(b, loc, v, word(i)));
  }
  Value round(Value low, Value high) {
    Value both =
        LLVM::PoisonOp::create(b, loc, VectorType::get(2, b.getF32Type()));
    both = LLVM::InsertElementOp::create(b, loc, both, low, word(0));
    both = LLVM::InsertElementOp::create(b, loc, both, high, word(1));
    return LLVM::FPTruncOp::create(b, loc, pair, both);
  }

  /// Float zero points are subtracted after the code is exact. In the operand's
  /// own format that rounds once; else the difference is taken in f32.
  void loadFloatZeroPoints(Value z) {
    for (int64_t row = 0; row < 2; ++row) {
      if (spec.scale == spec.operand) {
        minusFloatZero[row] = negate(toPair(broadcastHalf(z, row)));
        continue;
      }
      Value wide;
      if (spec.scale.isBF16()) { // the high half of an f32
        wide = row ? mask(z, 0xffff0000) : shiftLeft(z, 16);
        wide = LLVM::BitcastOp::create(b, loc, b.getF32Type(), wide);
      } else {
        Value half = LLVM::TruncOp::create(b, loc, b.getI16Type(),
                                           shiftRight(z, 16 * row));
        wide = LLVM::FPExtOp::create(
            b, loc, b.getF32Type(),
            LLVM::BitcastOp::create(b, loc, b.getF16Type(), half));
      }
      minusFloatZero[row] = negate(wide);
    }
  }
  Value subtractFloatZero(Value value, int64_t row) {
    if (spec.scale == spec.operand)
      return add(value, minusFloatZero[row]);
    Value halves[2];
    for (int64_t i = 0; i < 2; ++i)
      halves[i] =
          LLVM::FAddOp::create(b, loc, extend(value, i), minusFloatZero[row]);
    return round(halves[0], halves[1]);
  }

  /// Two bytes of a word, powers of two, as bf16. The exponent field is the
  /// byte; byte 0 is the subnormal 2^-127. Byte 255 has become infinity, which
  /// times zero is NaN; other scales times zero change nothing.
  Value convertE8M0(Value bytes) {
    Value fields = shiftLeft(permute(bytes, word(0), 0x4140), 7);
    auto halves = VectorType::get(2, b.getI16Type());
    Value least = LLVM::ConstantOp::create(
        b, loc, halves,
        DenseElementsAttr::get(halves, b.getI16IntegerAttr(0x40)));
    Value powers = toPair(LLVM::UMaxOp::create(
        b, loc, LLVM::BitcastOp::create(b, loc, halves, fields), least));
    return toWord(fma(powers, splat(0.0), powers));
  }

  /// Two bytes of a word, e4m3, exactly.
  Value convertE4M3Scales(Value bytes) {
    Value converted =
        cvtE4M3(LLVM::TruncOp::create(b, loc, b.getI16Type(), bytes));
    return isF16 ? converted : toWord(throughF32(converted));
  }

  /// cvt takes two e4m3 codes in 16 bits to an f16 pair.
  Value cvtE4M3(Value codes) {
    return LLVM::InlineAsmOp::create(
               b, loc, b.getI32Type(), codes, "cvt.rn.f16x2.e4m3x2 $0, $1;",
               "=r,h", /*has_side_effects=*/false, /*is_align_stack=*/false,
               LLVM::TailCallKind::None,
               LLVM::AsmDialectAttr::get(b.getContext(),
                                         LLVM::AsmDialect::AD_ATT),
               ArrayAttr())
        .getResult(0);
  }

  /// An f16 pair in bf16. Exact for what 8 bits hold.
  Value throughF32(Value halves) {
    Value f16Pair = LLVM::BitcastOp::create(
        b, loc, VectorType::get(2, b.getF16Type()), halves);
    return round(extend(f16Pair, 0), extend(f16Pair, 1));
  }

  bool isF16;
  VectorType pair;
  // Per row half: g (0) and g + 8 (1).
  Value scale[2], minusFloatZero[2];
};

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

class IntegerSequence : public SixteenBitSequence {
public:
  IntegerSequence(OpBuilder &b, Location loc, const DequantSpec &spec)
      : SixteenBitSequence(b, loc, spec) {}

private:
  // The magic exponent: its last mantissa bit is worth 1.
  double magicValue() const { return isF16 ? 1024 : 128; }
  int64_t magicBits() const { return isF16 ? 0x6400 : 0x4300; }
  int64_t mantissa() const { return spec.operand.mantissaBits; }
  bool isSigned() const {
    return spec.weight.kind == NumberFormat::Kind::Signed;
  }
  bool isWide() const { return bits > mantissa(); }
  int64_t signBit() const { return isSigned() ? int64_t(1) << (bits - 1) : 0; }

  /// The constant that codes without a loaded zero point are relative to.
  double constantZero() const {
    return spec.zeroPoint == ZeroPointKind::None
               ? double(int64_t(1) << (bits - 1))
               : 0.0;
  }

  void resetUnit() override {
    flipped.clear();
    joined.clear();
  }

  void beginZeroPoints(Value zeroPoints) override {
    for (int64_t row = 0; row < 2; ++row)
      minusOffset[row].clear();
    zeroWord = spec.zeroPoint == ZeroPointKind::Integer ? zeroPoints : Value();
    if (spec.zeroPoint == ZeroPointKind::Float)
      loadFloatZeroPoints(zeroPoints);
  }

  /// -(magic / 2^p + z), what a code at bit p of the mantissa is short of.
  Value offsetAt(int64_t row, int64_t p) {
    if (Value known = minusOffset[row].lookup(p))
      return known;
    Value value;
    if (!zeroWord)
      value = splat(-(std::ldexp(magicValue(), int(-p)) + constantZero()));
    else if (p != 0) // (magic + z) - (magic - magic / 2^p), exact
      value = LLVM::FAddOp::create(
          b, loc, offsetAt(row, 0),
          splat(magicValue() - std::ldexp(magicValue(), int(-p))));
    else // Byte `row` of the word is z; under the magic exponent, magic + z.
      value = negate(toPair(
          permute(zeroWord, word(magicBits() >> 8), row ? 0x4141 : 0x4040)));
    minusOffset[row][p] = value;
    return value;
  }

  Value buildValue(int64_t index) override {
    int64_t row = rowOf(index);
    if (isWide())
      return buildWide(index, row);
    if (bits == 8)
      return add(toPair(bytesUnder(index, magicBits() >> 8)), offsetAt(row, 0));
    if (bits == 7)
      return add(toPair(permute(sevenBits(index % 8), word(magicBits() >> 8),
                                index < 8 ? 0x4240 : 0x4341)),
                 offsetAt(row, 0));
    int64_t p =
        mantissaPosition(spec.weight, spec.operand,
                         spec.zeroPoint == ZeroPointKind::Integer, index);
    Value magic = codesAt(index, p, lanes(magicBits() | signBit() << p));
    if (p == 0)
      return add(toPair(magic), offsetAt(row, 0));
    return fma(toPair(magic), splat(std::ldexp(1.0, int(-p))),
               offsetAt(row, p));
  }

  /// The bytes of an 8-bit register in the low, `high` in the high byte of each
  /// half.
  Value bytesUnder(int64_t index, int64_t high) {
    Piece piece = piecesOf(index).front();
    Value source = words[piece.word];
    if (isSigned()) {
      Value &value = flipped[piece.word];
      if (!value)
        value = flipBits(source, 0x80808080);
      source = value;
    }
    int64_t column = piece.shift / 8;
    return permute(source, word(high), 0x4040 | (2 + column) << 8 | column);
  }

  /// The codes of registers i and i + 8 of seven bits, as the bytes of both
  /// halves. Three planes a register would cost three lop3 and as many shifts;
  /// here four codes are joined at once. Bytes i and i + 8 of the planes meet
  /// by prmt first (a word of the nibble plane has registers 4w to 4w + 3, one
  /// of the two-bit plane eight, that of one bit all).
  Value sevenBits(int64_t i) {
    auto share = [&](int64_t key, auto make) {
      Value &value = joined[key];
      if (!value) {
        Value made = make();
        joined[key] = made; // make() may have moved the entries
        return made;
      }
      return value;
    };
    auto shifted = [&](Value v, int64_t right) {
      return right >= 0 ? shiftRight(v, right) : shiftLeft(v, -right);
    };
    return share(i, [&] {
      // Low (high) bytes of two words, alternating.
      auto meet = [&](Value x, Value y, bool high) {
        return permute(x, y, high ? 0x7351 : 0x6240);
      };
      Value nibbles = share(8 + i / 2, [&] {
        return meet(words[i / 4], words[2 + i / 4], i / 2 % 2);
      });
      Value pairs =
          share(12 + i / 4, [&] { return meet(words[4], words[5], i / 4); });
      // Every other bit, so that the code's eighth is zero; signs flipped.
      Value single = share(14 + i % 2, [&] {
        int64_t every = i % 2 ? 0xaaaaaaaa : 0x55555555;
        Value half = mask(words[6], every);
        return isSigned() ? flipBits(half, every) : half;
      });
      Value six = select(word(0x0f0f0f0f), shifted(nibbles, i % 2 * 4),
                         shifted(pairs, i % 4 * 2 - 4));
      return select(word(0x3f3f3f3f), six, shifted(single, i - 6));
    });
  }

  /// Eight bits to bf16: (q * 2^-133) * 2^127 - z * 2^-6, times 2^6.
  Value buildWide(int64_t index, int64_t row) {
    Value &offset = minusOffset[row][0];
    if (!offset && zeroWord)
      offset = fma(toPair(permute(zeroWord, word(0), row ? 0x4141 : 0x4040)),
                   splat(-0x1p127), splat(-0.0));
    else if (!offset)
      offset = splat(constantZero() == 0 ? -0.0 : -constantZero() * 0x1p-6);
    Value small = fma(toPair(bytesUnder(index, 0)), splat(0x1p127), offset);
    return multiply(small, splat(64));
  }

  Value zeroWord;
  llvm::DenseMap<int64_t, Value> minusOffset[2];
  llvm::DenseMap<int64_t, Value> flipped;
  llvm::DenseMap<int64_t, Value> joined; ///< of seven bits, by what it holds
};

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

class FloatSequence : public SixteenBitSequence {
public:
  FloatSequence(OpBuilder &b, Location loc, const DequantSpec &spec)
      : SixteenBitSequence(b, loc, spec) {}

private:
  bool isE5M2() const { return spec.weight == NumberFormat::smallFloat(5, 2); }
  bool isE4M3() const { return spec.weight == NumberFormat::smallFloat(4, 3); }

  void resetUnit() override { gathered.clear(); }

  Value buildValue(int64_t index) override {
    if (isE5M2() && isF16)
      return toPair(upperBytes(index));
    if (isE5M2())
      return throughF32(upperBytes(index));
    if (isE4M3() && spec.nativeConvert) {
      Value converted = convertE4M3(index);
      return isF16 ? toPair(converted) : throughF32(converted);
    }
    Value value = multiply(toPair(shiftedFields(index)),
                           splat(std::ldexp(1.0, int(deficit()))));
    if (!isE4M3())
      return value;
    // 448 c is finite and 480 c is not: 65520 and 2^128 (1 - 2^-9) are where
    // rounding turns to infinity.
    Value overflow = multiply(value, splat(isF16 ? 140.0 : 0x1.1ap119));
    return fma(overflow, splat(0.0), value);
  }

  /// Bias of the operand minus bias of the code.
  int64_t deficit() const {
    return (int64_t(1) << (spec.operand.exponentBits - 1)) -
           (int64_t(1) << (spec.weight.exponentBits - 1));
  }

  /// e5m2 is an f16 without its lower byte.
  Value upperBytes(int64_t index) {
    Piece piece = piecesOf(index).front();
    int64_t column = piece.shift / 8;
    return permute(words[piece.word], word(0),
                   0x0404 | (2 + column) << 12 | column << 4);
  }

  /// cvt takes two codes: bytes 0 and 2 of a word, and 1 and 3.
  Value convertE4M3(int64_t index) {
    Piece piece = piecesOf(index).front();
    Value &pairs = gathered[piece.word];
    if (!pairs)
      pairs = permute(words[piece.word], words[piece.word], 0x3120);
    Value codes = LLVM::TruncOp::create(b, loc, b.getI16Type(),
                                        shiftRight(pairs, 2 * piece.shift));
    return cvtE4M3(codes);
  }

  /// Sign, exponent and mantissa where the operand has them.
  Value shiftedFields(int64_t index) {
    // From the top of each half: sign, then the fields, which move right by the
    // difference of the exponents' widths.
    int64_t right = spec.operand.exponentBits - spec.weight.exponentBits;
    int64_t top = 16 - bits;
    int64_t signs = lanes(0x8000);
    int64_t fields = lanes(((int64_t(1) << (bits - 1)) - 1) << (top - right));
    SmallVector<Piece> pieces = piecesOf(index);
    if (pieces.size() == 1) {
      const Piece &piece = pieces.front();
      Value magnitude =
          mask(moved(piece.word, piece.shift - (top - right)), fields);
      return merge(mask(moved(piece.word, piece.shift - top), signs),
                   magnitude);
    }
    Value codes = codesAt(index, top);
    Value magnitude = mask(shiftRight(codes, right), fields);
    return right == 0 ? codes : merge(mask(codes, signs), magnitude);
  }

  llvm::DenseMap<int64_t, Value> gathered;
};

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

class TableSequence : public SixteenBitSequence {
public:
  TableSequence(OpBuilder &b, Location loc, const DequantSpec &spec)
      : SixteenBitSequence(b, loc, spec) {
    for (int64_t i = 0; i < 16; ++i) {
      uint32_t code = spec.operand.encode(spec.table->values[i]);
      for (int64_t byte = 0; byte < 2; ++byte)
        bytes[byte][i / 4] |= int64_t(code >> (8 * byte) & 0xff)
                              << (8 * (i % 4));
    }
  }

private:
  void resetUnit() override { looked.clear(); }

  Value buildValue(int64_t index) override {
    if (bits < 4)
      return toPair(lookUpRegister(index));
    int64_t at = index / 4; // the word: one a step
    auto found = looked.find(at);
    if (found == looked.end())
      found = looked.try_emplace(at, lookUpWord(words[at])).first;
    return toPair(found->second[index % 4]);
  }

  /// Up to eight entries: the codes of both halves as two selectors.
  Value lookUpRegister(int64_t index) {
    Value codes = codesAt(index, 0);
    Value selector = merge(codes, shiftRight(codes, 12));
    Value halves[2];
    for (int64_t byte = 0; byte < 2; ++byte)
      halves[byte] =
          permute(word(bytes[byte][0]), word(bytes[byte][1]), selector);
    return permute(halves[0], halves[1], 0x5140);
  }

  /// Sixteen entries, four registers at a time. The low (high) half of a word
  /// has the codes of element 0 (1) of all four; bit 3 of a code says which
  /// half of the table its byte comes from.
  std::array<Value, 4> lookUpWord(Value w) {
    Value low = mask(w, 0x77777777);
    Value high = mask(shiftRight(w, 3), 0x11111111);
    // Per element: two words, entries of registers 0, 1 and of 2, 3.
    Value entries[2][2];
    for (int64_t element = 0; element < 2; ++element) {
      Value selector = shiftRight(low, 16 * element);
      Value upper =
          permute(word(0x0000ff00), word(0), shiftRight(high, 16 * element));
      Value byteWord[2];
      for (int64_t byte = 0; byte < 2; ++byte) {
        const int64_t *t = bytes[byte];
        Value fromLower = permute(word(t[0]), word(t[1]), selector);
        Value fromUpper = permute(word(t[2]), word(t[3]), selector);
        byteWord[byte] = select(upper, fromUpper, fromLower);
      }
      entries[element][0] = permute(byteWord[0], byteWord[1], 0x5140);
      entries[element][1] = permute(byteWord[0], byteWord[1], 0x7362);
    }
    std::array<Value, 4> registers;
    for (int64_t r = 0; r < 4; ++r)
      registers[r] = permute(entries[0][r / 2], entries[1][r / 2],
                             r % 2 ? 0x7632 : 0x5410);
    return registers;
  }

  int64_t bytes[2][4] = {};
  llvm::DenseMap<int64_t, std::array<Value, 4>> looked;
};

} // namespace

std::unique_ptr<DequantSequence>
humming::createSixteenBitSequence(OpBuilder &b, Location loc,
                                  const DequantSpec &spec) {
  if (spec.table)
    return std::make_unique<TableSequence>(b, loc, spec);
  if (spec.weight.isInteger())
    return std::make_unique<IntegerSequence>(b, loc, spec);
  // f16 has five exponent bits; all ones of them are infinities and NaN.
  bool fits = spec.weight.exponentBits < spec.operand.exponentBits ||
              spec.weight.specials == NumberFormat::Specials::IEEE;
  if (!spec.weight.isFloat() || !fits)
    return nullptr;
  return std::make_unique<FloatSequence>(b, loc, spec);
}
