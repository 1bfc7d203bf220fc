//===- ReadLayer.cpp - Choosing the reader of a layer ---------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReaderSupport.h"

using namespace llvm;

namespace humming {

/// Whether 4-bit qweight and scales have AWQ's shapes: [K, N/8] and [G, N].
static bool looksLikeAwq(const TensorView &qweight, const TensorView &scales) {
  return qweight.shape.size() == 2 && scales.shape.size() == 2 &&
         qweight.shape[1] * 8 == scales.shape[1];
}

Expected<QuantizedWeights> readLayer(const Checkpoint &checkpoint,
                                     StringRef prefix, GptqZeros zeros) {
  LayerReader layer(checkpoint, prefix);
  std::string method;
  const json::Object *config = checkpoint.quantizationConfig();
  if (config)
    if (std::optional<StringRef> text = config->getString("quant_method"))
      method = text->lower();
  if (method.empty()) {
    const TensorView *qweight = layer.find("qweight");
    const TensorView *scales = layer.find("scales");
    if (qweight && scales)
      method = looksLikeAwq(*qweight, *scales) ? "awq" : "gptq";
  }
  if (method == "awq") {
    AwqOptions options;
    if (config) {
      Expected<AwqOptions> parsed = AwqOptions::fromConfig(*config);
      if (!parsed)
        return parsed.takeError();
      options = *parsed;
    }
    return readAwq(checkpoint, prefix, options);
  }
  if (method == "gptq") {
    GptqOptions options;
    if (config) {
      Expected<GptqOptions> parsed = GptqOptions::fromConfig(*config);
      if (!parsed)
        return parsed.takeError();
      options = *parsed;
    }
    if (zeros != GptqZeros::Unknown)
      options.zeros = zeros;
    return readGptq(checkpoint, prefix, options);
  }
  if (!method.empty())
    return layer.fail("expected a known quant_method (gptq, awq), got '" +
                      method + "'");
  return layer.fail("expected the tensors of a quantized layer (qweight and "
                    "scales, ...), the checkpoint has none of that name");
}

} // namespace humming
