//===- Executor.h - Where a kernel runs -------------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What humming-run needs of a place that runs kernels. Every buffer is an image
// on the host with a guard before and after the data; the executor uploads it
// whole, points the kernel at the data, and gives it back whole.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TOOLS_COMMON_EXECUTOR_H
#define HUMMING_TOOLS_COMMON_EXECUTOR_H

#include "Artifacts.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <memory>
#include <optional>
#include <string>

namespace humming {

/// Bytes of guard before and after the data of a buffer; a multiple of every
/// alignment that kernels ask for.
constexpr size_t kGuardBytes = 1024;

/// The pointer arguments, in a matmul's order; the last ones stand after the
/// sizes. A quantize kernel reads X, writes Output (its codes), Scales and
/// ZeroPoints, and ldc is its ldq. A pack reads X and writes Output; a gather
/// reads X and Order and writes Output, n its columns.
enum class BufferSlot : unsigned {
  X,
  Weights,
  Scales,
  ZeroPoints,
  Bias,
  Output,
  Workspace,
  GlobalScales,
  ActivationScales,
  ActivationZeroPoints,
  WeightSums,
  Order,
};
constexpr unsigned kNumBufferSlots = 12;
/// Buffers before the sizes.
constexpr unsigned kNumLeadingSlots = 7;
llvm::StringRef stringify(BufferSlot slot);

struct LaunchSizes {
  int32_t m = 0, n = 0, k = 0, ldx = 0, ldc = 0;
};

class Executor {
public:
  virtual ~Executor();
  /// `NVIDIA H200 (sm_90)`.
  virtual std::string device() const = 0;
  /// Makes a kernel ready. Error: it cannot run here.
  virtual llvm::Error load(const KernelArtifacts &artifacts) = 0;
  /// How the loaded kernel came in: `cubin (sm_90)`, ...
  virtual std::string loadedFrom() const = 0;
  /// Replaces the buffer of a slot; an empty image stands for a null pointer.
  virtual llvm::Error upload(BufferSlot slot,
                             llvm::ArrayRef<uint8_t> image) = 0;
  /// Reads a buffer back, guards included; `image` has the uploaded size.
  virtual llvm::Error download(BufferSlot slot,
                               llvm::MutableArrayRef<uint8_t> image) = 0;
  /// Launches the loaded kernel once and waits for its end.
  virtual llvm::Error launch(const LaunchSizes &sizes) = 0;
  /// What the last launch did, per kernel and loop (docs/Emulator.md); nothing
  /// where nobody counts.
  virtual std::optional<llvm::json::Object> counters() const {
    return std::nullopt;
  }
};

/// The GPU. Error: no driver, no device.
llvm::Expected<std::unique_ptr<Executor>> createCudaExecutor(int ordinal);
/// The emulator: slow, needs no GPU, and faults where a GPU would let it pass.
std::unique_ptr<Executor> createEmulatorExecutor();

/// `--on`. Error: "--on: expected ..., got ...".
llvm::Expected<std::unique_ptr<Executor>> createExecutor(llvm::StringRef where,
                                                         int ordinal);

} // namespace humming

#endif // HUMMING_TOOLS_COMMON_EXECUTOR_H
