# SPDX-License-Identifier: Apache-2.0
"""The links of a cluster, and links that are held. Pure. Seconds and bytes.

Links are numbered: uplinks of racks, downlinks of racks, uplinks of nodes, downlinks of nodes. Only
links with a limit count. A *load* is what one read has on each link; its bytes come from a plan.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from typing import Iterable, Protocol, Sequence

from .placement import Cluster

Stream = tuple[int, int, int]          # from node, to node, bytes
Load = tuple[tuple[int, float], ...]   # link, bytes
FOREVER = float("inf")


def together(loads: Iterable[Load]) -> Load:
    total: dict[int, float] = defaultdict(float)
    for load in loads:
        for link, count in load:
            total[link] += count
    return tuple(total.items())


class Network:
    """Which links a stream passes."""

    def __init__(self, cluster: Cluster) -> None:
        racks, nodes = cluster.racks, cluster.nodes
        self.cluster = cluster
        self.racks = cluster.racks_of_nodes()
        up_rate = cluster.rack_rate if cluster.limits_uplinks else math.inf
        self.rates = ([up_rate] * racks + [cluster.rack_rate] * racks
                      + [cluster.node_rate] * (2 * nodes))
        self.rack_up = range(racks)
        self.rack_down = range(racks, 2 * racks)
        self.node_up = range(2 * racks, 2 * racks + nodes)
        self.node_down = range(2 * racks + nodes, 2 * racks + 2 * nodes)

    def passes(self, sender: int, receiver: int) -> Iterable[int]:
        """The limited links between two nodes."""
        if sender == receiver:
            return
        a, b = self.racks[sender], self.racks[receiver]
        if a != b and self.cluster.rack_rate:
            yield self.rack_up[a]
            yield self.rack_down[b]
        if self.cluster.node_rate:
            yield self.node_up[sender]
            yield self.node_down[receiver]

    def load(self, streams: Iterable[Stream]) -> Load:
        """All streams of one read together."""
        total: dict[int, float] = defaultdict(float)
        for sender, receiver, count in streams:
            for link in self.passes(sender, receiver):
                total[link] += count
        return tuple(total.items())


class Links(Protocol):
    """What the simulator asks of links. Time never goes backwards. A token names a read."""

    carried: list[float]  # bytes, of each link

    def start(self, now: float, loads: Sequence[Load], token: int,
              least_seconds: float = 0.0) -> None:
        """Begins a read. `loads`: its parts, each of which is one load; a pipeline has one. It
        takes `least_seconds` or longer."""

    def next_end(self) -> float:
        """When the next read ends, if nothing else begins; FOREVER if none runs."""

    def ended(self, now: float) -> list[int]:
        """The reads that have ended by `now`, each one once."""

    def shuffle(self, now: float, load: Load, seconds: float) -> None:
        """Intermediate data, asked for over the next `seconds`."""

    def shuffle_mark(self) -> object:
        """For shuffle_passed(): all intermediate data up to now."""

    def shuffle_passed(self, now: float, mark: object) -> bool: ...


class HeldLinks:
    """A link serves one read after another, in the order in which they ask, each for its bytes at
    the link's whole rate. A read asks all its links at once and ends when the last one has served
    it; its links need not serve it at the same time."""

    def __init__(self, rates: Sequence[float]) -> None:
        self._rates = rates
        self._free = [0.0] * len(rates)  # when each link has served all that asked so far
        self._ends: list[tuple[float, int]] = []
        self._shuffle_end = 0.0
        self.carried = [0.0] * len(rates)

    def start(self, now: float, loads: Sequence[Load], token: int,
              least_seconds: float = 0.0) -> None:
        end = now + least_seconds
        for load in loads:
            end = max(end, self._serve(now, load))
        heapq.heappush(self._ends, (end, token))

    def _serve(self, now: float, load: Load) -> float:
        free, end = self._free, now
        for link, count in load:
            served = max(now, free[link]) + count / self._rates[link]
            free[link] = served
            self.carried[link] += count
            end = max(end, served)
        return end

    def next_end(self) -> float:
        return self._ends[0][0] if self._ends else FOREVER

    def ended(self, now: float) -> list[int]:
        found = []
        while self._ends and self._ends[0][0] <= now:
            found.append(heapq.heappop(self._ends)[1])
        return found

    def shuffle(self, now: float, load: Load, seconds: float) -> None:
        del seconds
        self._shuffle_end = max(self._shuffle_end, self._serve(now, load))

    def shuffle_mark(self) -> object:
        return self._shuffle_end

    def shuffle_passed(self, now: float, mark: object) -> bool:
        assert isinstance(mark, float)
        return now >= mark
