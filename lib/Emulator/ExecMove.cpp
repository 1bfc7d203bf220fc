//===- ExecMove.cpp - mov, selp, setp, set, slct, special registers -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace humming {
namespace emulator {

using ptx::CompareOp;
using ptx::FloatType;

namespace {

//===----------------------------------------------------------------------===//
// mov
//===----------------------------------------------------------------------===//

template <class S>
void movHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  S *d = w.row<S>(o[0]);
  const S *a = w.row<S>(o[1]);
  vectorLanes(mask, [&](unsigned l) { d[l] = a[l]; });
}
void mov128Handler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint64_t *d = w.row<uint64_t>(o[0]);
  const uint64_t *a = w.row<uint64_t>(o[1]);
  forLanes(mask, [&](unsigned l) {
    d[l] = a[l];
    d[32 + l] = a[32 + l];
  });
}
void movPredHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *d = w.pred(o[0]);
  uint32_t a = *w.pred(o[1]);
  *d = (*d & ~mask) | ((inst.flags ? ~a : a) & mask);
}
void movPredImmediateHandler(Warp &w, const Inst &inst, uint32_t mask) {
  uint32_t *d = w.pred(w.ops(inst)[0]);
  *d = inst.flags ? *d | mask : *d & ~mask;
}
/// mov.b32 d, {lo, hi}: flags = bits per element.
void packHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  unsigned bits = inst.flags, n = inst.opCount - 1u;
  uint64_t low = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  forLanes(mask, [&](unsigned l) {
    uint64_t v[2] = {0, 0};
    for (unsigned i = 0; i < n; ++i) {
      unsigned at = i * bits;
      v[at / 64] |= (wideValue(w, o[i + 1], l) & low) << (at % 64);
    }
    if (o[0].width() == Operand::W32)
      w.row<uint32_t>(o[0])[l] = uint32_t(v[0]);
    else
      w.row<uint64_t>(o[0])[l] = v[0];
    if (o[0].width() == Operand::W128)
      w.row<uint64_t>(o[0])[32 + l] = v[1];
  });
}
/// mov.b32 {lo, hi}, a.
void unpackHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  unsigned bits = inst.flags, n = inst.opCount - 1u;
  uint64_t low = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  const Operand &a = o[n];
  forLanes(mask, [&](unsigned l) {
    uint64_t v[2] = {wideValue(w, a, l), 0};
    if (a.width() == Operand::W128)
      v[1] = w.row<uint64_t>(a)[32 + l];
    for (unsigned i = 0; i < n; ++i) {
      unsigned at = i * bits;
      uint64_t e = v[at / 64] >> (at % 64) & low;
      if (o[i].width() == Operand::W32)
        w.row<uint32_t>(o[i])[l] = uint32_t(e);
      else
        w.row<uint64_t>(o[i])[l] = e;
    }
  });
}

//===----------------------------------------------------------------------===//
// setp, selp, set, slct
//===----------------------------------------------------------------------===//

enum SetFlags : uint32_t {
  OpMask = 31,
  BoolShift = 5, ///< 0 none, 1 and, 2 or, 3 xor
  NegateC = 128,
  SecondDest = 256,
  FtzFlag = 512,
  FloatResult = 1024,
};

struct EqCmp {
  template <class T>
  static bool run(T a, T b) {
    return a == b;
  }
};
struct NeCmp {
  template <class T>
  static bool run(T a, T b) {
    return a != b;
  }
};
struct LtCmp {
  template <class T>
  static bool run(T a, T b) {
    return a < b;
  }
};
struct LeCmp {
  template <class T>
  static bool run(T a, T b) {
    return a <= b;
  }
};
struct GtCmp {
  template <class T>
  static bool run(T a, T b) {
    return a > b;
  }
};
struct GeCmp {
  template <class T>
  static bool run(T a, T b) {
    return a >= b;
  }
};
template <class T, class Cmp>
uint32_t compareRows(const Storage<T> *a, const Storage<T> *b) {
  uint32_t r = 0;
  for (unsigned l = 0; l < 32; ++l)
    r |= uint32_t(Cmp::run(T(a[l]), T(b[l]))) << l;
  return r;
}
template <class T>
uint32_t compareAll(CompareOp op, const Storage<T> *a, const Storage<T> *b) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
  case CompareOp::EQ:
    return compareRows<U, EqCmp>(a, b);
  case CompareOp::NE:
    return compareRows<U, NeCmp>(a, b);
  case CompareOp::LT:
    return compareRows<T, LtCmp>(a, b);
  case CompareOp::LE:
    return compareRows<T, LeCmp>(a, b);
  case CompareOp::GT:
    return compareRows<T, GtCmp>(a, b);
  case CompareOp::GE:
    return compareRows<T, GeCmp>(a, b);
  case CompareOp::LO:
    return compareRows<U, LtCmp>(a, b);
  case CompareOp::LS:
    return compareRows<U, LeCmp>(a, b);
  case CompareOp::HI:
    return compareRows<U, GtCmp>(a, b);
  case CompareOp::HS:
    return compareRows<U, GeCmp>(a, b);
  default:
    return 0;
  }
}

