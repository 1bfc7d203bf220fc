// RUN: humming-opt %s --split-input-file --verify-diagnostics

// The numbers are those of docs/HQuant.md.

func.func @quantize_c1(%x: tensor<4x256xbf16>, %f: tensor<4x256xf32>, %s: tensor<1xf32>, %s2: tensor<2xf32>, %z: tensor<1xi32>) {
  // expected-error @+1 {{expected activations of f16 or bf16, got 'f32'}}
  %q, %a = hquant.quantize %f {scale = "token"} : tensor<4x256xf32> -> tensor<4x256xf8E4M3FN> scales(tensor<4xf32>)
  return
}

// -----

func.func @quantize_c2(%x: tensor<4x256xbf16>, %f: tensor<4x256xf32>, %s: tensor<1xf32>, %s2: tensor<2xf32>, %z: tensor<1xi32>) {
  // expected-error @+1 {{expected codes of f8E4M3FN, f8E5M2, i8 or i4, got 'f8E8M0FNU'}}
  %q, %a = hquant.quantize %x {scale = "token"} : tensor<4x256xbf16> -> tensor<4x256xf8E8M0FNU> scales(tensor<4xf32>)
  return
}

// -----

func.func @quantize_c3(%x: tensor<4x256xbf16>, %f: tensor<4x256xf32>, %s: tensor<1xf32>, %s2: tensor<2xf32>, %z: tensor<1xi32>) {
  // expected-error @+1 {{gate: expected none, silu, gelu or gelu_tanh, got 'relu'}}
  %q, %a = hquant.quantize %x {scale = "token", gate = "relu"} : tensor<4x256xbf16> -> tensor<4x128xf8E4M3FN> scales(tensor<4xf32>)
  return
}

// -----

func.func @quantize_c4(%x: tensor<4x256xbf16>, %f: tensor<4x256xf32>, %s: tensor<1xf32>, %s2: tensor<2xf32>, %z: tensor<1xi32>) {
  // expected-error @+1 {{expected activations of shape 4x512, got 4x256}}
  %q, %a = hquant.quantize %x {scale = "token", gate = "silu"} : tensor<4x256xbf16> -> tensor<4x256xf8E4M3FN> scales(tensor<4xf32>)
  return
}

// -----

func.func @quantize_c5(%x: tensor<4x256xbf16>, %f: tensor<4x256xf32>, %s: tensor<1xf32>, %s2: tensor<2xf32>, %z: tensor<1xi32>) {
  // expected-error @+1 {{expected scale of tensor or token, got row}}
  %q, %a = hquant.quantize %x {scale = "row"} : tensor<4x256xbf16> -> tensor<4x256xf8E4M3FN> scales(tensor<4xf32>)
  return
}

// -----

func.func @quantize_c5_static(%x: tensor<4x256xbf16>, %f: tensor<4x256xf32>, %s: tensor<1xf32>, %s2: tensor<2xf32>, %z: tensor<1xi32>) {
  // expected-error @+1 {{expected static_scales and no result of scales with scale = tensor}}
  %q, %a = hquant.quantize %x {scale = "tensor"} : tensor<4x256xbf16> -> tensor<4x256xf8E4M3FN> scales(tensor<4xf32>)
  return
}

// -----

func.func @quantize_c6(%x: tensor<4x256xbf16>, %f: tensor<4x256xf32>, %s: tensor<1xf32>, %s2: tensor<2xf32>, %z: tensor<1xi32>) {
  // expected-error @+1 {{expected group with scale = token and a power of two from 16 to 32768, got 24 with token}}
  %q, %a = hquant.quantize %x {scale = "token", group = 24 : i64} : tensor<4x256xbf16> -> tensor<4x256xf8E4M3FN> scales(tensor<11x16xf32>)
  return
}

// -----

func.func @quantize_c7(%x: tensor<4x256xbf16>, %f: tensor<4x256xf32>, %s: tensor<1xf32>, %s2: tensor<2xf32>, %z: tensor<1xi32>) {
  // expected-error @+1 {{expected scales of f32 or f8E8M0FNU and shape 2x16, got}}
  %q, %a = hquant.quantize %x {scale = "token", group = 128 : i64} : tensor<4x256xbf16> -> tensor<4x256xf8E4M3FN> scales(tensor<2x4xf32>)
  return
}

// -----

func.func @quantize_c7_e8m0(%x: tensor<4x256xbf16>, %f: tensor<4x256xf32>, %s: tensor<1xf32>, %s2: tensor<2xf32>, %z: tensor<1xi32>) {
  // expected-error @+1 {{expected scales of f32 and shape 4, got}}
  %q, %a = hquant.quantize %x {scale = "token"} : tensor<4x256xbf16> -> tensor<4x256xf8E4M3FN> scales(tensor<4xf8E8M0FNU>)
  return
}

