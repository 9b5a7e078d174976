# SPDX-License-Identifier: Apache-2.0
"""The experiment `geo`: nodes in regions with a link rate for each pair (§4.3, §6.2, Table 1).

As many nodes in each region; the requestor in each region in turn. Stripes lie on the nodes in
random order, another one each run, so that `rp` and `ppr` choose helpers and path at random;
`rp-weighted` is the paper's Algorithm 2. `ppr` passes slices on as they come; `ppr-rounds` ends
each step before the next (§2.2). The direct send comes from the region of the lost block.
"""

from __future__ import annotations

import argparse
from typing import Any, Sequence

from labkit.cluster import REQUESTOR, Cluster, node_names
from labkit.links import Links
from labkit.process import LabError
from labkit.stripes import (
    MIB, add_code_arguments, add_runs_argument, add_size_arguments, check_arguments, rs)
from .matrix import Matrix, measured_matrix, rack_name, read_matrix
from .one_block import add_scheme_arguments
from .rack import check_racks, shuffled_stripe
from .recorder import Recorder
from .testbed import Testbed

EXPERIMENT = "geo"
NEEDS_SHAPING = True
PROBE_SECONDS = 1800.0
PROBE_BYTES = 4 * MIB


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--matrix", default="north-america",
                        help="link rates: north-america or asia (the paper's Table 1), or a file "
                             "like those in bench/experiments/matrices (default %(default)s)")
    add_code_arguments(parser, n=16, k=12)
    add_size_arguments(parser, block_mib=64)
    parser.add_argument("--scale", type=float, default=1.0,
                        help="factor for all rates of the matrix (default 1)")
    parser.add_argument("--regions", help="regions of the requestor, separated by commas "
                                          "(default: each region in turn)")
    add_scheme_arguments(parser, "ppr-rounds,ppr,rp,rp-weighted")
    add_runs_argument(parser)


def run(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    check_arguments(arguments)
    if not testbed.shapes:
        return on_links_as_they_are(arguments, testbed)
    matrix = read_matrix(arguments.matrix).scaled(arguments.scale)
    if arguments.n % len(matrix.regions):
        raise LabError(f"--n {arguments.n} must be a multiple of the number of regions, "
                       f"{len(matrix.regions)}")
    nodes, size = node_names(arguments.n), arguments.n // len(matrix.regions)
    rows = []
    for region in chosen_regions(arguments, matrix.regions):
        region_of = {node: matrix.regions[i // size] for i, node in enumerate(nodes)}
        region_of[REQUESTOR] = region
        links = Links(pair_mbit=matrix.pairs(region_of),
                      racks={node: rack_name(where) for node, where in region_of.items()})
        with testbed.cluster(nodes, links, links_table=matrix.topology_links()) as cluster:
            rows += measure(arguments, cluster, region, matrix)
    return rows


def on_links_as_they_are(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    """Racks are the regions. Links are probed first, as the paper does, and the coordinator begins
    again with what was found."""
    nodes = node_names(arguments.n)
    with testbed.cluster(nodes, Links()) as cluster:
        check_racks(cluster)
        region_of = {node: (cluster.network.rack(node) or "").lstrip("/") for node in nodes}
        probed = cluster.cli_json("probe", "--bytes", str(PROBE_BYTES), timeout=PROBE_SECONDS)
    matrix = measured_matrix(probed, region_of)
    rows = []
    for region in chosen_regions(arguments, testbed.requestor_regions()):
        with testbed.cluster(nodes, Links(), requestor_rack=rack_name(region),
                             links_table=matrix.topology_links()) as cluster:
            rows += measure(arguments, cluster, region, matrix)
    return rows


def chosen_regions(arguments: argparse.Namespace, there: Sequence[str]) -> Sequence[str]:
    regions = arguments.regions.split(",") if arguments.regions else there
    if unknown := set(regions) - set(there):
        raise LabError(f"--regions: {', '.join(sorted(unknown))} is not one of "
                       f"{', '.join(there)}")
    return regions


def measure(arguments: argparse.Namespace, cluster: Cluster, region: str,
            matrix: Matrix) -> list[dict[str, Any]]:
    recorder = Recorder(EXPERIMENT, {
        "n": arguments.n, "k": arguments.k, "matrix": matrix.name,
        "requestor_region": region, "congestion_control": cluster.network.congestion_control})
    for number in range(1, arguments.runs + 1):
        one = shuffled_stripe(cluster, rs(arguments.n, arguments.k),
                              arguments.block_mib * MIB, number)
        one.measure_all(recorder, arguments.schemes.split(","), arguments.slice_kib * 1024)
    return recorder.rows()
