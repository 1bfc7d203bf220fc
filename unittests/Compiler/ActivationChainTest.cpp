//===- ActivationChainTest.cpp - Quantize, then multiply ------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What one kernel writes, the other reads, byte by byte: codes, scales and zero
// points of a quantize kernel go into a matmul kernel as they are. Zero tokens
// give zeros, tokens with an infinity NaN, and in batch-invariant mode a token
// has the same bits in every batch.
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "Humming/Compiler/Compiler.h"
#include "Humming/Quant/Float16.h"
#include "Humming/Target/Quantize.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace humming;

namespace {

constexpr int64_t kN = 72, kK = 256;

struct Chain {
  MatmulProblem matmul;
  QuantizeProblem quantize;
  std::string chip;
  std::vector<float> x; ///< [m, kK], values of bf16
  HostLayer layer;

  Chain(std::string chip, NumberFormat format, ActivationCodes codes)
      : chip(std::move(chip)) {
    codes.format = format;
    quantize.codes = codes;
    quantize.k = kK;
    matmul.activation = format;
    matmul.activationScale = ActivationScaleKind::Token;
    matmul.activationGroup = codes.group;
    matmul.activationScaleFormat = codes.scaleFormat;
    matmul.activationZeroPoint = codes.zeroPoint;
    matmul.n = kN;
    matmul.k = kK;
    matmul.deriveDivisors();
    layer = llvm::cantFail(makeRandomLayer(matmul, 3));
  }

  static std::vector<uint8_t> guarded(llvm::ArrayRef<uint8_t> data) {
    std::vector<uint8_t> image(data.size() + 2 * kGuardBytes, 0xff);
    std::copy(data.begin(), data.end(), image.begin() + kGuardBytes);
    return image;
  }
  static std::vector<uint8_t> read(Executor &executor, BufferSlot slot,
                                   size_t size) {
    std::vector<uint8_t> image(size + 2 * kGuardBytes);
    llvm::cantFail(executor.download(slot, image));
    return {image.begin() + kGuardBytes, image.end() - kGuardBytes};
  }
  template <typename Problem>
  std::unique_ptr<Executor> load(Compiler &compiler, const Problem &problem,
                                 LaunchDescription &launch) {
    CompileOptions options;
    options.chip = chip;
    CompileResult compiled = llvm::cantFail(compiler.compile(problem, options));
    KernelArtifacts kernel;
    kernel.launch = launch = compiled.launch;
    kernel.ptx = compiled.ptx;
    std::unique_ptr<Executor> executor = createEmulatorExecutor();
    llvm::cantFail(executor->load(kernel));
    return executor;
  }

