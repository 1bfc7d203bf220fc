//===- GptqAwqTest.cpp
//------------------------------------------------------===//
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

const char kLayer[] = "encoder.layer.0.attention.self.query";

TEST(Gptq, LayerOfARealModel) {
  Checkpoint checkpoint = openFixture("minilm-gptq");
  QuantizedWeights w = cantFail(readLayer(checkpoint, kLayer));
  EXPECT_EQ(w.type.str(), "u4/g128/f16/zp-int");
  EXPECT_EQ(w.n, 384);
  EXPECT_EQ(w.k, 384);
  EXPECT_TRUE(w.kOrder.empty());
  EXPECT_EQ(w.bias.size(), 384u);
  expectFixture(w, "minilm-gptq", kLayer);
}

TEST(Gptq, ActivationOrderOfARealModel) {
  Checkpoint checkpoint = openFixture("minilm-gptq-actorder");
  QuantizedWeights w = cantFail(readLayer(checkpoint, kLayer));
  EXPECT_EQ(w.kOrder.size(), 384u);
  expectFixture(w, "minilm-gptq-actorder", kLayer);
}

TEST(Awq, LayerOfARealModel) {
  Checkpoint checkpoint = openFixture("minilm-awq");
  QuantizedWeights w = cantFail(readLayer(checkpoint, kLayer));
  EXPECT_EQ(w.type.str(), "u4/g128/f16/zp-int");
  expectFixture(w, "minilm-awq", kLayer);
  // The same layer, quantized the same way: the same matrix.
  QuantizedWeights gptq =
      cantFail(readLayer(openFixture("minilm-gptq"), kLayer));
  EXPECT_EQ(w.codes, gptq.codes);
  EXPECT_EQ(w.zeroPoints, gptq.zeroPoints);
  EXPECT_EQ(w.scales, gptq.scales);
}

/// K = 128, N = 64, all codes 8, all stored zeros `zero`, scale 2^-7.
double singleOutput(uint32_t zero, GptqZeros zeros) {
  TemporaryCheckpoint files;
  files.add("l.qweight", TensorDType::I32, {16, 64},
            std::vector<uint8_t>(16 * 64 * 4, 0x88));
  files.add("l.qzeros", TensorDType::I32, {1, 8},
            std::vector<uint8_t>(32, uint8_t(zero * 0x11)));
  std::vector<uint8_t> scales;
  for (int i = 0; i < 64; ++i) {
    scales.push_back(0x00); // 2^-7 in f16 is 0x2000
    scales.push_back(0x20);
  }
  files.add("l.scales", TensorDType::F16, {1, 64}, scales);
  GptqOptions options;
  options.zeros = zeros;
  Checkpoint checkpoint = cantFail(files.open());
  QuantizedWeights w = cantFail(readGptq(checkpoint, "l", options));
  std::vector<double> ones(128, 1.0);
  return cantFail(referenceMatmul(ones, 1, 128, w, {})).values[63];
}

TEST(Gptq, ZeroConventionIsExplicit) {
  EXPECT_EQ(singleOutput(8, GptqZeros::V2), 0);
  EXPECT_EQ(singleOutput(7, GptqZeros::V1), 0);
  EXPECT_EQ(singleOutput(8, GptqZeros::V1), -1);
  EXPECT_EQ(singleOutput(15, GptqZeros::V1), 8); // 15 + 1 wraps to 0
}

/// A minimal valid GPTQ layer, K = 64, N = 8, groups of 32.
void addGptq(TemporaryCheckpoint &files) {
  files.add("l.qweight", TensorDType::I32, {8, 8});
  files.add("l.qzeros", TensorDType::I32, {2, 1});
  files.add("l.scales", TensorDType::F16, {2, 8});
}

TEST(Gptq, UnknownConventionIsRefusedWhereItMatters) {
  TemporaryCheckpoint files;
  addGptq(files);
  Checkpoint checkpoint = cantFail(files.open());
  std::string message = errorText(readGptq(checkpoint, "l", {}));
  EXPECT_NE(message.find("layer 'l': expected to know how zero points are "
                         "stored: v1"),
            std::string::npos)
      << message;
  GptqOptions symmetric;
  symmetric.symmetric = true;
  QuantizedWeights w = cantFail(readGptq(checkpoint, "l", symmetric));
  EXPECT_EQ(w.type.str(), "u4/g32/f16");
  EXPECT_TRUE(w.zeroPoints.empty());
  // An override decides.
  w = cantFail(readLayer(checkpoint, "l", GptqZeros::V2));
  EXPECT_EQ(w.zeroPoints[0], 1u);
  w = cantFail(readLayer(checkpoint, "l", GptqZeros::V1));
  EXPECT_EQ(w.zeroPoints[0], 2u);
}

