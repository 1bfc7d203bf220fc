//===- HQuantTileOps.cpp - Verifiers of the tile stage ----------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

/// K elements of a slab; rows of a unit and of a strip (docs/HQuant.md, packed
/// layout).
static constexpr int64_t kSlabDepth = 64;

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// copy_c1..c5: what a tile copy needs to be cut into 16-byte chunks.
template <typename CopyOp>
static LogicalResult verifyTile(CopyOp op, int64_t granule, bool swizzle) {
  int64_t threads = op.getThreads(), cell = op.getCellBytes();
  // copy_c1
  if (cell <= 0 || op.getTileRows() <= 0 || op.getTileColumns() <= 0)
    return op.emitOpError("expected positive cell_bytes, tile_rows and "
                          "tile_columns, got ")
           << cell << ", " << op.getTileRows() << " and "
           << op.getTileColumns();
  // copy_c2
  if (threads <= 0 || threads % 32 != 0 || threads > 1024)
    return op.emitOpError("expected threads to be a multiple of 32, at most "
                          "1024, got ")
           << threads;
  // copy_c3
  int64_t rowBytes = cell * op.getTileColumns();
  int64_t unit = swizzle ? 128 : 16;
  if (rowBytes % unit != 0)
    return op.emitOpError("expected the ")
           << rowBytes << " bytes of a tile row to be a multiple of " << unit;
  // copy_c4
  if (granule != 2 && granule != 4 && granule != 8 && granule != 16)
    return op.emitOpError("expected granule 2, 4, 8 or 16, got ") << granule;
  return success();
}

/// copy_c5: the destination holds the tile.
template <typename CopyOp>
static LogicalResult verifyDestination(CopyOp op) {
  auto type = cast<MemRefType>(op.getDest().getType());
  bool staged = static_cast<bool>(op.getStage());
  if (type.getRank() != (staged ? 2 : 1))
    return op.emitOpError("expected a destination of rank ")
           << (staged ? 2 : 1) << (staged ? " with" : " without")
           << " a stage, got " << type;
  if (!type.hasStaticShape() || type.getShape().back() < op.getTileBytes())
    return op.emitOpError("expected a destination of at least ")
           << op.getTileBytes() << " bytes, got " << type;
  return success();
}

/// copy_c6: one vector of 4 words per chunk of a thread.
template <typename CopyOp>
static LogicalResult verifyChunks(CopyOp op) {
  auto type = cast<VectorType>(op.getChunks().getType());
  if (type.getShape() != ArrayRef<int64_t>{op.getChunksPerThread(), 4})
    return op.emitOpError("expected chunks of type vector<")
           << op.getChunksPerThread() << "x4xi32>, got " << type;
  return success();
}

LogicalResult CopyTileOp::verify() {
  if (failed(verifyTile(*this, getGranule(), getSwizzle())))
    return failure();
  return verifyDestination(*this);
}

LogicalResult FetchTileOp::verify() {
  if (failed(verifyTile(*this, getGranule(), /*swizzle=*/false)))
    return failure();
  return verifyChunks(*this);
}

