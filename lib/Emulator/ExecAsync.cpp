//===- ExecAsync.cpp - cp.async and its groups -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A copy is recorded when it is issued and its target is marked as in flight.
// The bytes move when the thread waits for the group (or earlier, if the seed
// says so), in an order drawn from the seed; only the wait clears the mark. So
// a read before the wait is a fault whether or not the bytes are there.
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include <cstring>

using namespace llvm;

namespace humming {
namespace emulator {

/// Moves the bytes of one lane.
static void moveLane(Warp &w, AsyncCopy &c, unsigned l) {
  uint8_t data[16] = {};
  if (c.srcBytes[l]) {
    GlobalBuffer *b = w.launch->memory->find(c.src[l]);
    // Checked at the issue.
    if (b)
      std::memcpy(data, b->data + (c.src[l] - b->base), c.srcBytes[l]);
  }
  SharedMemory &s = w.block->shared;
  std::memcpy(s.bytes.data() + c.dst[l], data, c.bytes);
  if (!s.init.empty())
    std::memset(s.init.data() + c.dst[l], 1, c.bytes);
}

static void land(Warp &w, AsyncCopy &c) {
  if (c.landed)
    return;
  c.landed = true;
  forLanes(c.mask, [&](unsigned l) { moveLane(w, c, l); });
}

void landSomething(Cluster &cluster) {
  Random &random = cluster.worker->random;
  if (!cluster.events.empty() && random.oneIn(2)) {
    size_t i = random.below(uint32_t(cluster.events.size()));
    if (cluster.events[i].kind != AsyncEvent::CopyArrive)
      runEvent(cluster, i);
    return;
  }
  Warp &w = *cluster.warps[random.below(uint32_t(cluster.warps.size()))];
  if (!w.copies.empty())
    land(w, w.copies[random.below(uint32_t(w.copies.size()))]);
}

/// Completes the copies of \p lanes for which \p done(copy, lane) holds. The
/// bytes then belong to \p agent at \p clock.
template <class Done>
static bool complete(Warp &w, uint32_t lanes, uint32_t agent, uint32_t clock,
                     bool own, Done done) {
  // Land in any order: copies of one wait are not ordered among themselves.
  SmallVector<uint32_t, 16> order;
  for (uint32_t i = 0; i < w.copies.size(); ++i)
    if (w.copies[i].mask & lanes)
      order.push_back(i);
  Random &random = w.worker->random;
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(uint32_t(i))]);
  for (uint32_t i : order) {
    AsyncCopy &c = w.copies[i];
    uint32_t mine = 0;
    forLanes(c.mask & lanes, [&](unsigned l) {
      if (done(c, l))
        mine |= 1u << l;
    });
    if (!mine)
      continue;
    forLanes(mine, [&](unsigned l) {
      if (!c.landed)
        moveLane(w, c, l);
      // The cells were checked at the issue; this hands them over.
      assignShared(*w.block, c.dst[l], c.bytes,
                   uint16_t(own ? w.clusterIdx : agent),
                   own ? w.clock() : clock, uint8_t(l), c.pc, false);
      w.block->asyncBytes -= c.bytes;
    });
    c.mask &= ~mine;
  }
  llvm::erase_if(w.copies, [](const AsyncCopy &c) { return !c.mask; });
  return true;
}

bool waitCopies(Warp &w, uint32_t lanes, uint32_t keepGroups, bool all) {
  return complete(w, lanes, 0, 0, true, [&](const AsyncCopy &c, unsigned l) {
    return all || c.group[l] + keepGroups < w.copyGroup[l];
  });
}

bool landCopies(Warp &w, uint32_t lanes, uint32_t agent, uint32_t clock,
                uint32_t upTo) {
  return complete(w, lanes, agent, clock, false,
                  [&](const AsyncCopy &c, unsigned) { return c.seq < upTo; });
}

