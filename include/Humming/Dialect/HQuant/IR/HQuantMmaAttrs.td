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
  let summary = "a warp-wide mma.sync";
  let description = [{
    `#hquant.sync_mma<m16n8k16, bf16>`: the shape and the format of the weights. Two
    keys follow where they say something else than usual: `activation`, the format
    of the activations (e4m3 and e5m2 mix), and `accumulator = f16`, with which two
    registers hold four sums in pairs.

    ```mlir
    #hquant.sync_mma<m16n8k32, e5m2, activation = e4m3>
    #hquant.sync_mma<m16n8k16, f16, accumulator = f16>
    ```

    | shape | operands | instructions a step |
    |---|---|---|
    | `m16n8k16` | `f16`, `bf16` | 1 |
    | `m16n8k8` | `f16` | 2 |
    | `m16n8k32` | `s8`, `e4m3`, `e5m2` | 1 |
    | `m8n8k16` | `s8` | 4 |
    | `m16n8k64` | `s4` | 1 |

    Sums of integers are s32, all others f32, or f16 with operands of f16, e4m3 or
    e5m2. Half a step is one instruction of half the depth for `s8` and `s4`
    (m16n8k16, m16n8k32, two m8n8k16); half a step of 8-bit floats and a quarter of
    one of `s4` are instructions with zeros for the rest of A.
  }];
  let parameters = (ins "::humming::MmaKind":$shape,
                        "::humming::NumberFormat":$operand,
                        "::humming::NumberFormat":$activation,
                        "::humming::NumberFormat":$accumulator);
  let builders = [
    // The same format on both sides, f32 (s32) sums.
    AttrBuilder<(ins "::humming::MmaKind":$shape,
                     "::humming::NumberFormat":$operand), [{
      return $_get($_ctxt, shape, operand, operand,
                   ::humming::NumberFormat::f32());
    }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def HQuant_WarpgroupMmaAttr : AttrDef<HQuant_Dialect, "WarpgroupMma", [
    DeclareAttrInterfaceMethods<HQuant_MmaAttrInterface>]> {
  let mnemonic = "warpgroup_mma";
  let summary = "wgmma m64nNk16 or m64nNk32 with f32 or s32 accumulators";
  let description = [{
    `#hquant.warpgroup_mma<128, bf16>`: 64 features (16 a warp of four) by 128 tokens
    (a multiple of 8, of 16 past 32 for `s8`, at most 256) by 32 bytes of K: 16 of
    `f16` or `bf16`, 32 of `e4m3`, `e5m2` or `s8`. A is the register fragment of the
    step, or like B a K-major tile in shared memory with 128-byte swizzle. The
    instruction is asynchronous: see `hquant.warpgroup_mma`. Sums of `s8` are s32.
    Keys as of `#hquant.sync_mma`: `activation`, `accumulator`.
  }];
  let parameters = (ins "int64_t":$tokens, "::humming::NumberFormat":$operand,
                        "::humming::NumberFormat":$activation,
                        "::humming::NumberFormat":$accumulator);
  let builders = [
    // The same format on both sides, f32 (s32) sums.
    AttrBuilder<(ins "int64_t":$tokens, "::humming::NumberFormat":$operand), [{
      return $_get($_ctxt, tokens, operand, operand,
                   ::humming::NumberFormat::f32());
    }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // HUMMING_DIALECT_HQUANT_IR_HQUANTMMAATTRS_TD
