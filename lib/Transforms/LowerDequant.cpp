//===- LowerDequant.cpp - Fragment dequantization to bit operations -------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The packed layout puts the codes of one MMA register at the same bit of both
// 16-bit halves of a word, so a mask leaves two codes where a float's mantissa is.
// OR-ing the exponent of 1024 (f16) or 128 (bf16), whose last mantissa bit is worth
// 1, makes them 1024 + q or 128 + q without a conversion; subtracting 1024 + z is
// exact and leaves q - z.
//
// Worked example, u4 to f16, one word 0xHGFE_DCBA (nibbles, A lowest). Register r
// has its two codes at bits 4 r and 16 + 4 r:
//
//   r = 0   w        & 0x000f000f | 0x6400_6400 = (1024 + A, 1024 + E)
//           - (1024 + z)                        = (A - z, E - z)
//   r = 1   w        & 0x00f000f0 | 0x6400_6400 = (1024 + 16 B, 1024 + 16 F)
//           * 1/16 - (64 + z)                   = (B - z, F - z)     one fma
//   r = 2   w >> 8, then as r = 0;   r = 3   w >> 8, then as r = 1
//
// That is 2.5 instructions a register. bf16 has 7 mantissa bits, too few for the
// multiplied form of r = 1, so each register takes a shift. Wider codes that are
// split into planes are put together by a shift, a mask and an OR a plane.
//
//===----------------------------------------------------------------------===//

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

/// Where the codes of one MMA register lie in a lane's words: plane by plane.
struct CodePiece {
  int64_t word;   ///< index of the word
  int64_t shift;  ///< bit of the first code in it
  int64_t bits;   ///< width of the plane
  int64_t weight; ///< position of the plane's bits in the code
};

/// Pieces of register `index` (= 4 step + r) for `bits`-wide codes under 16-bit
/// activations (docs/HQuant.md, packed layout).
SmallVector<CodePiece> piecesOf(int64_t index, int64_t bits) {
  SmallVector<CodePiece> pieces;
  int64_t firstWord = 0, weight = 0;
  for (int64_t p : {8, 4, 2, 1}) {
    if (!(bits & p))
      continue;
    int64_t registersPerWord = 16 / p;
    pieces.push_back({firstWord + index / registersPerWord,
                      index % registersPerWord * p, p, weight});
    firstWord += p;
    weight += p;
  }
  return pieces;
}

/// Emits the dequantization of one hquant.dequant.
class DequantBuilder {
public:
  DequantBuilder(PatternRewriter &b, DequantOp op)
      : b(b), loc(op.getLoc()), op(op),
        operand(op.getMma().getOperandFormat()),
        bits(op.getWeight().getFormat().bits),
        pair(VectorType::get(2, operand.isF16() ? Type(b.getF16Type())
                                                : Type(b.getBF16Type()))) {}

  void run() {
    auto type = cast<VectorType>(op.getFragment().getType());
    int64_t units = type.getDimSize(0), steps = type.getDimSize(1);
    int64_t groups = 1;
    for (Value v : {op.getScales(), op.getZeroPoints()})
      if (v)
        groups = cast<VectorType>(v.getType()).getDimSize(1);
    SmallVector<Value> registers;
    for (int64_t u = 0; u < units; ++u) {
      words.clear();
      for (int64_t w = 0; w < bits; ++w)
        words.push_back(extract(op.getWords(), {u, w}));
      for (int64_t s = 0; s < steps; ++s) {
        int64_t group = s * groups / steps;
        if (s == 0 || group != (s - 1) * groups / steps)
          loadGroup(u, group);
        for (int64_t r = 0; r < 4; ++r)
          registers.push_back(buildRegister(4 * s + r, /*row=*/r & 1));
      }
    }
    b.replaceOpWithNewOp<vector::FromElementsOp>(op, type, registers);
  }

private:
  // The magic exponent: its last mantissa bit is worth 1.
  double magicValue() const { return operand.isF16() ? 1024 : 128; }
  int64_t magicBits() const { return operand.isF16() ? 0x6400 : 0x4300; }

