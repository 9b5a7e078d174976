#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small runs of `bench/lab.py`: right bytes, and on every link what the plan says and little more.

Exit code 77 with "SKIP: reason" where namespaces cannot be used.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "bench"))

from labkit import netns  # noqa: E402
from labkit.measure import MIB  # noqa: E402
from labkit.process import LabError, interruptible, run  # noqa: E402

EXIT_SKIPPED = 77
N, K, BLOCK_MIB, RATE_MBIT = 6, 4, 8, 400
LAB_SECONDS = 240.0
# Blocks over the busiest link, and over all links: the paper's §2.2 and §3.2 for k = 4. PPR's
# tree of 4 helpers and the requestor sums in 3 steps; the requestor receives two partial sums or
# more, and at most one a step.
BUSIEST_BLOCKS = {
    "direct": (1, 1), "engine-direct": (1, 1), "conventional": (K, K), "ppr": (2, 3), "rp": (1, 1)}
TOTAL_BLOCKS = {"direct": 1, "engine-direct": 1, "conventional": K, "ppr": K, "rp": K}
# Ethernet, IP and TCP headers of full-sized packets take 4.5 %, frame headers 0.1 %, and what comes
# the other way 2 %; control messages and heartbeats come on top.
OVERHEAD_FRACTION = 0.08
OVERHEAD_BYTES = 256 * 1024


# The experiment `node`: 12 nodes and stripes, of which node 1 has a block of 6, and node 7 none of
# these.
NODE_POLICIES = ("rp-balanced", "rp-greedy", "pipe-rep")
LOST_BLOCKS = 6


def run_lab(bin_dir: Path, experiment: str, *arguments: str) -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="ecpipe-lab-smoke-") as folder:
        output = Path(folder, "rows.json")
        done = run([sys.executable, REPOSITORY / "bench" / "lab.py", experiment, "--n", str(N),
                    "--k", str(K), "--rate-mbit", str(RATE_MBIT), "--runs", "1", *arguments,
                    "--bin-dir", bin_dir, "--json", output], timeout=LAB_SECONDS)
        print(done.stdout)
        return json.loads(output.read_text())["rows"]


def within(measured: int, low_blocks: int, high_blocks: int, block_mib: int = BLOCK_MIB) -> bool:
    block = block_mib * MIB
    ceiling = high_blocks * block * (1 + OVERHEAD_FRACTION) + OVERHEAD_BYTES
    return low_blocks * block <= measured <= ceiling


def problems_of(row: dict) -> list[str]:
    scheme = row["scheme"]
    found = []
    if not row["sha256_ok"]:
        found.append(f"{scheme}: wrong bytes")
    if not within(row["busiest_link_bytes"], *BUSIEST_BLOCKS[scheme]):
        found.append(f"{scheme}: {row['busiest_link_bytes']} bytes on the busiest link, "
                     f"expected {BUSIEST_BLOCKS[scheme]} blocks of {BLOCK_MIB} MiB")
    if not within(row["total_bytes"], TOTAL_BLOCKS[scheme], TOTAL_BLOCKS[scheme]):
        found.append(f"{scheme}: {row['total_bytes']} bytes over all links, "
                     f"expected {TOTAL_BLOCKS[scheme]} blocks of {BLOCK_MIB} MiB")
    return found


def check_single(bin_dir: Path, transport: str) -> list[str]:
    rows = run_lab(bin_dir, "single", "--block-mib", str(BLOCK_MIB), "--schemes",
                   ",".join(BUSIEST_BLOCKS), "--transport", transport)
    problems = [problem for row in rows for problem in problems_of(row)]
    missing = set(BUSIEST_BLOCKS) - {row["scheme"] for row in rows}
    return problems + [f"no row for {scheme}" for scheme in sorted(missing)]


def check_node(bin_dir: Path) -> list[str]:
    rows = run_lab(bin_dir, "node", "--nodes", "12", "--stripes", "12", "--block-mib", "1",
                   "--requestors", "2,all", "--policies", ",".join(NODE_POLICIES))
    expected = ["direct", *(f"{policy} x{count}" for policy in NODE_POLICIES
                            for count in ((1,) if policy == "pipe-rep" else (2, 11)))]
    problems = []
    if [row["scheme"] for row in rows] != expected:
        problems.append(f"rows {[row['scheme'] for row in rows]}, expected {expected}")
    for row in rows[1:]:
        blocks = LOST_BLOCKS * K
        if not row["sha256_ok"]:
            problems.append(f"{row['scheme']}: wrong bytes")
        if row["parameters"]["lost_blocks"] != LOST_BLOCKS:
            problems.append(f"{row['parameters']['lost_blocks']} lost blocks")
        if not within(row["total_bytes"], blocks, blocks, block_mib=1):
            problems.append(f"{row['scheme']}: {row['total_bytes']} bytes over all links, "
                            f"expected {blocks} blocks of 1 MiB")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin-dir", type=Path, required=True)
    parser.add_argument("--experiment", choices=("single", "node"), default="single")
    parser.add_argument("--transport", default="tcp")
    arguments = parser.parse_args()
    obstacle = netns.why_not()
    if obstacle:
        print(f"SKIP: {obstacle}")
        return EXIT_SKIPPED
    try:
        with interruptible():
            problems = (check_node(arguments.bin_dir) if arguments.experiment == "node"
                        else check_single(arguments.bin_dir, arguments.transport))
    except LabError as error:
        problems = [str(error)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
