//===- Arithmetic.h - Bit-exact scalar arithmetic of PTX --------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pure functions on raw bits: what one lane of a PTX floating-point, compare
// or convert instruction computes. No state, no errors: a combination that PTX
// does not have (an f64 `.sat`, say) is computed as if it had it; rejecting it
// is the parser's job.
//
// A value travels in the low bits of a uint64_t, the bits above its width are
// zero on return and ignored on entry. Packed values (f16x2, bf16x2) travel in
// a uint32_t, element 0 in the low half.
//
// NaN results: f16, bf16, e4m3, e5m2 and f32 operations give the canonical NaN
// (0x7FFF, 0x7FFF, 0x7F, 0x7F, 0x7FFFFFFF), f64 operations a quiet NaN with the
// payload of an operand.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_EMULATOR_ARITHMETIC_H
#define HUMMING_EMULATOR_ARITHMETIC_H

#include <cstdint>

namespace humming {
namespace ptx {

/// Floating-point types of `cvt` and of the arithmetic instructions. TF32 is
/// an f32 register whose low 13 mantissa bits are zero; E8M0 is `.ue8m0`.
enum class FloatType : uint8_t {
  F16,
  BF16,
  F32,
  F64,
  TF32,
  E4M3,
  E5M2,
  E2M1,
  E2M3,
  E3M2,
  E8M0,
};

/// Width in bits of a value in a register (E2M1: 4, E2M3 and E3M2: 6).
unsigned bitWidth(FloatType type);

/// `.rn .rz .rm .rp .rna`; `.rni .rzi .rmi .rpi` are the first four. RNA is
/// nearest, ties away from zero.
enum class Rounding : uint8_t { RN, RZ, RM, RP, RNA };

/// Modifiers of add, sub, mul, fma, div, rcp and sqrt.
struct FloatOptions {
  Rounding rounding = Rounding::RN;
  bool ftz = false;  ///< subnormal operands and results become signed zeros
  bool sat = false;  ///< clamp the result to [0, 1], NaN to +0
  bool relu = false; ///< clamp the result to >= +0, NaN to the canonical NaN
};

/// The exact result rounded once. \p type is F16, BF16, F32 or F64.
uint64_t add(FloatType type, uint64_t a, uint64_t b, FloatOptions o = {});
uint64_t sub(FloatType type, uint64_t a, uint64_t b, FloatOptions o = {});
uint64_t mul(FloatType type, uint64_t a, uint64_t b, FloatOptions o = {});
uint64_t fma(FloatType type, uint64_t a, uint64_t b, uint64_t c,
             FloatOptions o = {});
/// `div.rnd`, `rcp.rnd`, `sqrt.rnd`; F32 and F64.
uint64_t div(FloatType type, uint64_t a, uint64_t b, FloatOptions o = {});
uint64_t rcp(FloatType type, uint64_t a, FloatOptions o = {});
uint64_t sqrt(FloatType type, uint64_t a, FloatOptions o = {});

/// Element-wise forms for f16x2 and bf16x2; \p type is F16 or BF16.
uint32_t addPacked(FloatType type, uint32_t a, uint32_t b, FloatOptions o = {});
uint32_t subPacked(FloatType type, uint32_t a, uint32_t b, FloatOptions o = {});
uint32_t mulPacked(FloatType type, uint32_t a, uint32_t b, FloatOptions o = {});
uint32_t fmaPacked(FloatType type, uint32_t a, uint32_t b, uint32_t c,
                   FloatOptions o = {});

/// Modifiers of min and max.
struct MinMaxOptions {
  bool ftz = false;
  bool nan = false;        ///< a NaN operand gives the canonical NaN
  bool xorsignAbs = false; ///< compare magnitudes; sign = xor of the signs
};

/// `min`/`max`. -0 orders below +0; one NaN operand gives the other operand
/// unless `nan`; two give the canonical NaN (f64: the second one, made quiet).
uint64_t min(FloatType type, uint64_t a, uint64_t b, MinMaxOptions o = {});
uint64_t max(FloatType type, uint64_t a, uint64_t b, MinMaxOptions o = {});
uint32_t minPacked(FloatType type, uint32_t a, uint32_t b,
                   MinMaxOptions o = {});
uint32_t maxPacked(FloatType type, uint32_t a, uint32_t b,
                   MinMaxOptions o = {});

/// `neg`, `abs`: the sign bit is flipped or cleared, except of a NaN, which
/// becomes the canonical NaN (f64: the operand made quiet, sign kept).
uint64_t neg(FloatType type, uint64_t a, bool ftz = false);
uint64_t abs(FloatType type, uint64_t a, bool ftz = false);
uint32_t negPacked(FloatType type, uint32_t a, bool ftz = false);
uint32_t absPacked(FloatType type, uint32_t a, bool ftz = false);

/// `copysign.f32/f64 d, a, b`: the magnitude of \p b with the sign of \p a.
uint64_t copysign(FloatType type, uint64_t a, uint64_t b);

/// `testp` classes.
enum class TestOp : uint8_t {
  Finite,
  Infinite,
  Number,
  NotANumber,
  Normal,
  Subnormal
};
bool testp(FloatType type, TestOp op, uint64_t a);

/// Comparisons of `setp`/`set`. The second row is true when an operand is NaN.
/// LO, LS, HI, HS are the unsigned integer orders.
enum class CompareOp : uint8_t {
  EQ,
  NE,
  LT,
  LE,
  GT,
  GE,
  EQU,
  NEU,
  LTU,
  LEU,
  GTU,
  GEU,
  NUM,
  NAN_,
  LO,
  LS,
  HI,
  HS,
};
bool compare(FloatType type, CompareOp op, uint64_t a, uint64_t b,
             bool ftz = false);
/// Integer compare of the low \p bits bits. EQ..GE and LO..HS only; LT..GE
/// follow \p isSigned.
bool compareInt(CompareOp op, unsigned bits, bool isSigned, uint64_t a,
                uint64_t b);

/// The `.approx` functions. The emulator's model is the correctly rounded
/// value, with the special cases of the ISA; hardware may differ by
/// approxBound.
enum class ApproxOp : uint8_t { Ex2, Lg2, Rcp, Rsqrt, Sqrt, Sin, Cos, Tanh };
uint64_t approx(ApproxOp op, FloatType type, uint64_t a, bool ftz = false);
/// `div.approx` (\p full false) and `div.full` of f32.
uint32_t divApprox(uint32_t a, uint32_t b, bool full, bool ftz = false);

/// The bound of the ISA on |hardware - exact|, as `relative * |exact| +
/// absolute`. Ex2, Rcp, Rsqrt, Sqrt, Tanh are relative; Lg2 is absolute inside
/// (0.5, 2) and relative outside; Sin and Cos are absolute in [-pi, pi].
struct ApproxBound {
  double relative;
  double absolute;
};
ApproxBound approxBound(ApproxOp op, FloatType type);

/// Modifiers of `cvt`.
struct ConvertOptions {
  Rounding rounding = Rounding::RN;
  bool ftz = false;        ///< f32 operands (and f32 results): flush
  bool sat = false;        ///< integers: clamp; floats: clamp to [0, 1]
  bool satfinite = false;  ///< out of range becomes the largest finite value
  bool relu = false;       ///< negative becomes +0, NaN the canonical NaN
  bool toIntegral = false; ///< `.rni` family on a float to float conversion
};

/// Float to float, every pair of FloatType. The narrow targets (8 bits and
/// fewer) always saturate, as PTX requires `.satfinite` there; NaN becomes the
/// target's NaN, or +max where it has none (payloads live on from and to f64
/// and from bf16 to f32, and `cvt.rna.tf32` drops the low bits). E8M0 takes RZ
/// and RP, drops the sign, and maps NaN to 0xFF and overflow to 0xFF or
/// (`satfinite`) 0xFE.
uint64_t convert(FloatType to, FloatType from, uint64_t bits,
                 ConvertOptions o = {});

/// Float to integer of \p toBits 8, 16, 32 or 64. Always clamps to the range of
/// the target; NaN gives 0 for 8 to 32 bits and 1 << 63 for 64 bits, from f64
/// 1 << (toBits - 1) for every width.
uint64_t convertToInt(unsigned toBits, bool toSigned, FloatType from,
                      uint64_t bits, ConvertOptions o = {});

/// Integer of \p fromBits to float.
uint64_t convertFromInt(FloatType to, unsigned fromBits, bool fromSigned,
                        uint64_t bits, ConvertOptions o = {});

/// Integer to integer: sign or zero extends, truncates, or clamps with \p sat.
uint64_t convertInt(unsigned toBits, bool toSigned, unsigned fromBits,
                    bool fromSigned, uint64_t bits, bool sat = false);

/// `cvt.*.<to>x2.f32 d, a, b`: \p a goes to the high element. The result has 32
/// bits for F16/BF16, 16 for 8- and 6-bit types (6-bit codes in the low bits
/// of their bytes) and 8 for E2M1.
uint32_t convertPackedFromF32(FloatType to, uint32_t a, uint32_t b,
                              ConvertOptions o = {});
/// `cvt.*.<to>x2.<from>x2 d, a` of packed pairs in the containers above.
uint32_t convertPacked(FloatType to, FloatType from, uint32_t a,
                       ConvertOptions o = {});

/// The exact value of a code; NaN and infinities map to those of double.
double toDouble(FloatType type, uint64_t bits);
/// \p value rounded to \p type; no saturation except for the narrow types.
uint64_t fromDouble(FloatType type, double value,
                    Rounding rounding = Rounding::RN);

} // namespace ptx
} // namespace humming

#endif // HUMMING_EMULATOR_ARITHMETIC_H
