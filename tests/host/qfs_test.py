#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real QFS whose chunkserver has the hook (integrations/qfs/README.md): forced recoveries of a
chunk take their bytes from an endpoint, and where it fails half-way QFS goes on by itself at the
same offset. The recovered chunk file is compared with the original.

QFS_HOME names the folder of an installed QFS, with bin/metaserver, bin/chunkserver and bin/tools,
or all in bin. Exit code 77 with "SKIP: reason" where it is missing, or its chunkserver has no hook.
The endpoint is a stand-in that reads the original chunk: what is tested is the hook.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Callable

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "bench"))

from labkit.daemon import Daemon, stop_all  # noqa: E402
from labkit.process import LabError, free_port, wait_until  # noqa: E402

EXIT_SKIPPED = 77
CHUNKSERVERS = 10       # one more than a group has chunks
HEADER_BYTES = 16384
FILE_BYTES = 40_000_019
SECONDS = 120.0
FRAME = struct.Struct("<4sBBHII")
REPAIR, HEADER, DATA, END, ERROR = range(1, 6)


class Skipped(Exception):
    pass


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()


class Endpoint:
    """Serves each chunk that is asked for from the file that `find` names; with `fail_after`, an
    ERROR comes after so many bytes."""

    def __init__(self, path: Path, find: Callable[[str], Path]) -> None:
        self.find, self.fail_after = find, -1
        self.asked: list[dict[str, str]] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as reader:
            length = FRAME.unpack(reader.read(FRAME.size))[4]
            facts = dict(line.split(" ", 1) for line in reader.read(length).decode().splitlines())
            self.asked.append(facts)
            name = ".".join(facts[key] for key in ("file", "chunk", "version"))
            first, count = HEADER_BYTES + int(facts["offset"]), int(facts["bytes"])
            chunk = self.find(name).read_bytes()[first:first + count]
            self._send(connection, HEADER, f"bytes {count}\nchecksum crc32c 65536\nrepair 1\n")
            sent = chunk if self.fail_after < 0 else chunk[:self.fail_after]
            for at in range(0, len(sent), 65536):
                self._send(connection, DATA, sent[at:at + 65536])
            if len(sent) == count:
                self._send(connection, END, f"bytes {count}\nattempts 1\n")
            else:
                self._send(connection, ERROR, "code ABORTED\nmessage as the test wants it\n")

    @staticmethod
    def _send(connection: socket.socket, kind: int, payload: bytes | str) -> None:
        data = payload.encode() if isinstance(payload, str) else payload
        connection.sendall(FRAME.pack(b"ECPR", 1, kind, 0, len(data), crc32c(data)) + data)


class Qfs:
    """A metaserver and chunkservers on loopback, in a folder of their own."""

    def __init__(self, home: Path, work: Path, library: Path, config: Path) -> None:
        self.home, self.work = home, work
        self.client_port, chunk_port = free_port(), free_port()
        self.daemons: list[Daemon] = []
        for folder in ("meta/logs", "meta/checkpoints"):
            (work / folder).mkdir(parents=True)
        self._start("metaserver", work / "meta", {
            "metaServer.clientPort": self.client_port, "metaServer.chunkServerPort": chunk_port,
            "metaServer.clusterKey": "test", "metaServer.logDir": work / "meta/logs",
            "metaServer.cpDir": work / "meta/checkpoints", "metaServer.createEmptyFs": 1,
            "metaServer.recoveryInterval": 1, "metaServer.minChunkservers": 1})
        self.ports = [free_port() for _ in range(CHUNKSERVERS)]
        for port in self.ports:
            folder = work / f"chunk-{port}"
            (folder / "chunks").mkdir(parents=True)
            self._start("chunkserver", folder, {
                "chunkServer.metaServer.hostname": "127.0.0.1",
                "chunkServer.metaServer.port": chunk_port, "chunkServer.clientPort": port,
                "chunkServer.clusterKey": "test", "chunkServer.chunkDir": folder / "chunks",
                "chunkServer.extRecovery.library": library,
                "chunkServer.extRecovery.config": config})

    def _start(self, program: str, folder: Path, properties: dict[str, object]) -> None:
        file = folder / f"{program}.prp"
        file.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()))
        self.daemons.append(Daemon(folder.name, [find_program(self.home, program), file],
                                   folder / "log"))
        self.daemons[-1].start()

    def tool(self, name: str, *words: object) -> None:
        """Until it succeeds: chunkservers come one after the other."""
        def succeeds() -> bool:
            done = subprocess.run([find_program(self.home, name), "-s", "127.0.0.1", "-p",
                                   str(self.client_port), *map(str, words)],
                                  capture_output=True, text=True, timeout=SECONDS)
            said.append(done.stdout + done.stderr)
            return done.returncode == 0

        said: list[str] = []
        try:
            wait_until(succeeds, SECONDS, name)
        except LabError as error:
            raise LabError(f"{error}: {said[-1]}") from None

    def chunks(self) -> list[Path]:
        return sorted(self.work.glob("chunk-*/chunks/*.*.*"))

    def log_of(self, port: int) -> str:
        return (self.work / f"chunk-{port}" / "log").read_text(errors="replace")


