//===- Safetensors.h - The safetensors container -----------------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file is: u64 header length (little endian), a JSON object, the data. The
// object maps each tensor's name to dtype, shape and data_offsets (begin and
// end within the data), and "__metadata__" to strings. Tensors lie in the data
// without holes or overlaps.
//
// The reader takes files from strangers: every violation of the above is an
// error, never a crash or an out-of-bounds access.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_SAFETENSORS_H
#define HUMMING_QUANT_SAFETENSORS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <string>
#include <vector>

namespace humming {

/// Element types of tensors in checkpoints.
enum class TensorDType : uint8_t {
  Bool,
  F4,     ///< e2m1, two per byte
  F6E2M3, ///< packed six-bit codes
  F6E3M2,
  U8,
  I8,
  F8E5M2,
  F8E4M3,
  F8E8M0,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  F64,
  I64,
  U64,
};

/// The safetensors spelling, e.g. `BF16`, `F8_E4M3`.
llvm::StringRef stringify(TensorDType dtype);
/// Bits of one element.
unsigned dtypeBits(TensorDType dtype);

/// One tensor of a container: its description and a view of its bytes, which
/// live as long as the container does.
struct TensorView {
  std::string name;
  TensorDType dtype = TensorDType::U8;
  llvm::SmallVector<int64_t, 4> shape;
  llvm::ArrayRef<uint8_t> data;

  int64_t elements() const {
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    return count;
  }
  /// `BF16[128x64]`, for messages.
  std::string describe() const;
};

/// A memory-mapped safetensors file.
class SafetensorsFile {
public:
  /// Opens and checks a file. Error: names the file, the tensor and what is
  /// wrong with it.
  static llvm::Expected<SafetensorsFile> open(llvm::StringRef path);
  /// The same on bytes in memory.
  static llvm::Expected<SafetensorsFile>
  parse(std::unique_ptr<llvm::MemoryBuffer> buffer);

  /// In the order of their data.
  llvm::ArrayRef<TensorView> tensors() const { return views; }
  /// Null if there is none of that name.
  const TensorView *find(llvm::StringRef name) const;
  const llvm::StringMap<std::string> &metadata() const { return meta; }

private:
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  std::vector<TensorView> views;
  llvm::StringMap<size_t> index;
  llvm::StringMap<std::string> meta;
};

/// Writes a safetensors file tensor by tensor, so that no more than one has to
/// be in memory. All tensors are declared first, since the header precedes the
/// data. The file grows under `path` + ".partial" and gets its name when it is
/// complete.
class SafetensorsWriter {
public:
  explicit SafetensorsWriter(llvm::StringRef path);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter &) = delete;
  SafetensorsWriter &operator=(const SafetensorsWriter &) = delete;

  /// Declares a tensor; before open(). Names are unique (asserted).
  void declare(llvm::StringRef name, TensorDType dtype,
               llvm::ArrayRef<int64_t> shape);
  void setMetadata(llvm::StringRef key, llvm::StringRef value);

  /// Writes the header. If a partial file with the very same header exists and
  /// `resume` is set, it is kept and `resumed` says so. Error: the file can't
  /// be written.
  llvm::Error open(bool resume, bool &resumed);
  /// Writes one tensor; its size must be as declared. Error: unknown name,
  /// wrong size, or the file can't be written.
  llvm::Error write(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes);
  /// Makes what was written durable (before a journal says that it is there).
  llvm::Error flush();
  /// Closes the file and gives it its name. All tensors must be written.
  llvm::Error finish();

  std::string partialPath() const { return path + ".partial"; }

private:
  struct Entry {
    TensorDType dtype;
    llvm::SmallVector<int64_t, 4> shape;
    uint64_t begin, end;
  };
  std::string header() const;
  llvm::Error writeAt(llvm::ArrayRef<uint8_t> bytes, uint64_t offset);
  llvm::Error fail(int errorNumber) const;

  std::string path;
  std::vector<std::string> order;
  llvm::StringMap<Entry> entries;
  std::vector<std::pair<std::string, std::string>> meta;
  uint64_t dataBytes = 0;
  uint64_t dataStart = 0;
  int fd = -1;
};

} // namespace humming

#endif // HUMMING_QUANT_SAFETENSORS_H
