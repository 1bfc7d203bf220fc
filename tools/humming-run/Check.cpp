//===- Check.cpp - Run one kernel and check its results -------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "BufferImage.h"
#include "Humming/Target/Dequant.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

using namespace llvm;

namespace humming {

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

std::vector<int64_t> chooseFeatures(int64_t m, int64_t n, int64_t k,
                                    int64_t budget, uint64_t seed) {
  std::vector<int64_t> features;
  int64_t perFeature = std::max<int64_t>(1, m * k);
  int64_t count = std::max<int64_t>(256, budget / perFeature);
  if (count >= n) {
    for (int64_t i = 0; i < n; ++i)
      features.push_back(i);
    return features;
  }
  std::set<int64_t> chosen;
  for (int64_t i = 0; i < 64; ++i) {
    chosen.insert(i);
    chosen.insert(n - 1 - i);
  }
  Random random(seed ^ 0xfea7);
  while (int64_t(chosen.size()) < count)
    chosen.insert(int64_t(random.below(uint64_t(n))));
  features.assign(chosen.begin(), chosen.end());
  return features;
}

namespace {
/// One size's buffers and the bookkeeping of what went wrong.
class CheckRun {
public:
  CheckRun(Executor &executor, const KernelArtifacts &kernel,
           const HostLayer &layer, int64_t m, const CheckOptions &options)
      : executor(executor), kernel(kernel), launch(kernel.launch), layer(layer),
        m(m), options(options) {}

  Expected<CheckReport> run();

private:
  Error prepare();
  Error quantizeGathered();
  /// Whether activations are quantized after they have been gathered.
  bool quantizesGathered() const {
    return !layer.weights.kOrder.empty() &&
           (problem.activationGroup != 0 || problem.activation.bits == 4);
  }
  std::vector<uint8_t> scaleBytes(uint8_t poison) const;
  std::pair<double, double> scaleOf(int64_t row, int64_t column) const;
  Error runOnce(uint8_t poison, std::vector<uint8_t> &outputs);
  Error checkInputs(uint8_t poison);
  Error compare(ArrayRef<uint8_t> outputs);
  void fail(bool &flag, const Twine &detail) {
    flag = false;
    if (report.detail.empty())
      report.detail = detail.str();
  }

  Executor &executor;
  const KernelArtifacts &kernel;
  const LaunchDescription &launch;
  const HostLayer &layer;
  int64_t m;
  const CheckOptions &options;
  CheckReport report;

