#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much slower a repair gets while strangers open thousands of bad connections.

A cluster in network namespaces with shaped links. Repairs with and without a flood take turns; the
flood comes from a node of its own and goes, evenly over the time of a repair, to the data port of
the first helper of the path, or to what --targets names: connections that close at once, that say
nothing, a byte now and then, noise, half a TLS hello, or a hello of somebody else's edge. --each
measures the targets one after the other instead of together. Needs root. The strangers' own CPU
time is on the same cores.

    sudo bench/flood.py [--tls] [--each] [--targets data,control,pages,endpoint,coordinator,
                        coordinator-pages] [--rate-mbit 200] [--runs 7]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.one_block import LOST_NODE, OneBlock
from experiments.results import print_table
from experiments.testbed import Emulated
from labkit import netns, strangers
from labkit.certificates import Certificates
from labkit.cluster import COORDINATOR, REQUESTOR, Cluster, node_names
from labkit.command_line import add_bin_dir_argument, check_programs
from labkit.daemon import Daemon
from labkit.links import Links
from labkit.process import LabError, interruptible
from labkit.stripes import (
    MIB, add_code_arguments, add_runs_argument, add_size_arguments, check_arguments, rs)

REPOSITORY = Path(__file__).resolve().parents[1]
FLOOD_SECONDS = 120.0
SCHEME = "rp"
# The flood begins a little earlier and ends a little later than the repair.
MARGIN = 1.2
PAGES_PORT, ENDPOINT_PORT, COORDINATOR_PAGES_PORT = 9711, 9712, 9701
TARGETS = ("data", "control", "pages", "endpoint", "coordinator", "coordinator-pages")


@dataclass(frozen=True)
class Run:
    seconds: float
    opened: int = 0
    failed: int = 0
    strangers_cpu_seconds: float = 0.0


def ports_of(cluster: Cluster, one: OneBlock, slice_bytes: int, targets: list[str]) -> list[str]:
    """Of the first helper of the path that a repair takes now, and of the coordinator."""
    plan = cluster.cli_json("plan", one.lost.block_id, "--scheme", SCHEME,
                            "--slice-size", str(slice_bytes))
    first = plan["lanes"][0]["hops"][0]["node"]
    node = cluster.node_status()[first]
    host, coordinator = cluster.network.address(first), cluster.network.address(COORDINATOR)
    known = {"data": node["data_address"], "control": node["control_address"],
             "pages": f"{host}:{PAGES_PORT}", "endpoint": f"{host}:{ENDPOINT_PORT}",
             "coordinator": cluster.coordinator.address,
             "coordinator-pages": f"{coordinator}:{COORDINATOR_PAGES_PORT}"}
    return [known[target] for target in targets]


def repair(one: OneBlock, slice_bytes: int) -> float:
    sample = one.repair(SCHEME, slice_bytes)
    if not sample.sha256_ok:
        raise LabError("the repaired block has wrong bytes")
    return sample.seconds


def flooded_repair(cluster: Cluster, one: OneBlock, arguments: argparse.Namespace,
                   targets: list[str], seconds: float) -> Run:
    """The flood comes from the node whose helper is stopped: nobody else uses its address."""
    slice_bytes = arguments.slice_kib * 1024
    ports = ports_of(cluster, one, slice_bytes, targets)
    host = cluster.network.host(LOST_NODE)
    log = cluster.base(LOST_NODE) / "logs" / "strangers.log"
    host.remove(log)
    flood = Daemon("the strangers", [
        host.python, host.program(Path(strangers.__file__)), str(arguments.connections),
        str(seconds), *ports], log, host=host)
    flood.start()
    try:
        taken = repair(one, slice_bytes)
        if flood.reap(FLOOD_SECONDS) != 0:
            raise LabError(f"the program that opens the bad connections failed\n{flood.log_tail()}")
    finally:
        flood.kill()
    report: dict[str, Any] = json.loads(host.read_text(log))
    return Run(taken, report["opened"], report["failed"], report["cpu_seconds"])


