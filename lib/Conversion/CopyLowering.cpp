//===- CopyLowering.cpp - Tile copies to cp.async, ld and st ----*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile is moved in chunks of 16 bytes; thread i of n moves chunks i, i + n,
// ... so that a warp's accesses are contiguous. Everything about a chunk except
// the position of the tile is a function of the thread, so it leaves the K
// loop: one add, two compares and the copy stay.
//
// Where the source promises less than 16 bytes (`granule`), a chunk is moved in
// pieces of that size, each checked against the bounds by itself. cp.async
// moves 4, 8 or 16 bytes; pieces of 2 go through registers.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "LoweringBuilder.h"
#include "LoweringPatterns.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

/// One 16-byte chunk of a tile as this thread sees it.
struct Chunk {
  Value row;    ///< tile row
  Value piece;  ///< 16-byte position within the tile row
  Value inTile; ///< null if the chunk certainly exists
  Value index;  ///< chunk number
};

/// The static shape of a tile, read off a copy op.
struct TileShape {
  int64_t cellBytes, rows, columns, threads;

  template <typename Op>
  static TileShape of(Op op) {
    return {int64_t(op.getCellBytes()), int64_t(op.getTileRows()),
            int64_t(op.getTileColumns()), int64_t(op.getThreads())};
  }
  int64_t chunksPerRow() const { return cellBytes * columns / 16; }
  int64_t chunks() const { return rows * chunksPerRow(); }
  int64_t perThread() const { return (chunks() + threads - 1) / threads; }

  Chunk chunk(LoweringBuilder &lb, int64_t j) const {
    Chunk result;
    result.index = lb.add(lb.threadId(), j * threads);
    if ((j + 1) * threads > chunks())
      result.inTile = lb.ult(result.index, chunks());
    if (rows == 1) {
      result.row = lb.c(0);
      result.piece = result.index;
    } else {
      result.row = lb.div(result.index, chunksPerRow());
      result.piece = lb.rem(result.index, chunksPerRow());
    }
    return result;
  }

  /// Byte offset of a chunk in workgroup memory.
  Value destination(LoweringBuilder &lb, const Chunk &chunk,
                    bool swizzle) const {
    if (!swizzle)
      return lb.shl(chunk.index, 4);
    Value panel = lb.div(chunk.piece, 8);
    Value column = lb.xor_(lb.and_(chunk.piece, 7), lb.and_(chunk.row, 7));
    Value row = lb.add(lb.mul(panel, rows), chunk.row);
    return lb.add(lb.shl(row, 7), lb.shl(column, 4));
  }
};

/// The dynamic position of a tile in the source.
struct TileSource {
  Value pointer, row, column, rowBound, columnBound, stride;
  int64_t granule;

  template <typename Op>
  static TileSource of(Op op, typename Op::Adaptor adaptor) {
    return {adaptor.getSource(),      adaptor.getRow(),
            adaptor.getColumn(),      adaptor.getRowBound(),
            adaptor.getColumnBound(), adaptor.getStride(),
            int64_t(op.getGranule())};
  }

  /// Address of the chunk: the part that a K loop does not change first.
  Value address(LoweringBuilder &lb, const TileShape &tile,
                const Chunk &chunk) const {
    Value line = lb.mul(lb.zext64(lb.add(row, chunk.row)), lb.zext64(stride));
    Value fixed =
        lb.add(lb.mul(line, tile.cellBytes), lb.zext64(lb.shl(chunk.piece, 4)));
    return lb.offset(lb.offset(pointer, fixed),
                     lb.mul(lb.zext64(column), tile.cellBytes));
  }

  /// Whether the piece at byte `byte` of the chunk is within the bounds.
  Value inBounds(LoweringBuilder &lb, const TileShape &tile, const Chunk &chunk,
                 int64_t byte) const {
    // Cells of 16 bytes and more hold several chunks, others are held by one.
    Value cell = tile.cellBytes >= 16
                     ? lb.div(chunk.piece, tile.cellBytes / 16)
                     : lb.add(lb.mul(chunk.piece, 16 / tile.cellBytes),
                              byte / tile.cellBytes);
    return lb.and_(lb.ult(lb.add(row, chunk.row), rowBound),
                   lb.ult(lb.add(column, cell), columnBound));
  }

  /// Reads a chunk as four words; zero where out of bounds.
  SmallVector<Value> load(LoweringBuilder &lb, const TileShape &tile,
                          const Chunk &chunk) const {
    Value zero = lb.c(0);
    Value base = address(lb, tile, chunk);
    SmallVector<Value> words;
    for (int64_t byte = 0; byte < 16; byte += granule) {
      Value inside = inBounds(lb, tile, chunk, byte);
      if (chunk.inTile)
        inside = lb.and_(inside, chunk.inTile);
      Value pointer = lb.offset(base, byte);
      int64_t count = std::max<int64_t>(1, granule / 4);
      SmallVector<Value> piece =
          lb.choose(inside, SmallVector<Value>(count, zero), [&] {
            if (granule >= 4)
              return lb.loadWords(pointer, count, lb.i32());
            return SmallVector<Value>{lb.zext(lb.load(lb.i16(), pointer, 2))};
          });
      if (granule == 2 && byte % 4 == 2)
        words.back() = lb.or_(words.back(), lb.shl(piece[0], 16));
      else
        words.append(piece);
    }
    return words;
  }
};

