# SPDX-License-Identifier: Apache-2.0
"""Where experiments get their clusters from. They ask for nodes and links and do not know whether
those are network namespaces of this machine or machines elsewhere (ssh_testbed.py)."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import ContextManager, Iterator, Protocol, Sequence

from labkit.certificates import Certificates
from labkit.cluster import COORDINATOR, REQUESTOR, Cluster
from labkit.links import Links
from labkit.netns import Network
from labkit.settings import Settings
from labkit.work_folder import removed_in_the_end


# A path that forwards whole blocks keeps its last node waiting for all of them: half a minute for
# one of ten blocks of 64 MiB at 200 Mb/s. A node that was killed is noticed by its heartbeats.
PATIENCE_SECONDS = 100.0


class Testbed(Protocol):
    bin_dir: Path
    shapes: bool  # whether links get the rates that are asked for; else they have their own

    def cluster(self, nodes: Sequence[str], links: Links, *, redis: bool = False,
                links_table: str | None = None, requestor_rack: str | None = None,
                coordinator_settings: Settings | None = None,
                helper_settings: Settings | None = None,
                tls: bool = False) -> ContextManager[Cluster]:
        """A running cluster of these nodes, COORDINATOR and REQUESTOR. `links_table`: what the
        coordinator is told of links, as topology.links; `requestor_rack` chooses the requestor's
        machine where there are several."""
    def network(self, nodes: Sequence[str],
                links: Links) -> ContextManager[tuple[Network, Path]]:
        """Only the network, and a folder, for who starts more than ECPipe on it; LabError where
        nodes are on other machines."""
    def requestor_regions(self) -> Sequence[str]:
        """Of the machines that can be the requestor's, where links are not shaped."""


class Emulated:
    """A fresh network of namespaces for each cluster."""

    shapes = True

    def __init__(self, bin_dir: Path, work_dir: Path, keep: bool = False) -> None:
        self.bin_dir = bin_dir
        self.work_dir = work_dir
        self._keep = keep
        self._clusters = 0

    @contextlib.contextmanager
    def network(self, nodes: Sequence[str], links: Links) -> Iterator[tuple[Network, Path]]:
        self._clusters += 1
        folder = self.work_dir / f"cluster-{self._clusters}"
        folder.mkdir(parents=True)
        with contextlib.nullcontext() if self._keep else removed_in_the_end(folder), \
                Network(nodes, links) as network:
            yield network, folder

    @contextlib.contextmanager
    def cluster(self, nodes: Sequence[str], links: Links, *, redis: bool = False,
                links_table: str | None = None, requestor_rack: str | None = None,
                coordinator_settings: Settings | None = None,
                helper_settings: Settings | None = None,
                tls: bool = False) -> Iterator[Cluster]:
        if requestor_rack:
            links = replace(links, racks={**links.racks, REQUESTOR: requestor_rack})
        with self.network([COORDINATOR, REQUESTOR, *nodes], links) as (network, folder):
            certificates = None
            if tls:
                certificates = Certificates(folder / "certificates")
                certificates.make_for_cluster(COORDINATOR, REQUESTOR, nodes)
            with Cluster(self.bin_dir, folder, nodes, redis=redis, network=network,
                         links_table=links_table, coordinator_settings=coordinator_settings,
                         helper_settings=helper_settings, certificates=certificates,
                         patience_s=PATIENCE_SECONDS) as cluster:
                yield cluster

    def requestor_regions(self) -> Sequence[str]:
        return []
