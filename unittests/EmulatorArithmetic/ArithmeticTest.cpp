//===- ArithmeticTest.cpp - add, mul, fma, min, max, compare --------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Emulator/Arithmetic.h"
#include "Humming/Emulator/IntegerArithmetic.h"
#include "Oracle.h"
#include "Truth.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace humming::ptx;
using truth::Kind;

static Kind kindOf(FloatType type) {
  return type == FloatType::F16    ? Kind::H
         : type == FloatType::BF16 ? Kind::B
         : type == FloatType::F32  ? Kind::S
                                   : Kind::D;
}

static const Rounding roundings[] = {Rounding::RN, Rounding::RZ, Rounding::RM,
                                     Rounding::RP};

/// a op b and fma on edge pairs and random operands, all roundings.
static void checkAgainstAPFloat(FloatType type, bool roundAll) {
  const unsigned n = 20000;
  for (Rounding r : roundings) {
    if (!roundAll && r != Rounding::RN)
      continue;
    FloatOptions o;
    o.rounding = r;
    for (unsigned i = 0; i < n; ++i) {
      uint64_t v[3];
      for (unsigned k = 0; k < 3; ++k)
        v[k] = truth::scalarInput(kindOf(type), 3, 99, k, i, false);
      oracle::APFloat a = oracle::value(type, v[0]),
                      b = oracle::value(type, v[1]),
                      c = oracle::value(type, v[2]);
      bool nan = false;
      auto same = [&](const char *what, uint64_t got,
                      const oracle::APFloat &x) {
        nan = x.isNaN();
        if (type == FloatType::F64 && nan) // payloads are the hardware's matter
          ASSERT_TRUE(std::isnan(toDouble(type, got)));
        else
          ASSERT_EQ(oracle::code(type, x), got)
              << what << " mode " << int(r) << std::hex << " a " << v[0]
              << " b " << v[1] << " c " << v[2];
      };
      oracle::APFloat x = a;
      x.add(b, oracle::mode(r));
      same("add", add(type, v[0], v[1], o), x);
      x = a;
      x.subtract(b, oracle::mode(r));
      same("sub", sub(type, v[0], v[1], o), x);
      x = a;
      x.multiply(b, oracle::mode(r));
      same("mul", mul(type, v[0], v[1], o), x);
      x = a;
      x.fusedMultiplyAdd(b, c, oracle::mode(r));
      same("fma", fma(type, v[0], v[1], v[2], o), x);
      if (type == FloatType::F32 || type == FloatType::F64) {
        x = a;
        x.divide(b, oracle::mode(r));
        same("div", div(type, v[0], v[1], o), x);
        x = oracle::APFloat(oracle::semantics(type), 1);
        x.divide(a, oracle::mode(r));
        same("rcp", rcp(type, v[0], o), x);
      }
      if (::testing::Test::HasFatalFailure())
        return;
    }
  }
}

TEST(Arithmetic, F16) { checkAgainstAPFloat(FloatType::F16, true); }
TEST(Arithmetic, BF16) { checkAgainstAPFloat(FloatType::BF16, true); }
TEST(Arithmetic, F32) { checkAgainstAPFloat(FloatType::F32, true); }
TEST(Arithmetic, F64) { checkAgainstAPFloat(FloatType::F64, true); }

