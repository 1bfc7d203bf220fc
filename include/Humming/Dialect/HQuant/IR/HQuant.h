//===- HQuant.h - The hquant dialect: attributes and ops --------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one header that users of the dialect include. Of other dialects it pulls
// in the LLVM dialect's types only.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_DIALECT_HQUANT_IR_HQUANT_H
#define HUMMING_DIALECT_HQUANT_IR_HQUANT_H

#include "Humming/Quant/QuantType.h"
#include "Humming/Target/KernelConfig.h"
#include "Humming/Target/Quantize.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace humming {

// Found by argument-dependent lookup when attributes are uniqued.
llvm::hash_code hash_value(const NumberFormat &format);
llvm::hash_code hash_value(const Granularity &granularity);
llvm::hash_code hash_value(const QuantType &type);
llvm::hash_code hash_value(const KernelConfig &config);
llvm::hash_code hash_value(const QuantizeConfig &config);

namespace hquant {
/// The builtin float type of `format`, or null where builtin has none.
mlir::Type getFloatType(mlir::MLIRContext *context, const NumberFormat &format);
/// The format of a builtin float type (`f16`, `f8E4M3FN`, ...), if it is one.
std::optional<NumberFormat> getFormatOf(mlir::Type type);

/// Registers of the largest fragment that the tile stage takes apart.
constexpr int64_t kMaxFragmentRegisters = 4096;
/// Whether `type` is a vector of fixed shape with at most that many elements.
bool isFragment(mlir::Type type);
/// Whether `type` is a static, contiguous memref in workgroup memory.
bool isWorkgroupBuffer(mlir::Type type);

/// The A registers of a step with everything but part `part` of `parts` equal
/// parts of its K (1, 2 or 4; a quarter only of 4-bit operands) set to zero.
/// `makeZero`, where given, supplies the registers of the other half.
llvm::SmallVector<mlir::Value>
keepPart(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange a,
         int64_t part, int64_t parts,
         llvm::function_ref<mlir::Value()> makeZero = nullptr);
} // namespace hquant

} // namespace humming

#include "Humming/Dialect/HQuant/IR/HQuantDialect.h.inc"
#include "Humming/Dialect/HQuant/IR/HQuantEnums.h.inc"

#include "Humming/Dialect/HQuant/IR/HQuantInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "Humming/Dialect/HQuant/IR/HQuantAttrs.h.inc"

#define GET_OP_CLASSES
#include "Humming/Dialect/HQuant/IR/HQuantOps.h.inc"

#endif // HUMMING_DIALECT_HQUANT_IR_HQUANT_H
