//===- FieldShapesTest.cpp - Shapes and layouts that others have tripped on
//===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shape kinds of the faults that docs/Formats.md lists ("Faults that others
// have met"): tails in each direction, odd N with a bias, groups that K does
// not fill, shards that begin inside a block, strides past 2^31. Sizes are
// those of the reports modulo the tiles, so that the emulator runs them in
// seconds. Every kernel runs with buffers poisoned and guarded.
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "Humming/Compiler/Compiler.h"
#include "Humming/Emulator/Emulator.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <cmath>
#include <sys/mman.h>

using namespace humming;

namespace {

NumberFormat format(llvm::StringRef name) {
  return llvm::cantFail(NumberFormat::parse(name));
}

MatmulProblem problemOf(llvm::StringRef activation, llvm::StringRef weight,
                        llvm::StringRef scale, Granularity granularity,
                        int64_t m, int64_t n, int64_t k) {
  MatmulProblem p;
  p.activation = format(activation);
  p.weight.weight = format(weight);
  p.weight.scale = format(scale);
  p.weight.granularity = granularity;
  p.output = p.activation.isF16() ? NumberFormat::f16() : NumberFormat::bf16();
  if (p.activation.bits < 16)
    p.activationScale = ActivationScaleKind::Token;
  p.m = m;
  p.n = n;
  p.k = k;
  p.deriveDivisors();
  return p;
}

KernelArtifacts compileFor(const MatmulProblem &problem, llvm::StringRef chip) {
  Compiler compiler;
  CompileOptions options;
  options.chip = chip.str();
  CompileResult compiled = llvm::cantFail(compiler.compile(problem, options));
  KernelArtifacts kernel;
  kernel.name = compiled.launch.kernelName;
  kernel.launch = compiled.launch;
  kernel.ptx = compiled.ptx;
  return kernel;
}

/// Compiles for `problem` and checks the kernel for each number of tokens.
void expectRight(const MatmulProblem &problem, llvm::StringRef chip,
                 llvm::ArrayRef<int64_t> tokens) {
  KernelArtifacts kernel = compileFor(problem, chip);
  HostLayer layer = llvm::cantFail(makeRandomLayer(problem, 11));
  std::unique_ptr<Executor> executor = createEmulatorExecutor();
  llvm::cantFail(executor->load(kernel));
  for (int64_t m : tokens) {
    llvm::Expected<CheckReport> report =
        runAndCheck(*executor, kernel, layer, m, CheckOptions());
    if (!report)
      FAIL() << problem.str() << ": " << llvm::toString(report.takeError());
    EXPECT_TRUE(report->ok)
        << problem.str() << " on " << chip.str() << ", m = " << m << ", "
        << kernel.launch.config << ": " << report->detail;
  }
}

// HB-12: the last tile of tokens with block scales. 1088 = 8 * 128 + 64.
TEST(FieldShapes, BlockScalesAndTailsOfTokens) {
  for (const char *chip : {"sm_89", "sm_90a"})
    expectRight(problemOf("e4m3", "e4m3", "f32", Granularity::block(128, 128),
                          129, 256, 384),
                chip, {1, 64, 127, 128, 129});
}

// HB-01, HB-12: a scale for each token and group of 128 (and 32) inputs, beside
// weight groups of 32 and blocks of 128 x 128; random scales, so that a wrong
// group is far outside of the bound.
TEST(FieldShapes, ActivationScalesDifferFromGroupToGroup) {
  for (const char *chip : {"sm_89", "sm_90a"}) {
    for (int32_t group : {32, 128}) {
      MatmulProblem problem =
          problemOf("e4m3", "u4", "bf16", Granularity::group(32), 16, 128, 448);
      problem.activationGroup = group;
      expectRight(problem, chip, {1, 16, 17});
    }
    MatmulProblem problem = problemOf(
        "e4m3", "e4m3", "f32", Granularity::block(128, 128), 64, 256, 384);
    problem.activationGroup = 128;
    expectRight(problem, chip, {1, 63, 65});
  }
}

// HB-16: the stride of the scales is the group's, not 128; K is no multiple of
// the group.
TEST(FieldShapes, GroupsOfSixtyFourAndAnUnfilledLastGroup) {
  for (const char *chip : {"sm_89", "sm_90a"}) {
    expectRight(
        problemOf("e4m3", "u4", "bf16", Granularity::group(64), 16, 128, 512),
        chip, {1, 16});
    expectRight(
        problemOf("e4m3", "u4", "bf16", Granularity::group(128), 16, 128, 192),
        chip, {1, 16});
  }
}

// HB-25: rows 1856 g of a matrix whose blocks are 128 rows: shard 1 begins in
// the middle of block 14 (1856 = 14 * 128 + 64). The shards' outputs are the
// unsplit matrix' outputs, bit for bit: the order of sums is the same.
TEST(FieldShapes, ShardsThatBeginInsideABlockOfRows) {
  MatmulProblem whole = problemOf("e4m3", "e4m3", "f32",
                                  Granularity::block(128, 128), 8, 768, 256);
  QuantizedWeights all = randomWeights(whole.weight, whole.n, whole.k, 3);
  for (int64_t begin : {0, 192, 384, 576}) {
    QuantizedWeights shard =
        llvm::cantFail(sliceWeights(all, begin, begin + 192, 0, 256));
    EXPECT_EQ(shard.type.rowPhase, begin % 128);
    MatmulProblem problem = whole;
    problem.n = 192;
    problem.weight = shard.type;
    problem.deriveDivisors();
    KernelArtifacts kernel = compileFor(problem, "sm_90a");
    HostLayer layer = llvm::cantFail(packLayer(shard, problem));
    std::unique_ptr<Executor> executor = createEmulatorExecutor();
    llvm::cantFail(executor->load(kernel));
    // The reference of the check dequantises the shard by its own phase, which
    // SliceFuseTest compares with the whole.
    CheckReport report = llvm::cantFail(
        runAndCheck(*executor, kernel, layer, 8, CheckOptions()));
    EXPECT_TRUE(report.ok) << "rows from " << begin << ": " << report.detail;
  }
}

/// Every shard along K, brought into the form that kernels take, gives what its
/// own columns say; SliceFuseTest adds the shards up.
void expectShardsOfInputs(const MatmulProblem &whole, int64_t step,
                          llvm::StringRef chip, int64_t m) {
  QuantizedWeights all = randomWeights(whole.weight, whole.n, whole.k, 4);
  for (int64_t begin = 0; begin < whole.k; begin += step) {
    QuantizedWeights shard =
        llvm::cantFail(sliceWeights(all, 0, whole.n, begin, begin + step));
    QuantizedWeights aligned =
        llvm::cantFail(alignPhase(shard, 256 / whole.activation.bits));
    MatmulProblem problem = whole;
    problem.k = aligned.k;
    problem.weight = aligned.type;
    problem.deriveDivisors();
    KernelArtifacts kernel = compileFor(problem, chip);
    HostLayer layer = llvm::cantFail(packLayer(aligned, problem));
    std::unique_ptr<Executor> executor = createEmulatorExecutor();
    llvm::cantFail(executor->load(kernel));
    CheckReport report = llvm::cantFail(
        runAndCheck(*executor, kernel, layer, m, CheckOptions()));
    EXPECT_TRUE(report.ok) << chip.str() << ", columns from " << begin << ", "
                           << aligned.type.str() << ": " << report.detail;
  }
}

// HB-56: K of 7392 = 57 * 128 + 96 a rank: the shards begin 0, 96, 64 and 32
// columns into a group, as those of 224 = 128 + 96 do.
TEST(FieldShapes, ShardsThatBeginInsideAGroup) {
  MatmulProblem whole =
      problemOf("bf16", "u4", "bf16", Granularity::group(128), 4, 128, 896);
  for (const char *chip : {"sm_80", "sm_90a"})
    expectShardsOfInputs(whole, 224, chip, 4);
}

// HB-61: eight ranks of 64 columns each; ranks 2r and 2r + 1 share a block.
TEST(FieldShapes, ShardsSmallerThanABlock) {
  MatmulProblem whole = problemOf("e4m3", "e4m3", "f32",
                                  Granularity::block(128, 128), 3, 128, 512);
  for (const char *chip : {"sm_89", "sm_90a"})
    expectShardsOfInputs(whole, 64, chip, 3);
}

// HB-34: every M below 8, with guards right behind exactly M rows.
TEST(FieldShapes, FewTokens) {
  MatmulProblem problem =
      problemOf("f16", "u4", "f16", Granularity::group(128), 1, 256, 512);
  problem.weight.zeroPoint = ZeroPointKind::Integer;
  for (const char *chip : {"sm_75", "sm_80", "sm_90a"})
    expectRight(problem, chip, {1, 2, 3, 4, 5, 6, 7, 8});
}

// HB-49, HB-59: FP8 on sm_89 through m16n8k32; odd N with a bias of exactly N
// values, rows of c at any alignment. 13653 = 106 * 128 + 85, 3420 = 26 * 128
// + 92.
TEST(FieldShapes, OddFeaturesWithABias) {
  for (const char *chip : {"sm_89", "sm_90a"})
    for (int64_t n : {128 + 85, 128 + 92})
      for (auto scale :
           {ActivationScaleKind::Tensor, ActivationScaleKind::Token}) {
        MatmulProblem problem = problemOf(
            "e4m3", "e4m3", "f32", Granularity::perChannel(), 16, n, 320);
        problem.activationScale = scale;
        problem.hasBias = true;
        expectRight(problem, chip, {1, 17});
      }
  KernelArtifacts kernel = compileFor(
      problemOf("e4m3", "e4m3", "f32", Granularity::perTensor(), 64, 256, 256),
      "sm_89");
  EXPECT_NE(kernel.ptx.find("mma.sync.aligned.m16n8k32"), std::string::npos);
}

// HB-54: Turing has neither m16n8k16 nor cp.async nor bf16.
TEST(FieldShapes, TuringHasItsOwnInstructions) {
  MatmulProblem problem =
      problemOf("f16", "u4", "f16", Granularity::group(128), 16, 128, 256);
  KernelArtifacts kernel = compileFor(problem, "sm_75");
  EXPECT_NE(kernel.ptx.find("m16n8k8"), std::string::npos);
  EXPECT_EQ(kernel.ptx.find("m16n8k16"), std::string::npos);
  EXPECT_EQ(kernel.ptx.find("cp.async"), std::string::npos);
  expectRight(problem, "sm_75", {1, 16});
  Compiler compiler;
  CompileOptions options;
  options.chip = "sm_75";
  llvm::Expected<CompileResult> refused = compiler.compile(
      problemOf("bf16", "u4", "bf16", Granularity::group(128), 16, 128, 256),
      options);
  ASSERT_FALSE(bool(refused));
  std::string text = llvm::toString(refused.takeError());
  EXPECT_NE(text.find("rule P3"), std::string::npos) << text;
  EXPECT_NE(text.find("bf16"), std::string::npos) << text;
}

/// Runs a kernel on hand-made codes; activations select columns.
std::vector<double> selectColumns(const MatmulProblem &problem,
                                  const QuantizedWeights &weights,
                                  llvm::StringRef chip) {
  KernelArtifacts kernel = compileFor(problem, chip);
  HostLayer layer = llvm::cantFail(packLayer(weights, problem));
  std::unique_ptr<Executor> executor = createEmulatorExecutor();
  llvm::cantFail(executor->load(kernel));
  auto upload = [&](BufferSlot slot, llvm::ArrayRef<uint8_t> data) {
    if (data.empty())
      return;
    std::vector<uint8_t> image(data.size() + 2 * kGuardBytes, 0xff);
    std::copy(data.begin(), data.end(), image.begin() + kGuardBytes);
    llvm::cantFail(executor->upload(slot, image));
  };
  std::vector<uint32_t> x(size_t(problem.m * problem.k));
  for (int64_t m = 0; m < problem.m; ++m)
    x[size_t(m * problem.k + m)] = problem.activation.encode(1);
  upload(BufferSlot::X, codesToBytes(problem.activation, x));
  upload(BufferSlot::Weights, layer.packedWeights);
  upload(BufferSlot::Scales, layer.packedScales);
  upload(BufferSlot::ZeroPoints, layer.packedZeroPoints);
  std::vector<uint8_t> out(size_t(2 * problem.m * problem.n), 0xff);
  upload(BufferSlot::Output, out);
  upload(BufferSlot::Workspace,
         std::vector<uint8_t>(
             size_t(kernel.launch.workspaceBytes(problem.m, problem.n))));
  llvm::cantFail(executor->launch(
      LaunchSizes{int32_t(problem.m), int32_t(problem.n), int32_t(problem.k),
                  int32_t(problem.k), int32_t(problem.n)}));
  std::vector<uint8_t> image(out.size() + 2 * kGuardBytes);
  llvm::cantFail(executor->download(BufferSlot::Output, image));
  return decodeElements(problem.output, llvm::ArrayRef<uint8_t>(image)
                                            .drop_front(kGuardBytes)
                                            .drop_back(kGuardBytes));
}

// HB-85: zero points at both ends, 0 and 15, with groups of 128 and of 32.
TEST(FieldShapes, ZeroPointsAtTheEnds) {
  for (const char *chip : {"sm_75", "sm_80", "sm_90a"})
    for (int32_t group : {32, 128}) {
      MatmulProblem problem = problemOf(
          "f16", "u4", "f16", Granularity::group(group), 128, 64, 128);
      problem.weight.zeroPoint = ZeroPointKind::Integer;
      QuantizedWeights w;
      w.type = problem.weight;
      w.n = 64;
      w.k = 128;
      w.codes.resize(64 * 128);
      for (size_t i = 0; i < w.codes.size(); ++i)
        w.codes[i] = uint8_t((i * 7 + i / 128) % 16);
      size_t groups = size_t(64 * (128 / group));
      w.scales.assign(groups, NumberFormat::f16().encode(0.5));
      for (size_t i = 0; i < groups; ++i)
        w.zeroPoints.push_back(i % 3 == 0 ? 0 : i % 3 == 1 ? 15 : 7);
      std::vector<double> got = selectColumns(problem, w, chip);
      for (int m = 0; m < 128; ++m)
        for (int n = 0; n < 64; ++n) {
          int zero = int(w.zeroPoints[size_t(n * (128 / group) + m / group)]);
          ASSERT_EQ(got[size_t(m * 64 + n)],
                    (w.codes[size_t(n * 128 + m)] - zero) * 0.5)
              << chip << " g" << group << " " << m << " " << n;
        }
    }
}

/// Address space without memory behind it until it is touched.
class LazyBuffer {
public:
  explicit LazyBuffer(size_t bytes) : bytes(bytes) {
    void *at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data = at == MAP_FAILED ? nullptr : static_cast<uint8_t *>(at);
  }
  ~LazyBuffer() {
    if (data)
      ::munmap(data, bytes);
  }
  llvm::MutableArrayRef<uint8_t> array() { return {data, bytes}; }

