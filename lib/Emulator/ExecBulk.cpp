//===- ExecBulk.cpp - cp.async.bulk, cp.async.bulk.tensor, their groups -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bulk copy is checked when it is issued (bounds, order against earlier
// accesses, proxy fence) and its bytes are marked: targets as in flight,
// sources as pinned. It happens later, as an event of the cluster: when nothing
// else can run, when it is waited for, or early if the seed says so.
//
//===----------------------------------------------------------------------===//

#include "ExecTemplates.h"
#include "Humming/Emulator/TensorMap.h"
#include <cstring>

using namespace llvm;

namespace humming {
namespace emulator {

using ptx::TensorChunk;
using ptx::TensorMap;

//===----------------------------------------------------------------------===//
// Completion
//===----------------------------------------------------------------------===//

/// Copies the source of a store out of shared memory and unpins it.
static void readSource(Cluster &cluster, AsyncEvent &e) {
  if (e.sourceRead)
    return;
  e.sourceRead = true;
  for (const AsyncEvent::Chunk &c : e.chunks) {
    Block &b = *cluster.blocks[c.block];
    const uint8_t *p = b.shared.bytes.data() + c.shared;
    e.data.insert(e.data.end(), p, p + c.bytes);
    pinShared(b, c.shared, c.bytes, false);
    b.asyncBytes -= c.bytes;
  }
}

static bool finishStore(Cluster &cluster, AsyncEvent &e) {
  Warp &w = *cluster.warps[e.warp];
  readSource(cluster, e);
  size_t at = 0;
  for (const AsyncEvent::Chunk &c : e.chunks) {
    const uint8_t *from = e.data.data() + at;
    at += c.bytes;
    if (!c.inBounds)
      continue;
    GlobalBuffer *buffer;
    uint8_t *p = resolveGlobal(w, c.global, c.bytes, 1, e.lane, true,
                               "bulk store", buffer);
    if (!p)
      return false;
    if (w.launch->config->checks.races &&
        !checkGlobal(w, *buffer, c.global, c.bytes, e.lane, true, e.reduce >= 0,
                     e.pc, e.reduce >= 0 ? nullptr : from))
      return false;
    if (e.reduce < 0) {
      std::memcpy(p, from, c.bytes);
    } else {
      unsigned size = bytesOf(e.ty);
      for (uint32_t i = 0; i + size <= c.bytes; i += size) {
        uint64_t old = 0, value = 0;
        std::memcpy(&old, p + i, size);
        std::memcpy(&value, from + i, size);
        old = applyAtomic(uint32_t(e.reduce), e.ty, old, value);
        std::memcpy(p + i, &old, size);
      }
    }
    if (!buffer->init.empty())
      std::memset(buffer->init.data() + (c.global - buffer->base), 1, c.bytes);
  }
  cluster.worker->progress();
  return true;
}

static bool finishLoad(Cluster &cluster, AsyncEvent &e) {
  Warp &w = *cluster.warps[e.warp];
  for (const AsyncEvent::Chunk &c : e.chunks) {
    Block &b = *cluster.blocks[c.block];
    uint8_t data[16];
    for (uint32_t at = 0; at < c.bytes; at += 16) {
      uint32_t n = std::min(16u, c.bytes - at);
      if (c.fromShared) {
        std::memcpy(data, w.block->shared.bytes.data() + c.global + at, n);
        pinShared(*w.block, uint32_t(c.global + at), n, false);
      } else if (c.inBounds) {
        GlobalBuffer *buffer = w.launch->memory->find(c.global + at);
        std::memcpy(data, buffer->data + (c.global + at - buffer->base), n);
        // A multicast reads once for all its blocks.
        if (c.block == e.chunks.front().block)
          buffer->countRead(c.global + at, n);
      } else {
        for (unsigned i = 0; i < n; i += 8)
          std::memcpy(data + i, &e.fill, std::min(8u, n - i));
      }
      if (e.tensor)
        ptx::transformTensorElements(ptx::TensorElement(e.element),
                                     MutableArrayRef<uint8_t>(data, n));
      std::memcpy(b.shared.bytes.data() + c.shared + at, data, n);
    }
    if (!b.shared.init.empty())
      std::memset(b.shared.init.data() + c.shared, 1, c.bytes);
    b.asyncBytes -= c.bytes;
    // Whoever waits for the barrier of that block may read them.
    for (const AsyncEvent::Signal &s : e.mbarriers)
      if (s.rank == c.block) {
        auto it = b.mbarriers.find(s.address);
        if (it != b.mbarriers.end())
          assignShared(b, c.shared, c.bytes, uint16_t(it->second.agent),
                       it->second.phase + 1, e.lane, e.pc, true);
      }
  }
  for (const AsyncEvent::Signal &s : e.mbarriers) {
    Block &b = *cluster.blocks[s.rank];
    auto it = b.mbarriers.find(s.address);
    if (it == b.mbarriers.end()) {
      w.raise(EmulatorFault::Mbarrier,
              "a bulk copy completes on an mbarrier that was invalidated");
      return false;
    }
    if (!arriveMbarrier(w, b, s.address, it->second, 0, -int64_t(s.bytes),
                        Orders()))
      return false;
  }
  return true;
}

bool runEvent(Cluster &cluster, size_t index) {
  // Deferred arrivals of a thread happen in order: the first one after a copy
  // is the one that hands its bytes over.
  if (cluster.events[index].kind == AsyncEvent::CopyArrive)
    for (size_t i = 0; i < index; ++i)
      if (cluster.events[i].kind == AsyncEvent::CopyArrive &&
          cluster.events[i].warp == cluster.events[index].warp &&
          (cluster.events[i].lanes & cluster.events[index].lanes)) {
        index = i;
        break;
      }
  AsyncEvent e = std::move(cluster.events[index]);
  cluster.events.erase(cluster.events.begin() + index);
  Warp &w = *cluster.warps[e.warp];
  uint32_t pc = w.pc;
  w.pc = e.pc; // for messages
  bool ok = true;
  switch (e.kind) {
  case AsyncEvent::BulkLoad:
    ok = finishLoad(cluster, e);
    break;
  case AsyncEvent::BulkStore:
    ok = finishStore(cluster, e);
    break;
  case AsyncEvent::SharedUpdate:
    ok = finishSharedUpdate(cluster, e);
    break;
  case AsyncEvent::CopyArrive: {
    Block &b = *cluster.blocks[e.mbarriers[0].rank];
    auto it = b.mbarriers.find(e.mbarriers[0].address);
    if (it == b.mbarriers.end()) {
      ok = false;
      w.raise(EmulatorFault::Mbarrier,
              "cp.async.mbarrier.arrive on an mbarrier that was invalidated");
      break;
    }
    ok =
        landCopies(w, e.lanes, it->second.agent, it->second.phase + 1, e.seq) &&
        arriveMbarrier(w, b, e.mbarriers[0].address, it->second,
                       llvm::popcount(e.lanes), 0, Orders());
    break;
  }
  }
  w.pc = pc;
  return ok;
}

//===----------------------------------------------------------------------===//
// Issue
//===----------------------------------------------------------------------===//

namespace {
enum BulkFlags : uint32_t {
  Store = BulkStoreFlag,
  Tensor = 2,
  Multicast = 4,
  FromShared = 8, ///< shared to shared::cluster
  Reduce = 16,
  RankShift = 8,
};

/// The 128 bytes of a tensor map.
bool readMap(Warp &w, uint64_t address, unsigned lane, TensorMap &map) {
  ArrayRef<uint8_t> bytes;
  if (address & 63) {
    w.raise(EmulatorFault::Misaligned,
            "tensor map at 0x" + Twine::utohexstr(address) +
                " is not aligned to 64 bytes",
            int(lane));
    return false;
  }
  if (address >= ParamWindow && address - ParamWindow < WindowSize) {
    uint64_t at = address - ParamWindow;
    if (at + 128 > w.launch->arguments.size()) {
      w.raise(EmulatorFault::OutOfBounds,
              "tensor map at parameter offset " + Twine(at) +
                  " is out of bounds",
              int(lane));
      return false;
    }
    bytes = ArrayRef<uint8_t>(w.launch->arguments).slice(at, 128);
  } else {
    GlobalBuffer *b;
    uint8_t *p =
        resolveGlobal(w, address, 128, 64, lane, false, "tensor map", b);
    if (!p)
      return false;
    bytes = ArrayRef<uint8_t>(p, 128);
  }
  auto decoded = ptx::decodeTensorMap(bytes);
  if (!decoded) {
    w.raise(EmulatorFault::Descriptor,
            "illegal tensor map: " + toString(decoded.takeError()), int(lane));
    return false;
  }
  map = *decoded;
  return true;
}

/// The type of a tensor reduction.
Ty elementTy(ptx::TensorElement element) {
  using E = ptx::TensorElement;
  switch (element) {
  case E::U8:
    return Ty::U8;
  case E::U16:
    return Ty::U16;
  case E::U32:
    return Ty::U32;
  case E::S32:
    return Ty::S32;
  case E::U64:
    return Ty::U64;
  case E::S64:
    return Ty::S64;
  case E::F16:
    return Ty::F16;
  case E::BF16:
    return Ty::BF16;
  case E::F64:
    return Ty::F64;
  case E::F32:
  case E::F32Ftz:
  case E::TF32:
  case E::TF32Ftz:
    return Ty::F32;
  }
  return Ty::B32;
}

struct Issue {
  Warp &w;
  const Inst &inst;
  unsigned lane;
  AsyncEvent e;
  uint64_t bytes = 0;

