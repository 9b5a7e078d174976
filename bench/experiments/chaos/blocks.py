# SPDX-License-Identifier: Apache-2.0
"""The blocks of a chaos run: a good copy of each beside the cluster, and where each one is."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from pathlib import Path

from labkit.cluster import Cluster
from labkit.disks import Disks
from labkit.stripes import encode

STRIPES_LISTED = 1000


class Blocks:
    """Places are the catalog's, as it was last read. `disks`: of the nodes that have one which may
    hang. Thread-safe."""

    def __init__(self, cluster: Cluster, code: str, block_bytes: int, stripes: int,
                 disks: Disks | None) -> None:
        self._cluster, self._disks = cluster, disks
        self.block_bytes = block_bytes
        listed = encode(cluster, code=code, block_bytes=block_bytes, stripes=stripes)
        self.stripes = [[block.block_id for block in stripe] for stripe in listed]
        self._stripe_of = {block: stripe for stripe in self.stripes for block in stripe}
        self._good = cluster.work_dir / "good"
        self._good.mkdir()
        for block_id in self._stripe_of:
            shutil.copyfile(cluster.block_file(block_id), self._good / block_id)
        self._lock = threading.Lock()
        self._places = {block.block_id: block.node for stripe in listed for block in stripe}

    def all(self) -> list[str]:
        return sorted(self._stripe_of)

    def good(self, block_id: str, offset: int = 0, length: int | None = None) -> bytes:
        with (self._good / block_id).open("rb") as file:
            file.seek(offset)
            return file.read(-1 if length is None else length)

    def places(self, of: str) -> dict[str, str]:
        """The node of each block of the stripe that this block is of."""
        with self._lock:
            return {block: self._places[block] for block in self._stripe_of[of]}

    def on(self, node: str) -> list[str]:
        with self._lock:
            return sorted(block for block, place in self._places.items() if place == node)

    def file(self, block_id: str) -> Path:
        with self._lock:
            node = self._places[block_id]
        if self._disks and node in self._disks.nodes:
            return self._disks.behind(node) / block_id
        return self._cluster.block_path(node, block_id)

    def read_catalog(self) -> None:
        """LabError when the coordinator does not answer."""
        listed = self._cluster.cli_json("catalog", "list", "--limit", str(STRIPES_LISTED))
        with self._lock:
            for stripe in listed:
                for block in stripe["blocks"]:
                    self._places[block["block_id"]] = block["node"]

    def crowded(self) -> list[str]:
        """Nodes that have two blocks of a stripe by the catalog, with those blocks."""
        with self._lock:
            holders = [(stripe, Counter(self._places[block] for block in stripe))
                       for stripe in self.stripes]
            return [f"{node}: " + ", ".join(b for b in stripe if self._places[b] == node)
                    for stripe, nodes in holders for node, count in nodes.items() if count > 1]

    def is_good(self, block_id: str) -> bool | None:
        """None when no file is there."""
        try:
            return self.file(block_id).read_bytes() == self.good(block_id)
        except FileNotFoundError:
            return None

    def restore(self, block_id: str) -> None:
        """The good bytes, where the catalog has the block. In place, since a reader of the file may
        see its old bytes and its new ones, but never others."""
        path = self.file(block_id)
        with path.open("r+b" if path.exists() else "w+b") as file:
            file.write(self.good(block_id))
