# SPDX-License-Identifier: Apache-2.0
"""What a figure is: which settings it runs, what the paper says of it, and what is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Sequence

from .pictures import Panel
from .scenarios import Setting

Row = Mapping[str, Any]
Rows = Sequence[Row]
Names = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A setting, and by which names its rows are found."""

    names: Names
    setting: Setting


@dataclass(frozen=True)
class Comparison:
    """One number of the paper's text, or the two ends of a range, and ours. Percent."""

    what: str
    paper: tuple[float, ...]
    ours: Callable[[Rows], Sequence[float]]
    cause: str = ""          # of a difference of more than TOLERANCE points


# What the paper draws at random is drawn anew here, too: so many points are no difference.
TOLERANCE = 4.0


@dataclass(frozen=True)
class Figure:
    name: str                                    # of its files, too
    title: str
    cells: tuple[Cell, ...]
    panels: Callable[[Rows], list[Panel]]
    algorithms: tuple[str, ...] = ("LF", "BDF", "EDF")
    setting: str = ""                            # what differs from the paper's defaults
    comparisons: tuple[Comparison, ...] = ()
    tables: tuple[Callable[[Rows], list[str]], ...] = field(default=())
    new: bool = False                            # not in the paper: fewer seeds
    columns: int = 3
