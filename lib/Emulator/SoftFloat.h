//===- SoftFloat.h - Formats, decoding and one exact rounding ---*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arithmetic of f16, bf16 and f32 is done in double and rounded once more. Two
// roundings give the result of one if the first is "to odd": an inexact result
// takes the neighbour whose last bit is one, which is never a tie of the second
// rounding and always on the right side of it, provided that the first has at
// least two bits more than the second (53 >= 24 + 2).
//
// Example, f16 (11 bits) fma(a, b, c) with a * b = 1 + 2^-11, c = 2^-70: the
// exact sum lies just above the tie between 1 and 1 + 2^-10. A plain double sum
// is 1 + 2^-11, the tie, and would round to 1. Rounded to odd it is
// 1 + 2^-11 + 2^-52, and rounds to 1 + 2^-10, as it must.
//
// Products of two f32 have 48 bits and exponents above -300: exact in double.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_EMULATOR_SOFTFLOAT_H
#define HUMMING_LIB_EMULATOR_SOFTFLOAT_H

#include "Humming/Emulator/Arithmetic.h"
#include "llvm/ADT/bit.h"
#include <cmath>

namespace humming {
namespace ptx {

/// Sign | exponent | mantissa with an IEEE bias.
struct FloatFormat {
  uint8_t exponentBits, mantissaBits;
  bool hasInfinity;   ///< else overflow saturates
  uint64_t maxFinite; ///< code of the largest finite value
  uint64_t nan;       ///< canonical NaN; maxFinite if there is none

