//===- HardwareTest.cpp - Replays what a Hopper GPU computed --------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/data/hardware/*.bin is written by scripts/hardware_truth (build.sh there
// says how). Inputs come from the same generator as on the GPU, so a file holds
// results only. Everything is compared bit for bit, except the approximations
// (within the bound of the ISA) and sums of inexact MMA (within mmaErrorBound).
//
//===----------------------------------------------------------------------===//

#include "HardwareSupport.h"
#include "Humming/Emulator/Arithmetic.h"
#include "Humming/Emulator/IntegerArithmetic.h"
#include "Mma.h"
#include <cmath>

using namespace humming::ptx;
using truth::Kind;

//===----------------------------------------------------------------------===//
// Scalar instructions
//===----------------------------------------------------------------------===//

namespace {
// The modifiers as the case tables write them.
struct Opt : FloatOptions {
  Opt withFtz() const {
    Opt o = *this;
    o.ftz = true;
    return o;
  }
  Opt withSat() const {
    Opt o = *this;
    o.sat = true;
    return o;
  }
  Opt withRelu() const {
    Opt o = *this;
    o.relu = true;
    return o;
  }
};
struct Mm : MinMaxOptions {
  Mm withFtz() const {
    Mm o = *this;
    o.ftz = true;
    return o;
  }
  Mm withNaN() const {
    Mm o = *this;
    o.nan = true;
    return o;
  }
  Mm withXorsign() const {
    Mm o = *this;
    o.xorsignAbs = true;
    return o;
  }
};
struct Cvt : ConvertOptions {
  Cvt withFtz() const {
    Cvt o = *this;
    o.ftz = true;
    return o;
  }
  Cvt withSat() const {
    Cvt o = *this;
    o.sat = true;
    return o;
  }
  Cvt withSatfinite() const {
    Cvt o = *this;
    o.satfinite = true;
    return o;
  }
  Cvt withRelu() const {
    Cvt o = *this;
    o.relu = true;
    return o;
  }
  Cvt withIntegral() const {
    Cvt o = *this;
    o.toIntegral = true;
    return o;
  }
};
} // namespace

[[maybe_unused]] static Opt opt(Rounding r = Rounding::RN) {
  Opt o;
  o.rounding = r;
  return o;
}
[[maybe_unused]] static Mm mm() { return {}; }
[[maybe_unused]] static Cvt cvt(Rounding r = Rounding::RN) {
  Cvt o;
  o.rounding = r;
  return o;
}

using ScalarFn = uint64_t (*)(uint64_t a, uint64_t b, uint64_t c);

static void checkScalar(const std::map<std::string, truth::Case> &cases,
                        const char *name, Kind out, Kind in, unsigned arity,
                        ScalarFn fn) {
  const truth::Case *hardware = find(cases, name);
  if (!hardware)
    return;
  uint32_t n = truth::scalarCount(in, arity, false);
  uint64_t seed = truth::nameHash(name);
  unsigned bytes = truth::kindBytes(out);
  std::vector<uint8_t> results(size_t(n) * bytes);
  auto input = [&](unsigned operand, uint32_t i) {
    return operand < arity
               ? truth::scalarInput(in, arity, seed, operand, i, false)
               : 0;
  };
  for (uint32_t i = 0; i < n; ++i) {
    uint64_t r = fn(input(0, i), input(1, i), input(2, i));
    memcpy(&results[size_t(i) * bytes], &r, bytes);
  }
  compareBits(*hardware, results.data(), n, bytes, [&](uint32_t i) {
    char text[80];
    snprintf(text, sizeof(text), "%llx %llx %llx",
             (unsigned long long)input(0, i), (unsigned long long)input(1, i),
             (unsigned long long)input(2, i));
    return std::string(text);
  });
}

