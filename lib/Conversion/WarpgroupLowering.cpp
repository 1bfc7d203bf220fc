//===- WarpgroupLowering.cpp - Asynchronous MMA of a warpgroup --*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The activation tile (and that of plain weights, with features for tokens; the
// MMA has one of the two as A, the other as B) is stored as panels of 128 bytes
// of K by all tokens, 16-byte chunks XOR-ed with the row modulo 8: exactly the
// K-major layout with 128-byte swizzle of a wgmma matrix descriptor (PTX ISA,
// "Matrix Descriptor Format"):
//
//   bits  0-13  start address / 16        bits 16-29  leading offset (unused:
//   1) bits 32-45  stride offset / 16        bits 62-63  1 = 128-byte swizzle
//               = 1024 / 16: 8 rows of 128 bytes
//
// A step is 32 bytes further inside the row: start address + 2. A slab of 64 is
// a panel of 16-bit or half a panel of 8-bit operands.
// Panels start at multiples of 1024 bytes, so the base offset is 0.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "LoweringBuilder.h"
#include "LoweringPatterns.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

/// Start of a tile, stage included.
Value stageBase(LoweringBuilder &lb, Value converted, Value tile, Value stage) {
  if (!stage)
    return converted;
  int64_t bytes = cast<MemRefType>(tile.getType()).getDimSize(1);
  return lb.offset(converted, lb.mul(stage, bytes));
}

/// The descriptor of rows from `row` of slab `slab` of a tile of `rows` rows,
/// and further ones of it.
class TileDescriptor {
public:
  TileDescriptor(LoweringBuilder &lb, Value base, Value row, Value slab,
                 int64_t rows, int64_t operandBits)
      : lb(lb) {
    int64_t slabsOfPanel = 16 / operandBits;
    Value bytes =
        lb.add(lb.mul(lb.div(slab, slabsOfPanel), rows * 128), lb.shl(row, 7));
    if (slabsOfPanel != 1)
      bytes =
          lb.add(bytes, lb.mul(lb.rem(slab, slabsOfPanel), 128 / slabsOfPanel));
    Value address = LLVM::PtrToIntOp::create(lb.b, lb.loc, lb.i32(),
                                             lb.offset(base, bytes));
    // 18 bits of address; the leading offset is 1 by convention.
    low = lb.or_(lb.lshr(lb.and_(address, 0x3ffff), 4), lb.c(1 << 16));
  }

  /// `rowsFurther` rows and `step` steps of 32 bytes on.
  Value at(int64_t rowsFurther, int64_t step) {
    constexpr int64_t high = (int64_t(1) << 62) | (int64_t(1024 / 16) << 32);
    Value start = lb.add(low, (rowsFurther * 128 + step * 32) / 16);
    return lb.or_(lb.zext64(start), lb.constant(lb.i64(), high));
  }

private:
  LoweringBuilder &lb;
  Value low;
};

struct LowerWarpgroupMmaTiles : OpConversionPattern<WarpgroupMmaTilesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WarpgroupMmaTilesOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    LoweringBuilder lb{rewriter, loc};
    auto type = cast<VectorType>(op.getAccumulators().getType());
    WarpgroupMmaAttr kind = op.getKind();
    int64_t bits = kind.getOperand().bits;
    Value stage = op.getStage() ? adaptor.getStage().front() : Value();
    Value slab = adaptor.getSlab().front();
    // The four warps of a warpgroup name the same 64 rows.
    Value row = lb.shl(lb.and_(adaptor.getUnit().front(), ~int64_t(3)), 4);
    TileDescriptor a(lb,
                     stageBase(lb, adaptor.getA().front(), op.getA(), stage),
                     row, slab, op.getARows(), bits);
    TileDescriptor b(lb,
                     stageBase(lb, adaptor.getB().front(), op.getB(), stage),
                     adaptor.getColumn().front(), slab, op.getBRows(), bits);

    NVVM::WgmmaFenceAlignedOp::create(rewriter, loc);
    int64_t perUnit = type.getDimSize(1) * type.getDimSize(2);
    SmallVector<Value> sums(adaptor.getAccumulators());
    bool zero = op.getZero();
    for (int64_t s = op.getFirstStep(); s < int64_t(op.getLastStep()); ++s) {
      Value columns = b.at(0, s);
      for (int64_t u = 0; u < type.getDimSize(0); ++u) {
        auto c = MutableArrayRef<Value>(sums).slice(u * perUnit, perUnit);
        SmallVector<Value> d =
            kind.buildStep(rewriter, loc, a.at(64 * u, s), columns,
                           zero ? ValueRange() : ValueRange(c), /*part=*/0,
                           /*parts=*/1);
        llvm::copy(d, c.begin());
      }
      zero = false;
    }
    NVVM::WgmmaGroupSyncAlignedOp::create(rewriter, loc);
    rewriter.replaceOpWithMultiple(op, {sums});
    return success();
  }
};

