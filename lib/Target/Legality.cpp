//===- Legality.cpp - What a target can run, and which configs -- -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One legality function for the chooser, the tuner and the IR verifier.
//
// Rules of a problem:
//   P1  sizes are non-negative and fit 31 bits (0 = unknown)
//   P2  the activation is f16, bf16, e4m3, e5m2, s8 or s4; the 8- and 4-bit
//   ones
//       have scales (per tensor or token), the others none
//   P3  the chip has an MMA instruction for the activation
//   P4  the weight has an exact dequantization sequence to the activation's
//       format (Humming/Target/Dequant.h) and is no wider than it
//   P5  the scale is f32, f16, bf16, e4m3, e5m2 or e8m0; float zero points have
//       16-bit scales
//   P6  along K a scale belongs to a whole row, or to 16, 32 or a multiple of
//       64 weights (a 64-wide slab holds whole groups or part of one); along N
//       to any number of rows; a shard begins with a group or a multiple of 64
//       weights into one
//   P7  zero points go with unsigned weights
//   P8  the output is f16 or bf16
//   P9  declared divisors are 1, 2, 4 or 8 (K: up to 16 bytes of activations,
//       at least 2) and divide the known sizes
//   P10 plain weights are 8-bit ones of the activations' format, without zero
//       points
//   P11 activation groups go with scales per token and are powers of two from
//       16 to 32768; scales are f32, or e8m0 with groups
//   P12 zero points of activations go with s8 without groups
//   P13 sums are f32, or f16 with f16 activations and weights (before scales)
//       of at most 512, so that sums of ordinary activations do not overflow,
//       or with e4m3 and e5m2 activations and operands whose largest product is
//       at most 4096, so that it takes 15 of them to overflow
//
// Rules of a config, each meaningful only if the ones before it hold:
//   L1  the chip has the MMA kind for the activation format
//   L2  blockN is a multiple of 64 (a strip of the packed layout), up to 512
//   L3  warpN is 16, 32 or 64 and divides blockN; with rows=tokens it is
//   blockN,
//       at most 256
//   L4  blockM is a multiple of 8 (the N side of the MMA), up to 512
//   L5  warpM is a multiple of 8 and divides blockM
//   L6  blockK is a multiple of 64 (a slab of the packed layout), up to 1024,
//   and
//       of 128 bytes of activations
//   L7  the blockK / 64 slabs of a stage are a multiple of warpsK
//   L8  32 to 1024 threads
//   L9  blockK is a multiple of the group or the group of blockK, for groups of
//       weights and of activations
//   L10 epilogue scaling exactly for whole-row scales
//   L11 operand scaling only if the scale is of the activation's 16-bit type or
//       converts to it and leaves products exact (scalesFitOperand)
//   L12 the chip has the copy mechanism
//   L13 2 to 8 stages; exactly 2 with copy=sync
//   L14 at most 128 accumulator registers a thread, partial sums included
//   L15 shared memory fits a block of the chip
//   L16 at most 255 registers a thread, and the block's fit the SM; with
//       copy=bulk or tensor no more than an even share
//   L17 splitK is 1 to 64
//   L18 with mma=wgmma whole warpgroups along N (blockN / warpN a multiple of
//       4; with rows=tokens along M), at most 256 tokens a warp (past 32 of s8
//       a multiple of 16; with rows=tokens features, see L3), copy=tensor, bulk
//       or cp.async and at least 3 stages, and plain weights only where groups
//       are whole steps of 32 bytes
//   L19 early=1 only on chips with griddepcontrol, not with copy=sync
//   L20 copy=bulk and tensor only where K comes in pieces of 16 bytes of
//       activations
//   L21 persistent=1 only with mma=wgmma and copy=bulk or tensor, without
//       splits and warps along K, N even, early=0: nothing of a tile's epilogue
//       touches shared memory, which holds the next tile
//   L22 cluster=1 only on chips with clusters and with 2 to 8 splits
//   L23 copy=tensor only with mma=wgmma, and at most 32 groups of scales a
//       stage (a thread of the producer warp for each)
//   L24 multicast only with copy=tensor and persistent=0, of a tile whose
//       halves are whole boxes (16 rows), weights only where they are plain,
//       and at most 8 blocks a cluster
//   L25 producers=0 only with copy=tensor, at least 4 stages and persistent=0:
//       a warp that copies and multiplies fills a stage two trips after its
//       use, when all others have left it too
//   L26 rows=tokens only with mma=wgmma, plain weights, copy=bulk or tensor, an
//       even N and one warp along K, warpM of 16, 32 or 64, and scales of
//       groups on the accumulators that are the same for all features of a
//       block: a tile of sums has one of them
//   L27 panel only with split_k=1, and whole clusters wide
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/Dequant.h"
#include "Humming/Target/KernelConfig.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <string>

