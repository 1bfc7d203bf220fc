//===- Device.cuh -------------- Helpers of the device programs -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_SCRIPTS_HARDWARETRUTH_DEVICE_CUH
#define HUMMING_SCRIPTS_HARDWARETRUTH_DEVICE_CUH

#include "Truth.h"
#include <cstdlib>
#include <cuda_runtime.h>

/// Ends the program with a message: a half-made result file is worse than none.
#define CHECK_CUDA(CALL)                                                       \
  do {                                                                         \
    cudaError_t status = (CALL);                                               \
    if (status != cudaSuccess) {                                               \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #CALL,            \
              cudaGetErrorString(status));                                     \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

inline void checkLaunch(const char *name) {
  cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess)
    status = cudaDeviceSynchronize();
  if (status != cudaSuccess) {
    fprintf(stderr, "kernel %s: %s\n", name, cudaGetErrorString(status));
    exit(1);
  }
}

/// An array in managed memory, freed with its owner.
template <typename T>
struct Buffer {
  T *data = nullptr;
  size_t size = 0;
  explicit Buffer(size_t n) : size(n) {
    CHECK_CUDA(cudaMallocManaged(&data, (n ? n : 1) * sizeof(T)));
    memset(data, 0, (n ? n : 1) * sizeof(T));
  }
  ~Buffer() { cudaFree(data); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  T &operator[](size_t i) { return data[i]; }
};

/// What one case of an isolated family gave.
struct IsolatedResult {
  std::string name;
  uint32_t status = 0;
  truth::Case result; ///< Where status is 0.
};

/// Waits for the kernel; false, and a status, when it failed. The context is
/// lost then, so that the process must not go on.
inline bool launchWorked(IsolatedResult &r) {
  cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess)
    status = cudaDeviceSynchronize();
  if (status != cudaSuccess)
    r.status = truth::statusFailed + uint32_t(status);
  return status == cudaSuccess;
}

unsigned tensorCount();
IsolatedResult runTensorCase(unsigned index);
unsigned kernelCount();
IsolatedResult runKernelCase(unsigned index);

using ScalarKernel = void (*)(const uint64_t *, const uint64_t *,
                              const uint64_t *, uint64_t *, uint32_t);
struct ScalarCase {
  const char *name;
  ScalarKernel kernel;
  truth::Kind out, in;
  unsigned arity;
  bool full;
};
truth::Case runScalar(const ScalarCase &c);

std::vector<truth::Case> runArithmetic();
std::vector<truth::Case> runConvert();
std::vector<truth::Case> runInteger();
std::vector<truth::Case> runMma();
std::vector<truth::Case> runMatrix();
std::vector<truth::Case> runWgmma();

// Register types and constraints by kind; 8-bit values live in 16-bit
// registers.
#define REG_H uint16_t
#define REG_B uint16_t
#define REG_Q uint16_t
#define REG_I8 uint16_t
#define REG_I16 uint16_t
#define REG_S uint32_t
#define REG_HH uint32_t
#define REG_BB uint32_t
#define REG_I32 uint32_t
#define REG_D uint64_t
#define REG_I64 uint64_t
#define CON_H "h"
#define CON_B "h"
#define CON_Q "h"
#define CON_I8 "h"
#define CON_I16 "h"
#define CON_S "r"
#define CON_HH "r"
#define CON_BB "r"
#define CON_I32 "r"
#define CON_D "l"
#define CON_I64 "l"

#define SCALAR_KERNEL(NAME, PTX, OUT, IN)                                      \
  static __global__ void k_##NAME(const uint64_t *a, const uint64_t *b,        \
                                  const uint64_t *c, uint64_t *out,            \
                                  uint32_t n) {                                \
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;                        \
    if (i >= n)                                                                \
      return;                                                                  \
    REG_##IN x = REG_##IN(a[i]), y = REG_##IN(b[i]), z = REG_##IN(c[i]);       \
    REG_##OUT r;                                                               \
    asm volatile(PTX                                                           \
                 : "=" CON_##OUT(r)                                            \
                 : CON_##IN(x), CON_##IN(y), CON_##IN(z));                     \
    out[i] = r;                                                                \
  }

#endif // HUMMING_SCRIPTS_HARDWARETRUTH_DEVICE_CUH
