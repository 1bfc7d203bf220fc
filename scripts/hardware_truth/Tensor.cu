//===- Tensor.cu - cp.async.bulk.tensor on the GPU --------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.cuh"
#include "TensorCases.h"
#include <cuda.h>

using truth::TensorCase;

#define COORDS1 "{%2}"
#define COORDS2 "{%2,%3}"
#define COORDS3 "{%2,%3,%4}"
#define COORDS4 "{%2,%3,%4,%5}"
#define COORDS5 "{%2,%3,%4,%5,%6}"
#define LOAD(R)                                                                \
  asm volatile("cp.async.bulk.tensor." #R                                      \
               "d.shared::cluster.global.mbarrier::complete_tx::bytes "        \
               "[%0], [%1, " COORDS##R "], [%7];" ::"r"(address),              \
               "l"(map), "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x4),          \
               "r"(barrier)                                                    \
               : "memory")
#define STORE(R)                                                               \
  asm volatile("cp.async.bulk.tensor." #R                                      \
               "d.global.shared::cta.bulk_group [%1, " COORDS##R               \
               "], [%0];" ::"r"(address),                                      \
               "l"(map), "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x4)           \
               : "memory")

static __global__ void copyBox(const __grid_constant__ CUtensorMap tensorMap,
                               unsigned rank, bool store, int x0, int x1,
                               int x2, int x3, int x4, uint32_t offset,
                               uint32_t bytes, const uint32_t *init,
                               uint32_t *out) {
  extern __shared__ uint32_t raw[];
  __shared__ __align__(8) uint64_t barrierObject;
  uint32_t base = uint32_t(__cvta_generic_to_shared(raw));
  uint32_t aligned = (base + 1023) & ~1023u;
  uint32_t *window = raw + (aligned - base) / 4;
  uint32_t barrier = uint32_t(__cvta_generic_to_shared(&barrierObject));
  uint32_t address = aligned + offset;
  uint64_t map = reinterpret_cast<uint64_t>(&tensorMap);
  const unsigned words = truth::tensorSharedBytes / 4;
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x)
    window[i] = init[i];
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    if (store) {
      switch (rank) {
      case 1:
        STORE(1);
        break;
      case 2:
        STORE(2);
        break;
      case 3:
        STORE(3);
        break;
      case 4:
        STORE(4);
        break;
      default:
        STORE(5);
        break;
      }
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    } else {
      asm volatile(
          "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier),
          "r"(bytes)
          : "memory");
      switch (rank) {
      case 1:
        LOAD(1);
        break;
      case 2:
        LOAD(2);
        break;
      case 3:
        LOAD(3);
        break;
      case 4:
        LOAD(4);
        break;
      default:
        LOAD(5);
        break;
      }
    }
  }
  if (!store) {
    // Bounded: a wrong byte count must not hang the program.
    uint32_t done = 0;
    for (int tries = 0; tries < 20000 && !done; ++tries) {
      asm volatile(
          "{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], "
          "0; selp.b32 %0, 1, 0, p;}"
          : "=r"(done)
          : "r"(barrier)
          : "memory");
      if (!done)
        __nanosleep(100);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x)
      out[i] = window[i];
    if (threadIdx.x == 0)
      out[words] = done;
  }
}

using EncodeTiled = CUresult (*)(CUtensorMap *, CUtensorMapDataType, cuuint32_t,
                                 void *, const cuuint64_t *, const cuuint64_t *,
                                 const cuuint32_t *, const cuuint32_t *,
                                 CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill);

unsigned tensorCount() {
  return unsigned(sizeof(truth::tensorCases) / sizeof(truth::tensorCases[0]));
}

/// Runs one case: its name, its status (see isolatedFamily) and its result.
IsolatedResult runTensorCase(unsigned index) {
  const TensorCase &c = truth::tensorCases[index];
  IsolatedResult r;
  r.name = c.name;
  void *entry = nullptr;
  cudaDriverEntryPointQueryResult query;
  CHECK_CUDA(cudaGetDriverEntryPointByVersion(
      "cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &query));
  if (query != cudaDriverEntryPointSuccess || !entry) {
    fprintf(stderr, "the driver has no cuTensorMapEncodeTiled\n");
    exit(1);
  }
  EncodeTiled encode = reinterpret_cast<EncodeTiled>(entry);
  const uint32_t words = truth::tensorSharedBytes / 4;
  const uint32_t globalWords = truth::tensorGlobalBytes / 4;
  uint32_t *global;
  CHECK_CUDA(cudaMalloc(&global, truth::tensorGlobalBytes));
  uint64_t seed = truth::nameHash(c.name);
  std::vector<uint32_t> input(globalWords);
  for (uint32_t i = 0; i < globalWords; ++i)
    input[i] = truth::tensorInput(c, seed, i);
  CHECK_CUDA(cudaMemcpy(global, input.data(), truth::tensorGlobalBytes,
                        cudaMemcpyHostToDevice));
  alignas(64) CUtensorMap map;
  cuuint64_t dims[5], strides[4];
  cuuint32_t box[5], elementStrides[5];
  for (unsigned i = 0; i < 5; ++i) {
    dims[i] = c.dims[i];
    box[i] = c.box[i];
    elementStrides[i] = c.elementStrides[i];
    if (i < 4)
      strides[i] = c.strides[i];
  }
  CUresult result =
      encode(&map, CUtensorMapDataType(c.type), c.rank, global, dims, strides,
             box, elementStrides, CUtensorMapInterleave(c.interleave),
             CUtensorMapSwizzle(c.swizzle), CU_TENSOR_MAP_L2_PROMOTION_NONE,
             c.nanFill ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                       : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    // A fact about the driver's rules; the test expects the same verdict.
    r.status = truth::statusRefused + uint32_t(result);
    CHECK_CUDA(cudaFree(global));
    return r;
  }
  Buffer<uint32_t> init(words), out(words + 1);
  for (uint32_t i = 0; i < words; ++i)
    init[i] = truth::tensorSharedWord(seed, i);
  uint32_t bytes = truth::tensorBoxBytes(c);
  const unsigned dynamic = truth::tensorSharedBytes + 1024;
  copyBox<<<1, 128, dynamic>>>(map, c.rank, c.store, c.coords[0], c.coords[1],
                               c.coords[2], c.coords[3], c.coords[4],
                               c.sharedOffset, bytes, init.data, out.data);
  if (!launchWorked(r))
    return r;
  if (c.store) {
    std::vector<uint32_t> after(globalWords);
    CHECK_CUDA(cudaMemcpy(after.data(), global, truth::tensorGlobalBytes,
                          cudaMemcpyDeviceToHost));
    r.result = truth::makeCase(c.name, after.data(), globalWords, 4, false);
  } else {
    if (!out[words])
      printf("tensor case %s: %u bytes did not complete the barrier\n", c.name,
             bytes);
    r.result = truth::makeCase(c.name, out.data, words + 1, 4, false);
  }
  CHECK_CUDA(cudaFree(global));
  return r;
}
