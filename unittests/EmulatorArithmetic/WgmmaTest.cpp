//===- WgmmaTest.cpp - Matrix descriptors and wgmma -----------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Wgmma.h"
#include "Humming/Emulator/Arithmetic.h"
#include "Truth.h"
#include "llvm/Support/Error.h"
#include "gtest/gtest.h"
#include <set>

using namespace humming::ptx;
using truth::Element;

TEST(WgmmaDescriptor, RoundTripsAndRejectsReservedBits) {
  WgmmaDescriptor d;
  d.start = 0x12340;
  d.leading = 0x80;
  d.stride = 0x400;
  d.baseOffset = 3;
  d.swizzle = TensorSwizzle::B128;
  uint64_t bits = d.encode();
  EXPECT_EQ(bits, 0x4006004000081234ull);
  auto back = WgmmaDescriptor::decode(bits);
  ASSERT_TRUE(bool(back));
  EXPECT_EQ(back->start, d.start);
  EXPECT_EQ(back->leading, d.leading);
  EXPECT_EQ(back->stride, d.stride);
  EXPECT_EQ(back->baseOffset, 3);
  EXPECT_EQ(back->swizzle, TensorSwizzle::B128);
  auto bad = WgmmaDescriptor::decode(bits | uint64_t(1) << 52);
  ASSERT_FALSE(bool(bad));
  EXPECT_EQ(
      llvm::toString(bad.takeError()),
      "matrix descriptor 0x4016004000081234: expected zero in the reserved "
      "bits, got 0x10000000000000");
}

TEST(WgmmaDescriptor, WorkedExamples) {
  WgmmaDescriptor d;
  d.start = 0x400;
  d.stride = 1024;
  d.swizzle = TensorSwizzle::B128;
  EXPECT_EQ(wgmmaElementAddress(d, 16, false, 3, 8), 0x5A0u);
  EXPECT_EQ(wgmmaElementAddress(d, 16, false, 3, 9), 0x5A2u);
  EXPECT_EQ(wgmmaElementAddress(d, 16, false, 11, 0), 0x400u + 1024 + 384 + 48);
  // No swizzle, K-major: 8 rows of 16 bytes, then LBO along K, SBO along M.
  d = {};
  d.leading = 128;
  d.stride = 256;
  EXPECT_EQ(wgmmaElementAddress(d, 16, false, 9, 9), 256u + 16 + 128 + 2);
  // No swizzle, MN-major: SBO between groups of 8 rows, LBO between 8 k.
  EXPECT_EQ(wgmmaElementAddress(d, 16, true, 9, 9), 256u + 16 + 128 + 2);
  // 64-byte swizzle, MN-major: 32 elements of M in a row of 64 bytes.
  d.leading = 2048;
  d.stride = 512;
  d.swizzle = TensorSwizzle::B64;
  EXPECT_EQ(wgmmaElementAddress(d, 16, true, 40, 2),
            (2048u + 16 + 128) ^ (((2048u + 16 + 128) >> 3) & 0x30));
}

// A tensor copy with a swizzle and a descriptor with the same one agree: the
// element that the copy puts somewhere is the one that wgmma reads there.
TEST(WgmmaDescriptor, AgreesWithTensorCopies) {
  for (unsigned mode = 1; mode <= 3; ++mode) {
    TensorMap map;
    map.rank = 2;
    map.element = TensorElement::F16;
    map.swizzle = TensorSwizzle(mode);
    unsigned inner = 8u << mode; // elements of one swizzled row
    map.dims = {inner, 64};
    map.strides = {2, inner * 2};
    map.box = {inner, 64};
    map.elementStrides = {1, 1};
    ASSERT_FALSE(llvm::errorToBool(map.verify()));
    std::vector<uint8_t> shared(64 * inner * 2);
    int32_t coords[2] = {0, 0};
    forEachTensorChunk(map, coords, 0, [&](const TensorChunk &c) {
      for (unsigned i = 0; i < c.bytes; i += 2) {
        uint16_t number = uint16_t((c.globalAddress + i) / 2);
        memcpy(&shared[c.sharedOffset + i], &number, 2);
      }
    });
    WgmmaDescriptor d;
    d.swizzle = map.swizzle;
    d.stride = 8 * inner * 2;
    for (unsigned k0 = 0; k0 < inner; k0 += 16) {
      d.start = k0 * 2; // a step along K inside the pattern
      for (unsigned row = 0; row < 64; ++row)
        for (unsigned k = 0; k < 16; ++k) {
          uint16_t number;
          memcpy(&number, &shared[wgmmaElementAddress(d, 16, false, row, k)],
                 2);
          ASSERT_EQ(number, row * inner + k0 + k);
        }
    }
  }
}

