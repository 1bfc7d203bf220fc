//===- ExecInteger.cpp - Integer and bit instructions -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include "Humming/Emulator/IntegerArithmetic.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace humming {
namespace emulator {

namespace {
template <class T>
using U = std::make_unsigned_t<T>;

struct AddOp {
  template <class T>
  static T run(T a, T b) {
    return T(U<T>(a) + U<T>(b));
  }
};
struct SubOp {
  template <class T>
  static T run(T a, T b) {
    return T(U<T>(a) - U<T>(b));
  }
};
/// Wide enough that 16-bit products do not overflow int.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
struct MulLoOp {
  template <class T>
  static T run(T a, T b) {
    return T(Wide<T>(a) * Wide<T>(b));
  }
};
struct MadLoOp {
  template <class T>
  static T run(T a, T b, T c) {
    return T(Wide<T>(a) * Wide<T>(b) + Wide<T>(c));
  }
};
template <class T>
T mulHi(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    using W =
        std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return T((W(a) * W(b)) >> 64);
  } else {
    using W = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    return T((W(a) * W(b)) >> (8 * sizeof(T)));
  }
}
struct MulHiOp {
  template <class T>
  static T run(T a, T b) {
    return mulHi(a, b);
  }
};
struct MadHiOp {
  template <class T>
  static T run(T a, T b, T c) {
    return T(U<T>(mulHi(a, b)) + U<T>(c));
  }
};
struct MinOp {
  template <class T>
  static T run(T a, T b) {
    return a < b ? a : b;
  }
};
struct MaxOp {
  template <class T>
  static T run(T a, T b) {
    return a < b ? b : a;
  }
};
struct MinReluOp {
  template <class T>
  static T run(T a, T b) {
    return std::max<T>(std::min(a, b), 0);
  }
};
struct MaxReluOp {
  template <class T>
  static T run(T a, T b) {
    return std::max<T>(std::max(a, b), 0);
  }
};
struct DivOp {
  template <class T>
  static T run(T a, T b) {
    if (b == 0)
      return T(-1); // unspecified by the ISA; all ones on hardware
    if constexpr (std::is_signed_v<T>)
      if (b == -1)
        return T(U<T>(0) - U<T>(a));
    return T(a / b);
  }
};
struct RemOp {
  template <class T>
  static T run(T a, T b) {
    if (b == 0)
      return a;
    if constexpr (std::is_signed_v<T>)
      if (b == -1)
        return 0;
    return T(a % b);
  }
};
struct SadOp {
  template <class T>
  static T run(T a, T b, T c) {
    return T(U<T>(c) +
             (a < b ? U<T>(U<T>(b) - U<T>(a)) : U<T>(U<T>(a) - U<T>(b))));
  }
};
struct NegOp {
  template <class T>
  static T run(T a) {
    return T(U<T>(0) - U<T>(a));
  }
};
struct AbsOp {
  template <class T>
  static T run(T a) {
    return a < T(0) ? T(U<T>(0) - U<T>(a)) : a;
  }
};
struct AndOp {
  template <class T>
  static T run(T a, T b) {
    return a & b;
  }
};
struct OrOp {
  template <class T>
  static T run(T a, T b) {
    return a | b;
  }
};
struct XorOp {
  template <class T>
  static T run(T a, T b) {
    return a ^ b;
  }
};
struct NotOp {
  template <class T>
  static T run(T a) {
    return T(~a);
  }
};
struct CnotOp {
  template <class T>
  static T run(T a) {
    return a == 0;
  }
};
struct AddSatOp {
  template <class T>
  static T run(T a, T b) {
    int64_t r = int64_t(a) + int64_t(b);
    return T(std::clamp<int64_t>(r, INT32_MIN, INT32_MAX));
  }
};
struct SubSatOp {
  template <class T>
  static T run(T a, T b) {
    int64_t r = int64_t(a) - int64_t(b);
    return T(std::clamp<int64_t>(r, INT32_MIN, INT32_MAX));
  }
};
/// mul.wide and mad.wide: T times T into a type of twice the width.
template <class T, class W, bool Mad>
void wideHandler(Warp &w, const Inst &inst, uint32_t mask) {
  using S = Storage<T>;
  using D = Storage<W>;
  const Operand *o = w.ops(inst);
  D *d = w.row<D>(o[0]);
  const S *a = w.row<S>(o[1]), *b = w.row<S>(o[2]);
  if constexpr (Mad) {
    const D *c = w.row<D>(o[3]);
    vectorLanes(mask,
                [&](unsigned l) { d[l] = D(W(T(a[l])) * W(T(b[l]))) + c[l]; });
  } else {
    vectorLanes(mask, [&](unsigned l) { d[l] = D(W(T(a[l])) * W(T(b[l]))); });
  }
}

/// mul24/mad24: flags bit 0 signed, 1 high, 2 mad.
void mul24Handler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *a = w.row<uint32_t>(o[1]), *b = w.row<uint32_t>(o[2]);
  const uint32_t *c = inst.flags & 4 ? w.row<uint32_t>(o[3]) : nullptr;
  forLanes(mask, [&](unsigned l) {
    int64_t x = a[l] & 0xFFFFFF, y = b[l] & 0xFFFFFF;
    if (inst.flags & 1) {
      x = int32_t(a[l] << 8) >> 8;
      y = int32_t(b[l] << 8) >> 8;
    }
    int64_t p = x * y;
    d[l] = uint32_t(inst.flags & 2 ? p >> 16 : p) + (c ? c[l] : 0);
  });
}

