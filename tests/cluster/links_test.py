#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Link speeds through real daemons: probes, what is known after them, and their limits."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import case
from case import UNAVAILABLE, USAGE, ClusterCase
from labkit.process import run

SOME = ("node-1", "node-2", "node-3", "node-4")


class Links(ClusterCase):
    nodes = 6
    coordinator_settings = {"probe": {"max_bytes": "8MiB", "max_mbit": 100_000}}

    def links(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {(link["from"], link["to"]): link for link in self.cluster.cli_json("links")}

    def test_a_probe_measures_every_link_both_ways(self) -> None:
        before = {pair: link["samples"] for pair, link in self.links().items()}
        measured = self.cluster.cli_json("probe", "--nodes", ",".join(SOME), "--bytes", "1MiB")
        pairs = set(itertools.permutations(SOME, 2))
        self.assertEqual({(link["from"], link["to"]) for link in measured}, pairs)
        for link in measured:
            self.assertGreater(link["mbit"], 0)
        after = self.links()
        for pair in pairs:
            self.assertEqual(after[pair]["samples"], before.get(pair, 0) + 1)
            self.assertLess(after[pair]["age_seconds"], 30)
        self.assert_nothing_left()

    def test_what_is_printed_can_be_written_down(self) -> None:
        self.cluster.cli("probe", "--nodes", "node-1,node-2", "--bytes", "64KiB")
        table = self.work / "links.txt"
        table.write_text(self.cluster.cli("links").stdout)
        coordinator = self.cluster.coordinator
        coordinator.settings["topology"] = {"links": str(table)}
        coordinator.restart()
        try:
            written = self.links()
            self.assertEqual(written["node-1", "node-2"]["samples"], 0)
            self.assertIn("# written down", self.cluster.cli("links").stdout)
        finally:
            del coordinator.settings["topology"]
            coordinator.restart()
            self.cluster.wait_live(self.cluster.node_ids)
        self.assertEqual(self.links(), {}, "what was measured does not outlive the coordinator")

    def test_a_requestor_says_what_its_link_is(self) -> None:
        """A plan counts on no more than that, from an option or from the environment."""
        block = self.block(0, 0)["block_id"]

        words = ("plan", block, "--scheme", "rp")
        unknown = self.cluster.cli_json(*words)["expected_seconds"]
        slow = self.cluster.cli_json(*words, "--link-mbit", "8")["expected_seconds"]
        self.assertGreater(slow, 10 * unknown, "1 Gb/s is the default")
        said = run(self.cluster.command(*words, "--json"), environment={"ECPIPE_LINK_MBIT": "8"})
        self.assertEqual(json.loads(said.stdout)["expected_seconds"], slow)
        for rate in ("-1", "nan", "1e300"):
            said = self.fails(USAGE, "plan", block, f"--link-mbit={rate}")
            self.assertIn("--link-mbit", said)
        self.fails(USAGE, "plan", block, "--link-mbit", "fast")

    def test_what_is_refused(self) -> None:
        self.fails(USAGE, "probe", "--nodes", "node-1")
        self.fails(USAGE, "probe", "--nodes", "node-1,node-1")
        self.fails(USAGE, "probe", "--bytes", "9MiB")
        self.fails(USAGE, "probe", "--bytes", "1")
        said = self.fails(UNAVAILABLE, "probe", "--nodes", "node-1,node-2,nobody")
        self.assertIn("node nobody is not registered", said)
        self.assertIn(("node-1", "node-2"), self.links(), "the others were measured")

    def test_a_helper_that_is_gone_is_named(self) -> None:
        self.cluster.helpers["node-6"].kill()
        said = self.fails(UNAVAILABLE, "probe", "--nodes", "node-1,node-2,node-6",
                          "--bytes", "64KiB")
        self.assertIn("node-2 to node-6: ", said)
        self.cluster.helpers["node-6"].restart()
        self.cluster.wait_live(["node-6"])
        self.cluster.cli("probe", "--nodes", "node-1,node-2,node-6", "--bytes", "64KiB")
        self.assert_nothing_left()


class Rest(ClusterCase):
    nodes = 3
    code = "rs(3,2)"
    coordinator_settings = {"probe": {"max_mbit": 1}}

    def test_nodes_rest_between_rounds(self) -> None:
        # 128 KiB at 1 Mb/s: a second between rounds, also those of two commands.
        begun = time.monotonic()
        self.cluster.cli("probe", "--nodes", "node-1,node-2,node-3", "--bytes", "128KiB")
        self.cluster.cli("probe", "--nodes", "node-1,node-2", "--bytes", "64KiB")
        self.assertGreater(time.monotonic() - begun, 2 * 128 * 1024 * 8 / 1e6)


if __name__ == "__main__":
    case.main()
