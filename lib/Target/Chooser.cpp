//===- Chooser.cpp - The search space and the choice in it ------ -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The space is small on purpose: what never wins is left out here rather than
// costed, since choosing counts in the time of a cold compile.
//
//   blockM   no more than the first size that covers M, and a few smaller ones
//   warps    4 to 16 of them; one along M up to 32 tokens
//   blockK   64 to 512; no longer than K
//   stages   2, 3, 4, 6, 8
//   rows     features; tokens too where plain weights meet scales of activation
//            groups, from 64 tokens on
//   splitK   1, powers of two, and what fills the card exactly once or twice;
//            never so many that a block gets no stage or the grid exceeds two
//            blocks per SM
//
// Panels, multicast and whether a warp only copies follow from these (arrange).
//
// Worked example: M = 16, N = K = 8192, sm_90. 8192 / 64 features = 128 blocks
// nearly fill 132 SMs: no split. With N = 1024, 16 blocks: splits of 2, 4, 8
// and 16 are tried, and 132 / 16 = 8.
//
//===----------------------------------------------------------------------===//

#include "CostModel.h"
#include "Humming/Target/Dequant.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <algorithm>
#include <cmath>
#include <utility>

using namespace humming;

/// Whether a second block finds no room on the SM.
static bool hasSMForItself(const MatmulProblem &problem,
                           const KernelConfig &config,
                           const TargetInfo &target) {
  int64_t bytes = predictSharedMemory(problem, config);
  return 2 * (bytes + target.sharedMemoryReserved) > target.sharedMemoryPerSM;
}

/// Tiles of features that a panel is wide, 0 for all: what a wave of blocks
/// reads is least. Where one row of blocks or one wave does it all, there is
/// nothing to order.
static int32_t choosePanel(const MatmulProblem &problem,
                           const KernelConfig &config,
                           const TargetInfo &target) {
  const auto [m, n, k] = assumedSizes(problem);
  double columns = std::ceil(n / config.blockN);
  double rows = std::ceil(m / config.blockM);
  double sms = target.numSMs;
  if (rows < 2 || columns * rows <= sms)
    return 0;
  int32_t best = 0;
  double least = 0;
  for (double width : {columns, 64.0, 32.0, 16.0, 8.0}) {
    if (width > columns)
      continue;
    double rowsOfWave = std::min(std::ceil(sms / width), rows);
    double columnsOfWave = std::max(width, sms / rowsOfWave);
    double bits = columnsOfWave * config.blockN * problem.weight.weight.bits +
                  rowsOfWave * config.blockM * problem.activation.bits;
    if (least == 0 || bits < least) {
      least = bits;
      best = width == columns ? 0 : int32_t(width);
    }
  }
  return best;
}

/// What does not change which of two configs is faster, and helps where it is
/// legal (measured on an H200 at 8192 x 8192, us):
///
///   panel            W8A8 fp8, M = 1024: 93.2 to 91.5; M = 8192: 868 to 848;
///                    blocks and 1 x 128, M = 8192: 1208 to 1096
///   multicast        W8A8 fp8, M = 256: 31.1 to 27.3. Of weights; sharing
///                    activations gained nothing in any format
///   producers=0      W8A8 fp8, M = 256: 31.1 to 29.5; M = 1024: 97.4 to 94.9.
///                    Where sums are scaled or weights dequantized the copies
///                    come in between: W4A8, M = 1024: 140 to 189
static KernelConfig arrange(const MatmulProblem &problem, KernelConfig config,
                            const TargetInfo &target) {
  if (config.copy != CopyKind::Tensor || config.splitK != 1)
    return config;
  auto take = [&](KernelConfig changed) {
    if (firstViolatedRule(problem, changed, target) == 0)
      config = changed;
  };
  KernelConfig changed = config;
  changed.panel = choosePanel(problem, config, target);
  take(changed);
  if (problem.weightLayout != WeightLayout::Plain || config.blockM < 128)
    return config;
  // An odd row of blocks would be paired with one that computes nothing.
  auto rows = int64_t(std::ceil(assumedSizes(problem).m / config.blockM));
  changed = config;
  changed.multicast = Multicast::Weights;
  if (rows % 2 == 0)
    take(changed);
  changed = config;
  changed.producers = 0;
  if (!hasPartialSums(problem, config))
    take(changed);
  return config;
}

