# SPDX-License-Identifier: Apache-2.0
"""A whole ECPipe cluster of real processes: on loopback, in network namespaces, on other machines.

    with Cluster(bin_dir, work_dir, nodes=15, redis=True) as cluster:
        cluster.cli("catalog", "load", manifest)
        cluster.helpers["node-4"].kill()
        cluster.coordinator.restart()

Under the work directory: data/NODE (block roots), config, logs, state, redis, run (ready files).
Every wait is bounded. Leaving the `with` stops everything; it raises LabError when a daemon ended
with an error of its own; when the body failed it says where the logs are, and prints the lines
that tell of trouble.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from .certificates import Certificates
from .clock import JumpingClocks
from .daemon import Daemon, stop_all
from .host import Host, LocalHost
from .links import LinkBytes, Links
from .process import LabError, free_port, wait_until
from .settings import Settings, merged, toml_text
from .timeline import WatchPoint

# Generous: a sanitizer build on a busy two-core machine starts slowly. Nothing waits this long
# unless something is wrong.
READY_SECONDS = 60.0
CLI_SECONDS = 120.0
REDIS_PORT_ATTEMPTS = 5
COORDINATOR = "coordinator"
REQUESTOR = "requestor"


class Network(Protocol):
    """Where nodes live: Loopback, netns.Network, or ssh.Network."""

    ports: Ports
    insecure: bool           # whether its addresses are off loopback
    links: Links             # their rates, as far as they are known
    congestion_control: str  # TCP's

    def address(self, node: str) -> str: ...
    def host(self, node: str) -> Host: ...
    def rack(self, node: str) -> str | None: ...
    def link_bytes(self) -> dict[str, LinkBytes] | None:
        """What each node's link has carried; None where nobody counts that."""
    def watch_point(self) -> WatchPoint | None:
        """From where links can be counted while a repair runs; None: from nowhere."""


@dataclass(frozen=True)
class Ports:
    """0 lets the system choose; in a namespace each node has all ports to itself."""

    coordinator: int = 0
    control: int = 0
    data: int = 0
    redis: int = 0


class Loopback:
    """All nodes on 127.0.0.1, ports chosen by the system, but of the coordinator, which comes back
    on the same one."""

    insecure = False
    links = Links()
    congestion_control = "of the machine"

    def __init__(self) -> None:
        self.ports = Ports(coordinator=free_port())

    def address(self, node: str) -> str:
        return "127.0.0.1"

    def host(self, node: str) -> Host:
        return LocalHost()

    def rack(self, node: str) -> str | None:
        return None

    def link_bytes(self) -> None:
        return None

    def watch_point(self) -> None:
        return None


@dataclass
class EcpipeDaemon(Daemon):
    """A daemon with a config file, which says through its ready file where it listens."""

    config_file: Path = Path()
    ready_file: Path = Path()
    settings: Settings = field(default_factory=dict)
    ready: dict[str, str] = field(default_factory=dict)

    def launch(self) -> None:
        """Starts without waiting, so that many can start together."""
        self.host.write_text(self.config_file, toml_text(self.settings))
        self.host.remove(self.ready_file)
        self.start()

    def await_ready(self, seconds: float = READY_SECONDS) -> None:
        self.wait_ready(lambda: self.host.exists(self.ready_file), seconds)
        self.ready = json.loads(self.host.read_text(self.ready_file))

    def restart(self) -> None:
        """Stops it when it runs, and starts it on the same data."""
        self.stop()
        self.launch()
        self.await_ready()


@dataclass
class Coordinator(EcpipeDaemon):
    @property
    def address(self) -> str:
        return self.ready["listen"]

    def await_ready(self, seconds: float = READY_SECONDS) -> None:
        """Keeps the port that it was given, so that a restart comes back where all look for it."""
        super().await_ready(seconds)
        self.settings["coordinator"]["listen"] = self.address


@dataclass
class Helper(EcpipeDaemon):
    root: Path = Path()
    redis: Daemon | None = None


