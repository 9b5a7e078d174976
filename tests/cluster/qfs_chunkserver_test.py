#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recoveries of a stand-in for a QFS chunkserver (qfs_chunkserver/), which has the lines that the
README of integrations/qfs inserts there and loads libecpipe_qfs.so: against a real endpoint, a real
coordinator, and real helpers on chunk files as QFS writes them."""

from __future__ import annotations

import argparse
import queue
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import case
import qfs_test
from case import HANG, sha256
from labkit.qfs.metaserver import FakeMetaServer
from labkit.cluster import node_names
from labkit.daemon import Daemon
from labkit.process import wait_until
from labkit.qfs.chunk_files import PARITIES, QfsFile, rows_of, times

NODES = 10
ROW = qfs_test.ROW
MIB = 1 << 20
LONG = 400 * ROW + 12345  # chunks of 25 MiB: more than the library and the sockets before it hold
TIMEOUT_MS = 2000
STILL = 0.5  # seconds; a helper that could send would have in this time
EXIT_SKIPPED = 77
# Nothing that a cancellation does waits for the network: it took 56 ms where two cores had much
# other work, most times less than 3 ms.
PROMPT = 2.0

PROGRAMS = argparse.Namespace()


def inverse(a: int) -> int:
    power = a
    for _ in range(253):
        power = times(power, a)
    return power


def solved(rows: list[list[int]], target: list[int]) -> list[int]:
    """The coefficients with which the rows sum up to the target, over GF(2^8)."""
    count = len(rows)
    # One equation a column: the sum of c[i] * rows[i][column] is target[column].
    system = [[rows[i][column] for i in range(count)] + [target[column]] for column in range(count)]
    for at in range(count):
        pivot = next(line for line in range(at, count) if system[line][at])
        system[at], system[pivot] = system[pivot], system[at]
        factor = inverse(system[at][at])
        system[at] = [times(factor, value) for value in system[at]]
        for line in range(count):
            if line != at and (factor := system[line][at]):
                system[line] = [a ^ times(factor, b) for a, b in zip(system[line], system[at])]
    return [line[-1] for line in system]


class Chunkserver:
    """The stand-in's process, and what it has said."""

    def __init__(self, log: Path) -> None:
        self.log = log.open("wb")
        self.process = subprocess.Popen([PROGRAMS.chunkserver], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.said: list[str] = []
        self.lines: queue.Queue[str] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put("")

    def tell(self, *words: object) -> None:
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def hear(self, *words: str) -> list[str]:
        """The words of the next line that begins with these."""
        deadline = time.monotonic() + HANG
        while time.monotonic() < deadline:
            line = self.lines.get(timeout=HANG)
            if not line:
                break
            self.said.append(line)
            if line.split()[:len(words)] == list(words):
                return line.split()
        raise AssertionError(f"no '{' '.join(words)}' but {self.said}; "
                             f"{Path(self.log.name).read_text()[-3000:]}")

    def end(self) -> int:
        """Lets it go as it stands."""
        try:
            self.tell("exit")
            return self.process.wait(HANG)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self._listener.join()
            self.process.stdout.close()
            self.log.close()


class Recoveries(unittest.TestCase):
    """Chunk i of each file is on node i + 1 of ten; the chunkserver is beside the last one."""

    make, bring_back, lose, directory = (
        qfs_test.QfsChunks.make, qfs_test.QfsChunks.bring_back, qfs_test.QfsChunks.lose,
        qfs_test.QfsChunks.directory)
    long: QfsFile | None = None  # whose chunk 2 is lost

    @classmethod
    def setUpClass(cls) -> None:
        cls.work = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.nodes = node_names(NODES)
        cls.metaserver = cls.enterClassContext(FakeMetaServer())
        cls.cluster = cls.enterClassContext(qfs_test.QfsCluster(
            case.BIN_DIR, cls.work, cls.nodes, endpoints=True,
            coordinator_settings={"qfs": {"metaservers": [cls.metaserver.address],
                                          "fresh_seconds": 0.1},
                                  "timeouts": {"dead_after_seconds": 3.0}},
            helper_settings={"helper": {"store": "qfs", "report_seconds": 0.5},
                             "timeouts": {"stall_seconds": 3.0, "drain_seconds": 5.0}}))
        cls.local = cls.cluster.helpers[cls.nodes[-1]]
        cls.config = cls.work / "qfs-shim.conf"
        cls.config.write_text(f"endpoint unix:{cls.cluster.socket_of(cls.nodes[-1])}\n"
                              f"timeout-ms {TIMEOUT_MS}\nstall-ms 20000\nscheme rp\n")

    def setUp(self) -> None:
        if self.long is None:
            type(self).long = self.make(50, LONG)
            self.lose(self.long, 2)
        self.chunkserver = Chunkserver(self.work / "chunkserver.log")
        self.ended = False
        self.addCleanup(self.end)
        self.begun = 0
        self.configure()
        self.cluster.wait_settled()

    def end(self) -> None:
        if not self.ended:
            self.ended = True
            self.assertEqual(self.chunkserver.end(), 0,
                             (self.work / "chunkserver.log").read_text()[-6000:])

    def configure(self) -> None:
        """Also forgets that an endpoint did not answer."""
        self.chunkserver.tell("parameters", PROGRAMS.library, self.config)
        self.chunkserver.hear("log", "external", "recovery", "by")

    def begin(self, file: QfsFile, index: int, *, hold_at: int = -1, cancel_at: int = -1,
              siblings: bool = True) -> str:
        """The name of a recovery. Without `siblings` it has bytes of ECPipe, or none."""
        self.begun += 1
        name, chunk = f"r{self.begun}", file.chunk(index)
        terms: list[object] = self.siblings(file, index) if siblings else []
        self.chunkserver.tell(
            "recover", name, self.work / name, len(chunk.content), hold_at, cancel_at, file.file_id,
            chunk.chunk_id, file.version, chunk.address, len(file.content), file.striper, file.data,
            PARITIES, file.cell, *terms)
        return name

    def siblings(self, file: QfsFile, lost: int) -> list[object]:
        """How the chunk follows from the files of k others: nothing of ECPipe is in it."""
        unit = [[int(i == j) for j in range(file.data)] for i in range(file.data)]
        generator = unit + [list(row) for row in rows_of(file.striper, file.data)]
        there = [chunk.index for chunk in file.chunks if chunk.index != lost
                 and file.path(self.directory(self.nodes[chunk.index]), chunk.index).exists()]
        # Chunks of which the file has none are zeros, which no factor changes.
        used = [i for i in range(file.data) if i not in {chunk.index for chunk in file.chunks}]
        used += there[:file.data - len(used)]
        factors = solved([generator[i] for i in used], generator[lost])
        return [word for factor, i in zip(factors, used) if i in there
                for word in (factor, file.path(self.directory(self.nodes[i]), i))]

    def finish(self, name: str, file: QfsFile, index: int, native_bytes: int | None = 0) -> int:
        """The bytes that QFS recovered by itself."""
        done = self.chunkserver.hear("done", name)
        content = file.chunk(index).content
        self.assertEqual(sha256((self.work / name).read_bytes()), sha256(content))
        self.assertEqual(int(done[2]), len(content))
        if native_bytes is not None:
            self.assertEqual(int(done[3]), native_bytes, self.chunkserver.said)
        return int(done[3])

    def cancelled(self, name: str) -> int:
        """Where. It took no time, and no helper works any more."""
        _, _, offset, microseconds = self.chunkserver.hear("cancelled", name)
        print(f"cancelled at {offset}: {int(microseconds) / 1000:.2f} ms")
        self.assertLess(int(microseconds), PROMPT * 1e6)
        return int(offset)

    def at_work(self) -> list[str]:
        return [node for node, status in self.cluster.node_status().items()
                if status.get("active_sessions")]

    def held_half_way(self) -> tuple[str, Daemon]:
        """A recovery that has taken its first MiB and waits, and a helper that has more to send and
        cannot, since nobody takes it."""
        before = self.node_bytes_sent()
        name = self.begin(self.long, 2, hold_at=MIB)
        self.chunkserver.hear("held", name)
        working: list[str] = []
        since = 0.0

        def stand_still() -> bool:
            nonlocal working, since
            now = [node for node in self.at_work() if node != self.local.name]
            if now != working:
                working, since = now, time.monotonic()
            return bool(working) and time.monotonic() - since > STILL
        wait_until(stand_still, HANG, "helpers that cannot go on")
        # One that is far from the requestor may have sent all: those behind it hold it.
        left, node = max((before[node] + len(self.long.chunk(2).content) - sent, node)
                         for node, sent in self.node_bytes_sent().items() if node in working)
        self.assertGreater(left, 2 * MIB)
        return name, self.cluster.helpers[node]

    def node_bytes_sent(self) -> dict[str, int]:
        return {node: status["data_bytes_sent"]
                for node, status in self.cluster.node_status().items()}

    def test_reads_of_a_mib_until_the_end(self) -> None:
        exact, tiny, short = (self.make(51, 32 * ROW), self.make(52, 1),
                              self.make(53, 40 * ROW + 2 * qfs_test.CELL + 77, striper=3))
        for file, index in ((exact, 0), (exact, 8), (tiny, 0), (tiny, 7), (short, 2), (short, 6),
                            (self.long, 2)):
            with self.subTest(size=len(file.content), index=index):
                self.lose(file, index)
                self.finish(self.begin(file, index, siblings=False), file, index)
        self.assertEqual(len(exact.chunk(0).content), 2 * MIB)

    def test_cancel_before_the_endpoint_answers(self) -> None:
        for silent in (self.local, self.cluster.coordinator):
            with self.subTest(silent.name):
                silent.pause()
                try:
                    name = self.begin(self.long, 2, cancel_at=0)
                    self.cancelled(name)
                    waiting = self.begin(self.long, 2)
                    with self.assertRaises(queue.Empty):
                        self.chunkserver.lines.get(timeout=STILL)
                    self.chunkserver.tell("cancel", waiting)
                    self.assertEqual(self.cancelled(waiting), 0)
                finally:
                    silent.resume()
                self.cluster.wait_live(self.nodes)
                self.cluster.wait_idle()
        self.finish(self.begin(self.long, 2), self.long, 2)

    def test_cancel_while_bytes_come(self) -> None:
        for offset in (0, MIB, 6 * MIB):
            name = self.begin(self.long, 2, cancel_at=offset)
            self.assertEqual(self.cancelled(name), offset)
            self.cluster.wait_idle()
        name, helper = self.held_half_way()
        helper.pause()
        try:
            self.chunkserver.tell("go", name)
            with self.assertRaises(queue.Empty):
                for _ in range(100):
                    self.chunkserver.lines.get(timeout=STILL)
            self.chunkserver.tell("cancel", name)
            self.assertGreaterEqual(self.cancelled(name), MIB)
        finally:
            helper.resume()
        self.cluster.wait_live(self.nodes)
        self.cluster.wait_idle()
        self.finish(self.begin(self.long, 2), self.long, 2)

    def test_cancel_at_the_end(self) -> None:
        last = len(self.long.chunk(2).content) // MIB * MIB
        name = self.begin(self.long, 2, hold_at=last)
        self.chunkserver.hear("held", name)
        self.cluster.wait_idle()  # all has come, and END
        self.chunkserver.tell("cancel", name)
        self.assertEqual(self.cancelled(name), last)
        for _ in range(3):
            name = self.begin(self.long, 2, cancel_at=last)
            self.assertEqual(self.cancelled(name), last)
        self.finish(self.begin(self.long, 2), self.long, 2)

    def test_without_a_coordinator_qfs_recovers(self) -> None:
        self.cluster.coordinator.kill()
        try:
            begun = time.monotonic()
            size = len(self.long.chunk(2).content)
            self.finish(self.begin(self.long, 2), self.long, 2, native_bytes=size)
            self.assertTrue(any("QFS goes on at: 0 " in line for line in self.chunkserver.said))
            # Its own recovery takes some of it.
            self.assertLess(time.monotonic() - begun, TIMEOUT_MS / 1000 + HANG / 2)
            # Nobody asks a second time for `retry-ms`.
            self.finish(self.begin(self.long, 2), self.long, 2, native_bytes=size)
            self.assertTrue(any("is not asked" in line for line in self.chunkserver.said))
        finally:
            self.cluster.coordinator.restart()
            self.cluster.wait_live(self.nodes)
        self.configure()
        self.finish(self.begin(self.long, 2), self.long, 2)

    def test_a_coordinator_that_ends_half_way(self) -> None:
        name, _ = self.held_half_way()
        self.cluster.coordinator.kill()
        try:
            self.chunkserver.tell("go", name)
            self.finish(name, self.long, 2, native_bytes=None)
        finally:
            self.cluster.coordinator.restart()
            self.cluster.wait_live(self.nodes)

    def test_a_helper_that_is_killed_half_way(self) -> None:
        log = self.cluster.coordinator.log_file
        before = len(log.read_text())
        name, helper = self.held_half_way()
        helper.kill()
        try:
            self.chunkserver.tell("go", name)
            self.finish(name, self.long, 2)
        finally:
            helper.restart()
            self.cluster.wait_live(self.nodes)
        self.assertRegex(log.read_text()[before:], r" repair\.begin .*\battempt=[1-9]")

    def test_an_endpoint_that_is_killed_half_way(self) -> None:
        name, _ = self.held_half_way()
        self.local.kill()
        try:
            self.chunkserver.tell("go", name)
            native = self.finish(name, self.long, 2, native_bytes=None)
        finally:
            self.local.restart()
            self.cluster.wait_live(self.nodes)
        went_on_at = len(self.long.chunk(2).content) - native
        self.assertTrue(any(f"QFS goes on at: {went_on_at} " in line
                            for line in self.chunkserver.said), self.chunkserver.said)
        self.assertGreaterEqual(went_on_at, MIB)
        self.assertGreater(native, 0)
        self.assertEqual(went_on_at % MIB, 0)

    def test_several_at_once(self) -> None:
        files = [self.make(60 + i, 60 * ROW + 1000 * i) for i in range(3)]
        for file in files:
            for index in (1, 7):
                self.lose(file, index)
        started = {self.begin(file, index): (file, index) for file in files for index in (1, 7)}
        started |= {self.begin(files[0], 1): (files[0], 1)}  # one of them twice
        gone = [self.begin(self.long, 2, cancel_at=offset) for offset in (0, 2 * MIB)]
        ends = {}
        while len(ends) < len(started):
            done = self.chunkserver.hear("done")
            ends[done[1]] = int(done[3])
        self.assertEqual(ends, dict.fromkeys(started, 0))
        for name, (file, index) in started.items():
            self.assertEqual(sha256((self.work / name).read_bytes()),
                             sha256(file.chunk(index).content))
        for name in gone:
            if not any(line.startswith(f"cancelled {name} ") for line in self.chunkserver.said):
                self.cancelled(name)
        self.cluster.wait_idle()

    def test_a_process_that_exits_with_open_recoveries(self) -> None:
        self.held_half_way()
        self.begin(self.long, 2)
        self.local.pause()
        try:
            self.begin(self.long, 2)
            begun = time.monotonic()
            self.end()
            print(f"exit with three open recoveries: {time.monotonic() - begun:.3f} s")
        finally:
            self.local.resume()
        self.cluster.wait_live(self.nodes)
        self.cluster.wait_idle()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--chunkserver", type=Path, required=True, help="the stand-in")
    parser.add_argument("--library", type=Path, required=True, help="libecpipe_qfs.so")
    _, rest = parser.parse_known_args(namespace=PROGRAMS)
    daemons = Path(rest[rest.index("--bin-dir") + 1])
    if not (daemons / "ecpipe-helper").exists():
        print(f"SKIP: {daemons} has no daemons: build the preset release first")
        return EXIT_SKIPPED
    sys.argv[1:] = rest
    case.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
