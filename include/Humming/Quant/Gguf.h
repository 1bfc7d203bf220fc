//===- Gguf.h - The GGUF container and its block formats ---------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_GGUF_H
#define HUMMING_QUANT_GGUF_H

#include "Humming/Quant/QuantizedWeights.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"

namespace humming {

/// One tensor of a GGUF file; `data` lives as long as the file. Extents are
/// outermost first (rows, columns), the reverse of the file's order.
struct GgufTensor {
  std::string name;
  uint32_t type = 0; ///< ggml's type number
  llvm::SmallVector<int64_t, 4> shape;
  llvm::ArrayRef<uint8_t> data;
};

/// ggml's name of a type number (`Q4_K`), or `type N`.
std::string ggufTypeName(uint32_t type);

/// A memory-mapped GGUF file, version 2 or 3, little endian. As hostile as any:
/// every violation of the format is an error.
class GgufFile {
public:
  static llvm::Expected<GgufFile> open(llvm::StringRef path);
  static llvm::Expected<GgufFile>
  parse(std::unique_ptr<llvm::MemoryBuffer> buffer);

  llvm::ArrayRef<GgufTensor> tensors() const { return views; }
  const GgufTensor *find(llvm::StringRef name) const;

private:
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  std::vector<GgufTensor> views;
  llvm::StringMap<size_t> index;
};

/// Whether readGguf understands a tensor type.
bool ggufTypeIsReadable(uint32_t type);

/// Reads a matrix of Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K
/// or MXFP4. Scales of K-quants and of the _1 types become f32 (a product of
/// f16 and a small integer, exact); their offsets become float zero points,
/// z = offset / scale, which rounds once (relative error 2^-24 of the offset).
/// Of a stack of matrices (experts), `expert` selects one. Error: another type,
/// an extent that is no multiple of the block.
llvm::Expected<QuantizedWeights>
readGguf(const GgufFile &file, llvm::StringRef name, int64_t expert = 0);

} // namespace humming

#endif // HUMMING_QUANT_GGUF_H
