//===- StoreLowering.cpp - The output tile to memory ------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accumulators (u, t, v), spread over lanes as in EpilogueLowering.cpp, are
// rounded and stored token by token. Three ways:
//
//   through scratch   all threads write 16 bytes along the features
//   direct            features are rows: an 8x8 block is transposed by
//                     movmatrix, four lanes write 16 or 32 bytes of a token
//   direct, tokens    tokens are rows: a lane has pairs of features of a token,
//                     and the four lanes of it exchange those of four tiles, so
//                     that each writes 16 bytes
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "LoweringBuilder.h"
#include "LoweringPatterns.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

struct LowerStoreTile : OpConversionPattern<StoreTileOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreTileOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    if (!op.getDirect())
      lb.barrier();
    auto body = [&] {
      if (op.getDirect()) {
        whereHeld(lb, op, [&] {
          if (op.getTokenRows())
            writeRows(lb, op, adaptor);
          else
            writeTransposed(lb, op, adaptor);
        });
        return;
      }
      putToScratch(lb, op, adaptor);
      lb.barrier();
      writeOut(lb, op, adaptor);
    };
    if (op.getCondition())
      lb.when(adaptor.getCondition().front(), body);
    else
      body();
    rewriter.eraseOp(op);
    return success();
  }

  /// Bytes of a token's row in scratch: 8 extra elements, so that the rows that
  /// one store of a warp touches fall into different banks.
  static int64_t rowBytes(StoreTileOp op) {
    return 2 * (int64_t(op.getTileColumns()) + 8);
  }

  /// Runs `emit` by the threads that hold accumulators.
  static void whereHeld(LoweringBuilder &lb, StoreTileOp op,
                        function_ref<void()> emit) {
    if (op.getLanes() == op.getThreads())
      emit();
    else
      lb.when(lb.ult(lb.threadId(), op.getLanes()), emit);
  }

  static Type outputType(LoweringBuilder &lb, StoreTileOp op) {
    return op.getFormat().getFormat().isF16() ? Type(lb.b.getF16Type())
                                              : Type(lb.b.getBF16Type());
  }

  /// Accumulators `at` and the next one, rounded, in one register.
  static Value roundPair(LoweringBuilder &lb, ValueRange values, size_t at,
                         Type element) {
    Value pair = lb.pack(
        {LLVM::FPTruncOp::create(lb.b, lb.loc, element, values[at]),
         LLVM::FPTruncOp::create(lb.b, lb.loc, element, values[at + 1])});
    return lb.bitcast(pair, lb.i32());
  }

  /// Address of the element of the output at this warp's row and column plus
  /// `row` and `column`.
  static Value destination(LoweringBuilder &lb, StoreTileOp op,
                           OneToNOpAdaptor adaptor, Value row, Value column) {
    Value line = lb.mul(lb.zext64(row), lb.zext64(adaptor.getStride().front()));
    return lb.offset(adaptor.getDest().front(),
                     lb.shl(lb.add(line, lb.zext64(column)), 1));
  }

  /// Rounds the accumulators and stores them transposed: token-major.
  static void putToScratch(LoweringBuilder &lb, StoreTileOp op,
                           OneToNOpAdaptor adaptor) {
    auto type = cast<VectorType>(op.getAccumulators().getType());
    Type element = op.getFormat().getFormat().isF16()
                       ? Type(lb.b.getF16Type())
                       : Type(lb.b.getBF16Type());
    auto emit = [&] {
      Value lane = lb.laneId();
      Value token =
          lb.add(adaptor.getToken().front(), lb.shl(lb.and_(lane, 3), 1));
      Value feature = lb.add(adaptor.getFeature().front(), lb.lshr(lane, 2));
      Value base =
          lb.offset(adaptor.getScratch().front(),
                    lb.add(lb.mul(token, rowBytes(op)), lb.shl(feature, 1)));
      size_t next = 0;
      int64_t unitRows = 16 * int64_t(op.getUnitStride());
      for (int64_t u = 0; u < type.getDimSize(0); ++u)
        for (int64_t t = 0; t < type.getDimSize(1); ++t)
          for (int64_t v = 0; v < 4; ++v) {
            Value rounded = LLVM::FPTruncOp::create(
                lb.b, lb.loc, element, adaptor.getAccumulators()[next++]);
            lb.store(rounded,
                     lb.offset(base, (8 * t + v % 2) * rowBytes(op) +
                                         2 * (unitRows * u + 8 * (v / 2))),
                     2);
          }
    };
    if (op.getLanes() == op.getThreads())
      emit();
    else
      lb.when(lb.ult(lb.threadId(), op.getLanes()), emit);
  }

  /// Every warp rounds and stores its own part. An 8x8 block of features by
  /// tokens, a pair of tokens a lane, is transposed to a pair of features a
  /// lane (movmatrix): four lanes write 16 bytes of a token's row, or with
  /// results that come in eights of bytes the 32 bytes of two such blocks, a
  /// sector of L2.
  static void writeTransposed(LoweringBuilder &lb, StoreTileOp op,
                              OneToNOpAdaptor adaptor) {
    auto type = cast<VectorType>(op.getAccumulators().getType());
    Type element = outputType(lb, op);
    const bool quads = op.getGranule() >= 8;
    auto transposed = [&](size_t at) {
      return LLVM::InlineAsmOp::create(
                 lb.b, lb.loc, lb.i32(),
                 roundPair(lb, adaptor.getAccumulators(), at, element),
                 "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r",
                 /*has_side_effects=*/true, /*is_align_stack=*/false,
                 LLVM::TailCallKind::None,
                 LLVM::AsmDialectAttr::get(lb.b.getContext(),
                                           LLVM::AsmDialect::AD_ATT),
                 ArrayAttr())
          .getResult(0);
    };
    Value lane = lb.laneId();
    Value row =
        lb.add(lb.add(adaptor.getRow().front(), adaptor.getToken().front()),
               lb.lshr(lane, 2));
    // Pairs 0 to 3 of the unit's low 8 features, then of its high 8; or quads:
    // lanes 0 and 2 of the low ones, 1 and 3 of the high ones.
    Value pair = lb.and_(lane, 3);
    Value isOdd = lb.eq(lb.and_(lane, 1), lb.c(1));
    Value within =
        quads ? lb.add(lb.shl(lb.and_(pair, 1), 3), lb.shl(lb.and_(pair, 2), 1))
              : lb.shl(pair, 1);
    Value column = lb.add(
        lb.add(adaptor.getColumn().front(), adaptor.getFeature().front()),
        within);
    Value base = destination(lb, op, adaptor, row, column);
    Value eightRows = lb.shl(lb.zext64(adaptor.getStride().front()), 4);
    int64_t unitRows = 16 * int64_t(op.getUnitStride());
    size_t next = 0;
    for (int64_t u = 0; u < type.getDimSize(0); ++u) {
      Value inLow = lb.ult(lb.add(column, unitRows * u),
                           adaptor.getColumnBound().front());
      Value inHigh = lb.ult(lb.add(column, unitRows * u + 8),
                            adaptor.getColumnBound().front());
      Value line = lb.offset(base, 2 * unitRows * u);
      for (int64_t t = 0; t < type.getDimSize(1); ++t, next += 4) {
        // Lanes of the warp take part in both, whatever they store.
        Value low = transposed(next), high = transposed(next + 2);
        Value inRow = lb.ult(lb.add(row, 8 * t), adaptor.getRowBound().front());
        if (quads) {
          // Even lanes give their high pair for the neighbour's low one.
          Value other = lb.exchange(lb.select(isOdd, low, high), 1);
          Value quad = lb.pack(
              {lb.select(isOdd, other, low), lb.select(isOdd, high, other)});
          lb.when(lb.and_(inRow, inLow), [&] { lb.store(quad, line, 8); });
        } else {
          lb.when(lb.and_(inRow, inLow), [&] { lb.store(low, line, 4); });
          lb.when(lb.and_(inRow, inHigh),
                  [&] { lb.store(high, lb.offset(line, 16), 4); });
        }
        line = lb.offset(line, eightRows);
      }
    }
  }

  /// Transposes 4 x 4 words of four consecutive lanes: word j of lane i becomes
  /// word i of lane j. In two steps lanes 1 and 2 apart exchange what lies on
  /// the wrong side of the diagonal.
  static void transposeInQuad(LoweringBuilder &lb, Value lane,
                              MutableArrayRef<Value> words) {
    for (int64_t distance : {1, 2}) {
      Value isHigh = lb.eq(lb.and_(lane, distance), lb.c(distance));
      for (int64_t i : {0, 1, 2, 3}) {
        if (i & distance)
          continue;
        Value &low = words[i], &high = words[i + distance];
        Value sent = lb.select(isHigh, low, high);
        Value got = lb.exchange(sent, distance);
        low = lb.select(isHigh, got, low);
        high = lb.select(isHigh, high, got);
      }
    }
  }

  /// Every warp rounds and stores its own part, whose rows are tokens: a lane
  /// holds pairs of features. Where rows of the output are known to be whole
  /// pieces of 16 bytes, the four lanes of a row exchange theirs of four tiles,
  /// so that each stores one piece: 64 bytes of each of 8 rows at once.
  static void writeRows(LoweringBuilder &lb, StoreTileOp op,
                        OneToNOpAdaptor adaptor) {
    auto type = cast<VectorType>(op.getAccumulators().getType());
    int64_t tiles = type.getDimSize(1);
    bool wide = op.getGranule() == 16 && tiles % 4 == 0;
    Type element = outputType(lb, op);
    Value lane = lb.laneId(), inQuad = lb.and_(lane, 3);
    Value row =
        lb.add(lb.add(adaptor.getRow().front(), adaptor.getToken().front()),
               lb.lshr(lane, 2));
    Value column = lb.add(
        lb.add(adaptor.getColumn().front(), adaptor.getFeature().front()),
        lb.shl(inQuad, wide ? 3 : 1));
    Value base = destination(lb, op, adaptor, row, column);
    Value eightRows = lb.shl(lb.zext64(adaptor.getStride().front()), 4);
    int64_t tilesOfStore = wide ? 4 : 1;
    for (int64_t u = 0; u < type.getDimSize(0); ++u)
      for (int64_t half = 0; half < 2; ++half) {
        int64_t rowOfUnit = 16 * int64_t(op.getUnitStride()) * u + 8 * half;
        Value line = lb.offset(base, lb.mul(eightRows, rowOfUnit / 8));
        Value inRow =
            lb.ult(lb.add(row, rowOfUnit), adaptor.getRowBound().front());
        for (int64_t t = 0; t < tiles; t += tilesOfStore) {
          SmallVector<Value, 4> words;
          for (int64_t i = 0; i < tilesOfStore; ++i)
            words.push_back(roundPair(lb, adaptor.getAccumulators(),
                                      (u * tiles + t + i) * 4 + 2 * half,
                                      element));
          // Lanes of the warp take part, whatever they store.
          if (wide)
            transposeInQuad(lb, lane, words);
          Value inColumn =
              lb.ult(lb.add(column, 8 * t), adaptor.getColumnBound().front());
          lb.when(lb.and_(inRow, inColumn), [&] {
            lb.store(wide ? lb.pack(words) : words[0], lb.offset(line, 16 * t),
                     4 * tilesOfStore);
          });
        }
      }
  }

  /// All threads write the tile in 16-byte chunks along the features.
  static void writeOut(LoweringBuilder &lb, StoreTileOp op,
                       OneToNOpAdaptor adaptor) {
    int64_t threads = op.getThreads(), granule = op.getGranule();
    int64_t chunksPerRow = int64_t(op.getTileColumns()) / 8;
    int64_t chunks = int64_t(op.getTileRows()) * chunksPerRow;
    for (int64_t j = 0; j * threads < chunks; ++j) {
      Value chunk = lb.add(lb.threadId(), j * threads);
      Value row = lb.div(chunk, chunksPerRow);
      Value column = lb.shl(lb.rem(chunk, chunksPerRow), 3);
      Value globalRow = lb.add(adaptor.getRow().front(), row);
      Value globalColumn = lb.add(adaptor.getColumn().front(), column);
      Value inRow = lb.ult(globalRow, adaptor.getRowBound().front());
      if ((j + 1) * threads > chunks)
        inRow = lb.and_(inRow, lb.ult(chunk, chunks));
      lb.when(inRow, [&] {
        SmallVector<Value> words = lb.loadWords(
            lb.offset(adaptor.getScratch().front(),
                      lb.add(lb.mul(row, rowBytes(op)), lb.shl(column, 1))),
            4, lb.i32());
        Value line = lb.mul(lb.zext64(globalRow),
                            lb.zext64(adaptor.getStride().front()));
        Value dest =
            lb.offset(adaptor.getDest().front(),
                      lb.shl(lb.add(line, lb.zext64(globalColumn)), 1));
        for (int64_t byte = 0; byte < 16; byte += granule) {
          Value inside = lb.ult(lb.add(globalColumn, byte / 2),
                                adaptor.getColumnBound().front());
          lb.when(inside, [&] {
            lb.store(piece(lb, words, byte, granule), lb.offset(dest, byte),
                     granule);
          });
        }
      });
    }
  }

  /// `size` bytes from byte `at` of a chunk of four words.
  static Value piece(LoweringBuilder &lb, ArrayRef<Value> words, int64_t at,
                     int64_t size) {
    if (size == 2)
      return lb.trunc(lb.lshr(words[at / 4], at % 4 * 8), lb.i16());
    if (size == 4)
      return words[at / 4];
    return lb.pack(words.slice(at / 4, size / 4));
  }
};

} // namespace

void humming::populateStoreLoweringPatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<LowerStoreTile>(converter, patterns.getContext());
}
