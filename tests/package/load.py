# SPDX-License-Identifier: Apache-2.0
"""Reads that go on in a machine while something is done to it."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from pathlib import Path
from typing import Mapping, Sequence

from debian_root import Booted
from labkit.process import LabError, wait_until

READERS = 2
PATIENCE = 60.0
TRY_AGAIN = 4  # exit code of ecpipe
PAUSE = 0.2


class Load:
    """A context manager: reads random blocks, lost ones among them, until its end. `command`:
    ecpipe with its options. `sums`: SHA-256 of each block.

    A read that is told that the coordinator does not answer, or has just started, is tried again,
    as a script would. This is counted: `refused` times, the longest read for `longest_wait` seconds
    until it went through."""

    def __init__(self, machine: Booted, root: Path, command: Sequence[str], coordinator: str,
                 sums: Mapping[str, str]) -> None:
        self.reads = 0           # that brought all bytes of a block
        self.refused = 0
        self.longest_wait = 0.0
        self.wrong: list[str] = []
        self.failures: list[str] = []
        self._machine, self._root, self._command = machine, root, command
        self._reasons = (f"coordinator {coordinator}", "the coordinator has just started")
        self._sums = sorted(sums.items())
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(seed,))
                         for seed in range(READERS)]

    def await_more(self, reads: int) -> None:
        wanted = self.reads + reads
        wait_until(lambda: self.reads >= wanted, PATIENCE, f"{reads} more reads")

    def _run(self, seed: int) -> None:
        chance = random.Random(seed)
        while not self._ends.is_set():
            block, want = chance.choice(self._sums)
            try:
                self._read(block, want, f"root/read-{seed}")
            except (LabError, OSError) as error:
                self._note(self.failures, f"{block}: {error}")

    def _read(self, block: str, want: str, file: str) -> None:
        path = self._root / file
        path.unlink(missing_ok=True)
        began, tried_again = time.monotonic(), False
        while True:
            done = self._machine.run(*self._command, "read", block, "--output", f"/{file}",
                                     "--quiet", check=False)
            refused = done.returncode == TRY_AGAIN and any(reason in done.stderr
                                                           for reason in self._reasons)
            if not refused or time.monotonic() - began > PATIENCE:
                break
            with self._lock:
                self.refused += 1
            tried_again = True
            time.sleep(PAUSE)
        if done.returncode:
            self._note(self.failures, f"{block}: exit code {done.returncode}: {done.stderr}")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != want:
            self._note(self.wrong, block)
        else:
            with self._lock:
                self.reads += 1
                if tried_again:
                    self.longest_wait = max(self.longest_wait, time.monotonic() - began)

    def _note(self, where: list[str], what: str) -> None:
        with self._lock:
            where.append(what)

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()
