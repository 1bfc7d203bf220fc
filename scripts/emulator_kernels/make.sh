#!/bin/sh
# Compiles kernels.cu to PTX, runs it on the GPU of this machine and writes both
# into unittests/Emulator/Inputs: make.sh [output folder]
#   compile only: make.sh --ptx FOLDER; run only: make.sh --run FOLDER
set -e
here=$(dirname "$0")
mode=all
case "$1" in --ptx|--run) mode=${1#--}; shift ;; esac
out=${1:-$here/../../unittests/Emulator/Inputs}
if [ "$mode" != run ]; then
  nvcc -std=c++17 -ptx -arch=sm_80 "$here/kernels.cu" -o "$out/kernels_sm80.ptx"
  nvcc -std=c++17 -ptx -arch=sm_90 "$here/kernels.cu" -o "$out/kernels_sm90.ptx"
  nvcc -std=c++17 "$here/run.cpp" -o "$out/run" -lcuda
fi
if [ "$mode" != ptx ]; then
  "$out/run" "$out"
fi
[ "$mode" != all ] || rm "$out/run"
