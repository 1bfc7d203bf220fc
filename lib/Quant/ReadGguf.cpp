//===- ReadGguf.cpp - The block formats of GGUF ---------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each block holds everything about its 32 or 256 weights: f16 scales (d, and
// dmin or m for an offset), small integer sub-scales in the K-quants, and codes
// cut into planes. Layouts are those of ggml-common.h; q(j) below is weight j's
// code.
//
//   Q4_0  d, q[16]           w = d (q - 8)     q(j): low nibble j, high j + 16
//   Q4_1  d, m, q[16]        w = d q + m
//   Q5_0  d, h[4], q[16]     w = d (q - 16)    bit j of h is bit 4 of q(j)
//   Q5_1  d, m, h[4], q[16]  w = d q + m
//   Q8_0  d, q[32]           w = d q           int8
//   MXFP4 e, q[16]           w = e2m1(q) 2^(e-127)
//   Q2_K  s[16], q[64], d, dmin   16 sub-blocks of 16, s = scale | min << 4
//   Q3_K  h[32], q[64], s[12], d  16 sub-blocks of 16, 6-bit scales - 32
//   Q4_K  d, dmin, s[12], q[128]  8 sub-blocks of 32, 6-bit scales and mins
//   Q5_K  d, dmin, s[12], h[32], q[128]
//   Q6_K  l[128], h[64], s[16], d  16 sub-blocks of 16, int8 scales
//
// An offset becomes a zero point: w = s q - o = (q - o/s) s. Where s is 0 the
// codes do not matter: they become 0, with scale o and zero point 1.
//
//===----------------------------------------------------------------------===//

#include "GgufTypes.h"
#include "Humming/Quant/Float16.h"
#include "Humming/Quant/Gguf.h"
#include "llvm/Support/Endian.h"

using namespace llvm;
using support::endian::read16le;
using support::endian::read32le;

