// Round trip of the ops that pack and gather on the device.
//
// RUN: humming-opt %s | humming-opt | FileCheck %s

// CHECK-LABEL: func @gather
func.func @gather(%x: tensor<?x4096xf16>, %order: tensor<4128xi32>) -> tensor<?x4128xf16> {
  // CHECK: hquant.gather %{{.*}}, %{{.*}} : tensor<?x4096xf16>, tensor<4128xi32> -> tensor<?x4128xf16>
  %g = hquant.gather %x, %order : tensor<?x4096xf16>, tensor<4128xi32> -> tensor<?x4128xf16>
  return %g : tensor<?x4128xf16>
}

// CHECK-LABEL: func @tile
func.func @tile(%p: !llvm.ptr<1>, %i: i32, %u: i64) {
  // CHECK: hquant.pack_unit %{{.*}}[%{{.*}}, %{{.*}}] bounds[%{{.*}}, %{{.*}}] stride %{{.*}} to %{{.*}} unit %{{.*}} {activation_bits = 16 : i64, granule = 2 : i64, weight_bits = 3 : i64}
  hquant.pack_unit %p[%i, %i] bounds [%i, %i] stride %i to %p unit %u
      {activation_bits = 16, weight_bits = 3, granule = 2} : !llvm.ptr<1> to !llvm.ptr<1>
  // CHECK: hquant.gather_row %{{.*}} by %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] bounds[%{{.*}}, %{{.*}}] source_bound %{{.*}} strides[%{{.*}}, %{{.*}}] {element_bits = 16 : i64, granule = 16 : i64}
  hquant.gather_row %p by %p to %p[%i, %i] bounds [%i, %i] source_bound %i strides [%i, %i]
      {element_bits = 16, granule = 16} : !llvm.ptr<1>, !llvm.ptr<1>, !llvm.ptr<1>
  return
}
