# SPDX-License-Identifier: Apache-2.0
"""Daemons' clocks that can be made to jump, while the machine's own stays right."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Iterable

LIBRARY = "libjumping_clock.so"


class JumpingClocks:
    """A real-time clock for each of these daemons (bench/jumping_clock.cc). Those that wait for a
    point of time when it jumps go on as if it had not."""

    def __init__(self, bin_dir: Path, folder: Path, names: Iterable[str]) -> None:
        self._library = Path(bin_dir).resolve() / LIBRARY
        folder.mkdir(parents=True, exist_ok=True)
        self._files = {name: folder.resolve() / f"{name}.clock" for name in names}
        for name in self._files:
            self.jump(name, 0.0)

    def environment(self, name: str) -> dict[str, str]:
        """What the daemon has to be started with."""
        return {"LD_PRELOAD": str(self._library), "ECPIPE_CLOCK_OFFSET": str(self._files[name])}

    def jump(self, name: str, seconds: float) -> None:
        """So far from the right time, before or after it."""
        file = self._files[name]
        with file.open("r+b" if file.exists() else "wb") as clock:
            clock.write(struct.pack("=q", round(seconds * 1e9)))

    def restore(self, name: str) -> None:
        self.jump(name, 0.0)
