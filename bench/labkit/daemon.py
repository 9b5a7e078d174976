# SPDX-License-Identifier: Apache-2.0
"""A long-running child: start, wait until ready, stop within a deadline, CPU time."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Sequence

from .host import Host, LocalHost, Process
from .process import LabError, wait_until

STOP_SECONDS = 30.0
LOG_TAIL_LINES = 120  # a sanitizer's report is as long
TROUBLE_LINES = 5
# Those of src/base/process/log.h: time, level, event.
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z [A-Z]+ ")
# Not that there is no TLS: nodes of a lab have none.
TROUBLE_LINE = re.compile(r"\S+ (WARNING|ERROR) (?!security\.off )")


@dataclass
class Daemon:
    """A long-running child on some host, with its output in a log file there."""

    name: str
    command: Sequence[str | Path]
    log_file: Path
    environment: dict[str, str] = field(default_factory=dict)
    host: Host = field(default_factory=LocalHost)
    process: Process | None = None
    killed_on_purpose: bool = False
    started_at: float = 0.0  # by time.monotonic()

    @property
    def pid(self) -> int:
        if self.process is None:
            raise LabError(f"{self.name} has not been started")
        return self.process.pid

    def start(self) -> None:
        self.killed_on_purpose = False
        self.started_at = time.monotonic()
        self.process = self.host.spawn(self.command, self.log_file, self.environment)

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def wait_ready(self, ready: Callable[[], bool], seconds: float) -> None:
        """LabError with the end of the log when it exits, or is not ready in time."""
        def ready_or_dead() -> bool:
            return not self.running() or ready()
        try:
            wait_until(ready_or_dead, seconds, f"{self.name} ready")
        except LabError as error:
            raise LabError(f"{error}\n{self.log_tail()}") from None
        if not self.running():
            raise LabError(f"{self.name} ended at its start, exit code "
                           f"{self.exit_code()}\n{self.log_tail()}")

    def exit_code(self) -> int | None:
        return None if self.process is None else self.process.poll()

    def send_signal(self, number: int) -> None:
        if self.process is not None and self.running():
            self.process.send_signal(number)

    def pause(self) -> None:
        self.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.send_signal(signal.SIGCONT)

    def ask_to_stop(self) -> None:
        """SIGTERM; continued first, since a stopped process does not see it."""
        self.send_signal(signal.SIGCONT)
        self.send_signal(signal.SIGTERM)

    def stop(self, seconds: float = STOP_SECONDS) -> int | None:
        """SIGTERM, then SIGKILL after `seconds`. The exit code; None when it never ran."""
        self.ask_to_stop()
        return self.reap(seconds)

    def reap(self, seconds: float) -> int | None:
        """Waits for the end of a process that was asked to end; kills it after `seconds`."""
        if self.process is None:
            return None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            print(f"{self.name} (pid {self.pid}) did not stop within {seconds:g} s: killed",
                  file=sys.stderr)
            self.send_signal(signal.SIGKILL)
            return self.process.wait()

    def kill(self) -> None:
        """SIGKILL, and waits until the process is gone."""
        self.killed_on_purpose = True
        self.send_signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def ended_badly(self) -> bool:
        """Whether it ended with an error of its own: a crash, a sanitizer's report, a hang."""
        return self.exit_code() not in (None, 0) and not self.killed_on_purpose

    def cpu_seconds(self) -> float:
        """0 for a process that has ended: read it before the end."""
        return self.host.cpu_seconds(self.pid) if self.running() else 0.0

    def log_troubles(self) -> str:
        """Where the log is, and what in it tells of trouble; empty: nothing does."""
        found = troubles(self.host.read_text(self.log_file))
        return "\n".join([f"--- {self.name}: {self.log_file}", *found]) if found else ""

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        text = self.host.read_text(self.log_file).splitlines()[-lines:]
        return "\n".join([f"--- {self.name}: end of {self.log_file}", *text])


def stop_all(daemons: Sequence[Daemon], seconds: float = STOP_SECONDS) -> None:
    """Stops daemons together, within one deadline."""
    for daemon in daemons:
        daemon.ask_to_stop()
    deadline = time.monotonic() + seconds
    for daemon in daemons:
        daemon.reap(max(0.1, deadline - time.monotonic()))


def troubles(log: str) -> list[str]:
    """The last warnings and errors, and the end of what is no log line: a sanitizer's report, the
    last words of a crash."""
    lines = log.splitlines()
    warnings = [line for line in lines if TROUBLE_LINE.match(line)][-TROUBLE_LINES:]
    others = [line for line in lines if line and not LOG_LINE.match(line)]
    return warnings + others[-LOG_TAIL_LINES:]
