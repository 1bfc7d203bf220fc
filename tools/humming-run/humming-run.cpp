//===- humming-run.cpp - Compile, run and check a kernel ------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One line of JSON per kernel, shape and number of tokens; exit status 0 only
// if every one of them is right. See docs/Tools.md.
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "KernelSource.h"
#include "ProblemFlags.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"
#include <chrono>
#include <map>

using namespace llvm;
using namespace humming;

namespace {
struct RunTool {
  cl::OptionCategory category{"Running"};
  ProblemFlags problemFlags;
  KernelSource source{problemFlags};
  cl::opt<std::string> on{"on", cl::desc("Where to run: cuda or emulator"),
                          cl::init("cuda"), cl::cat(category)};
  cl::opt<std::string> device{"device", cl::desc("Ordinal of the GPU"),
                              cl::init("0"), cl::cat(category)};
  cl::opt<std::string> seed{"seed", cl::desc("Seed of the random data"),
                            cl::init("0"), cl::cat(category)};
  cl::opt<std::string> layerFlag{
      "layer",
      cl::desc("A layer of a checkpoint in place of random weights; --w, "
               "--scale, --group, --zero-point, --n and --k come from it"),
      cl::value_desc("FILE:PREFIX"), cl::cat(category)};
  cl::opt<std::string> kRange{
      "k-range",
      cl::desc("With --layer: the input features that a tensor-parallel rank "
               "holds, in place of all; may cut groups"),
      cl::value_desc("BEGIN,END"), cl::cat(category)};
  cl::opt<std::string> gptqZeros{
      "gptq-zeros",
      cl::desc("Zero-point convention of a GPTQ layer whose config does not "
               "say: v1 or v2"),
      cl::value_desc("v1|v2"), cl::cat(category)};
  cl::opt<bool> countersFlag{
      "counters",
      cl::desc("Add what the last launch did to the line: instructions, bytes, "
               "sectors, bank conflicts... (--on emulator)"),
      cl::cat(category)};

  Expected<bool> run();

private:
  Expected<bool> runQuantize(Executor &executor, ArrayRef<int64_t> tokens);
  Expected<bool> runPack(Executor &executor);
  Expected<bool> runGather(Executor &executor, ArrayRef<int64_t> tokens);
  /// Cuts the layer along K as --k-range says.
  Error cutLayer();
  /// Prints the kernel's line; `failure` says why there is no report.
  void print(Executor &executor, const KernelArtifacts &kernel, int64_t m,
             std::optional<int64_t> n, int64_t k,
             const std::optional<CheckReport> &report, Error failure,
             std::chrono::steady_clock::time_point start);
  Expected<const HostLayer *> layerFor(const KernelArtifacts &kernel,
                                       Shape shape);
  Error checkLayerFlags() const;

  std::optional<QuantizedWeights> checkpointWeights;
  CheckOptions options;
  std::string layerKey;
  HostLayer layer; ///< of layerKey
};
} // namespace

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

/// A flag that says something else than the layer is a mistake, not a wish.
Error RunTool::checkLayerFlags() const {
  const QuantizedWeights &weights = *checkpointWeights;
  Expected<MatmulProblem> given =
      problemFlags.problem({weights.n, weights.k}, 0);
  if (!given)
    return given.takeError();
  const QuantType &want = given->weight, &have = weights.type;
  auto check = [&](const cl::Option &flag, bool same, const Twine &got,
                   const Twine &expected) -> Error {
    if (!flag.getNumOccurrences() || same)
      return Error::success();
    return makeError("--" + flag.ArgStr + ": expected " + expected +
                     " as in the layer, got " + got);
  };
  if (Error error = check(problemFlags.weight, want.weight == have.weight,
                          want.weight.str(), have.weight.str()))
    return error;
  if (Error error = check(problemFlags.scale, want.scale == have.scale,
                          want.scale.str(), have.scale.str()))
    return error;
  if (Error error =
          check(problemFlags.group, want.granularity == have.granularity,
                want.granularity.str(), have.granularity.str()))
    return error;
  return check(problemFlags.zeroPoint, want.zeroPoint == have.zeroPoint,
               stringify(want.zeroPoint), stringify(have.zeroPoint));
}

