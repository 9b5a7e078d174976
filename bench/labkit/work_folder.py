# SPDX-License-Identifier: Apache-2.0
"""Folders of blocks, configs and logs: removed in the end, but the logs of what has failed stay."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Iterator

from .process import LabError

LOGS = "logs"


@contextlib.contextmanager
def removed_in_the_end(folder: Path) -> Iterator[Path]:
    """After a LabError the folders named `logs` below it stay."""
    try:
        yield folder
    except LabError:
        remove_all_but_logs(folder)
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def work_folder(given: Path | None, prefix: str) -> Iterator[Path]:
    """`given`, of which everything is kept, or a temporary one. Says where logs were left."""
    if given:
        yield given
        return
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        with removed_in_the_end(folder):
            yield folder
    finally:
        if folder.exists():
            print(f"logs: {folder}", file=sys.stderr)


def remove_all_but_logs(folder: Path) -> None:
    """`folder` itself stays only if there are logs in it."""
    for path in folder.iterdir():
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
        elif path.name != LOGS:
            remove_all_but_logs(path)
    with contextlib.suppress(OSError):  # there are logs in it
        folder.rmdir()
