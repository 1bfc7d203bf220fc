//===- ExecSync.cpp - Barriers, fences, waiting, deadlocks -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace humming {
namespace emulator {

//===----------------------------------------------------------------------===//
// bar, barrier
//===----------------------------------------------------------------------===//

namespace {
enum BarFlags : uint32_t {
  ArriveOnly = 1,
  Aligned = 2,
  HasCount = 4,
  RedShift = 4, ///< 1 popc, 2 and, 3 or
  NegatedPred = 64,
};

/// Opens the barrier when everybody is there.
void tryRelease(Block &block, unsigned id) {
  NamedBarrier &b = block.barriers[id];
  uint32_t expected = b.counted ? b.expected : block.threads - block.exited;
  if (b.arrived == 0 || b.arrived < expected)
    return;
  uint32_t popc = b.predCount;
  bool all = b.predCount == b.predThreads, any = b.predCount != 0;
  for (size_t i = 0; i < b.waiting.size(); ++i) {
    Warp &w = *block.cluster->warps[b.waiting[i].warp];
    w.join(b.orders);
    const BarrierResult &r = b.results[i];
    const Path &path = w.paths[b.waiting[i].path];
    if (r.op == 1) {
      uint32_t *row = reinterpret_cast<uint32_t *>(
          w.registers.data() + size_t(path.fn->rowBase + r.dst) * 128);
      forLanes(path.mask, [&](unsigned l) { row[l] = popc; });
    } else if (r.op) {
      uint32_t &p = w.predicates[path.fn->predBase + r.dst];
      bool v = r.op == 2 ? all : any;
      p = v ? p | path.mask : p & ~path.mask;
    }
    w.wake(b.waiting[i].path);
  }
  b = NamedBarrier();
  block.cluster->worker->progress();
}

void barHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  unsigned red = inst.flags >> RedShift & 3;
  unsigned next = red ? 1 : 0; // o[0] is the result of bar.red
  unsigned lead = llvm::countr_zero(mask);
  uint32_t id = w.row<uint32_t>(o[next++])[lead];
  if (id >= 16)
    return w.raise(EmulatorFault::IllegalInstruction,
                   "expected a barrier number below 16, got " + Twine(id),
                   int(lead));
  uint32_t count = 0;
  if (inst.flags & HasCount) {
    count = w.row<uint32_t>(o[next++])[lead];
    if (count == 0 || count % 32)
      return w.raise(EmulatorFault::BarrierDivergence,
                     "expected a thread count that is a multiple of 32, got " +
                         Twine(count),
                     int(lead));
    if (count > (w.block->threads + 31) / 32 * 32)
      return w.raise(EmulatorFault::BarrierDivergence,
                     "barrier " + Twine(id) + " waits for " + Twine(count) +
                         " threads, the block has " + Twine(w.block->threads),
                     int(lead));
  }
  if (inst.flags & Aligned && mask != w.alive) {
    return w.raise(EmulatorFault::BarrierDivergence,
                   "barrier " + Twine(id) +
                       " is reached by a part of the warp: lane mask 0x" +
                       Twine::utohexstr(mask) + " of 0x" +
                       Twine::utohexstr(w.alive));
  }
  NamedBarrier &b = w.block->barriers[id];
  if (b.arrived && (b.counted != bool(count) || b.expected != count)) {
    auto error = std::make_unique<EmulatorError>(
        EmulatorFault::BarrierDivergence,
        ("barrier " + Twine(id) + " is used with different thread counts: " +
         Twine(count) + " and " + Twine(b.expected) + " (0: all)")
            .str());
    error->site = w.site(-1, w.pc);
    if (!b.waiting.empty())
      error->notes.push_back(
          {"the other use is here",
           w.cluster->warps[b.waiting.front().warp]->site(-1, b.pc)});
    w.launch->report(w.cluster->index, std::move(error));
    w.worker->failed = true;
    w.signal = Warp::Abort;
    return;
  }
  b.counted = count != 0;
  b.expected = count;
  b.pc = w.pc;
  // With a count the hardware counts whole warps.
  b.arrived += count && (inst.flags & Aligned) ? 32 : llvm::popcount(mask);
  b.orders.join(w);
  if (red) {
    uint32_t p = *w.pred(o[next]);
    if (inst.flags & NegatedPred)
      p = ~p;
    b.predCount += llvm::popcount(p & mask);
    b.predThreads += llvm::popcount(mask);
  }
  w.tick();
  if (!(inst.flags & ArriveOnly)) {
    b.waiting.push_back({w.clusterIdx, w.currentPath});
    BarrierResult r;
    r.op = uint8_t(red);
    if (red)
      r.dst = o[0].row();
    b.results.push_back(r);
    w.block_(Path::WaitBarrier, id, 0, Warp::Block);
  }
  if (count && b.arrived > count)
    return w.raise(EmulatorFault::BarrierDivergence,
                   Twine(b.arrived) + " threads arrived at barrier " +
                       Twine(id) + " that waits for " + Twine(count));
  tryRelease(*w.block, id);
}

void warpSyncHandler(Warp &w, const Inst &inst, uint32_t mask) {
  uint32_t members = w.row<uint32_t>(w.ops(inst)[0])[llvm::countr_zero(mask)];
  if (!(members & mask) || (mask & ~members))
    return w.raise(EmulatorFault::BarrierDivergence,
                   "bar.warp.sync by lanes 0x" + Twine::utohexstr(mask) +
                       " that its member mask 0x" + Twine::utohexstr(members) +
                       " does not name");
  if (w.convergeMembers(inst, members, mask))
    w.tick();
}

//===----------------------------------------------------------------------===//
// Cluster barrier
//===----------------------------------------------------------------------===//

void releaseCluster(Cluster &c) {
  if (c.clusterArrived < c.threads - c.exitedThreads || !c.clusterArrived)
    return;
  c.clusterReleased = std::move(c.clusterArriving);
  c.clusterArriving = Orders();
  c.clusterArrived = 0;
  ++c.clusterPhase;
  std::fill(c.clusterLanes.begin(), c.clusterLanes.end(), 0);
  for (PathRef ref : c.clusterWaiting)
    c.warps[ref.warp]->wake(ref.path);
  c.clusterWaiting.clear();
  c.worker->progress();
}

/// flags: 0 arrive, 1 wait; bit 1 relaxed; bit 2 aligned.
void clusterHandler(Warp &w, const Inst &inst, uint32_t mask) {
  Cluster &c = *w.cluster;
  if (inst.flags & 4 && mask != w.alive)
    return w.raise(EmulatorFault::BarrierDivergence,
                   "barrier.cluster is reached by a part of the warp: lane "
                   "mask 0x" +
                       Twine::utohexstr(mask));
  if (!(inst.flags & 1)) {
    if (c.clusterLanes[w.clusterIdx] & mask)
      return w.raise(EmulatorFault::BarrierDivergence,
                     "a thread arrives at the cluster barrier twice without "
                     "waiting in between");
    c.clusterLanes[w.clusterIdx] |= mask;
    w.clusterToken = c.clusterPhase + 1;
    c.clusterArrived += llvm::popcount(mask);
    if (!(inst.flags & 2)) {
      c.clusterArriving.join(w);
      w.tick();
    } else {
      c.clusterArriving.sync.join(w.initialised);
      c.clusterArriving.proxy.join(w.initialised);
    }
    releaseCluster(c);
    return;
  }
  if (w.clusterToken == 0)
    return w.raise(EmulatorFault::BarrierDivergence,
                   "barrier.cluster.wait without an arrive before it");
  if (c.clusterPhase < w.clusterToken) {
    c.clusterWaiting.push_back({w.clusterIdx, w.currentPath});
    w.block_(Path::WaitCluster, 0, 0, Warp::Retry);
    return;
  }
  w.join(c.clusterReleased);
}

//===----------------------------------------------------------------------===//
// Fences and the rest
//===----------------------------------------------------------------------===//

/// flags: 0 cta scope, 1 wider scope, 2 async proxy, 3 mbarrier_init.
void fenceHandler(Warp &w, const Inst &inst, uint32_t mask) {
  switch (inst.flags) {
  case 0:
  case 1:
    acquirePending(w);
    w.fenced.join(w.sync);
    if (inst.flags)
      w.global.join(w.sync);
    break;
  case 3:
    w.initialised.join(w.sync);
    [[fallthrough]];
  case 2:
    w.proxy.join(w.sync);
    break;
  }
  w.tick();
}

void nothingHandler(Warp &, const Inst &, uint32_t) {}
void yieldHandler(Warp &w, const Inst &, uint32_t) {
  ++w.worker->spins;
  w.signal = Warp::YieldNow;
}
void setmaxnregHandler(Warp &w, const Inst &inst, uint32_t mask) {
  w.requireFull(inst, mask, "setmaxnreg");
}
} // namespace

