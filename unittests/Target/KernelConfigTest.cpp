//===- KernelConfigTest.cpp - Text form and resources of configs -- -*- C++
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
#include <random>

using namespace humming;

namespace {

std::string parseError(llvm::StringRef text) {
  auto result = KernelConfig::parse(text, KernelConfig());
  if (result)
    return "parsed";
  return llvm::toString(result.takeError());
}

TEST(KernelConfig, PrintsAllKeysInOrder) {
  KernelConfig c;
  c.blockN = 64;
  c.blockM = 16;
  c.blockK = 256;
  c.warpN = 16;
  c.warpM = 16;
  c.warpsK = 2;
  c.stages = 4;
  c.copy = CopyKind::CpAsync;
  c.scale = ScalePlacement::Accumulator;
  EXPECT_EQ(c.str(), "mma=m16n8k16,block=64x16x256,warp=16x16,warps_k=2,"
                     "stages=4,copy=cp.async,scale=accumulator,split_k=1");
  EXPECT_EQ(c.numWarps(), 8);
  EXPECT_EQ(c.numThreads(), 256);
}

TEST(KernelConfig, RoundTrip) {
  std::mt19937 random(7);
  auto size = [&] { return int32_t(random() % 4096 + 1); };
  for (int i = 0; i < 200; ++i) {
    KernelConfig c;
    c.mma = MmaKind(random() % 2);
    c.blockN = size();
    c.blockM = size();
    c.blockK = size();
    c.warpN = size();
    c.warpM = size();
    c.warpsK = size();
    c.stages = size();
    c.copy = CopyKind(random() % 2);
    c.scale = ScalePlacement(random() % 3);
    c.splitK = size();
    c.panel = int32_t(random() % 3 * 8);
    c.producers = int32_t(random() % 2);
    c.multicast = Multicast(random() % 3);
    auto parsed = KernelConfig::parse(c.str(), KernelConfig());
    ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
    EXPECT_TRUE(*parsed == c) << c.str();
    EXPECT_EQ(parsed->str(), c.str());
  }
}

TEST(KernelConfig, MissingKeysComeFromTheBase) {
  KernelConfig base;
  base.blockN = 128;
  base.stages = 5;
  auto parsed = KernelConfig::parse("split_k=4, warp=32x8", base);
  ASSERT_TRUE(bool(parsed));
  KernelConfig expected = base;
  expected.splitK = 4;
  expected.warpN = 32;
  expected.warpM = 8;
  EXPECT_TRUE(*parsed == expected);
  auto empty = KernelConfig::parse(" ", base);
  ASSERT_TRUE(bool(empty));
  EXPECT_TRUE(*empty == base);
}

TEST(KernelConfig, RowsGoWithTheWarp) {
  KernelConfig base;
  base.rows = MmaRows::Tokens;
  EXPECT_TRUE(llvm::StringRef(base.str()).ends_with(",split_k=1,rows=tokens"));
  auto rowsOf = [&](llvm::StringRef text) {
    return llvm::cantFail(KernelConfig::parse(text, base)).rows;
  };
  EXPECT_EQ(rowsOf("stages=4"), MmaRows::Tokens);
  EXPECT_EQ(rowsOf("rows=features"), MmaRows::Features);
  // Another warp tile, another way to share the work.
  EXPECT_EQ(rowsOf("warp=16x64"), MmaRows::Features);
  EXPECT_EQ(rowsOf("rows=tokens,warp=128x16"), MmaRows::Tokens);
  EXPECT_EQ(parseError("rows=columns"),
            "config key 'rows': expected features or tokens, got 'columns'");
  KernelConfig c;
  c.blockN = c.warpN = 128;
  c.blockM = 256;
  c.warpM = 32;
  c.rows = MmaRows::Tokens;
  EXPECT_EQ(c.numWarps(), 8);
  EXPECT_EQ(c.rowUnits(), 2);
  EXPECT_EQ(c.columnTiles(), 16);
}

// Printed where they are not the default, between `cluster` and `rows`.
TEST(KernelConfig, MulticastProducersAndPanel) {
  KernelConfig c;
  const std::string plain = c.str();
  for (llvm::StringRef key : {"panel", "producers", "multicast"})
    EXPECT_FALSE(llvm::StringRef(plain).contains(key)) << plain;
  c.cluster = 1;
  c.panel = 16;
  c.producers = 0;
  c.multicast = Multicast::Weights;
  c.rows = MmaRows::Tokens;
  EXPECT_TRUE(llvm::StringRef(c.str()).ends_with(
      ",cluster=1,panel=16,producers=0,multicast=weights,rows=tokens"))
      << c.str();

  auto parsed = [](llvm::StringRef text, const KernelConfig &base) {
    return llvm::cantFail(KernelConfig::parse(text, base));
  };
  EXPECT_TRUE(parsed(c.str(), KernelConfig()) == c);
  // Left out, they are those of the base; said, they are not.
  EXPECT_TRUE(parsed("stages=2", c) == c);
  EXPECT_EQ(
      parsed("panel=0,producers=1,multicast=none,rows=features,cluster=0", c)
          .str(),
      plain);
  for (Multicast multicast :
       {Multicast::None, Multicast::Activations, Multicast::Weights}) {
    c.multicast = multicast;
    EXPECT_EQ(parsed(c.str(), KernelConfig()).multicast, multicast);
  }
  EXPECT_EQ(parsed("multicast=activations", KernelConfig()).multicast,
            Multicast::Activations);

  // Each of them alone makes another config.
  for (llvm::StringRef text :
       {"panel=1", "producers=0", "multicast=weights", "multicast=activations"})
    EXPECT_TRUE(parsed(text, KernelConfig()) != KernelConfig()) << text.str();
  EXPECT_TRUE(parsed("multicast=weights", KernelConfig()) !=
              parsed("multicast=activations", KernelConfig()));
  EXPECT_TRUE(parsed("panel=1", KernelConfig()) !=
              parsed("panel=2", KernelConfig()));

  EXPECT_EQ(parseError("multicast=both"),
            "config key 'multicast': expected none, activations or weights, "
            "got 'both'");
  for (llvm::StringRef value : {"2", "-1", "", "01"})
    EXPECT_EQ(
        parseError(("producers=" + value).str()),
        ("config key 'producers': expected 0 or 1, got '" + value + "'").str());
  for (llvm::StringRef value : {"-1", "", "65537", "0x8", "all"})
    EXPECT_EQ(
        parseError(("panel=" + value).str()),
        ("config key 'panel': expected an integer from 0 to 65536, got '" +
         value + "'")
            .str());
  EXPECT_EQ(parseError("panel=8,panel=8"),
            "config key 'panel': expected at most once, got it twice");
}

TEST(KernelConfig, ThreadsAndBlocksOfMulticastAndProducers) {
  KernelConfig c = llvm::cantFail(
      KernelConfig::parse("mma=wgmma,block=128x64x128,warp=32x64,stages=4,"
                          "copy=tensor,split_k=2,cluster=1",
                          KernelConfig()));
  // A warp that only copies comes after the four that multiply.
  EXPECT_EQ(c.numThreads(), 128);
  EXPECT_EQ(c.copyThreads(), 32);
  EXPECT_EQ(c.producerThreads(), 32);
  EXPECT_EQ(c.firstCopyThread(), 128);
  EXPECT_EQ(c.blockThreads(), 160);
  // The first of these copies.
  c.producers = 0;
  EXPECT_EQ(c.copyThreads(), 32);
  EXPECT_EQ(c.producerThreads(), 0);
  EXPECT_EQ(c.firstCopyThread(), 0);
  EXPECT_EQ(c.blockThreads(), 128);
  EXPECT_TRUE(c.usesRing());

  EXPECT_EQ(c.blocksOfMulticast(), 1);
  c.multicast = Multicast::Activations; // of neighbouring features
  EXPECT_EQ(c.clusterN(), 2);
  EXPECT_EQ(c.clusterM(), 1);
  EXPECT_EQ(c.blocksOfActivations(), 2);
  EXPECT_EQ(c.blocksOfWeights(), 1);
  c.multicast = Multicast::Weights; // of neighbouring tokens
  EXPECT_EQ(c.clusterN(), 1);
  EXPECT_EQ(c.clusterM(), 2);
  EXPECT_EQ(c.blocksOfActivations(), 1);
  EXPECT_EQ(c.blocksOfWeights(), 2);
  EXPECT_EQ(c.blocksOfMulticast(), 2);
  EXPECT_EQ(c.clusterK(), 2);
}

// Groups of 32 of K in stages of 128: four partial sums a trip.
TEST(KernelConfig, OverlapsSums) {
  MatmulProblem p;
  p.activation = p.weight.weight = NumberFormat::smallFloat(4, 3);
  p.activationScale = ActivationScaleKind::Token;
  p.weight.scale = NumberFormat::f32();
  p.weight.granularity = Granularity::group(32);
  p.n = p.k = 1024;
  p.deriveDivisors();
  KernelConfig c = llvm::cantFail(
      KernelConfig::parse("mma=wgmma,block=64x64x128,warp=16x64,stages=4,"
                          "copy=tensor,scale=accumulator",
                          KernelConfig()));
  auto overlaps = [&] { return overlapsSums(p, c); };
  EXPECT_TRUE(overlaps());

  // A set is of 32 registers at most: 64 tokens of a unit, or 32 of two.
  c.warpM = c.blockM = 72;
  EXPECT_FALSE(overlaps());
  c.warpM = c.blockM = 32;
  c.warpN = 32;
  c.blockN = 128;
  EXPECT_TRUE(overlaps());
  c.warpM = c.blockM = 64;
  EXPECT_FALSE(overlaps());
  c.warpN = 16;
  c.blockN = 64;

  // One sum a trip has no other to run beside.
  p.weight.granularity = Granularity::group(128);
  EXPECT_FALSE(overlaps());
  p.weight.granularity = Granularity::group(64);
  EXPECT_TRUE(overlaps());
  c.warpsK = 2; // each has one slab of 64
  EXPECT_FALSE(overlaps());
  c.warpsK = 1;
  // Groups of activations end sums too.
  p.weight.granularity = Granularity::group(128);
  p.activationGroup = 32;
  EXPECT_TRUE(overlaps());
  p.weight.granularity = Granularity::perChannel();
  c.scale = ScalePlacement::Epilogue;
  EXPECT_TRUE(overlaps());
  p.activationGroup = 0;
  EXPECT_FALSE(overlaps());

  // Scales on the operand leave one sum, and mma.sync is not asynchronous.
  p.weight.granularity = Granularity::group(32);
  c.scale = ScalePlacement::Operand;
  EXPECT_FALSE(overlaps());
  c.scale = ScalePlacement::Accumulator;
  c.mma = MmaKind::M16N8K32;
  EXPECT_FALSE(overlaps());
}

// The total and two sets of 32: a set more than with groups that do not
// overlap.
TEST(KernelConfig, ThreeSetsOfSumsTakeRegisters) {
  MatmulProblem p;
  p.activation = p.weight.weight = NumberFormat::smallFloat(4, 3);
  p.activationScale = ActivationScaleKind::Token;
  p.weight.scale = NumberFormat::f32();
  p.weight.granularity = Granularity::group(128);
  p.weightLayout = WeightLayout::Plain;
  p.n = p.k = 1024;
  p.deriveDivisors();
  KernelConfig c = llvm::cantFail(
      KernelConfig::parse("mma=wgmma,block=64x64x128,warp=16x64,stages=4,"
                          "copy=tensor,scale=accumulator",
                          KernelConfig()));
  ASSERT_FALSE(overlapsSums(p, c));
  int32_t two = predictRegisters(p, c);
  // The same group, two of them a stage.
  c.blockK = 256;
  ASSERT_TRUE(overlapsSums(p, c));
  EXPECT_GE(predictRegisters(p, c), two + 32);
  // Half the tokens, half a set.
  c.blockM = c.warpM = 32;
  int32_t three = predictRegisters(p, c);
  c.blockK = 128;
  EXPECT_GE(three, predictRegisters(p, c) + 16);
}

TEST(KernelConfig, ParseErrorsNameTheKey) {
  EXPECT_EQ(parseError("mma=m16n8k4"),
            "config key 'mma': expected m16n8k8, m16n8k16, m16n8k32, m16n8k64, "
            "m8n8k16 or wgmma, got 'm16n8k4'");
  EXPECT_EQ(
      parseError("copy=tma"),
      "config key 'copy': expected sync, cp.async, bulk or tensor, got 'tma'");
  EXPECT_EQ(parseError("scale=none"),
            "config key 'scale': expected operand, accumulator or epilogue, "
            "got 'none'");
  EXPECT_EQ(parseError("block=64x16"),
            "config key 'block': expected NxMxK, three integers from 1 to "
            "65536, got '64x16'");
  EXPECT_EQ(parseError("warp=16x16x16"),
            "config key 'warp': expected NxM, two integers from 1 to 65536, "
            "got '16x16x16'");
  for (llvm::StringRef value :
       {"0", "-1", "+1", "", "65537", "99999999999999999999", "0x10", "4 4"})
    EXPECT_EQ(parseError(("stages=" + value).str()),
              ("config key 'stages': expected an integer from 1 to 65536, "
               "got '" +
               value + "'")
                  .str());
  EXPECT_EQ(parseError("stage=4"),
            "unknown config key: expected one of mma, block, warp, warps_k, "
            "stages, copy, scale, split_k, early, persistent, cluster, panel, "
            "producers, multicast, rows, got 'stage'");
  EXPECT_EQ(parseError("stages=4,"),
            "unknown config key: expected one of mma, block, warp, warps_k, "
            "stages, copy, scale, split_k, early, persistent, cluster, panel, "
            "producers, multicast, rows, got ''");
  EXPECT_EQ(parseError("stages=4,split_k=2,stages=4"),
            "config key 'stages': expected at most once, got it twice");
}

TEST(MatmulProblem, Prints) {
  MatmulProblem p;
  p.weight.scale = NumberFormat::bf16();
  p.m = 16;
  p.n = p.k = 8192;
  EXPECT_EQ(p.str(), "w4a16 u4/g128/bf16 x bf16 -> bf16, M=16 N=8192 K=8192");
  p.m = 0;
  p.hasBias = true;
  p.weight.granularity = Granularity::perChannel();
  p.weight.zeroPoint = ZeroPointKind::Integer;
  EXPECT_EQ(
      p.str(),
      "w4a16 u4/channel/bf16/zp-int x bf16 -> bf16 + bias, M=? N=8192 K=8192");
}

TEST(MatmulProblem, DerivesDivisors) {
  MatmulProblem p;
  auto derive = [&](int64_t n, int64_t k) {
    p.n = n;
    p.k = k;
    p.deriveDivisors();
    return std::make_pair(p.nDivisor, p.kDivisor);
  };
  EXPECT_EQ(derive(8192, 8192), std::make_pair(8, 8));
  EXPECT_EQ(derive(1000, 1048), std::make_pair(8, 8));
  EXPECT_EQ(derive(12, 6), std::make_pair(4, 2));
  EXPECT_EQ(derive(7, 1), std::make_pair(1, 1));
  // An unknown size promises nothing.
  EXPECT_EQ(derive(0, 0), std::make_pair(1, 1));
}

class Layout : public ::testing::Test {
protected:
  Layout() {
    problem.weight.scale = NumberFormat::bf16();
    config.blockN = 64;
    config.blockM = 16;
    config.blockK = 256;
    config.warpsK = 2;
    config.stages = 4;
    config.copy = CopyKind::CpAsync;
    config.scale = ScalePlacement::Accumulator;
  }
  SharedMemoryLayout layout() { return layoutSharedMemory(problem, config); }
  MatmulProblem problem;
  KernelConfig config;
};

TEST_F(Layout, WorkedExample) {
  SharedMemoryLayout l = layout();
  EXPECT_EQ(l.weights, 0);
  EXPECT_EQ(l.activations, 64 * 256 / 2);
  EXPECT_EQ(l.scales, 8192 + 16 * 256 * 2);
  EXPECT_EQ(l.scaleRows, 2);
  EXPECT_EQ(l.zeroPoints, 16384 + 2 * 64 * 2);
  EXPECT_EQ(l.zeroPointRows, 0);
  EXPECT_EQ(l.stageBytes, 16640);
  EXPECT_EQ(l.stages, 4);
  EXPECT_EQ(l.epilogueBytes, 64 * 16 * 4);
  EXPECT_EQ(l.totalBytes, 4 * 16640);
  EXPECT_EQ(predictSharedMemory(problem, config), l.totalBytes);
}

TEST_F(Layout, ZeroPoints) {
  problem.weight.zeroPoint = ZeroPointKind::Integer;
  EXPECT_EQ(layout().zeroPointRows, 2);
  EXPECT_EQ(layout().stageBytes, 16640 + 2 * 64);
  problem.weight.zeroPoint = ZeroPointKind::Float;
  EXPECT_EQ(layout().stageBytes, 16640 + 2 * 64 * 2);
}

TEST_F(Layout, GroupsShorterAndLongerThanAStage) {
  problem.weight.granularity = Granularity::group(32);
  EXPECT_EQ(layout().scaleRows, 8);
  problem.weight.granularity = Granularity::group(1024);
  EXPECT_EQ(layout().scaleRows, 1);
}

TEST_F(Layout, WholeRowStagesZeroPointsOnly) {
  problem.weight.granularity = Granularity::perChannel();
  problem.weight.zeroPoint = ZeroPointKind::Integer;
  config.scale = ScalePlacement::Epilogue;
  SharedMemoryLayout l = layout();
  EXPECT_EQ(l.scaleRows, 0);
  EXPECT_EQ(l.zeroPointRows, 1);
  // 64 bytes, rounded to 128.
  EXPECT_EQ(l.stageBytes, 16384 + 128);
}

TEST_F(Layout, EveryRegionIsAligned) {
  for (int32_t blockN : {64, 128, 192})
    for (int32_t blockM : {8, 24, 48, 256})
      for (int32_t blockK : {64, 192, 512})
        for (auto zeroPoint : {ZeroPointKind::None, ZeroPointKind::Integer,
                               ZeroPointKind::Float}) {
          config.blockN = blockN;
          config.blockM = blockM;
          config.blockK = blockK;
          problem.weight.zeroPoint = zeroPoint;
          SharedMemoryLayout l = layout();
          for (int64_t value : {l.weights, l.activations, l.scales,
                                l.zeroPoints, l.stageBytes, l.totalBytes})
            EXPECT_EQ(value % 128, 0);
          EXPECT_LE(l.weights, l.activations);
          EXPECT_LE(l.activations, l.scales);
          EXPECT_LE(l.scales, l.zeroPoints);
          EXPECT_LE(l.zeroPoints, l.stageBytes);
          EXPECT_GE(l.totalBytes, l.stages * l.stageBytes);
          EXPECT_GE(l.totalBytes, l.epilogueBytes);
        }
}

TEST_F(Layout, SyncHasTwoBuffers) {
  config.copy = CopyKind::Sync;
  config.stages = 2;
  EXPECT_EQ(layout().stages, 2);
  EXPECT_EQ(layout().totalBytes, 2 * 16640);
}

TEST_F(Layout, TheReductionMayBeTheLargerPart) {
  config.blockN = 256;
  config.blockM = 64;
  config.blockK = 256;
  config.warpsK = 4;
  config.stages = 2;
  EXPECT_EQ(layout().epilogueBytes, 3 * 256 * 64 * 4);
  EXPECT_EQ(layout().totalBytes, 3 * 256 * 64 * 4);
}

TEST(Registers, GrowWithTheTileAndThePlacement) {
  MatmulProblem problem;
  KernelConfig config;
  config.blockM = config.warpM = 8;
  int32_t small = predictRegisters(problem, config);
  // Base 40, 4 accumulators, 4 packed words, 4 operand, 4 activation, 2 scale.
  config.copy = CopyKind::CpAsync;
  EXPECT_EQ(predictRegisters(problem, config), 58);
  EXPECT_GT(small, 58); // a stage waits in registers without cp.async
  config.warpN = config.blockN = 64;
  config.warpM = config.blockM = 64;
  config.scale = ScalePlacement::Operand;
  EXPECT_EQ(predictRegisters(problem, config), 40 + 128 + 16 + 16 + 32 + 8);
  config.scale = ScalePlacement::Accumulator;
  EXPECT_EQ(predictRegisters(problem, config), 40 + 256 + 16 + 16 + 32 + 8);
}

TEST(KernelConfig, TensorBoxRows) {
  const std::pair<int32_t, int32_t> cases[] = {
      {8, 8}, {48, 48}, {256, 256}, {264, 88}, {272, 136}, {512, 256}};
  for (auto [rows, box] : cases)
    EXPECT_EQ(tensorBoxRows(rows), box);
}

} // namespace
