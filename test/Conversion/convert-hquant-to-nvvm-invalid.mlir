// RUN: humming-opt %s "--pass-pipeline=builtin.module(gpu.module(convert-hquant-to-nvvm))" --split-input-file --verify-diagnostics

// Anything that has no lowering is an error at its place.

gpu.module @kernels {
  // expected-error @+1 {{expected a kernel function}}
  gpu.func @no_kernel() {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{expected arguments of types that are passed to a kernel as they are, got 'memref<4xi8>'}}
  gpu.func @memref_argument(%m: memref<4xi8>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{expected arguments of types that are passed to a kernel as they are, got 'index'}}
  gpu.func @index_argument(%i: index) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{expected arguments of types that are passed to a kernel as they are, got 'tensor<4xf16>'}}
  gpu.func @tensor_argument(%i: tensor<4xf16>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{expected arguments of types that are passed to a kernel as they are, got 'vector<4xi32>'}}
  gpu.func @vector_argument(%i: vector<4xi32>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{expected no private buffers; values of a lane stay in registers}}
  gpu.func @private() private(%p: memref<4xf32, #gpu.address_space<private>>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{expected workgroup buffers of i8 and static shape, got 'memref<4xf32, #gpu.address_space<workgroup>>'}}
  gpu.func @float_buffer() workgroup(%p: memref<4xf32, #gpu.address_space<workgroup>>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{expected workgroup buffers of i8 and static shape, got 'memref<?xi8, #gpu.address_space<workgroup>>'}}
  gpu.func @dynamic_buffer() workgroup(%p: memref<?xi8, #gpu.address_space<workgroup>>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{expected buffers of less than 2 GiB, got 'memref<4294967296x4294967296xi8}}
  gpu.func @huge_buffer() workgroup(%p: memref<4294967296x4294967296xi8, #gpu.address_space<workgroup>>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{expected less than 1 GiB of buffers, got 2147483646 bytes}}
  gpu.func @huge_buffers() workgroup(%p: memref<1073741823xi8, #gpu.address_space<workgroup>>, %q: memref<1073741823xi8, #gpu.address_space<workgroup>>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @dequant() kernel {
    %w = arith.constant dense<0> : vector<1x4xi32>
    // expected-error @+1 {{failed to legalize operation 'hquant.dequant'}}
    %a = hquant.dequant %w {mma = #hquant.sync_mma<m16n8k16, f16>, weight = #hquant.format<u4>, scale = #hquant.format<f16>} : vector<1x4xi32> -> vector<1x4x4xi32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @mma() kernel {
    %a = arith.constant dense<0> : vector<1x4x4xi32>
    %b = arith.constant dense<0> : vector<1x4x2xi32>
    %c = arith.constant dense<0.0> : vector<1x1x4xf32>
    // expected-error @+1 {{failed to legalize operation 'hquant.mma'}}
    %d = hquant.mma %a, %b, %c steps 0 to 4 {kind = #hquant.sync_mma<m16n8k16, f16>} : vector<1x4x4xi32>, vector<1x4x2xi32>, vector<1x1x4xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @dynamic_position(%n: i32) workgroup(%t: memref<2048xi8, #gpu.address_space<workgroup>>) kernel {
    %a = hquant.load_weights %t unit %n slab %n {slabs = 1} : memref<2048xi8, #gpu.address_space<workgroup>> -> vector<1x4xi32>
    %x = gpu.thread_id x
    // expected-error @+1 {{failed to legalize operation 'vector.extract'}}
    %b = vector.extract %a[0, %x] : i32 from vector<1x4xi32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @row(%n: i32) workgroup(%t: memref<2048xi8, #gpu.address_space<workgroup>>) kernel {
    %a = hquant.load_weights %t unit %n slab %n {slabs = 1} : memref<2048xi8, #gpu.address_space<workgroup>> -> vector<1x4xi32>
    // expected-error @+1 {{failed to legalize operation 'vector.extract'}}
    %b = vector.extract %a[0] : vector<4xi32> from vector<1x4xi32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @poison_position(%n: i32) workgroup(%t: memref<2048xi8, #gpu.address_space<workgroup>>) kernel {
    %a = hquant.load_weights %t unit %n slab %n {slabs = 1} : memref<2048xi8, #gpu.address_space<workgroup>> -> vector<1x4xi32>
    // expected-error @+1 {{failed to legalize operation 'ub.poison'}}
    %b = vector.extract %a[0, -1] : i32 from vector<1x4xi32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @half_extract(%p: !llvm.ptr<1>) kernel {
    %a = llvm.load %p : !llvm.ptr<1> -> vector<4xf16>
    // expected-error @+1 {{failed to legalize operation 'vector.extract'}}
    %b = vector.extract %a[3] : f16 from vector<4xf16>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @half_elements(%a: f16) kernel {
    // expected-error @+1 {{failed to legalize operation 'vector.from_elements'}}
    %b = vector.from_elements %a, %a : vector<2xf16>
    gpu.return
  }
}

// -----

// Not taken apart into a thousand million registers.
gpu.module @kernels {
  gpu.func @huge_vector() kernel {
    // expected-error @+1 {{failed to legalize operation 'arith.constant'}}
    %a = arith.constant dense<0> : vector<1000000000xi32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @scalable_vector() kernel {
    // expected-error @+1 {{failed to legalize operation 'arith.constant'}}
    %a = arith.constant dense<0> : vector<[4]xi32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @other_vector_op(%n: i32) workgroup(%t: memref<2048xi8, #gpu.address_space<workgroup>>) kernel {
    %a = hquant.load_weights %t unit %n slab %n {slabs = 1} : memref<2048xi8, #gpu.address_space<workgroup>> -> vector<1x4xi32>
    // expected-error @+1 {{failed to legalize operation 'vector.shape_cast'}}
    %b = vector.shape_cast %a : vector<1x4xi32> to vector<4xi32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @index_constant() kernel {
    // expected-error @+1 {{failed to legalize operation 'arith.constant'}}
    %a = arith.constant 0 : index
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @wide_index(%p: !llvm.ptr<1>) kernel {
    %x = gpu.thread_id x
    // expected-error @+1 {{failed to legalize operation 'arith.index_cast'}}
    %i = arith.index_cast %x : index to i64
    llvm.store %i, %p : i64, !llvm.ptr<1>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @plain_load(%p: !llvm.ptr<1>) workgroup(%t: memref<16xi8, #gpu.address_space<workgroup>>) kernel {
    %x = gpu.thread_id x
    // expected-error @+1 {{failed to legalize operation 'memref.load'}}
    %v = memref.load %t[%x] : memref<16xi8, #gpu.address_space<workgroup>>
    llvm.store %v, %p : i8, !llvm.ptr<1>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @other_gpu_op() kernel {
    // expected-error @+1 {{failed to legalize operation 'gpu.lane_id'}}
    %l = gpu.lane_id
    gpu.return
  }
}

// -----

// A kernel is not needed for an op to be in the wrong place.
gpu.module @kernels {
  // expected-error @+1 {{failed to legalize operation 'func.func'}}
  func.func @outside() {
    hquant.commit_copies
    return
  }
}

// -----

gpu.module @kernels {
  gpu.func @tensor_op(%w: !llvm.ptr<1>) kernel {
    %x = tensor.empty() : tensor<64x64xi4>
    // expected-error @+1 {{failed to legalize operation 'hquant.pack'}}
    %p = hquant.pack %x : tensor<64x64xi4> -> tensor<1x1x512xi32, #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{expected no other symbol of the name of the shared memory, hquant_shared}}
  gpu.func @hquant_shared() kernel {
    gpu.return
  }
}
