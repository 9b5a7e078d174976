# SPDX-License-Identifier: Apache-2.0
"""Which assumptions the paper's numbers hang on: each one changed by itself, and which change
brings one of them nearest."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any, Callable, Mapping, Sequence

from experiments.report import table

from .figure import TOLERANCE, Cell, Comparison, Figure, Measure, Rows
from .paper import AT_ONCE, DEFAULT, EXTREME, HETEROGENEOUS, JOBS, WAYS
from .pictures import Panel
from .scenarios import Setting
from .summary import find, normalized

Change = Callable[[Setting], Setting]


def change(**fields: Any) -> Change:
    return lambda setting: replace(setting, **fields)


def slower_racks(share: float) -> Change:
    return lambda setting: replace(setting, rack_mbit=share * setting.rack_mbit)


HELD = "held"
SLOWER = {f"racks' links {share:g} times as fast": slower_racks(share) for share in (0.4, 0.35)}
# Of links that are held, each slave with a first heartbeat of its own.
CHANGES: dict[str, Change] = {
    "links shared": change(links="shared"),
    "both ends of a transfer held at once": change(links="circuits"),
    **SLOWER,
    "no limit on racks' uplinks": change(limits_uplinks=False),
    "blocks of 128 MiB": change(block_bytes=1 << 27),
    "a heartbeat every 0.1 s": change(heartbeat=0.1),
    "no reduce tasks": change(reduces=0),
    "line 2 of Algorithm 3 as printed": change(printed_line_2=True)}
# The same where all first heartbeats are at once.
ALSO_AT_ONCE = ("links shared", *SLOWER, "no limit on racks' uplinks")
ASSUMPTIONS: dict[str, Change] = {
    HELD: change(**WAYS[HELD]), **{f"{HELD}; {name}": each for name, each in CHANGES.items()},
    AT_ONCE: change(**WAYS[AT_ONCE]),
    **{f"{AT_ONCE}; {name}": lambda setting, name=name: CHANGES[name](
        replace(setting, **WAYS[AT_ONCE])) for name in ALSO_AT_ONCE}}
# What the paper's figures have as a way of its own.
OF_ALL_SEEDS = {f"{HELD}; links shared": "shared"}
TEN_JOBS = "ten jobs"
# Ten jobs take ten times as long to simulate.
OF_TEN_JOBS = (HELD, f"{HELD}; links shared", AT_ONCE, f"{AT_ONCE}; links shared")
CASES: dict[str, Setting] = {
    "(8,6)": replace(DEFAULT, n=8, k=6), "(20,15)": DEFAULT,
    "720 blocks": replace(DEFAULT, blocks=720), "2880 blocks": replace(DEFAULT, blocks=2880),
    "500 Mb/s": replace(DEFAULT, rack_mbit=500.0),
    "two nodes": replace(DEFAULT, failure="two nodes"),
    "a rack": replace(DEFAULT, failure="rack"), "30 % shuffled": replace(DEFAULT, shuffle=0.3),
    "heterogeneous": HETEROGENEOUS, "extreme": EXTREME, TEN_JOBS: replace(DEFAULT, jobs=JOBS)}
WITH_BDF = ("(20,15)", "heterogeneous", "extreme")
# Columns of the table and panels: what the paper has for EDF, or for BDF.
COLUMNS: tuple[tuple[str, str, str, tuple[float, ...]], ...] = (
    ("(8,6)", "(8,6)", "EDF", (17.4,)), ("(20,15)", "(20,15)", "EDF", (32.9, 33.2)),
    ("720 blocks", "720 blocks", "EDF", (34.8, 39.6)),
    ("2880 blocks", "2880 blocks", "EDF", (34.8, 39.6)),
    ("500 Mb/s", "500 Mb/s", "EDF", (35.1,)), ("two nodes", "two nodes", "EDF", (22.3,)),
    ("a rack", "a rack", "EDF", (5.9,)), ("30 % shuffled", "30 % shuffled", "EDF", (20.0,)),
    ("heterogeneous", "heterogeneous", "EDF", (27.9,)), ("extreme", "extreme", "EDF", (32.6,)),
    ("extreme, BDF", "extreme", "BDF", (11.7,)))
SEEDS = 4


def cells() -> tuple[Cell, ...]:
    return tuple(Cell({"assumption": name, "case": case}, each(setting),
                      ("LF", "BDF", "EDF") if case in WITH_BDF else ("LF", "EDF"))
                 for name, each in ASSUMPTIONS.items() for case, setting in CASES.items()
                 if case != TEN_JOBS or name in OF_TEN_JOBS)


def saved(rows: Rows, name: str, case: str, algorithm: str) -> float:
    return 100 * Measure(algorithm).of(rows, assumption=name, case=case)


def error_of(rows: Rows, name: str, case: str, algorithm: str) -> float:
    """Standard error of saved(), by the seeds' own savings."""
    row, base = (normalized(find(rows, assumption=name, case=case, algorithm=each))
                 for each in (algorithm, "LF"))
    each_seed = [100 * (1 - a / b) for a, b in zip(row, base)]
    return statistics.stdev(each_seed) / len(each_seed) ** 0.5 if len(each_seed) > 1 else 0.0


