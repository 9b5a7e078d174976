#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small `bench/lab.py single`: right bytes, and on every link what the plan says and little more.

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


def run_lab(bin_dir: Path, output: Path, transport: str) -> list[dict]:
    done = run([sys.executable, REPOSITORY / "bench" / "lab.py", "single", "--n", str(N),
                "--k", str(K), "--block-mib", str(BLOCK_MIB), "--rate-mbit", str(RATE_MBIT),
                "--schemes", ",".join(BUSIEST_BLOCKS), "--transport", transport, "--runs", "1",
                "--bin-dir", bin_dir, "--json", output], timeout=LAB_SECONDS)
    print(done.stdout)
    return json.loads(output.read_text())["rows"]


def within(measured: int, low_blocks: int, high_blocks: int) -> bool:
    block = BLOCK_MIB * MIB
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


def check(bin_dir: Path, transport: str) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="ecpipe-lab-smoke-") as folder:
        rows = run_lab(bin_dir, Path(folder, "rows.json"), transport)
    problems = [problem for row in rows for problem in problems_of(row)]
    missing = set(BUSIEST_BLOCKS) - {row["scheme"] for row in rows}
    return problems + [f"no row for {scheme}" for scheme in sorted(missing)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin-dir", type=Path, required=True)
    parser.add_argument("--transport", default="tcp")
    arguments = parser.parse_args()
    obstacle = netns.why_not()
    if obstacle:
        print(f"SKIP: {obstacle}")
        return EXIT_SKIPPED
    try:
        with interruptible():
            problems = check(arguments.bin_dir, arguments.transport)
    except LabError as error:
        problems = [str(error)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
