//===- DequantSequences.cpp - What all dequantization sequences share -----===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DequantSequences.h"
#include "Humming/Quant/Packing.h"

using namespace mlir;
using namespace humming;

DequantSequence::DequantSequence(OpBuilder &b, Location loc,
                                 const DequantSpec &spec)
    : b(b), loc(loc), spec(spec), bits(spec.weight.bits) {}

DequantSequence::~DequantSequence() = default;

std::unique_ptr<DequantSequence>
DequantSequence::create(OpBuilder &b, Location loc, const DequantSpec &spec) {
  return spec.operand.bits == 16 ? createSixteenBitSequence(b, loc, spec)
                                 : createNarrowSequence(b, loc, spec);
}

void DequantSequence::beginUnit(ArrayRef<Value> unitWords) {
  words.assign(unitWords.begin(), unitWords.end());
  movedWords.clear();
  resetUnit();
}

SmallVector<DequantSequence::Piece>
DequantSequence::piecesOf(int64_t index) const {
  SmallVector<Piece> pieces;
  for (const PackedPlane &plane : packedPlanes(unsigned(bits))) {
    int64_t width = plane.width;
    int64_t registersPerWord = spec.operand.bits / width;
    // A lane holds as many words of a plane as the plane is wide.
    pieces.push_back({int64_t(plane.lowBit) + index / registersPerWord,
                      index % registersPerWord * width, width, plane.lowBit});
  }
  return pieces;
}

int64_t DequantSequence::lanes(int64_t lane) const {
  int64_t result = 0;
  for (int64_t bit = 0; bit < 32; bit += spec.operand.bits)
    result |= lane << bit;
  return result & 0xffffffff;
}

Value DequantSequence::moved(int64_t i, int64_t by) {
  if (by == 0)
    return words[i];
  Value &value = movedWords[{i, by}];
  if (!value)
    value = by > 0 ? shiftRight(words[i], by) : shiftLeft(words[i], -by);
  return value;
}

Value DequantSequence::codesAt(int64_t index, int64_t at, int64_t flip) {
  Value codes;
  SmallVector<Piece> pieces = piecesOf(index);
  for (const Piece &piece : pieces) {
    int64_t place = at + piece.weight;
    Value bitsOfPlane = mask(moved(piece.word, piece.shift - place),
                             lanes(((int64_t(1) << piece.bits) - 1) << place));
    // The constant goes in with the first plane: (x & mask) ^ flip is one lop3,
    // and so is (y & mask) | that (xor, since flip may have bits of y's).
    if (codes)
      codes = LLVM::XOrOp::create(b, loc, bitsOfPlane, codes);
    else
      codes = flip ? flipBits(bitsOfPlane, flip) : bitsOfPlane;
  }
  return codes;
}

Value DequantSequence::word(int64_t v) {
  return LLVM::ConstantOp::create(b, loc, b.getI32Type(),
                                  b.getI32IntegerAttr(int32_t(v)));
}
Value DequantSequence::shiftRight(Value v, int64_t n) {
  return n == 0 ? v : LLVM::LShrOp::create(b, loc, v, word(n));
}
Value DequantSequence::shiftLeft(Value v, int64_t n) {
  return n == 0 ? v : LLVM::ShlOp::create(b, loc, v, word(n));
}
Value DequantSequence::mask(Value v, int64_t m) {
  return LLVM::AndOp::create(b, loc, v, word(m));
}
Value DequantSequence::merge(Value x, Value y) {
  return LLVM::OrOp::create(b, loc, x, y);
}
Value DequantSequence::flipBits(Value v, int64_t m) {
  return LLVM::XOrOp::create(b, loc, v, word(m));
}
Value DequantSequence::select(Value condition, Value x, Value y) {
  Value difference = LLVM::XOrOp::create(b, loc, x, y);
  return LLVM::XOrOp::create(
      b, loc, LLVM::AndOp::create(b, loc, difference, condition), y);
}
Value DequantSequence::permute(Value low, Value high, Value selector) {
  return NVVM::PermuteOp::create(b, loc, b.getI32Type(), low, high, selector,
                                 NVVM::PermuteMode::DEFAULT);
}
