#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which link `bench/lab.py slowed` makes slow, and what is left of it."""

from __future__ import annotations

import unittest

from experiments.slowed import busiest_uplink, with_slow_uplink
from labkit.links import Links
from labkit.process import LabError

LINKS = Links(100, node_mbit={"b": (20, 60)})


class SlowedLinks(unittest.TestCase):
    def test_the_uplink_that_is_busy_longest_is_chosen(self) -> None:
        streams = {("a", "b"): 1000.0, ("b", "r"): 300.0}
        self.assertEqual(busiest_uplink(LINKS, streams), "b")
        self.assertEqual(busiest_uplink(LINKS, {**streams, ("a", "r"): 600.0}), "a")
        self.assertEqual(busiest_uplink(Links(), streams), "b", "nothing limits them")

    def test_only_its_uplink_changes(self) -> None:
        after = with_slow_uplink(LINKS, "b", 0.1)
        self.assertEqual((after.up("b"), after.down("b")), (2, 60))
        self.assertEqual((after.up("a"), after.down("a")), (100, 100))
        self.assertEqual(with_slow_uplink(LINKS, "a", 0.5).up("a"), 50)
        with self.assertRaisesRegex(LabError, "no rate that could become less"):
            with_slow_uplink(Links(), "a", 0.5)


if __name__ == "__main__":
    unittest.main()
