//===- HQuantAttrs.cpp - Formats, layouts and configs -----------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Printing, parsing and checking of the attributes of stages 1 and 2. Names of
// formats, kinds and config keys are parsed by the libraries that own them, so
// that the IR, the command line and the tuning database share one spelling.
//
//===----------------------------------------------------------------------===//

#include "Humming/Dialect/HQuant/IR/HQuant.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace humming;
using namespace humming::hquant;

#include "Humming/Dialect/HQuant/IR/HQuantEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "Humming/Dialect/HQuant/IR/HQuantAttrs.cpp.inc"

void HQuantDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Humming/Dialect/HQuant/IR/HQuantAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Hashing
//===----------------------------------------------------------------------===//

llvm::hash_code humming::hash_value(const NumberFormat &format) {
  return llvm::hash_combine(format.kind, format.specials, format.bits,
                            format.exponentBits, format.mantissaBits);
}

llvm::hash_code humming::hash_value(const Granularity &granularity) {
  return llvm::hash_combine(granularity.rows, granularity.columns);
}

llvm::hash_code humming::hash_value(const QuantType &type) {
  return llvm::hash_combine(type.weight, type.scale, type.granularity,
                            type.zeroPoint, type.globalScale, type.rowPhase,
                            type.columnPhase, type.table.has_value());
}

llvm::hash_code humming::hash_value(const KernelConfig &config) {
  return llvm::hash_combine(
      config.mma, config.blockN, config.blockM, config.blockK, config.warpN,
      config.warpM, config.warpsK, config.stages, config.copy, config.scale,
      config.splitK, config.early, config.persistent, config.cluster,
      config.multicast, config.producers, config.rows, config.panel);
}

llvm::hash_code humming::hash_value(const QuantizeConfig &config) {
  return llvm::hash_combine(config.lanes, config.groups, config.rows,
                            config.chunks);
}

//===----------------------------------------------------------------------===//
// Builtin types and formats
//===----------------------------------------------------------------------===//

Type hquant::getFloatType(MLIRContext *context, const NumberFormat &format) {
  if (format.isF16())
    return Float16Type::get(context);
  if (format.isBF16())
    return BFloat16Type::get(context);
  if (format.isF32())
    return Float32Type::get(context);
  if (format.isE8M0())
    return Float8E8M0FNUType::get(context);
  if (format == NumberFormat::smallFloat(4, 3))
    return Float8E4M3FNType::get(context);
  if (format == NumberFormat::smallFloat(5, 2))
    return Float8E5M2Type::get(context);
  if (format == NumberFormat::smallFloat(2, 3))
    return Float6E2M3FNType::get(context);
  if (format == NumberFormat::smallFloat(3, 2))
    return Float6E3M2FNType::get(context);
  if (format == NumberFormat::smallFloat(2, 1))
    return Float4E2M1FNType::get(context);
  return {};
}

std::optional<NumberFormat> hquant::getFormatOf(Type type) {
  return llvm::TypeSwitch<Type, std::optional<NumberFormat>>(type)
      .Case([](Float16Type) { return NumberFormat::f16(); })
      .Case([](BFloat16Type) { return NumberFormat::bf16(); })
      .Case([](Float32Type) { return NumberFormat::f32(); })
      .Case([](Float8E8M0FNUType) { return NumberFormat::e8m0(); })
      .Case([](Float8E4M3FNType) { return NumberFormat::smallFloat(4, 3); })
      .Case([](Float8E5M2Type) { return NumberFormat::smallFloat(5, 2); })
      .Case([](Float6E2M3FNType) { return NumberFormat::smallFloat(2, 3); })
      .Case([](Float6E3M2FNType) { return NumberFormat::smallFloat(3, 2); })
      .Case([](Float4E2M1FNType) { return NumberFormat::smallFloat(2, 1); })
      .Default([](Type) { return std::nullopt; });
}

//===----------------------------------------------------------------------===//
// Pieces of syntax that several attributes share
//===----------------------------------------------------------------------===//

/// Turns a library error into a diagnostic at `loc`.
template <typename T>
static FailureOr<T> take(AsmParser &parser, SMLoc loc,
                         llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  return parser.emitError(loc, llvm::toString(value.takeError()));
}

