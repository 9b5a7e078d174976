#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of rate and concurrency on real daemons: changed while repairs run, kept over restarts."""

from __future__ import annotations

import subprocess
import time
from typing import Any

import case
from case import HANG, NOT_FOUND, USAGE, ClusterCase, sha256
from labkit.process import wait_until

MBIT = 1e6 / 8
SLOW = 10.0  # Mb/s: a block takes 13 s, which is long beside what a command takes anywhere
SLOWER = 4.0  # and this 34 s, for what is looked at several times


class LimitsCase(ClusterCase):
    block_bytes = 16 << 20
    file_bytes = 4 * block_bytes

    def setUp(self) -> None:
        self.cluster.cli("limits", "reset", "--cluster")
        self.cluster.cli("limits", "reset", "--node", ",".join(self.cluster.node_ids))
        self.await_rates({node: 0 for node in self.cluster.node_ids})

    def limits(self) -> dict[str, Any]:
        return self.cluster.cli_json("limits")

    def node_limits(self) -> dict[str, dict[str, Any]]:
        return {node["node"]: node for node in self.limits()["nodes"]}

    def await_rates(self, rates: dict[str, float]) -> None:
        def hold() -> bool:
            nodes = self.node_limits()
            return all(nodes[node]["repair_mbit"] == rate for node, rate in rates.items())
        wait_until(hold, HANG, f"the limits {rates}")

    def limit_all(self, mbit: float) -> None:
        self.cluster.cli("limits", "set", "--node", ",".join(self.cluster.node_ids),
                         "--repair-mbit", str(mbit))
        self.await_rates({node: mbit for node in self.cluster.node_ids})

    def begin(self, *arguments: Any) -> subprocess.Popen:
        process = subprocess.Popen(self.cluster.command("-q", *arguments),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def sending_rates(self) -> dict[str, tuple[float, float]]:
        """What each node sends over two seconds, in bytes a second: at least, and at most, since
        its counter is read at some time during a question."""
        def sent() -> tuple[float, dict[str, int], float]:
            asked = time.monotonic()
            status = self.cluster.node_status()
            return (asked, {name: node["data_bytes_sent"] for name, node in status.items()},
                    time.monotonic())
        asked, first, answered = sent()
        wait_until(lambda: time.monotonic() > answered + 2.0, HANG, "two seconds of traffic")
        asked_again, second, end = sent()
        return {node: ((second[node] - first[node]) / (end - asked),
                       (second[node] - first[node]) / (asked_again - answered)) for node in first}

    def assert_rates(self, nodes: list[str], limit: float, *, together: bool = False) -> None:
        """None of them, or all together, is above the limit whenever one looks, and all are close
        to it once: in between a busy machine may have other things to do."""
        for _ in range(5):
            rates = self.sending_rates()
            seen = [rates[node] for node in nodes]
            if together:
                seen = [(sum(low for low, _ in seen), sum(high for _, high in seen))]
            self.assertLess(max(low for low, _ in seen), limit * 1.3, seen)
            if min(high for _, high in seen) > limit * 0.7:
                return
        self.fail(f"not close to {limit}: {seen}")


class PerNode(LimitsCase):
    def test_a_limit_holds_and_a_change_reaches_a_repair_under_way(self) -> None:
        self.limit_all(SLOWER)
        block = self.block(0, 0)
        begun = time.monotonic()
        process = self.begin("repair", block["block_id"], "-o", self.work / "slow",
                             "--scheme", "rp")
        wait_until(lambda: len(self.helpers_at_work()) == 4, HANG, "the repair to run")
        self.assert_rates(self.helpers_at_work(), SLOWER * MBIT)
        self.assertIsNone(process.poll())
        self.cluster.cli("limits", "reset", "--node", ",".join(self.cluster.node_ids))
        self.assertEqual(process.wait(HANG), 0)
        # The change has come with a heartbeat: by the old limit it would still run.
        self.assertLess(time.monotonic() - begun, 0.9 * self.block_bytes / (SLOWER * MBIT))
        self.assertEqual(sha256((self.work / "slow").read_bytes()), block["sha256"])
        self.assert_nothing_left()

    def test_a_limit_longer_than_the_stall_timeout_fails_nothing(self) -> None:
        self.limit_all(30)  # 4.5 s; parts give up after 3 s in which nothing moves
        block = self.block(0, 1)
        report = self.repair(block["block_id"], "--scheme", "ppr")
        self.assertEqual(sha256((self.work / "out").read_bytes()), block["sha256"])
        self.assertGreater(report["seconds"], self.block_bytes / (30 * MBIT) * 0.9)

    def timed_read(self, name: str) -> tuple[float, bytes]:
        output = self.work / name
        begun = time.monotonic()
        self.cluster.cli("-q", "read", self.block(0, 2)["block_id"], "--length", "4MiB",
                         "--scheme", "rp", "-o", output)
        return time.monotonic() - begun, output.read_bytes()

    def test_a_degraded_read_goes_before_a_throttled_recovery(self) -> None:
        self.limit_all(SLOW)  # the recovery takes 13 s and more, the read 3.4 s
        alone, alone_bytes = self.timed_read("alone")
        recovery = self.cluster.cli_json("recover-node", "node-1", "--even-if-live", "--detach",
                                         "--delay", "0")["recovery_id"]
        try:
            wait_until(lambda: len(self.helpers_at_work()) >= 4, HANG, "the recovery to run")
            # Were they equals, a read would have half of the rate or less. The machine may be busy
            # during one, but not during all.
            for _ in range(3):
                beside, bytes_read = self.timed_read("beside")
                self.assertEqual(bytes_read, alone_bytes)
                if beside < alone * 1.5:
                    break
            else:
                self.fail(f"{beside} s beside a recovery, {alone} s alone")
            shown = self.cluster.cli_json("recovery", "show", str(recovery))
            self.assertEqual(shown["state"], "running", "it was there all the time")
        finally:
            self.cluster.cli("recovery", "cancel", str(recovery))
        self.cluster.wait_idle()

    def test_sessions_are_limited(self) -> None:
        self.cluster.cli("limits", "set", "--node", "node-3", "--max-sessions", "1")
        wait_until(lambda: self.node_limits()["node-3"]["max_sessions"] == 1, HANG, "the limit")
        self.assertEqual(self.node_limits()["node-3"]["set_max_sessions"], 1)
        self.assertIsNone(self.node_limits()["node-4"]["set_max_sessions"])
        self.cluster.cli("limits", "reset", "--node", "node-3")
        wait_until(lambda: self.node_limits()["node-3"]["max_sessions"] > 1, HANG, "the old limit")

    def test_as_json_a_change_shows_the_limits_that_are_set_then(self) -> None:
        shown = self.cluster.cli_json("limits", "set", "--node", "node-3,node-4",
                                      "--repair-mbit", "50")
        rates = {node["node"]: node["set_repair_mbit"] for node in shown["nodes"]}
        self.assertEqual((rates["node-3"], rates["node-4"], rates["node-5"]), (50, 50, None))
        self.await_rates({"node-3": 50, "node-4": 50})
        shown = self.cluster.cli_json("limits", "set", "--cluster", "--max-running", "77")
        self.assertEqual((shown["cluster"]["max_running"], shown["cluster"]["max_running_is_set"]),
                         (77, True))
        shown = self.cluster.cli_json("limits", "reset", "--cluster")
        self.assertFalse(shown["cluster"]["max_running_is_set"])
        self.assertEqual(self.cluster.cli("limits", "reset", "--node", "node-3,node-4").stdout, "")

    def test_what_is_refused(self) -> None:
        self.fails(USAGE, "limits", "set", "--cluster")
        self.fails(USAGE, "limits", "set", "--repair-mbit", "5")
        self.fails(USAGE, "limits", "set", "--cluster", "--node", "node-1", "--repair-mbit", "5")
        self.fails(USAGE, "limits", "set", "--cluster", "--max-sessions", "5")
        self.fails(USAGE, "limits", "set", "--node", "node-1", "--max-running", "5")
        self.fails(USAGE, "limits", "set", "--cluster", "--repair-mbit", "0.5")
        self.fails(USAGE, "limits", "set", "--cluster", "--repair-mbit", "-1")
        self.fails(USAGE, "limits", "set", "--cluster", "--repair-mbit", "nan")
        self.fails(USAGE, "limits", "set", "--cluster", "--max-running", "0")
        said = self.fails(NOT_FOUND, "limits", "set", "--node", "nobody", "--repair-mbit", "5")
        self.assertIn("nobody", said)
        self.assertFalse(self.limits()["cluster"]["repair_mbit_is_set"])


class OfARequestor(LimitsCase):
    def test_it_holds_for_all_that_comes(self) -> None:
        """Of a star: four streams share it, and helpers wait for it longer than for a dead peer."""
        block, length, mbit = self.block(0, 1), 4 << 20, 20
        report = self.cluster.cli_json(
            "repair", block["block_id"], "-o", self.work / "range", "--length", str(length),
            "--scheme", "conventional", "--limit-mbit", str(mbit))
        self.assertGreater(report["seconds"], 0.95 * 4 * length / (mbit * MBIT))
        self.assertEqual(report["attempts"], 1)
        self.assertEqual((self.work / "range").read_bytes(),
                         self.bytes_of(block["block_id"])[:length])

    def test_what_is_refused(self) -> None:
        block = self.block(0, 1)["block_id"]
        said = self.fails(USAGE, "repair", block, "--to", "node-7", "--limit-mbit", "20")
        self.assertIn("ecpipe limits set", said)
        self.fails(USAGE, "repair", block, "-o", self.work / "x", "--limit-mbit", "9")
        self.fails(USAGE, "read", block, "--limit-mbit", "0")


class ClusterWide(LimitsCase):
    def test_all_together_keep_to_the_limit(self) -> None:
        total = 4 * SLOWER  # of four helpers on the path
        self.cluster.cli("limits", "set", "--cluster", "--repair-mbit", str(total))
        # Idle helpers have what they would have if all seven began at once.
        wait_until(lambda: all(0 < node["repair_mbit"] < total / 6
                               for node in self.node_limits().values()), HANG, "shares")
        process = self.begin("repair", self.block(0, 0)["block_id"], "-o", self.work / "shared",
                             "--scheme", "rp")
        wait_until(lambda: len(self.helpers_at_work()) == 4, HANG, "the repair to run")
        self.assert_rates(self.cluster.node_ids, total * MBIT, together=True)
        self.assertIsNone(process.poll())
        self.cluster.cli("limits", "reset", "--cluster")
        self.assertEqual(process.wait(HANG), 0)

    def test_repairs_at_once_are_limited(self) -> None:
        self.cluster.cli("limits", "set", "--cluster", "--max-running", "1")
        self.limit_all(SLOW)
        process = self.begin("repair", self.block(0, 0)["block_id"], "-o", self.work / "first")
        wait_until(lambda: len(self.helpers_at_work()) >= 4, HANG, "the repair to run")
        done = self.cluster.cli("repair", self.block(0, 1)["block_id"], "-o", self.work / "second",
                                check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("limit of 1 repairs", done.stderr)
        process.kill()
        process.wait()


class Restart(LimitsCase):
    def test_limits_outlive_the_coordinator_and_helpers(self) -> None:
        self.cluster.cli("limits", "set", "--node", "node-2", "--repair-mbit", "50",
                         "--max-sessions", "9")
        self.cluster.cli("limits", "set", "--cluster", "--max-running", "77")
        self.await_rates({"node-2": 50})
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)
        shown = self.limits()
        self.assertEqual(shown["cluster"]["max_running"], 77)
        self.assertTrue(shown["cluster"]["max_running_is_set"])
        self.assertEqual(self.node_limits()["node-2"]["set_repair_mbit"], 50)
        self.cluster.helpers["node-2"].restart()
        self.cluster.wait_live(["node-2"])
        self.await_rates({"node-2": 50, "node-3": 0})
        self.assertEqual(self.node_limits()["node-2"]["max_sessions"], 9)


if __name__ == "__main__":
    case.main()
