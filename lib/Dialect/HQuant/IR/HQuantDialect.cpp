//===- HQuantDialect.cpp - The hquant dialect -------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace humming::hquant;

#include "Humming/Dialect/HQuant/IR/HQuantDialect.cpp.inc"

void HQuantDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "Humming/Dialect/HQuant/IR/HQuantOps.cpp.inc"
      >();
}

Operation *HQuantDialect::materializeConstant(OpBuilder &builder,
                                              Attribute value, Type type,
                                              Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}
