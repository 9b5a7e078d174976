# SPDX-License-Identifier: Apache-2.0
"""The experiment `codes`: repair time by code: RS of several (n, k), LRC, Rotated RS."""

from __future__ import annotations

import argparse
import re
from typing import Any

from labkit.cluster import Cluster, node_names
from labkit.links import Links
from labkit.process import LabError
from labkit.stripes import MIB, add_runs_argument, add_size_arguments, check_arguments, code_shape
from .means import Means
from .one_block import LOST_NODE, OneBlock, add_rate_argument, add_scheme_arguments
from .recorder import Recorder, Taker
from .testbed import Testbed

EXPERIMENT = "codes"
NEEDS_SHAPING = False
RS_CODES = "rs(9,6),rs(12,8),rs(14,10),rs(16,12)"
OTHER_CODES = "lrc(12,2,2),rotated-rs(16,12)"
# Not in every build of the programs: left out, and said, where `ecpipe` does not take them.
OPTIONAL_FAMILIES = ("rotated-rs",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--codes", default=f"{RS_CODES},{OTHER_CODES}",
                        help="codes to measure, separated by commas (default %(default)s)")
    add_size_arguments(parser, block_mib=64)
    add_rate_argument(parser)
    add_scheme_arguments(parser, "conventional,ppr,rp")
    parser.add_argument("--every-block", action="store_true",
                        help="lose each block of the stripe in turn: one run is the mean over all "
                             "blocks")
    add_runs_argument(parser)


def run(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    check_arguments(arguments)
    codes = re.findall(r"[a-z-]+\([0-9,]+\)", arguments.codes)
    if ",".join(codes) != arguments.codes:
        raise LabError(f"--codes {arguments.codes}: give codes separated by commas, such as "
                       "rs(9,6),lrc(12,2,2)")
    nodes = node_names(max(code_shape(code)[0] for code in codes))
    with testbed.cluster(nodes, Links(arguments.rate_mbit or None)) as cluster:
        recorder = Recorder(EXPERIMENT, {
            "rate_mbit": cluster.network.links.rate_mbit or 0,
            "congestion_control": cluster.network.congestion_control})
        blocks = [one for code in codes if (one := stripe_of(cluster, code, arguments))]
        for _ in range(arguments.runs):
            for one in blocks:
                measure(one, recorder, arguments)
        return recorder.rows()


def measure(one: OneBlock, recorder: Recorder, arguments: argparse.Namespace) -> None:
    """One run."""
    n, k = code_shape(one.code)

    def measure_lost(taker: Taker) -> None:
        one.measure_all(taker, arguments.schemes.split(","), arguments.slice_kib * 1024,
                        parameters={"n": n, "k": k})
    if not arguments.every_block:
        measure_lost(recorder)
        return
    means = Means()
    for block in one.stripe:
        one.lose(block.node)
        measure_lost(means)
    one.lose(LOST_NODE)  # the stripes of other codes have lost that one's block
    means.hand_to(recorder)


def stripe_of(cluster: Cluster, code: str, arguments: argparse.Namespace) -> OneBlock | None:
    name = re.sub(r"[^a-z0-9]+", "-", code).strip("-")
    try:
        return OneBlock(cluster, code, arguments.block_mib * MIB, name=name,
                        nodes=cluster.node_ids[:code_shape(code)[0]])
    except LabError as error:
        if not code.startswith(OPTIONAL_FAMILIES):
            raise
        print(f"{code} is left out, these programs do not take it: {last_line(error)}", flush=True)
        return None


def last_line(error: LabError) -> str:
    return (str(error).splitlines() or [""])[-1]
