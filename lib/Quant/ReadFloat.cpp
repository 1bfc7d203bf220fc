//===- ReadFloat.cpp - FP8, FP4 and block-scaled float layers -------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All of these keep codes in checkpoint order along K, so that reading is a
// matter of scales: their granularity follows from the shapes (and block sizes
// from the configuration), and a second, tensor-wide level multiplies
// (ModelOpt's weight_scale_2) or divides (compressed-tensors'
// weight_global_scale).
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/Packing.h"
#include "Readers.h"

using namespace llvm;

namespace humming {

Error readFloatScalar(const LayerReader &layer, const TensorView &tensor,
                      float &value) {
  Expected<NumberFormat> format = formatOfDType(tensor.dtype);
  if (!format || tensor.elements() != 1) {
    consumeError(format.takeError());
    return layer.fail("expected one float in tensor '" + tensor.name +
                      "', got " + tensor.describe());
  }
  value = float(format->decode(rawElements(tensor)[0]));
  return Error::success();
}

/// Static activation scales: where shards have one each, the largest.
static Error readInputScale(const LayerReader &layer, QuantizedWeights &w) {
  const TensorView *tensor = layer.find("input_scale");
  if (!tensor)
    return Error::success();
  Expected<NumberFormat> format = formatOfDType(tensor->dtype);
  if (!format)
    return layer.fail("input_scale: " + toString(format.takeError()));
  for (uint32_t code : rawElements(*tensor))
    w.inputScale = std::max(w.inputScale, float(format->decode(code)));
  return Error::success();
}

Error readScaleTensor(const LayerReader &layer, const TensorView &tensor,
                      const LayerScheme &scheme, ArrayRef<int64_t> shardRows,
                      QuantizedWeights &w) {
  if (tensor.dtype == TensorDType::U8)
    w.type.scale = NumberFormat::e8m0();
  else {
    Expected<NumberFormat> format = formatOfDType(tensor.dtype);
    if (!format)
      return layer.fail("tensor '" + tensor.name +
                        "': " + toString(format.takeError()));
    w.type.scale = *format;
  }
  w.scales = rawElements(tensor);
  int64_t count = tensor.elements();
  size_t rank = tensor.shape.size();
  if (count == 1) {
    w.type.granularity = w.n == 1 && rank == 2 ? Granularity::perChannel()
                                               : Granularity::perTensor();
    return Error::success();
  }
  if (rank == 1 || (rank == 2 && tensor.shape[1] == 1 && w.k > 0)) {
    bool blocked = scheme.blockRows > 1 && rank == 2 && tensor.shape[0] != w.n;
    if (count == w.n && !blocked) {
      w.type.granularity = Granularity::perChannel();
      return Error::success();
    }
    // One scale for each layer that was fused into this one.
    if (rank == 1 && count == int64_t(shardRows.size())) {
      std::vector<uint32_t> perRow;
      for (auto [scale, rows] : zip(w.scales, shardRows))
        perRow.insert(perRow.end(), size_t(std::max<int64_t>(rows, 0)), scale);
      if (int64_t(perRow.size()) != w.n)
        return layer.fail("expected shards of " + Twine(w.n) +
                          " rows in all, got " + Twine(perRow.size()));
      w.scales = std::move(perRow);
      w.type.granularity = Granularity::perChannel();
      return Error::success();
    }
    if (!blocked)
      return layer.fail("expected one scale, one per row (" + Twine(w.n) +
                        ") or one per fused shard, got " + tensor.describe());
  }
  if (rank != 2)
    return layer.fail("expected scales of one or two dimensions, got " +
                      tensor.describe());
  if (tensor.shape[0] == w.n && scheme.blockRows <= 1) {
    Expected<Granularity> granularity = layer.groupGranularity(
        w.k, tensor.shape[1], scheme.groupSize > 0 ? scheme.groupSize : 0);
    if (!granularity)
      return granularity.takeError();
    w.type.granularity = *granularity;
    return Error::success();
  }
  // Without a configured block size, 128 x 128 is what everybody uses.
  int64_t rows = scheme.blockRows ? scheme.blockRows : 128;
  int64_t columns = scheme.blockColumns ? scheme.blockColumns : 128;
  w.type.granularity = Granularity::block(int32_t(rows), int32_t(columns));
  return layer.expectShape(tensor,
                           {w.type.scaleRows(w.n), w.type.scaleColumns(w.k)});
}

/// Nibbles along K, low first.
static void unpackNibbles(const TensorView &tensor, QuantizedWeights &w) {
  w.codes.resize(size_t(w.n * w.k));
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    w.codes[2 * i] = tensor.data[i] & 15;
    w.codes[2 * i + 1] = tensor.data[i] >> 4;
  }
}

