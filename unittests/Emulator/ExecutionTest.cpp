//===- ExecutionTest.cpp - Instructions, control flow, counters, the API -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestKernels.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace llvm;
using namespace humming;
using namespace humming::test;

namespace {
struct Result {
  std::vector<uint32_t> y; ///< one word per thread
  Report report;
  std::string error;
};

/// Every thread has its number in %r1, writes %r9 to its word of y. %rd1 is x,
/// 1024 words of 3 i + 1.
Result runBody(StringRef body, unsigned threads = 32, unsigned grid = 1,
               const char *extra = "", unsigned hostThreads = 1,
               uint64_t seed = 0) {
  std::string ptx = std::string(".version 8.0\n.target sm_90\n"
                                ".address_size 64\n") +
                    extra + R"(
.visible .entry k(.param .u64 px, .param .u64 py)
{
  .reg .pred %p<8>;
  .reg .b16 %h<16>;
  .reg .b32 %r<32>;
  .reg .f32 %f<16>;
  .reg .f64 %d<8>;
  .reg .b64 %rd<16>;
  .reg .b128 %q<2>;
  .shared .align 16 .b8 s[8192];
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [py];
  mov.u32 %r1, %tid.x;
  mov.u32 %r9, 0;
)" + body.str() + R"(
END:
  mov.u32 %r30, %ctaid.x;
  mov.u32 %r31, %ntid.x;
  mad.lo.s32 %r31, %r30, %r31, %r1;
  mul.wide.u32 %rd15, %r31, 4;
  add.s64 %rd15, %rd2, %rd15;
  st.global.u32 [%rd15], %r9;
  ret;
}
)";
  Result r;
  auto program = Program::parse(ptx);
  if (!program) {
    r.error = toString(program.takeError());
    return r;
  }
  std::vector<uint32_t> x(1024);
  for (unsigned i = 0; i < x.size(); ++i)
    x[i] = 3 * i + 1;
  Memory memory;
  uint64_t px =
      memory.add("x", ArrayRef<uint8_t>(reinterpret_cast<uint8_t *>(x.data()),
                                        4 * x.size()));
  uint64_t py = memory.addUninitialized("y", 4 * threads * grid);
  ArgumentPacker args;
  args.pointer(px).pointer(py);
  LaunchConfig config;
  config.block = {threads, 1, 1};
  config.grid = {grid, 1, 1};
  config.threads = hostThreads;
  config.seed = seed;
  auto report = program->launch("k", config, args.bytes(), memory);
  if (!report) {
    r.error = toString(report.takeError());
    return r;
  }
  r.report = std::move(*report);
  r.y.resize(threads * grid);
  std::memcpy(r.y.data(), memory.bytes(py).data(), 4 * r.y.size());
  return r;
}

void expect(StringRef body, function_ref<uint32_t(uint32_t)> f,
            unsigned threads = 32, const char *extra = "") {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Result r = runBody(body, threads, 1, extra, 1, seed);
    ASSERT_EQ(r.error, "") << body.str();
    for (unsigned t = 0; t < threads; ++t)
      ASSERT_EQ(r.y[t], f(t)) << body.str() << "\nthread " << t;
  }
}
} // namespace

