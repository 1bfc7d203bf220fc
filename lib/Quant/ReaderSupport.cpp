//===- ReaderSupport.cpp - What all checkpoint readers share --------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReaderSupport.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"

using namespace llvm;

namespace humming {

Error LayerReader::fail(const Twine &message) const {
  return createStringError("layer '" + prefix + "': " + message);
}

const TensorView *LayerReader::find(StringRef name) const {
  return checkpoint.find(prefix.empty() ? name.str()
                                        : prefix + "." + name.str());
}

Expected<const TensorView *> LayerReader::get(StringRef name) const {
  if (const TensorView *tensor = find(name))
    return tensor;
  return fail("expected a tensor '" +
              (prefix.empty() ? name.str() : prefix + "." + name.str()) +
              "', the checkpoint has none");
}

Expected<const TensorView *> LayerReader::get(StringRef name,
                                              ArrayRef<TensorDType> dtypes,
                                              size_t rank) const {
  Expected<const TensorView *> tensor = get(name);
  if (!tensor)
    return tensor;
  if (!is_contained(dtypes, (*tensor)->dtype)) {
    std::string names = join(
        map_range(dtypes, [](TensorDType d) { return stringify(d).str(); }),
        " or ");
    return fail("expected tensor '" + name + "' of " + names + ", got " +
                (*tensor)->describe());
  }
  if ((*tensor)->shape.size() != rank)
    return fail("expected tensor '" + name + "' of " + Twine(rank) +
                " dimensions, got " + (*tensor)->describe());
  for (int64_t extent : (*tensor)->shape)
    if (extent > INT32_MAX)
      return fail("expected extents below 2^31 in tensor '" + name + "', got " +
                  (*tensor)->describe());
  return tensor;
}

Error LayerReader::expectShape(const TensorView &tensor,
                               ArrayRef<int64_t> shape) const {
  if (ArrayRef<int64_t>(tensor.shape) == shape)
    return Error::success();
  std::string expected = join(
      map_range(shape, [](int64_t extent) { return itostr(extent); }), "x");
  return fail("expected tensor '" + tensor.name + "' of shape " + expected +
              ", got " + tensor.describe());
}

Error LayerReader::readBias(QuantizedWeights &weights) const {
  const TensorView *tensor = find("bias");
  if (!tensor)
    return Error::success();
  if (Error error = expectShape(*tensor, {weights.n}))
    return error;
  Expected<NumberFormat> format = formatOfDType(tensor->dtype);
  if (!format || format->bits < 16) {
    consumeError(format.takeError());
    return fail("expected a bias of F16, BF16 or F32, got " +
                tensor->describe());
  }
  std::vector<double> values = decodeElements(*format, tensor->data);
  weights.bias.assign(values.begin(), values.end());
  return Error::success();
}

Expected<Granularity> LayerReader::groupGranularity(int64_t k, int64_t groups,
                                                    int64_t given) const {
  if (groups < 1)
    return fail("expected at least one group of scales, got none");
  if (given == -1 || given >= k) {
    if (groups != 1)
      return fail("expected one scale per row for a group size of " +
                  Twine(given) + ", got " + Twine(groups));
    return Granularity::perChannel();
  }
  if (given < -1)
    return fail("expected a group size of -1, 0 or more, got " + Twine(given));
  if (given > 0) {
    if ((k + given - 1) / given != groups)
      return fail("expected " + Twine((k + given - 1) / given) +
                  " groups of scales for " + Twine(k) +
                  " columns in groups of " + Twine(given) + ", got " +
                  Twine(groups));
    return Granularity::group(int32_t(given));
  }
  if (groups == 1)
    return Granularity::perChannel();
  if (k % groups != 0)
    return fail("can't tell the group size of " + Twine(k) + " columns from " +
                Twine(groups) + " scales; give it in quantization_config");
  return Granularity::group(int32_t(k / groups));
}

Expected<NumberFormat> formatOfDType(TensorDType dtype) {
  switch (dtype) {
  case TensorDType::F16:
    return NumberFormat::f16();
  case TensorDType::BF16:
    return NumberFormat::bf16();
  case TensorDType::F32:
    return NumberFormat::f32();
  case TensorDType::F8E4M3:
    return NumberFormat::smallFloat(4, 3);
  case TensorDType::F8E5M2:
    return NumberFormat::smallFloat(5, 2);
  case TensorDType::F8E8M0:
    return NumberFormat::e8m0();
  default:
    return createStringError("expected a tensor of floats of at most 32 bits, "
                             "got " +
                             stringify(dtype));
  }
}

std::vector<uint32_t> rawElements(const TensorView &tensor) {
  unsigned bytes = dtypeBits(tensor.dtype) / 8;
  std::vector<uint32_t> values(tensor.data.size() / bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint8_t *at = tensor.data.data() + i * bytes;
    values[i] = bytes == 1   ? *at
                : bytes == 2 ? support::endian::read16le(at)
                             : support::endian::read32le(at);
  }
  return values;
}

std::vector<uint32_t> transpose(ArrayRef<uint32_t> values, int64_t rows,
                                int64_t columns) {
  std::vector<uint32_t> out(values.size());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      out[column * rows + row] = values[row * columns + column];
  return out;
}

uint32_t wordAt(const TensorView &tensor, int64_t index) {
  return support::endian::read32le(tensor.data.data() + 4 * index);
}

Expected<int64_t> integerField(const json::Object &object, StringRef key,
                               int64_t fallback) {
  const json::Value *value = object.get(key);
  if (!value || value->kind() == json::Value::Null)
    return fallback;
  if (std::optional<int64_t> integer = value->getAsInteger())
    return *integer;
  return createStringError("quantization_config: expected an integer '" + key +
                           "'");
}

Expected<bool> boolField(const json::Object &object, StringRef key,
                         bool fallback) {
  const json::Value *value = object.get(key);
  if (!value || value->kind() == json::Value::Null)
    return fallback;
  if (std::optional<bool> boolean = value->getAsBoolean())
    return *boolean;
  return createStringError("quantization_config: expected true or false for '" +
                           key + "'");
}

} // namespace humming
