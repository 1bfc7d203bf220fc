//===- Combinations.cpp - Everything that a target runs -------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/Combinations.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <array>
#include <set>

using namespace humming;

namespace {
/// A weight format, or a table of its codes.
struct Weight {
  std::string name;
  NumberFormat format;
  std::optional<CodeTable> table;
};
} // namespace

static std::vector<NumberFormat> allActivations() {
  return {NumberFormat::f16(),
          NumberFormat::bf16(),
          NumberFormat::smallFloat(4, 3),
          NumberFormat::smallFloat(5, 2),
          NumberFormat::signedInt(8),
          NumberFormat::signedInt(4)};
}

static std::vector<Weight> allWeights() {
  std::vector<Weight> weights;
  auto add = [&](NumberFormat format) {
    weights.push_back({format.str(), format, std::nullopt});
  };
  for (unsigned bits = 1; bits <= 8; ++bits)
    add(NumberFormat::unsignedInt(bits));
  for (unsigned bits = 2; bits <= 8; ++bits)
    add(NumberFormat::signedInt(bits));
  for (unsigned exponent = 1; exponent <= 7; ++exponent)
    for (unsigned mantissa = 0; 1 + exponent + mantissa <= 8; ++mantissa)
      add(NumberFormat::smallFloat(exponent, mantissa));
  weights.push_back({"nf4", NumberFormat::unsignedInt(4), CodeTable::nf4()});
  weights.push_back({"fp4", NumberFormat::unsignedInt(4), CodeTable::fp4()});
  return weights;
}

/// How activations are scaled and summed.
static std::vector<MatmulProblem> activationVariants() {
  std::vector<MatmulProblem> variants;
  MatmulProblem p;
  for (NumberFormat accumulator : {NumberFormat::f32(), NumberFormat::f16()}) {
    p.accumulator = accumulator;
    variants.push_back(p);
  }
  p = {};
  for (auto scale : {ActivationScaleKind::Tensor, ActivationScaleKind::Token})
    for (bool zeroPoint : {false, true}) {
      p.activationScale = scale;
      p.activationZeroPoint = zeroPoint;
      variants.push_back(p);
    }
  p.activationZeroPoint = false;
  for (int32_t group : {16, 32, 64, 128, 256})
    for (NumberFormat format : {NumberFormat::f32(), NumberFormat::e8m0()}) {
      p.activationGroup = group;
      p.activationScaleFormat = format;
      variants.push_back(p);
    }
  // Sums of f16 with scales of activations: those of 8-bit floats.
  p.accumulator = NumberFormat::f16();
  p.activationScaleFormat = NumberFormat::f32();
  for (int32_t group : {0, 16, 128}) {
    p.activationGroup = group;
    variants.push_back(p);
  }
  p.activationScale = ActivationScaleKind::Tensor;
  p.activationGroup = 0;
  variants.push_back(p);
  return variants;
}

static bool isLegal(const MatmulProblem &problem, const TargetInfo &target) {
  llvm::Error error = problem.weight.verify();
  if (!error)
    error = checkProblem(problem, target);
  bool ok = !error;
  llvm::consumeError(std::move(error));
  return ok;
}

std::vector<MatmulProblem>
humming::enumerateProblems(const TargetInfo &target,
                           const MatmulProblem &sizes) {
  const NumberFormat scales[] = {NumberFormat::f32(),
                                 NumberFormat::f16(),
                                 NumberFormat::bf16(),
                                 NumberFormat::smallFloat(4, 3),
                                 NumberFormat::smallFloat(5, 2),
                                 NumberFormat::e8m0()};
  const Granularity granularities[] = {
      Granularity::perTensor(),   Granularity::perChannel(),
      Granularity::group(16),     Granularity::group(32),
      Granularity::group(64),     Granularity::group(128),
      Granularity::group(256),    Granularity::block(32, 32),
      Granularity::block(64, 64), Granularity::block(128, 128)};
  std::vector<MatmulProblem> problems;
  MatmulProblem p = sizes;
  for (NumberFormat activation : allActivations()) {
    p.activation = activation;
    p.deriveDivisors();
    for (const MatmulProblem &variant : activationVariants()) {
      p.activationScale = variant.activationScale;
      p.activationGroup = variant.activationGroup;
      p.activationScaleFormat = variant.activationScaleFormat;
      p.activationZeroPoint = variant.activationZeroPoint;
      p.accumulator = variant.accumulator;
      // Most variants go with few activations: ask once.
      MatmulProblem probe = p;
      probe.weight = QuantType();
      probe.weight.weight = NumberFormat::unsignedInt(2);
      if (!isLegal(probe, target))
        continue;
      for (const Weight &weight : allWeights()) {
        p.weight.weight = weight.format;
        p.weight.table = weight.table;
        for (NumberFormat scale : scales) {
          p.weight.scale = scale;
          for (Granularity granularity : granularities) {
            p.weight.granularity = granularity;
            for (auto zeroPoint : {ZeroPointKind::None, ZeroPointKind::Integer,
                                   ZeroPointKind::Float}) {
              p.weight.zeroPoint = zeroPoint;
              for (auto global :
                   {GlobalScaleKind::None, GlobalScaleKind::Tensor,
                    GlobalScaleKind::Channel}) {
                p.weight.globalScale = global;
                for (auto layout : {WeightLayout::Packed, WeightLayout::Plain})
                  for (int32_t phase : {0, 64}) {
                    p.weightLayout = layout;
                    p.weight.columnPhase = phase;
                    if (isLegal(p, target))
                      problems.push_back(p);
                  }
                p.weight.columnPhase = 0;
                p.weightLayout = WeightLayout::Packed;
              }
            }
          }
        }
      }
    }
  }
  return problems;
}

