#!/usr/bin/env python3
"""Times of many formats on a GPU, and the covering set of all formats checked there.

  scripts/measure_formats.py make FOLDER  where the compiler is: kernels into FOLDER
  scripts/measure_formats.py run FOLDER   where the GPU is: checks, then times; needs
                                          humming-run and humming-bench, for which a
                                          static build without MLIR will do

`make` compiles each format of the table below for each batch size (FOLDER/time/m16/
w4a16-g128.json, .cubin), and for each batch size of the checks a covering set of all
legal formats (every pair of attributes; FOLDER/check/m17/...). What a chip or this
version cannot run is listed with the reason in FOLDER/skipped.txt.

`run` writes FOLDER/checks.json and FOLDER/times.json (a line a run) and prints a
table. It ends with status 1 if a result was wrong or a kernel could not be run.
scripts/plot_performance.py draws times.json beside the figures of others.
"""
import argparse
import concurrent.futures as futures
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

# Label and flags of humming-compile. Weight scales are those of the checkpoints.
FORMATS = {
    "w4a16-g128": "--a bf16 --w u4 --scale bf16 --group 128",
    "w4a16-g128-zp": "--a bf16 --w u4 --scale bf16 --group 128 --zero-point int",
    "w4a16-g128-f16": "--a f16 --w u4 --scale f16 --group 128 --c f16",
    "w4a16-g128-zp-f16":
        "--a f16 --w u4 --scale f16 --group 128 --c f16 --zero-point int",
    "w8a16-channel": "--a bf16 --w u8 --scale bf16 --group 0",
    "w8a16-g128": "--a bf16 --w u8 --scale bf16 --group 128",
    "fp8a16-channel": "--a bf16 --w e4m3 --scale bf16 --group 0",
    "fp8a16-128x128": "--a bf16 --w e4m3 --scale f32 --group 128x128",
    "mxfp4a16": "--a bf16 --w e2m1 --scale e8m0 --group 32",
    "mxfp4a16-f16": "--a f16 --w e2m1 --scale e8m0 --group 32 --c f16",
    "nvfp4a16": "--a bf16 --w e2m1 --scale e4m3 --group 16 --global tensor",
    "nvfp4a16-f16":
        "--a f16 --w e2m1 --scale e4m3 --group 16 --global tensor --c f16",
    "nf4a16-g64": "--a bf16 --w u4 --table nf4 --scale bf16 --group 64",
    "w2a16-g128": "--a bf16 --w u2 --scale bf16 --group 128",
    "w3a16-g128": "--a bf16 --w u3 --scale bf16 --group 128",
    "w5a16-g128": "--a bf16 --w u5 --scale bf16 --group 128",
    "w6a16-g128": "--a bf16 --w u6 --scale bf16 --group 128",
    "fp6a16-g128": "--a bf16 --w e3m2 --scale bf16 --group 128",
    "w8a8-int8-channel": "--a s8 --w s8 --scale f32 --group 0",
    "w8a8-fp8-channel": "--a e4m3 --w e4m3 --scale f32 --group 0",
    "w8a8-fp8-128x128": "--a e4m3 --w e4m3 --scale f32 --group 128x128",
    "w8a8-fp8-128x128-a128":
        "--a e4m3 --w e4m3 --scale f32 --group 128x128 --a-group 128",
    "w8a8-fp8-g128-a128": "--a e4m3 --w e4m3 --scale f32 --group 128 --a-group 128",
    "w4a8-fp8-g128": "--a e4m3 --w u4 --scale bf16 --group 128",
    "w4a8-int8-g128": "--a s8 --w u4 --scale bf16 --group 128",
    "mxfp4a8-fp8": "--a e4m3 --w e2m1 --scale e8m0 --group 32",
}
SHAPE = "8192x8192"
CHECK_SHAPE = "1024x1024"


def lines_of(text):
    """The JSON objects of a program's output."""
    rows = []
    for line in text.splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            pass
    return rows


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def compile_one(options, label, flags):
    """Compiles one format for all batch sizes; returns the reason if it cannot."""
    command = [f"{options.bin}/humming-compile", "--chip", options.chip,
               "--emit", options.emit, "--shape", options.shape, "--m", options.tokens,
               "--artifacts", str(options.folder / "time"), "--name", label]
    done = subprocess.run(command + flags.split(), capture_output=True, text=True)
    return label, last_line(done.stderr) if done.returncode else None


def make(options):
    for part in ("time", "check"):
        shutil.rmtree(options.folder / part, ignore_errors=True)
    options.folder.mkdir(parents=True, exist_ok=True)
    skipped = []
    wanted = {label: flags for label, flags in FORMATS.items()
              if not options.formats or label in options.formats.split(",")}
    with futures.ThreadPoolExecutor(options.jobs) as pool:
        checks = None
        if "checks" in options.steps:
            checks = pool.submit(
                subprocess.run,
                [f"{options.bin}/humming-compile", "--chip", options.chip,
                 "--emit", options.emit, "--shape", options.check_shape,
                 "--m", options.check_tokens, "--cover",
                 "--artifacts", str(options.folder / "check")],
                capture_output=True, text=True)
        if "times" in options.steps:
            for label, reason in pool.map(
                    lambda item: compile_one(options, *item), wanted.items()):
                if reason:
                    skipped.append(f"{label}: {reason}")
        if checks and checks.result().returncode:
            skipped += ["covering set: " + line
                        for line in checks.result().stderr.splitlines()]
    (options.folder / "skipped.txt").write_text("".join(s + "\n" for s in skipped))
    size = sum(f.stat().st_size for f in options.folder.rglob("*") if f.is_file())
    counts = {part: len(list((options.folder / part).rglob("*.json")))
              for part in ("time", "check")}
    print(f"{counts['time']} kernels to time, {counts['check']} to check, "
          f"{size / 1e6:.1f} MB")
    for line in skipped:
        print("skipped", line)


