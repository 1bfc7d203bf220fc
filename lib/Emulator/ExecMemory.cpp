//===- ExecMemory.cpp - ld, st, prefetch -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

using namespace llvm;

namespace humming {
namespace emulator {

namespace {
enum MemoryFlags : uint32_t {
  SignExtend = 1,
  Strong = 2,
  Acquire = 4,
  Release = 8,
  Volatile = 16,
};

/// The addresses of a warp's access, and its space when it was generic.
struct Addresses {
  uint64_t at[32];
  Space space;
  bool mixed = false; ///< generic lanes in different spaces
};

Space spaceOf(uint64_t address) {
  if (address < SharedWindow)
    return Space::Global;
  switch ((address - SharedWindow) / (LocalWindow - SharedWindow)) {
  case 0:
    return Space::Shared;
  case 1:
    return Space::Local;
  case 2:
    return Space::Param;
  }
  return Space::Global;
}

void addressesOf(Warp &w, const Inst &inst, Operand o, uint32_t mask,
                 Addresses &a) {
  int64_t offset = o.offset;
  if (o.width() == Operand::W32) {
    const uint32_t *r = w.row<uint32_t>(o);
    for (unsigned l = 0; l < 32; ++l)
      a.at[l] = uint32_t(r[l] + uint32_t(offset));
  } else {
    const uint64_t *r = w.row<uint64_t>(o);
    for (unsigned l = 0; l < 32; ++l)
      a.at[l] = r[l] + uint64_t(offset);
  }
  a.space = inst.space;
  if (inst.space == Space::Generic) {
    a.space = spaceOf(a.at[llvm::countr_zero(mask)]);
    forLanes(mask, [&](unsigned l) { a.mixed |= spaceOf(a.at[l]) != a.space; });
  }
}

void countAccess(Warp &w, const Addresses &a, uint32_t mask, unsigned size,
                 bool isStore) {
  if (a.mixed)
    return;
  if (a.space == Space::Shared) {
    uint32_t at[32];
    for (unsigned l = 0; l < 32; ++l)
      at[l] = uint32_t(a.at[l]) & 0xFFFFFF;
    countShared(w, w.pc, at, mask, size, isStore);
  } else if (a.space == Space::Global) {
    countGlobal(w, w.pc, a.at, mask, size);
  } else {
    w.worker->memory[w.pc].bytes += uint64_t(size) * llvm::popcount(mask);
  }
}

/// Local memory and the parameter areas. Null: a fault was raised.
uint8_t *lanePlace(Warp &w, Space space, uint64_t address, unsigned size,
                   unsigned lane, bool write, uint8_t **init) {
  if (init)
    *init = nullptr;
  if (space == Space::Local) {
    uint64_t at = address >= LocalWindow ? address - LocalWindow : address;
    size_t total = w.launch->kernel->localTotal;
    if (at >= total || at + size > total) {
      w.raise(EmulatorFault::OutOfBounds,
              Twine(write ? "write" : "read") + " of " + Twine(size) +
                  " bytes at local offset " + Twine(int64_t(at)) +
                  " is out of bounds (" + Twine(total) + " bytes)",
              int(lane));
      return nullptr;
    }
    if (at & (size - 1)) {
      w.raise(EmulatorFault::Misaligned,
              "access at local offset " + Twine(at) + " is not aligned to " +
                  Twine(size) + " bytes",
              int(lane));
      return nullptr;
    }
    if (init && !w.localInit.empty())
      *init = w.localInit.data() + lane * total + at;
    return w.local.data() + lane * total + at;
  }
  if (space == Space::Param) {
    uint64_t at = address >= ParamWindow ? address - ParamWindow : address;
    size_t total = w.launch->arguments.size();
    if (write || at >= total || at + size > total) {
      w.raise(EmulatorFault::OutOfBounds,
              Twine(write ? "write" : "read") + " of " + Twine(size) +
                  " bytes at parameter offset " + Twine(int64_t(at)) +
                  (write ? " (parameters are read-only)"
                         : " is out of bounds (" + Twine(total) + " bytes)"),
              int(lane));
      return nullptr;
    }
    return w.launch->arguments.data() + at;
  }
  size_t total = w.launch->kernel->callTotal;
  if (address >= total || address + size > total) {
    w.raise(EmulatorFault::OutOfBounds,
            "access to call parameter offset " + Twine(address) +
                " is out of bounds (" + Twine(total) + " bytes)",
            int(lane));
    return nullptr;
  }
  return w.callArea.data() + lane * total + address;
}

bool readLane(Warp &w, Space space, uint64_t address, unsigned size,
              unsigned lane, uint8_t *data, bool strong) {
  switch (space) {
  case Space::Global:
  case Space::Const:
    return readGlobal(w, address, size, lane, data, strong);
  case Space::Shared: {
    Block *b = resolveShared(w, address, size, size, lane, "read");
    return b && readShared(w, *b, uint32_t(address) & 0xFFFFFF, size, lane,
                           data, strong);
  }
  default: {
    uint8_t *init;
    uint8_t *p = lanePlace(w, space, address, size, lane, false, &init);
    if (!p)
      return false;
    if (init && std::memchr(init, 0, size)) {
      w.raise(
          EmulatorFault::Uninitialized,
          "read of " + Twine(size) + " bytes at local offset " +
              Twine(address >= LocalWindow ? address - LocalWindow : address) +
              " that nothing has written",
          int(lane));
      return false;
    }
    std::memcpy(data, p, size);
    return true;
  }
  }
}

bool writeLane(Warp &w, Space space, uint64_t address, unsigned size,
               unsigned lane, const uint8_t *data, bool strong) {
  switch (space) {
  case Space::Global:
    return writeGlobal(w, address, size, lane, data, strong);
  case Space::Shared: {
    Block *b = resolveShared(w, address, size, size, lane, "write");
    return b && writeShared(w, *b, uint32_t(address) & 0xFFFFFF, size, lane,
                            data, strong);
  }
  default: {
    uint8_t *init;
    uint8_t *p = lanePlace(w, space, address, size, lane, true, &init);
    if (!p)
      return false;
    std::memcpy(p, data, size);
    if (init)
      std::memset(init, 1, size);
    return true;
  }
  }
}

/// The place of a strong access in the release table.
uint64_t locationOf(Warp &w, Space space, uint64_t address, unsigned lane) {
  if (space != Space::Shared)
    return address;
  uint64_t plain = address >= SharedWindow ? address - SharedWindow : address;
  uint64_t rank = plain >> 24 ? plain >> 24 : w.block->rank + 1;
  return SharedWindow + (rank << 24) + (plain & 0xFFFFFF);
}

void ldHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  unsigned element = bytesOf(inst.ty), vec = inst.vec, size = element * vec;
  Addresses a;
  addressesOf(w, inst, o[vec], mask, a);
  countAccess(w, a, mask, size, false);
  bool strong = inst.flags & Strong;
  bool ok = true;
  forLanes(mask, [&](unsigned l) {
    if (!ok)
      return;
    uint8_t data[32];
    Space space = a.mixed ? spaceOf(a.at[l]) : a.space;
    ok = readLane(w, space, a.at[l], size, l, data, strong);
    if (!ok)
      return;
    for (unsigned v = 0; v < vec; ++v) {
      Operand d = o[v];
      uint64_t value = 0;
      std::memcpy(&value, data + v * element, std::min(element, 8u));
      if (element < 8 && (inst.flags & SignExtend))
        value = uint64_t(int64_t(value << (64 - 8 * element)) >>
                         (64 - 8 * element));
      switch (d.width()) {
      case Operand::W32:
        w.row<uint32_t>(d)[l] = uint32_t(value);
        break;
      case Operand::W128:
        if (element == 16) {
          uint64_t high;
          std::memcpy(&high, data + v * element + 8, 8);
          w.row<uint64_t>(d)[32 + l] = high;
        } else {
          w.row<uint64_t>(d)[32 + l] =
              inst.flags & SignExtend ? uint64_t(int64_t(value) >> 63) : 0;
        }
        [[fallthrough]];
      default:
        w.row<uint64_t>(d)[l] = value;
      }
    }
    if (strong)
      acquireFrom(w, locationOf(w, space, a.at[l], l), inst.flags & Acquire);
  });
  if (ok && strong) {
    ++w.worker->spins;
    w.signal = Warp::YieldNow;
  }
}

void stHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  unsigned element = bytesOf(inst.ty), vec = inst.vec, size = element * vec;
  Addresses a;
  addressesOf(w, inst, o[0], mask, a);
  countAccess(w, a, mask, size, true);
  bool strong = inst.flags & Strong;
  if (inst.space <= Space::Shared)
    w.worker->progress();
  bool ok = true;
  forLanes(mask, [&](unsigned l) {
    if (!ok)
      return;
    uint8_t data[32];
    for (unsigned v = 0; v < vec; ++v) {
      Operand s = o[1 + v];
      uint64_t value = wideValue(w, s, l);
      std::memcpy(data + v * element, &value, std::min(element, 8u));
      if (element == 16) {
        uint64_t high = w.row<uint64_t>(s)[32 + l];
        std::memcpy(data + v * element + 8, &high, 8);
      }
    }
    Space space = a.mixed ? spaceOf(a.at[l]) : a.space;
    if (strong)
      releaseTo(w, locationOf(w, space, a.at[l], l), inst.flags & Release,
                false);
    ok = writeLane(w, space, a.at[l], size, l, data, strong);
  });
}

/// ld.param of an entry: the same bytes for all lanes.
void ldParamHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  unsigned element = bytesOf(inst.ty), vec = inst.vec, size = element * vec;
  uint64_t at = wideValue(w, o[vec], 0) + uint64_t(int64_t(o[vec].offset));
  unsigned lane = llvm::countr_zero(mask);
  const uint8_t *p = lanePlace(w, Space::Param, at, size, lane, false, nullptr);
  if (!p)
    return;
  for (unsigned v = 0; v < vec; ++v) {
    uint64_t value = 0;
    std::memcpy(&value, p + v * element, std::min(element, 8u));
    if (element < 8 && (inst.flags & SignExtend))
      value =
          uint64_t(int64_t(value << (64 - 8 * element)) >> (64 - 8 * element));
    if (o[v].width() == Operand::W32) {
      uint32_t *d = w.row<uint32_t>(o[v]);
      forLanes(mask, [&](unsigned l) { d[l] = uint32_t(value); });
    } else {
      uint64_t *d = w.row<uint64_t>(o[v]);
      forLanes(mask, [&](unsigned l) { d[l] = value; });
    }
  }
}

