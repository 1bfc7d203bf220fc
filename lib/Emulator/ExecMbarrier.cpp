//===- ExecMbarrier.cpp - mbarrier objects -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An mbarrier is kept beside shared memory, under its offset; the 8 bytes at
// the offset are marked so that plain accesses to them are faults. Arrivals
// collect what the arriving threads are ordered after; the phase that completes
// hands it to every thread that waits for it. A phase completes when no
// arrivals and no bytes are pending.
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include <cstring>

using namespace llvm;

namespace humming {
namespace emulator {

constexpr uint32_t MaxCount = (1 << 20) - 1;

Mbarrier *findMbarrier(Warp &w, Block &b, uint32_t address, int lane,
                       const char *what) {
  auto it = b.mbarriers.find(address);
  if (it == b.mbarriers.end()) {
    w.raise(EmulatorFault::Mbarrier,
            Twine(what) + " at shared offset " + Twine(address - SharedBase) +
                ", where no mbarrier was initialised",
            lane);
    return nullptr;
  }
  // The initialisation has to be visible to whoever uses the object.
  Mbarrier &m = it->second;
  const LaunchChecks &checks = w.launch->config->checks;
  bool own = m.initAgent == w.clusterIdx &&
             (m.initLane == uint8_t(lane) || m.initClock < w.clock());
  if (checks.races && !own &&
      (m.initAgent == w.clusterIdx ||
       clockAt(w.sync.here, m.initAgent) < m.initClock)) {
    auto error = std::make_unique<EmulatorError>(
        EmulatorFault::Race,
        (Twine(what) +
         " not ordered after the mbarrier's initialisation, shared offset " +
         Twine(address - SharedBase))
            .str());
    error->site = w.site(lane, w.pc);
    error->notes.push_back(
        {"initialised here",
         w.cluster->warps[m.initAgent]->site(m.initLane, m.initPc)});
    w.launch->report(w.cluster->index, std::move(error));
    w.worker->failed = true;
    w.signal = Warp::Abort;
    return nullptr;
  }
  return &m;
}

void wakeMbarrier(Cluster &cluster, uint32_t rank, uint32_t address) {
  for (auto &w : cluster.warps)
    for (uint32_t i = 0; i < w->paths.size(); ++i) {
      const Path &p = w->paths[i];
      if (p.state == Path::Blocked && p.wait == Path::WaitMbarrier &&
          p.waitId == address && p.waitAux >> 1 == rank)
        w->wake(i);
    }
}

bool arriveMbarrier(Warp &w, Block &b, uint32_t address, Mbarrier &m,
                    uint32_t count, int64_t txChange, const Orders &known) {
  if (count > m.pending) {
    w.raise(EmulatorFault::Mbarrier,
            Twine(count) + " arrivals at the mbarrier at shared offset " +
                Twine(address - SharedBase) + ", phase " + Twine(m.phase) +
                ", which expects " + Twine(m.pending) + " more");
    return false;
  }
  m.tx += txChange;
  if (m.tx > int64_t(MaxCount) || m.tx < -int64_t(MaxCount)) {
    w.raise(EmulatorFault::Mbarrier, "transaction count " + Twine(m.tx) +
                                         " of the mbarrier at shared "
                                         "offset " +
                                         Twine(address - SharedBase) +
                                         " is out of range");
    return false;
  }
  m.arriving.join(known);
  m.pending -= count;
  w.worker->progress();
  if (m.pending || m.tx)
    return true;
  ++m.phase;
  m.pending = m.expected;
  // Copies of this phase belong to (agent, phase).
  if (m.arriving.sync.here.size() <= m.agent)
    m.arriving.sync.here.resize(m.agent + 1);
  m.arriving.sync.here[m.agent] = m.phase;
  m.released.join(m.arriving);
  m.arriving = Orders();
  wakeMbarrier(*w.cluster, b.rank, address);
  return true;
}

namespace {
enum MbarFlags : uint32_t {
  Drop = 1,
  NoComplete = 2,
  ExpectTx = 4,
  HasState = 8,
  HasCount = 16,
  Parity = 32,
  Try = 64,
  Relaxed = 128,
};

struct Target {
  Block *block = nullptr;
  uint32_t address = 0;
  Mbarrier *barrier = nullptr;
};

bool target(Warp &w, Operand o, unsigned l, const char *what, Target &t,
            bool mustExist = true) {
  uint64_t at = wideValue(w, o, l) + uint64_t(int64_t(o.offset));
  t.block = resolveShared(w, at, 8, 8, l, what);
  if (!t.block)
    return false;
  t.address = uint32_t(at) & 0xFFFFFF;
  if (!mustExist)
    return true;
  t.barrier = findMbarrier(w, *t.block, t.address, int(l), what);
  return t.barrier;
}

/// What mbarrier.arrive returns: the phase, the arrivals pending before it, and
/// a bit that says that this is a state.
uint64_t stateOf(const Mbarrier &m) {
  return uint64_t(m.phase) << 32 | uint64_t(m.pending) << 1 | 1;
}

/// Operands: count, state.
void pendingHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t *count = w.row<uint32_t>(o[0]);
  forLanes(mask, [&](unsigned l) {
    uint64_t state = wideValue(w, o[1], l);
    if (!(state & 1))
      return w.raise(EmulatorFault::Mbarrier,
                     "expected a state that mbarrier.arrive returned", int(l));
    count[l] = uint32_t(state) >> 1;
  });
}

/// Runs f on active lanes until a fault.
template <class F>
void eachLane(Warp &w, uint32_t mask, F f) {
  for (unsigned l = 0; l < 32; ++l)
    if (mask >> l & 1)
      if (!f(l))
        return;
}

void initHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  eachLane(w, mask, [&](unsigned l) {
    Target t;
    if (!target(w, o[0], l, "mbarrier.init", t, false))
      return false;
    uint32_t count = w.row<uint32_t>(o[1])[l];
    if (count == 0 || count > MaxCount) {
      w.raise(EmulatorFault::Mbarrier,
              "expected an arrival count from 1 to " + Twine(MaxCount) +
                  ", got " + Twine(count),
              int(l));
      return false;
    }
    if (t.block->mbarriers.count(t.address)) {
      w.raise(EmulatorFault::Mbarrier,
              "mbarrier at shared offset " + Twine(t.address - SharedBase) +
                  " is initialised twice without mbarrier.inval",
              int(l));
      return false;
    }
    uint64_t word = count;
    if (!writeShared(w, *t.block, t.address, 8, l, &word))
      return false;
    if (!t.block->shared.cells.empty())
      for (unsigned i = 0; i < 2; ++i)
        t.block->shared.cells[t.address / 4 + i].flags |= SharedCell::Mbarrier;
    Mbarrier m;
    m.agent = w.cluster->agents++;
    m.expected = m.pending = count;
    m.initAgent = uint16_t(w.clusterIdx);
    m.initLane = uint8_t(l);
    m.initClock = w.clock();
    m.initPc = w.pc;
    t.block->mbarriers[t.address] = std::move(m);
    return true;
  });
}

void invalHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  eachLane(w, mask, [&](unsigned l) {
    Target t;
    if (!target(w, o[0], l, "mbarrier.inval", t))
      return false;
    t.block->mbarriers.erase(t.address);
    if (!t.block->shared.cells.empty())
      for (unsigned i = 0; i < 2; ++i)
        t.block->shared.cells[t.address / 4 + i].flags &=
            uint8_t(~SharedCell::Mbarrier);
    return true;
  });
}

