# SPDX-License-Identifier: Apache-2.0
"""The checks, in the order in which they run. Each takes the scenario and returns what it measured;
CheckFailed says what is wrong."""

from __future__ import annotations

import re
import socket
import threading
import time
from typing import Any, Callable

from labkit.hdfs.hadoop import Resources, await_state
from labkit.process import LabError

from scenario import (
    BLOCK_BYTES, CELL, RECOVERED_SECONDS, TIMEOUT_SECONDS, CheckFailed, File, Scenario, expect,
    same)

Result = dict[str, Any]
SEEKS = 240
SEEK_OVERHEAD = 1.15
REPORTED_SECONDS = 60          # until helpers and the NameNode have told of a new block
LOOK_SECONDS = 4.0
CLOSED_SECONDS = 30            # until HDFS has closed its own connections
THREADS_MORE = 40              # those of HDFS's own pools, which end after a minute without work
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")
OUR_TROUBLE = re.compile(LOG_LINE.pattern + r"(WARN|ERROR) \S+ ecpipe: ")


def healthy_reads(scenario: Scenario) -> Result:
    """A healthy file is read as without us."""
    before = scenario.driver.counters()
    for file in scenario.files:
        scenario.cat(file)
    used = scenario.driver.counters() - before
    expect(used.repairs == used.fallbacks == 0, f"a healthy read used {used}")
    return {"files": len(scenario.files)}


def served(scenario: Scenario, action: Callable[[], Any]) -> Result:
    """Runs it and sees that lost blocks came through ECPipe and from nowhere else, by the client's
    counters and by the helpers'."""
    read_before, before = scenario.middleware.bytes_read(), scenario.driver.counters()
    start = time.monotonic()
    action()
    seconds = time.monotonic() - start
    used = scenario.driver.counters() - before
    expect(used.fallbacks == 0, f"HDFS had to help itself: {used}")
    expect(used.repairs > 0, "nothing came through ECPipe")
    result = {"seconds": round(seconds, 2), "repairs": used.repairs,
              "requested_bytes": used.requested_bytes, "repaired_bytes": used.repaired_bytes}
    if scenario.middleware.real:
        # At least one survivor's bytes for each that is lost; a whole group needs k.
        read = scenario.middleware.bytes_read() - read_before
        expect(read >= used.repaired_bytes, f"helpers read {read} bytes for {used}")
        result["helpers_read_bytes"] = read
    return result


def node_killed(scenario: Scenario) -> Result:
    """kill -9 of a DataNode and its helper; the NameNode, in safe mode, repairs nothing yet."""
    scenario.driver.do("admin", "-safemode", "enter")
    node, files = scenario.node_with_data_of_most_files()
    scenario.kill_node(node)

    def read_all() -> None:
        for file in scenario.files:
            scenario.cat(file)
    result = served(scenario, read_all)
    expect(result["repairs"] >= len(files), f"{result} for blocks of {files}")
    return {**result, "files": files}


def positional_reads(scenario: Scenario) -> Result:
    big = scenario.big
    return served(scenario, lambda: scenario.driver.do("pread", big.path, big.seed, 40, 1))


def seeks(scenario: Scenario) -> Result:
    """Whoever seeks asks for little more than is used."""
    big = scenario.big
    result = served(scenario, lambda: scenario.driver.do("seek", big.path, big.seed, SEEKS))
    expect(result["requested_bytes"] <= SEEK_OVERHEAD * result["repaired_bytes"], f"{result}")
    return result


def dfs_cat(scenario: Scenario) -> Result:
    big = scenario.big

    def read() -> None:
        expect(scenario.driver.do("dfs-cat", big.path, big.seed) == "0", "hdfs dfs -cat failed")
    return served(scenario, read)


def file_context(scenario: Scenario) -> Result:
    big = scenario.big

    def read() -> None:
        answer = scenario.driver.do("context", big.path, big.seed)
        expect(answer.endswith("io.ecpipe.hdfs.EcpipeFs"), answer)
    return served(scenario, read)