struct LowerWarpgroupMma : OpConversionPattern<WarpgroupMmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WarpgroupMmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    LoweringBuilder lb{rewriter, loc};
    auto type = cast<VectorType>(op.getAccumulators().getType());
    WarpgroupMmaAttr kind = op.getKind();
    Value base =
        stageBase(lb, adaptor.getTile().front(), op.getTile(),
                  op.getStage() ? adaptor.getStage().front() : Value());
    TileDescriptor tokens(lb, base, adaptor.getToken().front(),
                          adaptor.getSlab().front(), op.getTileRows(),
                          kind.getOperand().bits);
    Value descriptor = tokens.at(0, op.getStep());

    // Zeros have to be in their registers before the fence: a constant would be
    // moved there after it.
    auto makeZero = [&]() -> Value {
      return LLVM::InlineAsmOp::create(
                 rewriter, loc, lb.i32(), ValueRange(), "mov.b32 $0, 0;", "=r",
                 /*has_side_effects=*/true, /*is_align_stack=*/false,
                 LLVM::TailCallKind::None,
                 LLVM::AsmDialectAttr::get(rewriter.getContext(),
                                           LLVM::AsmDialect::AD_ATT),
                 ArrayAttr())
          .getResult(0);
    };
    SmallVector<Value> a;
    for (int64_t u = 0; u < type.getDimSize(0); ++u)
      a.append(keepPart(rewriter, loc, adaptor.getA().slice(4 * u, 4),
                        op.getPart(), op.getParts(), makeZero));

    NVVM::WgmmaFenceAlignedOp::create(rewriter, loc);
    int64_t perUnit = type.getDimSize(1) * type.getDimSize(2);
    SmallVector<Value> result;
    for (int64_t u = 0; u < type.getDimSize(0); ++u) {
      ValueRange c =
          op.getZero() ? ValueRange()
                       : adaptor.getAccumulators().slice(u * perUnit, perUnit);
      result.append(kind.buildStep(rewriter, loc,
                                   ArrayRef<Value>(a).slice(4 * u, 4),
                                   descriptor, c, op.getPart(), op.getParts()));
    }
    NVVM::WgmmaGroupSyncAlignedOp::create(rewriter, loc);
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }
};

struct LowerWarpgroupWait : OpConversionPattern<WarpgroupWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WarpgroupWaitOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    LoweringBuilder lb{rewriter, loc};
    bool isRead = llvm::any_of(op->getUsers(), [](Operation *user) {
      return !isa<WarpgroupMmaOp, WarpgroupMmaTilesOp, WarpgroupWaitOp>(user);
    });
    if (op.getPending() > 0 && !isRead) {
      NVVM::WgmmaWaitGroupSyncOp::create(rewriter, loc, op.getPending());
      rewriter.replaceOpWithMultiple(op, {adaptor.getAccumulators()});
      return success();
    }
    // The accumulators pass through the wait, so that nothing reads them
    // before.
    SmallVector<Value> values(adaptor.getAccumulators());
    std::string constraints;
    Type element = values.front().getType();
    for (size_t i = 0; i < values.size(); ++i)
      constraints += element.isF32() ? "=f," : "=r,";
    for (size_t i = 0; i < values.size(); ++i)
      constraints += std::to_string(i) + ",";
    constraints += "~{memory}";
    Type structType = LLVM::LLVMStructType::getLiteral(
        rewriter.getContext(), SmallVector<Type>(values.size(), element));
    Value waited = LLVM::InlineAsmOp::create(
                       rewriter, loc, structType, values,
                       "wgmma.wait_group.sync.aligned " +
                           std::to_string(int64_t(op.getPending())) + ";",
                       constraints,
                       /*has_side_effects=*/true, /*is_align_stack=*/false,
                       LLVM::TailCallKind::None,
                       LLVM::AsmDialectAttr::get(rewriter.getContext(),
                                                 LLVM::AsmDialect::AD_ATT),
                       ArrayAttr())
                       .getResult(0);
    for (auto [i, value] : llvm::enumerate(values))
      value = lb.extractField(waited, i);
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

struct LowerFenceAsync : OpConversionPattern<FenceAsyncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FenceAsyncOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    MLIRContext *context = rewriter.getContext();
    rewriter.replaceOpWithNewOp<NVVM::FenceProxyOp>(
        op, NVVM::ProxyKindAttr::get(context, NVVM::ProxyKind::async_shared),
        NVVM::SharedSpaceAttr::get(context, NVVM::SharedSpace::shared_cta));
    return success();
  }
};

} // namespace

void humming::populateWarpgroupLoweringPatterns(const TypeConverter &converter,
                                                RewritePatternSet &patterns) {
  patterns.add<LowerWarpgroupMma, LowerWarpgroupMmaTiles, LowerWarpgroupWait,
               LowerFenceAsync>(converter, patterns.getContext());
}
