//===- Packing.cpp - The packed layout of weights and scales --------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The inner loop works on whole MMA registers: the e = 32/A codes of a register
// are e consecutive bytes of a row, which a short shift-and-mask turns into one
// 32-bit word with a code in the low bits of each A-bit field. A plane of that
// register is then (register >> lowBit) & fieldMask, and goes to its column of
// its word by one shift. So the cost is a few word operations per register and
// plane, whatever the widths.
//
// Worked example, A = 16, b = 6: register bytes (0x2B, 0x15) become 0x0015002B;
// plane 4 takes 0x0005000B, plane 2 takes (>> 4) & 0x00030003 = 0x00010002.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/Packing.h"
#include "Humming/Quant/Parallel.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include <cassert>
#include <cstring>

using namespace llvm;
using support::endian::read16le;
using support::endian::read32le;
using support::endian::read64le;
using support::endian::write32le;

namespace humming {

SmallVector<PackedPlane, 4> packedPlanes(unsigned bits) {
  SmallVector<PackedPlane, 4> planes;
  unsigned lowBit = 0;
  for (unsigned width : {8u, 4u, 2u, 1u})
    if (bits & width) {
      // A plane of width p has 32 lanes x p words.
      planes.push_back({lowBit, width, 32 * lowBit});
      lowBit += width;
    }
  return planes;
}

PackedPosition packedPosition(int64_t row, int64_t column, int64_t k,
                              unsigned activationBits, unsigned weightBits,
                              const PackedPlane &plane) {
  int64_t slabs = roundUpTo(k, kPackTile) / kPackTile;
  int64_t unit = ((row / 64) * slabs + column / 64) * 4 + (row % 64) / 16;
  unsigned A = activationBits, e = 32 / A;
  unsigned r16 = row % 16, k64 = column % 64;
  unsigned step = k64 / (256 / A), inStep = k64 % (256 / A);
  unsigned half = inStep / (128 / A), inHalf = inStep % (128 / A);
  unsigned lane = (r16 % 8) * 4 + inHalf / e, element = inHalf % e;
  unsigned reg = 4 * step + 2 * half + r16 / 8;
  unsigned perWord = A / plane.width;
  unsigned word = reg / perWord, fieldColumn = reg % perWord;
  unsigned inPlane = plane.width == 8 ? (word / 4) * 128 + lane * 4 + word % 4
                                      : lane * plane.width + word;
  return {unit * 32 * int64_t(weightBits) + plane.wordOffset + inPlane,
          element * A + fieldColumn * plane.width};
}

Error checkPackedWidths(unsigned activationBits, unsigned weightBits) {
  if (activationBits != 16 && activationBits != 8 && activationBits != 4)
    return createStringError(formatv(
        "expected activations of 16, 8 or 4 bits, got {0}", activationBits));
  if (weightBits < 1 || weightBits > 8 || weightBits > activationBits)
    return createStringError(
        formatv("expected weights of 1 to {0} bits for {1}-bit activations, "
                "got {2}",
                std::min(8u, activationBits), activationBits, weightBits));
  return Error::success();
}

int64_t packedWeightBytes(int64_t n, int64_t k, unsigned activationBits,
                          unsigned weightBits) {
  (void)activationBits; // the size depends on the weight width alone
  return roundUpTo(n, kPackTile) * roundUpTo(k, kPackTile) / 8 * weightBits;
}

static Error checkShape(int64_t n, int64_t k) {
  if (n < 0 || k < 0 || n > (int64_t(1) << 31) || k > (int64_t(1) << 31))
    return createStringError(formatv(
        "expected a weight shape of 0 to 2^31 a side, got {0} x {1}", n, k));
  return Error::success();
}

static Error checkSize(StringRef what, uint64_t got, int64_t expected) {
  if (got == uint64_t(expected))
    return Error::success();
  return createStringError(
      formatv("expected {0} of {1} bytes, got {2}", what, expected, got));
}

/// A word with `width` ones at the bottom of each A-bit field.
static constexpr uint32_t fieldMask(unsigned activationBits, unsigned width) {
  uint32_t mask = 0;
  for (unsigned bit = 0; bit < 32; bit += activationBits)
    mask |= ((1u << width) - 1) << bit;
  return mask;
}

/// Spreads e = 32/A code bytes over the A-bit fields of a register.
template <unsigned A>
static uint32_t gatherRegister(const uint8_t *codes) {
  if constexpr (A == 16) {
    uint32_t x = read16le(codes);
    return (x & 0xFF) | (x & 0xFF00) << 8;
  } else if constexpr (A == 8) {
    return read32le(codes);
  } else {
    // Eight bytes to eight nibbles: fold pairs, then quads, then octets.
    uint64_t x = read64le(codes) & 0x0F0F0F0F0F0F0F0Full;
    x = (x | x >> 4) & 0x00FF00FF00FF00FFull;
    x = (x | x >> 8) & 0x0000FFFF0000FFFFull;
    return uint32_t(x | x >> 16);
  }
}

template <unsigned A>
static void scatterRegister(uint32_t x, uint8_t *codes) {
  if constexpr (A == 16) {
    codes[0] = uint8_t(x);
    codes[1] = uint8_t(x >> 16);
  } else if constexpr (A == 8) {
    write32le(codes, x);
  } else {
    uint64_t y = x;
    y = (y | y << 16) & 0x0000FFFF0000FFFFull;
    y = (y | y << 8) & 0x00FF00FF00FF00FFull;
    y = (y | y << 4) & 0x0F0F0F0F0F0F0F0Full;
    support::endian::write64le(codes, y);
  }
}

/// Offset of word `w` of lane `lane` in a plane of width p.
static unsigned wordInPlane(unsigned p, unsigned lane, unsigned w) {
  return p == 8 ? (w / 4) * 128 + lane * 4 + w % 4 : lane * p + w;
}

/// Packs one unit; `tile` is 16 rows of 64 codes.
template <unsigned A>
static void packUnit(const uint8_t (&tile)[16][64],
                     ArrayRef<PackedPlane> planes, uint8_t *out) {
  constexpr unsigned e = 32 / A;
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned g = lane / 4, t = lane % 4;
    uint32_t registers[A];
    for (unsigned R = 0; R < A; ++R) {
      unsigned s = R / 4, r = R % 4;
      registers[R] = gatherRegister<A>(
          &tile[g + 8 * (r & 1)][(256 / A) * s + (128 / A) * (r >> 1) + e * t]);
    }
    for (const PackedPlane &plane : planes) {
      unsigned p = plane.width, perWord = A / p;
      uint32_t mask = fieldMask(A, p);
      for (unsigned w = 0; w < p; ++w) {
        uint32_t word = 0;
        for (unsigned c = 0; c < perWord; ++c)
          word |= ((registers[w * perWord + c] >> plane.lowBit) & mask)
                  << (c * p);
        write32le(out + 4 * (plane.wordOffset + wordInPlane(p, lane, w)), word);
      }
    }
  }
}