def many_threads(scenario: Scenario) -> Result:
    """As MapReduce reads: many threads with positional reads over one large file."""
    big = scenario.big
    return served(scenario, lambda: scenario.driver.do("pread", big.path, big.seed, 10, 12))


def removed_from_namenode(scenario: Scenario) -> Result:
    """The NameNode lists no location at all for the lost blocks."""
    scenario.await_removed(scenario.dead[0])
    return served(scenario, lambda: scenario.cat(scenario.big))


def repaired_by_name(scenario: Scenario) -> Result:
    """`ecpipe repair BLOCK`, without facts: helpers have told where blocks are, and the NameNode
    what groups are."""
    if not scenario.middleware.real:
        return {}
    dead, out, blocks = scenario.dead[0], scenario.hdfs.work / "by-name", 0
    for file in scenario.files:
        for group in scenario.driver.groups(file.path):
            for block in range(group.group_id, group.group_id + file.data + file.parity):
                old = dead.replica(group.pool, block)
                if old.exists():
                    scenario.middleware.repair_by_name(
                        f"{group.pool}.blk_{block}_{group.stamp}", out)
                    expect(same(out, old), f"block {block} differs from what was lost")
                    blocks += 1
    expect(blocks > 0, "the dead node had no block")
    return {"blocks": blocks}


def open_file_by_name(scenario: Scenario) -> Result:
    """A group that is whole is known before its file is closed."""
    if not scenario.middleware.real:
        return {}
    file = File("/rs63/open", 6 * BLOCK_BYTES + 3 * CELL, len(scenario.files) + 1, 6, 3)
    scenario.driver.do("hold", file.path, file.bytes, file.seed)
    group, out = scenario.driver.groups(file.path)[0], scenario.hdfs.work / "by-name"
    index = scenario.data_index_to_lose(group)
    block = group.group_id + index

    def repaired() -> bool:
        try:
            scenario.middleware.repair_by_name(f"{group.pool}.blk_{block}_{group.stamp}", out)
        except LabError:
            return False
        return True
    await_state(repaired, REPORTED_SECONDS, f"block {block} of an open file to be known")
    expect(same(out, scenario.node_of(group, index).replica(group.pool, block)),
           f"block {block} of an open file differs")
    scenario.driver.do("release")
    scenario.settle(file)
    scenario.files.append(file)
    scenario.cat(file)
    # A node that dies now has what it has told of: later checks count that.
    blocks = sum(len(group.nodes) for each in scenario.files
                 for group in scenario.driver.groups(each.path))
    await_state(lambda: scenario.middleware.reported_blocks() == blocks, REPORTED_SECONDS,
                f"reports of all {blocks} blocks")
    return {"blocks": blocks}


def helper_killed_in_mid_read(scenario: Scenario) -> Result:
    """Another helper goes while its bytes are on their way; the DataNode beside it lives."""
    big, driver = scenario.big, scenario.driver
    group = driver.groups(big.path)[-1]
    survivor = scenario.node_of(group, scenario.data_index_to_lose(group))
    before, start = driver.counters(), time.monotonic()
    driver.send("halves", big.path, big.seed)
    expect(driver.line() == "half", "the reader did not get to the half")
    scenario.middleware.kill_beside(survivor)
    driver.send("go on")
    driver.answer()
    used = driver.counters() - before
    expect(used.repairs > 0, "nothing came through ECPipe")
    return {"seconds": round(time.monotonic() - start, 2), "repairs": used.repairs,
            "fallbacks": used.fallbacks}


