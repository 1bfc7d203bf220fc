//===- HQuantSegmentOps.td - Quantization of activations --*- tablegen -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tile stage of `hquant.quantize`. A *segment* is what shares a scale: a row,
// or a group of one. `lanes` neighbouring threads work on it. A thread's values
// are `vector<C x 8 x f32>`: chunk c of thread l is 8 values from column
// 8 (c lanes + l) of the segment, 16 bytes of the source.
//
// A segment that the registers hold is read once: load, range, scale, store. The
// rest of a longer one is read twice, by loops around load and range, and around
// load and store.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_DIALECT_HQUANT_IR_HQUANTSEGMENTOPS_TD
#define HUMMING_DIALECT_HQUANT_IR_HQUANTSEGMENTOPS_TD

def HQuant_SegmentValues
    : HQuant_Fragment<[2], F32, "values of a segment (vector<C x 8 x f32>)">;

def HQuant_LoadSegmentOp : HQuant_TileOp<"load_segment", [
    MemoryEffects<[MemRead]>]> {
  let summary = "load a thread's values of a segment, gated if asked";
  let description = [{
    Reads `format` values of row `row` from column `column` (the first of the
    thread's segment, plus what earlier passes took) below `columnBound`; what is
    out of bounds, and rows from `rowBound` on, are 0. `granule` bytes are
    contiguous, aligned and wholly in or out of bounds. With `gate` = silu, gelu or
    gelu_tanh the value is gate(x) times the one `gateStride` columns further.
  }];
  let arguments = (ins HQuant_GlobalPointer:$source, I32:$row, I32:$column,
      I32:$rowBound, I32:$columnBound, I32:$stride, Optional<I32>:$gateStride,
      HQuant_FormatAttr:$format, I64Attr:$lanes, I64Attr:$granule,
      OptionalAttr<StrAttr>:$gate);
  let results = (outs HQuant_SegmentValues:$values);
  let assemblyFormat = [{
    $source `[` $row `,` $column `]` `bounds` `[` $rowBound `,` $columnBound `]`
    `stride` $stride (`gate_stride` $gateStride^)? attr-dict `:` type($source) `->`
    type($values)
  }];
  let hasVerifier = 1;
}

def HQuant_SegmentRangeOp : HQuant_TileOp<"segment_range", [Pure]> {
  let summary = "extend a thread's range by its values";
  let description = [{
    `high` becomes the larger of itself and the magnitudes of the values, as the bits
    of an f32 (infinities and NaN compare above all numbers). With `low` the range is
    signed: the largest and the smallest value in an order-preserving form of their
    bits, `b ^ ((b >> 31) & 0x7fffffff)`. Start with 0.
  }];
  let arguments = (ins HQuant_SegmentValues:$values, I32:$high, Optional<I32>:$low);
  let results = (outs I32:$newHigh, Optional<I32>:$newLow);
  let assemblyFormat = [{
    $values `high` $high (`low` $low^)? attr-dict `:` type($values) `->`
    type($newHigh) (`,` type($newLow)^)?
  }];
  let hasVerifier = 1;
}

def HQuant_SegmentScaleOp : HQuant_TileOp<"segment_scale", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the scale of a segment, from the ranges of its threads";
  let description = [{
    Combines the ranges of the `lanes` threads of each segment (by shuffles, and
    through `scratch` past a warp) and makes `scale` (bits of an f32, or the byte of
    an e8m0), `inverse` (the f32 that values are multiplied by) and, with `low`, the
    zero point. The arithmetic is that of `humming::quantizeScale`.
  }];
  let arguments = (ins I32:$high, Optional<I32>:$low, HQuant_WorkgroupBytes:$scratch,
      HQuant_FormatAttr:$codes, HQuant_FormatAttr:$format, I64Attr:$lanes);
  let results = (outs I32:$scale, F32:$inverse, Optional<I32>:$zeroPoint);
  let assemblyFormat = [{
    `high` $high (`low` $low^)? `through` $scratch attr-dict `:` type($scratch)
    `->` type($scale) `,` type($inverse) (`,` type($zeroPoint)^)?
  }];
  let hasVerifier = 1;
}

def HQuant_StaticScaleOp : HQuant_TileOp<"static_scale", [
    MemoryEffects<[MemRead]>]> {
  let summary = "the inverse of a scale in global memory";
  let description = [{
    1 / `scales[0]` in f32, and `zeroPoints[0]` where given.
  }];
  let arguments = (ins HQuant_GlobalPointer:$scales,
      Optional<HQuant_GlobalPointer>:$zeroPoints);
  let results = (outs F32:$inverse, Optional<I32>:$zeroPoint);
  let assemblyFormat = [{
    $scales (`zero_points` $zeroPoints^ `:` type($zeroPoints))? attr-dict `:`
    type($scales) `->` type($inverse) (`,` type($zeroPoint)^)?
  }];
  let hasVerifier = 1;
}

def HQuant_StoreSegmentOp : HQuant_TileOp<"store_segment", [
    MemoryEffects<[MemWrite]>]> {
  let summary = "quantize a thread's values and store the codes";
  let description = [{
    code = convert(value * `inverse` + `zeroPoint`), rounded to nearest even and
    saturated to the finite (symmetric: from -max) codes of `format`. Position,
    bounds and stride are those of `load_segment`, in codes; 4-bit codes are stored
    in pairs, the first one lower, and a pair that begins in bounds is stored whole.
  }];
  let arguments = (ins HQuant_SegmentValues:$values, F32:$inverse,
      Optional<I32>:$zeroPoint, HQuant_GlobalPointer:$dest, I32:$row, I32:$column,
      I32:$rowBound, I32:$columnBound, I32:$stride, HQuant_FormatAttr:$format,
      I64Attr:$lanes, I64Attr:$granule);
  let assemblyFormat = [{
    $values `times` $inverse (`plus` $zeroPoint^)? `to` $dest `[` $row `,` $column
    `]` `bounds` `[` $rowBound `,` $columnBound `]` `stride` $stride attr-dict `:`
    type($values) `,` type($dest)
  }];
  let hasVerifier = 1;
}

def HQuant_StoreScaleOp : HQuant_TileOp<"store_scale", [
    MemoryEffects<[MemWrite]>]> {
  let summary = "store a segment's scale or zero point";
  let description = [{
    The segment's first thread stores the low `element_bits` bits of `scale` as
    element `index` of `dest`, if `inside`.
  }];
  let arguments = (ins I32:$scale, HQuant_GlobalPointer:$dest, I64:$index,
      I1:$inside, I64Attr:$lanes, I64Attr:$element_bits);
  let assemblyFormat = [{
    $scale `to` $dest `[` $index `]` `if` $inside attr-dict `:` type($dest)
  }];
  let hasVerifier = 1;
}

#endif // HUMMING_DIALECT_HQUANT_IR_HQUANTSEGMENTOPS_TD