// -----

func.func @quantize_c8(%x: tensor<4x256xbf16>, %f: tensor<4x256xf32>, %s: tensor<1xf32>, %s2: tensor<2xf32>, %z: tensor<1xi32>) {
  // expected-error @+1 {{expected zero points with codes of i8 without group, an operand if and only if scale = tensor, got codes of 'f8E4M3FN' and scale = token}}
  %q, %a, %b = hquant.quantize %x {scale = "token"} : tensor<4x256xbf16> -> tensor<4x256xf8E4M3FN> scales(tensor<4xf32>) zero_points(tensor<4xi32>)
  return
}

// -----

func.func @quantize_c9(%x: tensor<4x256xbf16>, %f: tensor<4x256xf32>, %s: tensor<1xf32>, %s2: tensor<2xf32>, %z: tensor<1xi32>) {
  // expected-error @+1 {{expected 1 static scales, got 2}}
  %q = hquant.quantize %x static_scales(%s2 : tensor<2xf32>) {scale = "tensor"} : tensor<4x256xbf16> -> tensor<4x256xf8E4M3FN>
  return
}

// -----

func.func @quantize_c9_zero_points(%x: tensor<4x256xbf16>, %f: tensor<4x256xf32>, %s: tensor<1xf32>, %s2: tensor<2xf32>, %z: tensor<1xi32>) {
  // expected-error @+1 {{expected 4 zero points, got 3}}
  %q, %a, %b = hquant.quantize %x {scale = "token"} : tensor<4x256xbf16> -> tensor<4x256xi8> scales(tensor<4xf32>) zero_points(tensor<3xi32>)
  return
}

// -----