  Value extract(Value v, ArrayRef<int64_t> position) {
    return vector::ExtractOp::create(b, loc, v, position);
  }
  Value word(int64_t v) {
    return LLVM::ConstantOp::create(b, loc, b.getI32Type(),
                                    b.getI32IntegerAttr(int32_t(v)));
  }
  Value splat(double v) {
    return LLVM::ConstantOp::create(
        b, loc, pair,
        DenseElementsAttr::get(
            pair, b.getFloatAttr(pair.getElementType(), v)));
  }
  Value toPair(Value v) { return LLVM::BitcastOp::create(b, loc, pair, v); }
  Value toWord(Value v) {
    return LLVM::BitcastOp::create(b, loc, b.getI32Type(), v);
  }
  Value shiftRight(Value v, int64_t n) {
    return n == 0 ? v : LLVM::LShrOp::create(b, loc, v, word(n));
  }
  Value shiftLeft(Value v, int64_t n) {
    return n == 0 ? v : LLVM::ShlOp::create(b, loc, v, word(n));
  }
  Value mask(Value v, int64_t m) {
    return LLVM::AndOp::create(b, loc, v, word(m));
  }
  Value merge(Value x, Value y) { return LLVM::OrOp::create(b, loc, x, y); }
  Value fma(Value x, Value y, Value z) {
    return LLVM::FMAOp::create(b, loc, x, y, z);
  }
  Value negate(Value v) { return LLVM::FNegOp::create(b, loc, v); }
  /// x - y and x * y, exactly rounded once. bf16 has no packed add and multiply
  /// before sm_90, an fma everywhere.
  Value subtract(Value x, Value minusY) {
    return operand.isF16()
               ? LLVM::FAddOp::create(b, loc, x, minusY).getResult()
               : fma(x, splat(1.0), minusY);
  }
  Value multiply(Value x, Value y) {
    return operand.isF16() ? LLVM::FMulOp::create(b, loc, x, y).getResult()
                           : fma(x, y, splat(-0.0));
  }

  /// Both halves of a register set to half `row` of `value`.
  Value broadcastHalf(Value value, int64_t row) {
    return NVVM::PermuteOp::create(b, loc, b.getI32Type(), value, value,
                                   word(row ? 0x3232 : 0x1010),
                                   NVVM::PermuteMode::DEFAULT);
  }

  /// What the registers of a unit subtract and multiply by, for one group.
  void loadGroup(int64_t unit, int64_t group) {
    for (int64_t row = 0; row < 2; ++row) {
      if (op.getScales())
        scale[row] = toPair(
            broadcastHalf(extract(op.getScales(), {unit, group}), row));
      if (op.getFloatZeroPoints()) {
        loadFloatZeroPoint(extract(op.getZeroPoints(), {unit, group}), row);
        continue;
      }
      if (!op.getZeroPoints()) {
        double z = op.getWeight().getFormat().kind == NumberFormat::Kind::Unsigned
                       ? double(int64_t(1) << (bits - 1))
                       : 0.0;
        minusOffset[row] = splat(-(magicValue() + z));
        minusOffset16[row] = splat(-(magicValue() / 16 + z));
        continue;
      }
      // Byte `row` of the word is z; beside the magic exponent it is magic + z.
      Value z = extract(op.getZeroPoints(), {unit, group});
      Value magic = toPair(NVVM::PermuteOp::create(
          b, loc, b.getI32Type(), z, word(magicBits() >> 8),
          word(row ? 0x4141 : 0x4040), NVVM::PermuteMode::DEFAULT));
      minusOffset[row] = negate(magic);
      // magic / 16 + z = (magic + z) - 15/16 magic, exact.
      if (multipliesHighCodes())
        minusOffset16[row] =
            LLVM::FAddOp::create(b, loc, minusOffset[row],
                                 splat(magicValue() * 15 / 16));
    }
  }

