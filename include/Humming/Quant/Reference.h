//===- Reference.h - Reference arithmetic and error bounds -------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a quantized matmul means, in f64: dequantise, multiply, add the bias.
// Beside each value stands a bound on how far a correct kernel may be from it,
// derived from how the kernel computes (see Reference.cpp for the derivation).
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_REFERENCE_H
#define HUMMING_QUANT_REFERENCE_H

#include "Humming/Quant/QuantizedWeights.h"

namespace humming {

/// Dequantised rows [rowBegin, rowEnd) as doubles, row-major, one column per
/// input feature in their own order (a kOrder is undone). `out` holds
/// (rowEnd - rowBegin) * weights.inputs() values. The weights must verify.
void dequantizeRows(const QuantizedWeights &weights, int64_t rowBegin,
                    int64_t rowEnd, llvm::MutableArrayRef<double> out);

/// All rows.
std::vector<double> dequantize(const QuantizedWeights &weights);

/// Where a kernel multiplies weight scales in.
enum class ScaleSite : uint8_t {
  Operand,     ///< on the dequantised weight, in the operand type
  Accumulator, ///< on the partial sum of each group
  Epilogue,    ///< once on the final sum
};

/// How a kernel computes, as far as its rounding errors depend on it.
struct KernelNumerics {
  /// Type of the MMA's operands: f16, bf16, an 8-bit float or an integer.
  NumberFormat operand = NumberFormat::bf16();
  NumberFormat output = NumberFormat::bf16();
  /// f32, or f16 where the kernel accumulates in half precision.
  NumberFormat accumulator = NumberFormat::f32();
  /// The MMA sums integers exactly (s8 x s8 into s32).
  bool exactAccumulation = false;
  ScaleSite scale = ScaleSite::Operand;
  int32_t mmaK = 16;  ///< reduction length of one MMA instruction
  int32_t warpsK = 1; ///< warps of a block that sum parts of K
  int32_t splitK = 1; ///< blocks that sum parts of K
  /// Reduction elements, at most, after which the MMA's sum moves to an f32
  /// accumulator (scaled or not), perhaps with every 64; 0: not before the end.
  int32_t partialK = 0;
};

/// A reference result, row-major [m, features].
struct ReferenceResult {
  int64_t m = 0;
  int64_t features = 0;
  std::vector<double> values;
  /// No correct kernel is farther off than this, whatever the input.
  std::vector<double> worst;
  /// A correct kernel is within this for inputs whose signs are independent of
  /// the weights (random tests), but for a chance below 1e-13 per value. Never
  /// above `worst`.
  std::vector<double> probable;
};

struct ReferenceOptions {
  KernelNumerics numerics;
  /// Asymmetric activations: x = q s - o for the kernel's operands q. The o = z
  /// s of every row, or empty. The kernel sums q w and o w by themselves.
  llvm::ArrayRef<double> offsets;
  /// Sums of f16: what each row's sums are multiplied by besides the weights'
  /// scales (the largest scale of its activations, times the power of two that
  /// operands are too small by), or empty for 1.
  llvm::ArrayRef<double> sumScales;
  /// Output features to compute; empty: all.
  llvm::ArrayRef<int64_t> features;
  /// Without bounds only `values` is filled.
  bool bounds = true;
  unsigned threads = 0;
  /// Up to this many products (m * features * k) the sums in the bounds are
  /// computed exactly; beyond it they are bounded through norms of rows, which
  /// is cheaper and a few times looser.
  int64_t exactSums = int64_t(1) << 28;
};

/// C = X * W^T (+ bias) for activations x, row-major [m, weights.inputs()] with
/// `ldx` doubles from row to row, in f64. Error: sizes that disagree, weights
/// that do not verify, a feature out of range.
llvm::Expected<ReferenceResult>
referenceMatmul(llvm::ArrayRef<double> x, int64_t m, int64_t ldx,
                const QuantizedWeights &weights,
                const ReferenceOptions &options);

/// How a kernel's output compares with the reference.
struct Comparison {
  bool ok = true;
  double maxError = 0;          ///< largest |got - expected|
  double relativeFrobenius = 0; ///< ||got - expected|| / ||expected||
  /// Largest error / bound over all values; at most 1 when ok.
  double worstRatio = 0;
  /// The value with the largest ratio (or the first NaN mismatch).
  int64_t row = -1, feature = -1;
  double got = 0, expected = 0, bound = 0;
  int64_t mismatches = 0; ///< values outside their bound

  /// One line: `ok, max error ..., ...` or the first thing wrong.
  std::string str() const;
};

/// Compares `got` (row-major [m, features], stride ldc) with the reference.
/// NaN must meet NaN, infinities the same infinity; a reference value past the
/// largest finite `output` value may have become infinity. `probable` selects
/// the bound. got must hold (m - 1) * ldc + features values (asserted).
Comparison compareWithReference(const ReferenceResult &reference,
                                llvm::ArrayRef<double> got, int64_t ldc,
                                NumberFormat output, bool probable);

} // namespace humming

#endif // HUMMING_QUANT_REFERENCE_H
