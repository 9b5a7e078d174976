# SPDX-License-Identifier: Apache-2.0
"""The setting of one simulated run, and the run. Pure, but for the planner: everything that is left
to chance comes from the seed, and is the same for each algorithm, scheme and kind of links."""

from __future__ import annotations

import functools
import math
import random
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Protocol, Sequence

from . import formulas
from .circuits import CircuitLinks
from .fair_links import FairLinks
from .formulas import MEGABIT
from .job import JobRun, Task
from .links import HeldLinks, Links, Network
from .placement import Cluster, Code, Stripe, place
from .reads import Block, ContiguousReads, Plans, StripedReads
from .recovery import Recovery
from .schedulers import ALGORITHMS, as_printed
from .simulator import Outcome, Simulation, Slaves

# The least time of a task, as a share of the mean: a normal distribution has no end.
LEAST_FACTOR = 0.05
FAILURES = ("none", "node", "two nodes", "rack")
LINKS = ("held", "shared", "circuits")


class Planning(Plans, Protocol):
    def describe(self, cluster: Cluster) -> None: ...


@dataclass(frozen=True)
class Setting:
    """The defaults are the paper's (section V-B)."""

    n: int = 20
    k: int = 15
    blocks: int = 1440
    nodes: int = 40
    racks: int = 4
    rack_mbit: float = 1000.0    # each rack's uplink, and its downlink; 0: no limit
    node_mbit: float = 0.0       # the same of nodes
    limits_uplinks: bool = True  # no: of racks only what they receive is limited
    map_slots: int = 4
    reduce_slots: int = 1
    map_seconds: float = 20.0
    map_spread: float = 0.05     # standard deviation by mean: 1 s of 20 s
    reduces: int = 30
    reduce_seconds: float = 30.0
    reduce_spread: float = 1 / 15
    shuffle: float = 0.01        # intermediate data of a map task, by its block's size
    block_bytes: int = formulas.BLOCK_BYTES
    failure: str = "node"
    heartbeat: float = 3.0
    in_step: bool = False        # all slaves beat at once; else each at a time of its own
    jobs: int = 1
    gap_seconds: float = 120.0   # between jobs, mean of an exponential distribution
    slow_nodes: int = 0          # the first ones of each rack in turn
    slow_factor: float = 1.0
    scheme: str = "conventional"
    links: str = "held"          # a name of LINKS
    striped_parts: int = 0       # of the k shares of a split that a task reads; 0: contiguous
    misjudged: float = 0.0       # t_s is off by up to this share, for each node
    threshold_share: float = 1.0  # of the paper's threshold of EDF, to try others
    printed_line_2: bool = False  # EDF with line 2 of Algorithm 3 as it is printed
    recovery_mb: float = 0.0     # MB/s that a recovery rebuilds, if links allow; 0: none
    recovery_delay: float = 0.0  # seconds between the loss and the recovery's begin
    waits: bool = False          # degraded tasks wait for the recovery of their block

    def code(self) -> Code:
        return Code(self.n, self.k)

    def cluster(self) -> Cluster:
        return Cluster(self.nodes, self.racks, self.rack_mbit * MEGABIT, self.node_mbit * MEGABIT,
                       self.limits_uplinks)

    def read_seconds(self) -> float:
        """A conventional read, and the paper's threshold of EDF: its formula; where racks have no
        limit, k blocks over the reader's link."""
        if self.rack_mbit:
            return formulas.degraded_read_seconds(formulas.Setting(
                racks=self.racks, k=self.k, block_bytes=self.block_bytes,
                rack_bytes_per_s=self.rack_mbit * MEGABIT))
        rate = self.node_mbit * MEGABIT
        return self.k * self.block_bytes / rate if rate else 0.0


def chance_of(seed: int, what: str) -> random.Random:
    return random.Random(f"{seed} {what}")


@functools.lru_cache(maxsize=64)
def stripes_of(nodes: int, racks: int, code: Code, blocks: int, seed: int) -> tuple[Stripe, ...]:
    return tuple(place(Cluster(nodes, racks), code, blocks, chance_of(seed, "placement")))


@functools.lru_cache(maxsize=512)
def deviations(seed: int, job: int, count: int) -> tuple[float, ...]:
    """Of its tasks' times, in standard deviations."""
    chance = chance_of(seed, f"tasks {job}")
    return tuple(chance.gauss(0.0, 1.0) for _ in range(count))


def slow_nodes(setting: Setting) -> set[int]:
    """Spread over the racks."""
    of_a_rack = setting.nodes // setting.racks
    in_turn = [rack * of_a_rack + i for i in range(of_a_rack) for rack in range(setting.racks)]
    return set(in_turn[:setting.slow_nodes])


def lost_nodes(setting: Setting, seed: int) -> frozenset[int]:
    """At random; a slow node is not among them."""
    chance = chance_of(seed, "failure")
    if setting.failure == "none":
        return frozenset()
    if setting.failure == "rack":
        rack = chance.randrange(setting.racks)
        cluster = setting.cluster()
        return frozenset(node for node in range(setting.nodes) if cluster.rack_of(node) == rack)
    healthy = [node for node in range(setting.nodes) if node not in slow_nodes(setting)] \
        if setting.slow_nodes < setting.nodes else list(range(setting.nodes))
    return frozenset(chance.sample(healthy, {"node": 1, "two nodes": 2}[setting.failure]))


