# SPDX-License-Identifier: Apache-2.0
"""Commands that never outlive their parent, and waits that always end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Callable, Iterator, Sequence

POLL_SECONDS = 0.01
UNPRIVILEGED = 1024

_PR_SET_PDEATHSIG = 1
_CPUCLOCK_SCHED = 2
_given: set[int] = set()  # ports that somebody here has asked for
_libc = ctypes.CDLL(None, use_errno=True)


class LabError(Exception):
    """Something about the processes, the network or the machine; the message is for the user."""


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Polls, because what is waited for is in another process. LabError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"waited {seconds:g} s in vain for: {what}")
        time.sleep(POLL_SECONDS)


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody has, below those that the kernel gives to connections: any
    of the many that a cluster makes might take such a port before its daemon does, or while it
    restarts. Somebody who looks in the same way may, though that is rare. Where connections begin
    at a low number there are no such ports, and it is any."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = range(first // 2, first) if first >= 2 * UNPRIVILEGED else range(UNPRIVILEGED, 1 << 16)
    found: list[int] = []
    while len(found) < count:
        port = random.choice(ports)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            if port not in _given:
                _given.add(port)
                found.append(port)
    return found


def free_port() -> int:
    return free_ports(1)[0]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, ended threads included, to the nanosecond.

    This is the kernel's CPU clock of the process (clock_getcpuclockid(3)): /proc/PID/stat has the
    same time but cuts it to 10 ms, which adds up over thirty processes.
    """
    return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)


def retransmitted_segments(pid: int) -> int:
    """TCP segments that the network namespace of a process has sent again; 0 when it has gone."""
    try:
        lines = Path(f"/proc/{pid}/net/snmp").read_text().splitlines()
    except OSError:
        return 0
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])


def die_with_parent() -> None:
    """In the child: be killed when the parent ends in whatever way, so that nothing is left."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def run(command: Sequence[str | Path], timeout: float = 60.0, check: bool = True,
        environment: dict[str, str] | None = None, text_input: str | None = None,
        ) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end. LabError when it takes longer, or fails and `check` is set."""
    words = [str(part) for part in command]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=timeout,
            env={**os.environ, **(environment or {})}, preexec_fn=die_with_parent,
            **({"input": text_input} if text_input is not None else {"stdin": subprocess.DEVNULL}))
    except subprocess.TimeoutExpired as expired:
        output = expired.stderr or expired.stdout or b""
        shown = output.decode(errors="replace") if isinstance(output, bytes) else output
        raise LabError(f"still running after {timeout:g} s, so it was ended: {' '.join(words)}\n"
                       f"{shown}") from None
    except OSError as error:
        raise LabError(f"cannot run {words[0]}: {error}") from None
    if check and done.returncode != 0:
        raise LabError(f"exit code {done.returncode}: {' '.join(words)}\n"
                       f"{done.stdout}{done.stderr}".rstrip())
    return done


def _is_swallowed(frame: FrameType | None) -> bool:
    """Whether Python ignores exceptions there: in finalizers, and in what modules have it call
    after a fork, as `logging` does."""
    while frame is not None:
        if frame.f_code.co_name in ("__del__", "_execute_child"):
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def interruptible() -> Iterator[contextlib.ExitStack]:
    """Turns the first SIGINT, SIGTERM or SIGHUP into SystemExit, so that every `with` cleans up,
    and ignores the ones after it. What is on the stack that it yields is cleaned up even when the
    signal comes at the body's very end: nothing is raised there any more. Put a clean-up there
    before its object exists, and nothing can be left. Where Python would only print what is raised,
    it is raised a moment later, by SIGALRM."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    caught: list[int] = []
    raising = False

    def leave(number: int, frame: FrameType | None) -> None:
        nonlocal raising
        if not caught:
            caught.append(number)
            with contextlib.suppress(OSError):  # the terminal may have gone
                print(f"\n{signal.Signals(number).name}: cleaning up", file=sys.stderr)
        if raising and _is_swallowed(frame):
            signal.setitimer(signal.ITIMER_REAL, POLL_SECONDS)
        elif raising:
            raising = False
            raise SystemExit(128 + caught[0])

    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        with contextlib.ExitStack() as stack:
            try:
                raising = True
                yield stack
            except Exception:
                if caught and raising:  # the same signal ended a child before it came here
                    raise SystemExit(128 + caught[0]) from None
                raise
            finally:
                raising = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
    if caught:
        raise SystemExit(128 + caught[0])
