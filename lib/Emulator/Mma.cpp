//===- Mma.cpp - mma.sync, ldmatrix, stmatrix, movmatrix ------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One rule covers every fragment of the ISA but m8n8k4 f16. With g = lane / 4,
// t = lane % 4 and e elements in a register (32 / width; 1 for f64):
//
//   A, register r, element i:  row = g + 8 * (r % R),  k = 4e * (r / R) + e * t
//   + i
//      where R = m / 8 (2 registers one above the other for m16, 1 for m8);
//   B, register r, element i:  k = 4e * r + e * t + i,  column = g;
//   C, element j:              row = g + 8 * (j / 2),  column = 2t + j % 2.
//
// Example, m16n8k16 f16 (e = 2), lane 5 (g = 1, t = 1): register 3 of A is row
// 9, k = 10 and 11.
//
// m8n8k4 f16 is four independent 8x8x4 products, one per quad pair (lanes 4q to
// 4q + 3 and 16 + 4q to 16 + 4q + 3).
//
// The floating-point sums are described in MmaCore.cpp; f64 is a chain of fused
// multiply-adds in ascending k.
//
//===----------------------------------------------------------------------===//

#include "Mma.h"
#include "Humming/Emulator/Arithmetic.h"
#include "MmaCore.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace humming;
using namespace humming::ptx;

unsigned ptx::bitWidth(MmaType type) {
  switch (type) {
  case MmaType::F16:
  case MmaType::BF16:
    return 16;
  case MmaType::TF32:
  case MmaType::F32:
  case MmaType::S32:
    return 32;
  case MmaType::F64:
    return 64;
  case MmaType::E4M3:
  case MmaType::E5M2:
  case MmaType::S8:
  case MmaType::U8:
    return 8;
  case MmaType::S4:
  case MmaType::U4:
    return 4;
  case MmaType::B1:
    return 1;
  }
  return 0;
}

bool ptx::isInteger(MmaType type) {
  return type == MmaType::S8 || type == MmaType::U8 || type == MmaType::S4 ||
         type == MmaType::U4 || type == MmaType::B1 || type == MmaType::S32;
}

static constexpr const char *typeNames[] = {
    "f16", "bf16", "tf32", "f64", "e4m3", "e5m2", "s8",
    "u8",  "s4",   "u4",   "b1",  "f32",  "s32"};

llvm::StringRef ptx::name(MmaType type) { return typeNames[unsigned(type)]; }

bool ptx::parseMmaType(llvm::StringRef text, MmaType &type) {
  for (unsigned i = 0; i < std::size(typeNames); ++i)
    if (text == typeNames[i]) {
      type = MmaType(i);
      return true;
    }
  return false;
}

//===----------------------------------------------------------------------===//
// What exists
//===----------------------------------------------------------------------===//

static llvm::Error mmaError(const MmaInstr &i, const llvm::Twine &what) {
  return llvm::createStringError(llvm::Twine("mma.sync m") + llvm::Twine(i.m) +
                                 "n" + llvm::Twine(i.n) + "k" +
                                 llvm::Twine(i.k) + " " + name(i.a) + " x " +
                                 name(i.b) + ": " + what);
}

static bool isQuadPair(const MmaInstr &i) {
  return i.a == MmaType::F16 && i.m == 8 && i.n == 8 && i.k == 4;
}

