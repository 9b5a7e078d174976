# SPDX-License-Identifier: Apache-2.0
"""The folder in which all of it happens, and the real file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Callable

from labkit.process import LabError, die_with_parent
from labkit.stripes import MIB

from .setup import NAME, Setup

# Says whose folder it is: what is below is deleted only where this is.
MARKER = ".ecpipe-quickstart"
OF_A_CLUSTER = ("data", "lost", "config", "logs", "state", "run", "redis", "repaired", "range")
# A tar of these is the real file.
TAR_FOLDERS = ("usr", "var", "opt")
TAR_SECONDS = 300.0
CHUNK_BYTES = 4 * MIB
REMOVE_SECONDS = 5.0


class Refused(LabError):
    """Nothing was begun."""


def temporary_folder(stack: contextlib.ExitStack, keep: bool) -> Path:
    """It goes when the stack does, unless it is kept."""
    folder = Path(tempfile.gettempdir(), f"ecpipe-quickstart-{os.getpid()}-{secrets.token_hex(4)}")
    stack.callback((lambda: print(f"Kept: {folder}")) if keep else (lambda: _remove(folder)))
    folder.mkdir(mode=0o700)
    return folder


def _remove(folder: Path) -> None:
    """A command that was just killed may still make a file meanwhile."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)


def given_folder(stack: contextlib.ExitStack, folder: Path) -> Path:
    """One that is empty or was made so by an earlier quickstart. What was left there of its cluster
    goes; its data file serves again."""
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / MARKER
    if not marker.exists() and any(folder.iterdir()):
        raise Refused(f"{folder} has files that are not of a quickstart: name an empty directory")
    lock = stack.enter_context(marker.open("w"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused(f"another quickstart works in {folder}: end it, or name another "
                      "directory") from None
    for name in OF_A_CLUSTER:
        _remove_entry(folder / name)
    return folder


def _remove_entry(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def make_file(work: Path, setup: Setup) -> Path:
    """A tar of real files, cut off. An earlier one of the same place serves."""
    path = work / f"{NAME}-{setup.file_bytes // MIB}.tar"
    if path.exists() and path.stat().st_size == setup.file_bytes:
        return path
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            _tar_into(file.write, setup.file_bytes)
        written = partial.stat().st_size
        if written < setup.file_bytes:
            raise LabError(f"a tar of {tar_folders()} has only {written // MIB} MiB, and "
                           f"{setup.file_bytes // MIB} are needed: try --quick")
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def tar_folders() -> str:
    return ", ".join(f"/{name}" for name in TAR_FOLDERS if Path("/", name).is_dir())


def _tar_into(write: Callable[[bytes], int], limit: int) -> None:
    folders = [name for name in TAR_FOLDERS if Path("/", name).is_dir()]
    with subprocess.Popen(["tar", "--create", "--file=-", "--directory=/", *folders],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, preexec_fn=die_with_parent) as tar:
        assert tar.stdout is not None
        try:
            rest, deadline = limit, time.monotonic() + TAR_SECONDS
            while chunk := tar.stdout.read(min(CHUNK_BYTES, rest)):
                rest -= write(chunk)
                if time.monotonic() > deadline:
                    raise LabError(f"tar took longer than {TAR_SECONDS:g} s")
        finally:
            # It still has more to say, or is done; its exit code says nothing either way.
            tar.kill()
