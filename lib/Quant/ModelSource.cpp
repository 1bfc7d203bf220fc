//===- ModelSource.cpp - The layers of a model in any container -----------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/ModelSource.h"
#include "Humming/Quant/PackedModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace llvm;

namespace humming {

/// Orders names with the numbers in them as numbers.
static bool compareNumbered(StringRef a, StringRef b) {
  int order = a.compare_numeric(b);
  return order != 0 ? order < 0 : a < b;
}

Expected<ModelSource> ModelSource::open(StringRef path) {
  ModelSource source;
  if (path.ends_with(".gguf")) {
    Expected<GgufFile> file = GgufFile::open(path);
    if (!file)
      return file.takeError();
    for (const GgufTensor &tensor : file->tensors()) {
      if (!ggufTypeIsReadable(tensor.type) || tensor.shape.size() < 2 ||
          tensor.shape.size() > 3)
        continue;
      int64_t experts = tensor.shape.size() == 3 ? tensor.shape[0] : 1;
      for (int64_t e = 0; e < experts; ++e)
        source.list.push_back(
            {tensor.shape.size() == 3 ? tensor.name + "[" + itostr(e) + "]"
                                      : tensor.name,
             ggufTypeName(tensor.type), int64_t(tensor.data.size()) / experts});
    }
    source.gguf = std::move(*file);
    return source;
  }
  Expected<Checkpoint> checkpoint = Checkpoint::open(path);
  if (!checkpoint)
    return checkpoint.takeError();
  for (LayerInfo &layer : listLayers(*checkpoint))
    source.list.push_back(
        {std::move(layer.prefix), stringify(layer.format).str(), layer.bytes});
  for (const SafetensorsFile &file : checkpoint->containers())
    for (const auto &entry : file.metadata()) {
      StringRef name = entry.first();
      if (!name.consume_front("humming:"))
        continue;
      int64_t bytes = 0;
      for (const TensorView &tensor : file.tensors())
        if (StringRef(tensor.name).rsplit('.').first == name)
          bytes += int64_t(tensor.data.size());
      source.list.push_back({name.str(), "packed", bytes});
    }
  sort(source.list, [](const Layer &a, const Layer &b) {
    return compareNumbered(a.name, b.name);
  });
  source.checkpoint = std::move(*checkpoint);
  return source;
}

Expected<QuantizedWeights> ModelSource::read(const Layer &layer,
                                             const ReadOptions &options) const {
  if (checkpoint && layer.format == "packed") {
    for (const SafetensorsFile &file : checkpoint->containers())
      if (file.metadata().contains("humming:" + layer.name))
        return unpackModelLayer(file, layer.name);
    return createStringError("no shard describes the layer '" + layer.name +
                             "'");
  }
  if (checkpoint)
    return readLayer(*checkpoint, layer.name, options);
  StringRef name = layer.name;
  if (gguf->find(name))
    return readGguf(*gguf, name);
  auto [tensor, index] = name.drop_back().rsplit('[');
  int64_t expert = 0;
  if (!name.ends_with("]") || index.getAsInteger(10, expert))
    return createStringError("the file has no tensor '" + name + "'");
  return readGguf(*gguf, tensor, expert);
}

std::vector<TensorView> ModelSource::plainTensors() const {
  std::vector<TensorView> result;
  if (gguf) {
    for (const GgufTensor &tensor : gguf->tensors()) {
      TensorDType dtype;
      switch (tensor.type) { // ggml's numbers
      case 0:
        dtype = TensorDType::F32;
        break;
      case 1:
        dtype = TensorDType::F16;
        break;
      case 30:
        dtype = TensorDType::BF16;
        break;
      case 26:
        dtype = TensorDType::I32;
        break;
      default:
        continue;
      }
      result.push_back({tensor.name, dtype, tensor.shape, tensor.data});
    }
    return result;
  }
  StringSet<> prefixes, experts;
  for (const Layer &layer : list) {
    prefixes.insert(layer.name);
    if (layer.format == stringify(LayerFormat::GptOss))
      experts.insert(StringRef(layer.name).rsplit('[').first);
  }
  for (const TensorView *tensor : checkpoint->tensors()) {
    StringRef name = tensor->name;
    StringRef prefix = name.contains(".weight.quant_state")
                           ? name.split(".weight.quant_state").first
                           : name.rsplit('.').first;
    if (prefixes.contains(prefix) ||
        (prefix.ends_with(".weight") && prefixes.contains(prefix.drop_back(7))))
      continue;
    if (any_of(ArrayRef<StringRef>{"_blocks", "_scales", "_bias"},
               [&](StringRef suffix) {
                 return name.ends_with(suffix) &&
                        experts.contains(name.drop_back(suffix.size()));
               }))
      continue;
    result.push_back(*tensor);
  }
  return result;
}

Expected<QuantizedWeights> convertScales(QuantizedWeights weights,
                                         NumberFormat scale) {
  if (weights.type.scale == scale)
    return weights;
  QuantType type = weights.type;
  type.scale = scale;
  if (Error error = type.verify())
    return std::move(error);
  int64_t columns = weights.type.scaleColumns(weights.k);
  auto convert = [&](std::vector<uint32_t> &codes, StringRef what) -> Error {
    for (size_t i = 0; i < codes.size(); ++i) {
      double value = weights.type.scale.decode(codes[i]);
      if (std::isfinite(value) && std::fabs(value) > scale.maxFinite())
        return createStringError(what + " of row " +
                                 Twine(int64_t(i) / columns) + ", block " +
                                 Twine(int64_t(i) % columns) +
                                 " exceeds the range of " + scale.str());
      codes[i] = scale.encode(value);
      if (value != 0 && what == "scale" && scale.decode(codes[i]) == 0)
        return createStringError(
            what + " of row " + Twine(int64_t(i) / columns) + ", block " +
            Twine(int64_t(i) % columns) + " is too small for " + scale.str());
    }
    return Error::success();
  };
  if (Error error = convert(weights.scales, "scale"))
    return std::move(error);
  if (weights.type.zeroPoint == ZeroPointKind::Float)
    if (Error error = convert(weights.zeroPoints, "zero point"))
      return std::move(error);
  weights.type.scale = scale;
  return weights;
}

} // namespace humming
