// RUN: not humming-opt %s --hquant-select-lowering-config=chip=sm_12 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not humming-opt %s "--hquant-select-lowering-config=chip=sm_80 m=-1" 2>&1 | FileCheck %s --check-prefix=M
// RUN: not humming-opt %s "--hquant-select-lowering-config=chip=sm_80 config=stages=9" 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: not humming-opt %s "--hquant-select-lowering-config=chip=sm_80 config=turbo=9" 2>&1 | FileCheck %s --check-prefix=KEY

// CHIP: error: option chip: {{.*}}sm_80{{.*}}got 'sm_12'
// M: error: expected option m of at least 0, got -1
// STAGES: error: 'hquant.matmul' op rule L13: expected 2 to 8 stages, got 9
// KEY: error: 'hquant.matmul' op {{.*}}turbo
func.func @layer(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>) {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return
}
