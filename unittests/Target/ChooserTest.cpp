//===- ChooserTest.cpp - The choice on every chip ------------------ -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// choices.txt holds the choice of every chip for a set of problems. After a
// deliberate change of table, rules or cost model, rewrite it with
//   HUMMING_UPDATE_CHOICES=1 HummingTargetTests --gtest_filter=Chooser.Choices
// and review the difference.
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/KernelConfig.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <set>

using namespace humming;

namespace {

const TargetInfo &target(llvm::StringRef chip) {
  return *llvm::cantFail(getTargetInfo(chip));
}

/// A problem in the types that the chip runs, all of one 16-bit format.
MatmulProblem problemFor(const TargetInfo &t, int64_t m, int64_t n, int64_t k,
                         Granularity granularity = Granularity::group(128)) {
  MatmulProblem p;
  p.activation = t.hasBf16Mma ? NumberFormat::bf16() : NumberFormat::f16();
  p.output = p.weight.scale = p.activation;
  p.weight.granularity = granularity;
  p.m = m;
  p.n = n;
  p.k = k;
  p.deriveDivisors();
  return p;
}

RankedConfig best(const MatmulProblem &problem, const TargetInfo &t) {
  return llvm::cantFail(chooseConfig(problem, t, 1)).front();
}

std::string describeChoices() {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const TargetInfo &t : getAllTargets()) {
    llvm::SmallVector<MatmulProblem> problems;
    const std::pair<int64_t, int64_t> shapes[] = {
        {8192, 8192}, {4096, 4096}, {28672, 4096}, {1000, 1048}, {384, 1536}};
    for (auto [n, k] : shapes)
      for (int64_t m : {1, 8, 16, 33, 64, 257, 1024, 8192})
        problems.push_back(problemFor(t, m, n, k));
    problems.push_back(problemFor(t, 0, 8192, 8192));
    problems.push_back(problemFor(t, 16, 0, 0));
    problems.push_back(problemFor(t, 1, 1, 1));
    for (int32_t group : {0, 16, 32, 64, 1024})
      problems.push_back(
          problemFor(t, 16, 4096, 4096, Granularity::group(group)));
    for (ZeroPointKind kind : {ZeroPointKind::Integer, ZeroPointKind::Float}) {
      problems.push_back(problemFor(t, 16, 4096, 4096));
      problems.back().weight.zeroPoint = kind;
    }
    // Scales of another type than the activation: operand scaling is out.
    problems.push_back(problemFor(t, 1024, 4096, 4096));
    problems.back().activation = NumberFormat::f16();
    problems.back().weight.scale = NumberFormat::bf16();
    for (const MatmulProblem &problem : problems) {
      RankedConfig choice = best(problem, t);
      os << t.chip << ": " << problem.str() << "\n  " << choice.config.str()
         << "\n  "
         << llvm::formatv("{0:f1} us, {1:f1} KB, {2}\n",
                          choice.cost.microseconds, choice.cost.bytes / 1e3,
                          choice.cost.limiter);
    }
  }
  return text;
}

TEST(Chooser, Choices) {
  const char *path = HUMMING_SOURCE_DIR "/unittests/Target/choices.txt";
  std::string actual = describeChoices();
  if (std::getenv("HUMMING_UPDATE_CHOICES")) {
    std::error_code error;
    llvm::raw_fd_ostream os(path, error);
    ASSERT_FALSE(error) << error.message();
    os << actual;
  }
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  ASSERT_TRUE(bool(buffer)) << path << ": " << buffer.getError().message();
  llvm::SmallVector<llvm::StringRef> expectedLines, actualLines;
  (*buffer)->getBuffer().split(expectedLines, '\n');
  llvm::StringRef(actual).split(actualLines, '\n');
  ASSERT_EQ(expectedLines.size(), actualLines.size());
  for (size_t i = 0; i < actualLines.size(); ++i)
    EXPECT_EQ(expectedLines[i].str(), actualLines[i].str())
        << "line " << i + 1 << " of choices.txt";
}