static Error finish(const LayerReader &layer, QuantizedWeights &w) {
  if (Error error = layer.readBias(w))
    return error;
  if (Error error = readInputScale(layer, w))
    return error;
  if (Error error = w.verify())
    return layer.fail(toString(std::move(error)));
  return Error::success();
}

Expected<QuantizedWeights> readFp8(const LayerReader &layer,
                                   const LayerScheme &scheme,
                                   ArrayRef<int64_t> shardRows) {
  Expected<const TensorView *> weight =
      layer.get("weight", {TensorDType::F8E4M3, TensorDType::F8E5M2}, 2);
  if (!weight)
    return weight.takeError();
  QuantizedWeights w;
  w.n = (*weight)->shape[0];
  w.k = (*weight)->shape[1];
  w.type.weight = cantFail(formatOfDType((*weight)->dtype));
  const TensorView *scale = layer.find("weight_scale");
  if (!scale)
    scale = layer.find("weight_scale_inv"); // a multiplier in spite of its name
  if (!scale)
    return layer.fail("expected a tensor 'weight_scale' or 'weight_scale_inv', "
                      "the checkpoint has none");
  LayerScheme used = scheme;
  if (scale->dtype == TensorDType::U8 && !used.groupSize)
    used.groupSize = 32;
  if (Error error = readScaleTensor(layer, *scale, used, shardRows, w))
    return std::move(error);
  w.codes.assign((*weight)->data.begin(), (*weight)->data.end());
  if (Error error = finish(layer, w))
    return std::move(error);
  return w;
}

Expected<QuantizedWeights> readFp4(const LayerReader &layer, StringRef tensor,
                                   const LayerScheme &scheme) {
  Expected<const TensorView *> weight =
      layer.get(tensor, {TensorDType::U8, TensorDType::I8}, 2);
  if (!weight)
    return weight.takeError();
  Expected<const TensorView *> scale =
      layer.get("weight_scale",
                {TensorDType::U8, TensorDType::F8E8M0, TensorDType::F8E4M3}, 2);
  if (!scale)
    return scale.takeError();
  bool e8m0 = (*scale)->dtype != TensorDType::F8E4M3;
  QuantizedWeights w;
  w.n = (*weight)->shape[0];
  int64_t bytes = (*weight)->shape[1], groups = (*scale)->shape[1];
  // MXFP6 packs 32 codes into 24 bytes, the others two into one.
  bool six = e8m0 && groups > 0 && bytes == 24 * groups;
  w.k = six ? bytes / 3 * 4 : bytes * 2;
  w.type.weight =
      six ? NumberFormat::smallFloat(2, 3) : NumberFormat::smallFloat(2, 1);
  LayerScheme used = scheme;
  if (used.groupSize <= 0)
    used.groupSize = e8m0 ? 32 : 16;
  if (Error error = layer.expectShape(
          **scale, {w.n, (w.k + used.groupSize - 1) / used.groupSize}))
    return std::move(error);
  w.type.granularity = Granularity::group(int32_t(used.groupSize));
  w.type.scale =
      e8m0 ? NumberFormat::e8m0() : cantFail(formatOfDType((*scale)->dtype));
  w.scales = rawElements(**scale);
  if (six) {
    w.codes.resize(size_t(w.n * w.k));
    for (int64_t row = 0; row < w.n; ++row)
      unpackBitStream((*weight)->data.slice(row * bytes, bytes), 0, 6,
                      MutableArrayRef<uint8_t>(w.codes).slice(row * w.k, w.k));
  } else {
    unpackNibbles(**weight, w);
  }
  const TensorView *multiplier = layer.find("weight_scale_2");
  const TensorView *divisor = layer.find("weight_global_scale");
  if (multiplier || divisor) {
    float value = 0;
    if (Error error =
            readFloatScalar(layer, multiplier ? *multiplier : *divisor, value))
      return std::move(error);
    if (!multiplier && value == 0)
      return layer.fail("expected a weight_global_scale other than 0, by which "
                        "scales are divided");
    w.type.globalScale = GlobalScaleKind::Tensor;
    w.globalScales = {multiplier ? value : 1 / value};
  }
  if (Error error = finish(layer, w))
    return std::move(error);
  return w;
}

