# SPDX-License-Identifier: Apache-2.0
"""Figures of what the paper does not have: packings of trees."""

from __future__ import annotations

import statistics
from typing import Callable

from .figures import Comparison, Figure, Rows, options

SCHEMES = "conventional,ppr,rp,rp-weighted,rp-all,rp-flow"
FLOW = "rp-flow"


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
)
