//===- ExecAtomic.cpp - atom, red -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstring>

using namespace llvm;

namespace humming {
namespace emulator {

namespace {
enum AtomicOp : uint32_t {
  AtomAdd,
  AtomMin,
  AtomMax,
  AtomAnd,
  AtomOr,
  AtomXor,
  AtomExch,
  AtomCas,
  AtomInc,
  AtomDec,
};
enum AtomicFlags : uint32_t {
  OpBits = 15,
  AcquireFlag = 16,
  ReleaseFlag = 32,
  IsRed = 64,
};

uint64_t applyInteger(AtomicOp op, Ty ty, uint64_t old, uint64_t v,
                      uint64_t swap) {
  unsigned bits = bitsOf(ty);
  auto extended = [&](uint64_t x) {
    return bits == 64 ? int64_t(x) : int64_t(x << (64 - bits)) >> (64 - bits);
  };
  bool less = isSignedTy(ty) ? extended(v) < extended(old) : v < old;
  switch (op) {
  case AtomAdd:
    return old + v;
  case AtomMin:
    return less ? v : old;
  case AtomMax:
    return less || v == old ? old : v;
  case AtomAnd:
    return old & v;
  case AtomOr:
    return old | v;
  case AtomXor:
    return old ^ v;
  case AtomExch:
    return v;
  case AtomCas:
    return old == v ? swap : old;
  case AtomInc:
    return old >= v ? 0 : old + 1;
  case AtomDec:
    return old == 0 || old > v ? v : old - 1;
  }
  return old;
}

/// f32 sums in global memory flush subnormal operands and results, those in
/// shared memory do not (\p global).
uint64_t applyFloat(AtomicOp op, Ty ty, uint64_t old, uint64_t v, bool global) {
  using ptx::FloatType;
  FloatType type = ty == Ty::F64                      ? FloatType::F64
                   : ty == Ty::F32                    ? FloatType::F32
                   : ty == Ty::F16 || ty == Ty::F16x2 ? FloatType::F16
                                                      : FloatType::BF16;
  ptx::FloatOptions options;
  options.ftz = global && ty == Ty::F32;
  bool packed = ty == Ty::F16x2 || ty == Ty::BF16x2;
  auto one = [&](uint64_t a, uint64_t b) {
    return op == AtomAdd   ? ptx::add(type, a, b, options)
           : op == AtomMin ? ptx::min(type, a, b)
                           : ptx::max(type, a, b);
  };
  if (!packed)
    return one(old, v);
  return one(old & 0xFFFF, v & 0xFFFF) |
         one(old >> 16 & 0xFFFF, v >> 16 & 0xFFFF) << 16;
}

} // namespace

uint64_t applyAtomic(uint32_t op, Ty ty, uint64_t old, uint64_t value) {
  return isFloatTy(ty) && op <= AtomMax
             ? applyFloat(AtomicOp(op), ty, old, value, /*global=*/true)
             : applyInteger(AtomicOp(op), ty, old, value, 0);
}

int parseAtomicOp(StringRef word) {
  static const char *const names[] = {"add", "min",  "max", "and", "or",
                                      "xor", "exch", "cas", "inc", "dec"};
  for (int i = 0; i < 10; ++i)
    if (word == names[i])
      return i;
  return -1;
}

namespace {
void atomHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  bool red = inst.flags & IsRed;
  AtomicOp op = AtomicOp(inst.flags & OpBits);
  unsigned vec = inst.vec, element = bytesOf(inst.ty), size = vec * element;
  const Operand *dst = red ? nullptr : o;
  const Operand *rest = o + (red ? 0 : vec);
  Operand address = rest[0];
  const Operand *values = rest + 1;
  const Operand *swap = op == AtomCas ? rest + 2 : nullptr;
  uint64_t at[32];
  uint32_t sharedAt[32];
  bool anyShared = false;
  forLanes(mask, [&](unsigned l) {
    at[l] = wideValue(w, address, l) + uint64_t(int64_t(address.offset));
    sharedAt[l] = uint32_t(at[l]) & 0xFFFFFF;
    anyShared |= inst.space == Space::Shared ||
                 (at[l] >= SharedWindow && at[l] - SharedWindow < WindowSize);
  });
  if (anyShared)
    countShared(w, w.pc, sharedAt, mask, size, true);
  else
    countGlobal(w, w.pc, at, mask, size);
  // Which lane comes first is not specified.
  unsigned start = w.worker->random.below(32);
  bool changed = false;
  for (unsigned i = 0; i < 32; ++i) {
    unsigned l = (start + i) % 32;
    if (!(mask >> l & 1))
      continue;
    bool isShared = inst.space == Space::Shared ||
                    (inst.space == Space::Generic && at[l] >= SharedWindow &&
                     at[l] - SharedWindow < WindowSize);
    uint8_t *p = nullptr;
    Block *b = nullptr;
    uint64_t location = at[l];
    if (isShared) {
      b = resolveShared(w, at[l], size, size, l, "atomic");
      if (!b)
        return;
      Access a = warpAccess(w, l, true);
      a.atomic = true;
      if (!checkShared(w, *b, sharedAt[l], size, a))
        return;
      SharedMemory &s = b->shared;
      if (!s.init.empty() && std::memchr(s.init.data() + sharedAt[l], 0, size))
        return w.raise(EmulatorFault::Uninitialized,
                       "atomic on shared offset " +
                           Twine(sharedAt[l] - SharedBase) +
                           " that nothing has written",
                       int(l));
      p = s.bytes.data() + sharedAt[l];
      location = sharedLocation(*b, sharedAt[l]);
    } else {
      GlobalBuffer *buffer;
      p = resolveGlobal(w, at[l], size, size, l, true, "atomic", buffer);
      if (!p)
        return;
      const LaunchChecks &checks = w.launch->config->checks;
      if (checks.races &&
          !checkGlobal(w, *buffer, at[l], size, l, true, true, w.pc))
        return;
      if (checks.uninitialized && !buffer->init.empty() &&
          std::memchr(buffer->init.data() + (at[l] - buffer->base), 0, size))
        return w.raise(EmulatorFault::Uninitialized,
                       "atomic on " + w.launch->memory->describe(at[l]) +
                           " that nothing has written",
                       int(l));
    }
    for (unsigned v = 0; v < vec; ++v) {
      if (element == 16) { // b128 exch and cas
        uint64_t old[2], value[2], next[2];
        std::memcpy(old, p, 16);
        const uint64_t *row = w.row<uint64_t>(values[0]);
        value[0] = row[l];
        value[1] = row[32 + l];
        std::memcpy(next, old, 16);
        if (op == AtomExch) {
          std::memcpy(next, value, 16);
        } else if (old[0] == value[0] && old[1] == value[1]) {
          const uint64_t *s = w.row<uint64_t>(*swap);
          next[0] = s[l];
          next[1] = s[32 + l];
        }
        changed |= std::memcmp(next, old, 16) != 0;
        std::memcpy(p, next, 16);
        if (dst) {
          uint64_t *d = w.row<uint64_t>(dst[0]);
          d[l] = old[0];
          d[32 + l] = old[1];
        }
        continue;
      }
      uint64_t old = 0;
      std::memcpy(&old, p + v * element, element);
      uint64_t value = wideValue(w, values[v], l);
      if (element < 8)
        value &= (uint64_t(1) << (8 * element)) - 1;
      uint64_t next = isFloatTy(inst.ty) && op <= AtomMax
                          ? applyFloat(op, inst.ty, old, value, !isShared)
                          : applyInteger(op, inst.ty, old, value,
                                         swap ? wideValue(w, *swap, l) : 0);
      changed |= next != old;
      std::memcpy(p + v * element, &next, element);
      if (dst) {
        if (dst[v].width() == Operand::W32)
          w.row<uint32_t>(dst[v])[l] = uint32_t(old);
        else
          w.row<uint64_t>(dst[v])[l] = old;
      }
    }
    if (!red)
      acquireFrom(w, location, inst.flags & AcquireFlag);
    releaseTo(w, location, inst.flags & ReleaseFlag, true);
  }
  // A compare that fails again and again is a spin loop.
  if (op == AtomCas && !changed) {
    ++w.worker->spins;
    w.signal = Warp::YieldNow;
  } else {
    if (changed)
      w.worker->progress();
    else
      ++w.worker->spins;
    if (op == AtomExch || op == AtomCas)
      w.signal = Warp::YieldNow;
  }
}
} // namespace

void decodeAtomic(Decoder &d) {
  Inst &inst = d.inst;
  bool red = d.opcode == "red";
  d.classify(InstClass::Atomic, Flow::Sync);
  if (red && llvm::is_contained(d.mods, "async"))
    return decodeStoreAsync(d);
  bool acqRel = d.mod("acq_rel");
  if (acqRel || d.mod("acquire"))
    inst.flags |= AcquireFlag;
  if (acqRel || d.mod("release"))
    inst.flags |= ReleaseFlag;
  d.mod("relaxed");
  for (StringRef scope : {"cta", "cluster", "gpu", "sys"})
    d.mod(scope);
  if (d.mod("shared") || d.mod("shared::cta") || d.mod("shared::cluster"))
    inst.space = Space::Shared;
  else if (d.mod("global"))
    inst.space = Space::Global;
  d.dropPrefix("L1::");
  d.dropPrefix("L2::");
  d.mod("noftz");
  int op = -1;
  for (StringRef word : d.mods)
    if (parseAtomicOp(word) >= 0) {
      op = parseAtomicOp(word);
      d.mod(word);
    }
  if (op < 0)
    return d.bad("expected an operation of '" + d.opcode + "'");
  inst.flags |= uint32_t(op) | (red ? IsRed : 0);
  inst.vec = d.mod("v2") ? 2 : d.mod("v4") ? 4 : d.mod("v8") ? 8 : 1;
  Ty ty = d.type();
  if (bytesOf(ty) < 2)
    return d.bad("expected a type of '" + d.opcode + "'");
  if (ty == Ty::B128 && op != AtomExch && op != AtomCas)
    return d.bad("expected .exch or .cas with .b128");
  inst.ty = ty;
  if (bytesOf(ty) * inst.vec > 32)
    return d.bad("expected at most 32 bytes");
  size_t sources = op == AtomCas ? 2 : 1, at = 0;
  // A trailing operand is an L2 cache policy.
  if (!d.expectOperands(sources + (red ? 1 : 2), sources + (red ? 2 : 3)))
    return;
  inst.numDst = red ? 0 : inst.vec;
  if (!red)
    d.vector(d.operands[at++], ty, true, inst.vec);
  d.address(d.operands[at++]);
  d.vector(d.operands[at++], ty, false, inst.vec);
  if (op == AtomCas)
    d.src(d.operands[at++], ty);
  if (inst.space != Space::Shared)
    d.host.function().usesGlobalSync = true;
  inst.fn = atomHandler;
  d.finishModifiers();
}

static void nothingHandler(Warp &, const Inst &, uint32_t) {}
/// A policy is opaque to the ISA; this is how an H200 writes a fractional one:
/// bits 60 on, 58-57 the primary priority, 56 evict_first as the secondary one,
/// 55-52 the fraction in sixteenths, less one. inst.aux is the upper byte.
static void policyHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint64_t *d = w.row<uint64_t>(o[0]);
  forLanes(mask, [&](unsigned l) {
    uint64_t sixteenths = 15;
    if (inst.flags & 1) {
      float f = llvm::bit_cast<float>(w.row<uint32_t>(o[1])[l]);
      if (!(f > 0 && f <= 1))
        return w.raise(EmulatorFault::IllegalInstruction,
                       "expected a fraction above 0 and up to 1 of "
                       "'createpolicy'",
                       int(l));
      sixteenths = uint64_t(std::ceil(f * 16)) - 1;
    }
    d[l] = uint64_t(inst.aux) << 56 | sixteenths << 52;
  });
}

