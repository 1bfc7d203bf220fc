//===- LaunchLayoutTest.cpp - Launching pack and gather kernels -----------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"
#include "Humming/Runtime/Runtime.h"
#include "gtest/gtest.h"

using namespace humming;
using namespace llvm;

namespace {

void *at(uintptr_t address) { return reinterpret_cast<void *>(address); }

/// A description of a kernel that moves data.
LaunchDescription describe(StringRef operation) {
  LaunchDescription d = makeLaunchDescription();
  d.operation = operation.str();
  d.scale.clear();
  if (operation == "gather")
    d.weight.clear();
  d.activation = d.output = "f16";
  d.zeroPoint = "none";
  d.splitK = 1;
  d.blockN = operation == "pack" ? 64 : 1024;
  d.blockM = operation == "pack" ? 64 : 1;
  d.kDivisor = 4;
  return d;
}

class LaunchLayoutTest : public testing::Test {
protected:
  void SetUp() override { driver = cantFail(CudaDriver::create(fake.table)); }
  std::shared_ptr<const Kernel> load(const LaunchDescription &d) {
    return cantFail(
        Kernel::load(cantFail(Device::open(*driver)), d, "", makeCubin(90)));
  }
  FakeDriver fake;
  std::unique_ptr<CudaDriver> driver;
};

TEST_F(LaunchLayoutTest, Pack) {
  LaunchDescription d = describe("pack");
  EXPECT_EQ(toString(d.verify()), "");
  EXPECT_EQ(cantFail(LaunchDescription::parse(d.str())), d);
  // Strips by slabs.
  EXPECT_EQ(d.grid(/*k=*/200, /*n=*/130), (LaunchDescription::Grid{3, 4, 1}));
  fake.numPointers = 2;
  fake.numNumbers = 3;
  fake.numScalePointers = 0;
  auto kernel = load(d);
  PackArguments a;
  a.source = at(0x1000);
  a.packed = at(0x2000);
  a.n = 130;
  a.k = 200;
  a.lds = 200;
  EXPECT_EQ(toString(kernel->launch(nullptr, a)), "");
  EXPECT_EQ(fake.launches.at(0).grid, (LaunchDescription::Grid{3, 4, 1}));
  EXPECT_EQ(fake.launches[0].pointers, (std::vector<uint64_t>{0x1000, 0x2000}));
  EXPECT_EQ(fake.launches[0].numbers, (std::vector<int32_t>{130, 200, 200}));
  auto message = [&](PackArguments changed) {
    return toString(kernel->launch(nullptr, changed));
  };
  PackArguments b = a;
  b.k = 199;
  EXPECT_NE(message(b).find("k: expected a multiple of 4, which the kernel was "
                            "compiled for, got 199"),
            std::string::npos);
  b = a;
  b.lds = 196;
  EXPECT_NE(message(b).find("lds: expected at least 200, got 196"),
            std::string::npos);
  b = a;
  b.packed = at(0x2008);
  EXPECT_NE(message(b).find("packed: expected an address that is a multiple of "
                            "16, got 0x2008"),
            std::string::npos);
  b = a;
  b.source = nullptr;
  EXPECT_NE(message(b).find("source: expected a device pointer, got null"),
            std::string::npos);
  EXPECT_NE(
      toString(kernel->launch(nullptr, GatherArguments()))
          .find("arguments: expected those of a pack kernel, got those of "
                "a gather kernel"),
      std::string::npos);
}

TEST_F(LaunchLayoutTest, Gather) {
  LaunchDescription d = describe("gather");
  EXPECT_EQ(toString(d.verify()), "");
  EXPECT_EQ(cantFail(LaunchDescription::parse(d.str())), d);
  EXPECT_EQ(d.grid(/*m=*/5, /*columns=*/1028),
            (LaunchDescription::Grid{5, 2, 1}));
  fake.numPointers = 3;
  fake.numNumbers = 5;
  fake.numScalePointers = 0;
  auto kernel = load(d);
  GatherArguments a;
  a.x = at(0x1002); // an element's alignment is enough
  a.order = at(0x2000);
  a.gathered = at(0x3000);
  a.m = 5;
  a.k = 1001;
  a.columns = 1028;
  a.ldx = 1001;
  a.ldg = 1028;
  EXPECT_EQ(toString(kernel->launch(nullptr, a)), "");
  EXPECT_EQ(fake.launches.at(0).numbers,
            (std::vector<int32_t>{5, 1001, 1028, 1001, 1028}));
  GatherArguments b = a;
  b.m = 0;
  b.order = at(0x2002);
  EXPECT_NE(toString(kernel->launch(nullptr, b))
                .find("order: expected an address that is a multiple of 4"),
            std::string::npos);
  b = a;
  b.columns = 1026;
  EXPECT_NE(toString(kernel->launch(nullptr, b))
                .find("columns: expected a "
                      "multiple of 4"),
            std::string::npos);
  // A matmul's arguments are refused.
  EXPECT_NE(toString(kernel->launch(nullptr, DenseArguments()))
                .find("those of a gather kernel"),
            std::string::npos);
}

} // namespace
