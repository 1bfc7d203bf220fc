// What a test lowered runs on the emulator; a source that is not what was lowered is
// refused, and so is a kernel that is wrong.
//
// RUN: humming-opt %s --humming-compile=chip=sm_80 -o %t
// RUN: %execute %s %t | FileCheck %s
// RUN: not %execute %s %t --config warps_k=1,warp=16x8,block=64x8x64 2>&1 | FileCheck %s --check-prefix=CONFIG
// RUN: sed 's/llvm.fadd/llvm.fsub/' %t > %t.wrong
// RUN: not diff -q %t %t.wrong
// RUN: not %execute %s %t.wrong 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not %execute %s %s 2>&1 | FileCheck %s --check-prefix=STAGE

// CHECK: executed layer on sm_80, m = 1, n = 72, k = 136
// CHECK: executed layer on sm_80, m = 17, n = 72, k = 136
// CONFIG: error: @layer was lowered with another config; give --config and --tokens as the pipeline got them
// WRONG: error: layer on sm_80, m = 1, n = 72, k = 136: {{[0-9]+}} values outside their bound
// STAGE: error: expected a module of stage 4 with hquant.target
func.func @layer(%x: tensor<?x136xf16>, %w: tensor<72x136xi4>, %s: tensor<72x2xf16>) -> tensor<?x72xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<72x2xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<?x136xf16>, tensor<72x136xi4> -> tensor<?x72xf16>
  return %c : tensor<?x72xf16>
}
