# SPDX-License-Identifier: Apache-2.0
"""Runs one test of a build by ctest, and reads what became of it and of the cases in it."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from runner.builds import SANITIZER_OPTIONS
from runner.children import End
from runner.tally import Session

TEST_SECONDS = 300  # of a test that names no TIMEOUT of its own
LONGEST_TEST_SECONDS = 7500  # against a hang of ctest itself; the label suite has two hours
# What is kept of a test that passed: enough to find the parts that it skipped.
PASSED_OUTPUT_BYTES = 1 << 20
# unittest's line for such a part; what the part printed may stand between its name and the verdict.
SKIPPED_PART = re.compile(r"^(test_\w+) \([^)]*\).*?\bskipped (['\"])(.*?)\2$",
                          re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Test:
    """A test that ctest knows. `report`: where googletest writes what became of the cases in it;
    None for a test that is one case."""

    name: str
    report: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """Of one case: "passed", "failed" or "skipped", and what it said or why it was skipped.
    `skipped_parts`: of one that passed, the parts that it skipped, with their reasons."""

    result: str
    text: str = ""
    skipped_parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """Of one test: its cases by name, and what it took."""

    outcomes: dict[str, Outcome]
    end: End


def tests_by_label(build_folder: Path) -> dict[str, list[Test]]:
    """Each label of a build with its tests; "" for tests without one."""
    listed = subprocess.run(["ctest", "--test-dir", str(build_folder), "--show-only=json-v1"],
                            capture_output=True, text=True, check=True)
    tests: dict[str, list[Test]] = defaultdict(list)
    for entry in json.loads(listed.stdout)["tests"]:
        properties = {item["name"]: item["value"] for item in entry.get("properties", [])}
        label = (properties.get("LABELS") or [""])[0]
        report = next((Path(variable.removeprefix("GTEST_OUTPUT=xml:"))
                       for variable in properties.get("ENVIRONMENT", ())
                       if variable.startswith("GTEST_OUTPUT=xml:")), None)
        tests[label].append(Test(entry["name"], report))
    return tests


def run_test(session: Session, preset: str, build_folder: Path, test: Test,
             again: bool = False) -> Result:
    """`again`: its log does not replace that of the first try."""
    stem = f"{preset}-{test.name}{'-again' if again else ''}".replace("/", "_")
    junit, log = session.logs / f"{stem}.xml", session.logs / f"{stem}.log"
    for stale in (junit, test.report):
        if stale:
            stale.unlink(missing_ok=True)
    end = session.children.run(
        ["ctest", "--test-dir", str(build_folder), "--tests-regex", f"^{re.escape(test.name)}$",
         "--timeout", str(TEST_SECONDS), "--test-output-size-passed", str(PASSED_OUTPUT_BYTES),
         "--output-junit", str(junit)], log, LONGEST_TEST_SECONDS, SANITIZER_OPTIONS)
    whole = read_report(junit).get(test.name) if junit.exists() else None
    if whole is None:
        whole = Outcome("failed", f"it did not run\n{log.read_text(errors='replace')}")
    elif end.code and whole.result != "failed":
        whole = Outcome("failed",
                        f"ctest: exit code {end.code}\n{log.read_text(errors='replace')}")
    return Result(cases_of(test, whole), end)


def cases_of(test: Test, whole: Outcome) -> dict[str, Outcome]:
    """The cases of a test whose program ended as `whole` says."""
    if test.report is None:
        return {test.name: whole}
    if not test.report.exists():  # it has crashed, or was killed: which cases ran, its output says
        return {test.name: Outcome("failed", f"{whole.text}\nno report of its cases")}
    try:
        cases = read_googletest(test)
    except ElementTree.ParseError as error:
        return {test.name: Outcome("failed", f"{whole.text}\nits report cannot be read: {error}")}
    if not cases:
        return {test.name: Outcome("failed", f"{whole.text}\nno case ran")}
    # A leak, or a thread at the end, is of no case.
    if whole.result == "failed" and all(case.result != "failed" for case in cases.values()):
        cases[test.name] = whole
    return cases


def read_googletest(test: Test) -> dict[str, Outcome]:
    """As googletest reports them. Its reports of shards leave out the cases of other shards."""
    assert test.report
    room = test.name.split(".")[1]
    found = {}
    for case in ElementTree.parse(test.report).getroot().iter("testcase"):
        failures = [failure.text or "" for failure in case.iter("failure")]
        skipped = case.find("skipped")
        if failures:
            outcome = Outcome("failed", "\n".join(failures))
        elif skipped is not None:
            lines = (skipped.text or skipped.get("message") or "").strip().splitlines()
            # The first line is the place.
            outcome = Outcome("skipped", lines[-1] if lines else "no reason given")
        elif case.get("status") == "notrun":
            outcome = Outcome("skipped", "disabled")
        else:
            outcome = Outcome("passed")
        found[f"{room}.{case.get('classname')}.{case.get('name')}"] = outcome
    return found


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
    """Our scripts print "SKIP: reason"."""
    for line in output.splitlines():
        if line.strip().startswith("SKIP:"):
            return line.strip().removeprefix("SKIP:").strip()
    return "no reason given"
