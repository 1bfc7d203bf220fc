//===- EpilogueLowering.cpp - Reductions, scales, bias -----*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accumulator (u, t, v) of a lane with g = lane / 4, i = lane % 4 is the result
// for feature 16 u + g + 8 (v / 2) and token 8 t + 2 i + v % 2 of the warp's
// part; where an op says token_rows, for token 16 u + g + 8 (v / 2) and feature
// 8 t + 2 i + v % 2. All sums across warps and blocks are f32, in the order of
// the warp or split index.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "LoweringBuilder.h"
#include "LoweringPatterns.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

/// Stores accumulators as 16-byte quads, `stride` bytes apart.
void storeQuads(LoweringBuilder &lb, ValueRange values, Value pointer,
                int64_t stride) {
  SmallVector<Value> all(values);
  for (size_t i = 0; i < all.size(); i += 4)
    lb.store(lb.pack(ArrayRef(all).slice(i, 4)),
             lb.offset(pointer, int64_t(i / 4) * stride), 16);
}

struct LowerReduceWarps : OpConversionPattern<ReduceWarpsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ReduceWarpsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    int64_t lanes = op.getLanes(), stride = 16 * lanes;
    SmallVector<Value> own(adaptor.getAccumulators());
    int64_t groupBytes = stride * own.size() / 4;
    Value scratch = adaptor.getScratch().front();
    Value kWarp = lb.div(lb.threadId(), lanes);
    Value lane = lb.rem(lb.threadId(), lanes);
    Value mine = lb.offset(scratch, lb.shl(lane, 4));

    lb.barrier();
    lb.when(lb.ult(lb.c(0), kWarp), [&] {
      storeQuads(lb, own,
                 lb.offset(mine, lb.mul(lb.add(kWarp, -1), groupBytes)),
                 stride);
    });
    lb.barrier();
    Value first = lb.eq(kWarp, lb.c(0));
    SmallVector<Value> sum = lb.choose(first, own, [&] {
      SmallVector<Value> total = own;
      for (int64_t w = 1; w < int64_t(op.getWarpsK()); ++w)
        for (size_t i = 0; i < total.size(); i += 4) {
          Value from =
              lb.offset(mine, (w - 1) * groupBytes + int64_t(i / 4) * stride);
          for (auto [k, value] :
               llvm::enumerate(lb.loadWords(from, 4, lb.f32())))
            total[i + k] = LLVM::FAddOp::create(rewriter, op.getLoc(),
                                                total[i + k], value);
        }
      return total;
    });
    rewriter.replaceOpWithMultiple(op, {sum});
    return success();
  }
};

