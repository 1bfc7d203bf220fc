// RUN: humming-opt %s --hquant-select-lowering-config | FileCheck %s
// RUN: humming-opt %s "--hquant-select-lowering-config=chip=sm_90 m=512" | FileCheck %s --check-prefix=M512

// Without the option the module says for which chip; the tokens come from the
// type, else from the option.

// CHECK: module attributes {hquant.target = #nvvm.target<chip = "sm_75">}
// CHECK: mma = m16n8k8,
// CHECK-SAME: copy = sync
// M512: module attributes {hquant.target = #nvvm.target<chip = "sm_90">}
// M512: func @dynamic
// M512: block = [{{[0-9]+}}, {{[0-9][0-9]+}}
// M512: func @static
// M512: block = [{{[0-9]+}}, 8,
module attributes {hquant.target = #nvvm.target<chip = "sm_75">} {
  func.func @dynamic(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>) -> tensor<?x4096xf16> {
    %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>) quant_type = <u4, scale = f16, group = 128>
           : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
    return %c : tensor<?x4096xf16>
  }
  func.func @static(%x: tensor<1x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>) -> tensor<1x4096xf16> {
    %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>) quant_type = <u4, scale = f16, group = 128>
           : tensor<1x4096xf16>, tensor<4096x4096xi4> -> tensor<1x4096xf16>
    return %c : tensor<1x4096xf16>
  }
}
