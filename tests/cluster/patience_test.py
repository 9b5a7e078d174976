#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who waits for whom, and how long: nodes whose heartbeats come and whose helpers do not answer,
callers in a hurry while a host dies, and readers that pause."""

from __future__ import annotations

import json
import tempfile
import threading
import time
import unittest
from pathlib import Path

import case
from case import HANG, ClusterCase
from endpoint_client import EndpointError, read
from hdfs_group import Group, make_volume
from labkit.cluster import REQUESTOR, Cluster, node_names
from labkit.process import wait_until
from recovery_test import RecoveryCase
from relay import Relay

SILENT = "node-5"


class SilentControlPort(RecoveryCase):
    """RS(9, 6) on 14 nodes; each has a block of nine stripes in fourteen."""

    nodes = 14
    code = "rs(9,6)"
    block_bytes = 20_003
    file_bytes = 210 * 6 * 20_003

    def setUp(self) -> None:
        helper = self.cluster.helpers[SILENT]
        self.relay = self.enterContext(Relay(helper.ready["control"]))
        listen = helper.settings["listen"]
        listen["control"] = helper.ready["control"]
        listen["advertise_control"] = self.relay.address
        helper.restart()
        self.cluster.wait_live([SILENT])

    def silence(self) -> str:
        return self.cluster.node_status()[SILENT]["silent_because"]

    def test_a_recovery_finds_it_out_once(self) -> None:
        lost = self.blocks_on("node-1")
        self.assertGreaterEqual(len(lost), 130)
        self.lose("node-1")
        self.relay.set_silent(True)
        begun = time.monotonic()
        report = json.loads(self.cluster.cli("recover-node", "node-1", "--delay", "0", "--json",
                                             check=False).stdout)
        seconds = time.monotonic() - begun
        print(f"{len(lost)} blocks in {seconds:.1f} s", flush=True)
        self.assertEqual((report["state"], report["done_blocks"]), ("done", len(lost)))
        # What it stored before it was known to be silent, it cannot be asked for now.
        self.assertEqual({block["node"] for block in report["not_verified"]} - {SILENT}, set())
        self.assertEqual(report["verified_blocks"] + len(report["not_verified"]), len(lost))
        # Two seconds of patience a block, or even in each of four blocks, would take longer.
        self.assertLess(seconds, 60)
        self.assertIn(SILENT, self.silence())
        self.assertEqual(self.cluster.node_status()[SILENT]["state"], "live")
        self.assertIn("repairs leave it out until it answers", self.cluster.cli("status").stdout)
        self.relay.set_silent(False)
        wait_until(lambda: not self.silence(), HANG, "it to be readmitted")
        self.assert_whole()


class DyingHost(unittest.TestCase):
    """Reads of a lost block through an endpoint, each with its usual two seconds, from eight
    clients at once. Block i of the group is on node i + 1."""

    clients = 8
    seconds_before = 3.0
    seconds_after = 15.0
    recovery_seconds = 10.0

    @classmethod
    def setUpClass(cls) -> None:
        cls.work = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        nodes = node_names(9)
        cls.group = Group(6 * 65536 + 777)
        cls.sources = {}
        for index, node in enumerate(nodes):
            volume, uuid = cls.work / "data" / node, f"uuid-of-{node}"
            make_volume(volume, uuid)
            cls.group.put(volume, index)
            if index != 0:
                cls.sources[index] = [uuid]
        cls.cluster = cls.enterClassContext(Cluster(
            case.BIN_DIR, cls.work, nodes, endpoints=True,
            helper_settings={"helper": {"store": "hdfs"}}))

    def setUp(self) -> None:
        self.lock = threading.Lock()
        self.outcomes: list[tuple[float, str]] = []  # when the read began; empty: the right bytes
        self.stop = threading.Event()

    def load(self) -> None:
        address = f"unix:{self.cluster.socket_of(REQUESTOR)}"
        wanted = self.group.blocks[0][:4096]
        while not self.stop.is_set():
            begun, said = time.monotonic(), ""
            try:
                answer = read(address, self.group, 0, self.sources, length=4096, timeout_ms=2000)
                said = "" if answer.content == wanted else "wrong bytes"
            except (EndpointError, OSError) as error:
                said = str(error)
            with self.lock:
                self.outcomes.append((begun, said))

    def outcomes_in(self, first: float, last: float) -> list[str]:
        return [said for begun, said in self.outcomes if first <= begun < last]

    def test_service_recovers(self) -> None:
        victim = self.cluster.helpers["node-3"]
        threads = [threading.Thread(target=self.load) for _ in range(self.clients)]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        self.stop.wait(self.seconds_before)
        victim.pause()
        paused = time.monotonic()
        try:
            self.stop.wait(self.seconds_after)
            self.stop.set()
            for thread in threads:
                thread.join(HANG)
            ended = time.monotonic()
            before = self.outcomes_in(begun, paused - 1)
            after = self.outcomes_in(paused + self.recovery_seconds, ended)
            failed = [(at - paused, said) for at, said in self.outcomes if said]
            last = max((at for at, _ in failed), default=0.0)
            print(f"{len(before)} reads before, {len(failed)} failed, the last one begun after "
                  f"{last:.1f} s, {len(after)} reads after", flush=True)
            self.assertEqual([said for said in before if said], [])
            self.assertEqual([said for said in after if said], [])
            self.assertGreater(len(after), 2 * self.clients)
            self.assertNotIn("wrong bytes", [said for _, said in failed])
            # Nobody works on for clients that have gone.
            self.cluster.wait_idle(HANG)
        finally:
            victim.resume()


class StoppedHelper(ClusterCase):
    """Small reads of a lost block while a helper is stopped, and not known to be dead."""

    def test_a_small_read_leaves_it_out(self) -> None:
        lost = self.block(0, 0)["block_id"]
        wanted = self.bytes_of(lost)[70_000:170_000]
        log = self.cluster.coordinator

        # On a busy machine the read may begin when the helper counts as dead already.
        def left_out() -> bool:
            plan = self.cluster.cli_json("plan", lost)
            stopped = self.cluster.helpers[plan["lanes"][0]["hops"][0]["node"]]
            stopped.pause()
            try:
                self.repair(lost, "--offset", "70000", "--length", "100000")
            finally:
                stopped.resume()
            self.assertEqual((self.work / "out").read_bytes(), wanted)
            self.cluster.wait_live(self.cluster.node_ids)
            return "repair.helper_late" in log.log_tail(1000)

        wait_until(left_out, 2 * HANG, "a read that does not wait for its helper")
        self.assert_nothing_left()


class PausedReader(ClusterCase):
    """The coordinator's patience with silent requestors is shortened, and the helpers'."""

    block_bytes = 64 << 20
    file_bytes = 4 * (64 << 20)
    coordinator_settings = {"timeouts": {"abandon_after_seconds": 2.0}}
    helper_settings = {"timeouts": {"stall_seconds": 1.0, "drain_seconds": 5.0}}

    def test_its_repair_is_not_abandoned(self) -> None:
        lost = self.block(0, 0)
        content = self.bytes_of(lost["block_id"])
        process = self.begin_read(lost["block_id"])
        taken = process.stdout.read(8 << 20)
        wait_until(lambda: not self.helpers_at_work(), HANG, "the helpers to give it up")
        # The coordinator would take it for abandoned by then.
        log = self.cluster.coordinator
        pause = time.monotonic() + 8
        wait_until(lambda: time.monotonic() > pause, HANG, "the end of the pause")
        self.assertNotIn("fell silent", log.log_tail(100))
        taken += process.stdout.read()
        said = process.stderr.read().decode()
        self.assertEqual(process.wait(timeout=HANG), 0, said)
        self.assertEqual(taken, content)
        self.assert_nothing_left()


if __name__ == "__main__":
    case.main()
