//===- NarrowSequences.cpp - Codes to 8-bit and 4-bit operands --*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A register holds four codes of an 8-bit or eight of a 4-bit operand; scales
// are never multiplied in here, they go to the accumulators.
//
// *Integers to integers*: with the lane's sign bit set, q - z cannot borrow
// from the next lane, so one 32-bit subtraction does all lanes; flipping the
// sign bit back leaves two's complement.
//
//   u4, z = 8, lanes 0x80 | q:  0x8f - 0x08 = 0x87, ^ 0x80 = 0x07;
//                               0x80 - 0x08 = 0x78, ^ 0x80 = 0xf8 = -8
//
// Without zero points nothing is subtracted: the codes go to the top of the
// lane, where two's complement needs the sign bit flipped alone (q - 2^(b-1)
// times 2^(8-b)), by the lop3 that takes them out of their word.
//
//   u4: 0xf0 ^ 0x80 = 0x70 = 16 * 7,   0x00 ^ 0x80 = 0x80 = 16 * -8
//
// *Integers to floats*: sign and magnitude of the same difference. A float
// whose exponent is 0 or 1 is linear, so the magnitude is left in the lowest
// bits as a subnormal: exact up to 16 (e4m3) and 8 (e5m2). It is 2^9 and 2^16
// too small. Without zero points both signs are made at once, each without a
// borrow between lanes, and the sign bit of two's complement picks one:
//
//   u4, z = q ^ 8 (the difference's two's complement, unextended):
//     q >= 8: z itself;   q < 8: 0x90 - z = 0x80 | 8 - q
//
// *Floats to wider floats*: exponent and mantissa move right under the sign;
// the bias makes the value smaller by a power of two.
//
// *e2m1 to s8*: twice the value is 0, 1, 2, 3, 4, 6, 8 or 12. prmt looks four
// magnitudes up by three bits of four nibbles; a lane's sign bit guards the
// subtraction of 1 from those that are to be negated: -m = ~(m - 1).
//
// What is too small (or large) by a power of two is paid back in f32 with the
// scales (dequantExponent in Humming/Target/Dequant.h).
//
//===----------------------------------------------------------------------===//

#include "DequantSequences.h"
#include <array>

using namespace mlir;
using namespace humming;

namespace {

/// Codes that are the operand's own.
class IdentitySequence : public DequantSequence {
public:
  IdentitySequence(OpBuilder &b, Location loc, const DequantSpec &spec)
      : DequantSequence(b, loc, spec) {}

private:
  void beginGroup(Value, Value) override {}
  Value buildRegister(int64_t index) override {
    Value codes = words[piecesOf(index).front().word];
    // Unsigned codes without zero points mean q - 2^(b-1): the sign bit flips.
    return spec.weight.kind == NumberFormat::Kind::Unsigned
               ? flipBits(codes, lanes(int64_t(1) << (bits - 1)))
               : codes;
  }
};

/// Integers narrower than the operand.
class NarrowIntegerSequence : public DequantSequence {
public:
  NarrowIntegerSequence(OpBuilder &b, Location loc, const DequantSpec &spec)
      : DequantSequence(b, loc, spec) {}

private:
  bool toFloat() const { return spec.operand.isFloat(); }
  int64_t laneSign() const {
    return lanes(int64_t(1) << (spec.operand.bits - 1));
  }

  void beginGroup(Value, Value zeroPoints) override {
    for (int64_t row = 0; row < 2; ++row) {
      if (spec.zeroPoint == ZeroPointKind::None) {
        zero[row] = word(lanes(int64_t(1) << (bits - 1)));
        continue;
      }
      zero[row] = permute(zeroPoints, zeroPoints, row ? 0x1111 : 0x0000);
      if (spec.operand.bits == 4)
        zero[row] = merge(zero[row], shiftLeft(zero[row], 4));
    }
  }

  Value buildRegister(int64_t index) override {
    bool isSigned = spec.weight.kind == NumberFormat::Kind::Signed;
    if (!toFloat() && spec.zeroPoint == ZeroPointKind::None)
      return codesAt(index, spec.operand.bits - bits,
                     isSigned ? 0 : laneSign());
    if (toFloat() && spec.zeroPoint == ZeroPointKind::None) {
      int64_t half = int64_t(1) << (bits - 1);
      Value code = codesAt(index, 0, isSigned ? 0 : lanes(half));
      Value negative =
          LLVM::SubOp::create(b, loc, word(lanes(0x80 + 2 * half)), code);
      Value top = shiftLeft(code, spec.operand.bits - bits);
      return select(permute(top, top, 0xba98), negative, code);
    }
    int64_t flip = laneSign();
    if (isSigned)
      flip |= lanes(int64_t(1) << (bits - 1));
    Value difference = LLVM::SubOp::create(b, loc, codesAt(index, 0, flip),
                                           zero[rowOf(index)]);
    Value value = flipBits(difference, laneSign());
    return toFloat() ? signAndMagnitude(value) : value;
  }

