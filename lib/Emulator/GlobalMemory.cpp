//===- GlobalMemory.cpp - Global memory, its race detector, Memory -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks of different clusters are ordered only by what they say to each other
// through strong accesses (atomics, acquire and release, volatile) with fences:
//
//   st.global [p]; fence.acq_rel.gpu; atom.add [counter]     (writer)
//   atom.add [counter]; fence.acq_rel.gpu; ld.global [p]     (reader)
//
// The fence copies what the warp is ordered after into `global`; the atomic
// leaves `global` at the location; the reader's atomic picks it up as `pending`
// and its fence turns that into knowledge. Barriers of a block spread all three
// among its warps, so one thread may do the talking for its block.
//
//===----------------------------------------------------------------------===//

#include "Exec.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cstring>

using namespace llvm;

namespace humming {

using emulator::GlobalBuffer;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Memory::Memory() : implementation(std::make_unique<Impl>()) {}
Memory::~Memory() = default;
Memory::Memory(Memory &&) = default;
Memory &Memory::operator=(Memory &&) = default;

GlobalBuffer &Memory::Impl::create(StringRef name, uint64_t size) {
  auto b = std::make_unique<GlobalBuffer>();
  b->name = name.str();
  b->base = next;
  b->size = size;
  // The guard is larger than any displacement an off-by-one row can make.
  next = alignTo(next + size + (uint64_t(1) << 24), 256);
  buffers.push_back(std::move(b));
  return *buffers.back();
}

GlobalBuffer *Memory::Impl::at(uint64_t address) const {
  for (const auto &b : buffers)
    if (b->base == address)
      return b.get();
  return nullptr;
}

uint64_t Memory::add(StringRef name, ArrayRef<uint8_t> bytes) {
  GlobalBuffer &b = implementation->create(name, bytes.size());
  b.owned.assign(bytes.begin(), bytes.end());
  b.data = b.owned.data();
  return b.base;
}

uint64_t Memory::addFilled(StringRef name, uint64_t size, uint8_t fill) {
  GlobalBuffer &b = implementation->create(name, size);
  b.owned.assign(size, fill);
  b.data = b.owned.data();
  return b.base;
}

uint64_t Memory::addUninitialized(StringRef name, uint64_t size) {
  uint64_t address = addFilled(name, size, 0xCD);
  implementation->at(address)->init.assign(size, 0);
  return address;
}

uint64_t Memory::addExternal(StringRef name, MutableArrayRef<uint8_t> bytes) {
  GlobalBuffer &b = implementation->create(name, bytes.size());
  b.data = bytes.data();
  return b.base;
}

void Memory::setUninitialized(uint64_t address, uint64_t offset,
                              uint64_t size) {
  GlobalBuffer *b = implementation->at(address);
  if (!b || offset > b->size)
    return;
  if (b->init.empty())
    b->init.assign(b->size, 1);
  std::fill_n(b->init.begin() + offset, std::min(size, b->size - offset), 0);
}

void Memory::countReads(uint64_t address) {
  if (GlobalBuffer *b = implementation->at(address))
    b->reads = std::make_unique<std::atomic<uint32_t>[]>((b->size + 3) / 4);
}

std::pair<double, double> Memory::readCounts(uint64_t address) const {
  GlobalBuffer *b = implementation->at(address);
  if (!b || !b->reads || b->size == 0)
    return {0, 0};
  double least = 1e300, most = 0;
  for (uint64_t at = 0; at < b->size; at += 4) {
    double times =
        double(b->reads[at / 4]) / double(std::min<uint64_t>(4, b->size - at));
    least = std::min(least, times);
    most = std::max(most, times);
  }
  return {least, most};
}

void Memory::setReadOnly(uint64_t address) {
  if (GlobalBuffer *b = implementation->at(address))
    b->readOnly = true;
}

MutableArrayRef<uint8_t> Memory::bytes(uint64_t address) {
  GlobalBuffer *b = implementation->at(address);
  return b ? MutableArrayRef<uint8_t>(b->data, b->size)
           : MutableArrayRef<uint8_t>();
}

uint64_t Memory::firstUninitialized(uint64_t address) const {
  GlobalBuffer *b = implementation->at(address);
  if (!b)
    return 0;
  if (b->init.empty())
    return b->size;
  return uint64_t(std::find(b->init.begin(), b->init.end(), 0) -
                  b->init.begin());
}

uint64_t Memory::firstUninitialized(uint64_t address, uint64_t begin,
                                    uint64_t end) const {
  GlobalBuffer *b = implementation->at(address);
  if (!b || b->init.empty() || end > b->size || begin > end)
    return end;
  return uint64_t(std::find(b->init.begin() + begin, b->init.begin() + end, 0) -
                  b->init.begin());
}

bool Memory::isFullyInitialized(uint64_t address) const {
  GlobalBuffer *b = implementation->at(address);
  return b && firstUninitialized(address) == b->size;
}

std::string Memory::describe(uint64_t address) const {
  emulator::GlobalMemory memory;
  for (const auto &b : implementation->buffers)
    memory.buffers.push_back(b.get());
  return memory.describe(address);
}

namespace emulator {

//===----------------------------------------------------------------------===//
// Lookup
//===----------------------------------------------------------------------===//

GlobalBuffer *GlobalMemory::find(uint64_t address) const {
  auto it = std::upper_bound(
      buffers.begin(), buffers.end(), address,
      [](uint64_t a, const GlobalBuffer *b) { return a < b->base; });
  if (it == buffers.begin())
    return nullptr;
  GlobalBuffer *b = *std::prev(it);
  return address - b->base < b->size ? b : nullptr;
}

std::string GlobalMemory::describe(uint64_t address) const {
  if (GlobalBuffer *b = find(address))
    return b->name + "+" + std::to_string(address - b->base);
  // The nearest buffer tells which pointer ran away.
  const GlobalBuffer *best = nullptr;
  uint64_t distance = uint64_t(1) << 26;
  std::string text = "0x" + utohexstr(address);
  for (const GlobalBuffer *b : buffers) {
    uint64_t d =
        address < b->base ? b->base - address : address - (b->base + b->size);
    if (d < distance) {
      distance = d;
      best = b;
    }
  }
  if (best && address < best->base)
    text += " (" + std::to_string(distance) + " bytes before " + best->name +
            " of " + std::to_string(best->size) + " bytes)";
  else if (best)
    text += " (" + std::to_string(distance) + " bytes past the end of " +
            best->name + " of " + std::to_string(best->size) + " bytes)";
  return text;
}

uint8_t *resolveGlobal(Warp &w, uint64_t address, unsigned size, unsigned align,
                       unsigned lane, bool write, const char *what,
                       GlobalBuffer *&buffer) {
  GlobalBuffer *b = w.lastBuffer;
  if (!b || address - b->base >= b->size) {
    b = w.launch->memory->find(address);
    if (b)
      w.lastBuffer = b;
  }
  if (!b || address - b->base + size > b->size) {
    w.raise(EmulatorFault::OutOfBounds,
            Twine(what) + " of " + Twine(size) + " bytes at " +
                w.launch->memory->describe(address) + " is out of bounds" +
                (b ? " (" + Twine(b->size) + " bytes)" : Twine("")),
            int(lane));
    return nullptr;
  }
  if (address & (align - 1)) {
    w.raise(EmulatorFault::Misaligned,
            Twine(what) + " at " + w.launch->memory->describe(address) +
                " is not aligned to " + Twine(align) + " bytes",
            int(lane));
    return nullptr;
  }
  if (write && b->readOnly) {
    w.raise(EmulatorFault::OutOfBounds,
            Twine(what) + " to " + w.launch->memory->describe(address) +
                ", which is read-only",
            int(lane));
    return nullptr;
  }
  buffer = b;
  return b->data + (address - b->base);
}

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

static bool orderedBefore(const Warp &w, unsigned lane,
                          const GlobalCell::Touch &t) {
  if (t.cluster == w.cluster->index) {
    if (t.agent == w.clusterIdx)
      return t.lane == lane || t.clock < w.clock();
    return clockAt(w.sync.here, t.agent) >= t.clock;
  }
  auto it = w.sync.there.find(t.cluster);
  return it != w.sync.there.end() && clockAt(*it->second, t.agent) >= t.clock;
}

static bool raceFault(Warp &w, uint64_t address, unsigned lane, uint32_t atPc,
                      const Twine &message, const char *what,
                      const GlobalCell::Touch &t) {
  auto error = std::make_unique<EmulatorError>(
      EmulatorFault::Race,
      (message + " at " + w.launch->memory->describe(address)).str());
  error->site = w.site(int(lane), atPc);
  FaultSite other = w.site(int(t.lane), t.pc);
  const Launch &launch = *w.launch;
  const auto &cluster = launch.config->cluster;
  uint32_t rank = t.agent / launch.warpsPerBlock;
  other.warp = int32_t(t.agent % launch.warpsPerBlock);
  if (rank >= launch.blocksPerCluster) {
    other.warp = other.lane = -1; // an async copy
    rank = 0;
  }
  uint32_t c[3] = {t.cluster % launch.clusterGrid[0],
                   t.cluster / launch.clusterGrid[0] % launch.clusterGrid[1],
                   t.cluster / launch.clusterGrid[0] / launch.clusterGrid[1]};
  uint32_t inside[3] = {rank % cluster[0], rank / cluster[0] % cluster[1],
                        rank / cluster[0] / cluster[1]};
  for (unsigned d = 0; d < 3; ++d)
    other.block[d] = c[d] * cluster[d] + inside[d];
  error->notes.push_back({what, other});
  w.launch->report(w.cluster->index, std::move(error));
  w.worker->failed = true;
  w.signal = Warp::Abort;
  return false;
}

bool checkGlobal(Warp &w, GlobalBuffer &buffer, uint64_t address, unsigned size,
                 unsigned lane, bool write, bool strong, uint32_t atPc,
                 const void *newBytes) {
  if (buffer.readOnly && !write)
    return true;
  uint64_t offset = address - buffer.base;
  if (buffer.shadow.empty())
    buffer.shadow.resize(buffer.size / 4 / ShadowPageCells + 1);
  for (uint64_t at = offset; at < offset + size;) {
    uint64_t word = at / 4;
    uint64_t next = std::min(offset + size, (word + 1) * 4);
    uint8_t bytes = uint8_t(((1u << (next - at)) - 1) << (at % 4));
    auto &page = buffer.shadow[word / ShadowPageCells];
    if (!page)
      page = std::make_unique<GlobalBuffer::Page>();
    GlobalCell &c = (*page)[word % ShadowPageCells];

    if (c.write.cluster != GlobalCell::None && (c.write.bytes & bytes) &&
        !(strong && (c.write.flags & GlobalCell::Strong)) &&
        !orderedBefore(w, lane, c.write)) {
      bool same =
          write && newBytes &&
          !std::memcmp(static_cast<const char *>(newBytes) + (at - offset),
                       buffer.data + at, next - at);
      if (!same)
        return raceFault(w, address, lane, atPc,
                         Twine(write ? "write" : "read") +
                             " not ordered after a write",
                         "the write was here", c.write);
    }
    if (write)
      for (const GlobalCell::Touch &r : c.read)
        if (r.cluster != GlobalCell::None && (r.bytes & bytes) &&
            !(strong && (r.flags & GlobalCell::Strong)) &&
            !orderedBefore(w, lane, r)) {
          bool same =
              newBytes &&
              !std::memcmp(static_cast<const char *>(newBytes) + (at - offset),
                           buffer.data + at, next - at);
          if (!same)
            return raceFault(w, address, lane, atPc,
                             "write not ordered after a read",
                             "the read was here", r);
        }
    GlobalCell::Touch touch;
    touch.cluster = w.cluster->index;
    touch.clock = w.clock();
    touch.pc = atPc;
    touch.agent = uint16_t(w.clusterIdx);
    touch.lane = uint8_t(lane);
    touch.flags = strong ? GlobalCell::Strong : 0;
    touch.bytes = bytes;
    if (write) {
      c.write = touch;
      // A partial write leaves readers of the other bytes in place.
      for (GlobalCell::Touch &r : c.read)
        if (!(r.bytes & ~bytes))
          r.cluster = GlobalCell::None;
    } else {
      GlobalCell::Touch *slot = nullptr;
      for (GlobalCell::Touch &r : c.read)
        if (r.cluster == GlobalCell::None ||
            (r.cluster == touch.cluster && r.agent == touch.agent))
          slot = &r;
      if (!slot) {
        c.read[0] = c.read[1];
        slot = &c.read[1];
      }
      *slot = touch;
    }
    at = next;
  }
  return true;
}

namespace {
/// Several workers share a buffer's shadow.
struct ShadowGuard {
  std::mutex *lock;
  ShadowGuard(Warp &w, GlobalBuffer &b)
      : lock(w.launch->singleThread ? nullptr : &b.lock) {
    if (lock)
      lock->lock();
  }
  ~ShadowGuard() {
    if (lock)
      lock->unlock();
  }
};
} // namespace

bool readGlobal(Warp &w, uint64_t address, unsigned size, unsigned lane,
                void *data, bool strong) {
  GlobalBuffer *b;
  uint8_t *p = resolveGlobal(w, address, size, size, lane, false, "read", b);
  if (!p)
    return false;
  const LaunchChecks &checks = w.launch->config->checks;
  bool races = checks.races && !b->readOnly;
  bool init = checks.uninitialized && !b->init.empty();
  if (races || init) {
    ShadowGuard guard(w, *b);
    if (races && !checkGlobal(w, *b, address, size, lane, false, strong, w.pc))
      return false;
    if (init && std::memchr(b->init.data() + (address - b->base), 0, size)) {
      w.raise(EmulatorFault::Uninitialized,
              "read of " + Twine(size) + " bytes at " +
                  w.launch->memory->describe(address) +
                  " that nothing has written",
              int(lane));
      return false;
    }
  }
  b->countRead(address, size);
  std::memcpy(data, p, size);
  return true;
}

bool writeGlobal(Warp &w, uint64_t address, unsigned size, unsigned lane,
                 const void *data, bool strong) {
  GlobalBuffer *b;
  uint8_t *p = resolveGlobal(w, address, size, size, lane, true, "write", b);
  if (!p)
    return false;
  if (w.launch->config->checks.races || !b->init.empty()) {
    ShadowGuard guard(w, *b);
    if (w.launch->config->checks.races &&
        !checkGlobal(w, *b, address, size, lane, true, strong, w.pc, data))
      return false;
    if (!b->init.empty())
      std::memset(b->init.data() + (address - b->base), 1, size);
  }
  std::memcpy(p, data, size);
  return true;
}

void countGlobal(Warp &w, uint32_t pc, const uint64_t *addresses, uint32_t mask,
                 unsigned size) {
  PcMemory &m = w.worker->memory[pc];
  m.bytes += uint64_t(size) * llvm::popcount(mask);
  // Different 32-byte sectors of the warp.
  uint64_t sectors[64];
  unsigned n = 0;
  forLanes(mask, [&](unsigned l) {
    uint64_t first = addresses[l] / 32, last = (addresses[l] + size - 1) / 32;
    for (uint64_t s = first; s <= last; ++s) {
      if (n && sectors[n - 1] == s)
        continue;
      if (n < 64)
        sectors[n++] = s;
    }
  });
  bool sorted = std::is_sorted(sectors, sectors + n);
  if (!sorted)
    std::sort(sectors, sectors + n);
  m.sectors += uint64_t(std::unique(sectors, sectors + n) - sectors);
}

//===----------------------------------------------------------------------===//
// Acquire and release
//===----------------------------------------------------------------------===//

uint64_t sharedLocation(const Block &b, uint32_t address) {
  return SharedWindow + (uint64_t(b.rank + 1) << 24) + address;
}

static Releases &releasesOf(Warp &w, uint64_t location) {
  return location >= SharedWindow ? w.cluster->releases : w.launch->releases;
}

/// What others say of the own cluster belongs into `here`.
static void absorbOwn(Warp &w, Knowledge &k) {
  auto own = k.there.find(w.cluster->index);
  if (own == k.there.end())
    return;
  joinClock(k.here, *own->second);
  k.there.erase(own);
}

void acquirePending(Warp &w) {
  if (w.pending.here.empty() && w.pending.there.empty())
    return;
  w.sync.join(w.pending);
  w.pending = Knowledge();
}

void acquireFrom(Warp &w, uint64_t location, bool acquire) {
  if (!w.launch->config->checks.races)
    return;
  auto &releases = releasesOf(w, location);
  auto it = releases.find(location);
  if (it == releases.end() ||
      (it->second.second.there.empty() && it->second.second.here.empty()))
    return;
  Knowledge offer = it->second.second;
  if (it->second.first != w.cluster->index)
    offer.here.clear(); // agents of another cluster
  absorbOwn(w, offer);
  if (acquire)
    w.sync.join(offer);
  else
    w.pending.join(offer);
}

void releaseTo(Warp &w, uint64_t location, bool release, bool isRmw) {
  if (!w.launch->config->checks.races)
    return;
  auto &releases = releasesOf(w, location);
  bool nothing = !release && w.fenced.here.empty() && w.global.there.empty();
  if (nothing) {
    if (!isRmw)
      releases.erase(location);
    return;
  }
  if (release) {
    w.fenced.join(w.sync);
    w.global.join(w.sync);
  }
  // What the own cluster knows of itself travels under the cluster's index;
  // what was fenced for the block only stays in `here`, for the own cluster.
  Knowledge offer;
  offer.there = w.global.there;
  if (!w.global.here.empty())
    offer.there[w.cluster->index] = std::make_shared<Clock>(w.global.here);
  offer.here = w.fenced.here;
  auto &at = releases[location];
  if (!isRmw)
    at.second = Knowledge();
  if (at.first != w.cluster->index)
    at.second.here.clear();
  at.first = w.cluster->index;
  at.second.join(offer);
  if (release)
    w.tick();
}

} // namespace emulator
} // namespace humming
