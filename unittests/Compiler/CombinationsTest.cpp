//===- CombinationsTest.cpp - Compile and execute a covering set ----------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every pair of values of two attributes (activation and scale format, weight
// and granularity, ...) is compiled and executed on the emulator at least once,
// with buffers poisoned and guarded, and compared with the reference within its
// bound. HUMMING_COMBINATIONS=all takes the full product instead (eight hours
// of one core), HUMMING_COMBINATIONS=I/N the I-th of N parts of it: every N-th
// combination, so that each part has some of everything.
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/Combinations.h"
#include "Check.h"
#include "Humming/Compiler/Compiler.h"
#include "Humming/Target/Quantize.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <iostream>

using namespace humming;

namespace {

MatmulProblem sizes() {
  MatmulProblem p;
  p.m = 5;
  p.n = 72;  // a tail of the second strip
  p.k = 192; // odd slabs, a tail of a 128-wide group
  return p;
}

void execute(Compiler &compiler, const MatmulProblem &problem,
             const TargetInfo &target) {
  CompileOptions options;
  options.chip = target.chip.str();
  llvm::Expected<CompileResult> compiled = compiler.compile(problem, options);
  if (!compiled) {
    ADD_FAILURE() << problem.str() << " on " << options.chip << ": "
                  << llvm::toString(compiled.takeError());
    return;
  }
  KernelArtifacts kernel;
  kernel.name = compiled->launch.kernelName;
  kernel.launch = compiled->launch;
  kernel.ptx = compiled->ptx;
  std::unique_ptr<Executor> executor = createEmulatorExecutor();
  HostLayer layer = llvm::cantFail(makeRandomLayer(problem, 7));
  llvm::Error loadError = executor->load(kernel);
  if (loadError) {
    ADD_FAILURE() << problem.str() << ": "
                  << llvm::toString(std::move(loadError));
    return;
  }
  CheckOptions checks;
  checks.seed = 7;
  llvm::Expected<CheckReport> report =
      runAndCheck(*executor, kernel, layer, problem.m, checks);
  if (!report) {
    ADD_FAILURE() << problem.str() << " on " << options.chip << ": "
                  << llvm::toString(report.takeError());
    return;
  }
  EXPECT_TRUE(report->ok) << problem.str() << " on " << options.chip << ", "
                          << compiled->launch.config << ": " << report->detail;
}

/// The problems that the environment asks for: the covering set, or a part of
/// all, or all.
std::vector<MatmulProblem> wanted(std::vector<MatmulProblem> all) {
  const char *text = std::getenv("HUMMING_COMBINATIONS");
  if (!text)
    return coverPairs(all);
  if (llvm::StringRef(text) == "all")
    return all;
  auto [index, parts] = llvm::StringRef(text).split('/');
  size_t i, n;
  if (index.getAsInteger(10, i) || parts.getAsInteger(10, n) || i >= n) {
    ADD_FAILURE() << "HUMMING_COMBINATIONS: expected all or I/N with I from 0 "
                     "to N - 1, got '"
                  << text << "'";
    return {};
  }
  std::vector<MatmulProblem> part;
  for (; i < all.size(); i += n)
    part.push_back(all[i]);
  return part;
}

class Combinations : public testing::TestWithParam<const char *> {};

TEST_P(Combinations, EveryPairOfAttributes) {
  const TargetInfo &target = **getTargetInfo(GetParam());
  std::vector<MatmulProblem> problems = enumerateProblems(target, sizes());
  ASSERT_GT(problems.size(), 5000u);
  size_t count = problems.size();
  problems = wanted(std::move(problems));
  Compiler compiler;
  for (const MatmulProblem &problem : problems)
    execute(compiler, problem, target);
  RecordProperty("combinations", int(problems.size()));
  if (std::getenv("HUMMING_COMBINATIONS"))
    std::cout << problems.size() << " of " << count << " combinations\n";
}

// One chip of each set of instructions.
INSTANTIATE_TEST_SUITE_P(Chips, Combinations,
                         testing::Values("sm_75", "sm_80", "sm_90"));

// With 65 tokens the choice on sm_90a is wgmma for most formats; every fifth of
// the covering set (all of it where the environment asks for more).
TEST(WarpgroupCombinations, ASampleOfEveryPair) {
  const TargetInfo &target = **getTargetInfo("sm_90a");
  MatmulProblem p = sizes();
  p.m = 65;
  std::vector<MatmulProblem> problems = wanted(enumerateProblems(target, p));
  size_t step = std::getenv("HUMMING_COMBINATIONS") ? 1 : 5;
  Compiler compiler;
  for (size_t i = 0; i < problems.size(); i += step)
    execute(compiler, problems[i], target);
}

/// Every pair of two attributes of quantize problems would take most of them:
/// one in seven (all where the environment asks for more), another one for each
/// chip, each with several rows.
TEST(QuantizeCombinations, EveryKindOfKernel) {
  Compiler compiler;
  size_t step = std::getenv("HUMMING_COMBINATIONS") ? 1 : 7;
  size_t offset = 0, executed = 0;
  for (const char *chip : {"sm_75", "sm_80", "sm_90"}) {
    QuantizeProblem sizes;
    sizes.m = 10;
    sizes.k = 300; // a tail of 4 of a chunk, and of every group
    std::vector<QuantizeProblem> problems =
        enumerateQuantizeProblems(**getTargetInfo(chip), sizes);
    for (size_t i = offset++ % step; i < problems.size();
         i += step, ++executed) {
      CompileOptions options;
      options.chip = chip;
      llvm::Expected<CompileResult> compiled =
          compiler.compile(problems[i], options);
      if (!compiled) {
        ADD_FAILURE() << problems[i].str() << ": "
                      << llvm::toString(compiled.takeError());
        continue;
      }
      KernelArtifacts kernel;
      kernel.launch = compiled->launch;
      kernel.ptx = compiled->ptx;
      std::unique_ptr<Executor> executor = createEmulatorExecutor();
      llvm::cantFail(executor->load(kernel));
      CheckOptions checks;
      checks.seed = i;
      llvm::Expected<CheckReport> report = runAndCheckQuantize(
          *executor, kernel, problems[i].m, problems[i].k, checks);
      if (!report) {
        ADD_FAILURE() << problems[i].str() << ": "
                      << llvm::toString(report.takeError());
        continue;
      }
      EXPECT_TRUE(report->ok) << problems[i].str() << " on " << chip << ", "
                              << kernel.launch.config << ": " << report->detail;
    }
  }
  EXPECT_GT(executed, 60u);
}

TEST(SupportTable, IsTheOneInTheReadme) {
  auto readme = llvm::MemoryBuffer::getFile(HUMMING_SOURCE_DIR "/README.md");
  ASSERT_TRUE(bool(readme));
  EXPECT_NE((*readme)->getBuffer().find(supportTable()), llvm::StringRef::npos)
      << "put this table into README.md:\n"
      << supportTable();
}

} // namespace