class Cluster:
    """`nodes`: how many (node-1, node-2, ...) or their names. `redis`: one redis-server a helper.
    `network`: one that has the nodes, COORDINATOR and REQUESTOR. The settings are laid over the
    configs, section by section; `links_table` is topology.links' text; `environment` is added
    to that of each program. `certificates`: TLS for all programs, each with that of its name.
    `endpoints`: a requestor endpoint in each helper, and one on REQUESTOR, at socket_of(node).
    `clocks`: of all its daemons. `logs_stay`: if nobody can read them after a failure, the ends of
    them all are printed. `patience_s`: how long helpers wait for bytes, commands for any answer,
    and the coordinator for news of a repair; None: their defaults."""

    def __init__(self, bin_dir: Path, work_dir: Path, nodes: int | Sequence[str] = 15, *,
                 redis: bool = False, network: Network | None = None,
                 coordinator_settings: Mapping[str, Mapping[str, Any]] | None = None,
                 helper_settings: Mapping[str, Mapping[str, Any]] | None = None,
                 links_table: str | None = None,
                 environment: dict[str, str] | None = None,
                 certificates: Certificates | None = None, endpoints: bool = False,
                 clocks: JumpingClocks | None = None, logs_stay: bool = True,
                 patience_s: float | None = None) -> None:
        self.bin_dir = Path(bin_dir).resolve()
        self.work_dir = Path(work_dir).resolve()
        self.node_ids = node_names(nodes)
        self.network: Network = network or Loopback()
        self._with_redis = redis
        self._environment = environment or {}
        self._clocks = clocks
        self._patience_s = patience_s
        self._helper_settings = self._patient("stall_seconds", helper_settings or {})
        self.certificates = certificates
        self._with_endpoints = endpoints
        self._logs_stay = logs_stay
        self.requestor = self.network.host(REQUESTOR)
        for name in (COORDINATOR, REQUESTOR, *self.node_ids):
            self._make_directories(name)
        self.coordinator = self._make_coordinator(
            self._patient("abandon_after_seconds", coordinator_settings or {}), links_table)
        self.helpers: dict[str, Helper] = {}
        self._redis_servers: list[Daemon] = []
        self.endpoint: EcpipeDaemon | None = None

    # ---- Life ------------------------------------------------------------------------------

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except BaseException as error:
            if not isinstance(error, SystemExit):  # somebody interrupted it
                self.print_logs()
            self.stop()
            raise
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        if error_type is not None and not issubclass(error_type, SystemExit):
            self.print_logs()
        self.stop()
        if error_type is None:
            self.check_ends()

    def check_ends(self) -> None:
        """LabError when a daemon ended with an error of its own."""
        bad = [daemon for daemon in self.daemons() if daemon.ended_badly()]
        if bad:
            raise LabError("\n".join(
                f"{daemon.name} ended with exit code {daemon.exit_code()}\n{daemon.log_tail()}"
                for daemon in bad))

    def start(self) -> None:
        self.coordinator.launch()
        self.coordinator.await_ready()
        for node in self.node_ids:
            self.helpers[node] = self._make_helper(node)
        for helper in self.helpers.values():
            helper.launch()
        for helper in self.helpers.values():
            helper.await_ready()
        if self._with_endpoints:
            self.endpoint = self._make_endpoint()
            self.endpoint.launch()
            self.endpoint.await_ready()
        self.wait_live(self.node_ids)

    def add_helper(self, node: str) -> Helper:
        """One more, on a node that the network has."""
        self._make_directories(node)
        helper = self.helpers[node] = self._make_helper(node)
        self.node_ids.append(node)
        helper.launch()
        helper.await_ready()
        self.wait_live([node])
        return helper

    def add_successor(self, node: str) -> Helper:
        """A helper with the settings of the one there, which may still drain."""
        old = self.helpers[node]
        helper = self.helpers[node] = self._make_helper(node)
        helper.settings = old.settings
        helper.launch()
        helper.await_ready()
        return helper

    def stop(self) -> None:
        """Stops what still runs: helpers first, so that they can take their leave."""
        stop_all([*self.helpers.values(), *([self.endpoint] if self.endpoint else [])])
        stop_all([self.coordinator])
        stop_all(self._redis_servers)

    def daemons(self) -> list[Daemon]:
        return [self.coordinator, *self.helpers.values(), *self._redis_servers,
                *([self.endpoint] if self.endpoint else [])]

    # ---- Use -------------------------------------------------------------------------------

    def base(self, node: str) -> Path:
        """The work directory as it is called on the node's host."""
        return self.network.host(node).base(self.work_dir)

    def _words(self, *arguments: str | Path) -> list[str]:
        identity = self.certificates.arguments(REQUESTOR) if self.certificates else []
        patience = ["--timeout", str(self._patience_s)] if self._patience_s else []
        return [str(self.requestor.program(self.bin_dir / "ecpipe")), "--coordinator",
                self.coordinator.address, *identity, *patience, *map(str, arguments)]

    def command(self, *arguments: str | Path) -> list[str]:
        """The `ecpipe` command as a requestor on this machine would type it."""
        if not isinstance(self.requestor, LocalHost):
            raise LabError("the requestor is on another machine; use cli() instead")
        return self.requestor.command(self._words(*arguments))

    def cli(self, *arguments: str | Path, timeout: float = CLI_SECONDS, check: bool = True,
            ) -> subprocess.CompletedProcess[str]:
        """Runs `ecpipe`. With `check`, LabError with its output unless it exits with 0."""
        return self.requestor.run(self._words(*arguments), timeout=timeout, check=check,
                                  environment=self._environment)

    def cli_json(self, *arguments: str | Path, timeout: float = CLI_SECONDS) -> dict[str, Any]:
        output = self.cli(*arguments, "--json", timeout=timeout).stdout
        try:
            return json.loads(output)
        except json.JSONDecodeError as error:
            raise LabError(f"ecpipe {arguments[0]} --json: not JSON ({error}): "
                           f"{output[:500]}") from None

    def status(self) -> dict[str, Any]:
        return self.cli_json("status")

    def node_status(self) -> dict[str, dict[str, Any]]:
        return {node["node_id"]: node for node in self.status()["nodes"]}

    def wait_live(self, nodes: Sequence[str], seconds: float = READY_SECONDS) -> None:
        """As they run now: of one that was killed and started again, what is known of its last life
        does not count."""
        def all_live() -> bool:
            asked = time.monotonic()
            known = self.node_status()
            return all(node in known and known[node]["state"] == "live"
                       and known[node]["seconds_since_heartbeat"]
                       < asked - self.helpers[node].started_at for node in nodes)
        wait_until(all_live, seconds, f"{len(nodes)} nodes live at the coordinator")

    def wait_idle(self, seconds: float = READY_SECONDS) -> dict[str, dict[str, Any]]:
        """Until no helper has a session: then counters stand still. Returns the status of the nodes
        that answer, which are all that live."""
        answers: dict[str, dict[str, Any]] = {}

        def idle() -> bool:
            known = self.node_status()
            answers.clear()
            answers.update({name: node for name, node in known.items() if node["answers"]})
            return (all(node["answers"] for node in known.values() if node["state"] == "live")
                    and not any(node["active_sessions"] for node in answers.values()))
        wait_until(idle, seconds, "all sessions ended")
        return answers

    def wait_settled(self, seconds: float = READY_SECONDS) -> None:
        """Until the coordinator, too, knows that no helper has a session: each has sent a heartbeat
        since. Before that it takes other helpers, and a plan that is shown is not the next one."""
        self.wait_idle(seconds)
        idle_since = time.monotonic()

        def heard_since() -> bool:
            age = time.monotonic() - idle_since
            return all(node["seconds_since_heartbeat"] < age
                       for node in self.node_status().values() if node["state"] == "live")
        wait_until(heard_since, seconds, "a heartbeat of each node")

    def cpu_seconds(self) -> float:
        """Of all daemons and redis-servers that run now."""
        return sum(daemon.cpu_seconds() for daemon in self.daemons())

    def link_bytes(self) -> dict[str, LinkBytes]:
        """What each node's link has carried; where nobody counts that, what each helper's data
        plane has carried, by the helpers' own counters."""
        idle = self.wait_idle()
        return self.network.link_bytes() or {
            node: LinkBytes(status["data_bytes_sent"], status["data_bytes_received"])
            for node, status in idle.items()}

    def traffic_since(self, before: Mapping[str, LinkBytes]) -> dict[str, LinkBytes]:
        """What links have carried since `before`, which link_bytes() returned. A requestor without
        a counter received what the helpers sent and did not receive."""
        after = self.link_bytes()
        carried = {node: after[node] - before[node] for node in after if node in before}
        missing = sum(link.up for link in carried.values()) - sum(
            link.down for link in carried.values())
        return {REQUESTOR: LinkBytes(0, missing), **carried}

    def socket_of(self, node: str) -> Path:
        """Of the requestor endpoint there."""
        return self.base(node) / "run" / f"{node}.sock"

    def cookie_of(self, node: str) -> Path:
        """What an endpoint on TCP wants to be shown."""
        return self.base(node) / "run" / f"{node}.cookie"

    def data_dir(self) -> Path:
        return self.work_dir / "data"

    def block_path(self, node: str, block_id: str) -> Path:
        """Where a block of this node lies, as it is called on the node's host."""
        return self.base(node) / "data" / node / block_id

    def block_file(self, block_id: str) -> Path:
        """Where a block lies on this machine, on whichever node. LabError when it is on none."""
        found = sorted(self.data_dir().glob(f"*/{block_id}"))
        if not found:
            raise LabError(f"no node has a block {block_id}")
        return found[0]

    def print_logs(self) -> None:
        """Of each daemon: where its log is, and what in it matters; or all of its end."""
        for daemon in (self.coordinator, *self.helpers.values()):
            if text := daemon.log_troubles() if self._logs_stay else daemon.log_tail():
                print(text, file=sys.stderr)

    # ---- Making daemons --------------------------------------------------------------------

    def _patient(self, key: str, settings: Mapping[str, Mapping[str, Any]]) -> Settings:
        return merged({"timeouts": {key: self._patience_s}} if self._patience_s else {}, settings)

    def _make_directories(self, name: str) -> None:
        for folder in ("data", "config", "logs", "state", "run"):
            self.network.host(name).make_directory(self.base(name) / folder)

    def _daemon_fields(self, name: str, program: str) -> dict[str, Any]:
        host, base = self.network.host(name), self.base(name)
        config = base / "config" / f"{name}.toml"
        ready = base / "run" / f"{name}.json"
        return {
            "name": name,
            "command": [host.program(self.bin_dir / program), "--config", config,
                        "--ready-file", ready],
            "host": host,
            "log_file": base / "logs" / f"{name}.log",
            "environment": {**self._environment,
                            **(self._clocks.environment(name) if self._clocks else {})},
            "config_file": config,
            "ready_file": ready,
        }

    def _listen(self, node: str, port: int) -> str:
        return f"{self.network.address(node)}:{port}"

    def _make_coordinator(self, extra: Mapping[str, Mapping[str, Any]],
                          links_table: str | None) -> Coordinator:
        state = self.base(COORDINATOR) / "state" / COORDINATOR
        self.network.host(COORDINATOR).make_directory(state)
        settings: Settings = {
            "coordinator": {"listen": self._listen(COORDINATOR, self.network.ports.coordinator),
                            "data_directory": str(state)}}
        if self.network.insecure:
            settings["coordinator"]["insecure"] = True
        if self.certificates:
            settings["tls"] = self.certificates.settings(COORDINATOR)
        if links_table is not None:
            file = self.base(COORDINATOR) / "config" / "links.txt"
            self.network.host(COORDINATOR).write_text(file, links_table)
            settings["topology"] = {"links": str(file)}
        return Coordinator(settings=merged(settings, extra), **self._daemon_fields(
            COORDINATOR, "ecpipe-coordinator"))

    def _make_helper(self, node: str) -> Helper:
        root = self.base(node) / "data" / node
        self.network.host(node).make_directory(root)
        settings: Settings = {
            "helper": {"node_id": node, "coordinator": self.coordinator.address,
                       "roots": [str(root)]},
            "listen": {"control": self._listen(node, self.network.ports.control),
                       "data": self._listen(node, self.network.ports.data)}}
        if self.network.insecure:
            settings["helper"]["insecure"] = True
        if self.certificates:
            settings["tls"] = self.certificates.settings(node)
        if rack := self.network.rack(node):
            settings["helper"]["rack"] = rack
        if self._with_endpoints:
            settings["endpoint"] = {"address": f"unix:{self.socket_of(node)}"}
        redis = None
        if self._with_redis:
            redis, address = self._start_redis(node)
            settings["redis"] = {"address": address}
        settings = merged(settings, self._helper_settings)
        if settings.get("endpoint", {}).get("address", "").startswith("tcp:"):
            settings["endpoint"] = {"cookie": str(self.cookie_of(node)), **settings["endpoint"]}
        return Helper(settings=settings, root=root, redis=redis,
                      **self._daemon_fields(node, "ecpipe-helper"))

    def _make_endpoint(self) -> EcpipeDaemon:
        settings: Settings = {
            "requestor": {"coordinator": self.coordinator.address,
                          "insecure": self.network.insecure},
            "endpoint": {"address": f"unix:{self.socket_of(REQUESTOR)}"}}
        if self.certificates:
            settings["tls"] = self.certificates.settings(REQUESTOR)
        fields = self._daemon_fields(REQUESTOR, "ecpipe-helper")
        fields["command"] += ["--requestor-only"]
        return EcpipeDaemon(settings=settings, **fields)

    def _start_redis(self, node: str) -> tuple[Daemon, str]:
        """A redis-server that keeps nothing. It cannot choose a port by itself, so a port that
        somebody took in between costs another attempt."""
        host, address = self.network.host(node), self.network.address(node)
        folder = self.base(node) / "redis" / node
        host.make_directory(folder)
        for attempt in range(REDIS_PORT_ATTEMPTS):
            port = self.network.ports.redis or host.free_port()
            log = self.base(node) / "logs" / f"redis-{node}.{attempt}.log"
            daemon = Daemon(f"redis-{node}", [
                "redis-server", "--bind", address, "--port", str(port),
                "--save", "", "--appendonly", "no", "--dir", folder, "--protected-mode", "no",
                "--daemonize", "no"], log, host=host)
            host.remove(log)
            self._redis_servers.append(daemon)
            daemon.start()
            try:
                daemon.wait_ready(lambda: "Ready to accept connections" in host.read_text(log),
                                  READY_SECONDS)
                return daemon, f"{address}:{port}"
            except LabError as error:
                daemon.kill()
                self._redis_servers.remove(daemon)
                last_error = error
        raise LabError(f"redis-server of {node}: {last_error}")


def node_names(nodes: int | Sequence[str]) -> list[str]:
    return [f"node-{i}" for i in range(1, nodes + 1)] if isinstance(nodes, int) else list(nodes)
