//===- TestKernels.cpp - Right kernels that tests run and break -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestKernels.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstring>

using namespace llvm;

namespace humming {
namespace test {

static std::string header(const char *target) {
  return std::string(".version 8.0\n.target ") + target +
         "\n.address_size 64\n";
}

static std::vector<uint8_t> words(uint32_t n, uint32_t (*f)(uint32_t)) {
  std::vector<uint8_t> bytes(4 * size_t(n));
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t v = f(i);
    std::memcpy(bytes.data() + 4 * i, &v, 4);
  }
  return bytes;
}
static uint32_t sample(uint32_t i) { return i * 2654435761u >> 7; }

/// y[block] = sum of 128 words, by a tree in shared memory.
static TestKernel makeReduce() {
  TestKernel k;
  k.name = "reduce";
  k.ptx = header("sm_80") + R"(
.visible .entry reduce(.param .u64 px, .param .u64 py)
{
  .reg .pred %p<4>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<10>;
  .shared .align 4 .b8 s[512];
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [py];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  shl.b32 %r3, %r2, 7;
  add.s32 %r3, %r3, %r1;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.u32 %r4, [%rd4];
  mov.u32 %r5, s;
  shl.b32 %r6, %r1, 2;
  add.s32 %r7, %r5, %r6;
  st.shared.u32 [%r7], %r4;
  mov.u32 %r8, 64;
LOOP:
  bar.sync 0;
  setp.ge.u32 %p1, %r1, %r8;
  @%p1 bra SKIP;
  shl.b32 %r9, %r8, 2;
  add.s32 %r10, %r7, %r9;
  ld.shared.u32 %r11, [%r10];
  ld.shared.u32 %r12, [%r7];
  add.s32 %r13, %r11, %r12;
  st.shared.u32 [%r7], %r13;
SKIP:
  shr.u32 %r8, %r8, 1;
  setp.ne.u32 %p2, %r8, 0;
  @%p2 bra LOOP;
  setp.ne.u32 %p3, %r1, 0;
  @%p3 bra DONE;
  ld.shared.u32 %r14, [s];
  mul.wide.u32 %rd5, %r2, 4;
  add.s64 %rd6, %rd2, %rd5;
  st.global.u32 [%rd6], %r14;
DONE:
  ret;
}
)";
  k.config.grid = {4, 1, 1};
  k.config.block = {128, 1, 1};
  k.setup = [](Memory &m, ArgumentPacker &a) {
    uint64_t x = m.add("x", words(512, sample)),
             y = m.addUninitialized("y", 16);
    a.pointer(x).pointer(y);
    return y;
  };
  for (unsigned b = 0; b < 4; ++b) {
    uint32_t sum = 0;
    for (unsigned i = 0; i < 128; ++i)
      sum += sample(128 * b + i);
    k.expected.push_back(sum);
  }
  return k;
}

