#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ecpipe doctor`: a healthy cluster passes, and each trouble is found by name, with advice."""

from __future__ import annotations

import json
import resource
import subprocess
from typing import Any

import case
from case import FAILED, HANG, UNAVAILABLE, ClusterCase
from fake_namenode import FakeNameNode
from labkit.certificates import Certificates
from labkit.cluster import COORDINATOR, REQUESTOR
from labkit.process import wait_until

Finding = dict[str, str]
TROUBLE = ("error", "warning")


class DoctorCase(ClusterCase):
    nodes = 6
    block_bytes = 100_003
    file_bytes = 750_001

    def setUp(self) -> None:
        self.cluster.wait_live(self.cluster.node_ids)

    def doctor(self) -> tuple[int, list[Finding]]:
        done = self.cluster.cli("doctor", "--json", check=False)
        self.assertIn(done.returncode, (0, FAILED), done.stderr)
        said = json.loads(done.stdout)
        errors = [each for each in said["findings"] if each["severity"] == "error"]
        self.assertEqual(said["errors"], len(errors))
        self.assertEqual(done.returncode == FAILED, bool(errors), said)
        return done.returncode, said["findings"]

    def wait_found(self, severity: str, check: str, where: str, words: str) -> Finding:
        """Until the doctor says this; what depends on heartbeats takes a moment."""
        found: list[Finding] = []

        def said() -> bool:
            found[:] = [each for each in self.doctor()[1]
                        if (each["severity"], each["check"], each["where"])
                        == (severity, check, where) and words in each["what"]]
            return bool(found)
        wait_until(said, HANG, f"{severity} {check} {where}: {words}")
        self.assertTrue(found[0]["advice"] or severity not in TROUBLE)
        return found[0]

    def wait_well(self) -> list[Finding]:
        """Until nothing is wrong; how full the machine's disk is is not the test's matter."""
        last: list[Finding] = []

        def well() -> bool:
            last[:] = self.doctor()[1]
            return not [each for each in last
                        if each["severity"] in TROUBLE and each["check"] != "disk room"]
        wait_until(well, HANG, "the doctor to find nothing")
        return last


