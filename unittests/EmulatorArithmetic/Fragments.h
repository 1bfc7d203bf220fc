//===- Fragments.h - MMA fragments taken apart element by element ---------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_UNITTESTS_EMULATORARITHMETIC_FRAGMENTS_H
#define HUMMING_UNITTESTS_EMULATORARITHMETIC_FRAGMENTS_H

#include "Humming/Emulator/Arithmetic.h"
#include "Mma.h"
#include "Truth.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <cmath>
#include <vector>

namespace humming {
namespace ptx {
using truth::Element;

/// Registers of one operand, [register][lane].
struct Registers {
  std::vector<uint32_t> words;
  explicit Registers(unsigned n) : words(n * 32) {}
  llvm::SmallVector<uint32_t *, 16> out() {
    llvm::SmallVector<uint32_t *, 16> p;
    for (size_t i = 0; i < words.size(); i += 32)
      p.push_back(&words[i]);
    return p;
  }
  llvm::SmallVector<const uint32_t *, 16> in() const {
    llvm::SmallVector<const uint32_t *, 16> p;
    for (size_t i = 0; i < words.size(); i += 32)
      p.push_back(&words[i]);
    return p;
  }
};

inline Element elementOf(MmaType t) {
  switch (t) {
  case MmaType::F16:
    return Element::F16;
  case MmaType::BF16:
    return Element::BF16;
  case MmaType::TF32:
    return Element::TF32;
  case MmaType::F32:
    return Element::F32;
  case MmaType::F64:
    return Element::F64;
  case MmaType::E4M3:
    return Element::E4M3;
  case MmaType::E5M2:
    return Element::E5M2;
  case MmaType::S8:
    return Element::S8;
  case MmaType::U8:
    return Element::U8;
  case MmaType::S4:
    return Element::S4;
  case MmaType::U4:
    return Element::U4;
  case MmaType::B1:
    return Element::B1;
  case MmaType::S32:
    return Element::S32;
  }
  return Element::S32;
}

inline double decode(MmaType t, uint64_t code) {
  switch (t) {
  case MmaType::F16:
    return toDouble(FloatType::F16, code);
  case MmaType::BF16:
    return toDouble(FloatType::BF16, code);
  case MmaType::TF32:
  case MmaType::F32:
    return toDouble(FloatType::F32, code);
  case MmaType::F64:
    return toDouble(FloatType::F64, code);
  case MmaType::E4M3:
    return toDouble(FloatType::E4M3, code);
  case MmaType::E5M2:
    return toDouble(FloatType::E5M2, code);
  case MmaType::S8:
    return int8_t(code);
  case MmaType::S4:
    return int(code & 15) - ((code & 8) ? 16 : 0);
  case MmaType::S32:
    return int32_t(code);
  default:
    return double(code);
  }
}

/// Element of a fragment by number, independent of Mma.cpp's unpacking.
inline uint64_t elementCode(const Registers &r, unsigned width, unsigned lane,
                            unsigned e) {
  if (width == 64)
    return uint64_t(r.words[(2 * e + 1) * 32 + lane]) << 32 |
           r.words[2 * e * 32 + lane];
  unsigned per = 32 / width;
  uint64_t word = r.words[e / per * 32 + lane];
  return word >> (width * (e % per)) & ((uint64_t(1) << width) - 1);
}

/// Elements that a lane holds of an operand of `total` elements; the four quad
/// pairs of m8n8k4 hold four matrices.
inline unsigned perLane(const MmaInstr &i, unsigned total) {
  bool quad = i.a == MmaType::F16 && i.m == 8;
  return (quad ? 4 : 1) * total / 32;
}

/// One output of an MMA in double: the sum, the sum of magnitudes (C included)
/// and the largest magnitude.
struct ExactSum {
  double sum, sumAbs, maxAbs;
  void add(double t) {
    sum += t;
    sumAbs += std::fabs(t);
    maxAbs = std::max(maxAbs, std::fabs(t));
  }
};

/// All outputs, indexed lane * (elements a lane) + element.
inline std::vector<ExactSum> exactSums(const MmaInstr &i, const Registers &a,
                                       const Registers &b, const Registers &c) {
  bool quad = i.a == MmaType::F16 && i.m == 8;
  unsigned perA = perLane(i, i.m * i.k), perB = perLane(i, i.k * 8),
           perC = perLane(i, i.m * 8);
  std::vector<ExactSum> sums(32 * perC);
  for (unsigned q = 0; q < (quad ? 4u : 1u); ++q) {
    auto mine = [&](unsigned lane) { return !quad || lane % 16 / 4 == q; };
    std::vector<double> av(i.m * i.k), bv(i.k * 8);
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (!mine(lane))
        continue;
      for (unsigned e = 0; e < perA; ++e) {
        MmaCoord p = mmaCoordA(i, lane, e);
        av[p.row * i.k + p.column] =
            decode(i.a, elementCode(a, bitWidth(i.a), lane, e));
      }
      for (unsigned e = 0; e < perB; ++e) {
        MmaCoord p = mmaCoordB(i, lane, e);
        bv[p.row * 8 + p.column] =
            decode(i.b, elementCode(b, bitWidth(i.b), lane, e));
      }
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (!mine(lane))
        continue;
      for (unsigned e = 0; e < perC; ++e) {
        MmaCoord p = mmaCoordC(i, lane, e);
        double start = decode(i.c, elementCode(c, bitWidth(i.c), lane, e));
        ExactSum s = {0, 0, 0};
        s.add(start);
        for (unsigned k = 0; k < i.k; ++k) {
          double x = av[p.row * i.k + k], y = bv[k * 8 + p.column];
          s.add(i.a != MmaType::B1 ? x * y
                : i.andPopc        ? double(x != 0 && y != 0)
                                   : double(x != y));
        }
        sums[lane * perC + e] = s;
      }
    }
  }
  return sums;
}

} // namespace ptx
} // namespace humming

#endif // HUMMING_UNITTESTS_EMULATORARITHMETIC_FRAGMENTS_H
