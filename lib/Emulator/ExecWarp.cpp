//===- ExecWarp.cpp - shfl, vote, match, redux, elect, activemask -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include "Humming/Emulator/IntegerArithmetic.h"

using namespace llvm;

namespace humming {
namespace emulator {

namespace {
/// Checks a member mask and waits for the members. Returns the lanes that take
/// part, or 0 when the path waits or a fault was raised.
uint32_t members(Warp &w, const Inst &inst, Operand o, uint32_t mask) {
  const uint32_t *m = w.row<uint32_t>(o);
  uint32_t named = m[llvm::countr_zero(mask)];
  if (mask & ~named) {
    w.raise(EmulatorFault::BarrierDivergence,
            "executed by lanes 0x" + Twine::utohexstr(mask) +
                " that its member mask 0x" + Twine::utohexstr(named) +
                " does not name",
            int(llvm::countr_zero(mask & ~named)));
    return 0;
  }
  if (!w.convergeMembers(inst, named, mask))
    return 0;
  return named & w.alive;
}

/// d, [p], a, b, c, membermask. flags: mode | has p << 4.
void shflHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t lanes = members(w, inst, o[inst.opCount - 1], mask);
  if (!lanes)
    return;
  bool hasPred = inst.flags & 16;
  const Operand *s = o + (hasPred ? 2 : 1);
  const uint32_t *a = w.row<uint32_t>(s[0]), *b = w.row<uint32_t>(s[1]),
                 *c = w.row<uint32_t>(s[2]);
  uint32_t result[32], valid = 0;
  bool ok = true;
  forLanes(lanes, [&](unsigned l) {
    bool v;
    unsigned from =
        ptx::shflSource(ptx::ShflMode(inst.flags & 15), l, b[l], c[l], v);
    if (!(lanes >> from & 1) && ok) {
      ok = false;
      w.raise(EmulatorFault::BarrierDivergence,
              "shfl reads lane " + Twine(from) +
                  ", which does not take part (lanes 0x" +
                  Twine::utohexstr(lanes) + ")",
              int(l));
      return;
    }
    result[l] = a[from];
    valid |= uint32_t(v) << l;
  });
  if (!ok)
    return;
  uint32_t *d = w.row<uint32_t>(o[0]);
  forLanes(lanes, [&](unsigned l) { d[l] = result[l]; });
  if (hasPred) {
    uint32_t *p = w.pred(o[1]);
    *p = (*p & ~lanes) | (valid & lanes);
  }
}

/// d, p, membermask. flags: 0 all, 1 any, 2 uni, 3 ballot; bit 4 negated.
void voteHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t lanes = members(w, inst, o[2], mask);
  if (!lanes)
    return;
  uint32_t p = *w.pred(o[1]);
  if (inst.flags & 16)
    p = ~p;
  p &= lanes;
  if ((inst.flags & 3) == 3) {
    uint32_t *d = w.row<uint32_t>(o[0]);
    forLanes(lanes, [&](unsigned l) { d[l] = p; });
    return;
  }
  bool r = (inst.flags & 3) == 0   ? p == lanes
           : (inst.flags & 3) == 1 ? p != 0
                                   : p == 0 || p == lanes;
  uint32_t *d = w.pred(o[0]);
  *d = (*d & ~lanes) | (r ? lanes : 0);
}

/// d, [p], a, membermask. flags: 1 all; ty the width.
void matchHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t lanes = members(w, inst, o[inst.opCount - 1], mask);
  if (!lanes)
    return;
  bool all = inst.flags & 1, hasPred = inst.flags & 2;
  uint64_t values[32] = {};
  forLanes(lanes, [&](unsigned l) {
    values[l] = wideValue(w, o[hasPred ? 2 : 1], l);
  });
  uint32_t result[32];
  forLanes(lanes, [&](unsigned l) {
    result[l] = ptx::matchAny(values, lanes, l);
    if (all && result[l] != lanes)
      result[l] = 0;
  });
  uint32_t *d = w.row<uint32_t>(o[0]);
  uint32_t same = 0;
  forLanes(lanes, [&](unsigned l) {
    d[l] = result[l];
    same |= uint32_t(result[l] != 0) << l;
  });
  if (hasPred) {
    uint32_t *p = w.pred(o[1]);
    *p = (*p & ~lanes) | same;
  }
}

void reduxHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t lanes = members(w, inst, o[2], mask);
  if (!lanes)
    return;
  uint32_t r;
  if (inst.ty == Ty::F32) {
    ptx::MinMaxOptions m;
    m.nan = inst.flags & 64;
    const uint32_t *a = w.row<uint32_t>(o[1]);
    bool first = true;
    r = 0;
    forLanes(lanes, [&](unsigned l) {
      uint64_t v = a[l];
      if (inst.flags & 128)
        v = ptx::abs(ptx::FloatType::F32, v);
      bool isMin = ptx::ReduxOp(inst.flags & 15) == ptx::ReduxOp::Min;
      r = first ? uint32_t(v)
                : uint32_t(isMin ? ptx::min(ptx::FloatType::F32, r, v, m)
                                 : ptx::max(ptx::FloatType::F32, r, v, m));
      first = false;
    });
  } else {
    r = ptx::redux(ptx::ReduxOp(inst.flags & 15), inst.flags & 16,
                   w.row<uint32_t>(o[1]), lanes);
  }
  uint32_t *d = w.row<uint32_t>(o[0]);
  forLanes(lanes, [&](unsigned l) { d[l] = r; });
}

