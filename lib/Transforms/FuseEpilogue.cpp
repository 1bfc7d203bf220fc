//===- FuseEpilogue.cpp - Bias and rounding into hquant.matmul --*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel holds its sums in f32 registers, so a bias and a rounding that
// follow cost nothing there and a pass over memory anywhere else. Worked
// example:
//
//   %c = hquant.matmul %x, %w ...  -> tensor<?x64xf32>
//   %b = linalg.broadcast (arith.extf %bias : tensor<64xf16>)   over the tokens
//   %s = arith.addf %c, %b         -> step 1: %c' = matmul with bias(extf
//   %bias) %r = arith.truncf %s : f16     -> step 2: %c" = matmul with
//   bias(%bias) in f16
//
// A step replaces the matmul's only user by a matmul at the user's place, and
// is tried again on the new one.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Transforms/Passes.h"
#include "Humming/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"

#define DEBUG_TYPE "hquant-fuse-epilogue"

namespace humming {
#define GEN_PASS_DEF_FUSEEPILOGUEPASS
#include "Humming/Transforms/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

//===----------------------------------------------------------------------===//
// What follows a matmul
//===----------------------------------------------------------------------===//

namespace {
/// A broadcast of `source` (1-D) over the tokens. With `extended`, the values
/// were brought to that element type after it.
struct Broadcast {
  Value source;
  Type extended;
};
} // namespace

/// Whether `op` has parallel loops (m, n), one body block and one result that
/// it writes at (m, n).
static bool isElementwise2D(linalg::GenericOp op) {
  return op.getNumLoops() == 2 && op.getNumParallelLoops() == 2 &&
         op.hasPureTensorSemantics() && op.getNumDpsInits() == 1 &&
         op.getIndexingMapsArray().back().isIdentity();
}

static AffineMap getColumnMap(MLIRContext *context) {
  return AffineMap::get(2, 0, {getAffineDimExpr(1, context)}, context);
}

/// The 1-D tensor that `value` repeats for every token, or nothing.
static std::optional<Broadcast> findBroadcast(Value value) {
  Type extended;
  if (auto extend = value.getDefiningOp<arith::ExtFOp>()) {
    extended = getElementTypeOrSelf(extend.getType());
    value = extend.getIn();
  }
  if (auto op = value.getDefiningOp<linalg::BroadcastOp>()) {
    auto type = dyn_cast<RankedTensorType>(op.getInput().getType());
    if (type && type.getRank() == 1 &&
        op.getDimensions() == ArrayRef<int64_t>{0})
      return Broadcast{op.getInput(), extended};
    return std::nullopt;
  }
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || !isElementwise2D(op) || op.getNumDpsInputs() != 1 ||
      op.getIndexingMapsArray()[0] != getColumnMap(op.getContext()))
    return std::nullopt;
  Block *body = op.getBody();
  auto yield = cast<linalg::YieldOp>(body->getTerminator());
  if (&body->front() != yield.getOperation() ||
      yield.getOperand(0) != body->getArgument(0))
    return std::nullopt;
  return Broadcast{op.getInputs()[0], extended};
}

namespace {
/// An addition to a matmul's result.
struct Addition {
  /// The other summand; null if it is no broadcast over the tokens.
  std::optional<Broadcast> bias;
};
} // namespace

/// `user` as an addition to `result`, or nothing if it is none.
static std::optional<Addition> findAddition(Operation *user, Value result) {
  auto other = [&](Value a, Value b) -> std::optional<Addition> {
    if (a == b)
      return Addition{std::nullopt};
    return Addition{findBroadcast(a == result ? b : a)};
  };
  if (auto add = dyn_cast<arith::AddFOp>(user))
    return other(add.getLhs(), add.getRhs());
  if (auto add = dyn_cast<linalg::AddOp>(user)) {
    // As its third operand the result is overwritten.
    if (!add.hasPureTensorSemantics() ||
        !llvm::is_contained(add.getInputs(), result))
      return std::nullopt;
    return other(add.getInputs()[0], add.getInputs()[1]);
  }
  auto generic = dyn_cast<linalg::GenericOp>(user);
  if (!generic || !isElementwise2D(generic) || generic.getNumDpsInputs() != 2)
    return std::nullopt;
  // One addf of the two inputs, the matmul's read at (m, n).
  Block *body = generic.getBody();
  auto add = dyn_cast<arith::AddFOp>(body->front());
  auto yield = cast<linalg::YieldOp>(body->getTerminator());
  Value x = body->getArgument(0), y = body->getArgument(1);
  if (!add || add->getNextNode() != yield.getOperation() ||
      yield.getOperand(0) != add.getResult() ||
      !((add.getLhs() == x && add.getRhs() == y) ||
        (add.getLhs() == y && add.getRhs() == x)))
    return std::nullopt;
  unsigned index = generic.getInputs()[0] == result ? 0 : 1;
  SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
  if (generic.getInputs()[index] != result || !maps[index].isIdentity())
    return std::nullopt;
  Value summand = generic.getInputs()[1 - index];
  if (maps[1 - index] == getColumnMap(generic.getContext()))
    return Addition{Broadcast{summand, Type()}};
  if (maps[1 - index].isIdentity())
    return other(result, summand);
  return Addition{std::nullopt};
}

