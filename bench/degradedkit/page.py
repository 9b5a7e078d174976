# SPDX-License-Identifier: Apache-2.0
"""bench/DEGRADED.md, from results."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any, Mapping, Sequence

from experiments.report import table
from labkit.process import LabError

from . import analysis, assumptions, beyond, lasting, output, paper
from .figure import TOLERANCE, Comparison, Figure
from .notes import NOTES, of_kinds_of_links
from .paper import of_links, ways_of

FIGURES = (*paper.FIGURES, assumptions.FIGURE, *beyond.FIGURES)
MOST_SECONDS = 600.0
INTRODUCTION = """# Map tasks whose block is lost

Written by `bench/degraded.py report` from `{link}`; do not edit. `bench/degraded.py all` makes the
results anew, in minutes on one core.

The paper is Li, Lee and Hu, "Degraded-First Scheduling for MapReduce in Erasure-Coded Storage
Clusters" (DSN'14). Its numbers are quoted from its text; curves that it only draws are not read
off. Everything here is computed or simulated; nothing is measured on a network. How the simulator
works, and who should use what:
[docs/design/014-degraded-first.md](../docs/design/014-degraded-first.md).

- **LF, BDF, EDF**: locality first (stock Hadoop), basic and enhanced degraded first.
- **links held**: a rack's up- and downlink serve one read after another, as in the paper.
  **shared**: max-min, as TCP's streams share. Only racks' links have a limit, unless a section says
  otherwise.
- **at once**: all slaves send their first heartbeat at the beginning, in the order of their
  numbers. The paper does not say when they do; this comes nearest to its numbers. Elsewhere each
  slave has a time of its own.
- A read's bytes on each link come from a plan of ECPipe's own planners, in the conventional way
  too.
- **runtime, by that without failure**: of each seed's own cluster. Tables have means over seeds,
  boxes are Tukey's.
- Of a difference from the paper of more than four points the assumption is named that, changed by
  itself, brings ours nearest: what it changes in the clusters of "Changing one assumption", added
  to ours. Of so many changes one may come near by chance.
- Unless a section says otherwise: 40 nodes in four racks, 1 Gb/s, (20,15), blocks of 128 MB, 1440
  map tasks of 20 s, four map slots, 30 reduce tasks of 30 s, one node lost.
"""


def write(results: Path, page: Path, link: str) -> None:
    page.write_text(render(results, link))


def load(results: Path, name: str) -> Mapping[str, Any] | None:
    file = results / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def load_all(results: Path) -> dict[str, Mapping[str, Any]]:
    """What there is, by name."""
    names = (*(figure.name for figure in FIGURES), lasting.NAME)
    return {name: data for name in names if (data := load(results, name))}


def render(results: Path, link: str) -> str:
    found = load_all(results)
    if not found:
        raise LabError(f"no results in {results}: `bench/degraded.py all` makes them")
    costs = load(results, output.COSTS)
    parts = [INTRODUCTION.format(link=link),
             "\n".join([f"## {analysis.TITLE}", "", f"    degraded.py {analysis.COMMAND}", "",
                        f"![5]({link}/5.png)", "", *analysis.page_lines()])]
    for figure in FIGURES:
        parts.append(section(figure, found, link) if figure.name in found
                     else f"## {figure.title}\n\nNot in these results.\n")
    if data := found.get(lasting.NAME):
        parts.append("\n".join([f"## {lasting.TITLE}", "", f"    degraded.py {lasting.COMMAND}",
                                "", f"![{lasting.NAME}]({link}/{lasting.NAME}.png)", "",
                                *lasting.page_lines(data)]))
    if all(name in found for name in ("7a", "7f", "waiting")):
        parts.append("\n".join(["## Where the kind of links matters", "",
                                *wrapped(of_kinds_of_links(found)), ""]))
    if costs:
        parts.append(cost_section(costs))
    return "\n".join(parts)


def section(figure: Figure, results: Mapping[str, Any], link: str) -> str:
    """`results`: by the figure's name; this one, and assumptions for causes."""
    data = results[figure.name]
    lines = [f"## {figure.title}", "", f"    degraded.py simulate --figures {figure.name}", "",
             f"![{figure.name}]({link}/{figure.name}.png)", ""]
    lines += [f"{len(data['seeds'])} seeds.", ""]
    if figure.setting:
        lines += [figure.setting[0].upper() + figure.setting[1:] + ".", ""]
    if figure.comparisons:
        causes = results.get(assumptions.FIGURE.name, {"rows": []})["rows"]
        lines += comparison_table(figure.comparisons, data["rows"], causes)
    for text in figure.tables:
        lines += text(data["rows"])
    if note := NOTES.get(figure.name):
        lines += [*wrapped(note(data["rows"])), ""]
    return "\n".join(lines)


def wrapped(text: str) -> list[str]:
    """Names of schemes have hyphens, and are not to be broken at them."""
    return textwrap.wrap(" ".join(text.split()), 100, break_on_hyphens=False,
                         break_long_words=False)


def comparison_table(comparisons: Sequence[Comparison], rows: Sequence[Mapping[str, Any]],
                     causes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Differences are those of the first way, which is the nearest to the paper's."""
    body, ways = [], ways_of(rows)
    for each in comparisons:
        ours = {way: each.ours(of_links(rows, way), each.where) for way in ways}
        first = ours[ways[0]]
        far = each.distance(first) > TOLERANCE
        body.append([each.what, percents(each.paper), *(percents(ours[way]) for way in ways),
                     ", ".join(f"{value - paper_s:+.1f}"
                               for value, paper_s in zip(first, each.paper)),
                     assumptions.cause(each, causes, ours) if far else ""])
    return table(["percent", "the paper", *(f"links {way}" for way in ways),
                  f"{ways[0]}: points from the paper",
                  "if too far: which one changed assumption brings it nearest"], body)


def percents(values: Sequence[float]) -> str:
    return " to ".join(f"{value:.1f}" for value in values)


def cost_section(costs: Mapping[str, Any]) -> str:
    """`costs`: of output.write_cost()."""
    seconds, runs = (sum(cost[field] for cost in costs.values()) for field in ("cpu_s", "runs"))
    simulated = sum(cost["cpu_s"] for cost in costs.values() if cost["runs"])
    missing = [figure.name for figure in FIGURES if figure.name not in costs]
    verdict = (f"Not measured in these results: {', '.join(missing)}." if missing else
               f"{'Within' if seconds < MOST_SECONDS else 'More than'} the goal of ten minutes.")
    return "\n".join(["## What the figures cost", "", *wrapped(
        f"CPU time of one core, planner and pictures included; a figure has for nothing what an "
        f"earlier one has run. Together: {seconds:.0f} s for {runs} runs, "
        f"{1000 * simulated / runs:.0f} ms a run. {verdict}"), "", *table(
            ["figure", "CPU, s", "runs"], [[name, f"{cost['cpu_s']:.1f}", str(cost["runs"])]
                                           for name, cost in costs.items()])])
