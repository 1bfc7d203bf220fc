//===- humming-bench.cpp - GPU time of kernels ----------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table on stdout, then one line of JSON per measurement (or either alone).
// Progress goes to stderr. See docs/Tools.md.
//
//===----------------------------------------------------------------------===//

#include "KernelSource.h"
#include "Measure.h"
#include "ProblemFlags.h"
#include "Sweep.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/WithColor.h"
#include <chrono>
#include <tuple>

using namespace llvm;
using namespace humming;

namespace {
struct BenchTool {
  cl::OptionCategory category{"Measuring"};
  ProblemFlags problemFlags;
  KernelSource source{problemFlags};
  cl::opt<std::string> device{"device", cl::desc("Ordinal of the GPU"),
                              cl::init("0"), cl::cat(category)};
  cl::opt<std::string> formatFlag{
      "format", cl::desc("What to print: table, json or both"),
      cl::init("both"), cl::value_desc("kind"), cl::cat(category)};
  cl::opt<std::string> replays{"replays",
                               cl::desc("Replays of which the median is taken"),
                               cl::init("10"), cl::cat(category)};
  cl::opt<std::string> seed{"seed", cl::desc("Seed of the random data"),
                            cl::init("0"), cl::cat(category)};
  cl::list<std::string> configs{
      "configs",
      cl::desc("Several configs to compare, separated by ';' (or repeat the "
               "flag); keys left out come from the chooser"),
      cl::value_desc("CONFIG;CONFIG"), cl::cat(category)};
  cl::opt<std::string> sweep{
      "sweep",
      cl::desc("Measure this many legal configs (or `all`), report how far the "
               "chooser's pick is from the best; with --artifacts: all kernels "
               "there"),
      cl::value_desc("count"), cl::cat(category)};
  cl::opt<std::string> on{
      "on",
      cl::desc("cuda, or none: no measuring; --sweep lists predicted times"),
      cl::init("cuda"), cl::value_desc("where"), cl::cat(category)};

  Error run();

private:
  struct Row {
    KernelArtifacts kernel;
    Shape shape;
    int64_t m;
    Measurement measurement;
    std::string error;    ///< of a sweep's config that could not be measured
    double predicted = 0; ///< microseconds, by the cost model
  };
  Error measureLayout(int64_t ordinal, const MeasureOptions &options);
  Error predict();
  Error printSweep(ArrayRef<Row> rows) const;
  void printTable(ArrayRef<Row> rows, const DeviceInfo &device,
                  double ceiling) const;
  void printJson(const Row &row, const DeviceInfo &device,
                 double ceiling) const;
};

/// One line on stderr, rewritten on a terminal, at most a few times a second.
class Progress {
public:
  void show(const Twine &text) {
    auto now = std::chrono::steady_clock::now();
    if (shown && now - last < std::chrono::milliseconds(500))
      return;
    // The first second says nothing: most runs are over by then.
    if (now - begin < std::chrono::seconds(1))
      return;
    last = now;
    shown = true;
    if (isTerminal)
      errs() << '\r' << text << "\x1b[K";
    else
      errs() << text << '\n';
    errs().flush();
  }
  ~Progress() {
    if (shown && isTerminal)
      errs() << "\r\x1b[K";
  }

private:
  std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last;
  bool shown = false;
  bool isTerminal = sys::Process::StandardErrIsDisplayed();
};
} // namespace

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

/// `9.6e-06 s` is for programs; people get four digits.
static std::string digits(double value, int precision) {
  std::string text;
  raw_string_ostream(text) << format("%.*f", precision, value);
  return text;
}

