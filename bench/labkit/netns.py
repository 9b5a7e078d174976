# SPDX-License-Identifier: Apache-2.0
"""One network namespace a node, on a bridge that has a namespace of its own.

    node namespace                  switch namespace
      eth0  (tbf: its uplink) ===== NODE (tbf: its downlink) -- bridge

Nothing appears in the machine's own namespace, so there is nothing to collide with, and deleting
the namespaces removes everything. Names carry the pid of this process: deleting is asynchronous,
and a fresh name never meets a link that is still going away. There is no IPv6 (addrgenmode none):
its solicitations would show in the byte counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, Sequence

from .process import LabError, run, wait_until

NAME_PREFIX = "ecpipe"
# Addresses from a private range; they exist inside the namespaces only.
ADDRESS_FORMAT = "10.213.{high}.{low}"
ADDRESS_BITS = 16
MAX_NODES = 1000        # the bridge takes 1024 ports
MAX_NAME_CHARACTERS = 15  # of a network interface
# tbf's bucket holds two of the largest packets that a veth hands over (64 KiB): smaller ones are
# cut up by the CPU, larger ones let bursts past the rate.
BURST_BYTES = 128 * 1024
QUEUE_LATENCY_MS = 20
# The first that the machine allows to namespaces. Not the machine's own choice: BBR holds each hop
# below its rate for a part of the time and paces with a timer a packet, and ten hops in a row
# show it (RP 1.26-1.36 x a direct send with BBR, 1.14-1.19 x without, on the same two busy cores).
CONGESTION_CONTROLS = ("cubic", "reno")
COMMAND_SECONDS = 60.0
_CHOOSE_CONTROL = f"""
file=/proc/sys/net/ipv4/tcp_congestion_control
for name in {" ".join(CONGESTION_CONTROLS)}; do
  (echo $name > $file) 2>/dev/null && break
done
cat $file"""


@dataclass(frozen=True)
class LinkBytes:
    """What a node's link has carried, Ethernet headers included."""

    up: int
    down: int

    def __sub__(self, other: LinkBytes) -> LinkBytes:
        return LinkBytes(self.up - other.up, self.down - other.down)


def why_not() -> str | None:
    """Why namespaces cannot be used here; None when they can."""
    if os.geteuid() != 0:
        return "network namespaces need root (try sudo)"
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            return f"{tool} is missing: deploy/install-deps.sh lab installs it"
    probe = f"{NAME_PREFIX}{os.getpid()}-probe"
    try:
        run(["ip", "netns", "add", probe])
        try:
            run(["tc", "-n", probe, "qdisc", "add", "dev", "lo", "root", "tbf",
                 *_tbf_arguments(1000)])
        finally:
            run(["ip", "netns", "del", probe])
    except LabError as error:
        return f"this machine does not allow network namespaces with tbf shaping: {error}"
    return None


def _tbf_arguments(rate_mbit: float) -> list[str]:
    return ["rate", f"{int(rate_mbit * 1000)}kbit", "burst", str(BURST_BYTES),
            "latency", f"{QUEUE_LATENCY_MS}ms"]


