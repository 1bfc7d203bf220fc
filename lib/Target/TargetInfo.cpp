//===- TargetInfo.cpp - One row of facts per SM version ---------- -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sources of the table, named per column:
//   limits per SM and block    CUDA C++ Programming Guide, table "Technical
//                              Specifications per Compute Capability"
//   SMs, clock, bandwidth, L2  data sheet of the reference part of the row
//   mmaRate16                  data sheet: dense f16 tensor FLOP/s with f32
//                              accumulation / (2 * SMs * clock)
//   minPtxVersion              PTX ISA, table "Release History"
//
// Bandwidth is what a long copy sustains. On an H200 it was measured (4.27 of
// 4.8 TB/s, 89 %); the other rows take the same share of their data sheet.
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/TargetInfo.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <string>

using namespace humming;

llvm::StringRef humming::stringify(MmaKind kind) {
  switch (kind) {
  case MmaKind::M16N8K8:
    return "m16n8k8";
  case MmaKind::M16N8K16:
    return "m16n8k16";
  case MmaKind::M16N8K32:
    return "m16n8k32";
  case MmaKind::M16N8K64:
    return "m16n8k64";
  case MmaKind::M8N8K16:
    return "m8n8k16";
  case MmaKind::Wgmma:
    return "wgmma";
  }
  return "unknown";
}

llvm::StringRef humming::stringify(CopyKind kind) {
  switch (kind) {
  case CopyKind::Sync:
    return "sync";
  case CopyKind::CpAsync:
    return "cp.async";
  case CopyKind::Bulk:
    return "bulk";
  case CopyKind::Tensor:
    return "tensor";
  }
  return "unknown";
}

