//===- HQuantAttrs.td - Formats, layouts and configs -------*- tablegen -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attributes of the operator and configured stages. Each wraps a value struct
// of the MLIR-free libraries, so that a fact has one representation: the
// attribute adds uniquing, printing and parsing, and nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_DIALECT_HQUANT_IR_HQUANTATTRS
#define HUMMING_DIALECT_HQUANT_IR_HQUANTATTRS

include "Humming/Dialect/HQuant/IR/HQuantDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"

class HQuant_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<HQuant_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// What: formats and quantization
//===----------------------------------------------------------------------===//

def HQuant_FormatAttr : HQuant_Attr<"Format", "format"> {
  let summary = "a number format";
  let description = [{
    One number format by its name: `u1`..`u8`, `s2`..`s8`, `eXmY`, `e8m0`,
    `f16`, `bf16`, `f32` (`docs/Formats.md`).

    ```mlir
    #hquant.format<u4>
    #hquant.format<e4m3>
    ```
  }];
  let parameters = (ins
    AttrParameter<"::humming::NumberFormat", "number format">:$format);
  let hasCustomAssemblyFormat = 1;
}

def HQuant_GranularityAttr : HQuant_Attr<"Granularity", "granularity"> {
  let summary = "which weights share one scale";
  let description = [{
    `group = G`: G consecutive weights of a row; `channel`: a whole row;
    `tensor`: all weights; `block = [rows, columns]`: a 2-D block, features
    first.

    ```mlir
    #hquant.granularity<group = 128>
    #hquant.granularity<channel>
    #hquant.granularity<tensor>
    #hquant.granularity<block = [128, 128]>
    ```
  }];
  let parameters = (ins
    AttrParameter<"::humming::Granularity", "granularity">:$granularity);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def HQuant_ZeroPointAttr : HQuant_Attr<"ZeroPoint", "zero_point"> {
  let summary = "kind of zero points";
  let description = [{
    `none`: symmetric codes; `int`: integers of the weight's width; `float`:
    floats of the scale's type, in units of the code.

    ```mlir
    #hquant.zero_point<int>
    ```
  }];
  let parameters = (ins
    AttrParameter<"::humming::ZeroPointKind", "kind of zero points">:$kind);
  let hasCustomAssemblyFormat = 1;
}

def HQuant_QuantTypeAttr : HQuant_Attr<"QuantType", "quant_type"> {
  let summary = "how a weight matrix is quantized";
  let description = [{
    The format of the codes, the format of the scales, which weights share a
    scale, and the kind of zero points (left out when `none`). A weight is
    `(q - z) * s`; without zero points `z` is `2^(bits-1)` for unsigned codes
    and 0 for all others. Further keys: `global = tensor|channel`, a second f32
    scale; `phase = [row, column]`, where a shard begins inside its first block;
    `table = [16 floats]`, what codes of at most 4 bits stand for.

    ```mlir
    #hquant.quant_type<u4, scale = bf16, group = 128>
    #hquant.quant_type<u4, scale = f16, group = 64, zero_point = int>
    #hquant.quant_type<e4m3, scale = f32, block = [128, 128]>
    ```
  }];
  let parameters = (ins
    AttrParameter<"::humming::QuantType", "quantization">:$quantType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::humming::NumberFormat getWeightFormat() const { return getQuantType().weight; }
    ::humming::NumberFormat getScaleFormat() const { return getQuantType().scale; }
    ::humming::Granularity getGranularity() const { return getQuantType().granularity; }
    ::humming::ZeroPointKind getZeroPointKind() const { return getQuantType().zeroPoint; }

    /// The signless integer type of a code.
    ::mlir::IntegerType getCodeType() const;
    /// The element type of the scales: a builtin float type where there is
    /// one, else the signless integer type of the format's width.
    ::mlir::Type getScaleType() const;
    /// The element type of logical zero points; null for `none`.
    ::mlir::Type getZeroPointType() const;
    /// Shape of the logical scales and zero points of [n, k] weights; a
    /// dynamic extent gives a dynamic one where it matters.
    ::llvm::SmallVector<int64_t, 2> getScaleShape(int64_t n, int64_t k) const;
  }];
}

//===----------------------------------------------------------------------===//
// How: layout and config
//===----------------------------------------------------------------------===//

def HQuant_PackedRole : I32EnumAttr<"PackedRole", "what a packed tensor holds", [
    I32EnumAttrCase<"Weights", 0, "weights">,
    I32EnumAttrCase<"Scales", 1, "scales">,
    I32EnumAttrCase<"ZeroPoints", 2, "zero_points">,
    I32EnumAttrCase<"PlainWeights", 3, "plain_weights">]> {
  let cppNamespace = "::humming::hquant";
  let genSpecializedAttr = 0;
}

