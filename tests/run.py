#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the presets and runs all tests; tests/run.sh installs the packages first.

Three phases, so that two cores are busy and nothing that watches the clock is disturbed:
  1. Presets are built one after another. As soon as one stands, its quick tests (unit, script,
     fuzz, ...) run beside the build of the next. The preset fuzz comes last and has libFuzzer's
     tests alone: two minutes with nothing beside them.
  2. The cluster tests, preset after preset, two tests at a time.
  3. The lab tests, alone: they measure. Then the host tests, ECPipe inside real storage
     systems.

The last line is "N passed, N failed" (and ", N skipped"). Exit code 0 only when nothing failed and
something ran.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Sequence

import check_layering

REPOSITORY = Path(__file__).resolve().parents[1]
PRESETS = ("dev", "asan", "tsan", "fuzz")
# Labels whose absence means that a build file lost them.
REQUIRED_LABELS = ("unit", "script", "fuzz", "sim", "cluster")
# Labels with a phase of their own.
CLUSTER, LAB, HOST = "cluster", "lab", "host"
# The lab measures links; doing so again with sanitizers would tell nothing new. The simulation runs
# fibres of one thread, which tsan takes for one stack; fuzz targets have one thread.
PRESETS_OF_LABEL = {LAB: ("dev",), HOST: ("dev",), "sim": ("dev", "asan"), "fuzz": ("dev", "asan")}
# libFuzzer needs a build of its own, and that has no other tests.
LIBFUZZER = "libfuzzer"
FUZZ_PRESET = "fuzz"

BUILD_SECONDS = 1500
TIER_SECONDS = 1800
TEST_SECONDS = 300
FAILED_OUTPUT_LINES = 60
CLUSTER_TESTS_AT_ONCE = 2  # more on two cores, and one waits too long for another

