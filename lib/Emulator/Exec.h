//===- Exec.h - State of a launch -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch is split over workers (host threads); a worker runs clusters of
// blocks, a cluster is scheduled as one: its warps are run one at a time, in an
// order drawn from the seed, and switch at memory and synchronisation
// instructions.
//
// Divergence. The lanes of a warp that are at one place are a Path. A divergent
// branch turns the path into a join node at the branch's immediate
// post-dominator and gives it a child per side; a child that reaches the join
// hands its lanes over and dies. Children are run in any order and may block
// on their own (one lane waits on an mbarrier while others go on), so forward
// progress inside a warp is as on sm_70 and later.
//
// Ordering. Every warp has a Knowledge: for each agent of its cluster the last
// clock value it is ordered after. An access by agent a at clock c is ordered
// before me if my knowledge of a is at least c. Barriers, mbarriers and
// release/acquire pairs join knowledges; nothing else does. Agents are the
// warps, and one per mbarrier: bytes that an async copy writes belong to the
// mbarrier's agent at the number of the phase that completes it, so whoever
// waited for that phase may read them and nobody else.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_EMULATOR_EXEC_H
#define HUMMING_LIB_EMULATOR_EXEC_H

#include "Humming/Emulator/Emulator.h"
#include "IR.h"
#include "MemoryImpl.h"
#include "llvm/ADT/bit.h"
#include <atomic>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>

// A full-warp loop that the compiler cannot vectorise is just a loop.
#pragma clang diagnostic ignored "-Wpass-failed"

