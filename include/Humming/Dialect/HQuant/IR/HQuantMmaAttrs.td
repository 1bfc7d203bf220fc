//===- HQuantMmaAttrs.td - MMA kinds ---------------------*- tablegen -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_DIALECT_HQUANT_IR_HQUANTMMAATTRS_TD
#define HUMMING_DIALECT_HQUANT_IR_HQUANTMMAATTRS_TD

include "Humming/Dialect/HQuant/IR/HQuantDialect.td"
include "Humming/Dialect/HQuant/IR/HQuantInterfaces.td"
include "mlir/IR/AttrTypeBase.td"

def HQuant_SyncMmaAttr : AttrDef<HQuant_Dialect, "SyncMma", [
    DeclareAttrInterfaceMethods<HQuant_MmaAttrInterface>]> {
  let mnemonic = "sync_mma";
  let summary = "a warp-wide mma.sync with 16-bit operands and f32 accumulators";
  let description = [{
    `#hquant.sync_mma<m16n8k16, bf16>`: the shape (`m16n8k16` on sm_80 and later,
    `m16n8k8` on sm_75, which emits two instructions a step) and the format of
    both operands (`f16` or `bf16`; `m16n8k8` takes `f16` only).
  }];
  let parameters = (ins "::humming::MmaKind":$shape,
                        "::humming::NumberFormat":$operand);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // HUMMING_DIALECT_HQUANT_IR_HQUANTMMAATTRS_TD
