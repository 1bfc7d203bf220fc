//===- Combinations.h - Everything that a target runs -----------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One enumeration of formats serves the tests (which compile and execute them)
// and the table of what is supported, so that the table can't lie.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TARGET_COMBINATIONS_H
#define HUMMING_TARGET_COMBINATIONS_H

#include "Humming/Target/KernelConfig.h"
#include <vector>

namespace humming {

/// Every legal combination of activation, its scales, zero points and sums,
/// weight (or table), scale, granularity, zero points and second scale level on
/// `target`, with the sizes of `sizes` (m, n, k), in a fixed order.
std::vector<MatmulProblem> enumerateProblems(const TargetInfo &target,
                                             const MatmulProblem &sizes);

/// A subset of `problems` in which every pair of values of two attributes that
/// occurs in `problems` occurs at least once. Greedy, in a fixed order.
std::vector<MatmulProblem>
coverPairs(const std::vector<MatmulProblem> &problems);

/// The support tables in Markdown: a row a weight format, then a row an option
/// of activations, a column an activation; a cell names the first chip that
/// runs the pair.
std::string supportTable();

} // namespace humming

#endif // HUMMING_TARGET_COMBINATIONS_H
