# SPDX-License-Identifier: Apache-2.0
"""Connections of people who have no business here: a flood of bad connections to daemons' ports.

    python3 strangers.py COUNT SECONDS HOST:PORT...

Opens COUNT connections, evenly over SECONDS, in turn to each port and of each kind: some close at
once, some say nothing, some a byte now and then, some noise, some a well-formed hello for an edge
that is not theirs. Those that wait are held open until the end. Prints one line of JSON: how many
were opened, and how many could not be. A program of its own, for the namespace of a node.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import selectors
import socket
import struct
import sys
import time
from typing import Callable

DRIP_SECONDS = 0.2
_CRC32C_POLYNOMIAL = 0x82F63B78


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (_CRC32C_POLYNOMIAL if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def hello_of_a_stranger() -> bytes:
    """As docs/wire.md has it, with a random repair and token."""
    body = b"ECPH\x01\0\0\0" + os.urandom(8) + struct.pack("<IIII", 0, 0, 0, 0) + os.urandom(16)
    return body + struct.pack("<I", crc32c(body))


def client_hello_begun() -> bytes:
    """A TLS record of a ClientHello that never ends."""
    return b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(32)


def http2_begun() -> bytes:
    """What a gRPC client says before its first call: HTTP/2's preface, and empty settings."""
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)


# What each kind says first; None: it closes at once. The bool: whether it goes on dripping bytes.
KINDS: dict[str, tuple[Callable[[], bytes] | None, bool]] = {
    "close": (None, False),
    "silent": (lambda: b"", False),
    "slow": (lambda: b"E", True),
    "noise": (lambda: os.urandom(200), False),
    "stranger": (hello_of_a_stranger, False),
    "half-tls": (client_hello_begun, False),
    "idle-http2": (http2_begun, False),
}


class Flood:
    """Non-blocking connections, each said its first words once it is there."""

    def __init__(self, addresses: list[tuple[str, int]]) -> None:
        self._addresses = addresses
        self._connecting = selectors.DefaultSelector()
        self._held: list[socket.socket] = []
        self._dripping: list[socket.socket] = []
        self._next_drip = 0.0
        self.opened = 0
        self.failed = 0

    def open(self, number: int) -> None:
        kind = list(KINDS)[number // len(self._addresses) % len(KINDS)]
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        code = connection.connect_ex(self._addresses[number % len(self._addresses)])
        if code not in (0, errno.EINPROGRESS):
            self.failed += 1
            connection.close()
            return
        self._connecting.register(connection, selectors.EVENT_WRITE, kind)

    def advance(self, seconds: float) -> None:
        for key, _ in self._connecting.select(seconds):
            self._connecting.unregister(key.fileobj)
            self._speak(key.fileobj, *KINDS[key.data])
        if time.monotonic() >= self._next_drip:
            self._next_drip = time.monotonic() + DRIP_SECONDS
            self._dripping = [each for each in self._dripping if _sent(each, b"x")]

    def connecting(self) -> int:
        return len(self._connecting.get_map())

    def _speak(self, connection: socket.socket, words: Callable[[], bytes] | None,
               drips: bool) -> None:
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0:
            self.failed += 1
            connection.close()
            return
        self.opened += 1
        if words is None or not _sent(connection, words()):
            connection.close()
            return
        self._held.append(connection)
        if drips:
            self._dripping.append(connection)


def _sent(connection: socket.socket, data: bytes) -> bool:
    try:
        connection.send(data)
        return True
    except BlockingIOError:
        return True
    except OSError:
        return False


def flood(count: int, seconds: float, ports: list[str]) -> dict[str, float]:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    addresses = [(host, int(port)) for host, port in (text.rsplit(":", 1) for text in ports)]
    crowd = Flood(addresses)
    begun = time.monotonic()
    started = 0
    while started < count:
        due = min(count, int((time.monotonic() - begun) / max(seconds, 1e-9) * count) + 1)
        for number in range(started, due):
            crowd.open(number)
        started = due
        crowd.advance(0.005)
    deadline = time.monotonic() + 5.0
    while crowd.connecting() and time.monotonic() < deadline:
        crowd.advance(0.05)
    return {"opened": crowd.opened, "failed": crowd.failed + crowd.connecting(),
            "seconds": time.monotonic() - begun, "cpu_seconds": time.process_time()}


def main(arguments: list[str]) -> None:
    print(json.dumps(flood(int(arguments[0]), float(arguments[1]), arguments[2:])), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
