//===- HQuantTileOps.td - One block's program (stage 3) ---*- tablegen -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops of the tile stage stand in a `gpu.func` and say what a block, a warp
// or a lane does between the operator stage and NVVM:
//
//   block-collective   copy_tile, fetch_tile, put_tile, reduce_blocks, store_tile
//   warp-collective    load_weights, load_plain_weights, load_activations,
//                      load_scales, mma
//   warpgroup          warpgroup_mma, warpgroup_mma_tiles, warpgroup_wait
//   lane-local         dequant, scale_accumulate, multiply_scales, scale_rows,
//                      add_rows
//
// A fragment is a vector of 32-bit registers (i32) or accumulators (f32) of one
// lane. Its spread over lanes is that of the MMA step (see MmaAttrInterface) and
// nothing else. Dimensions, outermost first:
//
//   packed words   vector<U x b x i32>        U units of 16 rows, b words each
//   A fragment     vector<U x S x 4 x i32>    S steps of a 64-wide K slab
//   B fragment     vector<T x S x 2 x i32>    T tiles of 8 tokens
//   accumulators   vector<U x T x 4 x f32>
//   scales         vector<U x G x i32>        G groups; a word holds the value of
//                                             row g (low) and row g + 8 (high)
//
// Rows are features and columns are tokens, unless an op says `token_rows`: with
// the config's rows = tokens a warpgroup's MMA has them the other way round. Units
// are 16 tokens then, and tiles 8 features.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_DIALECT_HQUANT_IR_HQUANTTILEOPS_TD
#define HUMMING_DIALECT_HQUANT_IR_HQUANTTILEOPS_TD

include "Humming/Dialect/HQuant/IR/HQuantAttrs.td"
include "Humming/Dialect/HQuant/IR/HQuantMmaAttrs.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class HQuant_TileOp<string mnemonic, list<Trait> traits = []>
    : Op<HQuant_Dialect, mnemonic, traits>;

// tile_c1, tile_c2: see docs/HQuant.md.
def HQuant_WorkgroupBytes : ConfinedType<
    MemRefRankOf<[I8], [1, 2]>,
    [CPred<"::humming::hquant::isWorkgroupBuffer($_self)">],
    "a workgroup buffer (memref of i8, rank 1 or 2, static and contiguous, in "
    "#gpu.address_space<workgroup>)", "::mlir::MemRefType">;
class HQuant_Fragment<list<int> ranks, Type element, string what>
    : ConfinedType<VectorOfRankAndType<ranks, [element]>,
      [CPred<"::humming::hquant::isFragment($_self)">],
      what # ", at most 4096", "::mlir::VectorType">;
def HQuant_Words : HQuant_Fragment<[2, 3], I32, "a fragment of i32 registers">;
def HQuant_Accumulators
    : HQuant_Fragment<[3], F32, "a fragment of f32 accumulators">;
// Sums of integers are i32 until a scale is multiplied in.
def HQuant_Sums : AnyTypeOf<[
    HQuant_Accumulators,
    HQuant_Fragment<[3], I32, "a fragment of i32 accumulators">]>;
def HQuant_GlobalPointer : LLVM_PointerInAddressSpace<1>;
/// A generic pointer argument of a kernel is a tensor map, 128 bytes by value.
def HQuant_TensorMap : LLVM_PointerInAddressSpace<0>,
    BuildableType<"::mlir::LLVM::LLVMPointerType::get($_builder.getContext())">;

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

class HQuant_CopyBase<string mnemonic, list<Trait> traits = []>
    : HQuant_TileOp<mnemonic, traits> {
  code copyDeclaration = [{
    /// Bytes of the tile in workgroup memory.
    int64_t getTileBytes() {
      return getTileRows() * getTileColumns() * getCellBytes();
    }
    /// 16-byte chunks that each thread of the block moves (the last may be idle).
    int64_t getChunksPerThread() {
      return (getTileBytes() / 16 + getThreads() - 1) / getThreads();
    }
  }];
}

defvar HQuant_copyText = [{
    The tile is `tile_rows` x `tile_columns` *cells* of `cell_bytes` bytes. Cell
    (r, c) of the source stands at `source + ((row + r) * stride + column + c) *
    cell_bytes`; a cell with row + r >= row_bound or column + c >= column_bound is
    not read and becomes zero. `granule` bytes (2, 4, 8 or 16) are known to be
    contiguous, aligned and wholly in or out of bounds in the source.

    | operand | cell | bytes | swizzle |
    |---|---|---|---|
    | packed weights | strip x slab | 512 b | no |
    | packed scales, zero points | group x strip | 128 or 64 | no |
    | activations | token x k | 2 | yes |
    | plain weights | feature x k | 1 | yes |

    Without `swizzle` the tile is row-major. With it the tile is a sequence of
    panels of 128 bytes of a row: byte x of row r stands at
    (x / 128) * tile_rows * 128 + r * 128 + ((x / 16) % 8 ^ r % 8) * 16 + x % 16,
    so that the 8 rows of an ldmatrix hit 8 different bank groups.
}];

