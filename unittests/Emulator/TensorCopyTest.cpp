//===- TensorCopyTest.cpp - Tensor maps: swizzles, bounds, multicast, stores -*-
// C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Emulator/Emulator.h"
#include "Humming/Emulator/TensorMap.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace llvm;
using namespace humming;

namespace {
/// A box of 8 rows of 32 words at column cx, row cy goes to shared memory with
/// 128-byte swizzle; every word gets 1 added there; the box goes to the same
/// place of y. The inner loop reads and writes word (r, lane) at its swizzled
/// place.
const char *const copyKernel = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry copy(.param .align 64 .b8 mx[128], .param .align 64 .b8 my[128], .param .u32 pcx, .param .u32 pcy)
{
  .reg .pred %p<4>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<8>;
  .shared .align 1024 .b8 tile[1024];
  .shared .align 8 .b8 bar[8];
  ld.param.u32 %r10, [pcx];
  ld.param.u32 %r11, [pcy];
  mov.b64 %rd1, mx;
  cvta.param.u64 %rd2, %rd1;
  mov.b64 %rd3, my;
  cvta.param.u64 %rd4, %rd3;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r2, tile;
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd2, {%r10, %r11}], [bar];
READY:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;
  @!%p2 bra WAIT;
  mov.u32 %r3, 0;
ROW:
  shl.b32 %r4, %r1, 2;
  and.b32 %r5, %r3, 7;
  shl.b32 %r5, %r5, 4;
  xor.b32 %r4, %r4, %r5;
  shl.b32 %r6, %r3, 7;
  add.s32 %r6, %r6, %r4;
  add.s32 %r6, %r6, %r2;
  ld.shared.u32 %r7, [%r6];
  add.s32 %r7, %r7, 1;
  st.shared.u32 [%r6], %r7;
  add.s32 %r3, %r3, 1;
  setp.lt.u32 %p3, %r3, 8;
  @%p3 bra ROW;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p1 bra DONE;
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd4, {%r10, %r11}], [%r2];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
DONE:
  ret;
}
)";

ptx::TensorMap map2d(uint64_t base, uint64_t columns, uint64_t rows,
                     ptx::TensorSwizzle swizzle) {
  ptx::TensorMap m;
  m.base = base;
  m.rank = 2;
  m.element = ptx::TensorElement::U32;
  m.swizzle = swizzle;
  m.dims = {columns, rows, 0, 0, 0};
  m.strides = {4, columns * 4, 0, 0, 0};
  m.box = {32, 8, 0, 0, 0};
  return m;
}

std::string launchCopy(Memory &memory, const ptx::TensorMap &x,
                       const ptx::TensorMap &y, int cx, int cy, uint64_t seed,
                       StringRef text = copyKernel) {
  auto program = Program::parse(text);
  if (!program)
    return toString(program.takeError());
  auto bx = ptx::encodeTensorMap(x), by = ptx::encodeTensorMap(y);
  if (!bx || !by)
    return toString(joinErrors(bx.takeError(), by.takeError()));
  ArgumentPacker args;
  args.raw(bx->data(), 128, 64).raw(by->data(), 128, 64).i32(cx).i32(cy);
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.seed = seed;
  auto report = program->launch("copy", config, args.bytes(), memory);
  return report ? "" : toString(report.takeError());
}
} // namespace