/// y[t] = sum over 8 tiles of x[tile][t ^ 64], through a ring of three stages
/// filled by cp.async. One word per thread of 128; tiles of 512 bytes are
/// copied by the first 32 threads, 16 bytes each.
static TestKernel makePipeline() {
  TestKernel k;
  k.name = "pipeline";
  k.ptx = header("sm_80") + R"(
.extern .shared .align 16 .b8 ring[];
.visible .entry pipeline(.param .u64 px, .param .u64 py, .param .u32 pn)
{
  .reg .pred %p<8>;
  .reg .b32 %r<40>;
  .reg .b64 %rd<20>;
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [py];
  ld.param.u32 %r30, [pn];
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 32;
  mov.u32 %r2, ring;
  shl.b32 %r3, %r1, 4;
  mul.wide.u32 %rd3, %r3, 1;
  add.s64 %rd4, %rd1, %rd3;
  add.s32 %r4, %r2, %r3;
  @%p1 cp.async.cg.shared.global [%r4], [%rd4], 16;
  cp.async.commit_group;
  @%p1 cp.async.cg.shared.global [%r4+512], [%rd4+512], 16;
  cp.async.commit_group;
  xor.b32 %r5, %r1, 64;
  shl.b32 %r6, %r5, 2;
  add.s32 %r7, %r2, %r6;
  mov.u32 %r8, 0;
  mov.u32 %r9, 0;
  mov.u32 %r10, 0;
  mov.u32 %r11, 1024;
  add.s64 %rd5, %rd4, 1024;
LOOP:
  cp.async.wait_group 1;
  bar.sync 0;
  add.s32 %r12, %r9, 2;
  setp.lt.u32 %p2, %r12, %r30;
  and.pred %p3, %p1, %p2;
  add.s32 %r13, %r4, %r11;
  @%p3 cp.async.cg.shared.global [%r13], [%rd5], 16;
  cp.async.commit_group;
  add.s32 %r14, %r7, %r10;
  ld.shared.u32 %r15, [%r14];
  add.s32 %r8, %r8, %r15;
  add.s64 %rd5, %rd5, 512;
  add.s32 %r10, %r10, 512;
  setp.eq.u32 %p4, %r10, 1536;
  selp.b32 %r10, 0, %r10, %p4;
  add.s32 %r11, %r11, 512;
  setp.eq.u32 %p5, %r11, 1536;
  selp.b32 %r11, 0, %r11, %p5;
  add.s32 %r9, %r9, 1;
  setp.lt.u32 %p6, %r9, %r30;
  @%p6 bra LOOP;
  mul.wide.u32 %rd6, %r1, 4;
  add.s64 %rd7, %rd2, %rd6;
  st.global.u32 [%rd7], %r8;
  ret;
}
)";
  k.config.block = {128, 1, 1};
  k.config.dynamicSharedBytes = 1536;
  k.setup = [](Memory &m, ArgumentPacker &a) {
    uint64_t x = m.add("x", words(1024, sample)),
             y = m.addUninitialized("y", 512);
    a.pointer(x).pointer(y).i32(8);
    return y;
  };
  for (unsigned t = 0; t < 128; ++t) {
    uint32_t sum = 0;
    for (unsigned i = 0; i < 8; ++i)
      sum += sample(128 * i + (t ^ 64));
    k.expected.push_back(sum);
  }
  return k;
}

/// Four blocks write partial sums; the last to arrive adds them.
static TestKernel makeSplitK() {
  TestKernel k;
  k.name = "splitk";
  k.ptx = header("sm_80") + R"(
.visible .entry splitk(.param .u64 px, .param .u64 py, .param .u64 pw, .param .u64 pc)
{
  .reg .pred %p<6>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<20>;
  .shared .align 4 .b8 flag[4];
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [py];
  ld.param.u64 %rd3, [pw];
  ld.param.u64 %rd4, [pc];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  shl.b32 %r3, %r2, 6;
  add.s32 %r4, %r3, %r1;
  mul.wide.u32 %rd5, %r4, 4;
  add.s64 %rd6, %rd1, %rd5;
  ld.global.nc.u32 %r5, [%rd6];
  mul.lo.s32 %r5, %r5, 3;
  add.s64 %rd7, %rd3, %rd5;
  st.global.u32 [%rd7], %r5;
  membar.gl;
  bar.sync 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra WAIT;
  atom.global.add.u32 %r6, [%rd4], 1;
  membar.gl;
  st.shared.u32 [flag], %r6;
WAIT:
  bar.sync 0;
  ld.shared.u32 %r7, [flag];
  setp.ne.u32 %p2, %r7, 3;
  @%p2 bra DONE;
  mov.u32 %r8, 0;
  mov.u32 %r9, 0;
  mul.wide.u32 %rd8, %r1, 4;
  add.s64 %rd9, %rd3, %rd8;
SUM:
  ld.global.u32 %r10, [%rd9];
  add.s32 %r8, %r8, %r10;
  add.s64 %rd9, %rd9, 256;
  add.s32 %r9, %r9, 1;
  setp.lt.u32 %p3, %r9, 4;
  @%p3 bra SUM;
  add.s64 %rd10, %rd2, %rd8;
  st.global.u32 [%rd10], %r8;
  @%p1 bra DONE;
  st.global.u32 [%rd4], 0;
DONE:
  ret;
}
)";
  k.config.grid = {4, 1, 1};
  k.config.block = {64, 1, 1};
  k.setup = [](Memory &m, ArgumentPacker &a) {
    uint64_t x = m.add("x", words(256, sample)),
             y = m.addUninitialized("y", 256),
             w = m.addUninitialized("partials", 1024),
             c = m.addFilled("counter", 4, 0);
    a.pointer(x).pointer(y).pointer(w).pointer(c);
    return y;
  };
  for (unsigned t = 0; t < 64; ++t) {
    uint32_t sum = 0;
    for (unsigned b = 0; b < 4; ++b)
      sum += 3 * sample(64 * b + t);
    k.expected.push_back(sum);
  }
  return k;
}

