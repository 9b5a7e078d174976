# SPDX-License-Identifier: Apache-2.0
"""The experiment `rack`: nodes in racks that share a slower link to the others (§4.2).

Stripes lie on the nodes in random order, another one each run, so that the path of `rp` goes
through racks and helpers at random; `rp-rack` is the paper's Algorithm 1. The requestor is in the
rack of the node that lost its block.
"""

from __future__ import annotations

import argparse
import random
from typing import Any, Sequence

from labkit.cluster import REQUESTOR, Cluster, node_names
from labkit.links import Links
from labkit.process import LabError
from labkit.stripes import (
    MIB, SEED, add_code_arguments, add_runs_argument, add_size_arguments, check_arguments,
    numbers, rs)
from .one_block import LOST_NODE, OneBlock, add_rate_argument, add_scheme_arguments
from .recorder import Recorder
from .testbed import Testbed

EXPERIMENT = "rack"
NEEDS_SHAPING = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_code_arguments(parser, n=9, k=6)
    add_size_arguments(parser, block_mib=64)
    parser.add_argument("--racks", type=int, default=3,
                        help="number of racks, all of equal size (default 3)")
    parser.add_argument("--cross-mbit", default="400,800",
                        help="rates at which a rack sends to all others, and receives, "
                             "comma-separated (default %(default)s)")
    add_rate_argument(parser, default=2000)
    add_scheme_arguments(parser, "conventional,rp,rp-rack")
    add_runs_argument(parser)


def run(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    """Where links have rates of their own, one round with those and with the machines' racks."""
    check_arguments(arguments)
    if arguments.racks < 1 or arguments.n % arguments.racks:
        raise LabError(f"--racks {arguments.racks} must divide the number of nodes, {arguments.n}")
    nodes, rows = node_names(arguments.n), []
    size = arguments.n // arguments.racks
    racks = {node: f"/rack-{i // size + 1}" for i, node in enumerate(nodes)}
    racks[REQUESTOR] = racks[LOST_NODE]
    for cross in numbers(arguments, "cross_mbit") if testbed.shapes else [0]:
        links = Links(arguments.rate_mbit or None, racks=racks, rack_mbit=cross or None)
        with testbed.cluster(nodes, links) as cluster:
            check_racks(cluster)
            recorder = Recorder(EXPERIMENT, {
                "n": arguments.n, "k": arguments.k, "racks": arguments.racks, "cross_mbit": cross,
                "rate_mbit": cluster.network.links.rate_mbit or 0,
                "congestion_control": cluster.network.congestion_control})
            for number in range(1, arguments.runs + 1):
                one = shuffled_stripe(cluster, rs(arguments.n, arguments.k),
                                      arguments.block_mib * MIB, number)
                one.measure_all(recorder, arguments.schemes.split(","), arguments.slice_kib * 1024)
            rows += recorder.rows()
    return rows


def check_racks(cluster: Cluster) -> None:
    if missing := [node for node in (REQUESTOR, *cluster.node_ids)
                   if not cluster.network.rack(node)]:
        raise LabError(f"the inventory gives no rack for {', '.join(missing)}")


def shuffled_stripe(cluster: Cluster, code: str, block_bytes: int, number: int,
                    healthy_node: str = "node-2") -> OneBlock:
    """One whose blocks lie on the nodes in an order that the number seeds. `rp` takes helpers in
    the order of their blocks. The direct send comes from a node of LOST_NODE's rack."""
    order: Sequence[str] = random.Random(SEED + number).sample(
        cluster.node_ids, len(cluster.node_ids))
    return OneBlock(cluster, code, block_bytes, name=f"lab-{number}", nodes=order,
                    rack=cluster.network.rack(REQUESTOR), healthy_node=healthy_node,
                    settled=True)
