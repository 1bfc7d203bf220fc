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
    // Groups shorter than a step: each half or quarter of it has its own.
    int64_t parts = std::max<int64_t>(1, groups / steps);
    Value isUpper; // the lane's values lie in the upper half of a half
    if (parts == 4) {
      Type i32 = rewriter.getI32Type();
      auto constant = [&](int32_t value) -> Value {
        return LLVM::ConstantOp::create(rewriter, loc, i32,
                                        rewriter.getI32IntegerAttr(value));
      };
      Value lane = NVVM::LaneIdOp::create(rewriter, loc, i32);
      isUpper = LLVM::ICmpOp::create(
          rewriter, loc, LLVM::ICmpPredicate::ne,
          LLVM::AndOp::create(rewriter, loc, lane, constant(2)), constant(0));
    }
    auto valueOf = [&](Value v, int64_t u, int64_t group) -> Value {
      if (!v)
        return {};
      Value word = extract(v, u, group);
      if (parts == 4)
        word = LLVM::SelectOp::create(rewriter, loc, isUpper,
                                      extract(v, u, group + 1), word);
      return word;
    };
    SmallVector<Value> registers;
    for (int64_t u = 0; u < type.getDimSize(0); ++u) {
      SmallVector<Value> words;
      for (int64_t w = 0; w < wordType.getDimSize(1); ++w)
        words.push_back(extract(op.getWords(), u, w));
      sequence.beginUnit(words);
      int64_t group = -1;
      for (int64_t s = firstStep; s < firstStep + type.getDimSize(1); ++s) {
        for (int64_t r = 0; r < type.getDimSize(2); ++r) {
          // Registers 2 and 3 hold the second half of a step's K.
          int64_t half = parts == 1 ? 0 : (r >> 1) * (parts / 2);
          if (int64_t next = s * groups / steps + half; next != group) {
            group = next;
            sequence.beginGroup(valueOf(op.getScales(), u, group),
                                valueOf(op.getZeroPoints(), u, group));
          }
          registers.push_back(sequence.buildRegister(4 * s + r));
        }
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