/// Warp 0 fills two stages with bulk copies; warps 1 to 4 add them up and write
/// the sums back with a bulk store. Eight tiles of 128 words.
static TestKernel makeBulk() {
  TestKernel k;
  k.name = "bulk";
  k.ptx = header("sm_90a") + R"(
.visible .entry bulk(.param .u64 px, .param .u64 py)
{
  .reg .pred %p<12>;
  .reg .b32 %r<40>;
  .reg .b64 %rd<20>;
  .shared .align 128 .b8 stages[1024];
  .shared .align 128 .b8 result[512];
  .shared .align 8 .b8 full[16];
  .shared .align 8 .b8 empty[16];
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [py];
  mov.u32 %r1, %tid.x;
  shr.u32 %r2, %r1, 5;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra INITED;
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [full+8], 1;
  mbarrier.init.shared::cta.b64 [empty], 128;
  mbarrier.init.shared::cta.b64 [empty+8], 128;
  fence.mbarrier_init.release.cluster;
INITED:
  bar.sync 0;
  mov.u32 %r3, full;
  mov.u32 %r4, empty;
  mov.u32 %r5, stages;
  mov.u32 %r6, 0;
  setp.ne.u32 %p2, %r2, 0;
  @%p2 bra CONSUME;
  @%p1 bra DONE;
PRODUCE:
  and.b32 %r7, %r6, 1;
  shr.u32 %r8, %r6, 1;
  and.b32 %r8, %r8, 1;
  xor.b32 %r8, %r8, 1;
  shl.b32 %r9, %r7, 3;
  add.s32 %r10, %r3, %r9;
  add.s32 %r11, %r4, %r9;
WAITE:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r11], %r8;
  @!%p3 bra WAITE;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], 512;
  shl.b32 %r12, %r7, 9;
  add.s32 %r13, %r5, %r12;
  mul.wide.u32 %rd3, %r6, 512;
  add.s64 %rd4, %rd1, %rd3;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r13], [%rd4], 512, [%r10];
  add.s32 %r6, %r6, 1;
  setp.lt.u32 %p4, %r6, 8;
  @%p4 bra PRODUCE;
  bra DONE;
CONSUME:
  mov.u32 %r20, 0;
  sub.s32 %r21, %r1, 32;
  shl.b32 %r22, %r21, 2;
  add.s32 %r23, %r5, %r22;
LOOP:
  and.b32 %r7, %r6, 1;
  shr.u32 %r8, %r6, 1;
  and.b32 %r8, %r8, 1;
  shl.b32 %r9, %r7, 3;
  add.s32 %r10, %r3, %r9;
  add.s32 %r11, %r4, %r9;
WAITF:
  mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r10], %r8;
  @!%p5 bra WAITF;
  shl.b32 %r12, %r7, 9;
  add.s32 %r24, %r23, %r12;
  ld.shared.u32 %r25, [%r24];
  mbarrier.arrive.shared::cta.b64 _, [%r11];
  add.s32 %r20, %r20, %r25;
  add.s32 %r6, %r6, 1;
  setp.lt.u32 %p6, %r6, 8;
  @%p6 bra LOOP;
  mov.u32 %r26, result;
  add.s32 %r27, %r26, %r22;
  st.shared.u32 [%r27], %r20;
  fence.proxy.async.shared::cta;
  bar.sync 1, 128;
  setp.ne.u32 %p7, %r21, 0;
  @%p7 bra DONE;
  cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r26], 512;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
DONE:
  ret;
}
)";
  k.config.block = {160, 1, 1};
  k.setup = [](Memory &m, ArgumentPacker &a) {
    uint64_t x = m.add("x", words(1024, sample)),
             y = m.addUninitialized("y", 512);
    a.pointer(x).pointer(y);
    return y;
  };
  for (unsigned t = 0; t < 128; ++t) {
    uint32_t sum = 0;
    for (unsigned i = 0; i < 8; ++i)
      sum += sample(128 * i + t);
    k.expected.push_back(sum);
  }
  return k;
}

