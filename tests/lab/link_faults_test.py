#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults and limits that only links with rates can show, in network namespaces: a helper that dies
half-way, one that becomes slow, one that is cut off, and the rate that a limit leaves.

It prints what it measures; docs/reliability.md has such figures. What it demands are right bytes,
attempts, and bytes on links. Exit code 77 with "SKIP: reason" where namespaces cannot be used.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "bench"), str(REPOSITORY / "tests" / "cluster")]

import case  # noqa: E402
from labkit import netns  # noqa: E402
from labkit.link_faults import LinkFaults  # noqa: E402
from labkit.links import Links  # noqa: E402
from labkit.process import wait_until  # noqa: E402

EXIT_SKIPPED = 77


class BehindLinks(case.ClusterCase):
    """Repairs of a block, for 32 MiB in 2.8 s over a link of 100 Mb/s."""

    network_links = Links(100)
    block_bytes = 32 << 20
    file_bytes = 4 * (32 << 20)
    fraction = 0.5  # of the block that has come when the fault does
    host: str | None = None  # the node that stores the block; otherwise the requestor does

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.faults = LinkFaults(cls.cluster.network)
        cls.lost = cls.manifest["stripes"][0]["blocks"][0]

    def setUp(self) -> None:
        self.cluster.wait_live(self.cluster.node_ids)
        self.cluster.wait_settled()

    def sent(self) -> dict[str, int]:
        """By each helper, with frame headers, since it started."""
        return {name: node["data_bytes_sent"] for name, node in self.cluster.node_status().items()
                if node["answers"]}

    def received(self, node: str) -> int:
        return self.cluster.node_status()[node]["data_bytes_received"]

    def senders(self) -> list[str]:
        return [name for name in self.helpers_at_work() if name != self.host]

    def repair_with(self, fault: Callable[[str], None]) -> dict[str, Any]:
        """Repairs the lost block; `fault` gets the name of a helper in the middle of the path when
        a part of the block has come. The command's report."""
        before = self.sent()
        received = self.received(self.host) if self.host else 0
        block_id, out = self.lost["block_id"], self.work / "out"
        where = ["-o", out, "--sha256", self.lost["sha256"]]
        if self.host:
            out, where = self.cluster.helpers[self.host].root / block_id, ["--to", self.host]
        out.unlink(missing_ok=True)
        process = subprocess.Popen(
            self.cluster.command("--json", "repair", block_id, *where, "--scheme", "rp"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        wait_until(lambda: len(self.senders()) == 4, case.HANG, "the repair to run")
        victim = self.senders()[1]
        wait_until(lambda: process.poll() is not None or self.sent()[victim] - before[victim]
                   >= self.fraction * self.block_bytes, case.HANG, "a part of the block")
        self.assertIsNone(process.poll(), "it is over before the fault")
        fault(victim)
        told, said = process.communicate(timeout=case.HANG)
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(out.read_bytes(), self.bytes_of(block_id))
        report = json.loads(told)
        if self.host:
            report["bytes_received"] = self.received(self.host) - received
        return report

    def fresh(self) -> float:
        return self.repair_with(lambda _: None)["seconds"]

    def show(self, what: str, seconds: float, report: dict[str, Any]) -> None:
        if self.host:
            what += ", to a node"
        print(f"{what}: {report['seconds']:.3f} s, {report['seconds'] / seconds:.2f} x the "
              f"undisturbed {seconds:.3f} s; {report['attempts']} attempts, "
              f"{report['bytes_received'] / self.block_bytes:.3f} blocks received")


class MidRepair(BehindLinks):
    def test_death_at_half_way_repeats_only_what_is_missing(self) -> None:
        seconds = self.fresh()
        dead: list[str] = []
        report = self.repair_with(
            lambda victim: (dead.append(victim), self.cluster.helpers[victim].kill()))
        self.show("death at half-way", seconds, report)
        self.cluster.helpers[dead[0]].restart()
        self.assertEqual(report["attempts"], 2)
        self.assertLess(report["bytes_received"], 1.2 * self.block_bytes)
        self.assert_nothing_left()

    def test_two_helpers_that_do_not_hear_each_other(self) -> None:
        seconds, cut = self.fresh(), []

        def fault(victim: str) -> None:
            for other in self.helpers_at_work():
                if other != victim:
                    cut.append((victim, other))
                    self.faults.cut(victim, other)

        report = self.repair_with(fault)
        for one, other in cut:
            self.faults.mend(one, other)
        self.show("a helper cut off from the others", seconds, report)
        self.assertGreaterEqual(report["attempts"], 2)
        self.assertLess(report["bytes_received"], 1.3 * self.block_bytes)
        self.assert_nothing_left()

    def test_a_pulled_cable(self) -> None:
        seconds, unplugged = self.fresh(), []
        report = self.repair_with(
            lambda victim: (unplugged.append(victim), self.faults.unplug(victim)))
        self.faults.plug(unplugged[0])
        self.show("a pulled cable", seconds, report)
        self.assertGreaterEqual(report["attempts"], 2)
        self.cluster.wait_live(self.cluster.node_ids)
        self.assert_nothing_left()


class Slow(BehindLinks):
    """A longer repair: what is left at the slow rate is long enough for any machine to notice."""

    block_bytes = 64 << 20
    file_bytes = 4 * (64 << 20)

    def test_a_straggler_is_left_out(self) -> None:
        seconds, slow = self.fresh(), []
        sent: dict[str, int] = {}

        def fault(victim: str) -> None:
            slow.append(victim)
            self.faults.rate_of_uplink(victim, 10)
            sent.update(self.sent())

        report = self.repair_with(fault)
        self.faults.rate_of_uplink(slow[0], 100)
        over_the_slow_link = self.sent()[slow[0]] - sent[slow[0]]
        self.show("a straggler at a tenth of its link, from half-way", seconds, report)
        self.assertGreaterEqual(report["attempts"], 2)
        self.assertLessEqual(report["attempts"], 3, "two changes for speed do")
        self.assertLess(over_the_slow_link, self.block_bytes / 8, "of the half that was left")
        self.assertLess(report["bytes_received"], 1.2 * self.block_bytes)
        self.assert_nothing_left()


class ToNode(MidRepair, Slow):
    """The same of a block that a node stores: nobody but the coordinator looks after it."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        holders = {block["node"] for block in cls.manifest["stripes"][0]["blocks"]}
        [cls.host] = set(cls.cluster.node_ids) - holders


class Limited(BehindLinks):
    """Links that allow five times what the limit does."""

    network_links = Links(1000)
    block_bytes = 64 << 20
    file_bytes = 4 * (64 << 20)
    fraction = 0.2
    limit_mbit = 200.0

    def test_measured_repair_traffic_keeps_to_the_limit(self) -> None:
        self.cluster.cli("limits", "set", "--node", ",".join(self.cluster.node_ids),
                         "--repair-mbit", str(self.limit_mbit))
        wait_until(lambda: all(node["repair_mbit"] == self.limit_mbit
                               for node in self.cluster.cli_json("limits")["nodes"]),
                   case.HANG, "the limits")
        rates: dict[str, float] = {}

        def measure(_: str) -> None:
            at_work = self.helpers_at_work()
            first, at = self.cluster.network.link_bytes(), time.monotonic()
            wait_until(lambda: time.monotonic() >= at + 1.3, case.HANG, "traffic to count")
            second, seconds = self.cluster.network.link_bytes(), time.monotonic() - at
            for node in at_work:
                rates[node] = (second[node] - first[node]).up * 8 / 1e6 / seconds

        report = self.repair_with(measure)
        self.cluster.cli("limits", "reset", "--node", ",".join(self.cluster.node_ids))
        average = report["bytes"] * 8 / 1e6 / report["seconds"]
        print(f"limit of {self.limit_mbit:g} Mb/s: links carried "
              + ", ".join(f"{rate:.1f}" for rate in rates.values())
              + f" Mb/s, packet headers included; the whole repair {average:.1f}")
        self.assertEqual(len(rates), 4)
        for node, rate in rates.items():
            self.assertLess(rate, 1.05 * self.limit_mbit, node)
            # Less than the limit is a slow machine's right, much less would be another limit.
            self.assertGreater(rate, 0.5 * self.limit_mbit, node)


if __name__ == "__main__":
    if reason := netns.why_not():
        print(f"SKIP: {reason}")
        sys.exit(EXIT_SKIPPED)
    case.main()
