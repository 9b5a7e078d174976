#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ecpipe nodes maintain`: a node may be away for a while. Until then nobody is alarmed and nothing
is rebuilt; after that, what the node does not have is rebuilt."""

from __future__ import annotations

import unittest
from typing import Any

import case
from case import FAILED, HANG, NO_SURVIVORS, NOT_FOUND, USAGE, ClusterCase, sha256
from labkit.process import wait_until


class MaintenanceCase(ClusterCase):
    nodes = 8
    block_bytes = 100_003
    file_bytes = 8 * 4 * 100_003
    coordinator_settings = {
        "timeouts": {"dead_after_seconds": 1.0},
        "recovery": {"first_pause_seconds": 0.1}}

    def node(self, name: str) -> dict[str, Any]:
        return next(each for each in self.cluster.cli_json("nodes") if each["node_id"] == name)

    def show(self, recovery_id: int) -> dict[str, Any]:
        return self.cluster.cli_json("recovery", "show", str(recovery_id))

    def places(self) -> dict[str, str]:
        stripes = self.cluster.cli_json("catalog", "list", "--limit", "1000")
        return {block["block_id"]: block["node"]
                for stripe in stripes for block in stripe["blocks"]}

    def wait_dead(self, node: str) -> None:
        wait_until(lambda: self.node(node)["state"] == "dead", HANG, "the death")

    def end_of(self, recovery_id: int) -> str:
        wait_until(lambda: self.show(recovery_id)["state"] != "running", HANG, "the end")
        return self.show(recovery_id)["state"]

    def assert_readable(self) -> None:
        for stripe in self.manifest["stripes"]:
            for block in stripe["blocks"]:
                output = self.work / "read"
                self.cluster.cli("read", block["block_id"], "-o", output)
                self.assertEqual(sha256(output.read_bytes()), block["sha256"])


class Away(MaintenanceCase):
    def test_a_node_is_away_and_comes_back(self) -> None:
        before = self.places()
        self.assertIn("would take no blocks", self.cluster.cli(
            "nodes", "maintain", "node-2", "--for", "1h", "--dry-run").stdout)
        self.assertEqual(self.node("node-2")["kept_out"], "")
        said = self.cluster.cli("nodes", "maintain", "node-2", "--for", "1h").stdout
        self.assertIn("ecpipe nodes readmit node-2", said)
        [recovery] = self.cluster.cli_json("recovery", "list")
        self.assertEqual((recovery["kind"], recovery["state"]), ("maintenance", "running"))
        self.cluster.helpers["node-2"].kill()
        self.wait_dead("node-2")
        self.assertEqual(self.node("node-2")["kept_out"], "in maintenance")
        self.assertIn("dead, in maintenance", self.cluster.cli("nodes").stdout)
        self.assert_readable()
        found = self.cluster.cli("doctor", check=False).stdout
        self.assertNotIn("node-2 ", found)
        self.assertIn("all 7 helpers are live and answer, but for 1 away", found)
        self.assert_refusals(recovery["recovery_id"])
        # The coordinator may restart meanwhile.
        self.cluster.coordinator.kill()
        self.cluster.coordinator.restart()
        self.cluster.wait_live([node for node in self.cluster.node_ids if node != "node-2"])
        away, there = self.node("node-2"), self.node("node-1")
        self.assertEqual(away["kept_out"], "in maintenance")
        # It was killed before the coordinator was, which does not know how long before.
        self.assertTrue(away["heartbeat_unknown"])
        self.assertFalse(there["heartbeat_unknown"])
        self.assertRegex(self.cluster.cli("nodes").stdout,
                         r"\nnode-2 .* none for [0-9.]+ s, since the start")
        self.assert_others_recover_without_it()
        self.cluster.helpers["node-2"].restart()
        self.cluster.wait_live(["node-2"])
        self.assertEqual(self.show(recovery["recovery_id"])["state"], "running")
        self.cluster.cli("nodes", "readmit", "node-2")
        self.assertEqual(self.end_of(recovery["recovery_id"]), "returned")
        self.assertEqual(self.node("node-2")["kept_out"], "")
        after = self.places()
        self.assertEqual([block for block, node in before.items()
                          if node == "node-2" and after[block] != "node-2"], [])

    def assert_refusals(self, recovery_id: int) -> None:
        self.fails(USAGE, "nodes", "maintain", "node-2")
        self.fails(USAGE, "nodes", "maintain", "node-2", "--for", "90")
        self.fails(USAGE, "nodes", "maintain", "node-2", "--for", "8d")
        self.fails(NOT_FOUND, "nodes", "maintain", "nobody", "--for", "1h")
        self.assertIn("in maintenance", self.fails(NO_SURVIVORS, "nodes", "forget", "node-2"))
        self.assertIn("in maintenance",
                      self.fails(NO_SURVIVORS, "recovery", "pause", str(recovery_id)))
        self.assertIn(f"recovery cancel {recovery_id}",
                      self.fails(FAILED, "recover-node", "node-2"))
        self.assertIn("in maintenance", self.fails(
            USAGE, "recover-node", "node-3", "--even-if-live", "--to", "node-2"))

    def assert_others_recover_without_it(self) -> None:
        report = self.cluster.cli_json("recover-node", "node-3", "--even-if-live")
        self.assertEqual(report["state"], "done")
        self.assertNotIn("node-3", self.places().values())


class NeverBack(MaintenanceCase):
    def test_what_a_dead_node_had_is_rebuilt_at_the_end(self) -> None:
        had = [block for block, node in self.places().items() if node == "node-5"]
        number = self.cluster.cli_json("nodes", "maintain", "node-5", "--for",
                                       "1h")["recovery_id"]
        self.cluster.helpers["node-5"].kill()
        self.wait_dead("node-5")
        # Sooner than announced: that is the same maintenance.
        self.assertEqual(self.cluster.cli_json("nodes", "maintain", "node-5", "--for",
                                               "2s")["recovery_id"], number)
        self.assertEqual(self.end_of(number), "done")
        self.assertEqual(self.show(number)["done_blocks"], len(had))
        self.assertNotIn("node-5", self.places().values())
        self.assert_readable()
        self.cluster.cli("nodes", "forget", "node-5")


class BackEmpty(MaintenanceCase):
    def test_what_a_node_has_lost_meanwhile_is_rebuilt_at_the_end(self) -> None:
        had = [block for block, node in self.places().items() if node == "node-6"]
        number = self.cluster.cli_json("nodes", "maintain", "node-6", "--for",
                                       "1h")["recovery_id"]
        self.cluster.helpers["node-6"].kill()
        self.wait_dead("node-6")
        for block in had[:2]:
            (self.cluster.helpers["node-6"].root / block).unlink()
        self.cluster.helpers["node-6"].restart()
        self.cluster.wait_live(["node-6"])
        self.cluster.cli("nodes", "readmit", "node-6")
        self.assertEqual(self.end_of(number), "returned")
        self.assertEqual(self.show(number)["done_blocks"], 2)
        self.assert_readable()


if __name__ == "__main__":
    case.main()
