# SPDX-License-Identifier: Apache-2.0
"""The experiment `links`: unequal links, all known limits at once, and what a scheme makes of them.

With a matrix of regions each pair of nodes has the rate of its regions, and each node an up- and a
downlink besides (--node-mbit 0: none); the coordinator is told both. With `random:SEED` there is
one cluster for each seed, whose links are drawn at random: up- and downlinks of nodes, rates of
pairs, and what regions share (--limits). The coordinator is told nothing and has measured them by
`ecpipe probe`. The requestor is in each region in turn.
"""

from __future__ import annotations

import argparse
import math
import random
from typing import Any, Callable, Collection, Sequence

from labkit.cluster import REQUESTOR, Cluster, node_names
from labkit.links import HEADERS_FACTOR, Links
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
# Of random links, in Mb/s before --scale: up- and downlinks, pairs, and what enters or leaves a
# region.
NODE_MBIT = (20.0, 200.0)
PAIR_MBIT = (5.0, 60.0)
REGION_MBIT = (50.0, 300.0)
NODES_IN_REGION = 4
LIMITS = ("nodes", "pairs", "regions")
# For the coordinator, where nodes have no limit: faster than what two cores serve.
NO_LIMIT_MBIT = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--matrix", default="north-america",
                        help="north-america or asia (the paper's Table 1), a file like those in "
                             "bench/experiments/matrices, or random:SEED[,SEED...] "
                             "(default %(default)s)")
    add_code_arguments(parser, n=16, k=12)
    add_size_arguments(parser, block_mib=16)
    parser.add_argument("--node-mbit", type=float, default=500.0,
                        help="rate of each node's up- and downlink, with a matrix (default 500; 0: "
                             "no limit)")
    parser.add_argument("--limits", default="nodes",
                        help="what is limited with random:SEED, of nodes, pairs and regions, "
                             "separated by commas (default nodes)")
    parser.add_argument("--scale", type=float, default=0.25,
                        help="factor for all rates (default %(default)s, which two cores serve)")
    parser.add_argument("--regions", help="regions of the requestor, separated by commas "
                                          "(default: each region in turn)")
    add_scheme_arguments(parser, "conventional,ppr,rp,rp-weighted,rp-all,rp-flow")
    add_runs_argument(parser)
    parser.epilog = ("rp-flow+link, and so for each scheme: the requestor says what its own link "
                     "is.")


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
                             coordinator_settings={"defaults": {
                                 "link_mbit": links.rate_mbit or NO_LIMIT_MBIT}}) as cluster:
            rows += measure(arguments, cluster, {
                "matrix": matrix.name, "links": region,
                "node_mbit": links.rate_mbit or 0})
    return rows


def links_of(arguments: argparse.Namespace, matrix: Matrix, region: str) -> Links:
    nodes = node_names(arguments.n)
    region_of = {node: matrix.regions[i * len(matrix.regions) // len(nodes)]
                 for i, node in enumerate(nodes)}
    region_of[REQUESTOR] = region
    # The coordinator's configuration has whole numbers.
    node_mbit = max(1, round(arguments.node_mbit * arguments.scale))
    return Links(node_mbit if arguments.node_mbit else None, pair_mbit=matrix.pairs(region_of),
                 racks={node: rack_name(where) for node, where in region_of.items()})


def seeds(matrix: str) -> list[int]:
    words = matrix.removeprefix(RANDOM).split(",")
    if not all(word.isdecimal() for word in words):
        raise LabError(f"--matrix {matrix}: SEED must be a number")
    return [int(word) for word in words]


def limits(words: str) -> set[str]:
    chosen = set(words.split(","))
    if unknown := chosen - set(LIMITS):
        raise LabError(f"--limits {words}: {', '.join(sorted(unknown))} is none of "
                       f"{', '.join(LIMITS)}")
    return chosen


def on_random_links(arguments: argparse.Namespace, testbed: Testbed,
                    seed: int) -> list[dict[str, Any]]:
    nodes = node_names(arguments.n)
    links = random_links(seed, [*nodes, REQUESTOR], limits(arguments.limits), arguments.scale)
    parameters = {"matrix": f"{RANDOM}{seed}", "links": str(seed), "scale": arguments.scale}
    if arguments.limits == "nodes":
        rate = rate_by_node_links(links, nodes[1:], REQUESTOR, arguments.k)
        parameters["least_s"] = arguments.block_mib * MIB * HEADERS_FACTOR * 8 / (rate * 1e6)
    with testbed.cluster(nodes, links) as cluster:
        cluster.cli_json("probe", "--bytes", str(PROBE_BYTES), timeout=PROBE_SECONDS)
        return measure(arguments, cluster, parameters)


def random_links(seed: int, nodes: Sequence[str], limited: Collection[str],
                 scale: float) -> Links:
    """The same for the same seed. A kind of limit has the same rates whatever else is limited."""
    def draw(kind: str, span: tuple[float, float]) -> Callable[[], float]:
        drawn = random.Random(seed + 1_000_000 * LIMITS.index(kind))
        return lambda: drawn.uniform(*span) * scale
    node, pair, region = (draw(kind, span) for kind, span in zip(
        LIMITS, (NODE_MBIT, PAIR_MBIT, REGION_MBIT)))
    regions = max(2, math.ceil(len(nodes) / NODES_IN_REGION))
    return Links(
        node_mbit={name: (node(), node()) for name in nodes} if "nodes" in limited else {},
        pair_mbit={(a, b): pair() for a in nodes for b in nodes if a != b}
        if "pairs" in limited else {},
        racks={name: rack_name(f"region-{i % regions}") for i, name in enumerate(nodes)}
        if "regions" in limited else {},
        rack_mbit=region() if "regions" in limited else None)


def rate_by_node_links(links: Links, helpers: Sequence[str], requestor: str, k: int) -> float:
    """Mb/s. No plan is faster: each slice needs k helpers, which send once each, and who sends to a
    helper or to the requestor needs its downlink."""
    def carries(rate: float) -> bool:
        sent = sum(min(rate, links.up(helper)) for helper in helpers)
        received = links.down(requestor) + sum(links.down(helper) for helper in helpers)
        return sent >= k * rate and received >= k * rate and rate <= links.down(requestor)
    low, high = 0.0, links.down(requestor)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if carries(middle) else (low, middle)
    return low


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
