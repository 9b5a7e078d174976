#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input and nodes that are down: a clear error or correct work, never a hang or wrong bytes."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from pathlib import Path

import case
from case import HANG, NOT_FOUND, NO_SURVIVORS, SCHEMES, UNAVAILABLE, USAGE, ClusterCase
from labkit.process import free_port


class BadInput(ClusterCase):
    def repair_fails(self, code: int, *arguments: str) -> str:
        said = self.fails(code, "repair", *arguments, "-o", self.work / "never")
        self.assertFalse((self.work / "never").exists())
        return said

    def test_arguments(self) -> None:
        block = self.block(0, 0)["block_id"]
        self.assertIn("no-such", self.repair_fails(NOT_FOUND, "no-such-block"))
        self.assertIn("not a valid id", self.repair_fails(USAGE, "../../etc/passwd"))
        said = self.repair_fails(USAGE, block, "--offset", str(self.block_bytes))
        self.assertIn(str(self.block_bytes), said)
        self.repair_fails(USAGE, block, "--offset", "1", "--length", str(self.block_bytes))
        self.repair_fails(USAGE, block, "--offset", "18446744073709551615")
        self.repair_fails(USAGE, block, "--slice-size", "0")
        self.assertIn("limit", self.repair_fails(USAGE, block, "--slice-size", "65MiB"))
        said = self.repair_fails(USAGE, block, "--scheme", "magic")
        self.assertIn("conventional", said)
        self.assertIn("tcp", self.repair_fails(USAGE, block, "--transport", "pigeon"))
        self.fails(USAGE, "repair", block)
        self.fails(USAGE)

    def test_redis_without_servers(self) -> None:
        said = self.repair_fails(NO_SURVIVORS, self.block(0, 0)["block_id"], "--transport", "redis")
        self.assertIn("offers no redis", said)

    def test_wrong_checksum_leaves_no_file(self) -> None:
        said = self.repair_fails(case.FAILED, self.block(0, 0)["block_id"], "--sha256", "0" * 64)
        self.assertIn("SHA-256", said)
        self.assert_nothing_left()

    def test_output_that_cannot_be_written(self) -> None:
        self.fails(NOT_FOUND, "repair", self.block(0, 0)["block_id"], "-o",
                   self.work / "no-such-directory" / "out")

    def test_manifest_with_impossible_stripe(self) -> None:
        bad = self.work / "bad.json"
        bad.write_text(self.manifest_path.read_text().replace("rs-cauchy(6,4)", "rs(7,4)"))
        self.fails(USAGE, "catalog", "load", bad)


class DamagedBlocks(ClusterCase):
    """Blocks that are not what the catalog says are left out, and named when too few remain."""

    def test_lengths_that_differ_and_blocks_that_are_gone(self) -> None:
        lost = self.block(0, 0)
        short = self.cluster.block_file(self.block(0, 1)["block_id"])
        short.write_bytes(short.read_bytes()[:-1])
        for attempts, scheme in zip([2] + [1] * (len(SCHEMES) - 1), SCHEMES):
            report = self.repair(lost["block_id"], "--scheme", scheme, "--sha256", lost["sha256"])
            self.assertEqual(report["attempts"], attempts, "only the first meets the short block")
        # n - 1 = 5 others: one is short, one is gone, three are left of the four that are needed.
        self.cluster.block_file(self.block(0, 2)["block_id"]).unlink()
        said = self.fails(NO_SURVIVORS, "repair", lost["block_id"], "-o", self.work / "never")
        for expected in (lost["block_id"], "k = 4", "3 survivors", self.block(0, 1)["node"],
                         "1000002 bytes", self.block(0, 2)["node"], "none of the directories"):
            self.assertIn(expected, said)
        self.assertFalse((self.work / "never").exists())
        self.assert_nothing_left()


class NodesDown(ClusterCase):
    nodes = 6

    def test_down_helpers(self) -> None:
        lost = self.block(0, 0)
        self.cluster.helpers[lost["node"]].kill()
        # Killed, and the coordinator does not know yet: found out while handing out.
        self.cluster.helpers[self.block(0, 1)["node"]].kill()
        report = self.repair(lost["block_id"], "--sha256", lost["sha256"])
        self.assertEqual(report["bytes"], self.block_bytes)
        self.cluster.helpers[self.block(0, 2)["node"]].kill()
        said = self.fails(NO_SURVIVORS, "repair", lost["block_id"], "-o", self.work / "never")
        for index in (1, 2):
            self.assertIn(self.block(0, index)["node"], said)
        self.assertIn("3 survivors", said)

        for index in (0, 1, 2):
            self.cluster.helpers[self.block(0, index)["node"]].restart()
        self.cluster.wait_live(self.cluster.node_ids)
        self.repair(lost["block_id"], "--sha256", lost["sha256"])
        self.assert_nothing_left()


class CoordinatorDown(unittest.TestCase):
    def test_no_coordinator(self) -> None:
        address = f"127.0.0.1:{free_port()}"
        with tempfile.TemporaryDirectory() as directory:
            for command in (["repair", "b", "-o", f"{directory}/never"], ["status"],
                            ["read", "b", "-q"], ["catalog", "list"]):
                done = subprocess.run(
                    [case.BIN_DIR / "ecpipe", "--coordinator", address, *command],
                    capture_output=True, text=True, timeout=HANG)
                self.assertEqual(done.returncode, UNAVAILABLE, done.stderr)
                self.assertIn(address, done.stderr)
            self.assertEqual(list(Path(directory).iterdir()), [])


if __name__ == "__main__":
    case.main()