def HQuant_CopyTileOp : HQuant_CopyBase<"copy_tile", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "copy a tile from global to workgroup memory, by the whole block";
  let description = HQuant_copyText # [{

    `async` copies belong to the thread's current cp.async group and are visible
    after `wait_copies` and a barrier; others after a barrier. The source of an
    `independent` copy is written by no kernel that may still run, so it may be
    issued before `grid_wait`.

    The copy is made by `threads` threads from `first_thread` on. With a `ring` it
    is one bulk copy a tile row, counted by the ring's barrier of the stage; the
    memory that the copy leaves out of bounds is written by the same threads.

    With a `map` (and a ring, once there is one) the first thread copies boxes of 128
    bytes by up to 256 rows, as the tensor map says: its base is the source, its
    extents and stride are those of the copy, its swizzle is that of `swizzle`. What is
    out of bounds becomes zero.

    With `blocks` = 2 (and a map) the two blocks of a cluster that name the same tile
    copy it together: each half of the rows, into the memory of both.

    ```mlir
    hquant.copy_tile %x[%row, %col] bounds [%m, %k] stride %ldx to %tile[%stage]
        {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16,
         threads = 128, swizzle, async}
        : !llvm.ptr<1> to memref<4x2048xi8, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins HQuant_GlobalPointer:$source, I32:$row, I32:$column,
      I32:$rowBound, I32:$columnBound, I32:$stride,
      HQuant_WorkgroupBytes:$dest, Optional<I32>:$stage,
      Optional<HQuant_WorkgroupBytes>:$ring, Optional<HQuant_TensorMap>:$map,
      I64Attr:$cell_bytes, I64Attr:$tile_rows, I64Attr:$tile_columns,
      I64Attr:$granule, I64Attr:$threads,
      DefaultValuedAttr<I64Attr, "0">:$first_thread,
      DefaultValuedAttr<I64Attr, "1">:$blocks, UnitAttr:$swizzle,
      UnitAttr:$async, UnitAttr:$independent);
  let assemblyFormat = [{
    $source `[` $row `,` $column `]` `bounds` `[` $rowBound `,` $columnBound `]`
    `stride` $stride `to` $dest (`[` $stage^ `]`)? (`through` $ring^)?
    (`by` $map^)? attr-dict `:` type($source) `to` type($dest) (`through` type($ring)^)?
  }];
  let extraClassDeclaration = copyDeclaration;
  let hasVerifier = 1;
}

def HQuant_FetchTileOp : HQuant_CopyBase<"fetch_tile", [
    MemoryEffects<[MemRead]>]> {
  let summary = "read a tile from global memory into registers, by the whole block";
  let description = HQuant_copyText # [{

    First half of a copy through registers: the loads are in flight until
    `put_tile` stores their result. Result: vector<chunks per thread x 4 x i32>;
    chunk j of thread i is the tile's 16-byte chunk j * threads + i.
  }];
  let arguments = (ins HQuant_GlobalPointer:$source, I32:$row, I32:$column,
      I32:$rowBound, I32:$columnBound, I32:$stride,
      I64Attr:$cell_bytes, I64Attr:$tile_rows, I64Attr:$tile_columns,
      I64Attr:$granule, I64Attr:$threads);
  let results = (outs HQuant_Words:$chunks);
  let assemblyFormat = [{
    $source `[` $row `,` $column `]` `bounds` `[` $rowBound `,` $columnBound `]`
    `stride` $stride attr-dict `:` type($source) `->` type($chunks)
  }];
  let extraClassDeclaration = copyDeclaration;
  let hasVerifier = 1;
}

def HQuant_PutTileOp : HQuant_CopyBase<"put_tile", [
    MemoryEffects<[MemWrite]>]> {
  let summary = "store a fetched tile to workgroup memory, by the whole block";
  let description = [{
    Second half of a copy through registers; the attributes are those of the
    `fetch_tile` whose result it stores. Visible after a barrier.
  }];
  let arguments = (ins HQuant_Words:$chunks, HQuant_WorkgroupBytes:$dest,
      Optional<I32>:$stage,
      I64Attr:$cell_bytes, I64Attr:$tile_rows, I64Attr:$tile_columns,
      I64Attr:$threads, UnitAttr:$swizzle);
  let assemblyFormat = [{
    $chunks `to` $dest (`[` $stage^ `]`)? attr-dict `:` type($chunks) `to` type($dest)
  }];
  let extraClassDeclaration = copyDeclaration;
  let hasVerifier = 1;
}

def HQuant_GridStartOp : HQuant_TileOp<"grid_start", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "let the next kernel of the stream start early";
  let description = [{
    Once every block has come here, blocks of a next kernel that waits by itself
    (`grid_wait`) may start on what this kernel leaves free.
  }];
  let assemblyFormat = "attr-dict";
}

def HQuant_GridWaitOp : HQuant_TileOp<"grid_wait", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for the kernels before this one";
  let description = [{
    Returns when they have finished and their writes are visible. Before it, a kernel
    may only read what none of them writes, and write nothing. Free where the kernel
    was launched in the ordinary way.
  }];
  let assemblyFormat = "attr-dict";
}

def HQuant_CommitCopiesOp : HQuant_TileOp<"commit_copies", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "close the thread's current group of asynchronous copies";
  let assemblyFormat = "attr-dict";
}

def HQuant_WaitCopiesOp : HQuant_TileOp<"wait_copies", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until at most `pending` of the thread's copy groups are in flight";
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative]>:$pending);
  let assemblyFormat = "$pending attr-dict";
}

//===----------------------------------------------------------------------===//
// Rings: producers and consumers
//===----------------------------------------------------------------------===//

// A ring is a workgroup buffer of 16 bytes a stage (memref<S x 16 x i8>): a
// barrier that counts what has been copied into the stage's buffers (full), and one
// that counts the warps which have read them (empty). Both have phases: round r of
// the ring is phase r mod 2.
//
//   producers:  ring_acquire, copy_tile ..., ring_commit     for every trip
//   consumers:  ring_wait, loads and MMAs, ring_release      for every trip

def HQuant_RingInitOp : HQuant_TileOp<"ring_init", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "prepare the barriers of a ring, by the whole block";
  let description = [{
    `producers` threads will commit each stage (0: with `bulk`), `consumers` warps of each of `blocks`
    blocks release it. Ends with a barrier of all threads, of the cluster with two
    blocks: these copy tiles together, so a stage is filled when it is empty in both.
  }];
  let arguments = (ins HQuant_WorkgroupBytes:$ring, I64Attr:$producers,
      I64Attr:$consumers, DefaultValuedAttr<I64Attr, "1">:$blocks);
  let assemblyFormat = "$ring attr-dict `:` type($ring)";
  let hasVerifier = 1;
}

class HQuant_RingOp<string mnemonic> : HQuant_TileOp<mnemonic, [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
}

def HQuant_RingAcquireOp : HQuant_RingOp<"ring_acquire"> {
  let summary = "wait until the consumers have left a stage";
  let description = [{
    `phase` is that of the round before the one to be filled; in the first round (1)
    it returns at once. With `blocks` = 2 the consumers are those of both blocks.
  }];
  let arguments = (ins HQuant_WorkgroupBytes:$ring, I32:$stage, I32:$phase,
      DefaultValuedAttr<I64Attr, "1">:$blocks);
  let assemblyFormat =
    "$ring `[` $stage `]` `phase` $phase attr-dict `:` type($ring)";
}

def HQuant_RingCommitOp : HQuant_RingOp<"ring_commit"> {
  let summary = "count this thread's copies into a stage, once they have landed";
  let description = [{
    By each producer thread, from `first_thread` on. Does not wait. With `bulk` no
    thread has copies of its own (cp.async), only the first one counts.
  }];
  let arguments = (ins HQuant_WorkgroupBytes:$ring, I32:$stage,
      I64Attr:$first_thread, UnitAttr:$bulk);
  let assemblyFormat = "$ring `[` $stage `]` attr-dict `:` type($ring)";
}

def HQuant_RingWaitOp : HQuant_RingOp<"ring_wait"> {
  let summary = "wait until a stage is full";
  let arguments = (ins HQuant_WorkgroupBytes:$ring, I32:$stage, I32:$phase);
  let assemblyFormat =
    "$ring `[` $stage `]` `phase` $phase attr-dict `:` type($ring)";
}

def HQuant_RingReleaseOp : HQuant_RingOp<"ring_release"> {
  let summary = "leave a stage: this warp has read it";
  let description = [{
    With `blocks` = 2 it says so to both blocks that fill the stage.
  }];
  let arguments = (ins HQuant_WorkgroupBytes:$ring, I32:$stage,
      DefaultValuedAttr<I64Attr, "1">:$blocks);
  let assemblyFormat = "$ring `[` $stage `]` attr-dict `:` type($ring)";
}

class HQuant_TurnOp<string mnemonic> : HQuant_TileOp<mnemonic,
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins);
  let assemblyFormat = "attr-dict";
}

def HQuant_StartTurnsOp : HQuant_TurnOp<"start_turns"> {
  let summary = "begin taking turns: the first of two consumer warpgroups is next";
  let description = [{
    Two warpgroups that start together multiply together and then scale their sums
    together, so that the tensor cores idle meanwhile. Taking turns they alternate:

    ```mlir
    hquant.start_turns
    scf.for ... {
      hquant.take_turn          // wait until the other one has issued its MMAs
      ... warpgroup_mma_tiles ...
      hquant.pass_turn
      ... warpgroup_wait, scale_accumulate ...
    }
    hquant.end_turns
    ```

    All threads of both warpgroups execute all four, the middle two equally often.
  }];
}
def HQuant_TakeTurnOp : HQuant_TurnOp<"take_turn"> {
  let summary = "wait for this warpgroup's turn";
}
def HQuant_PassTurnOp : HQuant_TurnOp<"pass_turn"> {
  let summary = "let the other warpgroup take its turn";
}
def HQuant_EndTurnsOp : HQuant_TurnOp<"end_turns"> {
  let summary = "take what the last turn passed, so that no barrier stays half full";
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

def HQuant_LoadWeightsOp : HQuant_TileOp<"load_weights", [
    MemoryEffects<[MemRead]>]> {
  let summary = "load a lane's packed weight words of one K slab";
  let description = [{
    Reads, for the U units of 16 rows from unit `unit` of the block's tile and for
    slab `slab` of the stage, the b words of each unit that belong to this lane, in
    plane order (see the packed layout in docs/HQuant.md). `slabs` is the number of
    slabs in the tile. With `unit_stride` 1 all units lie in one strip of 64 rows;
    with 4 they are the same unit of U consecutive strips, as a warp of a warpgroup
    holds them.
  }];
  let arguments = (ins HQuant_WorkgroupBytes:$tile, Optional<I32>:$stage,
      I32:$unit, I32:$slab, I64Attr:$slabs,
      DefaultValuedAttr<I64Attr, "1">:$unit_stride);
  let results = (outs HQuant_Words:$words);
  let assemblyFormat = [{
    $tile (`[` $stage^ `]`)? `unit` $unit `slab` $slab attr-dict `:` type($tile)
    `->` type($words)
  }];
  let hasVerifier = 1;
}

def HQuant_LoadPlainWeightsOp : HQuant_TileOp<"load_plain_weights", [
    MemoryEffects<[MemRead]>]> {
  let summary = "load the A fragment of one K slab of plain weights by ldmatrix";
  let description = [{
    Reads, for U units of 16 rows from unit `unit`, slab `slab` of a swizzled tile of
    `tile_rows` features. The weights are operands of the MMA as they are: 8-bit ones
    of the activations' format.
  }];
  let arguments = (ins HQuant_WorkgroupBytes:$tile, Optional<I32>:$stage,
      I32:$unit, I32:$slab, I64Attr:$tile_rows);
  let results = (outs HQuant_Words:$fragment);
  let assemblyFormat = [{
    $tile (`[` $stage^ `]`)? `unit` $unit `slab` $slab attr-dict `:` type($tile)
    `->` type($fragment)
  }];
  let hasVerifier = 1;
}

def HQuant_LoadActivationsOp : HQuant_TileOp<"load_activations", [
    MemoryEffects<[MemRead]>]> {
  let summary = "load the B fragment of one K slab by ldmatrix";
  let description = [{
    Reads tokens `token` to `token` + 8 T of slab `slab` from a swizzled tile of
    `tile_rows` tokens. `token` is a multiple of 8.
  }];
  let arguments = (ins HQuant_WorkgroupBytes:$tile, Optional<I32>:$stage,
      I32:$token, I32:$slab, I64Attr:$tile_rows);
  let results = (outs HQuant_Words:$fragment);
  let assemblyFormat = [{
    $tile (`[` $stage^ `]`)? `token` $token `slab` $slab attr-dict `:` type($tile)
    `->` type($fragment)
  }];
  let hasVerifier = 1;
}

def HQuant_LoadScalesOp : HQuant_TileOp<"load_scales", [
    MemoryEffects<[MemRead]>]> {
  let summary = "load a lane's scales or zero points of one K slab";
  let description = [{
    Reads, for U units from unit `unit` and G groups from `group` of the tile
    (groups x strips x 64 elements of `element_bits` bits), the value of row g in
    the low half and of row g + 8 in the high half of each word (8-bit elements:
    low two bytes). `strips` is the number of strips in the tile, `unit_stride` that
    of `load_weights`. With `uniform` all rows of the tile have the scales of its first
    one: one access of the same address by all lanes.
  }];
  let arguments = (ins HQuant_WorkgroupBytes:$tile, Optional<I32>:$stage,
      I32:$unit, I32:$group, I64Attr:$strips, I64Attr:$element_bits,
      DefaultValuedAttr<I64Attr, "1">:$unit_stride, UnitAttr:$uniform);
  let results = (outs HQuant_Words:$scales);
  let assemblyFormat = [{
    $tile (`[` $stage^ `]`)? `unit` $unit `group` $group attr-dict `:` type($tile)
    `->` type($scales)
  }];
  let hasVerifier = 1;
}

def HQuant_DequantOp : HQuant_TileOp<"dequant", [
    Pure, AttrSizedOperandSegments]> {
  let summary = "turn packed weight words into the A fragment of the MMA";
  let description = [{
    a = (q - z) * s in the MMA's operand format; scales of another format are
    converted to it first, which is exact. Without `zero_points`, unsigned
    codes have z = 2^(bits-1). Without `scales`, s = 1 (they are applied to the
    accumulators or in the epilogue). Group of step i: i G / S; with G = 2 S or 4 S
    (zero points of groups shorter than a step) each half or quarter of a step's K
    has its own. The fragment may be of the steps from `first_step` alone. With a `table` of 16 values, q is the
    table's value of the code. `native_convert` lets the lowering use cvt from 8-bit
    floats. Operands of 8 and 4 bits may come out smaller by a power of two, which
    `scale_accumulate` and `scale_rows` pay back (their `exponent`).

    ```mlir
    %a = hquant.dequant %words scales(%s : vector<1x1xi32>)
        {weight = #hquant.format<u4>, mma = #hquant.sync_mma<m16n8k16, bf16>,
         scale = #hquant.format<bf16>}
        : vector<1x4xi32> -> vector<1x4x4xi32>
    ```
  }];
  let arguments = (ins HQuant_Words:$words, Optional<HQuant_Words>:$scales,
      Optional<HQuant_Words>:$zeroPoints, HQuant_FormatAttr:$weight,
      HQuant_MmaAttrInterface:$mma, HQuant_FormatAttr:$scale,
      UnitAttr:$float_zero_points, DefaultValuedAttr<I64Attr, "0">:$first_step,
      OptionalAttr<DenseF32ArrayAttr>:$table, UnitAttr:$native_convert);
  let results = (outs HQuant_Words:$fragment);
  let assemblyFormat = [{
    $words (`scales` `(` $scales^ `:` type($scales) `)`)?
    (`zero_points` `(` $zeroPoints^ `:` type($zeroPoints) `)`)?
    attr-dict `:` type($words) `->` type($fragment)
  }];
  let hasVerifier = 1;
}

def HQuant_MmaOp : HQuant_TileOp<"mma", [Pure,
    AllTypesMatch<["accumulators", "result"]>]> {
  let summary = "multiply fragments: result = a * b + accumulators";
  let description = [{
    Multiplies steps `first_step` to `last_step` (exclusive) of the slab with every
    pair of unit and token tile. With `parts`, only part `part` of that many equal
    parts of each step's K: what a group shorter than a step has. The rest of `a`
    counts as zero; an instruction of less depth is taken where there is one.
  }];
  let arguments = (ins HQuant_Words:$a, HQuant_Words:$b,
      HQuant_Sums:$accumulators, HQuant_SyncMmaAttr:$kind,
      I64Attr:$first_step, I64Attr:$last_step,
      DefaultValuedAttr<I64Attr, "0">:$part,
      DefaultValuedAttr<I64Attr, "1">:$parts);
  let results = (outs HQuant_Sums:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $accumulators `steps` $first_step `to` $last_step
    attr-dict `:` type($a) `,` type($b) `,` type($accumulators)
  }];
  let hasVerifier = 1;
}

def HQuant_WarpgroupMmaOp : HQuant_TileOp<"warpgroup_mma", [
    AllTypesMatch<["accumulators", "result"]>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "start the multiplication of one step by a warpgroup, B from shared memory";
  let description = [{
    Issues one wgmma a unit of 64 features (four warps with 16 each) for step `step`
    of slab `slab`, over the tokens from `token` of a swizzled tile of `tile_rows`
    tokens, as one asynchronous group. The registers of `a` and the accumulators are
    in flight until `warpgroup_wait`. With `zero`, the accumulators' old values are
    ignored. The tile must be visible to the async proxy (`fence_async`). `part` and
    `parts` are those of `mma`: the rest of `a` counts as zero.
  }];
  let arguments = (ins HQuant_Words:$a, HQuant_WorkgroupBytes:$tile,
      Optional<I32>:$stage, I32:$token, I32:$slab,
      HQuant_Sums:$accumulators, HQuant_WarpgroupMmaAttr:$kind,
      I64Attr:$step, I64Attr:$tile_rows, UnitAttr:$zero,
      DefaultValuedAttr<I64Attr, "0">:$part,
      DefaultValuedAttr<I64Attr, "1">:$parts);
  let results = (outs HQuant_Sums:$result);
  let assemblyFormat = [{
    $a `,` $tile (`[` $stage^ `]`)? `token` $token `slab` $slab `step` $step `,`
    $accumulators attr-dict `:` type($a) `,` type($tile) `,` type($accumulators)
  }];
  let hasVerifier = 1;
}

def HQuant_WarpgroupMmaTilesOp : HQuant_TileOp<"warpgroup_mma_tiles", [
    AllTypesMatch<["accumulators", "result"]>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "start the multiplication of steps by a warpgroup, both operands from shared memory";
  let description = [{
    Like `warpgroup_mma` for steps `first_step` to `last_step` (exclusive) of slab
    `slab` as one asynchronous group. `a`, whose rows become those of the result, and
    `b`, whose rows become its columns, are swizzled tiles of `a_rows` and `b_rows`
    rows: plain weights and activations, or with the config's rows = tokens activations
    and plain weights. `unit` is the first unit (of 16 rows) of the warp; the
    warpgroup multiplies the 64 rows that hold it and the U - 1 blocks of 64 after
    them by the rows of `b` from `column` on. Only the accumulators are in flight until
    `warpgroup_wait`.
  }];
  let arguments = (ins HQuant_WorkgroupBytes:$a, HQuant_WorkgroupBytes:$b,
      Optional<I32>:$stage, I32:$unit, I32:$column, I32:$slab,
      HQuant_Sums:$accumulators, HQuant_WarpgroupMmaAttr:$kind,
      I64Attr:$first_step, I64Attr:$last_step, I64Attr:$a_rows,
      I64Attr:$b_rows, UnitAttr:$zero);
  let results = (outs HQuant_Sums:$result);
  let assemblyFormat = [{
    $a `,` $b (`[` $stage^ `]`)? `unit` $unit `column` $column `slab` $slab
    `steps` $first_step `to` $last_step `,` $accumulators attr-dict `:`
    type($a) `,` type($b) `,` type($accumulators)
  }];
  let hasVerifier = 1;
}

def HQuant_WarpgroupWaitOp : HQuant_TileOp<"warpgroup_wait", [
    AllTypesMatch<["accumulators", "result"]>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until at most `pending` groups of warpgroup_mma are in flight";
  let description = [{
    The result may be read only where none of those is its own: with `pending` 0, or
    where as many groups of other sums came after it. Else it is still in flight and
    may only be handed to the next `warpgroup_mma`.
  }];
  let arguments = (ins HQuant_Sums:$accumulators,
      ConfinedAttr<I32Attr, [IntNonNegative]>:$pending);
  let results = (outs HQuant_Sums:$result);
  let assemblyFormat = [{
    $accumulators `pending` $pending attr-dict `:` type($accumulators)
  }];
}

def HQuant_FenceAsyncOp : HQuant_TileOp<"fence_async", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "make this thread's writes to workgroup memory visible to the async proxy";
  let description = [{
    Between ordinary or cp.async writes and a `warpgroup_mma` that reads them:
    followed by a barrier, or by the readers after a `ring_wait` for them.
  }];
  let assemblyFormat = "attr-dict";
}

def HQuant_ScaleAccumulateOp : HQuant_TileOp<"scale_accumulate", [Pure,
    AllTypesMatch<["accumulators", "result"]>]> {
  let summary = "result = scale * partial + accumulators, in f32";
  let description = [{
    Applies the scales of group `group`, times 2^`exponent`, to the partial sum of
    that group. The multiply-add rounds once (fma.rn.f32); an i32 partial sum is
    converted first. 32-bit scales take two words a group: rows g and g + 8.
  }];
  let arguments = (ins HQuant_Sums:$partial, HQuant_Words:$scales,
      HQuant_Accumulators:$accumulators, I64Attr:$group,
      HQuant_FormatAttr:$scale, DefaultValuedAttr<I64Attr, "0">:$exponent);
  let results = (outs HQuant_Accumulators:$result);
  let assemblyFormat = [{
    $partial `,` $scales `,` $accumulators `group` $group attr-dict `:`
    type($partial) `,` type($scales) `,` type($accumulators)
  }];
  let hasVerifier = 1;
}

def HQuant_LoadTokenScalesOp : HQuant_TileOp<"load_token_scales", [
    MemoryEffects<[MemRead]>]> {
  let summary = "load a lane's activation scales of one group";
  let description = [{
    Reads, for T tiles of 8 tokens from `token` of the tile (groups x `tile_tokens`
    scales of 32 (f32) or 8 (e8m0) bits), the scales of group `group` that belong to
    columns 2 t and 2 t + 1 of the lane: `vector<Tx2xi32>` or, two in the low bytes
    of a word, `vector<Tx1xi32>`. With `token_rows`, those of rows g and g + 8 of U
    units instead, 64 tokens apart: `vector<Ux2xi32>` or `vector<Ux1xi32>`, what
    `scale_accumulate` takes.
  }];
  let arguments = (ins HQuant_WorkgroupBytes:$tile, Optional<I32>:$stage,
      I32:$token, I32:$group, I64Attr:$tile_tokens, UnitAttr:$token_rows);
  let results = (outs HQuant_Words:$scales);
  let assemblyFormat = [{
    $tile (`[` $stage^ `]`)? `token` $token `group` $group attr-dict `:` type($tile)
    `->` type($scales)
  }];
  let hasVerifier = 1;
}

def HQuant_MultiplyScalesOp : HQuant_TileOp<"multiply_scales", [Pure]> {
  let summary = "multiply the scales of rows of activations and of weights";
  let description = [{
    f32 scales of rows g and g + 8 of each unit, as two words: the product of group
    `group` of `scales` (of weights, times 2^`exponent`) and of `token_scales` (one
    group of f32 or e8m0, as `load_token_scales` with `token_rows` gives them).

    With rows = tokens a tile has one weight scale, so that the product is taken once a
    row, not once a sum: partial * (token scale * weight scale), where rows = features
    has (partial * token scale) * weight scale. The two differ by f32's rounding alone.
  }];
  let arguments = (ins HQuant_Words:$token_scales, HQuant_Words:$scales,
      I64Attr:$group, HQuant_FormatAttr:$token_scale, HQuant_FormatAttr:$scale,
      DefaultValuedAttr<I64Attr, "0">:$exponent);
  let results = (outs HQuant_Words:$result);
  let assemblyFormat = [{
    $token_scales `,` $scales `group` $group attr-dict `:` type($token_scales) `,`
    type($scales) `->` type($result)
  }];
  let hasVerifier = 1;
}

def HQuant_AccumulateOp : HQuant_TileOp<"accumulate", [
    Pure, AttrSizedOperandSegments]> {
  let summary = "result = partial * token scale + accumulators, in f32";
  let description = [{
    Takes a partial sum to f32: f32 as it is, i32 converted, f16 in pairs
    (`vector<UxTx2xi32>`: v = 0, 1 in the first word, 2, 3 in the second). With
    `scales` (those of `load_token_scales`) it is multiplied by the scale of its
    column, with `accumulators` it is added to them; both at once round once.
  }];
  let arguments = (ins HQuant_Sums:$partial, Optional<HQuant_Words>:$scales,
      Optional<HQuant_Accumulators>:$accumulators);
  let results = (outs HQuant_Accumulators:$result);
  let assemblyFormat = [{
    $partial (`scales` `(` $scales^ `:` type($scales) `)`)?
    (`into` $accumulators^ `:` type($accumulators))? attr-dict `:` type($partial)
    `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Reductions and epilogue
//===----------------------------------------------------------------------===//

def HQuant_ReduceWarpsOp : HQuant_TileOp<"reduce_warps", [
    AllTypesMatch<["accumulators", "result"]>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "add the accumulators of the warps that share a block's K";
  let description = [{
    Warps 1 to `warps_k` - 1 along K put their accumulators into `scratch`; warp 0
    adds them in that order (f32). The result is defined on K warp 0 only.
    `lanes` threads belong to each K warp. Starts and ends with a barrier, so
    `scratch` may share memory with the stages.
  }];
  let arguments = (ins HQuant_Accumulators:$accumulators,
      HQuant_WorkgroupBytes:$scratch, I64Attr:$warps_k, I64Attr:$lanes);
  let results = (outs HQuant_Accumulators:$result);
  let assemblyFormat = [{
    $accumulators `through` $scratch attr-dict `:` type($accumulators) `,`
    type($scratch)
  }];
  let hasVerifier = 1;
}

def HQuant_ReduceBlocksOp : HQuant_TileOp<"reduce_blocks", [
    AllTypesMatch<["accumulators", "result"]>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "add the accumulators of the blocks that share a tile's K (split-K)";
  let description = [{
    Every block stores its f32 partial sum to `workspace` and counts itself in; the
    last one to arrive adds all partial sums in the order of the split index, so
    equal inputs give equal bits, and resets the counter. `is_last` is uniform in
    the block and tells whether this block holds the result.

    Workspace: one u32 counter per output tile (zero before the first launch),
    rounded up to 256 bytes, then partials [tile][split][register/4][thread] of
    16 bytes for `threads` threads (those of K warp 0).
  }];
  let arguments = (ins HQuant_Accumulators:$accumulators,
      HQuant_GlobalPointer:$workspace, HQuant_WorkgroupBytes:$scratch,
      I64Attr:$threads);
  let results = (outs HQuant_Accumulators:$result, I1:$isLast);
  let assemblyFormat = [{
    $accumulators `through` $workspace `,` $scratch attr-dict `:`
    type($accumulators) `,` type($workspace) `,` type($scratch)
  }];
  let hasVerifier = 1;
}

def HQuant_ReduceClusterOp : HQuant_TileOp<"reduce_cluster", [
    AllTypesMatch<["accumulators", "result"]>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "add the accumulators of a cluster whose blocks share a tile's K";
  let description = [{
    The grid's third dimension is the cluster, of `blocks` blocks (the kernel's
    `known_cluster_size`, whose other dimensions may be larger than 1: each of their
    places adds up for itself). All blocks but the first leave their f32 partial sums in
    their `scratch`, the first one adds them to its own in the order of the split
    index, so equal inputs give equal bits. `is_last` is uniform in the block and
    true in the first one, which holds the result. No block leaves before that.

    Scratch: [register/4][thread] of 16 bytes for `threads` threads (those of K
    warp 0).
  }];
  let arguments = (ins HQuant_Accumulators:$accumulators,
      HQuant_WorkgroupBytes:$scratch, I64Attr:$threads, I64Attr:$blocks);
  let results = (outs HQuant_Accumulators:$result, I1:$isLast);
  let assemblyFormat = [{
    $accumulators `through` $scratch attr-dict `:` type($accumulators) `,`
    type($scratch)
  }];
  let hasVerifier = 1;
}