using namespace humming;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

/// Formats of scales that the kernels read.
static bool isScaleFormat(const NumberFormat &format) {
  return format.isF32() || format.isF16() || format.isBF16() ||
         format.isE8M0() || format == NumberFormat::smallFloat(4, 3) ||
         format == NumberFormat::smallFloat(5, 2);
}

static bool isSixteenBitFloat(const NumberFormat &format) {
  return format.isF16() || format.isBF16();
}

static llvm::Error problemError(unsigned rule, const Twine &expected,
                                const Twine &got) {
  return llvm::createStringError("rule P" + Twine(rule) + ": expected " +
                                 expected + ", got " + got);
}

/// P11 to P13.
static llvm::Error checkActivationExtras(const MatmulProblem &problem) {
  const NumberFormat &activation = problem.activation;
  int32_t group = problem.activationGroup;
  if (group != 0 &&
      (problem.activationScale != ActivationScaleKind::Token || group < 16 ||
       group > 32768 || !llvm::isPowerOf2_32(uint32_t(group))))
    return problemError(11,
                        "activation groups with scales per token, a power of "
                        "two from 16 to 32768",
                        "groups of " + Twine(group) + " with scales per " +
                            stringify(problem.activationScale));
  if (!problem.activationScaleFormat.isF32() &&
      !(problem.activationScaleFormat.isE8M0() && group != 0))
    return problemError(11, "activation scales of f32, or e8m0 with groups",
                        problem.activationScaleFormat.str());
  if (problem.activationZeroPoint &&
      (activation != NumberFormat::signedInt(8) || group != 0))
    return problemError(
        12, "zero points with s8 activations without groups",
        activation.str() + Twine(" activations") +
            (group ? " in groups of " + Twine(group) : Twine()));
  bool mayHalve =
      activation.isF16() || (activation.isFloat() && activation.bits == 8);
  if (!problem.accumulator.isF32() &&
      !(problem.accumulator.isF16() && mayHalve))
    return problemError(13,
                        "sums of f32, or of f16 with f16, e4m3 or e5m2 "
                        "activations",
                        "sums of " + problem.accumulator.str() + " with " +
                            activation.str() + " activations");
  if (problem.accumulator.isF32())
    return llvm::Error::success();
  double largest = problem.weight.weight.maxFinite();
  if (problem.weight.table) {
    largest = 0;
    for (float value : problem.weight.table->values)
      largest = std::max(largest, std::fabs(double(value)));
  }
  if (activation.bits == 8) {
    // Quantization takes activations up to the format's largest number.
    largest *= std::ldexp(
        1.0, -dequantExponent(problem.weight,
                              weightOperand(problem.weight, activation)));
    if (!(largest * activation.maxFinite() <= 4096))
      return problemError(13,
                          "a largest product of at most 4096 with sums of f16 "
                          "(weights in a format narrower than their operands')",
                          problem.weight.weight.str() + " times " +
                              activation.str());
  } else if (!(largest <= 512))
    return problemError(13,
                        "weights of at most 512 (before scales) with sums of "
                        "f16",
                        problem.weight.weight.str());
  return llvm::Error::success();
}

