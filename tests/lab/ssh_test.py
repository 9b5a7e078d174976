#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/cluster.py against an sshd on loopback: it measures, refuses what it cannot do, and leaves
nothing behind, also when it is interrupted.

Exit code 77 with "SKIP: reason" where there is no sshd.
"""

from __future__ import annotations

import getpass
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "bench"))

from labkit.process import interruptible, run, wait_until  # noqa: E402
from labkit.stripes import MIB  # noqa: E402
from loopback_sshd import loopback_sshd, why_not  # noqa: E402

EXIT_SKIPPED = 77
COMMAND_SECONDS = 120.0
N, K = 4, 2
SMALL = ("--n", str(N), "--k", str(K), "--block-mib", "1", "--runs", "1")
BIN_DIR = Path()


class ClusterOverSsh(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        options = cls.enterClassContext(loopback_sshd(cls.folder))
        cls.remote = cls.folder / "remote"  # where the agents make their directories
        cls.remote.mkdir()
        cls.inventory = cls.folder / "hosts.toml"
        ssh = f'ssh = "{getpass.getuser()}@127.0.0.1"\naddress = "127.0.0.1"\n'
        racks = ["/east", "/east", "/west", "/west"]
        cls.inventory.write_text(
            f"[ssh]\noptions = {json.dumps(options)}\ndirectory = \"{cls.remote}\"\n"
            f"[coordinator]\n{ssh}"
            + "".join(f"[[requestor]]\n{ssh}rack = \"{rack}\"\n" for rack in ("/east", "/west"))
            + "".join(f"[[node]]\n{ssh}rack = \"{rack}\"\n" for rack in racks))

    def words(self, *arguments: str) -> list[str]:
        return [sys.executable, str(REPOSITORY / "bench" / "cluster.py"), "--inventory",
                str(self.inventory), *arguments, "--bin-dir", str(BIN_DIR)]

    def rows(self, *arguments: str) -> dict[str, list[dict]]:
        output = self.folder / "rows.json"
        run(self.words(*arguments, "--json", str(output)), timeout=COMMAND_SECONDS)
        by_scheme: dict[str, list[dict]] = {}
        for row in json.loads(output.read_text())["rows"]:
            by_scheme.setdefault(row["scheme"], []).append(row)
        self.assertEqual(list(self.remote.iterdir()), [])
        return by_scheme

    def test_single(self) -> None:
        rows = self.rows("single", *SMALL, "--schemes", "conventional,rp")
        self.assertEqual(list(rows), ["direct", "conventional", "rp"])
        for scheme, blocks in (("direct", 1), ("conventional", K), ("rp", 1)):
            row = rows[scheme][0]
            self.assertTrue(row["sha256_ok"])
            self.assertNotIn("bound_s", row)
            # Frame headers on top; the helpers count, so no packet headers.
            self.assertGreaterEqual(row["busiest_link_bytes"], blocks * MIB)
            self.assertLess(row["busiest_link_bytes"], blocks * MIB * 1.01)

    def test_recovery_of_a_node(self) -> None:
        rows = self.rows("node", "--n", "3", "--k", "2", "--nodes", "3", "--stripes", "3",
                         "--block-mib", "1", "--runs", "1", "--requestors", "1",
                         "--policies", "rp")
        self.assertEqual(rows["rp x1"][0]["parameters"]["lost_blocks"], 3)

    def test_geo_measures_the_links_first(self) -> None:
        rows = self.rows("geo", "--unshaped", *SMALL, "--schemes", "rp-weighted", "--regions",
                         "west")
        self.assertEqual([(row["parameters"]["requestor_region"], row["parameters"]["matrix"])
                          for row in rows["rp-weighted"]], [("west", "measured")])

    def test_experiments_about_links_are_refused(self) -> None:
        for experiment in ("edge", "rack", "geo"):
            done = run(self.words(experiment, *SMALL), check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("--unshaped", done.stderr)

    def test_more_nodes_than_machines(self) -> None:
        done = run(self.words("single", "--n", "5", "--k", "2"), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs 5 nodes, but the inventory has 4", done.stderr)

    def test_a_machine_that_does_not_let_us_in(self) -> None:
        closed = self.folder / "closed.toml"
        closed.write_text(self.inventory.read_text().replace("user_key", "host_key"))
        words = self.words("single", *SMALL)
        words[words.index(str(self.inventory))] = str(closed)
        done = run(words, check=False, timeout=COMMAND_SECONDS)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the ssh connection has ended", done.stderr)

    def test_interrupted_it_leaves_nothing_behind(self) -> None:
        for number in (signal.SIGINT, signal.SIGKILL):
            with self.subTest(number):
                process = subprocess.Popen(
                    self.words("single", *SMALL, "--runs", "1000"), stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL, text=True,
                    # Its own temporary directory it cannot remove when it is killed.
                    env={**os.environ, "TMPDIR": str(self.folder)})
                self.addCleanup(process.kill)
                for line in process.stdout:
                    if line.startswith("run 1: rp"):
                        break
                daemons = self.daemons()
                self.assertEqual(len(daemons), 1 + N - 1)  # one helper has been stopped
                process.send_signal(number)
                process.stdout.close()
                process.wait(COMMAND_SECONDS)
                wait_until(lambda: not list(self.remote.iterdir()), 30, "directories gone")
                wait_until(lambda: not self.daemons(), 30, "daemons gone")

    def daemons(self) -> list[str]:
        """Processes whose program lies below our directory for agents."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    program = str((entry / "exe").readlink())
                except OSError:
                    continue
                if program.startswith(str(self.remote)) and "ecpipe-" in Path(program).name:
                    found.append(program)
        return found


def main() -> int:
    global BIN_DIR
    at = sys.argv.index("--bin-dir")
    BIN_DIR = Path(sys.argv[at + 1]).resolve()
    del sys.argv[at:at + 2]
    if obstacle := why_not():
        print(f"SKIP: {obstacle}")
        return EXIT_SKIPPED
    with interruptible():
        return 0 if unittest.main(verbosity=2, exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