void BenchTool::printTable(ArrayRef<Row> rows, const DeviceInfo &info,
                           double ceiling) const {
  outs() << info.name << " (" << info.chip() << ", " << info.multiprocessors
         << " SMs): copy within the device " << digits(ceiling / 1e12, 3)
         << " TB/s (read + written)\n";
  std::vector<std::vector<std::string>> cells = {{"m", "n", "k", "us", "TB/s",
                                                  "TFLOP/s", "of copy", "regs",
                                                  "kernel", "config"}};
  for (const Row &row : rows) {
    // A quantize or gather has no n, a pack no m.
    auto size = [](int64_t value) {
      return value ? itostr(value) : std::string("-");
    };
    std::vector<std::string> line = {size(row.m), size(row.shape.n),
                                     itostr(row.shape.k)};
    const Measurement &best = row.measurement;
    if (row.error.empty())
      for (const std::string &cell :
           {digits(best.microseconds, 2), digits(best.terabytesPerSecond(), 3),
            best.flops > 0 ? digits(best.teraflopsPerSecond(), 2)
                           : std::string("-"),
            digits(100 * best.bytes / best.microseconds * 1e6 / ceiling, 1) +
                "%",
            itostr(best.registers) + (best.localBytes ? "!" : "")})
        line.push_back(cell);
    else
      line.insert(line.end(), 5, "-");
    line.push_back(row.kernel.launch.kernelName);
    line.push_back(row.error.empty()
                       ? row.kernel.launch.config
                       : row.kernel.launch.config + ": " + row.error);
    cells.push_back(std::move(line));
  }
  std::vector<size_t> widths(cells.front().size(), 0);
  for (const std::vector<std::string> &line : cells)
    for (size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], line[i].size());
  for (const std::vector<std::string> &line : cells) {
    for (size_t i = 0; i < line.size(); ++i) {
      bool isText = i >= 8;
      std::string padding(widths[i] - line[i].size(), ' ');
      // Numbers to the right, text to the left; nothing after the last column.
      outs() << (i ? "  " : "") << (isText ? "" : padding) << line[i]
             << (isText && i + 1 < line.size() ? padding : "");
    }
    outs() << '\n';
  }
  if (any_of(rows,
             [](const Row &row) { return row.measurement.localBytes > 0; }))
    outs() << "!: registers spill to local memory\n";
}

void BenchTool::printJson(const Row &row, const DeviceInfo &info,
                          double ceiling) const {
  const Measurement &best = row.measurement;
  json::Object line{{"kernel", row.kernel.launch.kernelName},
                    {"artifact", row.kernel.name},
                    {"chip", row.kernel.launch.chip},
                    {"config", row.kernel.launch.config},
                    {"assembler", row.kernel.launch.assembler},
                    {"origin", row.kernel.origin},
                    {"device", info.name + " (" + info.chip() + ")"},
                    {"driver", info.driverVersion},
                    {"operation", row.kernel.launch.operation},
                    {"k", row.shape.k}};
  if (row.m)
    line["m"] = row.m;
  if (row.shape.n)
    line["n"] = row.shape.n;
  if (!row.error.empty()) {
    line["error"] = row.error;
  } else {
    line["loaded"] = best.loadedFrom;
    line["rot_us"] = best.microseconds;
    line["min_us"] = best.minimum;
    line["max_us"] = best.maximum;
    line["host_us"] = best.hostMicroseconds;
    if (row.predicted > 0)
      line["predicted_us"] = row.predicted;
    line["bytes"] = best.bytes;
    line["TBps"] = best.terabytesPerSecond();
    if (best.flops > 0)
      line["TFLOPS"] = best.teraflopsPerSecond();
    line["copy_TBps"] = ceiling / 1e12;
    line["share_of_copy"] = best.bytes / best.microseconds * 1e6 / ceiling;
    line["weight_copies"] = best.copies;
    line["graph_launches"] = best.graphLaunches;
    line["registers"] = best.registers;
    line["local_bytes"] = best.localBytes;
  }
  outs() << json::Value(std::move(line)) << '\n';
}

