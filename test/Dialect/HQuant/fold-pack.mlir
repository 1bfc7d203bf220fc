// RUN: humming-opt %s --canonicalize | FileCheck %s

// Constants are packed at compile time. The expected words follow from the
// layout in docs/HQuant.md by hand; long constants print as little-endian bytes.

#weights = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>
#weights1 = #hquant.packed_layout<activation_bits = 16, weight_bits = 1, role = weights>
#scales = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = scales>
#zero_points = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = zero_points>

// Row 0, k 0..3 hold 1, 2, 3, 4. Lane 0 (g = 0, t = 0) has k 0 and 1 in register
// 0 of step 0: nibbles at bits 0 and 16, so word 0 is 1 + (2 << 16). k 2 and 3 are
// those of lane 1, whose word 0 is 4 words further: 3 + (4 << 16).
// CHECK-LABEL: func @weights
// CHECK: arith.constant dense<"0x0100020000000000000000000000000003000400{{0+}}">
func.func @weights() -> tensor<1x1x512xi32, #weights> {
  %w = arith.constant dense<[[1, 2, 3, 4]]> : tensor<1x4xi4>
  %p = hquant.pack %w : tensor<1x4xi4> -> tensor<1x1x512xi32, #weights>
  return %p : tensor<1x1x512xi32, #weights>
}

// Row 8 is register 1 of lane 0: bits 4 and 20. -1 is code 15.
// CHECK-LABEL: func @row8
// CHECK: arith.constant dense<"0xF000F000{{0+}}">
func.func @row8() -> tensor<1x1x512xi32, #weights> {
  %w = arith.constant dense<[[0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [-1, -1]]> : tensor<9x2xi4>
  %p = hquant.pack %w : tensor<9x2xi4> -> tensor<1x1x512xi32, #weights>
  return %p : tensor<1x1x512xi32, #weights>
}

// All ones, no padding: a splat again.
// CHECK-LABEL: func @splat
// CHECK: arith.constant dense<-1> : tensor<1x1x128xi32, #packed_weights{{.*}}>
func.func @splat() -> tensor<1x1x128xi32, #weights1> {
  %w = arith.constant dense<true> : tensor<64x64xi1>
  %p = hquant.pack %w : tensor<64x64xi1> -> tensor<1x1x128xi32, #weights1>
  return %p : tensor<1x1x128xi32, #weights1>
}

// Rows 0, 1, 8 and 16 sit at positions 0, 8, 1 and 2 of the strip.
// CHECK-LABEL: func @scales
// CHECK: arith.constant dense<{{\[\[\[}}1.000000e+00, 9.000000e+00, 1.700000e+01, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 2.000000e+00,
func.func @scales() -> tensor<1x1x64xf16, #scales> {
  %s = arith.constant dense<[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [10.0],
                             [11.0], [12.0], [13.0], [14.0], [15.0], [16.0], [17.0]]> : tensor<17x1xf16>
  %p = hquant.pack %s : tensor<17x1xf16> -> tensor<1x1x64xf16, #scales>
  return %p : tensor<1x1x64xf16, #scales>
}

// Two groups of one row: group outermost.
// CHECK-LABEL: func @zero_points
// CHECK: arith.constant dense<"0x0F{{(0{126})}}07{{0+}}"> : tensor<2x1x64xi8, #packed_zero_points>
func.func @zero_points() -> tensor<2x1x64xi8, #zero_points> {
  %z = arith.constant dense<[[-1, 7]]> : tensor<1x2xi4>
  %p = hquant.pack %z : tensor<1x2xi4> -> tensor<2x1x64xi8, #zero_points>
  return %p : tensor<2x1x64xi8, #zero_points>
}

// CHECK-LABEL: func @round_trip
// CHECK-NEXT: arith.constant dense<{{\[\[}}1, -2, 3], [-4, 5, -6]]> : tensor<2x3xi4>
// CHECK-NEXT: return
func.func @round_trip() -> tensor<2x3xi4> {
  %w = arith.constant dense<[[1, -2, 3], [-4, 5, -6]]> : tensor<2x3xi4>
  %p = hquant.pack %w : tensor<2x3xi4> -> tensor<1x1x512xi32, #weights>
  %u = hquant.unpack %p : tensor<1x1x512xi32, #weights> -> tensor<2x3xi4>
  return %u : tensor<2x3xi4>
}

// A fold of constants that come in packed.
// CHECK-LABEL: func @unpack
// CHECK-NEXT: arith.constant dense<3> : tensor<1x2xi4>
func.func @unpack() -> tensor<1x2xi4> {
  %p = arith.constant dense<0x33333333> : tensor<1x1x512xi32, #weights>
  %u = hquant.unpack %p : tensor<1x1x512xi32, #weights> -> tensor<1x2xi4>
  return %u : tensor<1x2xi4>
}

// Resources stay resources.
// CHECK-LABEL: func @resource
// CHECK: arith.constant dense_resource<hquant_packed> : tensor<1x1x512xi32, #packed_weights{{.*}}>
func.func @resource() -> tensor<1x1x512xi32, #weights> {
  %w = arith.constant dense_resource<codes> : tensor<1x4xi4>
  %p = hquant.pack %w : tensor<1x4xi4> -> tensor<1x1x512xi32, #weights>
  return %p : tensor<1x1x512xi32, #weights>
}

// A blob that does not fit its type is left alone.
// CHECK-LABEL: func @short_resource
// CHECK: hquant.pack
func.func @short_resource() -> tensor<1x1x512xi32, #weights> {
  %w = arith.constant dense_resource<codes> : tensor<1x8xi4>
  %p = hquant.pack %w : tensor<1x8xi4> -> tensor<1x1x512xi32, #weights>
  return %p : tensor<1x1x512xi32, #weights>
}

// A splat may stand for more than any memory holds.
// CHECK-LABEL: func @huge
// CHECK: hquant.pack
func.func @huge() -> tensor<15625000x15625000x512xi32, #weights> {
  %w = arith.constant dense<0> : tensor<1000000000x1000000000xi4>
  %p = hquant.pack %w : tensor<1000000000x1000000000xi4> -> tensor<15625000x15625000x512xi32, #weights>
  return %p : tensor<15625000x15625000x512xi32, #weights>
}

// Plain weights keep their bytes.
// CHECK-LABEL: func @plain
// CHECK: arith.constant dense<{{\[\[}}1, -2, 3], [4, 5, -6]]> : tensor<2x3xi8, #{{.*}}>
func.func @plain() -> tensor<2x3xi8, #hquant.packed_layout<activation_bits = 8, weight_bits = 8, role = plain_weights>> {
  %w = arith.constant dense<[[1, -2, 3], [4, 5, -6]]> : tensor<2x3xi8>
  %p = hquant.pack %w : tensor<2x3xi8> -> tensor<2x3xi8, #hquant.packed_layout<activation_bits = 8, weight_bits = 8, role = plain_weights>>
  return %p : tensor<2x3xi8, #hquant.packed_layout<activation_bits = 8, weight_bits = 8, role = plain_weights>>
}

// CHECK: hquant_packed: "0x1000000001000200

{-#
  dialect_resources: {
    builtin: {
      codes: "0x0400000001020304"
    }
  }
#-}
