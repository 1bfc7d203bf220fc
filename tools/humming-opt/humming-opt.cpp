//===- humming-opt.cpp - The passes, one at a time ------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mlir-opt with Humming's dialect, passes and pipelines beside all of MLIR's:
// every stage can be entered, looked at, changed and left here.
//
//===----------------------------------------------------------------------===//

#include "Humming/InitAll.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  humming::registerAllDialects(registry);
  humming::registerAllExtensions(registry);
  humming::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Humming: quantized matrix multiplication\n", registry));
}
