// RUN: humming-opt %s --split-input-file --verify-diagnostics

// Activation scales of groups, zero points, sums in half precision. The numbers are
// those of docs/HQuant.md.

func.func @matmul_c20(%x: tensor<4x256xi8>, %w: tensor<64x256xi4>, %s: tensor<64x1xf32>, %a: tensor<2x16xf32>, %z: tensor<4xi32>, %r: tensor<64xf32>, %z2: tensor<3xi32>, %r2: tensor<63xf32>) {
  // expected-error @+1 {{expected activation_group with activation_scale = token and a power of two from 16 to 32768, got 96 with token}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf32>) activation_scales(%a : tensor<2x16xf32>) quant_type = <u4, scale = f32, channel>
         {activation_scale = "token", activation_group = 96 : i64} : tensor<4x256xi8>, tensor<64x256xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c20_tensor(%x: tensor<4x256xi8>, %w: tensor<64x256xi4>, %s: tensor<64x1xf32>, %a: tensor<2x16xf32>, %z: tensor<4xi32>, %r: tensor<64xf32>, %z2: tensor<3xi32>, %r2: tensor<63xf32>) {
  // expected-error @+1 {{expected activation_group with activation_scale = token and a power of two from 16 to 32768, got 128 with tensor}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf32>) activation_scales(%a : tensor<2x16xf32>) quant_type = <u4, scale = f32, channel>
         {activation_scale = "tensor", activation_group = 128 : i64} : tensor<4x256xi8>, tensor<64x256xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c21(%x: tensor<4x256xi8>, %w: tensor<64x256xi4>, %s: tensor<64x1xf32>, %a: tensor<4xf16>, %z: tensor<4xi32>, %r: tensor<64xf32>, %z2: tensor<3xi32>, %r2: tensor<63xf32>) {
  // expected-error @+1 {{expected activation scales of f32, got 'f16'}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf32>) activation_scales(%a : tensor<4xf16>) quant_type = <u4, scale = f32, channel>
         {activation_scale = "token"} : tensor<4x256xi8>, tensor<64x256xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c21_shape(%x: tensor<4x256xi8>, %w: tensor<64x256xi4>, %s: tensor<64x1xf32>, %a: tensor<4x2xf32>, %z: tensor<4xi32>, %r: tensor<64xf32>, %z2: tensor<3xi32>, %r2: tensor<63xf32>) {
  // expected-error @+1 {{expected activation scales of shape 2x16, got 4x2}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf32>) activation_scales(%a : tensor<4x2xf32>) quant_type = <u4, scale = f32, channel>
         {activation_scale = "token", activation_group = 128 : i64} : tensor<4x256xi8>, tensor<64x256xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c22(%x: tensor<4x256xi8>, %w: tensor<64x256xi4>, %s: tensor<64x1xf32>, %a: tensor<4xf32>, %z: tensor<4xi32>, %r: tensor<64xf32>, %z2: tensor<3xi32>, %r2: tensor<63xf32>) {
  // expected-error @+1 {{expected activation_zero_points and weight_sums together, with activations of i8 and no activation_group, got zero points and no sums}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf32>) activation_scales(%a : tensor<4xf32>) activation_zero_points(%z : tensor<4xi32>) quant_type = <u4, scale = f32, channel>
         {activation_scale = "token"} : tensor<4x256xi8>, tensor<64x256xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c22_group(%x: tensor<4x256xi8>, %w: tensor<64x256xi4>, %s: tensor<64x1xf32>, %a: tensor<2x16xf32>, %z: tensor<4xi32>, %r: tensor<64xf32>, %z2: tensor<3xi32>, %r2: tensor<63xf32>) {
  // expected-error @+1 {{expected activation_zero_points and weight_sums together, with activations of i8 and no activation_group, got zero points and sums}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf32>) activation_scales(%a : tensor<2x16xf32>) activation_zero_points(%z : tensor<4xi32>) weight_sums(%r : tensor<64xf32>) quant_type = <u4, scale = f32, channel>
         {activation_scale = "token", activation_group = 128 : i64} : tensor<4x256xi8>, tensor<64x256xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c22_tokens(%x: tensor<4x256xi8>, %w: tensor<64x256xi4>, %s: tensor<64x1xf32>, %a: tensor<4xf32>, %z: tensor<4xi32>, %r: tensor<64xf32>, %z2: tensor<3xi32>, %r2: tensor<63xf32>) {
  // expected-error @+1 {{expected 4 activation zero points, got 3}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf32>) activation_scales(%a : tensor<4xf32>) activation_zero_points(%z2 : tensor<3xi32>) weight_sums(%r : tensor<64xf32>) quant_type = <u4, scale = f32, channel>
         {activation_scale = "token"} : tensor<4x256xi8>, tensor<64x256xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c22_features(%x: tensor<4x256xi8>, %w: tensor<64x256xi4>, %s: tensor<64x1xf32>, %a: tensor<4xf32>, %z: tensor<4xi32>, %r: tensor<64xf32>, %z2: tensor<3xi32>, %r2: tensor<63xf32>) {
  // expected-error @+1 {{expected 64 weight sums, got 63}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf32>) activation_scales(%a : tensor<4xf32>) activation_zero_points(%z : tensor<4xi32>) weight_sums(%r2 : tensor<63xf32>) quant_type = <u4, scale = f32, channel>
         {activation_scale = "token"} : tensor<4x256xi8>, tensor<64x256xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @matmul_c23(%x: tensor<4x256xi8>, %w: tensor<64x256xi4>, %s: tensor<64x1xf32>, %a: tensor<4xf32>, %z: tensor<4xi32>, %r: tensor<64xf32>, %z2: tensor<3xi32>, %r2: tensor<63xf32>) {
  // expected-error @+1 {{expected accumulate of f32 or f16, got bf16}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf32>) activation_scales(%a : tensor<4xf32>) quant_type = <u4, scale = f32, channel>
         {activation_scale = "token", accumulate = "bf16"} : tensor<4x256xi8>, tensor<64x256xi4> -> tensor<4x64xf16>
  return
}

// -----

func.func @fragment_c23(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected scales of type vector<Tx2xi32> (f32) or vector<Tx1xi32> (e8m0), got}}
  %a = hquant.load_token_scales %t token %i group %i {tile_tokens = 16} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<2x3xi32>
  return
}

// -----

func.func @fragment_c24(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected tile_tokens to be a multiple of 16, at least the 16 tokens that are loaded, got 8}}
  %a = hquant.load_token_scales %t token %i group %i {tile_tokens = 8} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<2x2xi32>
  return
}

// -----

func.func @fragment_c24_holds(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected tile_tokens from 1 to the 1024 of 4 bytes that the tile holds, got 2048}}
  %a = hquant.load_token_scales %t token %i group %i {tile_tokens = 2048} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<2x2xi32>
  return
}

// -----

func.func @fragment_c25(%p: vector<1x2x4xf32>) {
  // expected-error @+1 {{expected a partial sum of f32, i32 or pairs of f16}}
  %a = hquant.accumulate %p : vector<1x2x4xf32> -> vector<1x1x4xf32>
  return
}

// -----

func.func @fragment_c25_into(%p: vector<1x2x2xi32>, %c: vector<1x1x4xf32>) {
  // expected-error @+1 {{expected accumulators of the result}}
  %a = hquant.accumulate %p into %c : vector<1x1x4xf32> : vector<1x2x2xi32> -> vector<1x2x4xf32>
  return
}

// -----

func.func @fragment_c26(%p: vector<1x2x4xi32>, %s: vector<1x2xi32>) {
  // expected-error @+1 {{expected scales of 2 tiles of tokens, in 1 or 2 words, got}}
  %a = hquant.accumulate %p scales(%s : vector<1x2xi32>) : vector<1x2x4xi32> -> vector<1x2x4xf32>
  return
}

// -----

func.func @epilogue_c10(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>) {
  // expected-error @+1 {{expected per tensor or token, got feature}}
  %d = hquant.subtract_offsets %c, %p[%i] bound %i times %p[%i] bound %i per "feature" : vector<1x2x4xf32>, !llvm.ptr<1>, !llvm.ptr<1>
  return
}

// -----

func.func @mixed_operands(%a: vector<1x4x4xi32>, %b: vector<1x4x2xi32>, %c: vector<1x1x4xf32>) {
  // expected-error @+1 {{expected activations of the weights}}
  %d = hquant.mma %a, %b, %c steps 0 to 4 {kind = #hquant.sync_mma<m16n8k16, f16, activation = bf16>} : vector<1x4x4xi32>, vector<1x4x2xi32>, vector<1x1x4xf32>
  return
}

// -----

func.func @half_sums_of_bf16(%a: vector<1x4x4xi32>, %b: vector<1x4x2xi32>, %c: vector<1x1x2xi32>) {
  // expected-error @+1 {{expected accumulators of f32, or of f16 with f16, e4m3 or e5m2 operands, got f16 with bf16}}
  %d = hquant.mma %a, %b, %c steps 0 to 4 {kind = #hquant.sync_mma<m16n8k16, bf16, accumulator = f16>} : vector<1x4x4xi32>, vector<1x4x2xi32>, vector<1x1x2xi32>
  return
}
