# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of one label of one build by ctest, and reads its report."""

from __future__ import annotations

import json
import re
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

from runner.builds import SANITIZER_OPTIONS
from runner.tier import Session, Tier

TIER_SECONDS = 2400
TEST_SECONDS = 300
# What is kept of a test that passed: enough to find the parts that it skipped.
PASSED_OUTPUT_BYTES = 1 << 20
# unittest's line for such a part; what the part printed may stand between its name and the verdict.
SKIPPED_PART = re.compile(r"^(test_\w+) \([^)]*\).*?\bskipped (['\"])(.*?)\2$",
                          re.MULTILINE | re.DOTALL)
# When so many of a tier fail, something is broken for all of them, and another try tells nothing.
MOST_TRIED_AGAIN = 4


@dataclass(frozen=True)
class TierPlan:
    """The tests of one label of one preset. `retried`: whether those that fail may try again."""

    preset: str
    label: str
    build_folder: Path
    tests_at_once: int
    retried: bool = False


@dataclass(frozen=True)
class Outcome:
    """Of one test: "passed", "failed" or "skipped", and what it said or why it was skipped.
    `skipped_parts`: of one that passed, the parts that it skipped, with their reasons."""

    result: str
    text: str = ""
    skipped_parts: tuple[str, ...] = ()


def tests_by_label(build_folder: Path) -> dict[str, list[str]]:
    """Each label of a build with the names of its tests; "" for tests without one."""
    listed = subprocess.run(["ctest", "--test-dir", str(build_folder), "--show-only=json-v1"],
                            capture_output=True, text=True, check=True)
    names: dict[str, list[str]] = defaultdict(list)
    for test in json.loads(listed.stdout)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        label = (properties.get("LABELS") or [""])[0]
        # What ctest has in place of the tests of a program that was not asked for.
        if label or not test["name"].endswith("_NOT_BUILT"):
            names[label].append(test["name"])
    return names


@dataclass
class FirstTry:
    """The tests of a tier have run once."""

    plan: TierPlan
    tier: Tier
    outcomes: dict[str, Outcome]
    start: float

    def may_try_again(self) -> bool:
        failed = sum(outcome.result == "failed" for outcome in self.outcomes.values())
        return self.plan.retried and 0 < failed <= MOST_TRIED_AGAIN


def run_once(session: Session, plan: TierPlan, expected: Sequence[str]) -> FirstTry:
    tier, start = Tier(f"{plan.preset} {plan.label}"), time.monotonic()
    outcomes = run_ctest(session, plan, expected) if expected else {
        "no test": Outcome("failed", f"the preset has no test with the label {plan.label!r}")}
    return FirstTry(plan, tier, outcomes, start)


def settle(session: Session, first: FirstTry) -> Tier:
    """Counts a tier and records it. Those of its tests that may try again do so now, one by one:
    nothing else should run."""
    tier, plan, try_again = first.tier, first.plan, first.may_try_again()
    for name, outcome in first.outcomes.items():
        if outcome.result == "passed":
            tier.passed += 1
            for part in outcome.skipped_parts:
                tier.skip(name, part)
        elif outcome.result == "skipped":
            tier.skip(name, outcome.text)
        elif try_again and passes_alone(session, plan, name):
            tier.pass_after_failure(name, outcome.text)
        else:
            tier.fail(name, outcome.text)
    return session.record(tier, first.start)


def passes_alone(session: Session, plan: TierPlan, name: str) -> bool:
    return run_ctest(session, plan, [name])[name].result == "passed"


def run_ctest(session: Session, plan: TierPlan, names: Sequence[str]) -> dict[str, Outcome]:
    """Runs all tests of the label, or just one when `names` has one."""
    stem = f"{plan.preset}-{plan.label}"
    selection = ["--label-regex", f"^{plan.label}$"]
    if len(names) == 1:
        stem += f"-{names[0]}".replace("/", "_")
        selection += ["--tests-regex", f"^{re.escape(names[0])}$"]
    junit, log = session.logs / f"{stem}.xml", session.logs / f"{stem}.log"
    junit.unlink(missing_ok=True)
    code = session.children.run(
        ["ctest", "--test-dir", str(plan.build_folder),
         *selection, "--parallel", str(plan.tests_at_once), "--timeout", str(TEST_SECONDS),
         "--test-output-size-passed", str(PASSED_OUTPUT_BYTES), "--output-junit", str(junit)],
        log, TIER_SECONDS, SANITIZER_OPTIONS)
    outcomes = read_report(junit) if junit.exists() else {}
    # A test that should be in the report and is not has failed.
    missing = {name: Outcome("failed", "it did not run") for name in names if name not in outcomes}
    outcomes |= missing
    if code and all(outcome.result != "failed" for outcome in outcomes.values()):
        outcomes["ctest"] = Outcome("failed", f"exit code {code}\n"
                                              f"{log.read_text(errors='replace')}")
    return outcomes


def read_report(junit: Path) -> dict[str, Outcome]:
    return {case.get("name", "?"): outcome_of(case)
            for case in ElementTree.parse(junit).getroot().iter("testcase")}


def outcome_of(case: ElementTree.Element) -> Outcome:
    """A test may decline, saying why. One whose program is missing has not declined."""
    status, output = case.get("status"), case.findtext("system-out") or ""
    if status == "run":
        return Outcome("passed", skipped_parts=skipped_parts(output))
    if status == "disabled":
        return Outcome("skipped", "disabled")
    reason = case.find("skipped" if status == "notrun" else "failure")
    message = reason.get("message", "") if reason is not None else ""
    if status == "notrun" and message.startswith("SKIP_"):
        return Outcome("skipped", skip_reason(output))
    if status == "notrun" and not message:
        message = "it did not run"
    return Outcome("failed", f"{output}\n{message}")


def skipped_parts(output: str) -> tuple[str, ...]:
    """A part's name and the reason, of each test method that a unittest script has skipped."""
    # One method at a time, so that no match reaches from one into the verdict of another.
    methods = re.split(r"^(?=test_\w+ \()", output, flags=re.MULTILINE)
    found = (SKIPPED_PART.search(method) for method in methods)
    return tuple(f"{match[1]}: {match[3]}" for match in found if match)


def skip_reason(output: str) -> str:
    """Our scripts print "SKIP: reason"; googletest prints the reason below "file:line: Skipped"."""
    lines = [line.strip() for line in output.splitlines()]
    for number, line in enumerate(lines):
        if line.startswith("SKIP:"):
            return line.removeprefix("SKIP:").strip()
        if line.endswith(": Skipped") and number + 1 < len(lines):
            return lines[number + 1]
    return "no reason given"
