#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Strangers at every port while blocks are repaired: right bytes, and nothing is left of them.

How much slower a flood of ten thousand makes a repair is measured by bench/flood.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import case
from case import HANG, ClusterCase
from labkit import strangers
from labkit.process import wait_until

CONNECTIONS = 1500
FLOOD_SECONDS = 3.0
# What a daemon may have open afterwards more than before: gRPC's connections to each other.
MORE_FILES = 20


class Flooded(ClusterCase):
    def test_repairs_go_on(self) -> None:
        lost = self.block(0, 0)
        daemons = [self.cluster.coordinator, *self.cluster.helpers.values()]
        self.repair(lost["block_id"], "--scheme", "rp", "--sha256", lost["sha256"])
        before = {daemon.name: open_files(daemon.pid) for daemon in daemons}
        flood = subprocess.Popen(
            [sys.executable, strangers.__file__, str(CONNECTIONS), str(FLOOD_SECONDS),
             *self.ports()], stdout=subprocess.PIPE, text=True)
        self.addCleanup(flood.stdout.close)
        self.addCleanup(lambda: flood.poll() is None and flood.kill())
        repairs = 0
        while flood.poll() is None:
            for scheme in ("rp", "ppr", "conventional"):
                self.repair(lost["block_id"], "--scheme", scheme, "--sha256", lost["sha256"])
                repairs += 1
        report = json.loads(flood.stdout.read())
        self.assertEqual(flood.returncode, 0)
        self.assertGreater(report["opened"], 0.9 * CONNECTIONS, report)
        self.assertGreater(repairs, 0)
        self.assert_nothing_left()
        for daemon in daemons:
            wait_until(lambda: open_files(daemon.pid) <= before[daemon.name] + MORE_FILES, HANG,
                       f"{daemon.name} to have closed what strangers opened")

    def ports(self) -> list[str]:
        nodes = self.cluster.node_status().values()
        return [self.cluster.coordinator.address,
                *(node[key] for node in nodes for key in ("data_address", "control_address"))]


class FloodedWithTls(Flooded):
    tls = True


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


if __name__ == "__main__":
    case.main()
