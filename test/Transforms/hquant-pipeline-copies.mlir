// RUN: humming-opt %s "--pass-pipeline=builtin.module(gpu.module(gpu.func(hquant-pipeline-copies)),hquant-verify-stage{stage=3})" --split-input-file | FileCheck %s

!weights = memref<2048xi8, #gpu.address_space<workgroup>>
!tokens = memref<1024xi8, #gpu.address_space<workgroup>>

// Three stages of cp.async: two trips ahead, one group a trip, one barrier a trip.
// CHECK-LABEL: gpu.func @async
// CHECK-SAME: %[[W:[a-z0-9]+]]: !llvm.ptr<1>, %[[X:[a-z0-9]+]]: !llvm.ptr<1>, %[[FIRST:[a-z0-9]+]]: i32, %[[LAST:[a-z0-9]+]]: i32,
// CHECK-SAME: workgroup(%[[WT:[a-z0-9]+]] : memref<3x2048xi8, {{.*}}>, %[[XT:[a-z0-9]+]] : memref<3x1024xi8,
// CHECK: %[[T0:.*]] = arith.addi %[[FIRST]], %c0_i32
// CHECK: hquant.copy_tile %[[W]][%{{.*}}, %[[T0]]] {{.*}} to %[[WT]][%c0_i32{{.*}}] {async, cell_bytes = 2048
// CHECK: %[[K0:.*]] = arith.muli %[[T0]], %{{.*}}
// CHECK: hquant.copy_tile %[[X]][%{{.*}}, %[[K0]]] {{.*}} to %[[XT]][%c0_i32{{.*}}] {async, cell_bytes = 2 : i64, {{.*}} swizzle
// CHECK-NEXT: hquant.commit_copies
// CHECK: %[[T1:.*]] = arith.addi %[[FIRST]], %c1_i32
// CHECK: hquant.copy_tile %[[W]][%{{.*}}, %[[T1]]] {{.*}} to %[[WT]][%c1_i32{{.*}}] {async
// CHECK: hquant.commit_copies
// CHECK-NOT: hquant.commit_copies
// CHECK: %[[L:.*]]:3 = scf.for %[[I:[a-z0-9]+]] = %[[FIRST]] to %[[LAST]] step %{{.*}} iter_args(%{{.*}} = %{{.*}}, %[[R:[a-z0-9]+]] = %c0_i32{{[_0-9]*}}, %[[WR:[a-z0-9]+]] = %c2_i32{{[_0-9]*}})
// CHECK: hquant.wait_copies 1
// CHECK-NEXT: gpu.barrier
// CHECK: %[[AHEAD:.*]] = arith.addi %[[I]], %c2_i32
// CHECK: hquant.copy_tile %[[W]][%{{.*}}, %[[AHEAD]]] {{.*}} to %[[WT]][%[[WR]]] {async
// CHECK: hquant.copy_tile %[[X]]{{.*}} to %[[XT]][%[[WR]]] {async
// CHECK-NEXT: hquant.commit_copies
// CHECK: hquant.load_weights %[[WT]][%[[R]]]
// CHECK: hquant.load_activations %[[XT]][%[[R]]]
// CHECK-NOT: gpu.barrier
// CHECK: %[[R1:.*]] = arith.addi %[[R]], %c1_i32
// CHECK: %[[WRAP:.*]] = arith.cmpi eq, %[[R1]], %c3_i32
// CHECK: %[[RN:.*]] = arith.select %[[WRAP]], %c0_i32{{.*}}, %[[R1]]
// CHECK: %[[WN:.*]] = arith.select
// CHECK: scf.yield %{{.*}}, %[[RN]], %[[WN]]
// CHECK: }
// CHECK-NEXT: hquant.wait_copies 0
// CHECK: hquant.mma {{.*}}, %[[L]]#0
gpu.module @kernels {
  gpu.func @async(%w: !llvm.ptr<1>, %x: !llvm.ptr<1>, %first: i32, %last: i32, %n: i32)
      workgroup(%wt: !weights, %xt: !tokens) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
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
    %a = arith.constant dense<0> : vector<1x4x4xi32>
    %b = arith.constant dense<0> : vector<1x4x2xi32>
    %d = hquant.mma %a, %b, %r steps 0 to 4 {kind = #hquant.sync_mma<m16n8k16, f16>} : vector<1x4x4xi32>, vector<1x4x2xi32>, vector<1x1x4xf32>
    gpu.return
  }
}

// -----

!weights = memref<2048xi8, #gpu.address_space<workgroup>>

// Two stages of cp.async wait for everything; the stage is a bit.
// CHECK-LABEL: gpu.func @async2
// CHECK-COUNT-1: hquant.commit_copies
// CHECK: scf.for
// CHECK-NEXT: hquant.wait_copies 0
// CHECK: hquant.commit_copies
// CHECK-COUNT-2: arith.xori
// CHECK: scf.yield
gpu.module @kernels {
  gpu.func @async2(%w: !llvm.ptr<1>, %first: i32, %last: i32, %n: i32) workgroup(%wt: !weights) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 2, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %first to %last step %c1 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %wt
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !weights
      gpu.barrier
      %p = hquant.load_weights %wt unit %c0 slab %c0 {slabs = 1} : !weights -> vector<1x4xi32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!weights = memref<2048xi8, #gpu.address_space<workgroup>>

// Through registers: the next tile is loaded before trip i is computed and stored
// after it.
// CHECK-LABEL: gpu.func @sync
// CHECK-SAME: workgroup(%[[WT:[a-z0-9]+]] : memref<2x2048xi8,
// CHECK: %[[F0:.*]] = hquant.fetch_tile {{.*}} -> vector<4x4xi32>
// CHECK: hquant.put_tile %[[F0]] to %[[WT]][%c0_i32{{.*}}]
// CHECK-NEXT: gpu.barrier
// CHECK: scf.for %[[I:[a-z0-9]+]] = {{.*}} iter_args(%[[R:[a-z0-9]+]] = %c0_i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[I]], %c1_i32
// CHECK: %[[F:.*]] = hquant.fetch_tile %{{.*}}[%{{.*}}, %[[NEXT]]]
// CHECK: hquant.load_weights %[[WT]][%[[R]]]
// CHECK: %[[O:.*]] = arith.xori %[[R]], %c1_i32
// CHECK-NEXT: hquant.put_tile %[[F]] to %[[WT]][%[[O]]]
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: scf.yield %[[O]]
// CHECK-NOT: hquant.wait_copies
gpu.module @kernels {
  gpu.func @sync(%w: !llvm.ptr<1>, %first: i32, %last: i32, %n: i32) workgroup(%wt: !weights) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 2, copy = sync>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %first to %last step %c1 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %wt
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !weights
      gpu.barrier
      %p = hquant.load_weights %wt unit %c0 slab %c0 {slabs = 1} : !weights -> vector<1x4xi32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

// A loop without copies, in a kernel without config, stays.
// CHECK-LABEL: gpu.func @other
// CHECK: scf.for
// CHECK-NEXT: gpu.barrier
gpu.module @kernels {
  gpu.func @other(%n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      gpu.barrier
    }
    gpu.return
  }
}
