# SPDX-License-Identifier: Apache-2.0
"""The path of a repair walked by the least that can walk it: see bench/bare_chain.cc."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from labkit.cluster import REQUESTOR, Cluster
from labkit.daemon import Daemon
from labkit.measure import Meter, Sample, busiest, first_report, total
from labkit.process import LabError
from labkit.stripes import Block

BARE_CHAIN = "bare-chain"
BARE_CHAIN_CRC = "bare-chain-crc"  # the same, with checksums as the engine has them
BARE_CHAINS = (BARE_CHAIN, BARE_CHAIN_CRC)
PROGRAM = "bare_chain"
CHAIN_SECONDS = 150.0  # more than the programs allow themselves


def measure_bare_chain(cluster: Cluster, lost: Block, slice_bytes: int, scheme: str) -> Sample:
    """Repairs the block over the helpers, in the order and with the coefficients of an RP plan."""
    plan = cluster.cli_json("plan", lost.block_id, "--scheme", "rp", "--slice-size",
                            str(slice_bytes))
    output = cluster.base(REQUESTOR) / "repaired"
    processes: list[Daemon] = []

    def start(node: str, *arguments: str | Path) -> Daemon:
        host = cluster.network.host(node)
        log = cluster.base(node) / "logs" / f"bare-chain-{node}.log"
        host.remove(log)
        processes.append(Daemon(f"{node} of the bare chain", [
            host.program(cluster.bin_dir / PROGRAM),
            *(["--checksums"] if scheme == BARE_CHAIN_CRC else []),
            str(plan["bytes"]), str(slice_bytes), *arguments], log, host=host))
        processes[-1].start()
        return processes[-1]

    meter = Meter(cluster)
    with meter.watching(), contextlib.ExitStack() as stack:
        stack.callback(lambda: [process.kill() for process in processes])
        upstream = "-"
        for hop in plan["lanes"][0]["hops"][:-1]:
            helper = start(hop["node"], upstream,
                           cluster.block_path(hop["node"], hop["block_id"]),
                           str(hop["coefficients"][0]))
            port = first_report(helper)["port"]
            upstream = f"{cluster.network.address(hop['node'])}:{port}"
        start(REQUESTOR, upstream, output)
        codes = [process.reap(CHAIN_SECONDS) for process in processes]
    if any(codes):
        raise LabError("a hop of the bare chain failed")
    reports = [json.loads(process.host.read_text(process.log_file).splitlines()[-1])
               for process in processes]
    right = cluster.requestor.sha256(output) == lost.sha256
    cluster.requestor.remove(output)
    return Sample(scheme, "tcp", reports[-1]["seconds"],
                  sum(report["cpu_seconds"] for report in reports),
                  busiest(meter.links), total(meter.links), right, {}, meter.cores_busy)
