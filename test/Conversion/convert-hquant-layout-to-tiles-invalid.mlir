// RUN: humming-opt %s --convert-hquant-layout-to-tiles --split-input-file --verify-diagnostics

func.func @two(%x: tensor<4x64xf16>, %order: tensor<64xi32>) -> tensor<4x64xf16> {
  // expected-note @+1 {{the first one is here}}
  %g = hquant.gather %x, %order : tensor<4x64xf16>, tensor<64xi32> -> tensor<4x64xf16>
  // expected-error @+1 {{expected one hquant.pack or hquant.gather a function, got a second one; outline it}}
  %h = hquant.gather %g, %order : tensor<4x64xf16>, tensor<64xi32> -> tensor<4x64xf16>
  return %h : tensor<4x64xf16>
}

// -----

#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>

func.func @scales(%s: tensor<64x2xf16>) -> tensor<2x1x64xf16, #scales> {
  // expected-error @+1 {{expected role weights in a function that becomes a kernel, got scales; the host packs scales and zero points}}
  %p = hquant.pack %s : tensor<64x2xf16> -> tensor<2x1x64xf16, #scales>
  return %p : tensor<2x1x64xf16, #scales>
}

// -----

// expected-error @+1 {{expected no other symbol of the name of the gpu.module, kernels; choose another one with the option module}}
func.func private @kernels()

func.func @gather(%x: tensor<4x64xf16>, %order: tensor<64xi32>) -> tensor<4x64xf16> {
  %g = hquant.gather %x, %order : tensor<4x64xf16>, tensor<64xi32> -> tensor<4x64xf16>
  return %g : tensor<4x64xf16>
}

// -----

func.func @used(%x: tensor<4x64xf16>, %order: tensor<64xi32>) -> tensor<4x64xf16> {
  %g = call @gather(%x, %order) : (tensor<4x64xf16>, tensor<64xi32>) -> tensor<4x64xf16>
  return %g : tensor<4x64xf16>
}

// expected-error @+1 {{expected no uses of a function that becomes a kernel; its arguments change}}
func.func @gather(%x: tensor<4x64xf16>, %order: tensor<64xi32>) -> tensor<4x64xf16> {
  %g = hquant.gather %x, %order : tensor<4x64xf16>, tensor<64xi32> -> tensor<4x64xf16>
  return %g : tensor<4x64xf16>
}

// -----

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>

func.func @long(%w: tensor<64x4194304xi4>) -> tensor<1x65536x512xi32, #weights> {
  // expected-error @+1 {{expected K from 0 to 4194240, got 4194304}}
  %p = hquant.pack %w : tensor<64x4194304xi4> -> tensor<1x65536x512xi32, #weights>
  return %p : tensor<1x65536x512xi32, #weights>
}
