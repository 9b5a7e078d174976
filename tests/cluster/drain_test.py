#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ecpipe drain`: every block of a node that lives appears on another one, once, and correct."""

from __future__ import annotations

import threading
import unittest
from typing import Any

import case
from case import FAILED, HANG, NOT_FOUND, NO_SURVIVORS, USAGE, ClusterCase, sha256
from labkit.process import wait_until


class DrainCase(ClusterCase):
    nodes = 10
    block_bytes = 500_003
    file_bytes = 30 * 4 * 500_003  # 30 stripes of rs(6,4): 18 blocks a node
    coordinator_settings = {
        "timeouts": {"dead_after_seconds": 2.0},
        "recovery": {"first_pause_seconds": 0.1}}

    def places(self) -> dict[str, str]:
        """Node of each block, as the catalog has it."""
        stripes = self.cluster.cli_json("catalog", "list", "--limit", "1000")
        return {block["block_id"]: block["node"]
                for stripe in stripes for block in stripe["blocks"]}

    def blocks_on(self, node: str) -> list[str]:
        return [block for block, place in self.places().items() if place == node]

    def show(self, recovery_id: int) -> dict[str, Any]:
        return self.cluster.cli_json("recovery", "show", str(recovery_id))

    def kept_out_of(self, node: str) -> str:
        return next(each["kept_out"] for each in self.cluster.cli_json("nodes")
                    if each["node_id"] == node)

    def begin_slow(self, *arguments: str) -> int:
        """A drain that lasts: a block takes half a second or so, while the processors rest."""
        self.cluster.cli("limits", "set", "--cluster", "--repair-mbit", str(4 * self.nodes))
        wait_until(lambda: all(node["repair_mbit"] > 0 or node["state"] == "dead"
                               for node in self.cluster.cli_json("limits")["nodes"]), HANG,
                   "the helpers to know their rate")
        return self.cluster.cli_json("drain", *arguments, "--detach")["recovery_id"]

    def hurry(self) -> None:
        self.cluster.cli("limits", "reset", "--cluster")

    def wait_for_blocks(self, recovery_id: int, count: int) -> None:
        wait_until(lambda: self.show(recovery_id)["done_blocks"] >= count, 120, "blocks")

    def end_of(self, recovery_id: int, state: str = "done") -> dict[str, Any]:
        self.hurry()
        wait_until(lambda: self.show(recovery_id)["state"] not in ("running", "paused"), 120,
                   "the drain's end")
        report = self.show(recovery_id)
        self.assertEqual(report["state"], state, report)
        return report

    def assert_whole(self, drained: str) -> None:
        """Each block lies where the catalog says, with the right bytes. Of other copies there are
        only those that the drained node still has. No node has two blocks of a stripe."""
        places = self.places()
        self.assertNotIn(drained, places.values())
        for stripe in self.manifest["stripes"]:
            nodes = [places[block["block_id"]] for block in stripe["blocks"]]
            self.assertEqual(len(set(nodes)), len(nodes), nodes)
            for block in stripe["blocks"]:
                files = {file.parent.name: file for file
                         in self.cluster.data_dir().glob(f"*/{block['block_id']}")}
                place = places[block["block_id"]]
                self.assertIn(place, files)
                self.assertLessEqual(set(files), {place, drained}, block["block_id"])
                for file in files.values():
                    self.assertEqual(sha256(file.read_bytes()), block["sha256"], file)
        self.assert_nothing_left()


