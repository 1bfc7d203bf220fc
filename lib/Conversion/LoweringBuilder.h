//===- LoweringBuilder.h - Short spellings of llvm and nvvm ops -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowering a copy or a fragment load is address arithmetic, most of it with
// constants. This builder keeps it readable: one short method an op, i32 unless
// said otherwise, and the identities x + 0, x * 1, x / 1 are not emitted. LLVM
// does the rest (power-of-two division, hoisting, sharing).
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_LIB_CONVERSION_LOWERINGBUILDER_H
#define HUMMING_LIB_CONVERSION_LOWERINGBUILDER_H

#include "Humming/Quant/NumberFormat.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <cmath>

namespace humming {

/// Of a kernel with producer warps: the number of its other threads.
constexpr llvm::StringLiteral kConsumersAttr = "hquant.consumers";
/// Barriers of a part of the block; barrier 0 is the whole block's.
enum NamedBarrier {
  BarrierOfConsumers = 1,
  BarrierOfProducers = 2,
  BarrierOfTurns = 3, ///< and 4
};

/// Short spellings; see the head of the file.
struct LoweringBuilder {
  mlir::OpBuilder &b;
  mlir::Location loc;

  using Value = mlir::Value;
  using Type = mlir::Type;

  Type i16() { return b.getI16Type(); }
  Type i32() { return b.getI32Type(); }
  Type i64() { return b.getI64Type(); }
  Type f32() { return b.getF32Type(); }
  mlir::VectorType vector(int64_t n, Type element) {
    return mlir::VectorType::get(n, element);
  }

  Value c(int64_t v) { return constant(i32(), v); }
  Value constant(Type type, int64_t v) {
    return mlir::LLVM::ConstantOp::create(b, loc, type,
                                          b.getIntegerAttr(type, v));
  }
  Value zeroF32() {
    return mlir::LLVM::ConstantOp::create(b, loc, f32(), b.getF32FloatAttr(0));
  }

  /// 2^n in f32, n from -126 to 127.
  Value powerOfTwo(int64_t n) {
    return mlir::LLVM::ConstantOp::create(
        b, loc, f32(), b.getF32FloatAttr(float(std::ldexp(1.0, int(n)))));
  }

  Value add(Value x, Value y) {
    return mlir::LLVM::AddOp::create(b, loc, x, y);
  }
  Value add(Value x, int64_t y) {
    return y == 0 ? x : add(x, constant(x.getType(), y));
  }
  Value sub(Value x, Value y) {
    return mlir::LLVM::SubOp::create(b, loc, x, y);
  }
  Value mul(Value x, Value y) {
    return mlir::LLVM::MulOp::create(b, loc, x, y);
  }
  Value mul(Value x, int64_t y) {
    return y == 1 ? x : mul(x, constant(x.getType(), y));
  }
  Value div(Value x, int64_t y) {
    return y == 1 ? x
                  : mlir::LLVM::UDivOp::create(b, loc, x,
                                               constant(x.getType(), y));
  }
  Value rem(Value x, int64_t y) {
    return mlir::LLVM::URemOp::create(b, loc, x, constant(x.getType(), y));
  }
  Value and_(Value x, int64_t mask) {
    return mlir::LLVM::AndOp::create(b, loc, x, constant(x.getType(), mask));
  }
  Value and_(Value x, Value y) {
    return mlir::LLVM::AndOp::create(b, loc, x, y);
  }
  Value or_(Value x, Value y) { return mlir::LLVM::OrOp::create(b, loc, x, y); }
  Value xor_(Value x, Value y) {
    return mlir::LLVM::XOrOp::create(b, loc, x, y);
  }
  Value shl(Value x, int64_t n) {
    return n == 0
               ? x
               : mlir::LLVM::ShlOp::create(b, loc, x, constant(x.getType(), n));
  }
  Value lshr(Value x, int64_t n) {
    return n == 0 ? x
                  : mlir::LLVM::LShrOp::create(b, loc, x,
                                               constant(x.getType(), n));
  }
  Value shl(Value x, Value n) {
    return mlir::LLVM::ShlOp::create(b, loc, x, n);
  }
  Value zext64(Value x) { return mlir::LLVM::ZExtOp::create(b, loc, i64(), x); }
  Value zext(Value x) { return mlir::LLVM::ZExtOp::create(b, loc, i32(), x); }
  Value trunc(Value x, Type type) {
    return mlir::LLVM::TruncOp::create(b, loc, type, x);
  }
  Value bitcast(Value x, Type type) {
    return mlir::LLVM::BitcastOp::create(b, loc, type, x);
  }
  /// Unsigned comparisons.
  Value ult(Value x, Value y) {
    return mlir::LLVM::ICmpOp::create(b, loc, mlir::LLVM::ICmpPredicate::ult, x,
                                      y);
  }
  Value ult(Value x, int64_t y) { return ult(x, constant(x.getType(), y)); }
  Value eq(Value x, Value y) {
    return mlir::LLVM::ICmpOp::create(b, loc, mlir::LLVM::ICmpPredicate::eq, x,
                                      y);
  }
  Value umin(Value x, Value y) {
    return mlir::LLVM::UMinOp::create(b, loc, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return mlir::LLVM::SelectOp::create(b, loc, condition, x, y);
  }

  /// `pointer` plus a byte offset (i32 or i64).
  Value offset(Value pointer, Value bytes) {
    return mlir::LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(),
                                     pointer, mlir::ValueRange{bytes});
  }
  Value offset(Value pointer, int64_t bytes) {
    return bytes == 0 ? pointer
                      : mlir::LLVM::GEPOp::create(
                            b, loc, pointer.getType(), b.getI8Type(), pointer,
                            llvm::ArrayRef<mlir::LLVM::GEPArg>{int32_t(bytes)});
  }
  Value load(Type type, Value pointer, unsigned alignment) {
    return mlir::LLVM::LoadOp::create(b, loc, type, pointer, alignment);
  }
  void store(Value value, Value pointer, unsigned alignment) {
    mlir::LLVM::StoreOp::create(b, loc, value, pointer, alignment);
  }
  Value extractElement(Value v, int64_t i) {
    return mlir::LLVM::ExtractElementOp::create(b, loc, v, c(i));
  }
  Value extractField(Value v, int64_t i) {
    return mlir::LLVM::ExtractValueOp::create(b, loc, v, i);
  }
  /// A vector of `values`, which share one type.
  Value pack(llvm::ArrayRef<Value> values) {
    Value v = mlir::LLVM::PoisonOp::create(
        b, loc, vector(values.size(), values[0].getType()));
    for (auto [i, value] : llvm::enumerate(values))
      v = mlir::LLVM::InsertElementOp::create(b, loc, v, value, c(i));
    return v;
  }
  /// Loads `n` consecutive 32-bit words as one access.
  llvm::SmallVector<Value> loadWords(Value pointer, int64_t n, Type element) {
    if (n == 1)
      return {load(element, pointer, 4)};
    Value v = load(vector(n, element), pointer, 4 * n);
    llvm::SmallVector<Value> words;
    for (int64_t i = 0; i < n; ++i)
      words.push_back(extractElement(v, i));
    return words;
  }

