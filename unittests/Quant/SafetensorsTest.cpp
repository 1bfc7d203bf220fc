//===- SafetensorsTest.cpp
//--------------------------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/Safetensors.h"
#include "Humming/Quant/QuantizedWeights.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace humming;
using namespace llvm;

namespace {

/// A file of a header and `dataBytes` bytes counting up.
std::string makeFile(StringRef header, size_t dataBytes) {
  std::string bytes(8, '\0');
  support::endian::write64le(bytes.data(), header.size());
  bytes += header;
  for (size_t i = 0; i < dataBytes; ++i)
    bytes.push_back(char(i));
  return bytes;
}

Expected<SafetensorsFile> parse(StringRef bytes) {
  return SafetensorsFile::parse(MemoryBuffer::getMemBufferCopy(bytes, "t"));
}

void refuse(StringRef bytes, StringRef part) {
  Expected<SafetensorsFile> file = parse(bytes);
  ASSERT_FALSE(bool(file)) << part.str();
  std::string message = toString(file.takeError());
  EXPECT_NE(message.find(part.str()), std::string::npos)
      << message << "\n  lacks: " << part.str();
  EXPECT_EQ(message.find("'t': "), 0u) << message;
}

const char kGood[] =
    R"({"__metadata__":{"format":"pt"},"b\u00e9":{"dtype":"U8","shape":[3],)"
    R"("data_offsets":[8,11]}, "a":{"shape":[2,2],"dtype":"BF16",)"
    R"("data_offsets":[0,8]},"e":{"dtype":"F32","shape":[0,5],)"
    R"("data_offsets":[11,11]},"s":{"dtype":"F8_E4M3","shape":[],)"
    R"("data_offsets":[11,12]}}  )";

TEST(Safetensors, ReadsTensorsInDataOrder) {
  SafetensorsFile file = cantFail(parse(makeFile(kGood, 12)));
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.tensors()[0].describe(), "BF16[2x2]");
  EXPECT_EQ(file.metadata().lookup("format"), "pt");
  const TensorView *b = file.find("b\xC3\xA9");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->data.size(), 3u);
  EXPECT_EQ(b->data[0], 8);
  EXPECT_EQ(file.find("e")->elements(), 0);
  EXPECT_EQ(file.find("s")->elements(), 1);
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST(Safetensors, EmptyFile) {
  SafetensorsFile file = cantFail(parse(makeFile("{}", 0)));
  EXPECT_TRUE(file.tensors().empty());
}

TEST(Safetensors, RefusesBrokenContainers) {
  refuse("", "at least 8 bytes, got 0");
  refuse(StringRef("\x10\0\0\0\0\0\0", 7), "at least 8 bytes, got 7");
  std::string huge = makeFile(kGood, 12);
  support::endian::write64le(huge.data(), ~uint64_t(0));
  refuse(huge, "at most 100000000 bytes");
  support::endian::write64le(huge.data(), 100000000);
  refuse(huge, "the file has only");
  refuse(makeFile(kGood, 11), "within the 11 bytes of data");
  refuse(makeFile(kGood, 13), "expected 12 bytes of data, got 13");
  refuse(makeFile("", 0), "expected '{'");
  refuse(makeFile(" {}", 0), "expected '{'");
  refuse(makeFile("{} x", 0), "expected the end");
  refuse(makeFile(std::string(100000, '['), 0), "expected '{'");
  refuse(makeFile("{\"a\":" + std::string(100000, '{'), 0),
         "expected a string");
}

std::string entry(StringRef name, StringRef body) {
  return ("{\"" + name + "\":{" + body + "}}").str();
}