namespace humming {
namespace emulator {

struct Block;
struct Cluster;
struct Worker;
struct Launch;

constexpr uint32_t NoPc = 0xFFFFFFFF;
/// Inst::flags of bulk copies from shared to global memory.
constexpr uint32_t BulkStoreFlag = 1;

/// splitmix64.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  uint32_t below(uint32_t n) { return uint32_t((next() >> 32) * n >> 32); }
  bool oneIn(uint32_t n) { return below(n) == 0; }

private:
  uint64_t state;
};

using Clock = std::vector<uint32_t>;
inline uint32_t clockAt(const Clock &c, uint32_t agent) {
  return agent < c.size() ? c[agent] : 0;
}
void joinClock(Clock &to, const Clock &from);

struct Knowledge {
  Clock here; ///< agents of the own cluster
  std::map<uint32_t, std::shared_ptr<const Clock>> there; ///< other clusters
  void join(const Knowledge &other);
};

/// What the last strong writes at a location offer: the cluster whose agents
/// `here` means, and the knowledge.
using Releases = std::map<uint64_t, std::pair<uint32_t, Knowledge>>;

/// All that a warp is ordered after, by the strength of the ordering.
struct Orders {
  Knowledge sync;    ///< ordered before the warp
  Knowledge fenced;  ///< published by a fence of any scope
  Knowledge global;  ///< published to the device by a fence
  Knowledge proxy;   ///< published to the async proxy by a proxy fence
  Knowledge pending; ///< read from strong loads, not yet acquired by a fence
  void join(const Orders &other) {
    sync.join(other.sync);
    fenced.join(other.fenced);
    global.join(other.global);
    proxy.join(other.proxy);
    pending.join(other.pending);
  }
};

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Who touched a 4-byte word last (or one byte of it, in a split cell).
struct SharedCell {
  enum : uint8_t {
    InFlight = 1, ///< target of an async copy nobody has waited for
    Atomic = 2,   ///< last write was atomic
    Async = 4,    ///< last write was by the async proxy
    Split = 8,    ///< wClock is the index of four byte cells
    Mbarrier = 16,
  };
  static constexpr uint16_t None = 0xFFFF, Many = 0xFFFE;
  uint32_t wClock = 0, rClock = 0, wPc = 0, rPc = 0;
  uint16_t wAgent = None, rAgent = None; ///< Many: rClock indexes `readers`
  uint8_t wLane = 0, rLane = 0;
  uint8_t pinned = 0; ///< async reads in flight
  uint8_t flags = 0;
};

struct Reader {
  uint16_t agent;
  uint8_t lane;
  uint32_t clock, pc;
};

struct SharedMemory {
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> init; ///< per byte, 1: written
  std::vector<SharedCell> cells;
  std::vector<std::array<SharedCell, 4>> splits;
  std::vector<llvm::SmallVector<Reader, 8>> readers;
  std::vector<uint32_t> freeReaders;
  bool anyPinned = false;
};

/// One access, for the checks.
struct Access {
  uint16_t agent;
  uint8_t lane;
  uint32_t clock;
  uint32_t pc;
  bool write, atomic = false, async = false;
  const Clock *known = nullptr; ///< ordering of the accessor
  const Clock *proxyKnown =
      nullptr;       ///< for async accesses: after a proxy fence
  int32_t warp = -1; ///< for messages
};

//===----------------------------------------------------------------------===//
// Synchronisation objects
//===----------------------------------------------------------------------===//

struct PathRef {
  uint32_t warp; ///< in the cluster
  uint32_t path;
};

/// bar.red of a waiting path.
struct BarrierResult {
  uint8_t op = 0; ///< 0 none, 1 popc, 2 and, 3 or
  uint32_t dst = 0;
  uint32_t frame = 0;
};

struct NamedBarrier {
  uint32_t arrived = 0;  ///< threads
  uint32_t expected = 0; ///< 0: all threads that have not exited
  bool counted = false;  ///< a thread count was given
  uint32_t predCount = 0, predThreads = 0;
  std::vector<PathRef> waiting;
  std::vector<BarrierResult> results;
  Orders orders; ///< of the arrived
  uint32_t pc = 0;
};

struct Mbarrier {
  uint32_t agent = 0;
  uint32_t phase = 0; ///< current, incomplete phase
  uint32_t expected = 0, pending = 0;
  int64_t tx = 0;
  Orders arriving, released; ///< of the current and of completed phases
  uint32_t initPc = 0;
  uint8_t initLane = 0;
  uint16_t initAgent = 0;
  uint32_t initClock = 0;
};

/// cp.async of one warp instruction.
struct AsyncCopy {
  uint32_t pc;
  uint32_t mask; ///< lanes that have not been waited for
  uint8_t bytes;
  bool landed = false;
  uint32_t seq = 0; ///< number in the warp
  uint32_t group[32];
  uint32_t dst[32]; ///< own block
  uint64_t src[32];
  uint8_t srcBytes[32];
};

/// An operation of the async proxy, or a deferred arrival.
struct AsyncEvent {
  enum Kind : uint8_t {
    BulkLoad,
    BulkStore,
    CopyArrive,
    SharedUpdate, ///< st.async, red.async, cp.reduce.async.bulk to shared
  } kind = BulkLoad;
  uint32_t warp = 0; ///< in the cluster
  uint8_t lane = 0;
  uint32_t pc = 0;
  /// A run of bytes to move.
  struct Chunk {
    uint32_t block = 0; ///< rank of the block whose shared memory it is
    uint32_t shared = 0;
    uint32_t bytes = 0;
    uint64_t global = 0;
    bool inBounds = true;    ///< false: fill (load) or skip (store)
    bool fromShared = false; ///< load from the issuer's shared memory, offset
                             ///< in `global`
  };
  std::vector<Chunk> chunks;
  uint64_t fill = 0;
  bool tensor = false;
  uint8_t element = 0; ///< TensorElement
  struct Signal {
    uint32_t rank, address, bytes;
  };
  std::vector<Signal> mbarriers;
  uint32_t group = 0;      ///< BulkStore: bulk group of the lane
  bool sourceRead = false; ///< BulkStore: `data` holds the source
  std::vector<uint8_t> data;
  int32_t reduce = -1;     ///< BulkStore, SharedUpdate: AtomicOp, or -1
  Ty ty = Ty::None;        ///< of the reduction
  uint32_t lanes = 0;      ///< CopyArrive
  uint32_t seq = 0;        ///< CopyArrive: copies before this number
  bool asyncProxy = true;  ///< SharedUpdate: of the async proxy
  uint32_t clock = 0;      ///< SharedUpdate: of the issue, and what it was
  Clock known, proxyKnown; ///< ordered after
};

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

struct Path {
  enum State : uint8_t { Dead, Ready, Joining, Blocked };
  enum WaitKind : uint8_t {
    NoWait,
    WaitBarrier,
    WaitCluster,
    WaitWarp,
    WaitMbarrier,
    WaitWgmma,
    WaitGlobal, ///< a spin loop on memory; stays Ready
  };
  uint32_t pc = 0, mask = 0, rpc = NoPc;
  int32_t parent = -1;
  uint32_t arrived = 0;
  uint16_t children = 0;
  State state = Dead;
  bool isCall = false;
  WaitKind wait = NoWait;
  uint32_t waitId = 0;  ///< barrier, mbarrier offset, member mask
  uint32_t waitAux = 0; ///< rank << 1 | parity
  uint32_t callPc = 0;
  const Function *fn = nullptr;
};

struct WgmmaOp; // ExecWgmma.cpp

class Warp : public Orders {
public:
  enum Signal : uint8_t {
    Continue,
    Block,    ///< the path waits; it goes on after this instruction
    Retry,    ///< the path waits; it executes this instruction again
    YieldNow, ///< let others run
    Abort,    ///< a fault was raised
  };

