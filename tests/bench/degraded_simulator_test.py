#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What must hold in every simulated run: tasks run once, bytes are those of the plans, no link
above its rate, and nothing that is left to chance but by the seed."""

from __future__ import annotations

import random
import unittest
from collections import Counter
from dataclasses import replace

from degraded_kit import Stars
from degradedkit import scenarios
from degradedkit.circuits import CircuitLinks
from degradedkit.fair_links import FairLinks
from degradedkit.links import FOREVER, HeldLinks, Load
from degradedkit.scenarios import Setting, build, normal, run
from degradedkit.schedulers import ALGORITHMS, Kind, assign_to_rack

SMALL = Setting(n=6, k=4, blocks=160, nodes=20, rack_mbit=500.0, reduces=8, shuffle=0.2)
SETTINGS = {"racks": SMALL, "nodes": replace(SMALL, rack_mbit=0.0, node_mbit=500.0),
            "both": replace(SMALL, node_mbit=300.0), "a rack": replace(SMALL, failure="rack"),
            "two nodes": replace(SMALL, failure="two nodes"),
            "jobs": replace(SMALL, jobs=3, gap_seconds=20),
            "striped": replace(SMALL, striped_parts=4), "partial": replace(SMALL, striped_parts=1),
            "slow": replace(SMALL, slow_nodes=5, slow_factor=3.0)}
ALMOST = 1 + 1e-9


class CheckedHeld(HeldLinks):
    """Fails where a link serves two at once."""

    def _serve(self, now: float, load: Load) -> float:
        before = list(self._free)
        end = super()._serve(now, load)
        for link, count in load:
            begin = max(now, before[link])
            assert abs(self._free[link] - begin - count / self._rates[link]) < 1e-6
        return end


class CheckedCircuits(CircuitLinks):
    """Fails where a link serves two at once, or one faster than it can."""

    def _begin(self) -> None:
        before = set(self._running)
        super()._begin()
        used: Counter[int] = Counter()
        for part in self._running:
            used.update(link for link, _ in part[3])
            if part not in before:
                assert all(part[0] - self._now >= count / self._rates[link] / ALMOST - 1e-9
                           for link, count in part[3])
        assert not used or max(used.values()) == 1


class CheckedFair(FairLinks):
    """Fails where a link has more than its rate, or a read could have more without taking it from
    one that has no more."""

    def _settle(self) -> None:
        super()._settle()
        used = dict(self._given)
        for shape in self._shapes.values():
            for link, claim in shape.claims:
                used[link] = used.get(link, 0.0) + claim * shape.rate * len(shape.ends)
        assert all(rate <= self._rates[link] * ALMOST for link, rate in used.items())
        for shape in self._shapes.values():
            assert shape.rate > 0 and shape.ends
            held = [link for link, _ in shape.claims if used[link] >= self._rates[link] / ALMOST
                    and all(other.rate <= shape.rate * ALMOST for other in self._shapes.values()
                            if any(link == theirs for theirs, _ in other.claims))]
            assert held or shape.rate >= shape.limit / ALMOST


CHECKED = {"held": lambda setting, rates: CheckedHeld(rates),
           "circuits": lambda setting, rates: CheckedCircuits(rates),
           "shared": lambda setting, rates: CheckedFair(rates, setting.block_bytes)}


class Conservation(unittest.TestCase):
    def check(self, setting: Setting, algorithm: str, seed: int) -> None:
        original = scenarios.links_of
        scenarios.links_of = lambda of, rates: CHECKED[of.links](of, rates)
        try:
            simulation, jobs = build(setting, seed, algorithm, Stars(), keep_trace=True)
            outcome = simulation.run()
        finally:
            scenarios.links_of = original
        launches = [event[3:5] for event in outcome.trace or [] if event[1] == "launch"]
        wanted = Counter((job.number, task.number) for job in jobs for task in job.tasks)
        self.assertEqual(Counter(launches), wanted)
        self.assertEqual(Counter(event[2:4] for event in outcome.trace or []
                                 if event[1] == "end"), wanted)
        self.check_slots(setting, outcome.trace or [])
        self.check_bytes(setting, simulation, jobs, outcome)

    def check_slots(self, setting: Setting, trace: list[tuple[object, ...]]) -> None:
        busy: Counter[object] = Counter()
        for event in trace:
            if event[1] == "launch":
                busy[event[5]] += 1
                self.assertLessEqual(busy[event[5]], setting.map_slots)
            elif event[1] == "end":
                busy[event[4]] -= 1
        self.assertEqual(set(busy.values()), {0})

    def check_bytes(self, setting: Setting, simulation: scenarios.Simulation,
                    jobs: list[scenarios.JobRun], outcome: scenarios.Outcome) -> None:
        """Reads: what the plan of each launched task says. The rest is shuffled: what each map
        task has put out goes in equal parts to the reducers. Both worked out anew."""
        expected = [0.0] * len(outcome.carried)
        for event in outcome.trace or []:
            if event[1] != "launch":
                continue
            task, node = jobs[event[3]].tasks[event[4]], event[5]
            if event[2] == Kind.DEGRADED.value:
                loads = simulation.reads.degraded(task.block, node)
            elif task.home == node:
                loads = []
            else:
                loads = simulation.reads.normal(task.block, task.home, node)
            for load in loads:
                for link, count in load:
                    expected[link] += count
        self.assertEqual(outcome.read_bytes, expected)
        network = simulation.reads.network
        part = setting.shuffle * setting.block_bytes / setting.reduces
        for event in outcome.trace or []:
            if event[1] == "end":
                for reducer in jobs[event[2]].reducers:
                    for link in network.passes(event[4], reducer):
                        expected[link] += part
        for carried, count in zip(outcome.carried, expected):
            self.assertAlmostEqual(carried, count, delta=1e3)
        self.assertGreater(sum(expected), sum(outcome.read_bytes))

    def test_all_settings(self) -> None:
        for name, setting in SETTINGS.items():
            for links in CHECKED:
                for seed, algorithm in enumerate(ALGORITHMS):
                    with self.subTest(name, links=links, algorithm=algorithm):
                        self.check(replace(setting, links=links), algorithm, seed)


class Ends(unittest.TestCase):
    def test_with_estimates_that_are_no_whole_numbers(self) -> None:
        """EDF refuses who has more to do than the mean. When no local task is left, nobody has."""
        for seed in range(3):
            setting = replace(SMALL, blocks=400, failure="rack", misjudged=0.5)
            outcome = run(setting, seed, "EDF", Stars())
            self.assertEqual(sum(outcome.launched.values()), setting.blocks)

    def test_the_mean_refuses_not_everybody(self) -> None:
        """Of 0.1 s in each of three racks the mean is more than 0.1 s, in floating point."""
        self.assertGreater(sum([0.1] * 3) / 3, 0.1)
        setting = replace(SMALL, n=6, k=3, nodes=18, racks=3, blocks=300, failure="node")
        simulation, jobs = build(setting, 1, "EDF", Stars())
        simulation.now = 0.1
        asks = simulation._slave(simulation.alive[0], jobs)
        self.assertTrue(assign_to_rack(asks._replace(read_seconds=1.0)))


class NormalMode(unittest.TestCase):
    def test_all_algorithms_are_the_same_event_by_event(self) -> None:
        for links in scenarios.LINKS:
            for setting in (SMALL, replace(SMALL, jobs=3, slow_nodes=7, slow_factor=2.0)):
                healthy = normal(replace(setting, links=links))
                traces = [run(healthy, 5, algorithm, Stars(), keep_trace=True).trace
                          for algorithm in ALGORITHMS]
                self.assertGreater(len(traces[0] or []), 2 * SMALL.blocks)
                self.assertEqual(traces, [traces[0]] * 3)


class Chance(unittest.TestCase):
    def test_a_seed_decides_all(self) -> None:
        for links in scenarios.LINKS:
            setting = replace(SMALL, links=links)
            first, again, other = (run(setting, seed, "EDF", Stars(), keep_trace=True)
                                   for seed in (1, 1, 2))
            self.assertEqual(first, again)
            self.assertNotEqual(first.trace, other.trace)

    def test_placements_survive_a_rack(self) -> None:
        for n, k in ((8, 6), (20, 15)):
            setting = Setting(n=n, k=k)
            cluster = setting.cluster()
            for stripe in scenarios.place(cluster, setting.code(), 600, random.Random(1)):
                self.assertEqual(len(set(stripe)), n)
                in_rack = Counter(cluster.rack_of(node) for node in stripe)
                self.assertLessEqual(max(in_rack.values()), n - k)

    def test_a_placement_that_does_not_exist(self) -> None:
        with self.assertRaisesRegex(ValueError, r"rs\(9,8\) has no place in 4 racks"):
            run(Setting(n=9, k=8), 1, "LF", Stars())


class Recoveries(unittest.TestCase):
    RECOVERED = replace(SMALL, recovery_mb=400.0, recovery_delay=15.0)

    def test_who_waits_reads_nothing_degraded(self) -> None:
        for links in scenarios.LINKS:
            setting = replace(self.RECOVERED, links=links)
            reads = run(setting, 1, "EDF", Stars())
            waits = run(replace(setting, waits=True), 1, "LF", Stars())
            self.assertGreater(reads.launched[Kind.DEGRADED], 0)
            self.assertEqual(waits.launched[Kind.DEGRADED], 0)
            self.assertEqual(sum(waits.launched.values()), SMALL.blocks)
            self.assertGreater(waits.runtimes[0], setting.recovery_delay)

    def test_a_later_recovery_keeps_who_waits_longer(self) -> None:
        times = [run(replace(self.RECOVERED, waits=True, recovery_delay=delay), 1, "LF",
                     Stars()).runtimes[0] for delay in (0.0, 100.0, 400.0)]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[2], 400.0)


class Shares(unittest.TestCase):
    def test_two_reads_share_and_then_one_has_all(self) -> None:
        links = FairLinks([10.0, 10.0], 100.0)
        links.start(0.0, [((0, 100.0),)], 1)
        links.start(0.0, [((0, 100.0), (1, 100.0))], 2)
        links.start(0.0, [((1, 50.0),)], 3)
        # 5 each on both links; read 3 ends at 10 s, which frees link 1, but link 0 holds read 2.
        self.assertAlmostEqual(links.next_end(), 10.0)
        self.assertEqual(links.ended(10.0), [3])
        self.assertAlmostEqual(links.next_end(), 20.0)
        self.assertEqual(sorted(links.ended(20.0)), [1, 2])
        self.assertEqual(links.next_end(), FOREVER)

    def test_a_pipeline_goes_at_the_rate_of_its_busiest_link(self) -> None:
        links = FairLinks([10.0, 10.0], 100.0)
        links.start(0.0, [((0, 300.0), (1, 100.0))], 1)  # three streams on one link
        self.assertAlmostEqual(links.next_end(), 30.0)

    def test_held_links_serve_one_after_another(self) -> None:
        links = HeldLinks([10.0, 10.0])
        links.start(0.0, [((0, 100.0),)], 1)
        links.start(0.0, [((0, 100.0), (1, 50.0))], 2)
        links.start(0.0, [((1, 50.0),)], 3)
        self.assertEqual([links.ended(at) for at in (9.9, 10.0, 20.0)], [[], [1, 3], [2]])

    def test_circuits_hold_all_their_links(self) -> None:
        links = CircuitLinks([10.0, 10.0])
        links.start(0.0, [((0, 100.0),)], 1)
        links.start(0.0, [((0, 100.0), (1, 50.0))], 2)
        links.start(0.0, [((1, 50.0),)], 3)  # goes before read 2, which cannot begin yet
        self.assertEqual([links.ended(at) for at in (5.0, 10.0, 19.9, 20.0)],
                         [[3], [1], [], [2]])


if __name__ == "__main__":
    unittest.main()
