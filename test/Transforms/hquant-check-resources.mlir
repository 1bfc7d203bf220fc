// RUN: humming-opt %s "--pass-pipeline=builtin.module(gpu.module(hquant-check-resources{explain}))" --verify-diagnostics | FileCheck %s

!half = memref<2x16384xi8, #gpu.address_space<workgroup>>
!odd = memref<100xi8, #gpu.address_space<workgroup>>
!scratch = memref<4096xi8, #gpu.address_space<workgroup>>
!large = memref<49152xi8, #gpu.address_space<workgroup>>

// CHECK: gpu.module @kernels
gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  // Buffers are rounded up to 128 bytes; the last one shares their memory.
  // expected-remark @+1 {{uses 32896 of 166912 bytes of shared memory on sm_80 and 128 threads}}
  gpu.func @stages() workgroup(%a: !half, %b: !odd, %s: !scratch) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    gpu.return
  }
  // expected-remark @+1 {{uses 49152 of 166912 bytes of shared memory on sm_80 and 64 threads}}
  gpu.func @scratch() workgroup(%a: !half, %s: !large) kernel attributes {known_block_size = array<i32: 32, 2, 1>} {
    gpu.return
  }
  // expected-remark @+1 {{uses 0 of}}
  gpu.func @none() kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    gpu.return
  }
}
