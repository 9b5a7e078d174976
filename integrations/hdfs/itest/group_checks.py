# SPDX-License-Identifier: Apache-2.0
"""Checks of block groups that lack several blocks, or have a corrupt one."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Callable

from labkit.hdfs.driver import Group
from labkit.hdfs.hadoop import await_state
from labkit.host import sha256_of

from checks import Result, served
from scenario import CELL, RECOVERED_SECONDS, CheckFailed, Scenario, expect, meta_of

TRIES = 5                 # until a repair has read a survivor that it may leave out
RUNS = 3                  # of each measurement
LIMIT_MBIT = 100          # of each helper, for measurements


def lose_at_once(scenario: Scenario, path: str, number: int, lost: list[int]) -> dict[int, Path]:
    """Of group `number` of the file. The NameNode learns of all losses before it orders anything,
    so one task is for all blocks."""
    driver = scenario.driver
    driver.do("admin", "-safemode", "enter")
    kept = scenario.lose(driver.groups(path)[number], lost)
    await_state(lambda: not set(lost) & set(driver.groups(path)[number].nodes),
                RECOVERED_SECONDS, f"the NameNode to miss blocks {lost}")
    driver.do("admin", "-safemode", "leave")
    return kept


def several_lost(count: int) -> Callable[[Scenario], Result]:
    """A task with several targets is one repair, which reads each survivor once."""
    def check(scenario: Scenario) -> Result:
        before, read_before = scenario.hdfs.totals(), scenario.middleware.bytes_read()
        path, start = scenario.big.path, time.monotonic()
        group = scenario.driver.groups(path)[-1]
        lost = sorted(group.nodes)[1:1 + count] if count < 3 else [0, 5, 8]
        scenario.await_same(group, lose_at_once(scenario, path, -1, lost))
        scenario.await_complete()
        await_state(lambda: scenario.hdfs.totals()["Repairs"] > before["Repairs"],
                    RECOVERED_SECONDS, "the DataNode to count its repair")
        used = {name: total - before[name] for name, total in scenario.hdfs.totals().items()}
        expect(used["Repairs"] == 1, f"{count} blocks were not rebuilt in one repair: {used}")
        expect(used["Fallbacks"] == used["BrokenRepairs"] == 0, f"{used}")
        result = {"seconds": round(time.monotonic() - start, 2), "lost": lost}
        if scenario.middleware.real:
            result["helpers_read_bytes"] = scenario.middleware.bytes_read() - read_before
            now = replicas(scenario, scenario.driver.groups(path)[-1])
            longest = max(file.stat().st_size for file in now.values())
            expect(result["helpers_read_bytes"] <= scenario.big.data * longest,
                   f"survivors were read more than once: {result}")
        return result
    return check


def replicas(scenario: Scenario, group: Group) -> dict[int, Path]:
    """The files of a group that is whole, by index."""
    return {index: scenario.hdfs.by_uuid(uuid).replica(group.pool, group.group_id + index)
            for index, uuid in group.nodes.items()}


def one_repair_or_one_each(scenario: Scenario) -> Result:
    """Several blocks of a group in one repair, measured against one repair of each at the same
    time: what survivors read, and how long it takes, on loopback and where helpers may send little.
    """
    if not scenario.middleware.real:
        return {}
    group = scenario.driver.groups(scenario.big.path)[0]
    result: Result = {}
    for limit in (None, LIMIT_MBIT):
        scenario.middleware.limit_helpers(limit)
        for lost in ([0, 8], [0, 5, 8]):
            for way in ("one", "each"):
                seconds, read = measured_repairs(scenario, group, lost, way)
                result[f"{len(lost)} blocks, {way}, {limit or 'no'} limit"] = {
                    "median_seconds": round(seconds, 3), "helpers_read_bytes": read}
                repairs = 1 if way == "one" else len(lost)
                length = replicas(scenario, group)[0].stat().st_size
                expect(read == repairs * scenario.big.data * length,
                       f"{repairs} repairs read {read} bytes of blocks of {length}")
    scenario.middleware.limit_helpers(None)
    return result


def measured_repairs(scenario: Scenario, group: Group, lost: list[int],
                     way: str) -> tuple[float, int]:
    """The median of the seconds, and the bytes that helpers read for the blocks once."""
    want = [sha256_of(replicas(scenario, group)[index]) for index in lost]
    before, seconds = scenario.middleware.bytes_read(), []
    for _ in range(RUNS):
        took, *got = scenario.driver.do(
            "rebuild", scenario.big.path, 0, way, *lost).split()
        expect(got == want, f"blocks {lost} of group {group.group_id} differ")
        seconds.append(float(took))
    return statistics.median(seconds), (scenario.middleware.bytes_read() - before) // RUNS


def rot(scenario: Scenario, group: Group, index: int) -> tuple[Path, Path]:
    """A bit of the replica turns, and its .meta file stays. Returns it, and a copy as it was."""
    file = replicas(scenario, group)[index]
    good = scenario.hdfs.work / f"good-{group.group_id}-{index}"
    good.mkdir()
    for part in (file, meta_of(file, group)):
        (good / part.name).write_bytes(part.read_bytes())
    with file.open("r+b") as block:
        block.seek(CELL + 12345)
        byte = block.read(1)[0]
        block.seek(CELL + 12345)
        block.write(bytes([byte ^ 0x40]))
    return file, good / file.name


def await_replaced(file: Path, good: Path) -> None:
    await_state(lambda: not file.exists() or file.read_bytes() == good.read_bytes(),
                RECOVERED_SECONDS, "the corrupt replica to go")


def corrupt_replica(scenario: Scenario) -> Result:
    """A block rots. Who reads it gets the right bytes all the same, and tells the NameNode, which
    has it rebuilt."""
    group = scenario.driver.groups(scenario.big.path)[0]
    rotten = sorted(group.nodes)[0]
    file, good = rot(scenario, group, rotten)
    result = served(scenario, lambda: scenario.cat(scenario.big))
    await_replaced(file, good)
    scenario.await_same(group, {rotten: good})
    return result


def corrupt_survivor_of_a_read(scenario: Scenario) -> Result:
    """A survivor that only helpers read rots: the reader of the lost block beside it tells the
    NameNode, which takes the replica for corrupt: it no longer counts it, and has it rebuilt."""
    if not scenario.middleware.real:
        return {}  # the stand-in checks nothing
    driver, path = scenario.driver, scenario.big.path
    driver.do("admin", "-safemode", "enter")  # it rebuilds nothing yet
    group = driver.groups(path)[0]
    lost, rotten = scenario.data_index_to_lose(group), scenario.big.data
    file, good = rot(scenario, group, rotten)
    kept = scenario.lose(group, [lost])
    result, block = {}, f"{group.pool}.blk_{group.group_id + rotten}_{group.stamp}"
    for reads in range(1, TRIES + 1):
        result = served(scenario, lambda: scenario.cat(scenario.big))
        if rotten not in driver.groups(path)[0].nodes:
            break
    else:
        raise CheckFailed(f"{block} is listed after {TRIES} reads; ECPipe knows "
                          f"{scenario.middleware.corrupt_blocks()}")
    expect(file.exists(), "the replica has gone, and was not taken for corrupt")
    driver.do("admin", "-safemode", "leave")
    await_replaced(file, good)
    scenario.await_same(group, {**kept, rotten: good})
    return {**result, "reads": reads}


def corrupt_survivor_of_a_reconstruction(scenario: Scenario) -> Result:
    """What is rebuilt beside a rotten survivor is right, and the DataNode that rebuilds tells the
    NameNode of it: nobody else reads a parity block."""
    if not scenario.middleware.real:
        return {}
    before, path = scenario.hdfs.totals(), scenario.big.path
    rotten = scenario.big.data
    group = scenario.driver.groups(path)[1]
    file, good = rot(scenario, group, rotten)
    block = f"{group.pool}.blk_{group.group_id + rotten}_{group.stamp}"
    start = time.monotonic()
    for tasks in range(1, TRIES + 1):
        lost = scenario.data_index_to_lose(scenario.driver.groups(path)[1])
        scenario.await_same(group, lose_at_once(scenario, path, 1, [lost]))
        if not file.exists() or block in scenario.middleware.corrupt_blocks():
            break
    else:
        raise CheckFailed(f"no repair has read {block}")
    await_replaced(file, good)
    scenario.await_same(group, {rotten: good})
    scenario.await_complete()
    used = {name: total - before[name] for name, total in scenario.hdfs.totals().items()}
    expect(used["Fallbacks"] == 0, f"HDFS has found it: {used}")
    return {"seconds": round(time.monotonic() - start, 2), "tasks": tasks}
