// RUN: humming-opt %s -split-input-file -verify-diagnostics

!ring = memref<3x16xi8, #gpu.address_space<workgroup>>
!tile = memref<3x2048xi8, #gpu.address_space<workgroup>>

func.func @copy_c10(%p: !llvm.ptr<1>, %i: i32, %t: !tile) {
  // expected-error @+1 {{expected first_thread to be a multiple of 32, at most 1024 - threads, got 16}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t[%i]
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128, first_thread = 16, swizzle, async}
      : !llvm.ptr<1> to !tile
  return
}

// -----

!ring = memref<3x16xi8, #gpu.address_space<workgroup>>
!tile = memref<3x2048xi8, #gpu.address_space<workgroup>>

func.func @copy_c11(%p: !llvm.ptr<1>, %i: i32, %t: !tile, %r: !ring) {
  // expected-error @+1 {{expected a copy through a ring to have a stage, no swizzle, granule 16}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t[%i] through %r
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128, first_thread = 128}
      : !llvm.ptr<1> to !tile through !ring
  return
}

// -----

!tile = memref<3x2048xi8, #gpu.address_space<workgroup>>

func.func @copy_c12(%p: !llvm.ptr<1>, %i: i32, %t: !tile) {
  // expected-error @+1 {{expected a copy with first_thread to go through a ring or to be async, with granule 16}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t[%i]
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 128, first_thread = 128}
      : !llvm.ptr<1> to !tile
  return
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
!ring = memref<3x16xi8, #gpu.address_space<workgroup>>

func.func @copy_c11_map(%p: !llvm.ptr<1>, %i: i32, %t: !tile, %r: !ring, %m: !llvm.ptr) {
  // expected-error @+1 {{expected a copy through a ring to have a stage}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t through %r by %m
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 32, swizzle}
      : !llvm.ptr<1> to !tile through !ring
  return
}

// -----

!tile = memref<3x2048xi8, #gpu.address_space<workgroup>>
!ring = memref<3x16xi8, #gpu.address_space<workgroup>>

func.func @copy_c13(%p: !llvm.ptr<1>, %i: i32, %t: !tile, %r: !ring, %m: !llvm.ptr) {
  // expected-error @+1 {{expected a copy by a tensor map to have swizzle, granule 16, cells of at most 16 bytes and a multiple of 8 rows}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t[%i] through %r by %m
      {cell_bytes = 2, tile_rows = 12, tile_columns = 64, granule = 16, threads = 32, swizzle}
      : !llvm.ptr<1> to !tile through !ring
  return
}

// -----

!tile = memref<3x2048xi8, #gpu.address_space<workgroup>>
!ring = memref<3x16xi8, #gpu.address_space<workgroup>>

func.func @copy_c14(%p: !llvm.ptr<1>, %i: i32, %t: !tile, %r: !ring, %m: !llvm.ptr) {
  // expected-error @+1 {{expected blocks to be 1, or 2 for a copy of a multiple of 16 rows by a tensor map, got 2}}
  hquant.copy_tile %p[%i, %i] bounds[%i, %i] stride %i to %t[%i] through %r by %m
      {cell_bytes = 2, tile_rows = 8, tile_columns = 64, granule = 16, threads = 32, blocks = 2, swizzle}
      : !llvm.ptr<1> to !tile through !ring
  return
}

// -----

!ring = memref<3x8xi8, #gpu.address_space<workgroup>>

func.func @ring_c1(%i: i32, %r: !ring) {
  // expected-error @+1 {{expected a ring of 2 to 8 stages of 16 bytes, got 'memref<3x8xi8}}
  hquant.ring_wait %r[%i] phase %i : !ring
  return
}

// -----

!ring = memref<9x16xi8, #gpu.address_space<workgroup>>

func.func @ring_c1_stages(%i: i32, %r: !ring) {
  // expected-error @+1 {{expected a ring of 2 to 8 stages of 16 bytes, got 'memref<9x16xi8}}
  hquant.ring_release %r[%i] : !ring
  return
}

// -----

!ring = memref<3x16xi8, #gpu.address_space<workgroup>>

func.func @ring_c2(%r: !ring) {
  // expected-error @+1 {{expected 0 to 1024 producer threads and 1 to 32 consumer warps, got 128 and 0}}
  hquant.ring_init %r {producers = 128, consumers = 0} : !ring
  return
}

// -----

!ring = memref<3x16xi8, #gpu.address_space<workgroup>>

func.func @ring_c4(%i: i32, %r: !ring) {
  // expected-error @+1 {{expected 1 or 2 blocks, got 3}}
  hquant.ring_release %r[%i] {blocks = 3} : !ring
  return
}

// -----

!ring = memref<3x16xi8, #gpu.address_space<workgroup>>

func.func @ring_c3(%i: i32, %r: !ring) {
  // expected-error @+1 {{expected first_thread to be a multiple of 32, at most 992, got 8}}
  hquant.ring_commit %r[%i] {first_thread = 8} : !ring
  return
}

// -----

func.func @epilogue_c11(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>, %x: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected a granule of at least 4 with direct, got 2}}
  hquant.store_tile %c to %p[%i, %i] bounds[%i, %i] stride %i warp[%i, %i] through %x
      {format = #hquant.format<f16>, tile_rows = 16, tile_columns = 64, granule = 2, lanes = 64, threads = 128, direct}
      : vector<1x2x4xf32>, !llvm.ptr<1>, memref<128xi8, #gpu.address_space<workgroup>>
  return
}
