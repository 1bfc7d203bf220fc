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
#include <numeric>

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
  if (problem.activationGroup != 0)
    name += "_g" + std::to_string(problem.activationGroup) + "_" +
            problem.activationScaleFormat.str();
  if (problem.activationZeroPoint)
    name += "_zp";
  name += "_" + problem.output.str();
  if (problem.accumulator.isF16())
    name += "_sum16";
  if (problem.hasBias)
    name += "_bias";
  return name;
}

std::string humming::kernelName(const QuantizeProblem &problem) {
  std::string name = "humming_quantize_" + problem.input.str() + "_" +
                     problem.codes.format.str() + "_" +
                     stringify(problem.scale).str();
  if (problem.codes.group != 0)
    name += "_g" + std::to_string(problem.codes.group);
  if (!problem.codes.scaleFormat.isF32())
    name += "_" + problem.codes.scaleFormat.str();
  if (problem.codes.zeroPoint)
    name += "_zp";
  if (problem.gate != GateKind::None)
    name += "_" + stringify(problem.gate).str();
  return name;
}

int32_t humming::requiredPtxVersion(const QuantizeProblem &problem,
                                    const TargetInfo &target) {
  if (problem.codes.format.isFloat())
    return requiredPtxVersion(target, {PtxFeature::ConvertFp8});
  return requiredPtxVersion(target, ArrayRef<PtxFeature>());
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
                       : problem.accumulator.isF16()
                           ? PtxFeature::MmaFp8HalfSums
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
  if (config.usesRing()) {
    features.push_back(config.copy == CopyKind::Tensor ? PtxFeature::TensorCopy
                                                       : PtxFeature::BulkCopy);
    features.push_back(PtxFeature::MbarrierTryWait);
  }
  if (config.copy != CopyKind::Sync)
    features.push_back(PtxFeature::CpAsync);
  if (problem.activation.isBF16())
    features.push_back(PtxFeature::Bf16Arithmetic);
  NumberFormat e4m3 = NumberFormat::smallFloat(4, 3);
  if (problem.activation.bits == 16 && target.convertsFp8() &&
      (problem.weight.weight == e4m3 ||
       (config.scale == ScalePlacement::Operand &&
        problem.weight.scale == e4m3)))
    features.push_back(PtxFeature::ConvertFp8);
  if (config.early)
    features.push_back(PtxFeature::GridDependency);
  if (config.cluster || config.multicast != Multicast::None)
    features.push_back(PtxFeature::Cluster);
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
  // Packed scales are one a row, whatever the rows that share them; that these
  // do is a promise.
  QuantType perRow = problem.weight;
  const bool isBlock =
      problem.weight.granularity.rows > 1 && problem.weight.granularity.columns;
  int64_t sharingRows =
      std::gcd(problem.weight.granularity.rows, problem.weight.rowPhase);
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
  int64_t perTensorOrToken =
      problem.activationScale == ActivationScaleKind::Tensor
          ? 1
          : ShapedType::kDynamic;
  if (int64_t group = problem.activationGroup)
    inputs.push_back(tensor(
        {problem.k > 0 ? (k + group - 1) / group : k, ShapedType::kDynamic},
        getFloatType(context, problem.activationScaleFormat)));
  else if (hasActivationScales)
    inputs.push_back(tensor({perTensorOrToken}, b.getF32Type()));
  if (problem.activationZeroPoint) {
    inputs.push_back(tensor({perTensorOrToken}, b.getI32Type()));
    inputs.push_back(tensor({n}, b.getF32Type()));
  }
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
  Value activationZeroPoints = optional(problem.activationZeroPoint);
  Value weightSums = optional(problem.activationZeroPoint);
  Value c = MatmulOp::create(
      b, loc, result, body->getArgument(0), body->getArgument(1),
      body->getArgument(2), zeroPoints, bias, global, activationScales,
      activationZeroPoints, weightSums, quant,
      /*lowering_config=*/LoweringConfigAttr(),
      hasActivationScales ? b.getStringAttr(stringify(problem.activationScale))
                          : StringAttr(),
      problem.activationGroup ? b.getI64IntegerAttr(problem.activationGroup)
                              : IntegerAttr(),
      problem.accumulator.isF16() ? b.getStringAttr("f16") : StringAttr(),
      isBlock ? b.getI64IntegerAttr(sharingRows) : IntegerAttr());
  func::ReturnOp::create(b, loc, c);
  return module;
}

