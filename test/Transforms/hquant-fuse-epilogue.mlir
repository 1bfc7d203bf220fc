// RUN: humming-opt %s --hquant-fuse-epilogue --split-input-file | FileCheck %s
// RUN: humming-opt %s --hquant-fuse-epilogue --split-input-file --remarks-filter=HummingMissed 2>&1 | FileCheck %s --check-prefix=MISSED
// RUN: humming-opt %s --hquant-fuse-epilogue --split-input-file --hquant-verify-stage=stage=1 -o /dev/null

!x = tensor<?x128xf16>
!w = tensor<64x128xi4>
!s = tensor<64x1xf16>

// The rounding becomes the result's type.
// CHECK-LABEL: func @round
// CHECK-NEXT: %[[C:.*]] = hquant.matmul %{{.*}} -> tensor<?x64xbf16>
// CHECK-NEXT: return %[[C]]
func.func @round(%x: !x, %w: !w, %s: !s) -> tensor<?x64xbf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<?x64xf32>
  %r = arith.truncf %c : tensor<?x64xf32> to tensor<?x64xbf16>
  return %r : tensor<?x64xbf16>
}

// A broadcast vector that is added becomes the bias. Attributes stay.
// CHECK-LABEL: func @bias
// CHECK-SAME: %[[B:[a-z0-9]*]]: tensor<64xf16>
// CHECK: %[[C:.*]] = hquant.matmul %{{.*}} bias(%[[B]] : tensor<64xf16>) quant_type = {{.*}} {layer = "q"} :
// CHECK-NEXT: return %[[C]]
func.func @bias(%x: !x, %w: !w, %s: !s, %b: tensor<64xf16>, %e: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> {layer = "q"} : !x, !w -> tensor<?x64xf16>
  %bb = linalg.broadcast ins(%b : tensor<64xf16>) outs(%e : tensor<?x64xf16>) dimensions = [0]
  %r = arith.addf %bb, %c : tensor<?x64xf16>
  return %r : tensor<?x64xf16>
}

// -----

!x = tensor<?x128xf16>
!w = tensor<64x128xi4>
!s = tensor<64x1xf16>
#id = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>

// The same as linalg.add and linalg.generic.
// CHECK-LABEL: func @named_add
// CHECK: hquant.matmul %{{.*}} bias(%{{.*}} : tensor<64xf16>)
// CHECK-NEXT: return
func.func @named_add(%x: !x, %w: !w, %s: !s, %b: tensor<64xf16>, %e: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<?x64xf16>
  %bb = linalg.broadcast ins(%b : tensor<64xf16>) outs(%e : tensor<?x64xf16>) dimensions = [0]
  %r = linalg.add ins(%c, %bb : tensor<?x64xf16>, tensor<?x64xf16>) outs(%e : tensor<?x64xf16>) -> tensor<?x64xf16>
  return %r : tensor<?x64xf16>
}

// CHECK-LABEL: func @generic_broadcast
// CHECK: hquant.matmul %{{.*}} bias(%{{.*}} : tensor<64xf16>)
// CHECK-NEXT: return
func.func @generic_broadcast(%x: !x, %w: !w, %s: !s, %b: tensor<64xf16>, %e: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<?x64xf16>
  %bb = linalg.generic {indexing_maps = [#column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%b : tensor<64xf16>) outs(%e : tensor<?x64xf16>) {
  ^bb0(%i: f16, %o: f16):
    linalg.yield %i : f16
  } -> tensor<?x64xf16>
  %r = arith.addf %c, %bb : tensor<?x64xf16>
  return %r : tensor<?x64xf16>
}

// CHECK-LABEL: func @generic_add
// CHECK: hquant.matmul %{{.*}} bias(%{{.*}} : tensor<64xf16>)
// CHECK-NEXT: return
func.func @generic_add(%x: !x, %w: !w, %s: !s, %b: tensor<64xf16>, %e: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<?x64xf16>
  %r = linalg.generic {indexing_maps = [#column, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%b, %c : tensor<64xf16>, tensor<?x64xf16>) outs(%e : tensor<?x64xf16>) {
  ^bb0(%i: f16, %j: f16, %o: f16):
    %a = arith.addf %j, %i : f16
    linalg.yield %a : f16
  } -> tensor<?x64xf16>
  return %r : tensor<?x64xf16>
}

// -----

!x = tensor<?x128xf16>
!w = tensor<64x128xi4>
!s = tensor<64x1xf16>

// A chain in f32: first the bias, then the rounding; the bias is the vector
// before its extension.
// CHECK-LABEL: func @chain
// CHECK-SAME: %[[B:[a-z0-9]*]]: tensor<64xf16>
// CHECK: %[[C:.*]] = hquant.matmul %{{.*}} bias(%[[B]] : tensor<64xf16>) {{.*}} -> tensor<?x64xf16>
// CHECK-NEXT: return %[[C]]
func.func @chain(%x: !x, %w: !w, %s: !s, %b: tensor<64xf16>, %e: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<?x64xf32>
  %bb = linalg.broadcast ins(%b : tensor<64xf16>) outs(%e : tensor<?x64xf16>) dimensions = [0]
  %b32 = arith.extf %bb : tensor<?x64xf16> to tensor<?x64xf32>
  %a = arith.addf %c, %b32 : tensor<?x64xf32>
  %r = arith.truncf %a : tensor<?x64xf32> to tensor<?x64xf16>
  return %r : tensor<?x64xf16>
}

// An f32 bias that was never f16 stays: rounding it would change the result.
// CHECK-LABEL: func @wide_bias
// CHECK: hquant.matmul %{{.*}} bias(%{{.*}} : tensor<64xf32>) {{.*}} -> tensor<?x64xf32>
// CHECK-NEXT: arith.truncf
// MISSED: [Missed] FuseEpilogue | Category:HummingMissed{{.*}}Reason="expected a bias that was extended from the type that the result is rounded to"
func.func @wide_bias(%x: !x, %w: !w, %s: !s, %b: tensor<64xf32>, %e: tensor<?x64xf32>) -> tensor<?x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<?x64xf32>
  %bb = linalg.broadcast ins(%b : tensor<64xf32>) outs(%e : tensor<?x64xf32>) dimensions = [0]
  %a = arith.addf %c, %bb : tensor<?x64xf32>
  %r = arith.truncf %a : tensor<?x64xf32> to tensor<?x64xf16>
  return %r : tensor<?x64xf16>
}

// -----

!x = tensor<4x128xf16>
!w = tensor<64x128xi4>
!s = tensor<64x1xf16>

// CHECK-LABEL: func @two_uses
// CHECK: hquant.matmul %{{.*}} -> tensor<4x64xf32>
// CHECK-NEXT: arith.truncf
// MISSED: Reason="expected one use of the result, got 2"
func.func @two_uses(%x: !x, %w: !w, %s: !s) -> (tensor<4x64xf32>, tensor<4x64xf16>) {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<4x64xf32>
  %r = arith.truncf %c : tensor<4x64xf32> to tensor<4x64xf16>
  return %c, %r : tensor<4x64xf32>, tensor<4x64xf16>
}

// CHECK-LABEL: func @twice
// CHECK: arith.addf
// MISSED: Reason="expected one use of the result, got 2"
func.func @twice(%x: !x, %w: !w, %s: !s) -> tensor<4x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<4x64xf16>
  %r = arith.addf %c, %c : tensor<4x64xf16>
  return %r : tensor<4x64xf16>
}

