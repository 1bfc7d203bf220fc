//===- Measure.cpp - GPU time of kernels ----------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Measure.h"
#include "Humming/Quant/Packing.h"
#include "Humming/Quant/QuantizedWeights.h"
#include "llvm/ADT/ScopeExit.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

using namespace llvm;

namespace humming {

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

static double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half]
                           : (values[half - 1] + values[half]) / 2;
}

Bench::Bench(std::shared_ptr<const Device> device, MeasureOptions options)
    : gpu(std::move(device)), driver(gpu->driver()), options(options) {}

Bench::~Bench() {
  for (Operands &copy : operands)
    for (Buffer *buffer :
         {&copy.weights, &copy.scales, &copy.zeroPoints, &copy.globalScales})
      release(*buffer);
  for (Buffer *buffer :
       {&x, &xScales, &xZeroPoints, &weightSums, &bias, &c, &workspace})
    release(*buffer);
  if (start)
    consumeError(driver.destroyEvent(start));
  if (end)
    consumeError(driver.destroyEvent(end));
  if (stream)
    consumeError(driver.destroyStream(stream));
}

Expected<std::unique_ptr<Bench>> Bench::create(int ordinal,
                                               MeasureOptions options) {
  Expected<const CudaDriver *> driver = CudaDriver::get();
  if (!driver)
    return driver.takeError();
  return create(**driver, ordinal, options);
}

Expected<std::unique_ptr<Bench>>
Bench::create(const CudaDriver &driver, int ordinal, MeasureOptions options) {
  Expected<std::shared_ptr<const Device>> device =
      Device::open(driver, ordinal);
  if (!device)
    return device.takeError();
  std::unique_ptr<Bench> bench(new Bench(std::move(*device), options));
  if (Error error = bench->initialize())
    return std::move(error);
  return std::move(bench);
}

Error Bench::initialize() {
  if (Error error = gpu->makeCurrent())
    return error;
  Expected<cu::Stream> madeStream = driver.createStream();
  if (!madeStream)
    return madeStream.takeError();
  stream = *madeStream;
  for (cu::Event *event : {&start, &end}) {
    Expected<cu::Event> made = driver.createEvent();
    if (!made)
      return made.takeError();
    *event = *made;
  }
  return Error::success();
}

void Bench::release(Buffer &buffer) {
  if (buffer.bytes)
    consumeError(driver.free(buffer.pointer));
  buffer = {};
}

Error Bench::reserve(Buffer &buffer, size_t bytes) {
  if (buffer.bytes >= bytes)
    return Error::success();
  release(buffer);
  Expected<cu::DevicePtr> made = driver.allocate(bytes);
  if (!made)
    return made.takeError();
  buffer = {*made, bytes};
  return Error::success();
}

/// Fills the buffer with repetitions of a pattern, doubling on the device.
Error Bench::fillWith(Buffer &buffer, ArrayRef<uint8_t> pattern, size_t bytes) {
  if (Error error = reserve(buffer, bytes))
    return error;
  size_t done = std::min(bytes, pattern.size());
  if (Error error = driver.copyToDevice(buffer.pointer, pattern.data(), done))
    return error;
  while (done < bytes) {
    size_t step = std::min(done, bytes - done);
    if (Error error = driver.copyOnDevice(buffer.pointer + done, buffer.pointer,
                                          step, stream))
      return error;
    done += step;
  }
  return driver.synchronizeStream(stream);
}

Expected<double> Bench::copyBandwidth() {
  constexpr size_t kBytes = size_t(1) << 30;
  Buffer from, to;
  llvm::scope_exit giveBack([&] {
    release(from);
    release(to);
  });
  for (Buffer *buffer : {&from, &to})
    if (Error error = reserve(*buffer, kBytes))
      return std::move(error);
  if (Error error = driver.fill(from.pointer, 0x5a, kBytes))
    return std::move(error);
  std::vector<double> seconds;
  for (int i = 0; i < 12; ++i) {
    if (Error error = driver.recordEvent(start, stream))
      return std::move(error);
    if (Error error =
            driver.copyOnDevice(to.pointer, from.pointer, kBytes, stream))
      return std::move(error);
    if (Error error = driver.recordEvent(end, stream))
      return std::move(error);
    if (Error error = driver.synchronizeEvent(end))
      return std::move(error);
    Expected<float> ms = driver.elapsedMilliseconds(start, end);
    if (!ms)
      return ms.takeError();
    if (i >= 2) // the first two warm up
      seconds.push_back(*ms / 1e3);
  }
  return 2.0 * kBytes / median(seconds);
}

