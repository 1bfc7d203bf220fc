//===- HQuantLayoutOps.td - Packing and gathering on the device *- tablegen -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that move data and compute nothing: `hquant.pack` of weights as a
// kernel, and `hquant.gather`, which puts activations into the column order of
// weights that were permuted along K.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_DIALECT_HQUANT_IR_HQUANTLAYOUTOPS_TD
#define HUMMING_DIALECT_HQUANT_IR_HQUANTLAYOUTOPS_TD

include "Humming/Dialect/HQuant/IR/HQuantTileOps.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def HQuant_GatherOp : Op<HQuant_Dialect, "gather", [Pure]> {
  let summary = "activations in another column order";
  let description = [{
    ```
    result[m, j] = order[j] < 0 ? 0 : activations[m, order[j]]
    ```

    Weights whose columns were permuted (GPTQ in activation order) or padded (a
    shard that begins inside a group) multiply activations in the same order. An
    index of -1 is a padding column; any other one outside of the activations reads
    as zero too.

    ```mlir
    %g = hquant.gather %x, %order : tensor<?x4096xf16>, tensor<4128xi32> -> tensor<?x4128xf16>
    ```
  }];
  let arguments = (ins TensorRankOf<[AnyFloat, I8], [2]>:$activations,
      TensorRankOf<[I32], [1]>:$order);
  let results = (outs TensorRankOf<[AnyFloat, I8], [2]>:$result);
  let assemblyFormat = [{
    $activations `,` $order attr-dict `:` type($activations) `,` type($order) `->`
    type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tile stage
//===----------------------------------------------------------------------===//

def HQuant_PackUnitOp : HQuant_TileOp<"pack_unit", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "pack a unit of 16 rows by 64 columns, by a warp";
  let description = [{
    Reads the codes of the unit from row `row` and column `column` (multiples of 16
    and 64), a byte each in rows `stride` apart, and writes its 128 b bytes at
    `dest` + 128 b `unit`, in the packed layout of docs/HQuant.md. Codes outside of
    the bounds are 0; bits above the weight's are ignored. `granule` codes are known
    to be aligned and wholly in or out of bounds.
  }];
  let arguments = (ins HQuant_GlobalPointer:$source, I32:$row, I32:$column,
      I32:$rowBound, I32:$columnBound, I32:$stride, HQuant_GlobalPointer:$dest,
      I64:$unit, I64Attr:$activation_bits, I64Attr:$weight_bits,
      I64Attr:$granule);
  let assemblyFormat = [{
    $source `[` $row `,` $column `]` `bounds` `[` $rowBound `,` $columnBound `]`
    `stride` $stride `to` $dest `unit` $unit attr-dict `:` type($source) `to`
    type($dest)
  }];
  let hasVerifier = 1;
}

def HQuant_GatherRowOp : HQuant_TileOp<"gather_row", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "gather 16 bytes of a row, by a lane";
  let description = [{
    dest[row, column + i] = source[row, order[column + i]] for the 16 bytes of
    elements from `column`, as far as row and column are below their bounds; zero
    where the index is not below `source_bound` (unsigned). `granule` bytes of a
    row of `dest` are known to be aligned and wholly in or out of bounds.
  }];
  let arguments = (ins HQuant_GlobalPointer:$source, HQuant_GlobalPointer:$order,
      HQuant_GlobalPointer:$dest, I32:$row, I32:$column, I32:$rowBound,
      I32:$columnBound, I32:$sourceBound, I32:$sourceStride, I32:$destStride,
      I64Attr:$element_bits, I64Attr:$granule);
  let assemblyFormat = [{
    $source `by` $order `to` $dest `[` $row `,` $column `]` `bounds` `[` $rowBound
    `,` $columnBound `]` `source_bound` $sourceBound `strides` `[` $sourceStride
    `,` $destStride `]` attr-dict `:` type($source) `,` type($order) `,` type($dest)
  }];
  let hasVerifier = 1;
}

#endif // HUMMING_DIALECT_HQUANT_IR_HQUANTLAYOUTOPS_TD
