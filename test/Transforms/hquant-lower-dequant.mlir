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
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(dense<-1.032000e+03> : vector<2xf16>)
// CHECK: %[[OFFSET16:.*]] = llvm.mlir.constant(dense<-7.200000e+01> : vector<2xf16>)
// CHECK: %[[MAGIC:.*]] = llvm.mlir.constant(1677747200 : i32)
// CHECK: %[[MASK:.*]] = llvm.mlir.constant(983055 : i32)
// CHECK: %[[Q:.*]] = llvm.and %[[W0]], %[[MASK]]
// CHECK: %[[M:.*]] = llvm.or %[[Q]], %[[MAGIC]]
// CHECK: %[[F:.*]] = llvm.bitcast %[[M]] : i32 to vector<2xf16>
// CHECK: %[[V:.*]] = llvm.fadd %[[F]], %{{.*}} : vector<2xf16>
// CHECK: %[[R0:.*]] = llvm.bitcast %[[V]] : vector<2xf16> to i32
// CHECK: llvm.mlir.constant(15728880 : i32)
// CHECK: %[[F:.*]] = llvm.bitcast %{{.*}} : i32 to vector<2xf16>
// CHECK: %[[SIXTEENTH:.*]] = llvm.mlir.constant(dense<6.250000e-02> : vector<2xf16>)
// CHECK: %[[V:.*]] = llvm.intr.fma(%[[F]], %[[SIXTEENTH]], %{{.*}})
// CHECK: %[[R1:.*]] = llvm.bitcast %[[V]]
// CHECK: vector.from_elements %[[R0]], %[[R1]], {{.*}} : vector<1x4x4xi32>
// CHECK-NOT: hquant
// COUNT-LABEL: func @u4_f16
// COUNT: and 16, or 16, lshr 8, fadd 8, fma 8, fmul 0, prmt 0
func.func @u4_f16(%w: vector<1x4xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// bf16 has 7 mantissa bits: every code is shifted to the lowest ones, and as there is
// no packed addition before sm_90 it is an fma by one.
// CHECK-LABEL: func @u4_bf16
// CHECK: llvm.mlir.constant(dense<-1.360000e+02> : vector<2xbf16>)
// CHECK: llvm.mlir.constant(1124090624 : i32)
// CHECK: %[[ONE:.*]] = llvm.mlir.constant(dense<1.000000e+00> : vector<2xbf16>)
// CHECK: llvm.intr.fma(%{{.*}}, %[[ONE]], %{{.*}}) : (vector<2xbf16>
// COUNT-LABEL: func @u4_bf16
// COUNT: and 16, or 16, lshr 12, fadd 0, fma 16, fmul 0, prmt 0
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
// COUNT: and 16, or 16, lshr 8, fadd 8, fma 8, fmul 16, prmt 2
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
// COUNT: and 16, or 16, lshr 12, fadd 0, fma 32, fmul 0, prmt 4
func.func @u4_bf16_groups(%w: vector<1x4xi32>, %s: vector<1x2xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w scales(%s : vector<1x2xi32>)
      {mma = #hquant.sync_mma<m16n8k16, bf16>, weight = #hquant.format<u4>, scale = #hquant.format<bf16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// An integer zero point goes under the same exponent: prmt makes 1024 + z, which is
// subtracted in place of the constant. No instruction a register more.
// CHECK-LABEL: func @u4_f16_zeros
// CHECK: %[[Z:.*]] = vector.extract %{{.*}}[0, 0] : i32 from vector<1x1xi32>
// CHECK: llvm.mlir.constant(100 : i32)
// CHECK: llvm.mlir.constant(16448 : i32)
// CHECK: %[[P:.*]] = nvvm.prmt <default>
// CHECK: %[[M:.*]] = llvm.bitcast %[[P]]
// CHECK: %[[OFFSET:.*]] = llvm.fneg %[[M]]
// CHECK: %[[C:.*]] = llvm.mlir.constant(dense<9.600000e+02> : vector<2xf16>)
// CHECK: llvm.fadd %[[OFFSET]], %[[C]]
// COUNT-LABEL: func @u4_f16_zeros
// COUNT: and 16, or 16, lshr 8, fadd 10, fma 8, fmul 0, prmt 2
func.func @u4_f16_zeros(%w: vector<1x4xi32>, %z: vector<1x1xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w zero_points(%z : vector<1x1xi32>)
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// Float zero points of the operand's type: one subtraction more.
// CHECK-LABEL: func @u4_f16_float_zeros
// CHECK: llvm.mlir.constant(dense<-1.024000e+03> : vector<2xf16>)
// CHECK: llvm.mlir.constant(dense<-6.400000e+01> : vector<2xf16>)
// COUNT-LABEL: func @u4_f16_float_zeros
// COUNT: and 16, or 16, lshr 8, fadd 24, fma 8, fmul 16, prmt 4
func.func @u4_f16_float_zeros(%w: vector<1x4xi32>, %s: vector<1x1xi32>, %z: vector<1x1xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w scales(%s : vector<1x1xi32>) zero_points(%z : vector<1x1xi32>)
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>, float_zero_points}
      : vector<1x4xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// Of another type: the difference is taken in f32 and rounded once.
// CHECK-LABEL: func @u4_f16_bf16_zeros
// CHECK: llvm.bitcast %{{.*}} : i16 to bf16
// CHECK: llvm.fpext %{{.*}} : bf16 to f32
// CHECK-COUNT-32: llvm.fptrunc %{{.*}} : f32 to f16
// CHECK-NOT: llvm.fptrunc
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
// COUNT: and 32, or 32, lshr 27, fadd 16, fma 0, fmul 0, prmt 0
func.func @u3_f16(%w: vector<1x3xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u3>, scale = #hquant.format<f16>}
      : vector<1x3xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// CHECK-LABEL: func @u3_bf16
// CHECK: dense<-1.320000e+02> : vector<2xbf16>
// COUNT-LABEL: func @u3_bf16
// COUNT: and 32, or 32, lshr 27, fadd 0, fma 16, fmul 0, prmt 0
func.func @u3_bf16(%w: vector<1x3xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, bf16>, weight = #hquant.format<u3>, scale = #hquant.format<bf16>}
      : vector<1x3xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// CHECK-LABEL: func @u5_f16
// CHECK: dense<-1.040000e+03> : vector<2xf16>
// COUNT-LABEL: func @u5_f16
// COUNT: and 32, or 32, lshr 23, fadd 16, fma 0, fmul 0, prmt 0
func.func @u5_f16(%w: vector<1x5xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u5>, scale = #hquant.format<f16>}
      : vector<1x5xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// CHECK-LABEL: func @u5_bf16
// CHECK: dense<-1.440000e+02> : vector<2xbf16>
// COUNT-LABEL: func @u5_bf16
// COUNT: and 32, or 32, lshr 23, fadd 0, fma 16, fmul 0, prmt 0
func.func @u5_bf16(%w: vector<1x5xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, bf16>, weight = #hquant.format<u5>, scale = #hquant.format<bf16>}
      : vector<1x5xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// CHECK-LABEL: func @u6_f16
// CHECK: dense<-1.056000e+03> : vector<2xf16>
// COUNT-LABEL: func @u6_f16
// COUNT: and 32, or 32, lshr 22, fadd 16, fma 0, fmul 0, prmt 0
func.func @u6_f16(%w: vector<1x6xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u6>, scale = #hquant.format<f16>}
      : vector<1x6xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// CHECK-LABEL: func @u6_bf16
// CHECK: dense<-1.600000e+02> : vector<2xbf16>
// COUNT-LABEL: func @u6_bf16
// COUNT: and 32, or 32, lshr 22, fadd 0, fma 16, fmul 0, prmt 0
func.func @u6_bf16(%w: vector<1x6xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, bf16>, weight = #hquant.format<u6>, scale = #hquant.format<bf16>}
      : vector<1x6xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// CHECK-LABEL: func @u7_f16
// CHECK: dense<-1.088000e+03> : vector<2xf16>
// COUNT-LABEL: func @u7_f16
// COUNT: and 48, or 48, lshr 31, fadd 16, fma 0, fmul 0, prmt 0
func.func @u7_f16(%w: vector<1x7xi32>) -> vector<1x4x4xi32> {
  %a = hquant.dequant %w
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u7>, scale = #hquant.format<f16>}
      : vector<1x7xi32> -> vector<1x4x4xi32>
  return %a : vector<1x4x4xi32>
}

// CHECK-LABEL: func @u7_bf16
// CHECK: dense<-1.920000e+02> : vector<2xbf16>
// COUNT-LABEL: func @u7_bf16
// COUNT: and 48, or 48, lshr 31, fadd 0, fma 16, fmul 0, prmt 0
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
// COUNT: and 64, or 64, lshr 32, fadd 64, fma 32, fmul 64, prmt 64
func.func @units(%w: vector<4x4xi32>, %s: vector<4x4xi32>, %z: vector<4x4xi32>) -> vector<4x4x4xi32> {
  %a = hquant.dequant %w scales(%s : vector<4x4xi32>) zero_points(%z : vector<4x4xi32>)
      {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>}
      : vector<4x4xi32> -> vector<4x4x4xi32>
  return %a : vector<4x4x4xi32>
}
