#!/usr/bin/env python3
"""Every test that lowers a kernel to stage 4 or to PTX also executes it.

    every_kernel.py SOURCE

A test lowers if a RUN line that is not expected to fail runs a pipeline up to
nvvm, or the tool humming-compile. It executes by %execute,
%compile_and_execute, --execute, or humming-run --on emulator.
"""

import os
import re
import sys

LOWERS = re.compile(
    r"--humming-compile\b|--humming-lower-to-nvvm\b|convert-hquant-to-nvvm|"
    r"(?<![-\w/])humming-compile (?!--help)|compile_chips\.py"
)
EXECUTES = re.compile(
    r"%execute\b|%compile_and_execute\b|--execute\b|humming-run --on emulator"
)

# Tests that lower and do not execute, and why.
EXCEPTIONS = {
    "Conversion/convert-hquant-layout-to-tiles.mlir": "pack and gather, which "
    "execute-layout.test runs",
    "Pipelines/quantize.mlir": "quantize kernels, which execute-activations.test "
    "runs",
    "Conversion/convert-hquant-to-nvvm.mlir": "parts of kernels, which no problem "
    "describes; whole ones execute in Pipelines",
    "Conversion/convert-token-rows-to-nvvm.mlir": "parts of kernels; whole ones "
    "execute in execute-rows.test",
    "Pipelines/assemble.test": "the kernels of ptx.test, assembled",
}


def run_lines(path):
    """RUN and DEFINE lines, continued ones joined, without those that must fail."""
    text = open(path, errors="replace").read()
    lines = []
    for match in re.finditer(r"^.*?\b(?:RUN|RE?DEFINE|DEFINE):(.*)$", text, re.M):
        line = match.group(1)
        if lines and lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1] + line
        else:
            lines.append(line)
    return [
        line
        for line in lines
        if not line.strip().startswith("not ") and "--verify-diagnostics" not in line
    ]


def main():
    root = os.path.join(sys.argv[1], "test")
    lowering, faults, unused = 0, [], set(EXCEPTIONS)
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in ("Inputs", "data"))
        for name in sorted(files):
            if not name.endswith((".mlir", ".test")):
                continue
            path = os.path.join(folder, name)
            lines = run_lines(path)
            # %compile_and_execute contains the name of the tool.
            if not any(
                LOWERS.search(line) or "%compile_and_execute" in line for line in lines
            ):
                continue
            lowering += 1
            key = os.path.relpath(path, root)
            if key in EXCEPTIONS:
                unused.discard(key)
            elif not any(EXECUTES.search(line) for line in lines):
                faults.append("%s lowers a kernel and does not execute it" % key)
    for key in sorted(unused):
        faults.append("%s is an exception and lowers nothing" % key)
    for fault in faults:
        print(fault)
    print("%d tests lower kernels" % lowering)
    sys.exit(1 if faults or lowering < 8 else 0)


if __name__ == "__main__":
    main()
