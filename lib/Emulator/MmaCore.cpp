//===- MmaCore.cpp - The sums of mma.sync and wgmma -----------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ISA leaves the order and the rounding of a floating-point sum open. The
// model here is a fused sum with truncation:
//   1. products are exact; each has the exponent ea + eb of its factors;
//   2. every term (products and C) is cut, toward zero, to `fractionBits` bits
//      below the largest exponent of all terms;
//   3. the cut terms are added exactly;
//   4. an f32 result is cut toward zero to its mantissa, an f16 result is
//      rounded to nearest even.
//
// Example, fractionBits = 25, C = 1 and one product 2^-26: the product is cut
// to nothing and the result is 1. With C = 0 the same product is exact.
//
// In double arithmetic: a term times 2^(fractionBits - largest exponent) is
// below 2^28, so converting it to a 32-bit integer is the cut, and sums of such
// integers are exact.
//
//===----------------------------------------------------------------------===//

#include "MmaCore.h"
#include "SoftFloat.h"

using namespace humming;
using namespace humming::ptx;

static FloatType floatType(MmaType type) {
  switch (type) {
  case MmaType::F16:
    return FloatType::F16;
  case MmaType::BF16:
    return FloatType::BF16;
  case MmaType::E4M3:
    return FloatType::E4M3;
  case MmaType::E5M2:
    return FloatType::E5M2;
  case MmaType::F64:
    return FloatType::F64;
  default:
    return FloatType::F32;
  }
}

static double powerOfTwo(int exponent) {
  return llvm::bit_cast<double>(uint64_t(exponent + 1023) << 52);
}

static int32_t exponentOf(const FloatFormat &f, uint64_t code) {
  uint64_t magnitude = code & ((uint64_t(1) << (f.width() - 1)) - 1);
  if (!magnitude)
    return noExponent;
  int e = int(magnitude >> f.mantissaBits);
  return (e ? e : 1) - f.bias();
}

void FloatMatrix::set(size_t i, MmaType type, uint32_t code, bool negate) {
  if (type == MmaType::TF32)
    code &= 0xFFFFE000; // hardware does not read the low bits
  FloatFormat f = formatOf(floatType(type));
  double v = decodeSmall(f, code);
  value[i] = negate ? -v : v;
  exponent[i] = exponentOf(f, code);
  hasSpecial |= !std::isfinite(v);
}

SumModel ptx::sumModel(MmaType input) {
  // The FP8 path of Hopper keeps 13 bits.
  if (input == MmaType::E4M3 || input == MmaType::E5M2)
    return {13, 13};
  return {25, 23};
}

/// Step 4, on the exact sum of cut terms.
static uint32_t roundResult(MmaType accumulator, double sum, SumModel model) {
  if (accumulator == MmaType::F16)
    return uint32_t(
        roundDouble(formatOf(FloatType::F16), sum, Rounding::RN, false));
  if (std::isnan(sum))
    return 0x7FFFFFFF;
  // Overflow gives infinity also when cutting.
  if (std::fabs(sum) >= powerOfTwo(127) * 2)
    return sum < 0 ? 0xFF800000 : 0x7F800000;
  uint32_t code =
      uint32_t(roundDouble(formatOf(FloatType::F32), sum, Rounding::RZ, false));
  return code & ~((uint32_t(1) << (23 - model.resultBits)) - 1);
}

