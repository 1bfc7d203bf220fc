//===- Dequant.cpp - Which codes become which operands, and the cost ------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cost of a sequence is counted over what a lane has of a unit's 64-wide
// slab: A registers of 32 / A weights for activations of A bits, 32 weights in
// all. What registers share (a shifted word, a word of looked-up codes) is
// counted once.
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/Dequant.h"
#include "Humming/Quant/Packing.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cmath>
#include <set>

using namespace humming;
using llvm::Twine;

static llvm::Error expected(const Twine &what, const Twine &got) {
  return llvm::createStringError("expected " + what + ", got " + got);
}

static bool isFloat8(const NumberFormat &format) {
  return format.isFloat() && format.bits == 8;
}

/// Whether floats of `weight` fit the fields of `operand` and no finite code
/// becomes a special one.
static bool fieldsFit(const NumberFormat &weight, const NumberFormat &operand) {
  if (weight == operand)
    return true;
  if (weight.exponentBits > operand.exponentBits ||
      weight.mantissaBits > operand.mantissaBits)
    return false;
  if (weight.specials != NumberFormat::Specials::None)
    return operand.bits == 16;
  return weight.exponentBits < operand.exponentBits ||
         operand.specials == NumberFormat::Specials::FN;
}

llvm::Error humming::checkDequant(const QuantType &type,
                                  const NumberFormat &operand) {
  const NumberFormat &weight = type.weight;
  std::string pair = weight.str() + " for " + operand.str() + " operands";
  if (type.table) {
    if (operand.bits == 16)
      return llvm::Error::success();
    return expected("16-bit operands for codes of a table", operand.str());
  }
  if (weight.isFloat()) {
    if (operand.isFloat() && fieldsFit(weight, operand))
      return llvm::Error::success();
    // Twice an e2m1 is an integer.
    if (operand == NumberFormat::signedInt(8) &&
        weight == NumberFormat::smallFloat(2, 1))
      return llvm::Error::success();
    return expected("float weights whose fields fit those of the operand (f16 "
                    "takes at most 4 exponent bits and e5m2, bf16 7)",
                    pair);
  }
  if (!weight.isInteger())
    return expected("weights of uN, sN or eXmY", pair);
  if (operand.bits == 16)
    return llvm::Error::success();

  if (type.zeroPoint == ZeroPointKind::Float)
    return expected("16-bit operands for float zero points", operand.str());
  bool zeroPoints = type.zeroPoint == ZeroPointKind::Integer;
  if (operand.isInteger()) {
    // q - z takes a bit more than q.
    unsigned most = operand.bits - (zeroPoints ? 1 : 0);
    if (weight.bits <= most)
      return llvm::Error::success();
    return expected("weights of at most " + Twine(most) + " bits for " +
                        operand.str() + " operands" +
                        (zeroPoints ? " and zero points" : ""),
                    weight.str());
  }
  // Exact integers: 16 in e4m3, 8 in e5m2.
  int64_t exact = int64_t(2) << operand.mantissaBits;
  int64_t largest = zeroPoints ? (int64_t(1) << weight.bits) - 1
                               : int64_t(1) << (weight.bits - 1);
  if (isFloat8(operand) && largest <= exact)
    return llvm::Error::success();
  return expected("integers up to " + Twine(exact) + ", which " +
                      operand.str() + " holds exactly" +
                      (zeroPoints ? ", after zero points" : ""),
                  weight.str());
}

NumberFormat humming::weightOperand(const QuantType &type,
                                    const NumberFormat &activation) {
  if (!isFloat8(activation) || type.table)
    return activation;
  auto fits = [&](const NumberFormat &operand) {
    llvm::Error error = checkDequant(type, operand);
    bool ok = !error;
    llvm::consumeError(std::move(error));
    return ok;
  };
  NumberFormat e4m3 = NumberFormat::smallFloat(4, 3);
  NumberFormat other =
      activation == e4m3 ? NumberFormat::smallFloat(5, 2) : e4m3;
  return !fits(activation) && fits(other) ? other : activation;
}

int32_t humming::dequantExponent(const QuantType &type,
                                 const NumberFormat &operand) {
  const NumberFormat &weight = type.weight;
  if (operand.isInteger() && weight.isFloat())
    return -1;
  // Seven bits are sign-extended, others lie at the top of the lane.
  if (operand.isInteger())
    return type.zeroPoint == ZeroPointKind::None && weight.bits != 7
               ? weight.bits - operand.bits
               : 0;
  if (operand.bits == 16)
    return 0;
  int32_t bias = (1 << (operand.exponentBits - 1)) - 1;
  if (weight.isFloat())
    return weight == operand ? 0 : bias + 1 - (1 << (weight.exponentBits - 1));
  return bias - 1 + operand.mantissaBits;
}

/// Bits from the first to the last that is set in any value of the weights.
static int64_t significantBits(const QuantType &type) {
  const NumberFormat &weight = type.weight;
  if (weight.isFloat())
    return weight.mantissaBits + 1;
  // Without zero points: up to 2^(bits-1), one bit.
  return type.zeroPoint == ZeroPointKind::None
             ? std::max<int64_t>(1, weight.bits - 1)
             : weight.bits;
}

