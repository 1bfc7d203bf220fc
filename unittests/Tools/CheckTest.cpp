//===- CheckTest.cpp - Tests of humming-run's checks ----------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An executor that multiplies on the host, from the same packed buffers that a
// kernel gets, stands in for the GPU. It can be told to do wrong what kernels
// do wrong; the check must notice each.
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "Humming/Quant/Packing.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace humming;
using namespace llvm;

namespace {

LaunchDescription makeLaunch() {
  LaunchDescription d;
  d.kernelName = "kernel";
  d.chip = "sm_90";
  d.ptxVersion = 78;
  d.blockThreads = 128;
  d.blockN = 64;
  d.blockM = 16;
  d.activation = d.scale = d.output = "bf16";
  d.weight = "u4";
  d.granularity = "32";
  d.zeroPoint = "none";
  d.kDivisor = d.nDivisor = 2;
  d.config = "mma=m16n8k16,block=64x16x64,warp=16x16,scale=accumulator";
  return d;
}

enum class Fault {
  None,
  WrongValue,
  MissingRow,
  BeforeOutput,
  AfterOutput,
  OutputPadding,
  ReadsPadding,
  ReadsPastWeights,
  ChangesInput,
  WritesPastInput,
  LeavesCounters,
  NeedsFreshCounters,
  DependsOnWorkspace,
  ProducesNan,
};

class HostExecutor : public Executor {
public:
  explicit HostExecutor(Fault fault) : fault(fault) {}

  std::string device() const override { return "host"; }
  std::string loadedFrom() const override { return "host"; }
  Error load(const KernelArtifacts &artifacts) override {
    launchDescription = artifacts.launch;
    return Error::success();
  }
  Error upload(BufferSlot slot, ArrayRef<uint8_t> image) override {
    images[unsigned(slot)] = image.vec();
    return Error::success();
  }
  Error download(BufferSlot slot, MutableArrayRef<uint8_t> image) override {
    const std::vector<uint8_t> &from = images[unsigned(slot)];
    EXPECT_EQ(from.size(), image.size());
    std::memcpy(image.data(), from.data(), image.size());
    return Error::success();
  }

