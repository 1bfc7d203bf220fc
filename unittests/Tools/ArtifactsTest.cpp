//===- ArtifactsTest.cpp - Tests of files of compiled kernels -------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Artifacts.h"
#include "ProblemFlags.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace humming;
using namespace llvm;

namespace {

template <typename T>
std::string errorOf(Expected<T> value) {
  return value ? "" : toString(value.takeError());
}
bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

KernelArtifacts makeArtifacts(StringRef name) {
  KernelArtifacts artifacts;
  artifacts.name = name.str();
  LaunchDescription &d = artifacts.launch;
  d.kernelName = name.str();
  d.chip = "sm_80";
  d.ptxVersion = 70;
  d.blockThreads = 128;
  d.blockN = 64;
  d.blockM = 16;
  d.activation = d.output = d.scale = "f16";
  d.weight = "u4";
  d.granularity = "128";
  d.zeroPoint = "int";
  d.kDivisor = 8;
  d.nDivisor = 4;
  artifacts.ptx = ".version 7.0\n.target sm_80\n";
  artifacts.cubin = std::string("\x7f"
                                "ELF\0",
                                5);
  return artifacts;
}

class ArtifactsTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(sys::fs::createUniqueDirectory("humming-artifacts", folder));
  }
  void TearDown() override { sys::fs::remove_directories(folder); }
  std::string path(const Twine &name) { return (folder + "/" + name).str(); }

  SmallString<128> folder;
};

TEST_F(ArtifactsTest, FolderRoundTrip) {
  KernelArtifacts b = makeArtifacts("b"), a = makeArtifacts("a");
  a.cubin.clear();
  cantFail(writeArtifacts(folder, b));
  cantFail(writeArtifacts(folder, a));
  std::vector<KernelArtifacts> all = cantFail(readArtifactFolder(folder));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "a");
  EXPECT_EQ(all[0].launch, a.launch);
  EXPECT_EQ(all[0].ptx, a.ptx);
  EXPECT_EQ(all[0].cubin, "");
  EXPECT_EQ(all[1].cubin, b.cubin);
}

TEST_F(ArtifactsTest, BadFilesAreNamed) {
  EXPECT_TRUE(contains(errorOf(readArtifactFolder(path("none"))),
                       "cannot read the folder"));
  EXPECT_TRUE(
      contains(errorOf(readArtifactFolder(folder)), "launch descriptions"));
  std::error_code error;
  raw_fd_ostream(path("k.json"), error) << "{}";
  EXPECT_TRUE(contains(errorOf(readArtifactFolder(folder)),
                       "expected a PTX or a cubin file beside"));
  raw_fd_ostream(path("k.ptx"), error) << "x";
  EXPECT_TRUE(contains(errorOf(readArtifactFolder(folder)),
                       "k.json: launch description: missing field"));
  raw_fd_ostream(path("k.json"), error) << makeArtifacts("k").launch.str();
  EXPECT_EQ(errorOf(readArtifactFolder(folder)), "");
  raw_fd_ostream(path("k.ptx"), error) << "";
  EXPECT_TRUE(contains(errorOf(readArtifactFolder(folder)), "empty file"));
  EXPECT_TRUE(
      contains(errorOf(readArtifacts(path("missing.ptx"), "", path("k.json"))),
               "cannot read"));
}

TEST_F(ArtifactsTest, ProblemsComeFromDescriptions) {
  MatmulProblem problem =
      cantFail(problemOf(makeArtifacts("k").launch, 3, 64, 128));
  EXPECT_EQ(problem.weight.weight, NumberFormat::unsignedInt(4));
  EXPECT_EQ(problem.weight.zeroPoint, ZeroPointKind::Integer);
  EXPECT_EQ(problem.weight.granularity, Granularity::group(128));
  EXPECT_EQ(problem.nDivisor, 4);
  EXPECT_EQ(problem.m, 3);
  std::string why;
  EXPECT_TRUE(admitsShape(makeArtifacts("k").launch, 1000, 1048, why));
  EXPECT_FALSE(admitsShape(makeArtifacts("k").launch, 1001, 1048, why));
  EXPECT_TRUE(contains(why, "n = 1001")) << why;
  EXPECT_FALSE(admitsShape(makeArtifacts("k").launch, 1000, 1044, why));
  EXPECT_TRUE(contains(why, "k = 1044")) << why;
}

TEST(Flags, IntegersAndLists) {
  EXPECT_EQ(cantFail(parseIntegerFlag("m", "17", 0, 100)), 17);
  EXPECT_EQ(errorOf(parseIntegerFlag("m", "101", 0, 100)),
            "--m: expected an integer from 0 to 100, got '101'");
  for (const char *text : {"", "x", "1x", "1.5", "-1", "99999999999999999999"})
    EXPECT_NE(errorOf(parseIntegerFlag("m", text, 0, 100)), "") << text;
  SmallVector<int64_t> list =
      cantFail(parseIntegerListFlag("m", "1, 16,64", 0, 100));
  EXPECT_EQ(list, (SmallVector<int64_t>{1, 16, 64}));
  EXPECT_NE(errorOf(parseIntegerListFlag("m", "1,,2", 0, 100)), "");
}

} // namespace