  uint8_t *data;
  size_t bytes;
};

// HB-31: row times stride passes 2^31, in bytes (row 1) and in elements (row
// 2), for x and for c.
TEST(FieldShapes, RowsPastTwoToTheThirtyOne) {
  for (const char *chip : {"sm_80", "sm_90a"}) {
    MatmulProblem problem =
        problemOf("bf16", "u4", "bf16", Granularity::group(64), 3, 64, 64);
    KernelArtifacts kernel = compileFor(problem, chip);
    HostLayer layer = llvm::cantFail(makeRandomLayer(problem, 5));
    const int32_t stride = (1 << 30) + 64;
    LazyBuffer x(2 * (2 * size_t(stride) + 64)),
        c(2 * (2 * size_t(stride) + 64));
    ASSERT_TRUE(x.data && c.data);
    for (size_t row = 0; row < 3; ++row)
      for (size_t i = 0; i < 64; ++i) {
        uint32_t code = NumberFormat::bf16().encode(double(row + 1));
        x.data[2 * (row * size_t(stride) + i)] = uint8_t(code);
        x.data[2 * (row * size_t(stride) + i) + 1] = uint8_t(code >> 8);
      }
    Program program = llvm::cantFail(Program::parse(kernel.ptx));
    Memory memory;
    ArgumentPacker arguments;
    arguments.pointer(memory.addExternal("x", x.array()));
    arguments.pointer(memory.add("w", layer.packedWeights));
    arguments.pointer(memory.add("scales", layer.packedScales));
    arguments.pointer(0).pointer(0);
    arguments.pointer(memory.addExternal("c", c.array()));
    ASSERT_EQ(kernel.launch.workspaceBytes(3, 64), 0);
    arguments.pointer(0);
    arguments.i32(3).i32(64).i32(64).i32(stride).i32(stride);
    // What later versions add stands after these and is null here.
    for (size_t i = 12; i < LaunchDescription::argumentNames().size(); ++i)
      arguments.pointer(0);
    LaunchDescription::Grid grid = kernel.launch.grid(3, 64);
    LaunchConfig config;
    config.grid = {grid.x, grid.y, grid.z};
    config.block = {kernel.launch.blockThreads, 1, 1};
    config.dynamicSharedBytes = kernel.launch.sharedBytes;
    config.checks.races = false; // its shadow would be as large
    llvm::Expected<Report> report = program.launch(
        kernel.launch.kernelName, config, arguments.bytes(), memory);
    ASSERT_TRUE(bool(report)) << llvm::toString(report.takeError());
    std::vector<double> ones(64, 1.0);
    std::vector<double> sums =
        llvm::cantFail(referenceMatmul(ones, 1, 64, layer.weights, {})).values;
    for (size_t row = 0; row < 3; ++row)
      for (size_t n = 0; n < 64; ++n) {
        const uint8_t *at = c.data + 2 * (row * size_t(stride) + n);
        double got = NumberFormat::bf16().decode(uint32_t(at[0] | at[1] << 8));
        double want = sums[n] * double(row + 1);
        // bf16 operands and output, K = 64: one rounding of each weight and one
        // of the result, 2^-9 each, of sums of at most 64 * 8 * s.
        EXPECT_NEAR(got, want, 0.01 * (std::fabs(want) + 0.5 * (row + 1)))
            << chip << " row " << row << " feature " << n;
      }
  }
}

} // namespace
