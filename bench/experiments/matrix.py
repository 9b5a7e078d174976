# SPDX-License-Identifier: Apache-2.0
"""Rates of links between regions: a table of megabits per second, from the row to the column.

    Mb/s    east   west        # the first line names the columns; "#" begins a comment
    east    500.0   60.0
    west     55.0  700.0
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

from labkit.process import LabError

FOLDER = Path(__file__).parent / "matrices"
BUILT_IN = ("north-america", "asia")


@dataclass(frozen=True)
class Matrix:
    name: str
    regions: tuple[str, ...]
    mbit: Mapping[tuple[str, str], float]

    def pairs(self, region_of: Mapping[str, str]) -> dict[tuple[str, str], float]:
        """The rate of each pair of nodes that differ."""
        return {(a, b): self.mbit[region_of[a], region_of[b]]
                for a in region_of for b in region_of if a != b}

    def scaled(self, factor: float) -> Matrix:
        if factor <= 0:
            raise LabError("--scale must be more than 0")
        name = self.name if factor == 1 else f"{self.name} x {factor:g}"
        return Matrix(name, self.regions, {
            pair: mbit * factor for pair, mbit in self.mbit.items()})

    def topology_links(self) -> str:
        """As the coordinator's topology.links takes it; regions are racks there."""
        return "".join(f"{rack_name(a)} {rack_name(b)} {mbit}\n"
                       for (a, b), mbit in self.mbit.items())


def rack_name(region: str) -> str:
    return "/" + region


def read_matrix(name_or_file: str) -> Matrix:
    """One of BUILT_IN, or a file."""
    path = FOLDER / f"{name_or_file}.txt" if name_or_file in BUILT_IN else Path(name_or_file)
    try:
        text = path.read_text()
    except OSError as error:
        raise LabError(f"--matrix {name_or_file}: {error.strerror}; built in are "
                       f"{', '.join(BUILT_IN)}") from None
    lines = [line.split("#")[0].split() for line in text.splitlines()]
    head, *rows = [words for words in lines if words]
    regions = tuple(head[1:])
    if [row[0] for row in rows] != list(regions) or any(len(row) != len(head) for row in rows):
        raise LabError(f"--matrix {name_or_file}: the file must have a row for each region in its "
                       "first line")
    try:
        mbit = {(row[0], region): float(word)
                for row in rows for region, word in zip(regions, row[1:])}
    except ValueError as error:
        raise LabError(f"--matrix {name_or_file}: {error}") from None
    if min(mbit.values()) <= 0:
        raise LabError(f"--matrix {name_or_file}: rates must be more than 0")
    return Matrix(path.stem, regions, mbit)


def measured_matrix(links: Iterable[Mapping[str, Any]], region_of: Mapping[str, str]) -> Matrix:
    """Of the links that `ecpipe probe --json` shows: the median between two regions."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for link in links:
        found[region_of[link["from"]], region_of[link["to"]]].append(link["mbit"])
    regions: Sequence[str] = sorted(set(region_of.values()))
    mbit = {pair: statistics.median(values) for pair, values in found.items()}
    if missing := [(a, b) for a in regions for b in regions if (a, b) not in mbit]:
        raise LabError(f"no link between {missing[0][0]} and {missing[0][1]} was measured; each "
                       "region needs two nodes")
    return Matrix("measured", tuple(regions), mbit)
