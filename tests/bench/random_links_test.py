#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The random links of `bench/lab.py links`, and the bound that repairs over them are compared
with."""

from __future__ import annotations

import unittest

from experiments.links import (
    NODE_MBIT, PAIR_MBIT, REGION_MBIT, limits, random_links, rate_by_node_links, seeds)
from labkit.links import Links
from labkit.process import LabError

NODES = [f"node-{i}" for i in range(1, 15)] + ["requestor"]
ALL = ("nodes", "pairs", "regions")


class RandomLinks(unittest.TestCase):
    def test_all_kinds_are_within_their_spans(self) -> None:
        links = random_links(1, NODES, ALL, scale=0.5)
        self.assertEqual(set(links.node_mbit), set(NODES))
        self.assertEqual(len(links.pair_mbit), len(NODES) * (len(NODES) - 1))
        self.assertEqual(len(set(links.racks.values())), 4)
        self.assertEqual(set(links.racks), set(NODES))
        for rates, (least, most) in (
                ([rate for both in links.node_mbit.values() for rate in both], NODE_MBIT),
                (list(links.pair_mbit.values()), PAIR_MBIT), ([links.rack_mbit], REGION_MBIT)):
            self.assertGreaterEqual(min(rates), least / 2)
            self.assertLessEqual(max(rates), most / 2)
            self.assertEqual(len(set(rates)), len(rates))

    def test_a_seed_always_draws_the_same(self) -> None:
        links = random_links(7, NODES, ALL, scale=1)
        self.assertEqual(links, random_links(7, NODES, ALL, scale=1))
        self.assertNotEqual(links, random_links(8, NODES, ALL, scale=1))
        alone = random_links(7, NODES, ("pairs",), scale=1)
        self.assertEqual(alone.pair_mbit, links.pair_mbit)
        self.assertEqual((alone.node_mbit, alone.racks, alone.rack_mbit), ({}, {}, None))

    def test_words(self) -> None:
        self.assertEqual(seeds("random:3,14"), [3, 14])
        self.assertEqual(limits("pairs,nodes"), {"nodes", "pairs"})
        with self.assertRaisesRegex(LabError, "racks is none of nodes, pairs, regions"):
            limits("nodes,racks")
        with self.assertRaisesRegex(LabError, "SEED must be a number"):
            seeds("random:x")


class Bound(unittest.TestCase):
    def rate(self, ups: list[float], down: float, downs: list[float] | None = None) -> float:
        nodes = [f"h{i}" for i in range(len(ups))]
        return rate_by_node_links(
            Links(node_mbit={"r": (1, down), **dict(zip(nodes, zip(ups, downs or [1000] * 9)))}),
            nodes, "r", k=2)

    def test_by_hand(self) -> None:
        self.assertAlmostEqual(self.rate([10, 10], 100), 10)
        self.assertAlmostEqual(self.rate([10, 10, 10], 100), 15)
        self.assertAlmostEqual(self.rate([10, 10, 10], 12), 12)
        # One that sends 1, beside two that send whatever there is: 2 x <= 1 + 2 x.
        self.assertAlmostEqual(self.rate([1, 50, 50], 100), 50.5, delta=1e-6)
        # Two streams a slice: 8 + 3 + 3 of downlinks take 7.
        self.assertAlmostEqual(self.rate([10, 10], 8, [3, 3]), 7)


if __name__ == "__main__":
    unittest.main()