class UnderReads(DrainCase):
    def test_reads_go_on_while_blocks_are_copied_and_rebuilt(self) -> None:
        expected = {block["block_id"]: block["sha256"] for stripe in self.manifest["stripes"]
                    for block in stripe["blocks"]}
        moving = self.blocks_on("node-1")
        # What it copies goes through this, so that others have time to rebuild.
        self.cluster.cli("limits", "set", "--node", "node-1", "--repair-mbit", "8")
        wait_until(lambda: any(node["repair_mbit"] == 8 for node in
                               self.cluster.cli_json("limits")["nodes"]), HANG,
                   "the helper to know its rate")
        ended = threading.Event()
        reads: list[str] = []
        wrong: list[str] = []

        def read_all() -> None:
            while not ended.is_set() or not reads:
                for block_id in moving:
                    output = self.work / "read"
                    done = self.cluster.cli("read", block_id, "-o", output, check=False)
                    reads.append(block_id)
                    if done.returncode != 0:
                        wrong.append(f"{block_id}: {done.stderr}")
                    elif sha256(output.read_bytes()) != expected[block_id]:
                        wrong.append(f"{block_id}: wrong bytes")

        schemes: set[str] = set()

        def watch() -> None:  # reads soon push what has ended off the list
            while not ended.is_set():
                schemes.update(repair["scheme"] for repair in self.cluster.cli_json("repairs")
                               if repair["recovery_id"] == 1)

        threads = [threading.Thread(target=each) for each in (read_all, watch)]
        for thread in threads:
            thread.start()
        try:
            done = self.cluster.cli("drain", "node-1", timeout=HANG)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])
        self.assertIn(f"{len(moving)} of {len(moving)} blocks verified", done.stdout)
        [report] = self.cluster.cli_json("recovery", "list")
        self.assertEqual((report["recovery_id"], report["kind"], report["state"],
                          report["done_blocks"]), (1, "move", "done", len(moving)))
        self.assertIn("direct", schemes)
        self.assertGreater(len(schemes), 1, "none was rebuilt")
        self.assertEqual(self.kept_out_of("node-1"), "drained")
        self.assertIn("live, drained", self.cluster.cli("nodes").stdout)
        self.assert_whole("node-1")
        self.assert_takes_none_until_readmitted("node-1")

    def assert_takes_none_until_readmitted(self, node: str) -> None:
        block_id = self.blocks_on("node-2")[0]
        said = self.fails(NO_SURVIVORS, "repair", block_id, "--to", node)
        self.assertIn("it is drained", said)
        report = self.cluster.cli_json("recover-node", "node-2", "--even-if-live")
        self.assertEqual(report["state"], "done")
        self.assertNotIn(node, self.places().values())
        self.cluster.coordinator.kill()
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)
        self.assertEqual(self.kept_out_of(node), "drained")
        # A second drain finds nothing to do.
        self.assertEqual(self.cluster.cli_json("drain", node)["blocks"], 0)
        self.assertIn("takes blocks again",
                      self.cluster.cli("nodes", "readmit", node, "--dry-run").stdout
                      .replace("would take", "takes"))
        self.assertEqual(self.kept_out_of(node), "drained")
        self.cluster.cli("nodes", "readmit", node)
        self.assertEqual(self.kept_out_of(node), "")
        self.fails(NOT_FOUND, "nodes", "readmit", node)
        self.cluster.cli("repair", block_id, "--to", node)
        self.assertEqual(self.blocks_on(node), [block_id])


