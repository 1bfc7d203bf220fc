//===- Layout.cpp - Packing and gathering kernels -------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Humming/Target/Layout.h"
#include "Humming/Quant/Packing.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace humming;

static int32_t divisorOf(int64_t size, int64_t most) {
  // An unknown size promises nothing.
  return size <= 0 ? 1 : int32_t(std::min<int64_t>(size & -size, most));
}

void PackProblem::deriveDivisors() { kDivisor = divisorOf(k, 4); }

std::string PackProblem::str() const {
  return "pack w" + std::to_string(weightBits) + "a" +
         std::to_string(activationBits);
}

void GatherProblem::deriveDivisors() {
  divisor = divisorOf(columns, 128 / std::max(elementBits, 1u));
}

std::string GatherProblem::str() const {
  return "gather " + std::to_string(elementBits);
}

static llvm::Error expected(const llvm::Twine &what, const llvm::Twine &got) {
  return llvm::createStringError("expected " + what + ", got " + got);
}

llvm::Error humming::checkPack(const PackProblem &problem) {
  if (llvm::Error error =
          checkPackedWidths(problem.activationBits, problem.weightBits))
    return error;
  // Slabs are the grid's y, which has 16 bits.
  constexpr int64_t most = int64_t(65535) * PackProblem::blockK;
  if (problem.k < 0 || problem.k > most)
    return expected("K from 0 to " + llvm::Twine(most), llvm::Twine(problem.k));
  if (problem.n < 0 || problem.n > INT32_MAX)
    return expected("N from 0 to 2147483647", llvm::Twine(problem.n));
  if (problem.kDivisor != 1 && problem.kDivisor != 2 && problem.kDivisor != 4)
    return expected("a divisor of K of 1, 2 or 4",
                    llvm::Twine(problem.kDivisor));
  return llvm::Error::success();
}

llvm::Error humming::checkGather(const GatherProblem &problem) {
  if (problem.elementBits != 8 && problem.elementBits != 16)
    return expected("elements of 8 or 16 bits",
                    llvm::Twine(problem.elementBits));
  int64_t most = 65535 * int64_t(problem.blockColumns());
  if (problem.columns < 0 ||
      problem.columns > std::min<int64_t>(most, INT32_MAX))
    return expected("columns from 0 to " +
                        llvm::Twine(std::min<int64_t>(most, INT32_MAX)),
                    llvm::Twine(problem.columns));
  int32_t largest = 128 / int32_t(problem.elementBits);
  if (problem.divisor < 1 || problem.divisor > largest ||
      !llvm::isPowerOf2_32(uint32_t(problem.divisor)))
    return expected("a divisor of the columns, a power of two up to " +
                        llvm::Twine(largest),
                    llvm::Twine(problem.divisor));
  return llvm::Error::success();
}
