//===- MeasureLayout.cpp - GPU time of quantize, gather and pack kernels --===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These kernels move bytes. What they read was written a moment ago by the
// kernel before (quantize, gather), so one buffer is read again and again; the
// codes of weights (pack) come from memory, so copies of them take turns.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/Packing.h"
#include "Humming/Quant/QuantizedWeights.h"
#include "Measure.h"
#include <algorithm>

using namespace llvm;

namespace humming {

static Error checkRows(StringRef flag, int64_t rows) {
  if (rows >= 1)
    return Error::success();
  return createStringError(
      "--" + flag + ": expected at least 1 to measure, got " + Twine(rows));
}

template <typename T>
static T *at(cu::DevicePtr pointer) {
  return reinterpret_cast<T *>(pointer);
}

static void finish(Measurement &result, const Kernel &kernel, int64_t bytes) {
  result.bytes = bytes;
  result.registers = kernel.registers();
  result.localBytes = kernel.localBytes();
  result.loadedFrom = kernel.loadedFrom();
}

Expected<Measurement> Bench::measureQuantize(const KernelArtifacts &artifacts,
                                             int64_t m, int64_t k) {
  if (Error error = checkRows("m", m))
    return std::move(error);
  Expected<QuantizeProblem> problem = quantizeProblemOf(artifacts.launch, m, k);
  if (!problem)
    return problem.takeError();
  Expected<std::shared_ptr<const Kernel>> kernel =
      Kernel::load(gpu, artifacts.launch, artifacts.ptx, artifacts.cubin);
  if (!kernel)
    return kernel.takeError();

  int64_t columns = problem->gate == GateKind::None ? k : 2 * k;
  std::vector<uint8_t> pattern = codesToBytes(
      problem->input,
      randomActivations(problem->input, 1,
                        std::min<int64_t>(m * columns, 1 << 20), options.seed));
  int64_t xBytes = 2 * m * columns;
  if (Error error = fillWith(x, pattern, size_t(xBytes)))
    return std::move(error);
  const ActivationCodes &codes = problem->codes;
  int64_t rowOfCodes = k + (codes.format.bits == 4 ? k % 2 : 0);
  int64_t codeBytes = m * rowOfCodes * codes.format.bits / 8;
  if (Error error = reserve(c, size_t(codeBytes)))
    return std::move(error);
  bool isStatic = problem->scale == ActivationScaleKind::Tensor;
  int64_t scales =
      isStatic      ? 1
      : codes.group ? (k + codes.group - 1) / codes.group * paddedScaleTokens(m)
                    : m;
  int64_t scaleBytes = scales * codes.scaleFormat.bits / 8;
  // A static scale of 1/32: most of a unit normal's range, none of it large.
  if (Error error = fillWith(xScales, std::vector<uint8_t>{0, 0, 0, 0x3d},
                             size_t(std::max<int64_t>(scaleBytes, 4))))
    return std::move(error);
  int64_t zeroBytes = codes.zeroPoint ? 4 * (isStatic ? 1 : m) : 0;
  if (zeroBytes)
    if (Error error = fillWith(xZeroPoints, std::vector<uint8_t>{0, 0, 0, 0},
                               size_t(zeroBytes)))
      return std::move(error);

  Measurement result;
  result.copies = 1;
  QuantizeArguments arguments;
  arguments.x = at<void>(x.pointer);
  arguments.codes = at<void>(c.pointer);
  arguments.scales = at<void>(xScales.pointer);
  arguments.zeroPoints = zeroBytes ? at<void>(xZeroPoints.pointer) : nullptr;
  arguments.m = int32_t(m);
  arguments.k = int32_t(k);
  arguments.ldx = int32_t(columns);
  arguments.ldq = int32_t(rowOfCodes);
  if (Error error = timeLaunches(
          result, [&](int) { return (*kernel)->launch(stream, arguments); }))
    return std::move(error);
  finish(result, **kernel, xBytes + codeBytes + scaleBytes + zeroBytes);
  return result;
}

Expected<Measurement> Bench::measureGather(const KernelArtifacts &artifacts,
                                           int64_t m, int64_t k) {
  if (Error error = checkRows("m", m))
    return std::move(error);
  Expected<GatherProblem> problem = gatherProblemOf(artifacts.launch, m, k);
  if (!problem)
    return problem.takeError();
  Expected<std::shared_ptr<const Kernel>> kernel =
      Kernel::load(gpu, artifacts.launch, artifacts.ptx, artifacts.cubin);
  if (!kernel)
    return kernel.takeError();

  int64_t rowBytes = k * problem->elementBits / 8;
  if (Error error =
          fillWith(x, std::vector<uint8_t>{0x38, 0x3c}, size_t(m * rowBytes)))
    return std::move(error);
  if (Error error = reserve(c, size_t(m * rowBytes)))
    return std::move(error);
  // A shuffled order, which is the worst for the copies.
  Random random(options.seed);
  std::vector<int32_t> order;
  for (int64_t i = 0; i < k; ++i)
    order.push_back(int32_t(i));
  for (int64_t i = k - 1; i > 0; --i)
    std::swap(order[size_t(i)], order[random.below(uint64_t(i + 1))]);
  std::vector<uint8_t> orderBytes(
      reinterpret_cast<const uint8_t *>(order.data()),
      reinterpret_cast<const uint8_t *>(order.data() + order.size()));
  if (Error error = fillWith(bias, orderBytes, orderBytes.size()))
    return std::move(error);

  Measurement result;
  result.copies = 1;
  GatherArguments arguments;
  arguments.x = at<void>(x.pointer);
  arguments.order = at<void>(bias.pointer);
  arguments.gathered = at<void>(c.pointer);
  arguments.m = int32_t(m);
  arguments.k = arguments.columns = int32_t(k);
  arguments.ldx = arguments.ldg = int32_t(k);
  if (Error error = timeLaunches(
          result, [&](int) { return (*kernel)->launch(stream, arguments); }))
    return std::move(error);
  finish(result, **kernel, 2 * m * rowBytes + int64_t(orderBytes.size()));
  return result;
}

Expected<Measurement> Bench::measurePack(const KernelArtifacts &artifacts,
                                         int64_t n, int64_t k) {
  if (Error error = checkRows("n", n))
    return std::move(error);
  Expected<PackProblem> problem = packProblemOf(artifacts.launch, n, k);
  if (!problem)
    return problem.takeError();
  Expected<std::shared_ptr<const Kernel>> kernel =
      Kernel::load(gpu, artifacts.launch, artifacts.ptx, artifacts.cubin);
  if (!kernel)
    return kernel.takeError();

  // Copies follow one another in one buffer, each at a multiple of 256 bytes.
  int64_t sourceBytes = (n * k + 255) / 256 * 256;
  int64_t packedBytes =
      packedWeightBytes(n, k, problem->activationBits, problem->weightBits);
  Measurement result;
  result.copies = int(std::max<int64_t>(
      1, (options.rotationBytes + sourceBytes - 1) / sourceBytes));
  std::vector<uint8_t> pattern(size_t(1) << 16);
  Random random(options.seed);
  for (uint8_t &byte : pattern)
    byte = uint8_t(random.below(uint64_t(1) << problem->weightBits));
  if (Error error = fillWith(x, pattern, size_t(result.copies * sourceBytes)))
    return std::move(error);
  if (Error error = reserve(c, size_t(packedBytes)))
    return std::move(error);

  if (Error error = timeLaunches(result, [&](int i) {
        PackArguments arguments;
        arguments.source =
            at<void>(x.pointer + size_t(i % result.copies * sourceBytes));
        arguments.packed = at<void>(c.pointer);
        arguments.n = int32_t(n);
        arguments.k = arguments.lds = int32_t(k);
        return (*kernel)->launch(stream, arguments);
      }))
    return std::move(error);
  finish(result, **kernel, n * k + packedBytes);
  return result;
}

} // namespace humming
