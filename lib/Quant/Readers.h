//===- Readers.h - The readers behind readLayer ------------------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_QUANT_READERS_H
#define HUMMING_LIB_QUANT_READERS_H

#include "Humming/Quant/LayerScheme.h"
#include "ReaderSupport.h"
#include "llvm/ADT/STLExtras.h"

namespace humming {

/// A tensor of one float.
llvm::Error readFloatScalar(const LayerReader &layer, const TensorView &tensor,
                            float &value);

/// Scales of an [n, k] matrix: one value (tensor), [n] or [n, 1] (channel),
/// [shards] (expanded to channel by shardRows), [n, G] (group), or a block
/// grid. Sets type.scale, type.granularity and scales.
llvm::Error readScaleTensor(const LayerReader &layer, const TensorView &tensor,
                            const LayerScheme &scheme,
                            llvm::ArrayRef<int64_t> shardRows,
                            QuantizedWeights &w);

/// weight F8 [N, K] with weight_scale or weight_scale_inv.
llvm::Expected<QuantizedWeights> readFp8(const LayerReader &layer,
                                         const LayerScheme &scheme,
                                         llvm::ArrayRef<int64_t> shardRows);
/// NVFP4, MXFP4 and MXFP6: `tensor` holds packed codes, weight_scale e4m3 or
/// e8m0 groups, weight_scale_2 or weight_global_scale a second level.
llvm::Expected<QuantizedWeights> readFp4(const LayerReader &layer,
                                         llvm::StringRef tensor,
                                         const LayerScheme &scheme);
/// PREFIX_blocks, PREFIX_scales, PREFIX_bias of all experts.
llvm::Expected<QuantizedWeights> readGptOss(const Checkpoint &checkpoint,
                                            llvm::StringRef prefix,
                                            int64_t expert);
/// compressed-tensors pack-quantized: weight_packed int32.
llvm::Expected<QuantizedWeights> readPacked(const LayerReader &layer,
                                            const LayerScheme &scheme);
/// compressed-tensors int-quantized and other int8 weights with weight_scale.
llvm::Expected<QuantizedWeights> readInt8(const LayerReader &layer,
                                          const LayerScheme &scheme,
                                          llvm::ArrayRef<int64_t> shardRows);
llvm::Expected<QuantizedWeights> readBitsandbytes4(const LayerReader &layer);
llvm::Expected<QuantizedWeights> readBitsandbytes8(const LayerReader &layer);
llvm::Expected<QuantizedWeights> readHqq(const LayerReader &layer,
                                         const LayerScheme &scheme);
llvm::Expected<QuantizedWeights> readBitnet(const LayerReader &layer,
                                            const LayerScheme &scheme);

/// Sorts columns into groups by g_idx; see ReadGptqAwq.cpp.
llvm::Error readGroupIndex(const LayerReader &layer, const TensorView &tensor,
                           int64_t groups, const Granularity &granularity,
                           std::vector<int32_t> &order);

} // namespace humming

#endif // HUMMING_LIB_QUANT_READERS_H
