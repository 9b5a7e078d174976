# SPDX-License-Identifier: Apache-2.0
"""Hosts inside a machine: network namespaces, each with an address and a link to one bridge."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping, Sequence

from debian_root import Booted

BRIDGE = "storage"


class Hosts:
    """They share the machine's disk and systemd. The machine itself is on the bridge as well, for
    who operates and who watches. All of it goes with the machine. Needs iproute2 there."""

    def __init__(self, machine: Booted, own_address: str, addresses: Mapping[str, str]) -> None:
        self._machine = machine
        lines = [f"ip link add {BRIDGE} type bridge",
                 f"ip address add {own_address}/24 dev {BRIDGE}",
                 f"ip link set {BRIDGE} up"]
        for host, address in addresses.items():
            lines += [f"ip netns add {host}",
                      f"ip link add {host} type veth peer name eth0 netns {host}",
                      f"ip link set {host} master {BRIDGE} up",
                      f"ip -n {host} address add {address}/24 dev eth0",
                      f"ip -n {host} link set eth0 up",
                      f"ip -n {host} link set lo up"]
        machine.run("sh", "-ec", "\n".join(lines))

    def drop_in(self, host: str) -> str:
        """For a unit that runs on this host; %i is the name of an instance."""
        return f"[Service]\nNetworkNamespacePath=/run/netns/{host}\n"

    def cut(self, host: str) -> None:
        """Nothing passes its link in either direction, and nobody is told."""
        self._machine.run("ip", "link", "set", host, "down")

    def join(self, host: str) -> None:
        self._machine.run("ip", "link", "set", host, "up")

    def command_outside(self, host: str, command: Sequence[str | Path]) -> list[str | Path]:
        """Runs a command of the test's own system with the host's network."""
        return [*self._machine.command_outside(f"/run/netns/{host}"), *command]
