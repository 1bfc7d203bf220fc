#!/usr/bin/env bash
# The full product of formats on three chips, compiled and executed on the
# emulator: activation x scale of the activation x weight x scale x granularity x
# zero point x second scale level. Hours; the covering set of the same test runs
# with scripts/test.sh.
#
#   scripts/nightly.sh
#
# HUMMING_BUILD_DIR: see scripts/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
HUMMING_COMBINATIONS=all exec \
  "${HUMMING_BUILD_DIR:-build}/unittests/CompilerTests.gtest" \
  --gtest_filter='Chips/Combinations.*'
