# SPDX-License-Identifier: Apache-2.0
"""A real HDFS on loopback: a NameNode and DataNodes, each a JVM of its own."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable
from xml.sax.saxutils import escape

from labkit.daemon import Daemon, stop_all
from labkit.process import LabError

from toolchain import DUMP_SECONDS, Toolchain

UP_SECONDS = 240
POLL_SECONDS = 0.3  # a question costs a JVM a few milliseconds
NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
BLOCK_BYTES = 4 << 20
# Of ECPipe; the default of 2 s is short for two cores that all JVMs and daemons share.
TIMEOUT_SECONDS = 10

# A dead DataNode is noticed within 11 s and not 10.5 min; a lost replica within seconds and not
# hours; and the NameNode's throttles of reconstruction are raised, or they are what is tested.
FAST = {
    "dfs.heartbeat.interval": 1,
    "dfs.namenode.heartbeat.recheck-interval": 500,
    "dfs.namenode.redundancy.interval.seconds": 1,
    "dfs.namenode.reconstruction.pending.timeout-sec": 20,
    "dfs.namenode.replication.work.multiplier.per.iteration": 20,
    "dfs.namenode.replication.max-streams": 20,
    "dfs.namenode.replication.max-streams-hard-limit": 40,
    "dfs.datanode.directoryscan.interval": 3,
    "dfs.blockreport.initialDelay": 0,
    "dfs.blockreport.intervalMsec": 4000,
}


def await_state(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Asks a JVM now and then until the answer is yes. LabError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"{what}: not within {seconds:g} s")
        threading.Event().wait(POLL_SECONDS)


def free_ports(count: int) -> list[int]:
    """Ports that nobody has; held together, so that they differ."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in held]
    for listener in held:
        listener.close()
    return ports


def write_configuration(file: Path, properties: dict[str, Any]) -> None:
    lines = [f"<property><name>{name}</name><value>{escape(str(value))}</value></property>"
             for name, value in properties.items()]
    file.write_text("<configuration>\n" + "\n".join(lines) + "\n</configuration>\n")