struct LowerReduceBlocks : OpConversionPattern<ReduceBlocksOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ReduceBlocksOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    LoweringBuilder lb{rewriter, loc};
    Type i32 = lb.i32();
    int64_t threads = op.getThreads(), stride = 16 * threads;
    SmallVector<Value> own(adaptor.getAccumulators());
    int64_t partialBytes = stride * own.size() / 4;
    Value workspace = adaptor.getWorkspace().front();
    Value scratch = adaptor.getScratch().front();
    Value thread = lb.threadId();

    Value gridX = NVVM::GridDimXOp::create(rewriter, loc, i32);
    Value gridY = NVVM::GridDimYOp::create(rewriter, loc, i32);
    Value splits = NVVM::GridDimZOp::create(rewriter, loc, i32);
    Value blockX = NVVM::BlockIdXOp::create(rewriter, loc, i32);
    Value blockY = NVVM::BlockIdYOp::create(rewriter, loc, i32);
    Value split = NVVM::BlockIdZOp::create(rewriter, loc, i32);
    Value tile = lb.add(lb.mul(blockY, gridX), blockX);
    Value counters =
        lb.and_(lb.add(lb.shl(lb.mul(gridX, gridY), 2), 255), ~int64_t(255));
    Value counter = lb.offset(workspace, lb.zext64(lb.shl(tile, 2)));
    Value partials =
        lb.offset(lb.offset(workspace, lb.zext64(counters)),
                  lb.mul(lb.zext64(lb.mul(tile, splits)), partialBytes));
    Value lane = lb.offset(partials, lb.zext64(lb.shl(thread, 4)));

    Value holds = lb.ult(thread, threads);
    lb.when(holds, [&] {
      storeQuads(lb, own,
                 lb.offset(lane, lb.mul(lb.zext64(split), partialBytes)),
                 stride);
    });
    // Each thread's partial sums are visible device-wide before the block
    // counts.
    lb.fence();
    lb.barrier();
    lb.when(lb.eq(thread, lb.c(0)), [&] {
      Value arrived = LLVM::AtomicRMWOp::create(
          rewriter, loc, LLVM::AtomicBinOp::add, counter, lb.c(1),
          LLVM::AtomicOrdering::monotonic, "device");
      lb.fence();
      lb.store(arrived, scratch, 4);
    });
    lb.barrier();
    Value arrived = lb.load(i32, scratch, 4);
    Value isLast = lb.eq(arrived, lb.sub(splits, lb.c(1)));
    SmallVector<Value> sum = lb.choose(isLast, own, [&] {
      lb.fence();
      lb.when(lb.eq(thread, lb.c(0)), [&] { lb.store(lb.c(0), counter, 4); });
      return lb.choose(holds, own, [&] {
        SmallVector<Value> zeros(own.size(), lb.zeroF32());
        auto loop =
            scf::ForOp::create(rewriter, loc, lb.c(0), splits, lb.c(1), zeros);
        OpBuilder::InsertionGuard guard(rewriter);
        rewriter.setInsertionPointToStart(loop.getBody());
        Value from = lb.offset(
            lane, lb.mul(lb.zext64(loop.getInductionVar()), partialBytes));
        SmallVector<Value> total(loop.getRegionIterArgs());
        for (size_t i = 0; i < total.size(); i += 4) {
          Value quad =
              loadUncached(lb, lb.offset(from, int64_t(i / 4) * stride));
          for (int64_t k = 0; k < 4; ++k)
            total[i + k] = LLVM::FAddOp::create(rewriter, loc, total[i + k],
                                                lb.extractField(quad, k));
        }
        scf::YieldOp::create(rewriter, loc, total);
        return SmallVector<Value>(loop.getResults());
      });
    });
    rewriter.replaceOpWithMultiple(op, {sum, {isLast}});
    return success();
  }

  /// Four floats from L2: other blocks wrote them, L1 is not coherent.
  static Value loadUncached(LoweringBuilder &lb, Value pointer) {
    Type f32 = lb.f32();
    Type quad = LLVM::LLVMStructType::getLiteral(lb.b.getContext(),
                                                 {f32, f32, f32, f32});
    return LLVM::InlineAsmOp::create(
               lb.b, lb.loc, quad, pointer,
               "ld.global.cg.v4.f32 {$0, $1, $2, $3}, [$4];",
               "=f,=f,=f,=f,l,~{memory}", /*has_side_effects=*/true,
               /*is_align_stack=*/false, LLVM::TailCallKind::None,
               LLVM::AsmDialectAttr::get(lb.b.getContext(),
                                         LLVM::AsmDialect::AD_ATT),
               ArrayAttr())
        .getResult(0);
  }
};

struct LowerReduceCluster : OpConversionPattern<ReduceClusterOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ReduceClusterOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    LoweringBuilder lb{rewriter, loc};
    int64_t threads = op.getThreads(), stride = 16 * threads;
    SmallVector<Value> own(adaptor.getAccumulators());
    Value thread = lb.threadId();
    Value mine = lb.offset(adaptor.getScratch().front(), lb.shl(thread, 4));
    // The cluster is the grid's third dimension.
    Value rank = NVVM::BlockIdZOp::create(rewriter, loc, lb.i32());
    Value isFirst = lb.eq(rank, lb.c(0));
    Value holds = lb.ult(thread, threads);
    Value isNotFirst = lb.xor_(isFirst, lb.constant(rewriter.getI1Type(), 1));

    lb.barrier(); // the block has read all that scratch lies over
    lb.when(lb.and_(holds, isNotFirst),
            [&] { storeQuads(lb, own, mine, stride); });
    // Threads that only copied have left, or leave without waiting: a cluster's
    // barrier is for those that have not.
    synchronize(lb);
    Value reads = lb.and_(holds, isFirst);
    SmallVector<Value> sum = lb.choose(reads, own, [&] {
      SmallVector<Value> total = own;
      // Ranks count the first dimensions of the grid first.
      Value places =
          lb.div(NVVM::ClusterDim::create(rewriter, loc, lb.i32()).getResult(),
                 op.getBlocks());
      for (int64_t block = 1; block < int64_t(op.getBlocks()); ++block) {
        Value there = lb.ofBlock(
            mine, lb.add(lb.blockOfCluster(), lb.mul(places, block)));
        for (size_t i = 0; i < total.size(); i += 4)
          for (auto [k, value] : llvm::enumerate(lb.loadWords(
                   lb.offset(there, int64_t(i / 4) * stride), 4, lb.f32())))
            total[i + k] =
                LLVM::FAddOp::create(rewriter, loc, total[i + k], value);
      }
      return total;
    });
    // The memory that was read must not end with its block.
    synchronize(lb);
    rewriter.replaceOpWithMultiple(op, {sum, {isFirst}});
    return success();
  }

  static void synchronize(LoweringBuilder &lb) {
    NVVM::ClusterArriveOp::create(lb.b, lb.loc, UnitAttr());
    NVVM::ClusterWaitOp::create(lb.b, lb.loc, UnitAttr());
  }
};

