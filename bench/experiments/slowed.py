# SPDX-License-Identifier: Apache-2.0
"""The experiment `slowed`: a link that becomes slow while the repair runs.

Random up- and downlinks of nodes, which the coordinator has measured by `ecpipe probe`. When a
part of the block has come (--at), the uplink on which the scheme's plan counts most has a part of
its rate left (--to). A row has, beside its time, the least that is possible from then on with the
links as they then are, and what keeping the plan would take. Each row has a fresh cluster, which
knows nothing of what became slow before.
"""

from __future__ import annotations

import argparse
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Iterator, Mapping

from labkit.cluster import REQUESTOR, Cluster, node_names
from labkit.link_faults import LinkFaults
from labkit.links import HEADERS_FACTOR, Links, plan_streams
from labkit.measure import Sample
from labkit.process import LabError
from labkit.stripes import (
    MIB, add_code_arguments, add_runs_argument, add_size_arguments, check_arguments, code_shape,
    numbers, rs)

from .geo import PROBE_BYTES, PROBE_SECONDS
from .links import random_links, rate_by_node_links
from .one_block import OneBlock, add_scheme_arguments
from .rack import shuffled_stripe
from .recorder import Recorder
from .testbed import Testbed

EXPERIMENT = "slowed"
NEEDS_SHAPING = True
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Slowdown:
    at: float  # of the block that has come
    to: float  # of the rate that is left


@dataclass(frozen=True)
class Moment:
    """When the link became slow."""

    unix_s: float
    received_bytes: int  # by the requestor, packet headers included


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", default="5,11",
                        help="seeds of the links, as of links --matrix random:SEED (default "
                             "%(default)s)")
    add_code_arguments(parser, n=14, k=10)
    add_size_arguments(parser, block_mib=64)
    parser.add_argument("--at", type=float, default=0.25,
                        help="part of the block that has come when the link becomes slow "
                             "(default %(default)s)")
    parser.add_argument("--to", type=float, default=0.1,
                        help="part of its rate that the link has left (default %(default)s)")
    parser.add_argument("--scale", type=float, default=1.0,
                        help="factor for all rates (default 1)")
    parser.epilog = "rp-flow+link: the requestor says what its own link is."
    add_scheme_arguments(parser, "rp-weighted,rp-flow+link")
    add_runs_argument(parser)


def run(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    check_arguments(arguments)
    if not testbed.shapes:
        raise LabError("links of given rates are there only on this machine's own network")
    for name in ("at", "to"):
        if not 0 < getattr(arguments, name) < 1:
            raise LabError(f"--{name} must be between 0 and 1")
    slowdown = Slowdown(arguments.at, arguments.to)
    rows = []
    for seed in numbers(arguments, "seeds"):
        for scheme in arguments.schemes.split(","):
            recorder = Recorder(EXPERIMENT, {
                "n": arguments.n, "k": arguments.k, "links": str(seed), "scale": arguments.scale,
                "at": slowdown.at, "to": slowdown.to})
            for number in range(1, arguments.runs + 1):
                on_fresh_cluster(arguments, testbed, seed, scheme, number, slowdown, recorder)
            rows += recorder.rows()
    return rows


def on_fresh_cluster(arguments: argparse.Namespace, testbed: Testbed, seed: int, scheme: str,
                     number: int, slowdown: Slowdown, recorder: Recorder) -> None:
    nodes = node_names(arguments.n)
    links = random_links(seed, [*nodes, REQUESTOR], {"nodes"}, arguments.scale)
    with testbed.cluster(nodes, links) as cluster:
        cluster.cli_json("probe", "--bytes", str(PROBE_BYTES), timeout=PROBE_SECONDS)
        one = shuffled_stripe(cluster, rs(arguments.n, arguments.k),
                              arguments.block_mib * MIB, number)
        direct = one.direct()
        slice_bytes = arguments.slice_kib * 1024
        sample, figures = measure(one, scheme, slice_bytes, slowdown)
        recorder.add(scheme, sample, direct, theory=None, parameters={
            "code": one.code, "block_bytes": one.block_bytes, "slice_bytes": slice_bytes},
            **figures)


def measure(one: OneBlock, scheme: str, slice_bytes: int,
            slowdown: Slowdown) -> tuple[Sample, dict[str, float]]:
    cluster = one.cluster
    cluster.wait_settled()
    streams = plan_streams(one.plan(scheme, slice_bytes), REQUESTOR)
    node = busiest_uplink(cluster.network.links, streams)
    after = with_slow_uplink(cluster.network.links, node, slowdown.to)
    with slowed_midway(cluster, node, after, slowdown.at * one.block_bytes) as moments:
        sample = one.repair(scheme, slice_bytes)
    if not moments:
        raise LabError(f"the repair by {scheme} was over before its link became slow; take a "
                       "larger block")
    began = next(repair["started_unix_ms"] / 1000 for repair in cluster.status()["repairs"]
                 if repair["repair_id"] == sample.detail["repair_id"])
    slow_after_s = moments[0].unix_s - began
    left = one.block_bytes - moments[0].received_bytes / HEADERS_FACTOR
    rate = rate_by_node_links(after, one.survivors, REQUESTOR, code_shape(one.code)[1])
    # How long the busiest limit is busy with the whole block, by the plan.
    kept = after.seconds(streams) or 0.0
    return sample, {
        "slow_after_s": slow_after_s,
        "least_s": slow_after_s + left * HEADERS_FACTOR * 8 / (rate * 1e6),
        "kept_s": slow_after_s + kept * HEADERS_FACTOR * left / one.block_bytes,
        "attempts": sample.detail["attempts"]}


def busiest_uplink(links: Links, streams: Mapping[tuple[str, str], float]) -> str:
    """The node whose own uplink the plan keeps busy longest."""
    busy: dict[str, float] = {}
    for (sender, _), amount in streams.items():
        busy[sender] = busy.get(sender, 0.0) + amount / (links.up(sender) or float("inf"))
    return max(busy, key=lambda sender: (busy[sender], sender))


def with_slow_uplink(links: Links, node: str, part: float) -> Links:
    up, down = links.up(node), links.down(node)
    if up is None:
        raise LabError(f"the uplink of {node} has no rate that could become less")
    return replace(links, node_mbit={**links.node_mbit, node: (up * part, down)})


@contextmanager
def slowed_midway(cluster: Cluster, node: str, after: Links,
                  received_bytes: float) -> Iterator[list[Moment]]:
    """Gives the node's uplink the rate that it has in `after` once the requestor has received so
    many bytes. Yields a list that then has the moment."""
    moments: list[Moment] = []
    over = threading.Event()
    faults = LinkFaults(cluster.network)
    begin = cluster.network.link_bytes()[REQUESTOR].down

    def received() -> int:
        return cluster.network.link_bytes()[REQUESTOR].down - begin

    def watch() -> None:
        while not over.wait(POLL_SECONDS):
            if received() >= received_bytes:
                faults.rate_of_uplink(node, after.up(node))
                moments.append(Moment(time.time(), received()))
                print(f"{node} sends {after.up(node):.1f} Mb/s from now on", flush=True)
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield moments
    finally:
        over.set()
        thread.join()
