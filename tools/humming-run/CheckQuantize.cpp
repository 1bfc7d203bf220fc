//===- CheckQuantize.cpp - Run one quantize kernel and check it -----------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Without a gate, codes, scales and zero points must have the very bits of
// humming::quantizeScale and quantizeValue. A gate's value y is known to within
// gateError e: the scale must lie between those of the ranges of y - e and y +
// e, and, both functions being monotonic, each code between the codes of y - e
// and y + e under the scale that the kernel chose.
//
// Among the rows are one of zeros, one with an infinity, one with a NaN and one
// of subnormal numbers.
//
//===----------------------------------------------------------------------===//

#include "BufferImage.h"
#include "Check.h"
#include "Humming/Quant/Float16.h"
#include "Humming/Target/Quantize.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;

namespace humming {

namespace {
class QuantizeCheck {
public:
  QuantizeCheck(Executor &executor, const QuantizeProblem &problem,
                const CheckOptions &options)
      : executor(executor), problem(problem), m(problem.m), k(problem.k),
        options(options) {}

  Expected<CheckReport> run();
  /// Codes [m, columns] to quantize in place of random ones.
  void useInput(ArrayRef<uint32_t> codes) {
    x.assign(codes.begin(), codes.end());
    isGiven = true;
  }
  /// The result of run().
  QuantizedActivationBytes takeOutputs();

private:
  struct Outputs {
    std::vector<uint8_t> codes, scales, zeroPoints;
    bool operator==(const Outputs &o) const {
      return codes == o.codes && scales == o.scales &&
             zeroPoints == o.zeroPoints;
    }
  };

  void makeInput(Random &random);
  void prepare();
  Expected<Outputs> runOnce(uint8_t poison);
  void compareSegment(const Outputs &outputs, int64_t row, int64_t group);
  void fail(bool &flag, const Twine &detail) {
    flag = false;
    if (report.detail.empty())
      report.detail = detail.str();
  }
  bool isStatic() const { return problem.scale == ActivationScaleKind::Tensor; }
  int64_t groupSize() const {
    return problem.codes.group ? problem.codes.group : k;
  }
  int64_t columns() const { return problem.gate == GateKind::None ? k : 2 * k; }
  double input(int64_t row, int64_t column) const {
    return problem.input.decode(x[size_t(row * columns() + column)]);
  }
  /// Bytes of a row of `count` codes.
  int64_t codeBytes(int64_t count) const {
    return (count * problem.codes.format.bits + 7) / 8;
  }

