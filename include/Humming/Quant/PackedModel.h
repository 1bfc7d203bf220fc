//===- PackedModel.h - A packed model on disk --------------------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A packed model is a folder of safetensors shards with an index. A layer NAME
// has these tensors, those in brackets where its type has them:
//
//   NAME.packed        U8, the packed layout of Packing.h; or in its place
//   NAME.plain         [N, K], U8 (s8 as I8), row-major as the checkpoint has
//   it NAME.scales        [G, ceil(N/64), 64] in the scale's dtype (U8: e8m0)
//   [NAME.zero_points] the same shape, U8 or the scale's dtype
//   [NAME.global]      F32, one value or [N]
//   [NAME.table]       F32 [16], the code table
//   [NAME.bias]        F32 [N]
//   [NAME.k_order]     I32 [K]
//
// 8-bit weights without zero points in a format that is one of activations too
// are plain for activations of 8 bits, if K is a multiple of 16: they are
// operands of the MMA as they are, and 8-bit activations of another format
// cannot use them.
//
// An entry `humming:NAME` in the shard's metadata is a JSON object of n, k,
// layout (packed or plain; packed where it is missing), activation_bits,
// weight, scale, granularity, zero_point, row_phase, column_phase and
// input_scale. Tensors of layers that are not quantized keep their names.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_PACKEDMODEL_H
#define HUMMING_QUANT_PACKEDMODEL_H

#include "Humming/Quant/QuantizedWeights.h"
#include "Humming/Quant/Safetensors.h"

namespace humming {

/// A packed layer's tensors, owned, ready to be written or compared.
struct PackedLayer {
  struct Tensor {
    std::string name;
    TensorDType dtype;
    llvm::SmallVector<int64_t, 4> shape;
    std::vector<uint8_t> bytes;
  };
  std::vector<Tensor> tensors;
  std::string description; ///< the JSON of the metadata entry

  int64_t bytes() const;
};

/// Whether a layer is kept plain; see the head of the file.
bool keepsPlain(const QuantizedWeights &weights, unsigned activationBits);

/// Packs one layer. Error: the widths have no packed layout.
llvm::Expected<PackedLayer> packModelLayer(llvm::StringRef name,
                                           const QuantizedWeights &weights,
                                           unsigned activationBits,
                                           unsigned threads = 0);

/// Reads a layer back from a shard. `activationBits` receives its packing's
/// width unless null. Error: a tensor is missing or does not fit.
llvm::Expected<QuantizedWeights>
unpackModelLayer(const SafetensorsFile &shard, llvm::StringRef name,
                 unsigned *activationBits = nullptr);

} // namespace humming

#endif // HUMMING_QUANT_PACKEDMODEL_H
