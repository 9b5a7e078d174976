#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recovery of whole nodes: every block of a lost node appears on another one, once, and correct."""

from __future__ import annotations

import json
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import case
from case import HANG, NOT_FOUND, NO_SURVIVORS, USAGE, ClusterCase, sha256
from labkit.process import wait_until


class RecoveryCase(ClusterCase):
    nodes = 9
    block_bytes = 100_003
    file_bytes = 24 * 400_000
    coordinator_settings = {
        "timeouts": {"dead_after_seconds": 4.0},
        "recovery": {"first_pause_seconds": 0.1, "max_attempts": 3}}

    def stripes(self) -> list[dict[str, Any]]:
        return self.cluster.cli_json("catalog", "list", "--limit", "1000")

    def places(self) -> dict[str, str]:
        """Node of each block, as the catalog has it."""
        return {block["block_id"]: block["node"]
                for stripe in self.stripes() for block in stripe["blocks"]}

    def blocks_on(self, node: str) -> list[str]:
        return [block for block, place in self.places().items() if place == node]

    def manifest_blocks(self) -> Iterator[dict[str, str]]:
        for stripe in self.manifest["stripes"]:
            yield from stripe["blocks"]

    def lose(self, node: str) -> None:
        """Ends the node's helper for good, and takes its blocks away."""
        self.cluster.helpers[node].kill()
        for file in self.cluster.helpers[node].root.iterdir():
            file.unlink()
        wait_until(lambda: self.cluster.node_status()[node]["state"] == "dead", HANG, "the death")

    def recover(self, node: str, *arguments: str) -> dict[str, Any]:
        return self.cluster.cli_json("recover-node", node, "--delay", "0", *arguments)

    def show(self, recovery_id: int) -> dict[str, Any]:
        return self.cluster.cli_json("recovery", "show", str(recovery_id))

    def files_of(self, block_id: str) -> list[Path]:
        return sorted(self.cluster.data_dir().glob(f"*/{block_id}"))

    def assert_whole(self, strays: bool = False) -> None:
        """Each block lies where the catalog says, only there, with the right bytes; no node has two
        of a stripe; nothing else is left. After a cancel there may be `strays`, right copies that
        were stored in the instant in which they were cancelled (docs/design/003-recovery.md)."""
        places = self.places()
        for block in self.manifest_blocks():
            block_id = block["block_id"]
            files = self.files_of(block_id)
            nodes = [file.parent.name for file in files]
            if strays:
                self.assertIn(places[block_id], nodes, block_id)
            else:
                self.assertEqual(nodes, [places[block_id]], block_id)
            for file in files:
                self.assertEqual(sha256(file.read_bytes()), block["sha256"], file)
        for stripe in self.stripes():
            nodes = [block["node"] for block in stripe["blocks"]]
            self.assertEqual(len(set(nodes)), len(nodes), stripe["stripe_id"])
        self.assert_nothing_left()
        self.assertEqual(list(self.cluster.data_dir().glob("*/.ecpipe-tmp-*")), [])


class Policies(RecoveryCase):
    """Three nodes are lost one after the other, each recovered by another policy and scheme."""

    nodes = 11

    def test_every_policy_rebuilds_every_block(self) -> None:
        rounds = (("node-1", "balanced", "auto", ()),
                  ("node-2", "least-recent", "ppr", ()),
                  ("node-3", "in-order", "conventional",
                   ("node-4", "node-5", "node-6", "node-7", "node-8", "node-9")))
        for node, policy, scheme, to in rounds:
            with self.subTest(policy=policy):
                lost = self.blocks_on(node)
                self.assertGreater(len(lost), 0)
                self.lose(node)
                self.assertTrue(all(not self.files_of(block) for block in lost))
                target = ("--to", ",".join(to)) if to else ()
                report = self.recover(node, "--policy", policy, "--scheme", scheme, *target)
                self.assertEqual(report["state"], "done")
                self.assertEqual(report["blocks"], len(lost))
                self.assertEqual(report["done_blocks"], len(lost))
                self.assertEqual(report["done_bytes"], len(lost) * self.block_bytes)
                self.assertEqual(self.blocks_on(node), [])
                if to:
                    places = self.places()
                    self.assertLessEqual({places[block] for block in lost}, set(to))
                self.assert_whole()
        listed = self.cluster.cli_json("recovery", "list")
        self.assertEqual([entry["node_id"] for entry in listed], ["node-3", "node-2", "node-1"])
        self.assertEqual({entry["state"] for entry in listed}, {"done"})


