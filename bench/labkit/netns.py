# SPDX-License-Identifier: Apache-2.0
"""One network namespace a node, on bridges that have a namespace of their own.

    node namespace              switch namespace
      eth0  (its uplink) ====== NODE (its downlink) -- bridge
                                NODE (its downlink) -- rack-1 -- up-1 (rack's uplink) == down-1
                                                 (rack's downlink) -- bridge

A node of a rack is on the rack's own bridge, which one shared link joins to the others. Rates are
tbf's; an uplink with rates of its own for some destinations is htb with a leaf for each.

Nothing appears in the machine's own namespace, and the namespaces have no names (namespace.py):
there is nothing to collide with, and all of it goes with the process that made it. There is no
IPv6 (addrgenmode none): its solicitations would show in the byte counts.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import Sequence

from .cluster import Ports
from .host import LocalHost
from .links import LinkBytes, Links
from .namespace import Namespace
from .process import LabError
from .shaping import one_rate, rate_per_destination
from .timeline import CountedLink, WatchPoint

# Addresses from a private range; they exist inside the namespaces only.
ADDRESS_FORMAT = "10.213.{high}.{low}"
ADDRESS_BITS = 16
MAX_NODES = 1000        # the bridge takes 1024 ports
MAX_NAME_CHARACTERS = 15  # of a network interface
_SWITCH = ""  # no node is called so
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
# Least, initial and largest bytes of a connection's buffer. An option of the socket could ask for
# more.
_SET_BUFFERS = """
for file in tcp_rmem tcp_wmem; do
  echo 4096 {bytes} {bytes} > /proc/sys/net/ipv4/$file
