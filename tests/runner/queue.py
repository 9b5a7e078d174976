# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of all builds, as many at once as the cores allow."""

from __future__ import annotations

import threading
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Sequence

from runner.children import End
from runner.ctest import Outcome, Result, Test, run_test
from runner.labels import Label
from runner.tally import Session, Tally

# When so many of a tally fail, something is broken for all of them, and another try tells nothing.
MOST_TRIED_AGAIN = 4


@dataclass
class Group:
    """The tests of one label of one build, and what became of those that have run."""

    preset: str
    label: Label
    build_folder: Path
    left: int
    tally: Tally = field(init=False)
    results: list[tuple[Test, Result]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tally = Tally(self.preset, self.label.name)

    def may_try_again(self) -> bool:
        failed = sum(failed_in(result) for _test, result in self.results)
        return self.label.retried and 0 < failed <= MOST_TRIED_AGAIN


def failed_in(result: Result) -> bool:
    return any(outcome.result == "failed" for outcome in result.outcomes.values())


def passed_in(result: Result) -> bool:
    return all(outcome.result == "passed" for outcome in result.outcomes.values())


class Queue:
    """Tests that are to run, and those that run. A test starts as soon as the cores that its label
    wants are free: of those that fit, the one whose label has the lowest rank. Any thread may
    call."""

    def __init__(self, session: Session, cores: float) -> None:
        self._session = session
        self._changed = threading.Condition()
        self._cores = self._free = cores
        self._waiting: list[tuple[int, Group, Test]] = []
        self._running = 0
        self._ended: list[Group] = []

    def add(self, rank: int, preset: str, label: Label, build_folder: Path,
            tests: Sequence[Test]) -> None:
        group = Group(preset, label, build_folder, len(tests))
        if not tests:
            group.tally.fail("no test", f"the preset has no test with the label {label.name!r}")
            self._session.record(group.tally)
            return
        with self._changed:
            self._waiting += [(rank, group, test) for test in tests]
            self._waiting.sort(key=lambda entry: entry[0])
            self._start_what_fits()

    def finish(self) -> None:
        """Waits until all has run. What failed and may try again does so then, one by one."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._running)
        for group in self._ended:
            if group.may_try_again():
                self._settle(group, True)

    def _start_what_fits(self) -> None:
        for entry in list(self._waiting):
            _rank, group, test = entry
            cores = min(group.label.cores, self._cores)
            if cores <= self._free:
                # It waits for the lock before it counts itself out.
                threading.Thread(target=self._run, args=(group, test, cores)).start()
                self._waiting.remove(entry)
                self._free -= cores
                self._running += 1

    def _run(self, group: Group, test: Test, cores: float) -> None:
        result = self._result_of(group, test)
        try:
            with self._changed:
                group.results.append((test, result))
                group.left -= 1
                whole_group = group.left == 0
                if whole_group:
                    self._ended.append(group)
                self._free += cores
                self._start_what_fits()
            if whole_group and not group.may_try_again():
                self._settle(group, False)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _result_of(self, group: Group, test: Test, again: bool = False) -> Result:
        """Whatever goes wrong is a failed test."""
        start = time.monotonic()
        try:
            return run_test(self._session, group.preset, group.build_folder, test, again)
        except Exception:
            return Result({test.name: Outcome("failed", traceback.format_exc())},
                          End(1, time.monotonic() - start, 0.0))

    def _settle(self, group: Group, try_again: bool) -> None:
        """Counts a group and records it."""
        for test, result in group.results:
            group.tally.took(result.end.seconds, result.end.cpu_seconds)
            passes_now = (try_again and failed_in(result) and
                          passed_in(self._result_of(group, test, again=True)))
            for name, outcome in result.outcomes.items():
                if outcome.result == "failed" and passes_now:
                    group.tally.pass_after_failure(name, outcome.text)
                else:
                    count(group.tally, name, outcome)
        self._session.record(group.tally)


def count(tally: Tally, name: str, outcome: Outcome) -> None:
    if outcome.result == "passed":
        tally.passed += 1
        for part in outcome.skipped_parts:
            tally.skip(name, part)
    elif outcome.result == "skipped":
        tally.skip(name, outcome.text)
    else:
        tally.fail(name, outcome.text)
