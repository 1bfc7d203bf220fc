// RUN: humming-opt %s --hquant-pack-weights --hquant-verify-stage=stage=2 --convert-hquant-to-tiles --hquant-verify-stage=stage=3 | FileCheck %s
// RUN: humming-opt %s --hquant-pack-weights --convert-hquant-to-tiles=module=mine | FileCheck %s --check-prefix=NAME

// CHECK: module attributes {hquant.target = #nvvm.target<chip = "sm_80">}
// CHECK-NOT: func.func
// CHECK: gpu.module @kernels [#nvvm.target<chip = "sm_80">]
// NAME: gpu.module @mine
module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {

// The whole program: coordinates, bounds in cells, one buffer a tile, and scales on
// the partial sum of the group's two slabs.
// CHECK-LABEL: gpu.func @accumulator(
// CHECK-SAME: %[[X:[a-z0-9]+]]: !llvm.ptr<1>, %[[W:[a-z0-9]+]]: !llvm.ptr<1>, %[[S:[a-z0-9]+]]: !llvm.ptr<1>, %[[Z:[a-z0-9]+]]: !llvm.ptr<1>, %[[BIAS:[a-z0-9]+]]: !llvm.ptr<1>, %[[C:[a-z0-9]+]]: !llvm.ptr<1>, %[[WS:[a-z0-9]+]]: !llvm.ptr<1>, %[[M:[a-z0-9]+]]: i32, %[[N:[a-z0-9]+]]: i32, %[[K:[a-z0-9]+]]: i32, %[[LDX:[a-z0-9]+]]: i32, %[[LDC:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>)
// CHECK-SAME: workgroup(%[[XT:[a-z0-9]+]] : memref<4096xi8, {{.*}}>, %[[WT:[a-z0-9]+]] : memref<4096xi8, {{.*}}>, %[[ST:[a-z0-9]+]] : memref<128xi8, {{.*}}>, %[[SCRATCH:[a-z0-9]+]] : memref<4096xi8, {{.*}}>)
// CHECK-SAME: kernel attributes {hquant.lowering_config = {{.*}}, known_block_size = array<i32: 64, 1, 1>}
// CHECK: %[[TID:.*]] = gpu.thread_id x
// CHECK: %[[UNIT:.*]] = arith.muli %{{.*}}, %c2_i32
// CHECK: %[[BX:.*]] = gpu.block_id x
// CHECK: %[[STRIP:.*]] = arith.index_cast %[[BX]] : index to i32
// CHECK: %[[STRIPS:.*]] = arith.divui %{{.*}}, %c64_i32{{.*}}
// CHECK: %[[SLABS:.*]] = arith.divui
// CHECK: %[[GROUPS:.*]] = arith.divui %{{.*}}, %c128_i32
// CHECK: %[[TRIPS:.*]] = arith.divui
// CHECK: %[[ACC:.*]] = scf.for %[[I:.*]] = %c0_i32{{.*}} to %[[TRIPS]] step %c1_i32{{.*}} iter_args(%[[IN:.*]] = %{{.*}}) -> (vector<2x2x4xf32>)
// CHECK: hquant.copy_tile %[[W]][%[[STRIP]], %{{.*}}] bounds[%[[STRIPS]], %[[SLABS]]] stride %[[SLABS]] to %[[WT]] {cell_bytes = 2048 : i64, granule = 16 : i64, independent, threads = 64 : i64, tile_columns = 2 : i64, tile_rows = 1 : i64}
// CHECK: hquant.copy_tile %[[X]][%{{.*}}, %{{.*}}] bounds[%[[M]], %[[K]]] stride %[[LDX]] to %[[XT]] {cell_bytes = 2 : i64, granule = 16 : i64, swizzle, threads = 64 : i64, tile_columns = 128 : i64, tile_rows = 16 : i64}
// CHECK: hquant.copy_tile %[[S]][%[[I]], %[[STRIP]]] bounds[%[[GROUPS]], %[[STRIPS]]] stride %[[STRIPS]] to %[[ST]] {cell_bytes = 128 : i64, granule = 16 : i64, independent, threads = 64 : i64, tile_columns = 1 : i64, tile_rows = 1 : i64}
// CHECK-NEXT: gpu.barrier
// CHECK: %[[W0:.*]] = hquant.load_weights %[[WT]] unit %[[UNIT]] slab %{{.*}} {slabs = 2 : i64} {{.*}} -> vector<2x4xi32>
// CHECK: hquant.load_scales %[[ST]]
// CHECK: %[[X0:.*]] = hquant.load_activations %[[XT]] token %{{.*}} slab %{{.*}} {tile_rows = 16 : i64} {{.*}} -> vector<2x4x2xi32>
// CHECK: %[[A0:.*]] = hquant.dequant %[[W0]] {mma = #hquant.sync_mma<m16n8k16, f16>, scale = #hquant.format<f16>, weight = #hquant.format<u4>}
// CHECK: %[[P0:.*]] = hquant.mma %[[A0]], %[[X0]], %cst{{.*}} steps 0 to 4
// CHECK-NOT: hquant.scale_accumulate
// CHECK: hquant.load_weights
// CHECK: %[[SC:.*]] = hquant.load_scales %[[ST]] {{.*}} -> vector<2x1xi32>
// CHECK: %[[P1:.*]] = hquant.mma %{{.*}}, %{{.*}}, %[[P0]] steps 0 to 4
// CHECK: %[[R:.*]] = hquant.scale_accumulate %[[P1]], %[[SC]], %[[IN]] group 0
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: scf.yield %[[R]]
// CHECK-NOT: hquant.reduce
// CHECK-NOT: hquant.scale_rows
// CHECK: hquant.store_tile %[[ACC]] to %[[C]][%{{.*}}, %{{.*}}] bounds[%[[M]], %[[N]]] stride %[[LDC]] warp[%{{.*}}, %{{.*}}] through %[[SCRATCH]] {format = #hquant.format<f16>, granule = 16 : i64, lanes = 64 : i64, threads = 64 : i64, tile_columns = 64 : i64, tile_rows = 16 : i64}
// CHECK-NEXT: gpu.return
func.func @accumulator(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>)
         quant_type = <u4, scale = f16, group = 128>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = accumulator, split_k = 1>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}

