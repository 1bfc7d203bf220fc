//===- CheckLayout.cpp - Run pack and gather kernels and check them -------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These kernels compute nothing, so their results are compared bit for bit: a
// pack with the CPU's packer, a gather with a loop.
//
//===----------------------------------------------------------------------===//

#include "BufferImage.h"
#include "Check.h"
#include "Humming/Quant/Packing.h"
#include <algorithm>

using namespace llvm;

namespace humming {

namespace {
/// One kernel's buffers.
class LayoutRun {
public:
  LayoutRun(Executor &executor, StringRef resultName)
      : executor(executor), resultName(resultName) {}

  /// Launches with every poison around and in `result` before it is written.
  /// `written(i)` says whether the kernel owns byte i; others keep the poison.
  Error run(ArrayRef<std::pair<BufferSlot, ArrayRef<uint8_t>>> inputs,
            ArrayRef<uint8_t> expected, const LaunchSizes &sizes,
            function_ref<bool(size_t)> written);

  CheckReport report;

private:
  void fail(bool &flag, const Twine &detail) {
    flag = false;
    if (report.detail.empty())
      report.detail = detail.str();
  }
  Error compare(BufferImage &result, ArrayRef<uint8_t> expected, uint8_t poison,
                function_ref<bool(size_t)> written);

