//===- ReadGptqAwq.cpp - GPTQ and AWQ layers ------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GPTQ packs along K: column n of qweight is a little-endian bit stream over
// k, 32 codes in `bits` words (so 3-bit codes cross word borders). qzeros packs
// along N in the same way. AWQ packs eight neighbouring n of one k into a word,
// in the order 0 2 4 6 1 3 5 7.
//
// Worked example, AWQ: the word 0x76543210 holds nibble i = i, so the codes of
// columns 0..7 are 0 4 1 5 2 6 3 7.
//
// Activation order: g_idx[k] is the group of column k, in any order. Columns
// are sorted by group (stably), which makes groups contiguous again; kOrder
// remembers which input feature each column multiplies.
//
//===----------------------------------------------------------------------===//

#include "Readers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>

using namespace llvm;

namespace humming {

static constexpr TensorDType kWords[] = {TensorDType::I32, TensorDType::U32};
static constexpr int64_t kRowBlock = 64;
static constexpr TensorDType kScales[] = {TensorDType::F16, TensorDType::BF16,
                                          TensorDType::F32};

Expected<GptqZeros> parseGptqZeros(StringRef text) {
  if (text == "v1" || text == "gptq")
    return GptqZeros::V1;
  if (text == "v2" || text == "gptq_v2")
    return GptqZeros::V2;
  return createStringError(
      "expected a GPTQ zero point convention: v1 or gptq (zero - 1 is stored), "
      "v2 or gptq_v2 (the zero itself is stored), got '" +
      text.take_front(64) + "'");
}

/// Whether qzeros words of packed codes are 32-code blocks of `bits` words.
static Error checkBits(const LayerReader &layer, unsigned bits) {
  if (bits == 2 || bits == 3 || bits == 4 || bits == 8)
    return Error::success();
  return layer.fail("expected GPTQ weights of 2, 3, 4 or 8 bits, got " +
                    Twine(bits));
}

Expected<GptqOptions> GptqOptions::fromConfig(const json::Object &config) {
  GptqOptions options;
  Expected<int64_t> bits = integerField(config, "bits", 4);
  if (!bits)
    return bits.takeError();
  if (*bits < 1 || *bits > 8)
    return createStringError("quantization_config: expected 'bits' of 2, 3, 4 "
                             "or 8, got " +
                             Twine(*bits));
  options.bits = unsigned(*bits);
  Expected<int64_t> group = integerField(config, "group_size", 0);
  if (!group)
    return group.takeError();
  options.groupSize = *group;
  Expected<bool> sym = boolField(config, "sym", false);
  if (!sym)
    return sym.takeError();
  options.symmetric = *sym;
  if (std::optional<StringRef> format = config.getString("checkpoint_format")) {
    Expected<GptqZeros> zeros = parseGptqZeros(*format);
    if (!zeros)
      return createStringError("quantization_config, checkpoint_format: " +
                               toString(zeros.takeError()));
    options.zeros = *zeros;
  }
  return options;
}

/// Code `index` of the bit stream in column `column` of a word matrix.
static uint32_t columnCode(const TensorView &words, int64_t columns,
                           int64_t column, int64_t index, unsigned bits) {
  int64_t bit = index * bits;
  int64_t word = bit / 32;
  unsigned shift = bit % 32;
  uint64_t window = wordAt(words, word * columns + column);
  if (shift + bits > 32)
    window |= uint64_t(wordAt(words, (word + 1) * columns + column)) << 32;
  return uint32_t(window >> shift) & ((1u << bits) - 1);
}

/// Turns g_idx into a column order, unless it already is in order. `groups`
/// scales, group size from `granularity`.
Error readGroupIndex(const LayerReader &layer, const TensorView &tensor,
                     int64_t groups, const Granularity &granularity,
                     std::vector<int32_t> &order) {
  int64_t k = tensor.shape[0];
  std::vector<uint32_t> group = rawElements(tensor);
  std::vector<int64_t> count(size_t(groups), 0);
  for (int64_t column = 0; column < k; ++column) {
    if (group[column] >= uint64_t(groups))
      return layer.fail("expected g_idx entries of 0 to " + Twine(groups - 1) +
                        ", got " + Twine(int32_t(group[column])));
    ++count[group[column]];
  }
  if (is_sorted(group) && all_of(seq<int64_t>(0, k), [&](int64_t column) {
        return granularity.columns == 0 ||
               column / granularity.columns == group[column];
      }))
    return Error::success();
  for (int64_t g = 0; g + 1 < groups; ++g)
    if (count[g] != granularity.columns)
      return layer.fail("expected " + Twine(granularity.columns) +
                        " columns in each group of g_idx, got " +
                        Twine(count[g]) + " in group " + Twine(g) +
                        "; split an activation-ordered layer after sorting "
                        "its columns, not before");
  order.resize(size_t(k));
  std::iota(order.begin(), order.end(), 0);
  sort(order, [&](int32_t a, int32_t b) {
    return group[a] != group[b] ? group[a] < group[b] : a < b;
  });
  return Error::success();
}

Expected<QuantizedWeights> readGptq(const Checkpoint &checkpoint,
                                    StringRef prefix,
                                    const GptqOptions &options) {
  LayerReader layer(checkpoint, prefix);
  unsigned bits = options.bits;
  if (Error error = checkBits(layer, bits))
    return std::move(error);
  Expected<const TensorView *> qweight = layer.get("qweight", kWords, 2);
  if (!qweight)
    return qweight.takeError();
  Expected<const TensorView *> scales = layer.get("scales", kScales, 2);
  if (!scales)
    return scales.takeError();

  QuantizedWeights w;
  int64_t words = (*qweight)->shape[0];
  w.n = (*qweight)->shape[1];
  if (words % bits != 0 && 32 % bits != 0)
    return layer.fail("expected qweight rows in multiples of " + Twine(bits) +
                      " for " + Twine(bits) + "-bit weights, got " +
                      (*qweight)->describe());
  w.k = words * 32 / bits;
  if (w.n < 1 || w.k < 1 || w.k > INT32_MAX)
    return layer.fail("expected 1 to 2^31 - 1 rows and columns, got " +
                      (*qweight)->describe());
  // Columns past a K that is no multiple of the block are padding.
  const TensorView *gIdx = layer.find("g_idx");
  if (gIdx) {
    if ((gIdx->dtype != TensorDType::I32 && gIdx->dtype != TensorDType::U32) ||
        gIdx->shape.size() != 1)
      return layer.fail("expected g_idx of I32 and one dimension, got " +
                        gIdx->describe());
    if (gIdx->shape[0] > w.k || w.k - gIdx->shape[0] >= 32)
      return layer.fail("expected g_idx of " + Twine(w.k) + " entries, got " +
                        Twine(gIdx->shape[0]));
    w.k = gIdx->shape[0];
  }
  int64_t groups = (*scales)->shape[0];
  if (Error error = layer.expectShape(**scales, {groups, w.n}))
    return std::move(error);
  Expected<Granularity> granularity =
      layer.groupGranularity(w.k, groups, options.groupSize);
  if (!granularity)
    return granularity.takeError();

  w.type.weight = NumberFormat::unsignedInt(bits);
  w.type.scale = cantFail(formatOfDType((*scales)->dtype));
  w.type.granularity = *granularity;
  w.scales = transpose(rawElements(**scales), groups, w.n);

  if (!options.symmetric) {
    Expected<const TensorView *> qzeros = layer.get("qzeros", kWords, 2);
    if (!qzeros)
      return qzeros.takeError();
    int64_t zeroWords = (w.n * bits + 31) / 32;
    if (Error error = layer.expectShape(**qzeros, {groups, zeroWords}))
      return std::move(error);
    if (options.zeros == GptqZeros::Unknown)
      return layer.fail(
          "expected to know how zero points are stored: v1 (zero - 1, the "
          "common case) or v2 (the zero itself); set \"checkpoint_format\" to "
          "\"gptq\" or \"gptq_v2\" in quantization_config, or choose one");
    w.type.zeroPoint = ZeroPointKind::Integer;
    w.zeroPoints.resize(size_t(w.n * groups));
    uint32_t add = options.zeros == GptqZeros::V1 ? 1 : 0;
    uint32_t mask = (1u << bits) - 1;
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t row = 0; row < w.n; ++row) {
        int64_t bit = row * bits;
        int64_t word = group * zeroWords + bit / 32;
        uint64_t window = wordAt(**qzeros, word);
        if (bit % 32 + bits > 32)
          window |= uint64_t(wordAt(**qzeros, word + 1)) << 32;
        w.zeroPoints[row * groups + group] =
            (uint32_t(window >> (bit % 32)) + add) & mask;
      }
  }

