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
// bound. HUMMING_COMBINATIONS=all takes the full product instead (hours).
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/Combinations.h"
#include "Check.h"
#include "Humming/Compiler/Compiler.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cstdlib>

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

class Combinations : public testing::TestWithParam<const char *> {};

TEST_P(Combinations, EveryPairOfAttributes) {
  const TargetInfo &target = **getTargetInfo(GetParam());
  std::vector<MatmulProblem> problems = enumerateProblems(target, sizes());
  ASSERT_GT(problems.size(), 5000u);
  const char *all = std::getenv("HUMMING_COMBINATIONS");
  if (!all || llvm::StringRef(all) != "all")
    problems = coverPairs(problems);
  Compiler compiler;
  for (const MatmulProblem &problem : problems)
    execute(compiler, problem, target);
  RecordProperty("combinations", int(problems.size()));
}

// One chip of each set of instructions.
INSTANTIATE_TEST_SUITE_P(Chips, Combinations,
                         testing::Values("sm_75", "sm_80", "sm_90"));

TEST(SupportTable, IsTheOneInTheReadme) {
  auto readme = llvm::MemoryBuffer::getFile(HUMMING_SOURCE_DIR "/README.md");
  ASSERT_TRUE(bool(readme));
  EXPECT_NE((*readme)->getBuffer().find(supportTable()), llvm::StringRef::npos)
      << "put this table into README.md:\n"
      << supportTable();
}

} // namespace
