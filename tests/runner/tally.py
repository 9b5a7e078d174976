# SPDX-License-Identifier: Apache-2.0
"""What a run of the tests has found, and how it is told."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from runner.children import Children
from runner.times import Times, Took, grown

FAILED_OUTPUT_LINES = 60
# More tests than this that fail and then pass say that something is wrong with the tree or with the
# machine, and not that one wait was too short.
MOST_FLAKY = 2
BUILD = "build"  # the label of a build


@dataclass
class Tally:
    """What became of the tests of one label of one build, or of the build itself."""

    preset: str
    label: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0      # of its parts, one after the other
    cpu_seconds: float = 0.0
    failures: list[str] = field(default_factory=list)  # a name, and what it said
    skips: list[str] = field(default_factory=list)     # a name and the reason
    flaky: list[str] = field(default_factory=list)     # a name, and what it said the first time

    @property
    def name(self) -> str:
        return f"{self.preset} {self.label}"

    def took(self, seconds: float, cpu_seconds: float) -> None:
        self.seconds += seconds
        self.cpu_seconds += cpu_seconds

    def fail(self, name: str, output: str) -> None:
        self.failed += 1
        self.failures.append(self._with_tail(name, output))

    def skip(self, name: str, reason: str) -> None:
        self.skipped += 1
        self.skips.append(f"{self.name}: {name}: {reason}")

    def pass_after_failure(self, name: str, first_output: str) -> None:
        self.passed += 1
        self.flaky.append(self._with_tail(name, first_output))

    def _with_tail(self, name: str, output: str) -> str:
        tail = "\n".join(output.rstrip().splitlines()[-FAILED_OUTPUT_LINES:])
        return f"{self.name}: {name}\n{tail}"

    @property
    def result(self) -> str:
        if self.failed:
            return "FAILED"
        if self.label == BUILD:
            return "built"
        return "passed" if self.passed else "skipped"


class Session:
    """What all tallies share: the children, the folder of logs, and the tallies that have ended."""

    def __init__(self, logs: Path) -> None:
        self.children = Children()
        self.logs = logs
        self.tallies: list[Tally] = []
        self._lock = threading.Lock()  # tallies end in several threads
        self._start = time.monotonic()

    def record(self, tally: Tally) -> Tally:
        """Prints a tally that has ended and keeps it for the summary."""
        skipped = f", {tally.skipped} skipped" if tally.skipped else ""
        lines = [f"{tally.name}: {tally.passed} passed, {tally.failed} failed{skipped} "
                 f"({tally.seconds:.0f} s, at {self._minutes()})"]
        lines += [f"\n--- {failure}\n" for failure in tally.failures]
        lines += [f"\n--- flaky: {flaky}\n" for flaky in tally.flaky]
        with self._lock:
            self.tallies.append(tally)
            print("\n".join(lines), flush=True)
        return tally

    def judge_flaky_tests(self) -> None:
        """Too many of them are a failure of the run."""
        flaky = self._flaky_names()
        if len(flaky) > MOST_FLAKY:
            tally = Tally("all", "flaky tests")
            tally.fail(f"{len(flaky)} tests passed only when they ran again alone",
                       f"At most {MOST_FLAKY} may: " + ", ".join(flaky))
            self.record(tally)

    def print_summary(self, before: Times) -> int:
        """The table, with what CONTRIBUTING.md says beside it; the skips, the verdict. The exit
        code."""
        title = "build and label"
        width = max([len(title), *(len(tally.name) for tally in self.tallies)])
        print(f"\n{title.ljust(width)}  result   passed  failed  skipped  seconds  "
              "before  CPU s  before")
        for tally in sorted(self.tallies, key=lambda tally: tally.name):
            old = before.get((tally.preset, tally.label), Took(0.0, 0.0))
            print(f"{tally.name.ljust(width)}  {tally.result:8} {tally.passed:6}  "
                  f"{tally.failed:6}  {tally.skipped:7}  {tally.seconds:7.0f}  {old.seconds:6.0f}  "
                  f"{tally.cpu_seconds:5.0f}  {old.cpu_seconds:6.0f}")
        for skip in (skip for tally in self.tallies for skip in tally.skips):
            print(f"skipped: {skip}")
        for name in self._flaky_names():
            print(f"flaky: {name}")
        for failure in (failure for tally in self.tallies for failure in tally.failures):
            print(f"failed: {failure.splitlines()[0]}")
        for line in grown(self.times(), before):
            print(f"grown: {line}")
        passed, failed, skipped = (sum(getattr(tally, kind) for tally in self.tallies)
                                   for kind in ("passed", "failed", "skipped"))
        if passed + failed == 0:
            print("no test has run, which counts as a failure")
            failed = 1
        print(f"logs: {self.logs}, whole run: {self._minutes()}")
        print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
        return 1 if failed else 0

    def times(self) -> Times:
        """Of what was built and of labels most of whose tests have run."""
        return {(tally.preset, tally.label): Took(tally.seconds, tally.cpu_seconds)
                for tally in self.tallies
                if tally.result in ("built", "passed") and tally.skipped <= tally.passed}

    def _minutes(self) -> str:
        return f"{(time.monotonic() - self._start) / 60:.1f} min"

    def _flaky_names(self) -> list[str]:
        return [flaky.splitlines()[0] for tally in self.tallies for flaky in tally.flaky]