  if (gIdx)
    if (Error error =
            readGroupIndex(layer, *gIdx, groups, *granularity, w.kOrder))
      return std::move(error);

  w.codes.resize(size_t(w.n * w.k));
  // In blocks of rows, so that the transposed writes stay in the cache.
  for (int64_t block = 0; block < w.n; block += kRowBlock)
    for (int64_t column = 0; column < w.k; ++column) {
      int64_t source = w.kOrder.empty() ? column : w.kOrder[column];
      for (int64_t row = block; row < std::min(block + kRowBlock, w.n); ++row)
        w.codes[row * w.k + column] =
            uint8_t(columnCode(**qweight, w.n, row, source, bits));
    }
  if (Error error = layer.readBias(w))
    return std::move(error);
  if (Error error = w.verify())
    return layer.fail(toString(std::move(error)));
  return w;
}

Expected<AwqOptions> AwqOptions::fromConfig(const json::Object &config) {
  AwqOptions options;
  // AutoAWQ's own files spell the keys w_bit and q_group_size.
  Expected<int64_t> bits =
      integerField(config, config.get("w_bit") ? "w_bit" : "bits", 4);
  if (!bits)
    return bits.takeError();
  if (*bits != 4)
    return createStringError("quantization_config: expected AWQ 'bits' of 4, "
                             "got " +
                             Twine(*bits));
  Expected<int64_t> group = integerField(
      config, config.get("q_group_size") ? "q_group_size" : "group_size", 0);
  if (!group)
    return group.takeError();
  options.groupSize = *group;
  Expected<bool> zero = boolField(config, "zero_point", true);
  if (!zero)
    return zero.takeError();
  options.zeroPoint = *zero;
  return options;
}

