//===- TileProgram.cpp - One block's program of a matmul --------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block computes blockN features x blockM tokens. Its warps split that tile
// into warpN x warpM parts and, with warps_k > 1, the K slabs of each stage
// among themselves. Warp w stands at
//
//   n = w % warpsN,   m = (w / warpsN) % warpsM,   k = w / (warpsN * warpsM)
//
// Features are the rows of its MMAs and tokens the columns. With rows=tokens it
// is the other way round: 4 consecutive m work on strips of 64 tokens together,
// as 4 consecutive n do on strips of 64 features otherwise, over all features
// of the block.
//
// Every trip of the K loop copies blockK deep tiles of weights, activations,
// scales and zero points, then walks the warp's slabs of 64. All addresses are
// in cells (see hquant.copy_tile), so the same program serves any N, K and M;
// what lies outside is read as zero and never stored.
//
//===----------------------------------------------------------------------===//

#include "TileProgram.h"
#include "Humming/Conversion/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

gpu::GPUFuncOp TileProgram::build(StringRef name) {
  if (usesWarpgroups())
    mma = warpgroupMma =
        tokenRows() ? WarpgroupMmaAttr::get(builder.getContext(), config.warpN,
                                            problem.activation, operand(),
                                            problem.accumulator)
                    : WarpgroupMmaAttr::get(builder.getContext(), config.warpM,
                                            operand(), problem.activation,
                                            problem.accumulator);
  else
    mma = syncMma =
        SyncMmaAttr::get(builder.getContext(), config.mma, operand(),
                         problem.activation, problem.accumulator);
  accumulatorType =
      VectorType::get({units(), columnTiles(), 4}, builder.getF32Type());
  sumType =
      problem.activation.isInteger()
          ? VectorType::get(accumulatorType.getShape(), builder.getI32Type())
      : problem.accumulator.isF16()
          ? VectorType::get({units(), columnTiles(), 2}, builder.getI32Type())
          : accumulatorType;
  createFunction(name);
  createCoordinates();
  // Weights, scales and zero points do not depend on the kernel before.
  if (config.early) {
    GridStartOp::create(builder, loc);
    GridWaitOp::create(builder, loc);
  }
  if (config.persistent)
    createTiles();
  else
    createEpilogue(createLoop());
  gpu::ReturnOp::create(builder, loc);
  return function;
}

void TileProgram::createFunction(StringRef name) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext(), 1);
  Type i32 = builder.getI32Type();
  Type map = LLVM::LLVMPointerType::get(builder.getContext());
  SmallVector<Type> arguments(NumArguments, i32);
  for (int i = ArgX; i <= ArgWorkspace; ++i)
    arguments[i] = pointer;
  for (int i = ArgGlobalScales; i < NumArguments; ++i)
    arguments[i] = pointer;
  if (usesTensorMaps())
    arguments.append(plain() ? 2 : 1, map);

  // At least what the verifiers of its users and an address need.
  int64_t scratchBytes =
      std::max<int64_t>(layoutSharedMemory(problem, config).epilogueBytes, 128);
  SmallVector<Type> buffers = {
      workgroupBytes(int64_t(config.blockM) * config.blockK *
                     problem.activation.bits / 8),
      workgroupBytes(int64_t(config.blockN) * config.blockK *
                     quant().weight.bits / 8)};
  if (grouped())
    buffers.push_back(workgroupBytes(groupsOfStage() * config.blockN *
                                     quant().scale.bits / 8));
  if (hasZeroPoints())
    buffers.push_back(
        workgroupBytes(groupsOfStage() * config.blockN * zeroPointBits() / 8));
  if (activationGroup())
    buffers.push_back(
        workgroupBytes(activationGroupsOfStage() * tokensOfScaleTile() *
                       problem.activationScaleFormat.bits / 8));
  buffers.push_back(workgroupBytes(scratchBytes));

  builder.setInsertionPointToEnd(module.getBody());
  function = gpu::GPUFuncOp::create(
      builder, loc, name, builder.getFunctionType(arguments, {}), buffers);
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                    builder.getUnitAttr());
  function.setKnownBlockSizeAttr(
      builder.getDenseI32ArrayAttr({config.numThreads(), 1, 1}));
  if (config.cluster || config.multicast != Multicast::None)
    function.setKnownClusterSizeAttr(builder.getDenseI32ArrayAttr(
        {config.clusterN(), config.clusterM(), config.clusterK()}));
  // What the resource check and the launch description need to know.
  function->setAttr("hquant.lowering_config", op.getLoweringConfigAttr());

  ArrayRef<BlockArgument> workgroup = function.getWorkgroupAttributions();
  activationTile = workgroup[0];
  weightTile = workgroup[1];
  size_t next = 2;
  if (grouped())
    scaleTile = workgroup[next++];
  if (hasZeroPoints())
    zeroPointTile = workgroup[next++];
  if (activationGroup())
    tokenScaleTile = workgroup[next++];
  scratch = workgroup[next];
  builder.setInsertionPointToStart(&function.getBody().front());
}

