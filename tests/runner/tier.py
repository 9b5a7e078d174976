# SPDX-License-Identifier: Apache-2.0
"""What a run of the tests has found, and how it is told."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from runner.children import Children
from runner.times import PAGE, Took, grown, read_times

FAILED_OUTPUT_LINES = 60
# More tests than this that fail and then pass say that something is wrong with the tree or with the
# machine, and not that one wait was too short.
MOST_FLAKY = 2


@dataclass
class Tier:
    """What became of one group of tests."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0      # of its parts, one after the other
    cpu_seconds: float = 0.0
    failures: list[str] = field(default_factory=list)  # a name, and what it said
    skips: list[str] = field(default_factory=list)     # a name and the reason
    flaky: list[str] = field(default_factory=list)     # a name, and what it said the first time

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
        if self.name.endswith(" build"):
            return "built"
        return "passed" if self.passed else "skipped"


class Session:
    """What all tiers share: the children, the folder of logs, and the tiers that have ended."""

    def __init__(self, logs: Path) -> None:
        self.children = Children()
        self.logs = logs
        self.tiers: list[Tier] = []
        self._lock = threading.Lock()  # tiers end in several threads
        self._start = time.monotonic()

    def record(self, tier: Tier) -> Tier:
        """Prints a tier that has ended and keeps it for the summary."""
        skipped = f", {tier.skipped} skipped" if tier.skipped else ""
        lines = [f"{tier.name}: {tier.passed} passed, {tier.failed} failed{skipped} "
                 f"({tier.seconds:.0f} s, at {self._minutes()})"]
        lines += [f"\n--- {failure}\n" for failure in tier.failures]
        lines += [f"\n--- flaky: {flaky}\n" for flaky in tier.flaky]
        with self._lock:
            self.tiers.append(tier)
            print("\n".join(lines), flush=True)
        return tier

    def judge_flaky_tests(self) -> None:
        """Too many of them are a failure of the run."""
        flaky = self._flaky_names()
        if len(flaky) > MOST_FLAKY:
            tier = Tier("flaky tests")
            tier.fail(f"{len(flaky)} tests passed only when they ran again alone",
                      f"At most {MOST_FLAKY} may: " + ", ".join(flaky))
            self.record(tier)

    def print_summary(self) -> int:
        """The table, the skips, the verdict. The exit code."""
        width = max((len(tier.name) for tier in self.tiers), default=0)
        print(f"\n{'tier'.ljust(width)}  result   passed  failed  skipped  minutes  CPU minutes")
        for tier in sorted(self.tiers, key=lambda tier: tier.name):
            print(f"{tier.name.ljust(width)}  {tier.result:8} {tier.passed:6}  {tier.failed:6}  "
                  f"{tier.skipped:7}  {tier.seconds / 60:7.1f}  {tier.cpu_seconds / 60:11.1f}")
        for skip in (skip for tier in self.tiers for skip in tier.skips):
            print(f"skipped: {skip}")
        for name in self._flaky_names():
            print(f"flaky: {name}")
        for name in (failure.splitlines()[0] for tier in self.tiers for failure in tier.failures):
            print(f"failed: {name}")
        for line in grown(self.times(), read_times(PAGE.read_text(encoding="utf-8"))):
            print(f"grown: {line}")
        passed, failed, skipped = (sum(getattr(tier, kind) for tier in self.tiers)
                                   for kind in ("passed", "failed", "skipped"))
        if passed + failed == 0:
            print("no test has run, which counts as a failure")
            failed = 1
        print(f"logs: {self.logs}, whole run: {self._minutes()}")
        print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
        return 1 if failed else 0

    def times(self) -> dict[tuple[str, str], Took]:
        """Of what was built and of labels that have run, by preset and label."""
        return {(preset, label): Took(tier.seconds, tier.cpu_seconds)
                for tier in self.tiers for preset, _, label in [tier.name.partition(" ")]
                if tier.result in ("built", "passed")}

    def _minutes(self) -> str:
        return f"{(time.monotonic() - self._start) / 60:.1f} min"

    def _flaky_names(self) -> list[str]:
        return [flaky.splitlines()[0] for tier in self.tiers for flaky in tier.flaky]
