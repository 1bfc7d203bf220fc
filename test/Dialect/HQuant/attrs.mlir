// RUN: humming-opt %s | humming-opt | FileCheck %s
// RUN: humming-opt %s --emit-bytecode | humming-opt | FileCheck %s

// CHECK-LABEL: module @formats
// CHECK-SAME: bf16 = #hquant.format<bf16>
// CHECK-SAME: e2m1 = #hquant.format<e2m1>
// CHECK-SAME: e4m3 = #hquant.format<e4m3>
// CHECK-SAME: e8m0 = #hquant.format<e8m0>
// CHECK-SAME: s8 = #hquant.format<s8>
// CHECK-SAME: u3 = #hquant.format<u3>
module @formats attributes {x.test = {
  u3 = #hquant.format<u3>, s8 = #hquant.format<s8>, e2m1 = #hquant.format<e2m1>,
  e4m3 = #hquant.format<e4m3>, e8m0 = #hquant.format<e8m0>, bf16 = #hquant.format<bf16>
}} {}

// CHECK-LABEL: module @granularities
// CHECK-SAME: block = #hquant.granularity<block = [128, 64]>
// CHECK-SAME: channel = #hquant.granularity<channel>
// CHECK-SAME: group = #hquant.granularity<group = 128>
// CHECK-SAME: rows = #hquant.granularity<block = [64, 0]>
// CHECK-SAME: tensor = #hquant.granularity<tensor>
module @granularities attributes {x.test = {
  group = #hquant.granularity<group = 128>, channel = #hquant.granularity<channel>,
  tensor = #hquant.granularity<tensor>, block = #hquant.granularity<block = [128, 64]>,
  rows = #hquant.granularity<block = [64, 0]>
}} {}

// CHECK-LABEL: module @zero_points
// CHECK-SAME: a = #hquant.zero_point<none>, b = #hquant.zero_point<int>, c = #hquant.zero_point<float>
module @zero_points attributes {x.test = {
  a = #hquant.zero_point<none>, b = #hquant.zero_point<int>, c = #hquant.zero_point<float>
}} {}

// CHECK-LABEL: module @quant_types
// CHECK-SAME: a = #hquant.quant_type<u4, scale = bf16, group = 128>
// CHECK-SAME: b = #hquant.quant_type<u4, scale = f16, channel, zero_point = int>
// CHECK-SAME: c = #hquant.quant_type<e4m3, scale = f32, block = [128, 128]>
// CHECK-SAME: d = #hquant.quant_type<e2m1, scale = e8m0, group = 32>
// CHECK-SAME: e = #hquant.quant_type<u8, scale = f16, tensor, zero_point = float>
module @quant_types attributes {x.test = {
  a = #hquant.quant_type<u4, scale = bf16, group = 128, zero_point = none>,
  b = #hquant.quant_type<u4, scale = f16, channel, zero_point = int>,
  c = #hquant.quant_type<e4m3, scale = f32, block = [128, 128]>,
  d = #hquant.quant_type<e2m1, scale = e8m0, group = 32>,
  e = #hquant.quant_type<u8, scale = f16, tensor, zero_point = float>
}} {}

// Keys of a config come in any order; those left out take their default.
// CHECK-LABEL: module @configs
// CHECK-SAME: a = #hquant.lowering_config<mma = m16n8k16, block = [64, 16, 256], warp = [16, 16], warps_k = 2, stages = 4, copy = cp.async, scale = accumulator, split_k = 1>
// CHECK-SAME: b = #hquant.lowering_config<mma = m16n8k8, block = [128, 32, 64], warp = [16, 16], warps_k = 1, stages = 2, copy = sync, scale = operand, split_k = 1>
module @configs attributes {x.test = {
  a = #hquant.lowering_config<split_k = 1, mma = m16n8k16, block = [64, 16, 256], warp = [16, 16],
        warps_k = 2, stages = 4, copy = cp.async, scale = accumulator>,
  b = #hquant.lowering_config<block = [128, 32, 64], mma = m16n8k8>
}} {}

// CHECK-LABEL: func.func private @layouts
// CHECK-SAME: tensor<2x3x896xi32, #packed_weights>
// CHECK-SAME: tensor<?x?x512xi32, #packed_weights1>
// CHECK-SAME: tensor<1x?x64xf16, #packed_scales>
// CHECK-SAME: tensor<1x2x64xi8, #packed_zero_points>
func.func private @layouts(
  tensor<2x3x896xi32, #hquant.packed_layout<activation_bits = 8, weight_bits = 7, role = weights>>,
  tensor<?x?x512xi32, #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>>,
  tensor<1x?x64xf16, #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>>,
  tensor<1x2x64xi8, #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = zero_points>>)

// Second levels, tables and phases survive the round trip.
// CHECK-LABEL: func @quant_type_extras
// CHECK-SAME: global = tensor, phase = [3, 96]
// CHECK-SAME: table = [
func.func @quant_type_extras() attributes {
  a = #hquant.quant_type<e4m3, scale = f32, block = [128, 128], global = tensor, phase = [3, 96]>,
  b = #hquant.quant_type<u4, scale = f32, group = 64, table = [-1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0]>
} {
  return
}
