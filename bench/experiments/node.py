# SPDX-License-Identifier: Apache-2.0
"""The experiment `node`: all blocks of a lost node, rebuilt on others (§3.3, §6.1, §6.4).

A policy is a scheme and how helpers are chosen; rebuilt blocks go to R requestors, for each R of
--requestors. Those are nodes of their own beside the --nodes that store the stripes, so that each
of them may take a block of any stripe; `all` stands for the surviving storage nodes. Every run
sends one block directly first. The bound is what the links allow: all that a policy sends, over the
uplinks of all survivors, and all that its requestors receive, over their downlinks. It is the
theory, too, but of paths that forward whole blocks: those are played through (whole_blocks.py).
With --slow-nodes some of these links are slower, no node sends more than it has, and the
coordinator is told how fast each is.

`drain` and `copy` are of a node that lives: all blocks are moved off it, copied and rebuilt at once
(docs/design/023-drain.md), or only copied. Their rows in one run say what the others' help brings.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from dataclasses import dataclass
from typing import Any

from labkit.cluster import Cluster, node_names
from labkit.links import HEADERS_FACTOR, Links
from labkit.measure import Meter, Sample, measure_direct_send
from labkit.process import LabError
from labkit.settings import Settings
from labkit.stripes import (
    MIB, SEED, add_code_arguments, add_runs_argument, add_size_arguments, check_arguments,
    code_parameters, encode, load_catalog, numbers, rs)
from .one_block import LOST_NODE, add_rate_argument
from .recorder import Recorder
from .testbed import Testbed
from .whole_blocks import timeslots

EXPERIMENT = "node"
NEEDS_SHAPING = False
SENDER, RECEIVER = "node-2", "node-3"
RECOVERY_SECONDS = 900.0
ALL = "all"
ROTATED, RANDOM = "rotated", "random"
SLIP, SLIP_SEEDS = 0.3, range(20)  # of whole blocks' transfers, to see what being in step brings
# Of a coordinator and of a helper that are not told otherwise: recovery.streams_per_node, and
# limits.max_buffer_bytes.
DEFAULT_STREAMS, DEFAULT_BUFFERS_MIB = 8, 512


@dataclass(frozen=True)
class Policy:
    scheme: str
    choice: str                    # of helpers and requestors: --policy of `ecpipe recover-node`
    requestors: str | None = None  # whatever --requestors says
    moves: bool = False            # the node lives: `ecpipe drain`


POLICIES = {
    "rp": Policy("rp", "in-order"),
    "rp-greedy": Policy("rp", "least-recent"),
    "rp-balanced": Policy("rp", "balanced"),
    "rp-single": Policy("rp", "least-recent", "1"),
    "rp-all": Policy("rp", "least-recent", ALL),
    "conventional": Policy("conventional", "in-order"),
    "ppr": Policy("ppr", "in-order"),
    "pipe-rep": Policy("pipe-b", "in-order", "1"),
    "pipe-sur": Policy("pipe-b", "in-order", ALL),
    "drain": Policy("rp", "balanced", ALL, moves=True),
    "copy": Policy("direct", "balanced", ALL, moves=True),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=16,
                        help="number of storage nodes (default 16)")
    parser.add_argument("--stripes", type=int, default=32, help="number of stripes (default 32)")
    add_code_arguments(parser)
    add_size_arguments(parser, block_mib=4)
    add_runs_argument(parser)
    add_rate_argument(parser)
    parser.add_argument("--requestors", default=ALL,
                        help="how many extra nodes take the rebuilt blocks, separated by commas; "
                             "all: the storage nodes that are left (default all)")
    parser.add_argument("--policies", default="rp,rp-greedy,rp-balanced",
                        help=f"policies to measure, separated by commas: {', '.join(POLICIES)}; "
                             "pipe-rep and rp-single have one requestor; pipe-sur, rp-all, "
                             "drain and copy have all (default %(default)s)")
    parser.add_argument("--slow-nodes", type=int, default=0,
                        help="so many of the storage nodes have slower links (default 0)")
    parser.add_argument("--slow-mbit", type=float, default=0,
                        help="rate of their up- and downlinks in Mb/s (default: half)")
    parser.add_argument("--placement", choices=(ROTATED, RANDOM), default=ROTATED,
                        help="rotated: each stripe begins one node further on; random: on the lost "
                             "node and others at random, the same each time (default "
                             "%(default)s)")
    parser.add_argument("--streams", type=int, default=0,
                        help="most repairs in which a node takes part at once; 0: the "
                             "coordinator's default. Each of pipe-rep and pipe-sur may take the "
                             "memory of two blocks at each node")


def check(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """The policies, each with each of its requestors."""
    check_arguments(arguments)
    policies = arguments.policies.split(",")
    if unknown := set(policies) - set(POLICIES):
        raise LabError(f"--policies: {', '.join(sorted(unknown))} is not one of "
                       f"{', '.join(POLICIES)}")
    asked = arguments.requestors.split(",")
    if any(text != ALL and not (text.isdigit() and int(text) > 0) for text in asked):
        raise LabError(f"--requestors {arguments.requestors}: give numbers of at least 1, or all")
    chosen = [(name, count) for name in policies
              for count in ([POLICIES[name].requestors] if POLICIES[name].requestors else asked)]
    if arguments.nodes < arguments.n or arguments.stripes < 1:
        raise LabError(f"--nodes {arguments.nodes} --stripes {arguments.stripes}: there must be "
                       f"at least {arguments.n} nodes and one stripe")
    slow = arguments.slow_nodes
    if arguments.slow_mbit < 0 or (arguments.slow_mbit and not slow):
        raise LabError(f"--slow-mbit {arguments.slow_mbit:g}: it must not be negative, and needs "
                       "--slow-nodes")
    if slow and (not arguments.rate_mbit or not 0 < slow < arguments.nodes - 2
                 or any(count != ALL or POLICIES[name].moves or POLICIES[name].scheme != "rp"
                        for name, count in chosen)):
        raise LabError(f"--slow-nodes {slow}: at least the lost node, the sender and the receiver "
                       "of the direct send are fast, links have a rate, and all policies are of "
                       "rp and rebuild blocks on all survivors")
    if arguments.nodes == arguments.n and any(count == ALL for _, count in chosen):
        raise LabError(f"--nodes {arguments.nodes}: a lost block needs a node beside the "
                       f"{arguments.n} of its stripe, or requestors of their own")
    return chosen


def run(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    """The rows, the direct send first. Raises LabError when a block's bytes are wrong."""
    chosen = check(arguments)
    storage = node_names(arguments.nodes)
    spares = [f"spare-{i + 1}" for i in range(
        max((int(count) for _, count in chosen if count != ALL), default=0))]
    slow_mbit = arguments.slow_mbit or arguments.rate_mbit / 2
    links = Links(arguments.rate_mbit or None, node_mbit={
        node: (slow_mbit, slow_mbit) for node in storage[len(storage) - arguments.slow_nodes:]})
    with testbed.cluster([*storage, *spares], links,
                         links_table=links_table(links, storage) if arguments.slow_nodes else None,
                         helper_settings=room_for_buffers(arguments, chosen)) as cluster:
        lost = LostNode(cluster, arguments, storage, spares)
        rate = cluster.network.links.rate_mbit
        recorder = Recorder(EXPERIMENT, {
            **code_parameters(arguments), "nodes": arguments.nodes, "stripes": arguments.stripes,
            "lost_blocks": len(lost.sha256), "rate_mbit": rate or 0,
            **({"slow_nodes": arguments.slow_nodes, "slow_mbit": slow_mbit}
               if arguments.slow_nodes else {}),
            "placement": arguments.placement, "streams": arguments.streams,
            "congestion_control": cluster.network.congestion_control})
        expected = {(name, count): lost.expected(POLICIES[name], count, rate) if rate else {}
                    for name, count in chosen}
        for _ in range(arguments.runs):
            direct = measure_direct_send(cluster, lost.healthy, RECEIVER)
            fields = {"direct_s": direct.seconds}
            if rate:
                fields["direct_wire_s"] = lost.block_bytes * HEADERS_FACTOR * 8 / (rate * 1e6)
            recorder.add_direct(direct, **fields)
            for name, count in chosen:
                recorder.add(f"{name} x{count}", lost.recover(POLICIES[name], count), direct,
                             theory=lost.theory(expected[name, count], rate) if rate else None,
                             parameters={"requestors": count}, **fields, **expected[name, count])
        return [with_rates(row, lost) for row in recorder.rows()]


