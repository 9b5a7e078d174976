# SPDX-License-Identifier: Apache-2.0
"""What rows of samples come to. Pure."""

from __future__ import annotations

import statistics
from typing import Any, Mapping, Sequence

Row = Mapping[str, Any]
Rows = Sequence[Row]


def find(rows: Rows, **names: Any) -> Row:
    """The one row that has these; ValueError if there is none."""
    for row in rows:
        if all(row.get(name) == value for name, value in names.items()):
            return row
    raise ValueError(f"no row has {names}")


def normalized(row: Row, job: int = 0) -> list[float]:
    return [jobs[job] for jobs in row["normalized"]]


def saving(row: Row, other: Row, job: int = 0) -> float:
    """By how much less the mean normalized runtime is than the other row's."""
    return 1 - statistics.mean(normalized(row, job)) / statistics.mean(normalized(other, job))


def less(row: Row, other: Row, field: str) -> float:
    """The same of the mean of a count or a time."""
    base = statistics.mean(other[field])
    return 1 - statistics.mean(row[field]) / base if base else 0.0


def mean(row: Row, job: int = 0) -> float:
    return statistics.mean(normalized(row, job))


def box(values: Sequence[float]) -> dict[str, Any]:
    """A box plot's numbers, by Tukey: whiskers reach to the last value within 1.5 times the
    quartiles' distance, and what is beyond is an outlier."""
    ordered = sorted(values)
    low, middle, high = (statistics.quantiles(ordered, n=4, method="inclusive")
                         if len(ordered) > 1 else [ordered[0]] * 3)
    reach = 1.5 * (high - low)
    inside = [value for value in ordered if low - reach <= value <= high + reach]
    return {"least": min(inside[0], low), "lower": low, "median": middle, "upper": high,
            "most": max(inside[-1], high),
            "outliers": [value for value in ordered if not low - reach <= value <= high + reach]}
