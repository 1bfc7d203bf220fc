//===- HQuantDialect.cpp - The hquant dialect -------------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace humming::hquant;

#include "Humming/Dialect/HQuant/IR/HQuantDialect.cpp.inc"

namespace {
/// Packed types are long and repeat; print their layout as `#packed_weights`.
struct HQuantAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    auto layout = dyn_cast<PackedLayoutAttr>(attr);
    if (!layout)
      return AliasResult::NoAlias;
    os << "packed_" << stringifyPackedRole(layout.getRole());
    return AliasResult::FinalAlias;
  }
};
} // namespace

void HQuantDialect::initialize() {
  registerAttributes();
  addInterfaces<HQuantAsmInterface>();
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

LogicalResult HQuantDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  if (attr.getName() != getTargetAttrName())
    return success();
  if (!isa<ModuleOp>(op))
    return op->emitOpError()
           << "expected " << getTargetAttrName() << " on a module only";
  if (!isa<NVVM::NVVMTargetAttr>(attr.getValue()))
    return op->emitOpError()
           << "expected " << getTargetAttrName()
           << " to be a #nvvm.target, got " << attr.getValue();
  return success();
}
