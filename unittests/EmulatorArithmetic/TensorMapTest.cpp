//===- TensorMapTest.cpp - Tensor maps: rules, encoding, boxes ------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Emulator/TensorMap.h"
#include "llvm/Support/Error.h"
#include "gtest/gtest.h"
#include <functional>
#include <map>
#include <vector>

using namespace humming::ptx;

static TensorMap f16Map(unsigned inner, unsigned outer) {
  TensorMap m;
  m.base = 0x1000;
  m.rank = 2;
  m.element = TensorElement::F16;
  m.dims = {inner, outer};
  m.strides = {2, (inner * 2 + 15) / 16 * 16};
  m.box = {64, 8};
  return m;
}

TEST(TensorMap, EncodeRoundTrips) {
  TensorMap m = f16Map(200, 50);
  m.rank = 5;
  m.swizzle = TensorSwizzle::B128;
  m.oobNaN = true;
  m.dims = {200, 50, uint64_t(1) << 32, 3, 4};
  m.strides = {2, 400, 20000, uint64_t(1) << 39, 16};
  m.box = {64, 8, 2, 256, 1};
  m.elementStrides = {1, 2, 3, 1, 8};
  auto bytes = encodeTensorMap(m);
  ASSERT_TRUE(bool(bytes));
  auto back = decodeTensorMap(*bytes);
  ASSERT_TRUE(bool(back));
  EXPECT_EQ(back->base, m.base);
  EXPECT_EQ(back->rank, m.rank);
  EXPECT_EQ(back->element, m.element);
  EXPECT_EQ(back->swizzle, m.swizzle);
  EXPECT_EQ(back->oobNaN, true);
  EXPECT_EQ(back->dims, m.dims);
  EXPECT_EQ(back->strides, m.strides);
  EXPECT_EQ(back->box, m.box);
  EXPECT_EQ(back->elementStrides, m.elementStrides);
}

TEST(TensorMap, DamagedBytesAreErrors) {
  auto bytes = encodeTensorMap(f16Map(200, 50));
  ASSERT_TRUE(bool(bytes));
  for (unsigned i : {0u, 16u, 17u, 18u, 19u, 76u}) {
    TensorMapBytes bad = *bytes;
    bad[i] = 0xFF;
    EXPECT_TRUE(llvm::errorToBool(decodeTensorMap(bad).takeError())) << i;
  }
  std::vector<uint8_t> shortOne(64);
  EXPECT_TRUE(llvm::errorToBool(decodeTensorMap(shortOne).takeError()));
}

TEST(TensorMap, RulesNameTheField) {
  auto text = [](const std::function<void(TensorMap &)> &change) {
    TensorMap m = f16Map(200, 50);
    change(m);
    return llvm::toString(m.verify());
  };
  EXPECT_EQ(text([](TensorMap &) {}), "");
  EXPECT_EQ(text([](TensorMap &m) { m.rank = 6; }),
            "tensor map: expected rank 1 to 5, got 6");
  EXPECT_EQ(text([](TensorMap &m) { m.base = 8; }),
            "tensor map: expected a base address aligned to 16 bytes, got 0x8");
  EXPECT_EQ(text([](TensorMap &m) { m.strides[1] = 402; }),
            "tensor map: strides[1]: expected a multiple of 16 below 2^40, got "
            "402");
  EXPECT_EQ(text([](TensorMap &m) { m.box[1] = 257; }),
            "tensor map: box[1]: expected 1 to 256, got 257");
  EXPECT_EQ(text([](TensorMap &m) { m.box[0] = 9; }),
            "tensor map: expected box[0] of a multiple of 16 bytes, got 18");
  EXPECT_EQ(
      text([](TensorMap &m) { m.swizzle = TensorSwizzle::B64; }),
      "tensor map: expected box[0] of at most 64 bytes with this swizzle, "
      "got 128");
  EXPECT_EQ(text([](TensorMap &m) {
              m.element = TensorElement::U16;
              m.oobNaN = true;
            }),
            "tensor map: expected a float type for the NaN fill");
}

// The chunks of a box tile its shared bytes exactly once, and agree element by
// element with tensorElementAddress.
TEST(TensorMap, ChunksCoverTheBox) {
  for (unsigned swizzle = 0; swizzle < 4; ++swizzle)
    for (uint32_t sharedAddress : {0u, 128u, 384u})
      for (int32_t x : {-20, 0, 7, 170})
        for (int32_t y : {-3, 0, 45}) {
          TensorMap m = f16Map(197, 50);
          m.swizzle = TensorSwizzle(swizzle);
          m.box[0] = swizzle ? 8u << swizzle : 24;
          m.elementStrides[1] = y == 0 ? 3 : 1;
          ASSERT_FALSE(llvm::errorToBool(m.verify()));
          int32_t coords[2] = {x, y};
          std::map<uint32_t, std::pair<uint64_t, bool>> bytes;
          forEachTensorChunk(
              m, coords, sharedAddress, [&](const TensorChunk &c) {
                for (unsigned i = 0; i < c.bytes; ++i) {
                  auto r = bytes.insert(
                      {c.sharedOffset + i, {c.globalAddress + i, c.inBounds}});
                  ASSERT_TRUE(r.second);
                }
              });
          ASSERT_EQ(bytes.size(), m.boxBytes());
          uint32_t rows = m.boxCount(1);
          for (uint32_t r = 0; r < rows; ++r)
            for (uint32_t e = 0; e < m.box[0]; ++e) {
              uint64_t address;
              bool inside = tensorElementAddress(m, coords, {e, r}, address);
              int64_t gx = x + int64_t(e),
                      gy = y + int64_t(r) * m.elementStrides[1];
              ASSERT_EQ(inside, gx >= 0 && gx < 197 && gy >= 0 && gy < 50);
              uint32_t linear = sharedAddress + (r * m.box[0] + e) * 2;
              uint32_t at = swizzleAddress(m.swizzle, linear) - sharedAddress;
              ASSERT_TRUE(bytes.count(at));
              EXPECT_EQ(bytes[at].second, inside);
              if (inside) {
                EXPECT_EQ(address, 0x1000 + uint64_t(gy) * m.strides[1] +
                                       uint64_t(gx) * 2);
                EXPECT_EQ(bytes[at].first, address);
              }
            }
        }
}

TEST(TensorMap, TransformRounds) {
  auto run = [](TensorElement type, uint32_t v) {
    uint8_t bytes[4];
    memcpy(bytes, &v, 4);
    transformTensorElements(type, bytes);
    memcpy(&v, bytes, 4);
    return v;
  };
  EXPECT_EQ(run(TensorElement::F32, 0x80000001), 0x80000001u);
  EXPECT_EQ(run(TensorElement::F32Ftz, 0x80000001), 0x80000001u);
  EXPECT_EQ(run(TensorElement::TF32, 0x3F801001), 0x3F802000u);
  EXPECT_EQ(run(TensorElement::TF32Ftz, 0x00401FFF), 0x00402000u);
}
