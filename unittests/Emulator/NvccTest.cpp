//===- NvccTest.cpp - Kernels compiled by nvcc give what a GPU gave -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inputs/kernels_*.ptx is scripts/emulator_kernels/kernels.cu as nvcc 13.0
// compiled it; Inputs/outputs.bin is what an H200 computed from the same PTX
// (scripts/emulator_kernels/make.sh).
//
//===----------------------------------------------------------------------===//

#include "Humming/Emulator/Emulator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace llvm;
using namespace humming;

namespace {
// The same list as in scripts/emulator_kernels/run.cpp.
struct NvccKernel {
  const char *name;
  unsigned grid[2], block[2];
};
const NvccKernel kernels[] = {
    {"scan", {4, 1}, {256, 1}},      {"histogram", {4, 1}, {128, 1}},
    {"transpose", {2, 2}, {32, 8}},  {"bits", {8, 1}, {128, 1}},
    {"floats", {8, 1}, {128, 1}},    {"halves", {8, 1}, {128, 1}},
    {"last_block", {8, 1}, {64, 1}}, {"tensor", {1, 1}, {32, 1}},
    {"barriers", {1, 1}, {128, 1}},  {"dsmem", {4, 1}, {128, 1}},
};

std::unique_ptr<MemoryBuffer> read(const Twine &name) {
  auto file = MemoryBuffer::getFile(
      Twine(HUMMING_SOURCE_DIR "/unittests/Emulator/Inputs/") + name,
      /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return file ? std::move(*file) : nullptr;
}

void runKernel(Program &program, StringRef sm, const NvccKernel &kernel,
               const char *want, ArrayRef<uint8_t> x);

void runModule(StringRef sm) {
  auto text = read("kernels_" + sm + ".ptx"), truth = read("outputs.bin");
  ASSERT_TRUE(text && truth);
  ASSERT_EQ(truth->getBufferSize(), 4096 * std::size(kernels));
  auto program = Program::parse(text->getBuffer());
  ASSERT_TRUE(bool(program)) << toString(program.takeError());
  std::vector<uint32_t> x(4096);
  uint32_t state = 12345;
  for (uint32_t &v : x)
    v = state = state * 1664525u + 1013904223u;
  for (unsigned k = 0; k < std::size(kernels); ++k) {
    const NvccKernel &kernel = kernels[k];
    bool known = false;
    for (const KernelInfo &info : program->kernels())
      known |= info.name == kernel.name;
    if (!known) // dsmem needs sm_90
      continue;
    runKernel(
        *program, sm, kernel, truth->getBufferStart() + 4096 * k,
        ArrayRef<uint8_t>(reinterpret_cast<uint8_t *>(x.data()), 4 * x.size()));
  }
}

void runKernel(Program &program, StringRef sm, const NvccKernel &kernel,
               const char *want, ArrayRef<uint8_t> x) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Memory memory;
    uint64_t px = memory.add("x", x);
    uint64_t py = memory.addFilled("y", x.size(), 0);
    ArgumentPacker args;
    args.pointer(px).pointer(py).i32(1000);
    LaunchConfig config;
    config.grid = {kernel.grid[0], kernel.grid[1], 1};
    config.block = {kernel.block[0], kernel.block[1], 1};
    if (StringRef(kernel.name) == "dsmem")
      config.cluster = {2, 1, 1};
    config.seed = seed;
    auto report = program.launch(kernel.name, config, args.bytes(), memory);
    ASSERT_TRUE(bool(report))
        << kernel.name << ": " << toString(report.takeError());
    const uint8_t *got = memory.bytes(py).data();
    for (unsigned i = 0; i < 1024; ++i) {
      uint32_t a, b;
      std::memcpy(&a, got + 4 * i, 4);
      std::memcpy(&b, want + 4 * i, 4);
      ASSERT_EQ(a, b) << kernel.name << " " << sm.str() << ", word " << i;
    }
  }
}
} // namespace

TEST(Nvcc, Sm80) { runModule("sm80"); }
TEST(Nvcc, Sm90) { runModule("sm90"); }
