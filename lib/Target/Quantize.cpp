//===- Quantize.cpp - Rules and choice for quantize kernels ---------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rules (docs/HQuant.md):
//   Q1  sizes are non-negative and fit 31 bits (0 = unknown)
//   Q2  the input is f16 or bf16
//   Q3  the codes are e4m3, e5m2, s8 or s4, and the chip has an MMA for them
//   Q4  scales are per tensor or token; groups go with scales per token
//   Q5  a group is a power of two from 16 to 32768
//   Q6  scales are f32, or e8m0 with groups
//   Q7  zero points go with s8 codes without groups
//   Q8  the divisor is 1, 2, 4 or 8 and divides the known size
//   Q9  lanes are a power of two from 2 to 1024; more than a group's chunks of
//   8
//       only if they are at most 32
//   Q10 32 to 1024 threads, a multiple of 32
//   Q11 1 to 8 chunks, 4 past 512 threads, which have 64 registers each
//   Q12 groups is 1 without groups
//
// The choice: a thread takes 16 bytes at a time. A row is spread over as many
// threads as it has chunks, up to 512, then over chunks; a group over its
// chunks. Blocks of 256 threads take several groups or rows where those are
// short.
//
// Worked example: K = 4096 per token: 512 chunks, 256 lanes with 2 chunks each,
// one row a block. Groups of 128: 16 chunks, 16 lanes, 16 groups a block.
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/Quantize.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace humming;
using llvm::Twine;

void QuantizeProblem::deriveDivisors() {
  kDivisor = k <= 0 ? 1 : int32_t(std::min<int64_t>(k & -k, 8));
}

std::string QuantizeProblem::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << input.str() << " -> " << codes.format.str() << '/' << stringify(scale);
  if (codes.group)
    os << "/g" << codes.group;
  os << '/' << codes.scaleFormat.str();
  if (codes.zeroPoint)
    os << "/zp-int";
  if (gate != GateKind::None)
    os << ", " << stringify(gate);
  os << ", M=";
  m > 0 ? os << m : os << '?';
  os << " K=";
  k > 0 ? os << k : os << '?';
  return text;
}

//===----------------------------------------------------------------------===//
// Text of configs
//===----------------------------------------------------------------------===//

std::string QuantizeConfig::str() const {
  return ("lanes=" + Twine(lanes) + ",groups=" + Twine(groups) +
          ",rows=" + Twine(rows) + ",chunks=" + Twine(chunks))
      .str();
}