  bool sharedPlace(uint64_t address, unsigned size, unsigned align, Block *&b,
                   uint32_t &offset) {
    b = resolveShared(w, address, size, align, lane, "bulk copy");
    offset = uint32_t(address) & 0xFFFFFF;
    return b;
  }

  bool checkGlobalRead(uint64_t address, uint32_t size) {
    GlobalBuffer *buffer;
    if (!resolveGlobal(w, address, size, 1, lane, false, "bulk copy", buffer))
      return false;
    const LaunchChecks &checks = w.launch->config->checks;
    if (checks.races &&
        !checkGlobal(w, *buffer, address, size, lane, false, false, w.pc))
      return false;
    if (checks.uninitialized && !buffer->init.empty() &&
        std::memchr(buffer->init.data() + (address - buffer->base), 0, size)) {
      w.raise(EmulatorFault::Uninitialized,
              "bulk copy of bytes at " + w.launch->memory->describe(address) +
                  " that nothing has written",
              int(lane));
      return false;
    }
    return true;
  }

  /// Swizzled places of a box that is not aligned to its pattern can leave it.
  bool inside(uint32_t offset, uint32_t size) {
    if (offset >= SharedBase && offset + size <= w.launch->sharedBytes)
      return true;
    w.raise(EmulatorFault::OutOfBounds,
            "bulk copy touches shared offset " +
                Twine(int64_t(offset) - SharedBase) + ", out of bounds",
            int(lane));
    return false;
  }

