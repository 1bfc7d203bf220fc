//===- Runtime.h - Devices, kernels and launches ----------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two phases. Preparing (Kernel::load, KernelSet::prepare) assembles, loads the
// module and sets the function's attributes; it may take long and must not run
// while the calling thread captures a stream. Launching (Kernel::launch) checks
// its arguments and calls the driver's launch entry point, nothing else: no
// allocation, no module load, no query, no synchronisation. So it may be
// captured into a CUDA graph, and it runs on the stream of each call.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_RUNTIME_RUNTIME_H
#define HUMMING_RUNTIME_RUNTIME_H

#include "Humming/Runtime/CudaDriver.h"
#include "Humming/Runtime/JitLink.h"
#include "Humming/Runtime/LaunchDescription.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <mutex>
#include <string>

namespace humming {

struct DeviceInfo {
  int ordinal = 0;
  std::string name;
  int computeMajor = 0, computeMinor = 0;
  int multiprocessors = 0;
  int maxThreadsPerBlock = 0;
  int maxSharedPerBlock = 0; ///< opt-in maximum, bytes
  int maxGridX = 0, maxGridY = 0, maxGridZ = 0;
  int l2Bytes = 0; ///< 0 if the driver does not say
  /// Nominal bytes per second from clock and bus width. Where the driver
  /// reports neither (unified memory), a stand-in of 200 GB/s, and
  /// `bandwidthAssumed` is set.
  double memoryBandwidth = 0;
  bool bandwidthAssumed = false;
  int driverVersion = 0; ///< 12040 for CUDA 12.4

  unsigned chipNumber() const {
    return unsigned(computeMajor * 10 + computeMinor);
  }
  /// `sm_90`
  std::string chip() const;
};

/// A device with its primary context retained. Thread safe.
class Device {
public:
  /// Error: no such device, or a driver call failed.
  static llvm::Expected<std::shared_ptr<const Device>>
  open(const CudaDriver &driver, int ordinal = 0);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  const CudaDriver &driver() const { return api; }
  const DeviceInfo &info() const { return facts; }
  /// Makes the primary context current in the calling thread.
  llvm::Error makeCurrent() const { return api.setCurrent(context); }

private:
  Device(const CudaDriver &driver) : api(driver) {}

  const CudaDriver &api;
  DeviceInfo facts;
  cu::Device handle = 0;
  cu::Context context = nullptr;
};

/// The arguments of a dense kernel: device addresses, owned by the caller.
/// C[m,n] = X[m,k] * dequant(W[n,k])^T (+ bias[n]).
struct DenseArguments {
  const void *x = nullptr;          ///< [m, k], row stride ldx
  const void *w = nullptr;          ///< packed weights
  const void *scales = nullptr;     ///< packed scales
  const void *zeroPoints = nullptr; ///< packed; null exactly if there are none
  const void *bias = nullptr;       ///< [n]; null exactly if there is none
  void *c = nullptr;                ///< [m, n], row stride ldc
  void *workspace = nullptr;        ///< may be null where none is needed
  int64_t workspaceBytes = 0;
  int32_t m = 0, n = 0, k = 0;
  int32_t ldx = 0, ldc = 0; ///< elements
  /// f32, [1] or [n]; null exactly if there is no second level of scales.
  const void *globalScales = nullptr;
  /// f32, [1] or [m], or [ceil(k/group), m up to a multiple of 16] of f32 or
  /// e8m0; null exactly if the activations have no scales.
  const void *activationScales = nullptr;
  /// i32, [1] or [m]; null exactly if the activations are symmetric.
  const void *activationZeroPoints = nullptr;
  /// f32, [n]: sums of the dequantized rows of weights; null likewise.
  const void *weightSums = nullptr;
};

/// The arguments of a quantize kernel: device addresses, owned by the caller.
struct QuantizeArguments {
  const void *x = nullptr; ///< [m, k] (with a gate [m, 2 k]), row stride ldx
  void *codes = nullptr;   ///< [m, k], row stride ldq
  /// Written: [m], or [ceil(k/group), m up to a multiple of 16]. Read, [1], if
  /// the scale is static.
  void *scales = nullptr;
  void *zeroPoints = nullptr; ///< i32, [m] or [1]; null exactly if symmetric
  int32_t m = 0, k = 0;
  int32_t ldx = 0, ldq = 0; ///< elements
};

/// The arguments of a pack kernel: codes [n, k], a byte each, rows lds apart,
/// to the packed layout of Humming/Quant/Packing.h.
struct PackArguments {
  const void *source = nullptr;
  void *packed = nullptr; ///< packedWeightBytes(n, k, ...)
  int32_t n = 0, k = 0;
  int32_t lds = 0; ///< bytes
};

/// The arguments of a gather kernel: x [m, k] to [m, columns] by order, i32
/// [columns].
struct GatherArguments {
  const void *x = nullptr, *order = nullptr;
  void *gathered = nullptr;
  int32_t m = 0, k = 0, columns = 0;
  int32_t ldx = 0, ldg = 0; ///< elements
};

struct LoadOptions {
  /// Assembles PTX where no usable cubin is there; null: the driver does.
  const Assembler *assembler = nullptr;
};

/// A kernel loaded on one device. Immutable but for a memory of tensor maps,
/// which a mutex guards: thread safe.
class Kernel {
public:
  /// Loads `cubin` if the device can run it, else `ptx` (either may be empty).
  /// PTX newer than the driver understands is retried at the driver's version.
  /// Sets the function's attributes. Must not run during a stream capture.
  /// Error: nothing loadable, says why for each; limits of the device exceeded.
  static llvm::Expected<std::shared_ptr<const Kernel>>
  load(std::shared_ptr<const Device> device, const LaunchDescription &launch,
       llvm::StringRef ptx, llvm::StringRef cubin,
       const LoadOptions &options = {});
  ~Kernel();
  Kernel(const Kernel &) = delete;
  Kernel &operator=(const Kernel &) = delete;

