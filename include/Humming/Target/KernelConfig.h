//===- KernelConfig.h - What is computed, and how ---------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `MatmulProblem` is the question (formats, granularity, sizes), `KernelConfig`
// the answer (tile, stages, instruction, split). One legality function serves
// the chooser, the tuner and the IR verifier.
//
// Vocabulary. The kernel computes C^T = W * X^T: weight rows (output features,
// N) are the M side of the MMA instruction, tokens (M) its N side. All sizes
// here are named by what they tile: `N` features, `M` tokens, `K` reduction.
// With rows=tokens the kernel computes C = X * W^T instead: tokens are the M
// side (rows), features the N side (columns). The sizes keep their names.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_TARGET_KERNELCONFIG_H
#define HUMMING_TARGET_KERNELCONFIG_H

#include "Humming/Quant/QuantType.h"
#include "Humming/Target/TargetInfo.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace humming {

/// Scales of the activations, f32: x = code * scale.
enum class ActivationScaleKind : uint8_t {
  None,   ///< the codes are the values (16-bit activations)
  Tensor, ///< one for all tokens (static)
  Token,  ///< one a token (dynamic)
};
llvm::StringRef stringify(ActivationScaleKind kind);
/// Error: "expected none, tensor or token, got ...".
llvm::Expected<ActivationScaleKind>
parseActivationScaleKind(llvm::StringRef text);

/// How the weights lie in memory.
enum class WeightLayout : uint8_t {
  Packed, ///< the packed layout of Humming/Quant/Packing.h
  Plain,  ///< row-major [N, K], as checkpoints have it (rule P10)
};
llvm::StringRef stringify(WeightLayout layout);
/// Error: "expected packed or plain, got ...".
llvm::Expected<WeightLayout> parseWeightLayout(llvm::StringRef text);

/// A dense quantized matmul: C[M,N] = X[M,K] * dequant(W[N,K])^T (+ bias[N]).
struct MatmulProblem {
  NumberFormat activation = NumberFormat::bf16();
  QuantType weight;
  NumberFormat output = NumberFormat::bf16();
  bool hasBias = false;
  ActivationScaleKind activationScale = ActivationScaleKind::None;
  WeightLayout weightLayout = WeightLayout::Packed;
  /// Activations of a token that share a scale (with Token); 0: all of them.
  int32_t activationGroup = 0;
  /// f32, or e8m0 with groups.
  NumberFormat activationScaleFormat = NumberFormat::f32();
  /// Asymmetric s8: x = (code - z) * scale, z an i32 per tensor or token.
  bool activationZeroPoint = false;
  /// Sums of the MMA: f32 (s32 of integers) or f16.
  NumberFormat accumulator = NumberFormat::f32();
  /// Sizes guide the choice; the kernel takes them as run-time arguments.
  /// m = 0 means unknown: choose for a small batch (16 tokens).
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  /// Declared divisibility: every K and row stride (in elements) that the
  /// kernel will meet is a multiple of kDivisor; every N and output row stride
  /// of nDivisor. Powers of two, at most 8 (K: what 16 bytes of activations
  /// hold). Derived from n and k by default.
  int32_t kDivisor = 8;
  int32_t nDivisor = 8;

  /// Sets kDivisor and nDivisor to the largest power of two, at most 8, that
  /// divides k and n.
  void deriveDivisors();
  /// Whether the weights are operands of the MMA as they are: 8-bit ones of the
  /// activations' format (or the other 8-bit float), without zero points.
  bool canBePlain() const;
  /// Plain where that costs nothing: the weights can be, the declared divisor
  /// of K makes their rows whole 16-byte pieces, and no group (of weights or
  /// activations) is shorter than 32 bytes.
  WeightLayout naturalLayout() const;
  /// One line: `w4a16 u4/g128/bf16 x bf16 -> bf16, M=16 N=8192 K=8192`.
  std::string str() const;
};

/// Where weight scales are multiplied in.
enum class ScalePlacement : uint8_t {
  Operand,     ///< on the dequantized weight, in the activation type
  Accumulator, ///< on the f32 partial sum of each group
  Epilogue,    ///< once on the f32 result (per-channel, per-tensor)
};

llvm::StringRef stringify(ScalePlacement placement);

/// What the rows of an MMA are.
enum class MmaRows : uint8_t {
  Features, ///< weights are the A operand
  Tokens,   ///< activations are; plain weights with wgmma alone (rule L26)
};

llvm::StringRef stringify(MmaRows rows);

/// Which tile the two blocks of a cluster share: each copies half of it into
/// the shared memory of both (multicast), so that it crosses the wires from L2
/// once.
enum class Multicast : uint8_t {
  None,
  Activations, ///< blocks of neighbouring features
  Weights,     ///< blocks of neighbouring tokens
};

llvm::StringRef stringify(Multicast multicast);

