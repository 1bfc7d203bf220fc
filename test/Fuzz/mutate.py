#!/usr/bin/env python3
"""Runs a tool's passes over mutated IR: whatever the input, no crash.

    mutate.py --opt humming-opt --out FOLDER [--cases 3000] [--seed N] INPUT...

Each INPUT (.mlir file or folder of such) is cut at its `// -----` lines; a case
is one piece with one to four mutations: another number, an attribute or a type
from elsewhere, a token or line deleted, doubled or swapped. Most cases must be
refused with an error message; that is what is tested. The cases of a batch go
through one pass in one process (--split-input-file). If it dies by a signal or
does not end, the batch is halved until one case is left, which is written to
FOLDER with the command that shows the crash.

A batch goes through the parser, the verifier and the printer alone first. A
case that kills these without a frame of Humming on the stack has hit a bug of
MLIR's own dialects; it is counted, and left out. What the verifier accepts
then goes through each pass, where every death counts.

The cases depend on the seed, their number and the inputs alone: what passes on
one machine passes on the next, however fast it is.
"""

import argparse
import os
import random
import re
import resource
import shlex
import subprocess
import sys
import time

TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"'  # string
    r"|[%@#!^][\w.$-]+"  # value, symbol, attribute, type, block
    r"|-?\d+\.\d+(?:e[+-]?\d+)?"  # float
    r"|0x[0-9a-fA-F]+"
    r"|-?\d+"
    r"|[A-Za-z_][\w.$]*"
    r"|->|::|\s+|."
)
NUMBERS = [
    "0", "1", "2", "3", "7", "8", "15", "16", "31", "32", "33", "63", "64",
    "65", "127", "128", "1000", "-1", "-2", "4096", "65536", "2147483647",
    "2147483648", "4294967296", "-2147483648", "9223372036854775807",
]
TYPES = [
    "i1", "i4", "i8", "i32", "i64", "f16", "bf16", "f32", "f64", "index",
    "f8E4M3FN", "f4E2M1FN", "none", "tensor<*xf16>", "tensor<f16>",
    "tensor<?x?xf16>", "tensor<0x0xf16>", "tensor<4x4xi8>", "vector<4xi32>",
    "memref<?xi8>", "memref<16x64xi8, 3>", "() -> ()", "complex<f32>",
]  # fmt: skip
# Passes that do nothing without an option, or not on a module.
VARIANTS = {
    "hquant-verify-stage": ["%s{stage=1}", "%s{stage=2}", "%s{stage=3}", "%s{stage=4}"],
    "hquant-select-lowering-config": ["%s{chip=sm_75}", "%s{chip=sm_80}", "%s"],
    "humming-configure": ["%s{chip=sm_75}", "%s{chip=sm_90}"],
    "humming-compile": ["%s{chip=sm_75}", "%s{chip=sm_80}", "%s{chip=sm_90}"],
    "hquant-pipeline-copies": ["gpu.module(gpu.func(%s))"],
    "hquant-specialize-warps": ["gpu.module(gpu.func(%s))"],
    "hquant-check-resources": ["gpu.module(%s)"],
    "convert-hquant-to-nvvm": ["gpu.module(%s)"],
}
SEPARATOR = "\n// -----\n"
PASS_PREFIXES = ("hquant-", "humming-", "convert-hquant", "convert-linalg-to-hquant")
MEMORY_LIMIT = 8 << 30


def read_pieces(inputs):
    """The pieces of all inputs without comments, shortest first."""
    files = []
    for path in inputs:
        if os.path.isdir(path):
            for folder, _, names in sorted(os.walk(path)):
                files += [
                    os.path.join(folder, n) for n in sorted(names) if n.endswith(".mlir")
                ]
        else:
            files.append(path)
    pieces = set()
    for file in files:
        with open(file, encoding="utf-8") as handle:
            text = handle.read()
        for piece in re.split(r"^// -----.*$", text, flags=re.M):
            piece = re.sub(r"^\s*//.*\n?", "", piece, flags=re.M)
            piece = re.sub(r"\s//[^\"\n]*$", "", piece, flags=re.M).strip()
            # The large ones are slow and say little that small ones do not.
            if piece and len(piece) < 20000:
                pieces.add(piece)
    return sorted(pieces, key=lambda p: (len(p), p))