namespace humming {

namespace {
enum : uint32_t {
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  MXFP4 = 39,
};

/// A decoded block: codes, and scales (and offsets) of its sub-blocks.
struct Block {
  uint8_t codes[256];
  float scales[16];
  float offsets[16]; ///< w = scale * q - offset
};
} // namespace

bool ggufTypeIsReadable(uint32_t type) {
  switch (type) {
  case Q4_0:
  case Q4_1:
  case Q5_0:
  case Q5_1:
  case Q8_0:
  case Q2_K:
  case Q3_K:
  case Q4_K:
  case Q5_K:
  case Q6_K:
  case MXFP4:
    return true;
  default:
    return false;
  }
}

/// Sixteen bytes of nibbles: the low ones are weights 0..15.
static void halves(const uint8_t *q, uint8_t *codes) {
  for (int j = 0; j < 16; ++j) {
    codes[j] = q[j] & 15;
    codes[j + 16] = q[j] >> 4;
  }
}

/// The 6-bit scales and mins of Q4_K and Q5_K: the first four of each in the
/// low bits of bytes 0..7, the others split between the nibbles of bytes 8..11
/// and the top bits of bytes 0..7.
static void scalesAndMins(const uint8_t *s, uint8_t *scales, uint8_t *mins) {
  for (int i = 0; i < 4; ++i) {
    scales[i] = s[i] & 63;
    mins[i] = s[i + 4] & 63;
    scales[i + 4] = (s[i + 8] & 15) | (s[i] >> 6) << 4;
    mins[i + 4] = (s[i + 8] >> 4) | (s[i + 4] >> 6) << 4;
  }
}

static float f16At(const uint8_t *bytes) { return f16ToFloat(read16le(bytes)); }

/// Decodes the types whose scales are products, i.e. all with sub-blocks or
/// offsets.
static void decodeBlock(uint32_t type, const uint8_t *b, Block &block) {
  switch (type) {
  case Q4_1:
    block.scales[0] = f16At(b);
    block.offsets[0] = -f16At(b + 2);
    halves(b + 4, block.codes);
    break;
  case Q5_1: {
    block.scales[0] = f16At(b);
    block.offsets[0] = -f16At(b + 2);
    uint32_t high = read32le(b + 4);
    halves(b + 8, block.codes);
    for (int j = 0; j < 32; ++j)
      block.codes[j] |= (high >> j & 1) << 4;
    break;
  }
  case Q2_K: {
    const uint8_t *s = b, *q = b + 16;
    float d = f16At(b + 80), dmin = f16At(b + 82);
    for (int i = 0; i < 16; ++i) {
      block.scales[i] = d * float(s[i] & 15);
      block.offsets[i] = dmin * float(s[i] >> 4);
    }
    for (int j = 0; j < 256; ++j)
      block.codes[j] = q[j / 128 * 32 + j % 32] >> (2 * (j % 128 / 32)) & 3;
    break;
  }
  case Q3_K: {
    const uint8_t *h = b, *q = b + 32, *s = b + 96;
    float d = f16At(b + 108);
    for (int i = 0; i < 16; ++i) {
      int low = s[i % 8] >> (4 * (i / 8)) & 15;
      int high = s[8 + i % 4] >> (2 * (i / 4)) & 3;
      block.scales[i] = d * float((low | high << 4) - 32);
    }
    for (int j = 0; j < 256; ++j) {
      int low = q[j / 128 * 32 + j % 32] >> (2 * (j % 128 / 32)) & 3;
      int high = h[j % 32] >> (j / 32) & 1;
      block.codes[j] = uint8_t(low | high << 2); // value: code - 4
    }
    break;
  }
  case Q4_K:
  case Q5_K: {
    float d = f16At(b), dmin = f16At(b + 2);
    uint8_t scales[8], mins[8];
    scalesAndMins(b + 4, scales, mins);
    for (int i = 0; i < 8; ++i) {
      block.scales[i] = d * float(scales[i]);
      block.offsets[i] = dmin * float(mins[i]);
    }
    const uint8_t *q = b + (type == Q4_K ? 16 : 48);
    for (int j = 0; j < 256; ++j) {
      block.codes[j] = q[j / 64 * 32 + j % 32] >> (4 * (j % 64 / 32)) & 15;
      if (type == Q5_K)
        block.codes[j] |= (b[16 + j % 32] >> (j / 32) & 1) << 4;
    }
    break;
  }
  case Q6_K: {
    const uint8_t *l = b, *h = b + 128, *s = b + 192;
    float d = f16At(b + 208);
    for (int i = 0; i < 16; ++i)
      block.scales[i] = d * float(int8_t(s[i]));
    for (int j = 0; j < 256; ++j) {
      int low = l[j / 128 * 64 + j % 64] >> (4 * (j % 128 / 64)) & 15;
      int high = h[j / 128 * 32 + j % 32] >> (2 * (j % 128 / 32)) & 3;
      block.codes[j] = uint8_t(low | high << 4); // value: code - 32
    }
    break;
  }
  default:
    break;
  }
}

/// Sets type and sub-block size; false for types that are not readable.
static bool describe(uint32_t number, QuantType &type, int64_t &sub) {
  sub = 32;
  type.scale = NumberFormat::f32();
  switch (number) {
  case Q4_0:
    type.weight = NumberFormat::unsignedInt(4);
    type.scale = NumberFormat::f16();
    break;
  case Q5_0:
    type.weight = NumberFormat::unsignedInt(5);
    type.scale = NumberFormat::f16();
    break;
  case Q8_0:
    type.weight = NumberFormat::signedInt(8);
    type.scale = NumberFormat::f16();
    break;
  case MXFP4:
    type.weight = NumberFormat::smallFloat(2, 1);
    type.scale = NumberFormat::e8m0();
    break;
  case Q4_1:
  case Q4_K:
    type.weight = NumberFormat::unsignedInt(4);
    type.zeroPoint = ZeroPointKind::Float;
    break;
  case Q5_1:
  case Q5_K:
    type.weight = NumberFormat::unsignedInt(5);
    type.zeroPoint = ZeroPointKind::Float;
    break;
  case Q2_K:
    type.weight = NumberFormat::unsignedInt(2);
    type.zeroPoint = ZeroPointKind::Float;
    sub = 16;
    break;
  case Q3_K:
    type.weight = NumberFormat::unsignedInt(3);
    sub = 16;
    break;
  case Q6_K:
    type.weight = NumberFormat::unsignedInt(6);
    sub = 16;
    break;
  default:
    return false;
  }
  type.granularity = Granularity::group(int32_t(sub));
  return true;
}

Expected<QuantizedWeights> readGguf(const GgufFile &file, StringRef name,
                                    int64_t expert) {
  auto fail = [&](const Twine &message) -> Error {
    return createStringError("tensor '" + name + "': " + message);
  };
  const GgufTensor *tensor = file.find(name);
  if (!tensor)
    return fail("the file has no tensor of that name");
  QuantizedWeights w;
  int64_t sub;
  if (!describe(tensor->type, w.type, sub))
    return fail("expected Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K or MXFP4, "
                "got " +
                ggufTypeName(tensor->type));
  size_t rank = tensor->shape.size();
  if (rank != 2 && rank != 3)
    return fail("expected a matrix or a stack of matrices, got " + Twine(rank) +
                " dimensions");
  int64_t experts = rank == 3 ? tensor->shape[0] : 1;
  w.n = tensor->shape[rank - 2];
  w.k = tensor->shape[rank - 1];
  if (expert < 0 || expert >= experts)
    return fail("expected an expert of 0 to " + Twine(experts - 1) + ", got " +
                Twine(expert));
  if (w.n < 1 || w.k < 1 || w.n > INT32_MAX || w.k > INT32_MAX)
    return fail("expected 1 to 2^31 - 1 rows and columns");
  const GgufType *layout = findGgufType(tensor->type);
  int64_t blocks = w.n * w.k / layout->block;
  const uint8_t *data =
      tensor->data.data() + expert * blocks * int64_t(layout->bytes);
  w.codes.resize(size_t(w.n * w.k));
  w.scales.resize(size_t(w.n * w.k / sub));
  bool offsets = w.type.zeroPoint == ZeroPointKind::Float;
  if (offsets)
    w.zeroPoints.resize(w.scales.size());
  Block block;
  for (int64_t i = 0; i < blocks; ++i, data += layout->bytes) {
    uint8_t *codes = w.codes.data() + i * layout->block;
    switch (tensor->type) {
    case Q4_0:
      w.scales[i] = read16le(data);
      halves(data + 2, codes);
      continue;
    case Q5_0:
      w.scales[i] = read16le(data);
      halves(data + 6, codes);
      for (int j = 0; j < 32; ++j)
        codes[j] |= (read32le(data + 2) >> j & 1) << 4;
      continue;
    case Q8_0:
      w.scales[i] = read16le(data);
      std::copy_n(data + 2, 32, codes);
      continue;
    case MXFP4:
      w.scales[i] = data[0];
      halves(data + 1, codes);
      continue;
    default:
      break;
    }
    decodeBlock(tensor->type, data, block);
    std::copy_n(block.codes, layout->block, codes);
    int64_t subBlocks = layout->block / sub;
    for (int64_t s = 0; s < subBlocks; ++s) {
      int64_t index = i * subBlocks + s;
      float scale = block.scales[s];
      if (offsets) {
        float zero = 0;
        if (scale != 0) {
          zero = float(double(block.offsets[s]) / double(scale));
        } else if (block.offsets[s] != 0) {
          scale = block.offsets[s];
          zero = 1;
          std::fill_n(codes + s * sub, sub, uint8_t(0));
        }
        w.zeroPoints[index] = floatBits(zero);
      }
      w.scales[index] = floatBits(scale);
    }
  }
  if (Error error = w.verify())
    return fail(toString(std::move(error)));
  return w;
}

} // namespace humming