  Worker *worker = nullptr;
  Launch *launch = nullptr;
  Cluster *cluster = nullptr;
  struct Block *block = nullptr;
  uint32_t index = 0;      ///< in the block
  uint32_t clusterIdx = 0; ///< in the cluster: the agent number

  // The current path, cached.
  uint8_t *banks[2] = {nullptr, nullptr}; ///< registers of the frame, constants
  uint32_t *preds = nullptr;
  uint32_t pc = 0, active = 0;
  uint32_t currentPath = 0;
  Signal signal = Continue;

  std::vector<Path> paths;
  std::vector<uint32_t> freePaths;
  uint32_t alive = 0, launched = 0; ///< lanes
  uint32_t liveCount = 0;           ///< paths that are not dead

  std::vector<uint8_t> registers;
  std::vector<uint32_t> predicates;
  std::vector<uint8_t> local;     ///< [lane][localTotal]
  std::vector<uint8_t> localInit; ///< per byte
  std::vector<uint8_t> callArea;  ///< [lane][callTotal]
  uint32_t clusterToken = 0;      ///< cluster barrier phase to wait for
  /// Published by fence.mbarrier_init: a relaxed arrival at the cluster's
  /// barrier releases it. (It stands for mbarriers alone; here all memory.)
  Knowledge initialised;
  uint32_t carry = 0; ///< condition code of add.cc, per lane
  uint32_t tid[3][32];

  uint32_t clock() const { return sync.here[clusterIdx]; }
  /// A release happened: later accesses are not ordered by it.
  void tick() { ++sync.here[clusterIdx]; }

  uint32_t copyGroup[32] = {}; ///< open cp.async group per lane
  std::vector<AsyncCopy> copies;
  uint32_t copySeq = 0;
  uint32_t bulkGroup[32] = {};
  std::vector<std::shared_ptr<WgmmaOp>> wgmmaOps; ///< issued, not retired
  uint32_t wgmmaIssued = 0, wgmmaGroups = 0, wgmmaRetired = 0;
  uint32_t wgmmaFence = 0;          ///< instruction number of the last fence
  std::vector<uint32_t> rowWritten; ///< per row: instruction number
  std::vector<uint8_t> rowInFlight; ///< 1 accumulator, 2 operand
  bool trackRows = false;
  uint32_t instructions = 0;
  GlobalBuffer *lastBuffer = nullptr;