/// The lowering of one kernel. Printed as
/// `mma=m16n8k16,block=64x16x256,warp=16x16,warps_k=2,stages=4,copy=cp.async,scale=accumulator,split_k=1`.
struct KernelConfig {
  MmaKind mma = MmaKind::M16N8K16;
  int32_t blockN = 64; ///< features of a block, multiple of 64
  int32_t blockM = 16; ///< tokens of a block, multiple of 8
  int32_t blockK = 64; ///< reduction elements of a stage, multiple of 64
  int32_t warpN = 16;  ///< features of a warp: 16, 32 or 64 (or rule L26)
  int32_t warpM = 16;  ///< tokens of a warp, multiple of 8, divides blockM
  int32_t warpsK = 1;  ///< warps that share a stage's 64-wide K slabs
  int32_t stages = 2;  ///< buffers of the copy pipeline
  CopyKind copy = CopyKind::Sync;
  ScalePlacement scale = ScalePlacement::Operand;
  int32_t splitK = 1; ///< blocks along K; > 1 reduces through a workspace
  /// 1: the first stages of the weights, which no earlier kernel writes, are
  /// loaded before the kernel waits for its predecessor (griddepcontrol).
  /// Printed where set: `,early=1`.
  int32_t early = 0;
  /// 1: a block computes one tile after the other, as many blocks as the card
  /// has SMs. Printed where set: `,persistent=1`.
  int32_t persistent = 0;
  /// 1: the splitK blocks of a tile are a cluster and add their sums up through
  /// each other's shared memory, without a workspace. Printed where set:
  /// `,cluster=1`.
  int32_t cluster = 0;
  /// Tiles of features that a panel is wide: blocks that run at one time take
  /// the tiles of one panel, all of its tokens, before those of the next, so
  /// that L2 holds what they share. 0: one panel. Printed where set:
  /// `,panel=16`.
  int32_t panel = 0;
  /// 0: with copy=tensor no warp only copies, the first that multiplies does it
  /// as well, and the registers of a block are for those that multiply. Printed
  /// where 0: `,producers=0`.
  int32_t producers = 1;
  /// Printed where set: `,multicast=activations`.
  Multicast multicast = Multicast::None;
  /// Tokens: 64 tokens by blockN features an MMA. A thread's sums have two
  /// token scales then and, with blocks of scales, one weight scale. Printed
  /// where set: `,rows=tokens`.
  MmaRows rows = MmaRows::Features;

  int32_t warpsN() const { return blockN / warpN; }
  int32_t warpsM() const { return blockM / warpM; }
  bool tokenRows() const { return rows == MmaRows::Tokens; }
  /// Of a warp: units of 16 rows and tiles of 8 columns of the MMA.
  int32_t rowUnits() const { return (tokenRows() ? warpM : warpN) / 16; }
  int32_t columnTiles() const { return (tokenRows() ? warpN : warpM) / 8; }
  int32_t numWarps() const { return warpsN() * warpsM() * warpsK; }
  /// Threads that multiply.
  int32_t numThreads() const { return numWarps() * 32; }
  /// Whether copies run ahead through a ring of barriers.
  bool usesRing() const {
    return copy == CopyKind::Bulk || copy == CopyKind::Tensor;
  }
  /// Threads that copy into the ring: a warpgroup with copy=bulk, a warp with
  /// copy=tensor. They come after the others in the block, or are its first.
  int32_t copyThreads() const {
    return copy == CopyKind::Bulk ? 128 : copy == CopyKind::Tensor ? 32 : 0;
  }
  int32_t firstCopyThread() const { return producers ? numThreads() : 0; }
  /// Threads that only copy.
  int32_t producerThreads() const { return producers ? copyThreads() : 0; }
  /// Blocks of a cluster along features, tokens and K.
  int32_t clusterN() const {
    return multicast == Multicast::Activations ? 2 : 1;
  }
  int32_t clusterM() const { return multicast == Multicast::Weights ? 2 : 1; }
  int32_t clusterK() const { return cluster ? splitK : 1; }
  /// Blocks that copy the tile of activations, or of weights, together.
  int32_t blocksOfActivations() const { return clusterN(); }
  int32_t blocksOfWeights() const { return clusterM(); }
  int32_t blocksOfMulticast() const { return clusterN() * clusterM(); }
  int32_t blockThreads() const { return numThreads() + producerThreads(); }

  bool operator==(const KernelConfig &o) const;
  bool operator!=(const KernelConfig &o) const { return !(*this == o); }
  std::string str() const;
  /// Parses `str()`'s form; keys may come in any order and be left out, in
  /// which case `base` supplies them (`rows` beside `warp`: features). Error:
  /// names the key and what it takes.
  static llvm::Expected<KernelConfig> parse(llvm::StringRef text,
                                            const KernelConfig &base);
};

