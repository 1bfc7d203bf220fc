//===- PackingTest.cpp
//------------------------------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/Packing.h"
#include "Humming/Quant/Parallel.h"
#include "Humming/Quant/QuantizedWeights.h"
#include "llvm/Support/Endian.h"
#include "gtest/gtest.h"
#include <atomic>

using namespace humming;
using namespace llvm;

namespace {

std::vector<uint8_t> randomCodes(int64_t count, unsigned bits, uint64_t seed) {
  Random random(seed);
  std::vector<uint8_t> codes(count);
  for (uint8_t &code : codes)
    code = uint8_t(random.below(1u << bits));
  return codes;
}

uint32_t wordAt(ArrayRef<uint8_t> packed, int64_t word) {
  return support::endian::read32le(packed.data() + 4 * word);
}

/// Packs one matrix of zeros with a single code set.
std::vector<uint8_t> packOne(int64_t row, int64_t column, uint8_t code,
                             unsigned A, unsigned b) {
  std::vector<uint8_t> codes(64 * 64);
  codes[row * 64 + column] = code;
  std::vector<uint8_t> packed(packedWeightBytes(64, 64, A, b));
  cantFail(packWeights(codes, 64, 64, 64, A, b, packed));
  return packed;
}

/// The only nonzero word of a packed matrix.
struct Single {
  int64_t index = -1;
  uint32_t value = 0;
  int count = 0;
};
Single onlyWord(ArrayRef<uint8_t> packed) {
  Single single;
  for (int64_t i = 0; i < int64_t(packed.size() / 4); ++i)
    if (uint32_t word = wordAt(packed, i)) {
      single.index = i;
      single.value = word;
      ++single.count;
    }
  return single;
}

TEST(Packing, Planes) {
  auto widths = [](unsigned bits) {
    std::vector<unsigned> result;
    for (const PackedPlane &plane : packedPlanes(bits))
      result.push_back(plane.width);
    return result;
  };
  EXPECT_EQ(widths(1), (std::vector<unsigned>{1}));
  EXPECT_EQ(widths(3), (std::vector<unsigned>{2, 1}));
  EXPECT_EQ(widths(5), (std::vector<unsigned>{4, 1}));
  EXPECT_EQ(widths(6), (std::vector<unsigned>{4, 2}));
  EXPECT_EQ(widths(7), (std::vector<unsigned>{4, 2, 1}));
  EXPECT_EQ(widths(8), (std::vector<unsigned>{8}));
  // The widest plane holds the lowest bits.
  EXPECT_EQ(packedPlanes(7)[1].lowBit, 4u);
  EXPECT_EQ(packedPlanes(7)[2].lowBit, 6u);
  EXPECT_EQ(packedPlanes(7)[2].wordOffset, 32u * 6);
}

// Positions worked out by hand from the layout's formula.
TEST(Packing, HandComputedPositions) {
  // A = 16, b = 4. Row 9 = unit 0, g 1, half 1; k 21 = step 1, 5 in the step:
  // half 0, t 2, i 1. Lane 6, r = 1, R = 5: word 5/4 = 1, column 1. Word
  // 6*4 + 1 = 25, bit 16 + 4 = 20.
  Single single = onlyWord(packOne(9, 21, 0xB, 16, 4));
  EXPECT_EQ(single.index, 25);
  EXPECT_EQ(single.value, 0xBu << 20);
  // A = 16, b = 4, row 50 = unit 3 (row 2): 3*128 words in. k 63 = step 3, 15:
  // half 1, t 3, i 1. Lane 2*4 + 3 = 11, r = 2, R = 14: word 3, column 2.
  // Word 384 + 44 + 3, bit 16 + 8.
  single = onlyWord(packOne(50, 63, 0x6, 16, 4));
  EXPECT_EQ(single.index, 431);
  EXPECT_EQ(single.value, 0x6u << 24);
  // A = 16, b = 8: 2 registers a word. Row 9, k 21: R = 5: word 2, column 1,
  // chunk 0: 6*4 + 2 = 26, bit 16 + 8.
  single = onlyWord(packOne(9, 21, 0xA5, 16, 8));
  EXPECT_EQ(single.index, 26);
  EXPECT_EQ(single.value, 0xA5u << 24);
  // Row 0, k 63 = lane 3, R = 14: word 7 = chunk 1: 128 + 12 + 3, column 0.
  single = onlyWord(packOne(0, 63, 0x81, 16, 8));
  EXPECT_EQ(single.index, 143);
  EXPECT_EQ(single.value, 0x81u << 16);
  // A = 8, b = 4: 2 registers a word, steps of 32. Row 9, k 21: step 0, half 1
  // (16..31), 5 in it: t 1, i 1. Lane 5, r = 3, R = 3: word 1, column 1. Word
  // 5*4 + 1, bit 8 + 4.
  single = onlyWord(packOne(9, 21, 0xC, 8, 4));
  EXPECT_EQ(single.index, 21);
  EXPECT_EQ(single.value, 0xCu << 12);
  // A = 4, b = 4: one register a word, one step of 64. Row 9, k 53: half 1,
  // 21 in it: t 2, i 5. Lane 6, r = 3: word 6*4 + 3, bit 20.
  single = onlyWord(packOne(9, 53, 0x9, 4, 4));
  EXPECT_EQ(single.index, 27);
  EXPECT_EQ(single.value, 0x9u << 20);
  // A = 16, b = 3: code 4 has only the high plane's bit: plane 1 begins at word
  // 64; row 9, k 21: R = 5, word 0, column 5. Word 64 + 6, bit 16 + 5.
  single = onlyWord(packOne(9, 21, 4, 16, 3));
  EXPECT_EQ(single.index, 70);
  EXPECT_EQ(single.value, 1u << 21);
  EXPECT_EQ(single.count, 1);
}

// The whole register comes out by one shift and mask, in MMA fragment order.
TEST(Packing, WorkedExampleOfTheHeader) {
  std::vector<uint8_t> codes = randomCodes(64 * 64, 4, 1);
  std::vector<uint8_t> packed(packedWeightBytes(64, 64, 16, 4));
  cantFail(packWeights(codes, 64, 64, 64, 16, 4, packed));
  for (int unit = 0; unit < 4; ++unit)
    for (int lane = 0; lane < 32; ++lane)
      for (int s = 0; s < 4; ++s)
        for (int r = 0; r < 4; ++r) {
          uint32_t word = wordAt(packed, unit * 128 + lane * 4 + s);
          uint32_t reg = (word >> (4 * r)) & 0x000F000F;
          int row = unit * 16 + lane / 4 + 8 * (r & 1);
          int k = 16 * s + 8 * (r >> 1) + 2 * (lane % 4);
          EXPECT_EQ(reg & 0xFFFF, codes[row * 64 + k]);
          EXPECT_EQ(reg >> 16, codes[row * 64 + k + 1]);
        }
}

// Every width, tails in N and K: each code is where packedPosition says, the
// padding is zero, and unpacking gives the codes back.
TEST(Packing, EveryWidthAgainstTheFormula) {
  const int64_t shapes[][2] = {{1, 1},    {64, 64},   {65, 63},
                               {17, 100}, {130, 129}, {7, 257}};
  for (unsigned A : {16u, 8u, 4u})
    for (unsigned b = 1; b <= std::min(A, 8u); ++b)
      for (auto [n, k] : shapes) {
        std::vector<uint8_t> codes = randomCodes(n * k, b, n * 1000 + k + b);
        std::vector<uint8_t> packed(packedWeightBytes(n, k, A, b), 0xEE);
        cantFail(packWeights(codes, n, k, k, A, b, packed, 2));
        std::vector<uint8_t> expected(packed.size());
        for (int64_t row = 0; row < n; ++row)
          for (int64_t column = 0; column < k; ++column)
            for (const PackedPlane &plane : packedPlanes(b)) {
              PackedPosition at = packedPosition(row, column, k, A, b, plane);
              uint32_t bits = (codes[row * k + column] >> plane.lowBit) &
                              ((1u << plane.width) - 1);
              uint8_t *word = expected.data() + 4 * at.word;
              uint32_t old = support::endian::read32le(word);
              ASSERT_EQ(old & (((1u << plane.width) - 1) << at.bit), 0u);
              support::endian::write32le(word, old | bits << at.bit);
            }
        ASSERT_EQ(packed, expected) << A << " " << b << " " << n << "x" << k;
        std::vector<uint8_t> back(n * k, 0xEE);
        cantFail(unpackWeights(packed, n, k, A, b, back, 2));
        EXPECT_EQ(back, codes);
      }
}

// All codes of each width in all positions of a slab.
TEST(Packing, EveryCodeInEveryPosition) {
  for (unsigned A : {16u, 8u, 4u})
    for (unsigned b = 1; b <= std::min(A, 8u); ++b)
      for (unsigned code = 0; code < 1u << b; ++code) {
        std::vector<uint8_t> codes(64 * 64);
        for (size_t i = 0; i < codes.size(); ++i)
          codes[i] = uint8_t((code + i) & ((1u << b) - 1));
        std::vector<uint8_t> packed(packedWeightBytes(64, 64, A, b));
        cantFail(packWeights(codes, 64, 64, 64, A, b, packed, 1));
        std::vector<uint8_t> back(codes.size());
        cantFail(unpackWeights(packed, 64, 64, A, b, back, 1));
        ASSERT_EQ(back, codes) << A << " " << b;
      }
}

TEST(Packing, StrideAndStreamAgreeWithPlainCodes) {
  const int64_t n = 70, k = 93, ld = 101;
  for (unsigned b = 1; b <= 8; ++b) {
    std::vector<uint8_t> codes = randomCodes(n * k, b, b);
    std::vector<uint8_t> packed(packedWeightBytes(n, k, 16, b));
    cantFail(packWeights(codes, n, k, k, 16, b, packed));
    // Row padding and unused high bits are poison.
    std::vector<uint8_t> strided(n * ld, 0xFF);
    for (int64_t row = 0; row < n; ++row)
      for (int64_t column = 0; column < k; ++column)
        strided[row * ld + column] =
            uint8_t(codes[row * k + column] | (b < 8 ? 0xFF << b : 0));
    std::vector<uint8_t> other(packed.size());
    cantFail(packWeights(strided, n, k, ld, 16, b, other));
    EXPECT_EQ(other, packed);
    int64_t rowBytes = (k * b + 7) / 8 + 3;
    std::vector<uint8_t> stream(n * rowBytes, 0xFF);
    for (int64_t row = 0; row < n; ++row)
      packBitStream(
          ArrayRef<uint8_t>(codes).slice(row * k, k), b,
          MutableArrayRef<uint8_t>(stream).slice(row * rowBytes, rowBytes));
    cantFail(packWeightStream(stream, rowBytes, n, k, 16, b, other));
    EXPECT_EQ(other, packed);
  }
}

TEST(Packing, BitStreamByHand) {
  // 3-bit codes 1..8 mod 8, low bits first: 0b...010001 -> bytes.
  const uint8_t codes[] = {1, 2, 3, 4, 5, 6, 7, 0};
  uint8_t stream[3];
  packBitStream(codes, 3, stream);
  // Bits: 1 | 2<<3 | 3<<6 | 4<<9 | 5<<12 | 6<<15 | 7<<18 = 0x1F58D1.
  EXPECT_EQ(stream[0], 0xD1);
  EXPECT_EQ(stream[1], 0x58);
  EXPECT_EQ(stream[2], 0x1F);
  uint8_t back[5];
  unpackBitStream(stream, 6, 3, back);
  EXPECT_EQ(std::vector<uint8_t>(back, back + 5),
            (std::vector<uint8_t>{3, 4, 5, 6, 7}));
}

TEST(Packing, ScalesByHand) {
  EXPECT_EQ(packedScalePosition(0), 0);
  EXPECT_EQ(packedScalePosition(8), 1);   // h = 1
  EXPECT_EQ(packedScalePosition(16), 2);  // u = 1
  EXPECT_EQ(packedScalePosition(1), 8);   // g8 = 1
  EXPECT_EQ(packedScalePosition(63), 63); // u 3, h 1, g8 7
  EXPECT_EQ(packedScalePosition(37), 44); // u 2, h 0, g8 5
  EXPECT_EQ(packedScalePosition(64 + 37), 64 + 44);
  // Two groups, 70 rows of two bytes: group 1 of row 65 follows the 128
  // positions of group 0.
  std::vector<uint8_t> scales(70 * 2 * 2);
  for (size_t i = 0; i < scales.size(); ++i)
    scales[i] = uint8_t(i + 1);
  std::vector<uint8_t> packed(packedScaleElements(70, 2) * 2, 0xEE);
  cantFail(packScales(scales, 70, 2, 2, packed));
  EXPECT_EQ(packed[(128 + 64 + 8) * 2], scales[(65 * 2 + 1) * 2]);
  EXPECT_EQ(packed[(128 + 64 + 8) * 2 + 1], scales[(65 * 2 + 1) * 2 + 1]);
  EXPECT_EQ(packed[(64 + packedScalePosition(7)) * 2], 0); // padding row 71
}

TEST(Packing, ScalesRoundTrip) {
  for (unsigned bytes : {1u, 2u, 4u})
    for (int64_t n : {1, 64, 100})
      for (int64_t groups : {1, 3}) {
        std::vector<uint8_t> scales = randomCodes(n * groups * bytes, 8, n);
        std::vector<uint8_t> packed(packedScaleElements(n, groups) * bytes);
        cantFail(packScales(scales, n, groups, bytes, packed));
        std::vector<uint8_t> back(scales.size());
        cantFail(unpackScales(packed, n, groups, bytes, back));
        EXPECT_EQ(back, scales);
      }
}

TEST(Packing, EmptyShapes) {
  EXPECT_EQ(packedWeightBytes(0, 64, 16, 4), 0);
  cantFail(packWeights({}, 0, 64, 64, 16, 4, {}));
  cantFail(unpackWeights({}, 0, 64, 16, 4, {}));
  cantFail(packScales({}, 0, 3, 2, {}));
}

TEST(Packing, RefusesWhatDoesNotFit) {
  auto message = [](Error error) { return toString(std::move(error)); };
  std::vector<uint8_t> codes(64 * 64), packed(64 * 64 / 2);
  EXPECT_EQ(message(packWeights(codes, 64, 64, 64, 16, 9, packed)),
            "expected weights of 1 to 8 bits for 16-bit activations, got 9");
  EXPECT_EQ(message(packWeights(codes, 64, 64, 64, 4, 5, packed)),
            "expected weights of 1 to 4 bits for 4-bit activations, got 5");
  EXPECT_EQ(message(packWeights(codes, 64, 64, 64, 32, 4, packed)),
            "expected activations of 16, 8 or 4 bits, got 32");
  EXPECT_EQ(message(packWeights(codes, 64, 64, 64, 16, 3, packed)),
            "expected a packed buffer of 1536 bytes, got 2048");
  EXPECT_EQ(message(packWeights(codes, 65, 64, 64, 16, 4, packed)),
            "expected codes of at least 4160 bytes for 65 x 64 with stride "
            "64, got 4096");
  EXPECT_EQ(message(packWeights(codes, 64, 64, 63, 16, 4, packed)),
            "expected a row stride of at least 64, got 63");
  EXPECT_EQ(message(packWeights(codes, -1, 64, 64, 16, 4, packed)),
            "expected a weight shape of 0 to 2^31 a side, got -1 x 64");
  EXPECT_EQ(message(packScales(codes, 64, 1, 3, packed)),
            "expected scale elements of 1, 2 or 4 bytes, got 3");
}

TEST(Parallel, CoversTheRangeOnce) {
  for (unsigned threads : {0u, 1u, 3u})
    for (int64_t count : {0, 1, 5, 1000}) {
      std::vector<std::atomic<int>> hits(count);
      parallelFor(count, 7, threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          ++hits[i];
      });
      for (std::atomic<int> &hit : hits)
        EXPECT_EQ(hit, 1);
    }
}

} // namespace
