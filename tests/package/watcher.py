# SPDX-License-Identifier: Apache-2.0
"""Debian's Prometheus in a machine, with the files of the package ecpipe-coordinator."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Callable, Sequence

from debian_root import Booted
from labkit.process import LabError

EXAMPLES = Path("usr/share/doc/ecpipe-coordinator/examples")
SETTINGS = Path("etc/prometheus")
PAUSE = 2.0
# The longest wait of a rule is 5 minutes; a node is dead, and is asked, some seconds later.
ALERT_SECONDS = 450.0


def with_addresses(sample: str, coordinator: str, helpers: Sequence[str]) -> str:
    """scrape.yml as its comments say, for pages over TLS."""
    tls = re.findall(r"^    # (scheme: .*|tls_config:|  \w+: .*)$", sample, re.MULTILINE)
    lines = "".join(f"    {line}\n" for line in tls)
    for addresses in ([coordinator], list(helpers)):
        sample = re.sub(r"- targets: \[\"10\.0\.0\.[^]]*\]\n",
                        lambda _: f"- targets: {json.dumps(addresses)}\n{lines}", sample, count=1)
    return sample


class Watcher:
    """Needs the package prometheus there. Folders of certificates are the machine's, and have one
    with the name prometheus."""

    def __init__(self, machine: Booted, root: Path) -> None:
        self._machine = machine
        self._root = root

    def start(self, certificates: str, coordinator: str, helpers: Sequence[str]) -> None:
        (self._root / SETTINGS / "ecpipe-alerts.yml").write_text(
            (self._root / EXAMPLES / "ecpipe-alerts.yml").read_text())
        (self._root / SETTINGS / "prometheus.yml").write_text(
            "global: {evaluation_interval: 15s}\n"
            + with_addresses((self._root / EXAMPLES / "scrape.yml").read_text(), coordinator,
                             helpers))
        self.copy_certificates(certificates)
        self._machine.run("promtool", "check", "config", f"/{SETTINGS / 'prometheus.yml'}")
        self._machine.run("systemctl", "restart", "prometheus")
        self._await(lambda: len(self._names("up == 1", "instance")) == 1 + len(helpers), 90,
                    "all pages scraped")

    def copy_certificates(self, certificates: str) -> None:
        self._machine.run("sh", "-ec", f"""
            install -d -o prometheus -m 0750 /{SETTINGS}/ecpipe
            cd {certificates}
            install -o prometheus -m 0640 ca.pem prometheus.pem prometheus.key /{SETTINGS}/ecpipe/
        """)

    def await_firing(self, *alerts: str) -> None:
        self._await(lambda: self.firing() >= set(alerts), ALERT_SECONDS, f"{alerts} firing")

    def await_end(self, *alerts: str) -> None:
        self._await(lambda: not self.firing() & set(alerts), ALERT_SECONDS, f"the end of {alerts}")

    def alerts(self) -> set[str]:
        """All that there are."""
        rules = (self._root / SETTINGS / "ecpipe-alerts.yml").read_text()
        return set(re.findall(r"- alert: (\w+)", rules))

    def firing(self) -> set[str]:
        return self._names('ALERTS{alertstate="firing"}', "alertname")

    def fired(self) -> set[str]:
        """Since it started, which is less than two hours ago."""
        return self._names('max_over_time(ALERTS{alertstate="firing"}[2h])', "alertname")

    def _names(self, query: str, label: str) -> set[str]:
        said = self._machine.run("promtool", "query", "instant", "http://127.0.0.1:9090", query,
                                 check=False).stdout
        return set(re.findall(rf'\b{label}="([^"]*)"', said))

    def _await(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Asks seldom: each time is a process."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise LabError(f"waited {seconds:g} s in vain for: {what}; firing: {self.firing()}")
            time.sleep(PAUSE)
