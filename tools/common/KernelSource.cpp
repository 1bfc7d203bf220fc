//===- KernelSource.cpp - The kernels that a tool is to run ---------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelSource.h"
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
  if (!saveFlag.empty())
    for (size_t i = 0; i < fitting.size(); ++i) {
      KernelArtifacts kernel = fitting[i];
      kernel.name += "_" + std::to_string(shape.n) + "x" +
                     std::to_string(shape.k) + "_m" + std::to_string(m) + "_" +
                     kernel.launch.chip;
      if (fitting.size() > 1)
        kernel.name += "_" + std::to_string(i);
      if (Error error = writeArtifacts(saveFlag, kernel))
        return makeError("--save-artifacts: " + toString(std::move(error)));
    }
  return std::move(fitting);
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
  if (weight)
    problem->weight = *weight;

  std::vector<std::optional<KernelConfig>> wanted;
  if (sweep > 0) {
    auto all = enumerateConfigs(*problem, **target);
    if (all.empty())
      return makeError("--sweep: no config is legal for " + problem->str());
    int64_t count = std::min<int64_t>(sweep, int64_t(all.size()));
    for (int64_t i = 0; i < count; ++i)
      wanted.push_back(all[size_t(i * int64_t(all.size()) / count)]);
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
  for (const std::optional<KernelConfig> &config : wanted) {
    Expected<KernelArtifacts> kernel =
        compiler->compile(*problem, **target, config);
    if (!kernel)
      return kernel.takeError();
    kernels.push_back(std::move(*kernel));
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
