//===- Wgmma.h - wgmma.mma_async and its matrix descriptors -----*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp group's registers are passed as pointers to 32 words, warp by warp:
// register r of warp w is `d[w * registers + r][lane]`. Shared memory is read
// in 16-byte chunks through a callback, so that the caller can check bounds and
// races; all the layouts of the ISA move 16-byte chunks as wholes.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_EMULATOR_WGMMA_H
#define HUMMING_LIB_EMULATOR_WGMMA_H

#include "Humming/Emulator/TensorMap.h"
#include "Mma.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace humming {
namespace ptx {

/// One dense wgmma.mma_async.m64nNkK. a and b are F16, BF16, TF32, E4M3, E5M2,
/// S8, U8 or B1; d is F32, F16 or S32.
struct WgmmaInstr {
  uint16_t n = 8, k = 16;
  MmaType a = MmaType::F16, b = MmaType::F16, d = MmaType::F32;
  bool aInRegisters = false;
  bool negateA = false, negateB = false; ///< imm-scale-a/b of -1
  bool transA = false, transB = false;   ///< MN-major; 16-bit types only
  bool satfinite = false;                ///< integer types
  bool scaleD = true;                    ///< false: D = A * B
};

/// Error: names what the ISA does not have.
llvm::Error verifyWgmma(const WgmmaInstr &instr);
/// 32-bit registers per lane: A in registers (4), accumulator.
unsigned wgmmaRegistersA(const WgmmaInstr &instr);
unsigned wgmmaRegistersD(const WgmmaInstr &instr);

/// The 64-bit matrix descriptor, decoded to bytes.
struct WgmmaDescriptor {
  uint32_t start = 0;   ///< 18-bit shared address
  uint32_t leading = 0; ///< leading dimension byte offset (LBO)
  uint32_t stride = 0;  ///< stride dimension byte offset (SBO)
  uint8_t baseOffset = 0;
  TensorSwizzle swizzle = TensorSwizzle::None;

  /// Error: reserved bits set.
  static llvm::Expected<WgmmaDescriptor> decode(uint64_t bits);
  uint64_t encode() const;
};

/// Shared address of the 16-byte chunk that holds element (\p row, \p column)
/// of an operand whose elements have \p elementBits bits: row is M or N, column
/// K.
/// \p transposed (MN-major) chunks run along row, others along K.
uint32_t wgmmaChunkAddress(const WgmmaDescriptor &desc, unsigned elementBits,
                           bool transposed, unsigned row, unsigned column);

/// Byte address of one element (1 byte and wider).
uint32_t wgmmaElementAddress(const WgmmaDescriptor &desc, unsigned elementBits,
                             bool transposed, unsigned row, unsigned column);

/// Addresses of all 16-byte chunks that an operand reads, in reading order.
void wgmmaOperandChunks(const WgmmaInstr &instr, bool operandA,
                        const WgmmaDescriptor &desc,
                        llvm::SmallVectorImpl<uint32_t> &addresses);

/// The same chunks core matrix by core matrix: eight that follow each other
/// are the eight rows of one, which the hardware reads in one pass over the
/// banks if they are in different ones.
void wgmmaOperandPasses(const WgmmaInstr &instr, bool operandA,
                        const WgmmaDescriptor &desc,
                        llvm::SmallVectorImpl<uint32_t> &addresses);

/// Copies 16 bytes of shared memory at a 16-byte aligned address.
using ReadChunk =
    llvm::function_ref<llvm::Error(uint32_t address, uint8_t (&bytes)[16])>;

/// Row and column of accumulator element \p element (counted as in MmaCoord) of
/// thread \p thread (0..127) of the warp group.
MmaCoord wgmmaCoordD(unsigned thread, unsigned element);

/// D = (+-A) * (+-B) + scaleD * D. \p a holds 4 warps x 4 registers when A is
/// in registers and is ignored otherwise; \p d holds 4 warps x registersD.
/// \p zeroColumns gets the number of columns of B that are zeros.
/// Error: from \p read only.
llvm::Error wgmma(const WgmmaInstr &instr, llvm::ArrayRef<uint32_t *> d,
                  llvm::ArrayRef<const uint32_t *> a,
                  const WgmmaDescriptor &descA, const WgmmaDescriptor &descB,
                  ReadChunk read, unsigned *zeroColumns = nullptr);

} // namespace ptx
} // namespace humming

#endif // HUMMING_LIB_EMULATOR_WGMMA_H