llvm::Error ptx::verifyMma(const MmaInstr &i) {
  auto fp8 = [](MmaType t) { return t == MmaType::E4M3 || t == MmaType::E5M2; };
  auto int8 = [](MmaType t) { return t == MmaType::S8 || t == MmaType::U8; };
  auto int4 = [](MmaType t) { return t == MmaType::S4 || t == MmaType::U4; };
  bool paired = i.a == i.b || (fp8(i.a) && fp8(i.b)) ||
                (int8(i.a) && int8(i.b)) || (int4(i.a) && int4(i.b));
  if (!paired)
    return mmaError(i, "operand types do not go together");
  if (i.n != 8)
    return mmaError(i, "expected n = 8");

  bool shape = false;
  auto wide = [&](unsigned k0, unsigned k1) {
    return i.m == 16 && (i.k == k0 || i.k == k1);
  };
  switch (i.a) {
  case MmaType::F16:
    shape = wide(8, 16) || isQuadPair(i);
    break;
  case MmaType::BF16:
    shape = wide(8, 16);
    break;
  case MmaType::TF32:
    shape = wide(4, 8);
    break;
  case MmaType::F64:
    shape = (i.m == 8 && i.k == 4) || wide(4, 8) || wide(16, 16);
    break;
  case MmaType::E4M3:
  case MmaType::E5M2:
    shape = wide(16, 32);
    break;
  case MmaType::S8:
  case MmaType::U8:
    shape = (i.m == 8 && i.k == 16) || wide(16, 32);
    break;
  case MmaType::S4:
  case MmaType::U4:
    shape = (i.m == 8 && i.k == 32) || wide(32, 64);
    break;
  case MmaType::B1:
    shape = (i.m == 8 && i.k == 128) || wide(128, 256);
    break;
  default:
    return mmaError(i, "not an operand type");
  }
  if (!shape)
    return mmaError(i, "no such shape for this type");

  bool accumulator;
  if (isInteger(i.a))
    accumulator = i.c == MmaType::S32 && i.d == MmaType::S32;
  else if (i.a == MmaType::F64)
    accumulator = i.c == MmaType::F64 && i.d == MmaType::F64;
  else if (isQuadPair(i))
    // f32 accumulators may be written from and to f16 here.
    accumulator = (i.c == MmaType::F32 || i.c == MmaType::F16) &&
                  (i.d == MmaType::F32 || i.d == MmaType::F16);
  else if (i.a == MmaType::F16 || fp8(i.a))
    accumulator = i.c == i.d && (i.c == MmaType::F32 || i.c == MmaType::F16);
  else
    accumulator = i.c == MmaType::F32 && i.d == MmaType::F32;
  if (!accumulator)
    return mmaError(i, llvm::Twine("no accumulator ") + name(i.c) + " -> " +
                           name(i.d));
  if (i.satfinite && (!isInteger(i.a) || i.a == MmaType::B1))
    return mmaError(i, "satfinite is for 8 and 4-bit integers");
  if (i.andPopc && i.a != MmaType::B1)
    return mmaError(i, "and.popc is for b1");
  if ((i.aColumn || i.bRow) && !isQuadPair(i))
    return mmaError(i, "expected .row.col");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

static unsigned operandRegisters(const MmaInstr &i, unsigned rows) {
  if (isQuadPair(i))
    return 2;
  return rows * i.k * bitWidth(i.a) / (32 * 32);
}
unsigned ptx::mmaRegistersA(const MmaInstr &i) {
  return operandRegisters(i, i.m);
}
unsigned ptx::mmaRegistersB(const MmaInstr &i) {
  return operandRegisters(i, i.n);
}
static unsigned accumulatorRegisters(const MmaInstr &i, MmaType type) {
  if (isQuadPair(i))
    return type == MmaType::F16 ? 4 : 8;
  return i.m * i.n * bitWidth(type) / (32 * 32);
}
unsigned ptx::mmaRegistersC(const MmaInstr &i) {
  return accumulatorRegisters(i, i.c);
}
unsigned ptx::mmaRegistersD(const MmaInstr &i) {
  return accumulatorRegisters(i, i.d);
}

static unsigned elementsPerRegister(MmaType type) {
  unsigned width = bitWidth(type);
  return width == 64 ? 1 : 32 / width;
}

MmaCoord ptx::mmaCoordA(const MmaInstr &i, unsigned lane, unsigned element) {
  if (isQuadPair(i)) {
    unsigned high = lane < 16 ? 0 : 4;
    if (i.aColumn)
      return {uint16_t(element % 4 + high), uint16_t(lane % 4)};
    return {uint16_t(lane % 4 + high), uint16_t(element)};
  }
  unsigned e = elementsPerRegister(i.a), r = element / e, stack = i.m / 8;
  return {uint16_t(lane / 4 + 8 * (r % stack)),
          uint16_t(4 * e * (r / stack) + e * (lane % 4) + element % e)};
}

MmaCoord ptx::mmaCoordB(const MmaInstr &i, unsigned lane, unsigned element) {
  if (isQuadPair(i)) {
    unsigned high = lane < 16 ? 0 : 4;
    if (i.bRow)
      return {uint16_t(lane % 4), uint16_t(element + high)};
    return {uint16_t(element), uint16_t(lane % 4 + high)};
  }
  unsigned e = elementsPerRegister(i.b), r = element / e;
  return {uint16_t(4 * e * r + e * (lane % 4) + element % e),
          uint16_t(lane / 4)};
}

/// Of m8n8k4 the f32 and f16 accumulators lie differently.
static MmaCoord quadPairCoordC(bool half, unsigned lane, unsigned element) {
  unsigned high = lane < 16 ? 0 : 4;
  if (half)
    return {uint16_t(lane % 4 + high), uint16_t(element)};
  return {uint16_t((lane & 1) + (element & 2) + high),
          uint16_t((element & 4) + (lane & 2) + (element & 1))};
}

MmaCoord ptx::mmaCoordC(const MmaInstr &i, unsigned lane, unsigned element) {
  if (isQuadPair(i))
    return quadPairCoordC(i.c == MmaType::F16, lane, element);
  return {uint16_t(lane / 4 + 8 * (element / 2)),
          uint16_t(2 * (lane % 4) + element % 2)};
}

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

using InRegisters = llvm::ArrayRef<const uint32_t *>;
using OutRegisters = llvm::ArrayRef<uint32_t *>;

/// Element `element` of a lane's registers, `width` <= 32 bits each.
static uint32_t fetch(InRegisters regs, unsigned width, unsigned lane,
                      unsigned element) {
  if (width == 32)
    return regs[element][lane];
  unsigned per = 32 / width;
  return regs[element / per][lane] >> (width * (element % per)) &
         ((uint32_t(1) << width) - 1);
}

static double fetchDouble(InRegisters regs, unsigned lane, unsigned element) {
  return llvm::bit_cast<double>(uint64_t(regs[2 * element + 1][lane]) << 32 |
                                regs[2 * element][lane]);
}

static void mmaF64(const MmaInstr &i, OutRegisters d, InRegisters a,
                   InRegisters b, InRegisters c) {
  double av[16][16], bv[16][8], cv[16][8];
  unsigned nA = mmaRegistersA(i) / 2, nB = mmaRegistersB(i) / 2,
           nC = mmaRegistersC(i) / 2;
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned e = 0; e < nA; ++e) {
      MmaCoord p = mmaCoordA(i, lane, e);
      av[p.row][p.column] = fetchDouble(a, lane, e);
    }
    for (unsigned e = 0; e < nB; ++e) {
      MmaCoord p = mmaCoordB(i, lane, e);
      bv[p.row][p.column] = fetchDouble(b, lane, e);
    }
    for (unsigned e = 0; e < nC; ++e) {
      MmaCoord p = mmaCoordC(i, lane, e);
      cv[p.row][p.column] = fetchDouble(c, lane, e);
    }
  }
  for (unsigned m = 0; m < i.m; ++m)
    for (unsigned n = 0; n < i.n; ++n)
      for (unsigned k = 0; k < i.k; ++k)
        cv[m][n] = std::fma(av[m][k], bv[k][n], cv[m][n]);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned e = 0; e < nC; ++e) {
      MmaCoord p = mmaCoordC(i, lane, e);
      double v = cv[p.row][p.column];
      uint64_t bits =
          std::isnan(v) ? 0xFFF8000000000000 : llvm::bit_cast<uint64_t>(v);
      d[2 * e][lane] = uint32_t(bits);
      d[2 * e + 1][lane] = uint32_t(bits >> 32);
    }
}