// Scales on the operand: dequant takes them, the accumulators run through.
// CHECK-LABEL: gpu.func @operand(
// CHECK: iter_args(%[[IN:.*]] = %cst)
// CHECK: %[[SC:.*]] = hquant.load_scales
// CHECK: hquant.dequant %{{.*}} scales(%[[SC]] : vector<2x1xi32>) {mma = #hquant.sync_mma<m16n8k16, bf16>
// CHECK: %[[P:.*]] = hquant.mma %{{.*}}, %{{.*}}, %[[IN]] steps 0 to 4
// CHECK: %[[P1:.*]] = hquant.mma %{{.*}}, %{{.*}}, %[[P]] steps 0 to 4
// CHECK-NOT: hquant.scale_accumulate
// CHECK: scf.yield %[[P1]]
func.func @operand(%x: tensor<?x4096xbf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xbf16>) -> tensor<?x4096xbf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xbf16>)
         quant_type = <u4, scale = bf16, group = 128>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = operand, split_k = 1>
         : tensor<?x4096xbf16>, tensor<4096x4096xi4> -> tensor<?x4096xbf16>
  return %c : tensor<?x4096xbf16>
}

// One scale a row: none in the loop, one multiplication after it.
// CHECK-LABEL: gpu.func @epilogue(
// CHECK-SAME: %[[S:[a-z0-9]+]]: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: i32, %[[N:[a-z0-9]+]]: i32,
// CHECK-NOT: memref<128xi8
// CHECK: %[[ACC:.*]] = scf.for
// CHECK-NOT: hquant.load_scales
// CHECK: scf.yield
// CHECK: %[[R:.*]] = hquant.scale_rows %[[ACC]], %[[S]][%{{.*}}] bound %[[N]] {format = #hquant.format<bf16>}
// CHECK: hquant.store_tile %[[R]]
func.func @epilogue(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x1xbf16>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x1xbf16>)
         quant_type = <u4, scale = bf16, channel>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = epilogue, split_k = 1>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}

