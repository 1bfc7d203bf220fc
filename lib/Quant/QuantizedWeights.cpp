//===- QuantizedWeights.cpp - A quantized weight matrix in memory ---------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/QuantizedWeights.h"
#include "Humming/Quant/Float16.h"
#include "Humming/Quant/Packing.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include <cassert>
#include <cmath>

using namespace llvm;

namespace humming {

unsigned elementBytes(NumberFormat format) {
  return format.bits <= 8 ? 1 : format.bits / 8;
}

std::vector<double> decodeElements(NumberFormat format,
                                   ArrayRef<uint8_t> bytes) {
  unsigned size = elementBytes(format);
  assert(bytes.size() % size == 0);
  std::vector<double> values(bytes.size() / size);
  if (size == 1) {
    double table[256];
    for (unsigned code = 0; code < 256; ++code)
      table[code] = format.decode(code);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = table[bytes[i]];
  } else if (size == 2) {
    bool isF16 = format.isF16();
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t code = support::endian::read16le(bytes.data() + 2 * i);
      values[i] = isF16 ? f16ToFloat(code) : bf16ToFloat(code);
    }
  } else {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] =
          floatFromBits(support::endian::read32le(bytes.data() + 4 * i));
  }
  return values;
}

std::vector<uint8_t> codesToBytes(NumberFormat format,
                                  ArrayRef<uint32_t> codes) {
  unsigned size = elementBytes(format);
  std::vector<uint8_t> bytes(codes.size() * size);
  for (size_t i = 0; i < codes.size(); ++i)
    for (unsigned b = 0; b < size; ++b)
      bytes[i * size + b] = uint8_t(codes[i] >> (8 * b));
  return bytes;
}

std::vector<double> codeValues(const QuantType &type) {
  std::vector<double> values(size_t(1) << type.weight.bits);
  for (size_t code = 0; code < values.size(); ++code) {
    if (type.table)
      values[code] = type.table->values[code];
    else
      values[code] = type.weight.decode(uint32_t(code));
    if (!type.table && type.weight.kind == NumberFormat::Kind::Unsigned &&
        type.zeroPoint == ZeroPointKind::None)
      values[code] -= double(1u << (type.weight.bits - 1));
  }
  return values;
}

Error QuantizedWeights::verify() const {
  if (Error error = type.verify())
    return error;
  auto size = [&](StringRef what, uint64_t got, int64_t expected) -> Error {
    if (got == uint64_t(expected))
      return Error::success();
    return createStringError(
        formatv("quantized weights {0} x {1} ({2}): expected {3} {4}, got {5}",
                n, k, type.str(), expected, what, got));
  };
  if (n < 0 || k < 0 || n > INT32_MAX || k > INT32_MAX)
    return createStringError(formatv(
        "expected a weight shape of 0 to 2^31 - 1 a side, got {0} x {1}", n,
        k));
  if (Error error = size("codes", codes.size(), n * k))
    return error;
  int64_t blocks = type.scaleRows(n) * type.scaleColumns(k);
  if (Error error = size("scales", scales.size(), blocks))
    return error;
  if (Error error = size("zero points", zeroPoints.size(),
                         type.zeroPoint == ZeroPointKind::None ? 0 : blocks))
    return error;
  int64_t globals = 0;
  if (type.globalScale == GlobalScaleKind::Tensor)
    globals = 1;
  else if (type.globalScale == GlobalScaleKind::Channel)
    globals = n;
  if (Error error = size("global scales", globalScales.size(), globals))
    return error;
  if (!bias.empty())
    if (Error error = size("bias values", bias.size(), n))
      return error;
  if (type.weight.bits < 8) {
    uint8_t seen = 0;
    for (uint8_t code : codes)
      seen |= code;
    if (seen >> type.weight.bits)
      return createStringError(
          formatv("expected codes of {0} bits, got one that has more",
                  type.weight.bits));
  }
  if (type.zeroPoint == ZeroPointKind::Integer)
    for (uint32_t zero : zeroPoints)
      if (zero >> type.weight.bits)
        return createStringError(
            formatv("expected integer zero points of 0 to {0}, got {1}",
                    (1 << type.weight.bits) - 1, zero));
  if (!kOrder.empty()) {
    if (Error error = size("column order entries", kOrder.size(), k))
      return error;
    int64_t features = inputs();
    std::vector<bool> seen(size_t(features), false);
    for (int32_t column : kOrder) {
      if (column == -1)
        continue;
      if (column < 0 || column >= features || seen[column])
        return createStringError(
            formatv("expected a column order that is a permutation of 0 to "
                    "{0} (and -1), got {1}{2}",
                    features - 1, column,
                    column < 0 || column >= features ? "" : " twice"));
      seen[column] = true;
    }
  }
  return Error::success();
}