static FailureOr<NumberFormat> parseFormat(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  return take(parser, loc, NumberFormat::parse(name));
}

static FailureOr<ZeroPointKind> parseZeroPoint(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  return take(parser, loc, parseZeroPointKind(name));
}

static void printGranularity(AsmPrinter &printer,
                             const Granularity &granularity) {
  if (granularity.isPerChannel())
    printer << "channel";
  else if (granularity.isPerTensor())
    printer << "tensor";
  else if (granularity.isGroup())
    printer << "group = " << granularity.columns;
  else
    printer << "block = [" << granularity.rows << ", " << granularity.columns
            << "]";
}

/// granularity ::= `channel` | `tensor` | `group` `=` int
///               | `block` `=` `[` int `,` int `]`
static FailureOr<Granularity> parseGranularity(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef key;
  if (parser.parseKeyword(&key))
    return failure();
  if (key == "channel")
    return Granularity::perChannel();
  if (key == "tensor")
    return Granularity::perTensor();
  if (key == "group") {
    int32_t size = 0;
    if (parser.parseEqual() || parser.parseInteger(size))
      return failure();
    if (size < 1)
      return parser.emitError(loc, "expected a group of at least 1, got ")
             << size;
    return Granularity::group(size);
  }
  if (key == "block") {
    int32_t rows = 0, columns = 0;
    if (parser.parseEqual() || parser.parseLSquare() ||
        parser.parseInteger(rows) || parser.parseComma() ||
        parser.parseInteger(columns) || parser.parseRSquare())
      return failure();
    return Granularity::block(rows, columns);
  }
  return parser.emitError(
             loc, "expected granularity group, channel, tensor or block, got ")
         << key;
}

//===----------------------------------------------------------------------===//
// FormatAttr, GranularityAttr, ZeroPointAttr
//===----------------------------------------------------------------------===//

void FormatAttr::print(AsmPrinter &printer) const {
  printer << "<" << getFormat().str() << ">";
}

Attribute FormatAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<NumberFormat> format = parseFormat(parser);
  if (failed(format) || parser.parseGreater())
    return {};
  return get(parser.getContext(), *format);
}

void GranularityAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printGranularity(printer, getGranularity());
  printer << ">";
}

Attribute GranularityAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  FailureOr<Granularity> granularity = parseGranularity(parser);
  if (failed(granularity) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    *granularity);
}

LogicalResult
GranularityAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        Granularity granularity) {
  if (granularity.rows < 0 || granularity.columns < 0)
    return emitError() << "expected block extents of at least 0 (0 is the "
                          "whole extent), got ["
                       << granularity.rows << ", " << granularity.columns
                       << "]";
  return success();
}

void ZeroPointAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringify(getKind()) << ">";
}

Attribute ZeroPointAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<ZeroPointKind> kind = parseZeroPoint(parser);
  if (failed(kind) || parser.parseGreater())
    return {};
  return get(parser.getContext(), *kind);
}

//===----------------------------------------------------------------------===//
// QuantTypeAttr
//===----------------------------------------------------------------------===//

void QuantTypeAttr::print(AsmPrinter &printer) const {
  printer << "<" << getWeightFormat().str()
          << ", scale = " << getScaleFormat().str() << ", ";
  printGranularity(printer, getGranularity());
  if (getZeroPointKind() != ZeroPointKind::None)
    printer << ", zero_point = " << stringify(getZeroPointKind());
  QuantType type = getQuantType();
  if (type.globalScale != GlobalScaleKind::None)
    printer << ", global = "
            << (type.globalScale == GlobalScaleKind::Tensor ? "tensor"
                                                            : "channel");
  if (type.rowPhase || type.columnPhase)
    printer << ", phase = [" << type.rowPhase << ", " << type.columnPhase
            << "]";
  if (type.table) {
    printer << ", table = [";
    llvm::interleaveComma(
        type.table->values, printer.getStream(),
        [&](float value) { printer.printFloat(APFloat(value)); });
    printer << "]";
  }
  printer << ">";
}