/// Every block of a cluster of two adds its peer's words to its own.
static TestKernel makeCluster() {
  TestKernel k;
  k.name = "cluster";
  k.ptx = header("sm_90") + R"(
.visible .entry cluster(.param .u64 px, .param .u64 py)
.reqnctapercluster 2, 1, 1
{
  .reg .b32 %r<20>;
  .reg .b64 %rd<10>;
  .shared .align 4 .b8 s[256];
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [py];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  shl.b32 %r3, %r2, 6;
  add.s32 %r3, %r3, %r1;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.u32 %r4, [%rd4];
  mov.u32 %r5, s;
  shl.b32 %r6, %r1, 2;
  add.s32 %r7, %r5, %r6;
  st.shared.u32 [%r7], %r4;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mov.u32 %r8, %cluster_ctarank;
  xor.b32 %r9, %r8, 1;
  xor.b32 %r10, %r6, 252;
  add.s32 %r11, %r5, %r10;
  mapa.shared::cluster.u32 %r12, %r11, %r9;
  ld.shared::cluster.u32 %r13, [%r12];
  add.s32 %r14, %r4, %r13;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  st.shared.u32 [%r7], %r14;
  add.s64 %rd5, %rd2, %rd3;
  ld.shared.u32 %r15, [%r7];
  st.global.u32 [%rd5], %r15;
  ret;
}
)";
  k.config.grid = {4, 1, 1};
  k.config.block = {64, 1, 1};
  k.config.cluster = {2, 1, 1};
  k.setup = [](Memory &m, ArgumentPacker &a) {
    uint64_t x = m.add("x", words(256, sample)),
             y = m.addUninitialized("y", 1024);
    a.pointer(x).pointer(y);
    return y;
  };
  for (unsigned i = 0; i < 256; ++i) {
    unsigned block = i / 64, t = i % 64;
    k.expected.push_back(sample(i) + sample((block ^ 1) * 64 + (t ^ 63)));
  }
  return k;
}

/// D (64 x 8) = 2 * A (64 x 16) * B (16 x 8), f16 to f32: two wgmma on one
/// accumulator. Core matrices of 8 x 16 bytes, no swizzle: element (r, c) of A
/// at (r / 8) * 256 + (c / 8) * 128 + (r % 8) * 16 + (c % 8) * 2. A is
/// A[r][c] = r + 1 when r % 16 == c, else 0; B[c][n] = c + 16 n.
static TestKernel makeWgmma() {
  TestKernel k;
  k.name = "wgmma";
  k.ptx = header("sm_90a") + R"(
.visible .entry wgmma(.param .u64 pa, .param .u64 pb, .param .u64 py)
{
  .reg .pred %p<4>;
  .reg .b32 %r<40>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<20>;
  .shared .align 128 .b8 sa[2048];
  .shared .align 128 .b8 sb[256];
  ld.param.u64 %rd1, [pa];
  ld.param.u64 %rd2, [pb];
  ld.param.u64 %rd3, [py];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 4;
  mul.wide.u32 %rd4, %r2, 1;
  add.s64 %rd5, %rd1, %rd4;
  ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd5];
  mov.u32 %r7, sa;
  add.s32 %r8, %r7, %r2;
  st.shared.v4.u32 [%r8], {%r3, %r4, %r5, %r6};
  setp.ge.u32 %p1, %r1, 16;
  @%p1 bra FILLED;
  add.s64 %rd6, %rd2, %rd4;
  ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd6];
  mov.u32 %r9, sb;
  add.s32 %r10, %r9, %r2;
  st.shared.v4.u32 [%r10], {%r3, %r4, %r5, %r6};
