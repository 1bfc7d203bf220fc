//===- SelectLoweringConfig.cpp - Choose how a matmul is lowered -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Puts the answer of humming::chooseConfig on the op and says why. No decision
// is made here: problem and chip go in, a ranked list comes out.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Transforms/Passes.h"
#include "Humming/Transforms/Transforms.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/Support/FormatVariadic.h"

#define DEBUG_TYPE "hquant-select-lowering-config"

namespace humming {
#define GEN_PASS_DEF_SELECTLOWERINGCONFIGPASS
#include "Humming/Transforms/Passes.h.inc"
} // namespace humming

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

/// `mma=...: 36.20 MB, 21.3 us (memory)`.
static std::string describe(const RankedConfig &ranked) {
  return llvm::formatv("{0}: {1:F2} MB, {2:F1} us ({3})", ranked.config.str(),
                       ranked.cost.bytes * 1e-6, ranked.cost.microseconds,
                       ranked.cost.limiter);
}

/// The name of the symbol around `op`, for remarks.
static StringRef getFunctionName(Operation *op) {
  for (Operation *scope = op->getParentOp(); scope;
       scope = scope->getParentOp())
    if (auto name =
            scope->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
      return name.getValue();
  return {};
}

static void explainChoice(MatmulOp op, const MatmulProblem &problem,
                          const TargetInfo &target, const RankedConfig &chosen,
                          const RankedConfig *runnerUp, bool asDiagnostic) {
  auto remark =
      remark::analysis(op.getLoc(), remark::RemarkOpts::name("LoweringConfig")
                                        .category("HummingConfig")
                                        .function(getFunctionName(op)));
  if (!remark && !asDiagnostic)
    return;
  std::string problemText =
      problem.str() + " on " + StringRef(target.chip).str();
  std::string chosenText = describe(chosen);
  std::string runnerUpText = runnerUp ? describe(*runnerUp) : "none";
  remark << remark::metric("Problem", problemText)
         << remark::metric("Chosen", chosenText)
         << remark::metric("RunnerUp", runnerUpText)
         << remark::metric("Bytes", chosen.cost.bytes)
         << remark::metric("Microseconds", chosen.cost.microseconds)
         << remark::metric("SharedMemory",
                           predictSharedMemory(problem, chosen.config));
  if (asDiagnostic)
    op.emitRemark() << "config for " << problemText << ": chosen " << chosenText
                    << "; runner-up " << runnerUpText;
}

LogicalResult humming::selectLoweringConfig(MatmulOp op,
                                            const TargetInfo &target,
                                            const ConfigSelection &selection) {
  MatmulProblem problem = op.getProblem();
  if (problem.m == 0 && ShapedType::isDynamic(op.getM()))
    problem.m = selection.m;

  auto report = [&](llvm::Error error) -> LogicalResult {
    return op.emitOpError() << llvm::toString(std::move(error));
  };
  if (LoweringConfigAttr given = op.getLoweringConfigAttr()) {
    if (llvm::Error error = checkProblem(problem, target))
      return report(std::move(error));
    if (llvm::Error error = checkConfig(problem, given.getConfig(), target))
      return report(std::move(error));
    return success();
  }

  auto ranked = chooseConfig(problem, target, /*keep=*/2);
  if (!ranked)
    return report(ranked.takeError());
  RankedConfig chosen = ranked->front();
  const RankedConfig *runnerUp = ranked->size() > 1 ? &(*ranked)[1] : nullptr;
  if (!selection.config.empty()) {
    auto config = KernelConfig::parse(selection.config, chosen.config);
    if (!config)
      return report(config.takeError());
    if (llvm::Error error = checkConfig(problem, *config, target))
      return report(std::move(error));
    // What the chooser would have taken is the runner-up of a config by hand.
    if (*config != chosen.config)
      runnerUp = &ranked->front();
    chosen = {*config, estimateCost(problem, *config, target)};
  }
  op.setLoweringConfigAttr(
      LoweringConfigAttr::get(op.getContext(), chosen.config));
  explainChoice(op, problem, target, chosen, runnerUp, selection.explain);
  return success();
}

LogicalResult humming::selectQuantizeConfig(QuantizeOp op,
                                            const TargetInfo &target,
                                            const ConfigSelection &selection) {
  QuantizeProblem problem = op.getProblem();
  if (problem.m == 0)
    problem.m = selection.m;
  auto report = [&](llvm::Error error) -> LogicalResult {
    return op.emitOpError() << llvm::toString(std::move(error));
  };
  llvm::Expected<QuantizeConfig> config = chooseQuantizeConfig(problem, target);
  if (!config)
    return report(config.takeError());
  if (QuantizeConfigAttr given = op.getQuantizeConfigAttr()) {
    config = given.getConfig();
  } else if (!selection.config.empty()) {
    config = QuantizeConfig::parse(selection.config, *config);
    if (!config)
      return report(config.takeError());
  }
  if (llvm::Error error = checkQuantizeConfig(problem, *config, target))
    return report(std::move(error));
  op.setQuantizeConfigAttr(QuantizeConfigAttr::get(op.getContext(), *config));
  if (selection.explain)
    op.emitRemark() << "config for " << problem.str() << " on "
                    << StringRef(target.chip) << ": chosen " << config->str();
  return success();
}

namespace {
struct SelectLoweringConfigPass
    : humming::impl::SelectLoweringConfigPassBase<SelectLoweringConfigPass> {
  using SelectLoweringConfigPassBase::SelectLoweringConfigPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (m < 0) {
      module.emitError() << "expected option m of at least 0, got "
                         << int64_t(m);
      return signalPassFailure();
    }
    FailureOr<const TargetInfo *> target = findTarget(module);
    if (failed(target))
      return signalPassFailure();
    setTarget(module, **target);

    ConfigSelection selection;
    selection.config = config;
    selection.m = m;
    selection.explain = explain;
    WalkResult result = module.walk([&](MatmulOp op) {
      ++(op.getLoweringConfigAttr() ? numKept : numChosen);
      return WalkResult(selectLoweringConfig(op, **target, selection));
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    result = module.walk([&](QuantizeOp op) {
      ++(op.getQuantizeConfigAttr() ? numKept : numChosen);
      return WalkResult(selectQuantizeConfig(op, **target, selection));
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  FailureOr<const TargetInfo *> findTarget(ModuleOp module) {
    if (chip.empty())
      return getTargetOf(module);
    llvm::Expected<const TargetInfo *> info = getTargetInfo(chip);
    if (!info)
      return module.emitError()
             << "option chip: " << llvm::toString(info.takeError());
    return *info;
  }
};
} // namespace
