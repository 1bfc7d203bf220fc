//===- Matrix.cu - ldmatrix, stmatrix and movmatrix on the GPU --*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.cuh"

// 32 rows of 16 bytes in shared memory; lane i's address is row rows[i].
#define LOAD(NAME, PTX, N, TEXT, ...)                                          \
  static __global__ void NAME(const uint32_t *shared, const uint32_t *rows,    \
                              const uint32_t *, uint32_t *out) {               \
    __shared__ __align__(128) uint32_t window[128];                            \
    unsigned lane = threadIdx.x, at = blockIdx.x;                              \
    for (unsigned i = lane; i < 128; i += 32)                                  \
      window[i] = shared[at * 128 + i];                                        \
    __syncwarp();                                                              \
    uint32_t address = uint32_t(__cvta_generic_to_shared(window)) +            \
                       16 * rows[at * 32 + lane];                              \
    uint32_t r[4] = {0, 0, 0, 0};                                              \
    asm volatile(PTX " " TEXT ", [%" #N "];"                                   \
                 : __VA_ARGS__                                                 \
                 : "r"(address)                                                \
                 : "memory");                                                  \
    for (unsigned i = 0; i < 4; ++i)                                           \
      out[(at * 4 + i) * 32 + lane] = r[i];                                    \
  }
#define STORE(NAME, PTX, TEXT, ...)                                            \
  static __global__ void NAME(const uint32_t *shared, const uint32_t *rows,    \
                              const uint32_t *in, uint32_t *out) {             \
    __shared__ __align__(128) uint32_t window[128];                            \
    unsigned lane = threadIdx.x, at = blockIdx.x;                              \
    for (unsigned i = lane; i < 128; i += 32)                                  \
      window[i] = shared[at * 128 + i];                                        \
    __syncwarp();                                                              \
    uint32_t address = uint32_t(__cvta_generic_to_shared(window)) +            \
                       16 * rows[at * 32 + lane];                              \
    uint32_t r[4];                                                             \
    for (unsigned i = 0; i < 4; ++i)                                           \
      r[i] = in[(at * 4 + i) * 32 + lane];                                     \
    asm volatile(PTX " [%0], " TEXT ";" ::"r"(address), __VA_ARGS__            \
                 : "memory");                                                  \
    __syncwarp();                                                              \
    for (unsigned i = lane; i < 128; i += 32)                                  \
      out[at * 128 + i] = window[i];                                           \
  }
#define OUT1 "=r"(r[0])
#define OUT2 OUT1, "=r"(r[1])
#define OUT4 OUT2, "=r"(r[2]), "=r"(r[3])
#define IN1 "r"(r[0])
#define IN2 IN1, "r"(r[1])
#define IN4 IN2, "r"(r[2]), "r"(r[3])
#define LD "ldmatrix.sync.aligned.m8n8."
#define ST "stmatrix.sync.aligned.m8n8."
LOAD(ldmatrix_x1, LD "x1.shared.b16", 1, "{%0}", OUT1)
LOAD(ldmatrix_x2, LD "x2.shared.b16", 2, "{%0,%1}", OUT2)
LOAD(ldmatrix_x4, LD "x4.shared.b16", 4, "{%0,%1,%2,%3}", OUT4)
LOAD(ldmatrix_x1_trans, LD "x1.trans.shared.b16", 1, "{%0}", OUT1)
LOAD(ldmatrix_x2_trans, LD "x2.trans.shared.b16", 2, "{%0,%1}", OUT2)
LOAD(ldmatrix_x4_trans, LD "x4.trans.shared.b16", 4, "{%0,%1,%2,%3}", OUT4)
STORE(stmatrix_x1, ST "x1.shared.b16", "{%1}", IN1)
STORE(stmatrix_x2, ST "x2.shared.b16", "{%1,%2}", IN2)
STORE(stmatrix_x4, ST "x4.shared.b16", "{%1,%2,%3,%4}", IN4)
STORE(stmatrix_x1_trans, ST "x1.trans.shared.b16", "{%1}", IN1)
STORE(stmatrix_x2_trans, ST "x2.trans.shared.b16", "{%1,%2}", IN2)
STORE(stmatrix_x4_trans, ST "x4.trans.shared.b16", "{%1,%2,%3,%4}", IN4)

static __global__ void movmatrix(const uint32_t *, const uint32_t *,
                                 const uint32_t *in, uint32_t *out) {
  unsigned lane = threadIdx.x, at = blockIdx.x;
  for (unsigned i = 0; i < 4; ++i) {
    uint32_t r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;"
                 : "=r"(r)
                 : "r"(in[(at * 4 + i) * 32 + lane]));
    out[(at * 4 + i) * 32 + lane] = r;
  }
}

struct MatrixCase {
  const char *name;
  void (*kernel)(const uint32_t *, const uint32_t *, const uint32_t *,
                 uint32_t *);
};
static const MatrixCase table[] = {
    {"ldmatrix_x1", ldmatrix_x1},
    {"ldmatrix_x2", ldmatrix_x2},
    {"ldmatrix_x4", ldmatrix_x4},
    {"ldmatrix_x1_trans", ldmatrix_x1_trans},
    {"ldmatrix_x2_trans", ldmatrix_x2_trans},
    {"ldmatrix_x4_trans", ldmatrix_x4_trans},
    {"stmatrix_x1", stmatrix_x1},
    {"stmatrix_x2", stmatrix_x2},
    {"stmatrix_x4", stmatrix_x4},
    {"stmatrix_x1_trans", stmatrix_x1_trans},
    {"stmatrix_x2_trans", stmatrix_x2_trans},
    {"stmatrix_x4_trans", stmatrix_x4_trans},
    {"movmatrix", movmatrix},
};

std::vector<truth::Case> runMatrix() {
  std::vector<truth::Case> cases;
  const unsigned n = truth::matrixInstances;
  for (const MatrixCase &c : table) {
    uint64_t seed = truth::nameHash(c.name);
    Buffer<uint32_t> shared(n * 128), rows(n * 32), in(n * 128), out(n * 128);
    for (unsigned i = 0; i < n; ++i) {
      truth::MatrixInput input = truth::matrixInput(seed, i);
      memcpy(&shared[i * 128], input.shared, sizeof(input.shared));
      memcpy(&rows[i * 32], input.rows, sizeof(input.rows));
      memcpy(&in[i * 128], input.registers, sizeof(input.registers));
    }
    c.kernel<<<n, 32>>>(shared.data, rows.data, in.data, out.data);
    checkLaunch(c.name);
    cases.push_back(truth::makeCase(c.name, out.data, n * 128, 4, false));
  }
  return cases;
}