namespace {

// PTX ISA, mma: m16n8k32 of integers and m16n8k64 require sm_80, m8n8k16 sm_75.
constexpr MmaKind turingMma[] = {MmaKind::M16N8K8, MmaKind::M8N8K16};
constexpr MmaKind ampereMma[] = {MmaKind::M16N8K16, MmaKind::M16N8K8,
                                 MmaKind::M16N8K32, MmaKind::M16N8K64};
constexpr MmaKind hopperMma[] = {MmaKind::Wgmma, MmaKind::M16N8K16,
                                 MmaKind::M16N8K8, MmaKind::M16N8K32,
                                 MmaKind::M16N8K64};

/// Share of the data sheet's bandwidth that a copy sustains.
constexpr double sustained = 0.89;

constexpr int32_t KiB = 1024;
constexpr int64_t MiB = 1024 * 1024;

constexpr TargetInfo makeHopper(llvm::StringLiteral chip, int32_t minPtx,
                                llvm::ArrayRef<MmaKind> mmaKinds) {
  // Reference part: H200 SXM (data sheet: 132 SMs, 4.8 TB/s HBM3e, 50 MB L2,
  // 989 TFLOP/s f16, which is 2048 multiply-adds per clock and SM at 1.83 GHz).
  // The bandwidth is measured. mma.sync reaches about 62 % of the rate, which
  // needs wgmma (Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU
  // Architecture", 2024).
  return {/*chip=*/chip,
          /*smVersion=*/90,
          /*numSMs=*/132,
          /*sharedMemoryPerBlock=*/227 * KiB,
          /*sharedMemoryPerSM=*/228 * KiB,
          /*registersPerSM=*/65536,
          /*maxThreadsPerSM=*/2048,
          /*maxBlocksPerSM=*/32,
          /*memoryBandwidth=*/4.27e12,
          /*mmaRate16=*/2048,
          /*clockHz=*/1.83e9,
          /*hasBf16Mma=*/true,
          /*hasBf16Arithmetic=*/true,
          /*hasCpAsync=*/true,
          /*minPtxVersion=*/minPtx,
          /*mmaKinds=*/mmaKinds,
          /*l2Bytes=*/50 * MiB,
          /*sharedMemoryReserved=*/1 * KiB,
          /*mmaSyncShare=*/0.62,
          /*hasGridDependency=*/true,
          /*hasBulkCopy=*/true,
          /*hasClusters=*/true,
          /*hasTensorCopy=*/true};
}

constexpr TargetInfo targets[] = {
    // Reference part: T4 (data sheet: 40 SMs, 320 GB/s GDDR6, 4 MB L2,
    // 65 TFLOP/s f16 at 1.59 GHz).
    {/*chip=*/"sm_75",
     /*smVersion=*/75,
     /*numSMs=*/40,
     /*sharedMemoryPerBlock=*/64 * KiB,
     /*sharedMemoryPerSM=*/64 * KiB,
     /*registersPerSM=*/65536,
     /*maxThreadsPerSM=*/1024,
     /*maxBlocksPerSM=*/16,
     /*memoryBandwidth=*/sustained * 320e9,
     /*mmaRate16=*/512,
     /*clockHz=*/1.59e9,
     /*hasBf16Mma=*/false,
     /*hasBf16Arithmetic=*/false,
     /*hasCpAsync=*/false,
     /*minPtxVersion=*/63,
     /*mmaKinds=*/turingMma,
     /*l2Bytes=*/4 * MiB,
     /*sharedMemoryReserved=*/0,
     /*mmaSyncShare=*/0.9},
    // Reference part: A100 SXM 80 GB (data sheet: 108 SMs, 2039 GB/s HBM2e,
    // 40 MB L2, 312 TFLOP/s f16 at 1.41 GHz).
    {/*chip=*/"sm_80",
     /*smVersion=*/80,
     /*numSMs=*/108,
     /*sharedMemoryPerBlock=*/163 * KiB,
     /*sharedMemoryPerSM=*/164 * KiB,
     /*registersPerSM=*/65536,
     /*maxThreadsPerSM=*/2048,
     /*maxBlocksPerSM=*/32,
     /*memoryBandwidth=*/sustained * 2039e9,
     /*mmaRate16=*/1024,
     /*clockHz=*/1.41e9,
     /*hasBf16Mma=*/true,
     /*hasBf16Arithmetic=*/true,
     /*hasCpAsync=*/true,
     /*minPtxVersion=*/70,
     /*mmaKinds=*/ampereMma,
     /*l2Bytes=*/40 * MiB,
     /*sharedMemoryReserved=*/1 * KiB,
     /*mmaSyncShare=*/0.9},
    // Reference part: RTX A6000 (data sheet: 84 SMs, 768 GB/s GDDR6, 6 MB L2,
    // 155 TFLOP/s f16 at 1.80 GHz; GeForce parts of the same SM have half that
    // rate with f32 accumulation).
    {/*chip=*/"sm_86",
     /*smVersion=*/86,
     /*numSMs=*/84,
     /*sharedMemoryPerBlock=*/99 * KiB,
     /*sharedMemoryPerSM=*/100 * KiB,
     /*registersPerSM=*/65536,
     /*maxThreadsPerSM=*/1536,
     /*maxBlocksPerSM=*/16,
     /*memoryBandwidth=*/sustained * 768e9,
     /*mmaRate16=*/512,
     /*clockHz=*/1.80e9,
     /*hasBf16Mma=*/true,
     /*hasBf16Arithmetic=*/true,
     /*hasCpAsync=*/true,
     /*minPtxVersion=*/71,
     /*mmaKinds=*/ampereMma,
     /*l2Bytes=*/6 * MiB,
     /*sharedMemoryReserved=*/1 * KiB,
     /*mmaSyncShare=*/0.9},
    // Reference part: Jetson AGX Orin 64 GB (data sheet: 16 SMs, 204.8 GB/s
    // LPDDR5, 4 MB L2, 85 TOP/s dense int8 at 1.3 GHz, half that in f16).
    {/*chip=*/"sm_87",
     /*smVersion=*/87,
     /*numSMs=*/16,
     /*sharedMemoryPerBlock=*/163 * KiB,
     /*sharedMemoryPerSM=*/164 * KiB,
     /*registersPerSM=*/65536,
     /*maxThreadsPerSM=*/1536,
     /*maxBlocksPerSM=*/16,
     /*memoryBandwidth=*/sustained * 204.8e9,
     /*mmaRate16=*/1024,
     /*clockHz=*/1.30e9,
     /*hasBf16Mma=*/true,
     /*hasBf16Arithmetic=*/true,
     /*hasCpAsync=*/true,
     /*minPtxVersion=*/74,
     /*mmaKinds=*/ampereMma,
     /*l2Bytes=*/4 * MiB,
     /*sharedMemoryReserved=*/1 * KiB,
     /*mmaSyncShare=*/0.9},
    // Reference part: L40S (data sheet: 142 SMs, 864 GB/s GDDR6, 96 MB L2,
    // 362 TFLOP/s f16 at 2.52 GHz; GeForce parts of the same SM have half that
    // rate with f32 accumulation).
    {/*chip=*/"sm_89",
     /*smVersion=*/89,
     /*numSMs=*/142,
     /*sharedMemoryPerBlock=*/99 * KiB,
     /*sharedMemoryPerSM=*/100 * KiB,
     /*registersPerSM=*/65536,
     /*maxThreadsPerSM=*/1536,
     /*maxBlocksPerSM=*/24,
     /*memoryBandwidth=*/sustained * 864e9,
     /*mmaRate16=*/512,
     /*clockHz=*/2.52e9,
     /*hasBf16Mma=*/true,
     /*hasBf16Arithmetic=*/true,
     /*hasCpAsync=*/true,
     /*minPtxVersion=*/78,
     /*mmaKinds=*/ampereMma,
     /*l2Bytes=*/96 * MiB,
     /*sharedMemoryReserved=*/1 * KiB,
     /*mmaSyncShare=*/0.9},
    makeHopper("sm_90", 78, ampereMma),
    makeHopper("sm_90a", 80, hopperMma),
};

} // namespace

