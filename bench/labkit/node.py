# SPDX-License-Identifier: Apache-2.0
"""The experiment `node`: all blocks of a lost node, rebuilt on others (§3.3, §6.1, §6.4).

A policy is a scheme, how helpers are chosen, and where blocks go: on R of the surviving nodes, for
each R of --requestors; those with the fewest blocks of the damaged stripes, since no node takes two
blocks of one stripe. Every run sends one block directly first. The bound is what the links allow:
each rebuilt block has k blocks sent, over the uplinks of all surviving nodes.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cluster import COORDINATOR, REQUESTOR, Cluster, node_names
from .measure import (
    DIRECT, MIB, Sample, busiest, measure_direct_send, result_row, sha256_of, total, traffic)
from .netns import Network
from .process import LabError
from .stripes import (
    add_code_arguments, check_code_arguments, code_parameters, encode, manifest_of)

EXPERIMENT = "node"
LOST_NODE = "node-1"
SENDER, RECEIVER = "node-2", "node-3"
RECOVERY_SECONDS = 900.0


@dataclass(frozen=True)
class Policy:
    scheme: str
    choice: str              # of helpers and requestors: --policy of `ecpipe recover-node`
    one_target: bool = False  # whatever --requestors says


POLICIES = {
    "rp": Policy("rp", "in-order"),
    "rp-greedy": Policy("rp", "least-recent"),
    "rp-balanced": Policy("rp", "balanced"),
    "conventional": Policy("conventional", "in-order"),
    "ppr": Policy("ppr", "in-order"),
    "pipe-rep": Policy("pipe-b", "in-order", one_target=True),
    "pipe-sur": Policy("pipe-b", "in-order"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=16, help="storage nodes (default 16)")
    parser.add_argument("--stripes", type=int, default=32, help="stripes (default 32)")
    add_code_arguments(parser, block_mib=4)
    parser.add_argument("--rate-mbit", type=float, default=200,
                        help="rate of each node's up- and downlink (default 200: with 1000 two "
                             "cores are the bottleneck and not the links)")
    parser.add_argument("--requestors", default="all",
                        help="how many nodes take blocks, comma-separated; `all` (default all)")
    parser.add_argument("--policies", default="rp,rp-greedy,rp-balanced",
                        help=f"comma-separated, of {', '.join(POLICIES)} (default %(default)s)")
    parser.add_argument("--streams", type=int, default=0,
                        help="repairs in which a node takes part at once; 0: as configured")


def check_arguments(arguments: argparse.Namespace) -> None:
    check_code_arguments(arguments)
    if arguments.nodes <= arguments.n:
        raise LabError(f"--nodes {arguments.nodes}: a lost block needs a node beside the "
                       f"{arguments.n} of its stripe")
    if arguments.stripes < 1:
        raise LabError("--stripes must be at least 1")
    if arguments.rate_mbit <= 0:
        raise LabError("--rate-mbit must be more than 0")
    unknown = set(arguments.policies.split(",")) - set(POLICIES)
    if unknown:
        raise LabError(f"--policies: {', '.join(sorted(unknown))} is not one of "
                       f"{', '.join(POLICIES)}")
    requestor_counts(arguments)


def requestor_counts(arguments: argparse.Namespace) -> list[int]:
    counts = []
    for text in arguments.requestors.split(","):
        count = arguments.nodes - 1 if text == "all" else int(text) if text.isdigit() else 0
        if not 1 <= count < arguments.nodes:
            raise LabError(f"--requestors: {text} is not a number from 1 to {arguments.nodes - 1}")
        counts.append(count)
    return counts


def run(arguments: argparse.Namespace, bin_dir: Path, work_dir: Path) -> list[dict[str, Any]]:
    """The rows, the direct send first. Raises LabError when a block's bytes are wrong."""
    check_arguments(arguments)
    nodes = node_names(arguments.nodes)
    samples: dict[tuple[str, int], list[Sample]] = {}
    with Network([COORDINATOR, REQUESTOR, *nodes], arguments.rate_mbit) as network, \
            Cluster(bin_dir, work_dir, nodes, network=network) as cluster:
        lost = LostNode(cluster, arguments)
        for number in range(1, arguments.runs + 1):
            direct = measure_direct_send(network, SENDER, RECEIVER, lost.a_file, lost.a_sha256)
            note(samples, number, DIRECT, 1, direct)
            for name in arguments.policies.split(","):
                counts = [1] if POLICIES[name].one_target else requestor_counts(arguments)
                for count in counts:
                    sample = lost.recover(network, POLICIES[name], count, arguments)
                    note(samples, number, name, count, sample)
        return rows(samples, arguments, lost, network.congestion_control)


