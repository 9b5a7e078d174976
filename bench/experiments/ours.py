# SPDX-License-Identifier: Apache-2.0
"""Figures of what the paper does not have: packings of trees."""

from __future__ import annotations

import statistics
from typing import Callable

from labkit.links import HEADERS_FACTOR
from .figures import Comparison, Figure, Rows, options
from .one_block import LINK

SCHEMES = "conventional,ppr,rp,rp-weighted,rp-all,rp-flow"
FLOW = "rp-flow"
AUTO = "auto"
TOLD = FLOW + LINK


def by_links(rows: Rows) -> dict[str, dict[str, float]]:
    """Seconds of each scheme, by region or seed."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        found.setdefault(row["parameters"]["links"], {})[row["scheme"]] = row["median_s"]
    return found


def in_words(less: list[float]) -> str:
    return (f"{100 * statistics.median(less):.1f} % ({100 * min(less):.1f} to "
            f"{100 * max(less):.1f} %)")


def times_as_fast(other: str) -> Callable[[Rows], str]:
    def ours(rows: Rows) -> str:
        gains = [times[other] / times[FLOW] for times in by_links(rows).values()]
        return f"{min(gains):.1f}-{max(gains):.1f} x"
    return ours


def of_program(rows: Rows) -> str:
    """Over these links the linear program fills the requestor's own link."""
    parts = [row["bound_s"] * HEADERS_FACTOR / row["median_s"] for row in rows
             if row["scheme"] == FLOW]
    return f"{min(parts):.2f}-{max(parts):.2f}"


def over_theory(rows: Rows) -> str:
    over = [row["over_theory"] for row in rows if row["scheme"] == FLOW]
    return f"{100 * statistics.median(over):+.1f} % in the median, {100 * max(over):+.1f} % at most"


def best_other(times: dict[str, float]) -> float:
    return min(seconds for scheme, seconds in times.items()
               if scheme.removesuffix(LINK) not in (FLOW, AUTO, "direct"))


def less_than_best_other(flow: str) -> Callable[[Rows], str]:
    """In the median over links: by how much less time than the best of the other schemes."""
    return lambda rows: in_words([1 - times[flow] / best_other(times)
                                  for times in by_links(rows).values()])


def possible_less(rows: Rows) -> str:
    """By how much less than the best of the other schemes the bound is, which no plan can beat."""
    least = {row["parameters"]["links"]: row["parameters"]["least_s"] for row in rows}
    return in_words([1 - least[links] / best_other(times)
                     for links, times in by_links(rows).items()])


def less_than(flow: str, other: str) -> Callable[[Rows], str]:
    return lambda rows: in_words([1 - times[flow] / times[other]
                                  for times in by_links(rows).values()])


def auto_over_flow(rows: Rows) -> str:
    ratios = [times[AUTO] / times[FLOW] for times in by_links(rows).values()]
    return f"{statistics.median(ratios):.2f} x in the median, {max(ratios):.2f} x at most"


def over_bound(flow: str) -> Callable[[Rows], str]:
    """Time over the one that no plan can beat (rate_by_node_links of experiments/links.py)."""
    def ours(rows: Rows) -> str:
        over = [row["median_s"] / row["parameters"]["least_s"] for row in rows
                if row["scheme"] == flow]
        return f"{statistics.median(over):.2f} x in the median, {max(over):.2f} x at most"
    return ours


def over_least(scheme: str, field: str = "median_s") -> Callable[[Rows], str]:
    """Of a repair whose link became slow midway: over what was possible then."""
    def ours(rows: Rows) -> str:
        return ", ".join(f"{row[field] / row['least_s']:.2f} x" for row in rows
                         if row["scheme"] == scheme)
    return ours


