#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the daemons tell a service manager: this test listens in its place."""

from __future__ import annotations

import os
import signal
import socket
import struct
import tempfile
import threading
from collections import defaultdict
from pathlib import Path

import case
from case import HANG, ClusterCase
from labkit.process import wait_until

CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


class Manager:
    """The datagrams of each process, as they come."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind(str(path))
        self._lock = threading.Lock()
        self._messages: dict[int, list[str]] = defaultdict(list)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            message, ancillary, _, _ = self._socket.recvmsg(
                4096, socket.CMSG_SPACE(CREDENTIALS.size))
            pid, _, _ = CREDENTIALS.unpack(ancillary[0][2])
            with self._lock:
                self._messages[pid].append(message.decode())

    def heard(self, pid: int) -> list[str]:
        with self._lock:
            return list(self._messages[pid])

    def count(self, pid: int, beginning: str) -> int:
        return sum(message.startswith(beginning) for message in self.heard(pid))

    def wait_for(self, pid: int, beginning: str, times: int = 1) -> None:
        wait_until(lambda: self.count(pid, beginning) >= times, HANG,
                   f"{beginning} of {pid}, {times} times")


class ServiceManager(ClusterCase):
    block_bytes = 64 << 20
    file_bytes = 4 * (64 << 20)
    nodes = 6
    helper_settings = {"timeouts": {"stall_seconds": 25.0, "drain_seconds": 20.0}}

    @classmethod
    def setUpClass(cls) -> None:
        folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.manager = Manager(folder / "notify")
        os.environ |= {"NOTIFY_SOCKET": str(folder / "notify"), "WATCHDOG_USEC": "60000000"}
        super().setUpClass()

    def test_they_are_ready_and_go_on(self) -> None:
        for daemon in (self.cluster.coordinator, self.cluster.helpers["node-1"]):
            with self.subTest(daemon.name):
                self.manager.wait_for(daemon.pid, "READY=1\nSTATUS=")
                self.manager.wait_for(daemon.pid, "WATCHDOG=1",
                                      self.manager.count(daemon.pid, "WATCHDOG=1") + 3)
                self.assertEqual(self.manager.count(daemon.pid, "STOPPING=1"), 0)

    def test_a_helper_is_ready_when_it_is_registered(self) -> None:
        helper, coordinator = self.cluster.helpers["node-2"], self.cluster.coordinator
        helper.stop()
        coordinator.kill()
        helper.launch()
        helper.await_ready()  # it serves
        self.manager.wait_for(helper.pid, "EXTEND_TIMEOUT_USEC=30000000\nSTATUS=is not registered",
                              times=3)
        self.assertEqual(self.manager.count(helper.pid, "READY=1"), 0)
        coordinator.restart()
        self.manager.wait_for(helper.pid, f"READY=1\nSTATUS=registered with {coordinator.address}")
        self.cluster.wait_live(self.cluster.node_ids)

    def test_a_helper_asks_for_time_while_it_drains(self) -> None:
        process = self.begin_read(self.block(0, 0)["block_id"], "--timeout", "25")
        helper = self.cluster.helpers[self.helpers_at_work()[0]]
        helper.send_signal(signal.SIGTERM)
        self.manager.wait_for(helper.pid, "EXTEND_TIMEOUT_USEC=30000000\nSTATUS=finishes 1 part",
                              times=2)
        self.assertTrue(helper.running())
        self.assertEqual(self.manager.count(helper.pid, "STOPPING=1"), 1)
        taken, said = process.communicate(timeout=HANG)
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(helper.reap(HANG), 0)
        helper.restart()
        self.cluster.wait_live([helper.name])

    def test_the_coordinator_says_that_it_ends(self) -> None:
        coordinator = self.cluster.coordinator
        pid = coordinator.pid
        self.assertEqual(coordinator.stop(), 0)
        self.manager.wait_for(pid, "STOPPING=1")
        coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)


if __name__ == "__main__":
    case.main()
