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
