// RUN: humming-opt %s --hquant-select-lowering-config=chip=sm_80 --split-input-file | FileCheck %s
// RUN: humming-opt %s "--hquant-select-lowering-config=chip=sm_80 config=stages=3,split_k=2" --split-input-file | FileCheck %s --check-prefix=HAND
// RUN: humming-opt %s "--hquant-select-lowering-config=chip=sm_80 explain" --split-input-file 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// RUN: humming-opt %s --hquant-select-lowering-config=chip=sm_80 --split-input-file --remarks-filter=HummingConfig 2>&1 | FileCheck %s --check-prefix=REMARK

// The exact choices are tested by chip in config-sm*.mlir.

// CHECK: module attributes {hquant.target = #nvvm.target<chip = "sm_80">}
// CHECK-LABEL: func @layer
// CHECK: lowering_config = <mma = m16n8k16,
// HAND-LABEL: func @layer
// HAND: stages = 3,
// HAND-SAME: split_k = 2
// EXPLAIN: remark: config for w4a16 u4/g128/f16 x f16 -> f16, M=? N=4096 K=4096 on sm_80: chosen mma={{.*}} MB, {{.*}} us ({{.*}}); runner-up mma={{.*}}
// REMARK: remark: [Analysis] LoweringConfig | Category:HummingConfig | Function=layer
// REMARK-SAME: Bytes=
// REMARK-SAME: Chosen="mma=
// REMARK-SAME: Microseconds=
// REMARK-SAME: RunnerUp="mma=
// REMARK-SAME: SharedMemory=
func.func @layer(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>) quant_type = <u4, scale = f16, group = 128>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}

// -----

// A config that is there and legal is kept; a module without a matmul just gets
// its target.
// CHECK-LABEL: func @kept
// CHECK: lowering_config = <mma = m16n8k16, block = [64, 16, 128], warp = [16, 16], warps_k = 1, stages = 5, copy = cp.async, scale = operand, split_k = 3>
// HAND-LABEL: func @kept
// HAND: stages = 5,
func.func @kept(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xi4>, %s: tensor<4096x32xf16>) -> tensor<?x4096xf16> {
  %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xf16>) quant_type = <u4, scale = f16, group = 128>
         lowering_config = <block = [64, 16, 128], stages = 5, copy = cp.async, split_k = 3>
         : tensor<?x4096xf16>, tensor<4096x4096xi4> -> tensor<?x4096xf16>
  return %c : tensor<?x4096xf16>
}

// -----

// CHECK: module attributes {hquant.target = #nvvm.target<chip = "sm_80">}
module {}
