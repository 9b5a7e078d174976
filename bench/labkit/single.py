# SPDX-License-Identifier: Apache-2.0
"""The experiment `single`: one lost block, rebuilt by each scheme over equal, shaped links.

Every run sends one block directly first and then lets each scheme repair the same block, so that
all of them see the machine in the same state.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, Iterator

from .bare_chain import BARE_CHAIN, measure_bare_chain
from .cluster import COORDINATOR, REQUESTOR, Cluster, node_names
from .measure import (
    DIRECT, Sample, measure_direct_send, measure_repair, result_row, sha256_of,
    theory_timeslots)
from .netns import Network
from .process import LabError
from .stripes import add_code_arguments, check_code_arguments, code_parameters, encode

EXPERIMENT = "single"
# Reads one healthy block through our own engine: what the engine costs without any coding.
ENGINE_DIRECT = "engine-direct"
LOST_NODE = "node-1"
HEALTHY_NODE = "node-2"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_code_arguments(parser, block_mib=64)
    parser.add_argument("--rate-mbit", type=float, default=1000,
                        help="rate of each node's up- and downlink; 0: not shaped (default 1000)")
    parser.add_argument("--requestor-mbit", type=float,
                        help="rate of the requestor's links (default: as the others)")
    parser.add_argument("--schemes", default="direct,conventional,ppr,rp",
                        help="comma-separated; `direct` is always measured, `engine-direct` reads "
                             "a healthy block through ECPipe, `bare-chain` is the least that RP's "
                             "path costs on this machine (default %(default)s)")
    parser.add_argument("--transport", default="tcp",
                        help="tcp, redis, or both comma-separated (default tcp)")

def check_arguments(arguments: argparse.Namespace) -> None:
    check_code_arguments(arguments)
    if min(arguments.rate_mbit, arguments.requestor_mbit or 0) < 0:
        raise LabError("--rate-mbit and --requestor-mbit must not be negative")
    unknown = set(arguments.transport.split(",")) - {"tcp", "redis"}
    if unknown:
        raise LabError(f"--transport: {', '.join(sorted(unknown))} is not tcp or redis")


def run(arguments: argparse.Namespace, bin_dir: Path, work_dir: Path) -> list[dict[str, Any]]:
    """The rows, the direct send first. Raises LabError when a result's bytes are wrong."""
    check_arguments(arguments)
    transports = arguments.transport.split(",")
    nodes = node_names(arguments.n)
    with Network([COORDINATOR, REQUESTOR, *nodes], arguments.rate_mbit or None) as network, \
            Cluster(bin_dir, work_dir, nodes, redis="redis" in transports,
                    network=network) as cluster:
        if arguments.requestor_mbit:
            network.shape(REQUESTOR, arguments.requestor_mbit, arguments.requestor_mbit)
        lost = lose_a_block(cluster, arguments)
        samples: dict[tuple[str, str], list[Sample]] = {}
        for number in range(1, arguments.runs + 1):
            for name, sample in one_run(cluster, network, lost, bin_dir, arguments):
                print(f"run {number}: {name:14} {sample.transport:5} {sample.seconds:8.3f} s",
                      flush=True)
                if not sample.sha256_ok:
                    raise LabError(f"{name} over {sample.transport}: the bytes are wrong")
                samples.setdefault((name, sample.transport), []).append(sample)
    return rows(samples, arguments, network.congestion_control)


class LostBlock:
    """A block that is gone from its node, and one of the same stripe that is not."""

    def __init__(self, cluster: Cluster, lost_id: str, healthy_id: str) -> None:
        self.block_id = lost_id
        self.healthy_id = healthy_id
        self.healthy_file = cluster.block_file(healthy_id)
        self.healthy_sha256 = sha256_of(self.healthy_file)
        file = cluster.block_file(lost_id)
        self.sha256 = sha256_of(file)
        file.unlink()
        self.output = cluster.work_dir / "repaired"


def lose_a_block(cluster: Cluster, arguments: argparse.Namespace) -> LostBlock:
    """Encodes one stripe over the nodes, and takes one node's block away."""
    lost, healthy = encode(cluster, arguments)[0]["blocks"][:2]
    cluster.helpers[LOST_NODE].stop()
    return LostBlock(cluster, lost["block_id"], healthy["block_id"])


def one_run(cluster: Cluster, network: Network, lost: LostBlock, bin_dir: Path,
            arguments: argparse.Namespace) -> Iterator[tuple[str, Sample]]:
    yield DIRECT, measure_direct_send(network, HEALTHY_NODE, REQUESTOR, lost.healthy_file,
                                      lost.healthy_sha256)
    slice_bytes = arguments.slice_kib * 1024
    schemes = arguments.schemes.split(",")
    if BARE_CHAIN in schemes:
        yield BARE_CHAIN, measure_bare_chain(cluster, network, bin_dir / "bare_chain",
                                             lost.block_id, lost.sha256, lost.output, slice_bytes)
    for transport in arguments.transport.split(","):
        for scheme in schemes:
            if scheme in (DIRECT, BARE_CHAIN):
                continue
            block, sha256, engine_scheme = lost.block_id, lost.sha256, scheme
            if scheme == ENGINE_DIRECT:
                block, sha256, engine_scheme = lost.healthy_id, lost.healthy_sha256, DIRECT
            yield scheme, measure_repair(cluster, block, sha256, lost.output, transport=transport,
                                         scheme=engine_scheme, slice_bytes=slice_bytes)


def rows(samples: dict[tuple[str, str], list[Sample]], arguments: argparse.Namespace,
         congestion_control: str) -> list[dict[str, Any]]:
    parameters = {**code_parameters(arguments), "rate_mbit": arguments.rate_mbit,
                  "requestor_mbit": arguments.requestor_mbit or arguments.rate_mbit,
                  "congestion_control": congestion_control}
    block_bytes = parameters["block_bytes"]
    slices = math.ceil(block_bytes / parameters["slice_bytes"])
    direct_sends = samples[DIRECT, "tcp"]
    result = []
    for (name, _), of_scheme in samples.items():
        row = result_row(EXPERIMENT, parameters, of_scheme, direct_sends)
        row["scheme"] = name
        row["theory_timeslots"] = theory_timeslots(name, arguments.k, slices)
        if arguments.rate_mbit:
            # What the wire alone takes for one block: no scheme can be faster.
            row["bound_s"] = block_bytes * 8 / (arguments.rate_mbit * 1e6)
        result.append(row)
    return result