/// `global` `=` (`tensor` | `channel`), `phase` `=` `[` int `,` int `]`, or
/// `table` `=` `[` 16 floats `]`.
static ParseResult parseQuantTypeExtra(AsmParser &parser, StringRef key,
                                       SMLoc loc, QuantType &type) {
  if (key == "global") {
    StringRef kind;
    if (parser.parseKeyword(&kind))
      return failure();
    if (kind != "tensor" && kind != "channel")
      return parser.emitError(loc, "expected global tensor or channel, got ")
             << kind;
    type.globalScale =
        kind == "tensor" ? GlobalScaleKind::Tensor : GlobalScaleKind::Channel;
    return success();
  }
  if (key == "phase")
    return failure(parser.parseLSquare() ||
                   parser.parseInteger(type.rowPhase) || parser.parseComma() ||
                   parser.parseInteger(type.columnPhase) ||
                   parser.parseRSquare());
  if (key != "table")
    return parser.emitError(loc, "expected zero_point, global, phase or table, "
                                 "got ")
           << key;
  SmallVector<double> values;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseFloat(values.emplace_back());
      }))
    return failure();
  if (values.size() != 16)
    return parser.emitError(loc, "expected a table of 16 values, got ")
           << values.size();
  type.table.emplace();
  for (auto [to, from] : llvm::zip(type.table->values, values))
    to = float(from);
  return success();
}

/// `<` format `,` `scale` `=` format `,` granularity
///     (`,` `zero_point` `=` kind)? (`,` extra)* `>`
Attribute QuantTypeAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  FailureOr<NumberFormat> weight = parseFormat(parser);
  if (failed(weight) || parser.parseComma() || parser.parseKeyword("scale") ||
      parser.parseEqual())
    return {};
  FailureOr<NumberFormat> scale = parseFormat(parser);
  if (failed(scale) || parser.parseComma())
    return {};
  FailureOr<Granularity> granularity = parseGranularity(parser);
  if (failed(granularity))
    return {};
  QuantType type;
  type.weight = *weight;
  type.scale = *scale;
  type.granularity = *granularity;
  while (succeeded(parser.parseOptionalComma())) {
    StringRef key;
    SMLoc keyLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return {};
    if (key != "zero_point") {
      if (parseQuantTypeExtra(parser, key, keyLoc, type))
        return {};
      continue;
    }
    FailureOr<ZeroPointKind> kind = parseZeroPoint(parser);
    if (failed(kind))
      return {};
    type.zeroPoint = *kind;
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    type);
}

LogicalResult
QuantTypeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      QuantType type) {
  if (type.weight.bits < 1 || type.weight.bits > 8)
    return emitError() << "expected a weight format of 1 to 8 bits, got "
                       << type.weight.str();
  if (!type.scale.isFloat() && !type.scale.isE8M0())
    return emitError() << "expected a float or e8m0 scale format, got "
                       << type.scale.str();
  if (type.zeroPoint != ZeroPointKind::None &&
      type.weight.kind != NumberFormat::Kind::Unsigned)
    return emitError()
           << "expected an unsigned weight format with zero points, got "
           << type.weight.str();
  if (failed(GranularityAttr::verify(emitError, type.granularity)))
    return failure();
  // The rest (tables, phases) is checked where the type is defined.
  if (llvm::Error error = type.verify())
    return emitError() << llvm::toString(std::move(error));
  return success();
}

IntegerType QuantTypeAttr::getCodeType() const {
  return IntegerType::get(getContext(), getWeightFormat().bits);
}

Type QuantTypeAttr::getScaleType() const {
  if (Type type = getFloatType(getContext(), getScaleFormat()))
    return type;
  return IntegerType::get(getContext(), getScaleFormat().bits);
}

Type QuantTypeAttr::getZeroPointType() const {
  switch (getZeroPointKind()) {
  case ZeroPointKind::None:
    return {};
  case ZeroPointKind::Integer:
    return getCodeType();
  case ZeroPointKind::Float:
    return getScaleType();
  }
  llvm_unreachable("unknown kind of zero points");
}

/// ceil(size / step), 1 for step 0, dynamic for a dynamic size.
static int64_t divideExtent(int64_t size, int64_t step) {
  if (step == 0)
    return 1;
  if (ShapedType::isDynamic(size))
    return size;
  return size / step + (size % step != 0);
}

