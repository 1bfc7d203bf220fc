// On sm_90a a warpgroup takes one step at a time from shared memory. Nothing is in
// flight from one trip to the next.
//
// RUN: humming-opt %s --humming-configure="chip=sm_90a config=mma=wgmma,copy=cp.async,block=128x64x128,warp=16x64,warps_k=1,stages=4,scale=operand,split_k=1,early=1" --convert-hquant-to-tiles \
// RUN:   | FileCheck %s --check-prefix=TILES
// RUN: humming-opt %s --pass-pipeline="builtin.module(humming-configure{chip=sm_90a config=mma=wgmma,copy=cp.async,block=128x64x128,warp=16x64,warps_k=1,stages=4,scale=operand,split_k=1,early=1},convert-hquant-to-tiles,gpu.module(gpu.func(hquant-pipeline-copies)))" \
// RUN:   | FileCheck %s --check-prefix=PIPELINED
// RUN: humming-opt %s --humming-compile="chip=sm_90a config=mma=wgmma,copy=cp.async,block=128x64x128,warp=16x64,warps_k=1,stages=4,scale=operand,split_k=1,early=1" -o %t
// RUN: FileCheck %s --check-prefix=NVVM --input-file=%t
// RUN: %execute %s %t --config mma=wgmma,copy=cp.async,block=128x64x128,warp=16x64,warps_k=1,stages=4,scale=operand,split_k=1,early=1

func.func @layer(%x: tensor<?x1024xbf16>, %w: tensor<512x1024xi4>, %s: tensor<512x8xbf16>) -> tensor<?x512xbf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<512x8xbf16>) quant_type = <u4, scale = bf16, group = 128>
    : tensor<?x1024xbf16>, tensor<512x1024xi4> -> tensor<?x512xbf16>
  return %c : tensor<?x512xbf16>
}

// TILES-LABEL: gpu.func @layer
// TILES: hquant.grid_start
// TILES: hquant.grid_wait
// TILES: scf.for
// Weights depend on no kernel before, activations do.
// TILES: hquant.copy_tile %arg1{{.*}} independent
// TILES: hquant.copy_tile %arg0
// TILES-NOT: independent
// TILES: hquant.copy_tile %arg2{{.*}} independent
// TILES: hquant.fence_async
// TILES-NEXT: gpu.barrier
// TILES: hquant.load_weights {{.*}} unit_stride = 4
// TILES-COUNT-7: hquant.warpgroup_wait {{.*}} pending 3
// TILES-NOT: pending 1
// TILES: hquant.warpgroup_wait {{.*}} pending 0
// TILES-NEXT: gpu.barrier

// PIPELINED-LABEL: gpu.func @layer
// Three trips of weights and scales, then the wait, then their activations.
// PIPELINED-COUNT-6: hquant.copy_tile {{.*}} independent
// PIPELINED: hquant.grid_wait
// PIPELINED: hquant.copy_tile %arg0
// PIPELINED-COUNT-3: hquant.commit_copies
// PIPELINED-NOT: hquant.commit_copies
// PIPELINED: scf.for
// PIPELINED: hquant.wait_copies 2
// PIPELINED-NEXT: hquant.fence_async
// PIPELINED-NEXT: gpu.barrier
// PIPELINED: hquant.copy_tile
// PIPELINED: hquant.commit_copies
// PIPELINED: hquant.warpgroup_mma
// PIPELINED: hquant.warpgroup_wait {{.*}} pending 3

// NVVM-LABEL: llvm.func @layer
// NVVM: nvvm.griddepcontrol launch_dependents
// NVVM: nvvm.cp.async.shared.global
// NVVM: nvvm.griddepcontrol wait
// NVVM: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// NVVM: nvvm.wgmma.fence.aligned
// NVVM: llvm.inline_asm has_side_effects asm_dialect = att "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// NVVM: nvvm.wgmma.commit.group.sync.aligned
// NVVM: nvvm.wgmma.wait.group.sync.aligned 3
// NVVM: "wgmma.wait_group.sync.aligned 0;"
