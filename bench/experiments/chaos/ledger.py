# SPDX-License-Identifier: Apache-2.0
"""What is wrong in the cluster at each moment, and what that allows an operation.

Each fault is a mark with a beginning and, once the cluster has got over it, an end. An operation on
a block must succeed while no more of the stripe's other blocks are marked, from its beginning to
its end, than the code can spare. Thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, Iterable, Mapping

# After a fault has been undone: a connection that was cut sends again after its back-off, and what
# the coordinator knows of the nodes is a heartbeat old.
SETTLE_SECONDS = 2.0


@dataclass(eq=False)
class Mark:
    """Something that is wrong: nodes, single blocks, or the coordinator. `unseen`: the bytes of the
    blocks are wrong, and only a check of the whole result can tell."""

    kind: str
    nodes: frozenset[str] = frozenset()
    blocks: frozenset[str] = frozenset()
    coordinator: bool = False
    unseen: bool = False
    clock: str = ""  # whose clock is wrong, which excuses nothing but a repair to a node
    units: int = 0  # how much of what the code can spare it takes
    begin: float = 0.0
    end: float | None = None

    def names(self) -> str:
        """What is wrong, in words."""
        return " ".join(sorted(self.nodes | self.blocks | ({self.clock} - {""})))

    def overlaps(self, begin: float, end: float) -> bool:
        return self.begin <= end and (self.end is None or self.end + SETTLE_SECONDS >= begin)


@dataclass(frozen=True)
class Allowance:
    """What an operation may be forgiven."""

    affected: int             # of the stripe's blocks besides those that are rebuilt
    unseen: bool              # one of them has wrong bytes
    coordinator_away: bool    # at some time of it
    disturbed: bool           # there was any fault, anywhere, while it ran


class Ledger:
    """`spare`: units of faults that the code bears besides the block that is rebuilt."""

    def __init__(self, spare: int) -> None:
        self.spare = spare
        self._lock = threading.Lock()
        self._marks: list[Mark] = []
        self._findings: list[dict[str, Any]] = []
        self._counts: dict[str, Counter[str]] = {}

    # ---- What is wrong -------------------------------------------------------------------------

    def begin(self, mark: Mark, *, beyond: bool = False) -> bool:
        """False, and no mark, when it meets another one or exceeds what the code can spare; a fault
        that is meant to exceed it says `beyond`."""
        with self._lock:
            active = [each for each in self._marks if each.end is None]
            if any(each.nodes & mark.nodes or each.blocks & mark.blocks for each in active):
                return False
            if mark.coordinator and any(each.coordinator for each in active):
                return False
            if mark.clock and any(each.clock == mark.clock for each in active):
                return False
            if not beyond and sum(each.units for each in active) + mark.units > self.spare:
                return False
            # A recovery has nothing to compare its bytes with, so it never meets wrong ones.
            moves = mark.kind in MOVES
            if (moves and any(each.unseen for each in active)) or (
                    mark.unseen and any(each.kind in MOVES for each in active)):
                return False
            mark.begin = time.monotonic()
            self._marks.append(mark)
            return True

    def end(self, mark: Mark) -> None:
        with self._lock:
            mark.end = time.monotonic()

    def active(self) -> list[Mark]:
        with self._lock:
            return [mark for mark in self._marks if mark.end is None]

    def allowance(self, begin: float, places: Mapping[str, str],
                  rebuilt: Iterable[str]) -> Allowance:
        """For an operation that began then and ends now. `places`: the node of each block of its
        stripe."""
        end = time.monotonic()
        with self._lock:
            marks = [mark for mark in self._marks if mark.overlaps(begin, end)]
        others = {block: node for block, node in places.items() if block not in set(rebuilt)}
        affected = {block for block, node in others.items()
                    if any(block in mark.blocks or node in mark.nodes for mark in marks)}
        return Allowance(
            affected=len(affected),
            unseen=any(mark.unseen and mark.blocks & set(others) for mark in marks),
            coordinator_away=any(mark.coordinator for mark in marks),
            disturbed=any(mark.kind not in MOVES for mark in marks))

    # ---- What came of it -----------------------------------------------------------------------

    def count(self, table: str, name: str) -> None:
        with self._lock:
            self._counts.setdefault(table, Counter())[name] += 1

    def counted(self, table: str) -> dict[str, int]:
        with self._lock:
            return dict(sorted(self._counts.get(table, Counter()).items()))

    def find(self, what: str, **evidence: Any) -> None:
        """Something that must not be: the run has failed."""
        with self._lock:
            wrong = [f"{mark.kind} {mark.names()}".strip()
                     for mark in self._marks if mark.overlaps(time.monotonic(), time.monotonic())]
            self._findings.append({"what": what, **evidence, "wrong_then": wrong})
        print(f"FOUND: {what}: {evidence}; wrong then: {wrong}", flush=True)

    def findings(self) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._findings)


RECOVERY, REPAIR_TO = "recovery", "repair-to"
MOVES = frozenset({RECOVERY, REPAIR_TO})