/// add.cc, addc, sub.cc, subc, madc. flags: 0 subtract, 1 carry in, 2 carry
/// out, 3 mad lo, 4 mad hi.
template <class T>
void carryHandler(Warp &w, const Inst &inst, uint32_t mask) {
  using S = Storage<T>;
  const Operand *o = w.ops(inst);
  S *d = w.row<S>(o[0]);
  const S *a = w.row<S>(o[1]), *b = w.row<S>(o[2]);
  const S *c = inst.flags & (8 | 16) ? w.row<S>(o[3]) : nullptr;
  forLanes(mask, [&](unsigned l) {
    bool in = inst.flags & 2 && (w.carry >> l & 1);
    U<T> x = U<T>(a[l]), y = U<T>(b[l]);
    if (inst.flags & (8 | 16)) {
      x = inst.flags & 8 ? U<T>(T(MulLoOp::run(T(a[l]), T(b[l]))))
                         : U<T>(mulHi(T(a[l]), T(b[l])));
      y = U<T>(c[l]);
    }
    unsigned __int128 r = inst.flags & 1 ? (unsigned __int128)x - y - in
                                         : (unsigned __int128)x + y + in;
    bool out = r >> (8 * sizeof(T)) & 1;
    d[l] = S(U<T>(r));
    if (inst.flags & 4)
      w.carry = (w.carry & ~(1u << l)) | uint32_t(out) << l;
  });
}

template <class T>
void shlHandler(Warp &w, const Inst &inst, uint32_t mask) {
  using S = Storage<T>;
  const Operand *o = w.ops(inst);
  S *d = w.row<S>(o[0]);
  const S *a = w.row<S>(o[1]);
  const uint32_t *n = w.row<uint32_t>(o[2]);
  constexpr unsigned bits = 8 * sizeof(T);
  vectorLanes(mask, [&](unsigned l) {
    d[l] = n[l] >= bits ? 0 : S(T(S(T(a[l])) << (n[l] & (bits - 1))));
  });
}
template <class T>
void shrHandler(Warp &w, const Inst &inst, uint32_t mask) {
  using S = Storage<T>;
  const Operand *o = w.ops(inst);
  S *d = w.row<S>(o[0]);
  const S *a = w.row<S>(o[1]);
  const uint32_t *n = w.row<uint32_t>(o[2]);
  constexpr unsigned bits = 8 * sizeof(T);
  vectorLanes(mask, [&](unsigned l) {
    T v = T(a[l]);
    bool past = n[l] >= bits;
    T r = T(v >> (past ? bits - 1 : n[l]));
    if (past && !std::is_signed_v<T>)
      r = 0;
    d[l] = pack<T>(r);
  });
}

/// shf: flags bit 0 left, 1 wrap.
void shfHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *a = w.row<uint32_t>(o[1]), *b = w.row<uint32_t>(o[2]),
                 *c = w.row<uint32_t>(o[3]);
  bool left = inst.flags & 1, wrap = inst.flags & 2;
  vectorLanes(
      mask, [&](unsigned l) { d[l] = ptx::shf(left, wrap, a[l], b[l], c[l]); });
}

