#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Marks of corrupt blocks: they outlive the coordinator, a block's own helper decides about them,
and operators have blocks checked. Reads take blocks that are there and sound as they are."""

from __future__ import annotations

from typing import Any

import case
from case import FAILED, HANG, NOT_FOUND, ClusterCase, sha256
from labkit.process import wait_until


class MarksCase(ClusterCase):
    def setUp(self) -> None:
        self.cluster.wait_settled()

    def flip(self, block_id: str, at: int = 500_000) -> None:
        with self.cluster.block_file(block_id).open("r+b") as file:
            file.seek(at)
            byte = file.read(1)
            file.seek(at)
            file.write(bytes([byte[0] ^ 0x10]))

    def marks(self) -> list[dict[str, Any]]:
        return self.cluster.cli_json("corrupt", "list")

    def wait_found(self, block_id: str) -> None:
        """The block is marked, and its helper or its SHA-256 has decided."""
        wait_until(lambda: [(mark["block_id"], mark["suspect"]) for mark in self.marks()]
                   == [(block_id, False)], HANG, f"{block_id} alone to be found corrupt")

    def repair_in_place(self, block: dict[str, str]) -> None:
        self.cluster.cli("repair", block["block_id"], "--to", block["node"])
        self.assertEqual(sha256(self.bytes_of(block["block_id"])), block["sha256"])
        self.assertEqual(self.marks(), [])

    def read(self, block_id: str, *arguments: str) -> dict[str, Any]:
        return self.cluster.cli_json("read", block_id, "-o", self.work / "read", *arguments)


class WithoutChecksumFiles(MarksCase):
    code = "rs(7,4)"  # as many survivors as locating needs
    encode_arguments = ("--no-checksums",)

    def test_a_mark_outlives_the_coordinator(self) -> None:
        lost, bad = self.block(0, 0), self.block(0, 1)
        self.flip(bad["block_id"])
        self.cluster.cli("repair", lost["block_id"], "-o", self.work / "out", "--verify", "locate",
                         check=False)
        self.wait_found(bad["block_id"])
        self.cluster.coordinator.kill()
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)
        self.wait_found(bad["block_id"])
        # And the catalog that is told what it knows.
        lines = self.work / "catalog.jsonl"
        self.cluster.cli("catalog", "export", lines)
        self.cluster.cli("catalog", "import", lines)
        self.wait_found(bad["block_id"])
        # A recovery does without it, at once: no wrong block is made, and none is sealed.
        self.cluster.block_file(lost["block_id"]).unlink()
        self.cluster.cli("recover-node", lost["node"], "--to", lost["node"], "--even-if-live")
        self.assertEqual(sha256(self.bytes_of(lost["block_id"])), lost["sha256"])
        details = [each["detail"] for each in self.cluster.status()["repairs"]]
        self.assertFalse([text for text in details if "was rebuilt with SHA-256" in text], details)
        self.repair_in_place(bad)
        self.cluster.coordinator.kill()
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)
        self.assertEqual(self.marks(), [], "it is repaired for good")

    def test_a_truncated_block_is_listed(self) -> None:
        lost, bad = self.block(1, 0), self.block(1, 1)
        content = self.bytes_of(bad["block_id"])
        self.cluster.block_file(bad["block_id"]).write_bytes(content[:-7])
        self.repair(lost["block_id"], "--scheme", "rp", "--sha256", lost["sha256"])
        self.wait_found(bad["block_id"])
        self.assertIn("999996 bytes", self.marks()[0]["reason"])
        self.repair_in_place(bad)

    def test_reads_take_a_block_that_is_there(self) -> None:
        block = self.block(1, 2)
        content = self.bytes_of(block["block_id"])
        before = self.cluster.wait_idle()
        report = self.read(block["block_id"], "--sha256", block["sha256"])
        self.assertEqual(report["scheme"], "direct")
        self.assertEqual(report["total_bytes"], len(content))
        after = self.cluster.wait_idle()
        read = {name for name, node in after.items()
                if node["block_bytes_read"] > before[name]["block_bytes_read"]}
        self.assertEqual(read, {block["node"]})
        self.assertNotEqual(self.repair(block["block_id"])["scheme"], "direct",
                            "a repair rebuilds")
        # Lost, it is rebuilt; wrong, it is rebuilt as well, and marked.
        path = self.cluster.block_file(block["block_id"])
        path.unlink()
        self.assertNotEqual(self.read(block["block_id"], "--sha256", block["sha256"])["scheme"],
                            "direct")
        path.write_bytes(content)
        self.flip(block["block_id"])
        report = self.read(block["block_id"], "--sha256", block["sha256"])
        self.assertNotEqual(report["scheme"], "direct")
        self.wait_found(block["block_id"])
        self.repair_in_place(block)
        self.assert_nothing_left()


class Checks(MarksCase):
    def test_operators_have_blocks_checked(self) -> None:
        block = self.block(0, 3)["block_id"]
        self.assertIn("no block is known", self.cluster.cli("corrupt", "list").stdout)
        self.assertIn("sound", self.cluster.cli("corrupt", "check", block).stdout)
        self.fails(NOT_FOUND, "corrupt", "check", "stranger")
        self.fails(NOT_FOUND, "corrupt", "clear", block)
        self.flip(block)
        said = self.cluster.cli("corrupt", "check", block, check=False)
        self.assertEqual(said.returncode, FAILED)
        self.assertIn("do not match their checksum", said.stdout)
        self.assertIn(block, self.cluster.cli("corrupt", "list").stdout)
        self.assertIn(block, self.cluster.cli("status").stdout)
        # Put right by other means than a repair.
        self.flip(block)
        self.assertEqual(self.cluster.cli_json("corrupt", "check", block)["verdict"], "sound")
        self.assertEqual(self.marks(), [])
        self.flip(block)
        self.cluster.cli("corrupt", "check", block, check=False)
        self.cluster.cli("corrupt", "clear", block)
        self.assertEqual(self.marks(), [], "the operator's word is taken")
        self.flip(block)


class LocateWithFewSurvivors(MarksCase):
    """rs(9,6) without one block has as many survivors as locating needs, and one less goes on."""

    nodes = 9
    code = "rs(9,6)"
    encode_arguments = ("--no-checksums",)

    def test_the_repair_goes_on_without_the_block_that_it_has_named(self) -> None:
        lost, bad = self.block(0, 0), self.block(0, 2)
        self.flip(bad["block_id"])
        for attempt in range(3):
            report = self.repair(lost["block_id"], "--scheme", "rp", "--verify", "locate",
                                 "--sha256", lost["sha256"])
            self.assertEqual(report["attempts"], 2, attempt)
            self.wait_found(bad["block_id"])
            self.cluster.cli("corrupt", "clear", bad["block_id"])
        self.cluster.cli("corrupt", "check", bad["block_id"], check=False)
        self.wait_found(bad["block_id"])
        self.repair_in_place(bad)


if __name__ == "__main__":
    case.main()
