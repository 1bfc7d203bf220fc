// RUN: humming-opt %s "--pass-pipeline=builtin.module(gpu.module(gpu.func(hquant-pipeline-copies)))" --split-input-file --verify-diagnostics

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  // expected-error @+1 {{expected the attribute hquant.lowering_config, which gives the number of stages}}
  gpu.func @no_config(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @one_stage(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 1, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // expected-error @+1 {{expected 2 to 8 stages, got 1}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @many_stages(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 65536, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // expected-error @+1 {{expected 2 to 8 stages, got 65536}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @sync_stages(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = sync>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // expected-error @+1 {{expected 2 stages for copies through registers, got 3}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @no_barrier(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // expected-error @+1 {{expected copies, a barrier, the computation and a barrier before the end of the K loop}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @one_barrier(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // expected-error @+1 {{expected copies, a barrier, the computation and a barrier before the end of the K loop}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @after_barrier(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // expected-error @+1 {{expected copies, a barrier, the computation and a barrier before the end of the K loop}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
      %z = arith.addi %i, %c1 : i32
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @late_copy(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      // expected-error @+1 {{expected all copies before the loop's first barrier}}
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %u
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @pipelined(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-error @+1 {{expected a copy without stage and async; is the loop pipelined already?}}
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32, async} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @step(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    // expected-error @+1 {{expected a K loop over i32 in steps of one}}
    scf.for %i = %c0 to %n step %c2 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @index(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    // expected-error @+1 {{expected a K loop over i32 in steps of one}}
    scf.for %i = %i0 to %i1 step %i1 {
      %j = arith.index_cast %i : index to i32
      hquant.copy_tile %w[%c0, %j] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @i64(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    // expected-error @+1 {{expected a K loop over i32 in steps of one}}
    scf.for %i = %i0 to %i1 step %i1 : i64 {
      %j = arith.trunci %i : i64 to i32
      hquant.copy_tile %w[%c0, %j] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @carried(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (i32) : i32 {
      // expected-error @+1 {{expected operands that depend on the trip alone, got a value carried by the K loop}}
      hquant.copy_tile %w[%c0, %a] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
      scf.yield %a : i32
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @loaded(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-note @+1 {{this is none}}
      %v = llvm.load %p : !llvm.ptr<3> -> i32
      // expected-error @+1 {{expected operands that depend on the trip through pure operations}}
      hquant.copy_tile %w[%c0, %v] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @region(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %b = arith.cmpi eq, %i, %c0 : i32
      // expected-note @+1 {{this is none}}
      %v = scf.if %b -> i32 {
        scf.yield %c1 : i32
      } else {
        scf.yield %c0 : i32
      }
      // expected-error @+1 {{expected operands that depend on the trip through pure operations}}
      hquant.copy_tile %w[%c0, %v] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @argument(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-error @+1 {{expected a tile that is a workgroup buffer of the kernel}}
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %m
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @allocated(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = memref.alloc() : !tile
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-error @+1 {{expected a tile that is a workgroup buffer of the kernel}}
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %x
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @used_after(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
    }
    // expected-error @+1 {{expected the copied tile to be used inside the K loop only}}
    %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @read_plainly(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %z = arith.constant 0 : index
      // expected-error @+1 {{expected the copied tile to be read by fragment loads only, and filled by one copy}}
      %q = memref.load %t[%z] : !tile
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = memref<2048xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @copied_twice(%w: !llvm.ptr<1>, %n: i32, %p: !llvm.ptr<3>, %m: memref<2048xi8, #gpu.address_space<workgroup>>) workgroup(%t: !tile, %u: !tile) kernel attributes {
      hquant.lowering_config = #hquant.lowering_config<block = [64, 8, 64], stages = 3, copy = cp.async>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      // expected-error @+1 {{expected the copied tile to be read by fragment loads only, and filled by one copy}}
      hquant.copy_tile %w[%c0, %i] bounds[%n, %n] stride %n to %t
          {cell_bytes = 2048, tile_rows = 1, tile_columns = 1, granule = 16, threads = 32} : !llvm.ptr<1> to !tile
      gpu.barrier
      %q = hquant.load_weights %t unit %c0 slab %c0 {slabs = 1} : !tile -> vector<1x4xi32>
      gpu.barrier
    }
    gpu.return
  }
}