def HQuant_ReduceHalvesOp : HQuant_TileOp<"reduce_halves", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "add the accumulators of two blocks up, each half of the columns";
  let description = [{
    As `reduce_cluster` for a cluster of two blocks along K (the grid's third
    dimension), but both hold a result: block z the columns of the accumulators' tiles
    [z T / 2, (z + 1) T / 2), of T. Each leaves the other's half of its f32 partial
    sums in its `scratch` and adds the other block's to its own.

    ```mlir
    %half = hquant.reduce_halves %acc through %scratch {threads = 128}
        : vector<2x8x4xf32> to vector<2x4x4xf32>, memref<32768xi8, #gpu.address_space<workgroup>>
    ```

    Scratch: [register/4][thread] of 16 bytes for `threads` threads (those of K
    warp 0), of half the registers.
  }];
  let arguments = (ins HQuant_Accumulators:$accumulators,
      HQuant_WorkgroupBytes:$scratch, I64Attr:$threads);
  let results = (outs HQuant_Accumulators:$result);
  let assemblyFormat = [{
    $accumulators `through` $scratch attr-dict `:` type($accumulators) `to`
    type($result) `,` type($scratch)
  }];
  let hasVerifier = 1;
}

def HQuant_ScaleRowsOp : HQuant_TileOp<"scale_rows", [
    AllTypesMatch<["accumulators", "result"]>, MemoryEffects<[MemRead]>]> {
  let summary = "multiply accumulators by per-channel scales (epilogue)";
  let description = [{
    Reads the packed scales of the rows from feature `feature` (a multiple of 16)
    below `bound` from global memory and multiplies in f32, by 2^`exponent` too.
    Unit u begins at `feature` + 16 u `unit_stride`. With `token_rows` the scales are
    those of the columns from `feature` (a multiple of 64).
  }];
  let arguments = (ins HQuant_Accumulators:$accumulators,
      HQuant_GlobalPointer:$scales, I32:$feature, I32:$bound,
      HQuant_FormatAttr:$format, DefaultValuedAttr<I64Attr, "1">:$unit_stride,
      DefaultValuedAttr<I64Attr, "0">:$exponent, UnitAttr:$token_rows);
  let results = (outs HQuant_Accumulators:$result);
  let assemblyFormat = [{
    $accumulators `,` $scales `[` $feature `]` `bound` $bound attr-dict `:`
    type($accumulators) `,` type($scales)
  }];
  let hasVerifier = 1;
}

