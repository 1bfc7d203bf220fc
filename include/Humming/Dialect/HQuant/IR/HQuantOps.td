//===- HQuantOps.td - Ops on tensors: stages 1 and 2 -------*- tablegen -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops of the operator and configured stages: value semantics on tensors, no
// tile and no chip. The numbered constraints are in docs/HQuant.md and carry
// the same numbers in HQuantOps.cpp and test/Dialect/HQuant/invalid.mlir.
//
// This file is the dialect's umbrella: everything TableGen makes for the
// dialect starts here.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_DIALECT_HQUANT_IR_HQUANTOPS
#define HUMMING_DIALECT_HQUANT_IR_HQUANTOPS

include "Humming/Dialect/HQuant/IR/HQuantAttrs.td"
include "Humming/Dialect/HQuant/IR/HQuantDialect.td"
include "Humming/Dialect/HQuant/IR/HQuantLayoutOps.td"
include "Humming/Dialect/HQuant/IR/HQuantTileOps.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class HQuant_Op<string opMnemonic, list<Trait> traits = []>
    : Op<HQuant_Dialect, opMnemonic, traits>;

def HQuant_FloatTensor : TensorRankOf<[AnyFloat], [2]>;
def HQuant_CodeTensor : TensorRankOf<[AnySignlessInteger], [2]>;
/// Logical [N, K] codes, or packed words.
def HQuant_WeightTensor : TensorRankOf<[AnySignlessInteger], [2, 3]>;
/// Logical [rows, G], or packed [G, strips, 64].
def HQuant_ScaleTensor : TensorRankOf<[AnyFloat, AnySignlessInteger], [2, 3]>;

//===----------------------------------------------------------------------===//
// matmul
//===----------------------------------------------------------------------===//

/// 8- and 4-bit integers are codes of s8 and s4.
def HQuant_ActivationTensor : TensorRankOf<[AnyFloat, I8, I<4>], [2]>;

