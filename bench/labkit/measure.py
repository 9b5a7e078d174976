# SPDX-License-Identifier: Apache-2.0
"""One measurement of one repair, and what the measurements of many runs come to."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Sequence

from . import direct
from .cluster import REQUESTOR, Cluster
from .netns import LinkBytes, Network
from .process import LabError, run

MIB = 1 << 20
DIRECT = "direct"
DIRECT_SECONDS = 300.0
REPAIR_SECONDS = 300.0


@dataclass(frozen=True)
class Sample:
    """One repair, or one direct send, as it went."""

    scheme: str
    transport: str
    seconds: float
    cpu_seconds: float        # of all processes that took part
    busiest_link_bytes: int   # over all nodes, the larger of what went up and what came down
    total_bytes: int          # over all links, each byte counted where it is sent
    sha256_ok: bool
    detail: dict[str, Any]    # what the command itself reported


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def traffic(before: Mapping[str, LinkBytes], after: Mapping[str, LinkBytes],
            ) -> dict[str, LinkBytes]:
    return {node: after[node] - before[node] for node in after if node in before}


def with_requestor(helpers: Mapping[str, LinkBytes]) -> dict[str, LinkBytes]:
    """Adds the requestor, which keeps no counters: it received what the helpers did not."""
    missing = sum(link.up for link in helpers.values()) - sum(
        link.down for link in helpers.values())
    return {**helpers, REQUESTOR: LinkBytes(0, missing)}


def busiest(links: Mapping[str, LinkBytes]) -> int:
    return max((max(link.up, link.down) for link in links.values()), default=0)


def total(links: Mapping[str, LinkBytes]) -> int:
    return sum(link.up for link in links.values())


def measure_repair(cluster: Cluster, block_id: str, expected_sha256: str, output: Path, *,
                   scheme: str, transport: str, slice_bytes: int) -> Sample:
    """Runs `ecpipe repair`, counts, and checks the bytes that it wrote. In namespaces the links are
    counted; on loopback there are no links, and the helpers' own counters stand in for them."""
    network = cluster.network if isinstance(cluster.network, Network) else None
    count = network.link_bytes if network else cluster.link_bytes
    output.unlink(missing_ok=True)
    cluster.wait_idle()
    links_before, cpu_before = count(), cluster.cpu_seconds()
    detail = cluster.cli_json("repair", block_id, "-o", output, "--scheme", scheme, "--transport",
                              transport, "--slice-size", slice_bytes, timeout=REPAIR_SECONDS)
    cpu_daemons = cluster.cpu_seconds() - cpu_before
    cluster.wait_idle()
    links = traffic(links_before, count())
    if network is None:
        links = with_requestor(links)
    matches = sha256_of(output) == expected_sha256
    output.unlink()
    return Sample(scheme, transport, float(detail["seconds"]),
                  cpu_daemons + float(detail["cpu_seconds"]), busiest(links), total(links),
                  matches, detail)


def measure_direct_send(network: Network, sender: str, receiver: str, file: Path,
                        expected_sha256: str) -> Sample:
    """Sends `file` from one node's namespace to another's; see direct.py."""
    program = [sys.executable, direct.__file__]
    before = network.link_bytes()
    sending = subprocess.Popen(
        [*network.command(sender), *program, "send", str(file), network.address(sender)],
        stdout=subprocess.PIPE, text=True)
    try:
        port = json.loads(first_line(sending, "the direct sender"))["port"]
        received = json.loads(run(
            [*network.command(receiver), *program, "receive", network.address(sender), str(port),
             str(file.stat().st_size)], timeout=DIRECT_SECONDS).stdout)
        sent = json.loads(sending.communicate(timeout=DIRECT_SECONDS)[0])
    finally:
        sending.kill()
        sending.wait()
    links = traffic(before, network.link_bytes())
    return Sample(DIRECT, "tcp", received["seconds"],
                  received["cpu_seconds"] + sent["cpu_seconds"], busiest(links), total(links),
                  received["sha256"] == expected_sha256, {})


def first_line(process: subprocess.Popen[str], what: str) -> str:
    """A child that ends without a word closes its output, so this does not wait forever."""
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise LabError(f"{what} ended with exit code {process.wait()}")
    return line


def theory_timeslots(scheme: str, k: int, slices: int) -> float | None:
    """The paper's times, in units of one block over one link (§2.2, §3.2, §4). None: not known."""
    if scheme.startswith("rp") or scheme == "bare-chain":
        return 1 + (k - 1) / slices
    return {
        DIRECT: 1.0,
        "conventional": float(k),
        "ppr": float(math.ceil(math.log2(k + 1))),
    }.get(scheme)


def result_row(experiment: str, parameters: Mapping[str, Any], samples: Sequence[Sample],
               direct_sends: Sequence[Sample]) -> dict[str, Any]:
    """The samples of one scheme as one row. `direct_sends` are those of the same runs, in order:
    `ratios` pairs each sample with the direct send of its run, on the machine as it was then."""
    seconds = [sample.seconds for sample in samples]
    ratios = [sample.seconds / direct.seconds for sample, direct in zip(samples, direct_sends)]
    median = statistics.median(seconds)
    return {
        "experiment": experiment,
        "scheme": samples[0].scheme,
        "parameters": {**parameters, "transport": samples[0].transport},
        "seconds": seconds,
        "median_s": median,
        "spread_s": max(seconds) - min(seconds),
        "ratio_to_direct": median / statistics.median(d.seconds for d in direct_sends),
        "ratios": ratios,
        "cpu_s": statistics.median(sample.cpu_seconds for sample in samples),
        "busiest_link_bytes": max(sample.busiest_link_bytes for sample in samples),
        "total_bytes": max(sample.total_bytes for sample in samples),
        "sha256_ok": all(sample.sha256_ok for sample in samples),
    }


def machine() -> dict[str, Any]:
    """What the numbers depend on. No host name: results are published."""
    model = next((line.split(":", 1)[1].strip()
                  for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release().split("-")[0],
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")}


def commit(repository: Path) -> str:
    """The revision that is being measured, with "+changes" when the tree differs from it."""
    git = ["git", "-C", str(repository)]
    try:
        revision = run([*git, "rev-parse", "--short=12", "HEAD"]).stdout.strip()
        dirty = run([*git, "status", "--porcelain", "--untracked-files=no"]).stdout.strip()
    except LabError:
        return "unknown"
    return revision + ("+changes" if dirty else "")


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Aligned; words to the left, numbers to the right."""
    def numeric(column: int) -> bool:
        return all(row[column][:1].isdigit() or row[column] in ("", "-") for row in rows)
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    for line in [header, *rows]:
        cells = [cell.rjust(width) if numeric(i) else cell.ljust(width)
                 for i, (cell, width) in enumerate(zip(line, widths))]
        print("  ".join(cells).rstrip())