int64_t QuantizedWeights::inputs() const {
  if (kOrder.empty())
    return k;
  int64_t count = 0;
  for (int32_t column : kOrder)
    count += column != -1;
  return count;
}

double QuantizedWeights::scaleOf(int64_t row, int64_t column) const {
  return type.scale.decode(scales[type.scaleRow(row) * type.scaleColumns(k) +
                                  type.scaleColumn(column)]);
}

double QuantizedWeights::zeroPointOf(int64_t row, int64_t column) const {
  if (type.zeroPoint == ZeroPointKind::None)
    return !type.table && type.weight.kind == NumberFormat::Kind::Unsigned
               ? double(1u << (type.weight.bits - 1))
               : 0.0;
  uint32_t zero = zeroPoints[type.scaleRow(row) * type.scaleColumns(k) +
                             type.scaleColumn(column)];
  return type.zeroPoint == ZeroPointKind::Integer ? double(zero)
                                                  : type.scale.decode(zero);
}

double QuantizedWeights::globalScaleOf(int64_t row) const {
  switch (type.globalScale) {
  case GlobalScaleKind::None:
    return 1;
  case GlobalScaleKind::Tensor:
    return globalScales[0];
  case GlobalScaleKind::Channel:
    return globalScales[row];
  }
  return 1;
}

int64_t QuantizedWeights::packedBytes(unsigned activationBits) const {
  return packedWeightBytes(n, k, activationBits, type.weight.bits);
}

Expected<std::vector<uint8_t>>
QuantizedWeights::packCodes(unsigned activationBits, unsigned threads) const {
  if (Error error = checkPackedWidths(activationBits, type.weight.bits))
    return std::move(error);
  std::vector<uint8_t> out(packedBytes(activationBits));
  if (Error error = packWeights(codes, n, k, k, activationBits,
                                type.weight.bits, out, threads))
    return std::move(error);
  return out;
}

/// Repeats block values to one row per output feature and packs them.
static Expected<std::vector<uint8_t>> packBlockValues(const QuantizedWeights &w,
                                                      ArrayRef<uint32_t> values,
                                                      unsigned bytes) {
  int64_t groups = w.type.scaleColumns(w.k);
  std::vector<uint8_t> rows(size_t(w.n * groups * bytes));
  for (int64_t row = 0; row < w.n; ++row) {
    const uint32_t *source = values.data() + w.type.scaleRow(row) * groups;
    for (int64_t group = 0; group < groups; ++group)
      for (unsigned b = 0; b < bytes; ++b)
        rows[(row * groups + group) * bytes + b] =
            uint8_t(source[group] >> (8 * b));
  }
  std::vector<uint8_t> out(packedScaleElements(w.n, groups) * bytes);
  if (Error error = humming::packScales(rows, w.n, groups, bytes, out))
    return std::move(error);
  return out;
}

Expected<std::vector<uint8_t>> QuantizedWeights::packScales() const {
  return packBlockValues(*this, scales, elementBytes(type.scale));
}

