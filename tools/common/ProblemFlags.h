//===- ProblemFlags.h - The problem on the command line ---------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One spelling of the problem for all tools:
//
//   --chip sm_90 --a bf16 --w u4 --layout auto|packed|plain
//   --scale bf16 --group 128 --phase 0
//   --zero-point none|int|float --global none|tensor|channel --table nf4|fp4
//   --a-scale none|tensor|token --c bf16 [--bias] [--fallback]
//   [--batch-invariant] --n N --k K [--m M,...]
//   [--config STRING]
//
// A tool makes one ProblemFlags in main() before it parses its command line.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TOOLS_COMMON_PROBLEMFLAGS_H
#define HUMMING_TOOLS_COMMON_PROBLEMFLAGS_H

#include "Humming/Target/KernelConfig.h"
#include "Humming/Target/Layout.h"
#include "Humming/Target/Quantize.h"
#include "Humming/Target/TargetInfo.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace humming {

/// N and K of one weight matrix.
struct Shape {
  int64_t n = 0, k = 0;
};

class ProblemFlags {
public:
  ProblemFlags();

  /// The problem with m, n and k of the first given size; n and k are 0 where
  /// not given. Error: "--flag: expected ..., got ...".
  llvm::Expected<MatmulProblem> problem() const;
  /// The same for a given size; derives the divisors from it.
  llvm::Expected<MatmulProblem> problem(Shape shape, int64_t m) const;
  /// Sets the layout that `--layout` asks for, after the weights' type is
  /// known. Error: names the flag.
  llvm::Error setLayout(MatmulProblem &problem) const;
  /// `--op`: whether it is quantize. Error: it is neither that nor matmul.
  llvm::Expected<bool> isQuantize() const;
  /// Whether `--op` asks for a kernel that moves data; isQuantize has checked
  /// it.
  bool isPack() const { return operation == "pack"; }
  bool isGather() const { return operation == "gather"; }
  /// With `--op pack`: the widths of --a and --w.
  llvm::Expected<PackProblem> packProblem(Shape shape) const;
  /// With `--op gather`: K columns of the width of --a.
  llvm::Expected<GatherProblem> gatherProblem(int64_t m, int64_t k) const;
  /// The problem of `--op quantize`, for one K; 0 where it is not given.
  llvm::Expected<QuantizeProblem> quantizeProblem(int64_t m, int64_t k) const;
  /// `--chip`. Error: names the flag and the known chips.
  llvm::Expected<const TargetInfo *> target() const;
  /// `--m`, or nothing.
  llvm::Expected<llvm::SmallVector<int64_t>> tokens() const;
  /// `--n` and `--k`, or each `--shape NxK`. Error: neither, or both.
  llvm::Expected<llvm::SmallVector<Shape>> shapes() const;
  /// `--k` alone, a list: of quantize. Error: it is not given.
  llvm::Expected<llvm::SmallVector<int64_t>> depths() const;
  /// `--config`, completed by `base`; nothing if it was not given.
  llvm::Expected<std::optional<KernelConfig>>
  config(const KernelConfig &base) const;
  bool hasConfig() const { return configFlag.getNumOccurrences() != 0; }
  /// Sets `--m`'s default, for tools that run something.
  void setDefaultTokens(llvm::StringRef text) { defaultTokens = text.str(); }

  llvm::cl::OptionCategory category;
  llvm::cl::opt<std::string> chip, operation, activation, activationScale,
      activationGroup, activationScaleFormat, activationZeroPoint, gate, input,
      accumulate, weight, layout, table, scale, group, phase, zeroPoint,
      globalScale, output, tokensFlag, nFlag, kFlag, shapeFlag, configFlag;
  llvm::cl::opt<bool> bias, fallback, batchInvariant;

private:
  /// What activations are quantized to.
  llvm::Expected<ActivationCodes> activationCodes() const;
  llvm::Expected<ActivationScaleKind>
  activationScaleKind(const NumberFormat &format) const;

  std::string defaultTokens;
};

/// Parses an integer in [least, most]. Error: "--flag: expected ..., got ...".
llvm::Expected<int64_t> parseIntegerFlag(llvm::StringRef flag,
                                         llvm::StringRef text, int64_t least,
                                         int64_t most);
/// The same for a comma-separated list, at least one.
llvm::Expected<llvm::SmallVector<int64_t>>
parseIntegerListFlag(llvm::StringRef flag, llvm::StringRef text, int64_t least,
                     int64_t most);
/// Hides options that are not the tool's own and parses. Exits on --help and on
/// an unknown option (with a message that names it).
void parseCommandLine(int argc, char **argv, llvm::StringRef overview,
                      llvm::ArrayRef<const llvm::cl::OptionCategory *> keep);

} // namespace humming

#endif // HUMMING_TOOLS_COMMON_PROBLEMFLAGS_H
