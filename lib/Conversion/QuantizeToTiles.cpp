//===- QuantizeToTiles.cpp - Configured quantize to a block's program -----===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block takes `rows` rows of `groups` groups (one: the whole row). Thread t
// belongs to segment t / lanes; segments are ordered rows outermost:
//
//   row = rows * blockIdx.x + t / lanes / groups
//   group = groups * blockIdx.y + t / lanes % groups
//
// The first lanes * chunks * 8 values of a segment stay in registers between
// the search for the range and the conversion. Longer rows go on in loops,
// which read the rest a second time. A block beyond the matrix does all of it
// without a load or a store, so that shuffles and barriers are met by all
// threads.
//
//===----------------------------------------------------------------------===//

#include "Humming/Conversion/Passes.h"
#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

/// Arguments of every quantize kernel, in order.
enum QuantizeArgument {
  ArgX,
  ArgCodes,
  ArgScales,
  ArgZeroPoints,
  ArgM,
  ArgK,
  ArgLdx,
  ArgLdq,
  NumArguments
};

class QuantizeProgram {
public:
  QuantizeProgram(OpBuilder &b, QuantizeOp op, gpu::GPUModuleOp module)
      : b(b), loc(op.getLoc()), op(op), module(module),
        problem(op.getProblem()),
        config(op.getQuantizeConfigAttr().getConfig()) {}

  gpu::GPUFuncOp build(StringRef name);

private:
  void createFunction(StringRef name);
  void createCoordinates();
  Value load(Value column);
  void store(Value values, Value column, Value inverse, Value zeroPoint);
  void createStatic();
  void createDynamic();
  void storeScales(Value scale, Value zeroPoint);

  Value arg(QuantizeArgument a) { return function.getArgument(a); }
  Value constant(int64_t v) {
    return arith::ConstantIntOp::create(b, loc, v, 32);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value mul(Value x, int64_t y) {
    return y == 1 ? x : arith::MulIOp::create(b, loc, x, constant(y));
  }
  Value div(Value x, int64_t y) {
    return y == 1 ? x : arith::DivUIOp::create(b, loc, x, constant(y));
  }
  Value rem(Value x, int64_t y) {
    return y == 1 ? constant(0)
                  : arith::RemUIOp::create(b, loc, x, constant(y));
  }
  FormatAttr format(NumberFormat f) {
    return FormatAttr::get(b.getContext(), f);
  }
  Type i32() { return b.getI32Type(); }

  bool isStatic() const { return problem.scale == ActivationScaleKind::Tensor; }
  int64_t group() const { return problem.codes.group; }
  /// Values of a segment that the registers hold.
  int64_t span() const { return int64_t(config.lanes) * config.chunks * 8; }
  /// Whether a segment may be longer than that.
  bool mayBeLonger() const { return group() == 0 || group() > span(); }
  /// Runs `body` for the first column of every pass from `first` on.
  SmallVector<Value> forPasses(
      int64_t first, ValueRange init,
      llvm::function_ref<SmallVector<Value>(Value column, ValueRange carried)>
          body);

  OpBuilder &b;
  Location loc;
  QuantizeOp op;
  gpu::GPUModuleOp module;
  QuantizeProblem problem;
  QuantizeConfig config;
  gpu::GPUFuncOp function;
  Value row, groupIndex, begin, end; ///< of the thread's segment
  Value scratch;
};

} // namespace

gpu::GPUFuncOp QuantizeProgram::build(StringRef name) {
  createFunction(name);
  createCoordinates();
  if (isStatic())
    createStatic();
  else
    createDynamic();
  gpu::ReturnOp::create(b, loc);
  return function;
}

void QuantizeProgram::createFunction(StringRef name) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext(), 1);
  SmallVector<Type> arguments(NumArguments, i32());
  for (int i = ArgX; i <= ArgZeroPoints; ++i)
    arguments[i] = pointer;
  SmallVector<Type> buffers;
  if (!isStatic()) // two words a warp
    buffers.push_back(
        MemRefType::get({256}, b.getI8Type(), AffineMap(),
                        gpu::AddressSpaceAttr::get(
                            b.getContext(), gpu::AddressSpace::Workgroup)));
  b.setInsertionPointToEnd(module.getBody());
  function = gpu::GPUFuncOp::create(b, loc, name,
                                    b.getFunctionType(arguments, {}), buffers);
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function.setKnownBlockSizeAttr(
      b.getDenseI32ArrayAttr({config.numThreads(), 1, 1}));
  function->setAttr("hquant.quantize_config", op.getQuantizeConfigAttr());
  if (!isStatic())
    scratch = function.getWorkgroupAttributions().front();
  b.setInsertionPointToStart(&function.getBody().front());
}

void QuantizeProgram::createCoordinates() {
  auto id = [&](auto tag, gpu::Dimension dimension) -> Value {
    using Op = decltype(tag);
    return arith::IndexCastOp::create(b, loc, i32(),
                                      Op::create(b, loc, dimension));
  };
  Value segment = div(id(gpu::ThreadIdOp(), gpu::Dimension::x), config.lanes);
  row = add(mul(id(gpu::BlockIdOp(), gpu::Dimension::x), config.rows),
            div(segment, config.groups));
  if (group() == 0) {
    begin = constant(0);
    end = arg(ArgK);
    return;
  }
  groupIndex = add(mul(id(gpu::BlockIdOp(), gpu::Dimension::y), config.groups),
                   rem(segment, config.groups));
  begin = mul(groupIndex, group());
  end =
      arith::MinUIOp::create(b, loc, add(begin, constant(group())), arg(ArgK));
}

