#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets of the preset `asan` with libFuzzer. Each first runs its whole corpus, then
new inputs for the time that it is given. Inputs that reach more code are kept below the build
directory, where the next run goes on from them; an input that fails is printed as well.

    tests/fuzz/run.py --seconds 13           a smoke test, seconds for each target
    tests/fuzz/run.py --hours 4 manifest     by hand, one target
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
TARGETS = sorted(path.name.removesuffix("_fuzz.cc") for path in HERE.glob("*_fuzz.cc"))

INPUT_SECONDS = 10   # one input may take this long: a parser that takes longer is stuck
MEMORY_MIB = 2048    # and this much memory, or a single allocation of it
CORPUS_SECONDS = 240  # far more than it takes where no others want the cores
LONGEST_INPUT = 8192
SHOWN_BYTES = 1024
SHOWN_LINES = 60
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    # Debian's has the version in its name, and a sanitizer does not look for that.
    "ASAN_SYMBOLIZER_PATH": shutil.which("llvm-symbolizer-19") or "",
}


@dataclass
class Outcome:
    target: str
    runs: int = 0
    seconds: float = 0.0
    coverage: int = 0
    new_inputs: int = 0
    failure: str = ""


@dataclass(frozen=True)
class Folders:
    """Where a target's files are: `found` and `crashes` lie below the build directory."""

    program: Path
    corpus: Path
    found: Path
    crashes: Path

    @classmethod
    def of(cls, target: str, bin_dir: Path) -> Folders:
        folders = cls(bin_dir / f"{target}_libfuzzer", HERE / "corpus" / target,
                      bin_dir.parent / "fuzz-found" / target,
                      bin_dir.parent / "fuzz-crashes" / target)
        folders.found.mkdir(parents=True, exist_ok=True)
        folders.crashes.mkdir(parents=True, exist_ok=True)
        return folders


def run_program(folders: Folders, options: list[str], corpora: list[Path],
                seconds: float) -> tuple[int, str]:
    """Exit code and output; 124 when it has not ended in time, which is a fault as well."""
    command = [str(folders.program), f"-artifact_prefix={folders.crashes}/",
               f"-timeout={INPUT_SECONDS}", f"-rss_limit_mb={MEMORY_MIB}",
               f"-max_len={LONGEST_INPUT}", "-print_final_stats=1", *options, *map(str, corpora)]
    try:
        done = subprocess.run(command, cwd=REPOSITORY, env={**os.environ, **SANITIZER_OPTIONS},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as late:
        return 124, (late.stdout or b"").decode(errors="replace")
    return done.returncode, done.stdout.decode(errors="replace")


def last_number(pattern: str, output: str) -> int:
    found = re.findall(pattern, output)
    return int(found[-1]) if found else 0


def describe_failure(folders: Folders, doing: str, code: int, output: str) -> str:
    """What a person needs to go on: the end of the output, how it ended, the input, how to run it
    again."""
    lines = output.rstrip().splitlines()[-SHOWN_LINES:]
    # A signal that libFuzzer does not catch says nothing itself.
    ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    lines.append(f"{doing} ended with {ended}")
    saved = re.findall(r"Test unit written to (\S+)", output)
    if saved and Path(saved[-1]).exists():
        data = Path(saved[-1]).read_bytes()
        more = f" and {len(data) - SHOWN_BYTES} more" if len(data) > SHOWN_BYTES else ""
        lines += [f"the input, {len(data)} bytes: {data[:SHOWN_BYTES].hex()}{more}",
                  f"again: {folders.program} {saved[-1]}"]
    return "\n".join(lines)


def fuzz(target: str, bin_dir: Path, seconds: float) -> Outcome:
    folders, outcome = Folders.of(target, bin_dir), Outcome(target)
    if not folders.program.exists():
        outcome.failure = f"there is no {folders.program}: cmake --build --preset asan"
        return outcome
    before, start = len(list(folders.found.iterdir())), time.monotonic()
    code, output = run_program(folders, ["-runs=0"], [folders.corpus], CORPUS_SECONDS)
    if code:
        outcome.failure = describe_failure(folders, "the corpus", code, output)
        return outcome
    code, output = run_program(folders, [f"-max_total_time={max(1, round(seconds))}"],
                               [folders.found, folders.corpus], seconds + CORPUS_SECONDS)
    outcome.seconds = time.monotonic() - start
    outcome.runs = last_number(r"stat::number_of_executed_units:\s*(\d+)", output)
    outcome.coverage = last_number(r"\bcov: (\d+)", output)
    outcome.new_inputs = len(list(folders.found.iterdir())) - before
    if code:
        outcome.failure = describe_failure(folders, "fuzzing", code, output)
    elif outcome.runs == 0:
        outcome.failure = "no input was run"
    return outcome


def print_outcome(outcome: Outcome) -> None:
    rate = outcome.runs / outcome.seconds if outcome.seconds else 0
    print(f"{outcome.target:14} {'FAILED' if outcome.failure else 'ok':7} {outcome.runs:10} runs "
          f"{rate:8.0f} a second  coverage {outcome.coverage:6}  {outcome.new_inputs:5} new inputs",
          flush=True)
    if outcome.failure:
        print(f"--- {outcome.target}\n{outcome.failure}\n", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--bin-dir", type=Path, default=REPOSITORY / "build" / "asan" / "bin")
    duration = parser.add_mutually_exclusive_group()
    duration.add_argument("--seconds", type=float, default=13, help="for each target (default 13)")
    duration.add_argument("--hours", type=float, help="for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at once (default 1)")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.targets) - set(TARGETS))
    if unknown:
        parser.error(f"no such target: {', '.join(unknown)}")
    arguments.bin_dir = arguments.bin_dir.resolve()
    return arguments


def main() -> int:
    arguments = parse_arguments()
    seconds = arguments.hours * 3600 if arguments.hours else arguments.seconds
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = [pool.submit(fuzz, target, arguments.bin_dir, seconds)
                   for target in arguments.targets or TARGETS]
        outcomes = []
        for done in concurrent.futures.as_completed(running):
            outcomes.append(done.result())
            print_outcome(outcomes[-1])
    failed = sum(bool(outcome.failure) for outcome in outcomes)
    print(f"{len(outcomes)} targets, {sum(outcome.runs for outcome in outcomes)} runs, "
          f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