TEST(Gptq, ConfigurationIsRead) {
  TemporaryCheckpoint files;
  addGptq(files);
  files.writeConfig(R"({"quant_method": "gptq", "bits": 4, "group_size": 32,
                        "sym": false, "checkpoint_format": "gptq_v2"})");
  Checkpoint checkpoint = cantFail(files.open());
  EXPECT_EQ(cantFail(readLayer(checkpoint, "l")).zeroPoints[0], 1u);
  auto message = [&](StringRef config) {
    files.writeConfig(config);
    Checkpoint reopened = cantFail(files.open());
    return errorText(readLayer(reopened, "l"));
  };
  EXPECT_NE(message(R"({"quant_method": "gptq", "group_size": 64})")
                .find("expected one scale per row for a group size of 64, got "
                      "2"),
            std::string::npos);
  EXPECT_NE(message(R"({"quant_method": "gptq", "group_size": 16})")
                .find("expected 4 groups of scales"),
            std::string::npos);
  EXPECT_NE(message(R"({"quant_method": "gptq", "bits": "4"})")
                .find("expected an integer 'bits'"),
            std::string::npos);
  EXPECT_NE(message(R"({"quant_method": "gptq", "bits": 5})")
                .find("2, 3, 4 or 8 bits, got 5"),
            std::string::npos);
  EXPECT_NE(message(R"({"quant_method": "gptq", "checkpoint_format": "v9"})")
                .find("v2 or gptq_v2 (the zero itself is stored), got 'v9'"),
            std::string::npos);
  EXPECT_NE(message(R"({"quant_method": "quip"})")
                .find("expected a known quant_method"),
            std::string::npos);
}

TEST(Gptq, ShapesThatDisagree) {
  GptqOptions options;
  options.zeros = GptqZeros::V1;
  auto message = [&](function_ref<void(TemporaryCheckpoint &)> add) {
    TemporaryCheckpoint files;
    add(files);
    Checkpoint checkpoint = cantFail(files.open());
    return errorText(readGptq(checkpoint, "l", options));
  };
  auto expectPart = [](const std::string &text, StringRef part) {
    EXPECT_NE(text.find(part.str()), std::string::npos) << text;
  };
  expectPart(message([](TemporaryCheckpoint &f) {
               f.add("l.scales", TensorDType::F16, {2, 8});
             }),
             "expected a tensor 'l.qweight', the checkpoint has none");
  expectPart(message([](TemporaryCheckpoint &f) {
               f.add("l.qweight", TensorDType::F32, {8, 8});
               f.add("l.scales", TensorDType::F16, {2, 8});
             }),
             "expected tensor 'qweight' of I32 or U32, got F32[8x8]");
  expectPart(message([](TemporaryCheckpoint &f) {
               f.add("l.qweight", TensorDType::I32, {8, 8});
               f.add("l.scales", TensorDType::F16, {2, 9});
             }),
             "of shape 2x8, got F16[2x9]");
  expectPart(message([](TemporaryCheckpoint &f) {
               f.add("l.qweight", TensorDType::I32, {8, 8});
               f.add("l.scales", TensorDType::F16, {3, 8});
             }),
             "can't tell the group size of 64 columns from 3 scales");
  expectPart(message([](TemporaryCheckpoint &f) {
               f.add("l.qweight", TensorDType::I32, {8, 8});
               f.add("l.scales", TensorDType::F16, {2, 8});
               f.add("l.qzeros", TensorDType::I32, {2, 2});
             }),
             "of shape 2x1, got I32[2x2]");
  expectPart(message([](TemporaryCheckpoint &f) {
               addGptq(f);
               f.add("l.bias", TensorDType::F16, {9});
             }),
             "of shape 8, got F16[9]");
  expectPart(message([](TemporaryCheckpoint &f) {
               addGptq(f);
               f.add("l.g_idx", TensorDType::I32, {64},
                     wordBytes(std::vector<uint32_t>(64, 2)));
             }),
             "expected g_idx entries of 0 to 1, got 2");
  expectPart(message([](TemporaryCheckpoint &f) {
               addGptq(f);
               f.add("l.g_idx", TensorDType::I32, {64},
                     wordBytes(std::vector<uint32_t>(64, 0)));
             }),
             "expected 32 columns in each group of g_idx, got 64 in group 0");
  expectPart(message([](TemporaryCheckpoint &f) {
               addGptq(f);
               f.add("l.g_idx", TensorDType::I32, {10});
             }),
             "expected g_idx of 64 entries, got 10");
}

