# SPDX-License-Identifier: Apache-2.0
"""Several measurements that count as one: their means."""

from __future__ import annotations

import dataclasses
import statistics
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from labkit.measure import LinksAtWork, Sample
from .recorder import Recorder, Taker


@dataclass
class _OfScheme:
    """All that was measured of a scheme."""

    samples: list[Sample] = field(default_factory=list)
    directs: list[Sample] = field(default_factory=list)
    theories: list[float | None] = field(default_factory=list)
    parameters: Mapping[str, Any] | None = None
    extra: list[dict[str, float]] = field(default_factory=list)


class Means(Taker):
    """Takes samples as a Recorder does, of one transport, and gives it one for each scheme."""

    def __init__(self) -> None:
        self._schemes: dict[str, _OfScheme] = {}

    def add(self, scheme: str, sample: Sample, direct: Sample, *, theory: float | None,
            parameters: Mapping[str, Any] | None = None, **extra: float) -> None:
        of = self._schemes.setdefault(scheme, _OfScheme())
        of.samples.append(sample)
        of.directs.append(direct)
        of.theories.append(theory)
        of.parameters = parameters
        of.extra.append(extra)

    def hand_to(self, recorder: Recorder) -> None:
        for scheme, of in self._schemes.items():
            known = [theory for theory in of.theories if theory is not None]
            names = [name for name in of.extra[0] if all(name in each for each in of.extra)]
            recorder.add(
                scheme, mean_sample(of.samples), mean_sample(of.directs),
                theory=statistics.mean(known) if len(known) == len(of.theories) else None,
                parameters=of.parameters,
                **{name: statistics.mean(each[name] for each in of.extra) for name in names})


def mean_sample(samples: Sequence[Sample]) -> Sample:
    at_work = [each.links_at_work for each in samples if each.links_at_work]
    return dataclasses.replace(
        samples[0],
        seconds=statistics.mean(each.seconds for each in samples),
        cpu_seconds=statistics.mean(each.cpu_seconds for each in samples),
        busiest_link_bytes=round(statistics.mean(each.busiest_link_bytes for each in samples)),
        total_bytes=round(statistics.mean(each.total_bytes for each in samples)),
        sha256_ok=all(each.sha256_ok for each in samples),
        cores_busy=statistics.mean(each.cores_busy for each in samples),
        links_at_work=mean_of_links(at_work) if len(at_work) == len(samples) else None)


def mean_of_links(links: Sequence[LinksAtWork]) -> LinksAtWork:
    def mean(name: str) -> float:
        return statistics.mean(getattr(each, name) for each in links)
    return LinksAtWork(mean("carried_s"), mean("before_s"), mean("after_s"),
                       round(mean("retransmitted")))
