#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chain of a stripe's losses: closed forms, limits, monotone in every input, Monte Carlo."""

from __future__ import annotations

import itertools
import math
import random
import statistics
import unittest
from dataclasses import replace
from fractions import Fraction
from typing import Sequence

from degradedkit.durability import (
    YEAR, Code, Scheme, Setting, chain, mean_reads, mean_time, nines, patterns, played, racks_of,
    repair_seconds, share_of_racks, steps)
from degradedkit.markov import LOST, mean_time_to_loss

STAR = Scheme("conventional", lambda reads: float(reads), 0.7)
PATH = Scheme("rp", lambda reads: 1.0, 0.7)
RS = Code("rs(9,6)", 9, 6, 3)
# Two blocks on different nodes of which no two may be lost, if they are 0 and 1 or 2 and 3.
PAIRS = Code("pairs", 6, 2, 2, frozenset({0b11, 0b1100}))


def exact_mean_time(rates: Sequence[dict[int, Fraction]]) -> Fraction:
    """By Gauss-Jordan elimination with fractions: T_i = (1 + sum of r_ij T_j) / sum of r_ij."""
    n = len(rates)
    rows = [[sum(row.values()) if i == j else -row.get(j, Fraction(0)) for j in range(n)]
            + [Fraction(1)] for i, row in enumerate(rates)]
    for i in range(n):
        pivot = rows[i][i]
        rows[i] = [value / pivot for value in rows[i]]
        for j in range(n):
            if j != i:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i])]
    return rows[0][n]


class Chains(unittest.TestCase):
    def test_two_replicas(self) -> None:
        fail, repair = 1e-6, 1e-2
        rates = [{1: 2 * fail}, {0: repair, LOST: fail}]
        self.assertAlmostEqual(mean_time_to_loss(rates) * 2 * fail**2 / (3 * fail + repair), 1.0,
                               places=12)

    def test_three_replicas(self) -> None:
        a, b, c, d, e = 3e-9, 2e-9, 1e-9, 1e-3, 2e-3
        rates = [{1: a}, {0: d, 2: b}, {1: e, LOST: c}]
        expected = 1 / a + 1 / b + 1 / c + d / (a * b) + e / (b * c) + d * e / (a * b * c)
        self.assertAlmostEqual(mean_time_to_loss(rates) / expected, 1.0, places=12)

    def test_any_chain_as_with_fractions(self) -> None:
        chance = random.Random(7)
        for _ in range(50):
            n = chance.randint(1, 6)
            exact = [{to: Fraction(10) ** chance.randint(-12, 3) * chance.randint(1, 9)
                      for to in [*range(n), LOST] if to != i and (to == LOST
                                                                  or chance.random() < 0.7)}
                     for i in range(n)]
            found = mean_time_to_loss([{to: float(rate) for to, rate in row.items()}
                                       for row in exact])
            self.assertAlmostEqual(found / float(exact_mean_time(exact)), 1.0, places=9)


class Patterns(unittest.TestCase):
    def test_of_reed_solomon_all(self) -> None:
        self.assertEqual([len(some) for some in patterns(RS)], [1, 9, 36, 84])

    def test_what_does_not_decode_is_left_out(self) -> None:
        self.assertEqual([len(some) for some in patterns(PAIRS)], [1, 6, 13])

    def test_steps_are_means_over_patterns(self) -> None:
        step = steps(PAIRS, 2)
        self.assertAlmostEqual(step.blocks[0][1], 6)
        # Of six blocks four have a partner whose loss would be fatal.
        self.assertAlmostEqual(step.blocks[1][LOST], 4 / 6)
        self.assertAlmostEqual(step.blocks[1][2], 5 - 4 / 6)
        self.assertAlmostEqual(step.blocks[2][LOST], 4)
        # Racks are {0, 1}, {2, 3}, {4, 5}; two of them are fatal at once.
        self.assertEqual(racks_of(6, 2), [0b11, 0b1100, 0b110000])
        self.assertAlmostEqual(step.racks[0][LOST], 2)
        self.assertAlmostEqual(step.racks[0][2], 1)

    def test_every_block_or_rack_leads_somewhere(self) -> None:
        for code, rack_blocks in ((RS, 3), (RS, 1), (PAIRS, 2)):
            step = steps(code, rack_blocks)
            for lost, row in enumerate(step.blocks):
                self.assertAlmostEqual(sum(row.values()), code.n - lost)
            self.assertAlmostEqual(sum(step.racks[0].values()), math.ceil(code.n / rack_blocks))