TEST(Execution, Integer) {
  expect("mad.lo.s32 %r9, %r1, -3, 7;", [](uint32_t t) { return 7 - 3 * t; });
  expect("mul.hi.u32 %r9, %r1, 0x80000000;", [](uint32_t t) { return t / 2; });
  expect("mul.wide.s32 %rd3, %r1, -1; shr.u64 %rd3, %rd3, 32; cvt.u32.u64 "
         "%r9, %rd3;",
         [](uint32_t t) { return t ? 0xFFFFFFFF : 0; });
  expect("sub.s32 %r2, 5, %r1; shr.s32 %r9, %r2, 1;",
         [](uint32_t t) { return uint32_t((5 - int(t)) >> 1); });
  expect("shl.b32 %r9, 1, %r1; add.s32 %r3, %r1, 16; shl.b32 %r4, 1, %r3; "
         "xor.b32 %r9, %r9, %r4;",
         [](uint32_t t) {
           return (1u << t) ^ (t + 16 < 32 ? 1u << (t + 16) : 0);
         });
  expect("lop3.b32 %r9, %r1, 0xF0, 0x3C, 0xEA;",
         [](uint32_t t) { return (t & 0xF0) | 0x3C; });
  expect("prmt.b32 %r9, 0x33221100, %r1, 0x4021;",
         [](uint32_t t) { return (t & 0xFF) << 24 | 0x002211; });
  expect("bfe.u32 %r9, 0x12345678, %r1, 8;",
         [](uint32_t t) { return uint32_t(uint64_t(0x12345678) >> t & 0xFF); });
  expect("bfi.b32 %r9, 0x3, 0, %r1, 2;",
         [](uint32_t t) { return uint32_t(uint64_t(3) << t); });
  expect("div.s32 %r2, 100, 7; rem.u32 %r3, %r1, 5; add.s32 %r9, %r2, %r3;",
         [](uint32_t t) { return 14 + t % 5; });
  expect("popc.b32 %r2, %r1; clz.b32 %r3, %r1; mad.lo.s32 %r9, %r2, 100, %r3;",
         [](uint32_t t) {
           return 100 * uint32_t(__builtin_popcount(t)) +
                  (t ? uint32_t(__builtin_clz(t)) : 32);
         });
  expect("shf.l.wrap.b32 %r9, 0x80000001, %r1, 4;",
         [](uint32_t t) { return t << 4 | 8; });
  expect("cvt.u16.u32 %h1, %r1; neg.s16 %h2, %h1; cvt.s32.s16 %r9, %h2;",
         [](uint32_t t) { return uint32_t(-int(t)); });
  expect("cvt.u16.u32 %h1, %r1; mul.lo.s16 %h2, %h1, 3000; cvt.u32.u16 %r9, "
         "%h2;",
         [](uint32_t t) { return (t * 3000) & 0xFFFF; });
  expect("add.cc.u32 %r2, %r1, 0xFFFFFFF0; addc.u32 %r9, 0, 0;",
         [](uint32_t t) { return t >= 16; });
  expect("min.s32 %r2, %r1, 5; max.u32 %r9, %r2, 3;",
         [](uint32_t t) { return std::max(std::min(t, 5u), 3u); });
  expect("dp4a.s32.s32 %r9, 0xFF020304, 0x01010101, %r1;",
         [](uint32_t t) { return t + 8; });
}

TEST(Execution, FloatAndConversions) {
  expect("cvt.rn.f32.u32 %f1, %r1; fma.rn.f32 %f2, %f1, 0f40000000, "
         "0f3F800000; cvt.rzi.u32.f32 %r9, %f2;",
         [](uint32_t t) { return 2 * t + 1; });
  expect("cvt.rn.f64.s32 %d1, %r1; sqrt.rn.f64 %d2, %d1; mul.f64 %d3, %d2, "
         "%d2; cvt.rni.s32.f64 %r9, %d3;",
         [](uint32_t t) { return t; });
  expect("cvt.rn.f32.u32 %f1, %r1; cvt.rn.f16x2.f32 %r2, %f1, %f1; add.f16x2 "
         "%r9, %r2, %r2;",
         [](uint32_t t) {
           uint32_t e = 0;
           if (!t)
             return 0u;
           while (t >> (e + 1))
             ++e;
           uint32_t h = (e + 16) << 10 | ((t << (10 - e)) & 0x3FF);
           return h | h << 16;
         });
  expect("mov.b32 %r2, 0x7F800001; mov.b32 %f1, %r2; add.f32 %f2, %f1, "
         "0f3F800000; mov.b32 %r9, %f2;",
         [](uint32_t) { return 0x7FFFFFFFu; });
  expect("mov.b32 {%h1, %h2}, 0x12345678; mov.b32 %r9, {%h2, %h1};",
         [](uint32_t) { return 0x56781234u; });
  expect("cvt.s64.s32 %rd3, -5; mov.b64 {%r2, %r9}, %rd3;",
         [](uint32_t) { return 0xFFFFFFFFu; });
  expect("cvt.u32.u8 %r9, 0x1FF;", [](uint32_t) { return 0xFFu; });
  expect("cvt.s32.s8 %r9, 0x80;", [](uint32_t) { return 0xFFFFFF80u; });
  expect("cvt.rn.f32.u32 %f1, %r1; cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, "
         "0f3F800000; cvt.rn.f16x2.e4m3x2 %r2, %h1; and.b32 %r9, %r2, 0xFFFF;",
         [](uint32_t) { return 0x3C00u; });
}

