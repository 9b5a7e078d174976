#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/run.py makes of tests that pass, fail, fail once, decline, hang or are missing."""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runner import times  # noqa: E402
from runner.ctest import Test, cases_of, Outcome, tests_by_label  # noqa: E402
from runner.labels import LABELS, Label, make_plan, targets_of  # noqa: E402
from runner.queue import MOST_TRIED_AGAIN, Queue  # noqa: E402
from runner.tally import MOST_FLAKY, Session, Tally  # noqa: E402
from runner.times import Took, grown, read_times, with_times  # noqa: E402

PASS, FAIL = "true", "echo why; false"
SKIP = "echo 'SKIP: no moon'; exit 77"
CORES = 2


class Runs(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.session = Session(self.folder)
        self.enterContext(contextlib.redirect_stdout(io.StringIO()))

    def fails_once(self, name: str) -> str:
        """A script that fails when it runs for the first time."""
        mark = self.folder / f"{name}.ran"
        return f"test -e {mark} || {{ touch {mark}; echo first; false; }}"

    def write_tests(self, **scripts: str) -> None:
        """A build folder with these tests, as cmake writes them."""
        text = ""
        for name, script in scripts.items():
            text += f"add_test({name} sh -c [==[{script}]==])\n"
            text += (f"set_tests_properties({name} PROPERTIES LABELS some SKIP_RETURN_CODE 77 "
                     "TIMEOUT 2)\n")
        (self.folder / "CTestTestfile.cmake").write_text(text)

    def run_tests(self, retried: bool, expected: list[str] | None = None) -> Tally:
        tests = tests_by_label(self.folder)["some"]
        if expected is not None:
            tests = [Test(name) for name in expected]
        queue = Queue(self.session, CORES)
        queue.add(0, "preset", Label("some", ("preset",), retried=retried), self.folder, tests)
        queue.finish()
        return self.session.tallies[-1]

    def counts(self, tally: Tally) -> tuple[int, int, int, int]:
        return tally.passed, tally.failed, tally.skipped, len(tally.flaky)

    def test_skipped_parts_of_a_test_that_passes(self) -> None:
        script = """cat <<'END'
test_a (__main__.T.test_a) ... ok
test_b (__main__.T.test_b) ... noise
skipped 'no moon: (new)'
test_c (__main__.T.test_c) ... ok
OK (skipped=1)
END"""
        self.write_tests(a=script, b=PASS)
        tally = self.run_tests(retried=False)
        self.assertEqual(self.counts(tally), (2, 0, 1, 0))
        self.assertEqual(tally.skips, ["preset some: a: test_b: no moon: (new)"])

    def test_counts(self) -> None:
        self.write_tests(a=PASS, b=FAIL, c=SKIP, d=PASS)
        tally = self.run_tests(retried=False)
        self.assertEqual(self.counts(tally), (2, 1, 1, 0))
        self.assertIn("why", tally.failures[0])
        self.assertNotIn("did not run", tally.failures[0])
        self.assertIn("no moon", tally.skips[0])
        self.assertEqual(self.session.print_summary({}), 1)

    def test_retried(self) -> None:
        self.write_tests(a=PASS, b=FAIL, c=self.fails_once("c"))
        tally = self.run_tests(retried=True)
        self.assertEqual(self.counts(tally), (2, 1, 0, 1))
        self.assertIn("preset some: c\n", tally.flaky[0])
        self.assertIn("first", tally.flaky[0])

    def test_one_that_then_skips_itself_has_not_passed(self) -> None:
        mark = self.folder / "ran"
        self.write_tests(a=f"test -e {mark} && exit 77; touch {mark}; false")
        self.assertEqual(self.counts(self.run_tests(retried=True)), (0, 1, 0, 0))

    def test_not_retried(self) -> None:
        self.write_tests(c=self.fails_once("c"))
        self.assertEqual(self.counts(self.run_tests(retried=False)), (0, 1, 0, 0))

    def test_flaky_ones_are_listed_and_few_of_them_pass(self) -> None:
        self.write_tests(a=PASS, **{f"f{i}": self.fails_once(f"f{i}") for i in range(MOST_FLAKY)})
        self.run_tests(retried=True)
        self.session.judge_flaky_tests()
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            self.assertEqual(self.session.print_summary({}), 0)
        self.assertIn("flaky: preset some: f0\n", output.getvalue())
        self.assertTrue(output.getvalue().endswith("\n3 passed, 0 failed\n"))

    def test_too_many_flaky_ones_fail_the_run(self) -> None:
        self.write_tests(**{f"f{i}": self.fails_once(f"f{i}") for i in range(MOST_FLAKY + 1)})
        self.run_tests(retried=True)
        self.session.judge_flaky_tests()
        self.assertEqual(self.session.print_summary({}), 1)

    def test_no_more_at_once_than_the_cores_allow(self) -> None:
        """Each counts those that run beside it."""
        script = (f"mkdir {self.folder}/now-$$; ls -d {self.folder}/now-* | wc -l "
                  f">>{self.folder}/counts; sleep 0.2; rmdir {self.folder}/now-$$")
        self.write_tests(**{f"t{i}": script for i in range(6)})
        self.assertEqual(self.counts(self.run_tests(retried=False)), (6, 0, 0, 0))
        counts = list(map(int, (self.folder / "counts").read_text().split()))
        self.assertEqual(len(counts), 6)
        self.assertLessEqual(max(counts), CORES)

    def test_the_lower_rank_first(self) -> None:
        self.write_tests(**{name: f"echo {name} >>{self.folder}/order" for name in "abc"})
        queue = Queue(self.session, 1)
        blocker = Label("blocker", ("preset",), cores=1)
        for rank, name in ((0, "c"), (9, "a"), (1, "b")):
            queue.add(rank, "preset", blocker, self.folder, [Test(name)])
        queue.finish()
        self.assertEqual((self.folder / "order").read_text().split(), ["c", "b", "a"])

    def test_many_failures_are_not_tried_again(self) -> None:
        names = [f"f{i}" for i in range(MOST_TRIED_AGAIN + 1)]
        self.write_tests(**{name: self.fails_once(name) for name in names})
        self.assertEqual(self.counts(self.run_tests(retried=True)), (0, len(names), 0, 0))

    def test_hanging_test_fails(self) -> None:
        self.write_tests(a="exec sleep 60")
        self.assertEqual(self.counts(self.run_tests(retried=False)), (0, 1, 0, 0))

    def test_missing_tests_fail(self) -> None:
        self.write_tests(a=PASS)
        self.assertEqual(self.counts(self.run_tests(False, ["a", "gone"])), (1, 1, 0, 0))
        self.assertEqual(self.counts(self.run_tests(False, [])), (0, 1, 0, 0))

    def test_nothing_run_is_a_failure(self) -> None:
        self.assertEqual(self.session.print_summary({}), 1)

    def test_unlabelled_tests_are_seen(self) -> None:
        (self.folder / "CTestTestfile.cmake").write_text(
            "add_test(lost true)\n")
        self.assertEqual(tests_by_label(self.folder), {"": [Test("lost")]})


class Cases(unittest.TestCase):
    """Of a program of googletest."""

    REPORT = """<testsuites><testsuite name="S">
<testcase name="A" classname="S" status="run" result="completed"/>
<testcase name="B" classname="S" status="run" result="completed">
  <failure message="short">a_test.cc:7\nExpected 1</failure></testcase>
<testcase name="C" classname="S" status="run" result="skipped">
  <skipped message="m">a_test.cc:9\nno moon</skipped></testcase>
</testsuite></testsuites>"""

    def setUp(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.test = Test("unit.room.0", folder / "report.xml")

    def results(self, whole: str, report: str | None) -> dict[str, str]:
        if report is not None:
            self.test.report.write_text(report)
        return {name: outcome.result
                for name, outcome in cases_of(self.test, Outcome(whole, "its output")).items()}

    def test_each_counts(self) -> None:
        self.assertEqual(self.results("failed", self.REPORT),
                         {"room.S.A": "passed", "room.S.B": "failed", "room.S.C": "skipped"})
        outcomes = cases_of(self.test, Outcome("failed"))
        self.assertIn("Expected 1", outcomes["room.S.B"].text)
        self.assertEqual(outcomes["room.S.C"].text, "no moon")

    def test_a_leak_at_the_end_is_of_no_case(self) -> None:
        good = self.REPORT.replace("<failure", "<skipped").replace("</failure", "</skipped")
        self.assertEqual(self.results("failed", good)["unit.room.0"], "failed")
        self.assertNotIn("unit.room.0", self.results("passed", good))

    def test_what_is_no_report_or_has_no_case_hides_nothing(self) -> None:
        for report in (self.REPORT[:100], "<testsuites></testsuites>"):
            self.assertEqual(self.results("failed", report), {"unit.room.0": "failed"})
            self.assertIn("its output",
                          cases_of(self.test, Outcome("failed", "its output"))["unit.room.0"].text)

    def test_a_crash_leaves_no_report(self) -> None:
        self.assertEqual(self.results("failed", None), {"unit.room.0": "failed"})
        self.assertEqual(self.results("passed", None), {"unit.room.0": "failed"})


class Times(unittest.TestCase):
    PAGE = ("| label | what | presets | seconds | CPU seconds |\n|---|---|---|---:|---:|\n"
            "| `unit` | one class | asan, tsan | 100, 50 | 90, 40 |\n")

    def test_the_table_of_contributing_has_each_label_and_build(self) -> None:
        rows = set(read_times(times.PAGE.read_text(encoding="utf-8")))
        self.assertEqual(rows, {(preset, label.name) for label in LABELS
                                for preset in label.presets} |
                         {(preset, "build") for preset in ("release", "asan", "tsan")} |
                         {("tree", "static")})

    def test_what_grew_is_named(self) -> None:
        before = read_times(self.PAGE)
        self.assertEqual(before["tsan", "unit"], Took(50, 40))
        self.assertEqual(grown({("asan", "unit"): Took(109, 99)}, before), [])
        self.assertEqual(grown({("asan", "unit"): Took(120, 90), ("tsan", "unit"): Took(1, 60)},
                               before),
                         ["asan unit: 120 s, in the table 100",
                          "tsan unit: 60 CPU s, in the table 40"])
        self.assertEqual(grown({("asan", "new"): Took(1, 1), ("dev", "unit"): Took(9, 9)}, before),
                         ["asan new: not in the table"])

    def test_seconds_within_what_machines_differ_by_are_not(self) -> None:
        self.assertEqual(grown({("a", "b"): Took(4, 4)}, {("a", "b"): Took(1, 1)}), [])

    def test_what_was_measured_replaces_the_old(self) -> None:
        page = with_times(self.PAGE, {("tsan", "unit"): Took(61.4, 33)})
        self.assertIn("| asan, tsan | 100, 61 | 90, 33 |", page)
        self.assertEqual(page.replace("61", "50").replace("33", "40"), self.PAGE)

    def test_a_row_without_a_number_for_a_preset_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "not one number"):
            read_times(self.PAGE.replace("100, 50", "100"))


class Plans(unittest.TestCase):
    RARE = {"walk", "suite", "releases", "experiments", "patterns", "libfuzzer"}

    def names(self, *arguments: object, **options: bool) -> dict[str, list[str]]:
        return {preset: [label.name for label in labels]
                for preset, labels in make_plan(*arguments, **options).items()}

    def test_the_first_tier(self) -> None:
        plan = self.names([], [])
        self.assertEqual(list(plan), ["release", "asan", "tsan"])
        self.assertEqual({name for names in plan.values() for name in names},
                         {label.name for label in LABELS} - self.RARE)

    def test_both_tiers(self) -> None:
        plan = self.names([], [], rare=True)
        self.assertEqual({name for names in plan.values() for name in names},
                         {label.name for label in LABELS})

    def test_a_rare_label_runs_when_it_is_named(self) -> None:
        for name in ("walk", "suite"):
            for presets in ([], ["release"]):
                self.assertEqual(self.names(presets, [name]), {"release": [name]})

    def test_quick(self) -> None:
        self.assertEqual(self.names([], [], quick=True),
                         {"dev": ["unit", "script", "sim", "fuzz"]})

    def test_selections(self) -> None:
        self.assertEqual(self.names([], ["cluster", "sim"]),
                         {"release": ["cluster"], "asan": ["sim"]})
        self.assertEqual(self.names(["tsan"], []), {"tsan": ["shim", "unit"]})
        self.assertEqual(self.names(["tsan"], ["cluster"]), {"tsan": ["cluster"]})
        with self.assertRaisesRegex(ValueError, "nonsense"):
            make_plan([], ["nonsense"])
        with self.assertRaisesRegex(ValueError, "nothing to run"):
            make_plan(["release"], [], quick=True)

    def test_targets(self) -> None:
        by_name = {label.name: label for label in LABELS}

        def targets(preset: str, *names: str) -> tuple[str, ...]:
            return targets_of(preset, [by_name[name] for name in names])

        self.assertEqual(targets("release", "cluster", "script"),
                         ("script_tests", "system_tests"))
        self.assertEqual(targets("release", "unit"), ())
        self.assertEqual(targets("asan", "unit", "sim"), ("unit_tests",))
        self.assertEqual(targets("asan", "unit", "cluster"), ())
        self.assertEqual(targets("asan", "libfuzzer"), ("fuzzers",))
        self.assertEqual(targets("dev", "unit", "script"), ("script_tests", "unit_tests"))


if __name__ == "__main__":
    unittest.main()