Error BenchTool::run() {
  if (formatFlag != "table" && formatFlag != "json" && formatFlag != "both")
    return makeError("--format: expected table, json or both, got '" +
                     formatFlag + "'");
  Expected<SmallVector<int64_t>> tokens = problemFlags.tokens();
  if (!tokens)
    return tokens.takeError();
  for (int64_t m : *tokens)
    if (m < 1)
      return makeError("--m: expected at least 1 to measure, got " + Twine(m));
  Expected<bool> quantize = problemFlags.isQuantize();
  if (!quantize)
    return quantize.takeError();
  bool isMatmul =
      !*quantize && !problemFlags.isPack() && !problemFlags.isGather();
  if (!isMatmul && (sweep.getNumOccurrences() || configs.getNumOccurrences() ||
                    on != "cuda"))
    return makeError("--op " + problemFlags.operation +
                     ": expected no --sweep, --configs or --on beside it");
  Expected<int64_t> ordinal = parseIntegerFlag("device", device, 0, 1023);
  if (!ordinal)
    return ordinal.takeError();
  MeasureOptions options;
  Expected<int64_t> replayCount =
      parseIntegerFlag("replays", replays, 1, 10000);
  if (!replayCount)
    return replayCount.takeError();
  options.replays = int(*replayCount);
  Expected<int64_t> seedValue = parseIntegerFlag("seed", seed, 0, INT64_MAX);
  if (!seedValue)
    return seedValue.takeError();
  options.seed = uint64_t(*seedValue);
  if (!isMatmul)
    return measureLayout(*ordinal, options);
  Expected<SmallVector<Shape>> shapes = problemFlags.shapes();
  if (!shapes)
    return shapes.takeError();
  for (const std::string &text : configs) {
    SmallVector<StringRef> parts;
    StringRef(text).split(parts, ';', -1, /*KeepEmpty=*/false);
    for (StringRef part : parts)
      source.configs.push_back(part.trim().str());
  }
  if (on != "cuda" && on != "none")
    return makeError("--on: expected cuda or none, got '" + on + "'");
  if (sweep.getNumOccurrences()) {
    source.sweep = INT64_MAX;
    if (sweep != "all") {
      Expected<int64_t> count = parseIntegerFlag("sweep", sweep, 1, 100000);
      if (!count)
        return makeError(toString(count.takeError()) + ", or all");
      source.sweep = *count;
    }
  }
  if (on == "none" && !source.sweep)
    return makeError("--on none: expected --sweep beside it");
  // Predictions need neither kernels nor a compiler.
  bool needsKernels = on != "none" || !source.artifactsFlag.empty() ||
                      !source.launchFlag.empty() || !source.saveFlag.empty();
  if (needsKernels)
    if (Error error = source.open())
      return error;
  if (source.isPrecompiled() && !source.configs.empty())
    return makeError("--configs: expected kernels that are compiled from the "
                     "problem flags, got compiled ones");
  if (on == "none")
    return predict();
  Expected<std::unique_ptr<Bench>> bench =
      Bench::create(int(*ordinal), options);
  if (!bench)
    return bench.takeError();

  Progress progress;
  progress.show("measuring the copy bandwidth");
  Expected<double> ceiling = (*bench)->copyBandwidth();
  if (!ceiling)
    return ceiling.takeError();

  source.progress = [&](size_t done, size_t all) {
    progress.show("compiled " + Twine(done) + " of " + Twine(all));
  };
  std::vector<Row> rows;
  size_t sizes = shapes->size() * tokens->size(), size = 0;
  for (Shape shape : *shapes)
    for (int64_t m : *tokens) {
      ++size;
      progress.show("compiling for m = " + Twine(m) +
                    ", n = " + Twine(shape.n) + ", k = " + Twine(shape.k));
      Expected<std::vector<KernelArtifacts>> kernels =
          source.kernelsFor(shape, m);
      if (!kernels)
        return kernels.takeError();
      for (size_t i = 0; i < kernels->size(); ++i) {
        Row row{(*kernels)[i], shape, m, {}, "", 0};
        row.predicted =
            predictedMicroseconds(row.kernel.launch, m, shape.n, shape.k);
        progress.show("size " + Twine(size) + " of " + Twine(sizes) +
                      ", kernel " + Twine(i + 1) + " of " +
                      Twine(kernels->size()));
        Expected<Measurement> measurement =
            (*bench)->measure(row.kernel, m, shape.n, shape.k);
        if (measurement)
          row.measurement = std::move(*measurement);
        else if (kernels->size() > 1)
          // One of many: the others are still wanted.
          row.error = toString(measurement.takeError());
        else
          return measurement.takeError();
        // At once: whoever reads along keeps what was measured before a fault.
        if (formatFlag == "json") {
          printJson(row, (*bench)->device(), *ceiling);
          outs().flush();
        }
        rows.push_back(std::move(row));
      }
      for (const auto &[config, reason] : source.failures) {
        Row row{{}, shape, m, {}, "not compiled: " + reason, 0};
        row.kernel.launch.config = config;
        rows.push_back(std::move(row));
      }
    }

  if (formatFlag != "json")
    printTable(rows, (*bench)->device(), *ceiling);
  if (formatFlag == "both")
    for (const Row &row : rows)
      printJson(row, (*bench)->device(), *ceiling);
  return source.sweep ? printSweep(rows) : Error::success();
}