  MatmulProblem problem;
  KernelConfig config;
  LaunchSizes sizes;
  int64_t inputs = 0; ///< columns of the activations; k, less padding columns
  /// [m, inputs], codes; [m, k] in the columns' order if quantizesGathered().
  std::vector<uint32_t> activations;
  std::vector<uint8_t> xBytes; ///< [m, k], as the kernel reads them
  /// Empty, [1], [m] or [groups, m up to a multiple of 16].
  std::vector<float> xScales;
  std::vector<int32_t> xZeroPoints; ///< empty, [1] or [m]
  unsigned xElement = 2, cElement = 2;
  BufferImage images[kNumBufferSlots];
};
} // namespace

Error CheckRun::prepare() {
  int64_t n = layer.weights.n, k = layer.weights.k;
  inputs = layer.weights.inputs();
  Expected<MatmulProblem> parsed = problemOf(launch, m, n, k);
  if (!parsed)
    return parsed.takeError();
  problem = *parsed;
  Expected<KernelConfig> parsedConfig = configOf(launch);
  if (!parsedConfig)
    return parsedConfig.takeError();
  config = *parsedConfig;

  xElement = elementBytes(problem.activation);
  cElement = elementBytes(problem.output);
  sizes.m = int32_t(m);
  sizes.n = int32_t(n);
  sizes.k = int32_t(k);
  // Rows are longer than their data, by the least that the divisibility allows
  // beside one more element.
  sizes.ldx = int32_t(k + 3 * launch.kDivisor);
  sizes.ldc = int32_t(n + 5 * launch.nDivisor);

  if (quantizesGathered())
    return quantizeGathered();
  activations = randomActivations(problem.activation, m, inputs,
                                  options.seed ^ uint64_t(m));
  xBytes = codesToBytes(problem.activation, activations);
  if (problem.activation.bits == 4) { // two codes a byte, the first one lower
    for (size_t i = 0; i < xBytes.size() / 2; ++i)
      xBytes[i] = uint8_t(xBytes[2 * i] | xBytes[2 * i + 1] << 4);
    xBytes.resize(xBytes.size() / 2);
  }
  if (problem.activationScale != ActivationScaleKind::None) {
    Random random(options.seed ^ 0xac7);
    bool isTensor = problem.activationScale == ActivationScaleKind::Tensor;
    int64_t group = problem.activationGroup;
    int64_t rows = isTensor ? 1 : group ? paddedScaleTokens(m) : m;
    xScales.resize(size_t(rows * (group ? (k + group - 1) / group : 1)));
    for (float &scale : xScales) {
      double value = (0.5 + random.unit()) / problem.activation.maxFinite();
      const NumberFormat &format = problem.activationScaleFormat;
      scale = float(format.decode(format.encode(value)));
    }
    if (problem.activationZeroPoint) {
      xZeroPoints.resize(size_t(rows));
      for (int32_t &zero : xZeroPoints)
        zero = int32_t(random.below(256)) - 128;
    }
  }
  if (layer.weights.kOrder.empty())
    return Error::success();
  // The packed columns are in kOrder: gather the activations to match, by the
  // kernel that does it for an engine.
  if (!options.gather)
    return makeError("a layer with a column order: expected a gather kernel");
  if (Error error = executor.load(*options.gather))
    return error;
  std::vector<uint8_t> gathered;
  Expected<CheckReport> gather =
      runAndCheckGather(executor, *options.gather, xBytes, m, inputs, inputs,
                        layer.weights.kOrder, &gathered);
  if (!gather)
    return gather.takeError();
  if (!gather->ok)
    return makeError(options.gather->name + ": " + gather->detail);
  xBytes = std::move(gathered);
  return executor.load(kernel);
}

/// As an engine does it: gathers random 16-bit activations into the order of
/// the layer's columns, then quantizes them there, by the kernels for both.
Error CheckRun::quantizeGathered() {
  if (!options.gather || !options.quantize)
    return makeError("a layer with a column order and activations of 4 bits or "
                     "in groups: expected a gather and a quantize kernel");
  int64_t k = layer.weights.k;
  Expected<QuantizeProblem> quantize =
      quantizeProblemOf(options.quantize->launch, m, k);
  if (!quantize)
    return quantize.takeError();
  if (quantize->codes.format != problem.activation ||
      quantize->codes.group != problem.activationGroup ||
      quantize->codes.scaleFormat != problem.activationScaleFormat ||
      quantize->scale != problem.activationScale)
    return makeError("expected a quantize kernel to the matmul's activations "
                     "and scales, got " +
                     options.quantize->name);
  std::vector<uint8_t> values = codesToBytes(
      quantize->input, randomActivations(quantize->input, m, inputs,
                                         options.seed ^ uint64_t(m)));
  if (Error error = executor.load(*options.gather))
    return error;
  std::vector<uint8_t> gathered;
  Expected<CheckReport> gather =
      runAndCheckGather(executor, *options.gather, values, m, inputs, inputs,
                        layer.weights.kOrder, &gathered);
  if (!gather)
    return gather.takeError();
  if (!gather->ok)
    return makeError(options.gather->name + ": " + gather->detail);

  std::vector<uint32_t> columns(size_t(m * k));
  for (size_t i = 0; i < columns.size(); ++i)
    columns[i] = uint32_t(gathered[2 * i] | gathered[2 * i + 1] << 8);
  if (Error error = executor.load(*options.quantize))
    return error;
  QuantizedActivationBytes quantized;
  Expected<CheckReport> report = runAndCheckQuantize(
      executor, *options.quantize, columns, m, k, options, quantized);
  if (!report)
    return report.takeError();
  if (!report->ok)
    return makeError(options.quantize->name + ": " + report->detail);

  xBytes = std::move(quantized.codes);
  activations.clear();
  bool isHalf = problem.activation.bits == 4; // k is even then
  for (uint8_t byte : xBytes) {
    activations.push_back(isHalf ? byte & 15 : byte);
    if (isHalf)
      activations.push_back(byte >> 4);
  }
  if (problem.activationGroup == 0) {
    xScales = std::move(quantized.scales);
    return executor.load(kernel);
  }
  int64_t groups = m == 0 ? 0 : int64_t(quantized.scales.size()) / m;
  xScales.assign(size_t(groups * paddedScaleTokens(m)), 1.0f);
  for (int64_t g = 0; g < groups; ++g)
    std::copy_n(quantized.scales.begin() + g * m, m,
                xScales.begin() + g * paddedScaleTokens(m));
  return executor.load(kernel);
}

/// The activation scales as the kernel reads them; the padding of a row of
/// groups' scales is poison.
std::vector<uint8_t> CheckRun::scaleBytes(uint8_t poison) const {
  const NumberFormat &format = problem.activationScaleFormat;
  std::vector<uint8_t> bytes(xScales.size() * format.bits / 8, poison);
  int64_t row =
      problem.activationGroup ? paddedScaleTokens(m) : int64_t(xScales.size());
  int64_t used = problem.activationGroup ? m : row;
  for (size_t i = 0; i < xScales.size(); ++i) {
    if (int64_t(i) % row >= used)
      continue;
    uint32_t code = format.isF32() ? bit_cast<uint32_t>(xScales[i])
                                   : format.encode(xScales[i]);
    for (unsigned byte = 0; byte < format.bits / 8u; ++byte)
      bytes[i * format.bits / 8 + byte] = uint8_t(code >> (8 * byte));
  }
  return bytes;
}

/// The scale and the zero point of an activation.
std::pair<double, double> CheckRun::scaleOf(int64_t row, int64_t column) const {
  if (xScales.empty())
    return {1, 0};
  size_t index =
      problem.activationScale == ActivationScaleKind::Tensor ? 0 : size_t(row);
  double zero = xZeroPoints.empty() ? 0 : xZeroPoints[index];
  if (int64_t group = problem.activationGroup)
    index += size_t(column / group * paddedScaleTokens(m));
  return {xScales[index], zero};
}

Error CheckRun::runOnce(uint8_t poison, std::vector<uint8_t> &outputs) {
  int64_t n = sizes.n, k = sizes.k;
  auto xSize = [&](int64_t elements) {
    return size_t(elements * problem.activation.bits / 8);
  };
  std::vector<uint8_t> padded(xSize(m * sizes.ldx), poison);
  for (int64_t row = 0; row < m; ++row)
    std::memcpy(&padded[xSize(row * sizes.ldx)], &xBytes[xSize(row * k)],
                xSize(k));
  auto image = [&](BufferSlot slot) -> BufferImage & {
    return images[unsigned(slot)];
  };
  image(BufferSlot::X).assign(padded, poison);
  image(BufferSlot::Weights).assign(layer.packedWeights, poison);
  image(BufferSlot::Scales).assign(layer.packedScales, poison);
  if (!layer.packedZeroPoints.empty())
    image(BufferSlot::ZeroPoints).assign(layer.packedZeroPoints, poison);
  if (!layer.bias.empty())
    image(BufferSlot::Bias).assign(layer.bias, poison);
  if (!layer.globalScales.empty())
    image(BufferSlot::GlobalScales).assign(layer.globalScales, poison);
  if (!xScales.empty())
    image(BufferSlot::ActivationScales).assign(scaleBytes(poison), poison);
  if (!xZeroPoints.empty()) {
    image(BufferSlot::ActivationZeroPoints)
        .assign(ArrayRef<uint8_t>(
                    reinterpret_cast<const uint8_t *>(xZeroPoints.data()),
                    4 * xZeroPoints.size()),
                poison);
    image(BufferSlot::WeightSums).assign(layer.weightSums, poison);
  }
  std::vector<uint8_t> blank(size_t(m) * sizes.ldc * cElement, poison);
  image(BufferSlot::Output).assign(blank, poison);
  int64_t counters = launch.counterBytes(m, n);
  int64_t workspaceBytes = launch.workspaceBytes(m, n);
  if (workspaceBytes > 0) {
    std::vector<uint8_t> workspace(size_t(workspaceBytes), poison);
    std::fill_n(workspace.begin(), counters, uint8_t(0));
    image(BufferSlot::Workspace).assign(workspace, poison);
  }
  for (unsigned slot = 0; slot < kNumBufferSlots; ++slot)
    if (Error error = executor.upload(BufferSlot(slot), images[slot].bytes))
      return error;

  // Twice, without touching the workspace in between: the counters of the first
  // launch must have been left as the second needs them.
  for (int repeat = 0; repeat < 2; ++repeat)
    if (Error error = executor.launch(sizes))
      return error;

  BufferImage &c = image(BufferSlot::Output);
  if (Error error = executor.download(BufferSlot::Output, c.bytes))
    return error;
  if (std::optional<int64_t> at = c.damagedGuard(poison))
    fail(report.guardsIntact, "c was written out of bounds, at byte " +
                                  Twine(*at) + " of " + Twine(c.data().size()));
  outputs.resize(size_t(m * n) * cElement);
  for (int64_t row = 0; row < m; ++row) {
    const uint8_t *from = c.data().data() + row * sizes.ldc * cElement;
    std::memcpy(&outputs[size_t(row * n * cElement)], from,
                size_t(n) * cElement);
    for (int64_t i = n * cElement; i < sizes.ldc * int64_t(cElement); ++i)
      if (from[i] != poison && report.paddingIntact)
        fail(report.paddingIntact, "the padding of row " + Twine(row) +
                                       " of c was written, at element " +
                                       Twine(i / cElement));
  }
  if (workspaceBytes > 0) {
    BufferImage &workspace = image(BufferSlot::Workspace);
    if (Error error = executor.download(BufferSlot::Workspace, workspace.bytes))
      return error;
    if (std::optional<int64_t> at = workspace.damagedGuard(poison))
      fail(report.guardsIntact,
           "the workspace was written out of bounds, at byte " + Twine(*at) +
               " of " + Twine(workspaceBytes));
    if (!all_of(workspace.data().take_front(counters),
                [](uint8_t byte) { return byte == 0; }))
      fail(report.countersZero, "the split-K counters are not zero after the "
                                "launch");
  }
  return checkInputs(poison);
}

/// Reads every input back: its guards and its content must be as uploaded.
Error CheckRun::checkInputs(uint8_t poison) {
  BufferImage back;
  for (BufferSlot slot :
       {BufferSlot::X, BufferSlot::Weights, BufferSlot::Scales,
        BufferSlot::ZeroPoints, BufferSlot::Bias, BufferSlot::ActivationScales,
        BufferSlot::ActivationZeroPoints, BufferSlot::WeightSums}) {
    const BufferImage &sent = images[unsigned(slot)];
    if (sent.empty())
      continue;
    back.bytes.resize(sent.bytes.size());
    if (Error error = executor.download(slot, back.bytes))
      return error;
    if (std::optional<int64_t> at = back.damagedGuard(poison))
      fail(report.guardsIntact, stringify(slot) +
                                    " was written out of bounds, at byte " +
                                    Twine(*at));
    else if (back.bytes != sent.bytes)
      fail(report.inputsIntact, stringify(slot) + " was changed");
  }
  return Error::success();
}

Error CheckRun::compare(ArrayRef<uint8_t> outputs) {
  int64_t n = sizes.n, k = sizes.k;
  std::vector<double> got = decodeElements(problem.output, outputs);
  report.outputs = m * n;
  report.nans = count_if(got, [](double value) { return value != value; });
  if (m == 0) {
    report.comparison = Comparison();
    return Error::success();
  }
  std::vector<int64_t> features =
      chooseFeatures(m, n, k, options.referenceBudget, options.seed);
  report.checked = m * int64_t(features.size());

  std::vector<double> x(size_t(m * inputs));
  bool isOrdered = quantizesGathered();
  int64_t columns = isOrdered ? k : inputs;
  for (auto [i, code] : enumerate(activations)) {
    int64_t row = int64_t(i) / columns, column = int64_t(i) % columns;
    auto [scale, zero] = scaleOf(row, column);
    int64_t at = isOrdered ? layer.weights.kOrder[size_t(column)] : column;
    if (at >= 0)
      x[size_t(row * inputs + at)] =
          (problem.activation.decode(code) - zero) * scale;
  }
  std::vector<double> offsets;
  if (!xZeroPoints.empty())
    for (int64_t row = 0; row < m; ++row) {
      auto [scale, zero] = scaleOf(row, 0);
      offsets.push_back(scale * zero);
    }
  ReferenceOptions referenceOptions;
  referenceOptions.offsets = offsets;
  referenceOptions.numerics = numericsOf(problem, config);
  std::vector<double> sumScales;
  if (problem.accumulator.isF16()) {
    double factor =
        std::ldexp(1.0, dequantExponent(problem.weight,
                                        referenceOptions.numerics.operand));
    for (int64_t row = 0; row < m; ++row) {
      double largest = 0;
      int64_t group = problem.activationGroup;
      for (int64_t j = 0; j < k; j += group ? group : k)
        largest = std::max(largest, std::fabs(scaleOf(row, j).first));
      sumScales.push_back(largest * factor);
    }
    referenceOptions.sumScales = sumScales;
  }
  if (int64_t(features.size()) < n)
    referenceOptions.features = features;
  Expected<ReferenceResult> reference =
      referenceMatmul(x, m, inputs, layer.weights, referenceOptions);
  if (!reference)
    return reference.takeError();

  if (int64_t(features.size()) < n) {
    std::vector<double> sample;
    sample.reserve(size_t(m) * features.size());
    for (int64_t row = 0; row < m; ++row)
      for (int64_t feature : features)
        sample.push_back(got[size_t(row * n + feature)]);
    got = std::move(sample);
  }
  report.comparison = compareWithReference(
      *reference, got, int64_t(features.size()), problem.output,
      /*probable=*/true);
  Comparison &comparison = report.comparison;
  if (!comparison.ok && comparison.feature >= 0 &&
      comparison.feature < int64_t(features.size()))
    comparison.feature = features[size_t(comparison.feature)];
  if (!comparison.ok && report.detail.empty())
    report.detail = comparison.str();
  // The reference of finite inputs has no NaN, so none may be in the outputs
  // that were not compared either.
  if (report.nans > 0 && report.detail.empty())
    report.detail = std::to_string(report.nans) + " outputs are NaN";
  return Error::success();
}

Expected<CheckReport> CheckRun::run() {
  if (Error error = prepare())
    return std::move(error);
  std::vector<uint8_t> first, outputs;
  for (uint8_t poison : kPoisons) {
    if (Error error = runOnce(poison, outputs))
      return std::move(error);
    if (poison == kPoisons[0]) {
      first = outputs;
      continue;
    }
    if (outputs != first) {
      size_t at = size_t(
          std::mismatch(first.begin(), first.end(), outputs.begin()).first -
          first.begin());
      int64_t element = int64_t(at / cElement);
      fail(report.deterministic,
           "the result depends on bytes that it must not depend on (or was "
           "not written): row " +
               Twine(element / sizes.n) + ", feature " +
               Twine(element % sizes.n));
    }
  }
  if (Error error = compare(first))
    return std::move(error);
  report.ok = report.comparison.ok && report.guardsIntact &&
              report.inputsIntact && report.paddingIntact &&
              report.deterministic && report.countersZero && report.nans == 0;
  return std::move(report);
}

Expected<CheckReport> runAndCheck(Executor &executor,
                                  const KernelArtifacts &kernel,
                                  const HostLayer &layer, int64_t m,
                                  const CheckOptions &options) {
  if (layer.weights.n > INT32_MAX - 64 || layer.weights.k > INT32_MAX - 64)
    return makeError("n and k: expected at most 2147483583");
  return CheckRun(executor, kernel, layer, m, options).run();
}

/// JSON has no infinity and no NaN.
static json::Value number(double value) {
  if (value != value)
    return "nan";
  if (value - value != 0)
    return value > 0 ? "inf" : "-inf";
  return value;
}

void CheckReport::addTo(json::Object &object) const {
  object["ok"] = ok;
  object["max_error"] = number(comparison.maxError);
  object["relative_frobenius"] = number(comparison.relativeFrobenius);
  object["bound"] = number(comparison.bound);
  object["error_over_bound"] = number(comparison.worstRatio);
  object["outputs"] = outputs;
  object["checked"] = checked;
  object["guards_intact"] = guardsIntact;
  object["inputs_intact"] = inputsIntact;
  object["padding_intact"] = paddingIntact;
  object["deterministic"] = deterministic;
  object["counters_zero"] = countersZero;
  if (!detail.empty())
    object["detail"] = detail;
}

} // namespace humming
