#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/experiments/chaos/history.py: what logs become as a history."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from experiments.chaos import history  # noqa: E402

TIME = "2026-01-02T03:04:05.678Z"
COORDINATOR = f"""\
{TIME} INFO coordinator.serving listen=10.0.0.1:7700
{TIME} INFO repair.end repair=0a state=done attempts=1 block=s.1 requestor=alice detail=""
{TIME} INFO recovery.begin recovery=4 node=node-1 scheme=auto policy=spread
{TIME} WARNING repair.resume repair=0b attempt=2 missing=4096 status="UNAVAILABLE: it \\"ended\\""
{TIME} INFO repair.end repair=0b state=done block=s.2,s.3 requestor=node-2,node-3 detail=""
{TIME} WARNING repair.end repair=0c state=failed block=s.4 requestor=node-2 detail="a =b"
{TIME} INFO recovery.end recovery=4 node=node-1 state=done blocks=2 done=2 failed=0
{TIME} INFO repair.end repair=0d state=done attempts=1 block=s.5 requestor=node-3 detail=""
{TIME} INFO repair.end repair=0e state=done attempts=1 blo"""
HELPER = f"""\
{TIME} INFO helper.serving node=node-1
{TIME} DEBUG part.begin repair=0b attempt=1
{TIME} WARNING part.end repair=0b attempt=1 seconds=0.1 sent=0 received=0 status="CANCELLED: over"
{TIME} DEBUG part.begin repair=0b attempt=2
{TIME} INFO part.end repair=0b attempt=2 seconds=0.1 sent=1 received=1 status=OK
{TIME} INFO part.end repair=0c attempt=0 seconds=0.0 sent=1 received=1 status=OK
{TIME} DEBUG part.begin repair=0c attempt=0
"""


def lines(text: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.write_text(text)
        return iter(list(history.log_lines(log)))


class History(unittest.TestCase):
    def test_of_a_coordinator(self) -> None:
        events = list(history.coordinator_events(lines(COORDINATOR), {"node-2", "node-3"}))
        self.assertEqual(events, [
            {"kind": "goes_on", "repair": "0b", "attempt": 2, "bytes": 4096},
            {"kind": "moved", "block": "s.2", "node": "node-2", "recovery": 4},
            {"kind": "moved", "block": "s.3", "node": "node-3", "recovery": 4},
            {"kind": "moved", "block": "s.5", "node": "node-3", "recovery": 0}])

    def test_of_a_helper(self) -> None:
        part = {"node": "node-1", "repair": "0b"}
        other = {"node": "node-1", "repair": "0c", "attempt": 0}
        self.assertEqual(list(history.helper_events("node-1", lines(HELPER))), [
            {"kind": "node_starts", "node": "node-1"},
            {"kind": "part_begins", **part, "attempt": 1},
            {"kind": "part_begins", **part, "attempt": 2},
            {"kind": "part_ends", **part, "attempt": 2},
            {"kind": "part_begins", **other}, {"kind": "part_ends", **other}])


if __name__ == "__main__":
    sys.exit(0 if unittest.main(verbosity=2, exit=False).result.wasSuccessful() else 1)
