// RUN: humming-opt %s --hquant-map-mma --split-input-file | FileCheck %s

// K step outermost; the token tiles of a unit share the registers of A, the units
// those of B. Two units, two tiles, two steps: eight instructions.
// CHECK-LABEL: gpu.func @f16_k16
// CHECK-SAME: (%[[A:.*]]: vector<2x4x4xi32>, %[[B:.*]]: vector<2x4x2xi32>, %[[C:.*]]: vector<2x2x4xf32>)
// CHECK: %[[C0:.*]] = vector.extract %[[C]][0, 0, 0] : f32
// CHECK: %[[B0:.*]] = vector.extract %[[B]][0, 1, 0] : i32
// CHECK: %[[A0:.*]] = vector.extract %[[A]][0, 1, 0] : i32
// CHECK: %[[AH:.*]] = llvm.bitcast %[[A0]] : i32 to vector<2xf16>
// CHECK: %[[BH:.*]] = llvm.bitcast %[[B0]] : i32 to vector<2xf16>
// CHECK: %[[D:.*]] = nvvm.mma.sync A[%[[AH]], %{{.*}}, %{{.*}}, %{{.*}}] B[%[[BH]], %{{.*}}] C[%[[C0]], %{{.*}}, %{{.*}}, %{{.*}}] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
// CHECK: %[[D0:.*]] = llvm.extractvalue %[[D]][0]
// CHECK-COUNT-3: nvvm.mma.sync
// CHECK: vector.extract %[[A]][0, 2, 0]
// The next step goes on with what the first one gave.
// CHECK: nvvm.mma.sync {{.*}} C[%[[D0]],
// CHECK-COUNT-3: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: vector.from_elements {{.*}} : vector<2x2x4xf32>
// CHECK-NOT: hquant
gpu.module @kernels {
  gpu.func @f16_k16(%a: vector<2x4x4xi32>, %b: vector<2x4x2xi32>, %c: vector<2x2x4xf32>) {
    %d = hquant.mma %a, %b, %c steps 1 to 3 {kind = #hquant.sync_mma<m16n8k16, f16>}
        : vector<2x4x4xi32>, vector<2x4x2xi32>, vector<2x2x4xf32>
    gpu.return
  }
}

// -----

// bf16 registers go in as they are.
// CHECK-LABEL: gpu.func @bf16_k16
// CHECK-NOT: llvm.bitcast
// CHECK-COUNT-4: nvvm.mma.sync {{.*}} multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK-NOT: nvvm.mma.sync
gpu.module @kernels {
  gpu.func @bf16_k16(%a: vector<1x4x4xi32>, %b: vector<1x4x2xi32>, %c: vector<1x1x4xf32>) {
    %d = hquant.mma %a, %b, %c steps 0 to 4 {kind = #hquant.sync_mma<m16n8k16, bf16>}
        : vector<1x4x4xi32>, vector<1x4x2xi32>, vector<1x1x4xf32>
    gpu.return
  }
}

// -----

// A step is two instructions of half the depth: registers 0 and 1 of A with 0 of
// B, then 2 and 3 with 1.
// CHECK-LABEL: gpu.func @f16_k8
// CHECK-SAME: (%[[A:.*]]: vector<1x4x4xi32>, %[[B:.*]]: vector<1x4x2xi32>,
// CHECK-DAG: %[[A0:.*]] = vector.extract %[[A]][0, 0, 0]
// CHECK-DAG: %[[A1:.*]] = vector.extract %[[A]][0, 0, 1]
// CHECK-DAG: %[[A2:.*]] = vector.extract %[[A]][0, 0, 2]
// CHECK-DAG: %[[A3:.*]] = vector.extract %[[A]][0, 0, 3]
// CHECK-DAG: %[[B0:.*]] = vector.extract %[[B]][0, 0, 0]
// CHECK-DAG: %[[B1:.*]] = vector.extract %[[B]][0, 0, 1]
// CHECK: %[[H0:.*]] = llvm.bitcast %[[A0]]
// CHECK: %[[H1:.*]] = llvm.bitcast %[[A1]]
// CHECK: %[[HB0:.*]] = llvm.bitcast %[[B0]]
// CHECK: %[[D:.*]] = nvvm.mma.sync A[%[[H0]], %[[H1]]] B[%[[HB0]]] C[{{.*}}] {{.*}} shape = #nvvm.shape<m = 16, n = 8, k = 8>
// CHECK: %[[D0:.*]] = llvm.extractvalue %[[D]][0]
// CHECK: %[[H2:.*]] = llvm.bitcast %[[A2]]
// CHECK: %[[H3:.*]] = llvm.bitcast %[[A3]]
// CHECK: %[[HB1:.*]] = llvm.bitcast %[[B1]]
// CHECK: nvvm.mma.sync A[%[[H2]], %[[H3]]] B[%[[HB1]]] C[%[[D0]],
// CHECK-NOT: nvvm.mma.sync
gpu.module @kernels {
  gpu.func @f16_k8(%a: vector<1x4x4xi32>, %b: vector<1x4x2xi32>, %c: vector<1x1x4xf32>) {
    %d = hquant.mma %a, %b, %c steps 0 to 1 {kind = #hquant.sync_mma<m16n8k8, f16>}
        : vector<1x4x4xi32>, vector<1x4x2xi32>, vector<1x1x4xf32>
    gpu.return
  }
}
