//===- QuantizeTest.cpp - Rules and choice for activations ----------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rule of quantize kernels, and each rule of matmuls that is about scales,
// zero points and sums of activations, violated once.
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/Quantize.h"
#include "Humming/Target/Dequant.h"
#include "llvm/Support/Error.h"
#include "gtest/gtest.h"

using namespace humming;

namespace {

const TargetInfo &target(llvm::StringRef chip) {
  return *llvm::cantFail(getTargetInfo(chip));
}

std::string quantizeError(const QuantizeProblem &problem,
                          llvm::StringRef chip = "sm_90") {
  return llvm::toString(checkQuantize(problem, target(chip)));
}

TEST(CheckQuantize, EachRule) {
  QuantizeProblem p;
  EXPECT_EQ(quantizeError(p), "");
  p.k = -1;
  EXPECT_EQ(quantizeError(p),
            "rule Q1: expected K from 0 to 2147483647, got -1");
  p = {};
  p.input = NumberFormat::f32();
  EXPECT_EQ(quantizeError(p),
            "rule Q2: expected an input of f16 or bf16, got f32");
  p = {};
  p.codes.format = NumberFormat::unsignedInt(8);
  EXPECT_EQ(quantizeError(p),
            "rule Q3: expected codes of e4m3, e5m2, s8 or s4, got u8");
  p = {};
  EXPECT_EQ(quantizeError(p, "sm_80"),
            "rule Q3: expected codes that sm_80 has an MMA for, got e4m3");
  p.scale = ActivationScaleKind::None;
  EXPECT_EQ(quantizeError(p),
            "rule Q4: expected scales per tensor or token, got none");
  p.scale = ActivationScaleKind::Tensor;
  p.codes.group = 128;
  EXPECT_EQ(quantizeError(p),
            "rule Q4: expected scales per token with groups, got tensor");
  p.scale = ActivationScaleKind::Token;
  p.codes.group = 48;
  EXPECT_EQ(quantizeError(p),
            "rule Q5: expected a group that is a power of two "
            "from 16 to 32768, got 48");
  p.codes.group = 0;
  p.codes.scaleFormat = NumberFormat::e8m0();
  EXPECT_EQ(
      quantizeError(p),
      "rule Q6: expected scales of f32, or of e8m0 with groups, got e8m0");
  p = {};
  p.codes.zeroPoint = true;
  EXPECT_EQ(quantizeError(p), "rule Q7: expected zero points with s8 codes "
                              "without groups, got e4m3 codes");
  p = {};
  p.k = 100;
  EXPECT_EQ(quantizeError(p),
            "rule Q8: expected a divisor of K of 1, 2, 4 or 8, got 8");
  p.deriveDivisors();
  EXPECT_EQ(p.kDivisor, 4);
  EXPECT_EQ(quantizeError(p), "");
}

TEST(CheckQuantizeConfig, EachRule) {
  auto error = [&](llvm::StringRef text, int32_t group = 128) {
    QuantizeProblem p;
    p.codes.group = group;
    QuantizeConfig base;
    base.lanes = 16;
    base.groups = group ? 16 : 1;
    base.rows = group ? 1 : 16;
    return llvm::toString(checkQuantizeConfig(
        p, llvm::cantFail(QuantizeConfig::parse(text, base)), target("sm_90")));
  };
  EXPECT_EQ(error(""), "");
  EXPECT_EQ(error("lanes=64"),
            "rule Q9: expected lanes that are a power of two "
            "from 2 to 32, got 64");
  EXPECT_EQ(error("lanes=24", 0), "rule Q9: expected lanes that are a power of "
                                  "two from 2 to 1024, got 24");
  EXPECT_EQ(
      error("rows=8"),
      "rule Q10: expected 32 to 1024 threads, a multiple of 32, got 2048");
  EXPECT_EQ(error("chunks=9"),
            "rule Q11: expected 1 to 8 chunks with 256 threads, got 9");
  EXPECT_EQ(error("groups=2", 0),
            "rule Q12: expected groups=1 without groups, got 2");
}

TEST(QuantizeConfig, TextRoundTrip) {
  QuantizeConfig config;
  config.lanes = 64;
  config.rows = 4;
  EXPECT_EQ(config.str(), "lanes=64,groups=1,rows=4,chunks=1");
  EXPECT_EQ(llvm::cantFail(QuantizeConfig::parse(config.str(), {})), config);
  auto error = [](llvm::StringRef text) {
    return llvm::toString(QuantizeConfig::parse(text, {}).takeError());
  };
  EXPECT_EQ(error("warps=4"), "unknown config key: expected one of lanes, "
                              "groups, rows, chunks, got 'warps'");
  EXPECT_EQ(error("rows=0"), "config key 'rows': expected an integer from 1 to "
                             "1024, got '0'");
  EXPECT_EQ(error("rows=1,rows=2"),
            "config key 'rows': expected at most once, got it twice");
}

TEST(ChooseQuantizeConfig, IsLegalForEveryProblem) {
  for (const TargetInfo &t : getAllTargets())
    for (int64_t k :
         {0, 1, 7, 8, 100, 128, 1000, 4096, 14336, 65536, 1000000}) {
      QuantizeProblem sizes;
      sizes.k = k;
      for (const QuantizeProblem &problem :
           enumerateQuantizeProblems(t, sizes)) {
        auto config = chooseQuantizeConfig(problem, t);
        ASSERT_TRUE(bool(config)) << problem.str();
        EXPECT_EQ(llvm::toString(checkQuantizeConfig(problem, *config, t)), "")
            << problem.str() << " " << config->str();
        // Rows of up to 32768 values are read once.
        int64_t length = problem.codes.group ? problem.codes.group
                                             : std::min<int64_t>(k, 32768);
        EXPECT_GE(int64_t(config->lanes) * config->chunks * 8, length)
            << problem.str();
      }
    }
}

std::string problemError(const MatmulProblem &problem,
                         llvm::StringRef chip = "sm_90") {
  return llvm::toString(checkProblem(problem, target(chip)));
}

MatmulProblem s8Problem() {
  MatmulProblem p;
  p.activation = NumberFormat::signedInt(8);
  p.activationScale = ActivationScaleKind::Token;
  return p;
}

TEST(CheckProblem, P11ActivationGroups) {
  MatmulProblem p = s8Problem();
  p.activationGroup = 128;
  EXPECT_EQ(problemError(p), "");
  p.activationScaleFormat = NumberFormat::e8m0();
  EXPECT_EQ(problemError(p), "");
  p.activationGroup = 16;
  EXPECT_EQ(problemError(p), "");
  p.activationGroup = 8;
  EXPECT_EQ(
      problemError(p),
      "rule P11: expected activation groups with scales per token, a power "
      "of two from 16 to 32768, got groups of 8 with scales per token");
  p.activationGroup = 0;
  EXPECT_EQ(problemError(p), "rule P11: expected activation scales of f32, or "
                             "e8m0 with groups, got e8m0");
  p = s8Problem();
  p.activationGroup = 128;
  p.activationScale = ActivationScaleKind::Tensor;
  EXPECT_NE(problemError(p).find("rule P11"), std::string::npos);
}

TEST(CheckProblem, P12ActivationZeroPoints) {
  MatmulProblem p = s8Problem();
  p.activationZeroPoint = true;
  EXPECT_EQ(problemError(p), "");
  p.activation = NumberFormat::smallFloat(4, 3);
  EXPECT_EQ(problemError(p),
            "rule P12: expected zero points with s8 activations "
            "without groups, got e4m3 activations");
}

TEST(CheckProblem, P13HalfSums) {
  MatmulProblem p;
  p.accumulator = NumberFormat::f16();
  EXPECT_EQ(problemError(p),
            "rule P13: expected sums of f32, or of f16 with f16, e4m3 or e5m2 "
            "activations, got sums of f16 with bf16 activations");
  p.activation = NumberFormat::f16();
  EXPECT_EQ(problemError(p), "");
  p.weight.weight = NumberFormat::smallFloat(5, 2);
  EXPECT_EQ(problemError(p),
            "rule P13: expected weights of at most 512 (before "
            "scales) with sums of f16, got e5m2");

  // 8-bit floats: integers are operands of 2^-9 (2^-16) and floats of fewer
  // exponent bits lose the difference of the biases, so that the largest
  // product, 448 (57344) times the largest operand, is small.
  p.activationScale = ActivationScaleKind::Token;
  for (NumberFormat activation :
       {NumberFormat::smallFloat(4, 3), NumberFormat::smallFloat(5, 2)}) {
    p.activation = activation;
    p.weight.weight = NumberFormat::unsignedInt(3);
    EXPECT_EQ(problemError(p), "");
    p.weight.weight = NumberFormat::smallFloat(2, 1);
    EXPECT_EQ(problemError(p), "");
    // Their own formats are operands as they are: 448 * 448.
    p.weight.weight = NumberFormat::smallFloat(4, 3);
    EXPECT_EQ(problemError(p),
              "rule P13: expected a largest product of at most 4096 with sums "
              "of f16 (weights in a format narrower than their operands'), got "
              "e4m3 times " +
                  activation.str());
  }
}

// Groups that are parts of a step: halves of 8-bit ones, halves and quarters of
// 4-bit ones. wgmma takes no plain weights for them.
TEST(CheckConfig, GroupsShorterThanAStep) {
  MatmulProblem p = s8Problem();
  KernelConfig config;
  config.scale = ScalePlacement::Accumulator;
  p.weight.granularity = Granularity::group(128);
  EXPECT_EQ(partsOfStep(p, config), 1);
  p.activationGroup = 32;
  EXPECT_EQ(partsOfStep(p, config), 1);
  p.activationGroup = 16;
  EXPECT_EQ(partsOfStep(p, config), 2);
  p.activationGroup = 0;
  p.weight.granularity = Granularity::group(16);
  EXPECT_EQ(partsOfStep(p, config), 2);
  p.activation = NumberFormat::signedInt(4);
  EXPECT_EQ(partsOfStep(p, config), 4);
  p.weight.granularity = Granularity::block(32, 32);
  EXPECT_EQ(partsOfStep(p, config), 2);

  p.activation = p.weight.weight = NumberFormat::smallFloat(4, 3);
  p.weight.granularity = Granularity::group(32);
  p.kDivisor = 16;
  EXPECT_EQ(p.naturalLayout(), WeightLayout::Plain);
  p.weight.granularity = Granularity::group(16);
  EXPECT_EQ(p.naturalLayout(), WeightLayout::Packed);
  const TargetInfo &hopper = **getTargetInfo("sm_90a");
  config.mma = MmaKind::Wgmma;
  config.blockK = 128;
  config.stages = 3;
  config.copy = CopyKind::CpAsync;
  EXPECT_EQ(firstViolatedRule(p, config, hopper), 0u);
  p.weightLayout = WeightLayout::Plain;
  EXPECT_EQ(firstViolatedRule(p, config, hopper), 18u);
  config.mma = MmaKind::M16N8K32;
  EXPECT_EQ(firstViolatedRule(p, config, hopper), 0u);
}

TEST(CheckConfig, ActivationsRestrictTiles) {
  MatmulProblem p = s8Problem();
  p.activationGroup = 256;
  KernelConfig config;
  config.mma = MmaKind::M16N8K32;
  config.blockK = 384;
  config.stages = 3;
  config.copy = CopyKind::CpAsync;
  config.scale = ScalePlacement::Accumulator;
  EXPECT_EQ(
      llvm::toString(checkConfig(p, config, target("sm_90"))),
      "rule L9: expected blockK a multiple or a divisor of the activation "
      "group (256), got 384");
}

TEST(WeightOperand, MixesFloatsOfEightBits) {
  NumberFormat e4m3 = NumberFormat::smallFloat(4, 3);
  NumberFormat e5m2 = NumberFormat::smallFloat(5, 2);
  QuantType type;
  type.weight = e5m2;
  EXPECT_EQ(weightOperand(type, e4m3), e5m2);
  EXPECT_EQ(weightOperand(type, NumberFormat::f16()), NumberFormat::f16());
  type.weight = e4m3;
  EXPECT_EQ(weightOperand(type, e5m2), e4m3);
  EXPECT_EQ(weightOperand(type, e4m3), e4m3);
  type.weight = NumberFormat::unsignedInt(4);
  EXPECT_EQ(weightOperand(type, e5m2), e5m2);
  type.weight = NumberFormat::unsignedInt(5);
  EXPECT_EQ(weightOperand(type, e5m2), e4m3);
}

TEST(SharedMemory, ScalesOfActivationGroups) {
  MatmulProblem p = s8Problem();
  KernelConfig config;
  config.mma = MmaKind::M16N8K32;
  config.blockK = 256;
  config.blockM = 24;
  config.warpM = 24;
  int64_t without = layoutSharedMemory(p, config).stageBytes;
  p.activationGroup = 64;
  SharedMemoryLayout layout = layoutSharedMemory(p, config);
  EXPECT_EQ(layout.tokenScaleRows, 4);
  EXPECT_EQ(layout.tokenScaleTokens, 32); // a block may begin at token 8 of 16
  EXPECT_EQ(layout.stageBytes - without, 4 * 32 * 4);
  EXPECT_TRUE(hasPartialSums(p, config));
}

} // namespace
