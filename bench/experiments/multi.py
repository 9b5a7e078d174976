# SPDX-License-Identifier: Apache-2.0
"""The experiment `multi`: f lost blocks of a stripe, rebuilt by each scheme on f nodes (§4.4).

Each block goes back to the node that had it: a requestor hosted by that node's helper stores it.
Times are the coordinator's, from the request to the last block on its disk. Every run sends one
block directly first.
"""

from __future__ import annotations

import argparse
import math
from typing import Any, Sequence

from labkit.cluster import REQUESTOR, Cluster, node_names
from labkit.links import HEADERS_FACTOR, Links
from labkit.measure import DIRECT, REPAIR_SECONDS, Meter, Sample, measure_direct_send
from labkit.process import LabError
from labkit.stripes import (
    MIB, Block, add_code_arguments, add_runs_argument, add_size_arguments, check_arguments,
    code_parameters, encode, numbers, rs)
from .one_block import add_rate_argument
from .recorder import Recorder
from .testbed import Testbed

EXPERIMENT = "multi"
NEEDS_SHAPING = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_code_arguments(parser)
    add_size_arguments(parser, block_mib=64)
    add_runs_argument(parser)
    parser.add_argument("--failed", default="1,2,3,4",
                        help="numbers of lost blocks to measure, separated by commas (default "
                             "%(default)s)")
    add_rate_argument(parser)
    parser.add_argument("--schemes", default="conventional,rp,mixed",
                        help="schemes to measure, separated by commas (default %(default)s)")


def run(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    """The rows, the direct send first. Raises LabError when a block's bytes are wrong."""
    check_arguments(arguments)
    counts = numbers(arguments, "failed")
    if max(counts) > arguments.n - arguments.k:
        raise LabError(f"--failed {arguments.failed}: at most n - k = "
                       f"{arguments.n - arguments.k} blocks can be lost")
    nodes, slice_bytes = node_names(arguments.n), arguments.slice_kib * 1024
    with testbed.cluster(nodes, Links(arguments.rate_mbit or None)) as cluster:
        rate = cluster.network.links.rate_mbit
        recorder = Recorder(EXPERIMENT, {
            **code_parameters(arguments), "rate_mbit": rate or 0,
            "congestion_control": cluster.network.congestion_control})
        blocks = encode(cluster, code=rs(arguments.n, arguments.k),
                        block_bytes=arguments.block_mib * MIB)[0]
        small = encode(cluster, code=rs(arguments.n, arguments.k), block_bytes=slice_bytes,
                       name="start")[0]
        slices = math.ceil(arguments.block_mib * MIB / slice_bytes)
        for _ in range(arguments.runs):
            direct = measure_direct_send(cluster, blocks[-1], REQUESTOR)
            fields = {"direct_s": direct.seconds}
            if rate:
                bound = arguments.block_mib * MIB * 8 / (rate * 1e6)
                fields |= {"bound_s": bound, "direct_wire_s": bound * HEADERS_FACTOR}
            recorder.add_direct(direct, **fields)
            for count in counts:
                for scheme in arguments.schemes.split(","):
                    theory = theory_timeslots(scheme, arguments.k, count, slices) if rate else None
                    start = start_fields(cluster, small[:count], scheme, slice_bytes)
                    recorder.add(f"{scheme} f={count}",
                                 rebuild(cluster, blocks[:count], scheme, slice_bytes), direct,
                                 theory=theory, parameters={"failed": count}, **fields, **start)
        return recorder.rows()


def rebuild(cluster: Cluster, lost: Sequence[Block], scheme: str, slice_bytes: int) -> Sample:
    def host(block: Block) -> Any:
        return cluster.network.host(block.node)
    for block in lost:
        host(block).remove(cluster.block_path(block.node, block.block_id))
    meter = Meter(cluster)
    with meter.watching():
        report = cluster.cli_json(
            "repair", *(block.block_id for block in lost),
            "--to", ",".join(block.node for block in lost), "--scheme", scheme,
            "--slice-size", str(slice_bytes), timeout=REPAIR_SECONDS)
    right = all(host(block).sha256(cluster.block_path(block.node, block.block_id)) == block.sha256
                for block in lost)
    return meter.sample(scheme, "tcp", float(report["seconds"]), right, report)


def start_fields(cluster: Cluster, lost: Sequence[Block], scheme: str, slice_bytes: int,
                 ) -> dict[str, float]:
    """What the repair of blocks of one slice takes, and what it takes by the links."""
    plan = cluster.cli_json("plan", *(block.block_id for block in lost),
                            "--to", ",".join(block.node for block in lost), "--scheme", scheme,
                            "--slice-size", str(slice_bytes))
    links = cluster.network.links.plan_seconds(plan, REQUESTOR)
    return {"start_s": rebuild(cluster, lost, scheme, slice_bytes).seconds,
            **({} if links is None else {"start_theory_s": links})}


def theory_timeslots(scheme: str, k: int, f: int, slices: int) -> float | None:
    """In units of one block over one link; docs/design/002-schemes.md. None: not known. §2.2 gives
    conventional repair k + f - 1; links that carry both ways at once let the first requestor
    forward while it receives, which leaves k."""
    fill = (k - 1) / slices
    return {
        DIRECT: 1.0,
        "conventional": float(k),
        "rp": f * (1 + fill),
        "mixed": 1 + (f - 1) * (k - 1) / (k - 1 + f * (f - 1)) + f * fill,
    }.get(scheme)