@contextlib.contextmanager
def cluster_with_doors(arguments: argparse.Namespace, testbed: Emulated,
                       certificates: Certificates | None) -> Iterator[Cluster]:
    """Every daemon has pages, and each helper an endpoint, for others than its own node."""
    nodes = node_names(arguments.n)
    pages = {"tls": certificates is not None}
    with testbed.network([COORDINATOR, REQUESTOR, *nodes],
                         Links(arguments.rate_mbit)) as (network, folder), \
            Cluster(arguments.bin_dir, folder, nodes, network=network, certificates=certificates,
                    coordinator_settings={
                        "web": {"listen": f"0.0.0.0:{COORDINATOR_PAGES_PORT}", **pages}},
                    helper_settings={
                        "web": {"listen": f"0.0.0.0:{PAGES_PORT}", **pages},
                        "endpoint": {"address": f"tcp:0.0.0.0:{ENDPOINT_PORT}"}}) as cluster:
        yield cluster


def measure(arguments: argparse.Namespace, cluster: Cluster, one: OneBlock,
            targets: list[str]) -> None:
    slice_bytes = arguments.slice_kib * 1024
    quiet: list[float] = []
    flooded: list[Run] = []
    expected = repair(one, slice_bytes)  # also warms everything up; not counted
    for _ in range(arguments.runs):
        quiet.append(repair(one, slice_bytes))
        flooded.append(flooded_repair(cluster, one, arguments, targets, MARGIN * expected))
    cluster.wait_idle()
    print_table(["run", "quiet s", "flooded s", "ratio", "opened", "not opened",
                 "strangers' CPU s"],
                [[str(i), f"{alone:.3f}", f"{run.seconds:.3f}", f"{run.seconds / alone:.3f}",
                  str(run.opened), str(run.failed), f"{run.strangers_cpu_seconds:.2f}"]
                 for i, (alone, run) in enumerate(zip(quiet, flooded), 1)])
    ratio = statistics.median(run.seconds for run in flooded) / statistics.median(quiet)
    print(f"{', '.join(targets)}: median of the flooded over median of the quiet: {ratio:.3f}"
          f" ({'TLS' if arguments.tls else 'plain TCP'})", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_code_arguments(parser)
    add_size_arguments(parser, block_mib=64)
    add_runs_argument(parser)
    parser.add_argument("--rate-mbit", type=float, default=200,
                        help="rate of each link in Mb/s (default 200)")
    parser.add_argument("--connections", type=int, default=10_000,
                        help="bad connections during each repair (default 10000)")
    parser.add_argument("--targets", default="data",
                        help="ports to flood, separated by commas: data, control, pages and "
                             "endpoint (of the path's first helper), coordinator, "
                             "coordinator-pages (default %(default)s)")
    parser.add_argument("--each", action="store_true",
                        help="flood one of them after the other, not all at once")
    parser.add_argument("--tls", action="store_true", help="run the cluster with TLS")
    add_bin_dir_argument(parser, REPOSITORY)
    arguments = parser.parse_args()
    targets = arguments.targets.split(",")
    try:
        if unknown := set(targets) - set(TARGETS):
            raise LabError(f"--targets: {', '.join(unknown)} is not one of {', '.join(TARGETS)}")
        check_arguments(arguments)
        check_programs(arguments.bin_dir)
        if obstacle := netns.why_not():
            raise LabError(obstacle)
        with interruptible(), tempfile.TemporaryDirectory(prefix="ecpipe-flood-") as folder:
            certificates = None
            if arguments.tls:
                certificates = Certificates(Path(folder) / "certificates")
                certificates.make_for_cluster(COORDINATOR, REQUESTOR, node_names(arguments.n))
            testbed = Emulated(arguments.bin_dir, Path(folder))
            with cluster_with_doors(arguments, testbed, certificates) as cluster:
                one = OneBlock(cluster, rs(arguments.n, arguments.k), arguments.block_mib * MIB)
                for flooded in [[target] for target in targets] if arguments.each else [targets]:
                    measure(arguments, cluster, one, flooded)
    except LabError as error:
        print(f"flood.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
