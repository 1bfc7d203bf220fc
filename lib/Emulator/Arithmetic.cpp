//===- Arithmetic.cpp - add, mul, fma, min, max, compare ------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f16, bf16 and f32 compute in double, rounded to odd, and round once more (see
// SoftFloat.h); f64 computes natively under the asked rounding mode.
//
//===----------------------------------------------------------------------===//

#include "SoftFloat.h"
#include <cfenv>

using namespace humming;
using namespace humming::ptx;

unsigned ptx::bitWidth(FloatType type) {
  switch (type) {
  case FloatType::F16:
  case FloatType::BF16:
    return 16;
  case FloatType::F32:
  case FloatType::TF32:
    return 32;
  case FloatType::F64:
    return 64;
  case FloatType::E4M3:
  case FloatType::E5M2:
  case FloatType::E8M0:
    return 8;
  case FloatType::E2M1:
    return 4;
  case FloatType::E2M3:
  case FloatType::E3M2:
    return 6;
  }
  return 0;
}

static uint64_t maskOf(FloatType type) {
  unsigned width = bitWidth(type);
  return width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1;
}

static uint64_t signOf(FloatType type) {
  return uint64_t(1) << (bitWidth(type) - 1);
}

static bool isNaN(FloatType type, uint64_t code) {
  return (code & (signOf(type) - 1)) > formatOf(type).infinity();
}

/// A subnormal code becomes the zero of its sign.
static uint64_t flush(FloatType type, uint64_t code) {
  FloatFormat f = formatOf(type);
  return code & f.infinity() ? code : code & signOf(type);
}

//===----------------------------------------------------------------------===//
// f64
//===----------------------------------------------------------------------===//

namespace {
/// Sets the rounding mode of the host for one operation.
class HostRounding {
public:
  explicit HostRounding(Rounding rounding)
      : changed(rounding != Rounding::RN && rounding != Rounding::RNA) {
    if (changed)
      std::fesetround(rounding == Rounding::RZ   ? FE_TOWARDZERO
                      : rounding == Rounding::RM ? FE_DOWNWARD
                                                 : FE_UPWARD);
  }
  ~HostRounding() {
    if (changed)
      std::fesetround(FE_TONEAREST);
  }

private:
  bool changed;
};

enum class Op { Add, Mul, Fma, Div, Sqrt };
} // namespace

/// The volatile copies keep the operation between the two changes of mode.
static double hostOperation(Op op, double a, double b, double c,
                            Rounding rounding) {
  volatile double x = a, y = b, z = c, r = 0;
  HostRounding mode(rounding);
  switch (op) {
  case Op::Add:
    r = x + y;
    break;
  case Op::Mul:
    r = x * y;
    break;
  case Op::Fma:
    r = std::fma(x, y, z);
    break;
  case Op::Div:
    r = x / y;
    break;
  case Op::Sqrt:
    r = std::sqrt(x);
    break;
  }
  return r;
}

static uint64_t operateF64(Op op, uint64_t a, uint64_t b, uint64_t c,
                           FloatOptions o) {
  // A NaN operand comes back quiet. Of several, add, mul and fma of an H200
  // give b, then c, then a; the divisions are subroutines that test a first. An
  // invalid operation gives the default NaN of the GPU.
  const uint64_t quiet = uint64_t(1) << 51;
  if (op == Op::Div && isNaN(FloatType::F64, a))
    return a | quiet;
  if (isNaN(FloatType::F64, b))
    return b | quiet;
  if (isNaN(FloatType::F64, c))
    return c | quiet;
  if (isNaN(FloatType::F64, a))
    return a | quiet;
  double r =
      hostOperation(op, llvm::bit_cast<double>(a), llvm::bit_cast<double>(b),
                    llvm::bit_cast<double>(c), o.rounding);
  if (std::isnan(r))
    return 0xFFF8000000000000;
  return llvm::bit_cast<uint64_t>(r);
}

//===----------------------------------------------------------------------===//
// f16, bf16, f32
//===----------------------------------------------------------------------===//

