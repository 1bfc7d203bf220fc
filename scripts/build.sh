#!/usr/bin/env bash
# Builds everything into build/, tools in build/bin/.
#
#   scripts/build.sh [--static] [--keep-going] [--target NAME]... [-DNAME=VALUE]...
#
# --static      self-contained tools in build-static/bin/ (HUMMING_STATIC=ON),
#               which run on a Linux without LLVM; no tests
# --keep-going  build what can be built after an error
# --target      build this target only
# -D...         given to CMake
#
# HUMMING_BUILD_DIR   another build folder
# HUMMING_JOBS        number of compilers at a time (default: one a core, and
#                     one for each 1.5 GB of memory at most)
set -euo pipefail
cd "$(dirname "$0")/.."

build=${HUMMING_BUILD_DIR:-build}
cmake_args=()
ninja_args=()
while [ $# -gt 0 ]; do
  case "$1" in
  --static)
    build=${HUMMING_BUILD_DIR:-build-static}
    cmake_args+=(-DHUMMING_STATIC=ON -DHUMMING_ENABLE_TESTS=OFF)
    ;;
  --keep-going) ninja_args+=(-k 0) ;;
  --target)
    [ $# -ge 2 ] || { echo "build: error: expected a name after --target" >&2; exit 2; }
    ninja_args+=("$2")
    shift
    ;;
  -D*) cmake_args+=("$1") ;;
  *)
    echo "build: error: unknown argument '$1', expected --static, --keep-going, --target NAME or -DNAME=VALUE" >&2
    exit 2
    ;;
  esac
  shift
done

jobs=${HUMMING_JOBS:-}
if [ -z "$jobs" ]; then
  jobs=$(nproc)
  by_memory=$(awk '/^MemAvailable/ { print int($2 / 1572864) }' /proc/meminfo)
  [ "$by_memory" -lt 1 ] && by_memory=1
  [ "$jobs" -gt "$by_memory" ] && jobs=$by_memory
fi

# The compiler can't change in a folder that is configured already.
if [ ! -f "$build/CMakeCache.txt" ] && [ -x /usr/lib/llvm-22/bin/clang++ ] && [ -z "${CXX:-}" ]; then
  cmake_args+=(-DCMAKE_C_COMPILER=/usr/lib/llvm-22/bin/clang
               -DCMAKE_CXX_COMPILER=/usr/lib/llvm-22/bin/clang++)
fi

cmake -S . -B "$build" -G Ninja "${cmake_args[@]}"
ninja -C "$build" -j "$jobs" "${ninja_args[@]}"
echo "build: tools are in $build/bin"
