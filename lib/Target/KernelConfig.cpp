//===- KernelConfig.cpp - Text form and resources of a config ------ -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Printing and strict parsing of configs and problems, and the two functions
// that say what a config will take of an SM: its shared-memory layout (which
// the lowering follows to the byte) and its expected registers.
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/KernelConfig.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <numeric>

using namespace humming;

llvm::StringRef humming::stringify(ScalePlacement placement) {
  switch (placement) {
  case ScalePlacement::Operand:
    return "operand";
  case ScalePlacement::Accumulator:
    return "accumulator";
  case ScalePlacement::Epilogue:
    return "epilogue";
  }
  return "unknown";
}

llvm::StringRef humming::stringify(MmaRows rows) {
  return rows == MmaRows::Tokens ? "tokens" : "features";
}

llvm::StringRef humming::stringify(Multicast multicast) {
  switch (multicast) {
  case Multicast::None:
    return "none";
  case Multicast::Activations:
    return "activations";
  case Multicast::Weights:
    return "weights";
  }
  return "unknown";
}

//===----------------------------------------------------------------------===//
// MatmulProblem
//===----------------------------------------------------------------------===//

llvm::StringRef humming::stringify(ActivationScaleKind kind) {
  switch (kind) {
  case ActivationScaleKind::None:
    return "none";
  case ActivationScaleKind::Tensor:
    return "tensor";
  case ActivationScaleKind::Token:
    return "token";
  }
  return "none";
}

llvm::Expected<ActivationScaleKind>
humming::parseActivationScaleKind(llvm::StringRef text) {
  for (ActivationScaleKind kind :
       {ActivationScaleKind::None, ActivationScaleKind::Tensor,
        ActivationScaleKind::Token})
    if (stringify(kind) == text)
      return kind;
  return llvm::createStringError("expected none, tensor or token, got '" +
                                 text + "'");
}

llvm::StringRef humming::stringify(WeightLayout layout) {
  return layout == WeightLayout::Plain ? "plain" : "packed";
}

llvm::Expected<WeightLayout> humming::parseWeightLayout(llvm::StringRef text) {
  for (WeightLayout layout : {WeightLayout::Packed, WeightLayout::Plain})
    if (stringify(layout) == text)
      return layout;
  return llvm::createStringError("expected packed or plain, got '" + text +
                                 "'");
}

bool MatmulProblem::canBePlain() const {
  // The 8-bit floats mix in one MMA.
  auto isFloat8 = [](const NumberFormat &f) {
    return f.isFloat() && f.bits == 8;
  };
  bool isOperand = weight.weight == activation
                       ? weight.weight.bits == 8
                       : isFloat8(activation) &&
                             (weight.weight == NumberFormat::smallFloat(4, 3) ||
                              weight.weight == NumberFormat::smallFloat(5, 2));
  return isOperand && weight.zeroPoint == ZeroPointKind::None && !weight.table;
}

WeightLayout MatmulProblem::naturalLayout() const {
  KernelConfig config;
  config.scale = ScalePlacement::Accumulator; // of groups; none has no columns
  bool wholeSteps = partsOfStep(*this, config) == 1;
  return canBePlain() && kDivisor >= 16 && wholeSteps ? WeightLayout::Plain
                                                      : WeightLayout::Packed;
}

static int32_t divisorOf(int64_t size, int64_t most) {
  // An unknown size promises nothing.
  if (size <= 0)
    return 1;
  return int32_t(std::min<int64_t>(size & -size, most));
}

void MatmulProblem::deriveDivisors() {
  kDivisor = divisorOf(k, std::max(8, 128 / activation.bits));
  nDivisor = divisorOf(n, 8);
}

static void printSize(llvm::raw_ostream &os, char name, int64_t size) {
  os << ' ' << name << '=';
  if (size > 0)
    os << size;
  else
    os << '?';
}

