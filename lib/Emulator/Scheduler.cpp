//===- Scheduler.cpp - Clusters, warps and pending copies in a seeded order -*-
// C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace humming {
namespace emulator {

void joinClock(Clock &to, const Clock &from) {
  if (to.size() < from.size())
    to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    to[i] = std::max(to[i], from[i]);
}

void Knowledge::join(const Knowledge &other) {
  joinClock(here, other.here);
  for (const auto &[cluster, clock] : other.there) {
    auto [it, isNew] = there.try_emplace(cluster, clock);
    if (isNew || it->second == clock)
      continue;
    auto merged = std::make_shared<Clock>(*it->second);
    joinClock(*merged, *clock);
    it->second = std::move(merged);
  }
}

bool Cluster::done() const {
  for (const auto &w : warps)
    if (!w->done())
      return false;
  return true;
}

void Launch::report(uint32_t cluster, std::unique_ptr<EmulatorError> error) {
  std::lock_guard<std::mutex> guard(faultLock);
  stop = true;
  // Of several workers' faults the one of the lowest cluster is kept.
  if (cluster >= faultCluster && faultCluster != 0xFFFFFFFF)
    return;
  faultCluster = cluster;
  consumeError(std::move(fault));
  fault = Error(std::move(error));
}

std::unique_ptr<Cluster> makeCluster(Launch &launch, Worker &worker,
                                     uint32_t index) {
  const LaunchConfig &config = *launch.config;
  const Function &kernel = *launch.kernel;
  auto cluster = std::make_unique<Cluster>();
  cluster->worker = &worker;
  cluster->launch = &launch;
  cluster->index = index;
  cluster->clusterid[0] = index % launch.clusterGrid[0];
  cluster->clusterid[1] = index / launch.clusterGrid[0] % launch.clusterGrid[1];
  cluster->clusterid[2] = index / launch.clusterGrid[0] / launch.clusterGrid[1];
  uint32_t threads = config.block[0] * config.block[1] * config.block[2];
  cluster->threads = threads * launch.blocksPerCluster;
  for (uint32_t rank = 0; rank < launch.blocksPerCluster; ++rank) {
    auto block = std::make_unique<Block>();
    block->cluster = cluster.get();
    block->rank = rank;
    uint32_t inside[3] = {rank % config.cluster[0],
                          rank / config.cluster[0] % config.cluster[1],
                          rank / config.cluster[0] / config.cluster[1]};
    for (unsigned d = 0; d < 3; ++d)
      block->ctaid[d] = cluster->clusterid[d] * config.cluster[d] + inside[d];
    block->threads = threads;
    SharedMemory &s = block->shared;
    s.bytes.assign(launch.sharedBytes, 0xCD);
    if (config.checks.uninitialized)
      s.init.assign(launch.sharedBytes, 0);
    if (config.checks.races || config.checks.asyncOrder)
      s.cells.resize(launch.sharedBytes / 4 + 1);
    for (uint32_t i = 0; i < launch.warpsPerBlock; ++i) {
      auto warp = std::make_unique<Warp>();
      Warp &w = *warp;
      w.worker = &worker;
      w.launch = &launch;
      w.cluster = cluster.get();
      w.block = block.get();
      w.index = i;
      w.clusterIdx = uint32_t(cluster->warps.size());
      uint32_t lanes = std::min(32u, threads - 32 * i);
      w.launched = w.alive =
          lanes == 32 ? 0xFFFFFFFF : (uint32_t(1) << lanes) - 1;
      for (uint32_t lane = 0; lane < 32; ++lane) {
        uint32_t t = 32 * i + lane;
        w.tid[0][lane] = t % config.block[0];
        w.tid[1][lane] = t / config.block[0] % config.block[1];
        w.tid[2][lane] = t / config.block[0] / config.block[1];
      }
      w.registers.assign(size_t(kernel.rowsTotal) * 128 + 512, 0);
      w.predicates.assign(kernel.predsTotal + 1, 0);
      w.local.assign(size_t(kernel.localTotal) * 32, 0xCD);
      if (config.checks.uninitialized)
        w.localInit.assign(w.local.size(), 0);
      w.callArea.assign(size_t(kernel.callTotal) * 32, 0);
      w.trackRows = kernel.usesWgmma && config.checks.asyncOrder;
      if (w.trackRows) {
        w.rowWritten.assign(kernel.rowsTotal + 4, 0);
        w.rowInFlight.assign(kernel.rowsTotal + 4, 0);
      }
      Path root;
      root.pc = kernel.begin;
      root.mask = w.launched;
      root.fn = &kernel;
      root.state = Path::Ready;
      w.addPath(root);
      block->warps.push_back(&w);
      cluster->warps.push_back(std::move(warp));
    }
    cluster->blocks.push_back(std::move(block));
  }
  cluster->agents = uint32_t(cluster->warps.size());
  for (auto &w : cluster->warps) {
    w->sync.here.assign(cluster->agents, 0);
    w->sync.here[w->clusterIdx] = 1;
  }
  cluster->clusterLanes.assign(cluster->warps.size(), 0);
  cluster->starved = worker.random.below(uint32_t(cluster->warps.size()));
  return cluster;
}

/// One turn of a cluster. False: nothing can run in it.
bool Worker::step(Cluster &cluster) {
  // Copies land late unless the seed says otherwise.
  bool early = style & 1;
  if (early && random.oneIn(4))
    landSomething(cluster);

  SmallVector<Warp *, 64> ready;
  for (auto &w : cluster.warps)
    if (w->ready())
      ready.push_back(w.get());
  if (ready.empty()) {
    if (cluster.events.empty())
      return false;
    runEvent(cluster, random.below(uint32_t(cluster.events.size())));
    return true;
  }
  Warp *pick = ready[random.below(uint32_t(ready.size()))];
  if ((style & 6) == 6 && pick->clusterIdx == cluster.starved &&
      ready.size() > 1)
    pick = ready[random.below(uint32_t(ready.size()))];
  static const uint32_t quanta[] = {8, 64, 100000, 24};
  uint32_t longest = quanta[style >> 1 & 3];
  uint32_t quantum = longest > 1000 ? longest : 1 + random.below(longest);
  pick->run(quantum);
  return true;
}

/// Drops finished clusters. True when one finished.
bool Worker::settle() {
  bool any = false;
  for (size_t i = 0; i < resident.size();) {
    Cluster &c = *resident[i];
    if (!c.done()) {
      ++i;
      continue;
    }
    for (const auto &w : c.warps)
      unwaitedCopies |= !w->copies.empty();
    // What the async proxy still has to do completes by itself.
    while (!c.events.empty() && !failed)
      runEvent(c, random.below(uint32_t(c.events.size())));
    resident.erase(resident.begin() + i);
    any = true;
  }
  return any;
}

void Worker::run() {
  const LaunchConfig &config = *launch->config;
  style = unsigned(random.next() >> 8) & 7;
  uint32_t wanted = 1 + random.below(3);
  uint64_t limit = config.instructionLimit;
  uint32_t stuck = 0; ///< turns since something could run
  auto admit = [&]() {
    uint32_t i = launch->nextCluster++;
    if (i >= launch->numClusters)
      return false;
    resident.push_back(makeCluster(*launch, *this, launch->clusterOrder[i]));
    progress();
    stuck = 0;
    return true;
  };
  while (!launch->stop) {
    while (resident.size() < wanted && admit())
      ;
    if (resident.empty())
      return;
    Cluster &c = *resident[random.below(uint32_t(resident.size()))];
    bool ran = step(c);
    if (failed)
      return;
    if (ran) {
      stuck = 0;
      if (c.done() && settle())
        progress();
    } else if (++stuck > 4 * resident.size() + 16) {
      // Perhaps they wait for a block that has not started.
      if (admit())
        continue;
      bool all = llvm::all_of(resident, [](const auto &cluster) {
        return cluster->events.empty() &&
               llvm::none_of(cluster->warps,
                             [](const auto &w) { return w->ready(); });
      });
      if (all) {
        Cluster &first = *resident.front();
        launch->report(first.index,
                       describeDeadlock(first, "nothing can make progress"));
        failed = true;
        return;
      }
      stuck = 0;
    }
    // Polling without any write, arrival or exit anywhere: a livelock.
    if (spins > 20000 && !resident.empty()) {
      if (admit())
        continue;
      bool pending = false;
      for (auto &cluster : resident)
        while (!cluster->events.empty() && !failed) {
          runEvent(*cluster, 0);
          pending = true;
        }
      if (pending) {
        progress();
        continue;
      }
      if (spins > 200000) {
        Cluster &first = *resident.front();
        launch->report(
            first.index,
            describeDeadlock(first, "only polling, no write for a long time"));
        failed = true;
        return;
      }
    }
    if (executed > limit) {
      Cluster &first = *resident.front();
      auto error = describeDeadlock(first, "instruction limit reached");
      error->fault = EmulatorFault::Limit;
      error->message = "instruction limit of " + std::to_string(limit) +
                       " warp instructions reached";
      launch->report(first.index, std::move(error));
      failed = true;
      return;
    }
  }
}

} // namespace emulator
} // namespace humming
