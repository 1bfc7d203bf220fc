#!/usr/bin/env python3
"""Draws time over floor against the batch size: ours, a peer and cuBLAS.

  scripts/plot_performance.py TIMES.json [--others PEER.json] -o docs/performance.svg
  scripts/plot_performance.py TIMES.json --others PEER.json --table   Markdown to stdout

TIMES.json is what scripts/measure_formats.py (or humming-bench --format json) wrote.
PEER.json has lines {"impl": "humming" or "cublas", "fmt": label, "n", "k", "m",
"rot_us"}, with or without `ROW ` before them; lines {"kind": "ceiling", "what":
"bf16 8192^3", "TFLOPS": ...} replace the rates below. Labels are those of
measure_formats.py; cuBLAS's are bf16, fp8_tensorscale and int8.

The floor of a kernel: max(bytes / copy bandwidth, operations / rate) + 1.2 us, with
each byte of weights, scales, x and c once, the bandwidth of a copy within the device in
the same run, the rate that cuBLAS reaches at 8192^3, and the smallest kernel of a graph.
SVG is written by hand: no dependency, and the same data give the same file.
"""
import argparse
import json
import math
import sys

# Multiply-add rates of cuBLAS on an H200, TFLOP/s. Tensor cores do int8 as fast as fp8.
RATES = {16: 806.0, 8: 1515.0}
KERNEL_US = 1.2
PANELS = {
    "w4a16-g128": "W4A16, groups of 128",
    "mxfp4a16": "MXFP4 × bf16",
    "nvfp4a16": "NVFP4 × bf16",
    "w8a8-fp8-channel": "FP8 × FP8, channel",
    "w8a8-int8-channel": "int8 × int8, channel",
    "w8a8-fp8-128x128-a128": "FP8 × FP8, 128×128 blocks",
    "w4a8-fp8-g128": "W4 × FP8, groups of 128",
    "w4a8-int8-g128": "W4 × int8, groups of 128",
}
# Colours that differ in lightness too, and marks that differ in shape.
SERIES = {"ours": ("#0b6fa4", "circle"), "peer": ("#d1495b", "square"),
          "cuBLAS": ("#8a8a8a", "triangle")}


def read_rows(path):
    rows = []
    with open(path) as file:
        for line in file:
            text = line.strip().removeprefix("ROW ")
            if text.startswith("{"):
                rows.append(json.loads(text))
    return rows


def activation_bits(label):
    return 8 if "a8" in label.split("-")[0] else 16


def cublas_format(label):
    if activation_bits(label) == 16:
        return "bf16"
    return "int8" if "int8" in label else "fp8_tensorscale"


class Data:
    """Times in us by (format, m), for each series, and the floors."""

    def __init__(self, ours, others):
        self.times = {"ours": {}, "peer": {}, "cuBLAS": {}}
        self.floors = {}
        self.rates = dict(RATES)
        cublas = {}
        for row in others:
            if row.get("kind") == "ceiling" and "TFLOPS" in row:
                self.rates[8 if row["what"].startswith("fp8") else 16] = row["TFLOPS"]
            elif "rot_us" in row and row.get("impl") == "humming":
                self.times["peer"][row["fmt"], row["m"], row["n"], row["k"]] = row["rot_us"]
            elif "rot_us" in row and row.get("impl") == "cublas":
                cublas[row["fmt"], row["m"], row["n"], row["k"]] = row["rot_us"]
        self.tokens, self.labels, self.device = set(), [], ""
        for row in ours:
            if "rot_us" not in row:
                continue
            label = row["artifact"]
            key = label, row["m"], row["n"], row["k"]
            self.times["ours"][key] = row["rot_us"]
            memory = row["bytes"] / row["copy_TBps"] / 1e6
            compute = (2.0 * row["m"] * row["n"] * row["k"]
                       / self.rates[activation_bits(label)] / 1e6)
            self.floors[key] = max(memory, compute) + KERNEL_US
            other = (cublas_format(label),) + key[1:]
            if other in cublas:
                self.times["cuBLAS"][key] = cublas[other]
            self.tokens.add(row["m"])
            if label not in self.labels:
                self.labels.append(label)
            self.device = row.get("device", "")
        self.shapes = sorted({key[2:] for key in self.floors}, reverse=True)


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def mark(shape, x, y, colour):
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
    if shape == "square":
        return (f'<rect x="{x - 2.7:.1f}" y="{y - 2.7:.1f}" width="5.4" height="5.4" '
                f'fill="{colour}"/>')
    return (f'<path d="M{x:.1f} {y - 3.4:.1f}l3.4 6h-6.8z" fill="{colour}"/>')


