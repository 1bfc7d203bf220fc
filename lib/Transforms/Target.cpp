//===- Target.cpp - The chip that a module is configured for ----*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Transforms/Transforms.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

FailureOr<const TargetInfo *> humming::getTargetOf(Operation *op) {
  StringRef name = HQuantDialect::getTargetAttrName();
  for (Operation *scope = op; scope; scope = scope->getParentOp()) {
    Attribute value = scope->getDiscardableAttr(name);
    if (!value)
      continue;
    auto target = dyn_cast<NVVM::NVVMTargetAttr>(value);
    if (!target)
      return scope->emitOpError()
             << "expected " << name << " to be a #nvvm.target, got " << value;
    llvm::Expected<const TargetInfo *> info = getTargetInfo(target.getChip());
    if (!info)
      return scope->emitOpError()
             << name << ": " << llvm::toString(info.takeError());
    return *info;
  }
  return op->emitOpError()
         << "expected an attribute " << name
         << " = #nvvm.target<chip = ...> around it, got none; run "
            "hquant-select-lowering-config with a chip";
}

void humming::setTarget(ModuleOp module, const TargetInfo &target) {
  module->setDiscardableAttr(
      HQuantDialect::getTargetAttrName(),
      NVVM::NVVMTargetAttr::get(module.getContext(), /*optLevel=*/2,
                                "nvptx64-nvidia-cuda", target.chip));
}
