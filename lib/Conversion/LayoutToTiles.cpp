//===- LayoutToTiles.cpp - Pack and gather to a block's program -----------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of a pack kernel makes one tile of 64 rows by 64 columns, a warp a
// unit: blockIdx.x is the strip, blockIdx.y the slab. A block of a gather
// kernel makes 16 bytes a thread of one row: blockIdx.x is the row.
//
//===----------------------------------------------------------------------===//

#include "Humming/Conversion/Passes.h"
#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Target/Layout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#define DEBUG_TYPE "convert-hquant-layout-to-tiles"

namespace humming {
#define GEN_PASS_DEF_CONVERTHQUANTLAYOUTTOTILESPASS
#include "Humming/Conversion/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

/// A kernel of `pointers` pointers, then i32 arguments, with its body open.
class LayoutKernel {
public:
  LayoutKernel(OpBuilder &b, Location loc, gpu::GPUModuleOp module,
               StringRef name, int pointers, int sizes, int32_t threads)
      : b(b), loc(loc) {
    Type pointer = LLVM::LLVMPointerType::get(b.getContext(), 1);
    SmallVector<Type> arguments(pointers, pointer);
    arguments.append(sizes, b.getI32Type());
    b.setInsertionPointToEnd(module.getBody());
    function =
        gpu::GPUFuncOp::create(b, loc, name, b.getFunctionType(arguments, {}));
    function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                      b.getUnitAttr());
    function.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({threads, 1, 1}));
    b.setInsertionPointToStart(&function.getBody().front());
  }

  Value arg(int i) { return function.getArgument(i); }
  Value constant(int64_t v) {
    return arith::ConstantIntOp::create(b, loc, v, 32);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value mul(Value x, int64_t y) {
    return arith::MulIOp::create(b, loc, x, constant(y));
  }
  Value div(Value x, int64_t y) {
    return arith::DivUIOp::create(b, loc, x, constant(y));
  }
  Value wide(Value x) {
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), x);
  }
  Value thread() { return id<gpu::ThreadIdOp>(gpu::Dimension::x); }
  Value block(gpu::Dimension dimension) {
    return id<gpu::BlockIdOp>(dimension);
  }

  OpBuilder &b;
  Location loc;
  gpu::GPUFuncOp function;

private:
  template <typename Op>
  Value id(gpu::Dimension dimension) {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                      Op::create(b, loc, dimension));
  }
};

} // namespace

gpu::GPUFuncOp humming::buildPackProgram(OpBuilder &b, PackOp op,
                                         gpu::GPUModuleOp module,
                                         StringRef name) {
  enum { Source, Packed, N, K, Lds };
  PackedLayoutAttr layout = op.getLayout();
  auto type = cast<RankedTensorType>(op.getSource().getType());
  PackProblem problem;
  problem.k = type.isDynamicDim(1) ? 0 : type.getDimSize(1);
  problem.deriveDivisors();
  Location loc = op.getLoc();
  LayoutKernel kernel(b, loc, module, name, 2, 3, PackProblem::threads);
  Value strip = kernel.block(gpu::Dimension::x);
  Value slab = kernel.block(gpu::Dimension::y);
  Value warp = kernel.div(kernel.thread(), 32);
  Value row = kernel.add(kernel.mul(strip, 64), kernel.mul(warp, 16));
  // The unit's number exceeds 32 bits only with matrices of 2^42 codes, its
  // byte offset much earlier.
  Value slabs = kernel.div(kernel.add(kernel.arg(K), kernel.constant(63)), 64);
  Value tile = arith::AddIOp::create(
      b, loc,
      arith::MulIOp::create(b, loc, kernel.wide(strip), kernel.wide(slabs)),
      kernel.wide(slab));
  Value four = arith::ConstantIntOp::create(b, loc, 4, 64);
  Value unit = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, tile, four), kernel.wide(warp));
  PackUnitOp::create(b, loc, kernel.arg(Source), row, kernel.mul(slab, 64),
                     kernel.arg(N), kernel.arg(K), kernel.arg(Lds),
                     kernel.arg(Packed), unit, layout.getActivationBits(),
                     layout.getWeightBits(), problem.kDivisor);
  gpu::ReturnOp::create(b, loc);
  return kernel.function;
}

