//===- FuzzTest.cpp - Malformed PTX never crashes the emulator -*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Mutates the test kernels token by token and byte by byte, parses what comes
// out and runs what parses. Any outcome is fine except a crash or a hang. The
// number of cases is fixed (HUMMING_FUZZ_CASES sets another), so that every
// machine sees the same ones, however fast it is. They are split over tests of
// their own, which run side by side.
//
//===----------------------------------------------------------------------===//

#include "TestKernels.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <random>

using namespace llvm;
using namespace humming;
using namespace humming::test;

static std::string mutateText(const std::string &text, std::mt19937 &random,
                              const std::vector<std::string> &words) {
  std::string s = text;
  unsigned edits = 1 + random() % 3;
  for (unsigned e = 0; e < edits && !s.empty(); ++e) {
    size_t at = random() % s.size();
    switch (random() % 8) {
    case 0: // a byte
      s[at] = char(random());
      break;
    case 1: // a cut
      s.erase(at, random() % 20);
      break;
    case 2: // the rest
      s.resize(at);
      break;
    case 3: { // a copy of a piece somewhere else
      std::string piece = s.substr(at, random() % 60);
      s.insert(random() % s.size(), piece);
      break;
    }
    case 4: { // a number
      size_t digit = s.find_first_of("0123456789", at);
      if (digit != std::string::npos) {
        static const char *const numbers[] = {
            "0", "-1",    "4294967295", "18446744073709551615",
            "7", "65536", "0x80000000"};
        s.replace(digit, 1, numbers[random() % 7]);
      }
      break;
    }
    case 5: { // a line twice, or none
      size_t begin = s.rfind('\n', at), end = s.find('\n', at);
      if (begin == std::string::npos || end == std::string::npos)
        break;
      std::string line = s.substr(begin, end - begin);
      if (random() & 1)
        s.insert(end, line);
      else
        s.erase(begin, end - begin);
      break;
    }
    default: { // a word of the language in place of another
      size_t begin = s.find_first_of(" .,[{", at);
      if (begin == std::string::npos)
        break;
      size_t end = s.find_first_of(" .,;]}+", begin + 1);
      if (end == std::string::npos)
        break;
      s.replace(begin + 1, end - begin - 1, words[random() % words.size()]);
    }
    }
  }
  return s;
}

namespace {
class Fuzz : public testing::TestWithParam<unsigned> {};
constexpr unsigned Shards = 4, CasesPerShard = 100000;
} // namespace

TEST_P(Fuzz, MalformedPtxNeverCrashes) {
  unsigned cases = CasesPerShard;
  if (const char *text = std::getenv("HUMMING_FUZZ_CASES"))
    cases = unsigned(std::atoi(text)) / Shards;
  std::vector<std::string> words = {
      "u8",    "s16",     "f16x2",      "b128",
      "pred",  "v4",      "shared",     "local",
      "rn",    "sat",     "ftz",        "x4",
      "trans", "m8n8",    "sync",       "aligned",
      "%r1",   "%rd1",    "%p1",        "%f1",
      "_",     "%tid.x",  "0f7FC00000", "bra",
      "ret",   "exit",    "call",       "bar",
      "ld",    "st",      "cvt",        "mma",
      "wgmma", "atom",    "{",          "}",
      "(",     ")",       "[%r1]",      "cp.async.bulk.commit_group",
      ".reg",  ".shared", ".param",     "brx.idx"};
  for (const TestKernel &k : testKernels()) {
    SmallVector<StringRef, 0> parts;
    StringRef(k.ptx).split(parts, ' ');
    for (StringRef p : parts)
      if (p.size() < 40)
        words.push_back(p.str());
  }
  std::mt19937 random(20240607 + GetParam());
  unsigned parsed = 0, total = 0;
  for (; total < cases; ++total) {
    const TestKernel &k = testKernels()[random() % testKernels().size()];
    std::string text = mutateText(k.ptx, random, words);
    Outcome o = runKernel(k, text, random());
    parsed += !o.faulted || o.fault != EmulatorFault::Syntax;
  }
  // Both sides of the parser were reached.
  EXPECT_GT(parsed, 0u);
  EXPECT_LT(parsed, total);
}

INSTANTIATE_TEST_SUITE_P(Shards, Fuzz, testing::Range(0u, Shards));
