// Plain CUDA kernels whose PTX, as nvcc makes it, is test data of the emulator.
// Each takes x (4096 words), y (4096 words, zero) and n; only arithmetic that is
// exact or correctly rounded, so that a GPU and the emulator agree to the bit.
// See make.sh.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#include <stdint.h>
namespace cg = cooperative_groups;
#define KERNEL extern "C" __global__ void

KERNEL scan(const uint32_t *x, uint32_t *y, int n) {
  __shared__ uint32_t sums[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  uint32_t v = i < n ? x[i] & 1023 : 0;
  for (int d = 1; d < 32; d *= 2) {
    uint32_t o = __shfl_up_sync(~0u, v, d);
    if (lane >= d)
      v += o;
  }
  if (lane == 31)
    sums[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    uint32_t s = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0;
    for (int d = 1; d < 32; d *= 2) {
      uint32_t o = __shfl_up_sync(~0u, s, d);
      if (lane >= d)
        s += o;
    }
    sums[threadIdx.x] = s;
  }
  __syncthreads();
  if (i < n)
    y[i] = v + (threadIdx.x >= 32 ? sums[threadIdx.x / 32 - 1] : 0);
}

KERNEL histogram(const uint32_t *x, uint32_t *y, int n) {
  __shared__ uint32_t bins[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    atomicAdd(&bins[x[i] & 255], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (bins[i])
      atomicAdd(&y[i], bins[i]);
}

KERNEL transpose(const uint32_t *x, uint32_t *y, int n) {
  __shared__ uint32_t tile[32][33];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += blockDim.y)
    tile[threadIdx.y + j][threadIdx.x] = x[(r + j) * 64 + c];
  __syncthreads();
  c = blockIdx.y * 32 + threadIdx.x;
  r = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += blockDim.y)
    y[(r + j) * 64 + c] = tile[threadIdx.x][threadIdx.y + j];
}

KERNEL bits(const uint32_t *x, uint32_t *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t a = x[i], b = x[(i + 1) % n], r = 0;
  uint64_t w = (uint64_t)a << 32 | b;
  switch (i % 12) {
  case 0: r = __brev(a); break;
  case 1: r = __popc(a) * 1000 + __clz(b); break;
  case 2: r = __funnelshift_l(a, b, i); break;
  case 3: r = __byte_perm(a, b, i * 0x1111); break;
  case 4: r = (uint32_t)(w / (a | 1)); break;
  case 5: r = (uint32_t)(w % (b | 1)); break;
  case 6: r = (uint32_t)((int64_t)w / ((int32_t)a | 1)); break;
  case 7: r = __ffs(a) + __mulhi((int)a, (int)b); break;
  case 8: r = (uint32_t)__umul64hi(w, w ^ a); break;
  case 9: r = __dp4a((int)a, (int)b, 5); break;
  case 10: r = __vmaxs2(a, b) ^ __vminu2(a, b); break;
  default: r = (int)a % ((int)(b >> 20) - 2048 | 1); break;
  }
  int64_t z = (int64_t)w >> (i & 63);
  y[i] = r ^ (uint32_t)(z + (z >> 32)) ^ (a << (i & 31)) ^ (uint16_t)(a * b);
}

__device__ __noinline__ float poly(const float *c, float v, int n) {
  float r = 0;
  for (int i = 0; i < n; ++i)
    r = fmaf(r, v, c[i]);
  return r;
}
__constant__ float table[6] = {1.5f, -2.25f, 0.1f, 3, -0.7f, 1e-3f};

KERNEL floats(const uint32_t *x, uint32_t *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = __uint_as_float(x[i]), b = (float)(int)x[(i + 7) % n] * 1e-6f;
  float local[4] = {a, b, a * b, a - b};
  float v = local[i & 3];
  float r = poly(table, v, 3 + i % 4);
  r += __fdiv_rn(a, b) + __fsqrt_rn(fabsf(v)) + __frcp_rn(b);
  r = i % 5 == 0 ? __fadd_rz(r, b) : i % 5 == 1 ? __fmul_ru(r, b) : r;
  r = i % 7 == 0 ? truncf(r) : i % 7 == 1 ? rintf(r) : fminf(r, a);
  double d = (double)b * 1.25 + sqrt((double)(x[i] & 0xFFFF));
  d = d / 3.0 + floor(d) - (double)(int64_t)x[i];
  y[i] = __float_as_uint(r) ^ (uint32_t)__double_as_longlong(d) ^
         (uint32_t)__float2int_rn(b) ^ (uint32_t)__float2uint_rz(v) ^
         (uint32_t)__double2int_rd(d);
}

KERNEL halves(const uint32_t *x, uint32_t *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  // Magnitudes below 2: ptxas may move a sign change through an operation, and
  // then the sign of a NaN differs.
  const uint32_t mask = 0xBFFFBFFF;
  uint32_t a = x[i] & mask, b = x[(i + 3) % n] & mask, c = x[(i + 5) % n] & mask;
  __half2 ha = *(__half2 *)&a, hb = *(__half2 *)&b, hc = *(__half2 *)&c;
  __nv_bfloat162 ba = *(__nv_bfloat162 *)&a, bb = *(__nv_bfloat162 *)&b,
                 bc = *(__nv_bfloat162 *)&c;
  __half2 h = __hfma2(ha, hb, hc);
  h = i & 1 ? __hmul2(h, ha) : __hsub2(h, hb);
  h = i & 2 ? __hmax2(h, hc) : __hmin2_nan(h, hc);
  __nv_bfloat162 f = __hfma2(ba, bb, bc);
  f = i & 4 ? __habs2(f) : __hneg2(f);
  float2 u = __half22float2(h);
  __nv_fp8x2_e4m3 q(u);
  __nv_fp8x2_e5m2 p(__bfloat1622float2(f));
  __half2 back = __half2(q);
  uint32_t r = *(uint32_t *)&h ^ *(uint32_t *)&f ^ *(uint32_t *)&back;
  r ^= (uint32_t)*(uint16_t *)&q << 16 | *(uint16_t *)&p;
  r ^= (uint32_t)__half2int_rn(__low2half(h)) ^
       __float_as_uint(__bfloat162float(__float2bfloat16_rn(u.x)));
  y[i] = r ^ (uint32_t)__hgt(__low2half(ha), __high2half(hb));
}

__device__ unsigned arrivals;
KERNEL last_block(const uint32_t *x, uint32_t *y, int n) {
  __shared__ bool last;
  uint32_t *partial = y + 2048;
  uint32_t s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    s += x[i];
  partial[blockIdx.x * blockDim.x + threadIdx.x] = s;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    last = atomicInc(&arrivals, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (!last)
    return;
  __threadfence();
  s = 0;
  for (int b = 0; b < gridDim.x; ++b)
    s += partial[b * blockDim.x + threadIdx.x];
  y[threadIdx.x] = s;
}

// One 16 x 8 tile of C per warp: ldmatrix, mma.sync m16n8k16, cp.async.
KERNEL tensor(const uint32_t *x, uint32_t *y, int n) {
  __shared__ __align__(16) __half a[2][16][16], b[2][8][16];
  int lane = threadIdx.x;
  float c[4] = {0, 0, 0, 0};
  auto load = [&](int s, int k) {
    if (lane < 32)
      __pipeline_memcpy_async(&a[s][lane / 2][8 * (lane % 2)],
                              x + (16 * k + lane / 2) * 8 + 4 * (lane % 2), 16);
    if (lane < 16)
      __pipeline_memcpy_async(&b[s][lane / 2][8 * (lane % 2)],
                              x + 2048 + (8 * k + lane / 2) * 8 +
                                  4 * (lane % 2), 16);
    __pipeline_commit();
  };
  load(0, 0);
  for (int k = 0; k < 8; ++k) {
    if (k < 7)
      load((k + 1) & 1, k + 1);
    __pipeline_wait_prior(k < 7 ? 1 : 0);
    __syncwarp();
    uint32_t A[4], B[2];
    uint32_t at = (uint32_t)__cvta_generic_to_shared(
        &a[k & 1][lane % 16][8 * (lane / 16)]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(A[0]), "=r"(A[1]), "=r"(A[2]), "=r"(A[3])
                 : "r"(at));
    at = (uint32_t)__cvta_generic_to_shared(
        &b[k & 1][lane % 8][8 * (lane / 8 % 2)]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(B[0]), "=r"(B[1])
                 : "r"(at));
    // Small integers: sums are exact in any order.
    for (int i = 0; i < 4; ++i)
      A[i] = A[i] & 0x00030003 | 0x64006400;
    for (int i = 0; i < 2; ++i)
      B[i] = B[i] & 0x00070007 | 0x64006400;
    for (int i = 0; i < 4; ++i) {
      __half2 h = __hsub2(*(__half2 *)&A[i], __float2half2_rn(1024.f));
      A[i] = *(uint32_t *)&h;
    }
    for (int i = 0; i < 2; ++i) {
      __half2 h = __hsub2(*(__half2 *)&B[i], __float2half2_rn(1024.f));
      B[i] = *(uint32_t *)&h;
    }
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
    __syncwarp();
  }
  for (int i = 0; i < 4; ++i)
    y[4 * lane + i] = __float_as_uint(c[i]);
}

// cuda::barrier and memcpy_async (mbarriers).
KERNEL barriers(const uint32_t *x, uint32_t *y, int n) {
  __shared__ __align__(16) uint32_t s[2][128];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar[2];
  auto block = cg::this_thread_block();
  if (threadIdx.x == 0) {
    init(&bar[0], blockDim.x);
    init(&bar[1], blockDim.x);
  }
  block.sync();
  uint32_t sum = 0;
  cuda::memcpy_async(block, s[0], x, sizeof(s[0]), bar[0]);
  for (int k = 0; k < 6; ++k) {
    if (k < 5)
      cuda::memcpy_async(block, s[(k + 1) & 1], x + 128 * (k + 1),
                         sizeof(s[0]), bar[(k + 1) & 1]);
    bar[k & 1].arrive_and_wait();
    sum = sum * 5 + s[k & 1][threadIdx.x ^ 33];
    block.sync();
  }
  y[threadIdx.x] = sum;
}
#if __CUDA_ARCH__ >= 900
KERNEL __cluster_dims__(2, 1, 1)
    dsmem(const uint32_t *x, uint32_t *y, int n) {
  __shared__ uint32_t s[128];
  auto cluster = cg::this_cluster();
  s[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
  cluster.sync();
  uint32_t *other = cluster.map_shared_rank(s, cluster.block_rank() ^ 1);
  uint32_t v = other[127 - threadIdx.x];
  cluster.sync();
  atomicAdd(&other[0], 3);
  cluster.sync();
  y[blockIdx.x * 128 + threadIdx.x] = v + s[threadIdx.x];
}
#endif