def node_rebuilt(scenario: Scenario) -> Result:
    """The NameNode has the dead node's blocks rebuilt, and they are what they were."""
    dead, start = scenario.dead[0], time.monotonic()
    scenario.driver.do("admin", "-safemode", "leave")
    scenario.await_complete()
    seconds = time.monotonic() - start
    rebuilt = 0
    for file in scenario.files:
        for group in scenario.driver.groups(file.path):
            for index in group.nodes:
                old = dead.replica(group.pool, group.group_id + index)
                if old.exists():
                    scenario.await_same(group, {index: old})
                    rebuilt += 1
    totals = scenario.hdfs.totals()
    expect(rebuilt > 0 and totals["Repairs"] >= rebuilt, f"{rebuilt} blocks, but {totals}")
    if scenario.middleware.real:
        loss: dict[str, Any] = {}

        def shown() -> bool:
            loss.update(scenario.middleware.loss(dead))
            return loss["outstanding"]["blocks"] == 0
        await_state(shown, RECOVERED_SECONDS, "recover-node to show that all is rebuilt")
        expect(loss["rebuilt"]["blocks"] == loss["lost"]["blocks"] == rebuilt,
               f"{rebuilt} blocks, but recover-node says {loss}")
    return {"seconds": round(seconds, 2), "blocks": rebuilt, **totals}


def silent_endpoint(scenario: Scenario) -> Result:
    """ECPipe takes connections and says nothing: a read is late by one timeout, and right."""
    scenario.middleware.stop()
    scenario.await_listed(scenario.big)
    scenario.driver.do("admin", "-safemode", "enter")
    group = scenario.driver.groups(scenario.big.path)[1]
    lost = scenario.data_index_to_lose(group)
    scenario.lose(group, [lost])
    blocks = scenario.data_blocks_on(group.nodes[lost], scenario.big)
    endpoint = scenario.client_node.socket
    native = timed_fallback(scenario, blocks)
    endpoint.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(endpoint))
        listener.listen(64)
        late = timed_fallback(scenario, blocks)
    endpoint.unlink()
    # Most of a second timeout is for a busy machine.
    expect(late < native + 1.7 * TIMEOUT_SECONDS,
           f"{late:.2f} s with a silent endpoint, {native:.2f} s without one")
    scenario.driver.do("admin", "-safemode", "leave")
    return {"native_seconds": round(native, 2), "silent_seconds": round(late, 2)}


def timed_fallback(scenario: Scenario, blocks: int) -> float:
    """`blocks`: of the file on the node that lacks one. Who has been refused that one does not ask
    the node for the others. However often HDFS asks for a block, it falls back once."""
    before, start = scenario.driver.counters(), time.monotonic()
    scenario.cat(scenario.big)
    seconds = time.monotonic() - start
    used = scenario.driver.counters() - before
    expect(used.repairs == 0 and 1 <= used.fallbacks <= blocks,
           f"{blocks} blocks without ECPipe: {used}")
    return seconds


def middleware_down(scenario: Scenario) -> Result:
    """With nobody at the sockets DataNodes rebuild natively."""
    before, start = scenario.hdfs.totals(), time.monotonic()
    group = scenario.driver.groups(scenario.big.path)[-1]
    scenario.await_same(group, scenario.lose(group, [sorted(group.nodes)[2]]))
    scenario.await_complete()
    after = scenario.hdfs.totals()
    expect(after["Fallbacks"] > before["Fallbacks"], f"{before} -> {after}")
    expect(after["Repairs"] == before["Repairs"], f"{before} -> {after}")
    return {"seconds": round(time.monotonic() - start, 2)}


def short_groups_rebuilt(scenario: Scenario) -> Result:
    """Groups that end in their first row lack data blocks. Their reconstruction leaves nothing open
    in a DataNode, neither in the one that executes it nor in a target."""
    before = open_now(scenario)
    repaired, start = scenario.hdfs.totals()["Repairs"], time.monotonic()
    lost = [(group, scenario.lose(group, [sorted(group.nodes)[0]]))
            for file in scenario.files for group in scenario.driver.groups(file.path)
            if group.bytes <= (file.data - 1) * CELL]
    for group, kept in lost:
        scenario.await_same(group, kept)
    scenario.await_complete()
    repaired = scenario.hdfs.totals()["Repairs"] - repaired
    expect(repaired >= len(lost) > 0, f"{len(lost)} blocks lost, {repaired} repaired")
    result = {"seconds": round(time.monotonic() - start, 2), "blocks": len(lost)}
    await_nothing_open(scenario, before)
    return result


