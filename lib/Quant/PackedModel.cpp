//===- PackedModel.cpp - A packed model on disk ---------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/PackedModel.h"
#include "Humming/Quant/Float16.h"
#include "Humming/Quant/Packing.h"
#include "ReaderSupport.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace humming {

int64_t PackedLayer::bytes() const {
  int64_t total = 0;
  for (const Tensor &tensor : tensors)
    total += int64_t(tensor.bytes.size());
  return total;
}

/// The dtype that stores a scale format. Formats that safetensors lacks are
/// bytes; the description says what they mean.
static TensorDType dtypeOf(NumberFormat format) {
  if (format.isF16())
    return TensorDType::F16;
  if (format.isBF16())
    return TensorDType::BF16;
  if (format.isF32())
    return TensorDType::F32;
  if (format == NumberFormat::smallFloat(4, 3))
    return TensorDType::F8E4M3;
  if (format == NumberFormat::smallFloat(5, 2))
    return TensorDType::F8E5M2;
  return TensorDType::U8;
}

static std::vector<uint8_t> floatBytes(ArrayRef<float> values) {
  std::vector<uint32_t> bits;
  for (float value : values)
    bits.push_back(floatBits(value));
  return codesToBytes(NumberFormat::f32(), bits);
}

bool keepsPlain(const QuantizedWeights &w, unsigned activationBits) {
  const NumberFormat &format = w.type.weight;
  bool isActivation = format == NumberFormat::signedInt(8) ||
                      format == NumberFormat::smallFloat(4, 3) ||
                      format == NumberFormat::smallFloat(5, 2);
  return activationBits == 8 && isActivation && w.k % 16 == 0 &&
         w.type.zeroPoint == ZeroPointKind::None && !w.type.table;
}

Expected<PackedLayer> packModelLayer(StringRef name, const QuantizedWeights &w,
                                     unsigned activationBits,
                                     unsigned threads) {
  if (Error error = w.verify())
    return std::move(error);
  PackedLayer layer;
  auto add = [&](StringRef suffix, TensorDType dtype, ArrayRef<int64_t> shape,
                 std::vector<uint8_t> bytes) {
    layer.tensors.push_back({(name + "." + suffix).str(), dtype,
                             SmallVector<int64_t, 4>(shape), std::move(bytes)});
  };
  bool plain = keepsPlain(w, activationBits);
  if (plain) {
    add("plain",
        w.type.weight.isFloat() ? dtypeOf(w.type.weight) : TensorDType::I8,
        {w.n, w.k}, w.codes);
  } else {
    Expected<std::vector<uint8_t>> packed =
        w.packCodes(activationBits, threads);
    if (!packed)
      return packed.takeError();
    int64_t size = int64_t(packed->size());
    add("packed", TensorDType::U8, {size}, std::move(*packed));
  }
  int64_t groups = w.type.scaleColumns(w.k);
  SmallVector<int64_t, 3> shape = {
      groups, roundUpTo(w.n, kPackTile) / kPackTile, kPackTile};
  Expected<std::vector<uint8_t>> scales = w.packScales();
  if (!scales)
    return scales.takeError();
  add("scales", dtypeOf(w.type.scale), shape, std::move(*scales));
  if (w.type.zeroPoint != ZeroPointKind::None) {
    Expected<std::vector<uint8_t>> zeros = w.packZeroPoints();
    if (!zeros)
      return zeros.takeError();
    add("zero_points",
        w.type.zeroPoint == ZeroPointKind::Integer ? TensorDType::U8
                                                   : dtypeOf(w.type.scale),
        shape, std::move(*zeros));
  }
  if (!w.globalScales.empty())
    add("global", TensorDType::F32, {int64_t(w.globalScales.size())},
        floatBytes(w.globalScales));
  if (w.type.table)
    add("table", TensorDType::F32, {16}, floatBytes(w.type.table->values));
  if (!w.bias.empty())
    add("bias", TensorDType::F32, {w.n}, floatBytes(w.bias));
  if (!w.kOrder.empty()) {
    std::vector<uint32_t> order(w.kOrder.begin(), w.kOrder.end());
    add("k_order", TensorDType::I32, {w.k},
        codesToBytes(NumberFormat::f32(), order));
  }
  raw_string_ostream os(layer.description);
  json::OStream json(os);
  json.object([&] {
    json.attribute("n", w.n);
    json.attribute("k", w.k);
    json.attribute("layout", plain ? "plain" : "packed");
    json.attribute("activation_bits", activationBits);
    json.attribute("weight", w.type.weight.str());
    json.attribute("scale", w.type.scale.str());
    json.attribute("granularity", w.type.granularity.str());
    json.attribute("zero_point", stringify(w.type.zeroPoint));
    json.attribute("row_phase", w.type.rowPhase);
    json.attribute("column_phase", w.type.columnPhase);
    json.attribute("input_scale", double(w.inputScale));
  });
  return layer;
}

