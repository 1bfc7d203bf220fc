//===- Sweep.cpp - How good the chooser's pick is -------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sweep.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>

using namespace llvm;

namespace humming {

SweepSummary summarizeSweep(ArrayRef<SweepEntry> entries, StringRef pick) {
  SweepSummary summary;
  summary.pick = pick.str();
  std::vector<double> times, ratios;
  auto betterThan = [](double time, double best) {
    return time > 0 && (best == 0 || time < best);
  };
  double leastPredicted = 0;
  std::string leastConfig;
  for (const SweepEntry &entry : entries) {
    ++summary.configs;
    summary.failed += !entry.error.empty();
    if (entry.config == pick)
      summary.pickPredicted = entry.predicted;
    if (betterThan(entry.predicted, leastPredicted)) {
      leastPredicted = entry.predicted;
      leastConfig = entry.config;
    }
    if (entry.measured <= 0)
      continue;
    times.push_back(entry.measured);
    if (entry.predicted > 0)
      ratios.push_back(entry.measured / entry.predicted);
    if (entry.config == pick)
      summary.pickMicroseconds = entry.measured;
    if (betterThan(entry.measured, summary.bestMicroseconds)) {
      summary.best = entry.config;
      summary.bestMicroseconds = entry.measured;
      summary.bestPredicted = entry.predicted;
    }
  }
  summary.measured = int(times.size());
  if (times.empty()) {
    summary.best = leastConfig;
    summary.bestPredicted = leastPredicted;
  }
  if (summary.pickMicroseconds > 0)
    summary.pickRank =
        1 + int(std::count_if(times.begin(), times.end(), [&](double time) {
          return time < summary.pickMicroseconds;
        }));
  if (!ratios.empty()) {
    std::sort(ratios.begin(), ratios.end());
    summary.medianRatio = ratios[ratios.size() / 2];
    summary.worstRatio = std::max(ratios.back(), 1 / ratios.front());
  }
  return summary;
}

std::string SweepSummary::str() const {
  std::string text;
  raw_string_ostream os(text);
  os << "sweep of " << problem << ": " << configs << " configs, " << measured
     << " measured";
  if (failed)
    os << ", " << failed << " failed";
  os << "\n  pick: ";
  if (pickMicroseconds > 0)
    os << format("%.2f us (predicted %.2f), rank %d, ", pickMicroseconds,
                 pickPredicted, pickRank);
  else if (pickPredicted > 0)
    os << format("predicted %.2f us, not measured, ", pickPredicted);
  else
    os << "not among them, ";
  os << pick << "\n  best: ";
  if (measured)
    os << format("%.2f us (predicted %.2f), ", bestMicroseconds, bestPredicted);
  else
    os << format("predicted %.2f us, ", bestPredicted);
  os << best << '\n';
  if (pickMicroseconds > 0)
    os << format("  the pick takes %.1f%% more than the best", 100 * excess());
  if (medianRatio > 0)
    os << format("%s measured over predicted: median %.2f, farthest off by a "
                 "factor of %.2f\n",
                 pickMicroseconds > 0 ? ";" : " ", medianRatio, worstRatio);
  return text;
}

json::Object SweepSummary::json() const {
  json::Object line{
      {"sweep", problem},     {"configs", configs},
      {"measured", measured}, {"failed", failed},
      {"pick", pick},         {"pick_predicted_us", pickPredicted},
      {"best", best},         {"best_predicted_us", bestPredicted}};
  if (measured) {
    line["best_us"] = bestMicroseconds;
    line["median_measured_over_predicted"] = medianRatio;
    line["farthest_factor"] = worstRatio;
  }
  if (pickMicroseconds > 0) {
    line["pick_us"] = pickMicroseconds;
    line["pick_rank"] = pickRank;
    line["pick_over_best"] = 1 + excess();
  }
  return line;
}

double predictedMicroseconds(const LaunchDescription &launch, int64_t m,
                             int64_t n, int64_t k) {
  Expected<MatmulProblem> problem = problemOf(launch, m, n, k);
  Expected<KernelConfig> config = configOf(launch);
  Expected<const TargetInfo *> target = getTargetInfo(launch.chip);
  if (problem && config && target)
    return estimateCost(*problem, *config, **target).microseconds;
  if (!problem)
    consumeError(problem.takeError());
  if (!config)
    consumeError(config.takeError());
  if (!target)
    consumeError(target.takeError());
  return 0;
}

Expected<std::string> pickFor(const LaunchDescription &launch, int64_t m,
                              int64_t n, int64_t k) {
  Expected<MatmulProblem> problem = problemOf(launch, m, n, k);
  if (!problem)
    return problem.takeError();
  Expected<const TargetInfo *> target = getTargetInfo(launch.chip);
  if (!target)
    return target.takeError();
  auto ranked = chooseConfig(*problem, **target, 1);
  if (!ranked)
    return ranked.takeError();
  return ranked->front().config.str();
}

} // namespace humming
