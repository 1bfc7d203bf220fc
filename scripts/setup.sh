#!/usr/bin/env bash
# Installs what building and testing Humming needs and is not there yet, on
# Debian 12 or 13 and Ubuntu 24.04 or newer. Needs no network, no root and no
# apt when nothing is missing.
#
#   scripts/setup.sh [--check]
#
# --check says what is missing and installs nothing.
set -euo pipefail

llvm=22
prefix=/usr/lib/llvm-$llvm
check_only=no
[ "${1:-}" = --check ] && check_only=yes

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# --- What is needed: a package, and a test of whether its content is there ---
missing=()
need() { # need PACKAGE TEST...
  local package=$1
  shift
  if ! "$@" >/dev/null 2>&1; then missing+=("$package"); fi
}
any_file() { # any_file GLOB...: one of the patterns matches a file
  local file
  for file in "$@"; do [ -e "$file" ] && return 0; done
  return 1
}
find_missing() {
  missing=()
  need cmake command -v cmake
  need ninja-build command -v ninja
  need git command -v git
  need python3 command -v python3
  need clang-$llvm any_file $prefix/bin/clang++
  need lld-$llvm any_file $prefix/bin/ld.lld
  need llvm-$llvm any_file $prefix/bin/llvm-tblgen
  need llvm-$llvm-dev any_file $prefix/lib/cmake/llvm/LLVMConfig.cmake
  need llvm-$llvm-tools any_file $prefix/bin/FileCheck
  need mlir-$llvm-tools any_file $prefix/bin/mlir-tblgen
  need libmlir-$llvm-dev any_file $prefix/lib/cmake/mlir/MLIRConfig.cmake
  need libgtest-dev any_file /usr/lib/*/cmake/GTest/GTestConfig.cmake
  need libzstd-dev any_file /usr/lib/*/libzstd.a
  need zlib1g-dev any_file /usr/lib/*/libz.a
  need ccache command -v ccache
}

find_missing
if [ ${#missing[@]} -eq 0 ]; then
  say "everything is installed"
  exit 0
fi
say "missing: ${missing[*]}"
[ $check_only = yes ] && exit 1

# --- Installing -------------------------------------------------------------
command -v apt-get >/dev/null 2>&1 ||
  die "this script knows apt only; install the equivalent of: ${missing[*]}"
# shellcheck disable=SC1091
. /etc/os-release
case "${ID:-}:${VERSION_ID:-}" in
debian:12 | debian:13 | ubuntu:24.04 | ubuntu:2[4-9].* | ubuntu:[3-9][0-9].*) ;;
*) say "warning: made for Debian 12/13 and Ubuntu 24.04 or newer, this is ${PRETTY_NAME:-unknown}" ;;
esac

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 ||
    die "not root and no sudo; run as root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
apt() {
  say "running: ${as_root[*]} apt-get $*"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 "$@"
}
has_candidate() {
  local candidate
  candidate=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p')
  [ -n "$candidate" ] && [ "$candidate" != "(none)" ]
}

apt update
# Some releases have no LLVM 22 of their own; LLVM's project keeps an archive
# of packages with the same names for them.
if ! has_candidate libmlir-$llvm-dev; then
  codename=${VERSION_CODENAME:-}
  [ -n "$codename" ] || die "no codename in /etc/os-release, can't choose an archive for LLVM $llvm"
  say "no LLVM $llvm in this system's archives; adding https://apt.llvm.org/$codename"
  apt install -y --no-install-recommends ca-certificates curl
  key=/etc/apt/keyrings/apt.llvm.org.asc
  "${as_root[@]}" mkdir -p /etc/apt/keyrings
  "${as_root[@]}" curl -fsSL https://apt.llvm.org/llvm-snapshot.gpg.key -o $key ||
    die "can't fetch the key of apt.llvm.org"
  echo "deb [signed-by=$key] https://apt.llvm.org/$codename/ llvm-toolchain-$codename-$llvm main" |
    "${as_root[@]}" tee /etc/apt/sources.list.d/llvm-$llvm.list >/dev/null
  apt update
  has_candidate libmlir-$llvm-dev ||
    die "apt.llvm.org has no LLVM $llvm for $codename; remove /etc/apt/sources.list.d/llvm-$llvm.list, build LLVM $llvm and pass -DMLIR_DIR=PREFIX/lib/cmake/mlir to scripts/build.sh"
fi
apt install -y --no-install-recommends "${missing[@]}"

find_missing
[ ${#missing[@]} -eq 0 ] || die "installed, but still missing: ${missing[*]}"
say "done"
