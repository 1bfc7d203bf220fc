//===- HardwareTensorTest.cpp - Replays the tensor copies of a GPU --------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/data/hardware/tensor.bin has, for every case of TensorCases.h, what the
// driver and an H200 said of it (refused map, illegal instruction, misaligned
// address) or the bytes that the copy gave.
//
//===----------------------------------------------------------------------===//

#include "HardwareSupport.h"
#include "Humming/Emulator/TensorMap.h"
#include "TensorCases.h"
#include "llvm/Support/Error.h"

using namespace humming::ptx;

static TensorMap mapOf(const truth::TensorCase &c) {
  TensorMap m;
  m.rank = uint8_t(c.rank);
  m.element = TensorElement(c.type);
  m.swizzle = TensorSwizzle(c.swizzle);
  m.interleave = TensorInterleave(c.interleave);
  m.oobNaN = c.nanFill;
  for (unsigned i = 0; i < c.rank; ++i) {
    m.dims[i] = c.dims[i];
    m.strides[i] = i ? c.strides[i - 1] : elementBytes(m.element);
    m.box[i] = c.box[i];
    m.elementStrides[i] = c.elementStrides[i];
  }
  return m;
}

/// What the recording let the barrier expect: the box as if interleave were
/// none.
static uint32_t recordedAs(const truth::TensorCase &c) {
  truth::TensorCase plain = c;
  plain.interleave = 0;
  uint32_t bytes = truth::tensorBoxBytes(plain);
  return bytes;
}

// CUDA's error numbers.
constexpr uint32_t illegalInstruction = 715, misalignedAddress = 716;

TEST(Hardware, Tensor) {
  auto cases = load("tensor");
  const truth::Case *status = find(cases, "status");
  ASSERT_TRUE(status);
  size_t at = 0;
  for (const truth::TensorCase &c : truth::tensorCases) {
    TensorMap map = mapOf(c);
    ASSERT_LT(at, status->count);
    uint32_t verdict = uint32_t(storedValue(*status, at++));
    bool refused =
        verdict >= truth::statusRefused && verdict < truth::statusFailed;
    std::string text = llvm::toString(map.verify());
    EXPECT_EQ(refused, !text.empty()) << c.name << ": " << text;
    if (refused)
      continue;
    text = llvm::toString(verifyTensorCoordinates(map, c.coords, c.store));
    EXPECT_EQ(verdict == truth::statusFailed + illegalInstruction,
              !text.empty())
        << c.name << ": " << text;
    EXPECT_EQ(verdict == truth::statusFailed + misalignedAddress,
              c.sharedOffset % 128 != 0)
        << c.name;
    if (verdict)
      continue;
    const truth::Case *hardware = find(cases, c.name);
    if (!hardware)
      continue;
    uint64_t seed = truth::nameHash(c.name);
    std::vector<uint32_t> global(truth::tensorGlobalBytes / 4),
        shared(truth::tensorSharedBytes / 4 + 1);
    for (uint32_t i = 0; i < global.size(); ++i)
      global[i] = truth::tensorInput(c, seed, i);
    for (uint32_t i = 0; i + 1 < shared.size(); ++i)
      shared[i] = truth::tensorSharedWord(seed, i);
    // The barrier completed. Where the recording expected other bytes than
    // came (interleave), it did not.
    shared.back() = recordedAs(c) == map.boxBytes();
    uint8_t *g = reinterpret_cast<uint8_t *>(global.data());
    uint8_t *s = reinterpret_cast<uint8_t *>(shared.data());
    forEachTensorChunk(
        map, c.coords, c.sharedOffset, [&](const TensorChunk &chunk) {
          uint8_t *to = s + c.sharedOffset + chunk.sharedOffset;
          ASSERT_LE(c.sharedOffset + chunk.sharedOffset + chunk.bytes,
                    truth::tensorSharedBytes);
          if (chunk.inBounds)
            ASSERT_LE(chunk.globalAddress + chunk.bytes,
                      truth::tensorGlobalBytes);
          if (c.store) {
            if (chunk.inBounds)
              memcpy(g + chunk.globalAddress, to, chunk.bytes);
          } else if (chunk.inBounds) {
            memcpy(to, g + chunk.globalAddress, chunk.bytes);
            transformTensorElements(map.element, {to, chunk.bytes});
          } else {
            for (uint32_t i = 0; i < chunk.bytes; ++i)
              to[i] = uint8_t(oobFill(map) >> (8 * (i % 8)));
          }
        });
    if (c.store)
      compareBits(*hardware, global.data(), uint32_t(global.size()), 4, number);
    else
      compareBits(*hardware, shared.data(), uint32_t(shared.size()), 4, number);
  }
}