TEST(Gptq, TrivialGroupIndexNeedsNoOrder) {
  TemporaryCheckpoint files;
  addGptq(files);
  std::vector<uint32_t> index(64);
  for (uint32_t i = 0; i < 64; ++i)
    index[i] = i / 32;
  files.add("l.g_idx", TensorDType::I32, {64}, wordBytes(index));
  Checkpoint checkpoint = cantFail(files.open());
  GptqOptions options;
  options.zeros = GptqZeros::V1;
  EXPECT_TRUE(cantFail(readGptq(checkpoint, "l", options)).kOrder.empty());
}

TEST(Awq, NibbleOrderByHand) {
  TemporaryCheckpoint files;
  files.add("l.qweight", TensorDType::I32, {1, 1}, wordBytes({0x76543210}));
  files.add("l.qzeros", TensorDType::I32, {1, 1}, wordBytes({0xFEDCBA98}));
  files.add("l.scales", TensorDType::F16, {1, 8});
  Checkpoint checkpoint = cantFail(files.open());
  QuantizedWeights w = cantFail(readAwq(checkpoint, "l", {}));
  EXPECT_EQ(w.codes, (std::vector<uint8_t>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(w.zeroPoints,
            (std::vector<uint32_t>{8, 12, 9, 13, 10, 14, 11, 15}));
}

TEST(Checkpoint, FoldersAndIndexes) {
  TemporaryCheckpoint files;
  files.add("a", TensorDType::U8, {4});
  cantFail(files.open("one.safetensors"));
  files.clear();
  files.add("b", TensorDType::U8, {4});
  Checkpoint both = cantFail(files.open("two.safetensors"));
  ASSERT_EQ(both.tensors().size(), 2u);
  EXPECT_NE(both.find("a"), nullptr);
  EXPECT_EQ(both.find("c"), nullptr);
  EXPECT_EQ(both.quantizationConfig(), nullptr);
  // An index names the files that count.
  files.writeText("model.safetensors.index.json",
                  R"({"weight_map": {"b": "two.safetensors"}})");
  EXPECT_EQ(cantFail(Checkpoint::open(files.path())).tensors().size(), 1u);
  files.writeText("model.safetensors.index.json",
                  R"({"weight_map": {"b": "../two.safetensors"}})");
  EXPECT_NE(errorText(Checkpoint::open(files.path()))
                .find("expected the name of a file in the same folder"),
            std::string::npos);
  files.writeText("model.safetensors.index.json", "[]");
  EXPECT_NE(errorText(Checkpoint::open(files.path())).find("'weight_map'"),
            std::string::npos);
}

TEST(Checkpoint, SameTensorInTwoFiles) {
  TemporaryCheckpoint files;
  files.add("a", TensorDType::U8, {4});
  cantFail(files.open("one.safetensors"));
  EXPECT_NE(errorText(files.open("two.safetensors"))
                .find("tensor 'a' is in more than one file"),
            std::string::npos);
}

TEST(Checkpoint, HostileConfiguration) {
  TemporaryCheckpoint files;
  files.add("a", TensorDType::U8, {4});
  files.writeText("config.json", std::string(100000, '['));
  EXPECT_NE(errorText(files.open()).find("nested deeper than 64"),
            std::string::npos);
  files.writeText("config.json", "{\"a\": ");
  EXPECT_NE(errorText(files.open()).find("config.json"), std::string::npos);
  files.writeText("config.json", "[]");
  EXPECT_NE(errorText(files.open()).find("expected a JSON object"),
            std::string::npos);
}

} // namespace