FloatType floatTypeOf(Ty ty) {
  return ty == Ty::F16 || ty == Ty::F16x2     ? FloatType::F16
         : ty == Ty::BF16 || ty == Ty::BF16x2 ? FloatType::BF16
         : ty == Ty::F64                      ? FloatType::F64
                                              : FloatType::F32;
}

/// The lane mask of the comparison of o[a] and o[b] by inst.ty2.
uint32_t compareLanes(Warp &w, const Inst &inst, Operand a, Operand b,
                      uint32_t mask, unsigned half = 0) {
  CompareOp op = CompareOp(inst.flags & OpMask);
  switch (inst.ty2) {
  case Ty::U16:
  case Ty::B16:
    return compareAll<uint16_t>(op, w.row<uint32_t>(a), w.row<uint32_t>(b));
  case Ty::S16:
    return compareAll<int16_t>(op, w.row<uint32_t>(a), w.row<uint32_t>(b));
  case Ty::U32:
  case Ty::B32:
    return compareAll<uint32_t>(op, w.row<uint32_t>(a), w.row<uint32_t>(b));
  case Ty::S32:
    return compareAll<int32_t>(op, w.row<uint32_t>(a), w.row<uint32_t>(b));
  case Ty::U64:
  case Ty::B64:
    return compareAll<uint64_t>(op, w.row<uint64_t>(a), w.row<uint64_t>(b));
  case Ty::S64:
    return compareAll<int64_t>(op, w.row<uint64_t>(a), w.row<uint64_t>(b));
  default: {
    uint32_t r = 0;
    FloatType type = floatTypeOf(inst.ty2);
    bool packed = inst.ty2 == Ty::F16x2 || inst.ty2 == Ty::BF16x2;
    forLanes(mask, [&](unsigned l) {
      uint64_t x = wideValue(w, a, l), y = wideValue(w, b, l);
      if (packed) {
        x = x >> (16 * half) & 0xFFFF;
        y = y >> (16 * half) & 0xFFFF;
      }
      r |= uint32_t(ptx::compare(type, op, x, y, inst.flags & FtzFlag)) << l;
    });
    return r;
  }
  }
}

uint32_t combine(const Inst &inst, uint32_t r, uint32_t c) {
  if (inst.flags & NegateC)
    c = ~c;
  switch (inst.flags >> BoolShift & 3) {
  case 1:
    return r & c;
  case 2:
    return r | c;
  case 3:
    return r ^ c;
  }
  return r;
}

/// Operands: p, [q], a, b, [c].
void setpHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  unsigned second = inst.flags & SecondDest ? 1 : 0;
  bool hasBool = inst.flags >> BoolShift & 3;
  Operand a = o[1 + second], b = o[2 + second];
  bool packed = inst.ty2 == Ty::F16x2 || inst.ty2 == Ty::BF16x2;
  uint32_t r = compareLanes(w, inst, a, b, mask), q = ~r;
  if (packed && second)
    q = compareLanes(w, inst, a, b, mask, 1);
  if (hasBool) {
    uint32_t c = *w.pred(o[3 + second]);
    r = combine(inst, r, c);
    q = combine(inst, q, c);
  }
  uint32_t *p = w.pred(o[0]);
  *p = (*p & ~mask) | (r & mask);
  if (second) {
    uint32_t *p2 = w.pred(o[1]);
    *p2 = (*p2 & ~mask) | (q & mask);
  }
}

