//===- HQuantToTiles.cpp - Configured matmul to one block's program -------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every function with a configured matmul (or quantize) becomes a kernel of the
// gpu.module. Its program is built by TileProgram.cpp (QuantizeToTiles.cpp).
//
//===----------------------------------------------------------------------===//

#include "Humming/Conversion/Passes.h"
#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#define DEBUG_TYPE "convert-hquant-to-tiles"

namespace humming {
#define GEN_PASS_DEF_CONVERTHQUANTTOTILESPASS
#include "Humming/Conversion/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {

struct ConvertHQuantToTilesPass
    : humming::impl::ConvertHQuantToTilesPassBase<ConvertHQuantToTilesPass> {
  using ConvertHQuantToTilesPassBase::ConvertHQuantToTilesPassBase;

  /// The function's matmul or quantize, or failure with an error if it holds
  /// anything that is neither that nor part of the host's preparation.
  FailureOr<Operation *> findOp(func::FuncOp function) {
    Operation *result = nullptr;
    for (Operation &op : function.getBody().front()) {
      if (isa<MatmulOp, QuantizeOp>(op)) {
        if (result) {
          auto diag = op.emitOpError("expected one hquant.matmul a function, "
                                     "got a second one; outline it");
          diag.attachNote(result->getLoc()) << "the first one is here";
          return failure();
        }
        result = &op;
      } else if (!isa<PackOp, func::ReturnOp>(op) &&
                 !op.hasTrait<OpTrait::ConstantLike>()) {
        return op.emitOpError(
                   "expected only hquant.pack beside hquant.matmul in "
                   "a function that becomes a kernel, got '")
               << op.getName() << "'; outline the matmul into its own function";
      }
    }
    return result;
  }

  /// The config is legal on the module's chip: the program divides by its tile
  /// sizes.
  LogicalResult checkConfigured(Operation *op) {
    auto matmul = dyn_cast<MatmulOp>(op);
    auto quantize = dyn_cast<QuantizeOp>(op);
    if (matmul ? !matmul.getLoweringConfigAttr()
               : !quantize.getQuantizeConfigAttr())
      return success(); // buildTileProgram says so.
    auto target = getOperation()->getAttrOfType<NVVM::NVVMTargetAttr>(
        HQuantDialect::getTargetAttrName());
    if (!target)
      return op->emitOpError("expected hquant.target on the module, for "
                             "which the config was chosen");
    llvm::Expected<const TargetInfo *> info = getTargetInfo(target.getChip());
    if (!info)
      return getOperation().emitOpError(llvm::toString(info.takeError()));
    if (llvm::Error error = matmul ? checkConfigured(matmul, **info)
                                   : checkConfigured(quantize, **info))
      return op->emitOpError(llvm::toString(std::move(error)));
    return success();
  }
  static llvm::Error checkConfigured(MatmulOp op, const TargetInfo &target) {
    MatmulProblem problem = op.getProblem();
    if (llvm::Error error = checkProblem(problem, target))
      return error;
    return checkConfig(problem, op.getLoweringConfigAttr().getConfig(), target);
  }
  static llvm::Error checkConfigured(QuantizeOp op, const TargetInfo &target) {
    QuantizeProblem problem = op.getProblem();
    if (llvm::Error error = checkQuantize(problem, target))
      return error;
    return checkQuantizeConfig(problem, op.getQuantizeConfigAttr().getConfig(),
                               target);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<std::pair<func::FuncOp, Operation *>> work;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal() || !function
                                        .walk([](Operation *op) {
                                          return isa<MatmulOp, QuantizeOp>(op)
                                                     ? WalkResult::interrupt()
                                                     : WalkResult::advance();
                                        })
                                        .wasInterrupted())
        continue;
      if (!function.getBody().hasOneBlock()) {
        function.emitOpError("expected one block around hquant.matmul");
        return signalPassFailure();
      }
      FailureOr<Operation *> op = findOp(function);
      if (failed(op) || !*op || failed(checkConfigured(*op)))
        return signalPassFailure();
      if (!SymbolTable::symbolKnownUseEmpty(function, module)) {
        function.emitOpError("expected no uses of a function that becomes a "
                             "kernel; its arguments change");
        return signalPassFailure();
      }
      work.emplace_back(function, *op);
    }
    if (work.empty())
      return;
    if (module.lookupSymbol(moduleName)) {
      module.emitError("expected a new name for the gpu.module, but there is "
                       "a symbol '")
          << moduleName << "'; choose another one with the option module";
      return signalPassFailure();
    }

    OpBuilder builder(module.getBody(), module.getBody()->end());
    auto kernels =
        gpu::GPUModuleOp::create(builder, module.getLoc(), moduleName);
    if (auto target = module->getAttr(HQuantDialect::getTargetAttrName()))
      kernels.setTargetsAttr(builder.getArrayAttr({target}));
    for (auto [function, op] : work) {
      StringRef name = function.getSymName();
      auto matmul = dyn_cast<MatmulOp>(op);
      if (failed(matmul ? buildTileProgram(builder, matmul, kernels, name)
                        : buildTileProgram(builder, cast<QuantizeOp>(op),
                                           kernels, name)))
        return signalPassFailure();
      function.erase();
    }
  }
};

} // namespace