/// Rounds \p exact (odd or exact) and applies the modifiers.
static uint64_t finish(FloatType type, double exact, FloatOptions o) {
  FloatFormat f = formatOf(type);
  if (std::isnan(exact))
    return o.sat ? 0 : f.nan;
  if (o.sat) {
    if (!(exact > 0))
      return 0;
    if (exact > 1)
      exact = 1;
  }
  if (o.relu && !(exact > 0))
    return 0;
  // Hardware flushes what is below the smallest normal after rounding to the
  // full precision of the mantissa, as if there were smaller exponents: f32
  // 1 - 2^-24 times 2^-126 is 0, although rounding to a subnormal would give
  // 2^-126. Twice the value has that precision and must round to twice 2^-126.
  double smallest = std::ldexp(1.0, 1 - f.bias());
  if (o.ftz && std::fabs(exact) < smallest) {
    uint64_t twice = roundDouble(f, 2 * exact, o.rounding, /*saturate=*/false);
    bool normal = std::fabs(decodeSmall(f, twice)) >= 2 * smallest;
    exact = std::copysign(normal ? smallest : 0.0, exact);
  }
  return roundDouble(f, exact, o.rounding, /*saturate=*/false);
}

static double operand(FloatType type, uint64_t code, FloatOptions o) {
  code &= maskOf(type);
  return decodeSmall(formatOf(type), o.ftz ? flush(type, code) : code);
}

uint64_t ptx::add(FloatType type, uint64_t a, uint64_t b, FloatOptions o) {
  if (type == FloatType::F64)
    return operateF64(Op::Add, a, b, 0, o);
  return finish(type,
                addToOdd(operand(type, a, o), operand(type, b, o),
                         o.rounding == Rounding::RM),
                o);
}

uint64_t ptx::sub(FloatType type, uint64_t a, uint64_t b, FloatOptions o) {
  if (type == FloatType::F64 && isNaN(type, b))
    return add(type, a, b, o); // keeps the sign of the payload
  return add(type, a, b ^ signOf(type), o);
}

uint64_t ptx::mul(FloatType type, uint64_t a, uint64_t b, FloatOptions o) {
  if (type == FloatType::F64)
    return operateF64(Op::Mul, a, b, 0, o);
  return finish(type, operand(type, a, o) * operand(type, b, o), o);
}

uint64_t ptx::fma(FloatType type, uint64_t a, uint64_t b, uint64_t c,
                  FloatOptions o) {
  if (type == FloatType::F64)
    return operateF64(Op::Fma, a, b, c, o);
  double product = operand(type, a, o) * operand(type, b, o);
  return finish(
      type, addToOdd(product, operand(type, c, o), o.rounding == Rounding::RM),
      o);
}

uint64_t ptx::div(FloatType type, uint64_t a, uint64_t b, FloatOptions o) {
  if (type == FloatType::F64)
    return operateF64(Op::Div, a, b, 0, o);
  double x = operand(type, a, o), y = operand(type, b, o);
  double q = x / y;
  // The sign of the remainder over the divisor is that of exact - q.
  double rest = std::fma(-q, y, x);
  if (std::isfinite(q) && rest != 0)
    q = toOdd(q, y < 0 ? -rest : rest);
  return finish(type, q, o);
}

uint64_t ptx::rcp(FloatType type, uint64_t a, FloatOptions o) {
  uint64_t one = uint64_t(formatOf(type).bias()) << formatOf(type).mantissaBits;
  return div(type, one, a, o);
}

uint64_t ptx::sqrt(FloatType type, uint64_t a, FloatOptions o) {
  if (type == FloatType::F64)
    return operateF64(Op::Sqrt, a, 0, 0, o);
  double x = operand(type, a, o);
  double root = std::sqrt(x);
  if (std::isfinite(root) && root != 0)
    root = toOdd(root, std::fma(-root, root, x));
  return finish(type, root, o);
}

//===----------------------------------------------------------------------===//
// min, max, neg, abs, testp, compare
//===----------------------------------------------------------------------===//

