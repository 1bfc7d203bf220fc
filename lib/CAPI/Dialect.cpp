//===- Dialect.cpp - C API: the hquant dialect for MLIR's C API -----------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "humming-c/Dialect.h"
#include "Humming/InitAll.h"
#include "mlir/CAPI/Registration.h"

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(HQuant, hquant,
                                      humming::hquant::HQuantDialect)

void hummingRegisterAllExtensions(MlirDialectRegistry registry) {
  humming::registerAllExtensions(*unwrap(registry));
}

void hummingRegisterAllPasses(void) { humming::registerAllPasses(); }
