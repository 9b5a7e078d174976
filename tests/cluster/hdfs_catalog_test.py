#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the coordinator knows of HDFS by itself: blocks from the helpers' reports, groups from a
NameNode's fsck, which a fake one answers."""

from __future__ import annotations

import json
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import case
from case import HANG
from fake_namenode import FakeNameNode
from hdfs_group import Group, make_volume
from labkit.cluster import Cluster, node_names
from labkit.process import wait_until

NODES = 10
CELL = 65536
ROW = 6 * CELL
REPORT_SECONDS = 0.3


class NamenodeStripes(unittest.TestCase):
    """Block i of each group is on node i + 1 of ten, and the last node has none."""

    def setUp(self) -> None:
        self.work = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.namenode = self.enterContext(FakeNameNode())
        self.nodes = node_names(NODES)
        for node in self.nodes:
            make_volume(self.volume(node), self.uuid(node))

    @staticmethod
    def uuid(node: str) -> str:
        return f"c8b9e6e2-0000-4000-8000-{node}"

    def start(self, **coordinator: dict[str, Any]) -> None:
        settings = {"hdfs": {"namenodes": [self.namenode.url], "refresh_seconds": 300},
                    "timeouts": {"dead_after_seconds": 3.0}, **coordinator}
        self.cluster = self.enterContext(Cluster(
            case.BIN_DIR, self.work, self.nodes, coordinator_settings=settings,
            helper_settings={"helper": {"store": "hdfs", "report_seconds": REPORT_SECONDS},
                             "timeouts": {"stall_seconds": 3.0, "drain_seconds": 5.0}}))

    def volume(self, node: str) -> Path:
        return self.work / "data" / node

    def make(self, group_bytes: int, number: int) -> Group:
        group = Group(group_bytes, cell=CELL, number=number)
        for index in range(len(group.blocks)):
            group.put(self.volume(self.nodes[index]), index)
        self.namenode.groups.append(group)
        return group

    def hdfs(self) -> dict[str, Any]:
        """Empty but for the number of blocks until anything is known."""
        return self.cluster.status().get("hdfs", {"blocks": 0})

    def await_blocks(self, blocks: int) -> None:
        wait_until(lambda: self.hdfs()["blocks"] == blocks, HANG, f"{blocks} blocks reported")

    def repair(self, group: Group, index: int) -> bytes:
        out = self.work / "out"
        self.cluster.cli("repair", group.name(index), "-o", out)
        return out.read_bytes()

    def loss(self, node: str) -> dict[str, Any]:
        return self.cluster.cli_json("recover-node", node, "--detach")

    def kill(self, node: str) -> None:
        self.cluster.helpers[node].kill()
        wait_until(lambda: self.cluster.node_status()[node]["state"] == "dead", HANG,
                   f"{node} dead")

    def test_blocks_without_facts_are_planned_and_repaired(self) -> None:
        groups = [self.make(3 * ROW + 777, 1), self.make(2 * CELL + 5, 2)]
        self.start()
        blocks = sum(bool(block) for group in groups for block in group.blocks)
        self.await_blocks(blocks)
        for group in groups:
            for index in (0, 1, 7):
                with self.subTest(group=group.number, index=index):
                    self.assertEqual(self.repair(group, index), group.blocks[index])
        # Several blocks whose lengths differ, the shortest first; with a length and without.
        for group, indices in ((groups[0], (2, 0, 8)), (groups[1], (2, 0, 7))):
            longest = len(group.blocks[0])
            for offset, length in ((0, None), (0, longest), (3, longest - 3), (3, 4)):
                with self.subTest(group=group.number, offset=offset, length=length):
                    self.repairs_into_files(group, indices, offset, length)
        # As HDFS's own logs, and its fsck, print it.
        printed = groups[0].name(1).replace(".blk_", ":blk_")
        self.cluster.cli("repair", printed, "-o", self.work / "out")
        self.assertEqual((self.work / "out").read_bytes(), groups[0].blocks[1])
        plan = json.loads(self.cluster.cli("plan", groups[0].name(2), "--json").stdout)
        self.assertEqual(plan["stripe_id"], f"hdfs.{groups[0].pool}.{groups[0].group_id}")
        self.assertNotIn("locations", self.namenode.queries[0])  # the key alone asks for them
        self.assertEqual(self.namenode.queries[0]["path"], ["/"])
        # A group that was made since the NameNode was asked last: it is asked again.
        new = self.make(ROW, 3)
        self.await_blocks(blocks + 9)
        wait_until(lambda: self.cluster.cli("plan", new.name(0), check=False).returncode == 0, HANG,
                   "the new group known")
        self.assertEqual(self.repair(new, 0), new.blocks[0])
        unknown = Group(ROW, cell=CELL, number=9)
        self.refuses(unknown.name(0), "the NameNode does not know its block group")
        groups[0].stamp -= 1
        self.refuses(groups[0].name(0), "its block group has generation stamp 1001")
        self.assertIn("HDFS stores its blocks itself", self.cluster.cli(
            "repair", new.name(0), "--to", self.nodes[9], check=False).stderr)

    def repairs_into_files(self, group: Group, indices: tuple[int, ...], offset: int,
                           length: int | None) -> None:
        lengths = [] if length is None else ["--length", str(length)]
        report = self.cluster.cli_json("repair", *map(group.name, indices), "-d", self.work,
                                       "--offset", str(offset), *lengths)
        wanted = [group.blocks[index][offset:][:length] for index in indices]
        self.assertEqual([(self.work / group.name(index)).read_bytes() for index in indices],
                         wanted)
        self.assertEqual(report["bytes"], sum(map(len, wanted)))

    def refuses(self, block: str, reason: str) -> None:
        done = self.cluster.cli("plan", block, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(reason, done.stderr)

    def test_without_a_namenode_it_says_so(self) -> None:
        group = self.make(ROW, 1)
        self.start(hdfs={})
        self.await_blocks(9)
        self.refuses(group.name(0), "no NameNode is configured")
        self.assertFalse(self.hdfs()["namenode_configured"])
        self.assertIn("no NameNode is configured", self.cluster.cli("status").stdout)

    def test_an_answer_that_was_cut_off_changes_nothing(self) -> None:
        group = self.make(ROW, 1)
        self.start(hdfs={"namenodes": [self.namenode.url], "refresh_seconds": 1})
        wait_until(lambda: self.hdfs()["groups"] == 1, HANG, "a group known")
        self.await_blocks(9)
        self.namenode.cut_off = True
        self.make(ROW, 2)
        wait_until(lambda: "is incomplete" in self.hdfs()["namenode_error"], HANG, "an error told")
        asked = len(self.namenode.queries)
        wait_until(lambda: len(self.namenode.queries) > asked + 1, HANG, "more attempts")
        hdfs = self.hdfs()
        self.assertEqual(hdfs["groups"], 1)
        self.assertGreater(hdfs["groups_age_seconds"], 1)
        self.assertEqual(self.repair(group, 3), group.blocks[3])
        self.namenode.cut_off = False
        wait_until(lambda: self.hdfs()["groups"] == 2, HANG, "both groups known")
        self.assertEqual(self.hdfs()["namenode_error"], "")

    def test_of_an_ha_pair_the_active_one_is_heard(self) -> None:
        group = self.make(ROW, 1)
        other = self.enterContext(FakeNameNode())
        other.groups = self.namenode.groups
        self.namenode.standby = True
        self.start(hdfs={"namenodes": ["http://127.0.0.1:1", self.namenode.url, other.url],
                         "refresh_seconds": 1})
        wait_until(lambda: self.hdfs()["groups"] == 1, HANG, "a group known")
        self.await_blocks(9)
        self.assertEqual(self.repair(group, 3), group.blocks[3])
        other.standby = True
        wait_until(lambda: "FAILED" in self.hdfs()["namenode_error"], HANG, "an error told")
        self.assertIn(other.url, self.hdfs()["namenode_error"])
        self.namenode.standby = False
        self.make(ROW, 2)
        wait_until(lambda: self.hdfs()["groups"] == 2, HANG, "the new active one heard")
        self.assertEqual(self.hdfs()["namenode_error"], "")

    def test_recover_node_shows_what_hdfs_rebuilds(self) -> None:
        kept, deleted, lost_twice = (self.make(2 * ROW, number) for number in (1, 2, 3))
        self.start(hdfs={"namenodes": [self.namenode.url], "refresh_seconds": 2})
        self.await_blocks(3 * 9)
        node, spare = self.nodes[4], self.nodes[9]
        live = self.loss(node)
        self.assertEqual((live["state"], live["lost"]["blocks"]), ("live", 0))
        self.assertIn("none of its blocks is lost", self.cluster.cli("recover-node", node).stdout)
        lost_twice.file(self.volume(self.nodes[0]), 0).unlink()
        self.await_blocks(3 * 9 - 1)
        self.kill(node)
        block_bytes = len(kept.blocks[4])
        loss = self.loss(node)
        self.assertEqual(loss["lost"], {"blocks": 3, "bytes": 3 * block_bytes})
        self.assertEqual(loss["outstanding"]["blocks"], 3)
        self.assertEqual(loss["by_missing"], [2, 1, 0])
        self.assertTrue(any("no repair is running" in hint for hint in loss["hints"]))
        wait_until(lambda: self.hdfs()["degraded_groups"] == 3, HANG, "three degraded groups")
        refused = self.cluster.cli("recover-node", node, "--to", spare, check=False)
        self.assertIn("HDFS decides", refused.stderr)
        follow = subprocess.Popen(self.cluster.command("recover-node", node, "--json"),
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(follow.stdout.close)
        self.addCleanup(lambda: follow.poll() is None and follow.kill())
        # A stale copy elsewhere is none.
        kept.stamp -= 1
        kept.put(self.volume(spare), 4)
        kept.stamp += 1
        lost_twice.put(self.volume(spare), 4)
        wait_until(lambda: self.loss(node)["rebuilt"]["blocks"] == 1, HANG, "one block rebuilt")
        self.namenode.groups.remove(deleted)
        wait_until(lambda: self.loss(node)["gone"]["blocks"] == 1, HANG, "one group gone")
        outstanding = {"blocks": 1, "bytes": block_bytes}
        self.assertEqual(self.loss(node)["outstanding"], outstanding)
        # A coordinator that starts again still knows what the dead node had, and learns the rest.
        self.cluster.coordinator.restart()
        self.assertEqual(self.loss(node)["lost"], {"blocks": 3, "bytes": 3 * block_bytes})
        wait_until(lambda: self.loss(node)["outstanding"] == outstanding, HANG, "all known again")
        wait_until(lambda: self.loss(node)["unreported_nodes"] == 0, HANG, "all to have reported")
        wait_until(lambda: self.loss(node)["by_missing"] == [1, 0, 0], HANG, "all blocks known")
        self.assertIsNone(follow.poll())
        kept.meta_file(self.volume(spare), 4).with_name(
            f"blk_{kept.block_id(4)}_{kept.stamp - 1}.meta").unlink()
        kept.put(self.volume(spare), 4)
        output, _ = follow.communicate(timeout=HANG)
        self.assertEqual(follow.returncode, 0)
        self.assertEqual(json.loads(output)["rebuilt"], {"blocks": 2, "bytes": 2 * block_bytes})

    def test_the_namenode_says_which_datanode_is_dead(self) -> None:
        group = self.make(2 * ROW, 1)
        self.namenode.contacts = {self.uuid(node): 1 for node in self.nodes}
        self.start()
        self.await_blocks(9)
        node = self.nodes[4]
        wait_until(lambda: self.cluster.node_status()[node]["state_in_hdfs"] == "live", HANG,
                   "the NameNode's word")
        self.assertEqual(self.cluster.node_status()[node]["troubles"], [])
        # Its DataNode has crashed, and its helper lives.
        self.namenode.contacts[self.uuid(node)] = 640
        self.namenode.dead = {self.uuid(node)}
        self.namenode.safe_mode = "Safe mode is ON. It was turned on manually."
        wait_until(lambda: self.loss(node)["state"] == "dead", HANG, "the DataNode dead")
        loss = self.loss(node)
        self.assertEqual((loss["helper_state"], loss["state_in_hdfs"]), ("live", "dead"))
        self.assertGreaterEqual(loss["seconds_since_heartbeat"], 640)
        self.assertEqual(loss["outstanding"]["blocks"], 1)
        [hint] = [hint for hint in loss["hints"] if "no repair is running" in hint]
        self.assertIn("safe mode", hint)
        self.assertNotIn("10.5", hint)
        self.assertEqual(self.hdfs()["degraded_groups"], 1)
        status = self.cluster.cli("status").stdout
        self.assertIn(f"trouble with {node}:", status)
        self.assertIn("the NameNode counts its DataNode as dead", status)
        self.assertIn("the NameNode orders no repairs: Safe mode is ON.", status)
        self.assertEqual(self.repair(group, 4), group.blocks[4])
        # It is back.
        self.namenode.dead, self.namenode.safe_mode = set(), ""
        self.namenode.contacts[self.uuid(node)] = 1
        wait_until(lambda: self.loss(node)["state"] == "live", HANG, "the DataNode live again")
        # Its helper alone has ended.
        self.kill(node)
        wait_until(lambda: self.loss(node)["state"] == "live", HANG, "only the helper dead")
        self.assertIn("start the helper", " ".join(self.loss(node)["hints"]))
        self.assertEqual(self.loss(node)["lost"]["blocks"], 0)

    def test_a_failed_volume_is_tolerated_and_comes_back(self) -> None:
        node = self.nodes[0]
        group = self.make(2 * ROW, 1)
        self.start()
        self.await_blocks(9)
        helper = self.cluster.helpers[node]
        second = self.work / "second"
        helper.settings["helper"]["roots"] = [str(second), *helper.settings["helper"]["roots"]]
        helper.restart()
        self.cluster.wait_live([node])
        self.await_blocks(9)
        wait_until(lambda: self.cluster.node_status()[node]["failed_roots"], HANG, "it to be told")
        self.assertIn(str(second), self.cluster.node_status()[node]["failed_roots"][0])
        self.assertIn(f"cannot use a directory of [helper] roots: {second}",
                      self.cluster.cli("status").stdout)
        make_volume(second, self.uuid(node))
        other = Group(ROW, cell=CELL, number=2)
        other.put(second, 0)
        self.await_blocks(10)
        wait_until(lambda: not self.cluster.node_status()[node]["failed_roots"], HANG, "it back")
        # And one that fails while the helper runs: the other one is used on.
        second.rename(self.work / "away")
        self.await_blocks(9)
        self.assertEqual(self.repair(group, 1), group.blocks[1])
        wait_until(lambda: self.cluster.node_status()[node]["block_count"] == 1, HANG, "one block")

    def test_a_node_that_returns_with_a_stale_copy_is_not_read(self) -> None:
        group = self.make(2 * ROW, 1)
        self.start()
        self.await_blocks(9)
        node = self.nodes[2]
        self.kill(node)
        self.assertEqual(self.loss(node)["outstanding"]["blocks"], 1)
        volume = self.volume(node)
        group.meta_file(volume, 2).rename(
            group.meta_file(volume, 2).with_name(f"blk_{group.block_id(2)}_{group.stamp - 1}.meta"))
        self.cluster.helpers[node].restart()
        self.cluster.wait_live([node])
        self.await_blocks(9)
        # What it has is not the block, and the group still lacks one.
        wait_until(lambda: self.hdfs()["degraded_groups"] == 1, HANG, "a degraded group")
        plan = self.cluster.cli("plan", group.name(0), "--format", "json").stdout
        self.assertNotIn(group.name(2), plan)
        self.assertEqual(self.repair(group, 2), group.blocks[2])

    def test_a_restarted_coordinator_is_told_all_again(self) -> None:
        group = self.make(ROW, 1)
        self.start()
        self.await_blocks(9)
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.nodes)
        self.await_blocks(9)
        wait_until(lambda: self.hdfs()["groups"] == 1, HANG, "a group known")
        self.assertEqual(self.repair(group, 5), group.blocks[5])

    def test_a_corrupt_block_that_hdfs_replaced_is_good_again(self) -> None:
        group = self.make(3 * ROW, 1)
        self.start()
        self.await_blocks(9)
        file = group.file(self.volume(self.nodes[5]), 5)
        content = bytearray(file.read_bytes())
        content[2 * CELL] ^= 1
        file.write_bytes(content)
        self.cluster.wait_settled()
        self.cluster.cli("repair", group.name(0), "--scheme", "rp", "-o", self.work / "out")
        corrupt = self.cluster.status()["corrupt_blocks"]
        self.assertEqual([block["block_id"] for block in corrupt], [group.name(5)])
        self.assertIsNone(corrupt[0]["repair"])
        self.assertIn("HDFS rebuilds the block", self.cluster.cli("status").stdout)
        file.unlink()
        wait_until(lambda: not self.cluster.status()["corrupt_blocks"], HANG, "the block forgotten")
        group.put(self.volume(self.nodes[5]), 5)
        self.await_blocks(9)
        self.assertEqual(self.repair(group, 0), group.blocks[0])


if __name__ == "__main__":
    case.main()