/// Column and row of tile (or cluster of tiles) `index` of `columns` x `rows`,
/// which are numbered in panels of `width` columns: blocks start in the order
/// of their numbers, so those that run together share what L2 holds. Width 2:
///
///   0 1 | 6 7 | 12
///   2 3 | 8 9 | 13
///   4 5 | 10 11 | 14
std::pair<Value, Value> TileProgram::createPositionInPanels(Value index,
                                                            Value columns,
                                                            Value rows,
                                                            int32_t width) {
  Value size = ib.mul(rows, width);
  Value panel = arith::DivUIOp::create(builder, loc, index, size);
  Value within = arith::RemUIOp::create(builder, loc, index, size);
  Value first = ib.mul(panel, width);
  // The last panel may be narrower.
  Value here = ib.min(ib.constant(width), ib.sub(columns, first));
  return {
      ib.add(first, Value(arith::RemUIOp::create(builder, loc, within, here))),
      arith::DivUIOp::create(builder, loc, within, here)};
}

void TileProgram::createCoordinates() {
  Type i32 = builder.getI32Type();
  Value thread = arith::IndexCastOp::create(
      builder, loc, i32,
      gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x));
  Value warp = ib.div(thread, 32);
  Value warpN = ib.rem(warp, config.warpsN());
  Value rest = ib.div(warp, config.warpsN());
  Value warpM = ib.rem(rest, config.warpsM());
  Value rowWarp = tokenRows() ? warpM : warpN;
  warpUnit = usesWarpgroups() ? ib.add(ib.mul(ib.div(rowWarp, 4), 4 * units()),
                                       ib.rem(warp, 4))
                              : ib.mul(rowWarp, units());
  warpFeature =
      tokenRows() ? ib.mul(warpN, config.warpN) : ib.mul(warpUnit, kUnit);
  warpToken =
      tokenRows() ? ib.mul(warpUnit, kUnit) : ib.mul(warpM, config.warpM);
  warpSlab = config.warpsK == 1
                 ? ib.constant(0)
                 : ib.mul(ib.div(rest, config.warpsM()), slabsOfWarp());

  if (!config.persistent) {
    Value x = blockIndex(gpu::Dimension::x), y = blockIndex(gpu::Dimension::y);
    Value column = x, row = y;
    if (config.panel) {
      int32_t clusterN = config.clusterN(), clusterM = config.clusterM();
      Value columns = ib.div(gridSize(gpu::Dimension::x), clusterN);
      Value rows = ib.div(gridSize(gpu::Dimension::y), clusterM);
      Value cluster = ib.add(ib.div(x, clusterN),
                             Value(arith::MulIOp::create(
                                 builder, loc, ib.div(y, clusterM), columns)));
      auto [ofColumn, ofRow] = createPositionInPanels(cluster, columns, rows,
                                                      config.panel / clusterN);
      column = ib.add(ib.mul(ofColumn, clusterN), ib.rem(x, clusterN));
      row = ib.add(ib.mul(ofRow, clusterM), ib.rem(y, clusterM));
    }
    firstStrip = ib.mul(column, strips());
    firstToken = ib.mul(row, config.blockM);
  }
  numStrips = ib.ceilDiv(arg(ArgN), kStrip);
  numSlabs = ib.ceilDiv(arg(ArgK), kSlab);
  numGroups = group() == 0 ? ib.constant(1)
                           : ib.ceilDiv(ib.add(arg(ArgK), phase()), group());

  Value trips = ib.ceilDiv(numSlabs, slabs());
  if (config.splitK == 1) {
    firstTrip = ib.constant(0);
    lastTrip = trips;
    slabBound = numSlabs;
    kBound = arg(ArgK);
    return;
  }
  // Split z takes trips [z * share, (z + 1) * share); the last ones may be
  // empty.
  Value splits = gridSize(gpu::Dimension::z);
  Value share = arith::CeilDivUIOp::create(builder, loc, trips, splits);
  Value begin =
      arith::MulIOp::create(builder, loc, blockIndex(gpu::Dimension::z), share);
  firstTrip = ib.min(begin, trips);
  lastTrip = ib.min(ib.add(begin, share), trips);
  slabBound = ib.min(ib.mul(lastTrip, slabs()), numSlabs);
  kBound = ib.min(ib.mul(lastTrip, config.blockK), arg(ArgK));
}

