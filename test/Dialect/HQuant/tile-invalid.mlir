// RUN: humming-opt %s --split-input-file --verify-diagnostics

// The numbers are those of docs/HQuant.md, tile stage.

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

func.func @tile_c1_space(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8>) {
  // expected-error @+1 {{operand #6 must be a workgroup buffer (memref of i8, rank 1 or 2, static and contiguous, in #gpu.address_space<workgroup>), but got 'memref<2048xi8>'}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<2048xi8>
  return
}

// -----

func.func @tile_c1_dynamic(%p: !llvm.ptr<1>, %i: i32, %t: memref<?xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{operand #6 must be a workgroup buffer}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<?xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @tile_c1_strided(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8, strided<[2]>, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{operand #6 must be a workgroup buffer}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<2048xi8, strided<[2]>, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @tile_c1_element(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xf32, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{operand #6 must be a workgroup buffer}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<2048xf32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @tile_c2_large(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{result #0 must be a fragment of i32 registers, at most 4096, but got 'vector<1024x4x2xi32>'}}
  %b = hquant.load_activations %t token %i slab %i {tile_rows = 16} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<1024x4x2xi32>
  return
}

// -----

func.func @tile_c2_overflow(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{result #0 must be a fragment}}
  %b = hquant.load_activations %t token %i slab %i {tile_rows = 16} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<4294967296x4294967296x2xi32>
  return
}

// -----

func.func @tile_c2_scalable(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{result #0 must be a fragment}}
  %b = hquant.load_activations %t token %i slab %i {tile_rows = 16} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<[2]x4x2xi32>
  return
}

// -----

func.func @tile_c2_element(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{result #0 must be a fragment}}
  %b = hquant.load_activations %t token %i slab %i {tile_rows = 16} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<2x4x2xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

func.func @copy_c1(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected positive cell_bytes, tile_rows and tile_columns, got 2, 0 and 64}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 0, tile_columns = 64, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c1_negative(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected positive cell_bytes, tile_rows and tile_columns, got -2, 16 and 64}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = -2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c2(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected cell_bytes to divide 16 or be a multiple of it, got 24}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 24, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c3(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected a tile of at most 262144 bytes, got 2048 x 128 cells of 2}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 2048, tile_columns = 128, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c3_overflow(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected a tile of at most 262144 bytes}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 16, tile_rows = 4611686018427387904, tile_columns = 64, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c4(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected threads to be a multiple of 32, at most 1024, got 0}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 0}
      : !llvm.ptr<1> to memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c4_warps(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected threads to be a multiple of 32, at most 1024, got 100}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 100}
      : !llvm.ptr<1> to memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c4_block(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected threads to be a multiple of 32, at most 1024, got 2048}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 2048}
      : !llvm.ptr<1> to memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c5(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected the 24 bytes of a tile row to be a multiple of 16}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 16, tile_columns = 12, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c5_swizzle(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected the 64 bytes of a tile row to be a multiple of 128}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 16, tile_columns = 32, granule = 16, threads = 128, swizzle}
      : !llvm.ptr<1> to memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c6(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected granule 2, 4, 8 or 16, got 32}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 32, threads = 128}
      : !llvm.ptr<1> to memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c7(%p: !llvm.ptr<1>, %i: i32, %t: memref<2x2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected a destination of rank 1 without a stage, got 'memref<2x2048xi8}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<2x2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c7_stage(%p: !llvm.ptr<1>, %i: i32, %t: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected a destination of rank 2 with a stage, got 'memref<2048xi8}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t[%i]
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c8(%p: !llvm.ptr<1>, %i: i32, %t: memref<1024xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected a destination of at least 2048 bytes, a multiple of 16, got 'memref<1024xi8}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<1024xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c8_aligned(%p: !llvm.ptr<1>, %i: i32, %t: memref<2x2056xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected a destination of at least 2048 bytes, a multiple of 16, got 'memref<2x2056xi8}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t[%i]
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128}
      : !llvm.ptr<1> to memref<2x2056xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c9_fetch(%p: !llvm.ptr<1>, %i: i32) {
  // expected-error @+1 {{expected chunks of type 'vector<1x4xi32>', got 'vector<2x4xi32>'}}
  %f = hquant.fetch_tile %p[%i, %i] bounds[%i, %i] stride %i
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128}
      : !llvm.ptr<1> -> vector<2x4xi32>
  return
}

