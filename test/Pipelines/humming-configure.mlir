// RUN: humming-opt %s --humming-configure=chip=sm_80 | FileCheck %s
// RUN: humming-opt %s --humming-configure="chip=sm_80 config=stages=3 explain=true" 2>&1 | FileCheck %s --check-prefix=HAND

// Stage 1 to 2. Both matmuls read one packed copy of the weights; the packed
// constants replace the logical ones.
// CHECK: module attributes {hquant.target = #nvvm.target<chip = "sm_80">}
// CHECK-LABEL: func @layer
// CHECK-NOT: hquant.pack
// CHECK-DAG: %[[W:.*]] = arith.constant {{.*}} : tensor<1x1x512xi32, #packed_weights>
// CHECK-DAG: %[[S:.*]] = arith.constant {{.*}} : tensor<1x1x64xf16, #packed_scales>
// CHECK: hquant.matmul %{{.*}}, %[[W]] scales(%[[S]] : {{.*}} lowering_config = <
// CHECK: hquant.matmul %{{.*}}, %[[W]] scales(%[[S]] : {{.*}} lowering_config = <

// HAND: remark: config for w4a16 u4/channel/f16 x f16 -> f16, M=4
// HAND: remark: config for w4a16 u4/channel/f16 x f16 -> f16, M=?
// HAND-COUNT-2: stages = 3,
func.func @layer(%x: tensor<4x64xf16>, %y: tensor<?x64xf16>) -> (tensor<4x60xf16>, tensor<?x60xf16>) {
  %w = arith.constant dense<5> : tensor<60x64xi4>
  %s = arith.constant dense<0.5> : tensor<60x1xf16>
  %b = arith.constant dense<0.0> : tensor<60xf16>
  %c = hquant.matmul %x, %w scales(%s : tensor<60x1xf16>) bias(%b : tensor<60xf16>) quant_type = <u4, scale = f16, channel>
         : tensor<4x64xf16>, tensor<60x64xi4> -> tensor<4x60xf16>
  %d = hquant.matmul %y, %w scales(%s : tensor<60x1xf16>) quant_type = <u4, scale = f16, channel>
         : tensor<?x64xf16>, tensor<60x64xi4> -> tensor<?x60xf16>
  return %c, %d : tensor<4x60xf16>, tensor<?x60xf16>
}