std::string MatmulProblem::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << 'w' << unsigned(weight.weight.bits) << 'a' << unsigned(activation.bits)
     << ' ' << weight.weight.str() << '/';
  const Granularity &granularity = weight.granularity;
  if (granularity.isGroup())
    os << 'g' << granularity.columns;
  else if (granularity.isPerChannel())
    os << "channel";
  else if (granularity.isPerTensor())
    os << "tensor";
  else
    os << "b" << granularity.rows << 'x' << granularity.columns;
  os << '/' << weight.scale.str();
  if (weight.zeroPoint == ZeroPointKind::Integer)
    os << "/zp-int";
  else if (weight.zeroPoint == ZeroPointKind::Float)
    os << "/zp-float";
  if (weight.table)
    os << "/table";
  if (weight.globalScale != GlobalScaleKind::None)
    os << (weight.globalScale == GlobalScaleKind::Tensor ? "/global"
                                                         : "/global-row");
  if (weightLayout == WeightLayout::Plain)
    os << "/plain";
  os << " x " << activation.str();
  if (activationScale != ActivationScaleKind::None)
    os << '/' << stringify(activationScale);
  if (activationGroup != 0)
    os << "/g" << activationGroup << '/' << activationScaleFormat.str();
  if (activationZeroPoint)
    os << "/zp-int";
  os << " -> " << output.str();
  if (hasBias)
    os << " + bias";
  if (!accumulator.isF32())
    os << ", " << accumulator.str() << " sums";
  os << ',';
  printSize(os, 'M', m);
  printSize(os, 'N', n);
  printSize(os, 'K', k);
  return text;
}

//===----------------------------------------------------------------------===//
// KernelConfig: text
//===----------------------------------------------------------------------===//

bool KernelConfig::operator==(const KernelConfig &o) const {
  return mma == o.mma && blockN == o.blockN && blockM == o.blockM &&
         blockK == o.blockK && warpN == o.warpN && warpM == o.warpM &&
         warpsK == o.warpsK && stages == o.stages && copy == o.copy &&
         scale == o.scale && splitK == o.splitK && early == o.early &&
         persistent == o.persistent && cluster == o.cluster &&
         multicast == o.multicast && producers == o.producers &&
         rows == o.rows && panel == o.panel;
}

std::string KernelConfig::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "mma=" << stringify(mma) << ",block=" << blockN << 'x' << blockM << 'x'
     << blockK << ",warp=" << warpN << 'x' << warpM << ",warps_k=" << warpsK
     << ",stages=" << stages << ",copy=" << stringify(copy)
     << ",scale=" << stringify(scale) << ",split_k=" << splitK;
  if (early)
    os << ",early=" << early;
  if (persistent)
    os << ",persistent=" << persistent;
  if (cluster)
    os << ",cluster=" << cluster;
  if (panel)
    os << ",panel=" << panel;
  if (!producers)
    os << ",producers=" << producers;
  if (multicast != Multicast::None)
    os << ",multicast=" << stringify(multicast);
  if (tokenRows())
    os << ",rows=" << stringify(rows);
  return text;
}

/// Reads `count` positive integers separated by 'x'. The bound keeps every
/// product of sizes within 64 bits.
static bool parseSizes(llvm::StringRef text,
                       llvm::MutableArrayRef<int32_t> out) {
  constexpr unsigned long long bound = 1 << 16;
  for (size_t i = 0; i < out.size(); ++i) {
    llvm::StringRef field = text;
    if (i + 1 < out.size()) {
      size_t at = text.find('x');
      if (at == llvm::StringRef::npos)
        return false;
      field = text.take_front(at);
      text = text.drop_front(at + 1);
    }
    unsigned long long value;
    if (!llvm::all_of(field, llvm::isDigit) || field.getAsInteger(10, value) ||
        value == 0 || value > bound)
      return false;
    out[i] = int32_t(value);
  }
  return true;
}