/// The same for a quantize.
OwningOpRef<ModuleOp> buildOperatorStage(MLIRContext *context,
                                         const QuantizeProblem &problem,
                                         StringRef name) {
  OpBuilder b(context);
  Location loc = b.getUnknownLoc();
  constexpr int64_t any = ShapedType::kDynamic;
  int64_t k = problem.k > 0 ? problem.k : any;
  int64_t columns = k == any || problem.gate == GateKind::None ? k : 2 * k;
  const ActivationCodes &codes = problem.codes;
  auto tensor = [](ArrayRef<int64_t> shape, Type element) -> Type {
    return RankedTensorType::get(shape, element);
  };
  Type f32 = b.getF32Type(), i32 = b.getI32Type();
  bool isStatic = problem.scale == ActivationScaleKind::Tensor;
  SmallVector<Type> inputs = {
      tensor({any, columns}, getFloatType(context, problem.input))};
  SmallVector<Type> results = {
      tensor({any, k}, codes.format.isInteger()
                           ? Type(b.getIntegerType(codes.format.bits))
                           : getFloatType(context, codes.format))};
  Type scaleType, zeroPointType;
  if (isStatic) {
    inputs.push_back(tensor({1}, f32));
    if (codes.zeroPoint)
      inputs.push_back(tensor({1}, i32));
  } else {
    scaleType =
        codes.group == 0
            ? tensor({any}, f32)
            : tensor(
                  {k == any ? any : (k + codes.group - 1) / codes.group, any},
                  getFloatType(context, codes.scaleFormat));
    results.push_back(scaleType);
    if (codes.zeroPoint) {
      zeroPointType = tensor({any}, i32);
      results.push_back(zeroPointType);
    }
  }
  OwningOpRef<ModuleOp> module(ModuleOp::create(b, loc));
  b.setInsertionPointToStart(module->getBody());
  auto function =
      func::FuncOp::create(b, loc, name, b.getFunctionType(inputs, results));
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  auto argument = [&](unsigned i) {
    return i < body->getNumArguments() ? Value(body->getArgument(i)) : Value();
  };
  auto op = QuantizeOp::create(
      b, loc, results[0], scaleType, zeroPointType, argument(0), argument(1),
      argument(2), b.getStringAttr(stringify(problem.scale)),
      codes.group ? b.getI64IntegerAttr(codes.group) : IntegerAttr(),
      problem.gate != GateKind::None ? b.getStringAttr(stringify(problem.gate))
                                     : StringAttr(),
      QuantizeConfigAttr());
  func::ReturnOp::create(b, loc, op.getResults());
  return module;
}

LaunchDescription describeLaunch(const QuantizeProblem &problem,
                                 const QuantizeConfig &config, StringRef name,
                                 StringRef chip, int32_t ptxVersion,
                                 int64_t sharedBytes) {
  LaunchDescription launch;
  launch.operation = "quantize";
  launch.kernelName = name.str();
  launch.chip = chip.str();
  launch.ptxVersion = ptxVersion;
  launch.blockThreads = config.numThreads();
  launch.sharedBytes = sharedBytes;
  launch.blockN = config.groups * problem.codes.group;
  launch.blockM = config.rows;
  launch.activation = problem.input.str();
  launch.output = problem.codes.format.str();
  launch.granularity = "0";
  launch.zeroPoint = "none";
  launch.activationScale = stringify(problem.scale).str();
  launch.activationGroup = problem.codes.group;
  launch.activationScaleFormat = problem.codes.scaleFormat.str();
  launch.activationZeroPoint = problem.codes.zeroPoint;
  launch.gate = stringify(problem.gate).str();
  launch.kDivisor = problem.kDivisor;
  launch.config = config.str();
  return launch;
}

} // namespace

LaunchDescription humming::describeMatmulLaunch(const MatmulProblem &problem,
                                                const KernelConfig &config,
                                                StringRef name, StringRef chip,
                                                int32_t ptxVersion,
                                                int64_t sharedBytes) {
  LaunchDescription launch;
  launch.kernelName = name.str();
  launch.chip = chip.str();
  launch.ptxVersion = ptxVersion;
  launch.blockThreads = config.blockThreads();
  launch.sharedBytes = sharedBytes;
  launch.blockN = config.blockN;
  launch.blockM = config.blockM;
  launch.splitK = config.splitK;
  launch.earlyLaunch = config.early != 0;
  launch.persistent = config.persistent != 0;
  launch.cluster = config.cluster != 0;
  launch.clusterN = config.clusterN();
  launch.clusterM = config.clusterM();
  launch.activation = problem.activation.str();
  launch.weight = problem.weight.weight.str();
  launch.scale = problem.weight.scale.str();
  launch.weightLayout = stringify(problem.weightLayout).str();
  launch.columnPhase = problem.weight.columnPhase;
  launch.granularity = problem.weight.granularity.str();
  launch.zeroPoint = stringify(problem.weight.zeroPoint).str();
  launch.activationScale = stringify(problem.activationScale).str();
  launch.activationGroup = problem.activationGroup;
  launch.activationScaleFormat = problem.activationScaleFormat.str();
  launch.activationZeroPoint = problem.activationZeroPoint;
  launch.accumulator = problem.accumulator.str();
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
  if (config.copy == CopyKind::Tensor) {
    launch.tensorMaps.push_back(
        {"x", tensorBoxRows(config.blockM / config.blocksOfActivations())});
    if (problem.weightLayout == WeightLayout::Plain)
      launch.tensorMaps.push_back(
          {"w", tensorBoxRows(config.blockN / config.blocksOfWeights())});
  }
  launch.config = config.str();
  return launch;
}