TEST(TensorCopy, SwizzleBoundsAndStore) {
  constexpr unsigned Columns = 40, Rows = 12;
  // Inside, and past the right and lower edge.
  const int places[][2] = {{0, 0}, {20, 7}, {36, 11}, {8, 4}};
  for (auto &[cx, cy] : places)
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Memory memory;
      std::vector<uint32_t> x(Columns * Rows);
      for (unsigned i = 0; i < x.size(); ++i)
        x[i] = 1000 + i;
      uint64_t px = memory.add(
          "x", ArrayRef<uint8_t>(reinterpret_cast<uint8_t *>(x.data()),
                                 4 * x.size()));
      uint64_t py = memory.addFilled("y", 4 * x.size(), 0);
      auto mx = map2d(px, Columns, Rows, ptx::TensorSwizzle::B128),
           my = map2d(py, Columns, Rows, ptx::TensorSwizzle::B128);
      ASSERT_EQ(launchCopy(memory, mx, my, cx, cy, seed), "");
      std::vector<uint32_t> y(x.size());
      std::memcpy(y.data(), memory.bytes(py).data(), 4 * y.size());
      for (int r = 0; r < int(Rows); ++r)
        for (int c = 0; c < int(Columns); ++c) {
          bool inside = c >= cx && c < cx + 32 && r >= cy && r < cy + 8;
          ASSERT_EQ(y[r * Columns + c],
                    inside ? 1001 + unsigned(r) * Columns + unsigned(c) : 0)
              << "row " << r << ", column " << c;
        }
    }
}

// What hardware answers with an illegal instruction.
TEST(TensorCopy, CoordinatesThatHardwareRefuses) {
  const struct {
    int cx, cy;
    const char *text;
  } places[] = {
      {5, 0,
       "illegal-instruction: expected an innermost coordinate at a multiple of "
       "16 bytes, got 5 elements of 4 bytes\n"},
      {8, -3,
       "illegal-instruction: expected no negative coordinate of a store, got "
       "-3 in dimension 1\n"}};
  for (auto &place : places) {
    Memory memory;
    uint64_t px = memory.addFilled("x", 4 * 40 * 12, 1),
             py = memory.addFilled("y", 4 * 40 * 12, 0);
    auto mx = map2d(px, 40, 12, ptx::TensorSwizzle::B128),
         my = map2d(py, 40, 12, ptx::TensorSwizzle::B128);
    std::string text = launchCopy(memory, mx, my, place.cx, place.cy, 0);
    EXPECT_EQ(text.substr(0, StringRef(place.text).size()), place.text);
  }
}

TEST(TensorCopy, WrongSwizzleGivesWrongResult) {
  Memory memory;
  uint64_t px = memory.addFilled("x", 32 * 8 * 4, 0),
           py = memory.addFilled("y", 32 * 8 * 4, 0);
  for (unsigned i = 0; i < 256; ++i)
    memory.bytes(px)[4 * i] = uint8_t(i);
  // Loaded with one pattern and stored with another.
  ASSERT_EQ(launchCopy(memory, map2d(px, 32, 8, ptx::TensorSwizzle::B128),
                       map2d(py, 32, 8, ptx::TensorSwizzle::None), 0, 0, 0),
            "");
  EXPECT_NE(memory.bytes(py)[4 * 33], uint8_t(33 + 1));
  EXPECT_EQ(memory.bytes(py)[4 * 5], uint8_t(5 + 1)); // row 0 is not moved
}

TEST(TensorCopy, Reduce) {
  std::string text = copyKernel;
  std::string from = "cp.async.bulk.tensor.2d.global.shared::cta.tile";
  text.replace(text.find(from), from.size(),
               "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile");
  Memory memory;
  uint64_t px = memory.addFilled("x", 1024, 1), // 0x01010101
      py = memory.addFilled("y", 1024, 2);
  ASSERT_EQ(launchCopy(memory, map2d(px, 32, 8, ptx::TensorSwizzle::B128),
                       map2d(py, 32, 8, ptx::TensorSwizzle::B128), 0, 0, 0,
                       text),
            "");
  uint32_t v;
  std::memcpy(&v, memory.bytes(py).data() + 500, 4);
  EXPECT_EQ(v, 0x01010102u + 0x02020202u);
}