void threadsExited(Warp &w, uint32_t lanes) {
  unsigned n = llvm::popcount(lanes);
  w.block->exited += n;
  w.cluster->exitedThreads += n;
  w.worker->progress();
  // Barriers of all threads do not wait for those that are gone.
  for (unsigned id = 0; id < 16; ++id) {
    NamedBarrier &b = w.block->barriers[id];
    if (b.arrived && !b.counted)
      tryRelease(*w.block, id);
  }
  Cluster &c = *w.cluster;
  uint32_t arrived = c.clusterLanes[w.clusterIdx] & lanes;
  if (arrived) { // counted already; the rest of the phase goes on without them
    c.clusterArrived -= llvm::popcount(arrived);
    c.clusterLanes[w.clusterIdx] &= ~lanes;
  }
  if (c.clusterArrived)
    releaseCluster(c);
}

std::unique_ptr<EmulatorError> describeDeadlock(Cluster &cluster,
                                                const char *why) {
  auto error = std::make_unique<EmulatorError>(EmulatorFault::Deadlock, why);
  bool first = true;
  for (auto &w : cluster.warps) {
    for (const Path &p : w->paths) {
      if (p.state != Path::Blocked && p.state != Path::Ready)
        continue;
      uint32_t at = p.pc;
      std::string what;
      switch (p.wait) {
      case Path::WaitBarrier: {
        const NamedBarrier &b = w->block->barriers[p.waitId];
        if (at)
          --at;
        what =
            "waits at barrier " + std::to_string(p.waitId) + ": " +
            std::to_string(b.arrived) + " of " +
            std::to_string(b.counted ? b.expected
                                     : w->block->threads - w->block->exited) +
            " threads are there";
        break;
      }
      case Path::WaitCluster:
        what = "waits at the cluster barrier: " +
               std::to_string(cluster.clusterArrived) + " of " +
               std::to_string(cluster.threads - cluster.exitedThreads) +
               " threads are there";
        break;
      case Path::WaitWarp:
        what = "waits for lanes 0x" + utohexstr(p.waitId & ~p.mask) +
               " of its warp";
        break;
      case Path::WaitMbarrier: {
        uint32_t rank = p.waitAux >> 1;
        what = "waits for phase parity " + std::to_string(p.waitAux & 1) +
               " of the mbarrier at shared offset " +
               std::to_string(p.waitId - SharedBase);
        auto &list = cluster.blocks[rank]->mbarriers;
        auto it = list.find(p.waitId);
        if (it != list.end())
          what += ": phase " + std::to_string(it->second.phase) + " has " +
                  std::to_string(it->second.pending) + " of " +
                  std::to_string(it->second.expected) + " arrivals and " +
                  std::to_string(it->second.tx) + " bytes pending";
        break;
      }
      case Path::WaitWgmma:
        what = "waits for the other warps of its warpgroup to issue wgmma";
        break;
      default:
        what = "runs (lanes 0x" + utohexstr(p.mask) + ")";
        break;
      }
      FaultSite site = w->site(-1, at);
      if (first)
        error->site = site;
      first = false;
      if (error->notes.size() < 40)
        error->notes.push_back({what, site});
    }
  }
  return error;
}

