//===- ModelSource.h - The layers of a model in any container ----*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_MODELSOURCE_H
#define HUMMING_QUANT_MODELSOURCE_H

#include "Humming/Quant/Checkpoint.h"
#include "Humming/Quant/Gguf.h"

namespace humming {

/// A model in safetensors, GGUF or packed: its quantized layers, to be read one
/// by one, and the tensors that are not quantized.
class ModelSource {
public:
  struct Layer {
    std::string name;   ///< a prefix, or a GGUF tensor (`NAME[e]`: an expert)
    std::string format; ///< the checkpoint's layout: `gptq`, `Q4_K`, `packed`
    int64_t bytes = 0;  ///< stored
  };

  /// Opens a .safetensors file, a folder of them (a checkpoint or a packed
  /// model), or a .gguf file.
  static llvm::Expected<ModelSource> open(llvm::StringRef path);

  llvm::ArrayRef<Layer> layers() const { return list; }
  llvm::Expected<QuantizedWeights> read(const Layer &layer,
                                        const ReadOptions &options) const;
  /// Tensors that belong to no quantized layer and whose dtype safetensors can
  /// express; views live as long as the source.
  std::vector<TensorView> plainTensors() const;

private:
  std::optional<Checkpoint> checkpoint;
  std::optional<GgufFile> gguf;
  std::vector<Layer> list;
};

/// Scales (and float zero points) rounded to another format. Error: a scale
/// that overflows the format, or that it would flush to zero, named by row.
llvm::Expected<QuantizedWeights> convertScales(QuantizedWeights weights,
                                               NumberFormat scale);

} // namespace humming

#endif // HUMMING_QUANT_MODELSOURCE_H
