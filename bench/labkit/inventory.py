# SPDX-License-Identifier: Apache-2.0
"""Which machines a cluster is made of: a TOML file.

    [ssh]
    options = ["-i", "key.pem"]        # for every connection; ~/.ssh/config counts as well
    directory = "/var/tmp"             # where work directories are made; default: the system's

    [ports]                            # default 0: chosen by the system; fixed ones for firewalls,
    coordinator = 7700                 # and only with one node a machine
    control = 7711
    data = 7712
    redis = 6401

    [coordinator]
    ssh = "admin@203.0.113.1"          # as for the command ssh
    address = "10.0.0.1"               # by which the others reach it

    [[requestor]]                      # more than one for `geo`: one in each region
    ssh = "admin@203.0.113.2"
    address = "10.0.0.2"
    rack = "/us-east"                  # or region; default: none

    [[node]]                           # storage nodes: node-1, node-2, ... in this order
    ssh = "admin@203.0.113.3"
    address = "10.0.0.3"
    rack = "/us-east"
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .process import LabError

TABLES = {"ssh": {"options", "directory"},
          "ports": {"coordinator", "control", "data", "redis"},
          "coordinator": {"ssh", "address", "rack"},
          "requestor": {"ssh", "address", "rack"}, "node": {"ssh", "address", "rack"}}


@dataclass(frozen=True)
class Machine:
    ssh: str
    address: str
    rack: str | None
    directory: str | None


@dataclass(frozen=True)
class Inventory:
    coordinator: Machine
    requestors: tuple[Machine, ...]
    nodes: tuple[Machine, ...]
    ssh_options: tuple[str, ...] = ()
    coordinator_port: int = 0
    control_port: int = 0
    data_port: int = 0
    redis_port: int = 0


def read_inventory(path: Path) -> Inventory:
    try:
        data = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise LabError(f"{path}: {error}") from None
    for table, content in data.items():
        entries = content if isinstance(content, list) else [content]
        for entry in entries:
            if unknown := set(entry) - TABLES.get(table, set()):
                raise LabError(f"{path}: unknown key in [{table}]: {', '.join(sorted(unknown))}")
    directory = data.get("ssh", {}).get("directory")

    def machine(table: str, entry: dict[str, Any]) -> Machine:
        for name in ("ssh", "address"):
            if not isinstance(entry.get(name), str):
                raise LabError(f"{path}: each [{table}] needs {name} = \"...\"")
        return Machine(entry["ssh"], entry["address"], entry.get("rack"), directory)
    for table in ("coordinator", "requestor", "node"):
        if not data.get(table):
            raise LabError(f"{path}: the table [{table}] is missing")
    return Inventory(
        machine("coordinator", data["coordinator"]),
        tuple(machine("requestor", entry) for entry in data["requestor"]),
        tuple(machine("node", entry) for entry in data["node"]),
        tuple(data.get("ssh", {}).get("options", ())),
        **{f"{name}_port": port for name, port in data.get("ports", {}).items()})
