#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults in the middle of a repair: it ends with the right bytes, from what is verified on, over
other survivors; or, with too few left, with an error that says so. Never a hang, nothing left."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable

import case
from case import FAILED, HANG, NO_SURVIVORS, ClusterCase
from labkit.process import wait_until


class MidRepair(ClusterCase):
    """A block of which much is still on its way when the fault comes: its reader takes the first
    bytes, and the rest only then."""

    nodes = 7
    block_bytes = 64 << 20
    file_bytes = 4 * (64 << 20)
    stall_seconds = HANG
    helper_settings = {"timeouts": {"stall_seconds": stall_seconds, "drain_seconds": 5.0}}

    def interrupted_read(self, fault: Callable[[], None], *arguments: str,
                         taken_before: int = 8 << 20) -> tuple[bytes, dict[str, Any]]:
        """Reads the lost block, with the fault when `taken_before` bytes have come; the bytes, and
        the repair as the coordinator has it in the end."""
        process = self.begin_read(self.lost["block_id"], *arguments)
        taken = bytearray(process.stdout.read(taken_before))
        fault()
        said: list[bytes] = []
        listener = threading.Thread(target=lambda: said.append(process.stderr.read()))
        listener.start()
        begun = time.monotonic()
        taken += process.stdout.read()
        process.wait(timeout=HANG)
        self.seconds = time.monotonic() - begun
        listener.join()
        self.assertEqual(process.returncode, 0, said[0].decode())
        newest = json.loads(self.cluster.cli("status", "--json").stdout)["repairs"][0]
        return bytes(taken), newest

    def setUp(self) -> None:
        self.lost = self.block(0, 0)
        self.content = self.bytes_of(self.lost["block_id"])
        self.cluster.wait_live(self.cluster.node_ids)

    def victim(self, which: int = 1) -> Any:
        return self.cluster.helpers[self.helpers_at_work()[which]]

    def test_helper_killed(self) -> None:
        for which in (0, 1, 3):
            with self.subTest(which=which):
                victims: list[Any] = []

                def fault() -> None:
                    victims.append(self.victim(which))
                    victims[0].kill()

                taken, repair = self.interrupted_read(fault)
                self.assertEqual(taken, self.content)
                self.assertEqual((repair["state"], repair["attempt"]), ("done", 1))
                victims[0].restart()
                self.cluster.wait_live(self.cluster.node_ids)
                self.assert_nothing_left()

    def test_reader_of_the_output_ends(self) -> None:
        process = self.begin_read(self.lost["block_id"])
        self.assertEqual(process.stdout.read(1 << 20), self.content[:1 << 20])
        process.stdout.close()
        said = process.stderr.read().decode()
        self.assertEqual(process.wait(timeout=HANG), FAILED, said)
        self.assertIn("standard output", said)
        newest = json.loads(self.cluster.cli("status", "--json").stdout)["repairs"][0]
        self.assertEqual(newest["state"], "cancelled")
        self.assert_nothing_left()

    def test_helper_stopped(self) -> None:
        victims: list[Any] = []

        def fault() -> None:
            victims.append(self.victim())
            victims[0].pause()

        # Neither the parts nor the requestor give up by themselves so soon.
        taken, repair = self.interrupted_read(fault, "--timeout", str(self.stall_seconds))
        self.assertEqual(taken, self.content)
        self.assertEqual((repair["state"], repair["attempt"]), ("done", 1))
        self.assertLess(self.seconds, self.stall_seconds)
        victims[0].resume()
        self.cluster.wait_live(self.cluster.node_ids)
        self.assert_nothing_left()

    def limit_rates(self, mbit: float) -> None:
        """Of what helpers that run send; 0: no limit."""
        names = [name for name, helper in self.cluster.helpers.items() if helper is not self.paused]
        action = ("set", "--repair-mbit", str(mbit)) if mbit else ("reset",)
        self.cluster.cli("limits", action[0], "--node", ",".join(names), *action[1:])

        def hold() -> bool:
            nodes = {node["node"]: node for node in self.cluster.cli_json("limits")["nodes"]}
            return all(nodes[name]["repair_mbit"] == mbit for name in names)
        wait_until(hold, HANG, f"the limit {mbit}")

    def test_helper_stopped_during_a_small_read(self) -> None:
        """The other helpers, who only wait, are not called silent."""
        self.paused = None
        self.limit_rates(1)  # 8 s for the range, so that it is under way when the helper stops
        process = subprocess.Popen(
            self.cluster.command("-q", "read", self.lost["block_id"], "--scheme", "rp",
                                 "--offset", "12345", "--length", "1MiB"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        wait_until(lambda: len(self.helpers_at_work()) == 4, HANG, "the read to run")
        self.paused = self.victim()
        self.paused.pause()
        self.limit_rates(0)
        taken, said = process.communicate(timeout=HANG)
        self.assertEqual(process.returncode, 0, said.decode())
        self.assertEqual(taken, self.content[12345:12345 + (1 << 20)])
        newest = json.loads(self.cluster.cli("status", "--json").stdout)["repairs"][0]
        self.assertEqual(newest["state"], "done")
        self.assertGreaterEqual(newest["attempt"], 1)  # a busy machine's helper may be late as well
        silent = [name for name, node in self.cluster.node_status().items()
                  if node.get("silent_because") and self.cluster.helpers[name] is not self.paused]
        self.assertEqual(silent, [])
        self.paused.resume()
        self.cluster.wait_live(self.cluster.node_ids)
        self.paused = None
        self.limit_rates(0)  # for the tests that follow
        self.assert_nothing_left()

    def test_helper_restarted(self) -> None:
        def fault() -> None:
            victim = self.victim()
            victim.kill()
            victim.restart()

        taken, repair = self.interrupted_read(fault)
        self.assertEqual(taken, self.content)
        self.assertEqual(repair["state"], "done")
        self.assert_nothing_left()

    def test_block_becomes_shorter(self) -> None:
        shorter: list[tuple[Any, bytes]] = []

        def fault() -> None:
            node = self.helpers_at_work()[2]
            name = next(block["block_id"] for block in self.manifest["stripes"][0]["blocks"]
                        if block["node"] == node)
            file = self.cluster.block_file(name)
            shorter.append((file, file.read_bytes()))
            with file.open("r+b") as handle:
                handle.truncate(1 << 20)

        taken, repair = self.interrupted_read(fault)
        file, content = shorter[0]
        file.write_bytes(content)
        self.assertEqual(taken, self.content)
        self.assertEqual((repair["state"], repair["attempt"]), ("done", 1))
        self.assert_nothing_left()
        # It counts as corrupt until it is repaired, or its helper has found it sound.
        self.cluster.cli("corrupt", "check", file.name)
        self.assertEqual(self.cluster.status()["corrupt_blocks"], [])

    def test_block_deleted(self) -> None:
        deleted: list[tuple[Any, bytes]] = []

        def fault() -> None:
            node = self.helpers_at_work()[1]
            name = next(block["block_id"] for block in self.manifest["stripes"][0]["blocks"]
                        if block["node"] == node)
            file = self.cluster.block_file(name)
            deleted.append((file, file.read_bytes()))
            file.unlink()

        taken, repair = self.interrupted_read(fault)
        file, content = deleted[0]
        file.write_bytes(content)
        self.assertEqual(taken, self.content)
        self.assertEqual((repair["state"], repair["attempt"]), ("done", 0),
                         "what was opened stays readable")
        self.assert_nothing_left()

    def test_disk_full_at_the_requestor(self) -> None:
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                self.cluster.command("-q", "read", self.lost["block_id"], "--scheme", "rp"),
                stdout=full, stderr=subprocess.PIPE, text=True, timeout=HANG)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertIn("No space left", done.stderr)
        self.assert_nothing_left()

    def test_coordinator_restarted_and_helper_killed(self) -> None:
        # While it ends in good order, too, nobody may get an answer that is none.
        for end in (self.cluster.coordinator.kill, self.cluster.coordinator.ask_to_stop):
            with self.subTest(end=end.__name__):
                victims: list[Any] = []

                def fault() -> None:
                    victims.append(self.victim())
                    end()
                    victims[0].kill()
                    self.cluster.coordinator.restart()

                taken, repair = self.interrupted_read(fault)
                self.assertEqual(taken, self.content)
                self.assertEqual(repair["state"], "done")
                victims[0].restart()
                self.cluster.wait_live(self.cluster.node_ids)
                self.assert_nothing_left()

    def test_coordinator_killed(self) -> None:
        taken, _ = self.interrupted_read(
            lambda: (self.cluster.coordinator.kill(), self.cluster.coordinator.restart()))
        self.assertEqual(taken, self.content)
        self.cluster.wait_live(self.cluster.node_ids)
        self.assert_nothing_left()

    def test_too_few_left(self) -> None:
        process = self.begin_read(self.lost["block_id"])
        taken = bytearray(process.stdout.read(8 << 20))
        victims = [self.cluster.helpers[name] for name in self.helpers_at_work()[:2]]
        for victim in victims:
            victim.kill()
        taken_rest, said = process.communicate(timeout=HANG)
        taken += taken_rest
        self.assertEqual(process.returncode, NO_SURVIVORS, said)
        self.assertEqual(bytes(taken), self.content[:len(taken)])
        for expected in (self.lost["block_id"], "k = 4", "3 survivors"):
            self.assertIn(expected, said.decode())
        for victim in victims:
            victim.restart()
        self.cluster.wait_live(self.cluster.node_ids)
        self.assert_nothing_left()

    def test_requestor_cancelled_or_killed(self) -> None:
        for end in ("terminate", "kill"):
            with self.subTest(end=end):
                process = self.begin_read(self.lost["block_id"])
                taken = process.stdout.read(1 << 20)
                getattr(process, end)()
                # Nobody reads meanwhile: it would else be at its end before it looks.
                self.assertEqual(process.wait(timeout=HANG), 130 if end == "terminate" else -9)
                rest, _ = process.communicate()
                taken += rest
                self.assertEqual(taken, self.content[:len(taken)])
                self.assert_nothing_left()


    def test_requestor_killed_while_it_writes_a_file(self) -> None:
        process = subprocess.Popen(
            self.cluster.command("-q", "repair", self.lost["block_id"], "-o", self.work / "part",
                                 "--slice-size", "4KiB"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        wait_until(lambda: len(self.helpers_at_work()) == 4, HANG, "the repair to run")
        process.kill()
        process.wait()
        self.assertFalse((self.work / "part").exists(), "it was not killed in the middle")
        if has_unnamed_files(self.work):
            self.assert_nothing_left()
        else:
            self.cluster.wait_idle()


def has_unnamed_files(folder: Path) -> bool:
    """Elsewhere a killed process leaves its temporary file."""
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
        return True
    except OSError:
        return False


class MidRepairToFiles(ClusterCase):
    """The same to files, where slices come in any order, for every scheme."""

    block_bytes = 24 << 20
    file_bytes = 4 * (24 << 20)
    redis = True
    # Under pipe-b a node is at work on a whole block before its receiver hears of it.
    helper_settings = {"timeouts": {"stall_seconds": 10.0, "drain_seconds": 5.0}}

    def test_helper_killed_under_every_scheme(self) -> None:
        lost = self.block(0, 0)
        for transport in ("tcp", "redis"):
            for scheme in case.SCHEMES:
                with self.subTest(scheme=scheme, transport=transport):
                    self.one(lost, scheme, transport)

    def one(self, lost: dict[str, str], scheme: str, transport: str) -> None:
        process = subprocess.Popen(
            self.cluster.command("--json", "repair", lost["block_id"], "-o", self.work / "out",
                                 "--scheme", scheme, "--transport", transport,
                                 "--sha256", lost["sha256"], "--slice-size", "4KiB"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        wait_until(lambda: process.poll() is not None or len(self.helpers_at_work()) >= 4, HANG,
                   "the repair to run")
        at_work = self.helpers_at_work()
        victim = self.cluster.helpers[at_work[1]] if len(at_work) > 1 else None
        if victim is not None:
            victim.kill()
        try:
            out, said = process.communicate(timeout=HANG)
        finally:
            if victim is not None:
                victim.restart()
        self.cluster.wait_live(self.cluster.node_ids)
        self.assertEqual(process.returncode, 0, said.decode())
        self.assertEqual(json.loads(out)["bytes"], self.block_bytes)
        self.assert_nothing_left()


class MidRepairToNode(ClusterCase):
    """A block that a node stores: the next attempt brings what the node has not got yet. A limit of
    rate gives the fault its time."""

    block_bytes = 16 << 20
    file_bytes = 2 * 4 * (16 << 20)  # a stripe for each test
    rate_mbit = 15  # nine seconds
    # Neither the coordinator nor the parts give a node up by themselves so soon.
    coordinator_settings = {"timeouts": {"dead_after_seconds": HANG}}
    helper_settings = {"timeouts": {"stall_seconds": HANG, "drain_seconds": 5.0}}

    def setUp(self) -> None:
        self.cluster.wait_live(self.cluster.node_ids)
        self.cluster.cli("limits", "set", "--node", ",".join(self.cluster.node_ids),
                         "--repair-mbit", str(self.rate_mbit))
        wait_until(lambda: all(node["repair_mbit"] == self.rate_mbit
                               for node in self.cluster.cli_json("limits")["nodes"]), HANG,
                   "the limits")

    def blocks_read(self) -> dict[str, int]:
        """By the nodes that answer, in bytes."""
        return {name: node["block_bytes_read"] for name, node in self.cluster.node_status().items()
                if node["answers"]}

    def repair_with(self, stripe: int, fault: Callable[[Any], None],
                    undo: Callable[[Any], None]) -> None:
        """Has the node that has no block of the stripe rebuild one; `fault` comes to a helper when
        half of the block is read, and its node is back after `undo`."""
        lost = self.block(stripe, 0)
        holders = [block["node"] for block in self.manifest["stripes"][stripe]["blocks"]]
        [spare] = set(self.cluster.node_ids) - set(holders)
        content = self.bytes_of(lost["block_id"])
        self.cluster.block_file(lost["block_id"]).unlink()
        before = self.blocks_read()
        process = subprocess.Popen(
            self.cluster.command("--json", "repair", lost["block_id"], "--to", spare,
                                 "--scheme", "rp"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: process.poll() is None and process.kill())

        def half_is_there() -> bool:
            return any(read - before[node] > self.block_bytes // 2
                       for node, read in self.blocks_read().items())
        wait_until(half_is_there, HANG, "half of the block")
        at_work = [node for node in self.helpers_at_work() if node != spare]
        self.assertEqual(len(at_work), 4, "half is left")
        victim = self.cluster.helpers[at_work[1]]
        fault(victim)
        out, said = process.communicate(timeout=HANG)
        self.assertEqual(process.returncode, 0, said.decode())
        read = {node: after - before[node] for node, after in self.blocks_read().items()}

        [newcomer] = set(holders[1:]) - set(at_work)
        self.assertGreater(read[newcomer], 0)
        self.assertLess(read[newcomer], 0.6 * self.block_bytes, "what was missing, and no more")
        for node in set(at_work) - {at_work[1]}:
            self.assertGreaterEqual(read[node], self.block_bytes, node)
            self.assertLess(read[node], 1.25 * self.block_bytes, node)
        newest = self.cluster.cli_json("status")["repairs"][0]
        self.assertEqual((newest["state"], newest["attempt"]), ("done", 1))
        self.assertEqual((self.cluster.helpers[spare].root / lost["block_id"]).read_bytes(),
                         content)
        undo(victim)
        self.cluster.wait_live(self.cluster.node_ids)
        self.assert_nothing_left()
        self.assertEqual(list(self.cluster.data_dir().glob("*/.ecpipe-tmp-*")), [])

    def test_helper_killed(self) -> None:
        self.repair_with(0, lambda victim: victim.kill(), lambda victim: victim.restart())

    def test_helper_stopped(self) -> None:
        self.repair_with(1, lambda victim: victim.pause(), lambda victim: victim.resume())


if __name__ == "__main__":
    case.main()