  Error launch(const LaunchSizes &s) override {
    ++launches;
    if (s.m == 0)
      return Error::success();
    MatmulProblem problem =
        cantFail(problemOf(launchDescription, s.m, s.n, s.k));
    const QuantType &type = problem.weight;
    ArrayRef<uint8_t> x = data(BufferSlot::X);
    std::vector<uint8_t> codes(size_t(s.n) * s.k);
    cantFail(unpackWeights(data(BufferSlot::Weights), s.n, s.k,
                           problem.activation.bits, type.weight.bits, codes,
                           1));
    int64_t groups = type.scaleColumns(s.k);
    auto unpack = [&](BufferSlot slot, NumberFormat format) {
      unsigned bytes = elementBytes(format);
      std::vector<uint8_t> plain(size_t(s.n * groups) * bytes);
      cantFail(unpackScales(data(slot), s.n, groups, bytes, plain));
      return decodeElements(format, plain);
    };
    std::vector<double> scales = unpack(BufferSlot::Scales, type.scale);
    std::vector<double> zeros;
    if (type.zeroPoint == ZeroPointKind::Integer)
      zeros = unpack(BufferSlot::ZeroPoints, NumberFormat::unsignedInt(8));
    else if (type.zeroPoint == ZeroPointKind::Float)
      zeros = unpack(BufferSlot::ZeroPoints, type.scale);
    std::vector<double> bias;
    if (launchDescription.hasBias)
      bias = decodeElements(problem.output, data(BufferSlot::Bias));
    std::vector<double> activations = decodeElements(problem.activation, x);
    std::vector<double> values = codeValues(type);

    MutableArrayRef<uint8_t> c = data(BufferSlot::Output);
    for (int64_t row = 0; row < s.m; ++row) {
      if (fault == Fault::MissingRow && row == s.m - 1)
        continue;
      for (int64_t n = 0; n < s.n; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < s.k; ++k) {
          int64_t at = n * groups + type.scaleColumn(k);
          double z = zeros.empty() ? 0 : zeros[size_t(at)];
          double q = zeros.empty() ? values[codes[size_t(n * s.k + k)]]
                                   : double(codes[size_t(n * s.k + k)]);
          sum += (q - z) * scales[size_t(at)] *
                 activations[size_t(row * s.ldx + k)];
        }
        if (!bias.empty())
          sum += bias[size_t(n)];
        if (fault == Fault::ReadsPadding && n == 3)
          // As a kernel that relies on zeros past the end of a row.
          sum += activations[size_t(row * s.ldx + s.k)];
        if (fault == Fault::ReadsPastWeights && n == 3)
          sum += images[unsigned(BufferSlot::Weights)].back();
        if (fault == Fault::DependsOnWorkspace && n == 3)
          sum += data(BufferSlot::Workspace).back();
        if (fault == Fault::WrongValue && row == 1 && n == s.n - 1)
          sum = sum * 1.5 + 1;
        if (fault == Fault::ProducesNan && n == 5)
          sum = std::numeric_limits<double>::quiet_NaN();
        if (fault == Fault::NeedsFreshCounters && launches % 2 == 0)
          sum = 0;
        uint32_t code = sum != sum ? 0x7fc0 : problem.output.encode(sum);
        std::memcpy(&c[size_t(row * s.ldc + n) * 2], &code, 2);
      }
    }
    auto poke = [&](BufferSlot slot, int64_t offset) {
      images[unsigned(slot)][size_t(int64_t(kGuardBytes) + offset)] ^= 0x55;
    };
    if (launches == 1) {
      if (fault == Fault::BeforeOutput)
        poke(BufferSlot::Output, -1);
      if (fault == Fault::AfterOutput)
        poke(BufferSlot::Output, int64_t(c.size()) + 15);
      if (fault == Fault::OutputPadding)
        poke(BufferSlot::Output, int64_t(s.ldc) * 2 - 1);
      if (fault == Fault::ChangesInput)
        poke(BufferSlot::Scales, 2);
      if (fault == Fault::WritesPastInput)
        poke(BufferSlot::X, int64_t(x.size()));
      if (fault == Fault::LeavesCounters)
        data(BufferSlot::Workspace)[0] = 1;
    }
    return Error::success();
  }

private:
  MutableArrayRef<uint8_t> data(BufferSlot slot) {
    MutableArrayRef<uint8_t> image = images[unsigned(slot)];
    return image.drop_front(kGuardBytes).drop_back(kGuardBytes);
  }

  Fault fault;
  int launches = 0;
  LaunchDescription launchDescription;
  std::vector<uint8_t> images[kNumBufferSlots];
};

Expected<CheckReport> check(const LaunchDescription &launch, Fault fault,
                            int64_t m, int64_t n, int64_t k,
                            const CheckOptions &options = {}) {
  KernelArtifacts artifacts;
  artifacts.launch = launch;
  Expected<MatmulProblem> problem = problemOf(launch, m, n, k);
  if (!problem)
    return problem.takeError();
  Expected<HostLayer> layer = makeRandomLayer(*problem, 7);
  if (!layer)
    return layer.takeError();
  HostExecutor executor(fault);
  cantFail(executor.load(artifacts));
  return runAndCheck(executor, artifacts, *layer, m, options);
}

TEST(Check, RightResultsPass) {
  LaunchDescription d = makeLaunch();
  for (int64_t m : {0, 1, 5}) {
    CheckReport report = cantFail(check(d, Fault::None, m, 70, 98));
    EXPECT_TRUE(report.ok) << report.detail;
    EXPECT_EQ(report.outputs, m * 70);
    EXPECT_EQ(report.checked, m * 70);
    // The host's result is rounded once, to bf16: half a unit in the last of 8
    // bits. The bound leaves room for more, but errors must be there.
    if (m > 0) {
      EXPECT_GT(report.comparison.maxError, 0);
      EXPECT_LT(report.comparison.relativeFrobenius, 0x1p-8);
    }
  }
}

