//===- LayerScheme.cpp - What a configuration says of a layer -------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/LayerScheme.h"
#include "ReaderSupport.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/Regex.h"

using namespace llvm;

namespace humming {

/// Configurations hold Python patterns; the subset in use differs from POSIX
/// extended expressions in the class escapes and in non-capturing groups.
static std::string toPosix(StringRef pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern.substr(i).starts_with("(?:")) {
      out += "(";
      i += 2;
    } else if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      char c = pattern[++i];
      if (c == 'd')
        out += "[0-9]";
      else if (c == 'w')
        out += "[A-Za-z0-9_]";
      else if (c == 's')
        out += "[ \t]";
      else {
        out += '\\';
        out += c;
      }
    } else {
      out += pattern[i];
    }
  }
  return out;
}

/// Python's re.match: from the start, not necessarily to the end.
static Expected<bool> matchesPattern(StringRef pattern, StringRef layer) {
  if (pattern.size() > 1000)
    return createStringError("quantization_config: expected a pattern of at "
                             "most 1000 characters, got " +
                             Twine(pattern.size()));
  std::string posix = "^(" + toPosix(pattern) + ")";
  Regex regex(posix);
  std::string error;
  if (!regex.isValid(error))
    return createStringError("quantization_config: can't read the pattern '" +
                             pattern + "': " + error);
  return regex.match(layer);
}

Expected<bool> matchesLayer(StringRef entry, StringRef layer) {
  if (entry.consume_front("re:"))
    return matchesPattern(entry, layer);
  if (entry.contains('*')) {
    Expected<GlobPattern> glob = GlobPattern::create(entry, 64);
    if (!glob)
      return createStringError("quantization_config: can't read the pattern '" +
                               entry + "': " + toString(glob.takeError()));
    return glob->match(layer);
  }
  if (entry.empty())
    return false;
  std::string dottedLayer = ("." + layer + ".").str();
  return StringRef(dottedLayer).contains(("." + entry + ".").str());
}

/// Whether any string of an array matches.
static Expected<bool> matchesAny(const json::Array &entries, StringRef key,
                                 StringRef layer) {
  for (const json::Value &value : entries) {
    std::optional<StringRef> entry = value.getAsString();
    if (!entry)
      return createStringError("quantization_config: expected strings in '" +
                               key + "'");
    Expected<bool> matches = matchesLayer(*entry, layer);
    if (!matches || *matches)
      return matches;
  }
  return false;
}

/// bits, group_size and sym, under any of the names in use.
static Error readNumbers(const json::Object &object, LayerScheme &scheme) {
  for (StringRef key : {"bits", "w_bit", "num_bits", "nbits"}) {
    Expected<int64_t> bits = integerField(object, key, scheme.bits);
    if (!bits)
      return bits.takeError();
    if (*bits < 0 || *bits > 16)
      return createStringError("quantization_config: expected '" + key +
                               "' of 1 to 16, got " + Twine(*bits));
    scheme.bits = unsigned(*bits);
  }
  for (StringRef key : {"group_size", "q_group_size"}) {
    Expected<int64_t> group = integerField(object, key, scheme.groupSize);
    if (!group)
      return group.takeError();
    if (*group < -1 || *group > INT32_MAX)
      return createStringError("quantization_config: expected '" + key +
                               "' of -1 to 2^31 - 1, got " + Twine(*group));
    scheme.groupSize = *group;
  }
  for (StringRef key : {"sym", "symmetric"}) {
    if (!object.get(key))
      continue;
    Expected<bool> symmetric = boolField(object, key, false);
    if (!symmetric)
      return symmetric.takeError();
    scheme.symmetric = *symmetric;
  }
  Expected<bool> zero = boolField(object, "zero_point", false);
  if (!zero)
    return zero.takeError();
  if (object.get("zero_point"))
    scheme.symmetric = !*zero;
  for (StringRef key : {"weight_block_size", "block_structure"}) {
    const json::Array *block = object.getArray(key);
    if (!block)
      continue;
    std::optional<int64_t> rows, columns;
    if (block->size() == 2) {
      rows = (*block)[0].getAsInteger();
      columns = (*block)[1].getAsInteger();
    }
    if (!rows || !columns || *rows < 1 || *columns < 1 || *rows > INT32_MAX ||
        *columns > INT32_MAX)
      return createStringError("quantization_config: expected two integers of "
                               "at least 1 in '" +
                               key + "'");
    scheme.blockRows = *rows;
    scheme.blockColumns = *columns;
  }
  return Error::success();
}