/// Start of the op's destination, stage included.
template <typename Op>
Value destinationBase(LoweringBuilder &lb, Op op,
                      typename Op::Adaptor adaptor) {
  if (!adaptor.getStage())
    return adaptor.getDest();
  int64_t bytes = cast<MemRefType>(op.getDest().getType()).getDimSize(1);
  return lb.offset(adaptor.getDest(), lb.mul(adaptor.getStage(), bytes));
}

void storeChunk(LoweringBuilder &lb, const TileShape &tile, const Chunk &chunk,
                bool swizzle, Value dest, ArrayRef<Value> words) {
  auto store = [&] {
    lb.store(lb.pack(words),
             lb.offset(dest, tile.destination(lb, chunk, swizzle)), 16);
  };
  if (chunk.inTile)
    lb.when(chunk.inTile, store);
  else
    store();
}

struct LowerCopyTile : OpConversionPattern<CopyTileOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CopyTileOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    TileShape tile = TileShape::of(op);
    TileSource source = TileSource::of(op, adaptor);
    Value dest = destinationBase(lb, op, adaptor);
    bool async = op.getAsync() && source.granule >= 4;
    for (int64_t j = 0; j < tile.perThread(); ++j) {
      Chunk chunk = tile.chunk(lb, j);
      if (async)
        copyAsync(lb, tile, source, chunk, dest, op.getSwizzle());
      else
        storeChunk(lb, tile, chunk, op.getSwizzle(), dest,
                   source.load(lb, tile, chunk));
    }
    rewriter.eraseOp(op);
    return success();
  }

  /// Pieces out of bounds are copied with a source size of zero: no read, and
  /// the destination becomes zero.
  static void copyAsync(LoweringBuilder &lb, const TileShape &tile,
                        const TileSource &source, const Chunk &chunk,
                        Value dest, bool swizzle) {
    auto emit = [&] {
      Value base = source.address(lb, tile, chunk);
      Value target = lb.offset(dest, tile.destination(lb, chunk, swizzle));
      // .cg keeps streams out of L1; it exists for 16 bytes only.
      auto modifier = source.granule == 16 ? NVVM::LoadCacheModifierKind::CG
                                           : NVVM::LoadCacheModifierKind::CA;
      for (int64_t byte = 0; byte < 16; byte += source.granule) {
        Value size = lb.select(source.inBounds(lb, tile, chunk, byte),
                               lb.c(source.granule), lb.c(0));
        NVVM::CpAsyncOp::create(lb.b, lb.loc, lb.offset(target, byte),
                                lb.offset(base, byte), source.granule, modifier,
                                size);
      }
    };
    if (chunk.inTile)
      lb.when(chunk.inTile, emit);
    else
      emit();
  }
};

struct LowerFetchTile : OpConversionPattern<FetchTileOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FetchTileOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    TileShape tile = TileShape::of(op);
    TileSource source = TileSource::of(op, adaptor);
    SmallVector<Value> words;
    for (int64_t j = 0; j < tile.perThread(); ++j)
      words.append(source.load(lb, tile, tile.chunk(lb, j)));
    rewriter.replaceOpWithMultiple(op, {words});
    return success();
  }
};

struct LowerPutTile : OpConversionPattern<PutTileOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PutTileOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    TileShape tile = TileShape::of(op);
    Value dest = adaptor.getDest().front();
    if (op.getStage()) {
      int64_t bytes = cast<MemRefType>(op.getDest().getType()).getDimSize(1);
      dest = lb.offset(dest, lb.mul(adaptor.getStage().front(), bytes));
    }
    SmallVector<Value> words(adaptor.getChunks());
    for (int64_t j = 0; j < tile.perThread(); ++j)
      storeChunk(lb, tile, tile.chunk(lb, j), op.getSwizzle(), dest,
                 ArrayRef(words).slice(4 * j, 4));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerCommitCopies : OpConversionPattern<CommitCopiesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CommitCopiesOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncCommitGroupOp>(op);
    return success();
  }
};

template <typename Op, NVVM::GridDepActionKind kind>
struct LowerGridOp : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::GriddepcontrolOp>(op, kind);
    return success();
  }
};

struct LowerWaitCopies : OpConversionPattern<WaitCopiesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WaitCopiesOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncWaitGroupOp>(op, op.getPending());
    return success();
  }
};

} // namespace

void humming::populateCopyLoweringPatterns(const TypeConverter &converter,
                                           RewritePatternSet &patterns) {
  patterns
      .add<LowerCopyTile, LowerFetchTile, LowerPutTile, LowerCommitCopies,
           LowerWaitCopies,
           LowerGridOp<GridStartOp, NVVM::GridDepActionKind::launch_dependents>,
           LowerGridOp<GridWaitOp, NVVM::GridDepActionKind::wait>>(
          converter, patterns.getContext());
}
