#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peak memory of each helper after it took part in the repair of one block, by block size.

Real daemons on loopback, RS(3, 2), scheme rp; a fresh cluster for each size. Needs the disk space
of five blocks.

    bench/helper_memory.py [--block-mib 64,1024]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

from experiments.results import print_table
from labkit.cluster import Cluster
from labkit.command_line import add_bin_dir_argument, check_programs
from labkit.process import interruptible
from labkit.stripes import MIB

STEP_SECONDS = 300.0


def peaks_mib(bin_dir: Path, work_dir: Path, block_mib: int) -> dict[str, float]:
    with Cluster(bin_dir, work_dir, 3) as cluster:
        source = work_dir / "source"
        with source.open("wb") as file:
            for _ in range(2 * block_mib):
                file.write(os.urandom(MIB))
        cluster.cli("encode", source, "--out", cluster.data_dir(), "--code", "rs(3,2)",
                    "--block-size", f"{block_mib}MiB", "--name", "big",
                    "--nodes", ",".join(cluster.node_ids), timeout=STEP_SECONDS)
        source.unlink()
        manifest = cluster.data_dir() / "big.manifest.json"
        cluster.cli("catalog", "load", manifest)
        block = json.loads(manifest.read_text())["stripes"][0]["blocks"][0]
        cluster.cli("repair", block["block_id"], "-o", work_dir / "rebuilt", "--scheme", "rp",
                    "--sha256", block["sha256"], timeout=STEP_SECONDS)
        return {node: status["peak_resident_bytes"] / MIB
                for node, status in cluster.wait_idle().items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--block-mib", default="64,1024",
                        help="block sizes in MiB, separated by commas (default %(default)s)")
    add_bin_dir_argument(parser, Path(__file__).resolve().parents[1])
    arguments = parser.parse_args()
    check_programs(arguments.bin_dir)
    table = []
    with interruptible():
        for block_mib in map(int, arguments.block_mib.split(",")):
            with tempfile.TemporaryDirectory(prefix="ecpipe-memory-") as folder:
                peaks = peaks_mib(arguments.bin_dir, Path(folder), block_mib)
            table.append([str(block_mib), *(f"{peak:.1f}" for peak in peaks.values())])
    print_table(["block MiB", *(f"{node} MiB" for node in peaks)], table)


if __name__ == "__main__":
    main()
