//===- Safetensors.cpp - The safetensors container ------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The header is parsed by a parser of its own rather than a general JSON one:
// it has a fixed shape, so there is no recursion for a hostile file to exhaust
// the stack with, duplicate keys are seen, and numbers are exact.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/Safetensors.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cassert>
#include <cerrno>
#include <tuple>
#include <unistd.h>

using namespace llvm;

namespace humming {

/// The format's own limit on the header, which also bounds our memory.
static constexpr uint64_t kMaxHeader = 100000000;
static constexpr size_t kMaxRank = 32;

namespace {
struct DTypeRow {
  TensorDType dtype;
  StringRef name;
  unsigned bits;
};
} // namespace

static ArrayRef<DTypeRow> dtypeTable() {
  static const DTypeRow rows[] = {
      {TensorDType::Bool, "BOOL", 8},      {TensorDType::F4, "F4", 4},
      {TensorDType::F6E2M3, "F6_E2M3", 6}, {TensorDType::F6E3M2, "F6_E3M2", 6},
      {TensorDType::U8, "U8", 8},          {TensorDType::I8, "I8", 8},
      {TensorDType::F8E5M2, "F8_E5M2", 8}, {TensorDType::F8E4M3, "F8_E4M3", 8},
      {TensorDType::F8E8M0, "F8_E8M0", 8}, {TensorDType::I16, "I16", 16},
      {TensorDType::U16, "U16", 16},       {TensorDType::F16, "F16", 16},
      {TensorDType::BF16, "BF16", 16},     {TensorDType::I32, "I32", 32},
      {TensorDType::U32, "U32", 32},       {TensorDType::F32, "F32", 32},
      {TensorDType::F64, "F64", 64},       {TensorDType::I64, "I64", 64},
      {TensorDType::U64, "U64", 64},
  };
  return rows;
}

StringRef stringify(TensorDType dtype) {
  for (const DTypeRow &row : dtypeTable())
    if (row.dtype == dtype)
      return row.name;
  return "?";
}

unsigned dtypeBits(TensorDType dtype) {
  for (const DTypeRow &row : dtypeTable())
    if (row.dtype == dtype)
      return row.bits;
  return 8;
}

std::string TensorView::describe() const {
  std::string text = stringify(dtype).str() + "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "x" : "") + itostr(shape[i]);
  return text + "]";
}

//===----------------------------------------------------------------------===//
// Header parser
//===----------------------------------------------------------------------===//

namespace {
class HeaderParser {
public:
  struct Tensor {
    std::string name;
    TensorDType dtype;
    SmallVector<int64_t, 4> shape;
    uint64_t begin = 0, end = 0;
  };

  explicit HeaderParser(StringRef text) : begin(text.begin()), rest(text) {}

  Error parse() {
    if (!rest.starts_with("{"))
      return fail("expected '{' at the start of the header");
    return parseObject([&](std::string key) -> Error {
      if (!names.insert(key).second)
        return fail("tensor '" + shorten(key) + "' is listed twice");
      if (key == "__metadata__")
        return parseMetadata();
      return parseTensor(std::move(key));
    });
  }

  Error parseEnd() {
    skipSpace();
    if (!rest.empty())
      return fail("expected the end of the header after the object");
    return Error::success();
  }

  std::vector<Tensor> tensors;
  StringMap<std::string> metadata;

private:
  static std::string shorten(StringRef name) {
    return name.size() <= 80 ? name.str() : name.take_front(77).str() + "...";
  }

  Error fail(const Twine &message) {
    return createStringError("header, byte " + Twine(rest.data() - begin) +
                             ": " + message);
  }

  void skipSpace() { rest = rest.ltrim(" \t\r\n"); }

  bool consume(char c) {
    skipSpace();
    return rest.consume_front(StringRef(&c, 1));
  }

  /// `{ "key": value, ... }`; parseValue consumes each value.
  Error parseObject(function_ref<Error(std::string)> parseValue) {
    if (!consume('{'))
      return fail("expected '{'");
    if (consume('}'))
      return Error::success();
    do {
      std::string key;
      if (Error error = parseString(key))
        return error;
      if (!consume(':'))
        return fail("expected ':' after the key '" + shorten(key) + "'");
      if (Error error = parseValue(std::move(key)))
        return error;
    } while (consume(','));
    if (!consume('}'))
      return fail("expected ',' or '}'");
    return Error::success();
  }

