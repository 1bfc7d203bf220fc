//===- FaultTest.cpp - Errors name the fault, the place and the other side -*-
// C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Emulator/Emulator.h"
#include "gtest/gtest.h"

using namespace llvm;
using namespace humming;

namespace {
/// Runs a body with one buffer of 256 initialised bytes in %rd1 and returns the
/// error.
std::unique_ptr<EmulatorError> faultOf(StringRef body, LaunchConfig config,
                                       const char *extra = "") {
  std::string ptx = std::string(R"(.version 8.0
.target sm_90a
.address_size 64
.file 1 "kernel.mlir"
)") + extra + R"(
.visible .entry k(.param .u64 p)
{
  .reg .pred %p<8>;
  .reg .b16 %h<8>;
  .reg .b32 %r<32>;
  .reg .f32 %f<16>;
  .reg .b64 %rd<16>;
  .shared .align 16 .b8 s[1024];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  .loc 1 42 7
)" + body.str() + "\n  ret;\n}\n";
  auto program = Program::parse(ptx);
  std::unique_ptr<EmulatorError> result;
  auto take = [&](Error e) {
    handleAllErrors(std::move(e), [&](const EmulatorError &error) {
      result = std::make_unique<EmulatorError>(error);
    });
  };
  if (!program) {
    take(program.takeError());
    return result;
  }
  Memory memory;
  ArgumentPacker arguments;
  arguments.pointer(memory.addFilled("data", 256, 1));
  auto report = program->launch("k", config, arguments.bytes(), memory);
  if (!report)
    take(report.takeError());
  return result;
}
LaunchConfig threads(unsigned n) {
  LaunchConfig c;
  c.block = {n, 1, 1};
  return c;
}
} // namespace

TEST(Fault, NamesThePlace) {
  auto e = faultOf("  setp.ne.u32 %p1, %r1, 37;\n  @%p1 bra D;\n"
                   "  ld.global.u32 %r2, [%rd1+256];\nD:",
                   threads(64));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->fault, EmulatorFault::OutOfBounds);
  EXPECT_EQ(e->site.kernel, "k");
  EXPECT_EQ(e->site.warp, 1);
  EXPECT_EQ(e->site.lane, 5);
  EXPECT_EQ(e->site.ptxText, "ld.global.u32 %r2, [%rd1+256];");
  EXPECT_EQ(e->site.sourceFile, "kernel.mlir");
  EXPECT_EQ(e->site.sourceLine, 42u);
  EXPECT_NE(e->message.find("0 bytes past the end of data"), std::string::npos)
      << e->message;
}

TEST(Fault, NamesBothSidesOfARace) {
  auto e = faultOf("  shl.b32 %r2, %r1, 2;\n  mov.u32 %r3, s;\n"
                   "  add.s32 %r4, %r3, %r2;\n  st.shared.u32 [%r4], %r1;\n"
                   "  xor.b32 %r5, %r2, 128;\n  add.s32 %r6, %r3, %r5;\n"
                   "  ld.shared.u32 %r7, [%r6];",
                   threads(64));
  ASSERT_TRUE(e);
  // The schedule decides whether the read comes before or after the write.
  if (e->fault == EmulatorFault::Race) {
    ASSERT_EQ(e->notes.size(), 1u);
    EXPECT_NE(e->notes[0].second.ptxLine, e->site.ptxLine);
    EXPECT_NE(e->notes[0].second.warp, e->site.warp);
  } else {
    EXPECT_EQ(e->fault, EmulatorFault::Uninitialized);
  }
}