  /// Bytes of two's complement to sign and magnitude.
  Value signAndMagnitude(Value value) {
    // Selectors 8 to 11: the sign of bytes 0 to 3, in all their bits.
    Value signs = permute(value, value, 0xba98);
    Value magnitude =
        LLVM::AddOp::create(b, loc, LLVM::XOrOp::create(b, loc, value, signs),
                            mask(signs, 0x01010101));
    return merge(mask(signs, 0x80808080), magnitude);
  }

  Value zero[2];
};

/// Floats to a float of 8 bits with at least as wide fields.
/// Three and five bits to the top of wider integers, without zero points. The
/// one-bit plane of register R lies at bit R of its byte, its other columns 2
/// or 4 apart, so every register has a distance of its own between the two. The
/// planes are joined first, where a shift of the one-bit plane serves several
/// registers, and go to the top together:
///
///   five bits   the nibble of an even register as it lies (bits 0 to 3), its
///               fifth bit at 4, then three up; of an odd one, one down, its
///               fifth bit at 7
///   three bits  columns at bits 0 and 4 (even) get their third bit at 2 and 6,
///               columns at 2 and 6 (odd), one down, at 3 and 7: two codes a
///               byte
class JoinedIntegerSequence : public DequantSequence {
public:
  JoinedIntegerSequence(OpBuilder &b, Location loc, const DequantSpec &spec)
      : DequantSequence(b, loc, spec) {}

private:
  void beginGroup(Value, Value) override {}
  void resetUnit() override {
    joined.clear();
    lastOf[0] = lastOf[1] = Value();
  }

  Value buildRegister(int64_t index) override {
    int64_t width = spec.operand.bits, top = width - bits;
    int64_t perWord = width / (bits - 1); // registers of a word
    int64_t w = index / perWord, column = index % perWord;
    // Odd ones have the code's last bit at the top of the lane, or below.
    bool isOdd = column & 1;
    Value join = joinOf(w, isOdd);
    // The lowest bit of the code in it.
    int64_t at = column * (bits - 1) - isOdd;
    Value codes =
        at < top ? shiftLeft(join, top - at) : shiftRight(join, at - top);
    int64_t flip = spec.weight.kind == NumberFormat::Kind::Unsigned
                       ? lanes(int64_t(1) << (width - 1))
                       : 0;
    Value masked = mask(codes, lanes(((int64_t(1) << bits) - 1) << top));
    return flip ? flipBits(masked, flip) : masked;
  }

  /// Word w, moved down by one for odd columns, with the last bit of each such
  /// code above the others.
  Value joinOf(int64_t w, bool isOdd) {
    Value &join = joined[{w, isOdd}];
    if (join)
      return join;
    int64_t width = spec.operand.bits;
    int64_t oneBit = bits - 1; // words of the other plane
    int64_t above = 0;         // the bits that come from the one-bit plane
    for (int64_t column = isOdd; column < width / (bits - 1); column += 2)
      above |= int64_t(1) << ((column + 1) * (bits - 1) - isOdd);
    Value last;
    if (bits == 3 && width == 8) {
      // Two registers a byte: the upper one's bit goes two further.
      Value &shared = lastOf[w];
      if (!shared)
        shared = select(word(lanes(0xC0)), moved(oneBit, w ? 0 : -4),
                        moved(oneBit, w ? 2 : -2));
      last = shared;
    } else {
      int64_t column = isOdd;
      int64_t index = w * (width / (bits - 1)) + column;
      int64_t target = (column + 1) * (bits - 1) - isOdd;
      last = moved(oneBit, index - target);
    }
    return join = select(word(lanes(above)), last, moved(w, isOdd));
  }

  llvm::DenseMap<std::pair<int64_t, int64_t>, Value> joined;
  Value
      lastOf[2]; ///< three bits to s8: the last bits of a word's four registers
};

/// Seven bits to s8, without zero points: q - 64 in two's complement is the
/// code with the last bit turned over and twice. No bit is zero, so nothing has
/// to be masked, and of the nibble plane the even columns stay where they are.
class SevenBitSequence : public DequantSequence {
public:
  SevenBitSequence(OpBuilder &b, Location loc, const DequantSpec &spec)
      : DequantSequence(b, loc, spec) {}

private:
  void beginGroup(Value, Value) override {}
  void resetUnit() override { isBuilt = false; }

  Value buildRegister(int64_t index) override {
    if (!isBuilt)
      buildUppers();
    Value upper = uppers[index % 4];
    if (index < 4)
      upper = shiftLeft(upper, 4);
    return select(word(0x0F0F0F0F), moved(index / 2, index % 2 * 4), upper);
  }

