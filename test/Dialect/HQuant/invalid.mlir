// RUN: humming-opt %s --split-input-file --verify-diagnostics

// The numbers are those of docs/HQuant.md.

//===----------------------------------------------------------------------===//
// matmul
//===----------------------------------------------------------------------===//

func.func @matmul_c1(%x: tensor<4x128xf32>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected activations of f16, bf16, f8E4M3FN, f8E5M2, i8 or i4, got 'f32'}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf32>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c2(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected a result of f16, bf16 or f32, got 'f64'}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf64>
  return
}

// -----

func.func @matmul_c3(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected a result of 4 rows as the activations have, got 5}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<5x64xf16>
  return
}

// -----

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
func.func @matmul_c4_logical_scales(%x: tensor<4x128xf16>, %w: tensor<1x2x512xi32, #weights>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected scales packed as #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales> as the weights are, got 'tensor<64x1xf16>'}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<1x2x512xi32, #weights> -> tensor<4x64xf16>
  return
}

// -----

#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>
func.func @matmul_c4_logical_weights(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<1x1x64xf16, #scales>) {
  // expected-error @+1 {{expected scales logical, of rank 2 and without encoding, as the weights are, got}}
  %c = hquant.matmul %x, %w scales(%s : tensor<1x1x64xf16, #scales>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c4_rank(%x: tensor<4x128xf16>, %w: tensor<1x2x512xi32>, %s: tensor<1x1x64xf16>) {
  // expected-error @+1 {{expected weights logical, of rank 2 and without encoding, as the weights are, got 'tensor<1x2x512xi32>'}}
  %c = hquant.matmul %x, %w scales(%s : tensor<1x1x64xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<1x2x512xi32> -> tensor<4x64xf16>
  return
}

// -----

#role = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>
func.func @matmul_c4_role(%x: tensor<4x128xf16>, %w: tensor<1x2x64xi32, #role>, %s: tensor<1x1x64xf16, #role>) {
  // expected-error @+1 {{expected weights packed as #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>}}
  %c = hquant.matmul %x, %w scales(%s : tensor<1x1x64xf16, #role>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<1x2x64xi32, #role> -> tensor<4x64xf16>
  return
}

// -----

#weights = #hquant.packed_layout<activation_bits = 8, weight_bits = 4, role = weights>
#scales = #hquant.packed_layout<activation_bits = 8, weight_bits = 4, role = scales>
func.func @matmul_c5(%x: tensor<4x128xf16>, %w: tensor<1x2x512xi32, #weights>, %s: tensor<1x1x64xf16, #scales>) {
  // expected-error @+1 {{expected a layout of activation_bits = 16, weight_bits = 4, got #hquant.packed_layout<activation_bits = 8, weight_bits = 4, role = weights>}}
  %c = hquant.matmul %x, %w scales(%s : tensor<1x1x64xf16, #scales>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<1x2x512xi32, #weights> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c6(%x: tensor<4x128xf16>, %w: tensor<64x128xi8>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected weights of 'i4', got 'i8'}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<64x128xi8> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c7(%x: tensor<4x128xf16>, %w: tensor<128x64xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected weights of shape 64x128, got 128x64}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<128x64xi4> -> tensor<4x64xf16>
  return
}

// -----

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>
func.func @matmul_c7_packed(%x: tensor<4x129xf16>, %w: tensor<1x2x512xi32, #weights>, %s: tensor<2x1x64xf16, #scales>) {
  // expected-error @+1 {{expected weights of shape 1x3x512, got 1x2x512}}
  %c = hquant.matmul %x, %w scales(%s : tensor<2x1x64xf16, #scales>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x129xf16>, tensor<1x2x512xi32, #weights> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c8(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xbf16>) {
  // expected-error @+1 {{expected scales of 'f16', got 'bf16'}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xbf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}

// -----

// The last group may be short.
func.func @matmul_c9(%x: tensor<4x130xf16>, %w: tensor<64x130xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected scales of shape 64x2, got 64x1}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<4x130xf16>, tensor<64x130xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c10_missing(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected zero points with zero_point = int, got none}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128, zero_point = int>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c10_given(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected no zero points with zero_point = none, got some}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) zero_points(%s : tensor<64x1xf16>)
         quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c11(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected zero points of 'i4', got 'f16'}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) zero_points(%s : tensor<64x1xf16>)
         quant_type = <u4, scale = f16, group = 128, zero_point = int>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c12(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>, %z: tensor<64x2xi4>) {
  // expected-error @+1 {{expected zero points of shape 64x1, got 64x2}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) zero_points(%z : tensor<64x2xi4>)
         quant_type = <u4, scale = f16, group = 128, zero_point = int>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}

// -----

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 8, role = weights>
#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 8, role = scales>
func.func @matmul_c13(%x: tensor<4x128xf16>, %w: tensor<1x2x1024xi32, #weights>, %s: tensor<1x1x64xf32, #scales>) {
  // expected-error @+1 {{expected one scale per row (group or channel) with packed operands, got #hquant.granularity<block = [128, 128]>}}
  %c = hquant.matmul %x, %w scales(%s : tensor<1x1x64xf32, #scales>) quant_type = <e4m3, scale = f32, block = [128, 128]>
         : tensor<4x128xf16>, tensor<1x2x1024xi32, #weights> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c14(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>, %b: tensor<64xf32>) {
  // expected-error @+1 {{expected a bias of the result's 'f16', got 'f32'}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) bias(%b : tensor<64xf32>)
         quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c16(%x: tensor<4x128xi8>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected activation_scale and activation_scales with activations of 'i8', got none and none}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>)
         quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xi8>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c16_float(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>, %a: tensor<4xf32>) {
  // expected-error @+1 {{expected no activation scales with activations of 'f16', got activation_scale = token and some}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) activation_scales(%a : tensor<4xf32>)
         quant_type = <u4, scale = f16, group = 128> {activation_scale = "token"}
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c17(%x: tensor<4x128xi8>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>, %a: tensor<5xf32>) {
  // expected-error @+1 {{expected 4 activation scales, got 5}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) activation_scales(%a : tensor<5xf32>)
         quant_type = <u4, scale = f16, group = 128> {activation_scale = "token"}
         : tensor<4x128xi8>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c18(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected global scales, as quant_type says, got none}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>)
         quant_type = <u4, scale = f16, group = 128, global = tensor>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c19(%x: tensor<4x128xf8E4M3FN>, %w: tensor<64x128xi8, #hquant.packed_layout<activation_bits = 8, weight_bits = 8, role = plain_weights>>, %s: tensor<1x1x64xf16, #hquant.packed_layout<activation_bits = 8, weight_bits = 8, role = scales>>, %a: tensor<4xf32>) {
  // expected-error @+1 {{expected plain weights of the activations' format and without zero points, got #hquant.quant_type<s8, scale = f16, channel> with activations of 'f8E4M3FN'}}
  %c = hquant.matmul %x, %w scales(%s : tensor<1x1x64xf16, #hquant.packed_layout<activation_bits = 8, weight_bits = 8, role = scales>>)
         activation_scales(%a : tensor<4xf32>) quant_type = <s8, scale = f16, channel> {activation_scale = "token"}
         : tensor<4x128xf8E4M3FN>, tensor<64x128xi8, #hquant.packed_layout<activation_bits = 8, weight_bits = 8, role = plain_weights>> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c15(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>, %b: tensor<128xf16>) {
  // expected-error @+1 {{expected a bias of 64 elements, got 128}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) bias(%b : tensor<128xf16>)
         quant_type = <u4, scale = f16, group = 128>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  return
}

// -----

//===----------------------------------------------------------------------===//
// dequantize
//===----------------------------------------------------------------------===//

func.func @dequantize_c1(%w: tensor<64x128xi3>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected weights of 'i4', got 'i3'}}
  %f = hquant.dequantize %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, channel>
         : tensor<64x128xi3> -> tensor<64x128xf16>
  return
}

// -----

func.func @dequantize_c2(%w: tensor<64x128xi4>, %s: tensor<64x1xf32>) {
  // expected-error @+1 {{expected scales of 'f16', got 'f32'}}
  %f = hquant.dequantize %w scales(%s : tensor<64x1xf32>) quant_type = <u4, scale = f16, channel>
         : tensor<64x128xi4> -> tensor<64x128xf16>
  return
}

// -----

func.func @dequantize_c3(%w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected scales of shape 1x1, got 64x1}}
  %f = hquant.dequantize %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, tensor>
         : tensor<64x128xi4> -> tensor<64x128xf16>
  return
}

// -----

func.func @dequantize_c4(%w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected zero points with zero_point = float, got none}}
  %f = hquant.dequantize %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, channel, zero_point = float>
         : tensor<64x128xi4> -> tensor<64x128xf16>
  return
}

// -----

func.func @dequantize_c5(%w: tensor<64x128xi4>, %s: tensor<64x1xf16>, %z: tensor<64x1xi4>) {
  // expected-error @+1 {{expected zero points of 'f16', got 'i4'}}
  %f = hquant.dequantize %w scales(%s : tensor<64x1xf16>) zero_points(%z : tensor<64x1xi4>)
         quant_type = <u4, scale = f16, channel, zero_point = float> : tensor<64x128xi4> -> tensor<64x128xf16>
  return
}

// -----

func.func @dequantize_c6(%w: tensor<64x128xi4>, %s: tensor<64x1xf16>, %z: tensor<32x1xi4>) {
  // expected-error @+1 {{expected zero points of shape 64x1, got 32x1}}
  %f = hquant.dequantize %w scales(%s : tensor<64x1xf16>) zero_points(%z : tensor<32x1xi4>)
         quant_type = <u4, scale = f16, channel, zero_point = int> : tensor<64x128xi4> -> tensor<64x128xf16>
  return
}

// -----

func.func @dequantize_c7(%w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected a result of shape 64x128, got 128x64}}
  %f = hquant.dequantize %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, channel>
         : tensor<64x128xi4> -> tensor<128x64xf16>
  return
}

