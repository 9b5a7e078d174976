# SPDX-License-Identifier: Apache-2.0
"""LF, BDF and EDF: Algorithms 1 to 3 of "Degraded-First Scheduling for MapReduce in Erasure-Coded
Storage Clusters" (Li, Lee and Hu, DSN'14). Pure: what the master knows goes in, what it answers to
one heartbeat comes out. tests/bench/schedules.json has examples that do not depend on this program.

The printed line 2 of Algorithm 3 refuses a slave if t_s < E[t_s]. The prose of section IV-C
refuses it if t_s > E[t_s], "slave s does not have spare resources", and that is what is done here.
"""

from __future__ import annotations

from enum import Enum
from typing import Callable, Iterable, NamedTuple


class Kind(Enum):
    """What a slave is told to run. Local is node-local, or rack-local if there is none."""

    LOCAL = "local"
    REMOTE = "remote"
    DEGRADED = "degraded"

    __hash__ = object.__hash__  # Enum's own takes a tenth of a run


class Job(NamedTuple):
    """A running job, as seen from the slave that asks."""

    local: int              # unassigned tasks whose block is in the slave's rack
    remote: int             # unassigned tasks whose block is in another rack
    degraded: int           # unassigned tasks whose block is lost
    launched: int           # m: map tasks of all kinds launched so far, of
    total: int              # M
    degraded_launched: int  # m_d, of
    degraded_total: int     # M_d


class Slave(NamedTuple):
    """What EDF asks of the slave and of its rack. Seconds."""

    local_seconds: float = 0.0        # t_s: what its own unassigned local tasks will take
    mean_local_seconds: float = 0.0   # E[t_s], over all slaves
    rack_idle: float = 0.0            # t_r: since the rack was last given a degraded task
    mean_rack_idle: float = 0.0       # E[t_r], over all racks
    read_seconds: float = 0.0         # the threshold: what a degraded read is expected to take


class Assignment(NamedTuple):
    job: int
    kind: Kind


# The slave is asked for only where it matters: what is asked of it takes time to find out.
Algorithm = Callable[[Iterable[Job], int, Callable[[], Slave]], list[Assignment]]


def locality_first(jobs: Iterable[Job], free_slots: int, slave: Callable[[], Slave],
                   ) -> list[Assignment]:
    """Algorithm 1."""
    del slave
    answer: list[Assignment] = []
    for number, job in enumerate(jobs):
        if len(answer) == free_slots:
            break
        answer += _local_and_remote(number, job, free_slots - len(answer))
        degraded = min(job.degraded, free_slots - len(answer))
        answer += [Assignment(number, Kind.DEGRADED)] * degraded
    return answer


def basic_degraded_first(jobs: Iterable[Job], free_slots: int, slave: Callable[[], Slave],
                         ) -> list[Assignment]:
    """Algorithm 2."""
    del slave
    return _degraded_first(jobs, free_slots, lambda: True)


def enhanced_degraded_first(jobs: Iterable[Job], free_slots: int, slave: Callable[[], Slave],
                            ) -> list[Assignment]:
    """Algorithm 3."""
    def may_take() -> bool:
        asks = slave()
        return assign_to_slave(asks) and assign_to_rack(asks)
    return _degraded_first(jobs, free_slots, may_take)


ALGORITHMS: dict[str, Algorithm] = {
    "LF": locality_first, "BDF": basic_degraded_first, "EDF": enhanced_degraded_first}


def as_printed(jobs: Iterable[Job], free_slots: int, slave: Callable[[], Slave],
               ) -> list[Assignment]:
    """EDF with line 2 of Algorithm 3 as it is printed; only to see what it would come to."""
    def may_take() -> bool:
        asks = slave()
        return not asks.local_seconds < asks.mean_local_seconds and assign_to_rack(asks)
    return _degraded_first(jobs, free_slots, may_take)


def assign_to_slave(slave: Slave) -> bool:
    """Locality preservation: not to a slave that has more local work to do than others."""
    return not slave.local_seconds > slave.mean_local_seconds


def assign_to_rack(slave: Slave) -> bool:
    """Rack awareness: not to a rack that has just begun a degraded read."""
    return not slave.rack_idle < min(slave.mean_rack_idle, slave.read_seconds)


def keeps_pace(job: Job) -> bool:
    """m / M >= m_d / M_d, in whole numbers."""
    return job.launched * job.degraded_total >= job.degraded_launched * job.total


def _degraded_first(jobs: Iterable[Job], free_slots: int, may_take: Callable[[], bool],
                    ) -> list[Assignment]:
    """At most one degraded task a heartbeat, of whichever job is due for one first."""
    answer: list[Assignment] = []
    assigned = False
    for number, job in enumerate(jobs):
        if len(answer) == free_slots:
            break
        if not assigned and job.degraded and keeps_pace(job) and may_take():
            answer.append(Assignment(number, Kind.DEGRADED))
            assigned = True
        answer += _local_and_remote(number, job, free_slots - len(answer))
    return answer


def _local_and_remote(number: int, job: Job, slots: int) -> list[Assignment]:
    local = min(job.local, slots)
    remote = min(job.remote, slots - local)
    return ([Assignment(number, Kind.LOCAL)] * local + [Assignment(number, Kind.REMOTE)] * remote)
