// RUN: humming-opt %s --hquant-select-lowering-config --split-input-file --verify-diagnostics

// expected-error @+1 {{expected an attribute hquant.target = #nvvm.target<chip = ...> around it, got none; run hquant-select-lowering-config with a chip}}
module {}

// -----

// expected-error @+1 {{hquant.target: unknown chip: expected one of}}
module attributes {hquant.target = #nvvm.target<chip = "sm_12">} {}

// -----

// A problem that the chip cannot run.
module attributes {hquant.target = #nvvm.target<chip = "sm_75">} {
  func.func @bf16(%x: tensor<?x4096xbf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xbf16>) {
    // expected-error @+1 {{rule P3: expected activations of f16 on sm_75, which has no bf16 MMA, got bf16}}
    %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xbf16>) quant_type = <u4, scale = bf16, group = 128>
           : tensor<?x4096xbf16>, tensor<4096x4096xi4> -> tensor<?x4096xbf16>
    return
  }
}

// -----

// A config by hand that the chip cannot run.
module attributes {hquant.target = #nvvm.target<chip = "sm_75">} {
  func.func @copy(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>) {
    // expected-error @+1 {{rule L12: expected copy=sync on sm_75, got cp.async}}
    %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>) quant_type = <u4, scale = f16, group = 128>
           lowering_config = <mma = m16n8k8, block = [64, 16, 128], stages = 2, copy = cp.async>
           : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
    return
  }
}

// -----

module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  func.func @block(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>) {
    // expected-error @+1 {{rule L2: expected blockN a multiple of 64, at most 512, got 96}}
    %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>) quant_type = <u4, scale = f16, group = 128>
           lowering_config = <block = [96, 16, 128]>
           : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
    return
  }
}

// -----

// Sizes past what a kernel argument holds.
module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  func.func @huge(%x: tensor<?x5000000000xf16>, %w: tensor<64x5000000000xi4>, %s: tensor<64x1xf16>) {
    // expected-error @+1 {{rule P1: expected K from 0 to 2147483647, got 5000000000}}
    %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, channel>
           : tensor<?x5000000000xf16>, tensor<64x5000000000xi4> -> tensor<?x64xf16>
    return
  }
}