  const Operand *ops(const Inst &inst) const;
  template <class T>
  T *row(Operand o) const {
    return reinterpret_cast<T *>(banks[o.ref >> 30] + size_t(o.row()) * 128);
  }
  uint32_t *pred(Operand o) const { return preds + o.row(); }

  /// Runs the warp until it blocks, ends or its quantum of memory and
  /// synchronisation instructions is used up.
  void run(uint32_t quantum);
  bool ready() const;
  bool done() const { return liveCount == 0; }
  uint32_t addPath(const Path &path);
  void killPath(uint32_t index);
  /// Makes the current path wait.
  void block_(Path::WaitKind kind, uint32_t id, uint32_t aux, Signal how);
  void wake(uint32_t path);
  /// For .sync instructions with a member mask: true when all members that are
  /// alive are here (the mask may then include lanes of other paths, whose
  /// rows are valid too); otherwise the path waits.
  bool convergeMembers(const Inst &inst, uint32_t members, uint32_t mask);
  /// For .aligned instructions. Raises a fault when lanes are missing.
  bool requireFull(const Inst &inst, uint32_t mask, const char *what);

  void raise(EmulatorFault fault, const llvm::Twine &message, int lane = -1);
  FaultSite site(int lane, uint32_t atPc) const;

private:
  bool load(uint32_t path);
  bool pickPath();
  void diverge(const Inst &inst, uint32_t taken);
  void branchIndexed(const Inst &inst, uint32_t mask);
  void call(const Inst &inst, uint32_t mask);
  bool callExternal(const Inst &inst, const CallInfo &info,
                    llvm::StringRef name, uint32_t mask);
  void finishCall(Path &path);
  void leave(uint32_t mask);
  void childGone(int32_t parent);
  void checkRows(const Inst &inst);
};

struct Block {
  Cluster *cluster = nullptr;
  uint32_t rank = 0;
  uint32_t ctaid[3] = {0, 0, 0};
  SharedMemory shared;
  NamedBarrier barriers[16];
  std::map<uint32_t, Mbarrier> mbarriers;
  std::vector<Warp *> warps;
  uint32_t threads = 0, exited = 0; ///< threads
  int64_t asyncBytes = 0;           ///< in flight
};

struct Cluster {
  Worker *worker = nullptr;
  Launch *launch = nullptr;
  uint32_t index = 0;
  uint32_t clusterid[3] = {0, 0, 0};
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<std::unique_ptr<Warp>> warps;
  uint32_t agents = 0;
  std::vector<AsyncEvent> events;
  uint32_t eventSeq = 0;
  // barrier.cluster
  uint32_t clusterArrived = 0; ///< threads
  uint32_t clusterPhase = 0;
  std::vector<PathRef> clusterWaiting;
  Orders clusterArriving, clusterReleased;
  Releases releases;                  ///< strong stores to shared memory
  std::vector<uint32_t> clusterLanes; ///< per warp: lanes that arrived
  uint64_t steps = 0;
  uint32_t starved = 0; ///< warp that is rarely picked, by seed
  uint32_t exitedThreads = 0, threads = 0;

