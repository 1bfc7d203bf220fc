#!/usr/bin/env python3
"""Writes test/Transforms/config-sm*.mlir: the config chosen for a few layers.

    update_config_tests.py --opt build/bin/humming-opt [--folder test/Transforms]

The tests pin what the chooser answers on every chip. After a deliberate change
of the target table, the rules or the cost model, run this and review the
difference.
"""

import argparse
import os
import re
import subprocess

# name, comment, M, N, K, granularity, zero points, bias
LAYERS = [
    ("decode", "One token.", 1, 4096, 4096, "group = 128", None, False),
    ("small_batch", "Sixteen tokens, the usual guess.", 16, 8192, 8192,
     "group = 128", None, False),
    ("prefill", "Many tokens: compute bound.", 1024, 8192, 8192, "group = 128", None,
     False),
    ("unknown", "M is not known: a small batch is assumed.", None, 4096, 14336,
     "group = 64", "float", False),
    ("small_layer", "Less work than the card has SMs.", 33, 384, 1536, "group = 32",
     "int", True),
    ("odd", "Nothing divides the sizes.", 7, 1001, 1051, "channel", None, False),
]
CHIPS = {"sm_75": "f16", "sm_80": "bf16", "sm_86": "bf16", "sm_89": "bf16",
         "sm_90": "bf16"}

HEAD = """\
// RUN: humming-opt %s --hquant-select-lowering-config=chip={chip} | FileCheck %s

// What is chosen on {chip}, on a machine without one. Written by
// scripts/update_config_tests.py.
"""


def layer(name, comment, m, n, k, granularity, zero_points, bias, float_type):
    columns = {"channel": 1}.get(granularity)
    if columns is None:
        group = int(granularity.split("=")[1])
        columns = -(-k // group)
    m = "?" if m is None else m
    arguments = [f"%x: tensor<{m}x{k}x{float_type}>", f"%w: tensor<{n}x{k}xi4>",
                 f"%s: tensor<{n}x{columns}x{float_type}>"]
    operands = f"scales(%s : tensor<{n}x{columns}x{float_type}>)"
    quant_type = f"u4, scale = {float_type}, {granularity}"
    if zero_points:
        kind = {"int": "i4", "float": float_type}[zero_points]
        arguments.append(f"%z: tensor<{n}x{columns}x{kind}>")
        operands += f" zero_points(%z : tensor<{n}x{columns}x{kind}>)"
        quant_type += f", zero_point = {zero_points}"
    if bias:
        arguments.append(f"%b: tensor<{n}x{float_type}>")
        operands += f" bias(%b : tensor<{n}x{float_type}>)"
    result = f"tensor<{m}x{n}x{float_type}>"
    return f"""\
// {comment}
// CHECK-LABEL: func @{name}
// CHECK: lowering_config = <@CONFIG@>
func.func @{name}({", ".join(arguments)}) -> {result} {{
  %c = hquant.matmul %x, %w {operands}
         quant_type = <{quant_type}>
         : tensor<{m}x{k}x{float_type}>, tensor<{n}x{k}xi4> -> {result}
  return %c : {result}
}}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--opt", required=True, help="humming-opt")
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--folder",
                        default=os.path.join(here, "..", "test", "Transforms"))
    args = parser.parse_args()

    for chip, float_type in CHIPS.items():
        text = "\n".join([HEAD.format(chip=chip)] +
                         [layer(*spec, float_type) for spec in LAYERS])
        output = subprocess.run(
            [args.opt, f"--hquant-select-lowering-config=chip={chip}"], input=text,
            check=True, capture_output=True, text=True).stdout
        configs = re.findall(r"lowering_config = <([^>]*)>", output)
        assert len(configs) == len(LAYERS), "expected a config for every layer"
        for config in configs:
            text = text.replace("@CONFIG@", config, 1)
        with open(os.path.join(args.folder, f"config-{chip.replace('_', '')}.mlir"),
                  "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