llvm::Expected<QuantizeConfig>
QuantizeConfig::parse(llvm::StringRef text, const QuantizeConfig &base) {
  QuantizeConfig config = base;
  if (text.trim().empty())
    return config;
  llvm::SmallVector<llvm::StringRef> entries, seen;
  text.split(entries, ',');
  for (llvm::StringRef entry : entries) {
    llvm::StringRef key = entry.split('=').first.trim();
    llvm::StringRef value = entry.split('=').second.trim();
    int32_t *field = key == "lanes"    ? &config.lanes
                     : key == "groups" ? &config.groups
                     : key == "rows"   ? &config.rows
                     : key == "chunks" ? &config.chunks
                                       : nullptr;
    if (!field)
      return llvm::createStringError("unknown config key: expected one of "
                                     "lanes, groups, rows, chunks, got '" +
                                     key + "'");
    if (llvm::is_contained(seen, key))
      return llvm::createStringError("config key '" + key +
                                     "': expected at most once, got it twice");
    seen.push_back(key);
    if (value.getAsInteger(10, *field) || *field < 1 || *field > 1024)
      return llvm::createStringError("config key '" + key +
                                     "': expected an integer from 1 to 1024, "
                                     "got '" +
                                     value + "'");
  }
  return config;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

static llvm::Error ruleError(unsigned rule, const Twine &expected,
                             const Twine &got) {
  return llvm::createStringError("rule Q" + Twine(rule) + ": expected " +
                                 expected + ", got " + got);
}

llvm::Error humming::checkQuantize(const QuantizeProblem &problem,
                                   const TargetInfo &target) {
  for (auto [name, size] :
       {std::pair<const char *, int64_t>{"M", problem.m}, {"K", problem.k}})
    if (size < 0 || size > INT32_MAX)
      return ruleError(1, Twine(name) + " from 0 to 2147483647", Twine(size));
  if (!problem.input.isF16() && !problem.input.isBF16())
    return ruleError(2, "an input of f16 or bf16", problem.input.str());
  const ActivationCodes &codes = problem.codes;
  const NumberFormat known[] = {
      NumberFormat::smallFloat(4, 3), NumberFormat::smallFloat(5, 2),
      NumberFormat::signedInt(8), NumberFormat::signedInt(4)};
  if (!llvm::is_contained(known, codes.format))
    return ruleError(3, "codes of e4m3, e5m2, s8 or s4", codes.format.str());
  if (llvm::none_of(target.mmaKinds, [&](MmaKind kind) {
        return target.supports(kind, codes.format);
      }))
    return ruleError(3, "codes that " + Twine(target.chip) + " has an MMA for",
                     codes.format.str());
  if (problem.scale == ActivationScaleKind::None)
    return ruleError(4, "scales per tensor or token", "none");
  if (codes.group != 0 && problem.scale != ActivationScaleKind::Token)
    return ruleError(4, "scales per token with groups",
                     stringify(problem.scale));
  if (codes.group != 0 && (codes.group < 16 || codes.group > 32768 ||
                           !llvm::isPowerOf2_32(uint32_t(codes.group))))
    return ruleError(5, "a group that is a power of two from 16 to 32768",
                     Twine(codes.group));
  if (!codes.scaleFormat.isF32() &&
      !(codes.scaleFormat.isE8M0() && codes.group != 0))
    return ruleError(6, "scales of f32, or of e8m0 with groups",
                     codes.scaleFormat.str());
  if (codes.zeroPoint &&
      (codes.format != NumberFormat::signedInt(8) || codes.group != 0))
    return ruleError(
        7, "zero points with s8 codes without groups",
        codes.format.str() + Twine(" codes") +
            (codes.group ? " in groups of " + Twine(codes.group) : Twine()));
  if (problem.kDivisor < 1 || problem.kDivisor > 8 ||
      !llvm::isPowerOf2_32(uint32_t(problem.kDivisor)) ||
      problem.k % problem.kDivisor != 0)
    return ruleError(8, "a divisor of K of 1, 2, 4 or 8",
                     Twine(problem.kDivisor));
  return llvm::Error::success();
}

/// A chunk takes 8 registers; an SM has 65536 of them.
static int32_t mostChunksOf(int64_t threads) { return threads > 512 ? 4 : 8; }

llvm::Error humming::checkQuantizeConfig(const QuantizeProblem &problem,
                                         const QuantizeConfig &config,
                                         const TargetInfo &) {
  int32_t chunksOfGroup = problem.codes.group / 8;
  if (config.lanes < 2 || config.lanes > 1024 ||
      !llvm::isPowerOf2_32(uint32_t(config.lanes)) ||
      (chunksOfGroup != 0 && config.lanes > std::max(32, chunksOfGroup)))
    return ruleError(
        9,
        "lanes that are a power of two from 2 to " +
            Twine(chunksOfGroup ? std::max(32, chunksOfGroup) : 1024),
        Twine(config.lanes));
  int64_t threads = int64_t(config.lanes) * config.groups * config.rows;
  if (config.groups < 1 || config.rows < 1 || threads < 32 || threads > 1024 ||
      threads % 32 != 0)
    return ruleError(10, "32 to 1024 threads, a multiple of 32",
                     Twine(threads));
  int32_t mostChunks = mostChunksOf(threads);
  if (config.chunks < 1 || config.chunks > mostChunks)
    return ruleError(11,
                     "1 to " + Twine(mostChunks) + " chunks with " +
                         Twine(threads) + " threads",
                     Twine(config.chunks));
  if (problem.codes.group == 0 && config.groups != 1)
    return ruleError(12, "groups=1 without groups", Twine(config.groups));
  return llvm::Error::success();
}

llvm::Expected<QuantizeConfig>
humming::chooseQuantizeConfig(const QuantizeProblem &problem,
                              const TargetInfo &target) {
  if (llvm::Error error = checkQuantize(problem, target))
    return std::move(error);
  constexpr int64_t blockThreads = 256;
  // A row of unknown length is taken for one of 4096.
  int64_t k = problem.k > 0 ? problem.k : 4096;
  int64_t group = problem.codes.group;
  int64_t chunks = llvm::divideCeil(group ? group : k, 8);
  QuantizeConfig config;
  // Up to 4 chunks a thread; 8 only where 512 threads leave the registers.
  int64_t lanes = std::min<int64_t>(
      std::max<int64_t>(2, int64_t(llvm::PowerOf2Ceil(uint64_t(chunks)))),
      blockThreads);
  while (lanes < 512 && chunks > 4 * lanes)
    lanes *= 2;
  config.lanes = int32_t(lanes);
  config.chunks =
      int32_t(std::clamp<int64_t>(int64_t(llvm::divideCeil(chunks, lanes)), 1,
                                  mostChunksOf(std::max(lanes, blockThreads))));
  int64_t segments = std::max<int64_t>(1, blockThreads / lanes);
  if (group) {
    // No more groups than a row has: the rest are rows.
    int64_t groupsOfRow =
        int64_t(llvm::PowerOf2Ceil(llvm::divideCeil(k, group)));
    config.groups = int32_t(std::min(segments, groupsOfRow));
  }
  config.rows = int32_t(segments / config.groups);
  return config;
}

std::vector<QuantizeProblem>
humming::enumerateQuantizeProblems(const TargetInfo &target,
                                   const QuantizeProblem &sizes) {
  std::vector<QuantizeProblem> problems;
  QuantizeProblem p = sizes;
  p.deriveDivisors();
  for (NumberFormat input : {NumberFormat::f16(), NumberFormat::bf16()})
    for (NumberFormat format :
         {NumberFormat::smallFloat(4, 3), NumberFormat::smallFloat(5, 2),
          NumberFormat::signedInt(8), NumberFormat::signedInt(4)})
      for (auto scale :
           {ActivationScaleKind::Tensor, ActivationScaleKind::Token})
        for (int32_t group : {0, 16, 32, 64, 128, 256, 512, 1024})
          for (NumberFormat scaleFormat :
               {NumberFormat::f32(), NumberFormat::e8m0()})
            for (bool zeroPoint : {false, true})
              for (GateKind gate : {GateKind::None, GateKind::Silu,
                                    GateKind::Gelu, GateKind::GeluTanh}) {
                p.input = input;
                p.codes = {format, group, scaleFormat, zeroPoint};
                p.scale = scale;
                p.gate = gate;
                llvm::Error error = checkQuantize(p, target);
                if (!error)
                  problems.push_back(p);
                llvm::consumeError(std::move(error));
              }
  return problems;
}
