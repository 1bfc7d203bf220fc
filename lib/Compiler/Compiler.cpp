//===- Compiler.cpp - Problem and target to PTX -----------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Compiler/Compiler.h"
#include "CodeGen.h"
#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/InitAll.h"
#include "Humming/Target/Fallback.h"
#include "Humming/Transforms/Pipelines.h"
#include "Humming/Version.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include <chrono>

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

std::string humming::compilerVersion() {
  return "humming " HUMMING_VERSION " llvm " LLVM_VERSION_STRING;
}

std::string humming::kernelName(const MatmulProblem &problem) {
  const QuantType &quant = problem.weight;
  std::string name = "humming_" + quant.weight.str() + "_";
  if (quant.granularity.isGroup())
    name += "g" + std::to_string(quant.granularity.columns);
  else if (quant.granularity.isPerChannel())
    name += "channel";
  else if (quant.granularity.isPerTensor())
    name += "tensor";
  else
    name += "block" + std::to_string(quant.granularity.rows) + "x" +
            std::to_string(quant.granularity.columns);
  if (quant.zeroPoint != ZeroPointKind::None)
    name += "_zp" + stringify(quant.zeroPoint).str();
  name += "_" + quant.scale.str();
  if (quant.table)
    name += "_table";
  if (quant.globalScale != GlobalScaleKind::None)
    name +=
        quant.globalScale == GlobalScaleKind::Tensor ? "_global" : "_globalrow";
  if (quant.columnPhase)
    name += "_phase" + std::to_string(quant.columnPhase);
  if (problem.weightLayout == WeightLayout::Plain)
    name += "_plain";
  name += "_x_" + problem.activation.str();
  if (problem.activationScale != ActivationScaleKind::None)
    name += "_" + stringify(problem.activationScale).str();
  name += "_" + problem.output.str();
  if (problem.hasBias)
    name += "_bias";
  return name;
}

int32_t humming::requiredPtxVersion(const MatmulProblem &problem,
                                    const KernelConfig &config,
                                    const TargetInfo &target) {
  SmallVector<PtxFeature> features = {PtxFeature::LdMatrix};
  switch (config.mma) {
  case MmaKind::M16N8K8:
    features.push_back(PtxFeature::MmaM16N8K8F16);
    break;
  case MmaKind::M16N8K16:
    features.push_back(PtxFeature::MmaM16N8K16);
    break;
  case MmaKind::M16N8K32:
    features.push_back(problem.activation.isInteger() ? PtxFeature::MmaInt8
                                                      : PtxFeature::MmaFp8);
    break;
  case MmaKind::M16N8K64:
    features.push_back(PtxFeature::MmaInt4);
    break;
  case MmaKind::M8N8K16:
    features.push_back(PtxFeature::MmaM8N8K16Int8);
    break;
  case MmaKind::Wgmma:
    features.push_back(PtxFeature::Wgmma);
    break;
  }
  if (config.copy == CopyKind::CpAsync)
    features.push_back(PtxFeature::CpAsync);
  if (problem.activation.isBF16())
    features.push_back(PtxFeature::Bf16Arithmetic);
  if (problem.activation.bits == 16 && target.convertsFp8() &&
      problem.weight.weight == NumberFormat::smallFloat(4, 3))
    features.push_back(PtxFeature::ConvertFp8);
  if (config.early)
    features.push_back(PtxFeature::GridDependency);
  return requiredPtxVersion(target, features);
}

namespace {

/// Collects diagnostics: errors to be returned, remarks to be shown.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          std::string text = diagnostic.str();
          for (Diagnostic &note : diagnostic.getNotes())
            if (!StringRef(note.str()).starts_with("see current operation"))
              text += "; note: " + note.str();
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            errors.push_back(text);
          else
            remarks.push_back(text);
          return success();
        }) {}

  llvm::Error error(StringRef step) const {
    return llvm::createStringError(errors.empty()
                                       ? step + " failed without a diagnostic"
                                       : Twine(errors.front()));
  }

  std::vector<std::string> errors, remarks;

private:
  ScopedDiagnosticHandler handler;
};

