//===- HQuantInterfaces.td - Interfaces of the hquant dialect -*- tablegen -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_DIALECT_HQUANT_IR_HQUANTINTERFACES_TD
#define HUMMING_DIALECT_HQUANT_IR_HQUANTINTERFACES_TD

include "mlir/IR/OpBase.td"

def HQuant_MmaAttrInterface : AttrInterface<"MmaAttrInterface"> {
  let cppNamespace = "::humming::hquant";
  let description = [{
    One tensor-core instruction family, as generic passes see it: how much it
    multiplies, what its registers hold, and how to emit it. Passes never ask
    which chip they compile for; they ask the kind.

    The unit of all methods is a *step*: the 256 / A values of K (A = bits of an
    activation) that 32 bytes of an activation row hold. A fragment's spread over
    lanes is that of mma m16n8k(256/A), whatever instruction a kind emits:

    - A (weights): 4 registers a step. With g = lane / 4, t = lane % 4, register
      r, element i: row g + 8 (r & 1), k = (128/A) (r >> 1) + (32/A) t + i.
    - B (activations): 2 registers a step, register r, element i:
      column g, k = (128/A) r + (32/A) t + i.
    - C (accumulators): 4 values; value v: row g + 8 (v >> 1), column 2 t + (v & 1).
  }];
  let methods = [
    InterfaceMethod<"Rows of the result: output features.", "int64_t", "getRows">,
    InterfaceMethod<"Columns of the result: tokens.", "int64_t", "getColumns">,
    InterfaceMethod<"Reduction elements of one instruction.", "int64_t",
                    "getDepth">,
    InterfaceMethod<"Reduction elements of one step.", "int64_t",
                    "getStepDepth">,
    InterfaceMethod<"Format of the weights' operand.", "::humming::NumberFormat",
                    "getOperandFormat">,
    InterfaceMethod<"32-bit registers a lane holds of A per step.", "int64_t",
                    "getNumARegisters">,
    InterfaceMethod<"32-bit registers a lane holds of B per step.", "int64_t",
                    "getNumBRegisters">,
    InterfaceMethod<"Accumulators a lane holds.", "int64_t",
                    "getNumAccumulators">,
    InterfaceMethod<[{
      Emits the multiplication of one step: `a` and `b` are i32 registers, `c`
      f32 accumulators; returns the new accumulators. Of `parts` equal parts of
      the step's K (1, 2 or 4, of at least 16 each) only part `part` is
      multiplied: A is zero in the others (`keepPart`; of a warpgroup's step the
      caller has seen to that, before the fence), or left out by an instruction
      of less depth.
    }], "::llvm::SmallVector<::mlir::Value>", "buildStep",
        (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
             "::mlir::ValueRange":$a, "::mlir::ValueRange":$b,
             "::mlir::ValueRange":$c, "int64_t":$part, "int64_t":$parts)>,
  ];
}

#endif // HUMMING_DIALECT_HQUANT_IR_HQUANTINTERFACES_TD