Expected<const HostLayer *> RunTool::layerFor(const KernelArtifacts &kernel,
                                              Shape shape) {
  Expected<MatmulProblem> problem =
      problemOf(kernel.launch, 0, shape.n, shape.k);
  if (!problem)
    return problem.takeError();
  // Same types and sizes, same layer: packing a large one takes a while.
  std::string key = problem->str();
  if (key == layerKey)
    return &layer;
  Expected<HostLayer> made = checkpointWeights
                                 ? packLayer(*checkpointWeights, *problem)
                                 : makeRandomLayer(*problem, options.seed);
  if (!made)
    return made.takeError();
  layer = std::move(*made);
  layerKey = std::move(key);
  return &layer;
}

void RunTool::print(Executor &executor, const KernelArtifacts &kernel,
                    int64_t m, std::optional<int64_t> n, int64_t k,
                    const std::optional<CheckReport> &report, Error failure,
                    std::chrono::steady_clock::time_point start) {
  json::Object line{{"kernel", kernel.launch.kernelName},
                    {"artifact", kernel.name},
                    {"chip", kernel.launch.chip},
                    {"config", kernel.launch.config},
                    {"origin", kernel.origin},
                    {"on", on.getValue()},
                    {"device", executor.device()},
                    {"loaded", executor.loadedFrom()},
                    {"m", m},
                    {"k", k},
                    {"seed", int64_t(options.seed)}};
  if (n)
    line["n"] = *n;
  if (report) {
    report->addTo(line);
    consumeError(std::move(failure));
    if (countersFlag)
      if (std::optional<json::Object> counts = executor.counters())
        line["counters"] = std::move(*counts);
  } else {
    line["ok"] = false;
    line["detail"] = toString(std::move(failure));
  }
  line["seconds"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  outs() << json::Value(std::move(line)) << '\n';
  outs().flush();
}

Expected<bool> RunTool::runQuantize(Executor &executor,
                                    ArrayRef<int64_t> tokens) {
  Expected<SmallVector<int64_t>> depths = problemFlags.depths();
  if (!depths)
    return depths.takeError();
  bool allOk = true;
  for (int64_t k : *depths)
    for (int64_t m : tokens) {
      Expected<std::vector<KernelArtifacts>> kernels =
          source.quantizeKernelsFor(m, k);
      if (!kernels)
        return kernels.takeError();
      for (const KernelArtifacts &kernel : *kernels) {
        auto start = std::chrono::steady_clock::now();
        Error failure = executor.load(kernel);
        std::optional<CheckReport> report;
        if (!failure) {
          Expected<CheckReport> checked =
              runAndCheckQuantize(executor, kernel, m, k, options);
          if (checked)
            report = std::move(*checked);
          else
            failure = checked.takeError();
        }
        print(executor, kernel, m, std::nullopt, k, report, std::move(failure),
              start);
        allOk &= report && report->ok;
        if (!report && on == "cuda")
          return makeError("stopped after a kernel that could not be run: " +
                           kernel.name);
      }
    }
  return allOk;
}

Expected<bool> RunTool::runPack(Executor &executor) {
  Expected<SmallVector<Shape>> shapes = problemFlags.shapes();
  if (!shapes)
    return shapes.takeError();
  bool allOk = true;
  for (Shape shape : *shapes) {
    Expected<PackProblem> problem = problemFlags.packProblem(shape);
    if (!problem)
      return problem.takeError();
    auto start = std::chrono::steady_clock::now();
    Expected<KernelArtifacts> kernel = source.packKernelFor(*problem);
    if (!kernel)
      return kernel.takeError();
    if (Error error = executor.load(*kernel))
      return std::move(error);
    Expected<CheckReport> report =
        runAndCheckPack(executor, *kernel, shape.n, shape.k, options);
    if (!report)
      return report.takeError();
    print(executor, *kernel, 0, shape.n, shape.k, *report, Error::success(),
          start);
    allOk &= report->ok;
  }
  return allOk;
}

Expected<bool> RunTool::runGather(Executor &executor,
                                  ArrayRef<int64_t> tokens) {
  Expected<SmallVector<int64_t>> depths = problemFlags.depths();
  if (!depths)
    return depths.takeError();
  bool allOk = true;
  for (int64_t k : *depths)
    for (int64_t m : tokens) {
      Expected<GatherProblem> problem = problemFlags.gatherProblem(m, k);
      if (!problem)
        return problem.takeError();
      auto start = std::chrono::steady_clock::now();
      Expected<KernelArtifacts> kernel = source.gatherKernelFor(*problem);
      if (!kernel)
        return kernel.takeError();
      if (Error error = executor.load(*kernel))
        return std::move(error);
      Expected<CheckReport> report =
          runAndCheckGather(executor, *kernel, m, k, options);
      if (!report)
        return report.takeError();
      print(executor, *kernel, m, std::nullopt, k, *report, Error::success(),
            start);
      allOk &= report->ok;
    }
  return allOk;
}

Error RunTool::cutLayer() {
  QuantizedWeights &weights = *checkpointWeights;
  if (!kRange.empty()) {
    Expected<SmallVector<int64_t>> range =
        parseIntegerListFlag("k-range", kRange, 0, weights.inputs());
    if (!range)
      return range.takeError();
    if (range->size() != 2)
      return makeError("--k-range: expected BEGIN,END, got '" + kRange + "'");
    Expected<QuantizedWeights> shard =
        sliceWeights(weights, 0, weights.n, (*range)[0], (*range)[1]);
    if (!shard)
      return makeError("--k-range: " + toString(shard.takeError()));
    weights = std::move(*shard);
  }
  // Whatever the cut, a form that kernels take.
  Expected<MatmulProblem> problem =
      problemFlags.problem({weights.n, weights.k}, 0);
  if (!problem)
    return problem.takeError();
  Expected<QuantizedWeights> aligned =
      alignPhase(weights, 256 / problem->activation.bits);
  if (!aligned)
    return aligned.takeError();
  weights = std::move(*aligned);
  return Error::success();
}

Expected<bool> RunTool::run() {
  if (countersFlag && on != "emulator")
    return makeError("--counters: expected --on emulator, which counts, got "
                     "--on " +
                     on);
  Expected<SmallVector<int64_t>> tokens = problemFlags.tokens();
  if (!tokens)
    return tokens.takeError();
  Expected<int64_t> ordinal = parseIntegerFlag("device", device, 0, 1023);
  if (!ordinal)
    return ordinal.takeError();
  Expected<int64_t> seedValue = parseIntegerFlag("seed", seed, 0, INT64_MAX);
  if (!seedValue)
    return seedValue.takeError();
  options.seed = uint64_t(*seedValue);

  Expected<bool> quantize = problemFlags.isQuantize();
  if (!quantize)
    return quantize.takeError();
  if (!kRange.empty() && layerFlag.empty())
    return makeError("--k-range: expected --layer, which it cuts");
  if (*quantize || problemFlags.isPack() || problemFlags.isGather()) {
    if (!layerFlag.empty())
      return makeError("--layer: expected none with --op " +
                       problemFlags.operation + ", which has no weights");
    if (Error error = source.open())
      return std::move(error);
    Expected<std::unique_ptr<Executor>> executor = createExecutor(on, *ordinal);
    if (!executor)
      return executor.takeError();
    return problemFlags.isPack()     ? runPack(**executor)
           : problemFlags.isGather() ? runGather(**executor, *tokens)
                                     : runQuantize(**executor, *tokens);
  }

  SmallVector<Shape> shapes;
  if (!layerFlag.empty()) {
    Expected<QuantizedWeights> weights = readLayerFlag(layerFlag, gptqZeros);
    if (!weights)
      return weights.takeError();
    checkpointWeights = std::move(*weights);
    if (Error error = checkLayerFlags())
      return std::move(error);
    if (Error error = cutLayer())
      return std::move(error);
    shapes.push_back({checkpointWeights->n, checkpointWeights->k});
  }
  if (!checkpointWeights || problemFlags.nFlag.getNumOccurrences() ||
      problemFlags.kFlag.getNumOccurrences()) {
    Expected<SmallVector<Shape>> given = problemFlags.shapes();
    if (!given)
      return given.takeError();
    if (checkpointWeights &&
        (given->front().n != shapes[0].n || given->front().k != shapes[0].k))
      return makeError("--n and --k: expected " + Twine(shapes[0].n) + " and " +
                       Twine(shapes[0].k) + " as in the layer, got " +
                       Twine(given->front().n) + " and " +
                       Twine(given->front().k));
    shapes = std::move(*given);
  }
  if (Error error = source.open())
    return std::move(error);
  Expected<std::unique_ptr<Executor>> executor = createExecutor(on, *ordinal);
  if (!executor)
    return executor.takeError();

  bool allOk = true;
  for (Shape shape : shapes)
    for (int64_t m : *tokens) {
      Expected<std::vector<KernelArtifacts>> kernels = source.kernelsFor(
          shape, m, checkpointWeights ? &checkpointWeights->type : nullptr);
      if (!kernels)
        return kernels.takeError();
      for (const KernelArtifacts &kernel : *kernels) {
        auto start = std::chrono::steady_clock::now();
        Expected<const HostLayer *> hostLayer = layerFor(kernel, shape);
        if (!hostLayer)
          return hostLayer.takeError();
        std::optional<KernelArtifacts> gather, quantize;
        if (!(*hostLayer)->weights.kOrder.empty()) {
          GatherProblem problem;
          Expected<unsigned> bits = parseFormatBits(kernel.launch.activation);
          if (!bits)
            return bits.takeError();
          // 4-bit codes and those of groups are quantized in the new order.
          bool isQuantizedAfter =
              *bits < 8 || kernel.launch.activationGroup != 0;
          problem.elementBits = isQuantizedAfter ? 16 : *bits;
          problem.m = m;
          problem.columns = shape.k;
          problem.deriveDivisors();
          Expected<KernelArtifacts> made = source.gatherKernelFor(problem);
          if (!made)
            return made.takeError();
          gather = std::move(*made);
          if (isQuantizedAfter) {
            made = source.quantizeKernelFor(m, shape.k);
            if (!made)
              return made.takeError();
            quantize = std::move(*made);
          }
        }
        options.gather = gather ? &*gather : nullptr;
        options.quantize = quantize ? &*quantize : nullptr;
        Error failure = (*executor)->load(kernel);
        std::optional<CheckReport> report;
        if (!failure) {
          Expected<CheckReport> checked =
              runAndCheck(**executor, kernel, **hostLayer, m, options);
          if (checked)
            report = std::move(*checked);
          else
            failure = checked.takeError();
        }
        print(**executor, kernel, m, shape.n, shape.k, report,
              std::move(failure), start);
        allOk &= report && report->ok;
        // After a fault of the GPU its context is gone; the emulator goes on.
        if (!report && on == "cuda")
          return makeError("stopped after a kernel that could not be run: " +
                           kernel.name);
      }
    }
  return allOk;
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  RunTool tool;
  tool.problemFlags.setDefaultTokens("1,16,64");
  parseCommandLine(
      argc, argv,
      "Runs kernels on random or checkpoint weights and compares the results "
      "with the f64 reference.\n",
      {&tool.category, &tool.problemFlags.category, &tool.source.category});
  Expected<bool> ok = tool.run();
  if (!ok) {
    WithColor::error(errs(), "humming-run") << toString(ok.takeError()) << '\n';
    return 1;
  }
  return *ok ? 0 : 1;
}