  Executor &executor;
  QuantizeProblem problem;
  int64_t m, k;
  const CheckOptions &options;
  CheckReport report;
  LaunchSizes sizes;
  std::vector<uint32_t> x; ///< [m, columns], codes
  bool isGiven = false;    ///< whether x is the caller's
  std::optional<Outputs> first;
  float staticScale = 1;
  int32_t staticZero = 0;
  int64_t mismatches = 0;
};
} // namespace

/// Random rows of different magnitude, some of zeros, subnormals, NaN.
void QuantizeCheck::makeInput(Random &random) {
  x = randomActivations(problem.input, m, columns(),
                        options.seed ^ uint64_t(m));
  bool isBF16 = problem.input.isBF16();
  for (int64_t row = 0; row < m; ++row) {
    uint32_t *values = x.data() + row * columns();
    double factor = std::exp2(double(random.below(9)) - 4);
    for (int64_t j = 0; j < columns(); ++j)
      values[j] =
          problem.input.encode(problem.input.decode(values[j]) * factor);
    int64_t at = int64_t(random.below(uint64_t(columns())));
    if (row % 8 == 1)
      std::fill(values, values + columns(), 0u);
    else if (row % 8 == 2 && !isStatic())
      values[at] = isBF16 ? 0x7F80 : 0xFC00; // inf, -inf
    else if (row % 8 == 3)
      values[at] = isBF16 ? 0xFFC0 : 0x7E00; // NaN
    else if (row % 8 == 4)
      for (int64_t j = 0; j < columns(); ++j)
        values[j] &= 0x803F; // subnormals
  }
}

void QuantizeCheck::prepare() {
  Random random(options.seed ^ 0x9a71);
  if (!isGiven)
    makeInput(random);
  staticScale = float(
      (0.4 + random.unit()) /
      (problem.codes.zeroPoint ? 64 : largestCode(problem.codes.format) / 2));
  staticZero = problem.codes.zeroPoint ? int32_t(random.below(200)) - 100 : 0;
  sizes.m = int32_t(m);
  sizes.k = int32_t(k);
  sizes.ldx = int32_t(columns() + 3 * problem.kDivisor);
  sizes.ldc = int32_t(k + 5 * problem.kDivisor);
  if (problem.codes.format.bits == 4)
    sizes.ldc += sizes.ldc % 2;
}

static void append(std::vector<uint8_t> &bytes, uint32_t value) {
  for (unsigned byte = 0; byte < 4; ++byte)
    bytes.push_back(uint8_t(value >> (8 * byte)));
}

Expected<QuantizeCheck::Outputs> QuantizeCheck::runOnce(uint8_t poison) {
  BufferImage images[kNumBufferSlots];
  auto image = [&](BufferSlot slot) -> BufferImage & {
    return images[unsigned(slot)];
  };
  std::vector<uint8_t> padded(size_t(2 * m * sizes.ldx), poison);
  for (int64_t row = 0; row < m; ++row)
    for (int64_t j = 0; j < columns(); ++j)
      for (unsigned byte = 0; byte < 2; ++byte)
        padded[size_t(2 * (row * sizes.ldx + j) + byte)] =
            uint8_t(x[size_t(row * columns() + j)] >> (8 * byte));
  image(BufferSlot::X).assign(padded, poison);
  int64_t rowBytes = sizes.ldc * problem.codes.format.bits / 8;
  image(BufferSlot::Output)
      .assign(std::vector<uint8_t>(size_t(m * rowBytes), poison), poison);
  int64_t groups = (k + groupSize() - 1) / groupSize();
  int64_t scaleTokens = problem.codes.group ? paddedScaleTokens(m) : m;
  int64_t scaleBytes = problem.codes.scaleFormat.bits / 8;
  std::vector<uint8_t> scales, zeros;
  if (isStatic()) {
    append(scales, bit_cast<uint32_t>(staticScale));
    append(zeros, uint32_t(staticZero));
  } else {
    scales.assign(size_t(groups * scaleTokens * scaleBytes), poison);
    zeros.assign(size_t(4 * m), poison);
  }
  image(BufferSlot::Scales).assign(scales, poison);
  if (problem.codes.zeroPoint)
    image(BufferSlot::ZeroPoints).assign(zeros, poison);
  for (unsigned slot = 0; slot < kNumBufferSlots; ++slot)
    if (Error error = executor.upload(BufferSlot(slot), images[slot].bytes))
      return std::move(error);
  if (Error error = executor.launch(sizes))
    return std::move(error);

  Outputs outputs;
  for (BufferSlot slot : {BufferSlot::X, BufferSlot::Output, BufferSlot::Scales,
                          BufferSlot::ZeroPoints}) {
    BufferImage &buffer = image(slot);
    if (buffer.empty())
      continue;
    std::vector<uint8_t> sent = buffer.bytes;
    if (Error error = executor.download(slot, buffer.bytes))
      return std::move(error);
    if (std::optional<int64_t> at = buffer.damagedGuard(poison))
      fail(report.guardsIntact, stringify(slot) +
                                    " was written out of bounds, at byte " +
                                    Twine(*at));
    bool isInput =
        slot == BufferSlot::X || (isStatic() && slot != BufferSlot::Output);
    if (isInput && buffer.bytes != sent)
      fail(report.inputsIntact, stringify(slot) + " was changed");
  }
  MutableArrayRef<uint8_t> codes = image(BufferSlot::Output).data();
  for (int64_t row = 0; row < m; ++row) {
    auto line = codes.slice(size_t(row * rowBytes), size_t(rowBytes));
    outputs.codes.insert(outputs.codes.end(), line.begin(),
                         line.begin() + codeBytes(k));
    for (uint8_t byte : line.drop_front(size_t(codeBytes(k))))
      if (byte != poison)
        fail(report.paddingIntact,
             "the padding of row " + Twine(row) + " of the codes was written");
  }
  if (isStatic())
    return outputs;
  MutableArrayRef<uint8_t> got = image(BufferSlot::Scales).data();
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t i = 0; i < scaleTokens * scaleBytes; ++i) {
      uint8_t byte = got[size_t(group * scaleTokens * scaleBytes + i)];
      if (i < m * scaleBytes)
        outputs.scales.push_back(byte);
      else if (byte != poison)
        fail(report.paddingIntact, "the padding of the scales was written");
    }
  if (problem.codes.zeroPoint)
    outputs.zeroPoints = image(BufferSlot::ZeroPoints).data().vec();
  return outputs;
}

