#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repairs by trees over links that the cluster has measured itself: nobody wrote a speed down. The
uplinks differ because each helper has a limit of its own on what it sends for repairs."""

from __future__ import annotations

from typing import Any

import case
from case import HANG, ClusterCase
from labkit.process import wait_until

PROBE_BYTES = "512KiB"


class MeasuredTrees(ClusterCase):
    nodes = 7
    code = "rs(6,4)"
    block_bytes = 2_000_003
    file_bytes = 4 * block_bytes - 12_345
    coordinator_settings = {"probe": {"max_bytes": "8MiB", "max_mbit": 100_000},
                            "defaults": {"link_mbit": 1000}}
    # Of what each node sends for repairs, in Mb/s.
    limits = (12, 20, 28, 36, 44, 52, 60)

    def setUp(self) -> None:
        self.lost = self.block(0, 0)
        self.cluster.wait_live(self.cluster.node_ids)
        for node, mbit in zip(self.cluster.node_ids, self.limits):
            self.cluster.cli("limits", "set", "--node", node, "--repair-mbit", str(mbit))
        wait_until(lambda: self.known_limits() == list(self.limits), HANG, "the limits")

    def known_limits(self) -> list[float]:
        return [node["repair_mbit"] for node in self.cluster.cli_json("limits")["nodes"]]

    def links(self) -> list[dict[str, Any]]:
        return self.cluster.cli_json("links")

    def test_probe_then_repair(self) -> None:
        self.assertEqual(self.links(), [])
        self.cluster.cli("probe", "--bytes", PROBE_BYTES)
        shared = {link["from"]: link["mbit"] for link in self.links()
                  if link["shared"] and link["to"] == ""}
        # Two streams out of a node have no more than one had: the node's limit.
        for node, mbit in zip(self.cluster.node_ids, self.limits):
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
    case.main()