/// Operands: d, a, b, [c].
void setHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  bool hasBool = inst.flags >> BoolShift & 3;
  uint32_t c = hasBool ? *w.pred(o[3]) : 0;
  if (inst.ty2 == Ty::F16x2 || inst.ty2 == Ty::BF16x2) {
    uint32_t lo = compareLanes(w, inst, o[1], o[2], mask, 0);
    uint32_t hi = compareLanes(w, inst, o[1], o[2], mask, 1);
    if (hasBool) {
      lo = combine(inst, lo, c);
      hi = combine(inst, hi, c);
    }
    uint32_t one = inst.ty == Ty::F16x2    ? 0x3C00
                   : inst.ty == Ty::BF16x2 ? 0x3F80
                                           : 0xFFFF;
    uint32_t *d = w.row<uint32_t>(o[0]);
    forLanes(mask, [&](unsigned l) {
      d[l] = (lo >> l & 1 ? one : 0) | (hi >> l & 1 ? one << 16 : 0);
    });
    return;
  }
  uint32_t r = compareLanes(w, inst, o[1], o[2], mask);
  if (hasBool)
    r = combine(inst, r, c);
  uint32_t one = inst.ty == Ty::F32      ? 0x3F800000
                 : inst.ty == Ty::F16    ? 0x3C00
                 : inst.ty == Ty::BF16   ? 0x3F80
                 : bitsOf(inst.ty) == 16 ? 0xFFFF
                                         : 0xFFFFFFFF;
  uint32_t *d = w.row<uint32_t>(o[0]);
  forLanes(mask, [&](unsigned l) { d[l] = r >> l & 1 ? one : 0; });
}

template <class S>
void selpHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  S *d = w.row<S>(o[0]);
  const S *a = w.row<S>(o[1]), *b = w.row<S>(o[2]);
  uint32_t p = *w.pred(o[3]);
  if (inst.flags)
    p = ~p;
  vectorLanes(mask, [&](unsigned l) { d[l] = p >> l & 1 ? a[l] : b[l]; });
}
template <class S>
void slctHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  S *d = w.row<S>(o[0]);
  const S *a = w.row<S>(o[1]), *b = w.row<S>(o[2]);
  const uint32_t *c = w.row<uint32_t>(o[3]);
  forLanes(mask, [&](unsigned l) {
    bool first = int32_t(c[l]) >= 0;
    if (inst.ty2 == Ty::F32)
      first = ptx::compare(FloatType::F32, CompareOp::GE, c[l], 0,
                           inst.flags & FtzFlag);
    d[l] = first ? a[l] : b[l];
  });
}

/// isspacep.space p, a: flags = space.
void isspacepHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *p = w.pred(o[0]);
  const uint64_t *a = w.row<uint64_t>(o[1]);
  uint32_t r = 0;
  forLanes(mask, [&](unsigned l) {
    auto in = [&](uint64_t window) {
      return a[l] >= window && a[l] - window < WindowSize;
    };
    bool yes = false;
    switch (inst.space) {
    case Space::Shared:
      yes = in(SharedWindow) && (!inst.flags || a[l] - SharedWindow < 1 << 24);
      break;
    case Space::Local:
      yes = in(LocalWindow);
      break;
    case Space::Param:
      yes = in(ParamWindow);
      break;
    default:
      yes = !in(SharedWindow) && !in(LocalWindow) && !in(ParamWindow);
    }
    r |= uint32_t(yes) << l;
  });
  *p = (*p & ~mask) | r;
}

/// mapa: flags bit 0 the address is generic. getctarank: bit 1.
void mapaHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  bool generic = inst.flags & 1, rankOf = inst.flags & 2;
  forLanes(mask, [&](unsigned l) {
    uint64_t a = wideValue(w, o[1], l), base = generic ? SharedWindow : 0;
    uint64_t offset = a - base, r;
    if (rankOf) {
      r = offset >> 24 ? (offset >> 24) - 1 : w.block->rank;
    } else {
      uint32_t rank = w.row<uint32_t>(o[2])[l];
      r = base + (offset & 0xFFFFFF) + (uint64_t(rank + 1) << 24);
    }
    if (o[0].width() == Operand::W32)
      w.row<uint32_t>(o[0])[l] = uint32_t(r);
    else
      w.row<uint64_t>(o[0])[l] = r;
  });
}

