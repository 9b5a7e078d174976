# SPDX-License-Identifier: Apache-2.0
"""A full-node recovery beside the jobs: lost blocks are rebuilt one after another at a set rate, on
nodes that have no block of the stripe. Pure, by seed."""

from __future__ import annotations

import random
from typing import Mapping, Sequence

from .job import JobRun, Task
from .reads import Block, ContiguousReads
from .simulator import ARRIVAL, Simulation


class Recovery:
    def __init__(self, simulation: Simulation, reads: ContiguousReads, blocks: Sequence[Block],
                 waiting: Mapping[Block, Sequence[tuple[JobRun, Task]]], rate: float,
                 begins: float, chance: random.Random) -> None:
        """`blocks`: in the order in which they come back. `waiting`: whose tasks read them. `rate`:
        bytes rebuilt per second; links may allow less. `begins`: seconds after the loss."""
        self._simulation, self._reads, self._chance = simulation, reads, chance
        self._left = list(reversed(blocks))
        self._waiting = waiting
        self._seconds = reads.block_bytes / rate
        self.ended = begins
        simulation.at(begins, ARRIVAL, lambda _: self._next())

    def _next(self) -> None:
        if not self._left:
            self.ended = self._simulation.now
            return
        block = self._left.pop()
        holders = self._reads.stripes[block.stripe]
        node = self._chance.choice([node for node in self._simulation.alive
                                    if node not in holders])
        self._simulation.read(self._reads.degraded(block, node),
                              lambda: self._came_back(block, node), self._seconds)

    def _came_back(self, block: Block, node: int) -> None:
        moved = [job.block_came_back(task, node) for job, task in self._waiting.get(block, ())]
        if any(moved):
            self._simulation.wake_all()
        self._next()
