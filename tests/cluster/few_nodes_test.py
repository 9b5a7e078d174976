#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stripe on fewer nodes than it has blocks: a node helps with each of its blocks."""

from __future__ import annotations

import json

import case
from case import HANG, NO_SURVIVORS, SCHEMES, ClusterCase
from labkit.process import wait_until


class FewNodes(ClusterCase):
    """The six blocks of rs(6,4) lie on three nodes: 0 and 1, 2 and 3, 4 and 5."""

    nodes = 6

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        for stripe in cls.manifest["stripes"]:
            blocks = stripe["blocks"]
            for first, second in ((0, 1), (2, 3), (4, 5)):
                path = cls.cluster.block_file(blocks[second]["block_id"])
                to = cls.cluster.data_dir() / blocks[first]["node"]
                for file in (path, path.with_name(f".crc32c.{path.name}")):
                    file.rename(to / file.name)
                blocks[second]["node"] = blocks[first]["node"]
        cls.manifest_path.write_text(json.dumps(cls.manifest))
        cls.cluster.cli("catalog", "load", cls.manifest_path)
        cls.cluster.wait_settled()

    def test_every_scheme_repairs(self) -> None:
        lost = self.block(0, 0)
        for scheme in SCHEMES:
            with self.subTest(scheme=scheme):
                report = self.repair(lost["block_id"], "--scheme", scheme, "--sha256",
                                     lost["sha256"])
                self.assertEqual(report["attempts"], 1)
        self.repair(lost["block_id"], "--verify", "parity", "--sha256", lost["sha256"])
        self.assert_nothing_left()

    def test_a_lost_node_takes_two_blocks(self) -> None:
        first, second = self.block(1, 0), self.block(1, 1)
        helper = self.cluster.helpers[first["node"]]
        helper.stop()
        for block in (first, second):
            self.repair(block["block_id"], "--sha256", block["sha256"])
        both = self.work / "both"
        both.mkdir()
        self.cluster.cli("repair", first["block_id"], second["block_id"], "-d", both)
        for block in (first, second):
            self.assertEqual(case.sha256((both / block["block_id"]).read_bytes()), block["sha256"])
        # With one node more there is nothing left to do it with.
        other = self.cluster.helpers[self.block(1, 2)["node"]]
        other.stop()
        said = self.fails(NO_SURVIVORS, "repair", first["block_id"], "-o", self.work / "never")
        self.assertIn("only 2 survivors can be used", said)
        for stopped in (helper, other):
            stopped.start()
        self.cluster.wait_live(self.cluster.node_ids)
        self.assert_nothing_left()

    def test_recovery_of_a_node_with_two_blocks(self) -> None:
        """By the other two nodes, which have the four blocks that it takes."""
        first = self.block(0, 0)
        lost = [block for stripe in self.manifest["stripes"] for block in stripe["blocks"]
                if block["node"] == first["node"]]
        self.cluster.helpers[first["node"]].kill()
        wait_until(lambda: self.cluster.node_status()[first["node"]]["state"] == "dead", HANG,
                   "the death")
        report = self.cluster.cli_json("recover-node", first["node"], "--delay", "0")
        self.assertEqual(report["done_blocks"], len(lost))
        for block in lost:
            files = [file for file in self.cluster.data_dir().glob(f"*/{block['block_id']}")
                     if file.parent.name != first["node"]]
            self.assertEqual([case.sha256(file.read_bytes()) for file in files],
                             [block["sha256"]])


if __name__ == "__main__":
    case.main()