/// Measures consecutive steps.
class StepTimer {
public:
  explicit StepTimer(std::vector<StepTime> &times) : times(times) {}
  void finish(StringRef step) {
    auto now = std::chrono::steady_clock::now();
    times.push_back(
        {step.str(),
         std::chrono::duration<double, std::milli>(now - last).count()});
    last = now;
  }

private:
  std::vector<StepTime> &times;
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

/// Stage 1: one function with the problem's matmul. Sizes that are 0 are
/// dynamic; M always is. Operands are logical, unless the problem wants another
/// layout than they would get.
OwningOpRef<ModuleOp> buildOperatorStage(MLIRContext *context,
                                         const MatmulProblem &problem,
                                         StringRef name) {
  OpBuilder b(context);
  Location loc = b.getUnknownLoc();
  auto size = [](int64_t v) { return v > 0 ? v : ShapedType::kDynamic; };
  int64_t n = size(problem.n), k = size(problem.k);
  // Packed scales are one a row, whatever the rows that share them.
  QuantType perRow = problem.weight;
  perRow.granularity.rows = 1;
  perRow.rowPhase = 0;
  auto quant = QuantTypeAttr::get(context, perRow);
  auto tensor = [](ArrayRef<int64_t> shape, Type element) -> Type {
    return RankedTensorType::get(shape, element);
  };
  Type activation = problem.activation.isInteger()
                        ? Type(b.getIntegerType(problem.activation.bits))
                        : getFloatType(context, problem.activation);
  Type output = getFloatType(context, problem.output);
  auto scaleShape = quant.getScaleShape(n, k);
  SmallVector<Type> inputs = {tensor({ShapedType::kDynamic, k}, activation),
                              tensor({n, k}, quant.getCodeType()),
                              tensor(scaleShape, quant.getScaleType())};
  if (Type zeroPoint = quant.getZeroPointType())
    inputs.push_back(tensor(scaleShape, zeroPoint));
  if (problem.weightLayout != problem.naturalLayout()) {
    PackedRole roles[] = {problem.weightLayout == WeightLayout::Plain
                              ? PackedRole::PlainWeights
                              : PackedRole::Weights,
                          PackedRole::Scales, PackedRole::ZeroPoints};
    for (size_t i = 1; i < inputs.size(); ++i)
      inputs[i] = PackedLayoutAttr::get(context, problem.activation.bits,
                                        perRow.weight.bits, roles[i - 1])
                      .getPackedType(cast<RankedTensorType>(inputs[i]));
  }
  if (problem.hasBias)
    inputs.push_back(tensor({n}, output));
  bool hasGlobal = perRow.globalScale != GlobalScaleKind::None;
  if (hasGlobal)
    inputs.push_back(
        tensor({perRow.globalScale == GlobalScaleKind::Tensor ? 1 : n},
               b.getF32Type()));
  bool hasActivationScales =
      problem.activationScale != ActivationScaleKind::None;
  if (hasActivationScales)
    inputs.push_back(
        tensor({problem.activationScale == ActivationScaleKind::Tensor
                    ? 1
                    : ShapedType::kDynamic},
               b.getF32Type()));
  Type result = tensor({ShapedType::kDynamic, n}, output);

  OwningOpRef<ModuleOp> module(ModuleOp::create(b, loc));
  b.setInsertionPointToStart(module->getBody());
  auto function =
      func::FuncOp::create(b, loc, name, b.getFunctionType(inputs, {result}));
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  unsigned next = 3;
  auto optional = [&](bool present) {
    return present ? body->getArgument(next++) : Value();
  };
  Value zeroPoints = optional(quant.getZeroPointType() != nullptr);
  Value bias = optional(problem.hasBias);
  Value global = optional(hasGlobal);
  Value activationScales = optional(hasActivationScales);
  Value c = MatmulOp::create(
      b, loc, result, body->getArgument(0), body->getArgument(1),
      body->getArgument(2), zeroPoints, bias, global, activationScales, quant,
      /*lowering_config=*/LoweringConfigAttr(),
      hasActivationScales ? b.getStringAttr(stringify(problem.activationScale))
                          : StringAttr());
  func::ReturnOp::create(b, loc, c);
  return module;
}

LaunchDescription describeLaunch(const MatmulProblem &problem,
                                 const KernelConfig &config, StringRef name,
                                 StringRef chip, int32_t ptxVersion,
                                 int64_t sharedBytes) {
  LaunchDescription launch;
  launch.kernelName = name.str();
  launch.chip = chip.str();
  launch.ptxVersion = ptxVersion;
  launch.blockThreads = config.numThreads();
  launch.sharedBytes = sharedBytes;
  launch.blockN = config.blockN;
  launch.blockM = config.blockM;
  launch.splitK = config.splitK;
  launch.earlyLaunch = config.early != 0;
  launch.activation = problem.activation.str();
  launch.weight = problem.weight.weight.str();
  launch.scale = problem.weight.scale.str();
  launch.weightLayout = stringify(problem.weightLayout).str();
  launch.columnPhase = problem.weight.columnPhase;
  launch.granularity = problem.weight.granularity.str();
  launch.zeroPoint = stringify(problem.weight.zeroPoint).str();
  launch.activationScale = stringify(problem.activationScale).str();
  switch (problem.weight.globalScale) {
  case GlobalScaleKind::None:
    break;
  case GlobalScaleKind::Tensor:
    launch.globalScale = "tensor";
    break;
  case GlobalScaleKind::Channel:
    launch.globalScale = "channel";
    break;
  }
  if (problem.weight.table)
    launch.table.assign(problem.weight.table->values.begin(),
                        problem.weight.table->values.end());
  launch.output = problem.output.str();
  launch.hasBias = problem.hasBias;
  launch.kDivisor = problem.kDivisor;
  launch.nDivisor = problem.nDivisor;
  launch.config = config.str();
  return launch;
}

} // namespace