/// The table is a constant: one pass over its minterms per warp, not per lane.
void lop3Handler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *a = w.row<uint32_t>(o[1]), *b = w.row<uint32_t>(o[2]),
                 *c = w.row<uint32_t>(o[3]);
  uint32_t term[8];
  for (unsigned i = 0; i < 8; ++i)
    term[i] = inst.flags >> i & 1 ? 0xFFFFFFFF : 0;
  vectorLanes(mask, [&](unsigned l) {
    uint32_t x = a[l], y = b[l], z = c[l];
    uint32_t r = (~x & ~y & ~z & term[0]) | (~x & ~y & z & term[1]) |
                 (~x & y & ~z & term[2]) | (~x & y & z & term[3]) |
                 (x & ~y & ~z & term[4]) | (x & ~y & z & term[5]) |
                 (x & y & ~z & term[6]) | (x & y & z & term[7]);
    d[l] = r;
  });
}
/// lop3.BoolOp d|p: p = (d != 0) op q. flags: lut | bit 8 and (else or).
void lop3PredHandler(Warp &w, const Inst &inst, uint32_t mask) {
  lop3Handler(w, inst, mask);
  const Operand *o = w.ops(inst);
  const uint32_t *d = w.row<uint32_t>(o[0]);
  uint32_t p = 0, q = *w.pred(o[5]);
  if (inst.flags & 512)
    q = ~q;
  for (unsigned l = 0; l < 32; ++l)
    p |= uint32_t(d[l] != 0) << l;
  p = inst.flags & 256 ? p & q : p | q;
  uint32_t *out = w.pred(o[4]);
  *out = (*out & ~mask) | (p & mask);
}

template <ptx::PrmtMode Mode>
void prmtHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *a = w.row<uint32_t>(o[1]), *b = w.row<uint32_t>(o[2]),
                 *c = w.row<uint32_t>(o[3]);
  forLanes(mask, [&](unsigned l) { d[l] = ptx::prmt(a[l], b[l], c[l], Mode); });
}

template <class T>
void bfeHandler(Warp &w, const Inst &inst, uint32_t mask) {
  using S = Storage<T>;
  const Operand *o = w.ops(inst);
  S *d = w.row<S>(o[0]);
  const S *a = w.row<S>(o[1]);
  const uint32_t *pos = w.row<uint32_t>(o[2]), *len = w.row<uint32_t>(o[3]);
  constexpr unsigned bits = 8 * sizeof(T);
  forLanes(mask, [&](unsigned l) {
    uint32_t p = bits == 32 ? pos[l] & 0xFF : pos[l];
    uint32_t n = bits == 32 ? len[l] & 0xFF : len[l];
    if (n && n <= bits && p <= bits - n)
      d[l] = pack<T>(T(T(U<T>(a[l]) << (bits - p - n)) >> (bits - n)));
    else
      d[l] = S(ptx::bfe(bits, std::is_signed_v<T>, a[l], p, n));
  });
}
template <class T>
void bfiHandler(Warp &w, const Inst &inst, uint32_t mask) {
  using S = Storage<T>;
  const Operand *o = w.ops(inst);
  S *d = w.row<S>(o[0]);
  const S *a = w.row<S>(o[1]), *b = w.row<S>(o[2]);
  const uint32_t *pos = w.row<uint32_t>(o[3]), *len = w.row<uint32_t>(o[4]);
  forLanes(mask, [&](unsigned l) {
    d[l] = S(ptx::bfi(8 * sizeof(T), a[l], b[l], pos[l], len[l]));
  });
}

/// Operations with a 32-bit result: popc, clz, bfind. flags: bfind's shiftamt.
struct PopcOp {
  template <class T>
  static uint32_t run(T a, uint32_t) {
    return llvm::popcount(U<T>(a));
  }
};
struct ClzOp {
  template <class T>
  static uint32_t run(T a, uint32_t) {
    return llvm::countl_zero(U<T>(a));
  }
};
struct BfindOp {
  template <class T>
  static uint32_t run(T a, uint32_t flags) {
    return ptx::bfind(8 * sizeof(T), std::is_signed_v<T>, flags & 1,
                      uint64_t(U<T>(a)));
  }
};
struct BrevOp {
  template <class T>
  static T run(T a) {
    return T(ptx::brev(8 * sizeof(T), a));
  }
};
template <class T, class Op>
void to32Handler(Warp &w, const Inst &inst, uint32_t mask) {
  using S = Storage<T>;
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const S *a = w.row<S>(o[1]);
  forLanes(mask, [&](unsigned l) { d[l] = Op::run(T(a[l]), inst.flags); });
}
template <class T, class Op>
struct To32 {
  static constexpr Handler fn = to32Handler<T, Op>;
};

void fnsHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *m = w.row<uint32_t>(o[1]), *b = w.row<uint32_t>(o[2]),
                 *n = w.row<uint32_t>(o[3]);
  forLanes(mask, [&](unsigned l) {
    int offset = int(n[l]), base = int(b[l]);
    uint32_t r = 0xFFFFFFFF;
    if (offset == 0) {
      if (base >= 0 && base < 32 && (m[l] >> base & 1))
        r = uint32_t(base);
    } else {
      int step = offset > 0 ? 1 : -1, count = offset > 0 ? offset : -offset;
      for (int i = base; i >= 0 && i < 32; i += step)
        if (m[l] >> i & 1 && --count == 0) {
          r = uint32_t(i);
          break;
        }
    }
    d[l] = r;
  });
}

/// szext, bmsk. flags: bit 0 wrap, 1 signed, 2 bmsk.
void szextHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *a = w.row<uint32_t>(o[1]), *b = w.row<uint32_t>(o[2]);
  forLanes(mask, [&](unsigned l) {
    d[l] = inst.flags & 4
               ? ptx::bmsk(inst.flags & 1, a[l], b[l])
               : ptx::szext(inst.flags & 1, inst.flags & 2, a[l], b[l]);
  });
}

/// dp4a, dp2a. flags: bit 0 a signed, 1 b signed, 2 dp2a, 3 hi.
void dpHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *a = w.row<uint32_t>(o[1]), *b = w.row<uint32_t>(o[2]),
                 *c = w.row<uint32_t>(o[3]);
  unsigned f = inst.flags;
  forLanes(mask, [&](unsigned l) {
    d[l] = f & 4 ? ptx::dp2a(f & 8, f & 1, f & 2, a[l], b[l], c[l])
                 : ptx::dp4a(f & 1, f & 2, a[l], b[l], c[l]);
  });
}

/// add/min/max of u16x2, s16x2. flags: 0 add, 1 min, 2 max; bit 4 signed, bit 5
/// relu.
void packed16Handler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *d = w.row<uint32_t>(o[0]);
  const uint32_t *a = w.row<uint32_t>(o[1]), *b = w.row<uint32_t>(o[2]);
  unsigned op = inst.flags & 3;
  bool isSigned = inst.flags & 16, relu = inst.flags & 32;
  forLanes(mask, [&](unsigned l) {
    uint32_t r = 0;
    for (unsigned h = 0; h < 32; h += 16) {
      int x = a[l] >> h & 0xFFFF, y = b[l] >> h & 0xFFFF;
      if (isSigned) {
        x = int16_t(x);
        y = int16_t(y);
      }
      int v = op == 0 ? x + y : op == 1 ? std::min(x, y) : std::max(x, y);
      if (relu)
        v = std::max(v, 0);
      r |= uint32_t(v & 0xFFFF) << h;
    }
    d[l] = r;
  });
}

// Logic on predicates works on whole lane masks.
template <class Op>
void predBinaryHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t a = *w.pred(o[1]), b = *w.pred(o[2]);
  if (inst.flags & 1)
    a = ~a;
  if (inst.flags & 2)
    b = ~b;
  uint32_t *d = w.pred(o[0]);
  *d = (*d & ~mask) | (Op::run(a, b) & mask);
}
void predNotHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *d = w.pred(o[0]);
  *d = (*d & ~mask) | (~*w.pred(o[1]) & mask);
}
} // namespace

static void operandsOf(Decoder &d, Ty ty, unsigned sources) {
  if (!d.expectOperands(sources + 1))
    return;
  d.dst(d.operands[0], ty);
  for (unsigned i = 1; i <= sources; ++i)
    d.src(d.operands[i], ty);
}

template <class Op>
static void decodeLogic(Decoder &d, Ty ty) {
  d.classify(InstClass::Logic);
  if (ty == Ty::Pred) {
    d.classify(InstClass::Predicate);
    d.inst.fn = predBinaryHandler<Op>;
    operandsOf(d, ty, 2);
    if (d.ok())
      d.inst.flags = d.operands[1].negated | d.operands[2].negated << 1;
    return;
  }
  d.inst.fn = pickInteger<Binary, Op>(ty);
  operandsOf(d, ty, 2);
}