def find_program(home: Path, name: str) -> Path:
    for place in (home / "bin" / name, home / "bin" / "tools" / name, home / name):
        if os.access(place, os.X_OK):
            return place
    raise Skipped(f"QFS_HOME={home} has no {name}")


def recover(qfs: Qfs, name: str) -> tuple[bytes, str]:
    """Forces a recovery onto a chunkserver without a chunk of the file; what it wrote, and what it
    logged."""
    file_id, chunk_id, _ = name.split(".")
    busy = {path.parents[1].name for path in qfs.chunks() if path.name.startswith(f"{file_id}.")}
    port = next(port for port in qfs.ports if f"chunk-{port}" not in busy)
    folder = qfs.work / f"chunk-{port}" / "chunks"
    kept = qfs.work / f"kept-{time.monotonic_ns()}"
    qfs.tool("qfsadmin", "-a", "-F", f"Chunk={chunk_id}", "-F", "Host=127.0.0.1", "-F",
             f"Port={port}", "-F", "Recovery=1", "force_replication")

    deadline = time.monotonic() + SECONDS
    while not kept.exists():
        if time.monotonic() > deadline:
            raise LabError(f"no {name} on {port}: {qfs.log_of(port)[-2000:]}")
        # Often: QFS may delete one of both copies at once.
        for path in folder.glob(f"{file_id}.{chunk_id}.*"):
            if not path.name.endswith(".0"):
                os.link(path, kept)
        time.sleep(0.001)
    return kept.read_bytes(), qfs.log_of(port)


def check(home: Path, library: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="ecpipe-qfs-") as folder:
        work = Path(folder)
        config, source = work / "qfs-shim.conf", work / "source"
        config.write_text(f"endpoint unix:{work}/endpoint.sock\n")
        source.write_bytes(os.urandom(FILE_BYTES))
        originals: dict[str, Path] = {}
        endpoint = Endpoint(work / "endpoint.sock", originals.__getitem__)
        qfs = Qfs(home, work, library, config)
        try:
            qfs.tool("cptoqfs", "-d", source, "-k", "/file", "-r", 1, "-y", 6, "-z", 3, "-u", 65536)
            wait_until(lambda: len(qfs.chunks()) == 9, SECONDS, "9 stable chunks")
            for path in qfs.chunks():
                copy = work / path.name
                copy.write_bytes(path.read_bytes())
                originals[path.name] = copy
            name = sorted(originals)[2]
            good = originals[name].read_bytes()
            bytes_of_data = struct.unpack_from("<q", good, 32)[0]
            data = good[HEADER_BYTES:HEADER_BYTES + bytes_of_data]
            for fail_after in (-1, 2 << 20):
                endpoint.fail_after, before = fail_after, len(endpoint.asked)
                chunk, log = recover(qfs, name)
                assert chunk[HEADER_BYTES:HEADER_BYTES + bytes_of_data] == data, fail_after
                assert len(endpoint.asked) == before + 1, "the endpoint was not asked once"
                went_on = re.findall(r"QFS goes on at: (\d+)", log)
                assert went_on == ([] if fail_after < 0 else [str(fail_after)]), went_on
        finally:
            stop_all(qfs.daemons)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--library", type=Path, required=True, help="libecpipe_qfs.so")
    arguments = parser.parse_args()
    try:
        if "QFS_HOME" not in os.environ:
            raise Skipped("QFS_HOME names no installed QFS with the hook; CI has none")
        home = Path(os.environ["QFS_HOME"])
        if b"chunkServer.extRecovery.library" not in find_program(home, "chunkserver").read_bytes():
            raise Skipped(f"the chunkserver of QFS_HOME={home} has no hook")
        check(home, arguments.library.resolve())
    except Skipped as reason:
        print(f"SKIP: {reason}")
        return EXIT_SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
