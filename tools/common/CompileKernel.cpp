//===- CompileKernel.cpp - Compile through the cache ----------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompileKernel.h"
#include "Humming/Compiler/Compiler.h"
#include "Humming/Runtime/JitLink.h"
#include "Humming/Target/Fallback.h"
#include "llvm/Support/WithColor.h"
#include <chrono>
#include <map>

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

using namespace llvm;

/// The config with what is printed only where set: the chooser must not fill it
/// in.
static std::string completeText(const humming::KernelConfig &config) {
  std::string text = config.str();
  if (!config.early)
    text += ",early=0";
  if (!config.persistent)
    text += ",persistent=0";
  if (!config.cluster)
    text += ",cluster=0";
  if (!config.panel)
    text += ",panel=0";
  if (!config.tokenRows())
    text += ",rows=features";
  if (config.producers)
    text += ",producers=1";
  if (config.multicast == humming::Multicast::None)
    text += ",multicast=none";
  return text;
}

namespace humming {

struct KernelCompiler::State {
  Compiler compiler;
  std::optional<Assembler> assembler;
  bool searched = false;
  std::map<std::string, KernelArtifacts> known; ///< by cache key
};

static void warn(StringRef message) {
  WithColor::warning(errs()) << message << '\n';
}

KernelCompiler::KernelCompiler(bool useDiskCache)
    : state(std::make_unique<State>()),
      cache(std::make_unique<DiskCache>(
          useDiskCache ? DiskCache::defaultFolder() : "", warn)) {}

KernelCompiler::~KernelCompiler() = default;

/// What the generated code depends on; sizes only through the divisors.
static std::string problemText(const MatmulProblem &problem) {
  std::string table;
  if (problem.weight.table)
    for (float value : problem.weight.table->values)
      table += " " + utohexstr(bit_cast<uint32_t>(value));
  std::string extras;
  if (problem.activationGroup)
    extras += "/g" + std::to_string(problem.activationGroup) + "/" +
              problem.activationScaleFormat.str();
  if (problem.activationZeroPoint)
    extras += "/zp";
  if (problem.accumulator.isF16())
    extras += "/sum16";
  return (problem.activation.str() + Twine("/") +
          stringify(problem.activationScale) + extras + " * " +
          problem.weight.str() + " " + stringify(problem.weightLayout) +
          " phase " + Twine(problem.weight.columnPhase) + table + " -> " +
          problem.output.str() + (problem.hasBias ? " + bias" : "") + " k%" +
          Twine(problem.kDivisor) + " n%" + Twine(problem.nDivisor))
      .str();
}

Expected<KernelArtifacts>
KernelCompiler::compile(const MatmulProblem &given, const TargetInfo &target,
                        const std::optional<KernelConfig> &wanted) {
  MatmulProblem problem = given;
  if (fallback) {
    Expected<ResolvedProblem> resolved = resolveFallback(given, target);
    if (!resolved)
      return resolved.takeError();
    problem = resolved->problem;
    if (!resolved->note.empty())
      warn(resolved->note);
  }
  KernelConfig config;
  if (wanted) {
    config = *wanted;
    if (Error error = checkConfig(problem, config, target))
      return std::move(error);
  } else {
    auto ranked = chooseConfig(problem, target, 1);
    if (!ranked)
      return ranked.takeError();
    config = ranked->front().config;
  }

  if (Error error = findAssemblerOnce())
    return std::move(error);
  CacheKey key;
  // A fallback is in the launch description's notes.
  key.problem = problemText(problem) + (problem.activation == given.activation
                                            ? ""
                                            : " for " + given.activation.str());
  key.config = config.str();
  key.chip = target.chip.str();
  key.ptxVersion = requiredPtxVersion(problem, config, target);
  return lookUp(std::move(key), target, [&] {
    CompileOptions options;
    options.chip = target.chip.str();
    options.config = completeText(config);
    options.fallback = fallback;
    return state->compiler.compile(given, options);
  });
}

Expected<KernelArtifacts>
KernelCompiler::compile(const QuantizeProblem &problem,
                        const TargetInfo &target, StringRef configText) {
  Expected<QuantizeConfig> config = chooseQuantizeConfig(problem, target);
  if (config && !configText.empty())
    config = QuantizeConfig::parse(configText, *config);
  if (!config)
    return config.takeError();
  if (Error error = findAssemblerOnce())
    return std::move(error);
  CacheKey key;
  // Sizes count through the divisor and the config alone.
  QuantizeProblem anySize = problem;
  anySize.m = anySize.k = 0;
  key.problem =
      "quantize " + anySize.str() + " k%" + std::to_string(problem.kDivisor);
  key.config = config->str();
  key.chip = target.chip.str();
  key.ptxVersion = requiredPtxVersion(problem, target);
  return lookUp(std::move(key), target, [&] {
    CompileOptions options;
    options.chip = target.chip.str();
    options.config = config->str();
    return state->compiler.compile(problem, options);
  });
}

template <typename Problem>
Expected<KernelArtifacts>
KernelCompiler::compileLayout(const Problem &problem, int32_t divisor,
                              const TargetInfo &target) {
  if (Error error = findAssemblerOnce())
    return std::move(error);
  CacheKey key;
  key.problem = problem.str() + " %" + std::to_string(divisor);
  key.chip = target.chip.str();
  key.ptxVersion = target.minPtxVersion;
  return lookUp(std::move(key), target, [&] {
    CompileOptions options;
    options.chip = target.chip.str();
    return state->compiler.compile(problem, options);
  });
}

Expected<KernelArtifacts> KernelCompiler::compile(const PackProblem &problem,
                                                  const TargetInfo &target) {
  return compileLayout(problem, problem.kDivisor, target);
}

Expected<KernelArtifacts> KernelCompiler::compile(const GatherProblem &problem,
                                                  const TargetInfo &target) {
  return compileLayout(problem, problem.divisor, target);
}

Error KernelCompiler::findAssemblerOnce() {
  if (!state->searched) {
    state->searched = true;
    Expected<AssemblerSearch> search = AssemblerSearch::fromEnvironment();
    if (!search)
      return search.takeError();
    Expected<Assembler> found = findAssembler(*search);
    if (found)
      state->assembler = std::move(*found);
    else if (search->forced &&
             *search->forced != AssemblerKind::Driver) // asked for by name
      return found.takeError();
    else
      // The driver can still take the PTX when the kernel is loaded.
      consumeError(found.takeError());
  }
  return Error::success();
}

Expected<KernelArtifacts>
KernelCompiler::lookUp(CacheKey key, const TargetInfo &target,
                       function_ref<Expected<CompileResult>()> run) {
  key.compiler = compilerVersion();
  key.assembler = state->assembler ? state->assembler->identity : "";
  std::string id = key.hash();
  if (auto it = state->known.find(id); it != state->known.end())
    return it->second;

  uint64_t computesBefore = cache->counters().computes;
  lastSteps.clear();
  lastLog.clear();
  auto start = std::chrono::steady_clock::now();
  Expected<CacheEntry> entry =
      cache->getOrCompute(key, [&](DiskCache::Sink sink) -> Error {
        Expected<CompileResult> result = run();
        if (!result)
          return result.takeError();
        for (const StepTime &step : result->times)
          lastSteps.push_back({step.step, step.milliseconds});
        AssembledKernel assembled;
        if (state->assembler) {
          Expected<AssembledKernel> made =
              assemble(*state->assembler, result->ptx, target.chip);
          if (!made)
            return made.takeError();
          assembled = std::move(*made);
          result->launch.assembler = assembled.assembler;
          lastSteps.push_back({"assemble", assembled.openMilliseconds +
                                               assembled.milliseconds});
          lastLog = assembled.log;
          for (const std::string &warning : assembled.warnings)
            warn(assembled.assembler + ": " + warning);
        }
        sink({result->launch.str(), result->ptx,
              StringRef(assembled.cubin.data(), assembled.cubin.size())});
        return Error::success();
      });
  if (!entry)
    return entry.takeError();
  if (lastSteps.empty())
    lastSteps.push_back({"cache", std::chrono::duration<double, std::milli>(
                                      std::chrono::steady_clock::now() - start)
                                      .count()});

  KernelArtifacts artifacts;
  Expected<LaunchDescription> launch =
      LaunchDescription::parse(entry->launch());
  if (!launch)
    return launch.takeError();
  artifacts.launch = std::move(*launch);
  artifacts.name = artifacts.launch.kernelName;
  artifacts.ptx = entry->ptx().str();
  artifacts.cubin = entry->cubin().str();
  artifacts.origin =
      cache->counters().computes > computesBefore ? "compiled" : "cache";
  state->known[id] = artifacts;
  return artifacts;
}

} // namespace humming
