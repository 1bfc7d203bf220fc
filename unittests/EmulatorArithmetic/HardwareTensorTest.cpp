//===- HardwareTensorTest.cpp - Replays the tensor copies of a GPU --------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Waits for test/data/hardware/tensor.bin: it is not part of the unit tests
// until scripts/hardware_truth has recorded every tensor case (the recording
// stops with an illegal instruction at the case r2_f16_oob_left).
//
//===----------------------------------------------------------------------===//

#include "HardwareSupport.h"
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

TEST(Hardware, Tensor) {
  auto cases = load("tensor");
  const truth::Case *status = find(cases, "encode_status");
  if (!status)
    return;
  size_t at = 0;
  for (const truth::TensorCase &c : truth::tensorCases) {
    TensorMap map = mapOf(c);
    ASSERT_LT(at, status->count);
    bool accepted = storedValue(*status, at++) == 0;
    llvm::Error error = map.verify();
    std::string text = llvm::toString(std::move(error));
    EXPECT_EQ(accepted, text.empty()) << c.name << ": " << text;
    if (!accepted)
      continue;
    const truth::Case *hardware = find(cases, c.name);
    if (!hardware)
      continue;
    EXPECT_EQ(map.boxBytes(), truth::tensorBoxBytes(c)) << c.name;
    uint64_t seed = truth::nameHash(c.name);
    std::vector<uint32_t> global(truth::tensorGlobalBytes / 4),
        shared(truth::tensorSharedBytes / 4 + 1);
    for (uint32_t i = 0; i < global.size(); ++i)
      global[i] = truth::tensorInput(c, seed, i);
    for (uint32_t i = 0; i + 1 < shared.size(); ++i)
      shared[i] = truth::tensorSharedWord(seed, i);
    shared.back() = 1; // the barrier completed
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
            memset(to, int(oobFill(map) & 0xFF), chunk.bytes);
          }
        });
    if (c.store)
      compareBits(*hardware, global.data(), uint32_t(global.size()), 4, number);
    else
      compareBits(*hardware, shared.data(), uint32_t(shared.size()), 4, number);
  }
}
