//===- ConvertTest.cpp - cvt against llvm::APFloat ------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Emulator/Arithmetic.h"
#include "Oracle.h"
#include "Truth.h"
#include "llvm/ADT/APSInt.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace humming::ptx;
using truth::Kind;

static const FloatType allTypes[] = {
    FloatType::F16,  FloatType::BF16, FloatType::F32,  FloatType::F64,
    FloatType::TF32, FloatType::E4M3, FloatType::E5M2, FloatType::E2M1,
    FloatType::E2M3, FloatType::E3M2, FloatType::E8M0};
static const Rounding roundings[] = {Rounding::RN, Rounding::RZ, Rounding::RM,
                                     Rounding::RP, Rounding::RNA};

static unsigned countOf(FloatType type) {
  return bitWidth(type) <= 16 ? 1u << bitWidth(type) : 30000;
}
static uint64_t codeOf(FloatType type, unsigned i) {
  if (bitWidth(type) <= 16)
    return i;
  uint64_t v = truth::scalarInput(type == FloatType::F64 ? Kind::D : Kind::S, 2,
                                  7, i % 2, i, false);
  return type == FloatType::TF32 ? v & 0xFFFFE000 : v;
}

// Every pair of types, every rounding; all codes of sources up to 16 bits.
TEST(Convert, EveryPairOfFloatTypes) {
  for (FloatType from : allTypes)
    for (FloatType to : allTypes) {
      if (to == FloatType::E8M0)
        continue; // unsigned: has its own test
      for (Rounding r : roundings) {
        ConvertOptions o;
        o.rounding = r;
        for (unsigned i = 0, n = countOf(from); i < n; ++i) {
          uint64_t bits = codeOf(from, i);
          llvm::APFloat v = oracle::value(from, bits);
          uint64_t got = convert(to, from, bits, o);
          // Hardware has a NaN rule per pair (see NaNs below): payloads live
          // on from or to f64 and from bf16 to f32, and cvt.rna.tf32 may even
          // give an infinity.
          if (v.isNaN() && to == FloatType::TF32 && from == FloatType::F32 &&
              r == Rounding::RNA) {
            ASSERT_EQ(bits & 0xFFFFE000, got);
            continue;
          }
          if (v.isNaN() &&
              (to == FloatType::F64 ||
               (from == FloatType::F64 && bitWidth(to) >= 16) ||
               (from == FloatType::BF16 && to == FloatType::F32))) {
            ASSERT_TRUE(std::isnan(toDouble(to, got)));
            continue;
          }
          ASSERT_EQ(oracle::round(to, v, r), got)
              << int(from) << " -> " << int(to) << " mode " << int(r)
              << " code " << std::hex << bits;
        }
      }
    }
}

// As an H200 converts them.
TEST(Convert, NaNs) {
  using F = FloatType;
  ConvertOptions ftz, rna, finite;
  ftz.ftz = true;
  rna.rounding = finite.rounding = Rounding::RNA;
  finite.satfinite = true;
  EXPECT_EQ(convert(F::F16, F::F64, 0xFFF8000000000000), 0xFE00u);
  EXPECT_EQ(convert(F::F32, F::F64, 0x7FF0000000000001), 0x7FC00000u);
  EXPECT_EQ(convert(F::BF16, F::F64, 0x7FFFFFFFFFFFFFFF), 0x7FFFu);
  EXPECT_EQ(convert(F::F32, F::BF16, 0xFFC0), 0xFFC00000u);
  EXPECT_EQ(convert(F::F64, F::F32, 0x7F800001), 0x7FF8000020000000u);
  EXPECT_EQ(convert(F::F64, F::F32, 0x7F800001, ftz), 0x7FFFFFFFE0000000u);
  EXPECT_EQ(convert(F::TF32, F::F32, 0x7FC00000), 0x7FFFE000u);
  EXPECT_EQ(convert(F::TF32, F::F32, 0x7F800001, rna), 0x7F800000u);
  EXPECT_EQ(convert(F::TF32, F::F32, 0x7FC00000, finite), 0x7FBFE000u);
  EXPECT_EQ(convertToInt(8, true, F::F64, 0x7FF8000000000000), 0x80u);
  EXPECT_EQ(convertToInt(16, false, F::F64, 0x7FF8000000000000), 0x8000u);
  EXPECT_EQ(convertToInt(8, true, F::F32, 0x7FC00000), 0u);
}