class Mutator:
    def __init__(self, pieces, rng):
        self.rng = rng
        self.pieces = pieces
        self.valid = pieces
        text = "\n".join(pieces)
        # `name = value` pairs and attributes with parameters, to swap around.
        self.values = {}
        for key, value in re.findall(r"(\w+) = ([^\s,{}<>]+(?:<[^<>]*>)?)", text):
            self.values.setdefault(key, set()).add(value)
        self.values = {k: sorted(v) for k, v in sorted(self.values.items())}
        self.all_values = sorted({v for vs in self.values.values() for v in vs})
        self.attributes = sorted(set(re.findall(r"#\w[\w.]*(?:<[^<>]*>)?", text)))
        self.types = sorted(
            set(re.findall(r"(?:tensor|memref|vector|!\w[\w.]*)<[^<>]*>", text))
            | set(TYPES)
        )
        self.tokens = sorted(set(TOKEN.findall(text)))
        self.kinds = (
            [self.number] * 8
            + [self.value] * 5
            + [self.attribute] * 3
            + [self.type] * 5
            + [self.delete_token] * 2
            + [self.double_token, self.swap_tokens]
            + [self.other_token] * 2
            + [self.delete_line, self.double_line, self.swap_lines] * 2
        )

    def case(self):
        valid = self.rng.random() < 0.8
        text = self.rng.choice(self.valid if valid else self.pieces)
        for _ in range(self.rng.choice([1, 1, 1, 2, 2, 3, 4])):
            text = self.rng.choice(self.kinds)(text)
        return text

    def replace(self, text, pattern, make):
        """Replaces one match of `pattern`, chosen at random."""
        matches = list(re.finditer(pattern, text))
        if not matches:
            return text
        match = self.rng.choice(matches)
        return text[: match.start()] + make(match) + text[match.end() :]

    def number(self, text):
        def other(match):
            old = int(match.group())
            near = [str(old + 1), str(old - 1), str(old * 2), str(old // 2)]
            return self.rng.choice(NUMBERS + near * 3)

        return self.replace(text, r"(?<![\w%@.#])-?\d+(?=x|\b)(?!\.)", other)

    def value(self, text):
        def other(match):
            same_key = self.values.get(match.group(1), self.all_values)
            pool = same_key if self.rng.random() < 0.6 else self.all_values
            return "%s = %s" % (match.group(1), self.rng.choice(pool))

        return self.replace(text, r"(\w+) = [^\s,{}<>]+(?:<[^<>]*>)?", other)

    def attribute(self, text):
        return self.replace(
            text,
            r"#\w[\w.]*(?:<[^<>]*>)?",
            lambda _: self.rng.choice(self.attributes),
        )

    def type(self, text):
        return self.replace(
            text,
            r"(?:tensor|memref|vector|!\w[\w.]*)<[^<>]*>|\b(?:[isu]+\d+|b?f\d+|index)\b",
            lambda _: self.rng.choice(self.types),
        )

    def edit_tokens(self, text, edit):
        tokens = TOKEN.findall(text)
        where = [i for i, t in enumerate(tokens) if not t.isspace()]
        if len(where) > 1:
            edit(tokens, where)
        return "".join(tokens)

    def delete_token(self, text):
        def edit(tokens, where):
            del tokens[self.rng.choice(where)]

        return self.edit_tokens(text, edit)

    def double_token(self, text):
        def edit(tokens, where):
            i = self.rng.choice(where)
            tokens.insert(i, tokens[i] + " ")

        return self.edit_tokens(text, edit)

    def swap_tokens(self, text):
        def edit(tokens, where):
            i, j = self.rng.sample(where, 2)
            tokens[i], tokens[j] = tokens[j], tokens[i]

        return self.edit_tokens(text, edit)

    def other_token(self, text):
        def edit(tokens, where):
            tokens[self.rng.choice(where)] = self.rng.choice(self.tokens)

        return self.edit_tokens(text, edit)

    def edit_lines(self, text, edit):
        lines = text.split("\n")
        edit(lines)
        return "\n".join(lines)

    def delete_line(self, text):
        def edit(lines):
            del lines[self.rng.randrange(len(lines))]

        return self.edit_lines(text, edit)

    def double_line(self, text):
        def edit(lines):
            i = self.rng.randrange(len(lines))
            lines.insert(i, lines[i])

        return self.edit_lines(text, edit)

    def swap_lines(self, text):
        def edit(lines):
            i, j = self.rng.randrange(len(lines)), self.rng.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]

        return self.edit_lines(text, edit)


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Tool:
    def __init__(self, path, timeout):
        self.path = path
        self.timeout = timeout
        self.starts = 0

    def pipelines(self, only):
        """Humming's own passes and pipelines that the help lists."""
        text = subprocess.run(
            [self.path, "--help"], stdout=subprocess.PIPE, check=True, text=True
        ).stdout
        names = re.findall(r"^ +--([\w-]+)", text, flags=re.M)
        result = []
        for name in sorted({n for n in names if n.startswith(PASS_PREFIXES)}):
            if only in name:
                for variant in VARIANTS.get(name, ["%s"]):
                    pipeline = "builtin.module(%s)" % (variant % name)
                    result.append(["--pass-pipeline=" + pipeline])
        return result

    def command(self, arguments):
        return [self.path, "--split-input-file"] + arguments

    def died(self, arguments, cases):
        """Says how the process died (or None), and what it wrote."""
        self.starts += 1
        try:
            done = subprocess.run(
                self.command(arguments),
                input=SEPARATOR.join(cases).encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=self.timeout,
                preexec_fn=limit_memory,
            )
        except subprocess.TimeoutExpired:
            return "did not end within %d s" % self.timeout, ""
        if done.returncode < 0 or done.returncode >= 128:
            return "died by signal %d" % (
                -done.returncode if done.returncode < 0 else done.returncode - 128
            ), done.stderr.decode(errors="replace")
        return None, done.stderr.decode(errors="replace")

    def reduce(self, arguments, cases):
        """One case of `cases` that kills the process alone, if there is one."""
        while len(cases) > 1:
            half = len(cases) // 2
            for part in (cases[:half], cases[half:]):
                if self.died(arguments, part)[0]:
                    cases = part
                    break
            else:
                return cases
        return cases

    def without_mlir_bugs(self, cases):
        """Leaves out the cases that kill MLIR's own parser or verifier; gives
        the rest and how many these were. Stops at a death of Humming's."""
        dropped = 0
        while cases:
            if not self.died([], cases)[0]:
                break
            alone = self.reduce([], cases)
            if "humming::" in self.died([], alone)[1]:
                break
            cases = [case for case in cases if case not in alone]
            dropped += len(alone)
        return cases, dropped

    def accepted(self, cases):
        """The cases without an error from the parser or the verifier."""
        _, message = self.died([], cases)
        errors = sorted(map(int, re.findall(r"^<stdin>:(\d+):\d+: error:", message, re.M)))
        result = []
        line = 1
        for case in cases:
            end = line + case.count("\n") + SEPARATOR.count("\n")
            if not any(line <= error < end for error in errors):
                result.append(case)
            line = end
        return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--opt", required=True, help="the tool, e.g. humming-opt")
    parser.add_argument("--out", required=True, help="folder for crashing cases")
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=200, help="cases per process")
    parser.add_argument("--timeout", type=int, default=60, help="seconds per process")
    parser.add_argument("--only", default="", help="passes whose name contains this")
    parser.add_argument("inputs", nargs="+")
    args = parser.parse_args()

    pieces = read_pieces(args.inputs)
    tool = Tool(args.opt, args.timeout)
    # The empty pipeline is the parser, the verifier and the printer alone.
    pipelines = [[]] + tool.pipelines(args.only)
    if not pieces or len(pipelines) < 2:
        print("mutate: error: no inputs or no passes to run", file=sys.stderr)
        return 2
    os.makedirs(args.out, exist_ok=True)

    mutator = Mutator(pieces, random.Random(args.seed))
    begin = time.monotonic()
    crashes = 0
    cases_run = 0
    accepted = 0
    mlir_bugs = 0
    rounds = 0
    # The inputs themselves first, whole: they must not crash any pass either.
    batches = [pieces]
    while crashes < 20:
        for batch in batches:
            batch, dropped = tool.without_mlir_bugs(batch)
            mlir_bugs += dropped
            good = tool.accepted(batch)
            accepted += len(good)
            if not rounds:
                mutator.valid = good or pieces
            for arguments in pipelines:
                cases = good if arguments else batch
                how, message = tool.died(arguments, cases)
                cases_run += 0 if arguments else len(cases)
                if not how:
                    continue
                cases = tool.reduce(arguments, cases)
                how_alone, message_alone = tool.died(arguments, cases)
                # A case that kills the parser would kill it before each pass.
                if not arguments:
                    good = [case for case in good if case not in cases]
                crashes += 1
                name = "crash-%d.mlir" % crashes
                path = os.path.join(args.out, name)
                with open(path, "w", encoding="utf-8") as handle:
                    handle.write(SEPARATOR.join(cases) + "\n")
                print(
                    "humming-opt %s\nshow it with: %s\n%s\n"
                    % (
                        how_alone or how,
                        shlex.join(tool.command(arguments) + [path]),
                        "\n".join((message_alone or message).split("\n")[:24]),
                    )
                )
        rounds += 1
        if cases_run >= args.cases:
            break
        batches = [[mutator.case() for _ in range(args.batch)]]

    if mlir_bugs:
        print("%d cases left out: they kill MLIR's own parser or verifier" % mlir_bugs)
    print(
        "%d cases, %d accepted by the verifier, through %d pipelines in %d processes, "
        "%.0f s: %d crashes"
        % (
            cases_run,
            accepted,
            len(pipelines) - 1,
            tool.starts,
            time.monotonic() - begin,
            crashes,
        )
    )
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())
