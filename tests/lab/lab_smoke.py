#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small runs of `bench/lab.py`: right bytes, and on every link what the plan says and little more.

Exit code 77 with "SKIP: reason" where namespaces cannot be used.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "bench"))

from lab_command import rows_of  # noqa: E402
from labkit import netns  # noqa: E402
from labkit.cluster import COORDINATOR, REQUESTOR, Cluster, node_names  # noqa: E402
from labkit.links import Links  # noqa: E402
from labkit.netns import Network  # noqa: E402
from labkit.process import LabError, interruptible, wait_until  # noqa: E402
from labkit.stripes import MIB, encode, rs  # noqa: E402

EXIT_SKIPPED = 77
N, K, BLOCK_MIB, RATE_MBIT = 6, 4, 8, 400
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


# The experiment `multi`: bytes over all links for f = 2, in blocks, and on the busiest one. Rows of
# lost blocks travel side by side on a path; 3/5 of the slices of `mixed` take it.
MULTI_TOTAL = {"conventional f=2": K + 1, "rp f=2": 2 * K,
               "mixed f=2": 0.6 * 2 * K + 0.4 * (K + 1)}
MULTI_BUSIEST = {"conventional f=2": K, "rp f=2": 2, "mixed f=2": 1.6}

# Links of a known speed, and a node that sends at a quarter of it.
LINK_MBIT = 200
PROBES = 3
SLOW_NODE = "node-3"

# The experiment `node`: 12 nodes and stripes, of which node 1 has a block of 6, and node 7 none of
# these.
NODE_POLICIES = ("rp-balanced", "rp-greedy", "pipe-rep")
LOST_BLOCKS = 6


def run_lab(bin_dir: Path, experiment: str, *arguments: str) -> list[dict]:
    return rows_of(bin_dir, experiment, "--n", str(N), "--k", str(K),
                   "--rate-mbit", str(RATE_MBIT), *arguments)


def within(measured: int, low_blocks: float, high_blocks: float,
           block_mib: int = BLOCK_MIB) -> bool:
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


def check_multi(bin_dir: Path) -> list[str]:
    rows = run_lab(bin_dir, "multi", "--failed", "2", "--block-mib", str(BLOCK_MIB))
    problems = []
    for scheme, blocks in MULTI_TOTAL.items():
        row = next((row for row in rows if row["scheme"] == scheme), None)
        if row is None or not row["sha256_ok"]:
            problems.append(f"{scheme}: no row, or wrong bytes")
            continue
        for field, expected in (("total_bytes", blocks),
                                ("busiest_link_bytes", MULTI_BUSIEST[scheme])):
            # What a lane carries is rounded to whole slices.
            if not within(row[field], 0.99 * expected, 1.01 * expected):
                problems.append(f"{scheme}: {row[field]} {field}, expected {expected} blocks of "
                                f"{BLOCK_MIB} MiB")
    return problems


def check_node(bin_dir: Path) -> list[str]:
    rows = run_lab(bin_dir, "node", "--nodes", "12", "--stripes", "12", "--block-mib", "1",
                   "--requestors", "2,all", "--policies", ",".join(NODE_POLICIES))
    expected = ["direct", *(f"{policy} x{count}" for policy in NODE_POLICIES
                            for count in (("1",) if policy == "pipe-rep" else ("2", "all")))]
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


def check_links(bin_dir: Path) -> list[str]:
    """Links of known speed: what probes and repairs find out about them."""
    with tempfile.TemporaryDirectory(prefix="ecpipe-lab-smoke-") as folder:
        nodes = node_names(N)
        links = Links(LINK_MBIT, node_mbit={SLOW_NODE: (LINK_MBIT / 4, LINK_MBIT)})
        with Network([COORDINATOR, REQUESTOR, *nodes], links) as network, \
                Cluster(bin_dir, Path(folder), nodes, network=network, coordinator_settings={
                    "probe": {"max_mbit": 10_000}}) as cluster:
            lost = encode(cluster, code=rs(N, K), block_bytes=BLOCK_MIB * MIB)[0][0]
            cluster.cli("repair", lost.block_id, "-o", Path(folder, "out"), "--scheme", "rp",
                        "--sha256", lost.sha256)
            wait_until(lambda: any(link["from"] == SLOW_NODE for link in cluster.cli_json("links")),
                       10, "the repair to teach the slow link's speed")
            # On a path through a slow link only that one is held up by the network.
            by_repair = wrong_speeds("a repair", cluster.cli_json("links"), 1)
            return by_repair + wrong_speeds("probes", best_probes(cluster), N * (N - 1))


def best_probes(cluster: Cluster) -> list[dict]:
    """The fastest of a few probes of each link: now and then one runs while the host is busy with
    something else, and no probe may find a link too fast."""
    best: dict[tuple[str, str], dict] = {}
    for _ in range(PROBES):
        for link in cluster.cli_json("probe", "--bytes", "8MiB"):
            ends = (link["from"], link["to"])
            best[ends] = max(best.get(ends, link), link, key=lambda probed: probed["mbit"])
    return list(best.values())


def wrong_speeds(source: str, links: list[dict], at_least: int) -> list[str]:
    problems = []
    for link in links:
        rate = LINK_MBIT / 4 if link["from"] == SLOW_NODE else LINK_MBIT
        # A busy host makes links slower, never faster. Acknowledgements of what the slow node takes
        # wait behind what it sends at the time.
        least = 0.3 if link["to"] == SLOW_NODE else 0.5
        if not least * rate <= link["mbit"] <= 1.25 * rate:
            problems.append(f"{source}: {link['from']} to {link['to']} is said to have "
                            f"{link['mbit']:.1f} Mb/s, it has {rate}")
    if len(links) < at_least:
        problems.append(f"{source}: {len(links)} links measured, expected {at_least}")
    return problems


CHECKS = {
    "single": lambda arguments: check_single(arguments.bin_dir, arguments.transport),
    "multi": lambda arguments: check_multi(arguments.bin_dir),
    "node": lambda arguments: check_node(arguments.bin_dir),
    "links": lambda arguments: check_links(arguments.bin_dir),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin-dir", type=Path, required=True)
    parser.add_argument("--experiment", choices=tuple(CHECKS), default="single")
    parser.add_argument("--transport", default="tcp")
    arguments = parser.parse_args()
    obstacle = netns.why_not()
    if obstacle:
        print(f"SKIP: {obstacle}")
        return EXIT_SKIPPED
    try:
        with interruptible():
            problems = CHECKS[arguments.experiment](arguments)
    except LabError as error:
        problems = [str(error)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
