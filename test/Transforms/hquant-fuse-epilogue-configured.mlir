// RUN: humming-opt %s --hquant-verify-stage=stage=2 --hquant-fuse-epilogue --hquant-verify-stage=stage=2 | FileCheck %s

// At stage 2 the config stays, and packed operands stay packed.
#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>
// CHECK-LABEL: func @bias
// CHECK: hquant.matmul %{{.*}} bias(%{{.*}} : tensor<64xf16>) {{.*}} lowering_config = <mma = m16n8k16, block = [64, 16, 128], warp = [32, 16], warps_k = 1, stages = 3, copy = cp.async, scale = operand, split_k = 1>
// CHECK-NEXT: return
module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  func.func @bias(%x: tensor<?x128xf16>, %w: tensor<1x2x512xi32, #weights>, %s: tensor<1x1x64xf16, #scales>, %b: tensor<64xf16>, %e: tensor<?x64xf16>) -> tensor<?x64xf16> {
    %c = hquant.matmul %x, %w scales(%s : tensor<1x1x64xf16, #scales>) quant_type = <u4, scale = f16, group = 128>
           lowering_config = <block = [64, 16, 128], warp = [32, 16], stages = 3, copy = cp.async>
           : tensor<?x128xf16>, tensor<1x2x512xi32, #weights> -> tensor<?x64xf16>
    %bb = linalg.broadcast ins(%b : tensor<64xf16>) outs(%e : tensor<?x64xf16>) dimensions = [0]
    %r = arith.addf %c, %bb : tensor<?x64xf16>
    return %r : tensor<?x64xf16>
  }
}
