# SPDX-License-Identifier: Apache-2.0
"""Figures of what the paper does not have: packings of trees."""

from __future__ import annotations

import statistics
from typing import Callable

from .figures import Comparison, Figure, Rows, options

SCHEMES = "conventional,ppr,rp,rp-weighted,rp-all,rp-flow"
FLOW = "rp-flow"
AUTO = "auto"


def by_links(rows: Rows) -> dict[str, dict[str, float]]:
    """Seconds of each scheme, by region or seed."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        found.setdefault(row["parameters"]["links"], {})[row["scheme"]] = row["median_s"]
    return found


def times_as_fast(other: str) -> Callable[[Rows], str]:
    def ours(rows: Rows) -> str:
        gains = [times[other] / times[FLOW] for times in by_links(rows).values()]
        return f"{min(gains):.1f}-{max(gains):.1f} x"
    return ours


def over_theory(rows: Rows) -> str:
    over = [row["over_theory"] for row in rows if row["scheme"] == FLOW]
    return f"{100 * statistics.median(over):+.1f} % in the median, {100 * max(over):+.1f} % at most"


def less_than_best_other(rows: Rows) -> str:
    """In the median over links: by how much less time than the best of the other schemes."""
    less = [1 - times[FLOW] / min(seconds for scheme, seconds in times.items()
                                  if scheme not in (FLOW, AUTO, "direct"))
            for times in by_links(rows).values()]
    return f"{100 * statistics.median(less):.1f} % (least {100 * min(less):.1f} %)"


def less_than(other: str) -> Callable[[Rows], str]:
    def ours(rows: Rows) -> str:
        less = [1 - times[FLOW] / times[other] for times in by_links(rows).values()]
        return f"{100 * statistics.median(less):.1f} %"
    return ours


def auto_over_flow(rows: Rows) -> str:
    ratios = [times[AUTO] / times[FLOW] for times in by_links(rows).values()]
    return f"{statistics.median(ratios):.2f} x in the median, {max(ratios):.2f} x at most"


def over_bound(rows: Rows) -> str:
    """Time over the one that no plan can beat (rate_by_node_links of experiments/links.py)."""
    over = [row["median_s"] / row["parameters"]["least_s"] for row in rows
            if row["scheme"] == FLOW]
    return f"{statistics.median(over):.2f} x in the median, {max(over):.2f} x at most"


SNAPSHOTS = ",".join(map(str, range(1, 13)))
UNLIMITED = "--node-mbit 0 --scale 0.05 --slice-kib 16 --runs 1 --schemes rp-weighted,rp-flow"

OURS = (
    Figure("trees", "Trees: unequal links, and limits of nodes", "", "the links of Amazon EC2 "
           "(Table 1) by four, and each node's own link at 125 Mb/s, RS (16, 12)",
           quick=tuple(options(f"links --matrix {matrix} --block-mib 8 --runs 1 "
                               f"--schemes {SCHEMES}") for matrix in ("north-america", "asia")),
           full=tuple(options(f"links --matrix {matrix} --block-mib 64 --runs 5 "
                              f"--schemes {SCHEMES}") for matrix in ("north-america", "asia")),
           comparisons=(
               Comparison("rp-flow, rate of rp-weighted (beside: what the linear program gains)",
                          "5.6-7.9 x", times_as_fast("rp-weighted")),
               Comparison("rp-flow, time over its plan's theory", "-", over_theory)),
           notes="What `rp-flow` is: [019](../docs/design/019-trees.md). The coordinator is told "
                 "the rates of pairs and of nodes' links."),
    Figure("trees-pairs", "Trees: unequal pairs, nodes without limits", "", "the links of Amazon "
           "EC2 (Table 1) by twenty, RS (16, 12)",
           quick=(options(f"links --matrix north-america --block-mib 8 --regions California,Ohio "
                          f"{UNLIMITED}"),
                  options(f"links --matrix asia --block-mib 8 --regions Mumbai,Tokyo "
                          f"{UNLIMITED}")),
           full=tuple(options(f"links --matrix {matrix} --block-mib 64 {UNLIMITED}")
                      for matrix in ("north-america", "asia")),
           comparisons=(
               Comparison("rp-flow, rate of rp-weighted", "-", times_as_fast("rp-weighted")),
               Comparison("rp-flow, time over its plan's theory", "-", over_theory)),
           notes="Only pairs limit: what can flow to the requestor is far more than its slowest "
                 "pair passes. The scale is such that two cores serve what flows."),
    Figure("trees-random", "Trees: up- and downlinks at random", "", "each node's up- and downlink "
           "between 20 and 200 Mb/s, RS (14, 10), measured by `ecpipe probe`",
           quick=(options(f"links --matrix random:{SNAPSHOTS} --scale 1 --n 14 --k 10 "
                          f"--block-mib 8 --runs 1 --schemes {SCHEMES},{AUTO}"),),
           full=(options(f"links --matrix random:{SNAPSHOTS} --scale 1 --n 14 --k 10 "
                         f"--block-mib 64 --runs 5 --schemes {SCHEMES},{AUTO}"),),
           comparisons=(
               Comparison("rp-flow, less than the best other scheme, in the median", "-",
                          less_than_best_other),
               Comparison("rp-flow, less than rp, in the median (beside: what published "
                          "multi-pipeline methods report)", "45.4 %", less_than("rp")),
               Comparison("rp-flow, time over the least possible", "-", over_bound),
               Comparison("auto, time over that of rp-flow", "-", auto_over_flow)),
           notes="One cluster for each seed. Nobody tells the coordinator of any link: it plans by "
                 "what its probes have measured. The least possible is by the real links, frame "
                 "headers included: each slice needs k helpers that send once, and all that is "
                 "sent enters a downlink."),
)
