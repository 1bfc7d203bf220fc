//===- DequantSequences.h - Codes of a register to MMA operands -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One builder a class of weights. A builder is given the packed words of a
// unit, then the scales and zero points of a group, and is asked for the
// registers that belong to the group. Within a unit and a group it shares what
// it can: a shifted word, a table's look-up of eight codes, a constant of the
// zero point.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_TRANSFORMS_DEQUANTSEQUENCES_H
#define HUMMING_LIB_TRANSFORMS_DEQUANTSEQUENCES_H

#include "Humming/Quant/QuantType.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace humming {

/// What a sequence turns into what.
struct DequantSpec {
  NumberFormat weight;  ///< of the codes
  NumberFormat operand; ///< of the MMA
  NumberFormat scale;   ///< of scales and float zero points
  std::optional<CodeTable> table;
  ZeroPointKind zeroPoint = ZeroPointKind::None;
  bool hasScales = false;     ///< scales are multiplied into the operand
  bool nativeConvert = false; ///< cvt.rn.f16x2.e4m3x2 may be used
};

/// Builds the registers of one lane's fragment; see the head of the file.
class DequantSequence {
public:
  /// Null where (weight, operand) has no sequence.
  static std::unique_ptr<DequantSequence>
  create(mlir::OpBuilder &b, mlir::Location loc, const DequantSpec &spec);
  virtual ~DequantSequence();

  /// Starts a unit: its `bits` packed words in plane order.
  void beginUnit(llvm::ArrayRef<mlir::Value> unitWords);
  /// Starts a group: a word of two scales or zero points (rows g and g + 8);
  /// null where there are none.
  virtual void beginGroup(mlir::Value scales, mlir::Value zeroPoints) = 0;
  /// Register `index` (4 * step + r) of the unit.
  virtual mlir::Value buildRegister(int64_t index) = 0;

protected:
  using Value = mlir::Value;
  using Type = mlir::Type;

  DequantSequence(mlir::OpBuilder &b, mlir::Location loc,
                  const DequantSpec &spec);

  /// Where the codes of one register lie in the unit's words: plane by plane.
  struct Piece {
    int64_t word;   ///< index of the word
    int64_t shift;  ///< bit of the first code in it
    int64_t bits;   ///< width of the plane
    int64_t weight; ///< position of the plane's bits in the code
  };
  llvm::SmallVector<Piece> piecesOf(int64_t index) const;
  /// Which of a lane's two rows register `index` holds.
  static int64_t rowOf(int64_t index) { return index & 1; }

  /// The mask that repeats `lane` in every lane of a register.
  int64_t lanes(int64_t lane) const;
  /// Word `i` of the unit moved right by `by` bits (left if negative), shared
  /// by all registers that ask for it.
  Value moved(int64_t i, int64_t by);
  /// The codes of a register with their lowest bit at bit `at` of each lane and
  /// all other bits zero; the last logic operation also xors `flip` (a
  /// whole-word constant) in. Costs a shift and a lop3 a plane.
  Value codesAt(int64_t index, int64_t at, int64_t flip = 0);

  // Short spellings.
  Value word(int64_t v);
  Value shiftRight(Value v, int64_t n);
  Value shiftLeft(Value v, int64_t n);
  Value mask(Value v, int64_t m);
  Value merge(Value x, Value y);
  Value flipBits(Value v, int64_t m);
  /// Bits of x where `condition` has ones, of y elsewhere: one lop3.
  Value select(Value condition, Value x, Value y);
  Value permute(Value low, Value high, Value selector);
  Value permute(Value low, Value high, int64_t selector) {
    return permute(low, high, word(selector));
  }
  /// Both halves of a register set to half `row` of `value`.
  Value broadcastHalf(Value value, int64_t row) {
    return permute(value, value, row ? 0x3232 : 0x1010);
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
  DequantSpec spec;
  int64_t bits;
  llvm::SmallVector<Value> words;
  llvm::DenseMap<std::pair<int64_t, int64_t>, Value> movedWords;

  /// Called by beginUnit: drop what belongs to the last unit.
  virtual void resetUnit() {}
};

/// Sequences for f16 and bf16 operands.
std::unique_ptr<DequantSequence>
createSixteenBitSequence(mlir::OpBuilder &b, mlir::Location loc,
                         const DequantSpec &spec);
/// Sequences for 8-bit and 4-bit operands.
std::unique_ptr<DequantSequence> createNarrowSequence(mlir::OpBuilder &b,
                                                      mlir::Location loc,
                                                      const DequantSpec &spec);

} // namespace humming

#endif // HUMMING_LIB_TRANSFORMS_DEQUANTSEQUENCES_H
