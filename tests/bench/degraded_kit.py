# SPDX-License-Identifier: Apache-2.0
"""What the tests of bench/degraded.py share: plans without the planner, and scripted masters."""

from __future__ import annotations

from typing import Callable, Sequence

from degradedkit.links import Stream
from degradedkit.placement import Cluster, Code, Stripe
from degradedkit.schedulers import Algorithm, Assignment, Job, Slave


class Stars:
    """Conventional plans: the first k survivors send to the reader."""

    def describe(self, cluster: Cluster) -> None:
        pass

    def streams(self, scheme: str, code: Code, stripe: Stripe, failed: int,
                survivors: Sequence[int], requestor: int, count: int) -> tuple[Stream, ...]:
        return tuple((stripe[i], requestor, count) for i in survivors[:code.k]
                     if stripe[i] != requestor)


def scripted(answers: Sequence[Sequence[Assignment]]) -> Algorithm:
    """One answer for each heartbeat in turn, whoever sends it; then nothing."""
    left = list(answers)

    def answer(jobs: Sequence[Job], free_slots: int, slave: Callable[[], Slave],
               ) -> list[Assignment]:
        del jobs, slave
        given = list(left.pop(0)) if left else []
        assert len(given) <= free_slots
        return given
    return answer
