# SPDX-License-Identifier: Apache-2.0
"""Settings of the user's own, from the command line."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from typing import Any, Mapping, Sequence

from experiments.results import print_table
from labkit.process import LabError

from .planner import Planner
from .runs import Runs
from .scenarios import FAILURES, LINKS, Setting
from .schedulers import ALGORITHMS
from .summary import mean

WORDS = {"failure": FAILURES, "links": LINKS}


def parse_changes(texts: Sequence[str]) -> dict[str, list[Any]]:
    """["rack_mbit=250,500"]: what each field is to be in turn."""
    types = {field.name: type(getattr(Setting(), field.name)) for field in fields(Setting)}
    changes: dict[str, list[Any]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        if name not in types or not values:
            raise LabError(f"--set {text}: there are {', '.join(types)}")
        changes[name] = [_value(name, types[name], value) for value in values.split(",")]
    return changes


def _value(name: str, kind: type, text: str) -> Any:
    try:
        value = text == "yes" if kind is bool else kind(text)
    except ValueError:
        raise LabError(f"--set {name}: {text} is no {kind.__name__}") from None
    if kind is bool and text not in ("yes", "no"):
        raise LabError(f"--set {name}: {text} is neither yes nor no")
    if value not in WORDS.get(name, (value,)):
        raise LabError(f"--set {name}: {text} is none of {', '.join(WORDS[name])}")
    return value


def print_settings(changes: Mapping[str, Sequence[Any]], planner: Planner, seeds: int) -> None:
    runs, body = Runs(planner), []
    for values in itertools.product(*changes.values()):
        try:
            setting = replace(Setting(), **dict(zip(changes, values)))
            rows = [runs.row(setting, algorithm, seeds) for algorithm in ALGORITHMS]
        except ValueError as error:  # blocks that have no place
            raise LabError(str(error)) from None
        times = [sum(jobs[0] for jobs in row["runtime_s"]) / seeds  # type: ignore[attr-defined]
                 for row in rows]
        body.append([*map(str, values), *(f"{mean(row):.3f}" for row in rows),
                     *(f"{seconds:.0f}" for seconds in times)])
    print("the first job's runtime, by that without failure, and in seconds:")
    print_table([*changes, *ALGORITHMS, *(f"{name}, s" for name in ALGORITHMS)], body)