template <unsigned A>
static void unpackUnit(const uint8_t *in, ArrayRef<PackedPlane> planes,
                       uint8_t (&tile)[16][64]) {
  constexpr unsigned e = 32 / A;
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned g = lane / 4, t = lane % 4;
    uint32_t registers[A] = {};
    for (const PackedPlane &plane : planes) {
      unsigned p = plane.width, perWord = A / p;
      uint32_t mask = fieldMask(A, p);
      for (unsigned w = 0; w < p; ++w) {
        uint32_t word =
            read32le(in + 4 * (plane.wordOffset + wordInPlane(p, lane, w)));
        for (unsigned c = 0; c < perWord; ++c)
          registers[w * perWord + c] |= ((word >> (c * p)) & mask)
                                        << plane.lowBit;
      }
    }
    for (unsigned R = 0; R < A; ++R) {
      unsigned s = R / 4, r = R % 4;
      scatterRegister<A>(
          registers[R],
          &tile[g + 8 * (r & 1)][(256 / A) * s + (128 / A) * (r >> 1) + e * t]);
    }
  }
}

/// Runs fetch(row, column, count, out) for every row of every unit and packs
/// the result.
template <unsigned A, typename Fetch>
static void packAll(int64_t n, int64_t k, unsigned bits, uint8_t *out,
                    unsigned threads, Fetch fetch) {
  SmallVector<PackedPlane, 4> planes = packedPlanes(bits);
  int64_t strips = roundUpTo(n, 64) / 64, slabs = roundUpTo(k, 64) / 64;
  int64_t unitBytes = 128 * int64_t(bits);
  parallelFor(strips, 1, threads, [&](int64_t begin, int64_t end) {
    uint8_t tile[16][64];
    for (int64_t strip = begin; strip < end; ++strip)
      for (int64_t slab = 0; slab < slabs; ++slab)
        for (int64_t unit = 0; unit < 4; ++unit) {
          for (int64_t r = 0; r < 16; ++r) {
            int64_t row = strip * 64 + unit * 16 + r, column = slab * 64;
            int64_t count = row < n ? std::min<int64_t>(64, k - column) : 0;
            if (count < 64)
              std::memset(tile[r], 0, 64);
            if (count > 0)
              fetch(row, column, count, tile[r]);
          }
          packUnit<A>(tile, planes,
                      out + ((strip * slabs + slab) * 4 + unit) * unitBytes);
        }
  });
}

