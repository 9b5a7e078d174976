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

from runner.ctest import (  # noqa: E402
    MOST_TRIED_AGAIN, TierPlan, run_once, settle, tests_by_label)
from runner.labels import LABELS, make_plan, targets_of  # noqa: E402
from runner.tier import MOST_FLAKY, Session, Tier  # noqa: E402

PASS, FAIL = "true", "echo why; false"
SKIP = "echo 'SKIP: no moon'; exit 77"


class Runner(unittest.TestCase):
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

    def run_tests(self, retried: bool, expected: list[str] | None = None) -> Tier:
        listed = tests_by_label(self.folder)["some"]
        return settle(self.session, run_once(
            self.session, TierPlan("preset", "some", self.folder, 2, retried),
            listed if expected is None else expected))

    def counts(self, tier: Tier) -> tuple[int, int, int, int]:
        return tier.passed, tier.failed, tier.skipped, len(tier.flaky)

    def test_skipped_parts_of_a_test_that_passes(self) -> None:
        script = """cat <<'END'
test_a (__main__.T.test_a) ... ok
test_b (__main__.T.test_b) ... noise
skipped 'no moon: (new)'
test_c (__main__.T.test_c) ... ok
OK (skipped=1)
END"""
        self.write_tests(a=script, b=PASS)
        tier = self.run_tests(retried=False)
        self.assertEqual(self.counts(tier), (2, 0, 1, 0))
        self.assertEqual(tier.skips, ["preset some: a: test_b: no moon: (new)"])

    def test_counts(self) -> None:
        self.write_tests(a=PASS, b=FAIL, c=SKIP, d=PASS)
        tier = self.run_tests(retried=False)
        self.assertEqual(self.counts(tier), (2, 1, 1, 0))
        self.assertIn("why", tier.failures[0])
        self.assertNotIn("did not run", tier.failures[0])
        self.assertIn("no moon", tier.skips[0])
        self.assertEqual(self.session.print_summary(), 1)

    def test_retried(self) -> None:
        self.write_tests(a=PASS, b=FAIL, c=self.fails_once("c"))
        tier = self.run_tests(retried=True)
        self.assertEqual(self.counts(tier), (2, 1, 0, 1))
        self.assertIn("preset some: c\n", tier.flaky[0])
        self.assertIn("first", tier.flaky[0])

    def test_not_retried(self) -> None:
        self.write_tests(c=self.fails_once("c"))
        self.assertEqual(self.counts(self.run_tests(retried=False)), (0, 1, 0, 0))

    def test_flaky_ones_are_listed_and_few_of_them_pass(self) -> None:
        self.write_tests(a=PASS, **{f"f{i}": self.fails_once(f"f{i}") for i in range(MOST_FLAKY)})
        self.run_tests(retried=True)
        self.session.judge_flaky_tests()
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            self.assertEqual(self.session.print_summary(), 0)
        self.assertIn("flaky: preset some: f0\n", output.getvalue())
        self.assertTrue(output.getvalue().endswith("\n3 passed, 0 failed\n"))

    def test_too_many_flaky_ones_fail_the_run(self) -> None:
        self.write_tests(**{f"f{i}": self.fails_once(f"f{i}") for i in range(MOST_FLAKY + 1)})
        self.run_tests(retried=True)
        self.session.judge_flaky_tests()
        self.assertEqual(self.session.print_summary(), 1)

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
        self.assertEqual(self.session.print_summary(), 1)

    def test_unlabelled_tests_are_seen(self) -> None:
        (self.folder / "CTestTestfile.cmake").write_text(
            "add_test(lost true)\nadd_test(room_unit_test_NOT_BUILT room_unit_test_NOT_BUILT)\n")
        self.assertEqual(tests_by_label(self.folder), {"": ["lost"]})


class Plans(unittest.TestCase):
    def names(self, *arguments: object) -> dict[str, list[str]]:
        return {preset: [label.name for label in labels]
                for preset, labels in make_plan(*arguments).items()}

    def test_whole_run_has_every_usual_label(self) -> None:
        plan = self.names([], [], False)
        self.assertEqual(list(plan), ["release", "asan", "tsan"])
        self.assertEqual({name for names in plan.values() for name in names},
                         {label.name for label in LABELS} - {"walk", "suite"})

    def test_an_unusual_label_runs_when_it_is_named(self) -> None:
        for name in ("walk", "suite"):
            self.assertNotIn(name, self.names(["release"], [], False)["release"])
            for presets in ([], ["release"]):
                self.assertEqual(self.names(presets, [name], False), {"release": [name]})

    def test_quick(self) -> None:
        self.assertEqual(self.names([], [], True), {"dev": ["unit", "script", "sim", "fuzz"]})

    def test_selections(self) -> None:
        self.assertEqual(self.names([], ["cluster", "sim"], False),
                         {"release": ["cluster"], "asan": ["sim"]})
        self.assertEqual(self.names(["tsan"], [], False), {"tsan": ["unit", "script", "shim"]})
        self.assertEqual(self.names(["tsan"], ["cluster"], False), {"tsan": ["cluster"]})
        with self.assertRaisesRegex(ValueError, "nonsense"):
            make_plan([], ["nonsense"], False)

    def test_targets(self) -> None:
        by_name = {label.name: label for label in LABELS}
        self.assertEqual(targets_of("release", [by_name["cluster"]]), ("system_tests",))
        self.assertEqual(targets_of("release", [by_name["unit"]]), ())
        self.assertEqual(targets_of("asan", [by_name["unit"]]), ("unit_tests",))
        self.assertEqual(targets_of("asan", [by_name["unit"], by_name["cluster"]]), ())
        self.assertEqual(targets_of("asan", [by_name["libfuzzer"]]), ("unit_tests",))


if __name__ == "__main__":
    unittest.main()
