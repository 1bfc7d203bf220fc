// RUN: humming-opt %s --convert-hquant-to-tiles --split-input-file --verify-diagnostics

// No function with a matmul: nothing to do.
func.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  func.func @no_config(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> tensor<?x64xf16> {
    // expected-error @+1 {{expected a lowering_config; run hquant-select-lowering-config first}}
    %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
           : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
    return %c : tensor<?x64xf16>
  }
}

// -----

module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  func.func @not_packed(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> tensor<?x64xf16> {
    // expected-error @+1 {{expected packed weights; run hquant-pack-weights first}}
    %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
           lowering_config = <stages = 2, copy = cp.async>
           : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
    return %c : tensor<?x64xf16>
  }
}

// -----

func.func @no_target(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> tensor<?x64xf16> {
  // expected-error @+1 {{expected hquant.target on the module, for which the config was chosen}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
         lowering_config = <stages = 2, copy = cp.async>
         : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
  return %c : tensor<?x64xf16>
}

// -----

// expected-error @+1 {{unknown chip: expected one of}}
module attributes {hquant.target = #nvvm.target<chip = "sm_60">} {
  func.func @chip(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> tensor<?x64xf16> {
    %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
           lowering_config = <stages = 2, copy = cp.async>
           : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
    return %c : tensor<?x64xf16>
  }
}

// -----

// A config that the program could not be built for (64 / 128 warps).
module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  func.func @config(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> tensor<?x64xf16> {
    // expected-error @+1 {{rule L3: expected warpN of 16, 32 or 64, got 128}}
    %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
           lowering_config = <block = [64, 16, 64], warp = [128, 16], stages = 2, copy = cp.async>
           : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
    return %c : tensor<?x64xf16>
  }
}

// -----

module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  func.func @problem(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> tensor<?x64xf32> {
    // expected-error @+1 {{rule P8: expected an output of f16 or bf16, got f32}}
    %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
           lowering_config = <stages = 2, copy = cp.async>
           : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf32>
    return %c : tensor<?x64xf32>
  }
}

// -----

module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  func.func @second(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> (tensor<?x64xf16>, tensor<?x64xf16>) {
    // expected-note @+1 {{the first one is here}}
    %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
           : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
    // expected-error @+1 {{expected one hquant.matmul a function, got a second one; outline it}}
    %d = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
           : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
    return %c, %d : tensor<?x64xf16>, tensor<?x64xf16>
  }
}

// -----

module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  func.func @beside(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> tensor<?x64xf16> {
    // expected-error @+1 {{expected only hquant.pack beside hquant.matmul in a function that becomes a kernel, got 'arith.negf'}}
    %y = arith.negf %x : tensor<?x128xf16>
    %c = hquant.matmul %y, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
           : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
    return %c : tensor<?x64xf16>
  }
}

// -----

module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  func.func @nested(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>, %b: i1, %d: tensor<?x64xf16>) -> tensor<?x64xf16> {
    // expected-error @+1 {{got 'scf.if'; outline the matmul into its own function}}
    %r = scf.if %b -> tensor<?x64xf16> {
      %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
             : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
      scf.yield %c : tensor<?x64xf16>
    } else {
      scf.yield %d : tensor<?x64xf16>
    }
    return %r : tensor<?x64xf16>
  }
}

// -----

module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  // expected-error @+1 {{expected one block around hquant.matmul}}
  func.func @blocks(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> tensor<?x64xf16> {
    %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
           : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
    cf.br ^bb1
  ^bb1:
    return %c : tensor<?x64xf16>
  }
}

// -----

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>
module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  // expected-error @+1 {{expected no uses of a function that becomes a kernel; its arguments change}}
  func.func @called(%x: tensor<?x128xf16>, %w: tensor<1x2x512xi32, #weights>, %s: tensor<1x1x64xf16, #scales>) -> tensor<?x64xf16> {
    %c = hquant.matmul %x, %w scales(%s : tensor<1x1x64xf16, #scales>) quant_type = <u4, scale = f16, group = 128>
           lowering_config = <block = [64, 16, 64], warp = [32, 16], stages = 2, copy = cp.async>
           : tensor<?x128xf16>, tensor<1x2x512xi32, #weights> -> tensor<?x64xf16>
    return %c : tensor<?x64xf16>
  }
  func.func @caller(%x: tensor<?x128xf16>, %w: tensor<1x2x512xi32, #weights>, %s: tensor<1x1x64xf16, #scales>) -> tensor<?x64xf16> {
    %c = call @called(%x, %w, %s) : (tensor<?x128xf16>, tensor<1x2x512xi32, #weights>, tensor<1x1x64xf16, #scales>) -> tensor<?x64xf16>
    return %c : tensor<?x64xf16>
  }
}

// -----

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>
// expected-error @+1 {{expected a new name for the gpu.module, but there is a symbol 'kernels'; choose another one with the option module}}
module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  gpu.module @kernels {}
  func.func @layer(%x: tensor<?x128xf16>, %w: tensor<1x2x512xi32, #weights>, %s: tensor<1x1x64xf16, #scales>) -> tensor<?x64xf16> {
    %c = hquant.matmul %x, %w scales(%s : tensor<1x1x64xf16, #scales>) quant_type = <u4, scale = f16, group = 128>
           lowering_config = <block = [64, 16, 64], warp = [32, 16], stages = 2, copy = cp.async>
           : tensor<?x128xf16>, tensor<1x2x512xi32, #weights> -> tensor<?x64xf16>
    return %c : tensor<?x64xf16>
  }
}