/// Random bytes, none of which is an infinity or a NaN of an 8-bit weight
/// format: a block large enough that its repetition is no shortcut for the
/// hardware.
static std::vector<uint8_t> randomWeightBytes(NumberFormat format, size_t count,
                                              uint64_t seed) {
  std::vector<uint8_t> bytes(count);
  Random random(seed);
  for (size_t i = 0; i < count; i += 8) {
    uint64_t value = random.next();
    for (size_t j = i; j < std::min(count, i + 8); ++j, value >>= 8)
      bytes[j] = uint8_t(value);
  }
  if (format.bits == 8 && format.isFloat())
    for (uint8_t &byte : bytes)
      if (!std::isfinite(format.decode(byte)))
        byte = 0x38;
  return bytes;
}

/// The largest magnitude that a weight of the type stands for.
static double largestWeight(const QuantType &type) {
  if (type.table)
    return std::abs(*std::max_element(
        type.table->values.begin(), type.table->values.end(),
        [](float a, float b) { return std::abs(a) < std::abs(b); }));
  double largest = type.weight.maxFinite();
  return type.weight.isInteger() ? std::max(1.0, largest / 2) : largest;
}

static std::vector<uint8_t> floatBytes(ArrayRef<float> values) {
  std::vector<uint8_t> bytes(4 * values.size());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Error Bench::makeOperands(const MatmulProblem &problem, int copies) {
  std::string key = problem.activation.str() + " " + problem.weight.str() +
                    " " + std::to_string(problem.n) + " " +
                    std::to_string(problem.k) + " " + std::to_string(copies);
  if (key == operandsKey)
    return Error::success();
  operandsKey.clear();
  for (Operands &copy : operands)
    for (Buffer *buffer :
         {&copy.weights, &copy.scales, &copy.zeroPoints, &copy.globalScales})
      release(*buffer);
  operands.clear();
  operands.resize(size_t(copies));

  const QuantType &type = problem.weight;
  size_t weightBytes = size_t(packedWeightBytes(
      problem.n, problem.k, problem.activation.bits, type.weight.bits));
  size_t scaleElements =
      size_t(packedScaleElements(problem.n, type.scaleColumns(problem.k)));
  constexpr size_t kPattern = size_t(4) << 20;
  std::vector<uint8_t> weightPattern = randomWeightBytes(
      type.weight, std::min(weightBytes, kPattern), options.seed);
  // Weights below 1/8 in magnitude: sums of 8192 products with unit normals
  // stay far below the largest f16. Narrow scales cannot be so small: a second
  // level makes up for it where there is one.
  double smallest = 1 / (16 * largestWeight(type));
  bool hasGlobal = type.globalScale != GlobalScaleKind::None;
  double unit = hasGlobal              ? 1.0
                : type.scale.bits == 8 ? std::max(smallest, 0x1p-6)
                                       : smallest;
  Random random(options.seed ^ 0x5ca1e);
  std::vector<uint32_t> scaleCodes, zeroCodes;
  for (size_t i = 0; i < std::min<size_t>(scaleElements, 1 << 16); ++i) {
    scaleCodes.push_back(type.scale.encode((1 + random.unit()) * unit));
    uint32_t zero = uint32_t(random.below(uint64_t(1) << type.weight.bits));
    zeroCodes.push_back(type.zeroPoint == ZeroPointKind::Float
                            ? type.scale.encode(zero + 0.5)
                            : zero);
  }
  std::vector<uint8_t> globalPattern = floatBytes(float(smallest));
  size_t globals = !hasGlobal ? 0
                   : type.globalScale == GlobalScaleKind::Tensor
                       ? 1
                       : size_t(problem.n);
  std::vector<uint8_t> scalePattern = codesToBytes(type.scale, scaleCodes);
  NumberFormat zeroFormat = type.zeroPoint == ZeroPointKind::Float
                                ? type.scale
                                : NumberFormat::unsignedInt(8);
  std::vector<uint8_t> zeroPattern = codesToBytes(zeroFormat, zeroCodes);

  for (Operands &copy : operands) {
    if (Error error = fillWith(copy.weights, weightPattern, weightBytes))
      return error;
    if (Error error = fillWith(copy.scales, scalePattern,
                               scaleElements * elementBytes(type.scale)))
      return error;
    if (type.zeroPoint != ZeroPointKind::None)
      if (Error error = fillWith(copy.zeroPoints, zeroPattern,
                                 scaleElements * elementBytes(zeroFormat)))
        return error;
    if (globals)
      if (Error error = fillWith(copy.globalScales, globalPattern, 4 * globals))
        return error;
  }
  operandsKey = key;
  return Error::success();
}

Expected<double> Bench::timeReplay(cu::GraphExec graph) {
  if (Error error = driver.recordEvent(start, stream))
    return std::move(error);
  if (Error error = driver.launchGraph(graph, stream))
    return std::move(error);
  if (Error error = driver.recordEvent(end, stream))
    return std::move(error);
  if (Error error = driver.synchronizeEvent(end))
    return std::move(error);
  Expected<float> ms = driver.elapsedMilliseconds(start, end);
  if (!ms)
    return ms.takeError();
  return *ms * 1e3;
}

Error Bench::timeLaunches(Measurement &result,
                          function_ref<Error(int)> launchOnce) {
  // Warm up outside of the graph, and take the host's time of a launch.
  auto hostStart = std::chrono::steady_clock::now();
  int warmUps = 2 * std::min(result.copies, 16);
  for (int i = 0; i < warmUps; ++i)
    if (Error error = launchOnce(i))
      return error;
  result.hostMicroseconds = std::chrono::duration<double, std::micro>(
                                std::chrono::steady_clock::now() - hostStart)
                                .count() /
                            warmUps;
  if (Error error = driver.synchronizeStream(stream))
    return error;

  // A whole number of rotations.
  result.graphLaunches =
      std::max(options.launches, result.copies) / result.copies * result.copies;
  if (Error error = driver.beginCapture(stream))
    return error;
  Error launchError = Error::success();
  for (int i = 0; i < result.graphLaunches && !launchError; ++i)
    launchError = launchOnce(i);
  Expected<cu::Graph> graph = driver.endCapture(stream);
  if (launchError) {
    if (!graph)
      consumeError(graph.takeError());
    return launchError;
  }
  if (!graph)
    return graph.takeError();
  llvm::scope_exit dropGraph(
      [&] { consumeError(driver.destroyGraph(*graph)); });
  Expected<size_t> nodes = driver.graphNodeCount(*graph);
  if (!nodes)
    return nodes.takeError();
  if (int64_t(*nodes) != result.graphLaunches)
    return makeError("the captured graph has " + Twine(*nodes) +
                     " nodes, expected " + Twine(result.graphLaunches));
  Expected<cu::GraphExec> executable = driver.instantiate(*graph);
  if (!executable)
    return executable.takeError();
  llvm::scope_exit dropExecutable(
      [&] { consumeError(driver.destroyGraphExec(*executable)); });

  std::vector<double> times;
  for (int i = 0; i <= options.replays; ++i) {
    Expected<double> us = timeReplay(*executable);
    if (!us)
      return us.takeError();
    if (i > 0) // the first warms up
      times.push_back(*us / result.graphLaunches);
  }
  result.microseconds = median(times);
  result.minimum = *std::min_element(times.begin(), times.end());
  result.maximum = *std::max_element(times.begin(), times.end());
  return Error::success();
}

Expected<Measurement> Bench::measure(const KernelArtifacts &artifacts,
                                     int64_t m, int64_t n, int64_t k) {
  if (m < 1)
    return makeError("--m: expected at least 1 to measure, got " + Twine(m));
  const LaunchDescription &launch = artifacts.launch;
  Expected<MatmulProblem> problem = problemOf(launch, m, n, k);
  if (!problem)
    return problem.takeError();
  Expected<std::shared_ptr<const Kernel>> kernel =
      Kernel::load(gpu, launch, artifacts.ptx, artifacts.cubin);
  if (!kernel)
    return kernel.takeError();

  Measurement result;
  int64_t weightBytes = packedWeightBytes(n, k, problem->activation.bits,
                                          problem->weight.weight.bits);
  result.copies = int(std::max<int64_t>(
      1, (options.rotationBytes + weightBytes - 1) / weightBytes));
  if (Error error = makeOperands(*problem, result.copies))
    return std::move(error);

  unsigned cElement = elementBytes(problem->output);
  // A sample of near-normal values, repeated.
  std::vector<uint32_t> xCodes = randomActivations(
      problem->activation, 1, std::min<int64_t>(m * k, 1 << 20), options.seed);
  std::vector<uint8_t> xPattern = codesToBytes(problem->activation, xCodes);
  if (problem->activation.bits == 4) { // two codes a byte, the first one lower
    for (size_t i = 0; i < xPattern.size() / 2; ++i)
      xPattern[i] = uint8_t(xPattern[2 * i] | xPattern[2 * i + 1] << 4);
    xPattern.resize(xPattern.size() / 2);
  }
  int64_t xBytes = m * k * problem->activation.bits / 8;
  if (Error error = fillWith(x, xPattern, size_t(xBytes)))
    return std::move(error);
  // Codes of 8 bits and less fill their range: bring them back to units.
  int64_t xScaleBytes = 0;
  if (problem->activationScale != ActivationScaleKind::None) {
    const NumberFormat &format = problem->activationScaleFormat;
    int64_t scales =
        problem->activationScale == ActivationScaleKind::Tensor ? 1 : m;
    if (int64_t group = problem->activationGroup)
      scales = (k + group - 1) / group * paddedScaleTokens(m);
    xScaleBytes = scales * format.bits / 8;
    double unit = 1 / problem->activation.maxFinite();
    if (Error error =
            fillWith(xScales,
                     format.isF32() ? floatBytes(float(unit))
                                    : codesToBytes(format, format.encode(unit)),
                     size_t(xScaleBytes)))
      return std::move(error);
  }
  if (problem->activationZeroPoint) {
    if (Error error = fillWith(xZeroPoints, std::vector<uint8_t>{3, 0, 0, 0},
                               size_t(4 * m)))
      return std::move(error);
    if (Error error = fillWith(weightSums, floatBytes(1.0f), size_t(4 * n)))
      return std::move(error);
  }
  if (Error error = reserve(c, size_t(m * n) * cElement))
    return std::move(error);
  if (problem->hasBias)
    if (Error error = fillWith(bias, std::vector<uint8_t>(cElement, 0),
                               size_t(n) * cElement))
      return std::move(error);
  int64_t workspaceBytes = launch.workspaceBytes(m, n);
  if (workspaceBytes > 0) {
    if (Error error = reserve(workspace, size_t(workspaceBytes)))
      return std::move(error);
    if (Error error = driver.fill(workspace.pointer, 0,
                                  size_t(launch.counterBytes(m, n))))
      return std::move(error);
    // The fill goes to the default stream, the launches do not.
    if (Error error = driver.synchronize())
      return std::move(error);
  }

  auto address = [](const Buffer &buffer) {
    return reinterpret_cast<void *>(buffer.pointer);
  };
  auto launchOnce = [&](int i) -> Error {
    const Operands &copy = operands[size_t(i % result.copies)];
    DenseArguments arguments;
    arguments.x = address(x);
    arguments.w = address(copy.weights);
    arguments.scales = address(copy.scales);
    arguments.zeroPoints =
        launch.zeroPoint == "none" ? nullptr : address(copy.zeroPoints);
    arguments.bias = problem->hasBias ? address(bias) : nullptr;
    arguments.c = address(c);
    arguments.workspace = workspaceBytes > 0 ? address(workspace) : nullptr;
    arguments.workspaceBytes = workspaceBytes;
    arguments.globalScales =
        launch.globalScale == "none" ? nullptr : address(copy.globalScales);
    arguments.activationScales = xScaleBytes ? address(xScales) : nullptr;
    if (problem->activationZeroPoint) {
      arguments.activationZeroPoints = address(xZeroPoints);
      arguments.weightSums = address(weightSums);
    }
    arguments.m = int32_t(m);
    arguments.n = int32_t(n);
    arguments.k = int32_t(k);
    arguments.ldx = int32_t(k);
    arguments.ldc = int32_t(n);
    return (*kernel)->launch(stream, arguments);
  };

  if (Error error = timeLaunches(result, launchOnce))
    return std::move(error);

  const Operands &one = operands.front();
  result.bytes = int64_t(one.weights.bytes + one.scales.bytes +
                         one.zeroPoints.bytes + one.globalScales.bytes) +
                 xBytes + xScaleBytes + m * n * cElement;
  result.flops = 2.0 * double(m) * double(n) * double(k);
  result.registers = (*kernel)->registers();
  result.localBytes = (*kernel)->localBytes();
  result.loadedFrom = (*kernel)->loadedFrom();
  return result;
}

} // namespace humming