class Network:
    """Use as a context manager. `rate_mbit` shapes each node's up- and downlink; None: no limit."""

    def __init__(self, nodes: Sequence[str], rate_mbit: float | None = None) -> None:
        if len(nodes) > MAX_NODES:
            raise LabError(f"{len(nodes)} nodes: a bridge takes {MAX_NODES}")
        for node in nodes:
            if len(node) > MAX_NAME_CHARACTERS:
                raise LabError(f"node name {node!r} is too long for a network interface")
        self.nodes = list(nodes)
        self.rate_mbit = rate_mbit
        self.congestion_control = "unknown"  # set on entry
        self._prefix = f"{NAME_PREFIX}{os.getpid()}-"
        self._switch = self._prefix + "switch"

    def __enter__(self) -> Network:
        delete_leftovers()
        try:
            self._create()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def namespace(self, node: str) -> str:
        return self._prefix + node

    def address(self, node: str) -> str:
        number = self.nodes.index(node) + 1
        return ADDRESS_FORMAT.format(high=number // 250, low=number % 250 + 1)

    def command(self, node: str) -> list[str]:
        """To be put before a command that shall run in the node's namespace. `ip netns exec`
        becomes that command without a fork, so a child's pid is the pid of the command."""
        return ["ip", "netns", "exec", self.namespace(node)]

    def shape(self, node: str, up_mbit: float | None, down_mbit: float | None) -> None:
        """Sets the rates of one node's link; None takes the limit away."""
        self._shape_end(self.namespace(node), "eth0", up_mbit)
        self._shape_end(self._switch, node, down_mbit)

    def link_bytes(self) -> dict[str, LinkBytes]:
        """Counters of each node's link, from the switch's end: what it receives has left the node's
        uplink, what it sends has passed the downlink's shaping."""
        listed = json.loads(run(["ip", "-n", self._switch, "-s", "-j", "link", "show"]).stdout)
        counters = {link["ifname"]: link["stats64"] for link in listed if "stats64" in link}
        return {node: LinkBytes(counters[node]["rx"]["bytes"], counters[node]["tx"]["bytes"])
                for node in self.nodes}

    def close(self) -> None:
        """Deletes what exists of the namespaces; the processes in them must have ended."""
        _delete_namespaces(name for name in list_namespaces() if name.startswith(self._prefix))

    def _create(self) -> None:
        names = [self._switch, *map(self.namespace, self.nodes)]
        _batch(["ip"], [f"netns add {name}" for name in names])
        # A switch is no firewall: passing each packet through netfilter is a tenth of the CPU time
        # of a whole repair. The setting is the namespace's own; without the module it is not there.
        run(["ip", "netns", "exec", self._switch, "sh", "-c",
             "cd /proc/sys/net/bridge 2>/dev/null || exit 0; "
             "for file in bridge-nf-call-*; do echo 0 > $file; done"])
        _batch(["ip", "-n", self._switch], [
            "link add bridge type bridge stp_state 0 forward_delay 0",
            "link set bridge up",
            *(line for node in self.nodes for line in (
                f"link add {node} type veth peer name eth0 netns {self.namespace(node)}",
                f"link set {node} master bridge addrgenmode none up"))])
        for node in self.nodes:
            _batch(["ip", "-n", self.namespace(node)], [
                "link set lo up",
                f"addr add {self.address(node)}/{ADDRESS_BITS} dev eth0",
                "link set eth0 addrgenmode none up"])
            if self.rate_mbit is not None:
                self.shape(node, self.rate_mbit, self.rate_mbit)
            self.congestion_control = run([*self.command(node), "sh", "-c", _CHOOSE_CONTROL]
                                          ).stdout.strip()

    @staticmethod
    def _shape_end(namespace: str, device: str, rate_mbit: float | None) -> None:
        if rate_mbit is None:
            run(["tc", "-n", namespace, "qdisc", "del", "dev", device, "root"], check=False)
            return
        run(["tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf",
             *_tbf_arguments(rate_mbit)])


def _batch(tool: list[str], lines: Sequence[str]) -> None:
    """Many commands for one process: a start of `ip` costs more than its work."""
    run([*tool, "-batch", "-"], timeout=COMMAND_SECONDS, text_input="\n".join(lines) + "\n")


def list_namespaces() -> list[str]:
    folder = Path("/run/netns")
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def _delete_namespaces(names: Iterable[str]) -> None:
    doomed = list(names)
    for name in doomed:
        # One that resists must not keep the others alive.
        run(["ip", "netns", "del", name], check=False)
    with contextlib.suppress(LabError):
        wait_until(lambda: not set(doomed) & set(list_namespaces()), 5.0, "namespaces deleted")


def delete_leftovers() -> None:
    """Namespaces of earlier runs that were killed before they could clean up."""
    owned = re.compile(rf"^{NAME_PREFIX}(\d+)-")
    _delete_namespaces(
        name for name in list_namespaces()
        if (match := owned.match(name)) and not Path("/proc", match.group(1)).exists())