static void checkApprox(const std::map<std::string, truth::Case> &cases,
                        const char *name, Kind kind, ApproxOp op,
                        FloatType type, bool ftz) {
  const truth::Case *hardware = find(cases, name);
  if (!hardware)
    return;
  uint32_t n = truth::scalarCount(kind, 1, true);
  ASSERT_TRUE(hardware->full && hardware->count == n) << name;
  ApproxBound bound = approxBound(op, type);
  unsigned mantissa = type == FloatType::F32   ? 23
                      : type == FloatType::F16 ? 10
                                               : 7;
  unsigned wrong = 0;
  for (uint32_t i = 0; i < n; ++i) {
    uint64_t a = truth::scalarInput(kind, 1, truth::nameHash(name), 0, i, true);
    uint64_t want = storedValue(*hardware, i), got = approx(op, type, a, ftz);
    double x = toDouble(type, want), y = toDouble(type, got);
    // Outside [-2 pi, 2 pi] the ISA promises nothing for sin and cos.
    if ((op == ApproxOp::Sin || op == ApproxOp::Cos) &&
        std::isfinite(toDouble(type, a)) && std::fabs(toDouble(type, a)) > 6.28)
      continue;
    bool fine;
    if (!std::isfinite(x) || !std::isfinite(y)) {
      fine = want == got;
    } else {
      // The model is within half a unit of the exact value, the hardware rounds
      // its own result: a unit on top of the bound.
      double unit = std::ldexp(std::fabs(y), -int(mantissa)) +
                    std::ldexp(1.0, type == FloatType::F16 ? -24 : -149);
      double allowed = bound.relative * std::fabs(y) + bound.absolute + unit;
      if (op == ApproxOp::Lg2 && std::fabs(y) > 1)
        allowed = bound.relative * std::fabs(y) + unit;
      fine = std::fabs(x - y) <= allowed;
    }
    if (!fine && wrong++ < 4)
      ADD_FAILURE() << name << std::hex << ": input " << a << " hardware "
                    << want << " emulator " << got;
  }
  EXPECT_EQ(wrong, 0u) << name;
}