void TileProgram::copy(KernelArgument source, Value row, Value column,
                       Value rowBound, Value columnBound, Value stride,
                       Value dest, int64_t cellBytes, int64_t rows,
                       int64_t columns, int64_t granule, bool swizzle) {
  Value map;
  int64_t blocks = 1;
  if (usesTensorMaps() && swizzle) {
    map = arg(source == ArgX ? ArgActivationMap : ArgWeightMap);
    blocks = source == ArgX ? config.blocksOfActivations()
                            : config.blocksOfWeights();
  }
  CopyTileOp::create(builder, loc, arg(source), row, column, rowBound,
                     columnBound, stride, dest, /*stage=*/Value(),
                     /*ring=*/Value(), map, cellBytes, rows, columns, granule,
                     config.numThreads(),
                     /*first_thread=*/0, blocks, swizzle, /*async=*/false,
                     /*independent=*/source != ArgX &&
                         source != ArgActivationScales);
}

void TileProgram::createCopies(Value trip) {
  if (plain())
    copy(ArgW, ib.mul(firstStrip, kStrip), ib.mul(trip, config.blockK),
         arg(ArgN), kBound, arg(ArgK), weightTile, /*cellBytes=*/1,
         config.blockN, config.blockK, std::min(16, problem.kDivisor),
         /*swizzle=*/true);
  else
    copy(ArgW, firstStrip, ib.mul(trip, slabs()), numStrips, slabBound,
         numSlabs, weightTile, kStrip * kSlab * quant().weight.bits / 8,
         strips(), slabs(), 16, /*swizzle=*/false);
  // Cells of activations are elements, or pairs of 4-bit ones.
  int64_t pairs = problem.activation.bits == 4 ? 2 : 1;
  copy(ArgX, firstToken, ib.mul(trip, config.blockK / pairs), arg(ArgM),
       ib.div(kBound, pairs), ib.div(arg(ArgLdx), pairs), activationTile,
       problem.activation.bits * pairs / 8, config.blockM,
       config.blockK / pairs, problem.activation.bits * problem.kDivisor / 8,
       /*swizzle=*/true);
  Value firstGroup;
  if (group() == 0)
    firstGroup = ib.constant(0);
  else if (phase() != 0)
    firstGroup = ib.div(ib.add(ib.mul(trip, config.blockK), phase()), group());
  else if (group() <= config.blockK)
    firstGroup = ib.mul(trip, config.blockK / group());
  else
    firstGroup = ib.div(trip, group() / config.blockK);
  if (grouped())
    copy(ArgScales, firstGroup, firstStrip, numGroups, numStrips, numStrips,
         scaleTile, kStrip * quant().scale.bits / 8, groupsOfStage(), strips(),
         16, /*swizzle=*/false);
  if (hasZeroPoints())
    copy(ArgZeroPoints, firstGroup, firstStrip, numGroups, numStrips, numStrips,
         zeroPointTile, kStrip * zeroPointBits() / 8, groupsOfStage(), strips(),
         16, /*swizzle=*/false);
  if (int64_t size = activationGroup()) {
    Value first = size <= config.blockK ? ib.mul(trip, config.blockK / size)
                                        : ib.div(trip, size / config.blockK);
    // Cells are 16 tokens; rows of scales are whole cells.
    Value cells = ib.ceilDiv(arg(ArgM), 16);
    copy(ArgActivationScales, first, ib.div(firstToken, 16),
         ib.ceilDiv(arg(ArgK), size), cells, cells, tokenScaleTile,
         16 * problem.activationScaleFormat.bits / 8, activationGroupsOfStage(),
         tokensOfScaleTile() / 16, 16,
         /*swizzle=*/false);
  }
}

