# SPDX-License-Identifier: Apache-2.0
"""The command `report`: a page of what the paper has and what we measured, from results in JSON."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any, Sequence

from labkit.process import LabError
from labkit.stripes import MIB
from .explain import TOLERANCE, misses, why
from .figures import Figure
from .paper import FIGURES
from .views import VIEWS, Row

NAME = "report"
INTRODUCTION = """# The paper's evaluation, measured on one machine

Written by `bench/lab.py report` from `{results}`; do not edit. The paper is Li et al., "Repair
Pipelining for Erasure-Coded Storage: Algorithms and Evaluation"; its numbers are quoted from its
text, curves that it only draws are not read off.

Every node is a network namespace of one machine ({machine}),
with the real daemons and shaped links. At the paper's 1 Gb/s two cores would be busier than the
links of fourteen hops, so our links are slower than the paper's, and in some figures our blocks are
smaller. Each section has its command. Compare ratios, not seconds. Every run first sends one block
directly over the same links.

- **x direct**: the median time of a scheme, divided by the median time of the direct sends.
- **theory**: the time of the busiest link of the scheme's own plan, plus the filling of the
  pipeline (§2.2, §3.2, §4), divided by the time of the direct send's link. For a recovery it is the
  bound, and for a recovery that forwards whole blocks the time of a simulation. There is none for
  `pipe-s`, and none where links are not shaped.
- **diff.**: how far we are from theory, the median over runs.
- **bound s**: the time that no plan can beat, because of the links into the requestor; for a
  recovery, because of the links of all survivors and requestors.
- **CPU s**: the CPU time of all daemons and the command. **cores**: how many cores were busy
  meanwhile, with everything else that the machine did.
- **busiest, all links**: bytes over the busiest link, and over all links, with frame headers.

In the plots points and bars are medians. Thin lines reach from the fastest to the slowest run.
Dashed is theory, or in plots of a recovery's rate what the links allow.
"""
TABLE_1 = """## Table 1: links of Amazon EC2

