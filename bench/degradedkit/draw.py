# SPDX-License-Identifier: Apache-2.0
"""Draws the picture that is described as JSON on standard input; pictures.py starts this.

A picture is panels in rows. A panel has groups along its x axis and series in each group: boxes
(summary.box()) or points on lines. Dots have their groups along the y axis, where long names can be
read; `marks` are vertical lines.
"""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.draw import COLOURS, DPI, MARKERS, plt  # noqa: E402

PANEL_INCHES = (4.6, 3.3)
WIDE_INCHES = 10.5
LEGEND_INCHES = 0.45
GROUP_WIDTH = 0.8
LEGEND_ENTRY_INCHES = 2.2
LOG_FROM = 4.0   # a linear axis hides what is so many times smaller than the largest
LOG_TICKS = (0.9, 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 15, 20)
LETTERS, LEAST_LETTERS = 75, 9   # of all groups' names beside each other; where a name is wrapped
UNIT = re.compile(r"(?<=\d) (?=\S{1,4}$)")  # a space before a unit, where no line may end
DODGE = 0.07     # lines on top of each other are beside each other, in groups


def draw_boxes(axes: Any, panel: dict[str, Any]) -> None:
    width = GROUP_WIDTH / len(panel["series"])
    for index, series in enumerate(panel["series"]):
        colour = COLOURS[series["colour"] % len(COLOURS)]
        offset = (index - (len(panel["series"]) - 1) / 2) * width
        boxes = [(place + offset, box) for place, box in enumerate(series["boxes"]) if box]
        axes.bxp([{"whislo": box["least"], "q1": box["lower"], "med": box["median"],
                   "q3": box["upper"], "whishi": box["most"], "fliers": box["outliers"]}
                  for _, box in boxes], positions=[x for x, _ in boxes], widths=width * 0.85,
                 patch_artist=True, manage_ticks=False,
                 boxprops={"facecolor": colour, "alpha": 0.55, "linewidth": 0.7},
                 medianprops={"color": "black", "linewidth": 1.1},
                 whiskerprops={"linewidth": 0.8}, capprops={"linewidth": 0.8},
                 flierprops={"marker": ".", "markersize": 3})
        axes.plot([], [], color=colour, linewidth=6, alpha=0.55, label=series["label"])


def draw_lines(axes: Any, panel: dict[str, Any]) -> None:
    for index, series in enumerate(panel["series"]):
        aside = DODGE * (index - (len(panel["series"]) - 1) / 2)
        points = [(x + aside, y) for x, y in enumerate(series["points"]) if y is not None]
        axes.plot([x for x, _ in points], [y for _, y in points], linewidth=1.3, markersize=4,
                  color=COLOURS[index % len(COLOURS)], marker=MARKERS[index % len(MARKERS)],
                  label=series["label"])


def draw_dots(axes: Any, panel: dict[str, Any], named: bool) -> None:
    """`named`: the groups have their names here; panels beside it have the same ones."""
    places = range(len(panel["groups"]))
    for index, series in enumerate(panel["series"]):
        aside = 2 * DODGE * (index - (len(panel["series"]) - 1) / 2)
        axes.errorbar(series["dots"], [place + aside for place in places],
                      xerr=series.get("errors"), fmt=MARKERS[index], color=COLOURS[index],
                      markersize=4, linewidth=1, label=series["label"])
    for mark in panel.get("marks", ()):
        axes.axvline(mark, color="black", linewidth=1.0, linestyle="--")
    axes.set_yticks(places, panel["groups"] if named else [""] * len(places), fontsize=7)
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize=7)
    axes.grid(linewidth=0.3)


def draw_groups(axes: Any, panel: dict[str, Any], reach: tuple[float, float]) -> None:
    """`reach`: least and largest value of all panels with the same label of y, whose axes are the
    same."""
    (draw_boxes if "boxes" in panel["series"][0] else draw_lines)(axes, panel)
    width = max(LEAST_LETTERS, LETTERS // len(panel["groups"]))
    axes.set_xticks(range(len(panel["groups"])), [
        textwrap.fill(UNIT.sub("\u00a0", group), width, break_long_words=False)
        for group in panel["groups"]],
        fontsize=7)
    axes.tick_params(axis="y", labelsize=7)
    axes.grid(axis="y", which="both", linewidth=0.3)
    low, high = reach
    if low > 0 and high / low > LOG_FROM and not panel.get("linear"):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(plt.matplotlib.ticker.FixedLocator(LOG_TICKS))
        axes.yaxis.set_major_formatter(plt.matplotlib.ticker.StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_locator(plt.matplotlib.ticker.NullLocator())
        axes.set_ylim(low * 0.95, high * 1.05)
    else:
        room = 0.04 * (high - low) or 0.05
        axes.set_ylim(low - room, high + room)


def values_of(panel: dict[str, Any]) -> list[float]:
    if "boxes" in panel["series"][0]:
        return [value for series in panel["series"] for box in series["boxes"] if box
                for value in (box["least"], box["most"], *box["outliers"])]
    return [y for series in panel["series"] for y in series.get("points", ()) if y is not None]


def reaches(panels: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """By label of y."""
    values: dict[str, list[float]] = {}
    for panel in panels:
        values.setdefault(panel["y_label"], []).extend(values_of(panel))
    return {label: (min(some), max(some)) for label, some in values.items() if some}


def main() -> None:
    picture = json.load(sys.stdin)
    panels = picture["panels"]
    columns = min(picture["columns"], len(panels))
    panel_width = WIDE_INCHES if columns == 1 else PANEL_INCHES[0]
    rows = math.ceil(len(panels) / columns)
    figure = plt.figure(dpi=DPI, layout="constrained", figsize=(
        panel_width * columns, PANEL_INCHES[1] * rows + 2 * LEGEND_INCHES))
    grid = figure.add_gridspec(rows + 1, columns,
                               height_ratios=[PANEL_INCHES[1]] * rows + [LEGEND_INCHES])
    reach = reaches(panels)
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        axes = figure.add_subplot(grid[row, column])
        axes.set_title(panel["title"], fontsize=9)
        axes.set_ylabel(panel["y_label"], fontsize=8)
        axes.set_xlabel(panel["x_label"], fontsize=8)
        if "dots" in panel["series"][0]:
            draw_dots(axes, panel, column == 0)
        else:
            draw_groups(axes, panel, reach[panel["y_label"]])
    handles, labels = figure.axes[0].get_legend_handles_labels()
    aside = figure.add_subplot(grid[rows, :])
    aside.axis("off")
    aside.legend(handles, labels, loc="center", fontsize=8, frameon=False,
                 ncols=min(int(panel_width * columns / LEGEND_ENTRY_INCHES), len(labels)))
    figure.suptitle(picture["title"], fontsize=11)
    figure.savefig(picture["path"])


if __name__ == "__main__":
    main()
