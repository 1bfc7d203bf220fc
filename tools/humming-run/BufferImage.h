//===- BufferImage.h - A buffer with guards ---------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TOOLS_RUN_BUFFERIMAGE_H
#define HUMMING_TOOLS_RUN_BUFFERIMAGE_H

#include "Executor.h"
#include <cstring>
#include <optional>

namespace humming {

/// 0xFF is a NaN in f16, bf16, f32 and e4m3; 0x7F7F is a NaN in f16 and the
/// largest magnitudes in bf16; 0x00 finds reads that only zeros would forgive.
inline constexpr uint8_t kPoisons[] = {0xFF, 0x00, 0x7F};

/// The host's side of one buffer: guard, data, guard.
class BufferImage {
public:
  void assign(llvm::ArrayRef<uint8_t> data, uint8_t poison) {
    bytes.assign(data.size() + 2 * kGuardBytes, poison);
    if (!data.empty())
      std::memcpy(bytes.data() + kGuardBytes, data.data(), data.size());
  }
  llvm::MutableArrayRef<uint8_t> data() {
    return llvm::MutableArrayRef<uint8_t>(bytes)
        .drop_front(kGuardBytes)
        .drop_back(kGuardBytes);
  }
  bool empty() const { return bytes.empty(); }
  /// Offset, from the data's start, of the first guard byte that is not
  /// `poison`; nothing if all are.
  std::optional<int64_t> damagedGuard(uint8_t poison) const {
    size_t dataEnd = bytes.size() - kGuardBytes;
    for (size_t i = 0; i < kGuardBytes; ++i) {
      if (bytes[i] != poison)
        return int64_t(i) - int64_t(kGuardBytes);
      if (bytes[dataEnd + i] != poison)
        return int64_t(dataEnd + i) - int64_t(kGuardBytes);
    }
    return std::nullopt;
  }

  std::vector<uint8_t> bytes;
};

} // namespace humming

#endif // HUMMING_TOOLS_RUN_BUFFERIMAGE_H
