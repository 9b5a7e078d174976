# SPDX-License-Identifier: Apache-2.0
"""Links that reads share max-min, as TCP's streams do. Pure. Seconds and bytes.

A read's streams go in step, because whoever combines blocks does so slice by slice and holds a few
slices only, so a read has one rate: that of a stream that carries one unit, its largest load being
so many units on its link. Every stream of a unit has an equal claim on each link that it passes.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import Sequence

from .links import FOREVER, Load, together

# What is left of a read by rounding, in bytes. No read has so few.
_ROUNDING = 1e-3
# What is over sooner than this is over: less may be no time at all beside a long run's. Seconds.
_INSTANT = 1e-8


class _Shape:
    """Reads under way with the same streams on the same links. They have one rate, and differ only
    in when they began: each ends when `passed`, the bytes of a stream since the shape is there, has
    come to what it waits for."""

    __slots__ = ("claims", "limit", "rate", "passed", "ends")

    def __init__(self, claims: Load, limit: float) -> None:
        self.claims = claims       # streams on each link
        self.limit = limit
        self.rate = 0.0
        self.passed = 0.0
        self.ends: list[tuple[float, int]] = []  # a heap: passed by then, token


class FairLinks:
    def __init__(self, rates: Sequence[float], unit: float) -> None:
        """`unit`: bytes of a block, what one stream carries."""
        self._rates = rates
        self._unit = unit
        self._now = 0.0
        self._shapes: dict[tuple[Load, float], _Shape] = {}
        self._finished: list[int] = []
        self._settled = True
        self._next = FOREVER
        # Intermediate data: a claim of one stream on each link, of at most `wanted`.
        self._backlog: dict[int, float] = {}
        self._wanted: dict[int, float] = {}
        self._given: dict[int, float] = {}
        self._shuffled = [0.0] * len(rates)
        self._passed = [0.0] * len(rates)
        self.carried = [0.0] * len(rates)

    def start(self, now: float, loads: Sequence[Load], token: int,
              least_seconds: float = 0.0) -> None:
        """`loads` are not empty."""
        self._advance(now)
        load = together(loads)
        unit = min(self._unit, max(count for _, count in load))
        claims = tuple(sorted((link, count / unit) for link, count in load))
        key = claims, unit / least_seconds if least_seconds else FOREVER
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = _Shape(*key)
        heapq.heappush(shape.ends, (shape.passed + unit, token))
        self._settled = False

    def next_end(self) -> float:
        if self._finished:
            return self._now
        if not self._settled:
            self._settle()
        return self._next

    def ended(self, now: float) -> list[int]:
        self._advance(now)
        found, self._finished = sorted(self._finished), []
        return found

    def shuffle(self, now: float, load: Load, seconds: float) -> None:
        self._advance(now)
        for link, count in load:
            self._shuffled[link] += count
            self._backlog[link] = self._backlog.get(link, 0.0) + count
        self._backlog = {link: left for link, left in self._backlog.items() if left > _ROUNDING}
        self._wanted = {link: left / seconds for link, left in self._backlog.items()}
        self._settled = False

    def shuffle_mark(self) -> object:
        return tuple(self._shuffled)

    def shuffle_passed(self, now: float, mark: object) -> bool:
        self._advance(now)
        assert isinstance(mark, tuple)
        return all(passed >= wanted - 2 * _ROUNDING
                   for passed, wanted in zip(self._passed, mark))

    def _advance(self, now: float) -> None:
        if not self._settled and now > self._now:
            self._settle()
        passed = now - self._now
        if passed <= 0:
            return
        self._now = now
        for key, shape in list(self._shapes.items()):
            sent = shape.rate * passed
            shape.passed += sent
            sent *= len(shape.ends)
            almost = _ROUNDING + shape.rate * _INSTANT
            while shape.ends and shape.ends[0][0] - shape.passed <= almost:
                end, token = heapq.heappop(shape.ends)
                sent -= shape.passed - end
                self._finished.append(token)
                self._settled = False
            for link, claim in shape.claims:
                self.carried[link] += claim * sent
            if not shape.ends:
                del self._shapes[key]
        for link, rate in self._given.items():
            sent = min(self._backlog.get(link, 0.0), rate * passed)
            if sent:
                self._backlog[link] -= sent
                self._passed[link] += sent
                self.carried[link] += sent

    def _settle(self) -> None:
        """Max-min: all rates rise together; a read stops rising with its first full link."""
        self._settled = True
        rates = self._rates
        users: dict[int, list[_Shape]] = defaultdict(list)
        claims: dict[int, float] = defaultdict(float)
        for shape in self._shapes.values():
            shape.rate = -1.0
            count = len(shape.ends)
            for link, claim in shape.claims:
                users[link].append(shape)
                claims[link] += claim * count
        room = {link: rates[link] for link in users}
        self._given = {link: min(wanted, rates[link]) for link, wanted in self._wanted.items()
                       if link not in users}
        wanting = {link: self._wanted[link] for link in users if link in self._wanted}
        for link in wanting:
            claims[link] += 1.0
        limited = [shape for shape in self._shapes.values() if shape.limit < FOREVER]
        rising = {link: len(shapes) for link, shapes in users.items()}
        while rising:
            tightest = min(rising, key=lambda link: room[link] / claims[link])
            level = room[tightest] / claims[tightest]
            if self._stop_early(level, wanting, limited, room, claims, rising):
                continue
            if tightest in wanting:
                self._given[tightest] = level
                del wanting[tightest]
            for shape in users[tightest]:
                if shape.rate < 0:
                    self._stop(shape, level, room, claims, rising)
            rising.pop(tightest, None)
        for link, wanted in wanting.items():  # all reads on it stopped elsewhere
            self._given[link] = min(wanted, room[link])
        self._next = min((self._now + (shape.ends[0][0] - shape.passed) / shape.rate
                          for shape in self._shapes.values()), default=FOREVER)

    def _stop_early(self, level: float, wanting: dict[int, float], limited: list[_Shape],
                    room: dict[int, float], claims: dict[int, float], rising: dict[int, int],
                    ) -> bool:
        """Those that want less than the level have what they want."""
        content = [link for link, wanted in wanting.items() if wanted <= level and link in rising]
        for link in content:
            self._given[link] = wanting.pop(link)
            room[link] -= self._given[link]
            claims[link] -= 1.0
        slow = [shape for shape in limited if shape.rate < 0 and shape.limit <= level]
        for shape in slow:
            self._stop(shape, shape.limit, room, claims, rising)
        return bool(content or slow)

    @staticmethod
    def _stop(shape: _Shape, level: float, room: dict[int, float], claims: dict[int, float],
              rising: dict[int, int]) -> None:
        shape.rate = level
        count = len(shape.ends)
        for link, claim in shape.claims:
            room[link] -= claim * count * level
            claims[link] -= claim * count
            if link in rising:
                rising[link] -= 1
                if not rising[link]:
                    del rising[link]
