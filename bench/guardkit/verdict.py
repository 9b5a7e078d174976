# SPDX-License-Identifier: Apache-2.0
"""From the times of two builds to what became slower, by the noise of the same run.

Each build runs twice in a round, so that a run compares each build with itself as well: by how much
its first runs differ from its last ones is noise. A benchmark is slower when the ratio of medians
is over its limit, and B was slower in three quarters of the rounds. The limit is the larger of
  - what the caller cares about (`threshold`), and
  - MARGIN times the noise: that of this benchmark, but at least that of nine tenths of all
    benchmarks in the run, because two runs may agree by chance.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Sequence

from .samples import Name, Round, Samples

MARGIN = 2.0
NOISE_QUANTILE = 0.9
# The share of the rounds in which B must have been slower (or faster).
AGREEING_ROUNDS = 0.75

SLOWER, FASTER, SAME = "slower", "faster", ""


@dataclass(frozen=True)
class Comparison:
    name: Name
    a_ns: float          # median
    b_ns: float
    ratio: float         # of the medians, B over A: above 1, B is slower
    lowest: float        # of the ratios of single rounds
    highest: float
    same_build: float    # the ratio of a build with itself, the farther from 1 of the two, above 1
    limit: float
    verdict: str


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that is not exceeded by `share` of them. 0 for none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def log_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    return math.log(statistics.median(above) / statistics.median(below))


def self_noise(rounds: Sequence[Round]) -> list[float]:
    """|log| of A's first runs over its last ones, and of B's."""
    return [abs(log_ratio([side[0] for side in sides], [side[1] for side in sides]))
            for sides in ([each.a for each in rounds], [each.b for each in rounds])]


def run_noise(samples: Samples) -> float:
    """The |log| of a build's ratio with itself that nine tenths of all pairs keep."""
    return quantile([noise for rounds in samples.values() for noise in self_noise(rounds)],
                    NOISE_QUANTILE)


def compare(name: Name, rounds: Sequence[Round], threshold: float, noise_of_run: float,
            ) -> Comparison:
    a_ns, b_ns = (statistics.median(time for side in sides for time in side)
                  for sides in ([each.a for each in rounds], [each.b for each in rounds]))
    ratio = math.log(b_ns / a_ns)
    single = [log_ratio(each.b, each.a) for each in rounds]
    noise = max(self_noise(rounds))
    limit = max(math.log1p(threshold), MARGIN * max(noise, noise_of_run))
    verdict = SAME
    for sign, word in ((1, SLOWER), (-1, FASTER)):
        agreeing = sum(sign * each > 0 for each in single)
        if sign * ratio > limit and agreeing >= AGREEING_ROUNDS * len(rounds):
            verdict = word
    return Comparison(name, a_ns, b_ns, math.exp(ratio), math.exp(min(single)),
                      math.exp(max(single)), math.exp(noise), math.exp(limit), verdict)


def compare_all(samples: Samples, threshold: float, noise_of_run: float) -> list[Comparison]:
    return [compare(name, rounds, threshold, noise_of_run) for name, rounds in samples.items()]