static void mmaQuadPair(const MmaInstr &i, OutRegisters d, InRegisters a,
                        InRegisters b, InRegisters c) {
  // All inputs are read before the first result is written: they may alias.
  uint32_t result[4][64];
  FloatMatrix av, bv;
  bool halfC = i.c == MmaType::F16, halfD = i.d == MmaType::F16;
  for (unsigned q = 0; q < 4; ++q) {
    av.resize(32);
    bv.resize(32);
    uint32_t cv[64];
    for (unsigned half = 0; half < 2; ++half)
      for (unsigned t = 0; t < 4; ++t) {
        unsigned lane = 16 * half + 4 * q + t;
        for (unsigned e = 0; e < 4; ++e) {
          MmaCoord p = mmaCoordA(i, lane, e);
          av.set(p.row * 4 + p.column, i.a, fetch(a, 16, lane, e));
          p = mmaCoordB(i, lane, e);
          bv.set(p.row * 8 + p.column, i.b, fetch(b, 16, lane, e));
        }
        for (unsigned e = 0; e < 8; ++e) {
          MmaCoord p = quadPairCoordC(halfC, lane, e);
          cv[p.row * 8 + p.column] = fetch(c, halfC ? 16 : 32, lane, e);
        }
      }
    if (halfC && !halfD)
      for (uint32_t &v : cv)
        v = uint32_t(convert(FloatType::F32, FloatType::F16, v));
    multiplyFloat(8, 8, 4, av, bv, halfC && halfD ? MmaType::F16 : MmaType::F32,
                  sumModel(i.a), cv, result[q]);
    if (!halfC && halfD)
      for (uint32_t &v : result[q])
        v = uint32_t(convert(FloatType::F16, FloatType::F32, v));
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    const uint32_t *r = result[lane % 16 / 4];
    for (unsigned e = 0; e < 8; ++e) {
      MmaCoord p = quadPairCoordC(halfD, lane, e);
      uint32_t v = r[p.row * 8 + p.column];
      if (!halfD)
        d[e][lane] = v;
      else if (e % 2 == 0)
        d[e / 2][lane] = v;
      else
        d[e / 2][lane] |= v << 16;
    }
  }
}

