//===- CudaDriver.h - The CUDA driver, found at run time --------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing here includes a CUDA header or links a CUDA library: the few entry
// points used are a table of function pointers, filled by dlopen, or by a test
// with a driver of its own. Every call that fails gives an Error that says what
// was attempted, with the driver's name and text for the code.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_RUNTIME_CUDADRIVER_H
#define HUMMING_RUNTIME_CUDADRIVER_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace humming {

/// The driver's types under names of our own, layout as in cuda.h.
namespace cu {
using Result = int; ///< CUresult
using Device = int;
using DevicePtr = unsigned long long;
using Context = struct ContextState *;
using Module = struct ModuleState *;
using Function = struct FunctionState *;
using Stream = struct StreamState *;
using Event = struct EventState *;
using Graph = struct GraphState *;
using GraphExec = struct GraphExecState *;
using GraphNode = struct GraphNodeState *;
using LinkState = struct LinkStateState *;

/// CUlaunchAttribute: an id and a union of 64 bytes.
struct LaunchAttribute {
  int id;
  int padding;
  union {
    int value;
    char bytes[64];
  };
};
/// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: the kernel may start
/// before its predecessor in the stream has finished.
enum : int { kProgrammaticStreamSerialization = 6 };

/// CUlaunchConfig.
struct LaunchConfig {
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};

/// Values from cuda.h (CUDA 11.0 to 13.0); only those that are acted upon.
enum : Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kNotSupported = 801,
};
enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxGridX = 5,
  kMaxGridY = 6,
  kMaxGridZ = 7,
  kMultiprocessorCount = 16,
  kMemoryClockKHz = 36,
  kMemoryBusWidthBits = 37,
  kL2CacheBytes = 38,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kMaxSharedPerBlockOptin = 97,
};
enum FunctionAttribute : int {
  kFunctionStaticShared = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicShared = 8,
};
enum CaptureStatus : int {
  kCaptureNone = 0,
  kCaptureActive = 1,
  kCaptureInvalidated = 2
};
} // namespace cu

/// The entry points. A null pointer means that the driver lacks it; those that
/// every supported driver (CUDA 11.0 or newer) has are never null after load().
struct DriverTable {
#define HUMMING_DRIVER_ENTRY(MEMBER, SYMBOL, REQUIRED, ...)                    \
  cu::Result (*MEMBER)(__VA_ARGS__) = nullptr;
#include "Humming/Runtime/DriverEntries.def"
};

/// A driver that has been initialised. Immutable, thread safe.
class CudaDriver {
public:
  /// The process' driver: opened and initialised once, on first use.
  /// Error: no libcuda.so.1, an entry point is missing, cuInit failed (no
  /// device, driver mismatch). The same error comes back on every call.
  static llvm::Expected<const CudaDriver *> get();
  /// Opens `libraryName` anew; get() is load("libcuda.so.1"), remembered.
  static llvm::Expected<std::unique_ptr<CudaDriver>>
  load(const char *libraryName);
  /// Initialises a driver behind a table of the caller's (tests).
  /// Error: a required entry is null, cuInit failed.
  static llvm::Expected<std::unique_ptr<CudaDriver>>
  create(const DriverTable &table);

  const DriverTable &table() const { return entries; }
  /// 12040 for CUDA 12.4.
  int version() const { return driverVersion; }

  /// Success, or "what: NAME (code): text".
  llvm::Error check(cu::Result result, const llvm::Twine &what) const;
  /// `CUDA_ERROR_INVALID_VALUE (1): invalid argument`.
  std::string describe(cu::Result result) const;

  llvm::Expected<int> deviceCount() const;
  llvm::Expected<std::string> deviceName(cu::Device device) const;
  llvm::Expected<int> deviceAttribute(cu::DeviceAttribute attribute,
                                      cu::Device device) const;
  /// Retains the primary context, the one that the CUDA runtime and torch use.
  llvm::Expected<cu::Context> retainPrimaryContext(cu::Device device) const;
  llvm::Error setCurrent(cu::Context context) const;
  llvm::Error synchronize() const;

  /// Loads a cubin or NUL-terminated PTX into the current context. `code` gets
  /// the driver's code for the caller to act on. Error: with the driver's log.
  llvm::Expected<cu::Module> loadModule(const char *image,
                                        llvm::StringRef description,
                                        cu::Result &code) const;
  llvm::Expected<cu::Function> getFunction(cu::Module module,
                                           llvm::StringRef name) const;
  /// Links PTX for the current context's device. `log` gets the info log.
  llvm::Expected<llvm::SmallVector<char, 0>> linkPtx(llvm::StringRef ptx,
                                                     std::string &log) const;

  llvm::Expected<cu::DevicePtr> allocate(size_t bytes) const;
  llvm::Error free(cu::DevicePtr pointer) const;
  /// The bytes are in place when it returns, for every stream.
  llvm::Error copyToDevice(cu::DevicePtr to, const void *from,
                           size_t bytes) const;
  llvm::Error copyToHost(void *to, cu::DevicePtr from, size_t bytes) const;
  llvm::Error copyOnDevice(cu::DevicePtr to, cu::DevicePtr from, size_t bytes,
                           cu::Stream stream) const;
  /// The bytes are in place when it returns, for every stream.
  llvm::Error fill(cu::DevicePtr to, unsigned char value, size_t bytes) const;

  llvm::Expected<cu::Stream> createStream() const;
  llvm::Error destroyStream(cu::Stream stream) const;
  llvm::Error synchronizeStream(cu::Stream stream) const;
  /// Whether the stream records into a graph instead of running.
  llvm::Expected<bool> isCapturing(cu::Stream stream) const;

  llvm::Expected<cu::Event> createEvent() const;
  llvm::Error destroyEvent(cu::Event event) const;
  llvm::Error recordEvent(cu::Event event, cu::Stream stream) const;
  llvm::Error synchronizeEvent(cu::Event event) const;
  llvm::Expected<float> elapsedMilliseconds(cu::Event start,
                                            cu::Event end) const;

  llvm::Error beginCapture(cu::Stream stream) const;
  llvm::Expected<cu::Graph> endCapture(cu::Stream stream) const;
  llvm::Expected<cu::GraphExec> instantiate(cu::Graph graph) const;
  llvm::Expected<size_t> graphNodeCount(cu::Graph graph) const;
  llvm::Error launchGraph(cu::GraphExec graph, cu::Stream stream) const;
  llvm::Error destroyGraph(cu::Graph graph) const;
  llvm::Error destroyGraphExec(cu::GraphExec graph) const;

private:
  explicit CudaDriver(const DriverTable &table) : entries(table) {}
  llvm::Error initialize();
  llvm::Error finishOnDefaultStream() const;

  DriverTable entries;
  int driverVersion = 0;
};

} // namespace humming

#endif // HUMMING_RUNTIME_CUDADRIVER_H
