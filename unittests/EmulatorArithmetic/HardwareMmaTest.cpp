//===- HardwareMmaTest.cpp - Replays the matrix instructions of a GPU -----===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Integer sums and small-integer float sums are compared bit for bit. Inexact
// float sums are compared with the exact value within mmaErrorBound; how many
// also equal the model's bits is recorded as a test property.
//
//===----------------------------------------------------------------------===//

#include "Fragments.h"
#include "HardwareSupport.h"
#include "Wgmma.h"
#include "llvm/Support/Error.h"

using namespace humming::ptx;

static MmaType typeOf(Element e) {
  static constexpr MmaType types[] = {
      MmaType::F16,  MmaType::BF16, MmaType::TF32, MmaType::F32, MmaType::F64,
      MmaType::E4M3, MmaType::E5M2, MmaType::S8,   MmaType::U8,  MmaType::S4,
      MmaType::U4,   MmaType::B1,   MmaType::S32};
  return types[unsigned(e)];
}

/// Whether `hardware` (a code of `type`) is right for the exact sum.
static bool withinBound(MmaType input, MmaType type, unsigned k,
                        const ExactSum &x, uint64_t hardware) {
  double got = decode(type, hardware);
  if (std::isnan(x.sum))
    return std::isnan(got);
  double largest = type == MmaType::F16 ? 65504.0 : 0x1.fffffep127;
  double bound = mmaErrorBound(input, type, k, x.sumAbs, x.maxAbs);
  if (std::isinf(x.sum))
    return got == x.sum;
  // Partial sums may overflow when the terms do.
  if (std::isinf(got) || std::isnan(got))
    return x.sumAbs + bound >= largest;
  return std::fabs(got - x.sum) <= bound || x.sumAbs >= largest;
}

namespace {
struct MmaCase {
  const char *name;
  unsigned m, n, k;
  Element a, b, acc;
  unsigned flags;
};
} // namespace

static const MmaCase mmaCases[] = {
#define M(NAME, PTX, m, n, k, A, B, ACC, nD, nA, nB, FLAGS)                    \
  {#NAME, m, n, k, Element::A, Element::B, Element::ACC, FLAGS},
#include "MmaCases.def"
};

TEST(Hardware, Mma) {
  auto cases = load("mma");
  size_t sameBits = 0, inexact = 0;
  for (const MmaCase &c : mmaCases) {
    const truth::Case *hardware = find(cases, c.name);
    if (!hardware)
      continue;
    MmaInstr i;
    i.m = c.m;
    i.n = c.n;
    i.k = c.k;
    i.a = typeOf(c.a);
    i.b = typeOf(c.b);
    i.c = i.d = typeOf(c.acc);
    i.satfinite = c.flags & 1;
    i.andPopc = c.flags & 2;
    i.aColumn = c.flags & 4;
    i.bRow = c.flags & 8;
    ASSERT_FALSE(llvm::errorToBool(verifyMma(i))) << c.name;
    uint64_t seed = truth::nameHash(c.name);
    unsigned nD = mmaRegistersD(i), wrong = 0;
    std::vector<uint32_t> all;
    for (unsigned at = 0; at < truth::mmaInstances; ++at) {
      Registers a(mmaRegistersA(i)), b(mmaRegistersB(i)), acc(nD), d(nD);
      truth::mmaOperand(c.a, 0, seed, at, mmaRegistersA(i), a.words.data());
      truth::mmaOperand(c.b, 1, seed, at, mmaRegistersB(i), b.words.data());
      truth::mmaOperand(c.acc, 2, seed, at, nD, acc.words.data());
      mmaSync(i, d.out(), a.in(), b.in(), acc.in());
      all.insert(all.end(), d.words.begin(), d.words.end());
      truth::Regime regime = truth::mmaRegime(at);
      if (isInteger(i.a) || regime == truth::SmallIntegers)
        continue;
      ASSERT_EQ(hardware->count, nD * 32 * truth::mmaInstances) << c.name;
      Registers got(nD);
      memcpy(got.words.data(), hardware->stored.data() + at * nD * 128,
             nD * 128);
      std::vector<ExactSum> sums = exactSums(i, a, b, acc);
      unsigned perD = perLane(i, i.m * 8u);
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned e = 0; e < perD; ++e) {
          uint64_t want = elementCode(got, bitWidth(i.d), lane, e);
          uint64_t mine = elementCode(d, bitWidth(i.d), lane, e);
          ++inexact;
          sameBits += want == mine;
          const ExactSum &x = sums[lane * perD + e];
          bool fine = i.a == MmaType::F64
                          ? want == mine || (std::isnan(decode(i.d, want)) &&
                                             std::isnan(decode(i.d, mine)))
                          : withinBound(i.a, i.d, i.k, x, want);
          if (!fine && wrong++ < 3)
            ADD_FAILURE() << c.name << " instance " << at << " regime "
                          << regime << " lane " << lane << " element " << e
                          << ": exact " << x.sum << " hardware " << std::hex
                          << want << " emulator " << mine;
        }
    }
    EXPECT_EQ(wrong, 0u) << c.name;
    if (isInteger(i.a)) {
      compareBits(*hardware, all.data(), uint32_t(all.size()), 4, number);
      continue;
    }
    // Small integers: every bit.
    for (unsigned at = 0; at < truth::mmaInstances; ++at)
      if (truth::mmaRegime(at) == truth::SmallIntegers)
        EXPECT_EQ(0, memcmp(&all[at * nD * 32],
                            hardware->stored.data() + at * nD * 128, nD * 128))
            << c.name << " instance " << at << ": exact sums differ";
  }
  RecordProperty("inexact_outputs", int(inexact));
  RecordProperty("equal_to_the_model", int(sameBits));
}

