#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The paper's formulas and its three algorithms, against numbers worked out by hand."""

from __future__ import annotations

import json
import unittest
from dataclasses import replace
from pathlib import Path
from typing import Any

from degradedkit import analysis, formulas
from degradedkit.figure import Comparison
from degradedkit.page import comparison_table
from degradedkit.paper import AT_ONCE, WAYS
from degradedkit.schedulers import ALGORITHMS, Job, Kind, Slave
from degradedkit.summary import box

EXAMPLES = Path(__file__).with_name("schedules.json")


class Formulas(unittest.TestCase):
    def test_one_setting_by_hand(self) -> None:
        # W = 1 GB/s, so that a block of 1 GB takes 1 s: reads of (2-1)·4/2 = 2 s, 3 in each rack.
        setting = formulas.Setting(nodes=10, racks=2, map_slots=2, block_bytes=1e9,
                                   rack_bytes_per_s=1e9, map_seconds=5.0, blocks=60, n=6, k=4)
        self.assertAlmostEqual(formulas.degraded_read_seconds(setting), 2.0)
        self.assertAlmostEqual(formulas.normal_runtime(setting), 15.0)
        self.assertAlmostEqual(formulas.locality_first_runtime(setting), 15.0 + 6.0 + 5.0)
        self.assertAlmostEqual(formulas.degraded_first_runtime(setting), 60 * 5 / 18 + 5.0)
        slow = replace(setting, rack_bytes_per_s=1e8)
        self.assertAlmostEqual(formulas.degraded_first_runtime(slow), 60.0 + 5.0)

    def test_figure_5(self) -> None:
        expected = {"code": [15.3, 22.0, 27.7, 32.6], "blocks": [25.9, 27.7, 28.4, 28.7],
                    "rack_mbit": [17.5, 33.8, 44.1, 27.7]}
        for sweep, percents in expected.items():
            ours = [round(100 * row["reduction"], 1) for row in analysis.rows()
                    if row["sweep"] == sweep]
            self.assertEqual(ours, percents)


class Algorithms(unittest.TestCase):
    def test_examples(self) -> None:
        examples = json.loads(EXAMPLES.read_text())
        self.assertEqual({example["algorithm"] for example in examples}, set(ALGORITHMS))
        for example in examples:
            with self.subTest(example["name"]):
                answer = ALGORITHMS[example["algorithm"]](
                    [Job(**job) for job in example["jobs"]], example["free_slots"],
                    lambda: Slave(**example["slave"]))
                self.assertEqual([[job, kind.value] for job, kind in answer], example["answer"])

    def test_no_degraded_task_no_difference(self) -> None:
        """Without a failure the three are one."""
        for free in range(5):
            for local in range(4):
                for remote in range(4):
                    jobs = [Job(local, remote, 0, 7, 20, 0, 0), Job(2, 1, 0, 0, 3, 0, 0)]
                    answers = [algorithm(jobs, free, lambda: Slave(9, 1, 0, 5, 11))
                               for algorithm in ALGORITHMS.values()]
                    self.assertEqual(answers, [answers[0]] * 3)
                    self.assertEqual(len(answers[0]), min(free, local + remote + 3))
                    self.assertNotIn(Kind.DEGRADED, [kind for _, kind in answers[0]])


class Page(unittest.TestCase):
    def test_a_difference_has_a_cause(self) -> None:
        def of(edf: float, **names: str) -> list[dict[str, Any]]:
            return [{**names, "algorithm": algorithm, "normalized": [[value]]}
                    for algorithm, value in (("LF", 2.0), ("EDF", edf))]
        rows = [row for links in WAYS for lost, edf in (("a", 1.46), ("b", 1.58), ("c", 1.08))
                for row in of(edf, links=links, lost=lost)]
        # In few clusters: what a change changes counts, not what it comes to.
        assumptions = [row for name, a, b, c in (
            (AT_ONCE, 1.50, 1.60, 1.10), (f"{AT_ONCE}; slow links", 1.5, 1.42, 1.3))
            for lost, edf in (("a", a), ("b", b), ("c", c))
            for row in of(edf, assumption=name, case=lost)]

        def compared(what: str, paper: tuple[float, ...], *lost: str) -> Comparison:
            return Comparison(what, paper, tuple({"lost": each} for each in lost),
                              tuple({"case": each} for each in lost))
        table = comparison_table([
            compared("near", (30.0,), "a"), compared("far", (30.0,), "b"),
            compared("unknown", (60.0,), "b"), compared("ends", (26.0, 44.0), "a", "c")],
            rows, assumptions)
        self.assertIn("| near | 30.0 | 27.0 | 27.0 | 27.0 | -3.0 |  |", table)
        self.assertIn("| far | 30.0 | 21.0 | 21.0 | 21.0 | -9.0 "
                      f"| {AT_ONCE}; slow links: 30.0 |", table)
        self.assertIn("| unknown | 60.0 | 21.0 | 21.0 | 21.0 | -39.0 "
                      f"| none of 1 changes; nearest: {AT_ONCE}; slow links: 30.0 |", table)
        self.assertIn("| ends | 26.0 to 44.0 | 27.0 to 46.0 | 27.0 to 46.0 | 27.0 to 46.0 "
                      "| +1.0, +2.0 |  |", table)

    def test_boxes(self) -> None:
        self.assertEqual(box([5.0, 1.0, 2.0, 3.0, 4.0, 100.0]), {
            "least": 1.0, "lower": 2.25, "median": 3.5, "upper": 4.75, "most": 5.0,
            "outliers": [100.0]})
        self.assertEqual(box([2.0])["median"], 2.0)


if __name__ == "__main__":
    unittest.main()
