//===- Parallel.cpp - A parallel loop without a pool ----------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops here run for milliseconds to seconds, so starting a handful of threads
// per loop costs nothing that shows, and the library keeps no global state.
// pthread_create is used directly: std::thread reports failure by throwing,
// and this code is built without exceptions.
//
//===----------------------------------------------------------------------===//

#include "Humming/Quant/Parallel.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <atomic>
#include <pthread.h>
#include <thread>

namespace humming {

namespace {
struct Loop {
  std::atomic<int64_t> next{0};
  int64_t count;
  int64_t grain;
  llvm::function_ref<void(int64_t, int64_t)> body;

  Loop(int64_t count, int64_t grain,
       llvm::function_ref<void(int64_t, int64_t)> body)
      : count(count), grain(grain), body(body) {}

  void run() {
    for (;;) {
      int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count)
        return;
      body(begin, std::min(begin + grain, count));
    }
  }
};
} // namespace

static void *runLoop(void *loop) {
  static_cast<Loop *>(loop)->run();
  return nullptr;
}

void parallelFor(int64_t count, int64_t grain, unsigned threads,
                 llvm::function_ref<void(int64_t, int64_t)> body) {
  if (count <= 0)
    return;
  grain = std::max<int64_t>(grain, 1);
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  int64_t pieces = (count + grain - 1) / grain;
  threads = unsigned(std::min<int64_t>(threads, pieces));
  Loop loop(count, grain, body);
  llvm::SmallVector<pthread_t, 16> others;
  for (unsigned i = 1; i < threads; ++i) {
    pthread_t other;
    if (pthread_create(&other, nullptr, runLoop, &loop) != 0)
      break;
    others.push_back(other);
  }
  loop.run();
  for (pthread_t other : others)
    pthread_join(other, nullptr);
}

} // namespace humming
