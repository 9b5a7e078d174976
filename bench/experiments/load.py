# SPDX-License-Identifier: Apache-2.0
"""The command `load`: how many small reads a second a cluster serves, within a limit of their p99.

Reads begin at random instants, at a rate that does not wait for earlier ones (an open loop): of
healthy blocks, and of blocks whose node is lost; alone, and beside the recovery of another lost
node. Each read's bytes are compared. A read's time counts from when it was due. The rate is doubled
while the p99 is within the limit and no read fails, and then the highest such rate is looked for
between the last two. One requestor process, one coordinator, real daemons.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.cluster import REQUESTOR, Cluster, node_names
from labkit.links import Links
from labkit.load import LoadWatch
from labkit.process import LabError, wait_until
from labkit.stripes import (
    MIB, add_code_arguments, check_arguments, encode, load_catalog, rs)
from . import results
from .one_block import LOST_NODE, add_rate_argument
from .testbed import Emulated

NAME = "load"
PROGRAM = "read_load"
RECOVERED_NODE = "node-2"
HEALTHY, DEGRADED = "healthy", "degraded"
SCHEMES = {HEALTHY: "direct", DEGRADED: "auto"}
END_SECONDS = 60.0  # of anything that should end soon
NARROWING = 3       # steps between the last rate that was served and the first that was not


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=16, help="number of helpers (default 16)")
    add_code_arguments(parser)
    parser.add_argument("--block-mib", type=int, default=4, help="block size in MiB (default 4)")
    parser.add_argument("--stripes", type=int, default=64,
                        help="number of stripes; a recovery must outlast the reads (default 64)")
    parser.add_argument("--kib", type=int, default=64, help="bytes of a read in KiB (default 64)")
    add_rate_argument(parser, 1000)
    parser.add_argument("--p99-ms", type=float, default=100,
                        help="the limit of the p99 in milliseconds (default 100)")
    parser.add_argument("--from-rate", type=float, default=10,
                        help="the first rate, in reads a second (default 10)")
    parser.add_argument("--to-rate", type=float, default=5000,
                        help="the highest rate that is tried (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=5,
                        help="how long each rate goes on (default 5)")
    parser.add_argument("--reads", default=",".join(SCHEMES),
                        help="healthy, degraded or both (default both)")
    parser.add_argument("--repair-mbit", type=int, default=0,
                        help="what each node may send of repairs, in Mb/s, of which reads come "
                             "first; 0: no limit (default 0)")
    parser.add_argument("--without-recovery", action="store_true",
                        help="only reads alone, and none beside a recovery")
    parser.add_argument("--seed", type=int, default=1, help="of the reads (default 1)")


@dataclass(frozen=True)
class Point:
    """What one rate led to."""

    rate: float
    done: int
    failed: int       # or had not ended long after the last one began
    first_error: str
    p50_ms: float
    p99_ms: float
    longest_ms: float
    cores_busy: float

    def served(self, p99_ms: float) -> bool:
        return self.done > 0 and not self.failed and self.p99_ms <= p99_ms


def run(arguments: argparse.Namespace, testbed: Emulated) -> list[dict[str, Any]]:
    check_arguments(arguments)
    reads = arguments.reads.split(",")
    if unknown := set(reads) - set(SCHEMES):
        raise LabError(f"--reads: {', '.join(sorted(unknown))} is not healthy or degraded")
    if arguments.nodes < arguments.n + 2:
        raise LabError(f"--nodes {arguments.nodes}: a recovery beside reads of lost blocks needs "
                       f"at least {arguments.n + 2}")
    if not 0 < arguments.from_rate <= arguments.to_rate or arguments.seconds <= 0:
        raise LabError("--from-rate and --seconds must be above 0, and --to-rate not below the "
                       "first rate")
    if arguments.kib * 1024 > arguments.block_mib * MIB:
        raise LabError(f"--kib {arguments.kib}: a read is longer than a block")
    rows = []
    with testbed.cluster(node_names(arguments.nodes),
                         Links(arguments.rate_mbit or None)) as cluster:
        loaded = Loaded(cluster, arguments)
        for beside in (False, True)[:1 if arguments.without_recovery else 2]:
            for kind in reads:
                rows.append(loaded.row(kind, beside))
    return rows


class Loaded:
    """A cluster that has lost two nodes: blocks of the one are read, those of the other rebuilt."""

    def __init__(self, cluster: Cluster, arguments: argparse.Namespace) -> None:
        self._cluster, self._arguments = cluster, arguments
        blocks = [block for stripe in encode(
            cluster, code=rs(arguments.n, arguments.k), block_bytes=arguments.block_mib * MIB,
            stripes=arguments.stripes) for block in stripe]

        def files(*nodes: str) -> list[tuple[str, Path]]:
            return [(block.block_id, cluster.block_path(block.node, block.block_id))
                    for block in blocks if block.node in nodes]
        lost = (LOST_NODE, RECOVERED_NODE)
        self._files = {HEALTHY: files(*(node for node in cluster.node_ids if node not in lost)),
                       DEGRADED: files(LOST_NODE)}
        self._recovered = dict(files(RECOVERED_NODE))
        if arguments.repair_mbit:
            cluster.cli("limits", "set", "--node", ",".join(cluster.node_ids),
                        "--repair-mbit", str(arguments.repair_mbit))
        for node in lost:
            cluster.helpers[node].kill()
        wait_until(lambda: all(cluster.node_status()[node]["state"] == "dead" for node in lost),
                   END_SECONDS, "the coordinator takes the two nodes for dead")

    def row(self, kind: str, beside: bool) -> dict[str, Any]:
        arguments = self._arguments
        best = highest_rate(arguments.from_rate, arguments.to_rate, arguments.p99_ms,
                            lambda rate: self._point(kind, beside, rate))
        names = ("n", "k", "nodes", "block_mib", "stripes", "kib", "rate_mbit",
                 "repair_mbit", "p99_ms", "seconds", "seed")
        return {"reads": kind, "beside": "a recovery" if beside else "nothing",
                "parameters": {name: getattr(arguments, name) for name in names},
                "reads_per_s": best.rate if best else 0.0,
                **({} if best is None else {
                    "count": best.done, "p50_ms": best.p50_ms, "p99_ms_at_rate": best.p99_ms,
                    "longest_ms": best.longest_ms, "cores_busy": best.cores_busy})}

    def _point(self, kind: str, beside: bool, rate: float) -> Point:
        with self._recovery() if beside else contextlib.nullcontext():
            point = self._read(kind, rate)
        print(f"{kind} reads{' beside a recovery' if beside else ''}: {rate:.0f} a second: "
              f"p50 {point.p50_ms:.1f} ms, p99 {point.p99_ms:.1f} ms, {point.failed} failed"
              + (f" ({point.first_error})" if point.failed else "")
              + f", {point.cores_busy:.1f} cores busy", flush=True)
        return point

    def _read(self, kind: str, rate: float) -> Point:
        cluster, arguments = self._cluster, self._arguments
        load = LoadWatch()
        done = cluster.requestor.run(
            [cluster.requestor.program(cluster.bin_dir / PROGRAM), cluster.coordinator.address,
             SCHEMES[kind], f"{rate:g}", f"{arguments.seconds:g}", str(arguments.kib * 1024),
             str(arguments.seed), *(f"{block}={path}" for block, path in self._files[kind])],
            timeout=arguments.seconds + END_SECONDS)
        report = json.loads(done.stdout.splitlines()[-1])
        failed = report["failed"] + report["unfinished"]
        return Point(rate, report["done"], failed,
                     report["first_error"] or "it did not end", report["p50_ms"],
                     report["p99_ms"], report["longest_ms"], load.cores_busy())

    @contextlib.contextmanager
    def _recovery(self) -> Iterator[None]:
        """LabError when it did not last. Then all is as before."""
        cluster = self._cluster
        number = str(cluster.cli_json("recover-node", RECOVERED_NODE, "--delay", "0",
                                      "--detach")["recovery_id"])
        try:
            yield
            state = cluster.cli_json("recovery", "show", number)["state"]
        finally:
            cluster.cli("recovery", "cancel", number, check=False)
            cluster.wait_idle()
            for block in self._copies():
                cluster.requestor.remove(block)
            load_catalog(cluster)
        if state != "running":
            raise LabError(f"the recovery beside the reads ended before they did ({state}); "
                           "give more --stripes, or fewer --seconds")

    def _copies(self) -> list[Path]:
        return [path for path in self._cluster.data_dir().glob("*/*")
                if path.name.removeprefix(".crc32c.") in self._recovered
                and path.parent.name != RECOVERED_NODE]


def highest_rate(first: float, last: float, p99_ms: float,
                 measure: Callable[[float], Point]) -> Point | None:
    """The point of the highest rate that was served; None if the first was not."""
    best, rate = None, first
    while rate <= last and (point := measure(rate)).served(p99_ms):
        best, rate = point, rate * 2
    if best is None or rate > last:
        return best
    low, high = best.rate, rate
    for _ in range(NARROWING):
        point = measure((low + high) / 2)
        if point.served(p99_ms):
            best, low = point, point.rate
        else:
            high = point.rate
    return best


def show(arguments: argparse.Namespace, rows: list[dict[str, Any]], repository: Path) -> None:
    if arguments.json:
        results.write_json(arguments.json, rows, repository)
    print()
    results.print_table(
        ["reads", "beside", "reads/s", "p50 ms", "p99 ms", "longest ms", "cores"],
        [[row["reads"], row["beside"], f"{row['reads_per_s']:.0f}",
          *(f"{row[name]:.1f}" if name in row else "-"
            for name in ("p50_ms", "p99_ms_at_rate", "longest_ms", "cores_busy"))]
         for row in rows])
