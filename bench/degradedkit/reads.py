# SPDX-License-Identifier: Apache-2.0
"""What each read of a map task puts on each link. Pure, but for the planner that it asks."""

from __future__ import annotations

import random
from typing import NamedTuple, Protocol, Sequence

from .links import Load, Network, Stream
from .placement import Code, Stripe

# Its blocks travel one by one; the other schemes' streams are one pipeline.
SEPARATE = "conventional"


class Block(NamedTuple):
    """A native block of a job's file."""

    stripe: int
    index: int


class Plans(Protocol):
    """Planner of planner.py, or a fake one."""

    def streams(self, scheme: str, code: Code, stripe: Stripe, failed: int,
                survivors: Sequence[int], requestor: int, count: int) -> tuple[Stream, ...]: ...


class ContiguousReads:
    """A block is on one node; a split is a block."""

    def __init__(self, network: Network, plans: Plans, code: Code, stripes: Sequence[Stripe],
                 lost_nodes: frozenset[int], scheme: str, block_bytes: int, seed: int) -> None:
        self.network = network
        self._plans = plans
        self._code = code
        self.stripes = stripes
        self._lost_nodes = lost_nodes
        self._scheme = scheme
        self.block_bytes = block_bytes
        self._seed = seed

    def home(self, block: Block) -> int | None:
        """The node that has the block; None: it is lost."""
        node = self.stripes[block.stripe][block.index]
        return None if node in self._lost_nodes else node

    def copy(self, sender: int, receiver: int) -> list[Load]:
        return [load] if (load := self.network.load(
            [(sender, receiver, self.block_bytes)])) else []

    def normal(self, block: Block, sender: int, receiver: int) -> list[Load]:
        """The read of a task whose block is there."""
        del block
        return self.copy(sender, receiver)

    def degraded(self, block: Block, receiver: int) -> list[Load]:
        return self._loads(self.plan(block, receiver, self.block_bytes))

    def _loads(self, streams: Sequence[Stream]) -> list[Load]:
        if self._scheme == SEPARATE:
            return [load for stream in streams if (load := self.network.load([stream]))]
        return [load] if (load := self.network.load(streams)) else []

    def plan(self, block: Block, receiver: int, count: int) -> tuple[Stream, ...]:
        """k of the surviving blocks at random, as in the paper: the same ones whoever reads, and
        whichever algorithm decides."""
        stripe = self.stripes[block.stripe]
        survivors = [i for i, node in enumerate(stripe) if node not in self._lost_nodes]
        random.Random(f"{self._seed} {block.stripe} {block.index}").shuffle(survivors)
        return self._plans.streams(self._scheme, self._code, stripe, block.index, survivors,
                                   receiver, count)


class StripedReads(ContiguousReads):
    """Cells of k data blocks in turn, as HDFS-3 lays files out. A split of the size of a block has
    an equal share in each of the k data blocks of its stripe, and a task reads the shares of
    `parts` of them: of all for a whole read, of fewer where it wants some columns only."""

    def __init__(self, *arguments: object, parts: int, **more: object) -> None:
        super().__init__(*arguments, **more)  # type: ignore[arg-type]
        self._parts = parts
        self._share = self.block_bytes // self._code.k

    def _wanted(self, block: Block) -> list[int]:
        """The data blocks of the stripe that the split's task reads of."""
        return [(block.index + i) % self._code.k for i in range(self._parts)]

    def home(self, block: Block) -> int | None:
        """Nobody has a split; -1 then. None: a share of it is lost."""
        nodes = self.stripes[block.stripe]
        return None if any(nodes[i] in self._lost_nodes for i in self._wanted(block)) else -1

    def normal(self, block: Block, sender: int, receiver: int) -> list[Load]:
        del sender
        nodes = self.stripes[block.stripe]
        return [load for i in self._wanted(block)
                if (load := self.network.load([(nodes[i], receiver, self._share)]))]

    def degraded(self, block: Block, receiver: int) -> list[Load]:
        """The shares that are there, and the lost one from a plan. The conventional way decodes at
        the reader, so that shares which are read anyway are not read twice."""
        nodes = self.stripes[block.stripe]
        wanted = self._wanted(block)
        there = [i for i in wanted if nodes[i] not in self._lost_nodes]
        streams = [(nodes[i], receiver, self._share) for i in there if nodes[i] != receiver]
        loads: list[Load] = []
        for lost in set(wanted) - set(there):
            plan = self._rebuilt(block.stripe, lost, there, receiver)
            if self._scheme == SEPARATE:
                plan = tuple(stream for stream in plan if stream not in streams)
                streams += plan
            else:
                loads += self._loads(plan)
        return loads + [load for stream in streams if (load := self.network.load([stream]))]

    def _rebuilt(self, stripe: int, lost: int, there: Sequence[int], receiver: int,
                 ) -> tuple[Stream, ...]:
        """For the conventional way the shares that are read anyway come first."""
        nodes = self.stripes[stripe]
        survivors = [i for i, node in enumerate(nodes) if node not in self._lost_nodes]
        random.Random(f"{self._seed} {stripe} {lost}").shuffle(survivors)
        if self._scheme == SEPARATE:
            survivors.sort(key=lambda i: i not in there)
        return self._plans.streams(self._scheme, self._code, nodes, lost, survivors, receiver,
                                   self._share)