/// Operands: [state], address, [tx count], [count].
void arriveHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  bool state = inst.flags & HasState;
  const Operand *at = o + (state ? 1 : 0);
  const Operand *tx = inst.flags & ExpectTx ? at + 1 : nullptr;
  const Operand *count = inst.flags & HasCount ? at + (tx ? 2 : 1) : nullptr;
  Orders nothing;
  bool arrived = false;
  eachLane(w, mask, [&](unsigned l) {
    Target t;
    if (!target(w, *at, l, "mbarrier.arrive", t))
      return false;
    uint32_t n = count ? w.row<uint32_t>(*count)[l] : 1;
    if (inst.flags & NoComplete && n >= t.barrier->pending) {
      w.raise(EmulatorFault::Mbarrier,
              "mbarrier.arrive.noComplete of " + Twine(n) +
                  " completes the phase, which expects " +
                  Twine(t.barrier->pending) + " more",
              int(l));
      return false;
    }
    int64_t bytes = tx ? int64_t(w.row<uint32_t>(*tx)[l]) : 0;
    if (state && o[0].width() == Operand::W64)
      w.row<uint64_t>(o[0])[l] = stateOf(*t.barrier);
    if (inst.flags & Drop) {
      if (t.barrier->expected < n) {
        w.raise(EmulatorFault::Mbarrier,
                "mbarrier.arrive_drop of more threads than expected", int(l));
        return false;
      }
      t.barrier->expected -= n;
    }
    arrived = true;
    return arriveMbarrier(w, *t.block, t.address, *t.barrier, n, bytes,
                          inst.flags & Relaxed ? nothing
                                               : static_cast<Orders &>(w));
  });
  if (arrived && w.signal != Warp::Abort)
    w.tick();
}

/// flags ExpectTx: expect_tx, else complete_tx. Operands: address, count.
void txHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  eachLane(w, mask, [&](unsigned l) {
    Target t;
    if (!target(w, o[0], l, "mbarrier.expect_tx", t))
      return false;
    int64_t n = w.row<uint32_t>(o[1])[l];
    return arriveMbarrier(w, *t.block, t.address, *t.barrier, 0,
                          inst.flags & ExpectTx ? n : -n, Orders());
  });
}

