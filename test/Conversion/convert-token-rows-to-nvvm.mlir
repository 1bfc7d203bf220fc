// Ops with tokens as rows: what is by row and what by column change places.
//
// RUN: humming-opt %s "--pass-pipeline=builtin.module(hquant-verify-stage{stage=3},gpu.module(convert-hquant-to-nvvm),hquant-verify-stage{stage=4})" | FileCheck %s

// One weight scale for all rows and both units, two token scales a unit, 8 and 64
// tokens apart; a product each.
// CHECK-LABEL: llvm.func @scales
// CHECK: %[[W:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK: %[[G:.*]] = llvm.lshr %{{.*}}, %{{.*}} : i32
// CHECK: %[[BASE:.*]] = llvm.getelementptr %{{.*}} : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
// CHECK: %[[P8:.*]] = llvm.getelementptr %[[BASE]][32]
// CHECK: llvm.load %[[BASE]] {{.*}} : !llvm.ptr<3> -> i32
// CHECK: llvm.load %[[P8]] {{.*}} : !llvm.ptr<3> -> i32
// CHECK: %[[P64:.*]] = llvm.getelementptr %[[BASE]][256]
// CHECK: %[[P72:.*]] = llvm.getelementptr %[[BASE]][288]
// CHECK: llvm.load %[[P64]]
// CHECK: llvm.load %[[P72]]
// CHECK-NOT: llvm.load
// CHECK-COUNT-4: llvm.fmul
// CHECK-NOT: llvm.fmul
// CHECK: llvm.return
gpu.module @scales_module {
  gpu.func @scales(%i: i32, %p: !llvm.ptr<1>)
      workgroup(%s: memref<256xi8, #gpu.address_space<workgroup>>, %t: memref<512xi8, #gpu.address_space<workgroup>>, %x: memref<2048xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %w = hquant.load_scales %s unit %i group %i {strips = 1, element_bits = 32, unit_stride = 4, uniform} : memref<256xi8, #gpu.address_space<workgroup>> -> vector<2x2xi32>
    %ts = hquant.load_token_scales %t token %i group %i {tile_tokens = 128, token_rows} : memref<512xi8, #gpu.address_space<workgroup>> -> vector<2x2xi32>
    %r = hquant.multiply_scales %ts, %w group 0 {token_scale = #hquant.format<f32>, scale = #hquant.format<f32>} : vector<2x2xi32>, vector<2x2xi32> -> vector<2x2xi32>
    %a = vector.extract %r[0, 0] : i32 from vector<2x2xi32>
    %b = vector.extract %r[1, 1] : i32 from vector<2x2xi32>
    %c = arith.addi %a, %b : i32
    llvm.store %c, %p : i32, !llvm.ptr<1>
    gpu.return
  }
}

// The 16 scales of a strip's columns that a lane has lie side by side.
// CHECK-LABEL: llvm.func @columns
// CHECK-COUNT-2: llvm.load {{.*}} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-NOT: llvm.load {{.*}} -> vector
// Token scales are by row, 2 a unit; the bias is by column, 2 a tile, of which each
// lane loads a share.
// CHECK-COUNT-2: llvm.load {{.*}} : !llvm.ptr<1> -> f32
// CHECK-NOT: -> f32
// CHECK-COUNT-2: llvm.load {{.*}} : !llvm.ptr<1> -> i16
// CHECK-NOT: -> i16
// CHECK-COUNT-16: nvvm.shfl.sync {{ *}}idx
// Two halves of a unit, twice four tiles: each four words are exchanged twice and
// stored as one.
// CHECK-COUNT-16: nvvm.shfl.sync {{ *}}bfly
// CHECK-NOT: nvvm.shfl.sync
// CHECK: llvm.return
gpu.module @columns_module {
  gpu.func @columns(%p: !llvm.ptr<1>, %i: i32, %q: !llvm.ptr<1>)
      workgroup(%x: memref<128xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c = arith.constant dense<1.0> : vector<1x8x4xf32>
    %a = hquant.scale_rows %c, %p[%i] bound %i {format = #hquant.format<bf16>, unit_stride = 4, token_rows} : vector<1x8x4xf32>, !llvm.ptr<1>
    %b = hquant.scale_output %a, %p[%i] bound %i per "token" {unit_stride = 4, token_rows} : vector<1x8x4xf32>, !llvm.ptr<1>
    %e = hquant.add_rows %b, %p[%i] bound %i {format = #hquant.format<bf16>, unit_stride = 4, token_rows} : vector<1x8x4xf32>, !llvm.ptr<1>
    hquant.store_tile %e to %q[%i, %i] bounds[%i, %i] stride %i warp[%i, %i] through %x
        {format = #hquant.format<bf16>, tile_rows = 64, tile_columns = 64, granule = 16, lanes = 128, threads = 128, unit_stride = 4, direct, token_rows}
        : vector<1x8x4xf32>, !llvm.ptr<1>, memref<128xi8, #gpu.address_space<workgroup>>
    gpu.return
  }
}
