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


def less_than_the_best_other(rows: Rows) -> str:
    gains = [1 - times[FLOW] / min(seconds for scheme, seconds in times.items()
                                   if scheme not in (FLOW, "direct"))
             for times in by_links(rows).values()]
    return f"{100 * statistics.median(gains):.0f} % in the median"


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
    Figure("trees-pairs", "Trees: unequal links, and no limits of nodes", "", "the links of Amazon "
           "EC2 (Table 1) by ten, RS (16, 12)",
           quick=tuple(options(f"links --matrix {matrix} --node-mbit 20000 --scale 0.1 "
                               "--block-mib 4 --slice-kib 8 --runs 1 "
                               "--schemes rp,rp-weighted,rp-all,rp-flow")
                       for matrix in ("north-america", "asia")),
           full=tuple(options(f"links --matrix {matrix} --node-mbit 20000 --scale 0.1 "
                              f"--block-mib 32 --runs 5 --schemes {SCHEMES}")
                      for matrix in ("north-america", "asia")),
           comparisons=(
               Comparison("rp-flow, rate of rp-weighted", "-", times_as_fast("rp-weighted")),
               Comparison("rp-flow, time over its plan's theory", "-", over_theory))),
    Figure("trees-random", "Trees: random up- and downlinks", "", "each node's up- and downlink "
           "drawn from 20 to 200 Mb/s, RS (9, 6), measured by `ecpipe probe`",
           quick=(options("links --matrix random:1,2,3,4,5,6,7,8,9,10,11,12 --scale 1 --n 9 --k 6 "
                          f"--block-mib 8 --runs 1 --schemes {SCHEMES}"),),
           full=(options("links --matrix random:1,2,3,4,5,6,7,8,9,10,11,12 --scale 1 --n 14 --k 10 "
                         f"--block-mib 64 --runs 5 --schemes {SCHEMES}"),),
           comparisons=(
               Comparison("rp-flow, less than the best other scheme (beside: what others have "
                          "published for several pipelines, less than rp)", "45.4 %",
                          less_than_the_best_other),
               Comparison("rp-flow, time over its plan's theory", "-", over_theory))),
)
