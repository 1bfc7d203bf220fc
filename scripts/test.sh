#!/usr/bin/env bash
# Set-up, build, all tests. Runs everything even if a part fails; the last line
# is "N passed, N failed", and the exit status is 0 only if nothing failed. Right
# before it stand the names of the tests that failed and the end of what each
# printed, or the end of the step that broke.
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
step_logs=$(mktemp -d)
trap 'rm -rf "$step_logs"' EXIT
broken=0
broken_steps=()
step() { # step NAME COMMAND...
  local name=$1
  shift
  echo "== $name"
  local begin=$SECONDS
  if ! "$@" 2>&1 | tee "$step_logs/$name"; then
    echo "== $name FAILED"
    broken=$((broken + 1))
    broken_steps+=("$name")
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

# lit prints a failed test between two lines of stars (VERBOSE); of a long output
# its end says most. ctest -V puts its number before each line.
show_failures() {
  sed -E 's/^[0-9]+: //' "$log" | awk -v most=25 '
    function finish(  i, from) {
      if (name == "") return
      from = count > most ? count - most + 1 : 1
      print "-- " name
      for (i = from; i <= count; ++i) print "   " lines[i % most]
      name = ""
    }
    /^\*+ TEST .* FAILED \*+$/ {
      finish()
      name = $0
      sub(/^\*+ TEST \047/, "", name); sub(/\047 FAILED \*+$/, "", name)
      count = 0
      next
    }
    /^\*\*\*\*\*\*\*\**$/ { finish(); next } # mawk knows no {8,}
    name != "" && NF { lines[++count % most] = $0 }
    END { finish() }'
  # Tests that ended without such a block (time-outs, no result) by name alone.
  sed -E 's/^[0-9]+: //' "$log" |
    sed -nE 's/^(TIMEOUT|UNRESOLVED|XPASS): (.*) \([0-9]+ of [0-9]+\)$/-- \2: \1/p'
}
if [ "$failed" -gt 0 ]; then
  echo "== what failed"
  show_failures
  for name in ${broken_steps[@]+"${broken_steps[@]}"}; do
    [ "$name" = tests ] && [ "$(show_failures | wc -l)" -gt 0 ] && continue
    echo "-- step $name"
    tail -n 25 "$step_logs/$name" | sed 's/^/   /'
  done
fi

[ "$unsupported" -gt 0 ] &&
  echo "$unsupported not run: they need what this machine lacks (a GPU with HUMMING_TEST_DEVICE set, an assembler)"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