Value QuantizeProgram::load(Value column) {
  bool gated = problem.gate != GateKind::None;
  return LoadSegmentOp::create(
      b, loc, VectorType::get({config.chunks, 8}, b.getF32Type()), arg(ArgX),
      row, column, arg(ArgM), end, arg(ArgLdx), gated ? arg(ArgK) : Value(),
      format(problem.input), config.lanes, 2 * problem.kDivisor,
      gated ? b.getStringAttr(stringify(problem.gate)) : StringAttr());
}

void QuantizeProgram::store(Value values, Value column, Value inverse,
                            Value zeroPoint) {
  int64_t granule =
      std::max(1, problem.kDivisor * problem.codes.format.bits / 8);
  StoreSegmentOp::create(b, loc, values, inverse, zeroPoint, arg(ArgCodes), row,
                         column, arg(ArgM), end, arg(ArgLdq),
                         format(problem.codes.format), config.lanes, granule);
}

SmallVector<Value> QuantizeProgram::forPasses(
    int64_t first, ValueRange init,
    llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  Value length = arith::SubIOp::create(b, loc, end, begin);
  Value passes = arith::CeilDivUIOp::create(b, loc, length, constant(span()));
  // Groups past the end of the row have no values.
  if (group() != 0) {
    Value isThere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                          begin, arg(ArgK));
    passes = arith::SelectOp::create(b, loc, isThere, passes, constant(0));
  }
  auto loop =
      scf::ForOp::create(b, loc, constant(first), passes, constant(1), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value column = add(begin, mul(loop.getInductionVar(), span()));
  SmallVector<Value> results = body(column, loop.getRegionIterArgs());
  if (!init.empty())
    scf::YieldOp::create(b, loc, results);
  return SmallVector<Value>(loop.getResults());
}

void QuantizeProgram::createStatic() {
  bool asymmetric = problem.codes.zeroPoint;
  auto scale = StaticScaleOp::create(
      b, loc, b.getF32Type(), asymmetric ? i32() : Type(), arg(ArgScales),
      asymmetric ? arg(ArgZeroPoints) : Value());
  forPasses(0, {}, [&](Value column, ValueRange) {
    store(load(column), column, scale.getInverse(), scale.getZeroPoint());
    return SmallVector<Value>();
  });
}

void QuantizeProgram::createDynamic() {
  bool asymmetric = problem.codes.zeroPoint;
  Value zero = constant(0);
  auto extend = [&](Value values, ValueRange range) {
    auto extended = SegmentRangeOp::create(
        b, loc, i32(), asymmetric ? i32() : Type(), values, range[0],
        asymmetric ? range[1] : Value());
    return SmallVector<Value>(extended.getResults());
  };
  Value kept = load(begin);
  SmallVector<Value> range =
      extend(kept, SmallVector<Value>(asymmetric ? 2 : 1, zero));
  if (mayBeLonger())
    range = forPasses(1, range, [&](Value column, ValueRange carried) {
      return extend(load(column), carried);
    });
  auto scale = SegmentScaleOp::create(
      b, loc, i32(), b.getF32Type(), asymmetric ? i32() : Type(), range[0],
      asymmetric ? range[1] : Value(), scratch, format(problem.codes.format),
      format(problem.codes.scaleFormat), config.lanes);
  store(kept, begin, scale.getInverse(), scale.getZeroPoint());
  if (mayBeLonger())
    forPasses(1, {}, [&](Value column, ValueRange) {
      store(load(column), column, scale.getInverse(), scale.getZeroPoint());
      return SmallVector<Value>();
    });
  storeScales(scale.getScale(), scale.getZeroPoint());
}

void QuantizeProgram::storeScales(Value scale, Value zeroPoint) {
  Value inside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, row, arg(ArgM));
  Type i64 = b.getI64Type();
  Value index = arith::ExtUIOp::create(b, loc, i64, row);
  if (group() != 0) {
    // [groups, tokens up to a multiple of 16]
    Value isThere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                          begin, arg(ArgK));
    inside = arith::AndIOp::create(b, loc, inside, isThere);
    Value stride = mul(div(add(arg(ArgM), constant(15)), 16), 16);
    Value before = arith::MulIOp::create(
        b, loc, arith::ExtUIOp::create(b, loc, i64, groupIndex),
        arith::ExtUIOp::create(b, loc, i64, stride));
    index = arith::AddIOp::create(b, loc, before, index);
  }
  StoreScaleOp::create(b, loc, scale, arg(ArgScales), index, inside,
                       config.lanes, problem.codes.scaleFormat.bits);
  if (zeroPoint)
    StoreScaleOp::create(b, loc, zeroPoint, arg(ArgZeroPoints), index, inside,
                         config.lanes, /*element_bits=*/32);
}

FailureOr<gpu::GPUFuncOp> humming::buildTileProgram(OpBuilder &builder,
                                                    QuantizeOp op,
                                                    gpu::GPUModuleOp module,
                                                    StringRef name) {
  if (!op.getQuantizeConfigAttr())
    return op.emitOpError("expected a quantize_config; run "
                          "hquant-select-lowering-config first");
  return QuantizeProgram(builder, op, module).build(name);
}
