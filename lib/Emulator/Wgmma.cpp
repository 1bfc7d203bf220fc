//===- Wgmma.cpp - wgmma.mma_async and its matrix descriptors -------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operand is made of 8 x 16-byte core matrices; W is the width of the
// swizzle's rows in 16-byte chunks (1, 2, 4, 8 for none, 32, 64, 128 bytes).
// With c the chunk along the contiguous direction and r the row across it:
//
//                 no swizzle                      swizzled
//   K-major    (r/8)*SBO + (r%8)*16 + c*LBO    (r/8)*SBO + (r%8)*16W + c*16
//   MN-major   c*SBO + (r%8)*16 + (r/8)*LBO    (c/W)*LBO + (c%W)*16
//                                                + (r%8)*16W + (r/8)*SBO
//
// (K-major: r counts M or N, c counts 16 bytes of K, of which there are two.
// MN-major: c counts 8 elements of M or N, r counts K.) The swizzle then xors
// address bits 4-6 with bits 7-9, as many as the mode has.
//
// Example, K-major f16 with 128-byte swizzle, SBO = 1024, start = 0x400:
// element (row 3, k = 8) is chunk 1: 0x400 + 3 * 128 + 16 = 0x590, bits 7-9 are
// 3, so it lies at 0x590 ^ 0x30 = 0x5A0.
//
//===----------------------------------------------------------------------===//

#include "Wgmma.h"
#include "MmaCore.h"
#include "llvm/ADT/STLExtras.h"

using namespace humming;
using namespace humming::ptx;

//===----------------------------------------------------------------------===//
// What exists
//===----------------------------------------------------------------------===//

llvm::Error ptx::verifyWgmma(const WgmmaInstr &i) {
  auto fail = [&](const llvm::Twine &what) {
    return llvm::createStringError(
        llvm::Twine("wgmma m64n") + llvm::Twine(i.n) + "k" + llvm::Twine(i.k) +
        " " + name(i.a) + " x " + name(i.b) + ": " + what);
  };
  auto fp8 = [](MmaType t) { return t == MmaType::E4M3 || t == MmaType::E5M2; };
  auto int8 = [](MmaType t) { return t == MmaType::S8 || t == MmaType::U8; };
  bool half = i.a == MmaType::F16 || i.a == MmaType::BF16;
  bool known = half || i.a == MmaType::TF32 || fp8(i.a) || int8(i.a) ||
               i.a == MmaType::B1;
  if (!known)
    return fail("not an operand type");
  if (i.a != i.b && !(fp8(i.a) && fp8(i.b)) && !(int8(i.a) && int8(i.b)))
    return fail("operand types do not go together");
  unsigned k = 256 / bitWidth(i.a);
  if (i.k != k)
    return fail("expected k = " + llvm::Twine(k));
  if (i.n < 8 || i.n > 256 || i.n % 8)
    return fail("expected n = 8 to 256 in steps of 8");
  // Integer and single-bit shapes thin out above 32.
  if (isInteger(i.a) && i.n > 32 && i.n % 16)
    return fail("expected n in steps of 16 above 32 for integers");
  bool accumulator = isInteger(i.a) ? i.d == MmaType::S32
                     : i.a == MmaType::F16 || fp8(i.a)
                         ? i.d == MmaType::F32 || i.d == MmaType::F16
                         : i.d == MmaType::F32;
  if (!accumulator)
    return fail(llvm::Twine("no accumulator ") + name(i.d));
  if ((i.transA || i.transB) && !half)
    return fail("transposed operands are for 16-bit types");
  if (i.transA && i.aInRegisters)
    return fail("a register operand cannot be transposed");
  if ((i.negateA || i.negateB) && isInteger(i.a))
    return fail("negated operands are for float types");
  if (i.satfinite && !int8(i.a))
    return fail("satfinite is for 8-bit integers");
  return llvm::Error::success();
}

unsigned ptx::wgmmaRegistersA(const WgmmaInstr &) { return 4; }

