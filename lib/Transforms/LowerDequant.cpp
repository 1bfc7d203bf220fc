//===- LowerDequant.cpp - Fragment dequantization to bit operations -------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes a fragment apart into registers, in the order of its groups, and asks
// the sequence of the pair of formats for each. SixteenBitSequences.cpp and
// NarrowSequences.cpp have the sequences and how they work.
//
//===----------------------------------------------------------------------===//

#include "DequantSequences.h"
#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Transforms/Passes.h"
#include "Humming/Transforms/Transforms.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

#define DEBUG_TYPE "hquant-lower-dequant"

namespace humming {
#define GEN_PASS_DEF_LOWERDEQUANTPASS
#include "Humming/Transforms/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

struct LowerDequant : OpRewritePattern<DequantOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DequantOp op,
                                PatternRewriter &rewriter) const override {
    DequantSpec spec;
    spec.weight = op.getWeight().getFormat();
    spec.operand = op.getMma().getOperandFormat();
    spec.scale = op.getScale().getFormat();
    if (auto table = op.getTable()) {
      spec.table.emplace();
      llvm::copy(*table, spec.table->values.begin());
    }
    if (op.getZeroPoints())
      spec.zeroPoint = op.getFloatZeroPoints() ? ZeroPointKind::Float
                                               : ZeroPointKind::Integer;
    spec.hasScales = bool(op.getScales());
    spec.nativeConvert = op.getNativeConvert();
    std::unique_ptr<DequantSequence> sequence =
        DequantSequence::create(rewriter, op.getLoc(), spec);
    if (!sequence)
      return rewriter.notifyMatchFailure(op, "expected a pair of formats that "
                                             "has a sequence");
    build(op, *sequence, rewriter);
    return success();
  }

  static void build(DequantOp op, DequantSequence &sequence,
                    PatternRewriter &rewriter) {
    Location loc = op.getLoc();
    auto extract = [&](Value v, int64_t i, int64_t j) -> Value {
      return vector::ExtractOp::create(rewriter, loc, v,
                                       ArrayRef<int64_t>{i, j});
    };
    auto type = cast<VectorType>(op.getFragment().getType());
    auto wordType = cast<VectorType>(op.getWords().getType());
    // The groups are of the whole slab, the fragment may be of some steps.
    int64_t firstStep = op.getFirstStep();
    int64_t steps = 64 / op.getMma().getStepDepth();
    int64_t groups = 1;
    for (Value v : {op.getScales(), op.getZeroPoints()})
      if (v)
        groups = cast<VectorType>(v.getType()).getDimSize(1);
    SmallVector<Value> registers;
    for (int64_t u = 0; u < type.getDimSize(0); ++u) {
      SmallVector<Value> words;
      for (int64_t w = 0; w < wordType.getDimSize(1); ++w)
        words.push_back(extract(op.getWords(), u, w));
      sequence.beginUnit(words);
      int64_t group = -1;
      for (int64_t s = firstStep; s < firstStep + type.getDimSize(1); ++s) {
        if (s * groups / steps != group) {
          group = s * groups / steps;
          sequence.beginGroup(
              op.getScales() ? extract(op.getScales(), u, group) : Value(),
              op.getZeroPoints() ? extract(op.getZeroPoints(), u, group)
                                 : Value());
        }
        for (int64_t r = 0; r < type.getDimSize(2); ++r)
          registers.push_back(sequence.buildRegister(4 * s + r));
      }
    }
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, registers);
  }
};

struct LowerDequantPass
    : humming::impl::LowerDequantPassBase<LowerDequantPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateLowerDequantPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    getOperation()->walk([&](DequantOp op) {
      op.emitOpError("has no sequence from ")
          << op.getWeight().getFormat().str() << " to "
          << op.getMma().getOperandFormat().str()
          << "; rule P4 of docs/HQuant.md lists the pairs that have one";
      signalPassFailure();
    });
  }
};

} // namespace

void humming::populateLowerDequantPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerDequant>(patterns.getContext());
}