static void decodeBar(Decoder &d) {
  Inst &inst = d.inst;
  bool barrier = d.opcode == "barrier";
  if (d.mod("cluster")) {
    d.classify(InstClass::Barrier, Flow::Sync);
    bool arrive = d.mod("arrive"), wait = d.mod("wait");
    if (arrive == wait)
      return d.bad("expected .arrive or .wait of 'barrier.cluster'");
    d.mod("release");
    d.mod("acquire");
    inst.flags = (wait ? 1 : 0) | (d.mod("relaxed") ? 2 : 0) |
                 (d.mod("aligned") ? 4 : 0);
    inst.numDst = 0;
    inst.fn = clusterHandler;
    if (!d.expectOperands(0))
      return;
    return d.finishModifiers();
  }
  if (d.mod("warp")) {
    d.mod("sync");
    if (!d.expectOperands(1))
      return;
    d.classify(InstClass::Warp, Flow::Sync);
    inst.numDst = 0;
    inst.fn = warpSyncHandler;
    d.src(d.operands[0], Ty::B32);
    return d.finishModifiers();
  }
  d.classify(InstClass::Barrier, Flow::Sync);
  d.mod("cta");
  bool aligned = d.mod("aligned") || !barrier;
  bool arrive = d.mod("arrive"), red = d.mod("red");
  d.mod("sync");
  inst.flags = (arrive ? ArriveOnly : 0) | (aligned ? Aligned : 0);
  inst.numDst = 0;
  inst.fn = barHandler;
  size_t at = 0;
  if (red) {
    bool popc = d.mod("popc"), andOp = d.mod("and"), orOp = d.mod("or");
    Ty ty = d.type();
    if (popc + andOp + orOp != 1)
      return d.bad("expected .popc, .and or .or of 'bar.red'");
    if (!d.expectOperands(3, 4))
      return;
    inst.flags |= (popc ? 1u : andOp ? 2u : 3u) << RedShift;
    inst.numDst = 1;
    d.dst(d.operands[at++], popc ? Ty::U32 : ty);
  } else if (!d.expectOperands(1, 2)) {
    return;
  }
  d.src(d.operands[at++], Ty::B32);
  bool hasCount = d.operands.size() - at > (red ? 1u : 0u);
  if (arrive && !hasCount)
    return d.bad("expected a thread count of 'bar.arrive'");
  if (hasCount) {
    inst.flags |= HasCount;
    d.src(d.operands[at++], Ty::B32);
  }
  if (red) {
    d.src(d.operands[at], Ty::Pred);
    if (d.operands[at].negated)
      inst.flags |= NegatedPred;
  }
  d.finishModifiers();
}