Expected<QuantizedWeights> unpackModelLayer(const SafetensorsFile &shard,
                                            StringRef name,
                                            unsigned *activationBits) {
  auto fail = [&](const Twine &message) -> Error {
    return createStringError("packed layer '" + name + "': " + message);
  };
  auto text = shard.metadata().find(("humming:" + name).str());
  if (text == shard.metadata().end())
    return fail("the shard's metadata does not describe it");
  if (StringRef(text->second).count('[') + StringRef(text->second).count('{') >
      16)
    return fail("expected a flat JSON object as its description");
  Expected<json::Value> value = json::parse(text->second);
  if (!value)
    return fail(toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  if (!object)
    return fail("expected a JSON object as its description");
  auto integer = [&](StringRef key) {
    return object->getInteger(key).value_or(-1);
  };
  auto string = [&](StringRef key) {
    return object->getString(key).value_or("");
  };
  QuantizedWeights w;
  w.n = integer("n");
  w.k = integer("k");
  int64_t bits = integer("activation_bits");
  int64_t rowPhase = integer("row_phase"),
          columnPhase = integer("column_phase");
  if (w.n < 0 || w.k < 0 || w.n > INT32_MAX || w.k > INT32_MAX || bits < 0 ||
      bits > 16 || rowPhase < 0 || columnPhase < 0 || rowPhase > INT32_MAX ||
      columnPhase > INT32_MAX)
    return fail("expected n, k, activation_bits, row_phase and column_phase");
  Expected<NumberFormat> weight = NumberFormat::parse(string("weight"));
  if (!weight)
    return fail(toString(weight.takeError()));
  Expected<NumberFormat> scale = NumberFormat::parse(string("scale"));
  if (!scale)
    return fail(toString(scale.takeError()));
  Expected<Granularity> granularity = Granularity::parse(string("granularity"));
  if (!granularity)
    return fail(toString(granularity.takeError()));
  Expected<ZeroPointKind> zero = parseZeroPointKind(string("zero_point"));
  if (!zero)
    return fail(toString(zero.takeError()));
  w.type.weight = *weight;
  w.type.scale = *scale;
  // Packed scales have one row per output feature, whatever the block's rows.
  w.type.granularity = granularity->rows == 1
                           ? *granularity
                           : Granularity{1, granularity->columns};
  w.type.zeroPoint = *zero;
  w.type.columnPhase = int32_t(columnPhase);
  w.inputScale = float(object->getNumber("input_scale").value_or(0));
  if (activationBits)
    *activationBits = unsigned(bits);
  if (Error error = w.type.verify())
    return fail(toString(std::move(error)));
  auto find = [&](StringRef suffix) {
    return shard.find((name + "." + suffix).str());
  };
  StringRef layout = object->getString("layout").value_or("packed");
  if (layout != "packed" && layout != "plain")
    return fail("expected a layout of packed or plain, got '" + layout + "'");
  const TensorView *packed = find(layout), *scales = find("scales");
  if (!packed || !scales)
    return fail("expected the tensors '" + layout + "' and 'scales'");
  if (Error error = checkPackedWidths(unsigned(bits), w.type.weight.bits))
    return fail(toString(std::move(error)));
  int64_t bytes = layout == "plain" ? w.n * w.k : w.packedBytes(unsigned(bits));
  if (int64_t(packed->data.size()) != bytes ||
      (layout == "plain" && w.type.weight.bits != 8))
    return fail("expected " + Twine(bytes) + " bytes of " + layout +
                " weights, got " + packed->describe());
  w.codes.resize(size_t(w.n * w.k));
  if (layout == "plain")
    w.codes.assign(packed->data.begin(), packed->data.end());
  else if (Error error = unpackWeights(packed->data, w.n, w.k, unsigned(bits),
                                       w.type.weight.bits, w.codes))
    return fail(toString(std::move(error)));
  int64_t groups = w.type.scaleColumns(w.k);
  auto unpack = [&](const TensorView &tensor, NumberFormat format,
                    std::vector<uint32_t> &into) -> Error {
    unsigned size = elementBytes(format);
    if (int64_t(tensor.data.size()) !=
        packedScaleElements(w.n, groups) * int64_t(size))
      return fail("expected " + Twine(packedScaleElements(w.n, groups)) +
                  " elements of " + Twine(size) + " bytes in tensor '" +
                  tensor.name + "', got " + tensor.describe());
    std::vector<uint8_t> bytes(size_t(w.n * groups * size));
    if (Error error = unpackScales(tensor.data, w.n, groups, size, bytes))
      return fail(toString(std::move(error)));
    into.resize(size_t(w.n * groups));
    for (size_t i = 0; i < into.size(); ++i)
      for (unsigned b = 0; b < size; ++b)
        into[i] |= uint32_t(bytes[i * size + b]) << (8 * b);
    return Error::success();
  };
  if (Error error = unpack(*scales, w.type.scale, w.scales))
    return std::move(error);
  if (w.type.zeroPoint != ZeroPointKind::None) {
    const TensorView *zeros = find("zero_points");
    if (!zeros)
      return fail("expected the tensor 'zero_points'");
    if (Error error = unpack(*zeros,
                             w.type.zeroPoint == ZeroPointKind::Integer
                                 ? NumberFormat::unsignedInt(8)
                                 : w.type.scale,
                             w.zeroPoints))
      return std::move(error);
  }
  auto words = [&](StringRef suffix, TensorDType dtype, int64_t count,
                   std::vector<uint32_t> &into) -> Error {
    const TensorView *tensor = find(suffix);
    if (!tensor)
      return Error::success();
    if (tensor->dtype != dtype || (count >= 0 && tensor->elements() != count))
      return fail("tensor '" + tensor->name + "' does not fit, got " +
                  tensor->describe());
    into = rawElements(*tensor);
    return Error::success();
  };
  auto floats = [](ArrayRef<uint32_t> bits) {
    std::vector<float> values;
    for (uint32_t value : bits)
      values.push_back(floatFromBits(value));
    return values;
  };
  std::vector<uint32_t> global, table, bias, order;
  if (Error error = words("global", TensorDType::F32, -1, global))
    return std::move(error);
  if (Error error = words("table", TensorDType::F32, 16, table))
    return std::move(error);
  if (Error error = words("bias", TensorDType::F32, w.n, bias))
    return std::move(error);
  if (Error error = words("k_order", TensorDType::I32, w.k, order))
    return std::move(error);
  w.globalScales = floats(global);
  if (!global.empty())
    w.type.globalScale =
        global.size() == 1 ? GlobalScaleKind::Tensor : GlobalScaleKind::Channel;
  if (!table.empty()) {
    w.type.table.emplace();
    for (size_t i = 0; i < 16; ++i)
      w.type.table->values[i] = floatFromBits(table[i]);
  }
  w.bias = floats(bias);
  w.kOrder.assign(order.begin(), order.end());
  if (Error error = w.verify())
    return fail(toString(std::move(error)));
  return w;
}

} // namespace humming