class Stripes(unittest.TestCase):
    # What makes stripes last longer, from worse to better.
    BETTER = {"detection": (600.0, 30.0, 0.0), "delay": (3600.0, 600.0, 0.0),
              "node_mttf": (YEAR, 2 * YEAR, 9 * YEAR), "node_bytes": (1e14, 1e13, 1e12),
              "link_rate": (1e6, 1e7, 1e9), "nodes": (30, 100, 1000),
              "rack_mttf": (5 * YEAR, 50 * YEAR, math.inf)}

    def test_monotone_in_every_input(self) -> None:
        for code, blocks, scheme in itertools.product((RS, PAIRS), (1, 2), (STAR, PATH)):
            for name, values in self.BETTER.items():
                times = [mean_time(replace(Setting(rack_blocks=blocks), **{name: value}), code,
                                   scheme) for value in values]
                self.assertEqual(times, sorted(set(times)), f"{code.name} {name}")

    def test_more_parity_and_better_schemes_last_longer(self) -> None:
        self.assertLess(mean_time(Setting(), Code("", 8, 6, 2), STAR),
                        mean_time(Setting(), RS, STAR))
        self.assertLess(mean_time(Setting(), RS, STAR), mean_time(Setting(), RS, PATH))
        faster = replace(PATH, of_bound=0.9)
        self.assertLess(mean_time(Setting(), RS, PATH), mean_time(Setting(), RS, faster))

    def test_without_repair_the_first_losses_decide(self) -> None:
        setting = Setting(link_rate=1e-3, rack_mttf=math.inf)
        expected = setting.node_mttf * sum(1 / (9 - i) for i in range(4))
        self.assertAlmostEqual(mean_time(setting, RS, STAR) / expected, 1.0, places=3)

    def test_without_a_wait_for_others_rp_is_k_fold(self) -> None:
        """Each of the urgent states is left k times as fast, where links do nothing else."""
        setting = Setting(detection=0.0, node_bytes=1.0, delay=0.0, rack_mttf=math.inf)
        self.assertAlmostEqual(repair_seconds(setting, RS, STAR, 2)
                               / repair_seconds(setting, RS, PATH, 2), 6.0, places=6)
        self.assertAlmostEqual(mean_time(setting, RS, PATH) / mean_time(setting, RS, STAR), 6.0**3,
                               delta=0.1)

    def test_a_recovery_of_all_is_as_long_under_each_scheme(self) -> None:
        setting = Setting(node_bytes=1e15)
        ratio = repair_seconds(setting, RS, STAR, 1) / repair_seconds(setting, RS, PATH, 1)
        self.assertAlmostEqual(ratio, 1.0, places=3)

    def test_only_the_first_loss_waits_for_the_window(self) -> None:
        late = Setting(delay=1000.0)
        for lost, more in ((1, 1000.0), (2, 0.0), (3, 0.0)):
            self.assertAlmostEqual(repair_seconds(late, RS, STAR, lost)
                                   - repair_seconds(replace(late, delay=0.0), RS, STAR, lost), more)

    def test_a_rack_that_is_hardly_ever_lost_is_one_that_never_is(self) -> None:
        for rack_blocks, scheme in itertools.product((1, 2, 3), (STAR, PATH)):
            never, hardly = (mean_time(Setting(rack_blocks=rack_blocks, rack_mttf=mttf), RS, scheme)
                             for mttf in (math.inf, 1e15 * YEAR))
            self.assertAlmostEqual(hardly / never, 1.0, places=3)

    def test_stripes_that_have_lost_a_rack_wait_for_those_of_the_rack(self) -> None:
        setting = Setting(rack_blocks=3, rack_mttf=YEAR)
        self.assertEqual(share_of_racks(setting, RS, STAR, 2), 0.0)
        self.assertGreater(share_of_racks(setting, RS, STAR, 3), 0.999)
        # Ten nodes' blocks of each, six read for each third, by 90 nodes at 0.7 of their links.
        batch = 10 * setting.node_bytes / 3 * 6 / 90 / 0.7 / setting.link_rate
        self.assertAlmostEqual(repair_seconds(setting, RS, STAR, 3) / (batch / 2), 1.0, places=2)

    def test_local_groups_read_less(self) -> None:
        code = Code("local", 6, 4, 2, groups=(0b0111, 0b111000))
        self.assertEqual([code.reads_of(pattern) for pattern in (0b1, 0b11, 0b1001, 0b111000)],
                         [2, 4, 2, 4])
        self.assertEqual(mean_reads(code, 1), 2.0)
        self.assertAlmostEqual(mean_reads(code, 2), (6 * 4 + 9 * 2) / 15)

    def test_nines(self) -> None:
        self.assertAlmostEqual(nines(1e9 * YEAR), 9.0, places=6)
        self.assertAlmostEqual(nines(YEAR / 10), -math.log10(1 - math.exp(-10)), places=9)

    def test_rates_of_the_chain(self) -> None:
        setting = Setting(rack_mttf=math.inf)
        rows = chain(setting, RS, STAR, steps(RS, 1))
        self.assertAlmostEqual(rows[0][1] * setting.node_mttf, 9)
        self.assertAlmostEqual(rows[3][LOST] * setting.node_mttf, 6)
        self.assertAlmostEqual(rows[2][1] * repair_seconds(setting, RS, STAR, 2), 1)

    def test_against_monte_carlo(self) -> None:
        for code, rack_blocks in ((RS, 1), (RS, 3), (PAIRS, 1), (PAIRS, 2)):
            setting = Setting(nodes=40, node_mttf=20000.0, rack_mttf=200000.0, node_bytes=1e12,
                              rack_blocks=rack_blocks)
            times = played(setting, code, STAR, 1500, 3)
            error = statistics.stdev(times) / math.sqrt(len(times))
            self.assertLess(abs(statistics.mean(times) - mean_time(setting, code, STAR)),
                            4 * error)


if __name__ == "__main__":
    unittest.main()