TEST(Safetensors, RefusesBrokenTensors) {
  refuse(makeFile(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                  R"("a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                  4),
         "'a' is listed twice");
  refuse(makeFile(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                  R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                  3),
         "tensor 'b': overlaps the one before it: expected it to begin at 2");
  refuse(makeFile(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                  R"("b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})",
                  5),
         "tensor 'b': follows a hole");
  refuse(makeFile(entry("a", R"("dtype":"U8","shape":[2])"), 0),
         "data_offsets is missing");
  refuse(makeFile(entry("a", R"("dtype":"Q4","shape":[],"data_offsets":[0,0])"),
                  0),
         "expected a known dtype, got 'Q4'");
  refuse(makeFile(entry("a", R"("dtype":"U8","shape":[2],"x":1)"), 0),
         "got 'x'");
  refuse(makeFile(entry("a", R"("dtype":"U8","dtype":"U8")"), 0),
         "'dtype' twice");
  refuse(makeFile(entry("a", R"("dtype":"U8","shape":[-1])"), 0),
         "expected an integer");
  refuse(makeFile(entry("a", R"("dtype":"U8","shape":[1.5])"), 0),
         "expected ',' or ']'");
  refuse(makeFile(entry("a", R"("dtype":"U8","shape":[01])"), 0),
         "expected an integer");
  refuse(
      makeFile(entry("a", R"("dtype":"U8","shape":[99999999999999999999])"), 0),
      "expected an integer");
  refuse(makeFile(entry("a", R"("dtype":"U8","shape":[4294967296,4294967296],)"
                             R"("data_offsets":[0,0])"),
                  0),
         "its size overflows");
  refuse(makeFile(entry("a", R"("dtype":"F4","shape":[3],)"
                             R"("data_offsets":[0,2])"),
                  2),
         "not a whole number of bytes");
  refuse(makeFile(entry("a", R"("dtype":"F32","shape":[2],)"
                             R"("data_offsets":[0,4])"),
                  4),
         "expected 8 bytes for its shape and dtype, got 4");
  refuse(makeFile(entry("a", R"("dtype":"U8","shape":[2],)"
                             R"("data_offsets":[2,0])"),
                  2),
         "expected data_offsets within");
  refuse(makeFile(entry("a", R"("dtype":"U8","shape":[2],)"
                             R"("data_offsets":[0,9223372036854775807])"),
                  2),
         "expected data_offsets within");
  refuse(makeFile(entry("a", R"("dtype":"U8","shape":[2],)"
                             R"("data_offsets":[0,1,2])"),
                  2),
         "at most 2 integers");
  refuse(makeFile(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "listed twice");
  refuse(makeFile(R"({"__metadata__":{"a":1}})", 0), "expected a string");
  refuse(makeFile("{\"a\\ud800\":1}", 0), "unpaired surrogate");
  refuse(makeFile("{\"a\xff\":1}", 0), "not UTF-8");
  refuse(makeFile("{\"a\n\":1}", 0), "control character");
  refuse(makeFile("{\"a", 0), "unterminated string");
}

// Every tensor that a mutated file yields must lie within the file.
TEST(Safetensors, MutatedFilesNeverCrash) {
  std::string good = makeFile(kGood, 12);
  Random random(11);
  int accepted = 0;
  auto tryOut = [&](const std::string &bytes) {
    std::unique_ptr<MemoryBuffer> buffer =
        MemoryBuffer::getMemBufferCopy(bytes, "t");
    const char *begin = buffer->getBufferStart(), *end = buffer->getBufferEnd();
    Expected<SafetensorsFile> file = SafetensorsFile::parse(std::move(buffer));
    if (!file) {
      consumeError(file.takeError());
      return;
    }
    ++accepted;
    for (const TensorView &view : file->tensors()) {
      EXPECT_GE(reinterpret_cast<const char *>(view.data.begin()), begin);
      EXPECT_LE(reinterpret_cast<const char *>(view.data.end()), end);
      EXPECT_EQ(int64_t(view.data.size()),
                view.elements() * dtypeBits(view.dtype) / 8);
    }
  };
  // Every byte to several values, every truncation, random multi-byte edits.
  for (size_t i = 0; i < good.size(); ++i)
    for (char c : {'\0', '\xff', '"', '{', '9', '\\'}) {
      std::string bytes = good;
      bytes[i] = c;
      tryOut(bytes);
    }
  for (size_t size = 0; size < good.size(); ++size)
    tryOut(good.substr(0, size));
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    for (uint64_t edits = 1 + random.below(6); edits > 0; --edits) {
      size_t at = random.below(bytes.size());
      switch (random.below(3)) {
      case 0:
        bytes[at] = char(random.next());
        break;
      case 1:
        bytes.erase(at, 1);
        break;
      default:
        bytes.insert(at, 1, "0123456789[]{},:\"\\"[random.below(18)]);
        break;
      }
    }
    tryOut(bytes);
  }
  EXPECT_GT(accepted, 0);
}

