//===- humming-execute.cpp - Execute what a test has lowered --------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   humming-opt %s --humming-compile=chip=sm_80 | humming-execute %s
//
// (%execute in a lit test.) The standard input is a module of stage 4, the file
// the same functions before they were lowered: that says the problems. Every
// kernel becomes PTX as humming::Compiler makes it, runs on the emulator for
// some numbers of tokens with the checks of humming-run, and is compared with
// the f64 reference. Sizes that the kernel takes as arguments are small ones.
// Where the test gave the pipeline options, the same ones go here: --config,
// --tokens.
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "CodeGen.h"
#include "Humming/Compiler/Compiler.h"
#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/InitAll.h"
#include "Humming/Transforms/Pipelines.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

namespace {
struct Options {
  llvm::cl::opt<std::string> source{llvm::cl::Positional, llvm::cl::Required,
                                    llvm::cl::desc("<file before lowering>")};
  llvm::cl::opt<std::string> lowered{
      llvm::cl::Positional, llvm::cl::init("-"),
      llvm::cl::desc("<module of stage 4, default: standard input>")};
  llvm::cl::opt<std::string> config{
      "config", llvm::cl::desc("What the pipeline was given as config")};
  llvm::cl::opt<int64_t> tokens{
      "tokens", llvm::cl::init(0),
      llvm::cl::desc("What the pipeline was given as m")};
};

/// A kernel before it was lowered.
struct Kernel {
  std::string name;
  MatmulProblem problem;
  KernelConfig config;
};

llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

llvm::Expected<OwningOpRef<ModuleOp>> parseFile(MLIRContext *context,
                                                llvm::StringRef path) {
  auto file = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!file)
    return makeError("cannot read " + path + ": " + file.getError().message());
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>((*file)->getBuffer(), context, path);
  if (!module)
    return makeError("no module in " + path);
  return std::move(module);
}

class Execution {
public:
  Execution(MLIRContext *context, const Options &options)
      : context(context), options(options) {}
  llvm::Error run();

private:
  llvm::Error findKernels(llvm::StringRef chip);
  llvm::Error execute(const Kernel &kernel, LLVM::LLVMFuncOp function,
                      llvm::StringRef ptx, int32_t ptxVersion);

  MLIRContext *context;
  const Options &options;
  std::string chip;
  std::vector<Kernel> kernels;
  llvm::StringMap<int64_t> sharedBytes;
};
} // namespace

/// Brings the source to stage 2 and lists its matmuls.
llvm::Error Execution::findKernels(llvm::StringRef chip) {
  auto source = parseFile(context, options.source);
  if (!source)
    return source.takeError();
  PipelineOptions pipeline;
  pipeline.chip = chip.str();
  pipeline.config = options.config.getValue();
  pipeline.m = options.tokens.getValue();
  pipeline.verifyStages = false;
  PassManager manager(context);
  bool imported = false, configured = true;
  (*source)->walk([&](MatmulOp op) {
    imported = true;
    configured &= bool(op.getLoweringConfigAttr());
  });
  if (!imported)
    buildImportPipeline(manager, pipeline);
  if (!imported || !configured)
    buildConfigurePipeline(manager, pipeline);
  if (failed(manager.run(**source)))
    return makeError("the source does not lower to stage 2");
  (*source)->walk([&](MatmulOp op) {
    Kernel kernel;
    kernel.name = op->getParentOfType<func::FuncOp>().getName().str();
    kernel.problem = op.getProblem();
    kernel.config = op.getLoweringConfigAttr().getConfig();
    kernels.push_back(std::move(kernel));
  });
  return llvm::Error::success();
}

/// The size to run: the given one where it is small, else one that the kernel
/// admits, with tails where it does.
static int64_t smallSize(int64_t given, int64_t divisor, int64_t about) {
  if (given > 0 && given <= about)
    return given;
  return std::max<int64_t>(1, (about + divisor - 1) / divisor) * divisor;
}

