//===- TargetInfo.h - Facts of one GPU architecture -------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Architecture is data: one row per SM in lib/Target/TargetInfo.cpp, the source
// of every number beside it. No other library compares SM numbers.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TARGET_TARGETINFO_H
#define HUMMING_TARGET_TARGETINFO_H

#include "Humming/Quant/NumberFormat.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace humming {

/// Tensor-core instruction family of a 16-bit or 8-bit MMA step.
enum class MmaKind : uint8_t {
  M16N8K8,  ///< mma.sync m16n8k8, f16 (sm_75)
  M16N8K16, ///< mma.sync m16n8k16, f16/bf16 (sm_80+)
  M16N8K32, ///< mma.sync m16n8k32, s8 (sm_80+), e4m3 and e5m2 (sm_89+)
  M16N8K64, ///< mma.sync m16n8k64, s4 (sm_80+)
  M8N8K16,  ///< mma.sync m8n8k16, s8 (sm_75)
  Wgmma,    ///< wgmma m64nNk16, A in registers, B in shared memory (sm_90a)
};
llvm::StringRef stringify(MmaKind kind);

/// How tiles travel from global to shared memory.
enum class CopyKind : uint8_t {
  Sync,    ///< ld.global + st.shared through registers, double buffered
  CpAsync, ///< cp.async groups (sm_80+)
  Bulk,    ///< a producer warpgroup: cp.async.bulk, cp.async and mbarriers
           ///< (sm_90+)
  Tensor,  ///< a producer warp: cp.async.bulk, cp.async.bulk.tensor by tensor
           ///< maps, and mbarriers (sm_90+)
};
llvm::StringRef stringify(CopyKind kind);

/// Facts of one SM version.
struct TargetInfo {
  llvm::StringLiteral chip;     ///< `sm_80`
  int32_t smVersion;            ///< 80
  int32_t numSMs;               ///< of the reference part of this row
  int32_t sharedMemoryPerBlock; ///< opt-in maximum, bytes
  int32_t sharedMemoryPerSM;    ///< bytes
  int32_t registersPerSM;       ///< 32-bit registers
  int32_t maxThreadsPerSM;
  int32_t maxBlocksPerSM;
  double memoryBandwidth; ///< bytes per second, sustained
  double mmaRate16;       ///< dense f16 multiply-adds per clock and SM
  double clockHz;         ///< sustained SM clock
  bool hasBf16Mma;
  bool hasBf16Arithmetic; ///< native fma.rn.bf16x2
  bool hasCpAsync;
  int32_t minPtxVersion;            ///< least .version for the chip, 63 = 6.3
  llvm::ArrayRef<MmaKind> mmaKinds; ///< best first
  int64_t l2Bytes;                  ///< L2 cache of the reference part
  int32_t sharedMemoryReserved;     ///< bytes the system takes per block
  double mmaSyncShare;              ///< of mmaRate16 that mma.sync reaches
  bool hasGridDependency = false;   ///< griddepcontrol (sm_90 on)
  bool hasBulkCopy = false;         ///< cp.async.bulk, mbarrier.try_wait
  bool hasClusters = false;         ///< of up to 8 blocks (sm_90 on)
  bool hasTensorCopy = false;       ///< cp.async.bulk.tensor

  /// True if the chip runs `kind` on operands of format `operand`.
  bool supports(MmaKind kind, const NumberFormat &operand) const;
  /// True if cvt converts between 8-bit floats and f16 (sm_89 on).
  bool convertsFp8() const;
  /// True if the assembler makes mma.sync of 8-bit floats out of conversions
  /// and f16 MMAs (seen in ptxas 13.0's code for sm_90 and sm_90a).
  bool emulatesFp8Mma() const;
};

/// The row of `chip`. Error: names the chip and lists the known ones.
llvm::Expected<const TargetInfo *> getTargetInfo(llvm::StringRef chip);
/// All rows, oldest first.
llvm::ArrayRef<TargetInfo> getAllTargets();

/// Features of PTX whose version requirement is in the table of
/// PtxVersions.cpp.
enum class PtxFeature : uint8_t {
  MmaM16N8K8F16,
  MmaM16N8K16,
  MmaM8N8K16Int8,
  CpAsync,
  LdMatrix,
  Bf16Arithmetic, ///< fma.rn.bf16x2; native add/sub/mul where they exist
  MmaInt8,        ///< m16n8k32 s8/u8
  MmaInt4,        ///< m16n8k64 s4/u4
  MmaFp8,         ///< m16n8k32 e4m3/e5m2
  MmaFp8HalfSums, ///< the same with f16 sums
  MmaBlockScale,  ///< kind::mxf4, kind::mxf4nvf4, kind::mxf8f6f4
  CacheHint,      ///< createpolicy, L1/L2 eviction and prefetch qualifiers
  StMatrix,
  Mbarrier, ///< init, arrive, test_wait
  MbarrierTryWait,
  Cluster,        ///< cluster special registers, barriers, mapa
  GridDependency, ///< griddepcontrol
  ElectSync,
  SetMaxNReg,
  BulkCopy,      ///< cp.async.bulk into .shared::cluster
  BulkCopyToCta, ///< cp.async.bulk into .shared::cta
  TensorCopy,    ///< cp.async.bulk.tensor (TMA)
  Wgmma,
  ConvertFp8, ///< cvt between e4m3x2/e5m2x2 and f16x2/f32
  ConvertFp4, ///< cvt between e2m1x2 and f16x2/f32
  Tcgen05,
};
/// The least PTX version (63 = 6.3) that `chip` and all of `features` need.
int32_t requiredPtxVersion(const TargetInfo &target,
                           llvm::ArrayRef<PtxFeature> features);

} // namespace humming

#endif // HUMMING_TARGET_TARGETINFO_H
