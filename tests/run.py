#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the presets and runs their tests; tests/run.sh installs the packages first.

The presets release, asan and tsan are built one after the other, and the tests of a build start as
soon as it stands, as many at once as the cores allow. Builds give way to tests. CONTRIBUTING.md has
a table of the labels: what each is for, and what it takes.

Every change must pass what runs without an option. --all runs the second tier as well, of what
finds rare things or needs long: new inputs for the fuzz targets, timed experiments, other releases
of Hadoop, packages on sixteen hosts and in Debian 13.

A test that starts programs runs once more, alone, if it fails, unless more than
four of its label have failed. When it passes then it counts as passed and is listed as "flaky:
NAME". More than two of these fail the run.

The last line is "N passed, N failed" (and ", N skipped"). Exit code 0 only when nothing failed and
something ran.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from typing import Callable, Sequence

from runner.builds import build
from runner.children import REPOSITORY, Children
from runner.ctest import Test, tests_by_label
from runner.labels import LABELS, PRESET_ORDER, RANKS, Label, Plan, make_plan, targets_of
from runner.queue import Queue
from runner.static_checks import run_static
from runner.tally import Session, Tally
from runner.times import PAGE, read_times, write_times

Tests = dict[str, list[Test]]  # by label


def build_and_list(session: Session, preset: str, labels: Sequence[Label]) -> Tests | None:
    """The tests of a preset, once it is built; None when there is nothing to run."""
    if not build(session, preset, targets_of(preset, labels)):
        return None
    tally = Tally(preset, "tests")
    try:
        tests = tests_by_label(REPOSITORY / "build" / preset)
    except (subprocess.SubprocessError, OSError, ValueError, LookupError) as error:
        tally.fail("listing the tests", str(error))
        session.record(tally)
        return None
    lost = sorted(set(tests) - {label.name for label in LABELS})
    if lost:  # a label that nobody knows would never run
        tally.fail("unknown labels", "\n".join(f"{label!r}: {tests[label]}" for label in lost))
        session.record(tally)
    return tests


def run_presets(session: Session, plan: Plan) -> None:
    """Nothing here raises: whatever goes wrong becomes a failed tally."""
    queue = Queue(session, len(os.sched_getaffinity(0)))
    for preset, labels in plan.items():
        tests = build_and_list(session, preset, labels)
        for label in labels if tests is not None else ():
            queue.add(RANKS[label.name], preset, label, REPOSITORY / "build" / preset,
                      tests.get(label.name, []))
    queue.finish()


def comma_separated(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def parse() -> tuple[Plan, argparse.Namespace]:
    parser = argparse.ArgumentParser(
        prog="tests/run.sh", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true",
                      help="before a commit: unit, script, simulation and fuzz tests on the preset "
                           "dev")
    size.add_argument("--all", action="store_true", help="both tiers")
    parser.add_argument("--preset", dest="presets", type=comma_separated, default=[],
                        help=f"comma-separated, of {', '.join(PRESET_ORDER)} (default: all but "
                             "dev)")
    parser.add_argument("--label", dest="labels", type=comma_separated, default=[],
                        help="comma-separated, of "
                             f"{', '.join(label.name for label in LABELS)} (the second tier: "
                             f"{', '.join(label.name for label in LABELS if label.rare)}). "
                             "With --preset as well, just these run there: --preset tsan --label "
                             "cluster")
    parser.add_argument("--write-times", action="store_true",
                        help="write what labels and builds took into the table of CONTRIBUTING.md")
    arguments = parser.parse_args()
    try:
        return make_plan(arguments.presets, arguments.labels, arguments.quick,
                         arguments.all), arguments
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
    plan, arguments = parse()
    before = read_times(PAGE.read_text(encoding="utf-8"))
    session = Session(REPOSITORY / "build" / "test-logs")
    session.logs.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_interrupt(session.children))
    run_static(session)
    run_presets(session, plan)
    session.judge_flaky_tests()
    code = session.print_summary(before)
    if arguments.write_times and code == 0:
        write_times(session.times())
    return code


if __name__ == "__main__":
    sys.exit(main())