/// --op quantize, gather and pack.
Error BenchTool::measureLayout(int64_t ordinal, const MeasureOptions &options) {
  // What is to be measured, before there is a GPU.
  std::vector<Row> rows;
  SmallVector<int64_t> tokens = cantFail(problemFlags.tokens());
  if (problemFlags.isPack()) {
    Expected<SmallVector<Shape>> shapes = problemFlags.shapes();
    if (!shapes)
      return shapes.takeError();
    for (Shape shape : *shapes)
      rows.push_back({{}, shape, 0, {}, "", 0});
  } else {
    Expected<SmallVector<int64_t>> depths = problemFlags.depths();
    if (!depths)
      return depths.takeError();
    for (int64_t k : *depths)
      for (int64_t m : tokens)
        rows.push_back({{}, {0, k}, m, {}, "", 0});
  }
  if (Error error = source.open())
    return error;
  auto kernelFor = [&](const Row &row) -> Expected<KernelArtifacts> {
    if (problemFlags.isPack()) {
      Expected<PackProblem> problem = problemFlags.packProblem(row.shape);
      if (!problem)
        return problem.takeError();
      return source.packKernelFor(*problem);
    }
    if (problemFlags.isGather()) {
      Expected<GatherProblem> problem =
          problemFlags.gatherProblem(row.m, row.shape.k);
      if (!problem)
        return problem.takeError();
      return source.gatherKernelFor(*problem);
    }
    Expected<std::vector<KernelArtifacts>> kernels =
        source.quantizeKernelsFor(row.m, row.shape.k);
    if (!kernels)
      return kernels.takeError();
    return kernels->front();
  };
  for (Row &row : rows) {
    Expected<KernelArtifacts> kernel = kernelFor(row);
    if (!kernel)
      return kernel.takeError();
    row.kernel = std::move(*kernel);
  }

  Expected<std::unique_ptr<Bench>> bench = Bench::create(int(ordinal), options);
  if (!bench)
    return bench.takeError();
  Expected<double> ceiling = (*bench)->copyBandwidth();
  if (!ceiling)
    return ceiling.takeError();
  for (Row &row : rows) {
    int64_t m = row.m, n = row.shape.n, k = row.shape.k;
    Expected<Measurement> measurement =
        problemFlags.isPack()     ? (*bench)->measurePack(row.kernel, n, k)
        : problemFlags.isGather() ? (*bench)->measureGather(row.kernel, m, k)
                                  : (*bench)->measureQuantize(row.kernel, m, k);
    if (!measurement)
      return measurement.takeError();
    row.measurement = std::move(*measurement);
    if (formatFlag != "table")
      printJson(row, (*bench)->device(), *ceiling);
  }
  if (formatFlag != "json")
    printTable(rows, (*bench)->device(), *ceiling);
  return Error::success();
}

/// The last word of a sweep, for each size.
Error BenchTool::printSweep(ArrayRef<Row> rows) const {
  while (!rows.empty()) {
    const Row &first = rows.front();
    std::vector<SweepEntry> entries;
    ArrayRef<Row> size = rows.take_while([&](const Row &row) {
      return row.m == first.m && row.shape.n == first.shape.n &&
             row.shape.k == first.shape.k;
    });
    for (const Row &row : size)
      entries.push_back({row.kernel.launch.config, row.predicted,
                         row.measurement.microseconds, row.error});
    Expected<std::string> pick =
        pickFor(first.kernel.launch, first.m, first.shape.n, first.shape.k);
    if (!pick)
      return pick.takeError();
    SweepSummary summary = summarizeSweep(entries, *pick);
    Expected<MatmulProblem> problem =
        problemOf(first.kernel.launch, first.m, first.shape.n, first.shape.k);
    if (!problem)
      return problem.takeError();
    summary.problem = problem->str() + " on " + first.kernel.launch.chip;
    if (formatFlag != "json")
      outs() << summary.str();
    if (formatFlag != "table")
      outs() << json::Value(summary.json()) << '\n';
    rows = rows.drop_front(size.size());
  }
  return Error::success();
}