static void decodeMulMad(Decoder &d, bool mad) {
  bool wide = d.mod("wide"), hi = d.mod("hi"), lo = d.mod("lo");
  bool sat = d.mod("sat"), cc = d.mod("cc");
  Ty ty = d.type();
  if (!wide && !hi && !lo)
    return d.bad("expected .lo, .hi or .wide of '" + d.opcode + "'");
  if (sat)
    return d.unsupported("'" + d.opcode + ".hi.sat'");
  if (wide) {
    Ty to;
    switch (ty) {
    case Ty::U16:
      d.inst.fn = mad ? wideHandler<uint16_t, uint32_t, true>
                      : wideHandler<uint16_t, uint32_t, false>;
      to = Ty::U32;
      break;
    case Ty::S16:
      d.inst.fn = mad ? wideHandler<int16_t, int32_t, true>
                      : wideHandler<int16_t, int32_t, false>;
      to = Ty::S32;
      break;
    case Ty::U32:
      d.inst.fn = mad ? wideHandler<uint32_t, uint64_t, true>
                      : wideHandler<uint32_t, uint64_t, false>;
      to = Ty::U64;
      break;
    case Ty::S32:
      d.inst.fn = mad ? wideHandler<int32_t, int64_t, true>
                      : wideHandler<int32_t, int64_t, false>;
      to = Ty::S64;
      break;
    default:
      return d.bad("expected a 16 or 32-bit type of '" + d.opcode + ".wide'");
    }
    if (!d.expectOperands(mad ? 4 : 3))
      return;
    d.dst(d.operands[0], to);
    d.src(d.operands[1], ty);
    d.src(d.operands[2], ty);
    if (mad)
      d.src(d.operands[3], to);
    return;
  }
  if (cc) {
    d.inst.flags = 4 | (hi ? 16 : 8);
    d.inst.fn =
        bitsOf(ty) == 64
            ? (isSignedTy(ty) ? carryHandler<int64_t> : carryHandler<uint64_t>)
            : (isSignedTy(ty) ? carryHandler<int32_t> : carryHandler<uint32_t>);
  } else if (mad) {
    d.inst.fn = hi ? pickInteger<Ternary, MadHiOp>(ty)
                   : pickInteger<Ternary, MadLoOp>(ty);
  } else {
    d.inst.fn = hi ? pickInteger<Binary, MulHiOp>(ty)
                   : pickInteger<Binary, MulLoOp>(ty);
  }
  operandsOf(d, ty, mad ? 3 : 2);
}

