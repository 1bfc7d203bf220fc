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
// Formats
//===----------------------------------------------------------------------===//

/// `FORMAT [, activation = FORMAT] [, accumulator = FORMAT] >`: the formats of
/// weights, activations (the same if left out) and sums (f32).
static ParseResult parseFormats(AsmParser &parser,
                                MutableArrayRef<NumberFormat> formats) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef names[3];
  if (parser.parseKeyword(&names[0]))
    return failure();
  names[1] = names[0];
  names[2] = "f32";
  while (succeeded(parser.parseOptionalComma())) {
    StringRef key;
    SMLoc keyLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    if (key != "activation" && key != "accumulator")
      return parser.emitError(keyLoc,
                              "expected activation or accumulator, got '")
             << key << "'";
    if (parser.parseKeyword(&names[key == "activation" ? 1 : 2]))
      return failure();
  }
  if (parser.parseGreater())
    return failure();
  for (auto [format, name] : llvm::zip(formats, names)) {
    llvm::Expected<NumberFormat> parsed = NumberFormat::parse(name);
    if (!parsed)
      return parser.emitError(loc, llvm::toString(parsed.takeError()));
    format = *parsed;
  }
  return success();
}

static void printFormats(AsmPrinter &printer, const NumberFormat &operand,
                         const NumberFormat &activation,
                         const NumberFormat &accumulator) {
  printer << operand.str();
  if (activation != operand)
    printer << ", activation = " << activation.str();
  if (!accumulator.isF32())
    printer << ", accumulator = " << accumulator.str();
  printer << ">";
}

static bool isFloat8(const NumberFormat &format) {
  return format == NumberFormat::smallFloat(4, 3) ||
         format == NumberFormat::smallFloat(5, 2);
}

/// What every kind expects of its formats.
static LogicalResult verifyFormats(function_ref<InFlightDiagnostic()> emitError,
                                   const NumberFormat &operand,
                                   const NumberFormat &activation,
                                   const NumberFormat &accumulator) {
  if (activation != operand && !(isFloat8(operand) && isFloat8(activation)))
    return emitError()
           << "expected activations of the weights' format, or both of e4m3 "
              "and e5m2, got "
           << operand.str() << " and " << activation.str();
  if (!accumulator.isF32() &&
      !(accumulator.isF16() && (operand.isF16() || isFloat8(operand))))
    return emitError() << "expected accumulators of f32, or of f16 with f16, "
                          "e4m3 or e5m2 operands, got "
                       << accumulator.str() << " with " << operand.str();
  return success();
}

//===----------------------------------------------------------------------===//
// #hquant.sync_mma
//===----------------------------------------------------------------------===//

Attribute SyncMmaAttr::parse(AsmParser &parser, Type) {
  StringRef shapeName;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&shapeName) ||
      parser.parseComma())
    return {};
  NumberFormat formats[3];
  if (failed(parseFormats(parser, formats)))
    return {};
  std::optional<MmaKind> shape;
  for (MmaKind kind : {MmaKind::M16N8K8, MmaKind::M16N8K16, MmaKind::M16N8K32,
                       MmaKind::M16N8K64, MmaKind::M8N8K16})
    if (stringify(kind) == shapeName)
      shape = kind;
  if (!shape) {
    parser.emitError(loc, "expected an mma shape (m16n8k8, m16n8k16, m16n8k32, "
                          "m16n8k64 or m8n8k16), got '")
        << shapeName << "'";
    return {};
  }
  return parser.getChecked<SyncMmaAttr>(loc, parser.getContext(), *shape,
                                        formats[0], formats[1], formats[2]);
}

void SyncMmaAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringify(getShape()) << ", ";
  printFormats(printer, getOperand(), getActivation(), getAccumulator());
}

LogicalResult SyncMmaAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  MmaKind shape, NumberFormat operand,
                                  NumberFormat activation,
                                  NumberFormat accumulator) {
  if (failed(verifyFormats(emitError, operand, activation, accumulator)))
    return failure();
  auto expect = [&](bool ok, StringRef operands) -> LogicalResult {
    if (ok)
      return success();
    return emitError() << "expected " << operands << " operands for "
                       << stringify(shape) << ", got " << operand.str();
  };
  switch (shape) {
  case MmaKind::M16N8K8:
    return expect(operand.isF16(), "f16");
  case MmaKind::M16N8K16:
    return expect(operand.isF16() || operand.isBF16(), "f16 or bf16");
  case MmaKind::M16N8K32:
    return expect(operand == NumberFormat::signedInt(8) ||
                      operand == NumberFormat::smallFloat(4, 3) ||
                      operand == NumberFormat::smallFloat(5, 2),
                  "s8, e4m3 or e5m2");
  case MmaKind::M16N8K64:
    return expect(operand == NumberFormat::signedInt(4), "s4");
  case MmaKind::M8N8K16:
    return expect(operand == NumberFormat::signedInt(8), "s8");
  case MmaKind::Wgmma:
    break;
  }
  return emitError() << "expected a shape of mma.sync, got "
                     << stringify(shape);
}

