//===- Integer.cu -------- Bit and warp instructions on the GPU -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.cuh"

using truth::Kind;

#define X(NAME, PTX, OUT, IN, ARITY, ...) SCALAR_KERNEL(NAME, PTX, OUT, IN)
#define W(NAME, PTX, ...)                                                      \
  static __global__ void w_##NAME(const uint32_t *values, const uint32_t *b,   \
                                  const uint32_t *c, const uint32_t *mask,     \
                                  uint32_t *out, uint32_t n) {                 \
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;                        \
    if (i >= n)                                                                \
      return;                                                                  \
    uint32_t warp = i / 32, m = mask[warp], r;                                 \
    if (m >> (i % 32) & 1) {                                                   \
      asm volatile(PTX                                                         \
                   : "=&r"(r)                                                  \
                   : "r"(values[i]), "r"(b[warp]), "r"(c[warp]), "r"(m));      \
      out[i] = r;                                                              \
    }                                                                          \
  }
#include "IntegerCases.def"

static const ScalarCase table[] = {
#define X(NAME, PTX, OUT, IN, ARITY, ...)                                      \
  {#NAME, k_##NAME, Kind::OUT, Kind::IN, ARITY, false},
#include "IntegerCases.def"
};

struct WarpCase {
  const char *name;
  void (*kernel)(const uint32_t *, const uint32_t *, const uint32_t *,
                 const uint32_t *, uint32_t *, uint32_t);
};
static const WarpCase warpTable[] = {
#define W(NAME, PTX, ...) {#NAME, w_##NAME},
#include "IntegerCases.def"
};

std::vector<truth::Case> runInteger() {
  std::vector<truth::Case> cases;
  for (const ScalarCase &c : table)
    cases.push_back(runScalar(c));
  const uint32_t warps = truth::numWarps, n = 32 * warps;
  for (const WarpCase &c : warpTable) {
    uint64_t seed = truth::nameHash(c.name);
    Buffer<uint32_t> values(n), b(warps), d(warps), mask(warps), out(n);
    for (uint32_t w = 0; w < warps; ++w) {
      truth::WarpInput in = truth::warpInput(c.name, seed, w);
      memcpy(&values[32 * w], in.values, sizeof(in.values));
      b[w] = in.b;
      d[w] = in.c;
      mask[w] = in.mask;
    }
    c.kernel<<<n / 128, 128>>>(values.data, b.data, d.data, mask.data, out.data,
                               n);
    checkLaunch(c.name);
    cases.push_back(truth::makeCase(c.name, out.data, n, 4, false));
  }
  return cases;
}
