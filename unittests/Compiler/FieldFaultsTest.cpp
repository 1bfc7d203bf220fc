//===- FieldFaultsTest.cpp - Faults that others have met, by their values -===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small inputs whose exact result is known, for kinds of faults that quantized
// kernels have been reported with: scales at the ends of their format, results
// that fit although a sum on the way would not, sign conventions. Each is
// compiled and executed on the emulator.
//
//===----------------------------------------------------------------------===//

#include "Executor.h"
#include "Humming/Compiler/Compiler.h"
#include "Layer.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace humming;

namespace {

/// A small layer, all of whose parts are set by hand.
struct Case {
  MatmulProblem problem;
  QuantizedWeights weights;
  std::vector<uint32_t> x;    ///< codes [m, k]
  std::vector<float> xScales; ///< empty, [1] or [m]
  std::string chip = "sm_90";
  std::string config; ///< keys that replace those of the chooser's

  Case(llvm::StringRef activation, llvm::StringRef weight,
       llvm::StringRef scale, Granularity granularity, int64_t m, int64_t n,
       int64_t k) {
    auto parse = [](llvm::StringRef name) {
      return llvm::cantFail(NumberFormat::parse(name));
    };
    problem.activation = parse(activation);
    problem.output =
        problem.activation.isF16() ? NumberFormat::f16() : NumberFormat::bf16();
    problem.weight.weight = parse(weight);
    problem.weight.scale = parse(scale);
    problem.weight.granularity = granularity;
    problem.m = m;
    problem.n = n;
    problem.k = k;
    x.resize(size_t(m * k));
  }

  /// Sizes the arrays after the types are final; codes and scales are 0.
  void allocate() {
    weights.type = problem.weight;
    weights.n = problem.n;
    weights.k = problem.k;
    weights.codes.assign(size_t(problem.n * problem.k), 0);
    weights.scales.assign(size_t(problem.weight.scaleRows(problem.n) *
                                 problem.weight.scaleColumns(problem.k)),
                          0);
  }
  void fillX(double value) {
    std::fill(x.begin(), x.end(), problem.activation.encode(value));
  }

