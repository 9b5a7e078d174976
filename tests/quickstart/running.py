# SPDX-License-Identifier: Apache-2.0
"""One run of deploy/quickstart.sh, watched from outside: what it prints, and what it leaves."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Mapping, Sequence

from labkit import namespace
from labkit.process import LabError, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = Path("deploy", "quickstart.sh")  # as the README names it
RUN_SECONDS = 240.0
COLUMNS = 80  # the widest line that it prints
GONE_SECONDS = 10.0  # a killed process takes a moment to be gone
HELD = "ctrl-C ends it all"  # the last words before it waits
# Each process of a run has it in its environment, whatever it is called.
MARKER = "ECPIPE_QUICKSTART_TEST"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


class Run:
    """Use as a context manager. `prefix` is put before the script; `repository` is whose script it
    is. It has a temporary directory of its own, for itself alone."""

    def __init__(self, *options: str | Path, prefix: Sequence[str] = (),
                 environment: Mapping[str, str] | None = None,
                 repository: Path = REPOSITORY) -> None:
        self.mark = uuid.uuid4().hex
        self.temporary = Path(tempfile.mkdtemp(prefix="quickstart-test-"))
        self.temporary.chmod(0o777)
        self._printed: list[bytes] = []
        self._ended = float("inf")  # by time.CLOCK_BOOTTIME
        self.process = subprocess.Popen(
            [*prefix, SCRIPT, *options], cwd=repository, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "ECPIPE_SKIP_DEPS": "1", "TMPDIR": str(self.temporary),
                 MARKER: self.mark, **(environment or {})})
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, error_type: type[BaseException] | None, error: BaseException | None,
                 _: TracebackType | None) -> None:
        if error_type is not None:
            print(self.output())
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        shutil.rmtree(self.temporary, ignore_errors=True)

    def _read(self) -> None:
        assert self.process.stdout is not None
        while chunk := os.read(self.process.stdout.fileno(), 65536):
            self._printed.append(chunk)

    def output(self) -> str:
        return b"".join(self._printed).decode(errors="replace")

    def wait_for(self, text: str) -> None:
        """Until it has printed that, also in the middle of a line."""
        wait_until(lambda: text in self.output() or self.process.poll() is not None, RUN_SECONDS,
                   f"the quickstart prints {text!r}")
        if text not in self.output():
            raise LabError(f"the quickstart ended without {text!r}\n{self.output()}")

    def wait(self) -> int:
        """The exit code."""
        code = self.process.wait(RUN_SECONDS)
        self._ended = time.clock_gettime(time.CLOCK_BOOTTIME)
        self._reader.join()
        return code

    def processes(self) -> list[int]:
        """That carry the mark of this run."""
        wanted, found = f"{MARKER}={self.mark}".encode(), []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if wanted in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
        return found

    def namespaces(self) -> set[int]:
        return namespace.opened_by(self.process.pid)

    def leftovers(self, namespaces: set[int] = frozenset()) -> list[str]:
        """What the run, which has ended, has left: of these namespaces, of processes, files and
        mounts."""
        with contextlib.suppress(LabError):
            wait_until(lambda: not self.processes(), GONE_SECONDS, "processes gone")
        return [*(f"process {pid}: {command_of(pid)}" for pid in self.processes()),
                *(f"namespace {number}"
                  for number in sorted(namespace.in_use(namespaces, self._ended))),
                *(f"file {path}" for path in sorted(self.temporary.iterdir())),
                *(f"mount {line}" for line in self.mounts(namespaces))]

    def mounts(self, namespaces: set[int] = frozenset()) -> list[str]:
        """In its temporary directory, and of these namespaces. Other tests have mounts, too."""
        marks = [str(self.temporary), *(f"[{number}]" for number in namespaces)]
        return [line for line in Path("/proc/self/mountinfo").read_text().splitlines()
                if any(mark in line for mark in marks)]


def command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    return "(ended)"


def sleep(seconds: float) -> None:
    """Into the middle of a step that has begun; nothing says when that is."""
    time.sleep(seconds)
