# SPDX-License-Identifier: Apache-2.0
"""The experiment `edge`: links from each helper to the requestor that are slower than those between
helpers (§4.1)."""

from __future__ import annotations

import argparse
from typing import Any

from labkit.cluster import REQUESTOR, node_names
from labkit.links import Links
from labkit.stripes import (
    MIB, add_code_arguments, add_runs_argument, add_size_arguments, check_arguments, numbers,
    rs)
from .one_block import OneBlock, add_rate_argument, add_scheme_arguments
from .recorder import Recorder
from .testbed import Testbed

EXPERIMENT = "edge"
NEEDS_SHAPING = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_code_arguments(parser)
    add_size_arguments(parser, block_mib=64)
    add_rate_argument(parser, default=1000)
    parser.add_argument("--edge-mbit", default="1000,500,200,100",
                        help="rates of the links from helpers to the requestor in Mb/s, separated "
                             "by commas "
                             "(default %(default)s)")
    add_scheme_arguments(parser, "rp,rp-cyclic")
    add_runs_argument(parser)


def run(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    """Where links have rates of their own, one round with those."""
    check_arguments(arguments)
    nodes, rows = node_names(arguments.n), []
    for edge in numbers(arguments, "edge_mbit") if testbed.shapes else [0]:
        links = Links(arguments.rate_mbit or None,
                      pair_mbit={(node, REQUESTOR): edge for node in nodes})
        with testbed.cluster(nodes, links) as cluster:
            recorder = Recorder(EXPERIMENT, {
                "n": arguments.n, "k": arguments.k, "edge_mbit": edge,
                "rate_mbit": cluster.network.links.rate_mbit or 0,
                "congestion_control": cluster.network.congestion_control})
            one = OneBlock(cluster, rs(arguments.n, arguments.k), arguments.block_mib * MIB)
            for _ in range(arguments.runs):
                one.measure_all(recorder, arguments.schemes.split(","), arguments.slice_kib * 1024)
            rows += recorder.rows()
    return rows
