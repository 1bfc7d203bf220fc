//===- TargetInfoTest.cpp - Facts per SM and PTX versions --------- -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/TargetInfo.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Error.h"
#include "gtest/gtest.h"

using namespace humming;

namespace {

const TargetInfo &target(llvm::StringRef chip) {
  return *llvm::cantFail(getTargetInfo(chip));
}

TEST(TargetInfo, FindsEveryRowByItsName) {
  ASSERT_EQ(getAllTargets().size(), 7u);
  for (const TargetInfo &row : getAllTargets())
    EXPECT_EQ(&target(row.chip), &row);
}

TEST(TargetInfo, UnknownChipListsTheKnownOnes) {
  for (llvm::StringRef chip : {"sm_91", "", "SM_80", "sm_8", "sm_800"}) {
    auto result = getTargetInfo(chip);
    ASSERT_FALSE(bool(result));
    EXPECT_EQ(llvm::toString(result.takeError()),
              "unknown chip: expected one of sm_75, sm_80, sm_86, sm_87, "
              "sm_89, sm_90, sm_90a, got '" +
                  chip.str() + "'");
  }
}

// What the CUDA programming guide says of each compute capability.
TEST(TargetInfo, Limits) {
  struct Row {
    const char *chip;
    int32_t block, sm, threads, blocks;
  };
  for (const Row &row : {Row{"sm_75", 65536, 65536, 1024, 16},
                         Row{"sm_80", 166912, 167936, 2048, 32},
                         Row{"sm_86", 101376, 102400, 1536, 16},
                         Row{"sm_87", 166912, 167936, 1536, 16},
                         Row{"sm_89", 101376, 102400, 1536, 24},
                         Row{"sm_90", 232448, 233472, 2048, 32},
                         Row{"sm_90a", 232448, 233472, 2048, 32}}) {
    SCOPED_TRACE(row.chip);
    const TargetInfo &t = target(row.chip);
    EXPECT_EQ(t.sharedMemoryPerBlock, row.block);
    EXPECT_EQ(t.sharedMemoryPerSM, row.sm);
    EXPECT_EQ(t.maxThreadsPerSM, row.threads);
    EXPECT_EQ(t.maxBlocksPerSM, row.blocks);
    EXPECT_EQ(t.registersPerSM, 65536);
    // What a block may take and what the system takes of it fit the SM.
    EXPECT_LE(t.sharedMemoryPerBlock + t.sharedMemoryReserved,
              t.sharedMemoryPerSM);
    EXPECT_GT(t.memoryBandwidth, 1e11);
    EXPECT_GT(t.clockHz, 1e9);
    EXPECT_FALSE(t.mmaKinds.empty());
  }
}

TEST(TargetInfo, SupportedMma) {
  NumberFormat f16 = NumberFormat::f16(), bf16 = NumberFormat::bf16();
  EXPECT_TRUE(target("sm_75").supports(MmaKind::M16N8K8, f16));
  EXPECT_FALSE(target("sm_75").supports(MmaKind::M16N8K16, f16));
  EXPECT_FALSE(target("sm_75").supports(MmaKind::M16N8K8, bf16));
  for (llvm::StringRef chip : {"sm_80", "sm_86", "sm_87", "sm_89", "sm_90"}) {
    EXPECT_TRUE(target(chip).supports(MmaKind::M16N8K16, f16));
    EXPECT_TRUE(target(chip).supports(MmaKind::M16N8K16, bf16));
    EXPECT_TRUE(target(chip).supports(MmaKind::M16N8K8, f16));
    EXPECT_FALSE(target(chip).supports(MmaKind::M16N8K8, bf16));
    EXPECT_FALSE(target(chip).supports(MmaKind::M16N8K16, NumberFormat::f32()));
    EXPECT_EQ(target(chip).mmaKinds.front(), MmaKind::M16N8K16);
  }
}

TEST(PtxVersions, ChipMinima) {
  EXPECT_EQ(requiredPtxVersion(target("sm_75"), {}), 63);
  EXPECT_EQ(requiredPtxVersion(target("sm_80"), {}), 70);
  EXPECT_EQ(requiredPtxVersion(target("sm_86"), {}), 71);
  EXPECT_EQ(requiredPtxVersion(target("sm_87"), {}), 74);
  EXPECT_EQ(requiredPtxVersion(target("sm_89"), {}), 78);
  EXPECT_EQ(requiredPtxVersion(target("sm_90"), {}), 78);
  EXPECT_EQ(requiredPtxVersion(target("sm_90a"), {}), 80);
}

TEST(PtxVersions, FeaturesRaiseTheMinimum) {
  using F = PtxFeature;
  EXPECT_EQ(requiredPtxVersion(target("sm_75"), {F::MmaM16N8K8F16}), 65);
  EXPECT_EQ(requiredPtxVersion(target("sm_75"), {F::LdMatrix}), 65);
  EXPECT_EQ(requiredPtxVersion(target("sm_80"),
                               {F::MmaM16N8K16, F::CpAsync, F::Bf16Arithmetic}),
            70);
  EXPECT_EQ(requiredPtxVersion(target("sm_80"), {F::CacheHint}), 74);
  EXPECT_EQ(requiredPtxVersion(target("sm_86"), {F::CpAsync}), 71);
  EXPECT_EQ(requiredPtxVersion(target("sm_89"), {F::ConvertFp8}), 81);
  EXPECT_EQ(requiredPtxVersion(target("sm_89"), {F::MmaFp8}), 84);
  EXPECT_EQ(requiredPtxVersion(target("sm_90"), {F::ConvertFp8}), 78);
  EXPECT_EQ(requiredPtxVersion(target("sm_90"), {F::Bf16Arithmetic}), 78);
  EXPECT_EQ(requiredPtxVersion(target("sm_90a"), {F::Wgmma, F::StMatrix}), 80);
  EXPECT_EQ(requiredPtxVersion(target("sm_90a"), {F::BulkCopyToCta}), 86);
}

// LLVM has no feature for some numbers between the first and the last; naming a
// missing one is a fatal error in it.
TEST(PtxVersions, OnlyVersionsThatExist) {
  const int32_t existing[] = {63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77,
                              78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90};
  for (const TargetInfo &t : getAllTargets())
    for (unsigned f = 0; f <= unsigned(PtxFeature::Tcgen05); ++f)
      EXPECT_TRUE(
          llvm::is_contained(existing, requiredPtxVersion(t, {PtxFeature(f)})))
          << t.chip.str() << " feature " << f;
}

TEST(TargetInfo, Names) {
  EXPECT_EQ(stringify(MmaKind::M16N8K8), "m16n8k8");
  EXPECT_EQ(stringify(MmaKind::M16N8K16), "m16n8k16");
  EXPECT_EQ(stringify(CopyKind::Sync), "sync");
  EXPECT_EQ(stringify(CopyKind::CpAsync), "cp.async");
}

} // namespace