TEST(Execution, ControlFlow) {
  // Nested divergence with breaks; lanes meet again for the vote.
  Result r = runBody(R"(
  mov.u32 %r2, 0;
  setp.eq.u32 %p4, %r2, 0;
L:
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra OUT;
  add.s32 %r9, %r9, %r2;
  and.b32 %r3, %r2, 1;
  setp.eq.u32 %p2, %r3, 1;
  @!%p2 bra EVEN;
  add.s32 %r9, %r9, 1000;
EVEN:
  add.s32 %r2, %r2, 1;
  bra L;
OUT:
  vote.sync.ballot.b32 %r4, %p4, -1;
  setp.ne.u32 %p3, %r4, -1;
  @%p3 trap;
)");
  ASSERT_EQ(r.error, "");
  for (unsigned t = 0; t < 32; ++t)
    EXPECT_EQ(r.y[t], t * (t ? t - 1 : 0) / 2 + 1000 * (t / 2));
  ASSERT_EQ(r.report.loops.size(), 1u);
  EXPECT_EQ(r.report.loops[0].label, "L");

  expect(R"(
  and.b32 %r2, %r1, 3;
T: .branchtargets A, B, C, END;
  brx.idx %r2, T;
A: mov.u32 %r9, 10; bra END;
B: mov.u32 %r9, 20; bra END;
C: mov.u32 %r9, 30;
)",
         [](uint32_t t) { return t % 4 == 3 ? 0 : 10 * (t % 4 + 1); });
}

TEST(Execution, CallsAndScopes) {
  const char *functions = R"(
.func (.param .b32 out) twice(.param .b32 a)
{
  .reg .b32 %r<4>;
  .reg .pred %p;
  ld.param.u32 %r1, [a];
  setp.lt.u32 %p, %r1, 10;
  @%p bra SMALL;
  add.s32 %r2, %r1, %r1;
  st.param.b32 [out], %r2;
  ret;
SMALL:
  st.param.b32 [out], 7;
  ret;
}
.func (.reg .b32 r) old(.reg .b32 a, .reg .b32 b)
{
  sub.s32 r, a, b;
  ret;
}
)";
  expect(
      R"(
  {
  .param .b32 param0;
  st.param.b32 [param0], %r1;
  .param .b32 retval0;
  call.uni (retval0), twice, (param0);
  ld.param.b32 %r9, [retval0];
  }
  { .reg .b32 %r9x; mov.u32 %r9x, 1; L: setp.eq.u32 %p1, %r9x, 1; @%p1 bra M; bra L; M: }
  { L: setp.eq.u32 %p1, %r1, %r1; @%p1 bra M; bra L; M: }
  call (%r9), old, (%r9, 1);
)",
      [](uint32_t t) { return (t < 10 ? 7 : 2 * t) - 1; }, 64, functions);
}

TEST(Execution, MemorySpaces) {
  const char *globals = R"(
.const .align 4 .u32 table[4] = {10, 20, 30, 40};
.global .align 8 .u64 pointer[2] = {table, generic(table)+4};
.global .align 4 .b8 bytes[8] = {1, 2, 3, 4, 255, 255, 255, 127};
)";
  expect(
      R"(
  .local .align 16 .b8 buf[32];
  and.b32 %r2, %r1, 3;
  mul.wide.u32 %rd3, %r2, 4;
  mov.u64 %rd4, table;
  add.s64 %rd4, %rd4, %rd3;
  ld.const.u32 %r3, [%rd4];
  ld.global.u64 %rd5, [pointer+8];
  ld.u32 %r4, [%rd5];
  ld.global.s8 %r5, [bytes+4];
  mov.u64 %rd6, buf;
  cvta.local.u64 %rd7, %rd6;
  st.v2.u32 [%rd7+8], {%r3, %r4};
  ld.local.v2.u32 {%r6, %r7}, [buf+8];
  add.s32 %r9, %r6, %r7;
  add.s32 %r9, %r9, %r5;
  mov.u32 %r10, s;
  shl.b32 %r11, %r1, 2;
  add.s32 %r10, %r10, %r11;
  cvt.u64.u32 %rd8, %r10;
  cvta.shared.u64 %rd9, %rd8;
  st.u32 [%rd9], %r9;
  ld.shared.u32 %r9, [%r10];
)",
      [](uint32_t t) { return 10 * (t % 4 + 1) + 20 - 1; }, 32, globals);
}