SmallVector<int64_t, 2> QuantTypeAttr::getScaleShape(int64_t n,
                                                     int64_t k) const {
  auto shifted = [](int64_t size, int64_t phase) {
    return ShapedType::isDynamic(size) || size == 0 ? size : size + phase;
  };
  QuantType type = getQuantType();
  return {divideExtent(shifted(n, type.rowPhase), getGranularity().rows),
          divideExtent(shifted(k, type.columnPhase), getGranularity().columns)};
}

//===----------------------------------------------------------------------===//
// PackedLayoutAttr
//===----------------------------------------------------------------------===//

LogicalResult
PackedLayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         unsigned activationBits, unsigned weightBits,
                         PackedRole role) {
  if (activationBits != 4 && activationBits != 8 && activationBits != 16)
    return emitError() << "expected activation_bits of 4, 8 or 16, got "
                       << activationBits;
  if (weightBits < 1 || weightBits > 8)
    return emitError() << "expected weight_bits of 1 to 8, got " << weightBits;
  if (weightBits > activationBits)
    return emitError() << "expected weight_bits of at most activation_bits ("
                       << activationBits << "), got " << weightBits;
  if (role == PackedRole::PlainWeights &&
      (activationBits != 8 || weightBits != 8))
    return emitError() << "expected activation_bits and weight_bits of 8 for "
                          "role plain_weights, got "
                       << activationBits << " and " << weightBits;
  return success();
}

LogicalResult PackedLayoutAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type elementType,
    function_ref<InFlightDiagnostic()> emitError) const {
  if (isPlain()) {
    if (shape.size() != 2 || !elementType.isSignlessInteger(8))
      return emitError() << "expected plain weights of rank 2 and i8, got rank "
                         << shape.size() << " and " << elementType;
    return success();
  }
  if (shape.size() != 3)
    return emitError() << "expected a packed tensor of rank 3, got rank "
                       << shape.size();
  int64_t inner = isWeights() ? getWordsPerTile() : kStrip;
  if (shape.back() != inner) {
    InFlightDiagnostic diag = emitError()
                              << "expected an innermost extent of " << inner
                              << " for role " << stringifyPackedRole(getRole())
                              << ", got ";
    if (ShapedType::isDynamic(shape.back()))
      return diag << "a dynamic one";
    return diag << shape.back();
  }
  if (isWeights() && !elementType.isSignlessInteger(32))
    return emitError() << "expected packed weights of i32, got " << elementType;
  if (getRole() == PackedRole::ZeroPoints && !isa<FloatType>(elementType) &&
      !elementType.isSignlessInteger(8))
    return emitError() << "expected packed zero points of i8 or a float type, "
                          "got "
                       << elementType;
  return success();
}

SmallVector<int64_t, 3>
PackedLayoutAttr::getPackedShape(ArrayRef<int64_t> logical) const {
  assert(logical.size() == 2 && "a logical operand is a matrix");
  if (isPlain())
    return {logical[0], logical[1]};
  int64_t strips = divideExtent(logical[0], kStrip);
  if (isWeights())
    return {strips, divideExtent(logical[1], kSlab), getWordsPerTile()};
  return {logical[1], strips, kStrip};
}

Type PackedLayoutAttr::getPackedElementType(Type logical) const {
  if (isWeights())
    return IntegerType::get(getContext(), 32);
  if (getRole() == PackedRole::ZeroPoints && isa<IntegerType>(logical))
    return IntegerType::get(getContext(), 8);
  return logical;
}

RankedTensorType
PackedLayoutAttr::getPackedType(RankedTensorType logical) const {
  return RankedTensorType::get(getPackedShape(logical.getShape()),
                               getPackedElementType(logical.getElementType()),
                               *this);
}

PackedLayoutAttr PackedLayoutAttr::withRole(PackedRole role) const {
  return get(getContext(), getActivationBits(), getWeightBits(), role);
}

PackedLayoutAttr PackedLayoutAttr::of(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<PackedLayoutAttr>(tensor.getEncoding())
                : PackedLayoutAttr();
}

//===----------------------------------------------------------------------===//
// LoweringConfigAttr
//===----------------------------------------------------------------------===//

