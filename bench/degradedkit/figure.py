# SPDX-License-Identifier: Apache-2.0
"""What a figure is: which settings it runs, what the paper says of it, and what is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from .pictures import Panel
from .scenarios import Setting
from .summary import Row, Rows, find, less, saving

Names = dict[str, Any]
ALGORITHMS = ("LF", "BDF", "EDF")
PAPER_SEEDS = 30


@dataclass(frozen=True)
class Cell:
    """A setting, and by which names its rows are found."""

    names: Names
    setting: Setting
    algorithms: tuple[str, ...] = ALGORITHMS


@dataclass(frozen=True)
class Measure:
    """By how much less one algorithm has of something than another; negative: more."""

    algorithm: str = "EDF"
    other: str = "LF"
    field: str = "normalized"

    def of(self, rows: Rows, job: int = 0, **names: Any) -> float:
        row, base = (find(rows, algorithm=algorithm, **names)
                     for algorithm in (self.algorithm, self.other))
        return (saving(row, base, job) if self.field == "normalized"
                else less(row, base, self.field))


@dataclass(frozen=True)
class Comparison:
    """One number of the paper's text, or the two ends of a range, and ours. Percent."""

    what: str
    paper: tuple[float, ...]
    where: tuple[Names, ...]      # rows of the figure
    cases: tuple[Names, ...]      # the same settings among the rows of assumptions.py
    measure: Measure = Measure()
    most: bool = False            # only the largest of them

    def ours(self, rows: Rows, places: tuple[Names, ...]) -> list[float]:
        values = [100 * self.measure.of(rows, **names) for names in places]
        if self.most:
            return [max(values)]
        return [min(values), max(values)] if len(self.paper) == 2 else values

    def distance(self, values: list[float]) -> float:
        return max(abs(ours - paper) for ours, paper in zip(values, self.paper))


# What the paper draws at random is drawn anew here, too: so many points are no difference.
TOLERANCE = 4.0


@dataclass(frozen=True)
class Figure:
    name: str                                    # of its files, too
    title: str
    cells: tuple[Cell, ...]
    panels: Callable[[Rows], list[Panel]]
    setting: str = ""                            # what differs from the paper's defaults
    comparisons: tuple[Comparison, ...] = ()
    tables: tuple[Callable[[Rows], list[str]], ...] = ()
    seeds: int = PAPER_SEEDS                     # clusters for each setting
    columns: int = 3
