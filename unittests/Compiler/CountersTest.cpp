//===- CountersTest.cpp - What kernels do to memory, counted --------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every chip's kernels of common formats run on the emulator, which counts: the
// main loop has no bank conflicts, every word of the packed weights is read
// exactly once per block row, and weights and activations come in accesses of
// 16 bytes a lane (or by bulk copies).
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "Humming/Compiler/Compiler.h"
#include "gtest/gtest.h"

using namespace humming;

namespace {

struct Format {
  const char *activation, *weight, *scale;
  Granularity granularity;
  ZeroPointKind zeroPoint = ZeroPointKind::None;
};

struct Setting {
  const char *chip;
  Format format;
  int64_t m;
  const char *config = "";
};

std::vector<Setting> settings() {
  using G = Granularity;
  std::vector<Setting> all;
  for (const char *chip :
       {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"}) {
    bool turing = llvm::StringRef(chip) == "sm_75";
    bool fp8 = llvm::StringRef(chip) >= "sm_89";
    const char *wide = turing ? "f16" : "bf16";
    for (int64_t m : {1, 16, 64}) {
      all.push_back({chip, {wide, "u4", wide, G::group(128)}, m});
      all.push_back({chip,
                     {"f16", "u4", "f16", G::group(64), ZeroPointKind::Integer},
                     m});
    }
    for (const char *weight : {"u2", "u3", "u5", "u6", "s8", "e2m1", "e4m3"})
      all.push_back({chip, {"f16", weight, "f16", G::group(128)}, 16});
    if (fp8)
      all.push_back({chip, {"e4m3", "e4m3", "f32", G::perChannel()}, 16});
    all.push_back({chip, {"s8", "s8", "f32", G::perChannel()}, 16});
  }
  return all;
}

class Counted : public testing::TestWithParam<Setting> {};

TEST_P(Counted, NoConflictsOneReadWideLoads) {
  const Setting &s = GetParam();
  auto parse = [](llvm::StringRef name) {
    return llvm::cantFail(NumberFormat::parse(name));
  };
  MatmulProblem problem;
  problem.activation = parse(s.format.activation);
  problem.output =
      problem.activation.isBF16() ? NumberFormat::bf16() : NumberFormat::f16();
  problem.weight.weight = parse(s.format.weight);
  problem.weight.scale = parse(s.format.scale);
  problem.weight.granularity = s.format.granularity;
  problem.weight.zeroPoint = s.format.zeroPoint;
  if (problem.activation.bits < 16)
    problem.activationScale = ActivationScaleKind::Token;
  problem.m = s.m;
  problem.n = 256;
  problem.k = 1024;
  problem.deriveDivisors();

  Compiler compiler;
  CompileOptions options;
  options.chip = s.chip;
  options.config = s.config;
  llvm::Expected<CompileResult> compiled = compiler.compile(problem, options);
  ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
  KernelArtifacts kernel;
  kernel.name = compiled->launch.kernelName;
  kernel.launch = compiled->launch;
  kernel.ptx = compiled->ptx;
  std::unique_ptr<Executor> executor = createEmulatorExecutor();
  ASSERT_FALSE(bool(executor->load(kernel)));
  HostLayer layer = llvm::cantFail(makeRandomLayer(problem, 5));
  llvm::Expected<CheckReport> report =
      runAndCheck(*executor, kernel, layer, problem.m, CheckOptions());
  ASSERT_TRUE(bool(report)) << llvm::toString(report.takeError());
  EXPECT_TRUE(report->ok) << report->detail;

  std::optional<llvm::json::Object> counters = executor->counters();
  ASSERT_TRUE(counters.has_value());
  const llvm::json::Object *loop = counters->getObject("main_loop");
  const llvm::json::Object *total = counters->getObject("total");
  ASSERT_TRUE(loop && total) << "no loop with MMA instructions";
  std::string what = kernel.launch.config;
  EXPECT_EQ(loop->getInteger("bank_conflicts"), 0) << what;

  // Blocks of other tokens read the weights again.
  double rows = double((problem.m + compiled->launch.blockM - 1) /
                       compiled->launch.blockM);
  const llvm::json::Object *reads = counters->getObject("weight_reads");
  EXPECT_EQ(reads->getNumber("least"), rows) << what;
  EXPECT_EQ(reads->getNumber("most"), rows) << what;

  // Scales and zero points are small; all else is 16 bytes a lane.
  int64_t columns =
      (problem.n + compiled->launch.blockN - 1) / compiled->launch.blockN;
  int64_t expected =
      int64_t(layer.packedWeights.size()) * int64_t(rows) +
      problem.m * problem.k * problem.activation.bits / 8 * columns;
  int64_t wide = total->getObject("global_load_bytes_by_width")
                     ->getInteger("16")
                     .value_or(0) +
                 total->getInteger("bulk_bytes").value_or(0);
  EXPECT_GE(wide, expected) << what;
}

std::string str(const Setting &s) {
  return std::string(s.chip) + "_" + s.format.weight + "_x_" +
         s.format.activation +
         (s.format.zeroPoint == ZeroPointKind::None ? "" : "_zp") + "_m" +
         std::to_string(s.m);
}
void PrintTo(const Setting &s, std::ostream *os) { *os << str(s); }
INSTANTIATE_TEST_SUITE_P(Chips, Counted, testing::ValuesIn(settings()),
                         [](const testing::TestParamInfo<Setting> &info) {
                           return str(info.param);
                         });

} // namespace