void ptx::multiplyFloat(unsigned rows, unsigned columns, unsigned depth,
                        const FloatMatrix &a, const FloatMatrix &b,
                        MmaType accumulator, SumModel model, const uint32_t *c,
                        uint32_t *d) {
  constexpr unsigned maxColumns = 256;
  int32_t top[maxColumns];
  double scale[maxColumns], sum[maxColumns];
  FloatFormat format = formatOf(floatType(accumulator));
  for (unsigned m = 0; m < rows; ++m) {
    const double *av = &a.value[size_t(m) * depth];
    const int32_t *ae = &a.exponent[size_t(m) * depth];
    for (unsigned n = 0; n < columns; ++n) {
      uint32_t code = c[size_t(m) * columns + n];
      sum[n] = decodeSmall(format, code);
      top[n] = exponentOf(format, code);
    }
    bool special = a.hasSpecial || b.hasSpecial;
    for (unsigned n = 0; n < columns; ++n)
      special |= !std::isfinite(sum[n]);
    for (unsigned k = 0; k < depth; ++k) {
      const int32_t *be = &b.exponent[size_t(k) * columns];
      int32_t e = ae[k];
      for (unsigned n = 0; n < columns; ++n) {
        int32_t x = e + be[n];
        top[n] = top[n] > x ? top[n] : x;
      }
    }
    for (unsigned n = 0; n < columns; ++n) {
      // All terms zero: any scale will do.
      int32_t t = top[n] < -900 ? -900 : top[n];
      top[n] = t;
      scale[n] = powerOfTwo(int(model.fractionBits) - t);
    }
    if (special) {
      // A row with an infinity or NaN somewhere: column by column.
      for (unsigned n = 0; n < columns; ++n) {
        double plain = sum[n], cut = std::trunc(sum[n] * scale[n]);
        for (unsigned k = 0; k < depth; ++k) {
          double p = av[k] * b.value[size_t(k) * columns + n];
          plain += p;
          cut += std::trunc(p * scale[n]);
        }
        double r = std::isfinite(plain)
                       ? cut * powerOfTwo(top[n] - int(model.fractionBits))
                       : plain;
        d[size_t(m) * columns + n] = roundResult(accumulator, r, model);
      }
      continue;
    }
    for (unsigned n = 0; n < columns; ++n)
      sum[n] = double(int32_t(sum[n] * scale[n]));
    for (unsigned k = 0; k < depth; ++k) {
      const double *bv = &b.value[size_t(k) * columns];
      double x = av[k];
      if (x == 0)
        continue;
      for (unsigned n = 0; n < columns; ++n)
        sum[n] += double(int32_t(x * bv[n] * scale[n]));
    }
    for (unsigned n = 0; n < columns; ++n)
      d[size_t(m) * columns + n] = roundResult(
          accumulator, sum[n] * powerOfTwo(top[n] - int(model.fractionBits)),
          model);
  }
}

void ptx::multiplyInteger(unsigned rows, unsigned columns, unsigned depth,
                          const int16_t *a, const int16_t *b, bool saturate,
                          const uint32_t *c, uint32_t *d) {
  constexpr unsigned maxColumns = 256;
  int32_t sum[maxColumns];
  for (unsigned m = 0; m < rows; ++m) {
    for (unsigned n = 0; n < columns; ++n)
      sum[n] = 0;
    for (unsigned k = 0; k < depth; ++k) {
      int32_t x = a[size_t(m) * depth + k];
      if (x == 0)
        continue;
      const int16_t *bv = b + size_t(k) * columns;
      for (unsigned n = 0; n < columns; ++n)
        sum[n] += x * bv[n];
    }
    for (unsigned n = 0; n < columns; ++n) {
      size_t i = size_t(m) * columns + n;
      if (!saturate) {
        d[i] = c[i] + uint32_t(sum[n]);
        continue;
      }
      int64_t v = int64_t(int32_t(c[i])) + sum[n];
      d[i] = v > INT32_MAX   ? 0x7FFFFFFF
             : v < INT32_MIN ? 0x80000000
                             : uint32_t(int32_t(v));
    }
  }
}

void ptx::multiplyBits(unsigned rows, unsigned columns, unsigned words,
                       const uint32_t *a, const uint32_t *b, bool andPopc,
                       const uint32_t *c, uint32_t *d) {
  for (unsigned m = 0; m < rows; ++m)
    for (unsigned n = 0; n < columns; ++n) {
      uint32_t count = 0;
      for (unsigned w = 0; w < words; ++w) {
        uint32_t x = a[m * words + w], y = b[n * words + w];
        count += uint32_t(llvm::popcount(andPopc ? x & y : x ^ y));
      }
      d[size_t(m) * columns + n] = c[size_t(m) * columns + n] + count;
    }
}