/// d|p, membermask: any lane will do; the lowest is what hardware picks.
void electHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t lanes = members(w, inst, o[2], mask);
  if (!lanes)
    return;
  unsigned leader = llvm::countr_zero(lanes);
  uint32_t *d = w.row<uint32_t>(o[0]);
  forLanes(lanes, [&](unsigned l) { d[l] = leader; });
  uint32_t *p = w.pred(o[1]);
  *p = (*p & ~lanes) | 1u << leader;
}

void activemaskHandler(Warp &w, const Inst &inst, uint32_t mask) {
  uint32_t *d = w.row<uint32_t>(w.ops(inst)[0]);
  forLanes(mask, [&](unsigned l) { d[l] = mask; });
}

void pairDestination(Decoder &d, const POperand &op, Ty first) {
  if (op.kind == POperand::Pair) {
    d.dst(op.elements[0], first);
    d.dst(op.elements[1], Ty::Pred);
    d.inst.numDst = 2;
  } else {
    d.dst(op, first);
  }
}
} // namespace

void decodeWarp(Decoder &d) {
  Inst &inst = d.inst;
  StringRef op = d.opcode;
  d.classify(InstClass::Warp, Flow::Sync);
  if (op == "activemask") {
    d.type();
    if (!d.expectOperands(1))
      return;
    inst.fn = activemaskHandler;
    d.dst(d.operands[0], Ty::B32);
    return d.finishModifiers();
  }
  if (!d.mod("sync"))
    return d.unsupported("'" + op + "' without .sync");
  if (op == "shfl") {
    inst.flags = d.mod("up")     ? 0
                 : d.mod("down") ? 1
                 : d.mod("bfly") ? 2
                 : d.mod("idx")  ? 3
                                 : 15;
    if (inst.flags == 15)
      return d.bad("expected .up, .down, .bfly or .idx of 'shfl'");
    d.type();
    if (!d.expectOperands(5))
      return;
    pairDestination(d, d.operands[0], Ty::B32);
    inst.flags |= inst.numDst == 2 ? 16 : 0;
    for (unsigned i = 1; i < 5; ++i)
      d.src(d.operands[i], Ty::B32);
    inst.fn = shflHandler;
  } else if (op == "vote") {
    bool ballot = d.mod("ballot");
    inst.flags = ballot         ? 3
                 : d.mod("all") ? 0
                 : d.mod("any") ? 1
                 : d.mod("uni") ? 2
                                : 15;
    if (inst.flags == 15)
      return d.bad("expected .all, .any, .uni or .ballot of 'vote'");
    Ty ty = d.type();
    if (!d.expectOperands(3))
      return;
    if (ballot != (ty == Ty::B32))
      return d.bad("type of 'vote' does not fit its mode");
    d.dst(d.operands[0], ballot ? Ty::B32 : Ty::Pred);
    d.src(d.operands[1], Ty::Pred);
    d.src(d.operands[2], Ty::B32);
    inst.flags |= d.operands[1].negated ? 16 : 0;
    inst.fn = voteHandler;
  } else if (op == "match") {
    inst.flags = d.mod("all") ? 1 : 0;
    d.mod("any");
    Ty ty = d.type();
    if (!d.expectOperands(3))
      return;
    pairDestination(d, d.operands[0], Ty::B32);
    inst.flags |= inst.numDst == 2 ? 2 : 0;
    d.src(d.operands[1], ty);
    d.src(d.operands[2], Ty::B32);
    inst.fn = matchHandler;
  } else if (op == "redux") {
    using R = ptx::ReduxOp;
    R r = d.mod("add")   ? R::Add
          : d.mod("min") ? R::Min
          : d.mod("max") ? R::Max
          : d.mod("and") ? R::And
          : d.mod("or")  ? R::Or
                         : R::Xor;
    d.mod("xor");
    inst.flags = unsigned(r);
    inst.flags |= d.mod("NaN") ? 64 : 0;
    inst.flags |= d.mod("abs") ? 128 : 0;
    inst.ty = d.type();
    inst.flags |= isSignedTy(inst.ty) ? 16 : 0;
    if (!d.expectOperands(3))
      return;
    d.dst(d.operands[0], Ty::B32);
    d.src(d.operands[1], Ty::B32);
    d.src(d.operands[2], Ty::B32);
    inst.fn = reduxHandler;
  } else { // elect
    if (!d.expectOperands(2))
      return;
    if (d.operands[0].kind != POperand::Pair)
      return d.bad("expected d|p of 'elect.sync'");
    pairDestination(d, d.operands[0], Ty::B32);
    d.src(d.operands[1], Ty::B32);
    inst.fn = electHandler;
  }
  d.finishModifiers();
}

} // namespace emulator
} // namespace humming