void decodeInteger(Decoder &d) {
  StringRef op = d.opcode;
  Inst &inst = d.inst;
  d.classify(InstClass::Integer);
  if (op == "mul" || op == "mad")
    decodeMulMad(d, op == "mad");
  else if (op == "add" || op == "sub" || op == "addc" || op == "subc" ||
           op == "madc") {
    bool sat = d.mod("sat"), cc = d.mod("cc");
    bool hi = d.mod("hi"), lo = d.mod("lo");
    Ty ty = d.type();
    bool sub = op.starts_with("sub");
    if (ty == Ty::U16x2 || ty == Ty::S16x2) {
      if (sub)
        return d.unsupported("packed subtraction");
      inst.flags = ty == Ty::S16x2 ? 16 : 0;
      inst.fn = packed16Handler;
    } else if (op.ends_with("c") || cc) {
      inst.flags = (sub ? 1 : 0) | (op.ends_with("c") ? 2 : 0) | (cc ? 4 : 0) |
                   (lo ? 8 : 0) | (hi ? 16 : 0);
      inst.fn = bitsOf(ty) == 64 ? (isSignedTy(ty) ? carryHandler<int64_t>
                                                   : carryHandler<uint64_t>)
                                 : (isSignedTy(ty) ? carryHandler<int32_t>
                                                   : carryHandler<uint32_t>);
    } else if (sat) {
      if (ty != Ty::S32)
        return d.bad("expected .s32 with .sat");
      inst.fn = sub ? binaryHandler<int32_t, SubSatOp>
                    : binaryHandler<int32_t, AddSatOp>;
    } else {
      inst.fn =
          sub ? pickInteger<Binary, SubOp>(ty) : pickInteger<Binary, AddOp>(ty);
    }
    operandsOf(d, ty, op == "madc" ? 3 : 2);
  } else if (op == "min" || op == "max") {
    bool relu = d.mod("relu");
    Ty ty = d.type();
    bool isMin = op == "min";
    if (ty == Ty::U16x2 || ty == Ty::S16x2) {
      inst.flags =
          (isMin ? 1 : 2) | (ty == Ty::S16x2 ? 16 : 0) | (relu ? 32 : 0);
      inst.fn = packed16Handler;
    } else if (relu) {
      if (ty != Ty::S32)
        return d.bad("expected .s32 or .s16x2 with .relu");
      inst.fn = isMin ? binaryHandler<int32_t, MinReluOp>
                      : binaryHandler<int32_t, MaxReluOp>;
    } else {
      inst.fn = isMin ? pickInteger<Binary, MinOp>(ty)
                      : pickInteger<Binary, MaxOp>(ty);
    }
    operandsOf(d, ty, 2);
  } else if (op == "div" || op == "rem") {
    Ty ty = d.type();
    inst.fn = op == "div" ? pickInteger<Binary, DivOp>(ty)
                          : pickInteger<Binary, RemOp>(ty);
    operandsOf(d, ty, 2);
  } else if (op == "neg" || op == "abs") {
    Ty ty = d.type();
    inst.fn = op == "neg" ? pickInteger<Unary, NegOp>(ty)
                          : pickInteger<Unary, AbsOp>(ty);
    operandsOf(d, ty, 1);
  } else if (op == "sad") {
    Ty ty = d.type();
    inst.fn = pickInteger<Ternary, SadOp>(ty);
    operandsOf(d, ty, 3);
  } else if (op == "mul24" || op == "mad24") {
    bool hi = d.mod("hi");
    d.mod("lo");
    Ty ty = d.type();
    bool mad = op == "mad24";
    inst.flags = (isSignedTy(ty) ? 1 : 0) | (hi ? 2 : 0) | (mad ? 4 : 0);
    inst.fn = bitsOf(ty) == 32 ? mul24Handler : nullptr;
    operandsOf(d, ty, mad ? 3 : 2);
  } else if (op == "and") {
    decodeLogic<AndOp>(d, d.type());
  } else if (op == "or") {
    decodeLogic<OrOp>(d, d.type());
  } else if (op == "xor") {
    decodeLogic<XorOp>(d, d.type());
  } else if (op == "not" || op == "cnot") {
    Ty ty = d.type();
    d.classify(InstClass::Logic);
    if (ty == Ty::Pred) {
      d.classify(InstClass::Predicate);
      inst.fn = op == "not" ? predNotHandler : nullptr;
    } else {
      inst.fn = op == "not" ? pickInteger<Unary, NotOp>(ty)
                            : pickInteger<Unary, CnotOp>(ty);
    }
    operandsOf(d, ty, 1);
  } else if (op == "shl" || op == "shr") {
    Ty ty = d.type();
    d.classify(InstClass::Logic);
    bool right = op == "shr";
    switch (bitsOf(ty)) {
    case 16:
      inst.fn = !right           ? shlHandler<uint16_t>
                : isSignedTy(ty) ? shrHandler<int16_t>
                                 : shrHandler<uint16_t>;
      break;
    case 32:
      inst.fn = !right           ? shlHandler<uint32_t>
                : isSignedTy(ty) ? shrHandler<int32_t>
                                 : shrHandler<uint32_t>;
      break;
    case 64:
      inst.fn = !right           ? shlHandler<uint64_t>
                : isSignedTy(ty) ? shrHandler<int64_t>
                                 : shrHandler<uint64_t>;
      break;
    }
    if (!d.expectOperands(3))
      return;
    d.dst(d.operands[0], ty);
    d.src(d.operands[1], ty);
    d.src(d.operands[2], Ty::B32);
  } else if (op == "shf") {
    d.classify(InstClass::Logic);
    bool left = d.mod("l"), right = d.mod("r"), wrap = d.mod("wrap");
    d.mod("clamp");
    if (left == right)
      return d.bad("expected .l or .r of 'shf'");
    inst.flags = (left ? 1 : 0) | (wrap ? 2 : 0);
    inst.fn = shfHandler;
    operandsOf(d, d.type(), 3);
  } else if (op == "lop3") {
    d.classify(InstClass::Logic);
    bool orOp = d.mod("or"), andOp = d.mod("and");
    Ty ty = d.type();
    int64_t lut;
    if (ty != Ty::B32)
      return d.bad("expected .b32 of 'lop3'");
    if (!d.expectOperands(orOp || andOp ? 6 : 5, 6) ||
        !d.immediate(d.operands[4], lut))
      return;
    const POperand *dest = &d.operands[0];
    bool pair = dest->kind == POperand::Pair;
    d.dst(pair ? dest->elements[0] : *dest, ty);
    for (unsigned i = 1; i <= 3; ++i)
      d.src(d.operands[i], ty);
    inst.flags = uint32_t(lut & 0xFF) | (andOp ? 256 : 0);
    inst.fn = lop3Handler;
    if (orOp || andOp) {
      if (!pair)
        return d.bad("expected d|p of 'lop3' with a predicate operation");
      d.dst(dest->elements[1], Ty::Pred);
      d.src(d.operands[5], Ty::Pred);
      inst.flags |= d.operands[5].negated ? 512 : 0;
      inst.fn = lop3PredHandler;
    }
  } else if (op == "prmt") {
    d.classify(InstClass::Logic);
    Ty ty = d.type();
    using M = ptx::PrmtMode;
    inst.fn = d.mod("f4e")    ? prmtHandler<M::F4E>
              : d.mod("b4e")  ? prmtHandler<M::B4E>
              : d.mod("rc8")  ? prmtHandler<M::RC8>
              : d.mod("ecl")  ? prmtHandler<M::ECL>
              : d.mod("ecr")  ? prmtHandler<M::ECR>
              : d.mod("rc16") ? prmtHandler<M::RC16>
                              : prmtHandler<M::Default>;
    operandsOf(d, ty == Ty::B32 ? ty : Ty::None, 3);
  } else if (op == "bfe" || op == "bfi") {
    Ty ty = d.type();
    bool is64 = bitsOf(ty) == 64;
    if (bitsOf(ty) < 32)
      return d.bad("expected a 32 or 64-bit type of '" + op + "'");
    bool insert = op == "bfi";
    if (!d.expectOperands(insert ? 5 : 4))
      return;
    inst.fn = insert ? (is64 ? bfiHandler<uint64_t> : bfiHandler<uint32_t>)
              : isSignedTy(ty)
                  ? (is64 ? bfeHandler<int64_t> : bfeHandler<int32_t>)
                  : (is64 ? bfeHandler<uint64_t> : bfeHandler<uint32_t>);
    d.dst(d.operands[0], ty);
    d.src(d.operands[1], ty);
    if (insert)
      d.src(d.operands[2], ty);
    d.src(d.operands[insert ? 3 : 2], Ty::B32);
    d.src(d.operands[insert ? 4 : 3], Ty::B32);
  } else if (op == "popc" || op == "clz" || op == "bfind") {
    inst.flags = d.mod("shiftamt");
    Ty ty = d.type();
    inst.fn = op == "popc"  ? pickInteger<To32, PopcOp>(ty)
              : op == "clz" ? pickInteger<To32, ClzOp>(ty)
                            : pickInteger<To32, BfindOp>(ty);
    if (!d.expectOperands(2))
      return;
    d.dst(d.operands[0], Ty::U32);
    d.src(d.operands[1], ty);
  } else if (op == "brev") {
    Ty ty = d.type();
    inst.fn = pickInteger<Unary, BrevOp>(ty);
    operandsOf(d, ty, 1);
  } else if (op == "fns") {
    inst.fn = fnsHandler;
    operandsOf(d, d.type(), 3);
  } else if (op == "szext" || op == "bmsk") {
    inst.flags = d.mod("wrap") ? 1 : 0;
    d.mod("clamp");
    Ty ty = d.type();
    inst.flags |= (isSignedTy(ty) ? 2 : 0) | (op == "bmsk" ? 4 : 0);
    inst.fn = szextHandler;
    operandsOf(d, ty, 2);
  } else if (op == "dp4a" || op == "dp2a") {
    bool hi = d.mod("hi");
    d.mod("lo");
    Ty a = d.type(), b = d.type();
    inst.flags = (a == Ty::S32 ? 1 : 0) | (b == Ty::S32 ? 2 : 0) |
                 (op == "dp2a" ? 4 : 0) | (hi ? 8 : 0);
    inst.fn = dpHandler;
    operandsOf(d, Ty::B32, 3);
  }
  if (!d.ok())
    return;
  if (!inst.fn)
    return d.bad("type of '" + op + "' is not one that it takes");
  d.finishModifiers();
}

} // namespace emulator
} // namespace humming