llvm::ArrayRef<TargetInfo> humming::getAllTargets() { return targets; }

bool TargetInfo::supports(MmaKind kind, const NumberFormat &operand) const {
  if (!llvm::is_contained(mmaKinds, kind))
    return false;
  switch (kind) {
  case MmaKind::M8N8K16:
    return operand == NumberFormat::signedInt(8);
  case MmaKind::M16N8K64:
    return operand == NumberFormat::signedInt(4);
  case MmaKind::M16N8K32: // 8-bit floats "require sm_89 or higher"
    return operand == NumberFormat::signedInt(8) ||
           (smVersion >= 89 && operand.isFloat() &&
            (operand == NumberFormat::smallFloat(4, 3) ||
             operand == NumberFormat::smallFloat(5, 2)));
  case MmaKind::M16N8K8:
    return operand.isF16();
  case MmaKind::Wgmma: // PTX ISA, wgmma.mma_async: .s8, .e4m3 and .e5m2 as well
    if (operand.bits == 8)
      return operand == NumberFormat::signedInt(8) ||
             operand == NumberFormat::smallFloat(4, 3) ||
             operand == NumberFormat::smallFloat(5, 2);
    [[fallthrough]];
  case MmaKind::M16N8K16:
    return operand.isF16() || (operand.isBF16() && hasBf16Mma);
  }
  return false;
}

// PTX ISA, cvt: "e4m3x2 and e5m2x2 require sm_89 or higher".
bool TargetInfo::convertsFp8() const { return smVersion >= 89; }
bool TargetInfo::emulatesFp8Mma() const { return smVersion == 90; }

llvm::Expected<const TargetInfo *>
humming::getTargetInfo(llvm::StringRef chip) {
  for (const TargetInfo &target : targets)
    if (target.chip == chip)
      return &target;
  std::string known;
  for (const TargetInfo &target : targets) {
    if (!known.empty())
      known += ", ";
    known += target.chip;
  }
  return llvm::createStringError("unknown chip: expected one of " + known +
                                 ", got '" + chip + "'");
}
