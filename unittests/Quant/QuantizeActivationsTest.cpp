//===- QuantizeActivationsTest.cpp - What quantize means ------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/QuantizeActivations.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Error.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace humming;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const NumberFormat kCodeFormats[] = {
    NumberFormat::smallFloat(4, 3), NumberFormat::smallFloat(5, 2),
    NumberFormat::signedInt(8), NumberFormat::signedInt(4)};

double decoded(const ActivationCodes &codes, const SegmentScale &scale,
               float value) {
  return (codes.format.decode(quantizeValue(codes, scale, value)) -
          scale.zeroPoint) *
         scale.scale;
}

TEST(QuantizeScale, TakesTheLargestToTheLargestCode) {
  for (NumberFormat format : kCodeFormats) {
    ActivationCodes codes{format};
    for (float high : {1.0f, 3.0f, 0.7f, 1e-20f, 3e38f}) {
      SegmentScale scale = quantizeScale(codes, high, 0);
      EXPECT_EQ(scale.scale, high / float(largestCode(format)));
      EXPECT_EQ(scale.code, llvm::bit_cast<uint32_t>(scale.scale));
      EXPECT_EQ(format.decode(quantizeValue(codes, scale, high)),
                largestCode(format));
      EXPECT_EQ(format.decode(quantizeValue(codes, scale, -high)),
                -largestCode(format));
    }
  }
}

TEST(QuantizeScale, ExponentsAreTheLeastPowersOfTwo) {
  ActivationCodes codes{NumberFormat::smallFloat(4, 3), 32,
                        NumberFormat::e8m0()};
  for (int e = -100; e <= 100; ++e)
    for (float m : {1.0f, 1.5f, 1.75f, 1.0000001f, 1.9999999f}) {
      float high = std::ldexp(m, e);
      SegmentScale scale = quantizeScale(codes, high, 0);
      EXPECT_EQ(scale.scale, codes.scaleFormat.decode(scale.code));
      EXPECT_EQ(scale.scale * scale.inverse, 1);
      EXPECT_LE(high / 448.0f, scale.scale);
      EXPECT_GT(high / 448.0f, scale.scale / 2);
    }
}

TEST(QuantizeScale, ZerosAreExact) {
  for (NumberFormat format : kCodeFormats)
    for (bool zeroPoint : {false, true}) {
      ActivationCodes codes{format, 0, NumberFormat::f32(),
                            zeroPoint && format.bits == 8 &&
                                format.isInteger()};
      SegmentScale scale = quantizeScale(codes, 0, 0);
      EXPECT_EQ(scale.scale, 1);
      EXPECT_EQ(scale.zeroPoint, 0);
      EXPECT_EQ(quantizeValue(codes, scale, 0), 0u);
      EXPECT_EQ(quantizeValue(codes, scale, -0.0f) & 0x7F, 0u);
    }
}

TEST(QuantizeScale, SpecialValuesGiveNaN) {
  for (NumberFormat format : kCodeFormats)
    for (float high : {kInfinity, std::nanf("")}) {
      ActivationCodes codes{format};
      SegmentScale scale = quantizeScale(codes, high, 0);
      EXPECT_TRUE(std::isnan(scale.scale));
      EXPECT_EQ(scale.code, 0x7FFFFFFFu);
      EXPECT_EQ(format.decode(quantizeValue(codes, scale, 3)), 0);
      codes.group = 64;
      codes.scaleFormat = NumberFormat::e8m0();
      EXPECT_EQ(quantizeScale(codes, high, 0).code, 255u);
    }
}

TEST(QuantizeScale, SubnormalRangesStayFinite) {
  ActivationCodes codes{NumberFormat::signedInt(8)};
  SegmentScale scale = quantizeScale(codes, 1e-40f, 0);
  EXPECT_EQ(scale.scale, 0x1p-126f);
  EXPECT_EQ(scale.inverse, 0x1p126f);
  EXPECT_EQ(quantizeValue(codes, scale, 1e-40f), 0u);
}

TEST(QuantizeScale, AsymmetricHoldsZeroAndBothEnds) {
  ActivationCodes codes{NumberFormat::signedInt(8), 0, NumberFormat::f32(),
                        true};
  for (auto [low, high] : {std::pair{-1.0f, 3.0f},
                           {0.0f, 5.0f},
                           {-7.0f, 0.0f},
                           {-1e-3f, 1e5f},
                           {-3e38f, 3e38f}}) {
    SegmentScale scale = quantizeScale(codes, high, low);
    EXPECT_GE(scale.zeroPoint, -128);
    EXPECT_LE(scale.zeroPoint, 127);
    EXPECT_EQ(decoded(codes, scale, 0), 0);
    // Half a step, and as much again for the rounded zero point.
    EXPECT_LE(std::fabs(decoded(codes, scale, low) - low), scale.scale * 1.01);
    EXPECT_LE(std::fabs(decoded(codes, scale, high) - high),
              scale.scale * 1.01);
  }
}

TEST(QuantizeValue, RoundsToNearestEvenAndSaturates) {
  ActivationCodes codes{NumberFormat::signedInt(8)};
  SegmentScale one; // scale 1
  auto code = [&](float value) {
    return codes.format.decode(quantizeValue(codes, one, value));
  };
  EXPECT_EQ(code(0.5f), 0);
  EXPECT_EQ(code(1.5f), 2);
  EXPECT_EQ(code(-2.5f), -2);
  EXPECT_EQ(code(126.6f), 127);
  EXPECT_EQ(code(1e30f), 127);
  EXPECT_EQ(code(-kInfinity), -127);
  EXPECT_EQ(code(std::nanf("")), 0);
  codes.zeroPoint = true;
  one.zeroPoint = 100;
  EXPECT_EQ(code(1e30f), 127);
  EXPECT_EQ(code(-1e30f), -128);
  EXPECT_EQ(code(std::nanf("")), 100);
}

TEST(QuantizeActivations, GroupsHaveTheirOwnScales) {
  ActivationCodes codes{NumberFormat::smallFloat(4, 3), 16};
  std::vector<float> values(2 * 40);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(i % 40) + 1;
  QuantizedActivations q = quantizeActivations(codes, values, 2, 40);
  ASSERT_EQ(q.scales.size(), 6u);
  for (int64_t group = 0; group < 3; ++group)
    for (int64_t row = 0; row < 2; ++row) {
      float high = float(std::min<int64_t>(40, 16 * group + 16));
      EXPECT_EQ(q.scales[group * 2 + row],
                llvm::bit_cast<uint32_t>(high / 448));
    }
  EXPECT_EQ(codes.format.decode(q.codes[39]), 448);
}

TEST(Gate, ValuesAndNames) {
  EXPECT_EQ(gateValue(GateKind::Silu, 0), 0);
  EXPECT_NEAR(gateValue(GateKind::Silu, 2), 1.7615941559557649, 1e-15);
  EXPECT_NEAR(gateValue(GateKind::Gelu, 1), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(gateValue(GateKind::GeluTanh, 1), 0.8411919906082768, 1e-15);
  EXPECT_EQ(gateError(GateKind::Gelu, 0, 5), 0);
  for (GateKind kind :
       {GateKind::None, GateKind::Silu, GateKind::Gelu, GateKind::GeluTanh})
    EXPECT_EQ(*parseGateKind(stringify(kind)), kind);
  EXPECT_EQ(llvm::toString(parseGateKind("relu").takeError()),
            "expected none, silu, gelu or gelu_tanh, got 'relu'");
}

} // namespace
