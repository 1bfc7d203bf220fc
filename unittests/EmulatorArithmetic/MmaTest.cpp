//===- MmaTest.cpp - mma.sync of every kind, ldmatrix and its kin ---------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fragments.h"
#include "llvm/Support/Error.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace humming::ptx;
using truth::Element;

namespace {
struct Kind {
  unsigned m, k;
  MmaType a, b, acc;
};
} // namespace

static const Kind kinds[] = {
    {16, 8, MmaType::F16, MmaType::F16, MmaType::F32},
    {16, 16, MmaType::F16, MmaType::F16, MmaType::F32},
    {16, 8, MmaType::F16, MmaType::F16, MmaType::F16},
    {16, 16, MmaType::F16, MmaType::F16, MmaType::F16},
    {8, 4, MmaType::F16, MmaType::F16, MmaType::F32},
    {8, 4, MmaType::F16, MmaType::F16, MmaType::F16},
    {16, 8, MmaType::BF16, MmaType::BF16, MmaType::F32},
    {16, 16, MmaType::BF16, MmaType::BF16, MmaType::F32},
    {16, 4, MmaType::TF32, MmaType::TF32, MmaType::F32},
    {16, 8, MmaType::TF32, MmaType::TF32, MmaType::F32},
    {16, 16, MmaType::E4M3, MmaType::E4M3, MmaType::F32},
    {16, 32, MmaType::E4M3, MmaType::E5M2, MmaType::F32},
    {16, 16, MmaType::E5M2, MmaType::E4M3, MmaType::F16},
    {16, 32, MmaType::E5M2, MmaType::E5M2, MmaType::F16},
    {8, 4, MmaType::F64, MmaType::F64, MmaType::F64},
    {16, 4, MmaType::F64, MmaType::F64, MmaType::F64},
    {16, 8, MmaType::F64, MmaType::F64, MmaType::F64},
    {16, 16, MmaType::F64, MmaType::F64, MmaType::F64},
    {8, 16, MmaType::S8, MmaType::S8, MmaType::S32},
    {16, 16, MmaType::S8, MmaType::U8, MmaType::S32},
    {16, 32, MmaType::U8, MmaType::S8, MmaType::S32},
    {16, 32, MmaType::U8, MmaType::U8, MmaType::S32},
    {8, 32, MmaType::S4, MmaType::S4, MmaType::S32},
    {16, 32, MmaType::S4, MmaType::U4, MmaType::S32},
    {16, 64, MmaType::U4, MmaType::S4, MmaType::S32},
    {16, 64, MmaType::U4, MmaType::U4, MmaType::S32},
    {8, 128, MmaType::B1, MmaType::B1, MmaType::S32},
    {16, 128, MmaType::B1, MmaType::B1, MmaType::S32},
    {16, 256, MmaType::B1, MmaType::B1, MmaType::S32},
};

static MmaInstr instrOf(const Kind &k) {
  MmaInstr i;
  i.m = k.m;
  i.k = k.k;
  i.a = k.a;
  i.b = k.b;
  i.c = i.d = k.acc;
  return i;
}

// Each coordinate map hits each matrix element exactly once.
TEST(Mma, FragmentsCoverTheMatrices) {
  for (const Kind &k : kinds) {
    MmaInstr i = instrOf(k);
    ASSERT_FALSE(llvm::errorToBool(verifyMma(i)));
    bool quad = i.a == MmaType::F16 && i.m == 8;
    for (unsigned variant = 0; variant < (quad ? 4u : 1u); ++variant) {
      i.aColumn = variant & 1;
      i.bRow = variant & 2;
      std::vector<unsigned> a(i.m * i.k), b(i.k * 8), c(i.m * 8);
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned e = 0; e < perLane(i, i.m * i.k); ++e) {
          MmaCoord p = mmaCoordA(i, lane, e);
          ASSERT_TRUE(p.row < i.m && p.column < i.k);
          ++a[p.row * i.k + p.column];
        }
        for (unsigned e = 0; e < perLane(i, i.k * 8); ++e) {
          MmaCoord p = mmaCoordB(i, lane, e);
          ASSERT_TRUE(p.row < i.k && p.column < 8);
          ++b[p.row * 8 + p.column];
        }
        for (unsigned e = 0; e < perLane(i, i.m * 8); ++e) {
          MmaCoord p = mmaCoordC(i, lane, e);
          ASSERT_TRUE(p.row < i.m && p.column < 8);
          ++c[p.row * 8 + p.column];
        }
      }
      for (auto *v : {&a, &b, &c})
        for (unsigned count : *v)
          ASSERT_EQ(count, quad ? 4u : 1u);
    }
  }
}

