//===- Emulator.h - Execute PTX on the CPU ----------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The emulator takes PTX text, checks every access and every synchronisation
// of a launch, and counts what costs time on hardware. A launch with a fault
// returns an EmulatorError; a launch without returns counters.
//
//   auto program = Program::parse(ptxText);
//   Memory memory;
//   uint64_t x = memory.add("x", xBytes);          // copied in
//   uint64_t y = memory.addUninitialized("y", 4096);
//   ArgumentPacker args;  args.pointer(x).pointer(y).i32(n);
//   LaunchConfig config;  config.grid = {4, 1, 1};  config.block = {128, 1, 1};
//   auto report = program->launch("kernel", config, args.bytes(), memory);
//   memory.bytes(y) -> the result
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_EMULATOR_EMULATOR_H
#define HUMMING_EMULATOR_EMULATOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace humming {

/// What a launch found wrong.
enum class EmulatorFault : uint8_t {
  Syntax,             ///< malformed PTX text
  Unsupported,        ///< an instruction or form that is not emulated
  LaunchConfig,       ///< grid, block, shared memory or arguments do not fit
  OutOfBounds,        ///< address in no buffer, or past the end of one
  Misaligned,         ///< address not a multiple of the access size
  Uninitialized,      ///< read of bytes that nothing has written
  Race,               ///< two accesses, one a write, that nothing orders
  AsyncInFlight,      ///< access to bytes or registers of an unfinished copy
  ProxyFence,         ///< generic write read by the async proxy, no proxy fence
  BarrierDivergence,  ///< part of a warp, or an illegal thread count
  Deadlock,           ///< nothing can make progress
  Mbarrier,           ///< misuse of an mbarrier object
  Descriptor,         ///< illegal wgmma descriptor or tensor map
  IllegalInstruction, ///< operands that the ISA forbids, trap, assertion
  Limit,              ///< the instruction limit of the launch was reached
};
llvm::StringRef toString(EmulatorFault fault);

/// One side of a fault.
struct FaultSite {
  std::string kernel;
  std::array<uint32_t, 3> block = {};
  int32_t warp = -1;      ///< -1: not in a warp
  int32_t lane = -1;      ///< -1: the whole warp
  uint32_t ptxLine = 0;   ///< from 1; 0: unknown
  std::string ptxText;    ///< that line, trimmed
  std::string sourceFile; ///< from .loc, empty without
  uint32_t sourceLine = 0;
};

class EmulatorError : public llvm::ErrorInfo<EmulatorError> {
public:
  static char ID;
  EmulatorFault fault;
  std::string message; ///< lower case, without the sites
  FaultSite site;
  std::vector<std::pair<std::string, FaultSite>> notes; ///< the other sides

  EmulatorError(EmulatorFault fault, std::string message)
      : fault(fault), message(std::move(message)) {}
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }
};

/// Device memory: buffers with a guard of unmapped addresses between them.
/// Addresses are 256-byte aligned and never reused. Not thread-safe; a launch
/// has it for itself while it runs.
class Memory {
public:
  Memory();
  ~Memory();
  Memory(Memory &&);
  Memory &operator=(Memory &&);

  /// Copies \p bytes in. Returns the device address.
  uint64_t add(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes);
  /// A buffer of \p size bytes filled with \p fill (initialised).
  uint64_t addFilled(llvm::StringRef name, uint64_t size, uint8_t fill);
  /// A buffer whose bytes are unwritten: reading one before a kernel writes it
  /// is a fault. The bytes hold 0xCD.
  uint64_t addUninitialized(llvm::StringRef name, uint64_t size);
  /// A buffer over the caller's bytes, which must outlive this object.
  uint64_t addExternal(llvm::StringRef name,
                       llvm::MutableArrayRef<uint8_t> bytes);
  /// Makes \p size bytes from \p offset of the buffer at \p address count as
  /// unwritten, whatever they hold.
  void setUninitialized(uint64_t address, uint64_t offset, uint64_t size);
  /// Counts from now on how often kernels read each word of the buffer.
  void countReads(uint64_t address);
  /// The least and the most times that a word of the buffer was read.
  std::pair<double, double> readCounts(uint64_t address) const;
  /// Makes kernel writes to the buffer a fault.
  void setReadOnly(uint64_t address);

  /// The bytes of the buffer that starts at \p address; empty if none does.
  llvm::MutableArrayRef<uint8_t> bytes(uint64_t address);
  /// True when every byte of the buffer was written.
  bool isFullyInitialized(uint64_t address) const;
  /// Offset of the first unwritten byte, or the size.
  uint64_t firstUninitialized(uint64_t address) const;
  /// The same within [\p begin, \p end), or \p end.
  uint64_t firstUninitialized(uint64_t address, uint64_t begin,
                              uint64_t end) const;
  /// "name+offset" of an address, for messages.
  std::string describe(uint64_t address) const;

  struct Impl;
  Impl &impl() { return *implementation; }

private:
  std::unique_ptr<Impl> implementation;
};

/// Lays out kernel arguments with natural alignment, in order.
class ArgumentPacker {
public:
  ArgumentPacker &pointer(uint64_t address) { return raw(&address, 8, 8); }
  ArgumentPacker &i32(int32_t value) { return raw(&value, 4, 4); }
  ArgumentPacker &i64(int64_t value) { return raw(&value, 8, 8); }
  ArgumentPacker &f32(float value) { return raw(&value, 4, 4); }
  ArgumentPacker &raw(const void *data, size_t size, size_t alignment);
  llvm::ArrayRef<uint8_t> bytes() const { return buffer; }

private:
  std::vector<uint8_t> buffer;
};