static double valueOf(FloatType type, uint64_t code) {
  return type == FloatType::F64
             ? llvm::bit_cast<double>(code)
             : decodeSmall(formatOf(type), code & maskOf(type));
}

static uint64_t minMax(FloatType type, bool isMax, uint64_t a, uint64_t b,
                       MinMaxOptions o) {
  uint64_t sign = signOf(type);
  a &= maskOf(type);
  b &= maskOf(type);
  if (o.ftz) {
    a = flush(type, a);
    b = flush(type, b);
  }
  uint64_t resultSign = (a ^ b) & sign;
  if (o.xorsignAbs) {
    a &= ~sign;
    b &= ~sign;
  }
  bool nanA = isNaN(type, a), nanB = isNaN(type, b);
  if (type == FloatType::F64 && nanA && nanB)
    return b | uint64_t(1) << 51; // the second one, made quiet
  if ((nanA && nanB) || (o.nan && (nanA || nanB)))
    return formatOf(type).nan;
  uint64_t r;
  if (nanA || nanB) {
    r = nanA ? b : a;
  } else {
    double x = valueOf(type, a), y = valueOf(type, b);
    bool less = x < y || (x == y && (a & sign) && !(b & sign));
    r = less != isMax ? a : b;
  }
  return o.xorsignAbs ? r | resultSign : r;
}

uint64_t ptx::min(FloatType type, uint64_t a, uint64_t b, MinMaxOptions o) {
  return minMax(type, false, a, b, o);
}
uint64_t ptx::max(FloatType type, uint64_t a, uint64_t b, MinMaxOptions o) {
  return minMax(type, true, a, b, o);
}

/// `neg` and `abs` are additions to the hardware, so a NaN does not keep its
/// bits: the canonical NaN of the type, for f64 the operand made quiet.
static uint64_t quietNaN(FloatType type, uint64_t a) {
  return type == FloatType::F64 ? a | uint64_t(1) << 51 : formatOf(type).nan;
}

uint64_t ptx::neg(FloatType type, uint64_t a, bool ftz) {
  a &= maskOf(type);
  if (isNaN(type, a))
    return quietNaN(type, a);
  return (ftz ? flush(type, a) : a) ^ signOf(type);
}
uint64_t ptx::abs(FloatType type, uint64_t a, bool ftz) {
  a &= maskOf(type);
  if (isNaN(type, a))
    return quietNaN(type, a);
  return (ftz ? flush(type, a) : a) & ~signOf(type);
}
uint64_t ptx::copysign(FloatType type, uint64_t a, uint64_t b) {
  uint64_t sign = signOf(type);
  return (a & sign) | (b & (sign - 1));
}

bool ptx::testp(FloatType type, TestOp op, uint64_t a) {
  uint64_t magnitude = a & (signOf(type) - 1);
  uint64_t infinity = formatOf(type).infinity();
  switch (op) {
  case TestOp::Finite:
    return magnitude < infinity;
  case TestOp::Infinite:
    return magnitude == infinity;
  case TestOp::Number:
    return magnitude <= infinity;
  case TestOp::NotANumber:
    return magnitude > infinity;
  case TestOp::Normal:
    // The ISA counts zeros among the normal numbers.
    return magnitude < infinity && (!magnitude || (magnitude & infinity));
  case TestOp::Subnormal:
    return magnitude && !(magnitude & infinity);
  }
  return false;
}

bool ptx::compare(FloatType type, CompareOp op, uint64_t a, uint64_t b,
                  bool ftz) {
  a &= maskOf(type);
  b &= maskOf(type);
  if (ftz) {
    a = flush(type, a);
    b = flush(type, b);
  }
  bool unordered = isNaN(type, a) || isNaN(type, b);
  double x = valueOf(type, a), y = valueOf(type, b);
  switch (op) {
  case CompareOp::EQ:
    return x == y;
  case CompareOp::NE:
    return !unordered && x != y;
  case CompareOp::LT:
  case CompareOp::LO:
    return x < y;
  case CompareOp::LE:
  case CompareOp::LS:
    return x <= y;
  case CompareOp::GT:
  case CompareOp::HI:
    return x > y;
  case CompareOp::GE:
  case CompareOp::HS:
    return x >= y;
  case CompareOp::EQU:
    return unordered || x == y;
  case CompareOp::NEU:
    return unordered || x != y;
  case CompareOp::LTU:
    return unordered || x < y;
  case CompareOp::LEU:
    return unordered || x <= y;
  case CompareOp::GTU:
    return unordered || x > y;
  case CompareOp::GEU:
    return unordered || x >= y;
  case CompareOp::NUM:
    return !unordered;
  case CompareOp::NAN_:
    return unordered;
  }
  return false;
}