def slaves_of(setting: Setting, seed: int, lost: frozenset[int]) -> Slaves:
    slow = slow_nodes(setting)
    factors = [setting.slow_factor if node in slow else 1.0 for node in range(setting.nodes)]
    beats = chance_of(seed, "heartbeats")
    misjudging = chance_of(seed, "misjudged")
    return Slaves(
        setting.map_slots, setting.reduce_slots,
        [setting.map_seconds * factor for factor in factors],
        [setting.reduce_seconds * factor for factor in factors],
        [0.0 if setting.in_step else beats.uniform(0, setting.heartbeat) for _ in factors],
        setting.heartbeat, lost,
        [1 + misjudging.uniform(-setting.misjudged, setting.misjudged) for _ in factors])


def reads_of(setting: Setting, seed: int, stripes: Sequence[Stripe], lost: frozenset[int],
             plans: Plans) -> ContiguousReads:
    network = Network(setting.cluster())
    if setting.striped_parts:
        return StripedReads(network, plans, setting.code(), stripes, lost, setting.scheme,
                            setting.block_bytes, seed, parts=setting.striped_parts)
    return ContiguousReads(network, plans, setting.code(), stripes, lost, setting.scheme,
                           setting.block_bytes, seed)


def links_of(setting: Setting, rates: list[float]) -> Links:
    if setting.links == "shared":
        return FairLinks(rates, setting.block_bytes)
    return {"held": HeldLinks, "circuits": CircuitLinks}[setting.links](rates)


def job_of(setting: Setting, seed: int, number: int, arrival: float, blocks: list[Block],
           reads: ContiguousReads, slaves: Slaves) -> JobRun:
    def factors(spread: float, some: Sequence[float]) -> list[float]:
        return [max(LEAST_FACTOR, 1.0 + spread * deviation) for deviation in some]
    chance = deviations(seed, number, len(blocks) + setting.reduces)
    tasks = [Task(i, block, reads.home(block), factor) for i, (block, factor) in enumerate(
        zip(blocks, factors(setting.map_spread, chance)))]
    misjudged = slaves.misjudged or [1.0] * setting.nodes
    cost = [seconds * wrong for seconds, wrong in zip(slaves.map_seconds, misjudged)]
    return JobRun(number, arrival, tasks, factors(setting.reduce_spread, chance[len(blocks):]),
                  setting.shuffle * setting.block_bytes, reads.network.racks, cost, setting.waits)


def build(setting: Setting, seed: int, algorithm: str, planner: Planning,
          keep_trace: bool = False) -> tuple[Simulation, list[JobRun]]:
    code = setting.code()
    planner.describe(setting.cluster())
    lost = lost_nodes(setting, seed)
    stripes = stripes_of(setting.nodes, setting.racks, code, setting.blocks * setting.jobs, seed)
    reads = reads_of(setting, seed, stripes, lost, planner)
    slaves = slaves_of(setting, seed, lost)
    decides = as_printed if setting.printed_line_2 and algorithm == "EDF" else ALGORITHMS[algorithm]
    simulation = Simulation(slaves, reads, links_of(setting, reads.network.rates), decides,
                            setting.threshold_share * setting.read_seconds(), keep_trace)
    blocks = [Block(stripe, i) for stripe in range(len(stripes)) for i in range(code.k)]
    gaps, arrival, jobs = chance_of(seed, "arrivals"), 0.0, []
    share = len(blocks) // setting.jobs
    for number in range(setting.jobs):
        job = job_of(setting, seed, number, arrival, blocks[number * share:(number + 1) * share],
                     reads, slaves)
        simulation.submit(job)
        jobs.append(job)
        arrival += gaps.expovariate(1 / setting.gap_seconds)
    return simulation, jobs


def run(setting: Setting, seed: int, algorithm: str, planner: Planning,
        keep_trace: bool = False) -> Outcome:
    """One simulated run. The same arguments give the same outcome."""
    simulation, jobs = build(setting, seed, algorithm, planner, keep_trace)
    if setting.recovery_mb and setting.failure != "none":
        recover(setting, seed, simulation, jobs)
    outcome = simulation.run()
    if not all(math.isfinite(seconds) for seconds in outcome.runtimes):
        raise RuntimeError("a job has not ended")
    return outcome


def recover(setting: Setting, seed: int, simulation: Simulation, jobs: list[JobRun]) -> Recovery:
    """All blocks that were on lost nodes, parity too, in random order."""
    reads = simulation.reads
    assert isinstance(reads, ContiguousReads)
    lost = simulation.slaves.lost
    blocks = [Block(stripe, i) for stripe, nodes in enumerate(reads.stripes)
              for i, node in enumerate(nodes) if node in lost]
    chance = chance_of(seed, "recovery")
    chance.shuffle(blocks)
    waiting: dict[Block, list[tuple[JobRun, Task]]] = defaultdict(list)
    for job in jobs:
        for task in job.tasks:
            waiting[task.block].append((job, task))
    return Recovery(simulation, reads, blocks, waiting, setting.recovery_mb * 1e6,
                    setting.recovery_delay, chance)


def normal(setting: Setting) -> Setting:
    """The same without a failure: what runtimes are divided by. Nothing is lost then, so scheme,
    recovery and what EDF goes by do not matter."""
    return replace(setting, failure="none", scheme="conventional", recovery_mb=0.0,
                   recovery_delay=0.0, waits=False, misjudged=0.0, threshold_share=1.0,
                   printed_line_2=False)
