//===- TestKernelsAsync.cpp - A kernel of remote stores -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestKernels.h"
#include <cstring>

using namespace llvm;

namespace humming {
namespace test {

/// The two blocks of a cluster send each other a word per thread four times, by
/// st.async, and count by red.async what has come.
TestKernel makeRemote() {
  TestKernel k;
  k.name = "remote";
  k.ptx = R"(.version 8.1
.target sm_90
.address_size 64
.visible .entry remote(.param .u64 px, .param .u64 py)
.reqnctapercluster 2, 1, 1
{
  .reg .pred %p<4>;
  .reg .b32 %r<24>;
  .reg .b64 %rd<10>;
  .shared .align 4 .b8 slot[256];
  .shared .align 4 .b8 count[256];
  .shared .align 8 .b64 bar;
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [py];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  shl.b32 %r3, %r2, 6;
  add.s32 %r3, %r3, %r1;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  mov.u32 %r4, slot;
  mov.u32 %r5, count;
  mov.u32 %r6, bar;
  shl.b32 %r7, %r1, 2;
  add.s32 %r4, %r4, %r7;
  add.s32 %r5, %r5, %r7;
  mov.u32 %r8, 0;
  st.shared.u32 [%r5], %r8;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [%r6], 1;
  @%p1 fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mov.u32 %r9, %cluster_ctarank;
  xor.b32 %r9, %r9, 1;
  mapa.shared::cluster.u32 %r10, %r4, %r9;
  mapa.shared::cluster.u32 %r11, %r5, %r9;
  mapa.shared::cluster.u32 %r12, %r6, %r9;
  mov.u32 %r13, 0;
  mov.u32 %r14, 0;
  mov.u32 %r18, 3;
NEXT:
  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r6], 512;
  ld.global.u32 %r15, [%rd4];
  add.s64 %rd4, %rd4, 512;
  st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r10], %r15, [%r12];
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r11], %r18, [%r12];
  and.b32 %r16, %r13, 1;
WAIT:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r6], %r16;
  @!%p2 bra WAIT;
  ld.shared.u32 %r17, [%r4];
  add.s32 %r14, %r14, %r17;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  add.s32 %r13, %r13, 1;
  setp.lt.u32 %p3, %r13, 4;
  @%p3 bra NEXT;
  ld.shared.u32 %r19, [%r5];
  add.s32 %r14, %r14, %r19;
  add.s64 %rd5, %rd2, %rd3;
  st.global.u32 [%rd5], %r14;
  ret;
}
)";
  k.config.grid = {2, 1, 1};
  k.config.block = {64, 1, 1};
  k.config.cluster = {2, 1, 1};
  auto sample = [](uint32_t i) { return i * 2654435761u >> 9; };
  k.setup = [sample](Memory &m, ArgumentPacker &a) {
    std::vector<uint32_t> x(512);
    for (uint32_t i = 0; i < x.size(); ++i)
      x[i] = sample(i);
    uint64_t px = m.add(
        "x", ArrayRef<uint8_t>(reinterpret_cast<uint8_t *>(x.data()), 2048));
    uint64_t py = m.addUninitialized("y", 512);
    a.pointer(px).pointer(py);
    return py;
  };
  for (uint32_t i = 0; i < 128; ++i) {
    uint32_t sum = 4 * 3;
    for (uint32_t round = 0; round < 4; ++round)
      sum += sample(128 * round + (i ^ 64));
    k.expected.push_back(sum);
  }
  return k;
}

} // namespace test
} // namespace humming