bool humming::scalesFitOperand(const QuantType &type,
                               const NumberFormat &operand,
                               bool nativeConvert) {
  if (operand.bits != 16)
    return false;
  if (type.scale == operand)
    return true;
  if (type.zeroPoint == ZeroPointKind::Float)
    return false;
  if (type.scale.isE8M0())
    return operand.isBF16();
  if (type.scale != NumberFormat::smallFloat(4, 3) || !nativeConvert ||
      type.table)
    return false;
  const NumberFormat &weight = type.weight;
  int64_t scaleBits = type.scale.mantissaBits + 1;
  if (significantBits(type) + scaleBits > operand.mantissaBits + 1)
    return false;
  if (operand.isBF16())
    return true;
  // f16's range: the largest product, and the place of the smallest one's last
  // bit (subnormals of all three are multiples of it).
  bool isSymmetric = type.zeroPoint == ZeroPointKind::None;
  double largest = weight.isFloat()
                       ? weight.maxFinite()
                       : std::ldexp(1.0, weight.bits - int(isSymmetric));
  auto lastBit = [](const NumberFormat &f) {
    if (!f.isFloat())
      return int64_t(0);
    int64_t bias = (int64_t(1) << (f.exponentBits - 1)) - 1;
    return 1 - bias - int64_t(f.mantissaBits);
  };
  return largest * type.scale.maxFinite() <= operand.maxFinite() &&
         lastBit(weight) + lastBit(type.scale) >= lastBit(operand);
}

