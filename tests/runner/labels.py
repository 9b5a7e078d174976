# SPDX-License-Identifier: Apache-2.0
"""Which tests run on which build, and in which phase."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from typing import Sequence


class Phase(Enum):
    """SANITIZED runs as soon as its build stands, beside the next build. PROCESSES runs beside
    builds, which give way to it. ALONE has nothing beside it: it fills the machine."""

    SANITIZED = 1
    PROCESSES = 2
    ALONE = 3


@dataclass(frozen=True)
class Label:
    """A ctest label. `tests_at_once`: 0 is one a core. `retried`: whether a test that fails runs
    once more, alone: those wait for real processes on a machine that others may use as well. The
    others are deterministic, and one that fails once is a bug. `usual`: whether it runs when no
    label is named."""

    name: str
    presets: tuple[str, ...]
    phase: Phase = Phase.SANITIZED
    tests_at_once: int = 0
    retried: bool = False
    usual: bool = True

    def jobs(self) -> int:
        return self.tests_at_once or len(os.sched_getaffinity(0))


# Whatever starts programs starts those of the build that the quickstart makes. The simulation runs
# fibres of one thread, which tsan takes for one stack, and fuzz targets have one thread.
LABELS = (
    Label("unit", ("asan", "tsan")),
    Label("script", ("asan", "tsan")),
    Label("shim", ("asan", "tsan"), tests_at_once=1, retried=True),  # against daemons of release
    Label("sim", ("asan",)),
    Label("fuzz", ("asan",)),
    Label("libfuzzer", ("asan",)),
    Label("tidy", ("asan",)),  # its compile commands read the headers of gRPC once a group
    Label("bench", ("release",), Phase.PROCESSES),
    # More than two at once on two cores, and one waits too long for another.
    Label("cluster", ("release",), Phase.PROCESSES, 2, retried=True),
    Label("browser", ("release",), Phase.PROCESSES, 1, retried=True),
    Label("docs", ("release",), Phase.PROCESSES, 1, retried=True),
    Label("install", ("release",), Phase.PROCESSES, 1, retried=True),
    # The end-to-end part is one test, most of which waits for a mirror, dpkg and systemd.
    Label("package", ("release",), Phase.PROCESSES, 2, retried=True),
    # A quarter of an hour, in which it mostly waits for alerts: more than CI has left.
    Label("walk", ("release",), Phase.PROCESSES, 1, usual=False),
    # It compiles all programs without a compiler cache, in a Debian 13.
    Label("suite", ("release",), Phase.PROCESSES, 1, usual=False),
    # Links of a few hundred Mb/s take less than half a core, and no test reads a time but against
    # one of the same run.
    Label("lab", ("release",), Phase.PROCESSES, 1, retried=True),
    Label("quickstart", ("release",), Phase.PROCESSES, 1, retried=True),
    Label("host", ("release",), Phase.ALONE, 1, retried=True),
)
QUICK = {"dev": ("unit", "script", "sim", "fuzz")}
# Of release what tests start, of the sanitizers what runs in a test's own process.
BUILD_TARGETS = {"release": ("system_tests",), "asan": ("unit_tests",), "tsan": ("unit_tests",)}
PRESET_ORDER = ("release", "dev", "asan", "tsan")

Plan = dict[str, list[Label]]


def make_plan(presets: Sequence[str], labels: Sequence[str], quick: bool) -> Plan:
    """The labels to run on each preset. `presets` and `labels` are what the user named, if he did;
    ValueError when he named one that is not there."""
    by_name = {label.name: label for label in LABELS}
    unknown = (set(labels) - set(by_name)) | (set(presets) - set(PRESET_ORDER))
    if unknown:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}; presets: "
                         f"{', '.join(PRESET_ORDER)}; labels: {', '.join(by_name)}")
    plan: Plan = {}
    for preset in PRESET_ORDER:
        usual = [label for label in LABELS
                 if preset in label.presets and (label.usual or label.name in labels)]
        if quick or preset in QUICK:
            usual = [by_name[name] for name in QUICK.get(preset, ())]
        if presets and preset not in presets:
            continue
        if not presets and preset in QUICK and not quick:
            continue
        chosen = [label for label in usual if not labels or label.name in labels]
        if presets and labels:  # just what was asked for, usual or not
            chosen = [by_name[name] for name in labels]
        if chosen:
            plan[preset] = chosen
    return plan


def targets_of(preset: str, labels: Sequence[Label]) -> tuple[str, ...]:
    """What to build of a preset for these labels; nothing means all."""
    if any(preset not in label.presets for label in labels):
        return ()
    return BUILD_TARGETS.get(preset, ())
