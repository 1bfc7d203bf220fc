//===- Gguf.cpp - The GGUF container --------------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file is: magic "GGUF", u32 version, u64 tensor count, u64 key count, the
// keys (string, u32 type, value; arrays carry a type and a u64 count), the
// tensors (string, u32 rank, u64 extents innermost first, u32 type, u64
// offset), padding to general.alignment (32 by default), the data.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/Gguf.h"
#include "GgufTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace humming {

const GgufType *findGgufType(uint32_t number) {
  static const GgufType types[] = {
      {0, "F32", 1, 4},       {1, "F16", 1, 2},       {2, "Q4_0", 32, 18},
      {3, "Q4_1", 32, 20},    {6, "Q5_0", 32, 22},    {7, "Q5_1", 32, 24},
      {8, "Q8_0", 32, 34},    {9, "Q8_1", 32, 40},    {10, "Q2_K", 256, 84},
      {11, "Q3_K", 256, 110}, {12, "Q4_K", 256, 144}, {13, "Q5_K", 256, 176},
      {14, "Q6_K", 256, 210}, {15, "Q8_K", 256, 292}, {24, "I8", 1, 1},
      {25, "I16", 1, 2},      {26, "I32", 1, 4},      {27, "I64", 1, 8},
      {28, "F64", 1, 8},      {30, "BF16", 1, 2},     {39, "MXFP4", 32, 17},
  };
  for (const GgufType &type : types)
    if (type.number == number)
      return &type;
  return nullptr;
}

std::string ggufTypeName(uint32_t type) {
  if (const GgufType *known = findGgufType(type))
    return known->name.str();
  return "type " + std::to_string(type);
}

namespace {
/// Reads little-endian values and remembers running out of bytes.
class Cursor {
public:
  explicit Cursor(StringRef bytes) : bytes(bytes) {}
  bool failed() const { return overrun; }
  uint64_t position() const { return at; }

  uint64_t integer(unsigned size) {
    if (overrun || bytes.size() - at < size) {
      overrun = true;
      return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i)
      value |= uint64_t(uint8_t(bytes[at + i])) << (8 * i);
    at += size;
    return value;
  }
  StringRef string() {
    uint64_t size = integer(8);
    if (overrun || bytes.size() - at < size) {
      overrun = true;
      return "";
    }
    StringRef text = bytes.substr(at, size);
    at += size;
    return text;
  }
  void skip(uint64_t size) {
    if (overrun || bytes.size() - at < size)
      overrun = true;
    else
      at += size;
  }

private:
  StringRef bytes;
  uint64_t at = 0;
  bool overrun = false;
};
} // namespace

/// Bytes of a key's value type; 0 for strings and arrays.
static unsigned valueSize(uint64_t type) {
  static const unsigned sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < 13 ? sizes[type] : 0;
}
static constexpr uint64_t kString = 8, kArray = 9;

Expected<GgufFile> GgufFile::parse(std::unique_ptr<MemoryBuffer> buffer) {
  StringRef path = buffer->getBufferIdentifier();
  auto fail = [&](const Twine &message) -> Error {
    return createStringError("'" + path + "': " + message);
  };
  StringRef bytes = buffer->getBuffer();
  Cursor cursor(bytes);
  if (!bytes.starts_with("GGUF"))
    return fail("expected a GGUF file, its first bytes are not 'GGUF'");
  cursor.skip(4);
  uint64_t version = cursor.integer(4);
  if (version != 2 && version != 3)
    return fail("expected GGUF version 2 or 3 (little endian), got " +
                Twine(version));
  uint64_t tensorCount = cursor.integer(8), keyCount = cursor.integer(8);
  uint64_t alignment = 32;
  for (uint64_t i = 0; i < keyCount && !cursor.failed(); ++i) {
    StringRef key = cursor.string();
    uint64_t type = cursor.integer(4);
    uint64_t count = 1;
    if (type == kArray) {
      type = cursor.integer(4);
      count = cursor.integer(8);
    }
    if (type == kString) {
      for (uint64_t j = 0; j < count && !cursor.failed(); ++j)
        cursor.string();
    } else if (unsigned size = valueSize(type)) {
      if (key == "general.alignment" && type == 4) {
        alignment = cursor.integer(4);
        if (!isPowerOf2_64(alignment) || alignment > (1 << 20))
          return fail("expected general.alignment to be a power of two of at "
                      "most 2^20, got " +
                      Twine(alignment));
        continue;
      }
      bool overflow = false;
      uint64_t total = SaturatingMultiply<uint64_t>(count, size, &overflow);
      cursor.skip(overflow ? ~uint64_t(0) : total);
    } else {
      return fail("key '" + key.take_front(80) +
                  "': expected a value of type 0 to 12, nested arrays "
                  "excluded, got type " +
                  Twine(type));
    }
  }
  GgufFile file;
  std::vector<uint64_t> offsets;
  for (uint64_t i = 0; i < tensorCount && !cursor.failed(); ++i) {
    GgufTensor tensor;
    tensor.name = cursor.string().str();
    uint64_t rank = cursor.integer(4);
    if (cursor.failed())
      break;
    std::string what =
        "tensor '" + StringRef(tensor.name).take_front(80).str() + "': ";
    if (rank > 8)
      return fail(what + "expected at most 8 dimensions, got " + Twine(rank));
    for (uint64_t d = 0; d < rank; ++d) {
      uint64_t extent = cursor.integer(8);
      if (extent > uint64_t(INT64_MAX))
        return fail(what + "an extent exceeds 2^63");
      tensor.shape.insert(tensor.shape.begin(), int64_t(extent));
    }
    tensor.type = uint32_t(cursor.integer(4));
    offsets.push_back(cursor.integer(8));
    if (!file.index.try_emplace(tensor.name, file.views.size()).second)
      return fail(what + "is listed twice");
    file.views.push_back(std::move(tensor));
  }
  if (cursor.failed())
    return fail("expected more header, the file ends within it");
  uint64_t dataStart = alignTo(cursor.position(), alignment);
  StringRef data =
      bytes.drop_front(std::min<uint64_t>(dataStart, bytes.size()));
  for (auto [tensor, offset] : zip(file.views, offsets)) {
    std::string what =
        "tensor '" + StringRef(tensor.name).take_front(80).str() + "': ";
    const GgufType *type = findGgufType(tensor.type);
    if (!type)
      continue; // listed, but without data: its block size is not known
    bool overflow = false, any = false;
    uint64_t elements = 1;
    for (int64_t extent : tensor.shape) {
      elements =
          SaturatingMultiply<uint64_t>(elements, uint64_t(extent), &overflow);
      any |= overflow;
    }
    uint64_t inner = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (any || inner % type->block != 0)
      return fail(what + "expected rows in blocks of " + Twine(type->block) +
                  ", got " + Twine(inner));
    uint64_t size = SaturatingMultiply<uint64_t>(elements / type->block,
                                                 type->bytes, &overflow);
    if (overflow || offset % alignment != 0 || offset > data.size() ||
        size > data.size() - offset)
      return fail(what + "expected " + Twine(size) + " aligned bytes at " +
                  Twine(offset) + ", the data has " + Twine(data.size()));
    tensor.data = arrayRefFromStringRef(data.substr(offset, size));
  }
  file.buffer = std::move(buffer);
  return file;
}

Expected<GgufFile> GgufFile::open(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(
      path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError("can't open '" + path +
                             "': " + buffer.getError().message());
  return parse(std::move(*buffer));
}

const GgufTensor *GgufFile::find(StringRef name) const {
  auto it = index.find(name);
  return it == index.end() ? nullptr : &views[it->second];
}

} // namespace humming
