//===- BenchTest.cpp - Tests of humming-bench on a fake driver ------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"
#include "Measure.h"
#include "Sweep.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

using namespace humming;
using namespace llvm;

namespace {

KernelArtifacts makeKernel() {
  KernelArtifacts kernel;
  LaunchDescription &d = kernel.launch;
  d = makeLaunchDescription();
  d.splitK = 1;
  d.config = "mma=m16n8k16,block=128x16x128,warp=32x16,warps_k=2,stages=4,"
             "copy=cp.async,scale=accumulator,split_k=1";
  kernel.name = d.kernelName;
  kernel.ptx = makePtx("sm_90", "7.8");
  return kernel;
}

class BenchTest : public testing::Test {
protected:
  void SetUp() override {
    driver = cantFail(CudaDriver::create(fake.table));
    bench = cantFail(Bench::create(*driver, 0, MeasureOptions()));
  }
  /// What was uploaded to an address of the last launch.
  std::vector<uint8_t> uploaded(uint64_t address) {
    return fake.uploads[address];
  }

  FakeDriver fake;
  std::unique_ptr<CudaDriver> driver;
  std::unique_ptr<Bench> bench;
};

TEST_F(BenchTest, RotatesOverColdWeightsInAGraph) {
  // 8192 x 8192 of 4 bits: nine copies make 300 MB, 18 launches are too few for
  // a graph, 20 are no whole rotation.
  Measurement got = cantFail(bench->measure(makeKernel(), 16, 8192, 8192));
  EXPECT_EQ(got.copies, 9);
  EXPECT_EQ(got.graphLaunches, 18);
  EXPECT_DOUBLE_EQ(got.microseconds, 1500.0 / 18);
  std::set<uint64_t> weights;
  for (const FakeDriver::Launch &launch : fake.launches)
    weights.insert(launch.pointers[1]);
  EXPECT_EQ(weights.size(), 9u);
  // Weights, scales, x and c, once each.
  EXPECT_EQ(got.bytes, 8192 * 4096 + 8192 * 64 * 2 + 2 * 2 * 16 * 8192);
}

TEST_F(BenchTest, FillsBothLevelsOfScales) {
  KernelArtifacts kernel = makeKernel();
  kernel.launch.weight = "e2m1";
  kernel.launch.scale = "e4m3";
  kernel.launch.granularity = "16";
  kernel.launch.globalScale = "tensor";
  (void)cantFail(bench->measure(kernel, 1, 256, 512));
  const FakeDriver::Launch &launch = fake.launches.back();
  std::vector<uint8_t> global = uploaded(launch.scalePointers[0]);
  ASSERT_EQ(global.size(), 4u);
  float value;
  memcpy(&value, global.data(), 4);
  EXPECT_FLOAT_EQ(value, 1.0f / 96); // 1/16 over the largest code
  EXPECT_EQ(launch.scalePointers[1], 0u);
  for (uint8_t scale : uploaded(launch.pointers[2])) {
    double s = NumberFormat::smallFloat(4, 3).decode(scale);
    EXPECT_GE(s, 1);
    EXPECT_LE(s, 2);
  }
}

TEST_F(BenchTest, FillsActivationScalesAndNoNaN) {
  KernelArtifacts kernel = makeKernel();
  kernel.launch.activation = kernel.launch.weight = "e4m3";
  kernel.launch.scale = "f32";
  kernel.launch.granularity = "0";
  kernel.launch.activationScale = "token";
  (void)cantFail(bench->measure(kernel, 3, 256, 512));
  const FakeDriver::Launch &launch = fake.launches.back();
  std::vector<uint8_t> scales = uploaded(launch.scalePointers[1]);
  ASSERT_GE(scales.size(), 4u);
  float value;
  memcpy(&value, scales.data(), 4);
  EXPECT_FLOAT_EQ(value, 1.0f / 448);
  for (uint8_t code : uploaded(launch.pointers[1]))
    ASSERT_NE(code & 0x7f, 0x7f);
  for (uint8_t code : uploaded(launch.pointers[0]))
    ASSERT_NE(code & 0x7f, 0x7f);
}

TEST_F(BenchTest, NibblesOfActivationsLieTwoInAByte) {
  KernelArtifacts kernel = makeKernel();
  kernel.launch.activation = kernel.launch.weight = "s4";
  kernel.launch.scale = "f32";
  kernel.launch.granularity = "0";
  kernel.launch.activationScale = "tensor";
  (void)cantFail(bench->measure(kernel, 2, 256, 512));
  EXPECT_EQ(uploaded(fake.launches.back().pointers[0]).size(), 2u * 512 / 2);
}

TEST_F(BenchTest, MeasuresQuantizeKernels) {
  KernelArtifacts kernel = makeKernel();
  LaunchDescription &d = kernel.launch;
  d.operation = "quantize";
  d.weight.clear();
  d.scale.clear();
  d.activation = "bf16";
  d.output = "s4";
  d.activationScale = "token";
  d.activationGroup = 64;
  d.gate = "silu";
  d.blockN = 0;
  d.blockM = 1;
  d.config = "lanes=8,groups=16,rows=1,chunks=1";
  fake.numPointers = fake.numNumbers = 4;
  fake.numScalePointers = 0;
  Measurement got = cantFail(bench->measureQuantize(kernel, 17, 4096));
  EXPECT_EQ(got.copies, 1);
  EXPECT_EQ(got.graphLaunches, 20);
  EXPECT_EQ(got.flops, 0);
  // A gated input is twice as wide; scales of 64 groups are of 32 tokens.
  EXPECT_EQ(got.bytes, 17 * 2 * 4096 * 2 + 17 * 4096 / 2 + 64 * 32 * 4);
  EXPECT_EQ(fake.launches.back().numbers,
            (std::vector<int32_t>{17, 4096, 8192, 4096}));
  EXPECT_EQ(toString(bench->measureQuantize(kernel, 0, 64).takeError()),
            "--m: expected at least 1 to measure, got 0");
  EXPECT_EQ(toString(bench->measurePack(kernel, 64, 64).takeError()),
            d.kernelName + ": expected a pack kernel, got quantize");
}

TEST_F(BenchTest, MeasuresGathersAndPacks) {
  KernelArtifacts kernel = makeKernel();
  LaunchDescription &d = kernel.launch;
  d.operation = "gather";
  d.weight.clear();
  d.scale.clear();
  d.activation = d.output = "bf16";
  d.blockN = 1024;
  d.blockM = 1;
  fake.numPointers = 3;
  fake.numNumbers = 5;
  fake.numScalePointers = 0;
  Measurement got = cantFail(bench->measureGather(kernel, 3, 4096));
  EXPECT_EQ(got.bytes, 2 * 3 * 4096 * 2 + 4 * 4096);
  EXPECT_EQ(fake.launches.back().numbers,
            (std::vector<int32_t>{3, 4096, 4096, 4096, 4096}));
  // A permutation.
  std::vector<uint8_t> order = uploaded(fake.launches.back().pointers[1]);
  ASSERT_EQ(order.size(), 4u * 4096);
  std::set<int32_t> columns;
  for (size_t i = 0; i < order.size(); i += 4) {
    int32_t column;
    memcpy(&column, &order[i], 4);
    EXPECT_TRUE(column >= 0 && column < 4096);
    columns.insert(column);
  }
  EXPECT_EQ(columns.size(), 4096u);

  d.operation = "pack";
  d.weight = "u4";
  d.output = "u4";
  d.blockN = 64;
  fake.numPointers = 2;
  fake.numNumbers = 3;
  fake.launches.clear();
  Expected<Measurement> pack = bench->measurePack(kernel, 8192, 8192);
  ASSERT_TRUE(bool(pack)) << toString(pack.takeError());
  got = *pack;
  // Five copies of 64 MB make 300 MB.
  EXPECT_EQ(got.copies, 5);
  EXPECT_EQ(got.graphLaunches, 20);
  EXPECT_EQ(got.bytes, 8192 * 8192 + 8192 * 4096);
  std::set<uint64_t> sources;
  for (const FakeDriver::Launch &launch : fake.launches)
    sources.insert(launch.pointers[0]);
  EXPECT_EQ(sources.size(), 5u);
}

TEST(Sweep, SaysHowFarThePickIsFromTheBest) {
  std::vector<SweepEntry> entries = {{"a", 10, 12, ""},
                                     {"b", 11, 9, ""},
                                     {"c", 12, 24, ""},
                                     {"d", 13, 0, "out of memory"},
                                     {"e", 9, 10, ""}};
  SweepSummary summary = summarizeSweep(entries, "a");
  EXPECT_EQ(summary.configs, 5);
  EXPECT_EQ(summary.measured, 4);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(summary.best, "b");
  EXPECT_EQ(summary.bestMicroseconds, 9);
  EXPECT_EQ(summary.pickRank, 3);
  EXPECT_DOUBLE_EQ(summary.excess(), 12.0 / 9 - 1);
  // Ratios 1.2, 0.818, 2, 1.111.
  EXPECT_DOUBLE_EQ(summary.medianRatio, 1.2);
  EXPECT_DOUBLE_EQ(summary.worstRatio, 2);
  EXPECT_NE(summary.str().find("the pick takes 33.3% more than the best"),
            std::string::npos);
}

TEST(Sweep, PredictionsAloneNameTheLeast) {
  std::vector<SweepEntry> entries = {{"a", 10, 0, ""}, {"b", 8, 0, ""}};
  SweepSummary summary = summarizeSweep(entries, "x");
  EXPECT_EQ(summary.best, "b");
  EXPECT_EQ(summary.measured, 0);
  EXPECT_EQ(summary.excess(), 0);
  EXPECT_NE(summary.str().find("pick: not among them"), std::string::npos);
  EXPECT_EQ(summarizeSweep({}, "x").configs, 0);
}

// A compiled kernel carries what is needed to ask the chooser again.
TEST(Sweep, PredictsFromTheLaunchDescription) {
  KernelArtifacts kernel = makeKernel();
  EXPECT_GT(predictedMicroseconds(kernel.launch, 16, 8192, 8192), 9);
  std::string pick = cantFail(pickFor(kernel.launch, 16, 8192, 8192));
  kernel.launch.config = pick;
  EXPECT_GT(predictedMicroseconds(kernel.launch, 16, 8192, 8192), 9);
  kernel.launch.chip = "sm_1";
  EXPECT_EQ(predictedMicroseconds(kernel.launch, 16, 8192, 8192), 0);
}

} // namespace
