//===- ExecStoreAsync.cpp - st.async, red.async, st.bulk -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Updates of the shared memory of a cluster that complete on an mbarrier. A
// store marks its bytes as in flight until it happens. A reduction may share
// its bytes with other reductions: it is checked when it happens, with the
// order that held when it was issued, so an access in between that the mbarrier
// does not order is a race. The bytes then belong to the mbarrier's phase, as
// those of bulk copies do.
//
// st.async and red.async belong to the generic proxy, cp.reduce.async.bulk
// (which ends here too) to the async proxy.
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include <cstring>

using namespace llvm;

namespace humming {
namespace emulator {

bool finishSharedUpdate(Cluster &cluster, AsyncEvent &e) {
  Warp &w = *cluster.warps[e.warp];
  const AsyncEvent::Signal &signal = e.mbarriers.front();
  Block &barrierBlock = *cluster.blocks[signal.rank];
  auto it = barrierBlock.mbarriers.find(signal.address);
  if (it == barrierBlock.mbarriers.end()) {
    w.raise(EmulatorFault::Mbarrier,
            "an asynchronous store completes on an mbarrier that was "
            "invalidated");
    return false;
  }
  size_t at = 0;
  for (const AsyncEvent::Chunk &c : e.chunks) {
    Block &b = *cluster.blocks[c.block];
    if (c.fromShared) { // what cp.reduce.async.bulk adds, in the issuer's block
      const uint8_t *from = w.block->shared.bytes.data() + c.global;
      e.data.insert(e.data.end(), from, from + c.bytes);
      pinShared(*w.block, uint32_t(c.global), c.bytes, false);
      w.block->asyncBytes -= c.bytes;
    } else {
      b.asyncBytes -= c.bytes;
    }
    const uint8_t *data = e.data.data() + at;
    at += c.bytes;
    SharedMemory &s = b.shared;
    uint8_t *to = s.bytes.data() + c.shared;
    if (e.reduce < 0) {
      std::memcpy(to, data, c.bytes);
      if (!s.init.empty())
        std::memset(s.init.data() + c.shared, 1, c.bytes);
    } else {
      Access a = warpAccess(w, e.lane, true);
      a.pc = e.pc;
      a.clock = e.clock;
      a.known = &e.known;
      a.proxyKnown = &e.proxyKnown;
      a.atomic = true;
      a.async = e.asyncProxy;
      if (!checkShared(w, b, c.shared, c.bytes, a))
        return false;
      if (!s.init.empty() &&
          std::memchr(s.init.data() + c.shared, 0, c.bytes)) {
        w.raise(EmulatorFault::Uninitialized,
                "asynchronous reduction into shared bytes at offset " +
                    Twine(c.shared - SharedBase) + " that nothing has written",
                e.lane);
        return false;
      }
      unsigned size = bytesOf(e.ty);
      for (uint32_t i = 0; i + size <= c.bytes; i += size) {
        uint64_t old = 0, value = 0;
        std::memcpy(&old, to + i, size);
        std::memcpy(&value, data + i, size);
        old = applyAtomic(uint32_t(e.reduce), e.ty, old, value);
        std::memcpy(to + i, &old, size);
      }
    }
    assignShared(b, c.shared, c.bytes, uint16_t(it->second.agent),
                 it->second.phase + 1, e.lane, e.pc, e.asyncProxy);
  }
  return arriveMbarrier(w, barrierBlock, signal.address, it->second, 0,
                        -int64_t(signal.bytes), Orders());
}

namespace {
enum StoreAsyncFlags : uint32_t { Reduce = 1 };

/// Operands: address, mbarrier, values.... aux = AtomicOp of a reduction.
void asyncHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  bool reduce = inst.flags & Reduce;
  const char *what = reduce ? "red.async" : "st.async";
  unsigned element = bytesOf(inst.ty), size = element * inst.vec;
  uint32_t offsets[32];
  uint32_t done = 0;
  for (unsigned l = 0; l < 32; ++l) {
    if (!(mask >> l & 1))
      continue;
    uint64_t to = wideValue(w, o[0], l) + uint64_t(int64_t(o[0].offset));
    uint64_t bar = wideValue(w, o[1], l) + uint64_t(int64_t(o[1].offset));
    Block *b = resolveShared(w, to, size, size, l, what);
    if (!b)
      return;
    Block *barrierBlock = resolveShared(w, bar, 8, 8, l, what);
    if (!barrierBlock)
      return;
    if (b != barrierBlock)
      return w.raise(EmulatorFault::Mbarrier,
                     Twine(what) + " to block " + Twine(b->rank) +
                         " of the cluster completes on an mbarrier of block " +
                         Twine(barrierBlock->rank),
                     int(l));
    uint32_t address = uint32_t(bar) & 0xFFFFFF;
    if (!findMbarrier(w, *barrierBlock, address, int(l), what))
      return;
    AsyncEvent e;
    e.kind = AsyncEvent::SharedUpdate;
    e.warp = w.clusterIdx;
    e.lane = uint8_t(l);
    e.pc = w.pc;
    e.asyncProxy = false;
    e.ty = inst.ty;
    e.reduce = reduce ? int32_t(inst.aux) : -1;
    AsyncEvent::Chunk c;
    c.block = b->rank;
    c.shared = offsets[l] = uint32_t(to) & 0xFFFFFF;
    c.bytes = size;
    e.chunks.push_back(c);
    for (unsigned v = 0; v < inst.vec; ++v) {
      uint64_t value = wideValue(w, o[2 + v], l);
      const uint8_t *p = reinterpret_cast<const uint8_t *>(&value);
      e.data.insert(e.data.end(), p, p + element);
    }
    e.mbarriers.push_back({barrierBlock->rank, address, size});
    if (reduce) {
      e.clock = w.clock();
      e.known = w.sync.here;
      e.proxyKnown = w.proxy.here;
    } else if (!markInFlight(w, *b, c.shared, size, l, true)) {
      return;
    }
    beginAsync(w, *b, size);
    done |= 1u << l;
    w.cluster->events.push_back(std::move(e));
  }
  countShared(w, w.pc, offsets, done, size, true);
}

/// st.bulk: zeros. Operands: address, size.
void bulkStoreHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  forLanes(mask, [&](unsigned l) {
    if (w.signal == Warp::Abort)
      return;
    uint64_t to = wideValue(w, o[0], l) + uint64_t(int64_t(o[0].offset));
    uint64_t size = wideValue(w, o[1], l);
    if (size % 8 || size > 0xFFFFFF)
      return w.raise(EmulatorFault::IllegalInstruction,
                     "expected a size that is a multiple of 8 below 16 MiB, "
                     "got " +
                         Twine(size),
                     int(l));
    Block *b = resolveShared(w, to, uint32_t(size), 8, l, "st.bulk");
    if (!b)
      return;
    static const uint64_t zero = 0;
    SmallVector<uint32_t, 64> chunks;
    for (uint64_t at = 0; at < size; at += 8) {
      uint32_t place = (uint32_t(to) & 0xFFFFFF) + uint32_t(at);
      if (!writeShared(w, *b, place, 8, l, &zero))
        return;
      if (at % 16 == 0)
        chunks.push_back(place);
    }
    w.worker->memory[w.pc].bytes += size;
    countChunks(w, w.pc, chunks);
  });
}
} // namespace

