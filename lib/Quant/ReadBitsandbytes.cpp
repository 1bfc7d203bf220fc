//===- ReadBitsandbytes.cpp - NF4, FP4 and int8 of bitsandbytes -----------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four bits: the matrix is flattened, cut into blocks, and two codes share a
// byte, the first one high. A code indexes quant_map. The block maxima (absmax)
// are f32, or, double-quantized, bytes that index nested_quant_map, scaled by
// nested_absmax per 256 and shifted by nested_offset. The parameters are a JSON
// object in the bytes of weight.quant_state.bitsandbytes__nf4 (or fp4).
//
// Eight bits: int8 rows with SCB = row maximum, w = q * SCB / 127.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/Float16.h"
#include "Readers.h"

using namespace llvm;

namespace humming {

Expected<QuantizedWeights> readBitsandbytes4(const LayerReader &layer) {
  Expected<const TensorView *> weight = layer.get("weight");
  if (!weight)
    return weight.takeError();
  Expected<const TensorView *> absmax = layer.get("weight.absmax");
  if (!absmax)
    return absmax.takeError();
  Expected<const TensorView *> map =
      layer.get("weight.quant_map", {TensorDType::F32}, 1);
  if (!map)
    return map.takeError();
  const TensorView *state = nullptr;
  for (StringRef name : {"weight.quant_state.bitsandbytes__nf4",
                         "weight.quant_state.bitsandbytes__fp4"})
    if (const TensorView *tensor = layer.find(name))
      state = tensor;
  if (!state || state->dtype != TensorDType::U8 || state->data.size() > 65536)
    return layer.fail("expected the tensor weight.quant_state.bitsandbytes__nf4"
                      " or __fp4 of U8");
  StringRef text(reinterpret_cast<const char *>(state->data.data()),
                 state->data.size());
  if (text.count('[') + text.count('{') > 16)
    return layer.fail("expected a flat object in quant_state");
  Expected<json::Value> json = json::parse(text);
  if (!json)
    return layer.fail("quant_state: " + toString(json.takeError()));
  const json::Object *object = json->getAsObject();
  const json::Array *shape = object ? object->getArray("shape") : nullptr;
  std::optional<int64_t> block =
      object ? object->getInteger("blocksize") : std::nullopt;
  std::optional<int64_t> n, k;
  if (shape && shape->size() == 2) {
    n = (*shape)[0].getAsInteger();
    k = (*shape)[1].getAsInteger();
  }
  if (!block || !n || !k || *block < 1 || *n < 1 || *k < 1 || *n > INT32_MAX ||
      *k > INT32_MAX)
    return layer.fail("expected 'blocksize' and a 'shape' of two extents in "
                      "quant_state");
  QuantizedWeights w;
  w.n = *n;
  w.k = *k;
  if (w.k % *block != 0 && w.n * w.k > *block)
    return layer.fail("expected a row length that is a multiple of the block "
                      "of " +
                      Twine(*block) + ", got " + Twine(w.k));
  if (int64_t((*weight)->data.size()) != (w.n * w.k + 1) / 2)
    return layer.fail("expected a weight of " + Twine((w.n * w.k + 1) / 2) +
                      " bytes, got " + (*weight)->describe());
  if (Error error = layer.expectShape(**map, {16}))
    return std::move(error);
  w.type.weight = NumberFormat::unsignedInt(4);
  w.type.scale = NumberFormat::f32();
  w.type.granularity = w.n * w.k <= *block ? Granularity::perTensor()
                       : *block == w.k ? Granularity::perChannel()
                                       : Granularity::group(int32_t(*block));
  CodeTable table;
  std::vector<uint32_t> entries = rawElements(**map);
  for (size_t i = 0; i < 16; ++i)
    table.values[i] = floatFromBits(entries[i]);
  w.type.table = table;

  int64_t blocks = (w.n * w.k + *block - 1) / *block;
  if ((*absmax)->elements() != blocks)
    return layer.fail("expected " + Twine(blocks) + " block maxima, got " +
                      (*absmax)->describe());
  if ((*absmax)->dtype == TensorDType::F32) {
    w.scales = rawElements(**absmax);
  } else if ((*absmax)->dtype == TensorDType::U8) {
    Expected<const TensorView *> nestedMax =
        layer.get("weight.nested_absmax", {TensorDType::F32}, 1);
    if (!nestedMax)
      return nestedMax.takeError();
    Expected<const TensorView *> nestedMap =
        layer.get("weight.nested_quant_map", {TensorDType::F32}, 1);
    if (!nestedMap)
      return nestedMap.takeError();
    int64_t nested = object->getInteger("nested_blocksize").value_or(0);
    std::optional<double> offset = object->getNumber("nested_offset");
    if (nested < 1 || !offset)
      return layer.fail("expected 'nested_blocksize' and 'nested_offset' in "
                        "quant_state");
    if (Error error = layer.expectShape(**nestedMap, {256}))
      return std::move(error);
    if (Error error =
            layer.expectShape(**nestedMax, {(blocks + nested - 1) / nested}))
      return std::move(error);
    for (int64_t i = 0; i < blocks; ++i) {
      // In f32, as the library does.
      float value = floatFromBits(wordAt(**nestedMap, (*absmax)->data[i])) *
                    floatFromBits(wordAt(**nestedMax, i / nested));
      w.scales.push_back(floatBits(value + float(*offset)));
    }
  } else {
    return layer.fail("expected block maxima of F32 or U8, got " +
                      (*absmax)->describe());
  }
  w.codes.resize(size_t(w.n * w.k));
  for (size_t i = 0; i < w.codes.size(); ++i)
    w.codes[i] = (*weight)->data[i / 2] >> (i % 2 ? 0 : 4) & 15;
  if (Error error = layer.readBias(w))
    return std::move(error);
  if (Error error = w.verify())
    return layer.fail(toString(std::move(error)));
  return w;
}

Expected<QuantizedWeights> readBitsandbytes8(const LayerReader &layer) {
  Expected<const TensorView *> weight =
      layer.get("weight", {TensorDType::I8}, 2);
  if (!weight)
    return weight.takeError();
  QuantizedWeights w;
  w.n = (*weight)->shape[0];
  w.k = (*weight)->shape[1];
  Expected<const TensorView *> maxima = layer.get("SCB", {TensorDType::F32}, 1);
  if (!maxima)
    return maxima.takeError();
  if (Error error = layer.expectShape(**maxima, {w.n}))
    return std::move(error);
  if (const TensorView *format = layer.find("weight_format"))
    if (any_of(format->data, [](uint8_t byte) { return byte != 0; }))
      return layer.fail("expected int8 weights in row format (0); tiled "
                        "formats depend on the GPU that wrote them");
  w.type.weight = NumberFormat::signedInt(8);
  w.type.scale = NumberFormat::f32();
  w.type.granularity = Granularity::perChannel();
  for (uint32_t bits : rawElements(**maxima))
    w.scales.push_back(floatBits(floatFromBits(bits) / 127));
  w.codes.assign((*weight)->data.begin(), (*weight)->data.end());
  if (Error error = layer.readBias(w))
    return std::move(error);
  if (Error error = w.verify())
    return layer.fail(toString(std::move(error)));
  return w;
}

} // namespace humming