// -----

func.func @copy_c6_fetch(%p: !llvm.ptr<1>, %i: i32) {
  // expected-error @+1 {{expected granule 2, 4, 8 or 16, got 1}}
  %f = hquant.fetch_tile %p[%i, %i] bounds[%i, %i] stride %i
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 1, threads = 128}
      : !llvm.ptr<1> -> vector<1x4xi32>
  return
}

// -----

func.func @copy_c9_put(%v: vector<1x8xi32>, %t: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected chunks of type 'vector<1x4xi32>', got 'vector<1x8xi32>'}}
  hquant.put_tile %v to %t {cell_bytes = 2, tile_rows = 16, tile_columns = 64, threads = 128}
      : vector<1x8xi32> to memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c8_put(%v: vector<1x4xi32>, %t: memref<64xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected a destination of at least 2048 bytes}}
  hquant.put_tile %v to %t {cell_bytes = 2, tile_rows = 16, tile_columns = 64, threads = 128}
      : vector<1x4xi32> to memref<64xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @wait_pending() {
  // expected-error @+1 {{attribute 'pending' failed to satisfy constraint: 32-bit signless integer attribute whose value is non-negative}}
  hquant.wait_copies -1
  return
}

// -----

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

func.func @fragment_c1(%t: memref<2x4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected a tile of rank 1 without a stage, got 'memref<2x4096xi8}}
  %r = hquant.load_weights %t unit %i slab %i {slabs = 2} : memref<2x4096xi8, #gpu.address_space<workgroup>> -> vector<1x4xi32>
  return
}

// -----

func.func @fragment_c1_stage(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected a tile of rank 2 with a stage, got 'memref<4096xi8}}
  %r = hquant.load_weights %t[%i] unit %i slab %i {slabs = 2} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<1x4xi32>
  return
}

// -----

func.func @fragment_c2(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected 1, 2 or 4 units, got 3}}
  %r = hquant.load_weights %t unit %i slab %i {slabs = 2} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<3x4xi32>
  return
}

// -----

func.func @fragment_c3_bits(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected words of type vector<UxBxi32> with B up to 8, got 'vector<1x9xi32>'}}
  %r = hquant.load_weights %t unit %i slab %i {slabs = 1} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<1x9xi32>
  return
}

// -----

func.func @fragment_c3_rank(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected words of type vector<UxBxi32> with B up to 8, got 'vector<1x4x1xi32>'}}
  %r = hquant.load_weights %t unit %i slab %i {slabs = 1} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<1x4x1xi32>
  return
}

// -----

func.func @fragment_c4(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected slabs from 1 to the 2 of 2048 bytes that the tile holds, got 3}}
  %r = hquant.load_weights %t unit %i slab %i {slabs = 3} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<1x4xi32>
  return
}

// -----

func.func @fragment_c4_negative(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected slabs from 1 to the 2 of 2048 bytes that the tile holds, got -1}}
  %r = hquant.load_weights %t unit %i slab %i {slabs = -1} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<1x4xi32>
  return
}

// -----

func.func @fragment_c5(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected a fragment of type vector<TxSx2xi32> with 4, 2 or 1 steps (16-, 8- or 4-bit activations), got 'vector<2x3x2xi32>'}}
  %r = hquant.load_activations %t token %i slab %i {tile_rows = 16} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<2x3x2xi32>
  return
}

// -----

