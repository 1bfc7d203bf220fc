//===- CostModel.h - Cost without strings, for the chooser ------ -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the library: the cost model in the form that the chooser evaluates
// some thousand times per problem.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_TARGET_COSTMODEL_H
#define HUMMING_LIB_TARGET_COSTMODEL_H

#include "Humming/Target/KernelConfig.h"

namespace humming {

enum class Limiter : uint8_t { Memory, Mma, Issue, Latency };

struct RawCost {
  double bytes = 0;
  double microseconds = 0;
  Limiter limiter = Limiter::Memory;
};

/// The sizes that stand in for unknown ones: a small batch, a mid-sized layer.
struct AssumedSizes {
  double m, n, k;
};
inline AssumedSizes assumedSizes(const MatmulProblem &problem) {
  return {double(problem.m > 0 ? problem.m : 16),
          double(problem.n > 0 ? problem.n : 4096),
          double(problem.k > 0 ? problem.k : 4096)};
}

/// Requires a legal config.
RawCost estimateRawCost(const MatmulProblem &problem,
                        const KernelConfig &config, const TargetInfo &target);
CostEstimate finishCost(const RawCost &raw);

} // namespace humming

#endif // HUMMING_LIB_TARGET_COSTMODEL_H
