# SPDX-License-Identifier: Apache-2.0
"""Asks a requestor endpoint for a range of a block, byte for byte as docs/wire.md says."""

from __future__ import annotations

import socket
import ssl
import struct
from dataclasses import dataclass, field
from typing import Sequence

from hdfs_group import Group, crc32c

REPAIR, HEADER, DATA, END, ERROR = 1, 2, 3, 4, 5
SECONDS = 60.0


class EndpointError(Exception):
    """What an ERROR frame says."""

    def __init__(self, fields: dict[str, str]) -> None:
        super().__init__(f"{fields['code']}: {fields['message']}")
        self.code = fields["code"]


@dataclass
class Answer:
    header: dict[str, str] = field(default_factory=dict)
    end: dict[str, str] = field(default_factory=dict)
    content: bytes = b""        # of the first target
    contents: list[bytes] = field(default_factory=list)
    corrupt: dict[str, list[str]] = field(default_factory=dict)  # by the frame: "header", "end"


def fields_of(payload: bytes) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in payload.decode("ascii").splitlines()
                if not line.startswith("corrupt "))


def corrupt_of(payload: bytes) -> list[str]:
    """INDEX UUID of each corrupt source."""
    return [line.split(" ", 1)[1] for line in payload.decode("ascii").splitlines()
            if line.startswith("corrupt ")]


class Connection:
    """One repair. With `tls` over TLS, whose name of the peer nobody checks."""

    def __init__(self, address: str, tls: ssl.SSLContext | None = None) -> None:
        kind, rest = address.split(":", 1)
        if kind == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(SECONDS)
            self.socket.connect(rest)
        else:
            host, port = rest.rsplit(":", 1)
            self.socket = socket.create_connection((host, int(port)), SECONDS)
        if tls:
            self.socket = tls.wrap_socket(self.socket)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, kind: int, payload: bytes) -> None:
        self.socket.sendall(b"ECPR" + bytes([1, kind, 0, 0])
                            + struct.pack("<II", len(payload), crc32c(payload)) + payload)

    def receive(self, *, checked: bool = True) -> tuple[int, bytes]:
        kind, target, payload = self._frame(checked)
        assert target == 0, target
        return kind, payload

    def _frame(self, checked: bool) -> tuple[int, int, bytes]:
        header = self._exactly(16)
        assert header[:5] == b"ECPR\x01", header
        target, length, crc = struct.unpack("<HII", header[6:])
        payload = self._exactly(length)
        assert not checked or crc32c(payload) == crc
        return header[5], target, payload

    def ask(self, group: Group, target: int | Sequence[int], sources: dict[int, list[str]], *,
            offset: int = 0, length: int | None = None, **more: str | int) -> None:
        """`target`: a block, or several."""
        targets = [target] if isinstance(target, int) else list(target)
        lengths = [len(group.blocks[each]) - offset if length is None else length
                   for each in targets]
        lines = {"store": "hdfs", "pool": group.pool, "group": group.group_id,
                 "stamp": group.stamp, "group-bytes": group.group_bytes, "codec": group.codec,
                 "data": group.data, "parity": group.parity, "cell": group.cell,
                 "target": " ".join(map(str, targets)), "offset": offset,
                 "bytes": " ".join(map(str, lengths)), "timeout-ms": 20000}
        lines.update((key.replace("_", "-"), value) for key, value in more.items())
        text = "".join(f"{key} {value}\n" for key, value in lines.items())
        for index, nodes in sources.items():
            text += "".join(f"source {index} {node}\n" for node in nodes)
        self.send(REPAIR, text.encode("ascii"))

    def answer(self) -> Answer:
        answer = Answer()
        pieces: dict[int, list[bytes]] = {}
        frames = 0
        while True:
            # Every 16th frame in full: CRC32C takes its time here.
            kind, target, payload = self._frame(frames % 16 == 0)
            frames += 1
            if kind == ERROR:
                raise EndpointError(fields_of(payload))
            if kind == HEADER:
                answer.header = fields_of(payload)
                answer.corrupt["header"] = corrupt_of(payload)
            elif kind == DATA:
                pieces.setdefault(target, []).append(payload)
            elif kind == END:
                answer.end = fields_of(payload)
                answer.corrupt["end"] = corrupt_of(payload)
                answer.contents = [b"".join(pieces[key]) for key in sorted(pieces)]
                answer.content = answer.contents[0]
                return answer
            else:
                raise AssertionError(f"frame of type {kind}")

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise ConnectionError("the endpoint closed before the end")
            data += piece
        return data


def read(address: str, group: Group, target: int | Sequence[int], sources: dict[int, list[str]],
         **options: str | int) -> Answer:
    with Connection(address) as connection:
        connection.ask(group, target, sources, **options)  # type: ignore[arg-type]
        return connection.answer()
