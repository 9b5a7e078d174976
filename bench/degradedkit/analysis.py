# SPDX-License-Identifier: Apache-2.0
"""Figure 5 of the degraded-first paper, by its three formulas (formulas.py)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Sequence

from experiments.report import table

from . import formulas
from .formulas import MEGABIT, Setting
from .pictures import Panel

NAME = "5"
COMMAND = "analysis"
TITLE = "Figure 5: the analysis"
SWEEPS: dict[str, Sequence[tuple[str, Setting]]] = {
    "code": [(f"({n},{k})", replace(Setting(), n=n, k=k))
             for n, k in ((8, 6), (12, 9), (16, 12), (20, 15))],
    "blocks": [(str(blocks), replace(Setting(), blocks=blocks))
               for blocks in (720, 1440, 2160, 2880)],
    "rack_mbit": [(str(rate), replace(Setting(), rack_bytes_per_s=rate * MEGABIT))
                  for rate in (100, 250, 500, 1000)]}
# What the paper's text prints, in percent: the least and the largest reduction.
PAPER = {"code": (15, 32), "blocks": (25, 28), "rack_mbit": (18, 43)}
LABELS = {"code": "(a) code", "blocks": "(b) native blocks F", "rack_mbit": "(c) bandwidth, Mb/s"}


def rows() -> list[dict[str, Any]]:
    found = []
    for sweep, settings in SWEEPS.items():
        for value, setting in settings:
            base = formulas.normal_runtime(setting)
            found.append({"sweep": sweep, "value": value, "normal_s": base,
                          "LF": formulas.locality_first_runtime(setting) / base,
                          "DF": formulas.degraded_first_runtime(setting) / base,
                          "reduction": formulas.reduction(setting)})
    return found


def panels() -> list[Panel]:
    found = []
    for sweep in SWEEPS:
        some = [row for row in rows() if row["sweep"] == sweep]
        found.append({"title": LABELS[sweep], "x_label": "", "groups": [r["value"] for r in some],
                      "y_label": "runtime, by that without failure",
                      "series": [{"label": name, "points": [row[name] for row in some]}
                                 for name in ("LF", "DF")]})
    return found


def page_lines() -> list[str]:
    body = []
    for sweep, (least, most) in PAPER.items():
        reductions = [row["reduction"] * 100 for row in rows() if row["sweep"] == sweep]
        body.append([LABELS[sweep], f"{least}-{most} %",
                     f"{min(reductions):.1f}-{max(reductions):.1f} %",
                     f"{min(reductions) - least:+.1f}, {max(reductions) - most:+.1f}",
                     ", ".join(f"{value:.1f}" for value in reductions)])
    return [*table(["less than LF", "the paper", "ours", "points", "each"], body),
            "The formulas leave nothing to choose but what \"128MB\" is: 10^6 bytes a megabyte. "
            "What the paper prints is cut off or rounded to whole percents, up to 1.1 points away.",
            ""]
