// RUN: split-file %s %t
// RUN: humming-opt %t/imported.mlir --hquant-verify-stage=stage=0 | FileCheck %t/imported.mlir
// RUN: humming-opt %t/imported.mlir --hquant-verify-stage=stage=imported --hquant-verify-stage=stage=1
// RUN: humming-opt %t/operator.mlir --hquant-verify-stage=stage=1 | FileCheck %t/operator.mlir
// RUN: humming-opt %t/operator.mlir --hquant-verify-stage=stage=operator
// RUN: humming-opt %t/operator.mlir --humming-configure="chip=sm_80 verify-stages=false" --hquant-verify-stage=stage=2
// RUN: humming-opt %t/operator.mlir --humming-configure=chip=sm_80 --hquant-verify-stage=stage=configured
// RUN: humming-opt %t/tile.mlir --hquant-verify-stage=stage=3 --hquant-verify-stage=stage=tile
// RUN: humming-opt %t/thread.mlir --hquant-verify-stage=stage=4 --hquant-verify-stage=stage=thread

//--- imported.mlir
// CHECK: linalg.matmul
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

//--- operator.mlir
// CHECK: hquant.matmul
func.func @f(%x: tensor<4x128xf16>, %w: tensor<64x128xi4>, %s: tensor<64x1xf16>) -> (tensor<4x64xf16>, tensor<64x128xf16>) {
  %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, channel>
         : tensor<4x128xf16>, tensor<64x128xi4> -> tensor<4x64xf16>
  %f = hquant.dequantize %w scales(%s : tensor<64x1xf16>) quant_type = <u4, scale = f16, channel>
         : tensor<64x128xi4> -> tensor<64x128xf16>
  return %c, %f : tensor<4x64xf16>, tensor<64x128xf16>
}

//--- tile.mlir
// The host side of a module is free.
func.func @host(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
gpu.module @kernels {
  gpu.func @k(%p: !llvm.ptr<1>) kernel {
    hquant.commit_copies
    hquant.wait_copies 0
    gpu.barrier
    gpu.return
  }
}

//--- thread.mlir
// The host side of a module is free.
func.func @host(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
gpu.module @kernels {
  llvm.func @k(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %v = llvm.load %p : !llvm.ptr<1> -> vector<4xi32>
    nvvm.barrier0
    llvm.return
  }
}
