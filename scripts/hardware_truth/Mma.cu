//===- Mma.cu - mma.sync on the GPU -----------------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.cuh"
#include <type_traits>

using truth::Element;

// MMA_<D>_<A>_<B> registers; C is the constraint.
#define MMA_2_1_1(PTX, C)                                                      \
  asm volatile(PTX " {%0,%1},{%2},{%3},{%4,%5};"                               \
               : "=" C(d[0]), "=" C(d[1])                                      \
               : C(a[0]), C(b[0]), C(c[0]), C(c[1]))
#define MMA_4_2_1(PTX, C)                                                      \
  asm volatile(PTX " {%0,%1,%2,%3},{%4,%5},{%6},{%7,%8,%9,%10};"               \
               : "=" C(d[0]), "=" C(d[1]), "=" C(d[2]), "=" C(d[3])            \
               : C(a[0]), C(a[1]), C(b[0]), C(c[0]), C(c[1]), C(c[2]),         \
                 C(c[3]))
#define MMA_4_4_2(PTX, C)                                                      \
  asm volatile(PTX " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"   \
               : "=" C(d[0]), "=" C(d[1]), "=" C(d[2]), "=" C(d[3])            \
               : C(a[0]), C(a[1]), C(a[2]), C(a[3]), C(b[0]), C(b[1]),         \
                 C(c[0]), C(c[1]), C(c[2]), C(c[3]))
#define MMA_2_2_1(PTX, C)                                                      \
  asm volatile(PTX " {%0,%1},{%2,%3},{%4},{%5,%6};"                            \
               : "=" C(d[0]), "=" C(d[1])                                      \
               : C(a[0]), C(a[1]), C(b[0]), C(c[0]), C(c[1]))
#define MMA_2_4_2(PTX, C)                                                      \
  asm volatile(PTX " {%0,%1},{%2,%3,%4,%5},{%6,%7},{%8,%9};"                   \
               : "=" C(d[0]), "=" C(d[1])                                      \
               : C(a[0]), C(a[1]), C(a[2]), C(a[3]), C(b[0]), C(b[1]),         \
                 C(c[0]), C(c[1]))
#define MMA_4_2_2(PTX, C)                                                      \
  asm volatile(PTX " {%0,%1,%2,%3},{%4,%5},{%6,%7},{%8,%9,%10,%11};"           \
               : "=" C(d[0]), "=" C(d[1]), "=" C(d[2]), "=" C(d[3])            \
               : C(a[0]), C(a[1]), C(b[0]), C(b[1]), C(c[0]), C(c[1]),         \
                 C(c[2]), C(c[3]))
#define MMA_8_2_2(PTX, C)                                                      \
  asm volatile(PTX " {%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9},{%10,%11},{%12,%13,%"   \
                   "14,%15,%16,%17,%18,%19};"                                  \
               : "=" C(d[0]), "=" C(d[1]), "=" C(d[2]), "=" C(d[3]),           \
                 "=" C(d[4]), "=" C(d[5]), "=" C(d[6]), "=" C(d[7])            \
               : C(a[0]), C(a[1]), C(b[0]), C(b[1]), C(c[0]), C(c[1]),         \
                 C(c[2]), C(c[3]), C(c[4]), C(c[5]), C(c[6]), C(c[7]))
#define MMA_4_8_4(PTX, C)                                                      \
  asm volatile(PTX " {%0,%1,%2,%3},{%4,%5,%6,%7,%8,%9,%10,%11},{%12,%13,%14,%" \
                   "15},{%16,%17,%18,%19};"                                    \
               : "=" C(d[0]), "=" C(d[1]), "=" C(d[2]), "=" C(d[3])            \
               : C(a[0]), C(a[1]), C(a[2]), C(a[3]), C(a[4]), C(a[5]),         \
                 C(a[6]), C(a[7]), C(b[0]), C(b[1]), C(b[2]), C(b[3]),         \
                 C(c[0]), C(c[1]), C(c[2]), C(c[3]))

