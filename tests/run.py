#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the presets and runs all tests; tests/run.sh installs the packages first.

Three phases, so that two cores are busy and nothing that fills the machine is disturbed:
  1. The preset release is built: the programs, as deploy/quickstart.sh builds them.
  2. Tests that start those programs (bench, cluster, browser, docs, install, package, lab,
     quickstart) run beside the builds of asan and tsan, which give way to them. As soon as one of
     these stands, its tests (unit, script, sim, fuzz, libfuzzer) run.
  3. What fills the machine runs alone: host tests.
The test `walk` takes more than a quarter of an hour, and runs only when its label is named.

A test that starts programs runs once more, alone, if it fails, unless more than
four of its label have failed. When it passes then it counts as passed and is listed as "flaky:
NAME". More than two of these fail the run.

The last line is "N passed, N failed" (and ", N skipped"). Exit code 0 only when nothing failed and
something ran.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Sequence

from runner.builds import build
from runner.children import REPOSITORY, Children
from runner.ctest import FirstTry, TierPlan, run_once, settle, tests_by_label
from runner.labels import LABELS, PRESET_ORDER, Label, Phase, Plan, make_plan, targets_of
from runner.static_checks import run_static
from runner.tier import Session, Tier

Tests = dict[str, list[str]]  # by label


def build_and_list(session: Session, preset: str, labels: Sequence[Label]) -> Tests | None:
    """The tests of a preset, once it is built; None when there is nothing to run."""
    if not build(session, preset, targets_of(preset, labels)):
        return None
    tier, start = Tier(f"{preset} tests"), time.monotonic()
    try:
        tests = tests_by_label(REPOSITORY / "build" / preset)
    except (subprocess.SubprocessError, OSError, ValueError, LookupError) as error:
        tier.fail("listing the tests", str(error))
        session.record(tier, start)
        return None
    lost = sorted(set(tests) - {label.name for label in LABELS})
    if lost:  # a label that no phase knows would never run
        tier.fail("unknown labels", "\n".join(f"{label!r}: {tests[label]}" for label in lost))
        session.record(tier, start)
    return tests


def run_labels(session: Session, preset: str, labels: Sequence[Label], tests: Tests,
               later: list[FirstTry] | None = None) -> None:
    """`later` takes the tiers with tests that may try again, for when nothing else runs."""
    for label in labels:
        plan = TierPlan(preset, label.name, REPOSITORY / "build" / preset, label.jobs(),
                        label.retried)
        first = run_once(session, plan, tests.get(label.name, []))
        if later is not None and first.may_try_again():
            later.append(first)
        else:
            settle(session, first)


def run_presets(session: Session, plan: Plan) -> None:
    """The three phases. Nothing here raises: whatever goes wrong becomes a failed tier."""
    def of_phase(preset: str, phase: Phase) -> list[Label]:
        return [label for label in plan[preset] if label.phase is phase]

    built: dict[str, Tests] = {}
    later: list[FirstTry] = []
    with ThreadPoolExecutor(1) as processes, ThreadPoolExecutor(1) as sanitized:
        jobs = []
        for preset, labels in plan.items():
            tests = build_and_list(session, preset, labels)
            if tests is None:
                continue
            built[preset] = tests
            for runs, phase in ((processes, Phase.PROCESSES), (sanitized, Phase.SANITIZED)):
                jobs.append(runs.submit(run_labels, session, preset, of_phase(preset, phase),
                                        tests, later))
        wait_for(jobs)
    for first in later:
        settle(session, first)
    for preset, tests in built.items():
        run_labels(session, preset, of_phase(preset, Phase.ALONE), tests)


def wait_for(jobs: Sequence[concurrent.futures.Future[None]]) -> None:
    for job in jobs:
        job.result()


def comma_separated(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def parse_plan() -> Plan:
    parser = argparse.ArgumentParser(
        prog="tests/run.sh", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="before a commit: unit, script, simulation and fuzz tests on the "
                             "preset dev")
    parser.add_argument("--preset", dest="presets", type=comma_separated, default=[],
                        help=f"comma-separated, of {', '.join(PRESET_ORDER)} (default: all but "
                             "dev)")
    parser.add_argument("--label", dest="labels", type=comma_separated, default=[],
                        help="comma-separated, of "
                             f"{', '.join(label.name for label in LABELS)} (default: all but "
                             f"{', '.join(label.name for label in LABELS if not label.usual)}). "
                             "With --preset as well, just these run there: --preset tsan --label "
                             "cluster")
    arguments = parser.parse_args()
    try:
        return make_plan(arguments.presets, arguments.labels, arguments.quick)
    except ValueError as error:
        parser.error(str(error))


def on_interrupt(children: Children) -> Callable[[int, object], None]:
    def end(number: int) -> None:
        children.close()
        os._exit(128 + number)

    def leave(number: int, _frame: object) -> None:
        print(f"\n{signal.Signals(number).name}: ending what runs", file=sys.stderr, flush=True)
        # In a thread: the main thread may hold just the lock that ending the children needs.
        threading.Thread(target=end, args=(number,)).start()
    return leave


def main() -> int:
    plan = parse_plan()
    session = Session(REPOSITORY / "build" / "test-logs")
    session.logs.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_interrupt(session.children))
    run_static(session)
    run_presets(session, plan)
    session.judge_flaky_tests()
    return session.print_summary()


if __name__ == "__main__":
    sys.exit(main())
