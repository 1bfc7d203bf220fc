// RUN: humming-opt %s | humming-opt | FileCheck %s
// RUN: humming-opt %s --mlir-print-op-generic | humming-opt | FileCheck %s

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>
#zero_points = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = zero_points>

// CHECK-LABEL: func @symmetric
func.func @symmetric(%x: tensor<16x200xf16>, %w: tensor<96x200xi4>, %s: tensor<96x2xf16>) -> tensor<16x96xf16> {
  // CHECK: hquant.matmul %{{.*}}, %{{.*}} scales(%{{.*}} : tensor<96x2xf16>)
  // CHECK-SAME: quant_type = <u4, scale = f16, group = 128>
  // CHECK-SAME: : tensor<16x200xf16>, tensor<96x200xi4> -> tensor<16x96xf16>
  %c = hquant.matmul %x, %w scales(%s : tensor<96x2xf16>)
         quant_type = <u4, scale = f16, group = 128>
         : tensor<16x200xf16>, tensor<96x200xi4> -> tensor<16x96xf16>
  return %c : tensor<16x96xf16>
}

// Every extent may be dynamic.
// CHECK-LABEL: func @dynamic
func.func @dynamic(%x: tensor<?x?xbf16>, %w: tensor<?x?xi4>, %s: tensor<?x?xbf16>,
                   %z: tensor<?x?xi4>, %b: tensor<?xf16>) -> tensor<?x?xf16> {
  // CHECK: hquant.matmul
  // CHECK-SAME: zero_points(%{{.*}} : tensor<?x?xi4>) bias(%{{.*}} : tensor<?xf16>)
  // CHECK-SAME: quant_type = <u4, scale = bf16, group = 32, zero_point = int>
  %c = hquant.matmul %x, %w scales(%s : tensor<?x?xbf16>) zero_points(%z : tensor<?x?xi4>) bias(%b : tensor<?xf16>)
         quant_type = <u4, scale = bf16, group = 32, zero_point = int>
         : tensor<?x?xbf16>, tensor<?x?xi4> -> tensor<?x?xf16>
  return %c : tensor<?x?xf16>
}

// CHECK-LABEL: func @packed
func.func @packed(%x: tensor<?x200xbf16>, %w: tensor<2x4x512xi32, #weights>,
                  %s: tensor<2x2x64xbf16, #scales>, %z: tensor<2x2x64xbf16, #zero_points>) -> tensor<?x96xbf16> {
  // CHECK: lowering_config = <mma = m16n8k16, block = [64, 16, 128], warp = [16, 16], warps_k = 1, stages = 3, copy = cp.async, scale = operand, split_k = 2>
  // CHECK-SAME: {note = "mine"} : tensor<?x200xbf16>, tensor<2x4x512xi32, #packed_weights> -> tensor<?x96xbf16>
  %c = hquant.matmul %x, %w scales(%s : tensor<2x2x64xbf16, #scales>) zero_points(%z : tensor<2x2x64xbf16, #zero_points>)
         quant_type = <u4, scale = bf16, group = 128, zero_point = float>
         lowering_config = <block = [64, 16, 128], stages = 3, copy = cp.async, split_k = 2>
         {note = "mine"} : tensor<?x200xbf16>, tensor<2x4x512xi32, #weights> -> tensor<?x96xbf16>
  return %c : tensor<?x96xbf16>
}

// Formats of 1 to 8 bits, whatever the kernels know today.
// CHECK-LABEL: func @formats
func.func @formats(%x: tensor<4x64xbf16>, %w3: tensor<8x64xi3>, %s3: tensor<8x1xbf16>,
                   %w8: tensor<8x64xi8>, %s8: tensor<1x1xf32>, %w4: tensor<8x64xi4>, %s4: tensor<8x2xf8E8M0FNU>) {
  // CHECK: quant_type = <u3, scale = bf16, channel>
  %0 = hquant.matmul %x, %w3 scales(%s3 : tensor<8x1xbf16>) quant_type = <u3, scale = bf16, channel>
         : tensor<4x64xbf16>, tensor<8x64xi3> -> tensor<4x8xbf16>
  // CHECK: quant_type = <e4m3, scale = f32, block = [128, 128]>
  %1 = hquant.matmul %x, %w8 scales(%s8 : tensor<1x1xf32>) quant_type = <e4m3, scale = f32, block = [128, 128]>
         : tensor<4x64xbf16>, tensor<8x64xi8> -> tensor<4x8xbf16>
  // CHECK: quant_type = <e2m1, scale = e8m0, group = 32>
  %2 = hquant.matmul %x, %w4 scales(%s4 : tensor<8x2xf8E8M0FNU>) quant_type = <e2m1, scale = e8m0, group = 32>
         : tensor<4x64xbf16>, tensor<8x64xi4> -> tensor<4x8xbf16>
  return
}

// CHECK-LABEL: func @dequantize
func.func @dequantize(%w: tensor<?x64xi4>, %s: tensor<?x1xf16>, %z: tensor<?x1xf16>) -> tensor<?x64xf32> {
  // CHECK: hquant.dequantize %{{.*}} scales(%{{.*}} : tensor<?x1xf16>) zero_points(%{{.*}} : tensor<?x1xf16>)
  // CHECK-SAME: quant_type = <u4, scale = f16, channel, zero_point = float> : tensor<?x64xi4> -> tensor<?x64xf32>
  %f = hquant.dequantize %w scales(%s : tensor<?x1xf16>) zero_points(%z : tensor<?x1xf16>)
         quant_type = <u4, scale = f16, channel, zero_point = float> : tensor<?x64xi4> -> tensor<?x64xf32>
  return %f : tensor<?x64xf32>
}

// CHECK-LABEL: func @pack
func.func @pack(%w: tensor<?x130xi4>, %s: tensor<96x2xf16>, %z: tensor<96x2xi4>) -> tensor<96x2xi4> {
  // CHECK: hquant.pack %{{.*}} : tensor<?x130xi4> -> tensor<?x3x512xi32, #packed_weights>
  %pw = hquant.pack %w : tensor<?x130xi4> -> tensor<?x3x512xi32, #weights>
  // CHECK: hquant.pack %{{.*}} : tensor<96x2xf16> -> tensor<2x2x64xf16, #packed_scales>
  %ps = hquant.pack %s : tensor<96x2xf16> -> tensor<2x2x64xf16, #scales>
  // CHECK: hquant.pack %{{.*}} : tensor<96x2xi4> -> tensor<2x2x64xi8, #packed_zero_points>
  %pz = hquant.pack %z : tensor<96x2xi4> -> tensor<2x2x64xi8, #zero_points>
  // CHECK: hquant.unpack %{{.*}} : tensor<2x2x64xi8, #packed_zero_points> -> tensor<96x2xi4>
  %uz = hquant.unpack %pz : tensor<2x2x64xi8, #zero_points> -> tensor<96x2xi4>
  return %uz : tensor<96x2xi4>
}
