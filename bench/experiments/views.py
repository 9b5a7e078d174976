# SPDX-License-Identifier: Apache-2.0
"""How rows become curves or bars: which parameter goes along the x axis, and what goes up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Mapping, Sequence

from labkit.stripes import MIB

Row = Mapping[str, Any]


@dataclass(frozen=True)
class View:
    x: str                    # a parameter, or "scheme"
    x_label: str
    x_text: Callable[[Any], str] = str
    bars: bool = False
    rate: bool = False        # of recovery, instead of time
    per_cpu: bool = False     # beside the time: what is rebuilt for each CPU second
    keep: Callable[[Row], bool] = lambda row: True


def mib(value: int) -> str:
    return f"{value / MIB:g}"


def kib(value: int) -> str:
    return f"{value / 1024:g}"


# The view of each experiment, where a figure does not ask for another one.
VIEWS = {
    "single": View("scheme", "scheme", bars=True),
    "slices": View("slice_bytes", "slice size (KiB)", kib),
    "blocks": View("block_bytes", "block size (MiB)", mib),
    "codes": View("code", "code", bars=True),
    "multi": View("failed", "failed blocks of the stripe"),
    "edge": View("edge_mbit", "rate of the links to the requestor (Mb/s)"),
    "rack": View("cross_mbit", "rate of each rack's link to the others (Mb/s)", bars=True),
    "geo": View("requestor_region", "region of the requestor", bars=True),
    "links": View("links", "region of the requestor, or seed of the links", bars=True),
    "slowed": View("links", "seed of the links", bars=True),
    "node": View("requestors", "requestors", rate=True),
    "hdfs": View("case", "policy of HDFS, and what is measured", bars=True),
    "qfs": View("slice_bytes", "slice size (KiB)", kib),
    "implementations": View("block_bytes", "block size (MiB)", mib),
}


def label(row: Row, view: View, rows: Sequence[Row]) -> str:
    """The scheme, without the parameter that its name may repeat, and the transport if there are
    several."""
    transports = {other["parameters"]["transport"] for other in rows
                  if other["scheme"] != "direct"}
    name = row["scheme"].split(" ")[0] + (", TLS" if row["parameters"].get("tls") else "")
    transport = row["parameters"]["transport"]
    several = len(transports) > 1 and view.x != "transport" and name != "direct"
    return f"{name}, {transport}" if several else name


def x_of(row: Row, view: View, rows: Sequence[Row]) -> str | None:
    """None for rows that do not vary with x: they are drawn across."""
    if view.x == "scheme":
        return label(row, view, rows)
    value = row["parameters"].get(view.x)
    return None if value is None else view.x_text(value)


def ticks_of(rows: Sequence[Row], view: View) -> list[str]:
    """Numbers ascend; words come as the rows do."""
    values = {x: row["parameters"].get(view.x) for row in rows
              if (x := x_of(row, view, rows)) is not None}
    if all(isinstance(value, (int, float)) for value in values.values()):
        return sorted(values, key=lambda x: values[x])
    return list(values)


def series_of(rows: Sequence[Row], view: View) -> dict[str, Any]:
    """What draw.py draws: x texts in the order in which they come, and series of points. A series
    with a single x among others with several is drawn across as well."""
    rows = [row for row in rows if view.keep(row)]
    ticks = ticks_of(rows, view)
    series: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = "all" if view.x == "scheme" else label(row, view, rows)
        line = series.setdefault(name, {"label": name, "points": []})
        line["points"].append(point(row, x_of(row, view, rows), view.rate))
    for line in series.values():
        if len(ticks) > 1 and len(line["points"]) == 1 and not view.bars:
            line["points"][0]["x"] = None
    return {"x_label": view.x_label, "ticks": ticks, "bars": view.bars, "rate": view.rate,
            "per_cpu": view.per_cpu,
            "series": [line for line in series.values()
                       if not (view.rate and line["label"] == "direct")]}


def point(row: Row, x: str | None, rate: bool) -> dict[str, Any]:
    seconds, theory = row["seconds"], row.get("theory_ratio")
    middle = row["median_s"]
    factor = row["mib_per_s"] * middle if rate and "mib_per_s" in row else None

    def value(s: float) -> float:
        return factor / s if factor else s
    direct = row.get("direct_s", middle / row["ratio_to_direct"])
    spread = sorted(value(s) for s in (min(seconds), max(seconds)))
    result = {"x": x, "y": value(middle), "low": spread[0], "high": spread[1],
              "ratio": row["ratio_to_direct"], "ratio_low": min(row["ratios"]),
              "ratio_high": max(row["ratios"])}
    if theory:
        result |= {"theory": value(theory * direct), "theory_ratio": theory}
    if "gb_per_cpu_s" in row and row["scheme"] != "direct":  # which rebuilds nothing
        result["per_cpu"] = row["gb_per_cpu_s"]
    if rate and "of_bound" in row:
        result |= {"theory": value(row["bound_s"]), "ratio": row["of_bound"],
                   "ratio_low": row["bound_s"] / max(seconds),
                   "ratio_high": row["bound_s"] / min(seconds), "theory_ratio": 1.0}
    elif rate and theory:
        result |= {"ratio": theory / row["ratio_to_direct"],
                   "ratio_low": theory / max(row["ratios"]),
                   "ratio_high": theory / min(row["ratios"]), "theory_ratio": 1.0}
    return result
