//===- VerifyStage.cpp - Check the contract of a stage ----------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function per stage, each a walk that reports what does not belong. The
// contracts are those of the table in docs/HQuant.md.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Transforms/Passes.h"
#include "Humming/Transforms/Transforms.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSwitch.h"

#define DEBUG_TYPE "hquant-verify-stage"

namespace humming {
#define GEN_PASS_DEF_VERIFYSTAGEPASS
#include "Humming/Transforms/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

//===----------------------------------------------------------------------===//
// What ops and types are of which stage
//===----------------------------------------------------------------------===//

static bool isHQuant(Operation *op) {
  return isa_and_nonnull<HQuantDialect>(op->getDialect());
}

/// Ops of stages 1 and 2.
static bool isTensorOp(Operation *op) {
  return isa<MatmulOp, QuantizeOp, DequantizeOp, GatherOp, PackOp, UnpackOp>(
      op);
}

/// Applies `isWrong` to the types of results and block arguments; returns the
/// first that is.
static Type findType(Operation *op, function_ref<bool(Type)> isWrong) {
  for (Type type : op->getResultTypes())
    if (isWrong(type))
      return type;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Type type : block.getArgumentTypes())
        if (isWrong(type))
          return type;
  return {};
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

namespace {
/// Collects violations; an error may be reported through `at`.
struct Violations {
  StringRef stage;
  bool any = false;

  InFlightDiagnostic at(Operation *op) {
    any = true;
    return op->emitOpError() << "at stage " << stage << ": ";
  }
};
} // namespace

static void checkImported(ModuleOp module, Violations &violations) {
  module.walk([&](Operation *op) {
    if (isHQuant(op))
      violations.at(op) << "expected no op of hquant";
  });
}

/// What stages 1 and 2 share.
static void checkTensorOp(Operation *op, Violations &violations) {
  if (isHQuant(op) && !isTensorOp(op))
    violations.at(op) << "expected ops of hquant on tensors, got one of the "
                         "tile stage";
}

static void checkOperator(ModuleOp module, Violations &violations) {
  module.walk([&](Operation *op) {
    checkTensorOp(op, violations);
    if (auto matmul = dyn_cast<MatmulOp>(op))
      if (LoweringConfigAttr config = matmul.getLoweringConfigAttr())
        violations.at(op) << "expected no lowering_config, got " << config;
    if (auto quantize = dyn_cast<QuantizeOp>(op))
      if (QuantizeConfigAttr config = quantize.getQuantizeConfigAttr())
        violations.at(op) << "expected no quantize_config, got " << config;
  });
}

static void checkQuantizeConfigured(QuantizeOp op, const TargetInfo &target,
                                    Violations &violations) {
  QuantizeConfigAttr config = op.getQuantizeConfigAttr();
  if (!config) {
    violations.at(op) << "expected a quantize_config, got none; run "
                         "hquant-select-lowering-config";
    return;
  }
  QuantizeProblem problem = op.getProblem();
  if (llvm::Error error = checkQuantize(problem, target))
    violations.at(op) << llvm::toString(std::move(error));
  else if (llvm::Error error =
               checkQuantizeConfig(problem, config.getConfig(), target))
    violations.at(op) << llvm::toString(std::move(error));
}

static void checkConfigured(ModuleOp module, Violations &violations) {
  FailureOr<const TargetInfo *> target = getTargetOf(module);
  violations.any |= failed(target);
  module.walk([&](Operation *op) {
    checkTensorOp(op, violations);
    if (auto quantize = dyn_cast<QuantizeOp>(op)) {
      if (succeeded(target))
        checkQuantizeConfigured(quantize, **target, violations);
      return;
    }
    auto matmul = dyn_cast<MatmulOp>(op);
    if (!matmul)
      return;
    if (!matmul.isPacked())
      violations.at(op) << "expected packed operands, got weights of type "
                        << matmul.getWeights().getType()
                        << "; run hquant-pack-weights";
    LoweringConfigAttr config = matmul.getLoweringConfigAttr();
    if (!config) {
      violations.at(op) << "expected a lowering_config, got none; run "
                           "hquant-select-lowering-config";
      return;
    }
    if (failed(target))
      return;
    MatmulProblem problem = matmul.getProblem();
    if (llvm::Error error = checkProblem(problem, **target))
      violations.at(op) << llvm::toString(std::move(error));
    else if (llvm::Error error =
                 checkConfig(problem, config.getConfig(), **target))
      violations.at(op) << llvm::toString(std::move(error));
  });
}

static void checkTile(ModuleOp module, Violations &violations) {
  module.walk([&](Operation *op) {
    if (isTensorOp(op))
      violations.at(op) << "expected no op of hquant on tensors";
    else if (isHQuant(op) && !op->getParentOfType<gpu::GPUFuncOp>())
      violations.at(op) << "expected to be in a gpu.func";
    // The host side of a module is free.
    if (!op->getParentOfType<gpu::GPUModuleOp>())
      return;
    if (Type type = findType(op, llvm::IsaPred<TensorType>))
      violations.at(op) << "expected no tensor in a gpu.module, got " << type;
  });
}

static void checkThread(ModuleOp module, Violations &violations) {
  module.walk([&](Operation *op) {
    if (isHQuant(op)) {
      violations.at(op) << "expected no op of hquant";
      return;
    }
    if (!op->getParentOfType<gpu::GPUModuleOp>())
      return;
    if (!isa_and_nonnull<LLVM::LLVMDialect, NVVM::NVVMDialect>(
            op->getDialect()))
      violations.at(op) << "expected ops of llvm and nvvm in a gpu.module";
  });
}

static constexpr StringLiteral stageNames[] = {"imported", "operator",
                                               "configured", "tile", "thread"};

std::optional<Stage> humming::parseStage(StringRef text) {
  for (auto [index, name] : llvm::enumerate(stageNames))
    if (text == name || text == std::to_string(index))
      return Stage(index);
  return std::nullopt;
}

LogicalResult humming::verifyStage(ModuleOp module, Stage stage) {
  Violations violations;
  std::string name =
      std::to_string(int(stage)) + " (" + stageNames[int(stage)].str() + ")";
  violations.stage = name;
  switch (stage) {
  case Stage::Imported:
    checkImported(module, violations);
    break;
  case Stage::Operator:
    checkOperator(module, violations);
    break;
  case Stage::Configured:
    checkConfigured(module, violations);
    break;
  case Stage::Tile:
    checkTile(module, violations);
    break;
  case Stage::Thread:
    checkThread(module, violations);
    break;
  }
  return failure(violations.any);
}

namespace {
struct VerifyStagePass : humming::impl::VerifyStagePassBase<VerifyStagePass> {
  using VerifyStagePassBase::VerifyStagePassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    std::optional<Stage> parsed = parseStage(stage);
    if (!parsed) {
      getOperation().emitError()
          << "expected option stage of 0 to 4 or imported, operator, "
             "configured, tile, thread, got '"
          << stage << "'";
      return signalPassFailure();
    }
    if (failed(verifyStage(getOperation(), *parsed)))
      signalPassFailure();
  }
};
} // namespace