struct LowerReduceHalves : OpConversionPattern<ReduceHalvesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ReduceHalvesOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    LoweringBuilder lb{rewriter, loc};
    auto type = cast<VectorType>(op.getAccumulators().getType());
    int64_t threads = op.getThreads(), stride = 16 * threads;
    Value thread = lb.threadId();
    Value mine = lb.offset(adaptor.getScratch().front(), lb.shl(thread, 4));
    Value isFirst =
        lb.eq(NVVM::BlockIdZOp::create(rewriter, loc, lb.i32()), lb.c(0));
    Value holds = lb.ult(thread, threads);
    // Of each unit's tiles the first half is block 0's.
    SmallVector<Value> kept, given;
    int64_t perUnit = type.getDimSize(1) * 4, half = perUnit / 2;
    for (int64_t u = 0; u < type.getDimSize(0); ++u)
      for (int64_t i = 0; i < half; ++i) {
        Value low = adaptor.getAccumulators()[u * perUnit + i];
        Value high = adaptor.getAccumulators()[u * perUnit + half + i];
        kept.push_back(lb.select(isFirst, low, high));
        given.push_back(lb.select(isFirst, high, low));
      }

    lb.barrier(); // the block has read all that scratch lies over
    lb.when(holds, [&] { storeQuads(lb, given, mine, stride); });
    LowerReduceCluster::synchronize(lb);
    SmallVector<Value> sum = lb.choose(holds, kept, [&] {
      // Ranks count the first dimensions of the grid first.
      Value places =
          lb.div(NVVM::ClusterDim::create(rewriter, loc, lb.i32()).getResult(),
                 int64_t(2));
      Value own = lb.blockOfCluster();
      Value there = lb.ofBlock(
          mine, lb.select(isFirst, lb.add(own, places), lb.sub(own, places)));
      SmallVector<Value> total = kept;
      for (size_t i = 0; i < total.size(); i += 4)
        for (auto [k, value] : llvm::enumerate(lb.loadWords(
                 lb.offset(there, int64_t(i / 4) * stride), 4, lb.f32())))
          total[i + k] =
              LLVM::FAddOp::create(rewriter, loc, total[i + k], value);
      return total;
    });
    // The memory that was read must not end with its block.
    LowerReduceCluster::synchronize(lb);
    rewriter.replaceOpWithMultiple(op, {sum});
    return success();
  }
};

