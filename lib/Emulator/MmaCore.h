//===- MmaCore.h - The sums of mma.sync and wgmma ---------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrices are dense and row-major: A is rows x depth, B depth x columns, C and
// D rows x columns. Rows of B, C and D are contiguous, so the inner loops run
// over columns and vectorise.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_EMULATOR_MMACORE_H
#define HUMMING_LIB_EMULATOR_MMACORE_H

#include "Mma.h"
#include <vector>

namespace humming {
namespace ptx {

/// A decoded float operand: values, and exponents as the alignment sees them
/// (floor(log2) of normal numbers, the least normal exponent of subnormal ones,
/// noExponent of zeros).
struct FloatMatrix {
  std::vector<double> value;
  std::vector<int32_t> exponent;
  bool hasSpecial = false; ///< an infinity or NaN somewhere

  void resize(size_t n) {
    value.resize(n);
    exponent.resize(n);
    hasSpecial = false;
  }
  void set(size_t i, MmaType type, uint32_t code, bool negate = false);
};

constexpr int32_t noExponent = -100000;

/// How the sum of one instruction behaves; see Mma.cpp.
struct SumModel {
  unsigned fractionBits; ///< kept of each term, below the largest exponent
  unsigned resultBits;   ///< mantissa bits of the f32 result (23, or fewer)
};
SumModel sumModel(MmaType input);

/// D = A * B + C of float types; \p c and \p d are codes of \p accumulator (F32
/// or F16) and may be the same array.
void multiplyFloat(unsigned rows, unsigned columns, unsigned depth,
                   const FloatMatrix &a, const FloatMatrix &b,
                   MmaType accumulator, SumModel model, const uint32_t *c,
                   uint32_t *d);

/// The same for integers of at most 9 bits with sign; accumulators are s32.
void multiplyInteger(unsigned rows, unsigned columns, unsigned depth,
                     const int16_t *a, const int16_t *b, bool saturate,
                     const uint32_t *c, uint32_t *d);

/// b1: \p a is rows x words, \p b columns x words of 32 bits.
void multiplyBits(unsigned rows, unsigned columns, unsigned words,
                  const uint32_t *a, const uint32_t *b, bool andPopc,
                  const uint32_t *c, uint32_t *d);

/// The integer that a code of an integer type means.
inline int16_t integerValue(MmaType type, uint32_t code) {
  switch (type) {
  case MmaType::S8:
    return int8_t(code);
  case MmaType::S4:
    return int16_t((code & 15) ^ 8) - 8;
  case MmaType::U4:
    return int16_t(code & 15);
  default:
    return int16_t(code & 0xFF);
  }
}

} // namespace ptx
} // namespace humming

#endif // HUMMING_LIB_EMULATOR_MMACORE_H
