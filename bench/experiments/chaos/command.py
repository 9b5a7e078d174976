# SPDX-License-Identifier: Apache-2.0
"""The command `chaos`: reads, repairs and recoveries while processes are killed and stopped, links
cut and slowed, disks filled and hung, and blocks damaged. It fails on any wrong byte, hang, leak,
crash or unclear error, on any operation that failed although the code could bear all that was
wrong, and on what must not happen by the daemons' logs."""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import signal
import statistics
import threading
import time
from pathlib import Path
from typing import Any, Iterator

from labkit import disks
from labkit.clock import LIBRARY, JumpingClocks
from labkit.cluster import COORDINATOR, REQUESTOR, Cluster, node_names
from labkit.link_faults import LinkFaults
from labkit.links import Links
from labkit.load import LoadWatch
from labkit.netns import Network
from labkit.process import LabError
from labkit.settings import merged
from labkit.stripes import MIB, rs
from .. import results
from . import history
from .blocks import Blocks
from .faults import Faults, Machine
from .leaks import Leaks
from .ledger import RECOVERY, REPAIR_TO, Ledger
from .mover import Mover
from .operations import HANG_SECONDS, OPERATIONS, Worker
from .schedule import TICK_SECONDS, Schedule

NAME = "chaos"
WARM_UP_SECONDS = 8.0
SAMPLES = 10  # of memory, over the run
# The longest that a thread may take for what it does when the end comes, a recovery.
JOIN_SECONDS = 300.0
# As in the tests: the defaults are for blocks of gigabytes.
HELPER_SETTINGS = merged({"timeouts": {"drain_seconds": 5.0}}, history.HELPER_SETTINGS)
# One node in so many has a disk that can be filled and can hang, with so much room for more blocks.
NODES_A_DISK, DISK_ROOM = 3, 64 * MIB


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1,
                        help="seed of all random choices (default 1)")
    parser.add_argument("--minutes", type=float, default=30.0,
                        help="how long faults go on (default 30)")
    parser.add_argument("--nodes", type=int, default=14, help="number of helpers (default 14)")
    parser.add_argument("--n", type=int, default=9, help="blocks in a stripe (default 9)")
    parser.add_argument("--k", type=int, default=6, help="data blocks in a stripe (default 6)")
    parser.add_argument("--stripes", type=int, default=10, help="number of stripes (default 10)")
    parser.add_argument("--block-mib", type=int, default=4, help="block size in MiB (default 4)")
    parser.add_argument("--rate-mbit", type=float, default=100,
                        help="rate of each link in Mb/s (default 100)")
    parser.add_argument("--workers", type=int, default=4, help="operations at once (default 4)")
    parser.add_argument("--loopback", action="store_true",
                        help="run on loopback, which needs no root; no faults of links and disks "
                             "then")


def run(arguments: argparse.Namespace, work_dir: Path, keep: bool,
        repository: Path) -> bool:
    """Whether all was well. The result is printed, and written to --json."""
    if not 2 <= arguments.n - arguments.k or arguments.n >= arguments.nodes:
        raise LabError(f"--nodes {arguments.nodes} --n {arguments.n} --k {arguments.k}: chaos "
                       "needs n - k of at least 2, and more nodes than n")
    ledger = Ledger(arguments.n - arguments.k - 1)
    begun, load = time.monotonic(), LoadWatch()
    try:
        with _cluster(arguments, work_dir) as (cluster, machine):
            outcome = _Run(arguments, cluster, machine, ledger).run()
    finally:
        if not keep:
            shutil.rmtree(work_dir / "cluster", ignore_errors=True)
    outcome["cores_busy"] = load.cores_busy()
    outcome["seconds"] = time.monotonic() - begun
    _report(arguments, outcome, repository)
    return not outcome["findings"]


@contextlib.contextmanager
def _cluster(arguments: argparse.Namespace,
             work_dir: Path) -> Iterator[tuple[Cluster, Machine]]:
    nodes, folder = node_names(arguments.nodes), work_dir / "cluster"
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        network = None
        if not arguments.loopback:
            network = stack.enter_context(Network([COORDINATOR, REQUESTOR, *nodes],
                                                  Links(arguments.rate_mbit)))
        clocks = None
        if (arguments.bin_dir / LIBRARY).exists():
            clocks = JumpingClocks(arguments.bin_dir, folder / "clocks", [COORDINATOR, *nodes])
        else:
            print(f"no clock jumps: there is no {arguments.bin_dir / LIBRARY}", flush=True)
        cluster = Cluster(arguments.bin_dir, folder, nodes, redis=True, network=network,
                          clocks=clocks, helper_settings=HELPER_SETTINGS)
        own_disks = _disks(arguments, stack, cluster, folder / "disks")
        stack.enter_context(cluster)
        if own_disks:
            stack.callback(own_disks.release)  # a daemon whose disk hangs does not end
        yield cluster, Machine(LinkFaults(network) if network else None, own_disks, clocks)


def _disks(arguments: argparse.Namespace, stack: contextlib.ExitStack, cluster: Cluster,
           folder: Path) -> disks.Disks | None:
    if arguments.loopback:
        return None
    if obstacle := disks.why_not():
        print(f"no disk is filled or hangs: {obstacle}", flush=True)
        return None
    folders = {node: cluster.data_dir() / node for node in cluster.node_ids[::NODES_A_DISK]}
    for place in folders.values():
        place.mkdir(parents=True, exist_ok=True)
    room = arguments.stripes * arguments.block_mib * MIB + DISK_ROOM
    return stack.enter_context(disks.Disks(folder, folders, room))


