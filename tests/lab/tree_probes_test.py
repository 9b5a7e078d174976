#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repairs by trees over links that the cluster has measured itself: nobody wrote a speed down.
Nodes are in network namespaces, whose uplinks differ. Exit code 77 with "SKIP: reason" where
namespaces cannot be used."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "bench"), str(REPOSITORY / "tests" / "cluster")]

import case  # noqa: E402
from labkit import netns  # noqa: E402
from labkit.cluster import node_names  # noqa: E402
from labkit.links import Links  # noqa: E402

EXIT_SKIPPED = 77
PROBE_BYTES = "1MiB"


class MeasuredTrees(case.ClusterCase):
    nodes = 7
    code = "rs(6,4)"
    block_bytes = 2_000_003
    file_bytes = 4 * block_bytes - 12_345
    coordinator_settings = {"probe": {"max_bytes": "8MiB", "max_mbit": 100_000},
                            "defaults": {"link_mbit": 1000}}
    # Mb/s. Who sends slowly receives fast: a node of a path does both, one of a tree need not.
    uplinks = (12, 60, 16, 60, 20, 60, 60)
    downlinks = (60, 12, 60, 16, 60, 20, 60)
    network_links = Links(200, node_mbit=dict(zip(node_names(nodes), zip(uplinks, downlinks))))

    def setUp(self) -> None:
        self.lost = self.block(0, 0)

    def links(self) -> list[dict[str, Any]]:
        return self.cluster.cli_json("links")

    def test_probe_then_repair(self) -> None:
        self.assertEqual(self.links(), [])
        self.cluster.cli("probe", "--bytes", PROBE_BYTES)
        shared = {link["from"]: link["mbit"] for link in self.links()
                  if link["shared"] and link["to"] == ""}
        # Two streams out of a slow node have no more than one had: the node's uplink.
        for node, mbit in zip(self.cluster.node_ids, self.uplinks):
            if mbit > 20:  # others are slower than it, and may hide what it has
                continue
            self.assertIn(node, shared)
            self.assertGreater(shared[node], 0.6 * mbit)
            self.assertLess(shared[node], 1.6 * mbit)
        self.assertIn("for all streams together", self.cluster.cli("links").stdout)
        for scheme in ("rp-flow", "auto"):
            with self.subTest(scheme=scheme):
                plan = self.cluster.cli_json("plan", self.lost["block_id"], "--scheme", scheme)
                self.assertEqual(plan["scheme"], "rp-flow")
                self.assertGreater(len(plan["lanes"]), 1)
                self.repair(self.lost["block_id"], "--scheme", scheme, "--sha256",
                            self.lost["sha256"])
        self.assert_nothing_left()


if __name__ == "__main__":
    if reason := netns.why_not():
        print(f"SKIP: {reason}")
        sys.exit(EXIT_SKIPPED)
    case.main()
