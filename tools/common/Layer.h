//===- Layer.h - One layer's buffers on the host ----------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TOOLS_COMMON_LAYER_H
#define HUMMING_TOOLS_COMMON_LAYER_H

#include "Humming/Quant/QuantizedWeights.h"
#include "Humming/Quant/Reference.h"
#include "Humming/Target/KernelConfig.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace humming {

/// Weights as the reference takes them and as the kernel takes them.
struct HostLayer {
  QuantizedWeights weights; ///< with the bias rounded to the output's format
  std::vector<uint8_t> packedWeights;
  std::vector<uint8_t> packedScales;
  std::vector<uint8_t> packedZeroPoints; ///< empty if there are none
  std::vector<uint8_t> bias;             ///< empty if there is none
  std::vector<uint8_t> globalScales;     ///< f32; empty if there are none
  std::vector<uint8_t> weightSums;       ///< f32, of asymmetric activations
};

/// Random weights of the problem's types, n and k. Same seed, same layer.
llvm::Expected<HostLayer> makeRandomLayer(const MatmulProblem &problem,
                                          uint64_t seed);

/// Reads `FILE:PREFIX` of a checkpoint. `zeros` is the GPTQ zero-point
/// convention, `v1` or `v2`; empty: as the checkpoint's config says.
/// Error: names the flag, the file and what is wrong.
llvm::Expected<QuantizedWeights> readLayerFlag(llvm::StringRef text,
                                               llvm::StringRef zeros);

/// Packs weights for a problem whose weight type, n and k are theirs.
/// Error: types or sizes disagree.
llvm::Expected<HostLayer> packLayer(QuantizedWeights weights,
                                    const MatmulProblem &problem);

/// How the kernel of this config rounds, for the reference's bounds.
KernelNumerics numericsOf(const MatmulProblem &problem,
                          const KernelConfig &config);

} // namespace humming

#endif // HUMMING_TOOLS_COMMON_LAYER_H
