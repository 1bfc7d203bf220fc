// RUN: humming-opt %s --hquant-pack-weights --split-input-file | FileCheck %s
// RUN: humming-opt %s --hquant-pack-weights --split-input-file | humming-opt --hquant-pack-weights --split-input-file | FileCheck %s

// CHECK-DAG: #[[$WEIGHTS:.*]] = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
// CHECK-DAG: #[[$SCALES:.*]] = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>
// CHECK-DAG: #[[$ZERO_POINTS:.*]] = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = zero_points>

// CHECK-LABEL: func @arguments
// CHECK-SAME: %[[X:.*]]: tensor<?x200xbf16>, %[[W:.*]]: tensor<96x200xi4>, %[[S:.*]]: tensor<96x2xbf16>, %[[Z:.*]]: tensor<96x2xi4>, %[[B:.*]]: tensor<96xf16>
func.func @arguments(%x: tensor<?x200xbf16>, %w: tensor<96x200xi4>, %s: tensor<96x2xbf16>,
                     %z: tensor<96x2xi4>, %b: tensor<96xf16>) -> tensor<?x96xf16> {
  // CHECK: %[[PW:.*]] = hquant.pack %[[W]] : tensor<96x200xi4> -> tensor<2x4x512xi32, #[[$WEIGHTS]]>
  // CHECK: %[[PS:.*]] = hquant.pack %[[S]] : tensor<96x2xbf16> -> tensor<2x2x64xbf16, #[[$SCALES]]>
  // CHECK: %[[PZ:.*]] = hquant.pack %[[Z]] : tensor<96x2xi4> -> tensor<2x2x64xi8, #[[$ZERO_POINTS]]>
  // CHECK: hquant.matmul %[[X]], %[[PW]] scales(%[[PS]] : tensor<2x2x64xbf16, #[[$SCALES]]>)
  // CHECK-SAME: zero_points(%[[PZ]] : tensor<2x2x64xi8, #[[$ZERO_POINTS]]>) bias(%[[B]] : tensor<96xf16>)
  // CHECK-SAME: lowering_config = <mma = m16n8k16,
  // CHECK-SAME: : tensor<?x200xbf16>, tensor<2x4x512xi32, #[[$WEIGHTS]]> -> tensor<?x96xf16>
  %c = hquant.matmul %x, %w scales(%s : tensor<96x2xbf16>) zero_points(%z : tensor<96x2xi4>) bias(%b : tensor<96xf16>)
         quant_type = <u4, scale = bf16, group = 128, zero_point = int>
         lowering_config = <block = [64, 16, 128]>
         : tensor<?x200xbf16>, tensor<96x200xi4> -> tensor<?x96xf16>
  return %c : tensor<?x96xf16>
}

// -----

// CHECK-LABEL: func @dynamic
func.func @dynamic(%x: tensor<?x?xf16>, %w: tensor<?x?xi4>, %s: tensor<?x1xf16>) -> tensor<?x?xf16> {
  // CHECK: hquant.pack %{{.*}} : tensor<?x?xi4> -> tensor<?x?x512xi32, #packed_weights>
  // CHECK: hquant.pack %{{.*}} : tensor<?x1xf16> -> tensor<1x?x64xf16, #packed_scales>
  // CHECK: hquant.matmul
  %c = hquant.matmul %x, %w scales(%s : tensor<?x1xf16>) quant_type = <u4, scale = f16, channel>
         : tensor<?x?xf16>, tensor<?x?xi4> -> tensor<?x?xf16>
  return %c : tensor<?x?xf16>
}

// -----

// Constants are packed here and now, float zero points too; what has no other
// use is gone.
// CHECK-LABEL: func @constants
func.func @constants(%x: tensor<4x64xf16>) -> tensor<4x1xf16> {
  // CHECK-NOT: hquant.pack
  // CHECK-NOT: tensor<1x64xi4>
  // CHECK-DAG: arith.constant {{.*}} : tensor<1x1x512xi32, #packed_weights>
  // CHECK-DAG: arith.constant {{.*}} : tensor<1x1x64xf16, #packed_scales>
  // CHECK-DAG: arith.constant {{.*}} : tensor<1x1x64xf16, #packed_zero_points>
  // CHECK: hquant.matmul
  %w = arith.constant dense<5> : tensor<1x64xi4>
  %s = arith.constant dense<0.5> : tensor<1x1xf16>
  %z = arith.constant dense<7.5> : tensor<1x1xf16>
  %c = hquant.matmul %x, %w scales(%s : tensor<1x1xf16>) zero_points(%z : tensor<1x1xf16>)
         quant_type = <u4, scale = f16, channel, zero_point = float>
         : tensor<4x64xf16>, tensor<1x64xi4> -> tensor<4x1xf16>
  return %c : tensor<4x1xf16>
}

// -----

// Weights that something else reads keep their logical form for it.
// CHECK-LABEL: func @shared
func.func @shared(%x: tensor<4x64xf16>) -> (tensor<4x1xf16>, tensor<1x64xi4>) {
  // CHECK: %[[W:.*]] = arith.constant dense<5> : tensor<1x64xi4>
  // CHECK: return %{{.*}}, %[[W]]
  %w = arith.constant dense<5> : tensor<1x64xi4>
  %s = arith.constant dense<0.5> : tensor<1x1xf16>
  %c = hquant.matmul %x, %w scales(%s : tensor<1x1xf16>) quant_type = <u4, scale = f16, channel>
         : tensor<4x64xf16>, tensor<1x64xi4> -> tensor<4x1xf16>
  return %c, %w : tensor<4x1xf16>, tensor<1x64xi4>
}

// -----

// Operands as they are: only the scales are packed.
// CHECK-LABEL: func @plain
func.func @plain(%x: tensor<?x256xf8E4M3FN>, %w: tensor<96x256xi8>, %s: tensor<96x1xf32>, %a: tensor<?xf32>) -> tensor<?x96xbf16> {
  // CHECK: %[[W:.*]] = hquant.pack %{{.*}} : tensor<96x256xi8> -> tensor<96x256xi8, #{{.*}}>
  // CHECK: %[[S:.*]] = hquant.pack %{{.*}} : tensor<96x1xf32> -> tensor<1x2x64xf32, #{{.*}}>
  // CHECK: hquant.matmul %{{.*}}, %[[W]] scales(%[[S]] :
  %c = hquant.matmul %x, %w scales(%s : tensor<96x1xf32>) activation_scales(%a : tensor<?xf32>)
         quant_type = <e4m3, scale = f32, channel> {activation_scale = "token"}
         : tensor<?x256xf8E4M3FN>, tensor<96x256xi8> -> tensor<?x96xbf16>
  return %c : tensor<?x96xbf16>
}
