// A quantize goes through the same pipelines as a matmul.
// RUN: humming-opt %s --humming-configure=chip=sm_90 | FileCheck %s --check-prefix=CONFIGURED
// RUN: humming-opt %s --humming-configure='chip=sm_90 config=chunks=3' | FileCheck %s --check-prefix=BY-HAND
// RUN: humming-opt %s --humming-configure=chip=sm_90 --convert-hquant-to-tiles --hquant-verify-stage=stage=3 | FileCheck %s --check-prefix=TILES
// RUN: humming-opt %s --humming-compile=chip=sm_90 | FileCheck %s --check-prefix=THREAD

// CONFIGURED: hquant.quantize %{{.*}} quantize_config = <lanes = 256, groups = 1, rows = 1, chunks = 2> {scale = "token"}
// BY-HAND: quantize_config = <lanes = 256, groups = 1, rows = 1, chunks = 3>

// The registers hold the row: what may follow is a loop from pass 1 on.
// TILES-LABEL: gpu.func @token(
// TILES-SAME: %[[X:[a-z0-9]+]]: !llvm.ptr<1>, %[[Q:[a-z0-9]+]]: !llvm.ptr<1>, %[[S:[a-z0-9]+]]: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %[[M:[a-z0-9]+]]: i32, %[[K:[a-z0-9]+]]: i32
// TILES-SAME: workgroup(%[[SCRATCH:[a-z0-9]+]] : memref<256xi8, #gpu.address_space<workgroup>>)
// TILES-SAME: known_block_size = array<i32: 256, 1, 1>
// TILES: %[[KEPT:.*]] = hquant.load_segment %[[X]]
// TILES-SAME: granule = 16
// TILES: %[[HIGH:.*]] = hquant.segment_range %[[KEPT]] high
// TILES: %[[ALL:.*]] = scf.for
// TILES:   hquant.load_segment
// TILES:   hquant.segment_range
// TILES: %[[SCALE:.*]], %[[INVERSE:.*]] = hquant.segment_scale high %[[ALL]] through %[[SCRATCH]]
// TILES: hquant.store_segment %[[KEPT]] times %[[INVERSE]] to %[[Q]]
// TILES: scf.for
// TILES:   hquant.load_segment
// TILES:   hquant.store_segment
// TILES: hquant.store_scale %[[SCALE]] to %[[S]]

// Groups of 128 fit the registers: no loops.
// TILES-LABEL: gpu.func @groups(
// TILES-NOT: scf.for
// TILES: hquant.segment_scale
// TILES-NOT: scf.for
// TILES: gpu.return

// THREAD-LABEL: llvm.func @token(
// THREAD-SAME: nvvm.kernel
// THREAD: nvvm.shfl.sync bfly
// THREAD: cvt.rn.satfinite.e4m3x2.f32
// THREAD-LABEL: llvm.func @groups(
// THREAD: ex2.approx.f32

func.func @token(%x: tensor<?x4096xbf16>) -> (tensor<?x4096xf8E4M3FN>, tensor<?xf32>) {
  %q, %s = hquant.quantize %x {scale = "token"} : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN> scales(tensor<?xf32>)
  return %q, %s : tensor<?x4096xf8E4M3FN>, tensor<?xf32>
}

func.func @groups(%x: tensor<?x8192xbf16>) -> (tensor<?x4096xi8>, tensor<32x?xf8E8M0FNU>) {
  %q, %s = hquant.quantize %x {scale = "token", group = 128 : i64, gate = "silu"} : tensor<?x8192xbf16>
             -> tensor<?x4096xi8> scales(tensor<32x?xf8E8M0FNU>)
  return %q, %s : tensor<?x4096xi8>, tensor<32x?xf8E8M0FNU>
}