struct Compiler::State {
  State() : context(registry(), MLIRContext::Threading::DISABLED) {
    context
        .loadDialect<HQuantDialect, func::FuncDialect, arith::ArithDialect,
                     gpu::GPUDialect, LLVM::LLVMDialect, NVVM::NVVMDialect>();
  }
  static DialectRegistry registry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    registerAllExtensions(registry);
    return registry;
  }
  MLIRContext context;
};

// The context is made by the first compile: a process that finds its kernels in
// the cache never pays for it.
Compiler::Compiler() = default;
Compiler::~Compiler() = default;

llvm::Expected<CompileResult> Compiler::compile(const MatmulProblem &given,
                                                const CompileOptions &options) {
  llvm::Expected<const TargetInfo *> target = getTargetInfo(options.chip);
  if (!target)
    return target.takeError();
  MatmulProblem problem = given;
  problem.deriveDivisors();
  CompileResult result;
  std::string fallbackNote;
  if (options.fallback) {
    llvm::Expected<ResolvedProblem> resolved =
        resolveFallback(problem, **target);
    if (!resolved)
      return resolved.takeError();
    problem = resolved->problem;
    fallbackNote = resolved->note;
  } else if (llvm::Error error = checkProblem(problem, **target)) {
    return std::move(error);
  }

  StepTimer timer(result.times);
  if (!state) {
    state = std::make_unique<State>();
    timer.finish("context");
  }
  MLIRContext *context = &state->context;
  DiagnosticCollector diagnostics(context);
  std::string name = options.name.empty() ? kernelName(problem) : options.name;

  OwningOpRef<ModuleOp> module = buildOperatorStage(context, problem, name);
  if (failed(verify(*module)))
    return diagnostics.error("building the operator stage");
  timer.finish("stage1");

  PipelineOptions pipeline;
  pipeline.chip = options.chip;
  pipeline.config = options.config;
  pipeline.m = problem.m;
  pipeline.explain = options.explain;
  pipeline.verifyStages =
      false; // the tests and humming-opt check the contracts
  auto run = [&](StringRef step, auto build) -> llvm::Error {
    PassManager manager(context);
    manager.enableVerifier(false);
    build(manager, pipeline);
    if (failed(manager.run(*module)))
      return diagnostics.error(step);
    timer.finish(step);
    return llvm::Error::success();
  };
  auto finishAt = [&](int stage) {
    if (options.lastStage != stage)
      return false;
    if (options.keepIR) {
      llvm::raw_string_ostream stream(result.ir);
      module->print(stream);
    }
    result.remarks = diagnostics.remarks;
    return true;
  };
  if (finishAt(1))
    return result;

  if (auto error = run("stage2", buildConfigurePipeline))
    return std::move(error);
  module->walk([&](MatmulOp op) {
    result.config = op.getLoweringConfigAttr().getConfig();
  });
  if (finishAt(2))
    return result;

  if (auto error = run("stage3", buildTilePipeline))
    return std::move(error);
  if (finishAt(3))
    return result;

  if (auto error = run("stage4", buildTileToNVVMPipeline))
    return std::move(error);
  if (finishAt(4))
    return result;

  int32_t ptxVersion = requiredPtxVersion(problem, result.config, **target);
  int64_t sharedBytes = 0;
  gpu::GPUModuleOp kernels;
  module->walk([&](gpu::GPUModuleOp op) { kernels = op; });
  kernels.walk([&](LLVM::LLVMFuncOp function) {
    if (auto bytes =
            function->getAttrOfType<IntegerAttr>("hquant.shared_memory"))
      sharedBytes = bytes.getInt();
    function->removeAttr("hquant.shared_memory");
  });
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(kernels, llvmContext);
  if (!llvmModule)
    return diagnostics.error("translation to LLVM IR");
  timer.finish("translate");
  if (auto error = optimizeModule(*llvmModule, options.chip, ptxVersion))
    return std::move(error);
  timer.finish("optimize");
  auto ptx = emitPtx(std::move(llvmModule), options.chip, ptxVersion);
  if (!ptx)
    return ptx.takeError();
  timer.finish("ptx");
  result.ptx = std::move(*ptx);
  result.launch = describeLaunch(problem, result.config, name, options.chip,
                                 ptxVersion, sharedBytes);
  if (!fallbackNote.empty())
    result.launch.notes.push_back(fallbackNote);
  if (auto error = result.launch.verify())
    return std::move(error);
  result.remarks = diagnostics.remarks;
  if (!fallbackNote.empty())
    result.remarks.push_back("HummingFallback: " + fallbackNote);
  return result;
}