// CHECK-LABEL: func @residual
// CHECK: arith.addf
// MISSED: Reason="expected an addition of a vector that is broadcast over the tokens"
func.func @residual(%x: !x, %w: !w, %s: !s, %y: tensor<4x64xf16>) -> tensor<4x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<4x64xf16>
  %r = arith.addf %c, %y : tensor<4x64xf16>
  return %r : tensor<4x64xf16>
}

// A vector over the tokens is no bias.
// CHECK-LABEL: func @tokens
// CHECK: arith.addf
// MISSED: Reason="expected an addition of a vector that is broadcast over the tokens"
func.func @tokens(%x: !x, %w: !w, %s: !s, %b: tensor<4xf16>, %e: tensor<4x64xf16>) -> tensor<4x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<4x64xf16>
  %bb = linalg.broadcast ins(%b : tensor<4xf16>) outs(%e : tensor<4x64xf16>) dimensions = [1]
  %r = arith.addf %c, %bb : tensor<4x64xf16>
  return %r : tensor<4x64xf16>
}

// CHECK-LABEL: func @second_bias
// CHECK: hquant.matmul
// CHECK: arith.addf
// MISSED: Reason="expected a matmul without bias before an addition"
func.func @second_bias(%x: !x, %w: !w, %s: !s, %b: tensor<64xf16>, %e: tensor<4x64xf16>) -> tensor<4x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) bias(%b : tensor<64xf16>) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<4x64xf16>
  %bb = linalg.broadcast ins(%b : tensor<64xf16>) outs(%e : tensor<4x64xf16>) dimensions = [0]
  %r = arith.addf %c, %bb : tensor<4x64xf16>
  return %r : tensor<4x64xf16>
}

// CHECK-LABEL: func @narrow
// CHECK: arith.truncf
// MISSED: Reason="expected a rounding from f32 to f16 or bf16"
func.func @narrow(%x: !x, %w: !w, %s: !s) -> tensor<4x64xf8E4M3FN> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<4x64xf32>
  %r = arith.truncf %c : tensor<4x64xf32> to tensor<4x64xf8E4M3FN>
  return %r : tensor<4x64xf8E4M3FN>
}

// CHECK-LABEL: func @toward_zero
// CHECK: arith.truncf
// MISSED: Reason="expected a rounding to nearest even"
func.func @toward_zero(%x: !x, %w: !w, %s: !s) -> tensor<4x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<4x64xf32>
  %r = arith.truncf %c toward_zero : tensor<4x64xf32> to tensor<4x64xf16>
  return %r : tensor<4x64xf16>
}

// The matmul is not moved into a loop.
// CHECK-LABEL: func @loop
// CHECK: hquant.matmul
// CHECK: scf.for
// CHECK: arith.truncf
// MISSED: Reason="expected the use of the result in the matmul's block"
func.func @loop(%x: !x, %w: !w, %s: !s, %n: index, %init: tensor<4x64xf16>) -> tensor<4x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<4x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%a = %init) -> tensor<4x64xf16> {
    %r = arith.truncf %c : tensor<4x64xf32> to tensor<4x64xf16>
    scf.yield %r : tensor<4x64xf16>
  }
  return %l : tensor<4x64xf16>
}

// No opportunity, no remark: what follows is neither.
// CHECK-LABEL: func @other_use
// MISSED-NOT: Missed
func.func @other_use(%x: !x, %w: !w, %s: !s) -> tensor<4x64xf16> {
  %c = hquant.matmul %x, %w scales(%s : !s) quant_type = <u4, scale = f16, group = 128> : !x, !w -> tensor<4x64xf16>
  %r = arith.negf %c : tensor<4x64xf16>
  return %r : tensor<4x64xf16>
}
