// RUN: humming-opt %s "--pass-pipeline=builtin.module(hquant-verify-stage{stage=3},gpu.module(convert-hquant-to-nvvm),hquant-verify-stage{stage=4})" | FileCheck %s

// Buffers stand one after another, each at a multiple of 128 bytes; the last one,
// scratch, begins where the first does. Pointers do not alias, the block size is a
// fact for the assembler.
// CHECK-LABEL: gpu.module @attributes_module
// CHECK: llvm.mlir.global external @hquant_shared() {addr_space = 3 : i32, alignment = {{128|1024}} : i64} : !llvm.array<0 x i8>
// CHECK: llvm.func @attributes(%{{.*}}: !llvm.ptr<1> {llvm.noalias}, %{{.*}}: !llvm.ptr<1> {llvm.noalias}, %{{.*}}: i32)
// CHECK-SAME: attributes {hquant.shared_memory = 640 : i64, nvvm.kernel, nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 64, 1, 1>}
// CHECK: %[[BASE:.*]] = llvm.mlir.addressof @hquant_shared : !llvm.ptr<3>
// CHECK-NEXT: llvm.getelementptr %[[BASE]][0]
// CHECK-NEXT: llvm.getelementptr %[[BASE]][256]
// CHECK-NEXT: llvm.getelementptr %[[BASE]][0]
// CHECK-NEXT: llvm.return
gpu.module @attributes_module {
  gpu.func @attributes(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %n: i32)
      workgroup(%a: memref<2x100xi8, #gpu.address_space<workgroup>>, %b: memref<300xi8, #gpu.address_space<workgroup>>, %scratch: memref<512xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    gpu.return
  }
}

// CHECK: llvm.func @scratch_only
// CHECK-SAME: hquant.shared_memory = 1024 : i64
// CHECK-NOT: nvvm.reqntid
gpu.module @scratch_only_module {
  gpu.func @scratch_only(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%scratch: memref<1000xi8, #gpu.address_space<workgroup>>) kernel {
    gpu.return
  }
}

// 64 threads move 128 chunks of 16 bytes in two rounds. A chunk out of bounds has
// source size 0: nothing is read, the destination becomes zero.
// CHECK-LABEL: llvm.func @async16
// CHECK: %[[IN:.*]] = llvm.and %{{.*}}, %{{.*}} : i1
// CHECK: %[[SIZE:.*]] = llvm.select %[[IN]], %{{.*}}, %{{.*}} : i1, i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = {{ *}}cg, %[[SIZE]] : !llvm.ptr<3>, !llvm.ptr<1>, i32
// CHECK-COUNT-1: nvvm.cp.async.shared.global {{.*}}, 16, cache = {{ *}}cg
// CHECK-NOT: nvvm.cp.async
// CHECK: nvvm.cp.async.commit.group
// CHECK-NEXT: nvvm.cp.async.wait.group 1
// CHECK-NEXT: nvvm.barrier0
gpu.module @async16_module {
  gpu.func @async16(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<3x2048xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    hquant.copy_tile %p[%row, %column] bounds[%m, %k] stride %ld to %t[%row]
        {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 16, threads = 64, swizzle, async} : !llvm.ptr<1> to memref<3x2048xi8, #gpu.address_space<workgroup>>
    hquant.commit_copies
    hquant.wait_copies 1
    gpu.barrier
    gpu.return
  }
}

