#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/guard.py: how it reads figures, and what it concludes from them."""

from __future__ import annotations

import json
import random
import re
import unittest
from typing import Any, Callable

from guardkit.samples import Name, Round, Samples, filter_for, orders, times_of
from guardkit.verdict import FASTER, SAME, SLOWER, compare, compare_all, quantile, run_noise
from labkit.process import LabError

NAME: Name = ("codec_bench", "MultiplyAdd")
THRESHOLD = 0.05


def run_of(name: str, cpu: float, real: float = 1.0, unit: str = "ns", **more: Any,
           ) -> dict[str, Any]:
    return {"name": name, "run_type": "iteration", "cpu_time": cpu, "real_time": real,
            "time_unit": unit, **more}


def printed(*runs: dict[str, Any]) -> str:
    return json.dumps({"context": {"num_cpus": 2}, "benchmarks": runs})


def rounds_of(time: Callable[[str], float], count: int = 5) -> list[Round]:
    """Rounds in which each run takes what `time` says for its side."""
    rounds = []
    for order in orders(count):
        rounds.append(Round())
        for side in order:
            getattr(rounds[-1], side).append(time(side))
    return rounds


class Parsing(unittest.TestCase):
    def test_takes_cpu_time_in_nanoseconds(self) -> None:
        times = times_of(printed(run_of("a", 12.5), run_of("b/n:14", 2, unit="us"),
                                 run_of("c/process_time", 3, unit="ms"), run_of("d", 1, unit="s")),
                         "x_bench")
        self.assertEqual(times, {"a": 12.5, "b/n:14": 2e3, "c/process_time": 3e6, "d": 1e9})

    def test_takes_the_time_that_a_benchmark_keeps_itself(self) -> None:
        times = times_of(printed(run_of("a/bytes:512/manual_time", 7, real=3)), "x_bench")
        self.assertEqual(times, {"a/bytes:512/manual_time": 3})

    def test_leaves_aggregates_out(self) -> None:
        output = printed(run_of("a", 1), run_of("a_median", 9) | {"run_type": "aggregate"})
        self.assertEqual(times_of(output, "x_bench"), {"a": 1})

    def test_a_benchmark_that_failed_is_an_error(self) -> None:
        failed = run_of("a", 1, error_occurred=True, error_message="the rebuilt block is wrong")
        with self.assertRaisesRegex(LabError, "x_bench: a: the rebuilt block is wrong"):
            times_of(printed(run_of("b", 1), failed), "x_bench")

    def test_anything_else_is_an_error(self) -> None:
        for output in ("", "{}", "usage: x_bench", "[1]"):
            with self.assertRaisesRegex(LabError, "x_bench"):
                times_of(output, "x_bench")
        with self.assertRaisesRegex(LabError, "no time"):
            times_of(printed(run_of("a", 0)), "x_bench")

    def test_a_filter_matches_its_names_and_no_others(self) -> None:
        names = ["Repair/rp/k:10", "a.b(c)|d", "Encode/bytes:64"]
        pattern = re.compile(filter_for(names))
        for name in names:
            self.assertTrue(pattern.search(name), name)
        for name in ("Repair/rp/k:100", "xEncode/bytes:64", "aXb(c)|d", "d"):
            self.assertFalse(pattern.search(name), name)


