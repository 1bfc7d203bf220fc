//===- WarpgroupLowering.cpp - Asynchronous MMA of a warpgroup --*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The activation tile is stored as panels of 128 bytes of K by all tokens,
// 16-byte chunks XOR-ed with the row modulo 8: exactly the K-major layout with
// 128-byte swizzle of a wgmma matrix descriptor (PTX ISA, "Matrix Descriptor
// Format"):
//
//   bits  0-13  start address / 16        bits 16-29  leading offset (unused:
//   1) bits 32-45  stride offset / 16        bits 62-63  1 = 128-byte swizzle
//               = 1024 / 16: 8 rows of 128 bytes
//
// A step of 16 elements is 32 bytes further inside the row: start address + 2.
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

struct LowerWarpgroupMma : OpConversionPattern<WarpgroupMmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WarpgroupMmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    LoweringBuilder lb{rewriter, loc};
    auto type = cast<VectorType>(op.getAccumulators().getType());
    WarpgroupMmaAttr kind = op.getKind();
    Value base = adaptor.getTile().front();
    if (op.getStage()) {
      int64_t bytes = cast<MemRefType>(op.getTile().getType()).getDimSize(1);
      base = lb.offset(base, lb.mul(adaptor.getStage().front(), bytes));
    }
    Value bytes = lb.add(
        lb.mul(adaptor.getSlab().front(), int64_t(op.getTileRows()) * 128),
        lb.shl(adaptor.getToken().front(), 7));
    Value address = LLVM::PtrToIntOp::create(rewriter, loc, lb.i32(),
                                             lb.offset(base, bytes));
    int64_t stepBytes = kind.getStepDepth() * kind.getOperand().bits / 8;
    // 18 bits of address; the leading offset is 1 by convention.
    Value low = lb.or_(lb.lshr(lb.and_(address, 0x3ffff), 4), lb.c(1 << 16));
    low = lb.add(low, int64_t(op.getStep()) * stepBytes / 16);
    constexpr int64_t high = (int64_t(1) << 62) | (int64_t(1024 / 16) << 32);
    Value descriptor = lb.or_(lb.zext64(low), lb.constant(lb.i64(), high));

    NVVM::WgmmaFenceAlignedOp::create(rewriter, loc);
    int64_t perUnit = type.getDimSize(1) * type.getDimSize(2);
    SmallVector<Value> result;
    for (int64_t u = 0; u < type.getDimSize(0); ++u) {
      ValueRange c =
          op.getZero() ? ValueRange()
                       : adaptor.getAccumulators().slice(u * perUnit, perUnit);
      result.append(kind.buildStep(
          rewriter, loc, adaptor.getA().slice(4 * u, 4), descriptor, c));
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
    if (op.getPending() > 0) {
      NVVM::WgmmaWaitGroupSyncOp::create(rewriter, loc, op.getPending());
      rewriter.replaceOpWithMultiple(op, {adaptor.getAccumulators()});
      return success();
    }
    // The accumulators pass through the wait, so that nothing reads them
    // before.
    SmallVector<Value> values(adaptor.getAccumulators());
    std::string constraints;
    for (size_t i = 0; i < values.size(); ++i)
      constraints += "=f,";
    for (size_t i = 0; i < values.size(); ++i)
      constraints += std::to_string(i) + ",";
    constraints += "~{memory}";
    Type structType = LLVM::LLVMStructType::getLiteral(
        rewriter.getContext(), SmallVector<Type>(values.size(), lb.f32()));
    Value waited = LLVM::InlineAsmOp::create(
                       rewriter, loc, structType, values,
                       "wgmma.wait_group.sync.aligned 0;", constraints,
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
  patterns.add<LowerWarpgroupMma, LowerWarpgroupWait, LowerFenceAsync>(
      converter, patterns.getContext());
}
