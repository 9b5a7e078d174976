# SPDX-License-Identifier: Apache-2.0
"""ECPipe beside the DataNodes: the real daemons, or the stand-in for tests of the Java side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from labkit.cluster import Coordinator, Helper
from labkit.daemon import Daemon, stop_all
from labkit.host import LocalHost
from labkit.process import run, wait_until

from hadoop import DataNode, Hdfs

READY_SECONDS = 30


class Middleware(Protocol):
    real: bool

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill_beside(self, node: DataNode) -> None:
        """kill -9 of what runs beside a DataNode."""
    def sessions(self) -> int:
        """Repairs that are going on; 0 when nobody can tell."""


class Daemons:
    """A coordinator, and a helper with an endpoint beside each DataNode."""

    real = True

    def __init__(self, hdfs: Hdfs, bin_dir: Path) -> None:
        self._hdfs = hdfs
        self._bin = bin_dir
        self._work = hdfs.work / "ecpipe"
        self._work.mkdir()
        self.helpers: dict[str, Helper] = {}
        state = self._work / "coordinator"
        state.mkdir()
        self.coordinator = Coordinator(
            settings={"coordinator": {"listen": "127.0.0.1:0", "data_directory": str(state)}},
            **self._fields("coordinator", "ecpipe-coordinator"))

    def _fields(self, name: str, program: str) -> dict[str, Any]:
        config, ready = self._work / f"{name}.toml", self._work / f"{name}.json"
        return {"name": name, "host": LocalHost(), "config_file": config, "ready_file": ready,
                "command": [self._bin / program, "--config", config, "--ready-file", ready],
                "log_file": self._hdfs.work / "logs" / f"{name}.log"}

    def start(self) -> None:
        self.coordinator.launch()
        self.coordinator.await_ready()
        for node in self._hdfs.live():
            self.helpers[node.name] = Helper(
                settings={
                    "helper": {"node_id": f"helper-{node.name}", "store": "hdfs",
                               "coordinator": self.coordinator.address,
                               "roots": [str(node.volume)]},
                    "listen": {"control": "127.0.0.1:0", "data": "127.0.0.1:0"},
                    "timeouts": {"stall_seconds": 2.0, "drain_seconds": 2.0},
                    "endpoint": {"address": f"unix:{node.socket}"}},
                root=node.volume, **self._fields(f"helper-{node.name}", "ecpipe-helper"))
        for helper in self.helpers.values():
            helper.launch()
        for helper in self.helpers.values():
            helper.await_ready()
        wait_until(lambda: self._live() == len(self.helpers), READY_SECONDS, "live helpers")

    def _status(self) -> dict[str, Any]:
        done = run([self._bin / "ecpipe", "--coordinator", self.coordinator.address, "status",
                    "--json"], timeout=20)
        return json.loads(done.stdout)

    def _live(self) -> int:
        return sum(node["state"] == "live" for node in self._status()["nodes"])

    def stop(self) -> None:
        stop_all([*self.helpers.values(), self.coordinator])

    def kill_beside(self, node: DataNode) -> None:
        self.helpers[node.name].kill()

    def sessions(self) -> int:
        return sum(node.get("active_sessions") or 0 for node in self._status()["nodes"])


class StandIn:
    """One process of ours in Java that answers at every socket of the cluster's DataNodes."""

    real = False

    def __init__(self, hdfs: Hdfs) -> None:
        self._hdfs = hdfs
        self._daemon: Daemon | None = None

    def start(self) -> None:
        nodes = self._hdfs.datanodes
        words = [f"{node.uuid}={node.volume}" for node in nodes]
        self._daemon = Daemon("stand-in", self._hdfs.tools.java(
            "io.ecpipe.hdfs.itest.StandIn", nodes[0].socket, *words, heap="400m"),
            self._hdfs.work / "logs" / "stand-in.log")
        self._daemon.start()
        self._daemon.wait_ready(nodes[0].socket.exists, READY_SECONDS)
        for node in nodes[1:]:
            node.socket.symlink_to(nodes[0].socket)

    def stop(self) -> None:
        if self._daemon is not None:
            self._daemon.kill()

    def kill_beside(self, node: DataNode) -> None:
        """There is one for all, and it stays."""

    def sessions(self) -> int:
        return 0