TEST(Fault, Kinds) {
  struct {
    const char *body;
    EmulatorFault fault;
    unsigned block;
  } cases[] = {
      {"  ld.global.u32 %r2, [%rd1+2];", EmulatorFault::Misaligned, 1},
      {"  ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%rd1+8];",
       EmulatorFault::Misaligned, 1},
      {"  mov.u64 %rd2, 0;\n  ld.global.u32 %r2, [%rd2];",
       EmulatorFault::OutOfBounds, 1},
      {"  ld.shared.u32 %r2, [s+1024];", EmulatorFault::OutOfBounds, 1},
      {"  ld.shared.u32 %r2, [s];", EmulatorFault::Uninitialized, 1},
      {"  ld.local.u32 %r2, [0];", EmulatorFault::OutOfBounds, 1},
      {"  trap;", EmulatorFault::IllegalInstruction, 1},
      {"  st.shared.u32 [s], %r1;", EmulatorFault::Race, 2},
      {"  setp.lt.u32 %p1, %r1, 16;\n  @%p1 bra D;\n  bar.sync 0;\nD:",
       EmulatorFault::BarrierDivergence, 32},
      {"  setp.lt.u32 %p1, %r1, 32;\n  @%p1 bra D;\n  bar.sync 1, 64;\nD:",
       EmulatorFault::Deadlock, 64},
      {"  bar.sync 17;", EmulatorFault::IllegalInstruction, 32},
      {"  setp.lt.u32 %p1, %r1, 16;\n  @%p1 bra D;\n  shfl.sync.idx.b32 %r2, "
       "%r1, 0, 31, -1;\n  bra E;\nD:\n  bar.warp.sync -1;\nE:",
       EmulatorFault::Deadlock, 32},
      {"  mov.u32 %r2, 1;\n  shfl.sync.idx.b32 %r3, %r1, 0, 31, %r2;",
       EmulatorFault::BarrierDivergence, 32},
      {"  mbarrier.arrive.shared.b64 %rd2, [s];", EmulatorFault::Mbarrier, 1},
      {"  mbarrier.init.shared.b64 [s], 1;\n  ld.shared.u64 %rd2, [s];",
       EmulatorFault::Mbarrier, 1},
      {"  mbarrier.init.shared.b64 [s], 0;", EmulatorFault::Mbarrier, 1},
      {"  mbarrier.init.shared.b64 [s], 2;\nW:\n  "
       "mbarrier.try_wait.parity.shared.b64 %p1, [s], 0;\n  @!%p1 bra W;",
       EmulatorFault::Deadlock, 1},
      {"W:\n  ld.volatile.global.u32 %r2, [%rd1];\n  setp.ne.u32 %p1, %r2, "
       "0;\n  @%p1 bra W;",
       EmulatorFault::Deadlock, 1},
      {"  cp.async.ca.shared.global [s], [%rd1], 16;\n  ld.shared.u32 %r2, "
       "[s];",
       EmulatorFault::AsyncInFlight, 1},
      {"  cp.async.ca.shared.global [s+4], [%rd1], 16;",
       EmulatorFault::Misaligned, 1},
      {"  clusterlaunchcontrol.try_cancel.async.b128 [s], [s];",
       EmulatorFault::Unsupported, 1},
      {"  tcgen05.wait::ld.sync.aligned;", EmulatorFault::Unsupported, 32},
      {"  wgmma.fence.sync.aligned;", EmulatorFault::BarrierDivergence, 16},
      {"  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [s];",
       EmulatorFault::BarrierDivergence, 16},
      {"W: bra W;", EmulatorFault::Limit, 1},
  };
  for (auto &c : cases) {
    LaunchConfig config = threads(c.block);
    config.instructionLimit = 1 << 22;
    auto e = faultOf(c.body, config);
    ASSERT_TRUE(e) << c.body;
    EXPECT_EQ(e->fault, c.fault) << c.body << "\n" << e->message;
  }
}

TEST(Fault, SyntaxErrorsNameTheLine) {
  struct {
    const char *body, *text;
  } cases[] = {
      {"  add.s32 %r2, %r1;", "expected 3 operands of 'add', got 2"},
      {"  add.s32 %r2, %r1, %rd1;",
       "expected a 32-bit register, got '%rd1' of 64 bits"},
      {"  add.s32 %r2, %r1, %q1;", "use of undeclared name '%q1'"},
      {"  bra NOWHERE;", "use of undefined label 'NOWHERE'"},
      {"  mov.u32 %r2, 5", "expected ';', got 'ret'"},
      {"  @%r1 ret;", "expected a predicate, got '%r1'"},
      {"  cp.async.cg.shared.global [s], [%rd1], 8;",
       "expected 16 bytes with .cg, got 8"},
  };
  for (auto &c : cases) {
    auto e = faultOf(c.body, threads(1));
    ASSERT_TRUE(e) << c.body;
    EXPECT_EQ(e->fault, EmulatorFault::Syntax);
    EXPECT_EQ(e->message, c.text);
    EXPECT_GE(e->site.ptxLine, 15u);
    EXPECT_LE(e->site.ptxLine, 18u);
  }
}

TEST(Fault, DeadlockSaysWhoWaitsWhere) {
  auto e = faultOf("  mbarrier.init.shared.b64 [s], 2;\n  "
                   "mbarrier.arrive.shared.b64 %rd2, [s];\nW:\n  "
                   "mbarrier.try_wait.parity.shared.b64 %p1, [s], 0;\n  "
                   "@!%p1 bra W;",
                   threads(1));
  ASSERT_TRUE(e);
  ASSERT_FALSE(e->notes.empty());
  EXPECT_EQ(e->notes[0].first,
            "waits for phase parity 0 of the mbarrier at shared offset 0: "
            "phase 0 has 1 of 2 arrivals and 0 bytes pending");
}

TEST(Fault, LaunchConfig) {
  LaunchConfig c = threads(2048);
  auto e = faultOf("", c);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->fault, EmulatorFault::LaunchConfig);
  EXPECT_EQ(e->message, "expected at most 1024 threads per block, got 2048");
  c = threads(32);
  c.dynamicSharedBytes = 300000;
  e = faultOf("", c);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->fault, EmulatorFault::LaunchConfig);
}