//===----------------------------------------------------------------------===//
// Parts of a step
//===----------------------------------------------------------------------===//

// Registers 0 and 1 hold the first half of K, 2 and 3 the second. Within a
// half, lane t of a quad holds values 8 t to 8 t + 7 of s4: a quarter of the
// step belongs to lanes 0 and 1 of each quad, or to 2 and 3.
SmallVector<Value> humming::hquant::keepPart(OpBuilder &builder, Location loc,
                                             ValueRange a, int64_t part,
                                             int64_t parts,
                                             function_ref<Value()> makeZero) {
  SmallVector<Value> kept(a);
  if (parts == 1)
    return kept;
  Type i32 = builder.getI32Type();
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(builder, loc, i32,
                                    builder.getI32IntegerAttr(int32_t(value)));
  };
  int64_t half = part * 2 / parts;
  for (int64_t r = 0; r < int64_t(kept.size()); ++r)
    if (r >> 1 != half)
      kept[r] = makeZero ? makeZero() : constant(0);
  if (parts == 2)
    return kept;
  Value lane = NVVM::LaneIdOp::create(builder, loc, i32);
  Value upper = LLVM::AndOp::create(builder, loc, lane, constant(2));
  Value isPart = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq,
                                      upper, constant(2 * (part & 1)));
  for (int64_t r = 2 * half; r < 2 * half + 2; ++r)
    kept[r] =
        LLVM::SelectOp::create(builder, loc, isPart, kept[r], constant(0));
  return kept;
}

//===----------------------------------------------------------------------===//
// #hquant.warpgroup_mma
//===----------------------------------------------------------------------===//

Attribute WarpgroupMmaAttr::parse(AsmParser &parser, Type) {
  int64_t tokens = 0;
  SMLoc loc = parser.getCurrentLocation();
  NumberFormat formats[3];
  if (parser.parseLess() || parser.parseInteger(tokens) ||
      parser.parseComma() || parseFormats(parser, formats))
    return {};
  return parser.getChecked<WarpgroupMmaAttr>(
      loc, parser.getContext(), tokens, formats[0], formats[1], formats[2]);
}

void WarpgroupMmaAttr::print(AsmPrinter &printer) const {
  printer << "<" << getTokens() << ", ";
  printFormats(printer, getOperand(), getActivation(), getAccumulator());
}

LogicalResult
WarpgroupMmaAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         int64_t tokens, NumberFormat operand,
                         NumberFormat activation, NumberFormat accumulator) {
  if (failed(verifyFormats(emitError, operand, activation, accumulator)))
    return failure();
  const bool isS8 = operand == NumberFormat::signedInt(8);
  if (!operand.isF16() && !operand.isBF16() && !isS8 &&
      operand != NumberFormat::smallFloat(4, 3) &&
      operand != NumberFormat::smallFloat(5, 2))
    return emitError() << "expected mma operands of f16, bf16, e4m3, e5m2 or "
                          "s8, got "
                       << operand.str();
  // PTX ISA, "Matrix Shape" of wgmma: integers have fewer widths.
  if (isS8 && tokens > 32 && tokens % 16 != 0)
    return emitError()
           << "expected a multiple of 16 tokens past 32 for s8, got " << tokens;
  if (tokens < 8 || tokens > 256 || tokens % 8 != 0)
    return emitError() << "expected a multiple of 8 tokens, at most 256, got "
                       << tokens;
  return success();
}

int64_t WarpgroupMmaAttr::getRows() const { return 64; }
int64_t WarpgroupMmaAttr::getColumns() const { return getTokens(); }
int64_t WarpgroupMmaAttr::getDepth() const { return getStepDepth(); }
int64_t WarpgroupMmaAttr::getStepDepth() const {
  return 256 / getOperand().bits;
}
NumberFormat WarpgroupMmaAttr::getOperandFormat() const { return getOperand(); }
int64_t WarpgroupMmaAttr::getNumARegisters() const { return 4; }
int64_t WarpgroupMmaAttr::getNumBRegisters() const { return 0; }
int64_t WarpgroupMmaAttr::getNumAccumulators() const {
  return getTokens() / (getAccumulator().isF16() ? 4 : 2);
}