/// Sets `out` to the enumerator of `values` that prints as `text`.
template <typename Enum>
static bool parseEnum(llvm::StringRef text, llvm::ArrayRef<Enum> values,
                      Enum &out) {
  for (Enum value : values)
    if (stringify(value) == text) {
      out = value;
      return true;
    }
  return false;
}

llvm::Expected<KernelConfig> KernelConfig::parse(llvm::StringRef text,
                                                 const KernelConfig &base) {
  KernelConfig config = base;
  if (text.trim().empty())
    return config;
  llvm::SmallVector<llvm::StringRef> entries, seen;
  text.split(entries, ',');
  for (llvm::StringRef entry : entries) {
    llvm::StringRef key = entry.split('=').first.trim();
    llvm::StringRef value = entry.split('=').second.trim();
    if (llvm::is_contained(seen, key))
      return llvm::createStringError("config key '" + key +
                                     "': expected at most once, got it twice");
    seen.push_back(key);

    bool ok = true;
    llvm::StringRef takes;
    int32_t sizes[3];
    auto parseInto = [&](llvm::ArrayRef<int32_t *> fields) {
      llvm::MutableArrayRef<int32_t> parsed(sizes, fields.size());
      ok = parseSizes(value, parsed);
      if (ok)
        for (size_t i = 0; i < fields.size(); ++i)
          *fields[i] = parsed[i];
    };
    if (key == "mma") {
      takes = "m16n8k8, m16n8k16, m16n8k32, m16n8k64, m8n8k16 or wgmma";
      ok = parseEnum<MmaKind>(value,
                              {MmaKind::M16N8K8, MmaKind::M16N8K16,
                               MmaKind::M16N8K32, MmaKind::M16N8K64,
                               MmaKind::M8N8K16, MmaKind::Wgmma},
                              config.mma);
    } else if (key == "block") {
      takes = "NxMxK, three integers from 1 to 65536";
      parseInto({&config.blockN, &config.blockM, &config.blockK});
    } else if (key == "warp") {
      takes = "NxM, two integers from 1 to 65536";
      parseInto({&config.warpN, &config.warpM});
    } else if (key == "warps_k") {
      takes = "an integer from 1 to 65536";
      parseInto({&config.warpsK});
    } else if (key == "stages") {
      takes = "an integer from 1 to 65536";
      parseInto({&config.stages});
    } else if (key == "copy") {
      takes = "sync, cp.async, bulk or tensor";
      ok = parseEnum<CopyKind>(
          value,
          {CopyKind::Sync, CopyKind::CpAsync, CopyKind::Bulk, CopyKind::Tensor},
          config.copy);
    } else if (key == "scale") {
      takes = "operand, accumulator or epilogue";
      ok = parseEnum<ScalePlacement>(value,
                                     {ScalePlacement::Operand,
                                      ScalePlacement::Accumulator,
                                      ScalePlacement::Epilogue},
                                     config.scale);
    } else if (key == "split_k") {
      takes = "an integer from 1 to 65536";
      parseInto({&config.splitK});
    } else if (key == "early") {
      takes = "0 or 1";
      ok = value == "0" || value == "1";
      config.early = value == "1";
    } else if (key == "persistent") {
      takes = "0 or 1";
      ok = value == "0" || value == "1";
      config.persistent = value == "1";
    } else if (key == "cluster") {
      takes = "0 or 1";
      ok = value == "0" || value == "1";
      config.cluster = value == "1";
    } else if (key == "panel") {
      takes = "an integer from 0 to 65536";
      if (value == "0")
        config.panel = 0;
      else
        parseInto({&config.panel});
    } else if (key == "producers") {
      takes = "0 or 1";
      ok = value == "0" || value == "1";
      config.producers = value == "1";
    } else if (key == "multicast") {
      takes = "none, activations or weights";
      ok = parseEnum<Multicast>(
          value, {Multicast::None, Multicast::Activations, Multicast::Weights},
          config.multicast);
    } else if (key == "rows") {
      takes = "features or tokens";
      ok = parseEnum<MmaRows>(value, {MmaRows::Features, MmaRows::Tokens},
                              config.rows);
    } else {
      return llvm::createStringError(
          "unknown config key: expected one of mma, block, warp, warps_k, "
          "stages, copy, scale, split_k, early, persistent, cluster, "
          "panel, producers, multicast, rows, got '" +
          key + "'");
    }
    if (!ok)
      return llvm::createStringError("config key '" + key + "': expected " +
                                     takes + ", got '" + value + "'");
  }
  // A warp tile means other warps with other rows: that of `base` would not do.
  if (llvm::is_contained(seen, "warp") && !llvm::is_contained(seen, "rows"))
    config.rows = MmaRows::Features;
  return config;
}

