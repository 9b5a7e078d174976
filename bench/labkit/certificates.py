# SPDX-License-Identifier: Apache-2.0
"""Certificates for a cluster, by deploy/make-certs.sh."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Sequence

from .process import run

MAKE_CERTS = Path(__file__).resolve().parents[2] / "deploy" / "make-certs.sh"


@dataclass(frozen=True)
class Certificates:
    """A directory with a CA and NAME.pem and NAME.key of each name."""

    directory: Path

    def make_for_cluster(self, coordinator: str, requestor: str, nodes: Sequence[str],
                         storages: Mapping[str, str] | None = None) -> None:
        """For all programs of a cluster; its requestor is an operator as well. `storages`: the
        storage ids of nodes that have one."""
        ids = storages or {}
        self.make([f"{coordinator}=coordinator", f"{requestor}=requestor,operator",
                   *(f"{node}=helper" + (f",storage:{ids[node]}" if node in ids else "")
                     for node in nodes)])

    def make(self, pairs: Sequence[str], days: int = 90) -> None:
        """Certificates for these NAME=ROLE,...; new ones for names that have one."""
        run([MAKE_CERTS, "--days", str(days), self.directory, *pairs])

    def revoke(self, names: Sequence[str]) -> None:
        """They are in crl.pem from then on."""
        run([MAKE_CERTS, "--revoke", self.directory, *names])

    def settings(self, name: str) -> dict[str, str]:
        """The section [tls] of a daemon."""
        return {"ca": str(self.directory / "ca.pem"),
                "certificate": str(self.directory / f"{name}.pem"),
                "key": str(self.directory / f"{name}.key")}

    def arguments(self, name: str) -> list[str]:
        """The `ecpipe` command's."""
        files = self.settings(name)
        return ["--tls-ca", files["ca"], "--tls-cert", files["certificate"],
                "--tls-key", files["key"]]
