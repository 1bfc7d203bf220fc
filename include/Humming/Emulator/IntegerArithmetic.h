//===- IntegerArithmetic.h - Bit and warp operations of PTX -----*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The integer instructions whose definition is more than one C++ operator, and
// the warp-wide ones as functions of all 32 lanes. Pure, total, header only.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_EMULATOR_INTEGERARITHMETIC_H
#define HUMMING_EMULATOR_INTEGERARITHMETIC_H

#include "llvm/ADT/bit.h"
#include <cstdint>

namespace humming {
namespace ptx {

/// `lop3.b32`: bit i of the result is bit (4a + 2b + c) of \p lut.
inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint8_t lut) {
  uint32_t r = 0;
  for (unsigned i = 0; i < 8; ++i)
    if (lut >> i & 1)
      r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return r;
}

enum class PrmtMode : uint8_t { Default, F4E, B4E, RC8, ECL, ECR, RC16 };

/// `prmt.b32 d, a, b, c`: bytes 0-3 are a, 4-7 are b. Bit 3 of a selector
/// replicates the byte's sign (Default mode only).
inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t c,
                     PrmtMode mode = PrmtMode::Default) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t r = 0, s = c & 3;
  for (unsigned i = 0; i < 4; ++i) {
    unsigned select = 0;
    switch (mode) {
    case PrmtMode::Default:
      select = c >> (4 * i) & 15;
      break;
    case PrmtMode::F4E:
      select = s + i;
      break;
    case PrmtMode::B4E:
      select = (s - i) & 7;
      break;
    case PrmtMode::RC8:
      select = s;
      break;
    case PrmtMode::ECL:
      select = i > s ? i : s;
      break;
    case PrmtMode::ECR:
      select = i < s ? i : s;
      break;
    case PrmtMode::RC16:
      select = (s & 1) * 2 + (i & 1);
      break;
    }
    uint32_t byte = bytes >> (8 * (select & 7)) & 0xFF;
    if (select & 8)
      byte = byte & 0x80 ? 0xFF : 0;
    r |= byte << (8 * i);
  }
  return r;
}

/// `bfe.{u,s}{32,64}`: \p len bits from \p pos. Bits past the top are zero
/// (unsigned) or the sign of the extracted field. The 32-bit instruction takes
/// both modulo 256, as the ISA says; an H200 uses all bits of them in the
/// 64-bit forms, which are sequences of shifts.
inline uint64_t bfe(unsigned bits, bool isSigned, uint64_t a, uint32_t pos,
                    uint32_t len) {
  if (bits == 32) {
    pos &= 0xFF;
    len &= 0xFF;
  }
  unsigned msb = bits - 1;
  bool sign = false;
  if (isSigned && len) {
    uint64_t last = uint64_t(pos) + len - 1;
    sign = a >> (last < msb ? last : msb) & 1;
  }
  uint64_t r = 0;
  for (unsigned i = 0; i < bits; ++i) {
    uint64_t from = uint64_t(pos) + i;
    bool bit = i < len && from <= msb ? a >> from & 1 : sign;
    r |= uint64_t(bit) << i;
  }
  return r;
}

/// `bfi.b32/b64 f, a, b, pos, len`: the low \p len bits of \p a go into \p b;
/// the operands as for `bfe`.
inline uint64_t bfi(unsigned bits, uint64_t a, uint64_t b, uint32_t pos,
                    uint32_t len) {
  if (bits == 32) {
    pos &= 0xFF;
    len &= 0xFF;
  }
  for (unsigned i = 0; i < len && uint64_t(pos) + i < bits; ++i) {
    uint64_t mask = uint64_t(1) << (pos + i);
    b = (b & ~mask) | ((a >> i & 1) << (pos + i));
  }
  return b;
}

/// `shf.{l,r}.{wrap,clamp}.b32 d, a, b, c` on the 64-bit value b:a.
inline uint32_t shf(bool left, bool wrap, uint32_t a, uint32_t b, uint32_t c) {
  uint32_t n = wrap ? c & 31 : (c < 32 ? c : 32);
  uint64_t v = uint64_t(b) << 32 | a;
  return left ? uint32_t((v << n) >> 32) : uint32_t(v >> n);
}

/// `shl`/`shr` clamp their amount to the width.
inline uint64_t shl(unsigned bits, uint64_t a, uint32_t n) {
  return n >= bits ? 0 : a << n;
}
inline uint64_t shr(unsigned bits, bool isSigned, uint64_t a, uint32_t n) {
  if (!isSigned)
    return n >= bits ? 0 : a >> n;
  int64_t v = int64_t(a << (64 - bits)) >> (64 - bits);
  return uint64_t(v >> (n >= bits ? bits - 1 : n));
}

inline uint64_t brev(unsigned bits, uint64_t a) {
  uint64_t r = 0;
  for (unsigned i = 0; i < bits; ++i)
    r |= (a >> i & 1) << (bits - 1 - i);
  return r;
}

