//===- ExecFloat.cpp - Floating-point instructions -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f32 with round to nearest is computed with host floats; everything else goes
// through Arithmetic.h one lane at a time.
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include <cmath>

using namespace llvm;

namespace humming {
namespace emulator {

using ptx::FloatOptions;
using ptx::FloatType;
using ptx::Rounding;

namespace {
constexpr uint32_t RoundMask = 7, Ftz = 8, Sat = 16, Relu = 32, NaNFlag = 64,
                   XorSign = 128, OperationShift = 8;

enum FloatOperation : uint32_t {
  OpAdd,
  OpSub,
  OpMul,
  OpFma,
  OpDiv,
  OpRcp,
  OpSqrt,
  OpMin,
  OpMax,
  OpNeg,
  OpAbs,
  OpCopysign,
  OpApprox, ///< + ApproxOp
  OpDivApprox = OpApprox + 16,
  OpDivFull,
  OpMin3,
  OpMax3,
};

FloatType floatTypeOf(Ty ty) {
  switch (ty) {
  case Ty::F16:
  case Ty::F16x2:
    return FloatType::F16;
  case Ty::BF16:
  case Ty::BF16x2:
    return FloatType::BF16;
  case Ty::F64:
    return FloatType::F64;
  default:
    return FloatType::F32;
  }
}

FloatOptions optionsOf(const Inst &inst) {
  FloatOptions o;
  o.rounding = Rounding(inst.flags & RoundMask);
  o.ftz = inst.flags & Ftz;
  o.sat = inst.flags & Sat;
  o.relu = inst.flags & Relu;
  return o;
}

inline uint32_t bitsOfFloat(float f) {
  uint32_t r = llvm::bit_cast<uint32_t>(f);
  return f != f ? 0x7FFFFFFFu : r;
}
template <bool FlushZero>
inline float toFloat(uint32_t bits) {
  if (FlushZero && !(bits & 0x7F800000))
    bits &= 0x80000000;
  return llvm::bit_cast<float>(bits);
}
template <bool FlushZero>
inline uint32_t fromFloat(float f) {
  uint32_t r = bitsOfFloat(f);
  if (FlushZero && !(r & 0x7F800000))
    r &= 0x80000000;
  return r;
}

template <FloatOperation Op>
inline float operateF32(float x, float y, float z) {
  return Op == OpAdd   ? x + y
         : Op == OpSub ? x - y
         : Op == OpMul ? x * y
                       : std::fma(x, y, z);
}

template <FloatOperation Op, bool FlushZero>
void fastF32(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *a = w.row<uint32_t>(o[1]), *b = w.row<uint32_t>(o[2]);
  const uint32_t *c = Op == OpFma ? w.row<uint32_t>(o[3]) : b;
  vectorLanes(mask, [&](unsigned l) {
    float x = toFloat<FlushZero>(a[l]), y = toFloat<FlushZero>(b[l]);
    float z = Op == OpFma ? toFloat<FlushZero>(c[l]) : 0;
    uint32_t r = fromFloat<FlushZero>(operateF32<Op>(x, y, z));
    if (FlushZero && (Op == OpMul || Op == OpFma)) {
      // Hardware flushes what only rounding to a subnormal lifts to 2^-126;
      // twice the result shows it at full precision (see Arithmetic.cpp). The
      // doubled operands cannot overflow when the result is this small.
      float twice = operateF32<Op>(2 * x, y, 2 * z);
      bool tiny =
          (r & 0x7FFFFFFF) == 0x00800000 && std::fabs(twice) < 0x1p-125f;
      r = tiny ? r & 0x80000000 : r;
    }
    d[l] = r;
  });
}

uint64_t scalar(uint32_t operation, FloatType type, const Inst &inst,
                const FloatOptions &options, uint64_t a, uint64_t b,
                uint64_t c) {
  ptx::MinMaxOptions m;
  m.ftz = options.ftz;
  m.nan = inst.flags & NaNFlag;
  m.xorsignAbs = inst.flags & XorSign;
  switch (operation) {
  case OpAdd:
    return ptx::add(type, a, b, options);
  case OpSub:
    return ptx::sub(type, a, b, options);
  case OpMul:
    return ptx::mul(type, a, b, options);
  case OpFma:
    return ptx::fma(type, a, b, c, options);
  case OpDiv:
    return ptx::div(type, a, b, options);
  case OpRcp:
    return ptx::rcp(type, a, options);
  case OpSqrt:
    return ptx::sqrt(type, a, options);
  case OpMin:
    return ptx::min(type, a, b, m);
  case OpMax:
    return ptx::max(type, a, b, m);
  case OpMin3:
    return ptx::min(type, ptx::min(type, a, b, m), c, m);
  case OpMax3:
    return ptx::max(type, ptx::max(type, a, b, m), c, m);
  case OpNeg:
    return ptx::neg(type, a, options.ftz);
  case OpAbs:
    return ptx::abs(type, a, options.ftz);
  case OpCopysign:
    return ptx::copysign(type, a, b);
  case OpDivApprox:
    return ptx::divApprox(uint32_t(a), uint32_t(b), false, options.ftz);
  case OpDivFull:
    return ptx::divApprox(uint32_t(a), uint32_t(b), true, options.ftz);
  default:
    return ptx::approx(ptx::ApproxOp(operation - OpApprox), type, a,
                       options.ftz);
  }
}

template <class S>
void scalarHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  S *d = w.row<S>(o[0]);
  const S *a = w.row<S>(o[1]);
  const S *b = inst.opCount > 2 ? w.row<S>(o[2]) : a;
  const S *c = inst.opCount > 3 ? w.row<S>(o[3]) : a;
  FloatType type = floatTypeOf(inst.ty);
  FloatOptions options = optionsOf(inst);
  uint32_t operation = inst.flags >> OperationShift;
  forLanes(mask, [&](unsigned l) {
    d[l] = S(scalar(operation, type, inst, options, a[l], b[l], c[l]));
  });
}

/// f16x2 and bf16x2.
void packedHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *a = w.row<uint32_t>(o[1]);
  const uint32_t *b = inst.opCount > 2 ? w.row<uint32_t>(o[2]) : a;
  const uint32_t *c = inst.opCount > 3 ? w.row<uint32_t>(o[3]) : a;
  FloatType type = floatTypeOf(inst.ty);
  FloatOptions options = optionsOf(inst);
  uint32_t operation = inst.flags >> OperationShift;
  forLanes(mask, [&](unsigned l) {
    switch (operation) {
    case OpAdd:
      d[l] = ptx::addPacked(type, a[l], b[l], options);
      return;
    case OpSub:
      d[l] = ptx::subPacked(type, a[l], b[l], options);
      return;
    case OpMul:
      d[l] = ptx::mulPacked(type, a[l], b[l], options);
      return;
    case OpFma:
      d[l] = ptx::fmaPacked(type, a[l], b[l], c[l], options);
      return;
    default: {
      uint32_t lo =
          uint32_t(scalar(operation, type, inst, options, a[l] & 0xFFFF,
                          b[l] & 0xFFFF, c[l] & 0xFFFF));
      uint32_t hi = uint32_t(scalar(operation, type, inst, options, a[l] >> 16,
                                    b[l] >> 16, c[l] >> 16));
      d[l] = lo | hi << 16;
    }
    }
  });
}

/// f32x2: two f32 in a 64-bit register.
void pairHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint64_t *d = w.row<uint64_t>(o[0]);
  const uint64_t *a = w.row<uint64_t>(o[1]);
  const uint64_t *b = inst.opCount > 2 ? w.row<uint64_t>(o[2]) : a;
  const uint64_t *c = inst.opCount > 3 ? w.row<uint64_t>(o[3]) : a;
  FloatOptions options = optionsOf(inst);
  uint32_t operation = inst.flags >> OperationShift;
  forLanes(mask, [&](unsigned l) {
    uint64_t lo = scalar(operation, FloatType::F32, inst, options,
                         uint32_t(a[l]), uint32_t(b[l]), uint32_t(c[l]));
    uint64_t hi = scalar(operation, FloatType::F32, inst, options, a[l] >> 32,
                         b[l] >> 32, c[l] >> 32);
    d[l] = lo | hi << 32;
  });
}

void testpHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *p = w.pred(o[0]);
  uint32_t r = 0;
  forLanes(mask, [&](unsigned l) {
    r |= uint32_t(ptx::testp(floatTypeOf(inst.ty), ptx::TestOp(inst.flags),
                             wideValue(w, o[1], l)))
         << l;
  });
  *p = (*p & ~mask) | r;
}

/// fma with mixed types (sm_100): add/sub/fma.f32.{f16,bf16}.
void mixedHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *a = w.row<uint32_t>(o[1]), *b = w.row<uint32_t>(o[2]);
  const uint32_t *c = inst.opCount > 3 ? w.row<uint32_t>(o[3]) : b;
  FloatType narrow = floatTypeOf(inst.ty2);
  FloatOptions options = optionsOf(inst);
  uint32_t operation = inst.flags >> OperationShift;
  forLanes(mask, [&](unsigned l) {
    uint64_t x = ptx::convert(FloatType::F32, narrow, a[l] & 0xFFFF);
    uint64_t y = operation == OpFma
                     ? ptx::convert(FloatType::F32, narrow, b[l] & 0xFFFF)
                     : b[l];
    d[l] =
        uint32_t(scalar(operation, FloatType::F32, inst, options, x, y, c[l]));
  });
}
} // namespace

static void decodeTestp(Decoder &d) {
  static const char *const names[] = {"finite",     "infinite", "number",
                                      "notanumber", "normal",   "subnormal"};
  int op = -1;
  for (int i = 0; i < 6; ++i)
    if (d.mod(names[i]))
      op = i;
  Ty ty = d.type();
  if (op < 0 || !isFloatTy(ty))
    return d.bad("expected a class and a type of 'testp'");
  if (!d.expectOperands(2))
    return;
  d.classify(InstClass::Float);
  d.inst.flags = uint32_t(op);
  d.inst.ty = ty;
  d.inst.fn = testpHandler;
  d.dst(d.operands[0], Ty::Pred);
  d.src(d.operands[1], ty);
}

