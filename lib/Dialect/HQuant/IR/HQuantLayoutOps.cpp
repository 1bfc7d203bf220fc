//===- HQuantLayoutOps.cpp - Verifiers of packing and gathering -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each check carries the number of its constraint in docs/HQuant.md.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "Humming/Quant/Packing.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

static bool agree(int64_t a, int64_t b) {
  return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || a == b;
}

LogicalResult GatherOp::verify() {
  auto x = cast<RankedTensorType>(getActivations().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  auto order = cast<RankedTensorType>(getOrder().getType());
  // gather_c1
  Type type = x.getElementType();
  if (!type.isF16() && !type.isBF16() && !type.isInteger(8) &&
      !isa<Float8E4M3FNType, Float8E5M2Type>(type))
    return emitOpError("expected activations of f16, bf16, f8E4M3FN, f8E5M2 or "
                       "i8, got ")
           << type;
  // gather_c2
  if (result.getElementType() != type)
    return emitOpError("expected a result of the activations' ")
           << type << ", got " << result.getElementType();
  // gather_c3
  if (!agree(x.getDimSize(0), result.getDimSize(0)))
    return emitOpError("expected a result of ")
           << x.getDimSize(0) << " rows as the activations have, got "
           << result.getDimSize(0);
  // gather_c4
  if (!agree(order.getDimSize(0), result.getDimSize(1)))
    return emitOpError("expected an index for each of the ")
           << result.getDimSize(1) << " columns of the result, got "
           << order.getDimSize(0);
  return success();
}

LogicalResult PackUnitOp::verify() {
  // layout_c1
  int64_t a = getActivationBits(), bits = getWeightBits();
  if (a < 0 || bits < 0 || a > 16 || bits > 8)
    return emitOpError("expected activations of 16, 8 or 4 bits and weights of "
                       "1 to 8, got ")
           << a << " and " << bits;
  if (llvm::Error error = checkPackedWidths(unsigned(a), unsigned(bits)))
    return emitOpError(llvm::toString(std::move(error)));
  // layout_c2: the codes of a register are adjacent.
  int64_t granule = getGranule();
  if (granule != 1 && granule != 2 && granule != 4)
    return emitOpError("expected granule 1, 2 or 4, got ") << granule;
  return success();
}

LogicalResult GatherRowOp::verify() {
  // layout_c3
  int64_t bits = getElementBits();
  if (bits != 8 && bits != 16)
    return emitOpError("expected element_bits 8 or 16, got ") << bits;
  // layout_c4
  int64_t granule = getGranule();
  if (granule < bits / 8 || granule > 16 || !llvm::isPowerOf2_64(granule))
    return emitOpError("expected granule a power of two from ")
           << bits / 8 << " to 16, got " << granule;
  return success();
}
