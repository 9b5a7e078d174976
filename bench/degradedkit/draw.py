# SPDX-License-Identifier: Apache-2.0
"""Draws the picture that is described as JSON on standard input; pictures.py starts this.

A picture is panels in rows. A panel has groups along its x axis and series in each group: boxes
(summary.box()) or points on lines. Dots have their groups along the y axis, where long names can be
read; `marks` are vertical lines.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from labkit.draw import COLOURS, DPI, MARKERS, plt  # noqa: E402

PANEL_INCHES = (4.6, 3.3)
WIDE_INCHES = 10.5
LEGEND_INCHES = 0.45
GROUP_WIDTH = 0.8
LEGEND_ENTRY_INCHES = 2.2
LOG_FROM = 5.0   # a linear axis hides what is so many times smaller than the largest
MANY_LETTERS = 42


def draw_boxes(axes: Any, panel: dict[str, Any]) -> None:
    width = GROUP_WIDTH / len(panel["series"])
    for index, series in enumerate(panel["series"]):
        colour = COLOURS[index % len(COLOURS)]
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
        points = [(x, y) for x, y in enumerate(series["points"]) if y is not None]
        axes.plot([x for x, _ in points], [y for _, y in points], linewidth=1.3, markersize=4,
                  color=COLOURS[series.get("colour", index) % len(COLOURS)],
                  linestyle=series.get("style", "-"),
                  marker=MARKERS[series.get("colour", index) % len(MARKERS)],
                  label=series["label"])


def draw_dots(axes: Any, panel: dict[str, Any], named: bool) -> None:
    """`named`: the groups have their names here; panels beside it have the same ones."""
    places = range(len(panel["groups"]))
    for index, series in enumerate(panel["series"]):
        axes.errorbar(series["dots"], places, xerr=series["errors"], fmt=MARKERS[index],
                      color=COLOURS[index], markersize=4, linewidth=1, label=series["label"])
    for mark in panel["marks"]:
        axes.axvline(mark, color="black", linewidth=1.0, linestyle="--")
    axes.set_yticks(places, panel["groups"] if named else [""] * len(places), fontsize=7)
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize=7)
    axes.grid(linewidth=0.3)


def draw_panel(axes: Any, panel: dict[str, Any], first: bool) -> None:
    """`first`: in its row."""
    axes.set_title(panel["title"], fontsize=9)
    axes.set_ylabel(panel["y_label"], fontsize=8)
    axes.set_xlabel(panel["x_label"], fontsize=8)
    if "dots" in panel["series"][0]:
        draw_dots(axes, panel, first)
    else:
        draw_groups(axes, panel)


def draw_groups(axes: Any, panel: dict[str, Any]) -> None:
    boxes = "boxes" in panel["series"][0]
    (draw_boxes if boxes else draw_lines)(axes, panel)
    turned = sum(map(len, panel["groups"])) > MANY_LETTERS
    axes.set_xticks(range(len(panel["groups"])), panel["groups"], fontsize=7,
                    rotation=20 if turned else 0, ha="right" if turned else "center")
    axes.tick_params(axis="y", labelsize=7)
    axes.grid(axis="y", which="both", linewidth=0.3)
    values = [y for series in panel["series"] for y in (
        [value for box in series["boxes"] if box for value in (box["least"], box["most"])]
        if boxes else [y for y in series["points"] if y is not None])]
    wide = values and min(values) > 0 and max(values) / min(values) > LOG_FROM
    if wide and not panel.get("linear"):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(plt.matplotlib.ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(plt.matplotlib.ticker.StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(plt.matplotlib.ticker.NullFormatter())


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
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        draw_panel(figure.add_subplot(grid[row, column]), panel, column == 0)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    aside = figure.add_subplot(grid[rows, :])
    aside.axis("off")
    aside.legend(handles, labels, loc="center", fontsize=8, frameon=False,
                 ncols=min(int(panel_width * columns / LEGEND_ENTRY_INCHES), len(labels)))
    figure.suptitle(picture["title"], fontsize=11)
    figure.savefig(picture["path"])


if __name__ == "__main__":
    main()