struct LowerScaleRows : OpConversionPattern<ScaleRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ScaleRowsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    auto type = cast<VectorType>(op.getAccumulators().getType());
    int64_t units = type.getDimSize(0);
    int64_t perUnit = type.getDimSize(1) * type.getDimSize(2);
    if (op.getTokenRows()) {
      rewriter.replaceOpWithMultiple(op, {scaleColumns(lb, op, adaptor)});
      return success();
    }
    Value feature = adaptor.getFeature().front();
    // Packed scales are padded to whole strips, so a warp that begins inside
    // the matrix may read all of its rows.
    Value strip = lb.lshr(feature, 6);
    Value unit = lb.and_(lb.lshr(feature, 4), 3);
    Value element =
        lb.add(lb.shl(strip, 6),
               lb.add(lb.shl(lb.lshr(lb.laneId(), 2), 3), lb.shl(unit, 1)));
    NumberFormat format = op.getFormat().getFormat();
    int64_t bytes = format.bits / 8, wordsOfUnit = wordsOfScales(format);
    Value pointer = lb.offset(adaptor.getScales().front(),
                              lb.zext64(lb.mul(element, bytes)));
    Value bound = adaptor.getBound().front();
    // Units of one strip are neighbours, the same unit of further strips is 64
    // scales away.
    bool adjacent = op.getUnitStride() == 1;
    SmallVector<SmallVector<Value>> words;
    if (adjacent && bytes > 1) { // accesses as wide as the layout allows
      int64_t count = units * wordsOfUnit;
      SmallVector<Value> all = lb.choose(
          lb.ult(feature, bound), SmallVector<Value>(count, lb.c(0)), [&] {
            SmallVector<Value> loaded;
            for (int64_t at = 0; at < count; at += 4)
              loaded.append(lb.loadWords(lb.offset(pointer, 4 * at),
                                         std::min<int64_t>(count - at, 4),
                                         lb.i32()));
            return loaded;
          });
      for (int64_t u = 0; u < units; ++u)
        words.emplace_back(ArrayRef(all).slice(u * wordsOfUnit, wordsOfUnit));
    }
    for (int64_t u = words.size(); u < units; ++u) {
      int64_t at = adjacent ? 2 * u * bytes : 64 * u * bytes;
      Value first = lb.add(feature, adjacent ? 0 : 64 * u);
      words.push_back(lb.choose(
          lb.ult(first, bound), SmallVector<Value>(wordsOfUnit, lb.c(0)), [&] {
            Value from = lb.offset(pointer, at);
            if (bytes == 1)
              return SmallVector<Value>{lb.zext(lb.load(lb.i16(), from, 2))};
            return lb.loadWords(from, wordsOfUnit, lb.i32());
          }));
    }
    SmallVector<Value> result;
    for (int64_t u = 0; u < units; ++u) {
      auto [low, high] = unpackScales(lb, words[u], format, op.getExponent());
      for (int64_t i = 0; i < perUnit; ++i)
        result.push_back(LLVM::FMulOp::create(
            rewriter, op.getLoc(), adaptor.getAccumulators()[u * perUnit + i],
            i % 4 < 2 ? low : high));
    }
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }

  /// The scale of feature 16 u + 8 h + g of a strip stands at 8 g + 2 u + h: of
  /// tile t = 2 u + h and column g at 8 g + t. A lane's columns 2 i and 2 i + 1
  /// of a strip's 8 tiles are 16 scales side by side.
  static SmallVector<Value> scaleColumns(LoweringBuilder &lb, ScaleRowsOp op,
                                         OneToNOpAdaptor adaptor) {
    auto type = cast<VectorType>(op.getAccumulators().getType());
    int64_t units = type.getDimSize(0), tiles = type.getDimSize(1);
    NumberFormat format = op.getFormat().getFormat();
    int64_t bytes = format.bits / 8, wordsOfStrip = 16 * bytes / 4;
    Value feature = adaptor.getFeature().front();
    Value element = lb.add(feature, lb.shl(lb.and_(lb.laneId(), 3), 4));
    Value pointer = lb.offset(adaptor.getScales().front(),
                              lb.zext64(lb.mul(element, bytes)));
    SmallVector<Value> result(adaptor.getAccumulators());
    for (int64_t strip = 0; strip < tiles / 8; ++strip) {
      Value inside =
          lb.ult(lb.add(feature, 64 * strip), adaptor.getBound().front());
      SmallVector<Value> words =
          lb.choose(inside, SmallVector<Value>(wordsOfStrip, lb.c(0)), [&] {
            SmallVector<Value> loaded;
            for (int64_t at = 0; at < wordsOfStrip; at += 4)
              loaded.append(
                  lb.loadWords(lb.offset(pointer, 64 * bytes * strip + 4 * at),
                               4, lb.i32()));
            return loaded;
          });
      SmallVector<Value> scales;
      for (int64_t i = 0; i < 16; i += 2) {
        SmallVector<Value> pair;
        if (bytes == 4)
          pair = {words[i], words[i + 1]};
        else
          pair = {lb.lshr(words[i * bytes / 4], i * bytes % 4 * 8)};
        auto [first, second] = unpackScales(lb, pair, format, op.getExponent());
        scales.append({first, second});
      }
      for (int64_t u = 0; u < units; ++u)
        for (int64_t t = 0; t < 8; ++t)
          for (int64_t v = 0; v < 4; ++v) {
            Value &sum = result[(u * tiles + 8 * strip + t) * 4 + v];
            sum = LLVM::FMulOp::create(lb.b, lb.loc, sum,
                                       scales[8 * (v % 2) + t]);
          }
    }
    return result;
  }
};

