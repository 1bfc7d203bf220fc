// What the verifiers of packing and gathering refuse, by number (docs/HQuant.md).
//
// RUN: humming-opt %s --split-input-file --verify-diagnostics

func.func @gather_c1(%x: tensor<4x64xf32>, %order: tensor<64xi32>) {
  // expected-error @+1 {{expected activations of f16, bf16, f8E4M3FN, f8E5M2 or i8, got 'f32'}}
  %g = hquant.gather %x, %order : tensor<4x64xf32>, tensor<64xi32> -> tensor<4x64xf32>
  return
}

// -----

func.func @gather_c2(%x: tensor<4x64xf16>, %order: tensor<64xi32>) {
  // expected-error @+1 {{expected a result of the activations' 'f16', got 'bf16'}}
  %g = hquant.gather %x, %order : tensor<4x64xf16>, tensor<64xi32> -> tensor<4x64xbf16>
  return
}

// -----

func.func @gather_c3(%x: tensor<4x64xf16>, %order: tensor<64xi32>) {
  // expected-error @+1 {{expected a result of 4 rows as the activations have, got 5}}
  %g = hquant.gather %x, %order : tensor<4x64xf16>, tensor<64xi32> -> tensor<5x64xf16>
  return
}

// -----

func.func @gather_c4(%x: tensor<4x64xf16>, %order: tensor<64xi32>) {
  // expected-error @+1 {{expected an index for each of the 96 columns of the result, got 64}}
  %g = hquant.gather %x, %order : tensor<4x64xf16>, tensor<64xi32> -> tensor<4x96xf16>
  return
}

// -----

func.func @layout_c1(%p: !llvm.ptr<1>, %i: i32, %u: i64) {
  // expected-error @+1 {{expected weights of 1 to 4 bits for 4-bit activations, got 8}}
  hquant.pack_unit %p[%i, %i] bounds [%i, %i] stride %i to %p unit %u
      {activation_bits = 4, weight_bits = 8, granule = 1} : !llvm.ptr<1> to !llvm.ptr<1>
  return
}

// -----

func.func @layout_c2(%p: !llvm.ptr<1>, %i: i32, %u: i64) {
  // expected-error @+1 {{expected granule 1, 2 or 4, got 8}}
  hquant.pack_unit %p[%i, %i] bounds [%i, %i] stride %i to %p unit %u
      {activation_bits = 16, weight_bits = 4, granule = 8} : !llvm.ptr<1> to !llvm.ptr<1>
  return
}

// -----

func.func @layout_c3(%p: !llvm.ptr<1>, %i: i32) {
  // expected-error @+1 {{expected element_bits 8 or 16, got 4}}
  hquant.gather_row %p by %p to %p[%i, %i] bounds [%i, %i] source_bound %i strides [%i, %i]
      {element_bits = 4, granule = 16} : !llvm.ptr<1>, !llvm.ptr<1>, !llvm.ptr<1>
  return
}

// -----

func.func @layout_c4(%p: !llvm.ptr<1>, %i: i32) {
  // expected-error @+1 {{expected granule a power of two from 2 to 16, got 1}}
  hquant.gather_row %p by %p to %p[%i, %i] bounds [%i, %i] source_bound %i strides [%i, %i]
      {element_bits = 16, granule = 1} : !llvm.ptr<1>, !llvm.ptr<1>, !llvm.ptr<1>
  return
}