TEST(Chooser, EveryCandidateIsLegalAndListedOnce) {
  for (const TargetInfo &t : getAllTargets())
    for (int64_t m : {1, 64, 1024}) {
      MatmulProblem problem = problemFor(t, m, 4096, 4096);
      auto configs = enumerateConfigs(problem, t);
      EXPECT_FALSE(configs.empty());
      // Sweeping a space should stay a matter of minutes.
      EXPECT_LT(configs.size(), 8000u);
      std::set<std::string> seen;
      for (const KernelConfig &config : configs) {
        EXPECT_EQ(llvm::toString(checkConfig(problem, config, t)), "");
        EXPECT_TRUE(seen.insert(config.str()).second) << config.str();
      }
    }
}

TEST(Chooser, TheFirstIsTheCheapestAndTheOrderAscends) {
  const TargetInfo &t = target("sm_80");
  MatmulProblem problem = problemFor(t, 33, 4096, 4096);
  auto ranked = llvm::cantFail(chooseConfig(problem, t, 5));
  ASSERT_EQ(ranked.size(), 5u);
  for (size_t i = 1; i < ranked.size(); ++i) {
    // Compared in whole nanoseconds.
    EXPECT_LE(ranked[i - 1].cost.microseconds,
              ranked[i].cost.microseconds + 0.001);
    EXPECT_TRUE(ranked[i].config != ranked[i - 1].config);
  }
  for (const KernelConfig &config : enumerateConfigs(problem, t))
    EXPECT_GE(estimateCost(problem, config, t).microseconds + 0.001,
              ranked[0].cost.microseconds);
}

TEST(Chooser, Deterministic) {
  for (const TargetInfo &t : getAllTargets()) {
    MatmulProblem problem = problemFor(t, 16, 8192, 8192);
    auto first = llvm::cantFail(chooseConfig(problem, t, 4));
    auto second = llvm::cantFail(chooseConfig(problem, t, 4));
    ASSERT_EQ(first.size(), second.size());
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(first[i].config.str(), second[i].config.str());
      EXPECT_EQ(first[i].cost.microseconds, second[i].cost.microseconds);
    }
  }
}

// keep = 0 still answers.
TEST(Chooser, KeepsAtLeastOne) {
  const TargetInfo &t = target("sm_80");
  auto ranked = llvm::cantFail(chooseConfig(problemFor(t, 1, 64, 64), t, 0));
  EXPECT_EQ(ranked.size(), 1u);
}

TEST(Chooser, RefusesWhatTheTargetCannotRun) {
  MatmulProblem problem = problemFor(target("sm_80"), 1, 64, 64);
  auto ranked = chooseConfig(problem, target("sm_75"), 2);
  ASSERT_FALSE(bool(ranked));
  EXPECT_TRUE(llvm::StringRef(llvm::toString(ranked.takeError()))
                  .starts_with("rule P3: "));
}