LogicalResult PutTileOp::verify() {
  if (failed(verifyTile(*this, /*granule=*/16, getSwizzle())) ||
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
  if (type.getRank() != rank || !type.hasStaticShape())
    return op.emitOpError("expected a static tile of rank ")
           << rank << ", got " << type;
  return success();
}

/// fragment_c2: units of a warp lie in one strip of four.
static LogicalResult verifyUnits(Operation *op, int64_t units) {
  if (units != 1 && units != 2 && units != 4)
    return op->emitOpError("expected 1, 2 or 4 units, got ") << units;
  return success();
}

static LogicalResult expectType(Operation *op, StringRef what, Type got,
                                ArrayRef<int64_t> shape, Type element) {
  Type expected = VectorType::get(shape, element);
  if (got != expected)
    return op->emitOpError("expected ")
           << what << " of type " << expected << ", got " << got;
  return success();
}

LogicalResult LoadWeightsOp::verify() {
  auto type = cast<VectorType>(getWords().getType());
  if (failed(verifySource(*this)))
    return failure();
  if (type.getRank() != 2)
    return emitOpError("expected words of type vector<UxBxi32>, got ") << type;
  if (failed(verifyUnits(*this, type.getDimSize(0))))
    return failure();
  if (type.getDimSize(1) > 8)
    return emitOpError("expected at most 8 words a unit, got ")
           << type.getDimSize(1);
  if (static_cast<int64_t>(getSlabs()) <= 0)
    return emitOpError("expected a positive number of slabs, got ")
           << getSlabs();
  return success();
}

LogicalResult LoadActivationsOp::verify() {
  auto type = cast<VectorType>(getFragment().getType());
  if (failed(verifySource(*this)))
    return failure();
  if (type.getRank() != 3 || type.getDimSize(1) != 4 || type.getDimSize(2) != 2)
    return emitOpError("expected a fragment of type vector<Tx4x2xi32>, got ")
           << type;
  if (static_cast<int64_t>(getTileRows()) % 8 != 0)
    return emitOpError("expected tile_rows to be a multiple of 8, got ")
           << getTileRows();
  return success();
}

LogicalResult LoadScalesOp::verify() {
  auto type = cast<VectorType>(getScales().getType());
  if (failed(verifySource(*this)))
    return failure();
  if (type.getRank() != 2)
    return emitOpError("expected scales of type vector<UxGxi32>, got ") << type;
  if (failed(verifyUnits(*this, type.getDimSize(0))))
    return failure();
  if (getElementBits() != 8 && getElementBits() != 16)
    return emitOpError("expected element_bits 8 or 16, got ")
           << getElementBits();
  return success();
}

LogicalResult DequantOp::verify() {
  auto words = cast<VectorType>(getWords().getType());
  if (words.getRank() != 2 ||
      words.getDimSize(1) != getWeight().getFormat().bits)
    return emitOpError("expected words of type vector<Ux")
           << unsigned(getWeight().getFormat().bits) << "xi32>, got " << words;
  int64_t units = words.getDimSize(0);
  int64_t steps = kSlabDepth / getMma().getStepDepth();
  if (failed(expectType(*this, "a fragment", getFragment().getType(),
                        {units, steps, getMma().getNumARegisters()},
                        words.getElementType())))
    return failure();
  for (Value operand : {getScales(), getZeroPoints()}) {
    if (!operand)
      continue;
    auto type = cast<VectorType>(operand.getType());
    if (type.getRank() != 2 || type.getDimSize(0) != units ||
        steps % type.getDimSize(1) != 0)
      return emitOpError("expected scales and zero points of type vector<")
             << units << "xGxi32> with G dividing " << steps << ", got "
             << type;
  }
  if (getScales() && getScale().getFormat() != getMma().getOperandFormat())
    return emitOpError("expected scales on the operand in its own format ")
           << getMma().getOperandFormat().str() << ", got "
           << getScale().getFormat().str();
  return success();
}

LogicalResult MmaOp::verify() {
  auto acc = cast<VectorType>(getAccumulators().getType());
  SyncMmaAttr kind = getKind();
  int64_t steps = kSlabDepth / kind.getStepDepth();
  Type i32 = IntegerType::get(getContext(), 32);
  if (acc.getDimSize(2) != kind.getNumAccumulators())
    return emitOpError("expected accumulators of type vector<UxTx")
           << kind.getNumAccumulators() << "xf32>, got " << acc;
  if (failed(expectType(*this, "a", getA().getType(),
                        {acc.getDimSize(0), steps, kind.getNumARegisters()},
                        i32)) ||
      failed(expectType(*this, "b", getB().getType(),
                        {acc.getDimSize(1), steps, kind.getNumBRegisters()},
                        i32)))
    return failure();
  int64_t first = getFirstStep(), last = getLastStep();
  if (first < 0 || first >= last || last > steps)
    return emitOpError("expected steps within 0 to ")
           << steps << ", got " << first << " to " << last;
  return success();
}

LogicalResult ScaleAccumulateOp::verify() {
  auto acc = cast<VectorType>(getAccumulators().getType());
  auto scales = cast<VectorType>(getScales().getType());
  if (scales.getRank() != 2 || scales.getDimSize(0) != acc.getDimSize(0) ||
      static_cast<int64_t>(getGroup()) >= scales.getDimSize(1))
    return emitOpError("expected scales of type vector<")
           << acc.getDimSize(0) << "xGxi32> with G > " << getGroup() << ", got "
           << scales;
  NumberFormat format = getScale().getFormat();
  if (!format.isF16() && !format.isBF16())
    return emitOpError("expected f16 or bf16 scales, got ") << format.str();
  return success();
}
