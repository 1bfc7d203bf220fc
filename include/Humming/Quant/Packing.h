//===- Packing.h - The packed layout of weights and scales -------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One packed layout for all architectures: a function of the activation width A
// (16, 8 or 4 bits) and the weight width b (1..8, b <= A) alone.
//
// Codes lie in MMA fragment order, so that a lane reads the words of its
// fragments contiguously, and every MMA register comes out of one word by one
// shift and one mask. N and K are padded to multiples of 64 with code 0.
// Order, outermost first:
//
//   [N/64 strips][K/64 slabs][4 units of 16 rows][planes]
//
// A unit is 16 rows x 64 k, 128*b bytes. The b bits are split into planes of
// power-of-two width p, widest first, the widest holding the lowest bits
// (7 = 4 + 2 + 1). A plane is [32 lanes][p words] of 32 bits, little endian;
// p = 8 is split into two 16-byte chunks: [2 chunks][32 lanes][4 words].
//
// Lane L has g = L / 4 and t = L % 4. A register holds e = 32 / A values; the
// unit's 64 k are A/4 MMA steps of 256/A k with 4 registers each, so a lane has
// A registers. Register r of step s, element i, is the weight at
//
//   row = g + 8 * (r & 1),   k = (256/A) * s + (128/A) * (r >> 1) + e * t + i.
//
// Register R = 4*s + r lies in word R / (A/p), at column c = R % (A/p); the
// plane's p bits of element i are bits [i*A + c*p, i*A + c*p + p) of the word.
//
// Worked example, A = 16, b = 4: one plane, p = 4, 4 registers a word, so word
// s holds the k16 step s and the nibble of register r, element i sits at bit
// 16*i + 4*r: `(word >> 4*r) & 0x000F000F` is register r of the step.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_PACKING_H
#define HUMMING_QUANT_PACKING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace humming {

/// N and K of the packed layout are multiples of this.
constexpr int64_t kPackTile = 64;

constexpr int64_t roundUpTo(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// One bit plane of a packed unit.
struct PackedPlane {
  unsigned lowBit;     ///< lowest bit of the code that the plane holds
  unsigned width;      ///< bits per code: 1, 2, 4 or 8
  unsigned wordOffset; ///< first word of the plane within the unit
};

/// The planes of a `bits` wide code, widest first.
llvm::SmallVector<PackedPlane, 4> packedPlanes(unsigned bits);

/// Where one code lies: word index (32-bit) from the start of the packed
/// matrix and lowest bit within the word, for one plane.
struct PackedPosition {
  int64_t word;
  unsigned bit;
};
/// The position of row n, column k in a matrix of `k` total columns; a direct
/// transcription of the formula above, for tests and for tools that explain.
PackedPosition packedPosition(int64_t row, int64_t column, int64_t k,
                              unsigned activationBits, unsigned weightBits,
                              const PackedPlane &plane);

/// Checks that (activationBits, weightBits) has a packed layout.
/// Error: `expected ..., got ...`.
llvm::Error checkPackedWidths(unsigned activationBits, unsigned weightBits);

/// Bytes of a packed n x k matrix.
int64_t packedWeightBytes(int64_t n, int64_t k, unsigned activationBits,
                          unsigned weightBits);

/// Packs row-major codes (one byte each, n x k, `ld` bytes from row to row; the
/// bits above weightBits are ignored) into `out`, packedWeightBytes() long.
/// `threads` = 0 uses all hardware threads. Error: unsupported widths, or
/// buffers whose size does not fit the shape.
llvm::Error packWeights(llvm::ArrayRef<uint8_t> codes, int64_t n, int64_t k,
                        int64_t ld, unsigned activationBits,
                        unsigned weightBits, llvm::MutableArrayRef<uint8_t> out,
                        unsigned threads = 0);

/// The inverse: writes n x k codes, row-major with stride k.
llvm::Error unpackWeights(llvm::ArrayRef<uint8_t> packed, int64_t n, int64_t k,
                          unsigned activationBits, unsigned weightBits,
                          llvm::MutableArrayRef<uint8_t> codes,
                          unsigned threads = 0);

/// Packs n rows of little-endian bit streams: code k of row r occupies bits
/// [k*b, (k+1)*b) of the row, rows are `rowBytes` apart. Same result and errors
/// as packWeights on the expanded codes, without the expanded matrix.
llvm::Error packWeightStream(llvm::ArrayRef<uint8_t> stream, int64_t rowBytes,
                             int64_t n, int64_t k, unsigned activationBits,
                             unsigned weightBits,
                             llvm::MutableArrayRef<uint8_t> out,
                             unsigned threads = 0);

/// Expands codes.size() codes of a little-endian bit stream that start at bit
/// `bitOffset`; the stream must hold them all (asserted).
void unpackBitStream(llvm::ArrayRef<uint8_t> stream, int64_t bitOffset,
                     unsigned bits, llvm::MutableArrayRef<uint8_t> codes);
/// The inverse: writes codes as a bit stream from bit 0 on; unused bits of the
/// last byte are 0. `stream` holds at least ceil(codes.size()*bits/8) bytes.
void packBitStream(llvm::ArrayRef<uint8_t> codes, unsigned bits,
                   llvm::MutableArrayRef<uint8_t> stream);

//===----------------------------------------------------------------------===//
// Scales and zero points
//===----------------------------------------------------------------------===//
//
// Logical [N, G], G groups along K, packed as [G][N/64 strips][64]: row
// 16u + 8h + g of a strip sits at position 8g + 2u + h, so that the 8 rows that
// a lane's accumulators or fragments touch (g fixed) are contiguous. Padding
// rows are 0. The element is a scale of 1, 2 or 4 bytes, a float zero point of
// the same size, or an integer zero point of one byte.

constexpr int64_t packedScalePosition(int64_t row) {
  return (row / 64) * 64 + (row % 8) * 8 + (row % 64 / 16) * 2 + (row / 8) % 2;
}

/// Elements of a packed scale (or zero point) tensor.
constexpr int64_t packedScaleElements(int64_t n, int64_t groups) {
  return roundUpTo(n, kPackTile) * groups;
}

/// Packs logical row-major [n, groups] elements of `elementBytes` bytes.
/// Error: element size, or buffers whose size does not fit.
llvm::Error packScales(llvm::ArrayRef<uint8_t> scales, int64_t n,
                       int64_t groups, unsigned elementBytes,
                       llvm::MutableArrayRef<uint8_t> out);
/// The inverse.
llvm::Error unpackScales(llvm::ArrayRef<uint8_t> packed, int64_t n,
                         int64_t groups, unsigned elementBytes,
                         llvm::MutableArrayRef<uint8_t> scales);

} // namespace humming

#endif // HUMMING_QUANT_PACKING_H