SANITIZER_OPTIONS = {
    # Debian's gRPC is not instrumented, and without the first option each of its threads is "racy".
    # Of the second for which each process with threads would sleep at its end, for late reports, a
    # tenth is left: the cluster tests start hundreds.
    "TSAN_OPTIONS": "ignore_noninstrumented_modules=1 halt_on_error=1 atexit_sleep_ms=100 "
                    f"suppressions={REPOSITORY / 'tests' / 'tsan.supp'}",
    "ASAN_OPTIONS": "detect_leaks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
# What ccache has of one clone serves every other one; what the user has set is kept.
CCACHE_OPTIONS = {
    "CCACHE_BASEDIR": str(REPOSITORY), "CCACHE_NOHASHDIR": "1",
    "CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime",
}


@dataclass
class Tier:
    """What became of one group of tests."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)  # a name, and what it said
    skips: list[str] = field(default_factory=list)     # a name and the reason

    def fail(self, name: str, output: str) -> None:
        self.failed += 1
        tail = "\n".join(output.rstrip().splitlines()[-FAILED_OUTPUT_LINES:])
        self.failures.append(f"{self.name}: {name}\n{tail}")

    def skip(self, name: str, reason: str) -> None:
        self.skipped += 1
        self.skips.append(f"{self.name}: {name}: {reason}")

    @property
    def result(self) -> str:
        if self.failed:
            return "FAILED"
        return "passed" if self.passed else "skipped"


class Children:
    """The running children, each in a process group of its own, so that an interrupt ends them all
    with everything that they have started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._closed = False

    def run(self, command: Sequence[str], log: Path, seconds: float,
            environment: dict[str, str] | None = None) -> int:
        """The exit code; the output goes to `log`. 124 when it took longer than `seconds`."""
        with log.open("w") as output:
            with self._lock:
                if self._closed:
                    return 128 + signal.SIGTERM
                child = subprocess.Popen(
                    command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=output, text=True,
                    stderr=subprocess.STDOUT, start_new_session=True,
                    env={**os.environ, **(environment or {})})
                self._running.add(child)
            try:
                return child.wait(seconds)
            except subprocess.TimeoutExpired:
                output.write(f"\nrun.py: no end within {seconds:g} s: killed\n")
                self._end(child)
                return 124
            finally:
                with self._lock:
                    self._running.discard(child)

    def close(self) -> None:
        """Ends all children and starts no more."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for child in running:
            self._end(child)

    @staticmethod
    def _end(child: subprocess.Popen[str]) -> None:
        """Politely first: tests have daemons and namespaces to clean up."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child.pid, number)
            except ProcessLookupError:
                pass
            try:
                child.wait(15)
                return
            except subprocess.TimeoutExpired:
                continue


@dataclass
class Session:
    """What all tiers share."""

    arguments: argparse.Namespace
    children: Children
    logs: Path
    tiers: list[Tier] = field(default_factory=list)

    def record(self, tier: Tier, start: float) -> Tier:
        tier.seconds = time.monotonic() - start
        self.tiers.append(tier)
        skipped = f", {tier.skipped} skipped" if tier.skipped else ""
        print(f"{tier.name}: {tier.passed} passed, {tier.failed} failed{skipped} "
              f"({tier.seconds:.0f} s)", flush=True)
        for failure in tier.failures:
            print(f"\n--- {failure}\n", flush=True)
        return tier


# ---- Static checks ------------------------------------------------------------------------------

def repository_files(*suffixes: str) -> list[Path]:
    """Of the tree, without what a build or a tool put there."""
    found = []
    for folder, folders, names in os.walk(REPOSITORY):
        folders[:] = sorted(set(folders) - {"build", ".git", "__pycache__", ".cache"})
        found += [Path(folder, name) for name in sorted(names) if name.endswith(suffixes)]
    return found


def check_layers(tier: Tier) -> None:
    """Each rule is one test."""
    by_rule: dict[str, list[str]] = defaultdict(list)
    for violation in check_layering.check_tree(REPOSITORY):
        by_rule[violation.rule].append(str(violation))
    for rule in check_layering.RULES:
        if rule in by_rule:
            tier.fail(f"layering.{rule}", "\n".join(by_rule[rule]))
        else:
            tier.passed += 1


def check_python(tier: Tier) -> None:
    for path in repository_files(".py"):
        try:
            compile(path.read_text(encoding="utf-8"), str(path), "exec")
            tier.passed += 1
        except SyntaxError as error:
            tier.fail(f"python {path.relative_to(REPOSITORY)}", str(error))


def check_shell(tier: Tier) -> None:
    for path in [*repository_files(".sh"), REPOSITORY / ".ci" / "run"]:
        name = str(path.relative_to(REPOSITORY))
        done = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True)
        if done.returncode == 0 and shutil.which("shellcheck"):
            done = subprocess.run(["shellcheck", "--severity=warning", str(path)],
                                  capture_output=True, text=True)
        # The executable bit is easily lost, and CI starts these by name.
        if done.returncode:
            tier.fail(f"shell {name}", done.stdout + done.stderr)
        elif not os.access(path, os.X_OK):
            tier.fail(f"shell {name}", "not executable")
        else:
            tier.passed += 1


def run_static(session: Session) -> None:
    tier, start = Tier("static"), time.monotonic()
    for check in (check_layers, check_python, check_shell):
        check(tier)
    session.record(tier, start)


# ---- Builds -------------------------------------------------------------------------------------

def under_fixed_layout(preset: str) -> list[str]:
    """gcc 12's ThreadSanitizer cannot place its shadow memory when the kernel randomises addresses
    more widely than it expects; without randomisation it always can."""
    setarch = ["setarch", "--addr-no-randomize"]
    if preset != "tsan" or shutil.which("setarch") is None:
        return []
    allowed = subprocess.run([*setarch, "true"], capture_output=True).returncode == 0
    return setarch if allowed else []


