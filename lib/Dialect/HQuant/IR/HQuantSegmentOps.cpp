//===- HQuantSegmentOps.cpp - Verifiers of quantization's tile ops --------===//
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
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

/// segment_c1: the threads of a segment neighbour each other and make whole
/// warps or equal parts of one.
static LogicalResult verifyLanes(Operation *op, int64_t lanes) {
  if (lanes >= 2 && lanes <= 1024 && llvm::isPowerOf2_64(uint64_t(lanes)))
    return success();
  return op->emitOpError("expected lanes to be a power of two from 2 to 1024, "
                         "got ")
         << lanes;
}

/// segment_c2: a thread's values are chunks of 8.
static LogicalResult verifyValues(Operation *op, Value values) {
  auto type = cast<VectorType>(values.getType());
  if (type.getDimSize(1) == 8)
    return success();
  return op->emitOpError("expected values of type vector<Cx8xf32>, got ")
         << type;
}

/// segment_c3: what a row's alignment promises, in bytes.
static LogicalResult verifyGranule(Operation *op, int64_t granule,
                                   int64_t least) {
  if (granule >= least && granule <= 16 &&
      llvm::isPowerOf2_64(uint64_t(granule)))
    return success();
  return op->emitOpError("expected granule to be a power of two from ")
         << least << " to 16, got " << granule;
}

static bool isCodeFormat(const NumberFormat &format) {
  return format == NumberFormat::smallFloat(4, 3) ||
         format == NumberFormat::smallFloat(5, 2) ||
         format == NumberFormat::signedInt(8) ||
         format == NumberFormat::signedInt(4);
}

/// segment_c4
static LogicalResult verifyCodes(Operation *op, const NumberFormat &format) {
  if (isCodeFormat(format))
    return success();
  return op->emitOpError("expected codes of e4m3, e5m2, s8 or s4, got ")
         << format.str();
}

/// segment_c5: a second range and a zero point belong to asymmetric codes.
static LogicalResult verifyPair(Operation *op, bool operand, bool result,
                                StringRef what) {
  if (operand == result)
    return success();
  return op->emitOpError("expected ")
         << (operand ? "" : "no ") << what << " in the results as in the "
         << "operands";
}

LogicalResult LoadSegmentOp::verify() {
  if (failed(verifyLanes(*this, getLanes())) ||
      failed(verifyValues(*this, getValues())) ||
      failed(verifyGranule(*this, getGranule(), 2)))
    return failure();
  // segment_c6
  NumberFormat format = getFormat().getFormat();
  if (!format.isF16() && !format.isBF16())
    return emitOpError("expected format f16 or bf16, got ") << format.str();
  // segment_c7
  StringRef gate = getGate().value_or("none");
  llvm::Expected<GateKind> kind = parseGateKind(gate);
  if (!kind)
    return emitOpError("gate: ") << llvm::toString(kind.takeError());
  if ((*kind != GateKind::None) != bool(getGateStride()))
    return emitOpError("expected a gate_stride with a gate alone, got gate ")
           << gate << (getGateStride() ? " and a stride" : " and none");
  return success();
}

LogicalResult SegmentRangeOp::verify() {
  if (failed(verifyValues(*this, getValues())))
    return failure();
  return verifyPair(*this, bool(getLow()), bool(getNewLow()), "low end");
}

LogicalResult SegmentScaleOp::verify() {
  if (failed(verifyLanes(*this, getLanes())) ||
      failed(verifyCodes(*this, getCodes().getFormat())) ||
      failed(verifyPair(*this, bool(getLow()), bool(getZeroPoint()),
                        "zero point")))
    return failure();
  // segment_c8
  NumberFormat format = getFormat().getFormat();
  if (!format.isF32() && !(format.isE8M0() && !getLow()))
    return emitOpError("expected scales of f32, or of e8m0 without zero "
                       "points, got ")
           << format.str();
  // segment_c9: two words a warp, of at most 32 warps.
  auto scratch = cast<MemRefType>(getScratch().getType());
  if (scratch.getRank() != 1 || scratch.getDimSize(0) < 256)
    return emitOpError(
               "expected scratch of rank 1 and at least 256 bytes, got ")
           << scratch;
  return success();
}

LogicalResult StaticScaleOp::verify() {
  return verifyPair(*this, bool(getZeroPoints()), bool(getZeroPoint()),
                    "zero point");
}

LogicalResult StoreSegmentOp::verify() {
  if (failed(verifyLanes(*this, getLanes())) ||
      failed(verifyValues(*this, getValues())) ||
      failed(verifyGranule(*this, getGranule(), 1)) ||
      failed(verifyCodes(*this, getFormat().getFormat())))
    return failure();
  // segment_c10
  if (getZeroPoint() && getFormat().getFormat() != NumberFormat::signedInt(8))
    return emitOpError("expected a zero point with s8 codes, got ")
           << getFormat().getFormat().str();
  return success();
}

LogicalResult StoreScaleOp::verify() {
  if (failed(verifyLanes(*this, getLanes())))
    return failure();
  // segment_c11
  if (getElementBits() != 8 && getElementBits() != 32)
    return emitOpError("expected element_bits 8 or 32, got ")
           << int64_t(getElementBits());
  return success();
}
