//===- ArithmeticApprox.cpp - ex2, lg2, rcp, rsqrt, sin, cos, tanh --------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The hardware evaluates these by table and interpolation; the tables are not
// public. The model is the double result rounded to the type (off by at most
// one double rounding, 2^-29 units of an f32), with the special values of the
// ISA. approxBound says how far hardware may be from it.
//
//===----------------------------------------------------------------------===//

#include "SoftFloat.h"

using namespace humming;
using namespace humming::ptx;

static double evaluate(ApproxOp op, double v) {
  switch (op) {
  case ApproxOp::Ex2:
    return std::exp2(v);
  case ApproxOp::Lg2:
    return std::log2(v); // log2(+-0) = -inf, of negatives NaN
  case ApproxOp::Rcp:
    return 1 / v;
  case ApproxOp::Rsqrt:
    return v == 0 ? std::copysign(HUGE_VAL, v) : 1 / std::sqrt(v);
  case ApproxOp::Sqrt:
    return std::sqrt(v);
  case ApproxOp::Sin:
    return std::sin(v);
  case ApproxOp::Cos:
    return std::cos(v);
  case ApproxOp::Tanh:
    return std::tanh(v);
  }
  return v;
}

uint64_t ptx::approx(ApproxOp op, FloatType type, uint64_t a, bool ftz) {
  FloatFormat f = formatOf(type);
  uint64_t sign = uint64_t(1) << (bitWidth(type) - 1);
  auto flush = [&](uint64_t code) {
    return ftz && !(code & f.infinity()) ? code & sign : code;
  };
  double v = toDouble(type, flush(a & (sign | (sign - 1))));
  if (type == FloatType::F64)
    return llvm::bit_cast<uint64_t>(evaluate(op, v));
  return flush(roundDouble(f, evaluate(op, v), Rounding::RN, false));
}

uint32_t ptx::divApprox(uint32_t a, uint32_t b, bool full, bool ftz) {
  FloatOptions o;
  o.ftz = ftz;
  if (!full) {
    // The reciprocal of a divisor above 2^126 underflows to zero.
    double y = std::fabs(toDouble(FloatType::F32, b));
    if (y > std::ldexp(1.0, 126) && std::isfinite(y)) {
      uint32_t sign = (a ^ b) & 0x80000000;
      uint32_t magnitude = a & 0x7FFFFFFF;
      return magnitude >= 0x7F800000 ? 0x7FFFFFFF : sign;
    }
  }
  return uint32_t(div(FloatType::F32, a, b, o));
}

ApproxBound ptx::approxBound(ApproxOp op, FloatType type) {
  // PTX ISA 9.0, sections of the instructions; f16 and bf16 results also carry
  // their own rounding, half a unit: 2^-11 and 2^-8.
  if (type == FloatType::BF16)
    return op == ApproxOp::Tanh ? ApproxBound{std::ldexp(1.0, -8), 0}
                                : ApproxBound{std::ldexp(1.0, -7), 0};
  if (type == FloatType::F16)
    return op == ApproxOp::Tanh
               ? ApproxBound{0, std::exp2(-10.987) + std::ldexp(1.0, -12)}
               : ApproxBound{std::exp2(-9.9), std::ldexp(1.0, -25)};
  switch (op) {
  case ApproxOp::Ex2:
    return {std::ldexp(1.0, -22), 0};
  case ApproxOp::Lg2:
    return {std::ldexp(1.0, -22), std::ldexp(1.0, -22)};
  case ApproxOp::Rcp:
    return {std::ldexp(1.0, -23), 0};
  case ApproxOp::Rsqrt:
    return {std::exp2(-22.9), 0};
  case ApproxOp::Sqrt:
    return {std::ldexp(1.0, -23), 0};
  case ApproxOp::Sin:
  case ApproxOp::Cos:
    return {0, std::exp2(-20.5)};
  case ApproxOp::Tanh:
    return {std::ldexp(1.0, -11), 0};
  }
  return {0, 0};
}