// A slab holds 4 groups: as many partial sums, each scaled.
// CHECK-LABEL: gpu.func @group16(
// CHECK-SAME: memref<1024xi8, {{.*}}>, %{{[a-z0-9]+}} : memref<4096xi8
// CHECK: hquant.copy_tile {{.*}} {cell_bytes = 128 : i64, {{.*}}, tile_columns = 1 : i64, tile_rows = 8 : i64}
// CHECK: %[[S:.*]] = hquant.load_scales %{{.*}} -> vector<2x4xi32>
// CHECK: %[[P:.*]] = hquant.mma %{{.*}}, %{{.*}}, %cst{{.*}} steps 0 to 1
// CHECK: hquant.scale_accumulate %[[P]], %[[S]], %{{.*}} group 0
// CHECK: %[[P:.*]] = hquant.mma %{{.*}}, %{{.*}}, %cst{{.*}} steps 1 to 2
// CHECK: hquant.scale_accumulate %[[P]], %[[S]], %{{.*}} group 1
// CHECK: %[[P:.*]] = hquant.mma %{{.*}}, %{{.*}}, %cst{{.*}} steps 2 to 3
// CHECK: hquant.scale_accumulate %[[P]], %[[S]], %{{.*}} group 2
// CHECK: %[[P:.*]] = hquant.mma %{{.*}}, %{{.*}}, %cst{{.*}} steps 3 to 4
// CHECK: hquant.scale_accumulate %[[P]], %[[S]], %{{.*}} group 3
func.func @group16(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x256xf16>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x256xf16>)
         quant_type = <u4, scale = f16, group = 16>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = accumulator, split_k = 1>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}

// A slab holds 2 groups: as many partial sums, each scaled.
// CHECK-LABEL: gpu.func @group32(
// CHECK-SAME: memref<512xi8, {{.*}}>, %{{[a-z0-9]+}} : memref<4096xi8
// CHECK: hquant.copy_tile {{.*}} {cell_bytes = 128 : i64, {{.*}}, tile_columns = 1 : i64, tile_rows = 4 : i64}
// CHECK: %[[S:.*]] = hquant.load_scales %{{.*}} -> vector<2x2xi32>
// CHECK: %[[P:.*]] = hquant.mma %{{.*}}, %{{.*}}, %cst{{.*}} steps 0 to 2
// CHECK: hquant.scale_accumulate %[[P]], %[[S]], %{{.*}} group 0
// CHECK: %[[P:.*]] = hquant.mma %{{.*}}, %{{.*}}, %cst{{.*}} steps 2 to 4
// CHECK: hquant.scale_accumulate %[[P]], %[[S]], %{{.*}} group 1
func.func @group32(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x128xf16>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x128xf16>)
         quant_type = <u4, scale = f16, group = 32>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = accumulator, split_k = 1>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}

// CHECK-LABEL: gpu.func @group64(
// CHECK-COUNT-2: hquant.scale_accumulate %{{.*}}, %{{.*}}, %{{.*}} group 0
// CHECK-NOT: hquant.scale_accumulate
func.func @group64(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x64xf16>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x64xf16>)
         quant_type = <u4, scale = f16, group = 64>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = accumulator, split_k = 1>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}

// The group outlives a stage: two trips read the same row of scales.
// CHECK-LABEL: gpu.func @group256(
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: hquant.copy_tile
// CHECK: hquant.copy_tile
// CHECK: %[[G:.*]] = arith.divui %[[I]], %c2_i32
// CHECK: hquant.copy_tile %{{.*}}[%[[G]],
// CHECK-COUNT-1: hquant.scale_accumulate
// CHECK-NOT: hquant.scale_accumulate
func.func @group256(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x16xf16>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x16xf16>)
         quant_type = <u4, scale = f16, group = 256>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = accumulator, split_k = 1>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}

// Integer zero points are a byte each.
// CHECK-LABEL: gpu.func @int_zero_points(
// CHECK-SAME: memref<128xi8, {{.*}}>, %[[T:[a-z0-9]+]] : memref<64xi8,
// CHECK: hquant.copy_tile {{.*}} to %[[T]] {cell_bytes = 64 : i64,
// CHECK: %[[Z:.*]] = hquant.load_scales %[[T]] {{.*}} {element_bits = 8 : i64
// CHECK: hquant.dequant %{{.*}} zero_points(%[[Z]] : vector<2x1xi32>) {mma
func.func @int_zero_points(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>, %z: tensor<4096x32xi4>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>) zero_points(%z : tensor<4096x32xi4>)
         quant_type = <u4, scale = f16, group = 128, zero_point = int>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = accumulator, split_k = 1>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}

