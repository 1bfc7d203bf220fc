//===- KernelSource.cpp - The kernels that a tool is to run ---------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelSource.h"
#include "llvm/ADT/STLExtras.h"
#ifdef HUMMING_HAVE_COMPILER
#include "CompileKernel.h"
#else
namespace humming {
/// Never made in a build without the compiler.
class KernelCompiler {};
} // namespace humming
#endif

using namespace llvm;

namespace humming {

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

KernelSource::KernelSource(ProblemFlags &problemFlags)
    : category("Kernels", "Where the kernels come from"),
      ptxFlag("ptx", cl::desc("A compiled kernel: its PTX"),
              cl::value_desc("file"), cl::cat(category)),
      cubinFlag("cubin", cl::desc("A compiled kernel: its cubin"),
                cl::value_desc("file"), cl::cat(category)),
      launchFlag("launch", cl::desc("A compiled kernel: launch description"),
                 cl::value_desc("file"), cl::cat(category)),
      artifactsFlag("artifacts",
                    cl::desc("A folder of compiled kernels: NAME.json with "
                             "NAME.ptx, NAME.cubin"),
                    cl::value_desc("folder"), cl::cat(category)),
      saveFlag("save-artifacts",
               cl::desc("Also write the kernels into this folder"),
               cl::value_desc("folder"), cl::cat(category)),
#ifdef HUMMING_HAVE_COMPILER
      noCacheFlag("no-cache",
                  cl::desc("Compile anew, without the cache on disk"),
                  cl::cat(category)),
#endif
      flags(problemFlags) {
}

KernelSource::~KernelSource() = default;

Error KernelSource::open() {
  if (!artifactsFlag.empty()) {
    if (!ptxFlag.empty() || !cubinFlag.empty() || !launchFlag.empty())
      return makeError("--artifacts: expected no --ptx, --cubin or --launch "
                       "beside it");
    Expected<std::vector<KernelArtifacts>> all =
        readArtifactFolder(artifactsFlag);
    if (!all)
      return makeError("--artifacts: " + toString(all.takeError()));
    files = std::move(*all);
    return Error::success();
  }
  if (!ptxFlag.empty() || !cubinFlag.empty() || !launchFlag.empty()) {
    if (launchFlag.empty())
      return makeError("--launch: expected the launch description of the "
                       "compiled kernel, got nothing");
    Expected<KernelArtifacts> one =
        readArtifacts(ptxFlag, cubinFlag, launchFlag);
    if (!one)
      return one.takeError();
    files.push_back(std::move(*one));
    return Error::success();
  }
#ifdef HUMMING_HAVE_COMPILER
  if (Expected<const TargetInfo *> target = flags.target(); !target)
    return target.takeError();
  compiler = std::make_unique<KernelCompiler>(!noCacheFlag);
  return Error::success();
#else
  return makeError("this build has no compiler: expected compiled kernels, by "
                   "--artifacts or by --launch with --ptx or --cubin");
#endif
}

Expected<std::vector<KernelArtifacts>>
KernelSource::kernelsFor(Shape shape, int64_t m, const QuantType *weight) {
  std::vector<KernelArtifacts> fitting;
  if (!isPrecompiled()) {
    Expected<std::vector<KernelArtifacts>> compiled =
        compileFor(shape, m, weight);
    if (!compiled)
      return compiled.takeError();
    fitting = std::move(*compiled);
  }
  std::string why = "there is none";
  for (const KernelArtifacts &kernel : files) {
    if (!kernel.launch.isMatmul()) {
      why = "it is a " + kernel.launch.operation + " kernel (--op " +
            kernel.launch.operation + ")";
      continue;
    }
    if (weight) {
      Expected<MatmulProblem> problem =
          problemOf(kernel.launch, m, shape.n, shape.k);
      if (!problem)
        return problem.takeError();
      if (problem->weight != *weight) {
        why = "it takes weights " + problem->weight.str() + ", not " +
              weight->str();
        continue;
      }
    }
    if (admitsShape(kernel.launch, shape.n, shape.k, why))
      fitting.push_back(kernel);
  }
  if (fitting.empty())
    return makeError("no compiled kernel fits n = " + Twine(shape.n) +
                     ", k = " + Twine(shape.k) + ": " + why);
  if (Error error =
          save(fitting, "_" + std::to_string(shape.n) + "x" +
                            std::to_string(shape.k) + "_m" + std::to_string(m)))
    return std::move(error);
  return std::move(fitting);
}

/// Writes the kernels where --save-artifacts says, if it does.
Error KernelSource::save(ArrayRef<KernelArtifacts> kernels,
                         StringRef suffix) const {
  if (saveFlag.empty())
    return Error::success();
  for (size_t i = 0; i < kernels.size(); ++i) {
    KernelArtifacts kernel = kernels[i];
    kernel.name += suffix.str() + "_" + kernel.launch.chip;
    if (kernels.size() > 1)
      kernel.name += "_" + std::to_string(i);
    if (Error error = writeArtifacts(saveFlag, kernel))
      return makeError("--save-artifacts: " + toString(std::move(error)));
  }
  return Error::success();
}

Expected<KernelArtifacts>
KernelSource::packKernelFor(const PackProblem &problem) {
  for (const KernelArtifacts &kernel : files) {
    if (!kernel.launch.isPack() || problem.k % kernel.launch.kDivisor != 0)
      continue;
    Expected<PackProblem> have =
        packProblemOf(kernel.launch, problem.n, problem.k);
    if (!have)
      return have.takeError();
    if (have->str() == problem.str())
      return kernel;
  }
#ifdef HUMMING_HAVE_COMPILER
  if (!isPrecompiled()) {
    Expected<const TargetInfo *> target = flags.target();
    if (!target)
      return target.takeError();
    Expected<KernelArtifacts> kernel = compiler->compile(problem, **target);
    if (!kernel)
      return kernel.takeError();
    if (Error error = save({*kernel}, "_" + std::to_string(problem.k)))
      return std::move(error);
    return kernel;
  }
#endif
  return makeError("no compiled kernel fits " + problem.str() +
                   ", k = " + Twine(problem.k));
}

Expected<KernelArtifacts>
KernelSource::gatherKernelFor(const GatherProblem &problem) {
  for (const KernelArtifacts &kernel : files) {
    if (!kernel.launch.isGather() ||
        problem.columns % kernel.launch.kDivisor != 0)
      continue;
    Expected<GatherProblem> have =
        gatherProblemOf(kernel.launch, problem.m, problem.columns);
    if (!have)
      return have.takeError();
    if (have->str() == problem.str())
      return kernel;
  }
#ifdef HUMMING_HAVE_COMPILER
  if (!isPrecompiled()) {
    Expected<const TargetInfo *> target = flags.target();
    if (!target)
      return target.takeError();
    Expected<KernelArtifacts> kernel = compiler->compile(problem, **target);
    if (!kernel)
      return kernel.takeError();
    if (Error error = save({*kernel}, "_" + std::to_string(problem.columns)))
      return std::move(error);
    return kernel;
  }
#endif
  return makeError("no compiled kernel fits " + problem.str() +
                   ", columns = " + Twine(problem.columns));
}

Expected<std::vector<KernelArtifacts>>
KernelSource::quantizeKernelsFor(int64_t m, int64_t k) {
  std::vector<KernelArtifacts> fitting;
  for (const KernelArtifacts &kernel : files)
    if (kernel.launch.isQuantize() && k % kernel.launch.kDivisor == 0)
      fitting.push_back(kernel);
#ifdef HUMMING_HAVE_COMPILER
  if (!isPrecompiled()) {
    Expected<const TargetInfo *> target = flags.target();
    if (!target)
      return target.takeError();
    Expected<QuantizeProblem> problem = flags.quantizeProblem(m, k);
    if (!problem)
      return problem.takeError();
    Expected<KernelArtifacts> kernel =
        compiler->compile(*problem, **target, flags.configFlag.getValue());
    if (!kernel)
      return kernel.takeError();
    fitting.push_back(std::move(*kernel));
  }
#endif
  if (fitting.empty())
    return makeError("no compiled quantize kernel fits k = " + Twine(k));
  if (Error error = save(fitting, "_" + std::to_string(k)))
    return std::move(error);
  return std::move(fitting);
}

Expected<KernelArtifacts> KernelSource::quantizeKernelFor(int64_t m,
                                                          int64_t k) {
  for (const KernelArtifacts &kernel : files)
    if (kernel.launch.isQuantize() && k % kernel.launch.kDivisor == 0)
      return kernel;
#ifdef HUMMING_HAVE_COMPILER
  if (!isPrecompiled()) {
    Expected<const TargetInfo *> target = flags.target();
    if (!target)
      return target.takeError();
    Expected<QuantizeProblem> problem = flags.quantizeProblem(m, k);
    if (!problem)
      return problem.takeError();
    Expected<KernelArtifacts> kernel =
        compiler->compile(*problem, **target, /*config=*/"");
    if (!kernel)
      return kernel.takeError();
    if (Error error = save({*kernel}, "_" + std::to_string(k)))
      return std::move(error);
    return kernel;
  }
#endif
  return makeError("no compiled quantize kernel fits k = " + Twine(k));
}

Expected<std::vector<KernelConfig>>
KernelSource::sweepConfigs(const MatmulProblem &problem,
                           const TargetInfo &target) const {
  auto ranked = chooseConfig(problem, target, 1);
  if (!ranked)
    return ranked.takeError();
  const KernelConfig &pick = ranked->front().config;
  auto all = enumerateConfigs(problem, target);
  std::vector<std::pair<double, size_t>> order;
  for (auto [index, config] : enumerate(all))
    order.push_back(
        {estimateCost(problem, config, target).microseconds, index});
  llvm::sort(order);
  size_t count = size_t(std::min<uint64_t>(uint64_t(sweep), all.size()));
  size_t likely = count == all.size() ? count : (count + 1) / 2;
  std::vector<KernelConfig> configs = {pick};
  auto add = [&](const KernelConfig &config) {
    if (configs.size() < count && config != pick)
      configs.push_back(config);
  };
  for (size_t i = 0; i < likely; ++i)
    add(all[order[i].second]);
  // The rest by rising prediction, so that the spread covers good and bad.
  size_t rest = all.size() - likely, wanted = count - configs.size();
  for (size_t i = 0; i < wanted; ++i)
    add(all[order[likely + i * rest / wanted].second]);
  return configs;
}

#ifdef HUMMING_HAVE_COMPILER
Expected<std::vector<KernelArtifacts>>
KernelSource::compileFor(Shape shape, int64_t m, const QuantType *weight) {
  Expected<const TargetInfo *> target = flags.target();
  if (!target)
    return target.takeError();
  compiler->fallback = flags.fallback;
  Expected<MatmulProblem> problem = flags.problem(shape, m);
  if (!problem)
    return problem.takeError();
  if (weight) {
    problem->weight = *weight;
    if (Error error = flags.setLayout(*problem))
      return std::move(error);
  }

  std::vector<std::optional<KernelConfig>> wanted;
  if (sweep > 0) {
    Expected<std::vector<KernelConfig>> all = sweepConfigs(*problem, **target);
    if (!all)
      return all.takeError();
    wanted.assign(all->begin(), all->end());
  } else if (!configs.empty() || flags.hasConfig()) {
    // Keys that are left out come from the chooser's answer.
    auto ranked = chooseConfig(*problem, **target, 1);
    if (!ranked)
      return ranked.takeError();
    const KernelConfig &base = ranked->front().config;
    for (const std::string &text : configs) {
      Expected<KernelConfig> config = KernelConfig::parse(text, base);
      if (!config)
        return makeError("--configs: " + toString(config.takeError()));
      wanted.push_back(*config);
    }
    Expected<std::optional<KernelConfig>> config = flags.config(base);
    if (!config)
      return config.takeError();
    if (*config)
      wanted.push_back(**config);
  } else {
    wanted.push_back(std::nullopt);
  }

  std::vector<KernelArtifacts> kernels;
  failures.clear();
  for (const std::optional<KernelConfig> &config : wanted) {
    Expected<KernelArtifacts> kernel =
        compiler->compile(*problem, **target, config);
    if (!kernel) {
      if (sweep == 0)
        return kernel.takeError();
      // One of many: the others are still wanted.
      failures.push_back({config->str(), toString(kernel.takeError())});
      continue;
    }
    kernels.push_back(std::move(*kernel));
    if (progress)
      progress(kernels.size(), wanted.size());
  }
  return std::move(kernels);
}
#else
Expected<std::vector<KernelArtifacts>>
KernelSource::compileFor(Shape, int64_t, const QuantType *) {
  (void)flags; // read by the compiler alone
  return makeError("this build has no compiler");
}
#endif

} // namespace humming