TEST(Check, EveryKindOfLayerPasses) {
  for (const char *zeroPoint : {"none", "int", "float"})
    for (const char *granularity : {"32", "0", "128"})
      for (bool bias : {false, true})
        for (int splitK : {1, 3}) {
          LaunchDescription d = makeLaunch();
          d.zeroPoint = zeroPoint;
          d.granularity = granularity;
          d.hasBias = bias;
          d.splitK = splitK;
          CheckReport report = cantFail(check(d, Fault::None, 3, 66, 130));
          EXPECT_TRUE(report.ok)
              << zeroPoint << " " << granularity << ": " << report.detail;
        }
}

TEST(Check, EveryFaultIsNoticed) {
  struct {
    Fault fault;
    bool CheckReport::*flag; ///< null: the comparison
    const char *detail;
  } const cases[] = {
      {Fault::WrongValue, nullptr, ""},
      {Fault::MissingRow, &CheckReport::deterministic, "row 4, feature 0"},
      {Fault::BeforeOutput, &CheckReport::guardsIntact,
       "c was written out of bounds, at byte -1"},
      {Fault::AfterOutput, &CheckReport::guardsIntact,
       "c was written out of bounds"},
      {Fault::OutputPadding, &CheckReport::paddingIntact,
       "the padding of row 0 of c"},
      {Fault::ReadsPadding, &CheckReport::deterministic, "feature 3"},
      {Fault::ReadsPastWeights, &CheckReport::deterministic, "feature 3"},
      {Fault::ChangesInput, &CheckReport::inputsIntact, "scales was changed"},
      {Fault::WritesPastInput, &CheckReport::guardsIntact,
       "x was written out of bounds"},
      {Fault::LeavesCounters, &CheckReport::countersZero, "counters"},
      {Fault::NeedsFreshCounters, nullptr, ""},
      {Fault::DependsOnWorkspace, &CheckReport::deterministic, "feature 3"},
      {Fault::ProducesNan, nullptr, ""},
  };
  LaunchDescription d = makeLaunch();
  d.splitK = 2;
  for (const auto &test : cases) {
    CheckReport report = cantFail(check(d, test.fault, 5, 70, 98));
    EXPECT_FALSE(report.ok) << int(test.fault);
    EXPECT_NE(report.detail.find(test.detail), std::string::npos)
        << int(test.fault) << ": " << report.detail;
    EXPECT_NE(report.detail, "") << int(test.fault);
    if (test.flag)
      EXPECT_FALSE(report.*test.flag) << int(test.fault);
    else
      EXPECT_FALSE(report.comparison.ok) << int(test.fault);
  }
}

TEST(Check, OutputsThatAreNotComparedAreStillWatched) {
  LaunchDescription d = makeLaunch();
  CheckOptions options;
  options.referenceBudget = 1;
  // 1000 features, 256 of them compared; the fault is in feature 5, which is
  // always compared, and in the last; the NaN count covers all.
  CheckReport report = cantFail(check(d, Fault::None, 2, 1000, 64, options));
  EXPECT_TRUE(report.ok) << report.detail;
  EXPECT_EQ(report.outputs, 2000);
  EXPECT_EQ(report.checked, 512);
  report = cantFail(check(d, Fault::WrongValue, 2, 1000, 64, options));
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.comparison.feature, 999);
  report = cantFail(check(d, Fault::ProducesNan, 2, 1000, 64, options));
  EXPECT_EQ(report.nans, 2);
}

TEST(Check, FeaturesAreASortedSample) {
  std::vector<int64_t> all = chooseFeatures(1, 100, 10, 1 << 20, 0);
  EXPECT_EQ(all.size(), 100u);
  std::vector<int64_t> some = chooseFeatures(1024, 8192, 8192, 1 << 31, 3);
  EXPECT_EQ(some.size(), 256u);
  for (size_t i = 1; i < some.size(); ++i)
    EXPECT_LT(some[i - 1], some[i]);
  for (int64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(some[size_t(i)], i);
    EXPECT_EQ(some[some.size() - 1 - size_t(i)], 8191 - i);
  }
  EXPECT_EQ(some, chooseFeatures(1024, 8192, 8192, 1 << 31, 3));
  EXPECT_NE(some, chooseFeatures(1024, 8192, 8192, 1 << 31, 4));
}

} // namespace
