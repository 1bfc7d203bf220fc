//===- HQuantOps.cpp - Verifiers of the tensor ops --------------*- C++ -*-===//
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
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

#define GET_OP_CLASSES
#include "Humming/Dialect/HQuant/IR/HQuantOps.cpp.inc"

static RankedTensorType getTensor(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isDynamic(int64_t extent) { return ShapedType::isDynamic(extent); }

/// Two extents agree unless both are known and differ.
static bool agree(int64_t a, int64_t b) {
  return isDynamic(a) || isDynamic(b) || a == b;
}

static bool agree(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return a.size() == b.size() &&
         llvm::all_of(llvm::zip_equal(a, b), [](auto pair) {
           return agree(std::get<0>(pair), std::get<1>(pair));
         });
}

/// A shape as in a type: `4096x?`.
static std::string str(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t extent : shape) {
    if (!text.empty())
      text += 'x';
    text += isDynamic(extent) ? "?" : std::to_string(extent);
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Quantized operands
//===----------------------------------------------------------------------===//

namespace {
/// The operands that carry a quantized matrix, and what they must look like.
struct QuantizedOperands {
  Operation *op;
  QuantTypeAttr type;
  Value scales;
  Value zeroPoints;
  /// Null for logical operands, else the weights' layout.
  PackedLayoutAttr layout;
  /// Extents of the weights.
  int64_t n, k;

  LogicalResult verify() const;

private:
  LogicalResult verifyOne(Value value, StringRef name, Type logicalType,
                          PackedRole role) const;
};
} // namespace

LogicalResult QuantizedOperands::verifyOne(Value value, StringRef name,
                                           Type logicalType,
                                           PackedRole role) const {
  SmallVector<int64_t> shape =
      llvm::to_vector(ArrayRef<int64_t>(type.getScaleShape(n, k)));
  Type elementType = logicalType;
  if (layout) {
    PackedLayoutAttr expected = layout.withRole(role);
    shape = llvm::to_vector(ArrayRef<int64_t>(expected.getPackedShape(shape)));
    elementType = expected.getPackedElementType(logicalType);
  }
  RankedTensorType got = getTensor(value);
  if (got.getElementType() != elementType)
    return op->emitOpError() << "expected " << name << " of " << elementType
                             << ", got " << got.getElementType();
  if (!agree(got.getShape(), shape))
    return op->emitOpError() << "expected " << name << " of shape "
                             << str(shape) << ", got " << str(got.getShape());
  return success();
}

LogicalResult QuantizedOperands::verify() const {
  // matmul_c8, matmul_c9, dequantize_c2, dequantize_c3
  if (failed(
          verifyOne(scales, "scales", type.getScaleType(), PackedRole::Scales)))
    return failure();
  // matmul_c10, dequantize_c4
  Type zeroPointType = type.getZeroPointType();
  if (!zeroPointType != !zeroPoints)
    return op->emitOpError() << "expected " << (zeroPointType ? "" : "no ")
                             << "zero points with zero_point = "
                             << stringify(type.getZeroPointKind()) << ", got "
                             << (zeroPoints ? "some" : "none");
  // matmul_c11, matmul_c12, dequantize_c5, dequantize_c6
  if (zeroPoints && failed(verifyOne(zeroPoints, "zero points", zeroPointType,
                                     PackedRole::ZeroPoints)))
    return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// MatmulOp
//===----------------------------------------------------------------------===//

bool MatmulOp::isPacked() {
  return bool(PackedLayoutAttr::of(getWeights().getType()));
}

/// The more precise of two extents that agree.
static int64_t refine(int64_t a, int64_t b) { return isDynamic(a) ? b : a; }

int64_t MatmulOp::getM() {
  return refine(getTensor(getResult()).getDimSize(0),
                getTensor(getActivations()).getDimSize(0));
}

int64_t MatmulOp::getN() {
  int64_t n = getTensor(getResult()).getDimSize(1);
  if (Value bias = getBias())
    n = refine(n, getTensor(bias).getDimSize(0));
  // Packed words have forgotten the extents before padding.
  bool known = getTensor(getWeights()).getRank() == 2;
  return known ? refine(n, getTensor(getWeights()).getDimSize(0)) : n;
}

int64_t MatmulOp::getK() {
  int64_t k = getTensor(getActivations()).getDimSize(1);
  bool known = getTensor(getWeights()).getRank() == 2;
  return known ? refine(k, getTensor(getWeights()).getDimSize(1)) : k;
}

NumberFormat MatmulOp::getActivationFormat() {
  Type type = getTensor(getActivations()).getElementType();
  return type.isInteger()
             ? NumberFormat::signedInt(type.getIntOrFloatBitWidth())
             : *getFormatOf(type);
}

MatmulProblem MatmulOp::getProblem() {
  auto known = [](int64_t extent) { return isDynamic(extent) ? 0 : extent; };
  MatmulProblem problem;
  problem.activation = getActivationFormat();
  if (std::optional<StringRef> kind = getActivationScale()) {
    llvm::Expected<ActivationScaleKind> parsed =
        parseActivationScaleKind(*kind);
    if (parsed)
      problem.activationScale = *parsed;
    else
      llvm::consumeError(parsed.takeError());
  }
  problem.weight = getQuantType().getQuantType();
  if (getScaleRows())
    problem.weight.granularity.rows = int32_t(*getScaleRows());
  problem.output = *getFormatOf(getTensor(getResult()).getElementType());
  problem.hasBias = bool(getBias());
  problem.activationGroup = int32_t(getActivationGroup().value_or(0));
  if (getActivationScales())
    problem.activationScaleFormat =
        *getFormatOf(getTensor(getActivationScales()).getElementType());
  problem.activationZeroPoint = bool(getActivationZeroPoints());
  if (getAccumulate() == "f16")
    problem.accumulator = NumberFormat::f16();
  problem.m = known(getM());
  problem.n = known(getN());
  problem.k = known(getK());
  problem.deriveDivisors();
  PackedLayoutAttr layout = PackedLayoutAttr::of(getWeights().getType());
  if (!layout)
    problem.weightLayout = problem.naturalLayout();
  else if (layout.isPlain())
    problem.weightLayout = WeightLayout::Plain;
  return problem;
}

/// [ceil(k / group), m up to a multiple of 16].
static SmallVector<int64_t> getGroupScaleShape(int64_t m, int64_t k,
                                               int64_t group) {
  return {isDynamic(k) ? k : (k + group - 1) / group,
          isDynamic(m) ? m : paddedScaleTokens(m)};
}

static bool isActivationGroup(int64_t group) {
  return group >= 16 && group <= 32768 && llvm::isPowerOf2_64(uint64_t(group));
}

/// Groups, zero points and sums in half precision.
static LogicalResult verifyActivationExtras(MatmulOp op,
                                            ActivationScaleKind kind) {
  // matmul_c20
  std::optional<int64_t> group = op.getActivationGroup();
  if (group &&
      (kind != ActivationScaleKind::Token || !isActivationGroup(*group)))
    return op.emitOpError()
           << "expected activation_group with activation_scale "
              "= token and a power of two from 16 to 32768, "
              "got "
           << *group << " with " << stringify(kind);
  // matmul_c21
  if (Value scales = op.getActivationScales()) {
    RankedTensorType type = getTensor(scales);
    bool isE8M0 = isa<Float8E8M0FNUType>(type.getElementType());
    if (!type.getElementType().isF32() && !(isE8M0 && group))
      return op.emitOpError() << "expected activation scales of f32"
                              << (group ? " or f8E8M0FNU" : "") << ", got "
                              << type.getElementType();
    SmallVector<int64_t> shape =
        group ? getGroupScaleShape(op.getM(), op.getK(), *group)
              : SmallVector<int64_t>{ShapedType::kDynamic};
    if (!agree(type.getShape(), shape))
      return op.emitOpError() << "expected activation scales of shape "
                              << str(shape) << ", got " << str(type.getShape());
  }
  // matmul_c22
  Value zeroPoints = op.getActivationZeroPoints();
  bool isSigned8 = getTensor(op.getActivations()).getElementType().isInteger(8);
  if (bool(zeroPoints) != bool(op.getWeightSums()) ||
      (zeroPoints && (!isSigned8 || group)))
    return op.emitOpError()
           << "expected activation_zero_points and weight_sums together, with "
              "activations of i8 and no activation_group, got "
           << (zeroPoints ? "zero points" : "no zero points") << " and "
           << (op.getWeightSums() ? "sums" : "no sums");
  // matmul_c23
  if (std::optional<StringRef> sums = op.getAccumulate())
    if (*sums != "f32" && *sums != "f16")
      return op.emitOpError()
             << "expected accumulate of f32 or f16, got " << *sums;
  // matmul_c24
  if (std::optional<int64_t> rows = op.getScaleRows()) {
    Granularity granularity = op.getQuantType().getGranularity();
    if (!granularity.isGroup() || *rows < 1 || *rows > INT32_MAX)
      return op.emitOpError()
             << "expected scale_rows from 1 to 2147483647, with granularity "
                "group, got "
             << *rows << " with "
             << GranularityAttr::get(op.getContext(), granularity);
  }
  return success();
}

LogicalResult MatmulOp::verify() {
  RankedTensorType x = getTensor(getActivations());
  RankedTensorType w = getTensor(getWeights());
  RankedTensorType result = getTensor(getResult());

  // matmul_c1
  Type xType = x.getElementType();
  bool isNarrow = isa<Float8E4M3FNType, Float8E5M2Type>(xType) ||
                  xType.isInteger(8) || xType.isInteger(4);
  if (!xType.isF16() && !xType.isBF16() && !isNarrow)
    return emitOpError() << "expected activations of f16, bf16, f8E4M3FN, "
                            "f8E5M2, i8 or i4, got "
                         << xType;
  // matmul_c2
  if (!result.getElementType().isF16() && !result.getElementType().isBF16() &&
      !result.getElementType().isF32())
    return emitOpError() << "expected a result of f16, bf16 or f32, got "
                         << result.getElementType();
  // matmul_c3
  if (!agree(x.getDimSize(0), result.getDimSize(0)))
    return emitOpError() << "expected a result of " << x.getDimSize(0)
                         << " rows as the activations have, got "
                         << result.getDimSize(0);

  // matmul_c4
  PackedLayoutAttr layout = PackedLayoutAttr::of(w);
  SmallVector<std::pair<StringRef, Value>> operands = {
      {"weights", getWeights()}, {"scales", getScales()}};
  if (getZeroPoints())
    operands.emplace_back("zero points", getZeroPoints());
  for (auto [index, operand] : llvm::enumerate(operands)) {
    RankedTensorType type = getTensor(operand.second);
    Attribute expected;
    if (layout)
      expected = layout.isPlain() && index == 0
                     ? layout
                     : layout.withRole(PackedRole(index));
    int64_t rank = layout && !(layout.isPlain() && index == 0) ? 3 : 2;
    if (type.getEncoding() != expected || type.getRank() != rank) {
      InFlightDiagnostic diag = emitOpError()
                                << "expected " << operand.first << " ";
      if (expected)
        diag << "packed as " << expected;
      else
        diag << "logical, of rank 2 and without encoding,";
      return diag << " as the weights are, got " << type;
    }
  }
  // matmul_c5
  if (layout &&
      (layout.getActivationBits() != x.getElementTypeBitWidth() ||
       layout.getWeightBits() != getQuantType().getWeightFormat().bits))
    return emitOpError() << "expected a layout of activation_bits = "
                         << x.getElementTypeBitWidth() << ", weight_bits = "
                         << unsigned(getQuantType().getWeightFormat().bits)
                         << ", got " << layout;
  // matmul_c19
  if (layout && layout.isPlain() && !getProblem().canBePlain())
    return emitOpError() << "expected plain weights of the activations' format "
                            "and without zero points, got "
                         << getQuantType() << " with activations of " << xType;
  // matmul_c6
  Type codeType = getQuantType().getCodeType();
  if (!layout && w.getElementType() != codeType)
    return emitOpError() << "expected weights of " << codeType << ", got "
                         << w.getElementType();
  // matmul_c7
  SmallVector<int64_t> shape = {result.getDimSize(1), x.getDimSize(1)};
  if (layout)
    shape = llvm::to_vector(ArrayRef<int64_t>(layout.getPackedShape(shape)));
  if (!agree(w.getShape(), shape))
    return emitOpError() << "expected weights of shape " << str(shape)
                         << ", got " << str(w.getShape());

  QuantizedOperands quantized{*this,           getQuantType(), getScales(),
                              getZeroPoints(), layout,         getN(),
                              getK()};
  if (failed(quantized.verify()))
    return failure();

  // matmul_c13
  if (layout && getQuantType().getGranularity().rows != 1)
    return emitOpError("expected one scale per row (group or channel) with "
                       "packed operands, got ")
           << GranularityAttr::get(getContext(),
                                   getQuantType().getGranularity());
  // matmul_c16: the activation scales that activation_scale says, which 8- and
  // 4-bit activations have and others have not.
  StringRef kind = getActivationScale().value_or("none");
  llvm::Expected<ActivationScaleKind> scaleKind =
      parseActivationScaleKind(kind);
  if (!scaleKind)
    return emitOpError() << "activation_scale: "
                         << llvm::toString(scaleKind.takeError());
  bool isScaled = *scaleKind != ActivationScaleKind::None;
  if (isScaled != isNarrow || isScaled != bool(getActivationScales()))
    return emitOpError() << "expected "
                         << (isNarrow ? "activation_scale and activation_scales"
                                      : "no activation scales")
                         << " with activations of " << xType << ", got "
                         << (isScaled ? "activation_scale = " : "")
                         << (isScaled ? kind : "none")
                         << (getActivationScales() ? " and some" : " and none");
  if (failed(verifyActivationExtras(*this, *scaleKind)))
    return failure();
  // matmul_c17, matmul_c18: extents of both.
  auto verifyScales = [&](Value scales, StringRef name,
                          int64_t count) -> LogicalResult {
    if (!scales || agree(getTensor(scales).getDimSize(0), count))
      return success();
    return emitOpError() << "expected " << str({count}) << " " << name
                         << ", got " << getTensor(scales).getDimSize(0);
  };
  int64_t perTensorOrToken =
      *scaleKind == ActivationScaleKind::Tensor ? 1 : getM();
  if (!getActivationGroup() &&
      failed(verifyScales(getActivationScales(), "activation scales",
                          perTensorOrToken)))
    return failure();
  // matmul_c22: extents.
  if (failed(verifyScales(getActivationZeroPoints(), "activation zero points",
                          perTensorOrToken)) ||
      failed(verifyScales(getWeightSums(), "weight sums", getN())))
    return failure();
  GlobalScaleKind global = getQuantType().getQuantType().globalScale;
  if ((global != GlobalScaleKind::None) != bool(getGlobalScales()))
    return emitOpError() << "expected " << (getGlobalScales() ? "no " : "")
                         << "global scales, as quant_type says, got "
                         << (getGlobalScales() ? "some" : "none");
  if (failed(verifyScales(getGlobalScales(), "global scales",
                          global == GlobalScaleKind::Tensor ? 1 : getN())))
    return failure();
  if (Value bias = getBias()) {
    // matmul_c14
    if (getTensor(bias).getElementType() != result.getElementType())
      return emitOpError() << "expected a bias of the result's "
                           << result.getElementType() << ", got "
                           << getTensor(bias).getElementType();
    // matmul_c15
    if (!agree(getTensor(bias).getDimSize(0), getN()))
      return emitOpError() << "expected a bias of " << getN()
                           << " elements, got "
                           << getTensor(bias).getDimSize(0);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// QuantizeOp
//===----------------------------------------------------------------------===//

QuantizeProblem QuantizeOp::getProblem() {
  auto known = [](int64_t extent) { return isDynamic(extent) ? 0 : extent; };
  RankedTensorType x = getTensor(getActivations()),
                   codes = getTensor(getCodes());
  QuantizeProblem problem;
  problem.input = *getFormatOf(x.getElementType());
  Type type = codes.getElementType();
  problem.codes.format =
      type.isInteger() ? NumberFormat::signedInt(type.getIntOrFloatBitWidth())
                       : *getFormatOf(type);
  problem.codes.group = int32_t(getGroup().value_or(0));
  if (getScales())
    problem.codes.scaleFormat =
        *getFormatOf(getTensor(getScales()).getElementType());
  problem.codes.zeroPoint = getZeroPoints() || getStaticZeroPoints();
  problem.scale = getScale() == "tensor" ? ActivationScaleKind::Tensor
                                         : ActivationScaleKind::Token;
  if (std::optional<StringRef> gate = getGate())
    problem.gate = llvm::cantFail(parseGateKind(*gate));
  problem.m = known(refine(codes.getDimSize(0), x.getDimSize(0)));
  problem.k = known(codes.getDimSize(1));
  problem.deriveDivisors();
  return problem;
}

LogicalResult QuantizeOp::verify() {
  RankedTensorType x = getTensor(getActivations()),
                   codes = getTensor(getCodes());
  // quantize_c1
  if (!x.getElementType().isF16() && !x.getElementType().isBF16())
    return emitOpError() << "expected activations of f16 or bf16, got "
                         << x.getElementType();
  // quantize_c2
  Type type = codes.getElementType();
  if (!isa<Float8E4M3FNType, Float8E5M2Type>(type) && !type.isInteger(8) &&
      !type.isInteger(4))
    return emitOpError() << "expected codes of f8E4M3FN, f8E5M2, i8 or i4, got "
                         << type;
  // quantize_c3
  StringRef gate = getGate().value_or("none");
  llvm::Expected<GateKind> gateKind = parseGateKind(gate);
  if (!gateKind)
    return emitOpError() << "gate: " << llvm::toString(gateKind.takeError());
  // quantize_c4
  int64_t k = codes.getDimSize(1);
  if (*gateKind != GateKind::None && !isDynamic(k))
    k *= 2;
  if (!agree(x.getShape(), {codes.getDimSize(0), k}))
    return emitOpError() << "expected activations of shape "
                         << str({codes.getDimSize(0), k}) << ", got "
                         << str(x.getShape());
  // quantize_c5
  bool isStatic = getScale() == "tensor";
  if (!isStatic && getScale() != "token")
    return emitOpError() << "expected scale of tensor or token, got "
                         << getScale();
  if (isStatic != bool(getStaticScales()) || isStatic == bool(getScales()))
    return emitOpError() << "expected "
                         << (isStatic ? "static_scales and no"
                                      : "no "
                                        "static_scales "
                                        "and a")
                         << " result of scales with scale = " << getScale();
  // quantize_c6
  std::optional<int64_t> group = getGroup();
  if (group && (isStatic || !isActivationGroup(*group)))
    return emitOpError() << "expected group with scale = token and a power of "
                            "two from 16 to 32768, got "
                         << *group << " with " << getScale();
  // quantize_c7
  int64_t m = refine(codes.getDimSize(0), x.getDimSize(0));
  if (getScales()) {
    RankedTensorType scales = getTensor(getScales());
    bool isE8M0 = isa<Float8E8M0FNUType>(scales.getElementType());
    SmallVector<int64_t> shape =
        group ? getGroupScaleShape(m, codes.getDimSize(1), *group)
              : SmallVector<int64_t>{m};
    if ((!scales.getElementType().isF32() && !(isE8M0 && group)) ||
        !agree(scales.getShape(), shape))
      return emitOpError() << "expected scales of f32"
                           << (group ? " or f8E8M0FNU" : "") << " and shape "
                           << str(shape) << ", got " << scales;
  }
  // quantize_c8
  Value zeroPoints = isStatic ? getStaticZeroPoints() : getZeroPoints();
  Value other = isStatic ? getZeroPoints() : getStaticZeroPoints();
  if (other || (zeroPoints && (!type.isInteger(8) || group)))
    return emitOpError() << "expected zero points with codes of i8 without "
                            "group, an operand if and only if scale = tensor, "
                            "got codes of "
                         << type << " and scale = " << getScale();
  // quantize_c9
  auto verifyCount = [&](Value value, StringRef name,
                         int64_t count) -> LogicalResult {
    if (!value || agree(getTensor(value).getDimSize(0), count))
      return success();
    return emitOpError() << "expected " << str({count}) << " " << name
                         << ", got " << getTensor(value).getDimSize(0);
  };
  if (failed(verifyCount(getStaticScales(), "static scales", 1)))
    return failure();
  return verifyCount(zeroPoints, "zero points", isStatic ? 1 : m);
}

//===----------------------------------------------------------------------===//
// DequantizeOp
//===----------------------------------------------------------------------===//

LogicalResult DequantizeOp::verify() {
  RankedTensorType w = getTensor(getWeights());
  RankedTensorType result = getTensor(getResult());
  // dequantize_c1
  Type codeType = getQuantType().getCodeType();
  if (w.getElementType() != codeType)
    return emitOpError() << "expected weights of " << codeType << ", got "
                         << w.getElementType();
  QuantizedOperands quantized{
      *this,         getQuantType(),  getScales(),    getZeroPoints(),
      /*layout=*/{}, w.getDimSize(0), w.getDimSize(1)};
  if (failed(quantized.verify()))
    return failure();
  // dequantize_c7
  if (!agree(w.getShape(), result.getShape()))
    return emitOpError() << "expected a result of shape " << str(w.getShape())
                         << ", got " << str(result.getShape());
  // dequantize_c8
  Type type = result.getElementType();
  if (!type.isF16() && !type.isBF16() && !type.isF32())
    return emitOpError() << "expected a result of f16, bf16 or f32, got "
                         << type;
  return success();
}

//===----------------------------------------------------------------------===//
// PackOp, UnpackOp
//===----------------------------------------------------------------------===//

/// Checks a logical type against its packed twin. `logicalName` and
/// `packedName` say which is the operand and which the result.
static LogicalResult verifyPacking(Operation *op, RankedTensorType logical,
                                   StringRef logicalName,
                                   RankedTensorType packed,
                                   StringRef packedName) {
  // pack_c1, unpack_c1
  PackedLayoutAttr layout = PackedLayoutAttr::of(packed);
  if (!layout)
    return op->emitOpError() << "expected a " << packedName
                             << " with a #hquant.packed_layout, got " << packed;
  // pack_c2, unpack_c2
  if (logical.getEncoding())
    return op->emitOpError() << "expected a " << logicalName
                             << " without encoding, got " << logical;
  // pack_c3, unpack_c3
  Type type = logical.getElementType();
  Type code = IntegerType::get(op->getContext(), layout.getWeightBits());
  bool isCode = type == code;
  bool isFloat = isa<FloatType>(type);
  if ((layout.isWeights() || layout.isPlain()) && !isCode)
    return op->emitOpError() << "expected a " << logicalName << " of " << code
                             << " with weight_bits = " << layout.getWeightBits()
                             << ", got " << type;
  if (layout.getRole() == PackedRole::ZeroPoints && !isCode && !isFloat)
    return op->emitOpError()
           << "expected a " << logicalName << " of " << code
           << " or a float type for role zero_points, got " << type;
  // pack_c4, unpack_c4
  Type packedType = layout.getPackedElementType(type);
  if (packed.getElementType() != packedType)
    return op->emitOpError()
           << "expected a " << packedName << " of " << packedType << ", got "
           << packed.getElementType();
  // pack_c5, unpack_c5
  auto shape = layout.getPackedShape(logical.getShape());
  if (!agree(packed.getShape(), shape))
    return op->emitOpError()
           << "expected a " << packedName << " of shape " << str(shape)
           << ", got " << str(packed.getShape());
  return success();
}

LogicalResult PackOp::verify() {
  return verifyPacking(*this, getTensor(getSource()), "source",
                       getTensor(getResult()), "result");
}

LogicalResult UnpackOp::verify() {
  if (failed(verifyPacking(*this, getTensor(getResult()), "result",
                           getTensor(getSource()), "source")))
    return failure();
  // unpack_c6
  if (!getTensor(getResult()).hasStaticShape())
    return emitOpError() << "expected a result of static shape, got "
                         << getResult().getType();
  return success();
}