/// Tiles b, b + B, b + 2 B, ... for block b of B, features first (of a panel):
/// blocks that run at one time share activations.
void TileProgram::createTiles() {
  Value gridX = gridSize(gpu::Dimension::x),
        gridY = gridSize(gpu::Dimension::y);
  Value block =
      ib.add(blockIndex(gpu::Dimension::x),
             Value(arith::MulIOp::create(
                 builder, loc, blockIndex(gpu::Dimension::y), gridX)));
  Value blocks = arith::MulIOp::create(builder, loc, gridX, gridY);
  Value columns = ib.ceilDiv(arg(ArgN), config.blockN);
  Value rows = ib.ceilDiv(arg(ArgM), config.blockM);
  Value tiles = arith::MulIOp::create(builder, loc, columns, rows);
  auto loop = scf::ForOp::create(builder, loc, block, tiles, blocks);
  builder.setInsertionPointToStart(loop.getBody());
  Value tile = loop.getInductionVar();
  Value column, row;
  if (config.panel) {
    std::tie(column, row) =
        createPositionInPanels(tile, columns, rows, config.panel);
  } else {
    column = arith::RemUIOp::create(builder, loc, tile, columns);
    row = arith::DivUIOp::create(builder, loc, tile, columns);
  }
  firstStrip = ib.mul(column, strips());
  firstToken = ib.mul(row, config.blockM);
  createEpilogue(createLoop());
  builder.setInsertionPointAfter(loop);
}

Value TileProgram::createLoop() {
  VectorType type =
      grouped() || hasPartialSums(problem, config) ? accumulatorType : sumType;
  Value init =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  auto loop = scf::ForOp::create(builder, loc, firstTrip, lastTrip,
                                 ib.constant(1), ValueRange{init});
  builder.setInsertionPointToStart(loop.getBody());
  createCopies(loop.getInductionVar());
  // Tensor copies write as wgmma reads, through the async proxy.
  if (usesWarpgroups() && !usesTensorMaps())
    FenceAsyncOp::create(builder, loc);
  gpu::BarrierOp::create(builder, loc);
  SmallVector<Value> result;
  createSlabs(loop.getInductionVar(), loop.getRegionIterArgs(), result);
  gpu::BarrierOp::create(builder, loc);
  scf::YieldOp::create(builder, loc, result);
  builder.setInsertionPointAfter(loop);
  Value sum = loop.getResult(0);
  if (type != accumulatorType)
    sum = arith::SIToFPOp::create(builder, loc, accumulatorType, sum);
  return sum;
}

