//===- ReferenceTest.cpp
//----------------------------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/Reference.h"
#include "Humming/Quant/Float16.h"
#include "Humming/Quant/Packing.h"
#include "llvm/Support/Endian.h"
#include "gtest/gtest.h"
#include <cmath>
#include <set>

using namespace humming;
using namespace llvm;

namespace {

QuantType makeType(NumberFormat weight, NumberFormat scale, Granularity g,
                   ZeroPointKind zero = ZeroPointKind::None) {
  QuantType type;
  type.weight = weight;
  type.scale = scale;
  type.granularity = g;
  type.zeroPoint = zero;
  return type;
}

std::vector<double> decodeAll(NumberFormat format, ArrayRef<uint32_t> codes) {
  return decodeElements(format, codesToBytes(format, codes));
}

/// The formula of QuantType, weight by weight, without any table or caching.
double plainWeight(const QuantizedWeights &w, int64_t row, int64_t column) {
  double value = w.type.table
                     ? w.type.table->values[w.codes[row * w.k + column]]
                     : w.type.weight.decode(w.codes[row * w.k + column]);
  return (value - w.zeroPointOf(row, column)) *
         (w.scaleOf(row, column) * w.globalScaleOf(row));
}

TEST(Reference, DequantizeByHand) {
  // u4 with an integer zero point of 3, scale 0.5: code 15 means 6.
  QuantizedWeights w;
  w.type = makeType(NumberFormat::unsignedInt(4), NumberFormat::f16(),
                    Granularity::group(2), ZeroPointKind::Integer);
  w.n = 1;
  w.k = 4;
  w.codes = {15, 0, 8, 7};
  w.scales = {floatToF16(0.5f), floatToF16(2.0f)};
  w.zeroPoints = {3, 15};
  EXPECT_EQ(dequantize(w), (std::vector<double>{6, -1.5, -14, -16}));
  // Symmetric: the implied zero point is 8.
  w.type.zeroPoint = ZeroPointKind::None;
  w.zeroPoints.clear();
  EXPECT_EQ(dequantize(w), (std::vector<double>{3.5, -4, 0, -2}));
  // The order of columns is undone.
  w.kOrder = {2, 0, 3, 1};
  EXPECT_EQ(dequantize(w), (std::vector<double>{-4, -2, 3.5, 0}));
}

TEST(Reference, DequantizeEveryTypeAgainstTheFormula) {
  std::vector<QuantType> types;
  for (unsigned bits = 1; bits <= 8; ++bits)
    for (ZeroPointKind zero :
         {ZeroPointKind::None, ZeroPointKind::Integer, ZeroPointKind::Float})
      types.push_back(makeType(NumberFormat::unsignedInt(bits),
                               NumberFormat::bf16(), Granularity::group(32),
                               zero));
  types.push_back(makeType(NumberFormat::signedInt(8), NumberFormat::f32(),
                           Granularity::perChannel()));
  types.push_back(makeType(NumberFormat::smallFloat(2, 1), NumberFormat::e8m0(),
                           Granularity::group(32)));
  types.push_back(makeType(NumberFormat::smallFloat(2, 1),
                           NumberFormat::smallFloat(4, 3),
                           Granularity::group(16)));
  types.back().globalScale = GlobalScaleKind::Tensor;
  types.push_back(makeType(NumberFormat::smallFloat(4, 3), NumberFormat::f32(),
                           Granularity::block(16, 48)));
  types.back().rowPhase = 5;
  types.back().columnPhase = 40;
  types.push_back(makeType(NumberFormat::smallFloat(5, 2), NumberFormat::f32(),
                           Granularity::perTensor()));
  types.push_back(makeType(NumberFormat::unsignedInt(4), NumberFormat::f32(),
                           Granularity::group(64)));
  types.back().table = CodeTable::nf4();
  types.back().globalScale = GlobalScaleKind::Channel;
  for (const QuantType &type : types) {
    QuantizedWeights w = randomWeights(type, 37, 101, 5);
    cantFail(w.verify());
    std::vector<double> all = dequantize(w);
    for (int64_t row = 0; row < w.n; ++row)
      for (int64_t column = 0; column < w.k; ++column) {
        double expected = plainWeight(w, row, column);
        // Same operations in the same order: equal.
        ASSERT_EQ(all[row * w.k + column], expected) << type.str();
      }
  }
}

TEST(Reference, RandomWeightsCoverTheirRange) {
  QuantType type = makeType(NumberFormat::unsignedInt(4), NumberFormat::f16(),
                            Granularity::group(32), ZeroPointKind::Integer);
  QuantizedWeights w = randomWeights(type, 64, 256, 1);
  std::set<uint32_t> codes(w.codes.begin(), w.codes.end());
  std::set<uint32_t> zeros(w.zeroPoints.begin(), w.zeroPoints.end());
  EXPECT_EQ(codes.size(), 16u);
  EXPECT_EQ(zeros.size(), 16u);
  // Neighbouring scales differ along both axes.
  for (int64_t row = 0; row < 64; ++row)
    for (int64_t group = 0; group < 8; ++group) {
      if (group > 0)
        EXPECT_NE(w.scales[row * 8 + group], w.scales[row * 8 + group - 1]);
      if (row > 0)
        EXPECT_NE(w.scales[row * 8 + group], w.scales[row * 8 - 8 + group]);
    }
  EXPECT_EQ(randomWeights(type, 64, 256, 1).codes, w.codes);
  EXPECT_NE(randomWeights(type, 64, 256, 2).codes, w.codes);
  // Float formats never get NaN or infinity.
  w = randomWeights(makeType(NumberFormat::smallFloat(5, 2),
                             NumberFormat::f32(), Granularity::perTensor()),
                    64, 64, 1);
  for (double value : dequantize(w))
    EXPECT_TRUE(std::isfinite(value));
}

TEST(Reference, MatmulAgainstThePlainLoop) {
  QuantType type = makeType(NumberFormat::unsignedInt(4), NumberFormat::bf16(),
                            Granularity::group(32), ZeroPointKind::Integer);
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                         {3, 37, 101},
                         {0, 5, 7},
                         {2, 16, 64},
                         {5, 33, 8}}) {
    QuantizedWeights w = randomWeights(type, n, k, 9);
    for (int64_t i = 0; i < n; ++i)
      w.bias.push_back(float(i) - 3);
    int64_t ldx = k + 3;
    // Padding is NaN: reading it would show.
    std::vector<double> x(m * ldx, std::nan(""));
    std::vector<double> dense = decodeAll(
        NumberFormat::bf16(), randomActivations(NumberFormat::bf16(), m, k, 4));
    for (int64_t i = 0; i < m; ++i)
      std::copy_n(dense.begin() + i * k, k, x.begin() + i * ldx);
    ReferenceResult result =
        cantFail(referenceMatmul(x, m, ldx, w, ReferenceOptions()));
    ASSERT_EQ(int64_t(result.values.size()), m * n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t f = 0; f < n; ++f) {
        double expected = w.bias[f], magnitude = std::fabs(expected);
        for (int64_t j = 0; j < k; ++j) {
          expected += dense[i * k + j] * plainWeight(w, f, j);
          magnitude += std::fabs(dense[i * k + j] * plainWeight(w, f, j));
        }
        // Two f64 sums of k + 1 terms in different orders.
        EXPECT_NEAR(result.values[i * n + f], expected,
                    (k + 1) * 0x1p-52 * magnitude);
      }
    if (n < 2 || m == 0)
      continue;
    ReferenceOptions some;
    const int64_t features[] = {n - 1, 0};
    some.features = features;
    ReferenceResult part = cantFail(referenceMatmul(x, m, ldx, w, some));
    EXPECT_EQ(part.values[0], result.values[n - 1]);
    EXPECT_EQ(part.worst[1], result.worst[0]);
  }
}

