//===- Fallback.h - What runs where a chip lacks a format -------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TARGET_FALLBACK_H
#define HUMMING_TARGET_FALLBACK_H

#include "Humming/Target/KernelConfig.h"

namespace humming {

/// The activation formats to take in place of `activation`, best first:
///
///   s4          e4m3, s8, bf16, f16
///   e4m3, e5m2  bf16, f16
///   s8          bf16, f16
///   bf16        f16
llvm::SmallVector<NumberFormat, 4>
fallbackActivations(const NumberFormat &activation);

struct ResolvedProblem {
  MatmulProblem problem;
  /// Empty, or what runs in place of what: "activations of bf16 in place of
  /// e4m3: rule P3: ...".
  std::string note;
};
/// `problem` itself where it is legal on `target`, else the first of its
/// fallbacks that is; 16-bit activations lose their scales (the caller hands
/// over values). Only the activation is replaced, so that an error of another
/// part stays one. Error: checkProblem's of `problem`.
llvm::Expected<ResolvedProblem> resolveFallback(const MatmulProblem &problem,
                                                const TargetInfo &target);

} // namespace humming

#endif // HUMMING_TARGET_FALLBACK_H