// -----

func.func @dequantize_c8(%w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{expected a result of f16, bf16 or f32, got 'f64'}}
  %f = hquant.dequantize %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, channel>
         : tensor<64x128xi4> -> tensor<64x128xf64>
  return
}

// -----

//===----------------------------------------------------------------------===//
// pack
//===----------------------------------------------------------------------===//

func.func @pack_c1(%w: tensor<64x64xi4>) {
  // expected-error @+1 {{expected a result with a #hquant.packed_layout, got 'tensor<1x1x512xi32>'}}
  %p = hquant.pack %w : tensor<64x64xi4> -> tensor<1x1x512xi32>
  return
}

// -----

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
func.func @pack_c2(%w: tensor<64x64xi4, "sparse">) {
  // expected-error @+1 {{expected a source without encoding, got 'tensor<64x64xi4, "sparse">'}}
  %p = hquant.pack %w : tensor<64x64xi4, "sparse"> -> tensor<1x1x512xi32, #weights>
  return
}

// -----

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
func.func @pack_c3(%w: tensor<64x64xi8>) {
  // expected-error @+1 {{expected a source of 'i4' with weight_bits = 4, got 'i8'}}
  %p = hquant.pack %w : tensor<64x64xi8> -> tensor<1x1x512xi32, #weights>
  return
}