unsigned ptx::wgmmaRegistersD(const WgmmaInstr &i) {
  return i.d == MmaType::F16 ? i.n / 4 : i.n / 2;
}

//===----------------------------------------------------------------------===//
// Descriptors and layouts
//===----------------------------------------------------------------------===//

llvm::Expected<WgmmaDescriptor> WgmmaDescriptor::decode(uint64_t bits) {
  // Fields: 0-13 start, 16-29 leading, 32-45 stride (all >> 4), 49-51 base
  // offset, 62-63 swizzle.
  constexpr uint64_t known = 0x3FFF | uint64_t(0x3FFF) << 16 |
                             uint64_t(0x3FFF) << 32 | uint64_t(7) << 49 |
                             uint64_t(3) << 62;
  if (bits & ~known)
    return llvm::createStringError(
        "matrix descriptor 0x" + llvm::Twine::utohexstr(bits) +
        ": expected zero in the reserved bits, got 0x" +
        llvm::Twine::utohexstr(bits & ~known));
  WgmmaDescriptor d;
  d.start = uint32_t(bits & 0x3FFF) << 4;
  d.leading = uint32_t(bits >> 16 & 0x3FFF) << 4;
  d.stride = uint32_t(bits >> 32 & 0x3FFF) << 4;
  d.baseOffset = uint8_t(bits >> 49 & 7);
  static constexpr TensorSwizzle modes[] = {
      TensorSwizzle::None, TensorSwizzle::B128, TensorSwizzle::B64,
      TensorSwizzle::B32};
  d.swizzle = modes[bits >> 62];
  return d;
}

uint64_t WgmmaDescriptor::encode() const {
  uint64_t mode = swizzle == TensorSwizzle::None   ? 0
                  : swizzle == TensorSwizzle::B128 ? 1
                  : swizzle == TensorSwizzle::B64  ? 2
                                                   : 3;
  return uint64_t(start >> 4 & 0x3FFF) | uint64_t(leading >> 4 & 0x3FFF) << 16 |
         uint64_t(stride >> 4 & 0x3FFF) << 32 | uint64_t(baseOffset & 7) << 49 |
         mode << 62;
}

/// \p across is r of the table above, \p chunk is c.
static uint32_t chunkAddress(const WgmmaDescriptor &d, bool transposed,
                             unsigned across, unsigned chunk) {
  unsigned w = d.swizzle == TensorSwizzle::None  ? 1
               : d.swizzle == TensorSwizzle::B32 ? 2
               : d.swizzle == TensorSwizzle::B64 ? 4
                                                 : 8;
  uint32_t offset;
  if (d.swizzle == TensorSwizzle::None)
    offset = transposed
                 ? chunk * d.stride + across % 8 * 16 + across / 8 * d.leading
                 : across / 8 * d.stride + across % 8 * 16 + chunk * d.leading;
  else if (transposed)
    offset = chunk / w * d.leading + chunk % w * 16 + across % 8 * 16 * w +
             across / 8 * d.stride;
  else
    offset = across / 8 * d.stride + across % 8 * 16 * w + chunk * 16;
  uint32_t address = (d.start + offset) & 0x3FFFF;
  // The base offset moves the start of the pattern: the row inside it is
  // counted from there.
  uint32_t shifted = address - (uint32_t(d.baseOffset) << 7);
  return address ^ (swizzleAddress(d.swizzle, shifted) ^ shifted);
}

uint32_t ptx::wgmmaChunkAddress(const WgmmaDescriptor &desc,
                                unsigned elementBits, bool transposed,
                                unsigned row, unsigned column) {
  unsigned perChunk = 128 / elementBits;
  return transposed ? chunkAddress(desc, true, column, row / perChunk)
                    : chunkAddress(desc, false, row, column / perChunk);
}

