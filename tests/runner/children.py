# SPDX-License-Identifier: Apache-2.0
"""Child processes that end when the run ends."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Sequence

REPOSITORY = Path(__file__).resolve().parents[2]
TIMED_OUT = 124
LOOK_SECONDS = 0.05  # between two looks at a child that runs

# Each child has a session of its own, and where the kernel groups by session, niceness counts only
# inside of one: there the session as a whole has to be nice.
GIVING_WAY = ("nice", "-n", "19", "sh", "-c",
              'echo 19 2>/dev/null >/proc/self/autogroup; exec "$@"', "sh")


@dataclass(frozen=True)
class End:
    """How a child ended. `cpu_seconds`: of it and of all its children that somebody waited for."""

    code: int
    seconds: float
    cpu_seconds: float


class Children:
    """The running children, each in a process group of its own, so that an interrupt ends them all
    with everything that they have started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._closed = False

    def run(self, command: Sequence[str | Path], log: Path, seconds: float,
            environment: Mapping[str, str] | None = None, gives_way: bool = False) -> End:
        """The output goes to `log`. The code is TIMED_OUT when it took longer than `seconds`.
        `gives_way`: it takes what the other children leave of the cores."""
        if gives_way:
            command = (*GIVING_WAY, *command)
        start = time.monotonic()
        with log.open("w") as output:
            with self._lock:
                if self._closed:
                    return End(128 + signal.SIGTERM, 0.0, 0.0)
                child = subprocess.Popen(
                    command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=output, text=True,
                    stderr=subprocess.STDOUT, start_new_session=True,
                    env={**os.environ, **(environment or {})})
                self._running.add(child)
            try:
                code, cpu_seconds = wait_for(child, start + seconds)
            except subprocess.TimeoutExpired:
                output.write(f"\nrun.py: no end within {seconds:g} s: killed\n")
                self._end(child)
                code, cpu_seconds = TIMED_OUT, 0.0
            finally:
                with self._lock:
                    self._running.discard(child)
        return End(code, time.monotonic() - start, cpu_seconds)

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


def wait_for(child: subprocess.Popen[str], deadline: float) -> tuple[int, float]:
    """The exit code and the CPU seconds; TimeoutExpired when it runs at the deadline."""
    while child.returncode is None:
        try:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        except ChildProcessError:  # whoever closes the children has waited for it
            break
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, usage.ru_utime + usage.ru_stime
        if time.monotonic() > deadline:
            raise subprocess.TimeoutExpired(child.args, deadline)
        time.sleep(LOOK_SECONDS)
    return child.wait(), 0.0
