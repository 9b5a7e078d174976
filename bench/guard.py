#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the micro-benchmarks of two revisions on this machine, in one run, as ratios.

    bench/guard.py [REV_A] [REV_B]      the commit before HEAD, and the working tree (".")
    bench/guard.py --bin-dirs DIR DIR   programs that are built already

Builds both in clones of their own and runs them in turn, A B B A. A ratio above 1 says that B takes
longer. What is over the limit that the noise of this very run supports (guardkit/verdict.py) is
measured once more; what then is over it again, by the new times alone, is a regression.

Exit codes: 0 nothing became slower, 1 something did, 2 it could not be measured.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Sequence

from guardkit.builds import WORKING_TREE, Build, build_both
from guardkit.samples import Name, Samples, measure, names_of
from guardkit.verdict import FASTER, SLOWER, Comparison, compare_all, run_noise
from experiments.results import machine, print_table
from labkit.process import LabError, interruptible

REPOSITORY = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Report:
    comparisons: list[Comparison]
    confirmations: dict[Name, Comparison]  # of those that looked slower
    run_noise: float                       # as a ratio
    only_a: list[str]
    only_b: list[str]

    def regressions(self) -> list[Comparison]:
        return [each for each in self.comparisons
                if each.name in self.confirmations
                and self.confirmations[each.name].verdict == SLOWER]


def benchmarks(build: Build, name_filter: str) -> dict[str, list[str]]:
    found = {name: names_of(path, name_filter) for name, path in build.programs().items()}
    return {program: names for program, names in found.items() if names}


def missing_in(other: dict[str, list[str]], these: dict[str, list[str]]) -> list[str]:
    return [f"{program} {name}" for program, names in these.items() for name in names
            if name not in other.get(program, [])]


def by_program(names: Sequence[Name]) -> dict[str, list[str]]:
    programs: dict[str, list[str]] = {}
    for program, name in names:
        programs.setdefault(program, []).append(name)
    return programs


def compare_builds(a: Build, b: Build, arguments: argparse.Namespace) -> Report:
    of_a, of_b = benchmarks(a, arguments.filter), benchmarks(b, arguments.filter)
    common = {program: [name for name in names if name in of_b.get(program, [])]
              for program, names in of_a.items()}
    common = {program: names for program, names in common.items() if names}

    def run(wanted: dict[str, list[str]]) -> Samples:
        return measure(a.programs(), b.programs(), wanted, rounds=arguments.rounds,
                       min_seconds=arguments.min_time)

    samples = run(common)
    noise = run_noise(samples)
    comparisons = compare_all(samples, arguments.threshold, noise)
    suspects = [each.name for each in comparisons if each.verdict == SLOWER]
    confirmations = {}
    if suspects:
        print(f"{len(suspects)} look slower: measured once more", flush=True)
        again = compare_all(run(by_program(suspects)), arguments.threshold, noise)
        confirmations = {each.name: each for each in again}
    return Report(comparisons, confirmations, math.exp(noise), missing_in(of_b, of_a),
                  missing_in(of_a, of_b))


def verdict_text(report: Report, comparison: Comparison) -> str:
    again = report.confirmations.get(comparison.name)
    if again is None:
        return comparison.verdict
    word = "SLOWER" if again.verdict == SLOWER else "noise"
    return f"{word}: {again.quiet_ratio:.3f} when measured again"


def print_report(report: Report) -> None:
    rows = [[" ".join(each.name), f"{each.ratio:.3f}", f"{each.lowest:.3f}-{each.highest:.3f}",
             f"{each.quiet_ratio:.3f}", f"{each.same_build:.3f}", f"{each.limit:.3f}",
             verdict_text(report, each)]
            for each in report.comparisons]
    if rows:
        print_table(["benchmark", "medians", "of rounds", "quiet", "same build", "limit", ""], rows)
    for side, names in (("A", report.only_a), ("B", report.only_b)):
        for name in names:
            print(f"only in {side}: {name}")
    faster = sum(each.verdict == FASTER for each in report.comparisons)
    print(f"{len(report.comparisons)} compared: {len(report.regressions())} slower, {faster} "
          f"faster; a build differs from itself by up to {report.run_noise:.3f} in 9 of 10 cases")


def write_json(path: Path, a: Build, b: Build, arguments: argparse.Namespace,
               report: Report) -> None:
    path.write_text(json.dumps({
        "machine": machine(), "a": a.commit, "b": b.commit, "rounds": arguments.rounds,
        "min_time_s": arguments.min_time, "threshold": arguments.threshold,
        "run_noise": report.run_noise, "only_a": report.only_a, "only_b": report.only_b,
        "rows": [{**dataclasses.asdict(each), "name": " ".join(each.name),
                  "confirmed": each in report.regressions()} for each in report.comparisons],
    }, indent=1) + "\n")


@contextlib.contextmanager
def builds(arguments: argparse.Namespace) -> Iterator[tuple[Build, Build]]:
    if arguments.bin_dirs:
        a, b = (Build("unknown", path) for path in arguments.bin_dirs)
        yield a, b
        return
    with contextlib.ExitStack() as stack:
        folder = arguments.work_dir
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ecpipe-guard-")))
        folder.mkdir(parents=True, exist_ok=True)
        yield build_both(arguments.repository, (arguments.rev_a, arguments.rev_b), folder,
                         arguments.preset, arguments.jobs)


def positive(kind: type[int] | type[float]):
    def parse(text: str) -> int | float:
        value = kind(text)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value
    return parse


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rev_a", nargs="?", default="HEAD~1", metavar="REV_A")
    parser.add_argument("rev_b", nargs="?", default=WORKING_TREE, metavar="REV_B")
    parser.add_argument("--bin-dirs", nargs=2, type=Path, metavar="DIR",
                        help="compare the programs in these two directories and build nothing")
    parser.add_argument("--work-dir", type=Path, metavar="DIR",
                        help="keep the clones here, so that the next run builds less "
                             "(default: a temporary folder)")
    parser.add_argument("--filter", default=".", metavar="REGEX",
                        help="run only benchmarks whose names match (default: all)")
    parser.add_argument("--rounds", type=positive(int), default=10,
                        help="rounds of A B B A (default %(default)s)")
    parser.add_argument("--min-time", type=positive(float), default=0.01, metavar="SECONDS",
                        help="seconds for each benchmark in each run (default %(default)s)")
    parser.add_argument("--threshold", type=positive(float), default=0.05, metavar="SHARE",
                        help="a share; what is slower by no more than this is not reported as a "
                             "regression (default %(default)s)")
    parser.add_argument("--preset", default="release", help="CMake preset (default %(default)s)")
    parser.add_argument("--jobs", "-j", type=positive(int), default=os.cpu_count())
    parser.add_argument("--repository", type=Path, default=REPOSITORY, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, metavar="OUT")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    try:
        with interruptible(), builds(arguments) as (a, b):
            report = compare_builds(a, b, arguments)
            print_report(report)
            if arguments.json:
                write_json(arguments.json, a, b, arguments, report)
    except LabError as error:
        print(f"guard.py: {error}", file=sys.stderr)
        return 2
    if not report.comparisons:
        print("guard.py: the two have no benchmark in common", file=sys.stderr)
        return 2
    return 1 if report.regressions() else 0


if __name__ == "__main__":
    sys.exit(main())
