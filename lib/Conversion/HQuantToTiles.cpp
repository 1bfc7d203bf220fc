//===- HQuantToTiles.cpp - Configured matmul to one block's program -------===//
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

#include "Humming/Conversion/Passes.h"
#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Target/Dequant.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <functional>
#include <numeric>

#define DEBUG_TYPE "convert-hquant-to-tiles"

namespace humming {
#define GEN_PASS_DEF_CONVERTHQUANTTOTILESPASS
#include "Humming/Conversion/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

constexpr int32_t kStrip = 64; // rows of a strip
constexpr int32_t kSlab = 64;  // K of a slab
constexpr int32_t kUnit = 16;  // rows of a unit
/// Packed words of a slab that are loaded a slab ahead, at most: registers.
constexpr int64_t kMostWordsAhead = 8;

/// Arguments of every dense kernel, in order.
enum KernelArgument {
  ArgX,
  ArgW,
  ArgScales,
  ArgZeroPoints,
  ArgBias,
  ArgC,
  ArgWorkspace,
  ArgM,
  ArgN,
  ArgK,
  ArgLdx,
  ArgLdc,
  ArgGlobalScales,
  ArgActivationScales,
  ArgActivationZeroPoints,
  ArgWeightSums,
  NumArguments,
  /// With copy=tensor, tensor maps: of x, and of plain w.
  ArgActivationMap = NumArguments,
  ArgWeightMap,
};

/// i32 arithmetic with constants folded, so that the program stays readable.
struct I32Builder {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t v) {
    return arith::ConstantIntOp::create(b, loc, v, 32);
  }
  static std::optional<int64_t> known(Value v) {
    auto op = v.getDefiningOp<arith::ConstantIntOp>();
    return op ? std::optional<int64_t>(op.value()) : std::nullopt;
  }
  Value mul(Value x, int64_t y) {
    if (y == 1)
      return x;
    if (auto c = known(x))
      return constant(*c * y);
    return arith::MulIOp::create(b, loc, x, constant(y));
  }
  Value add(Value x, Value y) {
    auto cx = known(x), cy = known(y);
    if (cx && cy)
      return constant(*cx + *cy);
    if (cx && *cx == 0)
      return y;
    if (cy && *cy == 0)
      return x;
    return arith::AddIOp::create(b, loc, x, y);
  }
  Value add(Value x, int64_t y) { return y == 0 ? x : add(x, constant(y)); }
  Value div(Value x, int64_t y) {
    if (y == 1)
      return x;
    if (auto c = known(x))
      return constant(*c / y);
    return arith::DivUIOp::create(b, loc, x, constant(y));
  }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value rem(Value x, int64_t y) {
    if (y == 1)
      return constant(0);
    return arith::RemUIOp::create(b, loc, x, constant(y));
  }
  Value min(Value x, Value y) { return arith::MinUIOp::create(b, loc, x, y); }
  /// ceil(x / y) without overflow for x up to 2^31 - 1.
  Value ceilDiv(Value x, int64_t y) {
    return y == 1 ? x : div(add(x, y - 1), y);
  }
};

/// Builds one kernel. Members hold what several parts of the program share.
class TileProgram {
public:
  TileProgram(OpBuilder &b, MatmulOp op, gpu::GPUModuleOp module)
      : builder(b), loc(op.getLoc()), ib{b, op.getLoc()}, op(op),
        module(module), problem(op.getProblem()),
        config(op.getLoweringConfigAttr().getConfig()) {}

  gpu::GPUFuncOp build(StringRef name);

private:
  void createFunction(StringRef name);
  std::pair<Value, Value> createPositionInPanels(Value index, Value columns,
                                                 Value rows, int32_t width);
  void createCoordinates();
  void createTiles();
  Value createLoop();
  Value blockIndex(gpu::Dimension dimension) {
    return arith::IndexCastOp::create(
        builder, loc, builder.getI32Type(),
        gpu::BlockIdOp::create(builder, loc, dimension));
  }
  Value gridSize(gpu::Dimension dimension) {
    return arith::IndexCastOp::create(
        builder, loc, builder.getI32Type(),
        gpu::GridDimOp::create(builder, loc, dimension));
  }
  void createCopies(Value trip);
  void createSlabs(Value trip, ValueRange init, SmallVectorImpl<Value> &result);
  Value loadTokenScales(Value slab, int64_t part, int64_t parts);
  Value accumulateRows(Value partial, Value tokenScales, Value scales,
                       int64_t group, Value accumulators);
  void createEpilogue(Value accumulators);

