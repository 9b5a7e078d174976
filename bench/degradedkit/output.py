# SPDX-License-Identifier: Apache-2.0
"""Results as JSON, CSV and a picture. They depend on nothing but settings and seeds, so that the
same ones give the same files, byte for byte."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Mapping, Sequence

from experiments.results import rounded

from . import pictures
from .figure import Figure
from .runs import Runs
from .scenarios import Setting

SAMPLES = ("remote", "degraded", "degraded_read_s")  # one for each seed, beside those of jobs


def write_figure(out: Path, figure: Figure, runs: Runs, most_seeds: int) -> None:
    seeds = min(figure.seeds, most_seeds)
    rows = [rounded({**runs.row(cell.setting, algorithm, seeds, **cell.names),
                     "setting": changed(cell.setting)})
            for cell in figure.cells for algorithm in cell.algorithms]
    write_rows(out, figure.name, {"seeds": list(range(seeds)),
                                  "parameters": asdict(Setting()), "rows": rows})
    write_csv(out / f"{figure.name}.csv", rows)
    draw_figure(out, figure, rows)


COSTS = "costs"


def write_cost(out: Path, figure: str, cpu_seconds: float, runs: int) -> None:
    """What a figure took. Unlike all else this is measured, and has a file of its own."""
    file = out / f"{COSTS}.json"
    costs = json.loads(file.read_text()) if file.exists() else {}
    costs[figure] = {"cpu_s": round(cpu_seconds, 1), "runs": runs}
    file.write_text(json.dumps(costs, indent=1) + "\n")


def draw_figure(out: Path, figure: Figure, rows: Sequence[Mapping[str, Any]]) -> None:
    pictures.draw(out / f"{figure.name}.png", figure.title, figure.panels(rows), figure.columns)


def changed(setting: Setting) -> dict[str, Any]:
    """What differs from the defaults."""
    default = Setting()
    return {field.name: getattr(setting, field.name) for field in fields(Setting)
            if getattr(setting, field.name) != getattr(default, field.name)}


def write_rows(out: Path, name: str, data: Mapping[str, Any]) -> None:
    """A line for each row."""
    head = json.dumps({key: rounded(value) for key, value in data.items() if key != "rows"})
    rows = ",\n".join(json.dumps(rounded(row)) for row in data["rows"])
    (out / f"{name}.json").write_text(f'{head[:-1]}, "rows": [\n{rows}\n]}}\n')


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """A line for each seed and job."""
    names = [name for name, value in rows[0].items() if isinstance(value, (str, int, float))
             and name != "crossing_bytes"]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, "seed", "job", "runtime_s", "normalized", *SAMPLES])
        for row in rows:
            for seed, jobs in enumerate(row["runtime_s"]):
                for job, seconds in enumerate(jobs):
                    writer.writerow([
                        *(row[name] for name in names), seed, job, f"{seconds:.2f}",
                        f"{row['normalized'][seed][job]:.4f}",
                        *(f"{row[name][seed]:.6g}" for name in SAMPLES)])