//===----------------------------------------------------------------------===//
// Resources
//===----------------------------------------------------------------------===//

int32_t humming::groupsOfStage(const QuantType &type, int32_t blockK) {
  int32_t group = type.granularity.columns;
  // A group longer than the stage, or a whole row, still takes one row.
  if (group == 0)
    return 1;
  int32_t whole = std::max(1, (blockK + group - 1) / group);
  // Where stages begin inside a group, the last one goes on in the next stage.
  return whole + (type.columnPhase % std::min(group, blockK) != 0);
}

int32_t humming::tensorBoxRows(int32_t rows) {
  int32_t box = std::min(rows, 256) / 8 * 8;
  while (box > 8 && rows % box != 0)
    box -= 8;
  return box;
}

bool humming::hasPartialSums(const MatmulProblem &problem,
                             const KernelConfig &config) {
  return config.scale == ScalePlacement::Accumulator ||
         problem.activationGroup != 0 || problem.accumulator.isF16();
}

bool humming::overlapsSums(const MatmulProblem &problem,
                           const KernelConfig &config) {
  // Registers of a set: those of 64 x 64 tiles of a warpgroup.
  constexpr int32_t most = 32;
  if (config.mma != MmaKind::Wgmma || !hasPartialSums(problem, config))
    return false;
  int32_t onAccumulators = config.scale == ScalePlacement::Accumulator
                               ? problem.weight.granularity.columns
                               : 0;
  int32_t group = std::gcd(onAccumulators, problem.activationGroup);
  return group > 0 && config.blockK / config.warpsK >= 2 * group &&
         config.rowUnits() * config.columnTiles() * 4 <= most;
}

int32_t humming::partsOfStep(const MatmulProblem &problem,
                             const KernelConfig &config) {
  bool onAccumulators = config.scale == ScalePlacement::Accumulator;
  int32_t size =
      std::gcd(onAccumulators ? problem.weight.granularity.columns : 0,
               problem.activationGroup);
  int32_t depth = 256 / problem.activation.bits;
  return size == 0 || size >= depth ? 1 : depth / size;
}

bool humming::storesDirectly(const MatmulProblem &problem,
                             const KernelConfig &config) {
  return config.mma == MmaKind::Wgmma && config.usesRing() &&
         problem.nDivisor >= 2;
}

