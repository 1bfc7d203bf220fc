// RUN: humming-opt %s | humming-opt | FileCheck %s

// CHECK-LABEL: func @token
func.func @token(%x: tensor<?x4096xbf16>) -> (tensor<?x4096xf8E4M3FN>, tensor<?xf32>) {
  // CHECK: hquant.quantize %{{.*}} {scale = "token"} : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN> scales(tensor<?xf32>)
  %q, %s = hquant.quantize %x {scale = "token"} : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN> scales(tensor<?xf32>)
  return %q, %s : tensor<?x4096xf8E4M3FN>, tensor<?xf32>
}

// CHECK-LABEL: func @gated_groups
func.func @gated_groups(%x: tensor<20x8192xf16>) {
  // CHECK: quantize_config = <lanes = 16, groups = 16, rows = 1, chunks = 1> {gate = "silu", group = 128 : i64, scale = "token"}
  // CHECK-SAME: scales(tensor<32x32xf8E8M0FNU>)
  %q, %s = hquant.quantize %x quantize_config = <lanes = 16, groups = 16>
             {scale = "token", group = 128 : i64, gate = "silu"} : tensor<20x8192xf16>
             -> tensor<20x4096xf8E5M2> scales(tensor<32x32xf8E8M0FNU>)
  return
}

// CHECK-LABEL: func @asymmetric
func.func @asymmetric(%x: tensor<?x?xbf16>, %s: tensor<1xf32>, %z: tensor<1xi32>) {
  // CHECK: -> tensor<?x?xi8> scales(tensor<?xf32>) zero_points(tensor<?xi32>)
  %q, %qs, %qz = hquant.quantize %x {scale = "token"} : tensor<?x?xbf16>
                   -> tensor<?x?xi8> scales(tensor<?xf32>) zero_points(tensor<?xi32>)
  // CHECK: static_scales(%{{.*}} : tensor<1xf32>) static_zero_points(%{{.*}} : tensor<1xi32>) {scale = "tensor"}
  %q2 = hquant.quantize %x static_scales(%s : tensor<1xf32>) static_zero_points(%z : tensor<1xi32>)
          {scale = "tensor"} : tensor<?x?xbf16> -> tensor<?x?xi8>
  return
}

// CHECK-LABEL: func @matmul
func.func @matmul(%x: tensor<4x256xi8>, %w: tensor<64x256xi4>, %s: tensor<64x1xf32>, %a: tensor<4xf32>,
                  %g: tensor<2x16xf8E8M0FNU>, %z: tensor<4xi32>, %r: tensor<64xf32>) {
  // CHECK: activation_zero_points(%{{.*}} : tensor<4xi32>) weight_sums(%{{.*}} : tensor<64xf32>)
  %0 = hquant.matmul %x, %w scales(%s : tensor<64x1xf32>) activation_scales(%a : tensor<4xf32>)
         activation_zero_points(%z : tensor<4xi32>) weight_sums(%r : tensor<64xf32>)
         quant_type = <u4, scale = f32, channel> {activation_scale = "token"}
         : tensor<4x256xi8>, tensor<64x256xi4> -> tensor<4x64xf16>
  // CHECK: {activation_group = 128 : i64, activation_scale = "token"}
  %1 = hquant.matmul %x, %w scales(%s : tensor<64x1xf32>) activation_scales(%g : tensor<2x16xf8E8M0FNU>)
         quant_type = <u4, scale = f32, channel> {activation_scale = "token", activation_group = 128 : i64}
         : tensor<4x256xi8>, tensor<64x256xi4> -> tensor<4x64xf16>
  return
}

// CHECK-LABEL: func @tile
func.func @tile(%t: memref<2x128xi8, #gpu.address_space<workgroup>>, %i: i32, %p: vector<1x2x2xi32>,
                %c: vector<1x2x4xf32>, %a: vector<1x2x4xi32>, %b: vector<2x2x2xi32>) {
  // CHECK: hquant.load_token_scales %{{.*}}[%{{.*}}] token %{{.*}} group %{{.*}} {tile_tokens = 32 : i64}
  %s = hquant.load_token_scales %t[%i] token %i group %i {tile_tokens = 32} : memref<2x128xi8, #gpu.address_space<workgroup>> -> vector<2x2xi32>
  // CHECK: hquant.accumulate %{{.*}} scales(%{{.*}} : vector<2x2xi32>) into %{{.*}} : vector<1x2x4xf32> : vector<1x2x2xi32> -> vector<1x2x4xf32>
  %0 = hquant.accumulate %p scales(%s : vector<2x2xi32>) into %c : vector<1x2x4xf32> : vector<1x2x2xi32> -> vector<1x2x4xf32>
  // CHECK: #hquant.sync_mma<m16n8k32, e5m2, activation = e4m3>
  %1 = hquant.mma %a, %b, %c steps 0 to 2 {kind = #hquant.sync_mma<m16n8k32, e5m2, activation = e4m3>} : vector<1x2x4xi32>, vector<2x2x2xi32>, vector<1x2x4xf32>
  return
}

// CHECK-LABEL: func @half_sums
func.func @half_sums(%a: vector<1x4x4xi32>, %b: vector<2x4x2xi32>, %c: vector<1x2x2xi32>) -> vector<1x2x2xi32> {
  // CHECK: #hquant.sync_mma<m16n8k16, f16, accumulator = f16>
  %0 = hquant.mma %a, %b, %c steps 0 to 4 {kind = #hquant.sync_mma<m16n8k16, f16, accumulator = f16>} : vector<1x4x4xi32>, vector<2x4x2xi32>, vector<1x2x2xi32>
  return %0 : vector<1x2x2xi32>
}
