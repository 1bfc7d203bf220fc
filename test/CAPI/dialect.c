/*===- dialect.c - The dialect through MLIR's C API -----------------------===*\
|*                                                                            *|
|* Part of the Humming project, under the Apache License v2.0 with LLVM       *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

// RUN: humming-capi-dialect-test 2>&1 | FileCheck %s

#include "humming-c/Dialect.h"
#include "mlir-c/IR.h"
#include "mlir-c/Pass.h"
#include <stdio.h>

/* Outside of a function, so that no other dialect is needed. */
static const char *const source =
    "%w, %s = \"test.source\"() : () -> (tensor<4x128xi4>, tensor<4x1xf16>)\n"
    "%0 = hquant.dequantize %w scales(%s : tensor<4x1xf16>)\n"
    "       quant_type = <u4, scale = f16, group = 128>\n"
    "       : tensor<4x128xi4> -> tensor<4x128xf16>\n"
    "\"test.sink\"(%0) : (tensor<4x128xf16>) -> ()\n";

static void print(MlirStringRef text, void *unused) {
  (void)unused;
  fwrite(text.data, 1, text.length, stdout);
}

static int verifyStage(MlirContext context, MlirModule module,
                       const char *stage) {
  MlirPassManager manager = mlirPassManagerCreate(context);
  char pipeline[80];
  snprintf(pipeline, sizeof pipeline, "hquant-verify-stage{stage=%s}", stage);
  MlirLogicalResult result = mlirOpPassManagerAddPipeline(
      mlirPassManagerGetAsOpPassManager(manager),
      mlirStringRefCreateFromCString(pipeline), print, NULL);
  if (mlirLogicalResultIsSuccess(result))
    result = mlirPassManagerRunOnOp(manager, mlirModuleGetOperation(module));
  mlirPassManagerDestroy(manager);
  return mlirLogicalResultIsSuccess(result);
}

int main(void) {
  /* Errors go to the other stream; keep the order. */
  setbuf(stdout, NULL);
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__hquant__(), registry);
  hummingRegisterAllExtensions(registry);
  hummingRegisterAllPasses();
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirContextAppendDialectRegistry(context, registry);
  mlirContextLoadAllAvailableDialects(context);
  mlirContextSetAllowUnregisteredDialects(context, true);

  // CHECK: dialect: hquant
  MlirStringRef name =
      mlirDialectHandleGetNamespace(mlirGetDialectHandle__hquant__());
  printf("dialect: %.*s\n", (int)name.length, name.data);

  /* The dialect parses and prints its attributes. */
  // CHECK: #hquant.quant_type<u4, scale = f16, group = 64, zero_point = int>
  MlirAttribute attribute = mlirAttributeParseGet(
      context,
      mlirStringRefCreateFromCString(
          "#hquant.quant_type<u4, scale = f16, group = 64, zero_point = int>"));
  if (mlirAttributeIsNull(attribute))
    return 1;
  mlirAttributePrint(attribute, print, NULL);
  printf("\n");

  /* An op parses, and a pass runs on it: stage 1 it is, stage 3 it is not. */
  // CHECK: hquant.dequantize
  MlirModule module =
      mlirModuleCreateParse(context, mlirStringRefCreateFromCString(source));
  if (mlirModuleIsNull(module))
    return 2;
  mlirOperationPrint(mlirModuleGetOperation(module), print, NULL);
  // CHECK: operator: 1
  // CHECK: error: {{.*}}expected no op of hquant on tensors
  // CHECK: tile: 0
  printf("operator: %d\n", verifyStage(context, module, "operator"));
  printf("tile: %d\n", verifyStage(context, module, "tile"));

  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  mlirDialectRegistryDestroy(registry);
  return 0;
}
