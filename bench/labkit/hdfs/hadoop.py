# SPDX-License-Identifier: Apache-2.0
"""A real HDFS: a NameNode and DataNodes, each a JVM of its own, on loopback or in namespaces."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable
from xml.sax.saxutils import escape

from ..cluster import COORDINATOR, Loopback, Network
from ..daemon import Daemon, stop_all
from ..host import Host
from ..process import LabError, free_ports
from .toolchain import DUMP_SECONDS, Toolchain

DATANODE_ADDRESSES = ("dfs.datanode.address", "dfs.datanode.http.address",
                      "dfs.datanode.ipc.address")
# With which a DataNode reconstructs through ECPipe.
PLUGIN = {"dfs.datanode.plugins": "io.ecpipe.hdfs.DataNodePlugin"}
# With which a client reads through it.
FILE_SYSTEM = {"fs.hdfs.impl": "io.ecpipe.hdfs.EcpipeFileSystem",
               "fs.AbstractFileSystem.hdfs.impl": "io.ecpipe.hdfs.EcpipeFs"}
UP_SECONDS = 240
POLL_SECONDS = 0.3  # a question costs a JVM a few milliseconds
NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
FETCH = """import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())"""
# A dead DataNode is noticed within 11 s and not 10.5 min; a lost replica within seconds and not
# hours; and the NameNode's throttles of reconstruction are raised, or they are what is tested. A
# node with more connections than twice the average would get no block; here all are needed.
FAST = {
    "dfs.namenode.redundancy.considerLoad": "false",
    "dfs.heartbeat.interval": 1,
    "dfs.namenode.heartbeat.recheck-interval": 500,
    "dfs.namenode.redundancy.interval.seconds": 1,
    "dfs.namenode.reconstruction.pending.timeout-sec": 20,
    "dfs.namenode.replication.work.multiplier.per.iteration": 20,
    "dfs.namenode.replication.max-streams": 20,
    "dfs.namenode.replication.max-streams-hard-limit": 40,
    "dfs.namenode.decommission.interval": 1,
    "dfs.datanode.directoryscan.interval": 3,
    "dfs.blockreport.initialDelay": 0,
    "dfs.blockreport.intervalMsec": 4000,
}


def await_state(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Asks a JVM now and then until the answer is yes. LabError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"waited {seconds:g} s in vain for: {what}")
        threading.Event().wait(POLL_SECONDS)


def write_configuration(file: Path, properties: Mapping[str, Any]) -> None:
    lines = [f"<property><name>{name}</name><value>{escape(str(value))}</value></property>"
             for name, value in properties.items()]
    file.write_text("<configuration>\n" + "\n".join(lines) + "\n</configuration>\n")


def jmx(host: Host, http: str, bean: str) -> dict[str, Any]:
    """The attributes of a bean; nothing while the daemon does not answer or has no such bean. A
    process asks, since an address in a namespace is not to be reached from here."""
    answer = host.run([host.python, "-S", "-E", "-c", FETCH, f"http://{http}/jmx?qry={bean}"],
                      check=False)
    try:
        beans = json.loads(answer.stdout)["beans"]
    except ValueError:
        return {}
    return beans[0] if beans else {}


def link_target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""  # closed in the meantime


@dataclass(frozen=True)
class Resources:
    """What a process has open."""

    sockets: int      # Unix and TCP
    descriptors: int  # these included
    threads: int

    def least(self, other: Resources) -> Resources:
        return Resources(min(self.sockets, other.sockets),
                         min(self.descriptors, other.descriptors),
                         min(self.threads, other.threads))


@dataclass
class DataNode:
    name: str
    host: Host
    volume: Path
    data_address: str     # host:port where blocks are read and written
    http: str             # host:port of its web server
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
        return jmx(self.host, self.http, "ecpipe:name=Reconstruction")

    def resources(self) -> Resources:
        base = Path("/proc") / str(self.daemon.pid)
        links = [link_target(link) for link in (base / "fd").iterdir()]
        return Resources(sum(link.startswith("socket:") for link in links), len(links),
                         len(list((base / "task").iterdir())))


class Hdfs:
    """The NameNode is on the network's COORDINATOR; DataNodes are added, each on the network's node
    of its name. `settings` are for all daemons and clients. Files are on this machine, under
    `work`."""

    def __init__(self, tools: Toolchain, work: Path, *, network: Network | None = None,
                 settings: Mapping[str, Any] | None = None) -> None:
        self.tools = tools
        self.work = work
        self.network: Network = network or Loopback()
        self._host = self.network.host(COORDINATOR)
        address = self.network.address(COORDINATOR)
        rpc, http = free_ports(2)
        self.http = f"{address}:{http}"
        self._common = {
            "fs.defaultFS": f"hdfs://{address}:{rpc}",
            "dfs.namenode.http-address": self.http,
            "dfs.namenode.name.dir": f"file://{self.work}/name",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.permissions.enabled": "false",
            "dfs.replication": 1,
            "hadoop.tmp.dir": f"{self.work}/tmp",
            **FAST, **(settings or {})}
        for folder in ("conf", "logs", "name", "tmp", "run"):
            (self.work / folder).mkdir(parents=True, exist_ok=True)
        self._namenode_conf = self.configuration("namenode", {})
        # Jetty unpacks there, and whoever is killed leaves it.
        self._flags = [f"-Djava.io.tmpdir={self.work}/tmp"]
        # -refreshNodes reads what hdfs-site.xml of the class path says, and not -conf.
        self._site = self.work / "conf" / "site"
        self._site.mkdir(exist_ok=True)
        write_configuration(self._site / "hdfs-site.xml", {
            "dfs.hosts.exclude": self._site / "excluded"})
        self.exclude([])
        self.namenode = self._daemon("namenode", self._host, self.java(
            NAMENODE, "-conf", self._namenode_conf, heap="256m", folders=[self._site]))
        self.datanodes: list[DataNode] = []

    def java(self, main: str, *arguments: str | Path, heap: str = "160m",
             folders: Sequence[Path] = ()) -> list[str]:
        """A JVM of this cluster: what it leaves is under `work`."""
        return self.tools.java(main, *arguments, heap=heap, flags=self._flags, folders=folders)

    def configuration(self, name: str, properties: Mapping[str, Any]) -> Path:
        """A file with these properties and those that all have."""
        file = self.work / "conf" / f"{name}.xml"
        write_configuration(file, {**self._common, **properties})
        return file

    def _daemon(self, name: str, host: Host, command: list[str]) -> Daemon:
        return Daemon(name, command, self.work / "logs" / f"hdfs-{name}.log", host=host)

    def add_datanode(self, name: str, properties: Mapping[str, Any]) -> DataNode:
        """start() starts it with the others; one that comes later is its caller's to start."""
        host, address = self.network.host(name), self.network.address(name)
        addresses = [f"{address}:{port}" for port in free_ports(len(DATANODE_ADDRESSES))]
        volume, endpoint = self.work / "data" / name, self.work / "run" / f"{name}.sock"
        volume.mkdir(parents=True)
        conf = self.configuration(name, {
            "dfs.datanode.data.dir": f"file://{volume}",
            "dfs.datanode.hostname": address,
            "ecpipe.endpoint": f"unix:{endpoint}",
            **dict(zip(DATANODE_ADDRESSES, addresses)), **properties})
        node = DataNode(name, host, volume, addresses[0], addresses[1], endpoint, self._daemon(
            name, host, self.java(DATANODE, "-conf", conf)))
        self.datanodes.append(node)
        return node

    # ---- Life ------------------------------------------------------------------------------

    def start(self) -> None:
        self._run_to_end("format", self.java(
            NAMENODE, "-conf", self._namenode_conf, "-format", "-nonInteractive"))
        self.namenode.start()
        if not self.tools.archive.exists():
            self._dump_archive()
        for node in self.datanodes:
            node.daemon.start()
        self.wait_live(len(self.datanodes))
        for node in self.datanodes:
            node.read_uuid()

    def _run_to_end(self, name: str, command: list[str]) -> None:
        daemon = self._daemon(name, self._host, command)
        daemon.start()
        if daemon.reap(UP_SECONDS) != 0:
            raise RuntimeError(f"{name} failed\n{daemon.log_tail()}")

    def _dump_archive(self) -> None:
        """A DataNode that lives until it is registered leaves the archive that all others share. It
        is without our jar, which changes too often."""
        address = self.network.address(COORDINATOR)
        conf = self.configuration("dumper", {
            "dfs.datanode.data.dir": f"file://{self.work}/dumper",
            **{key: f"{address}:0" for key in DATANODE_ADDRESSES}})
        dumper = self._daemon("dumper", self._host, self.tools.java_that_dumps(
            DATANODE, "-conf", conf, flags=self._flags))
        dumper.start()
        try:
            self.wait_live(1)
        finally:
            dumper.stop(DUMP_SECONDS)
        self.tools.new_archive.rename(self.tools.archive)
        self.wait_live(0)

    def wait_live(self, count: int) -> None:
        def live() -> bool:
            for daemon in self.daemons():
                if daemon.ended_badly():
                    raise LabError(f"{daemon.name} has ended\n{daemon.log_tail()}")
            return self.state().get("NumLiveDataNodes") == count
        await_state(live, UP_SECONDS, f"{count} live DataNodes")

    def state(self) -> dict[str, Any]:
        return jmx(self._host, self.http, "Hadoop:service=NameNode,name=FSNamesystemState")

    def tells_uuids(self) -> bool:
        """Whether the NameNode tells the UUIDs of DataNodes; those before Hadoop 3.4 do not."""
        info = jmx(self._host, self.http, "Hadoop:service=NameNode,name=NameNodeInfo")
        return all("uuid" in node for node in json.loads(info["LiveNodes"]).values())

    def exclude(self, nodes: Sequence[DataNode]) -> None:
        """These are to be decommissioned, and no others, from the next -refreshNodes on."""
        (self._site / "excluded").write_text("".join(f"{node.data_address}\n" for node in nodes))

    def admin_state(self, node: DataNode) -> str:
        """Of a live node, as "In Service", "Decommission In Progress", "Decommissioned"."""
        live = json.loads(jmx(self._host, self.http, "Hadoop:service=NameNode,name=NameNodeInfo")[
            "LiveNodes"])
        return next(str(facts["adminState"]) for facts in live.values()
                    if facts["xferaddr"] == node.data_address)

    def stop(self) -> None:
        stop_all(self.daemons())

    # ---- Use -------------------------------------------------------------------------------

    def daemons(self) -> list[Daemon]:
        return [*(node.daemon for node in self.datanodes), self.namenode]

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
