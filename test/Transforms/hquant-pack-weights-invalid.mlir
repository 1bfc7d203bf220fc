// RUN: humming-opt %s --hquant-pack-weights --split-input-file --verify-diagnostics

func.func @block(%x: tensor<4x128xf16>, %w: tensor<64x128xi8>, %s: tensor<1x1xf32>) {
  // expected-error @+1 {{expected one scale per row (group or channel) to pack, got #hquant.granularity<block = [128, 128]>; repeat the scales for every row}}
  %c = hquant.matmul %x, %w scales(%s : tensor<1x1xf32>) quant_type = <e4m3, scale = f32, block = [128, 128]>
         : tensor<4x128xf16>, tensor<64x128xi8> -> tensor<4x64xf16>
  return
}

// -----

// Every op that cannot be packed is reported.
func.func @tensor(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<1x1xf16>) {
  // expected-error @+1 {{got #hquant.granularity<tensor>}}
  %c = hquant.matmul %x, %w scales(%s : tensor<1x1xf16>) quant_type = <u4, scale = f16, tensor>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  // expected-error @+1 {{got #hquant.granularity<tensor>}}
  %d = hquant.matmul %x, %w scales(%s : tensor<1x1xf16>) quant_type = <u4, scale = f16, tensor>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}
