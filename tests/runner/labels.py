# SPDX-License-Identifier: Apache-2.0
"""Which tests run on which build, how many at once, and which every change must pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Sequence


@dataclass(frozen=True)
class Label:
    """A ctest label. `cores`: how many one of its tests keeps busy, builds beside it not counted;
    tests run beside each other as long as their sum fits the machine. `retried`: whether a test
    that fails runs once more, alone: those wait for real processes on a machine that others may use
    as well. The others are deterministic, and one that fails once is a bug. `rare`: the second
    tier, of what finds rare things or needs long: it runs with --all, or when the label is named.
    `targets`: what to build for it; () is all."""

    name: str
    presets: tuple[str, ...]
    cores: float = 1.0
    retried: bool = False
    rare: bool = False
    targets: tuple[str, ...] = ("system_tests",)


# Whatever starts programs starts those of the build that the quickstart makes. The simulation runs
# fibres of one thread, which tsan takes for one stack, and fuzz targets have one thread.
#
# Of the tests that fit, one of the uppermost label starts. So what takes long and mostly waits is
# above: the many short tests of the others fill the cores beside it.
LABELS = (
    # It compiles all programs without a compiler cache, in a Debian 13.
    Label("suite", ("release",), rare=True),
    # It mostly waits for alerts.
    Label("walk", ("release",), cores=0.5, rare=True),
    Label("host", ("release",), retried=True),
    Label("releases", ("release",), retried=True, rare=True),
    Label("quickstart", ("release",), retried=True),
    # Most of it waits for a mirror, dpkg and systemd.
    Label("package", ("release",), cores=0.5, retried=True),
    # Links of a few hundred Mb/s take less than half a core.
    Label("lab", ("release",), cores=0.5, retried=True),
    Label("experiments", ("release",), retried=True, rare=True),
    Label("shim", ("asan", "tsan"), retried=True, targets=("unit_tests",)),
    Label("sim", ("asan",), targets=("unit_tests",)),
    # It reads generated headers, one process at a time.
    Label("tidy", ("asan",), targets=("unit_tests",)),
    Label("unit", ("asan", "tsan"), targets=("unit_tests",)),
    Label("fuzz", ("asan",), targets=("unit_tests",)),
    Label("libfuzzer", ("asan",), rare=True, targets=("fuzzers",)),
    # Plans and stories are of one thread, and a newcomer has the preset release.
    Label("script", ("release", "asan"), targets=("script_tests",)),
    Label("browser", ("release",), cores=0.5, retried=True),
    Label("docs", ("release",), cores=0.5, retried=True),
    Label("install", ("release",), retried=True),
    Label("field", ("release",), cores=0.5, retried=True),
    Label("patterns", ("release",), retried=True, rare=True),
    # Daemons wait for each other: half a core, so that three at once leave some for a build.
    Label("cluster", ("release",), cores=0.66, retried=True),
    Label("bench", ("release",)),
)
RANKS = {label.name: rank for rank, label in enumerate(LABELS)}
QUICK = {"dev": ("unit", "script", "sim", "fuzz")}
PRESET_ORDER = ("release", "dev", "asan", "tsan")

Plan = dict[str, list[Label]]


def make_plan(presets: Sequence[str], labels: Sequence[str], quick: bool = False,
              rare: bool = False) -> Plan:
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
                 if preset in label.presets and (rare or not label.rare or label.name in labels)]
        if quick or preset in QUICK:
            # Without a sanitizer units mostly wait.
            usual = [replace(by_name[name], cores=0.5) for name in QUICK.get(preset, ())]
        if presets and preset not in presets:
            continue
        if not presets and preset in QUICK and not quick:
            continue
        chosen = [label for label in usual if not labels or label.name in labels]
        if presets and labels:  # just what was asked for, usual or not
            chosen = [by_name[name] for name in labels]
        if chosen:
            plan[preset] = chosen
    if not plan:
        raise ValueError("nothing to run: no such label on such a preset")
    return plan


def targets_of(preset: str, labels: Sequence[Label]) -> tuple[str, ...]:
    """What to build of a preset for these labels; nothing means all."""
    if any(preset not in label.presets and label.name not in QUICK.get(preset, ())
           for label in labels):
        return ()
    return tuple(sorted({target for label in labels for target in label.targets}))
