# SPDX-License-Identifier: Apache-2.0
"""A file of QFS as its chunkservers have it on their disks: chunk files with headers, striped and
coded as QFS does it."""

from __future__ import annotations

import random
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

CHUNK_BYTES = 64 << 20
HEADER_BYTES = 16384
CHECKSUM_BLOCK = 65536
PARITIES = 3
JERASURE_6_3 = ((1, 1, 1, 1, 1, 1), (0x01, 0xe1, 0x97, 0xac, 0x52, 0xc8),
                (0x01, 0x7b, 0xf5, 0x8f, 0xf4, 0x8e))


def times(a: int, b: int) -> int:
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = a << 1 ^ (0x11d if a & 0x80 else 0)
        b >>= 1
    return product


def rows_of(striper: int, data: int) -> tuple[tuple[int, ...], ...]:
    if striper == 3:
        return JERASURE_6_3
    rows = []
    for p in range(PARITIES):
        row, power = [], 1
        for _ in range(data):
            row.append(power)
            power = times(power, 1 << p)
        rows.append(tuple(row))
    return tuple(rows)


def combined(row: tuple[int, ...], blocks: list[bytes], length: int) -> bytes:
    total = 0
    for factor, block in zip(row, blocks):
        table = bytes(times(factor, byte) for byte in range(256))
        total ^= int.from_bytes(block.ljust(length, b"\0").translate(table), "big")
    return total.to_bytes(length, "big")


def chunk_file(file_id: int, chunk_id: int, version: int, content: bytes) -> bytes:
    header = struct.pack("<IIqqqq", 0xCAFECAFE, 1, file_id, chunk_id, version, len(content))
    sums = [zlib.adler32(content[at:at + CHECKSUM_BLOCK].ljust(CHECKSUM_BLOCK, b"\0"))
            for at in range(0, len(content), CHECKSUM_BLOCK)]
    header += struct.pack("<1024I", *sums, *[0] * (1024 - len(sums)))
    header = (header + b"\0" * 4 + b"\0QFSFsId\xe4\x5e\x23\x0e\x34\x9a\x07\xce").ljust(4400, b"\0")
    header += struct.pack("<Q", zlib.adler32(header))
    return header.ljust(HEADER_BYTES, b"\0") + content


@dataclass
class Chunk:
    index: int  # in its group
    address: int
    chunk_id: int
    content: bytes


class QfsFile:
    """One group. `holes` are data chunks that were never written."""

    def __init__(self, file_id: int, size: int, *, data: int = 6, cell: int = 65536,
                 striper: int = 2, holes: tuple[int, ...] = ()) -> None:
        self.file_id, self.data, self.cell, self.striper = file_id, data, cell, striper
        self.version = 1
        content = bytearray(random.Random(file_id).randbytes(size))
        for at in range(0, size, cell):
            if at // cell % data in holes:
                content[at:at + cell] = bytes(len(content[at:at + cell]))
        self.content = bytes(content)
        blocks = [b"".join(self.content[at:at + cell]
                           for at in range(i * cell, size, data * cell)) for i in range(data)]
        blocks += [combined(row, blocks, len(blocks[0])) for row in rows_of(striper, data)]
        self.chunks = [Chunk(i, i * CHUNK_BYTES, 65536 + 100 * file_id + i, block)
                       for i, block in enumerate(blocks) if block and i not in holes]

    def chunk(self, index: int) -> Chunk:
        return next(chunk for chunk in self.chunks if chunk.index == index)

    def name(self, index: int) -> str:
        return f"qfs.{self.file_id}.{self.chunk(index).chunk_id}.{self.version}"

    def path(self, directory: Path, index: int) -> Path:
        return directory / self.name(index).removeprefix("qfs.")

    def put(self, directory: Path, index: int) -> None:
        chunk = self.chunk(index)
        self.path(directory, index).write_bytes(
            chunk_file(self.file_id, chunk.chunk_id, self.version, chunk.content))

    def request(self, index: int, *, offset: int = 0, length: int | None = None,
                **changed: int | str) -> str:
        """The lines of a REPAIR for the chunk."""
        chunk = self.chunk(index)
        lines: dict[str, int | str] = {
            "store": "qfs", "file": self.file_id, "chunk": chunk.chunk_id, "version": self.version,
            "chunk-offset": chunk.address, "file-size": len(self.content), "striper": self.striper,
            "data": self.data, "parity": PARITIES, "cell": self.cell, "offset": offset,
            "bytes": len(chunk.content) - offset if length is None else length,
            "timeout-ms": 20000}
        lines.update((key.replace("_", "-"), value) for key, value in changed.items())
        return "".join(f"{key} {value}\n" for key, value in lines.items())