class Doctor(DoctorCase):
    def files(self) -> list[str]:
        return sorted(str(file) for file in self.cluster.data_dir().glob("*/*"))

    def test_a_healthy_cluster_passes(self) -> None:
        before = self.files()
        said = {each["check"]: each for each in self.wait_well()}
        self.assertEqual(
            set(said), {"helpers", "versions", "ports", "roots", "stores", "disk room",
                        "descriptors", "clocks", "certificates", "storage systems"})
        for check in ("helpers", "versions", "ports", "roots", "stores", "descriptors", "clocks"):
            self.assertEqual(said[check]["severity"], "ok", said[check])
        # The coordinator and each helper to both ports of each other, each to the coordinator.
        self.assertIn(f"all {6 * 2 + 6 * (5 * 2 + 1)} ways", said["ports"]["what"])
        self.assertIn("all 7 daemons run", said["versions"]["what"])
        for check in ("certificates", "storage systems"):
            self.assertEqual(said[check]["severity"], "not checked")
        self.assertEqual(self.files(), before)  # nothing is left where a file was made

    def test_text_for_people(self) -> None:
        self.wait_well()
        said = self.cluster.cli("doctor").stdout
        self.assertIn("\nok  ports: all ", said)
        self.assertNotIn("\x1b", said)

    def test_a_helper_that_is_stopped_costs_its_deadline(self) -> None:
        helper = self.cluster.helpers["node-2"]
        helper.pause()
        self.addCleanup(helper.resume)
        found = self.wait_found("error", "helpers", "node-2", "does not answer the coordinator")
        self.assertIn("systemctl status ecpipe-helper", found["advice"])
        self.assertNotIn("node-3", {each["where"] for each in self.doctor()[1]
                                    if each["check"] == "helpers"})
        helper.resume()
        self.wait_well()

    def test_a_data_port_that_nobody_reaches(self) -> None:
        helper = self.cluster.helpers["node-3"]
        listen = helper.settings["listen"]
        listen["advertise_data"] = "127.0.0.1:1"
        helper.restart()
        self.cluster.wait_live(["node-3"])
        try:
            found = self.wait_found("error", "ports", "node-3", "data port 127.0.0.1:1")
            self.assertIn("coordinator, node-1", found["what"])
            self.assertIn("advertise_data", found["advice"])
        finally:
            del listen["advertise_data"]
            helper.restart()
        self.cluster.wait_live(["node-3"])
        self.wait_well()

    def test_a_root_that_is_gone(self) -> None:
        root = self.cluster.data_dir() / "node-4"
        aside = self.work / "aside"
        root.rename(aside)
        try:
            root.write_text("no directory")
            found = self.wait_found("error", "roots", "node-4", str(root))
            self.assertIn("mounted", found["advice"])
        finally:
            root.unlink()
            aside.rename(root)
        self.wait_well()

    def test_few_descriptors(self) -> None:
        helper = self.cluster.helpers["node-5"]
        before = resource.prlimit(helper.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(helper.pid, resource.RLIMIT_NOFILE, (512, before[1]))
        found = self.wait_found("warning", "descriptors", "node-5", "of 512 are in use")
        self.assertIn("LimitNOFILE", found["advice"])
        self.assertEqual(self.doctor()[0], 0)  # a warning is no failure
        resource.prlimit(helper.pid, resource.RLIMIT_NOFILE, before)

    def test_a_dead_node(self) -> None:
        helper = self.cluster.helpers["node-6"]
        helper.kill()
        self.wait_found("error", "helpers", "node-6", "no heartbeat")
        helper.restart()
        self.cluster.wait_live(["node-6"])
        self.wait_well()

    def test_no_coordinator(self) -> None:
        done = subprocess.run([case.BIN_DIR / "ecpipe", "--coordinator", "127.0.0.1:1", "doctor"],
                              capture_output=True, text=True, timeout=HANG)
        self.assertEqual(done.returncode, UNAVAILABLE, done.stderr)


class WithNameNode(DoctorCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.namenode = FakeNameNode()
        cls.namenode.__enter__()
        cls.addClassCleanup(cls.namenode.__exit__)
        cls.coordinator_settings = {
            "hdfs": {"namenodes": [cls.namenode.url], "refresh_seconds": 1}}
        super().setUpClass()

    def test_a_namenode_that_does_not_answer(self) -> None:
        self.wait_found("ok", "storage systems", "", "the NameNode answered")
        self.namenode.cut_off = self.namenode.standby = True
        found = self.wait_found("error", "storage systems", "coordinator",
                                "the NameNode does not answer")
        self.assertIn("[hdfs] namenodes", found["advice"])


class WithTls(DoctorCase):
    tls = True

    def certificates(self) -> Certificates:
        assert self.cluster.certificates is not None
        return self.cluster.certificates

    def test_certificates_near_their_end(self) -> None:
        said = {each["check"]: each for each in self.wait_well()}
        self.assertIn("all 8 are of one CA", said["certificates"]["what"])
        certificates = self.certificates()
        certificates.make(["node-1=helper"], days=20)
        self.wait_found("warning", "certificates", "node-1", "ends in")
        certificates.make([f"{COORDINATOR}=coordinator"], days=5)
        found = self.wait_found("error", "certificates", COORDINATOR, "ends in")
        self.assertIn("ecpipe-make-certs", found["advice"])
        certificates.make([f"{REQUESTOR}=requestor,operator"], days=5)
        self.wait_found("error", "certificates", "this command", "ends in")
        certificates.make_for_cluster(COORDINATOR, REQUESTOR, self.cluster.node_ids)
        self.wait_well()

    def test_only_operators_and_only_the_coordinator(self) -> None:
        self.certificates().make(["guest=requestor"])
        done = subprocess.run(
            [case.BIN_DIR / "ecpipe", "--coordinator", self.cluster.coordinator.address,
             *self.certificates().arguments("guest"), "doctor"],
            capture_output=True, text=True, timeout=HANG)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertIn("PERMISSION_DENIED", done.stderr)


if __name__ == "__main__":
    case.main()
