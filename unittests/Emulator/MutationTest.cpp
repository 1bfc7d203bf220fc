//===- MutationTest.cpp - Seeded faults in right kernels are found -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every kernel of TestKernels.cpp is right, and passes under 20 schedules. Each
// mutation below breaks one of them in one place; the emulator has to say so:
// with a fault, or at least with a wrong result, under one of the 20 schedules.
// The table stands in docs/Emulator.md.
//
//===----------------------------------------------------------------------===//

#include "TestKernels.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <map>

using namespace llvm;
using namespace humming;
using namespace humming::test;

namespace {
constexpr unsigned Schedules = 20;

struct Mutation {
  const char *kernel;
  const char *what;
  const char *find;
  unsigned occurrence; ///< from 1
  const char *replace;
  /// The fault that names the mistake; Limit stands for "any, or a wrong
  /// result".
  EmulatorFault fault;
};
using F = EmulatorFault;
constexpr EmulatorFault Any = EmulatorFault::Limit;

const Mutation mutations[] = {
    // Barriers.
    {"reduce", "the barrier of the loop dropped", "bar.sync 0;", 1, "",
     F::Race},
    {"reduce", "barrier under a divergent branch",
     "bar.sync 0;\n  setp.ge.u32 %p1, %r1, %r8;\n  @%p1 bra SKIP;", 1,
     "setp.ge.u32 %p1, %r1, %r8;\n  @%p1 bra SKIP;\n  bar.sync 0;", Any},
    {"reduce", "barrier waits for half of the threads", "bar.sync 0;", 1,
     "bar.sync 0, 64;", Any},
    {"reduce", "barrier waits for more threads than there are", "bar.sync 0;",
     1, "bar.sync 0, 160;", F::BarrierDivergence},
    {"pipeline", "the barrier after the wait dropped", "bar.sync 0;", 1, "",
     Any},
    {"splitk", "no barrier before the counter", "bar.sync 0;", 1, "", F::Race},
    {"splitk", "no barrier before the flag is read", "bar.sync 0;", 2, "", Any},
    {"named", "full signalled before the store",
     "st.shared.u32 [%r6], %r7;\n  bar.arrive 1, 128;", 1,
     "bar.arrive 1, 128;\n  st.shared.u32 [%r6], %r7;", F::Race},
    {"named", "consumer skips the full barrier",
     "bar.arrive 2, 128;\n  bar.sync 1, 128;", 1, "bar.arrive 2, 128;", Any},
    {"named", "producer does not wait for empty",
     "bar.sync 2, 128;\n  ld.global.u32", 1, "ld.global.u32", Any},
    {"named", "wrong barrier number", "bar.arrive 1, 128;", 1,
     "bar.arrive 3, 128;", F::Deadlock},
    {"named", "thread counts differ", "bar.arrive 1, 128;", 1,
     "bar.arrive 1, 64;", Any},
    {"mma", "the warp barrier before ldmatrix dropped", "bar.warp.sync -1;", 1,
     "", F::Race},
    {"cluster", "no cluster barrier before the peer's words are read",
     "barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;", 1, "",
     Any},
    {"cluster", "no cluster barrier before own words are overwritten",
     "barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;", 2, "",
     F::Race},
    {"cluster", "relaxed cluster arrive", "barrier.cluster.arrive.aligned;", 1,
     "barrier.cluster.arrive.relaxed.aligned;", F::Race},
    {"cluster", "arrive without wait", "barrier.cluster.wait.aligned;", 1, "",
     Any},
    // cp.async.
    {"pipeline", "the wait dropped", "cp.async.wait_group 1;", 1, "",
     F::AsyncInFlight},
    {"pipeline", "waits for one group too few", "cp.async.wait_group 1;", 1,
     "cp.async.wait_group 2;", F::AsyncInFlight},
    {"pipeline", "wait after the barrier",
     "cp.async.wait_group 1;\n  bar.sync 0;", 1,
     "bar.sync 0;\n  cp.async.wait_group 1;", Any},
    {"pipeline", "commit of the prologue dropped", "cp.async.commit_group;", 1,
     "", Any},
    {"pipeline", "copy into the stage that is being read",
     "add.s32 %r13, %r4, %r11;", 1, "add.s32 %r13, %r4, %r10;",
     F::AsyncInFlight},
    {"pipeline", "ring of two stages", "setp.eq.u32 %p5, %r11, 1536;", 1,
     "setp.eq.u32 %p5, %r11, 1024;", Any},
    {"pipeline", "prefetch bound off by one", "setp.lt.u32 %p2, %r12, %r30;", 1,
     "setp.le.u32 %p2, %r12, %r30;", F::OutOfBounds},
    {"pipeline", "copies 4 bytes less",
     "@%p3 cp.async.cg.shared.global [%r13], [%rd5], 16;", 1,
     "@%p3 cp.async.cg.shared.global [%r13], [%rd5], 16, 12;", Any},
    // Bounds, alignment, initialisation.
    {"reduce", "one element past the input", "ld.global.u32 %r4, [%rd4];", 1,
     "ld.global.u32 %r4, [%rd4+4];", F::OutOfBounds},
    {"reduce", "store past shared memory", "st.shared.u32 [%r7], %r4;", 1,
     "st.shared.u32 [%r7+4], %r4;", F::OutOfBounds},
    {"reduce", "misaligned load", "ld.global.u32 %r4, [%rd4];", 1,
     "ld.global.u32 %r4, [%rd4+2];", F::Misaligned},
    {"reduce", "half of the threads do not store", "st.shared.u32 [%r7], %r4;",
     1, "setp.lt.u32 %p1, %r1, 64;\n  @%p1 st.shared.u32 [%r7], %r4;",
     F::Uninitialized},
    {"reduce", "the tree starts one level late", "mov.u32 %r8, 64;", 1,
     "mov.u32 %r8, 32;", Any},
    {"mma", "wrong row stride of ldmatrix", "shl.b32 %r10, %r9, 5;", 1,
     "shl.b32 %r10, %r9, 4;", Any},
    {"mma", "ldmatrix transposes", "x4.shared.b16", 1, "x4.trans.shared.b16",
     Any},
    // Blocks.
    {"splitk", "the writer's fence dropped", "membar.gl;", 1, "", F::Race},
    {"splitk", "the reader's fence dropped", "membar.gl;", 2, "", F::Race},
    {"splitk", "fences for the block only", "membar.gl;", 1, "membar.cta;",
     F::Race},
    {"splitk", "counter not atomic", "atom.global.add.u32 %r6, [%rd4], 1;", 1,
     "ld.global.u32 %r6, [%rd4];\n  add.s32 %r7, %r6, 1;\n  st.global.u32 "
     "[%rd4], %r7;",
     F::Race},
    {"splitk", "the last but one block reduces", "setp.ne.u32 %p2, %r7, 3;", 1,
     "setp.ne.u32 %p2, %r7, 2;", Any},
    // mbarriers and bulk copies.
    {"bulk", "the consumer's wait dropped", "@!%p5 bra WAITF;", 1, "", Any},
    {"bulk", "consumer skips the full barrier",
     "mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r10], %r8;\n  @!%p5 bra "
     "WAITF;",
     1, "", Any},
    {"bulk", "stale phase bit of the consumer",
     "and.b32 %r8, %r8, 1;\n  shl.b32 %r9, %r7, 3;\n  add.s32 %r10, %r3, "
     "%r9;\n  add.s32 %r11, %r4, %r9;\nWAITF",
     1,
     "mov.u32 %r8, 0;\n  shl.b32 %r9, %r7, 3;\n  add.s32 %r10, %r3, %r9;\n  "
     "add.s32 %r11, %r4, %r9;\nWAITF",
     Any},
    {"bulk", "stale phase bit of the producer", "xor.b32 %r8, %r8, 1;", 1, "",
     F::Deadlock},
    {"bulk", "producer does not wait for empty", "@!%p3 bra WAITE;", 1, "",
     Any},
    {"bulk", "producer skips the empty barrier",
     "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r11], %r8;\n  @!%p3 bra "
     "WAITE;",
     1, "", Any},
    {"bulk", "empty signalled before the read",
     "ld.shared.u32 %r25, [%r24];\n  mbarrier.arrive.shared::cta.b64 _, "
     "[%r11];",
     1,
     "mbarrier.arrive.shared::cta.b64 _, [%r11];\n  ld.shared.u32 %r25, "
     "[%r24];",
     Any},
    {"bulk", "arrival count of empty too high",
     "mbarrier.init.shared::cta.b64 [empty], 128;", 1,
     "mbarrier.init.shared::cta.b64 [empty], 129;", F::Deadlock},
    {"bulk", "arrival count of empty too low",
     "mbarrier.init.shared::cta.b64 [empty], 128;", 1,
     "mbarrier.init.shared::cta.b64 [empty], 64;", Any},
    {"bulk", "expects fewer bytes than come", "[%r10], 512;\n  shl", 1,
     "[%r10], 496;\n  shl", Any},
    {"bulk", "expects more bytes than come", "[%r10], 512;\n  shl", 1,
     "[%r10], 528;\n  shl", F::Deadlock},
    {"bulk", "copy past the input", "[%r13], [%rd4], 512, [%r10]", 1,
     "[%r13], [%rd4+16], 512, [%r10]", F::OutOfBounds},
    {"bulk", "init not made visible to the async proxy",
     "fence.mbarrier_init.release.cluster;", 1, "", F::ProxyFence},
    {"bulk", "no barrier after the init", "INITED:\n  bar.sync 0;", 1,
     "INITED:", Any},
    {"bulk", "no proxy fence before the bulk store",
     "fence.proxy.async.shared::cta;", 1, "", F::ProxyFence},
    {"bulk", "no barrier before the bulk store", "bar.sync 1, 128;", 1, "",
     Any},
    {"bulk", "one barrier object missing",
     "mbarrier.init.shared::cta.b64 [full+8], 1;", 1, "", F::Mbarrier},
    // wgmma.
    {"wgmma", "no proxy fence before wgmma", "fence.proxy.async.shared::cta;",
     1, "", F::ProxyFence},
    {"wgmma", "no barrier before wgmma", "bar.sync 0;", 1, "", F::Race},
    {"wgmma", "no wait before the accumulators are read",
     "wgmma.wait_group.sync.aligned 0;", 1, "", F::AsyncInFlight},
    {"wgmma", "waits for one group too few", "wgmma.wait_group.sync.aligned 0;",
     1, "wgmma.wait_group.sync.aligned 1;", F::AsyncInFlight},
    {"wgmma", "no commit", "wgmma.commit_group.sync.aligned;", 1, "",
     F::AsyncInFlight},
    {"wgmma", "no wgmma.fence after the accumulators were set",
     "wgmma.fence.sync.aligned;", 1, "", F::AsyncInFlight},
    {"wgmma", "strides of the descriptor swapped",
     "or.b64 %rd8, %rd7, 0x0000001000080000;", 1,
     "or.b64 %rd8, %rd7, 0x0000000800100000;", Any},
    {"wgmma", "wrong swizzle mode", "or.b64 %rd8, %rd7, 0x0000001000080000;", 1,
     "or.b64 %rd8, %rd7, 0x4000001000080000;", Any},
    {"wgmma", "descriptor names bytes past shared memory",
     "or.b64 %rd8, %rd7, 0x0000001000080000;", 1,
     "or.b64 %rd8, %rd7, 0x0000080000080000;", F::OutOfBounds},
    {"wgmma", "operand overwritten while wgmma runs",
     "wgmma.commit_group.sync.aligned;", 1,
     "st.shared.u32 [%r8], %r1;\n  wgmma.commit_group.sync.aligned;",
     F::AsyncInFlight},
    // Remote stores.
    {"remote", "the wait dropped", "@!%p2 bra WAIT;", 1, "", F::AsyncInFlight},
    {"remote", "expects the bytes of the stores alone", "[%r6], 512;", 1,
     "[%r6], 256;", Any},
    {"remote", "expects more bytes than come", "[%r6], 512;", 1, "[%r6], 516;",
     F::Deadlock},
    {"remote", "stale phase bit", "and.b32 %r16, %r13, 1;", 1,
     "mov.u32 %r16, 0;", Any},
    {"remote", "overwrites the slot before it is read",
     "barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n  "
     "add.s32 %r13",
     1, "add.s32 %r13", Any},
    {"remote", "the counter is not set to zero", "st.shared.u32 [%r5], %r8;", 1,
     "", F::Uninitialized},
    {"remote", "stores complete on the own barrier",
     "mapa.shared::cluster.u32 %r12, %r6, %r9;", 1, "mov.u32 %r12, %r6;",
     F::Mbarrier},
    {"remote", "no cluster barrier after the init",
     "barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;", 1, "",
     Any},
};

/// Replaces the nth occurrence; empty when there is none.
std::string mutate(const std::string &text, const Mutation &m) {
  size_t at = std::string::npos;
  for (unsigned i = 0; i < m.occurrence; ++i) {
    at = text.find(m.find, i ? at + 1 : 0);
    if (at == std::string::npos)
      return "";
  }
  std::string out = text;
  out.replace(at, std::string(m.find).size(), m.replace);
  return out;
}

class Right : public testing::TestWithParam<unsigned> {};
} // namespace