/// Column i of eight is in this nibble of the word.
static constexpr unsigned kAwqNibble[8] = {0, 4, 1, 5, 2, 6, 3, 7};

Expected<QuantizedWeights> readAwq(const Checkpoint &checkpoint,
                                   StringRef prefix,
                                   const AwqOptions &options) {
  LayerReader layer(checkpoint, prefix);
  if (options.bits != 4)
    return layer.fail("expected AWQ weights of 4 bits, got " +
                      Twine(options.bits));
  Expected<const TensorView *> qweight = layer.get("qweight", kWords, 2);
  if (!qweight)
    return qweight.takeError();
  Expected<const TensorView *> scales = layer.get("scales", kScales, 2);
  if (!scales)
    return scales.takeError();
  QuantizedWeights w;
  int64_t words = (*qweight)->shape[1];
  w.k = (*qweight)->shape[0];
  w.n = words * 8;
  if (w.n < 1 || w.k < 1 || w.n > INT32_MAX)
    return layer.fail("expected 1 to 2^31 - 1 rows and columns, got " +
                      (*qweight)->describe());
  int64_t groups = (*scales)->shape[0];
  if (Error error = layer.expectShape(**scales, {groups, w.n}))
    return std::move(error);
  Expected<Granularity> granularity =
      layer.groupGranularity(w.k, groups, options.groupSize);
  if (!granularity)
    return granularity.takeError();
  w.type.weight = NumberFormat::unsignedInt(4);
  w.type.scale = cantFail(formatOfDType((*scales)->dtype));
  w.type.granularity = *granularity;
  w.scales = transpose(rawElements(**scales), groups, w.n);
  w.codes.resize(size_t(w.n * w.k));
  for (int64_t block = 0; block < words; block += kRowBlock / 8)
    for (int64_t column = 0; column < w.k; ++column)
      for (int64_t word = block; word < std::min(block + kRowBlock / 8, words);
           ++word) {
        uint32_t bits = wordAt(**qweight, column * words + word);
        for (unsigned i = 0; i < 8; ++i)
          w.codes[(word * 8 + i) * w.k + column] =
              (bits >> (4 * kAwqNibble[i])) & 15;
      }
  if (options.zeroPoint) {
    Expected<const TensorView *> qzeros = layer.get("qzeros", kWords, 2);
    if (!qzeros)
      return qzeros.takeError();
    if (Error error = layer.expectShape(**qzeros, {groups, words}))
      return std::move(error);
    w.type.zeroPoint = ZeroPointKind::Integer;
    w.zeroPoints.resize(size_t(w.n * groups));
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t row = 0; row < w.n; ++row)
        w.zeroPoints[row * groups + group] =
            (wordAt(**qzeros, group * words + row / 8) >>
             (4 * kAwqNibble[row % 8])) &
            15;
  }
  if (Error error = layer.readBias(w))
    return std::move(error);
  if (Error error = w.verify())
    return layer.fail(toString(std::move(error)));
  return w;
}

} // namespace humming