  /// Float zero points are subtracted after the code is exact. In the operand's
  /// own format that rounds once; else the difference is taken in f32.
  void loadFloatZeroPoint(Value z, int64_t row) {
    minusOffset[row] = splat(-magicValue());
    minusOffset16[row] = splat(-magicValue() / 16);
    if (op.getScale().getFormat() == operand) {
      minusFloatZero[row] = negate(toPair(broadcastHalf(z, row)));
      return;
    }
    Value half = LLVM::TruncOp::create(b, loc, b.getI16Type(),
                                       shiftRight(z, 16 * row));
    Type format = op.getScale().getFormat().isF16() ? Type(b.getF16Type())
                                                    : Type(b.getBF16Type());
    minusFloatZero[row] = negate(LLVM::FPExtOp::create(
        b, loc, b.getF32Type(), LLVM::BitcastOp::create(b, loc, format, half)));
  }

  /// Codes at bit 4 of each half need no shift if 1024 + 16 q is exact.
  bool multipliesHighCodes() const { return operand.isF16() && bits == 4; }

  Value buildRegister(int64_t index, int64_t row) {
    SmallVector<CodePiece> pieces = piecesOf(index, bits);
    CodePiece first = pieces.front();
    int64_t halfMask = ((int64_t(1) << first.bits) - 1) * 0x00010001;
    Value magic = word(magicBits() * 0x00010001);
    Value value;
    if (multipliesHighCodes() && first.shift % 8 == 4) {
      Value codes = mask(shiftRight(words[first.word], first.shift - 4),
                         halfMask << 4);
      value = fma(toPair(merge(codes, magic)), splat(1.0 / 16),
                  minusOffset16[row]);
    } else {
      Value codes = mask(shiftRight(words[first.word], first.shift), halfMask);
      for (const CodePiece &piece : ArrayRef(pieces).drop_front())
        codes = merge(codes, place(piece));
      value = subtract(toPair(merge(codes, magic)), minusOffset[row]);
    }
    if (op.getFloatZeroPoints())
      value = subtractFloatZero(value, row);
    if (op.getScales())
      value = multiply(value, scale[row]);
    return toWord(value);
  }

  /// A further plane's bits at their place in the code.
  Value place(const CodePiece &piece) {
    int64_t m = (((int64_t(1) << piece.bits) - 1) << piece.weight) * 0x00010001;
    int64_t move = piece.weight - piece.shift;
    Value moved = move >= 0 ? shiftLeft(words[piece.word], move)
                            : shiftRight(words[piece.word], -move);
    return mask(moved, m);
  }

  Value subtractFloatZero(Value value, int64_t row) {
    if (op.getScale().getFormat() == operand)
      return subtract(value, minusFloatZero[row]);
    SmallVector<Value> halves;
    for (int64_t i = 0; i < 2; ++i) {
      Value at = word(i);
      Value wide = LLVM::FPExtOp::create(
          b, loc, b.getF32Type(),
          LLVM::ExtractElementOp::create(b, loc, value, at));
      Value difference =
          LLVM::FAddOp::create(b, loc, wide, minusFloatZero[row]);
      value = LLVM::InsertElementOp::create(
          b, loc, value,
          LLVM::FPTruncOp::create(b, loc, pair.getElementType(), difference),
          at);
    }
    return value;
  }

  PatternRewriter &b;
  Location loc;
  DequantOp op;
  NumberFormat operand;
  int64_t bits;
  VectorType pair;
  SmallVector<Value> words;
  // Per row half: g (0) and g + 8 (1).
  Value scale[2], minusOffset[2], minusOffset16[2], minusFloatZero[2];
};

struct LowerDequant : OpRewritePattern<DequantOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DequantOp op,
                                PatternRewriter &rewriter) const override {
    NumberFormat weight = op.getWeight().getFormat();
    if (weight.kind != NumberFormat::Kind::Unsigned)
      return rewriter.notifyMatchFailure(op, "expected unsigned codes");
    // 128 + q needs q below 128.
    if (op.getMma().getOperandFormat().isBF16() && weight.bits > 7)
      return rewriter.notifyMatchFailure(
          op, "expected at most 7 bits for a bf16 operand");
    DequantBuilder(rewriter, op).run();
    return success();
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
          << "; expected unsigned codes of at most "
          << (op.getMma().getOperandFormat().isBF16() ? 7 : 8) << " bits";
      signalPassFailure();
    });
  }
};

} // namespace

void humming::populateLowerDequantPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerDequant>(patterns.getContext());
}