  /// Output [m, n].
  std::vector<double> run() {
    problem.deriveDivisors();
    Compiler compiler;
    CompileOptions options;
    options.chip = chip;
    options.config = config;
    CompileResult compiled = llvm::cantFail(compiler.compile(problem, options));
    KernelArtifacts kernel;
    kernel.launch = compiled.launch;
    kernel.ptx = compiled.ptx;
    std::unique_ptr<Executor> executor = createEmulatorExecutor();
    llvm::cantFail(executor->load(kernel));
    HostLayer layer = llvm::cantFail(packLayer(weights, problem));
    auto upload = [&](BufferSlot slot, llvm::ArrayRef<uint8_t> data) {
      if (data.empty())
        return;
      std::vector<uint8_t> image(data.size() + 2 * kGuardBytes, 0xff);
      std::copy(data.begin(), data.end(), image.begin() + kGuardBytes);
      llvm::cantFail(executor->upload(slot, image));
    };
    std::vector<uint8_t> xBytes = codesToBytes(problem.activation, x);
    if (problem.activation.bits == 4) { // two codes a byte, the first one lower
      for (size_t i = 0; i < xBytes.size() / 2; ++i)
        xBytes[i] = uint8_t(xBytes[2 * i] | xBytes[2 * i + 1] << 4);
      xBytes.resize(xBytes.size() / 2);
    }
    upload(BufferSlot::X, xBytes);
    upload(BufferSlot::Weights, layer.packedWeights);
    upload(BufferSlot::Scales, layer.packedScales);
    upload(BufferSlot::GlobalScales, layer.globalScales);
    std::vector<uint8_t> scaleBytes(4 * xScales.size());
    memcpy(scaleBytes.data(), xScales.data(), scaleBytes.size());
    upload(BufferSlot::ActivationScales, scaleBytes);
    std::vector<uint8_t> out(size_t(2 * problem.m * problem.n), 0xff);
    upload(BufferSlot::Output, out);
    int64_t workspace = compiled.launch.workspaceBytes(problem.m, problem.n);
    upload(BufferSlot::Workspace, std::vector<uint8_t>(size_t(workspace)));
    LaunchSizes sizes{int32_t(problem.m), int32_t(problem.n),
                      int32_t(problem.k), int32_t(problem.k),
                      int32_t(problem.n)};
    llvm::cantFail(executor->launch(sizes));
    std::vector<uint8_t> image(out.size() + 2 * kGuardBytes);
    llvm::cantFail(executor->download(BufferSlot::Output, image));
    return decodeElements(problem.output, llvm::ArrayRef<uint8_t>(image)
                                              .drop_front(kGuardBytes)
                                              .drop_back(kGuardBytes));
  }
};

void expectAll(const std::vector<double> &got, double value) {
  for (double v : got)
    ASSERT_EQ(v, value);
}

// HB-06: byte 0 of e8m0 is 2^-127, no zero.
TEST(FieldFaults, SmallestExponentScale) {
  Case c("bf16", "e2m1", "e8m0", Granularity::group(32), 1, 64, 32);
  c.allocate();
  std::fill(c.weights.codes.begin(), c.weights.codes.end(), 0x2); // 1.0
  c.fillX(0x1p100);
  expectAll(c.run(), 0x1p-22);
}

// HB-06: byte 255 is NaN, and only its rows are.
TEST(FieldFaults, NaNExponentScale) {
  Case c("bf16", "e2m1", "e8m0", Granularity::group(32), 1, 64, 64);
  c.allocate();
  std::fill(c.weights.codes.begin(), c.weights.codes.end(), 0x2);
  std::fill(c.weights.scales.begin(), c.weights.scales.end(), 127);
  c.weights.scales[2 * 5 + 1] = 255;
  c.fillX(1);
  std::vector<double> got = c.run();
  for (int n = 0; n < 64; ++n) {
    if (n == 5)
      EXPECT_TRUE(std::isnan(got[n]));
    else
      EXPECT_EQ(got[n], 64);
  }
}

// HB-20: e8m0 scales below f16's range, with f16 activations and output.
TEST(FieldFaults, ExponentScaleBelowHalfPrecision) {
  for (const char *chip : {"sm_75", "sm_90"})
    for (auto [byte, expected] : {std::pair(112u, 0x1p-10), {103u, 0x1p-19}}) {
      Case c("f16", "e2m1", "e8m0", Granularity::group(32), 1, 64, 32);
      c.chip = chip;
      c.allocate();
      std::fill(c.weights.codes.begin(), c.weights.codes.end(), 0x2);
      std::fill(c.weights.scales.begin(), c.weights.scales.end(), byte);
      c.fillX(1);
      expectAll(c.run(), expected);
    }
}

// HB-24: one group along K is still a group.
TEST(FieldFaults, SingleGroupAlongK) {
  Case c("bf16", "e2m1", "e4m3", Granularity::group(16), 1, 64, 16);
  c.allocate();
  std::fill(c.weights.codes.begin(), c.weights.codes.end(), 0x2);
  std::fill(c.weights.scales.begin(), c.weights.scales.end(), 0x40); // 2.0
  c.fillX(1);
  expectAll(c.run(), 32);
  Case d("bf16", "e2m1", "e8m0", Granularity::group(32), 1, 64, 32);
  d.allocate();
  std::fill(d.weights.codes.begin(), d.weights.codes.end(), 0x2);
  std::fill(d.weights.scales.begin(), d.weights.scales.end(), 128); // 2.0
  d.fillX(1);
  expectAll(d.run(), 64);
}

// HB-26: the tensor's scale is applied before the result is rounded to f16.
TEST(FieldFaults, SumPastHalfPrecisionBeforeTheGlobalScale) {
  Case c("f16", "e2m1", "e4m3", Granularity::group(16), 1, 64, 4096);
  c.problem.weight.globalScale = GlobalScaleKind::Tensor;
  c.allocate();
  std::fill(c.weights.codes.begin(), c.weights.codes.end(), 0x7);    // 6
  std::fill(c.weights.scales.begin(), c.weights.scales.end(), 0x7e); // 448
  c.weights.globalScales = {0x1p-10f};
  c.fillX(1);
  expectAll(c.run(), 10752);
}

// HB-14: s4 is two's complement in every position, to s8, f16, bf16 and e4m3.
TEST(FieldFaults, SignedNibbles) {
  for (const char *activation : {"s8", "f16", "bf16", "e4m3"}) {
    Case c(activation, "s4", "f32", Granularity::perChannel(), 64, 16, 64);
    bool scaled = c.problem.activation.bits == 8;
    if (scaled) {
      c.problem.activationScale = ActivationScaleKind::Tensor;
      c.xScales = {1};
    }
    c.allocate();
    std::fill(c.weights.scales.begin(), c.weights.scales.end(),
              NumberFormat::f32().encode(1));
    for (int n = 0; n < 16; ++n) // feature n holds nibble n + k at column k
      for (int k = 0; k < 64; ++k)
        c.weights.codes[n * 64 + k] = uint8_t((n + k) % 16);
    for (int m = 0; m < 64; ++m) // token m selects column m
      c.x[m * 64 + m] = c.problem.activation.encode(1);
    std::vector<double> got = c.run();
    for (int m = 0; m < 64; ++m)
      for (int n = 0; n < 16; ++n) {
        int nibble = (n + m) % 16;
        ASSERT_EQ(got[m * 16 + n], nibble < 8 ? nibble : nibble - 16)
            << activation << " " << m << " " << n;
      }
  }
}

// HB-22: s32 accumulation, float epilogue, a scale of its own for every token.
TEST(FieldFaults, IntegerSumsAreWide) {
  for (const char *chip : {"sm_75", "sm_80"}) {
    for (int value : {1, -128}) {
      Case c("s8", "s8", "f32", Granularity::perChannel(), 128, 128, 128);
      c.chip = chip;
      if (llvm::StringRef(chip) == "sm_75")
        c.problem.output = NumberFormat::bf16();
      c.problem.activationScale = ActivationScaleKind::Token;
      c.allocate();
      std::fill(c.weights.codes.begin(), c.weights.codes.end(), uint8_t(value));
      std::fill(c.weights.scales.begin(), c.weights.scales.end(),
                NumberFormat::f32().encode(1));
      std::fill(c.x.begin(), c.x.end(), uint32_t(uint8_t(value)));
      c.xScales.assign(128, 1);
      expectAll(c.run(), value == 1 ? 128 : 2097152);
      c.xScales.resize(37);
      c.problem.m = 37; // no multiple of a tile
      c.x.resize(37 * 128);
      for (int i = 0; i < 37; ++i)
        c.xScales[i] = float(i + 1);
      std::vector<double> got = c.run();
      for (int i = 0; i < 37; ++i)
        for (int n = 0; n < 128; ++n)
          ASSERT_EQ(got[i * 128 + n],
                    (value == 1 ? 128.0 : 2097152.0) * (i + 1));
    }
  }
}

// Subnormal e4m3 scales and a scale of zero mean what they say.
TEST(FieldFaults, SubnormalAndZeroScales) {
  for (const char *activation : {"f16", "bf16"}) {
    Case c(activation, "u4", "e4m3", Granularity::group(64), 1, 64, 64);
    c.allocate();
    std::fill(c.weights.codes.begin(), c.weights.codes.end(), 9); // 1
    for (int n = 0; n < 64; ++n)
      c.weights.scales[n] = n % 8; // 0, 2^-9 ... 7 * 2^-9
    c.fillX(1);
    std::vector<double> got = c.run();
    for (int n = 0; n < 64; ++n)
      EXPECT_EQ(got[n], 64 * (n % 8) * 0x1p-9);
  }
}

// The ends of e8m0, and subnormals and zero of e4m3, with every activation.
TEST(FieldFaults, EndsOfNarrowScales) {
  for (const char *activation : {"f16", "bf16", "e4m3", "e5m2", "s8", "s4"})
    for (const char *scale : {"e8m0", "e4m3"}) {
      Case c(activation, "u4", scale, Granularity::group(64), 1, 64, 64);
      c.chip = activation[0] == 'e' ? "sm_89" : "sm_80";
      if (c.problem.activation.bits < 16) {
        c.problem.activationScale = ActivationScaleKind::Tensor;
        c.xScales = {1};
      }
      c.problem.output = NumberFormat::bf16();
      c.allocate();
      std::fill(c.weights.codes.begin(), c.weights.codes.end(), 9); // 1
      bool isE8M0 = c.problem.weight.scale.isE8M0();
      for (int n = 0; n < 64; ++n)
        c.weights.scales[n] = isE8M0 ? (n % 3 == 0   ? 0
                                        : n % 3 == 1 ? 255
                                                     : 127)
                                     : n % 8;
      c.fillX(1);
      std::vector<double> got = c.run();
      for (int n = 0; n < 64; ++n) {
        double expected =
            isE8M0 ? (n % 3 == 0 ? 64 * 0x1p-127 : 64) : 64 * (n % 8) * 0x1p-9;
        if (isE8M0 && n % 3 == 1)
          EXPECT_TRUE(std::isnan(got[n])) << activation << " " << n;
        else
          EXPECT_EQ(got[n], expected) << activation << " " << scale << " " << n;
      }
    }
}

// The same where the scales are multiplied into the weights (sm_90a): the
// smallest are subnormal operands of the MMA.
TEST(FieldFaults, EndsOfNarrowScalesOnTheOperand) {
  for (const char *scale : {"e8m0", "e4m3"}) {
    Case c("bf16", "e2m1", scale, Granularity::group(32), 64, 64, 128);
    c.chip = "sm_90a";
    c.config =
        "mma=wgmma,block=64x64x64,warp=16x64,warps_k=1,stages=3,copy=tensor,"
        "scale=operand,split_k=1,cluster=0";
    c.allocate();
    std::fill(c.weights.codes.begin(), c.weights.codes.end(), 2); // 1
    bool isE8M0 = c.problem.weight.scale.isE8M0();
    const uint8_t bytes[] = {0, 127, 255, 1};
    for (int n = 0; n < 64; ++n)
      for (int group = 0; group < 4; ++group)
        c.weights.scales[n * 4 + group] = isE8M0 ? bytes[n % 4] : n % 8;
    c.fillX(1);
    std::vector<double> got = c.run();
    for (int m = 0; m < 64; ++m)
      for (int n = 0; n < 64; ++n) {
        const double powers[] = {0x1p-127, 1, NAN, 0x1p-126};
        double expected = 128 * (isE8M0 ? powers[n % 4] : n % 8 * 0x1p-9);
        if (std::isnan(expected))
          EXPECT_TRUE(std::isnan(got[m * 64 + n])) << n;
        else
          EXPECT_EQ(got[m * 64 + n], expected) << scale << " " << n;
      }
  }
}

// NaN and infinity codes come out as such, in their feature alone.
TEST(FieldFaults, SpecialCodes) {
  struct {
    const char *weight, *activation, *chip;
    uint8_t code;
    double value;
  } const cases[] = {{"e4m3", "f16", "sm_80", 0x7f, NAN},
                     {"e4m3", "bf16", "sm_80", 0xff, NAN},
                     {"e4m3", "f16", "sm_90", 0x7f, NAN},
                     {"e4m3", "bf16", "sm_90", 0x7f, NAN},
                     {"e4m3", "e4m3", "sm_89", 0x7f, NAN},
                     {"e5m2", "f16", "sm_75", 0x7c, INFINITY},
                     {"e5m2", "bf16", "sm_80", 0xfc, -INFINITY},
                     {"e5m2", "bf16", "sm_80", 0x7e, NAN},
                     {"e5m2", "e5m2", "sm_90", 0x7c, INFINITY}};
  for (const auto &s : cases) {
    Case c(s.activation, s.weight, "f32", Granularity::perChannel(), 1, 64, 64);
    c.chip = s.chip;
    if (c.problem.activation.bits == 8) {
      c.problem.activationScale = ActivationScaleKind::Tensor;
      c.xScales = {1};
    }
    c.allocate();
    std::fill(c.weights.scales.begin(), c.weights.scales.end(),
              NumberFormat::f32().encode(1));
    c.weights.codes[9 * 64 + 33] = s.code;
    c.fillX(1);
    std::vector<double> got = c.run();
    for (int n = 0; n < 64; ++n) {
      if (n != 9)
        EXPECT_EQ(got[n], 0);
      else if (std::isnan(s.value))
        EXPECT_TRUE(std::isnan(got[n])) << s.weight << " " << s.activation;
      else
        EXPECT_EQ(got[n], s.value) << s.weight << " " << s.activation;
    }
  }
}

} // namespace
