# SPDX-License-Identifier: Apache-2.0
"""The figure of durability: codes, placements and schemes, and what each input changes."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any, Mapping, Sequence

from experiments.report import table
from labkit.process import LabError

from .durability import TERABYTE, YEAR, Code, Scheme, Setting, mean_time, nines, played, steps
from .pictures import Panel
from .planner import Planner

NAME, COMMAND, TITLE = "durability", "durability", "Durability"
SENSITIVE_CODE = "rs(14,10)"
COLUMNS = 4  # of the picture
# (name for our codec, n, k, failures it may survive, blocks in a rack)
CODES = (("rs(3,1)", 3, 1, 2, 1), ("rs(9,6)", 9, 6, 3, 3), ("rs(14,10)", 14, 10, 4, 4),
         ("rs(20,15)", 20, 15, 5, 5), ("lrc(12,2,2)", 16, 12, 4, 2))
# Six data blocks and their parity; global parities are in no group. A test asks the codec.
GROUPS = {"lrc(12,2,2)": (0b0001_000000_111111, 0b0010_111111_000000)}
SHOWN = {"rs(3,1)": "3 replicas"}
# Each input by itself, the others as they are.
AXES: dict[str, tuple[str, tuple[float, ...], float]] = {
    "detection": ("detection, s", (0, 5, 30, 120, 600), 1.0),
    "delay": ("delay window, s", (0, 60, 300, 600, 3600), 1.0),
    "nodes": ("nodes", (30, 100, 300, 1000, 3000), 1),
    "node_bytes": ("TB a node", (1, 3, 10, 30, 100), TERABYTE),
    "link_rate": ("MB/s of each node's link for repairs", (6.25, 25, 62.5, 125, 1250), 1e6),
    "node_mttf": ("years to the loss of a node", (1, 2, 4, 10), YEAR),
    "rack_mttf": ("years to the loss of a rack", (10, 50, 200, math.inf), YEAR)}
# Losses have to be frequent to be played: nodes that last hours.
PLAYED = Setting(nodes=40, node_mttf=8000.0, rack_mttf=80000.0, node_bytes=TERABYTE)
PLAYED_STRIPES = 1000
PLAYED_SEED = 1


def schemes(lab_results: Path) -> tuple[Scheme, Scheme]:
    """Conventional and RP, as the lab has measured them: degraded reads in Figure 8(c) of its
    page, recoveries over all nodes in Figure 8(e)."""
    try:
        reads = json.loads((lab_results / "8c.json").read_text())["rows"]
        recoveries = json.loads((lab_results / "8e.json").read_text())["rows"]
        bound = {row["scheme"]: row["of_bound"] for row in recoveries if "of_bound" in row}
        of_bound = bound["conventional xall"], bound["rp-balanced xall"]
    except (OSError, ValueError, KeyError) as error:
        raise LabError(f"{lab_results} has no figures of the lab ({error}); `bench/lab.py all "
                       "--quick` makes them") from None
    slow = statistics.mean(row["ratio_to_direct"] / k_of(row["parameters"]["code"])
                           for row in reads if row["scheme"].startswith("conventional"))
    fast = statistics.mean(row["ratio_to_direct"] for row in reads
                           if row["scheme"].split(" ")[0] == "rp")
    return (Scheme("conventional", lambda count: slow * count, of_bound[0]),
            Scheme("rp", lambda count: fast if count > 1 else 1.0, of_bound[1]))


def k_of(code: str) -> int:
    """Of "rs(14,10)"."""
    return int(code.rstrip(")").split(",")[1])


def codes(planner: Planner) -> list[tuple[Code, int]]:
    """With the most blocks that a rack may have."""
    return [(Code(name, n, k, tolerates, planner.undecodable(name, tolerates),
                  GROUPS.get(name, ())), rack_blocks)
            for name, n, k, tolerates, rack_blocks in CODES]


def results(planner: Planner, lab_results: Path) -> dict[str, Any]:
    known, both = codes(planner), schemes(lab_results)
    rows = [dict(row, axis="code") for row in code_rows(known, both)]
    code, rack_blocks = next((code, blocks) for code, blocks in known
                             if code.name == SENSITIVE_CODE)
    for axis, (_, values, unit) in AXES.items():
        for blocks in (1, rack_blocks):
            step = steps(code, blocks)
            for value in values:
                setting = replace(Setting(rack_blocks=blocks), **{axis: value * unit})
                rows += [{"axis": axis, "value": "never" if math.isinf(value) else value,
                          "placement": placement(blocks), "code": code.name,
                          "scheme": scheme.name,
                          "nines": nines(mean_time(setting, code, scheme, step))}
                         for scheme in both]
    return {"seeds": [PLAYED_SEED], "parameters": {
        "schemes": {scheme.name: {"timeslots_of_10": scheme.timeslots(10),
                                  "of_bound": scheme.of_bound} for scheme in both},
        "undecodable_patterns": {code.name: len(code.undecodable) for code, _ in known}},
        "rows": rows, "played": played_rows(known, both)}


def placement(rack_blocks: int) -> str:
    return "flat" if rack_blocks == 1 else "racks"


def code_rows(known: Sequence[tuple[Code, int]], both: Sequence[Scheme]) -> list[dict[str, Any]]:
    rows = []
    for code, rack_blocks in known:
        for blocks in dict.fromkeys((1, rack_blocks)):
            step = steps(code, blocks)
            for scheme in both:
                seconds = mean_time(Setting(rack_blocks=blocks), code, scheme, step)
                rows.append({"value": SHOWN.get(code.name, code.name), "code": code.name,
                             "placement": placement(blocks), "scheme": scheme.name,
                             "mttdl_years": seconds / YEAR, "nines": nines(seconds)})
    return rows


def played_rows(known: Sequence[tuple[Code, int]], both: Sequence[Scheme]) -> list[dict[str, Any]]:
    """The chain against Monte Carlo, where losses are frequent."""
    rows = []
    for code, rack_blocks in known:
        for blocks in dict.fromkeys((1, rack_blocks)):
            setting = replace(PLAYED, rack_blocks=blocks)
            times = played(setting, code, both[0], PLAYED_STRIPES, PLAYED_SEED)
            rows.append({"code": SHOWN.get(code.name, code.name), "placement": placement(blocks),
                         "chain_hours": mean_time(setting, code, both[0]) / 3600,
                         "played_hours": statistics.mean(times) / 3600,
                         "error_hours": statistics.stdev(times) / len(times) ** 0.5 / 3600})
    return rows


def pick(rows: Sequence[Mapping[str, Any]], **names: Any) -> float:
    return next(row["nines"] for row in rows
                if all(row[name] == value for name, value in names.items()))


def panels(data: Mapping[str, Any]) -> list[Panel]:
    """Of racks only what decides there; the table has the rest."""
    found = []
    for axis, place in (*((axis, "flat") for axis in AXES), ("rack_mttf", "racks")):
        rows = [row for row in data["rows"] if row["axis"] == axis]
        groups = list(dict.fromkeys(row["value"] for row in rows))
        found.append({
            "title": f"{SENSITIVE_CODE}, {place}", "x_label": AXES[axis][0],
            "y_label": f"nines a year, {place}", "linear": True,
            "groups": [value if isinstance(value, str) else f"{value:g}" for value in groups],
            "series": [{"label": scheme, "points": [
                pick(rows, value=value, scheme=scheme, placement=place) for value in groups]}
                       for scheme in ("conventional", "rp")]})
    return found


def page_lines(data: Mapping[str, Any]) -> list[str]:
    return [INTRODUCTION.format(**{f"{name}_{field}": value for name, fields in
                                   data["parameters"]["schemes"].items()
                                   for field, value in fields.items()}),
            *sensitivity_table(data), *code_table(data), *played_table(data)]


def sensitivity_table(data: Mapping[str, Any]) -> list[str]:
    lines = [f"Nines of one stripe of {SENSITIVE_CODE} in a year, conventional / RP:", ""]
    for axis, (label, _, _) in AXES.items():
        rows = [row for row in data["rows"] if row["axis"] == axis]
        values = list(dict.fromkeys(row["value"] for row in rows))
        lines += table([label, *(value if isinstance(value, str) else f"{value:g}"
                                 for value in values)],
                       [[place, *(two(rows, value=value, placement=place) for value in values)]
                        for place in ("flat", "racks")])
    return lines


def two(rows: Sequence[Mapping[str, Any]], **names: Any) -> str:
    return " / ".join(f"{pick(rows, scheme=scheme, **names):.1f}"
                      for scheme in ("conventional", "rp"))


def code_table(data: Mapping[str, Any]) -> list[str]:
    rows = [row for row in data["rows"] if row["axis"] == "code"]
    lost = data["parameters"]["undecodable_patterns"]
    body = []
    for row in rows:
        if row["scheme"] == "rp":
            continue
        same = {"code": row["code"], "placement": row["placement"]}
        body.append([row["value"], row["placement"], str(lost[row["code"]]),
                     f"{pick(rows, scheme='conventional', **same):.1f}",
                     f"{pick(rows, scheme='rp', **same):.1f}",
                     f"{pick(rows, scheme='rp', **same) - row['nines']:+.2f}"])
    return ["All codes, with the default inputs:", "", *table(
        ["code", "placement", "patterns that do not decode", "conventional", "RP",
         "RP gains, nines"], body)]


def played_table(data: Mapping[str, Any]) -> list[str]:
    worst = max(abs(row["chain_hours"] - row["played_hours"]) / row["error_hours"]
                for row in data["played"])
    said = ("The chain against Monte Carlo, where nodes last two hours and racks twenty. The "
            f"largest difference is {worst:.1f} standard errors:")
    return [said, "", *table(
        ["code", "placement", "chain, hours to loss", "played", "standard error"],
        [[row["code"], row["placement"], f"{row['chain_hours']:.4g}", f"{row['played_hours']:.4g}",
          f"{row['error_hours']:.2g}"] for row in data["played"]])]


INTRODUCTION = """A Markov chain over the number of lost blocks of one stripe. Patterns that do not
decode are counted by asking our codec for each. Repair rates are the lab's (Figures 8(c)-(e) of
[RESULTS.md](RESULTS.md)): a degraded read of ten blocks takes {conventional_timeslots_of_10:.2f}
direct sends the conventional way and {rp_timeslots_of_10:.2f} by RP; a recovery over all nodes
reaches {conventional_of_bound:.2f} and {rp_of_bound:.2f} of what the links allow. 100 nodes of
10 TB in ten racks, 500 Mb/s of each for repairs, a node lost in four years, a rack with its blocks
in fifty, 30 s until a loss is noticed, 600 s until stripes that have lost one block are begun.
A repair of LRC reads six blocks where a local group has lost one, else twelve. *flat*: no two
blocks of a stripe in one rack; *racks*: as many as the code survives (LRC: two). For a million
stripes take six nines off.

A recovery moves k blocks for each block, over all nodes, under either scheme. RP loads the links
more evenly: the lab's conventional recovery takes requestors in order, and some links carry far
more than their part. Beyond that RP gains where little is waited for but the read itself: stripes
that have lost two blocks or more, in clusters so large that two nodes share few stripes, noticed
early.
"""
