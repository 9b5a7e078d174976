# SPDX-License-Identifier: Apache-2.0
"""From the times of two builds to what became slower, by the noise of the same run.

What else runs on a machine only ever makes a benchmark slower, often for half of a run, so that
medians of one build differ by a third while its quiet times, the lower decile, agree within some
per cent (docs/micro-benchmarks.md). Medians are reported; quiet times decide.

Each build runs twice in a round, so that a run compares each build with itself as well: by how much
its first runs differ from its last ones is noise. A benchmark is slower when the ratio of quiet
times is over its limit, the larger of
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
QUIET_QUANTILE = 0.1

SLOWER, FASTER, SAME = "slower", "faster", ""


@dataclass(frozen=True)
class Comparison:
    name: Name
    a_ns: float          # median
    b_ns: float
    ratio: float         # of the medians, B over A: above 1, B is slower
    lowest: float        # of the ratios of single rounds
    highest: float
    quiet_ratio: float   # of the quiet times
    same_build: float    # that of a build with itself, the farther from 1 of the two, above 1
    limit: float
    verdict: str


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that is not exceeded by `share` of them. 0 for none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def log_quiet_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    return math.log(quantile(above, QUIET_QUANTILE) / quantile(below, QUIET_QUANTILE))


def self_noise(rounds: Sequence[Round]) -> list[float]:
    """|log| of A's first runs over its last ones, and of B's."""
    return [abs(log_quiet_ratio([side[0] for side in sides], [side[1] for side in sides]))
            for sides in ([each.a for each in rounds], [each.b for each in rounds])]


def run_noise(samples: Samples) -> float:
    """The |log| of a build's ratio with itself that nine tenths of all pairs keep."""
    return quantile([noise for rounds in samples.values() for noise in self_noise(rounds)],
                    NOISE_QUANTILE)


def compare(name: Name, rounds: Sequence[Round], threshold: float, noise_of_run: float,
            ) -> Comparison:
    a_times = [time for each in rounds for time in each.a]
    b_times = [time for each in rounds for time in each.b]
    a_ns, b_ns = statistics.median(a_times), statistics.median(b_times)
    single = [sum(each.b) / sum(each.a) for each in rounds]
    quiet = log_quiet_ratio(b_times, a_times)
    noise = max(self_noise(rounds))
    limit = max(math.log1p(threshold), MARGIN * max(noise, noise_of_run))
    verdict = SAME
    for sign, word in ((1, SLOWER), (-1, FASTER)):
        if sign * quiet > limit:
            verdict = word
    return Comparison(name, a_ns, b_ns, b_ns / a_ns, min(single), max(single), math.exp(quiet),
                      math.exp(noise), math.exp(limit), verdict)


def compare_all(samples: Samples, threshold: float, noise_of_run: float) -> list[Comparison]:
    return [compare(name, rounds, threshold, noise_of_run) for name, rounds in samples.items()]
