# SPDX-License-Identifier: Apache-2.0
"""The figures of the paper: with which commands they are measured here, and what the paper says.

All figures of the paper are quoted from its text (Li et al., "Repair Pipelining for Erasure-Coded
Storage: Algorithms and Evaluation"); curves that it only draws are not read off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Sequence

from labkit.stripes import MIB
from .views import VIEWS, Row, View

Rows = Sequence[Row]
Command = tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """One number of the paper, and the same of our rows; None when they do not have it."""

    what: str
    paper: str
    ours: Callable[[Rows], str | None]


@dataclass(frozen=True)
class Figure:
    name: str                          # of its files, too
    title: str
    source: str                        # where the paper has it
    setting: str                       # of the paper
    quick: tuple[Command, ...]
    full: tuple[Command, ...]
    comparisons: tuple[Comparison, ...] = ()
    view: View | None = None
    more_views: tuple[tuple[str, str, View], ...] = ()  # further plots: name, title, view
    notes: str = ""
    needs_jdk: bool = False            # then it is measured only when it is asked for by name

    def main_view(self) -> View:
        return self.view or VIEWS[self.quick[0][0]]


def find(rows: Rows, scheme: str, **parameters: Any) -> Row | None:
    return next((row for row in rows if row["scheme"] == scheme and all(
        row["parameters"].get(name) == value for name, value in parameters.items())), None)


def less(scheme: str, other: str, other_parameters: dict[str, Any] | None = None,
         **parameters: Any) -> Callable[[Rows], str | None]:
    """By how much less time, in percent."""
    def ours(rows: Rows) -> str | None:
        a = find(rows, scheme, **parameters)
        b = find(rows, other, **(parameters if other_parameters is None else other_parameters))
        return f"{(1 - a['median_s'] / b['median_s']) * 100:.1f} %" if a and b else None
    return ours


def less_range(scheme: str, other: str, over: str) -> Callable[[Rows], str | None]:
    """The least and the largest reduction over the values of a parameter."""
    def ours(rows: Rows) -> str | None:
        values = dict.fromkeys(row["parameters"].get(over) for row in rows
                               if row["scheme"] == scheme)
        found = [(1 - a["median_s"] / b["median_s"]) * 100 for value in values
                 if (a := find(rows, scheme, **{over: value}))
                 and (b := find(rows, other, **{over: value}))]
        return f"{min(found):.1f}-{max(found):.1f} %" if found else None
    return ours


def ratio(scheme: str, **parameters: Any) -> Callable[[Rows], str | None]:
    def ours(rows: Rows) -> str | None:
        row = find(rows, scheme, **parameters)
        return f"{(row['ratio_to_direct'] - 1) * 100:+.1f} %" if row else None
    return ours


def faster(scheme: str, other: str) -> Callable[[Rows], str | None]:
    """How many times the rate of recovery."""
    def ours(rows: Rows) -> str | None:
        a, b = find(rows, scheme), find(rows, other)
        return f"{a['mib_per_s'] / b['mib_per_s']:.2f} x" if a and b else None
    return ours


def largest_block(rows: Rows) -> int:
    return max(row["parameters"]["block_bytes"] for row in rows)


def less_at_largest(scheme: str, other: str) -> Callable[[Rows], str | None]:
    return lambda rows: less(scheme, other, block_bytes=largest_block(rows))(rows)


def faster_at(scheme: str, other: str, block_mib: int | None = None,
              **parameters: Any) -> Callable[[Rows], str | None]:
    """By how much the rate of recovery is higher; default: with the largest blocks."""
    def ours(rows: Rows) -> str | None:
        size = block_mib * MIB if block_mib else largest_block(rows)
        a = find(rows, scheme, block_bytes=size, **parameters)
        b = find(rows, other, block_bytes=size, **parameters)
        return f"{(a['mib_per_s'] / b['mib_per_s'] - 1) * 100:+.0f} %" if a and b else None
    return ours


def spread_of(scheme: str, over: str) -> Callable[[Rows], str | None]:
    def ours(rows: Rows) -> str | None:
        times = [row["median_s"] for row in rows if row["scheme"].split(" ")[0] == scheme
                 and over in row["parameters"]]
        return f"{min(times):.2f}-{max(times):.2f} s" if times else None
    return ours


def options(text: str) -> Command:
    return tuple(text.split())
