#!/bin/sh
# Builds the program that runs instructions on a Hopper GPU:
#   scripts/hardware_truth/build.sh OUTPUT [BUILD_FOLDER]
# Then, on a machine with the GPU: OUTPUT test/data/hardware
# Needs nvcc of CUDA 12.8 or newer; the program needs the driver only.
set -e
here=$(cd "$(dirname "$0")" && pwd)
output=${1:?usage: build.sh OUTPUT [BUILD_FOLDER]}
build=${2:-$(mktemp -d)}
mkdir -p "$build"
ptx=$here/../../test/data/hardware/kernels.ptx
ptxas -arch=sm_90a "$ptx" -o "$build/kernels.cubin"
bin2c --name kernelImage "$build/kernels.cubin" > "$build/KernelImage.h"
grep '^// case' "$ptx" > "$build/kernels.list"
bin2c --name kernelText "$build/kernels.list" >> "$build/KernelImage.h"
objects=
for name in Main Arithmetic Convert Integer Kernels Matrix Mma Wgmma Tensor; do
  nvcc -std=c++17 -O1 -gencode arch=compute_90a,code=sm_90a -I"$build" \
    -diag-suppress 550,177 -c "$here/$name.cu" -o "$build/$name.o"
  objects="$objects $build/$name.o"
done
nvcc -gencode arch=compute_90a,code=sm_90a -cudart static $objects -o "$output"
