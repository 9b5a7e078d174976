# SPDX-License-Identifier: Apache-2.0
"""A Java client that takes a command a line: io.ecpipe.hdfs.itest.Driver."""

from __future__ import annotations

import queue
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from ..host import LocalHost
from ..process import LabError, cpu_seconds, die_with_parent
from .hadoop import Hdfs

ANSWER_SECONDS = 600  # two cores need minutes to write eight groups of 640 MiB


class DriverError(LabError):
    """What the driver was asked to do failed; wrong bytes, too."""


@dataclass(frozen=True)
class ReadCounters:
    repairs: int
    requested_bytes: int
    repaired_bytes: int
    fallbacks: int
    broken: int

    def __sub__(self, other: ReadCounters) -> ReadCounters:
        return ReadCounters(self.repairs - other.repairs,
                            self.requested_bytes - other.requested_bytes,
                            self.repaired_bytes - other.repaired_bytes,
                            self.fallbacks - other.fallbacks, self.broken - other.broken)


@dataclass(frozen=True)
class Group:
    """A block group as the NameNode lists it."""

    pool: str
    group_id: int
    stamp: int
    bytes: int
    nodes: dict[int, str]  # index to a DataNode's UUID


class Driver:
    """`configuration`: a file; see Hdfs.configuration(). `held_mib`: the most that one command
    reads; it is in memory until it has been compared, in the old generation, which has two thirds
    of the heap."""

    def __init__(self, hdfs: Hdfs, host: LocalHost, configuration: Path, log: Path,
                 held_mib: int = 0) -> None:
        self._log = log.open("a")
        self._process = subprocess.Popen(
            host.command(hdfs.java("io.ecpipe.hdfs.itest.Driver", configuration,
                                   heap=f"{512 + 2 * held_mib}m")),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, bufsize=1,
            start_new_session=True, preexec_fn=die_with_parent)
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._collect, daemon=True).start()

    def _collect(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put("error the driver has ended")

    def send(self, *words: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")

    def line(self) -> str:
        try:
            return self._lines.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            raise DriverError(f"no answer within {ANSWER_SECONDS} s") from None

    def answer(self) -> str:
        status, _, rest = self.line().partition(" ")
        if status != "ok":
            raise DriverError(rest)
        return rest

    def do(self, *words: object) -> str:
        self.send(*words)
        try:
            return self.answer()
        except DriverError as error:
            raise DriverError(f"{' '.join(map(str, words))}: {error}") from None

    def counters(self) -> ReadCounters:
        return ReadCounters(*map(int, self.do("counters").split()))

    def groups(self, path: str) -> list[Group]:
        found = []
        for word in self.do("blocks", path).split():
            pool, group, stamp, size, *places = word.split(",")
            nodes = {int(index): uuid for index, uuid in (place.split("=") for place in places)}
            found.append(Group(pool, int(group), int(stamp), int(size), nodes))
        return found

    def cpu_seconds(self) -> float:
        return cpu_seconds(self._process.pid)

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
