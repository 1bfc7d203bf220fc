//===- Oracle.h - llvm::APFloat as an independent arithmetic --------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_UNITTESTS_EMULATORARITHMETIC_ORACLE_H
#define HUMMING_UNITTESTS_EMULATORARITHMETIC_ORACLE_H

#include "Humming/Emulator/Arithmetic.h"
#include "llvm/ADT/APFloat.h"

namespace oracle {
using humming::ptx::FloatType;
using humming::ptx::Rounding;
using llvm::APFloat;
using llvm::APInt;

inline const llvm::fltSemantics &semantics(FloatType type) {
  switch (type) {
  case FloatType::F16:
    return APFloat::IEEEhalf();
  case FloatType::BF16:
    return APFloat::BFloat();
  case FloatType::F32:
    return APFloat::IEEEsingle();
  case FloatType::F64:
    return APFloat::IEEEdouble();
  case FloatType::TF32:
    return APFloat::FloatTF32();
  case FloatType::E4M3:
    return APFloat::Float8E4M3FN();
  case FloatType::E5M2:
    return APFloat::Float8E5M2();
  case FloatType::E2M1:
    return APFloat::Float4E2M1FN();
  case FloatType::E2M3:
    return APFloat::Float6E2M3FN();
  case FloatType::E3M2:
    return APFloat::Float6E3M2FN();
  case FloatType::E8M0:
    return APFloat::Float8E8M0FNU();
  }
  return APFloat::IEEEsingle();
}

inline llvm::RoundingMode mode(Rounding r) {
  switch (r) {
  case Rounding::RN:
    return llvm::RoundingMode::NearestTiesToEven;
  case Rounding::RZ:
    return llvm::RoundingMode::TowardZero;
  case Rounding::RM:
    return llvm::RoundingMode::TowardNegative;
  case Rounding::RP:
    return llvm::RoundingMode::TowardPositive;
  case Rounding::RNA:
    return llvm::RoundingMode::NearestTiesToAway;
  }
  return llvm::RoundingMode::NearestTiesToEven;
}

inline APFloat value(FloatType type, uint64_t code) {
  const llvm::fltSemantics &s = semantics(type);
  if (type == FloatType::TF32)
    code = code >> 13 & 0x7FFFF;
  unsigned bits = APFloat::getSizeInBits(s);
  return APFloat(s, APInt(64, code).trunc(bits));
}

/// The code as this library writes it: canonical NaN, tf32 in its f32 register.
inline uint64_t code(FloatType type, const APFloat &v) {
  if (v.isNaN()) {
    switch (type) {
    case FloatType::F16:
    case FloatType::BF16:
      return 0x7FFF;
    case FloatType::F32:
      return 0x7FFFFFFF;
    case FloatType::TF32:
      return 0x7FFFE000;
    case FloatType::E4M3:
    case FloatType::E5M2:
      return 0x7F;
    default:
      break;
    }
  }
  uint64_t bits = v.bitcastToAPInt().getZExtValue();
  return type == FloatType::TF32 ? bits << 13 : bits;
}

/// Rounds to \p type; the targets of at most 8 bits saturate as PTX asks.
inline uint64_t round(FloatType to, APFloat v, Rounding r) {
  bool narrow = humming::ptx::bitWidth(to) <= 8;
  bool nan = v.isNaN(), negative = !nan && v.isNegative();
  bool exact;
  v.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &exact);
  if (nan && !(to == FloatType::E4M3 || to == FloatType::E5M2) && narrow)
    return code(to, APFloat::getLargest(semantics(to)));
  if (narrow && !nan) {
    // Compare with the largest value before rounding: LLVM's types without
    // infinity would give NaN past it.
    APFloat largest = APFloat::getLargest(semantics(to), negative);
    APFloat wide = largest;
    bool lost;
    wide.convert(v.getSemantics(), APFloat::rmNearestTiesToEven, &lost);
    APFloat magnitude = v, bound = wide;
    magnitude.clearSign();
    bound.clearSign();
    if (magnitude >= bound)
      return code(to, largest);
  }
  bool lost;
  v.convert(semantics(to), mode(r), &lost);
  return code(to, v);
}
} // namespace oracle

#endif // HUMMING_UNITTESTS_EMULATORARITHMETIC_ORACLE_H
