//===- QuantType.h - How a weight matrix is quantized -----------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_QUANTTYPE_H
#define HUMMING_QUANT_QUANTTYPE_H

#include "Humming/Quant/NumberFormat.h"
#include <optional>

namespace humming {

/// Which weights share one scale. A scale belongs to a block of `rows` output
/// features (N) by `columns` input features (K); 0 stands for the whole extent.
///
///   group(128)    {1, 128}   128 consecutive weights of a row
///   perChannel()  {1, 0}     a whole row (output channel)
///   perTensor()   {0, 0}     all weights
///   block(128,128){128, 128} a 2-D block
struct Granularity {
  int32_t rows = 1;
  int32_t columns = 0;

  static constexpr Granularity group(int32_t g) { return {1, g}; }
  static constexpr Granularity perChannel() { return {1, 0}; }
  static constexpr Granularity perTensor() { return {0, 0}; }
  static constexpr Granularity block(int32_t n, int32_t k) { return {n, k}; }

  bool isPerChannel() const { return rows == 1 && columns == 0; }
  bool isPerTensor() const { return rows == 0 && columns == 0; }
  bool isGroup() const { return rows == 1 && columns > 0; }
  bool operator==(const Granularity &o) const {
    return rows == o.rows && columns == o.columns;
  }

  /// Rows and columns of the scale tensor of an n x k weight matrix.
  int64_t scaleRows(int64_t n) const {
    return rows == 0 ? 1 : (n + rows - 1) / rows;
  }
  int64_t scaleColumns(int64_t k) const {
    return columns == 0 ? 1 : (k + columns - 1) / columns;
  }

  /// Command-line spelling: `128`, `0` (channel), `-1` (tensor), `128x128`.
  static llvm::Expected<Granularity> parse(llvm::StringRef text);
  std::string str() const;
};

/// Zero points: w = (q - z) * s.
enum class ZeroPointKind : uint8_t {
  None,    ///< symmetric: unsigned codes mean q - 2^(bits-1)
  Integer, ///< z is an integer of the weight's width, 0 .. 2^bits - 1
  Float,   ///< z is a float of the scale's type, in units of q (HQQ)
};
llvm::Expected<ZeroPointKind> parseZeroPointKind(llvm::StringRef text);
llvm::StringRef stringify(ZeroPointKind kind);

/// The quantization of one weight matrix.
struct QuantType {
  NumberFormat weight = NumberFormat::unsignedInt(4);
  NumberFormat scale = NumberFormat::f16();
  Granularity granularity = Granularity::group(128);
  ZeroPointKind zeroPoint = ZeroPointKind::None;

  bool operator==(const QuantType &o) const {
    return weight == o.weight && scale == o.scale &&
           granularity == o.granularity && zeroPoint == o.zeroPoint;
  }
};

} // namespace humming

#endif // HUMMING_QUANT_QUANTTYPE_H