/// A plain model of a kernel: operands rounded as the site says, one f32
/// accumulator, products added one by one.
std::vector<double> modelKernel(ArrayRef<double> x, int64_t m,
                                const QuantizedWeights &w,
                                const KernelNumerics &numerics) {
  auto round = [](NumberFormat format, double value) -> float {
    return format.isF16() ? f16ToFloat(doubleToF16(value))
                          : bf16ToFloat(doubleToBF16(value));
  };
  std::vector<double> out(m * w.n);
  int64_t g = w.type.granularity.columns;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t f = 0; f < w.n; ++f) {
      float total = 0, group = 0;
      for (int64_t j = 0; j < w.k; ++j) {
        double value = w.type.weight.decode(w.codes[f * w.k + j]);
        float zero = round(numerics.operand, w.zeroPointOf(f, j));
        float a = round(numerics.operand, value - zero);
        float scale = float(w.scaleOf(f, j));
        if (numerics.scale == ScaleSite::Operand) {
          a = round(numerics.operand,
                    double(a) * round(numerics.operand, scale));
          total += float(x[i * w.k + j]) * a;
        } else {
          group += float(x[i * w.k + j]) * a;
          if ((j + 1) % g == 0 || j + 1 == w.k) {
            total += group * scale;
            group = 0;
          }
        }
      }
      out[i * w.n + f] = round(numerics.output, total);
    }
  return out;
}

