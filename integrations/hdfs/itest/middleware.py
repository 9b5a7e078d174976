# SPDX-License-Identifier: Apache-2.0
"""ECPipe beside the DataNodes: the real daemons, or the stand-in for tests of the Java side."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any, Protocol

from labkit.cluster import Cluster
from labkit.daemon import Daemon
from labkit.hdfs.hadoop import DataNode, Hdfs
from labkit.process import cpu_seconds

READY_SECONDS = 30


class Middleware(Protocol):
    real: bool

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def add_beside(self, node: DataNode) -> None:
        """For a DataNode that has come later."""
    def kill_beside(self, node: DataNode) -> None:
        """kill -9 of what runs beside a DataNode."""
    def sessions(self) -> int:
        """Repairs that are going on; 0 when nobody can tell."""
    def bytes_read(self) -> int:
        """Of blocks, by the helpers that live; 0 when nobody counts."""
    def cpu_seconds(self) -> dict[str, float]:
        """So far, by kind of daemon; of those that live."""
    def repair_by_name(self, block: str, output: Path) -> None: ...
    def reported_blocks(self) -> int:
        """That the coordinator has heard of."""
    def loss(self, node: DataNode) -> dict[str, Any]:
        """What `ecpipe recover-node --json` says of it."""
    def corrupt_blocks(self) -> set[str]:
        """That the coordinator knows, by name."""
    def limit_helpers(self, mbit: int | None) -> None:
        """What each may send for repairs; None: anything."""


class Daemons:
    """A coordinator, and a helper with an endpoint beside each DataNode."""

    real = True

    def __init__(self, hdfs: Hdfs, bin_dir: Path) -> None:
        self._cluster = Cluster(
            bin_dir, hdfs.work, [node.name for node in hdfs.datanodes], endpoints=True,
            coordinator_settings={
                "hdfs": {"namenodes": [f"http://{hdfs.http}"], "user": getpass.getuser(),
                         "refresh_seconds": 5},
                "timeouts": {"dead_after_seconds": 5.0}},
            helper_settings={"helper": {"store": "hdfs", "report_seconds": 1.0},
                             "timeouts": {"stall_seconds": 2.0, "drain_seconds": 2.0}})

    def start(self) -> None:
        self._cluster.start()

    def stop(self) -> None:
        self._cluster.stop()

    def add_beside(self, node: DataNode) -> None:
        self._cluster.add_helper(node.name)

    def kill_beside(self, node: DataNode) -> None:
        self._cluster.helpers[node.name].kill()

    def repair_by_name(self, block: str, output: Path) -> None:
        """As an operator does: the coordinator asks the NameNode what group it is of."""
        self._cluster.cli("repair", block, "-o", output)

    def reported_blocks(self) -> int:
        return int(self._cluster.status()["hdfs"]["blocks"])

    def loss(self, node: DataNode) -> dict[str, Any]:
        return self._cluster.cli_json("recover-node", node.name, "--detach")

    def corrupt_blocks(self) -> set[str]:
        return {block["block_id"] for block in self._cluster.status()["corrupt_blocks"]}

    def limit_helpers(self, mbit: int | None) -> None:
        nodes = ("--node", ",".join(node for node, status in self._cluster.node_status().items()
                                    if status["answers"]))
        if mbit is None:
            self._cluster.cli("limits", "reset", *nodes)
        else:
            self._cluster.cli("limits", "set", *nodes, "--repair-mbit", str(mbit))

    def sessions(self) -> int:
        return self._sum("active_sessions")

    def bytes_read(self) -> int:
        return self._sum("block_bytes_read")

    def cpu_seconds(self) -> dict[str, float]:
        helpers = [helper for helper in self._cluster.helpers.values() if helper.running()]
        return {"coordinator": cpu_seconds(self._cluster.coordinator.pid),
                "helpers": sum(cpu_seconds(helper.pid) for helper in helpers)}

    def _sum(self, counter: str) -> int:
        return sum(node[counter] for node in self._cluster.node_status().values()
                   if node["answers"])


class StandIn:
    """One process of ours in Java that answers at every socket of the cluster's DataNodes."""

    real = False

    def __init__(self, hdfs: Hdfs) -> None:
        self._hdfs = hdfs
        self._daemon: Daemon | None = None

    def start(self) -> None:
        nodes = self._hdfs.datanodes
        words = [f"{node.uuid}={node.volume}" for node in nodes]
        self._daemon = Daemon("stand-in", self._hdfs.java(
            "io.ecpipe.hdfs.itest.StandIn", nodes[0].socket, *words, heap="400m"),
            self._hdfs.work / "logs" / "stand-in.log")
        self._daemon.start()
        self._daemon.wait_ready(nodes[0].socket.exists, READY_SECONDS)
        for node in nodes[1:]:
            node.socket.symlink_to(nodes[0].socket)

    def stop(self) -> None:
        if self._daemon is not None:
            self._daemon.kill()

    def add_beside(self, node: DataNode) -> None:
        """Nobody answers there: the stand-in knows the DataNodes of its start."""

    def kill_beside(self, node: DataNode) -> None:
        """There is one for all, and it stays."""

    def sessions(self) -> int:
        return 0

    def bytes_read(self) -> int:
        return 0

    def cpu_seconds(self) -> dict[str, float]:
        return {}

    def repair_by_name(self, block: str, output: Path) -> None:
        raise NotImplementedError("the stand-in takes facts only")

    def reported_blocks(self) -> int:
        raise NotImplementedError("the stand-in takes no reports")

    def loss(self, node: DataNode) -> dict[str, Any]:
        raise NotImplementedError("the stand-in knows no nodes")

    def corrupt_blocks(self) -> set[str]:
        raise NotImplementedError("the stand-in checks nothing")

    def limit_helpers(self, mbit: int | None) -> None:
        raise NotImplementedError("the stand-in has no limits")
