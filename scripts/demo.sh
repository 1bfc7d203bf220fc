#!/usr/bin/env bash
# Set-up, build, and the main job: a 4-bit layer of a real checkpoint becomes
# kernels for every architecture, and runs with right numbers: on the GPU if
# there is one, else on the emulator.
#
#   scripts/demo.sh
#
# HUMMING_BUILD_DIR, HUMMING_JOBS: see scripts/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${HUMMING_BUILD_DIR:-build}
bash scripts/setup.sh
bash scripts/build.sh --target humming-compile --target humming-run --target humming-opt

out=$build/demo
bin=$build/bin
mkdir -p "$out"

# A query projection of all-MiniLM-L6-v2, quantized by GPTQ: 384 x 384, 4 bits,
# groups of 128, zero points, bias.
checkpoint=test/data/quant/minilm-gptq/model.safetensors
layer=encoder.layer.0.attention.self.query
problem=(--a f16 --w u4 --scale f16 --group 128 --zero-point int --c f16 --bias --n 384 --k 384)

echo
echo "== The layer as PTX and launch description, for every architecture"
for chip in sm_75 sm_80 sm_86 sm_89 sm_90; do
  "$bin/humming-compile" --chip $chip "${problem[@]}" --emit ptx -o "$out/layer-$chip.ptx"
  "$bin/humming-compile" --chip $chip "${problem[@]}" --emit launch -o "$out/layer-$chip.json"
  printf '%s  %s: %s lines, %s MMA instructions\n' "$chip" "$out/layer-$chip.ptx" \
    "$(wc -l <"$out/layer-$chip.ptx")" "$(grep -c 'mma.sync' "$out/layer-$chip.ptx")"
done

echo
echo "== Where the time of one cold compile goes, and why this config (sm_80)"
if ! "$bin/humming-compile" --chip sm_80 "${problem[@]}" --no-cache --emit cubin \
  -o "$out/layer-sm_80.cubin" --time --explain; then
  echo "No assembler here (nvJitLink, ptxas or the driver); to PTX instead:"
  "$bin/humming-compile" --chip sm_80 "${problem[@]}" --no-cache --emit ptx \
    -o "$out/layer-sm_80.ptx" --time --explain
fi

echo
if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1; then
  place=cuda
  # PTX of the nearest older architecture runs on a newer one.
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
  for known in 75 80 86 89 90; do
    [ "$known" -le "$capability" ] && chip=sm_$known
  done
  echo "== The layer on the GPU: $(nvidia-smi -L | head -1)"
else
  place=emulator
  chip=sm_80
  echo "== The layer on the emulator: this machine has no GPU"
fi
"$bin/humming-run" --on $place --chip $chip --layer "$checkpoint:$layer" \
  --a f16 --c f16 --m 1,16,33 --seed 1
echo
echo "demo: every result is within its bound; the kernels are in $out"