SharedMemoryLayout humming::layoutSharedMemory(const MatmulProblem &problem,
                                               const KernelConfig &config) {
  constexpr int64_t alignment = 128;
  auto align = [](int64_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  };
  const QuantType &weight = problem.weight;
  int64_t blockN = config.blockN, blockM = config.blockM,
          blockK = config.blockK;
  int32_t groupRows = groupsOfStage(weight, config.blockK);
  int64_t scaleBytes = weight.scale.bits / 8;

  SharedMemoryLayout layout;
  // Epilogue scales are read from global memory once, zero points are needed
  // in the loop wherever the scales go.
  if (config.scale != ScalePlacement::Epilogue)
    layout.scaleRows = groupRows;
  if (weight.zeroPoint != ZeroPointKind::None)
    layout.zeroPointRows = groupRows;
  int64_t zeroPointBytes =
      weight.zeroPoint == ZeroPointKind::Float ? scaleBytes : 1;

  layout.weights = 0;
  layout.activations = align(blockN * blockK * weight.weight.bits / 8);
  layout.scales =
      layout.activations + align(blockM * blockK * problem.activation.bits / 8);
  layout.zeroPoints =
      layout.scales + align(layout.scaleRows * blockN * scaleBytes);
  layout.tokenScales =
      layout.zeroPoints + align(layout.zeroPointRows * blockN * zeroPointBytes);
  if (int64_t aGroup = problem.activationGroup) {
    layout.tokenScaleRows =
        int32_t(std::max<int64_t>(1, (blockK + aGroup - 1) / aGroup));
    // A block may begin in the middle of 16 tokens.
    layout.tokenScaleTokens =
        int32_t(blockM / 16 * 16 + (blockM % 16 == 0 ? 0 : 16));
  }
  layout.stageBytes =
      layout.tokenScales +
      align(int64_t(layout.tokenScaleRows) * layout.tokenScaleTokens *
            problem.activationScaleFormat.bits / 8);
  layout.stages = config.copy == CopyKind::Sync ? 2 : config.stages;
  layout.epilogueBytes =
      align(blockN * blockM * 4 * std::max(1, config.warpsK - 1));
  int64_t buffers = layout.stageBytes * layout.stages;
  // A pair of 8-byte mbarriers a stage.
  if (config.usesRing())
    buffers += align(16 * layout.stages);
  // Results that go out from registers take no memory. The sum over warps along
  // K and over blocks does.
  if (storesDirectly(problem, config) && config.warpsK == 1)
    layout.epilogueBytes = config.cluster      ? align(blockN * blockM * 4)
                           : config.splitK > 1 ? alignment
                                               : 0;
  layout.totalBytes = std::max(buffers, layout.epilogueBytes);
  return layout;
}

int64_t humming::predictSharedMemory(const MatmulProblem &problem,
                                     const KernelConfig &config) {
  return layoutSharedMemory(problem, config).totalBytes;
}

/// What the sum of the parts misses. Each case is a config that ptxas 13.0 gave
/// 255 registers and spills of 4 to 120 bytes (AssembleChoicesTest), next to
/// one that it did not; a config that might spill is no candidate.
static int64_t registersOfTemporaries(const MatmulProblem &problem,
                                      const KernelConfig &config) {
  const QuantType &weight = problem.weight;
  int64_t units = config.rowUnits(), columns = config.columnTiles();
  bool warpgroups = config.mma == MmaKind::Wgmma;
  int64_t extra = 0;
  // Floats without an instruction that converts them, and tables: masks and
  // halves of several registers at once; wgmma keeps two steps of operands.
  bool bySequence = (weight.weight.isFloat() && weight.weight.bits < 8) ||
                    weight.table.has_value();
  // With wgmma and one set of accumulators ptxas finds room (128 x 256 tiles of
  // two warpgroups with 168 registers, without spills).
  if (warpgroups && !hasPartialSums(problem, config))
    bySequence = false;
  const bool isLarge = units * columns >= 12;
  if (bySequence)
    extra += !isLarge ? 8 : warpgroups ? 80 : 72;
  // The first step of the next trip is dequantized while this one's last runs.
  if (bySequence && isLarge && warpgroups && config.usesRing())
    extra += 32;
  // A trip of several groups spilled a word or three where integer sums become
  // floats and where one warp copies.
  if (warpgroups && hasPartialSums(problem, config) && config.blockK > 128 &&
      problem.weightLayout == WeightLayout::Packed &&
      (problem.activation.isInteger() || config.copy == CopyKind::Tensor))
    extra += 4;
  // Several scales of a slab.
  int32_t group = weight.granularity.columns;
  if (group > 0 && group < 64 && config.scale != ScalePlacement::Operand)
    extra += units * 2 * (64 / group - 1);
  if (config.tokenRows()) {
    // The epilogue's scales of columns (spills of 36 to 724 bytes), and of
    // several partial sums of a trip the next beside the last: two take all 168
    // registers, more of 16 tiles serialise the MMAs (212 to 440 bytes), and
    // the sum over splits has none left (20 to 192 bytes).
    int32_t least =
        std::gcd(config.scale == ScalePlacement::Accumulator ? group : 0,
                 problem.activationGroup);
    int32_t sums = least == 0 ? 0
                              : config.blockK / std::max(1, least) +
                                    (weight.columnPhase != 0);
    if (least == 0 ? units * columns >= 32
                   : units * columns >= 16 && (sums > (columns >= 16 ? 2 : 4) ||
                                               (sums > 1 && config.splitK > 1)))
      extra += 12;
  }
  if (!warpgroups && units * columns >= 32) {
    // Warp tiles of 64 x 64 have 240 registers without anything else.
    if (config.warpsM() > 1)
      extra += 16;
    if (weight.zeroPoint != ZeroPointKind::None)
      extra += 8;
  }
  // A group that ends inside an unrolled stage of four slabs.
  if (!warpgroups && config.scale == ScalePlacement::Accumulator &&
      units * columns >= 16 && config.blockK / 64 / config.warpsK >= 4)
    extra += 36;
  return extra;
}