TEST(Execution, Warp) {
  expect("shfl.sync.bfly.b32 %r9|%p1, %r1, 5, 31, -1;",
         [](uint32_t t) { return t ^ 5; });
  expect("shfl.sync.down.b32 %r9, %r1, 4, 31, -1;",
         [](uint32_t t) { return t + 4 < 32 ? t + 4 : t; });
  expect("redux.sync.add.s32 %r9, %r1, -1;", [](uint32_t) { return 496u; });
  expect("and.b32 %r2, %r1, 3; match.any.sync.b32 %r9, %r2, -1;",
         [](uint32_t t) { return 0x11111111u << (t % 4); });
  expect("elect.sync %r2|%p1, -1; selp.b32 %r9, 1, 0, %p1;",
         [](uint32_t t) { return t == 0; });
  expect("setp.gt.u32 %p1, %r1, 20; vote.sync.ballot.b32 %r9, %p1, -1;",
         [](uint32_t) { return 0xFFE00000u; });
  expect("setp.gt.u32 %p1, %r1, 20; @%p1 activemask.b32 %r9;",
         [](uint32_t t) { return t > 20 ? 0xFFE00000u : 0; });
  // Lanes that come on different paths meet at a warp barrier.
  expect(R"(
  setp.lt.u32 %p1, %r1, 16;
  @%p1 bra A;
  bar.warp.sync 0xFFFF0000;
  mov.u32 %r9, 1;
  bra END;
A:
  bar.warp.sync 0x0000FFFF;
  mov.u32 %r9, 2;
)",
         [](uint32_t t) { return t < 16 ? 2 : 1; });
}

TEST(Execution, Atomics) {
  Result r = runBody(R"(
  mov.u32 %r3, s;
  setp.ne.u32 %p1, %r1, 0;
  @!%p1 st.shared.u32 [%r3], 0;
  bar.sync 0;
  red.shared.add.u32 [%r3], %r1;
  bar.sync 0;
  ld.shared.u32 %r9, [%r3];
)",
                     128);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.y[77], 127u * 128 / 2);
  EXPECT_EQ(r.report.total.atomics, 4u);
}

TEST(Execution, BlocksInParallelAreDeterministic) {
  const char *body = R"(
  mov.u32 %r2, %ctaid.x;
  shl.b32 %r3, %r1, 2;
  mov.u32 %r4, s;
  add.s32 %r4, %r4, %r3;
  mad.lo.s32 %r5, %r2, 1000, %r1;
  st.shared.u32 [%r4], %r5;
  bar.sync 0;
  xor.b32 %r3, %r3, 252;
  mov.u32 %r4, s;
  add.s32 %r4, %r4, %r3;
  ld.shared.u32 %r9, [%r4];
)";
  Result one = runBody(body, 64, 50, "", 1), two = runBody(body, 64, 50, "", 2);
  ASSERT_EQ(one.error, "");
  ASSERT_EQ(two.error, "");
  EXPECT_EQ(one.y, two.y);
  EXPECT_EQ(one.y[64 * 7 + 3], 7000u + (3 ^ 63));
  EXPECT_EQ(one.report.total.warpInstructions,
            two.report.total.warpInstructions);
}

TEST(Counters, BankConflicts) {
  struct {
    unsigned stride; ///< bytes between lanes
    unsigned wavefronts;
  } cases[] = {{4, 1}, {0, 1}, {8, 2}, {128, 32}, {132, 1}, {64, 16}};
  for (auto &c : cases) {
    Result r =
        runBody("mov.u32 %r2, s; mad.lo.s32 %r3, %r1, " +
                std::to_string(c.stride) + ", %r2; st.shared.u32 [%r3], 5;");
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.report.total.sharedWavefronts, c.wavefronts) << c.stride;
    EXPECT_EQ(r.report.total.bankConflicts, c.wavefronts - 1) << c.stride;
  }
  // 16 bytes a lane: four passes without conflicts; a stride of 128 bytes puts
  // the eight lanes of a pass on the same four banks.
  Result r = runBody("mov.u32 %r2, s; mad.lo.s32 %r3, %r1, 16, %r2; "
                     "st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};");
  EXPECT_EQ(r.report.total.sharedWavefronts, 4u);
  EXPECT_EQ(r.report.total.bankConflicts, 0u);
  r = runBody("mov.u32 %r2, s; mad.lo.s32 %r3, %r1, 128, %r2; "
              "st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};");
  EXPECT_EQ(r.report.total.sharedWavefronts, 32u);
  EXPECT_EQ(r.report.total.bankConflicts, 28u);
}

TEST(Counters, SectorsAndBytes) {
  Result r = runBody("mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3; "
                     "ld.global.u32 %r9, [%rd3];");
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.y[5], 16u);
  EXPECT_EQ(r.report.total.globalLoadBytes, 128u);
  EXPECT_EQ(r.report.total.globalLoadSectors, 4u);
  EXPECT_EQ(r.report.total.globalLoadBytesByWidth[2], 128u);
  r = runBody("mul.wide.u32 %rd3, %r1, 32; add.s64 %rd3, %rd1, %rd3; "
              "ld.global.u32 %r9, [%rd3];");
  EXPECT_EQ(r.report.total.globalLoadSectors, 32u);
  EXPECT_EQ(r.report.total.globalStoreBytes, 128u);
}

