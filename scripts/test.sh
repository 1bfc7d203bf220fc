#!/usr/bin/env bash
# Set-up, build, all tests. Runs everything even if a part fails; the last line
# is "N passed, N failed", and the exit status is 0 only if nothing failed.
#
#   scripts/test.sh [FILTER]
#
# FILTER is a regular expression over test names (lit --filter).
# HUMMING_TEST_DEVICE=0 adds the tests that need a CUDA device.
# HUMMING_BUILD_DIR, HUMMING_JOBS: see scripts/build.sh.
set -uo pipefail
cd "$(dirname "$0")/.."

build=${HUMMING_BUILD_DIR:-build}
log=$build/test-log.txt
broken=0
step() { # step NAME COMMAND...
  local name=$1
  shift
  echo "== $name"
  local begin=$SECONDS
  if ! "$@"; then
    echo "== $name FAILED"
    broken=$((broken + 1))
  fi
  echo "== $name took $((SECONDS - begin)) s"
}

run_tests() {
  # ctest holds the gtest programs and the lit suite; the lit suite runs each
  # case of the gtest programs too, so it alone is everything, counted.
  local lit=(ctest --test-dir "$build" -R '^lit$' -V)
  [ -n "${1:-}" ] && export LIT_FILTER=$1
  "${lit[@]}" 2>&1 | tee "$log"
}

step set-up bash scripts/setup.sh
step build bash scripts/build.sh --keep-going
mkdir -p "$build"
: >"$log"
step tests run_tests "${1:-}"

# lit's summary: "  Passed: 12 (92.31%)" and the like.
count() {
  sed -nE "s/^([0-9]+: )? *($1) *: *([0-9]+) \(.*/\3/p" "$log" | awk '{ n += $1 } END { print n + 0 }'
}
passed=$(count 'Passed|Expectedly Failed')
failed=$(count 'Failed|Unresolved|Timed Out|Unexpectedly Passed')
unsupported=$(count 'Unsupported')
# A step that broke without a failed test to show for it (set-up, the build,
# lit itself) counts as a failure, and so does a run without tests.
if [ "$broken" -gt 0 ] && [ "$failed" -eq 0 ]; then failed=$broken; fi
if [ "$passed" -eq 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi

[ "$unsupported" -gt 0 ] &&
  echo "$unsupported not run: they need what this machine lacks (a GPU with HUMMING_TEST_DEVICE set, an assembler)"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
