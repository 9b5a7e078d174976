# SPDX-License-Identifier: Apache-2.0
"""Blocks of stripes on nodes in racks. Pure, by seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Sequence


@dataclass(frozen=True)
class Cluster:
    """Nodes 0 to N-1 in racks of equal size. Rates in bytes per second; 0 is no limit."""

    nodes: int = 40
    racks: int = 4
    rack_rate: float = 0.0  # of what leaves a rack, and of what enters it
    node_rate: float = 0.0
    limits_uplinks: bool = True  # no: only what enters a rack is limited

    def rack_of(self, node: int) -> int:
        return node * self.racks // self.nodes

    def racks_of_nodes(self) -> list[int]:
        return [self.rack_of(node) for node in range(self.nodes)]


@dataclass(frozen=True)
class Code:
    n: int
    k: int

    def name(self) -> str:
        return f"rs({self.n},{self.k})"


Stripe = tuple[int, ...]  # the node of each block; the first k blocks are native


def place(cluster: Cluster, code: Code, native_blocks: int, chance: random.Random) -> list[Stripe]:
    """Stripes at random, a node for each block and at most n - k blocks in a rack, so that the loss
    of a rack is survived (section III of the paper)."""
    if native_blocks % code.k:
        raise ValueError(f"{native_blocks} native blocks are no whole stripes of {code.name()}: "
                         f"take a multiple of {code.k}")
    most = code.n - code.k
    of_a_rack = min(most, cluster.nodes // cluster.racks)
    if of_a_rack * cluster.racks < code.n:
        raise ValueError(f"{code.name()} has no place in {cluster.racks} racks of "
                         f"{cluster.nodes // cluster.racks} nodes with at most {most} blocks each")
    racks = cluster.racks_of_nodes()
    return [_stripe(racks, code.n, most, chance) for _ in range(native_blocks // code.k)]


def _stripe(racks: Sequence[int], n: int, most: int, chance: random.Random) -> Stripe:
    """Each next node at random among those whose rack has room."""
    room = {rack: most for rack in racks}
    chosen: list[int] = []
    for node in chance.sample(range(len(racks)), len(racks)):
        if room[racks[node]] and len(chosen) < n:
            room[racks[node]] -= 1
            chosen.append(node)
    chance.shuffle(chosen)  # which of them are native has nothing to do with the order above
    return tuple(chosen)
