# SPDX-License-Identifier: Apache-2.0
"""Blocks that are rebuilt on nodes: recoveries of a node whose blocks are gone, and `repair --to`.

What has been stored is compared with the good copies before anything may damage it. Blocks that
could not be rebuilt, which only faults excuse, are put back by hand.
"""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from typing import Any, Iterator

from labkit.cluster import Cluster
from labkit.process import LabError, wait_until
from .blocks import Blocks
from .ledger import RECOVERY, REPAIR_TO, Ledger, Mark
from .operations import CLEAR_EXITS, HANG_SECONDS, SHOWN_CHARACTERS

PAUSE_SECONDS = (0.5, 3.0)
# The coordinator tries a block six times, with pauses of 1 to 16 s between; each may meet a fault.
RECOVERY_SECONDS = 240.0
ASK_SECONDS = 30.0
EXIT_UNREACHABLE = 4


class AbortedError(Exception):
    """The run is over; nothing is to be judged any more."""


class Mover(threading.Thread):
    def __init__(self, cluster: Cluster, blocks: Blocks, ledger: Ledger, draw: random.Random,
                 stop: threading.Event, abort: threading.Event) -> None:
        super().__init__(name="mover")
        self._cluster, self._blocks, self._ledger = cluster, blocks, ledger
        self._draw, self._stop_event, self._abort = draw, stop, abort
        self.seconds: dict[str, list[float]] = {RECOVERY: [], REPAIR_TO: []}

    def run(self) -> None:
        while not self._stop_event.wait(self._draw.uniform(*PAUSE_SECONDS)):
            try:
                if self._draw.random() < 0.5:
                    self._recovery(self._draw.choice(self._cluster.node_ids))
                else:
                    self._repair_to(self._draw.choice(self._blocks.all()))
            except AbortedError:
                return
            except (LabError, OSError) as error:
                self._ledger.find("the mover itself failed", error=str(error))

    # ---- The two kinds -------------------------------------------------------------------------

    def _recovery(self, node: str) -> None:
        """The node lives on, without its blocks; other nodes take them."""
        lost = self._blocks.on(node)
        mark = Mark(RECOVERY, nodes=frozenset([node]), blocks=frozenset(lost), units=1)
        with self._moving(mark, lost) as begun:
            if begun:
                shown = self._recover(node)
                self._judge(RECOVERY, begun, lost, shown["state"] == "done", json.dumps(shown))

    def _repair_to(self, block_id: str) -> None:
        """The node must have no block of the stripe, or it is refused."""
        places = self._blocks.places(block_id)
        target = self._draw.choice(sorted(set(self._cluster.node_ids) - set(places.values())))
        mark = Mark(REPAIR_TO, blocks=frozenset([block_id]), units=1)
        with self._moving(mark, [block_id]) as begun:
            if not begun:
                return
            done = self._cluster.cli("-q", "repair", block_id, "--to", target, check=False,
                                     timeout=HANG_SECONDS)
            if done.returncode not in (0, *CLEAR_EXITS):
                self._ledger.find("unclear error", operation=REPAIR_TO, exit_code=done.returncode,
                                  said=done.stderr[-SHOWN_CHARACTERS:])
            self._judge(REPAIR_TO, begun, [block_id], done.returncode == 0, done.stderr)

    @contextlib.contextmanager
    def _moving(self, mark: Mark, lost: list[str]) -> Iterator[float | None]:
        """Takes the blocks away; afterwards all of them are there again. When it began; None when
        there is no room for it beside what is wrong already."""
        if not self._ledger.begin(mark):
            yield None
            return
        try:
            for block_id in lost:
                self._blocks.file(block_id).unlink()
            yield time.monotonic()
        finally:
            for block_id in lost:
                if self._blocks.is_good(block_id) is not True:
                    self._blocks.restore(block_id)
            self._ledger.end(mark)

    def _recover(self, node: str) -> dict[str, Any]:
        """The recovery as the coordinator has it at its end. It outlives the coordinator."""
        recovery_id = str(self._ask("recover-node", node, "--even-if-live", "--delay", "0",
                                    "--detach")["recovery_id"])
        shown: dict[str, Any] = {}

        def ended() -> bool:
            shown.update(self._ask("recovery", "show", recovery_id))
            if self._abort.is_set():
                raise AbortedError("the run was interrupted")
            return shown["state"] != "running"
        try:
            wait_until(ended, RECOVERY_SECONDS, "the recovery's end")
        except LabError:
            self._ledger.find("hang", operation=RECOVERY, shown=shown)
            self._ask("recovery", "cancel", recovery_id)
        return shown

    def _ask(self, *words: str) -> dict[str, Any]:
        """Again, while the coordinator is away; LabError after a bounded time."""
        answer: list[dict[str, Any]] = []

        def answered() -> bool:
            done = self._cluster.cli("--json", *words, check=False, timeout=ASK_SECONDS)
            if done.returncode == 0:
                answer.append(json.loads(done.stdout or "{}"))
            elif done.returncode != EXIT_UNREACHABLE:
                raise LabError(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr}")
            return bool(answer)
        wait_until(answered, ASK_SECONDS, " ".join(words))
        return answer[0]

    # ---- Judging -------------------------------------------------------------------------------

    def _judge(self, kind: str, begun: float, lost: list[str], done: bool, said: str) -> None:
        """A repair to a node is not resumed (docs/design/008-attempts.md), so any fault excuses it;
        a recovery tries again, so only too many do. Right bytes are due in any case."""
        seconds = time.monotonic() - begun
        self._read_catalog()
        failed = [block_id for block_id in lost if not self._check(kind, block_id, done)]
        if done:
            self._ledger.count(kind, "ok")
            self.seconds[kind].append(seconds)
        elif failed and all(self._excused(kind, begun, block_id) for block_id in failed):
            self._ledger.count(kind, "failed: excused by faults")
        else:
            self._ledger.count(kind, "failed although it could not")
            self._ledger.find("failed although it could not", operation=kind, blocks=failed,
                              said=said[-SHOWN_CHARACTERS:], seconds=round(seconds, 2))

    def _check(self, kind: str, block_id: str, done: bool) -> bool:
        """Whether the block is where the catalog says, and right."""
        good = self._blocks.is_good(block_id)
        if good is False:
            self._ledger.find("wrong bytes", operation=kind, block=block_id,
                              file=str(self._blocks.file(block_id).name))
        elif good is None and done:
            self._ledger.find("a repaired block is missing", operation=kind, block=block_id)
        return good is True

    def _excused(self, kind: str, begun: float, block_id: str) -> bool:
        allowed = self._ledger.allowance(begun, self._blocks.places(block_id), [block_id])
        if kind == REPAIR_TO:
            return allowed.disturbed
        return allowed.affected > self._ledger.spare

    def _read_catalog(self) -> None:
        def read() -> bool:
            with contextlib.suppress(LabError):
                self._blocks.read_catalog()
                return True
            return False
        wait_until(read, ASK_SECONDS, "the catalog read")
        for place in self._blocks.crowded():
            self._ledger.find("two blocks of a stripe on one node", place=place)
