# SPDX-License-Identifier: Apache-2.0
"""How long a recovery takes whose paths forward whole blocks (`pipe-b`). Pure.

A node sends a block on when it has all of it, so each path keeps one link busy at a time, and the
links' bytes are no bound that could be reached. This plays it through: repairs begin in order, as
soon as nodes have room; transfers share up- and downlinks by max-min fairness; time is in
timeslots, one block over one link. Paths that begin together go from node to node in step; how
much depends on that is seen when transfers slip, each by a part of its own at random.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Mapping, Sequence

from labkit.process import LabError

_ROUNDING = 1e-9


@dataclass
class Path:
    """A repair under way: helpers in order, and the requestor."""

    nodes: list[str]
    at: int = 0        # who sends
    left: float = 1.0  # of the block that it sends

    def resources(self) -> tuple[tuple[str, str], tuple[str, str]]:
        return ("up", self.nodes[self.at]), ("down", self.nodes[self.at + 1])


@dataclass
class Recovery:
    """The coordinator's policy `in-order` (src/coordinator/recovery/placement/recovery_policy.h):
    helpers as the stripe has them, requestors in turn, no node in more repairs at once than
    `streams`."""

    k: int
    targets: Sequence[str]
    streams: int
    turn: int = 0

    def place(self, holders: Sequence[str], busy: Mapping[str, int]) -> Path | None:
        def has_room(node: str) -> bool:
            return busy.get(node, 0) < self.streams
        helpers = [node for node in holders if has_room(node)][:self.k]
        open_targets = [node for node in self.targets if node not in holders and has_room(node)]
        if len(helpers) < self.k or not open_targets:
            return None
        target = open_targets[self.turn % len(open_targets)]
        self.turn += 1
        return Path([*helpers, target])


def timeslots(stripes: Sequence[Sequence[str]], k: int, targets: Sequence[str], streams: int,
              slip: float = 0.0, seed: int = 0) -> float:
    """Of the recovery of one block of each stripe. `stripes`: the nodes that have its other
    blocks, in the blocks' order. Transfers are longer or shorter by at most half of `slip`."""
    recovery, noise = Recovery(k, targets, streams), random.Random(seed)

    def one_block() -> float:
        return 1.0 + slip * (noise.random() - 0.5)
    waiting, running, now = list(stripes), [], 0.0
    while waiting or running:
        # A node is busy with a repair until it has sent its part.
        busy = Counter(node for path in running for node in path.nodes[path.at:])
        for holders in list(waiting):
            if path := recovery.place(holders, busy):
                path.left = one_block()
                busy.update(path.nodes)
                running.append(path)
                waiting.remove(holders)
        if not running:
            raise LabError("no node can take one of the lost blocks; use more nodes")
        rates = fair_rates([path.resources() for path in running])
        step = min(path.left / rate for path, rate in zip(running, rates))
        now += step
        for path, rate in zip(running, rates):
            path.left -= step * rate
            if path.left < _ROUNDING:
                path.at, path.left = path.at + 1, one_block()
        running = [path for path in running if path.at < len(path.nodes) - 1]
    return now


def fair_rates(streams: Sequence[Sequence[tuple[str, str]]]) -> list[float]:
    """Max-min fair rates of streams over the links that each of them passes, all of rate 1."""
    rates: dict[int, float] = {}
    capacity: dict[tuple[str, str], float] = defaultdict(lambda: 1.0)
    while len(rates) < len(streams):
        users: dict[tuple[str, str], list[int]] = defaultdict(list)
        for number, links in enumerate(streams):
            if number not in rates:
                for link in links:
                    users[link].append(number)
        tightest = min(users, key=lambda link: capacity[link] / len(users[link]))
        share = capacity[tightest] / len(users[tightest])
        for number in users[tightest]:
            rates[number] = share
            for link in streams[number]:
                capacity[link] -= share
    return [rates[number] for number in range(len(streams))]
