//===- PtxVersions.cpp - The PTX version that instructions need --- -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's default PTX version is the oldest one for the chip, and an instruction
// that needs a newer one is not diagnosed but aborts instruction selection. So
// the emitted version is computed here, from the features a kernel uses, before
// code generation starts. The lowest version is taken because a driver refuses
// PTX newer than itself.
//
// Worked example: m16n8k8 on sm_75 with ldmatrix. The chip alone needs 6.3,
// both instructions 6.5: `.version 6.5`.
//
// Source of every number: "PTX ISA Notes" / "Introduced in PTX ISA version" of
// the instruction in the PTX ISA, and the release history for chips.
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/TargetInfo.h"
#include <algorithm>

using namespace humming;

/// The PTX version that introduced `feature` for the SM of `target`.
static int32_t versionOf(PtxFeature feature, const TargetInfo &target) {
  switch (feature) {
  case PtxFeature::MmaM16N8K8F16:
  case PtxFeature::MmaM8N8K16Int8:
  case PtxFeature::LdMatrix:
    return 65;
  case PtxFeature::MmaM16N8K16:
  case PtxFeature::MmaInt8:
  case PtxFeature::MmaInt4:
  case PtxFeature::CpAsync:
  case PtxFeature::Mbarrier:
    return 70;
  case PtxFeature::Bf16Arithmetic:
    // fma.rn.bf16x2 is of 7.0; from sm_90 on LLVM selects the native add, sub
    // and mul, which are of 7.8.
    return target.smVersion >= 90 ? 78 : 70;
  case PtxFeature::CacheHint:
    return 74;
  case PtxFeature::StMatrix:
  case PtxFeature::MbarrierTryWait:
  case PtxFeature::Cluster:
  case PtxFeature::GridDependency:
    return 78;
  case PtxFeature::ConvertFp8:
    // 7.8 for sm_90, extended to sm_89 by 8.1.
    return target.smVersion >= 90 ? 78 : 81;
  case PtxFeature::ElectSync:
  case PtxFeature::SetMaxNReg:
  case PtxFeature::BulkCopy:
  case PtxFeature::TensorCopy:
  case PtxFeature::Wgmma:
    return 80;
  case PtxFeature::MmaFp8:
    return 84;
  case PtxFeature::BulkCopyToCta:
  case PtxFeature::ConvertFp4:
  case PtxFeature::Tcgen05:
    return 86;
  case PtxFeature::MmaBlockScale:
  case PtxFeature::MmaFp8HalfSums:
    return 87;
  }
  return 0;
}

int32_t humming::requiredPtxVersion(const TargetInfo &target,
                                    llvm::ArrayRef<PtxFeature> features) {
  int32_t version = target.minPtxVersion;
  for (PtxFeature feature : features)
    version = std::max(version, versionOf(feature, target));
  return version;
}
