#!/usr/bin/env python3
"""Compiles a set of problems for every chip by humming-compile; one line a kernel.

    compile_chips.py [--assemble] [--execute] [--chip sm_80]...

A line tells what FileCheck then compares:

    sm_80 bf16 group=128 zero-point=int m=16: version 7.0, target sm_80, block 128,
    mma m16n8k16, cp.async 16, local 0

`local` counts accesses to local memory and stack slots in the PTX; with --assemble
the kernel is assembled too, and what the assembler says of spills follows; with
--execute it runs on the emulator, for few tokens and a small shape.
"""

import argparse
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "Inputs"))
import compile_and_execute

CHIPS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90"]
# (activations, group, zero points, M, bias)
PROBLEMS = [
    ("f16", 128, "none", 1, False),
    ("f16", 0, "float", 64, True),
    ("f16", 32, "int", 16, False),
    ("bf16", 128, "int", 16, True),
    ("bf16", 128, "none", 512, False),
]


def run(arguments):
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit("%s\n%s" % (" ".join(arguments), done.stderr.decode()))
    return done.stdout, done.stderr.decode()


def find(pattern, text):
    return sorted(set(re.findall(pattern, text, flags=re.M))) or ["none"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--assemble", action="store_true")
    parser.add_argument("--execute", action="store_true")
    parser.add_argument("--chip", action="append", choices=CHIPS + ["sm_90a"])
    args = parser.parse_args()

    for chip in args.chip or CHIPS:
        for activation, group, zero_point, m, bias in PROBLEMS:
            if chip == "sm_75" and activation == "bf16":
                continue  # has no bf16 MMA (rule P3)
            command = ["humming-compile", "--no-cache", "--chip", chip]
            command += ["-a", activation, "-c", activation, "--scale", activation]
            command += ["--group", str(group), "--zero-point", zero_point]
            command += ["-m", str(m), "-n", "4096", "-k", "4096"]
            command += ["--bias"] if bias else []
            ptx = run(command)[0].decode()
            copies = find(r"cp\.async\.c[ag]\.shared\.global .*?, (\d+),", ptx)
            facts = [
                "version " + "/".join(find(r"^\.version (\S+)", ptx)),
                "target " + "/".join(find(r"^\.target (\S+)", ptx)),
                "block " + "/".join(find(r"^\.reqntid (\d+)", ptx)),
                "mma " + "/".join(find(r"mma\.sync\.aligned\.(m\d+n\d+k\d+)", ptx)),
                "cp.async " + "/".join(copies),
                "local %d" % len(re.findall(r"\.local\b|__local_depot|\bcall\b", ptx)),
            ]
            if args.assemble:
                log = run(command + ["--emit", "cubin", "--time", "-o", "-"])[1]
                spills = re.findall(
                    r"(\d+) bytes stack frame, (\d+) bytes spill stores, "
                    r"(\d+) bytes spill loads",
                    log,
                )
                facts.append("spills " + "/".join("+".join(s) for s in spills))
            if args.execute:
                compile_and_execute.execute(command[1:])
            print(
                "%s %s group=%d zero-point=%s m=%d: %s"
                % (chip, activation, group, zero_point, m, ", ".join(facts)),
                flush=True,
            )


if __name__ == "__main__":
    main()