  const LaunchDescription &description() const { return launchDescription; }
  const Device &device() const { return *owner; }
  /// What was loaded: `cubin (sm_90)`, `PTX by the driver`, ...
  const std::string &loadedFrom() const { return origin; }
  int registers() const { return numRegisters; }
  int localBytes() const { return numLocalBytes; } ///< spills and stack

  /// Launches on `stream` (null: the legacy default stream). m = 0 launches
  /// nothing. The error names the argument, what it must be and what it is.
  llvm::Error launch(cu::Stream stream, const DenseArguments &arguments) const;

  llvm::Error launch(cu::Stream stream,
                     const QuantizeArguments &arguments) const;

  llvm::Error launch(cu::Stream stream, const PackArguments &arguments) const;
  llvm::Error launch(cu::Stream stream, const GatherArguments &arguments) const;

  /// The checks of launch() alone.
  llvm::Error checkArguments(const DenseArguments &arguments) const;
  llvm::Error checkArguments(const QuantizeArguments &arguments) const;
  /// Asks the driver whether every pointer is device memory: too slow for each
  /// launch, worth it once per layer. Error: names the argument.
  llvm::Error checkPointers(const DenseArguments &arguments) const;

private:
  llvm::Error launchGrid(cu::Stream stream, LaunchDescription::Grid grid,
                         llvm::MutableArrayRef<void *> parameters,
                         llvm::function_ref<std::string()> sizes) const;
  Kernel(std::shared_ptr<const Device> device, LaunchDescription launch)
      : owner(std::move(device)), launchDescription(std::move(launch)) {}
  llvm::Error loadModule(llvm::StringRef ptx, llvm::StringRef cubin,
                         const LoadOptions &options);
  llvm::Error loadPtx(llvm::StringRef ptx, const LoadOptions &options);
  llvm::Error configure();

  struct alignas(64) TensorMap {
    unsigned char bytes[128];
  };
  /// The map of the matrix at `pointer`. Encodes nothing that it remembers.
  llvm::Expected<TensorMap>
  encode(const void *pointer,
         const LaunchDescription::TensorMapShape &shape) const;

  std::shared_ptr<const Device> owner;
  LaunchDescription launchDescription;
  std::string origin;
  cu::Module module = nullptr;
  cu::Function function = nullptr;
  int numRegisters = 0, numLocalBytes = 0;
  unsigned activationBits = 16, outputBits = 16; ///< of an element

  struct EncodedMap {
    const void *pointer = nullptr;
    LaunchDescription::TensorMapShape shape;
    TensorMap map;
  };
  mutable std::mutex mapsMutex;
  mutable std::vector<EncodedMap> maps; ///< at most kRememberedMaps
  mutable size_t oldestMap = 0;
};

/// The prepared kernels of an engine, by name. Thread safe.
class KernelSet {
public:
  using Loader =
      llvm::function_ref<llvm::Expected<std::shared_ptr<const Kernel>>()>;

  /// The kernel of `name`; if it is not there, `load` makes it, once even if
  /// several threads ask. `stream` is the one that the caller works on: if a
  /// load is needed while it captures, that is an error, as a module load would
  /// break the capture. Error: that, or the loader's (a later call retries).
  llvm::Expected<std::shared_ptr<const Kernel>>
  prepare(const CudaDriver &driver, llvm::StringRef name, cu::Stream stream,
          Loader load);

  /// The kernel if it is prepared, else null.
  std::shared_ptr<const Kernel> find(llvm::StringRef name) const;

  /// Launches a prepared kernel; never loads. Error: the name of the kernel and
  /// of the missing call, or Kernel::launch's.
  llvm::Error launch(llvm::StringRef name, cu::Stream stream,
                     const DenseArguments &arguments) const;

  size_t size() const;

private:
  struct Slot {
    std::mutex loading;
    std::shared_ptr<const Kernel> kernel; ///< guarded by KernelSet::mutex
  };
  mutable std::mutex mutex;
  llvm::StringMap<std::shared_ptr<Slot>> slots;
};

} // namespace humming

#endif // HUMMING_RUNTIME_RUNTIME_H
