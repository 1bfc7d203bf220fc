// RUN: humming-opt %s --hquant-verify-stage=stage=2 --humming-lower-to-nvvm --hquant-verify-stage=stage=4 -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: %execute %s %t
// RUN: humming-opt %s --humming-lower-to-nvvm="verify-stages=false explain=true" 2>&1 | FileCheck %s --check-prefixes=CHECK,EXPLAIN

// Stage 2 to 4. Two layers become two kernels of one module; what is around them stays.
// EXPLAIN: remark: uses {{[0-9]+}} of 166912 bytes of shared memory on sm_80 and 64 threads
// CHECK: func.func @host
// CHECK-NOT: func.func
// CHECK: gpu.module @kernels
// CHECK: llvm.mlir.global external @hquant_shared()
// CHECK-NOT: hquant_shared()
// CHECK: llvm.func @first(
// CHECK: nvvm.cp.async.wait.group 1
// CHECK-COUNT-16: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: llvm.func @second(
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: llvm.atomicrmw add
#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>
module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {
  func.func @host(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func @first(%x: tensor<?x128xf16>, %w: tensor<1x2x512xi32, #weights>, %s: tensor<1x1x64xf16, #scales>) -> tensor<?x64xf16> {
    %c = hquant.matmul %x, %w scales(%s : tensor<1x1x64xf16, #scales>) quant_type = <u4, scale = f16, group = 128>
           lowering_config = <block = [64, 16, 64], warp = [32, 16], stages = 3, copy = cp.async>
           : tensor<?x128xf16>, tensor<1x2x512xi32, #weights> -> tensor<?x64xf16>
    return %c : tensor<?x64xf16>
  }
  func.func @second(%x: tensor<?x128xf16>, %w: tensor<1x2x512xi32, #weights>, %s: tensor<1x1x64xf16, #scales>) -> tensor<?x64xf16> {
    %c = hquant.matmul %x, %w scales(%s : tensor<1x1x64xf16, #scales>) quant_type = <u4, scale = f16, group = 128>
           lowering_config = <block = [64, 16, 64], warp = [32, 16], stages = 2, copy = cp.async, split_k = 2>
           : tensor<?x128xf16>, tensor<1x2x512xi32, #weights> -> tensor<?x64xf16>
    return %c : tensor<?x64xf16>
  }
}