llvm::Error humming::checkProblem(const MatmulProblem &problem,
                                  const TargetInfo &target) {
  const std::pair<const char *, int64_t> sizes[] = {
      {"M", problem.m}, {"N", problem.n}, {"K", problem.k}};
  for (auto [name, size] : sizes)
    if (size < 0 || size > INT32_MAX)
      return problemError(1, Twine(name) + " from 0 to 2147483647",
                          Twine(size));

  const NumberFormat &activation = problem.activation;
  bool isNarrow = activation == NumberFormat::smallFloat(4, 3) ||
                  activation == NumberFormat::smallFloat(5, 2) ||
                  activation == NumberFormat::signedInt(8) ||
                  activation == NumberFormat::signedInt(4);
  if (!isSixteenBitFloat(activation) && !isNarrow)
    return problemError(2, "activations of f16, bf16, e4m3, e5m2, s8 or s4",
                        activation.str());
  if (isNarrow != (problem.activationScale != ActivationScaleKind::None))
    return problemError(2,
                        Twine(isNarrow ? "scales" : "no scales") + " for " +
                            activation.str() + " activations",
                        stringify(problem.activationScale));
  if (llvm::none_of(target.mmaKinds, [&](MmaKind kind) {
        return target.supports(kind, problem.activation);
      })) {
    // f16 is in every row of the table.
    return problemError(3,
                        "activations of f16 on " + Twine(target.chip) +
                            ", which has no " + activation.str() + " MMA",
                        problem.activation.str());
  }

  const QuantType &weight = problem.weight;
  if (weight.zeroPoint != ZeroPointKind::None &&
      weight.weight.kind != NumberFormat::Kind::Unsigned)
    return problemError(7, "unsigned weights with zero points",
                        weight.weight.str());
  if (llvm::Error error =
          checkDequant(weight, weightOperand(weight, activation)))
    return llvm::createStringError("rule P4: " +
                                   llvm::toString(std::move(error)));
  if (weight.weight.bits > activation.bits)
    return problemError(4, "weights no wider than the activations",
                        weight.weight.str());
  if (!isScaleFormat(weight.scale))
    return problemError(5, "scales of f32, f16, bf16, e4m3, e5m2 or e8m0",
                        weight.scale.str());
  if (weight.zeroPoint == ZeroPointKind::Float &&
      !isSixteenBitFloat(weight.scale))
    return problemError(5, "scales of f16 or bf16 with float zero points",
                        weight.scale.str());

  const Granularity &granularity = weight.granularity;
  int32_t group = granularity.columns;
  if (group != 16 && group != 32 && group % 64 != 0)
    return problemError(6,
                        "a scale for a whole row or for a group of 16, 32 or a "
                        "multiple of 64 weights",
                        granularity.isGroup()
                            ? "a group of " + llvm::itostr(group)
                            : "blocks of " + llvm::itostr(granularity.rows) +
                                  "x" + llvm::itostr(group));
  // Slabs are 64 wide, and each belongs to one group then.
  if (weight.columnPhase != 0 && (weight.columnPhase % 64 || group % 64))
    return problemError(6,
                        "a shard that begins with a group or a multiple of 64 "
                        "weights into one (regroup or pad others: alignPhase "
                        "in Humming/Quant/QuantizedWeights.h)",
                        "a phase of " + llvm::itostr(weight.columnPhase) +
                            " in groups of " + llvm::itostr(group));

  if (!isSixteenBitFloat(problem.output))
    return problemError(8, "an output of f16 or bf16", problem.output.str());

  struct Divisor {
    const char *name;
    int32_t divisor;
    int64_t size;
  };
  const Divisor divisors[] = {{"K", problem.kDivisor, problem.k},
                              {"N", problem.nDivisor, problem.n}};
  for (const Divisor &d : divisors) {
    // Rows of activations are copied in pieces of 2 to 16 bytes.
    bool isK = d.name[0] == 'K';
    int32_t least = isK ? std::max(1, 16 / activation.bits) : 1;
    int32_t most = isK ? std::max(8, 128 / activation.bits) : 8;
    if (d.divisor < least || d.divisor > most ||
        !llvm::isPowerOf2_32(d.divisor))
      return problemError(9,
                          Twine("a divisor of ") + d.name +
                              ", a power of two from " + Twine(least) + " to " +
                              Twine(most),
                          Twine(d.divisor));
    if (d.size % d.divisor != 0)
      return problemError(
          9, Twine("a divisor of ") + d.name + " that divides " + Twine(d.size),
          Twine(d.divisor));
  }
  if (problem.weightLayout == WeightLayout::Plain && !problem.canBePlain())
    return problemError(10,
                        "plain weights of 8 bits in the activations' format " +
                            activation.str() +
                            ", without zero points (pack others)",
                        weight.str());
  return checkActivationExtras(problem);
}

