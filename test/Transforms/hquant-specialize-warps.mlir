// RUN: humming-opt %s "--pass-pipeline=builtin.module(gpu.module(gpu.func(hquant-specialize-warps)),hquant-verify-stage{stage=3})" | FileCheck %s

!weights = memref<2048xi8, #gpu.address_space<workgroup>>
!tokens = memref<1024xi8, #gpu.address_space<workgroup>>
!scratch = memref<2048xi8, #gpu.address_space<workgroup>>

// 32 threads multiply, 128 copy; the ring of three stages is the buffer before
// scratch.
// CHECK-LABEL: gpu.func @bulk
// CHECK-SAME: workgroup(%[[WT:[a-z0-9]+]] : memref<3x2048xi8, {{.*}}>, %[[XT:[a-z0-9]+]] : memref<3x1024xi8, {{.*}}>, %[[RING:[a-z0-9]+]] : memref<3x16xi8, {{.*}}>, %{{[a-z0-9]+}} : memref<2048xi8,
// CHECK-SAME: hquant.consumers = 32
// CHECK-SAME: known_block_size = array<i32: 160, 1, 1>
// CHECK: hquant.ring_init %[[RING]] {consumers = 1 : i64, producers = 128 : i64}
// CHECK: %[[ROLE:.*]] = arith.cmpi uge, %{{.*}}, %c32_i32
// CHECK: scf.if %[[ROLE]] {
// CHECK: scf.for %[[I:[a-z0-9]+]] = {{.*}} iter_args(%[[S:[a-z0-9]+]] = %c0_i32{{[_0-9]*}}, %[[P:[a-z0-9]+]] = %c1_i32{{[_0-9]*}})
// CHECK: hquant.ring_acquire %[[RING]][%[[S]]] phase %[[P]]
// CHECK: hquant.copy_tile %{{.*}}[%{{.*}}, %[[I]]] {{.*}} to %[[WT]][%[[S]]] through %[[RING]] {{.*}}first_thread = 32 : i64{{.*}}threads = 128
// CHECK: hquant.copy_tile {{.*}} to %[[XT]][%[[S]]] {async, {{.*}}first_thread = 32 : i64{{.*}}swizzle
// CHECK: hquant.ring_commit %[[RING]][%[[S]]] {first_thread = 32 : i64}
// CHECK: arith.xori %[[P]]
// CHECK: hquant.wait_copies 0
// CHECK: } else {
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[CS:[a-z0-9]+]] = %c0_i32{{[_0-9]*}}, %[[CP:[a-z0-9]+]] = %c0_i32{{[_0-9]*}})
// CHECK: hquant.ring_wait %[[RING]][%[[CS]]] phase %[[CP]]
// CHECK-NOT: gpu.barrier
// CHECK: hquant.load_weights %[[WT]][%[[CS]]]
// CHECK: hquant.load_activations %[[XT]][%[[CS]]]
// CHECK: hquant.mma
// CHECK-NEXT: hquant.ring_release %[[RING]][%[[CS]]]
gpu.module @kernels {
  gpu.func @bulk(%w: !llvm.ptr<1>, %x: !llvm.ptr<1>, %first: i32, %last: i32, %n: i32)
      workgroup(%wt: !weights, %xt: !tokens, %scratch: !scratch) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], warp = [64, 8], stages = 3, copy = bulk>} {
    %zero = arith.constant dense<0.0> : vector<1x1x4xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %first to %last step %c1 iter_args(%acc = %zero) -> (vector<1x1x4xf32>) : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %wt
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !weights
      %c64 = arith.constant 64 : i32
      %k = arith.muli %i, %c64 : i32
      hquant.copy_tile %x[%c0, %k] bounds[%n, %n] stride %n to %xt
          {cell_bytes = 2, tile_rows = 8, tile_columns = 64, granule = 16, threads = 32, swizzle} : !llvm.ptr<1> to !tokens
      gpu.barrier
      %p = hquant.load_weights %wt unit %c0 slab %c0 {slabs = 1} : !weights -> vector<1x4xi32>
      %b = hquant.load_activations %xt token %c0 slab %c0 {tile_rows = 8} : !tokens -> vector<1x4x2xi32>
      %a = hquant.dequant %p {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
          : vector<1x4xi32> -> vector<1x4x4xi32>
      %d = hquant.mma %a, %b, %acc steps 0 to 4 {kind = #hquant.sync_mma<m16n8k16, f16>} : vector<1x4x4xi32>, vector<1x4x2xi32>, vector<1x1x4xf32>
      gpu.barrier
      scf.yield %d : vector<1x1x4xf32>
    }
    hquant.store_tile %r to %w[%c0, %c0] bounds[%n, %n] stride %n warp[%c0, %c0] through %scratch
        {format = #hquant.format<f16>, tile_rows = 8, tile_columns = 64, granule = 16, lanes = 32, threads = 32}
        : vector<1x1x4xf32>, !llvm.ptr<1>, !scratch
    gpu.return
  }
}