  void copy(KernelArgument source, Value row, Value column, Value rowBound,
            Value columnBound, Value stride, Value dest, int64_t cellBytes,
            int64_t rows, int64_t columns, int64_t granule, bool swizzle);

  Value arg(KernelArgument a) { return function.getArgument(a); }
  MemRefType workgroupBytes(int64_t bytes) {
    return MemRefType::get(
        {bytes}, builder.getI8Type(), AffineMap(),
        gpu::AddressSpaceAttr::get(builder.getContext(),
                                   gpu::AddressSpace::Workgroup));
  }
  VectorType words(ArrayRef<int64_t> shape) {
    return VectorType::get(shape, builder.getI32Type());
  }
  FormatAttr format(NumberFormat f) {
    return FormatAttr::get(builder.getContext(), f);
  }
  DenseF32ArrayAttr codeTable() {
    return quant().table ? builder.getDenseF32ArrayAttr(quant().table->values)
                         : DenseF32ArrayAttr();
  }
  /// Whether the chip that the module is configured for converts 8-bit floats.
  bool usesNativeConvert() {
    auto target =
        op->getParentOfType<ModuleOp>()->getAttrOfType<NVVM::NVVMTargetAttr>(
            HQuantDialect::getTargetAttrName());
    if (!target)
      return false;
    llvm::Expected<const TargetInfo *> info = getTargetInfo(target.getChip());
    if (!info) {
      llvm::consumeError(info.takeError());
      return false;
    }
    return (*info)->convertsFp8();
  }

  // Static geometry.
  const QuantType &quant() const { return problem.weight; }
  int64_t strips() const { return config.blockN / kStrip; }
  int64_t slabs() const { return config.blockK / kSlab; }
  int64_t slabsOfWarp() const { return slabs() / config.warpsK; }
  int64_t units() const { return config.rowUnits(); }
  int64_t columnTiles() const { return config.columnTiles(); }
  bool tokenRows() const { return config.tokenRows(); }
  int64_t threadsOfK() const { return config.numThreads() / config.warpsK; }
  /// Row-major weights that are operands of the MMA as they are.
  bool plain() const { return problem.weightLayout == WeightLayout::Plain; }
  /// With wgmma, four consecutive warps work on strips of 64 features together:
  /// each has one unit of every strip.
  bool usesWarpgroups() const { return config.mma == MmaKind::Wgmma; }
  /// Swizzled tiles are copied by tensor maps, which are arguments.
  bool usesTensorMaps() const { return config.copy == CopyKind::Tensor; }
  int64_t unitStride() const { return usesWarpgroups() ? 4 : 1; }
  /// Large tiles of accumulators go out without a way through shared memory.
  bool storesDirectly() const {
    return humming::storesDirectly(problem, config);
  }
  /// Steps of wgmma that may be in flight while the next one is dequantized:
  /// those of few tokens are shorter than a dequantization. The first of a trip
  /// is done before the last one's wait: hquant-specialize-warps dequantizes
  /// the next trip's first step there, into the same registers.
  int64_t stepsInFlight() const {
    int64_t stepsOfTrip = slabsOfWarp() * (kSlab / mma.getStepDepth());
    return std::clamp<int64_t>(stepsOfTrip - 2, 0, config.warpM <= 64 ? 3 : 1);
  }
  bool grouped() const { return config.scale != ScalePlacement::Epilogue; }
  bool hasZeroPoints() const {
    return quant().zeroPoint != ZeroPointKind::None;
  }
  /// Elements of K that share a scale, within the stages; 0 = the whole row.
  int64_t group() const { return quant().granularity.columns; }
  /// Groups in a stage's scale tile, and in a slab's fragment.
  int64_t groupsOfStage() const {
    return humming::groupsOfStage(quant(), config.blockK);
  }
  /// K elements of the first group that belong to the shard before this one.
  int64_t phase() const { return quant().columnPhase; }
  Value slabsFirstGroup(Value trip, Value slab);
  int64_t groupsOfSlab() const {
    return group() == 0 || group() >= kSlab ? 1 : kSlab / group();
  }
  /// Activations of a token that share a scale, and their groups in a stage.
  int64_t activationGroup() const { return problem.activationGroup; }
  int64_t activationGroupsOfStage() const {
    return std::max<int64_t>(1, config.blockK / activationGroup());
  }
  /// Tokens of the tile of activation scales; see SharedMemoryLayout.
  int64_t tokensOfScaleTile() const {
    return layoutSharedMemory(problem, config).tokenScaleTokens;
  }
  /// Elements of K after which a partial sum is done with; 0: a stage's.
  int64_t partialGroup() const {
    bool onAccumulators = config.scale == ScalePlacement::Accumulator;
    return std::gcd(onAccumulators ? group() : 0, activationGroup());
  }
  /// The power of two that dequantized operands are too small by.
  int64_t exponent() const { return dequantExponent(quant(), operand()); }
  /// What weights are dequantized to.
  NumberFormat operand() const {
    return weightOperand(quant(), problem.activation);
  }
  int64_t zeroPointBits() const {
    return quant().zeroPoint == ZeroPointKind::Integer ? 8 : quant().scale.bits;
  }

