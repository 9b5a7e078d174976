# SPDX-License-Identifier: Apache-2.0
"""Faults of links in a network of namespaces: a pulled cable, two nodes that do not hear each
other, a link at a part of its rate."""

from __future__ import annotations

from .netns import Network
from .shaping import one_rate

# No node has it: the bridge finds nobody to hand such packets to.
_NOBODY = "02:00:00:00:00:01"


class LinkFaults:
    def __init__(self, network: Network) -> None:
        self._network = network

    def unplug(self, node: str) -> None:
        """The switch's end goes down: nothing passes, and the node's end loses its carrier."""
        self._network.switch.run(["ip", "link", "set", node, "down"])

    def plug(self, node: str) -> None:
        self._network.switch.run(["ip", "link", "set", node, "up"])

    def cut(self, one: str, other: str) -> None:
        """Packets between the two vanish, and neither is told. Each believes that the other has an
        address of Ethernet that nobody has, which needs no firewall in the kernel."""
        for sender, receiver in ((one, other), (other, one)):
            self._neighbour("replace", sender, receiver, "lladdr", _NOBODY, "nud", "permanent")

    def mend(self, one: str, other: str) -> None:
        for sender, receiver in ((one, other), (other, one)):
            self._neighbour("del", sender, receiver)

    def _neighbour(self, command: str, sender: str, receiver: str, *words: str) -> None:
        self._network.host(sender).run(["ip", "neigh", command, self._network.address(receiver),
                                        *words, "dev", "eth0"])

    def rate_of_uplink(self, node: str, mbit: float) -> None:
        self._network.host(node).run(["tc", *one_rate("eth0", mbit)[0].split()])