def room_for_buffers(arguments: argparse.Namespace,
                     chosen: list[tuple[str, str]]) -> Settings | None:
    """Each part of `pipe-b` has two buffers of a block. Background repairs get three quarters of a
    helper's buffers: by default, room for three parts of 64 MiB. Three blocks for each stream are
    enough."""
    if all(POLICIES[name].scheme != "pipe-b" for name, _ in chosen):
        return None
    mib = 3 * (arguments.streams or DEFAULT_STREAMS) * arguments.block_mib
    return {"limits": {"max_buffer_bytes": f"{max(mib, DEFAULT_BUFFERS_MIB)}MiB"}}


def links_table(links: Links, nodes: list[str]) -> str:
    """What an operator would write of them: the coordinator's topology.links."""
    return "".join(f"{sender} {receiver} {links.mbit(sender, receiver):g}\n"
                   for sender in nodes for receiver in nodes if sender != receiver)


def with_rates(row: dict[str, Any], lost: LostNode) -> dict[str, Any]:
    if "requestors" in row["parameters"]:
        row["mib_per_s"] = len(lost.sha256) * lost.block_bytes / MIB / statistics.median(
            row["seconds"])
        if "bound_s" in row:
            row["of_bound"] = row["bound_s"] / row["median_s"]
    return row


