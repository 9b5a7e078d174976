#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A backup of a running coordinator, and the drill: its data directory is deleted and restored, and
a block is repaired."""

from __future__ import annotations

import shutil
import stat
import subprocess
import tarfile

import case
from case import FAILED, HANG, UNAVAILABLE, ClusterCase, sha256
from labkit.cluster import COORDINATOR


class Backup(ClusterCase):
    def test_the_drill(self) -> None:
        self.cluster.cli("limits", "set", "--cluster", "--max-running", "17")
        first = self.block(0, 1)
        self.cluster.block_file(first["block_id"]).unlink()
        self.repair(first["block_id"])  # something for the journal
        backup = self.work / "backup.tar"
        made = self.cluster.cli_json("backup", backup)
        self.assertEqual(stat.S_IMODE(backup.stat().st_mode), 0o600)
        self.assertEqual(made["bytes"], backup.stat().st_size)
        self.assertLessEqual({"catalog.db", "journal.db", "limits.db", "marks.db"},
                             {file["name"] for file in made["files"]})

        data = self.cluster.base(COORDINATOR) / "state" / COORDINATOR
        self.cluster.coordinator.kill()
        shutil.rmtree(data)
        data.mkdir()
        subprocess.run(["tar", "-C", data, "-xf", backup], check=True, timeout=HANG)
        subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=data, check=True,
                       timeout=HANG)
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)

        limits = self.cluster.cli_json("limits")
        self.assertEqual(limits["cluster"]["max_running"], 17)
        repairs = self.cluster.status()["repairs"]
        self.assertIn([first["block_id"]], [repair["block_ids"] for repair in repairs])
        lost = self.block(1, 0)
        self.cluster.block_file(lost["block_id"]).unlink()
        self.repair(lost["block_id"], output="rebuilt")
        self.assertEqual(sha256((self.work / "rebuilt").read_bytes()), lost["sha256"])

    def test_a_file_that_is_there_stays_without_force(self) -> None:
        backup = self.work / "there.tar"
        backup.write_text("precious")
        self.assertIn("--force", self.fails(FAILED, "backup", backup))
        self.assertEqual(backup.read_text(), "precious")
        self.cluster.cli("backup", backup, "--force")
        with tarfile.open(backup) as archive:
            self.assertEqual(archive.getnames()[-1], "SHA256SUMS")

    def test_no_coordinator_no_file(self) -> None:
        backup = self.work / "nothing.tar"
        self.cluster.coordinator.kill()
        self.fails(UNAVAILABLE, "backup", backup)
        self.assertFalse(backup.exists())
        self.cluster.coordinator.restart()
        self.cluster.wait_live(self.cluster.node_ids)
        self.assert_nothing_left()


if __name__ == "__main__":
    case.main()