void decodeStoreAsync(Decoder &d) {
  Inst &inst = d.inst;
  inst.numDst = 0;
  d.classify(InstClass::SharedStore, Flow::Sync);
  if (d.mod("bulk")) {
    d.mod("weak");
    d.mod("shared::cta");
    d.mod("shared");
    int64_t zero;
    if (!d.expectOperands(3) || !d.immediate(d.operands[2], zero))
      return;
    if (zero)
      return d.bad("expected the value 0 of 'st.bulk', got " + Twine(zero));
    d.address(d.operands[0]);
    d.src(d.operands[1], Ty::U64);
    inst.fn = bulkStoreHandler;
    return d.finishModifiers();
  }
  d.mod("async");
  if (d.mod("global"))
    return d.unsupported("'" + d.opcode + ".async' to global memory (sm_100)");
  for (StringRef word : {"weak", "relaxed", "cluster", "shared::cluster",
                         "mbarrier::complete_tx::bytes"})
    d.mod(word);
  inst.fn = asyncHandler;
  if (d.opcode == "red") {
    inst.flags |= Reduce;
    StringRef word = d.take();
    int op = parseAtomicOp(word);
    if (op < 0 || word == "exch" || word == "cas")
      return d.bad("expected an operation of 'red.async', got '." + word + "'");
    inst.aux = uint32_t(op);
  }
  inst.vec = d.mod("v2") ? 2 : d.mod("v4") ? 4 : 1;
  inst.ty = d.type();
  unsigned size = bytesOf(inst.ty);
  if (size != 4 && size != 8)
    return d.bad("expected a type of 32 or 64 bits of '" + d.opcode +
                 ".async'");
  if (size * inst.vec > 16)
    return d.bad("expected at most 16 bytes of '" + d.opcode + ".async', got " +
                 Twine(size * inst.vec));
  if (!d.expectOperands(3))
    return;
  d.address(d.operands[0]);
  d.address(d.operands[2]);
  d.vector(d.operands[1], inst.ty, false, inst.vec);
  d.finishModifiers();
}

} // namespace emulator
} // namespace humming
