# SPDX-License-Identifier: Apache-2.0
"""How long a stripe lasts: a Markov chain over the number of its lost blocks. Pure. Seconds, bytes.

Fair to the conventional way: the recovery of a node moves k blocks for each block whatever the
scheme, over all surviving nodes, so that its time is the same but for balance. A scheme that reads
in one timeslot instead of k gains where a single stripe is waited for: in stripes that have lost
two blocks or more, which go before all others. Those too come in batches, all stripes that the lost
nodes share, and a batch again moves k blocks for each.
"""

from __future__ import annotations

import functools
import math
import random
import statistics
from dataclasses import dataclass
from typing import Callable, Mapping, Sequence

from .markov import LOST, mean_time_to_loss

YEAR = 365.25 * 86400
TERABYTE = 1e12


@dataclass(frozen=True)
class Code:
    """`reads`: blocks that the repair of one block reads, where no local group can help;
    `undecodable`: patterns of at most `tolerates` lost blocks (bit i: block i) that lose data. More
    than `tolerates` always do. `groups`: patterns of the local groups."""

    name: str
    n: int
    reads: int
    tolerates: int
    undecodable: frozenset[int] = frozenset()
    groups: tuple[int, ...] = ()

    def decodes(self, pattern: int) -> bool:
        return pattern.bit_count() <= self.tolerates and pattern not in self.undecodable

    def reads_of(self, pattern: int) -> int:
        """To get one of the pattern's blocks back, that which takes the fewest."""
        return min([group.bit_count() - 1 for group in self.groups
                    if (pattern & group).bit_count() == 1], default=self.reads)


@functools.lru_cache(maxsize=256)
def mean_reads(code: Code, lost: int) -> float:
    """Over the patterns of so many lost blocks."""
    return statistics.mean(map(code.reads_of, patterns(code)[lost]))


@dataclass(frozen=True)
class Scheme:
    """As measured by the lab: `timeslots(reads)` of a degraded read, by the direct send of a block,
    and the share of the links' bound that a recovery over all nodes reaches."""

    name: str
    timeslots: Callable[[float], float]
    of_bound: float


@dataclass(frozen=True)
class Setting:
    nodes: int = 100
    node_bytes: float = 10 * TERABYTE
    block_bytes: float = 128e6
    link_rate: float = 62.5e6       # what each node's link gives to repairs, each way
    node_mttf: float = 4 * YEAR     # to the loss of a node with its blocks
    rack_mttf: float = 50 * YEAR    # the same of all nodes of a rack at once; infinite: never
    rack_blocks: int = 1            # blocks of a stripe in one rack; 1: flat
    racks: int = 10
    detection: float = 30.0         # until a lost node counts as lost
    delay: float = 600.0            # until a recovery begins, of stripes that lost one block only


def repair_seconds(setting: Setting, code: Code, scheme: Scheme, lost: int) -> float:
    """Mean time in which a stripe with so many lost blocks gets one back."""
    reads = mean_reads(code, lost)
    one_block = setting.block_bytes / setting.link_rate
    blocks = setting.node_bytes / setting.block_bytes
    # Blocks that each node has to read. The stripes of a node that have lost as many blocks, if
    # nodes are lost one after another; or else those of a rack.
    by_nodes = blocks * math.prod((code.n - other) / (setting.nodes - other)
                                  for other in range(1, lost)) / (setting.nodes - lost)
    by_rack = (blocks * setting.nodes / setting.racks / setting.rack_blocks
               / (setting.nodes * (1 - 1 / setting.racks)))
    share = share_of_racks(setting, code, scheme, lost)
    batch = (((1 - share) * by_nodes + share * by_rack) * reads * one_block / scheme.of_bound)
    waited = setting.detection + (setting.delay if lost == 1 else 0.0)
    # Somewhere in the batch, on average in the middle.
    return waited + scheme.timeslots(reads) * one_block + batch / 2


def share_of_racks(setting: Setting, code: Code, scheme: Scheme, lost: int) -> float:
    """Of the stripes that have lost so many blocks, those that have lost them with a rack."""
    together = setting.rack_blocks
    if together == 1 or lost < together:
        return 0.0
    with_a_rack = len(racks_of(code.n, together)) / setting.rack_mttf
    one_by_one = code.n / setting.node_mttf
    for earlier in range(1, together):
        one_by_one *= ((code.n - earlier) / setting.node_mttf
                       * repair_seconds(setting, code, scheme, earlier))
    return with_a_rack / (with_a_rack + one_by_one)


