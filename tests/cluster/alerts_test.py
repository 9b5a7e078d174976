#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages and alerts: a real Prometheus scrapes a cluster over TLS; each alert is made to fire by an
injected failure, and to end again."""

from __future__ import annotations

import json
import re
import resource
import ssl
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import case
import prometheus
from case import HANG, ClusterCase
from fake_namenode import FakeNameNode
from hdfs_group import Group, make_volume
from labkit.cluster import COORDINATOR, REQUESTOR, Cluster, EcpipeDaemon, node_names
from labkit.process import free_port, wait_until
from prometheus import Prometheus

SKIPPED = 77
WEB = {"web": {"listen": "127.0.0.1:0"}}
FIRED: set[str] = set()  # by any test


def keep_pages(cluster: Cluster) -> dict[str, list[str]]:
    """Lets pages come back on the same port after a restart. Their addresses by job."""
    daemons: list[EcpipeDaemon] = [cluster.coordinator, *cluster.helpers.values()]
    for daemon in daemons:
        daemon.settings["web"]["listen"] = daemon.ready["web"]
    return {"ecpipe-coordinator": [cluster.coordinator.ready["web"]],
            "ecpipe-helper": [helper.ready["web"] for helper in cluster.helpers.values()]}


class Alerts(unittest.TestCase):
    prometheus: Prometheus

    def fires(self, *alerts: str) -> None:
        for alert in alerts:
            wait_until(lambda: alert in self.prometheus.firing(), HANG, f"{alert} firing")
        FIRED.update(alerts)

    def ends(self, *alerts: str) -> None:
        for alert in alerts:
            wait_until(lambda: alert not in self.prometheus.firing(), HANG, f"the end of {alert}")

    def is_quiet(self, *but: str) -> None:
        """Waits until no other alert fires than these."""
        wait_until(lambda: not self.prometheus.firing() - set(but), HANG, "no alert")
        self.assertEqual(self.prometheus.troubles(), [])


class OfNodes(ClusterCase, Alerts):
    tls = True
    block_bytes = 100_003
    file_bytes = 24 * 400_000
    coordinator_settings = {
        "timeouts": {"dead_after_seconds": 2.0}, "web": {"listen": "127.0.0.1:0", "tls": True},
        "recovery": {"first_pause_seconds": 0.1, "max_attempts": 2}}
    helper_settings = {**ClusterCase.helper_settings, "web": {"listen": "127.0.0.1:0", "tls": True}}

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        files = cls.cluster.certificates.settings(REQUESTOR)
        tls = (Path(files["ca"]), Path(files["certificate"]), Path(files["key"]))
        cls.context = ssl.create_default_context(cafile=files["ca"])
        cls.context.check_hostname = False
        cls.context.load_cert_chain(files["certificate"], files["key"])
        cls.prometheus = cls.enterClassContext(
            Prometheus(cls.work, keep_pages(cls.cluster), tls))

    def setUp(self) -> None:
        self.is_quiet()

    def page(self, daemon: EcpipeDaemon, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"https://{daemon.ready['web']}{path}", timeout=30,
                                        context=self.context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def test_pages(self) -> None:
        helper = self.cluster.helpers["node-1"]
        for daemon in (self.cluster.coordinator, helper):
            for path in ("/healthz", "/readyz"):
                self.assertEqual(self.page(daemon, path), (200, "ok\n"))
            status, text = self.page(daemon, "/metrics")
            self.assertEqual(status, 200)
            prometheus.promtool("check", "metrics", text=text)
            self.assertIn('ecpipe_build_info{version="', text)
        # A repair is counted by scheme, work, cause and outcome.
        self.repair(self.block(0, 0)["block_id"], "--scheme", "rp")
        text = self.page(self.cluster.coordinator, "/metrics")[1]
        self.assertRegex(text, r'\necpipe_repair_seconds_count'
                               r'{scheme="rp",work="read",cause="degraded_read",outcome="done"}'
                               r' [1-9]')
        # Nobody reads a file before it is whole; a pipe is read in order, from its first byte on.
        first_bytes = 'ecpipe_repair_first_byte_seconds_count{scheme="rp",cause="degraded_read"} '
        self.assertNotIn(first_bytes, text)
        read = subprocess.run(
            self.cluster.command("-q", "read", self.block(0, 0)["block_id"], "--scheme", "rp"),
            capture_output=True, timeout=HANG)
        self.assertEqual(read.returncode, 0, read.stderr)
        text = self.page(self.cluster.coordinator, "/metrics")[1]
        self.assertIn(f"\n{first_bytes}1\n", text)
        prometheus.promtool("check", "metrics", text=text)
        self.tells_of_nodes_and_the_repair(self.block(0, 0)["block_id"])
        # Without a certificate of the CA nobody reads anything.
        anybody = ssl.create_default_context(cafile=self.cluster.certificates.settings(
            REQUESTOR)["ca"])
        anybody.check_hostname = False
        with self.assertRaises(OSError):
            urllib.request.urlopen(f"https://{helper.ready['web']}/metrics", timeout=30,
                                   context=anybody).read()

    def tells_of_nodes_and_the_repair(self, block_id: str) -> None:
        """The coordinator's /status.json. An answer may be a second old, and one from before a
        pause of this machine may call nodes dead."""
        answers: list[dict[str, Any]] = []

        def ended() -> list[dict[str, Any]]:
            return [repair for repair in answers[-1]["ended"]["shown"]
                    if repair["blocks"] == [block_id]]

        def complete() -> bool:
            status, text = self.page(self.cluster.coordinator, "/status.json")
            if status == 503:  # somebody else's first answer is being made
                return False
            self.assertEqual(status, 200, text)
            answers.append(json.loads(text))
            return bool(ended()) and answers[-1]["nodes"]["live"] == len(self.cluster.node_ids)

        wait_until(complete, HANG, "all nodes and the repair in /status.json")
        repair, nodes = ended()[0], answers[-1]["nodes"]
        self.assertEqual((repair["state"], repair["scheme"], repair["bytes"], repair["detail"]),
                         ("done", "rp", self.block_bytes, ""))
        self.assertIn(repair["repair"], [known["repair_id"][:6] for known
                                         in self.cluster.status()["repairs"]])
        self.assertEqual(sorted(node["node"] for rack in nodes["racks"] for node in rack["nodes"]),
                         sorted(self.cluster.node_ids))
        self.assertIsNone(answers[-1]["ended"]["error"])
        self.assertEqual(self.page(self.cluster.helpers["node-1"], "/status.json")[0], 404)

    def test_node(self) -> None:
        helper = self.cluster.helpers["node-7"]
        helper.kill()
        self.fires("EcpipeHelperDown", "EcpipeNodeDead")
        helper.restart()
        self.ends("EcpipeHelperDown", "EcpipeNodeDead")

    def test_node_in_maintenance(self) -> None:
        away, other = self.cluster.helpers["node-7"], self.cluster.helpers["node-6"]
        away.kill()
        self.fires("EcpipeHelperDown", "EcpipeNodeDead")
        self.cluster.cli("nodes", "maintain", "node-7", "--for", "1h")
        self.ends("EcpipeHelperDown", "EcpipeNodeDead")
        other.kill()
        self.fires("EcpipeHelperDown", "EcpipeNodeDead")
        self.assertEqual(self.prometheus.instances("EcpipeHelperDown"), {other.ready["web"]})
        other.restart()
        self.ends("EcpipeHelperDown", "EcpipeNodeDead")
        away.restart()
        self.cluster.wait_live(["node-7"])
        self.cluster.cli("nodes", "readmit", "node-7")

    def test_coordinator(self) -> None:
        self.cluster.coordinator.kill()
        self.fires("EcpipeCoordinatorDown")
        def refusal() -> str:
            status, said = self.page(self.cluster.helpers["node-1"], "/readyz")
            return said if status == 503 else ""
        wait_until(refusal, HANG, "a helper that says so")
        self.assertIn("not registered", refusal())
        self.cluster.coordinator.restart()
        self.ends("EcpipeCoordinatorDown")
        self.cluster.wait_live(self.cluster.node_ids)

    def test_helper_that_nobody_knows(self) -> None:
        helper = self.cluster.helpers["node-5"]
        helper.settings["helper"]["coordinator"] = f"127.0.0.1:{free_port()}"
        helper.stop()
        helper.launch()
        self.fires("EcpipeHelperNotRegistered")
        helper.settings["helper"]["coordinator"] = self.cluster.coordinator.address
        helper.restart()
        self.ends("EcpipeHelperNotRegistered")
        self.cluster.wait_live(["node-5"])

    def test_corrupt_block(self) -> None:
        self.cluster.wait_settled()
        bad = self.block(1, 1)["block_id"]
        with self.cluster.block_file(bad).open("r+b") as file:
            file.seek(50_000)
            byte = file.read(1)[0]
            file.seek(50_000)
            file.write(bytes([byte ^ 0x10]))
        for index in (0, 2, 3):  # until one reads it
            self.cluster.cli("repair", self.block(1, index)["block_id"], "-o", self.work / "out",
                             "--scheme", "rp", check=False)
        self.fires("EcpipeBlockCorrupt")
        known = self.cluster.status()["corrupt_blocks"][0]
        self.cluster.cli(*known["repair"].split()[1:])
        self.assertIn('\necpipe_repairs_ended_total'
                      '{work="store",cause="corruption",outcome="done"} 1\n',
                      self.page(self.cluster.coordinator, "/metrics")[1])
        self.ends("EcpipeBlockCorrupt")

    def test_recovery_that_waits(self) -> None:
        helper = self.cluster.helpers["node-6"]
        helper.kill()
        wait_until(lambda: self.cluster.node_status()["node-6"]["state"] == "dead", HANG, "death")
        # Nobody may take the blocks until the node is back.
        self.cluster.cli("recover-node", "node-6", "--to", "node-6", "--delay", "0", "--detach")
        self.fires("EcpipeRecoveryStuck")
        helper.restart()
        self.ends("EcpipeRecoveryStuck")

    def test_blocks_that_cannot_be_rebuilt(self) -> None:
        lost, *others = (self.block(2, index) for index in (0, 1, 2))
        node = lost["node"]
        files = {path: path.read_bytes() for path in
                 (self.cluster.block_file(block["block_id"]) for block in others)}
        self.addCleanup(self.cluster.helpers[node].restart)
        self.cluster.helpers[node].kill()
        for path in files:
            path.unlink()
        wait_until(lambda: self.cluster.node_status()[node]["state"] == "dead", HANG, "death")
        self.cluster.cli("recover-node", node, "--delay", "0", check=False)
        for _ in range(3):
            self.cluster.cli("repair", lost["block_id"], "-o", self.work / "out", check=False)
        try:
            self.fires("EcpipeRepairsFail", "EcpipeBlocksGivenUp")
        finally:
            for path, content in files.items():
                path.write_bytes(content)
            self.cluster.cli("recover-node", node, "--delay", "0")
        self.ends("EcpipeBlocksGivenUp", "EcpipeRepairsFail")

    def test_certificate(self) -> None:
        make = self.cluster.certificates.make
        make(["node-3=helper"], days=20)
        self.fires("EcpipeCertificateEndsSoon")
        self.assertNotIn("EcpipeCertificateEnds", self.prometheus.firing())
        make(["node-3=helper"], days=5)
        self.fires("EcpipeCertificateEnds")
        make(["node-3=helper"])
        self.ends("EcpipeCertificateEnds", "EcpipeCertificateEndsSoon")

    def test_descriptors(self) -> None:
        pid = self.cluster.helpers["node-4"].pid
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        in_use = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (in_use + 4, limits[1]))
        try:
            self.fires("EcpipeDescriptorsShort")
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        self.ends("EcpipeDescriptorsShort")

    def test_the_dashboard_shows_something_in_each_panel(self) -> None:
        read = self.cluster.command("-q", "read", self.block(3, 0)["block_id"], "--scheme", "rp")
        subprocess.run(read, capture_output=True, timeout=HANG, check=True)
        dashboard = json.loads((prometheus.REPOSITORY / "deploy/grafana/ecpipe.json").read_text())
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                query = target["expr"].replace("$__rate_interval", "1m")
                with self.subTest(panel=panel["title"], query=query):
                    wait_until(lambda: self.prometheus.query(query), HANG, "an answer")


class OfANameNode(Alerts):
    nodes = 9

    def setUp(self) -> None:
        work = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.namenode = self.enterContext(FakeNameNode())
        nodes = node_names(self.nodes)
        for node in nodes:
            make_volume(work / "data" / node, f"c8b9e6e2-0000-4000-8000-{node}")
        self.group = Group(6 * 65536, cell=65536, number=1)
        self.volumes = [work / "data" / node for node in nodes]
        for index, volume in enumerate(self.volumes):
            self.group.put(volume, index)
        self.namenode.groups.append(self.group)
        self.work = work
        self.cluster = cluster = self.enterContext(Cluster(
            case.BIN_DIR, work, nodes,
            coordinator_settings={"hdfs": {"namenodes": [self.namenode.url],
                                           "refresh_seconds": 1}, **WEB},
            helper_settings={"helper": {"store": "hdfs", "report_seconds": 0.3}, **WEB}))
        wait_until(lambda: cluster.status().get("hdfs", {}).get("blocks") == 9, HANG, "reports")
        self.prometheus = self.enterContext(Prometheus(work, keep_pages(cluster)))
        self.is_quiet()

    def test_root(self) -> None:
        helper = self.cluster.helpers["node-1"]
        second = self.work / "second"
        make_volume(second, "c8b9e6e2-0000-4000-8000-node-1")
        helper.settings["helper"]["roots"] = [str(second), *helper.settings["helper"]["roots"]]
        helper.restart()
        self.cluster.wait_live(["node-1"])
        self.is_quiet()
        away = self.work / "away"
        second.rename(away)
        self.fires("EcpipeRootFailed")
        away.rename(second)
        self.ends("EcpipeRootFailed")

    def test_namenode(self) -> None:
        self.namenode.cut_off = True
        self.fires("EcpipeSourceDown")
        self.namenode.cut_off = False
        self.ends("EcpipeSourceDown")
        for index in range(4):
            for file in (self.group.file(self.volumes[index], index),
                         self.group.meta_file(self.volumes[index], index)):
                file.unlink()
        self.fires("EcpipeStripesLost")
        self.group.put(self.volumes[0], 0)
        self.ends("EcpipeStripesLost")


class TheRules(unittest.TestCase):
    """Runs last, by its name."""

    def test_each_alert_fired_and_has_its_section(self) -> None:
        prometheus.promtool("check", "rules", prometheus.ALERTS)
        names = prometheus.alert_names()
        self.assertGreater(len(names), 10)
        # A disk that is nearly full needs a file system of its own, and targets that are missing
        # another Prometheus: the rules' cases alone have them.
        self.assertEqual(sorted({*FIRED, "EcpipeStateDiskShort", "EcpipeCoordinatorNotScraped"}),
                         sorted(names))
        runbook = (prometheus.REPOSITORY / "docs/runbook.md").read_text()
        self.assertEqual(re.findall(r"^## (Ecpipe\w+)$", runbook, re.MULTILINE), names)

    def test_the_runbook_raises_both_limits_of_descriptors(self) -> None:
        """A daemon's soft limit is its hard one already, and that is 65536 by the units."""
        runbook = (prometheus.REPOSITORY / "docs/runbook.md").read_text()
        limits = re.findall(r"sudo prlimit .* --nofile=([0-9]*):([0-9]*)`", runbook)
        self.assertEqual(len(limits), 1)
        soft, hard = limits[0]
        self.assertEqual(soft, hard)
        self.assertGreater(int(hard), 65536)

    def test_each_alert_waits_fires_and_ends_at_its_own_times(self) -> None:
        prometheus.promtool("test", "rules", prometheus.CASES)
        cases = prometheus.alert_cases()
        self.assertEqual(sorted(cases), sorted(prometheus.alert_names()))
        for alert, expected in cases.items():
            self.assertRegex(expected, "qf+q", alert)


if __name__ == "__main__":
    if reason := prometheus.missing():
        print(f"SKIP: {reason}")
        sys.exit(SKIPPED)
    case.main()