TEST(Reference, BoundsHoldForAKernelModelAndAreNotSlack) {
  for (NumberFormat operand : {NumberFormat::f16(), NumberFormat::bf16()})
    for (ScaleSite site : {ScaleSite::Operand, ScaleSite::Accumulator})
      for (NumberFormat scale : {NumberFormat::f16(), NumberFormat::f32()})
        for (ZeroPointKind zero : {ZeroPointKind::None, ZeroPointKind::Integer,
                                   ZeroPointKind::Float}) {
          QuantType type = makeType(NumberFormat::unsignedInt(4), scale,
                                    Granularity::group(64), zero);
          const int64_t m = 2, n = 24, k = 1000;
          QuantizedWeights w = randomWeights(type, n, k, 3);
          std::vector<double> x =
              decodeAll(operand, randomActivations(operand, m, k, 8));
          ReferenceOptions options;
          options.numerics.operand = options.numerics.output = operand;
          options.numerics.scale = site;
          ReferenceResult result =
              cantFail(referenceMatmul(x, m, k, w, options));
          std::vector<double> got = modelKernel(x, m, w, options.numerics);
          Comparison probable =
              compareWithReference(result, got, n, operand, true);
          EXPECT_TRUE(probable.ok) << type.str() << " " << probable.str();
          // Not slack: the largest of 48 errors uses a fair part of the bound.
          EXPECT_GT(probable.worstRatio, 0.02) << type.str();
          EXPECT_TRUE(compareWithReference(result, got, n, operand, false).ok);
          // Norm-based sums are looser, never tighter.
          options.exactSums = 0;
          ReferenceResult loose =
              cantFail(referenceMatmul(x, m, k, w, options));
          for (size_t i = 0; i < got.size(); ++i) {
            EXPECT_GE(loose.worst[i], result.worst[i] * (1 - 1e-12));
            EXPECT_GE(loose.probable[i], result.probable[i] * (1 - 1e-12));
            EXPECT_LE(loose.probable[i], result.probable[i] * 12);
          }
        }
}