def HQuant_PackedLayoutAttr : HQuant_Attr<"PackedLayout", "packed_layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "fragment-order layout of weights, scales or zero points";
  let description = [{
    The encoding of a packed tensor. The order is a function of the activation
    width A, the weight width b and the role alone, never of a chip or a tile:

    | role          | logical     | packed                                    |
    |---------------|-------------|-------------------------------------------|
    | `weights`     | `[N, K]`    | `[ceil(N/64), ceil(K/64), 128*b]` of `i32` |
    | `scales`      | `[N, G]`    | `[G, ceil(N/64), 64]` of the scale's type |
    | `zero_points` | `[N, G]`    | the same, of `i8` or of the scale's type  |
    | `plain_weights` | `[N, K]`  | `[N, K]` of `i8`, as the checkpoint has it |

    `plain_weights` are for 8-bit weights of the activations' own format, which need
    no dequantization and so no repacking.

    `docs/HQuant.md` has the order of bits inside a word.

    ```mlir
    tensor<64x64x512xi32,
      #hquant.packed_layout<activation_bits = 16, weight_bits = 4, role = weights>>
    ```
  }];
  let parameters = (ins "unsigned":$activation_bits, "unsigned":$weight_bits,
                        EnumParameter<HQuant_PackedRole>:$role);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Rows of a strip and reduction elements of a slab.
    static constexpr int64_t kStrip = 64;
    static constexpr int64_t kSlab = 64;

    bool isWeights() const { return getRole() == PackedRole::Weights; }
    bool isPlain() const { return getRole() == PackedRole::PlainWeights; }
    /// 32-bit words of one 64 x 64 tile of codes.
    int64_t getWordsPerTile() const { return 128 * int64_t(getWeightBits()); }
    /// The packed shape of a logical [rows, columns] operand: [N, K] weights
    /// or [N, G] scales and zero points. Dynamic extents stay dynamic.
    /// Rank 2 for plain weights, else 3.
    ::llvm::SmallVector<int64_t, 3> getPackedShape(::llvm::ArrayRef<int64_t> logical) const;
    /// The packed element type of a logical one: i32 for weights, i8 for
    /// integer zero points, the same type otherwise.
    ::mlir::Type getPackedElementType(::mlir::Type logical) const;
    /// The packed type, with this encoding, of a logical 2-D tensor type.
    ::mlir::RankedTensorType getPackedType(::mlir::RankedTensorType logical) const;
    /// The same layout for another role.
    PackedLayoutAttr withRole(PackedRole role) const;
    /// The layout that encodes `type`, or null.
    static PackedLayoutAttr of(::mlir::Type type);
  }];
}

def HQuant_LoweringConfigAttr : HQuant_Attr<"LoweringConfig", "lowering_config"> {
  let summary = "how one matmul is lowered";
  let description = [{
    Tiles, stages, instruction and split of one kernel: `humming::KernelConfig`
    under its own keys. Keys come in any order; a key that is left out takes
    the default of `KernelConfig`. Lists are ordered N (features), M (tokens),
    K (reduction).

    | key | meaning |
    |---|---|
    | `mma` | instruction, `m16n8k16`, `m16n8k8`, `m16n8k32`, `m16n8k64`, `m8n8k16` or `wgmma` |
    | `block` | block tile `[N, M, K]`; K is what one stage holds |
    | `warp` | warp tile `[N, M]` |
    | `warps_k` | warps that share the K of a stage |
    | `stages` | buffers of the copy pipeline |
    | `copy` | `sync`, `cp.async` or `bulk` (by producer warps) |
    | `scale` | where scales are multiplied in: `operand`, `accumulator`, `epilogue` |
    | `split_k` | blocks along K |
    | `early` | 1: load the first weights before waiting for the previous kernel; printed where set |
    | `persistent` | 1: a block computes tile after tile; printed where set |
    | `cluster` | 1: the blocks along K are a cluster; printed where set |
    | `rows` | `features` or `tokens`: what the rows of a warpgroup's MMA are; `tokens` is printed |

    ```mlir
    #hquant.lowering_config<mma = m16n8k16, block = [64, 16, 256], warp = [16, 16],
      warps_k = 2, stages = 4, copy = cp.async, scale = accumulator, split_k = 1>
    ```
  }];
  let parameters = (ins
    AttrParameter<"::humming::KernelConfig", "kernel config">:$config);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def HQuant_QuantizeConfigAttr : HQuant_Attr<"QuantizeConfig", "quantize_config"> {
  let summary = "how one quantize is lowered";
  let description = [{
    `humming::QuantizeConfig` under its own keys, which come in any order; a key that
    is left out takes the default.

    | key | meaning |
    |---|---|
    | `lanes` | threads that share a segment (a row, or a group of one) |
    | `groups` | groups of a row that a block takes |
    | `rows` | rows that a block takes |
    | `chunks` | chunks of 8 values that a thread keeps in registers |

    ```mlir
    #hquant.quantize_config<lanes = 256, groups = 1, rows = 1, chunks = 2>
    ```
  }];
  let parameters = (ins
    AttrParameter<"::humming::QuantizeConfig", "quantize config">:$config);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // HUMMING_DIALECT_HQUANT_IR_HQUANTATTRS
