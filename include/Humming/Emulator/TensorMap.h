//===- TensorMap.h - The emulator's tensor map ------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The 128-byte object behind cp.async.bulk.tensor. The driver's CUtensorMap is
// opaque, so the emulator has its own encoding of the same facts in the same
// size and alignment (64 bytes); a kernel cannot tell them apart because it
// only ever passes the address on.
//
// Dimension 0 is the innermost, its stride is the element size. All offsets
// are bytes.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_EMULATOR_TENSORMAP_H
#define HUMMING_EMULATOR_TENSORMAP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>

namespace humming {
namespace ptx {

enum class TensorElement : uint8_t {
  U8,
  U16,
  U32,
  S32,
  U64,
  S64,
  F16,
  F32,
  F64,
  BF16,
  F32Ftz,
  TF32,
  TF32Ftz,
};
unsigned elementBytes(TensorElement type);

enum class TensorSwizzle : uint8_t { None, B32, B64, B128 };
enum class TensorInterleave : uint8_t { None, B16, B32 };

/// What cuTensorMapEncodeTiled takes. rank 1..5; entries past rank are ignored.
struct TensorMap {
  uint64_t base = 0; ///< global address, 16-byte aligned
  uint8_t rank = 0;
  TensorElement element = TensorElement::U8;
  TensorSwizzle swizzle = TensorSwizzle::None;
  TensorInterleave interleave = TensorInterleave::None;
  bool oobNaN = false; ///< out-of-bounds fill: NaN instead of zero
  std::array<uint64_t, 5> dims = {};    ///< elements
  std::array<uint64_t, 5> strides = {}; ///< bytes; strides[0] is not read
  std::array<uint32_t, 5> box = {};     ///< elements of shared box
  /// Traversal strides in elements; [0] is not read without interleave.
  std::array<uint32_t, 5> elementStrides = {1, 1, 1, 1, 1};

  /// Checks every rule of cuTensorMapEncodeTiled.
  llvm::Error verify() const;
  /// Elements of the box along one dimension: ceil(box / element stride). With
  /// interleave dimension 0 counts slices of 16 or 32 bytes and dimension
  /// rank - 2 is not traversed, as observed on an H200.
  uint32_t boxCount(unsigned dimension) const;
  /// Bytes that one box moves (what complete_tx counts).
  uint32_t boxBytes() const;
  /// Bytes of one element of dimension 0: of the type, or of a slice.
  uint32_t unitBytes() const;
  /// Bytes from a row of the box to the next in shared memory. A row that is
  /// narrower than the swizzle's span leaves the rest of the span as it is.
  uint32_t rowPitch() const;
};

using TensorMapBytes = std::array<uint8_t, 128>;

/// Error: names the field that breaks a rule of cuTensorMapEncodeTiled.
llvm::Expected<TensorMapBytes> encodeTensorMap(const TensorMap &map);
/// Error when the bytes are no tensor map made by encodeTensorMap.
llvm::Expected<TensorMap> decodeTensorMap(llvm::ArrayRef<uint8_t> bytes);

/// Checks what hardware demands of the start of a box: an innermost coordinate
/// at a multiple of 16 bytes, and no negative coordinate of a store (an H200
/// answers either with an illegal instruction). Error: says which.
llvm::Error verifyTensorCoordinates(const TensorMap &map,
                                    llvm::ArrayRef<int32_t> coords,
                                    bool isStore);

/// A run of consecutive bytes of one box copy: \p bytes (at most 16, never
/// crossing a 16-byte line of shared memory) at \p sharedOffset from the box's
/// first byte in shared memory, from or to \p globalAddress; when \p inBounds
/// is false the load writes fill and the store skips.
struct TensorChunk {
  uint32_t sharedOffset;
  uint32_t bytes;
  uint64_t globalAddress;
  bool inBounds;
};

/// Calls \p visit for every chunk of the box at element coordinates \p coords
/// (innermost first, rank entries, may be negative). \p sharedAddress is the
/// box's shared address: the swizzle is a function of address bits.
void forEachTensorChunk(const TensorMap &map, llvm::ArrayRef<int32_t> coords,
                        uint32_t sharedAddress,
                        llvm::function_ref<void(const TensorChunk &)> visit);

/// Global address of one box element (\p boxIndex innermost first), or false
/// when it lies outside the tensor.
bool tensorElementAddress(const TensorMap &map, llvm::ArrayRef<int32_t> coords,
                          llvm::ArrayRef<uint32_t> boxIndex, uint64_t &address);

/// Swizzled shared address of byte \p address. The pattern repeats every 256,
/// 512 or 1024 bytes of absolute shared address.
inline uint32_t swizzleAddress(TensorSwizzle swizzle, uint32_t address) {
  switch (swizzle) {
  case TensorSwizzle::None:
    return address;
  case TensorSwizzle::B32:
    return address ^ ((address >> 3) & 0x10);
  case TensorSwizzle::B64:
    return address ^ ((address >> 3) & 0x30);
  case TensorSwizzle::B128:
    return address ^ ((address >> 3) & 0x70);
  }
  return address;
}

/// The byte pattern of out-of-bounds elements (repeated): 0, or 0x7FF7 in every
/// half word, whatever the float type, as an H200 writes.
uint64_t oobFill(const TensorMap &map);

/// What a load does to the elements on the way, in place: TF32 and TF32Ftz
/// round to tf32. Other types pass through; so do the subnormals of the .ftz
/// types, whose name concerns reductions (observed on an H200).
/// \p bytes holds whole elements.
void transformTensorElements(TensorElement type,
                             llvm::MutableArrayRef<uint8_t> bytes);

} // namespace ptx
} // namespace humming

#endif // HUMMING_EMULATOR_TENSORMAP_H