/// The config_groups entry of compressed-tensors that applies to a layer: an
/// entry that names it (or a pattern) goes before one for all of its class.
static Error readGroups(const json::Object &groups, StringRef layer,
                        LayerScheme &scheme) {
  const json::Object *chosen = nullptr;
  bool byName = false;
  for (const auto &[name, value] : groups) {
    const json::Object *group = value.getAsObject();
    const json::Array *targets = group ? group->getArray("targets") : nullptr;
    if (!targets)
      return createStringError("quantization_config: expected an object with "
                               "'targets' in config_groups, '" +
                               StringRef(name) + "'");
    Expected<bool> named = matchesAny(*targets, "targets", layer);
    if (!named)
      return named.takeError();
    bool byClass = any_of(*targets, [](const json::Value &target) {
      return target.getAsString() == std::optional<StringRef>("Linear");
    });
    if ((*named && !byName) || (byClass && !chosen)) {
      chosen = group;
      byName = *named;
    }
  }
  if (!chosen) {
    scheme.ignored = true;
    return Error::success();
  }
  if (std::optional<StringRef> format = chosen->getString("format"))
    scheme.format = format->str();
  const json::Object *weights = chosen->getObject("weights");
  if (!weights) {
    scheme.ignored = true;
    return Error::success();
  }
  return readNumbers(*weights, scheme);
}

Expected<LayerScheme> resolveScheme(const json::Object *config,
                                    StringRef layer) {
  LayerScheme scheme;
  if (!config)
    return scheme;
  if (std::optional<StringRef> method = config->getString("quant_method"))
    scheme.method = method->lower();
  if (Error error = readNumbers(*config, scheme))
    return std::move(error);
  for (StringRef key : {"format", "packing_format"})
    if (std::optional<StringRef> format = config->getString(key))
      scheme.format = format->str();
  if (std::optional<StringRef> format =
          config->getString("checkpoint_format")) {
    // AWQ's exporters use the key for names of their own.
    Expected<GptqZeros> zeros = parseGptqZeros(*format);
    if (zeros)
      scheme.zeros = *zeros;
    else if (scheme.method == "gptq")
      return createStringError("quantization_config, checkpoint_format: " +
                               toString(zeros.takeError()));
    else
      consumeError(zeros.takeError());
  }
  scheme.multiplyScale = config->getString("linear_class") ==
                         std::optional<StringRef>("autobitlinear");
  if (StringRef(scheme.method).contains("auto-round") ||
      scheme.method == "auto_round") {
    // Its GPTQ packing keeps GPTQ v1's zero points, its own one does not.
    scheme.zeros = StringRef(scheme.format).contains("gptq") ? GptqZeros::V1
                                                             : GptqZeros::V2;
  }

  for (StringRef key : {"ignore", "ignored_layers", "modules_to_not_convert",
                        "exclude_modules", "llm_int8_skip_modules"}) {
    const json::Array *entries = config->getArray(key);
    if (!entries)
      continue;
    Expected<bool> ignored = matchesAny(*entries, key, layer);
    if (!ignored)
      return ignored.takeError();
    scheme.ignored |= *ignored;
  }
  if (const json::Object *groups = config->getObject("config_groups"))
    if (Error error = readGroups(*groups, layer, scheme))
      return std::move(error);

  if (const json::Object *dynamic = config->getObject("dynamic"))
    for (const auto &[key, value] : *dynamic) {
      StringRef pattern = key;
      bool skip = pattern.consume_front("-:");
      if (!skip)
        pattern.consume_front("+:");
      Expected<bool> matches = matchesPattern(pattern, layer);
      if (!matches)
        return matches.takeError();
      if (!*matches)
        continue;
      if (skip)
        scheme.ignored = true;
      else if (const json::Object *object = value.getAsObject())
        if (Error error = readNumbers(*object, scheme))
          return std::move(error);
    }
  if (const json::Object *extra = config->getObject("extra_config"))
    for (const auto &[key, value] : *extra) {
      bool matches = StringRef(key) == layer;
      if (!matches &&
          StringRef(key).find_first_of("*+?[(\\^$|") != StringRef::npos) {
        Expected<bool> byPattern = matchesPattern(key, layer);
        if (!byPattern)
          return byPattern.takeError();
        matches = *byPattern;
      }
      if (!matches)
        continue;
      if (const json::Object *object = value.getAsObject()) {
        if (Error error = readNumbers(*object, scheme))
          return std::move(error);
        // 16 bits is how auto-round says that a layer stays as it is.
        scheme.ignored |= scheme.bits >= 16;
      }
    }
  return scheme;
}

} // namespace humming
