// RUN: humming-opt %s | humming-opt | FileCheck %s
// RUN: humming-opt %s --mlir-print-op-generic | humming-opt | FileCheck %s
// RUN: humming-opt %s --emit-bytecode | humming-opt | FileCheck %s

!tile = memref<4096xi8, #gpu.address_space<workgroup>>
!staged = memref<3x4096xi8, #gpu.address_space<workgroup>>

// CHECK-LABEL: func @copies
func.func @copies(%p: !llvm.ptr<1>, %i: i32, %n: i32, %tile: !tile, %staged: !staged) {
  // CHECK: hquant.copy_tile %[[P:.*]][%[[I:.*]], %[[I]]] bounds[%[[N:.*]], %[[N]]] stride %[[N]] to %[[T:.*]] {cell_bytes = 2 : i64, granule = 4 : i64, swizzle, threads = 128 : i64, tile_columns = 64 : i64, tile_rows = 16 : i64} : <1> to memref<4096xi8, #gpu.address_space<workgroup>>
  hquant.copy_tile %p[%i, %i] bounds[%n, %n] stride %n to %tile
      {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 4, threads = 128, swizzle} : !llvm.ptr<1> to !tile
  // CHECK: hquant.copy_tile %[[P]][%[[I]], %[[I]]] bounds[%[[N]], %[[N]]] stride %[[N]] to %[[S:.*]][%[[I]]] {async, {{.*}}} : <1> to memref<3x4096xi8,
  hquant.copy_tile %p[%i, %i] bounds[%n, %n] stride %n to %staged[%i]
      {cell_bytes = 2048, tile_rows = 1, tile_columns = 2, granule = 16, threads = 32, async} : !llvm.ptr<1> to !staged
  // CHECK: hquant.commit_copies
  hquant.commit_copies
  // CHECK: hquant.wait_copies 1
  hquant.wait_copies 1
  // CHECK: %[[F:.*]] = hquant.fetch_tile %[[P]][%[[I]], %[[I]]] bounds[%[[N]], %[[N]]] stride %[[N]] {{{.*}}} : <1> -> vector<2x4xi32>
  %f = hquant.fetch_tile %p[%i, %i] bounds[%n, %n] stride %n
      {cell_bytes = 2048, tile_rows = 1, tile_columns = 2, granule = 16, threads = 128} : !llvm.ptr<1> -> vector<2x4xi32>
  // CHECK: hquant.put_tile %[[F]] to %[[T]] {{{.*}}} : vector<2x4xi32> to memref<4096xi8,
  hquant.put_tile %f to %tile
      {cell_bytes = 2048, tile_rows = 1, tile_columns = 2, threads = 128} : vector<2x4xi32> to !tile
  // CHECK: hquant.put_tile %[[F]] to %[[S]][%[[I]]] {
  hquant.put_tile %f to %staged[%i]
      {cell_bytes = 2048, tile_rows = 1, tile_columns = 2, threads = 128} : vector<2x4xi32> to !staged
  return
}

