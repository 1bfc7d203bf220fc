//===- LaunchDescriptionTest.cpp - Tests of the launch description --------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"
#include "gtest/gtest.h"

using namespace humming;
using namespace llvm;

namespace {

std::string errorOf(Error error) { return toString(std::move(error)); }
template <typename T>
std::string errorOf(Expected<T> value) {
  return value ? "" : toString(value.takeError());
}

TEST(LaunchDescription, GridFollowsSizes) {
  LaunchDescription d = makeLaunchDescription();
  EXPECT_EQ(d.grid(1, 1), (LaunchDescription::Grid{1, 1, 2}));
  EXPECT_EQ(d.grid(16, 128), (LaunchDescription::Grid{1, 1, 2}));
  EXPECT_EQ(d.grid(17, 129), (LaunchDescription::Grid{2, 2, 2}));
  EXPECT_EQ(d.grid(1024, 8192), (LaunchDescription::Grid{64, 64, 2}));
  EXPECT_TRUE(d.grid(0, 128).empty());
}

TEST(LaunchDescription, GridIsWholeClusters) {
  LaunchDescription d = makeLaunchDescription(); // blocks of 128 x 16
  d.clusterN = 2;
  EXPECT_EQ(errorOf(d.verify()), "");
  EXPECT_EQ(d.grid(1, 1), (LaunchDescription::Grid{2, 1, 2}));
  EXPECT_EQ(d.grid(17, 129), (LaunchDescription::Grid{2, 2, 2}));
  EXPECT_EQ(d.grid(33, 257), (LaunchDescription::Grid{4, 3, 2}));
  d.clusterN = 1;
  d.clusterM = 2;
  EXPECT_EQ(errorOf(d.verify()), "");
  EXPECT_EQ(d.grid(1, 1), (LaunchDescription::Grid{1, 2, 2}));
  EXPECT_EQ(d.grid(32, 257), (LaunchDescription::Grid{3, 2, 2}));
  EXPECT_EQ(d.grid(33, 257), (LaunchDescription::Grid{3, 4, 2}));
  EXPECT_TRUE(d.grid(0, 128).empty());
  EXPECT_TRUE(d.grid(16, 0).empty());
}

TEST(LaunchDescription, ClustersArePairsOfMatmuls) {
  std::pair<const char *, int32_t LaunchDescription::*> fields[] = {
      {"cluster_n", &LaunchDescription::clusterN},
      {"cluster_m", &LaunchDescription::clusterM}};
  for (auto [name, field] : fields) {
    auto error = [&, field = field](int32_t blocks, bool persistent) {
      LaunchDescription d = makeLaunchDescription();
      d.*field = blocks;
      d.persistent = persistent;
      if (persistent)
        d.splitK = 1;
      return errorOf(d.verify());
    };
    EXPECT_EQ(error(1, false), "");
    EXPECT_EQ(error(1, true), "");
    EXPECT_EQ(error(2, false), "");
    for (int32_t blocks : {-2, 0, 3})
      EXPECT_EQ(error(blocks, false),
                std::string("launch description: ") + name +
                    ": expected 1, or 2 for a matmul that is not persistent, "
                    "got " +
                    std::to_string(blocks));
    EXPECT_EQ(error(2, true), std::string("launch description: ") + name +
                                  ": expected 1, or 2 for a matmul that is not "
                                  "persistent, got 2");
  }
}

TEST(LaunchDescription, WorkspaceIsCountersThenPartials) {
  LaunchDescription d = makeLaunchDescription();
  // 2 x 2 counters of 4 bytes, padded to 256; 2 partials for each of 2 x 2
  // tiles of 128 x 16 floats.
  EXPECT_EQ(d.counterBytes(17, 129), 256);
  EXPECT_EQ(d.workspaceBytes(17, 129), 256 + 2 * 4 * 128 * 16 * 4);
  // 64 x 64 counters fill 16384 bytes without padding.
  EXPECT_EQ(d.counterBytes(1024, 8192), 16384);
  EXPECT_EQ(d.workspaceBytes(0, 128), 0);
  // No 32-bit overflow: 391 x 6250 tiles of 2 * 128 * 16 * 4 bytes are about 40
  // GB.
  EXPECT_EQ(d.workspaceBytes(100000, 50000) - d.counterBytes(100000, 50000),
            int64_t(391) * 6250 * 2 * 128 * 16 * 4);
  d.splitK = 1;
  EXPECT_EQ(d.workspaceBytes(17, 129), 0);
  EXPECT_EQ(d.counterBytes(17, 129), 0);
}

TEST(LaunchDescription, JsonRoundTrip) {
  LaunchDescription d = makeLaunchDescription();
  d.hasBias = true;
  d.zeroPoint = "float";
  d.granularity = "128x128";
  d.weight = "e4m3";
  d.activation = "e4m3";
  d.weightLayout = "plain";
  d.kDivisor = 16;
  d.tensorMaps = {{"x", 16}, {"w", 128}};
  d.clusterM = 2;
  d.notes = {"a \"quoted\" note", "another\nline"};
  Expected<LaunchDescription> back = LaunchDescription::parse(d.str());
  ASSERT_TRUE(bool(back)) << errorOf(std::move(back));
  EXPECT_EQ(*back, d);
  EXPECT_EQ(back->str(), d.str());
}

TEST(LaunchDescription, TensorMapsFollowTheMatrices) {
  LaunchDescription d = makeLaunchDescription();
  EXPECT_EQ(d.arguments().size(), 16u);
  d.tensorMaps = {{"x", 16}};
  EXPECT_EQ(errorOf(d.verify()), "");
  EXPECT_EQ(d.arguments().size(), 17u);
  EXPECT_EQ(d.arguments().back(), "x_map");
  // 128 bytes are 64 of bf16; rows of 4096 + 8 elements.
  EXPECT_EQ(d.shapeOf(d.tensorMaps[0], 17, 128, 4096, 4104),
            (LaunchDescription::TensorMapShape{2, 4096, 17, 8208, 64, 16}));
  d.activation = d.weight = "e4m3";
  d.weightLayout = "plain";
  d.kDivisor = 16;
  d.tensorMaps.push_back({"w", 128});
  EXPECT_EQ(errorOf(d.verify()), "");
  EXPECT_EQ(d.arguments().back(), "w_map");
  EXPECT_EQ(d.shapeOf(d.tensorMaps[1], 17, 256, 4096, 4112),
            (LaunchDescription::TensorMapShape{1, 4096, 256, 4096, 128, 128}));
}

TEST(LaunchDescription, EveryMissingFieldIsNamed) {
  json::Value whole = makeLaunchDescription().toJSON();
  for (const auto &field : *whole.getAsObject()) {
    json::Value part = whole;
    std::string name = StringRef(field.first).str();
    part.getAsObject()->erase(name);
    std::string message = errorOf(LaunchDescription::fromJSON(part));
    EXPECT_EQ(message, "launch description: missing field '" + name + "'");
  }
}

TEST(LaunchDescription, EveryMistypedFieldIsNamed) {
  json::Value whole = makeLaunchDescription().toJSON();
  for (const auto &field : *whole.getAsObject()) {
    json::Value changed = whole;
    std::string name = StringRef(field.first).str();
    (*changed.getAsObject())[name] = json::Object{};
    std::string message = errorOf(LaunchDescription::fromJSON(changed));
    EXPECT_NE(message.find("launch description: " + name + ": expected"),
              std::string::npos)
        << message;
  }
}

TEST(LaunchDescription, RefusesUnknownFieldVersionAndOrder) {
  json::Value value = makeLaunchDescription().toJSON();
  (*value.getAsObject())["extra"] = 1;
  EXPECT_EQ(errorOf(LaunchDescription::fromJSON(value)),
            "launch description: unknown field 'extra'");
  // The version is what a reader must hear of first.
  (*value.getAsObject())["format_version"] = 1;
  EXPECT_EQ(errorOf(LaunchDescription::fromJSON(value)),
            "launch description: format_version: expected 4, got 1");

  value = makeLaunchDescription().toJSON();
  json::Array &arguments = *value.getAsObject()->getArray("arguments");
  std::swap(arguments[0], arguments[1]);
  std::string message = errorOf(LaunchDescription::fromJSON(value));
  EXPECT_NE(message.find("arguments: expected [x, w, scales"),
            std::string::npos)
      << message;
}

TEST(LaunchDescription, RefusesBadText) {
  EXPECT_NE(errorOf(LaunchDescription::parse("")).find("not JSON"),
            std::string::npos);
  EXPECT_NE(errorOf(LaunchDescription::parse("[1]")).find("JSON object"),
            std::string::npos);
  std::string text = makeLaunchDescription().str();
  for (size_t length = 0; length + 2 < text.size(); length += 7)
    EXPECT_NE(errorOf(LaunchDescription::parse(text.substr(0, length))), "");
  // Deep nesting must not exhaust the stack.
  EXPECT_NE(errorOf(LaunchDescription::parse(std::string(1 << 20, '[')))
                .find("nests deeper"),
            std::string::npos);
}

TEST(LaunchDescription, VerifyChecksEveryField) {
  auto broken = [](auto change) {
    LaunchDescription d = makeLaunchDescription();
    change(d);
    return errorOf(d.verify());
  };
  EXPECT_EQ(errorOf(makeLaunchDescription().verify()), "");
  using D = LaunchDescription;
  std::pair<const char *, std::string> cases[] = {
      {"kernel:", broken([](D &d) { d.kernelName = ""; })},
      {"kernel:", broken([](D &d) { d.kernelName = "a-b"; })},
      {"kernel:", broken([](D &d) { d.kernelName = "1a"; })},
      {"chip:", broken([](D &d) { d.chip = "gfx90"; })},
      {"ptx_version:", broken([](D &d) { d.ptxVersion = 0; })},
      {"block_threads:", broken([](D &d) { d.blockThreads = 100; })},
      {"block_threads:", broken([](D &d) { d.blockThreads = 2048; })},
      {"shared_bytes:", broken([](D &d) { d.sharedBytes = 1u << 30; })},
      {"block_n:", broken([](D &d) { d.blockN = 0; })},
      {"block_m:", broken([](D &d) { d.blockM = -8; })},
      {"split_k:", broken([](D &d) { d.splitK = 0; })},
      {"cluster_n:", broken([](D &d) { d.clusterN = 3; })},
      {"cluster_m:", broken([](D &d) { d.clusterM = 0; })},
      {"activation:", broken([](D &d) { d.activation = "f17"; })},
      {"weight:", broken([](D &d) { d.weight = "u9"; })},
      {"scale:", broken([](D &d) { d.scale = ""; })},
      {"output:", broken([](D &d) { d.output = "e9m9"; })},
      {"operation:", broken([](D &d) { d.operation = "move"; })},
      {"tensor_maps:", broken([](D &d) { d.tensorMaps = {{"w", 16}}; })},
      {"tensor_maps:", broken([](D &d) {
         d.tensorMaps = {{"x", 16}, {"w", 16}}; // of packed weights
       })},
      {"tensor_maps:", broken([](D &d) { d.tensorMaps = {{"x", 12}}; })},
      {"tensor_maps:", broken([](D &d) {
         d.tensorMaps = {{"x", 16}};
         d.kDivisor = 4;
       })},
      {"weight_layout:", broken([](D &d) { d.weightLayout = "rows"; })},
      {"column_phase:", broken([](D &d) { d.columnPhase = -64; })},
      {"granularity:", broken([](D &d) { d.granularity = "12x"; })},
      {"zero_point:", broken([](D &d) { d.zeroPoint = "maybe"; })},
      {"k_divisor:", broken([](D &d) { d.kDivisor = 3; })},
      {"n_divisor:", broken([](D &d) { d.nDivisor = 16; })},
  };
  for (const auto &[field, message] : cases)
    EXPECT_NE(message.find(field), std::string::npos)
        << field << " -> " << message;
}

TEST(LaunchDescription, FormatNames) {
  std::pair<const char *, unsigned> good[] = {
      {"u1", 1},   {"u8", 8},   {"s2", 2},   {"e4m3", 8},  {"e2m1", 4},
      {"e3m2", 6}, {"e8m0", 8}, {"f16", 16}, {"bf16", 16}, {"f32", 32}};
  for (auto [name, bits] : good) {
    Expected<unsigned> got = parseFormatBits(name);
    ASSERT_TRUE(bool(got)) << name;
    EXPECT_EQ(*got, bits) << name;
  }
  for (const char *name : {"", "u0", "u9", "s1", "e0m3", "e5m5", "u4 ", "U4"})
    EXPECT_NE(errorOf(parseFormatBits(name)), "") << name;
  EXPECT_EQ(cantFail(parseChipNumber("sm_90a")), 90u);
  EXPECT_EQ(cantFail(parseChipNumber("sm_120")), 120u);
  for (const char *name : {"", "sm_", "sm_9", "sm_9000", "90", "sm_xx"})
    EXPECT_NE(errorOf(parseChipNumber(name)), "") << name;
}

} // namespace