done"""


def why_not() -> str | None:
    """Why namespaces cannot be used here; None when they can."""
    if os.geteuid() != 0:
        return "network namespaces need root (try sudo)"
    for tool in ("ip", "tc", "nsenter"):
        if shutil.which(tool) is None:
            return f"{tool} is missing: deploy/install-deps.sh run installs it"
    try:
        with Network(["one", "other"], Links(1000)):
            return None
    except LabError as error:
        return f"this machine does not allow network namespaces with tbf shaping: {error}"


class Network:
    """Use as a context manager; one at a time in a process."""

    ports = Ports(coordinator=7700, control=7711, data=7712, redis=6401)
    insecure = True

    def __init__(self, nodes: Sequence[str], links: Links = Links()) -> None:
        racks = sorted(set(links.racks.values()))
        if len(nodes) + len(racks) > MAX_NODES:
            raise LabError(f"{len(nodes)} nodes are too many: a network bridge takes at most "
                           f"{MAX_NODES}")
        for node in nodes:
            if len(node) > MAX_NAME_CHARACTERS:
                raise LabError(f"node name {node!r} is too long for a network interface")
        self.nodes = list(nodes)
        self.links = links
        self.congestion_control = "unknown"  # set on entry
        # racks without a shared link are only names
        self._bridges = ({rack: f"rack-{i}" for i, rack in enumerate(racks, 1)}
                         if links.rack_mbit else {})
        self.switch = LocalHost()  # set on entry: the namespace in which all links end
        self._namespaces: dict[str, Namespace] = {}

    def __enter__(self) -> Network:
        try:
            self._create()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def address(self, node: str) -> str:
        number = self.nodes.index(node) + 1
        return ADDRESS_FORMAT.format(high=number // 250, low=number % 250 + 1)

    def host(self, node: str) -> LocalHost:
        return self._namespaces[node].host()

    def rack(self, node: str) -> str | None:
        return self.links.racks.get(node)

    def link_bytes(self) -> dict[str, LinkBytes]:
        """Counters of each node's link, from the switch's end: what it receives has left the node's
        uplink, what it sends has passed the downlink's shaping."""
        listed = json.loads(self.switch.run(["ip", "-s", "-j", "link", "show"]).stdout)
        counters = {link["ifname"]: link["stats64"] for link in listed if "stats64" in link}
        return {node: LinkBytes(counters[node]["rx"]["bytes"], counters[node]["tx"]["bytes"])
                for node in self.nodes}

    def watch_point(self) -> WatchPoint | None:
        """The switch; racks' links are there as well. None where no link has a rate. The link of
        two nodes is not counted by itself."""
        links = []
        for node in self.nodes:
            for direction, mbit in (("received", self.links.up(node)),
                                    ("sent", self.links.down(node))):
                if mbit:
                    links.append(CountedLink(node, direction, mbit))
        if self.links.rack_mbit:
            links += [CountedLink(f"{end}-{bridge}", "sent", self.links.rack_mbit)
                      for bridge in self._bridges.values() for end in ("up", "down")]
        if not links:
            return None
        return WatchPoint(self.switch, links)

    def close(self) -> None:
        """The processes in the namespaces must have ended."""
        for namespace in self._namespaces.values():
            namespace.close()

    def _create(self) -> None:
        for name in (_SWITCH, *self.nodes):
            self._namespaces[name] = Namespace()
        self.switch = self._namespaces[_SWITCH].host()
        # A switch is no firewall: passing each packet through netfilter is a tenth of the CPU time
        # of a whole repair. The setting is the namespace's own; without the module it is not there.
        self.switch.run(["sh", "-c", "cd /proc/sys/net/bridge 2>/dev/null || exit 0; "
                         "for file in bridge-nf-call-*; do echo 0 > $file; done"], check=False)
        self._create_switch()
        for node in self.nodes:
            _batch(self.host(node), "ip", [
                "link set lo up",
                f"addr add {self.address(node)}/{ADDRESS_BITS} dev eth0",
                "link set eth0 addrgenmode none up"])
            self._shape_node(node)
            if self.links.socket_bytes:
                self.host(node).run(["sh", "-c", _SET_BUFFERS.format(
                    bytes=self.links.socket_bytes)])
            self.congestion_control = self.host(node).run(
                ["sh", "-c", _CHOOSE_CONTROL]).stdout.strip()

    def _create_switch(self) -> None:
        bridges = ["bridge", *self._bridges.values()]
        lines = [f"link add {bridge} type bridge stp_state 0 forward_delay 0\n"
                 f"link set {bridge} addrgenmode none up" for bridge in bridges]
        for node in self.nodes:
            bridge = self._bridges.get(self.links.racks.get(node, ""), "bridge")
            lines += [f"link add {node} type veth peer name eth0 netns "
                      f"{self._namespaces[node].path}",
                      f"link set {node} master {bridge} addrgenmode none up"]
        for bridge in self._bridges.values():
            up, down = f"up-{bridge}", f"down-{bridge}"
            lines += [f"link add {up} type veth peer name {down}",
                      f"link set {up} master {bridge} addrgenmode none up",
                      f"link set {down} master bridge addrgenmode none up"]
        _batch(self.switch, "ip", lines)
        if self.links.rack_mbit:
            # What a device sends is shaped: up-X carries what leaves the rack, down-X what enters.
            _batch(self.switch, "tc", [
                line for bridge in self._bridges.values() for end in ("up", "down")
                for line in one_rate(f"{end}-{bridge}", self.links.rack_mbit)])

    def _shape_node(self, node: str) -> None:
        up, down = self.links.up(node), self.links.down(node)
        pairs = {self.address(receiver): mbit for (sender, receiver), mbit
                 in self.links.pair_mbit.items() if sender == node}
        if pairs:
            _batch(self.host(node), "tc", rate_per_destination("eth0", up, pairs))
        elif up:
            _batch(self.host(node), "tc", one_rate("eth0", up))
        if down:
            _batch(self.switch, "tc", one_rate(node, down))


def _batch(where: LocalHost, tool: str, lines: Sequence[str]) -> None:
    """Many commands for one process: a start of `ip` costs more than its work."""
    where.run([tool, "-batch", "-"], timeout=COMMAND_SECONDS, text_input="\n".join(lines) + "\n")
