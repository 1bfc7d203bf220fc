// RUN: humming-opt %s --humming-import | FileCheck %s

// Stage 0 to 1: nothing is left of the dequantization, and the zero points that
// mean symmetric codes are gone.
// CHECK-LABEL: func @layer
// CHECK-SAME: %[[X:.*]]: tensor<?x128xbf16>, %[[W:.*]]: tensor<64x128xi4>, %[[S:.*]]: tensor<64x1xbf16>
// CHECK-NEXT: %[[C:.*]] = hquant.matmul %[[X]], %[[W]] scales(%[[S]] : tensor<64x1xbf16>)
// CHECK-SAME: quant_type = <u4, scale = bf16, group = 128> :
// CHECK-NEXT: return %[[C]]
func.func @layer(%x: tensor<?x128xbf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xbf16>, %init: tensor<?x64xf32>) -> tensor<?x64xbf16> {
  %z = arith.constant dense<8> : tensor<64x1xi4>
  %f = hquant.dequantize %w scales(%s : tensor<64x1xbf16>) zero_points(%z : tensor<64x1xi4>)
         quant_type = <u4, scale = bf16, group = 128, zero_point = int> : tensor<64x128xi4> -> tensor<64x128xbf16>
  %zero = arith.constant 0.0 : f32
  %acc = linalg.fill ins(%zero : f32) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  %c = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
         ins(%x, %f : tensor<?x128xbf16>, tensor<64x128xbf16>) outs(%acc : tensor<?x64xf32>) -> tensor<?x64xf32>
  %r = arith.truncf %c : tensor<?x64xf32> to tensor<?x64xbf16>
  return %r : tensor<?x64xbf16>
}