/// `a` is the step's registers or the descriptor of its tile, `b` the
/// descriptor of the step's tile; `c` the accumulators, or nothing to start
/// from zero. The result is in flight until the group is waited for.
SmallVector<Value> WarpgroupMmaAttr::buildStep(OpBuilder &builder, Location loc,
                                               ValueRange a, ValueRange b,
                                               ValueRange c, int64_t part,
                                               int64_t parts) const {
  int64_t count = getNumAccumulators();
  const bool isInteger = getOperand().isInteger();
  // Pairs of f16 sums are registers.
  const bool halfSums = getAccumulator().isF16();
  const bool fromTile = a.size() == 1;
  std::string names = getOperand().str() + "." + getActivation().str();
  std::string text = "wgmma.mma_async.sync.aligned.m64n" +
                     std::to_string(getTokens()) + "k" +
                     std::to_string(getDepth()) +
                     (isInteger  ? ".s32."
                      : halfSums ? ".f16."
                                 : ".f32.") +
                     names + " {";
  std::string constraints;
  for (int64_t i = 0; i < count; ++i) {
    text += (i ? ", $" : "$") + std::to_string(i);
    constraints += isInteger || halfSums ? "=r," : "=f,";
  }
  text += fromTile ? "}, " : "}, {";
  for (int64_t i = 0; i < int64_t(a.size()); ++i)
    text += (i ? ", $" : "$") + std::to_string(count + i);
  text += (fromTile ? ", $" : "}, $") + std::to_string(count + a.size());
  // scale-d; of floats the signs of both operands; of 16-bit ones whether they
  // are transposed (A only from memory).
  text += c.empty() ? ", 0" : ", 1";
  if (!isInteger)
    text += ", 1, 1";
  if (getOperand().bits == 16)
    text += fromTile ? ", 0, 0" : ", 0";
  text += ";";
  constraints += fromTile ? "l,l" : "r,r,r,r,l";
  SmallVector<Value> operands(a);
  operands.append(b.begin(), b.end());
  for (int64_t i = 0; i < int64_t(c.size()); ++i)
    constraints += "," + std::to_string(i);
  operands.append(c.begin(), c.end());
  Type resultType = LLVM::LLVMStructType::getLiteral(
      builder.getContext(),
      SmallVector<Type>(count, isInteger || halfSums
                                   ? Type(builder.getI32Type())
                                   : Type(builder.getF32Type())));
  Value d = LLVM::InlineAsmOp::create(
                builder, loc, resultType, operands, text, constraints,
                /*has_side_effects=*/true, /*is_align_stack=*/false,
                LLVM::TailCallKind::None,
                LLVM::AsmDialectAttr::get(builder.getContext(),
                                          LLVM::AsmDialect::AD_ATT),
                ArrayAttr())
                .getResult(0);
  SmallVector<Value> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(LLVM::ExtractValueOp::create(builder, loc, d, i));
  return result;
}

//===----------------------------------------------------------------------===//
// #hquant.sync_mma: facts and emission
//===----------------------------------------------------------------------===//

int64_t SyncMmaAttr::getRows() const {
  return getShape() == MmaKind::M8N8K16 ? 8 : 16;
}
int64_t SyncMmaAttr::getColumns() const { return 8; }
int64_t SyncMmaAttr::getDepth() const {
  switch (getShape()) {
  case MmaKind::M16N8K8:
    return 8;
  case MmaKind::M16N8K32:
    return 32;
  case MmaKind::M16N8K64:
    return 64;
  default:
    return 16;
  }
}
int64_t SyncMmaAttr::getStepDepth() const { return 256 / getOperand().bits; }
NumberFormat SyncMmaAttr::getOperandFormat() const { return getOperand(); }
int64_t SyncMmaAttr::getNumARegisters() const { return 4; }
int64_t SyncMmaAttr::getNumBRegisters() const { return 2; }
int64_t SyncMmaAttr::getNumAccumulators() const {
  return getAccumulator().isF16() ? 2 : 4;
}

