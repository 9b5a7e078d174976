# SPDX-License-Identifier: Apache-2.0
"""The cluster with its files, and the steps that several checks share."""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from labkit.hdfs.driver import Driver, Group
from labkit.hdfs.hadoop import PLUGIN, DataNode, Hdfs, await_state
from labkit.process import LabError

from middleware import Middleware

CELL = 1 << 20
BLOCK_BYTES = 4 << 20
# Of ECPipe; the default of 2 s is short for two cores that all JVMs and daemons share.
TIMEOUT_SECONDS = 10
RECOVERED_SECONDS = 90
SETTLED_SECONDS = 15           # until late reports are in, and the NameNode has removed copies
WRITES = 4                     # of a file, until each of its blocks is on one DataNode


class CheckFailed(Exception):
    pass


def expect(holds: bool, message: str) -> None:
    if not holds:
        raise CheckFailed(message)


@dataclass(frozen=True)
class File:
    path: str
    bytes: int
    seed: int
    data: int    # blocks of a whole group
    parity: int


@dataclass
class Scenario:
    hdfs: Hdfs
    driver: Driver
    middleware: Middleware
    client_node: DataNode  # the one whose endpoint the client uses; it never goes
    files: list[File] = field(default_factory=list)
    dead: list[DataNode] = field(default_factory=list)

    @property
    def big(self) -> File:
        return max(self.files, key=lambda file: file.bytes)

    def put_files(self) -> None:
        """Sizes around every boundary: nothing, a byte, a cell, a row, several groups."""
        row = 6 * CELL
        sizes = {
            ("rs63", "RS-6-3-1024k", 6, 3): [
                0, 1, CELL - 1, CELL, CELL + 1, row - 1, row, row + 1,
                2 * 6 * BLOCK_BYTES + 13_300_001],
            ("rs32", "RS-3-2-1024k", 3, 2): [1, 3 * CELL + 1, 13_000_001],
            ("xor", "XOR-2-1-1024k", 2, 1): [CELL + 1, 5_000_001],
            ("legacy", "RS-LEGACY-6-3-1024k", 6, 3): [9_000_001],
        }
        if len(self.hdfs.datanodes) >= 15:
            sizes["rs104", "RS-10-4-1024k", 10, 4] = [1, 20_000_001]
        for (folder, policy, data, parity), lengths in sizes.items():
            self.driver.do("policy", f"/{folder}", policy)
            for length in lengths:
                file = File(f"/{folder}/{length}", length, len(self.files) + 1, data, parity)
                self._put(file)
                self.files.append(file)
        for file in self.files:
            self.settle(file)

    def _put(self, file: File) -> None:
        self.driver.do("put", file.path, file.bytes, file.seed)

    def settle(self, file: File) -> None:
        """Until each block is on one DataNode and no other. When a DataNode tells late of a new
        block, the NameNode has the block built again; where that copy gets beside another block of
        its group, the NameNode, which keeps one block of a group for a storage, never removes it,
        and what checks count would be wrong. Such a file is written again."""
        for write in range(WRITES):
            if write > 0:
                self._put(file)
            try:
                await_state(lambda: self._each_block_once(file), SETTLED_SECONDS, file.path)
                return
            except LabError:
                continue
        raise LabError(f"{file.path}: blocks on several DataNodes, or on none, {WRITES} times")

    def _each_block_once(self, file: File) -> bool:
        state = self.hdfs.state()
        if state["PendingReplicationBlocks"] > 0 or state["UnderReplicatedBlocks"] > 0:
            return False  # another copy may be on its way
        return all(len(group.nodes) == expected_blocks(file, group) and all(
            [node.uuid for node in self.hdfs.datanodes
             if node.replica(group.pool, group.group_id + index).exists()] == [uuid]
            for index, uuid in group.nodes.items()) for group in self.driver.groups(file.path))

    def cat(self, file: File) -> None:
        expect(int(self.driver.do("cat", file.path, file.seed)) == file.bytes, file.path)

    def node_of(self, group: Group, index: int) -> DataNode:
        return self.hdfs.by_uuid(group.nodes[index])

    def data_index_to_lose(self, group: Group, other_than: tuple[int, ...] = ()) -> int:
        """Of a data block that is not on the client's own node."""
        return next(index for index in sorted(group.nodes)
                    if index not in other_than and self.node_of(group, index) is not
                    self.client_node)

    def data_blocks_on(self, uuid: str, file: File) -> int:
        return sum(holder == uuid and index < file.data
                   for group in self.driver.groups(file.path)
                   for index, holder in group.nodes.items())

    def node_with_data_of_most_files(self) -> tuple[DataNode, list[str]]:
        """Of the big file in any case; with the files whose data it has."""
        held: dict[str, list[str]] = defaultdict(list)
        for file in self.files:
            for uuid in {uuid for group in self.driver.groups(file.path)
                         for index, uuid in group.nodes.items() if index < file.data}:
                held[uuid].append(file.path)
        uuid = max((uuid for uuid, files in held.items()
                    if self.big.path in files and uuid != self.client_node.uuid),
                   key=lambda uuid: len(held[uuid]))
        return self.hdfs.by_uuid(uuid), held[uuid]

    def add_node(self, name: str) -> DataNode:
        """One more DataNode with a helper beside it."""
        live = len(self.hdfs.live())
        node = self.hdfs.add_datanode(name, PLUGIN)
        node.daemon.start()
        self.hdfs.wait_live(live + 1)
        node.read_uuid()
        self.middleware.add_beside(node)
        return node

    def kill_node(self, node: DataNode) -> None:
        """The DataNode and the helper beside it, as when a machine is lost."""
        node.daemon.kill()
        self.middleware.kill_beside(node)
        self.dead.append(node)

    def await_removed(self, node: DataNode) -> None:
        """Until the NameNode lists none of its blocks."""
        def listed() -> bool:
            return any(node.uuid in group.nodes.values()
                       for file in self.files for group in self.driver.groups(file.path))
        await_state(lambda: not listed(), RECOVERED_SECONDS, f"{node.name} to be forgotten")

    def await_listed(self, file: File) -> None:
        """Until the NameNode lists each block of the file, and only where it is."""
        def listed() -> bool:
            return all(len(group.nodes) == expected_blocks(file, group) and all(
                self.hdfs.by_uuid(uuid).replica(group.pool, group.group_id + index).exists()
                for index, uuid in group.nodes.items()) for group in self.driver.groups(file.path))
        await_state(listed, RECOVERED_SECONDS, f"the NameNode to know where {file.path} is")

    def lose(self, group: Group, indices: list[int]) -> dict[int, Path]:
        """Takes block files away from under their DataNodes; returns where they are kept, each
        with its .meta file beside it."""
        kept = {}
        folders = self.hdfs.work / "lost"
        folders.mkdir(exist_ok=True)
        folder = folders / str(len(list(folders.iterdir())))
        folder.mkdir()
        for index in indices:
            file = self.node_of(group, index).replica(group.pool, group.group_id + index)
            for part in (file, meta_of(file, group)):
                shutil.move(part, folder / part.name)
            kept[index] = folder / file.name
        return kept

    def await_same(self, group: Group, kept: dict[int, Path]) -> None:
        """Until live DataNodes have the blocks again, byte for byte, with their checksums."""
        for index, old in kept.items():
            found: list[Path] = []

            def there() -> bool:
                found[:] = [file for node in self.hdfs.live()
                            if (file := node.replica(group.pool, group.group_id + index)).exists()
                            and meta_of(file, group).exists()]
                return bool(found)
            await_state(there, RECOVERED_SECONDS, f"block {index} of group {group.group_id}")
            for file in found:
                expect(same(file, old), f"{file} differs from the block that was lost")
                expect(same(meta_of(file, group), meta_of(old, group)),
                       f"{meta_of(file, group)} differs from what was lost")

    def await_complete(self) -> None:
        """Until the NameNode knows a place for every block of every file."""
        for file in self.files:
            def complete() -> bool:
                return all(len(group.nodes) == expected_blocks(file, group)
                           for group in self.driver.groups(file.path))
            await_state(complete, RECOVERED_SECONDS, f"all blocks of {file.path}")


def expected_blocks(file: File, group: Group) -> int:
    """A group shorter than a row lacks the data blocks behind its end."""
    return min(file.data, -(-group.bytes // CELL)) + file.parity


def meta_of(file: Path, group: Group) -> Path:
    return file.with_name(f"{file.name}_{group.stamp}.meta")


def same(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes()
