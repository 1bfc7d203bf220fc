#!/usr/bin/env python3
"""Reads IR from standard input; prints each function's line and how many
instructions of the dequantization it has: what a register costs."""

import re
import sys

KINDS = {
    "mask": ["llvm.and"],
    "merge": ["llvm.or", "llvm.xor"],
    "shift": ["llvm.lshr"],
    "add or fma": ["llvm.fadd", "llvm.intr.fma"],
    "multiply": ["llvm.fmul"],
    "prmt": ["nvvm.prmt"],
}

for function in re.split(r"(?=func\.func )", sys.stdin.read())[1:]:
    print(function.split("(")[0].replace("func.func", "func"))
    ops = re.findall(r" = ([a-z]+[\w.]*)", function)
    print(
        ", ".join(
            "%s %d" % (kind, sum(ops.count(name) for name in names))
            for kind, names in KINDS.items()
        )
    )
