// What the verifiers of the warpgroup ops refuse, by number (docs/HQuant.md).
//
// RUN: humming-opt %s --split-input-file --verify-diagnostics

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @warpgroup_c1(%t: !tile, %i: i32, %a: vector<1x1x4xi32>, %c: vector<1x3x4xf32>) {
  // expected-error @+1 {{expected accumulators of type 'vector<1x4x4xf32>', got 'vector<1x3x4xf32>'}}
  %x = hquant.warpgroup_mma %a, %t token %i slab %i step 0, %c
      {kind = #hquant.warpgroup_mma<32, f16>, tile_rows = 32} : vector<1x1x4xi32>, !tile, vector<1x3x4xf32>
  return
}

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @warpgroup_c2(%t: !tile, %i: i32, %a: vector<1x4x4xi32>, %c: vector<1x4x4xf32>) {
  // expected-error @+1 {{expected a of type 'vector<1x1x4xi32>', got 'vector<1x4x4xi32>'}}
  %x = hquant.warpgroup_mma %a, %t token %i slab %i step 0, %c
      {kind = #hquant.warpgroup_mma<32, f16>, tile_rows = 32} : vector<1x4x4xi32>, !tile, vector<1x4x4xf32>
  return
}

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @warpgroup_c3(%t: !tile, %i: i32, %a: vector<1x1x4xi32>, %c: vector<1x4x4xf32>) {
  // expected-error @+1 {{expected a step from 0 to 3, got 4}}
  %x = hquant.warpgroup_mma %a, %t token %i slab %i step 4, %c
      {kind = #hquant.warpgroup_mma<32, f16>, tile_rows = 32} : vector<1x1x4xi32>, !tile, vector<1x4x4xf32>
  return
}

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @fragment_c27_warpgroup(%t: !tile, %i: i32, %a: vector<1x1x4xi32>, %c: vector<1x4x4xf32>) {
  // expected-error @+1 {{expected 1, 2 or 4 parts of at least 16 of a step's 32, got 4}}
  %x = hquant.warpgroup_mma %a, %t token %i slab %i step 0, %c
      {kind = #hquant.warpgroup_mma<32, e4m3>, tile_rows = 32, parts = 4} : vector<1x1x4xi32>, !tile, vector<1x4x4xf32>
  return
}

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @warpgroup_c4(%t: !tile, %i: i32, %a: vector<1x1x4xi32>, %c: vector<1x4x4xf32>) {
  // expected-error @+1 {{expected tile_rows to be a multiple of 8 and at least 32, got 24}}
  %x = hquant.warpgroup_mma %a, %t token %i slab %i step 0, %c
      {kind = #hquant.warpgroup_mma<32, f16>, tile_rows = 24} : vector<1x1x4xi32>, !tile, vector<1x4x4xf32>
  return
}

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @warpgroup_c5(%t: !tile, %i: i32) {
  // expected-error @+1 {{expected unit_stride 1 or 4, got 2}}
  %w = hquant.load_weights %t unit %i slab %i {slabs = 2, unit_stride = 2} : !tile -> vector<2x4xi32>
  return
}

// -----

// expected-error @+1 {{expected a multiple of 8 tokens, at most 256, got 12}}
#kind = #hquant.warpgroup_mma<12, f16>

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @warpgroup_c1_tiles(%w: !tile, %t: !tile, %i: i32, %c: vector<2x4x4xf32>) {
  // expected-error @+1 {{expected accumulators of type 'vector<2x4x4xi32>', got 'vector<2x4x4xf32>'}}
  %x = hquant.warpgroup_mma_tiles %w, %t unit %i column %i slab %i steps 0 to 2, %c
      {kind = #hquant.warpgroup_mma<32, s8>, a_rows = 128, b_rows = 32} : !tile, !tile, vector<2x4x4xf32>
  return
}

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @warpgroup_c6(%w: !tile, %t: !tile, %i: i32, %c: vector<2x4x4xf32>) {
  // expected-error @+1 {{expected operands of 8 bits, got bf16}}
  %x = hquant.warpgroup_mma_tiles %w, %t unit %i column %i slab %i steps 0 to 2, %c
      {kind = #hquant.warpgroup_mma<32, bf16>, a_rows = 128, b_rows = 32} : !tile, !tile, vector<2x4x4xf32>
  return
}

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @warpgroup_c6_rank(%w: !tile, %t: !tile, %i: i32, %c: vector<2x4x4xf32>) {
  // expected-error @+1 {{expected tiles of rank 2 with a stage}}
  %x = hquant.warpgroup_mma_tiles %w, %t[%i] unit %i column %i slab %i steps 0 to 2, %c
      {kind = #hquant.warpgroup_mma<32, e4m3>, a_rows = 128, b_rows = 32} : !tile, !tile, vector<2x4x4xf32>
  return
}

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @warpgroup_c7(%w: !tile, %t: !tile, %i: i32, %c: vector<2x4x4xf32>) {
  // expected-error @+1 {{expected steps within 0 to 2, got 1 to 3}}
  %x = hquant.warpgroup_mma_tiles %w, %t unit %i column %i slab %i steps 1 to 3, %c
      {kind = #hquant.warpgroup_mma<32, e4m3>, a_rows = 128, b_rows = 32} : !tile, !tile, vector<2x4x4xf32>
  return
}

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @warpgroup_c8(%w: !tile, %t: !tile, %i: i32, %c: vector<2x4x4xf32>) {
  // expected-error @+1 {{expected a_rows to be a multiple of 64 and at least 128, got 64}}
  %x = hquant.warpgroup_mma_tiles %w, %t unit %i column %i slab %i steps 0 to 2, %c
      {kind = #hquant.warpgroup_mma<32, e4m3>, a_rows = 64, b_rows = 32} : !tile, !tile, vector<2x4x4xf32>
  return
}

// -----

!tile = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @warpgroup_c8_holds(%w: !tile, %t: !tile, %i: i32, %c: vector<2x4x4xf32>) {
  // expected-error @+1 {{expected a_rows from 1 to the 128 of 128 bytes that the tile holds, got 192}}
  %x = hquant.warpgroup_mma_tiles %w, %t unit %i column %i slab %i steps 0 to 2, %c
      {kind = #hquant.warpgroup_mma<32, e4m3>, a_rows = 192, b_rows = 32} : !tile, !tile, vector<2x4x4xf32>
  return
}

// -----

// expected-error @+1 {{expected a multiple of 16 tokens past 32 for s8, got 40}}
#kind = #hquant.warpgroup_mma<40, s8>

// -----

// expected-error @+1 {{expected activations of the weights' format, or both of e4m3 and e5m2, got s8 and e4m3}}
#kind = #hquant.warpgroup_mma<32, s8, activation = e4m3>
