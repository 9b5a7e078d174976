# SPDX-License-Identifier: Apache-2.0
"""Commands that start processes of their own, such as a build, run to an end that always comes."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Mapping, Sequence

from labkit.process import LabError

STOP_SECONDS = 10.0
SHOWN_LINES = 40


def run_group(command: Sequence[str | Path], seconds: float, *, cwd: Path | None = None,
              environment: Mapping[str, str] | None = None) -> str:
    """The standard output. The command has a process group of its own, which is ended as a whole
    when time is up, and when the caller is interrupted."""
    words = [str(part) for part in command]
    try:
        child = subprocess.Popen(
            words, cwd=cwd, env={**os.environ, **(environment or {})}, text=True,
            errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
    except OSError as error:
        raise LabError(f"cannot run {words[0]}: {error}") from None
    try:
        output, errors = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise LabError(f"still running after {seconds:g} s, so it was ended: "
                       f"{' '.join(words)}") from None
    finally:
        _end_group(child)
    if child.returncode != 0:
        shown = "\n".join((output + errors).splitlines()[-SHOWN_LINES:])
        raise LabError(f"exit code {child.returncode}: {' '.join(words)}\n{shown}")
    return output


def _end_group(child: subprocess.Popen[str]) -> None:
    """Nothing when it has ended. Politely first: ninja ends the compilers that it has started."""
    if child.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            pass
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
