# SPDX-License-Identifier: Apache-2.0
"""Links that are held as circuits: a part of a read begins when all its links are free, and holds
them until the slowest is done. Pure. A stricter reading of the paper's "hold the communication
link" than HeldLinks; a link may rest while a read that waits for it waits for another one, too."""

from __future__ import annotations

import heapq
from collections import deque
from typing import Sequence

from .links import FOREVER, Load

_Part = tuple[int, int, Load, float]  # order, read, load, seconds


class CircuitLinks:
    """In the order in which they ask; one that can begin does not wait for others that cannot."""

    def __init__(self, rates: Sequence[float]) -> None:
        self._rates = rates
        self._order = 0
        self._busy = [False] * len(rates)
        self._waiting: dict[tuple[int, ...], deque[_Part]] = {}  # by the links that they need
        self._running: list[tuple[float, int, int, Load]] = []   # end, order, read, load
        self._left: dict[int, int] = {}                          # parts of each read
        self._ended: list[int] = []
        self._now = 0.0
        self.carried = [0.0] * len(rates)

    def start(self, now: float, loads: Sequence[Load], token: int,
              least_seconds: float = 0.0) -> None:
        self._pass(now)
        self._left[token] = len(loads)
        for load in loads:
            seconds = max(count / self._rates[link] for link, count in load)
            self._order += 1
            part = (self._order, token, load, max(seconds, least_seconds))
            self._waiting.setdefault(tuple(sorted(link for link, _ in load)),
                                     deque()).append(part)
        self._begin()

    def _begin(self) -> None:
        heads = sorted((parts[0][0], links) for links, parts in self._waiting.items())
        for _, links in heads:
            if any(self._busy[link] for link in links):
                continue
            parts = self._waiting[links]
            order, token, load, seconds = parts.popleft()
            if not parts:
                del self._waiting[links]
            for link, count in load:
                self._busy[link] = True
                self.carried[link] += count
            heapq.heappush(self._running, (self._now + seconds, order, token, load))

    def _pass(self, now: float) -> None:
        while self._running and self._running[0][0] <= now:
            self._now, _, token, load = heapq.heappop(self._running)
            for link, _ in load:
                self._busy[link] = False
            self._left[token] -= 1
            if not self._left[token]:
                del self._left[token]
                self._ended.append(token)
            self._begin()
        self._now = now

    def next_end(self) -> float:
        """Of a part: a read may go on after it."""
        if self._ended:
            return self._now
        return self._running[0][0] if self._running else FOREVER

    def ended(self, now: float) -> list[int]:
        self._pass(now)
        found, self._ended = [token for token in self._ended if token >= 0], []
        return found

    def shuffle(self, now: float, load: Load, seconds: float) -> None:
        """A part for each link, as a read of nobody's."""
        del seconds
        if load:
            self._order += 1
            self.start(now, [(part,) for part in load], -self._order)

    def shuffle_mark(self) -> object:
        return {token for token in self._left if token < 0}

    def shuffle_passed(self, now: float, mark: object) -> bool:
        self._pass(now)
        assert isinstance(mark, set)
        return not any(token in self._left for token in mark)
