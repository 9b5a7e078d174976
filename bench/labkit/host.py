# SPDX-License-Identifier: Apache-2.0
"""Where a node's files and processes are: on this machine, in its namespace or not, or elsewhere.

Experiments and clusters ask a node's host, and do not know which kind it is. ssh.py has the other
one. Paths are the host's own.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Mapping, Protocol, Sequence

from .process import cpu_seconds, die_with_parent, free_port, run

Word = str | Path | int | float
COMMAND_SECONDS = 60.0


class Process(Protocol):
    """A child, here or elsewhere; subprocess.Popen is one."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...


class Host(Protocol):
    python: str  # the interpreter for programs of ours that run there

    def spawn(self, words: Sequence[Word], log: Path,
              environment: Mapping[str, str] | None = None) -> Process:
        """Starts a child; what it prints is in `log`. LabError when it cannot be started."""
    def run(self, words: Sequence[Word], *, timeout: float = COMMAND_SECONDS, check: bool = True,
            environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end. LabError when it takes longer, or fails and `check` is set."""
    def cpu_seconds(self, pid: int) -> float: ...
    def free_port(self) -> int:
        """Free a moment ago; the caller must cope with losing the race."""
    def base(self, work_dir: Path) -> Path:
        """The directory there that stands for `work_dir` here."""
    def program(self, local: Path) -> Path:
        """Where a file of this machine is there; copied at the first time."""
    def put(self, local: Path, path: Path) -> None:
        """Copies a file of this machine; nothing to do when it is the same file."""
    def make_directory(self, path: Path) -> None: ...
    def write_text(self, path: Path, text: str) -> None: ...
    def read_text(self, path: Path) -> str:
        """Empty when there is no such file."""
    def exists(self, path: Path) -> bool: ...
    def remove(self, path: Path) -> None:
        """No error when it is gone already."""
    def list_directory(self, path: Path) -> list[str]: ...
    def sha256(self, path: Path) -> str: ...


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class LocalHost:
    """This machine. `prefix` is put before each command: that enters a network namespace."""

    python = sys.executable

    def __init__(self, prefix: Sequence[str] = ()) -> None:
        self.prefix = list(prefix)

    def command(self, words: Sequence[Word]) -> list[str]:
        return [*self.prefix, *map(str, words)]

    def spawn(self, words: Sequence[Word], log: Path,
              environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """The child has a session of its own: ctrl-C in the terminal reaches this process only,
        which then stops its children in order."""
        with log.open("ab") as output:
            return subprocess.Popen(
                self.command(words), stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})},
                start_new_session=True, preexec_fn=die_with_parent)

    def run(self, words: Sequence[Word], *, timeout: float = COMMAND_SECONDS, check: bool = True,
            environment: Mapping[str, str] | None = None,
            text_input: str | None = None) -> subprocess.CompletedProcess[str]:
        return run(self.command(words), timeout=timeout, check=check,
                   environment=dict(environment or {}), text_input=text_input)

    def cpu_seconds(self, pid: int) -> float:
        return cpu_seconds(pid)

    def free_port(self) -> int:
        return free_port()

    def base(self, work_dir: Path) -> Path:
        return work_dir

    def program(self, local: Path) -> Path:
        return local

    def put(self, local: Path, path: Path) -> None:
        if local != path:
            path.write_bytes(local.read_bytes())

    def make_directory(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def write_text(self, path: Path, text: str) -> None:
        path.write_text(text)

    def read_text(self, path: Path) -> str:
        return path.read_text(errors="replace") if path.exists() else ""

    def exists(self, path: Path) -> bool:
        return path.exists()

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def list_directory(self, path: Path) -> list[str]:
        return sorted(entry.name for entry in path.iterdir())

    def sha256(self, path: Path) -> str:
        return sha256_of(path)