  bool done() const;
};

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

struct PcCount {
  uint64_t issued = 0, lanes = 0;
};
/// Memory behaviour of one instruction.
struct PcMemory {
  uint64_t bytes = 0, sectors = 0, wavefronts = 0, ideal = 0;
  uint64_t flops = 0, padding = 0, divergent = 0;
  uint64_t inFlight = 0; ///< most async bytes of a block after an issue here
};

struct Worker {
  Launch *launch = nullptr;
  Random random{0};
  std::vector<PcCount> counts;
  std::vector<PcMemory> memory;
  std::vector<std::unique_ptr<Cluster>> resident;
  uint64_t executed = 0;     ///< warp instructions
  uint64_t lastProgress = 0; ///< `executed` at the last visible progress
  uint64_t spins = 0;        ///< strong loads and failed polls since then
  unsigned style = 0;        ///< of scheduling, from the seed
  bool failed = false;
  std::string printed;
  bool unwaitedCopies = false; ///< a thread ended with cp.async in flight
  void progress() {
    lastProgress = executed;
    spins = 0;
  }
  void run();

private:
  bool step(Cluster &cluster);
  bool settle();
};

struct Launch {
  const Module *module = nullptr;
  const Function *kernel = nullptr;
  const LaunchConfig *config = nullptr;
  std::vector<uint8_t> arguments;
  GlobalMemory *memory = nullptr;
  uint32_t sharedBytes = 0; ///< SharedBase + static + dynamic
  uint32_t warpsPerBlock = 0, blocksPerCluster = 1;
  uint32_t clusterGrid[3] = {1, 1, 1};
  uint32_t numClusters = 0;
  bool singleThread = true;
  std::atomic<uint32_t> nextCluster{0};
  std::atomic<bool> stop{false};
  std::mutex faultLock;
  llvm::Error fault = llvm::Error::success();
  uint32_t faultCluster = 0xFFFFFFFF;
  std::vector<std::unique_ptr<Worker>> workers;
  Releases releases; ///< strong stores to global memory
  std::vector<uint32_t> clusterOrder;

