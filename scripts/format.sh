#!/usr/bin/env bash
# Formats the C and C++ sources of the tree (clang-format 22, LLVM style).
#
#   scripts/format.sh [--check]
#
# --check changes nothing and fails if a file would change.
set -euo pipefail
cd "$(dirname "$0")/.."

format=$(command -v clang-format-22 || echo /usr/lib/llvm-22/bin/clang-format)
command -v "$format" >/dev/null || {
  echo "format: error: expected clang-format-22 on the path; install the package clang-format-22" >&2
  exit 1
}
args=(-i)
[ "${1:-}" = --check ] && args=(--dry-run --Werror)
git ls-files -z '*.h' '*.cpp' '*.c' | xargs -0 "$format" "${args[@]}"
