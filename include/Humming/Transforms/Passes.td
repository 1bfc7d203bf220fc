//===- Passes.td - Passes within a stage -------------------*- tablegen -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// This file is the manual of the passes; docs/Passes.md is generated from it.
// Stages and their contracts are in docs/HQuant.md.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TRANSFORMS_PASSES
#define HUMMING_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Configure (stage 1 to 2)
//===----------------------------------------------------------------------===//

def FuseEpiloguePass : Pass<"hquant-fuse-epilogue"> {
  let summary = "Take a bias and a rounding that follow into the matmul";
  let description = [{
    Absorbs the only use of an `hquant.matmul`, if it is

    - the addition of a vector over the features, broadcast over the tokens
      (`arith.addf` or `linalg.add` of a `linalg.broadcast` along dimension 0 or
      of the `linalg.generic` that does the same, or a `linalg.generic` that adds
      a vector read at `(m, n) -> (n)`): it becomes the bias;
    - `arith.truncf` of an f32 result to f16 or bf16: the result has that type.
      An f32 bias must be an `arith.extf` of that type.

    The kernel adds and rounds in registers. The result is rounded once, at the
    end: a rounding between sum and bias is dropped.

    ```mlir
    %c = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>)
           quant_type = <u4, scale = f16, group = 128>
           : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf32>
    %r = arith.truncf %c : tensor<?x64xf32> to tensor<?x64xf16>
    %b = linalg.broadcast ins(%bias : tensor<64xf16>)
           outs(%e : tensor<?x64xf16>) dimensions = [0]
    %d = arith.addf %r, %b : tensor<?x64xf16>
    ==>
    %d = hquant.matmul %x, %w scales(%s : tensor<64x1xf16>)
           bias(%bias : tensor<64xf16>)
           quant_type = <u4, scale = f16, group = 128>
           : tensor<?x128xf16>, tensor<64x128xi4> -> tensor<?x64xf16>
    ```

    Stages 1 and 2. An addition or rounding that cannot be taken in stays; a
    missed remark of category `HummingMissed` says why
    (`--remarks-filter=HummingMissed`).
  }];
  let statistics = [
    Statistic<"numFused", "num-fused", "Number of operations taken in">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::humming::hquant::HQuantDialect"];
}

def SelectLoweringConfigPass
    : Pass<"hquant-select-lowering-config", "::mlir::ModuleOp"> {
  let summary = "Choose how each matmul is lowered on a chip";
  let description = [{
    Writes `#hquant.lowering_config` on every `hquant.matmul` and
    `hquant.target = #nvvm.target<...>` on the module. The choice is the pure
    function `humming::chooseConfig` of problem and chip. It is explained in an
    analysis remark of category `HummingConfig`: chosen, runner-up, predicted
    bytes and time (`--remarks-filter=HummingConfig`, or the option `explain`).

    A matmul that has a config already keeps it, if it is legal on the chip.

    ```mlir
    %c = hquant.matmul %x, %w scales(%s : tensor<8192x64xbf16>)
           quant_type = <u4, scale = bf16, group = 128>
           : tensor<?x8192xbf16>, tensor<8192x8192xi4> -> tensor<?x8192xbf16>
    ==>
    module attributes {hquant.target = #nvvm.target<chip = "sm_80">}
    %c = hquant.matmul %x, %w scales(%s : tensor<8192x64xbf16>)
           quant_type = <u4, scale = bf16, group = 128>
           lowering_config = <mma = m16n8k16, block = [64, 16, 256], ...>
           : tensor<?x8192xbf16>, tensor<8192x8192xi4> -> tensor<?x8192xbf16>
    ```

    Precondition: stage 1. Postcondition: every matmul has a config that
    `humming::checkConfig` accepts. Fails at the op with the rule that is
    broken (P* for the problem, L* for the config; docs/HQuant.md lists them).
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"",
           "Chip to configure for, as sm_80; empty: the module's hquant.target">,
    Option<"config", "config", "std::string", "\"\"",
           "Keys that replace those of the choice, as stages=3,split_k=2">,
    Option<"m", "m", "int64_t", "0",
           "Tokens to choose for where the type does not say; 0: a small batch">,
    Option<"explain", "explain", "bool", "false",
           "Emit the explanation as a diagnostic remark too">
  ];
  let statistics = [
    Statistic<"numChosen", "num-chosen", "Number of matmuls configured">,
    Statistic<"numKept", "num-kept", "Number of configs found and kept">
  ];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

def PackWeightsPass : Pass<"hquant-pack-weights"> {
  let summary = "Bring weights, scales and zero points into the packed layout";
  let description = [{
    Puts `hquant.pack` before every `hquant.matmul` on logical operands. Packs of
    constants fold, so weights that are in the module are packed here; packs of
    other values stay for the host, which performs them once a layer.

    ```mlir
    %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xbf16>)
           quant_type = <u4, scale = bf16, group = 128>
           : tensor<?x4096xbf16>, tensor<4096x4096xi4> -> tensor<?x4096xbf16>
    ==>
    %pw = hquant.pack %w : tensor<4096x4096xi4> -> tensor<64x64x512xi32, #weights>
    %ps = hquant.pack %s : tensor<4096x32xbf16> -> tensor<32x64x64xbf16, #scales>
    %c = hquant.matmul %x, %pw scales(%ps : tensor<32x64x64xbf16, #scales>)
           quant_type = <u4, scale = bf16, group = 128>
           : tensor<?x4096xbf16>, tensor<64x64x512xi32, #weights>
           -> tensor<?x4096xbf16>
    ```

    The layout depends on the widths of activations and weights only, so this
    pass may run before or after the configs are chosen. Postcondition: every
    matmul has packed operands. Fails at a matmul whose granularity has no packed
    form (one scale for several rows).
  }];
  let statistics = [
    Statistic<"numPacked", "num-packed", "Number of matmuls rewritten">,
    Statistic<"numFolded", "num-folded", "Number of operands packed at compile time">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::humming::hquant::HQuantDialect"];
}

//===----------------------------------------------------------------------===//
// Tile (stage 3)
//===----------------------------------------------------------------------===//

def SpecializeWarpsPass : Pass<"hquant-specialize-warps", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Give the copies of the K loop to producer warps";
  let description = [{
    For kernels with `copy = bulk` or `tensor`. A warpgroup, or a warp, after the
    others makes the copies, up to `stages` trips ahead; a ring of barriers in
    workgroup memory says which stages are full and which are empty. With
    `producers = 0` the first of the other warps makes them, of trip i + stages - 2 in
    trip i, while the MMAs that end trip i run.

    ```mlir
    scf.for %i = ... {                     hquant.ring_init %ring
      hquant.copy_tile ... to %t           scf.if %producer {
      gpu.barrier                            scf.for %i = ... {
      %f = hquant.load_weights %t ...  ==>     hquant.ring_acquire %ring[%s] phase %p
      ...                                      hquant.copy_tile ... to %t[%s]
      gpu.barrier                              hquant.ring_commit %ring[%s]
    }                                        }
    // epilogue                            } else {
                                             scf.for %i = ... {
                                               hquant.ring_wait %ring[%s] phase %p
                                               %f = hquant.load_weights %t[%s] ...
                                               ...
                                               hquant.ring_release %ring[%s]
                                             }
                                             // epilogue
                                           }
    ```

    MMAs of a warpgroup start the next trip early: where their weights come from
    registers, its first dequantization runs under the last MMA; where both operands
    lie in workgroup memory, the MMAs stay in flight and the stage is released in the
    next trip, or, with partial sums to scale, two warpgroups take turns.

    With `multicast` two blocks fill a stage once it is empty in both, so the consumers
    release it to both, and no block ends before the other has done so.

    Precondition: stage 3 as `convert-hquant-to-tiles` leaves it. Postcondition: stage
    3; the attribute `hquant.consumers` of the kernel is the number of threads that
    multiply, and barriers of the epilogue are theirs alone.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::scf::SCFDialect"];
}

def PipelineCopiesPass : Pass<"hquant-pipeline-copies", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Overlap the copies of the K loop with its computation";
  let description = [{
    Gives each tile as many buffers as the kernel's config has stages. With
    `copy = cp.async` the tiles of trip i + stages - 1 are copied while trip i is
    computed, one cp.async group a trip; with `copy = sync` (two stages) the next
    tile waits in registers.

    ```mlir
    scf.for %i = ... {                     copies of trips 0 .. S-2, a group each
      hquant.copy_tile ... to %t           scf.for %i = ... iter_args(%r, %w) {
      gpu.barrier                            hquant.wait_copies S-2
      %f = hquant.load_weights %t ...  ==>   gpu.barrier
      ...                                    hquant.copy_tile ... to %t[%w] {async}
      gpu.barrier                            hquant.commit_copies
    }                                        %f = hquant.load_weights %t[%r] ...
                                           }
                                           hquant.wait_copies 0
    ```

    Precondition: stage 3 as `convert-hquant-to-tiles` leaves it: a loop of copies,
    a barrier, the computation and a barrier. Postcondition: stage 3; waits and
    buffers are explicit, one barrier a trip.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::scf::SCFDialect",
                           "::humming::hquant::HQuantDialect"];
}

def LowerDequantPass : Pass<"hquant-lower-dequant"> {
  let summary = "Turn fragment dequantization into bit and packed-float operations";
  let description = [{
    Rewrites each `hquant.dequant` into masks, ORs with a magic exponent and packed
    f16 or bf16 arithmetic on the registers of the fragment; integer zero points are
    folded into the subtracted constant, scales into a packed multiply.

    ```mlir
    %a = hquant.dequant %words {weight = #hquant.format<u4>, ...}
    ==>
    %w = vector.extract %words[0, 0] : i32 from vector<1x4xi32>
    %q = llvm.and %w, 0x000f000f
    %m = llvm.or %q, 0x64006400              // (1024 + q, 1024 + q')
    %v = llvm.fadd (bitcast %m), -1032.0     // (q - 8, q' - 8)
    ...
    %a = vector.from_elements ... : vector<1x4x4xi32>
    ```

    Postcondition: no `hquant.dequant`. Fails at an op whose pair of formats has no
    sequence.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::vector::VectorDialect"];
}

def MapMmaPass : Pass<"hquant-map-mma"> {
  let summary = "Turn fragment multiplications into the instructions of their kind";
  let description = [{
    Rewrites each `hquant.mma` into the instructions that its kind
    (`MmaAttrInterface`) emits, K step outermost.

    ```mlir
    %d = hquant.mma %a, %b, %c steps 0 to 4 {kind = #hquant.sync_mma<m16n8k16, f16>}
    ==>
    %d0 = nvvm.mma.sync A[...] B[...] C[...] {shape = <m = 16, n = 8, k = 16>} ...
    ```

    Postcondition: no `hquant.mma`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::vector::VectorDialect"];
}

def CheckResourcesPass : Pass<"hquant-check-resources", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Check kernels against the limits of their target";
  let description = [{
    Adds up the workgroup buffers of every kernel (scratch shares the memory of the
    others) and compares bytes and threads with the row of the `#nvvm.target`'s chip
    in the target table. Changes nothing.

    Precondition: stage 3, after `hquant-pipeline-copies`. Fails at a kernel that
    does not fit, saying what was expected, what came and what to change.
  }];
  let options = [
    Option<"explain", "explain", "bool", "false",
           "Emit a remark with what each kernel uses">
  ];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

//===----------------------------------------------------------------------===//
// Any stage
//===----------------------------------------------------------------------===//

def VerifyStagePass : Pass<"hquant-verify-stage", "::mlir::ModuleOp"> {
  let summary = "Check that a module keeps the contract of a stage";
  let description = [{
    The verifiers of the ops say what holds at any stage; this pass says what
    holds at one. It changes nothing and reports every violation, not only the
    first. Run it between two steps of a pipeline to find the one that breaks
    the contract.

    | stage | contract that is checked |
    |---|---|
    | `0`, `imported` | no op of `hquant` |
    | `1`, `operator` | ops of `hquant` on tensors only; no lowering config |
    | `2`, `configured` | the same, under a known `hquant.target`; every matmul is packed and has a config that is legal on the target |
    | `3`, `tile` | no op on tensors of `hquant`, no tensor in a `gpu.module`; ops of `hquant` only in a `gpu.func` |
    | `4`, `thread` | no op of `hquant`; only `llvm` and `nvvm` in a `gpu.module` |
  }];
  let options = [
    Option<"stage", "stage", "std::string", "\"\"",
           "The stage: 0 to 4, or imported, operator, configured, tile, thread">
  ];
}

#endif // HUMMING_TRANSFORMS_PASSES