/// Stage 1 of a pack: codes of the weights' width.
static OwningOpRef<ModuleOp> buildOperatorStage(MLIRContext *context,
                                                const PackProblem &problem,
                                                StringRef name) {
  OpBuilder b(context);
  Location loc = b.getUnknownLoc();
  auto size = [](int64_t v) { return v > 0 ? v : ShapedType::kDynamic; };
  auto source = RankedTensorType::get({size(problem.n), size(problem.k)},
                                      b.getIntegerType(problem.weightBits));
  auto packed = PackedLayoutAttr::get(context, problem.activationBits,
                                      problem.weightBits, PackedRole::Weights)
                    .getPackedType(source);
  OwningOpRef<ModuleOp> module(ModuleOp::create(b, loc));
  b.setInsertionPointToStart(module->getBody());
  auto function =
      func::FuncOp::create(b, loc, name, b.getFunctionType({source}, {packed}));
  b.setInsertionPointToStart(function.addEntryBlock());
  Value result = PackOp::create(b, loc, packed, function.getArgument(0));
  func::ReturnOp::create(b, loc, result);
  return module;
}

/// Stage 1 of a gather.
static OwningOpRef<ModuleOp> buildOperatorStage(MLIRContext *context,
                                                const GatherProblem &problem,
                                                StringRef name) {
  OpBuilder b(context);
  Location loc = b.getUnknownLoc();
  constexpr int64_t any = ShapedType::kDynamic;
  int64_t columns = problem.columns > 0 ? problem.columns : any;
  Type element =
      problem.elementBits == 16 ? Type(b.getF16Type()) : Type(b.getI8Type());
  auto x = RankedTensorType::get({any, any}, element);
  auto order = RankedTensorType::get({columns}, b.getI32Type());
  auto gathered = RankedTensorType::get({any, columns}, element);
  OwningOpRef<ModuleOp> module(ModuleOp::create(b, loc));
  b.setInsertionPointToStart(module->getBody());
  auto function = func::FuncOp::create(
      b, loc, name, b.getFunctionType({x, order}, {gathered}));
  b.setInsertionPointToStart(function.addEntryBlock());
  Value result = GatherOp::create(b, loc, gathered, function.getArgument(0),
                                  function.getArgument(1));
  func::ReturnOp::create(b, loc, result);
  return module;
}

/// What a description says of a kernel that moves data, but for its name.
static LaunchDescription describeLaunch(const PackProblem &problem) {
  LaunchDescription launch;
  launch.operation = "pack";
  launch.blockThreads = PackProblem::threads;
  launch.blockN = PackProblem::blockN;
  launch.blockM = PackProblem::blockK;
  launch.activation = problem.activationBits == 16  ? "f16"
                      : problem.activationBits == 8 ? "s8"
                                                    : "s4";
  launch.weight = "u" + std::to_string(problem.weightBits);
  launch.output = launch.weight;
  launch.granularity = "0";
  launch.zeroPoint = "none";
  launch.kDivisor = problem.kDivisor;
  launch.nDivisor = 1;
  return launch;
}
static LaunchDescription describeLaunch(const GatherProblem &problem) {
  LaunchDescription launch;
  launch.operation = "gather";
  launch.blockThreads = GatherProblem::threads;
  launch.blockN = problem.blockColumns();
  launch.blockM = 1;
  launch.activation = launch.output = problem.elementBits == 16 ? "f16" : "s8";
  launch.granularity = "0";
  launch.zeroPoint = "none";
  launch.kDivisor = problem.divisor;
  launch.nDivisor = 1;
  return launch;
}

