# SPDX-License-Identifier: Apache-2.0
"""Pictures of rows: describes them, and has draw.py draw them. matplotlib may belong to another
interpreter than this one (see experiments/plots.py)."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from experiments import plots
from labkit.process import run

from .summary import box

DRAW = Path(__file__).with_name("draw.py")
COLOURS = {"LF": 0, "BDF": 1, "EDF": 2}  # the same in each picture
Row = Mapping[str, Any]
Panel = dict[str, Any]
Values = Callable[[Row], Sequence[float]]


def check_available() -> None:
    plots.check_available()


def draw(path: Path, title: str, panels: Sequence[Panel], columns: int = 3) -> None:
    check_available()
    run([plots.interpreter() or "", DRAW], timeout=plots.DRAW_SECONDS, text_input=json.dumps(
        {"title": title, "path": str(path), "panels": list(panels), "columns": columns}))


def boxes(rows: Sequence[Row], title: str, over: str, x_label: str, y_label: str, values: Values,
          series: str = "algorithm") -> Panel:
    """A box for each group (value of `over`) and series."""
    return _panel(rows, title, over, x_label, y_label, series, "boxes",
                  lambda row: box(values(row)))


def lines(rows: Sequence[Row], title: str, over: str, x_label: str, y_label: str, values: Values,
          series: str = "algorithm") -> Panel:
    """Means."""
    return _panel(rows, title, over, x_label, y_label, series, "points",
                  lambda row: statistics.mean(values(row)))


def _panel(rows: Sequence[Row], title: str, over: str, x_label: str, y_label: str, series: str,
           kind: str, of: Callable[[Row], Any]) -> Panel:
    groups = list(dict.fromkeys(row[over] for row in rows))
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(str(row[series]), [None] * len(groups))[groups.index(row[over])] = of(row)
    return {"title": title, "x_label": x_label, "y_label": y_label,
            "groups": [f"{group:g}" if isinstance(group, float) else str(group)
                       for group in groups],
            "series": [{"label": label, kind: points, "colour": COLOURS.get(label, number)}
                       for number, (label, points) in enumerate(found.items())]}
