# SPDX-License-Identifier: Apache-2.0
"""A whole ECPipe cluster of real processes, on loopback or in network namespaces.

    with Cluster(bin_dir, work_dir, nodes=15, redis=True) as cluster:
        cluster.cli("catalog", "load", manifest)
        cluster.helpers["node-4"].kill()
        cluster.coordinator.restart()

Under the work directory: data/NODE (block roots), config, logs, state, redis, run (ready files).
Every wait is bounded. Leaving the `with` stops everything; it raises LabError when a daemon ended
with an error of its own, and prints the ends of the logs when the body failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from .netns import LinkBytes
from .process import (
    LOG_TAIL_LINES, Daemon, LabError, free_port, run, stop_all, wait_until)

# Generous: a sanitizer build on a busy two-core machine starts slowly. Nothing waits this long
# unless something is wrong.
READY_SECONDS = 60.0
CLI_SECONDS = 120.0
REDIS_PORT_ATTEMPTS = 5
COORDINATOR = "coordinator"
REQUESTOR = "requestor"

# A TOML file as sections of keys.
Settings = dict[str, dict[str, Any]]


class Network(Protocol):
    """Where nodes live. netns.Network is one; Loopback the other."""

    def address(self, node: str) -> str: ...
    def command(self, node: str) -> list[str]: ...


class Loopback:
    """All nodes on 127.0.0.1, ports chosen by the system."""

    def address(self, node: str) -> str:
        return "127.0.0.1"

    def command(self, node: str) -> list[str]:
        return []


@dataclass(frozen=True)
class Ports:
    """0 lets the system choose; in a namespace each node has all ports to itself."""

    coordinator: int = 0
    control: int = 0
    data: int = 0
    redis: int = 0


NAMESPACE_PORTS = Ports(coordinator=7700, control=7711, data=7712, redis=6401)


def toml_text(settings: Settings) -> str:
    """JSON's strings, numbers, booleans and lists of those are TOML's as well."""
    lines = []
    for section, values in settings.items():
        lines += [f"[{section}]", *(f"{key} = {json.dumps(v)}" for key, v in values.items()), ""]
    return "\n".join(lines)


def merged(base: Settings, extra: Mapping[str, Mapping[str, Any]]) -> Settings:
    sections = {**base, **{name: {} for name in extra if name not in base}}
    return {name: {**values, **extra.get(name, {})} for name, values in sections.items()}


@dataclass
class EcpipeDaemon(Daemon):
    """A daemon with a config file, which says through its ready file where it listens."""

    config_file: Path = Path()
    ready_file: Path = Path()
    settings: Settings = field(default_factory=dict)
    ready: dict[str, str] = field(default_factory=dict)

    def launch(self) -> None:
        """Starts without waiting, so that many can start together."""
        self.config_file.write_text(toml_text(self.settings))
        self.ready_file.unlink(missing_ok=True)
        self.start()

    def await_ready(self, seconds: float = READY_SECONDS) -> None:
        self.wait_ready(self.ready_file.exists, seconds)
        self.ready = json.loads(self.ready_file.read_text())

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
    `network`: a netns.Network that has the nodes, COORDINATOR and REQUESTOR. The settings are laid
    over the configs, section by section; `environment` is added to that of each program."""

    def __init__(self, bin_dir: Path, work_dir: Path, nodes: int | Sequence[str] = 15, *,
                 redis: bool = False, network: Network | None = None,
                 coordinator_settings: Mapping[str, Mapping[str, Any]] | None = None,
                 helper_settings: Mapping[str, Mapping[str, Any]] | None = None,
                 environment: dict[str, str] | None = None) -> None:
        self.bin_dir = Path(bin_dir).resolve()
        self.work_dir = Path(work_dir).resolve()
        self.node_ids = node_names(nodes)
        self.network: Network = network or Loopback()
        self._ports = NAMESPACE_PORTS if network else Ports()
        self._insecure = network is not None
        self._with_redis = redis
        self._environment = environment or {}
        self._helper_settings = helper_settings or {}
        for folder in ("data", "config", "logs", "state", "run"):
            (self.work_dir / folder).mkdir(parents=True, exist_ok=True)
        self.coordinator = self._make_coordinator(coordinator_settings or {})
        self.helpers: dict[str, Helper] = {}

    # ---- Life ------------------------------------------------------------------------------

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except BaseException:
            self.print_logs()
            self.stop()
            raise
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        interrupted = error_type is not None and issubclass(error_type, SystemExit)
        if error_type is not None and not interrupted:
            self.print_logs()
        self.stop()
        bad = [daemon for daemon in self.daemons() if daemon.ended_badly()]
        if bad and error_type is None:
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
        self.wait_live(self.node_ids)

    def stop(self) -> None:
        """Stops what still runs: helpers first, so that they can take their leave."""
        stop_all(list(self.helpers.values()))
        stop_all([self.coordinator])
        stop_all([helper.redis for helper in self.helpers.values() if helper.redis])

    def daemons(self) -> list[Daemon]:
        redis = [helper.redis for helper in self.helpers.values() if helper.redis]
        return [self.coordinator, *self.helpers.values(), *redis]

    # ---- Use -------------------------------------------------------------------------------

    def command(self, *arguments: str | Path) -> list[str]:
        """The `ecpipe` command as the requestor would type it."""
        return [*self.network.command(REQUESTOR), str(self.bin_dir / "ecpipe"),
                "--coordinator", self.coordinator.address, *map(str, arguments)]

    def cli(self, *arguments: str | Path, timeout: float = CLI_SECONDS, check: bool = True,
            ) -> subprocess.CompletedProcess[str]:
        """Runs `ecpipe`. With `check`, LabError with its output unless it exits with 0."""
        return run(self.command(*arguments), timeout=timeout, check=check,
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
        def all_live() -> bool:
            known = self.node_status()
            return all(known.get(node, {}).get("state") == "live" for node in nodes)
        wait_until(all_live, seconds, f"{len(nodes)} nodes live at the coordinator")

    def wait_idle(self, seconds: float = 20.0) -> dict[str, dict[str, Any]]:
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

    def cpu_seconds(self) -> float:
        """Of all daemons and redis-servers that run now."""
        return sum(daemon.cpu_seconds() for daemon in self.daemons())

    def link_bytes(self) -> dict[str, LinkBytes]:
        """What each helper's data plane has carried, by the helpers' own counters."""
        return {node: LinkBytes(status["data_bytes_sent"], status["data_bytes_received"])
                for node, status in self.wait_idle().items()}

    def data_dir(self) -> Path:
        return self.work_dir / "data"

    def block_file(self, block_id: str) -> Path:
        """Where a block lies, on whichever node. LabError when it is on none."""
        found = sorted(self.data_dir().glob(f"*/{block_id}"))
        if not found:
            raise LabError(f"no node has a block {block_id}")
        return found[0]

    def print_logs(self) -> None:
        """The end of every log, shortest for the many helpers."""
        print(self.coordinator.log_tail(2 * LOG_TAIL_LINES), file=sys.stderr)
        for helper in self.helpers.values():
            print(helper.log_tail(LOG_TAIL_LINES // 2), file=sys.stderr)

    # ---- Making daemons --------------------------------------------------------------------

    def _daemon_fields(self, name: str, node: str, program: str) -> dict[str, Any]:
        config = self.work_dir / "config" / f"{name}.toml"
        ready = self.work_dir / "run" / f"{name}.json"
        return {
            "name": name,
            "command": [*self.network.command(node), self.bin_dir / program,
                        "--config", config, "--ready-file", ready],
            "log_file": self.work_dir / "logs" / f"{name}.log",
            "environment": self._environment,
            "config_file": config,
            "ready_file": ready,
        }

    def _listen(self, node: str, port: int) -> str:
        return f"{self.network.address(node)}:{port}"

    def _make_coordinator(self, extra: Mapping[str, Mapping[str, Any]]) -> Coordinator:
        state = self.work_dir / "state" / COORDINATOR
        state.mkdir(exist_ok=True)
        settings: Settings = {
            "coordinator": {"listen": self._listen(COORDINATOR, self._ports.coordinator),
                            "data_directory": str(state)}}
        if self._insecure:
            settings["coordinator"]["insecure"] = True
        return Coordinator(settings=merged(settings, extra), **self._daemon_fields(
            COORDINATOR, COORDINATOR, "ecpipe-coordinator"))

    def _make_helper(self, node: str) -> Helper:
        root = self.data_dir() / node
        root.mkdir(exist_ok=True)
        settings: Settings = {
            "helper": {"node_id": node, "coordinator": self.coordinator.address,
                       "roots": [str(root)], "layout": "plain"},
            "listen": {"control": self._listen(node, self._ports.control),
                       "data": self._listen(node, self._ports.data)}}
        if self._insecure:
            settings["helper"]["insecure"] = True
        redis = None
        if self._with_redis:
            redis, address = self._start_redis(node)
            settings["redis"] = {"address": address}
        return Helper(settings=merged(settings, self._helper_settings), root=root, redis=redis,
                      **self._daemon_fields(node, node, "ecpipe-helper"))

    def _start_redis(self, node: str) -> tuple[Daemon, str]:
        """A redis-server that keeps nothing. It cannot choose a port by itself, so a port that
        somebody took in between costs another attempt."""
        folder = self.work_dir / "redis" / node
        folder.mkdir(parents=True, exist_ok=True)
        host = self.network.address(node)
        for attempt in range(REDIS_PORT_ATTEMPTS):
            port = self._ports.redis or free_port()
            log = self.work_dir / "logs" / f"redis-{node}.{attempt}.log"
            daemon = Daemon(f"redis-{node}", [
                *self.network.command(node), "redis-server", "--bind", host, "--port", port,
                "--save", "", "--appendonly", "no", "--dir", folder, "--protected-mode", "no",
                "--daemonize", "no"], log)
            log.unlink(missing_ok=True)
            daemon.start()
            try:
                daemon.wait_ready(
                    lambda: "Ready to accept connections" in log.read_text(errors="replace"),
                    READY_SECONDS)
                return daemon, f"{host}:{port}"
            except LabError as error:
                daemon.kill()
                last_error = error
        raise LabError(f"redis-server of {node}: {last_error}")


def node_names(nodes: int | Sequence[str]) -> list[str]:
    return [f"node-{i}" for i in range(1, nodes + 1)] if isinstance(nodes, int) else list(nodes)