// Exact results at a tie and just above one: rounding to double first and then
// to the type would take the tie's even neighbour for both.
TEST(Arithmetic, FmaRoundsOnce) {
  // (1 + 2^-10) + 2^-11 is a tie; even is up.
  EXPECT_EQ(fma(FloatType::F16, 0x3C01, 0x3C00, 0x1000), 0x3C02u);
  // 1 + 2^-8 is a tie of bf16; 1 + 2^-8 * (1 + 2^-7) lies above it.
  EXPECT_EQ(fma(FloatType::BF16, 0x3B80, 0x3F80, 0x3F80), 0x3F80u);
  EXPECT_EQ(fma(FloatType::BF16, 0x3F81, 0x3B80, 0x3F80), 0x3F81u);
  // The same for f32: 1 + 2^-24 and 1 + 2^-24 * (1 + 2^-23).
  EXPECT_EQ(fma(FloatType::F32, 0x3F800000, 0x33800000, 0x3F800000),
            0x3F800000u);
  EXPECT_EQ(fma(FloatType::F32, 0x3F800001, 0x33800000, 0x3F800000),
            0x3F800001u);
  // bf16, a product of 15 bits at a tie and an addend 2^-100 of it, which a
  // double sum loses: (1 + 2^-7)(1 + 2^-1) = 1.5 + 3 * 2^-8, the tie between
  // 1.5 + 2^-7 and 1.5 + 2^-6.
  EXPECT_EQ(fma(FloatType::BF16, 0x3F81, 0x3FC0, 0x0D80), 0x3FC2u);
  EXPECT_EQ(fma(FloatType::BF16, 0x3F81, 0x3FC0, 0x8D80), 0x3FC1u);
}

TEST(Arithmetic, SqrtF32MatchesHost) {
  for (unsigned i = 0; i < 200000; ++i) {
    uint32_t a = uint32_t(truth::mix(i));
    float x, r;
    memcpy(&x, &a, 4);
    r = std::sqrt(x);
    uint32_t bits;
    memcpy(&bits, &r, 4);
    if (std::isnan(r))
      bits = 0x7FFFFFFF;
    ASSERT_EQ(bits, sqrt(FloatType::F32, a)) << std::hex << a;
  }
}

TEST(Arithmetic, SqrtDirectedBracketsTheRoot) {
  FloatOptions down, up;
  down.rounding = Rounding::RM;
  up.rounding = Rounding::RP;
  for (unsigned i = 0; i < 50000; ++i) {
    uint32_t a = uint32_t(truth::mix(i)) & 0x7F7FFFFF;
    double x = toDouble(FloatType::F32, a);
    uint64_t lo = sqrt(FloatType::F32, a, down),
             hi = sqrt(FloatType::F32, a, up);
    double l = toDouble(FloatType::F32, lo), h = toDouble(FloatType::F32, hi);
    // Squares of f32 are exact in double.
    ASSERT_LE(l * l, x);
    ASSERT_GE(h * h, x);
    ASSERT_EQ(hi - lo, l * l == x ? 0u : 1u);
  }
}

TEST(Arithmetic, FlushSaturateRelu) {
  FloatOptions ftz, sat, relu;
  ftz.ftz = true;
  sat.sat = true;
  relu.relu = true;
  EXPECT_EQ(add(FloatType::F32, 0x00000001, 0x80000000, ftz), 0u);
  EXPECT_EQ(mul(FloatType::F32, 0x80000001, 0x3F800000, ftz), 0x80000000u);
  EXPECT_EQ(mul(FloatType::F32, 0x00800000, 0x3F000000, ftz), 0u); // result
  EXPECT_EQ(mul(FloatType::F32, 0x00800000, 0x3F000000), 0x00400000u);
  // 2^-126 - 2^-150 rounds to 2^-126 as a subnormal, but is exact at 24 bits:
  // hardware flushes it.
  EXPECT_EQ(mul(FloatType::F32, 0x00800000, 0x3F7FFFFF, ftz), 0u);
  EXPECT_EQ(mul(FloatType::F32, 0x00800000, 0x3F7FFFFF), 0x00800000u);
  EXPECT_EQ(mul(FloatType::F16, 0x0400, 0x3BFF, ftz), 0u);
  EXPECT_EQ(add(FloatType::F16, 0x3C00, 0x3C00, sat), 0x3C00u);
  EXPECT_EQ(sub(FloatType::F16, 0x0000, 0x3C00, sat), 0u);
  EXPECT_EQ(add(FloatType::F16, 0x7E00, 0x3C00, sat), 0u); // NaN
  EXPECT_EQ(fma(FloatType::F16, 0xBC00, 0x3C00, 0x0000, relu), 0u);
  EXPECT_EQ(fma(FloatType::F16, 0x7E00, 0x3C00, 0x0000, relu), 0x7FFFu);
  EXPECT_EQ(fmaPacked(FloatType::F16, 0x3C004000, 0x40003C00, 0x00003C00),
            0x40004200u); // high 1*2+0, low 2*1+1
}