TEST(Convert, E8M0) {
  ConvertOptions rz, rp, finite;
  rz.rounding = Rounding::RZ;
  rp.rounding = Rounding::RP;
  finite.rounding = Rounding::RP;
  finite.satfinite = true;
  for (unsigned code = 0; code < 255; ++code) {
    double v = std::ldexp(1.0, int(code) - 127);
    uint64_t f32 = fromDouble(FloatType::F32, v);
    EXPECT_EQ(toDouble(FloatType::E8M0, code), v);
    EXPECT_EQ(convert(FloatType::E8M0, FloatType::F32, f32, rz), code);
    EXPECT_EQ(convert(FloatType::E8M0, FloatType::F32, f32, rp), code);
    EXPECT_EQ(convert(FloatType::E8M0, FloatType::F32, f32 | 0x80000000, rp),
              code);
    EXPECT_EQ(convert(FloatType::E8M0, FloatType::F32, f32 + 1, rz), code);
    EXPECT_EQ(convert(FloatType::E8M0, FloatType::F32, f32 + 1, rp), code + 1);
    // f32 to bf16x2 and back keeps powers of two.
    EXPECT_EQ(convert(FloatType::BF16, FloatType::E8M0, code),
              fromDouble(FloatType::BF16, v));
  }
  EXPECT_EQ(convert(FloatType::E8M0, FloatType::F32, 0, rp), 0u);
  EXPECT_EQ(convert(FloatType::E8M0, FloatType::F32, 0x7FC00000, finite),
            0xFFu);
  EXPECT_EQ(convert(FloatType::E8M0, FloatType::F32, 0x7F7FFFFF, finite),
            0xFEu);
  EXPECT_EQ(convert(FloatType::E8M0, FloatType::F32, 0x7F7FFFFF, rp), 0xFFu);
}

TEST(Convert, FloatToInteger) {
  const FloatType types[] = {FloatType::F16, FloatType::BF16, FloatType::F32,
                             FloatType::F64};
  for (FloatType from : types)
    for (unsigned bits : {8u, 16u, 32u, 64u})
      for (bool isSigned : {false, true})
        for (Rounding r : roundings) {
          ConvertOptions o;
          o.rounding = r;
          for (unsigned i = 0, n = countOf(from); i < n; ++i) {
            uint64_t code = codeOf(from, i);
            llvm::APFloat v = oracle::value(from, code);
            if (v.isNaN())
              continue;
            // APFloat clamps out-of-range values itself.
            llvm::APSInt x(bits, !isSigned);
            bool exact;
            v.convertToInteger(x, oracle::mode(r), &exact);
            ASSERT_EQ(x.getZExtValue(),
                      convertToInt(bits, isSigned, from, code, o))
                << int(from) << " bits " << bits << " signed " << isSigned
                << " mode " << int(r) << std::hex << " code " << code;
          }
        }
  EXPECT_EQ(convertToInt(32, true, FloatType::F32, 0x7FC00000), 0u);
}

TEST(Convert, IntegerToFloat) {
  const FloatType types[] = {FloatType::F16, FloatType::BF16, FloatType::F32,
                             FloatType::F64};
  const Kind kinds[] = {Kind::I8, Kind::I16, Kind::I32, Kind::I64};
  for (FloatType to : types)
    for (unsigned w = 0; w < 4; ++w)
      for (bool isSigned : {false, true})
        for (Rounding r : roundings) {
          ConvertOptions o;
          o.rounding = r;
          for (unsigned i = 0; i < 3000; ++i) {
            uint64_t v = truth::scalarInput(kinds[w], 2, 5, 0, i, false);
            llvm::APFloat x(oracle::semantics(to));
            x.convertFromAPInt(llvm::APInt(64, v).trunc(8u << w), isSigned,
                               oracle::mode(r));
            ASSERT_EQ(oracle::code(to, x),
                      convertFromInt(to, 8u << w, isSigned, v, o))
                << int(to) << " width " << (8u << w) << std::hex << " " << v;
          }
        }
}

