//===- TileSlabs.cpp - What a block's program computes a trip ---*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A trip of the K loop walks the warp's slabs of 64: loads, dequantization,
// MMAs, and where scales are due on the way, partial sums that are scaled into
// the accumulators.
//
//===----------------------------------------------------------------------===//

#include "TileProgram.h"
#include <functional>

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

/// The scales of the warp's tokens for part `part` of `parts` of a slab; with
/// rows=tokens by row, as scale_accumulate takes them.
Value TileProgram::loadTokenScales(Value slab, int64_t part, int64_t parts) {
  int64_t size = activationGroup();
  Value index;
  if (activationGroupsOfStage() == 1)
    index = ib.constant(0);
  else if (size >= kSlab)
    index = ib.div(slab, size / kSlab);
  else
    index = ib.add(ib.mul(slab, kSlab / size), part * (kSlab / size) / parts);
  // The tile begins at a multiple of 16 tokens, the block at one of 8.
  Value token = warpToken;
  if (config.blockM % 16 != 0)
    token = ib.add(token, ib.rem(firstToken, 16));
  int64_t wordsOfTile = problem.activationScaleFormat.isF32() ? 2 : 1;
  return LoadTokenScalesOp::create(
      builder, loc, words({tokenRows() ? units() : columnTiles(), wordsOfTile}),
      tokenScaleTile, /*stage=*/Value(), token, index, tokensOfScaleTile(),
      tokenRows());
}

/// Adds a partial sum whose rows are tokens to the accumulators, times the
/// scales that are due with it: of the rows, and of group `group` of the
/// weights, which is one for all columns.
Value TileProgram::accumulateRows(Value partial, Value tokenScales,
                                  Value scales, int64_t group,
                                  Value accumulators) {
  NumberFormat scaleFormat = quant().scale;
  int64_t scaleExponent = exponent();
  if (tokenScales && scales) {
    scales = MultiplyScalesOp::create(builder, loc, words({units(), 2}),
                                      tokenScales, scales, group,
                                      format(problem.activationScaleFormat),
                                      format(quant().scale), exponent());
    scaleFormat = NumberFormat::f32();
  } else if (tokenScales) {
    scales = tokenScales;
    scaleFormat = problem.activationScaleFormat;
  }
  if (tokenScales)
    group = scaleExponent = 0;
  // Sums are f32 or s32 here: f16 ones are of narrower weights (rule P13).
  return ScaleAccumulateOp::create(builder, loc, accumulatorType, partial,
                                   scales, accumulators, group,
                                   format(scaleFormat), scaleExponent);
}

/// The first group of a slab, within the stage's tile.
Value TileProgram::slabsFirstGroup(Value trip, Value slab) {
  if (groupsOfStage() == 1)
    return ib.constant(0);
  if (group() <= kSlab)
    return ib.mul(slab, groupsOfSlab());
  if (phase() == 0)
    return ib.div(slab, group() / kSlab);
  // Stages that are whole groups begin at the same place in one.
  Value first = ib.constant(phase());
  if (config.blockK % group() != 0)
    first = ib.rem(ib.add(ib.mul(trip, config.blockK), phase()), group());
  return ib.div(ib.add(ib.mul(slab, kSlab), first), group());
}

