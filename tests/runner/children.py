# SPDX-License-Identifier: Apache-2.0
"""Child processes that end when the run ends."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Mapping, Sequence

REPOSITORY = Path(__file__).resolve().parents[2]
TIMED_OUT = 124

# Each child has a session of its own, and where the kernel groups by session, niceness counts only
# inside of one: there the session as a whole has to be nice.
GIVING_WAY = ("nice", "-n", "19", "sh", "-c",
              'echo 19 2>/dev/null >/proc/self/autogroup; exec "$@"', "sh")


class Children:
    """The running children, each in a process group of its own, so that an interrupt ends them all
    with everything that they have started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._closed = False

    def run(self, command: Sequence[str | Path], log: Path, seconds: float,
            environment: Mapping[str, str] | None = None, gives_way: bool = False) -> int:
        """The exit code; the output goes to `log`. TIMED_OUT when it took longer than `seconds`.
        `gives_way`: it takes what the other children leave of the cores."""
        if gives_way:
            command = (*GIVING_WAY, *command)
        with log.open("w") as output:
            with self._lock:
                if self._closed:
                    return 128 + signal.SIGTERM
                child = subprocess.Popen(
                    command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=output, text=True,
                    stderr=subprocess.STDOUT, start_new_session=True,
                    env={**os.environ, **(environment or {})})
                self._running.add(child)
            try:
                return child.wait(seconds)
            except subprocess.TimeoutExpired:
                output.write(f"\nrun.py: no end within {seconds:g} s: killed\n")
                self._end(child)
                return TIMED_OUT
            finally:
                with self._lock:
                    self._running.discard(child)

    def close(self) -> None:
        """Ends all children and starts no more."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for child in running:
            self._end(child)

    @staticmethod
    def _end(child: subprocess.Popen[str]) -> None:
        """Politely first: tests have daemons and namespaces to clean up."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child.pid, number)
            except ProcessLookupError:
                pass
            try:
                child.wait(15)
                return
            except subprocess.TimeoutExpired:
                continue
