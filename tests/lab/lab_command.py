# SPDX-License-Identifier: Apache-2.0
"""Runs bench/lab.py for a test."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "bench"))

from labkit.process import run  # noqa: E402

LAB_SECONDS = 240.0


def rows_of(bin_dir: Path, experiment: str, *arguments: str) -> list[dict[str, Any]]:
    """One run of an experiment: its rows."""
    with tempfile.TemporaryDirectory(prefix="ecpipe-lab-smoke-") as folder:
        output = Path(folder, "rows.json")
        done = run([sys.executable, REPOSITORY / "bench" / "lab.py", experiment, "--runs", "1",
                    *arguments, "--bin-dir", bin_dir, "--json", output], timeout=LAB_SECONDS)
        print(done.stdout)
        return json.loads(output.read_text())["rows"]
