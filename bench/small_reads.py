#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long reads of small ranges of a lost block take: with all helpers well, and with one stopped.

Real daemons on loopback, RS(14, 10). In each round another helper is stopped (SIGSTOP), reads
follow one after the other, each by another scheme in turn, and the helper goes on. A read's time is
that of the requestor, from its call to its last verified byte, without the start of the command.
A read is planned again when a handout does not wait for a helper that its plan needs.

    bench/small_reads.py [--kib 64,1024] [--rounds 10] [--reads 10] [--schemes auto,rp]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from experiments.results import print_table
from labkit.cluster import Cluster
from labkit.command_line import add_bin_dir_argument, check_programs, print_error
from labkit.process import LabError, interruptible
from labkit.stripes import MIB

N, K, BLOCK_MIB = 14, 10, 8


def percentile(values: list[float], share: float) -> float:
    """The least value that at least this share of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(share * 100) // 100) - 1)]


def prepare(cluster: Cluster, work_dir: Path) -> str:
    """The lost block's id; its own helper is stopped for good."""
    source = work_dir / "source"
    source.write_bytes(os.urandom(K * BLOCK_MIB * MIB))
    cluster.cli("encode", source, "--out", cluster.data_dir(), "--code", f"rs({N},{K})",
                "--block-size", f"{BLOCK_MIB}MiB", "--name", "file",
                "--nodes", ",".join(cluster.node_ids))
    manifest = cluster.data_dir() / "file.manifest.json"
    cluster.cli("catalog", "load", manifest)
    lost: str = json.loads(manifest.read_text())["stripes"][0]["blocks"][0]["block_id"]
    cluster.helpers[cluster.node_ids[0]].stop()
    return lost


def read(cluster: Cluster, block: str, kib: int, scheme: str, at: int,
         output: Path) -> dict[str, Any]:
    offset = at * MIB % ((BLOCK_MIB - 1) * MIB)
    return dict(cluster.cli_json("repair", block, "-o", output, "--offset", str(offset),
                                 "--length", f"{kib}KiB", "--scheme", scheme))


def measure(arguments: argparse.Namespace, cluster: Cluster, work_dir: Path) -> None:
    block = prepare(cluster, work_dir)
    output = work_dir / "read"
    schemes = arguments.schemes.split(",")
    table = []

    def reads(kib: int, scheme: str, rounds: int) -> list[dict[str, Any]]:
        return [read(cluster, block, kib, scheme, at, output)
                for at in range(rounds * arguments.reads)]

    for kib in map(int, arguments.kib.split(",")):
        well: dict[str, list[dict[str, Any]]] = {scheme: [] for scheme in schemes}
        stopped: dict[str, list[dict[str, Any]]] = {scheme: [] for scheme in schemes}
        for _ in range(arguments.rounds):
            for scheme in schemes:
                well[scheme] += reads(kib, scheme, 1)
        for turn in range(arguments.rounds):
            for scheme in schemes:
                victim = cluster.node_ids[1 + turn % (N - 1)]
                cluster.helpers[victim].pause()
                try:
                    stopped[scheme] += reads(kib, scheme, 1)
                finally:
                    cluster.helpers[victim].resume()
                cluster.wait_live(cluster.node_ids[1:])
        for name, all_reports in (("none", well), ("one", stopped)):
            for scheme, reports in all_reports.items():
                times = [float(report["seconds"]) * 1000 for report in reports]
                again = sum(report["attempts"] > 1 for report in reports)
                table.append([str(kib), name, scheme, str(len(times)),
                              *(f"{percentile(times, share):.1f}" for share in (0.5, 0.9, 0.99)),
                              f"{max(times):.1f}", str(again)])
    print_table(["KiB", "stopped", "scheme", "reads", "p50 ms", "p90 ms", "p99 ms", "most ms",
                 "planned again"], table)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kib", default="64,1024",
                        help="sizes of reads in KiB, separated by commas (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="default %(default)s")
    parser.add_argument("--reads", type=int, default=10,
                        help="reads in each round (default %(default)s)")
    parser.add_argument("--schemes", default="auto",
                        help="of reads, separated by commas (default %(default)s)")
    add_bin_dir_argument(parser, Path(__file__).resolve().parents[1])
    arguments = parser.parse_args()
    try:
        check_programs(arguments.bin_dir)
        with interruptible(), tempfile.TemporaryDirectory(prefix="ecpipe-reads-") as folder:
            with Cluster(arguments.bin_dir, Path(folder), N) as cluster:
                measure(arguments, cluster, Path(folder))
    except LabError as error:
        print_error("small_reads.py", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
