//===- MapMma.cpp - Fragment multiplication to instructions -----*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every pair of unit and token tile becomes one step of the MMA kind a K step.
// The order is K step outermost, so that neighbouring instructions write
// different accumulators and none waits for the one before it.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Transforms/Passes.h"
#include "Humming/Transforms/Transforms.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

#define DEBUG_TYPE "hquant-map-mma"

namespace humming {
#define GEN_PASS_DEF_MAPMMAPASS
#include "Humming/Transforms/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

struct MapMma : OpRewritePattern<MmaOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MmaOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<VectorType>(op.getAccumulators().getType());
    int64_t units = type.getDimSize(0), tiles = type.getDimSize(1);
    MmaAttrInterface kind = op.getKind();
    auto registers = [&](Value v, int64_t i, int64_t step, int64_t count) {
      SmallVector<Value> result;
      for (int64_t r = 0; r < count; ++r)
        result.push_back(vector::ExtractOp::create(
            rewriter, loc, v, ArrayRef<int64_t>{i, step, r}));
      return result;
    };
    SmallVector<SmallVector<Value>> acc;
    for (int64_t u = 0; u < units; ++u)
      for (int64_t t = 0; t < tiles; ++t)
        acc.push_back(
            registers(op.getAccumulators(), u, t, kind.getNumAccumulators()));

    for (int64_t s = op.getFirstStep(); s < int64_t(op.getLastStep()); ++s) {
      SmallVector<SmallVector<Value>> b;
      for (int64_t t = 0; t < tiles; ++t)
        b.push_back(registers(op.getB(), t, s, kind.getNumBRegisters()));
      for (int64_t u = 0; u < units; ++u) {
        SmallVector<Value> a =
            registers(op.getA(), u, s, kind.getNumARegisters());
        for (int64_t t = 0; t < tiles; ++t) {
          SmallVector<Value> &c = acc[u * tiles + t];
          c = kind.buildStep(rewriter, loc, a, b[t], c, op.getPart(),
                             op.getParts());
        }
      }
    }
    SmallVector<Value> elements;
    for (const SmallVector<Value> &c : acc)
      elements.append(c);
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, elements);
    return success();
  }
};

struct MapMmaPass : humming::impl::MapMmaPassBase<MapMmaPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMapMmaPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

void humming::populateMapMmaPatterns(RewritePatternSet &patterns) {
  patterns.add<MapMma>(patterns.getContext());
}
