#!/usr/bin/env bash
# The figures of docs/Performance.md for W4A16: right results, then times.
#
#   scripts/measure_w4a16.sh make FOLDER   on a machine with the compiler: kernels of
#                                          every chip and batch size into FOLDER
#   scripts/measure_w4a16.sh run FOLDER    on a machine with a GPU: checks and times
#                                          them; needs humming-run and humming-bench
#                                          (a build without MLIR will do)
#
# BIN names the folder of the programs (default build/bin).
set -eu
mode=${1:?expected make or run} folder=${2:?expected a folder}
bin=${BIN:-$(dirname "$0")/../build/bin}
hints="1 16 64 256 1024 8192"
shapes="8192x8192 4096x4096 28672x4096"

make_kernel() { # chip, activation, zero point, tokens, NxK, name
  local flags=(--chip "$1" --a "$2" --c "$2" --scale "$2" --w u4 --group 128
               --zero-point "$3" --m "$4" --n "${5%x*}" --k "${5#*x}")
  mkdir -p "$folder/$6"
  "$bin/humming-compile" "${flags[@]}" --emit ptx -o "$folder/$6/kernel.ptx"
  "$bin/humming-compile" "${flags[@]}" --emit launch -o "$folder/$6/kernel.json"
}

if [ "$mode" = make ]; then
  for m in $hints; do
    for shape in $shapes; do make_kernel sm_90a bf16 none "$m" "$shape" "time-$shape-$m"; done
    for chip in sm_90 sm_90a; do make_kernel "$chip" bf16 none "$m" 8192x8192 "check-$chip-$m"; done
  done
  for m in 16 256; do
    make_kernel sm_75 f16 int "$m" 8192x8192 "check-sm_75-$m"
    make_kernel sm_80 bf16 int "$m" 8192x8192 "check-sm_80-$m"
    make_kernel sm_89 f16 float "$m" 8192x8192 "check-sm_89-$m"
  done
  exit
fi

# Each batch size with the kernel that is chosen for it, small shapes with all.
tokens_of() {
  case $1 in
  1) echo 0,1,2,7,8 ;; 16) echo 16 ;; 64) echo 33,64 ;; 256) echo 257 ;; *) echo 1024 ;;
  esac
}
status=0
for kernel in "$folder"/check-*; do
  m=${kernel##*-}
  [ "$m" = 8192 ] && continue
  "$bin/humming-run" --artifacts "$kernel" --m "$(tokens_of "$m")" \
    --shape 8192x8192,4096x4096 >>"$folder/checks.json" || status=1
  "$bin/humming-run" --artifacts "$kernel" --m 0,1,2,7,8,16,33,64,257,1024 \
    --shape 1000x1048,384x1536 >>"$folder/checks.json" || status=1
done
echo "checks: $(grep -c '"ok":true' "$folder/checks.json") ok, $(grep -c '"ok":false' "$folder/checks.json" || true) not"
for shape in $shapes; do
  for m in $hints; do
    "$bin/humming-bench" --artifacts "$folder/time-$shape-$m" --m "$m" --shape "$shape" \
      --format json >>"$folder/times.json" 2>/dev/null || status=1
  done
done
cat "$folder/times.json"
exit $status