uint32_t ptx::wgmmaElementAddress(const WgmmaDescriptor &desc,
                                  unsigned elementBits, bool transposed,
                                  unsigned row, unsigned column) {
  unsigned perChunk = 128 / elementBits;
  unsigned inside = (transposed ? row : column) % perChunk;
  return wgmmaChunkAddress(desc, elementBits, transposed, row, column) +
         inside * elementBits / 8;
}

/// Calls visit(across, chunk) in the order in which wgmma reads.
template <typename Fn>
static void forEachChunk(const WgmmaInstr &i, bool operandA, Fn visit) {
  unsigned rows = operandA ? 64 : i.n;
  bool transposed = operandA ? i.transA : i.transB;
  unsigned across = transposed ? i.k : rows;
  unsigned chunks = transposed ? rows / 8 : 2;
  for (unsigned r = 0; r < across; ++r)
    for (unsigned c = 0; c < chunks; ++c)
      visit(r, c);
}

void ptx::wgmmaOperandChunks(const WgmmaInstr &instr, bool operandA,
                             const WgmmaDescriptor &desc,
                             llvm::SmallVectorImpl<uint32_t> &addresses) {
  bool transposed = operandA ? instr.transA : instr.transB;
  forEachChunk(instr, operandA, [&](unsigned r, unsigned c) {
    addresses.push_back(chunkAddress(desc, transposed, r, c));
  });
}

void ptx::wgmmaOperandPasses(const WgmmaInstr &i, bool operandA,
                             const WgmmaDescriptor &desc,
                             llvm::SmallVectorImpl<uint32_t> &addresses) {
  bool transposed = operandA ? i.transA : i.transB;
  unsigned rows = operandA ? 64 : i.n;
  unsigned across = transposed ? i.k : rows;
  unsigned chunks = transposed ? rows / 8 : 2;
  for (unsigned c = 0; c < chunks; ++c)
    for (unsigned r = 0; r < across; ++r)
      addresses.push_back(chunkAddress(desc, transposed, r, c));
}

MmaCoord ptx::wgmmaCoordD(unsigned thread, unsigned element) {
  unsigned lane = thread % 32;
  return {uint16_t(16 * (thread / 32) + lane / 4 + 8 * (element / 2 % 2)),
          uint16_t(8 * (element / 4) + 2 * (lane % 4) + element % 2)};
}

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

namespace {
/// One operand as codes: row-major [M or N][K].
struct Codes {
  std::vector<uint32_t> code;
  unsigned depth;
};
} // namespace

static llvm::Error readShared(const WgmmaInstr &i, bool operandA,
                              const WgmmaDescriptor &desc, ReadChunk read,
                              Codes &out) {
  bool transposed = operandA ? i.transA : i.transB;
  unsigned width = bitWidth(i.a), perChunk = width == 1 ? 4 : 128 / width;
  llvm::Error error = llvm::Error::success();
  forEachChunk(i, operandA, [&](unsigned r, unsigned c) {
    if (error)
      return;
    alignas(16) uint8_t bytes[16];
    if (llvm::Error e = read(chunkAddress(desc, transposed, r, c), bytes)) {
      error = std::move(e);
      return;
    }
    for (unsigned e = 0; e < perChunk; ++e) {
      uint32_t v = 0; // b1 travels as words
      memcpy(&v, bytes + e * (16 / perChunk), 16 / perChunk);
      unsigned row = transposed ? c * perChunk + e : r;
      unsigned column = transposed ? r : c * perChunk + e;
      out.code[row * out.depth + column] = v;
    }
  });
  return error;
}

static void readRegisters(const WgmmaInstr &i,
                          llvm::ArrayRef<const uint32_t *> a, Codes &out) {
  unsigned width = bitWidth(i.a) == 1 ? 32 : bitWidth(i.a);
  unsigned per = 32 / width;
  for (unsigned warp = 0; warp < 4; ++warp)
    for (unsigned r = 0; r < 4; ++r)
      for (unsigned lane = 0; lane < 32; ++lane) {
        unsigned row = 16 * warp + lane / 4 + 8 * (r % 2);
        unsigned column = 4 * per * (r / 2) + per * (lane % 4);
        uint32_t word = a[warp * 4 + r][lane];
        for (unsigned e = 0; e < per; ++e)
          out.code[row * out.depth + column + e] =
              per == 1 ? word
                       : word >> (width * e) & ((uint32_t(1) << width) - 1);
      }
}