TEST(Reference, BoundsCatchARealFault) {
  // One group of 16 read with its neighbour's scale must be seen.
  QuantType type = makeType(NumberFormat::unsignedInt(4), NumberFormat::f16(),
                            Granularity::group(64));
  const int64_t n = 64, k = 1024;
  QuantizedWeights w = randomWeights(type, n, k, 3);
  NumberFormat f16 = NumberFormat::f16();
  std::vector<double> x = decodeAll(f16, randomActivations(f16, 1, k, 8));
  ReferenceOptions options;
  options.numerics.operand = options.numerics.output = f16;
  ReferenceResult result = cantFail(referenceMatmul(x, 1, k, w, options));
  for (int64_t row = 0; row < n; ++row)
    w.scales[row * 16 + 5] = w.scales[row * 16 + 6];
  std::vector<double> wrong = modelKernel(x, 1, w, options.numerics);
  Comparison comparison = compareWithReference(result, wrong, n, f16, true);
  EXPECT_FALSE(comparison.ok);
  EXPECT_GT(comparison.mismatches, n * 3 / 4);
}

TEST(Reference, ExactCasesHaveOnlyTheOutputBound) {
  // Integer operands, exact sums, power-of-two scale in the epilogue: what is
  // left is the output's rounding and the epilogue's f32 arithmetic.
  QuantType type = makeType(NumberFormat::signedInt(8), NumberFormat::f32(),
                            Granularity::perChannel());
  QuantizedWeights w = randomWeights(type, 8, 128, 3);
  std::vector<double> x(128, 1.0);
  ReferenceOptions options;
  options.numerics.operand = NumberFormat::signedInt(8);
  options.numerics.exactAccumulation = true;
  options.numerics.scale = ScaleSite::Epilogue;
  options.numerics.output = NumberFormat::f32();
  ReferenceResult result = cantFail(referenceMatmul(x, 1, 128, w, options));
  for (size_t i = 0; i < result.values.size(); ++i)
    EXPECT_LT(result.worst[i], 8 * 0x1p-24 * 128.0);
}

TEST(Reference, ComparisonHandlesNanAndOverflow) {
  ReferenceResult reference;
  reference.m = 1;
  reference.features = 4;
  reference.values = {1, std::nan(""), 1e6, -1e6};
  reference.worst = reference.probable = {0.5, 0.5, 0.5, 0.5};
  double infinity = std::numeric_limits<double>::infinity();
  NumberFormat f16 = NumberFormat::f16();
  std::vector<double> got = {1.25, std::nan(""), infinity, -infinity};
  EXPECT_TRUE(compareWithReference(reference, got, 4, f16, false).ok);
  got = {std::nan(""), std::nan(""), infinity, -infinity};
  Comparison bad = compareWithReference(reference, got, 4, f16, false);
  EXPECT_FALSE(bad.ok);
  EXPECT_EQ(bad.feature, 0);
  got = {1, 0, infinity, -infinity};
  EXPECT_FALSE(compareWithReference(reference, got, 4, f16, false).ok);
  got = {1, std::nan(""), -infinity, -infinity};
  EXPECT_FALSE(compareWithReference(reference, got, 4, f16, false).ok);
  got = {1.75, std::nan(""), infinity, -infinity};
  bad = compareWithReference(reference, got, 4, f16, false);
  EXPECT_EQ(bad.mismatches, 1);
  EXPECT_NE(bad.str().find("row 0, feature 0"), std::string::npos);
}

