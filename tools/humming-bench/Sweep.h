//===- Sweep.h - How good the chooser's pick is -----------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sweep measures many legal configs of one problem. What it is for is one
// sentence: which is the fastest, and how much slower is the chooser's pick.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TOOLS_BENCH_SWEEP_H
#define HUMMING_TOOLS_BENCH_SWEEP_H

#include "Artifacts.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace humming {

/// One config of a sweep; times in microseconds, 0: unknown.
struct SweepEntry {
  std::string config;
  double predicted = 0; ///< by the cost model
  double measured = 0;
  std::string error; ///< why it was not measured, if it was tried
};

struct SweepSummary {
  std::string problem;
  std::string pick; ///< the chooser's config
  int configs = 0, measured = 0, failed = 0;
  double pickMicroseconds = 0; ///< measured; 0: the pick was not measured
  double pickPredicted = 0;
  int pickRank = 0; ///< 1: the fastest of the measured
  std::string best; ///< fastest measured; else the one of the least prediction
  double bestMicroseconds = 0, bestPredicted = 0;
  /// Median of measured / predicted, and the largest factor off, either way.
  double medianRatio = 0, worstRatio = 0;

  /// How much longer than the best the pick takes: 0.03 for 3 %.
  double excess() const {
    return pickMicroseconds > 0 ? pickMicroseconds / bestMicroseconds - 1 : 0;
  }
  /// Two or three lines for people.
  std::string str() const;
  llvm::json::Object json() const;
};

SweepSummary summarizeSweep(llvm::ArrayRef<SweepEntry> entries,
                            llvm::StringRef pick);

/// What the cost model expects of a kernel, in microseconds; 0 for a chip or a
/// config that it does not know.
double predictedMicroseconds(const LaunchDescription &launch, int64_t m,
                             int64_t n, int64_t k);
/// The chooser's config for the problem that a kernel solves. Error: the
/// description does not parse, or nothing is legal.
llvm::Expected<std::string> pickFor(const LaunchDescription &launch, int64_t m,
                                    int64_t n, int64_t k);

} // namespace humming

#endif // HUMMING_TOOLS_BENCH_SWEEP_H
