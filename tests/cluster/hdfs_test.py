#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repairs of HDFS's blocks through the requestor endpoint: real daemons over volumes that look like
those of DataNodes."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import time
import unittest
from pathlib import Path

import case
from case import HANG
from endpoint_client import Connection, EndpointError, HEADER, read
from hdfs_group import Group, make_volume
from labkit.cluster import Cluster, EcpipeDaemon, node_names
from labkit.process import wait_until

NODES = 10
CELL = 65536
ROW = 6 * CELL


def uuid_of(node: str) -> str:
    return f"c8b9e6e2-0000-4000-8000-{node}"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class HdfsBlocks(unittest.TestCase):
    """Block i of each group is on node i + 1 of ten, and the last node has none."""

    groups: list[Group] = []

    @classmethod
    def setUpClass(cls) -> None:
        cls.work = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.nodes = node_names(NODES)
        for node in cls.nodes:
            make_volume(cls.volume(node), uuid_of(node))
        cls.cluster = cls.enterClassContext(Cluster(
            case.BIN_DIR, cls.work, cls.nodes,
            helper_settings={"helper": {"store": "hdfs"},
                             "endpoint": {"address": "tcp:127.0.0.1:0"},
                             "timeouts": {"stall_seconds": 3.0, "drain_seconds": 5.0}}))
        cls.requestor = EcpipeDaemon(
            name="requestor-only",
            command=[case.BIN_DIR / "ecpipe-helper", "--requestor-only",
                     "--config", cls.work / "requestor.toml",
                     "--ready-file", cls.work / "requestor.json"],
            log_file=cls.work / "requestor.log", config_file=cls.work / "requestor.toml",
            ready_file=cls.work / "requestor.json",
            settings={"requestor": {"coordinator": cls.cluster.coordinator.address},
                      "endpoint": {"address": f"unix:{cls.work}/endpoint.sock"}})
        cls.requestor.launch()
        cls.addClassCleanup(cls.requestor.stop)
        cls.requestor.await_ready()
        cls.endpoint = cls.requestor.ready["endpoint"]

    @classmethod
    def volume(cls, node: str) -> Path:
        return cls.work / "data" / node

    def put(self, group: Group) -> Group:
        """On all nodes that a block is for."""
        for index in range(len(group.blocks)):
            group.put(self.volume(self.nodes[index]), index)
        return group

    def sources(self, group: Group, *without: int) -> dict[int, list[str]]:
        return {index: [uuid_of(self.nodes[index])] for index, block in enumerate(group.blocks)
                if block and index not in without}

    def lose(self, group: Group, index: int) -> None:
        volume = self.volume(self.nodes[index])
        group.file(volume, index).unlink()
        group.meta_file(volume, index).unlink()

    def test_each_block_of_groups_of_all_shapes(self) -> None:
        shapes = [1, 511, CELL - 1, CELL, CELL + 1, 2 * CELL + CELL // 2, ROW - 1, ROW, ROW + 1,
                  ROW + 3 * CELL + 5, 3 * ROW + 2 * CELL + 777]
        for number, group_bytes in enumerate(shapes, 10):
            group = self.put(Group(group_bytes, cell=CELL, number=number, crc32=number % 3 > 0))
            for index, block in enumerate(group.blocks):
                if not block:
                    continue
                with self.subTest(group_bytes=group_bytes, index=index):
                    self.lose(group, index)
                    answer = read(self.endpoint, group, index, self.sources(group, index))
                    self.assertEqual(sha256(answer.content), sha256(block))
                    self.assertEqual(answer.header["bytes"], str(len(block)))
                    self.assertEqual(answer.header["checksum"],
                                     "crc32 512" if group.crc32 else "crc32c 512")
                    self.assertEqual(answer.end, {"bytes": str(len(block)), "attempts": "1"})
                    group.put(self.volume(self.nodes[index]), index)
        self.assert_nothing_left()

    def test_ranges(self) -> None:
        group = self.put(Group(2 * ROW + 2 * CELL + 99, cell=CELL, number=40))
        for index in (0, 2, 3, 8):
            block = group.blocks[index]
            for offset, length in ((0, 1), (1, 1000), (2 * CELL - 7, 7), (len(block) - 1, 1),
                                   (CELL - 1, 2), (12345, len(block) - 12345)):
                with self.subTest(index=index, offset=offset, length=length):
                    answer = read(self.endpoint, group, index, self.sources(group, index),
                                  offset=offset, length=length)
                    self.assertEqual(answer.content, block[offset:offset + length])

    def test_other_codes(self) -> None:
        for number, group in enumerate((Group(5 * CELL, data=3, parity=2, cell=CELL, number=51),
                                        Group(3 * CELL + 9, data=2, parity=1, cell=CELL,
                                              number=52, codec="xor"))):
            self.put(group)
            for index, block in enumerate(group.blocks):
                with self.subTest(number=number, index=index):
                    answer = read(self.endpoint, group, index, self.sources(group, index))
                    self.assertEqual(sha256(answer.content), sha256(block))

    def test_a_helpers_own_endpoint(self) -> None:
        group = self.put(Group(ROW + 5, cell=CELL, number=60))
        for node in self.nodes[:3]:
            answer = read(self.cluster.helpers[node].ready["endpoint"], group, 4,
                          self.sources(group, 4), scheme="rp", client="a test",
                          cookie=self.cluster.cookie_of(node).read_text().strip())
            self.assertEqual(answer.content, group.blocks[4])

    def test_an_endpoint_on_tcp_wants_its_cookie(self) -> None:
        group = self.put(Group(ROW + 5, cell=CELL, number=61))
        node = self.nodes[0]
        for shown in ({}, {"cookie": "0" * 64}):
            with self.assertRaises(EndpointError) as refused:
                read(self.cluster.helpers[node].ready["endpoint"], group, 4,
                     self.sources(group, 4), **shown)
            self.assertEqual(refused.exception.code, "UNAUTHENTICATED")
        self.assertEqual(self.cluster.cookie_of(node).stat().st_mode & 0o777, 0o600)

    def test_a_replica_elsewhere_is_used(self) -> None:
        group = self.put(Group(ROW + 5, cell=CELL, number=65))
        for index in range(1, 7):
            self.lose(group, index)
        spare = self.nodes[9]
        group.put(self.volume(spare), 3)
        sources = self.sources(group, 0, 1, 2)
        # Two of six lost blocks have a replica that is not there, or of which no helper knows.
        sources[3] = ["unknown-datanode", uuid_of(spare)]
        for index in (4, 5, 6):
            group.put(self.volume(self.nodes[index]), index)
        answer = read(self.endpoint, group, 1, sources)
        self.assertEqual(answer.content, group.blocks[1])

    def test_a_corrupt_survivor_is_left_out(self) -> None:
        group = self.put(Group(3 * ROW, cell=CELL, number=70))
        file = group.file(self.volume(self.nodes[5]), 5)
        content = bytearray(file.read_bytes())
        content[2 * CELL] ^= 1
        file.write_bytes(content)
        self.cluster.wait_settled()
        # Of survivors that do equally much the first six are read, so this one is.
        answer = read(self.endpoint, group, 0, self.sources(group, 0), scheme="rp")
        self.assertEqual(sha256(answer.content), sha256(group.blocks[0]))
        self.assertEqual(answer.end["attempts"], "2")
        corrupt = {block["block_id"]: block["node"]
                   for block in self.cluster.status()["corrupt_blocks"]}
        self.assertEqual(corrupt.get(group.name(5)), self.nodes[5])
        # The client of this repair learns which replica it was. Later ones do not read it, and do
        # not accuse it: it may have been restored.
        self.assertEqual(answer.corrupt["end"], [f"5 {uuid_of(self.nodes[5])}"])
        group.put(self.volume(self.nodes[5]), 5)
        answer = read(self.endpoint, group, 0, self.sources(group, 0), scheme="rp")
        self.assertEqual(answer.end["attempts"], "1")
        self.assertEqual(answer.corrupt, {"header": [], "end": []})

    def test_several_blocks_in_one_repair(self) -> None:
        """Of different lengths, each survivor read once for all of them."""
        group = self.put(Group(3 * ROW + 2 * CELL + 777, cell=CELL, number=140))
        self.cluster.wait_settled()
        for targets in ((0, 8), (1, 2, 5), (2, 4), (6, 7, 8)):
            with self.subTest(targets=targets):
                before = self.bytes_read()
                answer = read(self.endpoint, group, targets, self.sources(group, *targets))
                self.assertEqual(list(map(sha256, answer.contents)),
                                 [sha256(group.blocks[target]) for target in targets])
                lengths = " ".join(str(len(group.blocks[target])) for target in targets)
                self.assertEqual(answer.header["bytes"], lengths)
                self.assertEqual(answer.end, {"bytes": lengths, "attempts": "1"})
                self.cluster.wait_idle()
                self.assertLessEqual(self.bytes_read() - before, 6 * len(group.blocks[0]))
        answer = read(self.endpoint, group, (0, 3), self.sources(group, 0, 3), offset=12345,
                      length=2 * CELL)
        self.assertEqual(answer.contents, [group.blocks[index][12345:12345 + 2 * CELL]
                                           for index in (0, 3)])
        self.assert_nothing_left()

    def test_several_blocks_with_a_corrupt_survivor(self) -> None:
        group = self.put(Group(4 * ROW, cell=CELL, number=150))
        file = group.file(self.volume(self.nodes[3]), 3)
        content = bytearray(file.read_bytes())
        content[3 * CELL] ^= 1
        file.write_bytes(content)
        self.cluster.wait_settled()
        answer = read(self.endpoint, group, (0, 1), self.sources(group, 0, 1), scheme="rp")
        self.assertEqual(answer.contents, group.blocks[:2])
        self.assertEqual(answer.end["attempts"], "2")
        self.assertEqual(answer.corrupt["end"], [f"3 {uuid_of(self.nodes[3])}"])

    def test_who_leaves_one_of_several_unread_holds_all_back(self) -> None:
        """The repair waits with a bounded number of bytes under way, and goes on."""
        group = self.put(Group(64 * ROW, cell=CELL, number=160))
        with Connection(self.endpoint) as connection:
            connection.ask(group, (1, 2), self.sources(group, 1, 2))
            before = self.bytes_read()
            self.assertEqual(connection.receive()[0], HEADER)
            time.sleep(1.0)
            self.assertLess(self.bytes_read() - before, 6 * len(group.blocks[0]) * 3 // 4)
            answer = connection.answer()
        self.assertEqual(list(map(sha256, answer.contents)),
                         [sha256(group.blocks[index]) for index in (1, 2)])
        self.assert_nothing_left()

    def test_more_blocks_than_the_group_can_lose_are_refused(self) -> None:
        group = self.put(Group(ROW, cell=CELL, number=170))
        for targets, why in (((0, 1, 2, 3), "more targets than the 3"), ((2, 1), "ascending")):
            with self.assertRaises(EndpointError) as failed:
                read(self.endpoint, group, targets, self.sources(group, *targets))
            self.assertEqual(failed.exception.code, "INVALID_ARGUMENT")
            self.assertIn(why, str(failed.exception))

    def test_too_many_losses_name_each_survivor(self) -> None:
        group = self.put(Group(ROW, cell=CELL, number=80))
        sources = self.sources(group, 0, 1, 2, 3)
        sources[3] = ["unknown-datanode"]
        failed: list[EndpointError] = []

        def refused_for_good() -> bool:
            with self.assertRaises(EndpointError) as caught:
                read(self.endpoint, group, 0, sources)
            failed.append(caught.exception)
            return caught.exception.code != "UNAVAILABLE"

        # A coordinator that has just started waits for helpers that might still register.
        wait_until(refused_for_good, HANG, "an answer that is not UNAVAILABLE")
        self.assertEqual(failed[-1].code, "FAILED_PRECONDITION")
        self.assertIn("unknown-datanode: its helper has not registered", str(failed[-1]))
        for early in failed[:-1]:
            self.assertIn("waits for helpers", str(early))

    def test_stale_facts_are_refused(self) -> None:
        group = self.put(Group(ROW, cell=CELL, number=90))
        group.stamp += 1
        with self.assertRaises(EndpointError) as failed:
            read(self.endpoint, group, 0, self.sources(group, 0))
        self.assertIn("another generation", str(failed.exception))
        group.stamp -= 1
        group.group_bytes -= 6  # block 5 would be shorter than it is
        with self.assertRaises(EndpointError) as failed:
            read(self.endpoint, group, 0, self.sources(group, 0, 6, 7))
        self.assertEqual(failed.exception.code, "FAILED_PRECONDITION")

    def test_a_dead_helper_is_left_out(self) -> None:
        group = self.put(Group(3 * ROW + 1, cell=CELL, number=100))
        helper = self.cluster.helpers[self.nodes[8]]
        helper.kill()
        try:
            answer = read(self.endpoint, group, 1, self.sources(group, 1))
            self.assertEqual(sha256(answer.content), sha256(group.blocks[1]))
        finally:
            helper.restart()
            self.cluster.wait_live(self.nodes)

    def test_who_closes_leaves_nothing(self) -> None:
        group = self.put(Group(4 * ROW, cell=CELL, number=110))
        for _ in range(3):
            with Connection(self.endpoint) as connection:
                connection.ask(group, 2, self.sources(group, 2))
                self.assertEqual(connection.receive()[0], HEADER)
        self.assert_nothing_left()

    def test_who_waits_goes_before_the_background(self) -> None:
        """Of four repairs at once the background has three."""
        group = self.put(Group(32 * ROW, cell=CELL, number=130))
        sources = self.sources(group, 2)
        self.cluster.cli("limits", "set", "--cluster", "--max-running", "4")
        self.addCleanup(self.cluster.cli, "limits", "reset", "--cluster")
        with contextlib.ExitStack() as held:
            for _ in range(3):
                # It does not end as long as nobody reads.
                connection = held.enter_context(Connection(self.endpoint))
                connection.ask(group, 2, sources, background=1, timeout_ms=20000)
                self.assertEqual(connection.receive()[0], HEADER)
            with self.assertRaises(EndpointError) as failed:
                read(self.endpoint, group, 2, sources, background=1)
            self.assertEqual(failed.exception.code, "RESOURCE_EXHAUSTED")
            self.assertIn("3 background repairs", str(failed.exception))
            self.assertEqual(read(self.endpoint, group, 2, sources).content, group.blocks[2])
        self.assert_nothing_left()

    def test_without_a_coordinator_it_says_so_in_time(self) -> None:
        group = self.put(Group(ROW, cell=CELL, number=120))
        self.cluster.coordinator.stop()
        try:
            with self.assertRaises(EndpointError) as failed:
                read(self.endpoint, group, 2, self.sources(group, 2), timeout_ms=500)
            self.assertIn(failed.exception.code, ("DEADLINE_EXCEEDED", "UNAVAILABLE"))
        finally:
            self.cluster.coordinator.launch()
            self.cluster.coordinator.await_ready()
            self.cluster.wait_live(self.nodes)

        # Reads do not wait for the connection, which comes back by itself within a second or two.
        def answers() -> bool:
            try:
                answer = read(self.endpoint, group, 2, self.sources(group, 2))
            except EndpointError as error:
                self.assertEqual(error.code, "UNAVAILABLE")
                return False
            self.assertEqual(answer.content, group.blocks[2])
            return True
        wait_until(answers, HANG, "the endpoint to have its coordinator back")

    def bytes_read(self) -> int:
        return sum(node["block_bytes_read"] for node in self.cluster.node_status().values()
                   if node["answers"])

    def assert_nothing_left(self) -> None:
        for name, node in self.cluster.wait_idle().items():
            self.assertEqual(node["buffer_bytes"], 0, name)


if __name__ == "__main__":
    case.main()