// The keys and their words are KernelConfig's. Its text `block=64x16x256,...`
// becomes `block = [64, 16, 256], ...` here and back, so a key that is added
// there is in the IR at once.

/// Prints `key=value,...` as `<key = value, ...>`.
static void printConfig(AsmPrinter &printer, const std::string &text) {
  printer << "<";
  SmallVector<StringRef> entries;
  StringRef(text).split(entries, ',');
  llvm::interleaveComma(entries, printer, [&](StringRef entry) {
    auto [key, value] = entry.split('=');
    printer << key << " = ";
    bool isList = value.contains('x') &&
                  value.find_first_not_of("0123456789x") == StringRef::npos;
    if (!isList) {
      printer << value;
      return;
    }
    SmallVector<StringRef> extents;
    value.split(extents, 'x');
    printer << "[" << llvm::join(extents, ", ") << "]";
  });
  printer << ">";
}

void LoweringConfigAttr::print(AsmPrinter &printer) const {
  printConfig(printer, getConfig().str());
}

/// Appends one `key = value` to `text` in KernelConfig's form.
static ParseResult parseConfigEntry(AsmParser &parser, std::string &text,
                                    SmallVectorImpl<StringRef> &seen) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef key, word;
  if (parser.parseKeyword(&key) || parser.parseEqual())
    return failure();
  if (llvm::is_contained(seen, key))
    return parser.emitError(loc, "expected each key once, got another ") << key;
  seen.push_back(key);
  if (!text.empty())
    text += ',';
  text += key.str() + "=";
  if (succeeded(parser.parseOptionalKeyword(&word))) {
    text += word.str();
    return success();
  }
  SmallVector<int64_t> extents;
  auto parseExtent = [&]() {
    return parser.parseInteger(extents.emplace_back());
  };
  if (succeeded(parser.parseOptionalLSquare())) {
    if (parser.parseCommaSeparatedList(parseExtent) || parser.parseRSquare())
      return failure();
  } else if (parseExtent()) {
    return failure();
  }
  llvm::raw_string_ostream stream(text);
  llvm::interleave(extents, stream, "x");
  return success();
}

Attribute LoweringConfigAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::string text;
  SmallVector<StringRef> seen;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, [&] {
        return parseConfigEntry(parser, text, seen);
      }))
    return {};
  FailureOr<KernelConfig> config =
      take(parser, loc, KernelConfig::parse(text, KernelConfig()));
  if (failed(config))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    *config);
}

LogicalResult
LoweringConfigAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                           KernelConfig config) {
  // Only what keeps the arithmetic of KernelConfig defined. Whether a config
  // is legal depends on problem and target: humming::checkConfig.
  for (auto [name, value] :
       {std::pair<StringRef, int32_t>{"block N", config.blockN},
        {"block M", config.blockM},
        {"block K", config.blockK},
        {"warp N", config.warpN},
        {"warp M", config.warpM},
        {"warps_k", config.warpsK},
        {"stages", config.stages},
        {"split_k", config.splitK}})
    if (value < 1)
      return emitError() << "expected " << name << " of at least 1, got "
                         << value;
  return success();
}

//===----------------------------------------------------------------------===//
// QuantizeConfigAttr
//===----------------------------------------------------------------------===//

void QuantizeConfigAttr::print(AsmPrinter &printer) const {
  printConfig(printer, getConfig().str());
}

Attribute QuantizeConfigAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::string text;
  SmallVector<StringRef> seen;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, [&] {
        return parseConfigEntry(parser, text, seen);
      }))
    return {};
  FailureOr<QuantizeConfig> config =
      take(parser, loc, QuantizeConfig::parse(text, QuantizeConfig()));
  if (failed(config))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    *config);
}

LogicalResult
QuantizeConfigAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                           QuantizeConfig config) {
  // Whether a config is legal depends on the problem: checkQuantizeConfig.
  for (auto [name, value] :
       {std::pair<StringRef, int32_t>{"lanes", config.lanes},
        {"groups", config.groups},
        {"rows", config.rows},
        {"chunks", config.chunks}})
    if (value < 1 || value > 1024)
      return emitError() << "expected " << name << " from 1 to 1024, got "
                         << value;
  return success();
}