Expected<QuantizedWeights> readGptOss(const Checkpoint &checkpoint,
                                      StringRef prefix, int64_t expert) {
  LayerReader layer(checkpoint, "");
  auto fail = [&](const Twine &message) -> Error {
    return createStringError("layer '" + prefix + "', expert " + Twine(expert) +
                             ": " + message);
  };
  Expected<const TensorView *> blocks =
      layer.get((prefix + "_blocks").str(), {TensorDType::U8}, 4);
  if (!blocks)
    return blocks.takeError();
  Expected<const TensorView *> scales =
      layer.get((prefix + "_scales").str(), {TensorDType::U8}, 3);
  if (!scales)
    return scales.takeError();
  ArrayRef<int64_t> shape = (*blocks)->shape;
  if (shape[3] != 16)
    return fail("expected blocks of 16 bytes, got " + (*blocks)->describe());
  if (Error error = layer.expectShape(**scales, {shape[0], shape[1], shape[2]}))
    return std::move(error);
  if (expert < 0 || expert >= shape[0])
    return fail("expected an expert of 0 to " + Twine(shape[0] - 1));
  QuantizedWeights w;
  w.n = shape[1];
  w.k = shape[2] * 32;
  w.type.weight = NumberFormat::smallFloat(2, 1);
  w.type.scale = NumberFormat::e8m0();
  w.type.granularity = Granularity::group(32);
  int64_t blockBytes = shape[1] * shape[2] * 16;
  ArrayRef<uint8_t> bytes =
      (*blocks)->data.slice(expert * blockBytes, blockBytes);
  w.codes.resize(size_t(w.n * w.k));
  for (size_t i = 0; i < bytes.size(); ++i) {
    w.codes[2 * i] = bytes[i] & 15;
    w.codes[2 * i + 1] = bytes[i] >> 4;
  }
  ArrayRef<uint8_t> scaleBytes =
      (*scales)->data.slice(expert * shape[1] * shape[2], shape[1] * shape[2]);
  w.scales.assign(scaleBytes.begin(), scaleBytes.end());
  if (const TensorView *bias = checkpoint.find((prefix + "_bias").str())) {
    if (Error error = layer.expectShape(*bias, {shape[0], w.n}))
      return std::move(error);
    Expected<NumberFormat> format = formatOfDType(bias->dtype);
    if (!format)
      return fail("bias: " + toString(format.takeError()));
    int64_t rowBytes = w.n * elementBytes(*format);
    std::vector<double> values =
        decodeElements(*format, bias->data.slice(expert * rowBytes, rowBytes));
    w.bias.assign(values.begin(), values.end());
  }
  if (Error error = w.verify())
    return fail(toString(std::move(error)));
  return w;
}

} // namespace humming
