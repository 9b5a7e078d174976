# SPDX-License-Identifier: Apache-2.0
"""The kinds of faults. Each is drawn, begun and undone; in between, its mark is in the ledger.

A fault touches processes that the cluster has started, links of its namespaces, files below its
work directory, and the clocks that its daemons see. Nothing else.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Callable

from labkit.clock import JumpingClocks
from labkit.cluster import COORDINATOR, REQUESTOR, Cluster
from labkit.disks import Disks
from labkit.link_faults import LinkFaults
from .blocks import Blocks
from .ledger import Mark

SLOWER = 10
SHORT_SECONDS, LONG_SECONDS = 1.0, 8.0
CLOCK_SECONDS = 600.0  # the farthest that a clock jumps
STORM = "storm"


@dataclass(eq=False)
class Fault:
    """`begin` and `undo` act; `nodes_back` have to be live again afterwards before it is over."""

    mark: Mark
    seconds: float
    begin: Callable[[], None]
    undo: Callable[[], None]
    nodes_back: frozenset[str] = frozenset()
    beyond: bool = False  # more than the code can spare, on purpose

    @property
    def kind(self) -> str:
        return self.mark.kind


@dataclass(frozen=True)
class Machine:
    """What faults can be done to besides processes and files. None: not here."""

    links: LinkFaults | None = None
    disks: Disks | None = None
    clocks: JumpingClocks | None = None


class Faults:
    """Draws faults. For one thread."""

    def __init__(self, cluster: Cluster, blocks: Blocks, draw: random.Random, machine: Machine,
                 rate_mbit: float, spare: int) -> None:
        self._cluster, self._blocks, self._draw = cluster, blocks, draw
        self._links, self._disks, self._clocks = machine.links, machine.disks, machine.clocks
        self._rate_mbit, self._spare = rate_mbit, spare
        self._kinds: list[tuple[int, Callable[[], Fault]]] = [
            (20, self._kill), (15, self._restart), (20, self._stop), (8, self._coordinator),
            (8, self._flip), (8, self._truncate), (8, self._delete), (4, self._storm)]
        if machine.links:
            self._kinds += [(12, self._unplug), (12, self._cut), (10, self._slow)]
        if machine.disks:
            self._kinds += [(12, self._hang), (8, self._fill)]
        if machine.clocks:
            self._kinds += [(8, self._jump)]

    def next(self) -> Fault:
        weights, makers = zip(*self._kinds)
        return self._draw.choices(makers, weights)[0]()

    # ---- Processes -----------------------------------------------------------------------------

    def _kill(self) -> Fault:
        node = self._node()
        helper = self._cluster.helpers[node]
        return self._of_nodes("kill", [node], helper.kill, helper.restart)

    def _restart(self) -> Fault:
        """In order: repairs under way may end first, so nothing is lost on the way, but the node
        takes nothing new."""
        node = self._node()
        helper = self._cluster.helpers[node]
        return self._of_nodes("restart", [node], helper.ask_to_stop, helper.restart)

    def _stop(self) -> Fault:
        node = self._node()
        helper = self._cluster.helpers[node]
        return self._of_nodes("stop", [node], helper.pause, helper.resume)

    def _coordinator(self) -> Fault:
        daemon = self._cluster.coordinator
        mark = Mark("coordinator-kill", coordinator=True)
        return Fault(mark, self._draw.uniform(0.1, 2.0), daemon.kill, daemon.restart,
                     frozenset(self._cluster.node_ids))

    def _storm(self) -> Fault:
        """One node more than any code word can spare."""
        nodes = self._draw.sample(self._cluster.node_ids, self._spare + 2)
        helpers = [self._cluster.helpers[node] for node in nodes]

        def kill() -> None:
            for helper in helpers:
                helper.kill()

        def restart() -> None:
            for helper in helpers:
                helper.launch()
            for helper in helpers:
                helper.await_ready()
        storm = self._of_nodes(STORM, nodes, kill, restart)
        storm.beyond = True
        return storm

    # ---- Links ---------------------------------------------------------------------------------

    def _unplug(self) -> Fault:
        node, links = self._node(), self._links
        return self._of_nodes("unplug", [node], lambda: links.unplug(node),
                              lambda: links.plug(node))

    def _cut(self) -> Fault:
        """Between a node and another one, the coordinator or the requestor. With another node, both
        count as affected, although either is of use without the other."""
        one, links = self._node(), self._links
        other = self._draw.choice([COORDINATOR, REQUESTOR, *self._cluster.node_ids])
        while other == one:
            other = self._node()
        return self._of_nodes("cut", [node for node in (one, other) if node.startswith("node-")],
                              lambda: links.cut(one, other),
                              lambda: links.mend(one, other))

    def _slow(self) -> Fault:
        """Nothing is lost by it, but what goes over the node takes longer."""
        node, links = self._node(), self._links
        return self._of_nodes(
            "slow-link", [node], lambda: links.rate_of_uplink(node, self._rate_mbit / SLOWER),
            lambda: links.rate_of_uplink(node, self._rate_mbit))

    # ---- Disks, and clocks -----------------------------------------------------------------------

    def _hang(self) -> Fault:
        node, disks = self._draw.choice(self._disks.nodes), self._disks
        return self._of_nodes("hung-disk", [node], lambda: disks.hang(node),
                              lambda: disks.go_on(node))

    def _fill(self) -> Fault:
        """What is stored there fails; what is there can be read."""
        node, disks = self._draw.choice(self._disks.nodes), self._disks
        return self._of_nodes("full-disk", [node], lambda: disks.fill(node),
                              lambda: disks.clear(node))

    def _jump(self) -> Fault:
        name = self._draw.choice([COORDINATOR, *self._cluster.node_ids])
        seconds, clocks = self._draw.uniform(-CLOCK_SECONDS, CLOCK_SECONDS), self._clocks
        return Fault(Mark("clock-jump", clock=name), self._seconds(),
                     lambda: clocks.jump(name, seconds), lambda: clocks.restore(name))

    # ---- Files ---------------------------------------------------------------------------------

    def _flip(self) -> Fault:
        block_id = self._draw.choice(self._blocks.all())
        place = self._draw.randrange(self._blocks.block_bytes)
        bit = 1 << self._draw.randrange(8)

        def flip() -> None:
            with self._blocks.file(block_id).open("r+b") as file:
                file.seek(place)
                byte = file.read(1)[0]
                file.seek(place)
                file.write(bytes([byte ^ bit]))
        return self._of_block("bit-flip", block_id, flip, unseen=True)

    def _truncate(self) -> Fault:
        block_id = self._draw.choice(self._blocks.all())
        length = self._draw.randrange(self._blocks.block_bytes)

        def truncate() -> None:
            with self._blocks.file(block_id).open("r+b") as file:
                file.truncate(length)
        return self._of_block("truncate", block_id, truncate)

    def _delete(self) -> Fault:
        block_id = self._draw.choice(self._blocks.all())
        return self._of_block("delete", block_id, lambda: self._blocks.file(block_id).unlink())

    # ---- Parts ---------------------------------------------------------------------------------

    def _node(self) -> str:
        return self._draw.choice(self._cluster.node_ids)

    def _seconds(self) -> float:
        return self._draw.uniform(SHORT_SECONDS, LONG_SECONDS)

    def _of_nodes(self, kind: str, nodes: list[str], begin: Callable[[], None],
                  undo: Callable[[], None]) -> Fault:
        mark = Mark(kind, nodes=frozenset(nodes), units=len(nodes))
        return Fault(mark, self._seconds(), begin, undo, mark.nodes)

    def _of_block(self, kind: str, block_id: str, begin: Callable[[], None],
                  unseen: bool = False) -> Fault:
        mark = Mark(kind, blocks=frozenset([block_id]), unseen=unseen, units=1)
        return Fault(mark, self._seconds(), begin, lambda: self._blocks.restore(block_id))