static bool isSixteenBitFloat(Type type) {
  return type.isF16() || type.isBF16();
}

//===----------------------------------------------------------------------===//
// The steps
//===----------------------------------------------------------------------===//

/// Replaces `user`, the only use of `op`, by a matmul of the given result type
/// and bias.
static MatmulOp replaceUser(RewriterBase &rewriter, MatmulOp op,
                            Operation *user, Type type, Value bias) {
  rewriter.setInsertionPoint(user);
  auto fused = MatmulOp::create(
      rewriter, rewriter.getFusedLoc({op.getLoc(), user->getLoc()}), type,
      op.getActivations(), op.getWeights(), op.getScales(), op.getZeroPoints(),
      bias, op.getGlobalScales(), op.getActivationScales(),
      op.getActivationZeroPoints(), op.getWeightSums(), op.getQuantTypeAttr(),
      op.getLoweringConfigAttr(), op.getActivationScaleAttr(),
      op.getActivationGroupAttr(), op.getAccumulateAttr(),
      op.getScaleRowsAttr());
  fused->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  rewriter.replaceOp(user, fused);
  rewriter.eraseOp(op);
  return fused;
}

FailureOr<MatmulOp> humming::fuseEpilogue(RewriterBase &rewriter, MatmulOp op) {
  auto miss = [&](const Twine &why) {
    remark::missed(
        op.getLoc(),
        remark::RemarkOpts::name("FuseEpilogue").category("HummingMissed"))
        << remark::reason("{0}", why.str());
    return rewriter.notifyMatchFailure(op, why);
  };
  // The first user that could be taken in.
  Operation *user = nullptr;
  std::optional<Addition> addition;
  for (Operation *candidate : op->getUsers()) {
    addition = findAddition(candidate, op.getResult());
    if (addition || isa<arith::TruncFOp>(candidate)) {
      user = candidate;
      break;
    }
  }
  if (!user)
    return rewriter.notifyMatchFailure(
        op, "expected an addition or a rounding after it");
  if (!op->hasOneUse())
    return miss("expected one use of the result, got " +
                Twine(std::distance(op->use_begin(), op->use_end())));
  if (user->getBlock() != op->getBlock())
    return miss("expected the use of the result in the matmul's block");

  auto type = cast<RankedTensorType>(op.getResult().getType());
  if (addition) {
    if (op.getBias())
      return miss("expected a matmul without bias before an addition");
    if (!addition->bias)
      return miss("expected an addition of a vector that is broadcast over the "
                  "tokens");
    Value bias = addition->bias->source;
    auto biasType = dyn_cast<RankedTensorType>(bias.getType());
    Type element = addition->bias->extended;
    if (!biasType || biasType.getRank() != 1 ||
        (element ? element : biasType.getElementType()) !=
            type.getElementType() ||
        user->getResult(0).getType() != type)
      return miss("expected a bias of the result's type");
    if (element) {
      rewriter.setInsertionPoint(user);
      bias = arith::ExtFOp::create(rewriter, user->getLoc(),
                                   biasType.clone(element), bias);
    }
    return replaceUser(rewriter, op, user, type, bias);
  }

  auto round = cast<arith::TruncFOp>(user);
  Type rounded = round.getType();
  Type element = getElementTypeOrSelf(rounded);
  if (!type.getElementType().isF32() || !isSixteenBitFloat(element))
    return miss("expected a rounding from f32 to f16 or bf16");
  if (round.getRoundingmode() &&
      *round.getRoundingmode() != arith::RoundingMode::to_nearest_even)
    return miss("expected a rounding to nearest even");
  Value bias = op.getBias();
  if (bias) {
    auto extend = bias.getDefiningOp<arith::ExtFOp>();
    if (!extend || getElementTypeOrSelf(extend.getIn().getType()) != element)
      return miss("expected a bias that was extended from the type that the "
                  "result is rounded to");
    bias = extend.getIn();
  }
  return replaceUser(rewriter, op, user, rounded, bias);
}

namespace {
struct FuseEpiloguePass
    : humming::impl::FuseEpiloguePassBase<FuseEpiloguePass> {
  using FuseEpiloguePassBase::FuseEpiloguePassBase;

  void runOnOperation() override {
    SmallVector<MatmulOp> work;
    getOperation()->walk([&](MatmulOp op) { work.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (MatmulOp op : work) {
      FailureOr<MatmulOp> fused = fuseEpilogue(rewriter, op);
      while (succeeded(fused)) {
        ++numFused;
        fused = fuseEpilogue(rewriter, *fused);
      }
    }
  }
};
} // namespace
