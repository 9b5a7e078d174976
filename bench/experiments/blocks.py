# SPDX-License-Identifier: Apache-2.0
"""The experiment `blocks`: repair time by block size."""

from __future__ import annotations

import argparse
from typing import Any

from labkit.cluster import node_names
from labkit.links import Links
from labkit.stripes import MIB, add_code_arguments, add_runs_argument, check_arguments, numbers, rs
from .one_block import OneBlock, add_rate_argument, add_scheme_arguments, transports
from .recorder import Recorder
from .testbed import Testbed

EXPERIMENT = "blocks"
NEEDS_SHAPING = False


def add_arguments(parser: argparse.ArgumentParser, default_blocks: str = "1,4,16,64",
                  default_schemes: str = "conventional,ppr,rp") -> None:
    add_code_arguments(parser)
    parser.add_argument("--block-mib", default=default_blocks,
                        help="block sizes in MiB, separated by commas (default %(default)s)")
    parser.add_argument("--slice-kib", type=int, default=32,
                        help="slice size in KiB (default 32)")
    add_rate_argument(parser)
    add_scheme_arguments(parser, default_schemes)
    add_runs_argument(parser)


def run(arguments: argparse.Namespace, testbed: Testbed,
        experiment: str = EXPERIMENT, socket_bytes: int = 0) -> list[dict[str, Any]]:
    check_arguments(arguments)
    sizes, chosen = numbers(arguments, "block_mib"), transports(arguments)
    links = Links(arguments.rate_mbit or None, socket_bytes=socket_bytes or None)
    with testbed.cluster(node_names(arguments.n), links, redis="redis" in chosen) as cluster:
        recorder = Recorder(experiment, {
            "n": arguments.n, "k": arguments.k, "rate_mbit": cluster.network.links.rate_mbit or 0,
            "congestion_control": cluster.network.congestion_control,
            "socket_bytes": cluster.network.links.socket_bytes or 0})
        blocks = [OneBlock(cluster, rs(arguments.n, arguments.k), mib * MIB, name=f"lab-{mib}")
                  for mib in sizes]
        for _ in range(arguments.runs):
            for one in blocks:
                one.measure_all(recorder, arguments.schemes.split(","),
                                arguments.slice_kib * 1024, transports=chosen)
        return recorder.rows()