def draw(data, shape):
    """The figure of one N x K as SVG text."""
    labels = [label for label in PANELS if label in data.labels] or data.labels[:8]
    tokens = sorted(data.tokens)
    width, height, left, top, columns = 250, 190, 42, 64, 4
    rows = -(-len(labels) // columns)
    total_width = left + columns * width + 10
    total_height = top + rows * height + 16
    largest = 2.0
    for label in labels:
        for times in data.times.values():
            for m in tokens:
                key = (label, m) + shape
                if key in times and key in data.floors:
                    largest = max(largest, times[key] / data.floors[key])
    largest = min(4.0, math.ceil(largest * 2) / 2)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{total_width}" '
           f'height="{total_height}" viewBox="0 0 {total_width} {total_height}" '
           'font-family="Helvetica, Arial, sans-serif" font-size="11" fill="#222">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="22" font-size="14" font-weight="bold">Time over floor, '
           f'N × K = {shape[0]} × {shape[1]}, {escape(data.device)}</text>']
    for i, (name, (colour, form)) in enumerate(SERIES.items()):
        x = left + 6 + 90 * i
        out.append(f'<path d="M{x - 6} 40h22" stroke="{colour}" stroke-width="1.6"/>'
                   + mark(form, x + 5, 40, colour)
                   + f'<text x="{x + 22}" y="44">{name}</text>')
    inner_width, inner_height = width - 26, height - 52
    low, high = math.log2(tokens[0]), math.log2(max(tokens[-1], tokens[0] * 2))
    for index, label in enumerate(labels):
        x0 = left + index % columns * width
        y0 = top + index // columns * height + 16

        def at(m, ratio):
            ratio = min(ratio, largest)
            return (x0 + (math.log2(m) - low) / (high - low) * inner_width,
                    y0 + inner_height * (1 - (ratio - 1) / (largest - 1)))

        out.append(f'<text x="{x0}" y="{y0 - 6}" font-weight="bold">'
                   f'{escape(PANELS.get(label, label))}</text>')
        ratio = 1.0
        while ratio <= largest + 1e-9:
            y = at(tokens[0], ratio)[1]
            out.append(f'<path d="M{x0} {y:.1f}h{inner_width}" stroke="'
                       f'{"#444" if ratio == 1 else "#ddd"}" stroke-width="0.8"/>')
            if index % columns == 0:
                out.append(f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">'
                           f'{ratio:g}</text>')
            ratio += 0.5
        for m in tokens:
            x = at(m, 1)[0]
            out.append(f'<text x="{x:.1f}" y="{y0 + inner_height + 14}" '
                       f'text-anchor="middle" font-size="10">{m}</text>')
        for name, (colour, form) in SERIES.items():
            points = []
            for m in tokens:
                key = (label, m) + shape
                if key in data.times[name] and key in data.floors:
                    ratio = data.times[name][key] / data.floors[key]
                    points.append(at(m, ratio) + (ratio,))
            if not points:
                continue
            line = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points)
            out.append(f'<path d="M{line}" fill="none" stroke="{colour}" '
                       'stroke-width="1.6"/>')
            for x, y, ratio in points:
                out.append(mark(form, x, y, colour))
                if ratio > largest:  # cut off: say how far it goes
                    out.append(f'<text x="{x:.1f}" y="{y + 13:.1f}" font-size="9" '
                               f'text-anchor="middle" fill="{colour}">{ratio:.1f}</text>')
    out.append(f'<text x="{left + columns * width / 2}" y="{total_height - 4}" '
               'text-anchor="middle">M (tokens)</text></svg>')
    return "\n".join(out) + "\n"


def table(data, shape):
    """Times and ratios as Markdown."""
    lines = ["| format | M | floor | ours | over floor | peer | ours / peer | cuBLAS | "
             "ours / cuBLAS |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|"]

    def cell(value, form="{:.3g}"):
        return "-" if value is None else form.format(value)

    for label in data.labels:
        first = True
        for m in sorted(data.tokens):
            key = (label, m) + shape
            ours = data.times["ours"].get(key)
            if ours is None:
                continue
            peer, cublas = data.times["peer"].get(key), data.times["cuBLAS"].get(key)
            floor = data.floors[key]
            lines.append("| " + " | ".join(
                [label if first else "", str(m), cell(floor), cell(ours),
                 cell(ours / floor, "{:.2f}"), cell(peer),
                 cell(peer and ours / peer, "{:.2f}"), cell(cublas),
                 cell(cublas and ours / cublas, "{:.2f}")]) + " |")
            first = False
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", nargs="+", help="our measurements, JSON lines")
    parser.add_argument("--others", nargs="*", default=[], help="figures of others")
    parser.add_argument("--shape", help="NxK (default: the largest there is)")
    parser.add_argument("--table", action="store_true", help="print a table instead")
    parser.add_argument("-o", default="docs/performance.svg", help="the SVG file")
    options = parser.parse_args()
    data = Data([row for path in options.times for row in read_rows(path)],
                [row for path in options.others for row in read_rows(path)])
    if not data.shapes:
        sys.exit("plot_performance: expected measurements with rot_us, got none")
    shape = data.shapes[0]
    if options.shape:
        shape = tuple(int(part) for part in options.shape.split("x"))
    if shape not in data.shapes:
        sys.exit(f"plot_performance: expected a shape of {data.shapes}, got {shape}")
    if options.table:
        sys.stdout.write(table(data, shape))
        return
    with open(options.o, "w") as file:
        file.write(draw(data, shape))
    print(f"plot_performance: wrote {options.o}")


if __name__ == "__main__":
    main()