namespace {
struct Case {
  unsigned n;
  MmaType a, b, d;
  bool regs, transA, transB;
};
} // namespace

static Element elementOf(MmaType t) {
  switch (t) {
  case MmaType::F16:
    return Element::F16;
  case MmaType::BF16:
    return Element::BF16;
  case MmaType::TF32:
    return Element::TF32;
  case MmaType::E4M3:
    return Element::E4M3;
  case MmaType::E5M2:
    return Element::E5M2;
  case MmaType::S8:
    return Element::S8;
  case MmaType::U8:
    return Element::U8;
  case MmaType::S32:
    return Element::S32;
  case MmaType::B1:
    return Element::B1;
  default:
    return Element::F32;
  }
}

static double decode(MmaType t, uint32_t code) {
  switch (t) {
  case MmaType::F16:
    return toDouble(FloatType::F16, code);
  case MmaType::BF16:
    return toDouble(FloatType::BF16, code);
  case MmaType::E4M3:
    return toDouble(FloatType::E4M3, code);
  case MmaType::E5M2:
    return toDouble(FloatType::E5M2, code);
  case MmaType::S8:
    return int8_t(code);
  case MmaType::U8:
    return code;
  case MmaType::S32:
    return int32_t(code);
  default:
    return toDouble(FloatType::F32, code);
  }
}

