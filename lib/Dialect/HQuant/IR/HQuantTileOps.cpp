//===- HQuantTileOps.cpp - Verifiers of the tile stage ----------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each check carries the number of its constraint in docs/HQuant.md (tile
// stage). What passes here can be lowered: extents are bounded, so that no op
// becomes millions of instructions, and static accesses lie within their
// buffer.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

/// K elements of a slab (docs/HQuant.md, packed layout).
static constexpr int64_t kSlabDepth = 64;
/// Rows of a strip, the unit of packed scales.
static constexpr int64_t kStripRows = 64;
/// More than any chip has for a block (227 KiB on sm_90).
static constexpr int64_t kMaxTileBytes = 1 << 18;

// tile_c2
bool hquant::isFragment(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || vector.isScalable())
    return false;
  int64_t count = 1;
  for (int64_t extent : vector.getShape())
    if (llvm::MulOverflow(count, extent, count) ||
        count > kMaxFragmentRegisters)
      return false;
  return true;
}

// tile_c1
bool hquant::isWorkgroupBuffer(Type type) {
  auto buffer = dyn_cast<MemRefType>(type);
  return buffer && buffer.hasStaticShape() && buffer.getLayout().isIdentity() &&
         gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(buffer);
}

static VectorType getVector(Value value) {
  return cast<VectorType>(value.getType());
}

/// Bytes of one stage of a buffer.
static int64_t getStageBytes(Value buffer) {
  return cast<MemRefType>(buffer.getType()).getShape().back();
}

static bool isSixteenBitFloat(const NumberFormat &format) {
  return format.isF16() || format.isBF16();
}

static LogicalResult verifyUnitStride(Operation *op, int64_t stride);

/// A number of threads of a block: whole warps, at most 1024.
static bool isThreadCount(int64_t threads) {
  return threads > 0 && threads % 32 == 0 && threads <= 1024;
}

/// A promise on how a row of the source or destination is aligned.
static bool isGranule(int64_t granule) {
  return granule == 2 || granule == 4 || granule == 8 || granule == 16;
}