def build(session: Session, preset: str) -> bool:
    """A failed build is one failed test; a good one is none, it only has a time."""
    tier, start = Tier(f"build {preset}"), time.monotonic()
    configure = ["cmake", "--preset", preset]
    if shutil.which("ccache"):
        configure += [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")]
    # The build runs the test programs once, to list their tests.
    compile_all = [*under_fixed_layout(preset), "cmake", "--build", "--preset", preset]
    for number, command in enumerate((configure, compile_all)):
        log = session.logs / f"build-{preset}-{number}.log"
        code = session.children.run(command, log, BUILD_SECONDS,
                                    {**CCACHE_OPTIONS, **os.environ, **SANITIZER_OPTIONS})
        if code:
            tier.fail(f"{' '.join(command)} (exit code {code})", log.read_text(errors="replace"))
            break
    session.record(tier, start)
    return tier.failed == 0


# ---- ctest --------------------------------------------------------------------------------------

def tests_by_label(preset: str) -> dict[str, list[str]]:
    """Each label of a built preset with the names of its tests; "" for tests without one."""
    listed = subprocess.run(["ctest", "--test-dir", f"build/{preset}", "--show-only=json-v1"],
                            cwd=REPOSITORY, capture_output=True, text=True, check=True)
    names: dict[str, list[str]] = defaultdict(list)
    for test in json.loads(listed.stdout)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        names[(properties.get("LABELS") or [""])[0]].append(test["name"])
    return names


def can_have(preset: str, label: str) -> bool:
    return (preset == FUZZ_PRESET) == (label == LIBFUZZER)


def labels_to_run(session: Session, preset: str, names: dict[str, list[str]]) -> list[str]:
    """Every label that a preset has, and every one that it must have."""
    wanted = session.arguments.labels
    required = {*REQUIRED_LABELS, LIBFUZZER, *(wanted or ())}
    labels = sorted(set(names) | {label for label in required if can_have(preset, label)})
    if wanted:
        return [label for label in labels if label in wanted]
    labels = [label for label in labels if preset in PRESETS_OF_LABEL.get(label, (preset,))]
    if session.arguments.quick:
        labels = [label for label in labels if label not in (CLUSTER, LAB, HOST)]
    return labels


def run_label(session: Session, preset: str, label: str, expected: list[str], jobs: int) -> None:
    tier, start = Tier(f"{preset} {label or '(no label)'}"), time.monotonic()
    stem = f"{preset}-{label or 'unlabelled'}"
    junit, log = session.logs / f"{stem}.xml", session.logs / f"{stem}.log"
    junit.unlink(missing_ok=True)
    if not expected:
        tier.fail("no test", f"the preset has no test with the label {label!r}")
    elif not label:
        tier.fail("tests without a label", "\n".join(expected))
    else:
        code = session.children.run(
            [*under_fixed_layout(preset), "ctest", "--test-dir", f"build/{preset}",
             "--label-regex", f"^{label}$", "--parallel", str(jobs), "--timeout",
             str(TEST_SECONDS), "--output-junit", str(junit)],
            log, TIER_SECONDS, SANITIZER_OPTIONS)
        count_results(tier, junit, expected)
        if code and not tier.failed:
            tier.fail(f"ctest (exit code {code})", log.read_text(errors="replace"))
    session.record(tier, start)


def count_results(tier: Tier, junit: Path, expected: list[str]) -> None:
    """From ctest's own report. A test that should be in it and is not has failed."""
    seen = set()
    if junit.exists():
        for case in ElementTree.parse(junit).getroot().iter("testcase"):
            name, output = case.get("name", "?"), case.findtext("system-out") or ""
            seen.add(name)
            if case.get("status") == "run":
                tier.passed += 1
            elif case.get("status") == "disabled":
                tier.skip(name, "disabled")
            elif case.get("status") == "notrun":
                count_not_run(tier, name, case.find("skipped"), output)
            else:
                reason = case.find("failure")
                message = reason.get("message", "") if reason is not None else ""
                tier.fail(name, f"{output}\n{message}")
    for name in sorted(set(expected) - seen):
        tier.fail(name, "it did not run")


def count_not_run(tier: Tier, name: str, skipped: ElementTree.Element | None, output: str) -> None:
    """A test may decline, saying why. One whose program is missing has not declined."""
    message = skipped.get("message", "") if skipped is not None else ""
    if message.startswith("SKIP_"):
        tier.skip(name, skip_reason(output))
    else:
        tier.fail(name, message or "it did not run")


def skip_reason(output: str) -> str:
    """Our scripts print "SKIP: reason"; googletest prints the reason below "file:line: Skipped"."""
    lines = [line.strip() for line in output.splitlines()]
    for number, line in enumerate(lines):
        if line.startswith("SKIP:"):
            return line.removeprefix("SKIP:").strip()
        if line.endswith(": Skipped") and number + 1 < len(lines):
            return lines[number + 1]
    return "no reason given"


# ---- The whole ----------------------------------------------------------------------------------

def run_presets(session: Session) -> None:
    """The three phases. Nothing here raises: whatever goes wrong becomes a failed tier."""
    cores = len(os.sched_getaffinity(0))
    plans: dict[str, dict[str, list[str]]] = {}
    with concurrent.futures.ThreadPoolExecutor(1) as tester:
        jobs = []
        for preset in session.arguments.presets:
            if not build(session, preset):
                continue
            try:
                names = tests_by_label(preset)
            except (subprocess.SubprocessError, OSError, ValueError, LookupError) as error:
                tier = Tier(f"{preset} tests")
                tier.fail("listing the tests", str(error))
                session.record(tier, time.monotonic())
                continue
            plans[preset] = {label: names.get(label, [])
                             for label in labels_to_run(session, preset, names)}
            jobs += [tester.submit(run_label, session, preset, label, tests, cores)
                     for label, tests in plans[preset].items()
                     if label not in (CLUSTER, LAB, HOST)]
        wait_for(jobs)
    for label, tests_at_once in ((CLUSTER, CLUSTER_TESTS_AT_ONCE), (LAB, 1), (HOST, 1)):
        for preset, labels in plans.items():
            if label in labels:
                run_label(session, preset, label, labels[label], tests_at_once)


def wait_for(jobs: Sequence[concurrent.futures.Future[None]]) -> None:
    for job in jobs:
        job.result()


def comma_separated(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tests/run.sh", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="only the preset dev, without cluster and lab tests")
    parser.add_argument("--preset", dest="presets", type=comma_separated,
                        help=f"comma-separated (default {','.join(PRESETS)})")
    parser.add_argument("--label", dest="labels", type=comma_separated,
                        help="comma-separated ctest labels, e.g. unit,script (default: all)")
    arguments = parser.parse_args()
    arguments.presets = arguments.presets or (["dev"] if arguments.quick else [
        preset for preset in PRESETS
        if not arguments.labels or any(can_have(preset, label) for label in arguments.labels)])
    return arguments


def print_summary(session: Session, seconds: float) -> int:
    """The table, the skips, the verdict. The exit code."""
    width = max((len(tier.name) for tier in session.tiers), default=0)
    print(f"\n{'tier'.ljust(width)}  result   passed  failed  skipped  seconds")
    for tier in sorted(session.tiers, key=lambda tier: tier.name):
        result = "built" if tier.name.startswith("build ") and not tier.failed else tier.result
        print(f"{tier.name.ljust(width)}  {result:8} {tier.passed:6}  {tier.failed:6}  "
              f"{tier.skipped:7}  {tier.seconds:7.0f}")
    for skip in (skip for tier in session.tiers for skip in tier.skips):
        print(f"skipped: {skip}")
    for name in (failure.splitlines()[0] for tier in session.tiers for failure in tier.failures):
        print(f"failed: {name}")
    passed, failed, skipped = (sum(getattr(tier, kind) for tier in session.tiers)
                               for kind in ("passed", "failed", "skipped"))
    if passed + failed == 0:
        print("no test has run, which counts as a failure")
        failed = 1
    print(f"logs: build/test-logs, whole run: {seconds:.0f} s")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


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
    arguments = parse_arguments()
    session = Session(arguments, Children(), REPOSITORY / "build" / "test-logs")
    session.logs.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_interrupt(session.children))
    start = time.monotonic()
    run_static(session)
    run_presets(session)
    return print_summary(session, time.monotonic() - start)


if __name__ == "__main__":
    sys.exit(main())