/// s8 and s4: registers of i32, s32 sums without saturation.
static SmallVector<Value> buildIntegerStep(OpBuilder &builder, Location loc,
                                           SyncMmaAttr kind, ValueRange a,
                                           ValueRange b, ValueRange c,
                                           int64_t part, int64_t parts) {
  NVVM::MMATypes type =
      kind.getOperand().bits == 8 ? NVVM::MMATypes::s8 : NVVM::MMATypes::s4;
  std::array<NVVM::MMATypes, 2> types = {type, type};
  std::array<NVVM::MMALayout, 2> layouts = {NVVM::MMALayout::row,
                                            NVVM::MMALayout::col};
  auto emit = [&](ValueRange aRegs, ValueRange bRegs,
                  MutableArrayRef<Value> sums) {
    // Half the depth has half the registers (PTX ISA, mma: m16n8k16 of .s8 and
    // m16n8k32 of .s4).
    int64_t depth = kind.getStepDepth() / 2 * int64_t(bRegs.size());
    SmallVector<Type> fields(sums.size(), builder.getI32Type());
    Type result =
        LLVM::LLVMStructType::getLiteral(builder.getContext(), fields);
    Value d = NVVM::MmaOp::create(
        builder, loc, result, aRegs, bRegs, SmallVector<Value>(sums),
        {kind.getRows(), 8, depth}, std::nullopt, NVVM::MMAIntOverflow::wrapped,
        types, layouts);
    for (auto [i, value] : llvm::enumerate(sums))
      value = LLVM::ExtractValueOp::create(builder, loc, d, int64_t(i));
  };
  SmallVector<Value> acc(c);
  SmallVector<Value> kept = keepPart(builder, loc, a, part, parts);
  a = kept;
  int64_t half = part * 2 / parts;
  if (kind.getShape() != MmaKind::M8N8K16) {
    if (parts == 1)
      emit(a, b, acc);
    else
      emit(a.slice(2 * half, 2), b.slice(half, 1), acc);
    return acc;
  }
  // Register r of A: rows 8 (r & 1), k 16 (r >> 1).
  for (int64_t r = parts == 1 ? 0 : 2 * half,
               end = parts == 1 ? 4 : 2 * half + 2;
       r < end; ++r)
    emit(a.slice(r, 1), b.slice(r >> 1, 1),
         MutableArrayRef<Value>(acc).slice(2 * (r & 1), 2));
  return acc;
}

/// e4m3 and e5m2: an intrinsic, since nvvm.mma.sync has no 8-bit floats.
static SmallVector<Value> buildFloat8Step(OpBuilder &builder, Location loc,
                                          SyncMmaAttr kind, ValueRange a,
                                          ValueRange b, ValueRange c) {
  std::string types =
      kind.getOperand().str() + "." + kind.getActivation().str();
  // Pairs of f16 sums are registers outside.
  bool halfSums = kind.getAccumulator().isF16();
  Type sumType = halfSums ? Type(VectorType::get(2, builder.getF16Type()))
                          : Type(builder.getF32Type());
  Type result = LLVM::LLVMStructType::getLiteral(
      builder.getContext(),
      SmallVector<Type>(kind.getNumAccumulators(), sumType));
  SmallVector<Value> operands(a);
  operands.append(b.begin(), b.end());
  for (Value sum : c)
    operands.push_back(
        halfSums
            ? LLVM::BitcastOp::create(builder, loc, sumType, sum).getResult()
            : sum);
  std::string sums = halfSums ? "f16" : "f32";
  Value d = LLVM::CallIntrinsicOp::create(
                builder, loc, result,
                builder.getStringAttr("llvm.nvvm.mma.m16n8k32.row.col." + sums +
                                      "." + types + "." + sums),
                operands)
                .getResults();
  SmallVector<Value> acc;
  for (int64_t i = 0; i < kind.getNumAccumulators(); ++i) {
    Value sum = LLVM::ExtractValueOp::create(builder, loc, d, i);
    if (halfSums)
      sum = LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), sum);
    acc.push_back(sum);
  }
  return acc;
}

SmallVector<Value> SyncMmaAttr::buildStep(OpBuilder &builder, Location loc,
                                          ValueRange a, ValueRange b,
                                          ValueRange c, int64_t part,
                                          int64_t parts) const {
  if (getOperand().isInteger())
    return buildIntegerStep(builder, loc, *this, a, b, c, part, parts);
  if (getOperand().bits == 8)
    return buildFloat8Step(builder, loc, *this,
                           keepPart(builder, loc, a, part, parts), b, c);
  bool isF16 = getOperand().isF16(), halfSums = getAccumulator().isF16();
  Type halfPair = VectorType::get(2, builder.getF16Type());
  Type sumType = halfSums ? halfPair : Type(builder.getF32Type());
  Type resultType = LLVM::LLVMStructType::getLiteral(
      builder.getContext(), SmallVector<Type>(getNumAccumulators(), sumType));
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
  // Pairs of f16 sums are registers outside.
  SmallVector<Value> acc =
      halfSums ? operands(c) : SmallVector<Value>(c.begin(), c.end());
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
  if (halfSums)
    for (Value &pair : acc)
      pair = LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), pair);
  return acc;
}