static LogicalResult expectType(Operation *op, StringRef what, Type got,
                                ArrayRef<int64_t> shape, Type element) {
  Type expected = VectorType::get(shape, element);
  if (got != expected)
    return op->emitOpError("expected ")
           << what << " of type " << expected << ", got " << got;
  return success();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// What a tile copy needs to be cut into 16-byte chunks.
template <typename CopyOp>
static LogicalResult verifyTile(CopyOp op, bool swizzle) {
  int64_t threads = op.getThreads(), cell = op.getCellBytes();
  int64_t rows = op.getTileRows(), columns = op.getTileColumns();
  // copy_c1
  if (cell <= 0 || rows <= 0 || columns <= 0)
    return op.emitOpError("expected positive cell_bytes, tile_rows and "
                          "tile_columns, got ")
           << cell << ", " << rows << " and " << columns;
  // copy_c2
  if (cell % 16 != 0 && 16 % cell != 0)
    return op.emitOpError("expected cell_bytes to divide 16 or be a multiple "
                          "of it, got ")
           << cell;
  // copy_c3
  int64_t bytes = 0;
  if (llvm::MulOverflow(cell, columns, bytes) ||
      llvm::MulOverflow(bytes, rows, bytes) || bytes > kMaxTileBytes)
    return op.emitOpError("expected a tile of at most ")
           << kMaxTileBytes << " bytes, got " << rows << " x " << columns
           << " cells of " << cell;
  // copy_c4
  if (!isThreadCount(threads))
    return op.emitOpError("expected threads to be a multiple of 32, at most "
                          "1024, got ")
           << threads;
  // copy_c5
  int64_t rowBytes = cell * columns, unit = swizzle ? 128 : 16;
  if (rowBytes % unit != 0)
    return op.emitOpError("expected the ")
           << rowBytes << " bytes of a tile row to be a multiple of " << unit;
  return success();
}

/// copy_c6: pieces that the source promises.
template <typename CopyOp>
static LogicalResult verifyGranule(CopyOp op) {
  if (!isGranule(op.getGranule()))
    return op.emitOpError("expected granule 2, 4, 8 or 16, got ")
           << int64_t(op.getGranule());
  return success();
}

/// The destination holds the tile.
template <typename CopyOp>
static LogicalResult verifyDestination(CopyOp op) {
  auto type = cast<MemRefType>(op.getDest().getType());
  bool staged = static_cast<bool>(op.getStage());
  // copy_c7
  if (type.getRank() != (staged ? 2 : 1))
    return op.emitOpError("expected a destination of rank ")
           << (staged ? 2 : 1) << (staged ? " with" : " without")
           << " a stage, got " << type;
  // copy_c8
  int64_t bytes = getStageBytes(op.getDest());
  if (bytes < op.getTileBytes() || bytes % 16 != 0)
    return op.emitOpError("expected a destination of at least ")
           << op.getTileBytes() << " bytes, a multiple of 16, got " << type;
  return success();
}

/// copy_c9: one vector of 4 words per chunk of a thread.
template <typename CopyOp>
static LogicalResult verifyChunks(CopyOp op) {
  return expectType(op, "chunks", op.getChunks().getType(),
                    {op.getChunksPerThread(), 4},
                    IntegerType::get(op.getContext(), 32));
}

/// A ring has two barriers of 8 bytes a stage.
static constexpr int64_t kRingStageBytes = 16;

/// ring_c1
static LogicalResult verifyRing(Operation *op, Value ring) {
  auto type = cast<MemRefType>(ring.getType());
  if (type.getRank() != 2 || type.getDimSize(1) != kRingStageBytes ||
      type.getDimSize(0) < 2 || type.getDimSize(0) > 8)
    return op->emitOpError("expected a ring of 2 to 8 stages of ")
           << kRingStageBytes << " bytes, got " << type;
  return success();
}

/// ring_c4
static LogicalResult verifyBlocks(Operation *op, int64_t blocks) {
  if (blocks != 1 && blocks != 2)
    return op->emitOpError("expected 1 or 2 blocks, got ") << blocks;
  return success();
}

/// The first of the threads that copy; see the callers' constraints.
static bool isFirstThread(int64_t first, int64_t threads) {
  return first >= 0 && first % 32 == 0 && first <= 1024 - threads;
}

/// Copies by producer threads, which have few registers; see CopyLowering.
static LogicalResult verifyProducers(CopyTileOp op) {
  int64_t threads = op.getThreads(), first = op.getFirstThread();
  // copy_c10
  if (!isFirstThread(first, threads))
    return op.emitOpError("expected first_thread to be a multiple of 32, at "
                          "most 1024 - threads, got ")
           << first;
  // copy_c13
  if (op.getMap() &&
      (!op.getSwizzle() || op.getGranule() != 16 ||
       int64_t(op.getCellBytes()) > 16 || int64_t(op.getTileRows()) % 8 != 0))
    return op.emitOpError("expected a copy by a tensor map to have swizzle, "
                          "granule 16, cells of at most 16 bytes and a "
                          "multiple of 8 rows");
  // copy_c14
  int64_t blocks = op.getBlocks();
  if (blocks != 1 &&
      (blocks != 2 || !op.getMap() || int64_t(op.getTileRows()) % 16 != 0))
    return op.emitOpError("expected blocks to be 1, or 2 for a copy of a "
                          "multiple of 16 rows by a tensor map, got ")
           << blocks;
  if (op.getRing() && op.getMap()) {
    // copy_c11
    if (!op.getStage())
      return op.emitOpError("expected a copy through a ring to have a stage");
    return verifyRing(op, op.getRing());
  }
  if (op.getRing()) {
    // copy_c11
    if (!op.getStage() || op.getSwizzle() || op.getGranule() != 16 ||
        int64_t(op.getCellBytes()) % 16 != 0 ||
        int64_t(op.getTileRows()) > threads)
      return op.emitOpError("expected a copy through a ring to have a stage, "
                            "no swizzle, granule 16, cells of whole 16 bytes "
                            "and no more rows than threads");
    return verifyRing(op, op.getRing());
  }
  // copy_c12
  bool swizzleFits = threads % 128 == 0 && int64_t(op.getCellBytes()) <= 16;
  if (first > 0 && (!op.getAsync() || op.getGranule() != 16 ||
                    (op.getSwizzle() && !swizzleFits)))
    return op.emitOpError("expected a copy with first_thread to go through a "
                          "ring or to be async, with granule 16, and with "
                          "swizzle cells of at most 16 bytes and a multiple of "
                          "128 threads");
  return success();
}

LogicalResult CopyTileOp::verify() {
  if (failed(verifyTile(*this, getSwizzle())) || failed(verifyGranule(*this)) ||
      failed(verifyDestination(*this)))
    return failure();
  return verifyProducers(*this);
}

LogicalResult RingInitOp::verify() {
  // ring_c2
  if (int64_t(getProducers()) < 0 || getProducers() > 1024 ||
      getConsumers() <= 0 || getConsumers() > 32)
    return emitOpError("expected 0 to 1024 producer threads and 1 to 32 "
                       "consumer warps, got ")
           << int64_t(getProducers()) << " and " << int64_t(getConsumers());
  if (failed(verifyBlocks(*this, getBlocks())))
    return failure();
  return verifyRing(*this, getRing());
}

LogicalResult RingCommitOp::verify() {
  // ring_c3
  if (!isFirstThread(getFirstThread(), 32))
    return emitOpError("expected first_thread to be a multiple of 32, at most "
                       "992, got ")
           << int64_t(getFirstThread());
  return verifyRing(*this, getRing());
}

LogicalResult RingAcquireOp::verify() {
  if (failed(verifyBlocks(*this, getBlocks())))
    return failure();
  return verifyRing(*this, getRing());
}
LogicalResult RingWaitOp::verify() { return verifyRing(*this, getRing()); }
LogicalResult RingReleaseOp::verify() {
  if (failed(verifyBlocks(*this, getBlocks())))
    return failure();
  return verifyRing(*this, getRing());
}

LogicalResult FetchTileOp::verify() {
  if (failed(verifyTile(*this, /*swizzle=*/false)) ||
      failed(verifyGranule(*this)))
    return failure();
  return verifyChunks(*this);
}

LogicalResult PutTileOp::verify() {
  if (failed(verifyTile(*this, getSwizzle())) ||
      failed(verifyDestination(*this)))
    return failure();
  return verifyChunks(*this);
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// fragment_c1: a staged tile has rank 2, a plain one rank 1.
template <typename LoadOp>
static LogicalResult verifySource(LoadOp op) {
  auto type = cast<MemRefType>(op.getTile().getType());
  int64_t rank = op.getStage() ? 2 : 1;
  if (type.getRank() != rank)
    return op.emitOpError("expected a tile of rank ")
           << rank << (rank == 2 ? " with" : " without") << " a stage, got "
           << type;
  return success();
}

/// fragment_c2: the units of a warp lie in one strip of four.
static LogicalResult verifyUnits(Operation *op, int64_t units) {
  if (units != 1 && units != 2 && units != 4)
    return op->emitOpError("expected 1, 2 or 4 units, got ") << units;
  return success();
}

/// The tile holds `count` pieces of `bytes` each.
static LogicalResult verifyHolds(Operation *op, Value tile, StringRef what,
                                 int64_t count, int64_t bytes) {
  int64_t total = getStageBytes(tile);
  if (count <= 0 || count > total / bytes)
    return op->emitOpError("expected ")
           << what << " from 1 to the " << total / bytes << " of " << bytes
           << " bytes that the tile holds, got " << count;
  return success();
}

LogicalResult LoadWeightsOp::verify() {
  if (failed(verifyUnitStride(*this, getUnitStride())))
    return failure();
  VectorType type = getVector(getWords());
  if (failed(verifySource(*this)))
    return failure();
  // fragment_c3
  if (type.getRank() != 2 || type.getDimSize(1) > 8)
    return emitOpError("expected words of type vector<UxBxi32> with B up to 8, "
                       "got ")
           << type;
  if (failed(verifyUnits(*this, type.getDimSize(0))))
    return failure();
  // fragment_c4
  return verifyHolds(*this, getTile(), "slabs", getSlabs(),
                     kStripRows * kSlabDepth * type.getDimSize(1) / 8);
}

LogicalResult LoadPlainWeightsOp::verify() {
  if (failed(verifySource(*this)))
    return failure();
  VectorType type = getVector(getFragment());
  // fragment_c21
  if (type.getRank() != 3 || type.getDimSize(1) != 2 || type.getDimSize(2) != 4)
    return emitOpError("expected a fragment of type vector<Ux2x4xi32>, got ")
           << type;
  if (failed(verifyUnits(*this, type.getDimSize(0))))
    return failure();
  // fragment_c22
  int64_t rows = getTileRows();
  if (rows <= 0 || rows % 64 != 0)
    return emitOpError("expected tile_rows to be a multiple of 64, got ")
           << rows;
  return verifyHolds(*this, getTile(), "tile_rows", rows, 128);
}

LogicalResult LoadActivationsOp::verify() {
  VectorType type = getVector(getFragment());
  if (failed(verifySource(*this)))
    return failure();
  // fragment_c5
  int64_t steps = type.getRank() == 3 ? type.getDimSize(1) : 0;
  if ((steps != 1 && steps != 2 && steps != 4) || type.getDimSize(2) != 2)
    return emitOpError(
               "expected a fragment of type vector<TxSx2xi32> with 4, 2 "
               "or 1 steps (16-, 8- or 4-bit activations), got ")
           << type;
  // fragment_c6
  int64_t rows = getTileRows(), tokens = 8 * type.getDimSize(0);
  if (rows % 8 != 0 || rows < tokens)
    return emitOpError("expected tile_rows to be a multiple of 8, at least "
                       "the ")
           << tokens << " tokens that are loaded, got " << rows;
  // fragment_c7
  return verifyHolds(*this, getTile(), "tile_rows", rows, 32 * steps);
}

LogicalResult LoadScalesOp::verify() {
  if (failed(verifyUnitStride(*this, getUnitStride())))
    return failure();
  VectorType type = getVector(getScales());
  if (failed(verifySource(*this)))
    return failure();
  // fragment_c8
  int64_t wordsOfGroup = getElementBits() == 32 ? 2 : 1;
  int64_t groups = type.getRank() == 2 ? type.getDimSize(1) / wordsOfGroup : 0;
  if ((groups != 1 && groups != 2 && groups != 4) ||
      type.getDimSize(1) % wordsOfGroup != 0)
    return emitOpError("expected scales of type vector<UxGxi32> with 1, 2 or 4 "
                       "groups (of two words with 32 bits), got ")
           << type;
  if (failed(verifyUnits(*this, type.getDimSize(0))))
    return failure();
  // fragment_c9
  if (getElementBits() != 8 && getElementBits() != 16 && getElementBits() != 32)
    return emitOpError("expected element_bits 8, 16 or 32, got ")
           << int64_t(getElementBits());
  // fragment_c10
  return verifyHolds(*this, getTile(), "strips", getStrips(),
                     kStripRows * getElementBits() / 8 * groups);
}

LogicalResult DequantOp::verify() {
  VectorType words = getVector(getWords());
  NumberFormat weight = getWeight().getFormat();
  NumberFormat scale = getScale().getFormat();
  // fragment_c11
  if (words.getRank() != 2 || words.getDimSize(1) != weight.bits)
    return emitOpError("expected words of type vector<Ux")
           << unsigned(weight.bits) << "xi32>, got " << words;
  // fragment_c12
  int64_t units = words.getDimSize(0);
  int64_t steps = kSlabDepth / getMma().getStepDepth();
  auto fragment = cast<VectorType>(getFragment().getType());
  int64_t first = getFirstStep();
  int64_t count = fragment.getRank() == 3 ? fragment.getDimSize(1) : 0;
  if (first < 0 || count < 1 || first + count > steps)
    return emitOpError("expected a fragment of steps within 0 to ")
           << steps << ", got " << count << " from " << first;
  if (failed(expectType(*this, "a fragment", fragment,
                        {units, count, getMma().getNumARegisters()},
                        words.getElementType())))
    return failure();
  // fragment_c13
  int64_t groups = 0;
  for (Value operand : {getScales(), getZeroPoints()}) {
    if (!operand)
      continue;
    VectorType type = getVector(operand);
    // Groups of 16 are the shortest: half or a quarter of a step of 8 or 4
    // bits.
    bool isShort = type.getRank() == 2 && operand == getZeroPoints() &&
                   getMma().getOperandFormat().bits < 16 &&
                   type.getDimSize(1) > steps;
    if (type.getRank() != 2 || type.getDimSize(0) != units ||
        (isShort ? 4 : steps) % type.getDimSize(1) != 0 ||
        (groups != 0 && type.getDimSize(1) != groups))
      return emitOpError("expected scales and zero points of one type vector<")
             << units << "xGxi32> with G dividing " << steps
             << (getMma().getOperandFormat().bits < 16 ? " (zero points: or 4)"
                                                       : "")
             << ", got " << type;
    groups = type.getDimSize(1);
  }
  // fragment_c14
  NumberFormat operand = getMma().getOperandFormat();
  bool converts = (scale.isE8M0() && operand.isBF16()) ||
                  (scale == NumberFormat::smallFloat(4, 3) &&
                   operand.bits == 16 && getNativeConvert());
  if (getScales() && scale != operand && !converts)
    return emitOpError("expected scales on the operand in its own format ")
           << operand.str()
           << ", e8m0 for bf16 or e4m3 with native_convert, got "
           << scale.str();
  // fragment_c15
  if (getFloatZeroPoints() && !(getZeroPoints() && isSixteenBitFloat(scale)))
    return emitOpError("expected zero points in f16 or bf16 with "
                       "float_zero_points, got ")
           << (getZeroPoints() ? scale.str() : "none");
  return success();
}

/// fragment_c27
static LogicalResult verifyPart(Operation *op, int64_t part, int64_t parts,
                                int64_t stepDepth) {
  bool ok = parts == 1 || parts == 2 || parts == 4;
  if (!ok || stepDepth / parts < 16)
    return op->emitOpError("expected 1, 2 or 4 parts of at least 16 of a "
                           "step's ")
           << stepDepth << ", got " << parts;
  if (part < 0 || part >= parts)
    return op->emitOpError("expected a part from 0 to ")
           << parts - 1 << ", got " << part;
  return success();
}

LogicalResult MmaOp::verify() {
  VectorType acc = getVector(getAccumulators());
  SyncMmaAttr kind = getKind();
  int64_t steps = kSlabDepth / kind.getStepDepth();
  Type i32 = IntegerType::get(getContext(), 32);
  // fragment_c16
  bool isInteger =
      kind.getOperandFormat().isInteger() || kind.getAccumulator().isF16();
  if (acc.getDimSize(2) != kind.getNumAccumulators() ||
      acc.getElementType().isInteger() != isInteger)
    return emitOpError("expected accumulators of type vector<UxTx")
           << kind.getNumAccumulators() << "x" << (isInteger ? "i32" : "f32")
           << ">, got " << acc;
  // fragment_c17
  if (failed(expectType(*this, "a", getA().getType(),
                        {acc.getDimSize(0), steps, kind.getNumARegisters()},
                        i32)) ||
      failed(expectType(*this, "b", getB().getType(),
                        {acc.getDimSize(1), steps, kind.getNumBRegisters()},
                        i32)))
    return failure();
  // fragment_c18
  int64_t first = getFirstStep(), last = getLastStep();
  if (first < 0 || first >= last || last > steps)
    return emitOpError("expected steps within 0 to ")
           << steps << ", got " << first << " to " << last;
  return verifyPart(*this, getPart(), getParts(), kind.getStepDepth());
}

/// warpgroup_c5
static LogicalResult verifyUnitStride(Operation *op, int64_t stride) {
  if (stride != 1 && stride != 4)
    return op->emitOpError("expected unit_stride 1 or 4, got ") << stride;
  return success();
}

/// warpgroup_c1: sums of integers are i32, pairs of f16 sums too, others f32.
static LogicalResult verifyWarpgroupSums(Operation *op, VectorType acc,
                                         WarpgroupMmaAttr kind) {
  MLIRContext *context = op->getContext();
  bool halfSums = kind.getAccumulator().isF16();
  Type element = kind.getOperandFormat().isInteger() || halfSums
                     ? Type(IntegerType::get(context, 32))
                     : Type(Float32Type::get(context));
  return expectType(op, "accumulators", acc,
                    {acc.getDimSize(0), kind.getTokens() / 8, halfSums ? 2 : 4},
                    element);
}

/// warpgroup_c4
static LogicalResult verifyColumnRows(Operation *op, StringRef what,
                                      int64_t rows, WarpgroupMmaAttr kind) {
  if (rows % 8 != 0 || rows < kind.getTokens() || rows > 65536)
    return op->emitOpError("expected ")
           << what << " to be a multiple of 8 and at least " << kind.getTokens()
           << ", got " << rows;
  return success();
}

LogicalResult WarpgroupMmaTilesOp::verify() {
  for (Value tile : {getA(), getB()}) {
    auto type = cast<MemRefType>(tile.getType());
    int64_t rank = getStage() ? 2 : 1;
    if (type.getRank() != rank)
      return emitOpError("expected tiles of rank ")
             << rank << (rank == 2 ? " with" : " without") << " a stage, got "
             << type;
  }
  VectorType acc = getVector(getAccumulators());
  WarpgroupMmaAttr kind = getKind();
  if (failed(verifyWarpgroupSums(*this, acc, kind)))
    return failure();
  // warpgroup_c6
  if (kind.getOperandFormat().bits != 8)
    return emitOpError("expected operands of 8 bits, got ")
           << kind.getOperandFormat().str();
  // warpgroup_c7
  int64_t steps = kSlabDepth / kind.getStepDepth();
  int64_t first = getFirstStep(), last = getLastStep();
  if (first < 0 || first >= last || last > steps)
    return emitOpError("expected steps within 0 to ")
           << steps << ", got " << first << " to " << last;
  if (failed(verifyColumnRows(*this, "b_rows", getBRows(), kind)))
    return failure();
  // warpgroup_c8
  int64_t rows = getARows();
  if (rows <= 0 || rows % 64 != 0 || rows < 64 * acc.getDimSize(0))
    return emitOpError("expected a_rows to be a multiple of 64 and at "
                       "least ")
           << 64 * acc.getDimSize(0) << ", got " << rows;
  return verifyHolds(*this, getA(), "a_rows", rows, 128);
}

LogicalResult WarpgroupMmaOp::verify() {
  if (failed(verifySource(*this)))
    return failure();
  VectorType acc = getVector(getAccumulators());
  WarpgroupMmaAttr kind = getKind();
  int64_t steps = kSlabDepth / kind.getStepDepth();
  Type i32 = IntegerType::get(getContext(), 32);
  if (failed(verifyWarpgroupSums(*this, acc, kind)))
    return failure();
  // warpgroup_c2
  if (failed(expectType(*this, "a", getA().getType(),
                        {acc.getDimSize(0), 1, kind.getNumARegisters()}, i32)))
    return failure();
  // warpgroup_c3
  int64_t step = getStep();
  if (step < 0 || step >= steps)
    return emitOpError("expected a step from 0 to ")
           << steps - 1 << ", got " << step;
  if (failed(verifyPart(*this, getPart(), getParts(), kind.getStepDepth())))
    return failure();
  return verifyColumnRows(*this, "tile_rows", getTileRows(), kind);
}

/// Scales that are converted to f32.
static LogicalResult verifyScaleFormat(Operation *op,
                                       const NumberFormat &format) {
  if (isSixteenBitFloat(format) || format.isF32() || format.isE8M0() ||
      format == NumberFormat::smallFloat(4, 3) ||
      format == NumberFormat::smallFloat(5, 2))
    return success();
  return op->emitOpError(
             "expected scales of f32, f16, bf16, e4m3, e5m2 or e8m0, got ")
         << format.str();
}

LogicalResult ScaleAccumulateOp::verify() {
  VectorType acc = getVector(getAccumulators());
  VectorType scales = getVector(getScales());
  int64_t group = getGroup();
  // fragment_c16
  if (acc.getDimSize(2) != 4)
    return emitOpError("expected accumulators of type vector<UxTx4xf32>, got ")
           << acc;
  auto partial = cast<VectorType>(getPartial().getType());
  if (partial.getShape() != acc.getShape())
    return emitOpError(
               "expected a partial sum of the accumulators' shape, got ")
           << partial << " and " << acc;
  // fragment_c19
  if (getScale().getFormat().isF32())
    group = 2 * group + 1; // its second word
  if (scales.getRank() != 2 || scales.getDimSize(0) != acc.getDimSize(0) ||
      group < 0 || group >= scales.getDimSize(1))
    return emitOpError("expected scales of type vector<")
           << acc.getDimSize(0) << "xGxi32> and a group from 0 to G - 1, got "
           << scales << " and " << group;
  // fragment_c20
  return verifyScaleFormat(*this, getScale().getFormat());
}

LogicalResult LoadTokenScalesOp::verify() {
  VectorType type = getVector(getScales());
  if (failed(verifySource(*this)))
    return failure();
  // fragment_c23
  int64_t words = type.getRank() == 2 ? type.getDimSize(1) : 0;
  if (words != 1 && words != 2)
    return emitOpError("expected scales of type vector<Tx2xi32> (f32) or "
                       "vector<Tx1xi32> (e8m0), got ")
           << type;
  // fragment_c24
  // Units are of 16 tokens, those of one warp 64 tokens apart.
  int64_t tokens = getTileTokens(), pieces = type.getDimSize(0);
  int64_t loaded = getTokenRows() ? 64 * (pieces - 1) + 16 : 8 * pieces;
  if (tokens % 16 != 0 || tokens < loaded)
    return emitOpError("expected tile_tokens to be a multiple of 16, at least "
                       "the ")
           << loaded << " tokens that are loaded, got " << tokens;
  return verifyHolds(*this, getTile(), "tile_tokens", tokens,
                     words == 2 ? 4 : 1);
}

LogicalResult MultiplyScalesOp::verify() {
  VectorType tokens = getVector(getTokenScales());
  VectorType scales = getVector(getScales());
  // fragment_c28
  NumberFormat tokenScale = getTokenScale().getFormat();
  if (!tokenScale.isF32() && !tokenScale.isE8M0())
    return emitOpError("expected token scales of f32 or e8m0, got ")
           << tokenScale.str();
  int64_t units = scales.getDimSize(0);
  if (failed(expectType(*this, "token scales", tokens,
                        {units, tokenScale.isF32() ? 2 : 1},
                        tokens.getElementType())) ||
      failed(expectType(*this, "a result", getResult().getType(), {units, 2},
                        tokens.getElementType())))
    return failure();
  // fragment_c19
  int64_t group = getGroup();
  if (getScale().getFormat().isF32())
    group = 2 * group + 1; // its second word
  if (scales.getRank() != 2 || group < 0 || group >= scales.getDimSize(1))
    return emitOpError("expected scales of type vector<UxGxi32> and a group "
                       "from 0 to G - 1, got ")
           << scales << " and " << group;
  // fragment_c20
  return verifyScaleFormat(*this, getScale().getFormat());
}

LogicalResult AccumulateOp::verify() {
  VectorType result = getVector(getResult());
  auto partial = cast<VectorType>(getPartial().getType());
  // fragment_c25
  bool pairs =
      partial.getElementType().isInteger(32) && partial.getDimSize(2) == 2;
  if (result.getDimSize(2) != 4 ||
      partial.getShape().take_front(2) != result.getShape().take_front(2) ||
      !(pairs || partial.getDimSize(2) == 4))
    return emitOpError("expected a partial sum of f32, i32 or pairs of f16 "
                       "for the result's units and tiles, got ")
           << partial << " and " << result;
  if (getAccumulators() && getAccumulators().getType() != result)
    return emitOpError("expected accumulators of the result's type ")
           << result << ", got " << getAccumulators().getType();
  // fragment_c26
  if (!getScales())
    return success();
  VectorType scales = getVector(getScales());
  if (scales.getRank() != 2 || scales.getDimSize(0) != result.getDimSize(1) ||
      scales.getDimSize(1) > 2)
    return emitOpError("expected scales of ")
           << result.getDimSize(1) << " tiles of tokens, in 1 or 2 words, got "
           << scales;
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions and epilogue
//===----------------------------------------------------------------------===//

/// epilogue_c1: four accumulators a unit and token tile.
template <typename EpilogueOp>
static LogicalResult verifyAccumulators(EpilogueOp op) {
  VectorType type = getVector(op.getAccumulators());
  if (type.getDimSize(2) != 4)
    return op.emitOpError("expected accumulators of type vector<UxTx4xf32>, "
                          "got ")
           << type;
  return success();
}

/// epilogue_c2: what goes through scratch fits.
template <typename EpilogueOp>
static LogicalResult verifyScratch(EpilogueOp op, int64_t bytes) {
  auto type = cast<MemRefType>(op.getScratch().getType());
  if (type.getRank() != 1 || type.getDimSize(0) < bytes)
    return op.emitOpError("expected scratch of rank 1 and at least ")
           << bytes << " bytes, got " << type;
  return success();
}

/// epilogue_c3: what is added or written is a 16-bit float.
template <typename EpilogueOp>
static LogicalResult verifyFormat(EpilogueOp op) {
  NumberFormat format = op.getFormat().getFormat();
  if (!isSixteenBitFloat(format))
    return op.emitOpError("expected format f16 or bf16, got ") << format.str();
  return success();
}

LogicalResult ReduceWarpsOp::verify() {
  if (failed(verifyAccumulators(*this)))
    return failure();
  // epilogue_c4
  int64_t warps = getWarpsK(), lanes = getLanes();
  if (!isThreadCount(lanes) || warps < 2 || warps > 1024 / lanes)
    return emitOpError("expected lanes to be a multiple of 32 and at least 2 "
                       "warps_k, at most 1024 threads together, got ")
           << lanes << " and " << warps;
  return verifyScratch(*this,
                       (warps - 1) * lanes * 4 *
                           getVector(getAccumulators()).getNumElements());
}

LogicalResult ReduceBlocksOp::verify() {
  if (failed(verifyAccumulators(*this)))
    return failure();
  // epilogue_c5
  if (!isThreadCount(getThreads()))
    return emitOpError("expected threads to be a multiple of 32, at most "
                       "1024, got ")
           << int64_t(getThreads());
  // The number of blocks that arrived before goes to all threads.
  return verifyScratch(*this, 4);
}

LogicalResult ReduceHalvesOp::verify() {
  if (failed(verifyAccumulators(*this)))
    return failure();
  // epilogue_c12
  if (!isThreadCount(getThreads()))
    return emitOpError("expected threads to be a multiple of 32, at most "
                       "1024, got ")
           << int64_t(getThreads());
  // epilogue_c16
  auto whole = getVector(getAccumulators()), half = getVector(getResult());
  if (whole.getDimSize(1) % 2 != 0 ||
      half != VectorType::get({whole.getDimSize(0), whole.getDimSize(1) / 2,
                               whole.getDimSize(2)},
                              whole.getElementType()))
    return emitOpError("expected a result of half the accumulators' tiles, "
                       "which are even, got ")
           << half << " of " << whole;
  return verifyScratch(*this,
                       int64_t(getThreads()) * 4 * half.getNumElements());
}

LogicalResult ReduceClusterOp::verify() {
  if (failed(verifyAccumulators(*this)))
    return failure();
  // epilogue_c12
  if (!isThreadCount(getThreads()))
    return emitOpError("expected threads to be a multiple of 32, at most "
                       "1024, got ")
           << int64_t(getThreads());
  // epilogue_c13
  if (int64_t(getBlocks()) < 2 || int64_t(getBlocks()) > 8)
    return emitOpError("expected a cluster of 2 to 8 blocks, got ")
           << int64_t(getBlocks());
  return verifyScratch(*this,
                       int64_t(getThreads()) * 4 *
                           getVector(getAccumulators()).getNumElements());
}

LogicalResult ScaleRowsOp::verify() {
  if (failed(verifyUnitStride(*this, getUnitStride())))
    return failure();
  VectorType type = getVector(getAccumulators());
  if (failed(verifyAccumulators(*this)) ||
      failed(verifyUnits(*this, type.getDimSize(0))))
    return failure();
  // epilogue_c14
  if (getTokenRows() && type.getDimSize(1) % 8 != 0)
    return emitOpError("expected whole strips of 64 features, 8 tiles each, "
                       "with token_rows, got ")
           << type.getDimSize(1) << " tiles";
  return verifyScaleFormat(*this, getFormat().getFormat());
}

LogicalResult ScaleOutputOp::verify() {
  if (failed(verifyAccumulators(*this)))
    return failure();
  // epilogue_c9
  if (getPer() != "tensor" && getPer() != "feature" && getPer() != "token")
    return emitOpError("expected per tensor, feature or token, got ")
           << getPer();
  return success();
}

LogicalResult SubtractOffsetsOp::verify() {
  if (failed(verifyUnitStride(*this, getUnitStride())) ||
      failed(verifyAccumulators(*this)))
    return failure();
  // epilogue_c10
  if (getPer() != "tensor" && getPer() != "token")
    return emitOpError("expected per tensor or token, got ") << getPer();
  return success();
}

LogicalResult AddRowsOp::verify() {
  if (failed(verifyUnitStride(*this, getUnitStride())))
    return failure();
  if (failed(verifyAccumulators(*this)))
    return failure();
  return verifyFormat(*this);
}

LogicalResult StoreTileOp::verify() {
  if (failed(verifyUnitStride(*this, getUnitStride())))
    return failure();
  if (failed(verifyAccumulators(*this)) || failed(verifyFormat(*this)))
    return failure();
  int64_t rows = getTileRows(), columns = getTileColumns();
  int64_t threads = getThreads(), lanes = getLanes();
  // epilogue_c6
  if (rows <= 0 || columns <= 0 || columns % 8 != 0 ||
      columns > kMaxTileBytes / 2 / rows)
    return emitOpError("expected positive tile_rows and tile_columns, "
                       "tile_columns a multiple of 8, together at most ")
           << kMaxTileBytes << " bytes, got " << rows << " and " << columns;
  // epilogue_c7
  if (!isThreadCount(threads) || !isThreadCount(lanes) || lanes > threads)
    return emitOpError("expected threads and lanes to be multiples of 32, "
                       "lanes at most threads and threads at most 1024, got ")
           << threads << " and " << lanes;
  // epilogue_c8
  if (!isGranule(getGranule()))
    return emitOpError("expected granule 2, 4, 8 or 16, got ")
           << int64_t(getGranule());
  // epilogue_c15
  if (getTokenRows() && !getDirect())
    return emitOpError("expected direct with token_rows");
  if (getDirect()) {
    // epilogue_c11
    if (getGranule() < 4)
      return emitOpError("expected a granule of at least 4 with direct, got ")
             << int64_t(getGranule());
    return success();
  }
  // A row of scratch has 8 elements of padding.
  return verifyScratch(*this, rows * 2 * (columns + 8));
}
