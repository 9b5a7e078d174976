#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/labkit/process.py: a signal ends a program wherever it comes."""

from __future__ import annotations

import signal
import subprocess
import sys
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
SECONDS = 30.0
PROGRAM = """
import os, signal, subprocess, sys, time
from labkit.process import interruptible

def hit(*_):
    os.kill(os.getpid(), signal.SIGINT)
    sum(range(1000))  # Python looks for signals here

class Finalized:
    def __del__(self):
        hit()

with interruptible() as stack:
    stack.callback(print, "cleaned up", flush=True)
    {body}
    time.sleep(5)
    print("went on")
"""


class Interrupts(unittest.TestCase):
    def check(self, body: str) -> None:
        done = subprocess.run([sys.executable, "-c", PROGRAM.format(body=body)], text=True,
                              capture_output=True, timeout=SECONDS, env={"PYTHONPATH": str(BENCH)})
        self.assertEqual((done.returncode, done.stdout), (128 + signal.SIGINT, "cleaned up\n"),
                         done.stderr)

    def test_in_the_body(self) -> None:
        self.check("hit()")

    def test_after_a_fork(self) -> None:
        """Python prints what is raised there, and goes on."""
        self.check("os.register_at_fork(after_in_parent=hit); "
                   "subprocess.run(['true'], preexec_fn=int)")

    def test_after_a_fork_whose_child_it_ends_first(self) -> None:
        """What fails before it is raised, fails because of it."""
        self.check("os.register_at_fork(after_in_parent=hit); "
                   "subprocess.run(['true'], preexec_fn=int); raise OSError('child ended')")

    def test_in_a_finalizer(self) -> None:
        self.check("Finalized()")

    def test_the_second_one_disturbs_no_clean_up(self) -> None:
        self.check("stack.callback(hit); hit()")


if __name__ == "__main__":
    sys.exit(0 if unittest.main(verbosity=2, exit=False).result.wasSuccessful() else 1)
