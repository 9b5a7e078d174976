# SPDX-License-Identifier: Apache-2.0
"""Draws the picture that is described as JSON on standard input; plots.py starts this.

Left the times (or rates of recovery), right the same as multiples of the direct send (or of what
the links allow). Points are medians, bars reach from the least to the largest run; what theory
gives is dashed, or a dash across a bar.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999933", "#882255",
           "#44aa99", "#661100")
MARKERS = "osD^vPX*<>"
INCHES, DPI = (10.0, 4.2), 100
PANEL_WIDTHS = (1.0, 1.0, 0.42)  # the third one is the legend's
PANEL_CHARACTERS = 48  # below a panel
LOG_FROM = 8.0        # a linear axis hides what is so many times smaller than the largest
BAR_WIDTH = 0.8
# The fields of a point: value, least, largest, theory.
TIMES = ("y", "low", "high", "theory")
RATIOS = ("ratio", "ratio_low", "ratio_high", "theory_ratio")
PER_CPU = ("per_cpu", "per_cpu", "per_cpu", "")


def axis_labels(picture: dict[str, Any]) -> tuple[str, str]:
    if picture["rate"]:
        return "recovery rate (MiB/s)", "of what the links allow"
    return "repair time (s)", ("GB rebuilt per CPU second" if picture["per_cpu"]
                               else "times the direct send")


def colour_of(index: int, name: str) -> str:
    return "black" if name == "direct" else COLOURS[index % len(COLOURS)]


def draw_lines(axes: Any, picture: dict[str, Any], panel: tuple[str, ...]) -> None:
    places = {tick: i for i, tick in enumerate(picture["ticks"])}
    value, low, high, theory = panel
    for index, series in enumerate(picture["series"]):
        colour, points = colour_of(index, series["label"]), sorted(
            series["points"], key=lambda point: places.get(point["x"], 0))
        if points[0]["x"] is None:
            points = [{**points[0], "x": tick} for tick in picture["ticks"]]
        xs = [places[point["x"]] for point in points]
        errors = [[point[value] - point[low] for point in points],
                  [point[high] - point[value] for point in points]]
        axes.errorbar(xs, [point[value] for point in points], yerr=errors, color=colour,
                      marker=MARKERS[index % len(MARKERS)], markersize=4, capsize=3, linewidth=1.3,
                      label=series["label"])
        if all(theory in point for point in points) and series["label"] != "direct":
            axes.plot(xs, [point[theory] for point in points], color=colour, linestyle="--",
                      linewidth=1.0)
    label_ticks(axes, picture["ticks"], angle=45)


def label_ticks(axes: Any, ticks: list[str], angle: float) -> None:
    """Turned by the angle where they would run into each other."""
    crowded = len(ticks) * (max(map(len, ticks)) + 1) > PANEL_CHARACTERS
    axes.set_xticks(range(len(ticks)), ticks, rotation=angle if crowded else 0)


def draw_bars(axes: Any, picture: dict[str, Any], panel: tuple[str, ...]) -> None:
    places = {tick: i for i, tick in enumerate(picture["ticks"])}
    value, low, high, theory = panel
    width = BAR_WIDTH / len(picture["series"])
    for index, series in enumerate(picture["series"]):
        points = [point for point in series["points"]
                  if point["x"] is not None and value in point]
        offset = (index - (len(picture["series"]) - 1) / 2) * width
        xs = [places[point["x"]] + offset for point in points]
        errors = [[point[value] - point[low] for point in points],
                  [point[high] - point[value] for point in points]]
        axes.bar(xs, [point[value] for point in points], width * 0.92, yerr=errors, capsize=2,
                 color=colour_of(index, series["label"]), alpha=0.85, label=series["label"])
        for x, point in zip(xs, points):
            if theory in point:
                axes.plot([x - width / 2, x + width / 2], [point[theory]] * 2, color="black",
                          linestyle="--", linewidth=1.4)
    label_ticks(axes, picture["ticks"], angle=20)


def wants_log(picture: dict[str, Any], value: str) -> bool:
    """Bars begin at nought."""
    if picture["bars"]:
        return False
    values = [point[value] for series in picture["series"] for point in series["points"]
              if value in point]
    return min(values) > 0 and max(values) / min(values) > LOG_FROM


def main() -> None:
    picture = json.load(sys.stdin)
    figure, (left, right, aside) = plt.subplots(
        1, 3, figsize=INCHES, dpi=DPI, layout="constrained", width_ratios=PANEL_WIDTHS)
    panels = (TIMES, PER_CPU if picture["per_cpu"] else RATIOS)
    for axes, panel, label in zip((left, right), panels, axis_labels(picture)):
        (draw_bars if picture["bars"] else draw_lines)(axes, picture, panel)
        axes.set_xlabel(picture["x_label"])
        axes.set_ylabel(label)
        axes.grid(axis="y", which="both", linewidth=0.3)
        if wants_log(picture, panel[0]):
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter(matplotlib.ticker.StrMethodFormatter("{x:g}"))
            axes.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
        else:
            axes.set_ylim(bottom=0)
    handles, labels = left.get_legend_handles_labels()
    if labels == ["all"]:
        handles, labels = [], []
    if any("theory" in point for series in picture["series"] for point in series["points"]):
        handles.append(Line2D([], [], color="black", linestyle="--"))
        labels.append("what the links allow" if picture["rate"] else "theory")
    aside.axis("off")
    aside.legend(handles, labels, loc="upper left", fontsize=8, frameon=False,
                 borderaxespad=0.0)
    figure.suptitle(picture["title"], fontsize=11)
    figure.savefig(picture["path"])


if __name__ == "__main__":
    main()