bool parseCompare(StringRef text, Ty ty, CompareOp &op) {
  using C = CompareOp;
  int v = StringSwitch<int>(text)
              .Case("eq", int(C::EQ))
              .Case("ne", int(C::NE))
              .Case("lt", int(C::LT))
              .Case("le", int(C::LE))
              .Case("gt", int(C::GT))
              .Case("ge", int(C::GE))
              .Case("lo", int(C::LO))
              .Case("ls", int(C::LS))
              .Case("hi", int(C::HI))
              .Case("hs", int(C::HS))
              .Case("equ", int(C::EQU))
              .Case("neu", int(C::NEU))
              .Case("ltu", int(C::LTU))
              .Case("leu", int(C::LEU))
              .Case("gtu", int(C::GTU))
              .Case("geu", int(C::GEU))
              .Case("num", int(C::NUM))
              .Case("nan", int(C::NAN_))
              .Default(-1);
  op = CompareOp(v < 0 ? 0 : v);
  return v >= 0;
}

uint32_t takeBool(Decoder &d) {
  return d.mod("and") ? 1 : d.mod("or") ? 2 : d.mod("xor") ? 3 : 0;
}
} // namespace

void execReadSpecial(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  SReg s = SReg(inst.aux);
  const Launch &launch = *w.launch;
  const LaunchConfig &config = *launch.config;
  auto axis = [&](SReg base) { return unsigned(s) - unsigned(base); };
  auto value = [&](unsigned l) -> uint64_t {
    switch (s) {
    case SReg::TidX:
    case SReg::TidY:
    case SReg::TidZ:
      return w.tid[axis(SReg::TidX)][l];
    case SReg::NtidX:
    case SReg::NtidY:
    case SReg::NtidZ:
      return config.block[axis(SReg::NtidX)];
    case SReg::CtaidX:
    case SReg::CtaidY:
    case SReg::CtaidZ:
      return w.block->ctaid[axis(SReg::CtaidX)];
    case SReg::NctaidX:
    case SReg::NctaidY:
    case SReg::NctaidZ:
      return config.grid[axis(SReg::NctaidX)];
    case SReg::LaneId:
      return l;
    case SReg::WarpId:
      return w.index;
    case SReg::NWarpId:
      return launch.warpsPerBlock;
    case SReg::SmId:
      return w.cluster->index & 127;
    case SReg::NSmId:
      return 128;
    case SReg::GridId:
      return 1;
    case SReg::LaneMaskEq:
      return 1u << l;
    case SReg::LaneMaskLt:
      return (1u << l) - 1;
    case SReg::LaneMaskLe:
      return (2u << l) - 1;
    case SReg::LaneMaskGt:
      return ~((2u << l) - 1);
    case SReg::LaneMaskGe:
      return ~((1u << l) - 1);
    case SReg::Clock:
    case SReg::Clock64:
    case SReg::GlobalTimer:
    case SReg::GlobalTimerLo:
      return w.worker->executed;
    case SReg::ClockHi:
    case SReg::GlobalTimerHi:
      return w.worker->executed >> 32;
    case SReg::DynamicSmemSize:
      return config.dynamicSharedBytes;
    case SReg::TotalSmemSize:
    case SReg::AggrSmemSize:
      return launch.sharedBytes;
    case SReg::ClusterIdX:
    case SReg::ClusterIdY:
    case SReg::ClusterIdZ:
      return w.cluster->clusterid[axis(SReg::ClusterIdX)];
    case SReg::NClusterIdX:
    case SReg::NClusterIdY:
    case SReg::NClusterIdZ:
      return launch.clusterGrid[axis(SReg::NClusterIdX)];
    case SReg::ClusterCtaidX:
      return w.block->rank % config.cluster[0];
    case SReg::ClusterCtaidY:
      return w.block->rank / config.cluster[0] % config.cluster[1];
    case SReg::ClusterCtaidZ:
      return w.block->rank / config.cluster[0] / config.cluster[1];
    case SReg::ClusterNctaidX:
    case SReg::ClusterNctaidY:
    case SReg::ClusterNctaidZ:
      return config.cluster[axis(SReg::ClusterNctaidX)];
    case SReg::ClusterCtaRank:
      return w.block->rank;
    case SReg::ClusterNctaRank:
      return launch.blocksPerCluster;
    case SReg::IsExplicitCluster:
      return launch.blocksPerCluster > 1 || launch.kernel->reqnctapercluster[0];
    default:
      return 0;
    }
  };
  if (o[0].isPred()) {
    uint32_t yes = 0;
    forLanes(mask, [&](unsigned l) { yes |= uint32_t(value(l) != 0) << l; });
    uint32_t *p = w.pred(o[0]);
    *p = (*p & ~mask) | yes;
    return;
  }
  if (o[0].width() == Operand::W32)
    forLanes(mask, [&](unsigned l) {
      w.row<uint32_t>(o[0])[l] = uint32_t(value(l));
    });
  else
    forLanes(mask, [&](unsigned l) { w.row<uint64_t>(o[0])[l] = value(l); });
}

