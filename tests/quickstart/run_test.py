#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/quickstart.sh from the checkout, to its end: the table and the three trials, in each of
the places where the nodes can be, and nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from labkit.process import interruptible
from running import COLUMNS, HELD, NOBODY, REPOSITORY, Run

SCHEMES = [("direct", "tcp"), ("conventional", "tcp"), ("ppr", "tcp"), ("rp", "tcp"),
           ("rp", "redis")]
# A machine that does something else at the time makes a repair slower, seldom faster.
MOST_OF_RP, LEAST_OF_CONVENTIONAL = 2.5, 5.0
PASTED_SECONDS = 60.0
IN_NAMESPACES, BY_PROGRAMS = "in a network namespace", "helpers send, and the requestor receives"
# Makes a process root where neither network nor user namespaces are to be had.
WITHOUT_NAMESPACES = ("unshare", "--user", "--map-root-user", "sh", "-c",
                      "echo 0 >/proc/sys/user/max_net_namespaces; "
                      "echo 0 >/proc/sys/user/max_user_namespaces; exec \"$@\"", "sh")


def rows_of(output: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line) for line in output.splitlines()
            if line.endswith("sha256 ok") and line.split()[0] in dict(SCHEMES)]


class Quickstart(unittest.TestCase):
    def finish(self, run: Run) -> str:
        """Its output, when it has ended well and left nothing."""
        run.wait_for("Encoding")  # the cluster runs, in its namespaces if it has any
        namespaces = run.namespaces()
        self.assertEqual(run.wait(), 0, run.output())
        self.assertEqual(run.leftovers(namespaces), [])
        for line in run.output().splitlines():
            self.assertLessEqual(len(line), COLUMNS, line)
        self.assertNotIn("Building ECPipe", run.output())  # the tests' own build serves
        return run.output()

    def assert_table(self, output: str) -> None:
        rows = rows_of(output)
        self.assertEqual([(row[0], row[1]) for row in rows], SCHEMES)
        times = {row[0]: float(row[3]) for row in rows if row[1] == "tcp"}
        theory = {row[0]: float(row[4]) for row in rows}
        self.assertEqual((theory["conventional"], theory["ppr"]), (10.0, 4.0))
        self.assertEqual(times["direct"], 1.0)
        self.assertLess(times["rp"], times["ppr"])
        self.assertLess(times["ppr"], times["conventional"])
        self.assertLess(times["rp"], MOST_OF_RP)
        self.assertGreater(times["conventional"], LEAST_OF_CONVENTIONAL)

    def assert_trials(self, output: str) -> None:
        text = " ".join(output.split())
        self.assertRegex(text, r"the same bytes as the original, in [\d.]+ s; 1\.0\d MiB came")
        killed = re.search(r"node-\d+ got SIGKILL at \d+ %; sha256 ok, in [\d.]+ s and (\d+) "
                           r"attempts; (\d+) of (\d+) slices were repeated", text)
        self.assertTrue(killed, output)
        attempts, repeated, slices = map(int, killed.groups())
        self.assertGreater(attempts, 1)
        self.assertLess(repeated, slices)
        recovered = re.search(r"(\d+) of (\d+) blocks sha256 ok, in", text)
        self.assertTrue(recovered, output)
        self.assertEqual(recovered[1], recovered[2])
        self.assertGreater(int(recovered[1]), 1)

    def test_as_the_readme_names_it(self) -> None:
        with Run() as run:
            output = self.finish(run)
        print(output)
        self.assert_table(output)
        self.assert_trials(output)

    def test_twice_in_one_directory(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                with Run("--quick", "--work-dir", Path(folder, "work")) as run:
                    output = self.finish(run)
                self.assert_table(output)
                self.assert_trials(output)
            self.assertTrue(list(Path(folder, "work").glob("*.tar")))

    def test_a_directory_with_files_of_others_is_left_alone(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            precious = Path(folder, "data")
            precious.write_text("mine")
            with Run("--quick", "--work-dir", folder) as run:
                self.assertEqual(run.wait(), 1)
                self.assertIn("name an empty directory", run.output())
            self.assertEqual(precious.read_text(), "mine")

    def test_loopback(self) -> None:
        with Run("--quick", "--loopback") as run:
            output = self.finish(run)
        rows = rows_of(output)
        self.assertEqual([(row[0], row[1]) for row in rows], SCHEMES)
        busiest = {row[0]: float(row[3]) for row in rows if row[1] == "tcp"}
        self.assertGreater(busiest["conventional"], 9 * busiest["rp"])

    def test_where_namespaces_are_refused(self) -> None:
        if not works([*WITHOUT_NAMESPACES, "true"]):
            self.skipTest("no user namespace in which to refuse namespaces")
        with Run("--quick", prefix=WITHOUT_NAMESPACES) as run:
            output = self.finish(run)
        self.assertIn(BY_PROGRAMS, " ".join(output.split()))
        self.assert_table(output)
        self.assert_trials(output)

    def test_without_root(self) -> None:
        prefix = () if os.geteuid() else NOBODY
        if prefix and not self.unprivileged_can_read():
            self.skipTest("an unprivileged user cannot read this checkout")
        with Run("--quick", prefix=prefix, environment={"PATH": "/usr/local/bin:/usr/bin:/bin"},
                 ) as run:
            output = self.finish(run)
        allowed = works([*prefix, "unshare", "--user", "--map-root-user", "--net", "true"])
        self.assertIn(IN_NAMESPACES if allowed else BY_PROGRAMS, " ".join(output.split()))
        self.assert_table(output)
        self.assert_trials(output)

    def test_what_it_says_to_paste_works(self) -> None:
        """In another terminal, which knows nothing of this one."""
        for prefix in ((), NOBODY) if self.unprivileged_can_read() else ((),):
            with Run("--quick", "--hold", prefix=prefix) as run:
                run.wait_for(HELD)
                commands = "\n".join(line for line in run.output().splitlines()
                                     if line.startswith("  ecpipe"))
                pasted = subprocess.run(
                    [*prefix, "env", "-i", "PATH=/usr/bin:/bin", "bash", "-e", "-c", commands],
                    capture_output=True, text=True, timeout=PASTED_SECONDS, cwd="/")
                self.assertEqual(pasted.returncode, 0, commands + pasted.stdout + pasted.stderr)
                self.assertRegex(pasted.stdout, r"4 MiB by rp over tcp in .*/mine")
                os.killpg(run.process.pid, signal.SIGINT)
                self.assertEqual(run.wait(), 128 + signal.SIGINT)
                self.assertEqual(run.leftovers(), [])

    @staticmethod
    def unprivileged_can_read() -> bool:
        return os.geteuid() == 0 and works(
            [*NOBODY, str(REPOSITORY / "build/release/bin/ecpipe"), "--version"])

    def test_what_cannot_be_is_refused(self) -> None:
        for options, words in ((("--fast",), "unknown argument: --fast"),
                               (("--work-dir",), "--work-dir needs a directory")):
            with Run(*options) as run:
                self.assertEqual(run.wait(), 1)
                self.assertIn(words, run.output())
                self.assertEqual(run.leftovers(), [])


def works(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True,
                          cwd=REPOSITORY).returncode == 0


def main() -> int:
    with interruptible():
        return 0 if unittest.main(verbosity=2, exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
