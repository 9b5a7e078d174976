# SPDX-License-Identifier: Apache-2.0
"""Plots of rows, by matplotlib. It may belong to another interpreter than the one that runs this
(Debian's package belongs to Debian's), so draw.py is a program of its own."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Sequence

from labkit.process import LabError, run
from .views import VIEWS, Row, View, series_of

INTERPRETERS = (sys.executable, "/usr/bin/python3")
DRAW = Path(__file__).with_name("draw.py")
DRAW_SECONDS = 120.0


@functools.cache
def interpreter() -> str | None:
    for candidate in dict.fromkeys(INTERPRETERS):
        try:
            run([candidate, "-c", "import matplotlib"])
            return candidate
        except LabError:
            continue
    return None


def why_not() -> str | None:
    return None if interpreter() else ("no matplotlib: deploy/install-deps.sh lab installs "
                                       "python3-matplotlib")


def check_available() -> None:
    if reason := why_not():
        raise LabError(reason)


def draw(path: Path, rows: Sequence[Row], title: str = "", view: View | None = None) -> None:
    check_available()
    picture = {"title": title or rows[0]["experiment"], "path": str(path),
               **series_of(rows, view or VIEWS[rows[0]["experiment"]])}
    run([interpreter() or "", DRAW], timeout=DRAW_SECONDS, text_input=json.dumps(picture))
