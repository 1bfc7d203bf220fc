// Round trip of the ops of a warpgroup and of the launch order.
//
// RUN: humming-opt %s --allow-unregistered-dialect | humming-opt --allow-unregistered-dialect | FileCheck %s

!tile = memref<3x16384xi8, #gpu.address_space<workgroup>>

// CHECK-LABEL: func @warpgroup
func.func @warpgroup(%t: !tile, %i: i32, %a: vector<2x1x4xi32>, %c: vector<2x4x4xf32>) -> vector<2x4x4xf32> {
  // CHECK: hquant.grid_start
  hquant.grid_start
  // CHECK: hquant.grid_wait
  hquant.grid_wait
  // CHECK: hquant.fence_async
  hquant.fence_async
  // CHECK: hquant.load_weights %{{.*}}[%{{.*}}] unit %{{.*}} slab %{{.*}} {slabs = 2 : i64, unit_stride = 4 : i64}
  %w = hquant.load_weights %t[%i] unit %i slab %i {slabs = 2, unit_stride = 4} : !tile -> vector<2x4xi32>
  // CHECK: hquant.dequant %{{.*}} {first_step = 3 : i64, mma = #hquant.warpgroup_mma<32, bf16>
  %d = hquant.dequant %w {mma = #hquant.warpgroup_mma<32, bf16>, weight = #hquant.format<u4>,
      scale = #hquant.format<bf16>, first_step = 3} : vector<2x4xi32> -> vector<2x1x4xi32>
  // CHECK: %[[D:.*]] = hquant.warpgroup_mma %{{.*}}, %{{.*}}[%{{.*}}] token %{{.*}} slab %{{.*}} step 3, %{{.*}} {kind = #hquant.warpgroup_mma<32, bf16>, tile_rows = 32 : i64}
  %x = hquant.warpgroup_mma %d, %t[%i] token %i slab %i step 3, %c
      {kind = #hquant.warpgroup_mma<32, bf16>, tile_rows = 32} : vector<2x1x4xi32>, !tile, vector<2x4x4xf32>
  // CHECK: hquant.warpgroup_wait %[[D]] pending 1 : vector<2x4x4xf32>
  %y = hquant.warpgroup_wait %x pending 1 : vector<2x4x4xf32>
  // CHECK: hquant.warpgroup_mma {{.*}} zero
  %z = hquant.warpgroup_mma %d, %t[%i] token %i slab %i step 0, %y
      {kind = #hquant.warpgroup_mma<32, bf16>, tile_rows = 32, zero} : vector<2x1x4xi32>, !tile, vector<2x4x4xf32>
  return %z : vector<2x4x4xf32>
}

// CHECK-LABEL: func @tiles
func.func @tiles(%w: !tile, %t: !tile, %i: i32, %c: vector<2x4x4xi32>) -> vector<2x4x4xi32> {
  // CHECK: hquant.warpgroup_mma_tiles %{{.*}}, %{{.*}}[%{{.*}}] unit %{{.*}} column %{{.*}} slab %{{.*}} steps 0 to 2, %{{.*}} {a_rows = 128 : i64, b_rows = 32 : i64, kind = #hquant.warpgroup_mma<32, s8>, zero}
  %x = hquant.warpgroup_mma_tiles %w, %t[%i] unit %i column %i slab %i steps 0 to 2, %c
      {kind = #hquant.warpgroup_mma<32, s8>, a_rows = 128, b_rows = 32, zero} : !tile, !tile, vector<2x4x4xi32>
  // CHECK: hquant.warpgroup_wait %{{.*}} pending 0 : vector<2x4x4xi32>
  %y = hquant.warpgroup_wait %x pending 0 : vector<2x4x4xi32>
  // CHECK: hquant.load_plain_weights %{{.*}}[%{{.*}}] unit %{{.*}} slab %{{.*}} {tile_rows = 128 : i64}
  %f = hquant.load_plain_weights %w[%i] unit %i slab %i {tile_rows = 128} : !tile -> vector<2x2x4xi32>
  // CHECK: #hquant.warpgroup_mma<32, e5m2, activation = e4m3>
  "test.kind"() {kind = #hquant.warpgroup_mma<32, e5m2, activation = e4m3>} : () -> ()
  return %y : vector<2x4x4xi32>
}