  Error parseString(std::string &out) {
    if (!consume('"'))
      return fail("expected a string");
    for (;;) {
      if (rest.empty())
        return fail("unterminated string");
      char c = rest.front();
      rest = rest.drop_front();
      if (c == '"')
        break;
      if (static_cast<unsigned char>(c) < 0x20)
        return fail("control character in a string");
      if (c != '\\') {
        out.push_back(c);
        continue;
      }
      if (rest.empty())
        return fail("unterminated string");
      char escape = rest.front();
      rest = rest.drop_front();
      switch (escape) {
      case '"':
      case '\\':
      case '/':
        out.push_back(escape);
        break;
      case 'b':
        out.push_back('\b');
        break;
      case 'f':
        out.push_back('\f');
        break;
      case 'n':
        out.push_back('\n');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'u':
        if (Error error = parseUnicodeEscape(out))
          return error;
        break;
      default:
        return fail("unknown escape in a string");
      }
    }
    if (!json::isUTF8(out))
      return fail("string is not UTF-8");
    return Error::success();
  }

  bool parseHex(uint32_t &value) {
    if (rest.size() < 4 || !all_of(rest.take_front(4), isHexDigit))
      return false;
    value = 0;
    for (char c : rest.take_front(4))
      value = value * 16 + hexDigitValue(c);
    rest = rest.drop_front(4);
    return true;
  }

  Error parseUnicodeEscape(std::string &out) {
    uint32_t unit, low;
    if (!parseHex(unit))
      return fail("expected four hexadecimal digits");
    if (unit >= 0xD800 && unit < 0xDC00) {
      if (!rest.consume_front("\\u") || !parseHex(low) || low < 0xDC00 ||
          low >= 0xE000)
        return fail("unpaired surrogate");
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    } else if (unit >= 0xDC00 && unit < 0xE000) {
      return fail("unpaired surrogate");
    }
    char utf8[UNI_MAX_UTF8_BYTES_PER_CODE_POINT], *end = utf8;
    if (!ConvertCodePointToUTF8(unit, end))
      return fail("invalid code point");
    out.append(utf8, end);
    return Error::success();
  }

  Error parseInteger(uint64_t &value) {
    skipSpace();
    StringRef digits = rest.take_while(isDigit);
    // JSON has no leading zeros; a sign, fraction or exponent is no size.
    if (digits.empty() || (digits.size() > 1 && digits[0] == '0') ||
        digits.getAsInteger(10, value) || value > uint64_t(INT64_MAX))
      return fail("expected an integer of 0 to 2^63 - 1, got '" +
                  rest.take_front(24) + "'");
    rest = rest.drop_front(digits.size());
    return Error::success();
  }

  Error parseIntegers(size_t most, SmallVectorImpl<int64_t> &out) {
    if (!consume('['))
      return fail("expected '['");
    if (consume(']'))
      return Error::success();
    do {
      uint64_t value;
      if (Error error = parseInteger(value))
        return error;
      if (out.size() == most)
        return fail("expected at most " + Twine(most) + " integers");
      out.push_back(int64_t(value));
    } while (consume(','));
    if (!consume(']'))
      return fail("expected ',' or ']'");
    return Error::success();
  }

  Error parseMetadata() {
    return parseObject([&](std::string key) -> Error {
      std::string value;
      if (Error error = parseString(value))
        return error;
      if (!metadata.try_emplace(key, std::move(value)).second)
        return fail("metadata '" + shorten(key) + "' is listed twice");
      return Error::success();
    });
  }

  Error parseTensor(std::string name) {
    Tensor tensor;
    tensor.name = name;
    bool hasDType = false, hasShape = false, hasOffsets = false;
    auto once = [&](bool &seen, StringRef what) -> Error {
      if (seen)
        return fail("tensor '" + shorten(name) + "' has '" + what + "' twice");
      seen = true;
      return Error::success();
    };
    Error error = parseObject([&](std::string key) -> Error {
      if (key == "dtype") {
        if (Error twice = once(hasDType, key))
          return twice;
        std::string text;
        if (Error failure = parseString(text))
          return failure;
        const DTypeRow *row = find_if(
            dtypeTable(), [&](const DTypeRow &r) { return r.name == text; });
        if (row == dtypeTable().end())
          return fail("tensor '" + shorten(name) +
                      "': expected a known dtype, got '" + shorten(text) + "'");
        tensor.dtype = row->dtype;
        return Error::success();
      }
      if (key == "shape") {
        if (Error twice = once(hasShape, key))
          return twice;
        return parseIntegers(kMaxRank, tensor.shape);
      }
      if (key == "data_offsets") {
        if (Error twice = once(hasOffsets, key))
          return twice;
        SmallVector<int64_t, 2> offsets;
        if (Error failure = parseIntegers(2, offsets))
          return failure;
        if (offsets.size() != 2)
          return fail("tensor '" + shorten(name) +
                      "': expected two data_offsets, got " +
                      Twine(offsets.size()));
        tensor.begin = uint64_t(offsets[0]);
        tensor.end = uint64_t(offsets[1]);
        return Error::success();
      }
      return fail("tensor '" + shorten(name) +
                  "': expected dtype, shape and data_offsets, got '" +
                  shorten(key) + "'");
    });
    if (error)
      return error;
    if (!hasDType || !hasShape || !hasOffsets)
      return fail("tensor '" + shorten(name) +
                  "': expected dtype, shape and data_offsets, " +
                  (!hasDType   ? "dtype"
                   : !hasShape ? "shape"
                               : "data_offsets") +
                  " is missing");
    tensors.push_back(std::move(tensor));
    return Error::success();
  }

