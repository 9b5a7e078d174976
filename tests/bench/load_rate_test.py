#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which rates `bench/lab.py load` tries, and which it takes for the highest."""

from __future__ import annotations

import unittest

from experiments.load import Point, highest_rate


class HighestRate(unittest.TestCase):
    def setUp(self) -> None:
        self.tried: list[float] = []

    def serves_up_to(self, rate: float, failed: int = 0, done: int = 10) -> Point | None:
        def measure(tried: float) -> Point:
            self.tried.append(tried)
            late = tried > rate
            p99_ms = 60 if late and not failed else 40
            return Point(tried, done, failed if late else 0, "", 1, p99_ms, 70, 1)
        return highest_rate(10, 1000, 50, measure)

    def test_it_is_doubled_and_then_narrowed_down(self) -> None:
        self.assertEqual(self.serves_up_to(70).rate, 70)
        self.assertEqual(self.tried, [10, 20, 40, 80, 60, 70, 75])

    def test_a_read_that_fails_is_too_much(self) -> None:
        self.assertEqual(self.serves_up_to(45, failed=1).rate, 45)

    def test_none_is_served(self) -> None:
        self.assertIsNone(self.serves_up_to(9))
        self.assertEqual(self.tried, [10])
        self.assertIsNone(self.serves_up_to(1000, done=0))

    def test_it_ends_at_the_last_rate(self) -> None:
        self.assertEqual(self.serves_up_to(5000).rate, 640)
        self.assertEqual(self.tried[-1], 640)


if __name__ == "__main__":
    unittest.main()