llvm::Error Execution::execute(const Kernel &kernel, LLVM::LLVMFuncOp function,
                               llvm::StringRef ptx, int32_t ptxVersion) {
  MatmulProblem problem = kernel.problem;
  KernelArtifacts artifacts;
  artifacts.name = kernel.name;
  artifacts.launch =
      describeMatmulLaunch(problem, kernel.config, kernel.name, chip,
                           ptxVersion, sharedBytes.lookup(kernel.name));
  artifacts.ptx = ptx.str();
  if (llvm::Error error = artifacts.launch.verify())
    return error;
  problem.n = smallSize(problem.n, artifacts.launch.nDivisor, 200);
  problem.k = smallSize(problem.k, artifacts.launch.kDivisor, 320);
  llvm::Expected<HostLayer> layer = makeRandomLayer(problem, 3);
  if (!layer)
    return layer.takeError();
  std::unique_ptr<Executor> executor = createEmulatorExecutor();
  if (llvm::Error error = executor->load(artifacts))
    return error;
  llvm::SmallVector<int64_t> counts = {1, 17};
  if (problem.m > 0)
    counts = {problem.m};
  for (int64_t m : counts) {
    CheckOptions checks;
    checks.seed = 3;
    llvm::Expected<CheckReport> report =
        runAndCheck(*executor, artifacts, *layer, m, checks);
    std::string what = kernel.name + " on " + chip +
                       ", m = " + std::to_string(m) +
                       ", n = " + std::to_string(problem.n) +
                       ", k = " + std::to_string(problem.k);
    if (!report)
      return makeError(what + ": " + toString(report.takeError()));
    if (!report->ok)
      return makeError(what + ": " + report->detail);
    llvm::outs() << "executed " << what << '\n';
  }
  return llvm::Error::success();
}

llvm::Error Execution::run() {
  auto lowered = parseFile(context, options.lowered);
  if (!lowered)
    return lowered.takeError();
  auto target = (*lowered)->getOperation()->getAttrOfType<NVVM::NVVMTargetAttr>(
      "hquant.target");
  if (!target)
    return makeError("expected a module of stage 4 with hquant.target");
  chip = target.getChip().str();
  if (llvm::Error error = findKernels(chip))
    return error;
  if (kernels.empty())
    return makeError("no hquant.matmul in the source");
  llvm::Expected<const TargetInfo *> info = getTargetInfo(chip);
  if (!info)
    return info.takeError();

  gpu::GPUModuleOp module;
  llvm::StringMap<LLVM::LLVMFuncOp> functions;
  (*lowered)->walk([&](gpu::GPUModuleOp op) { module = op; });
  if (!module)
    return makeError("no gpu.module in the lowered module");
  module.walk([&](LLVM::LLVMFuncOp function) {
    if (auto bytes =
            function->getAttrOfType<IntegerAttr>("hquant.shared_memory"))
      sharedBytes[function.getName()] = bytes.getInt();
    function->removeAttr("hquant.shared_memory");
    functions[function.getName()] = function;
  });
  int32_t ptxVersion = 0;
  for (const Kernel &kernel : kernels) {
    LLVM::LLVMFuncOp function = functions.lookup(kernel.name);
    if (!function)
      return makeError("@" + kernel.name + " is not in the lowered module");
    auto block = function->getAttrOfType<DenseI32ArrayAttr>("nvvm.reqntid");
    if (!block || block[0] != int32_t(kernel.config.blockThreads()))
      return makeError("@" + kernel.name +
                       " was lowered with another config; give --config and "
                       "--tokens as the pipeline got them");
    ptxVersion = std::max(
        ptxVersion, requiredPtxVersion(kernel.problem, kernel.config, **info));
  }
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, llvmContext);
  if (!llvmModule)
    return makeError("the lowered module does not translate to LLVM IR");
  if (llvm::Error error = optimizeModule(*llvmModule, chip, ptxVersion))
    return error;
  auto ptx = emitPtx(std::move(llvmModule), chip, ptxVersion);
  if (!ptx)
    return ptx.takeError();
  for (const Kernel &kernel : kernels)
    if (llvm::Error error =
            execute(kernel, functions.lookup(kernel.name), *ptx, ptxVersion))
      return error;
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Options options;
  llvm::cl::ParseCommandLineOptions(
      argc, argv, "Executes what a test has lowered on the emulator.\n");
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadDialect<HQuantDialect, arith::ArithDialect, func::FuncDialect,
                      gpu::GPUDialect, linalg::LinalgDialect, LLVM::LLVMDialect,
                      NVVM::NVVMDialect, tensor::TensorDialect>();
  if (llvm::Error error = Execution(&context, options).run()) {
    llvm::errs() << "humming-execute: error: "
                 << llvm::toString(std::move(error)) << '\n';
    return 1;
  }
  return 0;
}