// CHECK-LABEL: llvm.func @async8
// CHECK: %[[IN:.*]] = llvm.and %{{.*}}, %{{.*}} : i1
// CHECK: %[[SIZE:.*]] = llvm.select %[[IN]], %{{.*}}, %{{.*}} : i1, i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 8, cache = {{ *}}ca, %[[SIZE]] : !llvm.ptr<3>, !llvm.ptr<1>, i32
// CHECK-COUNT-3: nvvm.cp.async.shared.global {{.*}}, 8, cache = {{ *}}ca
// CHECK-NOT: nvvm.cp.async
// CHECK: nvvm.cp.async.commit.group
// CHECK-NEXT: nvvm.cp.async.wait.group 1
// CHECK-NEXT: nvvm.barrier0
gpu.module @async8_module {
  gpu.func @async8(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<3x2048xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    hquant.copy_tile %p[%row, %column] bounds[%m, %k] stride %ld to %t[%row]
        {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 8, threads = 64, swizzle, async} : !llvm.ptr<1> to memref<3x2048xi8, #gpu.address_space<workgroup>>
    hquant.commit_copies
    hquant.wait_copies 1
    gpu.barrier
    gpu.return
  }
}

// CHECK-LABEL: llvm.func @async4
// CHECK: %[[IN:.*]] = llvm.and %{{.*}}, %{{.*}} : i1
// CHECK: %[[SIZE:.*]] = llvm.select %[[IN]], %{{.*}}, %{{.*}} : i1, i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4, cache = {{ *}}ca, %[[SIZE]] : !llvm.ptr<3>, !llvm.ptr<1>, i32
// CHECK-COUNT-7: nvvm.cp.async.shared.global {{.*}}, 4, cache = {{ *}}ca
// CHECK-NOT: nvvm.cp.async
// CHECK: nvvm.cp.async.commit.group
// CHECK-NEXT: nvvm.cp.async.wait.group 1
// CHECK-NEXT: nvvm.barrier0
gpu.module @async4_module {
  gpu.func @async4(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<3x2048xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    hquant.copy_tile %p[%row, %column] bounds[%m, %k] stride %ld to %t[%row]
        {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 4, threads = 64, swizzle, async} : !llvm.ptr<1> to memref<3x2048xi8, #gpu.address_space<workgroup>>
    hquant.commit_copies
    hquant.wait_copies 1
    gpu.barrier
    gpu.return
  }
}

