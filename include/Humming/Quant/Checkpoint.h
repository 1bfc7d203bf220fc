//===- Checkpoint.h - Quantized layers of a checkpoint -----------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checkpoint is one or more safetensors files and, beside them, a config.json
// whose `quantization_config` says how weights are stored. Readers turn the
// tensors `PREFIX.qweight`, `PREFIX.scales`, ... of one layer into
// QuantizedWeights. docs/Formats.md describes each format.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_CHECKPOINT_H
#define HUMMING_QUANT_CHECKPOINT_H

#include "Humming/Quant/QuantizedWeights.h"
#include "Humming/Quant/Safetensors.h"
#include "llvm/Support/JSON.h"

namespace humming {

/// An open checkpoint. Views of its tensors live as long as it does.
class Checkpoint {
public:
  /// Opens a .safetensors file or a folder of them (with or without a
  /// model.safetensors.index.json) and reads the config.json beside them, if
  /// there is one. Error: names the file and what is wrong.
  static llvm::Expected<Checkpoint> open(llvm::StringRef path);

  const TensorView *find(llvm::StringRef name) const;
  /// All tensors, sorted by name.
  llvm::ArrayRef<const TensorView *> tensors() const { return sorted; }
  /// The files, for their metadata.
  llvm::ArrayRef<SafetensorsFile> containers() const { return files; }
  /// `quantization_config` of config.json (or a quantization_config.json,
  /// quantize_config.json beside it), or null.
  const llvm::json::Object *quantizationConfig() const;
  /// The whole config.json, or null.
  const llvm::json::Object *config() const;
  llvm::StringRef path() const { return location; }

private:
  llvm::Error addFile(llvm::StringRef path);
  llvm::Error readConfig(llvm::StringRef folder);

  std::string location;
  std::vector<SafetensorsFile> files;
  std::vector<const TensorView *> sorted;
  std::optional<llvm::json::Value> root;
  std::optional<llvm::json::Value> quantization;
};

/// Parses JSON from a file that may be hostile: at most 64 MB, nested at most
/// 64 deep. Error: names the file.
llvm::Expected<llvm::json::Value> readJsonFile(llvm::StringRef path);

//===----------------------------------------------------------------------===//
// GPTQ and AWQ
//===----------------------------------------------------------------------===//

/// How GPTQ checkpoints store zero points. The two can't be told apart by
/// looking at a file, and a wrong guess shifts every weight by one scale.
enum class GptqZeros : uint8_t {
  Unknown,
  V1, ///< z - 1 is stored, modulo 2^bits (`"checkpoint_format": "gptq"`)
  V2, ///< z itself is stored (`"checkpoint_format": "gptq_v2"`)
};
llvm::Expected<GptqZeros> parseGptqZeros(llvm::StringRef text);

struct GptqOptions {
  unsigned bits = 4;
  /// Weights per scale along K; 0: take it from the shapes.
  int64_t groupSize = 0;
  /// Symmetric: the zero point is 2^(bits-1) and the stored ones are ignored.
  bool symmetric = false;
  GptqZeros zeros = GptqZeros::Unknown;

  /// Reads bits, group_size, sym and checkpoint_format. A format field that is
  /// missing leaves `zeros` unknown.
  static llvm::Expected<GptqOptions>
  fromConfig(const llvm::json::Object &quantizationConfig);
};

/// Reads a GPTQ layer: PREFIX.qweight int32 [K*bits/32, N], PREFIX.scales
/// [G, N], PREFIX.qzeros int32 [G, N*bits/32], optional PREFIX.g_idx int32 [K]
/// (activation order: folded into kOrder) and PREFIX.bias. Error: a missing
/// tensor, shapes or dtypes that disagree, zeros unknown where they matter.
llvm::Expected<QuantizedWeights> readGptq(const Checkpoint &checkpoint,
                                          llvm::StringRef prefix,
                                          const GptqOptions &options);

struct AwqOptions {
  unsigned bits = 4;
  int64_t groupSize = 0; ///< 0: take it from the shapes
  bool zeroPoint = true; ///< false: symmetric, the zero point is 8

  static llvm::Expected<AwqOptions>
  fromConfig(const llvm::json::Object &quantizationConfig);
};

/// Reads an AWQ layer: PREFIX.qweight int32 [K, N/8] with the nibbles of eight
/// columns in the order 0 2 4 6 1 3 5 7, PREFIX.scales [G, N], PREFIX.qzeros
/// int32 [G, N/8] in the same order, optional PREFIX.bias.
llvm::Expected<QuantizedWeights> readAwq(const Checkpoint &checkpoint,
                                         llvm::StringRef prefix,
                                         const AwqOptions &options);

//===----------------------------------------------------------------------===//
// Any format
//===----------------------------------------------------------------------===//

/// How a layer's tensors are laid out; docs/Formats.md has a section for each.
enum class LayerFormat : uint8_t {
  None, ///< not quantized (a plain weight), or no layer at all
  Gptq,
  Awq,
  Packed, ///< compressed-tensors pack-quantized
  Int8,   ///< int-quantized and other int8 weights with weight_scale
  Fp8,    ///< e4m3 or e5m2 with tensor, channel, group or block scales
  Fp4,    ///< NVFP4, MXFP4, MXFP6
  GptOss, ///< MXFP4 blocks of all experts
  Bitsandbytes4,
  Bitsandbytes8,
  Hqq,
  Bitnet,
};
llvm::StringRef stringify(LayerFormat format);

/// One layer of a checkpoint.
struct LayerInfo {
  std::string prefix; ///< without the dot; experts of GptOss: `NAME[3]`
  LayerFormat format = LayerFormat::None;
  int64_t bytes = 0; ///< of all its tensors
};

/// The quantized layers of a checkpoint, found by their tensors, sorted by
/// name. GptOss experts are listed one by one.
std::vector<LayerInfo> listLayers(const Checkpoint &checkpoint);

struct ReadOptions {
  /// Unless Unknown, overrides the configuration's GPTQ convention.
  GptqZeros zeros = GptqZeros::Unknown;
  /// Rows of the layers that were fused into this one, for scale tensors with
  /// one value per shard (q/k/v, gate/up).
  std::vector<int64_t> shardRows;
};

/// Reads one layer: the format is found from its tensors, its parameters from
/// the checkpoint's quantization_config. Error: the reader's, or that there is
/// no quantized layer of that name.
llvm::Expected<QuantizedWeights> readLayer(const Checkpoint &checkpoint,
                                           llvm::StringRef prefix,
                                           const ReadOptions &options);
inline llvm::Expected<QuantizedWeights>
readLayer(const Checkpoint &checkpoint, llvm::StringRef prefix,
          GptqZeros zeros = GptqZeros::Unknown) {
  ReadOptions options;
  options.zeros = zeros;
  return readLayer(checkpoint, prefix, options);
}

} // namespace humming

#endif // HUMMING_QUANT_CHECKPOINT_H
