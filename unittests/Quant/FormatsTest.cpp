//===- FormatsTest.cpp
//------------------------------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FixtureSupport.h"
#include "Humming/Quant/Float16.h"
#include "Humming/Quant/Gguf.h"
#include "Humming/Quant/LayerScheme.h"
#include "Humming/Quant/Packing.h"

using namespace humming;
using namespace llvm;

namespace {

// Every fixture was written by its format's own library, which also gave the
// expected values (scripts/make_format_fixtures.py).
struct FormatCase {
  const char *fixture;
  LayerFormat format;
  const char *type;
  /// How far the library's own dequantization rounds, relative: 0 where it was
  /// run in f64 or its products are exact in f32.
  double relative;
};

class FormatFixture : public ::testing::TestWithParam<FormatCase> {};

TEST_P(FormatFixture, ReadsWhatTheLibraryWrote) {
  const FormatCase &test = GetParam();
  Checkpoint checkpoint = openFixture(test.fixture);
  std::vector<LayerInfo> layers = listLayers(checkpoint);
  ASSERT_FALSE(layers.empty());
  EXPECT_EQ(stringify(layers[0].format), stringify(test.format));
  EXPECT_GT(layers[0].bytes, 0);
  std::string prefix = layers.back().prefix;
  for (const LayerInfo &layer : layers)
    if (layer.prefix == "layer")
      prefix = "layer";
  ReadOptions options;
  if (StringRef(test.fixture) == "fp8-fused")
    options.shardRows = {24, 8, 8};
  Expected<QuantizedWeights> w = readLayer(checkpoint, prefix, options);
  ASSERT_TRUE(bool(w)) << toString(w.takeError());
  EXPECT_EQ(w->type.str(), test.type);
  expectFixture(*w, test.fixture, prefix, test.relative);
  EXPECT_TRUE(inspectWeights(*w).empty());
  // What was read also packs, and comes back.
  if (w->type.weight.bits <= 8) {
    std::vector<uint8_t> packed = cantFail(w->packCodes(16));
    std::vector<uint8_t> codes(w->codes.size());
    cantFail(unpackWeights(packed, w->n, w->k, 16, w->type.weight.bits, codes));
    EXPECT_EQ(codes, w->codes);
  }
}

constexpr double kF32 = 0x1p-23; // one f32 rounding of a product, and slack
constexpr double kBF16 = 0x1p-8;

INSTANTIATE_TEST_SUITE_P(
    All, FormatFixture,
    ::testing::Values(
        FormatCase{"gptq-2bit", LayerFormat::Gptq, "u2/g64/f16/zp-int", 0},
        FormatCase{"gptq-3bit", LayerFormat::Gptq, "u3/g64/f16/zp-int", 0},
        FormatCase{"gptq-8bit", LayerFormat::Gptq, "u8/g64/f16/zp-int", 0},
        FormatCase{"ct-pack-group", LayerFormat::Packed, "u4/g32/bf16", 0},
        FormatCase{"ct-pack-asym", LayerFormat::Packed, "u4/g64/f16/zp-int", 0},
        FormatCase{"ct-pack-3bit", LayerFormat::Packed, "u3/channel/f32/zp-int",
                   0},
        FormatCase{"ct-pack-actorder", LayerFormat::Packed, "u4/g32/bf16", 0},
        FormatCase{"ct-int8", LayerFormat::Int8, "s8/channel/bf16", 0},
        FormatCase{"ct-int8-asym", LayerFormat::Int8, "u8/channel/f32/zp-int",
                   0},
        FormatCase{"ct-float-channel", LayerFormat::Fp8, "e4m3/channel/bf16",
                   0},
        FormatCase{"ct-float-tensor", LayerFormat::Fp8, "e4m3/tensor/f32", 0},
        FormatCase{"ct-float-block", LayerFormat::Fp8, "e4m3/16x32/f32", 0},
        FormatCase{"ct-nvfp4", LayerFormat::Fp4, "e2m1/g16/e4m3/global", kBF16},
        FormatCase{"ct-mxfp4", LayerFormat::Fp4, "e2m1/g32/e8m0", 0},
        FormatCase{"ct-mxfp6", LayerFormat::Fp4, "e2m3/g32/e8m0", 0},
        FormatCase{"ct-mxfp8", LayerFormat::Fp8, "e4m3/g32/e8m0", 0},
        FormatCase{"modelopt-nvfp4", LayerFormat::Fp4, "e2m1/g16/e4m3/global",
                   0},
        FormatCase{"gpt-oss", LayerFormat::GptOss, "e2m1/g32/e8m0", 0},
        FormatCase{"fp8-block", LayerFormat::Fp8, "e4m3/128x128/f32", 0},
        FormatCase{"fp8-fused", LayerFormat::Fp8, "e4m3/channel/f32", 0},
        FormatCase{"bitnet", LayerFormat::Bitnet, "u2/tensor/f32", kF32},
        FormatCase{"bnb-nf4", LayerFormat::Bitsandbytes4, "u4/g64/f32/table",
                   kF32},
        FormatCase{"bnb-nf4-double", LayerFormat::Bitsandbytes4,
                   "u4/g64/f32/table", 4 * kF32},
        FormatCase{"bnb-fp4", LayerFormat::Bitsandbytes4, "u4/g64/f32/table",
                   kF32},
        FormatCase{"bnb-int8", LayerFormat::Bitsandbytes8, "s8/channel/f32",
                   kF32},
        FormatCase{"hqq-1bit", LayerFormat::Hqq, "u1/g64/f32/zp-float", 0},
        FormatCase{"hqq-2bit", LayerFormat::Hqq, "u2/g64/f32/zp-float", 0},
        FormatCase{"hqq-3bit", LayerFormat::Hqq, "u3/g64/f32/zp-float", 0},
        FormatCase{"hqq-4bit", LayerFormat::Hqq, "u4/g64/f32/zp-float", 0},
        FormatCase{"hqq-8bit", LayerFormat::Hqq, "u8/g64/f32/zp-float", 0},
        FormatCase{"auto-round", LayerFormat::Gptq, "u4/g32/f16/zp-int", 0}),
    [](const ::testing::TestParamInfo<FormatCase> &info) {
      std::string name = info.param.fixture;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(Formats, OverridesByLayer) {
  Checkpoint checkpoint = openFixture("auto-round");
  QuantizedWeights w = cantFail(readLayer(checkpoint, "other"));
  EXPECT_EQ(w.type.str(), "u2/g64/f16/zp-int");
  expectFixture(w, "auto-round", "other");
}

// A group of axis 0 is not a run of inputs: refused, with what to do.
TEST(Formats, HqqGroupsAlongOutputsAreRefused) {
  Checkpoint checkpoint = openFixture("hqq-axis0");
  std::string text = errorText(readLayer(checkpoint, "layer"));
  EXPECT_NE(text.find("layer"), std::string::npos);
  EXPECT_NE(text.find("expected HQQ groups along axis 1 (inputs), got axis 0"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("quantize the layer again with axis=1"),
            std::string::npos);
}

TEST(Formats, EveryExpertOfGptOss) {
  Checkpoint checkpoint = openFixture("gpt-oss");
  std::vector<LayerInfo> layers = listLayers(checkpoint);
  ASSERT_EQ(layers.size(), 2u);
  for (const LayerInfo &layer : layers) {
    QuantizedWeights w = cantFail(readLayer(checkpoint, layer.prefix));
    EXPECT_EQ(w.bias.size(), 24u);
    expectFixture(w, "gpt-oss", layer.prefix);
  }
  EXPECT_NE(errorText(readLayer(checkpoint, "experts.gate_up_proj"))
                .find("expected the number of an expert"),
            std::string::npos);
  EXPECT_NE(errorText(readLayer(checkpoint, "experts.gate_up_proj[2]"))
                .find("expected an expert of 0 to 1"),
            std::string::npos);
}

TEST(Formats, FusedScalesNeedTheirRows) {
  Checkpoint checkpoint = openFixture("fp8-fused");
  EXPECT_NE(errorText(readLayer(checkpoint, "layer"))
                .find("one per row (40) or one per fused shard"),
            std::string::npos);
  ReadOptions options;
  options.shardRows = {24, 8, 9};
  EXPECT_NE(errorText(readLayer(checkpoint, "layer", options))
                .find("expected shards of 40 rows in all, got 41"),
            std::string::npos);
  options.shardRows = {24, 8, 8};
  EXPECT_EQ(cantFail(readLayer(checkpoint, "layer", options)).inputScale, 0.5f);
}

TEST(Formats, DescriptionsOfWhatIsNotQuantized) {
  TemporaryCheckpoint files;
  files.add("plain.weight", TensorDType::BF16, {4, 4});
  files.writeConfig(R"({"quant_method": "fp8", "ignored_layers": ["plain"]})");
  Checkpoint checkpoint = cantFail(files.open());
  EXPECT_TRUE(listLayers(checkpoint).empty());
  EXPECT_NE(errorText(readLayer(checkpoint, "plain"))
                .find("its weight is BF16[4x4] (quantization_config leaves it "
                      "so)"),
            std::string::npos);
  EXPECT_NE(errorText(readLayer(checkpoint, "other"))
                .find("the checkpoint has none of that name"),
            std::string::npos);
}

TEST(Formats, Int4InInt8) {
  TemporaryCheckpoint files;
  files.add("l.weight", TensorDType::I8, {1, 4}, {0xF8, 0xFF, 0x00, 0x07});
  files.add("l.weight_scale", TensorDType::F32, {1, 1},
            wordBytes({0x3F000000}));
  files.writeConfig(R"({"quant_method": "compressed-tensors",
      "config_groups": {"g": {"targets": ["Linear"],
                              "weights": {"num_bits": 4, "symmetric": true}}}})");
  Checkpoint checkpoint = cantFail(files.open());
  QuantizedWeights w = cantFail(readLayer(checkpoint, "l"));
  EXPECT_EQ(w.type.str(), "u4/channel/f32");
  EXPECT_EQ(dequantize(w), (std::vector<double>{-4, -0.5, 0, 3.5}));
  files.clear();
  files.add("l.weight", TensorDType::I8, {1, 4}, {0xF7, 0xFF, 0x00, 0x07});
  files.add("l.weight_scale", TensorDType::F32, {1, 1},
            wordBytes({0x3F000000}));
  checkpoint = cantFail(files.open());
  EXPECT_NE(errorText(readLayer(checkpoint, "l"))
                .find("expected weights of 4 bits, got -9"),
            std::string::npos);
}

//===----------------------------------------------------------------------===//
// GGUF
//===----------------------------------------------------------------------===//

GgufFile openGguf() {
  return cantFail(GgufFile::open(fixturePath("gguf") + "/model.gguf"));
}

TEST(Gguf, EveryBlockFormat) {
  GgufFile file = openGguf();
  SafetensorsFile expected = cantFail(
      SafetensorsFile::open(fixturePath("gguf") + "/expected.safetensors"));
  int read = 0;
  for (const GgufTensor &tensor : file.tensors()) {
    if (!ggufTypeIsReadable(tensor.type))
      continue;
    QuantizedWeights w = cantFail(readGguf(file, tensor.name));
    std::vector<double> got = dequantize(w);
    std::vector<double> want =
        tensorValues(*expected.find(tensor.name + ".weight"));
    ASSERT_EQ(got.size(), want.size());
    bool offsets = w.type.zeroPoint == ZeroPointKind::Float;
    for (size_t i = 0; i < got.size(); ++i) {
      if (!offsets) {
        ASSERT_EQ(got[i], want[i]) << tensor.name << " " << i;
        continue;
      }
      // The library rounds q s, o and their difference to f32, we round o / s:
      // four roundings of at most (|w| + 2 |o|).
      double scale = w.scaleOf(i / w.k, i % w.k);
      double offset = scale * w.zeroPointOf(i / w.k, i % w.k);
      ASSERT_NEAR(got[i], want[i],
                  4 * 0x1p-24 * (std::fabs(want[i]) + 2 * std::fabs(offset)))
          << tensor.name << " " << i;
    }
    ++read;
  }
  EXPECT_EQ(read, 11);
}

TEST(Gguf, OtherTypesAreNamed) {
  GgufFile file = openGguf();
  EXPECT_NE(errorText(readGguf(file, "plain")).find("got F32"),
            std::string::npos);
  EXPECT_NE(errorText(readGguf(file, "none")).find("no tensor of that name"),
            std::string::npos);
  EXPECT_NE(errorText(readGguf(file, "Q4_0", 1)).find("expert of 0 to 0"),
            std::string::npos);
}

TEST(Gguf, ZeroScaleWithAnOffset) {
  // One Q4_1 block: d = 0, m = -1.5: every weight is -1.5.
  std::string bytes("GGUF\3\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
  bytes += std::string("\1\0\0\0\0\0\0\0w\2\0\0\0", 13);
  bytes += std::string("\40\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16);
  bytes += std::string("\3\0\0\0\0\0\0\0\0\0\0\0", 12);
  bytes.resize(96, '\0');
  bytes += std::string("\0\0\0\xBE", 4) + std::string(16, '\x5A');
  Expected<GgufFile> file =
      GgufFile::parse(MemoryBuffer::getMemBufferCopy(bytes, "g"));
  ASSERT_TRUE(bool(file)) << toString(file.takeError());
  QuantizedWeights w = cantFail(readGguf(*file, "w"));
  for (double value : dequantize(w))
    EXPECT_EQ(value, -1.5);
}

TEST(Gguf, MutatedFilesNeverCrash) {
  std::unique_ptr<MemoryBuffer> good = cantFail(errorOrToExpected(
      MemoryBuffer::getFile(fixturePath("gguf") + "/model.gguf")));
  // The header with the first KB of data; what follows can't matter more.
  std::string bytes = good->getBuffer().take_front(4096).str();
  Random random(5);
  auto tryOut = [&](const std::string &text) {
    Expected<GgufFile> file =
        GgufFile::parse(MemoryBuffer::getMemBufferCopy(text, "g"));
    if (!file) {
      consumeError(file.takeError());
      return;
    }
    for (const GgufTensor &tensor : file->tensors())
      if (Expected<QuantizedWeights> w = readGguf(*file, tensor.name); !w)
        consumeError(w.takeError());
  };
  for (size_t size = 0; size < 1200; ++size)
    tryOut(bytes.substr(0, size));
  for (int i = 0; i < 20000; ++i) {
    std::string copy = good->getBuffer().take_front(1400).str();
    for (uint64_t edits = 1 + random.below(4); edits > 0; --edits)
      copy[random.below(copy.size())] = char(random.next());
    tryOut(copy);
  }
}

//===----------------------------------------------------------------------===//
// Configurations
//===----------------------------------------------------------------------===//

LayerScheme schemeOf(StringRef text, StringRef layer) {
  json::Value value = cantFail(json::parse(text));
  return cantFail(resolveScheme(value.getAsObject(), layer));
}

TEST(LayerScheme, IgnoreLists) {
  auto matches = [](StringRef entry, StringRef layer) {
    return cantFail(matchesLayer(entry, layer));
  };
  EXPECT_TRUE(matches("lm_head", "lm_head"));
  EXPECT_TRUE(matches("lm_head", "model.lm_head"));
  EXPECT_TRUE(matches("mlp.gate", "model.layers.3.mlp.gate"));
  EXPECT_TRUE(matches("model.layers.3", "model.layers.3.mlp.gate"));
  // Whole components only: `gate` is not `gate_proj`.
  EXPECT_FALSE(matches("mlp.gate", "model.layers.3.mlp.gate_proj"));
  EXPECT_FALSE(matches("model.layers.3", "model.layers.30.mlp"));
  EXPECT_TRUE(matches("re:.*gate$", "model.layers.3.mlp.gate"));
  EXPECT_TRUE(matches("re:model\\.layers\\.\\d+\\.(?:mlp|attn)",
                      "model.layers.12.mlp.up"));
  EXPECT_FALSE(matches("re:layers", "model.layers.3")); // from the start
  EXPECT_TRUE(matches("*.experts.*", "model.mlp.experts.0.w1"));
  EXPECT_FALSE(matches("*.experts", "model.mlp.experts.0.w1"));
  EXPECT_FALSE(matches("", "anything"));
  EXPECT_NE(errorText(matchesLayer("re:(", "x")).find("can't read the pattern"),
            std::string::npos);
  EXPECT_TRUE(schemeOf(R"({"ignore": ["lm_head"]})", "lm_head").ignored);
  EXPECT_TRUE(
      schemeOf(R"({"modules_to_not_convert": ["a.b"]})", "x.a.b").ignored);
  EXPECT_FALSE(schemeOf(R"({"ignored_layers": ["a"]})", "b").ignored);
}

TEST(LayerScheme, GroupsOfCompressedTensors) {
  StringRef config = R"({"quant_method": "compressed-tensors",
    "config_groups": {
      "a": {"targets": ["Linear"], "weights": {"num_bits": 4, "group_size": 128,
                                               "symmetric": true}},
      "b": {"targets": ["re:.*down_proj"], "format": "int-quantized",
            "weights": {"num_bits": 8, "group_size": null}}}})";
  LayerScheme up = schemeOf(config, "layers.0.up_proj");
  EXPECT_EQ(up.bits, 4u);
  EXPECT_EQ(up.groupSize, 128);
  EXPECT_EQ(up.symmetric, true);
  LayerScheme down = schemeOf(config, "layers.0.down_proj");
  EXPECT_EQ(down.bits, 8u);
  EXPECT_EQ(down.format, "int-quantized");
  EXPECT_EQ(down.groupSize, 0);
}

TEST(LayerScheme, DynamicOverrides) {
  StringRef config = R"({"quant_method": "gptq", "bits": 4, "group_size": 128,
    "dynamic": {"+:.*\\.18\\..*gate.*": {"bits": 8, "group_size": 64},
                "-:.*\\.20\\..*": {}}})";
  EXPECT_EQ(schemeOf(config, "model.18.gate_proj").bits, 8u);
  EXPECT_EQ(schemeOf(config, "model.19.gate_proj").bits, 4u);
  EXPECT_TRUE(schemeOf(config, "model.20.up").ignored);
  EXPECT_FALSE(schemeOf(config, "model.18.up").ignored);
}

TEST(LayerScheme, RefusesNonsense) {
  auto message = [](StringRef text) {
    json::Value value = cantFail(json::parse(text));
    return errorText(resolveScheme(value.getAsObject(), "l"));
  };
  EXPECT_NE(message(R"({"bits": 99})").find("'bits' of 1 to 16, got 99"),
            std::string::npos);
  EXPECT_NE(message(R"({"group_size": 1e12})").find("'group_size'"),
            std::string::npos);
  EXPECT_NE(message(R"({"weight_block_size": [128]})").find("two integers"),
            std::string::npos);
  EXPECT_NE(message(R"({"ignore": [1]})").find("expected strings in 'ignore'"),
            std::string::npos);
  EXPECT_NE(message(R"({"config_groups": {"g": 1}})").find("'targets'"),
            std::string::npos);
}

// Any mutation of any fixture reads or fails, but never crashes.
TEST(Formats, MutatedCheckpointsNeverCrash) {
  Random random(21);
  for (const char *fixture :
       {"gptq-3bit", "ct-pack-asym", "ct-pack-actorder", "ct-nvfp4",
        "fp8-block", "bitnet", "bnb-nf4-double", "hqq-3bit", "gpt-oss",
        "auto-round"}) {
    std::unique_ptr<MemoryBuffer> good = cantFail(errorOrToExpected(
        MemoryBuffer::getFile(fixturePath(fixture) + "/model.safetensors")));
    std::unique_ptr<MemoryBuffer> config = cantFail(errorOrToExpected(
        MemoryBuffer::getFile(fixturePath(fixture) + "/config.json")));
    TemporaryCheckpoint files;
    uint64_t headerEnd = 8 + support::endian::read64le(good->getBufferStart());
    for (int i = 0; i < 60; ++i) {
      std::string bytes = good->getBuffer().str();
      std::string text = config->getBuffer().str();
      // Digits of the header (shapes, offsets), bytes of the data, and digits
      // of the configuration.
      for (uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
        size_t at = 8 + random.below(headerEnd - 8);
        if (bytes[at] >= '0' && bytes[at] <= '9')
          bytes[at] = char('0' + random.below(10));
        bytes[headerEnd + random.below(bytes.size() - headerEnd)] =
            char(random.next());
        size_t where = random.below(text.size());
        if (text[where] >= '0' && text[where] <= '9')
          text[where] = char('0' + random.below(10));
      }
      files.writeText("model.safetensors", bytes);
      files.writeText("config.json", text);
      Expected<Checkpoint> checkpoint = Checkpoint::open(files.path());
      if (!checkpoint) {
        consumeError(checkpoint.takeError());
        continue;
      }
      for (const LayerInfo &layer : listLayers(*checkpoint))
        if (Expected<QuantizedWeights> w = readLayer(*checkpoint, layer.prefix);
            !w)
          consumeError(w.takeError());
    }
  }
}

} // namespace
