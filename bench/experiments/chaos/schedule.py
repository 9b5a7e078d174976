# SPDX-License-Identifier: Apache-2.0
"""Which fault comes next, and when each one ends: a loop for the main thread, since a daemon ends
with the thread that has started it."""

from __future__ import annotations

import errno
import random
import time
from dataclasses import dataclass
from typing import Any

from labkit.cluster import Cluster
from labkit.process import LabError
from .faults import STORM, Fault, Faults
from .ledger import Ledger

TICK_SECONDS = 0.1
PAUSE_SECONDS = (0.2, 2.5)
# How long a drawn fault waits for room beside the others before another one is drawn.
ROOM_SECONDS = 8.0
# A node that has nothing wrong any more is live again within this time.
BACK_SECONDS = 30.0
STATUS_SECONDS = 20.0


@dataclass(eq=False)
class Running:
    fault: Fault
    until: float
    undone_at: float | None = None


class Schedule:
    def __init__(self, cluster: Cluster, faults: Faults, ledger: Ledger,
                 draw: random.Random) -> None:
        self._cluster, self._faults, self._ledger, self._draw = cluster, faults, ledger, draw
        self._running: list[Running] = []
        self._waiting: Fault | None = None
        self._waiting_until = 0.0
        self._next_at = time.monotonic()
        self._status_said = ""

    def tick(self) -> None:
        """Undoes what has lasted long enough, and begins another fault when it is time."""
        now = time.monotonic()
        for running in list(self._running):
            if running.undone_at is None and now >= running.until:
                self._undo(running)
        self._end_what_is_over()
        if now >= self._next_at:
            self._begin_next(now)
        self._look_for_crashes()

    def undo_all(self) -> None:
        """At the end: then all nodes are live again, or that is a finding."""
        deadline = time.monotonic() + BACK_SECONDS + STATUS_SECONDS
        while self._running and time.monotonic() < deadline:
            for running in self._running:
                if running.undone_at is None:
                    self._undo(running)
            self._end_what_is_over()

    def _begin_next(self, now: float) -> None:
        if self._waiting is None:
            self._waiting, self._waiting_until = self._faults.next(), now + ROOM_SECONDS
        fault = self._waiting
        if not self._ledger.begin(fault.mark, beyond=fault.beyond):
            if now > self._waiting_until:
                self._waiting = None
                self._ledger.count("without-room", fault.kind)
            return
        self._waiting = None
        self._next_at = now + self._draw.uniform(*PAUSE_SECONDS)
        self._running.append(Running(fault, now + fault.seconds))
        self._ledger.count("faults", fault.kind)
        print(f"{time.strftime('%H:%M:%S')} {fault.kind} {fault.mark.names()} "
              f"{fault.seconds:.1f} s", flush=True)
        fault.begin()
        if fault.kind == STORM:
            self._next_at = now + fault.seconds

    def _undo(self, running: Running) -> None:
        try:
            running.fault.undo()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            running.until = time.monotonic() + 1.0  # another fault fills that disk: later
            return
        running.undone_at = time.monotonic()

    def _end_what_is_over(self) -> None:
        """Nodes are back when the coordinator says so and they answer it, blocks when it does not
        hold them for corrupt any more."""
        undone = [running for running in self._running if running.undone_at is not None]
        if not undone:
            return
        status = self._status()
        back, corrupt = self._nodes_back(status), _corrupt(status)
        marked = {block for running in self._running for block in running.fault.mark.blocks}
        self._repair({block: corrupt[block] for block in corrupt.keys() - marked})  # found late
        elsewhere = {node for mark in self._ledger.active() for node in mark.nodes}
        for running in undone:
            needed = running.fault.nodes_back
            if held := running.fault.mark.blocks & corrupt.keys():
                self._repair({block: corrupt[block] for block in held})
                continue
            if running.fault.mark.coordinator:
                needed -= elsewhere
            if needed <= back:
                self._over(running)
            elif time.monotonic() - running.undone_at > BACK_SECONDS:
                self._ledger.find("not live again", kind=running.fault.kind,
                                  nodes=sorted(needed - back), seconds=BACK_SECONDS,
                                  status=self._status_said)
                self._over(running)

    def _over(self, running: Running) -> None:
        self._ledger.end(running.fault.mark)
        self._running.remove(running)

    def _repair(self, corrupt: dict[str, str]) -> None:
        """As an operator would: the coordinator does not look at a block again that was found
        corrupt. Where too much else is wrong the next tick tries again."""
        for block, node in corrupt.items():
            try:
                self._cluster.cli("repair", block, "--to", node, timeout=STATUS_SECONDS)
                self._ledger.count("mended", "ok")
            except LabError:
                self._ledger.count("mended", "failed")

    def _status(self) -> dict[str, Any]:
        """Empty while the coordinator is away."""
        try:
            return self._cluster.cli_json("status", timeout=STATUS_SECONDS)
        except LabError as error:
            self._status_said = str(error)
            return {}

    def _nodes_back(self, status: dict[str, Any]) -> set[str]:
        if not status:
            return set()
        self._status_said = "; ".join(
            f"{node['node_id']} is {node['state']}, answers: {node['answers']}"
            for node in status["nodes"] if node["state"] != "live" or not node["answers"])
        return {node["node_id"] for node in status["nodes"]
                if node["state"] == "live" and node["answers"]}

    def _look_for_crashes(self) -> None:
        for daemon in self._cluster.daemons():
            if not daemon.running() and daemon.ended_badly():
                self._ledger.find("crash", daemon=daemon.name, exit_code=daemon.exit_code(),
                                  log=daemon.log_tail())
                daemon.killed_on_purpose = True  # it has been told of once


def _corrupt(status: dict[str, Any]) -> dict[str, str]:
    """The blocks that the coordinator holds for corrupt, and their nodes."""
    return {block["block_id"]: block["node"] for block in status.get("corrupt_blocks", [])}