TEST(TensorCopy, Faults) {
  Memory memory;
  uint64_t px = memory.addFilled("x", 4096, 0),
           py = memory.addFilled("y", 4096, 0);
  auto mx = map2d(px, 32, 8, ptx::TensorSwizzle::B128),
       my = map2d(py, 32, 8, ptx::TensorSwizzle::B128);
  struct {
    const char *find, *replace, *message;
  } cases[] = {
      {"tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
       "[%r2], [%rd2, {%r10, %r11}]",
       "tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
       "[%r2], [%rd2, {%r10, %r11, %r11}]",
       "descriptor: tensor map has rank 2, the instruction has 3"},
      {".tile.mbarrier::complete_tx::bytes [%r2], [%rd2,",
       ".tile.mbarrier::complete_tx::bytes [%r2+16], [%rd2,",
       "out-of-bounds: bulk copy of 1024 bytes at shared offset 16"},
      {"[bar], 1024;", "[bar], 1008;", "deadlock"},
      {"fence.proxy.async.shared::cta;", "", "proxy-fence"},
      {"cvta.param.u64 %rd2, %rd1;",
       "cvta.param.u64 %rd2, %rd1; add.s64 "
       "%rd2, %rd2, 64;",
       "descriptor: illegal tensor map"},
  };
  for (auto &c : cases) {
    std::string text = copyKernel;
    size_t at = text.find(c.find);
    ASSERT_NE(at, std::string::npos) << c.find;
    text.replace(at, std::strlen(c.find), c.replace);
    std::string error = launchCopy(memory, mx, my, 0, 0, 0, text);
    EXPECT_NE(error.find(c.message), std::string::npos) << error;
  }
  // A map of memory that is smaller than it says.
  auto large = map2d(px, 32, 64, ptx::TensorSwizzle::B128);
  std::string error = launchCopy(memory, large, my, 0, 32, 0);
  EXPECT_NE(error.find("past the end of x"), std::string::npos) << error;
}

TEST(TensorCopy, Multicast) {
  // Block 0 of a cluster of two loads 256 bytes for both; each block waits on
  // its own mbarrier.
  const char *text = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry cast(.param .u64 px, .param .u64 py)
.reqnctapercluster 2
{
  .reg .pred %p<4>;
  .reg .b16 %h<2>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<8>;
  .shared .align 128 .b8 tile[256];
  .shared .align 8 .b8 bar[8];
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [py];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %cluster_ctarank;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra INITED;
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
INITED:
  barrier.cluster.arrive;
  barrier.cluster.wait;
  or.b32 %r3, %r1, %r2;
  setp.ne.u32 %p2, %r3, 0;
  mov.u16 %h1, 3;
  mov.u32 %r4, tile;
  @!%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r4], [%rd1], 256, [bar], %h1;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0;
  @!%p3 bra WAIT;
  shl.b32 %r5, %r1, 2;
  add.s32 %r6, %r4, %r5;
  ld.shared.u32 %r7, [%r6];
  add.s32 %r7, %r7, %r2;
  shl.b32 %r8, %r2, 8;
  add.s32 %r8, %r8, %r5;
  cvt.u64.u32 %rd3, %r8;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r7;
  ret;
}
)";
  auto program = Program::parse(text);
  ASSERT_TRUE(bool(program)) << toString(program.takeError());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Memory memory;
    uint64_t px = memory.addFilled("x", 256, 7),
             py = memory.addUninitialized("y", 512);
    ArgumentPacker args;
    args.pointer(px).pointer(py);
    LaunchConfig config;
    config.grid = {2, 1, 1};
    config.cluster = {2, 1, 1};
    config.block = {64, 1, 1};
    config.seed = seed;
    auto report = program->launch("cast", config, args.bytes(), memory);
    ASSERT_TRUE(bool(report)) << toString(report.takeError());
    EXPECT_EQ(report->total.bulkBytes, 256u);
    for (unsigned b = 0; b < 2; ++b)
      for (unsigned t = 0; t < 64; ++t) {
        uint32_t v;
        std::memcpy(&v, memory.bytes(py).data() + 256 * b + 4 * t, 4);
        ASSERT_EQ(v, 0x07070707u + b);
      }
  }
}