FILLED:
  fence.proxy.async.shared::cta;
  bar.sync 0;
  mov.u32 %r11, sa;
  shr.u32 %r12, %r11, 4;
  cvt.u64.u32 %rd7, %r12;
  or.b64 %rd8, %rd7, 0x0000001000080000;
  mov.u32 %r13, sb;
  shr.u32 %r14, %r13, 4;
  cvt.u64.u32 %rd9, %r14;
  or.b64 %rd10, %rd9, 0x0000001000080000;
  mov.f32 %f1, 0f00000000;
  mov.f32 %f2, 0f00000000;
  mov.f32 %f3, 0f00000000;
  mov.f32 %f4, 0f00000000;
  setp.ne.b32 %p2, 1, 0;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd8, %rd10, %p2, 1, 1, 0, 0;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd8, %rd10, %p2, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  cvt.rzi.u32.f32 %r20, %f1;
  cvt.rzi.u32.f32 %r21, %f2;
  cvt.rzi.u32.f32 %r22, %f3;
  cvt.rzi.u32.f32 %r23, %f4;
  shl.b32 %r24, %r1, 4;
  mul.wide.u32 %rd11, %r24, 1;
  add.s64 %rd12, %rd3, %rd11;
  st.global.v4.u32 [%rd12], {%r20, %r21, %r22, %r23};
  ret;
}
)";
  k.config.block = {128, 1, 1};
  auto half = [](uint32_t v) { // exact for integers below 2048
    uint32_t e = 0;
    if (!v)
      return uint16_t(0);
    while (v >> (e + 1))
      ++e;
    return uint16_t((e + 15) << 10 | ((v << (10 - e)) & 0x3FF));
  };
  k.setup = [half](Memory &m, ArgumentPacker &a) {
    std::vector<uint8_t> A(2048), B(256);
    for (unsigned r = 0; r < 64; ++r)
      for (unsigned c = 0; c < 16; ++c) {
        uint16_t v = r % 16 == c ? half(r + 1) : 0;
        std::memcpy(
            &A[(r / 8) * 256 + (c / 8) * 128 + (r % 8) * 16 + (c % 8) * 2], &v,
            2);
      }
    for (unsigned c = 0; c < 16; ++c)
      for (unsigned n = 0; n < 8; ++n) {
        uint16_t v = half(c + 16 * n);
        std::memcpy(&B[(c / 8) * 128 + n * 16 + (c % 8) * 2], &v, 2);
      }
    uint64_t pa = m.add("a", A), pb = m.add("b", B),
             y = m.addUninitialized("y", 2048);
    a.pointer(pa).pointer(pb).pointer(y);
    return y;
  };
  // Thread t: rows 16 * (t / 32) + t % 32 / 4 (+ 8), columns 2 * (t % 4) (+ 1).
  for (unsigned t = 0; t < 128; ++t)
    for (unsigned i = 0; i < 4; ++i) {
      unsigned r = 16 * (t / 32) + t % 32 / 4 + 8 * (i / 2),
               n = 2 * (t % 4) + i % 2;
      k.expected.push_back(2 * (r + 1) * (r % 16 + 16 * n));
    }
  return k;
}

/// One warp: A (16 x 16) through ldmatrix, B = identity in registers; writes
/// A's fragments back as D of mma.sync.
static TestKernel makeMma() {
  TestKernel k;
  k.name = "mma";
  k.ptx = header("sm_80") + R"(
.visible .entry mma(.param .u64 pa, .param .u64 py)
{
  .reg .pred %p<4>;
  .reg .b32 %r<40>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<10>;
  .shared .align 16 .b8 s[512];
  ld.param.u64 %rd1, [pa];
  ld.param.u64 %rd2, [py];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 4;
  mul.wide.u32 %rd3, %r2, 1;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd4];
  mov.u32 %r7, s;
  add.s32 %r8, %r7, %r2;
  st.shared.v4.u32 [%r8], {%r3, %r4, %r5, %r6};
  bar.warp.sync -1;
  and.b32 %r9, %r1, 15;
  shl.b32 %r10, %r9, 5;
  shr.u32 %r11, %r1, 4;
  shl.b32 %r12, %r11, 4;
  add.s32 %r13, %r10, %r12;
  add.s32 %r14, %r7, %r13;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r15, %r16, %r17, %r18}, [%r14];
  shr.u32 %r19, %r1, 2;
  and.b32 %r20, %r1, 3;
  shl.b32 %r21, %r20, 1;
  setp.eq.u32 %p1, %r21, %r19;
  selp.b32 %r22, 0x00003C00, 0, %p1;
  add.s32 %r23, %r21, 1;
  setp.eq.u32 %p2, %r23, %r19;
  selp.b32 %r24, 0x3C000000, %r22, %p2;
  mov.f32 %f1, 0f00000000;
  mov.u32 %r25, 0;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, {%r15, %r16, %r17, %r18}, {%r24, %r25}, {%f1, %f1, %f1, %f1};
  cvt.rzi.u32.f32 %r30, %f2;
  cvt.rzi.u32.f32 %r31, %f3;
  cvt.rzi.u32.f32 %r32, %f4;
  cvt.rzi.u32.f32 %r33, %f5;
  add.s64 %rd5, %rd2, %rd3;
  st.global.v4.u32 [%rd5], {%r30, %r31, %r32, %r33};
  ret;
}
)";
  k.config.block = {32, 1, 1};
  k.setup = [](Memory &m, ArgumentPacker &a) {
    std::vector<uint8_t> A(512);
    for (unsigned i = 0; i < 256; ++i) {
      // 1024 + i is exact: exponent 25, one unit per mantissa step.
      uint16_t v = uint16_t(25 << 10 | i);
      std::memcpy(&A[2 * i], &v, 2);
    }
    uint64_t pa = m.add("a", A), y = m.addUninitialized("y", 512);
    a.pointer(pa).pointer(y);
    return y;
  };
  for (unsigned t = 0; t < 32; ++t)
    for (unsigned i = 0; i < 4; ++i)
      k.expected.push_back(1024 + 16 * (t / 4 + 8 * (i / 2)) + 2 * (t % 4) +
                           i % 2);
  return k;
}