// Against a triple loop over coordinates in double, every kind; small integers
// are exact (equality), the other regimes stay within the derived bound.
TEST(Mma, MatchesTripleLoop) {
  for (const Kind &kind : kinds) {
    MmaInstr i = instrOf(kind);
    bool quad = i.a == MmaType::F16 && i.m == 8;
    for (unsigned instance = 0; instance < 32; ++instance) {
      truth::Regime regime = truth::mmaRegime(instance);
      if (!isInteger(i.a) &&
          (regime == truth::AnyBits || regime == truth::Huge))
        continue; // infinities: SpecialValues below
      if (quad) {
        i.aColumn = instance & 8;
        i.bRow = instance & 16;
      }
      i.satfinite = isInteger(i.a) && i.a != MmaType::B1 && instance % 2;
      i.andPopc = i.a == MmaType::B1 && instance % 2;
      Registers a(mmaRegistersA(i)), b(mmaRegistersB(i)), c(mmaRegistersC(i)),
          d(mmaRegistersD(i));
      truth::mmaOperand(elementOf(i.a), 0, 1, instance, mmaRegistersA(i),
                        a.words.data());
      truth::mmaOperand(elementOf(i.b), 1, 1, instance, mmaRegistersB(i),
                        b.words.data());
      truth::mmaOperand(elementOf(i.c), 2, 1, instance, mmaRegistersC(i),
                        c.words.data());
      mmaSync(i, d.out(), a.in(), b.in(), c.in());
      std::vector<ExactSum> sums = exactSums(i, a, b, c);
      unsigned perD = perLane(i, i.m * 8);
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned e = 0; e < perD; ++e) {
          const ExactSum &x = sums[lane * perD + e];
          uint64_t code = elementCode(d, bitWidth(i.d), lane, e);
          double got = decode(i.d, code);
          if (isInteger(i.a)) {
            int64_t v = int64_t(x.sum);
            uint32_t want = uint32_t(v);
            if (i.satfinite)
              want = v > INT32_MAX   ? 0x7FFFFFFF
                     : v < INT32_MIN ? 0x80000000
                                     : want;
            ASSERT_EQ(want, uint32_t(code));
          } else if (regime == truth::SmallIntegers) {
            ASSERT_EQ(x.sum, got) << name(i.a).str() << " k " << i.k;
          } else if (i.a == MmaType::F64) {
            // A chain of k roundings, in the oracle as well.
            ASSERT_NEAR(x.sum, got, 2 * (i.k + 1) * x.sumAbs * 0x1p-53);
          } else if (i.d == MmaType::F16 && std::fabs(x.sum) > 60000) {
            continue; // may round to infinity
          } else {
            ASSERT_LE(std::fabs(x.sum - got),
                      mmaErrorBound(i.a, i.d, i.k, x.sumAbs, x.maxAbs))
                << name(i.a).str() << " regime " << regime;
          }
        }
    }
  }
}

/// m16n8k16 f16 with A = `a` and B = `b` in k = 0 only, C everywhere `c`.
static uint32_t oneProduct(uint32_t a, uint32_t b, uint32_t c) {
  MmaInstr i;
  Registers ra(4), rb(2), rc(4), rd(4);
  for (unsigned lane = 0; lane < 32; lane += 4) { // t = 0 holds k = 0
    ra.words[lane] = ra.words[32 + lane] = a;
    rb.words[lane] = b;
  }
  for (uint32_t &w : rc.words)
    w = c;
  mmaSync(i, rd.out(), ra.in(), rb.in(), rc.in());
  for (uint32_t w : rd.words)
    EXPECT_EQ(w, rd.words[0]);
  return rd.words[0];
}

