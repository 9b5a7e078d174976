# SPDX-License-Identifier: Apache-2.0
"""Runs google-benchmark programs of two builds in turn, and reads what they print."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator, Mapping, Sequence

from labkit.process import LabError

from .bounded import run_group

LIST_SECONDS = 60.0
# Of one run of one program. The slowest takes some 20 s.
PROGRAM_SECONDS = 600.0
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# Of the two syntaxes of regular expressions that google-benchmark may be built with.
SPECIAL = frozenset(r".[]{}()\*+?|^$")


def times_of(output: str, program: str) -> dict[str, float]:
    """Nanoseconds an iteration of each benchmark in google-benchmark's JSON. CPU time, which what
    others do on the machine disturbs less, except where a benchmark keeps its own time."""
    try:
        runs = json.loads(output)["benchmarks"]
    except (ValueError, KeyError, TypeError):
        raise LabError(f"{program} did not print google-benchmark's JSON") from None
    times = {}
    for run in runs:
        if run.get("run_type", "iteration") != "iteration":
            continue
        name = run["name"]
        if run.get("error_occurred"):
            raise LabError(f"{program}: {name}: {run.get('error_message', 'failed')}")
        own_time = "manual_time" in name.split("/")
        time = run["real_time" if own_time else "cpu_time"] * NANOSECONDS[run["time_unit"]]
        if not time > 0:
            raise LabError(f"{program}: {name} took no time")
        times[name] = time
    return times


def filter_for(names: Sequence[str]) -> str:
    """A --benchmark_filter for exactly these."""
    def escaped(name: str) -> str:
        return "".join("\\" + c if c in SPECIAL else c for c in name)
    return "^(" + "|".join(map(escaped, names)) + ")$"


def names_of(program: Path, name_filter: str) -> list[str]:
    output = run_group([program, "--benchmark_list_tests=true",
                        f"--benchmark_filter={name_filter}"], LIST_SECONDS)
    # Where nothing matches it says so on the other stream and ends well.
    return output.split()


def run_program(program: Path, name_filter: str, min_seconds: float) -> dict[str, float]:
    output = run_group([program, "--benchmark_format=json", f"--benchmark_filter={name_filter}",
                        f"--benchmark_min_time={min_seconds:g}"], PROGRAM_SECONDS)
    return times_of(output, program.name)


@dataclass
class Round:
    """Two runs of each side, close together in time: first and last of A, first and last of B."""

    a: list[float] = field(default_factory=list)
    b: list[float] = field(default_factory=list)


# By (program, benchmark).
Name = tuple[str, str]
Samples = dict[Name, list[Round]]


def orders(rounds: int) -> Iterator[str]:
    """ABBA and BAAB in turn: what drifts evenly meets both sides alike."""
    for number in range(rounds):
        yield "abba" if number % 2 == 0 else "baab"


def measure(a: Mapping[str, Path], b: Mapping[str, Path], wanted: Mapping[str, Sequence[str]], *,
            rounds: int, min_seconds: float) -> Samples:
    """Runs the `wanted` benchmarks of each program, which both sides have."""
    samples: Samples = {(program, name): [Round() for _ in range(rounds)]
                        for program, names in wanted.items() for name in names}
    for number, order in enumerate(orders(rounds)):
        print(f"round {number + 1} of {rounds}", flush=True)
        for program, names in wanted.items():
            for side in order:
                path = (a if side == "a" else b)[program]
                times = run_program(path, filter_for(names), min_seconds)
                if missing := set(names) - set(times):
                    raise LabError(f"{path} did not run {', '.join(sorted(missing))}")
                for name in names:
                    getattr(samples[program, name][number], side).append(times[name])
    return samples