class Refusals(RecoveryCase):
    def test_what_is_refused(self) -> None:
        said = self.fails(NO_SURVIVORS, "recover-node", "node-1")
        self.assertIn("node-1 is live", said)
        said = self.fails(USAGE, "recover-node", "node-1", "--even-if-live", "--to", "nowhere")
        self.assertIn("nowhere", said)
        said = self.fails(USAGE, "recover-node", "node-1", "--even-if-live", "--scheme", "magic")
        self.assertIn("magic", said)
        self.fails(USAGE, "recover-node", "node-1", "--policy", "magic")
        self.assertIn("no recovery 77", self.fails(NOT_FOUND, "recovery", "show", "77"))
        self.assertIn("no recovery 77", self.fails(NOT_FOUND, "recovery", "cancel", "77"))
        report = self.recover("no-such-node")
        self.assertEqual((report["state"], report["blocks"]), ("done", 0))
        self.assertIn("is done", self.fails(NO_SURVIVORS, "recovery", "pause",
                                            str(report["recovery_id"])))


class Returned(RecoveryCase):
    coordinator_settings = {"timeouts": {"dead_after_seconds": 1.0}}

    def test_a_node_that_comes_back_within_the_delay_is_not_rebuilt(self) -> None:
        places = self.places()
        helper = self.cluster.helpers["node-1"]
        helper.kill()
        wait_until(lambda: self.cluster.node_status()["node-1"]["state"] == "dead", HANG,
                   "the death")
        wait_until(lambda: "node.dead" in self.cluster.coordinator.log_file.read_text(), HANG,
                   "a line of the log")
        recovery_id = self.cluster.cli_json("recover-node", "node-1", "--detach")["recovery_id"]
        waiting = self.show(recovery_id)
        self.assertEqual((waiting["state"], waiting["running_blocks"]), ("running", 0))
        self.assertGreater(waiting["begins_in_seconds"], 60)  # 120 s from its last heartbeat
        helper.restart()
        wait_until(lambda: self.show(recovery_id)["state"] != "running", HANG, "the recovery's end")
        ended = self.show(recovery_id)
        self.assertEqual((ended["state"], ended["done_blocks"]), ("returned", 0))
        self.assertEqual(self.places(), places)
        self.assert_whole()


