# SPDX-License-Identifier: Apache-2.0
"""A job's tasks: which are left, where their blocks are, and what they have put out. Pure."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import Iterable, Sequence

from .links import Load, Network
from .reads import Block
from .schedulers import Job, Kind


@dataclass
class Task:
    """A map task. `home`: the node that has its block; -1: no node has all of it; None: it is
    lost. `factor`: its time, as a multiple of the mean on the node that runs it."""

    number: int
    block: Block
    home: int | None
    factor: float
    assigned: bool = False


class JobRun:
    """A job from its arrival to its end."""

    def __init__(self, number: int, arrival: float, tasks: Sequence[Task],
                 reduce_factors: Sequence[float], shuffle_bytes: float,
                 racks: Sequence[int], local_cost: Sequence[float],
                 waits_for_recovery: bool = False) -> None:
        """`shuffle_bytes`: what each map task puts out; `racks`: of each node; `local_cost`: the
        seconds that the master expects of a map task on each node; `waits_for_recovery`: its
        degraded tasks are not given out, their blocks are waited for."""
        self.number, self.arrival, self.tasks = number, arrival, tasks
        self.reduce_factors, self.reduces = reduce_factors, len(reduce_factors)
        self._shuffle_bytes, self._racks, self._cost = shuffle_bytes, racks, local_cost
        self.waits = waits_for_recovery
        self.launched = self.degraded_launched = 0
        self.degraded_total = self.degraded_left = 0
        self.reducers: list[int] = []  # the node of each reduce task that is placed
        self.reduces_done = 0
        self.reducing = False
        self.mark: object = None       # of its last intermediate data
        self._ended = 0
        self._put_out: dict[int, int] = {}  # map tasks that ended since the last fetch, by node
        self._normal_left = 0
        self._own: list[deque[Task]] = [deque() for _ in racks]
        self._own_left = [0] * len(racks)
        self._left_by_cost: Counter[float] = Counter()
        self._of_rack: list[deque[Task]] = [deque() for _ in range(max(racks) + 1)]
        self._rack_left = [0] * (max(racks) + 1)
        self._any: deque[Task] = deque()
        self._degraded: deque[Task] = deque()
        for task in tasks:
            if task.home is None:
                self._degraded.append(task)
                self.degraded_total += 1
                self.degraded_left += 1
            else:
                self._add_normal(task, task.home)

    def _add_normal(self, task: Task, home: int) -> None:
        self._normal_left += 1
        self._any.append(task)
        if home >= 0:
            self._own[home].append(task)
            self._own_left[home] += 1
            self._left_by_cost[self._cost[home]] += 1
            self._of_rack[self._racks[home]].append(task)
            self._rack_left[self._racks[home]] += 1

    def block_came_back(self, task: Task, home: int) -> bool:
        """A recovery has put the task's lost block on a node. Whether that changes anything."""
        if task.assigned or task.home is not None:
            return False
        task.home = home
        self._degraded.remove(task)
        self.degraded_left -= 1
        self.degraded_total -= 1
        self._add_normal(task, home)
        return True

    # ---- what the master sees ----

    def has_unassigned_maps(self) -> bool:
        return self._normal_left > 0 or (self.degraded_left > 0 and not self.waits)

    def seen_from(self, rack: int) -> Job:
        local = self._rack_left[rack]
        return Job(local, self._normal_left - local, 0 if self.waits else self.degraded_left,
                   self.launched, len(self.tasks), self.degraded_launched, self.degraded_total)

    def local_left(self, node: int) -> int:
        return self._own_left[node]

    def local_seconds(self) -> float:
        """Of all unassigned tasks on the nodes that have their blocks. Of counts: seconds that are
        added and taken away again leave a rest that is not 0, and a slave without work would then
        have more than the mean, or less."""
        return sum(cost * count for cost, count in self._left_by_cost.items())

    def take(self, kind: Kind, node: int) -> Task:
        if kind is Kind.DEGRADED:
            task = self._degraded.popleft()
            self.degraded_left -= 1
            self.degraded_launched += 1
        else:
            task = self._take_normal(kind, node)
            self._forget_normal(task)
        task.assigned = True
        self.launched += 1
        return task

    def _take_normal(self, kind: Kind, node: int) -> Task:
        """Its own block before another one of its rack."""
        if kind is Kind.REMOTE:
            return self._first(self._any)
        if self._own_left[node]:
            return self._first(self._own[node])
        return self._first(self._of_rack[self._racks[node]])

    @staticmethod
    def _first(tasks: deque[Task]) -> Task:
        """Those that were taken by way of another list are dropped here."""
        while tasks[0].assigned:
            tasks.popleft()
        return tasks.popleft()

    def _forget_normal(self, task: Task) -> None:
        self._normal_left -= 1
        if task.home is not None and task.home >= 0:
            self._own_left[task.home] -= 1
            self._left_by_cost[self._cost[task.home]] -= 1
            self._rack_left[self._racks[task.home]] -= 1

    # ---- what it puts out ----

    @property
    def reduces_waiting(self) -> int:
        return self.reduces - len(self.reducers)

    def place_reduce(self, node: int) -> None:
        self.reducers.append(node)

    def end_map(self, node: int) -> None:
        self._ended += 1
        self._put_out[node] = self._put_out.get(node, 0) + 1

    def maps_done(self) -> bool:
        return self._ended == len(self.tasks)

    def fetch(self, network: Network) -> Load:
        """The intermediate data since the last call, on the links between map tasks and reducers:
        each reducer takes an equal part of each map task's."""
        put_out, self._put_out = self._put_out, {}
        if not put_out or not self._shuffle_bytes:
            return ()
        total = sum(put_out.values())
        load: dict[int, float] = {}
        if network.cluster.rack_rate:
            racks = range(network.cluster.racks)
            out = _summed((self._racks[node], count) for node, count in put_out.items())
            reducers = _summed((self._racks[node], 1) for node in self.reducers)
            self._share(load, network.rack_up, network.rack_down, racks, out, reducers, total)
        if network.cluster.node_rate:
            reducers = _summed((node, 1) for node in self.reducers)
            nodes = range(len(self._racks))
            self._share(load, network.node_up, network.node_down, nodes, put_out, reducers, total)
        return tuple(load.items())

    def _share(self, load: dict[int, float], up: Sequence[int], down: Sequence[int],
               places: Iterable[int], out: dict[int, int], reducers: dict[int, int],
               total: int) -> None:
        """What leaves and enters each place, which is a node or a rack."""
        for place in places:
            here = reducers.get(place, 0) / self.reduces
            put_out = out.get(place, 0)
            if leaves := put_out * (1 - here) * self._shuffle_bytes:
                load[up[place]] = leaves
            if enters := (total - put_out) * here * self._shuffle_bytes:
                load[down[place]] = enters


def _summed(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for place, count in pairs:
        total[place] = total.get(place, 0) + count
    return total