/// The attributes of a problem as text, which are what pairs are made of.
static std::array<std::string, 10> attributesOf(const MatmulProblem &p) {
  std::string table;
  if (p.weight.table)
    table = *p.weight.table == CodeTable::nf4() ? "nf4" : "fp4";
  return {p.activation.str(),
          stringify(p.activationScale).str() +
              (p.activationZeroPoint ? " zp" : "") +
              (p.accumulator.isF16() ? " sum16" : ""),
          std::to_string(p.activationGroup) + p.activationScaleFormat.str(),
          table.empty() ? p.weight.weight.str() : table,
          p.weight.scale.str(),
          p.weight.granularity.str(),
          stringify(p.weight.zeroPoint).str(),
          std::to_string(int(p.weight.globalScale)),
          stringify(p.weightLayout).str(),
          std::to_string(p.weight.columnPhase)};
}

std::vector<MatmulProblem>
humming::coverPairs(const std::vector<MatmulProblem> &problems) {
  // Numbered values make pairs cheap to look up.
  constexpr size_t count = std::tuple_size_v<std::array<std::string, 10>>;
  std::array<std::vector<std::string>, count> names;
  std::vector<std::array<uint16_t, count>> rows;
  for (const MatmulProblem &problem : problems) {
    std::array<std::string, count> attributes = attributesOf(problem);
    std::array<uint16_t, count> &row = rows.emplace_back();
    for (size_t i = 0; i < count; ++i) {
      auto at = llvm::find(names[i], attributes[i]);
      if (at == names[i].end())
        at = names[i].insert(at, attributes[i]);
      row[i] = uint16_t(at - names[i].begin());
    }
  }
  auto pairsOf = [&](const std::array<uint16_t, count> &row, auto visit) {
    for (size_t i = 0; i < count; ++i)
      for (size_t j = i + 1; j < count; ++j)
        visit(uint64_t(i) << 40 | uint64_t(j) << 32 | uint64_t(row[i]) << 16 |
              row[j]);
  };
  std::set<uint64_t> open;
  for (const auto &row : rows)
    pairsOf(row, [&](uint64_t pair) { open.insert(pair); });
  // Passes with falling thresholds: near the greedy choice, at a fraction of
  // its cost.
  std::vector<MatmulProblem> cover;
  for (size_t wanted = count * (count - 1) / 2; wanted > 0 && !open.empty();
       --wanted)
    for (size_t r = 0; r < rows.size(); ++r) {
      size_t gain = 0;
      pairsOf(rows[r], [&](uint64_t pair) { gain += open.count(pair); });
      if (gain < wanted)
        continue;
      pairsOf(rows[r], [&](uint64_t pair) { open.erase(pair); });
      cover.push_back(problems[r]);
    }
  return cover;
}

/// What goes with each activation format: a row an option.
static std::string activationTable() {
  struct Option {
    const char *name;
    MatmulProblem problem;
  };
  std::vector<Option> options;
  auto add = [&](const char *name,
                 ActivationScaleKind scale) -> MatmulProblem & {
    options.push_back({name, MatmulProblem()});
    options.back().problem.activationScale = scale;
    return options.back().problem;
  };
  add("scale per tensor", ActivationScaleKind::Tensor);
  add("scale per token", ActivationScaleKind::Token);
  add("scale per 16, 32, 64, ... of a token", ActivationScaleKind::Token)
      .activationGroup = 16;
  MatmulProblem &exponents =
      add("the same in e8m0", ActivationScaleKind::Token);
  exponents.activationGroup = 16;
  exponents.activationScaleFormat = NumberFormat::e8m0();
  add("zero points", ActivationScaleKind::Token).activationZeroPoint = true;
  add("f16 sums", ActivationScaleKind::None).accumulator = NumberFormat::f16();

  std::string text = "| activations |";
  for (NumberFormat activation : allActivations())
    text += " " + activation.str() + " |";
  text += "\n|---|";
  for (size_t i = 0; i < allActivations().size(); ++i)
    text += "---|";
  text += "\n";
  for (Option &option : options) {
    text += std::string("| ") + option.name + " |";
    for (NumberFormat activation : allActivations()) {
      option.problem.activation = activation;
      // f16 sums go with any scales.
      if (option.problem.accumulator.isF16() && activation.bits < 16)
        option.problem.activationScale = ActivationScaleKind::Token;
      option.problem.weight.weight = NumberFormat::unsignedInt(2);
      std::string cell = " |";
      for (const TargetInfo &target : getAllTargets())
        if (isLegal(option.problem, target)) {
          cell = " " + target.chip.str() + "+ |";
          break;
        }
      text += cell;
    }
    text += "\n";
  }
  return text;
}

std::string humming::supportTable() {
  std::string text = "| weights |";
  for (NumberFormat activation : allActivations())
    text += " " + activation.str() + " |";
  text += "\n|---|";
  for (size_t i = 0; i < allActivations().size(); ++i)
    text += "---|";
  text += "\n";
  for (const Weight &weight : allWeights()) {
    text += "| " + weight.name + " |";
    for (NumberFormat activation : allActivations()) {
      MatmulProblem p;
      p.activation = activation;
      p.activationScale = activation.bits < 16 ? ActivationScaleKind::Token
                                               : ActivationScaleKind::None;
      p.weight.weight = weight.format;
      p.weight.table = weight.table;
      std::string cell = " |";
      for (const TargetInfo &target : getAllTargets())
        if (isLegal(p, target)) {
          cell = " " + target.chip.str() + "+ |";
          break;
        }
      text += cell;
    }
    text += "\n";
  }
  return text + "\n" + activationTable();
}
