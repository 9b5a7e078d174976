# SPDX-License-Identifier: Apache-2.0
"""Disks of some nodes that can be filled and can hang.

Each is a tmpfs of its own, which the node sees through bindfs: while that process is stopped, every
system call on the node's files waits, as on a disk that does not answer. The mounts are in a
namespace of this process (mounts.py).
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path
from typing import Sequence

from .daemon import Daemon, stop_all
from .mounts import enter_mount_namespace
from .process import LabError, run, wait_until

MOUNT_SECONDS = 30.0


def why_not() -> str | None:
    """Why there can be no such disks here; None when there can be."""
    if os.geteuid() != 0:
        return "mounts need root (try sudo)"
    if shutil.which("bindfs") is None:
        return "bindfs is missing: deploy/install-deps.sh lab installs it"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "this machine has no /dev/fuse"
    return None


class Disks:
    """`folders`: the nodes and where each one's files are to be. They exist and are empty. Use as a
    context manager, before the cluster; `release` before the cluster ends."""

    def __init__(self, folder: Path, folders: dict[str, Path], disk_bytes: int) -> None:
        self._folder, self._folders, self._bytes = folder, folders, disk_bytes
        self._views: dict[str, Daemon] = {}

    @property
    def nodes(self) -> Sequence[str]:
        return list(self._folders)

    def __enter__(self) -> Disks:
        enter_mount_namespace()
        try:
            for node in self._folders:
                self._mount(node)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.release()
        stop_all(list(self._views.values()))
        for node in self._folders:
            run(["umount", "--lazy", self._disk(node)], check=False)

    def behind(self, node: str) -> Path:
        """The node's files for us: this does not wait while its disk hangs."""
        return self._disk(node) / "files"

    # ---- Faults ----------------------------------------------------------------------------------

    def hang(self, node: str) -> None:
        self._views[node].pause()

    def go_on(self, node: str) -> None:
        self._views[node].resume()

    def release(self) -> None:
        for node in self._views:
            self.go_on(node)

    def fill(self, node: str) -> None:
        """Until there is no room for another byte."""
        with self._filler(node).open("wb") as file:
            size = os.statvfs(self._disk(node))
            step = size.f_bavail * size.f_frsize
            while step > 0:  # what is free changes meanwhile
                try:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), step)
                    file.seek(0, os.SEEK_END)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise LabError(f"{self._filler(node)}: {error}") from None
                    step //= 2

    def clear(self, node: str) -> None:
        self._filler(node).unlink(missing_ok=True)

    # ---- Parts -----------------------------------------------------------------------------------

    def _disk(self, node: str) -> Path:
        return self._folder / node

    def _filler(self, node: str) -> Path:
        return self._disk(node) / "filler"

    def _mount(self, node: str) -> None:
        disk, seen = self._disk(node), self._folders[node]
        disk.mkdir(parents=True)
        run(["mount", "-t", "tmpfs", "-o", f"size={self._bytes}", "tmpfs", disk])
        self.behind(node).mkdir()
        # Nothing is cached: files also change behind it.
        view = self._views[node] = Daemon(f"bindfs of {node}", [
            "bindfs", "-f", "--multithreaded", "-o",
            "direct_io,attr_timeout=0,entry_timeout=0,negative_timeout=0",
            self.behind(node), seen], self._folder / f"{node}.log")
        with contextlib.suppress(FileNotFoundError):
            view.log_file.unlink()
        view.start()
        wait_until(lambda: seen.is_mount() or not view.running(), MOUNT_SECONDS,
                   f"bindfs on {seen}")
        if not view.running():
            raise LabError(f"bindfs ended at its start\n{view.log_tail()}")
