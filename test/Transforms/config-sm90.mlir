// RUN: humming-opt %s --hquant-select-lowering-config=chip=sm_90 | FileCheck %s

// What is chosen on sm_90, on a machine without one. Written by
// scripts/update_config_tests.py.

// One token.
// CHECK-LABEL: func @decode
// CHECK: lowering_config = <mma = m16n8k16, block = [64, 8, 1024], warp = [32, 8], warps_k = 8, stages = 3, copy = bulk, scale = accumulator, split_k = 1, early = 1>
func.func @decode(%x: tensor<1x4096xbf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xbf16>) -> tensor<1x4096xbf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xbf16>)
         quant_type = <u4, scale = bf16, group = 128>
         : tensor<1x4096xbf16>, tensor<4096x4096xi4> -> tensor<1x4096xbf16>
  return %c : tensor<1x4096xbf16>
}

// Sixteen tokens, the usual guess.
// CHECK-LABEL: func @small_batch
// CHECK: lowering_config = <mma = m16n8k16, block = [64, 16, 512], warp = [64, 16], warps_k = 8, stages = 4, copy = bulk, scale = accumulator, split_k = 1, early = 1>
func.func @small_batch(%x: tensor<16x8192xbf16>, %w: tensor<8192x8192xi4>, %s: tensor<8192x64xbf16>) -> tensor<16x8192xbf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<8192x64xbf16>)
         quant_type = <u4, scale = bf16, group = 128>
         : tensor<16x8192xbf16>, tensor<8192x8192xi4> -> tensor<16x8192xbf16>
  return %c : tensor<16x8192xbf16>
}

// Many tokens: compute bound.
// CHECK-LABEL: func @prefill
// CHECK: lowering_config = <mma = m16n8k16, block = [256, 64, 256], warp = [32, 64], warps_k = 1, stages = 3, copy = bulk, scale = operand, split_k = 1, early = 1>
func.func @prefill(%x: tensor<1024x8192xbf16>, %w: tensor<8192x8192xi4>, %s: tensor<8192x64xbf16>) -> tensor<1024x8192xbf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<8192x64xbf16>)
         quant_type = <u4, scale = bf16, group = 128>
         : tensor<1024x8192xbf16>, tensor<8192x8192xi4> -> tensor<1024x8192xbf16>
  return %c : tensor<1024x8192xbf16>
}

// M is not known: a small batch is assumed.
// CHECK-LABEL: func @unknown
// CHECK: lowering_config = <mma = m16n8k16, block = [128, 16, 256], warp = [32, 16], warps_k = 2, stages = 5, copy = bulk, scale = accumulator, split_k = 4, early = 1>
func.func @unknown(%x: tensor<?x14336xbf16>, %w: tensor<4096x14336xi4>, %s: tensor<4096x224xbf16>, %z: tensor<4096x224xbf16>) -> tensor<?x4096xbf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x224xbf16>) zero_points(%z : tensor<4096x224xbf16>)
         quant_type = <u4, scale = bf16, group = 64, zero_point = float>
         : tensor<?x14336xbf16>, tensor<4096x14336xi4> -> tensor<?x4096xbf16>
  return %c : tensor<?x4096xbf16>
}

// Less work than the card has SMs.
// CHECK-LABEL: func @small_layer
// CHECK: lowering_config = <mma = m16n8k16, block = [64, 16, 512], warp = [32, 16], warps_k = 4, stages = 4, copy = bulk, scale = accumulator, split_k = 1, early = 1>
func.func @small_layer(%x: tensor<33x1536xbf16>, %w: tensor<384x1536xi4>, %s: tensor<384x48xbf16>, %z: tensor<384x48xi4>, %b: tensor<384xbf16>) -> tensor<33x384xbf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<384x48xbf16>) zero_points(%z : tensor<384x48xi4>) bias(%b : tensor<384xbf16>)
         quant_type = <u4, scale = bf16, group = 32, zero_point = int>
         : tensor<33x1536xbf16>, tensor<384x1536xi4> -> tensor<33x384xbf16>
  return %c : tensor<33x384xbf16>
}

// Nothing divides the sizes.
// CHECK-LABEL: func @odd
// CHECK: lowering_config = <mma = m16n8k16, block = [64, 8, 512], warp = [32, 8], warps_k = 8, stages = 8, copy = cp.async, scale = epilogue, split_k = 1, early = 1>
func.func @odd(%x: tensor<7x1051xbf16>, %w: tensor<1001x1051xi4>, %s: tensor<1001x1xbf16>) -> tensor<7x1001xbf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<1001x1xbf16>)
         quant_type = <u4, scale = bf16, channel>
         : tensor<7x1051xbf16>, tensor<1001x1051xi4> -> tensor<7x1001xbf16>
  return %c : tensor<7x1001xbf16>
}
