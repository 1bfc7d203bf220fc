// A stock mlir-opt of the same LLVM gets the dialect and the passes from the
// plugin, and its own passes work on them.
//
// REQUIRES: package
// RUN: %llvm_tools/mlir-opt --load-dialect-plugin=%humming_build/lib/humming-plugin%shlibext \
// RUN:   --load-pass-plugin=%humming_build/lib/humming-plugin%shlibext \
// RUN:   --pass-pipeline='builtin.module(hquant-verify-stage{stage=operator},canonicalize)' \
// RUN:   %s | FileCheck %s
// RUN: %llvm_tools/mlir-opt --load-pass-plugin=%humming_build/lib/humming-plugin%shlibext --help \
// RUN:   | FileCheck %s --check-prefix=HELP
//
// The plugin has no MLIR of its own: nothing but the entry points is exported.
// RUN: %llvm_tools/llvm-nm --dynamic --defined-only %humming_build/lib/humming-plugin%shlibext \
// RUN:   | FileCheck %s --check-prefix=EXPORTS --implicit-check-not=mlir

// CHECK-LABEL: func.func @layer
// CHECK-NOT: arith.constant
// CHECK: hquant.matmul
func.func @layer(%x: tensor<?x256xf16>, %w: tensor<64x256xi4>,
                 %s: tensor<64x2xf16>) -> tensor<?x64xf16> {
  %unused = arith.constant 0 : index
  %c = hquant.matmul %x, %w scales(%s : tensor<64x2xf16>)
         quant_type = <u4, scale = f16, group = 128>
         : tensor<?x256xf16>, tensor<64x256xi4> -> tensor<?x64xf16>
  return %c : tensor<?x64xf16>
}

// HELP-DAG: --convert-hquant-to-nvvm
// HELP-DAG: --hquant-verify-stage
// HELP-DAG: --humming-lower-to-nvvm

// EXPORTS-DAG: W mlirGetDialectPluginInfo
// EXPORTS-DAG: W mlirGetPassPluginInfo