int32_t humming::predictRegisters(const MatmulProblem &problem,
                                  const KernelConfig &config) {
  // A unit is 16 features (or tokens) x 64 k: one m16 row of MMA instructions.
  int64_t units = config.rowUnits();
  int64_t columns = config.columnTiles();
  int64_t accumulators = units * columns * 4;
  if (hasPartialSums(problem, config))
    // The partial sum of a group, or of two, and the total.
    accumulators *= overlapsSums(problem, config) ? 3 : 2;
  int64_t packed = units * problem.weight.weight.bits; // words of one slab
  // A warpgroup dequantizes a step at a time: ptxas loads wide words as late.
  if (config.mma == MmaKind::Wgmma)
    packed = std::min<int64_t>(packed, units * 4);
  int64_t operand = units * 4; // one MMA step
  // Plain weights are operands: those of a slab, or for wgmma none.
  if (problem.weightLayout == WeightLayout::Plain) {
    packed = 0;
    operand = config.mma == MmaKind::Wgmma ? 0 : units * 8;
  }
  // Two MMA steps; wgmma reads them from shared memory.
  int64_t activations = config.mma == MmaKind::Wgmma ? 0 : columns * 2 * 2;
  int64_t scales = units * 2;
  if (problem.weight.zeroPoint != ZeroPointKind::None)
    scales += units * 2;
  if (problem.activationGroup != 0)
    // With wgmma they are loaded as they are used (146 registers for 128
    // tokens, where the estimate was 202).
    scales += config.tokenRows()             ? units * 2
              : config.mma == MmaKind::Wgmma ? std::min<int64_t>(columns * 2, 8)
                                             : columns * 2;
  // Pointers, strides, predicates, swizzled offsets and the loop counters; the
  // reduction over warps keeps some addresses alive across the loop (a 64x64
  // warp tile spills with it, and does not without).
  int64_t base = config.warpsK > 1 ? 56 : 40;
  int64_t copies = 0;
  // Without cp.async a stage waits in registers for its turn.
  if (config.copy == CopyKind::Sync) {
    int64_t threads = std::max<int64_t>(
        1, int64_t(config.blockN / std::max(1, config.warpN)) *
               (config.blockM / std::max(1, config.warpM)) * config.warpsK *
               32);
    int64_t stage = layoutSharedMemory(problem, config).stageBytes;
    copies = (stage + 4 * threads - 1) / (4 * threads);
  }
  int64_t sum = base + accumulators + packed + operand + activations + scales +
                copies + registersOfTemporaries(problem, config);
  return int32_t(std::min<int64_t>(sum, INT32_MAX));
}
