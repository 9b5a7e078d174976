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
RANDOM_BYTES = 64 << 20  # at once; randbytes cannot make 256 MiB
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


def random_bytes(noise: random.Random, length: int) -> bytes:
    return b"".join(noise.randbytes(min(RANDOM_BYTES, length - at))
                    for at in range(0, length, RANDOM_BYTES))


def chunk_file(file_id: int, chunk_id: int, version: int, content: bytes) -> bytes:
    header = struct.pack("<IIqqqq", 0xCAFECAFE, 1, file_id, chunk_id, version, len(content))
    sums = [zlib.adler32(content[at:at + CHECKSUM_BLOCK].ljust(CHECKSUM_BLOCK, b"\0"))
            for at in range(0, len(content), CHECKSUM_BLOCK)]
    header += struct.pack("<1024I", *sums, *[0] * (1024 - len(sums)))
    header = (header + b"\0" * 4 + b"\0QFSFsId\xe4\x5e\x23\x0e\x34\x9a\x07\xce").ljust(4400, b"\0")
    header += struct.pack("<Q", zlib.adler32(header))
    return header.ljust(HEADER_BYTES, b"\0") + content


def chunk_bytes(group_bytes: int, data: int, cell: int, index: int) -> int:
    """How many of the first bytes of a group are in this chunk of it; a recovery chunk has as many
    as the first data chunk."""
    index = 0 if index >= data else index
    rows, rest = divmod(group_bytes, data * cell)
    return rows * cell + min(max(rest - index * cell, 0), cell)


@dataclass
class Chunk:
    group: int
    index: int  # in its group
    address: int
    chunk_id: int
    content: bytes  # of the chunk file
    bytes: int      # by the file's length

    @property
    def whole(self) -> bytes:
        return self.content.ljust(self.bytes, b"\0")


class QfsFile:
    """`written`: how many bytes of each group QFS has written; the rest of it are zeros that no
    chunk has. Default: all."""

    version = 1

    def __init__(self, file_id: int, size: int, *, data: int = 6, cell: int = 65536,
                 striper: int = 2, written: tuple[int, ...] | None = None) -> None:
        self.file_id, self.size, self.data, self.cell = file_id, size, data, cell
        self.striper = striper
        self.group_bytes = data * CHUNK_BYTES
        noise = random.Random(file_id)
        self._groups: list[bytes] = []
        self.chunks: list[Chunk] = []
        for group, begin in enumerate(range(0, size, self.group_bytes)):
            length = min(self.group_bytes, size - begin)
            self._groups.append(random_bytes(noise, written[group] if written else length))
            self._add_chunks(group, length)

    def _add_chunks(self, group: int, length: int) -> None:
        content, cell, row = self._groups[group], self.cell, self.cell * self.data
        blocks = [b"".join(content[at:at + cell] for at in range(i * cell, len(content), row))
                  for i in range(self.data)]
        blocks += [combined(factors, blocks, len(blocks[0]))
                   for factors in rows_of(self.striper, self.data)]
        for i, block in enumerate(blocks):
            if block:
                place = group * len(blocks) + i
                self.chunks.append(Chunk(
                    group, i, place * CHUNK_BYTES, 65536 + 100 * self.file_id + place, block,
                    chunk_bytes(length, self.data, cell, i)))

    def drop_contents(self) -> None:
        """Of chunks that are on disks already. Nothing can be read or put after that."""
        self._groups.clear()
        for chunk in self.chunks:
            chunk.content = b""

    def read(self, offset: int, length: int) -> bytes:
        parts = []
        while length > 0:
            group, at = divmod(offset, self.group_bytes)
            step = min(length, self.group_bytes - at)
            parts.append(self._groups[group][at:at + step].ljust(step, b"\0"))
            offset, length = offset + step, length - step
        return b"".join(parts)

    @property
    def content(self) -> bytes:
        return self.read(0, self.size)

    def chunk(self, index: int, group: int = 0) -> Chunk:
        return next(chunk for chunk in self.chunks
                    if (chunk.group, chunk.index) == (group, index))

    def name(self, index: int, group: int = 0) -> str:
        return f"qfs.{self.file_id}.{self.chunk(index, group).chunk_id}.{self.version}"

    def path(self, directory: Path, index: int, group: int = 0) -> Path:
        return directory / self.name(index, group).removeprefix("qfs.")

    def put(self, directory: Path, index: int, group: int = 0) -> None:
        chunk = self.chunk(index, group)
        self.path(directory, index, group).write_bytes(
            chunk_file(self.file_id, chunk.chunk_id, self.version, chunk.content))

    def request(self, index: int, group: int = 0, *, offset: int = 0, length: int | None = None,
                **changed: int | str) -> str:
        """The lines of a REPAIR for the chunk."""
        chunk = self.chunk(index, group)
        lines: dict[str, int | str] = {
            "store": "qfs", "file": self.file_id, "chunk": chunk.chunk_id, "version": self.version,
            "chunk-offset": chunk.address, "file-size": self.size, "striper": self.striper,
            "data": self.data, "parity": PARITIES, "cell": self.cell, "offset": offset,
            "bytes": chunk.bytes - offset if length is None else length,
            "timeout-ms": 20000}
        lines.update((key.replace("_", "-"), value) for key, value in changed.items())
        return "".join(f"{key} {value}\n" for key, value in lines.items())