namespace {
enum CopyFlags : uint32_t { HasSize = 1, HasIgnore = 2, NegatedIgnore = 4 };

/// Operands: dst, src, [size or ignore predicate]. vec = bytes.
void copyHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  AsyncCopy c;
  c.pc = w.pc;
  c.mask = mask;
  c.bytes = inst.vec;
  c.seq = w.copySeq++;
  uint32_t ignore = 0;
  if (inst.flags & HasIgnore) {
    ignore = *w.pred(o[2]);
    if (inst.flags & NegatedIgnore)
      ignore = ~ignore;
  }
  uint64_t global[32];
  uint32_t shared[32], reading = 0;
  bool ok = true;
  forLanes(mask, [&](unsigned l) {
    if (!ok)
      return;
    uint64_t to = wideValue(w, o[0], l) + uint64_t(int64_t(o[0].offset));
    uint64_t from = wideValue(w, o[1], l) + uint64_t(int64_t(o[1].offset));
    uint32_t size = c.bytes;
    if (inst.flags & HasSize)
      size = w.row<uint32_t>(o[2])[l];
    if (ignore >> l & 1)
      size = 0;
    if (size > c.bytes) {
      ok = false;
      return w.raise(EmulatorFault::IllegalInstruction,
                     "expected a source size of at most " + Twine(c.bytes) +
                         " bytes, got " + Twine(size),
                     int(l));
    }
    Block *b = resolveShared(w, to, c.bytes, c.bytes, l, "cp.async");
    if (!b) {
      ok = false;
      return;
    }
    if (b != w.block) {
      ok = false;
      return w.raise(EmulatorFault::OutOfBounds,
                     "cp.async to the shared memory of another block", int(l));
    }
    c.dst[l] = uint32_t(to) & 0xFFFFFF;
    c.src[l] = from;
    c.srcBytes[l] = uint8_t(size);
    c.group[l] = w.copyGroup[l];
    shared[l] = c.dst[l];
    global[l] = from;
    if (from & (c.bytes - 1)) {
      ok = false;
      return w.raise(EmulatorFault::Misaligned,
                     "source of cp.async at " +
                         w.launch->memory->describe(from) +
                         " is not aligned to " + Twine(c.bytes) + " bytes",
                     int(l));
    }
    if (size) {
      // Bounds, races and initialisation of what is read.
      uint8_t sink[16];
      GlobalBuffer *buffer;
      if (!resolveGlobal(w, from, size, 1, l, false, "cp.async", buffer)) {
        ok = false;
        return;
      }
      unsigned step = size == c.bytes ? size : 1;
      for (uint32_t at = 0; ok && at < size; at += step)
        ok = readGlobal(w, from + at, step, l, sink);
      reading |= 1u << l;
    }
    if (ok)
      ok = markInFlight(w, *b, c.dst[l], c.bytes, l, true);
  });
  if (!ok)
    return;
  countGlobal(w, w.pc, global, reading, c.bytes);
  uint64_t bytes = w.worker->memory[w.pc].bytes;
  countShared(w, w.pc, shared, mask, c.bytes, true);
  w.worker->memory[w.pc].bytes = bytes; // counted once
  beginAsync(w, *w.block, uint64_t(c.bytes) * llvm::popcount(mask));
  if (w.launch->config->checks.asyncOrder) {
    w.copies.push_back(c);
    return;
  }
  // Without the check copies are instantaneous.
  land(w, c);
  w.block->asyncBytes -= int64_t(c.bytes) * llvm::popcount(mask);
  forLanes(mask, [&](unsigned l) {
    markInFlight(w, *w.block, c.dst[l], c.bytes, l, false);
  });
}

void commitHandler(Warp &w, const Inst &, uint32_t mask) {
  forLanes(mask, [&](unsigned l) { ++w.copyGroup[l]; });
}
void waitHandler(Warp &w, const Inst &inst, uint32_t mask) {
  waitCopies(w, mask, inst.aux, inst.flags & 1);
}

