//===- FallbackTest.cpp - The ordered list of every chip ------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/Fallback.h"
#include "gtest/gtest.h"

using namespace humming;

namespace {

/// What runs for `activation` on `chip`, or the error.
std::string runs(llvm::StringRef activation, llvm::StringRef chip) {
  MatmulProblem p;
  p.n = p.k = 1024;
  p.activation = llvm::cantFail(NumberFormat::parse(activation));
  if (p.activation.bits < 16)
    p.activationScale = ActivationScaleKind::Token;
  p.deriveDivisors();
  auto resolved = resolveFallback(p, **getTargetInfo(chip));
  if (!resolved)
    return llvm::toString(resolved.takeError());
  EXPECT_EQ(resolved->note.empty(),
            resolved->problem.activation == p.activation);
  EXPECT_EQ(resolved->problem.activationScale == ActivationScaleKind::None,
            resolved->problem.activation.bits == 16);
  return resolved->problem.activation.str();
}

TEST(Fallback, EveryChip) {
  EXPECT_EQ(runs("e4m3", "sm_75"), "f16");
  EXPECT_EQ(runs("e4m3", "sm_80"), "bf16");
  EXPECT_EQ(runs("e5m2", "sm_86"), "bf16");
  EXPECT_EQ(runs("e4m3", "sm_89"), "e4m3");
  EXPECT_EQ(runs("s8", "sm_75"), "s8");
  EXPECT_EQ(runs("s4", "sm_75"), "s8");
  EXPECT_EQ(runs("s4", "sm_80"), "s4");
  EXPECT_EQ(runs("bf16", "sm_75"), "f16");
  EXPECT_EQ(runs("f16", "sm_75"), "f16");
}

TEST(Fallback, SaysWhyAndKeepsOtherErrors) {
  MatmulProblem p;
  p.activation = NumberFormat::smallFloat(4, 3);
  p.activationScale = ActivationScaleKind::Token;
  p.n = p.k = 1024;
  p.deriveDivisors();
  const TargetInfo &ampere = **getTargetInfo("sm_80");
  EXPECT_EQ(llvm::cantFail(resolveFallback(p, ampere)).note,
            "activations of bf16 in place of e4m3: rule P3: expected "
            "activations of f16 on sm_80, which has no e4m3 MMA, got e4m3");
  p.weight.granularity = Granularity::group(48);
  auto failed = resolveFallback(p, ampere);
  ASSERT_FALSE(bool(failed));
  EXPECT_EQ(llvm::toString(failed.takeError()).substr(0, 8), "rule P3:");
}

TEST(Fallback, DropsWhatTheNextFormatLacks) {
  MatmulProblem p;
  p.activation = NumberFormat::signedInt(4);
  p.activationScale = ActivationScaleKind::Token;
  p.activationGroup = 64;
  p.activationScaleFormat = NumberFormat::e8m0();
  p.n = p.k = 1024;
  p.deriveDivisors();
  // s8 has scales of groups, 16-bit activations have none.
  MatmulProblem s8 =
      llvm::cantFail(resolveFallback(p, **getTargetInfo("sm_75"))).problem;
  EXPECT_EQ(s8.activation, NumberFormat::signedInt(8));
  EXPECT_EQ(s8.activationGroup, 64);
  EXPECT_TRUE(s8.activationScaleFormat.isE8M0());
  p.activation = NumberFormat::smallFloat(4, 3);
  MatmulProblem bf16 =
      llvm::cantFail(resolveFallback(p, **getTargetInfo("sm_80"))).problem;
  EXPECT_TRUE(bf16.activation.isBF16());
  EXPECT_EQ(bf16.activationGroup, 0);
  EXPECT_TRUE(bf16.activationScaleFormat.isF32());
}

} // namespace
