// RUN: humming-opt %s -split-input-file -verify-diagnostics

func.func @matmul_c24(%x: tensor<4x256xf8E4M3FN>, %w: tensor<256x256xi8>, %s: tensor<256x2xf32>, %a: tensor<4xf32>) {
  // expected-error @+1 {{expected scale_rows from 1 to 2147483647, with granularity group, got 0 with #hquant.granularity<group = 128>}}
  %c = hquant.matmul %x, %w scales(%s : tensor<256x2xf32>) activation_scales(%a : tensor<4xf32>) quant_type = <e4m3, scale = f32, group = 128>
         {activation_scale = "token", scale_rows = 0} : tensor<4x256xf8E4M3FN>, tensor<256x256xi8> -> tensor<4x256xbf16>
  return
}

// -----

func.func @matmul_c24_channel(%x: tensor<4x256xf8E4M3FN>, %w: tensor<256x256xi8>, %s: tensor<256x1xf32>, %a: tensor<4xf32>) {
  // expected-error @+1 {{expected scale_rows from 1 to 2147483647, with granularity group, got 64 with #hquant.granularity<channel>}}
  %c = hquant.matmul %x, %w scales(%s : tensor<256x1xf32>) activation_scales(%a : tensor<4xf32>) quant_type = <e4m3, scale = f32, channel>
         {activation_scale = "token", scale_rows = 64} : tensor<4x256xf8E4M3FN>, tensor<256x256xi8> -> tensor<4x256xbf16>
  return
}

// -----

func.func @fragment_c24_rows(%t: memref<4096xi8, #gpu.address_space<workgroup>>, %i: i32) {
  // expected-error @+1 {{expected tile_tokens to be a multiple of 16, at least the 80 tokens that are loaded, got 64}}
  %a = hquant.load_token_scales %t token %i group %i {tile_tokens = 64, token_rows} : memref<4096xi8, #gpu.address_space<workgroup>> -> vector<2x2xi32>
  return
}

// -----

func.func @fragment_c28(%t: vector<1x2xi32>, %s: vector<1x2xi32>) {
  // expected-error @+1 {{expected token scales of f32 or e8m0, got bf16}}
  %a = hquant.multiply_scales %t, %s group 0 {token_scale = #hquant.format<bf16>, scale = #hquant.format<f32>} : vector<1x2xi32>, vector<1x2xi32> -> vector<1x2xi32>
  return
}

// -----

func.func @fragment_c28_words(%t: vector<1x2xi32>, %s: vector<1x2xi32>) {
  // expected-error @+1 {{expected token scales of type 'vector<1x1xi32>', got 'vector<1x2xi32>'}}
  %a = hquant.multiply_scales %t, %s group 0 {token_scale = #hquant.format<e8m0>, scale = #hquant.format<f32>} : vector<1x2xi32>, vector<1x2xi32> -> vector<1x2xi32>
  return
}

// -----

func.func @fragment_c28_result(%t: vector<2x2xi32>, %s: vector<2x2xi32>) {
  // expected-error @+1 {{expected a result of type 'vector<2x2xi32>', got 'vector<1x2xi32>'}}
  %a = hquant.multiply_scales %t, %s group 0 {token_scale = #hquant.format<f32>, scale = #hquant.format<f32>} : vector<2x2xi32>, vector<2x2xi32> -> vector<1x2xi32>
  return
}

// -----

func.func @fragment_c19_multiply(%t: vector<1x2xi32>, %s: vector<1x2xi32>) {
  // expected-error @+1 {{expected scales of type vector<UxGxi32> and a group from 0 to G - 1, got 'vector<1x2xi32>' and 3}}
  %a = hquant.multiply_scales %t, %s group 1 {token_scale = #hquant.format<f32>, scale = #hquant.format<f32>} : vector<1x2xi32>, vector<1x2xi32> -> vector<1x2xi32>
  return
}

// -----

func.func @fragment_c20_multiply(%t: vector<1x2xi32>, %s: vector<1x2xi32>) {
  // expected-error @+1 {{expected scales of f32, f16, bf16, e4m3, e5m2 or e8m0, got e2m1}}
  %a = hquant.multiply_scales %t, %s group 0 {token_scale = #hquant.format<f32>, scale = #hquant.format<e2m1>} : vector<1x2xi32>, vector<1x2xi32> -> vector<1x2xi32>
  return
}

// -----

func.func @epilogue_c14(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x4x4xf32>) {
  // expected-error @+1 {{expected whole strips of 64 features, 8 tiles each, with token_rows, got 4 tiles}}
  %a = hquant.scale_rows %c, %p[%i] bound %i {format = #hquant.format<bf16>, token_rows} : vector<1x4x4xf32>, !llvm.ptr<1>
  return
}

// -----

func.func @epilogue_c15(%p: !llvm.ptr<1>, %i: i32, %c: vector<1x2x4xf32>, %x: memref<16384xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected direct with token_rows}}
  hquant.store_tile %c to %p[%i, %i] bounds[%i, %i] stride %i warp[%i, %i] through %x
      {format = #hquant.format<f16>, tile_rows = 64, tile_columns = 16, granule = 16, lanes = 128, threads = 128, token_rows}
      : vector<1x2x4xf32>, !llvm.ptr<1>, memref<16384xi8, #gpu.address_space<workgroup>>
  return
}
