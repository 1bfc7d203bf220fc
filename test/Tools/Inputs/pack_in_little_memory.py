"""Packs a made-up FP8 model of 128 MB, 64 layers of 2 MB, with 96 MB of private memory
(RLIMIT_DATA: heap, stacks of threads, writable mappings) for all of humming-pack.

  pack_in_little_memory.py HUMMING_PACK FOLDER
"""
import json
import os
import resource
import struct
import subprocess
import sys

N, K, LAYERS, LIMIT = 1024, 2048, 64, 96 << 20


def write_model(path):
    header, offset = {}, 0
    for i in range(LAYERS):
        for name, dtype, shape, size in (("weight", "F8_E4M3", [N, K], N * K),
                                         ("weight_scale", "F32", [N, 1], 4 * N)):
            header[f"layers.{i}.proj.{name}"] = {
                "dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
            offset += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for i in range(LAYERS):
            file.write(bytes([0x30 + i % 8]) * (N * K) + struct.pack("<f", 0.01) * N)


def main():
    pack, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    write_model(f"{folder}/model.safetensors")
    with open(f"{folder}/config.json", "w") as file:
        json.dump({"quantization_config": {"quant_method": "fp8"}}, file)
    done = subprocess.run(
        [pack, folder, "-o", f"{folder}/packed", "--shard-mb", "8"],
        capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT)))
    packed = sum(os.path.getsize(f"{folder}/packed/{name}")
                 for name in os.listdir(f"{folder}/packed"))
    print(f"status {done.returncode}, {packed >> 20} MB packed", done.stderr[-500:])


if __name__ == "__main__":
    main()
