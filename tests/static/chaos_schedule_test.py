#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/experiments/chaos/schedule.py: a fault that cannot be undone yet."""

from __future__ import annotations

import errno
import random
import sys
import unittest
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from experiments.chaos.faults import Fault  # noqa: E402
from experiments.chaos.ledger import Mark  # noqa: E402
from experiments.chaos.schedule import Running, Schedule  # noqa: E402


class Undone(unittest.TestCase):
    def setUp(self) -> None:
        nobody = cast(Any, None)
        self.schedule = Schedule(nobody, nobody, nobody, random.Random(1))
        self.errors: list[int] = []

    def undo(self) -> None:
        if self.errors:
            raise OSError(self.errors.pop(0), "the disk says so")

    def running(self) -> Running:
        return Running(Fault(Mark("truncate"), 1.0, self.undo, self.undo), until=0.0)

    def test_a_full_disk_is_tried_again_later(self) -> None:
        self.errors = [errno.ENOSPC]
        running = self.running()
        self.schedule._undo(running)  # noqa: SLF001
        self.assertIsNone(running.undone_at)
        self.assertGreater(running.until, 0.0)
        self.schedule._undo(running)  # noqa: SLF001
        self.assertIsNotNone(running.undone_at)

    def test_any_other_error_ends_the_run(self) -> None:
        self.errors = [errno.EIO]
        with self.assertRaises(OSError):
            self.schedule._undo(self.running())  # noqa: SLF001


if __name__ == "__main__":
    unittest.main(verbosity=2)