/// cp.async.mbarrier.arrive: happens when the copies so far have landed.
void arriveHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  forLanes(mask, [&](unsigned l) {
    if (w.signal == Warp::Abort)
      return;
    uint64_t at = wideValue(w, o[0], l) + uint64_t(int64_t(o[0].offset));
    Block *b = resolveShared(w, at, 8, 8, l, "cp.async.mbarrier.arrive");
    if (!b)
      return;
    uint32_t address = uint32_t(at) & 0xFFFFFF;
    Mbarrier *m =
        findMbarrier(w, *b, address, int(l), "cp.async.mbarrier.arrive");
    if (!m)
      return;
    bool noinc = inst.flags & 1;
    if (!noinc)
      ++m->pending; // one more arrival is due in this phase
    // Lanes of one barrier share an event.
    for (AsyncEvent &e : w.cluster->events)
      if (e.kind == AsyncEvent::CopyArrive && e.warp == w.clusterIdx &&
          e.pc == w.pc && e.seq == w.copySeq &&
          e.mbarriers[0].rank == b->rank && e.mbarriers[0].address == address) {
        e.lanes |= 1u << l;
        return;
      }
    AsyncEvent e;
    e.kind = AsyncEvent::CopyArrive;
    e.warp = w.clusterIdx;
    e.lane = uint8_t(l);
    e.pc = w.pc;
    e.lanes = 1u << l;
    e.seq = w.copySeq;
    e.mbarriers.push_back({b->rank, address, 0});
    w.cluster->events.push_back(std::move(e));
  });
}
} // namespace

void decodeAsync(Decoder &d) {
  Inst &inst = d.inst;
  if (llvm::is_contained(d.mods, "bulk") ||
      llvm::is_contained(d.mods, "reduce"))
    return decodeBulk(d);
  if (!d.mod("async"))
    return d.unsupported("opcode 'cp'");
  d.classify(InstClass::AsyncCopy, Flow::Sync);
  inst.numDst = 0;
  if (d.mod("commit_group")) {
    d.classify(InstClass::Other, Flow::Sync);
    inst.fn = commitHandler;
    d.expectOperands(0);
    return d.finishModifiers();
  }
  bool all = d.mod("wait_all");
  if (all || d.mod("wait_group")) {
    d.classify(InstClass::Barrier, Flow::Sync);
    inst.cls = InstClass::Other;
    inst.fn = waitHandler;
    inst.flags = all;
    int64_t n = 0;
    if (!d.expectOperands(all ? 0 : 1) ||
        (!all && !d.immediate(d.operands[0], n)))
      return;
    if (n < 0 || n > INT32_MAX)
      return d.bad("expected a group count, got " + Twine(n));
    inst.aux = uint32_t(n);
    return d.finishModifiers();
  }
  if (d.mod("mbarrier")) {
    d.mod("arrive");
    inst.flags = d.mod("noinc");
    d.mod("shared");
    d.mod("shared::cta");
    d.type();
    d.classify(InstClass::Mbarrier, Flow::Sync);
    inst.fn = arriveHandler;
    if (!d.expectOperands(1))
      return;
    d.address(d.operands[0]);
    return d.finishModifiers();
  }
  bool cg = d.mod("cg");
  d.mod("ca");
  d.mod("shared");
  d.mod("shared::cta");
  d.mod("global");
  d.dropPrefix("L2::");
  int64_t bytes;
  if (!d.expectOperands(3, 5) || !d.immediate(d.operands[2], bytes))
    return;
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return d.bad("expected a copy size of 4, 8 or 16, got " + Twine(bytes));
  if (cg && bytes != 16)
    return d.bad("expected 16 bytes with .cg, got " + Twine(bytes));
  inst.vec = uint8_t(bytes);
  d.address(d.operands[0]);
  d.address(d.operands[1]);
  if (d.operands.size() > 3) {
    const POperand &x = d.operands[3];
    if (x.kind == POperand::Reg && x.reg.isPred()) {
      inst.flags = HasIgnore | (x.negated ? NegatedIgnore : 0);
      d.src(x, Ty::Pred);
    } else if (!(x.kind == POperand::Reg && x.reg.width() == Operand::W64)) {
      inst.flags = HasSize; // else: a cache policy
      d.src(x, Ty::U32);
    }
  }
  inst.fn = copyHandler;
  d.finishModifiers();
}

} // namespace emulator
} // namespace humming