void decodeMisc(Decoder &d) {
  Inst &inst = d.inst;
  d.classify(InstClass::Other);
  inst.numDst = 0;
  if (d.opcode == "trap") {
    inst.flow = Flow::Trap;
    return;
  }
  if (d.opcode == "brkpt" || d.opcode == "pmevent") {
    inst.fn = nothingHandler;
    return;
  }
  if (d.opcode == "createpolicy") {
    if (d.operands.empty())
      return d.bad("expected operands of 'createpolicy'");
    inst.numDst = 1;
    inst.fn = policyHandler;
    // Range and cvt policies are hints without an effect here: their value is
    // that of the whole fraction.
    bool fractional = d.mod("fractional");
    StringRef primary = d.take(), secondary = d.take();
    inst.aux = 0x10 | (primary == "L2::evict_first"    ? 2u
                       : primary == "L2::evict_last"   ? 4u
                       : primary == "L2::evict_normal" ? 6u
                                                       : 0u);
    inst.aux |= secondary == "L2::evict_first";
    d.dst(d.operands[0], Ty::B64);
    if (fractional && d.operands.size() > 1) {
      inst.flags = 1;
      d.src(d.operands[1], Ty::F32);
    }
    return;
  }
  d.unsupported("opcode '" + d.opcode + "'");
}

} // namespace emulator
} // namespace humming