  Executor &executor;
  StringRef resultName;
};
} // namespace

Error LayoutRun::compare(BufferImage &result, ArrayRef<uint8_t> expected,
                         uint8_t poison, function_ref<bool(size_t)> written) {
  if (std::optional<int64_t> at = result.damagedGuard(poison))
    fail(report.guardsIntact,
         resultName + " was written out of bounds, at byte " + Twine(*at));
  MutableArrayRef<uint8_t> got = result.data();
  for (size_t i = 0; i < got.size(); ++i) {
    bool mine = written(i);
    if (got[i] == (mine ? expected[i] : poison))
      continue;
    if (mine)
      fail(report.comparison.ok, resultName + " byte " + Twine(i) +
                                     ": expected " + Twine(expected[i]) +
                                     ", got " + Twine(got[i]));
    else
      fail(report.paddingIntact, "the padding of " + resultName +
                                     " was written, at byte " + Twine(i));
    return Error::success();
  }
  return Error::success();
}

Error LayoutRun::run(ArrayRef<std::pair<BufferSlot, ArrayRef<uint8_t>>> inputs,
                     ArrayRef<uint8_t> expected, const LaunchSizes &sizes,
                     function_ref<bool(size_t)> written) {
  report.comparison = Comparison();
  report.comparison.ok = true;
  report.outputs = report.checked = int64_t(expected.size());
  for (uint8_t poison : kPoisons) {
    BufferImage images[kNumBufferSlots];
    for (auto [slot, bytes] : inputs)
      images[unsigned(slot)].assign(bytes, poison);
    BufferImage &result = images[unsigned(BufferSlot::Output)];
    result.assign(std::vector<uint8_t>(expected.size(), poison), poison);
    for (unsigned slot = 0; slot < kNumBufferSlots; ++slot)
      if (Error error = executor.upload(BufferSlot(slot), images[slot].bytes))
        return error;
    if (Error error = executor.launch(sizes))
      return error;
    if (Error error = executor.download(BufferSlot::Output, result.bytes))
      return error;
    if (Error error = compare(result, expected, poison, written))
      return error;
    for (auto [slot, bytes] : inputs) {
      BufferImage back;
      back.bytes.resize(images[unsigned(slot)].bytes.size());
      if (Error error = executor.download(slot, back.bytes))
        return error;
      if (back.bytes != images[unsigned(slot)].bytes)
        fail(report.inputsIntact, stringify(slot) + " was changed");
    }
  }
  report.ok = report.comparison.ok && report.guardsIntact &&
              report.inputsIntact && report.paddingIntact;
  return Error::success();
}

Expected<CheckReport> runAndCheckPack(Executor &executor,
                                      const KernelArtifacts &kernel, int64_t n,
                                      int64_t k, const CheckOptions &options) {
  Expected<PackProblem> problem = packProblemOf(kernel.launch, n, k);
  if (!problem)
    return problem.takeError();
  LaunchSizes sizes;
  sizes.n = int32_t(n);
  sizes.k = int32_t(k);
  sizes.m = 1; // not empty
  sizes.ldx = int32_t(k + 3 * problem->kDivisor);
  // Bits above the weight's are noise, which packing drops.
  Random random(options.seed ^ 0xbacc);
  std::vector<uint8_t> codes(size_t(n * sizes.ldx));
  for (uint8_t &code : codes)
    code = uint8_t(random.next());
  std::vector<uint8_t> packed(size_t(
      packedWeightBytes(n, k, problem->activationBits, problem->weightBits)));
  if (Error error = packWeights(codes, n, k, sizes.ldx, problem->activationBits,
                                problem->weightBits, packed))
    return std::move(error);
  LayoutRun run(executor, "packed");
  if (Error error = run.run({{BufferSlot::X, codes}}, packed, sizes,
                            [](size_t) { return true; }))
    return std::move(error);
  return run.report;
}

/// [m, columns], rows `ld` elements apart.
static std::vector<uint8_t> gatherRows(ArrayRef<uint8_t> x, int64_t m,
                                       int64_t k, int64_t ldx,
                                       ArrayRef<int32_t> order, int64_t ld,
                                       unsigned element) {
  int64_t columns = int64_t(order.size());
  std::vector<uint8_t> out(size_t(m * ld * element));
  for (int64_t row = 0; row < m; ++row)
    for (int64_t j = 0; j < columns; ++j)
      if (order[j] >= 0 && order[j] < k)
        std::copy_n(x.begin() + (row * ldx + order[j]) * element, element,
                    out.begin() + (row * ld + j) * element);
  return out;
}

Expected<CheckReport>
runAndCheckGather(Executor &executor, const KernelArtifacts &kernel,
                  ArrayRef<uint8_t> x, int64_t m, int64_t k, int64_t ldx,
                  ArrayRef<int32_t> order, std::vector<uint8_t> *gathered) {
  int64_t columns = int64_t(order.size());
  Expected<GatherProblem> problem = gatherProblemOf(kernel.launch, m, columns);
  if (!problem)
    return problem.takeError();
  unsigned element = problem->elementBits / 8;
  LaunchSizes sizes;
  sizes.m = int32_t(m);
  sizes.n = int32_t(columns);
  sizes.k = int32_t(k);
  sizes.ldx = int32_t(ldx);
  sizes.ldc = int32_t(columns + 3 * problem->divisor);
  std::vector<uint8_t> expected =
      gatherRows(x, m, k, ldx, order, sizes.ldc, element);
  ArrayRef<uint8_t> orderBytes(reinterpret_cast<const uint8_t *>(order.data()),
                               4 * order.size());
  LayoutRun run(executor, "gathered");
  int64_t rowBytes = int64_t(sizes.ldc) * element;
  if (Error error =
          run.run({{BufferSlot::X, x}, {BufferSlot::Order, orderBytes}},
                  expected, sizes, [&](size_t i) {
                    return int64_t(i) % rowBytes < columns * int64_t(element);
                  }))
    return std::move(error);
  if (gathered) {
    gathered->clear();
    for (int64_t row = 0; row < m; ++row)
      gathered->insert(gathered->end(), expected.begin() + row * rowBytes,
                       expected.begin() + row * rowBytes + columns * element);
  }
  return run.report;
}

Expected<CheckReport> runAndCheckGather(Executor &executor,
                                        const KernelArtifacts &kernel,
                                        int64_t m, int64_t k,
                                        const CheckOptions &options) {
  // Every column once in a shuffled order, then padding and columns beyond.
  Random random(options.seed ^ 0x9a7e);
  std::vector<int32_t> order;
  for (int64_t i = 0; i < k; ++i)
    order.push_back(int32_t(i));
  for (int64_t i = k - 1; i > 0; --i)
    std::swap(order[size_t(i)], order[random.below(uint64_t(i + 1))]);
  for (int64_t i = 0; i < k; i += 7)
    order[size_t(i)] = i % 3 ? -1 : int32_t(k + i);
  Expected<GatherProblem> problem = gatherProblemOf(kernel.launch, m, k);
  if (!problem)
    return problem.takeError();
  int64_t ldx = k + 5;
  std::vector<uint8_t> x(size_t(m * ldx) * problem->elementBits / 8);
  for (uint8_t &byte : x)
    byte = uint8_t(random.next());
  return runAndCheckGather(executor, kernel, x, m, k, ldx, order, nullptr);
}

} // namespace humming