/// Warps 0, 1 hand words to warps 2, 3 through named barriers 1 (full) and 2
/// (empty), four rounds.
static TestKernel makeNamed() {
  TestKernel k;
  k.name = "named";
  k.ptx = header("sm_80") + R"(
.visible .entry named(.param .u64 px, .param .u64 py)
{
  .reg .pred %p<4>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<10>;
  .shared .align 4 .b8 s[256];
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [py];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 63;
  shl.b32 %r3, %r2, 2;
  mov.u32 %r4, s;
  mul.wide.u32 %rd3, %r3, 1;
  mov.u32 %r5, 0;
  setp.ge.u32 %p1, %r1, 64;
  @%p1 bra CONSUMER;
  add.s64 %rd4, %rd1, %rd3;
  add.s32 %r6, %r4, %r3;
PRODUCER:
  bar.sync 2, 128;
  ld.global.u32 %r7, [%rd4];
  st.shared.u32 [%r6], %r7;
  bar.arrive 1, 128;
  add.s64 %rd4, %rd4, 256;
  add.s32 %r5, %r5, 1;
  setp.lt.u32 %p2, %r5, 4;
  @%p2 bra PRODUCER;
  ret;
CONSUMER:
  xor.b32 %r8, %r3, 252;
  add.s32 %r9, %r4, %r8;
  mov.u32 %r10, 0;
NEXT:
  bar.arrive 2, 128;
  bar.sync 1, 128;
  ld.shared.u32 %r11, [%r9];
  add.s32 %r10, %r10, %r11;
  add.s32 %r5, %r5, 1;
  setp.lt.u32 %p3, %r5, 4;
  @%p3 bra NEXT;
  add.s64 %rd5, %rd2, %rd3;
  st.global.u32 [%rd5], %r10;
  ret;
}
)";
  k.config.block = {128, 1, 1};
  k.setup = [](Memory &m, ArgumentPacker &a) {
    uint64_t x = m.add("x", words(256, sample)),
             y = m.addUninitialized("y", 256);
    a.pointer(x).pointer(y);
    return y;
  };
  for (unsigned t = 0; t < 64; ++t) {
    uint32_t sum = 0;
    for (unsigned i = 0; i < 4; ++i)
      sum += sample(64 * i + (t ^ 63));
    k.expected.push_back(sum);
  }
  return k;
}

const std::vector<TestKernel> &testKernels() {
  static const std::vector<TestKernel> kernels = {
      makeReduce(), makePipeline(), makeSplitK(), makeBulk(),  makeCluster(),
      makeWgmma(),  makeMma(),      makeNamed(),  makeRemote()};
  return kernels;
}

const TestKernel &testKernel(StringRef name) {
  for (const TestKernel &k : testKernels())
    if (k.name == name)
      return k;
  llvm_unreachable("no such test kernel");
}

Outcome runKernel(const TestKernel &kernel, StringRef ptx, uint64_t seed,
                  unsigned threads) {
  Outcome out;
  auto fail = [&](Error e) {
    out.faulted = true;
    handleAllErrors(std::move(e), [&](const EmulatorError &error) {
      out.fault = error.fault;
      raw_string_ostream os(out.message);
      error.log(os);
    });
  };
  auto program = Program::parse(ptx);
  if (!program) {
    fail(program.takeError());
    return out;
  }
  Memory memory;
  ArgumentPacker arguments;
  uint64_t result = kernel.setup(memory, arguments);
  LaunchConfig config = kernel.config;
  config.seed = seed;
  config.threads = threads;
  config.instructionLimit = 1 << 20;
  auto report = program->launch(kernel.name, config, arguments.bytes(), memory);
  if (!report) {
    fail(report.takeError());
    return out;
  }
  out.report = std::move(*report);
  ArrayRef<uint8_t> bytes = memory.bytes(result);
  out.right = bytes.size() == 4 * kernel.expected.size() &&
              !std::memcmp(bytes.data(), kernel.expected.data(), bytes.size());
  return out;
}

} // namespace test
} // namespace humming
