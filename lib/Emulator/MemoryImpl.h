//===- MemoryImpl.h - Device memory and its shadow -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_EMULATOR_MEMORYIMPL_H
#define HUMMING_LIB_EMULATOR_MEMORYIMPL_H

#include "Humming/Emulator/Emulator.h"
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace humming {
namespace emulator {

/// Who touched a 4-byte word of global memory last. Two readers are kept; when
/// a third comes, the older one is dropped: a race with it may be missed, but
/// none is invented.
struct GlobalCell {
  enum : uint8_t { Strong = 1, Partial = 2 };
  static constexpr uint32_t None = 0xFFFFFFFF;
  struct Touch {
    uint32_t cluster = None;
    uint32_t clock = 0;
    uint32_t pc = 0;
    uint16_t agent = 0;
    uint8_t lane = 0;
    uint8_t flags = 0;
    uint8_t bytes = 0; ///< mask of the word's bytes
  };
  Touch write, read[2];
};

constexpr unsigned ShadowPageCells = 256; ///< 1 KiB of data

struct GlobalBuffer {
  std::string name;
  uint64_t base = 0, size = 0;
  uint8_t *data = nullptr;
  std::vector<uint8_t> owned;
  std::vector<uint8_t> init; ///< per byte; empty: everything is written
  bool readOnly = false;
  /// Bytes read of each 4-byte word; null: not counted.
  std::unique_ptr<std::atomic<uint32_t>[]> reads;
  void countRead(uint64_t address, uint64_t bytes) {
    if (!reads)
      return;
    uint64_t end = address - base + bytes;
    for (uint64_t at = address - base; at < end;) {
      uint64_t next = std::min((at / 4 + 1) * 4, end);
      reads[at / 4].fetch_add(uint32_t(next - at), std::memory_order_relaxed);
      at = next;
    }
  }
  using Page = std::array<GlobalCell, ShadowPageCells>;
  std::vector<std::unique_ptr<Page>> shadow;
  std::mutex lock; ///< of the shadow and init, with several workers
};

/// All buffers of a launch, sorted by address.
struct GlobalMemory {
  std::vector<GlobalBuffer *> buffers;
  GlobalBuffer *find(uint64_t address) const;
  std::string describe(uint64_t address) const;
};

} // namespace emulator

struct Memory::Impl {
  std::vector<std::unique_ptr<emulator::GlobalBuffer>> buffers;
  uint64_t next = uint64_t(1) << 32;
  emulator::GlobalBuffer &create(llvm::StringRef name, uint64_t size);
  emulator::GlobalBuffer *at(uint64_t address) const;
};

} // namespace humming

#endif // HUMMING_LIB_EMULATOR_MEMORYIMPL_H