TEST(Convert, RoundToIntegral) {
  for (FloatType type :
       {FloatType::F16, FloatType::BF16, FloatType::F32, FloatType::F64})
    for (Rounding r : roundings) {
      ConvertOptions o;
      o.rounding = r;
      o.toIntegral = true;
      for (unsigned i = 0, n = countOf(type); i < n; ++i) {
        uint64_t code = codeOf(type, i);
        llvm::APFloat v = oracle::value(type, code);
        if (v.isNaN())
          continue;
        v.roundToIntegral(oracle::mode(r));
        ASSERT_EQ(oracle::code(type, v), convert(type, type, code, o))
            << int(type) << " mode " << int(r) << std::hex << " " << code;
      }
    }
}

TEST(Convert, Integers) {
  EXPECT_EQ(convertInt(8, true, 32, true, 0xFFFFFF00), 0u);
  EXPECT_EQ(convertInt(8, true, 32, true, 0xFFFFFF00, true), 0x80u);
  EXPECT_EQ(convertInt(8, false, 32, true, 0xFFFFFF00, true), 0u);
  EXPECT_EQ(convertInt(8, false, 32, false, 300, true), 255u);
  EXPECT_EQ(convertInt(8, true, 32, false, 300, true), 127u);
  EXPECT_EQ(convertInt(64, true, 16, true, 0x8000), 0xFFFFFFFFFFFF8000u);
  EXPECT_EQ(convertInt(32, true, 32, false, 0xFFFFFFFF, true), 0x7FFFFFFFu);
}

TEST(Convert, ModifiersAndPairs) {
  ConvertOptions relu, sat, finite, ftz;
  relu.relu = sat.sat = finite.satfinite = ftz.ftz = true;
  auto toF16 = [](uint32_t a, ConvertOptions o) {
    return convert(FloatType::F16, FloatType::F32, a, o);
  };
  EXPECT_EQ(toF16(0xBF800000, relu), 0u);
  EXPECT_EQ(toF16(0x7FC00000, relu), 0x7FFFu);
  EXPECT_EQ(toF16(0x40000000, sat), 0x3C00u);
  EXPECT_EQ(toF16(0x7F800000, finite), 0x7BFFu);
  EXPECT_EQ(toF16(0x477FF000, {}), 0x7C00u); // 65520 is the tie to infinity
  EXPECT_EQ(toF16(0x477FEFFF, {}), 0x7BFFu);
  EXPECT_EQ(convert(FloatType::F32, FloatType::F32, 0x80000001, ftz),
            0x80000000u);
  // High element first in the operand list.
  EXPECT_EQ(convertPackedFromF32(FloatType::F16, 0x40000000, 0x3F800000),
            0x40003C00u);
  EXPECT_EQ(convertPackedFromF32(FloatType::E4M3, 0x44800000, 0x3F800000),
            0x7E38u); // 1024 saturates to 448
  EXPECT_EQ(convertPackedFromF32(FloatType::E2M1, 0xC0C00000, 0x3F000000),
            0xF1u); // -6, 0.5
  EXPECT_EQ(convertPackedFromF32(FloatType::E2M3, 0x40F00000, 0x3F800000),
            0x1F08u); // 7.5, 1
  for (unsigned pair = 0; pair < 65536; ++pair) {
    uint32_t wide = convertPacked(FloatType::F16, FloatType::E4M3, pair);
    EXPECT_EQ(wide & 0xFFFF,
              convert(FloatType::F16, FloatType::E4M3, pair & 0xFF));
    EXPECT_EQ(wide >> 16, convert(FloatType::F16, FloatType::E4M3, pair >> 8));
  }
}