TEST(Safetensors, MissingFile) {
  Expected<SafetensorsFile> file = SafetensorsFile::open("/nonexistent/x");
  ASSERT_FALSE(bool(file));
  EXPECT_NE(toString(file.takeError()).find("can't open '/nonexistent/x'"),
            std::string::npos);
}

class SafetensorsWriterTest : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(sys::fs::createUniqueDirectory("humming-safetensors", dir));
    path = (dir + "/out.safetensors").str();
  }
  void TearDown() override { sys::fs::remove_directories(dir); }

  void declare(SafetensorsWriter &writer) {
    writer.setMetadata("format", "humming");
    writer.declare("w", TensorDType::U8, {2, 3});
    writer.declare("s\"1", TensorDType::F16, {2});
    writer.declare("empty", TensorDType::F32, {0});
  }
  SmallString<128> dir;
  std::string path;
  const std::vector<uint8_t> six = {1, 2, 3, 4, 5, 6}, four = {7, 8, 9, 10};
};

TEST_F(SafetensorsWriterTest, RoundTrip) {
  bool resumed;
  {
    SafetensorsWriter writer(path);
    declare(writer);
    cantFail(writer.open(true, resumed));
    EXPECT_FALSE(resumed);
    EXPECT_EQ(toString(writer.write("x", six)), "tensor 'x' was not declared");
    EXPECT_EQ(toString(writer.write("w", four)),
              "tensor 'w': expected 6 bytes, got 4");
    cantFail(writer.write("s\"1", four));
    cantFail(writer.flush());
    EXPECT_FALSE(sys::fs::exists(path));
  }
  // A second process takes up the partial file.
  SafetensorsWriter writer(path);
  declare(writer);
  cantFail(writer.open(true, resumed));
  EXPECT_TRUE(resumed);
  cantFail(writer.write("w", six));
  cantFail(writer.write("empty", {}));
  cantFail(writer.finish());
  EXPECT_FALSE(sys::fs::exists(writer.partialPath()));
  SafetensorsFile file = cantFail(SafetensorsFile::open(path));
  EXPECT_EQ(file.find("w")->data, ArrayRef<uint8_t>(six));
  EXPECT_EQ(file.find("s\"1")->data, ArrayRef<uint8_t>(four));
  EXPECT_EQ(file.metadata().lookup("format"), "humming");
  // The data begins at a multiple of 64 bytes.
  std::unique_ptr<MemoryBuffer> bytes =
      cantFail(errorOrToExpected(MemoryBuffer::getFile(path)));
  EXPECT_EQ((8 + support::endian::read64le(bytes->getBufferStart())) % 64, 0u);
}

TEST_F(SafetensorsWriterTest, OtherHeaderIsNotResumed) {
  bool resumed;
  {
    SafetensorsWriter writer(path);
    declare(writer);
    cantFail(writer.open(false, resumed));
  }
  SafetensorsWriter writer(path);
  declare(writer);
  writer.declare("more", TensorDType::U8, {1});
  cantFail(writer.open(true, resumed));
  EXPECT_FALSE(resumed);
}

TEST_F(SafetensorsWriterTest, UnwritableFolder) {
  bool resumed;
  SafetensorsWriter writer((dir + "/missing/out").str());
  declare(writer);
  Error error = writer.open(false, resumed);
  ASSERT_TRUE(bool(error));
  EXPECT_NE(toString(std::move(error)).find("can't write '"),
            std::string::npos);
}

} // namespace
