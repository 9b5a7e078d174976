# SPDX-License-Identifier: Apache-2.0
"""What the paper could not ask: other schemes of repair, other bottlenecks, striped files, waiting
for a recovery, and which assumptions matter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable

from experiments.report import table

from . import pictures
from .figure import ALGORITHMS, Cell, Figure
from .paper import (
    BOTH_LINKS, CODES, DEFAULT, EXTREME, HETEROGENEOUS, JOBS, RUNTIME, SHUFFLES, of_links)
from .pictures import Panel
from .scenarios import Setting
from .summary import Row, Rows, find, mean, normalized

SCHEMES = ("conventional", "ppr", "rp", "rp-rack", "rp-weighted", "rp-all")
LINK_RATES = (100.0, 250.0, 500.0, 1000.0, 2500.0, 10000.0)
FEW_SCHEMES = ("conventional", "rp", "rp-rack")
DELAYS = (0.0, 60.0, 120.0, 300.0, 600.0)
RECOVERY_RATES = (50.0, 200.0)  # MB/s
SEEDS = 4
Change = tuple[str, dict[str, Any]]


def scheme_cells(bottleneck: str) -> tuple[Cell, ...]:
    def setting(scheme: str, links: str, rate: float) -> Setting:
        rates = {"rack_mbit": rate, "node_mbit": 0.0} if bottleneck == "racks" else {
            "rack_mbit": 0.0, "node_mbit": rate}
        return replace(DEFAULT, scheme=scheme, links=links, **rates)
    return tuple(Cell({"links": links, "scheme": scheme, "mbit": rate},
                      setting(scheme, links, rate))
                 for links in BOTH_LINKS for scheme in SCHEMES for rate in LINK_RATES)


def scheme_panels(x_label: str) -> Callable[[Rows], list[Panel]]:
    def panels(rows: Rows) -> list[Panel]:
        return [pictures.lines([row for row in of_links(rows, links)
                                if row["algorithm"] == algorithm],
                               f"{algorithm}, links {links}", "mbit", x_label, RUNTIME, normalized,
                               "scheme")
                for links in BOTH_LINKS for algorithm in ALGORITHMS]
    return panels


def scheme_table(rows: Rows) -> list[str]:
    """Runtime over the healthy one: LF / BDF / EDF."""
    lines: list[str] = []
    for links in BOTH_LINKS:
        some = of_links(rows, links)
        rates = list(dict.fromkeys(row["mbit"] for row in some))
        lines += [f"LF / BDF / EDF, links {links}:", "", *table(
            ["scheme", *(f"{rate:g} Mb/s" for rate in rates)],
            [[scheme, *(three(some, scheme=scheme, mbit=rate) for rate in rates)]
             for scheme in SCHEMES])]
    return lines


def three(rows: Rows, **names: Any) -> str:
    return " / ".join(f"{mean(find(rows, algorithm=algorithm, **names)):.2f}"
                      for algorithm in ALGORITHMS)


# ---- the paper's figures with each scheme ----

def variants() -> dict[str, Setting]:
    """The settings of Figures 7 and 8 that are not the default one."""
    return {**{f"({n},{k})": replace(DEFAULT, n=n, k=k) for n, k in CODES},
            "720 blocks": replace(DEFAULT, blocks=720),
            "2880 blocks": replace(DEFAULT, blocks=2880),
            "two nodes": replace(DEFAULT, failure="two nodes"),
            "rack": replace(DEFAULT, failure="rack"),
            **{f"shuffle {share * 100:g} %": replace(DEFAULT, shuffle=share)
               for share in SHUFFLES[2::2]},
            "heterogeneous": HETEROGENEOUS, "extreme": EXTREME,
            TEN_JOBS: replace(DEFAULT, jobs=JOBS)}


TEN_JOBS = "ten jobs"


def variants_of(links: str) -> dict[str, Setting]:
    """Ten jobs take ten times as long to simulate, and so are there once."""
    return {name: setting for name, setting in variants().items()
            if name != TEN_JOBS or links == BOTH_LINKS[0]}


def variant_cells() -> tuple[Cell, ...]:
    return tuple(Cell({"links": links, "scheme": scheme, "variant": name},
                      replace(setting, scheme=scheme, links=links))
                 for links in BOTH_LINKS for name, setting in variants_of(links).items()
                 for scheme in SCHEMES)


def all_jobs(row: Row) -> float:
    values = [value for jobs in row["normalized"] for value in jobs]
    return sum(values) / len(values)


def rows_of(rows: Rows, variant: str, scheme: str) -> list[Row]:
    return [find(rows, variant=variant, scheme=scheme, algorithm=algorithm)
            for algorithm in ALGORITHMS]


def variant_table(rows: Rows) -> list[str]:
    lines: list[str] = []
    for links in BOTH_LINKS:
        some = of_links(rows, links)
        lines += [f"LF / BDF / EDF, links {links}:", "", *table(["", *SCHEMES], [
            [name, *(" / ".join(f"{all_jobs(row):.2f}" for row in rows_of(some, name, scheme))
                     for scheme in SCHEMES)]
            for name in variants_of(links)])]
    return lines


def variant_panels(rows: Rows) -> list[Panel]:
    """What pipelining is worth under stock Hadoop's scheduler, and EDF under each scheme. A lost
    rack is too far off for an axis that shows the others."""
    some = of_links(rows, "held")
    names = [name for name in variants_of("held") if name != "rack"]
    return [{"title": f"{algorithm}, links held (a lost rack: see the table)", "x_label": RUNTIME,
             "y_label": "", "groups": names, "series": [
                 {"label": scheme, "dots": [all_jobs(find(
                     some, variant=name, scheme=scheme, algorithm=algorithm)) for name in names]}
                 for scheme in SCHEMES]} for algorithm in ("LF", "EDF")]


# ---- striped files ----

STRIPED_READS = (("whole", 15), ("5 of 15 shares", 5), ("1 of 15 shares", 1))
SPLITS = 450
STRIPED_RATES = (1000.0, 10000.0)


def striped_cells() -> tuple[Cell, ...]:
    # Few blocks: shared links with many streams for each of 160 tasks are slow to simulate. As many
    # rounds of map tasks with a node less.
    return tuple(Cell({"links": links, "scheme": scheme, "read": read, "mbit": rate},
                      replace(DEFAULT, striped_parts=parts, scheme=scheme, links=links,
                              rack_mbit=rate, blocks=SPLITS))
                 for links in BOTH_LINKS for rate in STRIPED_RATES
                 for read, parts in STRIPED_READS for scheme in FEW_SCHEMES)


def striped_table(rows: Rows) -> list[str]:
    lines: list[str] = []
    for links in BOTH_LINKS:
        some = of_links(rows, links)
        lines += [f"LF / BDF / EDF, and GB that all reads put on racks' links, links {links}:", "",
                  *table(["racks' links, read", *FEW_SCHEMES], [
                      [f"{rate:g} Mb/s, {read}", *(
                          three(some, scheme=scheme, read=read, mbit=rate)
                          + f"; {gigabytes(some, scheme=scheme, read=read, mbit=rate):.1f}"
                          for scheme in FEW_SCHEMES)]
                      for rate in STRIPED_RATES for read, _ in STRIPED_READS])]
    return lines


def gigabytes(rows: Rows, **names: Any) -> float:
    return find(rows, algorithm="LF", **names)["crossing_bytes"] / 1e9


def striped_panels(rows: Rows) -> list[Panel]:
    return [pictures.boxes([row for row in of_links(rows, "held")
                            if (row["mbit"], row["scheme"]) == (rate, scheme)],
                           f"{scheme}, racks' links {rate:g} Mb/s, held", "read",
                           "what a task reads", RUNTIME, normalized)
            for rate in STRIPED_RATES for scheme in FEW_SCHEMES]


# ---- waiting for a recovery ----

def waiting_cells() -> tuple[Cell, ...]:
    return tuple(Cell({"links": links, "scheme": scheme, "mbit": rate, "recovery_mb": recovery,
                       "delay": delay, "waits": waits},
                      replace(DEFAULT, links=links, scheme=scheme, rack_mbit=rate,
                              recovery_mb=recovery, recovery_delay=delay, waits=waits),
                      ("LF",) if waits else ("LF", "EDF"))
                 for links in BOTH_LINKS for scheme in ("conventional", "rp-rack")
                 for rate in (250.0, 1000.0) for recovery in RECOVERY_RATES
                 for delay in DELAYS for waits in (False, True))


def waiting_table(rows: Rows) -> list[str]:
    lines: list[str] = []
    for links in BOTH_LINKS:
        body = []
        for scheme in ("conventional", "rp-rack"):
            for rate in (250.0, 1000.0):
                for recovery in RECOVERY_RATES:
                    some = [row for row in of_links(rows, links) if (
                        row["scheme"], row["mbit"], row["recovery_mb"]) == (scheme, rate, recovery)]
                    body.append([f"{scheme}, racks {rate:g} Mb/s, {recovery:g} MB/s", *(
                        read_or_wait(some, delay) for delay in DELAYS)])
        lines += [f"LF / EDF that read degraded, and who waits; links {links}. The least is bold:",
                  "", *table(["", *(f"{delay:g} s" for delay in DELAYS)], body)]
    return lines


def read_or_wait(rows: Rows, delay: float) -> str:
    def of(algorithm: str, waits: bool) -> float:
        return mean(find(rows, delay=delay, algorithm=algorithm, waits=waits))
    values = [of("LF", False), of("EDF", False), of("LF", True)]
    return " / ".join(f"**{value:.2f}**" if value == min(values) else f"{value:.2f}"
                      for value in values)


def waiting_panels(rows: Rows) -> list[Panel]:
    def named(row: Row) -> Row:
        return {**row, "who": "waits" if row["waits"] else f"{row['algorithm']}, reads"}
    return [pictures.lines([named(row) for row in of_links(rows, "held") if (
        row["scheme"], row["mbit"], row["recovery_mb"]) == (scheme, rate, 50.0)
        and not (row["waits"] and row["algorithm"] == "EDF")],
        f"{scheme}, racks {rate:g} Mb/s, held", "delay", "seconds until the recovery begins",
        RUNTIME, normalized, "who") for scheme in ("conventional", "rp-rack")
        for rate in (250.0, 1000.0)]


# ---- sensitivity ----

SENSITIVITY: tuple[Change, ...] = (
    ("the default", {}), ("heartbeat 1 s", {"heartbeat": 1.0}),
    ("heartbeat 10 s", {"heartbeat": 10.0}),
    ("map tasks spread by 20 %", {"map_spread": 0.2}),
    ("map tasks spread by 50 %", {"map_spread": 0.5}),
    ("t_s wrong by up to a half", {"misjudged": 0.5}))


def sensitivity_cells() -> tuple[Cell, ...]:
    return tuple(Cell({"links": links, "scheme": scheme, "cluster": cluster, "change": name},
                      replace(base, links=links, scheme=scheme, **change))
                 for links in BOTH_LINKS for scheme in ("conventional", "rp-rack")
                 for cluster, base in (("homogeneous", DEFAULT),
                                       ("heterogeneous", HETEROGENEOUS))
                 for name, change in SENSITIVITY)


def sensitivity_table(rows: Rows) -> list[str]:
    lines: list[str] = []
    columns = [(scheme, cluster) for scheme in ("conventional", "rp-rack")
               for cluster in ("homogeneous", "heterogeneous")]
    for links in BOTH_LINKS:
        some = of_links(rows, links)
        lines += [f"LF / BDF / EDF, links {links}:", "", *table(
            ["", *(f"{scheme}, {cluster}" for scheme, cluster in columns)],
            [[name, *(three(some, scheme=scheme, cluster=cluster, change=name)
                      for scheme, cluster in columns)] for name, _ in SENSITIVITY])]
    return lines


def sensitivity_panels(rows: Rows) -> list[Panel]:
    return [pictures.boxes([row for row in of_links(rows, "held")
                            if row["scheme"] == scheme and row["cluster"] == cluster],
                           f"{scheme}, {cluster}", "change", "", RUNTIME, normalized)
            for scheme in ("conventional", "rp-rack")
            for cluster in ("homogeneous", "heterogeneous")]


# ---- EDF's threshold ----

# The paper's is a conventional read, (R-1)k/R blocks through a rack's link; the other one a block.
THRESHOLDS = (("a conventional read", 1.0), ("one block", 4 / (3 * 15)))
LOST = ("node", "rack")


def threshold_cells() -> tuple[Cell, ...]:
    return tuple(Cell({"links": links, "scheme": scheme, "lost": lost, "threshold": name},
                      replace(DEFAULT, links=links, scheme=scheme, failure=lost,
                              threshold_share=share),
                      ALGORITHMS if share == 1.0 else ("EDF",))
                 for links in BOTH_LINKS for scheme in ("conventional", "rp-rack")
                 for lost in LOST for name, share in THRESHOLDS)


def threshold_values(rows: Rows, **names: Any) -> list[tuple[str, Row]]:
    paper, block = (name for name, _ in THRESHOLDS)
    return [("LF", find(rows, algorithm="LF", **names)),
            ("BDF", find(rows, algorithm="BDF", **names)),
            (f"EDF, {paper}", find(rows, algorithm="EDF", threshold=paper, **names)),
            (f"EDF, {block}", find(rows, algorithm="EDF", threshold=block, **names))]


def threshold_table(rows: Rows) -> list[str]:
    body = []
    for links in BOTH_LINKS:
        for scheme in ("conventional", "rp-rack"):
            for lost in LOST:
                values = threshold_values(rows, links=links, scheme=scheme, lost=lost)
                body.append([f"{scheme}, a {lost} lost, links {links}",
                             *(f"{mean(row):.2f}" for _, row in values)])
    return table(["EDF's threshold", *(name for name, _ in values)], body)


def threshold_panels(rows: Rows) -> list[Panel]:
    return [pictures.boxes([{**row, "who": name} for scheme in ("conventional", "rp-rack")
                            for name, row in threshold_values(rows, links=links, scheme=scheme,
                                                              lost=lost)],
                           f"a {lost} lost, links {links}", "scheme", "scheme", RUNTIME,
                           normalized, "who") for lost in LOST for links in BOTH_LINKS]


# ---- map tasks only ----

# What a prototype of 90 lines, without shuffle and reduce tasks, gave: LF / BDF / EDF.
PROTOTYPE = {
    ("conventional", 1000.0): "1.69 / 1.10 / 1.09", ("conventional", 250.0): "3.34 / 2.48 / 2.18",
    ("rp-rack", 1000.0): "1.18 / 1.06 / 1.06", ("rp-rack", 250.0): "1.55 / 1.05 / 1.06",
    ("rp", 1000.0): "1.58 / 1.06 / 1.06", ("rp", 250.0): "2.97 / 2.20 / 2.17"}


def map_only_cells() -> tuple[Cell, ...]:
    return tuple(Cell({"links": links, "scheme": scheme, "mbit": rate},
                      replace(DEFAULT, links=links, scheme=scheme, rack_mbit=rate, reduces=0))
                 for links in BOTH_LINKS for scheme, rate in PROTOTYPE)


def map_only_table(rows: Rows) -> list[str]:
    return ["LF / BDF / EDF:", "", *table(
        ["", "a prototype", *(f"links {links}" for links in BOTH_LINKS)],
        [[f"{scheme}, racks {rate:g} Mb/s", said, *(
            three(of_links(rows, links), scheme=scheme, mbit=rate) for links in BOTH_LINKS)]
         for (scheme, rate), said in PROTOTYPE.items()])]


def map_only_panels(rows: Rows) -> list[Panel]:
    return [pictures.boxes([row for row in of_links(rows, links) if row["mbit"] == rate],
                           f"racks {rate:g} Mb/s, links {links}", "scheme", "scheme", RUNTIME,
                           normalized) for links in BOTH_LINKS for rate in (1000.0, 250.0)]


FIGURES = (
    Figure("map-only", "Pipelined degraded reads, map tasks only", map_only_cells(),
           map_only_panels, tables=(map_only_table,), columns=2, setting="(20,15)"),
    Figure("racks", "Each scheme where racks' links are the bottleneck", scheme_cells("racks"),
           scheme_panels("Mb/s of a rack's link"), tables=(scheme_table,), seeds=SEEDS,
           setting="(20,15), nodes' links without limit"),
    Figure("nics", "Each scheme where nodes' links are the bottleneck", scheme_cells("nodes"),
           scheme_panels("Mb/s of a node's link"), tables=(scheme_table,), seeds=SEEDS,
           setting="(20,15), racks' links without limit"),
    Figure("schemes", "The paper's settings with each scheme", variant_cells(), variant_panels,
           tables=(variant_table,), seeds=SEEDS, setting="racks' links of 1 Gb/s", columns=2),
    Figure("striped", "Striped files", striped_cells(), striped_panels, tables=(striped_table,),
           seeds=SEEDS, setting="450 splits of 128 MB over stripes of (20,15)"),
    Figure("waiting", "Wait for the recovery of a block, or read it degraded", waiting_cells(),
           waiting_panels, tables=(waiting_table,), seeds=SEEDS, columns=2,
           setting="a recovery of the lost node at a set rate, begun so long after the job"),
    Figure("threshold", "EDF's threshold", threshold_cells(), threshold_panels,
           tables=(threshold_table,), seeds=SEEDS, columns=2, setting="racks' links of 1 Gb/s"),
    Figure("sensitivity", "Sensitivity", sensitivity_cells(), sensitivity_panels,
           tables=(sensitivity_table,), seeds=SEEDS, columns=2),
)
