#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A minute of `bench/lab.py chaos` with a fixed seed, and what happens when it is interrupted.

Exit code 77 with "SKIP: reason" where namespaces cannot be used.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "bench"))

from labkit import namespace, netns  # noqa: E402
from labkit.process import interruptible, run  # noqa: E402

EXIT_SKIPPED = 77
RUN_SECONDS = 420.0
STOP_SECONDS = 90.0
SMALL = ("--seed", "7", "--nodes", "10", "--n", "7", "--k", "4", "--stripes", "6",
         "--block-mib", "2", "--workers", "3")
BIN_DIR = Path()


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(REPOSITORY / "bench" / "lab.py"), "chaos", *SMALL, *arguments,
            "--bin-dir", str(BIN_DIR)]


class Chaos(unittest.TestCase):
    def test_a_minute_of_it_is_clean(self) -> None:
        with tempfile.TemporaryDirectory(prefix="ecpipe-chaos-test-") as folder:
            output = Path(folder, "chaos.json")
            done = run(command("--minutes", "1", "--json", str(output)), timeout=RUN_SECONDS,
                       check=False)
            print(done.stdout)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            result = json.loads(output.read_text())
        self.assertEqual(result["findings"], [])
        self.assertGreater(result["totals"]["faults"], 5)
        succeeded = {row["operation"]: row["outcomes"].get("ok", 0) for row in result["rows"]}
        for operation in ("read-range", "read-block", "repair-file"):
            self.assertGreater(succeeded[operation], 0, operation)

    def test_interrupted_it_takes_everything_down(self) -> None:
        lab = subprocess.Popen(command("--minutes", "30"), stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        try:
            self.assertTrue(lab.stdout.readline(), "the first fault")
            its_own = namespace.opened_by(lab.pid)
            self.assertTrue(its_own)
            lab.send_signal(signal.SIGINT)
            lab.communicate(timeout=STOP_SECONDS)
            self.assertEqual(lab.returncode, 128 + signal.SIGINT)
            self.assertEqual(namespace.in_use(its_own), set())
        finally:
            lab.kill()
            lab.communicate()


def main() -> int:
    global BIN_DIR
    at = sys.argv.index("--bin-dir")
    BIN_DIR = Path(sys.argv[at + 1]).resolve()
    del sys.argv[at:at + 2]
    if obstacle := netns.why_not():
        print(f"SKIP: {obstacle}")
        return EXIT_SKIPPED
    with interruptible():
        return 0 if unittest.main(verbosity=2, exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
