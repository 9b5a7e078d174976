# SPDX-License-Identifier: Apache-2.0
"""Rows of results: as a table, as JSON with the machine and the revision, and as CSV."""

from __future__ import annotations

import csv
import json
import os
import platform
from pathlib import Path
from typing import Any, Sequence

from labkit.process import LabError, run
from labkit.stripes import MIB

Row = dict[str, Any]


def machine() -> dict[str, Any]:
    """What the numbers depend on. No host name: results are published."""
    model = next((line.split(":", 1)[1].strip()
                  for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release().split("-")[0],
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")}


def commit(repository: Path) -> str:
    """The revision that is being measured, with "+changes" when the tree differs from it in
    more than the results of figures before this one."""
    git = ["git", "-C", str(repository)]
    try:
        revision = run([*git, "rev-parse", "--short=12", "HEAD"]).stdout.strip()
        others = [":/", ":(exclude,top)bench/results", ":(exclude,top)bench/RESULTS.md"]
        dirty = run([*git, "status", "--porcelain", "--untracked-files=no", "--",
                     *others]).stdout.strip()
    except LabError:
        return "unknown"
    return revision + ("+changes" if dirty else "")


def write_json(path: Path, rows: Sequence[Row], repository: Path,
               more: dict[str, Any] | None = None) -> None:
    """`more`: further fields beside machine, commit and rows."""
    path.write_text(json.dumps({"machine": machine(), "commit": commit(repository), **(more or {}),
                                "rows": [rounded(row) for row in rows]}, indent=1) + "\n")


def rounded(value: Any) -> Any:
    """Microseconds are enough."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """A line a sample: experiment, scheme, all parameters, run, seconds and the row's figures."""
    parameters = list(dict.fromkeys(name for row in rows for name in row["parameters"]))
    figures = ["median_s", "ratio_to_direct", "theory_ratio", "bound_s", "cpu_s", "cores_busy",
               "busiest_link_bytes", "total_bytes", "sha256_ok"]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["experiment", "scheme", *parameters, "run", "seconds", *figures])
        for row in rows:
            for number, seconds in enumerate(row["seconds"], 1):
                writer.writerow([row["experiment"], row["scheme"],
                                 *(row["parameters"].get(name, "") for name in parameters),
                                 number, seconds, *(row.get(name, "") for name in figures)])


def print_rows(rows: Sequence[Row]) -> None:
    """The parameters that differ between rows stand beside the scheme."""
    def varies(name: str) -> bool:
        return len({json.dumps(row["parameters"].get(name)) for row in rows}) > 1
    names = [name for name in dict.fromkeys(name for row in rows for name in row["parameters"])
             if varies(name)]

    def shown(row: Row) -> list[str]:
        theory = row.get("theory_ratio")
        return [row["scheme"], *(str(row["parameters"].get(name, "")) for name in names),
                f"{row['median_s']:.3f}", f"{row['spread_s']:.3f}",
                f"{row['ratio_to_direct']:.3f}", f"{theory:.3f}" if theory else "-",
                f"{row['of_bound']:.2f}" if "of_bound" in row else "-", f"{row['cpu_s']:.2f}",
                f"{row['cores_busy']:.1f}", f"{row['busiest_link_bytes'] / MIB:.1f}",
                f"{row['total_bytes'] / MIB:.1f}", "ok" if row["sha256_ok"] else "WRONG"]
    print()
    print_table(["scheme", *names, "median s", "spread s", "x direct", "theory", "of bound",
                 "CPU s", "cores", "busiest MiB", "total MiB", "sha256"],
                [shown(row) for row in rows])


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Aligned; words to the left, numbers to the right."""
    def numeric(column: int) -> bool:
        return all(row[column][:1].isdigit() or row[column] in ("", "-") for row in rows)
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    for line in [header, *rows]:
        cells = [cell.rjust(width) if numeric(i) else cell.ljust(width)
                 for i, (cell, width) in enumerate(zip(line, widths))]
        print("  ".join(cells).rstrip())