  const char *begin;
  StringRef rest;
  StringSet<> names;
};
} // namespace

/// Bytes of a tensor; none if the product overflows or is no whole byte.
static std::optional<uint64_t> tensorBytes(TensorDType dtype,
                                           ArrayRef<int64_t> shape) {
  uint64_t bits = dtypeBits(dtype);
  for (int64_t extent : shape) {
    bool overflow = false;
    bits = SaturatingMultiply<uint64_t>(bits, uint64_t(extent), &overflow);
    if (overflow)
      return std::nullopt;
  }
  if (bits % 8)
    return std::nullopt;
  return bits / 8;
}

Expected<SafetensorsFile>
SafetensorsFile::parse(std::unique_ptr<MemoryBuffer> buffer) {
  StringRef path = buffer->getBufferIdentifier();
  auto fail = [&](const Twine &message) -> Error {
    return createStringError("'" + path + "': " + message);
  };
  StringRef bytes = buffer->getBuffer();
  if (bytes.size() < 8)
    return fail("expected a safetensors file of at least 8 bytes, got " +
                Twine(bytes.size()));
  uint64_t headerSize = support::endian::read64le(bytes.data());
  if (headerSize > kMaxHeader)
    return fail("expected a safetensors header of at most " +
                Twine(kMaxHeader) + " bytes, got " + Twine(headerSize));
  if (headerSize > bytes.size() - 8)
    return fail("expected " + Twine(headerSize) +
                " bytes of header, the file has only " +
                Twine(bytes.size() - 8));
  HeaderParser parser(bytes.substr(8, headerSize));
  if (Error error = parser.parse())
    return fail(toString(std::move(error)));
  if (Error error = parser.parseEnd())
    return fail(toString(std::move(error)));

  StringRef data = bytes.drop_front(8 + headerSize);
  sort(parser.tensors, [](const HeaderParser::Tensor &a,
                          const HeaderParser::Tensor &b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  SafetensorsFile file;
  uint64_t next = 0;
  for (HeaderParser::Tensor &tensor : parser.tensors) {
    std::string name =
        "tensor '" + StringRef(tensor.name).take_front(80).str() + "': ";
    std::optional<uint64_t> size = tensorBytes(tensor.dtype, tensor.shape);
    if (!size)
      return fail(name + "its size overflows or is not a whole number of "
                         "bytes");
    if (tensor.end < tensor.begin || tensor.end > data.size())
      return fail(name + "expected data_offsets within the " +
                  Twine(data.size()) + " bytes of data, got " +
                  Twine(tensor.begin) + " to " + Twine(tensor.end));
    if (tensor.end - tensor.begin != *size)
      return fail(name + "expected " + Twine(*size) +
                  " bytes for its shape and dtype, got " +
                  Twine(tensor.end - tensor.begin));
    if (tensor.begin != next)
      return fail(name +
                  (tensor.begin < next ? "overlaps the one before it"
                                       : "follows a hole") +
                  ": expected it to begin at " + Twine(next) + ", got " +
                  Twine(tensor.begin));
    next = tensor.end;
    file.index[tensor.name] = file.views.size();
    TensorView view;
    view.name = std::move(tensor.name);
    view.dtype = tensor.dtype;
    view.shape = std::move(tensor.shape);
    view.data = arrayRefFromStringRef(data.slice(tensor.begin, tensor.end));
    file.views.push_back(std::move(view));
  }
  if (next != data.size())
    return fail("expected " + Twine(next) + " bytes of data, got " +
                Twine(data.size()));
  file.meta = std::move(parser.metadata);
  file.buffer = std::move(buffer);
  return file;
}

Expected<SafetensorsFile> SafetensorsFile::open(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false,
                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError("can't open '" + path +
                             "': " + buffer.getError().message());
  return parse(std::move(*buffer));
}

const TensorView *SafetensorsFile::find(StringRef name) const {
  auto it = index.find(name);
  return it == index.end() ? nullptr : &views[it->second];
}

//===----------------------------------------------------------------------===//
// Writer
//===----------------------------------------------------------------------===//

SafetensorsWriter::SafetensorsWriter(StringRef path) : path(path.str()) {}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd >= 0)
    ::close(fd);
}

Error SafetensorsWriter::fail(int errorNumber) const {
  return createStringError("can't write '" + partialPath() + "': " +
                           std::generic_category().message(errorNumber));
}

Error SafetensorsWriter::writeAt(ArrayRef<uint8_t> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    ssize_t done = ::pwrite(fd, bytes.data(), bytes.size(), off_t(offset));
    if (done < 0) {
      if (errno == EINTR)
        continue;
      return fail(errno);
    }
    bytes = bytes.drop_front(size_t(done));
    offset += uint64_t(done);
  }
  return Error::success();
}