void decodeSync(Decoder &d) {
  Inst &inst = d.inst;
  StringRef op = d.opcode;
  if (op == "bar" || op == "barrier")
    return decodeBar(d);
  inst.numDst = 0;
  if (op == "membar" || op == "fence") {
    d.classify(InstClass::Fence, Flow::Sync);
    inst.fn = fenceHandler;
    if (d.mod("proxy")) {
      inst.flags = 2;
      bool known = d.mod("async") || d.mod("async.global") ||
                   d.mod("async.shared::cta") || d.mod("alias") ||
                   d.mod("tensormap::generic");
      for (StringRef space :
           {"global", "shared::cta", "shared::cluster", "acquire", "release",
            "cta", "cluster", "gpu", "sys", "sync_restrict::shared::cta",
            "sync_restrict::shared::cluster"})
        d.mod(space);
      if (!known)
        return d.unsupported("proxy of '" + op + "'");
      // Address and size of the tensormap form do not matter.
      return d.finishModifiers();
    }
    if (d.mod("mbarrier_init")) {
      d.mod("release");
      d.mod("cluster");
      inst.flags = 3;
      return d.finishModifiers();
    }
    for (StringRef order :
         {"sc", "acq_rel", "acquire", "release", "sync_restrict::shared::cta",
          "sync_restrict::shared::cluster"})
      d.mod(order);
    inst.flags = d.mod("cta") ? 0 : 1;
    for (StringRef scope : {"gl", "gpu", "sys", "cluster"})
      d.mod(scope);
    if (!d.expectOperands(0))
      return;
    return d.finishModifiers();
  }
  if (op == "nanosleep") {
    d.classify(InstClass::Other, Flow::Sync);
    inst.fn = yieldHandler;
    d.type();
    if (!d.expectOperands(1))
      return;
    d.src(d.operands[0], Ty::U32);
    return d.finishModifiers();
  }
  d.classify(InstClass::Other);
  inst.fn = nothingHandler;
  if (op == "griddepcontrol") {
    if (!d.mod("wait") && !d.mod("launch_dependents"))
      return d.bad("expected .wait or .launch_dependents of 'griddepcontrol'");
    return d.finishModifiers();
  }
  // setmaxnreg: an emulated warp has all registers anyway.
  d.classify(InstClass::Other, Flow::Sync);
  inst.fn = setmaxnregHandler;
  if (!d.mod("inc") && !d.mod("dec"))
    return d.bad("expected .inc or .dec of 'setmaxnreg'");
  d.mod("sync");
  d.mod("aligned");
  d.type();
  int64_t n;
  if (!d.expectOperands(1) || !d.immediate(d.operands[0], n))
    return;
  if (n < 24 || n > 256 || n % 8)
    return d.bad("expected a multiple of 8 from 24 to 256, got " + Twine(n));
  d.finishModifiers();
}

} // namespace emulator
} // namespace humming
