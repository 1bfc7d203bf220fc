//===- AssembleChoicesTest.cpp - What is chosen assembles well ------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A config that the chooser picks must not spill registers, and its wgmma must
// not be serialised: ptxas says both in its log (spill bytes; C7510, C7513,
// C7514), and either costs 15 to 40 % on an H200. Needs an assembler, which
// needs no GPU; on a machine without one there is nothing to run.
//
//===----------------------------------------------------------------------===//

#include "Humming/Compiler/Compiler.h"
#include "Humming/Runtime/JitLink.h"
#include "Humming/Target/KernelConfig.h"
#include "llvm/ADT/StringRef.h"
#include "gtest/gtest.h"
#include <set>

using namespace humming;

namespace {

struct Format {
  const char *activation, *weight, *scale;
  Granularity granularity;
  ZeroPointKind zeroPoint = ZeroPointKind::None;
  int32_t activationGroup = 0;
};

MatmulProblem problemOf(const Format &f, int64_t m, int64_t n, int64_t k) {
  auto parse = [](llvm::StringRef name) {
    return llvm::cantFail(NumberFormat::parse(name));
  };
  MatmulProblem p;
  p.activation = parse(f.activation);
  p.weight.weight = parse(f.weight);
  p.weight.scale = parse(f.scale);
  p.weight.granularity = f.granularity;
  p.weight.zeroPoint = f.zeroPoint;
  p.output = p.activation.isF16() ? NumberFormat::f16() : NumberFormat::bf16();
  if (p.activation.bits < 16)
    p.activationScale = ActivationScaleKind::Token;
  p.activationGroup = f.activationGroup;
  p.m = m;
  p.n = n;
  p.k = k;
  p.deriveDivisors();
  // Scales of activation groups go with rows of tokens, and these with plain
  // weights.
  if (f.activationGroup != 0)
    p.weightLayout = p.naturalLayout();
  return p;
}

/// Problems whose choices are assembled: W4A16 at every size that the table of
/// choices has, the other formats at a small, a middle and a large M.
std::vector<MatmulProblem> sample() {
  std::vector<MatmulProblem> problems;
  const Format w4a16 = {"bf16", "u4", "bf16", Granularity::group(128)};
  const std::pair<int64_t, int64_t> shapes[] = {
      {8192, 8192}, {28672, 4096}, {1000, 1048}};
  for (auto [n, k] : shapes)
    for (int64_t m : {1, 16, 64, 257, 1024})
      problems.push_back(problemOf(w4a16, m, n, k));
  const Format others[] = {
      {"f16", "u4", "f16", Granularity::group(128), ZeroPointKind::Integer},
      {"bf16", "e2m1", "e8m0", Granularity::group(32)},
      {"bf16", "e2m1", "e4m3", Granularity::group(16)},
      {"bf16", "e4m3", "f32", Granularity::block(128, 128)},
      {"bf16", "u3", "bf16", Granularity::group(128)},
      {"e4m3", "e4m3", "f32", Granularity::perChannel()},
      {"e4m3", "e4m3", "f32", Granularity::block(128, 128)},
      {"s8", "s8", "f32", Granularity::perChannel()},
      {"e4m3", "u4", "bf16", Granularity::group(128)},
      {"s8", "u4", "bf16", Granularity::group(128)}};
  for (const Format &format : others)
    for (int64_t m : {1, 64, 1024})
      problems.push_back(problemOf(format, m, 8192, 8192));
  const ZeroPointKind none = ZeroPointKind::None;
  const Format grouped[] = {
      {"e4m3", "e4m3", "f32", Granularity::block(128, 128), none, 128},
      {"e4m3", "e4m3", "f32", Granularity::block(128, 128), none, 64},
      {"e4m3", "e4m3", "f32", Granularity::block(64, 32), none, 32},
      {"e4m3", "e4m3", "f32", Granularity::perChannel(), none, 32},
      {"s8", "s8", "f32", Granularity::block(128, 128), none, 128},
      {"s8", "s8", "bf16", Granularity::perChannel(), none, 128}};
  for (const Format &format : grouped)
    for (int64_t m : {128, 1024, 8192})
      problems.push_back(problemOf(format, m, 8192, 8192));
  return problems;
}

class AssembleChoices : public testing::TestWithParam<const char *> {};

TEST_P(AssembleChoices, NoSpillsAndNoSerializedWarpgroupMMAs) {
  llvm::Expected<Assembler> assembler =
      findAssembler(llvm::cantFail(AssemblerSearch::fromEnvironment()));
  if (!assembler || assembler->kind == AssemblerKind::Driver) {
    llvm::consumeError(assembler.takeError());
    return;
  }
  const TargetInfo &target = **getTargetInfo(GetParam());
  Compiler compiler;
  std::set<std::string> seen;
  for (const MatmulProblem &problem : sample()) {
    llvm::Error illegal = checkProblem(problem, target);
    if (illegal) { // formats that the chip lacks
      llvm::consumeError(std::move(illegal));
      continue;
    }
    std::string config =
        llvm::cantFail(chooseConfig(problem, target, 1)).front().config.str();
    MatmulProblem anySize = problem;
    anySize.m = anySize.n = anySize.k = 0;
    if (!seen.insert(anySize.str() + config).second)
      continue;
    CompileOptions options;
    options.chip = target.chip.str();
    CompileResult compiled = llvm::cantFail(compiler.compile(problem, options));
    AssembledKernel kernel =
        llvm::cantFail(assemble(*assembler, compiled.ptx, target.chip));
    std::string what =
        problem.str() + ", " + config + " (predicted " +
        std::to_string(predictRegisters(
            problem, chooseConfig(problem, target, 1)->front().config)) +
        " registers, took " + std::to_string(kernel.usage.registers) + ")";
    EXPECT_EQ(kernel.usage.spillStoreBytes, 0) << what;
    EXPECT_EQ(kernel.usage.spillLoadBytes, 0) << what;
    for (const std::string &warning : kernel.warnings)
      ADD_FAILURE() << what << ": " << warning;
  }
  EXPECT_GT(seen.size(), 12u);
}

INSTANTIATE_TEST_SUITE_P(Chips, AssembleChoices,
                         testing::Values("sm_80", "sm_90a"));

} // namespace
