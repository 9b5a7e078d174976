# SPDX-License-Identifier: Apache-2.0
"""The experiment `hdfs`: reads and recovery in a real HDFS-3, by itself and through ECPipe (§6.3).

Every DataNode has a block of each group. When one is lost, its blocks can be rebuilt only on a node
that is new, as in the paper; that one executes HDFS's reconstruction tasks, through ECPipe or not.
Each measurement of a recovery has a new node of its own, and then the lost one comes back with its
blocks. `hdfs` is HDFS alone: no plugin, no file system of ours.

A client reads the bytes of the lost block (cell by cell, with positional reads) and a whole group
(from begin to end). The NameNode's throttles are raised (hdfs/hadoop.py, FAST), and a recovery is
measured from when the NameNode may schedule it until the last block and its checksums are in place.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from pathlib import Path
from typing import Any, Iterator

from labkit.cluster import COORDINATOR, REQUESTOR, Cluster, node_names
from labkit.daemon import stop_all
from labkit.hdfs.driver import Driver, Group
from labkit.hdfs.hadoop import FILE_SYSTEM, PLUGIN, DataNode, Hdfs, await_state
from labkit.hdfs.toolchain import NEWEST, Toolchain, Unavailable
from labkit.host import sha256_of
from labkit.links import HEADERS_FACTOR, Links
from labkit.measure import Meter, Sample, measure_direct_send
from labkit.netns import Network
from labkit.process import LabError, wait_until
from labkit.stripes import MIB, Block, add_runs_argument
from .one_block import LOST_NODE, add_rate_argument
from .recorder import Recorder
from .testbed import Testbed

EXPERIMENT = "hdfs"
NEEDS_SHAPING = True
NATIVE, HEALTHY = "hdfs", "healthy"
WRITER = "writer"          # a client whose links have no limit
CELL = MIB
GROUPS_FILE, READ_FILES = "/groups", 8
NAMENODE_SECONDS = 120.0   # until it has noticed what happened
RECOVERY_SECONDS = 900.0
# Of those who wait for ECPipe, and of its hops for each other: in a conventional recovery eight
# blocks times k streams come down one link, and TCP lets some of them starve for ten seconds.
PATIENCE_SECONDS = 60.0
RECOVERY, LOST_BLOCK, WHOLE_GROUP = "recovery", "lost block", "whole group"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hadoop", default=NEWEST, metavar="VERSION",
                        help="release of Hadoop (default %(default)s)")
    parser.add_argument("--policies", default="RS-6-3,RS-10-4",
                        help="of HDFS, comma-separated, without their cell size, which is 1 MiB "
                             "(default %(default)s)")
    parser.add_argument("--groups", type=int, default=8,
                        help="number of block groups; each loses a block (default %(default)s)")
    parser.add_argument("--block-mib", type=int, default=8,
                        help="size of a block of a group in MiB (default %(default)s)")
    parser.add_argument("--schemes", default=f"{NATIVE},conventional,rp",
                        help="schemes to measure, separated by commas; hdfs is HDFS without ECPipe "
                             "(default %(default)s)")
    add_rate_argument(parser, default=100)
    add_runs_argument(parser)


def run(arguments: argparse.Namespace, testbed: Testbed) -> list[dict[str, Any]]:
    """Raises LabError when bytes are wrong, and where there is no JDK or no Maven."""
    try:
        tools = Toolchain(arguments.hadoop)
    except Unavailable as reason:
        raise LabError(str(reason)) from None
    rows = []
    for policy in arguments.policies.split(","):
        rows += run_policy(arguments, testbed, tools, policy)
    return rows


def shape(policy: str) -> tuple[int, int]:
    """k and the blocks of a group."""
    words = policy.split("-")
    if len(words) != 3 or words[0] != "RS" or not all(word.isdigit() for word in words[1:]):
        raise LabError(f"--policies {policy}: give names of HDFS policies such as RS-6-3")
    return int(words[1]), int(words[1]) + int(words[2])


def run_policy(arguments: argparse.Namespace, testbed: Testbed, tools: Toolchain,
               policy: str) -> list[dict[str, Any]]:
    k, n = shape(policy)
    schemes = arguments.schemes.split(",")
    nodes = node_names(n)
    spares = [f"new-{i + 1}" for i in range(arguments.runs * len(schemes))]
    rate = arguments.rate_mbit or None
    links = Links(rate, node_mbit={WRITER: (None, None)})
    with testbed.network([COORDINATOR, REQUESTOR, WRITER, *nodes, *spares], links) as place:
        with Lost(arguments, testbed.bin_dir, tools, *place, policy=policy, k=k,
                  nodes=nodes) as lost:
            recorder = Recorder(EXPERIMENT, {
                "hadoop": arguments.hadoop, "code": policy, "n": n, "k": k,
                "rate_mbit": rate or 0, "block_bytes": lost.block_bytes,
                "congestion_control": lost.cluster.network.congestion_control})
            for _ in range(arguments.runs):
                lost.measure(recorder, schemes, spares)
            return [with_rate(row, lost) for row in recorder.rows()]


def with_rate(row: dict[str, Any], lost: Lost) -> dict[str, Any]:
    if row["parameters"].get("case", "").endswith(RECOVERY):
        row["mib_per_s"] = len(lost.blocks) * lost.block_bytes / MIB / row["median_s"]
    return row


class Lost:
    """An HDFS whose LOST_NODE goes and comes back, with ECPipe beside it."""

    def __init__(self, arguments: argparse.Namespace, bin_dir: Path, tools: Toolchain,
                 network: Network, work: Path, *, policy: str, k: int, nodes: list[str]) -> None:
        self.k = k
        self.block_bytes = arguments.block_mib * MIB
        self._groups = arguments.groups
        self._nodes = len(nodes)
        self._policy = f"{policy}-{CELL // 1024}k"
        self._bin_dir = bin_dir
        self.hdfs = Hdfs(tools, work, network=network, settings={
            "dfs.blocksize": self.block_bytes, "ecpipe.timeout-ms": int(PATIENCE_SECONDS * 1000),
            # A task that takes longer would be given out again.
            "dfs.namenode.reconstruction.pending.timeout-sec": int(RECOVERY_SECONDS)})
        for name in nodes:
            self.hdfs.add_datanode(name, {})
        self._node = self.hdfs.datanodes[nodes.index(LOST_NODE)]
        self._stack = contextlib.ExitStack()
        self.blocks: dict[Path, Group] = {}  # on LOST_NODE

    def __enter__(self) -> Lost:
        with contextlib.ExitStack() as stack:
            stack.callback(self.hdfs.stop)
            self.hdfs.start()
            self.cluster = stack.enter_context(Cluster(
                self._bin_dir, self.hdfs.work, [node.name for node in self.hdfs.datanodes],
                network=self.hdfs.network, endpoints=True,
                helper_settings={"helper": {"store": "hdfs"}}, patience_s=PATIENCE_SECONDS))
            self._reader = stack.enter_context(self._driver(REQUESTOR, {
                **FILE_SYSTEM, "ecpipe.endpoint": f"unix:{self.cluster.socket_of(REQUESTOR)}"},
                held_mib=self.k * self.block_bytes // MIB))
            with self._driver(WRITER, {}) as writer:
                self._write(writer)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    @contextlib.contextmanager
    def _driver(self, node: str, properties: dict[str, str],
                held_mib: int = 0) -> Iterator[Driver]:
        driver = Driver(self.hdfs, self.hdfs.network.host(node),
                        self.hdfs.configuration(f"client-{node}", properties),
                        self.hdfs.work / "logs" / f"driver-{node}.log",
                        held_mib=held_mib)
        try:
            yield driver
        finally:
            driver.stop()

    # ---- Files -----------------------------------------------------------------------------

    def _write(self, writer: Driver) -> None:
        """One file of all groups, and one of a group whose lost block has data, for reads."""
        group_bytes = self.k * self.block_bytes
        writer.do("policy", "/", self._policy)
        groups = self._put(writer, GROUPS_FILE, self._groups * group_bytes, 1)
        for self.seed in range(2, 2 + READ_FILES):
            self.file = f"/read-{self.seed}"
            groups += self._put(writer, self.file, group_bytes, self.seed)
            self._lost_index = self._index(groups[-1])
            if self._lost_index < self.k:
                break
        else:
            raise LabError(f"HDFS placed no data of {READ_FILES} files in a row on {LOST_NODE}")
        self.blocks = {self._node.replica(group.pool, group.group_id + self._index(group)): group
                       for group in groups}
        self.sha256 = {old.name: self._checksums(old, group)
                       for old, group in self.blocks.items()}
        other, group = self.hdfs.datanodes[1], groups[0]
        index = next(i for i, uuid in group.nodes.items() if uuid == other.uuid)
        file = other.replica(group.pool, group.group_id + index)
        self._healthy = Block(str(file.relative_to(other.volume)), other.name, sha256_of(file),
                              self.block_bytes)
        self._healthy_index = next(i for i, uuid in groups[-1].nodes.items()
                                   if i < self.k and uuid != self._node.uuid)

    def _groups_of(self, path: str) -> list[Group]:
        return self._reader.groups(path)

    def _put(self, writer: Driver, path: str, size: int, seed: int) -> list[Group]:
        """A file's groups, when all DataNodes have reported their blocks."""
        writer.do("put", path, size, seed)
        await_state(lambda: all(len(group.nodes) == self._nodes
                                for group in self._groups_of(path)),
                    NAMENODE_SECONDS, f"all blocks of {path}")
        return self._groups_of(path)

    def _index(self, group: Group) -> int:
        """Of LOST_NODE's block."""
        return next(i for i, uuid in group.nodes.items() if uuid == self._node.uuid)

    @staticmethod
    def _checksums(file: Path, group: Group) -> tuple[str, str]:
        """Of the block and of its .meta file."""
        return sha256_of(file), sha256_of(file.with_name(f"{file.name}_{group.stamp}.meta"))

    # ---- Measuring -------------------------------------------------------------------------

    def measure(self, recorder: Recorder, schemes: list[str], spares: list[str]) -> None:
        """One run: reads by each scheme while the node is away, and a recovery by each."""
        direct = measure_direct_send(self.cluster, self._healthy, REQUESTOR)
        rate = recorder.parameters["rate_mbit"] * 1e6
        fields = {"direct_s": direct.seconds, **({
            "direct_wire_s": self.block_bytes * HEADERS_FACTOR * 8 / rate} if rate else {})}
        recorder.add_direct(direct, **fields)

        def add(what: str, scheme: str, sample: Sample, theory: float) -> None:
            recorder.add(scheme, sample, direct, theory=theory if rate else None,
                         parameters={"case": f"{recorder.parameters['code']}, {what}"}, **fields)
        self._use(NATIVE)
        self._cells(self._healthy_index, 1)  # the JVM's first is slow
        add(LOST_BLOCK, HEALTHY, self._timed(
            HEALTHY, lambda: self._cells(self._healthy_index)), 1.0)
        add(WHOLE_GROUP, HEALTHY, self._timed(HEALTHY, self._whole), float(self.k))
        for number, scheme in enumerate(schemes):
            self._lose()
            if number == 0:
                self._measure_reads(schemes, add)
            add(RECOVERY, scheme, self._recover(scheme, spares.pop(0)),
                float(len(self.blocks) * self._received(scheme)))
            self._bring_back()

    def _received(self, scheme: str) -> int:
        """Blocks that come down one link for each that is rebuilt there."""
        return self.k if scheme in (NATIVE, "conventional") else 1

    def _measure_reads(self, schemes: list[str], add: Any) -> None:
        for scheme in schemes:
            self._use(scheme)
            self._cells(self._lost_index, 1)
            before = self._reader.counters()
            lost = self._timed(scheme, lambda: self._cells(self._lost_index))
            whole = self._timed(scheme, self._whole)
            used = self._reader.counters() - before
            if used.fallbacks or (used.repairs > 0) == (scheme == NATIVE):
                raise LabError(f"reads by {scheme} did not go as they should: {used}")
            add(LOST_BLOCK, scheme, lost, float(self._received(scheme)))
            # The other data blocks, and what stands for the lost one.
            add(WHOLE_GROUP, scheme, whole, float(
                self.k - 1 + (1 if scheme == NATIVE else self._received(scheme))))

    def _use(self, scheme: str) -> None:
        self._reader.do("set", "fs.hdfs.impl", "org.apache.hadoop.hdfs.DistributedFileSystem"
                        if scheme == NATIVE else FILE_SYSTEM["fs.hdfs.impl"])
        if scheme != NATIVE:
            self._reader.do("set", "ecpipe.scheme", scheme)

    def _cells(self, index: int, count: int | None = None) -> float:
        return float(self._reader.do(
            "cells", self.file, self.seed, CELL, index * CELL, self.k * CELL,
            count or self.block_bytes // CELL))

    def _whole(self) -> float:
        return float(self._reader.do("whole", self.file, self.seed))

    def _timed(self, scheme: str, action: Any) -> Sample:
        """The reader has compared the bytes: an error is a LabError here."""
        meter, jvms = Meter(self.cluster), self._jvm_seconds()
        with meter.watching():
            start_ms = time.time() * 1000
            seconds = action()
        return meter.sample(scheme, "tcp", seconds, True, {"started_unix_ms": start_ms},
                            self._jvm_seconds() - jvms)

    def _jvm_seconds(self) -> float:
        return self._reader.cpu_seconds() + sum(
            daemon.cpu_seconds() for daemon in self.hdfs.daemons())

    def _lose(self) -> None:
        """Until the NameNode has given the node up. Nothing is rebuilt: there is no place."""
        self._node.daemon.kill()
        self.cluster.helpers[LOST_NODE].kill()
        await_state(lambda: not any(self._listed(self._node)), NAMENODE_SECONDS, "the node's loss")

    def _listed(self, node: DataNode) -> list[bool]:
        """For each group, whether the NameNode knows of a block of it there."""
        return [node.uuid in group.nodes.values() for path in (GROUPS_FILE, self.file)
                for group in self._groups_of(path)]

    def _recover(self, scheme: str, name: str) -> Sample:
        """In safe mode the NameNode schedules nothing, until the new node and its helper are up."""
        self._reader.do("admin", "-safemode", "enter")
        node = self.hdfs.add_datanode(
            name, {} if scheme == NATIVE else {**PLUGIN, "ecpipe.scheme": scheme})
        live = len(self.hdfs.live())
        node.daemon.start()
        self.hdfs.wait_live(live + 1)
        node.read_uuid()
        self.cluster.add_helper(name)
        meter, jvms = Meter(self.cluster), self._jvm_seconds()
        with meter.watching():
            start, start_ms = time.monotonic(), time.time() * 1000
            self._reader.do("admin", "-safemode", "leave")
            wait_until(lambda: self._rebuilt(node), RECOVERY_SECONDS, f"recovery by {scheme}")
            seconds = time.monotonic() - start
        jvms = self._jvm_seconds() - jvms
        right = all(self._checksums(self._at(node, old), group) == self.sha256[old.name]
                    for old, group in self.blocks.items())
        repairs = node.counters().get("Repairs", 0)
        if repairs != (0 if scheme == NATIVE else len(self.blocks)):
            raise LabError(f"recovery by {scheme}: {repairs} of {len(self.blocks)} blocks came "
                           "through ECPipe")
        return meter.sample(scheme, "tcp", seconds, right, {"started_unix_ms": start_ms}, jvms)

    def _at(self, node: DataNode, old: Path) -> Path:
        return node.volume / old.relative_to(self._node.volume)

    def _rebuilt(self, node: DataNode) -> bool:
        return all(self._at(node, old).exists() for old in self.blocks)

    def _bring_back(self) -> None:
        """The new node goes for good; the other one has its blocks still. One after the other, or
        the NameNode would delete the copy that it finds superfluous. In safe mode, or it would have
        blocks rebuilt on the returned node before that has reported them, and then count them as
        under way for as long as a task may take."""
        self._reader.do("admin", "-safemode", "enter")
        new = self.hdfs.datanodes.pop()
        stop_all([new.daemon])
        self.cluster.helpers[new.name].kill()
        await_state(lambda: not any(self._listed(new)), NAMENODE_SECONDS, "the new node's loss")
        self._node.daemon.start()
        self.cluster.helpers[LOST_NODE].restart()
        await_state(lambda: all(self._listed(self._node)), NAMENODE_SECONDS, "the node's return")
        self._reader.do("admin", "-safemode", "leave")
