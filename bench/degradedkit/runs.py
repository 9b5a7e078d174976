# SPDX-License-Identifier: Apache-2.0
"""Runs settings over seeds, and keeps what came out: many figures share a setting."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from .scenarios import Planning, Setting, normal, run
from .schedulers import Kind
from .simulator import Outcome

# No job of the normal mode has a degraded task, so that all algorithms do the same.
ANY_ALGORITHM = "LF"


@dataclass(frozen=True)
class Sample:
    """One run. Seconds."""

    runtimes: tuple[float, ...]      # of each job
    degraded_read: float             # mean; 0 where there is none
    remote: int
    degraded: int
    crossing_bytes: float            # of reads, over all links with a limit


def sample_of(outcome: Outcome) -> Sample:
    reads = outcome.degraded_reads
    return Sample(tuple(outcome.runtimes), statistics.mean(reads) if reads else 0.0,
                  outcome.launched[Kind.REMOTE], outcome.launched[Kind.DEGRADED],
                  sum(outcome.read_bytes))


class Runs:
    """Samples by setting and algorithm, one for each of the seeds 0, 1, ..."""

    def __init__(self, planner: Planning) -> None:
        self._planner = planner
        self._kept: dict[tuple[Setting, str, int], Sample] = {}
        self.done = 0

    def samples(self, setting: Setting, algorithm: str, seeds: int) -> list[Sample]:
        return [self._sample(setting, algorithm, seed) for seed in range(seeds)]

    def _sample(self, setting: Setting, algorithm: str, seed: int) -> Sample:
        key = setting, algorithm, seed
        if key not in self._kept:
            self._kept[key] = sample_of(run(setting, seed, algorithm, self._planner))
            self.done += 1
        return self._kept[key]

    def row(self, setting: Setting, algorithm: str, seeds: int, **names: object,
            ) -> dict[str, object]:
        """All samples of a setting, with the runtimes by those of the normal mode."""
        samples = self.samples(setting, algorithm, seeds)
        normals = self.samples(normal(setting), ANY_ALGORITHM, seeds)
        row: dict[str, object] = {
            **names, "algorithm": algorithm,
            "normalized": [[a / b for a, b in zip(sample.runtimes, other.runtimes)]
                           for sample, other in zip(samples, normals)],
            "runtime_s": [list(sample.runtimes) for sample in samples],
            "degraded_read_s": [sample.degraded_read for sample in samples],
            "remote": [sample.remote for sample in samples],
            "degraded": [sample.degraded for sample in samples]}
        if setting.striped_parts:  # all reads of a striped file cross links; of others few do
            row["crossing_bytes"] = statistics.mean(sample.crossing_bytes for sample in samples)
        return row