  /// Checks and pins shared bytes that will be read.
  bool pinSource(Block &b, uint32_t offset, uint32_t size) {
    if (!inside(offset, size))
      return false;
    Access a = warpAccess(w, lane, false);
    a.async = true;
    if (!checkShared(w, b, offset, size, a))
      return false;
    if (!b.shared.init.empty() &&
        std::memchr(b.shared.init.data() + offset, 0, size)) {
      w.raise(EmulatorFault::Uninitialized,
              "bulk copy of shared bytes at offset " +
                  Twine(offset - SharedBase) + " that nothing has written",
              int(lane));
      return false;
    }
    pinShared(b, offset, size, true);
    return true;
  }

  /// Adds a load of one run of bytes into block \p b.
  bool load(Block &b, uint32_t offset, uint32_t size, uint64_t global,
            bool inBounds, bool fromShared = false) {
    if (!inside(offset, size) ||
        !markInFlight(w, b, offset, size, lane, true, true))
      return false;
    AsyncEvent::Chunk c;
    c.block = b.rank;
    c.shared = offset;
    c.bytes = size;
    c.global = global;
    c.inBounds = inBounds;
    c.fromShared = fromShared;
    e.chunks.push_back(c);
    beginAsync(w, b, size);
    countLines(b, offset, size);
    return true;
  }

  /// The chunks moved in or out of one block, counted by countLines.
  void countLines(Block &b, uint32_t offset, uint32_t size) {
    if (&b != linesBlock)
      flushLines();
    linesBlock = &b;
    for (uint32_t at = offset & ~15u; at < offset + size; at += 16)
      if (lines.empty() || lines.back() != at)
        lines.push_back(at);
  }
  void flushLines() {
    // A pass moves (a part of) one line of 128 bytes.
    for (size_t first = 0, end; first < lines.size(); first = end) {
      for (end = first + 1;
           end < lines.size() && lines[end] / 128 == lines[first] / 128;)
        ++end;
      countChunks(w, w.pc, ArrayRef<uint32_t>(lines).slice(first, end - first));
    }
    lines.clear();
  }
  SmallVector<uint32_t, 64> lines = {};
  Block *linesBlock = nullptr;

