# SPDX-License-Identifier: Apache-2.0
"""Figures 7 and 8 of "Degraded-First Scheduling for MapReduce in Erasure-Coded Storage Clusters"
(Li, Lee and Hu, DSN'14). Its numbers are quoted from its text; curves that it only draws are
not read off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Sequence

from . import pictures
from .figure import ALGORITHMS, Cell, Comparison, Figure, Measure, Names
from .pictures import Panel
from .scenarios import Setting
from .summary import Row, Rows, find, normalized

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
# The paper's Figure 7 compares these two; BDF is in Figure 8, and with codes.
OF_FIGURE_7 = ("LF", "EDF")
DEFAULT = Setting()
HETEROGENEOUS = replace(DEFAULT, slow_nodes=20, slow_factor=2.0)
EXTREME = replace(DEFAULT, slow_nodes=5, slow_factor=10.0, map_seconds=3.0, blocks=150, reduces=0)

RUNTIME = "runtime, by that without failure"


def cells(over: str, values: Sequence[Any], setting: Callable[[Any], Setting],
          text: Callable[[Any], str] = str, algorithms: tuple[str, ...] = ALGORITHMS,
          ) -> tuple[Cell, ...]:
    return tuple(Cell({"links": way, over: text(value)}, replace(setting(value), **changes),
                      algorithms)
                 for way, changes in WAYS.items() for value in values)


def of_links(rows: Rows, links: str) -> list[Row]:
    return [row for row in rows if row["links"] == links]


def ways_of(rows: Rows) -> list[str]:
    """Those that these results have."""
    return [way for way in WAYS if of_links(rows, way)]


def runtime_panels(over: str, x_label: str) -> Callable[[Rows], list[Panel]]:
    return lambda rows: [pictures.boxes(of_links(rows, way), f"links {way}", over, x_label,
                                        RUNTIME, normalized) for way in ways_of(rows)]


def job_panels(rows: Rows) -> list[Panel]:
    def split(some: Rows) -> list[Row]:
        return [{**row, "job": str(job + 1), "one": normalized(row, job)}
                for row in some for job in range(JOBS)]
    return [pictures.boxes(split(of_links(rows, links)), f"links {links}", "job", "job", RUNTIME,
                           lambda row: row["one"]) for links in ways_of(rows)]


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
                           f"{what}, links {links}", "cluster", "cluster",
                           f"{what}: % less than LF", lambda row: row["less"])
            for links in ways_of(rows) for field, what in wanted]


def extreme_panels(rows: Rows) -> list[Panel]:
    return [pictures.boxes(each_than_lf(of_links(rows, links), "normalized"),
                           f"runtime, links {links}", "cluster", "cluster", "% less than LF",
                           lambda row: row["less"]) for links in ways_of(rows)]


def compared(what: str, paper: tuple[float, ...], where: Names | Sequence[Names], case: str = "",
             measure: Measure = Measure(), most: bool = False) -> Comparison:
    """`where`: one value or more of the figure's parameter; `case`: which one of assumptions.py is
    the same, if it is not called as the value is."""
    places = (where,) if isinstance(where, dict) else tuple(where)
    cases = tuple({"case": case} if case else {"case": value} for place in places
                  for value in place.values())
    return Comparison(what, paper, places, cases, measure, most)


def of_clusters(letter: str, what: str, field: str, numbers: Sequence[tuple[str, float, float]],
                ) -> list[Comparison]:
    """Figure 8(a), (b) or (c): of each algorithm, homogeneous and heterogeneous."""
    return [compared(f"({letter}) {what}, {algorithm} less than LF, {cluster}", (number,),
                     {"cluster": cluster}, "(20,15)" if cluster == "homogeneous" else "",
                     Measure(algorithm, "LF", field))
            for algorithm, *two in numbers for cluster, number in zip(CLUSTERS, two)]


CLUSTERS = {"homogeneous": DEFAULT, "heterogeneous": HETEROGENEOUS}
BAD = {"cluster": "extreme"}
FIGURES = (
    Figure("7a", "Figure 7(a): codes",
           cells("code", CODES, lambda code: replace(DEFAULT, n=code[0], k=code[1]),
                 lambda code: f"({code[0]},{code[1]})"),
           runtime_panels("code", "code"), comparisons=(
               compared("(8,6): EDF less than LF", (17.4,), {"code": "(8,6)"}),
               compared("(20,15)", (32.9,), {"code": "(20,15)"}))),
    Figure("7b", "Figure 7(b): native blocks",
           cells("blocks", BLOCKS, lambda blocks: replace(DEFAULT, blocks=blocks),
                 algorithms=OF_FIGURE_7),
           runtime_panels("blocks", "native blocks"), comparisons=(
               Comparison("EDF less than LF, over all", (34.8, 39.6),
                          tuple({"blocks": str(blocks)} for blocks in BLOCKS),
                          ({"case": "720 blocks"}, {"case": "(20,15)"}, {"case": "2880 blocks"})),
           )),
    Figure("7c", "Figure 7(c): bandwidth of racks",
           cells("rack_mbit", RATES, lambda rate: replace(DEFAULT, rack_mbit=rate),
                 lambda rate: f"{rate:g}", OF_FIGURE_7),
           runtime_panels("rack_mbit", "Mb/s of a rack's link"), comparisons=(
               Comparison("EDF less than LF, at most", (35.1,),
                          tuple({"rack_mbit": f"{rate:g}"} for rate in RATES),
                          ({"case": "500 Mb/s"}, {"case": "(20,15)"}), most=True),
               compared("at 500 Mb/s", (35.1,), {"rack_mbit": "500"}, "500 Mb/s"))),
    Figure("7d", "Figure 7(d): one node, two nodes, a rack lost",
           cells("failure", ("node", "two nodes", "rack"),
                 lambda failure: replace(DEFAULT, failure=failure), algorithms=OF_FIGURE_7),
           runtime_panels("failure", "lost"), comparisons=(
               compared("one node: EDF less than LF", (33.2,), {"failure": "node"}, "(20,15)"),
               compared("two nodes", (22.3,), {"failure": "two nodes"}),
               compared("a rack", (5.9,), {"failure": "rack"}, "a rack"))),
    Figure("7e", "Figure 7(e): intermediate data",
           cells("shuffle", SHUFFLES, lambda share: replace(DEFAULT, shuffle=share),
                 lambda share: f"{share * 100:g} %", OF_FIGURE_7),
           runtime_panels("shuffle", "intermediate data, of the block"), comparisons=(
               Comparison("EDF less than LF, over all", (20.0, 33.2),
                          tuple({"shuffle": f"{share * 100:g} %"} for share in SHUFFLES),
                          ({"case": "(20,15)"}, {"case": "30 % shuffled"})),)),
    Figure("7f", "Figure 7(f): ten jobs",
           cells("jobs", (JOBS,), lambda jobs: replace(DEFAULT, jobs=jobs),
                 algorithms=OF_FIGURE_7), job_panels,
           setting="ten jobs, gaps of 120 s in the mean, each with 1440 blocks of its own",
           comparisons=(
               Comparison("EDF less than LF, over the jobs", (28.6, 48.6),
                          tuple({"job": job} for job in range(JOBS)),
                          tuple({"case": "ten jobs", "job": job} for job in range(JOBS))),)),
    Figure("8abc", "Figures 8(a)-(c): BDF and EDF, homogeneous and heterogeneous",
           cells("cluster", tuple(CLUSTERS), lambda name: CLUSTERS[name]), less_panels,
           setting="heterogeneous: half of each rack's nodes take twice as long",
           comparisons=(
               *of_clusters("a", "remote tasks", "remote",
                            (("BDF", -35.4, -25.4), ("EDF", 10.7, 6.7))),
               *of_clusters("b", "degraded read time", "degraded_read_s",
                            (("BDF", 80.5, 83.1), ("EDF", 85.4, 85.5))),
               *of_clusters("c", "runtime", "normalized",
                            (("BDF", 32.3, 24.4), ("EDF", 34.0, 27.9))))),
    Figure("8d", "Figure 8(d): five nodes ten times slower",
           cells("cluster", ("extreme",), lambda _: EXTREME), extreme_panels,
           setting="150 blocks, map tasks only, of 3 s and on five nodes of 30 s",
           comparisons=(
               compared("runtime, BDF less than LF", (11.7,), BAD, measure=Measure("BDF")),
               compared("EDF less than LF", (32.6,), BAD),
               compared("remote tasks, EDF less than BDF", (36.1,), BAD,
                        measure=Measure("EDF", "BDF", "remote")),
               compared("degraded read time, EDF less than BDF", (34.6,), BAD,
                        measure=Measure("EDF", "BDF", "degraded_read_s")))),
)
