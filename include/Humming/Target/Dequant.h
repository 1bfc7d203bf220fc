//===- Dequant.h - Which codes become which operands, and the cost -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The facts about dequantization that choosing, legality and the lowering
// share. The sequences themselves are in lib/Transforms; a test holds their
// instructions against the counts here.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TARGET_DEQUANT_H
#define HUMMING_TARGET_DEQUANT_H

#include "Humming/Quant/QuantType.h"
#include "llvm/Support/Error.h"

namespace humming {

/// Checks that codes of `type` (format, table, kind of zero points) have a
/// sequence to `operand` that keeps every value exactly (tables: rounded once
/// to the operand). Error: "expected ..., got ..." without a rule number.
llvm::Error checkDequant(const QuantType &type, const NumberFormat &operand);

/// What the weights are dequantized to: the activation's format, or for 8-bit
/// floats, which an MMA can mix, the other one if only that holds the weights.
NumberFormat weightOperand(const QuantType &type,
                           const NumberFormat &activation);

/// The power of two by which the sequence's result is too small: the value is
/// result * 2^dequantExponent. 0 for 16-bit operands; negative where the result
/// is too large: integers without zero points lie at the top of wider ones.
int32_t dequantExponent(const QuantType &type, const NumberFormat &operand);

/// Whether scales of `type` can be multiplied into the dequantized operands:
/// they are of the operand's own 16-bit format, or there is a short conversion
/// to it and the product of weight and scale is exact (e8m0 for bf16; e4m3
/// where the chip converts it, `nativeConvert`).
bool scalesFitOperand(const QuantType &type, const NumberFormat &operand,
                      bool nativeConvert);

/// What one dequantization costs, in instructions a lane. A lop3, prmt, shift,
/// packed fma or conversion counts one; bit casts and constants nothing.
struct DequantCost {
  double perWeights8 =
      0;               ///< for 8 weights, without the multiplication by a scale
  double perGroup = 0; ///< for the zero points of a group (two rows)
  double perScale = 0; ///< for a group's scales on the operand (two rows)
};
/// `nativeConvert`: the chip converts e4m3 to f16. checkDequant must hold.
DequantCost dequantCost(const QuantType &type, const NumberFormat &operand,
                        bool nativeConvert);

/// Bit of a 16-bit operand's mantissa at which the sequences of integers put
/// the codes of register `index` (rows g and g + 8, docs/Formats.md); what is
/// there is brought back by a multiplication. Positions are chosen so that
/// registers share shifted words; integer zero points cost a constant a
/// position.
int32_t mantissaPosition(const NumberFormat &weight,
                         const NumberFormat &operand, bool integerZeroPoints,
                         int64_t index);

} // namespace humming

#endif // HUMMING_TARGET_DEQUANT_H