  /// uppers[r]: the upper halves of registers r (in the lower nibbles) and r
  /// + 4.
  void buildUppers() {
    isBuilt = true;
    // Columns r and r + 4 of the two-bit plane, side by side.
    Value low = word(0x0F0F0F0F), even = word(0x55555555);
    Value pairs[2] = {select(low, words[4], shiftLeft(words[5], 4)),
                      select(low, shiftRight(words[4], 4), words[5])};
    // The last bits of even and of odd registers, each twice.
    Value signs[2] = {select(even, words[6], shiftLeft(words[6], 1)),
                      select(even, shiftRight(words[6], 1), words[6])};
    if (spec.weight.kind == NumberFormat::Kind::Unsigned)
      for (Value &sign : signs)
        sign = flipBits(sign, 0xFFFFFFFF);
    for (int64_t r = 0; r < 4; ++r) {
      Value middle = shiftRight(pairs[r / 2], r % 2 * 2);
      Value sign = r < 2 ? shiftLeft(signs[r % 2], 2) : signs[r % 2];
      uppers[r] = select(word(0x33333333), middle, sign);
    }
  }

  bool isBuilt = false;
  Value uppers[4];
};

class NarrowFloatSequence : public DequantSequence {
public:
  NarrowFloatSequence(OpBuilder &b, Location loc, const DequantSpec &spec)
      : DequantSequence(b, loc, spec) {}

private:
  void beginGroup(Value, Value) override {}
  Value buildRegister(int64_t index) override {
    int64_t right = spec.operand.exponentBits - spec.weight.exponentBits;
    int64_t top = spec.operand.bits - bits;
    int64_t signs = lanes(int64_t(1) << (spec.operand.bits - 1));
    int64_t fields = lanes((((int64_t(1) << (bits - 1)) - 1) << top) >> right);
    SmallVector<Piece> pieces = piecesOf(index);
    if (right == 0)
      return codesAt(index, top);
    if (pieces.size() == 1) {
      const Piece &piece = pieces.front();
      Value magnitude =
          mask(moved(piece.word, piece.shift - (top - right)), fields);
      return merge(mask(moved(piece.word, piece.shift - top), signs),
                   magnitude);
    }
    Value codes = codesAt(index, top);
    return merge(mask(codes, signs), mask(shiftRight(codes, right), fields));
  }
};

/// e2m1 to twice its value in s8.
class DoubledE2M1Sequence : public DequantSequence {
public:
  DoubledE2M1Sequence(OpBuilder &b, Location loc, const DequantSpec &spec)
      : DequantSequence(b, loc, spec) {}

private:
  void beginGroup(Value, Value) override {}
  void resetUnit() override { looked.clear(); }

  /// A word has two registers: the low and the high nibbles of its bytes.
  Value buildRegister(int64_t index) override {
    auto found = looked.find(index / 2);
    if (found == looked.end())
      found = looked.try_emplace(index / 2, lookUp(words[index / 2])).first;
    return found->second[index % 2];
  }

  std::array<Value, 2> lookUp(Value w) {
    Value codes = mask(w, 0x77777777);
    // Magnitudes under the guard; those of bytes 0 and 1, and 2 and 3.
    Value low = word(0x83828180), high = word(0x8c888684);
    Value halves[2] = {permute(low, high, codes),
                       permute(low, high, shiftRight(codes, 16))};
    std::array<Value, 2> registers;
    for (int64_t r = 0; r < 2; ++r) {
      Value magnitude = permute(halves[0], halves[1], r ? 0x7531 : 0x6420);
      Value source = r ? w : shiftLeft(w, 4);
      Value signs = permute(source, source, 0xba98);
      Value less =
          LLVM::SubOp::create(b, loc, magnitude, mask(signs, 0x01010101));
      registers[r] =
          LLVM::XOrOp::create(b, loc, flipBits(less, 0x80808080), signs);
    }
    return registers;
  }

  llvm::DenseMap<int64_t, std::array<Value, 2>> looked;
};

} // namespace

std::unique_ptr<DequantSequence>
humming::createNarrowSequence(OpBuilder &b, Location loc,
                              const DequantSpec &spec) {
  const NumberFormat &weight = spec.weight, &operand = spec.operand;
  if (spec.table || spec.hasScales || spec.zeroPoint == ZeroPointKind::Float)
    return nullptr;
  if (weight.isInteger()) {
    if (operand.isInteger() && weight.bits == operand.bits)
      return spec.zeroPoint == ZeroPointKind::None
                 ? std::make_unique<IdentitySequence>(b, loc, spec)
                 : nullptr;
    if (weight.bits >= operand.bits)
      return nullptr;
    if (operand.isInteger() && spec.zeroPoint == ZeroPointKind::None) {
      if (weight.bits == 3 || weight.bits == 5)
        return std::make_unique<JoinedIntegerSequence>(b, loc, spec);
      if (weight.bits == 7)
        return std::make_unique<SevenBitSequence>(b, loc, spec);
    }
    return std::make_unique<NarrowIntegerSequence>(b, loc, spec);
  }
  if (weight == operand)
    return std::make_unique<IdentitySequence>(b, loc, spec);
  if (weight == NumberFormat::smallFloat(2, 1) &&
      operand == NumberFormat::signedInt(8))
    return std::make_unique<DoubledE2M1Sequence>(b, loc, spec);
  bool fits = operand.isFloat() && weight.isFloat() &&
              weight.exponentBits <= operand.exponentBits &&
              weight.mantissaBits <= operand.mantissaBits;
  if (!fits)
    return nullptr;
  return std::make_unique<NarrowFloatSequence>(b, loc, spec);
}
