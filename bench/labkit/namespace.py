# SPDX-License-Identifier: Apache-2.0
"""Network namespaces without a name or a mount: each lasts as long as this process has it open or a
process is in it. Whatever becomes of this process, the kernel takes them away."""

from __future__ import annotations

import ctypes
import math
import os
import re
import threading
from pathlib import Path
from typing import Iterable

from .host import LocalHost
from .process import LabError

_CLONE_NEWNET = 0x4000_0000
_CLONE_NEWUSER = 0x1000_0000
_NET = re.compile(r"^net:\[(\d+)\]$")
_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """LabError when this process may not make one."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._fd = -1
        self._error: OSError | None = None
        # A thread has a namespace of its own. The way back from there may be forbidden, and it
        # needs none.
        maker = threading.Thread(target=self._make)
        maker.start()
        maker.join()
        if self._error is not None:
            raise LabError(f"cannot make a network namespace: {self._error.strerror}")

    def _make(self) -> None:
        try:
            _unshare(_CLONE_NEWNET)
            self._fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            self._error = error

    @property
    def path(self) -> Path:
        """For other processes, as long as this one has it open."""
        return Path(f"/proc/{self._pid}/fd/{self._fd}")

    def host(self) -> LocalHost:
        """nsenter becomes the command without a fork, so a child's pid is the command's."""
        return LocalHost(["nsenter", f"--net={self.path}"])

    def close(self) -> None:
        """It may be called again. The processes inside must have ended, or it lasts until then."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def enter_user_namespace() -> str | None:
    """Makes this process root in a user namespace of its own, for good: there it may make network
    namespaces without being root outside. Files are still its user's. The process must have one
    thread. Returns why it could not be done; None when it has been."""
    user, group = os.geteuid(), os.getegid()
    try:
        _unshare(_CLONE_NEWUSER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    except OSError as error:
        return f"this machine does not allow user namespaces: {error.strerror}"
    return None


def opened_by(pid: int) -> set[int]:
    """The network namespaces that a process has open, by their numbers."""
    return {number for link in Path(f"/proc/{pid}/fd").iterdir()
            if (number := _number(link)) is not None}


def in_use(numbers: Iterable[int], until: float = math.inf) -> set[int]:
    """Those in which a process still is, or which one has open. Not of processes that began after
    `until` (time.CLOCK_BOOTTIME): the kernel gives numbers that are free again to others."""
    wanted, found = set(numbers), set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if _began(process) > until:
                continue
            links = [process / "ns" / "net", *(process / "fd").iterdir()]
        except OSError:  # it has ended, or is not ours to look at
            continue
        found |= wanted & {number for link in links if (number := _number(link)) is not None}
    return found


def _began(process: Path) -> float:
    # Behind the name, which may have blanks and brackets, begins field 3; field 22 is what we want.
    ticks = (process / "stat").read_text().rpartition(")")[2].split()[22 - 3]
    return int(ticks) / os.sysconf("SC_CLK_TCK")


def _number(link: Path) -> int | None:
    try:
        match = _NET.match(os.readlink(link))
    except OSError:
        return None
    return int(match.group(1)) if match else None


def _unshare(flags: int) -> None:
    if _libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