class _Run:
    """The threads of a run. Each draws from a generator of its own, so that what one draws does not
    depend on how fast another one is."""

    def __init__(self, arguments: argparse.Namespace, cluster: Cluster, machine: Machine,
                 ledger: Ledger) -> None:
        self._arguments, self._cluster, self._ledger = arguments, cluster, ledger
        self._blocks = Blocks(cluster, rs(arguments.n, arguments.k), arguments.block_mib * MIB,
                              arguments.stripes, machine.disks)
        faults = Faults(cluster, self._blocks, self._draw("faults"), machine, arguments.rate_mbit,
                        ledger.spare)
        self._schedule = Schedule(cluster, faults, ledger, self._draw("pauses"))
        self._stop, self._abort = threading.Event(), threading.Event()
        self._workers = [Worker(i, cluster, self._blocks, ledger, self._draw(f"worker-{i}"),
                                self._stop, self._abort)
                         for i in range(1, arguments.workers + 1)]
        self._mover = Mover(cluster, self._blocks, ledger, self._draw("mover"), self._stop,
                            self._abort)

    def run(self) -> dict[str, Any]:
        try:
            for worker in self._workers:
                worker.start()
            self._pass(WARM_UP_SECONDS)
            leaks = Leaks(self._cluster, self._ledger)
            self._mover.start()
            for _ in range(SAMPLES):
                self._pass(60 * self._arguments.minutes / SAMPLES, self._schedule.tick)
                leaks.sample()
            self._schedule.undo_all()
        except BaseException:
            self._abort.set()
            raise
        finally:
            self._stop.set()
            self._join()
        left = leaks.check([worker.folder for worker in self._workers],
                           sum(worker.killed_writing for worker in self._workers))
        self._check_blocks()
        return {"operations": self._operations(), "leaks": left,
                "events_judged": history.judge(self._cluster, self._ledger),
                "faults": self._ledger.counted("faults"),
                "without_room": self._ledger.counted("without-room"),
                "mended": self._ledger.counted("mended"),
                "findings": self._ledger.findings()}

    def _draw(self, name: str) -> random.Random:
        return random.Random(f"{self._arguments.seed}-{name}")

    def _pass(self, seconds: float, tick: Any = lambda: None) -> None:
        """Until then the main thread has nothing but faults to do."""
        end, idle = time.monotonic() + seconds, threading.Event()
        ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        while time.monotonic() < end:
            # What they raise in a tick could leave a lock taken, for which all workers would wait.
            signal.pthread_sigmask(signal.SIG_BLOCK, ends)
            try:
                tick()
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
            idle.wait(TICK_SECONDS)

    def _join(self) -> None:
        deadline = time.monotonic() + JOIN_SECONDS
        for thread in (*self._workers, self._mover):
            if thread.ident is not None:
                thread.join(max(0.1, deadline - time.monotonic()))
                if thread.is_alive():
                    self._ledger.find("hang", thread=thread.name)

    def _check_blocks(self) -> None:
        """All faults are undone: each block is where the catalog says, with its bytes."""
        self._blocks.read_catalog()
        for block_id in self._blocks.all():
            if self._blocks.is_good(block_id) is not True:
                self._ledger.find("a block is not right in the end", block=block_id)

    def _operations(self) -> list[dict[str, Any]]:
        seconds: dict[str, list[float]] = {name: [] for name in (*OPERATIONS, RECOVERY, REPAIR_TO)}
        for thread in (*self._workers, self._mover):
            for name, values in thread.seconds.items():
                seconds[name] += values
        return [{"operation": name, "outcomes": self._ledger.counted(name),
                 "median_s": statistics.median(values) if values else None,
                 "p99_s": _percentile(values, 0.99) if values else None,
                 "longest_s": max(values, default=None)} for name, values in seconds.items()]


def _percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def _report(arguments: argparse.Namespace, outcome: dict[str, Any], repository: Path) -> None:
    findings = outcome["findings"]
    outcome["totals"] = {
        "operations": sum(sum(row["outcomes"].values()) for row in outcome["operations"]),
        "faults": sum(outcome["faults"].values()),
        **{what: sum(finding["what"] == name for finding in findings) for what, name in (
            ("wrong_bytes", "wrong bytes"), ("hangs", "hang"), ("leaks", "leak"),
            ("crashes", "crash"))},
        "findings": len(findings)}
    names = ("seed", "minutes", "nodes", "n", "k", "stripes", "block_mib", "rate_mbit", "workers",
             "loopback")
    parameters = {name: getattr(arguments, name) for name in names}
    rows = outcome.pop("operations")
    if arguments.json:
        results.write_json(arguments.json, rows, repository, {
            "experiment": NAME, "parameters": parameters, "hang_seconds": HANG_SECONDS,
            **results.rounded(outcome)})
    print()
    results.print_table(["operation", "outcome", "count", "median s", "p99 s", "longest s"], [
        [row["operation"], name, str(count),
         *(f"{row[key]:.2f}" if name == "ok" else "-" for key in ("median_s", "p99_s",
                                                                 "longest_s"))]
        for row in rows for name, count in row["outcomes"].items()])
    for table in ("faults", "without_room", "mended", "leaks", "totals"):
        print(f"{table}: " + ", ".join(f"{name} {count}" for name, count
                                       in outcome[table].items()))
    print(f"{outcome['events_judged']} events of the daemons' logs were judged")
    print(f"{outcome['seconds']:.0f} s, {outcome['cores_busy']:.1f} cores busy")
    if findings:
        print(f"FAILED with {len(findings)} findings. Again: bench/lab.py {NAME} "
              + " ".join(f"--{name.replace('_', '-')} {value}"
                         for name, value in parameters.items() if not isinstance(value, bool))
              + "".join(f" --{name.replace('_', '-')}" for name, value in parameters.items()
                        if value is True))