def run_each(command, source, names, links, timeout):
    """Runs a program once on all kernels `names` of the folder `source`, and again on
    the rest where one kernel ended or hung it. `links` is a folder to link them in.
    Returns the rows, one a kernel."""
    rows = []
    while names:
        shutil.rmtree(links, ignore_errors=True)
        links.mkdir(parents=True)
        for name in names:
            for file in source.glob(name + ".*"):
                os.link(file, links / file.name)
        try:
            done = subprocess.run(command + ["--artifacts", str(links)],
                                  capture_output=True, text=True, timeout=timeout)
            output, reason = done.stdout, last_line(done.stderr)
        except subprocess.TimeoutExpired as late:
            output = (late.stdout or b"").decode()
            reason = f"no end after {timeout} s"
        got = lines_of(output)
        # A fault of the GPU takes its context along: later rows are not to blame.
        for i, row in enumerate(got):
            if "error" in row:
                got = got[:i + 1]
                break
        rows += got
        seen = {row["artifact"] for row in got}
        names = [name for name in names if name not in seen]
        if names and (not got or reason.startswith("no end")):
            rows.append({"artifact": names[0], "ok": False, "error": reason})
            names = names[1:]
    shutil.rmtree(links, ignore_errors=True)
    return rows


def check(options):
    begin = time.time()
    work = []
    for m in options.check_tokens.split(","):
        folder = options.folder / "check" / f"m{m}"
        names = sorted(f.stem for f in folder.glob("*.json"))
        for i in range(options.jobs):
            if names[i::options.jobs]:
                work.append((int(m), names[i::options.jobs]))
    with futures.ThreadPoolExecutor(options.jobs) as pool:
        parts = pool.map(
            lambda item: run_each(
                [f"{options.bin}/humming-run", "--on", options.on,
                 "--m", str(item[1][0]), "--shape", options.check_shape],
                options.folder / "check" / f"m{item[1][0]}", item[1][1],
                options.folder / f"shard-{item[0]}", options.timeout),
            enumerate(work))
        rows = [row for part in parts for row in part]
    with open(options.folder / "checks.json", "w") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
    wrong = [row for row in rows if not row.get("ok")]
    print(f"checks: {len(rows) - len(wrong)} right, {len(wrong)} wrong, "
          f"{time.time() - begin:.0f} s")
    for row in wrong[:20]:
        print(f"  m = {row.get('m')}, {row['artifact']}: "
              f"{row.get('detail', row.get('error', ''))[:160]}")
    return not wrong


def measure(options):
    begin = time.time()
    rows = []
    for m in options.tokens.split(","):
        folder = options.folder / "time" / f"m{m}"
        if not folder.is_dir():
            continue
        for row in run_each(
                [f"{options.bin}/humming-bench", "--m", m, "--shape", options.shape,
                 "--format", "json"],
                folder, sorted(f.stem for f in folder.glob("*.json")),
                options.folder / "shard", options.timeout):
            row["m"] = int(m)
            rows.append(row)
    failures = [f"m = {row['m']}, {row['artifact']}: {row['error']}"
                for row in rows if "error" in row]
    with open(options.folder / "times.json", "w") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
    tokens = sorted({row["m"] for row in rows})
    cells = {(row["artifact"], row["m"]): row for row in rows if "rot_us" in row}
    print(f"times in us, {options.shape}, cold weights ({time.time() - begin:.0f} s)")
    print("| format | " + " | ".join(f"M={m}" for m in tokens) + " |")
    print("|---|" + "--:|" * len(tokens))
    for label in FORMATS:
        if any((label, m) in cells for m in tokens):
            print(f"| {label} | " + " | ".join(
                f"{cells[label, m]['rot_us']:.4g}" if (label, m) in cells else "-"
                for m in tokens) + " |")
    for line in failures:
        print("failed:", line)
    return not failures


def main():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["make", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bin", default=os.environ.get("BIN", str(root / "build/bin")),
                        help="folder of the programs (default: BIN or build/bin)")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--emit", default="cubin", choices=["cubin", "ptx"],
                        help="what to carry; ptx needs no assembler")
    parser.add_argument("--formats", default="", help="labels, separated by commas")
    parser.add_argument("--steps", default="checks,times", help="checks, times or both")
    parser.add_argument("--tokens", default="1,16,64,256,1024,8192")
    parser.add_argument("--check-tokens", default="1,17,128")
    parser.add_argument("--shape", default=SHAPE)
    parser.add_argument("--check-shape", default=CHECK_SHAPE)
    parser.add_argument("--on", default="cuda", choices=["cuda", "emulator"],
                        help="where the checks run")
    parser.add_argument("--timeout", type=int, default=240,
                        help="seconds that one process may take")
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1),
                        help="processes at a time (default: cores, at most 8)")
    options = parser.parse_args()
    if options.mode == "make":
        make(options)
        return 0
    ok = True
    if "checks" in options.steps:
        ok &= check(options)
    if "times" in options.steps:
        ok &= measure(options)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