  /// Adds a reduction of the issuer's bytes at \p from into block \p b.
  void reduceInto(Block &b, uint32_t offset, uint32_t size, uint32_t from) {
    e.kind = AsyncEvent::SharedUpdate;
    e.clock = w.clock();
    e.known = w.sync.here;
    e.proxyKnown = w.proxy.here;
    AsyncEvent::Chunk c;
    c.block = b.rank;
    c.shared = offset;
    c.bytes = size;
    c.global = from;
    c.fromShared = true;
    e.chunks.push_back(c);
    beginAsync(w, *w.block, size);
    countLines(b, offset, size);
  }

  bool signal(Block &b, uint32_t address, uint32_t size) {
    Mbarrier *m = findMbarrier(w, b, address, int(lane), "bulk copy");
    if (!m)
      return false;
    if (w.launch->config->checks.proxyFences &&
        clockAt(w.proxy.here, m->initAgent) < m->initClock) {
      w.raise(EmulatorFault::ProxyFence,
              "a bulk copy signals the mbarrier at shared offset " +
                  Twine(address - SharedBase) +
                  " whose initialisation no fence.mbarrier_init or "
                  "fence.proxy.async makes visible",
              int(lane));
      return false;
    }
    e.mbarriers.push_back({b.rank, address, size});
    return true;
  }
};

/// Operands: plain load: dst, src, size, mbar, [mask]; plain store: dst, src,
/// size; tensor load: dst, map, mbar, coordinates..., [mask]; tensor store:
/// map, src, coordinates...
void bulkHandler(Warp &w, const Inst &inst, uint32_t mask) {
  const Operand *o = w.ops(inst);
  auto value = [&](Operand x, unsigned l) {
    return wideValue(w, x, l) + uint64_t(int64_t(x.offset));
  };
  for (unsigned l = 0; l < 32; ++l) {
    if (!(mask >> l & 1))
      continue;
    Issue issue{w, inst, l, AsyncEvent()};
    AsyncEvent &e = issue.e;
    e.warp = w.clusterIdx;
    e.lane = uint8_t(l);
    e.pc = w.pc;
    e.kind = inst.flags & Store ? AsyncEvent::BulkStore : AsyncEvent::BulkLoad;
    e.reduce = inst.flags & Reduce ? int32_t(inst.aux) : -1;
    e.ty = inst.ty;
    unsigned rank = inst.flags >> RankShift & 7;
    bool tensor = inst.flags & Tensor;
    // The runs of bytes of one block's copy.
    struct Run {
      uint32_t offset, bytes;
      uint64_t global;
      bool inBounds;
    };
    SmallVector<Run, 8> runs;
    uint64_t sharedAddress;
    uint64_t total = 0;
    if (tensor) {
      TensorMap map;
      Operand mapOp = inst.flags & Store ? o[0] : o[1];
      sharedAddress = value(inst.flags & Store ? o[1] : o[0], l);
      if (!readMap(w, value(mapOp, l), l, map))
        return;
      if (map.rank != rank)
        return w.raise(EmulatorFault::Descriptor,
                       "tensor map has rank " + Twine(unsigned(map.rank)) +
                           ", the instruction has " + Twine(rank) +
                           " coordinates",
                       int(l));
      SmallVector<int32_t, 5> coords;
      for (unsigned i = 0; i < rank; ++i)
        coords.push_back(
            int32_t(w.row<uint32_t>(o[(inst.flags & Store ? 2 : 3) + i])[l]));
      if (Error e =
              ptx::verifyTensorCoordinates(map, coords, inst.flags & Store))
        return w.raise(EmulatorFault::IllegalInstruction,
                       toString(std::move(e)), int(l));
      ptx::forEachTensorChunk(map, coords, uint32_t(sharedAddress) & 0xFFFFFF,
                              [&](const TensorChunk &c) {
                                runs.push_back({c.sharedOffset, c.bytes,
                                                c.globalAddress, c.inBounds});
                              });
      total = map.boxBytes();
      e.fill = ptx::oobFill(map);
      e.tensor = true;
      if (inst.flags & Reduce)
        e.ty = elementTy(map.element);
      e.element = uint8_t(map.element);
    } else {
      uint32_t size = w.row<uint32_t>(o[2])[l];
      if (size == 0 || size % 16)
        return w.raise(EmulatorFault::IllegalInstruction,
                       "expected a bulk copy of a multiple of 16 bytes, got " +
                           Twine(size),
                       int(l));
      sharedAddress = value(inst.flags & Store ? o[1] : o[0], l);
      uint64_t global = value(inst.flags & Store ? o[0] : o[1], l);
      if (!(inst.flags & FromShared) && global % 16)
        return w.raise(EmulatorFault::Misaligned,
                       "bulk copy at " + w.launch->memory->describe(global) +
                           " is not aligned to 16 bytes",
                       int(l));
      runs.push_back({0, size, global, true});
      total = size;
    }
    Block *own;
    uint32_t base;
    unsigned align = tensor ? 128 : 16;
    if (!issue.sharedPlace(sharedAddress, uint32_t(total), align, own, base))
      return;
    w.worker->memory[w.pc].bytes += total;
    w.worker->memory[w.pc].sectors += (total + 31) / 32;

    if (inst.flags & Store) {
      e.group = w.bulkGroup[l];
      for (const Run &r : runs) {
        if (!issue.pinSource(*own, base + r.offset, r.bytes))
          return;
        GlobalBuffer *buffer;
        if (r.inBounds && !resolveGlobal(w, r.global, r.bytes, 1, l, true,
                                         "bulk store", buffer))
          return;
        AsyncEvent::Chunk c;
        c.block = own->rank;
        c.shared = base + r.offset;
        c.bytes = r.bytes;
        c.global = r.global;
        c.inBounds = r.inBounds;
        e.chunks.push_back(c);
        beginAsync(w, *own, r.bytes);
        issue.countLines(*own, base + r.offset, r.bytes);
      }
      issue.flushLines();
      w.cluster->events.push_back(std::move(e));
      continue;
    }
    // A load: into one block or, with multicast, into several at one offset.
    uint32_t barrier = uint32_t(value(tensor ? o[2] : o[3], l)) & 0xFFFFFF;
    uint64_t barrierAddress = value(tensor ? o[2] : o[3], l);
    Block *barrierBlock = resolveShared(w, barrierAddress, 8, 8, l, "mbarrier");
    if (!barrierBlock)
      return;
    SmallVector<Block *, 4> targets;
    if (inst.flags & Multicast) {
      uint32_t ranks = w.row<uint32_t>(o[inst.opCount - 1])[l] & 0xFFFF;
      for (unsigned r = 0; r < 16; ++r)
        if (ranks >> r & 1) {
          if (r >= w.cluster->blocks.size())
            return w.raise(EmulatorFault::IllegalInstruction,
                           "multicast mask names block " + Twine(r) +
                               " of a cluster of " +
                               Twine(w.cluster->blocks.size()),
                           int(l));
          targets.push_back(w.cluster->blocks[r].get());
        }
    } else {
      targets.push_back(own);
    }
    for (const Run &r : runs) {
      if (inst.flags & FromShared) {
        Block *from;
        uint32_t offset;
        if (!issue.sharedPlace(r.global, r.bytes, 16, from, offset) ||
            !issue.pinSource(*from, offset, r.bytes))
          return;
        if (inst.flags & Reduce) {
          issue.reduceInto(*own, base + r.offset, r.bytes, offset);
          continue;
        }
        if (!issue.load(*own, base + r.offset, r.bytes, offset, true, true))
          return;
        continue;
      }
      if (r.inBounds && !issue.checkGlobalRead(r.global, r.bytes))
        return;
      for (Block *t : targets)
        if (!issue.load(*t, base + r.offset, r.bytes, r.global, r.inBounds))
          return;
    }
    issue.flushLines();
    for (Block *t : targets)
      if (!issue.signal(inst.flags & Multicast ? *t : *barrierBlock, barrier,
                        uint32_t(total)))
        return;
    w.cluster->events.push_back(std::move(e));
  }
}

void commitHandler(Warp &w, const Inst &, uint32_t mask) {
  forLanes(mask, [&](unsigned l) { ++w.bulkGroup[l]; });
}

/// flags 1: .read; aux = groups that may stay pending.
void waitHandler(Warp &w, const Inst &inst, uint32_t mask) {
  Cluster &c = *w.cluster;
  for (size_t i = 0; i < c.events.size();) {
    AsyncEvent &e = c.events[i];
    if (e.kind != AsyncEvent::BulkStore || e.warp != w.clusterIdx ||
        !(mask >> e.lane & 1) || e.group + inst.aux >= w.bulkGroup[e.lane]) {
      ++i;
      continue;
    }
    if (inst.flags & 1) {
      readSource(c, e);
      ++i;
    } else if (!runEvent(c, i)) {
      return;
    }
  }
}
void nothingHandler(Warp &, const Inst &, uint32_t) {}
} // namespace

void decodeBulk(Decoder &d) {
  Inst &inst = d.inst;
  d.classify(InstClass::Bulk, Flow::Sync);
  inst.numDst = 0;
  bool reduce = d.mod("reduce");
  d.mod("async");
  if (!d.mod("bulk"))
    return d.unsupported("'cp.reduce'");
  if (d.mod("commit_group")) {
    d.classify(InstClass::Other, Flow::Sync);
    inst.fn = commitHandler;
    d.expectOperands(0);
    return d.finishModifiers();
  }
  if (d.mod("wait_group")) {
    d.classify(InstClass::Other, Flow::Sync);
    inst.fn = waitHandler;
    inst.flags = d.mod("read");
    int64_t n;
    if (!d.expectOperands(1) || !d.immediate(d.operands[0], n))
      return;
    if (n < 0 || n > INT32_MAX)
      return d.bad("expected a group count, got " + Twine(n));
    inst.aux = uint32_t(n);
    return d.finishModifiers();
  }
  if (d.mod("prefetch")) {
    d.classify(InstClass::Other);
    inst.fn = nothingHandler;
    return;
  }
  bool tensor = d.mod("tensor");
  unsigned rank = 0;
  for (unsigned r = 1; r <= 5; ++r)
    if (d.mod((Twine(r) + "d").str()))
      rank = r;
  if (tensor && !rank)
    return d.bad("expected .1d to .5d of 'cp.async.bulk.tensor'");
  for (StringRef mode :
       {"im2col", "im2col::w", "im2col::w::128", "tile::gather4",
        "tile::scatter4", "cta_group::1", "cta_group::2", "cp_mask"})
    if (d.mod(mode))
      return d.unsupported("'." + mode + "' of a bulk copy");
  d.mod("tile");
  bool hint = d.mod("L2::cache_hint");
  bool multicast = d.mod("multicast::cluster");
  bool complete = d.mod("mbarrier::complete_tx::bytes");
  bool group = d.mod("bulk_group");
  d.mod("noftz");
  StringRef to = d.take(), from = d.take();
  bool store = to == "global";
  bool fromShared = from == "shared::cta" && !store;
  if ((to != "global" && to != "shared::cluster" && to != "shared::cta") ||
      (from != "global" && from != "shared::cta"))
    return d.bad("expected state spaces of a bulk copy, got '." + to + "." +
                 from + "'");
  if (store == complete || store != group)
    return d.bad("expected .bulk_group of a store and "
                 ".mbarrier::complete_tx::bytes of a load");
  inst.flags = (store ? Store : 0) | (tensor ? Tensor : 0) |
               (multicast ? Multicast : 0) | (fromShared ? FromShared : 0) |
               (reduce ? Reduce : 0) | rank << RankShift;
  if (reduce) {
    if (!store && !fromShared)
      return d.bad("expected a reduction from shared memory");
    int op = -1;
    for (StringRef word : d.mods)
      if (parseAtomicOp(word) >= 0) {
        op = parseAtomicOp(word);
        d.mod(word);
      }
    if (op < 0)
      return d.bad("expected an operation of 'cp.reduce.async.bulk'");
    inst.aux = uint32_t(op);
    inst.ty = d.type();
    if (inst.ty == Ty::None && !tensor) // a tensor map has the type
      return d.bad("expected a type of 'cp.reduce.async.bulk'");
    if (store)
      d.host.function().usesGlobalSync = true;
  }
  size_t need = tensor ? (store ? 2 : 3) : (store ? 3 : 4);
  size_t extra = (multicast ? 1 : 0) + (hint ? 1 : 0);
  if (!d.expectOperands(need + extra))
    return;
  auto coordinates = [&](const POperand &op) {
    if (op.kind != POperand::Address || op.elements.size() != 2)
      return d.bad("expected [map, {coordinates}]");
    d.vector(op.elements[1], Ty::B32, false, rank);
  };
  if (!tensor) {
    d.address(d.operands[0]);
    d.address(d.operands[1]);
    d.src(d.operands[2], Ty::U32);
    if (!store)
      d.address(d.operands[3]);
  } else if (store) {
    d.address(d.operands[0]);
    d.address(d.operands[1]);
    coordinates(d.operands[0]);
  } else {
    d.address(d.operands[0]);
    d.address(d.operands[1]);
    d.address(d.operands[2]);
    coordinates(d.operands[1]);
  }
  if (multicast)
    d.src(d.operands[need], Ty::B16);
  inst.fn = bulkHandler;
  d.finishModifiers();
}

} // namespace emulator
} // namespace humming