TEST(Hardware, Arithmetic) {
  auto cases = load("arithmetic");
#define X(NAME, PTX, OUT, IN, ARITY, ...)                                      \
  checkScalar(cases, #NAME, Kind::OUT, Kind::IN, ARITY,                        \
              [](uint64_t a, uint64_t b, uint64_t c) -> uint64_t {             \
                (void)a, (void)b, (void)c;                                     \
                return __VA_ARGS__;                                            \
              });
#define Y(NAME, PTX, KIND, OP, TYPE, FTZ)                                      \
  checkApprox(cases, #NAME, Kind::KIND, ApproxOp::OP, FloatType::TYPE, FTZ);
#include "ArithmeticCases.def"
}

TEST(Hardware, Convert) {
  auto cases = load("convert");
#define X(NAME, PTX, OUT, IN, ARITY, ...)                                      \
  checkScalar(cases, #NAME, Kind::OUT, Kind::IN, ARITY,                        \
              [](uint64_t a, uint64_t b, uint64_t c) -> uint64_t {             \
                (void)a, (void)b, (void)c;                                     \
                return __VA_ARGS__;                                            \
              });
#include "ConvertCases.def"
}

//===----------------------------------------------------------------------===//
// Bit and warp instructions
//===----------------------------------------------------------------------===//

static unsigned shfl(ShflMode mode, unsigned lane, uint32_t b, uint32_t c) {
  bool valid;
  return shflSource(mode, lane, b, c, valid);
}
static bool shflValid(ShflMode mode, unsigned lane, uint32_t b, uint32_t c) {
  bool valid;
  shflSource(mode, lane, b, c, valid);
  return valid;
}
static uint32_t ballot(const uint32_t *values, uint32_t mask) {
  uint32_t r = 0;
  for (unsigned i = 0; i < 32; ++i)
    r |= (values[i] & mask >> i & 1) << i;
  return r;
}
static unsigned countLow3(const uint32_t *values, uint32_t mask) {
  unsigned n = 0;
  for (unsigned i = 0; i < 32; ++i)
    n += (mask >> i & 1) && (values[i] & 7) == 0;
  return n;
}
static uint32_t matchLow2(const uint32_t *values, uint32_t mask,
                          unsigned lane) {
  uint64_t low[32];
  for (unsigned i = 0; i < 32; ++i)
    low[i] = values[i] & 3;
  return matchAny(low, mask, lane);
}
static uint32_t matchAllAnd(const uint32_t *values, uint32_t mask, uint32_t b) {
  uint64_t low[32];
  unsigned first = unsigned(llvm::countr_zero(mask));
  for (unsigned i = 0; i < 32; ++i)
    low[i] = values[i] & b;
  return matchAny(low, mask, first) == mask ? mask : 0;
}
static uint32_t elect(uint32_t mask, unsigned lane) {
  unsigned leader = unsigned(llvm::countr_zero(mask));
  return leader << 1 | (lane == leader);
}

using WarpFn = uint32_t (*)(const uint32_t *values, unsigned lane, uint32_t b,
                            uint32_t c, uint32_t mask);

static void checkWarp(const std::map<std::string, truth::Case> &cases,
                      const char *name, WarpFn fn) {
  const truth::Case *hardware = find(cases, name);
  if (!hardware)
    return;
  std::vector<uint32_t> results(32 * truth::numWarps);
  for (uint32_t w = 0; w < truth::numWarps; ++w) {
    truth::WarpInput in = truth::warpInput(name, truth::nameHash(name), w);
    for (unsigned lane = 0; lane < 32; ++lane)
      if (in.mask >> lane & 1)
        results[32 * w + lane] = fn(in.values, lane, in.b, in.c, in.mask);
  }
  compareBits(*hardware, results.data(), uint32_t(results.size()), 4,
              [&](uint32_t i) {
                truth::WarpInput in =
                    truth::warpInput(name, truth::nameHash(name), i / 32);
                char text[80];
                snprintf(text, sizeof(text), "lane %u b %x c %x mask %x",
                         i % 32, in.b, in.c, in.mask);
                return std::string(text);
              });
}

TEST(Hardware, Integer) {
  auto cases = load("integer");
#define X(NAME, PTX, OUT, IN, ARITY, ...)                                      \
  checkScalar(cases, #NAME, Kind::OUT, Kind::IN, ARITY,                        \
              [](uint64_t a, uint64_t b, uint64_t c) -> uint64_t {             \
                (void)a, (void)b, (void)c;                                     \
                return __VA_ARGS__;                                            \
              });
#define W(NAME, PTX, ...)                                                      \
  checkWarp(cases, #NAME,                                                      \
            [](const uint32_t *values, unsigned lane, uint32_t b, uint32_t c,  \
               uint32_t mask) -> uint32_t {                                    \
              (void)values, (void)lane, (void)b, (void)c, (void)mask;          \
              return __VA_ARGS__;                                              \
            });
#include "IntegerCases.def"
}

TEST(Hardware, Matrix) {
  auto cases = load("matrix");
  for (const char *kind : {"ldmatrix", "stmatrix"})
    for (unsigned tiles : {1u, 2u, 4u})
      for (bool trans : {false, true}) {
        std::string name = std::string(kind) + "_x" + std::to_string(tiles) +
                           (trans ? "_trans" : "");
        const truth::Case *hardware = find(cases, name);
        if (!hardware)
          continue;
        std::vector<uint32_t> results(truth::matrixInstances * 128);
        for (unsigned at = 0; at < truth::matrixInstances; ++at) {
          truth::MatrixInput in =
              truth::matrixInput(truth::nameHash(name.c_str()), at);
          uint32_t *out = &results[at * 128];
          bool load = kind[0] == 'l';
          if (!load)
            memcpy(out, in.shared, sizeof(in.shared));
          for (unsigned t = 0; t < tiles; ++t) {
            uint16_t tile[64];
            if (load) {
              for (unsigned r = 0; r < 8; ++r)
                memcpy(tile + 8 * r,
                       in.shared + 4 * in.rows[ldmatrixAddressLane(t, r)], 16);
              ldmatrixDistribute(tile, trans, out + 32 * t);
            } else {
              stmatrixCollect(in.registers + 32 * t, trans, tile);
              for (unsigned r = 0; r < 8; ++r)
                memcpy(out + 4 * in.rows[ldmatrixAddressLane(t, r)],
                       tile + 8 * r, 16);
            }
          }
        }
        compareBits(*hardware, results.data(), uint32_t(results.size()), 4,
                    number);
      }
  if (const truth::Case *hardware = find(cases, "movmatrix")) {
    std::vector<uint32_t> results(truth::matrixInstances * 128);
    for (unsigned at = 0; at < truth::matrixInstances; ++at) {
      truth::MatrixInput in =
          truth::matrixInput(truth::nameHash("movmatrix"), at);
      for (unsigned t = 0; t < 4; ++t)
        movmatrix(in.registers + 32 * t, &results[at * 128 + 32 * t]);
    }
    compareBits(*hardware, results.data(), uint32_t(results.size()), 4, number);
  }
}