  Value threadId() { return mlir::NVVM::ThreadIdXOp::create(b, loc, i32()); }
  Value laneId() { return and_(threadId(), 31); }
  /// `value`, an i32, of the lane whose number differs in the bits of `mask`.
  Value exchange(Value value, int64_t mask) {
    return mlir::NVVM::ShflOp::create(b, loc, i32(), c(-1), value, c(mask),
                                      c(31), mlir::NVVM::ShflKind::bfly,
                                      mlir::UnitAttr());
  }
  /// Rank of this block in its cluster.
  Value blockOfCluster() {
    return mlir::NVVM::ClusterId::create(b, loc, i32());
  }
  /// Rank of the first of the two blocks that copy together: they are
  /// neighbours in the first dimension of the cluster that is not 1.
  Value firstBlockOfMulticast() { return and_(blockOfCluster(), ~int64_t(1)); }
  /// The place of workgroup memory `pointer` in the block of rank `rank`.
  Value ofBlock(Value pointer, Value rank) {
    return mlir::NVVM::MapaOp::create(
        b, loc,
        mlir::LLVM::LLVMPointerType::get(
            b.getContext(),
            unsigned(mlir::NVVM::NVVMMemorySpace::SharedCluster)),
        pointer, rank);
  }
  /// Of the whole block, or of its consumers where it has producer warps.
  void barrier() {
    auto function = llvm::dyn_cast_or_null<mlir::LLVM::LLVMFuncOp>(
        b.getInsertionBlock()->getParentOp());
    for (mlir::Operation *op = b.getInsertionBlock()->getParentOp();
         op && !function; op = op->getParentOp())
      function = llvm::dyn_cast<mlir::LLVM::LLVMFuncOp>(op);
    auto consumers =
        function ? function->getAttrOfType<mlir::IntegerAttr>(kConsumersAttr)
                 : mlir::IntegerAttr();
    if (consumers)
      barrier(BarrierOfConsumers, consumers.getInt());
    else
      mlir::NVVM::Barrier0Op::create(b, loc);
  }
  void barrier(NamedBarrier id, int64_t threads) {
    mlir::NVVM::BarrierOp::create(b, loc, mlir::TypeRange(), c(id), c(threads),
                                  {}, Value());
  }
  /// Orders memory accesses of this thread before and after it, device-wide.
  void fence() {
    mlir::LLVM::FenceOp::create(b, loc, mlir::LLVM::AtomicOrdering::acq_rel,
                                "device");
  }

  /// Runs `body` where `condition` holds.
  void when(Value condition, llvm::function_ref<void()> body) {
    auto op = mlir::scf::IfOp::create(b, loc, condition, /*withElse=*/false);
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.thenBlock());
    body();
  }
  /// `body()` where `condition` holds, `otherwise` elsewhere.
  llvm::SmallVector<Value>
  choose(Value condition, llvm::ArrayRef<Value> otherwise,
         llvm::function_ref<llvm::SmallVector<Value>()> body) {
    auto op = mlir::scf::IfOp::create(
        b, loc, mlir::ValueRange(otherwise).getTypes(), condition,
        /*addThenBlock=*/true, /*addElseBlock=*/true);
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.thenBlock());
    mlir::scf::YieldOp::create(b, loc, body());
    b.setInsertionPointToStart(op.elseBlock());
    mlir::scf::YieldOp::create(b, loc, otherwise);
    return llvm::SmallVector<Value>(op.getResults());
  }
};

/// The scales of rows g and g + 8 in f32, times 2^exponent, out of a word of
/// two 16-bit or two 8-bit scales or out of two words.
std::pair<mlir::Value, mlir::Value>
unpackScales(LoweringBuilder &lb, llvm::ArrayRef<mlir::Value> words,
             const NumberFormat &format, int64_t exponent = 0);
/// Registers of the scales of rows g and g + 8.
inline int64_t wordsOfScales(const NumberFormat &format) {
  return format.bits == 32 ? 2 : 1;
}

} // namespace humming

#endif // HUMMING_LIB_CONVERSION_LOWERINGBUILDER_H
