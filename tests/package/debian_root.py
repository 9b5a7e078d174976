# SPDX-License-Identifier: Apache-2.0
"""A clean Debian in a folder, and a real systemd that runs in it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Iterator

from labkit.process import LabError, run, wait_until

SUITE = "bookworm"
MAKE_SECONDS, APT_SECONDS, BOOT_SECONDS, COMMAND_SECONDS = 240.0, 180.0, 60.0, 60.0
# Debian's own tools, whatever the caller's path has in front of them.
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "--yes",
       "--no-install-recommends")


class Unavailable(Exception):
    """This cannot be had here, through no fault of what is tested."""


def require(*tools: str, group: str = "package") -> None:
    if os.geteuid() != 0:
        raise Unavailable("needs root, for a Debian in a folder")
    for tool in tools:
        if shutil.which(tool, path=f"{os.environ['PATH']}:{PATH}") is None:
            raise Unavailable(f"no {tool} here (deploy/install-deps.sh {group} installs it)")


def mirror(suite: str = SUITE) -> str:
    """The first of this machine's sources of Debian 12 that has the suite."""
    listed = run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                  f"Codename: {SUITE}", "Component: main"], check=False).stdout.split()
    for uri in dict.fromkeys(listed):
        with contextlib.suppress(OSError), urllib.request.urlopen(
                f"{uri.rstrip('/')}/dists/{suite}/Release", timeout=20):
            return uri
    raise Unavailable(f"no source of this machine's apt has {suite} and answers")


class DebianRoot:
    """A context manager. `folder` is made, and holds it in memory: dpkg syncs each file, which
    takes minutes on a busy disk. Its own apt uses the mirror that made it."""

    def __init__(self, folder: Path, suite: str = SUITE, gib: int = 2) -> None:
        self.folder = folder
        self.suite = suite
        self._gib = gib  # at most, of memory

    def __enter__(self) -> DebianRoot:
        self.folder.mkdir()
        run(["mount", "-t", "tmpfs", "-o", f"size={self._gib}g,mode=755", "none", self.folder])
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        run(["umount", "--lazy", self.folder])

    def _make(self) -> None:
        run(["debootstrap", "--variant=minbase", "--include=systemd,dbus", self.suite,
             self.folder, mirror(self.suite)], timeout=MAKE_SECONDS, environment={"PATH": PATH})

    def run(self, *command: str | Path, check: bool = True, seconds: float = COMMAND_SECONDS,
            ) -> subprocess.CompletedProcess[str]:
        return run(["chroot", self.folder, *command], timeout=seconds, check=check,
                   environment={"PATH": PATH, "HOME": "/root", "LC_ALL": "C"})

    def apt(self, *arguments: str) -> str:
        return self.run(*APT, *arguments, seconds=APT_SECONDS).stdout

    def build(self, *command: str, folder: str, seconds: float) -> str:
        """Runs it with /proc and /dev of its own and this machine's network, and gives way to
        others."""
        return run(["nice", "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--pipe",
                    f"--directory={self.folder}", f"--chdir={folder}", "--setenv=LC_ALL=C",
                    *command], timeout=seconds).stdout

    @contextlib.contextmanager
    def booted(self) -> Iterator[Booted]:
        with Booted(self) as machine:
            yield machine


class Booted:
    """systemd is process 1 of namespaces of its own, with a loopback that only it has."""

    def __init__(self, root: DebianRoot) -> None:
        self._log = root.folder.with_suffix(".console").open("w+b")
        self._nspawn = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network",
             "--console=read-only", f"--machine=ecpipe-{os.getpid()}",
             f"--directory={root.folder}", "--boot"],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True)
        self._init = 0

    def __enter__(self) -> Booted:
        try:
            wait_until(self._is_up, BOOT_SECONDS, "systemd up")
        except LabError as error:
            self.end()
            self._log.seek(0)
            raise Unavailable(f"no systemd runs in a namespace here: {error}; "
                              f"{self._log.read()[-300:].decode(errors='replace')}") from None
        return self

    def __exit__(self, error_type: type[BaseException] | None, error: BaseException | None,
                 _: TracebackType | None) -> None:
        if error_type is not None:
            print(self.run("journalctl", "--no-pager", "--lines=60", check=False).stdout)
        self.end()

    def _is_up(self) -> bool:
        if self._nspawn.poll() is not None:
            raise LabError(f"systemd-nspawn ended with {self._nspawn.returncode}")
        children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children").read_text()
        if not children.split():
            return False
        self._init = int(children.split()[0])
        return self.run("systemctl", "is-system-running", check=False).stdout.strip() in (
            "running", "degraded")

    def end(self) -> None:
        """SIGTERM makes systemd-nspawn shut the machine down."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                self._nspawn.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._nspawn.wait(30)
                break
        self._log.close()

    def run(self, *command: str | Path, check: bool = True, seconds: float = COMMAND_SECONDS,
            ) -> subprocess.CompletedProcess[str]:
        return run(["nsenter", "--target", str(self._init), "--all", *command], timeout=seconds,
                   check=check, environment={"PATH": PATH, "HOME": "/root", "LC_ALL": "C"})

    def command_outside(self, network: str) -> list[str]:
        """What goes before a command of the caller's system that shall run in a network namespace
        of the machine, given by its path there."""
        return ["nsenter", f"--net=/proc/{self._init}/root{network}"]

    def apt(self, *arguments: str) -> str:
        return self.run(*APT, *arguments, seconds=APT_SECONDS).stdout

    def property(self, unit: str, name: str) -> str:
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).stdout.strip()

    def wait_for(self, unit: str, state: str) -> None:
        wait_until(lambda: self.property(unit, "ActiveState") == state, COMMAND_SECONDS,
                   f"{unit} {state}")
