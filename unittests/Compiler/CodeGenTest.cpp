//===- CodeGenTest.cpp - Code generation survives LLVM's aborts -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An instruction that the chip lacks makes LLVM abort ("cannot select"). In a
// process that compiles on demand this must be an error, and the next compile
// must work.
//
//===----------------------------------------------------------------------===//

#include "CodeGen.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "gtest/gtest.h"

using namespace humming;

/// A kernel that orders its launch behind its predecessor's: sm_90 on.
static std::unique_ptr<llvm::Module> makeModule(llvm::LLVMContext &context) {
  auto module = std::make_unique<llvm::Module>("test", context);
  auto *function = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), false),
      llvm::Function::ExternalLinkage, "kernel", *module);
  function->setCallingConv(llvm::CallingConv::PTX_Kernel);
  llvm::IRBuilder<> builder(
      llvm::BasicBlock::Create(context, "entry", function));
  builder.CreateIntrinsic(llvm::Intrinsic::nvvm_griddepcontrol_wait, {});
  builder.CreateRetVoid();
  return module;
}

TEST(CodeGen, CrashIsAnErrorAndTheNextCompileWorks) {
  // Half-run passes still point into the context, so it is not destroyed.
  auto *context = new llvm::LLVMContext;
  llvm::Expected<std::string> old =
      emitPtx(makeModule(*context), "sm_75", /*ptxVersion=*/63);
  ASSERT_FALSE(static_cast<bool>(old));
  EXPECT_NE(llvm::toString(old.takeError()).find("crashed inside LLVM"),
            std::string::npos);

  llvm::LLVMContext fresh;
  llvm::Expected<std::string> good =
      emitPtx(makeModule(fresh), "sm_90", /*ptxVersion=*/78);
  ASSERT_TRUE(static_cast<bool>(good)) << llvm::toString(good.takeError());
  EXPECT_NE(good->find("griddepcontrol.wait"), std::string::npos);
}