// Float zero points have the scale's type; one for a row is loaded in every trip.
// CHECK-LABEL: gpu.func @float_zero_points(
// CHECK: hquant.copy_tile %{{.*}}[%c0_i32{{.*}}, %{{.*}}] bounds[%c1_i32{{.*}}, %{{.*}}] {{.*}} {cell_bytes = 128 : i64,
// CHECK: %[[Z:.*]] = hquant.load_scales {{.*}} {element_bits = 16 : i64
// CHECK: hquant.dequant %{{.*}} zero_points(%[[Z]] : vector<2x1xi32>) {float_zero_points, mma = #hquant.sync_mma<m16n8k16, f16>, scale = #hquant.format<bf16>
func.func @float_zero_points(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x1xbf16>, %z: tensor<4096x1xbf16>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x1xbf16>) zero_points(%z : tensor<4096x1xbf16>)
         quant_type = <u4, scale = bf16, channel, zero_point = float>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = epilogue, split_k = 1>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}

// Two warps share a stage's slabs; each scales its own partial sum.
// CHECK-LABEL: gpu.func @warps_k(
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>
// CHECK: %[[ACC:.*]] = scf.for
// CHECK-COUNT-1: hquant.load_weights
// CHECK-NOT: hquant.load_weights
// CHECK: %[[R:.*]] = hquant.reduce_warps %[[ACC]] through %{{.*}} {lanes = 64 : i64, warps_k = 2 : i64}
// CHECK: hquant.store_tile %[[R]] {{.*}} lanes = 64 : i64, threads = 128 : i64,
func.func @warps_k(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>)
         quant_type = <u4, scale = f16, group = 128>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 2, stages = 3, copy = cp.async, scale = accumulator, split_k = 1>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}

// Blocks share K: bounds are those of the split, the last block to arrive stores.
// CHECK-LABEL: gpu.func @split_k(
// CHECK: %[[Z:.*]] = gpu.grid_dim z
// CHECK: %[[SPLITS:.*]] = arith.index_cast %[[Z]]
// CHECK: %[[SHARE:.*]] = arith.ceildivui %[[TRIPS:.*]], %[[SPLITS]]
// CHECK: %[[BEGIN:.*]] = arith.muli %{{.*}}, %[[SHARE]]
// CHECK: %[[FIRST:.*]] = arith.minui %[[BEGIN]], %[[TRIPS]]
// CHECK: %[[LAST:.*]] = arith.minui %{{.*}}, %[[TRIPS]]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[LAST]]
// CHECK: %[[R:.*]], %[[IS:.*]] = hquant.reduce_blocks %{{.*}} through %{{.*}}, %{{.*}} {threads = 64 : i64}
// CHECK: hquant.store_tile %[[R]] {{.*}} if %[[IS]]
func.func @split_k(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>)
         quant_type = <u4, scale = f16, group = 128>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = accumulator, split_k = 3>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}

// CHECK-LABEL: gpu.func @bias(
// CHECK-SAME: %[[BIAS:[a-z0-9]+]]: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: i32, %[[N:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i32
// CHECK: %[[R:.*]] = hquant.add_rows %{{.*}}, %[[BIAS]][%{{.*}}] bound %[[N]] {format = #hquant.format<bf16>}
// CHECK: hquant.store_tile %[[R]]
func.func @bias(%x: tensor<?x4096xbf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>, %b: tensor<4096xbf16>) -> tensor<?x4096xbf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>) bias(%b : tensor<4096xbf16>)
         quant_type = <u4, scale = f16, group = 128>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = accumulator, split_k = 1>
         : tensor<?x4096xbf16>, tensor<4096x4096xi4> -> tensor<?x4096xbf16>
  return %c : tensor<?x4096xbf16>
}

// What N and K divide by is what a copy or store may rely on.
// CHECK-LABEL: gpu.func @divisor4(
// CHECK: hquant.copy_tile {{.*}} {cell_bytes = 2048 : i64, granule = 16 : i64
// CHECK: hquant.copy_tile {{.*}} {cell_bytes = 2 : i64, granule = 8 : i64
// CHECK: hquant.store_tile {{.*}} granule = 8 : i64
func.func @divisor4(%x: tensor<?x1012xf16>, %w: tensor<1004x1012xi4>, %s: tensor<1004x8xf16>) -> tensor<?x1004xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<1004x8xf16>)
         quant_type = <u4, scale = f16, group = 128>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = accumulator, split_k = 1>
         : tensor<?x1012xf16>, tensor<1004x1012xi4> -> tensor<?x1004xf16>
  return %c : tensor<?x1004xf16>
}

