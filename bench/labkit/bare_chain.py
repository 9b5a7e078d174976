# SPDX-License-Identifier: Apache-2.0
"""The path of a repair walked by the least that can walk it: see bench/bare_chain.cc."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path

from .cluster import REQUESTOR, Cluster
from .measure import Sample, busiest, first_line, sha256_of, total, traffic
from .netns import Network
from .process import LabError

BARE_CHAIN = "bare-chain"
CHAIN_SECONDS = 150.0  # more than the programs allow themselves


def measure_bare_chain(cluster: Cluster, network: Network, program: Path, block_id: str,
                       expected_sha256: str, output: Path, slice_bytes: int) -> Sample:
    """Repairs the block over the helpers, in the order and with the coefficients of an RP plan."""
    plan = cluster.cli_json("plan", block_id, "--scheme", "rp", "--slice-size", slice_bytes)
    size = str(plan["bytes"])
    cluster.wait_idle()
    before = network.link_bytes()
    processes: list[subprocess.Popen[str]] = []

    def start(node: str, *arguments: str) -> subprocess.Popen[str]:
        processes.append(subprocess.Popen(
            [*network.command(node), str(program), size, str(slice_bytes), *arguments],
            stdout=subprocess.PIPE, text=True))
        return processes[-1]

    with contextlib.ExitStack() as stack:
        stack.callback(lambda: [process.kill() for process in processes])
        upstream = "-"
        for hop in plan["lanes"][0]["hops"][:-1]:
            helper = start(hop["node"], upstream, str(cluster.block_file(hop["block_id"])),
                           str(hop["coefficients"][0]))
            port = json.loads(first_line(helper, "a hop of the bare chain"))["port"]
            upstream = f"{network.address(hop['node'])}:{port}"
        start(REQUESTOR, upstream, str(output))
        reports = [json.loads(process.communicate(timeout=CHAIN_SECONDS)[0] or "{}")
                   for process in processes]
    if any(process.returncode for process in processes):
        raise LabError("a hop of the bare chain failed")
    links = traffic(before, network.link_bytes())
    matches = sha256_of(output) == expected_sha256
    output.unlink()
    return Sample(BARE_CHAIN, "tcp", reports[-1]["seconds"],
                  sum(report["cpu_seconds"] for report in reports), busiest(links), total(links),
                  matches, {})