static uint32_t wordAt(ArrayRef<uint8_t> bytes, int64_t index) {
  uint32_t value = 0;
  for (int64_t byte = 0; byte < 4; ++byte)
    value |= uint32_t(bytes[size_t(4 * index + byte)]) << (8 * byte);
  return value;
}

/// Whether `value` is between `low` and `high`, or all are NaN.
static bool isWithin(double value, double low, double high) {
  if (std::isnan(low) || std::isnan(high))
    return std::isnan(value);
  return value >= std::min(low, high) && value <= std::max(low, high);
}

void QuantizeCheck::compareSegment(const Outputs &outputs, int64_t row,
                                   int64_t group) {
  const ActivationCodes &codes = problem.codes;
  int64_t begin = group * groupSize(), end = std::min(k, begin + groupSize());
  // The values, and bounds on them in f32.
  struct Value {
    float low, high;
  };
  std::vector<Value> values;
  float highs[2] = {0, 0}, lows[2] = {0, 0}; // for the lower, the upper bounds
  bool special = false;
  for (int64_t j = begin; j < end; ++j) {
    double gate = input(row, j), value = gate, error = 0;
    if (problem.gate != GateKind::None) {
      double factor = input(row, k + j);
      value = gateValue(problem.gate, gate) * factor;
      error = gateError(problem.gate, gate, factor);
    }
    Value v = {float(value - error), float(value + error)};
    special |= !std::isfinite(value);
    values.push_back(v);
    double magnitude = std::fabs(value);
    highs[0] =
        std::max(highs[0], codes.zeroPoint ? v.low : float(magnitude - error));
    highs[1] =
        std::max(highs[1], codes.zeroPoint ? v.high : float(magnitude + error));
    lows[0] = std::min(lows[0], v.high);
    lows[1] = std::min(lows[1], v.low);
  }
  if (special)
    highs[0] = highs[1] = std::numeric_limits<float>::infinity();

  auto mismatch = [&](const Twine &what, double got, double low, double high) {
    ++mismatches;
    if (report.detail.empty()) {
      report.detail = (what + " of row " + Twine(row) + ": expected " +
                       std::to_string(low) + " to " + std::to_string(high) +
                       ", got " + std::to_string(got))
                          .str();
      report.comparison.row = row;
      report.comparison.feature = begin;
    }
  };
  SegmentScale scale;
  if (isStatic()) {
    scale.scale = staticScale;
    scale.inverse = 1.0f / staticScale;
    scale.zeroPoint = staticZero;
  } else {
    SegmentScale least = quantizeScale(codes, highs[0], lows[0]);
    SegmentScale most = quantizeScale(codes, highs[1], lows[1]);
    bool isE8M0 = codes.scaleFormat.isE8M0();
    int64_t index = group * m + row;
    scale.code =
        isE8M0 ? outputs.scales[size_t(index)] : wordAt(outputs.scales, index);
    scale.scale = isE8M0 ? float(codes.scaleFormat.decode(scale.code))
                         : bit_cast<float>(scale.code);
    if (!isWithin(scale.scale, least.scale, most.scale))
      return mismatch("scale " + Twine(group), scale.scale, least.scale,
                      most.scale);
    scale.inverse = special ? 0.0f : 1.0f / scale.scale;
    if (codes.zeroPoint) {
      scale.zeroPoint = int32_t(wordAt(outputs.zeroPoints, row));
      // The range's two ends move the zero point against each other.
      SegmentScale first = quantizeScale(codes, highs[1], lows[0]);
      SegmentScale second = quantizeScale(codes, highs[0], lows[1]);
      if (!isWithin(scale.zeroPoint, first.zeroPoint, second.zeroPoint))
        return mismatch("zero point", scale.zeroPoint, first.zeroPoint,
                        second.zeroPoint);
    }
  }
  for (int64_t j = begin; j < end; ++j) {
    uint8_t byte =
        outputs.codes[size_t(row * codeBytes(k) + j * codes.format.bits / 8)];
    uint32_t code = codes.format.bits == 8 ? byte
                    : j % 2 == 0           ? byte & 15
                                           : byte >> 4;
    const Value &v = values[size_t(j - begin)];
    double low = codes.format.decode(quantizeValue(codes, scale, v.low));
    double high = codes.format.decode(quantizeValue(codes, scale, v.high));
    double got = codes.format.decode(code);
    if (!isWithin(got, low, high))
      mismatch("code " + Twine(j), got, low, high);
    report.comparison.maxError =
        std::max(report.comparison.maxError, std::fabs(got - low));
  }
  if (codes.format.bits == 4 && k % 2 == 1 && end == k)
    if (outputs.codes[size_t((row + 1) * codeBytes(k) - 1)] >> 4)
      fail(report.paddingIntact, "the half byte past the row is not 0");
}

