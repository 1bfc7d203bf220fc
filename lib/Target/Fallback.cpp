//===- Fallback.cpp - What runs where a chip lacks a format ---------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/Fallback.h"

using namespace humming;

llvm::SmallVector<NumberFormat, 4>
humming::fallbackActivations(const NumberFormat &activation) {
  const NumberFormat f16 = NumberFormat::f16(), bf16 = NumberFormat::bf16();
  if (activation == NumberFormat::signedInt(4))
    return {NumberFormat::smallFloat(4, 3), NumberFormat::signedInt(8), bf16,
            f16};
  if (activation.bits == 8)
    return {bf16, f16};
  if (activation.isBF16())
    return {f16};
  return {};
}

llvm::Expected<ResolvedProblem>
humming::resolveFallback(const MatmulProblem &problem,
                         const TargetInfo &target) {
  llvm::Error error = checkProblem(problem, target);
  if (!error)
    return ResolvedProblem{problem, ""};
  std::string why = llvm::toString(std::move(error));
  for (const NumberFormat &activation :
       fallbackActivations(problem.activation)) {
    MatmulProblem candidate = problem;
    candidate.activation = activation;
    if (activation.bits == 16)
      candidate.activationScale = ActivationScaleKind::None;
    // Plain weights are operands of their own format only.
    candidate.weightLayout = WeightLayout::Packed;
    if (activation.bits == 16)
      candidate.activationGroup = 0;
    if (activation.bits == 16 || candidate.activationGroup == 0)
      candidate.activationScaleFormat = NumberFormat::f32();
    if (!activation.isInteger())
      candidate.activationZeroPoint = false;
    if (!activation.isF16())
      candidate.accumulator = NumberFormat::f32();
    candidate.deriveDivisors();
    if (llvm::Error other = checkProblem(candidate, target)) {
      llvm::consumeError(std::move(other));
      continue;
    }
    return ResolvedProblem{
        candidate, "activations of " + activation.str() + " in place of " +
                       problem.activation.str() + ": " + why};
  }
  return llvm::createStringError(why);
}