// CHECK-LABEL: func @fragments
func.func @fragments(%i: i32, %tile: !tile, %staged: !staged, %c: vector<2x2x4xf32>) -> vector<2x2x4xf32> {
  // CHECK: %[[W:.*]] = hquant.load_weights %{{.*}} unit %{{.*}} slab %{{.*}} {slabs = 2 : i64} : memref<4096xi8,{{.*}}> -> vector<2x4xi32>
  %w = hquant.load_weights %tile unit %i slab %i {slabs = 2} : !tile -> vector<2x4xi32>
  // CHECK: %[[B:.*]] = hquant.load_activations %{{.*}}[%{{.*}}] token %{{.*}} slab %{{.*}} {tile_rows = 16 : i64} : memref<3x4096xi8,{{.*}}> -> vector<2x4x2xi32>
  %b = hquant.load_activations %staged[%i] token %i slab %i {tile_rows = 16} : !staged -> vector<2x4x2xi32>
  // CHECK: %[[S:.*]] = hquant.load_scales %{{.*}}[%{{.*}}] unit %{{.*}} group %{{.*}} {element_bits = 16 : i64, strips = 1 : i64} : {{.*}} -> vector<2x2xi32>
  %s = hquant.load_scales %staged[%i] unit %i group %i {strips = 1, element_bits = 16} : !staged -> vector<2x2xi32>
  // CHECK: %[[Z:.*]] = hquant.load_scales %{{.*}} {element_bits = 8 : i64, strips = 1 : i64}
  %z = hquant.load_scales %tile unit %i group %i {strips = 1, element_bits = 8} : !tile -> vector<2x2xi32>
  // CHECK: %{{.*}} = hquant.dequant %[[W]] {mma = #hquant.sync_mma<m16n8k8, f16>, scale = #hquant.format<f16>, weight = #hquant.format<u4>} : vector<2x4xi32> -> vector<2x4x4xi32>
  %a0 = hquant.dequant %w {mma = #hquant.sync_mma<m16n8k8, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<2x4xi32> -> vector<2x4x4xi32>
  // CHECK: %[[A:.*]] = hquant.dequant %[[W]] scales(%[[S]] : vector<2x2xi32>) zero_points(%[[Z]] : vector<2x2xi32>) {float_zero_points, mma = #hquant.sync_mma<m16n8k16, bf16>
  %a = hquant.dequant %w scales(%s : vector<2x2xi32>) zero_points(%z : vector<2x2xi32>)
      {mma = #hquant.sync_mma<m16n8k16, bf16>, weight = #hquant.format<u4>, scale = #hquant.format<bf16>, float_zero_points}
      : vector<2x4xi32> -> vector<2x4x4xi32>
  // CHECK: %[[D:.*]] = hquant.mma %[[A]], %[[B]], %{{.*}} steps 0 to 2 {kind = #hquant.sync_mma<m16n8k16, bf16>} : vector<2x4x4xi32>, vector<2x4x2xi32>, vector<2x2x4xf32>
  %d = hquant.mma %a, %b, %c steps 0 to 2 {kind = #hquant.sync_mma<m16n8k16, bf16>}
      : vector<2x4x4xi32>, vector<2x4x2xi32>, vector<2x2x4xf32>
  // CHECK: hquant.scale_accumulate %[[D]], %[[S]], %{{.*}} group 1 {scale = #hquant.format<bf16>} : vector<2x2x4xf32>, vector<2x2xi32>, vector<2x2x4xf32>
  %e = hquant.scale_accumulate %d, %s, %c group 1 {scale = #hquant.format<bf16>} : vector<2x2x4xf32>, vector<2x2xi32>, vector<2x2x4xf32>
  return %e : vector<2x2x4xf32>
}

// CHECK-LABEL: func @epilogue
func.func @epilogue(%p: !llvm.ptr<1>, %i: i32, %n: i32, %scratch: !tile, %c: vector<1x2x4xf32>) {
  // CHECK: %[[R:.*]] = hquant.reduce_warps %{{.*}} through %[[X:.*]] {lanes = 64 : i64, warps_k = 3 : i64} : vector<1x2x4xf32>, memref
  %r = hquant.reduce_warps %c through %scratch {warps_k = 3, lanes = 64} : vector<1x2x4xf32>, !tile
  // CHECK: %[[Q:.*]], %[[LAST:.*]] = hquant.reduce_blocks %[[R]] through %{{.*}}, %[[X]] {threads = 64 : i64} : vector<1x2x4xf32>, <1>, memref
  %q, %last = hquant.reduce_blocks %r through %p, %scratch {threads = 64} : vector<1x2x4xf32>, !llvm.ptr<1>, !tile
  // CHECK: %[[S:.*]] = hquant.scale_rows %[[Q]], %{{.*}}[%{{.*}}] bound %{{.*}} {format = #hquant.format<f16>} : vector<1x2x4xf32>, <1>
  %s = hquant.scale_rows %q, %p[%i] bound %n {format = #hquant.format<f16>} : vector<1x2x4xf32>, !llvm.ptr<1>
  // CHECK: %[[A:.*]] = hquant.add_rows %[[S]], %{{.*}}[%{{.*}}] bound %{{.*}} {format = #hquant.format<bf16>} : vector<1x2x4xf32>, <1>
  %a = hquant.add_rows %s, %p[%i] bound %n {format = #hquant.format<bf16>} : vector<1x2x4xf32>, !llvm.ptr<1>
  // CHECK: hquant.store_tile %[[A]] to %{{.*}}[%{{.*}}, %{{.*}}] bounds[%{{.*}}, %{{.*}}] stride %{{.*}} warp[%{{.*}}, %{{.*}}] through %[[X]] {format = #hquant.format<bf16>, granule = 2 : i64, lanes = 64 : i64, threads = 192 : i64, tile_columns = 64 : i64, tile_rows = 16 : i64}
  hquant.store_tile %a to %p[%i, %i] bounds[%n, %n] stride %n warp[%i, %i] through %scratch
      {format = #hquant.format<bf16>, tile_rows = 16, tile_columns = 64, granule = 2, lanes = 64, threads = 192}
      : vector<1x2x4xf32>, !llvm.ptr<1>, !tile
  // CHECK: hquant.store_tile %[[A]] {{.*}} through %[[X]] if %[[LAST]] {
  hquant.store_tile %a to %p[%i, %i] bounds[%n, %n] stride %n warp[%i, %i] through %scratch if %last
      {format = #hquant.format<bf16>, tile_rows = 16, tile_columns = 64, granule = 16, lanes = 192, threads = 192}
      : vector<1x2x4xf32>, !llvm.ptr<1>, !tile
  return
}