class Steered(DrainCase):
    def test_refusals_dry_run_pause_and_cancel(self) -> None:
        before = self.places()
        said = self.cluster.cli("drain", "node-3", "--dry-run").stdout
        self.assertIn("18 blocks", said)
        self.assertIn("take no blocks", said)
        self.assertEqual(self.cluster.cli_json("recovery", "list"), [])
        self.assertIn("nowhere", self.fails(NOT_FOUND, "drain", "nowhere"))
        self.assertIn("nowhere", self.fails(USAGE, "drain", "node-3", "--to", "nowhere"))
        self.fails(USAGE, "drain", "node-3", "--to", "node-3")
        self.fails(USAGE, "drain", "node-3", "--policy", "magic")
        self.cluster.helpers["node-10"].kill()
        wait_until(lambda: self.cluster.node_status()["node-10"]["state"] == "dead", HANG,
                   "the death")
        self.assertIn("recover-node node-10", self.fails(NO_SURVIVORS, "drain", "node-10"))
        self.assertEqual(self.places(), before)
        self.cluster.helpers["node-10"].restart()
        self.cluster.wait_live(["node-10"])
        number = self.begin_slow("node-3", "--streams", "1")
        self.wait_for_blocks(number, 1)
        self.assertEqual(self.kept_out_of("node-3"), "draining")
        self.assertIn("is running", self.fails(FAILED, "drain", "node-3"))
        self.assertIn(f"recovery cancel {number}",
                      self.fails(NO_SURVIVORS, "nodes", "readmit", "node-3"))
        self.cluster.cli("recovery", "pause", str(number))
        wait_until(lambda: self.show(number)["running_blocks"] == 0, HANG, "quiet")
        moved = self.show(number)["done_blocks"]
        self.assertLess(moved, 18)
        self.cluster.cli("recovery", "cancel", str(number))
        self.assertEqual(self.kept_out_of("node-3"), "")
        self.assertEqual(len(self.blocks_on("node-3")), 18 - moved)
        self.hurry()
        report = self.cluster.cli_json("drain", "node-3", "--to", "node-4,node-5,node-6,node-7,"
                                       "node-8,node-9,node-10")
        self.assertEqual((report["state"], report["verified_blocks"]), ("done", 18 - moved))
        self.assert_whole("node-3")


class SourceDies(DrainCase):
    def test_the_rest_is_rebuilt(self) -> None:
        moving = self.blocks_on("node-2")
        number = self.begin_slow("node-2", "--streams", "2")
        self.wait_for_blocks(number, 2)
        self.cluster.helpers["node-2"].kill()
        self.assertLess(self.show(number)["done_blocks"], len(moving))
        report = self.end_of(number)
        self.assertEqual(report["done_blocks"], len(moving))
        self.cluster.helpers["node-2"].restart()
        self.cluster.wait_live(["node-2"])
        self.assertEqual(self.kept_out_of("node-2"), "drained")
        self.assert_whole("node-2")


class TargetDies(DrainCase):
    def test_its_blocks_go_elsewhere(self) -> None:
        moving = self.blocks_on("node-4")
        number = self.begin_slow("node-4")
        self.wait_for_blocks(number, 1)
        self.cluster.helpers["node-5"].kill()
        self.assertEqual(self.end_of(number)["done_blocks"], len(moving))
        self.cluster.helpers["node-5"].restart()
        self.cluster.wait_live(["node-5"])
        self.assert_whole("node-4")


class CoordinatorDies(DrainCase):
    def test_the_next_one_goes_on_and_moves_nothing_twice(self) -> None:
        moving = self.blocks_on("node-6")
        number = self.begin_slow("node-6", "--streams", "2")
        self.wait_for_blocks(number, 2)
        self.cluster.coordinator.kill()
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)
        self.assertIn(self.kept_out_of("node-6"), ("draining", "drained"))
        report = self.end_of(number)
        self.assertEqual((report["blocks"], report["done_blocks"]), (len(moving), len(moving)))
        self.assert_whole("node-6")


class DamagedSource(DrainCase):
    def test_what_is_corrupt_or_missing_is_rebuilt(self) -> None:
        corrupt, missing = self.blocks_on("node-7")[:2]
        root = self.cluster.helpers["node-7"].root
        content = bytearray((root / corrupt).read_bytes())
        good = sha256(bytes(content))
        content[len(content) // 2] ^= 1
        (root / corrupt).write_bytes(content)
        (root / missing).unlink()
        report = self.cluster.cli_json("drain", "node-7")
        self.assertEqual((report["state"], report["not_verified"]), ("done", []))
        place = self.places()[corrupt]
        self.assertEqual(sha256((self.cluster.data_dir() / place / corrupt).read_bytes()), good)
        (root / corrupt).unlink()
        self.assert_whole("node-7")


if __name__ == "__main__":
    case.main()