/// Reads C into a row-major matrix of codes.
static void readAccumulator(const MmaInstr &i, InRegisters c, uint32_t *cv) {
  bool half = i.c == MmaType::F16;
  for (unsigned e = 0; e < i.m * 8u / 32; ++e)
    for (unsigned lane = 0; lane < 32; ++lane) {
      uint32_t v =
          half ? c[e / 2][lane] >> (16 * (e % 2)) & 0xFFFF : c[e][lane];
      cv[(lane / 4 + 8 * (e / 2)) * 8 + 2 * (lane % 4) + e % 2] = v;
    }
}

static void writeAccumulator(const MmaInstr &i, const uint32_t *dv,
                             OutRegisters d) {
  bool half = i.d == MmaType::F16;
  for (unsigned e = 0; e < i.m * 8u / 32; ++e)
    for (unsigned lane = 0; lane < 32; ++lane) {
      uint32_t v = dv[(lane / 4 + 8 * (e / 2)) * 8 + 2 * (lane % 4) + e % 2];
      if (!half)
        d[e][lane] = v;
      else if (e % 2 == 0)
        d[e / 2][lane] = v;
      else
        d[e / 2][lane] |= v << 16;
    }
}

void ptx::mmaSync(const MmaInstr &i, OutRegisters d, InRegisters a,
                  InRegisters b, InRegisters c) {
  if (i.a == MmaType::F64)
    return mmaF64(i, d, a, b, c);
  if (isQuadPair(i))
    return mmaQuadPair(i, d, a, b, c);

  uint32_t cv[16 * 8], dv[16 * 8];
  readAccumulator(i, c, cv);
  unsigned nA = mmaRegistersA(i), nB = mmaRegistersB(i);
  unsigned width = bitWidth(i.a), per = 32 / width, stack = i.m / 8;

  if (i.a == MmaType::B1) {
    uint32_t av[16 * 8], bv[8 * 8];
    unsigned words = i.k / 32;
    for (unsigned r = 0; r < nA; ++r)
      for (unsigned lane = 0; lane < 32; ++lane)
        av[(lane / 4 + 8 * (r % stack)) * words + 4 * (r / stack) + lane % 4] =
            a[r][lane];
    for (unsigned r = 0; r < nB; ++r)
      for (unsigned lane = 0; lane < 32; ++lane)
        bv[lane / 4 * words + 4 * r + lane % 4] = b[r][lane];
    multiplyBits(i.m, 8, words, av, bv, i.andPopc, cv, dv);
    return writeAccumulator(i, dv, d);
  }

  // Calls put(matrix index, code) for each element, register by register.
  auto scatterA = [&](auto put) {
    for (unsigned r = 0; r < nA; ++r)
      for (unsigned lane = 0; lane < 32; ++lane) {
        unsigned row = lane / 4 + 8 * (r % stack);
        unsigned k = 4 * per * (r / stack) + per * (lane % 4);
        uint32_t word = a[r][lane];
        for (unsigned e = 0; e < per; ++e)
          put(row * i.k + k + e,
              per == 1 ? word
                       : word >> (width * e) & ((uint32_t(1) << width) - 1));
      }
  };
  auto scatterB = [&](auto put) {
    for (unsigned r = 0; r < nB; ++r)
      for (unsigned lane = 0; lane < 32; ++lane) {
        unsigned k = 4 * per * r + per * (lane % 4);
        uint32_t word = b[r][lane];
        for (unsigned e = 0; e < per; ++e)
          put((k + e) * 8 + lane / 4,
              per == 1 ? word
                       : word >> (width * e) & ((uint32_t(1) << width) - 1));
      }
  };

  if (isInteger(i.a)) {
    int16_t av[16 * 64], bv[64 * 8];
    scatterA([&](unsigned at, uint32_t v) { av[at] = integerValue(i.a, v); });
    scatterB([&](unsigned at, uint32_t v) { bv[at] = integerValue(i.b, v); });
    multiplyInteger(i.m, 8, i.k, av, bv, i.satfinite, cv, dv);
    return writeAccumulator(i, dv, d);
  }

  // The vectors keep their memory between calls: this is the hot loop.
  static thread_local FloatMatrix av, bv;
  av.resize(size_t(i.m) * i.k);
  bv.resize(size_t(8) * i.k);
  scatterA([&](unsigned at, uint32_t v) { av.set(at, i.a, v); });
  scatterB([&](unsigned at, uint32_t v) { bv.set(at, i.b, v); });
  multiplyFloat(i.m, 8, i.k, av, bv, i.c, sumModel(i.a), cv, dv);
  writeAccumulator(i, dv, d);
}

