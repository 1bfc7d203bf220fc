//===- Passes.td - Conversions between stages --------------*- tablegen -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_CONVERSION_PASSES
#define HUMMING_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Import (stage 0 to 1)
//===----------------------------------------------------------------------===//

def ConvertLinalgToHQuantPass : Pass<"convert-linalg-to-hquant"> {
  let summary = "Turn matmuls of dequantized weights into hquant.matmul (stage 0 to 1)";
  let description = [{
    Recognises `linalg.matmul` whose second operand is an `hquant.dequantize`,
    used transposed: by an indexing map of its own (what
    `linalg.matmul_transpose_b` was) or through a `linalg.transpose`. The
    accumulator must start at zero or at a bias: a `linalg.broadcast` over the
    rows of `[N]` values of the result's type, or of an `arith.extf` of them. A
    single `arith.truncf` of an f32 result is taken in, so that the sum is rounded
    once; another f32 result stays f32 for `hquant-fuse-epilogue`.

    ```mlir
    %f = hquant.dequantize %w scales(%s : tensor<64x1xbf16>)
           quant_type = <u4, scale = bf16, group = 128>
           : tensor<64x128xi4> -> tensor<64x128xbf16>
    %zero = arith.constant dense<0.0> : tensor<4x64xf32>
    %c = linalg.matmul
           indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                            affine_map<(m, n, k) -> (n, k)>,
                            affine_map<(m, n, k) -> (m, n)>]
           ins(%x, %f : tensor<4x128xbf16>, tensor<64x128xbf16>)
           outs(%zero : tensor<4x64xf32>) -> tensor<4x64xf32>
    %r = arith.truncf %c : tensor<4x64xf32> to tensor<4x64xbf16>
    ==>
    %r = hquant.matmul %x, %w scales(%s : tensor<64x1xbf16>)
           quant_type = <u4, scale = bf16, group = 128>
           : tensor<4x128xbf16>, tensor<64x128xi4> -> tensor<4x64xbf16>
    ```

    What is not recognised stays as it is; a missed remark of category
    `HummingMissed` says why (`--remarks-filter=HummingMissed`).
  }];
  let statistics = [
    Statistic<"numConverted", "num-converted", "Number of matmuls converted">,
    Statistic<"numMissed", "num-missed", "Number of matmuls left as they are">
  ];
  let dependentDialects = ["::humming::hquant::HQuantDialect"];
}

//===----------------------------------------------------------------------===//
// Tiles and threads (stage 2 to 4)
//===----------------------------------------------------------------------===//

def ConvertHQuantToTilesPass : Pass<"convert-hquant-to-tiles", "::mlir::ModuleOp"> {
  let summary = "Turn configured matmuls into one block's program (stage 2 to 3)";
  let description = [{
    Replaces each function that holds one configured `hquant.matmul` on packed
    operands by a `gpu.func` of the same name in a `gpu.module` of the name given
    by `module`: block and warp coordinates, an `scf.for` over K with one buffer a
    tile, copies before a barrier, fragment ops, a barrier, and the epilogue. The
    program is obviously right and slow; `hquant-pipeline-copies` overlaps it.

    ```mlir
    func.func @layer(%x: tensor<?x4096xbf16>, %w: tensor<64x64x512xi32, #layout>,
                     %s: tensor<...>) -> tensor<?x4096xbf16> {
      %c = hquant.matmul %x, %w scales(%s : ...) quant_type = ...
             lowering_config = <...> : ...
      return %c
    }
    ==>
    gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
      gpu.func @layer(%x: !llvm.ptr<1>, %w: !llvm.ptr<1>, %scales: !llvm.ptr<1>,
                      %zero_points: !llvm.ptr<1>, %bias: !llvm.ptr<1>,
                      %c: !llvm.ptr<1>, %workspace: !llvm.ptr<1>, %m: i32, %n: i32,
                      %k: i32, %ldx: i32, %ldc: i32, %global_scales: !llvm.ptr<1>,
                      %activation_scales: !llvm.ptr<1>,
                      %activation_zero_points: !llvm.ptr<1>,
                      %weight_sums: !llvm.ptr<1>) workgroup(...) kernel {...}
    }
    ```

    A configured `hquant.quantize` likewise becomes a kernel of its own, with the
    arguments `x, codes, scales, zero_points` (pointers), `m, k, ldx, ldq` (i32).

    The kernel's arguments are the same for every dense matmul. N, K and M are
    run-time values; the types of the source only declare their divisibility.

    Precondition: stage 2; the function holds one matmul or quantize,
    `hquant.pack`s of its operands (which the host performs once a layer), and a return. Postcondition:
    stage 3, no tensors.
  }];
  let options = [
    Option<"moduleName", "module", "std::string", "\"kernels\"",
           "Name of the gpu.module that receives the kernels">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::humming::hquant::HQuantDialect"
  ];
}

def ConvertHQuantLayoutToTilesPass
    : Pass<"convert-hquant-layout-to-tiles", "::mlir::ModuleOp"> {
  let summary = "Turn packs and gathers into one block's program (stage 2 to 3)";
  let description = [{
    Replaces each function that holds one `hquant.pack` of weights, or one
    `hquant.gather`, and a return by a `gpu.func` of the same name in the `gpu.module`
    of the name given by `module`, which may be there already. Codes to be packed are
    a byte each, whatever their width.

    ```mlir
    func.func @pack(%w: tensor<?x4096xi4>) -> tensor<?x64x512xi32, #layout> {
      %p = hquant.pack %w : ...
      return %p
    }
    ==>
    gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
      gpu.func @pack(%source: !llvm.ptr<1>, %packed: !llvm.ptr<1>, %n: i32, %k: i32,
                     %lds: i32) kernel {... hquant.pack_unit ...}
    }
    ```

    A gather has the arguments x, order, gathered, m, k (of x), columns (of the
    result), ldx, ldg. Functions with other ops on tensors are left alone.

    Precondition: stage 2. Postcondition: stage 3 for these functions.
  }];
  let options = [
    Option<"moduleName", "module", "std::string", "\"kernels\"",
           "Name of the gpu.module that receives the kernels">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::humming::hquant::HQuantDialect"
  ];
}

def ConvertHQuantToNVVMPass : Pass<"convert-hquant-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower the tile stage to NVVM and LLVM (stage 3 to 4)";
  let description = [{
    Turns each kernel `gpu.func` into an `llvm.func` with `nvvm.kernel`, its
    workgroup buffers into one external array of dynamic shared memory, fragments
    into plain registers, and every copy, fragment, reduction and store op into
    `nvvm` and `llvm` ops. Buffers stand one after another, 128-byte aligned; the
    last one (`scratch`) shares its memory with the others, which are dead when it
    is used. The bytes needed are written to the attribute
    `hquant.shared_memory` of the function.

    ```mlir
    hquant.wait_copies 2                       nvvm.cp.async.wait.group 2
    %w = hquant.load_weights %tile[%s] ... ==> %v = llvm.load %p : vector<4xi32>
    ```

    Precondition: stage 3 with `hquant.dequant` and `hquant.mma` already lowered.
    Postcondition: stage 4, only `llvm` and `nvvm` ops; anything left over is an
    error at its location.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::scf::SCFDialect"];
}

#endif // HUMMING_CONVERSION_PASSES
