# SPDX-License-Identifier: Apache-2.0
"""What links there are, how fast, and how long a plan takes over them. Pure.

A stream from one node to another passes the sender's uplink, the link of the two (if that has a
rate of its own), the uplink of the sender's rack and the downlink of the receiver's (if they
differ), and the receiver's downlink. Each is shared by all streams that pass it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Iterable, Iterator, Mapping


@dataclass(frozen=True)
class LinkBytes:
    """What a node's link has carried, Ethernet headers included."""

    up: int
    down: int

    def __sub__(self, other: LinkBytes) -> LinkBytes:
        return LinkBytes(self.up - other.up, self.down - other.down)


# What a shaper counts for each byte of a long TCP stream: full packets, with Ethernet, IP and TCP
# headers and TCP's time stamps.
HEADERS_FACTOR = 1514 / 1448

# What a limit belongs to: ("up", node), ("down", node), ("pair", from, to), ("rack-up", rack), ...
Resource = tuple[str, ...]


@dataclass(frozen=True)
class Links:
    """Megabits per second; None: no limit. `node_mbit` are up- and downlinks other than the
    common ones. `socket_bytes`: what TCP may keep at either end of a connection; None: the
    machine's choice."""

    rate_mbit: float | None = None
    node_mbit: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    pair_mbit: Mapping[tuple[str, str], float] = field(default_factory=dict)
    racks: Mapping[str, str] = field(default_factory=dict)
    rack_mbit: float | None = None
    socket_bytes: int | None = None

    def shaped(self) -> bool:
        return bool(self.rate_mbit or self.node_mbit or self.pair_mbit or self.rack_mbit)

    def up(self, node: str) -> float | None:
        return self.node_mbit.get(node, (self.rate_mbit, self.rate_mbit))[0]

    def down(self, node: str) -> float | None:
        return self.node_mbit.get(node, (self.rate_mbit, self.rate_mbit))[1]

    def limits(self, sender: str, receiver: str) -> Iterator[tuple[Resource, float]]:
        """What a stream passes that has a limit."""
        passed: list[tuple[Resource, float | None]] = [
            (("up", sender), self.up(sender)), (("down", receiver), self.down(receiver)),
            (("pair", sender, receiver), self.pair_mbit.get((sender, receiver)))]
        home, away = self.racks.get(sender), self.racks.get(receiver)
        if home and away and home != away:
            passed += [(("rack-up", home), self.rack_mbit), (("rack-down", away), self.rack_mbit)]
        return ((resource, limit) for resource, limit in passed if limit)

    def mbit(self, sender: str, receiver: str) -> float | None:
        """The rate of a stream that is alone."""
        return min((limit for _, limit in self.limits(sender, receiver)), default=None)

    def seconds(self, streams: Mapping[tuple[str, str], float]) -> float | None:
        """How long the busiest limit is busy when so many bytes go from node to node. None when
        nothing limits them."""
        busy: dict[Resource, float] = defaultdict(float)
        for (sender, receiver), amount in streams.items():
            for resource, limit in self.limits(sender, receiver):
                busy[resource] += amount * 8 / (limit * 1e6)
        return max(busy.values(), default=None)

    def bound_seconds(self, amount: float, receiver: str, senders: Iterable[str]) -> float | None:
        """No plan brings so many bytes to the receiver faster: all that may enter it at once does.
        None when nothing limits that."""
        near, far = 0.0, 0.0
        for sender in senders:
            mbit = self.mbit(sender, receiver)
            if mbit is None:
                return None
            if self.racks.get(sender) == self.racks.get(receiver):
                near += mbit
            else:
                far += mbit
        entering = near + min(far, self.rack_mbit or far)
        return amount * 8 / (min(entering, self.down(receiver) or entering) * 1e6)

    def plan_seconds(self, plan: Mapping[str, Any], requestor: str) -> float | None:
        """How long the plan that `ecpipe plan --json` shows takes at least: until the busiest limit
        has carried its bytes, and before that, until the first slice has walked the longest
        way to the requestor but for its last link."""
        streams = self.seconds(plan_streams(plan, requestor))
        if streams is None:
            return None
        return streams + max(self._fill_seconds(lane, plan, requestor) for lane in plan["lanes"])

    def _fill_seconds(self, lane: Mapping[str, Any], plan: Mapping[str, Any],
                      requestor: str) -> float:
        """Hops come after those that they take from. The slowest link of the way is the one that
        the pipeline's bytes are counted on, so it is left out."""
        slice_bits = min(plan["slice_bytes"], plan["bytes"]) * 8
        ways: list[tuple[float, float]] = []  # sum, and largest, of a slice's times
        for hop in lane["hops"]:
            longest = (0.0, 0.0)
            for edge in hop["inputs"]:
                total, largest = ways[edge["from_hop"]]
                mbit = self.mbit(hop_name(lane["hops"][edge["from_hop"]], requestor),
                                 hop_name(hop, requestor))
                step = slice_bits * len(edge["rows"]) / (mbit * 1e6) if mbit else 0.0
                longest = max(longest, (total + step, max(largest, step)))
            ways.append(longest)
        return ways[-1][0] - ways[-1][1]


def hop_name(hop: Mapping[str, Any], requestor: str) -> str:
    """A plan names the requestor "requestor:" and more."""
    return requestor if hop["node"].startswith("requestor:") else hop["node"]


def plan_streams(plan: Mapping[str, Any], requestor: str) -> dict[tuple[str, str], float]:
    """Bytes from node to node."""
    streams: dict[tuple[str, str], float] = defaultdict(float)
    for lane in plan["lanes"]:
        slices = sum(run["count"] for run in lane["slices"])
        amount = plan["bytes"] * slices / plan["slice_count"]
        for hop in lane["hops"]:
            for edge in hop["inputs"]:
                sender = hop_name(lane["hops"][edge["from_hop"]], requestor)
                streams[sender, hop_name(hop, requestor)] += amount * len(edge["rows"])
    return dict(streams)