Expected<std::vector<uint8_t>> QuantizedWeights::packZeroPoints() const {
  if (type.zeroPoint == ZeroPointKind::None)
    return std::vector<uint8_t>();
  return packBlockValues(
      *this, zeroPoints,
      type.zeroPoint == ZeroPointKind::Integer ? 1 : elementBytes(type.scale));
}

QuantizedWeights randomWeights(const QuantType &type, int64_t n, int64_t k,
                               uint64_t seed) {
  Random random(seed);
  QuantizedWeights w;
  w.type = type;
  w.n = n;
  w.k = k;
  std::vector<double> values = codeValues(type);
  std::vector<uint8_t> finite;
  double largest = 0;
  for (size_t code = 0; code < values.size(); ++code)
    if (std::isfinite(values[code])) {
      finite.push_back(uint8_t(code));
      largest = std::max(largest, std::fabs(values[code]));
    }
  w.codes.resize(size_t(n * k));
  for (uint8_t &code : w.codes)
    code = finite[random.below(finite.size())];
  if (w.codes.size() >= finite.size())
    for (size_t i = 0; i < finite.size(); ++i) // every code at least once
      w.codes[i * (w.codes.size() / finite.size())] = finite[i];

  // Scales of about 1/(largest code) keep outputs of order sqrt(k); the factor
  // in [1/2, 2) differs from block to block. e8m0 has powers of two only, and
  // narrow formats few values, so neighbours may repeat there.
  int64_t blocks = type.scaleRows(n) * type.scaleColumns(k);
  double base = largest > 0 ? 1 / largest : 1;
  if (type.scale.bits <= 8 && !type.scale.isE8M0())
    base = std::max(base, 8 * type.scale.decode(1)); // away from underflow
  w.scales.resize(size_t(blocks));
  int64_t columns = type.scaleColumns(k);
  for (int64_t i = 0; i < blocks; ++i) {
    uint64_t octaves = type.scale.isE8M0() ? 6 : 2;
    for (int attempt = 0; attempt < 16; ++attempt) {
      double factor = std::ldexp(1 + random.unit(),
                                 int(random.below(octaves)) - int(octaves) / 2);
      w.scales[i] = type.scale.encode(base * factor);
      bool repeats = (i % columns > 0 && w.scales[i] == w.scales[i - 1]) ||
                     (i >= columns && w.scales[i] == w.scales[i - columns]);
      if (!repeats)
        break;
    }
  }
  if (type.zeroPoint == ZeroPointKind::Integer) {
    w.zeroPoints.resize(size_t(blocks));
    uint64_t range = uint64_t(1) << type.weight.bits;
    for (size_t i = 0; i < w.zeroPoints.size(); ++i)
      w.zeroPoints[i] = i == 0   ? 0
                        : i == 1 ? uint32_t(range - 1)
                                 : uint32_t(random.below(range));
  } else if (type.zeroPoint == ZeroPointKind::Float) {
    w.zeroPoints.resize(size_t(blocks));
    for (uint32_t &zero : w.zeroPoints)
      zero = type.scale.encode(random.unit() * double(values.size() - 1));
  }
  if (type.globalScale != GlobalScaleKind::None) {
    w.globalScales.resize(
        type.globalScale == GlobalScaleKind::Tensor ? 1 : size_t(n));
    for (float &scale : w.globalScales)
      scale = float(0.5 + random.unit());
  }
  return w;
}

std::vector<uint32_t> randomActivations(NumberFormat format, int64_t m,
                                        int64_t k, uint64_t seed) {
  Random random(seed);
  std::vector<uint32_t> codes(size_t(m * k));
  // Integers spread over most of their range, floats stay near unit size.
  double scale = format.isInteger() ? format.maxFinite() / 4 : 1;
  for (uint32_t &code : codes) {
    double value = random.normal() * scale;
    if (format.isF16())
      code = doubleToF16(value);
    else if (format.isBF16())
      code = doubleToBF16(value);
    else
      code = format.encode(value);
  }
  return codes;
}

} // namespace humming