/// Where everything lies in a block's dynamic shared memory. All values are
/// bytes; every region starts at a multiple of 128. One stage holds, in order:
///
///   weights      [blockN/64 strips][blockK/64 slabs][packed 64x64 tile]
///   activations  [blockK/64 panels][blockM rows][128 bytes], 16-byte chunks of
///                a row XOR-swizzled with the row number modulo 8
///   scales       [scaleRows][blockN], packed order of the scale tensor
///   zero points  [zeroPointRows][blockN], the same order
///   token scales [tokenScaleRows][tokenScaleTokens], scales of activation
///                groups; whole multiples of 16 tokens that hold the block's
///
/// With copy=bulk or tensor the two barriers of every stage follow the last
/// one.
///
/// The offsets are relative to the start of a stage; stage s starts at
/// s * stageBytes. The f32 tile of the epilogue ([blockN][blockM], one for each
/// warp along K after the first, at least one) overlays the stages from 0 on;
/// of a cluster too.
struct SharedMemoryLayout {
  int64_t weights = 0;
  int64_t activations = 0;
  int64_t scales = 0;
  int64_t zeroPoints = 0;
  int64_t tokenScales = 0;
  int64_t stageBytes = 0;
  int32_t stages = 0;
  int32_t scaleRows = 0;        ///< scale groups of a stage; 0: not staged
  int32_t zeroPointRows = 0;    ///< zero-point groups of a stage; 0: none
  int32_t tokenScaleRows = 0;   ///< activation groups of a stage; 0: none
  int32_t tokenScaleTokens = 0; ///< tokens of a row of them
  int64_t epilogueBytes = 0; ///< overlay of the reduction and the output tile
  int64_t totalBytes = 0;
};
/// Groups of scales that a stage of `blockK` may touch (at least 1); a shard
/// that begins inside a group may touch one more.
int32_t groupsOfStage(const QuantType &type, int32_t blockK);
SharedMemoryLayout layoutSharedMemory(const MatmulProblem &problem,
                                      const KernelConfig &config);

/// Rows of the boxes by which copy=tensor copies tiles of `rows` rows (a
/// multiple of 8): the largest divisor of at most 256 that is a multiple of 8.
/// A box is 128 bytes wide, the span of the swizzle.
int32_t tensorBoxRows(int32_t rows);

/// Whether the MMA's sums are partial and move to f32 accumulators on the way:
/// for scales of groups, or because they are f16.
bool hasPartialSums(const MatmulProblem &problem, const KernelConfig &config);

/// Whether one set of partial sums is scaled while the next is multiplied:
/// where a trip has several, and a thread has registers for two.
bool overlapsSums(const MatmulProblem &problem, const KernelConfig &config);

/// Parts that a step (32 bytes of K) is multiplied in: more than one where
/// scales of groups are due within it, which are of 16 or 32 elements then.
int32_t partsOfStep(const MatmulProblem &problem, const KernelConfig &config);

/// Whether the results go from registers to global memory without a way through
/// shared memory: pairs of features are stored together.
bool storesDirectly(const MatmulProblem &problem, const KernelConfig &config);

/// Bytes of shared memory that the kernel will ask for, all stages together:
/// layoutSharedMemory's totalBytes.
int64_t predictSharedMemory(const MatmulProblem &problem,
                            const KernelConfig &config);
/// Registers a thread is expected to need (accumulators, fragments, addresses).
int32_t predictRegisters(const MatmulProblem &problem,
                         const KernelConfig &config);

/// Checks that the target can run the problem at all (formats, granularity).
/// Error: "rule P<n>: expected ..., got ...".
llvm::Error checkProblem(const MatmulProblem &problem,
                         const TargetInfo &target);
/// Checks one config against problem and target.
/// Error: "rule L<n>: expected ..., got ...". Rules are listed in
/// docs/HQuant.md.
llvm::Error checkConfig(const MatmulProblem &problem,
                        const KernelConfig &config, const TargetInfo &target);

/// checkConfig's verdict without building a message (the chooser asks it some
/// thousand times): 0 if the config is legal, else the number n of rule L<n>.
unsigned firstViolatedRule(const MatmulProblem &problem,
                           const KernelConfig &config,
                           const TargetInfo &target);

/// What the cost model expects of a config.
struct CostEstimate {
  double bytes = 0;        ///< global-memory bytes moved
  double microseconds = 0; ///< expected GPU time
  std::string limiter;     ///< `memory`, `mma`, `issue` or `latency`
};
CostEstimate estimateCost(const MatmulProblem &problem,
                          const KernelConfig &config, const TargetInfo &target);

/// The chooser's answer, best first; at least one candidate, at most `keep`.
struct RankedConfig {
  KernelConfig config;
  CostEstimate cost;
};
/// Pure function: same arguments, same answer. Error: checkProblem's, or that
/// no config is legal.
llvm::Expected<llvm::SmallVector<RankedConfig, 0>>
chooseConfig(const MatmulProblem &problem, const TargetInfo &target,
             unsigned keep = 2);

/// Every legal config of the search space, in a fixed order.
llvm::SmallVector<KernelConfig, 0>
enumerateConfigs(const MatmulProblem &problem, const TargetInfo &target);

} // namespace humming

#endif // HUMMING_TARGET_KERNELCONFIG_H