// Registers lie as [instance][register][lane] words, those of f64 as pairs.
template <typename T>
__device__ T loadRegister(const uint32_t *p, unsigned r) {
  if constexpr (sizeof(T) == 8)
    return T(p[(2 * r + 1) * 32]) << 32 | p[2 * r * 32];
  else
    return p[r * 32];
}
template <typename T>
__device__ void storeRegister(uint32_t *p, unsigned r, T v) {
  if constexpr (sizeof(T) == 8) {
    p[2 * r * 32] = uint32_t(v);
    p[(2 * r + 1) * 32] = uint32_t(v >> 32);
  } else {
    p[r * 32] = v;
  }
}

#define WIDE(ACC) (Element::ACC == Element::F64)
#define M(NAME, PTX, m, n, k, A, B, ACC, nD, nA, nB, FLAGS)                    \
  static __global__ void k_##NAME(const uint32_t *pa, const uint32_t *pb,      \
                                  const uint32_t *pc, uint32_t *pd) {          \
    using T = std::conditional_t<WIDE(ACC), uint64_t, uint32_t>;               \
    const unsigned words = 32 * (sizeof(T) / 4);                               \
    unsigned at = blockIdx.x, lane = threadIdx.x;                              \
    T a[nA], b[nB], c[nD], d[nD];                                              \
    for (int i = 0; i < nA; ++i)                                               \
      a[i] = loadRegister<T>(pa + at * nA * words + lane, i);                  \
    for (int i = 0; i < nB; ++i)                                               \
      b[i] = loadRegister<T>(pb + at * nB * words + lane, i);                  \
    for (int i = 0; i < nD; ++i)                                               \
      c[i] = loadRegister<T>(pc + at * nD * words + lane, i);                  \
    RUN_##ACC(PTX, nD, nA, nB);                                                \
    for (int i = 0; i < nD; ++i)                                               \
      storeRegister<T>(pd + at * nD * words + lane, i, d[i]);                  \
  }
#define RUN_F32(PTX, D, A, B) MMA_##D##_##A##_##B(PTX, "r")
#define RUN_F16(PTX, D, A, B) MMA_##D##_##A##_##B(PTX, "r")
#define RUN_S32(PTX, D, A, B) MMA_##D##_##A##_##B(PTX, "r")
#define RUN_F64(PTX, D, A, B) MMA_##D##_##A##_##B(PTX, "l")
#include "MmaCases.def"

struct MmaCase {
  const char *name;
  void (*kernel)(const uint32_t *, const uint32_t *, const uint32_t *,
                 uint32_t *);
  Element a, b, acc;
  unsigned nD, nA, nB;
};
static const MmaCase table[] = {
#define M(NAME, PTX, m, n, k, A, B, ACC, nD, nA, nB, FLAGS)                    \
  {#NAME,                                                                      \
   k_##NAME,                                                                   \
   Element::A,                                                                 \
   Element::B,                                                                 \
   Element::ACC,                                                               \
   nD * (WIDE(ACC) + 1),                                                       \
   nA * (WIDE(ACC) + 1),                                                       \
   nB * (WIDE(ACC) + 1)},
#include "MmaCases.def"
};

std::vector<truth::Case> runMma() {
  std::vector<truth::Case> cases;
  for (const MmaCase &c : table) {
    const unsigned instances = truth::mmaInstances;
    uint64_t seed = truth::nameHash(c.name);
    Buffer<uint32_t> a(instances * c.nA * 32), b(instances * c.nB * 32),
        acc(instances * c.nD * 32), d(instances * c.nD * 32);
    for (unsigned i = 0; i < instances; ++i) {
      truth::mmaOperand(c.a, 0, seed, i, c.nA, a.data + i * c.nA * 32);
      truth::mmaOperand(c.b, 1, seed, i, c.nB, b.data + i * c.nB * 32);
      truth::mmaOperand(c.acc, 2, seed, i, c.nD, acc.data + i * c.nD * 32);
    }
    c.kernel<<<instances, 32>>>(a.data, b.data, acc.data, d.data);
    checkLaunch(c.name);
    cases.push_back(truth::makeCase(c.name, d.data, uint32_t(d.size), 4,
                                    c.acc != Element::S32));
  }
  return cases;
}
