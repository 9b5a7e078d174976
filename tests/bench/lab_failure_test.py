#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bench/lab.py says when it cannot go on: the reason in the last line, logs as a path."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from labkit.command_line import PROGRAMS, print_error
from labkit.daemon import Daemon
from labkit.process import LabError
from labkit.work_folder import work_folder

REPOSITORY = Path(__file__).resolve().parents[2]
SECONDS = 60.0


def lab(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, REPOSITORY / "bench" / "lab.py", *arguments],
                          capture_output=True, text=True, timeout=SECONDS)


class WhatIsNotBuilt(unittest.TestCase):
    def last_line(self, built: tuple[str, ...], preset: str, *arguments: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            bin_dir = Path(folder, "build", preset, "bin")
            bin_dir.mkdir(parents=True)
            for name in built:
                (bin_dir / name).touch()
            done = lab(*arguments, "--bin-dir", bin_dir)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr.splitlines()[-1]

    def test_the_bare_chain(self) -> None:
        said = self.last_line(PROGRAMS, "release", "single", "--schemes", "direct,bare-chain,rp")
        self.assertRegex(said, r"^lab\.py: bare_chain: not built in .*/build/release/bin; "
                               r"build with `cmake --preset release && "
                               r"cmake --build --preset release --target bare_chain`$")

    def test_a_daemon_of_another_preset(self) -> None:
        said = self.last_line(("ecpipe", "ecpipe-helper"), "asan", "single")
        self.assertIn("--preset asan --target ecpipe-coordinator`", said)


class Logs(unittest.TestCase):
    def test_only_lines_that_tell_of_trouble(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "node-1.log")
            log.write_text("2026-01-02T03:04:05.678Z INFO repair.begin repair=1\n"
                           "2026-01-02T03:04:05.679Z WARNING part.failed reason=disk\n"
                           "==7==ERROR: AddressSanitizer: heap-use-after-free\n")
            said = Daemon("node-1", [], log).log_troubles().splitlines()
            self.assertEqual(said, [f"--- node-1: {log}",
                                    "2026-01-02T03:04:05.679Z WARNING part.failed reason=disk",
                                    "==7==ERROR: AddressSanitizer: heap-use-after-free"])
            log.write_text("2026-01-02T03:04:05.678Z INFO helper.draining\n"
                           "2026-01-02T03:04:05.678Z WARNING security.off reason=here\n")
            self.assertEqual(Daemon("node-1", [], log).log_troubles(), "")

    def test_the_reason_comes_last(self) -> None:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            print_error("lab.py", LabError("node-1 has ended\nits log\nits last line"))
        self.assertEqual(said.getvalue(), "its log\nits last line\nlab.py: node-1 has ended\n")

    def left_after(self, error: type[BaseException] | None) -> list[str]:
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.suppress(LabError, SystemExit), \
                work_folder(None, "ecpipe-test-") as folder:
            for name in ("cluster-1/logs/node-1.log", "cluster-1/data/node-1/block"):
                (folder / name).parent.mkdir(parents=True)
                (folder / name).touch()
            if error:
                raise error("some reason")
        self.assertEqual(said.getvalue(), f"logs: {folder}\n" if folder.exists() else "")
        with contextlib.ExitStack() as stack:
            if folder.exists():
                stack.callback(subprocess.run, ["rm", "-r", str(folder)], check=True)
            return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]

    def test_stay_after_a_failure_only(self) -> None:
        self.assertEqual(self.left_after(LabError), ["cluster-1/logs/node-1.log"])
        self.assertEqual(self.left_after(SystemExit), [])
        self.assertEqual(self.left_after(None), [])


if __name__ == "__main__":
    unittest.main()
