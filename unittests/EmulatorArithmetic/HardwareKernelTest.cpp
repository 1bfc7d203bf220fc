//===- HardwareKernelTest.cpp - Replays the kernels that a GPU ran --------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/data/hardware/kernels.ptx (scripts/hardware_truth/make_kernels.py) holds
// kernels of asynchronous copies, bulk copies and reductions, mbarriers,
// clusters, atomics and cache hints; kernels.bin is what an H200 computed from
// the same text. The emulator gives the same bits under every schedule.
//
//===----------------------------------------------------------------------===//

#include "HardwareSupport.h"
#include "Humming/Emulator/Emulator.h"
#include "KernelList.h"
#include "llvm/Support/Error.h"

using namespace humming;

namespace {
class HardwareKernels : public testing::Test {
protected:
  static Program *program;
  static std::vector<truth::KernelCase> list;
  static std::map<std::string, truth::Case> results;

  static void SetUpTestSuite() {
    auto file = llvm::MemoryBuffer::getFile(HUMMING_SOURCE_DIR
                                            "/test/data/hardware/kernels.ptx");
    ASSERT_TRUE(bool(file));
    llvm::StringRef text = (*file)->getBuffer();
    list = truth::parseKernelCases(text.data(), text.size());
    auto parsed = Program::parse(text);
    ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
    program = new Program(std::move(*parsed));
    results = load("kernels");
  }
  static void TearDownTestSuite() {
    delete program;
    program = nullptr;
  }

  static void run(const truth::KernelCase &c, uint64_t seed) {
    std::vector<uint32_t> in(truth::kernelInputWords);
    for (uint32_t i = 0; i < in.size(); ++i)
      in[i] = truth::kernelInput(c, i);
    Memory memory;
    uint64_t input = memory.add(
        "in", {reinterpret_cast<const uint8_t *>(in.data()), 4 * in.size()});
    uint64_t output = memory.addFilled("out", 4 * c.words, 0);
    ArgumentPacker arguments;
    arguments.pointer(input).pointer(output);
    LaunchConfig config;
    config.grid = {c.grid, 1, 1};
    config.block = {c.block, 1, 1};
    config.seed = seed;
    auto report = program->launch(c.name, config, arguments.bytes(), memory);
    if (!report) {
      ADD_FAILURE() << c.name << ", seed " << seed << ": "
                    << llvm::toString(report.takeError());
      return;
    }
    if (const truth::Case *hardware = find(results, c.name))
      compareBits(*hardware, memory.bytes(output).data(), c.words, 4, number);
  }
};
Program *HardwareKernels::program;
std::vector<truth::KernelCase> HardwareKernels::list;
std::map<std::string, truth::Case> HardwareKernels::results;
} // namespace

TEST_F(HardwareKernels, SameBitsUnderEverySchedule) {
  ASSERT_GT(list.size(), 100u);
  // Recorded without a fault, each of them.
  const truth::Case *status = find(results, "status");
  ASSERT_TRUE(status);
  ASSERT_EQ(status->count, list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(storedValue(*status, i), 0u) << list[i].name;
    for (uint64_t seed = 0; seed < 4; ++seed)
      run(list[i], seed);
  }
}
