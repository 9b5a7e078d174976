#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/quickstart.sh, interrupted once in each of its steps: it ends soon, says so in its exit
code, and leaves nothing behind."""

from __future__ import annotations

import concurrent.futures
import os
import shutil
import signal
import sys
import tempfile
import time
import unittest
from pathlib import Path

from labkit.process import interruptible
from running import COLUMNS, HELD, REPOSITORY, Run, sleep

# What it prints when the step begins, and how many seconds it is then on its way.
STEPS = (("==> Making a real file", 0.0), ("==> Starting the coordinator", 0.3),
         ("==> Encoding", 0.2), ("==> Loading", 0.0), ("==> Losing", 0.0), ("result", 0.4),
         ("\ndirect", 1.0), ("\nconventional", 0.7), ("\nppr", 0.4), ("\nrp            tcp", 0.3),
         ("==> A degraded read", 0.1), ("==> A helper killed", 0.6), ("==> Recovering", 0.5))
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_SECONDS = 45.0
RUNS_AT_ONCE = 3
BUILDING_SECONDS = 4.0
POLICY = Path("/usr/sbin/policy-rc.d")
# As apt-get is while dpkg works: it takes note of ctrl-C, and ends when the packages are in order.
FAKE_APT_GET = """#!/bin/sh
case " $* " in *" install "*) ;; *) exit 0 ;; esac
interrupted=0
trap 'interrupted=1' INT
echo begun >>"$APT_LOG"
for i in 1 2 3 4 5 6; do sleep 0.5; done
echo "ended, interrupted: $interrupted" >>"$APT_LOG"
exit 100
"""


def interrupt(run: Run, number: int) -> None:
    """SIGINT as a terminal sends it, to all of the foreground; the others to the script alone."""
    if number == signal.SIGINT:
        os.killpg(run.process.pid, number)
    else:
        run.process.send_signal(number)


class Interrupted(unittest.TestCase):
    def assert_ends(self, run: Run, number: int) -> None:
        namespaces, start = run.namespaces(), time.monotonic()
        interrupt(run, number)
        self.assertEqual(run.wait(), 128 + number, run.output())
        self.assertLess(time.monotonic() - start, STOP_SECONDS)
        self.assertEqual(run.leftovers(namespaces), [])
        self.assertNotIn("Traceback", run.output())

    def interrupt_at(self, text: str, seconds: float, number: int, *options: str) -> None:
        with Run("--quick", *options) as run:
            run.wait_for(text)
            sleep(seconds)
            self.assertIsNone(run.process.poll(), f"over before the signal: {run.output()}")
            self.assert_ends(run, number)

    def test_in_each_step(self) -> None:
        with concurrent.futures.ThreadPoolExecutor(RUNS_AT_ONCE) as pool:
            jobs = [pool.submit(self.interrupt_at, text, seconds, SIGNALS[i % len(SIGNALS)])
                    for i, (text, seconds) in enumerate(STEPS)]
            jobs.append(pool.submit(self.interrupt_at, HELD, 0.0, signal.SIGINT, "--hold"))
            for job in jobs:
                job.result()

    def test_in_the_build(self) -> None:
        """In a copy of the checkout, which has no build."""
        for number in (signal.SIGINT, signal.SIGTERM):
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder, "checkout")
                shutil.copytree(REPOSITORY, copy, symlinks=True,
                                ignore=shutil.ignore_patterns("build", ".git", "__pycache__"))
                with Run("--quick", repository=copy) as run:
                    run.wait_for("==> Building ECPipe")
                    sleep(BUILDING_SECONDS)
                    self.assertIsNone(run.process.poll())
                    for line in run.output().splitlines():
                        self.assertLessEqual(len(line), COLUMNS, line)
                    self.assert_ends(run, number)

    def test_in_the_installation(self) -> None:
        """apt-get is a stand-in, which is let to its end. Of policies against services, only one
        that was there before is left."""
        if os.geteuid() != 0:
            self.skipTest("the installation needs root")
        policy = policy_text()
        for number in SIGNALS:
            with self.subTest(signal=number), tempfile.TemporaryDirectory() as folder:
                log = Path(folder, "log")
                for name, text in (("apt-get", FAKE_APT_GET), ("dpkg-query", "#!/bin/sh\n"),
                                   ("update-rc.d", "#!/bin/sh\n")):
                    Path(folder, name).write_text(text)
                    Path(folder, name).chmod(0o755)
                with Run("--quick", environment={
                        "ECPIPE_SKIP_DEPS": "0", "APT_LOG": str(log),
                        "PATH": f"{folder}:{os.environ['PATH']}"}) as run:
                    run.wait_for("install-deps: installing")
                    sleep(1.0)
                    self.assert_ends(run, number)
                said = log.read_text().splitlines()
                self.assertEqual(said[0], "begun")
                self.assertTrue(said[-1].startswith("ended"), "apt-get was killed")
                self.assertEqual(policy_text(), policy)


def policy_text() -> str | None:
    return POLICY.read_text() if POLICY.exists() else None


def main() -> int:
    with interruptible():
        return 0 if unittest.main(verbosity=2, exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