def HQuant_MatmulOp : HQuant_Op<"matmul", [Pure, AttrSizedOperandSegments]> {
  let summary = "activations times quantized weights";
  let description = [{
    ```
    result[m, n] = cast(bias[n] + sum over k of
        activations[m, k] * (weights[n, k] - zero_points[n, g]) * scales[n, g])
    ```

    `g` is the group of `k` (and of `n`, for coarser granularities). The sum is
    in f32; where the scale is multiplied in and how many partial sums there
    are is the lowering's choice, within the bound of `docs/HQuant.md`. Without
    zero points, `2^(bits-1)` is subtracted from unsigned codes and nothing
    from others.

    Operands, M tokens by N features by K reduction elements:

    | operand | logical | packed |
    |---|---|---|
    | `activations` | `tensor<MxKx{f16,bf16}>` | |
    | `weights` | `tensor<NxKxi{bits}>` of codes | `#hquant.packed_layout<role = weights>` |
    | `scales` | `tensor<N x ceil(K/g) x scale type>` | `role = scales` |
    | `zero_points` | the scales' shape, of `i{bits}` or the scale type | `role = zero_points` |
    | `bias` | `tensor<Nx{f16,bf16}>`, the result's type | |
    | `global_scales` | `tensor<1xf32>` or `tensor<Nxf32>`, as `quant_type` says | |
    | `activation_scales` | `tensor<1xf32>` or `tensor<Mxf32>`, as `activation_scale` says | |
    | | with `activation_group = g`: `tensor<ceil(K/g) x 16 ceil(M/16) x {f32,f8E8M0FNU}>` | |
    | `activation_zero_points` | `tensor<1xi32>` or `tensor<Mxi32>`, with `i8` activations | |
    | `weight_sums` | `tensor<Nxf32>`, the sum of each row of the dequantized weights | |

    Activations of 8 and 4 bits (`f8E4M3FN`, `f8E5M2`, `i8`, `i4`) have scales, one
    for all (`tensor`) or one a token (`token`); `result` is multiplied by them and
    by the global scales before the bias is added. Both are given after the bias.
    With `activation_group = g` every g activations of a token share a scale; then
    each group's partial sum is multiplied. Asymmetric activations are
    `(x - z) * s`: z times the row's `weight_sums` is subtracted before the scale.
    `accumulate = "f16"` sums in half precision, a stage or group at a time.
    `scale_rows = r` promises that features r i to r (i + 1) - 1 have equal `scales`,
    for each i: those of blocks, repeated for every row.

    Every extent may be dynamic. Weights, scales and zero points are either all
    logical or all packed. `lowering_config` says how (stage 2).

    ```mlir
    %c = hquant.matmul %x, %w scales(%s : tensor<4096x32xbf16>)
           zero_points(%z : tensor<4096x32xi4>) bias(%b : tensor<4096xbf16>)
           quant_type = <u4, scale = bf16, group = 128, zero_point = int>
           : tensor<?x4096xbf16>, tensor<4096x4096xi4> -> tensor<?x4096xbf16>
    ```
  }];
  let arguments = (ins
    HQuant_ActivationTensor:$activations,
    HQuant_WeightTensor:$weights,
    HQuant_ScaleTensor:$scales,
    Optional<HQuant_ScaleTensor>:$zero_points,
    Optional<TensorRankOf<[AnyFloat], [1]>>:$bias,
    Optional<TensorRankOf<[F32], [1]>>:$global_scales,
    Optional<TensorRankOf<[AnyFloat], [1, 2]>>:$activation_scales,
    Optional<TensorRankOf<[I32], [1]>>:$activation_zero_points,
    Optional<TensorRankOf<[F32], [1]>>:$weight_sums,
    HQuant_QuantTypeAttr:$quant_type,
    OptionalAttr<HQuant_LoweringConfigAttr>:$lowering_config,
    OptionalAttr<StrAttr>:$activation_scale,
    OptionalAttr<I64Attr>:$activation_group,
    OptionalAttr<StrAttr>:$accumulate,
    OptionalAttr<I64Attr>:$scale_rows);
  let results = (outs HQuant_FloatTensor:$result);
  let assemblyFormat = [{
    $activations `,` $weights `scales` `(` $scales `:` type($scales) `)`
    (`zero_points` `(` $zero_points^ `:` type($zero_points) `)`)?
    (`bias` `(` $bias^ `:` type($bias) `)`)?
    (`global_scales` `(` $global_scales^ `:` type($global_scales) `)`)?
    (`activation_scales` `(` $activation_scales^ `:` type($activation_scales) `)`)?
    (`activation_zero_points` `(` $activation_zero_points^ `:` type($activation_zero_points) `)`)?
    (`weight_sums` `(` $weight_sums^ `:` type($weight_sums) `)`)?
    `quant_type` `=` $quant_type
    (`lowering_config` `=` $lowering_config^)?
    attr-dict `:` type($activations) `,` type($weights) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let builders = [
    // 16-bit activations, one level of scales.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$activations,
        "::mlir::Value":$weights, "::mlir::Value":$scales,
        "::mlir::Value":$zero_points, "::mlir::Value":$bias,
        "::humming::hquant::QuantTypeAttr":$quant_type,
        "::humming::hquant::LoweringConfigAttr":$lowering_config), [{
      build($_builder, $_state, result, activations, weights, scales, zero_points,
            bias, ::mlir::Value(), ::mlir::Value(), ::mlir::Value(),
            ::mlir::Value(), quant_type, lowering_config, ::mlir::StringAttr(),
            ::mlir::IntegerAttr(), ::mlir::StringAttr(), ::mlir::IntegerAttr());
    }]>];
  let extraClassDeclaration = [{
    /// The format of the activations' element type.
    ::humming::NumberFormat getActivationFormat();
    /// Whether weights, scales and zero points are in the packed layout, or the
    /// weights plain and the scales packed.
    bool isPacked();
    /// M, N and K as far as the types tell; ShapedType::kDynamic otherwise.
    int64_t getM();
    int64_t getN();
    int64_t getK();
    /// The problem for the chooser and the legality rules. Unknown sizes are 0.
    ::humming::MatmulProblem getProblem();
  }];
}

//===----------------------------------------------------------------------===//
// quantize
//===----------------------------------------------------------------------===//

def HQuant_QuantizeOp : HQuant_Op<"quantize", [
    Pure, AttrSizedOperandSegments, AttrSizedResultSegments]> {
  let summary = "16-bit activations to codes and scales";
  let description = [{
    Reads each value of `activations` once and writes what `hquant.matmul` reads:
    codes of 8 or 4 bits, scales, and zero points for asymmetric `i8` codes.

    | `scale` | |
    |---|---|
    | `token` | dynamic: each token (each `group` of its values) gets the scale that takes its largest magnitude to the format's largest number |
    | `tensor` | static: the operand `static_scales` is the scale of all, `static_zero_points` their zero point |

    With `gate` (`silu`, `gelu`, `gelu_tanh`) the input is `[M, 2 K]`, and what is
    quantized is `f(activations[m, k]) * activations[m, K + k]`.

    `docs/HQuant.md` has the arithmetic, zero rows, infinities and NaN.
    `quantize_config` says how (stage 2).

    ```mlir
    %q, %s = hquant.quantize %x {scale = "token"} : tensor<?x4096xbf16>
               -> tensor<?x4096xf8E4M3FN> scales(tensor<?xf32>)
    ```
  }];
  let arguments = (ins
    HQuant_FloatTensor:$activations,
    Optional<TensorRankOf<[F32], [1]>>:$static_scales,
    Optional<TensorRankOf<[I32], [1]>>:$static_zero_points,
    StrAttr:$scale,
    OptionalAttr<I64Attr>:$group,
    OptionalAttr<StrAttr>:$gate,
    OptionalAttr<HQuant_QuantizeConfigAttr>:$quantize_config);
  let results = (outs
    HQuant_ActivationTensor:$codes,
    Optional<TensorRankOf<[AnyFloat], [1, 2]>>:$scales,
    Optional<TensorRankOf<[I32], [1]>>:$zero_points);
  let assemblyFormat = [{
    $activations
    (`static_scales` `(` $static_scales^ `:` type($static_scales) `)`)?
    (`static_zero_points` `(` $static_zero_points^ `:` type($static_zero_points) `)`)?
    (`quantize_config` `=` $quantize_config^)?
    attr-dict `:` type($activations) `->` type($codes)
    (`scales` `(` type($scales)^ `)`)?
    (`zero_points` `(` type($zero_points)^ `)`)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The problem for the chooser and the legality rules. Unknown sizes are 0.
    ::humming::QuantizeProblem getProblem();
  }];
}

//===----------------------------------------------------------------------===//
// dequantize
//===----------------------------------------------------------------------===//

def HQuant_DequantizeOp : HQuant_Op<"dequantize", [Pure]> {
  let summary = "codes, scales and zero points to floats";
  let description = [{
    ```
    result[n, k] = round((weights[n, k] - zero_points[n, g]) * scales[n, g])
    ```

    The exact value is rounded once to the result's type, to nearest even.

    ```mlir
    %f = hquant.dequantize %w scales(%s : tensor<64x1xf16>)
           quant_type = <u4, scale = f16, group = 128>
           : tensor<64x128xi4> -> tensor<64x128xf16>
    ```
  }];
  let arguments = (ins
    HQuant_CodeTensor:$weights,
    HQuant_ScaleTensor:$scales,
    Optional<HQuant_ScaleTensor>:$zero_points,
    HQuant_QuantTypeAttr:$quant_type);
  let results = (outs HQuant_FloatTensor:$result);
  let assemblyFormat = [{
    $weights `scales` `(` $scales `:` type($scales) `)`
    (`zero_points` `(` $zero_points^ `:` type($zero_points) `)`)?
    `quant_type` `=` $quant_type
    attr-dict `:` type($weights) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

//===----------------------------------------------------------------------===//
// pack, unpack
//===----------------------------------------------------------------------===//

def HQuant_PackOp : HQuant_Op<"pack", [Pure]> {
  let summary = "logical operand to the packed layout";
  let description = [{
    Reorders a logical `[N, K]` matrix of codes, or a logical `[N, G]` matrix of
    scales or zero points, into the order of the result's
    `#hquant.packed_layout`. Padding (up to multiples of 64) is code 0 and
    scale 0. Folds on constants, so a checkpoint that is in the module is packed
    at compile time. To the role `plain_weights` it is the identity.

    ```mlir
    %p = hquant.pack %w : tensor<4096x4096xi4> -> tensor<64x64x512xi32,
           #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>>
    ```
  }];
  let arguments = (ins
    TensorRankOf<[AnyFloat, AnySignlessInteger], [2]>:$source);
  let results = (outs
    TensorRankOf<[AnyFloat, AnySignlessInteger], [2, 3]>:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    PackedLayoutAttr getLayout() { return PackedLayoutAttr::of(getResult().getType()); }
  }];
}

def HQuant_UnpackOp : HQuant_Op<"unpack", [Pure]> {
  let summary = "packed operand back to its logical form";
  let description = [{
    The inverse of `hquant.pack`; padding is dropped. The result's shape is
    static, because a packed tensor has forgotten the extents before padding.

    ```mlir
    %w = hquant.unpack %p : tensor<1x1x512xi32,
           #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>>
           -> tensor<60x64xi4>
    ```
  }];
  let arguments = (ins
    TensorRankOf<[AnyFloat, AnySignlessInteger], [2, 3]>:$source);
  let results = (outs
    TensorRankOf<[AnyFloat, AnySignlessInteger], [2]>:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    PackedLayoutAttr getLayout() { return PackedLayoutAttr::of(getSource().getType()); }
  }];
}

#endif // HUMMING_DIALECT_HQUANT_IR_HQUANTOPS