class Verdicts(unittest.TestCase):
    def test_quantile(self) -> None:
        self.assertEqual(quantile([], 0.9), 0.0)
        self.assertEqual(quantile([3, 1, 2], 0.9), 3)
        self.assertEqual(quantile(list(range(1, 11)), 0.9), 9)

    def test_a_quiet_slowdown_is_found_in_either_direction(self) -> None:
        slower = compare(NAME, rounds_of(lambda side: 108 if side == "b" else 100), THRESHOLD, 0)
        self.assertEqual(slower.verdict, SLOWER)
        self.assertAlmostEqual(slower.ratio, 1.08)
        self.assertAlmostEqual(slower.limit, 1.05)
        faster = compare(NAME, rounds_of(lambda side: 100 if side == "b" else 108), THRESHOLD, 0)
        self.assertEqual(faster.verdict, FASTER)

    def test_what_is_below_the_threshold_is_the_same(self) -> None:
        rounds = rounds_of(lambda side: 104 if side == "b" else 100)
        self.assertEqual(compare(NAME, rounds, THRESHOLD, 0).verdict, SAME)

    def test_a_build_that_differs_from_itself_raises_the_limit(self) -> None:
        # A's first run in each round takes 100 and its last one 110; B takes 115.
        rounds = [Round([100, 110], [115, 115]) for _ in range(5)]
        found = compare(NAME, rounds, THRESHOLD, 0)
        self.assertAlmostEqual(found.same_build, 1.1)
        self.assertAlmostEqual(found.limit, 1.21)
        self.assertEqual(found.verdict, SAME)

    def test_the_noise_of_the_run_raises_the_limit(self) -> None:
        rounds = rounds_of(lambda side: 108 if side == "b" else 100)
        self.assertEqual(compare(NAME, rounds, THRESHOLD, 0.05).verdict, SAME)

    def test_a_slowdown_shows_though_most_runs_are_disturbed(self) -> None:
        times = iter([100, 190, 140, 160, 120, 108, 200, 130, 150, 100, 108, 170] * 2)
        disturbed = rounds_of(lambda side: next(times) * (1.1 if side == "b" else 1), 6)
        found = compare(NAME, disturbed, THRESHOLD, 0)
        self.assertAlmostEqual(found.quiet_ratio, 1.1, places=2)

    def test_a_slowdown_of_a_few_rounds_is_none(self) -> None:
        quiet, busy = Round([100, 100], [99, 99]), Round([100, 100], [200, 200])
        found = compare(NAME, [busy, quiet, busy, quiet, busy], THRESHOLD, 0)
        self.assertGreater(found.ratio, found.limit)
        self.assertEqual(found.verdict, SAME)
        self.assertAlmostEqual(found.highest, 2)

    def test_a_drift_hits_both_sides_alike(self) -> None:
        clock = iter(range(1000))
        rounds = rounds_of(lambda _side: 100 + next(clock))
        found = compare(NAME, rounds, THRESHOLD, 0)
        self.assertAlmostEqual(found.ratio, 1, places=2)
        self.assertEqual(found.verdict, SAME)


class Noise(unittest.TestCase):
    """200 benchmarks with noise of 2 %, and a third of all runs disturbed by much more; seeded."""

    @staticmethod
    def samples(seed: int, slowdown: float, slow_share: int) -> Samples:
        source = random.Random(seed)

        def time(side: str, slow: bool) -> float:
            spell = source.uniform(1, 2) if source.random() < 0.33 else 1.0
            return (100 * source.lognormvariate(0, 0.02) * spell
                    * (slowdown if slow and side == "b" else 1))
        return {("x_bench", str(i)): rounds_of(lambda side: time(side, i < slow_share), 10)
                for i in range(200)}

    def slower(self, samples: Samples) -> set[str]:
        return {each.name[1]
                for each in compare_all(samples, THRESHOLD, run_noise(samples))
                if each.verdict == SLOWER}

    def test_is_not_called_a_regression(self) -> None:
        # Twice, as guard.py does: 20 runs of 200 benchmarks, none of which changed.
        for seed in range(20):
            first, again = (self.slower(self.samples(each, 1.0, 0)) for each in (seed, 1000 + seed))
            self.assertEqual(first & again, set(), f"seed {seed}")

    def test_does_not_hide_a_regression(self) -> None:
        for seed in range(5):
            first, again = (self.slower(self.samples(each, 1.25, 3))
                            for each in (seed, 1000 + seed))
            self.assertEqual(first & again, {"0", "1", "2"}, f"seed {seed}")


if __name__ == "__main__":
    unittest.main()
