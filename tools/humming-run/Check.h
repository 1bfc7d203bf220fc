//===- Check.h - Run one kernel and check its results -----------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run is repeated with different bytes wherever the kernel must not look or
// must not leave a trace: around every buffer, in the padding of the rows of x
// and c, in the output before the launch, in the partial sums of the workspace.
// The results must be the same bits each time, the first is compared with the
// f64 reference, and nothing outside of c (and the workspace) may change.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TOOLS_RUN_CHECK_H
#define HUMMING_TOOLS_RUN_CHECK_H

#include "Executor.h"
#include "Layer.h"
#include "llvm/Support/JSON.h"

namespace humming {

struct CheckOptions {
  uint64_t seed = 0;
  /// Multiply-adds that the reference may take for one size; beyond it a sample
  /// of output features is compared, at least 256.
  int64_t referenceBudget = int64_t(1) << 31;
  /// The gather that puts activations into the order of a layer's columns;
  /// needed for layers that have an order.
  const KernelArtifacts *gather = nullptr;
  /// What quantizes gathered activations: for layers that have an order, with
  /// activations of 4 bits or in groups. A code that has been packed in pairs,
  /// or shares a scale with its neighbours, does not move to another column; so
  /// the gather is of 16-bit activations then, and comes first.
  const KernelArtifacts *quantize = nullptr;
};

/// What was found for one number of tokens.
struct CheckReport {
  bool ok = false;
  int64_t outputs = 0, checked = 0;
  Comparison comparison;
  bool guardsIntact = true;  ///< nothing around a buffer was written
  bool inputsIntact = true;  ///< nothing in an input was written
  bool paddingIntact = true; ///< the padding of c's rows was not written
  bool deterministic = true; ///< the same bits for all poisons
  bool countersZero = true;  ///< the split-K counters are zero again
  int64_t nans = 0;          ///< among all outputs
  std::string detail;        ///< the first thing wrong

  void addTo(llvm::json::Object &object) const;
};

/// Runs the kernel that `executor` has loaded for m tokens. Uploads the layer's
/// buffers. Error: the executor's, or the reference's; wrong results are no
/// error but in the report.
llvm::Expected<CheckReport> runAndCheck(Executor &executor,
                                        const KernelArtifacts &kernel,
                                        const HostLayer &layer, int64_t m,
                                        const CheckOptions &options);

/// The same for a quantize kernel.
llvm::Expected<CheckReport> runAndCheckQuantize(Executor &executor,
                                                const KernelArtifacts &kernel,
                                                int64_t m, int64_t k,
                                                const CheckOptions &options);

/// What a quantize kernel wrote: rows of codes (4-bit ones in pairs) without
/// padding, and scales in f32, group by group, of m tokens each (one if
/// static).
struct QuantizedActivationBytes {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
};
/// The same for given activations, codes of the input's format, [m, k].
llvm::Expected<CheckReport>
runAndCheckQuantize(Executor &executor, const KernelArtifacts &kernel,
                    llvm::ArrayRef<uint32_t> x, int64_t m, int64_t k,
                    const CheckOptions &options,
                    QuantizedActivationBytes &result);

/// A pack kernel against the CPU's packer, bit for bit.
llvm::Expected<CheckReport> runAndCheckPack(Executor &executor,
                                            const KernelArtifacts &kernel,
                                            int64_t n, int64_t k,
                                            const CheckOptions &options);

/// A gather kernel on random activations [m, k] and a shuffled order with
/// padding columns.
llvm::Expected<CheckReport> runAndCheckGather(Executor &executor,
                                              const KernelArtifacts &kernel,
                                              int64_t m, int64_t k,
                                              const CheckOptions &options);

/// The same for given bytes x, rows ldx elements apart, and order. `gathered`,
/// unless null, receives the rows of the result without their padding.
llvm::Expected<CheckReport> runAndCheckGather(Executor &executor,
                                              const KernelArtifacts &kernel,
                                              llvm::ArrayRef<uint8_t> x,
                                              int64_t m, int64_t k, int64_t ldx,
                                              llvm::ArrayRef<int32_t> order,
                                              std::vector<uint8_t> *gathered);

/// The output features that are compared: all if m * n * k is within the
/// budget, else the first and the last 64 and a seeded sample of the rest.
/// Sorted, each once.
std::vector<int64_t> chooseFeatures(int64_t m, int64_t n, int64_t k,
                                    int64_t budget, uint64_t seed);

} // namespace humming

#endif // HUMMING_TOOLS_RUN_CHECK_H