template <typename Fetch>
static void dispatchPack(int64_t n, int64_t k, unsigned activationBits,
                         unsigned bits, uint8_t *out, unsigned threads,
                         Fetch fetch) {
  switch (activationBits) {
  case 16:
    return packAll<16>(n, k, bits, out, threads, fetch);
  case 8:
    return packAll<8>(n, k, bits, out, threads, fetch);
  default:
    return packAll<4>(n, k, bits, out, threads, fetch);
  }
}

Error packWeights(ArrayRef<uint8_t> codes, int64_t n, int64_t k, int64_t ld,
                  unsigned activationBits, unsigned weightBits,
                  MutableArrayRef<uint8_t> out, unsigned threads) {
  if (Error error = checkPackedWidths(activationBits, weightBits))
    return error;
  if (Error error = checkShape(n, k))
    return error;
  if (ld < k)
    return createStringError(
        formatv("expected a row stride of at least {0}, got {1}", k, ld));
  if (n > 0 && uint64_t((n - 1) * ld + k) > codes.size())
    return createStringError(
        formatv("expected codes of at least {0} bytes for {1} x {2} with "
                "stride {3}, got {4}",
                (n - 1) * ld + k, n, k, ld, codes.size()));
  if (Error error =
          checkSize("a packed buffer", out.size(),
                    packedWeightBytes(n, k, activationBits, weightBits)))
    return error;
  dispatchPack(n, k, activationBits, weightBits, out.data(), threads,
               [&](int64_t row, int64_t column, int64_t count, uint8_t *tile) {
                 std::memcpy(tile, codes.data() + row * ld + column, count);
               });
  return Error::success();
}

Error packWeightStream(ArrayRef<uint8_t> stream, int64_t rowBytes, int64_t n,
                       int64_t k, unsigned activationBits, unsigned weightBits,
                       MutableArrayRef<uint8_t> out, unsigned threads) {
  if (Error error = checkPackedWidths(activationBits, weightBits))
    return error;
  if (Error error = checkShape(n, k))
    return error;
  int64_t needed = (k * weightBits + 7) / 8;
  if (rowBytes < needed)
    return createStringError(
        formatv("expected rows of at least {0} bytes for {1} codes of {2} "
                "bits, got {3}",
                needed, k, weightBits, rowBytes));
  if (n > 0 && uint64_t((n - 1) * rowBytes + needed) > stream.size())
    return createStringError(
        formatv("expected a stream of at least {0} bytes, got {1}",
                (n - 1) * rowBytes + needed, stream.size()));
  if (Error error =
          checkSize("a packed buffer", out.size(),
                    packedWeightBytes(n, k, activationBits, weightBits)))
    return error;
  dispatchPack(n, k, activationBits, weightBits, out.data(), threads,
               [&](int64_t row, int64_t column, int64_t count, uint8_t *tile) {
                 unpackBitStream(stream.slice(row * rowBytes, needed),
                                 column * weightBits, weightBits,
                                 MutableArrayRef<uint8_t>(tile, count));
               });
  return Error::success();
}

template <unsigned A>
static void unpackAll(const uint8_t *packed, int64_t n, int64_t k,
                      unsigned bits, uint8_t *codes, unsigned threads) {
  SmallVector<PackedPlane, 4> planes = packedPlanes(bits);
  int64_t strips = roundUpTo(n, 64) / 64, slabs = roundUpTo(k, 64) / 64;
  int64_t unitBytes = 128 * int64_t(bits);
  parallelFor(strips, 1, threads, [&](int64_t begin, int64_t end) {
    uint8_t tile[16][64];
    for (int64_t strip = begin; strip < end; ++strip)
      for (int64_t slab = 0; slab < slabs; ++slab)
        for (int64_t unit = 0; unit < 4; ++unit) {
          unpackUnit<A>(packed +
                            ((strip * slabs + slab) * 4 + unit) * unitBytes,
                        planes, tile);
          for (int64_t r = 0; r < 16; ++r) {
            int64_t row = strip * 64 + unit * 16 + r, column = slab * 64;
            if (row < n)
              std::memcpy(codes + row * k + column, tile[r],
                          std::min<int64_t>(64, k - column));
          }
        }
  });
}

