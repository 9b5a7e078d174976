# SPDX-License-Identifier: Apache-2.0
"""How fast a block can be rebuilt at most over given links: a bound that owes nothing to ECPipe's
own planner. Solved by HiGHS, through SciPy.

A packing of trees, each of k helpers, is seen as a flow. Let x be its rate, p_i the rate of the
trees that helper i is in, and y_ab what all trees send from a to b. Then

    each limit:           the y that use it add up to no more than its speed
    each helper i:        what leaves it is p_i, and p_i <= x
    all helpers:          the p_i add up to k x
    set S with helper i:  what leaves S is p_i at least, for the sums of i get out of S
    S of n - k or more:   what leaves S is x at least, for no tree can do without all of S

The largest x is a bound on every packing. There are exponentially many sets; those that a solution
violates are found by least cuts and added, until none is violated. Where all helpers are needed the
bound is reached by a packing (Edmonds); otherwise it may be above what any packing reaches.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

ROOT = "R"
# Flows are whole numbers there.
SCALE = 1e6
MOST = 2**30


@dataclass
class Network:
    """Speeds of anything, in one unit. Node 0 has lost its block; 1 to n - 1 help."""

    n: int
    k: int
    up: dict[str, float] = field(default_factory=dict)
    down: dict[str, float] = field(default_factory=dict)
    pairs: dict[tuple[str, str], float] = field(default_factory=dict)
    rack: dict[str, str] = field(default_factory=dict)
    rack_speed: float = 0

    @property
    def helpers(self) -> list[str]:
        return [str(i) for i in range(1, self.n)]

    def limits_of(self, sender: str, receiver: str) -> list[tuple]:
        limits: list[tuple] = [("up", sender), ("down", receiver)]
        if (sender, receiver) in self.pairs:
            limits.append(("pair", sender, receiver))
        if self.rack_speed and self.rack[sender] != self.rack[receiver]:
            limits += [("out of", self.rack[sender]), ("into", self.rack[receiver])]
        return limits

    def speed_of(self, limit: tuple) -> float:
        kind, *names = limit
        if kind == "pair":
            return self.pairs[names[0], names[1]]
        if kind in ("up", "down"):
            return (self.up if kind == "up" else self.down)[names[0]]
        return self.rack_speed


class Bound:
    """The linear program. Columns: x, then p of each helper, then y of each arc."""

    MOST_ROUNDS = 40
    # A set that is violated by less than this share of the rate is left alone.
    LEAST_VIOLATION = 1e-4

    def __init__(self, network: Network) -> None:
        self.network = network
        self.helpers = network.helpers
        self.arcs = [(a, b) for a in self.helpers for b in [*self.helpers, ROOT] if a != b]
        self.column_of_arc = {arc: 1 + len(self.helpers) + i for i, arc in enumerate(self.arcs)}
        self.columns = 1 + len(self.helpers) + len(self.arcs)
        # About the rate, for the solver's sake.
        self.unit = min(network.down[ROOT], sum(
            min(network.speed_of(limit) for limit in network.limits_of(helper, ROOT))
            for helper in self.helpers))
        self.at_most: list[tuple[dict[int, float], float]] = []  # sum of entries <= right side
        self.equal: list[tuple[dict[int, float], float]] = []
        self.place = {name: i for i, name in enumerate([*self.helpers, ROOT])}
        self.spare = len(self.helpers) - network.k
        self.close_to = self.by_closeness()
        self.state_limits()
        self.state_shares()

    def state_limits(self) -> None:
        uses: dict[tuple, list[int]] = {}
        for arc in self.arcs:
            for limit in self.network.limits_of(*arc):
                uses.setdefault(limit, []).append(self.column_of_arc[arc])
        for limit, columns in uses.items():
            self.at_most.append((dict.fromkeys(columns, 1.0),
                                 self.network.speed_of(limit) / self.unit))

    def state_shares(self) -> None:
        for i, helper in enumerate(self.helpers):
            self.at_most.append(({1 + i: 1.0, 0: -1.0}, 0.0))
            leaving = {self.column_of_arc[arc]: 1.0 for arc in self.arcs if arc[0] == helper}
            self.equal.append((leaving | {1 + i: -1.0}, 0.0))
        count = range(1, 1 + len(self.helpers))
        self.equal.append((dict.fromkeys(count, 1.0) | {0: -float(self.network.k)}, 0.0))
        self.leaves(set(self.helpers), 0)

    def leaves(self, nodes: set[str], column: int) -> None:
        """What leaves these nodes is that column's value at least."""
        entries = {self.column_of_arc[arc]: -1.0 for arc in self.arcs
                   if arc[0] in nodes and arc[1] not in nodes}
        self.at_most.append((entries | {column: 1.0}, 0.0))

    def rate(self) -> float:
        """The bound of each round holds. Ends when two of them have gained nothing."""
        bounds: list[float] = []
        while len(bounds) < self.MOST_ROUNDS:
            solution = self.solve()
            bounds.append(solution[0])
            if len(bounds) > 2 and bounds[-1] > bounds[-3] * (1 - self.LEAST_VIOLATION):
                break
            if not self.add_violated(solution):
                break
        return bounds[-1] * self.unit

    def solve(self) -> np.ndarray:
        objective = np.zeros(self.columns)
        objective[0] = -1
        solved = linprog(objective, A_ub=self.matrix(self.at_most),
                         b_ub=[right for _, right in self.at_most],
                         A_eq=self.matrix(self.equal), b_eq=[right for _, right in self.equal],
                         method="highs")
        if solved.status != 0:
            raise RuntimeError(f"HiGHS: {solved.message}")
        return solved.x

    def matrix(self, rows: list[tuple[dict[int, float], float]]) -> csr_matrix:
        entries = [(i, j, value) for i, (row, _) in enumerate(rows) for j, value in row.items()]
        i, j, values = zip(*entries)
        return csr_matrix((values, (i, j)), shape=(len(rows), self.columns))

    def add_violated(self, solution: np.ndarray) -> bool:
        """Adds the least cuts that carry less than they must."""
        rate = solution[0]
        cuts: dict[tuple[frozenset[str], int], None] = {}
        flow_network = self.flow_network(solution)
        for i, helper in enumerate(self.helpers):
            for sources, column in (([helper], 1 + i), (self.close_to[helper], 0)):
                wanted = solution[column]
                if wanted <= self.LEAST_VIOLATION * rate:
                    continue
                carried, cut = least_cut(flow_network, [self.place[name] for name in sources])
                if carried < wanted - self.LEAST_VIOLATION * rate:
                    cuts[frozenset(self.helpers[at] for at in cut), column] = None
        for cut, column in cuts:
            # Where no tree can do without all of them, the cut is as good for the whole rate.
            self.leaves(set(cut), 0 if len(cut) > self.spare else column)
        return bool(cuts)

    def flow_network(self, solution: np.ndarray) -> np.ndarray:
        """Of the helpers, then the requestor, then a place for a source."""
        capacity = np.zeros((len(self.helpers) + 2,) * 2, dtype=np.int32)
        for (a, b), column in self.column_of_arc.items():
            capacity[self.place[a], self.place[b]] = int(max(solution[column], 0) * SCALE)
        return capacity

    def by_closeness(self) -> dict[str, list[str]]:
        """Each helper with as many others as make a set that no tree can do without."""
        def speed(a: str, b: str) -> float:
            return min(self.network.speed_of(limit) for limit in self.network.limits_of(a, b))

        def apart(a: str, b: str) -> tuple[bool, float]:
            racks = self.network.rack
            return bool(racks) and racks[a] != racks[b], -speed(a, b) - speed(b, a)
        return {helper: [helper] + sorted((name for name in self.helpers if name != helper),
                                          key=lambda name: apart(helper, name))[:self.spare]
                for helper in self.helpers}


def least_cut(capacity: np.ndarray, sources: list[int]) -> tuple[float, list[int]]:
    """What can flow from the sources to the requestor, and the helpers on their side of the
    least cut."""
    source, root = len(capacity) - 1, len(capacity) - 2
    capacity[source] = 0
    capacity[source, sources] = MOST
    flow = maximum_flow(csr_matrix(capacity), source, root)
    rest = csr_matrix(capacity - flow.flow.toarray())
    rest.eliminate_zeros()
    reached = breadth_first_order(rest, source, return_predecessors=False)
    return flow.flow_value / SCALE, sorted(int(at) for at in reached if at < root)


def best_rate(network: Network) -> float:
    """In the unit of the network's speeds."""
    return Bound(network).rate()