  void report(uint32_t cluster, std::unique_ptr<EmulatorError> error);
};

std::unique_ptr<Cluster> makeCluster(Launch &launch, Worker &worker,
                                     uint32_t index);

//===----------------------------------------------------------------------===//
// Services for handlers
//===----------------------------------------------------------------------===//

/// Calls f(lane) for the lanes of a mask.
template <class F>
inline void forLanes(uint32_t mask, F f) {
  while (mask) {
    unsigned lane = llvm::countr_zero(mask);
    mask &= mask - 1;
    f(lane);
  }
}

/// Like forLanes for bodies without side effects between lanes: a full warp is
/// one loop that vectorises.
template <class F>
inline void vectorLanes(uint32_t mask, F f) {
  if (mask == 0xFFFFFFFF) {
#pragma clang loop vectorize(assume_safety)
    for (unsigned lane = 0; lane < 32; ++lane)
      f(lane);
    return;
  }
  forLanes(mask, f);
}

/// The value of a row as an address or a 64-bit number.
inline uint64_t wideValue(const Warp &w, Operand o, unsigned lane) {
  return o.width() == Operand::W32 ? w.row<uint32_t>(o)[lane]
                                   : w.row<uint64_t>(o)[lane];
}

// Shared memory (SharedMemory.cpp). False: a fault was raised.
/// Resolves a shared address to the block that owns it and checks bounds.
Block *resolveShared(Warp &w, uint64_t address, unsigned size, unsigned align,
                     unsigned lane, const char *what);
bool readShared(Warp &w, Block &b, uint32_t address, unsigned size,
                unsigned lane, void *data, bool atomic = false);
bool writeShared(Warp &w, Block &b, uint32_t address, unsigned size,
                 unsigned lane, const void *data, bool atomic = false);
/// The checks alone; \p w is used for messages and may act for an async agent.
bool checkShared(Warp &w, Block &b, uint32_t address, unsigned size,
                 const Access &access, const void *newBytes = nullptr);
/// Marks the target of an async copy; clears it again with `on` false.
bool markInFlight(Warp &w, Block &b, uint32_t address, unsigned size,
                  unsigned lane, bool on, bool async = false);
/// Makes an async write's bytes those of an agent, without checks.
void assignShared(Block &b, uint32_t address, unsigned size, uint16_t agent,
                  uint32_t clock, uint8_t lane, uint32_t pc, bool async);
void pinShared(Block &b, uint32_t address, unsigned size, bool on);
Access warpAccess(Warp &w, unsigned lane, bool write);
void countShared(Warp &w, uint32_t pc, const uint32_t *addresses, uint32_t mask,
                 unsigned size, bool isStore);
/// Wavefronts of units that move whole 16-byte chunks, eight in a pass: wgmma
/// operands and bulk copies. \p chunks in the order they are moved.
void countChunks(Warp &w, uint32_t pc, llvm::ArrayRef<uint32_t> chunks);

// Global memory (GlobalAccess.cpp).
uint8_t *resolveGlobal(Warp &w, uint64_t address, unsigned size, unsigned align,
                       unsigned lane, bool write, const char *what,
                       GlobalBuffer *&buffer);
bool readGlobal(Warp &w, uint64_t address, unsigned size, unsigned lane,
                void *data, bool strong = false);
bool writeGlobal(Warp &w, uint64_t address, unsigned size, unsigned lane,
                 const void *data, bool strong = false);
bool checkGlobal(Warp &w, GlobalBuffer &buffer, uint64_t address, unsigned size,
                 unsigned lane, bool write, bool strong, uint32_t atPc,
                 const void *newBytes = nullptr);
void countGlobal(Warp &w, uint32_t pc, const uint64_t *addresses, uint32_t mask,
                 unsigned size);
/// A strong read or write at a location: moves knowledge (acquire/release).
/// Locations in shared memory are given in the shared window.
void acquireFrom(Warp &w, uint64_t location, bool acquire);
void releaseTo(Warp &w, uint64_t location, bool release, bool isRmw);
/// `pending` becomes knowledge.
void acquirePending(Warp &w);
/// The location of a shared address, for the two above.
uint64_t sharedLocation(const Block &b, uint32_t address);

// cp.async (ExecAsync.cpp), bulk copies (ExecBulk.cpp).
bool waitCopies(Warp &w, uint32_t lanes, uint32_t keepGroups, bool all);
/// Completes the copies issued before number \p upTo on behalf of an mbarrier.
bool landCopies(Warp &w, uint32_t lanes, uint32_t agent, uint32_t clock,
                uint32_t upTo);
bool runEvent(Cluster &cluster, size_t index);
bool finishSharedUpdate(Cluster &cluster, AsyncEvent &event);
/// Counts bytes that an async operation at the current instruction starts to
/// move in or out of \p b's shared memory.
void beginAsync(Warp &w, Block &b, uint64_t bytes);
/// What atom and red compute in global memory: \p op is an AtomicOp.
uint64_t applyAtomic(uint32_t op, Ty ty, uint64_t old, uint64_t value);
/// The AtomicOp of a modifier ("add", "min", ...), or -1.
int parseAtomicOp(llvm::StringRef word);
/// Lands something pending early, for seeds that want it.
void landSomething(Cluster &cluster);

// mbarriers (ExecMbarrier.cpp).
Mbarrier *findMbarrier(Warp &w, Block &b, uint32_t address, int lane,
                       const char *what);
bool arriveMbarrier(Warp &w, Block &b, uint32_t address, Mbarrier &m,
                    uint32_t count, int64_t txChange, const Orders &known);
void wakeMbarrier(Cluster &cluster, uint32_t rank, uint32_t address);

// Barriers (ExecSync.cpp): exited threads may complete one.
void threadsExited(Warp &w, uint32_t lanes);
std::unique_ptr<EmulatorError> describeDeadlock(Cluster &cluster,
                                                const char *why);

// Handlers the parser needs.
void execReadSpecial(Warp &w, const Inst &inst, uint32_t mask);
void execUnsupported(Warp &w, const Inst &inst, uint32_t mask);

inline const Operand *Warp::ops(const Inst &inst) const {
  return launch->module->operands.data() + inst.opBegin;
}

} // namespace emulator
} // namespace humming

#endif // HUMMING_LIB_EMULATOR_EXEC_H
