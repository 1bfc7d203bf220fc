//===- LayerScheme.h - What a configuration says of a layer ------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `quantization_config` describes a whole model; lists of ignored layers and
// overrides by name or pattern make exceptions. Resolving it for one layer
// gives the parameters that the layer's tensors do not show by themselves.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_LAYERSCHEME_H
#define HUMMING_QUANT_LAYERSCHEME_H

#include "Humming/Quant/Checkpoint.h"

namespace humming {

/// The configuration of one layer. Fields keep their defaults where the
/// configuration does not say.
struct LayerScheme {
  std::string method; ///< quant_method in lower case, or empty
  std::string format; ///< compressed-tensors format, auto-round packing_format
  bool ignored = false; ///< the layer is left unquantized
  unsigned bits = 0;
  int64_t groupSize = 0; ///< 0: not said; -1: whole row
  std::optional<bool> symmetric;
  int64_t blockRows = 0, blockColumns = 0; ///< weight_block_size
  GptqZeros zeros = GptqZeros::Unknown;
  /// BitNet: scales multiply rather than divide (AutoBitLinear).
  bool multiplyScale = false;
};

/// Resolves `config` (quantization_config; null: all defaults) for a layer.
/// Understood: ignore, ignored_layers, modules_to_not_convert, exclude_modules,
/// llm_int8_skip_modules; config_groups (compressed-tensors); dynamic
/// (GPTQModel, with +: and -: prefixes); extra_config (auto-round). An entry
/// of a list matches a layer if it is `re:` and a pattern that matches from the
/// start, holds a `*` wildcard that matches the whole name, or equals a run of
/// whole components of the name (`lm_head`, `mlp.gate`, never `gate` for
/// `gate_proj`). Error: names the key and what is wrong.
llvm::Expected<LayerScheme> resolveScheme(const llvm::json::Object *config,
                                          llvm::StringRef layer);

/// Whether one entry of an ignore or target list matches a layer.
llvm::Expected<bool> matchesLayer(llvm::StringRef entry, llvm::StringRef layer);

} // namespace humming

#endif // HUMMING_QUANT_LAYERSCHEME_H
