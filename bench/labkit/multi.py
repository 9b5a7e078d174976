# SPDX-License-Identifier: Apache-2.0
"""The experiment `multi`: f lost blocks of a stripe, rebuilt by each scheme on f nodes (§4.4).

Each block goes back to the node that had it: a requestor hosted by that node's helper stores it.
Times are the coordinator's, from the request to the last block on its disk. Every run sends one
block directly first.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from .cluster import COORDINATOR, REQUESTOR, Cluster, node_names
from .measure import (
    DIRECT, REPAIR_SECONDS, Sample, busiest, measure_direct_send, result_row, sha256_of, total,
    traffic)
from .netns import Network
from .process import LabError
from .stripes import add_code_arguments, check_code_arguments, code_parameters, encode

EXPERIMENT = "multi"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_code_arguments(parser, block_mib=64)
    parser.add_argument("--failed", default="1,2,3,4",
                        help="how many blocks are lost, comma-separated (default %(default)s)")
    parser.add_argument("--rate-mbit", type=float, default=200,
                        help="rate of each node's up- and downlink (default 200: with 1000 two "
                             "cores are the bottleneck and not the links)")
    parser.add_argument("--schemes", default="conventional,rp,mixed",
                        help="comma-separated (default %(default)s)")


def failed_counts(arguments: argparse.Namespace) -> list[int]:
    counts = []
    for text in arguments.failed.split(","):
        count = int(text) if text.isdigit() else 0
        if not 1 <= count <= arguments.n - arguments.k:
            raise LabError(f"--failed: {text} is not a number from 1 to n - k = "
                           f"{arguments.n - arguments.k}")
        counts.append(count)
    return counts


def run(arguments: argparse.Namespace, bin_dir: Path, work_dir: Path) -> list[dict[str, Any]]:
    """The rows, the direct send first. Raises LabError when a block's bytes are wrong."""
    check_code_arguments(arguments)
    counts = failed_counts(arguments)
    if arguments.rate_mbit <= 0:
        raise LabError("--rate-mbit must be more than 0")
    nodes = node_names(arguments.n)
    samples: dict[tuple[str, int], list[Sample]] = {}
    with Network([COORDINATOR, REQUESTOR, *nodes], arguments.rate_mbit) as network, \
            Cluster(bin_dir, work_dir, nodes, network=network) as cluster:
        blocks = encode(cluster, arguments)[0]["blocks"]
        healthy = blocks[-1]
        for number in range(1, arguments.runs + 1):
            direct = measure_direct_send(network, healthy["node"], REQUESTOR,
                                         cluster.block_file(healthy["block_id"]),
                                         healthy["sha256"])
            note(samples, number, DIRECT, 1, direct)
            for count in counts:
                for scheme in arguments.schemes.split(","):
                    note(samples, number, scheme, count,
                         rebuild(cluster, network, blocks[:count], scheme, arguments))
        return rows(samples, arguments, network.congestion_control)


def note(samples: dict[tuple[str, int], list[Sample]], number: int, scheme: str, count: int,
         sample: Sample) -> None:
    print(f"run {number}: {scheme:14} f = {count} {sample.seconds:8.3f} s", flush=True)
    if not sample.sha256_ok:
        raise LabError(f"{scheme}: the bytes are wrong")
    samples.setdefault((scheme, count), []).append(sample)


def rebuild(cluster: Cluster, network: Network, lost: list[dict[str, str]], scheme: str,
            arguments: argparse.Namespace) -> Sample:
    for block in lost:
        cluster.block_file(block["block_id"]).unlink()
    cluster.wait_idle()
    links, cpu = network.link_bytes(), cluster.cpu_seconds()
    report = cluster.cli_json(
        "repair", *(block["block_id"] for block in lost),
        "--to", ",".join(block["node"] for block in lost), "--scheme", scheme,
        "--slice-size", arguments.slice_kib * 1024, timeout=REPAIR_SECONDS)
    cpu = cluster.cpu_seconds() - cpu
    cluster.wait_idle()
    carried = traffic(links, network.link_bytes())
    right = all(sha256_of(cluster.data_dir() / block["node"] / block["block_id"]) ==
                block["sha256"] for block in lost)
    return Sample(scheme, "tcp", float(report["seconds"]), cpu, busiest(carried), total(carried),
                  right, report)


def theory_timeslots(scheme: str, k: int, f: int, slices: int) -> float | None:
    """In units of one block over one link; docs/design/002-schemes.md. None: not known."""
    fill = (k - 1) / slices
    return {
        DIRECT: 1.0,
        "conventional": float(k + f - 1),
        "rp": f * (1 + fill),
        "mixed": 1 + (f - 1) * (k - 1) / (k - 1 + f * (f - 1)) + f * fill,
    }.get(scheme)


def rows(samples: dict[tuple[str, int], list[Sample]], arguments: argparse.Namespace,
         congestion_control: str) -> list[dict[str, Any]]:
    code = code_parameters(arguments)
    slices = math.ceil(code["block_bytes"] / code["slice_bytes"])
    result = []
    for (scheme, count), of_scheme in samples.items():
        parameters = {**code, "failed": count, "rate_mbit": arguments.rate_mbit,
                      "congestion_control": congestion_control}
        row = result_row(EXPERIMENT, parameters, of_scheme, samples[DIRECT, 1])
        row["scheme"] = scheme if scheme == DIRECT else f"{scheme} f={count}"
        row["theory_timeslots"] = theory_timeslots(scheme, arguments.k, count, slices)
        result.append(row)
    return result
