# SPDX-License-Identifier: Apache-2.0
"""What the processes hold: before the faults, and when all is quiet again after them."""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from labkit.cluster import Cluster
from labkit.daemon import Daemon
from labkit.process import LabError, wait_until
from .ledger import Ledger

MIB = 1 << 20
TEMPORARY = ".ecpipe-tmp-*"
# Descriptors and threads come and go with gRPC's channels to nodes and its pool of threads, which
# keeps one or two more when it has been busy. The coordinator keeps those that begin blocks of
# recoveries, up to 16 (start_threads.h). A leak of one per operation is hundreds in a minute.
MORE_DESCRIPTORS, MORE_THREADS = 16, 32
# A helper's pool of buffers and the allocator's arenas fill in the beginning.
MORE_RESIDENT_BYTES = 64 * MIB
# Sessions of requestors that were killed end after the stall timeout, repairs without a requestor
# after abandon_after_seconds (30), and lists in Redis after twice the stall timeout (20 s).
QUIET_SECONDS = 90.0


@dataclass(frozen=True)
class Held:
    descriptors: int
    threads: int
    resident_bytes: int


def held(daemon: Daemon) -> Held:
    folder = Path("/proc", str(daemon.pid))
    pages = int((folder / "statm").read_text().split()[1])
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return Held(len(list((folder / "fd").iterdir())), int(status["Threads"]),
                pages * os.sysconf("SC_PAGE_SIZE"))


def held_by_all(cluster: Cluster) -> dict[str, Held]:
    programs = [cluster.coordinator, *cluster.helpers.values()]
    return {daemon.name: held(daemon) for daemon in programs}


class Leaks:
    """Compares with what was held when this was made: with the cluster warm and quiet."""

    def __init__(self, cluster: Cluster, ledger: Ledger) -> None:
        self._cluster, self._ledger = cluster, ledger
        self._before = held_by_all(cluster)
        self._resident: list[int] = []

    def sample(self) -> None:
        """To tell memory that grows on and on from what fills once. Daemons that are down count
        nothing."""
        running = [helper for helper in self._cluster.helpers.values() if helper.running()]
        self._resident.append(max((held(helper).resident_bytes for helper in running), default=0))

    def check(self, output_folders: Sequence[Path], killed_writing: int) -> dict[str, Any]:
        """The figures; what is over its bound is a finding. `killed_writing`: so many requestors
        were killed with SIGKILL, and each may have left the file that it was writing."""
        left = {"sessions": self._until_none(self._sessions),
                "buffer_bytes": self._until_none(self._buffer_bytes),
                "running_repairs": self._until_none(self._running_repairs),
                "redis_keys": self._until_none(self._redis_keys),
                "temporary_files_on_nodes": self._until_none(self._temporary_files)}
        for what, amount in left.items():
            if amount:
                self._ledger.find("leak", of=what, amount=amount)
        abandoned = sum(len(list(folder.glob(TEMPORARY))) for folder in output_folders)
        if abandoned > killed_writing:
            self._ledger.find("leak", of="temporary files of requestors", amount=abandoned,
                              killed=killed_writing)
        return {**left, "temporary_files_of_killed_requestors": abandoned,
                "requestors_killed_at_once": killed_writing, **self._growth(),
                "largest_helper_resident_mib": [size // MIB for size in self._resident]}

    def _growth(self) -> dict[str, Any]:
        """The most that any program has more than before."""
        bounds = Held(MORE_DESCRIPTORS, MORE_THREADS, MORE_RESIDENT_BYTES)
        most: dict[str, Any] = {}
        after = held_by_all(self._cluster)
        for what, bound in asdict(bounds).items():
            for group in ("coordinator", "node"):
                grown = {name: getattr(after[name], what) - getattr(self._before[name], what)
                         for name in after if name.startswith(group)}
                name = max(grown, key=lambda each: grown[each])
                most[f"{what}_grown_most_{group}"] = grown[name]
                if grown[name] > bound:
                    self._ledger.find("leak", of=what, program=name, grown=grown[name],
                                      bound=bound)
        return most

    def _until_none(self, amount: Callable[[], int]) -> int:
        """What is left when the time for it is over: 0, or a leak."""
        with contextlib.suppress(LabError):
            wait_until(lambda: amount() == 0, QUIET_SECONDS, "quiet")
        return amount()

    def _sessions(self) -> int:
        return self._sum("active_sessions")

    def _buffer_bytes(self) -> int:
        return self._sum("buffer_bytes")

    def _sum(self, name: str) -> int:
        """A node that does not answer counts as one that holds something: nothing is wrong."""
        return sum(status[name] if status["answers"] else 1
                   for status in self._cluster.node_status().values())

    def _running_repairs(self) -> int:
        return sum(repair["state"] == "running" for repair in self._cluster.status()["repairs"])

    def _redis_keys(self) -> int:
        return sum(_redis_size(self._cluster, node) for node in self._cluster.node_ids)

    def _temporary_files(self) -> int:
        return len(list(self._cluster.data_dir().glob(f"*/{TEMPORARY}")))


def _redis_size(cluster: Cluster, node: str) -> int:
    """Lists of repairs; what expires is counted until it has."""
    settings: Mapping[str, Mapping[str, Any]] = cluster.helpers[node].settings
    host, port = settings["redis"]["address"].rsplit(":", 1)
    answer = cluster.helpers[node].host.run(["redis-cli", "-h", host, "-p", port, "DBSIZE"])
    return int(answer.stdout.split()[-1])
