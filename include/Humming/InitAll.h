//===- InitAll.h - Registers everything of Humming -------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a program calls to have all of Humming in its MLIR tools. Nothing is
// registered by a global constructor: a program that calls none of these has
// none of it. Each registers Humming's own things only; what its passes create
// of other dialects, they name as dependent dialects.
//
//   mlir::DialectRegistry registry;
//   humming::registerAllDialects(registry);
//   humming::registerAllExtensions(registry);
//   humming::registerAllPasses();
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_INITALL_H
#define HUMMING_INITALL_H

#include "Humming/Conversion/Passes.h"
#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Transforms/Passes.h"
#include "Humming/Transforms/Pipelines.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

namespace humming {

/// Adds Humming's dialects to `registry`.
inline void registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<hquant::HQuantDialect>();
}

/// Adds the interface implementations of other dialects that translating a
/// stage 4 kernel to LLVM IR needs. Registering them twice does no harm.
inline void registerAllExtensions(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerGPUDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
}

/// Registers the passes (`hquant-...`, `convert-...`) and the pipelines
/// (`humming-...`) by name, for the whole process.
inline void registerAllPasses() {
  registerHummingConversionPasses();
  registerHummingTransformsPasses();
  registerPipelines();
}

} // namespace humming

#endif // HUMMING_INITALL_H