Expected<CheckReport> QuantizeCheck::run() {
  prepare();
  for (uint8_t poison : kPoisons) {
    Expected<Outputs> outputs = runOnce(poison);
    if (!outputs)
      return outputs.takeError();
    if (!first)
      first = std::move(*outputs);
    else if (!(*first == *outputs))
      fail(report.deterministic, "the result depends on bytes that it must not "
                                 "depend on (or was not written)");
  }
  report.outputs = report.checked = m * k;
  for (int64_t row = 0; row < m; ++row)
    for (int64_t group = 0; group * groupSize() < k; ++group)
      compareSegment(*first, row, group);
  report.comparison.mismatches = mismatches;
  report.comparison.ok = mismatches == 0;
  report.ok = mismatches == 0 && report.guardsIntact && report.inputsIntact &&
              report.paddingIntact && report.deterministic;
  return report;
}

Expected<CheckReport> runAndCheckQuantize(Executor &executor,
                                          const KernelArtifacts &kernel,
                                          int64_t m, int64_t k,
                                          const CheckOptions &options) {
  Expected<QuantizeProblem> problem = quantizeProblemOf(kernel.launch, m, k);
  if (!problem)
    return problem.takeError();
  return QuantizeCheck(executor, *problem, options).run();
}

QuantizedActivationBytes QuantizeCheck::takeOutputs() {
  QuantizedActivationBytes result;
  const NumberFormat &format = problem.codes.scaleFormat;
  if (isStatic())
    result.scales.push_back(staticScale);
  else if (first)
    for (size_t at = 0; at < first->scales.size(); at += format.bits / 8)
      result.scales.push_back(
          format.isF32()
              ? bit_cast<float>(wordAt(first->scales, int64_t(at / 4)))
              : float(format.decode(first->scales[at])));
  if (first)
    result.codes = std::move(first->codes);
  return result;
}

Expected<CheckReport> runAndCheckQuantize(Executor &executor,
                                          const KernelArtifacts &kernel,
                                          ArrayRef<uint32_t> x, int64_t m,
                                          int64_t k,
                                          const CheckOptions &options,
                                          QuantizedActivationBytes &result) {
  Expected<QuantizeProblem> problem = quantizeProblemOf(kernel.launch, m, k);
  if (!problem)
    return problem.takeError();
  if (problem->gate != GateKind::None || problem->codes.zeroPoint)
    return createStringError("expected a quantize kernel without a gate and "
                             "zero points, got " +
                             kernel.name);
  QuantizeCheck check(executor, *problem, options);
  check.useInput(x);
  Expected<CheckReport> report = check.run();
  if (report)
    result = check.takeOutputs();
  return report;
}

} // namespace humming
