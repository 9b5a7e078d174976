# SPDX-License-Identifier: Apache-2.0
"""Figures 7 and 8 of "Degraded-First Scheduling for MapReduce in Erasure-Coded Storage Clusters"
(Li, Lee and Hu, DSN'14). Its numbers are quoted from its text; curves that it only draws are
not read off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Sequence

from . import pictures
from .figure import Cell, Comparison, Figure, Row, Rows
from .pictures import Panel
from .scenarios import Setting
from .summary import find, less, normalized, saving, savings_over

# The paper's links are held; TCP shares them.
BOTH_LINKS = ("held", "shared")
# What the paper's simulator may have done: it does not say when slaves send their first heartbeat.
AT_ONCE = "held, at once"
WAYS: dict[str, dict[str, Any]] = {
    AT_ONCE: {"links": "held", "in_step": True}, "held": {"links": "held"},
    "shared": {"links": "shared"}}
CODES = ((8, 6), (12, 9), (16, 12), (20, 15))
BLOCKS = (720, 1440, 2160, 2880)
RATES = (100.0, 250.0, 500.0, 1000.0)
SHUFFLES = (0.01, 0.05, 0.10, 0.20, 0.30)
JOBS = 10
DEFAULT = Setting()
HETEROGENEOUS = replace(DEFAULT, slow_nodes=20, slow_factor=2.0)
EXTREME = replace(DEFAULT, slow_nodes=5, slow_factor=10.0, map_seconds=3.0, blocks=150, reduces=0)

RUNTIME = "runtime, by that without failure"
SLOWER_LINKS = "racks' links: see \"Changing one assumption\" for 350 and 400 Mb/s"
FEW_TASKS = "some 12 of 1440 tasks are remote; which ones hangs on who asks first"
BARE_MEANS = "150 tasks in one round: means of few tasks"


def cells(over: str, values: Sequence[Any], setting: Callable[[Any], Setting],
          text: Callable[[Any], str] = str) -> tuple[Cell, ...]:
    return tuple(Cell({"links": way, over: text(value)}, replace(setting(value), **changes))
                 for way, changes in WAYS.items() for value in values)


def of_links(rows: Rows, links: str) -> list[Row]:
    return [row for row in rows if row["links"] == links]


def ways_of(rows: Rows) -> list[str]:
    """Those that these results have."""
    return [way for way in WAYS if of_links(rows, way)]


def runtime_panels(over: str, x_label: str) -> Callable[[Rows], list[Panel]]:
    return lambda rows: [pictures.boxes(of_links(rows, way), f"links {way}", over, x_label,
                                        RUNTIME, normalized) for way in ways_of(rows)]


def at(over: str, value: str) -> Callable[[Rows], Sequence[float]]:
    """EDF's saving over LF at one value."""
    return lambda rows: [saving(find(rows, algorithm="EDF", **{over: value}),
                                find(rows, algorithm="LF", **{over: value}))]


def ends(over: str) -> Callable[[Rows], Sequence[float]]:
    def ours(rows: Rows) -> Sequence[float]:
        savings = savings_over(rows, over).values()
        return min(savings), max(savings)
    return ours


def most(over: str) -> Callable[[Rows], Sequence[float]]:
    return lambda rows: [max(savings_over(rows, over).values())]


def over_jobs(rows: Rows) -> Sequence[float]:
    fast, slow = find(rows, algorithm="EDF"), find(rows, algorithm="LF")
    savings = [saving(fast, slow, job) for job in range(JOBS)]
    return min(savings), max(savings)


def job_panels(rows: Rows) -> list[Panel]:
    def split(some: Rows) -> list[Row]:
        return [{**row, "job": str(job + 1), "one": normalized(row, job)}
                for row in some for job in range(JOBS)]
    return [pictures.boxes(split(of_links(rows, links)), f"links {links}", "job", "job", RUNTIME,
                           lambda row: row["one"]) for links in ways_of(rows)]


def than_lf(field: str, algorithm: str, cluster: str, other: str = "LF",
            ) -> Callable[[Rows], Sequence[float]]:
    """By how much less; negative: more."""
    def ours(rows: Rows) -> Sequence[float]:
        row = find(rows, algorithm=algorithm, cluster=cluster)
        base = find(rows, algorithm=other, cluster=cluster)
        return [saving(row, base) if field == "normalized" else less(row, base, field)]
    return ours


def each_than_lf(rows: Rows, field: str) -> list[Row]:
    """Of each seed: by how many percent less than LF."""
    found = []
    for row in rows:
        base = find(rows, algorithm="LF", cluster=row["cluster"], links=row["links"])

        def values(of: Row) -> list[float]:
            return normalized(of) if field == "normalized" else of[field]
        if row is not base:
            found.append({**row, "less": [100 * (1 - a / b) for a, b in zip(
                values(row), values(base)) if b]})
    return found


def less_panels(rows: Rows) -> list[Panel]:
    wanted = (("remote", "remote tasks"), ("degraded_read_s", "degraded read time"),
              ("normalized", "runtime"))
    return [pictures.boxes(each_than_lf(of_links(rows, links), field),
                           f"{what}, links {links}", "cluster", "cluster", "% less than LF",
                           lambda row: row["less"])
            for links in ways_of(rows) for field, what in wanted]


def extreme_panels(rows: Rows) -> list[Panel]:
    return [pictures.boxes(each_than_lf(of_links(rows, links), "normalized"),
                           f"runtime, links {links}", "cluster", "cluster", "% less than LF",
                           lambda row: row["less"]) for links in ways_of(rows)]


