# SPDX-License-Identifier: Apache-2.0
"""Child processes that never outlive their parent, and waits that always end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterator, Sequence

STOP_SECONDS = 10.0
POLL_SECONDS = 0.01
LOG_TAIL_LINES = 20

_PR_SET_PDEATHSIG = 1
_CPUCLOCK_SCHED = 2
_libc = ctypes.CDLL(None, use_errno=True)


class LabError(Exception):
    """Something about the processes, the network or the machine; the message is for the user."""


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Polls, because what is waited for is in another process. LabError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"{what}: not within {seconds:g} s")
        time.sleep(POLL_SECONDS)


def free_port() -> int:
    """A loopback port that was free a moment ago; the caller must cope with losing the race."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, ended threads included, to the nanosecond.

    This is the kernel's CPU clock of the process (clock_getcpuclockid(3)): /proc/PID/stat has the
    same time but cuts it to 10 ms, which adds up over thirty processes.
    """
    return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)


def _die_with_parent() -> None:
    """In the child: be killed when the parent ends in whatever way, so that nothing is left."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass
class Daemon:
    """A long-running child with its output in a log file.

    It has a session of its own: ctrl-C in the terminal reaches the parent only, which then stops
    its children in order.
    """

    name: str
    command: Sequence[str | Path]
    log_file: Path
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    killed_on_purpose: bool = False

    @property
    def pid(self) -> int:
        if self.process is None:
            raise LabError(f"{self.name} has not been started")
        return self.process.pid

    def start(self) -> None:
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        self.killed_on_purpose = False
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [str(part) for part in self.command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
                start_new_session=True, preexec_fn=_die_with_parent)

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
        if self.running():
            os.kill(self.pid, number)

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
        return cpu_seconds(self.pid) if self.running() else 0.0

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        if not self.log_file.exists():
            return f"--- {self.name}: no log"
        text = self.log_file.read_text(errors="replace").splitlines()[-lines:]
        return "\n".join([f"--- {self.name}: end of {self.log_file}", *text])


def stop_all(daemons: Sequence[Daemon], seconds: float = STOP_SECONDS) -> None:
    """Stops daemons together, within one deadline."""
    for daemon in daemons:
        daemon.ask_to_stop()
    deadline = time.monotonic() + seconds
    for daemon in daemons:
        daemon.reap(max(0.1, deadline - time.monotonic()))


def run(command: Sequence[str | Path], timeout: float = 60.0, check: bool = True,
        environment: dict[str, str] | None = None, text_input: str | None = None,
        ) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end. LabError when it takes longer, or fails and `check` is set."""
    words = [str(part) for part in command]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=timeout,
            env={**os.environ, **(environment or {})}, preexec_fn=_die_with_parent,
            **({"input": text_input} if text_input is not None else {"stdin": subprocess.DEVNULL}))
    except subprocess.TimeoutExpired as expired:
        output = expired.stderr or expired.stdout or b""
        shown = output.decode(errors="replace") if isinstance(output, bytes) else output
        raise LabError(f"no end within {timeout:g} s: {' '.join(words)}\n{shown}") from None
    except OSError as error:
        raise LabError(f"cannot run {words[0]}: {error}") from None
    if check and done.returncode != 0:
        raise LabError(f"exit code {done.returncode}: {' '.join(words)}\n"
                       f"{done.stdout}{done.stderr}".rstrip())
    return done


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turns the first SIGINT, SIGTERM or SIGHUP into SystemExit, so that every `with` cleans up,
    and ignores the ones after it, so that the cleaning up is not interrupted as well."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def leave(number: int, _frame: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        print(f"\n{signal.Signals(number).name}: cleaning up", file=sys.stderr)
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
