#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repairs by tens of trees at once, through real daemons: right bytes by each transport, with
verification and after faults; and what so many lanes take of a node."""

from __future__ import annotations

import itertools
import random
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from case import HANG, ClusterCase, sha256
from labkit.cluster import node_names
from labkit.process import wait_until

LEAST_LANES = 30
# A part has a thread of its own, and one more where it waits for disks; lanes have none.
MOST_THREADS_OF_PART = 4
MOST_BUFFER_BYTES = 4 << 20
# How fast the client's link is must be known, or each tree sends to it by one helper.
ASKED = ("--slice-size", "4KiB", "--rack", "/clients")


class Trees(ClusterCase):
    """The speed of each pair is written down, so that a packing of many trees is the best plan.
    The links are those of loopback: what is tested is the plan's way through the daemons."""

    nodes = 15
    code = "rs(14,10)"
    block_bytes = 2_000_003
    file_bytes = 10 * block_bytes - 12_345
    redis = True
    helper_settings = {"helper": {"rack": "/helpers"},
                       "timeouts": {"stall_seconds": 10.0, "drain_seconds": 5.0}}

    @classmethod
    def setUpClass(cls) -> None:
        table = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "links.txt"
        drawn = random.Random(20)
        table.write_text("/helpers /clients 150\n" + "".join(
            f"{sender} {receiver} {drawn.uniform(0.5, 3):.2f}\n"
            for sender, receiver in itertools.permutations(node_names(cls.nodes), 2)))
        cls.coordinator_settings = {"topology": {"links": str(table)},
                                    "defaults": {"link_mbit": 150}}
        super().setUpClass()

    def setUp(self) -> None:
        self.lost = self.block(0, 0)
        self.cluster.wait_live(self.cluster.node_ids)

    def plan(self, *arguments: str) -> dict[str, Any]:
        return self.cluster.cli_json("plan", self.lost["block_id"], *ASKED, *arguments)

    def rebuild(self, *arguments: str) -> dict[str, Any]:
        return self.repair(self.lost["block_id"], "--sha256", self.lost["sha256"], *ASKED,
                           *arguments)

    def test_auto_takes_many_trees(self) -> None:
        plan = self.plan()
        self.assertEqual(plan["scheme"], "rp-flow")
        self.assertGreaterEqual(len(plan["lanes"]), LEAST_LANES)
        dot = self.cluster.cli("plan", self.lost["block_id"], *ASKED, "--format", "dot").stdout
        # Another plan: helpers may have told meanwhile that they do less than before.
        self.assertGreaterEqual(dot.count("subgraph"), LEAST_LANES)
        self.assertIn(" %, slices ", dot)

    def test_right_bytes_by_each_transport(self) -> None:
        for transport in ("tcp", "redis"):
            with self.subTest(transport=transport):
                self.rebuild("--transport", transport)
        self.assert_nothing_left()

    def test_a_range_and_few_slices(self) -> None:
        content = self.bytes_of(self.lost["block_id"])
        for begin, length in ((12_345, 777_777), (0, 4096), (5, 20_000)):
            self.repair(self.lost["block_id"], "--scheme", "rp-flow", *ASKED, "--offset",
                        str(begin), "--length", str(length), "--sha256",
                        sha256(content[begin:begin + length]))

    def test_verified_by_parity(self) -> None:
        for verify in ("parity", "locate"):
            self.rebuild("--scheme", "rp-flow", "--verify", verify)
        self.assert_nothing_left()

    def test_to_a_node(self) -> None:
        holders = {block["node"] for block in self.manifest["stripes"][0]["blocks"]}
        [spare] = set(self.cluster.node_ids) - holders
        self.cluster.cli("repair", self.lost["block_id"], "--to", spare, *ASKED)
        stored = self.cluster.helpers[spare].root / self.lost["block_id"]
        self.assertEqual(sha256(stored.read_bytes()), self.lost["sha256"])
        stored.unlink()
        self.assert_nothing_left()

    def limited(self, mbit: int) -> None:
        self.cluster.cli("limits", "set", "--node", ",".join(self.cluster.node_ids),
                         "--repair-mbit", str(mbit))
        wait_until(lambda: all(node["repair_mbit"] == mbit
                               for node in self.cluster.cli_json("limits")["nodes"]), HANG,
                   "the limits")

    def begin(self, *arguments: str) -> subprocess.Popen:
        """A repair that takes several seconds, under way."""
        self.limited(3)
        self.addCleanup(self.limited, 0)
        process = subprocess.Popen(
            self.cluster.command("--json", "repair", self.lost["block_id"], "-o",
                                 self.work / "out", "--scheme", "rp-flow", "--sha256",
                                 self.lost["sha256"], *ASKED, *arguments),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        wait_until(lambda: len(self.helpers_at_work()) >= 12, HANG, "the repair to run")
        return process

    def ends_well(self, process: subprocess.Popen) -> None:
        self.limited(0)
        said = process.communicate(timeout=HANG)[1]
        self.assertEqual(process.returncode, 0, said.decode())
        self.assert_nothing_left()

    def test_helper_killed(self) -> None:
        for transport in ("tcp", "redis"):
            with self.subTest(transport=transport):
                process = self.begin("--transport", transport)
                victim = self.cluster.helpers[self.helpers_at_work()[3]]
                victim.kill()
                try:
                    self.limited_but(victim, 0)
                    said = process.communicate(timeout=HANG)[1]
                finally:
                    victim.restart()
                self.cluster.wait_live(self.cluster.node_ids)
                self.assertEqual(process.returncode, 0, said.decode())
                self.assert_nothing_left()

    def limited_but(self, victim: Any, mbit: int) -> None:
        others = [node for node in self.cluster.node_ids
                  if self.cluster.helpers[node] is not victim]
        self.cluster.cli("limits", "set", "--node", ",".join(others), "--repair-mbit", str(mbit))

    def test_what_a_node_gives(self) -> None:
        """Tens of lanes take the memory of a part and not of so many, and no threads."""
        before = self.threads()
        process = self.begin()
        status = self.cluster.node_status()
        for name, threads in self.threads().items():
            self.assertLessEqual(threads - before[name], MOST_THREADS_OF_PART, name)
        buffers = {name: node["buffer_bytes"] for name, node in status.items()}
        self.assertLessEqual(max(buffers.values()), MOST_BUFFER_BYTES, buffers)
        self.ends_well(process)

    def threads(self) -> dict[str, int]:
        return {name: len(list(Path(f"/proc/{helper.pid}/task").iterdir()))
                for name, helper in self.cluster.helpers.items()}


if __name__ == "__main__":
    import case
    case.main()
