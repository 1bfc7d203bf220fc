//===- TileProgram.h - One block's program of a matmul -----------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds the tile-stage program that one block executes; see TileProgram.cpp
// for its shape. The K loop's computation is in TileSlabs.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_CONVERSION_TILEPROGRAM_H
#define HUMMING_LIB_CONVERSION_TILEPROGRAM_H

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Target/Dequant.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <numeric>

namespace humming {

namespace arith = mlir::arith;
namespace gpu = mlir::gpu;
namespace NVVM = mlir::NVVM;
using hquant::CopyTileOp;
using hquant::FormatAttr;
using hquant::HQuantDialect;
using hquant::MatmulOp;
using hquant::MmaAttrInterface;
using hquant::SyncMmaAttr;
using hquant::WarpgroupMmaAttr;
using llvm::ArrayRef;
using llvm::SmallVectorImpl;
using llvm::StringRef;
using mlir::AffineMap;
using mlir::DenseF32ArrayAttr;
using mlir::Location;
using mlir::MemRefType;
using mlir::ModuleOp;
using mlir::OpBuilder;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
using mlir::VectorType;

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

} // namespace humming

#endif // HUMMING_LIB_CONVERSION_TILEPROGRAM_H
