//===- LaunchQuantizeTest.cpp - Launching quantize kernels ----------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// And matmuls that read what they write.
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"
#include "Humming/Runtime/Runtime.h"
#include "gtest/gtest.h"

using namespace humming;
using namespace llvm;

namespace {

void *at(uintptr_t address) { return reinterpret_cast<void *>(address); }

/// e4m3 in groups of 128 of a gated bf16 input, 16 groups a block.
LaunchDescription describe() {
  LaunchDescription d = makeLaunchDescription();
  d.operation = "quantize";
  d.weight.clear();
  d.scale.clear();
  d.zeroPoint = "none";
  d.activation = "bf16";
  d.output = "e4m3";
  d.activationScale = "token";
  d.activationGroup = 128;
  d.gate = "silu";
  d.splitK = 1;
  d.blockN = 2048;
  d.blockM = 1;
  d.kDivisor = 8;
  return d;
}

class LaunchQuantizeTest : public testing::Test {
protected:
  void SetUp() override { driver = cantFail(CudaDriver::create(fake.table)); }
  std::shared_ptr<const Kernel> load(const LaunchDescription &d) {
    return cantFail(
        Kernel::load(cantFail(Device::open(*driver)), d, "", makeCubin(90)));
  }
  FakeDriver fake;
  std::unique_ptr<CudaDriver> driver;
};

TEST_F(LaunchQuantizeTest, ArgumentsAndGrid) {
  LaunchDescription d = describe();
  EXPECT_EQ(toString(d.verify()), "");
  EXPECT_EQ(cantFail(LaunchDescription::parse(d.str())), d);
  fake.numPointers = 4;
  fake.numNumbers = 4;
  fake.numScalePointers = 0;
  auto kernel = load(d);
  QuantizeArguments a;
  a.x = at(0x1000);
  a.codes = at(0x2000);
  a.scales = at(0x3000);
  a.m = 5;
  a.k = 4096;
  a.ldx = 8192;
  a.ldq = 4096;
  EXPECT_EQ(toString(kernel->launch(nullptr, a)), "");
  EXPECT_EQ(fake.launches.at(0).grid, (LaunchDescription::Grid{5, 2, 1}));
  EXPECT_EQ(fake.launches[0].pointers,
            (std::vector<uint64_t>{0x1000, 0x2000, 0x3000, 0}));
  EXPECT_EQ(fake.launches[0].numbers,
            (std::vector<int32_t>{5, 4096, 8192, 4096}));
  a.m = 0; // launches nothing
  EXPECT_EQ(toString(kernel->launch(nullptr, a)), "");
  EXPECT_EQ(fake.launches.size(), 1u);
  a.m = 5;

  auto expectError = [&](auto change, StringRef message) {
    QuantizeArguments b = a;
    change(b);
    std::string got = toString(kernel->launch(nullptr, b));
    EXPECT_NE(got.find(message.str()), std::string::npos) << got;
  };
  using A = QuantizeArguments;
  expectError([](A &b) { b.m = -1; }, "m: expected 0 or more, got -1");
  expectError([](A &b) { b.k = 0; }, "k: expected 1 or more, got 0");
  expectError([](A &b) { b.ldx = 4096; },
              "ldx: expected at least 8192, got 4096");
  expectError([](A &b) { b.ldq = 4000; },
              "ldq: expected at least k = 4096, got 4000");
  expectError([](A &b) { b.ldx = 8196; },
              "ldx: expected a multiple of 8, which the kernel was compiled "
              "for, got 8196");
  expectError([](A &b) { b.x = at(0x1002); },
              "x: expected an address that is a multiple of 16, got 0x1002");
  expectError([](A &b) { b.codes = nullptr; },
              "codes: expected a device pointer, got null");
  expectError([](A &b) { b.zeroPoints = at(0x4000); },
              "zero_points: expected null");
  EXPECT_EQ(fake.launches.size(), 1u);
}

TEST_F(LaunchQuantizeTest, KindsOfArgumentsDoNotMix) {
  auto quantize = load(describe());
  EXPECT_NE(toString(quantize->launch(nullptr, DenseArguments()))
                .find("arguments: expected those of a quantize kernel"),
            std::string::npos);
  auto matmul = load(makeLaunchDescription());
  EXPECT_NE(toString(matmul->launch(nullptr, QuantizeArguments()))
                .find("arguments: expected those of a matmul"),
            std::string::npos);
}

TEST_F(LaunchQuantizeTest, DescriptionsAreChecked) {
  auto broken = [](auto change) {
    LaunchDescription d = describe();
    change(d);
    return toString(d.verify());
  };
  using D = LaunchDescription;
  std::pair<const char *, std::string> cases[] = {
      {"weight:", broken([](D &d) { d.weight = "u4"; })},
      {"activation_group:", broken([](D &d) { d.activationGroup = 24; })},
      {"activation_group:", broken([](D &d) { d.activationScale = "tensor"; })},
      {"activation_scale_format:",
       broken([](D &d) { d.activationScaleFormat = "f16"; })},
      {"accumulator:", broken([](D &d) { d.accumulator = "bf16"; })},
      {"gate:", broken([](D &d) { d.gate = "relu"; })},
      {"block_n:", broken([](D &d) { d.blockN = -1; })}};
  for (const auto &[field, message] : cases)
    EXPECT_NE(message.find(field), std::string::npos)
        << field << " -> " << message;
}

} // namespace
