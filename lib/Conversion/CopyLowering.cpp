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
// Producer warps (hquant-specialize-warps) have few registers. They copy rows
// that lie in shared memory as in global memory with one bulk copy each, and
// swizzled rows with a loop that carries one address, or by tensor map.
//
// Where the source promises less than 16 bytes (`granule`), a chunk is moved in
// pieces of that size, each checked against the bounds by itself. cp.async
// moves 4, 8 or 16 bytes; pieces of 2 go through registers.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Target/KernelConfig.h"
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
  int64_t firstThread = 0; ///< of those that copy

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
    result.index = lb.add(lb.threadId(), j * threads - firstThread);
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
    tile.firstThread = op.getFirstThread();
    TileSource source = TileSource::of(op, adaptor);
    Value dest = destinationBase(lb, op, adaptor);
    bool async = op.getAsync() && source.granule >= 4;
    if (op.getRing() && op.getMap()) {
      Value full = lb.offset(adaptor.getRing(), lb.shl(adaptor.getStage(), 4));
      copyTensor(lb, tile, source, dest, full, adaptor.getMap(),
                 op.getBlocks());
      rewriter.eraseOp(op);
      return success();
    }
    if (op.getRing()) {
      Value full = lb.offset(adaptor.getRing(), lb.shl(adaptor.getStage(), 4));
      copyBulk(lb, tile, source, dest, full, op.getFirstThread());
      rewriter.eraseOp(op);
      return success();
    }
    if (op.getFirstThread() > 0 && op.getSwizzle()) {
      copyPanels(lb, tile, source, dest, op.getFirstThread());
      rewriter.eraseOp(op);
      return success();
    }
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

  /// Rows that one thread copies, at most: no more than it takes to start
  /// another one's copies.
  static constexpr int64_t kRowsOfOneThread = 4;

  static void expect(LoweringBuilder &lb, Value full, Value bytes) {
    NVVM::MBarrierExpectTxOp::create(lb.b, lb.loc, full, bytes,
                                     NVVM::MemScopeKind::CTA);
  }
  static Value rowAt(LoweringBuilder &lb, const TileShape &tile,
                     const TileSource &source, Value row) {
    Value line =
        lb.mul(lb.zext64(lb.add(source.row, row)), lb.zext64(source.stride));
    return lb.offset(
        source.pointer,
        lb.mul(lb.add(line, lb.zext64(source.column)), tile.cellBytes));
  }

  /// One bulk copy for each tile row, counted in bytes by the barrier `full`:
  /// by a thread of its own, or, of few rows that are all in bounds, by the
  /// first. What is out of bounds is cleared by all threads.
  static void copyBulk(LoweringBuilder &lb, const TileShape &tile,
                       const TileSource &source, Value dest, Value full,
                       int64_t firstThread) {
    int64_t rowBytes = tile.cellBytes * tile.columns;
    Value thread = lb.add(lb.threadId(), -firstThread);
    Value columns = lb.select(
        lb.ult(source.column, source.columnBound),
        lb.umin(lb.sub(source.columnBound, source.column), lb.c(tile.columns)),
        lb.c(0));
    auto bytesOf = [&](Value row) {
      Value inside = lb.ult(lb.add(source.row, row), source.rowBound);
      return lb.mul(lb.select(inside, columns, lb.c(0)), tile.cellBytes);
    };
    Value isWhole =
        lb.and_(lb.eq(columns, lb.c(tile.columns)),
                lb.ult(lb.add(source.row, tile.rows - 1), source.rowBound));
    Value isCut = lb.xor_(isWhole, lb.constant(lb.b.getI1Type(), 1));
    if (tile.threads == 32 && tile.rows <= kRowsOfOneThread) {
      lb.when(lb.and_(isWhole, lb.eq(thread, lb.c(0))), [&] {
        expect(lb, full, lb.c(tile.rows * rowBytes));
        for (int64_t row = 0; row < tile.rows; ++row)
          bulkCopy(lb, lb.offset(dest, row * rowBytes),
                   rowAt(lb, tile, source, lb.c(row)), lb.c(rowBytes), full);
      });
      lb.when(isCut, [&] {
        copyRows(lb, tile, source, dest, full, thread, bytesOf);
        clearRest(lb, tile, dest, thread, bytesOf);
      });
      return;
    }
    copyRows(lb, tile, source, dest, full, thread, bytesOf);
    lb.when(isCut, [&] { clearRest(lb, tile, dest, thread, bytesOf); });
  }

  /// Every row by a thread.
  static void copyRows(LoweringBuilder &lb, const TileShape &tile,
                       const TileSource &source, Value dest, Value full,
                       Value thread, function_ref<Value(Value)> bytesOf) {
    int64_t rowBytes = tile.cellBytes * tile.columns;
    // A warp's threads start their copies one after the other, so neighbouring
    // rows go to different warps.
    Value own = lb.add(lb.mul(lb.and_(thread, 31), tile.threads / 32),
                       lb.lshr(thread, 5));
    lb.when(lb.ult(own, tile.rows), [&] {
      Value bytes = bytesOf(own);
      lb.when(lb.ult(lb.c(0), bytes), [&] {
        expect(lb, full, bytes);
        bulkCopy(lb, lb.offset(dest, lb.mul(own, rowBytes)),
                 rowAt(lb, tile, source, own), bytes, full);
      });
    });
    // The warp must be whole again where there is a barrier (clearRest).
    NVVM::SyncWarpOp::create(lb.b, lb.loc, lb.c(-1));
  }

  /// What lies behind the first bytesOf(row) bytes of the rows.
  static void clearRest(LoweringBuilder &lb, const TileShape &tile, Value dest,
                        Value thread, function_ref<Value(Value)> bytesOf) {
    int64_t rowBytes = tile.cellBytes * tile.columns;
    auto rows =
        scf::ForOp::create(lb.b, lb.loc, lb.c(0), lb.c(tile.rows), lb.c(1));
    {
      OpBuilder::InsertionGuard guard(lb.b);
      lb.b.setInsertionPointToStart(rows.getBody());
      Value row = rows.getInductionVar();
      Value begin = lb.add(bytesOf(row), lb.shl(thread, 4));
      auto chunks = scf::ForOp::create(lb.b, lb.loc, begin, lb.c(rowBytes),
                                       lb.c(16 * tile.threads));
      lb.b.setInsertionPointToStart(chunks.getBody());
      Value at = lb.add(lb.mul(row, rowBytes), chunks.getInductionVar());
      lb.store(lb.pack(SmallVector<Value>(4, lb.c(0))), lb.offset(dest, at),
               16);
    }
    // Before the arrival of the first thread, which covers these stores, and
    // before the bulk copies of the next round.
    NVVM::FenceProxyOp::create(
        lb.b, lb.loc,
        NVVM::ProxyKindAttr::get(lb.b.getContext(),
                                 NVVM::ProxyKind::async_shared),
        NVVM::SharedSpaceAttr::get(lb.b.getContext(),
                                   NVVM::SharedSpace::shared_cta));
    lb.barrier(BarrierOfProducers, tile.threads);
  }

  /// The form that PTX 8.0 has: to .shared::cluster, where addresses of the
  /// block's own memory mean the same. The op of NVVM gives the form of
  /// PTX 8.6.
  static void bulkCopy(LoweringBuilder &lb, Value to, Value from, Value bytes,
                       Value full) {
    LLVM::InlineAsmOp::create(
        lb.b, lb.loc, LLVM::LLVMVoidType::get(lb.b.getContext()),
        ValueRange{to, from, bytes, full},
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[$0], [$1], $2, [$3];",
        "r,l,r,r,~{memory}", /*has_side_effects=*/true,
        /*is_align_stack=*/false, LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(lb.b.getContext(), LLVM::AsmDialect::AD_ATT),
        ArrayAttr());
  }

  /// Boxes of 128 bytes of K by as many rows as one may have, by the first
  /// thread. The map knows the bounds; a box counts in full. Of several blocks
  /// that copy together, each sends its part of the rows to all, and its
  /// barrier counts the whole tile.
  static void copyTensor(LoweringBuilder &lb, const TileShape &tile,
                         const TileSource &source, Value dest, Value full,
                         Value map, int64_t blocks) {
    int64_t rowBytes = tile.cellBytes * tile.columns;
    int64_t rows = tile.rows / blocks;
    int64_t boxRows = tensorBoxRows(int32_t(rows));
    Value firstRow = source.row;
    Value mask; // of the blocks' ranks in the cluster
    std::string suffix, constraints = "r,l,r,r,r,";
    std::string operands = " [$0], [$1, {$2, $3}], [$4]";
    if (blocks > 1) {
      Value first = lb.firstBlockOfMulticast();
      Value part = lb.sub(lb.blockOfCluster(), first);
      firstRow = lb.add(firstRow, lb.mul(part, rows));
      dest = lb.offset(dest, lb.mul(part, rows * 128));
      mask = lb.trunc(lb.shl(lb.c((1 << blocks) - 1), first), lb.i16());
      suffix = ".multicast::cluster";
      operands += ", $5";
      constraints += "h,";
    }
    std::string instruction = "cp.async.bulk.tensor.2d.shared::cluster.global."
                              "tile.mbarrier::complete_tx::bytes" +
                              suffix + operands + ";";
    constraints += "~{memory}";
    lb.when(lb.eq(lb.threadId(), lb.c(tile.firstThread)), [&] {
      expect(lb, full, lb.c(tile.rows * rowBytes));
      for (int64_t panel = 0; panel < rowBytes / 128; ++panel)
        for (int64_t row = 0; row < rows; row += boxRows) {
          SmallVector<Value> values = {
              lb.offset(dest, (panel * tile.rows + row) * 128), map,
              lb.add(source.column, panel * 128 / tile.cellBytes),
              lb.add(firstRow, row), full};
          if (mask)
            values.push_back(mask);
          LLVM::InlineAsmOp::create(
              lb.b, lb.loc, LLVM::LLVMVoidType::get(lb.b.getContext()), values,
              instruction, constraints, /*has_side_effects=*/true,
              /*is_align_stack=*/false, LLVM::TailCallKind::None,
              LLVM::AsmDialectAttr::get(lb.b.getContext(),
                                        LLVM::AsmDialect::AD_ATT),
              ArrayAttr());
        }
    });
  }

  /// Swizzled rows, in panels of up to 256 bytes: threads / 16 (or / 8) rows at
  /// a time, a multiple of 8, so that a thread keeps its column.
  static void copyPanels(LoweringBuilder &lb, const TileShape &tile,
                         const TileSource &source, Value dest,
                         int64_t firstThread) {
    int64_t chunks = tile.chunksPerRow();
    int64_t wide = chunks % 16 == 0 ? 16 : 8;
    int64_t rowsAtOnce = tile.threads / wide;
    Value thread = lb.add(lb.threadId(), -firstThread);
    Value piece = lb.rem(thread, wide), firstRow = lb.div(thread, wide);
    Value lineBytes = lb.mul(lb.zext64(source.stride), tile.cellBytes);
    Value row = lb.add(source.row, firstRow);
    Value line =
        lb.offset(lb.offset(source.pointer, lb.mul(lb.zext64(row), lineBytes)),
                  lb.mul(lb.zext64(source.column), tile.cellBytes));
    // 128-byte panels of the destination, and the chunk within one.
    Value panel = lb.mul(lb.lshr(piece, 3), tile.rows * 128);
    Value column = lb.xor_(lb.and_(piece, 7), lb.and_(firstRow, 7));
    Value target = lb.offset(
        dest, lb.add(lb.add(panel, lb.shl(firstRow, 7)), lb.shl(column, 4)));
    Value step = lb.mul(lineBytes, rowsAtOnce);
    for (int64_t first = 0; first < chunks; first += wide) {
      // A chunk is 16 / cellBytes cells, wholly in or out of bounds.
      Value cell = lb.mul(lb.add(piece, first), 16 / tile.cellBytes);
      Value inColumns = lb.ult(lb.add(source.column, cell), source.columnBound);
      Value from = lb.offset(line, lb.zext64(lb.shl(lb.add(piece, first), 4)));
      Value to = lb.offset(target, first / 8 * tile.rows * 128);
      auto loop = scf::ForOp::create(lb.b, lb.loc, lb.c(0), lb.c(tile.rows),
                                     lb.c(rowsAtOnce), ValueRange{from});
      OpBuilder::InsertionGuard guard(lb.b);
      lb.b.setInsertionPointToStart(loop.getBody());
      Value at = loop.getInductionVar();
      auto copy = [&] {
        Value inRows = lb.ult(lb.add(row, at), source.rowBound);
        Value size = lb.select(lb.and_(inRows, inColumns), lb.c(16), lb.c(0));
        NVVM::CpAsyncOp::create(lb.b, lb.loc, lb.offset(to, lb.shl(at, 7)),
                                loop.getRegionIterArg(0), 16,
                                NVVM::LoadCacheModifierKind::CG, size);
      };
      if (tile.rows % rowsAtOnce == 0)
        copy();
      else
        lb.when(lb.ult(lb.add(firstRow, at), tile.rows), copy);
      scf::YieldOp::create(lb.b, lb.loc,
                           lb.offset(loop.getRegionIterArg(0), step));
    }
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
