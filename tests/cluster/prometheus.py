# SPDX-License-Identifier: Apache-2.0
"""A Prometheus server that watches a cluster of daemons with pages."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Mapping, Sequence

from labkit.daemon import Daemon
from labkit.process import free_port, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
ALERTS = REPOSITORY / "deploy/prometheus/ecpipe-alerts.yml"
CASES = REPOSITORY / "tests/cluster/ecpipe-alerts.test.yml"
FASTER = 60  # by which the waiting times of the rules are divided


def missing() -> str:
    """Why there can be none here; empty: there can."""
    lacking = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    return f"{' and '.join(lacking)} not installed" if lacking else ""


def promtool(*arguments: str | Path, text: str = "") -> None:
    """AssertionError with what it says unless it is content."""
    done = subprocess.run(["promtool", *map(str, arguments)], input=text, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def alert_names() -> list[str]:
    return re.findall(r"^ +- alert: (\w+)$", ALERTS.read_text(), re.MULTILINE)


def alert_cases() -> dict[str, str]:
    """What is expected of each alert in the cases, one after the other: "q" quiet, "f" firing."""
    found: dict[str, str] = {}
    for name, quiet in re.findall(r"alertname: (\w+)(, exp_alerts: \[\]\})?",
                                  CASES.read_text()):
        found[name] = found.get(name, "") + ("q" if quiet else "f")
    return found


def hastened(rules: str) -> str:
    """With each `for: 5m` and `[15m]` divided."""
    def seconds(match: re.Match[str]) -> str:
        unit = {"s": 1, "m": 60, "h": 3600}[match[3]]
        return f"{match[1]}{max(1, int(match[2]) * unit // FASTER)}s{match[4]}"
    rules = re.sub(r"(for: )(\d+)([smh])()", seconds, rules)
    return re.sub(r"(\[)(\d+)([smh])(\])", seconds, rules)


class Prometheus:
    """`jobs`: addresses of pages by job. `tls`: ca, certificate, key, for pages over HTTPS."""

    def __init__(self, work: Path, jobs: Mapping[str, Sequence[str]],
                 tls: tuple[Path, Path, Path] | None = None) -> None:
        self._targets = sum(map(len, jobs.values()))
        (work / "rules.yml").write_text(hastened(ALERTS.read_text()))
        scheme: dict[str, Any] = {}
        if tls:
            names = ("ca_file", "cert_file", "key_file")
            scheme = {"scheme": "https", "tls_config": {
                **{name: str(path) for name, path in zip(names, tls)},
                "insecure_skip_verify": True}}
        config = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms",
                       "evaluation_interval": "500ms"},
            "rule_files": [str(work / "rules.yml")],
            "scrape_configs": [{"job_name": job, **scheme,
                                "static_configs": [{"targets": list(addresses)}]}
                               for job, addresses in jobs.items()]}
        (work / "prometheus.yml").write_text(json.dumps(config))  # which is YAML as well
        self._address = f"127.0.0.1:{free_port()}"
        self._daemon = Daemon("prometheus", [
            "prometheus", f"--config.file={work / 'prometheus.yml'}",
            f"--storage.tsdb.path={work / 'tsdb'}", f"--web.listen-address={self._address}"],
            work / "prometheus.log")

    def __enter__(self) -> Prometheus:
        self._daemon.start()
        self._daemon.wait_ready(self._is_ready, 60)
        # It is ready some seconds before it scrapes, and sees no counter grow until then.
        wait_until(lambda: len(self.query("up == 1")) == self._targets, 60, "all targets scraped")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._daemon.stop()

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=5):
                return True
        except OSError:
            return False

    def _get(self, path: str, **query: str) -> Any:
        url = f"http://{self._address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        return self._get("query", query=expression)["result"]

    def firing(self) -> set[str]:
        return {alert["labels"]["alertname"] for alert in self._get("alerts")["alerts"]
                if alert["state"] == "firing"}

    def instances(self, alert: str) -> set[str]:
        """For which this alert fires."""
        return {each["labels"]["instance"] for each in self._get("alerts")["alerts"]
                if each["state"] == "firing" and each["labels"]["alertname"] == alert}

    def troubles(self) -> list[str]:
        """Rules that cannot be evaluated, and targets whose answers cannot be read."""
        rules = [rule["name"] + ": " + rule["lastError"]
                 for group in self._get("rules")["groups"] for rule in group["rules"]
                 if rule.get("lastError")]
        targets = [f"{target['scrapeUrl']}: {target['lastError']}"
                   for target in self._get("targets")["activeTargets"]
                   if target["lastError"] and "connection refused" not in target["lastError"]]
        return rules + targets
