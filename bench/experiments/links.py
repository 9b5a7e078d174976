# SPDX-License-Identifier: Apache-2.0
"""The experiment `links`: unequal links, all known limits at once, and what a scheme makes of them.

With a matrix of regions each pair of nodes has the rate of its regions, and each node an up- and a
downlink besides; the coordinator is told both. With `random:SEED` each node has an up- and a
downlink of its own, drawn at random, one cluster for each seed; the coordinator is told nothing and
has measured them by `ecpipe probe`. The requestor is in each region in turn.
"""

from __future__ import annotations

import argparse
import random
from typing import Any, Iterator

from labkit.cluster import REQUESTOR, Cluster, node_names
from labkit.links import Links
from labkit.process import LabError
from labkit.stripes import (
    MIB, add_code_arguments, add_runs_argument, add_size_arguments, check_arguments, rs)

from .geo import PROBE_BYTES, PROBE_SECONDS, chosen_regions
from .matrix import Matrix, rack_name, read_matrix
from .one_block import add_scheme_arguments
from .rack import shuffled_stripe
from .recorder import Recorder
from .testbed import Testbed

EXPERIMENT = "links"
NEEDS_SHAPING = True
RANDOM = "random:"
# Of random up- and downlinks, in Mb/s before --scale.
LEAST_MBIT, MOST_MBIT = 20.0, 200.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--matrix", default="north-america",
                        help="north-america or asia (the paper's Table 1), a file like those in "
                             "bench/experiments/matrices, or random:SEED[,SEED...] "
                             "(default %(default)s)")
    add_code_arguments(parser, n=16, k=12)
    add_size_arguments(parser, block_mib=16)
    parser.add_argument("--node-mbit", type=float, default=500.0,
                        help="rate of each node's up- and downlink, with a matrix (default 500)")
    parser.add_argument("--scale", type=float, default=0.25,
                        help="factor for all rates (default %(default)s, which two cores serve)")
    parser.add_argument("--regions", help="regions of the requestor, separated by commas "
                                          "(default: each region in turn)")
    add_scheme_arguments(parser, "conventional,ppr,rp,rp-weighted,rp-all,rp-flow")
    add_runs_argument(parser)


def run(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    check_arguments(arguments)
    if not testbed.shapes:
        raise LabError("links of given rates are there only on this machine's own network")
    if arguments.matrix.startswith(RANDOM):
        return [row for seed in seeds(arguments.matrix)
                for row in on_random_links(arguments, testbed, seed)]
    matrix = read_matrix(arguments.matrix).scaled(arguments.scale)
    rows = []
    for region in chosen_regions(arguments, matrix.regions):
        links = links_of(arguments, matrix, region)
        with testbed.cluster(node_names(arguments.n), links,
                             links_table=matrix.topology_links(),
                             coordinator_settings={
                                 "defaults": {"link_mbit": links.rate_mbit}}) as cluster:
            rows += measure(arguments, cluster, {
                "matrix": matrix.name, "links": region,
                "node_mbit": links.rate_mbit})
    return rows


def links_of(arguments: argparse.Namespace, matrix: Matrix, region: str) -> Links:
    nodes = node_names(arguments.n)
    region_of = {node: matrix.regions[i * len(matrix.regions) // len(nodes)]
                 for i, node in enumerate(nodes)}
    region_of[REQUESTOR] = region
    # The coordinator's configuration has whole numbers.
    node_mbit = max(1, round(arguments.node_mbit * arguments.scale))
    return Links(node_mbit, pair_mbit=matrix.pairs(region_of),
                 racks={node: rack_name(where) for node, where in region_of.items()})


def seeds(matrix: str) -> list[int]:
    words = matrix.removeprefix(RANDOM).split(",")
    if not all(word.isdecimal() for word in words):
        raise LabError(f"--matrix {matrix}: SEED must be a number")
    return [int(word) for word in words]


def on_random_links(arguments: argparse.Namespace, testbed: Testbed,
                    seed: int) -> list[dict[str, Any]]:
    rates = random_rates(seed, arguments.scale)
    nodes = node_names(arguments.n)
    links = Links(node_mbit={node: (next(rates), next(rates)) for node in (*nodes, REQUESTOR)})
    with testbed.cluster(nodes, links) as cluster:
        cluster.cli_json("probe", "--bytes", str(PROBE_BYTES), timeout=PROBE_SECONDS)
        return measure(arguments, cluster, {"matrix": f"{RANDOM}{seed}", "links": str(seed),
                                            "scale": arguments.scale})


def random_rates(seed: int, scale: float) -> Iterator[float]:
    drawn = random.Random(seed)
    while True:
        yield drawn.uniform(LEAST_MBIT, MOST_MBIT) * scale


def measure(arguments: argparse.Namespace, cluster: Cluster,
            parameters: dict[str, Any]) -> list[dict[str, Any]]:
    recorder = Recorder(EXPERIMENT, {
        "n": arguments.n, "k": arguments.k, **parameters,
        "congestion_control": cluster.network.congestion_control})
    for number in range(1, arguments.runs + 1):
        one = shuffled_stripe(cluster, rs(arguments.n, arguments.k),
                              arguments.block_mib * MIB, number)
        one.measure_all(recorder, arguments.schemes.split(","), arguments.slice_kib * 1024)
    return recorder.rows()