def rebuilt_mbit(uplinks: list[float], held: list[float], k: int) -> float:
    """The most that uplinks allow: the rate r of rebuilt blocks at which the nodes, each of which
    sends min(its uplink, r * the share of lost blocks that it can help with), bring k * r."""
    limited = sorted(((up, share) for up, share in zip(uplinks, held) if share),
                     key=lambda node: node[0] / node[1])
    free = 0.0  # shares of the nodes whose uplinks are faster than they need to be
    while True:
        rate = sum(up for up, _ in limited) / (k - free)
        up, share = limited[-1]
        if up <= rate * share * (1 + 1e-9):  # a tie is no reason to go on
            return rate
        free += limited.pop()[1]


class LostNode:
    """The blocks that a node had, and the way back to before they were rebuilt."""

    def __init__(self, cluster: Cluster, arguments: argparse.Namespace, storage: list[str],
                 spares: list[str]) -> None:
        self.cluster = cluster
        self.arguments = arguments
        self.survivors = [node for node in storage if node != LOST_NODE]
        self.spares = spares
        self.block_bytes = arguments.block_mib * MIB
        blocks = [block for stripe in encode(
            cluster, code=rs(arguments.n, arguments.k), block_bytes=self.block_bytes,
            stripes=arguments.stripes, nodes=storage,
            place=self.random_nodes if arguments.placement == RANDOM else None) for block in stripe]
        self.sha256 = {block.block_id: block.sha256 for block in blocks
                       if block.node == LOST_NODE}
        nodes = [[block.node for block in blocks[i:i + arguments.n]]
                 for i in range(0, len(blocks), arguments.n)]
        self.holders = [[node for node in stripe if node != LOST_NODE] for stripe in nodes
                        if LOST_NODE in stripe]
        self.healthy = next(block for block in blocks if block.node == SENDER)
        if not any(POLICIES[name].moves for name in arguments.policies.split(",")):
            cluster.helpers[LOST_NODE].kill()

    def random_nodes(self, stripe: int) -> list[str]:
        """The lost node is among them, in the first stripe the sender of the direct send, too."""
        draw = random.Random(SEED + stripe)
        nodes = [LOST_NODE, SENDER] if stripe == 0 else [LOST_NODE]
        others = [node for node in self.survivors if node not in nodes]
        nodes += draw.sample(others, self.arguments.n - len(nodes))
        draw.shuffle(nodes)
        return nodes

    def targets(self, count: str) -> list[str]:
        return self.survivors if count == ALL else self.spares[:int(count)]

    def bound_seconds(self, policy: Policy, count: str, rate_mbit: float) -> float:
        """By the links alone. A requestor receives one block for each that it stores, of
        conventional repair all k, of PPR one in each of its steps."""
        lost_s = len(self.sha256) * self.block_bytes * 8 / (rate_mbit * 1e6)
        if policy.moves:  # its one uplink, and what the others rebuild while that is full
            helped = policy.scheme != "direct"
            return lost_s / (1 + helped * (len(self.survivors) - 1) / self.arguments.k)
        k, targets = self.arguments.k, len(self.targets(count))
        received = {"conventional": k, "ppr": math.ceil(math.log2(k + 1))}.get(policy.scheme, 1)
        uplinks = [self.cluster.network.links.up(node) or rate_mbit for node in self.survivors]
        held = [sum(node in stripe for stripe in self.holders) / len(self.holders)
                for node in self.survivors]
        return lost_s * max(rate_mbit / rebuilt_mbit(uplinks, held, k), received / targets)

    def expected(self, policy: Policy, count: str, rate_mbit: float) -> dict[str, float]:
        """The bound, and of paths that forward whole blocks the timeslots that they take, and the
        least and the most of them when transfers slip."""
        bound = {"bound_s": self.bound_seconds(policy, count, rate_mbit)}
        if policy.scheme != "pipe-b" or policy.choice != "in-order":
            return bound
        given = (self.holders, self.arguments.k, self.targets(count),
                 self.arguments.streams or DEFAULT_STREAMS)
        slipped = [timeslots(*given, SLIP, seed) for seed in SLIP_SEEDS]
        return {**bound, "timeslots": timeslots(*given), "slipped_least": min(slipped),
                "slipped_most": max(slipped)}

    def theory(self, expected: dict[str, float], rate_mbit: float) -> float:
        """The timeslots of paths that forward whole blocks; of others the bound, in blocks."""
        return expected.get("timeslots", expected["bound_s"] / (
            self.block_bytes * 8 / (rate_mbit * 1e6)))

    def copies(self) -> dict[str, str]:
        """Rebuilt blocks, and the nodes that have them."""
        return {name: node for node in [*self.survivors, *self.spares]
                for name in self.cluster.network.host(node).list_directory(
                    self.cluster.block_path(node, "."))
                if name in self.sha256}

    def recover(self, policy: Policy, count: str) -> Sample:
        cluster, arguments = self.cluster, self.arguments
        for block, node in self.copies().items():
            cluster.network.host(node).remove(cluster.block_path(node, block))
        load_catalog(cluster)
        streams = ("--streams", str(arguments.streams)) if arguments.streams else ()
        command = ["drain", LOST_NODE] if policy.moves else [
            "recover-node", LOST_NODE, "--even-if-live", "--delay", "0",
            "--slice-size", str(arguments.slice_kib * 1024)]
        meter = Meter(cluster)
        with meter.watching():
            report = cluster.cli_json(
                *command, "--scheme", policy.scheme, "--policy", policy.choice,
                "--to", ",".join(self.targets(count)), *streams, timeout=RECOVERY_SECONDS)
        copies = self.copies()
        right = (set(copies) == set(self.sha256)
                 and all(cluster.network.host(node).sha256(cluster.block_path(node, block))
                         == self.sha256[block] for block, node in copies.items()))
        seconds = (report["ended_unix_ms"] - report["started_unix_ms"]) / 1000
        return meter.sample(policy.scheme, "tcp", seconds, right, report)