// One token more costs little, except where it starts another tile (multiples
// of 16 rows) or another wave; there the padded work grows by at most 32/48.
// One token less never costs more than rounding and a change of tile.
TEST(Chooser, NoCliffsBetweenNeighbours) {
  for (llvm::StringRef chip :
       {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"}) {
    const TargetInfo &t = target(chip);
    const std::pair<int64_t, int64_t> shapes[] = {{8192, 8192}, {1000, 1048}};
    for (auto [n, k] : shapes) {
      double previous = 0;
      for (int64_t m = 1; m <= 272; ++m) {
        double now = best(problemFor(t, m, n, k), t).cost.microseconds;
        if (m > 1) {
          EXPECT_LE(now / previous, (m - 1) % 16 == 0 ? 1.6 : 1.25)
              << chip.str() << " N=" << n << " K=" << k << " M=" << m;
          EXPECT_GE(now / previous, 0.97)
              << chip.str() << " N=" << n << " K=" << k << " M=" << m;
        }
        previous = now;
      }
    }
  }
}

// The same for large M, around each power of two, in other shapes and formats:
// one token more costs at most half a wave more. (4096 x 4096, e4m3: 1024
// tokens are 128 blocks of 128 x 256 on 132 SMs, 1025 are 160, of which a
// second wave takes 28; smaller tiles bring it down to 1.49, or 1.52 for
// nvfp4, whose weights cost more to dequantize.)
TEST(Chooser, NoCliffsAtLargeM) {
  struct Format {
    const char *activation, *weight, *scale;
    Granularity granularity;
  } const formats[] = {{"bf16", "u4", "bf16", Granularity::group(128)},
                       {"bf16", "e2m1", "e4m3", Granularity::group(16)},
                       {"e4m3", "e4m3", "f32", Granularity::perChannel()},
                       {"s8", "u4", "bf16", Granularity::group(128)}};
  for (llvm::StringRef chip : {"sm_80", "sm_90a"}) {
    const TargetInfo &t = target(chip);
    for (const Format &format : formats) {
      const std::pair<int64_t, int64_t> shapes[] = {
          {8192, 8192}, {4096, 4096}, {28672, 4096}};
      for (auto [n, k] : shapes) {
        MatmulProblem p = problemFor(t, 1, n, k, format.granularity);
        p.activation = llvm::cantFail(NumberFormat::parse(format.activation));
        p.weight.weight = llvm::cantFail(NumberFormat::parse(format.weight));
        p.weight.scale = llvm::cantFail(NumberFormat::parse(format.scale));
        if (p.activation.bits == 8)
          p.activationScale = ActivationScaleKind::Token;
        llvm::Error illegal = checkProblem(p, t);
        if (illegal) { // e4m3 on sm_80
          llvm::consumeError(std::move(illegal));
          continue;
        }
        double atPower = 0;
        for (int64_t power : {256, 512, 1024, 2048, 4096, 8192}) {
          double times[3];
          for (int64_t i = 0; i < 3; ++i) {
            p.m = power - 1 + i;
            times[i] = best(p, t).cost.microseconds;
          }
          std::string what = (chip + ", " + p.str()).str();
          EXPECT_GE(times[1] / times[0], 0.97) << what;
          EXPECT_LE(times[1] / times[0], 1.1) << what;
          EXPECT_GE(times[2] / times[1], 0.97) << what;
          EXPECT_LE(times[2] / times[1], 1.53) << what;
          // Twice the tokens take at most twice the time, and some.
          if (atPower > 0)
            EXPECT_LE(times[1] / atPower, 2.25) << what;
          atPower = times[1];
        }
      }
    }
  }
}

// HB-82: on Hopper, MXFP4 weights with FP8 activations are no slower than with
// bf16 ones for few tokens, where what counts is bytes and dequantization
// (measured on an H200: 11.9 us against 14.5 at M = 1, 13.2 against 16.8 at
// 16). For many, bf16 is faster: its scales go on the operand, while those of
// FP8, 32 weights apart, cost an fma a sum and MMA (docs/Performance.md).
TEST(Chooser, NarrowActivationsPay) {
  const TargetInfo &t = target("sm_90a");
  for (int64_t m : {1, 16}) {
    MatmulProblem wide = problemFor(t, m, 8192, 8192, Granularity::group(32));
    wide.weight.weight = NumberFormat::smallFloat(2, 1);
    wide.weight.scale = NumberFormat::e8m0();
    MatmulProblem narrow = wide;
    narrow.activation = NumberFormat::smallFloat(4, 3);
    narrow.activationScale = ActivationScaleKind::Token;
    EXPECT_LE(best(narrow, t).cost.microseconds,
              best(wide, t).cost.microseconds)
        << m;
  }
}

// A thread has two scales by row, up to 64 by column.
TEST(Chooser, TokensAreRowsWithActivationGroups) {
  const TargetInfo &target = **getTargetInfo("sm_90a");
  MatmulProblem p;
  p.activation = p.weight.weight = NumberFormat::smallFloat(4, 3);
  p.weight.scale = NumberFormat::f32();
  p.weight.granularity = Granularity::block(128, 128);
  p.activationScale = ActivationScaleKind::Token;
  p.activationGroup = 128;
  p.n = p.k = 8192;
  p.deriveDivisors();
  p.weightLayout = WeightLayout::Plain;
  for (int64_t m : {128, 256, 1024, 8192}) {
    p.m = m;
    EXPECT_TRUE(best(p, target).config.tokenRows()) << m;
  }
  for (int64_t m : {0, 1, 16, 33}) {
    p.m = m;
    EXPECT_FALSE(best(p, target).config.tokenRows()) << m;
  }
  // Splits too are legal.
  for (int64_t m : {64, 128, 1024}) {
    p.m = m;
    std::set<std::string> seen;
    for (const KernelConfig &config : enumerateConfigs(p, target)) {
      EXPECT_EQ(llvm::toString(checkConfig(p, config, target)), "");
      EXPECT_TRUE(seen.insert(config.str()).second) << config.str();
    }
  }
  // Scales of rows of weights are by column then: not in the loop.
  auto anyTokenRows = [&] {
    return llvm::any_of(
        enumerateConfigs(p, target),
        [](const KernelConfig &config) { return config.tokenRows(); });
  };
  EXPECT_TRUE(anyTokenRows());
  p.weight.granularity = Granularity::group(128);
  EXPECT_FALSE(anyTokenRows());
  // Nothing else is a matter of rows.
  p.weight.granularity = Granularity::block(128, 128);
  p.activationGroup = 0;
  EXPECT_FALSE(anyTokenRows());
}

/// Weights and activations of e4m3, a scale a row of weights.
MatmulProblem narrowProblem(int64_t m) {
  MatmulProblem p;
  p.activation = p.weight.weight = NumberFormat::smallFloat(4, 3);
  p.activationScale = ActivationScaleKind::Token;
  p.weight.scale = NumberFormat::f32();
  p.weight.granularity = Granularity::perChannel();
  p.m = m;
  p.n = p.k = 8192;
  p.deriveDivisors();
  p.weightLayout = p.naturalLayout();
  return p;
}

// Of configs for many tokens alone, and where it was measured to help.
TEST(Chooser, ArrangesBlocksAndCopies) {
  const TargetInfo &hopper = target("sm_90a");
  for (int64_t m : {256, 1024}) {
    KernelConfig c = best(narrowProblem(m), hopper).config;
    EXPECT_EQ(c.multicast, Multicast::Weights) << c.str();
    EXPECT_EQ(c.producers, 0) << c.str();
    if (m == 1024)
      EXPECT_GT(c.panel, 0) << c.str();
  }
  // The tiles of few tokens come as they did.
  KernelConfig few = best(narrowProblem(64), hopper).config;
  EXPECT_EQ(few.multicast, Multicast::None) << few.str();
  EXPECT_EQ(few.producers, 1) << few.str();
  EXPECT_EQ(few.panel, 0) << few.str();

  // An odd row of blocks has no neighbour to share with.
  unsigned odd = 0, even = 0;
  for (int64_t m : {128, 256, 384, 512, 640, 1024, 1152})
    for (const KernelConfig &c : enumerateConfigs(narrowProblem(m), hopper)) {
      bool isPair = (m + c.blockM - 1) / c.blockM % 2 == 0;
      EXPECT_TRUE(c.multicast == Multicast::None || isPair) << m << c.str();
      if (c.copy != CopyKind::Tensor || c.splitK != 1 || c.blockM < 128 ||
          c.stages < 4)
        continue;
      EXPECT_EQ(c.multicast == Multicast::Weights, isPair) << m << c.str();
      EXPECT_EQ(c.producers, 0) << m << c.str();
      ++(isPair ? even : odd);
    }
  EXPECT_GT(odd, 0u);
  EXPECT_GT(even, 0u);

  // Where weights are dequantized or sums scaled, a warp of its own copies.
  for (int64_t m : {256, 1024, 8192}) {
    MatmulProblem p = narrowProblem(m);
    p.weight.weight = NumberFormat::unsignedInt(4);
    p.weightLayout = WeightLayout::Packed;
    for (const KernelConfig &c : enumerateConfigs(p, hopper)) {
      EXPECT_EQ(c.producers, 1) << c.str();
      EXPECT_EQ(c.multicast, Multicast::None) << c.str();
    }
    p = narrowProblem(m);
    p.weight.granularity = Granularity::block(128, 128);
    for (const KernelConfig &c : enumerateConfigs(p, hopper))
      EXPECT_EQ(c.producers, 1) << c.str();
  }

  // Chips without tensor copies have none of it.
  for (int64_t m : {64, 256, 1024}) {
    MatmulProblem p = narrowProblem(m);
    p.activation = p.weight.weight = NumberFormat::signedInt(8);
    for (const KernelConfig &c : enumerateConfigs(p, target("sm_80"))) {
      EXPECT_EQ(c.multicast, Multicast::None) << c.str();
      EXPECT_EQ(c.producers, 1) << c.str();
      EXPECT_EQ(c.panel, 0) << c.str();
    }
  }
}

// A grid that would not fill the card is split along K. Half of the SMs are
// enough: on an H200, 64 blocks take 4.13 us for this layer, 128 blocks 4.11
// us.
TEST(Chooser, SmallLayersFillTheCard) {
  for (llvm::StringRef chip : {"sm_80", "sm_90"}) {
    const TargetInfo &t = target(chip);
    KernelConfig c = best(problemFor(t, 1, 1024, 4096), t).config;
    EXPECT_GT(c.splitK, 1);
    int64_t blocks = (1024 + c.blockN - 1) / c.blockN * c.splitK;
    EXPECT_GE(blocks, t.numSMs * 2 / 5) << c.str();
  }
}

// Decode on Hopper: small blocks, 64 KB or more in flight per SM, no split.
TEST(Chooser, DecodeOnHopper) {
  const TargetInfo &t = target("sm_90");
  for (int64_t m : {1, 16}) {
    MatmulProblem problem = problemFor(t, m, 8192, 8192);
    KernelConfig c = best(problem, t).config;
    EXPECT_EQ(c.blockN, 64);
    EXPECT_EQ(c.blockM, m == 1 ? 8 : 16);
    EXPECT_EQ(c.splitK, 1);
    EXPECT_EQ(c.scale, ScalePlacement::Accumulator);
    int64_t inFlight =
        (c.stages - 1) * layoutSharedMemory(problem, c).stageBytes;
    EXPECT_GE(inFlight, 64 * 1024);
    // Measured with early weights: 96 KB are best, 128 KB within 3 %.
    EXPECT_LE(inFlight, 128 * 1024);
  }
}

// Prefill: large tiles, scaling on the operand, three stages or more.
TEST(Chooser, PrefillOnAmpereAndHopper) {
  for (llvm::StringRef chip : {"sm_80", "sm_90"}) {
    KernelConfig c =
        best(problemFor(target(chip), 8192, 8192, 8192), target(chip)).config;
    EXPECT_GE(c.blockN * c.blockM, 128 * 128);
    EXPECT_EQ(c.scale, ScalePlacement::Operand);
    EXPECT_GE(c.stages, 3);
    EXPECT_EQ(c.splitK, 1);
  }
}

TEST(CostModel, BytesAreCountedOnce) {
  const TargetInfo &t = target("sm_90");
  MatmulProblem problem = problemFor(t, 1, 8192, 8192);
  // Weights, scales, one row of activations and one of output.
  double expected = 8192.0 * 8192 / 2 + 8192.0 * 64 * 2 + 2 * 8192 * 2;
  CostEstimate cost = estimateCost(problem, best(problem, t).config, t);
  EXPECT_EQ(cost.bytes, expected);
  // No faster than the copy rate and the smallest kernel.
  EXPECT_GT(cost.microseconds, expected / t.memoryBandwidth * 1e6 + 1.2);
}

TEST(CostModel, TooFewBytesInFlightCost) {
  const TargetInfo &t = target("sm_90");
  MatmulProblem problem = problemFor(t, 1, 8192, 8192);
  KernelConfig c = best(problem, t).config;
  double good = estimateCost(problem, c, t).microseconds;
  c.stages = 2;
  c.blockK = 64 * c.warpsK;
  EXPECT_GT(estimateCost(problem, c, t).microseconds, good);
}

} // namespace