TEST(Mma, SpecialValues) {
  EXPECT_EQ(oneProduct(0x3C00, 0x4000, 0x3F800000), 0x40400000u); // 1*2+1
  EXPECT_EQ(oneProduct(0x7C00, 0x3C00, 0), 0x7F800000u);
  EXPECT_EQ(oneProduct(0x7C00, 0xBC00, 0), 0xFF800000u);
  EXPECT_EQ(oneProduct(0x7C00, 0x0000, 0), 0x7FFFFFFFu); // inf * 0
  EXPECT_EQ(oneProduct(0x7C00, 0x3C00, 0xFF800000), 0x7FFFFFFFu);
  EXPECT_EQ(oneProduct(0x7E01, 0x3C00, 0), 0x7FFFFFFFu);
  EXPECT_EQ(oneProduct(0x3C00, 0x3C00, 0x7F800000), 0x7F800000u);
  // 2^-14 * 2^-12 = 2^-26 next to 1 is cut; next to 0 it is exact.
  EXPECT_EQ(oneProduct(0x0400, 0x0C00, 0x3F800000), 0x3F800000u);
  EXPECT_EQ(oneProduct(0x0400, 0x0C00, 0), 0x32800000u);
  // 2^-24 next to 1 is kept in the sum and cut in the result.
  EXPECT_EQ(oneProduct(0x0C00, 0x0C00, 0x3F800000), 0x3F800000u);
  EXPECT_EQ(oneProduct(0x0C00, 0x0C00, 0xBF800000), 0xBF7FFFFFu);
  // The largest f32 plus a large product overflows.
  EXPECT_EQ(oneProduct(0x7BFF, 0x7BFF, 0x7F7FFFFF), 0x7F7FFFFFu);
}

TEST(Mma, ResultsMayAliasOperands) {
  MmaInstr i;
  Registers a(4), b(2), c(4), d(4);
  truth::mmaOperand(Element::F16, 0, 3, 0, 4, a.words.data());
  truth::mmaOperand(Element::F16, 1, 3, 0, 2, b.words.data());
  truth::mmaOperand(Element::F32, 2, 3, 0, 4, c.words.data());
  mmaSync(i, d.out(), a.in(), b.in(), c.in());
  mmaSync(i, c.out(), a.in(), b.in(), c.in());
  EXPECT_EQ(c.words, d.words);
}

TEST(Mma, VerifyNamesWhatIsWrong) {
  auto text = [](MmaInstr i) { return llvm::toString(verifyMma(i)); };
  MmaInstr i;
  EXPECT_EQ(text(i), "");
  i.k = 32;
  EXPECT_EQ(text(i),
            "mma.sync m16n8k32 f16 x f16: no such shape for this type");
  i.k = 16;
  i.b = MmaType::BF16;
  EXPECT_EQ(text(i),
            "mma.sync m16n8k16 f16 x bf16: operand types do not go together");
  i.a = MmaType::BF16;
  i.c = i.d = MmaType::F16;
  EXPECT_EQ(text(i),
            "mma.sync m16n8k16 bf16 x bf16: no accumulator f16 -> f16");
  i.c = i.d = MmaType::F32;
  i.satfinite = true;
  EXPECT_EQ(text(i), "mma.sync m16n8k16 bf16 x bf16: satfinite is for 8 and "
                     "4-bit integers");
}

TEST(Mma, TypeNamesRoundTrip) {
  for (unsigned t = 0; t <= unsigned(MmaType::S32); ++t) {
    MmaType back;
    ASSERT_TRUE(parseMmaType(name(MmaType(t)), back));
    EXPECT_EQ(back, MmaType(t));
  }
  MmaType none;
  EXPECT_FALSE(parseMmaType("f8", none));
}

TEST(Matrix, LoadStoreMove) {
  uint16_t tile[64], back[64];
  for (unsigned i = 0; i < 64; ++i)
    tile[i] = uint16_t(i / 8 << 8 | i % 8); // row in the high byte
  uint32_t reg[32], moved[32];
  ldmatrixDistribute(tile, false, reg);
  EXPECT_EQ(reg[6], 0x01050104u); // lane 6: row 1, columns 4 and 5
  ldmatrixDistribute(tile, true, reg);
  EXPECT_EQ(reg[6], 0x05010401u); // rows 4 and 5 of column 1
  for (bool trans : {false, true}) {
    ldmatrixDistribute(tile, trans, reg);
    stmatrixCollect(reg, trans, back);
    EXPECT_EQ(0, memcmp(tile, back, sizeof(tile)));
  }
  ldmatrixDistribute(tile, false, reg);
  movmatrix(reg, moved);
  ldmatrixDistribute(tile, true, reg);
  EXPECT_EQ(0, memcmp(moved, reg, sizeof(reg)));
}
