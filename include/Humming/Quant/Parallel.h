//===- Parallel.h - A parallel loop without a pool ---------------*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_QUANT_PARALLEL_H
#define HUMMING_QUANT_PARALLEL_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>

namespace humming {

/// Calls body(begin, end) on disjoint ranges that cover [0, count), on at most
/// `threads` threads (0: one per hardware thread), the caller's among them.
/// Ranges are handed out in steps of `grain` (at least 1); which thread gets
/// which range is not fixed, so bodies must not depend on it. Returns when all
/// are done; runs on the caller alone where threads can't be started.
void parallelFor(int64_t count, int64_t grain, unsigned threads,
                 llvm::function_ref<void(int64_t begin, int64_t end)> body);

} // namespace humming

#endif // HUMMING_QUANT_PARALLEL_H
