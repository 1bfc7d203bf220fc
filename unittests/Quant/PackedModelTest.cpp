//===- PackedModelTest.cpp
//--------------------------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/PackedModel.h"
#include "FixtureSupport.h"
#include "Humming/Quant/Float16.h"
#include "Humming/Quant/ModelSource.h"

using namespace humming;
using namespace llvm;

namespace {

/// Writes layers to one shard and opens it.
SafetensorsFile
writeShard(TemporaryCheckpoint &files,
           ArrayRef<std::pair<std::string, PackedLayer>> layers) {
  std::string path = files.path() + "/packed.safetensors";
  SafetensorsWriter writer(path);
  for (const auto &[name, layer] : layers) {
    writer.setMetadata("humming:" + name, layer.description);
    for (const PackedLayer::Tensor &tensor : layer.tensors)
      writer.declare(tensor.name, tensor.dtype, tensor.shape);
  }
  bool resumed;
  cantFail(writer.open(false, resumed));
  for (const auto &[name, layer] : layers)
    for (const PackedLayer::Tensor &tensor : layer.tensors)
      cantFail(writer.write(tensor.name, tensor.bytes));
  cantFail(writer.finish());
  return cantFail(SafetensorsFile::open(path));
}

TEST(PackedModel, EveryTypeComesBack) {
  std::vector<QuantType> types(1);
  auto add = [&](NumberFormat weight, NumberFormat scale, Granularity g,
                 ZeroPointKind zero) -> QuantType & {
    QuantType type;
    type.weight = weight;
    type.scale = scale;
    type.granularity = g;
    type.zeroPoint = zero;
    types.push_back(type);
    return types.back();
  };
  NumberFormat f32 = NumberFormat::f32();
  add(NumberFormat::unsignedInt(3), NumberFormat::bf16(),
      Granularity::group(32), ZeroPointKind::Integer);
  add(NumberFormat::unsignedInt(5), f32, Granularity::perChannel(),
      ZeroPointKind::Float);
  add(NumberFormat::smallFloat(2, 1), NumberFormat::smallFloat(4, 3),
      Granularity::group(16), ZeroPointKind::None)
      .globalScale = GlobalScaleKind::Tensor;
  add(NumberFormat::smallFloat(2, 1), NumberFormat::e8m0(),
      Granularity::group(32), ZeroPointKind::None)
      .columnPhase = 9;
  QuantType &block = add(NumberFormat::smallFloat(4, 3), f32,
                         Granularity::block(32, 64), ZeroPointKind::None);
  block.rowPhase = 7;
  block.columnPhase = 33;
  add(NumberFormat::signedInt(8), f32, Granularity::perTensor(),
      ZeroPointKind::None);
  QuantType &table = add(NumberFormat::unsignedInt(4), f32,
                         Granularity::group(64), ZeroPointKind::None);
  table.table = CodeTable::nf4();
  table.globalScale = GlobalScaleKind::Channel;
  for (const QuantType &type : types)
    for (auto [width, k] : {std::pair(16u, 201), {8u, 201}, {8u, 208}}) {
      QuantizedWeights w = randomWeights(type, 70, k, 3);
      for (int i = 0; i < 70; ++i)
        w.bias.push_back(float(i));
      w.inputScale = 0.25f;
      TemporaryCheckpoint files;
      PackedLayer layer = cantFail(packModelLayer("a.b", w, width));
      EXPECT_GT(layer.bytes(), 0);
      // Operands of 8-bit activations keep their bytes.
      bool plain = k == 208 && type.weight.bits == 8;
      EXPECT_EQ(layer.tensors.front().name, plain ? "a.b.plain" : "a.b.packed");
      if (plain)
        EXPECT_EQ(layer.tensors.front().bytes, w.codes);
      SafetensorsFile shard = writeShard(files, {{"a.b", layer}});
      unsigned bits = 0;
      Expected<QuantizedWeights> back = unpackModelLayer(shard, "a.b", &bits);
      ASSERT_TRUE(bool(back)) << type.str() << toString(back.takeError());
      EXPECT_EQ(bits, width);
      EXPECT_EQ(dequantize(*back), dequantize(w)) << type.str();
      EXPECT_EQ(back->bias, w.bias);
      EXPECT_EQ(back->inputScale, w.inputScale);
    }
}

TEST(PackedModel, ActivationOrderComesBack) {
  QuantizedWeights w =
      cantFail(readLayer(openFixture("minilm-gptq-actorder"),
                         "encoder.layer.0.attention.self.query"));
  TemporaryCheckpoint files;
  SafetensorsFile shard =
      writeShard(files, {{"q", cantFail(packModelLayer("q", w, 16))}});
  QuantizedWeights back = cantFail(unpackModelLayer(shard, "q"));
  EXPECT_EQ(back.kOrder, w.kOrder);
  EXPECT_EQ(dequantize(back), dequantize(w));
  ModelSource source = cantFail(ModelSource::open(files.path()));
  ASSERT_EQ(source.layers().size(), 1u);
  EXPECT_EQ(source.layers()[0].format, "packed");
  EXPECT_TRUE(source.plainTensors().empty());
}

TEST(PackedModel, RefusesWhatDoesNotFit) {
  QuantizedWeights w = randomWeights(QuantType(), 8, 128, 1);
  PackedLayer layer = cantFail(packModelLayer("l", w, 16));
  TemporaryCheckpoint files;
  SafetensorsFile shard = writeShard(files, {{"l", layer}});
  EXPECT_NE(errorText(unpackModelLayer(shard, "m"))
                .find("packed layer 'm': the shard's metadata does not"),
            std::string::npos);
  auto message = [&](StringRef from, StringRef to) {
    PackedLayer changed = layer;
    size_t at = changed.description.find(from.str());
    EXPECT_NE(at, std::string::npos);
    changed.description.replace(at, from.size(), to.str());
    SafetensorsFile file = writeShard(files, {{"l", changed}});
    return errorText(unpackModelLayer(file, "l"));
  };
  EXPECT_NE(message("\"n\":8", "\"n\":900").find("bytes of packed weights"),
            std::string::npos);
  EXPECT_NE(message("\"n\":8", "\"n\":-1").find("expected n, k"),
            std::string::npos);
  EXPECT_NE(message("\"u4\"", "\"u9\"").find("expected a number format"),
            std::string::npos);
  EXPECT_NE(message("\"128\"", "\"64\"").find("elements of 2 bytes"),
            std::string::npos);
  EXPECT_NE(message("{", "[[[[[[[[[[[[[[[[[[[[{").find("flat JSON object"),
            std::string::npos);
}

TEST(ModelSource, ConvertScales) {
  QuantType type;
  type.scale = NumberFormat::f32();
  type.zeroPoint = ZeroPointKind::Float;
  QuantizedWeights w = randomWeights(type, 8, 256, 1);
  QuantizedWeights half = cantFail(convertScales(w, NumberFormat::f16()));
  EXPECT_EQ(half.type.str(), "u4/g128/f16/zp-float");
  for (size_t i = 0; i < w.scales.size(); ++i)
    EXPECT_EQ(half.scales[i],
              doubleToF16(NumberFormat::f32().decode(w.scales[i])));
  w.scales[5] = floatBits(1e6f);
  EXPECT_EQ(errorText(convertScales(w, NumberFormat::f16())),
            "scale of row 2, block 1 exceeds the range of f16");
  w.scales[5] = floatBits(1e-20f);
  EXPECT_EQ(errorText(convertScales(w, NumberFormat::f16())),
            "scale of row 2, block 1 is too small for f16");
}

TEST(ModelSource, PlainTensorsAreWhatNoLayerOwns) {
  ModelSource source = cantFail(
      ModelSource::open(fixturePath("bnb-nf4-double") + "/model.safetensors"));
  EXPECT_EQ(source.layers().size(), 1u);
  EXPECT_TRUE(source.plainTensors().empty());
  source = cantFail(
      ModelSource::open(fixturePath("gpt-oss") + "/model.safetensors"));
  EXPECT_EQ(source.layers().size(), 2u);
  EXPECT_TRUE(source.plainTensors().empty());
}

} // namespace
