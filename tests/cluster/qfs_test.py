#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repairs of QFS's chunks, and reads of its files: real daemons over chunk files as chunkservers
write them, and a metaserver that only answers where chunks are."""

from __future__ import annotations

import hashlib
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

import case
from case import HANG
from endpoint_client import Answer, Connection, EndpointError, HEADER, REPAIR
from labkit.cluster import Cluster, Helper, node_names
from labkit.process import wait_until
from labkit.qfs.chunk_files import (
    CHUNK_BYTES, HEADER_BYTES, QfsFile, chunk_file, combined, rows_of)
from labkit.qfs.metaserver import FakeMetaServer

NODES = 10
CELL = 65536
ROW = 6 * CELL
FIRST_PORT = 22001  # of the chunkservers, which do not run
FRESH_SECONDS = 0.1  # for which an answer of the metaserver is used again


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class QfsCluster(Cluster):
    """Each helper is beside a chunkserver of its own."""

    def _make_helper(self, node: str) -> Helper:
        helper = super()._make_helper(node)
        helper.settings["helper"]["chunkserver"] = f"127.0.0.1:{port_of(node)}"
        return helper


def port_of(node: str) -> int:
    return FIRST_PORT + int(node.removeprefix("node-")) - 1


class QfsChunks(unittest.TestCase):
    """Chunk i of each file is on node i + 1 of ten, and the last node has none."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.work = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.nodes = node_names(NODES)
        cls.metaserver = cls.enterClassContext(FakeMetaServer())
        cls.cluster = cls.enterClassContext(QfsCluster(
            case.BIN_DIR, cls.work, cls.nodes,
            coordinator_settings={"qfs": {"metaservers": [cls.metaserver.address],
                                          "fresh_seconds": FRESH_SECONDS},
                                  "timeouts": {"dead_after_seconds": 3.0}},
            endpoints=True,
            helper_settings={"helper": {"store": "qfs", "report_seconds": 0.5},
                             "timeouts": {"stall_seconds": 3.0, "drain_seconds": 5.0}}))

    def directory(self, node: str) -> Path:
        return self.work / "data" / node

    def make(self, file_id: int, size: int, *, written: tuple[int, ...] | None = None,
             striper: int = 2) -> QfsFile:
        file = QfsFile(file_id, size, cell=CELL, written=written, striper=striper)
        for chunk in file.chunks:
            self.bring_back(file, chunk.index, chunk.group)
        self.metaserver.files[f"/file-{file_id}"] = file
        return file

    def bring_back(self, file: QfsFile, index: int, group: int = 0) -> None:
        node = self.nodes[index]
        file.put(self.directory(node), index, group)
        self.metaserver.places[file.chunk(index, group).chunk_id] = [f"127.0.0.1 {port_of(node)}"]

    def lose(self, file: QfsFile, index: int, group: int = 0) -> None:
        path = file.path(self.directory(self.nodes[index]), index, group)
        path.unlink(missing_ok=True)
        self.metaserver.places[file.chunk(index, group).chunk_id] = []

    def ask(self, file: QfsFile, index: int, group: int = 0, **options: Any) -> Answer:
        endpoint = self.cluster.helpers[self.nodes[9]].ready["endpoint"]
        with Connection(endpoint) as connection:
            connection.send(REPAIR, file.request(index, group, **options).encode())
            return connection.answer()

    def command(self, *arguments: str | Path) -> bytes:
        time.sleep(2 * FRESH_SECONDS)  # what was known of a chunk before it moved is forgotten
        out = self.work / "out"
        out.unlink(missing_ok=True)
        self.cluster.cli(*arguments, "-o", out)
        return out.read_bytes()

    def test_each_chunk_of_files_of_all_shapes(self) -> None:
        shapes = [1, 511, CELL, CELL + 1, 2 * CELL + 5, ROW, ROW + 1, 3 * ROW + 2 * CELL + 777]
        for file_id, size in enumerate(shapes, 10):
            file = self.make(file_id, size, striper=2 + file_id % 2)
            for chunk in file.chunks:
                with self.subTest(size=size, index=chunk.index):
                    self.lose(file, chunk.index)
                    answer = self.ask(file, chunk.index)
                    self.assertEqual(sha256(answer.content), sha256(chunk.content))
                    self.assertEqual(answer.header["bytes"], str(len(chunk.content)))
                    self.assertEqual(answer.header["checksum"], "adler32 65536")
                    self.assertEqual(answer.end["attempts"], "1")
                    self.bring_back(file, chunk.index)

    def test_the_command_knows_chunks_by_name(self) -> None:
        file = self.make(30, 2 * ROW + CELL + 99)
        for index in (0, 2, 7):
            self.lose(file, index)
            self.assertEqual(self.command("repair", file.name(index)), file.chunk(index).content)
        content = file.chunk(0).content
        part = self.command("read", file.name(0), "--offset", "1000", "--length", "70000")
        self.assertEqual(part, content[1000:71000])
        plan = self.cluster.cli_json("plan", file.name(0))
        self.assertEqual((plan["stripe_id"], plan["code"]), ("qfs.30.0", "qfs-rs(6,3)"))
        refused = self.cluster.cli("repair", file.name(0), "--to", self.nodes[9], check=False)
        self.assertIn("QFS stores its blocks itself", refused.stderr)
        unknown = self.cluster.cli("plan", "qfs.30.99999.1", check=False)
        self.assertIn("status -2", unknown.stderr)

    def test_ranges(self) -> None:
        file = self.make(31, 3 * ROW + 2 * CELL + 99)
        self.lose(file, 1)
        content = file.chunk(1).content
        for offset, length in ((0, 1), (CELL - 1, 2), (12345, 32768), (len(content) - 1, 1)):
            with self.subTest(offset=offset):
                answer = self.ask(file, 1, offset=offset, length=length)
                self.assertEqual(answer.content, content[offset:offset + length])

    def test_holes_are_zeros(self) -> None:
        # Of four rows QFS wrote two cells and a half: three data chunks do not exist.
        file = self.make(32, 4 * ROW, written=(2 * CELL + CELL // 2,))
        self.assertEqual([chunk.index for chunk in file.chunks], [0, 1, 2, 6, 7, 8])
        for index in (0, 2, 6):
            self.lose(file, index)
            answer = self.ask(file, index)
            self.assertEqual(answer.content, file.chunk(index).whole)
            self.assertEqual(answer.header["bytes"], str(4 * CELL))
            self.bring_back(file, index)
        self.assertEqual(self.command("read", "--store", "qfs", "/file-32"), file.content)

    def test_short_chunks_end_in_zeros(self) -> None:
        # All chunks exist, are shorter than the file's length says, and end in three ways.
        file = self.make(41, 9 * ROW + 5, written=(2 * ROW + 2 * CELL + 777,))
        self.assertEqual([len(chunk.content) for chunk in file.chunks],
                         [3 * CELL] * 2 + [2 * CELL + 777] + [2 * CELL] * 3 + [3 * CELL] * 3)
        for index in range(9):
            with self.subTest(index=index):
                self.lose(file, index)
                answer = self.ask(file, index)
                self.assertEqual(sha256(answer.content), sha256(file.chunk(index).whole))
                self.assertEqual(answer.end["attempts"], "1")
                self.bring_back(file, index)
        for index in (0, 2, 4):
            self.lose(file, index)
        self.assertEqual(sha256(self.command("read", "--store", "qfs", "/file-41")),
                         sha256(file.content))

    def test_a_short_chunk_among_whole_ones(self) -> None:
        # The last rows are there, and happen to be zeros in one chunk, which QFS has not stored.
        file = self.make(42, 6 * ROW)
        short = file.chunk(2)
        kept = short.content[:3 * CELL + 99]
        short.content = kept.ljust(6 * CELL, b"\0")
        data = [file.chunk(index).content for index in range(6)]
        for parity, factors in enumerate(rows_of(2, 6)):
            file.chunk(6 + parity).content = combined(factors, data, 6 * CELL)
            file.put(self.directory(self.nodes[6 + parity]), 6 + parity)
        file.path(self.directory(self.nodes[2]), 2).write_bytes(
            chunk_file(42, short.chunk_id, file.version, kept))
        for index in (1, 5, 7):
            self.lose(file, index)
            self.assertEqual(sha256(self.ask(file, index).content),
                             sha256(file.chunk(index).content))
        direct = self.command("read", file.name(2), "--scheme", "direct")
        self.assertEqual(direct, short.content)

    def test_a_hole_before_a_chunk_is_refused(self) -> None:
        file = self.make(43, 4 * ROW)
        self.metaserver.unlisted = {file.chunk(3).chunk_id}
        self.lose(file, 0)
        try:
            with self.assertRaises(EndpointError) as failed:
                self.ask(file, 0)
            read = self.cluster.cli("read", "--store", "qfs", "/file-43", "-o", self.work / "x",
                                    check=False)
        finally:
            self.metaserver.unlisted = set()
        self.assertEqual(failed.exception.code, "FAILED_PRECONDITION")
        self.assertIn("but chunks behind it", read.stderr)
        self.assertFalse((self.work / "x").exists())
        self.assertEqual(self.ask(file, 0).content, file.chunk(0).content)

    def test_a_file_of_several_groups(self) -> None:
        # The first group ends early and is 384 MiB all the same.
        file = self.make(44, 6 * CHUNK_BYTES + 2 * ROW + CELL + 99,
                         written=(2 * ROW + CELL, 2 * ROW + CELL + 99))
        begin = 6 * CHUNK_BYTES
        for index in (0, 1, 7):
            with self.subTest(index=index):
                self.lose(file, index, group=1)
                self.assertEqual(self.ask(file, index, 1).content, file.chunk(index, 1).content)
        plan = self.cluster.cli_json("plan", file.name(0, 1))
        self.assertEqual(plan["stripe_id"], "qfs.44.1")
        self.lose(file, 3)
        for offset, length in ((0, 3 * ROW), (begin - 5, 10), (begin - 100_000, ROW + 200_000),
                               (begin + ROW + 7, ROW), (file.size - 3, 3)):
            with self.subTest(offset=offset):
                self.assertEqual(self.command("read", "--store", "qfs", "/file-44", "--offset",
                                              str(offset), "--length", str(length)),
                                 file.read(offset, length))
        answer = self.ask(file, 3)
        self.assertEqual(answer.header["bytes"], str(CHUNK_BYTES))
        self.assertEqual(sha256(answer.content), sha256(file.chunk(3).whole))

    def test_a_group_that_is_not_written_to_its_end_is_not_read_as_zeros(self) -> None:
        file = self.make(40, 4 * ROW)
        self.metaserver.unlisted = {file.chunk(index).chunk_id for index in (4, 5, 6, 7, 8)}
        try:
            refused = self.cluster.cli("read", "--store", "qfs", "/file-40", "-o", self.work / "x",
                                       check=False)
        finally:
            self.metaserver.unlisted = set()
        self.assertIn("not written to its end", refused.stderr)
        self.assertFalse((self.work / "x").exists())

    def test_a_list_in_pieces(self) -> None:
        file = self.make(33, 2 * ROW)
        self.lose(file, 4)
        self.metaserver.most_chunks = 4
        try:
            self.assertEqual(self.ask(file, 4).content, file.chunk(4).content)
        finally:
            self.metaserver.most_chunks = 1000

    def test_what_the_request_says_must_be_so(self) -> None:
        file = self.make(34, 2 * ROW + 5)
        self.lose(file, 1)
        for changed in ({"cell": 4096}, {"data": 5}, {"file_size": 2 * ROW + 6},
                        {"striper": 3}, {"version": 2}):
            with self.subTest(**changed), self.assertRaises(EndpointError) as failed:
                self.ask(file, 1, length=100, **changed)
            self.assertEqual(failed.exception.code, "FAILED_PRECONDITION")

    def test_a_corrupt_survivor_is_left_out(self) -> None:
        file = self.make(35, 6 * ROW)
        path = file.path(self.directory(self.nodes[5]), 5)
        content = bytearray(path.read_bytes())
        content[HEADER_BYTES + 2 * CELL] ^= 1
        path.write_bytes(content)
        self.lose(file, 0)
        self.cluster.wait_settled()
        answer = self.ask(file, 0, scheme="rp")
        self.assertEqual(sha256(answer.content), sha256(file.chunk(0).content))
        self.assertEqual(answer.end["attempts"], "2")
        status = self.cluster.status()
        corrupt = {block["block_id"]: block for block in status["corrupt_blocks"]}
        self.assertEqual(corrupt[file.name(5)]["node"], self.nodes[5])
        self.assertEqual(corrupt[file.name(5)]["system"], "qfs")
        self.assertIn("QFS rebuilds the block", self.cluster.cli("status").stdout)
        self.assertTrue(status["qfs"]["manager_configured"])
        self.assertIsNone(status["qfs"]["degraded_groups"], "no zero that nobody has counted")
        self.assertIsNone(status["qfs"]["lost_groups"])
        self.assertIn("which stripes lack a block is not asked", self.cluster.cli("status").stdout)

    def test_a_helper_killed_half_way(self) -> None:
        file = self.make(36, 60 * ROW)
        self.lose(file, 2)
        self.cluster.wait_settled()
        endpoint = self.cluster.helpers[self.nodes[9]].ready["endpoint"]
        helper = self.cluster.helpers[self.nodes[4]]
        with Connection(endpoint) as connection:
            connection.send(REPAIR, file.request(2, scheme="rp").encode())
            self.assertEqual(connection.receive()[0], HEADER)
            helper.kill()
            try:
                answer = connection.answer()
            finally:
                helper.restart()
                self.cluster.wait_live(self.nodes)
        self.assertEqual(sha256(answer.content), sha256(file.chunk(2).content))

    def test_files_are_read_while_chunkservers_are_down(self) -> None:
        file = self.make(37, 20 * ROW + 3 * CELL + 123)
        self.assertEqual(self.command("read", "--store", "qfs", "/file-37"), file.content)
        for index in (0, 2, 4):
            self.lose(file, index)
        self.assertEqual(sha256(self.command("read", "--store", "qfs", "/file-37")),
                         sha256(file.content))
        for offset, length in ((0, 1), (CELL - 5, 10), (3 * ROW + 7, 2 * ROW),
                               (20 * ROW, 3 * CELL)):
            with self.subTest(offset=offset):
                self.assertEqual(self.command("read", "--store", "qfs", "/file-37", "--offset",
                                              str(offset), "--length", str(length)),
                                 file.content[offset:offset + length])
        report = self.cluster.cli_json("read", "--store", "qfs", "/file-37", "-o",
                                       self.work / "out")
        self.assertEqual((report["bytes"], report["rebuilt_blocks"]), (len(file.content), 3))
        none = self.cluster.cli("read", "--store", "qfs", "/none", "-o", self.work / "x",
                                check=False)
        self.assertNotEqual(none.returncode, 0)
        self.assertFalse((self.work / "x").exists())
        beyond = self.cluster.cli("read", "--store", "qfs", "/file-37", "--offset",
                                  str(len(file.content) + 1), "-o", self.work / "x", check=False)
        self.assertIn("not within", beyond.stderr)

    def test_a_metaserver_of_garbage(self) -> None:
        file = self.make(38, 2 * ROW)
        self.lose(file, 1)
        self.metaserver.garbage = b"HTTP/1.1 400 Bad Request\r\n\r\n"
        try:
            with self.assertRaises(EndpointError) as failed:
                self.ask(file, 1)
            self.assertEqual(failed.exception.code, "UNAVAILABLE")
            self.assertIn("does not begin with OK", self.cluster.status()["qfs"]["manager_error"])
        finally:
            self.metaserver.garbage = None
        self.assertEqual(self.ask(file, 1).content, file.chunk(1).content)

    def test_a_dead_chunkserver(self) -> None:
        file = self.make(39, 2 * ROW)
        node, spare = self.nodes[3], self.nodes[9]
        mine = [path for path in self.directory(node).iterdir() if path.is_file()]
        wait_until(lambda: self.cluster.node_status()[node]["block_count"] == len(mine), HANG,
                   "its chunks listed")
        wait_until(lambda: self.cluster.status()["qfs"]["blocks"] >= len(file.chunks), HANG,
                   "chunks reported")
        helper = self.cluster.helpers[node]
        helper.kill()
        try:
            wait_until(lambda: self.cluster.node_status()[node]["state"] == "dead", HANG, "dead")
            loss = self.cluster.cli_json("recover-node", node, "--detach")
            self.assertEqual(loss["system"], "qfs")
            self.assertEqual(loss["lost"]["blocks"], len(mine))
            before = loss["outstanding"]["blocks"]
            self.cluster.coordinator.restart()
            self.cluster.wait_live([other for other in self.nodes if other != node])
            # What the others have they tell again; what the dead one had is remembered.
            wait_until(lambda: self.cluster.cli_json("recover-node", node, "--detach")
                       ["outstanding"]["blocks"] == before, HANG, "the losses known again")
            # The chunkserver's successor has stored a rebuilt chunk.
            rebuilt = self.command("repair", file.name(3))
            self.assertEqual(rebuilt, file.chunk(3).content)
            file.put(self.directory(spare), 3)
            wait_until(lambda: self.cluster.cli_json("recover-node", node, "--detach")
                       ["outstanding"]["blocks"] == before - 1, HANG, "a chunk rebuilt")
        finally:
            helper.restart()
            self.cluster.wait_live(self.nodes)
            file.path(self.directory(spare), 3).unlink(missing_ok=True)


if __name__ == "__main__":
    case.main()
