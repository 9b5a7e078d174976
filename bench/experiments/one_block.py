# SPDX-License-Identifier: Apache-2.0
"""A stripe that has lost one block: what most experiments measure repairs of."""

from __future__ import annotations

import argparse
from typing import Any, Sequence

from labkit.cluster import REQUESTOR, Cluster
from labkit.links import HEADERS_FACTOR
from labkit.measure import Sample, measure_direct_send, measure_repair
from labkit.process import LabError
from labkit.stripes import Block, encode
from .recorder import Taker

LOST_NODE = "node-1"
TRANSPORTS = ("tcp", "redis")
# PPR with a slice as large as the block: each step ends before the next begins.
PPR_ROUNDS = "ppr-rounds"
# They look at links and not at who was busy a moment ago.
CHOOSING = ("rp-weighted", "rp-rack")
START_BYTES = 32 * 1024
# Its hops do one thing after the other; what overlaps all the same is up to socket buffers.
WITHOUT_THEORY = ("pipe-s",)
VERIFICATIONS = ("parity", "locate")
# Behind a scheme's name: the requestor says what its own link is.
LINK = "+link"


def add_scheme_arguments(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("--schemes", default=default,
                        help="schemes to measure, separated by commas; direct is always measured "
                             "(default %(default)s)")
    parser.add_argument("--transport", default="tcp",
                        help="tcp, redis or tcp,redis (default tcp)")


def add_rate_argument(parser: argparse.ArgumentParser, default: float = 200) -> None:
    parser.add_argument("--rate-mbit", type=float, default=default,
                        help="rate of each node's uplink and downlink in Mb/s; 0: not limited "
                             "(default "
                             "%(default)s; with 1000 two cores are busier than the links)")


def transports(arguments: argparse.Namespace) -> list[str]:
    chosen = arguments.transport.split(",")
    if unknown := set(chosen) - set(TRANSPORTS):
        raise LabError(f"--transport: {', '.join(sorted(unknown))} is not tcp or redis")
    return chosen


class OneBlock:
    """Encodes a stripe and loses the block of LOST_NODE, whose helper is stopped. The direct send
    of a run is that of a healthy block, by the node that comes next in the stripe. `settled`: to be
    set where it matters which helpers are chosen."""

    def __init__(self, cluster: Cluster, code: str, block_bytes: int, *, name: str = "lab",
                 nodes: Sequence[str] | None = None, rack: str | None = None,
                 healthy_node: str | None = None, settled: bool = False,
                 checksums: bool = False) -> None:
        self.cluster = cluster
        self.code = code
        self.block_bytes = block_bytes
        self._rack = ("--rack", rack) if rack else ()
        self._settled = settled
        self.stripe = encode(cluster, code=code, block_bytes=block_bytes, name=name, nodes=nodes,
                             checksums=checksums)[0]
        self._choose(LOST_NODE)
        if healthy_node:
            self.healthy = next(block for block in self.stripe if block.node == healthy_node)
        cluster.helpers[LOST_NODE].stop()

    def _choose(self, node: str) -> None:
        at = next(i for i, block in enumerate(self.stripe) if block.node == node)
        self.lost, self.healthy = self.stripe[at], self.stripe[(at + 1) % len(self.stripe)]
        self.survivors = [block.node for block in self.stripe if block.node != node]

    def lose(self, node: str) -> None:
        """The block of this node is the lost one from now on, and the one before is back. The next
        direct send is of the block after it, whatever `healthy_node` was."""
        if node == self.lost.node:
            return
        self.cluster.helpers[self.lost.node].restart()
        self.cluster.wait_live([self.lost.node])
        self.cluster.helpers[node].stop()
        self._choose(node)

    def _asked(self, scheme: str) -> tuple[str, tuple[str, ...]]:
        """`rp+parity` is the scheme `rp` with verified sources, `rp+link` with the requestor's link
        told: the name, and all arguments beside it."""
        if scheme.endswith(LINK):
            mbit = self.cluster.network.links.down(REQUESTOR)
            if mbit is None:
                raise LabError(f"{scheme}: the requestor's link has no rate to tell of")
            return scheme.removesuffix(LINK), (*self._rack, "--link-mbit", f"{mbit:.3f}")
        name, _, verify = scheme.partition("+")
        return name, (*self._rack, *(("--verify", verify) if verify else ()))

    def direct(self) -> Sample:
        return measure_direct_send(self.cluster, self.healthy, REQUESTOR)

    def repair(self, scheme: str, slice_bytes: int, transport: str = "tcp",
               block: Block | None = None, only_bytes: int | None = None) -> Sample:
        name, words = self._asked(scheme)
        return measure_repair(self.cluster, block or self.lost, scheme=name, transport=transport,
                              slice_bytes=slice_bytes, only_bytes=only_bytes, arguments=words)

    def plan(self, scheme: str, slice_bytes: int, only_bytes: int | None = None) -> dict[str, Any]:
        """The one that is made now."""
        name, words = self._asked(scheme)
        return self.cluster.cli_json(
            "plan", self.lost.block_id, "--scheme", name, *words,
            "--slice-size", str(slice_bytes), "--length", str(only_bytes or self.block_bytes))

    def start_fields(self, scheme: str, slice_bytes: int, transport: str) -> dict[str, float]:
        """What a repair of a single slice takes, and what it takes by the links: the difference is
        a repair's beginning. Of a slice as large as the block, its first bytes."""
        only = slice_bytes if slice_bytes < self.block_bytes else START_BYTES
        links = self._plan_seconds(scheme, slice_bytes, only)
        start = self.repair(scheme, slice_bytes, transport, only_bytes=only).seconds
        return {"start_s": start, **({} if links is None else {"start_theory_s": links})}

    def theory(self, scheme: str, slice_bytes: int) -> float | None:
        """Times the direct send, by the plan that is made now."""
        direct = self.cluster.network.links.seconds(
            {(self.healthy.node, REQUESTOR): self.block_bytes})
        seconds = self._plan_seconds(scheme, slice_bytes, self.block_bytes)
        return seconds / direct if seconds and direct else None

    def _plan_seconds(self, scheme: str, slice_bytes: int, only_bytes: int) -> float | None:
        """By the links alone, of the block's first bytes."""
        if scheme in WITHOUT_THEORY or not self.cluster.network.links.shaped():
            return None
        plan = self.plan(scheme, slice_bytes, only_bytes)
        return self.cluster.network.links.plan_seconds(plan, REQUESTOR)

    def link_fields(self, direct: Sample) -> dict[str, float]:
        """The physical bound, and what the direct send takes by its link's rate alone."""
        links = self.cluster.network.links
        bound = links.bound_seconds(self.block_bytes, REQUESTOR, self.survivors)
        mbit = links.mbit(self.healthy.node, REQUESTOR)
        fields = {"direct_s": direct.seconds}
        if bound and mbit:
            fields |= {"bound_s": bound,
                       "direct_wire_s": self.block_bytes * HEADERS_FACTOR * 8 / (mbit * 1e6)}
        return fields

    def measure_all(self, recorder: Taker, schemes: Sequence[str], slice_bytes: int, *,
                    transports: Sequence[str] = ("tcp",), direct: Sample | None = None,
                    parameters: dict | None = None) -> None:
        """One run: the direct send, unless the caller has measured it, and each scheme."""
        given = {"code": self.code, "block_bytes": self.block_bytes, **(parameters or {})}
        if direct is None:
            direct = self.direct()
            recorder.add_direct(direct, parameters=given, **self.link_fields(direct))
        for transport in transports:
            for scheme in schemes:
                if scheme == "direct":
                    continue
                engine_scheme, size = scheme, slice_bytes
                if scheme == PPR_ROUNDS:
                    engine_scheme, size = "ppr", self.block_bytes
                start = self.start_fields(engine_scheme, size, transport)
                if self._settled and scheme not in CHOOSING:
                    self.cluster.wait_settled()
                theory = self.theory(engine_scheme, size)
                sample = self.repair(engine_scheme, size, transport)
                recorder.add(scheme, sample, direct, theory=theory,
                             parameters={**given, "slice_bytes": size},
                             **start, **self.link_fields(direct))