//===----------------------------------------------------------------------===//
// wgmma
//===----------------------------------------------------------------------===//

namespace {
struct WgmmaCase {
  const char *name;
  unsigned n, k;
  Element a, b, d;
  bool regs;
  unsigned flags;
};
enum { SS = 0, RS = 1 };
} // namespace

static const WgmmaCase wgmmaCases[] = {
#define G(NAME, PTX, TAIL, N, K, A, B, D, R, MODE, FLAGS)                      \
  {#NAME, N, K, Element::A, Element::B, Element::D, MODE == RS, FLAGS},
#include "WgmmaCases.def"
};

static WgmmaDescriptor descriptorOf(const truth::WgmmaOperand &o,
                                    uint32_t base) {
  WgmmaDescriptor d;
  d.start = base + o.start;
  d.leading = o.leading;
  d.stride = o.stride;
  d.baseOffset = uint8_t(o.baseOffset);
  d.swizzle = o.swizzle == 1   ? TensorSwizzle::None
              : o.swizzle == 2 ? TensorSwizzle::B32
              : o.swizzle == 4 ? TensorSwizzle::B64
                               : TensorSwizzle::B128;
  return d;
}

TEST(Hardware, Wgmma) {
  auto cases = load("wgmma");
  size_t sameBits = 0, inexact = 0;
  std::vector<uint8_t> shared(2 * truth::wgmmaWindow);
  for (const WgmmaCase &c : wgmmaCases) {
    const truth::Case *hardware = find(cases, c.name);
    if (!hardware)
      continue;
    WgmmaInstr i;
    i.n = c.n;
    i.k = c.k;
    i.a = typeOf(c.a);
    i.b = typeOf(c.b);
    i.d = typeOf(c.d);
    i.aInRegisters = c.regs;
    i.negateA = c.flags & truth::NegateA;
    i.negateB = c.flags & truth::NegateB;
    i.transA = c.flags & truth::TransA;
    i.transB = c.flags & truth::TransB;
    i.satfinite = c.flags & truth::Satfinite;
    ASSERT_FALSE(llvm::errorToBool(verifyWgmma(i))) << c.name;
    uint64_t seed = truth::nameHash(c.name);
    unsigned registers = wgmmaRegistersD(i), perInstance = 4 * registers * 32;
    unsigned wrong = 0;
    std::vector<uint32_t> all;
    for (unsigned at = 0; at < truth::wgmmaCount(c.flags); ++at) {
      truth::WgmmaSetup setup = truth::wgmmaSetup(seed, c.n, c.flags, at);
      i.scaleD = setup.scaleD;
      std::vector<uint32_t> window(truth::wgmmaWindow / 4);
      truth::wgmmaShared(c.a, 0, seed, c.flags, at, window.data());
      memcpy(shared.data(), window.data(), truth::wgmmaWindow);
      truth::wgmmaShared(c.b, 1, seed, c.flags, at, window.data());
      memcpy(shared.data() + truth::wgmmaWindow, window.data(),
             truth::wgmmaWindow);
      WgmmaDescriptor da = descriptorOf(setup.a, 0),
                      db = descriptorOf(setup.b, truth::wgmmaWindow);
      std::vector<uint32_t> a(4 * 4 * 32), d(perInstance);
      truth::wgmmaRegisters(c.a, 0, seed, c.flags, at, 4, a.data());
      truth::wgmmaRegisters(c.d, 2, seed, c.flags, at, registers, d.data());
      std::vector<uint32_t> before = d;
      std::vector<uint32_t *> dp;
      std::vector<const uint32_t *> ap;
      for (unsigned r = 0; r < 4 * registers; ++r)
        dp.push_back(&d[r * 32]);
      for (unsigned r = 0; r < 16; ++r)
        ap.push_back(&a[r * 32]);
      llvm::Error error =
          wgmma(i, dp, ap, da, db,
                [&](uint32_t address, uint8_t (&bytes)[16]) -> llvm::Error {
                  if (address + 16 > shared.size())
                    return llvm::createStringError("outside the window");
                  memcpy(bytes, &shared[address], 16);
                  return llvm::Error::success();
                });
      ASSERT_FALSE(llvm::errorToBool(std::move(error))) << c.name << " " << at;
      all.insert(all.end(), d.begin(), d.end());
      if (!(c.flags & truth::Inexact))
        continue;
      ASSERT_EQ(hardware->count, perInstance * truth::wgmmaCount(c.flags));
      const uint8_t *stored = hardware->stored.data() + at * perInstance * 4;
      unsigned width = bitWidth(i.a);
      auto element = [&](bool isA, unsigned row, unsigned k) {
        uint32_t v = 0;
        if (isA && i.aInRegisters) {
          unsigned per = 32 / width, lane = row % 8 * 4 + k / per % 4;
          unsigned r = row / 8 % 2 + 2 * (k / (4 * per));
          v = a[(row / 16 * 4 + r) * 32 + lane] >> (width * (k % per));
        } else {
          memcpy(
              &v,
              &shared[wgmmaElementAddress(isA ? da : db, width, false, row, k)],
              width / 8);
        }
        if (width < 32)
          v &= (1u << width) - 1;
        return decode(isA ? i.a : i.b, v);
      };
      for (unsigned thread = 0; thread < 128; ++thread)
        for (unsigned e = 0; e < c.n / 2; ++e) {
          MmaCoord p = wgmmaCoordD(thread, e);
          bool half = i.d == MmaType::F16;
          unsigned word =
              (thread / 32 * registers + (half ? e / 2 : e)) * 32 + thread % 32;
          auto code = [&](uint32_t w) {
            return half ? w >> (16 * (e % 2)) & 0xFFFF : w;
          };
          ExactSum x = {0, 0, 0};
          x.add(decode(i.d, code(before[word])));
          for (unsigned k = 0; k < i.k; ++k)
            x.add(element(true, p.row, k) * element(false, p.column, k));
          uint32_t want;
          memcpy(&want, stored + word * 4, 4);
          ++inexact;
          sameBits += code(want) == code(d[word]);
          if (!withinBound(i.a, i.d, i.k, x, code(want)) && wrong++ < 3)
            ADD_FAILURE() << c.name << " regime " << at << " row " << p.row
                          << " column " << p.column << ": exact " << x.sum
                          << " hardware " << std::hex << code(want)
                          << " emulator " << code(d[word]);
        }
    }
    EXPECT_EQ(wrong, 0u) << c.name;
    if (!(c.flags & truth::Inexact))
      compareBits(
          *hardware, all.data(), uint32_t(all.size()), 4, [&](uint32_t index) {
            return "instance " + std::to_string(index / perInstance) +
                   " register " + std::to_string(index % perInstance / 32);
          });
  }
  RecordProperty("inexact_outputs", int(inexact));
  RecordProperty("equal_to_the_model", int(sameBits));
}
