# SPDX-License-Identifier: Apache-2.0
"""The testbed whose nodes are machines of the user's own. Their links are as they are."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Iterator, NoReturn, Sequence

from labkit.cluster import COORDINATOR, REQUESTOR, Cluster
from labkit.inventory import Inventory, Machine
from labkit.links import Links
from labkit.process import LabError
from labkit.settings import Settings
from labkit.ssh import Network
from .testbed import PATIENCE_SECONDS


class Machines:
    shapes = False

    def __init__(self, bin_dir: Path, work_dir: Path, inventory: Inventory) -> None:
        self.bin_dir = bin_dir
        self._work_dir = work_dir
        self._inventory = inventory
        self._clusters = 0

    @contextlib.contextmanager
    def cluster(self, nodes: Sequence[str], links: Links, *, redis: bool = False,
                links_table: str | None = None, requestor_rack: str | None = None,
                coordinator_settings: Settings | None = None,
                helper_settings: Settings | None = None,
                tls: bool = False) -> Iterator[Cluster]:
        """`links` are not looked at: rates cannot be given, racks are the inventory's."""
        if tls:
            raise LabError("--tls is measured only on the lab's own network, with bench/lab.py")
        self._clusters += 1
        folder = self._work_dir / f"cluster-{self._clusters}"
        folder.mkdir(parents=True)
        try:
            with Network(self._machines(nodes, requestor_rack), self._inventory) as network, \
                    Cluster(self.bin_dir, folder, nodes, redis=redis, network=network,
                            links_table=links_table,
                            coordinator_settings=coordinator_settings,
                            helper_settings=helper_settings,
                            patience_s=PATIENCE_SECONDS) as cluster:
                yield cluster
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _machines(self, nodes: Sequence[str], requestor_rack: str | None) -> dict[str, Machine]:
        inventory = self._inventory
        if len(nodes) > len(inventory.nodes):
            raise LabError(f"the experiment needs {len(nodes)} nodes, but the inventory has "
                           f"{len(inventory.nodes)}")
        requestor = next(machine for machine in inventory.requestors
                         if requestor_rack in (None, machine.rack))
        return {COORDINATOR: inventory.coordinator, REQUESTOR: requestor,
                **dict(zip(nodes, inventory.nodes))}

    def network(self, nodes: Sequence[str], links: Links) -> NoReturn:
        raise LabError("this experiment runs only on the lab's own network, with bench/lab.py")

    def requestor_regions(self) -> Sequence[str]:
        return [(machine.rack or "").lstrip("/") for machine in self._inventory.requestors]
