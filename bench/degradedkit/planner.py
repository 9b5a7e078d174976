# SPDX-License-Identifier: Apache-2.0
"""Plans from ECPipe's own planners: asks the program plan_bytes (bench/plan_bytes.cc), one line for
one plan."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Sequence

from labkit.process import LabError

from .links import Stream
from .placement import Cluster, Code, Stripe

PROGRAM = "plan_bytes"


class Planner:
    """The program, until the block is left. Not for several threads."""

    def __init__(self, bin_dir: Path) -> None:
        self._path = bin_dir / PROGRAM
        self._cluster: Cluster | None = None
        self._known: dict[str, str] = {}

    def __enter__(self) -> Planner:
        try:
            self._process = subprocess.Popen([self._path], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, text=True, bufsize=1)
        except OSError as error:
            raise LabError(f"{self._path} does not start: {error}; build it with `cmake --build "
                           f"--preset release --target {PROGRAM}`") from None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()  # then it ends
        self._process.stdout.close()
        self._process.wait()

    def cpu_seconds(self) -> float:
        """What the program has taken so far."""
        stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def ask(self, question: str) -> str:
        """What follows "ok"; LabError otherwise."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(question + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = ""
        if not answer.startswith("ok"):
            raise LabError(f"{PROGRAM}: {answer.strip() or 'has ended'}; asked: {question}")
        return answer[2:].strip()

    def describe(self, cluster: Cluster) -> None:
        if cluster != self._cluster:
            racks = ",".join(map(str, cluster.racks_of_nodes()))
            self.ask(f"cluster {racks} {cluster.node_rate:.0f} {cluster.rack_rate:.0f}")
            self._cluster, self._known = cluster, {}

    def streams(self, scheme: str, code: Code, stripe: Stripe, failed: int,
                survivors: Sequence[int], requestor: int, count: int) -> tuple[Stream, ...]:
        """The plan that rebuilds `count` bytes of block `failed` at a node, in the cluster that was
        described last. `survivors`: in order of preference, as the coordinator gives them."""
        question = (f"plan {scheme} {code.name()} {count} {failed} "
                    f"{','.join(map(str, survivors))} {','.join(map(str, stripe))} {requestor}")
        answer = self._known.get(question)
        if answer is None:
            answer = self._known[question] = self.ask(question)
        return parse_streams(answer)

    def undecodable(self, code: str, most: int) -> frozenset[int]:
        """Patterns of at most `most` lost blocks (bit i: block i) that lose data."""
        return frozenset(int(word, 16) for word in self.ask(f"undecodable {code} {most}").split())


def parse_streams(text: str) -> tuple[Stream, ...]:
    """"0>3:128 1>3:128": from, to, bytes."""
    found = []
    for word in text.split():
        ends, _, count = word.partition(":")
        sender, _, receiver = ends.partition(">")
        found.append((int(sender), int(receiver), int(count)))
    return tuple(found)