func.func @fragment_c6(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected tile_rows to be a multiple of 8, at least the 16 tokens that are loaded, got 12}}
  %r = hquant.load_activations %t token %i slab %i {tile_rows = 12} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<2x4x2xi32>
  return
}

// -----

func.func @fragment_c6_tokens(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected tile_rows to be a multiple of 8, at least the 16 tokens that are loaded, got 8}}
  %r = hquant.load_activations %t token %i slab %i {tile_rows = 8} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<2x4x2xi32>
  return
}

// -----

func.func @fragment_c7(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected tile_rows from 1 to the 32 of 128 bytes that the tile holds, got 64}}
  %r = hquant.load_activations %t token %i slab %i {tile_rows = 64} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<2x4x2xi32>
  return
}

// -----

func.func @fragment_c8(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected scales of type vector<UxGxi32> with 1, 2 or 4 groups (of two words with 32 bits), got 'vector<1x3xi32>'}}
  %r = hquant.load_scales %t unit %i group %i {strips = 1, element_bits = 16} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<1x3xi32>
  return
}

// -----

func.func @fragment_c2_scales(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected 1, 2 or 4 units, got 8}}
  %r = hquant.load_scales %t unit %i group %i {strips = 1, element_bits = 16} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<8x1xi32>
  return
}

// -----

func.func @fragment_c9(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected element_bits 8, 16 or 32, got 4}}
  %r = hquant.load_scales %t unit %i group %i {strips = 1, element_bits = 4} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<1x1xi32>
  return
}

// -----

func.func @fragment_c10(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected strips from 1 to the 16 of 256 bytes that the tile holds, got 17}}
  %r = hquant.load_scales %t unit %i group %i {strips = 17, element_bits = 16} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<1x2xi32>
  return
}

// -----

func.func @fragment_c11(%w: vector<1x3xi32>) {
  // expected-error @+1 {{expected words of type vector<Ux4xi32>, got 'vector<1x3xi32>'}}
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<1x3xi32> -> vector<1x4x4xi32>
  return
}

// -----

func.func @fragment_c12(%w: vector<1x4xi32>) {
  // expected-error @+1 {{expected a fragment of type 'vector<1x4x4xi32>', got 'vector<2x4x4xi32>'}}
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<2x4x4xi32>
  return
}

// -----

func.func @fragment_c13_units(%w: vector<1x4xi32>, %s: vector<2x1xi32>) {
  // expected-error @+1 {{expected scales and zero points of one type vector<1xGxi32> with G dividing 4, got 'vector<2x1xi32>'}}
  %a = hquant.dequant %w scales(%s : vector<2x1xi32>)
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return
}

// -----

func.func @fragment_c13_groups(%w: vector<1x4xi32>, %z: vector<1x3xi32>) {
  // expected-error @+1 {{expected scales and zero points of one type vector<1xGxi32> with G dividing 4, got 'vector<1x3xi32>'}}
  %a = hquant.dequant %w zero_points(%z : vector<1x3xi32>)
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return
}

// -----

func.func @fragment_c13_short(%w: vector<1x4xi32>, %z: vector<1x8xi32>) {
  // expected-error @+1 {{expected scales and zero points of one type vector<1xGxi32> with G dividing 2 (zero points: or 4), got 'vector<1x8xi32>'}}
  %a = hquant.dequant %w zero_points(%z : vector<1x8xi32>)
      {mma = #hquant.sync_mma<m16n8k32, s8>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x2x4xi32>
  return
}

// -----

func.func @fragment_c13_differ(%w: vector<1x4xi32>, %s: vector<1x1xi32>, %z: vector<1x4xi32>) {
  // expected-error @+1 {{expected scales and zero points of one type vector<1xGxi32> with G dividing 4, got 'vector<1x4xi32>'}}
  %a = hquant.dequant %w scales(%s : vector<1x1xi32>) zero_points(%z : vector<1x4xi32>)
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return
}

// -----

func.func @fragment_c14(%w: vector<1x4xi32>, %s: vector<1x1xi32>) {
  // expected-error @+1 {{expected scales on the operand in its own format f16, e8m0 for bf16 or e4m3 with native_convert, got bf16}}
  %a = hquant.dequant %w scales(%s : vector<1x1xi32>)
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<bf16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return
}

// -----

func.func @fragment_c15(%w: vector<1x4xi32>) {
  // expected-error @+1 {{expected zero points in f16 or bf16 with float_zero_points, got none}}
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>, float_zero_points}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return
}