std::string humming::kernelName(const PackProblem &problem) {
  return "humming_pack_w" + std::to_string(problem.weightBits) + "a" +
         std::to_string(problem.activationBits);
}
std::string humming::kernelName(const GatherProblem &problem) {
  return "humming_gather_" + std::to_string(problem.elementBits);
}

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

  auto describe = [&](const CompileResult &r, StringRef name, int32_t version,
                      int64_t sharedBytes) {
    return describeMatmulLaunch(problem, r.config, name, options.chip, version,
                                sharedBytes);
  };
  auto version = [&](const CompileResult &r) {
    return requiredPtxVersion(problem, r.config, **target);
  };
  if (llvm::Error error =
          run(problem, problem.m, options, describe, version, result))
    return std::move(error);
  if (!fallbackNote.empty() && options.lastStage == 5) {
    result.launch.notes.push_back(fallbackNote);
    result.remarks.push_back("HummingFallback: " + fallbackNote);
  }
  return result;
}

llvm::Expected<CompileResult> Compiler::compile(const QuantizeProblem &given,
                                                const CompileOptions &options) {
  llvm::Expected<const TargetInfo *> target = getTargetInfo(options.chip);
  if (!target)
    return target.takeError();
  QuantizeProblem problem = given;
  problem.deriveDivisors();
  if (llvm::Error error = checkQuantize(problem, **target))
    return std::move(error);
  CompileResult result;
  auto describe = [&](const CompileResult &r, StringRef name, int32_t version,
                      int64_t sharedBytes) {
    return describeLaunch(problem, r.quantizeConfig, name, options.chip,
                          version, sharedBytes);
  };
  auto version = [&](const CompileResult &) {
    return requiredPtxVersion(problem, **target);
  };
  if (llvm::Error error =
          run(problem, problem.m, options, describe, version, result))
    return std::move(error);
  return result;
}

template <typename Problem>
llvm::Expected<CompileResult>
Compiler::compileLayout(const Problem &problem, const CompileOptions &options) {
  llvm::Expected<const TargetInfo *> target = getTargetInfo(options.chip);
  if (!target)
    return target.takeError();
  if (!options.config.empty())
    return llvm::createStringError("expected no config for a kernel that moves "
                                   "data, got '" +
                                   options.config + "'");
  CompileResult result;
  auto describe = [&](const CompileResult &, StringRef name, int32_t version,
                      int64_t) {
    LaunchDescription launch = describeLaunch(problem);
    launch.kernelName = name.str();
    launch.chip = options.chip;
    launch.ptxVersion = version;
    return launch;
  };
  auto version = [&](const CompileResult &) {
    return requiredPtxVersion(**target, ArrayRef<PtxFeature>());
  };
  if (llvm::Error error =
          run(problem, /*m=*/0, options, describe, version, result))
    return std::move(error);
  return result;
}

llvm::Expected<CompileResult> Compiler::compile(const PackProblem &given,
                                                const CompileOptions &options) {
  if (llvm::Error error = checkPack(given))
    return std::move(error);
  PackProblem problem = given;
  problem.deriveDivisors();
  return compileLayout(problem, options);
}

llvm::Expected<CompileResult> Compiler::compile(const GatherProblem &given,
                                                const CompileOptions &options) {
  if (llvm::Error error = checkGather(given))
    return std::move(error);
  GatherProblem problem = given;
  problem.deriveDivisors();
  return compileLayout(problem, options);
}

/// Stages 1 to 5 of one kernel.
template <typename Problem>
llvm::Error Compiler::run(const Problem &problem, int64_t m,
                          const CompileOptions &options, Describe describe,
                          Version version, CompileResult &result) {
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
  pipeline.m = m;
  pipeline.explain = options.explain;
  pipeline.verifyStages =
      false; // the tests and humming-opt check the contracts
  auto runStep = [&](StringRef step, auto build) -> llvm::Error {
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
    return llvm::Error::success();

  if (auto error = runStep("stage2", buildConfigurePipeline))
    return error;
  module->walk([&](MatmulOp op) {
    result.config = op.getLoweringConfigAttr().getConfig();
  });
  module->walk([&](QuantizeOp op) {
    result.quantizeConfig = op.getQuantizeConfigAttr().getConfig();
  });
  if (finishAt(2))
    return llvm::Error::success();

  if (auto error = runStep("stage3", buildTilePipeline))
    return error;
  if (finishAt(3))
    return llvm::Error::success();

  if (auto error = runStep("stage4", buildTileToNVVMPipeline))
    return error;
  if (finishAt(4))
    return llvm::Error::success();

  int32_t ptxVersion = version(result);
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
    return error;
  timer.finish("optimize");
  auto ptx = emitPtx(std::move(llvmModule), options.chip, ptxVersion);
  if (!ptx)
    return ptx.takeError();
  timer.finish("ptx");
  result.ptx = std::move(*ptx);
  result.launch = describe(result, name, ptxVersion, sharedBytes);
  if (auto error = result.launch.verify())
    return error;
  result.remarks = diagnostics.remarks;
  return llvm::Error::success();
}