CLUSTERS = {"homogeneous": DEFAULT, "heterogeneous": HETEROGENEOUS}
FIGURES = (
    Figure("7a", "Figure 7(a): codes",
           cells("code", CODES, lambda code: replace(DEFAULT, n=code[0], k=code[1]),
                 lambda code: f"({code[0]},{code[1]})"),
           runtime_panels("code", "code"), comparisons=(
               Comparison("(8,6): EDF less than LF", (17.4,), at("code", "(8,6)")),
               Comparison("(20,15)", (32.9,), at("code", "(20,15)")))),
    Figure("7b", "Figure 7(b): native blocks",
           cells("blocks", BLOCKS, lambda blocks: replace(DEFAULT, blocks=blocks)),
           runtime_panels("blocks", "native blocks"), comparisons=(
               Comparison("EDF less than LF, over all", (34.8, 39.6), ends("blocks"),
                          SLOWER_LINKS),)),
    Figure("7c", "Figure 7(c): bandwidth of racks",
           cells("rack_mbit", RATES, lambda rate: replace(DEFAULT, rack_mbit=rate),
                 lambda rate: f"{rate:g}"),
           runtime_panels("rack_mbit", "Mb/s of a rack's link"), comparisons=(
               Comparison("EDF less than LF, at most", (35.1,), most("rack_mbit")),
               Comparison("at 500 Mb/s", (35.1,), at("rack_mbit", "500")))),
    Figure("7d", "Figure 7(d): one node, two nodes, a rack lost",
           cells("failure", ("node", "two nodes", "rack"),
                 lambda failure: replace(DEFAULT, failure=failure)),
           runtime_panels("failure", "lost"), comparisons=(
               Comparison("one node: EDF less than LF", (33.2,), at("failure", "node")),
               Comparison("two nodes", (22.3,), at("failure", "two nodes"), SLOWER_LINKS),
               Comparison("a rack", (5.9,), at("failure", "rack"), SLOWER_LINKS))),
    Figure("7e", "Figure 7(e): intermediate data",
           cells("shuffle", SHUFFLES, lambda share: replace(DEFAULT, shuffle=share),
                 lambda share: f"{share * 100:g} %"),
           runtime_panels("shuffle", "intermediate data, of the block"), comparisons=(
               Comparison("EDF less than LF, over all", (20.0, 33.2), ends("shuffle"),
                          "who fetches when: see the note"),)),
    Figure("7f", "Figure 7(f): ten jobs",
           cells("jobs", (JOBS,), lambda jobs: replace(DEFAULT, jobs=jobs)), job_panels,
           setting="ten jobs, gaps of 120 s in the mean, each with 1440 blocks of its own",
           comparisons=(
               Comparison("EDF less than LF, over the jobs", (28.6, 48.6), over_jobs,
                          "links: see those shared, and the note"),)),
    Figure("8abc", "Figures 8(a)-(c): BDF and EDF, homogeneous and heterogeneous",
           cells("cluster", tuple(CLUSTERS), lambda name: CLUSTERS[name]), less_panels,
           setting="heterogeneous: half of each rack's nodes take twice as long",
           comparisons=(
               Comparison("(a) remote tasks, BDF less than LF, homogeneous", (-35.4,),
                          than_lf("remote", "BDF", "homogeneous"), FEW_TASKS),
               Comparison("(a) heterogeneous", (-25.4,),
                          than_lf("remote", "BDF", "heterogeneous"), FEW_TASKS),
               Comparison("(a) EDF, homogeneous", (10.7,),
                          than_lf("remote", "EDF", "homogeneous"), FEW_TASKS),
               Comparison("(a) heterogeneous", (6.7,), than_lf("remote", "EDF", "heterogeneous"),
                          FEW_TASKS),
               Comparison("(b) degraded read time, BDF less than LF, homogeneous", (80.5,),
                          than_lf("degraded_read_s", "BDF", "homogeneous")),
               Comparison("(b) heterogeneous", (83.1,),
                          than_lf("degraded_read_s", "BDF", "heterogeneous")),
               Comparison("(b) EDF, homogeneous", (85.4,),
                          than_lf("degraded_read_s", "EDF", "homogeneous")),
               Comparison("(b) heterogeneous", (85.5,),
                          than_lf("degraded_read_s", "EDF", "heterogeneous")),
               Comparison("(c) runtime, BDF less than LF, homogeneous", (32.3,),
                          than_lf("normalized", "BDF", "homogeneous")),
               Comparison("(c) heterogeneous", (24.4,),
                          than_lf("normalized", "BDF", "heterogeneous")),
               Comparison("(c) EDF, homogeneous", (34.0,),
                          than_lf("normalized", "EDF", "homogeneous")),
               Comparison("(c) heterogeneous", (27.9,),
                          than_lf("normalized", "EDF", "heterogeneous")))),
    Figure("8d", "Figure 8(d): five nodes ten times slower",
           cells("cluster", ("extreme",), lambda _: EXTREME), extreme_panels,
           setting="150 blocks, map tasks only, of 3 s and on five nodes of 30 s",
           comparisons=(
               Comparison("runtime, BDF less than LF", (11.7,),
                          than_lf("normalized", "BDF", "extreme"), BARE_MEANS),
               Comparison("EDF less than LF", (32.6,),
                          than_lf("normalized", "EDF", "extreme"), BARE_MEANS),
               Comparison("remote tasks, EDF less than BDF", (36.1,),
                          than_lf("remote", "EDF", "extreme", "BDF"), BARE_MEANS),
               Comparison("degraded read time, EDF less than BDF", (34.6,),
                          than_lf("degraded_read_s", "EDF", "extreme", "BDF"), BARE_MEANS))),
)