def note(samples: dict[tuple[str, int], list[Sample]], number: int, name: str, count: int,
         sample: Sample) -> None:
    print(f"run {number}: {name:14} {count:3} requestors {sample.seconds:8.3f} s", flush=True)
    if not sample.sha256_ok:
        raise LabError(f"{name}: the bytes are wrong")
    samples.setdefault((name, count), []).append(sample)


class LostNode:
    """The blocks that a node had, and the way back to before they were rebuilt."""

    def __init__(self, cluster: Cluster, arguments: argparse.Namespace) -> None:
        self.cluster = cluster
        stripes = encode(cluster, arguments, arguments.stripes)
        self.holders = [nodes for nodes in ({block["node"] for block in stripe["blocks"]}
                                            for stripe in stripes) if LOST_NODE in nodes]
        blocks = [block for stripe in stripes for block in stripe["blocks"]]
        self.sha256 = {block["block_id"]: block["sha256"] for block in blocks
                       if block["node"] == LOST_NODE}
        healthy = next(block for block in blocks if block["node"] == SENDER)
        self.a_file = cluster.block_file(healthy["block_id"])
        self.a_sha256 = healthy["sha256"]
        cluster.helpers[LOST_NODE].kill()

    def copies(self) -> list[Path]:
        """Rebuilt blocks, on the nodes that have them."""
        return [file for node in self.cluster.node_ids if node != LOST_NODE
                for file in (self.cluster.data_dir() / node).iterdir()
                if file.name in self.sha256]

    def targets(self, count: int) -> list[str]:
        survivors = [node for node in self.cluster.node_ids if node != LOST_NODE]
        chosen = sorted(survivors, key=lambda node: sum(node in nodes for nodes in self.holders))
        chosen = chosen[:count]
        if any(nodes.issuperset(chosen) for nodes in self.holders):
            raise LabError(f"{count} requestors: each of {', '.join(chosen)} has a block of some "
                           "damaged stripe; give more --nodes or more --requestors")
        return chosen

    def recover(self, network: Network, policy: Policy, count: int,
                arguments: argparse.Namespace) -> Sample:
        for file in self.copies():
            file.unlink()
        self.cluster.cli("catalog", "load", manifest_of(self.cluster))
        self.cluster.wait_idle()
        targets = self.targets(count)
        streams = ("--streams", arguments.streams) if arguments.streams else ()
        links, cpu = network.link_bytes(), self.cluster.cpu_seconds()
        report = self.cluster.cli_json(
            "recover-node", LOST_NODE, "--even-if-live", "--scheme", policy.scheme,
            "--policy", policy.choice, "--slice-size", arguments.slice_kib * 1024,
            "--to", ",".join(targets), *streams, timeout=RECOVERY_SECONDS)
        cpu = self.cluster.cpu_seconds() - cpu
        carried = traffic(links, network.link_bytes())
        copies = self.copies()
        right = (sorted(file.name for file in copies) == sorted(self.sha256)
                 and all(sha256_of(file) == self.sha256[file.name] for file in copies))
        seconds = (report["ended_unix_ms"] - report["started_unix_ms"]) / 1000
        return Sample(policy.scheme, "tcp", seconds, cpu, busiest(carried), total(carried), right,
                      report)


def rows(samples: dict[tuple[str, int], list[Sample]], arguments: argparse.Namespace,
         lost: LostNode, congestion_control: str) -> list[dict[str, Any]]:
    code = code_parameters(arguments)
    lost_bytes = len(lost.sha256) * code["block_bytes"]
    link = arguments.rate_mbit * 1e6 / 8
    result = []
    for (name, count), of_policy in samples.items():
        parameters = {
            **code, "nodes": arguments.nodes, "stripes": arguments.stripes,
            "lost_blocks": len(lost.sha256), "rate_mbit": arguments.rate_mbit,
            "requestors": count, "streams": arguments.streams,
            "congestion_control": congestion_control}
        row = result_row(EXPERIMENT, parameters, of_policy, samples[DIRECT, 1])
        row["scheme"] = name if name == DIRECT else f"{name} x{count}"
        if name != DIRECT:
            row["bound_s"] = max(lost_bytes * arguments.k / ((arguments.nodes - 1) * link),
                                 lost_bytes / (count * link))
            row["of_bound"] = row["bound_s"] / row["median_s"]
            row["mib_per_s"] = lost_bytes / MIB / statistics.median(
                sample.seconds for sample in of_policy)
        result.append(row)
    return result
