//===- SliceFuseTest.cpp
//----------------------------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FixtureSupport.h"
#include "Humming/Quant/Float16.h"

using namespace humming;
using namespace llvm;

namespace {

QuantType typeOf(NumberFormat weight, NumberFormat scale, Granularity g,
                 ZeroPointKind zero = ZeroPointKind::None) {
  QuantType type;
  type.weight = weight;
  type.scale = scale;
  type.granularity = g;
  type.zeroPoint = zero;
  return type;
}

/// Each shard dequantises to its part of the whole.
void expectSlices(const QuantizedWeights &w, ArrayRef<int64_t> rowCuts,
                  ArrayRef<int64_t> columnCuts) {
  std::vector<double> whole = dequantize(w);
  int64_t width = w.inputs();
  for (size_t r = 0; r + 1 < rowCuts.size(); ++r)
    for (size_t c = 0; c + 1 < columnCuts.size(); ++c) {
      int64_t n0 = rowCuts[r], n1 = rowCuts[r + 1];
      int64_t k0 = columnCuts[c], k1 = columnCuts[c + 1];
      QuantizedWeights shard = cantFail(sliceWeights(w, n0, n1, k0, k1));
      ASSERT_EQ(shard.n, n1 - n0);
      ASSERT_EQ(shard.inputs(), k1 - k0);
      std::vector<double> part = dequantize(shard);
      for (int64_t i = 0; i < n1 - n0; ++i)
        for (int64_t j = 0; j < k1 - k0; ++j)
          ASSERT_EQ(part[i * (k1 - k0) + j], whole[(n0 + i) * width + k0 + j])
              << w.type.str() << " " << shard.type.str();
    }
}

TEST(Slice, CutsThroughGroupsAndBlocks) {
  // Groups of 128, cut as 29568 over 4 would be: offsets 0, 96, 64, 32.
  QuantizedWeights w =
      randomWeights(typeOf(NumberFormat::unsignedInt(4), NumberFormat::f16(),
                           Granularity::group(128), ZeroPointKind::Integer),
                    40, 924, 1);
  expectSlices(w, {0, 40}, {0, 231, 462, 693, 924});
  QuantizedWeights shard = cantFail(sliceWeights(w, 0, 40, 231, 462));
  EXPECT_EQ(shard.type.columnPhase, 231 - 128);
  EXPECT_EQ(int64_t(shard.scales.size()), 40 * 3);
  // A slice of a slice adds phases.
  expectSlices(shard, {0, 13, 40}, {0, 30, 100, 231});
  // Blocks: rows 1856 g of a matrix in steps of 128 begin in the middle of one.
  w = randomWeights(typeOf(NumberFormat::smallFloat(4, 3), NumberFormat::f32(),
                           Granularity::block(32, 64)),
                    464, 256, 2);
  expectSlices(w, {0, 116, 232, 348, 464}, {0, 32, 256});
  EXPECT_EQ(cantFail(sliceWeights(w, 116, 232, 0, 256)).type.rowPhase, 20);
  // Shards smaller than a block: ranks 2r and 2r + 1 share a scale column.
  expectSlices(w, {0, 464}, {0, 32, 64, 96, 128, 160, 192, 224, 256});
  // Channel, tensor and second-level scales.
  w = randomWeights(typeOf(NumberFormat::signedInt(8), NumberFormat::f32(),
                           Granularity::perChannel()),
                    16, 32, 3);
  expectSlices(w, {0, 5, 16}, {0, 7, 32});
  QuantType type =
      typeOf(NumberFormat::smallFloat(2, 1), NumberFormat::smallFloat(4, 3),
             Granularity::group(16));
  type.globalScale = GlobalScaleKind::Channel;
  expectSlices(randomWeights(type, 16, 64, 4), {0, 5, 16}, {0, 24, 64});
}

TEST(Slice, EveryCutHasAFormForKernels) {
  // Scales and zero points of blocks too; a group of 48 has no legal part.
  for (Granularity granularity :
       {Granularity::group(128), Granularity::group(32), Granularity::group(48),
        Granularity::block(16, 64)}) {
    QuantizedWeights w =
        randomWeights(typeOf(NumberFormat::unsignedInt(4), NumberFormat::f16(),
                             granularity, ZeroPointKind::Integer),
                      20, 400, 5);
    std::vector<double> whole = dequantize(w);
    for (int64_t cut = 1; cut < 260; cut += cut < 70 ? 1 : 31)
      for (int32_t least : {16, 32, 64}) {
        QuantizedWeights shard = cantFail(sliceWeights(w, 0, 20, cut, 400));
        QuantizedWeights aligned = cantFail(alignPhase(shard, least));
        const QuantType &type = aligned.type;
        int32_t columns = type.granularity.columns, phase = type.columnPhase;
        EXPECT_TRUE(phase % 64 == 0 && (phase == 0 || columns % 64 == 0));
        ASSERT_EQ(aligned.inputs(), 400 - cut);
        // Regrouping is preferred to a gather, where the parts are large
        // enough.
        if (granularity.columns == 128 && cut % 32 == 0 && least <= 32) {
          EXPECT_TRUE(aligned.kOrder.empty());
          EXPECT_GE(columns, 32);
        }
        std::vector<double> part = dequantize(aligned);
        for (int64_t i = 0; i < 20; ++i)
          for (int64_t j = 0; j < 400 - cut; ++j)
            ASSERT_EQ(part[i * (400 - cut) + j], whole[i * 400 + cut + j])
                << type.str() << " cut at " << cut;
      }
  }
}

TEST(Slice, ActivationOrderKeepsEveryGroup) {
  QuantizedWeights w =
      cantFail(readLayer(openFixture("minilm-gptq-actorder"),
                         "encoder.layer.0.attention.self.query"));
  expectSlices(w, {0, 100, 384}, {0, 192, 384});
  QuantizedWeights left = cantFail(sliceWeights(w, 0, 384, 0, 192));
  QuantizedWeights right = cantFail(sliceWeights(w, 0, 384, 192, 384));
  // A shard's columns come from all three groups, and pad each.
  EXPECT_EQ(left.type.granularity, Granularity::group(32));
  EXPECT_GE(left.k, 192);
  EXPECT_EQ(left.k % 32, 0);
  // The bias is added once.
  EXPECT_FALSE(left.bias.empty());
  EXPECT_TRUE(right.bias.empty());
  // The sum of the shards' outputs is the unsplit output.
  std::vector<double> x = decodeElements(
      NumberFormat::f16(),
      codesToBytes(NumberFormat::f16(),
                   randomActivations(NumberFormat::f16(), 3, 384, 5)));
  ReferenceResult whole = cantFail(referenceMatmul(x, 3, 384, w, {}));
  ReferenceResult a = cantFail(referenceMatmul(x, 3, 384, left, {}));
  ReferenceResult b = cantFail(
      referenceMatmul(ArrayRef<double>(x).drop_front(192), 3, 384, right, {}));
  for (size_t i = 0; i < whole.values.size(); ++i)
    // Sums of 384 terms in two orders; no term exceeds 16 in these matrices.
    EXPECT_NEAR(a.values[i] + b.values[i], whole.values[i],
                385 * 0x1p-52 * 384 * 16);
}

TEST(Slice, RefusesWhatIsOutOfBounds) {
  QuantizedWeights w = randomWeights(QuantType(), 8, 256, 1);
  EXPECT_NE(errorText(sliceWeights(w, 0, 9, 0, 256))
                .find("expected a slice within 8 rows and 256 input features"),
            std::string::npos);
  EXPECT_NE(errorText(sliceWeights(w, 4, 4, 0, 256)).find("expected a slice"),
            std::string::npos);
  EXPECT_NE(errorText(sliceWeights(w, 0, 8, 0, 256, 0)).find("alignment"),
            std::string::npos);
}

void expectFused(ArrayRef<QuantizedWeights> shards, StringRef type) {
  Expected<QuantizedWeights> fused = fuseWeights(shards);
  ASSERT_TRUE(bool(fused)) << toString(fused.takeError());
  EXPECT_EQ(fused->type.str(), type);
  std::vector<double> want;
  for (const QuantizedWeights &shard : shards) {
    std::vector<double> part = dequantize(shard);
    want.insert(want.end(), part.begin(), part.end());
  }
  EXPECT_EQ(dequantize(*fused), want);
}

TEST(Fuse, ShardsWithDifferentScales) {
  auto make = [](QuantType type, int64_t n, uint64_t seed) {
    return randomWeights(type, n, 128, seed);
  };
  QuantType tensor = typeOf(NumberFormat::smallFloat(4, 3), NumberFormat::f32(),
                            Granularity::perTensor());
  expectFused({make(tensor, 24, 1), make(tensor, 8, 2), make(tensor, 8, 3)},
              "e4m3/channel/f32");
  QuantType nvfp4 =
      typeOf(NumberFormat::smallFloat(2, 1), NumberFormat::smallFloat(4, 3),
             Granularity::group(16));
  nvfp4.globalScale = GlobalScaleKind::Tensor;
  expectFused({make(nvfp4, 24, 1), make(nvfp4, 40, 2)},
              "e2m1/g16/e4m3/global-row");
  QuantType block = typeOf(NumberFormat::smallFloat(4, 3), NumberFormat::f32(),
                           Granularity::block(32, 64));
  // The first shard ends inside a block.
  expectFused({make(block, 40, 1), make(block, 32, 2)}, "e4m3/g64/f32");
  QuantType group = typeOf(NumberFormat::unsignedInt(4), NumberFormat::f16(),
                           Granularity::group(64), ZeroPointKind::Integer);
  expectFused({make(group, 24, 1), make(group, 24, 2)}, "u4/g64/f16/zp-int");
}

TEST(Fuse, BiasOfSomeShards) {
  QuantizedWeights a = randomWeights(QuantType(), 2, 128, 1), b = a;
  b.bias = {1, 2};
  QuantizedWeights fused = cantFail(fuseWeights({a, b}));
  EXPECT_EQ(fused.bias, (std::vector<float>{0, 0, 1, 2}));
}

TEST(Fuse, RefusesWhatDoesNotJoin) {
  QuantizedWeights a = randomWeights(QuantType(), 8, 256, 1);
  QuantizedWeights b = randomWeights(QuantType(), 8, 128, 1);
  EXPECT_NE(errorText(fuseWeights({a, b})).find("K of 256 and 128"),
            std::string::npos);
  QuantType type;
  type.weight = NumberFormat::unsignedInt(3);
  b = randomWeights(type, 8, 256, 1);
  EXPECT_NE(errorText(fuseWeights({a, b})).find("u4/g128/f16 and u3/g128/f16"),
            std::string::npos);
  EXPECT_NE(errorText(fuseWeights({})).find("at least one layer"),
            std::string::npos);
}

TEST(Inspect, FindsBadValues) {
  QuantType type = typeOf(NumberFormat::smallFloat(4, 3), NumberFormat::f16(),
                          Granularity::group(64));
  QuantizedWeights w = randomWeights(type, 4, 128, 1);
  EXPECT_TRUE(inspectWeights(w).empty());
  w.scales[3] = 0;
  w.scales[5] = 0x7E00;
  w.scales[6] = 0x7C00;
  w.codes[2 * 128 + 70] = 0x7F;
  std::vector<WeightFinding> findings = inspectWeights(w);
  ASSERT_EQ(findings.size(), 4u);
  EXPECT_EQ(findings[0].what, "zero scale");
  EXPECT_EQ(findings[0].row, 1);
  EXPECT_EQ(findings[0].block, 1);
  EXPECT_EQ(findings[1].what, "NaN scale");
  EXPECT_EQ(findings[2].what, "infinite scale");
  EXPECT_EQ(findings[3].what, "NaN or infinite code");
  EXPECT_EQ(findings[3].row, 2);
  EXPECT_EQ(findings[3].block, 1);
}

} // namespace