def open_now(scenario: Scenario) -> dict[str, Resources]:
    """Of each DataNode the least that it has open at any time within some seconds: HDFS opens
    connections of its own and closes them."""
    least: dict[str, Resources] = {}
    deadline = time.monotonic() + LOOK_SECONDS
    while time.monotonic() < deadline:
        for node in scenario.hdfs.live():
            least[node.name] = least.get(node.name, node.resources()).least(node.resources())
        threading.Event().wait(LOOK_SECONDS / 20)
    return least


def await_nothing_open(scenario: Scenario, before: dict[str, Resources]) -> None:
    """Until each DataNode has had no more open than before; one that came later does not count."""
    grown = {node.name: node for node in scenario.hdfs.live() if node.name in before}
    worst: dict[str, str] = {}

    def none_grown() -> bool:
        for name, node in list(grown.items()):
            had, has = before[name], node.resources()
            if has.sockets <= had.sockets and has.descriptors <= had.descriptors:
                del grown[name]
            worst[name] = f"{name} had {had}, has {has}"
        return not grown
    try:
        await_state(none_grown, CLOSED_SECONDS, "connections to be closed")
    except LabError:
        raise CheckFailed(f"after {CLOSED_SECONDS} s {[worst[name] for name in grown]}") from None


def nothing_left(scenario: Scenario, baseline: dict[str, Resources]) -> Result:
    """No connection, no file and no thread of ours is left in a DataNode, and HDFS is healthy."""
    for file in scenario.files:
        scenario.cat(file)
    answer = scenario.driver.do("fsck", "/")
    expect(answer == "0 healthy", f"fsck: {answer}")
    await_nothing_open(scenario, baseline)
    worst = max(node.resources().threads - baseline[node.name].threads
                for node in scenario.hdfs.live() if node.name in baseline)
    expect(worst <= THREADS_MORE, f"a DataNode has {worst} threads more than at the start")
    return {"threads_more": worst}


def no_stack_traces(scenario: Scenario) -> Result:
    """We expect every failure that this test makes, so none is worth a stack trace in a log."""
    logs = sorted((scenario.hdfs.work / "logs").glob("*.log"))
    found = []
    for log in logs:
        lines = log.read_text(errors="replace").splitlines()
        found += [f"{log.name}: {line}; {after}" for line, after in zip(lines, lines[1:])
                  if OUR_TROUBLE.search(line) and not LOG_LINE.match(after)]
    expect(not found, f"{len(found)} stack traces: {found[:3]}")
    return {"logs": len(logs)}


def decommissioned(scenario: Scenario) -> Result:
    """A DataNode leaves in order, as ever: its blocks are elsewhere before it goes, and nobody has
    to read degraded afterwards. A new node comes first, for the widest groups need them all."""
    scenario.add_node("dn-new")
    node, _ = scenario.node_with_data_of_most_files()
    had = [(group, index) for file in scenario.files for group in scenario.driver.groups(file.path)
           for index, uuid in group.nodes.items() if uuid == node.uuid]
    start = time.monotonic()
    scenario.hdfs.exclude([node])
    scenario.driver.do("admin", "-refreshNodes")
    await_state(lambda: scenario.hdfs.admin_state(node) == "Decommissioned", RECOVERED_SECONDS,
                f"{node.name} decommissioned")
    seconds = time.monotonic() - start
    scenario.kill_node(node)
    scenario.await_removed(node)
    before = scenario.driver.counters()
    for group, index in had:
        scenario.await_same(group, {index: node.replica(group.pool, group.group_id + index)})
    for file in scenario.files:
        scenario.cat(file)
    used = scenario.driver.counters() - before
    expect(used.repairs == used.fallbacks == 0, f"reads after a decommissioning: {used}")
    return {"seconds": round(seconds, 2), "blocks": len(had)}


def no_sessions(scenario: Scenario) -> Result:
    await_state(lambda: scenario.middleware.sessions() == 0, 30, "all sessions ended")
    return {}
