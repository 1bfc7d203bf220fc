// RUN: humming-opt %s "--pass-pipeline=builtin.module(gpu.module(hquant-check-resources))" --split-input-file --verify-diagnostics

// expected-error @+1 {{expected an #nvvm.target, whose limits are checked}}
gpu.module @no_target {}

// -----

// expected-error @+1 {{unknown chip: expected one of}}
gpu.module @unknown_chip [#nvvm.target<chip = "sm_60">] {}

// -----

// The same kernel fits sm_80 (hquant-check-resources.mlir).
gpu.module @kernels [#nvvm.target<chip = "sm_75">] {
  // expected-error @+1 {{expected at most 65536 bytes of shared memory on sm_75, got 98304; take fewer stages or a smaller block}}
  gpu.func @stages() workgroup(%a: memref<3x32768xi8, #gpu.address_space<workgroup>>, %s: memref<128xi8, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_75">] {
  // expected-error @+1 {{expected at most 65536 bytes of shared memory on sm_75, got 65664}}
  gpu.func @scratch() workgroup(%s: memref<65600xi8, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    gpu.return
  }
}

// -----

// Extents whose product does not fit 64 bits.
gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
  // expected-error @+1 {{expected at most 232448 bytes of shared memory on sm_90, got 2147483648}}
  gpu.func @huge() workgroup(%s: memref<4294967296x4294967296xi8, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
  // expected-error @+1 {{expected workgroup buffers of i8 and static shape, got 'memref<?xi8}}
  gpu.func @dynamic() workgroup(%s: memref<?xi8, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
  // expected-error @+1 {{expected workgroup buffers of i8 and static shape, got 'memref<16xf32}}
  gpu.func @element() workgroup(%s: memref<16xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
  // expected-error @+1 {{expected a known_block_size}}
  gpu.func @block() kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
  // expected-error @+1 {{expected a multiple of 32 threads, at most 1024, got a block of 48, 1, 1}}
  gpu.func @warps() kernel attributes {known_block_size = array<i32: 48, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
  // expected-error @+1 {{expected a multiple of 32 threads, at most 1024, got a block of 1024, 2147483647, 2147483647}}
  gpu.func @threads() kernel attributes {known_block_size = array<i32: 1024, 2147483647, 2147483647>} {
    gpu.return
  }
}