class ReturnedWithLess(RecoveryCase):
    """A node comes back, but not with all of its blocks: a new disk, or one that is not mounted."""

    coordinator_settings = {
        "timeouts": {"dead_after_seconds": 1.0},
        "recovery": {"first_pause_seconds": 0.1, "delay_seconds": 1.0}}

    def begin(self, node: str) -> int:
        self.cluster.helpers[node].kill()
        wait_until(lambda: self.cluster.node_status()[node]["state"] == "dead", HANG, "the death")
        return self.cluster.cli_json("recover-node", node, "--detach",
                                     "--delay", "30")["recovery_id"]

    def end_of(self, recovery_id: int) -> dict[str, Any]:
        wait_until(lambda: self.show(recovery_id)["state"] != "running", HANG, "the recovery's end")
        return self.show(recovery_id)

    def remove(self, node: str, blocks: list[str]) -> None:
        for block_id in blocks:
            (self.cluster.helpers[node].root / block_id).unlink()
            (self.cluster.helpers[node].root / f".crc32c.{block_id}").unlink(missing_ok=True)

    def test_a_node_that_comes_back_empty_is_rebuilt(self) -> None:
        lost = self.blocks_on("node-1")
        recovery_id = self.begin("node-1")
        self.remove("node-1", lost)
        self.cluster.helpers["node-1"].restart()
        report = self.end_of(recovery_id)
        self.assertEqual((report["state"], report["done_blocks"]), ("done", len(lost)), report)
        self.assertEqual(self.blocks_on("node-1"), [])
        self.assert_whole()

    def test_a_node_that_comes_back_with_some_keeps_those(self) -> None:
        blocks = self.blocks_on("node-2")
        lost, kept = blocks[:2], blocks[2:]
        self.assertGreater(len(kept), 0)
        recovery_id = self.begin("node-2")
        self.remove("node-2", lost)
        self.cluster.helpers["node-2"].restart()
        report = self.end_of(recovery_id)
        self.assertEqual((report["state"], report["done_blocks"], report["there_blocks"]),
                         ("returned", len(lost), len(kept)), report)
        self.assertEqual(sorted(self.blocks_on("node-2")), sorted(kept))
        self.assert_whole()

    def test_what_a_live_node_has_lost_is_rebuilt_when_asked_for(self) -> None:
        blocks = self.blocks_on("node-3")
        lost, kept = blocks[:2], blocks[2:]
        self.remove("node-3", lost)
        self.assertIn("--missing", self.fails(NO_SURVIVORS, "recover-node", "node-3"))
        report = self.cluster.cli_json("recover-node", "node-3", "--missing")
        self.assertEqual((report["state"], report["done_blocks"]), ("returned", len(lost)), report)
        self.assertEqual(sorted(self.blocks_on("node-3")), sorted(kept))
        report = self.cluster.cli_json("recover-node", "node-3", "--missing")
        self.assertEqual((report["state"], report["done_blocks"]), ("returned", 0), report)
        self.assert_whole()


class RackReboots(RecoveryCase):
    """More nodes are away than the code can spare, for longer than all attempts take."""

    coordinator_settings = {
        "timeouts": {"dead_after_seconds": 1.0},
        "recovery": {"first_pause_seconds": 0.05, "longest_pause_seconds": 0.5,
                     "max_attempts": 2}}

    def test_too_few_survivors_are_waited_for(self) -> None:
        lost = self.blocks_on("node-1")
        rack = ["node-2", "node-3", "node-4", "node-5"]
        for node in rack:
            self.cluster.helpers[node].kill()
        self.lose("node-1")
        wait_until(lambda: all(self.cluster.node_status()[node]["state"] == "dead"
                               for node in rack), HANG, "the rack's death")
        recovery_id = self.recover("node-1", "--detach")["recovery_id"]

        def stuck() -> list[dict[str, Any]]:
            return [block for block in self.show(recovery_id)["blocked"] if block["attempts"] > 3]
        wait_until(stuck, HANG, "more attempts than the limit")
        report = self.show(recovery_id)
        self.assertEqual((report["state"], report["failed_blocks"]), ("running", 0), report)
        blocked = stuck()[0]
        self.assertEqual((blocked["given_up"], blocked["kind"]), (False, "survivors"))
        self.assertTrue(any(node in blocked["reason"] for node in rack), blocked)
        [wait] = [wait for wait in report["waits"] if wait["kind"] == "survivors"]
        self.assertGreater(wait["blocks"], 0)
        said = self.cluster.cli("recovery", "show", str(recovery_id)).stdout
        self.assertIn("survivors", said)
        self.assertIn("no heartbeat", said)
        for node in rack:
            self.cluster.helpers[node].restart()
        wait_until(lambda: self.show(recovery_id)["state"] != "running", HANG, "the recovery's end")
        report = self.show(recovery_id)
        self.assertEqual((report["state"], report["done_blocks"]), ("done", len(lost)), report)
        self.assert_whole()


