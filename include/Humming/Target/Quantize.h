//===- Quantize.h - Quantization of activations -----------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What hquant.quantize computes, and how: the question (`QuantizeProblem`), the
// answer (`QuantizeConfig`) and the rules that both must hold to.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TARGET_QUANTIZE_H
#define HUMMING_TARGET_QUANTIZE_H

#include "Humming/Quant/QuantizeActivations.h"
#include "Humming/Target/KernelConfig.h"

namespace humming {

/// Codes[M,K] and their scales from X[M,K] (from X[M,2K] with a gate).
struct QuantizeProblem {
  NumberFormat input = NumberFormat::bf16(); ///< f16 or bf16
  ActivationCodes codes;
  /// Tensor: the scale is an argument. Token: it is a result.
  ActivationScaleKind scale = ActivationScaleKind::Token;
  GateKind gate = GateKind::None;
  /// Sizes guide the choice; 0 means unknown.
  int64_t m = 0;
  int64_t k = 0;
  /// K and all row strides (in elements) are multiples of this: 1, 2, 4 or 8.
  int32_t kDivisor = 8;

  void deriveDivisors();
  /// One line: `bf16 -> e4m3/token/g128/f32, silu, M=16 K=8192`.
  std::string str() const;
};

/// How one quantize kernel is cut. A segment is what shares a scale: a row, or
/// a group of one. Printed as `lanes=256,groups=1,rows=1,chunks=2`.
struct QuantizeConfig {
  int32_t lanes = 256; ///< threads of a segment, a power of two
  int32_t groups = 1;  ///< groups of a row that a block takes
  int32_t rows = 1;    ///< rows that a block takes
  int32_t chunks = 1;  ///< chunks of 8 values that a thread keeps

  int32_t numThreads() const { return lanes * groups * rows; }

  bool operator==(const QuantizeConfig &o) const {
    return lanes == o.lanes && groups == o.groups && rows == o.rows &&
           chunks == o.chunks;
  }
  bool operator!=(const QuantizeConfig &o) const { return !(*this == o); }
  std::string str() const;
  /// Parses `str()`'s form; keys that are left out come from `base`.
  static llvm::Expected<QuantizeConfig> parse(llvm::StringRef text,
                                              const QuantizeConfig &base);
};

/// Error: "rule Q<n>: expected ..., got ..." (docs/HQuant.md).
llvm::Error checkQuantize(const QuantizeProblem &problem,
                          const TargetInfo &target);
llvm::Error checkQuantizeConfig(const QuantizeProblem &problem,
                                const QuantizeConfig &config,
                                const TargetInfo &target);

/// The config for a problem. Pure. Error: checkQuantize's.
llvm::Expected<QuantizeConfig>
chooseQuantizeConfig(const QuantizeProblem &problem, const TargetInfo &target);

/// Tokens of a row of the scales of activation groups, [ceil(K/G), this]: M up
/// to a multiple of 16, so that every row begins at a multiple of 16 bytes.
inline int64_t paddedScaleTokens(int64_t m) { return (m + 15) / 16 * 16; }

/// Every legal combination of input, codes, scale, group, zero point and gate
/// on `target`, with the sizes of `sizes`, in a fixed order.
std::vector<QuantizeProblem>
enumerateQuantizeProblems(const TargetInfo &target,
                          const QuantizeProblem &sizes);

} // namespace humming

#endif // HUMMING_TARGET_QUANTIZE_H