def jmx(port: int, bean: str) -> dict[str, Any]:
    """The attributes of a bean; nothing while the daemon does not answer or has no such bean."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/jmx?qry={bean}", timeout=5) as answer:
            beans = json.load(answer)["beans"]
    except (OSError, ValueError):
        return {}
    return beans[0] if beans else {}


def link_target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""  # closed in the meantime


@dataclass
class DataNode:
    name: str
    volume: Path
    http_port: int
    socket: Path          # of the requestor endpoint beside it
    daemon: Daemon
    uuid: str = ""

    def read_uuid(self) -> None:
        for line in (self.volume / "current" / "VERSION").read_text().splitlines():
            if line.startswith("datanodeUuid="):
                self.uuid = line.split("=", 1)[1]

    def replica(self, pool: str, block: int) -> Path:
        """Where the block lies, or would."""
        return (self.volume / "current" / pool / "current" / "finalized" /
                f"subdir{block >> 16 & 0x1F}" / f"subdir{block >> 8 & 0x1F}" / f"blk_{block}")

    def counters(self) -> dict[str, int]:
        return jmx(self.http_port, "ecpipe:name=Reconstruction")

    def resources(self) -> tuple[int, int]:
        """Selectors, of which each of our connections has one while it lives, and threads."""
        base = Path("/proc") / str(self.daemon.pid)
        open_files = [link_target(link) for link in (base / "fd").iterdir()]
        return (sum("eventpoll" in target for target in open_files),
                len(list((base / "task").iterdir())))


@dataclass
class Hdfs:
    """`client_conf` is for clients; DataNode i finds its endpoint at its own socket."""

    tools: Toolchain
    work: Path
    nodes: int
    settings: dict[str, Any] = field(default_factory=dict)  # for all daemons and clients
    datanodes: list[DataNode] = field(default_factory=list)

    def __post_init__(self) -> None:
        rpc, http, *ports = free_ports(2 + 3 * self.nodes)
        self.http_port = http
        self._common = {
            "fs.defaultFS": f"hdfs://127.0.0.1:{rpc}",
            "dfs.namenode.http-address": f"127.0.0.1:{http}",
            "dfs.namenode.name.dir": f"file://{self.work}/name",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.permissions.enabled": "false",
            "dfs.blocksize": BLOCK_BYTES,
            "dfs.replication": 1,
            "hadoop.tmp.dir": f"{self.work}/tmp",
            "fs.hdfs.impl": "io.ecpipe.hdfs.EcpipeFileSystem",
            "fs.AbstractFileSystem.hdfs.impl": "io.ecpipe.hdfs.EcpipeFs",
            "ecpipe.timeout-ms": TIMEOUT_SECONDS * 1000,
            **FAST, **self.settings}
        for folder in ("conf", "logs", "name", "tmp", "run"):
            (self.work / folder).mkdir(parents=True, exist_ok=True)
        self._namenode_conf = self.work / "conf" / "namenode.xml"
        write_configuration(self._namenode_conf, self._common)
        self.namenode = self._daemon("namenode", self.tools.java(
            NAMENODE, "-conf", self._namenode_conf, heap="256m"))
        for i in range(self.nodes):
            self.datanodes.append(self._make_datanode(i + 1, ports[3 * i:3 * i + 3]))
        self.client_conf = self.work / "conf" / "client.xml"
        self.set_client_endpoint(self.datanodes[-1])

    def _daemon(self, name: str, command: list[str]) -> Daemon:
        return Daemon(name, command, self.work / "logs" / f"{name}.log")

    def _make_datanode(self, number: int, ports: list[int]) -> DataNode:
        name = f"dn-{number}"
        volume, endpoint = self.work / "data" / name, self.work / "run" / f"{name}.sock"
        volume.mkdir(parents=True)
        conf = self.work / "conf" / f"{name}.xml"
        write_configuration(conf, {
            **self._common,
            "dfs.datanode.data.dir": f"file://{volume}",
            "dfs.datanode.plugins": "io.ecpipe.hdfs.DataNodePlugin",
            "ecpipe.endpoint": f"unix:{endpoint}",
            **{f"dfs.datanode.{kind}": f"127.0.0.1:{port}" for kind, port in
               zip(("address", "http.address", "ipc.address"), ports)}})
        return DataNode(name, volume, ports[1], endpoint,
                        self._daemon(name, self.tools.java(DATANODE, "-conf", conf)))

    def set_client_endpoint(self, node: DataNode) -> None:
        write_configuration(self.client_conf,
                            {**self._common, "ecpipe.endpoint": f"unix:{node.socket}"})

    # ---- Life ------------------------------------------------------------------------------

    def start(self) -> None:
        self._run_to_end("format", self.tools.java(
            NAMENODE, "-conf", self._namenode_conf, "-format", "-nonInteractive"))
        self.namenode.start()
        if not self.tools.archive.exists():
            self._dump_archive()
        for node in self.datanodes:
            node.daemon.start()
        self.wait_live(self.nodes)
        for node in self.datanodes:
            node.read_uuid()

    def _run_to_end(self, name: str, command: list[str]) -> None:
        daemon = self._daemon(name, command)
        daemon.start()
        if daemon.reap(UP_SECONDS) != 0:
            raise RuntimeError(f"{name} failed\n{daemon.log_tail()}")

    def _dump_archive(self) -> None:
        """A DataNode that lives until it is registered leaves the archive that all others share. It
        is without our jar, which changes too often."""
        conf = self.work / "conf" / "dumper.xml"
        write_configuration(conf, {
            **self._common, "dfs.datanode.data.dir": f"file://{self.work}/dumper",
            **{f"dfs.datanode.{kind}": "127.0.0.1:0"
               for kind in ("address", "http.address", "ipc.address")}})
        dumper = self._daemon("dumper", self.tools.java_that_dumps(DATANODE, "-conf", conf))
        dumper.start()
        try:
            self.wait_live(1)
        finally:
            dumper.stop(DUMP_SECONDS)
        self.wait_live(0)

    def wait_live(self, count: int) -> None:
        await_state(lambda: self.state().get("NumLiveDataNodes") == count, UP_SECONDS,
                    f"{count} live DataNodes")

    def state(self) -> dict[str, Any]:
        return jmx(self.http_port, "Hadoop:service=NameNode,name=FSNamesystemState")

    def stop(self) -> None:
        stop_all([*(node.daemon for node in self.datanodes), self.namenode])

    # ---- Use -------------------------------------------------------------------------------

    def by_uuid(self, uuid: str) -> DataNode:
        return next(node for node in self.datanodes if node.uuid == uuid)

    def live(self) -> list[DataNode]:
        return [node for node in self.datanodes if node.daemon.running()]

    def totals(self) -> dict[str, int]:
        """The plugins' counters, over the DataNodes that run."""
        sums = {"Repairs": 0, "RepairedBytes": 0, "Fallbacks": 0, "BrokenRepairs": 0}
        for node in self.live():
            counters = node.counters()
            for name in sums:
                sums[name] += counters.get(name, 0)
        return sums