// CHECK-LABEL: gpu.func @divisor2(
// CHECK: hquant.copy_tile {{.*}} {cell_bytes = 2048 : i64, granule = 16 : i64
// CHECK: hquant.copy_tile {{.*}} {cell_bytes = 2 : i64, granule = 4 : i64
// CHECK: hquant.store_tile {{.*}} granule = 4 : i64
func.func @divisor2(%x: tensor<?x1010xf16>, %w: tensor<1002x1010xi4>, %s: tensor<1002x8xf16>) -> tensor<?x1002xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<1002x8xf16>)
         quant_type = <u4, scale = f16, group = 128>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = accumulator, split_k = 1>
         : tensor<?x1010xf16>, tensor<1002x1010xi4> -> tensor<?x1002xf16>
  return %c : tensor<?x1002xf16>
}

// CHECK-LABEL: gpu.func @divisor1(
// CHECK: hquant.copy_tile {{.*}} {cell_bytes = 2048 : i64, granule = 16 : i64
// CHECK: hquant.copy_tile {{.*}} {cell_bytes = 2 : i64, granule = 2 : i64
// CHECK: hquant.store_tile {{.*}} granule = 2 : i64
func.func @divisor1(%x: tensor<?x1001xf16>, %w: tensor<1001x1001xi4>, %s: tensor<1001x8xf16>) -> tensor<?x1001xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<1001x8xf16>)
         quant_type = <u4, scale = f16, group = 128>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = accumulator, split_k = 1>
         : tensor<?x1001xf16>, tensor<1001x1001xi4> -> tensor<?x1001xf16>
  return %c : tensor<?x1001xf16>
}

// CHECK-LABEL: gpu.func @dynamic(
// CHECK: hquant.copy_tile {{.*}} {cell_bytes = 2048 : i64, granule = 16 : i64
// CHECK: hquant.copy_tile {{.*}} {cell_bytes = 2 : i64, granule = 2 : i64
// CHECK: hquant.store_tile {{.*}} granule = 2 : i64
func.func @dynamic(%x: tensor<?x?xf16>, %w: tensor<?x?xi4>, %s: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<?x?xf16>)
         quant_type = <u4, scale = f16, group = 128>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = accumulator, split_k = 1>
         : tensor<?x?xf16>, tensor<?x?xi4> -> tensor<?x?xf16>
  return %c : tensor<?x?xf16>
}

// Nothing of the program depends on the way of copying.
// CHECK-LABEL: gpu.func @copies(
// CHECK-NOT: async
func.func @copies(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>)
         quant_type = <u4, scale = f16, group = 128>
         lowering_config = <block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 2, copy = sync, scale = accumulator, split_k = 1>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}

// Groups of 16 in steps of 32: each half of a step is a partial sum of its own, and
// has its own zero point.
// CHECK-LABEL: gpu.func @parts(
// CHECK: hquant.dequant %{{.*}} zero_points(%{{.*}} : vector<2x4xi32>)
// CHECK: %[[P:.*]] = hquant.mma %{{.*}}, %{{.*}}, %cst{{.*}} steps 0 to 1 {kind = #hquant.sync_mma<m16n8k32, s8>, parts = 2 : i64}
// CHECK: hquant.scale_accumulate %[[P]], %{{.*}} group 0
// CHECK: %[[P:.*]] = hquant.mma %{{.*}}, %{{.*}}, %cst{{.*}} steps 0 to 1 {kind = #hquant.sync_mma<m16n8k32, s8>, part = 1 : i64, parts = 2 : i64}
// CHECK: hquant.scale_accumulate %[[P]], %{{.*}} group 1
// CHECK: hquant.mma %{{.*}} steps 1 to 2 {kind = #hquant.sync_mma<m16n8k32, s8>, parts = 2 : i64}
// CHECK: hquant.mma %{{.*}} steps 1 to 2 {kind = #hquant.sync_mma<m16n8k32, s8>, part = 1 : i64, parts = 2 : i64}
func.func @parts(%x: tensor<?x4096xi8>, %w: tensor<4096x4096xi4>, %s: tensor<4096x256xf16>, %z: tensor<4096x256xi4>, %xs: tensor<?xf32>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x256xf16>) zero_points(%z : tensor<4096x256xi4>)
         activation_scales(%xs : tensor<?xf32>)
         quant_type = <u4, scale = f16, group = 16, zero_point = int>
         lowering_config = <mma = m16n8k32, block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = accumulator, split_k = 1>
         {activation_scale = "token"} : tensor<?x4096xi8>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}
}