@dataclass(frozen=True)
class Steps:
    """From a number of lost blocks on, means over the patterns of so many that decode: how many
    single blocks, and how many racks, lead to each other number, or to LOST."""

    blocks: Sequence[Mapping[int, float]]
    racks: Sequence[Mapping[int, float]]


def racks_of(n: int, rack_blocks: int) -> list[int]:
    """The patterns of the racks of a stripe."""
    return [sum(1 << block for block in range(first, min(n, first + rack_blocks)))
            for first in range(0, n, rack_blocks)]


def patterns(code: Code) -> list[list[int]]:
    """Those that decode, by their number of lost blocks. What decodes does so with fewer losses,
    too, so that each is found from one that has a block less."""
    found = [[0]]
    while len(found) <= code.tolerates:
        bigger = {pattern | 1 << block for pattern in found[-1] for block in range(code.n)
                  if not pattern >> block & 1}
        decodable = sorted(pattern for pattern in bigger if code.decodes(pattern))
        if not decodable:
            break
        found.append(decodable)
    return found


def steps(code: Code, rack_blocks: int) -> Steps:
    by_count = patterns(code)
    singles = [1 << block for block in range(code.n)]

    def averages(hits: Sequence[int]) -> list[dict[int, float]]:
        rows = []
        for some in by_count:
            row: dict[int, float] = {}
            for pattern in some:
                for hit in hits:
                    if (after := pattern | hit) != pattern:
                        to = after.bit_count() if code.decodes(after) else LOST
                        row[to] = row.get(to, 0.0) + 1 / len(some)
            rows.append(row)
        return rows
    return Steps(averages(singles), averages(racks_of(code.n, rack_blocks)))


def chain(setting: Setting, code: Code, scheme: Scheme, step: Steps) -> list[dict[int, float]]:
    """Rates per second. `step`: of this code and placement."""
    rows = []
    for lost, (blocks, racks) in enumerate(zip(step.blocks, step.racks)):
        row: dict[int, float] = {}
        for hits, mttf in ((blocks, setting.node_mttf), (racks, setting.rack_mttf)):
            for to, count in hits.items():
                if not math.isinf(mttf):
                    row[to] = row.get(to, 0.0) + count / mttf
        if lost:
            row[lost - 1] = row.get(lost - 1, 0.0) + 1 / repair_seconds(setting, code, scheme, lost)
        rows.append(row)
    return rows


def mean_time(setting: Setting, code: Code, scheme: Scheme, step: Steps | None = None) -> float:
    """Until a stripe loses data."""
    return mean_time_to_loss(chain(setting, code, scheme,
                                   step or steps(code, setting.rack_blocks)))


def nines(mean_seconds: float) -> float:
    """Of a stripe in a year: -log10 of the probability that it loses data."""
    return -math.log10(-math.expm1(-YEAR / mean_seconds))


def played(setting: Setting, code: Code, scheme: Scheme, stripes: int, seed: int) -> list[float]:
    """Monte Carlo: the times to loss of so many stripes, each block and rack by itself. A block
    comes back at random among those that are lost. For settings in which losses are frequent."""
    chance, racks = random.Random(seed), racks_of(code.n, setting.rack_blocks)
    hits = [(1 << block, 1 / setting.node_mttf) for block in range(code.n)]
    if not math.isinf(setting.rack_mttf):
        hits += [(rack, 1 / setting.rack_mttf) for rack in racks]
    failing = sum(rate for _, rate in hits)
    repairs = [0.0] + [1 / repair_seconds(setting, code, scheme, lost)
                       for lost in range(1, code.tolerates + 1)]
    which, weights = [hit for hit, _ in hits], [rate for _, rate in hits]
    times = []
    for _ in range(stripes):
        pattern, now = 0, 0.0
        while code.decodes(pattern):
            repairing = repairs[pattern.bit_count()]
            now += chance.expovariate(failing + repairing)
            if chance.random() * (failing + repairing) < repairing:
                lost = [block for block in range(code.n) if pattern >> block & 1]
                pattern ^= 1 << chance.choice(lost)
            else:
                pattern |= chance.choices(which, weights)[0]
        times.append(now)
    return times
