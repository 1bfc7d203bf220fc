//===- humming-plugin.cpp - Humming for a stock mlir-opt ------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   mlir-opt-22 --load-dialect-plugin=humming-plugin.so \
//               --load-pass-plugin=humming-plugin.so --hquant-...
//
// The two entry points are all that the library exports: the program's MLIR
// must stay the only one in the process.
//
//===----------------------------------------------------------------------===//

#include "Humming/InitAll.h"
#include "Humming/Version.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

extern "C" LLVM_ATTRIBUTE_WEAK
    LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::DialectPluginLibraryInfo
    mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Humming", HUMMING_VERSION,
          [](mlir::DialectRegistry *registry) {
            humming::registerAllDialects(*registry);
            humming::registerAllExtensions(*registry);
          }};
}

extern "C" LLVM_ATTRIBUTE_WEAK
    LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::PassPluginLibraryInfo
    mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Humming", HUMMING_VERSION,
          []() { humming::registerAllPasses(); }};
}
