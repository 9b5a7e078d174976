# SPDX-License-Identifier: Apache-2.0
"""What the daemons have logged, as a history that `ecpipe_history` judges (tests/sim/history.h):
the one that judges the simulation's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Iterator

from labkit.cluster import Cluster
from labkit.process import LabError
from .ledger import Ledger

JUDGE = "ecpipe_history"
JUDGE_SECONDS = 120.0
# Parts are told of at their beginning, too.
HELPER_SETTINGS = {"log": {"level": "debug"}}

_LINE = re.compile(r"\S+ [A-Z]+ ([a-z_]+\.[a-z_]+) (.*)")
_FIELD = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|\S*)')

Event = dict[str, Any]


def judge(cluster: Cluster, ledger: Ledger) -> int:
    """How many events there were. What must not have happened is a finding."""
    events = list(_events(cluster))
    program = cluster.bin_dir / JUDGE
    if not program.exists():
        raise LabError(f"{program} is missing: build the target {JUDGE}")
    done = cluster.requestor.run([program], check=False, timeout=JUDGE_SECONDS,
                                 text_input="".join(json.dumps(event) + "\n" for event in events))
    if done.returncode not in (0, 1):
        raise LabError(f"{JUDGE}: exit code {done.returncode}: {done.stderr}")
    for fault in done.stdout.splitlines():
        ledger.find("history", fault=fault)
    return len(events)


def _events(cluster: Cluster) -> Iterator[Event]:
    """In order for each daemon, which is all that the rules need."""
    yield from coordinator_events(log_lines(cluster.coordinator.log_file), set(cluster.node_ids))
    for node, helper in cluster.helpers.items():
        yield from helper_events(node, log_lines(helper.log_file))


def coordinator_events(lines: Iterator[tuple[str, dict[str, str]]],
                       nodes: set[str]) -> Iterator[Event]:
    """The mover has one recovery at a time."""
    recovery = 0
    for event, fields in lines:
        if event == "recovery.begin":
            recovery = int(fields["recovery"])
        elif event == "recovery.end":
            recovery = 0
        elif event == "repair.resume":
            yield {"kind": "goes_on", "repair": fields["repair"],
                   "attempt": int(fields["attempt"]), "bytes": int(fields["missing"])}
        elif event == "repair.end" and fields["state"] == "done":
            hosts = fields["requestor"].split(",")
            if nodes.issuperset(hosts):
                for block, node in zip(fields["block"].split(","), hosts, strict=True):
                    yield {"kind": "moved", "block": block, "node": node, "recovery": recovery}


def helper_events(node: str, lines: Iterator[tuple[str, dict[str, str]]]) -> Iterator[Event]:
    begun: set[tuple[str, str]] = set()
    for event, fields in lines:
        if event == "helper.serving":
            begun.clear()
            yield {"kind": "node_starts", "node": node}
        elif event == "part.begin" or event == "part.end" and fields["status"] == "OK":
            part = fields["repair"], fields["attempt"]
            named = {"node": node, "repair": part[0], "attempt": int(part[1])}
            if part not in begun:  # a part may end before the line of its beginning is written
                begun.add(part)
                yield {"kind": "part_begins", **named}
            if event == "part.end":
                yield {"kind": "part_ends", **named}


def log_lines(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The event and the fields of each line. A daemon that was killed may have left half a line."""
    with path.open(errors="replace") as log:
        for line in log:
            if (found := _LINE.match(line)) and line.endswith("\n"):
                yield found[1], {name: value.strip('"') for name, value in
                                 _FIELD.findall(found[2])}