void decodeMove(Decoder &d) {
  Inst &inst = d.inst;
  StringRef op = d.opcode;
  d.classify(InstClass::Move);
  if (op == "isspacep") {
    inst.space = Space::Global;
    if (d.mod("shared") || d.mod("shared::cluster"))
      inst.space = Space::Shared;
    else if (d.mod("shared::cta"))
      inst.space = Space::Shared, inst.flags = 1;
    else if (d.mod("local"))
      inst.space = Space::Local;
    else if (d.mod("param") || d.mod("param::entry"))
      inst.space = Space::Param;
    else if (!d.mod("global"))
      return d.unsupported("space of 'isspacep'");
    if (!d.expectOperands(2))
      return;
    inst.fn = isspacepHandler;
    d.dst(d.operands[0], Ty::Pred);
    d.src(d.operands[1], Ty::B64);
    return d.finishModifiers();
  }
  if (op == "mapa" || op == "getctarank") {
    bool shared = d.mod("shared::cluster");
    Ty ty = d.type();
    bool rank = op == "getctarank";
    inst.flags = (shared ? 0 : 1) | (rank ? 2 : 0);
    inst.fn = mapaHandler;
    if (!d.expectOperands(rank ? 2 : 3))
      return;
    d.dst(d.operands[0], rank ? Ty::U32 : ty);
    d.src(d.operands[1], ty);
    if (!rank)
      d.src(d.operands[2], Ty::U32);
    return d.finishModifiers();
  }
  if (op != "mov")
    return d.unsupported("opcode '" + op + "'");
  Ty ty = d.type();
  if (ty == Ty::None)
    return d.bad("expected a type of 'mov'");
  if (!d.expectOperands(2))
    return;
  const POperand &to = d.operands[0], &from = d.operands[1];
  if (to.kind == POperand::Vector || from.kind == POperand::Vector) {
    bool unpack = to.kind == POperand::Vector;
    const std::vector<POperand> &list = unpack ? to.elements : from.elements;
    if (unpack && from.kind == POperand::Vector)
      return d.bad("expected one side of 'mov' to be a vector");
    unsigned n = unsigned(list.size()), bits = bitsOf(ty) / std::max(1u, n);
    if ((n != 2 && n != 4 && n != 1) || bits < 8 || bits * n != bitsOf(ty))
      return d.bad("expected a vector that fills the type of 'mov'");
    Ty element = bits == 8    ? Ty::B8
                 : bits == 16 ? Ty::B16
                 : bits == 32 ? Ty::B32
                              : Ty::B64;
    inst.flags = bits;
    if (unpack) {
      for (const POperand &e : list)
        d.dst(e, element);
      d.src(from, ty);
      inst.numDst = uint8_t(n);
      inst.fn = unpackHandler;
    } else {
      d.dst(to, ty);
      for (const POperand &e : list)
        d.src(e, element);
      inst.fn = packHandler;
    }
    return d.finishModifiers();
  }
  if (ty == Ty::Pred) {
    d.classify(InstClass::Predicate);
    inst.fn = movPredHandler;
    inst.flags = from.negated;
    d.dst(to, ty);
    if (from.kind == POperand::Imm) {
      inst.fn = movPredImmediateHandler;
      inst.flags = from.bits != 0;
      return d.finishModifiers();
    }
    if (from.kind == POperand::Special) {
      if (from.sreg != SReg::IsExplicitCluster)
        return d.bad("expected a predicate, got '" + from.name + "'");
      inst.fn = execReadSpecial;
      inst.flags = 0;
      inst.aux = unsigned(from.sreg);
      return d.finishModifiers();
    }
    d.src(from, ty);
    return d.finishModifiers();
  }
  if (from.kind == POperand::Special) {
    // Reads of a 64-bit counter into 32 bits and the reverse are fine.
    inst.fn = execReadSpecial;
    inst.aux = unsigned(from.sreg);
    d.dst(to, ty);
    return d.finishModifiers();
  }
  d.dst(to, ty);
  d.src(from, ty);
  inst.fn = bitsOf(ty) <= 32    ? movHandler<uint32_t>
            : bitsOf(ty) == 128 ? mov128Handler
                                : movHandler<uint64_t>;
  d.finishModifiers();
}

