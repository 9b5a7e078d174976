# SPDX-License-Identifier: Apache-2.0
"""A cluster that runs MapReduce jobs while nodes are lost: a discrete-event simulation. Pure.

Slaves send heartbeats; the master answers with map tasks, by one of schedulers.py's algorithms, and
with reduce tasks. A task holds a slot from then on: it reads, if its block is elsewhere or lost,
and computes. Map tasks leave intermediate data, which reducers fetch once a heartbeat's time.
Reducers compute when they have all of it. Jobs are served first in, first out.

Events at one time: reads that end, tasks that end, blocks and jobs that come, fetches, and then
heartbeats in the order of the slaves. A heartbeat that nothing depends on is not played.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import Any, Callable, Protocol, Sequence

from .job import JobRun, Task
from .links import Links, Load, Network, together
from .reads import Block
from .schedulers import Algorithm, Kind, Slave

# Of events at one time.
TASK_END, ARRIVAL, FETCH, BEAT = range(4)
# Heartbeats are at whole multiples; this much of one is rounding.
_ROUNDING = 1e-9
# A job that never ends is a bug, and stops here. Seconds.
TOO_LONG = 1e7


class Reads(Protocol):
    """ContiguousReads or StripedReads of reads.py."""

    network: Network
    block_bytes: int

    def home(self, block: Block) -> int | None: ...
    def copy(self, sender: int, receiver: int) -> list[Load]: ...
    def normal(self, block: Block, sender: int, receiver: int) -> list[Load]: ...
    def degraded(self, block: Block, receiver: int) -> list[Load]: ...


@dataclass(frozen=True)
class Slaves:
    """What the slaves are like. One entry for each node."""

    map_slots: int
    reduce_slots: int
    map_seconds: Sequence[float]     # the mean, by which the master estimates, too
    reduce_seconds: Sequence[float]
    first_beat: Sequence[float]      # when each one sends its first heartbeat, then every
    heartbeat: float                 # so many seconds
    lost: frozenset[int] = frozenset()
    # How wrong the master's estimate of t_s is, for each node; the paper's has none.
    misjudged: Sequence[float] | None = None


@dataclass
class Outcome:
    """What happened. Seconds."""

    runtimes: list[float] = field(default_factory=list)  # of jobs, from arrival to end
    launched: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    degraded_reads: list[float] = field(default_factory=list)
    read_bytes: list[float] = field(default_factory=list)     # by link, as asked for
    carried: list[float] = field(default_factory=list)        # by link, all of them
    trace: list[tuple[object, ...]] | None = None


class Simulation:
    def __init__(self, slaves: Slaves, reads: Reads, links: Links, algorithm: Algorithm,
                 read_seconds: float, keep_trace: bool = False) -> None:
        """`read_seconds`: EDF's threshold."""
        self.slaves, self.reads, self.links = slaves, reads, links
        self.algorithm = algorithm
        self.read_seconds = read_seconds
        self.outcome = Outcome(trace=[] if keep_trace else None)
        nodes = len(slaves.map_seconds)
        self.racks = reads.network.racks
        self.alive = [node for node in range(nodes) if node not in slaves.lost]
        self.alive_racks = sorted({self.racks[node] for node in self.alive})
        self.free_maps = [slaves.map_slots] * nodes
        self.free_reduces = [slaves.reduce_slots] * nodes
        self.jobs: list[JobRun] = []       # running, first in first
        self.now = 0.0
        self._last_given = [0.0] * (max(self.racks) + 1)  # a degraded task, to each rack
        self._events: list[tuple[float, int, int, Callable[[Any], None], Any]] = []
        self._order = 0
        self._beat_due = [False] * nodes
        self._last_beat = [-math.inf] * nodes
        self._reading: dict[int, Callable[[], None]] = {}
        self._fetch_due = False
        self._misjudged = slaves.misjudged or [1.0] * nodes
        self.outcome.read_bytes = [0.0] * len(reads.network.rates)

    # ---- time ----

    def at(self, when: float, what: int, act: Callable[[Any], None], about: Any = None) -> None:
        """Calls act(about) then."""
        self._order += 1
        heapq.heappush(self._events, (when, what, self._order, act, about))

    def run(self) -> Outcome:
        events, links = self._events, self.links
        while True:
            reads_end = links.next_end()
            if events and events[0][0] < reads_end:
                when, _, _, act, about = heapq.heappop(events)
                self.now = when
                act(about)
            elif reads_end <= TOO_LONG:
                self.now = reads_end
                for token in links.ended(reads_end):
                    self._reading.pop(token)()
            else:
                break
            if self.now > TOO_LONG:
                raise RuntimeError("the simulation does not end")
        if self.jobs:
            raise RuntimeError("tasks are left that nobody runs")
        self.outcome.carried = self.links.carried
        return self.outcome

    # ---- jobs ----

    def submit(self, job: JobRun) -> None:
        self.outcome.runtimes.append(math.nan)
        self.at(job.arrival, ARRIVAL, self._arrive, job)

    def _arrive(self, job: JobRun) -> None:
        self.jobs.append(job)
        self.wake_all()

    def wake_all(self) -> None:
        """Slaves with a free slot ask again."""
        for node in self.alive:
            if self.free_maps[node] or self.free_reduces[node]:
                self._expect_beat(node)

    def _end_job(self, job: JobRun) -> None:
        self.jobs.remove(job)
        self.outcome.runtimes[job.number] = self.now - job.arrival

    # ---- heartbeats ----

    def _expect_beat(self, node: int) -> None:
        if self._beat_due[node]:
            return
        first, every = self.slaves.first_beat[node], self.slaves.heartbeat
        number = max(0, math.ceil((self.now - first) / every - _ROUNDING))
        when = first + number * every
        if when <= self._last_beat[node]:
            when = first + (number + 1) * every
        self._beat_due[node] = True
        heapq.heappush(self._events, (max(when, self.now), BEAT, node, self._beat, node))

    def _beat(self, node: int) -> None:
        self._beat_due[node] = False
        self._last_beat[node] = self.now
        free = self.free_maps[node]
        if free:
            jobs = [job for job in self.jobs if job.has_unassigned_maps()]
            rack = self.racks[node]
            seen = (job.seen_from(rack) for job in jobs)  # of many jobs few are looked at
            for number, kind in self.algorithm(seen, free, lambda: self._slave(node, jobs)):
                self._launch(jobs[number], kind, node)
        for job in self.jobs:
            while self.free_reduces[node] and job.reduces_waiting:
                self.free_reduces[node] -= 1
                job.place_reduce(node)
                self._expect_fetch()
        if ((self.free_maps[node] and self._maps_are_left())
                or (self.free_reduces[node] and any(job.reduces_waiting for job in self.jobs))):
            self._expect_beat(node)

    def _slave(self, node: int, jobs: Sequence[JobRun]) -> Slave:
        slots = self.slaves.map_slots
        own = sum(job.local_left(node) for job in jobs)
        idle = [self.now - self._last_given[rack] for rack in self.alive_racks]
        return Slave(
            local_seconds=own * self._estimate(node) / slots,
            mean_local_seconds=sum(job.local_seconds() for job in jobs) / slots / len(self.alive),
            rack_idle=self.now - self._last_given[self.racks[node]],
            # Rounded up, the mean of equal times would be more than each of them.
            mean_rack_idle=min(sum(idle) / len(idle), max(idle)), read_seconds=self.read_seconds)

    def _estimate(self, node: int) -> float:
        return self.slaves.map_seconds[node] * self._misjudged[node]

    def _maps_are_left(self) -> bool:
        for job in self.jobs:
            if job.has_unassigned_maps():
                return True
        return False

    # ---- map tasks ----

    def _launch(self, job: JobRun, kind: Kind, node: int) -> None:
        task = job.take(kind, node)
        self.free_maps[node] -= 1
        self.outcome.launched[kind] += 1
        if self.outcome.trace is not None:
            self._note("launch", kind.value, job.number, task.number, node)
        if task.home == node:
            self._compute((job, task, node))
        elif kind is Kind.DEGRADED:
            self._last_given[self.racks[node]] = began = self.now

            def compute() -> None:
                self.outcome.degraded_reads.append(self.now - began)
                self._compute((job, task, node))
            self.read(self.reads.degraded(task.block, node), compute)
        else:
            self.read(self.reads.normal(task.block, task.home, node),
                      lambda: self._compute((job, task, node)))

    def _compute(self, running: tuple[JobRun, Task, int]) -> None:
        _, task, node = running
        self.at(self.now + self.slaves.map_seconds[node] * task.factor, TASK_END, self._end_map,
                running)

    def read(self, loads: Sequence[Load], then: Callable[[], None],
             least_seconds: float = 0.0) -> None:
        """Calls `then` when the read has ended; at once if it passes no limited link."""
        if not loads and not least_seconds:
            then()
            return
        if not loads:
            self.at(self.now + least_seconds, ARRIVAL, lambda _: then())
            return
        for load in loads:
            for link, count in load:
                self.outcome.read_bytes[link] += count
        self._order += 1
        self._reading[self._order] = then
        self.links.start(self.now, loads, self._order, least_seconds)

    def _end_map(self, ended: tuple[JobRun, Task, int]) -> None:
        job, task, node = ended
        if self.outcome.trace is not None:
            self._note("end", job.number, task.number, node)
        self.free_maps[node] += 1
        job.end_map(node)
        if not self._beat_due[node] and self._maps_are_left():
            self._expect_beat(node)
        if not job.reduces:
            if job.maps_done():
                self._end_job(job)
        elif not self._fetch_due:
            self._expect_fetch()

    # ---- shuffle and reduce tasks ----

    def _expect_fetch(self) -> None:
        if not self._fetch_due:
            self._fetch_due = True
            every = self.slaves.heartbeat
            self.at((math.floor(self.now / every + _ROUNDING) + 1) * every, FETCH, self._fetch)

    def _fetch(self, _: int) -> None:
        """Reducers ask for what map tasks have left since the last time."""
        self._fetch_due = False
        fetching = [job for job in self.jobs if job.reduces and not job.reduces_waiting]
        # Without new data too: what is left of the last time is then spread anew.
        self.links.shuffle(self.now, together(job.fetch(self.reads.network) for job in fetching),
                           self.slaves.heartbeat)
        for job in fetching:
            if job.maps_done() and job.mark is None:
                job.mark = self.links.shuffle_mark()
            if job.mark is not None and not job.reducing:
                if self.links.shuffle_passed(self.now, job.mark):
                    self._reduce(job)
                else:
                    self._expect_fetch()

    def _reduce(self, job: JobRun) -> None:
        job.reducing = True
        for number, node in enumerate(job.reducers):
            seconds = self.slaves.reduce_seconds[node] * job.reduce_factors[number]
            self.at(self.now + seconds, TASK_END, self._end_reduce, (job, node))

    def _end_reduce(self, ended: tuple[JobRun, int]) -> None:
        job, node = ended
        if self.outcome.trace is not None:
            self._note("reduced", job.number, node)
        self.free_reduces[node] += 1
        job.reduces_done += 1
        if job.reduces_done == job.reduces:
            self._end_job(job)
        if any(other.reduces_waiting for other in self.jobs):
            self._expect_beat(node)

    def _note(self, *what: object) -> None:
        assert self.outcome.trace is not None
        self.outcome.trace.append((self.now, *what))