def assumption_table(rows: Rows) -> list[str]:
    return ["Percent less than LF, EDF unless BDF is said:", "", *table(
        ["", *(title for title, *_ in COLUMNS)], [
            ["the paper", *(", ".join(f"{value:g}" for value in paper)
                            for *_, paper in COLUMNS)],
            *([name, *(f"{saved(rows, name, case, algorithm):.1f}"
                       for _, case, algorithm, _ in COLUMNS)] for name in ASSUMPTIONS),
            [f"standard error, {HELD}", *(f"{error_of(rows, HELD, case, algorithm):.1f}"
                                          for _, case, algorithm, _ in COLUMNS)]])]


def assumption_panels(rows: Rows) -> list[Panel]:
    return [{"title": title, "x_label": "% less than LF, and its standard error", "y_label": "",
             "groups": list(ASSUMPTIONS), "marks": list(paper), "series": [{
                 "label": "ours, with each assumption; vertical lines: the paper",
                 "dots": [saved(rows, name, case, algorithm) for name in ASSUMPTIONS],
                 "errors": [error_of(rows, name, case, algorithm) for name in ASSUMPTIONS]}]}
            for title, case, algorithm, paper in COLUMNS]


def cause(comparison: Comparison, rows: Rows, ours: Mapping[str, Sequence[float]]) -> str:
    """Of a difference: the assumption that brings ours nearest, and what it gives. `ours`: by way,
    of all the figure's seeds. A change is what it changes in the few clusters of `rows`, so that
    which clusters these are hardly matters."""
    def of(name: str) -> list[float]:
        some = [row for row in rows if row["assumption"] == name]
        return comparison.ours(some, comparison.cases)
    found = []
    for name in dict.fromkeys(row["assumption"] for row in rows):
        base, _, changed = name.partition("; ")
        cases = {row["case"] for row in rows if row["assumption"] == name}
        if not changed or any(place["case"] not in cases for place in comparison.cases):
            continue
        values = list(ours[OF_ALL_SEEDS[name]]) if name in OF_ALL_SEEDS else [
            value + after - before for value, after, before in zip(ours[base], of(name), of(base))]
        found.append((comparison.distance(values), name, values))
    if not found:
        return "not looked for"
    distance, name, values = min(found)
    said = f"{name}: {' to '.join(f'{value:.1f}' for value in values)}"
    return said if distance <= TOLERANCE else f"none of {len(found)} changes; nearest: {said}"


FIGURE = Figure("assumptions", "Changing one assumption", cells(), assumption_panels,
                tables=(assumption_table,), seeds=SEEDS, columns=3)
