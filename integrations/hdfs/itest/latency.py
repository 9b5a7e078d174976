# SPDX-License-Identifier: Apache-2.0
"""How long small positional reads of a lost block take, through ECPipe and by HDFS's own decoding:
`itest.sh --latency READS`. On loopback, so that what is measured is the work of all processes: each
row has their CPU time a read beside the time that the reader waits."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from labkit.process import cpu_seconds

from scenario import BLOCK_BYTES, CELL, File, Scenario

NATIVE = "hdfs"
ROUNDS = 5                     # the ways take turns, so that all see the same neighbours
WARM_UP = 300                  # reads, until a JVM has compiled what is on the way
FILE_SYSTEMS = {True: "io.ecpipe.hdfs.EcpipeFileSystem",
                False: "org.apache.hadoop.hdfs.DistributedFileSystem"}
POLICIES = {"/rs63": ("RS-6-3-1024k", 6, 3), "/rs32": ("RS-3-2-1024k", 3, 2)}
GROUPS = 3                     # of each file


def put_files(scenario: Scenario) -> None:
    for folder, (policy, data, parity) in POLICIES.items():
        file = File(f"{folder}/latency", GROUPS * data * BLOCK_BYTES, len(scenario.files) + 1,
                    data, parity)
        scenario.driver.do("policy", folder, policy)
        scenario.driver.do("put", file.path, file.bytes, file.seed)
        scenario.settle(file)
        scenario.files.append(file)


def measure(scenario: Scenario, reads: int, read_bytes: int,
            schemes: list[str]) -> list[dict[str, Any]]:
    """A row a file and way."""
    scenario.driver.do("admin", "-safemode", "enter")
    node, _ = scenario.node_with_data_of_most_files()
    cells = {file.path: cells_on(scenario, file, node.uuid) for file in scenario.files}
    scenario.kill_node(node)
    scenario.await_removed(node)
    ways = [NATIVE, *schemes]
    rows = []
    for file in scenario.files:
        nanos: dict[str, list[int]] = defaultdict(list)
        cpu: dict[str, Counter[str]] = defaultdict(Counter)
        for round_of_all in range(ROUNDS + 1):
            for way in ways:
                count = WARM_UP if round_of_all == 0 else reads // ROUNDS
                before = cpu_millis(scenario)
                taken = read(scenario, file, way, cells[file.path], count, read_bytes)
                if round_of_all > 0:
                    nanos[way] += taken
                    cpu[way].update(cpu_millis(scenario))
                    cpu[way].subtract(before)
        for way in ways:
            row = {"file": file.path, "way": way, **quantiles(nanos[way])}
            row["of_hdfs"] = round(row["median_ms"] / quantiles(nanos[NATIVE])["median_ms"], 2)
            row["cpu_ms"] = {who: round(millis / len(nanos[way]), 2)
                             for who, millis in cpu[way].items()}
            print(row, flush=True)
            rows.append(row)
    return rows


def cpu_millis(scenario: Scenario) -> Counter[str]:
    """Of all processes so far, by their kind."""
    return Counter({who: 1000 * seconds for who, seconds in {
        "client": scenario.driver.cpu_seconds(),
        "DataNodes": sum(cpu_seconds(node.daemon.pid) for node in scenario.hdfs.live()),
        **scenario.middleware.cpu_seconds()}.items()})


def cells_on(scenario: Scenario, file: File, uuid: str) -> list[int]:
    """Where in the file the cells of this DataNode's data blocks begin."""
    rows = range(BLOCK_BYTES // CELL)
    return [number * file.data * BLOCK_BYTES + (row * file.data + index) * CELL
            for number, group in enumerate(scenario.driver.groups(file.path))
            for index, holder in group.nodes.items() if holder == uuid and index < file.data
            for row in rows]


def read(scenario: Scenario, file: File, way: str, cells: list[int], count: int,
         read_bytes: int) -> list[int]:
    driver = scenario.driver
    driver.do("set", "fs.hdfs.impl", FILE_SYSTEMS[way != NATIVE])
    driver.do("set", "ecpipe.scheme", "auto" if way == NATIVE else way)
    before = driver.counters()
    answer = driver.do("latencies", file.path, file.seed, read_bytes, CELL, count, *cells)
    used = driver.counters() - before
    if way != NATIVE and (used.repairs != count or used.fallbacks > 0):
        raise RuntimeError(f"{count} reads by {way}, but {used}")
    return [int(word) for word in answer.split()]


def quantiles(nanos: list[int]) -> dict[str, Any]:
    ordered = sorted(nanos)
    at = {name: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
          for name, share in (("median_ms", 0.5), ("p90_ms", 0.9), ("p99_ms", 0.99))}
    return {"reads": len(nanos), **{name: round(value / 1e6, 3) for name, value in at.items()}}
