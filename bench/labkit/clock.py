# SPDX-License-Identifier: Apache-2.0
"""The machine's clock, which can be made to jump: only on a machine that nobody else uses."""

from __future__ import annotations

import time


class MachineClock:
    """Comes back to the right time by the clock that never jumps."""

    def __init__(self) -> None:
        self._right = time.clock_gettime(time.CLOCK_REALTIME) - _steady()

    def jump(self, seconds: float) -> None:
        """So far from the right time, before or after it. PermissionError without root."""
        time.clock_settime(time.CLOCK_REALTIME, self._right + _steady() + seconds)

    def restore(self) -> None:
        self.jump(0.0)


def _steady() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
