//===- humming-compile.cpp - A problem in, artefacts out --------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   humming-compile --chip sm_90 --a bf16 --w u4 --scale bf16 --group 128
//       --n 8192 --k 8192 --m 16 --emit ptx -o kernel.ptx
//
// Stages 1 to 4 print IR; ptx, cubin and launch go through the disk cache.
//
//===----------------------------------------------------------------------===//

#include "CompileKernel.h"
#include "Humming/Compiler/Compiler.h"
#include "Humming/Target/Combinations.h"
#include "ProblemFlags.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;
using namespace humming;

namespace {

/// What --emit names: a stage of IR (1 to 4) or an artefact.
enum class Artifact { Stage1 = 1, Stage2, Stage3, Stage4, Ptx, Cubin, Launch };

Expected<Artifact> parseArtifact(StringRef text) {
  auto artifact = StringSwitch<std::optional<Artifact>>(text)
                      .Case("stage1", Artifact::Stage1)
                      .Case("stage2", Artifact::Stage2)
                      .Case("stage3", Artifact::Stage3)
                      .Case("stage4", Artifact::Stage4)
                      .Case("ptx", Artifact::Ptx)
                      .Case("cubin", Artifact::Cubin)
                      .Case("launch", Artifact::Launch)
                      .Default(std::nullopt);
  if (!artifact)
    return createStringError("--emit: expected stage1, stage2, stage3, stage4, "
                             "ptx, cubin or launch, got '" +
                             text + "'");
  return *artifact;
}

struct Output {
  std::string bytes;
  std::vector<std::string> remarks;
  std::vector<KernelCompiler::Step> steps;
  std::string assemblerLog;
};

/// Compiles without the cache, up to a stage of IR or to PTX.
Expected<CompileResult> compileDirectly(const MatmulProblem &problem,
                                        const TargetInfo &target,
                                        StringRef config, int lastStage,
                                        bool explain) {
  Compiler compiler;
  CompileOptions options;
  options.chip = target.chip.str();
  options.config = config.str();
  options.lastStage = lastStage;
  options.keepIR = lastStage < 5;
  options.explain = explain;
  return compiler.compile(problem, options);
}

/// What `--emit` asks for of a compiled kernel.
Error takeArtifact(Artifact artifact, const KernelArtifacts &kernel,
                   std::string &bytes) {
  switch (artifact) {
  case Artifact::Ptx:
    bytes = kernel.ptx;
    break;
  case Artifact::Cubin:
    if (kernel.cubin.empty())
      return createStringError(
          "--emit cubin: expected an assembler (libnvJitLink.so, ptxas or a "
          "driver), found none; install one, set CUDA_HOME, or emit ptx, which "
          "a driver can load");
    bytes = kernel.cubin;
    break;
  default:
    bytes = kernel.launch.str();
    break;
  }
  return Error::success();
}

Expected<Output> makeOutput(Artifact artifact, const MatmulProblem &problem,
                            const TargetInfo &target, ProblemFlags &flags,
                            bool explain, bool noCache) {
  Output output;
  StringRef config = flags.configFlag.getValue();
  // The explanation is the chooser's, which works without the rest.
  if (artifact <= Artifact::Stage4 || explain) {
    int stage = artifact <= Artifact::Stage4 ? int(artifact) : 3;
    auto result = compileDirectly(problem, target, config,
                                  std::max(stage, explain ? 3 : 1), explain);
    if (!result)
      return result.takeError();
    output.remarks = result->remarks;
    if (artifact <= Artifact::Stage4) {
      if (explain && stage < 3) {
        // The remarks needed later stages; the text is of the one asked for.
        auto again = compileDirectly(problem, target, config, stage, false);
        if (!again)
          return again.takeError();
        result = std::move(again);
      }
      output.bytes = std::move(result->ir);
      for (const StepTime &step : result->times)
        output.steps.push_back({step.step, step.milliseconds});
      return output;
    }
  }

  std::optional<KernelConfig> wanted;
  if (!config.empty()) {
    auto ranked = chooseConfig(problem, target, 1);
    if (!ranked)
      return ranked.takeError();
    auto parsed = flags.config(ranked->front().config);
    if (!parsed)
      return parsed.takeError();
    wanted = *parsed;
  }
  KernelCompiler compiler(!noCache);
  compiler.fallback = flags.fallback;
  Expected<KernelArtifacts> kernel = compiler.compile(problem, target, wanted);
  if (!kernel)
    return kernel.takeError();
  output.steps = compiler.steps();
  output.assemblerLog = compiler.assemblerLog();
  if (Error error = takeArtifact(artifact, *kernel, output.bytes))
    return std::move(error);
  return output;
}

/// The same for `--op quantize`.
Expected<Output> makeQuantizeOutput(Artifact artifact,
                                    const QuantizeProblem &problem,
                                    const TargetInfo &target,
                                    ProblemFlags &flags, bool explain,
                                    bool noCache) {
  Output output;
  StringRef config = flags.configFlag.getValue();
  if (artifact <= Artifact::Stage4 || explain) {
    Compiler compiler;
    CompileOptions options;
    options.chip = target.chip.str();
    options.config = config.str();
    options.lastStage = artifact <= Artifact::Stage4 ? int(artifact) : 2;
    options.keepIR = true;
    options.explain = explain;
    Expected<CompileResult> result = compiler.compile(problem, options);
    if (!result)
      return result.takeError();
    output.remarks = result->remarks;
    if (artifact <= Artifact::Stage4) {
      output.bytes = std::move(result->ir);
      for (const StepTime &step : result->times)
        output.steps.push_back({step.step, step.milliseconds});
      return output;
    }
  }
  KernelCompiler compiler(!noCache);
  Expected<KernelArtifacts> kernel = compiler.compile(problem, target, config);
  if (!kernel)
    return kernel.takeError();
  output.steps = compiler.steps();
  output.assemblerLog = compiler.assemblerLog();
  if (Error error = takeArtifact(artifact, *kernel, output.bytes))
    return std::move(error);
  return output;
}

/// The same for `--op pack` and `--op gather`.
template <typename Problem>
Expected<Output> makeLayoutOutput(Artifact artifact, const Problem &problem,
                                  const TargetInfo &target, bool noCache) {
  Output output;
  if (artifact <= Artifact::Stage4) {
    Compiler compiler;
    CompileOptions options;
    options.chip = target.chip.str();
    options.lastStage = int(artifact);
    options.keepIR = true;
    Expected<CompileResult> result = compiler.compile(problem, options);
    if (!result)
      return result.takeError();
    output.bytes = std::move(result->ir);
    for (const StepTime &step : result->times)
      output.steps.push_back({step.step, step.milliseconds});
    return output;
  }
  KernelCompiler compiler(!noCache);
  Expected<KernelArtifacts> kernel = compiler.compile(problem, target);
  if (!kernel)
    return kernel.takeError();
  output.steps = compiler.steps();
  output.assemblerLog = compiler.assemblerLog();
  if (Error error = takeArtifact(artifact, *kernel, output.bytes))
    return std::move(error);
  return output;
}

/// The size that `--n` and `--k` give, 0 where they do not.
Expected<Shape> givenShape(const ProblemFlags &flags) {
  Shape shape;
  if (flags.nFlag.getNumOccurrences() || flags.shapeFlag.getNumOccurrences()) {
    Expected<SmallVector<Shape>> shapes = flags.shapes();
    if (!shapes)
      return shapes.takeError();
    shape = shapes->front();
  } else if (flags.kFlag.getNumOccurrences()) {
    Expected<SmallVector<int64_t>> depths = flags.depths();
    if (!depths)
      return depths.takeError();
    shape.k = depths->front();
  }
  return shape;
}

Expected<Output> makeLayoutOutput(Artifact artifact, const ProblemFlags &flags,
                                  const TargetInfo &target, bool noCache) {
  Expected<Shape> shape = givenShape(flags);
  if (!shape)
    return shape.takeError();
  if (flags.isPack()) {
    Expected<PackProblem> problem = flags.packProblem(*shape);
    if (!problem)
      return problem.takeError();
    return makeLayoutOutput(artifact, *problem, target, noCache);
  }
  Expected<GatherProblem> problem = flags.gatherProblem(0, shape->k);
  if (!problem)
    return problem.takeError();
  return makeLayoutOutput(artifact, *problem, target, noCache);
}

Error run(ProblemFlags &flags, StringRef emit, StringRef file, bool time,
          bool explain, bool noCache) {
  Expected<Artifact> artifact = parseArtifact(emit);
  if (!artifact)
    return artifact.takeError();
  Expected<const TargetInfo *> target = flags.target();
  if (!target)
    return target.takeError();
  Expected<bool> quantize = flags.isQuantize();
  if (!quantize)
    return quantize.takeError();
  Output made;
  if (flags.isPack() || flags.isGather()) {
    Expected<Output> result =
        makeLayoutOutput(*artifact, flags, **target, noCache);
    if (!result)
      return result.takeError();
    made = std::move(*result);
  } else if (*quantize) {
    Expected<SmallVector<int64_t>> m = flags.tokens();
    if (!m)
      return m.takeError();
    int64_t k = 0;
    if (flags.kFlag.getNumOccurrences()) {
      Expected<SmallVector<int64_t>> depths = flags.depths();
      if (!depths)
        return depths.takeError();
      k = depths->front();
    }
    Expected<QuantizeProblem> problem =
        flags.quantizeProblem(m->empty() ? 0 : m->front(), k);
    if (!problem)
      return problem.takeError();
    Expected<Output> result = makeQuantizeOutput(*artifact, *problem, **target,
                                                 flags, explain, noCache);
    if (!result)
      return result.takeError();
    made = std::move(*result);
  } else {
    Expected<MatmulProblem> problem = flags.problem();
    if (!problem)
      return problem.takeError();
    Expected<Output> result =
        makeOutput(*artifact, *problem, **target, flags, explain, noCache);
    if (!result)
      return result.takeError();
    made = std::move(*result);
  }
  const Output *output = &made;

  std::error_code code;
  ToolOutputFile out(file, code, sys::fs::OF_None);
  if (code)
    return createStringError("-o: cannot write '" + file +
                             "': " + code.message());
  out.os() << output->bytes;
  out.os().flush();
  if (out.os().has_error()) {
    code = out.os().error();
    out.os().clear_error();
    return createStringError("-o: cannot write '" + file +
                             "': " + code.message());
  }
  out.keep();

  for (const std::string &remark : output->remarks)
    WithColor::remark(errs()) << remark << '\n';
  if (time) {
    double total = 0;
    for (const KernelCompiler::Step &step : output->steps) {
      errs() << format("%-10s %8.2f ms\n", step.name.c_str(),
                       step.milliseconds);
      total += step.milliseconds;
    }
    errs() << format("%-10s %8.2f ms\n", "total", total);
    if (!output->assemblerLog.empty())
      errs() << StringRef(output->assemblerLog).trim() << '\n';
  }
  return Error::success();
}

/// A file name of what a problem is: `e2m1-g16-e4m3-global_bf16`.
std::string slugOf(const MatmulProblem &problem) {
  std::string name = problem.weight.str() + "_" + problem.activation.str();
  if (problem.activationScale != ActivationScaleKind::None)
    name += "-" + stringify(problem.activationScale).str();
  if (problem.activationGroup != 0)
    name += "-g" + std::to_string(problem.activationGroup) + "-" +
            problem.activationScaleFormat.str();
  if (problem.activationZeroPoint)
    name += "-zp";
  if (problem.accumulator.isF16())
    name += "-sum16";
  for (char &c : name)
    if (!isAlnum(c) && c != '_' && c != '.')
      c = '-';
  return name;
}

/// --artifacts: FOLDER/m<M>/NAME.json with its cubin or PTX, for each M of --m:
/// one kernel, or with --cover a covering set of all legal formats.
Error writeKernels(ProblemFlags &flags, StringRef emit, StringRef folder,
                   StringRef name, bool cover, bool noCache) {
  Expected<Artifact> artifact = parseArtifact(emit);
  if (!artifact)
    return artifact.takeError();
  if (*artifact != Artifact::Ptx && *artifact != Artifact::Cubin)
    return createStringError(
        "--artifacts: expected --emit ptx or cubin beside it, got " + emit);
  Expected<const TargetInfo *> target = flags.target();
  if (!target)
    return target.takeError();
  Expected<SmallVector<Shape>> shapes = flags.shapes();
  if (!shapes)
    return shapes.takeError();
  if (shapes->size() != 1)
    return createStringError("--artifacts: expected one --shape, got " +
                             Twine(shapes->size()));
  Expected<SmallVector<int64_t>> tokens = flags.tokens();
  if (!tokens)
    return tokens.takeError();
  KernelCompiler compiler(!noCache);
  compiler.fallback = flags.fallback;
  size_t failed = 0;
  for (int64_t m : *tokens) {
    Expected<MatmulProblem> given = flags.problem(shapes->front(), m);
    if (!given)
      return given.takeError();
    std::vector<MatmulProblem> problems = {*given};
    if (cover)
      problems = coverPairs(enumerateProblems(**target, *given));
    for (auto [index, problem] : enumerate(problems)) {
      std::optional<KernelConfig> wanted;
      if (flags.hasConfig() && !cover) {
        auto ranked = chooseConfig(problem, **target, 1);
        if (!ranked)
          return ranked.takeError();
        auto parsed = flags.config(ranked->front().config);
        if (!parsed)
          return parsed.takeError();
        wanted = *parsed;
      }
      Expected<KernelArtifacts> kernel =
          compiler.compile(problem, **target, wanted);
      if (!kernel && !cover)
        return kernel.takeError();
      if (!kernel) { // the others are still wanted
        ++failed;
        WithColor::error(errs(), "humming-compile")
            << problem.str() << ": " << toString(kernel.takeError()) << '\n';
        continue;
      }
      if (*artifact == Artifact::Cubin && kernel->cubin.empty())
        return createStringError("--emit cubin: expected an assembler, found "
                                 "none; install one, set CUDA_HOME, or emit "
                                 "ptx, which a driver can load");
      (*artifact == Artifact::Cubin ? kernel->ptx : kernel->cubin).clear();
      kernel->name = !name.empty() ? name.str() : slugOf(problem);
      if (cover)
        kernel->name =
            (formatv("{0,0+3}", index) + "_" + slugOf(problem)).str();
      SmallString<128> path(folder);
      sys::path::append(path, "m" + Twine(m));
      if (Error error = writeArtifacts(path, *kernel))
        return createStringError("--artifacts: " + toString(std::move(error)));
    }
  }
  if (failed)
    return createStringError("--cover: " + Twine(failed) +
                             " kernels could not be compiled");
  return Error::success();
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  ProblemFlags flags;
  cl::OptionCategory category("Output");
  cl::opt<std::string> emit(
      "emit", cl::init("ptx"), cl::cat(category), cl::value_desc("what"),
      cl::desc("stage1, stage2, stage3, stage4 (IR), ptx, cubin, or launch "
               "(the launch description as JSON); default ptx"));
  cl::opt<std::string> file("o", cl::init("-"), cl::cat(category),
                            cl::value_desc("file"),
                            cl::desc("Output file; default standard output"));
  cl::opt<bool> time("time", cl::cat(category),
                     cl::desc("Print the wall time of each step"));
  cl::opt<bool> explain(
      "explain", cl::cat(category),
      cl::desc("Print why the config was chosen, the runner-up, and predicted "
               "bytes and time"));
  cl::opt<bool> noCache("no-cache", cl::cat(category),
                        cl::desc("Do not read or write the kernel cache"));
  cl::opt<std::string> artifacts(
      "artifacts", cl::cat(category), cl::value_desc("folder"),
      cl::desc("Instead of -o: launch description and kernel (--emit cubin or "
               "ptx) as FOLDER/m<M>/NAME.*, for each M of --m"));
  cl::opt<std::string> name("name", cl::cat(category), cl::value_desc("name"),
                            cl::desc("NAME of --artifacts"));
  cl::opt<bool> cover("cover", cl::cat(category),
                      cl::desc("With --artifacts: kernels of a covering set "
                               "(all pairs of attributes) of the chip's legal "
                               "formats, instead of the format given"));
  parseCommandLine(argc, argv, "Compile a quantized matmul\n",
                   {&flags.category, &category});
  if (cover && artifacts.empty()) {
    WithColor::error(errs(), "humming-compile")
        << "--cover: expected --artifacts beside it\n";
    return 1;
  }
  Error error =
      artifacts.empty()
          ? run(flags, emit, file, time, explain, noCache)
          : writeKernels(flags, emit, artifacts, name, cover, noCache);
  if (error) {
    WithColor::error(errs(), "humming-compile")
        << toString(std::move(error)) << '\n';
    return 1;
  }
  return 0;
}
