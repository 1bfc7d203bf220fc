//===- LaunchDescription.cpp - How a compiled kernel is launched ----------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Runtime/LaunchDescription.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <limits>
#include <tuple>

using namespace llvm;

namespace humming {

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

static Error fieldError(StringRef field, const Twine &expected,
                        const Twine &got) {
  return makeError("launch description: " + field + ": expected " + expected +
                   ", got " + got);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

Expected<unsigned> parseFormatBits(StringRef format) {
  if (format == "f32")
    return 32;
  if (format == "f16" || format == "bf16")
    return 16;
  if (format == "e8m0")
    return 8;
  StringRef rest = format;
  unsigned bits = 0, mantissa = 0;
  if (rest.consume_front("u")) {
    if (!rest.getAsInteger(10, bits) && bits >= 1 && bits <= 8)
      return bits;
  } else if (rest.consume_front("s")) {
    if (!rest.getAsInteger(10, bits) && bits >= 2 && bits <= 8)
      return bits;
  } else if (rest.consume_front("e")) {
    auto [exponentText, mantissaText] = rest.split('m');
    if (!exponentText.getAsInteger(10, bits) &&
        !mantissaText.getAsInteger(10, mantissa) && bits >= 1 &&
        bits + mantissa <= 7)
      return 1 + bits + mantissa;
  }
  return makeError("expected a format u1..u8, s2..s8, eXmY, e8m0, f16, bf16 or "
                   "f32, got '" +
                   format + "'");
}

Expected<unsigned> parseChipNumber(StringRef chip) {
  StringRef rest = chip;
  unsigned number = 0;
  if (rest.consume_front("sm_")) {
    if (rest.ends_with("a") || rest.ends_with("f"))
      rest = rest.drop_back();
    if (rest.size() >= 2 && rest.size() <= 3 && !rest.getAsInteger(10, number))
      return number;
  }
  return makeError("expected a chip like sm_80 or sm_90a, got '" + chip + "'");
}

ArrayRef<StringLiteral> LaunchDescription::argumentNames() {
  return argumentNames(0);
}

ArrayRef<StringLiteral> LaunchDescription::argumentNames(size_t numMaps) {
  static constexpr StringLiteral names[] = {"x",
                                            "w",
                                            "scales",
                                            "zero_points",
                                            "bias",
                                            "c",
                                            "workspace",
                                            "m",
                                            "n",
                                            "k",
                                            "ldx",
                                            "ldc",
                                            "global_scales",
                                            "activation_scales",
                                            "activation_zero_points",
                                            "weight_sums",
                                            "x_map",
                                            "w_map"};
  return ArrayRef(names).drop_back(2 - std::min<size_t>(numMaps, 2));
}

ArrayRef<StringLiteral> LaunchDescription::quantizeArgumentNames() {
  static constexpr StringLiteral names[] = {
      "x", "codes", "scales", "zero_points", "m", "k", "ldx", "ldq"};
  return names;
}

ArrayRef<StringLiteral> LaunchDescription::packArgumentNames() {
  static constexpr StringLiteral names[] = {"source", "packed", "n", "k",
                                            "lds"};
  return names;
}

ArrayRef<StringLiteral> LaunchDescription::gatherArgumentNames() {
  static constexpr StringLiteral names[] = {"x", "order",   "gathered", "m",
                                            "k", "columns", "ldx",      "ldg"};
  return names;
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

static uint32_t saturate(int64_t value) {
  return uint32_t(
      std::min<int64_t>(value, std::numeric_limits<uint32_t>::max()));
}

LaunchDescription::Grid LaunchDescription::grid(int64_t m, int64_t n,
                                                unsigned processors) const {
  if (m <= 0 || n <= 0)
    return {};
  if (isQuantize() || isGather())
    return {saturate((m + blockM - 1) / blockM),
            blockN == 0 ? 1 : saturate((n + blockN - 1) / blockN), 1};
  if (persistent && processors > 0) {
    int64_t tiles = (n + blockN - 1) / blockN * ((m + blockM - 1) / blockM);
    return {uint32_t(std::min<int64_t>(tiles, processors)), 1, 1};
  }
  auto blocks = [](int64_t size, int64_t block, int64_t cluster) {
    int64_t count = (size + block - 1) / block;
    return saturate((count + cluster - 1) / cluster * cluster);
  };
  return {blocks(n, blockN, clusterN), blocks(m, blockM, clusterM),
          uint32_t(splitK)};
}

LaunchDescription::TensorMapShape
LaunchDescription::shapeOf(const TensorMap &map, int32_t m, int32_t n,
                           int32_t k, int32_t ldx) const {
  bool isWeight = map.of == "w";
  TensorMapShape shape;
  // Plain weights are as wide as activations; verify() has parsed the format.
  shape.elementBytes = cantFail(parseFormatBits(activation)) / 8;
  shape.columns = uint64_t(k);
  shape.rows = uint64_t(isWeight ? n : m);
  shape.stride = uint64_t(isWeight ? k : ldx) * shape.elementBytes;
  shape.boxColumns = 128 / shape.elementBytes;
  shape.boxRows = uint32_t(map.boxRows);
  return shape;
}

int64_t LaunchDescription::counterBytes(int64_t m, int64_t n) const {
  if (!needsWorkspace())
    return 0;
  Grid g = grid(m, n);
  return int64_t(
      alignTo(uint64_t(g.x) * g.y * sizeof(uint32_t), kWorkspaceAlignment));
}

int64_t LaunchDescription::workspaceBytes(int64_t m, int64_t n) const {
  if (!needsWorkspace() || grid(m, n).empty())
    return 0;
  Grid g = grid(m, n);
  return counterBytes(m, n) +
         int64_t(g.x) * g.y * splitK * blockN * blockM * int64_t(sizeof(float));
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static bool isIdentifier(StringRef name) {
  if (name.empty() || isDigit(name.front()))
    return false;
  return all_of(name,
                [](char c) { return isAlnum(c) || c == '_' || c == '$'; });
}

static bool isGranularity(StringRef text) {
  if (text == "-1")
    return true;
  unsigned rows = 0, columns = 0;
  auto [left, right] = text.split('x');
  if (right.empty() && !text.contains('x'))
    return !text.getAsInteger(10, columns);
  return !left.getAsInteger(10, rows) && !right.getAsInteger(10, columns) &&
         rows > 0 && columns > 0;
}

Error LaunchDescription::verify() const {
  if (!isIdentifier(kernelName))
    return fieldError("kernel", "a PTX identifier", "'" + kernelName + "'");
  if (Expected<unsigned> number = parseChipNumber(chip); !number)
    return makeError("launch description: chip: " +
                     toString(number.takeError()));
  if (ptxVersion < 60 || ptxVersion > 999)
    return fieldError("ptx_version", "a version from 60 (6.0) to 999",
                      Twine(ptxVersion));
  if (blockThreads == 0 || blockThreads % 32 != 0 || blockThreads > 1024)
    return fieldError("block_threads", "a multiple of 32, at most 1024",
                      Twine(blockThreads));
  // 256 KiB is above every known opt-in maximum; the exact limit is the
  // device's and is checked when the kernel is loaded.
  if (sharedBytes > 256 * 1024)
    return fieldError("shared_bytes", "at most 262144", Twine(sharedBytes));
  if (!isMatmul() && !isQuantize() && !isPack() && !isGather())
    return fieldError("operation", "matmul, quantize, pack or gather",
                      "'" + operation + "'");
  if (blockN < (isQuantize() ? 0 : 1) ||
      blockN > (isQuantize() ? 1 << 20 : 4096))
    return fieldError("block_n", isQuantize() ? "0 to 1048576" : "1 to 4096",
                      Twine(blockN));
  if (blockM <= 0 || blockM > 4096)
    return fieldError("block_m", "1 to 4096", Twine(blockM));
  if (splitK <= 0 || splitK > 1024)
    return fieldError("split_k", "1 to 1024", Twine(splitK));
  std::pair<StringRef, int32_t> clusters[] = {{"cluster_n", clusterN},
                                              {"cluster_m", clusterM}};
  for (auto [field, blocks] : clusters)
    if (blocks < 1 || blocks > 2 || (blocks > 1 && (!isMatmul() || persistent)))
      return fieldError(field, "1, or 2 for a matmul that is not persistent",
                        Twine(blocks));
  std::pair<StringRef, StringRef> formats[] = {{"activation", activation},
                                               {"weight", weight},
                                               {"scale", scale},
                                               {"output", output}};
  for (auto [field, format] : formats) {
    // Only a matmul has scales, and only a matmul and a pack weights.
    if (!isMatmul() && (field == "scale" || (field == "weight" && !isPack()))) {
      if (!format.empty())
        return fieldError(field, "nothing for a " + operation + " kernel",
                          "'" + format + "'");
      continue;
    }
    if (Expected<unsigned> bits = parseFormatBits(format); !bits)
      return makeError("launch description: " + field + ": " +
                       toString(bits.takeError()));
  }
  if (isMatmul() && !isGranularity(granularity))
    return fieldError("granularity", "G, 0, -1 or NxK",
                      "'" + granularity + "'");
  if (zeroPoint != "none" && zeroPoint != "int" && zeroPoint != "float")
    return fieldError("zero_point", "none, int or float",
                      "'" + zeroPoint + "'");
  std::pair<StringRef, int32_t> divisors[] = {{"k_divisor", kDivisor},
                                              {"n_divisor", nDivisor}};
  for (auto [field, divisor] : divisors)
    if (divisor < 1 || divisor > (field[0] == 'k' ? 32 : 8) ||
        !isPowerOf2_32(uint32_t(divisor)))
      return fieldError(
          field, field[0] == 'k' ? "1, 2, 4, 8, 16 or 32" : "1, 2, 4 or 8",
          Twine(divisor));
  if (globalScale != "none" && globalScale != "tensor" &&
      globalScale != "channel")
    return fieldError("global_scale", "none, tensor or channel",
                      "'" + globalScale + "'");
  if (activationScale != "none" && activationScale != "tensor" &&
      activationScale != "token")
    return fieldError("activation_scale", "none, tensor or token",
                      "'" + activationScale + "'");
  if (weightLayout != "packed" && weightLayout != "plain")
    return fieldError("weight_layout", "packed or plain",
                      "'" + weightLayout + "'");
  if (columnPhase < 0)
    return fieldError("column_phase", "at least 0", Twine(columnPhase));
  if (activationGroup != 0 &&
      (activationScale != "token" || activationGroup < 16 ||
       !isPowerOf2_32(uint32_t(activationGroup))))
    return fieldError("activation_group",
                      "0, or with scales per token a power of two from 16",
                      Twine(activationGroup));
  if (activationScaleFormat != "f32" &&
      !(activationScaleFormat == "e8m0" && activationGroup != 0))
    return fieldError("activation_scale_format", "f32, or e8m0 with groups",
                      "'" + activationScaleFormat + "'");
  if (accumulator != "f32" && accumulator != "f16")
    return fieldError("accumulator", "f32 or f16", "'" + accumulator + "'");
  if (gate != "none" && !(isQuantize() && (gate == "silu" || gate == "gelu" ||
                                           gate == "gelu_tanh")))
    return fieldError("gate",
                      "none, or of a quantize kernel silu, gelu or gelu_tanh",
                      "'" + gate + "'");
  bool mapsFit = tensorMaps.empty() ||
                 (isMatmul() && tensorMaps[0].of == "x" &&
                  (tensorMaps.size() == 1 ||
                   (tensorMaps.size() == 2 && tensorMaps[1].of == "w" &&
                    weightLayout == "plain")));
  if (!mapsFit)
    return fieldError("tensor_maps",
                      "none, or of a matmul those of x and of plain w", [&] {
                        std::string names;
                        for (const TensorMap &map : tensorMaps)
                          names += (names.empty() ? "" : ", ") + map.of;
                        return "[" + names + "]";
                      }());
  for (const TensorMap &map : tensorMaps) {
    if (map.boxRows < 8 || map.boxRows > 256 || map.boxRows % 8 != 0)
      return fieldError("tensor_maps", "box_rows a multiple of 8, at most 256",
                        Twine(map.boxRows));
    unsigned bits = cantFail(parseFormatBits(activation));
    if ((bits != 8 && bits != 16) || int64_t(kDivisor) * bits < 128)
      return fieldError("tensor_maps",
                        "activations of 8 or 16 bits, and rows of whole 16 "
                        "bytes",
                        activation + " and a k_divisor of " + Twine(kDivisor));
  }
  if (!table.empty() && table.size() != 16)
    return fieldError("table", "16 values or none", Twine(table.size()));
  return Error::success();
}

bool LaunchDescription::operator==(const LaunchDescription &o) const {
  auto key = [](const LaunchDescription &d) {
    return std::tie(
        d.kernelName, d.chip, d.ptxVersion, d.assembler, d.operation,
        d.activationGroup, d.activationScaleFormat, d.activationZeroPoint,
        d.accumulator, d.gate, d.blockThreads, d.sharedBytes, d.blockN,
        d.blockM, d.splitK, d.earlyLaunch, d.persistent, d.cluster, d.clusterN,
        d.clusterM, d.activation, d.weight, d.weightLayout, d.columnPhase,
        d.scale, d.granularity, d.zeroPoint, d.globalScale, d.activationScale,
        d.table, d.output, d.hasBias, d.tensorMaps, d.kDivisor, d.nDivisor,
        d.config, d.notes);
  };
  return key(*this) == key(o);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

json::Value LaunchDescription::toJSON() const {
  json::Array argumentArray;
  for (StringRef name : arguments())
    argumentArray.push_back(name);
  json::Array mapArray;
  for (const TensorMap &map : tensorMaps)
    mapArray.push_back(json::Object{{"of", map.of}, {"box_rows", map.boxRows}});
  json::Array noteArray;
  for (const std::string &note : notes)
    noteArray.push_back(note);
  return json::Object{{"format_version", kFormatVersion},
                      {"kernel", kernelName},
                      {"chip", chip},
                      {"ptx_version", ptxVersion},
                      {"assembler", assembler},
                      {"operation", operation},
                      {"block_threads", blockThreads},
                      {"shared_bytes", sharedBytes},
                      {"block_n", blockN},
                      {"block_m", blockM},
                      {"split_k", splitK},
                      {"early_launch", earlyLaunch},
                      {"persistent", persistent},
                      {"cluster", cluster},
                      {"cluster_n", clusterN},
                      {"cluster_m", clusterM},
                      {"activation", activation},
                      {"weight", weight},
                      {"weight_layout", weightLayout},
                      {"column_phase", columnPhase},
                      {"scale", scale},
                      {"granularity", granularity},
                      {"zero_point", zeroPoint},
                      {"global_scale", globalScale},
                      {"activation_scale", activationScale},
                      {"activation_group", activationGroup},
                      {"activation_scale_format", activationScaleFormat},
                      {"activation_zero_point", activationZeroPoint},
                      {"accumulator", accumulator},
                      {"gate", gate},
                      {"table", json::Array(table)},
                      {"output", output},
                      {"bias", hasBias},
                      {"k_divisor", kDivisor},
                      {"n_divisor", nDivisor},
                      {"config", config},
                      {"tensor_maps", std::move(mapArray)},
                      {"arguments", std::move(argumentArray)},
                      {"notes", std::move(noteArray)}};
}

std::string LaunchDescription::str() const {
  return formatv("{0:2}\n", toJSON()).str();
}

namespace {
/// Takes fields off an object one by one, remembers the first error, and at the
/// end refuses fields that nobody took.
class StrictReader {
public:
  explicit StrictReader(const json::Object &object) : object(object) {}

  void read(StringRef field, std::string &out) {
    if (const json::Value *value = take(field)) {
      if (std::optional<StringRef> text = value->getAsString())
        out = text->str();
      else
        mistyped(field, "a string", *value);
    }
  }
  void read(StringRef field, bool &out) {
    if (const json::Value *value = take(field)) {
      if (std::optional<bool> flag = value->getAsBoolean())
        out = *flag;
      else
        mistyped(field, "true or false", *value);
    }
  }
  template <typename T>
  std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>
  read(StringRef field, T &out) {
    if (const json::Value *value = take(field)) {
      std::optional<int64_t> number = value->getAsInteger();
      if (number && *number >= int64_t(std::numeric_limits<T>::min()) &&
          *number <= int64_t(std::numeric_limits<T>::max()))
        out = T(*number);
      else
        mistyped(field, "an integer in range", *value);
    }
  }
  void read(StringRef field, std::vector<std::string> &out) {
    const json::Value *value = take(field);
    if (!value)
      return;
    const json::Array *array = value->getAsArray();
    if (!array)
      return mistyped(field, "an array of strings", *value);
    out.clear();
    for (const json::Value &item : *array) {
      std::optional<StringRef> text = item.getAsString();
      if (!text)
        return mistyped(field, "an array of strings", *value);
      out.push_back(text->str());
    }
  }

  void read(StringRef field, std::vector<double> &out) {
    const json::Value *value = take(field);
    if (!value)
      return;
    const json::Array *array = value->getAsArray();
    if (!array)
      return mistyped(field, "an array of numbers", *value);
    out.clear();
    for (const json::Value &item : *array) {
      std::optional<double> number = item.getAsNumber();
      if (!number)
        return mistyped(field, "an array of numbers", *value);
      out.push_back(*number);
    }
  }

  void read(StringRef field, std::vector<LaunchDescription::TensorMap> &out) {
    const json::Value *value = take(field);
    if (!value)
      return;
    constexpr StringLiteral expected = "an array of objects of of and box_rows";
    const json::Array *array = value->getAsArray();
    if (!array)
      return mistyped(field, expected, *value);
    out.clear();
    for (const json::Value &item : *array) {
      const json::Object *map = item.getAsObject();
      std::optional<StringRef> of = map ? map->getString("of") : std::nullopt;
      std::optional<int64_t> rows =
          map ? map->getInteger("box_rows") : std::nullopt;
      if (!of || !rows || map->size() != 2 || *rows < 0 || *rows > INT32_MAX)
        return mistyped(field, expected, *value);
      out.push_back({of->str(), int32_t(*rows)});
    }
  }

  Error finish() {
    if (failure.empty())
      for (const auto &[field, value] : object)
        if (!taken.contains(StringRef(field))) {
          failure = "launch description: unknown field '" +
                    StringRef(field).str() + "'";
          break;
        }
    if (failure.empty())
      return Error::success();
    return makeError(failure);
  }

private:
  const json::Value *take(StringRef field) {
    taken.insert(field);
    if (const json::Value *value = object.get(field))
      return value;
    if (failure.empty())
      failure = "launch description: missing field '" + field.str() + "'";
    return nullptr;
  }
  void mistyped(StringRef field, StringRef expected, const json::Value &value) {
    if (!failure.empty())
      return;
    std::string got = formatv("{0}", value).str();
    if (got.size() > 80)
      got = got.substr(0, 77) + "...";
    failure = ("launch description: " + field + ": expected " + expected +
               ", got " + got)
                  .str();
  }

  const json::Object &object;
  StringSet<> taken;
  std::string failure;
};
} // namespace

Expected<LaunchDescription>
LaunchDescription::fromJSON(const json::Value &value) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return makeError("launch description: expected a JSON object");

  LaunchDescription d;
  StrictReader reader(*object);
  int64_t version = 0;
  std::vector<std::string> arguments;
  reader.read("format_version", version);
  reader.read("kernel", d.kernelName);
  reader.read("chip", d.chip);
  reader.read("ptx_version", d.ptxVersion);
  reader.read("assembler", d.assembler);
  reader.read("operation", d.operation);
  reader.read("block_threads", d.blockThreads);
  reader.read("shared_bytes", d.sharedBytes);
  reader.read("block_n", d.blockN);
  reader.read("block_m", d.blockM);
  reader.read("split_k", d.splitK);
  reader.read("early_launch", d.earlyLaunch);
  reader.read("persistent", d.persistent);
  reader.read("cluster", d.cluster);
  reader.read("cluster_n", d.clusterN);
  reader.read("cluster_m", d.clusterM);
  reader.read("activation", d.activation);
  reader.read("weight", d.weight);
  reader.read("weight_layout", d.weightLayout);
  reader.read("column_phase", d.columnPhase);
  reader.read("scale", d.scale);
  reader.read("granularity", d.granularity);
  reader.read("zero_point", d.zeroPoint);
  reader.read("global_scale", d.globalScale);
  reader.read("activation_scale", d.activationScale);
  reader.read("activation_group", d.activationGroup);
  reader.read("activation_scale_format", d.activationScaleFormat);
  reader.read("activation_zero_point", d.activationZeroPoint);
  reader.read("accumulator", d.accumulator);
  reader.read("gate", d.gate);
  reader.read("table", d.table);
  reader.read("output", d.output);
  reader.read("bias", d.hasBias);
  reader.read("k_divisor", d.kDivisor);
  reader.read("n_divisor", d.nDivisor);
  reader.read("config", d.config);
  reader.read("tensor_maps", d.tensorMaps);
  reader.read("arguments", arguments);
  reader.read("notes", d.notes);
  // Another version explains every other mismatch: it is reported first.
  if (version != 0 && version != kFormatVersion)
    return fieldError("format_version", Twine(kFormatVersion), Twine(version));
  if (Error error = reader.finish())
    return std::move(error);
  if (version != kFormatVersion)
    return fieldError("format_version", Twine(kFormatVersion), Twine(version));
  ArrayRef<StringLiteral> expected = d.arguments();
  if (!std::equal(
          arguments.begin(), arguments.end(), expected.begin(), expected.end(),
          [](StringRef left, StringRef right) { return left == right; }))
    return fieldError("arguments",
                      "[" + join(expected.begin(), expected.end(), ", ") + "]",
                      "[" + join(arguments, ", ") + "]");
  if (Error error = d.verify())
    return std::move(error);
  return d;
}

Expected<LaunchDescription> LaunchDescription::parse(StringRef text) {
  // LLVM's parser recurses on nesting; a description nests twice. Text that
  // could nest deeply enough to exhaust the stack is refused before parsing.
  size_t depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      if (++depth > 16)
        return makeError(
            "launch description: JSON nests deeper than 16 levels");
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return makeError("launch description: not JSON: " +
                     toString(value.takeError()));
  return fromJSON(*value);
}

} // namespace humming
