// RUN: split-file %s %t
// RUN: humming-opt %t/option.mlir --hquant-verify-stage=stage=5 --verify-diagnostics
// RUN: humming-opt %t/imported.mlir --hquant-verify-stage=stage=0 --verify-diagnostics
// RUN: humming-opt %t/operator.mlir --hquant-verify-stage=stage=1 --verify-diagnostics
// RUN: humming-opt %t/configured.mlir --hquant-verify-stage=stage=2 --verify-diagnostics
// RUN: humming-opt %t/target.mlir --hquant-verify-stage=stage=2 --verify-diagnostics
// RUN: humming-opt %t/tile.mlir --hquant-verify-stage=stage=3 --verify-diagnostics
// RUN: humming-opt %t/thread.mlir --hquant-verify-stage=stage=4 --verify-diagnostics

//--- option.mlir
// expected-error @+1 {{expected option stage of 0 to 4 or imported, operator, configured, tile, thread, got '5'}}
module {}

//--- imported.mlir
func.func @f(%w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{at stage 0 (imported): expected no op of hquant}}
  %f = hquant.dequantize %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, channel>
         : tensor<64x128xi4> -> tensor<64x128xf16>
  return
}

//--- operator.mlir
func.func @f(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{at stage 1 (operator): expected no lowering_config, got #hquant.lowering_config<mma = m16n8k16}}
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, channel>
         lowering_config = <block = [64, 16, 128]>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  // Every violation is reported.
  // expected-error @+1 {{at stage 1 (operator): expected ops of hquant on tensors, got one of the tile stage}}
  hquant.commit_copies
  return
}

//--- configured.mlir
#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>
module attributes {hquant.target = #nvvm.target<chip = "sm_75">} {
  func.func @logical(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
    // expected-error @+2 {{at stage 2 (configured): expected packed operands, got weights of type 'tensor<64x128xi4>'; run hquant-pack-weights}}
    // expected-error @+1 {{at stage 2 (configured): expected a lowering_config, got none; run hquant-select-lowering-config}}
    %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, channel>
           : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
    return
  }
  func.func @illegal(%x: tensor<4x128xf16>, %w: tensor<1x2x512xi32, #weights>, %s: tensor<1x1x64xf16, #scales>) {
    // expected-error @+1 {{at stage 2 (configured): rule L1: expected mma=m16n8k8 for f16 on sm_75, got m16n8k16}}
    %c = hquant.matmul %x, %w scales(%s : tensor<1x1x64xf16, #scales>) quant_type = <u4, scale = f16, channel>
           lowering_config = <mma = m16n8k16>
           : tensor<4x128xf16>, tensor<1x2x512xi32, #weights> -> tensor<4x64xf16>
    return
  }
  func.func @problem(%x: tensor<4x128xbf16>, %w: tensor<1x2x512xi32, #weights>, %s: tensor<1x1x64xf16, #scales>) {
    // expected-error @+1 {{at stage 2 (configured): rule P3: expected activations of f16 on sm_75, which has no bf16 MMA, got bf16}}
    %c = hquant.matmul %x, %w scales(%s : tensor<1x1x64xf16, #scales>) quant_type = <u4, scale = f16, channel>
           lowering_config = <mma = m16n8k16>
           : tensor<4x128xbf16>, tensor<1x2x512xi32, #weights> -> tensor<4x64xbf16>
    return
  }
}

//--- target.mlir
// expected-error @+1 {{expected an attribute hquant.target = #nvvm.target<chip = ...> around it, got none}}
module {}

//--- tile.mlir
func.func @f(%w: tensor<64x128xi4>, %s: tensor<64x1xf16>) {
  // expected-error @+1 {{at stage 3 (tile): expected no op of hquant on tensors}}
  %f = hquant.dequantize %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, channel>
         : tensor<64x128xi4> -> tensor<64x128xf16>
  // expected-error @+1 {{at stage 3 (tile): expected to be in a gpu.func}}
  hquant.commit_copies
  return
}
gpu.module @kernels {
  // expected-error @+1 {{at stage 3 (tile): expected no tensor in a gpu.module, got 'tensor<64x128xi4>'}}
  gpu.func @g(%w: tensor<64x128xi4>) {
    // expected-error @+1 {{at stage 3 (tile): expected no tensor in a gpu.module, got 'tensor<4xf16>'}}
    %e = tensor.empty() : tensor<4xf16>
    gpu.return
  }
}

//--- thread.mlir
func.func @f() {
  // expected-error @+1 {{at stage 4 (thread): expected no op of hquant}}
  hquant.commit_copies
  return
}
gpu.module @kernels {
  // expected-error @+1 {{at stage 4 (thread): expected ops of llvm and nvvm in a gpu.module}}
  func.func @g() {
    // expected-error @+1 {{at stage 4 (thread): expected ops of llvm and nvvm in a gpu.module}}
    return
  }
  llvm.func @k(%p: !llvm.ptr) {
    // expected-error @+1 {{at stage 4 (thread): expected ops of llvm and nvvm in a gpu.module}}
    %v = builtin.unrealized_conversion_cast %p : !llvm.ptr to i64
    llvm.return
  }
}