void TileProgram::createEpilogue(Value accumulators) {
  if (config.warpsK > 1)
    accumulators =
        ReduceWarpsOp::create(builder, loc, accumulatorType, accumulators,
                              scratch, config.warpsK, threadsOfK());
  Value isLast;
  // The part of the warp's tile that this block writes.
  VectorType type = accumulatorType;
  Value warpFeature = this->warpFeature, warpToken = this->warpToken;
  if (config.cluster && config.splitK == 2 && storesDirectly() &&
      type.getDimSize(1) % 2 == 0) {
    int64_t tiles = type.getDimSize(1) / 2;
    type =
        VectorType::get({type.getDimSize(0), tiles, 4}, builder.getF32Type());
    accumulators = ReduceHalvesOp::create(builder, loc, type, accumulators,
                                          scratch, threadsOfK());
    Value further = ib.mul(blockIndex(gpu::Dimension::z), tiles * 8);
    Value &column = tokenRows() ? warpFeature : warpToken;
    column = ib.add(column, further);
  } else if (config.cluster) {
    auto reduce = ReduceClusterOp::create(
        builder, loc, TypeRange{accumulatorType, builder.getI1Type()},
        accumulators, scratch, threadsOfK(), config.splitK);
    accumulators = reduce.getResult();
    isLast = reduce.getIsLast();
  } else if (config.splitK > 1) {
    auto reduce = ReduceBlocksOp::create(
        builder, loc, TypeRange{accumulatorType, builder.getI1Type()},
        accumulators, arg(ArgWorkspace), scratch, threadsOfK());
    accumulators = reduce.getResult();
    isLast = reduce.getIsLast();
  }
  Value firstFeature = ib.mul(firstStrip, kStrip);
  Value feature = ib.add(firstFeature, warpFeature);
  if (!grouped())
    accumulators = ScaleRowsOp::create(
        builder, loc, type, accumulators, arg(ArgScales), feature, arg(ArgN),
        format(quant().scale), unitStride(), exponent(), tokenRows());
  auto scaleOutput = [&](KernelArgument scales, Value index,
                         KernelArgument bound, StringRef per) {
    accumulators = ScaleOutputOp::create(
        builder, loc, type, accumulators, arg(scales), index, arg(bound),
        builder.getStringAttr(per), unitStride(), tokenRows());
  };
  if (quant().globalScale != GlobalScaleKind::None)
    scaleOutput(ArgGlobalScales, feature, ArgN,
                quant().globalScale == GlobalScaleKind::Tensor ? "tensor"
                                                               : "feature");
  Value token = ib.add(firstToken, warpToken);
  StringRef perToken = problem.activationScale == ActivationScaleKind::Tensor
                           ? "tensor"
                           : "token";
  if (problem.activationZeroPoint)
    accumulators = SubtractOffsetsOp::create(
        builder, loc, type, accumulators, arg(ArgActivationZeroPoints), token,
        arg(ArgM), arg(ArgWeightSums), feature, arg(ArgN),
        builder.getStringAttr(perToken), unitStride(), tokenRows());
  if (problem.activationScale != ActivationScaleKind::None &&
      !activationGroup())
    scaleOutput(ArgActivationScales, token, ArgM, perToken);
  if (problem.hasBias)
    accumulators = AddRowsOp::create(
        builder, loc, type, accumulators, arg(ArgBias), feature, arg(ArgN),
        format(problem.output), unitStride(), tokenRows());
  StoreTileOp::create(builder, loc, accumulators, arg(ArgC), firstToken,
                      firstFeature, arg(ArgM), arg(ArgN), arg(ArgLdc),
                      warpFeature, warpToken, scratch, isLast,
                      format(problem.output), config.blockM, config.blockN,
                      2 * problem.nDivisor, threadsOfK(), config.numThreads(),
                      unitStride(), storesDirectly(), tokenRows());
}

FailureOr<gpu::GPUFuncOp> humming::buildTileProgram(OpBuilder &builder,
                                                    MatmulOp op,
                                                    gpu::GPUModuleOp module,
                                                    StringRef name) {
  if (!op.getLoweringConfigAttr())
    return op.emitOpError("expected a lowering_config; run "
                          "hquant-select-lowering-config first");
  if (!op.isPacked())
    return op.emitOpError(
        "expected packed weights; run hquant-pack-weights first");
  return TileProgram(builder, op, module).build(name);
}
