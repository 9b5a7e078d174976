# SPDX-License-Identifier: Apache-2.0
"""What an operator should use: a list in docs/design/014-degraded-first.md, between two lines that
mark it. Its numbers come from the results; who changes these looks at the words again."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any, Mapping

from labkit.process import LabError

from . import beyond
from .notes import EQUAL, span
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
    found = []
    for number, text in enumerate(points(results), 1):
        found += textwrap.wrap(f"{number}. {' '.join(text.split())}", COLUMNS,
                               subsequent_indent="   ", break_on_hyphens=False,
                               break_long_words=False)
    return found


class Numbers:
    """Runtimes over both kinds of links, by that without failure."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __call__(self, algorithm: str, **names: Any) -> str:
        return span([mean(find(self.rows, algorithm=algorithm, links=links, **names))
                     for links in BOTH_LINKS], "{:.2f}")


def points(results: Results) -> list[str]:
    racks, nics, schemes, threshold, striped = (
        Numbers(results[name]["rows"])
        for name in ("racks", "nics", "schemes", "threshold", "striped"))
    paper, block = (name for name, _ in beyond.THRESHOLDS)
    few = {"scheme": "conventional", "mbit": 250.0}
    path = {"scheme": "rp-rack", "mbit": 250.0}
    lost = {"scheme": "rp-rack", "lost": "rack"}
    return [
        f"""**Racks' links are the bottleneck** (they usually are: ten nodes behind 1 Gb/s): read
        degraded by `rp-rack`. Stock Hadoop (LF) goes from
        {racks("LF", scheme="conventional", mbit=1000.0)} to
        {racks("LF", scheme="rp-rack", mbit=1000.0)} at 1 Gb/s and from {racks("LF", **few)} to
        {racks("LF", **path)} at 250 Mb/s, where EDF with conventional reads comes to
        {racks("EDF", **few)}. Plain `rp` comes to {racks("LF", scheme="rp", mbit=1000.0)} and
        {racks("LF", scheme="rp", mbit=250.0)}: it still carries k blocks over racks' links, as `ppr`
        and `rp-all` do.""",
        f"""**Nodes' links are the bottleneck** (racks without oversubscription): `rp`. At 100 Mb/s LF
        goes from {nics("LF", scheme="conventional", mbit=100.0)} to
        {nics("LF", scheme="rp", mbit=100.0)}, and EDF with it to
        {nics("EDF", scheme="rp", mbit=100.0)}.""",
        f"""**Then degraded first.** With `rp-rack` and racks' links of 1 Gb/s BDF comes to
        {racks("BDF", scheme="rp-rack", mbit=1000.0)} and EDF to
        {racks("EDF", scheme="rp-rack", mbit=1000.0)}: BDF is enough, and simpler. With conventional
        reads take EDF: at 500 Mb/s BDF comes to
        {racks("BDF", scheme="conventional", mbit=500.0)}, EDF to
        {racks("EDF", scheme="conventional", mbit=500.0)}.""",
        f"""**EDF's threshold has to be the read time of the scheme in use.** The paper's, (R-1)kS/(RW),
        is that of a conventional read. With `rp-rack` and a rack lost EDF comes to
        {threshold("EDF", threshold=paper, **lost)} with it, to
        {threshold("EDF", threshold=block, **lost)} with a block's time, and BDF to
        {threshold("BDF", **lost)}.""",
        f"""**Codes:** the wider the code, the more `rp-rack` is worth. LF with conventional reads comes
        to {schemes("LF", scheme="conventional", variant="(8,6)")} with (8,6) and to
        {schemes("LF", scheme="conventional", variant="(20,15)")} with (20,15); with `rp-rack` to
        {schemes("LF", scheme="rp-rack", variant="(8,6)")} and
        {schemes("LF", scheme="rp-rack", variant="(20,15)")}.""",
        load(schemes),
        waiting(results["waiting"]["rows"]),
        f"""**Striped files:** LF. EDF leaves slots empty where so many tasks are degraded: whole splits
        at 10 Gb/s, conventional, {striped("EDF", scheme="conventional", mbit=10000.0, read="whole")}
        instead of {striped("LF", scheme="conventional", mbit=10000.0, read="whole")}. Whole splits:
        `conventional`, which reads no more than a healthy split and one share. Partial reads:
        `rp-rack`, for its fewer bytes; the runtime is within 0.1 of any other.""",
        durability(results["durability"])]


def load(schemes: Numbers) -> str:
    def each(variant: str, scheme: str) -> str:
        return " / ".join(schemes(algorithm, scheme=scheme, variant=variant)
                          for algorithm in beyond.ALGORITHMS)
    return f"""**Load** (LF / BDF / EDF): with intermediate data of 30 % of the input conventional reads
        come to {each("shuffle 30 %", "conventional")}, `rp-rack` to
        {each("shuffle 30 %", "rp-rack")}. Two lost nodes: {each("two nodes", "conventional")} and
        {each("two nodes", "rp-rack")}. A lost rack: {each("rack", "conventional")} and
        {each("rack", "rp-rack")}."""


def waiting(rows: Rows) -> str:
    """Over the settings of the figure: where waiting is as good as the better reader."""
    def count(links: str, delay: float) -> str:
        settings = {(row["scheme"], row["mbit"], row["recovery_mb"]) for row in rows}
        good = 0
        for scheme, rate, recovery in settings:
            lf, edf, waits = (mean(find(
                rows, links=links, scheme=scheme, mbit=rate, recovery_mb=recovery, delay=delay,
                algorithm=algorithm, waits=wait)) for algorithm, wait in (
                    ("LF", False), ("EDF", False), ("LF", True)))
            good += waits <= min(lf, edf) + EQUAL
        return f"{good} of {len(settings)} settings at {delay:g} s"
    said = "; ".join(f"links {links}: " + ", ".join(count(links, delay)
                                                    for delay in beyond.DELAYS[:4])
                     for links in BOTH_LINKS)
    return f"""**A recovery that runs, or is about to begin:** whether degraded tasks should wait for it
        depends on how links are shared. Waiting is as good as reading in ({said}). With TCP wait only
        if the recovery is under way; from two minutes' delay on read degraded, by EDF."""


def durability(data: Mapping[str, Any]) -> str:
    def nines(axis: str, value: float, scheme: str) -> float:
        return next(row["nines"] for row in data["rows"] if (
            row["axis"], row["value"], row["scheme"], row["placement"])
            == (axis, value, scheme, "flat"))

    def gain(nodes: float) -> float:
        return nines("nodes", nodes, "rp") - nines("nodes", nodes, "conventional")
    late = nines("detection", 30, "conventional") - nines("detection", 600, "conventional")
    twice = nines("link_rate", 125, "conventional") - nines("link_rate", 62.5, "conventional")
    return f"""**Durability is no reason to change the scheme of repair** in a small cluster: RP adds
        {gain(100):.1f} nines to RS(14, 10) with 100 nodes, {gain(1000):.1f} with 1000. Notice losses
        early (600 s instead of 30 cost {late:.1f} nines), give repairs more bandwidth (twice as much:
        {twice:.1f}), and do not put n - k blocks into a rack that can be lost for good."""
