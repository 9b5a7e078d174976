# SPDX-License-Identifier: Apache-2.0
"""A real QFS, without ECPipe, on the nodes of a network: a metaserver and chunkservers that recover
a chunk when they are told to. QFS is in no package registry; QFS_HOME names an installed one."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..cluster import Network
from ..daemon import Daemon, stop_all
from ..process import LabError, wait_until
from ..stripes import write_noise
from .chunk_files import HEADER_BYTES

CLIENT_PORT, SERVER_PORT, CHUNK_PORT = 20000, 30000, 22000
SECONDS = 180.0
CELL = 65536  # QFS's default


class Unavailable(Exception):
    """Says why there is no QFS here."""


def home_of() -> Path:
    """Raises Unavailable."""
    if "QFS_HOME" not in os.environ:
        raise Unavailable("QFS_HOME names no installed QFS")
    home = Path(os.environ["QFS_HOME"])
    for name in ("metaserver", "chunkserver", "cptoqfs", "qfsadmin"):
        find_program(home, name)
    return home


def find_program(home: Path, name: str) -> Path:
    """Raises Unavailable."""
    for place in (home / "bin" / name, home / "bin" / "tools" / name, home / name):
        if os.access(place, os.X_OK):
            return place
    raise Unavailable(f"QFS_HOME={home} has no {name}")


class NativeQfs:
    """`nodes` have the chunkservers, one more than a group has chunks."""

    def __init__(self, home: Path, work: Path, network: Network, meta: str,
                 nodes: list[str]) -> None:
        self._home, self._work, self._network = home, work, network
        self._meta, self._nodes = meta, nodes
        self.daemons: list[Daemon] = []

    def __enter__(self) -> NativeQfs:
        address = self._network.address(self._meta)
        try:
            self._start("metaserver", self._meta, ("meta/logs", "meta/checkpoints"), {
                "metaServer.clientPort": CLIENT_PORT, "metaServer.chunkServerPort": SERVER_PORT,
                "metaServer.clusterKey": "lab", "metaServer.logDir": "meta/logs",
                "metaServer.cpDir": "meta/checkpoints", "metaServer.createEmptyFs": 1,
                "metaServer.recoveryInterval": 1, "metaServer.minChunkservers": 1})
            for node in self._nodes:
                self._start("chunkserver", node, ("chunks",), {
                    "chunkServer.metaServer.hostname": address,
                    "chunkServer.metaServer.port": SERVER_PORT,
                    "chunkServer.clientPort": CHUNK_PORT, "chunkServer.clusterKey": "lab",
                    "chunkServer.chunkDir": "chunks"})
        except BaseException:
            stop_all(self.daemons)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        stop_all(self.daemons)

    def _folder(self, node: str) -> Path:
        return self._work / "qfs" / node

    def _start(self, program: str, node: str, folders: tuple[str, ...],
               properties: dict[str, object]) -> None:
        """Paths among the properties are below the node's folder."""
        folder = self._folder(node)
        for name in folders:
            (folder / name).mkdir(parents=True)
        file = folder / f"{program}.prp"
        file.write_text("".join(
            f"{key} = {folder / str(value) if value in folders else value}\n"
            for key, value in properties.items()))
        daemon = Daemon(f"{program} of {node}", [find_program(self._home, program), file],
                        folder / "log", host=self._network.host(node))
        self.daemons.append(daemon)
        daemon.start()

    def _tool(self, node: str, name: str, *words: object) -> subprocess.CompletedProcess[str]:
        return self._network.host(node).run(
            [find_program(self._home, name), "-s", self._network.address(self._meta), "-p",
             str(CLIENT_PORT), *map(str, words)], timeout=SECONDS, check=False)

    def _chunks(self) -> dict[str, Path]:
        """Of all nodes, by name: stable ones."""
        return {path.name: path for node in self._nodes
                for path in (self._folder(node) / "chunks").glob("*.*.*")
                if not path.name.endswith(".0")}

    def write(self, writer: str, size: int, path: str) -> str:
        """Writes a file of one group from that node. The name of its first chunk."""
        before, source = set(self._chunks()), self._work / "source"
        write_noise(source, size)

        def written() -> bool:  # chunkservers come one after the other
            done = self._tool(writer, "cptoqfs", "-d", source, "-k", path, "-r", 1, "-y", 6,
                              "-z", 3, "-u", CELL)
            said.append(done.stdout + done.stderr)
            return done.returncode == 0
        said: list[str] = []
        try:
            wait_until(written, SECONDS, f"cptoqfs {path}")
            wait_until(lambda: len(set(self._chunks()) - before) == 9, SECONDS, f"chunks of {path}")
        except LabError as error:
            raise LabError(f"{error}: {said[-1] if said else ''}") from None
        # Chunk ids ascend as chunks are made; any chunk will do.
        return min(set(self._chunks()) - before, key=lambda name: int(name.split(".")[1]))

    def recover(self, name: str) -> float:
        """Forces a recovery onto the chunkserver without a chunk of the file. The seconds until the
        chunk is stable there; LabError when its bytes are others than the original's."""
        file_id, chunk_id, _ = name.split(".")
        chunks = self._chunks()
        original = data_of(chunks[name])
        busy = {path.parents[1].name for each, path in chunks.items()
                if each.startswith(f"{file_id}.")}
        target = next(node for node in self._nodes if node not in busy)
        folder, kept = self._folder(target) / "chunks", self._work / f"kept-{time.monotonic_ns()}"
        begun = time.monotonic()
        with ThreadPoolExecutor(1) as tool:
            forced = tool.submit(
                self._tool, target, "qfsadmin", "-a", "-F", f"Chunk={chunk_id}", "-F",
                f"Host={self._network.address(target)}", "-F", f"Port={CHUNK_PORT}", "-F",
                "Recovery=1", "force_replication")
            # Often, and meanwhile: QFS may delete one of both copies at once.
            while not kept.exists():
                if time.monotonic() - begun > SECONDS:
                    said = forced.result()
                    raise LabError(f"QFS recovered no {name} on {target}: {said.stdout}"
                                   f"{said.stderr}")
                for path in folder.glob(f"{file_id}.{chunk_id}.*"):
                    if not path.name.endswith(".0"):
                        with contextlib.suppress(FileNotFoundError):
                            os.link(path, kept)
                time.sleep(0.001)
            seconds = time.monotonic() - begun
        if data_of(kept) != original:
            raise LabError(f"QFS recovered other bytes of {name}")
        return seconds


def data_of(chunk: Path) -> bytes:
    content = chunk.read_bytes()
    return content[HEADER_BYTES:HEADER_BYTES + struct.unpack_from("<q", content, 32)[0]]