void SafetensorsWriter::declare(StringRef name, TensorDType dtype,
                                ArrayRef<int64_t> shape) {
  assert(fd < 0 && !entries.count(name) && name != "__metadata__");
  std::optional<uint64_t> size = tensorBytes(dtype, shape);
  assert(size && "a declared tensor has a size");
  Entry entry{dtype, SmallVector<int64_t, 4>(shape), dataBytes,
              dataBytes + size.value_or(0)};
  dataBytes = entry.end;
  entries.try_emplace(name, std::move(entry));
  order.push_back(name.str());
}

void SafetensorsWriter::setMetadata(StringRef key, StringRef value) {
  meta.emplace_back(key.str(), value.str());
}

std::string SafetensorsWriter::header() const {
  std::string text;
  raw_string_ostream os(text);
  json::OStream json(os);
  json.object([&] {
    if (!meta.empty())
      json.attributeObject("__metadata__", [&] {
        for (const auto &[key, value] : meta)
          json.attribute(key, value);
      });
    for (const std::string &name : order) {
      const Entry &entry = entries.find(name)->second;
      json.attributeObject(name, [&] {
        json.attribute("dtype", stringify(entry.dtype));
        json.attributeArray("shape", [&] {
          for (int64_t extent : entry.shape)
            json.value(extent);
        });
        json.attributeArray("data_offsets", [&] {
          json.value(int64_t(entry.begin));
          json.value(int64_t(entry.end));
        });
      });
    }
  });
  // Spaces round the header up, so that the data is aligned to 64 bytes.
  text.append(alignTo(text.size() + 8, 64) - 8 - text.size(), ' ');
  std::string prefix(8, '\0');
  support::endian::write64le(prefix.data(), text.size());
  return prefix + text;
}

Error SafetensorsWriter::open(bool resume, bool &resumed) {
  std::string head = header();
  std::string partial = partialPath();
  dataStart = head.size();
  resumed = false;
  if (resume) {
    ErrorOr<std::unique_ptr<MemoryBuffer>> old =
        MemoryBuffer::getFileSlice(partial, head.size(), 0);
    resumed = old && (*old)->getBuffer() == head;
  }
  std::error_code code = sys::fs::openFileForReadWrite(
      partial, fd,
      resumed ? sys::fs::CD_OpenExisting : sys::fs::CD_CreateAlways,
      sys::fs::OF_None);
  if (code) {
    fd = -1;
    return createStringError("can't write '" + partial +
                             "': " + code.message());
  }
  if (::ftruncate(fd, off_t(dataStart + dataBytes)) != 0)
    return fail(errno);
  if (!resumed)
    if (Error error = writeAt(arrayRefFromStringRef(head), 0))
      return error;
  return flush();
}

Error SafetensorsWriter::write(StringRef name, ArrayRef<uint8_t> bytes) {
  auto it = entries.find(name);
  if (it == entries.end())
    return createStringError("tensor '" + name + "' was not declared");
  const Entry &entry = it->second;
  if (bytes.size() != entry.end - entry.begin)
    return createStringError("tensor '" + name + "': expected " +
                             Twine(entry.end - entry.begin) + " bytes, got " +
                             Twine(bytes.size()));
  return writeAt(bytes, dataStart + entry.begin);
}

Error SafetensorsWriter::flush() {
  if (::fsync(fd) != 0)
    return fail(errno);
  return Error::success();
}

Error SafetensorsWriter::finish() {
  if (Error error = flush())
    return error;
  int status = ::close(fd);
  fd = -1;
  if (status != 0)
    return fail(errno);
  if (std::error_code code = sys::fs::rename(partialPath(), path))
    return createStringError("can't rename '" + partialPath() + "' to '" +
                             path + "': " + code.message());
  return Error::success();
}

} // namespace humming