//===----------------------------------------------------------------------===//
// Configs
//===----------------------------------------------------------------------===//

namespace {

/// Collects the first violation. Messages are built only if asked for: the
/// chooser asks about thousands of configs and wants the verdict alone.
struct Verdict {
  unsigned rule = 0;
  std::string *message = nullptr;

  /// Notes that `ok` must hold; `describe` returns {expected, got}.
  template <typename Describe>
  bool require(unsigned number, bool ok, Describe describe) {
    if (ok)
      return true;
    rule = number;
    if (message) {
      std::pair<std::string, std::string> text = describe();
      *message = "rule L" + llvm::utostr(number) + ": expected " + text.first +
                 ", got " + text.second;
    }
    return false;
  }
};

using Text = std::pair<std::string, std::string>;

} // namespace

static std::string str(int64_t value) { return llvm::itostr(value); }

/// L26: warp tiles that the others count in, so before them.
static bool checkTokenRows(const MatmulProblem &problem, const KernelConfig &c,
                           Verdict &verdict) {
  if (!c.tokenRows())
    return true;
  if (!verdict.require(
          26,
          problem.weightLayout == WeightLayout::Plain && c.warpsK == 1 &&
              storesDirectly(problem, c) &&
              (c.warpM == 16 || c.warpM == 32 || c.warpM == 64),
          [&] {
            return Text(
                "rows=features, or mma=wgmma, plain weights, copy=bulk or "
                "tensor, warps_k=1, an even N and warpM of 16, 32 or 64",
                "mma=" + stringify(c.mma).str() + ", " +
                    stringify(problem.weightLayout).str() +
                    " weights, copy=" + stringify(c.copy).str() +
                    ", warps_k=" + str(c.warpsK) + ", N a multiple of " +
                    str(problem.nDivisor) + " and warpM " + str(c.warpM));
          }))
    return false;
  const QuantType &weight = problem.weight;
  int32_t rows = weight.granularity.rows;
  bool isUniform =
      rows > 0 && rows % c.blockN == 0 && weight.rowPhase % c.blockN == 0;
  return verdict.require(
      26,
      c.scale == ScalePlacement::Epilogue ||
          (c.scale == ScalePlacement::Accumulator && isUniform),
      [&] {
        return Text("rows=features, or scale=accumulator and groups of scales "
                    "whose features are whole blocks of " +
                        str(c.blockN),
                    "scale=" + stringify(c.scale).str() + ", groups of " +
                        str(rows) + " features and a phase of " +
                        str(weight.rowPhase));
      });
}

