//===- SharedMemory.cpp - Shared memory and its race detector -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every 4-byte word has a cell with its last writer and its readers since then
// (see Ordering in Exec.h). A cell that is accessed by halves or bytes splits
// into four. Example: warp 0 writes word 7 at its clock 1; both warps pass
// bar.sync, so each now knows 1 of the other and ticks to 2; warp 1 reads word
// 7: it knows warp 0 up to 1, which covers the write. Without the barrier warp
// 1 knows 0 of warp 0, and the read is a race.
//
//===----------------------------------------------------------------------===//

#include "Exec.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

using namespace llvm;

namespace humming {
namespace emulator {

/// A note that points at the other side of a fault.
static void noteOther(Warp &w, EmulatorError &error, const char *what,
                      uint16_t agent, uint8_t lane, uint32_t pc) {
  FaultSite site;
  if (agent < w.cluster->warps.size()) {
    site = w.cluster->warps[agent]->site(lane == 0xFF ? -1 : int(lane), pc);
  } else {
    site = w.site(-1, pc);
    site.warp = -1;
  }
  error.notes.push_back({what, site});
}

namespace {
struct Checker {
  Warp &w;
  Block &b;
  const Access &a;
  uint32_t address;
  unsigned size;
  const void *newBytes;

  bool fail(EmulatorFault fault, const Twine &message, const char *what,
            uint16_t agent, uint8_t lane, uint32_t pc) {
    auto error = std::make_unique<EmulatorError>(
        fault, (message + " at shared offset " + Twine(address - SharedBase) +
                " (" + Twine(size) + " bytes)")
                   .str());
    if (a.agent < w.cluster->warps.size()) {
      error->site = w.cluster->warps[a.agent]->site(a.lane, a.pc);
    } else {
      error->site = w.site(a.lane, a.pc);
    }
    noteOther(w, *error, what, agent, lane, pc);
    w.launch->report(w.cluster->index, std::move(error));
    w.worker->failed = true;
    w.signal = Warp::Abort;
    return false;
  }

  bool ordered(uint16_t agent, uint8_t lane, uint32_t clock) const {
    if (agent == a.agent)
      return lane == a.lane || clock < a.clock;
    return clockAt(*a.known, agent) >= clock;
  }

  bool check(SharedCell &c) {
    const LaunchChecks &checks = w.launch->config->checks;
    if (checks.asyncOrder && (c.flags & SharedCell::InFlight))
      return fail(EmulatorFault::AsyncInFlight,
                  Twine(a.write ? "write to" : "read of") +
                      " bytes that an async copy is still writing",
                  "the copy was issued here and not waited for since", c.wAgent,
                  c.wLane, c.wPc);
    if (c.flags & SharedCell::Mbarrier && !a.atomic)
      return fail(EmulatorFault::Mbarrier,
                  Twine(a.write ? "write to" : "read of") +
                      " an mbarrier object with a plain access",
                  "the mbarrier was initialised here", c.wAgent, c.wLane,
                  c.wPc);
    if (checks.asyncOrder && a.write && c.pinned)
      return fail(EmulatorFault::AsyncInFlight,
                  "write to bytes that an async operation still reads",
                  "the bytes were last read or written here", c.wAgent, c.wLane,
                  c.wPc);
    if (!checks.races)
      return true;
    if (c.wAgent != SharedCell::None) {
      bool bothAtomic = a.atomic && (c.flags & SharedCell::Atomic);
      if (!bothAtomic && !ordered(c.wAgent, c.wLane, c.wClock)) {
        // Lanes of one store that agree on the value do no harm.
        bool sameValue =
            a.write && newBytes &&
            !std::memcmp(newBytes, b.shared.bytes.data() + address, size);
        if (!sameValue)
          return fail(EmulatorFault::Race,
                      Twine(a.write ? "write" : "read") +
                          (a.async ? " by an async operation" : "") +
                          " not ordered after a write",
                      "the write was here", c.wAgent, c.wLane, c.wPc);
      }
      if (checks.proxyFences && a.async && !(c.flags & SharedCell::Async) &&
          a.proxyKnown && clockAt(*a.proxyKnown, c.wAgent) < c.wClock)
        return fail(EmulatorFault::ProxyFence,
                    "async proxy access to bytes written through the generic "
                    "proxy without fence.proxy.async in between",
                    "the write was here", c.wAgent, c.wLane, c.wPc);
    }
    if (!a.write)
      return true;
    if (c.rAgent == SharedCell::Many) {
      for (const Reader &r : b.shared.readers[c.rClock])
        if (!ordered(r.agent, r.lane, r.clock))
          return failReader(r.agent, r.lane, r.pc);
    } else if (c.rAgent != SharedCell::None &&
               !ordered(c.rAgent, c.rLane, c.rClock)) {
      return failReader(c.rAgent, c.rLane, c.rPc);
    }
    return true;
  }