gpu::GPUFuncOp humming::buildGatherProgram(OpBuilder &b, GatherOp op,
                                           gpu::GPUModuleOp module,
                                           StringRef name) {
  enum { X, Order, Gathered, M, K, Columns, Ldx, Ldg };
  auto type = cast<RankedTensorType>(op.getResult().getType());
  GatherProblem problem;
  problem.elementBits = type.getElementTypeBitWidth();
  problem.columns = type.isDynamicDim(1) ? 0 : type.getDimSize(1);
  problem.deriveDivisors();
  Location loc = op.getLoc();
  LayoutKernel kernel(b, loc, module, name, 3, 5, GatherProblem::threads);
  Value row = kernel.block(gpu::Dimension::x);
  int64_t perThread = 128 / problem.elementBits;
  Value column = kernel.add(
      kernel.mul(kernel.block(gpu::Dimension::y), problem.blockColumns()),
      kernel.mul(kernel.thread(), perThread));
  GatherRowOp::create(b, loc, kernel.arg(X), kernel.arg(Order),
                      kernel.arg(Gathered), row, column, kernel.arg(M),
                      kernel.arg(Columns), kernel.arg(K), kernel.arg(Ldx),
                      kernel.arg(Ldg), problem.elementBits,
                      problem.divisor * problem.elementBits / 8);
  gpu::ReturnOp::create(b, loc);
  return kernel.function;
}

namespace {

struct ConvertHQuantLayoutToTilesPass
    : humming::impl::ConvertHQuantLayoutToTilesPassBase<
          ConvertHQuantLayoutToTilesPass> {
  using ConvertHQuantLayoutToTilesPassBase::ConvertHQuantLayoutToTilesPassBase;

  /// The function's pack or gather if it holds nothing else; null where other
  /// ops on tensors make it somebody else's.
  static FailureOr<Operation *> findOp(func::FuncOp function) {
    Operation *found = nullptr;
    if (function.isExternal() || !function.getBody().hasOneBlock())
      return found;
    for (Operation &op : function.getBody().front()) {
      if (isa<func::ReturnOp>(op))
        continue;
      if (!isa<PackOp, GatherOp>(op))
        return static_cast<Operation *>(nullptr);
      if (found) {
        auto diag =
            op.emitOpError("expected one hquant.pack or hquant.gather a "
                           "function, got a second one; outline it");
        diag.attachNote(found->getLoc()) << "the first one is here";
        return failure();
      }
      found = &op;
    }
    auto pack = dyn_cast_or_null<PackOp>(found);
    if (pack && !pack.getLayout().isWeights())
      return pack.emitOpError(
                 "expected role weights in a function that becomes "
                 "a kernel, got ")
             << stringifyPackedRole(pack.getLayout().getRole())
             << "; the host packs scales and zero points";
    return found;
  }

  static llvm::Error check(Operation *op) {
    auto size = [](Type type, unsigned i) {
      int64_t extent = cast<RankedTensorType>(type).getDimSize(i);
      return ShapedType::isDynamic(extent) ? 0 : extent;
    };
    if (auto gather = dyn_cast<GatherOp>(op)) {
      Type type = gather.getResult().getType();
      GatherProblem problem;
      problem.elementBits =
          cast<RankedTensorType>(type).getElementTypeBitWidth();
      problem.columns = size(type, 1);
      problem.deriveDivisors();
      return checkGather(problem);
    }
    auto pack = cast<PackOp>(op);
    PackProblem problem;
    problem.activationBits = pack.getLayout().getActivationBits();
    problem.weightBits = pack.getLayout().getWeightBits();
    problem.n = size(pack.getSource().getType(), 0);
    problem.k = size(pack.getSource().getType(), 1);
    problem.deriveDivisors();
    return checkPack(problem);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<std::pair<func::FuncOp, Operation *>> work;
    for (auto function : module.getOps<func::FuncOp>()) {
      FailureOr<Operation *> op = findOp(function);
      if (failed(op))
        return signalPassFailure();
      if (!*op)
        continue;
      if (llvm::Error error = check(*op)) {
        (*op)->emitOpError(llvm::toString(std::move(error)));
        return signalPassFailure();
      }
      if (!SymbolTable::symbolKnownUseEmpty(function, module)) {
        function.emitOpError("expected no uses of a function that becomes a "
                             "kernel; its arguments change");
        return signalPassFailure();
      }
      work.emplace_back(function, *op);
    }
    if (work.empty())
      return;
    OpBuilder builder(module.getBody(), module.getBody()->end());
    Operation *symbol = module.lookupSymbol(moduleName);
    auto kernels = dyn_cast_or_null<gpu::GPUModuleOp>(symbol);
    if (symbol && !kernels) {
      symbol->emitOpError("expected no other symbol of the name of the "
                          "gpu.module, ")
          << moduleName << "; choose another one with the option module";
      return signalPassFailure();
    }
    if (!kernels) {
      kernels = gpu::GPUModuleOp::create(builder, module.getLoc(), moduleName);
      if (auto target = module->getAttr(HQuantDialect::getTargetAttrName()))
        kernels.setTargetsAttr(builder.getArrayAttr({target}));
    }
    for (auto [function, op] : work) {
      if (auto pack = dyn_cast<PackOp>(op))
        buildPackProgram(builder, pack, kernels, function.getSymName());
      else
        buildGatherProgram(builder, cast<GatherOp>(op), kernels,
                           function.getSymName());
      function.erase();
    }
  }
};

} // namespace
