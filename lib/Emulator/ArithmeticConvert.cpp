//===- ArithmeticConvert.cpp - cvt ----------------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every source value is exact in double (f32 and narrower) or is a double, so a
// float conversion is one rounding of a double. Integers of 64 bits have their
// own exact path through roundParts.
//
//===----------------------------------------------------------------------===//

#include "SoftFloat.h"

using namespace humming;
using namespace humming::ptx;

static uint64_t lowMask(unsigned bits) {
  return bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
}

double ptx::toDouble(FloatType type, uint64_t bits) {
  switch (type) {
  case FloatType::F64:
    return llvm::bit_cast<double>(bits);
  case FloatType::E8M0:
    if ((bits & 0xFF) == 0xFF)
      return std::nan("");
    return std::ldexp(1.0, int(bits & 0xFF) - 127);
  case FloatType::TF32:
    return decodeSmall(formatOf(type), (bits & 0xFFFFFFFF) >> 13);
  default:
    return decodeSmall(formatOf(type), bits & lowMask(bitWidth(type)));
  }
}

/// 2^(code - 127) has no sign, no zero and no infinity. The sign bit of the
/// operand is ignored; RP goes up from anything above a power of two.
static uint64_t toE8M0(double value, Rounding rounding, bool saturate) {
  if (std::isnan(value))
    return 0xFF;
  const uint64_t overflow = saturate ? 0xFE : 0xFF;
  value = std::fabs(value);
  if (std::isinf(value))
    return overflow;
  if (value == 0)
    return 0;
  int exponent;
  double fraction = std::frexp(value, &exponent); // in [0.5, 1)
  int code = exponent - 1 + 127;
  bool up = rounding == Rounding::RP ? fraction > 0.5
            : rounding == Rounding::RN || rounding == Rounding::RNA
                ? fraction >= 0.75
                : false;
  code += up;
  return code < 0 ? 0 : code > 0xFE ? overflow : uint64_t(code);
}

static bool isNarrow(FloatType type) { return bitWidth(type) <= 8; }

uint64_t ptx::fromDouble(FloatType type, double value, Rounding rounding) {
  if (type == FloatType::E8M0)
    return toE8M0(value, rounding, /*saturate=*/true);
  uint64_t code = roundDouble(formatOf(type), value, rounding, isNarrow(type));
  if (type == FloatType::TF32)
    return code << 13;
  return code;
}

/// Rounds to an integer value, keeping the sign of zero results.
static double toIntegral(double v, Rounding rounding) {
  double r = v;
  switch (rounding) {
  case Rounding::RN:
    // Exact for every double: beyond 2^52 there are no fractions.
    r = std::nearbyint(v);
    break;
  case Rounding::RZ:
    r = std::trunc(v);
    break;
  case Rounding::RM:
    r = std::floor(v);
    break;
  case Rounding::RP:
    r = std::ceil(v);
    break;
  case Rounding::RNA:
    r = std::round(v);
    break;
  }
  return std::copysign(r, v);
}

static bool isSubnormalF32(uint64_t code) { return !(code & 0x7F800000); }

/// What an H200 makes of a NaN; the rule depends on the pair of types.
static uint64_t convertNaN(FloatType to, FloatType from, uint64_t bits,
                           ConvertOptions o) {
  if (o.sat)
    return 0;
  uint64_t wide = llvm::bit_cast<uint64_t>(toDouble(from, bits));
  FloatFormat f = formatOf(to);
  if (to == FloatType::E8M0)
    return 0xFF;
  if (to == FloatType::F64) {
    // The payload moves to the top of the wider mantissa, made quiet; .ftz goes
    // through an f32 operation, which gives the canonical NaN.
    if (o.ftz && from == FloatType::F32)
      return 0x7FFFFFFFE0000000;
    return wide | uint64_t(1) << 51;
  }
  if (to == FloatType::TF32 && from == FloatType::F32 &&
      o.rounding == Rounding::RNA) {
    // Integer operations that know of no NaN: the low bits are dropped, and
    // .satfinite steps one unit down from everything past the largest value.
    uint64_t kept = bits & 0xFFFFE000;
    return o.satfinite ? kept - 0x2000 : kept;
  }
  if (to == FloatType::TF32)
    return f.nan << 13;
  // f64 keeps the sign and what fits of the payload.
  if (from == FloatType::F64 && f.hasInfinity && f.width() >= 16) {
    uint64_t payload =
        wide >> (52 - f.mantissaBits) & ((uint64_t(1) << f.mantissaBits) - 1);
    return wide >> 63 << (f.width() - 1) | f.infinity() | payload |
           uint64_t(1) << (f.mantissaBits - 1);
  }
  if (from == FloatType::BF16 && to == FloatType::F32)
    return bits << 16; // a shift
  return f.nan;
}