func.func @segment_c1(%p: !llvm.ptr<1>, %i: i32, %g: i64, %b: i1, %f: f32, %v: vector<2x8xf32>, %v4: vector<2x4xf32>, %m: memref<256xi8, #gpu.address_space<workgroup>>, %m2: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected lanes to be a power of two from 2 to 1024, got 48}}
  %l = hquant.load_segment %p[%i, %i] bounds[%i, %i] stride %i {format = #hquant.format<bf16>, lanes = 48, granule = 16} : !llvm.ptr<1> -> vector<2x8xf32>
  return
}

// -----

func.func @segment_c2(%p: !llvm.ptr<1>, %i: i32, %g: i64, %b: i1, %f: f32, %v: vector<2x8xf32>, %v4: vector<2x4xf32>, %m: memref<256xi8, #gpu.address_space<workgroup>>, %m2: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected values of type vector<Cx8xf32>, got}}
  %l = hquant.load_segment %p[%i, %i] bounds[%i, %i] stride %i {format = #hquant.format<bf16>, lanes = 32, granule = 16} : !llvm.ptr<1> -> vector<2x4xf32>
  return
}

// -----

func.func @segment_c3(%p: !llvm.ptr<1>, %i: i32, %g: i64, %b: i1, %f: f32, %v: vector<2x8xf32>, %v4: vector<2x4xf32>, %m: memref<256xi8, #gpu.address_space<workgroup>>, %m2: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected granule to be a power of two from 2 to 16, got 1}}
  %l = hquant.load_segment %p[%i, %i] bounds[%i, %i] stride %i {format = #hquant.format<bf16>, lanes = 32, granule = 1} : !llvm.ptr<1> -> vector<2x8xf32>
  return
}

// -----

func.func @segment_c4(%p: !llvm.ptr<1>, %i: i32, %g: i64, %b: i1, %f: f32, %v: vector<2x8xf32>, %v4: vector<2x4xf32>, %m: memref<256xi8, #gpu.address_space<workgroup>>, %m2: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected codes of e4m3, e5m2, s8 or s4, got u8}}
  %a, %c = hquant.segment_scale high %i through %m {codes = #hquant.format<u8>, format = #hquant.format<f32>, lanes = 32} : memref<256xi8, #gpu.address_space<workgroup>> -> i32, f32
  return
}

// -----

func.func @segment_c5(%p: !llvm.ptr<1>, %i: i32, %g: i64, %b: i1, %f: f32, %v: vector<2x8xf32>, %v4: vector<2x4xf32>, %m: memref<256xi8, #gpu.address_space<workgroup>>, %m2: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected zero point in the results as in the operands}}
  %a, %c = hquant.segment_scale high %i low %i through %m {codes = #hquant.format<s8>, format = #hquant.format<f32>, lanes = 32} : memref<256xi8, #gpu.address_space<workgroup>> -> i32, f32
  return
}

// -----

func.func @segment_c5_range(%p: !llvm.ptr<1>, %i: i32, %g: i64, %b: i1, %f: f32, %v: vector<2x8xf32>, %v4: vector<2x4xf32>, %m: memref<256xi8, #gpu.address_space<workgroup>>, %m2: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected no low end in the results as in the operands}}
  %a, %c = hquant.segment_range %v high %i : vector<2x8xf32> -> i32, i32
  return
}

// -----

func.func @segment_c6(%p: !llvm.ptr<1>, %i: i32, %g: i64, %b: i1, %f: f32, %v: vector<2x8xf32>, %v4: vector<2x4xf32>, %m: memref<256xi8, #gpu.address_space<workgroup>>, %m2: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected format f16 or bf16, got f32}}
  %l = hquant.load_segment %p[%i, %i] bounds[%i, %i] stride %i {format = #hquant.format<f32>, lanes = 32, granule = 16} : !llvm.ptr<1> -> vector<2x8xf32>
  return
}

// -----

func.func @segment_c7(%p: !llvm.ptr<1>, %i: i32, %g: i64, %b: i1, %f: f32, %v: vector<2x8xf32>, %v4: vector<2x4xf32>, %m: memref<256xi8, #gpu.address_space<workgroup>>, %m2: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected a gate_stride with a gate alone, got gate silu and none}}
  %l = hquant.load_segment %p[%i, %i] bounds[%i, %i] stride %i {format = #hquant.format<bf16>, lanes = 32, granule = 16, gate = "silu"} : !llvm.ptr<1> -> vector<2x8xf32>
  return
}

// -----

func.func @segment_c7_kind(%p: !llvm.ptr<1>, %i: i32, %g: i64, %b: i1, %f: f32, %v: vector<2x8xf32>, %v4: vector<2x4xf32>, %m: memref<256xi8, #gpu.address_space<workgroup>>, %m2: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{gate: expected none, silu, gelu or gelu_tanh, got 'relu'}}
  %l = hquant.load_segment %p[%i, %i] bounds[%i, %i] stride %i gate_stride %i {format = #hquant.format<bf16>, lanes = 32, granule = 16, gate = "relu"} : !llvm.ptr<1> -> vector<2x8xf32>
  return
}

// -----

func.func @segment_c8(%p: !llvm.ptr<1>, %i: i32, %g: i64, %b: i1, %f: f32, %v: vector<2x8xf32>, %v4: vector<2x4xf32>, %m: memref<256xi8, #gpu.address_space<workgroup>>, %m2: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected scales of f32, or of e8m0 without zero points, got bf16}}
  %a, %c = hquant.segment_scale high %i through %m {codes = #hquant.format<e4m3>, format = #hquant.format<bf16>, lanes = 32} : memref<256xi8, #gpu.address_space<workgroup>> -> i32, f32
  return
}

// -----

func.func @segment_c9(%p: !llvm.ptr<1>, %i: i32, %g: i64, %b: i1, %f: f32, %v: vector<2x8xf32>, %v4: vector<2x4xf32>, %m: memref<256xi8, #gpu.address_space<workgroup>>, %m2: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected scratch of rank 1 and at least 256 bytes, got}}
  %a, %c = hquant.segment_scale high %i through %m2 {codes = #hquant.format<e4m3>, format = #hquant.format<f32>, lanes = 32} : memref<128xi8, #gpu.address_space<workgroup>> -> i32, f32
  return
}

// -----

func.func @segment_c10(%p: !llvm.ptr<1>, %i: i32, %g: i64, %b: i1, %f: f32, %v: vector<2x8xf32>, %v4: vector<2x4xf32>, %m: memref<256xi8, #gpu.address_space<workgroup>>, %m2: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected a zero point with s8 codes, got s4}}
  hquant.store_segment %v times %f plus %i to %p[%i, %i] bounds[%i, %i] stride %i {format = #hquant.format<s4>, lanes = 32, granule = 4} : vector<2x8xf32>, !llvm.ptr<1>
  return
}

// -----

func.func @segment_c11(%p: !llvm.ptr<1>, %i: i32, %g: i64, %b: i1, %f: f32, %v: vector<2x8xf32>, %v4: vector<2x4xf32>, %m: memref<256xi8, #gpu.address_space<workgroup>>, %m2: memref<128xi8, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expected element_bits 8 or 32, got 16}}
  hquant.store_scale %i to %p[%g] if %b {lanes = 32, element_bits = 16} : !llvm.ptr<1>
  return
}

// -----

// expected-error @+1 {{expected one of lanes, groups, rows, chunks, got 'warps'}}
#config = #hquant.quantize_config<warps = 4>

// -----

// expected-error @+1 {{config key 'lanes': expected an integer from 1 to 1024, got '2048'}}
#config = #hquant.quantize_config<lanes = 2048>
