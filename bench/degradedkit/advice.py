# SPDX-License-Identifier: Apache-2.0
"""What an operator should use: a list in docs/design/014-degraded-first.md, between two lines that
mark it. Its numbers come from the results; who changes these looks at the words again."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any, Mapping

from labkit.process import LabError

from . import beyond
from .figure import ALGORITHMS
from .notes import best_choices, span
from .paper import BOTH_LINKS
from .summary import Rows, find, mean

BEGIN = "<!-- numbers of this list: bench/degraded.py report -->"
END = "<!-- end of the list -->"
COLUMNS = 128
Results = Mapping[str, Mapping[str, Any]]


def write(results: Results, note: Path) -> None:
    note.write_text(replaced(note.read_text(), lines(results)))


def replaced(text: str, some: list[str]) -> str:
    before, begin, rest = text.partition(BEGIN + "\n")
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise LabError(f"the design note has no lines \"{BEGIN}\" and \"{END}\"")
    return before + begin + "".join(line + "\n" for line in some) + end + after


def lines(results: Results) -> list[str]:
    racks, nics, schemes, threshold, striped = (
        Numbers(results[name]["rows"])
        for name in ("racks", "nics", "schemes", "threshold", "striped"))
    texts = (of_racks(racks), of_nics(nics), of_schedulers(racks), of_threshold(threshold),
             of_codes(schemes), of_load(schemes), of_waiting(results["waiting"]["rows"]),
             of_striped(striped), of_durability(results["durability"]))
    found = []
    for number, text in enumerate(texts, 1):
        found += textwrap.wrap(f"{number}. {' '.join(text.split())}", COLUMNS,
                               subsequent_indent="   ", break_on_hyphens=False,
                               break_long_words=False)
    return found


class Numbers:
    """Runtimes over both kinds of links, by that without failure."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __call__(self, algorithm: str, scheme: str, **names: Any) -> str:
        return span([mean(find(self._rows, algorithm=algorithm, scheme=scheme, links=links,
                               **names)) for links in BOTH_LINKS], "{:.2f}")

    def three(self, scheme: str, **names: Any) -> str:
        return " / ".join(self(algorithm, scheme, **names) for algorithm in ALGORITHMS)


def of_racks(racks: Numbers) -> str:
    fast, slow = {"mbit": 1000.0}, {"mbit": 250.0}
    return f"""**Racks' links are the bottleneck** (they usually are: ten nodes behind 1 Gb/s): read
        degraded by `rp-rack`. Stock Hadoop (LF) goes from {racks("LF", "conventional", **fast)} to
        {racks("LF", "rp-rack", **fast)} at 1 Gb/s and from {racks("LF", "conventional", **slow)} to
        {racks("LF", "rp-rack", **slow)} at 250 Mb/s, where EDF with conventional reads comes to
        {racks("EDF", "conventional", **slow)}. Plain `rp` comes to {racks("LF", "rp", **fast)} and
        {racks("LF", "rp", **slow)}: it still carries k blocks over racks' links, as `ppr` and
        `rp-all` do."""


def of_nics(nics: Numbers) -> str:
    slow = {"mbit": 100.0}
    return f"""**Nodes' links are the bottleneck** (racks without oversubscription): `rp`. At
        100 Mb/s LF goes from {nics("LF", "conventional", **slow)} to {nics("LF", "rp", **slow)},
        and EDF with it to {nics("EDF", "rp", **slow)}."""


def of_schedulers(racks: Numbers) -> str:
    fast, slow = {"mbit": 1000.0}, {"mbit": 500.0}
    return f"""**Then degraded first.** With `rp-rack` and racks' links of 1 Gb/s BDF comes to
        {racks("BDF", "rp-rack", **fast)} and EDF to {racks("EDF", "rp-rack", **fast)}: BDF is
        enough, and simpler. With conventional reads take EDF: at 500 Mb/s BDF comes to
        {racks("BDF", "conventional", **slow)}, EDF to {racks("EDF", "conventional", **slow)}."""


def of_threshold(threshold: Numbers) -> str:
    paper, block = (name for name, _ in beyond.THRESHOLDS)
    lost = {"scheme": "rp-rack", "lost": "rack"}
    return f"""**Where much is lost, with `rp-rack`, BDF is better than EDF:** with a rack lost
        {threshold("BDF", **lost)} and {threshold("EDF", threshold=paper, **lost)}. EDF's threshold,
        (R-1)kS/(RW), is that of a conventional read, and a part of it: with a block's time EDF
        comes to {threshold("EDF", threshold=block, **lost)}."""


def of_codes(schemes: Numbers) -> str:
    narrow, wide = {"variant": "(8,6)"}, {"variant": "(20,15)"}
    return f"""**Codes:** the wider the code, the more `rp-rack` is worth. LF with conventional
        reads comes to {schemes("LF", "conventional", **narrow)} with (8,6) and to
        {schemes("LF", "conventional", **wide)} with (20,15); with `rp-rack` to
        {schemes("LF", "rp-rack", **narrow)} and {schemes("LF", "rp-rack", **wide)}."""


def of_load(schemes: Numbers) -> str:
    def both(variant: str) -> str:
        return " and ".join(schemes.three(scheme, variant=variant)
                            for scheme in ("conventional", "rp-rack"))
    return f"""**Load** (LF / BDF / EDF, conventional and `rp-rack`): intermediate data of 30 % of
        the input {both("shuffle 30 %")}; two lost nodes {both("two nodes")}; a lost rack
        {both("rack")}."""


def of_waiting(rows: Rows) -> str:
    said = "; ".join(f"links {links}: " + ", ".join(
        f"{best_choices(rows, links, delay)[2]} at {delay:g} s" for delay in beyond.DELAYS[:4])
        for links in BOTH_LINKS)
    return f"""**A recovery that runs, or is about to begin:** whether degraded tasks should wait
        for it depends on how links are shared. Waiting is as good as reading in so many of eight
        settings, by the time until it begins: {said}. On links that TCP shares wait only if the
        recovery is under way; from two minutes' delay on read degraded, by EDF."""


def of_striped(striped: Numbers) -> str:
    fast = {"mbit": 10000.0, "read": "whole"}
    five = {"mbit": 1000.0, "read": beyond.STRIPED_READS[1][0]}
    return f"""**Striped files:** whole splits by LF and `conventional`, which reads what a healthy
        split reads and one share more. EDF leaves slots empty where so many tasks are degraded: at
        10 Gb/s {striped("EDF", "conventional", **fast)} instead of
        {striped("LF", "conventional", **fast)}. Partial reads by `rp-rack`, for its fewer bytes;
        the scheduler hardly matters then ({striped.three("rp-rack", **five)} with five shares)."""


def of_durability(data: Mapping[str, Any]) -> str:
    def nines(axis: str, value: float, scheme: str = "conventional") -> float:
        return next(row["nines"] for row in data["rows"] if (
            row["axis"], row["value"], row["scheme"], row["placement"])
            == (axis, value, scheme, "flat"))
    small, large = (nines("nodes", nodes, "rp") - nines("nodes", nodes) for nodes in (100, 1000))
    late = nines("detection", 30) - nines("detection", 600)
    twice = nines("link_rate", 125) - nines("link_rate", 62.5)
    return f"""**Durability alone is a small reason to change the scheme of repair**: RP
        adds {small:.1f} nines to RS(14, 10) with 100 nodes, {large:.1f} with 1000. Notice losses
        early (600 s instead of 30 cost {late:.1f} nines), give repairs more bandwidth (twice as
        much: {twice:.1f}), and do not put n - k blocks into a rack that can be lost for good."""
