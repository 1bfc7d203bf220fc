//===- ReaderSupport.h - What all checkpoint readers share -------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_QUANT_READERSUPPORT_H
#define HUMMING_LIB_QUANT_READERSUPPORT_H

#include "Humming/Quant/Checkpoint.h"

namespace humming {

/// The tensors of one layer, and errors that name it.
class LayerReader {
public:
  LayerReader(const Checkpoint &checkpoint, llvm::StringRef prefix)
      : checkpoint(checkpoint), prefix(prefix.str()) {}

  llvm::Error fail(const llvm::Twine &message) const;

  /// PREFIX.name, or null.
  const TensorView *find(llvm::StringRef name) const;
  /// PREFIX.name, or an error that says it is missing.
  llvm::Expected<const TensorView *> get(llvm::StringRef name) const;
  /// The same, with one of the given dtypes and `rank` dimensions.
  llvm::Expected<const TensorView *> get(llvm::StringRef name,
                                         llvm::ArrayRef<TensorDType> dtypes,
                                         size_t rank) const;
  /// Checks a shape. Error: `expected tensor X of AxB, got CxD`.
  llvm::Error expectShape(const TensorView &tensor,
                          llvm::ArrayRef<int64_t> shape) const;

  /// Reads PREFIX.bias into `weights` if there is one: [n], f16, bf16 or f32.
  llvm::Error readBias(QuantizedWeights &weights) const;

  /// The group size of a K that G scales cover. `given` is the configuration's
  /// (0: none, -1: the whole row). A row of one group becomes channel
  /// granularity. Error: they disagree.
  llvm::Expected<Granularity> groupGranularity(int64_t k, int64_t groups,
                                               int64_t given) const;

private:
  const Checkpoint &checkpoint;
  std::string prefix;
};

/// The number format of a float tensor dtype. Error: it is none.
llvm::Expected<NumberFormat> formatOfDType(TensorDType dtype);

/// Raw element bits of a tensor of 1, 2 or 4 byte elements, little endian.
std::vector<uint32_t> rawElements(const TensorView &tensor);
/// Transposes row-major [rows, columns].
std::vector<uint32_t> transpose(llvm::ArrayRef<uint32_t> values, int64_t rows,
                                int64_t columns);
/// Little-endian 32-bit word `index` of a tensor.
uint32_t wordAt(const TensorView &tensor, int64_t index);

/// Reads a member of a JSON object that must have the given kind if present.
llvm::Expected<int64_t> integerField(const llvm::json::Object &object,
                                     llvm::StringRef key, int64_t fallback);
llvm::Expected<bool> boolField(const llvm::json::Object &object,
                               llvm::StringRef key, bool fallback);

} // namespace humming

#endif // HUMMING_LIB_QUANT_READERSUPPORT_H
