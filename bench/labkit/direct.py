# SPDX-License-Identifier: Apache-2.0
"""The yardstick: one file over one plain TCP connection, with none of our code in between.

    python3 direct.py send FILE HOST           prints {"port": N}, serves one connection
    python3 direct.py receive HOST PORT BYTES  prints {"seconds", "cpu_seconds", "sha256"}

The time runs from before the connect to the last byte, into memory that has been touched before.
A program of its own, because each end runs in the network namespace of its node.
"""

from __future__ import annotations

import hashlib
import json
import socket
import sys
import time

TIMEOUT_SECONDS = 120.0
RECEIVE_BYTES = 1 << 20


def report(**values: object) -> None:
    print(json.dumps(values), flush=True)


def send(path: str, host: str) -> None:
    with open(path, "rb") as file, socket.create_server((host, 0)) as server:
        server.settimeout(TIMEOUT_SECONDS)
        report(port=server.getsockname()[1])
        connection, _ = server.accept()
        with connection:
            cpu_start = time.process_time()
            connection.settimeout(TIMEOUT_SECONDS)
            connection.sendfile(file)
    report(cpu_seconds=time.process_time() - cpu_start)


def receive(host: str, port: int, expected_bytes: int) -> None:
    buffer = bytearray(b"\1") * expected_bytes
    view = memoryview(buffer)
    cpu_start, start = time.process_time(), time.perf_counter()
    received = 0
    with socket.create_connection((host, port), timeout=TIMEOUT_SECONDS) as connection:
        while received < expected_bytes:
            count = connection.recv_into(view[received:received + RECEIVE_BYTES])
            if count == 0:
                sys.exit(f"the sender closed after {received} of {expected_bytes} bytes")
            received += count
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    report(seconds=seconds, cpu_seconds=cpu_seconds, sha256=hashlib.sha256(buffer).hexdigest())


def main(arguments: list[str]) -> None:
    if arguments[0] == "send":
        send(arguments[1], arguments[2])
    else:
        receive(arguments[1], int(arguments[2]), int(arguments[3]))


if __name__ == "__main__":
    main(sys.argv[1:])
