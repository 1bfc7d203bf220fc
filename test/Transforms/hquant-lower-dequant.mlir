// RUN: humming-opt %s --hquant-lower-dequant | FileCheck %s
// RUN: humming-opt %s --hquant-lower-dequant | %python %S/Inputs/count_ops.py | FileCheck %s --check-prefix=COUNT

// Four words, sixteen registers. A mask and an OR put two codes under the exponent of
// 1024. The low nibbles of a byte take one subtraction of 1032, the high ones one
// fma, as 1024 + 16 q; the upper bytes one shift more: 2.5 instructions a register
// after the three logical ones merge into lop3.
// CHECK-LABEL: func @u4_f16
// CHECK-SAME: %[[W:.*]]: vector<1x4xi32>
// CHECK: %[[W0:.*]] = vector.extract %[[W]][0, 0] : i32
// CHECK-COUNT-3: vector.extract
// CHECK-NOT: vector.extract
// CHECK-DAG: %[[MASK:.*]] = llvm.mlir.constant(983055 : i32)
// CHECK-DAG: %[[MAGIC:.*]] = llvm.mlir.constant(1677747200 : i32)
// CHECK-DAG: %[[Q:.*]] = llvm.and %[[W0]], %[[MASK]]
// CHECK-DAG: %[[M:.*]] = llvm.{{x?}}or %[[Q]], %[[MAGIC]]
// CHECK-DAG: %[[F:.*]] = llvm.bitcast %[[M]] : i32 to vector<2xf16>
// CHECK-DAG: %[[OFFSET:.*]] = llvm.mlir.constant(dense<-1.032000e+03> : vector<2xf16>)
// CHECK-DAG: %[[V:.*]] = llvm.fadd %[[F]], %{{.*}} : vector<2xf16>
// CHECK-DAG: %[[R0:.*]] = llvm.bitcast %[[V]] : vector<2xf16> to i32
// CHECK-DAG: %[[MASK1:.*]] = llvm.mlir.constant(15728880 : i32)
// CHECK-DAG: %[[Q1:.*]] = llvm.and %[[W0]], %[[MASK1]]
// CHECK-DAG: %[[M1:.*]] = llvm.{{x?}}or %[[Q1]], %{{.*}}
// CHECK-DAG: %[[F1:.*]] = llvm.bitcast %[[M1]] : i32 to vector<2xf16>
// CHECK-DAG: %[[SIXTEENTH:.*]] = llvm.mlir.constant(dense<6.250000e-02> : vector<2xf16>)
// CHECK-DAG: %[[OFFSET16:.*]] = llvm.mlir.constant(dense<-7.200000e+01> : vector<2xf16>)
// CHECK-DAG: %[[V1:.*]] = llvm.intr.fma(%[[F1]], %[[SIXTEENTH]], %{{.*}})
// CHECK-DAG: %[[R1:.*]] = llvm.bitcast %[[V1]]
// CHECK: vector.from_elements %[[R0]], %[[R1]], {{.*}} : vector<1x4x4xi32>
// CHECK-NOT: hquant
// COUNT-LABEL: func @u4_f16
// COUNT: mask 16, merge 16, shift {{4|8}}, add or fma 16, multiply 0, prmt 0
func.func @u4_f16(%w: vector<1x4xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// bf16 has 7 mantissa bits: every code is shifted to the lowest ones, and as there is
// no packed addition before sm_90 it is an fma by one.
// CHECK-LABEL: func @u4_bf16
// CHECK-DAG: llvm.mlir.constant(dense<-1.360000e+02> : vector<2xbf16>)
// CHECK-DAG: llvm.mlir.constant(1124090624 : i32)
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(dense<1.000000e+00> : vector<2xbf16>)
// CHECK-DAG: llvm.intr.fma(%{{.*}}, %[[ONE]], %{{.*}}) : (vector<2xbf16>
// COUNT-LABEL: func @u4_bf16
// COUNT: mask 16, merge 16, shift 12, add or fma 16, multiply 0, prmt 0
func.func @u4_bf16(%w: vector<1x4xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, bf16>, weight = #hquant.format<u4>, scale = #hquant.format<bf16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// A scale a row: broadcast to both halves once, one multiplication a register.
// CHECK-LABEL: func @u4_f16_scales
// CHECK: %[[S:.*]] = vector.extract %{{.*}}[0, 0] : i32 from vector<1x1xi32>
// CHECK: %[[LOW:.*]] = llvm.mlir.constant(4112 : i32)
// CHECK: %[[S0:.*]] = nvvm.prmt <default> %[[LOW]], %[[S]], %[[S]]
// CHECK: %[[HIGH:.*]] = llvm.mlir.constant(12850 : i32)
// CHECK: %[[S1:.*]] = nvvm.prmt <default> %[[HIGH]], %{{.*}}, %{{.*}}
// COUNT-LABEL: func @u4_f16_scales
// COUNT: mask 16, merge 16, shift {{4|8}}, add or fma 16, multiply 16, prmt 2
func.func @u4_f16_scales(%w: vector<1x4xi32>, %s: vector<1x1xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w scales(%s : vector<1x1xi32>)
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// Two groups in the slab: steps 0 and 1 have the scales of the first.
// CHECK-LABEL: func @u4_bf16_groups
// CHECK: vector.extract %{{.*}}[0, 0] : i32 from vector<1x2xi32>
// CHECK: vector.extract %{{.*}}[0, 1] : i32 from vector<1x2xi32>
// COUNT-LABEL: func @u4_bf16_groups
// COUNT: mask 16, merge 16, shift 12, add or fma 32, multiply 0, prmt 4
func.func @u4_bf16_groups(%w: vector<1x4xi32>, %s: vector<1x2xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w scales(%s : vector<1x2xi32>)
      {mma = #hquant.sync_mma<m16n8k16, bf16>, weight = #hquant.format<u4>, scale = #hquant.format<bf16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// An integer zero point goes under the same exponent: prmt makes 1024 + z, which is
// subtracted in place of the constant. No instruction a register more.
// CHECK-LABEL: func @u4_f16_zeros
// CHECK-DAG: %[[Z:.*]] = vector.extract %{{.*}}[0, 0] : i32 from vector<1x1xi32>
// CHECK-DAG: %[[EXPONENT:.*]] = llvm.mlir.constant(100 : i32)
// CHECK-DAG: %[[BYTES:.*]] = llvm.mlir.constant(16448 : i32)
// CHECK-DAG: %[[P:.*]] = nvvm.prmt <default> %[[BYTES]], %[[Z]], %[[EXPONENT]]
// CHECK-DAG: %[[M:.*]] = llvm.bitcast %[[P]]
// CHECK-DAG: llvm.fneg %[[M]]
// CHECK-DAG: llvm.mlir.constant(dense<9.600000e+02> : vector<2xf16>)
// COUNT-LABEL: func @u4_f16_zeros
// COUNT: mask 16, merge 16, shift {{4|8}}, add or fma {{17|18}}, multiply 0, prmt 2
func.func @u4_f16_zeros(%w: vector<1x4xi32>, %z: vector<1x1xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w zero_points(%z : vector<1x1xi32>)
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// Float zero points of the operand's type: one subtraction more.
// CHECK-LABEL: func @u4_f16_float_zeros
// CHECK-DAG: llvm.mlir.constant(dense<-1.024000e+03> : vector<2xf16>)
// CHECK-DAG: llvm.mlir.constant(dense<-6.400000e+01> : vector<2xf16>)
// COUNT-LABEL: func @u4_f16_float_zeros
// COUNT: mask 16, merge 16, shift {{4|8}}, add or fma 32, multiply 16, prmt 4
func.func @u4_f16_float_zeros(%w: vector<1x4xi32>, %s: vector<1x1xi32>, %z: vector<1x1xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w scales(%s : vector<1x1xi32>) zero_points(%z : vector<1x1xi32>)
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>, float_zero_points}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// Of another type: the difference is taken in f32 and rounded once.
// CHECK-LABEL: func @u4_f16_bf16_zeros
// CHECK: llvm.fpext %{{.*}} : f16 to f32
// CHECK: llvm.fadd %{{.*}}, %{{.*}} : f32
// CHECK: llvm.fptrunc
func.func @u4_f16_bf16_zeros(%w: vector<1x4xi32>, %z: vector<1x1xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w zero_points(%z : vector<1x1xi32>)
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<bf16>, float_zero_points}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// Other widths lie in planes, the widest with the lowest bits: a plane more is a shift,
// a mask and an OR more a register.
// CHECK-LABEL: func @u3_f16
// CHECK: dense<-1.028000e+03> : vector<2xf16>
// COUNT-LABEL: func @u3_f16
// COUNT: mask 32, merge 32, shift 10, add or fma 16, multiply 0, prmt 0
func.func @u3_f16(%w: vector<1x3xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u3>, scale = #hquant.format<f16>}
      : vector<1x3xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// CHECK-LABEL: func @u3_bf16
// CHECK: dense<-1.320000e+02> : vector<2xbf16>
// COUNT-LABEL: func @u3_bf16
// COUNT: mask 32, merge 32, shift {{14|27}}, add or fma 16, multiply 0, prmt 0
func.func @u3_bf16(%w: vector<1x3xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, bf16>, weight = #hquant.format<u3>, scale = #hquant.format<bf16>}
      : vector<1x3xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// CHECK-LABEL: func @u5_f16
// CHECK: dense<-1.040000e+03> : vector<2xf16>
// COUNT-LABEL: func @u5_f16
// COUNT: mask 32, merge 32, shift {{13|23}}, add or fma 16, multiply 0, prmt 0
func.func @u5_f16(%w: vector<1x5xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u5>, scale = #hquant.format<f16>}
      : vector<1x5xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// CHECK-LABEL: func @u5_bf16
// CHECK: dense<-1.440000e+02> : vector<2xbf16>
// COUNT-LABEL: func @u5_bf16
// COUNT: mask 32, merge 32, shift 23, add or fma 16, multiply 0, prmt 0
func.func @u5_bf16(%w: vector<1x5xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, bf16>, weight = #hquant.format<u5>, scale = #hquant.format<bf16>}
      : vector<1x5xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// CHECK-LABEL: func @u6_f16
// CHECK: dense<-1.056000e+03> : vector<2xf16>
// COUNT-LABEL: func @u6_f16
// COUNT: mask 32, merge 32, shift {{12|22}}, add or fma 16, multiply 0, prmt 0
func.func @u6_f16(%w: vector<1x6xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u6>, scale = #hquant.format<f16>}
      : vector<1x6xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// CHECK-LABEL: func @u6_bf16
// CHECK: dense<-1.600000e+02> : vector<2xbf16>
// COUNT-LABEL: func @u6_bf16
// COUNT: mask 32, merge 32, shift 22, add or fma 16, multiply 0, prmt 0
func.func @u6_bf16(%w: vector<1x6xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, bf16>, weight = #hquant.format<u6>, scale = #hquant.format<bf16>}
      : vector<1x6xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// Three planes are joined in words of bytes, four codes at a time (two logical
// operations each that are one lop3).
// CHECK-LABEL: func @u7_f16
// CHECK: dense<-1.088000e+03> : vector<2xf16>
// COUNT-LABEL: func @u7_f16
// COUNT: mask 18, merge 32, shift 7, add or fma 16, multiply 0, prmt 22
func.func @u7_f16(%w: vector<1x7xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u7>, scale = #hquant.format<f16>}
      : vector<1x7xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// CHECK-LABEL: func @u7_bf16
// CHECK: dense<-1.920000e+02> : vector<2xbf16>
// COUNT-LABEL: func @u7_bf16
// COUNT: mask 18, merge 32, shift 7, add or fma 16, multiply 0, prmt 22
func.func @u7_bf16(%w: vector<1x7xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, bf16>, weight = #hquant.format<u7>, scale = #hquant.format<bf16>}
      : vector<1x7xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// Units and groups have their own.
// CHECK-LABEL: func @units
// CHECK: vector.from_elements {{.*}} : vector<4x4x4xi32>
// COUNT-LABEL: func @units
// COUNT: mask 64, merge 64, shift {{16|32}}, add or fma {{80|96}}, multiply 64, prmt 64
func.func @units(%w: vector<4x4xi32>, %s: vector<4x4xi32>, %z: vector<4x4xi32>) -> vector<4x4x4xi32> {
  %a = hquant.dequant %w scales(%s : vector<4x4xi32>) zero_points(%z : vector<4x4xi32>)
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<4x4xi32> -> vector<4x4x4xi32>
  return %a : vector<4x4x4xi32>
}
