//===- LegalityTest.cpp - Every rule, violated once --------------- -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/KernelConfig.h"
#include "llvm/Support/Error.h"
#include "gtest/gtest.h"

using namespace humming;

namespace {

const TargetInfo &target(llvm::StringRef chip) {
  return *llvm::cantFail(getTargetInfo(chip));
}

MatmulProblem goodProblem() {
  MatmulProblem p;
  p.weight.scale = NumberFormat::bf16();
  p.m = 16;
  p.n = p.k = 8192;
  return p;
}

std::string problemError(const MatmulProblem &problem,
                         llvm::StringRef chip = "sm_80") {
  return llvm::toString(checkProblem(problem, target(chip)));
}

std::string configError(const MatmulProblem &problem, llvm::StringRef text,
                        llvm::StringRef chip = "sm_80") {
  KernelConfig base;
  base.blockK = 256;
  base.warpsK = 2;
  base.stages = 4;
  base.copy = CopyKind::CpAsync;
  base.scale = ScalePlacement::Accumulator;
  KernelConfig config = llvm::cantFail(KernelConfig::parse(text, base));
  std::string message =
      llvm::toString(checkConfig(problem, config, target(chip)));
  // The silent form gives the same verdict.
  unsigned rule = firstViolatedRule(problem, config, target(chip));
  if (rule == 0)
    EXPECT_EQ(message, "");
  else
    EXPECT_TRUE(llvm::StringRef(message).starts_with(
        "rule L" + std::to_string(rule) + ": expected "))
        << message;
  return message;
}

std::string configError(llvm::StringRef text, llvm::StringRef chip = "sm_80") {
  return configError(goodProblem(), text, chip);
}

TEST(CheckProblem, AcceptsWhatTheTargetRuns) {
  for (const TargetInfo &t : getAllTargets())
    for (int32_t group : {0, 16, 32, 64, 128, 192, 256})
      for (auto zeroPoint : {ZeroPointKind::None, ZeroPointKind::Integer,
                             ZeroPointKind::Float}) {
        MatmulProblem p = goodProblem();
        p.weight.granularity = Granularity::group(group);
        p.weight.zeroPoint = zeroPoint;
        p.activation = NumberFormat::f16();
        EXPECT_EQ(llvm::toString(checkProblem(p, t)), "");
        p.activation = NumberFormat::bf16();
        EXPECT_EQ(llvm::toString(checkProblem(p, t)).empty(), t.hasBf16Mma);
      }
}

TEST(CheckProblem, P1Sizes) {
  MatmulProblem p = goodProblem();
  p.k = -1;
  EXPECT_EQ(problemError(p),
            "rule P1: expected K from 0 to 2147483647, got -1");
  p.k = 64;
  p.m = int64_t(1) << 31;
  EXPECT_EQ(problemError(p),
            "rule P1: expected M from 0 to 2147483647, got 2147483648");
}

TEST(CheckProblem, P2Activation) {
  MatmulProblem p = goodProblem();
  p.activation = NumberFormat::smallFloat(2, 1);
  EXPECT_EQ(problemError(p),
            "rule P2: expected activations of f16, bf16, e4m3, "
            "e5m2, s8 or s4, got e2m1");
  p.activation = NumberFormat::smallFloat(4, 3);
  EXPECT_EQ(problemError(p),
            "rule P2: expected scales for e4m3 activations, got none");
  p.activationScale = ActivationScaleKind::Token;
  EXPECT_EQ(problemError(p, "sm_89"), "");
  p.activation = NumberFormat::bf16();
  EXPECT_EQ(problemError(p),
            "rule P2: expected no scales for bf16 activations, got token");
}

TEST(CheckProblem, P3MmaForTheActivation) {
  EXPECT_EQ(problemError(goodProblem(), "sm_75"),
            "rule P3: expected activations of f16 on sm_75, which has no bf16 "
            "MMA, got bf16");
}

TEST(CheckProblem, P3NarrowMma) {
  MatmulProblem p = goodProblem();
  p.activationScale = ActivationScaleKind::Token;
  p.activation = NumberFormat::smallFloat(4, 3);
  EXPECT_EQ(problemError(p, "sm_86"),
            "rule P3: expected activations of f16 on sm_86, which has no e4m3 "
            "MMA, got e4m3");
  p.activation = NumberFormat::signedInt(8);
  EXPECT_EQ(problemError(p, "sm_75"), "");
  p.activation = NumberFormat::signedInt(4);
  p.weight.granularity = Granularity::perChannel();
  EXPECT_EQ(problemError(p, "sm_80"), "");
  EXPECT_NE(problemError(p, "sm_75"), "");
}

TEST(CheckProblem, P4Weight) {
  MatmulProblem p = goodProblem();
  for (unsigned bits = 1; bits <= 8; ++bits) {
    p.weight.weight = NumberFormat::unsignedInt(bits);
    EXPECT_EQ(problemError(p), "");
  }
  p.weight.weight = NumberFormat::smallFloat(6, 1);
  EXPECT_EQ(problemError(p), "");
  p.activation = NumberFormat::f16();
  EXPECT_EQ(problemError(p),
            "rule P4: expected float weights whose fields fit those of the "
            "operand (f16 takes at most 4 exponent bits and e5m2, bf16 7), got "
            "e6m1 for f16 operands");
  // e4m3 has integers up to 16: -16 to 15 fit, 31 - 0 does not.
  p.activation = NumberFormat::smallFloat(4, 3);
  p.activationScale = ActivationScaleKind::Token;
  p.weight.weight = NumberFormat::unsignedInt(5);
  EXPECT_EQ(problemError(p, "sm_89"), "");
  p.weight.zeroPoint = ZeroPointKind::Integer;
  EXPECT_EQ(problemError(p, "sm_89"),
            "rule P4: expected integers up to 16, which e4m3 holds exactly, "
            "after zero points, got u5");
}

TEST(CheckProblem, P5Scale) {
  MatmulProblem p = goodProblem();
  p.weight.scale = NumberFormat::e8m0();
  EXPECT_EQ(problemError(p), "");
  p.weight.zeroPoint = ZeroPointKind::Float;
  EXPECT_EQ(problemError(p), "rule P5: expected scales of f16 or bf16 with "
                             "float zero points, got e8m0");
  p.weight.zeroPoint = ZeroPointKind::None;
  p.weight.scale = NumberFormat::smallFloat(3, 2);
  EXPECT_EQ(problemError(p),
            "rule P5: expected scales of f32, f16, bf16, e4m3, "
            "e5m2 or e8m0, got e3m2");
}

TEST(CheckProblem, P6Granularity) {
  const std::string expected =
      "rule P6: expected a scale for a whole row or for a group of 16, 32 or a "
      "multiple of 64 weights, got ";
  MatmulProblem p = goodProblem();
  p.weight.granularity = Granularity::group(48);
  EXPECT_EQ(problemError(p), expected + "a group of 48");
  p.weight.granularity = Granularity::group(8);
  EXPECT_EQ(problemError(p), expected + "a group of 8");
  p.weight.granularity = Granularity::block(128, 40);
  EXPECT_EQ(problemError(p), expected + "blocks of 128x40");
  p.weight.granularity = Granularity::block(128, 128);
  EXPECT_EQ(problemError(p), "");
  p.weight.columnPhase = 32;
  EXPECT_EQ(problemError(p),
            "rule P6: expected a shard that begins with a group or a multiple "
            "of 64 weights into one (regroup or pad others: alignPhase in "
            "Humming/Quant/QuantizedWeights.h), got a phase of 32 in groups of "
            "128");
  p.weight.columnPhase = 64;
  EXPECT_EQ(problemError(p), "");
  p.weight.columnPhase = 0;
  p.weight.granularity = Granularity::perTensor();
  EXPECT_EQ(problemError(p), "");
}

TEST(CheckProblem, P7ZeroPoint) {
  MatmulProblem p = goodProblem();
  p.weight.weight = NumberFormat::signedInt(4);
  p.weight.zeroPoint = ZeroPointKind::Integer;
  EXPECT_EQ(problemError(p),
            "rule P7: expected unsigned weights with zero points, got s4");
}

TEST(CheckProblem, P8Output) {
  MatmulProblem p = goodProblem();
  p.output = NumberFormat::f32();
  EXPECT_EQ(problemError(p),
            "rule P8: expected an output of f16 or bf16, got f32");
}

TEST(CheckProblem, P9Divisors) {
  MatmulProblem p = goodProblem();
  p.kDivisor = 16;
  EXPECT_EQ(problemError(p),
            "rule P9: expected a divisor of K, a power of two from 1 to 8, got "
            "16");
  p = goodProblem();
  p.n = 1001;
  EXPECT_EQ(problemError(p),
            "rule P9: expected a divisor of N that divides 1001, got 8");
  p.deriveDivisors();
  EXPECT_EQ(problemError(p), "");
  // An unknown size has every divisor that is declared.
  p.n = 0;
  p.nDivisor = 8;
  EXPECT_EQ(problemError(p), "");
}

TEST(CheckProblem, P10PlainWeights) {
  MatmulProblem p = goodProblem();
  p.activationScale = ActivationScaleKind::Token;
  p.activation = p.weight.weight = NumberFormat::smallFloat(4, 3);
  p.weightLayout = WeightLayout::Plain;
  p.deriveDivisors();
  EXPECT_EQ(p.naturalLayout(), WeightLayout::Plain);
  EXPECT_EQ(problemError(p, "sm_89"), "");
  p.weight.weight = NumberFormat::smallFloat(5, 2);
  p.activation = NumberFormat::smallFloat(5, 2);
  EXPECT_EQ(problemError(p, "sm_89"), "");
  p.weight.weight = NumberFormat::unsignedInt(8);
  p.activation = NumberFormat::signedInt(8);
  EXPECT_EQ(problemError(p),
            "rule P10: expected plain weights of 8 bits in the activations' "
            "format s8, without zero points (pack others), got u8/g128/bf16");
  p.weight.weight = NumberFormat::signedInt(8);
  EXPECT_EQ(problemError(p), "");
  // Shorter copies where K promises less; packed by default then.
  p.k = 8196;
  p.deriveDivisors();
  EXPECT_EQ(problemError(p), "");
  EXPECT_EQ(p.naturalLayout(), WeightLayout::Packed);
}

TEST(CheckConfig, AcceptsTheBase) { EXPECT_EQ(configError(""), ""); }

TEST(CheckConfig, L1Mma) {
  EXPECT_EQ(configError("mma=m16n8k8"),
            "rule L1: expected mma=m16n8k16 for bf16 on sm_80, got m16n8k8");
  MatmulProblem p = goodProblem();
  p.activation = NumberFormat::f16();
  EXPECT_EQ(configError(p, "copy=sync,stages=2", "sm_75"),
            "rule L1: expected mma=m16n8k8 for f16 on sm_75, got m16n8k16");
  EXPECT_EQ(configError(p, "mma=m16n8k8"), "");
  EXPECT_EQ(configError(goodProblem(), "mma=m16n8k8", "sm_75"),
            "rule L1: expected mma=no MMA for bf16 on sm_75, got m16n8k8");
}

TEST(CheckConfig, L2BlockN) {
  EXPECT_EQ(configError("block=96x16x256"),
            "rule L2: expected blockN a multiple of 64, at most 512, got 96");
  EXPECT_EQ(configError("block=1024x16x256"),
            "rule L2: expected blockN a multiple of 64, at most 512, got 1024");
}

TEST(CheckConfig, L3WarpN) {
  EXPECT_EQ(configError("warp=48x16"),
            "rule L3: expected warpN of 16, 32 or 64, got 48");
  EXPECT_EQ(configError("warp=128x16,block=128x16x256"),
            "rule L3: expected warpN of 16, 32 or 64, got 128");
}

TEST(CheckConfig, L4BlockM) {
  EXPECT_EQ(configError("block=64x12x256"),
            "rule L4: expected blockM a multiple of 8, at most 512, got 12");
}

TEST(CheckConfig, L5WarpM) {
  EXPECT_EQ(configError("block=64x24x256"),
            "rule L5: expected warpM a multiple of 8 that divides blockM (24), "
            "got 16");
}

TEST(CheckConfig, L6BlockK) {
  EXPECT_EQ(configError("block=64x16x96"),
            "rule L6: expected blockK a multiple of 64, at most 1024, got 96");
}

TEST(CheckConfig, L7WarpsK) {
  EXPECT_EQ(configError("warps_k=3"),
            "rule L7: expected warps_k that divides the 4 64-wide slabs of "
            "blockK, got 3");
  EXPECT_EQ(configError("warps_k=8"),
            "rule L7: expected warps_k that divides the 4 64-wide slabs of "
            "blockK, got 8");
}

TEST(CheckConfig, L8Threads) {
  EXPECT_EQ(configError("block=256x64x256,warps_k=4"),
            "rule L8: expected 32 to 1024 threads, got 8192 (16 x 4 x 4 "
            "warps)");
}

TEST(CheckConfig, L9GroupAgainstBlockK) {
  MatmulProblem p = goodProblem();
  p.weight.granularity = Granularity::group(192);
  EXPECT_EQ(configError(p, "block=64x16x128"),
            "rule L9: expected blockK a multiple or a divisor of the group "
            "(192), got 128");
  EXPECT_EQ(configError(p, "block=64x16x64,warps_k=1"), "");
  EXPECT_EQ(configError(p, "block=64x16x384"), "");
}

TEST(CheckConfig, L10EpilogueScale) {
  EXPECT_EQ(configError("scale=epilogue"),
            "rule L10: expected scale=operand or accumulator for groups along "
            "K, got epilogue");
  MatmulProblem p = goodProblem();
  p.weight.granularity = Granularity::perChannel();
  EXPECT_EQ(configError(p, "scale=operand"),
            "rule L10: expected scale=epilogue for whole-row scales, got "
            "operand");
  EXPECT_EQ(configError(p, "scale=epilogue"), "");
}

TEST(CheckConfig, L11OperandScale) {
  MatmulProblem p = goodProblem();
  p.weight.scale = NumberFormat::f16();
  EXPECT_EQ(configError(p, "scale=operand"),
            "rule L11: expected scale=accumulator for f16 scales and bf16 "
            "activations, got operand");
  // 8-bit codes have no room for a scale.
  p.activation = p.weight.scale = NumberFormat::smallFloat(5, 2);
  p.weight.weight = NumberFormat::unsignedInt(2);
  p.activationScale = ActivationScaleKind::Token;
  EXPECT_EQ(
      configError(p, "mma=m16n8k32,block=64x16x128,scale=operand", "sm_90"),
      "rule L11: expected scale=accumulator for e5m2 scales and e5m2 "
      "activations, got operand");
}

TEST(CheckConfig, L12Copy) {
  MatmulProblem p = goodProblem();
  p.activation = NumberFormat::f16();
  EXPECT_EQ(configError(p, "mma=m16n8k8", "sm_75"),
            "rule L12: expected copy=sync on sm_75, got cp.async");
}

TEST(CheckConfig, L13Stages) {
  EXPECT_EQ(configError("stages=9"), "rule L13: expected 2 to 8 stages, got 9");
  EXPECT_EQ(configError("stages=1"), "rule L13: expected 2 to 8 stages, got 1");
  EXPECT_EQ(configError("copy=sync,stages=3"),
            "rule L13: expected 2 stages with copy=sync, got 3");
  EXPECT_EQ(configError("copy=sync,stages=2"), "");
}

TEST(CheckConfig, L14Accumulators) {
  EXPECT_EQ(configError("block=64x64x64,warp=64x64,warps_k=1,scale=operand"),
            "");
  EXPECT_EQ(configError("block=64x64x64,warp=64x64,warps_k=1"),
            "rule L14: expected at most 128 accumulator registers a thread (a "
            "smaller warp tile), got 256");
}

TEST(CheckConfig, L15SharedMemory) {
  EXPECT_EQ(configError("block=128x64x512,warp=32x32,stages=3"),
            "rule L15: expected at most 166912 bytes of shared memory on "
            "sm_80, got 297984");
  EXPECT_EQ(configError("block=64x64x256,warp=32x32,stages=4"), "");
  EXPECT_EQ(configError("block=64x64x256,warp=32x32,stages=4", "sm_86"),
            "rule L15: expected at most 101376 bytes of shared memory on "
            "sm_86, got 164864");
}

TEST(CheckConfig, L16Registers) {
  EXPECT_EQ(configError("block=256x128x128,warp=64x64,warps_k=2,stages=2,"
                        "scale=operand",
                        "sm_90"),
            "rule L16: expected at most 255 registers a thread and 65536 a "
            "block, got 272 a thread, 139264 a block");
}

TEST(CheckConfig, L17SplitK) {
  EXPECT_EQ(configError("split_k=65"),
            "rule L17: expected split_k from 1 to 64, got 65");
  EXPECT_EQ(configError("split_k=64"), "");
}

TEST(CheckConfig, L22Cluster) {
  EXPECT_EQ(configError("split_k=2,cluster=1", "sm_90"), "");
  EXPECT_EQ(configError("split_k=9,cluster=1", "sm_90"),
            "rule L22: expected cluster=0, or split_k from 2 to 8 on sm_90 and "
            "later, got cluster=1 with split_k=9 on sm_90");
  EXPECT_EQ(configError("split_k=2,cluster=1"),
            "rule L22: expected cluster=0, or split_k from 2 to 8 on sm_90 and "
            "later, got cluster=1 with split_k=2 on sm_80");
}

/// W8A8 with scales in the epilogue, whose tiles are copied by tensor maps.
MatmulProblem plainProblem() {
  MatmulProblem p = goodProblem();
  p.activation = p.weight.weight = NumberFormat::smallFloat(4, 3);
  p.activationScale = ActivationScaleKind::Token;
  p.weight.scale = NumberFormat::f32();
  p.weight.granularity = Granularity::perChannel();
  p.weightLayout = WeightLayout::Plain;
  p.deriveDivisors();
  return p;
}

TEST(CheckConfig, L24Multicast) {
  MatmulProblem p = plainProblem();
  auto error = [&](llvm::StringRef text) {
    return configError(p,
                       ("mma=wgmma,block=128x64x128,warp=32x64,warps_k=1,"
                        "copy=tensor,scale=epilogue," +
                        text)
                           .str(),
                       "sm_90a");
  };
  const std::string expected =
      "rule L24: expected multicast=none, or copy=tensor, persistent=0, a "
      "shared tile of a multiple of 16 rows, plain weights where they are "
      "shared, and at most 8 blocks a cluster, got multicast=";
  for (llvm::StringRef multicast : {"activations", "weights"}) {
    std::string key = ("multicast=" + multicast).str();
    EXPECT_EQ(error(key), "");
    // Pairs of blocks times the blocks along K: eight at most.
    EXPECT_EQ(error(key + ",split_k=4,cluster=1"), "");
    EXPECT_EQ(error(key + ",split_k=8"), "");
    EXPECT_EQ(error(key + ",split_k=5,cluster=1"),
              expected + multicast.str() + " with copy=tensor, persistent=0, " +
                  (multicast == "weights" ? "128" : "64") +
                  " rows, plain weights and 10 blocks");
  }
  EXPECT_EQ(error("persistent=1,multicast=weights"),
            expected + "weights with copy=tensor, persistent=1, 128 rows, "
                       "plain weights and 2 blocks");
  EXPECT_EQ(configError(p,
                        "mma=wgmma,block=128x64x128,warp=32x64,warps_k=1,"
                        "copy=bulk,scale=epilogue,multicast=activations",
                        "sm_90a"),
            expected + "activations with copy=bulk, persistent=0, 64 rows, "
                       "plain weights and 2 blocks");
  // Halves of a tile are boxes, of 8 rows or a multiple.
  auto ofTokens = [&](llvm::StringRef multicast, llvm::StringRef tokens) {
    return configError(p,
                       ("mma=wgmma,block=128x" + tokens + "x128,warp=32x" +
                        tokens + ",warps_k=1,copy=tensor,scale=epilogue," +
                        "multicast=" + multicast)
                           .str(),
                       "sm_90a");
  };
  EXPECT_EQ(ofTokens("activations", "16"), "");
  EXPECT_EQ(ofTokens("activations", "24"),
            expected + "activations with copy=tensor, persistent=0, 24 rows, "
                       "plain weights and 2 blocks");
  EXPECT_EQ(ofTokens("weights", "24"), "");
  // Packed weights are no matrix that a tensor map could name.
  p.weightLayout = WeightLayout::Packed;
  EXPECT_EQ(error("multicast=activations"), "");
  EXPECT_EQ(error("multicast=weights"),
            expected + "weights with copy=tensor, persistent=0, 128 rows, "
                       "packed weights and 2 blocks");
}

TEST(CheckConfig, L25Producers) {
  MatmulProblem p = plainProblem();
  auto error = [&](llvm::StringRef text) {
    return configError(p,
                       ("mma=wgmma,block=128x64x128,warp=32x64,warps_k=1,"
                        "scale=epilogue,producers=0," +
                        text)
                           .str(),
                       "sm_90a");
  };
  const std::string expected =
      "rule L25: expected producers=1, or copy=tensor, at least 4 stages and "
      "persistent=0, got producers=0 with copy=";
  EXPECT_EQ(error("copy=tensor"), "");
  EXPECT_EQ(error("copy=tensor,multicast=weights,split_k=2,cluster=1"), "");
  EXPECT_EQ(error("copy=tensor,stages=3"),
            expected + "tensor, 3 stages and persistent=0");
  EXPECT_EQ(error("copy=bulk"), expected + "bulk, 4 stages and persistent=0");
  EXPECT_EQ(error("copy=cp.async"),
            expected + "cp.async, 4 stages and persistent=0");
  EXPECT_EQ(error("copy=tensor,persistent=1"),
            expected + "tensor, 4 stages and persistent=1");
  EXPECT_EQ(configError("producers=0"),
            expected + "cp.async, 4 stages and persistent=0");
  // Where no warp only copies, a thread may have more sums (rule L14).
  auto large = [&](llvm::StringRef producers) {
    return configError(p,
                       ("mma=wgmma,block=128x192x128,warp=32x192,warps_k=1,"
                        "copy=tensor,scale=epilogue,producers=" +
                        producers)
                           .str(),
                       "sm_90a");
  };
  EXPECT_EQ(large("0"), "");
  EXPECT_EQ(large("1"),
            "rule L14: expected at most 128 accumulator registers a thread (a "
            "smaller warp tile), got 192");
}

TEST(CheckConfig, L27Panel) {
  EXPECT_EQ(configError("panel=1"), "");
  EXPECT_EQ(configError("panel=65536"), "");
  EXPECT_EQ(configError("panel=8,split_k=2"),
            "rule L27: expected panel=0, or whole clusters of features with "
            "split_k=1, got panel=8 with clusters of 1 and split_k=2");
  MatmulProblem p = plainProblem();
  auto error = [&](llvm::StringRef text) {
    return configError(p,
                       ("mma=wgmma,block=128x64x128,warp=32x64,warps_k=1,"
                        "copy=tensor,scale=epilogue," +
                        text)
                           .str(),
                       "sm_90a");
  };
  EXPECT_EQ(error("panel=8,persistent=1"), "");
  EXPECT_EQ(error("panel=8,multicast=activations"), "");
  EXPECT_EQ(error("panel=3,multicast=weights"), "");
  EXPECT_EQ(error("panel=3,multicast=activations"),
            "rule L27: expected panel=0, or whole clusters of features with "
            "split_k=1, got panel=3 with clusters of 2 and split_k=1");
  // What text cannot say.
  KernelConfig c;
  c.copy = CopyKind::CpAsync;
  c.scale = ScalePlacement::Accumulator;
  ASSERT_EQ(firstViolatedRule(goodProblem(), c, target("sm_80")), 0u);
  c.panel = -1;
  EXPECT_EQ(firstViolatedRule(goodProblem(), c, target("sm_80")), 27u);
}

TEST(CheckConfig, L26TokenRows) {
  MatmulProblem p = goodProblem();
  p.activation = p.weight.weight = NumberFormat::smallFloat(4, 3);
  p.activationScale = ActivationScaleKind::Token;
  p.activationGroup = 128;
  p.weight.scale = NumberFormat::f32();
  p.weight.granularity = Granularity::block(128, 128);
  p.weightLayout = WeightLayout::Plain;
  p.deriveDivisors();
  auto error = [&](llvm::StringRef text) {
    return configError(
        p, ("mma=wgmma,warps_k=1,stages=3,rows=tokens," + text).str(),
        "sm_90a");
  };
  const char *good = "block=128x128x128,warp=128x16,copy=tensor";
  EXPECT_EQ(error(good), "");
  EXPECT_EQ(error("block=64x128x128,warp=64x32,copy=bulk"), "");
  EXPECT_EQ(error("block=128x128x128,warp=128x16,copy=tensor,split_k=2,"
                  "cluster=1"),
            "");
  EXPECT_EQ(error("block=128x128x128,warp=64x16,copy=tensor"),
            "rule L3: expected warpN to be blockN, at most 256, with "
            "rows=tokens, got 64");
  EXPECT_EQ(error("block=512x64x128,warp=512x16,copy=tensor"),
            "rule L3: expected warpN to be blockN, at most 256, with "
            "rows=tokens, got 512");
  EXPECT_EQ(
      error("block=128x128x128,warp=128x16,copy=cp.async"),
      "rule L26: expected rows=features, or mma=wgmma, plain weights, "
      "copy=bulk or tensor, warps_k=1, an even N and warpM of 16, 32 or 64, "
      "got mma=wgmma, plain weights, copy=cp.async, warps_k=1, N a multiple of "
      "8 and warpM 16");
  for (const char *text : {"block=128x96x128,warp=128x48,copy=tensor",
                           "block=128x64x128,warp=128x8,copy=tensor"})
    EXPECT_TRUE(llvm::StringRef(error(text)).starts_with("rule L26: ")) << text;
  // Whole warpgroups along M.
  EXPECT_TRUE(llvm::StringRef(error("block=128x32x128,warp=128x16,copy=tensor"))
                  .starts_with("rule L18: "));
  // One scale for all features of a block.
  p.weight.granularity = Granularity::block(64, 128);
  EXPECT_EQ(error(good),
            "rule L26: expected rows=features, or scale=accumulator and groups "
            "of scales whose features are whole blocks of 128, got "
            "scale=accumulator, groups of 64 features and a phase of 0");
  EXPECT_EQ(error("block=64x128x128,warp=64x16,copy=tensor"), "");
  p.weight.granularity = Granularity::block(128, 128);
  p.weight.rowPhase = 64;
  EXPECT_TRUE(llvm::StringRef(error(good)).starts_with("rule L26: "));
  EXPECT_EQ(error("block=64x128x128,warp=64x16,copy=tensor"), "");
  // Scales of rows are columns' in the epilogue.
  p.weight.rowPhase = 0;
  p.weight.granularity = Granularity::perChannel();
  EXPECT_EQ(error("block=128x128x128,warp=128x16,copy=tensor,scale=epilogue"),
            "");
  p.nDivisor = 1;
  EXPECT_TRUE(llvm::StringRef(error(good)).starts_with("rule L26: "));
  p.nDivisor = 8;
  p.weightLayout = WeightLayout::Packed;
  EXPECT_TRUE(llvm::StringRef(error(good)).starts_with("rule L26: "));
}

// What text cannot say, an attribute in the IR can.
TEST(CheckConfig, NonPositiveFields) {
  int32_t KernelConfig::*fields[] = {
      &KernelConfig::blockN, &KernelConfig::blockM, &KernelConfig::blockK,
      &KernelConfig::warpN,  &KernelConfig::warpM,  &KernelConfig::warpsK,
      &KernelConfig::stages, &KernelConfig::splitK};
  KernelConfig good;
  good.copy = CopyKind::CpAsync;
  good.scale = ScalePlacement::Accumulator;
  ASSERT_EQ(firstViolatedRule(goodProblem(), good, target("sm_80")), 0u);
  for (auto field : fields)
    for (int32_t value : {0, -1, -64, INT32_MIN, INT32_MAX}) {
      KernelConfig c = good;
      c.*field = value;
      EXPECT_NE(llvm::toString(checkConfig(goodProblem(), c, target("sm_80"))),
                "");
    }
}

} // namespace