/// --sweep without a GPU: what the cost model says, cheapest first. Kernels are
/// compiled only if they are to be saved.
Error BenchTool::predict() {
  SmallVector<Shape> shapes = cantFail(problemFlags.shapes());
  SmallVector<int64_t> tokens = cantFail(problemFlags.tokens());
  for (Shape shape : shapes)
    for (int64_t m : tokens) {
      std::vector<SweepEntry> entries;
      std::string text, pick;
      if (source.isPrecompiled() || !source.saveFlag.empty()) {
        Progress progress;
        source.progress = [&](size_t done, size_t all) {
          progress.show("compiled " + Twine(done) + " of " + Twine(all));
        };
        Expected<std::vector<KernelArtifacts>> kernels =
            source.kernelsFor(shape, m);
        if (!kernels)
          return kernels.takeError();
        for (const KernelArtifacts &kernel : *kernels)
          entries.push_back(
              {kernel.launch.config,
               predictedMicroseconds(kernel.launch, m, shape.n, shape.k), 0,
               ""});
        for (const auto &[config, reason] : source.failures) {
          entries.push_back({config, 0, 0, reason});
          errs() << "not compiled: " << config << ": " << reason << '\n';
        }
        const LaunchDescription &launch = kernels->front().launch;
        Expected<std::string> chosen = pickFor(launch, m, shape.n, shape.k);
        if (!chosen)
          return chosen.takeError();
        pick = *chosen;
        Expected<MatmulProblem> problem =
            problemOf(launch, m, shape.n, shape.k);
        if (!problem)
          return problem.takeError();
        text = problem->str() + " on " + launch.chip;
      } else {
        Expected<MatmulProblem> problem = problemFlags.problem(shape, m);
        if (!problem)
          return problem.takeError();
        Expected<const TargetInfo *> target = problemFlags.target();
        if (!target)
          return target.takeError();
        Expected<std::vector<KernelConfig>> configs =
            source.sweepConfigs(*problem, **target);
        if (!configs)
          return configs.takeError();
        for (const KernelConfig &config : *configs)
          entries.push_back(
              {config.str(),
               estimateCost(*problem, config, **target).microseconds, 0, ""});
        pick = configs->front().str();
        text = problem->str() + " on " + (*target)->chip.str();
      }
      llvm::sort(entries, [](const SweepEntry &a, const SweepEntry &b) {
        return std::tie(a.predicted, a.config) <
               std::tie(b.predicted, b.config);
      });
      SweepSummary summary = summarizeSweep(entries, pick);
      summary.problem = text;
      if (formatFlag != "json")
        for (const SweepEntry &entry : entries)
          outs() << format("%10.2f us  ", entry.predicted) << entry.config
                 << (entry.config == pick ? "  (pick)" : "") << '\n';
      if (formatFlag != "table")
        for (const SweepEntry &entry : entries)
          outs() << json::Value(json::Object{{"m", m},
                                             {"n", shape.n},
                                             {"k", shape.k},
                                             {"config", entry.config},
                                             {"predicted_us", entry.predicted},
                                             {"pick", entry.config == pick}})
                 << '\n';
      if (formatFlag != "json")
        outs() << summary.str();
      if (formatFlag != "table")
        outs() << json::Value(summary.json()) << '\n';
    }
  return Error::success();
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  BenchTool tool;
  tool.problemFlags.setDefaultTokens("1,16,64");
  parseCommandLine(
      argc, argv,
      "Measures the GPU time of kernels by replays of a CUDA graph whose "
      "launches rotate over cold weights.\n",
      {&tool.category, &tool.problemFlags.category, &tool.source.category});
  if (Error error = tool.run()) {
    WithColor::error(errs(), "humming-bench")
        << toString(std::move(error)) << '\n';
    return 1;
  }
  return 0;
}
