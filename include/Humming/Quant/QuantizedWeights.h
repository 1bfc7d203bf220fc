//===- QuantizedWeights.h - A quantized weight matrix in memory --*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What every checkpoint reader produces and what packing and the reference
// arithmetic consume: codes, scales and zero points in plain row-major order,
// bit for bit as the checkpoint holds them.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_QUANTIZEDWEIGHTS_H
#define HUMMING_QUANT_QUANTIZEDWEIGHTS_H

#include "Humming/Quant/QuantType.h"
#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace humming {

/// A weight matrix of n output features (rows) by k input features (columns).
struct QuantizedWeights {
  QuantType type;
  int64_t n = 0;
  int64_t k = 0;
  /// [n, k], one code per byte in the low type.weight.bits bits.
  std::vector<uint8_t> codes;
  /// [type.scaleRows(n), type.scaleColumns(k)], raw codes of type.scale.
  std::vector<uint32_t> scales;
  /// Shape of `scales`; integers (ZeroPointKind::Integer) or raw codes of
  /// type.scale (ZeroPointKind::Float); empty for ZeroPointKind::None.
  std::vector<uint32_t> zeroPoints;
  /// Empty, one value, or n values, as type.globalScale says.
  std::vector<float> globalScales;
  /// Empty or [n].
  std::vector<float> bias;
  /// Empty, or one entry per column: column j of `codes` multiplies input
  /// feature kOrder[j], or nothing where that is -1 (a padding column: the
  /// gathered activation is 0). Every input feature occurs once. Activation-
  /// ordered GPTQ is stored this way, so that the columns of a group are
  /// adjacent; activations are gathered by kOrder.
  std::vector<int32_t> kOrder;
  /// The static scale of the layer's activations; 0 where there is none.
  float inputScale = 0;

  /// Input features, i.e. columns of the activations: k, less the padding
  /// columns of kOrder.
  int64_t inputs() const;

  /// Checks the sizes of all members against type, n and k, zero points against
  /// their range and kOrder for being a permutation. Error: names the member.
  llvm::Error verify() const;

  /// The exact scale (without the global one) and zero point of one weight.
  double scaleOf(int64_t row, int64_t column) const;
  double zeroPointOf(int64_t row, int64_t column) const;
  double globalScaleOf(int64_t row) const;

  /// Bytes in the packed layout for `activationBits` wide activations.
  int64_t packedBytes(unsigned activationBits) const;
  /// Packs `codes` (packWeights), in kOrder where there is one.
  llvm::Expected<std::vector<uint8_t>> packCodes(unsigned activationBits,
                                                 unsigned threads = 0) const;
  /// Packs the scales, repeated to one row per output feature: elements of
  /// type.scale, [scaleColumns(k)][ceil(n/64)][64].
  llvm::Expected<std::vector<uint8_t>> packScales() const;
  /// Packs the zero points: bytes (Integer) or elements of type.scale (Float).
  /// Empty where there are none.
  llvm::Expected<std::vector<uint8_t>> packZeroPoints() const;
  /// The sum of each row of the dequantized weights, which asymmetric
  /// activations need; summed in f64, rounded once.
  std::vector<float> rowSums() const;
};

/// Rows [n0, n1) and input features [k0, k1) of a matrix, as a tensor-parallel
/// rank holds them. Cuts may go through groups and blocks (the phases of the
/// type say where a shard begins). With a kOrder the shard keeps its columns of
/// every group, each group padded to a multiple of `align` columns. Error: a
/// range out of bounds or empty.
llvm::Expected<QuantizedWeights> sliceWeights(const QuantizedWeights &weights,
                                              int64_t n0, int64_t n1,
                                              int64_t k0, int64_t k1,
                                              int64_t align = 32);

/// The same matrix in a form that kernels take (rule P6 of docs/HQuant.md): a
/// shard that begins a multiple of 64 columns into a group of a multiple of 64
/// stays as it is. Others get the largest group of 16, 32 or a multiple of 64
/// columns, at least `leastGroup`, that divides group and phase, with the
/// scales repeated; where there is none, padding columns (kOrder of -1) in
/// place of what the group has lost, so that activations are gathered.
/// leastGroup of 256 / A for activations of A bits keeps groups whole steps of
/// the MMA, of which shorter ones cost parts. Error: weights that do not
/// verify.
llvm::Expected<QuantizedWeights> alignPhase(const QuantizedWeights &weights,
                                            int32_t leastGroup = 16);

/// Joins layers that share their input (q/k/v, gate/up) along N. Scales may
/// differ from shard to shard: per-tensor scales become per-channel ones, a
/// tensor's global scale one per row, blocks that end inside a shard groups.
/// Error: types, K, or column orders that can't be joined.
llvm::Expected<QuantizedWeights>
fuseWeights(llvm::ArrayRef<QuantizedWeights> shards);

/// What looks wrong in a matrix, for reports.
struct WeightFinding {
  std::string what; ///< `NaN scale`, `zero scale`, `infinite scale`, `NaN code`
  int64_t count = 0;
  int64_t row = 0, block = 0; ///< of the first
};
std::vector<WeightFinding> inspectWeights(const QuantizedWeights &weights);

/// The values of all codes of `type` (format or table), before zero point and
/// scale, with the implied zero point 2^(bits-1) of symmetric unsigned codes
/// subtracted: 2^bits entries.
std::vector<double> codeValues(const QuantType &type);

/// Random weights of a type. Codes cover the full range, scales differ in every
/// block, zero points cover their whole range including 0 and the largest
/// value. NaN and infinity codes are left out. Same arguments, same weights, on
/// every machine. `type` must verify.
QuantizedWeights randomWeights(const QuantType &type, int64_t n, int64_t k,
                               uint64_t seed);

/// The SplitMix64 generator behind randomWeights: small, fast and the same
/// everywhere (std distributions are not).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, bound), bound > 0.
  uint64_t below(uint64_t bound) {
    return uint64_t((__uint128_t(next()) * bound) >> 64);
  }
  /// Uniform in [0, 1).
  double unit() { return double(next() >> 11) * 0x1p-53; }
  /// Symmetric about 0, close to a unit normal, within +-6: a sum of twelve
  /// uniforms, so the result needs no libm and is the same everywhere.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i)
      sum += unit();
    return sum;
  }

private:
  uint64_t state;
};

/// Random activations of a format, row-major [m, k], as raw codes: near-normal
/// values rounded to the format, signs independent of each other.
std::vector<uint32_t> randomActivations(NumberFormat format, int64_t m,
                                        int64_t k, uint64_t seed);

/// Bytes of one element of a format in memory (codes below 8 bits: 1).
unsigned elementBytes(NumberFormat format);
/// Decodes `count` elements of a format from memory (1, 2 or 4 bytes each,
/// little endian).
std::vector<double> decodeElements(NumberFormat format,
                                   llvm::ArrayRef<uint8_t> bytes);
/// Raw codes to memory bytes, little endian, elementBytes(format) each.
std::vector<uint8_t> codesToBytes(NumberFormat format,
                                  llvm::ArrayRef<uint32_t> codes);

} // namespace humming

#endif // HUMMING_QUANT_QUANTIZEDWEIGHTS_H
