#!/usr/bin/env python3
"""Reads IR from standard input; prints each function's line and how many
instructions of the dequantization it has: what a register costs."""

import re
import sys

NAMES = {
    "and": "llvm.and",
    "or": "llvm.or",
    "lshr": "llvm.lshr",
    "fadd": "llvm.fadd",
    "fma": "llvm.intr.fma",
    "fmul": "llvm.fmul",
    "prmt": "nvvm.prmt",
}

for function in re.split(r"(?=func\.func )", sys.stdin.read())[1:]:
    print(function.split("(")[0].replace("func.func", "func"))
    ops = re.findall(r" = ([a-z]+[\w.]*)", function)
    print(", ".join("%s %d" % (name, ops.count(op)) for name, op in NAMES.items()))
