// RUN: humming-opt %s --humming-compile=chip=sm_75 --split-input-file --verify-diagnostics
// RUN: not humming-opt %s --humming-compile=chip=sm_20 --split-input-file 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not humming-opt %s --humming-compile --split-input-file 2>&1 | FileCheck %s --check-prefix=NOCHIP

// What a chip or the compiler cannot do is said at the op, before anything is lowered.
// CHIP: error: option chip: unknown chip: expected one of sm_75
// NOCHIP: error: {{.*}}expected an attribute hquant.target
func.func @bf16(%x: tensor<?x128xbf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xbf16>) -> tensor<?x64xbf16> {
  // expected-error @+1 {{rule P3: expected activations of f16 on sm_75, which has no bf16 MMA, got bf16}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xbf16>) quant_type = <u4, scale = bf16, group = 128>
         : tensor<?x128xbf16>, tensor<64x128xi4> -> tensor<?x64xbf16>
  return %c : tensor<?x64xbf16>
}

// -----

// The rounding is not the matmul's only use, so it stays in f32.
func.func @f32(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> (tensor<?x64xf32>, tensor<?x64xf16>) {
  // expected-error @+1 {{rule P8: expected an output of f16 or bf16, got f32}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf32>
  %r = arith.truncf %c : tensor<?x64xf32> to tensor<?x64xf16>
  return %c, %r : tensor<?x64xf32>, tensor<?x64xf16>
}

// -----

func.func @tensor_scale(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<1x1xf16>) -> tensor<?x64xf16> {
  // expected-error @+1 {{expected one scale per row (group or channel) to pack}}
  %c = hquant.matmul %x, %w scales(%s : tensor<1x1xf16>) quant_type = <u4, scale = f16, tensor>
         : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
  return %c : tensor<?x64xf16>
}

// -----

func.func @copy(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> tensor<?x64xf16> {
  // expected-error @+1 {{rule L12: expected copy=sync on sm_75, got cp.async}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
         lowering_config = <mma = m16n8k8, block = [64, 16, 64], warp = [32, 16], copy = cp.async>
         : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
  return %c : tensor<?x64xf16>
}

// -----

// What is around the matmul is the embedder's; a function that becomes a kernel holds
// nothing else.
func.func @residual(%x: tensor<?x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>, %y: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
  // expected-error @+1 {{expected only hquant.pack beside hquant.matmul in a function that becomes a kernel, got 'arith.addf'}}
  %r = arith.addf %c, %y : tensor<?x64xf16>
  return %r : tensor<?x64xf16>
}
