# SPDX-License-Identifier: Apache-2.0
"""What the samples of many runs come to: one row for each scheme and set of parameters."""

from __future__ import annotations

import json
import statistics
from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Mapping

from labkit.measure import DIRECT, Sample
from labkit.process import LabError


@dataclass
class Series:
    """Samples that make one row, each with the direct send of its run, on the machine as it was
    then, and with the ratio that theory gives it, if it gives any."""

    scheme: str
    parameters: dict[str, Any]
    samples: list[Sample] = field(default_factory=list)
    directs: list[Sample] = field(default_factory=list)
    theories: list[float | None] = field(default_factory=list)
    extra: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def row(self, experiment: str) -> dict[str, Any]:
        seconds = [sample.seconds for sample in self.samples]
        ratios = [sample.seconds / direct.seconds
                  for sample, direct in zip(self.samples, self.directs)]
        median = statistics.median(seconds)
        row = {
            "experiment": experiment,
            "scheme": self.scheme,
            "parameters": {**self.parameters, "transport": self.samples[0].transport},
            "seconds": seconds,
            "median_s": median,
            "spread_s": max(seconds) - min(seconds),
            "ratio_to_direct": median / statistics.median(d.seconds for d in self.directs),
            "ratios": ratios,
            "cpu_s": statistics.median(sample.cpu_seconds for sample in self.samples),
            "cores_busy": statistics.median(sample.cores_busy for sample in self.samples),
            "busiest_link_bytes": max(sample.busiest_link_bytes for sample in self.samples),
            "total_bytes": max(sample.total_bytes for sample in self.samples),
            "sha256_ok": all(sample.sha256_ok for sample in self.samples),
            **{name: statistics.median(values) for name, values in self.extra.items()},
            **self._link_fields()}
        theories = [theory for theory in self.theories if theory is not None]
        if len(theories) == len(self.samples):
            row["theory_ratio"] = statistics.median(theories)
            row["theories"] = theories
            # Of each run by itself: theory differs by run where helpers are chosen at random.
            row["over_theory"] = statistics.median(
                ratio / theory for ratio, theory in zip(ratios, theories)) - 1
        return row

    def _link_fields(self) -> dict[str, float]:
        """Of the busiest link; see LinksAtWork."""
        links = [sample.links_at_work for sample in self.samples if sample.links_at_work]
        if not links:
            return {}
        return {f"link_{name}": statistics.median(getattr(each, name) for each in links)
                for name in ("carried_s", "before_s", "after_s", "retransmitted")}


class Taker(ABC):
    """Takes samples: a Recorder, or Means, which hands their means to one."""

    @abstractmethod
    def add(self, scheme: str, sample: Sample, direct: Sample, *, theory: float | None,
            parameters: Mapping[str, Any] | None = None, **extra: float) -> None:
        """`theory`: the ratio to the direct send that is expected; `parameters`: those that this
        row has beside the common ones; `extra`: further figures."""

    def add_direct(self, direct: Sample, *, parameters: Mapping[str, Any] | None = None,
                   **extra: float) -> None:
        self.add(DIRECT, direct, direct, theory=1.0 if "direct_wire_s" in extra else None,
                 parameters=parameters, **extra)


class Recorder(Taker):
    """Prints each sample as it comes. One with wrong bytes ends the experiment. Of further figures
    the rows have the medians."""

    def __init__(self, experiment: str, parameters: Mapping[str, Any]) -> None:
        self.experiment = experiment
        self.parameters = dict(parameters)  # those that all rows have
        self._series: dict[tuple[str, str, str], Series] = {}

    def add(self, scheme: str, sample: Sample, direct: Sample, *, theory: float | None,
            parameters: Mapping[str, Any] | None = None, **extra: float) -> None:
        given = dict(parameters or {})
        key = (scheme, sample.transport, json.dumps(given, sort_keys=True))
        series = self._series.setdefault(key, Series(scheme, {**self.parameters, **given}))
        if not sample.sha256_ok:
            raise LabError(f"{scheme} over {sample.transport} rebuilt wrong bytes")
        series.samples.append(sample)
        series.directs.append(direct)
        series.theories.append(theory)
        for name, value in extra.items():
            series.extra[name].append(value)
        shown = " ".join(f"{name}={value}" for name, value in given.items())
        print(f"run {len(series.samples)}: {scheme:16} {sample.transport:5} "
              f"{sample.seconds:8.3f} s  {shown}", flush=True)

    def rows(self) -> list[dict[str, Any]]:
        return [series.row(self.experiment) for series in self._series.values()]