// Scale bytes at the ends of e8m0: 32 x 2^100 x 2^-127 = 2^-22.
TEST(Reference, ExtremeBlockScales) {
  QuantType type = makeType(NumberFormat::smallFloat(2, 1),
                            NumberFormat::e8m0(), Granularity::group(32));
  QuantizedWeights w = randomWeights(type, 1, 32, 1);
  w.codes.assign(32, 2);
  w.scales = {0};
  std::vector<double> x(32, 0x1p100);
  ReferenceResult result =
      cantFail(referenceMatmul(x, 1, 32, w, ReferenceOptions()));
  EXPECT_EQ(result.values[0], 0x1p-22);
  w.scales = {255};
  result = cantFail(referenceMatmul(x, 1, 32, w, ReferenceOptions()));
  EXPECT_TRUE(std::isnan(result.values[0]));
  // A scale below the f16 range: bytes 112 and 103.
  std::fill(x.begin(), x.end(), 1.0);
  w.scales = {112};
  EXPECT_EQ(cantFail(referenceMatmul(x, 1, 32, w, {})).values[0], 0x1p-10);
  w.scales = {103};
  EXPECT_EQ(cantFail(referenceMatmul(x, 1, 32, w, {})).values[0], 0x1p-19);
  // One NVFP4 block of scale 2, and a second level: 4096 x 6 x 448 x 2^-10.
  type = makeType(NumberFormat::smallFloat(2, 1),
                  NumberFormat::smallFloat(4, 3), Granularity::group(16));
  w = randomWeights(type, 1, 16, 1);
  w.codes.assign(16, 2);
  w.scales = {0x40};
  EXPECT_EQ(cantFail(referenceMatmul(x, 1, 16, w, {})).values[0], 32);
  type.globalScale = GlobalScaleKind::Tensor;
  w = randomWeights(type, 1, 4096, 1);
  w.codes.assign(4096, 7);
  w.scales.assign(256, 0x7E);
  w.globalScales = {0x1p-10f};
  std::vector<double> ones(4096, 1.0);
  EXPECT_EQ(cantFail(referenceMatmul(ones, 1, 4096, w, {})).values[0], 10752);
}

TEST(Reference, RefusesWhatDoesNotFit) {
  QuantizedWeights w = randomWeights(QuantType(), 4, 256, 1);
  std::vector<double> x(256);
  auto message = [&](const QuantizedWeights &weights, int64_t m, int64_t ldx,
                     ArrayRef<int64_t> features = {}) {
    ReferenceOptions options;
    options.features = features;
    Expected<ReferenceResult> result =
        referenceMatmul(x, m, ldx, weights, options);
    return result ? std::string() : toString(result.takeError());
  };
  EXPECT_EQ(message(w, 1, 256), "");
  EXPECT_NE(message(w, 2, 256).find("expected activations"), std::string::npos);
  EXPECT_NE(message(w, 1, 255).find("expected activations"), std::string::npos);
  EXPECT_EQ(message(w, 1, 256, {4}),
            "expected output features of 0 to 3, got 4");
  QuantizedWeights bad = w;
  bad.scales.pop_back();
  EXPECT_EQ(
      message(bad, 1, 256),
      "quantized weights 4 x 256 (u4/g128/f16): expected 8 scales, got 7");
  bad = w;
  bad.codes[3] = 16;
  EXPECT_EQ(message(bad, 1, 256),
            "expected codes of 4 bits, got one that has more");
  bad = w;
  bad.kOrder.assign(256, 0);
  EXPECT_NE(message(bad, 1, 256).find("permutation"), std::string::npos);
}

TEST(QuantizedWeights, PackedScalesRepeatBlocks) {
  QuantType type = makeType(NumberFormat::smallFloat(4, 3), NumberFormat::f32(),
                            Granularity::block(48, 64));
  type.rowPhase = 40;
  QuantizedWeights w = randomWeights(type, 70, 130, 2);
  std::vector<uint8_t> packed = cantFail(w.packScales());
  ASSERT_EQ(int64_t(packed.size()), packedScaleElements(70, 3) * 4);
  for (int64_t row = 0; row < 70; ++row)
    for (int64_t group = 0; group < 3; ++group) {
      uint32_t bits = support::endian::read32le(
          packed.data() + (group * 128 + packedScalePosition(row)) * 4);
      EXPECT_EQ(bits, w.scales[(row + 40) / 48 * 3 + group]);
    }
  QuantType integer =
      makeType(NumberFormat::unsignedInt(4), NumberFormat::f16(),
               Granularity::group(64), ZeroPointKind::Integer);
  w = randomWeights(integer, 70, 130, 2);
  packed = cantFail(w.packZeroPoints());
  for (int64_t row = 0; row < 70; ++row)
    for (int64_t group = 0; group < 3; ++group)
      EXPECT_EQ(packed[group * 128 + packedScalePosition(row)],
                w.zeroPoints[row * 3 + group]);
}

} // namespace