void decodeFloat(Decoder &d) {
  StringRef op = d.opcode;
  Inst &inst = d.inst;
  if (op == "testp")
    return decodeTestp(d);
  Rounding rounding = Rounding::RN;
  bool approx = d.mod("approx"), full = d.mod("full");
  d.rounding(rounding);
  if (d.mod("ftz"))
    inst.flags |= Ftz;
  if (d.mod("sat"))
    inst.flags |= Sat;
  if (d.mod("relu"))
    inst.flags |= Relu;
  if (d.mod("NaN"))
    inst.flags |= NaNFlag;
  if (d.mod("xorsign"))
    inst.flags |= XorSign;
  d.mod("abs");
  d.mod("noftz");
  if (d.mod("oob"))
    return d.unsupported("'.oob'");
  Ty ty = d.type();
  if (ty == Ty::None)
    return d.bad("expected a type of '" + op + "'");
  inst.ty = ty;
  Ty narrow = d.type(); // fma.rn.f32.f16 and the like
  if (!isFloatTy(ty) && ty != Ty::F32x2)
    return d.bad("expected a floating-point type of '" + op + "'");
  inst.flags |= uint32_t(rounding);

  unsigned sources = 2;
  uint32_t operation = OpAdd;
  if (op == "add")
    operation = OpAdd;
  else if (op == "sub")
    operation = OpSub;
  else if (op == "mul")
    operation = OpMul;
  else if (op == "fma" || op == "mad")
    operation = OpFma, sources = 3;
  else if (op == "div")
    operation = full ? OpDivFull : approx ? OpDivApprox : OpDiv;
  else if (op == "min" || op == "max") {
    bool three = d.operands.size() == 4;
    sources = three ? 3 : 2;
    operation =
        op == "min" ? (three ? OpMin3 : OpMin) : (three ? OpMax3 : OpMax);
  } else if (op == "copysign")
    operation = OpCopysign;
  else {
    sources = 1;
    using A = ptx::ApproxOp;
    if (op == "neg")
      operation = OpNeg;
    else if (op == "abs")
      operation = OpAbs;
    else if (op == "rcp")
      operation = approx ? OpApprox + unsigned(A::Rcp) : unsigned(OpRcp);
    else if (op == "sqrt")
      operation = approx ? OpApprox + unsigned(A::Sqrt) : unsigned(OpSqrt);
    else if (op == "rsqrt")
      operation = OpApprox + unsigned(A::Rsqrt);
    else if (op == "sin")
      operation = OpApprox + unsigned(A::Sin);
    else if (op == "cos")
      operation = OpApprox + unsigned(A::Cos);
    else if (op == "lg2")
      operation = OpApprox + unsigned(A::Lg2);
    else if (op == "ex2")
      operation = OpApprox + unsigned(A::Ex2);
    else if (op == "tanh")
      operation = OpApprox + unsigned(A::Tanh);
  }
  bool special = operation >= OpApprox || operation == OpDiv ||
                 operation == OpRcp || operation == OpSqrt;
  bool half =
      ty == Ty::F16 || ty == Ty::F16x2 || ty == Ty::BF16 || ty == Ty::BF16x2;
  d.classify(special         ? InstClass::Special
             : half          ? InstClass::Half
             : ty == Ty::F64 ? InstClass::Double
                             : InstClass::Float);
  if (operation == OpMin3 || operation == OpMax3)
    d.classify(InstClass::Float);
  inst.flags |= operation << OperationShift;

  bool plain = rounding == Rounding::RN && !(inst.flags & (Sat | Relu));
  bool ftz = inst.flags & Ftz;
  if (narrow != Ty::None) {
    if (ty != Ty::F32 || (narrow != Ty::F16 && narrow != Ty::BF16) ||
        operation > OpFma || operation == OpMul)
      return d.unsupported("mixed types of '" + op + "'");
    inst.ty2 = narrow;
    inst.fn = mixedHandler;
    if (!d.expectOperands(sources + 1))
      return;
    d.dst(d.operands[0], ty);
    d.src(d.operands[1], narrow);
    d.src(d.operands[2], operation == OpFma ? narrow : ty);
    if (operation == OpFma)
      d.src(d.operands[3], ty);
    return d.finishModifiers();
  }
  if (ty == Ty::F32 && plain && operation <= OpFma) {
    static constexpr Handler table[4][2] = {
        {fastF32<OpAdd, false>, fastF32<OpAdd, true>},
        {fastF32<OpSub, false>, fastF32<OpSub, true>},
        {fastF32<OpMul, false>, fastF32<OpMul, true>},
        {fastF32<OpFma, false>, fastF32<OpFma, true>}};
    inst.fn = table[operation][ftz];
  } else if (ty == Ty::F16x2 || ty == Ty::BF16x2) {
    inst.fn = packedHandler;
  } else if (ty == Ty::F32x2) {
    inst.fn = pairHandler;
  } else if (ty == Ty::F64) {
    inst.fn = scalarHandler<uint64_t>;
  } else {
    inst.fn = scalarHandler<uint32_t>;
  }
  if (!d.expectOperands(sources + 1))
    return;
  d.dst(d.operands[0], ty);
  for (unsigned i = 1; i <= sources; ++i)
    d.src(d.operands[i], ty);
  d.finishModifiers();
}

} // namespace emulator
} // namespace humming