TEST(Arithmetic, MinMaxCompareAllF16Edges) {
  const std::vector<uint64_t> &e = truth::edges(Kind::H);
  for (uint64_t a : e)
    for (uint64_t b : e) {
      oracle::APFloat x = oracle::value(FloatType::F16, a),
                      y = oracle::value(FloatType::F16, b);
      EXPECT_EQ(oracle::code(FloatType::F16, llvm::minimumnum(x, y)),
                min(FloatType::F16, a, b));
      EXPECT_EQ(oracle::code(FloatType::F16, llvm::maximumnum(x, y)),
                max(FloatType::F16, a, b));
      MinMaxOptions nan;
      nan.nan = true;
      EXPECT_EQ(oracle::code(FloatType::F16, llvm::minimum(x, y)),
                min(FloatType::F16, a, b, nan));
      EXPECT_EQ(oracle::code(FloatType::F16, llvm::maximum(x, y)),
                max(FloatType::F16, a, b, nan));
      oracle::APFloat::cmpResult c = x.compare(y);
      bool lt = c == oracle::APFloat::cmpLessThan,
           eq = c == oracle::APFloat::cmpEqual,
           gt = c == oracle::APFloat::cmpGreaterThan,
           un = c == oracle::APFloat::cmpUnordered;
      auto is = [&](CompareOp op) { return compare(FloatType::F16, op, a, b); };
      EXPECT_EQ(is(CompareOp::EQ), eq);
      EXPECT_EQ(is(CompareOp::NE), lt || gt);
      EXPECT_EQ(is(CompareOp::LT), lt);
      EXPECT_EQ(is(CompareOp::LE), lt || eq);
      EXPECT_EQ(is(CompareOp::GT), gt);
      EXPECT_EQ(is(CompareOp::GE), gt || eq);
      EXPECT_EQ(is(CompareOp::EQU), eq || un);
      EXPECT_EQ(is(CompareOp::NEU), !eq);
      EXPECT_EQ(is(CompareOp::LTU), lt || un);
      EXPECT_EQ(is(CompareOp::LEU), !gt);
      EXPECT_EQ(is(CompareOp::GTU), gt || un);
      EXPECT_EQ(is(CompareOp::GEU), !lt);
      EXPECT_EQ(is(CompareOp::NUM), !un);
      EXPECT_EQ(is(CompareOp::NAN_), un);
    }
  MinMaxOptions xs;
  xs.xorsignAbs = true;
  // min(|-3|, |2|) = 2 with the sign of -3 xor 2.
  EXPECT_EQ(min(FloatType::F32, 0xC0400000, 0x40000000, xs), 0xC0000000u);
}

TEST(Arithmetic, TestpClasses) {
  EXPECT_TRUE(testp(FloatType::F32, TestOp::Subnormal, 0x80000001));
  EXPECT_TRUE(testp(FloatType::F32, TestOp::Normal, 0x00800000));
  // Zeros count as normal (PTX ISA, testp; hardware agrees).
  EXPECT_TRUE(testp(FloatType::F32, TestOp::Normal, 0));
  EXPECT_TRUE(testp(FloatType::F64, TestOp::Normal, uint64_t(1) << 63));
  EXPECT_FALSE(testp(FloatType::F32, TestOp::Normal, 0x007FFFFF));
  EXPECT_TRUE(testp(FloatType::F32, TestOp::Infinite, 0xFF800000));
  EXPECT_TRUE(testp(FloatType::F64, TestOp::NotANumber, 0x7FF0000000000001));
  EXPECT_TRUE(testp(FloatType::F32, TestOp::Finite, 0x7F7FFFFF));
}

