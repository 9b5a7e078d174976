# SPDX-License-Identifier: Apache-2.0
"""What labels and builds took, held against the table of CONTRIBUTING.md.

The table's rows begin with the label and end with the presets, the seconds, and the CPU seconds, a
number a preset: | `unit` | ... | asan, tsan | 60, 31 | 55, 29 |. Seconds are those of the label's
tests one after the other. The label of builds is `build`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Mapping

from runner.children import REPOSITORY

PAGE = REPOSITORY / "CONTRIBUTING.md"
ROW = re.compile(r"^(\| `(\w+)` \|.*\| )([\w, ]+) \| ([\d, ]+) \| ([\d, ]+) \|$", re.MULTILINE)
# A tenth more is named. Of short ones a tenth is what a machine makes of the same work.
GROWN, LEAST_SECONDS = 1.1, 5.0


@dataclass(frozen=True)
class Took:
    seconds: float
    cpu_seconds: float


Times = dict[tuple[str, str], Took]  # by preset and label


def read_times(text: str) -> Times:
    """Of a page with the table; ValueError at a row whose numbers are not one a preset."""
    times: Times = {}
    for row in ROW.finditer(text):
        presets, seconds, cpu = (row[cell].split(", ") for cell in (3, 4, 5))
        if not len(presets) == len(seconds) == len(cpu):
            raise ValueError(f"not one number a preset: {row[0]}")
        for preset, *numbers in zip(presets, seconds, cpu):
            times[preset, row[2]] = Took(*map(float, numbers))
    return times


def with_times(text: str, measured: Mapping[tuple[str, str], Took]) -> str:
    """The page with what was measured in the table; the rest stays."""
    def filled(row: re.Match[str]) -> str:
        presets = row[3].split(", ")
        took = [measured.get((preset, row[2])) for preset in presets]
        cells = [
            ", ".join(f"{getattr(new, kind):.0f}" if new else old
                      for new, old in zip(took, row[cell].split(", ")))
            for kind, cell in (("seconds", 4), ("cpu_seconds", 5))]
        return f"{row[1]}{row[3]} | {cells[0]} | {cells[1]} |"
    return ROW.sub(filled, text)


def grown(measured: Mapping[tuple[str, str], Took], before: Times) -> list[str]:
    """What took more than a tenth more than the table says, a line each."""
    lines = []
    for (preset, label), took in sorted(measured.items()):
        old = before.get((preset, label))
        if old is None:
            if preset in {known for known, _ in before}:
                lines.append(f"{preset} {label}: not in the table")
            continue
        for new, past, unit in ((took.seconds, old.seconds, "s"),
                                (took.cpu_seconds, old.cpu_seconds, "CPU s")):
            if new > past * GROWN and new - past > LEAST_SECONDS:
                lines.append(f"{preset} {label}: {new:.0f} {unit}, in the table {past:.0f}")
    return lines


def write_times(measured: Mapping[tuple[str, str], Took]) -> None:
    PAGE.write_text(with_times(PAGE.read_text(encoding="utf-8"), measured), encoding="utf-8")