  /// The result of the m tokens, [m, kN].
  std::vector<double> run(bool batchInvariant = false) {
    int64_t m = int64_t(x.size()) / kK;
    Compiler compiler;
    LaunchDescription launch;
    quantize.m = m;
    std::unique_ptr<Executor> first = load(compiler, quantize, launch);
    std::vector<uint32_t> codes;
    for (float value : x)
      codes.push_back(doubleToBF16(value));
    bool grouped = quantize.codes.group != 0;
    int64_t scales =
        grouped ? kK / quantize.codes.group * paddedScaleTokens(m) : m;
    size_t scaleBytes = size_t(scales * quantize.codes.scaleFormat.bits / 8);
    auto upload = [&](Executor &executor, BufferSlot slot,
                      llvm::ArrayRef<uint8_t> data) {
      if (!data.empty())
        llvm::cantFail(executor.upload(slot, guarded(data)));
    };
    std::vector<uint8_t> blank(size_t(m * kK), 0xff);
    upload(*first, BufferSlot::X, codesToBytes(NumberFormat::bf16(), codes));
    upload(*first, BufferSlot::Output, blank);
    upload(*first, BufferSlot::Scales, std::vector<uint8_t>(scaleBytes, 0xff));
    if (quantize.codes.zeroPoint)
      upload(*first, BufferSlot::ZeroPoints,
             std::vector<uint8_t>(size_t(4 * m), 0xff));
    LaunchSizes sizes{int32_t(m), 0, int32_t(kK), int32_t(kK), int32_t(kK)};
    llvm::cantFail(first->launch(sizes));

    matmul.m = batchInvariant ? 0 : m;
    std::unique_ptr<Executor> second = load(compiler, matmul, launch);
    upload(*second, BufferSlot::X,
           read(*first, BufferSlot::Output, blank.size()));
    upload(*second, BufferSlot::ActivationScales,
           read(*first, BufferSlot::Scales, scaleBytes));
    if (quantize.codes.zeroPoint) {
      upload(*second, BufferSlot::ActivationZeroPoints,
             read(*first, BufferSlot::ZeroPoints, size_t(4 * m)));
      upload(*second, BufferSlot::WeightSums, layer.weightSums);
    }
    upload(*second, BufferSlot::Weights, layer.packedWeights);
    upload(*second, BufferSlot::Scales, layer.packedScales);
    std::vector<uint8_t> out(size_t(2 * m * kN), 0xff);
    upload(*second, BufferSlot::Output, out);
    upload(*second, BufferSlot::Workspace,
           std::vector<uint8_t>(size_t(launch.workspaceBytes(m, kN))));
    sizes = {int32_t(m), int32_t(kN), int32_t(kK), int32_t(kK), int32_t(kN)};
    llvm::cantFail(second->launch(sizes));
    return decodeElements(matmul.output,
                          read(*second, BufferSlot::Output, out.size()));
  }
};

/// Random tokens in bf16, of different magnitudes.
std::vector<float> randomTokens(int64_t m) {
  Random random(11);
  std::vector<float> x;
  for (int64_t row = 0; row < m; ++row)
    for (int64_t j = 0; j < kK; ++j)
      x.push_back(float(bf16ToFloat(
          doubleToBF16(random.normal() * std::exp2(double(row % 5) - 2)))));
  return x;
}

struct Case {
  const char *chip;
  NumberFormat format;
  ActivationCodes codes;
};

std::vector<Case> cases() {
  ActivationCodes token, group, exponents, asymmetric;
  group.group = 128;
  exponents.group = 64;
  exponents.scaleFormat = NumberFormat::e8m0();
  asymmetric.zeroPoint = true;
  return {{"sm_75", NumberFormat::signedInt(8), token},
          {"sm_80", NumberFormat::signedInt(8), group},
          {"sm_80", NumberFormat::signedInt(8), asymmetric},
          {"sm_89", NumberFormat::smallFloat(4, 3), exponents},
          {"sm_90", NumberFormat::smallFloat(4, 3), group}};
}

TEST(ActivationChain, ApproximatesTheProduct) {
  for (const Case &c : cases()) {
    Chain chain(c.chip, c.format, c.codes);
    chain.x = randomTokens(17);
    std::fill_n(chain.x.begin() + 3 * kK, kK, 0.0f); // a token of zeros
    chain.x[5 * kK + 17] = std::numeric_limits<float>::infinity();
    std::vector<double> got = chain.run();
    std::vector<double> w = dequantize(chain.layer.weights);
    for (int64_t row = 0; row < 17; ++row) {
      const float *values = chain.x.data() + row * kK;
      double high = 0;
      for (int64_t j = 0; j < kK; ++j)
        high = std::max(high, std::fabs(double(values[j])));
      // A code is off by at most half a step: of the largest code's for e4m3
      // (448: 16), of one for integers (asymmetric: of a range twice as wide,
      // in 255 steps, and once more for the zero point); and the output rounds.
      bool isFloat = c.format.isFloat();
      double step = isFloat ? 16.0 / 448 : 1.0 / 127;
      if (c.codes.scaleFormat.isE8M0())
        step *= 2;
      double each = high * step * (c.codes.zeroPoint ? 1.5 : 0.5);
      for (int64_t n = 0; n < kN; ++n) {
        double exact = 0, norm = 0;
        for (int64_t j = 0; j < kK; ++j) {
          exact += values[j] * w[n * kK + j];
          norm += std::fabs(w[n * kK + j]);
        }
        double value = got[row * kN + n];
        if (row == 3)
          EXPECT_EQ(value, 0);
        else if (row == 5)
          EXPECT_TRUE(std::isnan(value));
        else
          EXPECT_NEAR(value, exact, each * norm + std::fabs(exact) * 0x1p-7)
              << c.chip << " " << chain.quantize.str() << " " << row << " "
              << n;
      }
    }
  }
}

TEST(ActivationChain, BatchesDoNotMatterInBatchInvariantMode) {
  for (const Case &c : cases()) {
    Chain chain(c.chip, c.format, c.codes);
    std::vector<float> x = randomTokens(33);
    chain.x = x;
    std::vector<double> all = chain.run(/*batchInvariant=*/true);
    for (int64_t row : {0, 13, 32}) {
      chain.x.assign(x.begin() + row * kK, x.begin() + (row + 1) * kK);
      std::vector<double> one = chain.run(/*batchInvariant=*/true);
      for (int64_t n = 0; n < kN; ++n)
        EXPECT_EQ(one[n], all[row * kN + n]) << c.chip << " " << row;
    }
  }
}

} // namespace