class Reasons(RecoveryCase):
    """Why nothing happens is told while it does not happen."""

    coordinator_settings = {"timeouts": {"dead_after_seconds": 1.0}}
    block_bytes = 2_000_003
    file_bytes = 24 * 8_000_000

    def waits(self, recovery_id: int) -> dict[str, dict[str, Any]]:
        return {wait["kind"]: wait for wait in self.show(recovery_id)["waits"]}

    def test_delay_pause_and_limit(self) -> None:
        self.cluster.cli("limits", "set", "--cluster", "--repair-mbit", "8")
        lost = self.blocks_on("node-1")
        self.lose("node-1")
        number = str(self.cluster.cli_json("recover-node", "node-1", "--detach", "--delay", "60",
                                           "--streams", "1")["recovery_id"])
        recovery_id = int(number)
        delay = self.waits(recovery_id)["delay"]
        self.assertEqual(delay["blocks"], len(lost))
        limits = self.show(recovery_id)["limits"]
        self.assertEqual((limits["repair_mbit"], limits["repair_mbit_is_set"]), (8, True))
        self.assertEqual((limits["max_running"], limits["max_running_is_set"]), (10_000, False))
        self.assertEqual((limits["streams_per_node"], limits["streams_per_node_is_own"]), (1, True))
        self.assertIn("limits: cluster repair Mb/s 8.0 (set), repairs at once 10000 (as configured)"
                      "; at one node 1 (--streams of this recovery)\n",
                      self.cluster.cli("recovery", "show", number).stdout)
        self.assertIn("node-1", delay["reason"])
        self.cluster.cli("recovery", "pause", number)
        self.assertIn("resume", self.waits(recovery_id)["paused"]["reason"])
        self.cluster.cli("recovery", "cancel", number)
        recovery_id = self.recover("node-1", "--detach", "--streams", "1")["recovery_id"]
        wait_until(lambda: "streams" in self.waits(recovery_id), HANG, "busy nodes")
        streams = self.waits(recovery_id)["streams"]
        self.assertIn("1 repair", streams["reason"])
        self.assertIn("--streams", streams["reason"])
        self.assertIn("node-", streams["reason"])
        self.cluster.cli("recovery", "cancel", str(recovery_id))


class KilledRequestor(RecoveryCase):
    coordinator_settings = {"timeouts": {"abandon_after_seconds": 2.0}}
    block_bytes = 16 << 20
    file_bytes = 4 * (16 << 20)

    def test_its_repair_does_not_stay_running(self) -> None:
        process = self.begin_read(self.block(0, 0)["block_id"])
        process.kill()
        process.communicate()

        def newest() -> dict[str, Any]:
            return json.loads(self.cluster.cli("status", "--json").stdout)["repairs"][0]
        wait_until(lambda: newest()["state"] != "running", HANG, "the repair's end")
        self.assertEqual(newest()["state"], "failed")
        self.assertIn("fell silent", newest()["detail"])
        self.assert_nothing_left()


class Unrepairable(RecoveryCase):
    def test_a_stripe_beyond_repair_is_reported_and_the_rest_goes_on(self) -> None:
        stripe = next(stripe for stripe in self.stripes()
                      if any(block["node"] == "node-1" for block in stripe["blocks"]))
        lost = next(block for block in stripe["blocks"] if block["node"] == "node-1")
        others = [block for block in stripe["blocks"] if block is not lost]
        for block in others[:2]:  # three of six are gone, four are needed
            self.files_of(block["block_id"])[0].unlink()
        expected = len(self.blocks_on("node-1"))
        self.lose("node-1")
        done = self.cluster.cli("recover-node", "node-1", "--delay", "0", "--json", check=False)
        self.assertEqual(done.returncode, NO_SURVIVORS, done.stderr)
        self.assertIn(f"1 of {expected} blocks", done.stderr)
        report = self.cluster.cli_json("recovery", "list")[0]
        self.assertEqual(report["state"], "partial")
        self.assertEqual(report["failed_blocks"], 1)
        self.assertEqual(report["done_blocks"], expected - 1)
        [blocked] = report["blocked"]
        self.assertEqual(blocked["block_id"], lost["block_id"])
        self.assertTrue(blocked["given_up"])
        self.assertEqual(blocked["attempts"], 3)
        for said in (lost["block_id"], "k = 4", others[0]["node"], "none of the directories"):
            self.assertIn(said, blocked["reason"])
        self.assertEqual(self.blocks_on("node-1"), [lost["block_id"]])
        self.assert_nothing_left()