TEST_P(Right, PassesUnderAllSchedules) {
  const TestKernel &kernel = testKernels()[GetParam()];
  for (unsigned seed = 0; seed < Schedules; ++seed) {
    Outcome o = runKernel(kernel, kernel.ptx, seed);
    EXPECT_FALSE(o.faulted)
        << kernel.name << ", seed " << seed << ": " << o.message;
    EXPECT_TRUE(o.faulted || o.right)
        << kernel.name << ", seed " << seed << ": wrong result";
  }
}
INSTANTIATE_TEST_SUITE_P(Mutation, Right, testing::Range(0u, 9u));

class Mutated : public testing::TestWithParam<unsigned> {};

TEST_P(Mutated, IsFound) {
  const Mutation &m = mutations[GetParam()];
  const TestKernel &kernel = testKernel(m.kernel);
  std::string ptx = mutate(kernel.ptx, m);
  ASSERT_FALSE(ptx.empty()) << m.kernel << ": " << m.what;
  unsigned found = 0, named = 0;
  std::string others;
  for (unsigned seed = 0; seed < Schedules; ++seed) {
    Outcome o = runKernel(kernel, ptx, seed);
    ASSERT_TRUE(!o.faulted || o.fault != EmulatorFault::Syntax) << o.message;
    found += o.faulted || !o.right;
    named += o.faulted && (m.fault == Any || o.fault == m.fault);
    if (o.faulted && m.fault != Any && o.fault != m.fault)
      others = o.message;
    if (o.faulted && seed == 0)
      RecordProperty("fault", toString(o.fault).str());
  }
  EXPECT_GT(found, 0u) << m.kernel << ": " << m.what << " is not found";
  if (m.fault != Any)
    EXPECT_GT(named, 0u) << m.kernel << ": " << m.what
                         << " is never called by its name; " << others;
}
INSTANTIATE_TEST_SUITE_P(Mutation, Mutated,
                         testing::Range(0u, unsigned(std::size(mutations))));

/// With HUMMING_MUTATION_TABLE set, prints the table of docs/Emulator.md.
TEST(MutationTable, CountsAtLeastForty) {
  EXPECT_GE(std::size(mutations), 40u);
  if (!std::getenv("HUMMING_MUTATION_TABLE"))
    return;
  for (const Mutation &m : mutations) {
    const TestKernel &kernel = testKernel(m.kernel);
    std::string ptx = mutate(kernel.ptx, m);
    unsigned found = 0;
    std::map<std::string, unsigned> names;
    for (unsigned seed = 0; seed < Schedules; ++seed) {
      Outcome o = runKernel(kernel, ptx, seed);
      found += o.faulted || !o.right;
      if (o.faulted)
        ++names[toString(o.fault).str()];
      else if (!o.right)
        ++names["wrong result"];
    }
    std::string list;
    for (auto &[name, n] : names)
      list += (list.empty() ? "" : ", ") + name + " " + std::to_string(n);
    printf("| %s | %s | %u | %s |\n", m.kernel, m.what, found, list.c_str());
  }
}