/// A value of 32 bits a column for this lane's columns, two a tile: what
/// `loadAt` gives for the column numbered from the warp's first on.
///
/// Of many columns a warp loads each value once, a lane apiece, and passes it
/// to the lanes that need it. A load for each would come between the stores of
/// the results, which it may not pass: measured on an H200, W8A8 at 8192 x 8192
/// and M = 1024 spent 14 % of its time waiting for them.
SmallVector<Value> loadOfColumns(LoweringBuilder &lb, int64_t tiles,
                                 function_ref<Value(Value)> loadAt) {
  Value lane = lb.laneId(), column = lb.shl(lb.and_(lane, 3), 1);
  SmallVector<Value> result;
  if (tiles < 4) {
    for (int64_t t = 0; t < tiles; ++t)
      for (int64_t i = 0; i < 2; ++i)
        result.push_back(loadAt(lb.add(column, 8 * t + i)));
    return result;
  }
  SmallVector<Value> held; // column 32 i + lane
  for (int64_t i = 0; i < (tiles + 3) / 4; ++i)
    held.push_back(loadAt(lb.add(lane, 32 * i)));
  SmallVector<Value> lanes;
  for (int64_t i = 0; i < 8; ++i)
    lanes.push_back(lb.add(column, 8 * (i / 2) + i % 2));
  for (int64_t i = 0; i < 2 * tiles; ++i)
    result.push_back(NVVM::ShflOp::create(
        lb.b, lb.loc, held[0].getType(), lb.c(-1), held[i / 8], lanes[i % 8],
        lb.c(31), NVVM::ShflKind::idx, UnitAttr()));
  return result;
}

struct LowerScaleOutput : OpConversionPattern<ScaleOutputOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ScaleOutputOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    auto type = cast<VectorType>(op.getAccumulators().getType());
    int64_t units = type.getDimSize(0), tiles = type.getDimSize(1);
    Value pointer = adaptor.getScales().front();
    // Rows and tokens past the end read the last scale: their results are never
    // stored.
    Value last = lb.add(adaptor.getBound().front(), -1);
    auto scaleAt = [&](Value index) {
      Value at = lb.umin(index, last);
      return lb.load(lb.f32(), lb.offset(pointer, lb.zext64(lb.shl(at, 2))), 4);
    };
    Value index = adaptor.getIndex().front(), lane = lb.laneId();
    // By row half and unit, or by column and tile.
    bool ofRows = op.getPer() == (op.getTokenRows() ? "token" : "feature");
    SmallVector<Value> scales;
    if (op.getPer() == "tensor") {
      scales.push_back(lb.load(lb.f32(), pointer, 4));
    } else if (ofRows) {
      Value first = lb.add(index, lb.lshr(lane, 2));
      for (int64_t u = 0; u < units; ++u)
        for (int64_t half = 0; half < 2; ++half)
          scales.push_back(scaleAt(
              lb.add(first, 16 * u * int64_t(op.getUnitStride()) + 8 * half)));
    } else {
      scales = loadOfColumns(lb, tiles, [&](Value column) {
        return scaleAt(lb.add(index, column));
      });
    }
    SmallVector<Value> result;
    for (int64_t u = 0; u < units; ++u)
      for (int64_t t = 0; t < tiles; ++t)
        for (int64_t v = 0; v < 4; ++v) {
          Value scale = op.getPer() == "tensor" ? scales[0]
                        : ofRows                ? scales[2 * u + v / 2]
                                                : scales[2 * t + v % 2];
          result.push_back(LLVM::FMulOp::create(
              rewriter, op.getLoc(),
              adaptor.getAccumulators()[(u * tiles + t) * 4 + v], scale));
        }
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }
};

