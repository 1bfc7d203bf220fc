//===- SliceFuse.cpp - Shards of a matrix, and matrices joined ------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A shard that begins inside a block keeps the whole block's scale and records
// where in the block it begins. Worked example: K = 29568 in groups of 128 over
// four ranks gives 7392 columns each; rank 1 begins at column 7392 = 57 * 128 +
// 96, so its phase is 96, its columns 0..31 use its scale 0 (group 57) and it
// holds 59 of the 231 scale columns.
//
// In activation order the columns of a rank are scattered over all groups. The
// shard keeps its columns of every group side by side, padded to a multiple of
// `align`, and repeats the group's scale for each `align` columns.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/QuantizedWeights.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <numeric>

using namespace llvm;

namespace humming {

/// The part of a block tensor that rows [n0, n1) and columns [k0, k1) touch.
static std::vector<uint32_t> sliceBlocks(const QuantizedWeights &w,
                                         ArrayRef<uint32_t> values, int64_t n0,
                                         int64_t n1, int64_t k0, int64_t k1) {
  std::vector<uint32_t> out;
  if (values.empty())
    return out;
  int64_t columns = w.type.scaleColumns(w.k);
  for (int64_t r = w.type.scaleRow(n0); r <= w.type.scaleRow(n1 - 1); ++r)
    for (int64_t c = w.type.scaleColumn(k0); c <= w.type.scaleColumn(k1 - 1);
         ++c)
      out.push_back(values[r * columns + c]);
  return out;
}

/// Rows of a column-ordered matrix whose input feature is in [k0, k1).
static void sliceOrdered(const QuantizedWeights &w, QuantizedWeights &out,
                         int64_t n0, int64_t n1, int64_t k0, int64_t k1,
                         int64_t align) {
  int64_t groups = w.type.scaleColumns(w.k);
  std::vector<int64_t> source;  // column of w, or -1 for padding
  std::vector<int64_t> groupOf; // of each `align` columns
  int64_t column = 0;
  for (int64_t group = 0; group < groups; ++group) {
    for (; column < w.k && w.type.scaleColumn(column) == group; ++column)
      if (w.kOrder[column] >= k0 && w.kOrder[column] < k1)
        source.push_back(column);
    if (groups > 1)
      while (source.size() % align != 0)
        source.push_back(-1);
    while (int64_t(groupOf.size()) * align < int64_t(source.size()))
      groupOf.push_back(group);
  }
  out.k = int64_t(source.size());
  out.type.columnPhase = 0;
  if (groups > 1)
    out.type.granularity.columns = int32_t(align);
  for (int64_t from : source)
    out.kOrder.push_back(from < 0 ? -1 : int32_t(w.kOrder[from] - k0));
  for (int64_t row = n0; row < n1; ++row)
    for (int64_t from : source)
      out.codes.push_back(from < 0 ? 0 : w.codes[row * w.k + from]);
  auto gather = [&](ArrayRef<uint32_t> values) {
    std::vector<uint32_t> result;
    if (values.empty())
      return result;
    for (int64_t r = w.type.scaleRow(n0); r <= w.type.scaleRow(n1 - 1); ++r) {
      if (groups == 1)
        result.push_back(values[r]);
      else
        for (int64_t group : groupOf)
          result.push_back(values[r * groups + group]);
    }
    return result;
  };
  out.scales = gather(w.scales);
  out.zeroPoints = gather(w.zeroPoints);
}

Expected<QuantizedWeights> sliceWeights(const QuantizedWeights &w, int64_t n0,
                                        int64_t n1, int64_t k0, int64_t k1,
                                        int64_t align) {
  if (Error error = w.verify())
    return std::move(error);
  if (n0 < 0 || n1 > w.n || n0 >= n1 || k0 < 0 || k1 > w.inputs() || k0 >= k1)
    return createStringError(
        formatv("expected a slice within {0} rows and {1} input features, got "
                "rows {2} to {3}, features {4} to {5}",
                w.n, w.inputs(), n0, n1, k0, k1));
  if (align < 1)
    return createStringError(
        formatv("expected an alignment of at least 1, got {0}", align));
  QuantizedWeights out;
  out.type = w.type;
  out.n = n1 - n0;
  out.inputScale = w.inputScale;
  const Granularity &block = w.type.granularity;
  if (block.rows > 1)
    out.type.rowPhase = int32_t((n0 + w.type.rowPhase) % block.rows);
  if (w.kOrder.empty()) {
    out.k = k1 - k0;
    if (block.columns > 0)
      out.type.columnPhase = int32_t((k0 + w.type.columnPhase) % block.columns);
    out.codes.reserve(size_t(out.n * out.k));
    for (int64_t row = n0; row < n1; ++row)
      out.codes.insert(out.codes.end(), w.codes.begin() + row * w.k + k0,
                       w.codes.begin() + row * w.k + k1);
    out.scales = sliceBlocks(w, w.scales, n0, n1, k0, k1);
    out.zeroPoints = sliceBlocks(w, w.zeroPoints, n0, n1, k0, k1);
  } else {
    sliceOrdered(w, out, n0, n1, k0, k1, align);
  }
  if (w.type.globalScale == GlobalScaleKind::Channel)
    out.globalScales.assign(w.globalScales.begin() + n0,
                            w.globalScales.begin() + n1);
  else
    out.globalScales = w.globalScales;
  // A layer cut along K adds its bias once: the first rank keeps it.
  if (!w.bias.empty() && k0 == 0)
    out.bias.assign(w.bias.begin() + n0, w.bias.begin() + n1);
  if (Error error = out.verify())
    return std::move(error);
  return out;
}

/// The largest legal group that divides both; 0 if there is none.
static int32_t commonGroup(int32_t group, int32_t phase, int32_t least) {
  int32_t both = std::gcd(group, phase);
  for (int32_t size = both / 64 * 64; size > 0; size -= 64)
    if (both % size == 0 && size >= least)
      return size;
  for (int32_t size : {32, 16})
    if (both % size == 0 && size >= least)
      return size;
  return 0;
}

/// Groups of `size` columns, without a phase, in place of larger ones.
static void splitGroups(QuantizedWeights &w, int32_t size) {
  QuantType old = w.type;
  w.type.granularity.columns = size;
  w.type.columnPhase = 0;
  int64_t columns = w.type.scaleColumns(w.k);
  auto repeat = [&](std::vector<uint32_t> &values) {
    if (values.empty())
      return;
    int64_t oldColumns = old.scaleColumns(w.k);
    std::vector<uint32_t> result;
    for (int64_t row = 0; row < old.scaleRows(w.n); ++row)
      for (int64_t c = 0; c < columns; ++c)
        result.push_back(values[row * oldColumns + old.scaleColumn(c * size)]);
    values = std::move(result);
  };
  repeat(w.scales);
  repeat(w.zeroPoints);
}

/// Columns that multiply nothing, in front, so that the first group is whole,
/// and behind, to multiples of 64 or of the group.
static void padGroups(QuantizedWeights &w) {
  int64_t group = w.type.granularity.columns, front = w.type.columnPhase;
  int64_t unit = std::min<int64_t>(group, 64);
  int64_t k = (front + w.k + unit - 1) / unit * unit;
  std::vector<int32_t> order(size_t(k), -1);
  std::vector<uint8_t> codes(size_t(w.n * k));
  for (int64_t c = 0; c < w.k; ++c)
    order[size_t(front + c)] = w.kOrder.empty() ? int32_t(c) : w.kOrder[c];
  for (int64_t row = 0; row < w.n; ++row)
    std::copy_n(w.codes.begin() + row * w.k, w.k,
                codes.begin() + row * k + front);
  w.kOrder = std::move(order);
  w.codes = std::move(codes);
  w.k = k;
  w.type.columnPhase = 0;
}

Expected<QuantizedWeights> alignPhase(const QuantizedWeights &weights,
                                      int32_t leastGroup) {
  if (Error error = weights.verify())
    return std::move(error);
  QuantizedWeights out = weights;
  int32_t group = out.type.granularity.columns, phase = out.type.columnPhase;
  if (phase == 0 || (phase % 64 == 0 && group % 64 == 0))
    return out;
  if (int32_t size = commonGroup(group, phase, leastGroup))
    splitGroups(out, size);
  else
    padGroups(out);
  if (Error error = out.verify())
    return std::move(error);
  return out;
}

Expected<QuantizedWeights> fuseWeights(ArrayRef<QuantizedWeights> shards) {
  if (shards.empty())
    return createStringError("expected at least one layer to fuse, got none");
  if (shards.size() == 1)
    return shards.front();
  QuantizedWeights out;
  const QuantizedWeights &first = shards.front();
  out.type = first.type;
  out.type.rowPhase = 0;
  out.k = first.k;
  out.kOrder = first.kOrder;
  out.inputScale = first.inputScale;
  bool perRow = first.type.granularity.rows != 1;
  bool anyBias = false;
  for (const QuantizedWeights &shard : shards) {
    if (Error error = shard.verify())
      return std::move(error);
    QuantType type = shard.type;
    type.rowPhase = 0;
    if (type != out.type)
      return createStringError("expected layers of one type to fuse, got " +
                               out.type.str() + " and " + type.str());
    if (shard.k != out.k || shard.kOrder != out.kOrder)
      return createStringError(formatv(
          "expected layers of one K and column order to fuse, got K "
          "of {0} and {1}{2}",
          out.k, shard.k, shard.k == out.k ? " with different orders" : ""));
    anyBias |= !shard.bias.empty();
    // The largest static activation scale covers all shards' inputs.
    out.inputScale = std::max(out.inputScale, shard.inputScale);
  }
  int64_t columns = first.type.scaleColumns(first.k);
  if (perRow)
    out.type.granularity.rows = 1;
  if (out.type.globalScale == GlobalScaleKind::Tensor)
    out.type.globalScale = GlobalScaleKind::Channel;
  for (const QuantizedWeights &shard : shards) {
    out.n += shard.n;
    out.codes.insert(out.codes.end(), shard.codes.begin(), shard.codes.end());
    auto append = [&](std::vector<uint32_t> &into,
                      const std::vector<uint32_t> &from) {
      if (from.empty())
        return;
      if (!perRow) {
        into.insert(into.end(), from.begin(), from.end());
        return;
      }
      for (int64_t row = 0; row < shard.n; ++row) {
        auto begin = from.begin() + shard.type.scaleRow(row) * columns;
        into.insert(into.end(), begin, begin + columns);
      }
    };
    append(out.scales, shard.scales);
    append(out.zeroPoints, shard.zeroPoints);
    if (out.type.globalScale == GlobalScaleKind::Channel)
      for (int64_t row = 0; row < shard.n; ++row)
        out.globalScales.push_back(float(shard.globalScaleOf(row)));
    if (anyBias) {
      std::vector<float> bias = shard.bias;
      bias.resize(size_t(shard.n), 0);
      out.bias.insert(out.bias.end(), bias.begin(), bias.end());
    }
  }
  if (Error error = out.verify())
    return std::move(error);
  return out;
}

std::vector<WeightFinding> inspectWeights(const QuantizedWeights &w) {
  std::vector<WeightFinding> findings;
  auto note = [&](StringRef what, int64_t row, int64_t block) {
    auto it = find_if(findings,
                      [&](const WeightFinding &f) { return f.what == what; });
    if (it == findings.end()) {
      findings.push_back({what.str(), 1, row, block});
      return;
    }
    ++it->count;
  };
  int64_t columns = w.type.scaleColumns(w.k);
  for (int64_t i = 0; i < int64_t(w.scales.size()); ++i) {
    double scale = w.type.scale.decode(w.scales[i]);
    if (std::isnan(scale))
      note("NaN scale", i / columns, i % columns);
    else if (std::isinf(scale))
      note("infinite scale", i / columns, i % columns);
    else if (scale == 0)
      note("zero scale", i / columns, i % columns);
  }
  if (w.type.zeroPoint == ZeroPointKind::Float)
    for (int64_t i = 0; i < int64_t(w.zeroPoints.size()); ++i)
      if (!std::isfinite(w.type.scale.decode(w.zeroPoints[i])))
        note("non-finite zero point", i / columns, i % columns);
  for (size_t i = 0; i < w.globalScales.size(); ++i)
    if (!std::isfinite(w.globalScales[i]) || w.globalScales[i] == 0)
      note("zero or non-finite global scale", int64_t(i), 0);
  std::vector<double> values = codeValues(w.type);
  bool allFinite =
      all_of(values, [](double value) { return std::isfinite(value); });
  if (!allFinite)
    for (int64_t i = 0; i < int64_t(w.codes.size()); ++i)
      if (!std::isfinite(values[w.codes[i]]))
        note("NaN or infinite code", i / w.k, w.type.scaleColumn(i % w.k));
  for (size_t i = 0; i < w.bias.size(); ++i)
    if (!std::isfinite(w.bias[i]))
      note("non-finite bias", int64_t(i), 0);
  return findings;
}

} // namespace humming