// -----

func.func @fragment_c15_format(%w: vector<1x4xi32>, %z: vector<1x1xi32>) {
  // expected-error @+1 {{expected zero points in f16 or bf16 with float_zero_points, got e4m3}}
  %a = hquant.dequant %w zero_points(%z : vector<1x1xi32>)
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<e4m3>, float_zero_points}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return
}

// -----

func.func @fragment_c16(%a: vector<1x4x4xi32>, %b: vector<1x4x2xi32>, %c: vector<1x1x2xf32>) {
  // expected-error @+1 {{expected accumulators of type vector<UxTx4xf32>, got 'vector<1x1x2xf32>'}}
  %d = hquant.mma %a, %b, %c steps 0 to 4 {kind = #hquant.sync_mma<m16n8k16, f16>}
      : vector<1x4x4xi32>, vector<1x4x2xi32>, vector<1x1x2xf32>
  return
}

// -----

func.func @fragment_c17_a(%a: vector<2x4x4xi32>, %b: vector<1x4x2xi32>, %c: vector<1x1x4xf32>) {
  // expected-error @+1 {{expected a of type 'vector<1x4x4xi32>', got 'vector<2x4x4xi32>'}}
  %d = hquant.mma %a, %b, %c steps 0 to 4 {kind = #hquant.sync_mma<m16n8k16, f16>}
      : vector<2x4x4xi32>, vector<1x4x2xi32>, vector<1x1x4xf32>
  return
}

// -----

func.func @fragment_c17_b(%a: vector<1x4x4xi32>, %b: vector<2x4x2xi32>, %c: vector<1x1x4xf32>) {
  // expected-error @+1 {{expected b of type 'vector<1x4x2xi32>', got 'vector<2x4x2xi32>'}}
  %d = hquant.mma %a, %b, %c steps 0 to 4 {kind = #hquant.sync_mma<m16n8k16, f16>}
      : vector<1x4x4xi32>, vector<2x4x2xi32>, vector<1x1x4xf32>
  return
}

// -----

func.func @fragment_c18(%a: vector<1x4x4xi32>, %b: vector<1x4x2xi32>, %c: vector<1x1x4xf32>) {
  // expected-error @+1 {{expected steps within 0 to 4, got 0 to 5}}
  %d = hquant.mma %a, %b, %c steps 0 to 5 {kind = #hquant.sync_mma<m16n8k16, f16>}
      : vector<1x4x4xi32>, vector<1x4x2xi32>, vector<1x1x4xf32>
  return
}

// -----

func.func @fragment_c27(%a: vector<1x4x4xi32>, %b: vector<1x4x2xi32>, %c: vector<1x1x4xf32>) {
  // expected-error @+1 {{expected 1, 2 or 4 parts of at least 16 of a step's 16, got 2}}
  %d = hquant.mma %a, %b, %c steps 0 to 1 {kind = #hquant.sync_mma<m16n8k16, f16>, parts = 2}
      : vector<1x4x4xi32>, vector<1x4x2xi32>, vector<1x1x4xf32>
  return
}

// -----

func.func @fragment_c27_count(%a: vector<1x1x4xi32>, %b: vector<1x1x2xi32>, %c: vector<1x1x4xi32>) {
  // expected-error @+1 {{expected 1, 2 or 4 parts of at least 16 of a step's 64, got 3}}
  %d = hquant.mma %a, %b, %c steps 0 to 1 {kind = #hquant.sync_mma<m16n8k64, s4>, parts = 3}
      : vector<1x1x4xi32>, vector<1x1x2xi32>, vector<1x1x4xi32>
  return
}

// -----

func.func @fragment_c27_part(%a: vector<1x2x4xi32>, %b: vector<1x2x2xi32>, %c: vector<1x1x4xi32>) {
  // expected-error @+1 {{expected a part from 0 to 1, got 2}}
  %d = hquant.mma %a, %b, %c steps 0 to 1 {kind = #hquant.sync_mma<m16n8k32, s8>, part = 2, parts = 2}
      : vector<1x2x4xi32>, vector<1x2x2xi32>, vector<1x1x4xi32>
  return
}

// -----

func.func @fragment_c18_order(%a: vector<1x4x4xi32>, %b: vector<1x4x2xi32>, %c: vector<1x1x4xf32>) {
  // expected-error @+1 {{expected steps within 0 to 4, got 2 to 2}}
  %d = hquant.mma %a, %b, %c steps 2 to 2 {kind = #hquant.sync_mma<m16n8k16, f16>}
      : vector<1x4x4xi32>, vector<1x4x2xi32>, vector<1x1x4xf32>
  return
}

// -----

func.func @fragment_c18_negative(%a: vector<1x4x4xi32>, %b: vector<1x4x2xi32>, %c: vector<1x1x4xf32>) {
  // expected-error @+1 {{expected steps within 0 to 4, got -1 to 2}}
  %d = hquant.mma %a, %b, %c steps -1 to 2 {kind = #hquant.sync_mma<m16n8k16, f16>}
      : vector<1x4x4xi32>, vector<1x4x2xi32>, vector<1x1x4xf32>
  return
}

// -----

func.func @fragment_c16_scale(%s: vector<1x2xi32>, %c: vector<1x1x2xf32>) {
  // expected-error @+1 {{expected accumulators of type vector<UxTx4xf32>, got 'vector<1x1x2xf32>'}}
  %d = hquant.scale_accumulate %c, %s, %c group 0 {scale = #hquant.format<f16>} : vector<1x1x2xf32>, vector<1x2xi32>, vector<1x1x2xf32>
  return
}

// -----

func.func @fragment_c19(%s: vector<1x2xi32>, %c: vector<1x1x4xf32>) {
  // expected-error @+1 {{expected scales of type vector<1xGxi32> and a group from 0 to G - 1, got 'vector<1x2xi32>' and 2}}
  %d = hquant.scale_accumulate %c, %s, %c group 2 {scale = #hquant.format<f16>} : vector<1x1x4xf32>, vector<1x2xi32>, vector<1x1x4xf32>
  return
}

// -----

func.func @fragment_c19_negative(%s: vector<1x2xi32>, %c: vector<1x1x4xf32>) {
  // expected-error @+1 {{expected scales of type vector<1xGxi32> and a group from 0 to G - 1, got 'vector<1x2xi32>' and -1}}
  %d = hquant.scale_accumulate %c, %s, %c group -1 {scale = #hquant.format<f16>} : vector<1x1x4xf32>, vector<1x2xi32>, vector<1x1x4xf32>
  return
}

// -----

func.func @fragment_c19_units(%s: vector<2x2xi32>, %c: vector<1x1x4xf32>) {
  // expected-error @+1 {{expected scales of type vector<1xGxi32> and a group from 0 to G - 1, got 'vector<2x2xi32>' and 0}}
  %d = hquant.scale_accumulate %c, %s, %c group 0 {scale = #hquant.format<f16>} : vector<1x1x4xf32>, vector<2x2xi32>, vector<1x1x4xf32>
  return
}

// -----

func.func @fragment_c20(%s: vector<1x2xi32>, %c: vector<1x1x4xf32>) {
  // expected-error @+1 {{expected scales of f32, f16, bf16, e4m3, e5m2 or e8m0, got e3m2}}
  %d = hquant.scale_accumulate %c, %s, %c group 0 {scale = #hquant.format<e3m2>} : vector<1x1x4xf32>, vector<1x2xi32>, vector<1x1x4xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Reductions and epilogue
//===----------------------------------------------------------------------===//

func.func @epilogue_c1(%c: vector<1x2x3xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected accumulators of type vector<UxTx4xf32>, got 'vector<1x2x3xf32>'}}
  %d = hquant.reduce_warps %c through %x {warps_k = 2, lanes = 64} : vector<1x2x3xf32>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c2(%c: vector<1x2x4xf32>, %x: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected scratch of rank 1 and at least 4096 bytes, got 'memref<2048xi8}}
  %d = hquant.reduce_warps %c through %x {warps_k = 3, lanes = 64} : vector<1x2x4xf32>, memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c2_rank(%c: vector<1x2x4xf32>, %x: memref<2x4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected scratch of rank 1 and at least 2048 bytes, got 'memref<2x4096xi8}}
  %d = hquant.reduce_warps %c through %x {warps_k = 2, lanes = 64} : vector<1x2x4xf32>, memref<2x4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c4(%c: vector<1x2x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected lanes to be a multiple of 32 and at least 2 warps_k, at most 1024 threads together, got 64 and 1}}
  %d = hquant.reduce_warps %c through %x {warps_k = 1, lanes = 64} : vector<1x2x4xf32>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c4_lanes(%c: vector<1x2x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected lanes to be a multiple of 32 and at least 2 warps_k, at most 1024 threads together, got 0 and 2}}
  %d = hquant.reduce_warps %c through %x {warps_k = 2, lanes = 0} : vector<1x2x4xf32>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c4_block(%c: vector<1x2x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected lanes to be a multiple of 32 and at least 2 warps_k, at most 1024 threads together, got 512 and 3}}
  %d = hquant.reduce_warps %c through %x {warps_k = 3, lanes = 512} : vector<1x2x4xf32>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c1_blocks(%c: vector<1x2x2xf32>, %p: !llvm.ptr<1>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected accumulators of type vector<UxTx4xf32>, got 'vector<1x2x2xf32>'}}
  %d, %l = hquant.reduce_blocks %c through %p, %x {threads = 64} : vector<1x2x2xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c5(%c: vector<1x2x4xf32>, %p: !llvm.ptr<1>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected threads to be a multiple of 32, at most 1024, got 33}}
  %d, %l = hquant.reduce_blocks %c through %p, %x {threads = 33} : vector<1x2x4xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c2_blocks(%c: vector<1x2x4xf32>, %p: !llvm.ptr<1>, %x: memref<2xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected scratch of rank 1 and at least 4 bytes, got 'memref<2xi8}}
  %d, %l = hquant.reduce_blocks %c through %p, %x {threads = 64} : vector<1x2x4xf32>, !llvm.ptr<1>, memref<2xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c12(%c: vector<1x2x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected threads to be a multiple of 32, at most 1024, got 33}}
  %d, %l = hquant.reduce_cluster %c through %x {threads = 33, blocks = 2} : vector<1x2x4xf32>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c13(%c: vector<1x2x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected a cluster of 2 to 8 blocks, got 9}}
  %d, %l = hquant.reduce_cluster %c through %x {threads = 64, blocks = 9} : vector<1x2x4xf32>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c12_halves(%c: vector<1x2x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected threads to be a multiple of 32, at most 1024, got 33}}
  %d = hquant.reduce_halves %c through %x {threads = 33} : vector<1x2x4xf32> to vector<1x1x4xf32>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c16(%c: vector<1x3x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected a result of half the accumulators' tiles, which are even, got 'vector<1x1x4xf32>' of 'vector<1x3x4xf32>'}}
  %d = hquant.reduce_halves %c through %x {threads = 64} : vector<1x3x4xf32> to vector<1x1x4xf32>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c2_halves(%c: vector<1x2x4xf32>, %x: memref<1023xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected scratch of rank 1 and at least 1024 bytes, got 'memref<1023xi8}}
  %d = hquant.reduce_halves %c through %x {threads = 64} : vector<1x2x4xf32> to vector<1x1x4xf32>, memref<1023xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c2_cluster(%c: vector<1x2x4xf32>, %x: memref<2047xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected scratch of rank 1 and at least 2048 bytes, got 'memref<2047xi8}}
  %d, %l = hquant.reduce_cluster %c through %x {threads = 64, blocks = 2} : vector<1x2x4xf32>, memref<2047xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c1_scale(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x1xf32>) {
  // expected-error @+1 {{expected accumulators of type vector<UxTx4xf32>, got 'vector<1x2x1xf32>'}}
  %d = hquant.scale_rows %c, %p[%i] bound %i {format = #hquant.format<f16>} : vector<1x2x1xf32>, !llvm.ptr<1>
  return
}

// -----

func.func @fragment_c2_rows(%p: !llvm.ptr<1>, %i: i32, %c: vector<3x2x4xf32>) {
  // expected-error @+1 {{expected 1, 2 or 4 units, got 3}}
  %d = hquant.scale_rows %c, %p[%i] bound %i {format = #hquant.format<f16>} : vector<3x2x4xf32>, !llvm.ptr<1>
  return
}

// -----

func.func @epilogue_c3_scale(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>) {
  // expected-error @+1 {{expected scales of f32, f16, bf16, e4m3, e5m2 or e8m0, got e2m1}}
  %d = hquant.scale_rows %c, %p[%i] bound %i {format = #hquant.format<e2m1>} : vector<1x2x4xf32>, !llvm.ptr<1>
  return
}

// -----

func.func @epilogue_c1_add(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x1xf32>) {
  // expected-error @+1 {{expected accumulators of type vector<UxTx4xf32>, got 'vector<1x2x1xf32>'}}
  %d = hquant.add_rows %c, %p[%i] bound %i {format = #hquant.format<f16>} : vector<1x2x1xf32>, !llvm.ptr<1>
  return
}

// -----

func.func @epilogue_c3_add(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>) {
  // expected-error @+1 {{expected format f16 or bf16, got u4}}
  %d = hquant.add_rows %c, %p[%i] bound %i {format = #hquant.format<u4>} : vector<1x2x4xf32>, !llvm.ptr<1>
  return
}

// -----

func.func @epilogue_c1_store(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x8xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected accumulators of type vector<UxTx4xf32>, got 'vector<1x2x8xf32>'}}
  hquant.store_tile %c to %p[%i, %i] bounds[%i, %i] stride %i warp[%i, %i] through %x
      {format = #hquant.format<f16>, tile_rows = 16, tile_columns = 64, granule = 16, lanes = 64, threads = 128}
      : vector<1x2x8xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c3_store(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected format f16 or bf16, got f32}}
  hquant.store_tile %c to %p[%i, %i] bounds[%i, %i] stride %i warp[%i, %i] through %x
      {format = #hquant.format<f32>, tile_rows = 16, tile_columns = 64, granule = 16, lanes = 64, threads = 128}
      : vector<1x2x4xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c6(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected positive tile_rows and tile_columns, tile_columns a multiple of 8, together at most 262144 bytes, got 16 and 60}}
  hquant.store_tile %c to %p[%i, %i] bounds[%i, %i] stride %i warp[%i, %i] through %x
      {format = #hquant.format<f16>, tile_rows = 16, tile_columns = 60, granule = 16, lanes = 64, threads = 128}
      : vector<1x2x4xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c6_rows(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected positive tile_rows and tile_columns, tile_columns a multiple of 8, together at most 262144 bytes, got 0 and 64}}
  hquant.store_tile %c to %p[%i, %i] bounds[%i, %i] stride %i warp[%i, %i] through %x
      {format = #hquant.format<f16>, tile_rows = 0, tile_columns = 64, granule = 16, lanes = 64, threads = 128}
      : vector<1x2x4xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c6_bytes(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected positive tile_rows and tile_columns, tile_columns a multiple of 8, together at most 262144 bytes, got 4611686018427387904 and 64}}
  hquant.store_tile %c to %p[%i, %i] bounds[%i, %i] stride %i warp[%i, %i] through %x
      {format = #hquant.format<f16>, tile_rows = 4611686018427387904, tile_columns = 64, granule = 16, lanes = 64, threads = 128}
      : vector<1x2x4xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c7(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected threads and lanes to be multiples of 32, lanes at most threads and threads at most 1024, got 128 and 256}}
  hquant.store_tile %c to %p[%i, %i] bounds[%i, %i] stride %i warp[%i, %i] through %x
      {format = #hquant.format<f16>, tile_rows = 16, tile_columns = 64, granule = 16, lanes = 256, threads = 128}
      : vector<1x2x4xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c7_threads(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected threads and lanes to be multiples of 32, lanes at most threads and threads at most 1024, got 100 and 64}}
  hquant.store_tile %c to %p[%i, %i] bounds[%i, %i] stride %i warp[%i, %i] through %x
      {format = #hquant.format<f16>, tile_rows = 16, tile_columns = 64, granule = 16, lanes = 64, threads = 100}
      : vector<1x2x4xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c8(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>, %x: memref<4096xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected granule 2, 4, 8 or 16, got 3}}
  hquant.store_tile %c to %p[%i, %i] bounds[%i, %i] stride %i warp[%i, %i] through %x
      {format = #hquant.format<f16>, tile_rows = 16, tile_columns = 64, granule = 3, lanes = 64, threads = 128}
      : vector<1x2x4xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c2_store(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>, %x: memref<2048xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected scratch of rank 1 and at least 2304 bytes, got 'memref<2048xi8}}
  hquant.store_tile %c to %p[%i, %i] bounds[%i, %i] stride %i warp[%i, %i] through %x
      {format = #hquant.format<f16>, tile_rows = 16, tile_columns = 64, granule = 16, lanes = 64, threads = 128}
      : vector<1x2x4xf32>, !llvm.ptr<1>, memref<2048xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @epilogue_c9(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>) {
  // expected-error @+1 {{expected per tensor, feature or token, got row}}
  %d = hquant.scale_output %c, %p[%i] bound %i per "row" : vector<1x2x4xf32>, !llvm.ptr<1>
  return
}

// -----

func.func @fragment_c16_integer(%a: vector<1x2x4xi32>, %b: vector<1x2x2xi32>, %c: vector<1x1x4xf32>) {
  // expected-error @+1 {{expected accumulators of type vector<UxTx4xi32>, got 'vector<1x1x4xf32>'}}
  %d = hquant.mma %a, %b, %c steps 0 to 2 {kind = #hquant.sync_mma<m16n8k32, s8>} : vector<1x2x4xi32>, vector<1x2x2xi32>, vector<1x1x4xf32>
  return
}

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @fragment_c21(%t: !tile, %i: i32) {
  // expected-error @+1 {{expected a fragment of type vector<Ux2x4xi32>, got 'vector<1x4x4xi32>'}}
  %f = hquant.load_plain_weights %t unit %i slab %i {tile_rows = 64} : !tile -> vector<1x4x4xi32>
  return
}

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @fragment_c22(%t: !tile, %i: i32) {
  // expected-error @+1 {{expected tile_rows to be a multiple of 64, got 96}}
  %f = hquant.load_plain_weights %t unit %i slab %i {tile_rows = 96} : !tile -> vector<1x2x4xi32>
  return
}

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @fragment_c22_holds(%t: !tile, %i: i32) {
  // expected-error @+1 {{expected tile_rows from 1 to the 128 of 128 bytes that the tile holds, got 192}}
  %f = hquant.load_plain_weights %t unit %i slab %i {tile_rows = 192} : !tile -> vector<1x2x4xi32>
  return
}