struct LaunchChecks {
  bool races = true;         ///< shared and global memory
  bool uninitialized = true; ///< shared, local and marked global memory
  bool asyncOrder = true;    ///< async copies land late; touches are faults
  bool proxyFences = true;
};

struct LaunchConfig {
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  /// {1, 1, 1} for a kernel with .reqnctapercluster: what that says.
  std::array<uint32_t, 3> cluster = {1, 1, 1};
  uint32_t dynamicSharedBytes = 0;
  uint32_t sharedLimit = 232448; ///< static + dynamic; sm_90's 227 KiB
  uint64_t seed = 0;             ///< schedule and landing order
  /// Host threads. Kernels whose blocks talk to each other (atomics, acquire
  /// or release, volatile, cluster) run on one, so that a seed fixes a result.
  unsigned threads = 1;
  /// Warp instructions of the whole launch after which it is given up.
  uint64_t instructionLimit = uint64_t(1) << 33;
  LaunchChecks checks;
};

/// Counts of a set of instructions. Memory counts are per warp instruction.
struct Counters {
  static constexpr unsigned NumClasses = 27;
  std::array<uint64_t, NumClasses> byClass = {}; ///< warp instructions
  uint64_t warpInstructions = 0;
  uint64_t laneInstructions = 0;                      ///< active lanes summed
  uint64_t globalLoadBytes = 0, globalStoreBytes = 0; ///< requested by lanes
  uint64_t globalLoadSectors = 0, globalStoreSectors = 0; ///< 32 bytes each
  /// Bytes of load instructions (async copies included) by bytes per lane:
  /// 1, 2, 4, 8, 16, 32.
  std::array<uint64_t, 6> globalLoadBytesByWidth = {};
  uint64_t sharedLoadBytes = 0, sharedStoreBytes = 0;
  /// Passes over the 32 banks, of wgmma operands and bulk copies too.
  uint64_t sharedWavefronts = 0;
  uint64_t sharedIdealWavefronts = 0;
  uint64_t bankConflicts = 0; ///< wavefronts - ideal wavefronts
  uint64_t asyncCopyBytes = 0, bulkBytes = 0;
  /// Of one block: bytes of cp.async, bulk copies and st.async issued and not
  /// landed (of stores: not read). Of a loop: after an issue in the loop.
  uint64_t maxAsyncBytesInFlight = 0;
  uint64_t mmaIssues = 0; ///< mma.sync and wgmma warp instructions
  uint64_t mmaFlops = 0;  ///< 2 * m * n * k each
  /// The part of these that multiplied an all-zero column of B, that is, what
  /// padded tokens cost (a zero column that is data counts as well).
  uint64_t mmaPaddingFlops = 0;
  uint64_t barriers = 0, atomics = 0, divergentBranches = 0;

  void add(const Counters &other);
  llvm::json::Object toJSON() const;
};
/// Name of class \p index of Counters::byClass ("integer", "global-load", ...).
llvm::StringRef instructionClassName(unsigned index);

struct LoopReport {
  std::string label;                    ///< the header's label, or empty
  uint32_t firstLine = 0, lastLine = 0; ///< PTX lines
  uint32_t depth = 1;
  uint64_t iterations = 0; ///< times a warp entered the header
  Counters counters;       ///< includes inner loops
};

struct Report {
  std::string kernel;
  uint64_t blocks = 0;
  Counters total;
  std::vector<LoopReport> loops;     ///< in order of their first line
  std::vector<std::string> warnings; ///< things legal but suspicious
  std::string printed;               ///< output of the kernel's printf calls

  /// The innermost loop with the most MMA issues; null without MMA in a loop.
  const LoopReport *mainLoop() const;
  void print(llvm::raw_ostream &os) const;
  llvm::json::Object toJSON() const;
};

struct KernelParam {
  std::string name;
  uint32_t offset = 0, size = 0;
};
struct KernelInfo {
  std::string name;
  std::vector<KernelParam> params;
  uint32_t argumentBytes = 0;
  uint32_t staticSharedBytes = 0;
  std::array<uint32_t, 3> requiredBlock = {}; ///< .reqntid, or zeros
};

/// A parsed module with its global variables, which live from launch to launch.
class Program {
public:
  /// Error: EmulatorError with EmulatorFault::Syntax and the PTX line.
  /// Instructions that are not emulated are errors only when executed.
  static llvm::Expected<Program> parse(llvm::StringRef ptx);
  ~Program();
  Program(Program &&);
  Program &operator=(Program &&);

  std::vector<KernelInfo> kernels() const;
  /// "line N: reason: text" for every instruction that would be an error when
  /// executed because it is not emulated.
  std::vector<std::string> unsupportedInstructions() const;
  /// Bytes of a .global or .const variable; empty when there is none.
  llvm::MutableArrayRef<uint8_t> global(llvm::StringRef name);

  /// Runs a kernel. \p arguments is the parameter block; it may be shorter than
  /// the kernel's by trailing padding only. Error: EmulatorError.
  llvm::Expected<Report> launch(llvm::StringRef kernel,
                                const LaunchConfig &config,
                                llvm::ArrayRef<uint8_t> arguments,
                                Memory &memory);

  struct Impl;

private:
  explicit Program(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> implementation;
};

} // namespace humming

#endif // HUMMING_EMULATOR_EMULATOR_H
