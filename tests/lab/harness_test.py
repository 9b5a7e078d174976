#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/lab.py itself: the forms of its results, what an interrupted lab leaves, and what it
refuses.

Exit code 77 with "SKIP: reason" where namespaces cannot be used.
"""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from lab_command import REPOSITORY
from experiments import plots
from labkit import namespace, netns
from labkit.process import interruptible, run

EXIT_SKIPPED = 77
STOP_SECONDS = 60.0
SMALL = ("--n", "6", "--k", "4")
BIN_DIR = Path()


class Harness(unittest.TestCase):
    def test_results_in_all_forms(self) -> None:
        """CSV with a line a sample, and a plot."""
        if reason := plots.why_not():
            self.skipTest(reason)
        with tempfile.TemporaryDirectory() as folder:
            rows = Path(folder, "rows.csv")
            run([sys.executable, REPOSITORY / "bench" / "lab.py", "single", *SMALL, "--runs", "2",
                 "--block-mib", "1", "--rate-mbit", "100", "--bin-dir", BIN_DIR, "--csv", rows,
                 "--png", Path(folder, "plot.png")], timeout=120)
            with rows.open() as file:
                lines = list(csv.DictReader(file))
            self.assertEqual([line["scheme"] for line in lines[:2]], ["direct", "direct"])
            self.assertEqual(len(lines), 8)
            self.assertEqual(Path(folder, "plot.png").read_bytes()[1:4], b"PNG")

    def test_interrupted_it_takes_its_network_down(self) -> None:
        """Beside another lab, which goes on."""
        words = [sys.executable, str(REPOSITORY / "bench" / "lab.py"), "single", *SMALL,
                 "--runs", "1000", "--block-mib", "1", "--rate-mbit", "100", "--schemes", "rp",
                 "--bin-dir", str(BIN_DIR)]
        labs = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 text=True) for _ in range(2)]
        try:
            for lab in labs:
                for line in lab.stdout:
                    if line.startswith("run 1: rp"):
                        break
            for index, lab in enumerate(labs):
                its_own = namespace.opened_by(lab.pid)
                self.assertTrue(its_own)
                lab.send_signal(signal.SIGINT)
                self.assertEqual(drain(lab), 128 + signal.SIGINT)
                self.assertEqual(namespace.in_use(its_own), set())
                for other in labs[index + 1:]:
                    self.assertTrue(other.stdout.readline().startswith("run "))
        finally:
            for lab in labs:
                lab.terminate()
                drain(lab)

    def test_what_cannot_be_is_refused(self) -> None:
        for words in (("edge", "--edge-mbit", "0"), ("rack", "--racks", "2"),
                      ("geo", "--matrix", "nowhere"), ("geo", "--regions", "Paris"),
                      ("links", "--matrix", "random:x"), ("slowed", "--to", "1"),
                      ("codes", "--codes", "rs(6;4)"), ("slices", "--slice-kib", "1,x"),
                      ("node", "--nodes", "13"), ("node", "--requestors", "none"),
                      ("multi", "--failed", "5"), ("qfs", "--chunk-mib", "65"),
                      ("load", "--reads", "some"), ("load", "--nodes", "15"),
                      ("qfs", "--chunk-mib", "1", "--slice-kib", "2048"),
                      ("single", "--tls", "--transport", "redis"),
                      ("implementations", "--socket-kib", "-1"),
                      ("all", "--quick", "--figures", "99")):
            done = run([sys.executable, REPOSITORY / "bench" / "lab.py", *words,
                        "--bin-dir", BIN_DIR], check=False)
            self.assertEqual(done.returncode, 1, words)
            self.assertNotIn("Traceback", done.stderr)


def drain(lab: subprocess.Popen[str]) -> int:
    """Takes what it still prints, so that it can end. Its exit code."""
    lab.communicate(timeout=STOP_SECONDS)
    return lab.returncode


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