SNAPSHOTS = ",".join(map(str, range(1, 13)))
# A part of a figure at a time, where a machine is not to be kept from others for long.
QUARTERS = ("1,2,3", "4,5,6", "7,8,9", "10,11,12")
RANDOM = "--scale 1 --n 14 --k 10"
TOLD_SCHEMES = "rp,rp-weighted,rp-all,rp-flow,rp-weighted+link,rp-all+link,rp-flow+link"
SLOWED = "rp-weighted,rp-flow+link"
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
               Comparison("rp-flow, part of what the linear program gains (goal: 0.85)", "-",
                          of_program),
               Comparison("rp-flow, time over its plan's theory", "-", over_theory)),
           notes="What `rp-flow` is: [019](../docs/design/019-trees.md). The coordinator is told "
                 "the rates of pairs and of nodes' links. The linear program fills the requestor's "
                 "own link. Filling the pipelines takes 0.1 s, which counts less in a longer "
                 "repair: with `--block-mib 16` in place of 8 it was 0.85 to 0.93 of the program's "
                 "gain ([measured.md](../docs/measured.md#trees))."),
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
                          less_than_best_other(FLOW)),
               Comparison("what no plan can beat, less than the best other scheme", "-",
                          possible_less),
               Comparison("rp-flow, less than rp, in the median (beside: what published "
                          "multi-pipeline methods report)", "45.4 %", less_than(FLOW, "rp")),
               Comparison("rp-flow, less than rp-weighted, in the median", "-",
                          less_than(FLOW, "rp-weighted")),
               Comparison("rp-flow, time over the least possible", "-", over_bound(FLOW)),
               Comparison("auto, time over that of rp-flow", "-", auto_over_flow)),
           notes="One cluster for each seed. Nobody tells the coordinator of any link: it plans by "
                 "what its probes have measured. The least possible is by the real links, frame "
                 "headers included: each slice needs k helpers that send once, and all that is "
                 "sent enters a downlink."),
    Figure("trees-told", "Trees: up- and downlinks at random, and a requestor that tells its own",
           "", "the networks of the section before. `+link`: the requestor says what its link is "
           "(`--link-mbit`)",
           quick=tuple(options(f"links --matrix random:{seeds} {RANDOM} --block-mib 8 --runs 1 "
                               f"--schemes {TOLD_SCHEMES}") for seeds in QUARTERS),
           full=(options(f"links --matrix random:{SNAPSHOTS} {RANDOM} --block-mib 64 --runs 5 "
                         f"--schemes {TOLD_SCHEMES}"),),
           comparisons=(
               Comparison("rp-flow+link, less than the best other scheme, told or not, in the "
                          "median", "-", less_than_best_other(TOLD)),
               Comparison("what no plan can beat, less than the best other scheme", "-",
                          possible_less),
               Comparison("rp-flow+link, less than rp-flow, in the median", "-",
                          less_than(TOLD, FLOW)),
               Comparison("rp-flow+link, less than rp, in the median (beside: what published "
                          "multi-pipeline methods report)", "45.4 %", less_than(TOLD, "rp")),
               Comparison("rp-flow+link, less than rp-weighted, in the median", "-",
                          less_than(TOLD, "rp-weighted")),
               Comparison("rp-flow+link, time over the least possible", "-", over_bound(TOLD)),
               Comparison("rp-flow, time over the least possible", "-", over_bound(FLOW))),
           notes="All other links are measured by `ecpipe probe`. Where `cores` shows that other "
                 "work ran on the machine, compare within a network. Why the requestor is to tell "
                 "its own link: [019](../docs/design/019-trees.md#what-is-not-known)."),
    Figure("trees-slowed", "Trees: a link that becomes slow midway", "", "up- and downlinks at "
           "random, as before. When a quarter of the block has come, the uplink on which the plan "
           "counts most has a tenth of its rate left",
           quick=(options(f"slowed --seeds 5 --block-mib 64 --runs 1 --schemes {SLOWED}"),),
           full=(options(f"slowed --seeds 5,11 --block-mib 256 --runs 5 --schemes {SLOWED}"),),
           comparisons=tuple(
               Comparison(f"{what}, time over the least possible", "-", ours) for what, ours in (
                   (f"{TOLD}: shares are weighed anew", over_least(TOLD)),
                   (f"{TOLD} with its plan kept, by the links", over_least(TOLD, "kept_s")),
                   ("rp-weighted: the straggler is left out", over_least("rp-weighted")),
                   ("rp-weighted with its plan kept, by the links",
                    over_least("rp-weighted", "kept_s")))),
           notes="By seed. The least possible: the time until the link became slow, and what is "
                 "then missing at the most that the links as they then are can carry, known at "
                 "once. Plan kept: what the links then take for the plan's own bytes."),
)
