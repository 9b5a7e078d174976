# SPDX-License-Identifier: Apache-2.0
"""The experiment `slices`: repair time by slice size; the schemes to compare with have 32 KiB."""

from __future__ import annotations

import argparse
from typing import Any

from labkit.cluster import node_names
from labkit.links import Links
from labkit.process import LabError
from labkit.stripes import MIB, add_code_arguments, add_runs_argument, check_arguments, numbers, rs
from .one_block import OneBlock, add_rate_argument
from .recorder import Recorder
from .testbed import Testbed

EXPERIMENT = "slices"
NEEDS_SHAPING = False
FIXED_SLICE_BYTES = 32 * 1024  # the paper's, for the schemes whose slice size is not varied


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_code_arguments(parser)
    parser.add_argument("--block-mib", type=int, default=64,
                        help="block size in MiB (default 64)")
    parser.add_argument("--slice-kib", default="1,4,8,16,32,64,128,256,512,1024",
                        help="slice sizes in KiB, separated by commas (default %(default)s)")
    add_rate_argument(parser)
    parser.add_argument("--schemes", default="rp",
                        help="schemes measured with each slice size (default %(default)s)")
    parser.add_argument("--fixed-schemes", default="conventional,ppr",
                        help="schemes measured with slices of 32 KiB only, or none (default "
                             "%(default)s)")
    add_runs_argument(parser)


def run(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    check_arguments(arguments)
    sizes = [kib * 1024 for kib in numbers(arguments, "slice_kib")]
    if max(sizes) > arguments.block_mib * MIB:
        raise LabError("--slice-kib: a slice must not be larger than a block")
    fixed = arguments.fixed_schemes.split(",") if arguments.fixed_schemes != "none" else []
    with testbed.cluster(node_names(arguments.n), Links(arguments.rate_mbit or None)) as cluster:
        recorder = Recorder(EXPERIMENT, {
            "n": arguments.n, "k": arguments.k, "rate_mbit": cluster.network.links.rate_mbit or 0,
            "congestion_control": cluster.network.congestion_control})
        one = OneBlock(cluster, rs(arguments.n, arguments.k), arguments.block_mib * MIB)
        for _ in range(arguments.runs):
            direct = one.direct()
            recorder.add_direct(direct, parameters={
                "code": one.code, "block_bytes": one.block_bytes}, **one.link_fields(direct))
            one.measure_all(recorder, fixed, FIXED_SLICE_BYTES, direct=direct)
            for size in sizes:
                one.measure_all(recorder, arguments.schemes.split(","), size, direct=direct)
        return recorder.rows()
