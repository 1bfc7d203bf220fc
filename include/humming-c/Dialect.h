/*===- Dialect.h - C API: the hquant dialect for MLIR's C API ----*- C -*-===*\
|*                                                                            *|
|* Part of the Humming project, under the Apache License v2.0 with LLVM       *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Beside MLIR's own C API (mlir-c/), which a program links for itself:       *|
|*                                                                            *|
|*   MlirDialectRegistry registry = mlirDialectRegistryCreate();              *|
|*   mlirDialectHandleInsertDialect(                                          *|
|*       mlirGetDialectHandle__hquant__(), registry);                         *|
|*   hummingRegisterAllPasses();                                              *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef HUMMING_C_DIALECT_H
#define HUMMING_C_DIALECT_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The handle of the `hquant` dialect: `mlirGetDialectHandle__hquant__()`. */
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(HQuant, hquant);

/** Adds what the translation of a kernel to LLVM IR needs of other dialects. */
MLIR_CAPI_EXPORTED void
hummingRegisterAllExtensions(MlirDialectRegistry registry);

/** Registers the passes and pipelines by name, for the whole process. */
MLIR_CAPI_EXPORTED void hummingRegisterAllPasses(void);

#ifdef __cplusplus
}
#endif

#endif /* HUMMING_C_DIALECT_H */