/// The rules in order; false at the first that does not hold.
static bool checkRules(const MatmulProblem &problem, const KernelConfig &c,
                       const TargetInfo &target, Verdict &verdict) {
  const QuantType &weight = problem.weight;

  if (!verdict.require(1, target.supports(c.mma, problem.activation), [&] {
        std::string kinds;
        for (MmaKind kind : target.mmaKinds)
          if (target.supports(kind, problem.activation))
            kinds += (kinds.empty() ? "" : " or ") + stringify(kind).str();
        if (kinds.empty())
          kinds = "no MMA";
        return Text("mma=" + kinds + " for " + problem.activation.str() +
                        " on " + target.chip.str(),
                    stringify(c.mma).str());
      }))
    return false;
  if (!verdict.require(
          2, c.blockN > 0 && c.blockN % 64 == 0 && c.blockN <= 512, [&] {
            return Text("blockN a multiple of 64, at most 512", str(c.blockN));
          }))
    return false;
  if (!verdict.require(
          3,
          c.tokenRows() ? c.warpN == c.blockN && c.warpN <= 256
                        : (c.warpN == 16 || c.warpN == 32 || c.warpN == 64) &&
                              c.blockN % c.warpN == 0,
          [&] {
            return Text(c.tokenRows() ? "warpN to be blockN, at most 256, with "
                                        "rows=tokens"
                                      : "warpN of 16, 32 or 64",
                        str(c.warpN));
          }))
    return false;
  if (!verdict.require(
          4, c.blockM > 0 && c.blockM % 8 == 0 && c.blockM <= 512, [&] {
            return Text("blockM a multiple of 8, at most 512", str(c.blockM));
          }))
    return false;
  if (!verdict.require(
          5, c.warpM > 0 && c.warpM % 8 == 0 && c.blockM % c.warpM == 0, [&] {
            return Text("warpM a multiple of 8 that divides blockM (" +
                            str(c.blockM) + ")",
                        str(c.warpM));
          }))
    return false;
  if (!verdict.require(6,
                       c.blockK > 0 &&
                           c.blockK % (1024 / problem.activation.bits) == 0 &&
                           c.blockK % 64 == 0 && c.blockK <= 1024,
                       [&] {
                         return Text("blockK a multiple of " +
                                         str(1024 / problem.activation.bits) +
                                         ", at most 1024",
                                     str(c.blockK));
                       }))
    return false;
  int32_t slabs = c.blockK / 64;
  if (!verdict.require(7, c.warpsK > 0 && slabs % c.warpsK == 0, [&] {
        return Text("warps_k that divides the " + str(slabs) +
                        " 64-wide slabs of blockK",
                    str(c.warpsK));
      }))
    return false;
  // At most 32 * 64 * 16 warps here: no overflow.
  int64_t threads = c.blockThreads();
  if (!verdict.require(8, threads >= 32 && threads <= 1024, [&] {
        return Text("32 to 1024 threads",
                    str(threads) + " (" + str(c.warpsN()) + " x " +
                        str(c.warpsM()) + " x " + str(c.warpsK) + " warps)");
      }))
    return false;

  if (!checkTokenRows(problem, c, verdict))
    return false;

  int32_t group = weight.granularity.columns;
  bool wholeRow = group == 0;
  if (!verdict.require(
          9,
          wholeRow ||
              (group > 0 && (c.blockK % group == 0 || group % c.blockK == 0)),
          [&] {
            return Text("blockK a multiple or a divisor of the group (" +
                            str(group) + ")",
                        str(c.blockK));
          }))
    return false;
  int32_t aGroup = problem.activationGroup;
  if (!verdict.require(
          9, aGroup == 0 || c.blockK % aGroup == 0 || aGroup % c.blockK == 0,
          [&] {
            return Text("blockK a multiple or a divisor of the activation "
                        "group (" +
                            str(aGroup) + ")",
                        str(c.blockK));
          }))
    return false;
  if (!verdict.require(
          10, wholeRow == (c.scale == ScalePlacement::Epilogue), [&] {
            return Text(wholeRow ? "scale=epilogue for whole-row scales"
                                 : "scale=operand or accumulator for groups "
                                   "along K",
                        stringify(c.scale).str());
          }))
    return false;
  if (!verdict.require(11,
                       c.scale != ScalePlacement::Operand ||
                           scalesFitOperand(weight, problem.activation,
                                            target.convertsFp8()),
                       [&] {
                         return Text("scale=accumulator for " +
                                         weight.scale.str() + " scales and " +
                                         problem.activation.str() +
                                         " activations",
                                     stringify(c.scale).str());
                       }))
    return false;
  bool hasCopy = c.copy == CopyKind::Sync ||
                 (c.copy == CopyKind::Tensor ? target.hasTensorCopy
                  : c.copy == CopyKind::Bulk ? target.hasBulkCopy
                                             : target.hasCpAsync);
  if (!verdict.require(12, hasCopy, [&] {
        return Text((target.hasCpAsync ? "copy=cp.async or sync on "
                                       : "copy=sync on ") +
                        target.chip.str(),
                    stringify(c.copy).str());
      }))
    return false;
  if (!verdict.require(
          13,
          c.copy == CopyKind::Sync ? c.stages == 2
                                   : c.stages >= 2 && c.stages <= 8,
          [&] {
            return Text(c.copy == CopyKind::Sync ? "2 stages with copy=sync"
                                                 : "2 to 8 stages",
                        str(c.stages));
          }))
    return false;
  int32_t accumulators =
      c.rowUnits() * c.columnTiles() * 4 * (hasPartialSums(problem, c) ? 2 : 1);
  int32_t mostAccumulators = c.producers ? 128 : 192;
  if (!verdict.require(14, accumulators <= mostAccumulators, [&] {
        return Text("at most " + str(mostAccumulators) +
                        " accumulator registers a thread (a smaller warp tile)",
                    str(accumulators));
      }))
    return false;
  int64_t shared = predictSharedMemory(problem, c);
  if (!verdict.require(15, shared <= target.sharedMemoryPerBlock, [&] {
        return Text("at most " + str(target.sharedMemoryPerBlock) +
                        " bytes of shared memory on " + target.chip.str(),
                    str(shared));
      }))
    return false;
  int32_t registers = predictRegisters(problem, c);
  // Registers are handed out eight at a time.
  int64_t blockRegisters = (registers + 7) / 8 * 8 * threads;
  int64_t mostRegisters = 255;
  if (c.usesRing()) {
    // All threads of a block get as many. (setmaxnreg would share them out, but
    // nvJitLink 13.0 ignores it.) The estimate for wgmma is 12 too high
    // (AssembleChoicesTest: 178 for 166, with partial sums 178 for 161).
    // Each of the SM's four parts has a quarter of the registers and of the
    // block's warps, rounded up: a producer warp costs as much as four (ptxas
    // gives blocks of 288 threads 168 registers a thread, not 224).
    int64_t even =
        target.registersPerSM / ((threads + 127) / 128 * 128) / 8 * 8;
    bool sparing = c.mma == MmaKind::Wgmma;
    mostRegisters = std::min<int64_t>(255, even + (sparing ? 12 : 0));
    blockRegisters = std::min<int64_t>(registers, even) * threads;
  }
  if (!verdict.require(
          16,
          registers <= mostRegisters && blockRegisters <= target.registersPerSM,
          [&] {
            return Text("at most " + str(mostRegisters) +
                            " registers a thread and " +
                            str(target.registersPerSM) + " a block",
                        str(registers) + " a thread, " + str(blockRegisters) +
                            " a block");
          }))
    return false;
  if (!verdict.require(17, c.splitK >= 1 && c.splitK <= 64, [&] {
        return Text("split_k from 1 to 64", str(c.splitK));
      }))
    return false;
  if (!verdict.require(
          19,
          c.early == 0 ||
              (target.hasGridDependency && c.copy != CopyKind::Sync),
          [&] {
            return Text("early=0 on " + target.chip.str() +
                            " with copy=" + stringify(c.copy).str(),
                        "early=" + str(c.early));
          }))
    return false;
  int32_t pieceBytes = problem.kDivisor * problem.activation.bits / 8;
  if (!verdict.require(20, !c.usesRing() || pieceBytes >= 16, [&] {
        return Text("copy=cp.async for K in pieces of less than 16 bytes of "
                    "activations",
                    "copy=" + stringify(c.copy).str() + " and pieces of " +
                        str(pieceBytes));
      }))
    return false;
  if (!verdict.require(
          21,
          c.persistent == 0 || (storesDirectly(problem, c) && c.splitK == 1 &&
                                c.warpsK == 1 && c.early == 0),
          [&] {
            return Text(
                "persistent=0, or mma=wgmma, copy=bulk or tensor, split_k=1, "
                "warps_k=1, early=0 and an even N",
                "persistent=" + str(c.persistent) +
                    " with mma=" + stringify(c.mma).str() + ", copy=" +
                    stringify(c.copy).str() + ", split_k=" + str(c.splitK) +
                    ", warps_k=" + str(c.warpsK) + ", early=" + str(c.early) +
                    " and N a multiple of " + str(problem.nDivisor));
          }))
    return false;
  // Eight blocks a cluster work on every chip that has them.
  if (!verdict.require(
          22,
          c.cluster == 0 ||
              (target.hasClusters && c.splitK >= 2 && c.splitK <= 8),
          [&] {
            return Text("cluster=0, or split_k from 2 to 8 on sm_90 and later",
                        "cluster=" + str(c.cluster) + " with split_k=" +
                            str(c.splitK) + " on " + target.chip.str());
          }))
    return false;
  int32_t groups = groupsOfStage(weight, c.blockK);
  if (!verdict.require(
          23,
          c.copy != CopyKind::Tensor ||
              (c.mma == MmaKind::Wgmma && groups <= c.copyThreads()),
          [&] {
            return Text("mma=wgmma and at most 32 groups of scales a stage "
                        "with copy=tensor",
                        "mma=" + stringify(c.mma).str() + " and " +
                            str(groups));
          }))
    return false;
  if (!verdict.require(
          27,
          c.panel == 0 ||
              (c.panel > 0 && c.panel % c.clusterN() == 0 && c.splitK == 1),
          [&] {
            return Text("panel=0, or whole clusters of features with split_k=1",
                        "panel=" + str(c.panel) + " with clusters of " +
                            str(c.clusterN()) +
                            " and split_k=" + str(c.splitK));
          }))
    return false;
  if (!verdict.require(
          25,
          c.producers != 0 || (c.copy == CopyKind::Tensor && c.stages >= 4 &&
                               c.persistent == 0),
          [&] {
            return Text("producers=1, or copy=tensor, at least 4 stages and "
                        "persistent=0",
                        "producers=0 with copy=" + stringify(c.copy).str() +
                            ", " + str(c.stages) +
                            " stages and persistent=" + str(c.persistent));
          }))
    return false;
  // A box is of 8 rows or a multiple.
  int32_t sharedRows =
      c.multicast == Multicast::Activations ? c.blockM : c.blockN;
  if (!verdict.require(
          24,
          c.multicast == Multicast::None ||
              (c.copy == CopyKind::Tensor && c.persistent == 0 &&
               sharedRows % 16 == 0 &&
               (c.multicast != Multicast::Weights ||
                problem.weightLayout == WeightLayout::Plain) &&
               c.blocksOfMulticast() * c.clusterK() <= 8),
          [&] {
            return Text(
                "multicast=none, or copy=tensor, persistent=0, a "
                "shared tile of a multiple of 16 rows, plain weights "
                "where they are shared, and at most 8 blocks a cluster",
                "multicast=" + stringify(c.multicast).str() +
                    " with copy=" + stringify(c.copy).str() + ", persistent=" +
                    str(c.persistent) + ", " + str(sharedRows) + " rows, " +
                    stringify(problem.weightLayout).str() + " weights and " +
                    str(c.blocksOfMulticast() * c.clusterK()) + " blocks");
          }))
    return false;
  if (c.mma != MmaKind::Wgmma)
    return true;
  // Of whole warpgroups; columns are those of one MMA.
  int32_t rowWarps = c.tokenRows() ? c.warpsM() : c.warpsN();
  int32_t columns = c.columnTiles() * 8;
  return verdict.require(
      18,
      rowWarps % 4 == 0 && columns <= 256 && c.copy != CopyKind::Sync &&
          c.stages >= 3 &&
          (problem.weightLayout == WeightLayout::Packed ||
           partsOfStep(problem, c) == 1) &&
          (problem.activation.isFloat() || columns <= 32 || columns % 16 == 0),
      [&] {
        return Text(
            "mma=wgmma with 4 warps or a multiple along N (with rows=tokens "
            "along M), at most 256 "
            "tokens a warp (past 32 of s8 a multiple of 16), "
            "copy=tensor, bulk or cp.async and at least 3 stages, and packed "
            "weights for groups shorter than 32 bytes",
            str(rowWarps) + " warps, " + str(columns) +
                (c.tokenRows() ? " features, copy=" : " tokens, copy=") +
                stringify(c.copy).str() + ", " + str(c.stages) +
                " stages and " + stringify(problem.weightLayout).str() +
                " weights");
      });
}

unsigned humming::firstViolatedRule(const MatmulProblem &problem,
                                    const KernelConfig &config,
                                    const TargetInfo &target) {
  Verdict verdict;
  checkRules(problem, config, target, verdict);
  return verdict.rule;
}

llvm::Error humming::checkConfig(const MatmulProblem &problem,
                                 const KernelConfig &config,
                                 const TargetInfo &target) {
  std::string message;
  Verdict verdict;
  verdict.message = &message;
  if (checkRules(problem, config, target, verdict))
    return llvm::Error::success();
  return llvm::createStringError(message);
}