  OpBuilder &builder;
  Location loc;
  I32Builder ib;
  MatmulOp op;
  gpu::GPUModuleOp module;
  MatmulProblem problem;
  KernelConfig config;
  MmaAttrInterface mma;
  SyncMmaAttr syncMma; // one of the two is set
  WarpgroupMmaAttr warpgroupMma;
  VectorType accumulatorType;
  /// Of the MMA: i32 for integers, pairs of f16, else accumulatorType.
  VectorType sumType;

  gpu::GPUFuncOp function;
  Value weightTile, activationTile, scaleTile, zeroPointTile, tokenScaleTile;
  Value scratch;
  Value firstStrip, firstToken;                 // of the block
  Value warpUnit;                               // of the warp's rows
  Value warpFeature, warpToken, warpSlab;       // of the warp, within the block
  Value numStrips, numSlabs, numGroups;         // of the matrix
  Value firstTrip, lastTrip, slabBound, kBound; // of this split
};

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
  if (config.cluster) {
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
    accumulators = ScaleRowsOp::create(builder, loc, accumulatorType,
                                       accumulators, arg(ArgScales), feature,
                                       arg(ArgN), format(quant().scale),
                                       unitStride(), exponent(), tokenRows());
  auto scaleOutput = [&](KernelArgument scales, Value index,
                         KernelArgument bound, StringRef per) {
    accumulators = ScaleOutputOp::create(
        builder, loc, accumulatorType, accumulators, arg(scales), index,
        arg(bound), builder.getStringAttr(per), unitStride(), tokenRows());
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
        builder, loc, accumulatorType, accumulators,
        arg(ArgActivationZeroPoints), token, arg(ArgM), arg(ArgWeightSums),
        feature, arg(ArgN), builder.getStringAttr(perToken), unitStride(),
        tokenRows());
  if (problem.activationScale != ActivationScaleKind::None &&
      !activationGroup())
    scaleOutput(ArgActivationScales, token, ArgM, perToken);
  if (problem.hasBias)
    accumulators = AddRowsOp::create(
        builder, loc, accumulatorType, accumulators, arg(ArgBias), feature,
        arg(ArgN), format(problem.output), unitStride(), tokenRows());
  StoreTileOp::create(builder, loc, accumulators, arg(ArgC), firstToken,
                      firstFeature, arg(ArgM), arg(ArgN), arg(ArgLdc),
                      warpFeature, warpToken, scratch, isLast,
                      format(problem.output), config.blockM, config.blockN,
                      2 * problem.nDivisor, threadsOfK(), config.numThreads(),
                      unitStride(), storesDirectly(), tokenRows());
}

} // namespace

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

