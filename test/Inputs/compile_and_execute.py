#!/usr/bin/env python3
"""humming-compile in a test, whose kernel also runs on the emulator.

    compile_and_execute.py ARGUMENTS OF humming-compile     (%compile_and_execute)

Passes the output and the exit status of humming-compile on. If it compiled, the
kernel is executed by humming-run for a few tokens and a small shape that it
admits, and compared with the reference; a wrong result is a failure.
"""

import json
import os
import subprocess
import sys
import tempfile

# Flags of the output, not of the kernel; those of the first set take a value.
WITH_VALUE = {"--emit", "-o", "--artifacts", "--name"}
ALONE = {"--explain", "--time"}


def kernel_arguments(arguments):
    kept, skip = [], False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in WITH_VALUE:
            skip = True
        elif argument.split("=")[0] not in WITH_VALUE and argument not in ALONE:
            kept.append(argument)
    return kept


def size(divisor, about):
    """A small size with tails that the kernel admits."""
    return (about + divisor - 1) // divisor * divisor


def execute(arguments, tokens="1,17"):
    """Compiles for the emulator and runs. Returns the lines of humming-run."""
    arguments = kernel_arguments(arguments)
    with tempfile.TemporaryDirectory() as folder:
        ptx = os.path.join(folder, "kernel.ptx")
        launch = os.path.join(folder, "kernel.json")
        for what, path in (("ptx", ptx), ("launch", launch)):
            subprocess.run(
                ["humming-compile"] + arguments + ["--emit", what, "-o", path],
                check=True,
                stderr=subprocess.DEVNULL,
            )
        with open(launch) as file:
            description = json.load(file)
        shape = "%dx%d" % (
            size(description["n_divisor"], 200),
            size(description["k_divisor"], 320),
        )
        command = ["humming-run", "--on", "emulator", "--ptx", ptx, "--launch", launch]
        command += ["--shape", shape, "--m", tokens]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = done.stdout.decode()
        if done.returncode != 0:
            sys.exit("executing %s:\n%s" % (" ".join(arguments), text))
        return text


def main():
    done = subprocess.run(["humming-compile"] + sys.argv[1:])
    if done.returncode != 0:
        sys.exit(done.returncode)
    execute(sys.argv[1:])


if __name__ == "__main__":
    main()
