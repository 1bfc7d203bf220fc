#!/usr/bin/env bash
# The full product of formats on three chips, compiled and executed on the
# emulator, and the same on sm_90a with enough tokens for wgmma: activation x
# scale of the activation x weight x scale x granularity x zero point x second
# scale level. The covering set of the same test runs with scripts/test.sh.
#
#   scripts/nightly.sh           all of it: eight hours of one core
#   scripts/nightly.sh I/N       the I-th of N parts (from 0): every N-th
#                                combination, for less time or more machines
#
# How long it takes is in docs/Performance.md. HUMMING_BUILD_DIR: see
# scripts/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
part=${1:-all}
HUMMING_COMBINATIONS=$part exec \
  "${HUMMING_BUILD_DIR:-build}/unittests/CompilerTests.gtest" \
  --gtest_filter='Chips/Combinations.*:WarpgroupCombinations.*'
