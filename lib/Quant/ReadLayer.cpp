//===- ReadLayer.cpp - Finding and reading the layers of a checkpoint -----===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors that a layer has decide what it is; the configuration only adds
// what they don't show (bits, group sizes, conventions). So files whose
// configuration is missing or names a tool rather than a layout still read.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/LayerScheme.h"
#include "Readers.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace llvm;

namespace humming {

StringRef stringify(LayerFormat format) {
  switch (format) {
  case LayerFormat::None:
    return "none";
  case LayerFormat::Gptq:
    return "gptq";
  case LayerFormat::Awq:
    return "awq";
  case LayerFormat::Packed:
    return "pack-quantized";
  case LayerFormat::Int8:
    return "int8";
  case LayerFormat::Fp8:
    return "fp8";
  case LayerFormat::Fp4:
    return "fp4";
  case LayerFormat::GptOss:
    return "gpt-oss";
  case LayerFormat::Bitsandbytes4:
    return "bitsandbytes-4bit";
  case LayerFormat::Bitsandbytes8:
    return "bitsandbytes-int8";
  case LayerFormat::Hqq:
    return "hqq";
  case LayerFormat::Bitnet:
    return "bitnet";
  }
  return "none";
}

/// Whether 4-bit qweight and scales have AWQ's shapes: [K, N/8] and [G, N].
static bool looksLikeAwq(const TensorView &qweight, const TensorView &scales) {
  return qweight.shape.size() == 2 && scales.shape.size() == 2 &&
         qweight.shape[1] * 8 == scales.shape[1];
}

/// Splits `NAME[3]`.
static std::optional<int64_t> consumeExpert(StringRef &prefix) {
  if (!prefix.ends_with("]"))
    return std::nullopt;
  auto [name, index] = prefix.drop_back().rsplit('[');
  int64_t expert;
  if (index.empty() || !all_of(index, isDigit) ||
      index.getAsInteger(10, expert))
    return std::nullopt;
  prefix = name;
  return expert;
}

static LayerFormat detect(const LayerReader &layer) {
  if (layer.find("W_q"))
    return LayerFormat::Hqq;
  if (layer.find("weight.absmax"))
    return LayerFormat::Bitsandbytes4;
  if (const TensorView *qweight = layer.find("qweight")) {
    const TensorView *scales = layer.find("scales");
    return scales && looksLikeAwq(*qweight, *scales) ? LayerFormat::Awq
                                                     : LayerFormat::Gptq;
  }
  if (const TensorView *packed = layer.find("weight_packed"))
    return packed->dtype == TensorDType::U8 || packed->dtype == TensorDType::I8
               ? LayerFormat::Fp4
               : LayerFormat::Packed;
  const TensorView *weight = layer.find("weight");
  if (!weight || weight->shape.size() != 2)
    return LayerFormat::None;
  if (weight->dtype == TensorDType::F8E4M3 ||
      weight->dtype == TensorDType::F8E5M2)
    return LayerFormat::Fp8;
  if (weight->dtype == TensorDType::I8 && layer.find("SCB"))
    return LayerFormat::Bitsandbytes8;
  const TensorView *scale = layer.find("weight_scale");
  if (!scale)
    return LayerFormat::None;
  bool narrowScale = dtypeBits(scale->dtype) == 8;
  if (weight->dtype == TensorDType::I8)
    return narrowScale ? LayerFormat::Fp4 : LayerFormat::Int8;
  if (weight->dtype == TensorDType::U8)
    return narrowScale ? LayerFormat::Fp4 : LayerFormat::Bitnet;
  return LayerFormat::None;
}

std::vector<LayerInfo> listLayers(const Checkpoint &checkpoint) {
  std::map<std::string, LayerInfo> layers;
  for (const TensorView *tensor : checkpoint.tensors()) {
    StringRef name = tensor->name;
    if (name.ends_with("_blocks") && tensor->shape.size() == 4) {
      StringRef prefix = name.drop_back(StringRef("_blocks").size());
      const TensorView *scales = checkpoint.find((prefix + "_scales").str());
      if (!scales)
        continue;
      const TensorView *bias = checkpoint.find((prefix + "_bias").str());
      int64_t bytes = tensor->data.size() + scales->data.size() +
                      (bias ? bias->data.size() : 0);
      for (int64_t e = 0; e < tensor->shape[0]; ++e) {
        // Zero padded inside the key only, so that experts sort by number.
        std::string key = (prefix + "[" + Twine(1000000 + e) + "]").str();
        layers[key] = {(prefix + "[" + Twine(e) + "]").str(),
                       LayerFormat::GptOss, bytes / tensor->shape[0]};
      }
      continue;
    }
    StringRef prefix;
    for (StringRef suffix : {"qweight", "weight_packed", "weight", "W_q"})
      if (name.ends_with(suffix) &&
          (name.size() == suffix.size() ||
           name[name.size() - suffix.size() - 1] == '.'))
        prefix = name.drop_back(std::min(name.size(), suffix.size() + 1));
    if (prefix.data() == nullptr)
      continue;
    LayerFormat format = detect(LayerReader(checkpoint, prefix));
    if (format != LayerFormat::None)
      layers[prefix.str()] = {prefix.str(), format, 0};
  }
  for (const TensorView *tensor : checkpoint.tensors()) {
    // A layer's tensors are PREFIX.x or, of bitsandbytes, PREFIX.weight.x.
    StringRef prefix = StringRef(tensor->name).rsplit('.').first;
    auto it = layers.find(prefix.str());
    if (it == layers.end() && prefix.ends_with(".weight"))
      it = layers.find(prefix.drop_back(7).str());
    if (it == layers.end() && prefix.contains(".weight.quant_state"))
      it = layers.find(prefix.split(".weight.quant_state").first.str());
    if (it != layers.end() && it->second.format != LayerFormat::GptOss)
      it->second.bytes += int64_t(tensor->data.size());
  }
  std::vector<LayerInfo> result;
  for (auto &entry : layers)
    result.push_back(std::move(entry.second));
  return result;
}

static Expected<QuantizedWeights> readGptqLayer(const Checkpoint &checkpoint,
                                                StringRef prefix,
                                                const LayerScheme &scheme,
                                                GptqZeros zeros) {
  GptqOptions options;
  options.bits = scheme.bits ? scheme.bits : 4;
  options.groupSize = scheme.groupSize;
  options.symmetric = scheme.symmetric.value_or(false);
  options.zeros = zeros != GptqZeros::Unknown ? zeros : scheme.zeros;
  return readGptq(checkpoint, prefix, options);
}

static Expected<QuantizedWeights> readAwqLayer(const Checkpoint &checkpoint,
                                               StringRef prefix,
                                               const LayerScheme &scheme) {
  AwqOptions options;
  options.bits = scheme.bits ? scheme.bits : 4;
  options.groupSize = scheme.groupSize;
  options.zeroPoint = !scheme.symmetric.value_or(false);
  return readAwq(checkpoint, prefix, options);
}

Expected<QuantizedWeights> readLayer(const Checkpoint &checkpoint,
                                     StringRef prefix,
                                     const ReadOptions &options) {
  StringRef name = prefix;
  if (std::optional<int64_t> expert = consumeExpert(name))
    return readGptOss(checkpoint, name, *expert);
  LayerReader layer(checkpoint, prefix);
  Expected<LayerScheme> scheme =
      resolveScheme(checkpoint.quantizationConfig(), prefix);
  if (!scheme)
    return scheme.takeError();
  // qweight is a name that many tools use, each with a layout of its own.
  if (layer.find("qweight") &&
      !is_contained({"", "gptq", "gptqmodel", "gptq_marlin", "awq",
                     "awq_marlin", "auto-round", "auto_round",
                     "intel/auto-round"},
                    scheme->method))
    return layer.fail("expected a known quant_method for a qweight (gptq, awq, "
                      "auto-round), got '" +
                      scheme->method + "'");
  switch (detect(layer)) {
  case LayerFormat::None:
  case LayerFormat::GptOss:
    break;
  case LayerFormat::Gptq:
    return readGptqLayer(checkpoint, prefix, *scheme, options.zeros);
  case LayerFormat::Awq:
    return readAwqLayer(checkpoint, prefix, *scheme);
  case LayerFormat::Packed:
    return readPacked(layer, *scheme);
  case LayerFormat::Int8:
    return readInt8(layer, *scheme, options.shardRows);
  case LayerFormat::Fp8:
    return readFp8(layer, *scheme, options.shardRows);
  case LayerFormat::Fp4:
    return readFp4(layer,
                   layer.find("weight_packed") ? "weight_packed" : "weight",
                   *scheme);
  case LayerFormat::Bitsandbytes4:
    return readBitsandbytes4(layer);
  case LayerFormat::Bitsandbytes8:
    return readBitsandbytes8(layer);
  case LayerFormat::Hqq:
    return readHqq(layer, *scheme);
  case LayerFormat::Bitnet:
    return readBitnet(layer, *scheme);
  }
  const TensorView *weight = layer.find("weight");
  if (weight)
    return layer.fail(
        "expected a quantized layer, its weight is " + weight->describe() +
        (scheme->ignored ? " (quantization_config leaves it so)" : ""));
  if (checkpoint.find((prefix + "_blocks").str()))
    return layer.fail("expected the number of an expert, as in '" + prefix +
                      "[0]'");
  return layer.fail("expected the tensors of a quantized layer (qweight, "
                    "weight_packed, weight, ...), the checkpoint has none of "
                    "that name");
}

} // namespace humming
