# SPDX-License-Identifier: Apache-2.0
"""Workers that read and repair blocks to files through the `ecpipe` command, and judge each outcome
by what was wrong in the meantime.

Each operation expects a SHA-256, so that bytes of a damaged block, which no repair can tell from
good ones without a checksum, end as an error of the command and are counted as detected. Whatever a
command that ends with 0 has written is compared with the good copy, byte by byte.
"""

from __future__ import annotations

import hashlib
import random
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from labkit import schemes
from labkit.cluster import Cluster
from labkit.process import LabError
from .blocks import Blocks
from .ledger import Allowance, Ledger

SLICES = ("4KiB", "32KiB", "128KiB", "1MiB")
READ_RANGE, READ_BLOCK, REPAIR_FILE = "read-range", "read-block", "repair-file"
OPERATIONS, WEIGHTS = (READ_RANGE, READ_BLOCK, REPAIR_FILE), (40, 30, 30)
REDIS_PART, KILLED_PART = 0.25, 0.06
# What no operation exceeds, whatever is wrong: longer is a hang.
HANG_SECONDS = 60.0
POLL_SECONDS = 0.05
# Without it, workers would only count how often one can fail while the coordinator is away.
AFTER_FAILURE_SECONDS = 0.5
EXIT_DATA, EXIT_UNREACHABLE, EXIT_NO_SURVIVORS = 1, 4, 5
CLEAR_EXITS = (EXIT_DATA, EXIT_UNREACHABLE, EXIT_NO_SURVIVORS)
SHOWN_CHARACTERS = 600


@dataclass
class Operation:
    kind: str
    block_id: str
    offset: int
    length: int
    words: list[str]
    kill_after: float | None  # seconds, then its requestor is killed
    kill_with: int


class Worker(threading.Thread):
    """One operation after the other until `stop` is set; `abort` ends the one under way."""

    def __init__(self, number: int, cluster: Cluster, blocks: Blocks, ledger: Ledger,
                 draw: random.Random, stop: threading.Event, abort: threading.Event) -> None:
        super().__init__(name=f"worker-{number}")
        self._cluster, self._blocks, self._ledger = cluster, blocks, ledger
        self._draw, self._stop_event, self._abort = draw, stop, abort
        self._schemes = ["auto", *schemes.names(cluster.bin_dir, schemes.REPAIRS)]
        self.folder = cluster.work_dir / "out" / self.name
        self.folder.mkdir(parents=True)
        self._out, self._log = self.folder / "out", self.folder / "log"
        self.seconds: dict[str, list[float]] = {kind: [] for kind in OPERATIONS}
        self.killed_writing = 0  # requestors that could not remove their temporary file

    def run(self) -> None:
        while not self._stop_event.is_set():
            try:
                self._one(self._next())
            except (LabError, OSError) as error:
                self._ledger.find("the worker itself failed", error=str(error))

    def _next(self) -> Operation:
        draw = self._draw
        kind = draw.choices(OPERATIONS, WEIGHTS)[0]
        block_id = draw.choice(self._blocks.all())
        offset, length = 0, self._blocks.block_bytes
        if kind == READ_RANGE:
            offset = draw.randrange(length)
            length = draw.randint(1, length - offset)
        good = self._blocks.good(block_id, offset, length)
        words = ["-q", "repair" if kind == REPAIR_FILE else "read", block_id, "-o", self._out,
                 "--scheme", draw.choice(self._schemes), "--slice-size", draw.choice(SLICES),
                 "--transport", "redis" if draw.random() < REDIS_PART else "tcp",
                 "--sha256", hashlib.sha256(good).hexdigest()]
        if kind == READ_RANGE:
            words += ["--offset", str(offset), "--length", str(length)]
        kill = draw.uniform(0.05, 1.0) if draw.random() < KILLED_PART else None
        return Operation(kind, block_id, offset, length, [str(word) for word in words], kill,
                         draw.choice([signal.SIGKILL, signal.SIGTERM]))

    def _one(self, operation: Operation) -> None:
        self._out.unlink(missing_ok=True)
        self._log.unlink(missing_ok=True)
        places, begun = self._blocks.places(operation.block_id), time.monotonic()
        process = self._cluster.requestor.spawn(
            self._cluster.command(*operation.words)[len(self._cluster.requestor.prefix):],
            self._log)
        killed = self._await(process, operation, begun)
        seconds = time.monotonic() - begun
        allowance = self._ledger.allowance(
            begun, {**self._blocks.places(operation.block_id), **places}, [operation.block_id])
        outcome = self._judge(operation, process.returncode, killed, allowance, seconds)
        self._ledger.count(operation.kind, outcome)
        if outcome == "ok":
            self.seconds[operation.kind].append(seconds)
        else:
            self._stop_event.wait(AFTER_FAILURE_SECONDS)

    def _await(self, process: subprocess.Popen[bytes], operation: Operation,
               begun: float) -> str | None:
        """Why it was killed, if it was: "requestor" as planned, "hang" or "abort"."""
        while True:
            try:
                process.wait(POLL_SECONDS)
                return None
            except subprocess.TimeoutExpired:
                pass
            lasted = time.monotonic() - begun
            if operation.kill_after is not None and lasted > operation.kill_after:
                process.send_signal(operation.kill_with)
                why = "requestor"
            elif self._abort.is_set():
                process.kill()
                why = "abort"
            elif lasted > HANG_SECONDS:
                process.kill()
                why = "hang"
            else:
                continue
            try:
                process.wait(HANG_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                why = "hang"
            return why

    def _judge(self, operation: Operation, code: int, killed: str | None, allowed: Allowance,
               seconds: float) -> str:
        said = self._log.read_text(errors="replace")
        evidence = {"operation": operation.kind, "words": " ".join(operation.words),
                    "exit_code": code, "said": said[:SHOWN_CHARACTERS],
                    "seconds": round(seconds, 2),
                    "affected": allowed.affected}
        if killed == "hang":
            self._ledger.find("hang", **evidence)
            return "hang"
        if code == 0:
            if self._out.read_bytes() != self._blocks.good(operation.block_id, operation.offset,
                                                           operation.length):
                self._ledger.find("wrong bytes", **evidence)
                return "wrong bytes"
            return "ok"
        if killed:
            self.killed_writing += operation.kill_with == signal.SIGKILL
            return "killed"
        if code not in CLEAR_EXITS or not said.startswith("ecpipe: "):
            self._ledger.find("unclear error", **evidence)
            return "unclear error"
        if code == EXIT_DATA and "SHA-256" in said and allowed.unseen:
            return "damage detected"
        # An error of a repair that has a plan names it. One that has none does not wait for a
        # coordinator that goes away, and with hung nodes a plan may take seconds.
        if (allowed.coordinator_away and code == EXIT_UNREACHABLE
                and said.startswith("ecpipe: UNAVAILABLE: coordinator")):
            return "failed: no coordinator to plan it"
        if allowed.affected > self._ledger.spare:
            return "failed: too many blocks affected"
        self._ledger.find("failed although it could not", **evidence)
        return "failed although it could not"

