// RUN: humming-opt %s --canonicalize --split-input-file | FileCheck %s

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>

// CHECK-LABEL: func @zero_bias
func.func @zero_bias(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> tensor<4x64xf16> {
  // CHECK-NOT: bias
  %b = arith.constant dense<0.0> : tensor<64xf16>
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) bias(%b : tensor<64xf16>)
         quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return %c : tensor<4x64xf16>
}

// CHECK-LABEL: func @other_bias
func.func @other_bias(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> tensor<4x64xf16> {
  // CHECK: bias
  %b = arith.constant dense<1.0> : tensor<64xf16>
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) bias(%b : tensor<64xf16>)
         quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return %c : tensor<4x64xf16>
}

// A u4 zero point of 8 (which prints as -8) is what symmetric codes have.
// CHECK-LABEL: func @symmetric_zero_points
func.func @symmetric_zero_points(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>)
    -> (tensor<4x64xf16>, tensor<4x64xf16>, tensor<64x128xf16>) {
  // CHECK-NOT: zero_point
  %zi = arith.constant dense<8> : tensor<64x1xi4>
  %a = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) zero_points(%zi : tensor<64x1xi4>)
         quant_type = <u4, scale = f16, group = 128, zero_point = int>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  %zf = arith.constant dense<8.0> : tensor<64x1xf16>
  %b = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) zero_points(%zf : tensor<64x1xf16>)
         quant_type = <u4, scale = f16, group = 128, zero_point = float>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  %c = hquant.dequantize %w scales(%s : tensor<64x1xf16>) zero_points(%zi : tensor<64x1xi4>)
         quant_type = <u4, scale = f16, group = 128, zero_point = int> : tensor<64x128xi4> -> tensor<64x128xf16>
  return %a, %b, %c : tensor<4x64xf16>, tensor<4x64xf16>, tensor<64x128xf16>
}

// CHECK-LABEL: func @other_zero_points
func.func @other_zero_points(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>)
    -> (tensor<4x64xf16>, tensor<4x64xf16>) {
  %zi = arith.constant dense<7> : tensor<64x1xi4>
  // CHECK: zero_point = int
  %a = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) zero_points(%zi : tensor<64x1xi4>)
         quant_type = <u4, scale = f16, group = 128, zero_point = int>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  %zf = arith.constant dense<7.5> : tensor<64x1xf16>
  // CHECK: zero_point = float
  %b = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) zero_points(%zf : tensor<64x1xf16>)
         quant_type = <u4, scale = f16, group = 128, zero_point = float>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return %a, %b : tensor<4x64xf16>, tensor<4x64xf16>
}

// CHECK-LABEL: func @unpack_of_pack
// CHECK-SAME: %[[W:.*]]: tensor<60x100xi4>
func.func @unpack_of_pack(%w: tensor<60x100xi4>) -> tensor<60x100xi4> {
  // CHECK-NEXT: return %[[W]]
  %p = hquant.pack %w : tensor<60x100xi4> -> tensor<1x2x512xi32, #weights>
  %u = hquant.unpack %p : tensor<1x2x512xi32, #weights> -> tensor<60x100xi4>
  return %u : tensor<60x100xi4>
}

// CHECK-LABEL: func @unpack_of_other_pack
func.func @unpack_of_other_pack(%w: tensor<60x100xi4>) -> tensor<61x100xi4> {
  // CHECK: hquant.unpack
  %p = hquant.pack %w : tensor<60x100xi4> -> tensor<1x2x512xi32, #weights>
  %u = hquant.unpack %p : tensor<1x2x512xi32, #weights> -> tensor<61x100xi4>
  return %u : tensor<61x100xi4>
}

// CHECK-LABEL: func @pack_of_unpack
// CHECK-SAME: %[[P:.*]]: tensor<1x2x512xi32, #packed_weights>, %[[S:.*]]: tensor<3x1x64xf16, #packed_scales>
func.func @pack_of_unpack(%p: tensor<1x2x512xi32, #weights>, %s: tensor<3x1x64xf16, #scales>)
    -> (tensor<1x2x512xi32, #weights>, tensor<3x1x64xf16, #scales>) {
  // CHECK-NEXT: return %[[P]], %[[S]]
  %u = hquant.unpack %p : tensor<1x2x512xi32, #weights> -> tensor<64x128xi4>
  %q = hquant.pack %u : tensor<64x128xi4> -> tensor<1x2x512xi32, #weights>
  %us = hquant.unpack %s : tensor<3x1x64xf16, #scales> -> tensor<64x3xf16>
  %qs = hquant.pack %us : tensor<64x3xf16> -> tensor<3x1x64xf16, #scales>
  return %q, %qs : tensor<1x2x512xi32, #weights>, tensor<3x1x64xf16, #scales>
}

// The padding of the packed operand need not be zero, that of pack's result is.
// CHECK-LABEL: func @pack_of_unpack_with_padding
func.func @pack_of_unpack_with_padding(%p: tensor<1x2x512xi32, #weights>) -> tensor<1x2x512xi32, #weights> {
  // CHECK: hquant.unpack
  // CHECK: hquant.pack
  %u = hquant.unpack %p : tensor<1x2x512xi32, #weights> -> tensor<64x127xi4>
  %q = hquant.pack %u : tensor<64x127xi4> -> tensor<1x2x512xi32, #weights>
  return %q : tensor<1x2x512xi32, #weights>
}

// CHECK-LABEL: func @matmul_of_unpack
// CHECK-SAME: %[[X:.*]]: tensor<4x128xf16>, %[[W:.*]]: tensor<1x2x512xi32, #packed_weights>, %[[S:.*]]: tensor<1x1x64xf16, #packed_scales>
func.func @matmul_of_unpack(%x: tensor<4x128xf16>, %w: tensor<1x2x512xi32, #weights>, %s: tensor<1x1x64xf16, #scales>) -> tensor<4x60xf16> {
  // CHECK-NEXT: hquant.matmul %[[X]], %[[W]] scales(%[[S]] :
  %uw = hquant.unpack %w : tensor<1x2x512xi32, #weights> -> tensor<60x128xi4>
  %us = hquant.unpack %s : tensor<1x1x64xf16, #scales> -> tensor<60x1xf16>
  %c = hquant.matmul %x, %uw scales(%us : tensor<60x1xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<60x128xi4> -> tensor<4x60xf16>
  return %c : tensor<4x60xf16>
}