uint64_t ptx::convert(FloatType to, FloatType from, uint64_t bits,
                      ConvertOptions o) {
  bits &= lowMask(bitWidth(from));
  if (o.ftz && from == FloatType::F32 && isSubnormalF32(bits))
    bits &= 0x80000000;
  double v = toDouble(from, bits);
  if (std::isnan(v))
    return convertNaN(to, from, bits, o);
  if (o.toIntegral)
    v = toIntegral(v, o.rounding);
  if (o.relu && !(v > 0))
    v = 0;
  if (o.sat)
    v = !(v > 0) ? 0 : v > 1 ? 1 : v;
  if (to == FloatType::E8M0)
    return toE8M0(v, o.rounding, o.satfinite);
  uint64_t code =
      roundDouble(formatOf(to), v, o.rounding, o.satfinite || isNarrow(to));
  if (to == FloatType::TF32)
    return code << 13;
  if (o.ftz && to == FloatType::F32 && isSubnormalF32(code))
    code &= 0x80000000;
  return code;
}

uint64_t ptx::convertToInt(unsigned toBits, bool toSigned, FloatType from,
                           uint64_t bits, ConvertOptions o) {
  bits &= lowMask(bitWidth(from));
  if (o.ftz && from == FloatType::F32 && isSubnormalF32(bits))
    bits &= 0x80000000;
  double v = toDouble(from, bits);
  if (std::isnan(v)) {
    if (toBits == 64 || from == FloatType::F64)
      return uint64_t(1) << (toBits - 1);
    return 0;
  }
  v = toIntegral(v, o.rounding);
  // The bounds are powers of two, exact in double.
  double limit = std::ldexp(1.0, int(toBits) - (toSigned ? 1 : 0));
  if (v >= limit)
    return toSigned ? lowMask(toBits - 1) : lowMask(toBits);
  if (toSigned) {
    if (v < -limit)
      return uint64_t(1) << (toBits - 1);
    return uint64_t(int64_t(v)) & lowMask(toBits);
  }
  if (!(v > 0))
    return 0;
  return uint64_t(v);
}

uint64_t ptx::convertFromInt(FloatType to, unsigned fromBits, bool fromSigned,
                             uint64_t bits, ConvertOptions o) {
  bits &= lowMask(fromBits);
  bool sign = fromSigned && bits >> (fromBits - 1);
  uint64_t magnitude = sign ? (~bits + 1) & lowMask(fromBits) : bits;
  if (o.sat && (sign || magnitude > 1)) {
    magnitude = sign ? 0 : 1;
    sign = false;
  }
  return roundParts(formatOf(to), sign, magnitude, 0, false, o.rounding,
                    o.satfinite);
}

uint64_t ptx::convertInt(unsigned toBits, bool toSigned, unsigned fromBits,
                         bool fromSigned, uint64_t bits, bool sat) {
  bits &= lowMask(fromBits);
  bool negative = fromSigned && bits >> (fromBits - 1);
  if (negative)
    bits |= ~lowMask(fromBits);
  if (!sat)
    return bits & lowMask(toBits);
  if (negative) {
    if (!toSigned)
      return 0;
    int64_t low = int64_t(~uint64_t(0) << (toBits - 1));
    int64_t v = int64_t(bits);
    return uint64_t(v < low ? low : v) & lowMask(toBits);
  }
  uint64_t high = lowMask(toSigned ? toBits - 1 : toBits);
  return bits > high ? high : bits;
}

/// Container bits of one element of a pair.
static unsigned elementBits(FloatType type) {
  unsigned width = bitWidth(type);
  return width == 6 ? 8 : width;
}

uint32_t ptx::convertPackedFromF32(FloatType to, uint32_t a, uint32_t b,
                                   ConvertOptions o) {
  uint64_t high = convert(to, FloatType::F32, a, o);
  uint64_t low = convert(to, FloatType::F32, b, o);
  return uint32_t(high << elementBits(to) | low);
}

uint32_t ptx::convertPacked(FloatType to, FloatType from, uint32_t a,
                            ConvertOptions o) {
  unsigned width = elementBits(from);
  uint64_t high = convert(to, from, a >> width, o);
  uint64_t low = convert(to, from, a & lowMask(width), o);
  return uint32_t(high << elementBits(to) | low);
}
