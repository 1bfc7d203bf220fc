//===- Mma.h - mma.sync, ldmatrix, stmatrix, movmatrix ----------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers are passed as pointers to 32 words, one word per lane:
// `a[r][lane]`. An f64 register is two of them, low word first. Results may
// alias inputs.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_EMULATOR_MMA_H
#define HUMMING_LIB_EMULATOR_MMA_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace humming {
namespace ptx {

enum class MmaType : uint8_t {
  F16,
  BF16,
  TF32,
  F64,
  E4M3,
  E5M2,
  S8,
  U8,
  S4,
  U4,
  B1,
  F32,
  S32,
};
unsigned bitWidth(MmaType type);
bool isInteger(MmaType type);
/// "f16", "e4m3", ...; parse gives false for anything else.
llvm::StringRef name(MmaType type);
bool parseMmaType(llvm::StringRef text, MmaType &type);

/// One dense mma.sync. A is row-major and B column-major except for m8n8k4
/// f16, where both are free.
struct MmaInstr {
  uint16_t m = 16, n = 8, k = 16;
  MmaType a = MmaType::F16, b = MmaType::F16;
  MmaType c = MmaType::F32, d = MmaType::F32;
  bool satfinite = false; ///< s32 accumulators clamp instead of wrapping
  bool andPopc = false;   ///< b1: .and.popc instead of .xor.popc
  bool aColumn = false;   ///< m8n8k4 f16 only: A is .col
  bool bRow = false;      ///< m8n8k4 f16 only: B is .row
};

/// Whether sm_75..sm_90 have the instruction. Error: names what is wrong.
llvm::Error verifyMma(const MmaInstr &instr);

/// 32-bit registers per lane of each operand.
unsigned mmaRegistersA(const MmaInstr &instr);
unsigned mmaRegistersB(const MmaInstr &instr);
unsigned mmaRegistersC(const MmaInstr &instr);
unsigned mmaRegistersD(const MmaInstr &instr);

/// Matrix coordinates of one element of a lane's fragment. `element` counts
/// elements in register order (element i of register r of a 16-bit operand is
/// 2 * r + i). For B, row is k and column is n.
struct MmaCoord {
  uint16_t row, column;
};
MmaCoord mmaCoordA(const MmaInstr &instr, unsigned lane, unsigned element);
MmaCoord mmaCoordB(const MmaInstr &instr, unsigned lane, unsigned element);
MmaCoord mmaCoordC(const MmaInstr &instr, unsigned lane, unsigned element);

/// D = A * B + C for one warp. The instruction must pass verifyMma, and the
/// arrays must hold the number of registers given above. See
/// MmaCore.cpp for the model of the accumulation.
void mmaSync(const MmaInstr &instr, llvm::ArrayRef<uint32_t *> d,
             llvm::ArrayRef<const uint32_t *> a,
             llvm::ArrayRef<const uint32_t *> b,
             llvm::ArrayRef<const uint32_t *> c);

/// Upper bound of |hardware - exact| for one output of an f16/bf16/tf32/fp8
/// MMA: \p k products with sum of magnitudes \p sumAbs (|c| included), of which
/// the largest is \p maxAbs. \p accumulator is F32 or F16.
double mmaErrorBound(MmaType input, MmaType accumulator, unsigned k,
                     double sumAbs, double maxAbs);

//===----------------------------------------------------------------------===//
// Matrix loads and stores of 8x8 b16 tiles
//===----------------------------------------------------------------------===//

/// ldmatrix/stmatrix .m8n8.xN.b16: row `row` of tile `tile` is 16 bytes at the
/// address held by this lane.
inline unsigned ldmatrixAddressLane(unsigned tile, unsigned row) {
  return 8 * tile + row;
}
/// The tile element (row, column) that is half `half` of lane `lane`'s
/// register.
inline MmaCoord ldmatrixCoord(unsigned lane, unsigned half, bool trans) {
  uint16_t major = lane / 4, minor = 2 * (lane % 4) + half;
  return trans ? MmaCoord{minor, major} : MmaCoord{major, minor};
}
/// Distributes the 8 rows (8 halves each, row-major) of a tile over 32 lanes.
void ldmatrixDistribute(const uint16_t tile[64], bool trans, uint32_t reg[32]);
/// The inverse: what stmatrix writes.
void stmatrixCollect(const uint32_t reg[32], bool trans, uint16_t tile[64]);
/// movmatrix.sync.aligned.m8n8.trans.b16. \p d may alias \p a.
void movmatrix(const uint32_t a[32], uint32_t d[32]);

} // namespace ptx
} // namespace humming

#endif // HUMMING_LIB_EMULATOR_MMA_H