class Trouble(RecoveryCase):
    """Recoveries that are steered or disturbed. One stream a node and a limit of their rate make
    them last: a block takes half a second or so, while the processors rest."""

    nodes = 12
    coordinator_settings = {
        "timeouts": {"dead_after_seconds": 4.0},
        "recovery": {"first_pause_seconds": 0.1, "max_attempts": 8}}
    block_bytes = 500_003
    file_bytes = 40 * 2_000_000

    def setUp(self) -> None:
        self.cluster.cli("limits", "set", "--cluster", "--repair-mbit", str(4 * self.nodes))

    def hurry(self) -> None:
        self.cluster.cli("limits", "reset", "--cluster")

    def begin(self, node: str) -> int:
        self.lost = self.blocks_on(node)
        self.lose(node)
        return self.recover(node, "--streams", "1", "--scheme", "rp", "--detach")["recovery_id"]

    def wait(self, recovery_id: int, state: str = "done") -> dict[str, Any]:
        self.hurry()
        wait_until(lambda: self.show(recovery_id)["state"] not in ("running", "paused"), 120,
                   "the recovery's end")
        report = self.show(recovery_id)
        self.assertEqual(report["state"], state, report)
        return report

    def wait_for_blocks(self, recovery_id: int, count: int) -> None:
        wait_until(lambda: self.show(recovery_id)["done_blocks"] >= count, 120, "blocks")

    def test_a_restarted_coordinator_goes_on_and_repairs_nothing_twice(self) -> None:
        recovery_id = self.begin("node-1")
        self.wait_for_blocks(recovery_id, 3)
        self.cluster.coordinator.kill()
        before = {block: self.files_of(block) for block in self.lost}
        self.cluster.coordinator.restart()
        after_restart = self.show(recovery_id)
        self.assertIn(after_restart["state"], ("running", "done"))
        report = self.wait(recovery_id)
        self.assertEqual(report["blocks"], len(self.lost))
        self.assertEqual(report["done_blocks"], len(self.lost))
        self.assertEqual(report["done_bytes"], len(self.lost) * self.block_bytes)
        self.assert_whole()
        for block, files in before.items():
            self.assertEqual(self.files_of(block)[:len(files)] if files else [], files, block)

    def test_pause_resume_cancel(self) -> None:
        recovery_id = self.begin("node-2")
        number = str(recovery_id)
        self.cluster.cli("recovery", "pause", number)
        wait_until(lambda: self.show(recovery_id)["running_blocks"] == 0, HANG, "quiet")
        paused = self.show(recovery_id)
        self.assertEqual(paused["state"], "paused")
        self.assertLess(paused["done_blocks"], len(self.lost))
        said = self.fails(case.FAILED, "recover-node", "node-2")
        self.assertIn(f"recovery {number} of node node-2 is paused", said)
        self.cluster.wait_idle()
        self.assertEqual(self.show(recovery_id)["done_blocks"], paused["done_blocks"])
        self.cluster.cli("recovery", "resume", number)
        self.wait_for_blocks(recovery_id, paused["done_blocks"] + 1)
        self.cluster.cli("recovery", "cancel", number)
        cancelled = self.wait(recovery_id, "cancelled")
        self.assertLess(cancelled["done_blocks"], len(self.lost))
        self.assert_nothing_left()
        # What is left can be asked for again.
        report = self.recover("node-2")
        self.assertEqual(report["state"], "done")
        self.assert_whole(strays=True)

    def test_one_helper_that_dies_on_the_way_is_left_out(self) -> None:
        recovery_id = self.begin("node-3")
        self.wait_for_blocks(recovery_id, 1)
        self.cluster.helpers["node-4"].kill()
        report = self.wait(recovery_id)
        self.assertEqual(report["done_blocks"], len(self.lost))
        self.cluster.helpers["node-4"].restart()
        self.cluster.wait_live(["node-4"])
        self.assert_nothing_left()
        places = self.places()
        for block_id in self.lost:
            self.assertNotEqual(places[block_id], "node-3")
            digest = next(block["sha256"] for block in self.manifest_blocks()
                          if block["block_id"] == block_id)
            content = (self.cluster.data_dir() / places[block_id] / block_id).read_bytes()
            self.assertEqual(sha256(content), digest, block_id)


if __name__ == "__main__":
    case.main()
