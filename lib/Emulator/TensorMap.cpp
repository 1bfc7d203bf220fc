//===- TensorMap.cpp - The emulator's tensor map --------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A box lies in shared memory row by row, dimension 0 innermost; the swizzle is
// applied to the address of each 16-byte chunk. What the documentation leaves
// open (rows narrower than the swizzle's span, interleave, the NaN fill) is as
// an H200 does it: unittests/EmulatorArithmetic/HardwareTensorTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "Humming/Emulator/TensorMap.h"
#include "Humming/Emulator/Arithmetic.h"
#include "llvm/Support/Endian.h"
#include <algorithm>

using namespace humming;
using namespace humming::ptx;
namespace endian = llvm::support::endian;

unsigned ptx::elementBytes(TensorElement type) {
  switch (type) {
  case TensorElement::U8:
    return 1;
  case TensorElement::U16:
  case TensorElement::F16:
  case TensorElement::BF16:
    return 2;
  case TensorElement::U64:
  case TensorElement::S64:
  case TensorElement::F64:
    return 8;
  default:
    return 4;
  }
}

static bool isFloat(TensorElement type) { return type >= TensorElement::F16; }

uint32_t TensorMap::boxCount(unsigned dimension) const {
  if (interleave != TensorInterleave::None && dimension + 2 == rank)
    return 1;
  uint32_t stride = dimension == 0 ? 1 : elementStrides[dimension];
  return (box[dimension] + stride - 1) / stride;
}

uint32_t TensorMap::unitBytes() const {
  return interleave == TensorInterleave::None  ? elementBytes(element)
         : interleave == TensorInterleave::B16 ? 16
                                               : 32;
}

static uint32_t swizzleSpan(TensorSwizzle swizzle) {
  switch (swizzle) {
  case TensorSwizzle::None:
    return 0;
  case TensorSwizzle::B32:
    return 32;
  case TensorSwizzle::B64:
    return 64;
  case TensorSwizzle::B128:
    return 128;
  }
  return 0;
}

uint32_t TensorMap::rowPitch() const {
  uint32_t bytes = boxCount(0) * unitBytes();
  return interleave == TensorInterleave::None
             ? std::max(bytes, swizzleSpan(swizzle))
             : bytes;
}

uint32_t TensorMap::boxBytes() const {
  uint32_t bytes = unitBytes();
  for (unsigned i = 0; i < rank; ++i)
    bytes *= boxCount(i);
  return bytes;
}