def HQuant_ScaleOutputOp : HQuant_TileOp<"scale_output", [
    AllTypesMatch<["accumulators", "result"]>, MemoryEffects<[MemRead]>]> {
  let summary = "multiply accumulators by plain f32 scales (epilogue)";
  let description = [{
    Reads f32 scales from global memory: `per` = "tensor", one value; "feature", that
    of each row, from `index` below `bound`; "token", that of each column, likewise.
    With `token_rows` features are columns and tokens rows. Unit u of rows begins at
    `index` + 16 u `unit_stride`.
  }];
  let arguments = (ins HQuant_Accumulators:$accumulators,
      HQuant_GlobalPointer:$scales, I32:$index, I32:$bound, StrAttr:$per,
      DefaultValuedAttr<I64Attr, "1">:$unit_stride, UnitAttr:$token_rows);
  let results = (outs HQuant_Accumulators:$result);
  let assemblyFormat = [{
    $accumulators `,` $scales `[` $index `]` `bound` $bound `per` $per attr-dict `:`
    type($accumulators) `,` type($scales)
  }];
  let hasVerifier = 1;
}

def HQuant_SubtractOffsetsOp : HQuant_TileOp<"subtract_offsets", [
    AllTypesMatch<["accumulators", "result"]>, MemoryEffects<[MemRead]>]> {
  let summary = "subtract zero points times row sums of weights (epilogue)";
  let description = [{
    accumulators - z * r, where r is `sums[feature + ...]` (f32) and z the zero point
    (i32): one for all with `per` = "tensor", else that of the column, from `token`.
    One rounding. Unit u begins at `feature` + 16 u `unit_stride`. With `token_rows`
    features are columns and tokens rows, and unit u begins at `token` + 16 u
    `unit_stride`.
  }];
  let arguments = (ins HQuant_Accumulators:$accumulators,
      HQuant_GlobalPointer:$zero_points, I32:$token, I32:$tokenBound,
      HQuant_GlobalPointer:$sums, I32:$feature, I32:$featureBound, StrAttr:$per,
      DefaultValuedAttr<I64Attr, "1">:$unit_stride, UnitAttr:$token_rows);
  let results = (outs HQuant_Accumulators:$result);
  let assemblyFormat = [{
    $accumulators `,` $zero_points `[` $token `]` `bound` $tokenBound `times` $sums
    `[` $feature `]` `bound` $featureBound `per` $per attr-dict `:`
    type($accumulators) `,` type($zero_points) `,` type($sums)
  }];
  let hasVerifier = 1;
}