/// Calls `visit` for every legal config that uses `mma`, in a fixed order.
static void visitConfigs(const MatmulProblem &problem, const TargetInfo &target,
                         MmaKind mma, CopyKind copy, MmaRows rows,
                         llvm::function_ref<void(const KernelConfig &)> visit) {
  const auto [m, n, k] = assumedSizes(problem);
  KernelConfig c;
  c.mma = mma;
  // A warpgroup's MMA takes all tokens of the block at once; four warps share
  // its 64 features. With rows=tokens all features, and 64 tokens.
  c.rows = rows;
  const bool tokenRows = c.tokenRows();
  const bool warpgroups = mma == MmaKind::Wgmma;
  c.copy = target.hasCpAsync ? CopyKind::CpAsync : CopyKind::Sync;
  if (copy != CopyKind::Sync)
    c.copy = copy;
  const bool canBeEarly = target.hasGridDependency && target.hasCpAsync;

  llvm::SmallVector<int32_t, 8> blockMs;
  for (int32_t size : {8, 16, 32, 48, 64, 96, 128, 256}) {
    blockMs.push_back(size);
    if (size >= m)
      break;
  }
  // Tiles far below M only multiply the dequantization work.
  size_t wanted = m > 64 ? 4 : 3;
  if (blockMs.size() > wanted)
    blockMs.erase(blockMs.begin(), blockMs.end() - wanted);
  // Between 128 and 256 a warpgroup's MMA has more shapes. They are worth it
  // where they pad less: with them 257 tokens cost 288, not 384.
  auto padded = [m = m](int32_t size) { return std::ceil(m / size) * size; };
  if (warpgroups)
    for (int32_t size : {144, 192})
      if (m > 128 && padded(size) < std::min(padded(128), padded(256)))
        blockMs.push_back(size);

  llvm::SmallVector<ScalePlacement, 2> placements;
  if (problem.weight.granularity.columns == 0) {
    placements = {ScalePlacement::Epilogue};
  } else {
    placements = {ScalePlacement::Accumulator};
    if (scalesFitOperand(problem.weight, problem.activation,
                         target.convertsFp8()))
      placements.push_back(ScalePlacement::Operand);
  }

  for (int32_t blockN : {64, 128, 256}) {
    c.blockN = blockN;
    // A block wider than N by a strip or more computes padding.
    if (blockN > 64 && blockN >= n + 64)
      continue;
    for (int32_t blockM : blockMs) {
      c.blockM = blockM;
      int64_t tiles =
          int64_t(std::ceil(n / blockN)) * int64_t(std::ceil(m / blockM));
      for (int32_t blockK : {64, 128, 256, 512, 1024}) {
        // So deep a stage pays for few tokens only: fewer barriers.
        if (blockK == 1024 && blockM > 16)
          continue;
        c.blockK = blockK;
        // Plain tiles of many tokens come as fast as stages are emptied: many
        // small ones (measured at 8192 x 8192, M = 1024, tiles of 128 x 128:
        // six of 128 take 116 us, three of 256 134).
        if (problem.weightLayout == WeightLayout::Plain &&
            copy == CopyKind::Tensor && blockM >= 128 && blockK > 128)
          continue;
        // The least is 128 bytes of activations.
        if (blockK > std::max(64, 1024 / problem.activation.bits) &&
            blockK >= k + 64)
          continue;
        int64_t stagesOfK = int64_t(std::ceil(k / blockK));

        // Ascending and unique; a split must leave work for its last block.
        llvm::SmallVector<int32_t, 8> splits;
        auto addSplit = [&](int64_t split) {
          if (split < 1 || split > 64 || llvm::is_contained(splits, split))
            return;
          if (split > 1 && tiles * split > 2 * target.numSMs)
            return;
          int64_t each = (stagesOfK + split - 1) / split;
          if ((split - 1) * each < stagesOfK)
            splits.push_back(int32_t(split));
        };
        for (int64_t split : {1, 2, 4, 8, 16})
          addSplit(split);
        addSplit(target.numSMs / tiles);
        addSplit(2 * target.numSMs / tiles);
        llvm::sort(splits);

        for (int32_t warpN : {16, 32, 64}) {
          c.warpN = warpN;
          for (int32_t warpM : {blockM, blockM / 2, blockM / 4}) {
            c.warpM = warpM;
            if (warpgroups ? warpM != blockM
                           : warpM > 64 || (warpM < blockM && warpM < 32))
              continue;
            // The same shapes the other way round.
            if (tokenRows) {
              c.warpN = blockN;
              c.warpM = warpN;
              if (blockM % (4 * warpN) != 0)
                continue;
            }
            if (warpgroups && !tokenRows && c.warpsN() % 4 != 0)
              continue;
            // Not measured with more warps, which have half the registers.
            if ((blockM == 144 || blockM == 192) &&
                (c.warpsN() > 8 || tokenRows))
              continue;
            for (int32_t warpsK : {1, 2, 4, 8}) {
              c.warpsK = warpsK;
              int32_t warps = c.numWarps();
              if (warps < 4 || warps > 16)
                continue;
              for (ScalePlacement placement : placements) {
                c.scale = placement;
                for (int32_t stages : {2, 3, 4, 5, 6, 8}) {
                  // With two, a copy waits for the computation before it.
                  if (c.copy != CopyKind::Sync && stages < 3)
                    continue;
                  c.stages = stages;
                  // Blocks of the next kernel must not crowd onto some SMs
                  // before this one leaves the others: early only where a block
                  // has its SM for itself (measured on an H200: 13.4 us against
                  // 20.8 us where two fit).
                  c.early = canBeEarly && hasSMForItself(problem, c, target);
                  c.splitK = 1;
                  c.cluster = 0;
                  // More stages or splits cannot mend what is illegal here.
                  if (firstViolatedRule(problem, c, target) != 0)
                    break;
                  for (int32_t split : splits) {
                    c.splitK = split;
                    // A cluster adds its sums up without going through memory.
                    // Pairs use all SMs; of fours an H200 holds fewer than 33
                    // (measured: 25 us became 44).
                    c.cluster = target.hasClusters && split == 2;
                    if (c.cluster && firstViolatedRule(problem, c, target) != 0)
                      c.cluster = 0; // no room for the sums
                    if (tokenRows && split > 1 &&
                        firstViolatedRule(problem, c, target) != 0)
                      continue; // nor registers
                    visit(arrange(problem, c, target));
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}

/// The same for every MMA kind worth trying: the best of each mechanism.
static void visitConfigs(const MatmulProblem &problem, const TargetInfo &target,
                         llvm::function_ref<void(const KernelConfig &)> visit) {
  bool haveSync = false;
  for (MmaKind kind : target.mmaKinds) {
    if (!target.supports(kind, problem.activation))
      continue;
    // Where the MMA of 8-bit floats is made of f16 ones, wgmma is faster at
    // every M (measured on an H200: W8A8 at 8192 x 8192, M = 1, 16, 64 takes
    // 17.0, 17.6, 19.1 us against 17.2, 18.5, 32.4). It does not take plain
    // weights with groups shorter than a step (rule L18).
    int32_t group = problem.weight.granularity.columns;
    bool isShort = (group > 0 && group < 32) || (problem.activationGroup > 0 &&
                                                 problem.activationGroup < 32);
    bool takesWgmma = llvm::is_contained(target.mmaKinds, MmaKind::Wgmma) &&
                      !(isShort && problem.weightLayout == WeightLayout::Plain);
    if (kind != MmaKind::Wgmma && problem.activation.isFloat() &&
        problem.activation.bits == 8 && target.emulatesFp8Mma() && takesWgmma)
      continue;
    // Of the mma.sync shapes, the first is the best.
    if (kind != MmaKind::Wgmma && std::exchange(haveSync, true))
      continue;
    // Copying by warps of their own is faster (measured on an H200: 10.7 us
    // against 12.0 at 8192 x 8192, M = 1; 57 against 66 at 256). With large
    // tiles of wgmma there may be no registers left for them.
    //
    // Packed weights that are operands as they are have no dequantization to
    // overlap with, and ptxas 13.0 serialises a wgmma with such registers
    // across the loop. Plain ones go from shared memory to the tensor cores.
    bool plain = problem.weightLayout == WeightLayout::Plain;
    bool direct = !plain && problem.weight.weight == problem.activation;
    bool bulk = target.hasBulkCopy && !direct &&
                (!plain || kind == MmaKind::Wgmma) &&
                problem.kDivisor * problem.activation.bits >= 16 * 8;
    // Tensor copies need no fence, but where partial sums leave few registers,
    // as with 8-bit activations, a config may be legal with bulk copies alone.
    // Of few tokens, weights that are operands as they are come faster in
    // pieces (measured: 16.3 us against 17.1 at 8192 x 8192, M = 1, 17.4
    // against 18.0 at 16, equal at 64).
    bool few = plain && problem.m <= 16; // unknown (0): few
    bool tensor =
        bulk && kind == MmaKind::Wgmma && target.hasTensorCopy && !few;
    // Scales of activation groups are fewer by row than by column: the sums of
    // a thread are of 2 tokens and of up to 64 features (or the other way
    // round).
    if (tensor && plain && problem.activationGroup != 0)
      visitConfigs(problem, target, kind, CopyKind::Tensor, MmaRows::Tokens,
                   visit);
    if (tensor)
      visitConfigs(problem, target, kind, CopyKind::Tensor, MmaRows::Features,
                   visit);
    if (bulk && (!tensor || (!plain && problem.activation.bits == 8)))
      visitConfigs(problem, target, kind, CopyKind::Bulk, MmaRows::Features,
                   visit);
    if (!bulk || kind == MmaKind::Wgmma)
      visitConfigs(problem, target, kind,
                   target.hasCpAsync ? CopyKind::CpAsync : CopyKind::Sync,
                   MmaRows::Features, visit);
  }
}

llvm::SmallVector<KernelConfig, 0>
humming::enumerateConfigs(const MatmulProblem &problem,
                          const TargetInfo &target) {
  llvm::SmallVector<KernelConfig, 0> configs;
  visitConfigs(problem, target,
               [&](const KernelConfig &c) { configs.push_back(c); });
  return configs;
}

llvm::Expected<llvm::SmallVector<RankedConfig, 0>>
humming::chooseConfig(const MatmulProblem &problem, const TargetInfo &target,
                      unsigned keep) {
  if (llvm::Error error = checkProblem(problem, target))
    return error;
  keep = std::max(keep, 1u);

  // Times are compared in whole nanoseconds, and the first of equals wins: the
  // last bit of a floating-point sum must not decide.
  struct Candidate {
    int64_t nanoseconds;
    KernelConfig config;
    RawCost cost;
  };
  llvm::SmallVector<Candidate, 4> best;
  visitConfigs(problem, target, [&](const KernelConfig &config) {
    RawCost cost = estimateRawCost(problem, config, target);
    int64_t nanoseconds = std::llround(cost.microseconds * 1e3);
    if (best.size() == keep && nanoseconds >= best.back().nanoseconds)
      return;
    auto *at = llvm::upper_bound(
        best, nanoseconds,
        [](int64_t ns, const Candidate &c) { return ns < c.nanoseconds; });
    best.insert(at, Candidate{nanoseconds, config, cost});
    if (best.size() > keep)
      best.pop_back();
  });
  if (best.empty())
    return llvm::createStringError("no legal config for " + problem.str() +
                                   " on " + target.chip);
  llvm::SmallVector<RankedConfig, 0> ranked;
  for (const Candidate &candidate : best)
    ranked.push_back({candidate.config, finishCost(candidate.cost)});
  return ranked;
}
