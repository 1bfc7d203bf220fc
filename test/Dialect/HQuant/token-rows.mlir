// Ops of rows = tokens: units of 16 tokens, tiles of 8 features.
//
// RUN: humming-opt %s | humming-opt | FileCheck %s
// RUN: humming-opt %s --mlir-print-op-generic | humming-opt | FileCheck %s

!tile = memref<3x16384xi8, #gpu.address_space<workgroup>>
!scales = memref<3x1024xi8, #gpu.address_space<workgroup>>
!scratch = memref<128xi8, #gpu.address_space<workgroup>>
!sums = vector<2x8x4xf32>

// CHECK-LABEL: func @loop
func.func @loop(%x: !tile, %w: !tile, %s: !scales, %i: i32, %c: !sums) -> !sums {
  // CHECK: %[[W:.*]] = hquant.load_scales {{.*}} {element_bits = 32 : i64, strips = 1 : i64, uniform, unit_stride = 4 : i64} : {{.*}} -> vector<2x2xi32>
  %ws = hquant.load_scales %s[%i] unit %i group %i {strips = 1, element_bits = 32, unit_stride = 4, uniform} : !scales -> vector<2x2xi32>
  // CHECK: %[[T:.*]] = hquant.load_token_scales {{.*}} {tile_tokens = 128 : i64, token_rows} : {{.*}} -> vector<2x2xi32>
  %ts = hquant.load_token_scales %s[%i] token %i group %i {tile_tokens = 128, token_rows} : !scales -> vector<2x2xi32>
  // CHECK: hquant.warpgroup_mma_tiles %{{.*}}, %{{.*}}[%{{.*}}] unit %{{.*}} column %{{.*}} slab {{.*}} {a_rows = 128 : i64, b_rows = 64 : i64, kind = #hquant.warpgroup_mma<64, e4m3>, zero}
  %p = hquant.warpgroup_mma_tiles %x, %w[%i] unit %i column %i slab %i steps 0 to 2, %c
      {kind = #hquant.warpgroup_mma<64, e4m3>, a_rows = 128, b_rows = 64, zero} : !tile, !tile, !sums
  %q = hquant.warpgroup_wait %p pending 0 : !sums
  // CHECK: %[[R:.*]] = hquant.multiply_scales %[[T]], %[[W]] group 0 {exponent = 3 : i64, scale = #hquant.format<f32>, token_scale = #hquant.format<f32>} : vector<2x2xi32>, vector<2x2xi32> -> vector<2x2xi32>
  %r = hquant.multiply_scales %ts, %ws group 0 {token_scale = #hquant.format<f32>, scale = #hquant.format<f32>, exponent = 3} : vector<2x2xi32>, vector<2x2xi32> -> vector<2x2xi32>
  // CHECK: hquant.scale_accumulate %{{.*}}, %[[R]], %{{.*}} group 0
  %d = hquant.scale_accumulate %q, %r, %c group 0 {scale = #hquant.format<f32>} : !sums, vector<2x2xi32>, !sums
  return %d : !sums
}

// CHECK-LABEL: func @epilogue
func.func @epilogue(%p: !llvm.ptr<1>, %i: i32, %c: !sums, %x: !scratch) {
  // CHECK: hquant.scale_rows {{.*}} {format = #hquant.format<bf16>, token_rows, unit_stride = 4 : i64}
  %a = hquant.scale_rows %c, %p[%i] bound %i {format = #hquant.format<bf16>, unit_stride = 4, token_rows} : !sums, !llvm.ptr<1>
  // CHECK: hquant.scale_output {{.*}} per "token" {token_rows, unit_stride = 4 : i64}
  %b = hquant.scale_output %a, %p[%i] bound %i per "token" {unit_stride = 4, token_rows} : !sums, !llvm.ptr<1>
  // CHECK: hquant.subtract_offsets {{.*}} per "token" {token_rows, unit_stride = 4 : i64}
  %d = hquant.subtract_offsets %b, %p[%i] bound %i times %p[%i] bound %i per "token" {unit_stride = 4, token_rows} : !sums, !llvm.ptr<1>, !llvm.ptr<1>
  // CHECK: hquant.add_rows {{.*}} {format = #hquant.format<bf16>, token_rows, unit_stride = 4 : i64}
  %e = hquant.add_rows %d, %p[%i] bound %i {format = #hquant.format<bf16>, unit_stride = 4, token_rows} : !sums, !llvm.ptr<1>
  // CHECK: hquant.store_tile {{.*}}direct, {{.*}}token_rows, unit_stride = 4 : i64}
  hquant.store_tile %e to %p[%i, %i] bounds[%i, %i] stride %i warp[%i, %i] through %x
      {format = #hquant.format<bf16>, tile_rows = 128, tile_columns = 64, granule = 16, lanes = 128, threads = 128, unit_stride = 4, direct, token_rows}
      : !sums, !llvm.ptr<1>, !scratch
  return
}

// CHECK-LABEL: func @config
// CHECK-SAME: #hquant.lowering_config<mma = wgmma, {{.*}}split_k = 1, rows = tokens>
func.func @config() attributes {test = #hquant.lowering_config<mma = wgmma, block = [128, 128, 128], warp = [128, 16], rows = tokens>} {
  return
}

// CHECK-LABEL: func @promise
func.func @promise(%x: tensor<4x256xf8E4M3FN>, %w: tensor<256x256xi8>, %s: tensor<256x2xf32>, %a: tensor<4xf32>) -> tensor<4x256xbf16> {
  // CHECK: {activation_scale = "token", scale_rows = 128 : i64}
  %c = hquant.matmul %x, %w scales(%s : tensor<256x2xf32>) activation_scales(%a : tensor<4xf32>) quant_type = <e4m3, scale = f32, group = 128>
         {activation_scale = "token", scale_rows = 128} : tensor<4x256xf8E4M3FN>, tensor<256x256xi8> -> tensor<4x256xbf16>
  return %c : tensor<4x256xbf16>
}
