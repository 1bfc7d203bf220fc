// RUN: humming-opt %s --convert-hquant-layout-to-tiles | FileCheck %s
// RUN: humming-opt %s --humming-lower-to-nvvm | FileCheck %s --check-prefix=LLVM

#layout = #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>

module attributes {hquant.target = #nvvm.target<chip = "sm_80">} {

// A warp a unit: its number is 4 tiles and the warp.
// CHECK: gpu.module @kernels [#nvvm.target<chip = "sm_80">]
// CHECK: gpu.func @pack(%[[S:.*]]: !llvm.ptr<1>, %[[P:.*]]: !llvm.ptr<1>, %[[N:.*]]: i32, %[[K:.*]]: i32, %[[LDS:.*]]: i32) kernel
// CHECK: hquant.pack_unit %[[S]][%{{.*}}, %{{.*}}] bounds[%[[N]], %[[K]]] stride %[[LDS]] to %[[P]] unit %{{.*}} {activation_bits = 16 : i64, granule = 4 : i64, weight_bits = 4 : i64}
// LLVM: llvm.func @pack
// LLVM-COUNT-16: llvm.load
// LLVM: llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<1>
func.func @pack(%w: tensor<?x256xi4>) -> tensor<?x4x512xi32, #layout> {
  %p = hquant.pack %w : tensor<?x256xi4> -> tensor<?x4x512xi32, #layout>
  return %p : tensor<?x4x512xi32, #layout>
}

// 100 columns of 2 bytes: 8 bytes at a time.
// CHECK: gpu.func @gather(%[[X:.*]]: !llvm.ptr<1>, %[[O:.*]]: !llvm.ptr<1>, %[[G:.*]]: !llvm.ptr<1>, %[[M:.*]]: i32, %[[K:.*]]: i32, %[[C:.*]]: i32, %[[LDX:.*]]: i32, %[[LDG:.*]]: i32) kernel
// CHECK: hquant.gather_row %[[X]] by %[[O]] to %[[G]][%{{.*}}, %{{.*}}] bounds[%[[M]], %[[C]]] source_bound %[[K]] strides[%[[LDX]], %[[LDG]]] {element_bits = 16 : i64, granule = 8 : i64}
// LLVM: llvm.func @gather
// LLVM: llvm.store {{.*}} : vector<4xi16>, !llvm.ptr<1>
func.func @gather(%x: tensor<?x96xf16>, %order: tensor<100xi32>) -> tensor<?x100xf16> {
  %g = hquant.gather %x, %order : tensor<?x96xf16>, tensor<100xi32> -> tensor<?x100xf16>
  return %g : tensor<?x100xf16>
}

}
