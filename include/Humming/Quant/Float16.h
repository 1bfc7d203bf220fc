//===- Float16.h - f16 and bf16 conversions ----------------------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions as the hardware does them: round to nearest even, overflow to
// infinity, subnormals kept, NaN stays NaN (quiet). `NumberFormat::encode`
// differs in saturating, as a quantizer must.
//
// From double the value is first rounded to odd into a float: an inexact result
// keeps its last bit set, so that the second rounding sees on which side of a
// tie the value was. Float has 24 significant bits (13 more than f16, 16 more
// than bf16), and rounding to odd followed by rounding to nearest equals one
// rounding as soon as two extra bits exist.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_FLOAT16_H
#define HUMMING_QUANT_FLOAT16_H

#include <cstdint>
#include <cstring>

namespace humming {

inline uint32_t floatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline float floatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline float bf16ToFloat(uint16_t bits) {
  return floatFromBits(uint32_t(bits) << 16);
}

inline uint16_t floatToBF16(float value) {
  uint32_t bits = floatBits(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
    return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x7FFFu + ((bits >> 16) & 1)) >> 16);
}

inline float f16ToFloat(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000u) << 16;
  uint32_t magnitude = bits & 0x7FFFu;
  if (magnitude >= 0x7C00u) // infinity or NaN
    return floatFromBits(sign | 0x7F800000u | (magnitude & 0x3FFu) << 13);
  if (magnitude >= 0x0400u) // normal: rebias by 127 - 15
    return floatFromBits(sign | ((magnitude << 13) + (112u << 23)));
  // Subnormal: an integer times 2^-24, exact in float.
  float value = float(magnitude) * 5.9604644775390625e-8f;
  return floatFromBits(sign | floatBits(value));
}

inline uint16_t floatToF16(float value) {
  uint32_t bits = floatBits(value);
  uint16_t sign = uint16_t((bits >> 16) & 0x8000u);
  uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u)
    return uint16_t(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  if (magnitude >= 0x477FF000u) // 65520 and above round to infinity
    return uint16_t(sign | 0x7C00u);
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 aligns the sum's last bit with 2^-24, the f16
    // subnormal quantum, and the adder rounds to nearest even.
    float sum = floatFromBits(magnitude) + 0.5f;
    return uint16_t(sign | (floatBits(sum) - 0x3F000000u));
  }
  uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1);
  return uint16_t(sign | ((rounded - (112u << 23)) >> 13));
}

/// Rounds to odd: exact values stay, inexact ones get the neighbour with an odd
/// last bit.
inline float doubleToFloatOdd(double value) {
  float nearest = float(value);
  double back = nearest;
  if (back == value || value != value)
    return nearest;
  uint32_t bits = floatBits(nearest);
  if (bits & 1)
    return nearest;
  bool away = (back < 0 ? -back : back) > (value < 0 ? -value : value);
  return floatFromBits(away ? bits - 1 : bits + 1);
}

inline uint16_t doubleToF16(double value) {
  return floatToF16(doubleToFloatOdd(value));
}
inline uint16_t doubleToBF16(double value) {
  return floatToBF16(doubleToFloatOdd(value));
}

} // namespace humming

#endif // HUMMING_QUANT_FLOAT16_H