TEST(Counters, WgmmaAndBulkCopies) {
  Outcome o = runKernel(testKernel("wgmma"), testKernel("wgmma").ptx, 0);
  ASSERT_FALSE(o.faulted) << o.message;
  const Counters &w = o.report.total;
  ASSERT_GT(w.mmaIssues, 0u);
  // Every operand byte is read in passes of 128 bytes, none twice.
  EXPECT_EQ(w.bankConflicts, 0u);
  EXPECT_GT(w.sharedWavefronts, 0u);
  EXPECT_EQ(w.mmaPaddingFlops, 0u);
  o = runKernel(testKernel("bulk"), testKernel("bulk").ptx, 0);
  ASSERT_FALSE(o.faulted) << o.message;
  const Counters &b = o.report.total;
  EXPECT_EQ(b.bankConflicts, 0u);
  EXPECT_EQ(b.bulkBytes, 8u * 512 + 512);
  // Lines of 128 bytes: in, read by four warps, sums written and stored.
  EXPECT_EQ(b.sharedWavefronts, 8u * 4 + 8 * 4 + 4 + 4);
  EXPECT_GE(b.maxAsyncBytesInFlight, 512u);
  // The loop that issues the loads has them in flight, not the store.
  uint64_t most = 0;
  for (const LoopReport &l : o.report.loops)
    most = std::max(most, l.counters.maxAsyncBytesInFlight);
  EXPECT_GE(most, 512u);
}

TEST(Counters, MmaAndLoops) {
  Outcome o = runKernel(testKernel("mma"), testKernel("mma").ptx, 0);
  ASSERT_FALSE(o.faulted) << o.message;
  EXPECT_EQ(o.report.total.mmaIssues, 1u);
  EXPECT_EQ(o.report.total.mmaFlops, 2u * 16 * 8 * 16);
  EXPECT_EQ(o.report.total.mmaPaddingFlops, 0u);
  EXPECT_EQ(o.report.total.bankConflicts, 4u); // rows of 32 bytes: 2-way
  o = runKernel(testKernel("pipeline"), testKernel("pipeline").ptx, 0);
  ASSERT_FALSE(o.faulted) << o.message;
  ASSERT_EQ(o.report.loops.size(), 1u);
  const LoopReport &l = o.report.loops[0];
  EXPECT_EQ(l.iterations, 4u * 8); // four warps
  EXPECT_EQ(l.counters.barriers, 4u * 8);
  EXPECT_EQ(l.counters.asyncCopyBytes, 6u * 512);
  EXPECT_EQ(o.report.total.asyncCopyBytes, 8u * 512);
  EXPECT_EQ(o.report.total.maxAsyncBytesInFlight, 2u * 512);
  // JSON has the same numbers.
  json::Object j = o.report.toJSON();
  EXPECT_EQ(j.getObject("total")->getInteger("async_copy_bytes"), 4096);
}

TEST(Api, MemoryDescribesAddresses) {
  Memory m;
  uint64_t a = m.addFilled("a", 100, 0);
  EXPECT_EQ(a % 256, 0u);
  EXPECT_EQ(m.describe(a + 5), "a+5");
  EXPECT_NE(m.describe(a + 100).find("0 bytes past the end of a of 100 bytes"),
            std::string::npos);
  uint64_t u = m.addUninitialized("u", 8);
  EXPECT_FALSE(m.isFullyInitialized(u));
  EXPECT_EQ(m.firstUninitialized(u), 0u);
  EXPECT_TRUE(m.bytes(12345).empty());
}

TEST(Api, GlobalsLiveFromLaunchToLaunch) {
  auto program = Program::parse(R"(.version 7.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 counter = 5;
.visible .entry bump()
{
  .reg .b32 %r<2>;
  ld.global.u32 %r1, [counter];
  add.s32 %r1, %r1, 1;
  st.global.u32 [counter], %r1;
  ret;
}
)");
  ASSERT_TRUE(bool(program)) << toString(program.takeError());
  ASSERT_EQ(program->kernels().size(), 1u);
  Memory memory;
  for (unsigned i = 0; i < 3; ++i) {
    auto report = program->launch("bump", LaunchConfig(), {}, memory);
    ASSERT_TRUE(bool(report)) << toString(report.takeError());
  }
  EXPECT_EQ(program->global("counter")[0], 8);
  auto missing = program->launch("other", LaunchConfig(), {}, memory);
  ASSERT_FALSE(bool(missing));
  EXPECT_NE(toString(missing.takeError()).find("no kernel 'other'"),
            std::string::npos);
}