  constexpr unsigned width() const { return 1 + exponentBits + mantissaBits; }
  constexpr int bias() const { return (1 << (exponentBits - 1)) - 1; }
  constexpr uint64_t infinity() const {
    return ((uint64_t(1) << exponentBits) - 1) << mantissaBits;
  }
};

/// TF32 is described without its 13 low zero bits; E8M0 has no such format.
constexpr FloatFormat formatOf(FloatType type) {
  switch (type) {
  case FloatType::F16:
    return {5, 10, true, 0x7BFF, 0x7FFF};
  case FloatType::BF16:
    return {8, 7, true, 0x7F7F, 0x7FFF};
  case FloatType::F64:
    return {11, 52, true, 0x7FEFFFFFFFFFFFFF, 0x7FF8000000000000};
  case FloatType::TF32:
    return {8, 10, true, 0x3FBFF, 0x3FFFF};
  case FloatType::E4M3:
    return {4, 3, false, 0x7E, 0x7F};
  case FloatType::E5M2:
    return {5, 2, true, 0x7B, 0x7F};
  case FloatType::E2M1:
    return {2, 1, false, 0x7, 0x7};
  case FloatType::E2M3:
    return {2, 3, false, 0x1F, 0x1F};
  case FloatType::E3M2:
    return {3, 2, false, 0x1F, 0x1F};
  default:
    return {8, 23, true, 0x7F7FFFFF, 0x7FFFFFFF};
  }
}

/// Rounds (-1)^sign * (mantissa + s) * 2^exponent, where s is in (0, 1) if \p
/// sticky and 0 otherwise, to \p f. \p saturate replaces infinities by the
/// largest finite value.
inline uint64_t roundParts(const FloatFormat &f, bool sign, uint64_t mantissa,
                           int exponent, bool sticky, Rounding rounding,
                           bool saturate) {
  uint64_t signBit = uint64_t(sign) << (f.width() - 1);
  if (!mantissa && !sticky)
    return signBit;
  if (!mantissa) { // below every quantum; keep it representable
    mantissa = 1;
    exponent -= 64;
  }
  int top = 63 - llvm::countl_zero(mantissa);
  int emin = 1 - f.bias();
  int e = top + exponent < emin ? emin : top + exponent;
  int shift = e - f.mantissaBits - exponent; // low bits to drop
  uint64_t kept;
  // The dropped part against half a unit: -1 below, 0 tie, 1 above.
  int half = -1;
  bool inexact = sticky;
  if (shift <= 0) {
    kept = mantissa << -shift;
  } else if (shift > 64) {
    kept = 0;
    inexact = true;
  } else {
    kept = shift == 64 ? 0 : mantissa >> shift;
    uint64_t halfBit = uint64_t(1) << (shift - 1);
    uint64_t dropped =
        mantissa & (shift == 64 ? ~uint64_t(0) : (halfBit << 1) - 1);
    inexact |= dropped != 0;
    half = dropped > halfBit || (dropped == halfBit && sticky) ? 1
           : dropped == halfBit                                ? 0
                                                               : -1;
  }
  bool up = false;
  switch (rounding) {
  case Rounding::RN:
    up = half > 0 || (half == 0 && (kept & 1));
    break;
  case Rounding::RNA:
    up = half >= 0;
    break;
  case Rounding::RZ:
    break;
  case Rounding::RM:
    up = inexact && sign;
    break;
  case Rounding::RP:
    up = inexact && !sign;
    break;
  }
  uint64_t code = (uint64_t(e - emin) << f.mantissaBits) + kept + up;
  if (code > f.maxFinite) {
    bool toInfinity = rounding == Rounding::RN || rounding == Rounding::RNA ||
                      rounding == (sign ? Rounding::RM : Rounding::RP);
    code =
        toInfinity && f.hasInfinity && !saturate ? f.infinity() : f.maxFinite;
  }
  return signBit | code;
}

/// Rounds a double, infinities and NaN included.
inline uint64_t roundDouble(const FloatFormat &f, double value,
                            Rounding rounding, bool saturate) {
  uint64_t bits = llvm::bit_cast<uint64_t>(value);
  bool sign = bits >> 63;
  unsigned exponent = bits >> 52 & 0x7FF;
  uint64_t mantissa = bits & 0xFFFFFFFFFFFFF;
  if (exponent == 0x7FF) {
    if (mantissa)
      return f.nan;
    return uint64_t(sign) << (f.width() - 1) |
           (f.hasInfinity && !saturate ? f.infinity() : f.maxFinite);
  }
  if (exponent)
    mantissa |= uint64_t(1) << 52;
  else
    exponent = 1;
  return roundParts(f, sign, mantissa, int(exponent) - 1075, false, rounding,
                    saturate);
}

/// The exact value of a code (f32 and narrower).
inline double decodeSmall(const FloatFormat &f, uint64_t code) {
  unsigned m = f.mantissaBits;
  uint64_t sign = code >> (f.width() - 1) & 1;
  uint64_t exponent = code >> m & ((uint64_t(1) << f.exponentBits) - 1);
  uint64_t mantissa = code & ((uint64_t(1) << m) - 1);
  uint64_t magnitude = exponent << m | mantissa;
  if (f.hasInfinity && magnitude >= f.infinity())
    return llvm::bit_cast<double>(sign << 63 | uint64_t(0x7FF) << 52 |
                                  mantissa << (52 - m));
  if (!f.hasInfinity && magnitude == f.nan && f.nan != f.maxFinite)
    return llvm::bit_cast<double>(sign << 63 | uint64_t(0x7FF8) << 48);
  if (exponent == 0) {
    double v =
        double(mantissa) *
        llvm::bit_cast<double>(uint64_t(1023 + 1 - f.bias() - int(m)) << 52);
    return sign ? -v : v;
  }
  return llvm::bit_cast<double>(
      sign << 63 | (exponent + 1023 - f.bias()) << 52 | mantissa << (52 - m));
}

/// Turns the nearest double \p r of an exact result into the one rounded to
/// odd; \p error is any number with the sign of exact - r (0 when exact).
inline double toOdd(double r, double error) {
  uint64_t bits = llvm::bit_cast<uint64_t>(r);
  if (error == 0 || !std::isfinite(r) || (bits & 1))
    return r;
  if (r == 0)
    return r;
  bool away = (error > 0) == (r > 0);
  return llvm::bit_cast<double>(away ? bits + 1 : bits - 1);
}

/// x + y rounded to odd; exact zero sums follow \p negativeZero (round down).
inline double addToOdd(double x, double y, bool negativeZero) {
  double s = x + y;
  if (!std::isfinite(s))
    return s;
  if (s == 0) {
    // Equal signs keep their zero; x - x is -0 only when rounding down.
    if (std::signbit(x) == std::signbit(y))
      return s;
    return negativeZero ? -0.0 : 0.0;
  }
  double t = s - x;
  double error = (x - (s - t)) + (y - t);
  return toOdd(s, error);
}

} // namespace ptx
} // namespace humming

#endif // HUMMING_LIB_EMULATOR_SOFTFLOAT_H
