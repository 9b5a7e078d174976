#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/scale.py runs to its end on a small cluster, and its figures are of what happened. How
large they are is no test's matter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from labkit.command_line import default_bin_dir

REPOSITORY = Path(__file__).resolve().parents[2]
BIN_DIR = Path(os.environ.get("ECPIPE_BIN_DIR", default_bin_dir(REPOSITORY)))
SECONDS = 240.0
NODES, STRIPES, SILENT = 20, 200, 2
BLOCKS = 14 * STRIPES // NODES  # of a node, about


def scale(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, REPOSITORY / "bench" / "scale.py", "--bin-dir", BIN_DIR, *arguments],
        capture_output=True, text=True, timeout=SECONDS)


class ASmallCluster(unittest.TestCase):
    def test_the_figures_are_of_what_happened(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "figures.json")
            done = scale("--nodes", str(NODES), "--stripes", str(STRIPES), "--seconds", "2",
                         "--json", file)
            self.assertEqual(done.returncode, 0, done.stderr)
            figures = json.loads(file.read_text())
        self.assertEqual(figures["silent_nodes"], SILENT)
        self.assertGreater(figures["heartbeats"], 0)
        self.assertGreater(figures["first_block_seconds"], 0)
        self.assertGreater(figures["recovery_done_blocks"], 0)
        self.assertLess(abs(figures["recovery_blocks"] - BLOCKS), BLOCKS)
        self.assertGreater(figures["descriptors"], NODES)
        for name, value in figures.items():
            self.assertGreaterEqual(value, 0, name)
            self.assertIn(name, done.stdout)


class BadArguments(unittest.TestCase):
    def test_a_number_of_nodes_that_the_stripes_cannot_have(self) -> None:
        done = scale("--nodes", "19")
        self.assertEqual(done.returncode, 2)
        self.assertIn("20 or more", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