// cp.async does not move 2 bytes: eight loads, each in bounds by itself, and one store
// of 16 bytes a chunk.
// CHECK-LABEL: llvm.func @async2
// CHECK-NOT: nvvm.cp.async
// CHECK: %[[IN:.*]] = llvm.and %{{.*}}, %{{.*}} : i1
// CHECK: llvm.cond_br %[[IN]]
// CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK-NOT: llvm.store
gpu.module @async2_module {
  gpu.func @async2(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<2048xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    hquant.copy_tile %p[%row, %column] bounds[%m, %k] stride %ld to %t
        {cell_bytes = 2, tile_rows = 16, tile_columns = 64, granule = 2, threads = 64, swizzle, async} : !llvm.ptr<1> to memref<2048xi8, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// CHECK-LABEL: llvm.func @sync16
// CHECK-COUNT-1: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
gpu.module @sync16_module {
  gpu.func @sync16(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<1024xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    hquant.copy_tile %p[%row, %column] bounds[%m, %k] stride %ld to %t
        {cell_bytes = 2, tile_rows = 8, tile_columns = 64, granule = 16, threads = 64} : !llvm.ptr<1> to memref<1024xi8, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// CHECK-LABEL: llvm.func @sync8
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
gpu.module @sync8_module {
  gpu.func @sync8(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<1024xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    hquant.copy_tile %p[%row, %column] bounds[%m, %k] stride %ld to %t
        {cell_bytes = 2, tile_rows = 8, tile_columns = 64, granule = 8, threads = 64} : !llvm.ptr<1> to memref<1024xi8, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// CHECK-LABEL: llvm.func @sync4
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
gpu.module @sync4_module {
  gpu.func @sync4(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<1024xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    hquant.copy_tile %p[%row, %column] bounds[%m, %k] stride %ld to %t
        {cell_bytes = 2, tile_rows = 8, tile_columns = 64, granule = 4, threads = 64} : !llvm.ptr<1> to memref<1024xi8, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// 32 chunks for 64 threads: the upper half stays out.
// CHECK-LABEL: llvm.func @idle_threads
// CHECK: %[[N:.*]] = llvm.mlir.constant(32 : i32)
// CHECK: %[[IN:.*]] = llvm.icmp "ult" %{{.*}}, %[[N]]
// CHECK: llvm.cond_br %[[IN]]
// CHECK: nvvm.cp.async.shared.global
gpu.module @idle_threads_module {
  gpu.func @idle_threads(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<512xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    hquant.copy_tile %p[%row, %column] bounds[%m, %k] stride %ld to %t
        {cell_bytes = 512, tile_rows = 1, tile_columns = 1, granule = 16, threads = 64, async} : !llvm.ptr<1> to memref<512xi8, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// The halves of a copy through registers: loads before the barrier, stores after it.
// CHECK-LABEL: llvm.func @fetch_put
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-NOT: llvm.store
// CHECK: nvvm.barrier0
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK-NOT: llvm.store
gpu.module @fetch_put_module {
  gpu.func @fetch_put(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<2x2048xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %f = hquant.fetch_tile %p[%row, %column] bounds[%m, %k] stride %ld
        {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 64} : !llvm.ptr<1> -> vector<2x4xi32>
    gpu.barrier
    hquant.put_tile %f to %t[%row]
        {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, threads = 64} : vector<2x4xi32> to memref<2x2048xi8, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// A plane of a unit is one access, at most 16 bytes wide.
// CHECK-LABEL: llvm.func @weights4
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-NOT: !llvm.ptr<3> ->
gpu.module @weights4_module {
  gpu.func @weights4(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<2048xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %w = hquant.load_weights %t unit %row slab %column {slabs = 1} : memref<2048xi8, #gpu.address_space<workgroup>> -> vector<2x4xi32>
    %u = vector.extract %w[1, 3] : i32 from vector<2x4xi32>
    llvm.store %u, %p : i32, !llvm.ptr<1>
    gpu.return
  }
}

// CHECK-LABEL: llvm.func @weights8
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-NOT: !llvm.ptr<3> ->
gpu.module @weights8_module {
  gpu.func @weights8(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %w = hquant.load_weights %t unit %row slab %column {slabs = 1} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<2x8xi32>
    %u = vector.extract %w[1, 7] : i32 from vector<2x8xi32>
    llvm.store %u, %p : i32, !llvm.ptr<1>
    gpu.return
  }
}

// CHECK-LABEL: llvm.func @weights3
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// CHECK-NOT: !llvm.ptr<3> ->
gpu.module @weights3_module {
  gpu.func @weights3(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<1536xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %w = hquant.load_weights %t unit %row slab %column {slabs = 1} : memref<1536xi8, #gpu.address_space<workgroup>> -> vector<2x3xi32>
    %u = vector.extract %w[1, 2] : i32 from vector<2x3xi32>
    llvm.store %u, %p : i32, !llvm.ptr<1>
    gpu.return
  }
}

// CHECK-LABEL: llvm.func @weights6
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK-NOT: !llvm.ptr<3> ->
gpu.module @weights6_module {
  gpu.func @weights6(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<3072xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %w = hquant.load_weights %t unit %row slab %column {slabs = 1} : memref<3072xi8, #gpu.address_space<workgroup>> -> vector<2x6xi32>
    %u = vector.extract %w[1, 5] : i32 from vector<2x6xi32>
    llvm.store %u, %p : i32, !llvm.ptr<1>
    gpu.return
  }
}

// CHECK-LABEL: llvm.func @weights7
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// CHECK-NOT: !llvm.ptr<3> ->
gpu.module @weights7_module {
  gpu.func @weights7(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<3584xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %w = hquant.load_weights %t unit %row slab %column {slabs = 1} : memref<3584xi8, #gpu.address_space<workgroup>> -> vector<2x7xi32>
    %u = vector.extract %w[1, 6] : i32 from vector<2x7xi32>
    llvm.store %u, %p : i32, !llvm.ptr<1>
    gpu.return
  }
}

// Two token tiles of four steps: one ldmatrix gives both registers of two steps. The
// chunk is XOR-ed with the row.
// CHECK-LABEL: llvm.func @activations
// CHECK: llvm.mul %{{.*}}, %{{.*}} : i32
// CHECK: llvm.xor
// CHECK-COUNT-4: nvvm.ldmatrix %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>}
// CHECK-NOT: nvvm.ldmatrix
gpu.module @activations_module {
  gpu.func @activations(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<2x4096xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %b = hquant.load_activations %t[%m] token %row slab %column {tile_rows = 16} : memref<2x4096xi8, #gpu.address_space<workgroup>> -> vector<2x4x2xi32>
    %u = vector.extract %b[1, 3, 1] : i32 from vector<2x4x2xi32>
    llvm.store %u, %p : i32, !llvm.ptr<1>
    gpu.return
  }
}

// The scales of four units lie together: one access a group.
// CHECK-LABEL: llvm.func @scales
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
gpu.module @scales_module {
  gpu.func @scales(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<256xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %b = hquant.load_scales %t unit %row group %column {strips = 1, element_bits = 16} : memref<256xi8, #gpu.address_space<workgroup>> -> vector<4x2xi32>
    %u = vector.extract %b[3, 1] : i32 from vector<4x2xi32>
    llvm.store %u, %p : i32, !llvm.ptr<1>
    gpu.return
  }
}

// CHECK-LABEL: llvm.func @zeros
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// CHECK: llvm.and
// CHECK: llvm.lshr
gpu.module @zeros_module {
  gpu.func @zeros(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%t: memref<64xi8, #gpu.address_space<workgroup>>, %s: memref<16xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %b = hquant.load_scales %t unit %row group %column {strips = 1, element_bits = 8} : memref<64xi8, #gpu.address_space<workgroup>> -> vector<2x1xi32>
    %u = vector.extract %b[1, 0] : i32 from vector<2x1xi32>
    llvm.store %u, %p : i32, !llvm.ptr<1>
    gpu.return
  }
}

// One fma an accumulator; a bf16 scale is the upper half of an f32.
// CHECK-LABEL: llvm.func @scale_accumulate
// CHECK: llvm.shl
// CHECK: llvm.and
// CHECK-COUNT-8: llvm.intr.fma(%{{.*}}, %{{.*}}, %{{.*}}) : (f32, f32, f32) -> f32
// CHECK-NOT: llvm.intr.fma
gpu.module @scale_accumulate_module {
  gpu.func @scale_accumulate(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c = arith.constant dense<0.0> : vector<1x2x4xf32>
    %s0 = arith.constant dense<1> : vector<1x2xi32>
    %r = hquant.scale_accumulate %c, %s0, %c group 1 {scale = #hquant.format<bf16>} : vector<1x2x4xf32>, vector<1x2xi32>, vector<1x2x4xf32>
    %u = vector.extract %r[0, 1, 3] : f32 from vector<1x2x4xf32>
    llvm.store %u, %p : f32, !llvm.ptr<1>
    gpu.return
  }
}

// Warps 1 and 2 put theirs into scratch, warp 0 adds in that order.
// CHECK-LABEL: llvm.func @reduce_warps
// CHECK: nvvm.barrier0
// CHECK: llvm.cond_br
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// CHECK: nvvm.barrier0
// CHECK: llvm.cond_br
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-COUNT-4: llvm.fadd
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-COUNT-4: llvm.fadd
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xf32>
gpu.module @reduce_warps_module {
  gpu.func @reduce_warps(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%s: memref<4096xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 192, 1, 1>} {
    %c = arith.constant dense<0.0> : vector<1x2x4xf32>
    %r = hquant.reduce_warps %c through %s {warps_k = 3, lanes = 64} : vector<1x2x4xf32>, memref<4096xi8, #gpu.address_space<workgroup>>
    %u = vector.extract %r[0, 1, 3] : f32 from vector<1x2x4xf32>
    llvm.store %u, %p : f32, !llvm.ptr<1>
    gpu.return
  }
}

// Store, make visible, count in; the last block adds all in order, from L2, and sets the
// counter back to zero.
// CHECK-LABEL: llvm.func @reduce_blocks
// CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr<1>
// CHECK: llvm.fence syncscope("device") acq_rel
// CHECK-NEXT: nvvm.barrier0
// CHECK: llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic : !llvm.ptr<1>, i32
// CHECK: llvm.fence syncscope("device") acq_rel
// CHECK: nvvm.barrier0
// CHECK: %[[ARRIVED:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK: %[[LAST:.*]] = llvm.icmp "eq" %[[ARRIVED]], %{{.*}} : i32
// CHECK: llvm.cond_br %[[LAST]]
// CHECK: llvm.fence syncscope("device") acq_rel
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1>
// CHECK: llvm.inline_asm has_side_effects {{.*}} "ld.global.cg.v4.f32 {$0, $1, $2, $3}, [$4];"
// CHECK-COUNT-4: llvm.fadd
gpu.module @reduce_blocks_module {
  gpu.func @reduce_blocks(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%s: memref<4096xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c = arith.constant dense<0.0> : vector<1x1x4xf32>
    %r, %last = hquant.reduce_blocks %c through %p, %s {threads = 64} : vector<1x1x4xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
    %u = vector.extract %r[0, 0, 3] : f32 from vector<1x1x4xf32>
    llvm.store %u, %p : f32, !llvm.ptr<1>
    gpu.return
  }
}

// All blocks but the first leave their sums; the first one reads them in order; nobody
// leaves before that.
// CHECK-LABEL: llvm.func @reduce_cluster
// CHECK-SAME: nvvm.cluster_dim = array<i32: 1, 1, 3>
// CHECK: nvvm.barrier0
// CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr<3>
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK: nvvm.mapa %{{.*}}, %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK: llvm.load %{{.*}} : !llvm.ptr<7> -> vector<4xf32>
// CHECK-COUNT-4: llvm.fadd
// CHECK: nvvm.mapa
// CHECK-COUNT-4: llvm.fadd
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
gpu.module @reduce_cluster_module {
  gpu.func @reduce_cluster(%p: !llvm.ptr<1>)
      workgroup(%s: memref<4096xi8, #gpu.address_space<workgroup>>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>, known_cluster_size = array<i32: 1, 1, 3>} {
    %c = arith.constant dense<0.0> : vector<1x1x4xf32>
    %r, %last = hquant.reduce_cluster %c through %s {threads = 64, blocks = 3} : vector<1x1x4xf32>, memref<4096xi8, #gpu.address_space<workgroup>>
    %u = vector.extract %r[0, 0, 3] : f32 from vector<1x1x4xf32>
    llvm.store %u, %p : f32, !llvm.ptr<1>
    gpu.return
  }
}

// Each of two blocks leaves the half that the other one writes, and adds the other's to
// its own.
// CHECK-LABEL: llvm.func @reduce_halves
// CHECK-SAME: nvvm.cluster_dim = array<i32: 1, 1, 2>
// CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %{{.*}}, %{{.*}} : i32
// CHECK-COUNT-8: llvm.select %[[FIRST]], %{{.*}}, %{{.*}} : i1, f32
// CHECK: nvvm.barrier0
// CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr<3>
// CHECK-NOT: llvm.store
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK: %[[OTHER:.*]] = llvm.select %[[FIRST]], %{{.*}}, %{{.*}} : i1, i32
// CHECK: nvvm.mapa %{{.*}}, %[[OTHER]] : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK: llvm.load %{{.*}} : !llvm.ptr<7> -> vector<4xf32>
// CHECK-COUNT-4: llvm.fadd
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
gpu.module @reduce_halves_module {
  gpu.func @reduce_halves(%p: !llvm.ptr<1>)
      workgroup(%s: memref<1024xi8, #gpu.address_space<workgroup>>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>, known_cluster_size = array<i32: 1, 1, 2>} {
    %c = arith.constant dense<0.0> : vector<1x2x4xf32>
    %r = hquant.reduce_halves %c through %s {threads = 64} : vector<1x2x4xf32> to vector<1x1x4xf32>, memref<1024xi8, #gpu.address_space<workgroup>>
    %u = vector.extract %r[0, 0, 3] : f32 from vector<1x1x4xf32>
    llvm.store %u, %p : f32, !llvm.ptr<1>
    gpu.return
  }
}

// Packed scales of the units in one access, where the rows exist; the bias row by row,
// rows past the end read the last one.
// CHECK-LABEL: llvm.func @rows
// CHECK: llvm.cond_br
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
// CHECK-COUNT-8: llvm.fmul
// CHECK: llvm.intr.umin
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK-COUNT-8: llvm.fadd
gpu.module @rows_module {
  gpu.func @rows(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c = arith.constant dense<0.0> : vector<2x1x4xf32>
    %r = hquant.scale_rows %c, %p[%row] bound %m {format = #hquant.format<f16>} : vector<2x1x4xf32>, !llvm.ptr<1>
    %q = hquant.add_rows %r, %p[%row] bound %m {format = #hquant.format<bf16>} : vector<2x1x4xf32>, !llvm.ptr<1>
    %u = vector.extract %q[1, 0, 3] : f32 from vector<2x1x4xf32>
    llvm.store %u, %p : f32, !llvm.ptr<1>
    gpu.return
  }
}

// Rounded once, transposed through scratch; what is stored at once is what the
// destination promises.
// CHECK-LABEL: llvm.func @store16
// CHECK: nvvm.barrier0
// CHECK-COUNT-8: llvm.fptrunc %{{.*}} : f32 to bf16
// CHECK: nvvm.barrier0
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-COUNT-1: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
gpu.module @store16_module {
  gpu.func @store16(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%s: memref<4096xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c = arith.constant dense<0.0> : vector<1x2x4xf32>
    hquant.store_tile %c to %p[%row, %column] bounds[%m, %k] stride %ld warp[%row, %column] through %s
        {format = #hquant.format<bf16>, tile_rows = 16, tile_columns = 64, granule = 16, lanes = 64, threads = 64}
        : vector<1x2x4xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// CHECK-LABEL: llvm.func @store4
// CHECK: nvvm.barrier0
// CHECK-COUNT-8: llvm.fptrunc %{{.*}} : f32 to bf16
// CHECK: nvvm.barrier0
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
gpu.module @store4_module {
  gpu.func @store4(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%s: memref<4096xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c = arith.constant dense<0.0> : vector<1x2x4xf32>
    hquant.store_tile %c to %p[%row, %column] bounds[%m, %k] stride %ld warp[%row, %column] through %s
        {format = #hquant.format<bf16>, tile_rows = 16, tile_columns = 64, granule = 4, lanes = 64, threads = 64}
        : vector<1x2x4xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// CHECK-LABEL: llvm.func @store2
// CHECK: nvvm.barrier0
// CHECK-COUNT-8: llvm.fptrunc %{{.*}} : f32 to bf16
// CHECK: nvvm.barrier0
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-COUNT-8: llvm.store %{{.*}} {alignment = 2 : i64} : i16, !llvm.ptr<1>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
gpu.module @store2_module {
  gpu.func @store2(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%s: memref<4096xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c = arith.constant dense<0.0> : vector<1x2x4xf32>
    hquant.store_tile %c to %p[%row, %column] bounds[%m, %k] stride %ld warp[%row, %column] through %s
        {format = #hquant.format<bf16>, tile_rows = 16, tile_columns = 64, granule = 2, lanes = 64, threads = 64}
        : vector<1x2x4xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// The condition guards all of it; K warp 0 alone holds accumulators.
// CHECK-LABEL: llvm.func @store_if
// CHECK: %[[LAST:.*]] = llvm.icmp "eq"
// CHECK: nvvm.barrier0
// CHECK: llvm.cond_br %[[LAST]]
// CHECK: %[[N:.*]] = llvm.mlir.constant(64 : i32)
// CHECK: %[[HOLDS:.*]] = llvm.icmp "ult" %{{.*}}, %[[N]]
// CHECK: llvm.cond_br %[[HOLDS]]
// CHECK: llvm.fptrunc %{{.*}} : f32 to f16
gpu.module @store_if_module {
  gpu.func @store_if(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32)
      workgroup(%s: memref<4096xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c = arith.constant dense<0.0> : vector<1x2x4xf32>
    %last = arith.cmpi eq, %row, %column : i32
    hquant.store_tile %c to %p[%row, %column] bounds[%m, %k] stride %ld warp[%row, %column] through %s if %last
        {format = #hquant.format<f16>, tile_rows = 16, tile_columns = 64, granule = 16, lanes = 64, threads = 128}
        : vector<1x2x4xf32>, !llvm.ptr<1>, memref<4096xi8, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// A fragment goes through a loop as its registers; vector ops only pick them.
// CHECK-LABEL: llvm.func @loop
// CHECK: llvm.br ^[[BODY:.*]](%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : i32, f32, f32, f32, f32)
// CHECK: ^[[BODY]](%[[I:.*]]: i32, %{{.*}}: f32, %[[E:.*]]: f32, %{{.*}}: f32, %[[LAST:.*]]: f32):
// CHECK: llvm.cond_br
// CHECK: llvm.br ^[[BODY]](%{{.*}}, %[[E]], %[[E]], %[[E]], %[[E]] :
// CHECK: llvm.store %[[LAST]], %{{.*}} : f32, !llvm.ptr<1>
// CHECK-NOT: vector
gpu.module @loop_module {
  gpu.func @loop(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %z = arith.constant dense<0.0> : vector<1x1x4xf32>
    %r = scf.for %i = %c0 to %m step %c1 iter_args(%a = %z) -> (vector<1x1x4xf32>) : i32 {
      %e = vector.extract %a[0, 0, 1] : f32 from vector<1x1x4xf32>
      %v = vector.from_elements %e, %e, %e, %e : vector<1x1x4xf32>
      scf.yield %v : vector<1x1x4xf32>
    }
    %u = vector.extract %r[0, 0, 3] : f32 from vector<1x1x4xf32>
    llvm.store %u, %p : f32, !llvm.ptr<1>
    gpu.return
  }
}

// Indices are 32 bits wide.
// CHECK-LABEL: llvm.func @indices
// CHECK-DAG: nvvm.read.ptx.sreg.tid.x : i32
// CHECK-DAG: nvvm.read.ptx.sreg.ctaid.y : i32
// CHECK-DAG: nvvm.read.ptx.sreg.nctaid.z : i32
// CHECK-NOT: i64
// CHECK: llvm.return
gpu.module @indices_module {
  gpu.func @indices(%p: !llvm.ptr<1>, %row: i32, %column: i32, %m: i32, %k: i32, %ld: i32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %x = gpu.thread_id x
    %i = arith.index_cast %x : index to i32
    %y = gpu.block_id y
    %j = arith.index_cast %y : index to i32
    %z = gpu.grid_dim z
    %l = arith.index_cast %z : index to i32
    %s = arith.ceildivui %i, %l : i32
    %t = arith.addi %s, %j : i32
    llvm.store %t, %p : i32, !llvm.ptr<1>
    gpu.return
  }
}
