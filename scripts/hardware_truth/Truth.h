//===- Truth.h - Inputs and result files of the hardware runs ---*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by the CUDA program that runs instructions on a GPU and by the unit
// test that replays them: the inputs are functions of (case name, operand,
// index), so only results are stored.
//
// A result file holds cases. Of a case with n results it stores a 64-bit hash
// per block of 256 results (so that every result is checked) and the plain
// value of some (so that a mismatch can be understood, and so that inexact
// instructions can be compared within a bound): all of them, or the first 512
// and every 64th.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_SCRIPTS_HARDWARETRUTH_TRUTH_H
#define HUMMING_SCRIPTS_HARDWARETRUTH_TRUTH_H

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace truth {

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

inline uint64_t mix(uint64_t x) { // splitmix64
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

inline uint64_t nameHash(const char *name) { // FNV-1a
  uint64_t h = 0xCBF29CE484222325ull;
  for (; *name; ++name)
    h = (h ^ uint8_t(*name)) * 0x100000001B3ull;
  return h;
}

/// A counter-based stream: the same (seed, index) gives the same numbers.
struct Random {
  uint64_t state;
  explicit Random(uint64_t seed) : state(mix(seed)) {}
  uint64_t next() { return state = mix(state); }
  uint32_t below(uint32_t n) { return uint32_t((next() >> 32) * n >> 32); }
};

//===----------------------------------------------------------------------===//
// Scalar operands
//===----------------------------------------------------------------------===//

/// H f16, B bf16, S f32, D f64, HH f16x2, BB bf16x2, Q pair of 8-bit floats,
/// I integers by width.
enum class Kind { H, B, S, D, HH, BB, Q, I8, I16, I32, I64 };

inline unsigned kindBytes(Kind k) {
  switch (k) {
  case Kind::H:
  case Kind::B:
  case Kind::Q:
  case Kind::I16:
    return 2;
  case Kind::I8:
    return 1;
  case Kind::S:
  case Kind::HH:
  case Kind::BB:
  case Kind::I32:
    return 4;
  case Kind::D:
  case Kind::I64:
    return 8;
  }
  return 0;
}

/// A random code of a sign|exponent|mantissa format, weighted towards what
/// breaks implementations: short mantissas (ties), moderate exponents, edges.
inline uint64_t randomFloat(unsigned exponentBits, unsigned mantissaBits,
                            Random &r) {
  unsigned bits = 1 + exponentBits + mantissaBits;
  uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  uint64_t bias = (1ull << (exponentBits - 1)) - 1;
  uint64_t v = r.next();
  uint64_t sign = v >> 63 << (bits - 1);
  uint64_t mantissaMask = (1ull << mantissaBits) - 1;
  switch (v & 7) {
  case 0:
  case 1: // any bits
    return r.next() & mask;
  case 2:
  case 3: { // near one
    uint64_t e = bias - 8 + r.below(17);
    return sign | e << mantissaBits | (r.next() & mantissaMask);
  }
  case 4:
  case 5: { // few mantissa bits, perhaps one unit off
    uint64_t e = exponentBits >= 8 ? bias - 28 + r.below(57)
                                   : r.below(uint32_t(2 * bias + 2));
    uint64_t m =
        r.next() & (mantissaMask << r.below(mantissaBits + 1)) & mantissaMask;
    uint64_t code = e << mantissaBits | m;
    uint32_t wiggle = r.below(4);
    code = wiggle == 0 ? code + 1 : wiggle == 1 && code ? code - 1 : code;
    return (sign | code) & mask;
  }
  case 6: // small exponents, subnormals
    return sign | (r.next() & ((mantissaMask << 2) | 3));
  default: // large exponents, infinity, NaN
    return sign | ((1ull << (bits - 1)) - 1 - (r.next() & (mantissaMask << 1)));
  }
}

/// Edge codes of a float format.
inline std::vector<uint64_t> floatEdges(unsigned e, unsigned m) {
  unsigned bits = 1 + e + m;
  uint64_t bias = (1ull << (e - 1)) - 1, inf = ((1ull << e) - 1) << m;
  uint64_t one = bias << m;
  std::vector<uint64_t> half = {0,
                                1,
                                (1ull << m) - 1,
                                1ull << m,
                                (1ull << m) + 1,
                                one - 1,
                                one,
                                one + 1,
                                one - (1ull << m),
                                one + (1ull << m),
                                one + (1ull << (m - 1)),
                                inf - 1,
                                inf,
                                inf + 1,
                                inf | 1ull << (m - 1),
                                inf | ((1ull << m) - 1)};
  std::vector<uint64_t> all = half;
  for (uint64_t h : half)
    all.push_back(h | 1ull << (bits - 1));
  return all;
}

inline std::vector<uint64_t> integerEdges(unsigned bits) {
  uint64_t top = 1ull << (bits - 1), mask = top | (top - 1);
  std::vector<uint64_t> all = {0,   1,   2,       3,   7,       8,        15,
                               16,  31,  32,      33,  63,      64,       127,
                               128, 255, top - 1, top, top + 1, mask - 1, mask};
  for (uint64_t &v : all)
    v &= mask;
  return all;
}

inline const std::vector<uint64_t> &edges(Kind k) {
  static const std::vector<uint64_t> h = floatEdges(5, 10),
                                     b = floatEdges(8, 7),
                                     s = floatEdges(8, 23),
                                     d = floatEdges(11, 52),
                                     i8 = integerEdges(8),
                                     i16 = integerEdges(16),
                                     i32 = integerEdges(32),
                                     i64 = integerEdges(64);
  switch (k) {
  case Kind::H:
  case Kind::HH:
    return h;
  case Kind::B:
  case Kind::BB:
    return b;
  case Kind::S:
    return s;
  case Kind::D:
    return d;
  case Kind::I8:
    return i8;
  case Kind::I16:
  case Kind::Q:
    return i16;
  case Kind::I32:
    return i32;
  case Kind::I64:
    return i64;
  }
  return s;
}

inline uint64_t randomOperand(Kind k, Random &r) {
  switch (k) {
  case Kind::H:
    return randomFloat(5, 10, r);
  case Kind::B:
    return randomFloat(8, 7, r);
  case Kind::S:
    return randomFloat(8, 23, r);
  case Kind::D:
    return randomFloat(11, 52, r);
  case Kind::HH: {
    uint64_t lo = randomFloat(5, 10, r);
    return randomFloat(5, 10, r) << 16 | lo;
  }
  case Kind::BB: {
    uint64_t lo = randomFloat(8, 7, r);
    return randomFloat(8, 7, r) << 16 | lo;
  }
  default: {
    uint64_t v = r.next();
    unsigned bits = 8 * kindBytes(k);
    if (v & 1) // small magnitudes matter to shifts and conversions
      v = uint64_t(int64_t(r.next()) >> r.below(64));
    else
      v = r.next();
    return bits == 64 ? v : v & ((1ull << bits) - 1);
  }
  }
}

inline bool exhaustive(Kind k, unsigned arity) {
  return arity == 1 && kindBytes(k) <= 2;
}

/// Number of tests of a scalar case; a fully stored one has every 16th 16-bit
/// code.
inline uint32_t scalarCount(Kind k, unsigned arity, bool full) {
  if (full)
    return 4096;
  if (exhaustive(k, arity))
    return kindBytes(k) == 1 ? 256 : 65536;
  return 16384;
}

/// Operand \p operand of test \p index.
inline uint64_t scalarInput(Kind k, unsigned arity, uint64_t seed,
                            unsigned operand, uint32_t index, bool full) {
  if (exhaustive(k, arity))
    return full ? index * 16 + index % 16 : index;
  const std::vector<uint64_t> &e = edges(k);
  uint32_t base = uint32_t(e.size());
  uint32_t limit = arity == 1 ? base : arity == 2 ? base * base : 4096;
  if (index < limit) {
    // All pairs; a third operand walks with a stride.
    uint32_t digit = operand == 0 ? index % base
                     : operand == 1
                         ? index / base % base
                         : (index / (base * base) + index * 7) % base;
    uint64_t v = e[digit];
    if (k == Kind::HH || k == Kind::BB)
      v = v << 16 | e[(digit * 5 + 3 + operand + index / base) % base];
    return v;
  }
  Random r(seed ^ mix(index * 4ull + operand));
  return randomOperand(k, r);
}

//===----------------------------------------------------------------------===//
// Warp operands
//===----------------------------------------------------------------------===//

[[maybe_unused]] constexpr uint32_t numWarps = 512;

struct WarpInput {
  uint32_t values[32];
  uint32_t b, c, mask;
};

/// shfl names get in-range operands and a full mask (reading from a lane that
/// is not there is undefined); the others a random, never empty mask.
inline WarpInput warpInput(const char *name, uint64_t seed, uint32_t warp) {
  Random r(seed ^ mix(warp));
  WarpInput in;
  bool shuffle = strncmp(name, "shfl", 4) == 0;
  uint32_t spread = r.below(33); // from all equal to all random
  for (uint32_t &v : in.values)
    v = uint32_t(uint64_t(uint32_t(r.next())) >> (32 - spread));
  if (r.below(4) == 0)
    for (uint32_t &v : in.values)
      v |= 0x80000000u * r.below(2);
  static const uint32_t clamps[6] = {31, 0, 0x1C1F, 0x1800, 0x101F, 0x0007};
  in.b = r.below(2) ? uint32_t(r.next()) & 31 : uint32_t(r.next());
  in.c = r.below(2) ? clamps[r.below(6)] : uint32_t(r.next()) & 0x1F1F;
  in.mask = shuffle || r.below(2) ? 0xFFFFFFFF
                                  : uint32_t(r.next()) | 1u << r.below(32);
  if (!shuffle && r.below(4) == 0)
    in.b = 0;
  return in;
}

//===----------------------------------------------------------------------===//
// Matrix operands
//===----------------------------------------------------------------------===//

enum class Element {
  F16,
  BF16,
  TF32,
  F32,
  F64,
  E4M3,
  E5M2,
  S8,
  U8,
  S4,
  U4,
  B1,
  S32
};

inline unsigned elementBits(Element e) {
  switch (e) {
  case Element::F16:
  case Element::BF16:
    return 16;
  case Element::TF32:
  case Element::F32:
  case Element::S32:
    return 32;
  case Element::F64:
    return 64;
  case Element::E4M3:
  case Element::E5M2:
  case Element::S8:
  case Element::U8:
    return 8;
  case Element::S4:
  case Element::U4:
    return 4;
  case Element::B1:
    return 1;
  }
  return 0;
}

inline void layoutOf(Element e, unsigned &exponent, unsigned &mantissa) {
  switch (e) {
  case Element::F16:
    exponent = 5, mantissa = 10;
    return;
  case Element::BF16:
    exponent = 8, mantissa = 7;
    return;
  case Element::E4M3:
    exponent = 4, mantissa = 3;
    return;
  case Element::E5M2:
    exponent = 5, mantissa = 2;
    return;
  case Element::F64:
    exponent = 11, mantissa = 52;
    return;
  default:
    exponent = 8, mantissa = 23;
  }
}

/// The code of a small integer (|value| <= 8; for E5M2 of at most 3 significant
/// bits), exact in every float type.
inline uint64_t smallInteger(Element e, int value) {
  if (elementBits(e) < 8 || e == Element::S8 || e == Element::U8 ||
      e == Element::S32)
    return uint64_t(value);
  unsigned exponent, mantissa;
  layoutOf(e, exponent, mantissa);
  if (!value)
    return 0;
  uint64_t sign = value < 0, magnitude = sign ? -value : value;
  unsigned top = 0;
  while (magnitude >> (top + 1))
    ++top;
  uint64_t m = (magnitude ^ (1ull << top)) << mantissa >> top;
  uint64_t bias = (1ull << (exponent - 1)) - 1;
  return sign << (exponent + mantissa) | (bias + top) << mantissa | m;
}

/// What an instance of a float MMA is made of.
enum Regime {
  SmallIntegers, ///< every sum exact: equality with any model
  UnitRandom,    ///< magnitudes in [2^-6, 2)
  WideExponents, ///< exponents +-12 around one
  AnyBits,       ///< infinities, NaN, subnormals
  LargeC,        ///< accumulator 2^18 times the products: alignment, truncation
  Subnormals,    ///< subnormal operands
  Sparse,        ///< one or two products next to an accumulator: rounding
  Huge,          ///< overflow of products and sums
  NumRegimes
};

/// One code of operand \p role (0 = A, 1 = B, 2 = C).
inline uint64_t mmaElement(Element e, Regime regime, unsigned role, Random &r) {
  unsigned bits = elementBits(e);
  if (bits < 8 || e == Element::S8 || e == Element::U8)
    return r.next() & ((1ull << bits) - 1);
  if (e == Element::S32) {
    // Near overflow sometimes, to tell wrapping from saturation.
    uint64_t v = r.next();
    uint32_t small = uint32_t(int32_t(uint32_t(v)) >> 12);
    return v >> 62 == 0   ? 0x7FFFFFFF - (small & 0xFFF)
           : v >> 62 == 1 ? 0x80000000u + (small & 0xFFF)
                          : small;
  }
  unsigned exponent, mantissa;
  layoutOf(e, exponent, mantissa);
  uint64_t bias = (1ull << (exponent - 1)) - 1;
  uint64_t sign = (r.next() & 1) << (exponent + mantissa);
  uint64_t m = r.next() & ((1ull << mantissa) - 1);
  if (e == Element::TF32)
    m &= ~0x1FFFull; // the low bits are undefined to the ISA
  auto make = [&](int64_t ex) {
    if (ex > int64_t(bias))
      ex = int64_t(bias);
    if (ex < 1 - int64_t(bias))
      return sign | m; // subnormal
    return sign | uint64_t(ex + int64_t(bias)) << mantissa | m;
  };
  switch (regime) {
  case SmallIntegers:
    return smallInteger(e,
                        int(r.below(role == 2 ? 9 : 7)) - (role == 2 ? 4 : 3));
  case UnitRandom:
    return make(-int64_t(r.below(7)));
  case WideExponents:
    return make(int64_t(r.below(25)) - 12);
  case AnyBits:
    // Mostly finite, so that some outputs are not NaN.
    if (r.below(16))
      return make(-int64_t(r.below(7)));
    if (e == Element::TF32)
      return (r.next() & 0xFFFFFFFF) & ~0x1FFFull;
    return bits == 64 ? r.next() : r.next() & ((1ull << bits) - 1);
  case LargeC:
    return make(role == 2 ? (e == Element::F16 ? 12 : 18) + int64_t(r.below(3))
                          : -int64_t(r.below(3)));
  case Subnormals:
    return role == 2    ? (r.below(4) ? 0 : sign | (m >> 8))
           : r.below(2) ? sign | m
                        : make(0);
  case Sparse:
    if (role == 2)
      return make(0);
    return r.below(8) ? 0 : make(-int64_t(r.below(14)));
  default: // Huge
    return make(int64_t(bias) - int64_t(r.below(role == 2      ? 2
                                                : exponent > 5 ? 70
                                                               : 3)));
  }
}

constexpr unsigned mmaInstances = 32;
inline Regime mmaRegime(unsigned instance) {
  return Regime(instance % NumRegimes);
}

/// Fills `registers` x 32 lanes of 32-bit words with the operand of one
/// instance; an f64 takes two registers, low word first.
inline void mmaOperand(Element e, unsigned role, uint64_t seed,
                       unsigned instance, unsigned registers, uint32_t *words) {
  Random r(seed ^ mix(instance * 3 + role));
  Regime regime = mmaRegime(instance);
  unsigned bits = elementBits(e);
  for (unsigned reg = 0; reg < registers; ++reg)
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (bits == 64) {
        if (reg % 2)
          continue;
        uint64_t v = mmaElement(e, regime, role, r);
        words[reg * 32 + lane] = uint32_t(v);
        words[(reg + 1) * 32 + lane] = uint32_t(v >> 32);
        continue;
      }
      uint32_t word = 0;
      if (bits < 8)
        word = uint32_t(r.next());
      else
        for (unsigned i = 0; i < 32 / bits; ++i)
          word |= uint32_t(mmaElement(e, regime, role, r)) << (bits * i);
      words[reg * 32 + lane] = word;
    }
}

//===----------------------------------------------------------------------===//
// wgmma operands
//===----------------------------------------------------------------------===//

enum WgmmaFlags {
  NegateA = 1,
  NegateB = 2,
  TransA = 4,
  TransB = 8,
  Satfinite = 16,
  Inexact = 32,
  AndPopc = 64
};

/// A's and B's windows of shared memory, in bytes; B follows A.
constexpr uint32_t wgmmaWindow = 64 * 1024;

/// Byte offsets of a matrix descriptor; `start` is relative to the operand's
/// window, which is aligned to 1024 bytes. swizzle counts 16-byte units of the
/// pattern's rows: 1 (none), 2, 4 or 8.
struct WgmmaOperand {
  uint32_t swizzle, start, leading, stride, baseOffset;
};
struct WgmmaSetup {
  WgmmaOperand a, b;
  bool scaleD;
};

constexpr unsigned wgmmaInstances = 16;
inline unsigned wgmmaCount(unsigned flags) {
  return flags & Inexact ? unsigned(NumRegimes) : wgmmaInstances;
}

inline WgmmaOperand wgmmaOperand(bool transposed, unsigned rows, bool plain,
                                 unsigned instance, Random &r) {
  WgmmaOperand o = {1, 0, 128, 256, 0};
  if (plain)
    return o;
  o.swizzle = 1u << r.below(4);
  uint32_t pattern = 128 * o.swizzle;
  if (o.swizzle == 1) {
    o.start = 16 * r.below(512);
    o.leading = 16 * r.below(72);
    o.stride = 16 * r.below(72);
    return o;
  }
  o.start = pattern * r.below(8);
  if (transposed) {
    o.leading = pattern * (1 + r.below(4));
    o.stride = pattern * (1 + r.below(4));
  } else {
    o.start += 32 * r.below(o.swizzle / 2); // a step along K inside the pattern
    o.leading = 16 * r.below(64);           // without meaning in these layouts
    o.stride = pattern * (1 + r.below(rows > 128 ? 1 : 2));
  }
  // The last instances start in the middle of the pattern, with and without
  // saying so in the base offset.
  if (instance >= 10) {
    o.start += 128 * r.below(o.swizzle);
    if (instance < 13)
      o.baseOffset = (o.start >> 7) & 7;
  }
  return o;
}

inline WgmmaSetup wgmmaSetup(uint64_t seed, unsigned n, unsigned flags,
                             unsigned instance) {
  Random r(seed ^ mix(instance + 77));
  WgmmaSetup s;
  bool plain = (flags & Inexact) != 0;
  s.a = wgmmaOperand(flags & TransA, 64, plain, instance, r);
  s.b = wgmmaOperand(flags & TransB, n, plain, instance, r);
  s.scaleD = plain || r.below(4) != 0;
  return s;
}

inline Regime wgmmaRegime(unsigned flags, unsigned instance) {
  return flags & Inexact ? Regime(instance) : SmallIntegers;
}

/// Fills one operand's window of shared memory (all of it, as words).
inline void wgmmaShared(Element e, unsigned role, uint64_t seed, unsigned flags,
                        unsigned instance, uint32_t *words) {
  Random r(seed ^ mix(instance * 5 + role + 1000));
  Regime regime = wgmmaRegime(flags, instance);
  unsigned bits = elementBits(e);
  for (unsigned w = 0; w < wgmmaWindow / 4; ++w) {
    uint32_t word = 0;
    if (bits < 8)
      word = uint32_t(r.next());
    else
      for (unsigned i = 0; i < 32 / bits; ++i)
        word |= uint32_t(mmaElement(e, regime, role, r)) << (bits * i);
    words[w] = word;
  }
}

/// Register operands, [warp][register][lane].
inline void wgmmaRegisters(Element e, unsigned role, uint64_t seed,
                           unsigned flags, unsigned instance,
                           unsigned registers, uint32_t *words) {
  Random r(seed ^ mix(instance * 5 + role + 2000));
  Regime regime = wgmmaRegime(flags, instance);
  unsigned bits = elementBits(e);
  for (unsigned w = 0; w < 4 * registers * 32; ++w) {
    uint32_t word = 0;
    if (bits < 8)
      word = uint32_t(r.next());
    else
      for (unsigned i = 0; i < 32 / bits; ++i)
        word |= uint32_t(mmaElement(e, regime, role, r)) << (bits * i);
    words[w] = word;
  }
}

//===----------------------------------------------------------------------===//
// ldmatrix, stmatrix, movmatrix operands
//===----------------------------------------------------------------------===//

constexpr unsigned matrixInstances = 16;

struct MatrixInput {
  uint32_t shared[128];    ///< 32 rows of 16 bytes
  uint32_t rows[32];       ///< a permutation: the row that each lane addresses
  uint32_t registers[128]; ///< [4 registers][32 lanes], for the stores
};

inline MatrixInput matrixInput(uint64_t seed, unsigned instance) {
  Random r(seed ^ mix(instance));
  MatrixInput in;
  for (uint32_t &v : in.shared)
    v = uint32_t(r.next());
  for (uint32_t &v : in.registers)
    v = uint32_t(r.next());
  for (unsigned i = 0; i < 32; ++i)
    in.rows[i] = i;
  for (unsigned i = 31; i > 0 && instance; --i) {
    unsigned j = r.below(i + 1);
    uint32_t t = in.rows[i];
    in.rows[i] = in.rows[j];
    in.rows[j] = t;
  }
  return in;
}

//===----------------------------------------------------------------------===//
// Result files
//===----------------------------------------------------------------------===//

struct Case {
  std::string name;
  uint32_t count = 0;
  uint8_t bytes = 0; ///< per result
  bool full = false; ///< every value stored
  std::vector<uint64_t> hashes;
  std::vector<uint8_t> stored;
};

inline bool isStored(bool full, uint32_t index) {
  return full || index < 512 || index % 64 == 0;
}

inline uint64_t blockHash(const uint8_t *data, size_t size) {
  uint64_t h = 0;
  for (size_t i = 0; i < size; i += 8) {
    uint64_t word = 0;
    memcpy(&word, data + i, size - i < 8 ? size - i : 8);
    h = mix(h ^ word) + i;
  }
  return h;
}

inline Case makeCase(const std::string &name, const void *data, uint32_t count,
                     unsigned bytes, bool full) {
  Case c;
  c.name = name;
  c.count = count;
  c.bytes = uint8_t(bytes);
  c.full = full;
  const uint8_t *p = static_cast<const uint8_t *>(data);
  for (uint32_t i = 0; i < count; ++i)
    if (isStored(full, i))
      c.stored.insert(c.stored.end(), p + size_t(i) * bytes,
                      p + size_t(i + 1) * bytes);
  if (!full)
    for (uint32_t i = 0; i < count; i += 256)
      c.hashes.push_back(
          blockHash(p + size_t(i) * bytes,
                    size_t(count - i < 256 ? count - i : 256) * bytes));
  return c;
}

/// What became of a case that runs in a process of its own ("status" of its
/// file, one word per case): 0, or one of these plus the CUDA error number.
[[maybe_unused]] constexpr uint32_t statusRefused = 10000; ///< map refused
[[maybe_unused]] constexpr uint32_t statusFailed = 20000;  ///< launch failed
[[maybe_unused]] constexpr uint32_t statusLost = 30000;    ///< process ended

constexpr char magic[9] = "HTRUTH01";

inline bool writeFile(const std::string &path, const std::vector<Case> &cases) {
  FILE *f = fopen(path.c_str(), "wb");
  if (!f)
    return false;
  bool ok = true;
  auto put = [&](const void *p, size_t n) {
    ok = ok && (n == 0 || fwrite(p, 1, n, f) == n);
  };
  put(magic, 8);
  uint32_t n = uint32_t(cases.size());
  put(&n, 4);
  for (const Case &c : cases) {
    uint16_t length = uint16_t(c.name.size());
    uint8_t full = c.full;
    put(&length, 2);
    put(c.name.data(), length);
    put(&c.count, 4);
    put(&c.bytes, 1);
    put(&full, 1);
    put(c.hashes.data(), c.hashes.size() * 8);
    put(c.stored.data(), c.stored.size());
  }
  return fclose(f) == 0 && ok;
}

/// Parses the bytes of a result file; false when they are malformed.
inline bool parseFile(const uint8_t *data, size_t size,
                      std::vector<Case> &cases) {
  size_t at = 0;
  auto get = [&](void *p, size_t n) {
    if (size - at < n)
      return false;
    if (n)
      memcpy(p, data + at, n);
    at += n;
    return true;
  };
  char head[8];
  uint32_t n;
  if (!get(head, 8) || memcmp(head, magic, 8) != 0 || !get(&n, 4))
    return false;
  for (uint32_t i = 0; i < n; ++i) {
    Case c;
    uint16_t length;
    uint8_t full;
    if (!get(&length, 2) || size - at < length)
      return false;
    c.name.assign(reinterpret_cast<const char *>(data + at), length);
    at += length;
    if (!get(&c.count, 4) || !get(&c.bytes, 1) || !get(&full, 1) ||
        c.count > (1u << 24))
      return false;
    c.full = full;
    size_t stored = 0;
    for (uint32_t k = 0; k < c.count; ++k)
      stored += isStored(c.full, k);
    c.hashes.resize(c.full ? 0 : (c.count + 255) / 256);
    c.stored.resize(stored * c.bytes);
    if (!get(c.hashes.data(), c.hashes.size() * 8) ||
        !get(c.stored.data(), c.stored.size()))
      return false;
    cases.push_back(std::move(c));
  }
  return at == size;
}

} // namespace truth

#endif // HUMMING_SCRIPTS_HARDWARETRUTH_TRUTH_H
