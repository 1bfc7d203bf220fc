//===- NumberFormat.cpp - Decoding and encoding of number formats ---------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every finite code of every format is an integer times a power of two that a
// double holds exactly, so decoding is exact and encoding rounds once.
//
// Worked example, e2m1 (bias 1): code 0b0101 has exponent field 2 and mantissa
// 1, hence (1 + 1/2) * 2^(2-1) = 3. Encoding 2.5: floor(log2) = 1, quantum
// 2^(1-1) = 1, 2.5 rounds to the even multiple 2, code (1+1) << 1 | 0 = 4.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/NumberFormat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <limits>

using namespace llvm;

namespace humming {

static int exponentBias(const NumberFormat &format) {
  return (1 << (format.exponentBits - 1)) - 1;
}

Expected<NumberFormat> NumberFormat::parse(StringRef name) {
  auto fail = [&](StringRef why) -> Error {
    return createStringError(formatv(
        "expected a number format (u1..u8, s2..s8, eXmY of at most 8 bits, "
        "e8m0, f16, bf16 or f32), got '{0}'{1}",
        name.take_front(64), why));
  };
  if (name == "f16")
    return f16();
  if (name == "bf16")
    return bf16();
  if (name == "f32")
    return f32();
  if (name == "e8m0")
    return e8m0();
  StringRef rest = name;
  unsigned value;
  if (rest.consume_front("u")) {
    if (rest.size() != 1 || rest.getAsInteger(10, value) || value < 1 ||
        value > 8)
      return fail("");
    return unsignedInt(value);
  }
  if (rest.consume_front("s")) {
    if (rest.size() != 1 || rest.getAsInteger(10, value) || value < 2 ||
        value > 8)
      return fail("");
    return signedInt(value);
  }
  if (rest.consume_front("e")) {
    // eXmY: one digit each, at least one exponent bit.
    if (rest.size() != 3 || !isDigit(rest[0]) || rest[1] != 'm' ||
        !isDigit(rest[2]))
      return fail("");
    unsigned exponent = rest[0] - '0', mantissa = rest[2] - '0';
    if (exponent < 1)
      return fail(": a float format has at least one exponent bit; use sN for "
                  "integers");
    if (1 + exponent + mantissa > 8)
      return fail(": sign, exponent and mantissa exceed 8 bits");
    return smallFloat(exponent, mantissa);
  }
  return fail("");
}

std::string NumberFormat::str() const {
  switch (kind) {
  case Kind::Unsigned:
    return "u" + utostr(bits);
  case Kind::Signed:
    return "s" + utostr(bits);
  case Kind::Exponent:
    return "e8m0";
  case Kind::Float:
    break;
  }
  if (isF16())
    return "f16";
  if (isBF16())
    return "bf16";
  if (isF32())
    return "f32";
  return "e" + utostr(exponentBits) + "m" + utostr(mantissaBits);
}

double NumberFormat::decode(uint32_t code) const {
  if (bits < 32)
    code &= (1u << bits) - 1;
  switch (kind) {
  case Kind::Unsigned:
    return code;
  case Kind::Signed:
    return double(int32_t(code << (32 - bits)) >> (32 - bits));
  case Kind::Exponent:
    return code == 255 ? std::numeric_limits<double>::quiet_NaN()
                       : std::ldexp(1.0, int(code) - 127);
  case Kind::Float:
    break;
  }
  bool negative = (code >> (bits - 1)) & 1;
  uint32_t exponentMask = (1u << exponentBits) - 1;
  uint32_t mantissaMask = (1u << mantissaBits) - 1;
  uint32_t exponent = (code >> mantissaBits) & exponentMask;
  uint32_t mantissa = code & mantissaMask;
  double magnitude;
  if (specials == Specials::IEEE && exponent == exponentMask)
    magnitude = mantissa == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  else if (specials == Specials::FN && exponent == exponentMask &&
           mantissa == mantissaMask)
    magnitude = std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    magnitude = std::ldexp(double(mantissa),
                           1 - exponentBias(*this) - int(mantissaBits));
  else
    magnitude =
        std::ldexp(double(mantissa + (1u << mantissaBits)),
                   int(exponent) - exponentBias(*this) - int(mantissaBits));
  return negative ? -magnitude : magnitude;
}

/// The code of the largest finite value of a float format, sign bit clear.
static uint32_t maxFiniteCode(const NumberFormat &format) {
  uint32_t allOnes = (1u << (format.bits - 1)) - 1;
  switch (format.specials) {
  case NumberFormat::Specials::None:
    return allOnes;
  case NumberFormat::Specials::FN:
    return allOnes - 1;
  case NumberFormat::Specials::IEEE:
    return allOnes - (1u << format.mantissaBits);
  }
  return allOnes;
}

uint32_t NumberFormat::encode(double value) const {
  if (isInteger()) {
    if (std::isnan(value))
      return 0;
    double low = minFinite(), high = maxFinite();
    // nearbyint rounds ties to even in the default rounding mode.
    double rounded =
        value <= low ? low : (value >= high ? high : std::nearbyint(value));
    uint32_t mask = (1u << bits) - 1;
    return uint32_t(int32_t(rounded)) & mask;
  }
  if (kind == Kind::Exponent) {
    if (std::isnan(value))
      return 255;
    if (value <= std::ldexp(1.0, -127)) // no zero, no sign: the least code
      return 0;
    if (value >= std::ldexp(1.0, 127))
      return 254;
    int exponent = std::ilogb(value);
    // The neighbours are 2^e and 2^(e+1); the midpoint goes to the even code.
    double mantissa = std::ldexp(value, -exponent);
    uint32_t code = uint32_t(exponent + 127);
    if (mantissa > 1.5 || (mantissa == 1.5 && (code & 1)))
      ++code;
    return code;
  }

  uint32_t signBit = 1u << (bits - 1);
  if (std::isnan(value)) {
    switch (specials) {
    case Specials::None:
      return 0;
    case Specials::FN:
      return signBit - 1;
    case Specials::IEEE: // quiet NaN: the top mantissa bit
      return (((1u << exponentBits) - 1) << mantissaBits) |
             (1u << (mantissaBits - 1));
    }
  }
  uint32_t sign = std::signbit(value) ? signBit : 0;
  double magnitude = std::fabs(value);
  if (magnitude == 0)
    return sign;
  if (magnitude >= maxFinite())
    return sign | maxFiniteCode(*this);
  int least = 1 - exponentBias(*this);
  int exponent = std::ilogb(magnitude);
  bool subnormal = exponent < least;
  int quantum = (subnormal ? least : exponent) - int(mantissaBits);
  uint32_t multiple = uint32_t(std::nearbyint(std::ldexp(magnitude, -quantum)));
  // A carry out of the mantissa moves into the exponent field by itself, from
  // subnormal to normal as well.
  if (subnormal)
    return sign | multiple;
  if (mantissaBits == 0) {
    // The neighbours are 2^e and 2^(e+1), whose codes are consecutive: here an
    // even multiple is not yet an even code.
    uint32_t code = uint32_t(exponent - least) + 1;
    double mantissa = std::ldexp(magnitude, -exponent);
    return sign | (code + (mantissa > 1.5 || (mantissa == 1.5 && (code & 1))));
  }
  return sign | ((uint32_t(exponent - least) << mantissaBits) + multiple);
}

double NumberFormat::maxFinite() const {
  switch (kind) {
  case Kind::Unsigned:
    return double((1u << bits) - 1);
  case Kind::Signed:
    return double((1u << (bits - 1)) - 1);
  case Kind::Exponent:
    return std::ldexp(1.0, 127);
  case Kind::Float:
    break;
  }
  return decode(maxFiniteCode(*this));
}

double NumberFormat::minFinite() const {
  switch (kind) {
  case Kind::Unsigned:
    return 0;
  case Kind::Signed:
    return -double(1u << (bits - 1));
  case Kind::Exponent:
    return std::ldexp(1.0, -127);
  case Kind::Float:
    break;
  }
  return -maxFinite();
}

} // namespace humming
