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
#include <array>
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

/// A second scale level, f32, multiplied onto the (block) scales.
enum class GlobalScaleKind : uint8_t {
  None,
  Tensor,  ///< one value
  Channel, ///< one value per output channel (row)
};

/// Codes of at most 4 bits that index a table: w = table[q] * s. Entries past
/// 2^bits are 0.
struct CodeTable {
  std::array<float, 16> values{};

  bool operator==(const CodeTable &o) const { return values == o.values; }
  /// NormalFloat4 of QLoRA (arXiv 2305.14314, appendix E).
  static CodeTable nf4();
  /// The 4-bit float table of bitsandbytes, scaled to a maximum of 1.
  static CodeTable fp4();
};

/// The quantization of one weight matrix:
///
///   w[r][c] = (value(q[r][c]) - z) * s * globalScale,
///
/// where value() is the number format or the code table, s and z belong to
/// block ((r + rowPhase) / rows, (c + columnPhase) / columns), and symmetric
/// unsigned codes have z = 2^(bits-1). Code tables have no zero points.
struct QuantType {
  NumberFormat weight = NumberFormat::unsignedInt(4);
  NumberFormat scale = NumberFormat::f16();
  Granularity granularity = Granularity::group(128);
  ZeroPointKind zeroPoint = ZeroPointKind::None;
  GlobalScaleKind globalScale = GlobalScaleKind::None;
  std::optional<CodeTable> table;
  /// Where a shard begins inside its first block: the first row (column) is
  /// this many rows (columns) past the start of block 0. Less than the block's
  /// extent; 0 unless a matrix was cut within a block.
  int32_t rowPhase = 0;
  int32_t columnPhase = 0;

  bool operator==(const QuantType &o) const {
    return weight == o.weight && scale == o.scale &&
           granularity == o.granularity && zeroPoint == o.zeroPoint &&
           globalScale == o.globalScale && table == o.table &&
           rowPhase == o.rowPhase && columnPhase == o.columnPhase;
  }

  /// Rows and columns of the scale tensor of an n x k matrix.
  int64_t scaleRows(int64_t n) const {
    return granularity.scaleRows(n == 0 ? 0 : n + rowPhase);
  }
  int64_t scaleColumns(int64_t k) const {
    return granularity.scaleColumns(k == 0 ? 0 : k + columnPhase);
  }
  /// The scale row (column) of a weight row (column).
  int64_t scaleRow(int64_t row) const {
    return granularity.rows == 0 ? 0 : (row + rowPhase) / granularity.rows;
  }
  int64_t scaleColumn(int64_t column) const {
    return granularity.columns == 0
               ? 0
               : (column + columnPhase) / granularity.columns;
  }
  bool operator!=(const QuantType &o) const { return !(*this == o); }

  /// Checks the parts against each other (a zero point needs unsigned codes, a
  /// scale is a float, ...). Error: `quantization T: expected ..., got ...`.
  llvm::Error verify() const;
  /// Short name for messages and tables, e.g. `u4/g128/f16/zp-int`.
  std::string str() const;
};

} // namespace humming

#endif // HUMMING_QUANT_QUANTTYPE_H
