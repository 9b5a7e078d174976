# SPDX-License-Identifier: Apache-2.0
"""When the busiest link of a repair carried its bytes: what it rested before, between and after.

The switch's counters are read every few milliseconds by link_counter.py while the repair runs.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

from . import link_counter
from .daemon import Daemon
from .host import LocalHost
from .links import HEADERS_FACTOR
from .process import LabError

START_SECONDS = 20.0
END_SECONDS = 20.0
# A link is at work while it carries at least so much of what its rate allows. Less is a repair that
# begins or runs out, heartbeats, and acknowledgements.
AT_WORK = 0.5
# Of the largest packets of a veth, 64 KiB: over fewer of them there is no rate to speak of.
WINDOW_PACKETS = 4


@dataclass(frozen=True)
class CountedLink:
    """One direction of a link with a rate, as the counting namespace sees it."""

    interface: str
    direction: str  # "received" or "sent" by that interface
    mbit: float


@dataclass(frozen=True)
class WatchPoint:
    """From where all links can be counted."""

    host: LocalHost
    links: Sequence[CountedLink]


@dataclass(frozen=True)
class LinkUse:
    """Of the link that was busy for longest, by its bytes."""

    carried_s: float     # its bytes by its rate, packet headers included
    first_unix_s: float  # it was at work from here
    last_unix_s: float   # to here


@contextmanager
def counting(point: WatchPoint, log: Path) -> Iterator[list[LinkUse]]:
    """While the body runs. The list has one element after it, or none when nothing was carried."""
    host, found = point.host, []
    host.remove(log)
    counter = Daemon("the link counter", [
        host.python, host.program(Path(link_counter.__file__))], log, host=host)
    counter.start()
    try:
        counter.wait_ready(lambda: "\n" in host.read_text(log), START_SECONDS)
        yield found
        counter.stop(END_SECONDS)
    finally:
        counter.kill()
    if counter.exit_code() != 0:
        raise LabError(f"the program that counts bytes on links failed\n{counter.log_tail()}")
    counts = json.loads(host.read_text(log).splitlines()[-1])
    if use := busiest_use(counts, point.links):
        found.append(use)


def busiest_use(counts: Mapping[str, Any], links: Sequence[CountedLink]) -> LinkUse | None:
    uses = [use for link in links if link.interface in counts["interfaces"]
            and (use := use_of(counts["unix_s"],
                               counts["interfaces"][link.interface][link.direction], link.mbit))]
    return max(uses, key=lambda use: use.carried_s, default=None)


def use_of(unix_s: Sequence[float], counted: Sequence[int], mbit: float) -> LinkUse | None:
    """None when it never was at work for as long as a window."""
    bytes_per_s = mbit * 1e6 / 8 / HEADERS_FACTOR
    window_bytes = WINDOW_PACKETS * 65536
    first = last = None
    begin = 0
    for end in range(1, len(unix_s)):
        while (unix_s[end] - unix_s[begin + 1]) * bytes_per_s >= window_bytes:
            begin += 1
        allowed = (unix_s[end] - unix_s[begin]) * bytes_per_s
        if allowed >= window_bytes and counted[end] - counted[begin] >= AT_WORK * allowed:
            first, last = unix_s[begin] if first is None else first, unix_s[end]
    if first is None or last is None:
        return None
    return LinkUse((counted[-1] - counted[0]) / bytes_per_s, first, last)