double ptx::mmaErrorBound(MmaType input, MmaType accumulator, unsigned k,
                          double sumAbs, double maxAbs) {
  // Each of k + 1 terms loses less than 2^-fractionBits of the largest exponent
  // when cut, and 2^exponent <= maxAbs. Architectures with shorter sums (4 or 8
  // products) cut again at every partial sum, whose magnitude is below sumAbs:
  // at most k / 4 times two units of it. The result is then rounded.
  SumModel model = sumModel(input);
  double fraction =
      std::ldexp(1.0, -int(model.fractionBits > 23 ? 23u : model.fractionBits));
  double cuts = (k + 1) * maxAbs * fraction;
  double partial = (k / 4 + 1) * 2 * sumAbs * fraction;
  double result = accumulator == MmaType::F16
                      ? sumAbs * std::ldexp(1.0, -11) + std::ldexp(1.0, -25)
                      : sumAbs * fraction;
  return cuts + partial + result;
}

//===----------------------------------------------------------------------===//
// ldmatrix, stmatrix, movmatrix
//===----------------------------------------------------------------------===//

void ptx::ldmatrixDistribute(const uint16_t tile[64], bool trans,
                             uint32_t reg[32]) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    MmaCoord p = ldmatrixCoord(lane, 0, trans),
             q = ldmatrixCoord(lane, 1, trans);
    reg[lane] =
        tile[p.row * 8 + p.column] | uint32_t(tile[q.row * 8 + q.column]) << 16;
  }
}

void ptx::stmatrixCollect(const uint32_t reg[32], bool trans,
                          uint16_t tile[64]) {
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned half = 0; half < 2; ++half) {
      MmaCoord p = ldmatrixCoord(lane, half, trans);
      tile[p.row * 8 + p.column] = uint16_t(reg[lane] >> (16 * half));
    }
}

void ptx::movmatrix(const uint32_t a[32], uint32_t d[32]) {
  uint16_t tile[64];
  stmatrixCollect(a, false, tile);
  ldmatrixDistribute(tile, true, d);
}