  bool failReader(uint16_t agent, uint8_t lane, uint32_t pc) {
    // A store and a load of the same value cannot be told apart.
    if (newBytes &&
        !std::memcmp(newBytes, b.shared.bytes.data() + address, size) &&
        agent == a.agent)
      return true;
    return fail(EmulatorFault::Race,
                Twine("write") + (a.async ? " by an async operation" : "") +
                    " not ordered after a read",
                "the read was here", agent, lane, pc);
  }

  void update(SharedCell &c) {
    SharedMemory &s = b.shared;
    if (a.write) {
      if (c.rAgent == SharedCell::Many)
        s.freeReaders.push_back(c.rClock);
      c.rAgent = SharedCell::None;
      c.wAgent = a.agent;
      c.wLane = a.lane;
      c.wClock = a.clock;
      c.wPc = a.pc;
      c.flags = uint8_t((c.flags & (SharedCell::Mbarrier)) |
                        (a.atomic ? SharedCell::Atomic : 0) |
                        (a.async ? SharedCell::Async : 0));
      return;
    }
    if (a.atomic)
      return; // polling reads conflict with nothing that is kept
    if (c.rAgent == SharedCell::Many) {
      for (Reader &r : s.readers[c.rClock])
        if (r.agent == a.agent) {
          if (r.lane != a.lane && r.clock == a.clock)
            r.lane = 0xFF;
          else
            r.lane = a.lane;
          r.clock = a.clock;
          r.pc = a.pc;
          return;
        }
      s.readers[c.rClock].push_back({a.agent, a.lane, a.clock, a.pc});
      return;
    }
    if (c.rAgent == a.agent) {
      c.rLane = c.rClock == a.clock && c.rLane != a.lane ? 0xFF : a.lane;
    } else if (c.rAgent != SharedCell::None &&
               clockAt(*a.known, c.rAgent) < c.rClock) {
      uint32_t i;
      if (!s.freeReaders.empty()) {
        i = s.freeReaders.back();
        s.freeReaders.pop_back();
        s.readers[i].clear();
      } else {
        i = uint32_t(s.readers.size());
        s.readers.emplace_back();
      }
      s.readers[i].push_back({c.rAgent, c.rLane, c.rClock, c.rPc});
      s.readers[i].push_back({a.agent, a.lane, a.clock, a.pc});
      c.rAgent = SharedCell::Many;
      c.rClock = i;
      return;
    } else {
      c.rLane = a.lane;
    }
    c.rAgent = a.agent;
    c.rClock = a.clock;
    c.rPc = a.pc;
  }