namespace {

struct ConvertHQuantToTilesPass
    : humming::impl::ConvertHQuantToTilesPassBase<ConvertHQuantToTilesPass> {
  using ConvertHQuantToTilesPassBase::ConvertHQuantToTilesPassBase;

  /// The function's matmul or quantize, or failure with an error if it holds
  /// anything that is neither that nor part of the host's preparation.
  FailureOr<Operation *> findOp(func::FuncOp function) {
    Operation *result = nullptr;
    for (Operation &op : function.getBody().front()) {
      if (isa<MatmulOp, QuantizeOp>(op)) {
        if (result) {
          auto diag = op.emitOpError("expected one hquant.matmul a function, "
                                     "got a second one; outline it");
          diag.attachNote(result->getLoc()) << "the first one is here";
          return failure();
        }
        result = &op;
      } else if (!isa<PackOp, func::ReturnOp>(op) &&
                 !op.hasTrait<OpTrait::ConstantLike>()) {
        return op.emitOpError(
                   "expected only hquant.pack beside hquant.matmul in "
                   "a function that becomes a kernel, got '")
               << op.getName() << "'; outline the matmul into its own function";
      }
    }
    return result;
  }

  /// The config is legal on the module's chip: the program divides by its tile
  /// sizes.
  LogicalResult checkConfigured(Operation *op) {
    auto matmul = dyn_cast<MatmulOp>(op);
    auto quantize = dyn_cast<QuantizeOp>(op);
    if (matmul ? !matmul.getLoweringConfigAttr()
               : !quantize.getQuantizeConfigAttr())
      return success(); // buildTileProgram says so.
    auto target = getOperation()->getAttrOfType<NVVM::NVVMTargetAttr>(
        HQuantDialect::getTargetAttrName());
    if (!target)
      return op->emitOpError("expected hquant.target on the module, for "
                             "which the config was chosen");
    llvm::Expected<const TargetInfo *> info = getTargetInfo(target.getChip());
    if (!info)
      return getOperation().emitOpError(llvm::toString(info.takeError()));
    if (llvm::Error error = matmul ? checkConfigured(matmul, **info)
                                   : checkConfigured(quantize, **info))
      return op->emitOpError(llvm::toString(std::move(error)));
    return success();
  }
  static llvm::Error checkConfigured(MatmulOp op, const TargetInfo &target) {
    MatmulProblem problem = op.getProblem();
    if (llvm::Error error = checkProblem(problem, target))
      return error;
    return checkConfig(problem, op.getLoweringConfigAttr().getConfig(), target);
  }
  static llvm::Error checkConfigured(QuantizeOp op, const TargetInfo &target) {
    QuantizeProblem problem = op.getProblem();
    if (llvm::Error error = checkQuantize(problem, target))
      return error;
    return checkQuantizeConfig(problem, op.getQuantizeConfigAttr().getConfig(),
                               target);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<std::pair<func::FuncOp, Operation *>> work;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal() || !function
                                        .walk([](Operation *op) {
                                          return isa<MatmulOp, QuantizeOp>(op)
                                                     ? WalkResult::interrupt()
                                                     : WalkResult::advance();
                                        })
                                        .wasInterrupted())
        continue;
      if (!function.getBody().hasOneBlock()) {
        function.emitOpError("expected one block around hquant.matmul");
        return signalPassFailure();
      }
      FailureOr<Operation *> op = findOp(function);
      if (failed(op) || !*op || failed(checkConfigured(*op)))
        return signalPassFailure();
      if (!SymbolTable::symbolKnownUseEmpty(function, module)) {
        function.emitOpError("expected no uses of a function that becomes a "
                             "kernel; its arguments change");
        return signalPassFailure();
      }
      work.emplace_back(function, *op);
    }
    if (work.empty())
      return;
    if (module.lookupSymbol(moduleName)) {
      module.emitError("expected a new name for the gpu.module, but there is "
                       "a symbol '")
          << moduleName << "'; choose another one with the option module";
      return signalPassFailure();
    }

    OpBuilder builder(module.getBody(), module.getBody()->end());
    auto kernels =
        gpu::GPUModuleOp::create(builder, module.getLoc(), moduleName);
    if (auto target = module->getAttr(HQuantDialect::getTargetAttrName()))
      kernels.setTargetsAttr(builder.getArrayAttr({target}));
    for (auto [function, op] : work) {
      StringRef name = function.getSymName();
      auto matmul = dyn_cast<MatmulOp>(op);
      if (failed(matmul ? buildTileProgram(builder, matmul, kernels, name)
                        : buildTileProgram(builder, cast<QuantizeOp>(op),
                                           kernels, name)))
        return signalPassFailure();
      function.erase();
    }
  }
};

} // namespace
