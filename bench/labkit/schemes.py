# SPDX-License-Identifier: Apache-2.0
"""The schemes that the programs know. Whoever means all of them asks here and keeps no list."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

from .process import LabError

SECONDS = 60.0
REPAIRS, BASELINE = "repairs", "baseline"  # kinds that rebuild lost blocks


@functools.cache
def registered(bin_dir: Path) -> tuple[dict[str, Any], ...]:
    """As `ecpipe-coordinator --schemes --json` lists them."""
    command = [bin_dir / "ecpipe-coordinator", "--schemes", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        raise LabError(f"{' '.join(map(str, command))}: exit code {done.returncode}: {done.stderr}")
    return tuple(json.loads(done.stdout))


def names(bin_dir: Path, *kinds: str) -> list[str]:
    """Of the schemes of these kinds."""
    return [scheme["scheme"] for scheme in registered(bin_dir) if scheme["kind"] in kinds]
