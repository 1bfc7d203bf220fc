//===- LayoutLowering.cpp - Packing and gathering to loads and stores -----===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// *Packing* is the CPU's packUnit (lib/Quant/Packing.cpp) with a lane for a
// turn of its loop: gather the 32 / A codes of each of the lane's A registers,
// a code at the bottom of each A-bit field, then cut every plane out of all
// registers and put the words of a plane together. The offsets, masks and
// shifts are constants; the word a lane writes is the word it will read.
//
//   A = 16, b = 6: codes 0x2B, 0x15 make the register 0x0015002B; plane 4 takes
//   0x0005000B of it, plane 2 takes (>> 4) & 0x00030003 = 0x00010002.
//
// *Gathering* moves 16 bytes a lane: elements by their indices, one load each.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Quant/Packing.h"
#include "LoweringBuilder.h"
#include "LoweringPatterns.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

/// `width` ones at the bottom of each field of `fieldBits` bits.
int64_t fieldMask(int64_t fieldBits, int64_t width) {
  int64_t mask = 0;
  for (int64_t bit = 0; bit < 32; bit += fieldBits)
    mask |= ((int64_t(1) << width) - 1) << bit;
  return mask;
}

struct LowerPackUnit : OpConversionPattern<PackUnitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PackUnitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    int64_t a = op.getActivationBits(), bits = op.getWeightBits();
    Value lane = lb.laneId();
    Value g = lb.lshr(lane, 2), t = lb.and_(lane, 3);
    SmallVector<Value> registers;
    for (int64_t R = 0; R < a; ++R) {
      int64_t step = R / 4, r = R % 4;
      Value row = lb.add(lb.add(adaptor.getRow(), g), 8 * (r & 1));
      Value column = lb.add(lb.add(adaptor.getColumn(), lb.mul(t, 32 / a)),
                            256 / a * step + 128 / a * (r >> 1));
      registers.push_back(loadRegister(lb, op, adaptor, row, column));
    }
    Value base =
        lb.offset(adaptor.getDest(), lb.mul(adaptor.getUnit(), 128 * bits));
    for (const PackedPlane &plane : packedPlanes(unsigned(bits))) {
      int64_t p = plane.width, perWord = a / p;
      SmallVector<Value> words;
      for (int64_t w = 0; w < p; ++w) {
        Value word;
        for (int64_t c = 0; c < perWord; ++c) {
          Value part =
              lb.and_(lb.lshr(registers[w * perWord + c], plane.lowBit),
                      fieldMask(a, p));
          part = lb.shl(part, c * p);
          word = word ? lb.or_(word, part) : part;
        }
        words.push_back(word);
      }
      // [32 lanes][p words], of 8 bits [2 chunks][32 lanes][4 words].
      int64_t run = std::min<int64_t>(p, 4);
      Value pointer = lb.offset(base, lb.mul(lane, 4 * run));
      for (int64_t chunk = 0; chunk < p / run; ++chunk)
        store(lb, ArrayRef(words).slice(chunk * run, run),
              lb.offset(pointer,
                        int64_t(plane.wordOffset) * 4 + chunk * 128 * run));
    }
    rewriter.eraseOp(op);
    return success();
  }

  static void store(LoweringBuilder &lb, ArrayRef<Value> words, Value pointer) {
    lb.store(words.size() == 1 ? words[0] : lb.pack(words), pointer,
             4 * words.size());
  }

  /// 32 / A codes of a row, the lowest bits of each A-bit field.
  static Value loadRegister(LoweringBuilder &lb, PackUnitOp op,
                            OpAdaptor adaptor, Value row, Value column) {
    int64_t a = op.getActivationBits(), codes = 32 / a;
    int64_t granule = std::min<int64_t>(op.getGranule(), codes);
    int64_t mask = (int64_t(1) << op.getWeightBits()) - 1;
    Value line = lb.mul(lb.zext64(row), lb.zext64(adaptor.getStride()));
    Value pointer =
        lb.offset(adaptor.getSource(), lb.add(line, lb.zext64(column)));
    Value rowInside = lb.ult(row, adaptor.getRowBound());
    Value result;
    for (int64_t i = 0; i < codes; i += granule) {
      Value inside = lb.and_(
          rowInside, lb.ult(lb.add(column, i), adaptor.getColumnBound()));
      Type type = lb.b.getIntegerType(unsigned(8 * granule));
      Value piece = lb.choose(inside, {lb.c(0)}, [&] {
        Value loaded = lb.load(type, lb.offset(pointer, i), unsigned(granule));
        return SmallVector<Value>{granule == 4 ? loaded : lb.zext(loaded)};
      })[0];
      for (int64_t j = 0; j < granule; ++j) {
        Value code = lb.and_(lb.lshr(piece, 8 * j), mask);
        code = lb.shl(code, a * (i + j));
        result = result ? lb.or_(result, code) : code;
      }
    }
    return result;
  }
};

struct LowerGatherRow : OpConversionPattern<GatherRowOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(GatherRowOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LoweringBuilder lb{rewriter, op.getLoc()};
    int64_t bytes = op.getElementBits() / 8, elements = 16 / bytes;
    int64_t granule = op.getGranule();
    auto lineOf = [&](Value pointer, Value stride) {
      return lb.offset(pointer, lb.mul(lb.mul(lb.zext64(adaptor.getRow()),
                                              lb.zext64(stride)),
                                       bytes));
    };
    Value source = lineOf(adaptor.getSource(), adaptor.getSourceStride());
    Value column = adaptor.getColumn();
    Value dest = lb.offset(lineOf(adaptor.getDest(), adaptor.getDestStride()),
                           lb.mul(lb.zext64(column), bytes));
    Value order = lb.offset(adaptor.getOrder(), lb.mul(lb.zext64(column), 4));
    Value rowInside = lb.ult(adaptor.getRow(), adaptor.getRowBound());
    Type type = bytes == 1 ? Type(rewriter.getI8Type()) : lb.i16();
    int64_t perPiece = granule / bytes;
    for (int64_t first = 0; first < elements; first += perPiece) {
      Value inside = lb.and_(
          rowInside, lb.ult(lb.add(column, first), adaptor.getColumnBound()));
      lb.when(inside, [&] {
        SmallVector<Value> values;
        for (int64_t i = first; i < first + perPiece; ++i) {
          Value index = lb.load(lb.i32(), lb.offset(order, 4 * i), 4);
          // -1 is past every bound.
          Value there = lb.ult(index, adaptor.getSourceBound());
          values.push_back(lb.choose(there, {lb.constant(type, 0)}, [&] {
            Value at = lb.mul(lb.zext64(index), bytes);
            return SmallVector<Value>{
                lb.load(type, lb.offset(source, at), unsigned(bytes))};
          })[0]);
        }
        lb.store(values.size() == 1 ? values[0] : lb.pack(values),
                 lb.offset(dest, first * bytes), unsigned(granule));
      });
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void humming::populateLayoutLoweringPatterns(const TypeConverter &converter,
                                             RewritePatternSet &patterns) {
  patterns.add<LowerPackUnit, LowerGatherRow>(converter, patterns.getContext());
}
