#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The simulator on the paper's hand-worked examples (section III, Figure 4), and where the
assumptions of its formulas hold."""

from __future__ import annotations

import unittest
from typing import Sequence

from degraded_kit import Stars, scripted
from degradedkit import formulas
from degradedkit.circuits import CircuitLinks
from degradedkit.fair_links import FairLinks
from degradedkit.job import JobRun, Task
from degradedkit.links import HeldLinks, Links, Network
from degradedkit.placement import Cluster, Code, Stripe
from degradedkit.reads import Block, ContiguousReads
from degradedkit.schedulers import ALGORITHMS, Algorithm, Assignment, Kind
from degradedkit.simulator import Outcome, Simulation, Slaves

LOCAL, DEGRADED = Assignment(0, Kind.LOCAL), Assignment(0, Kind.DEGRADED)
BLOCK = 1000


def simulate(reads: ContiguousReads, links: Links, algorithm: Algorithm, lost: frozenset[int], *,
             slots: int, first_beat: Sequence[float], heartbeat: float, map_seconds: float = 10.0,
             read_seconds: float = 10.0) -> Outcome:
    nodes = len(first_beat)
    slaves = Slaves(slots, 0, [map_seconds] * nodes, [0.0] * nodes, first_beat, heartbeat, lost)
    simulation = Simulation(slaves, reads, links, algorithm, read_seconds, keep_trace=True)
    blocks = [Block(stripe, i) for stripe, nodes_of in enumerate(reads.stripes)
              for i in range(reads_k(reads))]
    tasks = [Task(i, block, reads.home(block), 1.0) for i, block in enumerate(blocks)]
    simulation.submit(JobRun(0, 0.0, tasks, [], 0.0, reads.network.racks, [map_seconds] * nodes))
    return simulation.run()


def reads_k(reads: ContiguousReads) -> int:
    return reads._code.k


def degraded_launches(outcome: Outcome) -> list[float]:
    return [event[0] for event in outcome.trace or [] if event[1:3] == ("launch", "degraded")]


class SectionThree(unittest.TestCase):
    """Five nodes in racks of three and two, two slots each, (4,2) code; a block takes 10 s into a
    rack, and a map task 10 s. Node 0 is lost with four native blocks. Each reader has one of the
    two blocks that it needs; the other one is in the other rack, but for one reader."""

    # Racks of equal size are what Cluster has, so that the second rack has a node that nobody uses.
    CLUSTER = Cluster(nodes=6, racks=2, rack_rate=BLOCK / 10)
    # Native blocks of stripe i at places 0 and 1, parity at 2 and 3. Each of the nodes 1 to 4 has
    # two native blocks.
    STRIPES: Sequence[Stripe] = ((0, 1, 3, 4), (0, 2, 4, 3), (0, 3, 2, 1), (0, 4, 3, 2),
                                 (1, 3, 0, 4), (2, 4, 0, 3))

    class Reads(ContiguousReads):
        """As in Figure 3: readers of B00, B10 and B20 have to fetch from the other rack."""

        def plan(self, block: Block, receiver: int, count: int) -> tuple[tuple[int, int, int], ...]:
            nodes = self.stripes[block.stripe]
            across = [node for node in nodes[1:]
                      if self.network.racks[node] != self.network.racks[receiver]]
            within = [node for node in nodes[1:] if node not in across and node != receiver]
            return ((within[0] if block.stripe == 3 else across[0], receiver, count),)

    def outcome(self, links: type[HeldLinks] | type[CircuitLinks] | None,
                script: Sequence[Sequence[Assignment]]) -> Outcome:
        network = Network(self.CLUSTER)
        reads = self.Reads(network, Stars(), Code(4, 2), self.STRIPES, frozenset({0, 5}), "rp",
                           BLOCK, 0)
        return simulate(reads, links(network.rates) if links else FairLinks(network.rates, BLOCK),
                        scripted(script), frozenset({0, 5}), slots=2, first_beat=[0.0] * 6,
                        heartbeat=10.0)

    def test_locality_first_takes_40_s(self) -> None:
        for links in (HeldLinks, CircuitLinks, None):
            outcome = self.outcome(links, [[LOCAL, LOCAL]] * 4 + [[DEGRADED]] * 4)
            self.assertAlmostEqual(outcome.runtimes[0], 40.0, places=6)
            self.assertEqual(degraded_launches(outcome), [10.0] * 4)

    def test_degraded_first_takes_30_s(self) -> None:
        # At 0 s nodes 1 and 3 begin with a degraded task; at 10 s nodes 1 to 4 go on.
        order = [[DEGRADED, LOCAL], [LOCAL, LOCAL], [DEGRADED, LOCAL], [LOCAL, LOCAL],
                 [LOCAL], [DEGRADED], [LOCAL], [DEGRADED]]
        for links in (HeldLinks, CircuitLinks, None):
            outcome = self.outcome(links, order)
            self.assertAlmostEqual(outcome.runtimes[0], 30.0, places=6)
            self.assertEqual(degraded_launches(outcome), [0.0, 0.0, 10.0, 10.0])


class FigureFour(unittest.TestCase):
    def test_degraded_tasks_begin_at_0_10_and_30_s(self) -> None:
        """Four nodes of one slot, three native blocks on each, node 0 lost; every read takes 10 s
        and every task 10 s. BDF gives the 1st, 5th and 9th task to the lost blocks."""
        network = Network(Cluster(nodes=4, racks=4, rack_rate=BLOCK / 10))
        stripes = ((0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2), (1, 2, 0, 3), (1, 3, 0, 2),
                   (2, 3, 0, 1))

        class OneFetch(ContiguousReads):
            """The reader has one of the two blocks that it needs."""

            def plan(self, block: Block, receiver: int, count: int,
                     ) -> tuple[tuple[int, int, int], ...]:
                return ((next(node for node in self.stripes[block.stripe][1:]
                              if node != receiver), receiver, count),)
        reads = OneFetch(network, Stars(), Code(4, 2), stripes, frozenset({0}), "rp", BLOCK, 0)
        outcome = simulate(reads, HeldLinks(network.rates), ALGORITHMS["BDF"], frozenset({0}),
                           slots=1, first_beat=[0.0] * 4, heartbeat=10.0)
        launches = [event for event in outcome.trace or [] if event[1] == "launch"]
        self.assertEqual([number for number, event in enumerate(launches, 1)
                          if event[2] == "degraded"], [1, 5, 9])
        self.assertEqual(degraded_launches(outcome), [0.0, 10.0, 30.0])
        self.assertEqual(outcome.degraded_reads, [10.0] * 3)


class EvenReads(ContiguousReads):
    """k/R blocks from each rack, as the formulas expect it."""

    def plan(self, block: Block, receiver: int, count: int) -> tuple[tuple[int, int, int], ...]:
        racks, share = self.network.racks, reads_k(self) // self.network.cluster.racks
        others = [node for i, node in enumerate(self.stripes[block.stripe]) if i != block.index]
        found = []
        for rack in set(racks) - {racks[receiver]}:
            found += [node for node in others if racks[node] == rack][:share]
        return tuple((node, receiver, count) for node in found)


class AgainstFormulas(unittest.TestCase):
    """Map tasks only, all of the same length, in step; as many native blocks on each node, and as
    many degraded tasks in each rack."""

    NODES, RACKS, SLOTS, BLOCKS, CODE, SECONDS = 40, 4, 2, 960, Code(16, 12), 20.0

    def stripes(self) -> list[Stripe]:
        """Parity declustering: after 80 stripes each node has 24 native blocks and 8 of parity."""
        of_a_rack = self.NODES // self.RACKS
        nodes = [[(j % self.RACKS) * of_a_rack + (i + j // self.RACKS) % of_a_rack
                  for j in range(self.CODE.n)] for i in range(self.BLOCKS // self.CODE.k)]
        return [tuple(some[(j - i) % self.CODE.n] for j in range(self.CODE.n))
                for i, some in enumerate(nodes)]

    def outcome(self, algorithm: str, mbit: float, shared: bool) -> tuple[Outcome, float]:
        rate = mbit * formulas.MEGABIT
        network = Network(Cluster(self.NODES, self.RACKS, rate))
        lost = frozenset({self.NODES - 1})
        reads = EvenReads(network, Stars(), self.CODE, self.stripes(), lost, "conventional",
                          formulas.BLOCK_BYTES, 0)
        links: Links = (FairLinks(network.rates, formulas.BLOCK_BYTES) if shared
                        else HeldLinks(network.rates))
        # One node of each rack in turn, so that readers are evenly in all racks.
        in_turn = [(node % 10 * 4 + node // 10) * 1e-3 for node in range(self.NODES)]
        setting = formulas.Setting(self.NODES, self.RACKS, self.SLOTS, formulas.BLOCK_BYTES, rate,
                                   self.SECONDS, self.BLOCKS, self.CODE.n, self.CODE.k)
        outcome = simulate(reads, links, ALGORITHMS[algorithm], lost, slots=self.SLOTS,
                           first_beat=in_turn, heartbeat=0.1, map_seconds=self.SECONDS,
                           read_seconds=formulas.degraded_read_seconds(setting))
        self.assertEqual(outcome.launched[Kind.DEGRADED], 24)
        expected = (formulas.locality_first_runtime(setting) if algorithm == "LF"
                    else formulas.degraded_first_runtime(setting))
        return outcome, expected

    def test_within_5_percent(self) -> None:
        for shared in (False, True):
            # The formula of degraded first is that of the basic algorithm, whose readers are evenly
            # in all racks only by chance: where reads fill the links it does not hold.
            for algorithm, rates in (("LF", (2000, 1000, 500, 100, 25)), ("BDF", (2000, 1000))):
                for mbit in rates:
                    with self.subTest(algorithm=algorithm, mbit=mbit, shared=shared):
                        outcome, expected = self.outcome(algorithm, mbit, shared)
                        self.assertLess(abs(outcome.runtimes[0] / expected - 1), 0.05,
                                        f"{outcome.runtimes[0]:.1f} s, expected {expected:.1f} s")


if __name__ == "__main__":
    unittest.main()