  /// Calls f on every cell of the access; splits words that are cut.
  template <class F>
  bool each(F f) {
    SharedMemory &s = b.shared;
    uint32_t end = address + size;
    for (uint32_t at = address; at < end;) {
      SharedCell &c = s.cells[at / 4];
      bool whole = at % 4 == 0 && end - at >= 4;
      if (whole && !(c.flags & SharedCell::Split)) {
        if (!f(c))
          return false;
        at += 4;
        continue;
      }
      if (!(c.flags & SharedCell::Split)) {
        std::array<SharedCell, 4> parts;
        for (unsigned i = 0; i < 4; ++i) {
          parts[i] = c;
          if (c.rAgent == SharedCell::Many) {
            // Every part owns its list.
            uint32_t n = uint32_t(s.readers.size());
            auto copy = s.readers[c.rClock];
            s.readers.push_back(std::move(copy));
            parts[i].rClock = n;
          }
        }
        s.splits.push_back(parts);
        c.flags |= SharedCell::Split;
        c.wClock = uint32_t(s.splits.size() - 1);
      }
      uint32_t index = c.wClock, wordEnd = std::min(end, (at / 4 + 1) * 4);
      for (; at < wordEnd; ++at)
        if (!f(s.splits[index][at % 4]))
          return false;
    }
    return true;
  }
};
} // namespace

Access warpAccess(Warp &w, unsigned lane, bool write) {
  Access a;
  a.agent = uint16_t(w.clusterIdx);
  a.lane = uint8_t(lane);
  a.clock = w.clock();
  a.pc = w.pc;
  a.write = write;
  a.known = &w.sync.here;
  a.proxyKnown = &w.proxy.here;
  return a;
}

Block *resolveShared(Warp &w, uint64_t address, unsigned size, unsigned align,
                     unsigned lane, const char *what) {
  uint64_t plain = address >= SharedWindow ? address - SharedWindow : address;
  uint64_t rank = plain >> 24, offset = plain & 0xFFFFFF;
  Block *b = rank == 0 ? w.block
             : rank <= w.cluster->blocks.size()
                 ? w.cluster->blocks[rank - 1].get()
                 : nullptr;
  if (!b || offset < SharedBase || offset + size > w.launch->sharedBytes) {
    int64_t at = int64_t(offset) - SharedBase;
    w.raise(EmulatorFault::OutOfBounds,
            Twine(what) + " of " + Twine(size) + " bytes at shared offset " +
                Twine(at) + " is out of bounds: the block has " +
                Twine(w.launch->sharedBytes - SharedBase) +
                " bytes of shared memory",
            int(lane));
    return nullptr;
  }
  if (b != w.block && b->exited == b->threads) {
    w.raise(EmulatorFault::OutOfBounds,
            Twine(what) + " of the shared memory of block " + Twine(b->rank) +
                " of the cluster, which has exited",
            int(lane));
    return nullptr;
  }
  if (offset & (align - 1)) {
    w.raise(EmulatorFault::Misaligned,
            Twine(what) + " at shared offset " + Twine(offset - SharedBase) +
                " is not aligned to " + Twine(align) + " bytes",
            int(lane));
    return nullptr;
  }
  return b;
}

bool checkShared(Warp &w, Block &b, uint32_t address, unsigned size,
                 const Access &access, const void *newBytes) {
  if (b.shared.cells.empty())
    return true;
  Checker checker{w, b, access, address, size, newBytes};
  return checker.each([&](SharedCell &c) {
    if (!checker.check(c))
      return false;
    checker.update(c);
    return true;
  });
}

bool readShared(Warp &w, Block &b, uint32_t address, unsigned size,
                unsigned lane, void *data, bool atomic) {
  SharedMemory &s = b.shared;
  if (!s.cells.empty()) {
    Access a = warpAccess(w, lane, false);
    a.atomic = atomic;
    if (!checkShared(w, b, address, size, a))
      return false;
  }
  if (!s.init.empty() && std::memchr(s.init.data() + address, 0, size)) {
    w.raise(EmulatorFault::Uninitialized,
            "read of " + Twine(size) + " bytes at shared offset " +
                Twine(address - SharedBase) + " that nothing has written",
            int(lane));
    return false;
  }
  std::memcpy(data, s.bytes.data() + address, size);
  return true;
}

bool writeShared(Warp &w, Block &b, uint32_t address, unsigned size,
                 unsigned lane, const void *data, bool atomic) {
  SharedMemory &s = b.shared;
  if (!s.cells.empty()) {
    Access a = warpAccess(w, lane, true);
    a.atomic = atomic;
    if (!checkShared(w, b, address, size, a, data))
      return false;
  }
  if (!s.init.empty())
    std::memset(s.init.data() + address, 1, size);
  std::memcpy(s.bytes.data() + address, data, size);
  return true;
}

bool markInFlight(Warp &w, Block &b, uint32_t address, unsigned size,
                  unsigned lane, bool on, bool async) {
  if (b.shared.cells.empty())
    return true;
  Access a = warpAccess(w, lane, true);
  a.async = async;
  Checker checker{w, b, a, address, size, nullptr};
  return checker.each([&](SharedCell &c) {
    if (!on) {
      c.flags &= ~SharedCell::InFlight;
      return true;
    }
    if (!checker.check(c))
      return false;
    checker.update(c);
    c.flags |= SharedCell::InFlight;
    return true;
  });
}

void assignShared(Block &b, uint32_t address, unsigned size, uint16_t agent,
                  uint32_t clock, uint8_t lane, uint32_t pc, bool async) {
  SharedMemory &s = b.shared;
  if (s.cells.empty())
    return;
  auto set = [&](SharedCell &c) {
    c.wAgent = agent;
    c.wClock = clock;
    c.wLane = lane;
    c.wPc = pc;
    c.flags &= uint8_t(~SharedCell::InFlight);
    if (async)
      c.flags |= SharedCell::Async;
  };
  for (uint32_t at = address; at < address + size; ++at) {
    SharedCell &c = s.cells[at / 4];
    if (c.flags & SharedCell::Split)
      set(s.splits[c.wClock][at % 4]);
    else
      set(c);
  }
}

void pinShared(Block &b, uint32_t address, unsigned size, bool on) {
  SharedMemory &s = b.shared;
  if (s.cells.empty())
    return;
  for (uint32_t at = address & ~3u; at < address + size; at += 4) {
    SharedCell &c = s.cells[at / 4];
    if (c.flags & SharedCell::Split) {
      for (SharedCell &part : s.splits[c.wClock])
        part.pinned = uint8_t(part.pinned + (on ? 1 : -1));
    } else {
      c.pinned = uint8_t(c.pinned + (on ? 1 : -1));
    }
  }
}

void countShared(Warp &w, uint32_t pc, const uint32_t *addresses, uint32_t mask,
                 unsigned size, bool isStore) {
  PcMemory &m = w.worker->memory[pc];
  m.bytes += uint64_t(size) * llvm::popcount(mask);
  // A pass moves at most 128 bytes: 32 lanes of up to 4 bytes, 16 of 8, 8 of
  // 16. In a pass, lanes that touch different words of one bank take turns.
  unsigned lanes = size <= 4 ? 32 : size == 8 ? 16 : 8;
  for (unsigned first = 0; first < 32; first += lanes) {
    uint32_t group = mask >> first & (lanes == 32 ? ~0u : (1u << lanes) - 1);
    if (!group)
      continue;
    uint32_t words[32][32];
    uint8_t count[32] = {};
    unsigned worst = 1;
    forLanes(group, [&](unsigned l) {
      // At most 32 words a pass, so a bank never sees more than 32.
      uint32_t begin = addresses[first + l] / 4,
               end = (addresses[first + l] + size - 1) / 4;
      for (uint32_t word = begin; word <= end; ++word) {
        unsigned bank = word % 32, n = count[bank];
        bool seen = false;
        for (unsigned i = 0; i < n; ++i)
          seen |= words[bank][i] == word;
        if (seen)
          continue;
        words[bank][n] = word;
        count[bank] = uint8_t(n + 1);
        worst = std::max(worst, n + 1);
      }
    });
    m.wavefronts += worst;
    m.ideal += 1;
  }
}

void countChunks(Warp &w, uint32_t pc, ArrayRef<uint32_t> chunks) {
  PcMemory &m = w.worker->memory[pc];
  for (size_t first = 0; first < chunks.size(); first += 8) {
    // A chunk takes four banks; chunks of one place take turns, equal ones are
    // read once.
    uint32_t seen[8][8];
    unsigned count[8] = {}, worst = 1;
    for (uint32_t address : chunks.slice(first).take_front(8)) {
      unsigned place = address / 16 % 8, n = count[place];
      if (llvm::is_contained(ArrayRef<uint32_t>(seen[place], n), address / 16))
        continue;
      seen[place][n] = address / 16;
      worst = std::max(worst, ++count[place]);
    }
    m.wavefronts += worst;
    m.ideal += 1;
  }
}

void beginAsync(Warp &w, Block &b, uint64_t bytes) {
  b.asyncBytes += int64_t(bytes);
  PcMemory &m = w.worker->memory[w.pc];
  m.inFlight = std::max(m.inFlight, uint64_t(b.asyncBytes));
}

} // namespace emulator
} // namespace humming