llvm::Error ptx::wgmma(const WgmmaInstr &i, llvm::ArrayRef<uint32_t *> d,
                       llvm::ArrayRef<const uint32_t *> a,
                       const WgmmaDescriptor &descA,
                       const WgmmaDescriptor &descB, ReadChunk read,
                       unsigned *zeroColumns) {
  unsigned n = i.n, depth = bitWidth(i.a) == 1 ? i.k / 32 : i.k;
  Codes ca{std::vector<uint32_t>(64 * depth), depth};
  Codes cb{std::vector<uint32_t>(n * depth), depth};
  if (i.aInRegisters)
    readRegisters(i, a, ca);
  else if (llvm::Error error = readShared(i, true, descA, read, ca))
    return error;
  if (llvm::Error error = readShared(i, false, descB, read, cb))
    return error;

  if (zeroColumns) {
    *zeroColumns = 0;
    for (unsigned c = 0; c < n; ++c) {
      auto column = llvm::ArrayRef<uint32_t>(cb.code).slice(c * depth, depth);
      *zeroColumns += llvm::all_of(column, [](uint32_t v) { return v == 0; });
    }
  }

  unsigned registers = wgmmaRegistersD(i);
  bool half = i.d == MmaType::F16;
  unsigned elements = n / 2;
  std::vector<uint32_t> acc(64 * n);
  if (i.scaleD)
    for (unsigned thread = 0; thread < 128; ++thread)
      for (unsigned e = 0; e < elements; ++e) {
        MmaCoord p = wgmmaCoordD(thread, e);
        uint32_t word =
            d[thread / 32 * registers + (half ? e / 2 : e)][thread % 32];
        acc[p.row * n + p.column] =
            half ? word >> (16 * (e % 2)) & 0xFFFF : word;
      }

  if (i.a == MmaType::B1) {
    multiplyBits(64, n, depth, ca.code.data(), cb.code.data(), true, acc.data(),
                 acc.data());
  } else if (isInteger(i.a)) {
    std::vector<int16_t> va(64 * depth), vb(depth * n);
    for (unsigned m = 0; m < 64 * depth; ++m)
      va[m] = integerValue(i.a, ca.code[m]);
    for (unsigned c = 0; c < n; ++c)
      for (unsigned k = 0; k < depth; ++k)
        vb[k * n + c] = integerValue(i.b, cb.code[c * depth + k]);
    multiplyInteger(64, n, depth, va.data(), vb.data(), i.satfinite, acc.data(),
                    acc.data());
  } else {
    FloatMatrix va, vb;
    va.resize(64 * depth);
    vb.resize(size_t(depth) * n);
    for (unsigned m = 0; m < 64 * depth; ++m)
      va.set(m, i.a, ca.code[m], i.negateA);
    for (unsigned c = 0; c < n; ++c)
      for (unsigned k = 0; k < depth; ++k)
        vb.set(k * n + c, i.b, cb.code[c * depth + k], i.negateB);
    multiplyFloat(64, n, depth, va, vb, i.d, sumModel(i.a), acc.data(),
                  acc.data());
  }

  for (unsigned thread = 0; thread < 128; ++thread)
    for (unsigned e = 0; e < elements; ++e) {
      MmaCoord p = wgmmaCoordD(thread, e);
      uint32_t v = acc[p.row * n + p.column];
      uint32_t &word =
          d[thread / 32 * registers + (half ? e / 2 : e)][thread % 32];
      if (!half)
        word = v;
      else
        word = e % 2 ? word | v << 16 : v;
    }
  return llvm::Error::success();
}