/// Operands: p, address, state or parity.
void testHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  uint32_t yes = 0;
  Target waiting;
  uint32_t waitParity = 0;
  Orders released;
  eachLane(w, mask, [&](unsigned l) {
    Target t;
    if (!target(w, o[1], l, "mbarrier.try_wait", t))
      return false;
    const Mbarrier &m = *t.barrier;
    bool complete;
    uint32_t parity;
    if (inst.flags & Parity) {
      parity = w.row<uint32_t>(o[2])[l];
      if (parity > 1) {
        w.raise(EmulatorFault::Mbarrier,
                "expected a phase parity of 0 or 1, got " + Twine(parity),
                int(l));
        return false;
      }
      complete = (m.phase & 1) != parity;
    } else {
      uint64_t state = wideValue(w, o[2], l);
      uint32_t phase = uint32_t(state >> 32);
      if (!(state & 1) || phase > m.phase || phase + 1 < m.phase) {
        w.raise(EmulatorFault::Mbarrier,
                "state is not of the current or the previous phase", int(l));
        return false;
      }
      parity = phase & 1;
      complete = phase < m.phase;
    }
    if (complete) {
      if (!(inst.flags & Relaxed))
        w.join(m.released);
      yes |= 1u << l;
    } else {
      waiting = t;
      waitParity = parity;
    }
    return true;
  });
  if (w.signal == Warp::Abort)
    return;
  if (!yes && (inst.flags & Try) && !w.worker->random.oneIn(4)) {
    // try_wait suspends the thread: it runs again when the phase is complete.
    // Its time limit may also run out, so now and then it answers false.
    w.block_(Path::WaitMbarrier, waiting.address,
             waiting.block->rank << 1 | waitParity, Warp::Retry);
    return;
  }
  uint32_t *p = w.pred(o[0]);
  *p = (*p & ~mask) | yes;
  if (yes != mask) {
    ++w.worker->spins;
    w.signal = Warp::YieldNow;
  }
}

} // namespace

void decodeMbarrier(Decoder &d) {
  Inst &inst = d.inst;
  d.classify(InstClass::Mbarrier, Flow::Sync);
  inst.numDst = 0;
  StringRef what = d.take();
  if (d.mod("relaxed"))
    inst.flags |= Relaxed;
  for (StringRef word : {"release", "acquire", "cta", "cluster", "shared",
                         "shared::cta", "shared::cluster", "b64"})
    d.mod(word);
  if (what == "init") {
    if (!d.expectOperands(2))
      return;
    d.address(d.operands[0]);
    d.src(d.operands[1], Ty::U32);
    inst.fn = initHandler;
  } else if (what == "inval") {
    if (!d.expectOperands(1))
      return;
    d.address(d.operands[0]);
    inst.fn = invalHandler;
  } else if (what == "arrive" || what == "arrive_drop") {
    if (what == "arrive_drop")
      inst.flags |= Drop;
    if (d.mod("expect_tx"))
      inst.flags |= ExpectTx;
    if (d.mod("noComplete"))
      inst.flags |= NoComplete;
    size_t at = 0;
    if (!d.expectOperands(1, 4))
      return;
    if (d.operands[0].kind != POperand::Address) {
      inst.flags |= HasState;
      inst.numDst = 1;
      d.dst(d.operands[at++], Ty::B64);
    }
    if (at >= d.operands.size())
      return d.bad("expected an address of 'mbarrier.arrive'");
    d.address(d.operands[at++]);
    if (inst.flags & ExpectTx) {
      if (at >= d.operands.size())
        return d.bad("expected a transaction count");
      d.src(d.operands[at++], Ty::U32);
    }
    if (at < d.operands.size()) {
      inst.flags |= HasCount;
      d.src(d.operands[at++], Ty::U32);
    }
    inst.fn = arriveHandler;
  } else if (what == "expect_tx" || what == "complete_tx") {
    inst.flags |= what == "expect_tx" ? ExpectTx : 0;
    if (!d.expectOperands(2))
      return;
    d.address(d.operands[0]);
    d.src(d.operands[1], Ty::U32);
    inst.fn = txHandler;
  } else if (what == "test_wait" || what == "try_wait") {
    inst.flags |= what == "try_wait" ? Try : 0;
    if (d.mod("parity"))
      inst.flags |= Parity;
    // A fourth operand of try_wait is a time limit.
    if (!d.expectOperands(3, 4))
      return;
    inst.numDst = 1;
    d.dst(d.operands[0], Ty::Pred);
    d.address(d.operands[1]);
    d.src(d.operands[2], inst.flags & Parity ? Ty::U32 : Ty::B64);
    inst.fn = testHandler;
  } else if (what == "pending_count") {
    if (!d.expectOperands(2))
      return;
    d.classify(InstClass::Mbarrier);
    inst.numDst = 1;
    d.dst(d.operands[0], Ty::U32);
    d.src(d.operands[1], Ty::B64);
    inst.fn = pendingHandler;
  } else {
    return d.bad("expected an operation of 'mbarrier', got '." + what + "'");
  }
  d.finishModifiers();
}

} // namespace emulator
} // namespace humming