struct LowerSubtractOffsets : OpConversionPattern<SubtractOffsetsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SubtractOffsetsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    auto type = cast<VectorType>(op.getAccumulators().getType());
    int64_t units = type.getDimSize(0), tiles = type.getDimSize(1);
    Value lane = lb.laneId();
    // Rows and tokens past the end read the last value: their results are never
    // stored.
    auto loadAt = [&](Value pointer, Value index, Value bound, Type element) {
      Value at = lb.umin(index, lb.add(bound, -1));
      return lb.load(element, lb.offset(pointer, lb.zext64(lb.shl(at, 2))), 4);
    };
    // By row half and unit, or by column and tile: -z is the one, the sums are
    // the other.
    auto load = [&](bool ofRows, Value pointer, Value first, Value bound,
                    Type element) {
      if (!ofRows)
        return loadOfColumns(lb, tiles, [&](Value column) {
          return loadAt(pointer, lb.add(first, column), bound, element);
        });
      SmallVector<Value> rows;
      Value firstRow = lb.add(first, lb.lshr(lane, 2));
      for (int64_t u = 0; u < units; ++u)
        for (int64_t half = 0; half < 2; ++half)
          rows.push_back(loadAt(
              pointer,
              lb.add(firstRow, 16 * u * int64_t(op.getUnitStride()) + 8 * half),
              bound, element));
      return rows;
    };
    const bool tokenRows = op.getTokenRows();
    const bool perTensor = op.getPer() == "tensor";
    Value zeroPoints = adaptor.getZeroPoints().front();
    SmallVector<Value> offsets =
        perTensor ? SmallVector<Value>{lb.load(lb.i32(), zeroPoints, 4)}
                  : load(tokenRows, zeroPoints, adaptor.getToken().front(),
                         adaptor.getTokenBound().front(), lb.i32());
    for (Value &zero : offsets)
      zero = LLVM::SIToFPOp::create(rewriter, op.getLoc(), lb.f32(),
                                    lb.sub(lb.c(0), zero));
    SmallVector<Value> sums = load(!tokenRows, adaptor.getSums().front(),
                                   adaptor.getFeature().front(),
                                   adaptor.getFeatureBound().front(), lb.f32());
    SmallVector<Value> result;
    for (int64_t u = 0; u < units; ++u)
      for (int64_t t = 0; t < tiles; ++t)
        for (int64_t v = 0; v < 4; ++v) {
          int64_t row = 2 * u + v / 2, column = 2 * t + v % 2;
          result.push_back(LLVM::FMAOp::create(
              rewriter, op.getLoc(),
              offsets[perTensor   ? 0
                      : tokenRows ? row
                                  : column],
              sums[tokenRows ? column : row],
              adaptor.getAccumulators()[(u * tiles + t) * 4 + v]));
        }
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }
};

struct LowerAddRows : OpConversionPattern<AddRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AddRowsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    auto type = cast<VectorType>(op.getAccumulators().getType());
    int64_t units = type.getDimSize(0), tiles = type.getDimSize(1);
    int64_t perUnit = tiles * type.getDimSize(2);
    // Features past the end read the last bias: their results are never stored.
    Value last = lb.add(adaptor.getBound().front(), -1);
    auto bitsAt = [&](Value feature) -> Value {
      Value at = lb.umin(feature, last);
      return lb.zext(lb.load(
          lb.i16(),
          lb.offset(adaptor.getBias().front(), lb.zext64(lb.shl(at, 1))), 2));
    };
    auto toFloat = [&](Value bits) {
      return unpackScales(lb, bits, op.getFormat().getFormat()).first;
    };
    Value feature = adaptor.getFeature().front();
    SmallVector<Value> result;
    if (op.getTokenRows()) {
      SmallVector<Value> columns = loadOfColumns(lb, tiles, [&](Value column) {
        return bitsAt(lb.add(feature, column));
      });
      for (Value &bias : columns)
        bias = toFloat(bias);
      for (auto [i, sum] : llvm::enumerate(adaptor.getAccumulators()))
        result.push_back(LLVM::FAddOp::create(
            rewriter, op.getLoc(), sum, columns[2 * (i / 4 % tiles) + i % 2]));
      rewriter.replaceOpWithMultiple(op, {result});
      return success();
    }
    Value first = lb.add(feature, lb.lshr(lb.laneId(), 2));
    auto bias = [&](int64_t further) {
      return toFloat(bitsAt(lb.add(first, further)));
    };
    for (int64_t u = 0; u < units; ++u) {
      int64_t row = 16 * u * int64_t(op.getUnitStride());
      Value low = bias(row), high = bias(row + 8);
      for (int64_t i = 0; i < perUnit; ++i)
        result.push_back(LLVM::FAddOp::create(
            rewriter, op.getLoc(), adaptor.getAccumulators()[u * perUnit + i],
            i % 4 < 2 ? low : high));
    }
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }
};

} // namespace

void humming::populateEpilogueLoweringPatterns(const TypeConverter &converter,
                                               RewritePatternSet &patterns) {
  patterns.add<LowerReduceWarps, LowerReduceBlocks, LowerReduceCluster,
               LowerReduceHalves, LowerScaleRows, LowerScaleOutput,
               LowerSubtractOffsets, LowerAddRows>(converter,
                                                   patterns.getContext());
}
