//===- CodeGen.cpp - Stage 4 to PTX -----------------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeGen.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/DCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include <mutex>

using namespace llvm;

extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

static Expected<std::unique_ptr<TargetMachine>>
createTargetMachine(StringRef chip, int32_t ptxVersion) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError("no NVPTX target in this LLVM: " + error);
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(
      triple, chip, "+ptx" + std::to_string(ptxVersion), TargetOptions(),
      std::nullopt, std::nullopt, CodeGenOptLevel::Aggressive));
  if (!machine)
    return createStringError("LLVM made no target machine for " + chip);
  return std::move(machine);
}

/// Runs `body`, turning a crash (LLVM aborts where instruction selection fails)
/// into an error.
static Error guarded(StringRef what, function_ref<void()> body) {
  static std::mutex mutex; // Enable and Disable change the process
  std::lock_guard<std::mutex> lock(mutex);
  CrashRecoveryContext::Enable();
  CrashRecoveryContext context;
  bool ok = context.RunSafely(body);
  CrashRecoveryContext::Disable();
  if (ok)
    return Error::success();
  return createStringError(
      what + " crashed inside LLVM; the instructions of this kernel are "
             "probably not in the chip's PTX version. Please report it with "
             "the output of --emit stage4");
}

Error humming::optimizeModule(Module &module, StringRef chip,
                              int32_t ptxVersion) {
  auto machine = createTargetMachine(chip, ptxVersion);
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());

  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
  PassBuilder builder(machine->get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);

  FunctionPassManager passes;
  passes.addPass(EarlyCSEPass());
  passes.addPass(InstCombinePass(InstCombineOptions().setMaxIterations(1)));
  passes.addPass(SimplifyCFGPass());
  // Everything of a copy that is a function of the thread leaves the K loop.
  passes.addPass(createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()),
                                                 /*UseMemorySSA=*/true));
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(DCEPass());
  return guarded("optimization", [&] {
    for (Function &function : module)
      if (!function.isDeclaration())
        passes.run(function, functions);
  });
}

Expected<std::string> humming::emitPtx(std::unique_ptr<Module> module,
                                       StringRef chip, int32_t ptxVersion) {
  auto machine = createTargetMachine(chip, ptxVersion);
  if (!machine)
    return machine.takeError();
  SmallString<0> ptx;
  ptx.reserve(1 << 18);
  bool emitted = true;
  Error error = guarded("code generation", [&] {
    raw_svector_ostream stream(ptx);
    legacy::PassManager passes;
    emitted = !(*machine)->addPassesToEmitFile(passes, stream, nullptr,
                                               CodeGenFileType::AssemblyFile);
    if (emitted)
      passes.run(*module);
  });
  if (error) {
    // Half-run passes still point into the module and its context.
    (void)module.release();
    (void)machine->release();
    return std::move(error);
  }
  if (!emitted)
    return createStringError("LLVM cannot emit assembly for " + chip);
  return ptx.str().str();
}