/// prefetch, discard: the address is not checked by hardware either.
void nothingHandler(Warp &, const Inst &, uint32_t) {}

Space takeSpace(Decoder &d) {
  for (StringRef word : {"shared", "shared::cta", "shared::cluster"})
    if (d.mod(word))
      return Space::Shared;
  if (d.mod("global"))
    return Space::Global;
  if (d.mod("local"))
    return Space::Local;
  if (d.mod("const"))
    return Space::Const;
  for (StringRef word : {"param", "param::entry", "param::func"})
    if (d.mod(word))
      return Space::Param;
  return Space::Generic;
}

/// Whether `[op]` names call parameters rather than the entry's.
bool isCallParam(const POperand &op, bool inEntry) {
  if (op.kind != POperand::Address || op.elements.empty())
    return false;
  const POperand &base = op.elements.front();
  if (base.kind == POperand::ParamSymbol)
    return !base.entryParam;
  return !inEntry;
}
} // namespace

void decodeMemory(Decoder &d) {
  Inst &inst = d.inst;
  StringRef op = d.opcode;
  d.classify(InstClass::Other, Flow::Sync);
  if (op != "ld" && op != "ldu" && op != "st") {
    // Hints.
    inst.numDst = 0;
    inst.fn = nothingHandler;
    inst.flow = Flow::None;
    for (const POperand &operand : d.operands)
      if (operand.kind == POperand::Address) {
        d.address(operand);
        break;
      }
    return;
  }
  bool load = op != "st";
  if (!load && (llvm::is_contained(d.mods, "async") ||
                llvm::is_contained(d.mods, "bulk")))
    return decodeStoreAsync(d);
  d.mod("weak");
  if (d.mod("volatile") || d.mod("mmio"))
    inst.flags |= Strong | Volatile;
  if (d.mod("relaxed"))
    inst.flags |= Strong;
  if (d.mod("acquire"))
    inst.flags |= Strong | Acquire;
  if (d.mod("release"))
    inst.flags |= Strong | Release;
  for (StringRef scope : {"cta", "cluster", "gpu", "sys"})
    d.mod(scope);
  inst.space = takeSpace(d);
  for (StringRef hint : {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"})
    d.mod(hint);
  d.dropPrefix("L1::");
  d.dropPrefix("L2::");
  d.mod("unified");
  inst.vec = d.mod("v2") ? 2 : d.mod("v4") ? 4 : d.mod("v8") ? 8 : 1;
  Ty ty = d.type();
  if (ty == Ty::None || ty == Ty::Pred)
    return d.bad("expected a type of '" + op + "'");
  inst.ty = ty;
  if (bytesOf(ty) * inst.vec > 32)
    return d.bad("expected at most 32 bytes, got " +
                 Twine(bytesOf(ty) * inst.vec));
  if (isSignedTy(ty))
    inst.flags |= SignExtend;
  // A trailing operand is an L2 cache policy.
  if (!d.expectOperands(2, 3))
    return;
  const POperand &memory = d.operands[load ? 0 + 1 : 0];
  const POperand &value = d.operands[load ? 0 : 1];
  if (inst.space == Space::Param &&
      isCallParam(memory, d.host.function().isEntry))
    inst.space = Space::CallParam;
  if (!load && inst.space == Space::Param)
    return d.bad("expected a call parameter as target of 'st.param'");
  if (!load)
    d.address(memory);
  ArrayRef<POperand> list = value.kind == POperand::Vector
                                ? ArrayRef<POperand>(value.elements)
                                : ArrayRef<POperand>(value);
  if (list.size() != inst.vec)
    return d.bad("expected " + Twine(unsigned(inst.vec)) + " registers, got " +
                 Twine(list.size()));
  for (const POperand &element : list)
    if (load)
      d.dst(element, ty, true);
    else
      d.src(element, ty, true);
  if (load)
    d.address(memory);
  inst.numDst = load ? inst.vec : 0;
  switch (inst.space) {
  case Space::Shared:
    inst.cls = load ? InstClass::SharedLoad : InstClass::SharedStore;
    break;
  case Space::Local:
    inst.cls = InstClass::LocalAccess;
    break;
  case Space::Const:
  case Space::Param:
  case Space::CallParam:
    inst.cls = InstClass::ParamAccess;
    break;
  default:
    inst.cls = load ? InstClass::GlobalLoad : InstClass::GlobalStore;
  }
  if ((inst.flags & Strong) && inst.space <= Space::Global)
    d.host.function().usesGlobalSync = true;
  inst.fn = load ? ldHandler : stHandler;
  if (load && inst.space == Space::Param && d.ok() &&
      d.out.back().bank() == Operand::Constant && !(inst.flags & Strong))
    inst.fn = ldParamHandler;
  d.finishModifiers();
}

} // namespace emulator
} // namespace humming
