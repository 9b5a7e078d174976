# SPDX-License-Identifier: Apache-2.0
"""What an HDFS cluster leaves on its DataNodes' disks, made without HDFS: block groups under RS or
XOR, striped by cells, each internal block with its .meta file. It shares no code with src/."""

from __future__ import annotations

import random
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

CHUNK_BYTES = 512


def _gf_tables() -> tuple[list[int], list[int]]:
    exp, log, value = [0] * 510, [0] * 256, 1
    for i in range(255):
        exp[i] = exp[i + 255] = value
        log[value] = i
        value = (value << 1) ^ (0x11D if value & 0x80 else 0)
    return exp, log


EXP, LOG = _gf_tables()


def gf_inverse(a: int) -> int:
    return EXP[255 - LOG[a]]


def scaled(block: bytes, factor: int) -> bytes:
    table = bytes(0 if not (x and factor) else EXP[LOG[x] + LOG[factor]] for x in range(256))
    return block.translate(table)


def xored(a: bytes, b: bytes) -> bytes:
    return (int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).to_bytes(len(a), "little")


def _crc32c_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


CRC32C_TABLE = _crc32c_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC32C_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


@dataclass
class Group:
    """A block group with random data; `blocks[i]` is what block i holds, b"" if it does not exist.
    """

    group_bytes: int
    data: int = 6
    parity: int = 3
    cell: int = 65536
    codec: str = "rs"
    number: int = 1
    stamp: int = 1001
    pool: str = "BP-1-127.0.0.1-17"
    crc32: bool = False  # instead of CRC32C
    blocks: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        content = random.Random(self.group_bytes * 31 + self.number).randbytes(self.group_bytes)
        row = self.cell * self.data
        self.blocks = [b"".join(content[at + i * self.cell:at + (i + 1) * self.cell]
                                if at + i * self.cell < len(content) else b""
                                for at in range(0, len(content), row))
                       for i in range(self.data)]
        # The last cell of a row must not reach into the next row.
        length = len(self.blocks[0])
        padded = [block.ljust(length, b"\0") for block in self.blocks]
        for p in range(self.parity):
            sum_ = bytes(length)
            for j, block in enumerate(padded):
                sum_ = xored(sum_, scaled(block, self._coefficient(p, j)))
            self.blocks.append(sum_)

    def _coefficient(self, p: int, j: int) -> int:
        return 1 if self.codec == "xor" else gf_inverse((self.data + p) ^ j)

    @property
    def group_id(self) -> int:
        return -(2**63) + 16 * self.number

    def block_id(self, index: int) -> int:
        return self.group_id + index

    def name(self, index: int) -> str:
        return f"{self.pool}.blk_{self.block_id(index)}_{self.stamp}"

    def file(self, volume: Path, index: int) -> Path:
        block_id = self.block_id(index)
        return (volume / "current" / self.pool / "current" / "finalized"
                / f"subdir{block_id >> 16 & 31}" / f"subdir{block_id >> 8 & 31}"
                / f"blk_{block_id}")

    def meta_file(self, volume: Path, index: int) -> Path:
        file = self.file(volume, index)
        return file.with_name(f"{file.name}_{self.stamp}.meta")

    def put(self, volume: Path, index: int) -> None:
        block = self.blocks[index]
        if not block:
            return
        file = self.file(volume, index)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(block)
        checksum = zlib.crc32 if self.crc32 else crc32c
        sums = [checksum(block[at:at + CHUNK_BYTES]) for at in range(0, len(block), CHUNK_BYTES)]
        self.meta_file(volume, index).write_bytes(
            struct.pack(">HBI", 1, 1 if self.crc32 else 2, CHUNK_BYTES)
            + b"".join(struct.pack(">I", value) for value in sums))


def make_volume(volume: Path, uuid: str) -> None:
    (volume / "current").mkdir(parents=True)
    (volume / "current" / "VERSION").write_text(
        f"#Sun Nov 22 02:00:00 UTC 2026\nstorageID=DS-1\ndatanodeUuid={uuid}\n"
        "storageType=DATA_NODE\nlayoutVersion=-57\n")


def policy_of(group: Group) -> str:
    codec = {"rs": "RS", "xor": "XOR"}[group.codec]
    return f"{codec}-{group.data}-{group.parity}-{group.cell // 1024}k"


def fsck_text(groups: list[Group]) -> str:
    """What a NameNode's fsck says of files of one group each, as Hadoop 3 writes it."""
    lines = ["FSCK started by hdfs (auth:SIMPLE) from /127.0.0.1 for path / at Sun Nov 22 "
             "02:00:00 UTC 2026", "", "/ <dir>"]
    for group in groups:
        lines += [f"/f{group.number} {group.group_bytes} bytes, erasure-coded: "
                  f"policy={policy_of(group)}, 1 block(s):  OK",
                  f"0. {group.pool}:blk_{group.group_id}_{group.stamp} "
                  f"len={group.group_bytes} Live_repl={len(group.blocks)}", ""]
    lines += ["", "Status: HEALTHY", " Number of data-nodes:\t10",
              "FSCK ended at Sun Nov 22 02:00:01 UTC 2026 in 12 milliseconds", "", "",
              "The filesystem under path '/' is HEALTHY"]
    return "\n".join(lines)