/// The warp's slabs of one stage, unrolled. With scales of groups, or f16 sums,
/// a partial sum runs as long as the group (the warp's part of the stage) does.
void TileProgram::createSlabs(Value trip, ValueRange init,
                              SmallVectorImpl<Value> &result) {
  Value accumulators = init.front();
  bool onAccumulators = config.scale == ScalePlacement::Accumulator;
  bool onOperand = config.scale == ScalePlacement::Operand;
  int64_t steps = kSlab / mma.getStepDepth();
  bool isPartial = hasPartialSums(problem, config);
  Value zero, partial;
  if (isPartial)
    zero = partial =
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(sumType));

  // What a slab's weights become operands from.
  struct Slab {
    Value packed, scales, zeroPoints;
  };
  auto loadSlab = [&](int64_t j, const Slab &before) {
    Value slab = ib.add(warpSlab, j);
    Slab result;
    if (!plain())
      result.packed = LoadWeightsOp::create(
          builder, loc, words({units(), quant().weight.bits}), weightTile,
          Value(), warpUnit, slab, slabs(), unitStride());
    if (before.packed && groupsOfStage() == 1) {
      result.scales = before.scales;
      result.zeroPoints = before.zeroPoints;
      return result;
    }
    Value firstGroup = slabsFirstGroup(trip, slab);
    auto loadScales = [&](Value tile, int64_t bits) -> Value {
      int64_t wordsOfSlab = groupsOfSlab() * (bits == 32 ? 2 : 1);
      return LoadScalesOp::create(builder, loc, words({units(), wordsOfSlab}),
                                  tile, Value(), warpUnit, firstGroup, strips(),
                                  bits, unitStride(), /*uniform=*/tokenRows());
    };
    if (grouped())
      result.scales = loadScales(scaleTile, quant().scale.bits);
    if (hasZeroPoints())
      result.zeroPoints = loadScales(zeroPointTile, zeroPointBits());
    return result;
  };
  // With wgmma what the next slab needs is on its way while one is multiplied:
  // by itself no load moves over a wait.
  // Packed weights that are operands as they are stay in their registers while
  // they are multiplied.
  bool loadsAhead = !plain() && usesWarpgroups() &&
                    quant().weight != problem.activation &&
                    units() * quant().weight.bits <= kMostWordsAhead;
  Slab next;
  if (loadsAhead)
    next = loadSlab(0, Slab());
  // With two sets of partial sums one is scaled while the other is multiplied.
  std::function<void(int64_t)> scaleLast;
  int64_t groupsInFlight = 0; // of the partial sum's MMAs
  for (int64_t j = 0; j < slabsOfWarp(); ++j) {
    Value slab = ib.add(warpSlab, j);
    Slab loaded = next;
    if (!loadsAhead)
      loaded = loadSlab(j, Slab());
    else if (j + 1 < slabsOfWarp())
      next = loadSlab(j + 1, loaded);
    Value packed = loaded.packed, scales = loaded.scales,
          zeroPoints = loaded.zeroPoints;
    Value b;
    if (!usesWarpgroups())
      b = LoadActivationsOp::create(
          builder, loc, words({columnTiles(), steps, 2}), activationTile,
          Value(), warpToken, slab, config.blockM);

    Value step; // what the last of several parts had dequantized
    int64_t stepAt = -1;
    auto dequantize = [&](int64_t first, int64_t count) -> Value {
      if (stepAt == first)
        return step;
      stepAt = first;
      step = DequantOp::create(
          builder, loc, words({units(), count, mma.getNumARegisters()}), packed,
          onOperand ? scales : Value(), zeroPoints, format(quant().weight), mma,
          format(quant().scale), quant().zeroPoint == ZeroPointKind::Float,
          first, codeTable(), usesNativeConvert());
      return step;
    };
    Value a;
    if (!usesWarpgroups())
      a = plain() ? LoadPlainWeightsOp::create(
                        builder, loc,
                        words({units(), steps, mma.getNumARegisters()}),
                        weightTile, Value(), warpUnit, slab, config.blockN)
                        .getResult()
                  : dequantize(0, steps);
    // Multiplies steps [first, last), or a part of them. A warpgroup takes a
    // step at a time: while the tensor cores work on one, the next is
    // dequantized.
    auto multiply = [&](int64_t first, int64_t last, Value c, bool zero,
                        int64_t part = 0, int64_t parts = 1) -> Value {
      if (!usesWarpgroups())
        return MmaOp::create(builder, loc, sumType, a, b, c, syncMma, first,
                             last, part, parts);
      // Nothing but the buffers and the sums is in flight: one group, and a
      // wait where the sums or the buffers are needed.
      if (plain()) {
        c = WarpgroupMmaTilesOp::create(
            builder, loc, sumType, tokenRows() ? activationTile : weightTile,
            tokenRows() ? weightTile : activationTile, Value(), warpUnit,
            tokenRows() ? warpFeature : warpToken, slab, c, warpgroupMma, first,
            last, tokenRows() ? config.blockM : config.blockN,
            tokenRows() ? config.blockN : config.blockM, zero);
        if (!isPartial && j + 1 == slabsOfWarp() && last == steps)
          c = WarpgroupWaitOp::create(builder, loc, sumType, c, 0);
        return c;
      }
      for (int64_t s = first; s < last; ++s) {
        c = WarpgroupMmaOp::create(builder, loc, sumType, dequantize(s, 1),
                                   activationTile, Value(), warpToken, slab, c,
                                   warpgroupMma, s, config.blockM,
                                   zero && s == first, part, parts);
        // Nothing stays in flight into the next trip: ptxas (13.0) takes the
        // registers of A for free at a loop's back edge, though a wgmma still
        // reads them, and overwrites them (seen as wrong results on an H200).
        // Partial sums are waited for where they are scaled.
        bool lastOfTrip =
            j + 1 == slabsOfWarp() && s + 1 == steps && part + 1 == parts;
        if (lastOfTrip && isPartial)
          continue;
        // Nor is it waited for here where the sums before are (scaleLast).
        if (overlapsSums(problem, config) && last - first == 1)
          continue;
        c = WarpgroupWaitOp::create(builder, loc, sumType, c,
                                    lastOfTrip ? 0 : stepsInFlight());
      }
      return c;
    };

    if (!isPartial) {
      accumulators = multiply(0, steps, accumulators, false);
      continue;
    }
    int64_t size = partialGroup();
    int64_t partialsOfSlab = size == 0 || size >= kSlab ? 1 : kSlab / size;
    int64_t parts = partsOfStep(problem, config);
    // A group may end, or begin, at multiples of this of the matrix; where the
    // warp's run of slabs and the group do not divide each other, at every
    // slab.
    int64_t run = slabsOfWarp() * kSlab;
    auto mayEnd = [&](int64_t size, int64_t phase) {
      int64_t period = std::min(size, run);
      if (size <= kSlab || (size % run != 0 && run % size != 0))
        period = kSlab;
      return ((j + 1) * kSlab + phase) % period == 0;
    };
    bool flush = j + 1 == slabsOfWarp() ||
                 (onAccumulators && mayEnd(group(), phase())) ||
                 (activationGroup() && mayEnd(activationGroup(), 0));
    for (int64_t g = 0; g < partialsOfSlab; ++g) {
      // Whole steps, or a part of one.
      int64_t first = g * steps / partialsOfSlab;
      int64_t last = std::max(first + 1, (g + 1) * steps / partialsOfSlab);
      // By rows they are few: loaded before the MMAs, they are there after
      // them.
      Value tokenScales;
      if (flush && activationGroup() && tokenRows())
        tokenScales = loadTokenScales(slab, g, partialsOfSlab);
      partial =
          multiply(first, last, partial, partial == zero, g % parts, parts);
      groupsInFlight += plain() ? 1 : last - first;
      if (!flush)
        continue;
      // Scales the partial sum once nothing but `pending` MMA groups, those of
      // the next one, is in flight.
      auto scale = [&, partial, tokenScales, scales, slab, g,
                    partialsOfSlab](int64_t pending) mutable {
        if (usesWarpgroups())
          partial =
              WarpgroupWaitOp::create(builder, loc, sumType, partial, pending);
        int64_t scaleGroup = g * groupsOfSlab() / partialsOfSlab;
        if (tokenRows()) {
          accumulators = accumulateRows(partial, tokenScales,
                                        onAccumulators ? scales : Value(),
                                        scaleGroup, accumulators);
          return;
        }
        if (activationGroup())
          tokenScales = loadTokenScales(slab, g, partialsOfSlab);
        if (tokenScales || problem.accumulator.isF16())
          partial = AccumulateOp::create(
              builder, loc, accumulatorType, partial, tokenScales,
              onAccumulators ? Value() : accumulators);
        accumulators = onAccumulators
                           ? ScaleAccumulateOp::create(
                                 builder, loc, accumulatorType, partial, scales,
                                 accumulators, scaleGroup,
                                 format(quant().scale), exponent())
                                 .getResult()
                           : partial;
      };
      if (!overlapsSums(problem, config)) {
        scale(0);
      } else {
        if (scaleLast)
          scaleLast(groupsInFlight);
        scaleLast = scale;
      }
      groupsInFlight = 0;
      partial = zero;
    }
  }
  if (scaleLast)
    scaleLast(0);
  result.push_back(accumulators);
}