llvm::Error TensorMap::verify() const {
  auto fail = [](const llvm::Twine &what) {
    return llvm::createStringError(llvm::Twine("tensor map: ") + what);
  };
  auto at = [](const char *field, unsigned i) {
    return (llvm::Twine(field) + "[" + llvm::Twine(i) + "]").str();
  };
  unsigned size = elementBytes(element);
  unsigned align = interleave == TensorInterleave::B32 ? 32 : 16;
  if (rank < 1 || rank > 5)
    return fail("expected rank 1 to 5, got " + llvm::Twine(unsigned(rank)));
  if (interleave != TensorInterleave::None && rank < 3)
    return fail("expected rank 3 or more with interleave, got " +
                llvm::Twine(unsigned(rank)));
  if (base % align)
    return fail("expected a base address aligned to " + llvm::Twine(align) +
                " bytes, got 0x" + llvm::Twine::utohexstr(base));
  for (unsigned i = 0; i < rank; ++i) {
    if (dims[i] == 0 || dims[i] > (uint64_t(1) << 32))
      return fail(at("dims", i) + ": expected 1 to 2^32, got " +
                  llvm::Twine(dims[i]));
    if (i > 0 && (strides[i] % align || strides[i] >= (uint64_t(1) << 40)))
      return fail(at("strides", i) + ": expected a multiple of " +
                  llvm::Twine(align) + " below 2^40, got " +
                  llvm::Twine(strides[i]));
    if (box[i] == 0 || box[i] > 256)
      return fail(at("box", i) + ": expected 1 to 256, got " +
                  llvm::Twine(box[i]));
    if (elementStrides[i] == 0 || elementStrides[i] > 8)
      return fail(at("elementStrides", i) + ": expected 1 to 8, got " +
                  llvm::Twine(elementStrides[i]));
  }
  uint32_t inner = box[0] * size;
  if (interleave == TensorInterleave::None) {
    if (inner % 16)
      return fail("expected box[0] of a multiple of 16 bytes, got " +
                  llvm::Twine(inner));
    uint32_t span = swizzleSpan(swizzle);
    if (span && inner > span)
      return fail("expected box[0] of at most " + llvm::Twine(span) +
                  " bytes with this swizzle, got " + llvm::Twine(inner));
  } else if (interleave == TensorInterleave::B32 &&
             swizzle != TensorSwizzle::B32) {
    return fail("expected the 32-byte swizzle with the 32-byte interleave");
  }
  if (oobNaN && !isFloat(element))
    return fail("expected a float type for the NaN fill");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

// Offsets: 0 mark, 8 base, 16 rank, element, swizzle, interleave, fill,
// 24 dims - 1 (u32), 44 strides 1..4 (u64), 76 box (u16), 86 elementStrides
// (u8).
static constexpr char mark[9] = "HummTMap";

llvm::Expected<TensorMapBytes> ptx::encodeTensorMap(const TensorMap &map) {
  if (llvm::Error error = map.verify())
    return std::move(error);
  TensorMapBytes bytes = {};
  memcpy(bytes.data(), mark, 8);
  endian::write64le(&bytes[8], map.base);
  bytes[16] = map.rank;
  bytes[17] = uint8_t(map.element);
  bytes[18] = uint8_t(map.swizzle);
  bytes[19] = uint8_t(map.interleave);
  bytes[20] = map.oobNaN;
  for (unsigned i = 0; i < map.rank; ++i) {
    endian::write32le(&bytes[24 + 4 * i], uint32_t(map.dims[i] - 1));
    if (i > 0)
      endian::write64le(&bytes[44 + 8 * (i - 1)], map.strides[i]);
    endian::write16le(&bytes[76 + 2 * i], uint16_t(map.box[i]));
    bytes[86 + i] = uint8_t(map.elementStrides[i]);
  }
  return bytes;
}

llvm::Expected<TensorMap> ptx::decodeTensorMap(llvm::ArrayRef<uint8_t> bytes) {
  if (bytes.size() != 128 || memcmp(bytes.data(), mark, 8) != 0)
    return llvm::createStringError(
        "expected a tensor map made by encodeTensorMap, got other bytes");
  TensorMap map;
  map.base = endian::read64le(&bytes[8]);
  map.rank = bytes[16];
  if (map.rank > 5 || bytes[17] > uint8_t(TensorElement::TF32Ftz) ||
      bytes[18] > uint8_t(TensorSwizzle::B128) ||
      bytes[19] > uint8_t(TensorInterleave::B32))
    return llvm::createStringError("tensor map: damaged bytes");
  map.element = TensorElement(bytes[17]);
  map.swizzle = TensorSwizzle(bytes[18]);
  map.interleave = TensorInterleave(bytes[19]);
  map.oobNaN = bytes[20];
  map.strides[0] = elementBytes(map.element);
  for (unsigned i = 0; i < map.rank; ++i) {
    map.dims[i] = uint64_t(endian::read32le(&bytes[24 + 4 * i])) + 1;
    if (i > 0)
      map.strides[i] = endian::read64le(&bytes[44 + 8 * (i - 1)]);
    map.box[i] = endian::read16le(&bytes[76 + 2 * i]);
    map.elementStrides[i] = bytes[86 + i];
  }
  if (llvm::Error error = map.verify())
    return std::move(error);
  return map;
}

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

bool ptx::tensorElementAddress(const TensorMap &map,
                               llvm::ArrayRef<int32_t> coords,
                               llvm::ArrayRef<uint32_t> boxIndex,
                               uint64_t &address) {
  address = map.base;
  bool inside = true;
  for (unsigned i = 0; i < map.rank; ++i) {
    uint32_t step = i == 0 ? 1 : map.elementStrides[i];
    int64_t at = int64_t(coords[i]) + int64_t(boxIndex[i]) * step;
    inside &= at >= 0 && uint64_t(at) < map.dims[i];
    uint64_t stride = i == 0 ? map.unitBytes() : map.strides[i];
    address += uint64_t(at) * stride;
  }
  return inside;
}

llvm::Error ptx::verifyTensorCoordinates(const TensorMap &map,
                                         llvm::ArrayRef<int32_t> coords,
                                         bool isStore) {
  int64_t inner = int64_t(coords[0]) * elementBytes(map.element);
  if (map.interleave == TensorInterleave::None && inner % 16)
    return llvm::createStringError(
        "expected an innermost coordinate at a multiple of 16 bytes, got " +
        llvm::Twine(coords[0]) + " elements of " +
        llvm::Twine(elementBytes(map.element)) + " bytes");
  for (unsigned i = 0; isStore && i < map.rank; ++i)
    if (coords[i] < 0)
      return llvm::createStringError(
          "expected no negative coordinate of a store, got " +
          llvm::Twine(coords[i]) + " in dimension " + llvm::Twine(i));
  return llvm::Error::success();
}

void ptx::forEachTensorChunk(
    const TensorMap &map, llvm::ArrayRef<int32_t> coords,
    uint32_t sharedAddress,
    llvm::function_ref<void(const TensorChunk &)> visit) {
  // Units wider than a line are moved as lines.
  uint32_t lines = std::max(1u, map.unitBytes() / 16);
  uint32_t size = map.unitBytes() / lines;
  uint32_t inner = map.boxCount(0) * lines, pitch = map.rowPitch();
  auto at = [&](uint32_t x, uint32_t (&index)[5], uint64_t &address) {
    index[0] = x / lines;
    bool inside = tensorElementAddress(map, coords, index, address);
    address += uint64_t(x % lines) * size;
    return inside;
  };
  uint32_t rows = 1;
  for (unsigned i = 1; i < map.rank; ++i)
    rows *= map.boxCount(i);
  uint32_t index[5] = {};
  for (uint32_t row = 0; row < rows; ++row) {
    uint32_t rest = row;
    for (unsigned i = 1; i < map.rank; ++i) {
      index[i] = rest % map.boxCount(i);
      rest /= map.boxCount(i);
    }
    // Runs of elements with the same verdict, contiguous in global memory, cut
    // at the 16-byte lines of shared memory.
    for (uint32_t x = 0; x < inner;) {
      uint64_t address;
      bool inside = at(x, index, address);
      uint32_t linear = sharedAddress + row * pitch + x * size;
      uint32_t room = 16 - linear % 16;
      uint32_t run = 1;
      while (x + run < inner && (run + 1) * size <= room) {
        uint64_t next;
        if (at(x + run, index, next) != inside ||
            next != address + uint64_t(run) * size)
          break;
        ++run;
      }
      visit({swizzleAddress(map.swizzle, linear) - sharedAddress, run * size,
             address, inside});
      x += run;
    }
  }
}

uint64_t ptx::oobFill(const TensorMap &map) {
  return map.oobNaN ? 0x7FF77FF77FF77FF7 : 0;
}

void ptx::transformTensorElements(TensorElement type,
                                  llvm::MutableArrayRef<uint8_t> bytes) {
  if (type != TensorElement::TF32 && type != TensorElement::TF32Ftz)
    return;
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    uint32_t v = endian::read32le(&bytes[i]);
    v = uint32_t(convert(FloatType::TF32, FloatType::F32, v));
    endian::write32le(&bytes[i], v);
  }
}
