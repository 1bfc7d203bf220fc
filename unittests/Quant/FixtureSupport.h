//===- FixtureSupport.h
//-----------------------------------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Compares a layer of a committed checkpoint with what an independent
// implementation made of it (scripts/fixture_support.py has the layout).
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_UNITTESTS_QUANT_FIXTURESUPPORT_H
#define HUMMING_UNITTESTS_QUANT_FIXTURESUPPORT_H

#include "Humming/Quant/Checkpoint.h"
#include "Humming/Quant/Reference.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <cmath>

namespace humming {

inline std::string fixturePath(llvm::StringRef name) {
  return (llvm::StringRef(HUMMING_SOURCE_DIR) + "/test/data/quant/" + name)
      .str();
}

inline Checkpoint openFixture(llvm::StringRef name) {
  return llvm::cantFail(
      Checkpoint::open(fixturePath(name) + "/model.safetensors"));
}

/// The values of an f16, bf16, f32 or f64 tensor.
inline std::vector<double> tensorValues(const TensorView &tensor) {
  if (tensor.dtype == TensorDType::F64) {
    std::vector<double> values(tensor.data.size() / 8);
    for (size_t i = 0; i < values.size(); ++i) {
      uint64_t bits =
          llvm::support::endian::read64le(tensor.data.data() + 8 * i);
      std::memcpy(&values[i], &bits, 8);
    }
    return values;
  }
  NumberFormat format = tensor.dtype == TensorDType::F16 ? NumberFormat::f16()
                        : tensor.dtype == TensorDType::BF16
                            ? NumberFormat::bf16()
                            : NumberFormat::f32();
  return decodeElements(format, tensor.data);
}

/// Checks `weights` against LAYER.weight and LAYER.x, LAYER.y of the fixture's
/// expected.safetensors, whichever are there. A weight may differ by
/// `relative` times its size, the rounding of the implementation that wrote it
/// (0: bit for bit); outputs were summed in f64 and may differ by the rounding
/// of k + 1 additions.
inline void expectFixture(const QuantizedWeights &weights,
                          llvm::StringRef fixture, llvm::StringRef layer,
                          double relative = 0) {
  llvm::cantFail(weights.verify());
  SafetensorsFile expected = llvm::cantFail(
      SafetensorsFile::open(fixturePath(fixture) + "/expected.safetensors"));
  bool checked = false;
  if (const TensorView *tensor = expected.find((layer + ".weight").str())) {
    ASSERT_EQ(tensor->shape,
              (llvm::SmallVector<int64_t, 4>{weights.n, weights.k}));
    std::vector<double> want = tensorValues(*tensor);
    std::vector<double> got = dequantize(weights);
    int wrong = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      bool near = relative == 0 ? got[i] == want[i]
                                : std::fabs(got[i] - want[i]) <=
                                      relative * std::fabs(want[i]);
      if (!near && wrong++ < 5)
        ADD_FAILURE() << layer.str() << " [" << i / weights.k << ", "
                      << i % weights.k << "]: got " << got[i] << ", expected "
                      << want[i];
    }
    EXPECT_EQ(wrong, 0);
    checked = true;
  }
  const TensorView *x = expected.find((layer + ".x").str());
  const TensorView *y = expected.find((layer + ".y").str());
  if (x && y) {
    ASSERT_EQ(x->shape[1], weights.k);
    ASSERT_EQ(y->shape[1], weights.n);
    std::vector<double> activations = tensorValues(*x);
    std::vector<double> want = tensorValues(*y);
    ReferenceOptions options;
    options.numerics.operand = NumberFormat::f16();
    ReferenceResult result = llvm::cantFail(
        referenceMatmul(activations, x->shape[0], weights.k, weights, options));
    std::vector<double> w = dequantize(weights);
    for (int64_t i = 0; i < x->shape[0]; ++i)
      for (int64_t f = 0; f < weights.n; ++f) {
        double magnitude =
            weights.bias.empty() ? 0 : std::fabs(weights.bias[f]);
        for (int64_t j = 0; j < weights.k; ++j)
          magnitude +=
              std::fabs(activations[i * weights.k + j] * w[f * weights.k + j]);
        ASSERT_NEAR(result.values[i * weights.n + f], want[i * weights.n + f],
                    (weights.k + 1) * 0x1p-52 * magnitude);
      }
    checked = true;
  }
  EXPECT_TRUE(checked) << "the fixture holds nothing to compare " << layer.str()
                       << " with";
}

/// A checkpoint in a temporary folder, for tests of what readers refuse.
class TemporaryCheckpoint {
public:
  TemporaryCheckpoint() {
    if (llvm::sys::fs::createUniqueDirectory("humming-checkpoint", folder))
      ADD_FAILURE() << "no temporary folder";
  }
  ~TemporaryCheckpoint() { llvm::sys::fs::remove_directories(folder); }

  void add(llvm::StringRef name, TensorDType dtype,
           llvm::ArrayRef<int64_t> shape, std::vector<uint8_t> bytes = {}) {
    int64_t size = dtypeBits(dtype);
    for (int64_t extent : shape)
      size *= extent;
    if (bytes.empty())
      bytes.assign(size / 8, 0x11);
    tensors.push_back({name.str(), dtype, llvm::SmallVector<int64_t, 4>(shape),
                       std::move(bytes)});
  }
  void writeText(llvm::StringRef name, llvm::StringRef text) {
    std::error_code code;
    llvm::raw_fd_ostream os((folder + "/" + name).str(), code);
    os << text;
  }
  void writeConfig(llvm::StringRef quantization) {
    writeText("config.json",
              ("{\"quantization_config\": " + quantization + "}").str());
  }
  llvm::Expected<Checkpoint> open(llvm::StringRef file = "model.safetensors") {
    SafetensorsWriter writer((folder + "/" + file).str());
    for (const Tensor &tensor : tensors)
      writer.declare(tensor.name, tensor.dtype, tensor.shape);
    bool resumed;
    llvm::cantFail(writer.open(false, resumed));
    for (const Tensor &tensor : tensors)
      llvm::cantFail(writer.write(tensor.name, tensor.bytes));
    llvm::cantFail(writer.finish());
    return Checkpoint::open(folder);
  }
  void clear() { tensors.clear(); }
  std::string path() const { return folder.str().str(); }

private:
  struct Tensor {
    std::string name;
    TensorDType dtype;
    llvm::SmallVector<int64_t, 4> shape;
    std::vector<uint8_t> bytes;
  };
  llvm::SmallString<128> folder;
  std::vector<Tensor> tensors;
};

inline std::vector<uint8_t> wordBytes(llvm::ArrayRef<uint32_t> words) {
  std::vector<uint8_t> bytes(words.size() * 4);
  for (size_t i = 0; i < words.size(); ++i)
    llvm::support::endian::write32le(bytes.data() + 4 * i, words[i]);
  return bytes;
}

template <typename T>
std::string errorText(llvm::Expected<T> value) {
  return value ? std::string() : llvm::toString(value.takeError());
}

} // namespace humming

#endif // HUMMING_UNITTESTS_QUANT_FIXTURESUPPORT_H