// Small integers (exact sums) with random layouts against element addresses.
TEST(Wgmma, MatchesElementwiseProduct) {
  const Case cases[] = {
      {8, MmaType::F16, MmaType::F16, MmaType::F32, false, false, false},
      {24, MmaType::F16, MmaType::F16, MmaType::F16, false, true, true},
      {64, MmaType::BF16, MmaType::BF16, MmaType::F32, false, false, true},
      {256, MmaType::F16, MmaType::F16, MmaType::F32, true, false, true},
      {128, MmaType::F16, MmaType::F16, MmaType::F32, true, false, false},
      {16, MmaType::TF32, MmaType::TF32, MmaType::F32, false, false, false},
      {16, MmaType::TF32, MmaType::TF32, MmaType::F32, true, false, false},
      {40, MmaType::E4M3, MmaType::E5M2, MmaType::F32, false, false, false},
      {8, MmaType::E5M2, MmaType::E4M3, MmaType::F16, true, false, false},
      {32, MmaType::S8, MmaType::U8, MmaType::S32, false, false, false},
      {48, MmaType::U8, MmaType::S8, MmaType::S32, true, false, false},
  };
  std::vector<uint32_t> windowA(truth::wgmmaWindow / 4),
      windowB(truth::wgmmaWindow / 4);
  for (const Case &c : cases)
    for (unsigned instance = 0; instance < 12; ++instance) {
      WgmmaInstr i;
      i.n = c.n;
      i.a = c.a;
      i.b = c.b;
      i.d = c.d;
      i.k = 256 / bitWidth(c.a);
      i.aInRegisters = c.regs;
      i.transA = c.transA;
      i.transB = c.transB;
      i.negateA = !isInteger(c.a) && instance % 3 == 1;
      i.negateB = !isInteger(c.a) && instance % 4 == 1;
      ASSERT_FALSE(llvm::errorToBool(verifyWgmma(i)));
      unsigned flags =
          (c.transA ? truth::TransA : 0) | (c.transB ? truth::TransB : 0);
      truth::WgmmaSetup setup = truth::wgmmaSetup(5, c.n, flags, instance);
      i.scaleD = setup.scaleD;
      truth::wgmmaShared(elementOf(c.a), 0, 5, flags, instance, windowA.data());
      truth::wgmmaShared(elementOf(c.b), 1, 5, flags, instance, windowB.data());
      std::vector<uint8_t> shared(2 * truth::wgmmaWindow);
      memcpy(shared.data(), windowA.data(), truth::wgmmaWindow);
      memcpy(shared.data() + truth::wgmmaWindow, windowB.data(),
             truth::wgmmaWindow);
      auto descriptor = [](const truth::WgmmaOperand &o, uint32_t base) {
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
      };
      WgmmaDescriptor da = descriptor(setup.a, 0),
                      db = descriptor(setup.b, truth::wgmmaWindow);
      unsigned registers = wgmmaRegistersD(i);
      std::vector<uint32_t> a(4 * 4 * 32), d(4 * registers * 32);
      truth::wgmmaRegisters(elementOf(c.a), 0, 5, flags, instance, 4, a.data());
      truth::wgmmaRegisters(elementOf(c.d), 2, 5, flags, instance, registers,
                            d.data());
      std::vector<uint32_t> before = d;
      std::vector<uint32_t *> dp;
      std::vector<const uint32_t *> ap;
      for (unsigned r = 0; r < 4 * registers; ++r)
        dp.push_back(&d[r * 32]);
      for (unsigned r = 0; r < 16; ++r)
        ap.push_back(&a[r * 32]);
      std::set<uint32_t> read;
      auto reader = [&](uint32_t address, uint8_t (&bytes)[16]) {
        EXPECT_EQ(address % 16, 0u);
        read.insert(address);
        memcpy(bytes, &shared[address], 16);
        return llvm::Error::success();
      };
      ASSERT_FALSE(llvm::errorToBool(wgmma(i, dp, ap, da, db, reader)));
      llvm::SmallVector<uint32_t> chunks;
      if (!i.aInRegisters)
        wgmmaOperandChunks(i, true, da, chunks);
      wgmmaOperandChunks(i, false, db, chunks);
      EXPECT_EQ(read, std::set<uint32_t>(chunks.begin(), chunks.end()));

      unsigned width = bitWidth(c.a);
      auto element = [&](bool isA, unsigned row, unsigned k) {
        uint32_t v = 0;
        if (isA && i.aInRegisters) {
          // The fragment of mma.sync, a warp for each 16 rows.
          unsigned per = 32 / width, lane = row % 8 * 4 + k / per % 4;
          unsigned r = row / 8 % 2 + 2 * (k / (4 * per));
          v = a[(row / 16 * 4 + r) * 32 + lane] >> (width * (k % per));
        } else {
          uint32_t at = wgmmaElementAddress(isA ? da : db, width,
                                            isA ? i.transA : i.transB, row, k);
          memcpy(&v, &shared[at], width / 8);
        }
        if (width < 32)
          v &= (1u << width) - 1;
        double x = decode(isA ? c.a : c.b, v);
        return (isA ? i.negateA : i.negateB) ? -x : x;
      };
      for (unsigned thread = 0; thread < 128; ++thread)
        for (unsigned e = 0; e < c.n / 2; ++e) {
          MmaCoord p = wgmmaCoordD(thread, e);
          bool half = c.d == MmaType::F16;
          auto get = [&](const std::vector<uint32_t> &v) {
            uint32_t w = v[(thread / 32 * registers + (half ? e / 2 : e)) * 32 +
                           thread % 32];
            return decode(c.d, half ? w >> (16 * (e % 2)) & 0xFFFF : w);
          };
          double sum = i.scaleD ? get(before) : 0;
          for (unsigned k = 0; k < i.k; ++k)
            sum += element(true, p.row, k) * element(false, p.column, k);
          // s32 accumulators start near the limits and wrap.
          if (isInteger(c.a))
            sum = int32_t(uint32_t(int64_t(sum)));
          ASSERT_EQ(sum, get(d)) << "n " << c.n << " " << name(c.a).str()
                                 << " instance " << instance;
        }
    }
}

TEST(Wgmma, ReadErrorsAreReturned) {
  WgmmaInstr i;
  std::vector<uint32_t> d(4 * 4 * 32);
  std::vector<uint32_t *> dp;
  for (unsigned r = 0; r < 16; ++r)
    dp.push_back(&d[r * 32]);
  llvm::Error error = wgmma(i, dp, {}, {}, {}, [](uint32_t, uint8_t (&)[16]) {
    return llvm::createStringError("out of bounds");
  });
  EXPECT_EQ(llvm::toString(std::move(error)), "out of bounds");
}

TEST(Wgmma, VerifyNamesWhatIsWrong) {
  auto text = [](WgmmaInstr i) { return llvm::toString(verifyWgmma(i)); };
  WgmmaInstr i;
  EXPECT_EQ(text(i), "");
  i.n = 12;
  EXPECT_EQ(text(i),
            "wgmma m64n12k16 f16 x f16: expected n = 8 to 256 in steps of 8");
  i.n = 40;
  i.a = i.b = MmaType::S8;
  i.d = MmaType::S32;
  i.k = 32;
  EXPECT_EQ(text(i), "wgmma m64n40k32 s8 x s8: expected n in steps of 16 above "
                     "32 for integers");
  i.n = 32;
  i.transB = true;
  EXPECT_EQ(text(i), "wgmma m64n32k32 s8 x s8: transposed operands are for "
                     "16-bit types");
}