Not a result but a setting: `bench/experiments/matrices/north-america.txt` and `asia.txt` have it,
and Figures 9(a) and 9(b) below are measured on links with these rates.
"""


def add_arguments(parser: argparse.ArgumentParser, results: Path, page: Path) -> None:
    parser.add_argument("--results", type=Path, default=results,
                        help="directory of the results (default: %(default)s)")
    parser.add_argument("--page", type=Path, default=page, help="page to write "
                        "(default: %(default)s)")


def write(results: Path, page: Path) -> None:
    page.write_text(render(results, os.path.relpath(results, page.parent)))


def render(results: Path, link: str) -> str:
    """`link` leads from the page to the results. Figures without results are named."""
    found = {figure.name: json.loads(file.read_text()) for figure in FIGURES
             if (file := results / f"{figure.name}.json").exists()}
    if not found:
        raise LabError(f"no results in {results}: `bench/lab.py all --quick` makes them")
    parts = [INTRODUCTION.format(results=link, machine=machine_text(next(iter(found.values()))))]
    for figure in FIGURES:
        if figure.name == "9a":
            parts.append(TABLE_1)
        parts.append(section(figure, found[figure.name], link) if figure.name in found
                     else f"## {figure.title}\n\nNot measured in these results.\n")
    return "\n".join(parts)


def machine_text(data: dict[str, Any]) -> str:
    machine = data["machine"]
    return (f"{machine['cores']} cores, {machine['cpu']}, Linux {machine['kernel']}, "
            f"{machine['memory_bytes'] / 2**30:.0f} GiB")


def section(figure: Figure, data: dict[str, Any], link: str) -> str:
    rows, cores = data["rows"], data["machine"]["cores"]
    lines = [f"## {figure.title}", "", told(figure), "",
             *(f"    lab.py {command}" for command in data["commands"]), "",
             *(f"![{name}]({link}/{name}.png)" for name in [
                 figure.name, *(name for name, _, _ in figure.more_views)]), ""]
    if figure.comparisons:
        lines += table(["", "paper", "ours"], [
            [each.what, each.paper, each.ours(rows) or "-"] for each in figure.comparisons])
    if figure.notes:
        lines += [figure.notes, ""]
    lines += row_table(figure, rows)
    lines += explanations(figure, rows, cores)
    lines += [f"Revision {data['commit']}; took {data['took_s']:.0f} s.", ""]
    return "\n".join(lines)


def told(figure: Figure) -> str:
    return (f"The paper ({figure.source}): {figure.setting}." if figure.source
            else f"Not in the paper: {figure.setting}.")


def row_name(figure: Figure, row: Row) -> str:
    view = VIEWS[row["experiment"]]
    value = row["parameters"].get(view.x)
    names = [row["scheme"]]
    if row["parameters"]["transport"] != "tcp":
        names.append(row["parameters"]["transport"])
    if value is not None and view.x not in ("failed", "requestors"):
        names.append(view.x_text(value) + (" " + view.x_label.split("(")[1].rstrip(")")
                                           if "(" in view.x_label else ""))
    if row["parameters"].get("tls"):
        names.append("TLS")
    if row["parameters"].get("socket_bytes"):
        names.append(f"buffers of {row['parameters']['socket_bytes'] / 1024:g} KiB")
    if figure.main_view().x == "streams":
        names.append(f"{row['parameters']['streams']} streams")
    if "block_bytes" in row["parameters"] and len(figure.quick) > 1:
        names.append(f"{row['parameters']['block_bytes'] / MIB:g} MiB")
    return ", ".join(dict.fromkeys(names))


def row_table(figure: Figure, rows: Sequence[Row]) -> list[str]:
    extra = [("of bound", "of_bound", "{:.2f}"), ("MiB/s", "mib_per_s", "{:.1f}"),
             ("GB/s", "gb_per_s", "{:.2f}"), ("GB per CPU s", "gb_per_cpu_s", "{:.2f}"),
             ("slow after s", "slow_after_s", "{:.2f}"), ("least s", "least_s", "{:.2f}"),
             ("plan kept s", "kept_s", "{:.2f}"), ("attempts", "attempts", "{:.0f}")]
    shown = [column for column in extra if any(column[1] in row for row in rows)]
    header = ["", "median s", "runs", "x direct", "theory", "diff.", "bound s",
              *(name for name, _, _ in shown), "CPU s", "cores", "busiest MiB", "all links MiB"]
    body = []
    for row in rows:
        theory = row.get("theory_ratio")
        body.append([
            row_name(figure, row), f"{row['median_s']:.3f}",
            f"{min(row['seconds']):.3f}-{max(row['seconds']):.3f}",
            f"{row['ratio_to_direct']:.3f}", f"{theory:.3f}" if theory else "-",
            f"{row['over_theory'] * 100:+.1f} %" if theory else "-",
            f"{row['bound_s']:.3f}" if "bound_s" in row else "-",
            *(form.format(row[field]) if field in row else "-" for _, field, form in shown),
            f"{row['cpu_s']:.2f}", f"{row['cores_busy']:.1f}",
            f"{row['busiest_link_bytes'] / MIB:.1f}", f"{row['total_bytes'] / MIB:.1f}"])
    return table(header, body)


def explanations(figure: Figure, rows: Sequence[Row], cores: int) -> list[str]:
    missed = [row for row in rows if misses(row)]
    if not any("theory_ratio" in row for row in rows):
        return []
    if not missed:
        return [f"All rows are within {TOLERANCE * 100:.0f} % of theory.", ""]
    lines = [f"More than {TOLERANCE * 100:.0f} % from theory:", ""]
    for row in missed:
        lines.append(f"- {row_name(figure, row)}, {row['over_theory'] * 100:+.1f} %: "
                     + "; ".join(why(row, cores)) + ".")
    return [*lines, ""]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"
    return [line(header), line(["---", *(["---:"] * (len(header) - 1))]), *map(line, rows), ""]