int32_t humming::mantissaPosition(const NumberFormat &weight,
                                  const NumberFormat &operand,
                                  bool integerZeroPoints, int64_t index) {
  int64_t mantissa = operand.mantissaBits, bits = weight.bits;
  if (bits > mantissa || bits >= 7)
    return 0;
  // A plane of one bit has every register's at another place of its word, so
  // each needs a shift of its own, unless the other plane is the one that
  // moves. Found by search: 13 shifted words in place of 17, with three
  // positions.
  if (bits == 3 && mantissa == 10 && !integerZeroPoints) {
    constexpr int32_t positions[16] = {0, 2, 0, 2, 2, 6, 6, 0,
                                       0, 2, 0, 2, 2, 6, 6, 6};
    return positions[index % 16];
  }
  // Columns of a word that one position of it serves: bits 0, b, 2b, ...
  int64_t width = packedPlanes(unsigned(bits)).front().width;
  int64_t columns = (mantissa - bits) / width + 1;
  if (integerZeroPoints)
    columns = std::min<int64_t>(columns, 2);
  return int32_t(index % (operand.bits / width) % columns * width);
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

namespace {
/// Counts the instructions of one slab of a unit.
class Counter {
public:
  Counter(const QuantType &type, const NumberFormat &operand,
          bool nativeConvert)
      : type(type), operand(operand), nativeConvert(nativeConvert),
        bits(type.weight.bits), planes(packedPlanes(type.weight.bits)) {}

  DequantCost run();

private:
  struct Place {
    int64_t word, shift;
  };
  Place placeOf(const PackedPlane &plane, int64_t index) const {
    int64_t perWord = operand.bits / plane.width;
    return {int64_t(plane.lowBit) + index / perWord,
            index % perWord * plane.width};
  }
  void shift(int64_t word, int64_t by) {
    if (by != 0 && shifts.insert({word, by}).second)
      ++count;
  }
  /// codesAt: a shared shift and a lop3 a plane.
  void codes(int64_t index, int64_t at) {
    for (const PackedPlane &plane : planes) {
      Place place = placeOf(plane, index);
      shift(place.word, place.shift - (at + int64_t(plane.lowBit)));
      ++count;
    }
  }
  void fields(int64_t index);
  void integerToHalf(int64_t index);
  void floatToHalf(int64_t index);
  void narrow(int64_t index);

  const QuantType &type;
  NumberFormat operand;
  bool nativeConvert;
  int64_t bits;
  llvm::SmallVector<PackedPlane, 4> planes;
  std::set<std::pair<int64_t, int64_t>> shifts;
  std::set<int64_t> seen;      ///< words that something was done to once
  std::set<int64_t> positions; ///< where in the mantissa codes were put
  double count = 0;
};
} // namespace

/// Exponent and mantissa under the sign.
void Counter::fields(int64_t index) {
  int64_t right = operand.exponentBits - type.weight.exponentBits;
  int64_t top = operand.bits - bits;
  if (planes.size() == 1) {
    if (right == 0) {
      codes(index, top);
      return;
    }
    Place place = placeOf(planes.front(), index);
    shift(place.word, place.shift - (top - right));
    shift(place.word, place.shift - top);
    count += 2;
    return;
  }
  codes(index, top);
  if (right != 0)
    count += 3;
}

void Counter::integerToHalf(int64_t index) {
  Place place = placeOf(planes.front(), index);
  bool isSigned = type.weight.kind == NumberFormat::Kind::Signed;
  if (bits == 8) {
    if (isSigned && seen.insert(place.word).second)
      ++count;
    positions.insert(0);
    // prmt, then an add or, to bf16, an fma and a multiplication.
    count += operand.isF16() ? 2 : 3;
    return;
  }
  if (bits == 7) {
    // Eight words of bytes for sixteen registers: 6 prmt bring the planes
    // together, 2 lop3 part the one-bit plane, 17 shifts and 16 lop3 join them.
    if (seen.empty())
      count += 6 + 2 + 17 + 16;
    seen.insert(0);
    positions.insert(0);
    count += 2;
    return;
  }
  int64_t position = mantissaPosition(
      type.weight, operand, type.zeroPoint == ZeroPointKind::Integer, index);
  positions.insert(position);
  codes(index, position);
  ++count;
}

void Counter::floatToHalf(int64_t index) {
  const NumberFormat &weight = type.weight;
  Place place = placeOf(planes.front(), index);
  if (weight == NumberFormat::smallFloat(5, 2)) {
    count += operand.isF16() ? 1 : 4; // prmt; two cvt up, one down
    return;
  }
  if (weight == NumberFormat::smallFloat(4, 3) && nativeConvert) {
    if (seen.insert(place.word).second)
      ++count;
    if (place.shift != 0)
      ++count;
    count += operand.isF16() ? 1 : 4;
    return;
  }
  fields(index);
  count += weight == NumberFormat::smallFloat(4, 3) ? 3 : 1;
}

void Counter::narrow(int64_t index) {
  const NumberFormat &weight = type.weight;
  if (weight.isFloat() && operand.isInteger()) {
    if (index % 2 == 0) // a word, two registers
      count += 15;
    return;
  }
  if (weight.isFloat()) {
    if (weight != operand)
      fields(index);
    return;
  }
  if (operand.isInteger() && weight.bits == operand.bits) {
    if (weight.kind == NumberFormat::Kind::Unsigned)
      ++count;
    return;
  }
  if (operand.isInteger() && type.zeroPoint == ZeroPointKind::None &&
      bits % 2 == 1 && bits > 1) {
    // JoinedIntegerSequence, SevenBitSequence (lib/Transforms). Three bits to
    // s8: 8 masks, 4 joins, 2 words of last bits (5), 2 shifts down, 6 up. Five
    // bits: 8 masks, 8 joins, 4 shifts of the last bits, 4 down, 4 up. Seven
    // bits: 8 registers, 4 shifts of nibbles and 4 of the rest, 16 for the
    // rest. Three bits to s4: 4 masks, 4 joins, 5 shifts.
    if (index == 0)
      count += bits == 7 ? 32 : bits == 5 ? 28 : operand.bits == 8 ? 25 : 13;
    return;
  }
  if (operand.isInteger() && type.zeroPoint == ZeroPointKind::None) {
    codes(index, int64_t(operand.bits) - bits);
    return;
  }
  codes(index, 0);
  bool symmetric = type.zeroPoint == ZeroPointKind::None;
  count += operand.isInteger() ? 2 : symmetric ? 4 : 7;
}

DequantCost Counter::run() {
  int64_t registers = operand.bits; // of a slab
  for (int64_t i = 0; i < registers; ++i) {
    if (type.table) {
      if (bits < 4) {
        codes(i, 0);
        count += 5; // a shift and an or make the selector, three prmt
      } else if (i % 4 == 0) {
        count += 27;
      }
    } else if (operand.bits != 16) {
      narrow(i);
    } else if (type.weight.isFloat()) {
      floatToHalf(i);
    } else {
      integerToHalf(i);
    }
    if (type.zeroPoint == ZeroPointKind::Float)
      count += type.scale == operand ? 1 : 5;
  }
  DequantCost cost;
  cost.perWeights8 = count / 4; // a lane has 32 weights of a slab
  if (type.zeroPoint == ZeroPointKind::Float)
    cost.perGroup = 4;
  else if (type.zeroPoint == ZeroPointKind::Integer)
    // Per row: prmt and negation. Row g + 8 has the odd columns alone, so a
    // second position costs it one more constant, and row g none. Operands of 8
    // bits: a prmt a row; of 4 bits, the byte in both halves as well.
    cost.perGroup = operand.bits == 16  ? 4 + double(positions.size() > 1)
                    : operand.bits == 8 ? 2
                                        : 6;
  // Two prmt spread two scales; those of another format are converted first.
  cost.perScale = 2;
  if (type.scale.isE8M0())
    cost.perScale += 4;
  else if (type.scale.bits == 8)
    cost.perScale += operand.isF16() ? 1 : 4;
  return cost;
}

DequantCost humming::dequantCost(const QuantType &type,
                                 const NumberFormat &operand,
                                 bool nativeConvert) {
  return Counter(type, operand, nativeConvert).run();
}
