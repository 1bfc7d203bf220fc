//===- HQuantDialect.td - The hquant dialect ---------------*- tablegen -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_DIALECT_HQUANT_IR_HQUANTDIALECT
#define HUMMING_DIALECT_HQUANT_IR_HQUANTDIALECT

include "mlir/IR/DialectBase.td"

def HQuant_Dialect : Dialect {
  let name = "hquant";
  let cppNamespace = "::humming::hquant";
  let summary = "Quantized matrix multiplication: what, how, and one block's program";
  let description = [{
    `hquant` separates what a quantized matrix multiplication computes (number
    formats, scales, zero points) from how it is computed (tiles, stages,
    instructions). A module passes through these stages, each readable off the
    ops and attributes present and checked by `hquant-verify-stage`:

    1. operator: `hquant.matmul`, `hquant.dequantize`, `hquant.pack` on tensors;
    2. configured: the same ops with `#hquant.lowering_config` and packed
       weights, under a module with a `#nvvm.target`;
    3. tile: one block's program over fragments.

    `docs/HQuant.md` is the specification.
  }];
  // The tile ops take !llvm.ptr, whose parser needs its dialect loaded.
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Discardable module attribute that holds the `#nvvm.target` which the
    /// configs of the module were chosen for.
    static ::llvm::StringLiteral getTargetAttrName() { return "hquant.target"; }

  private:
    void registerAttributes();

  public:
  }];
}

#endif // HUMMING_DIALECT_HQUANT_IR_HQUANTDIALECT