void decodeCompare(Decoder &d) {
  Inst &inst = d.inst;
  StringRef op = d.opcode;
  d.classify(op == "setp" ? InstClass::Predicate : InstClass::Move);
  if (op == "selp" || op == "slct") {
    bool slct = op == "slct";
    if (d.mod("ftz"))
      inst.flags |= FtzFlag;
    Ty ty = d.type();
    if (bitsOf(ty) < 16 || bitsOf(ty) > 64)
      return d.bad("expected a type of '" + op + "'");
    if (!d.expectOperands(4))
      return;
    if (slct)
      inst.ty2 = d.type();
    d.dst(d.operands[0], ty);
    d.src(d.operands[1], ty);
    d.src(d.operands[2], ty);
    bool is64 = bitsOf(ty) == 64;
    if (slct) {
      d.src(d.operands[3], Ty::B32);
      inst.fn = is64 ? slctHandler<uint64_t> : slctHandler<uint32_t>;
    } else {
      d.src(d.operands[3], Ty::Pred);
      inst.flags = d.operands[3].negated;
      inst.fn = is64 ? selpHandler<uint64_t> : selpHandler<uint32_t>;
    }
    return d.finishModifiers();
  }
  CompareOp compare;
  StringRef word = d.take();
  if (!parseCompare(word, Ty::None, compare))
    return d.bad("expected a comparison of '" + op + "', got '." + word + "'");
  uint32_t boolean = takeBool(d);
  inst.flags = uint32_t(compare) | boolean << BoolShift;
  if (d.mod("ftz"))
    inst.flags |= FtzFlag;
  if (op == "setp") {
    Ty ty = d.type();
    if (ty == Ty::None || ty == Ty::Pred)
      return d.bad("expected a type of 'setp'");
    inst.ty2 = ty;
    if (!d.expectOperands(boolean ? 4 : 3))
      return;
    const POperand &dest = d.operands[0];
    if (dest.kind == POperand::Pair) {
      inst.flags |= SecondDest;
      inst.numDst = 2;
      d.dst(dest.elements[0], Ty::Pred);
      d.dst(dest.elements[1], Ty::Pred);
    } else {
      d.dst(dest, Ty::Pred);
    }
    d.src(d.operands[1], ty);
    d.src(d.operands[2], ty);
    inst.fn = setpHandler;
  } else {
    Ty to = d.type(), from = d.type();
    if (to == Ty::None || from == Ty::None)
      return d.bad("expected two types of 'set'");
    inst.ty = to;
    inst.ty2 = from;
    if (!d.expectOperands(boolean ? 4 : 3))
      return;
    d.dst(d.operands[0], to);
    d.src(d.operands[1], from);
    d.src(d.operands[2], from);
    inst.fn = setHandler;
  }
  if (boolean) {
    d.src(d.operands[3], Ty::Pred);
    if (d.operands[3].negated)
      inst.flags |= NegateC;
  }
  d.finishModifiers();
}

} // namespace emulator
} // namespace humming
