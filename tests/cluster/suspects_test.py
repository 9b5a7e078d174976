#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes whose heartbeats come and whose helpers do not answer: found out once, and readmitted."""

from __future__ import annotations

import time
import unittest

import case
from case import HANG
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

    def test_a_recovery_finds_it_out_once(self) -> None:
        lost = self.blocks_on("node-1")
        self.assertGreaterEqual(len(lost), 130)
        self.lose("node-1")
        self.relay.set_silent(True)
        begun = time.monotonic()
        report = self.recover("node-1")
        seconds = time.monotonic() - begun
        print(f"{len(lost)} blocks, {len(lost) / seconds:.1f} starts a second", flush=True)
        self.assertEqual((report["state"], report["done_blocks"]), ("done", len(lost)))


if __name__ == "__main__":
    case.main()
