# SPDX-License-Identifier: Apache-2.0
"""How busy this machine is, with everything that runs on it."""

from __future__ import annotations

import os
import time
from pathlib import Path

_FIELDS_IDLE = (3, 4)  # idle and iowait, of proc_stat(5)'s user nice system idle iowait irq ...
_FIELDS = 8            # up to steal; guests' time is part of user's


class LoadWatch:
    """From its making on."""

    def __init__(self) -> None:
        self._begin, self._busy = time.monotonic(), _busy_seconds()

    def cores_busy(self) -> float:
        """On average since then; what the hypervisor gave to others counts as busy."""
        wall = time.monotonic() - self._begin
        return (_busy_seconds() - self._busy) / wall if wall > 0 else 0.0


def _busy_seconds() -> float:
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    busy = sum(ticks[:_FIELDS]) - sum(ticks[i] for i in _FIELDS_IDLE)
    return busy / os.sysconf("SC_CLK_TCK")