/// `bfind[.shiftamt]`: the highest bit that differs from the sign (signed) or
/// is set (unsigned); all ones when there is none.
inline uint32_t bfind(unsigned bits, bool isSigned, bool shiftamt, uint64_t a) {
  uint64_t mask = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  if (isSigned && a >> (bits - 1) & 1)
    a = ~a;
  a &= mask;
  if (!a)
    return 0xFFFFFFFF;
  uint32_t top = 63 - llvm::countl_zero(a);
  return shiftamt ? bits - 1 - top : top;
}

/// `szext.{wrap,clamp}` and `bmsk.{wrap,clamp}`.
inline uint32_t szext(bool wrap, bool isSigned, uint32_t a, uint32_t n) {
  n = wrap ? n & 31 : (n > 32 ? 32 : n);
  if (n == 32)
    return a;
  uint32_t mask = (uint32_t(1) << n) - 1;
  if (isSigned && n && a >> (n - 1) & 1)
    return a | ~mask;
  return a & mask;
}
inline uint32_t bmsk(bool wrap, uint32_t a, uint32_t b) {
  a = wrap ? a & 31 : a;
  b = wrap ? b & 31 : (b > 32 ? 32 : b);
  uint64_t mask = (uint64_t(1) << b) - 1;
  return a >= 32 ? 0 : uint32_t(mask << a);
}

/// `dp4a.atype.btype d, a, b, c`.
inline uint32_t dp4a(bool aSigned, bool bSigned, uint32_t a, uint32_t b,
                     uint32_t c) {
  for (unsigned i = 0; i < 4; ++i) {
    int32_t x = a >> (8 * i) & 0xFF, y = b >> (8 * i) & 0xFF;
    x = aSigned ? int8_t(x) : x;
    y = bSigned ? int8_t(y) : y;
    c += uint32_t(x * y);
  }
  return c;
}
/// `dp2a.{lo,hi}.atype.btype d, a, b, c`: halves of a times bytes of b.
inline uint32_t dp2a(bool high, bool aSigned, bool bSigned, uint32_t a,
                     uint32_t b, uint32_t c) {
  for (unsigned i = 0; i < 2; ++i) {
    int32_t x = a >> (16 * i) & 0xFFFF;
    int32_t y = b >> (8 * i + (high ? 16 : 0)) & 0xFF;
    x = aSigned ? int16_t(x) : x;
    y = bSigned ? int8_t(y) : y;
    c += uint32_t(x) * uint32_t(y);
  }
  return c;
}

enum class ShflMode : uint8_t { Up, Down, Bfly, Idx };

/// `shfl.sync.mode d|p, a, b, c, mask`: the source lane of \p lane; \p valid is
/// the predicate p (when false the lane keeps its own value).
inline unsigned shflSource(ShflMode mode, unsigned lane, uint32_t b, uint32_t c,
                           bool &valid) {
  unsigned bval = b & 31, cval = c & 31, segmask = c >> 8 & 31;
  unsigned maxLane = (lane & segmask) | (cval & ~segmask & 31);
  unsigned minLane = lane & segmask;
  int j = 0;
  switch (mode) {
  case ShflMode::Up:
    j = int(lane) - int(bval);
    valid = j >= int(maxLane);
    break;
  case ShflMode::Down:
    j = int(lane + bval);
    valid = j <= int(maxLane);
    break;
  case ShflMode::Bfly:
    j = int(lane ^ bval);
    valid = j <= int(maxLane);
    break;
  case ShflMode::Idx:
    j = int(minLane | (bval & ~segmask & 31));
    valid = j <= int(maxLane);
    break;
  }
  return valid ? unsigned(j) : lane;
}

enum class ReduxOp : uint8_t { Add, Min, Max, And, Or, Xor };

/// `redux.sync` over the lanes of \p mask (not empty).
inline uint32_t redux(ReduxOp op, bool isSigned, const uint32_t values[32],
                      uint32_t mask) {
  uint32_t r = 0;
  bool first = true;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    uint32_t v = values[lane];
    bool less = isSigned ? int32_t(v) < int32_t(r) : v < r;
    if (first)
      r = v;
    else if (op == ReduxOp::Add)
      r += v;
    else if (op == ReduxOp::Min)
      r = less ? v : r;
    else if (op == ReduxOp::Max)
      r = less ? r : v;
    else if (op == ReduxOp::And)
      r &= v;
    else if (op == ReduxOp::Or)
      r |= v;
    else
      r ^= v;
    first = false;
  }
  return r;
}

/// `match.any.sync`: the lanes of \p mask that hold the same value as \p lane.
inline uint32_t matchAny(const uint64_t values[32], uint32_t mask,
                         unsigned lane) {
  uint32_t r = 0;
  for (unsigned i = 0; i < 32; ++i)
    if (mask >> i & 1 && values[i] == values[lane])
      r |= uint32_t(1) << i;
  return r;
}

} // namespace ptx
} // namespace humming

#endif // HUMMING_EMULATOR_INTEGERARITHMETIC_H
