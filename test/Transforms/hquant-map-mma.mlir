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

// -----

// Part of a step. Half a step of integers is an instruction of half the depth.
// CHECK-LABEL: gpu.func @half_s8
// CHECK-SAME: (%[[A:.*]]: vector<1x2x4xi32>, %[[B:.*]]: vector<1x2x2xi32>,
// CHECK-DAG: %[[A2:.*]] = vector.extract %[[A]][0, 1, 2]
// CHECK-DAG: %[[A3:.*]] = vector.extract %[[A]][0, 1, 3]
// CHECK-DAG: %[[B1:.*]] = vector.extract %[[B]][0, 1, 1]
// CHECK: nvvm.mma.sync A[%[[A2]], %[[A3]]] B[%[[B1]]] C[{{.*}}] {{.*}} shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK-NOT: nvvm.mma.sync
// CHECK-LABEL: gpu.func @half_turing
// CHECK: nvvm.mma.sync A[{{[^,]*}}] B[%[[B0:.*]]] C[{{.*}}] {{.*}} shape = #nvvm.shape<m = 8, n = 8, k = 16>
// CHECK: nvvm.mma.sync A[{{[^,]*}}] B[%[[B0]]] C[{{.*}}] {{.*}} shape = #nvvm.shape<m = 8, n = 8, k = 16>
// CHECK-NOT: nvvm.mma.sync
gpu.module @kernels {
  gpu.func @half_s8(%a: vector<1x2x4xi32>, %b: vector<1x2x2xi32>, %c: vector<1x1x4xi32>) {
    %d = hquant.mma %a, %b, %c steps 1 to 2 {kind = #hquant.sync_mma<m16n8k32, s8>, part = 1, parts = 2}
        : vector<1x2x4xi32>, vector<1x2x2xi32>, vector<1x1x4xi32>
    gpu.return
  }
  gpu.func @half_turing(%a: vector<1x2x4xi32>, %b: vector<1x2x2xi32>, %c: vector<1x1x4xi32>) {
    %d = hquant.mma %a, %b, %c steps 0 to 1 {kind = #hquant.sync_mma<m8n8k16, s8>, part = 0, parts = 2}
        : vector<1x2x4xi32>, vector<1x2x2xi32>, vector<1x1x4xi32>
    gpu.return
  }
}

// -----

// Half a step of 8-bit floats has zeros for the other half of A.
// CHECK-LABEL: gpu.func @half_e4m3
// CHECK-SAME: (%[[A:.*]]: vector<1x2x4xi32>, %[[B:.*]]: vector<1x2x2xi32>,
// CHECK-DAG: %[[A0:.*]] = vector.extract %[[A]][0, 0, 0]
// CHECK-DAG: %[[A1:.*]] = vector.extract %[[A]][0, 0, 1]
// CHECK-DAG: %[[Z2:.*]] = llvm.mlir.constant(0 : i32)
// CHECK-DAG: %[[Z3:.*]] = llvm.mlir.constant(0 : i32)
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"(%[[A0]], %[[A1]], %{{[^,]*}}, %{{[^,]*}}, %
gpu.module @kernels {
  gpu.func @half_e4m3(%a: vector<1x2x4xi32>, %b: vector<1x2x2xi32>, %c: vector<1x1x4xf32>) {
    %d = hquant.mma %a, %b, %c steps 0 to 1 {kind = #hquant.sync_mma<m16n8k32, e4m3>, part = 0, parts = 2}
        : vector<1x2x4xi32>, vector<1x2x2xi32>, vector<1x1x4xf32>
    gpu.return
  }
}

// -----

// A quarter of a step of s4 belongs to half the lanes of each quad.
// CHECK-LABEL: gpu.func @quarter_s4
// CHECK: %[[LANE:.*]] = nvvm.read.ptx.sreg.laneid
// CHECK: %[[UPPER:.*]] = llvm.and %[[LANE]],
// CHECK: %[[IS:.*]] = llvm.icmp "eq" %[[UPPER]],
// CHECK: %[[A2:.*]] = llvm.select %[[IS]],
// CHECK: %[[A3:.*]] = llvm.select %[[IS]],
// CHECK: nvvm.mma.sync A[%[[A2]], %[[A3]]] B[{{.*}}] C[{{.*}}] {{.*}} shape = #nvvm.shape<m = 16, n = 8, k = 32>
gpu.module @kernels {
  gpu.func @quarter_s4(%a: vector<1x1x4xi32>, %b: vector<1x1x2xi32>, %c: vector<1x1x4xi32>) {
    %d = hquant.mma %a, %b, %c steps 0 to 1 {kind = #hquant.sync_mma<m16n8k64, s4>, part = 3, parts = 4}
        : vector<1x1x4xi32>, vector<1x1x2xi32>, vector<1x1x4xi32>
    gpu.return
  }
}

// -----

// Pairs of f16 sums of 8-bit floats.
// CHECK-LABEL: gpu.func @half_sums_e4m3
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f16.e4m3.e4m3.f16"({{.*}}) : (i32, i32, i32, i32, i32, i32, vector<2xf16>, vector<2xf16>) -> !llvm.struct<(vector<2xf16>, vector<2xf16>)>
gpu.module @kernels {
  gpu.func @half_sums_e4m3(%a: vector<1x2x4xi32>, %b: vector<1x2x2xi32>, %c: vector<1x1x2xi32>) {
    %d = hquant.mma %a, %b, %c steps 0 to 1 {kind = #hquant.sync_mma<m16n8k32, e4m3, accumulator = f16>}
        : vector<1x2x4xi32>, vector<1x2x2xi32>, vector<1x1x2xi32>
    gpu.return
  }
}