// -----

#zero_points = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = zero_points>
func.func @pack_c3_zero_points(%z: tensor<64x64xi8>) {
  // expected-error @+1 {{expected a source of 'i4' or a float type for role zero_points, got 'i8'}}
  %p = hquant.pack %z : tensor<64x64xi8> -> tensor<64x1x64xi8, #zero_points>
  return
}

// -----

#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>
func.func @pack_c4(%s: tensor<64x2xf16>) {
  // expected-error @+1 {{expected a result of 'f16', got 'bf16'}}
  %p = hquant.pack %s : tensor<64x2xf16> -> tensor<2x1x64xbf16, #scales>
  return
}

// -----

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
func.func @pack_c5(%w: tensor<65x64xi4>) {
  // expected-error @+1 {{expected a result of shape 2x1x512, got 1x1x512}}
  %p = hquant.pack %w : tensor<65x64xi4> -> tensor<1x1x512xi32, #weights>
  return
}

// -----

//===----------------------------------------------------------------------===//
// unpack
//===----------------------------------------------------------------------===//

func.func @unpack_c1(%p: tensor<1x1x512xi32>) {
  // expected-error @+1 {{expected a source with a #hquant.packed_layout, got 'tensor<1x1x512xi32>'}}
  %w = hquant.unpack %p : tensor<1x1x512xi32> -> tensor<64x64xi4>
  return
}

// -----

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
func.func @unpack_c2(%p: tensor<1x1x512xi32, #weights>) {
  // expected-error @+1 {{expected a result without encoding, got 'tensor<64x64xi4, "sparse">'}}
  %w = hquant.unpack %p : tensor<1x1x512xi32, #weights> -> tensor<64x64xi4, "sparse">
  return
}

// -----

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
func.func @unpack_c3(%p: tensor<1x1x512xi32, #weights>) {
  // expected-error @+1 {{expected a result of 'i4' with weight_bits = 4, got 'i3'}}
  %w = hquant.unpack %p : tensor<1x1x512xi32, #weights> -> tensor<64x64xi3>
  return
}

// -----

#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>
func.func @unpack_c4(%p: tensor<2x1x64xbf16, #scales>) {
  // expected-error @+1 {{expected a source of 'f16', got 'bf16'}}
  %s = hquant.unpack %p : tensor<2x1x64xbf16, #scales> -> tensor<64x2xf16>
  return
}

// -----

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
func.func @unpack_c5(%p: tensor<1x1x512xi32, #weights>) {
  // expected-error @+1 {{expected a source of shape 2x1x512, got 1x1x512}}
  %w = hquant.unpack %p : tensor<1x1x512xi32, #weights> -> tensor<65x64xi4>
  return
}

// -----

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
func.func @unpack_c6(%p: tensor<1x1x512xi32, #weights>) {
  // expected-error @+1 {{expected a result of static shape, got 'tensor<?x64xi4>'}}
  %w = hquant.unpack %p : tensor<1x1x512xi32, #weights> -> tensor<?x64xi4>
  return
}
