//===- Measure.h - GPU time of kernels --------------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Protocol: a CUDA graph of at least 20 launches that rotate over as many
// copies of the weights as make 300 MB, so that no launch finds its weights in
// L2; replayed once to warm up, then ten times between two events. The time of
// a launch is the median replay divided by the launches in the graph. Launch
// overhead of the host is not in it; gaps between kernels of a graph are.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TOOLS_BENCH_MEASURE_H
#define HUMMING_TOOLS_BENCH_MEASURE_H

#include "Artifacts.h"
#include "Humming/Runtime/Runtime.h"

namespace humming {

struct MeasureOptions {
  int64_t rotationBytes = 300'000'000; ///< weights of all copies together
  int launches = 20;                   ///< of a graph, at least
  int replays = 10;
  uint64_t seed = 0;
};

struct Measurement {
  double microseconds = 0; ///< median
  double minimum = 0, maximum = 0;
  double hostMicroseconds = 0; ///< of one launch call on the host
  int64_t bytes = 0;           ///< read and written by one launch, at least
  double flops = 0;            ///< 2 * m * n * k
  int copies = 0;              ///< of the weights
  int graphLaunches = 0;       ///< kernel launches in the graph
  int registers = 0;
  int localBytes = 0; ///< spills and stack of a thread
  std::string loadedFrom;

  double terabytesPerSecond() const { return bytes / microseconds / 1e6; }
  double teraflopsPerSecond() const { return flops / microseconds / 1e6; }
};

/// Measures kernels on one device. Keeps the weights of the last shape.
class Bench {
public:
  static llvm::Expected<std::unique_ptr<Bench>> create(int ordinal,
                                                       MeasureOptions options);
  /// On a driver of the caller's, which must outlive the bench.
  static llvm::Expected<std::unique_ptr<Bench>>
  create(const CudaDriver &driver, int ordinal, MeasureOptions options);
  ~Bench();

  const DeviceInfo &device() const { return gpu->info(); }
  /// Bytes per second, read and written, of a copy of 1 GiB within the device:
  /// median of ten.
  llvm::Expected<double> copyBandwidth();
  llvm::Expected<Measurement> measure(const KernelArtifacts &kernel, int64_t m,
                                      int64_t n, int64_t k);
  /// Of a quantize, gather or pack kernel. A quantize and a gather read the
  /// same activations each time, as the kernel before them leaves them in L2; a
  /// pack rotates over copies of its weights.
  llvm::Expected<Measurement> measureQuantize(const KernelArtifacts &kernel,
                                              int64_t m, int64_t k);
  llvm::Expected<Measurement> measureGather(const KernelArtifacts &kernel,
                                            int64_t m, int64_t k);
  llvm::Expected<Measurement> measurePack(const KernelArtifacts &kernel,
                                          int64_t n, int64_t k);

private:
  explicit Bench(std::shared_ptr<const Device> device, MeasureOptions options);
  struct Buffer {
    cu::DevicePtr pointer = 0;
    size_t bytes = 0;
  };
  struct Operands {
    Buffer weights, scales, zeroPoints, globalScales;
  };

  llvm::Error initialize();
  llvm::Error reserve(Buffer &buffer, size_t bytes);
  llvm::Error fillWith(Buffer &buffer, llvm::ArrayRef<uint8_t> pattern,
                       size_t bytes);
  void release(Buffer &buffer);
  llvm::Error makeOperands(const MatmulProblem &problem, int copies);
  llvm::Expected<double> timeReplay(cu::GraphExec graph);
  /// Captures launches 0, 1, ... (a whole number of `result.copies`) and times
  /// replays: the times of `result`, and its counts.
  llvm::Error timeLaunches(Measurement &result,
                           llvm::function_ref<llvm::Error(int)> launchOnce);

  std::shared_ptr<const Device> gpu;
  const CudaDriver &driver;
  MeasureOptions options;
  cu::Stream stream = nullptr;
  cu::Event start = nullptr, end = nullptr;
  std::string operandsKey; ///< what `operands` holds
  std::vector<Operands> operands;
  Buffer x, xScales, xZeroPoints, weightSums, bias, c, workspace;
};

} // namespace humming

#endif // HUMMING_TOOLS_BENCH_MEASURE_H