def HQuant_AddRowsOp : HQuant_TileOp<"add_rows", [
    AllTypesMatch<["accumulators", "result"]>, MemoryEffects<[MemRead]>]> {
  let summary = "add a bias to accumulators (epilogue)";
  let description = [{
    Reads the bias of the rows from feature `feature` below `bound` (plain [N])
    from global memory and adds in f32. Unit u begins at `feature` + 16 u
    `unit_stride`. With `token_rows` features are columns.
  }];
  let arguments = (ins HQuant_Accumulators:$accumulators,
      HQuant_GlobalPointer:$bias, I32:$feature, I32:$bound,
      HQuant_FormatAttr:$format, DefaultValuedAttr<I64Attr, "1">:$unit_stride,
      UnitAttr:$token_rows);
  let results = (outs HQuant_Accumulators:$result);
  let assemblyFormat = [{
    $accumulators `,` $bias `[` $feature `]` `bound` $bound attr-dict `:`
    type($accumulators) `,` type($bias)
  }];
  let hasVerifier = 1;
}

def HQuant_StoreTileOp : HQuant_TileOp<"store_tile", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "convert and store the block's output tile";
  let description = [{
    Rounds the accumulators (features x tokens, this warp's part begins at
    `feature` and `token` of the block's tile) once to `format`, transposes them
    through `scratch` and writes tokens `row` ..., features `column` ... of the
    row-major output, as far as they are below the bounds. `granule` bytes of a row
    are known to be contiguous, aligned and wholly in or out of bounds. Only the
    first `lanes` threads (K warp 0) hold accumulators; all `threads` store.
    With `if`, nothing is written where the condition (uniform in the block) is
    false. Starts with a barrier. With `direct`, each warp transposes its part in
    registers and stores it by itself: no barrier, `scratch` is not touched; needs a
    `granule` of at least 4. With `token_rows`, which needs `direct`, the accumulators
    are tokens x features.
  }];
  let arguments = (ins HQuant_Accumulators:$accumulators,
      HQuant_GlobalPointer:$dest, I32:$row, I32:$column, I32:$rowBound,
      I32:$columnBound, I32:$stride, I32:$feature, I32:$token,
      HQuant_WorkgroupBytes:$scratch, Optional<I1>:$condition, HQuant_FormatAttr:$format,
      I64Attr:$tile_rows, I64Attr:$tile_columns, I64Attr:$granule,
      I64Attr:$lanes, I64Attr:$threads,
      DefaultValuedAttr<I64Attr, "1">:$unit_stride, UnitAttr:$direct,
      UnitAttr:$token_rows);
  let assemblyFormat = [{
    $accumulators `to` $dest `[` $row `,` $column `]` `bounds` `[` $rowBound `,`
    $columnBound `]` `stride` $stride `warp` `[` $feature `,` $token `]`
    `through` $scratch (`if` $condition^)?
    attr-dict `:` type($accumulators) `,` type($dest) `,` type($scratch)
  }];
  let hasVerifier = 1;
}

include "Humming/Dialect/HQuant/IR/HQuantSegmentOps.td"

#endif // HUMMING_DIALECT_HQUANT_IR_HQUANTTILEOPS_TD
