//===- ReadInteger.cpp - Integer layers of compressed-tensors and others --===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// compressed-tensors, pack-quantized: row n of weight_packed is a little-endian
// bit stream of unsigned codes (value + 2^(bits-1)) along K; zero points are
// packed the same way along N, [ceil(N*bits/32), G]. int-quantized keeps int8
// values, whatever the number of bits.
//
// HQQ (axis 1) flattens the matrix to rows of one group each, [N*K/g, g], cuts
// those rows into 8/bits (3 bits: 10) equal parts and stacks the parts in a
// byte (a word), the first part highest. BitNet does the same with four parts
// of the matrix itself, the first part lowest.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/Float16.h"
#include "Humming/Quant/Packing.h"
#include "Readers.h"
#include "llvm/Support/Endian.h"
#include <cmath>

using namespace llvm;

namespace humming {

static Error finish(const LayerReader &layer, QuantizedWeights &w) {
  if (Error error = layer.readBias(w))
    return error;
  if (Error error = w.verify())
    return layer.fail(toString(std::move(error)));
  return Error::success();
}

Expected<QuantizedWeights> readPacked(const LayerReader &layer,
                                      const LayerScheme &scheme) {
  Expected<const TensorView *> packed =
      layer.get("weight_packed", {TensorDType::I32, TensorDType::U32}, 2);
  if (!packed)
    return packed.takeError();
  Expected<const TensorView *> shape =
      layer.get("weight_shape", {TensorDType::I64, TensorDType::I32}, 1);
  if (!shape)
    return shape.takeError();
  Expected<const TensorView *> scale = layer.get("weight_scale");
  if (!scale)
    return scale.takeError();
  if (Error error = layer.expectShape(**shape, {2}))
    return std::move(error);
  int64_t extents[2];
  for (int i = 0; i < 2; ++i)
    extents[i] =
        (*shape)->dtype == TensorDType::I64
            ? int64_t(support::endian::read64le((*shape)->data.data() + 8 * i))
            : int32_t(wordAt(**shape, i));
  QuantizedWeights w;
  w.n = extents[0];
  w.k = extents[1];
  int64_t words = (*packed)->shape[1];
  if (w.n != (*packed)->shape[0] || w.k < 1 || w.k > words * 32)
    return layer.fail("expected weight_packed to hold the " + Twine(w.n) + "x" +
                      Twine(w.k) + " weights of weight_shape, got " +
                      (*packed)->describe());
  unsigned bits = scheme.bits;
  if (bits == 0 && words * 32 % w.k == 0)
    bits = unsigned(words * 32 / w.k);
  if (bits < 1 || bits > 8 || (w.k * bits + 31) / 32 != words)
    return layer.fail("expected rows of " + Twine((w.k * bits + 31) / 32) +
                      " words for " + Twine(w.k) + " weights of " +
                      Twine(bits) + " bits, got " + (*packed)->describe());
  w.type.weight = NumberFormat::unsignedInt(bits);
  if (Error error = readScaleTensor(layer, **scale, scheme, {}, w))
    return std::move(error);
  w.codes.resize(size_t(w.n * w.k));
  for (int64_t row = 0; row < w.n; ++row)
    unpackBitStream((*packed)->data.slice(row * words * 4, words * 4), 0, bits,
                    MutableArrayRef<uint8_t>(w.codes).slice(row * w.k, w.k));
  int64_t groups = w.type.scaleColumns(w.k);
  if (const TensorView *zeros = layer.find("weight_zero_point")) {
    if (zeros->dtype != TensorDType::I32 || w.type.granularity.rows != 1)
      return layer.fail("expected weight_zero_point of I32 beside scales per "
                        "group or channel, got " +
                        zeros->describe());
    if (Error error =
            layer.expectShape(*zeros, {(w.n * bits + 31) / 32, groups}))
      return std::move(error);
    w.type.zeroPoint = ZeroPointKind::Integer;
    w.zeroPoints.resize(size_t(w.n * groups));
    for (int64_t row = 0; row < w.n; ++row)
      for (int64_t group = 0; group < groups; ++group) {
        int64_t bit = row * bits;
        uint64_t window = wordAt(*zeros, bit / 32 * groups + group);
        if (bit % 32 + bits > 32)
          window |= uint64_t(wordAt(*zeros, (bit / 32 + 1) * groups + group))
                    << 32;
        w.zeroPoints[row * groups + group] =
            uint32_t(window >> (bit % 32)) & ((1u << bits) - 1);
      }
  }
  if (const TensorView *index = layer.find("weight_g_idx")) {
    if (index->dtype != TensorDType::I32)
      return layer.fail("expected weight_g_idx of I32, got " +
                        index->describe());
    if (Error error = layer.expectShape(*index, {w.k}))
      return std::move(error);
    // All -1: activation order was not used.
    bool unused = all_of(rawElements(*index),
                         [](uint32_t group) { return group == ~0u; });
    if (!unused)
      if (Error error = readGroupIndex(layer, *index, groups,
                                       w.type.granularity, w.kOrder))
        return std::move(error);
    if (!w.kOrder.empty()) {
      std::vector<uint8_t> codes(w.codes.size());
      for (int64_t row = 0; row < w.n; ++row)
        for (int64_t column = 0; column < w.k; ++column)
          codes[row * w.k + column] = w.codes[row * w.k + w.kOrder[column]];
      w.codes = std::move(codes);
    }
  }
  if (Error error = finish(layer, w))
    return std::move(error);
  return w;
}

Expected<QuantizedWeights> readInt8(const LayerReader &layer,
                                    const LayerScheme &scheme,
                                    ArrayRef<int64_t> shardRows) {
  Expected<const TensorView *> weight =
      layer.get("weight", {TensorDType::I8}, 2);
  if (!weight)
    return weight.takeError();
  Expected<const TensorView *> scale = layer.get("weight_scale");
  if (!scale)
    return scale.takeError();
  QuantizedWeights w;
  w.n = (*weight)->shape[0];
  w.k = (*weight)->shape[1];
  unsigned bits = scheme.bits ? scheme.bits : 8;
  if (bits > 8)
    return layer.fail("expected int8 weights of 1 to 8 bits, got " +
                      Twine(bits));
  if (Error error = readScaleTensor(layer, **scale, scheme, shardRows, w))
    return std::move(error);
  w.codes.assign((*weight)->data.begin(), (*weight)->data.end());
  const TensorView *zeros = layer.find("weight_zero_point");
  if (bits == 8 && !zeros) {
    w.type.weight = NumberFormat::signedInt(8);
  } else {
    // Unsigned codes, so that narrow integers pack and zero points apply.
    w.type.weight = NumberFormat::unsignedInt(bits);
    int half = 1 << (bits - 1);
    for (uint8_t &code : w.codes) {
      int value = int8_t(code) + half;
      if (value < 0 || value >= 2 * half)
        return layer.fail("expected weights of " + Twine(bits) + " bits, got " +
                          Twine(int(int8_t(code))));
      code = uint8_t(value);
    }
    if (zeros) {
      if (zeros->dtype != TensorDType::I8 ||
          zeros->elements() != int64_t(w.scales.size()))
        return layer.fail("expected weight_zero_point of I8 in the shape of "
                          "weight_scale, got " +
                          zeros->describe());
      w.type.zeroPoint = ZeroPointKind::Integer;
      for (uint8_t zero : zeros->data)
        w.zeroPoints.push_back(uint32_t(int8_t(zero) + half));
    }
  }
  if (Error error = finish(layer, w))
    return std::move(error);
  return w;
}

/// An integer that HQQ stored as a tensor of one element.
static std::optional<int64_t> tensorInteger(const TensorView *tensor,
                                            int64_t index = 0) {
  if (!tensor || index >= tensor->elements())
    return std::nullopt;
  const uint8_t *data = tensor->data.data();
  switch (tensor->dtype) {
  case TensorDType::I64:
    return int64_t(support::endian::read64le(data + 8 * index));
  case TensorDType::I32:
    return int32_t(support::endian::read32le(data + 4 * index));
  case TensorDType::I16:
    return int16_t(support::endian::read16le(data + 2 * index));
  case TensorDType::U8:
  case TensorDType::Bool:
    return data[index];
  case TensorDType::I8:
    return int8_t(data[index]);
  case TensorDType::F32:
  case TensorDType::F16:
  case TensorDType::BF16: {
    double value = cantFail(formatOfDType(tensor->dtype))
                       .decode(rawElements(*tensor)[index]);
    if (value == std::rint(value) && std::fabs(value) < 1e9)
      return int64_t(value);
    return std::nullopt;
  }
  default:
    return std::nullopt;
  }
}

Expected<QuantizedWeights> readHqq(const LayerReader &layer,
                                   const LayerScheme &scheme) {
  Expected<const TensorView *> packed =
      layer.get("W_q", {TensorDType::U8, TensorDType::I32, TensorDType::I8}, 2);
  if (!packed)
    return packed.takeError();
  Expected<const TensorView *> scale = layer.get("scale");
  if (!scale)
    return scale.takeError();
  Expected<const TensorView *> zero = layer.get("zero");
  if (!zero)
    return zero.takeError();
  const TensorView *shape = layer.find("shape");
  std::optional<int64_t> n = tensorInteger(shape, 0);
  std::optional<int64_t> k = tensorInteger(shape, 1);
  int64_t axis = tensorInteger(layer.find("axis")).value_or(1);
  int64_t bits =
      tensorInteger(layer.find("nbits")).value_or(int64_t(scheme.bits));
  int64_t group =
      tensorInteger(layer.find("group_size")).value_or(scheme.groupSize);
  if (!n || !k || *n < 1 || *k < 1 || *n > INT32_MAX || *k > INT32_MAX)
    return layer.fail("expected the weight's extents in tensor 'shape'");
  if (group <= 0)
    group = *k;
  // Without the tensor `axis`, the scales tell: one row of them for axis 0, one
  // column for axis 1.
  if (!layer.find("axis") && (*scale)->shape.size() == 2 &&
      (*scale)->shape[0] == 1 && (*scale)->shape[1] > 1)
    axis = 0;
  if (axis == 0)
    return layer.fail(
        "expected HQQ groups along axis 1 (inputs), got axis 0: its groups are "
        "every (" +
        Twine(*n) +
        " / group size)-th output of one input, so each weight of "
        "an output has another scale than its neighbour along K, and no sum "
        "over inputs can factor it out; quantize the layer again with axis=1, "
        "or dequantize it");
  if (axis != 1)
    return layer.fail("expected HQQ groups along axis 1 (inputs), got axis " +
                      Twine(axis));
  if (*k % group != 0)
    return layer.fail("expected a group size that divides " + Twine(*k) +
                      ", got " + Twine(group));
  int64_t parts = bits == 8   ? 1
                  : bits == 4 ? 2
                  : bits == 3 ? 10
                  : bits == 2 ? 4
                  : bits == 1 ? 8
                              : 0;
  if (!parts)
    return layer.fail("expected HQQ weights of 8, 4, 3, 2 or 1 bits, got " +
                      Twine(bits));
  QuantizedWeights w;
  w.n = *n;
  w.k = *k;
  int64_t rows = w.n * w.k / group; // of one group each
  int64_t step = (rows + parts - 1) / parts;
  if ((*packed)->dtype != (bits == 3 ? TensorDType::I32
                           : (*packed)->dtype == TensorDType::I8
                               ? TensorDType::I8
                               : TensorDType::U8))
    return layer.fail("expected W_q of U8 (3 bits: I32), got " +
                      (*packed)->describe());
  if (Error error = layer.expectShape(**packed, {step, group}))
    return std::move(error);
  w.type.weight = NumberFormat::unsignedInt(unsigned(bits));
  w.type.granularity = group == w.k ? Granularity::perChannel()
                                    : Granularity::group(int32_t(group));
  w.type.zeroPoint = ZeroPointKind::Float;
  Expected<NumberFormat> format = formatOfDType((*scale)->dtype);
  if (!format || (*scale)->elements() != rows ||
      (*zero)->dtype != (*scale)->dtype || (*zero)->elements() != rows) {
    consumeError(format.takeError());
    return layer.fail("expected " + Twine(rows) +
                      " float scales and zeros of one type, got " +
                      (*scale)->describe() + " and " + (*zero)->describe());
  }
  w.type.scale = *format;
  w.scales = rawElements(**scale);
  w.zeroPoints = rawElements(**zero);
  w.codes.resize(size_t(w.n * w.k));
  uint32_t mask = (1u << bits) - 1;
  for (int64_t part = 0; part < parts; ++part)
    for (int64_t r = 0; r < step && part * step + r < rows; ++r)
      for (int64_t j = 0; j < group; ++j) {
        int64_t at = r * group + j;
        uint32_t word = bits == 3 ? wordAt(**packed, at) : (*packed)->data[at];
        w.codes[(part * step + r) * group + j] =
            uint8_t((word >> (bits * (parts - 1 - part))) & mask);
      }
  if (Error error = finish(layer, w))
    return std::move(error);
  return w;
}

Expected<QuantizedWeights> readBitnet(const LayerReader &layer,
                                      const LayerScheme &scheme) {
  Expected<const TensorView *> packed =
      layer.get("weight", {TensorDType::U8}, 2);
  if (!packed)
    return packed.takeError();
  Expected<const TensorView *> scale = layer.get("weight_scale");
  if (!scale)
    return scale.takeError();
  float value;
  if (Error error = readFloatScalar(layer, **scale, value))
    return std::move(error);
  if (!(value != 0) || !std::isfinite(value))
    return layer.fail("expected a finite weight_scale other than 0, got " +
                      std::to_string(value));
  QuantizedWeights w;
  int64_t step = (*packed)->shape[0];
  w.n = step * 4;
  w.k = (*packed)->shape[1];
  w.type.weight = NumberFormat::unsignedInt(2);
  w.type.scale = NumberFormat::f32();
  w.type.granularity = Granularity::perTensor();
  w.scales = {floatBits(scheme.multiplyScale ? value : 1 / value)};
  w.codes.resize(size_t(w.n * w.k));
  for (int64_t part = 0; part < 4; ++part)
    for (int64_t i = 0; i < step * w.k; ++i) {
      unsigned ternary = ((*packed)->data[i] >> (2 * part)) & 3;
      if (ternary == 3)
        return layer.fail("expected ternary codes 0 to 2, got 3");
      // 0, 1, 2 mean -1, 0, 1; a symmetric u2 means code - 2.
      w.codes[part * step * w.k + i] = uint8_t(ternary + 1);
    }
  if (Error error = finish(layer, w))
    return std::move(error);
  return w;
}

} // namespace humming
