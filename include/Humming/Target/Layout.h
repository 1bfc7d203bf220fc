//===- Layout.h - Packing and gathering kernels -----------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the kernels that move data do: `hquant.pack` of weights on the device
// and `hquant.gather` of activations. There is nothing to choose; the block is
// fixed.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TARGET_LAYOUT_H
#define HUMMING_TARGET_LAYOUT_H

#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace humming {

/// Plain codes [N,K], a byte each, to the packed layout (Humming/Quant/
/// Packing.h), bit for bit what packWeights makes.
struct PackProblem {
  unsigned activationBits = 16;
  unsigned weightBits = 4;
  int64_t n = 0; ///< 0: unknown
  int64_t k = 0;
  /// K and the row stride, in codes, are multiples of this: 1, 2 or 4.
  int32_t kDivisor = 4;

  static constexpr int32_t threads = 128; ///< a warp a unit of 16 x 64
  static constexpr int32_t blockN = 64;
  static constexpr int32_t blockK = 64;

  void deriveDivisors();
  std::string str() const; ///< `pack w4a16`
};

/// Activations [M,K] to [M,columns] by an index a column; -1 is zero.
struct GatherProblem {
  unsigned elementBits = 16; ///< 8 or 16
  int64_t m = 0;             ///< 0: unknown
  int64_t columns = 0;       ///< of the result
  /// Columns and the result's row stride are multiples of this, at most what 16
  /// bytes hold.
  int32_t divisor = 8;

  static constexpr int32_t threads = 128;
  /// Columns of a block.
  int32_t blockColumns() const { return threads * 128 / int32_t(elementBits); }

  void deriveDivisors();
  std::string str() const; ///< `gather 16`
};

/// Error: "expected ..., got ...".
llvm::Error checkPack(const PackProblem &problem);
llvm::Error checkGather(const GatherProblem &problem);

} // namespace humming

#endif // HUMMING_TARGET_LAYOUT_H