bool ptx::compareInt(CompareOp op, unsigned bits, bool isSigned, uint64_t a,
                     uint64_t b) {
  unsigned shift = 64 - bits;
  uint64_t x = a << shift, y = b << shift;
  bool less = isSigned ? int64_t(x) < int64_t(y) : x < y;
  switch (op) {
  case CompareOp::EQ:
    return x == y;
  case CompareOp::NE:
    return x != y;
  case CompareOp::LT:
    return less;
  case CompareOp::LE:
    return less || x == y;
  case CompareOp::GT:
    return !less && x != y;
  case CompareOp::GE:
    return !less;
  case CompareOp::LO:
    return x < y;
  case CompareOp::LS:
    return x <= y;
  case CompareOp::HI:
    return x > y;
  case CompareOp::HS:
    return x >= y;
  default:
    return false;
  }
}

//===----------------------------------------------------------------------===//
// Packed forms
//===----------------------------------------------------------------------===//

template <typename Fn>
static uint32_t pairwise(uint32_t a, uint32_t b, uint32_t c, Fn fn) {
  return uint32_t(fn(a & 0xFFFF, b & 0xFFFF, c & 0xFFFF)) |
         uint32_t(fn(a >> 16, b >> 16, c >> 16)) << 16;
}

uint32_t ptx::addPacked(FloatType type, uint32_t a, uint32_t b,
                        FloatOptions o) {
  return pairwise(a, b, 0, [&](uint32_t x, uint32_t y, uint32_t) {
    return add(type, x, y, o);
  });
}
uint32_t ptx::subPacked(FloatType type, uint32_t a, uint32_t b,
                        FloatOptions o) {
  return pairwise(a, b, 0, [&](uint32_t x, uint32_t y, uint32_t) {
    return sub(type, x, y, o);
  });
}
uint32_t ptx::mulPacked(FloatType type, uint32_t a, uint32_t b,
                        FloatOptions o) {
  return pairwise(a, b, 0, [&](uint32_t x, uint32_t y, uint32_t) {
    return mul(type, x, y, o);
  });
}
uint32_t ptx::fmaPacked(FloatType type, uint32_t a, uint32_t b, uint32_t c,
                        FloatOptions o) {
  return pairwise(a, b, c, [&](uint32_t x, uint32_t y, uint32_t z) {
    return fma(type, x, y, z, o);
  });
}
uint32_t ptx::minPacked(FloatType type, uint32_t a, uint32_t b,
                        MinMaxOptions o) {
  return pairwise(a, b, 0, [&](uint32_t x, uint32_t y, uint32_t) {
    return min(type, x, y, o);
  });
}
uint32_t ptx::maxPacked(FloatType type, uint32_t a, uint32_t b,
                        MinMaxOptions o) {
  return pairwise(a, b, 0, [&](uint32_t x, uint32_t y, uint32_t) {
    return max(type, x, y, o);
  });
}
uint32_t ptx::negPacked(FloatType type, uint32_t a, bool ftz) {
  return pairwise(a, 0, 0, [&](uint32_t x, uint32_t, uint32_t) {
    return neg(type, x, ftz);
  });
}
uint32_t ptx::absPacked(FloatType type, uint32_t a, bool ftz) {
  return pairwise(a, 0, 0, [&](uint32_t x, uint32_t, uint32_t) {
    return abs(type, x, ftz);
  });
}
