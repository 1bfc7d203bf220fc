//===- Layer.cpp - One layer's buffers on the host ------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layer.h"
#include "Humming/Quant/Checkpoint.h"
#include "Humming/Quant/Packing.h"
#include "Humming/Target/Dequant.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

using namespace llvm;

namespace humming {

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

Expected<HostLayer> packLayer(QuantizedWeights weights,
                              const MatmulProblem &problem) {
  if (Error error = weights.verify())
    return std::move(error);
  if (weights.n != problem.n || weights.k != problem.k)
    return makeError("layer: expected " + Twine(problem.n) + " x " +
                     Twine(problem.k) + " weights, got " + Twine(weights.n) +
                     " x " + Twine(weights.k));
  if (weights.type != problem.weight)
    return makeError("layer: expected weights " + problem.weight.str() +
                     ", got " + weights.type.str());
  if (problem.hasBias && weights.bias.empty())
    weights.bias.assign(size_t(weights.n), 0.0f);

  HostLayer layer;
  unsigned activationBits = problem.activation.bits;
  if (problem.weightLayout == WeightLayout::Plain) {
    layer.packedWeights = weights.codes; // a byte each, row-major
  } else {
    Expected<std::vector<uint8_t>> codes = weights.packCodes(activationBits);
    if (!codes)
      return codes.takeError();
    layer.packedWeights = std::move(*codes);
  }
  Expected<std::vector<uint8_t>> scales = weights.packScales();
  if (!scales)
    return scales.takeError();
  layer.packedScales = std::move(*scales);
  Expected<std::vector<uint8_t>> zeroPoints = weights.packZeroPoints();
  if (!zeroPoints)
    return zeroPoints.takeError();
  layer.packedZeroPoints = std::move(*zeroPoints);
  for (float scale : weights.globalScales)
    for (unsigned byte = 0; byte < 4; ++byte)
      layer.globalScales.push_back(
          uint8_t(bit_cast<uint32_t>(scale) >> (8 * byte)));
  if (problem.activationZeroPoint)
    for (float sum : weights.rowSums())
      for (unsigned byte = 0; byte < 4; ++byte)
        layer.weightSums.push_back(
            uint8_t(bit_cast<uint32_t>(sum) >> (8 * byte)));
  if (problem.hasBias) {
    // The kernel reads the bias in the output's format: what it reads is what
    // the reference adds.
    std::vector<uint32_t> biasCodes;
    for (float &value : weights.bias) {
      uint32_t code = problem.output.encode(value);
      biasCodes.push_back(code);
      value = float(problem.output.decode(code));
    }
    layer.bias = codesToBytes(problem.output, biasCodes);
  } else {
    weights.bias.clear();
  }
  layer.weights = std::move(weights);
  return layer;
}

Expected<HostLayer> makeRandomLayer(const MatmulProblem &problem,
                                    uint64_t seed) {
  if (Error error = problem.weight.verify())
    return std::move(error);
  QuantizedWeights weights =
      randomWeights(problem.weight, problem.n, problem.k, seed);
  if (problem.hasBias) {
    Random random(seed ^ 0xb1a5);
    weights.bias.resize(size_t(problem.n));
    for (float &value : weights.bias)
      value = float(random.normal());
  }
  return packLayer(std::move(weights), problem);
}

Expected<QuantizedWeights> readLayerFlag(StringRef text, StringRef zeros) {
  // The prefix has no colon, a file name may have one.
  auto [file, prefix] = text.rsplit(':');
  if (file.empty() || prefix.empty())
    return makeError("--layer: expected FILE:PREFIX, got '" + text + "'");
  GptqZeros convention = GptqZeros::Unknown;
  if (!zeros.empty()) {
    Expected<GptqZeros> parsed = parseGptqZeros(zeros);
    if (!parsed)
      return makeError("--gptq-zeros: " + toString(parsed.takeError()));
    convention = *parsed;
  }
  Expected<Checkpoint> checkpoint = Checkpoint::open(file);
  if (!checkpoint)
    return makeError("--layer: " + toString(checkpoint.takeError()));
  Expected<QuantizedWeights> weights =
      readLayer(*checkpoint, prefix, convention);
  if (!weights)
    return makeError("--layer: " + toString(weights.takeError()));
  return std::move(*weights);
}

/// The reduction length in the instruction's name: 16 in m16n8k16.
static int32_t reductionOf(StringRef mma) {
  int32_t k = 16;
  StringRef digits = mma.rsplit('k').second;
  (void)digits.getAsInteger(10, k);
  return k;
}

KernelNumerics numericsOf(const MatmulProblem &problem,
                          const KernelConfig &config) {
  KernelNumerics numerics;
  numerics.operand = weightOperand(problem.weight, problem.activation);
  numerics.output = problem.output;
  numerics.scale = config.scale == ScalePlacement::Operand ? ScaleSite::Operand
                   : config.scale == ScalePlacement::Accumulator
                       ? ScaleSite::Accumulator
                       : ScaleSite::Epilogue;
  // wgmma, like the largest mma.sync, takes 32 bytes of K.
  numerics.mmaK = config.mma == MmaKind::Wgmma
                      ? 256 / problem.activation.bits
                      : reductionOf(stringify(config.mma));
  numerics.exactAccumulation = problem.activation.isInteger();
  // The sums of 8-bit floats keep 13 bits below the largest term, on Ada as on
  // Hopper (sources in lib/Quant/Reference.cpp); the emulator models it.
  if (problem.activation.isFloat() && problem.activation.bits == 8)
    numerics.accumulator.mantissaBits = 13;
  if (problem.accumulator.isF16())
    numerics.accumulator = NumberFormat::f16();
  // No partial sum is longer than a warp's part of a stage.
  if (problem.accumulator.isF16() || problem.activationGroup != 0) {
    numerics.partialK = config.blockK / config.warpsK;
    if (problem.activationGroup != 0)
      numerics.partialK = std::min(numerics.partialK, problem.activationGroup);
  }
  numerics.warpsK = config.warpsK;
  numerics.splitK = config.splitK;
  return numerics;
}

} // namespace humming
