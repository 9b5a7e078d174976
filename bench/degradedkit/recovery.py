# SPDX-License-Identifier: Apache-2.0
"""A full-node recovery beside the jobs: a lost block is begun at set intervals, and rebuilt on a
node that has no block of the stripe. Pure, by seed."""

from __future__ import annotations

import random
from typing import Mapping, Sequence

from .job import JobRun, Task
from .reads import Block, ContiguousReads
from .simulator import ARRIVAL, Simulation


# Blocks that are rebuilt at once. Where links do not allow the set rate, later ones wait.
MOST_AT_ONCE = 8


class Recovery:
    def __init__(self, simulation: Simulation, reads: ContiguousReads, blocks: Sequence[Block],
                 waiting: Mapping[Block, Sequence[tuple[JobRun, Task]]], rate: float,
                 begins: float, chance: random.Random) -> None:
        """`blocks`: in the order in which they come back. `waiting`: whose tasks read them. `rate`:
        bytes begun per second. `begins`: seconds after the loss."""
        self._simulation, self._reads, self._chance = simulation, reads, chance
        self._left = list(reversed(blocks))
        self._waiting = waiting
        self._interval = reads.block_bytes / rate
        self._running = 0
        self._due = begins  # the next one, if not too many are under way
        self._asleep = True
        simulation.at(begins, ARRIVAL, lambda _: self._wake())

    def _wake(self) -> None:
        self._asleep = False
        self._begin()

    def _begin(self) -> None:
        """As many as are due."""
        now = self._simulation.now
        while self._left and self._running < MOST_AT_ONCE and self._due <= now:
            self._due = max(self._due, now) + self._interval
            self._rebuild(self._left.pop())
        if self._left and self._running < MOST_AT_ONCE and not self._asleep:
            self._asleep = True
            self._simulation.at(self._due, ARRIVAL, lambda _: self._wake())

    def _rebuild(self, block: Block) -> None:
        self._running += 1
        holders = self._reads.stripes[block.stripe]
        node = self._chance.choice([node for node in self._simulation.alive
                                    if node not in holders])
        self._simulation.read(self._reads.degraded(block, node),
                              lambda: self._came_back(block, node), self._interval)

    def _came_back(self, block: Block, node: int) -> None:
        self._running -= 1
        moved = [job.block_came_back(task, node) for job, task in self._waiting.get(block, ())]
        if any(moved):
            self._simulation.wake_all()
        self._begin()