Error unpackWeights(ArrayRef<uint8_t> packed, int64_t n, int64_t k,
                    unsigned activationBits, unsigned weightBits,
                    MutableArrayRef<uint8_t> codes, unsigned threads) {
  if (Error error = checkPackedWidths(activationBits, weightBits))
    return error;
  if (Error error = checkShape(n, k))
    return error;
  if (Error error =
          checkSize("a packed buffer", packed.size(),
                    packedWeightBytes(n, k, activationBits, weightBits)))
    return error;
  if (Error error = checkSize("codes", codes.size(), n * k))
    return error;
  switch (activationBits) {
  case 16:
    unpackAll<16>(packed.data(), n, k, weightBits, codes.data(), threads);
    break;
  case 8:
    unpackAll<8>(packed.data(), n, k, weightBits, codes.data(), threads);
    break;
  default:
    unpackAll<4>(packed.data(), n, k, weightBits, codes.data(), threads);
    break;
  }
  return Error::success();
}

void unpackBitStream(ArrayRef<uint8_t> stream, int64_t bitOffset, unsigned bits,
                     MutableArrayRef<uint8_t> codes) {
  assert(bits >= 1 && bits <= 8 && bitOffset >= 0 &&
         uint64_t(bitOffset + int64_t(codes.size()) * bits) <=
             uint64_t(stream.size()) * 8);
  uint32_t mask = (1u << bits) - 1;
  uint64_t bit = uint64_t(bitOffset);
  for (uint8_t &code : codes) {
    uint64_t byte = bit >> 3;
    unsigned shift = bit & 7;
    uint32_t window = stream[byte];
    if (shift + bits > 8)
      window |= uint32_t(stream[byte + 1]) << 8;
    code = uint8_t((window >> shift) & mask);
    bit += bits;
  }
}

void packBitStream(ArrayRef<uint8_t> codes, unsigned bits,
                   MutableArrayRef<uint8_t> stream) {
  assert(bits >= 1 && bits <= 8 &&
         stream.size() >= (codes.size() * bits + 7) / 8);
  uint32_t window = 0, mask = (1u << bits) - 1;
  unsigned held = 0;
  size_t byte = 0;
  for (uint8_t code : codes) {
    window |= (code & mask) << held;
    held += bits;
    if (held >= 8) {
      stream[byte++] = uint8_t(window);
      window >>= 8;
      held -= 8;
    }
  }
  if (held > 0)
    stream[byte] = uint8_t(window);
}

//===----------------------------------------------------------------------===//
// Scales and zero points
//===----------------------------------------------------------------------===//

static Error checkScales(uint64_t logicalBytes, uint64_t packedBytes, int64_t n,
                         int64_t groups, unsigned elementBytes) {
  if (elementBytes != 1 && elementBytes != 2 && elementBytes != 4)
    return createStringError(formatv(
        "expected scale elements of 1, 2 or 4 bytes, got {0}", elementBytes));
  if (Error error = checkShape(n, groups))
    return error;
  if (Error error =
          checkSize("scales", logicalBytes, n * groups * elementBytes))
    return error;
  return checkSize("packed scales", packedBytes,
                   packedScaleElements(n, groups) * elementBytes);
}

Error packScales(ArrayRef<uint8_t> scales, int64_t n, int64_t groups,
                 unsigned elementBytes, MutableArrayRef<uint8_t> out) {
  if (Error error =
          checkScales(scales.size(), out.size(), n, groups, elementBytes))
    return error;
  if (out.empty())
    return Error::success();
  std::memset(out.data(), 0, out.size());
  int64_t padded = roundUpTo(n, kPackTile);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t group = 0; group < groups; ++group)
      std::memcpy(out.data() + (group * padded + packedScalePosition(row)) *
                                   elementBytes,
                  scales.data() + (row * groups + group) * elementBytes,
                  elementBytes);
  return Error::success();
}

Error unpackScales(ArrayRef<uint8_t> packed, int64_t n, int64_t groups,
                   unsigned elementBytes, MutableArrayRef<uint8_t> scales) {
  if (Error error =
          checkScales(scales.size(), packed.size(), n, groups, elementBytes))
    return error;
  int64_t padded = roundUpTo(n, kPackTile);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t group = 0; group < groups; ++group)
      std::memcpy(scales.data() + (row * groups + group) * elementBytes,
                  packed.data() + (group * padded + packedScalePosition(row)) *
                                      elementBytes,
                  elementBytes);
  return Error::success();
}

} // namespace humming
