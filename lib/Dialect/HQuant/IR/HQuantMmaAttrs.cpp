//===- HQuantMmaAttrs.cpp - MMA kinds: shapes and emission ------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

#include "Humming/Dialect/HQuant/IR/HQuantInterfaces.cpp.inc"

//===----------------------------------------------------------------------===//
// #hquant.sync_mma
//===----------------------------------------------------------------------===//

Attribute SyncMmaAttr::parse(AsmParser &parser, Type) {
  StringRef shapeName, formatName;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&shapeName) ||
      parser.parseComma())
    return {};
  SMLoc formatLoc = parser.getCurrentLocation();
  if (parser.parseKeyword(&formatName) || parser.parseGreater())
    return {};
  std::optional<MmaKind> shape;
  for (MmaKind kind : {MmaKind::M16N8K8, MmaKind::M16N8K16})
    if (stringify(kind) == shapeName)
      shape = kind;
  if (!shape) {
    parser.emitError(loc, "expected an mma shape (m16n8k8 or m16n8k16), got '")
        << shapeName << "'";
    return {};
  }
  llvm::Expected<NumberFormat> format = NumberFormat::parse(formatName);
  if (!format) {
    parser.emitError(formatLoc, llvm::toString(format.takeError()));
    return {};
  }
  return parser.getChecked<SyncMmaAttr>(loc, parser.getContext(), *shape,
                                        *format);
}

void SyncMmaAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringify(getShape()) << ", " << getOperand().str() << ">";
}

LogicalResult SyncMmaAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  MmaKind shape, NumberFormat operand) {
  if (!operand.isF16() && !operand.isBF16())
    return emitError() << "expected mma operands of f16 or bf16, got "
                       << operand.str();
  if (shape == MmaKind::M16N8K8 && !operand.isF16())
    return emitError() << "expected f16 operands for m16n8k8, got "
                       << operand.str();
  return success();
}

int64_t SyncMmaAttr::getRows() const { return 16; }
int64_t SyncMmaAttr::getColumns() const { return 8; }
int64_t SyncMmaAttr::getDepth() const {
  return getShape() == MmaKind::M16N8K8 ? 8 : 16;
}
int64_t SyncMmaAttr::getStepDepth() const { return 256 / getOperand().bits; }
NumberFormat SyncMmaAttr::getOperandFormat() const { return getOperand(); }
int64_t SyncMmaAttr::getNumARegisters() const { return 4; }
int64_t SyncMmaAttr::getNumBRegisters() const { return 2; }
int64_t SyncMmaAttr::getNumAccumulators() const { return 4; }

SmallVector<Value> SyncMmaAttr::buildStep(OpBuilder &builder, Location loc,
                                          ValueRange a, ValueRange b,
                                          ValueRange c) const {
  bool isF16 = getOperand().isF16();
  Type f32 = builder.getF32Type();
  Type resultType = LLVM::LLVMStructType::getLiteral(builder.getContext(),
                                                     {f32, f32, f32, f32});
  Type halfPair = VectorType::get(2, builder.getF16Type());
  // f16 operands are vector<2xf16> to NVVM, bf16 operands plain registers.
  auto operands = [&](ValueRange values) {
    SmallVector<Value> result;
    for (Value v : values)
      result.push_back(
          isF16 ? LLVM::BitcastOp::create(builder, loc, halfPair, v).getResult()
                : v);
    return result;
  };
  std::optional<std::array<NVVM::MMATypes, 2>> types;
  if (!isF16)
    types = {NVVM::MMATypes::bf16, NVVM::MMATypes::bf16};
  std::array<NVVM::MMALayout, 2> layouts = {NVVM::MMALayout::row,
                                            NVVM::MMALayout::col};
  SmallVector<Value> acc(c);
  auto emit = [&](ValueRange aRegs, ValueRange bRegs) {
    Value d = NVVM::MmaOp::create(builder, loc, resultType, operands(aRegs),
                                  operands(bRegs), acc, {16, 8, getDepth()},
                                  std::nullopt, std::nullopt, types, layouts);
    for (auto [i, value] : llvm::enumerate(acc))
      value = LLVM::ExtractValueOp::create(builder, loc, d, int64_t(i));
  };
  if (getShape() == MmaKind::M16N8K16) {
    emit(a, b);
  } else {
    // Registers 0 and 1 of A are k 0..7 of the step, 2 and 3 are k 8..15.
    emit(a.take_front(2), b.take_front(1));
    emit(a.drop_front(2), b.drop_front(1));
  }
  return acc;
}