TEST(Arithmetic, ApproxSpecialValues) {
  auto f32 = [](ApproxOp op, uint32_t a, bool ftz = false) {
    return approx(op, FloatType::F32, a, ftz);
  };
  EXPECT_EQ(f32(ApproxOp::Ex2, 0xFF800000), 0u);
  EXPECT_EQ(f32(ApproxOp::Ex2, 0x40400000), 0x41000000u); // 2^3
  EXPECT_EQ(f32(ApproxOp::Lg2, 0x80000000), 0xFF800000u);
  EXPECT_EQ(f32(ApproxOp::Lg2, 0xBF800000), 0x7FFFFFFFu);
  EXPECT_EQ(f32(ApproxOp::Lg2, 0x00000001, true), 0xFF800000u);
  EXPECT_EQ(f32(ApproxOp::Rcp, 0x80000000), 0xFF800000u);
  EXPECT_EQ(f32(ApproxOp::Rsqrt, 0x80000000), 0xFF800000u);
  EXPECT_EQ(f32(ApproxOp::Rsqrt, 0xC0000000), 0x7FFFFFFFu);
  EXPECT_EQ(f32(ApproxOp::Sqrt, 0x80000000), 0x80000000u);
  EXPECT_EQ(f32(ApproxOp::Sin, 0x7F800000), 0x7FFFFFFFu);
  EXPECT_EQ(f32(ApproxOp::Tanh, 0xFF800000), 0xBF800000u);
  EXPECT_EQ(divApprox(0x3F800000, 0x7F000000, false), 0u);
  EXPECT_EQ(divApprox(0x40C00000, 0x40000000, false), 0x40400000u);
}

TEST(IntegerArithmetic, KnownResults) {
  EXPECT_EQ(lop3(0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA, 0xEA),
            (0xF0F0F0F0u & 0xCCCCCCCC) | 0xAAAAAAAA);
  EXPECT_EQ(prmt(0x33221100, 0x77665544, 0x0F61), 0x00006611u);
  EXPECT_EQ(prmt(0x33221100, 0x77665544, 1, PrmtMode::F4E), 0x44332211u);
  EXPECT_EQ(prmt(0x33221100, 0x77665544, 1, PrmtMode::B4E), 0x66770011u);
  EXPECT_EQ(bfe(32, true, 0xF0, 4, 4), 0xFFFFFFFFu);
  EXPECT_EQ(bfe(32, false, 0xF0, 4, 4), 0xFu);
  EXPECT_EQ(bfe(32, true, 0x80000000, 28, 16), 0xFFFFFFF8u);
  EXPECT_EQ(bfi(32, 0xF, 0, 30, 4), 0xC0000000u);
  EXPECT_EQ(shf(true, true, 0x80000000, 1, 33), 3u);
  EXPECT_EQ(shf(false, false, 0x80000000, 1, 40), 1u);
  EXPECT_EQ(bfind(32, true, false, 0xFFFFFFFF), 0xFFFFFFFFu);
  EXPECT_EQ(bfind(32, false, true, 1), 31u);
  EXPECT_EQ(dp4a(true, true, 0xFF01FF01, 0x01010101, 5), 5u);
  bool valid;
  EXPECT_EQ(shflSource(ShflMode::Bfly, 5, 4, 31, valid), 1u);
  EXPECT_TRUE(valid);
  EXPECT_EQ(shflSource(ShflMode::Up, 1, 2, 0, valid), 1u);
  EXPECT_FALSE(valid);
  // Segments of 8: lane 13 reads lane 8 + 2.
  EXPECT_EQ(shflSource(ShflMode::Idx, 13, 2, 0x181F, valid), 10u);
}
