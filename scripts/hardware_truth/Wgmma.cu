//===- Wgmma.cu - wgmma on the GPU ------------------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.cuh"
#include "WgmmaRegisters.cuh"

using truth::Element;

struct DeviceSetup {
  uint64_t highA, highB; ///< descriptor without the start address
  uint32_t startA, startB;
  uint32_t scaleD;
};

#define G(NAME, PTX, TAIL, N, K, A, B, D, R, MODE, FLAGS)                      \
  static __global__ void k_##NAME(const DeviceSetup *setups,                   \
                                  const uint32_t *shared, const uint32_t *pa,  \
                                  const uint32_t *pc, uint32_t *pd) {          \
    extern __shared__ uint32_t raw[];                                          \
    uint32_t base = uint32_t(__cvta_generic_to_shared(raw));                   \
    uint32_t aligned = (base + 1023) & ~1023u;                                 \
    uint32_t *window = raw + (aligned - base) / 4;                             \
    unsigned at = blockIdx.x, lane = threadIdx.x % 32,                         \
             warp = threadIdx.x / 32;                                          \
    const unsigned words = 2 * truth::wgmmaWindow / 4;                         \
    for (unsigned i = threadIdx.x; i < words; i += 128)                        \
      window[i] = shared[size_t(at) * words + i];                              \
    asm volatile("fence.proxy.async;" ::: "memory");                           \
    __syncthreads();                                                           \
    DeviceSetup s = setups[at];                                                \
    uint64_t descA = s.highA | (((aligned + s.startA) & 0x3FFFF) >> 4);        \
    uint64_t descB =                                                           \
        s.highB |                                                              \
        (((aligned + truth::wgmmaWindow + s.startB) & 0x3FFFF) >> 4);          \
    uint32_t scaleD = s.scaleD, a[4], d[R];                                    \
    for (int i = 0; i < 4; ++i)                                                \
      a[i] = pa[((at * 4 + warp) * 4 + i) * 32 + lane];                        \
    for (int i = 0; i < R; ++i)                                                \
      d[i] = pc[((at * 4 + warp) * R + i) * 32 + lane];                        \
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                    \
    MODE##_##R(PTX, TAIL);                                                     \
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");             \
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");             \
    for (int i = 0; i < R; ++i)                                                \
      asm volatile("" : "+r"(d[i])::"memory");                                 \
    for (int i = 0; i < R; ++i)                                                \
      pd[((at * 4 + warp) * R + i) * 32 + lane] = d[i];                        \
    (void)descA;                                                               \
  }
#include "WgmmaCases.def"

struct WgmmaCase {
  const char *name;
  void (*kernel)(const DeviceSetup *, const uint32_t *, const uint32_t *,
                 const uint32_t *, uint32_t *);
  unsigned n;
  Element a, b, d;
  unsigned registers, flags;
};
static const WgmmaCase table[] = {
#define G(NAME, PTX, TAIL, N, K, A, B, D, R, MODE, FLAGS)                      \
  {#NAME, k_##NAME, N, Element::A, Element::B, Element::D, R, FLAGS},
#include "WgmmaCases.def"
};

static uint64_t descriptorHigh(const truth::WgmmaOperand &o) {
  uint64_t mode = o.swizzle == 1   ? 0
                  : o.swizzle == 8 ? 1
                  : o.swizzle == 4 ? 2
                                   : 3;
  return uint64_t((o.leading & 0x3FFFF) >> 4) << 16 |
         uint64_t((o.stride & 0x3FFFF) >> 4) << 32 |
         uint64_t(o.baseOffset) << 49 | mode << 62;
}

std::vector<truth::Case> runWgmma() {
  std::vector<truth::Case> cases;
  const size_t windowWords = truth::wgmmaWindow / 4;
  for (const WgmmaCase &c : table) {
    uint64_t seed = truth::nameHash(c.name);
    unsigned n = truth::wgmmaCount(c.flags), r = c.registers;
    Buffer<DeviceSetup> setups(n);
    Buffer<uint32_t> shared(n * 2 * windowWords), a(n * 4 * 4 * 32),
        acc(n * 4 * r * 32), d(n * 4 * r * 32);
    for (unsigned i = 0; i < n; ++i) {
      truth::WgmmaSetup s = truth::wgmmaSetup(seed, c.n, c.flags, i);
      setups[i] = {descriptorHigh(s.a), descriptorHigh(s.b), s.a.start,
                   s.b.start, s.scaleD};
      uint32_t *window = shared.data + i * 2 * windowWords;
      truth::wgmmaShared(c.a, 0, seed, c.flags, i, window);
      truth::wgmmaShared(c.b, 1, seed, c.flags, i, window + windowWords);
      truth::wgmmaRegisters(c.a, 0, seed, c.flags, i, 4,
                            a.data + i * 4 * 4 * 32);
      truth::wgmmaRegisters(c.d, 2, seed, c.flags, i, r,
                            acc.data + i * 4 * r * 32);
    }
    const unsigned bytes = 2 * truth::wgmmaWindow + 1024;
    CHECK_CUDA(cudaFuncSetAttribute(
        c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    c.kernel<<<n, 128, bytes>>>(setups.data, shared.data, a.data, acc.data,
                                d.data);
    checkLaunch(c.name);
    cases.push_back(truth::makeCase(c.name, d.data, uint32_t(d.size), 4,
                                    (c.flags & truth::Inexact) != 0));
  }
  return cases;
}
