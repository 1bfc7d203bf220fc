//===- NumberFormat.h - Bit-level description of a number format -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A number format is a description, not a kernel: sign, exponent and mantissa
// bits, and what the codes with an all-ones exponent mean. Everything else
// (tables, packing, dequantization sequences) is derived from it.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_NUMBERFORMAT_H
#define HUMMING_QUANT_NUMBERFORMAT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace humming {

/// One number format: `u1`..`u8`, `s2`..`s8`, `eXmY` (one sign bit, X exponent
/// and Y mantissa bits, at most 8 bits in all), `e8m0`, `f16`, `bf16`, `f32`.
///
/// Trivially copyable and comparable; two formats are equal exactly when every
/// code means the same number in both.
struct NumberFormat {
  enum class Kind : uint8_t {
    Unsigned, ///< code c means the integer c in [0, 2^bits)
    Signed,   ///< two's complement, [-2^(bits-1), 2^(bits-1))
    Float,    ///< sign | exponent | mantissa, bias 2^(exponentBits-1) - 1
    Exponent, ///< e8m0: code c means 2^(c-127) for c <= 254; 255 is NaN
  };
  /// What the codes with an all-ones exponent mean (Float only).
  enum class Specials : uint8_t {
    None, ///< every code is finite (e2m1, e3m2, e2m3, all odd formats)
    IEEE, ///< infinities and NaN (e5m2, f16, bf16, f32)
    FN,   ///< only the all-ones code is NaN, no infinity (e4m3)
  };

  Kind kind = Kind::Unsigned;
  Specials specials = Specials::None;
  uint8_t bits = 0;
  uint8_t exponentBits = 0;
  uint8_t mantissaBits = 0;

  bool operator==(const NumberFormat &o) const {
    return kind == o.kind && specials == o.specials && bits == o.bits &&
           exponentBits == o.exponentBits && mantissaBits == o.mantissaBits;
  }
  bool operator!=(const NumberFormat &o) const { return !(*this == o); }

  bool isInteger() const {
    return kind == Kind::Unsigned || kind == Kind::Signed;
  }
  bool isFloat() const { return kind == Kind::Float; }
  bool isF16() const { return *this == f16(); }
  bool isBF16() const { return *this == bf16(); }
  bool isF32() const { return *this == f32(); }
  bool isE8M0() const { return kind == Kind::Exponent; }

  static constexpr NumberFormat unsignedInt(unsigned bits) {
    return {Kind::Unsigned, Specials::None, uint8_t(bits), 0, 0};
  }
  static constexpr NumberFormat signedInt(unsigned bits) {
    return {Kind::Signed, Specials::None, uint8_t(bits), 0, 0};
  }
  /// eXmY with the field's conventions: e4m3 is FN, e5m2 is IEEE, every other
  /// format of at most 8 bits has finite codes only.
  static constexpr NumberFormat smallFloat(unsigned exponent,
                                           unsigned mantissa) {
    return {Kind::Float,
            exponent == 4 && mantissa == 3   ? Specials::FN
            : exponent == 5 && mantissa == 2 ? Specials::IEEE
                                             : Specials::None,
            uint8_t(1 + exponent + mantissa), uint8_t(exponent),
            uint8_t(mantissa)};
  }
  static constexpr NumberFormat e8m0() {
    return {Kind::Exponent, Specials::None, 8, 8, 0};
  }
  static constexpr NumberFormat f16() {
    return {Kind::Float, Specials::IEEE, 16, 5, 10};
  }
  static constexpr NumberFormat bf16() {
    return {Kind::Float, Specials::IEEE, 16, 8, 7};
  }
  static constexpr NumberFormat f32() {
    return {Kind::Float, Specials::IEEE, 32, 8, 23};
  }

  /// Parses a format name. Error: names the text and lists what is accepted.
  static llvm::Expected<NumberFormat> parse(llvm::StringRef name);

  /// The canonical name; `parse(str())` gives this format back.
  std::string str() const;

  /// The exact value of `code` (only the low `bits` bits are read).
  double decode(uint32_t code) const;

  /// The code nearest to `value`, ties to even; values past the largest finite
  /// number saturate to it, NaN gives the format's NaN, or the code of zero
  /// where the format has none.
  uint32_t encode(double value) const;

  /// Largest finite value; smallest (most negative) finite value.
  double maxFinite() const;
  double minFinite() const;
};

} // namespace humming

#endif // HUMMING_QUANT_NUMBERFORMAT_H
